r"""Students that reproduce examples: the equations of a match.

A student with :math:`n` neurons in :math:`d` dimensions *matches*
:math:`m` examples if :math:`f_\theta(x_s)=y_s` for all of them. These are
:math:`m` equations for the :math:`p` weights that may learn, at most
:math:`P=n(d+1)`. They are handed out as a function that returns residuals
and their Jacobian for many problems side by side, which is what a
least-squares solver asks for.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from helpers.copy_average.empirical import network, network_jacobian
from helpers.copy_average.networks import Student, Teacher, unpack
from helpers.copy_average.population import population_loss
from helpers.core.activations import Activation, get_activation
from helpers.core.checks import check_sizes, finite_array, positive_number
from helpers.core.randomness import Seed, as_generator
from helpers.core.tolerances import MATCHED_RELATIVE

__all__ = [
    "Ends",
    "always_matched",
    "cancelling_pairs",
    "ends_of_starts",
    "match_equations",
]

Equations = Callable[[NDArray, NDArray], tuple[NDArray, NDArray]]


class Ends(NamedTuple):
    r"""Where a solver ended, from each start on each sample.

    Parameters
    ----------
    residual : ndarray, shape (K, S)
        :math:`\lVert f(X)-y\rVert/\lVert y\rVert`.
    training : ndarray, shape (K, S)
        Mean square of :math:`f(x_s)-y_s` over the sample.
    loss : ndarray, shape (K, S)
        Population loss against the teacher.
    """

    residual: NDArray
    training: NDArray
    loss: NDArray

    @property
    def matched(self) -> NDArray:
        """Whether a start ends in a match, ``(K, S)``."""
        return self.residual < MATCHED_RELATIVE

    @property
    def chosen(self) -> tuple[NDArray, NDArray]:
        """Index of one end a sample: the first match, else the best."""
        first, best = self.matched.argmax(axis=1), self.residual.argmin(axis=1)
        some = self.matched.any(axis=1)
        return np.arange(some.size), np.where(some, first, best)


def always_matched(n: int, d: int) -> int:
    r"""How many examples ``n`` erf neurons can match whatever the labels are.

    .. math:: Q=\lfloor n/2\rfloor\,(d+1)+d\,[n\text{ odd}]

    Parameters
    ----------
    n : int
        Neurons, 1 or more.
    d : int
        Input dimension, 1 or more.

    Returns
    -------
    int
        Half of the parameters :math:`n(d+1)` for even ``n``.

    Raises
    ------
    ValueError
        If a size is no positive whole number.

    Notes
    -----
    Two neurons that nearly cancel are worth the :math:`d+1` functions
    :math:`\sigma(w\cdot x)` and :math:`x_l\,\sigma'(w\cdot x)`, with
    weights that may be chosen freely; a neuron left over is worth the
    :math:`d` linear functions. A lower bound: more may be possible.

    Source: ours.

    Examples
    --------
    >>> always_matched(2, 4), always_matched(3, 4), always_matched(1, 1)
    (5, 9, 1)
    """
    check_sizes(n=n, d=d)
    return n // 2 * (d + 1) + (n % 2) * d


def cancelling_pairs(
    X: ArrayLike,
    y: ArrayLike,
    W: ArrayLike,
    strength: float,
    odd: bool = False,
) -> Student:
    r"""A student of nearly cancelling pairs that nearly has the labels ``y``.

    .. math:: \begin{gathered} f_A(x)=\sum_i\Big[
        \big(A+\tfrac{\alpha_i}2\big)\,
        \sigma\big((w_i+\tfrac{u_i}{2A})\cdot x\big)\\
        -\big(A-\tfrac{\alpha_i}2\big)\,
        \sigma\big((w_i-\tfrac{u_i}{2A})\cdot x\big)\Big]
        \;\Big[+A\,\sigma\big(\tfrac cA\cdot x\big)\Big] \end{gathered}

    Parameters
    ----------
    X : array_like, shape (m, d)
        Inputs, at most ``always_matched(n, d)`` of them.
    y : array_like, shape (m,)
        Any labels.
    W : array_like, shape (h, d)
        Weights of the pairs, :math:`h\ge0`.
    strength : float
        :math:`A>0`.
    odd : bool, default False
        Whether there is a neuron besides the pairs.

    Returns
    -------
    Student
        Of :math:`n=2h` or :math:`2h+1` erf neurons.

    Raises
    ------
    ValueError
        If shapes do not fit, an entry is not finite, there is no neuron, or
        there are too many inputs.

    Notes
    -----
    :math:`\alpha,u,c` are the shortest solution of the equations in the
    limit :math:`A\to\infty`, which are linear. The labels are missed by
    :math:`O(1/A^2)`.

    Source: ours.

    Examples
    --------
    >>> X = [[1.0], [2.0]]
    >>> for A in (10, 100):
    ...     s = cancelling_pairs(X, [3.0, -1.0], [[1.0]], A)
    ...     print(network(s.W, s.a, X).round(3).tolist())
    [3.254, 0.906]
    [3.003, -0.98]
    """
    X, y = finite_array(X, "X", 2), finite_array(y, "y", 1)
    W, A = finite_array(W, "W", 2), positive_number(strength, "strength")
    h, d = len(W), X.shape[1]
    n = 2 * h + bool(odd)
    if y.shape != X.shape[:1] or W.shape[1] != d or not n:
        raise ValueError(
            "X must have shape (m, d), y (m,) and W (h, d) with a neuron at "
            f"least, got {X.shape}, {y.shape} and {W.shape}"
        )
    most = always_matched(n, d)
    if not 1 <= y.size <= most:
        raise ValueError(f"X must hold 1 to {most} inputs, got {y.size}")
    ones = np.ones(h)
    blocks = [network_jacobian(W, ones, X)] if h else []
    blocks += [np.sqrt(2 / np.pi) * X] if odd else []
    v = np.linalg.lstsq(np.hstack(blocks), y)[0]
    u, alpha = unpack(v[: h * (d + 1)], h) if h else (W, ones)
    rest = v[h * (d + 1) :].reshape(-1, d)
    return Student(
        np.vstack([W + u / (2 * A), W - u / (2 * A), rest / A]),
        np.r_[A + alpha / 2, alpha / 2 - A, A * np.ones(len(rest))],
    )


def match_equations(
    X: ArrayLike,
    y: ArrayLike,
    n: int,
    starts: int = 1,
    activation: str | Activation = "erf",
    learned: ArrayLike | None = None,
    frozen: ArrayLike | None = None,
) -> Equations:
    r"""The equations :math:`f_\theta(x_s)-y_s=0` of many problems.

    Parameters
    ----------
    X : array_like, shape (K, m, d)
        ``K`` samples of ``m`` inputs.
    y : array_like, shape (K, m)
        Labels.
    n : int
        Neurons of the student, 1 or more.
    starts : int, default 1
        Each problem is posed this often in a row, for a solver that takes
        one start each: problem ``i`` of the callable is sample
        ``i // starts``.
    activation : str or Activation, default "erf"
    learned : array_like of int, shape (p,), optional
        Entries of the packed parameters
        (:func:`~helpers.copy_average.networks.pack`) that may learn, each
        once; all of them by default.
    frozen : array_like, shape (K, P), optional
        The packed parameters whose other entries stay, for each sample;
        needed with ``learned``, and only then.

    Returns
    -------
    callable
        ``residual_jac(w (k, p), which (k,))`` returns the residuals
        ``(k, m)`` of the problems ``which`` and their Jacobian
        ``(k, m, p)``, as
        :func:`helpers.allocation.levenberg.levenberg_marquardt` asks for.

    Raises
    ------
    ValueError
        If shapes do not fit, an entry is not finite, or ``learned`` is not a
        list of different entries of the parameters.

    Notes
    -----
    :math:`O(mP)` a problem and call.

    Source: ours; a match is that of Schlisselberg and Darshan (2025).

    Examples
    --------
    One neuron, one input, one example: 3 erf(0) - 1, and its slope in w.

    >>> equations = match_equations([[[2.0]]], [[1.0]], n=1)
    >>> r, J = equations(np.array([[0.0, 3.0]]), np.array([0]))
    >>> r.tolist(), J.round(4).tolist()
    ([[-1.0]], [[[4.7873, 0.0]]])
    """
    X, y = finite_array(X, "X", 3), finite_array(y, "y", 2)
    if X.shape[:2] != y.shape or not X.size:
        raise ValueError(
            "X must have shape (K, m, d) and y (K, m), none of them zero, "
            f"got {X.shape} and {y.shape}"
        )
    check_sizes(n=n, starts=starts)
    size = n * (X.shape[2] + 1)
    learned, frozen = _allocation(learned, frozen, len(X), size)
    activation = get_activation(activation)

    def residual_jac(w, which):
        sample = np.asarray(which) // starts
        theta = frozen[sample]
        theta[:, learned] = w
        W, a = unpack(theta, n)
        r = network(W, a, X[sample], activation) - y[sample]
        J = network_jacobian(W, a, X[sample], activation)
        return r, J[..., learned]

    return residual_jac


def _allocation(learned, frozen, K: int, size: int):
    if (learned is None) != (frozen is None):
        raise ValueError("give learned and frozen, or neither of them")
    if learned is None:
        return np.arange(size), np.zeros((K, size))
    learned, frozen = np.asarray(learned), finite_array(frozen, "frozen", 2)
    whole = learned.ndim == 1 and np.issubdtype(learned.dtype, np.integer)
    if not whole or not set(learned.tolist()) <= set(range(size)):
        raise ValueError(
            f"learned must be a list of entries from 0 to {size - 1}, got "
            f"{learned.tolist()}"
        )
    if not 0 < learned.size == np.unique(learned).size:
        raise ValueError(
            f"learned must hold different entries, got {learned.tolist()}"
        )
    if frozen.shape != (K, size):
        raise ValueError(
            f"frozen must have shape {(K, size)}, got {frozen.shape}"
        )
    return learned, frozen


def ends_of_starts(
    solver: Callable,
    teacher: Teacher,
    n: int,
    m: int,
    draws: int,
    starts: int,
    rng: Seed,
    *,
    labels: str = "teacher",
    learned: ArrayLike | None = None,
) -> Ends:
    r"""Try to match ``m`` examples of a teacher, from random starts.

    Parameters
    ----------
    solver : callable
        ``solver(equations, w0 (k, p), size (k,))`` returns an object with
        the fields ``w`` and ``residual`` whose sizes are ``k p`` and ``k``,
        as :func:`helpers.allocation.levenberg.levenberg_marquardt` does.
    teacher : Teacher
    n, m : int
        Erf neurons of the student, and examples.
    draws, starts : int
        Samples, and starts for each of them.
    rng : seed or Generator
    labels : {"teacher", "random"}
        Those of the teacher, or independent standard normal ones.
    learned : array_like of int, shape (p,), optional
        As in :func:`match_equations`; the other weights are drawn from the
        standard normal law, once a sample.

    Returns
    -------
    Ends

    Raises
    ------
    ValueError
        If a size is no positive whole number, ``labels`` is unknown or
        ``learned`` does not fit.

    Notes
    -----
    Inputs and starts are standard normal. A match that is not found may
    still exist.

    Source: ours.

    Examples
    --------
    A solver that stays where it is matches nothing.

    >>> from types import SimpleNamespace
    >>> def idle(equations, w0, size):
    ...     r, _ = equations(w0, np.arange(len(w0)))
    ...     return SimpleNamespace(
    ...         w=w0, residual=np.linalg.norm(r, axis=1) / size)
    >>> ends = ends_of_starts(idle, Teacher.orthonormal(3), 2, 5, 4, 6, 0)
    >>> ends.loss.shape, bool(ends.matched.any())
    ((4, 6), False)
    """
    check_sizes(n=n, m=m, draws=draws, starts=starts)
    if labels not in ("teacher", "random"):
        raise ValueError(f"labels must be teacher or random, got {labels!r}")
    rng, size = as_generator(rng), n * (teacher.d + 1)
    X = rng.normal(size=(draws, m, teacher.d))
    y = network(teacher.V, teacher.b, X)
    if labels == "random":
        y = rng.normal(size=y.shape)
    theta = np.zeros((draws, size))
    if learned is not None:
        theta = rng.normal(size=(draws, size))
    entries = np.arange(size) if learned is None else np.asarray(learned)
    equations = match_equations(X, y, n, starts, learned=entries, frozen=theta)
    scale = np.linalg.norm(y, axis=1)
    begin = rng.normal(size=(draws * starts, entries.size))
    end = solver(equations, begin, np.repeat(scale, starts))
    residual = np.reshape(end.residual, (draws, starts))
    theta = np.repeat(theta, starts, axis=0)
    theta[:, entries] = np.reshape(end.w, begin.shape)
    loss = population_loss(*unpack(theta, n), teacher)
    return Ends(
        residual,
        (residual * scale[:, None]) ** 2 / m,
        loss.reshape(draws, starts),
    )
