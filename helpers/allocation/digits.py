r"""Real labels: images, no teacher, cross-entropy, and what rows can do at all.

A shallow ReLU network reads an image; entries of its first layer may learn,
all else is frozen. A *match* classifies all ``m`` training images correctly.
Learning by Adam gives a lower bound of the match probability. That
activations are not negative gives an upper bound, by linear programmes, and
where every learned row can set its activations freely the two are one.
"""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

import numpy as np
from scipy.optimize import linprog

from helpers.allocation.allocations import (
    Allocation,
    DoesNotFit,
    check_allocation,
    row_allocation,
    stack_allocations,
    with_entries,
)
from helpers.allocation.networks import ShallowReLU, relu_forward, sample_relu
from helpers.core.checks import (
    check_finite,
    check_sizes,
    is_whole,
    positive_number,
)
from helpers.core.data import Samples, load_digits_samples
from helpers.core.linalg import numerical_rank
from helpers.core.randomness import Seed, as_generator, spawn
from helpers.core.statistics import wilson_interval
from helpers.core.tolerances import ADAM_DENOMINATOR, CONE_SLACK

CLASSES = 10
MOMENTS = (0.9, 0.999)
"""Decay of Adam's two moments, the values of the paper that introduced it."""


class ImageProblems(NamedTuple):
    """Students, ``X (K, pixels, m)`` and ``labels (K, m)`` of each draw."""

    student: ShallowReLU
    X: np.ndarray
    labels: np.ndarray


class Trained(NamedTuple):
    """Learned offsets ``w (K, p)`` and the best training accuracy ``(K,)``
    seen at any step."""

    w: np.ndarray
    accuracy: np.ndarray


def image_samples(name: str = "digits", folder=None) -> Samples | None:
    """Images as rows in [0, 1] minus the mean image, with their classes.

    Parameters
    ----------
    name : {"digits", "mnist"}
        Digits of 8 x 8 pixels come with scikit-learn. MNIST has to be
        fetched, once.
    folder : path, optional
        Where MNIST is kept; nothing is fetched if it is not given.

    Returns
    -------
    Samples or None
        None, and a line that says why, if MNIST cannot be had.

    Raises
    ------
    ValueError
        If ``name`` is unknown or a file is damaged.

    Notes
    -----
    Source: ours; the paper's own preparation of MNIST is not known.

    Examples
    --------
    >>> image_samples().inputs.shape
    (1797, 64)
    >>> image_samples("mnist")
    MNIST skipped: no folder was given for it.
    """
    if name == "digits":
        inputs, classes = load_digits_samples()
    elif name == "mnist":
        from helpers.core.downloads import load_mnist

        if folder is None:
            print("MNIST skipped: no folder was given for it.")
            return None
        try:
            inputs, classes = load_mnist(Path(folder))
        except ConnectionError as error:
            print(f"MNIST skipped: {error}")
            return None
        inputs = inputs.reshape(len(inputs), -1) / 255
    else:
        raise ValueError(f"name must be digits or mnist, got {name!r}")
    return Samples(inputs - inputs.mean(axis=0), classes)


def image_problems(
    samples: Samples, K: int, n: int, m: int, rng: Seed, shuffled: bool = False
) -> ImageProblems:
    """Independent students, each with images of its own.

    Parameters
    ----------
    samples : Samples
        Images as rows, classes 0 to 9.
    K, n, m : int
        Draws, hidden neurons, images in each.
    rng : seed or Generator
    shuffled : bool
        Permute the classes within each draw.

    Returns
    -------
    ImageProblems

    Raises
    ------
    ValueError
        If a size is not positive, there are fewer than ``m`` images or a
        class is out of range.

    Notes
    -----
    Source: ours.

    Examples
    --------
    >>> draws = image_problems(image_samples(), 3, 8, 5, 0)
    >>> draws.X.shape, draws.labels.shape
    ((3, 64, 5), (3, 5))
    """
    check_sizes(K=K, n=n, m=m)
    (inputs,) = check_finite(inputs=samples.inputs)
    classes = np.asarray(samples.targets)
    if inputs.ndim != 2 or classes.shape != inputs.shape[:1]:
        raise ValueError(
            "samples must be rows of inputs with one class each, got "
            f"{inputs.shape} and {classes.shape}"
        )
    if m > len(inputs):
        raise ValueError(f"m must be at most {len(inputs)}, got {m}")
    if classes.min() < 0 or classes.max() >= CLASSES:
        raise ValueError(f"classes must lie in 0..{CLASSES - 1}")
    rng = as_generator(rng)
    net = sample_relu(K, n, inputs.shape[1], CLASSES, rng)
    chosen = np.stack([rng.permutation(len(inputs))[:m] for _ in range(K)])
    labels = classes[chosen]
    if shuffled:
        labels = rng.permuted(labels, axis=1)
    return ImageProblems(net, np.swapaxes(inputs[chosen], 1, 2), labels)


def _checked(problems: ImageProblems, allocation: Allocation):
    net, X, labels = problems
    B, D, X = check_finite(B=net.B, D=net.D, X=X)
    K, n, pixels = B.shape
    labels = np.asarray(labels)
    if X.shape[:2] != (K, pixels) or labels.shape != (K, X.shape[2]):
        raise ValueError(
            f"X must be ({K}, {pixels}, m) and labels ({K}, m), got "
            f"{X.shape} and {labels.shape}"
        )
    if labels.min() < 0 or labels.max() >= D.shape[1]:
        raise ValueError(f"labels must lie in 0..{D.shape[1] - 1}")
    rows, cols = check_allocation(allocation, (n, pixels))
    rows, cols = (np.broadcast_to(a, (K, a.shape[-1])) for a in (rows, cols))
    return B, D, X, labels, rows, cols


def _learned_rows(rows) -> np.ndarray:
    """Learned rows of each draw, ``(K, k)``; all must have as many."""
    sets = [np.unique(r) for r in rows]
    if len({s.size for s in sets}) != 1:
        raise ValueError("all draws must have the same number of learned rows")
    return np.stack(sets)


def _frozen(B, D, X, learned) -> np.ndarray:
    """Logits of the neurons that do not learn, ``(K, classes, m)``."""
    z = np.maximum(B @ X, 0)
    np.put_along_axis(z, learned[:, :, None], 0.0, axis=1)
    return D @ z


def classified(
    problems: ImageProblems, allocation: Allocation, w
) -> np.ndarray:
    """Share of each draw's images whose own logit is the largest.

    Parameters
    ----------
    problems : ImageProblems
    allocation : Allocation
        Of the first layer, ``(p,)`` or ``(K, p)``.
    w : array_like (K, p)
        Offsets that are added to the entries.

    Returns
    -------
    numpy.ndarray (K,)
        A tie counts as wrong.

    Raises
    ------
    ValueError
        If shapes do not fit.

    Notes
    -----
    Source: ours.

    Examples
    --------
    >>> net = ShallowReLU(np.ones((1, 1, 1)), np.eye(2)[None, :, :1])
    >>> one = ImageProblems(net, np.ones((1, 1, 1)), np.array([[0]]))
    >>> classified(one, Allocation([0], [0]), [[1.0]])
    array([1.])
    """
    B, D, X, labels, rows, cols = _checked(problems, allocation)
    K = np.arange(len(B))[:, None]
    mine = Allocation(rows, cols)
    moved = with_entries(B, mine, B[K, rows, cols] + np.asarray(w, float))
    logits = relu_forward(ShallowReLU(moved, D), X)
    return _right(logits, labels).mean(axis=1)


def _right(logits, labels) -> np.ndarray:
    own = np.take_along_axis(logits, labels[:, None, :], axis=1)
    rest = logits.copy()
    np.put_along_axis(rest, labels[:, None, :], -np.inf, axis=1)
    return own[:, 0] > rest.max(axis=1)


def loss_and_gradient(problems: ImageProblems, allocation: Allocation, w):
    r"""Mean cross-entropy of each draw and its gradient.

    With softmax probabilities :math:`q` and one-hot labels :math:`e`, the
    gradient in entry :math:`(j,c)` is :math:`\frac1m\sum_i
    \bigl(D^\top(q_i-e_i)\bigr)_j\,1[z_{ji}>0]\,x_{ci}`.

    Parameters
    ----------
    problems : ImageProblems
    allocation : Allocation
    w : array_like (K, p)

    Returns
    -------
    loss : numpy.ndarray (K,)
    gradient : numpy.ndarray (K, p)

    Raises
    ------
    ValueError
        If shapes do not fit.

    Notes
    -----
    Source: ours.

    Examples
    --------
    Two classes, one frozen zero readout: the loss is log 2.

    >>> net = ShallowReLU(np.ones((1, 1, 1)), np.zeros((1, 2, 1)))
    >>> one = ImageProblems(net, np.ones((1, 1, 1)), np.array([[0]]))
    >>> loss, g = loss_and_gradient(one, Allocation([0], [0]), [[0.0]])
    >>> loss.round(6), g.ravel()
    (array([0.693147]), array([0.]))
    """
    step = _Learner(*_checked(problems, allocation))
    loss, gradient, _ = step(np.asarray(w, float))
    return loss, gradient


class _Learner:
    """Loss, gradient and right images at offsets; learned rows alone move."""

    def __init__(self, B, D, X, labels, rows, cols):
        learned = _learned_rows(rows)
        self.K, self.m = np.arange(len(B))[:, None], X.shape[2]
        self.frozen = _frozen(B, D, X, learned)
        self.B = np.take_along_axis(B, learned[:, :, None], axis=1)
        self.D = np.take_along_axis(D, learned[:, None, :], axis=2)
        self.X, self.labels, self.cols = X, labels, cols
        self.rows = (learned[:, None, :] == rows[:, :, None]).argmax(axis=2)

    def __call__(self, w):
        B = self.B.copy()
        B[self.K, self.rows, self.cols] += w
        z = B @ self.X
        logits = self.frozen + self.D @ np.maximum(z, 0)
        right = _right(logits, self.labels)
        logits = logits - logits.max(axis=1, keepdims=True)
        q = np.exp(logits)
        total = q.sum(axis=1, keepdims=True)
        own = np.take_along_axis(logits, self.labels[:, None, :], axis=1)
        loss = (np.log(total) - own)[:, 0].mean(axis=1)
        q /= total
        at = np.take_along_axis(q, self.labels[:, None, :], axis=1) - 1
        np.put_along_axis(q, self.labels[:, None, :], at, axis=1)
        back = np.swapaxes(self.D, 1, 2) @ q * (z > 0) / self.m
        gradient = back @ np.swapaxes(self.X, 1, 2)
        return loss, gradient[self.K, self.rows, self.cols], right


def train_adam(
    problems: ImageProblems,
    allocation: Allocation,
    steps: int = 600,
    rate: float = 0.02,
) -> Trained:
    r"""Adam on the cross-entropy, all draws side by side, from offsets 0.

    Parameters
    ----------
    problems : ImageProblems
    allocation : Allocation
        ``(p,)`` or ``(K, p)``, the same number of learned rows in each draw.
    steps : int
    rate : float
        Positive.

    Returns
    -------
    Trained
        A draw that has matched stays as it is.

    Raises
    ------
    ValueError
        If an argument does not fit.

    Notes
    -----
    Cost a step :math:`O(Kkm(\text{pixels}+\text{classes}))`. Source: ours.

    Examples
    --------
    >>> draws = image_problems(image_samples(), 2, 16, 4, 0)
    >>> mine = row_allocation((16, 64), 16, 256, 1)
    >>> train_adam(draws, mine, steps=100).w.shape
    (2, 256)
    """
    check_sizes(steps=steps)
    positive_number(rate, "rate")
    parts = _checked(problems, allocation)
    K, p = parts[4].shape
    w, best = np.zeros((K, p)), np.zeros(K)
    going = np.arange(K)
    step = _Learner(*parts)
    first, second = np.zeros((K, p)), np.zeros((K, p))
    a, b = MOMENTS
    for t in range(1, steps + 2):
        _, gradient, right = step(w[going])
        best[going] = np.maximum(best[going], right.mean(axis=1))
        left = ~right.all(axis=1)
        if t > steps or not left.any():
            break
        if not left.all():
            going, gradient = going[left], gradient[left]
            first, second = first[left], second[left]
            step = _Learner(*(part[going] for part in parts))
        first = a * first + (1 - a) * gradient
        second = b * second + (1 - b) * gradient**2
        size = np.sqrt(second / (1 - b**t)) + ADAM_DENOMINATOR
        w[going] -= rate * first / (1 - a**t) / size
    return Trained(w, best)


def reachable(D, t, label: int) -> bool:
    r"""Whether activations :math:`a\ge0` make ``label`` the largest logit.

    Is there :math:`a\in\mathbb R^k_{\ge0}` such that :math:`t+Da` has its
    strict maximum at ``label``?

    Parameters
    ----------
    D : array_like (classes, k)
        Outgoing weights of the learned neurons.
    t : array_like (classes,)
        Logits of the frozen ones.
    label : int

    Returns
    -------
    bool

    Raises
    ------
    ValueError
        If shapes do not fit or an entry is not finite.

    Notes
    -----
    The largest margin, at most 1, of a linear programme. Source: ours.

    Examples
    --------
    One neuron that speaks for class 0 can never help class 1.

    >>> reachable([[1.0], [0.0]], [0.0, 0.5], 0)
    True
    >>> reachable([[1.0], [0.0]], [0.5, 0.0], 1)
    False
    """
    return _activations(D, t, label) is not None


def _activations(D, t, label):
    """Activations with the largest margin, or None."""
    D, t = check_finite(D=D, t=t)
    if D.ndim != 2 or t.shape != D.shape[:1] or D.shape[0] < 2:
        raise ValueError(
            "D must be (classes, k) and t (classes,) with at least two "
            f"classes, got {D.shape} and {t.shape}"
        )
    if not is_whole(label) or not 0 <= label < len(t):
        raise ValueError(f"label must lie in 0..{len(t) - 1}, got {label!r}")
    k = D.shape[1]
    others = np.arange(len(t)) != label
    lead, gap = D[label] - D[others], t[others] - t[label]
    if (gap < 0).all():
        return np.zeros(k)
    # scaled so that the programme does not see the size of the network
    size = max(np.abs(lead).max(initial=0.0), np.abs(gap).max())
    rows = np.column_stack([-lead / size, np.ones(len(gap))])
    bounds = [(0, None)] * k + [(None, 1)]
    cost = np.append(np.zeros(k), -1.0)
    done = linprog(cost, A_ub=rows, b_ub=-gap / size, bounds=bounds)
    if done.status or -done.fun <= CONE_SLACK:
        return None
    return done.x[:k]


def reachable_labels(
    problems: ImageProblems, allocation: Allocation
) -> np.ndarray:
    r"""Whether every image of a draw could be classified right, ``(K,)``.

    Parameters
    ----------
    problems : ImageProblems
    allocation : Allocation
        ``(p,)`` or ``(K, p)``.

    Returns
    -------
    numpy.ndarray of bool (K,)
        Necessary for a match, whatever the weights of the learned rows.

    Raises
    ------
    ValueError
        If shapes do not fit.

    Notes
    -----
    If activations alone can lift a class above the others, its images need
    no programme of their own. Source: ours.

    Examples
    --------
    >>> draws = image_problems(image_samples(), 5, 16, 32, 0)
    >>> one_row = row_allocation((16, 64), 1, 64, 1)
    >>> reachable_labels(draws, one_row).any()
    np.False_
    """
    B, D, X, labels, rows, _ = _checked(problems, allocation)
    learned = _learned_rows(rows)
    frozen = _frozen(B, D, X, learned)
    nothing = np.zeros(D.shape[1])
    found = np.zeros(len(B), dtype=bool)
    for i, (mine, t) in enumerate(zip(labels, frozen, strict=True)):
        active = D[i][:, learned[i]]
        free = {c: reachable(active, nothing, c) for c in np.unique(mine)}
        found[i] = all(
            free[c] or reachable(active, t[:, j], c)
            for j, c in enumerate(mine)
        )
    return found


def free_rows(problems: ImageProblems, allocation: Allocation) -> np.ndarray:
    """Whether each learned row can set its ``m`` pre-activations, ``(K,)``.

    Parameters
    ----------
    problems : ImageProblems
    allocation : Allocation
        ``(p,)`` or ``(K, p)``.

    Returns
    -------
    numpy.ndarray of bool (K,)
        Whether, in every learned row, the learned pixels of the images have
        rank ``m``. Then :func:`reachable_labels` is also sufficient.

    Raises
    ------
    ValueError
        If shapes do not fit.

    Notes
    -----
    Source: ours.

    Examples
    --------
    >>> draws = image_problems(image_samples(), 2, 16, 32, 0)
    >>> free_rows(draws, row_allocation((16, 64), 4, 256, 1))
    array([ True,  True])
    >>> free_rows(draws, row_allocation((16, 64), 16, 256, 1))
    array([False, False])
    """
    _, _, X, labels, rows, cols = _checked(problems, allocation)
    m = labels.shape[1]
    return np.array(
        [
            all(
                (r == j).sum() >= m and numerical_rank(x[c[r == j]]).rank == m
                for j in np.unique(r)
            )
            for x, r, c in zip(X, rows, cols, strict=True)
        ]
    )


def solve_free_rows(
    problems: ImageProblems, allocation: Allocation
) -> np.ndarray:
    r"""Weights that classify every image right, by linear algebra.

    A linear programme an image gives activations, and one linear system a
    learned row gives weights with these pre-activations.

    Parameters
    ----------
    problems : ImageProblems
    allocation : Allocation
        ``(p,)`` or ``(K, p)``.

    Returns
    -------
    numpy.ndarray (K, p)
        Offsets; NaN for draws that :func:`reachable_labels` or
        :func:`free_rows` denies.

    Raises
    ------
    ValueError
        If shapes do not fit.

    Notes
    -----
    Check them with :func:`classified`. Source: ours.

    Examples
    --------
    >>> draws = image_problems(image_samples(), 6, 16, 4, 0)
    >>> mine = row_allocation((16, 64), 12, 768, 1)
    >>> w = solve_free_rows(draws, mine)
    >>> classified(draws, mine, w)
    array([1., 1., 1., 1., 1., 1.])
    """
    B, D, X, labels, rows, cols = _checked(problems, allocation)
    good = reachable_labels(problems, allocation)
    good &= free_rows(problems, allocation)
    learned = _learned_rows(rows)
    frozen = _frozen(B, D, X, learned)
    w = np.full(rows.shape, np.nan)
    for i in np.flatnonzero(good):
        active = D[i][:, learned[i]]
        wanted = np.column_stack(
            [
                _activations(active, frozen[i][:, j], c)
                for j, c in enumerate(labels[i])
            ]
        )
        for row, target in zip(learned[i], wanted, strict=True):
            mine = rows[i] == row
            missing = target - B[i, row] @ X[i]
            w[i, mine] = np.linalg.lstsq(
                X[i][cols[i, mine]].T, missing, rcond=None
            )[0]
    return w


def digits_point(
    n: int,
    k: int,
    m: int,
    p: int,
    trials: int,
    seed: int,
    steps: int = 600,
    rate: float = 0.02,
    shuffled: bool = False,
    ceiling: bool = True,
) -> dict:
    """One point of the digits curve: by Adam, and what is exactly known.

    Parameters
    ----------
    n, k, m, p : int
        Hidden neurons, learned rows, images, learned weights.
    trials : int
        Independent draws of network, images and placement.
    seed : int
    steps, rate
        Of :func:`train_adam`.
    shuffled : bool
        Permute the labels.
    ceiling : bool
        Also solve the linear programmes.

    Returns
    -------
    dict
        ``fits``, and if not all else is 0 and means nothing; ``drawn``,
        ``hits``; ``accuracy``, the mean of the best training accuracies;
        ``possible``, draws that :func:`reachable_labels` allows; ``free``,
        draws in which that is also sufficient; ``missed``, free and possible
        draws that Adam did not match; ``unsound``, draws that Adam matched
        and the programmes deny.

    Raises
    ------
    ValueError
        If a size is not positive.

    Notes
    -----
    Source: ours (F10 of the reconstruction).

    Examples
    --------
    >>> point = digits_point(16, 2, 8, 64, trials=3, seed=0, steps=5)
    >>> point["fits"], point["drawn"], point["unsound"]
    (1, 3, 0)
    >>> digits_point(16, 2, 8, 256, trials=3, seed=0)["fits"]
    0
    """
    check_sizes(n=n, k=k, m=m, p=p, trials=trials)
    draws, places = spawn(seed, 2)
    names = ("drawn", "hits", "possible", "free", "missed", "unsound")
    empty = {"fits": 0, "accuracy": 0.0} | dict.fromkeys(names, 0)
    samples = image_samples()
    pixels = samples.inputs.shape[1]
    try:
        chosen = stack_allocations(
            row_allocation((n, pixels), k, p, r) for r in places.spawn(trials)
        )
    except DoesNotFit:
        return empty
    problems = image_problems(samples, trials, n, m, draws, shuffled)
    done = train_adam(problems, chosen, steps, rate)
    hit = done.accuracy == 1
    row = empty | {"fits": 1, "drawn": trials, "hits": int(hit.sum())}
    row["accuracy"] = float(done.accuracy.mean())
    if ceiling:
        possible = reachable_labels(problems, chosen)
        free = free_rows(problems, chosen)
        row["possible"], row["free"] = int(possible.sum()), int(free.sum())
        row["missed"] = int((free & possible & ~hit).sum())
        row["unsound"] = int((hit & ~possible).sum())
    return row


def point_interval(hits, drawn):
    """Rate and Wilson interval of points, three arrays.

    Parameters
    ----------
    hits, drawn : array_like of int

    Returns
    -------
    rate, low, high : numpy.ndarray

    Notes
    -----
    Source: ours.

    Examples
    --------
    >>> [round(float(v), 3) for v in point_interval(5, 10)]
    [0.5, 0.237, 0.763]
    """
    hits, drawn = np.asarray(hits), np.asarray(drawn)
    low, high = wilson_interval(hits, drawn)
    return hits / drawn, np.asarray(low), np.asarray(high)
