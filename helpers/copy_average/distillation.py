r"""Warm starts: what to do with a wide trained network before training a narrow one.

A random student has to find out which teacher neurons to copy. But the
teacher is known: copy ``n - 1`` of its neurons, put one neuron in the place
of all others, and train from there. For erf the stand-in has a closed form
in lifted coordinates :math:`y = w/\sqrt{1+\lVert w\rVert^2}`: the mean of
its group, weighted by loudness.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import cache
from itertools import combinations
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from helpers.copy_average.classify import classify_solution
from helpers.copy_average.configurations import lift
from helpers.copy_average.flow import gradient_flow
from helpers.copy_average.initial import glorot_normal
from helpers.copy_average.networks import Student, Teacher, unpack
from helpers.copy_average.population import population_loss
from helpers.core.checks import whole_number
from helpers.core.randomness import Seed, as_generator

__all__ = [
    "STARTS",
    "TEACHERS",
    "WarmStart",
    "copy_start",
    "run_distillation",
    "stand_in",
    "time_to",
    "trained_teacher",
    "warm_start",
]

STARTS = ("copy_average", "n_copy", "random")
TEACHERS = ("orthonormal", "uneven", "crooked")


class WarmStart(NamedTuple):
    """A student made from a teacher.

    Parameters
    ----------
    student : Student
        Copies in the order of ``copied``, then the stand-in.
    copied : tuple of int
        Teacher neurons that are copied exactly.
    loss : float
    """

    student: Student
    copied: tuple[int, ...]
    loss: float


def _group(group: ArrayLike, k: int) -> NDArray:
    group = np.asarray(group)
    if (
        group.ndim != 1
        or group.size == 0
        or group.dtype.kind not in "iu"
        or len(set(group.tolist())) < group.size
        or group.min() < 0
        or group.max() >= k
    ):
        raise ValueError(
            f"group must hold different indices from 0 to {k - 1}, got "
            f"{group.tolist()}"
        )
    return group


def _width(teacher: Teacher, n: int) -> int:
    return whole_number(n, "n", 1, teacher.k)


def _lifted(teacher: Teacher) -> tuple[NDArray, NDArray]:
    """Lifts with the signs of b taken in, and loudness |b|."""
    return np.sign(teacher.b)[:, None] * lift(teacher.V), np.abs(teacher.b)


def stand_in(teacher: Teacher, group: ArrayLike) -> tuple[NDArray, float]:
    r"""Build one erf neuron in the place of a group.

    With lifts :math:`z_j` whose signs have been chosen so that all
    :math:`b_j>0`,

    .. math:: y = \frac{\sum_{j\in G}b_jz_j}{\sum_{j\in G}b_j},\qquad
       w = \frac y{\sqrt{1-\lVert y\rVert^2}},

    and the outgoing weight that is best for this :math:`w`.

    Parameters
    ----------
    teacher : Teacher
        Any: unequal ``b`` and norms, correlated neurons.
    group : array_like of int
        Different indices of teacher neurons, at least one.

    Returns
    -------
    w : ndarray, shape (d,)
        Zero if the lifts cancel.
    a : float

    Raises
    ------
    ValueError
        If the group is empty or holds an index twice or out of range.

    Notes
    -----
    The best neuron of the group if all ``b``, all norms and all inner
    products in it are equal; else close to it.

    Source: ours, after Theorem 4.2 of Simsek et al. (2023).

    Examples
    --------
    >>> w, a = stand_in(Teacher.orthonormal(2, 2), [0, 1])
    >>> w.round(6).tolist(), round(a, 12)
    ([0.408248, 0.408248], 2.0)
    """
    group = _group(group, teacher.k)
    z, b = _lifted(teacher)
    y, a, _ = _mean(z[group], b[group])
    return y / math.sqrt(1 - y @ y), a


def _mean(z: NDArray, b: NDArray) -> tuple[NDArray, float, float]:
    """Weighted mean of lifts, its best outgoing weight, and what it captures.

    The captured part of the group's function norm is
    ``a**2 * 2 / pi * arcsin(y @ y)``.
    """
    y = b @ z / b.sum()
    own, cross = math.asin(min(y @ y, 1.0)), np.arcsin(np.clip(z @ y, -1, 1))
    if own == 0:
        return y, 0.0, 0.0
    a = float(b @ cross) / own
    return y, a, 2 / math.pi * a**2 * own


def _group_loss(z: NDArray, b: NDArray) -> float:
    norm = 2 / math.pi * b @ np.arcsin(np.clip(z @ z.T, -1, 1)) @ b
    return float(norm) - _mean(z, b)[2]


def warm_start(teacher: Teacher, n: int) -> WarmStart:
    r"""Copy ``n - 1`` teacher neurons and let one stand in for the others.

    The group that one neuron stands for is found by two greedy searches,
    one that begins with all neurons and takes out the dearest, one that
    begins with the cheapest pair and adds the cheapest; each is improved by
    exchanging single neurons, and the better result is taken.

    Parameters
    ----------
    teacher : Teacher
        Any erf teacher, for instance a trained network.
    n : int
        Student neurons, from 1 to ``k``.

    Returns
    -------
    WarmStart
        For a unit-orthonormal teacher the optimal copy-average point.

    Raises
    ------
    ValueError
        If ``n`` is out of range.

    Notes
    -----
    :math:`O(k^2)` losses of groups for each exchange. The copies have no error, so that the loss is that of
    the group alone.

    Source: ours; reader question 8.

    Examples
    --------
    >>> warm_start(Teacher(np.eye(4, 5), [1.0, 2.0, -3.0, 1.0]), 3).copied
    (1, 2)
    """
    n = _width(teacher, n)
    z, b = _lifted(teacher)

    @cache
    def cost(group: frozenset[int]) -> float:
        some = sorted(group)
        # ties go to the first, up to rounding
        return round(_group_loss(z[some], b[some]), _DIGITS)

    everything, size = frozenset(range(teacher.k)), teacher.k - n + 1
    groups = [_shrunk(everything, size, cost), _grown(everything, size, cost)]
    group = min((_swapped(g, everything, cost) for g in groups), key=cost)
    copied = sorted(everything - group)
    w, a = stand_in(teacher, sorted(group))
    student = Student(
        np.vstack([teacher.V[copied], w]), np.append(teacher.b[copied], a)
    )
    loss = population_loss(student.W, student.a, teacher)
    return WarmStart(student, tuple(copied), float(loss))


_DIGITS = 10

Group = frozenset[int]
Cost = Callable[[Group], float]


def _shrunk(group: Group, size: int, cost: Cost) -> Group:
    """Take out the neuron whose removal helps most, again and again."""
    while len(group) > size:
        group = min((group - {j} for j in sorted(group)), key=cost)
    return group


def _grown(everything: Group, size: int, cost: Cost) -> Group:
    """Begin with the cheapest pair and add the cheapest neuron."""
    pairs = map(frozenset, combinations(sorted(everything), min(size, 2)))
    group = min(pairs, key=cost)
    while len(group) < size:
        rest = sorted(everything - group)
        group = min((group | {j} for j in rest), key=cost)
    return group


def _swapped(group: Group, everything: Group, cost: Cost) -> Group:
    """Exchange one neuron of the group for a copied one while that helps."""
    while True:
        swaps = [
            group - {i} | {j}
            for i in sorted(group)
            for j in sorted(everything - group)
        ]
        best = min(swaps, key=cost, default=group)
        if cost(best) >= cost(group):
            return group
        group = best


def copy_start(teacher: Teacher, n: int) -> WarmStart:
    """Copy the ``n`` loudest teacher neurons and ignore the others.

    Parameters
    ----------
    teacher : Teacher
    n : int
        Student neurons, from 1 to ``k``.

    Returns
    -------
    WarmStart
        Loudest: largest contribution :math:`b_j^2\\,\\mathbb E[\\sigma^2]`;
        of equals the first.

    Raises
    ------
    ValueError
        If ``n`` is out of range.

    Notes
    -----
    Source: ours; the n-copy point of Simsek et al. (2023), section 4.

    Examples
    --------
    >>> copy_start(Teacher.orthonormal(5), 2).copied
    (0, 1)
    """
    n = _width(teacher, n)
    z, b = _lifted(teacher)
    loud = b**2 * np.arcsin(np.clip((z**2).sum(axis=1), 0, 1))
    copied = np.sort(np.argsort(-np.round(loud, _DIGITS), kind="stable")[:n])
    student = Student(teacher.V[copied], teacher.b[copied])
    loss = population_loss(student.W, student.a, teacher)
    return WarmStart(student, tuple(copied.tolist()), float(loss))


def trained_teacher(kind: str, k: int, rng: Seed) -> Teacher:
    r"""Draw a teacher that is as unlike the theory's as a trained network.

    Parameters
    ----------
    kind : {"orthonormal", "uneven", "crooked"}
        "uneven": orthonormal with :math:`b_j=e^{\xi_j/4}`; "crooked": in
        addition norms :math:`e^{\xi/4}` and directions perturbed by Gaussian
        vectors of norm about one quarter. All :math:`\xi` standard Gaussian.
    k : int
        Neurons, 1 or more; the input dimension is ``k + 1``.
    rng : numpy.random.Generator or int

    Returns
    -------
    Teacher

    Raises
    ------
    ValueError
        If ``kind`` is unknown or ``k`` out of range.

    Notes
    -----
    Source: ours.

    Examples
    --------
    >>> trained_teacher("uneven", 3, 0).b.round(2).tolist()
    [1.03, 0.97, 1.17]
    """
    if kind not in TEACHERS:
        raise ValueError(f"kind must be one of {TEACHERS}, got {kind!r}")
    plain, rng = Teacher.orthonormal(k), as_generator(rng)
    if kind == "orthonormal":
        return plain
    b = np.exp(rng.standard_normal(k) / 4)
    if kind == "uneven":
        return Teacher(plain.V, b)
    noise = rng.standard_normal(plain.V.shape) / math.sqrt(plain.d)
    V = plain.V + noise / 4
    V *= (np.exp(rng.standard_normal(k) / 4) / np.linalg.norm(V, axis=1))[
        :, None
    ]
    return Teacher(V, b)


def time_to(times: ArrayLike, losses: ArrayLike, level: float) -> float:
    """Find when a falling loss first reaches a level.

    Parameters
    ----------
    times, losses : array_like, shape (T,)
        Increasing times and the loss at each.
    level : float

    Returns
    -------
    float
        The first of the times at which the loss is at most ``level``;
        ``inf`` if it never is.

    Raises
    ------
    ValueError
        If the shapes differ or are empty.

    Notes
    -----
    Source: ours.

    Examples
    --------
    >>> time_to([0, 1, 2], [3.0, 2.0, 1.0], 2.5)
    1.0
    """
    times, losses = np.asarray(times, float), np.asarray(losses, float)
    if times.shape != losses.shape or times.ndim != 1 or times.size == 0:
        raise ValueError(
            "times and losses must be rows of one length, got shapes "
            f"{times.shape} and {losses.shape}"
        )
    below = np.flatnonzero(losses <= level)
    return float(times[below[0]]) if below.size else math.inf


def _start(kind: str, teacher: Teacher, n: int, rng) -> Student:
    if kind == "random":
        return glorot_normal(rng, n, teacher.d)
    if kind not in STARTS:
        raise ValueError(f"start must be one of {STARTS}, got {kind!r}")
    made = warm_start if kind == "copy_average" else copy_start
    return made(teacher, n).student


def run_distillation(
    teacher: str,
    k: int,
    n: int,
    start: str,
    seed: Seed,
    noise: float = 1 / 1000,
    t_max: float = 1e7,
) -> dict[str, object]:
    r"""Distil one teacher into one student: a task of a sweep.

    Parameters
    ----------
    teacher : {"orthonormal", "uneven", "crooked"}
        As in :func:`trained_teacher`.
    k, n : int
        Teacher and student neurons.
    start : {"copy_average", "n_copy", "random"}
        :func:`warm_start` or :func:`copy_start` plus noise, or Glorot.
    seed : int
        Seed of teacher, noise and random start; the same teacher for all
        starts.
    noise : float, default 1/1000
        Standard deviation of the noise on every weight of a warm start.
    t_max : float

    Returns
    -------
    dict
        ``first`` (loss at the start), ``loss``, ``label``, ``gradient``,
        ``lowest`` (Hessian eigenvalue), ``status``, ``time`` (to rest) and
        ``near`` (time until the loss is within one per cent of its end;
        0 if it is so from the start).

    Raises
    ------
    ValueError
        If an argument is out of range.

    Notes
    -----
    Source: ours; reader question 8.

    Examples
    --------
    >>> row = run_distillation("orthonormal", 4, 2, "copy_average", seed=0)
    >>> row["label"], row["near"]
    ('optimal_ca', 0.0)
    """
    rng = as_generator(seed)
    target = trained_teacher(teacher, k, rng)
    first = _start(start, target, n, rng)
    if start != "random":
        W = first.W + noise * rng.standard_normal(first.W.shape)
        first = Student(W, first.a + noise * rng.standard_normal(n))
    times = np.concatenate([[0.0], np.geomspace(1 / 10, t_max, _TIMES)])
    flow = gradient_flow(first, target, t_max=t_max, times=times)
    losses = population_loss(*unpack(flow.path, n), target)
    return {
        "first": float(losses[0]),
        "loss": flow.loss,
        "label": classify_solution(flow.student, target).label,
        "gradient": flow.gradient,
        "lowest": flow.smallest_eigenvalue,
        "status": flow.status,
        "time": flow.time,
        "near": time_to(flow.times, losses, (1 + 1 / 100) * flow.loss),
    }


_TIMES = 321  # forty a decade
