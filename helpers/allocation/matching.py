"""Match probabilities of recurrent allocations, exact where that is possible.

The cheapest method that settles a batch is chosen: rank; a linear system; one
linear system a row; a polynomial in one variable; all complex solutions of a
small quadratic system. What none of these settles goes to Levenberg-Marquardt
with many starts, and the answer is then a lower bound, and says so.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from helpers.allocation.allocations import (
    Allocation,
    check_allocation,
    stack_allocations,
    with_entries,
)
from helpers.allocation.homotopy import count_solutions
from helpers.allocation.jacobians import lrnn_jacobian
from helpers.allocation.levenberg import draw_starts, solve_recurrent
from helpers.allocation.linear_systems import (
    affine_residual,
    decoder_system,
    encoder_system,
)
from helpers.allocation.networks import LinearRNN, lrnn_forward, sample_lrnn
from helpers.allocation.quadrics import (
    lrnn_quadrics,
    polynomial_degree,
    real_root_counts,
    single_weight_polynomial,
)
from helpers.allocation.ranks import generic_rank
from helpers.core.checks import check_sizes
from helpers.core.randomness import Seed, as_generator
from helpers.core.statistics import wilson_interval
from helpers.core.tolerances import MATCHED_RELATIVE, ROUNDING

LARGEST_EXACT = 6
AFFINE = {"encoder": encoder_system, "decoder": decoder_system}


class Problems(NamedTuple):
    """Students, inputs and labels of independent draws."""

    student: LinearRNN
    X: np.ndarray
    Y: np.ndarray


class MatchResult(NamedTuple):
    """A match probability and how it was found.

    ``mp`` is the fraction of matches, ``low`` and ``high`` its Wilson
    interval, ``rank_full`` the fraction of draws whose Jacobian has full
    rank. If ``exact`` is false, ``mp`` is a lower bound: the optimiser may
    have missed matches.
    """

    mp: float
    low: float
    high: float
    trials: int
    rank_full: float
    exact: bool
    method: str


def match_result(outcome, full, exact: bool, method: str) -> MatchResult:
    """A match probability with its Wilson interval.

    Parameters
    ----------
    outcome, full : ndarray of bool (K,)
        Whether a draw matches, and whether its rank is full.
    exact : bool
    method : str

    Returns
    -------
    MatchResult

    Raises
    ------
    ValueError
        If there is no draw.

    Notes
    -----
    Source: ours.

    Examples
    --------
    >>> match_result(np.array([True, False]), np.ones(2, bool), True, "x").mp
    0.5
    """
    K = outcome.size
    low, high = wilson_interval(int(outcome.sum()), K)
    return MatchResult(
        float(outcome.mean()),
        float(low),
        float(high),
        K,
        float(full.mean()),
        exact,
        method,
    )


def recurrent_problems(
    K: int,
    n: int,
    b: int,
    d: int,
    T: int,
    m: int,
    rng: Seed,
    labels: str = "teacher",
) -> Problems:
    """Independent teachers, students and inputs.

    Parameters
    ----------
    K, n, b, d, T, m : int
        Draws, neurons, inputs, outputs, steps, examples.
    rng : seed or Generator
    labels : {"teacher", "random"}
        Labels of a teacher of the same architecture, or independent ones.

    Returns
    -------
    Problems

    Raises
    ------
    ValueError
        If a size is not positive or ``labels`` is unknown.

    Notes
    -----
    Source: ours; the scales are those of
    :func:`~helpers.allocation.networks.sample_lrnn`.

    Examples
    --------
    >>> recurrent_problems(4, 6, 2, 1, 3, 2, 0).Y.shape
    (4, 1, 2)
    """
    check_sizes(K=K, n=n, b=b, d=d, T=T, m=m)
    if labels not in ("teacher", "random"):
        raise ValueError(f"labels must be teacher or random, got {labels!r}")
    rng = as_generator(rng)
    teacher = sample_lrnn(K, n, b, d, rng)
    student = sample_lrnn(K, n, b, d, rng)
    X = rng.normal(size=(K, T, b, m))
    Y = lrnn_forward(teacher, X)
    if labels == "random":
        Y = rng.normal(size=Y.shape)
    return Problems(student, X, Y)


def match_probability(
    problems: Problems,
    allocation: Allocation,
    rng: Seed,
    starts: int = 24,
    exact_only: bool = False,
    part: str = "recurrent",
) -> MatchResult:
    r"""How often entries of one matrix can be chosen to match.

    Parameters
    ----------
    problems : Problems
    allocation : Allocation
        ``(p,)`` for all, or one for each draw, ``(K, p)``. All draws must
        have the same number of learned rows for the exact short cuts.
    rng : seed or Generator
        Of paths and starts.
    starts : int
        For Levenberg-Marquardt, if it comes to that.
    exact_only : bool
        Raise instead of falling back on the optimiser.
    part : {"recurrent", "encoder", "decoder"}
        The matrix that the entries belong to: ``W``, ``B`` or ``D``.

    Returns
    -------
    MatchResult

    Raises
    ------
    ValueError
        If shapes do not fit, ``part`` is unknown, or no exact method applies
        and one was asked for.

    Notes
    -----
    Encoder and decoder are linear: least squares decide each draw, and
    ``rank_full`` counts draws whose rank is ``d min(m, T b)``. For ``W``,
    draws with a rank-deficient Jacobian do not match, with probability one,
    if the labels have a density. Beyond ``m = (T - 1) b`` every recurrent
    allocation is such. Source: ours (section 5 of the reconstruction).

    Examples
    --------
    >>> draws = recurrent_problems(200, 6, 2, 1, 3, 1, 0)
    >>> found = match_probability(draws, Allocation([0], [1]), 1)
    >>> found.mp, found.exact, found.method
    (1.0, True, 'polynomial')
    """
    net, X, Y = problems
    if part in AFFINE:
        return _affine(AFFINE[part](net, X, Y, allocation), X)
    if part != "recurrent":
        raise ValueError(
            f"part must be recurrent, encoder or decoder, got {part!r}"
        )
    K, n = net.W.shape[0], net.W.shape[-1]
    rows, cols = check_allocation(allocation, (n, n))
    rows, cols = (
        np.broadcast_to(a, (K, rows.shape[-1])) for a in (rows, cols)
    )
    mine = Allocation(rows, cols)
    c = Y.shape[1] * Y.shape[2]
    J = lrnn_jacobian(_moved(net, mine, rng), X, mine)
    full = generic_rank(J).rank == c
    outcome = np.zeros(K, dtype=bool)
    if not full.any():
        return match_result(outcome, full, True, "rank")
    picked = Problems(LinearRNN(*(M[full] for M in net)), X[full], Y[full])
    part = Allocation(rows[full], cols[full])
    found = _exact(picked, part, rng)
    if found is not None:
        outcome[full], method = found
        return match_result(outcome, full, True, method)
    if exact_only:
        raise ValueError(
            "no exact method applies: T must be 2 or 3 with p = m d at most "
            f"{LARGEST_EXACT}, or p = m = d = 1, or the system linear"
        )
    first = draw_starts(int(full.sum()), starts, part.rows.shape[1], rng)
    done = solve_recurrent(*picked, part, first)
    outcome[full] = done.matched
    return match_result(outcome, full, False, "levenberg-marquardt")


class RecurrentCounts(NamedTuple):
    """Complex and real solutions of each draw, ``(K,)``, and the match
    probability with its Wilson interval."""

    complex: np.ndarray
    real: np.ndarray
    mp: float
    low: float
    high: float


def recurrent_counts(
    law, K: int, n: int, b: int, d: int, m: int, rng: Seed
) -> RecurrentCounts:
    """Solutions of random three-step matches at critical budget.

    Parameters
    ----------
    law : callable
        ``law(generator)`` draws an Allocation of :math:`p=md` entries of an
        ``n x n`` matrix; drawn anew for each problem.
    K, n, b, d, m : int
        Draws, neurons, inputs, outputs, examples.
    rng : seed or Generator

    Returns
    -------
    RecurrentCounts

    Raises
    ------
    ValueError
        If the budget is not :math:`md` or sizes do not fit.

    Notes
    -----
    Exact up to lost paths, about one draw in two hundred. Source: ours (2.11
    of the reconstruction).

    Examples
    --------
    >>> from helpers.allocation.allocations import diagonal_allocation
    >>> found = recurrent_counts(
    ...     lambda r: diagonal_allocation(6, 2, r), 20, 6, 2, 2, 1, 0
    ... )
    >>> found.complex.tolist() == [4] * 20
    True
    """
    rng = as_generator(rng)
    problems = recurrent_problems(K, n, b, d, 3, m, rng)
    chosen = stack_allocations([law(r) for r in rng.spawn(K)])
    if chosen.rows.shape[1] != m * d:
        raise ValueError(
            f"law must draw p = m d = {m * d} entries, got "
            f"{chosen.rows.shape[1]}"
        )
    forms = lrnn_quadrics(*problems, chosen).homogeneous()
    counts = count_solutions(forms, rng)
    hits = int((counts.real > 0).sum())
    low, high = wilson_interval(hits, K)
    return RecurrentCounts(
        counts.complex, counts.real, hits / K, float(low), float(high)
    )


def _affine(system, X) -> MatchResult:
    T, b, m = X.shape[-3:]
    d = system.r.shape[-1] // m
    full = generic_rank(system.M).rank == d * min(m, T * b)
    matched = affine_residual(system) < MATCHED_RELATIVE
    return match_result(matched, full, True, "linear")


def _moved(net, allocation, rng) -> LinearRNN:
    """The student at other weights, where the rank is the generic one."""
    size = allocation.rows.shape
    w = as_generator(rng).normal(size=size) / net.W.shape[-1] ** 0.5
    return LinearRNN(net.B, with_entries(net.W, allocation, w), net.D)


def _exact(problems, allocation, rng):
    """Outcome and method of full-rank draws, or None."""
    net, X, Y = problems
    T, m, d = X.shape[1], X.shape[3], Y.shape[1]
    p = allocation.rows.shape[1]
    everyone = np.ones(len(Y), dtype=bool)
    if T == 2:
        return everyone, "linear"
    if _has_linear_core(allocation, T, m, d, X.shape[2], net.W.shape[-1]):
        return everyone, "linear core"
    if p == m == d == 1:
        return _by_polynomial(problems, allocation), "polynomial"
    if T != 3:
        return None
    quadrics = lrnn_quadrics(net, X, Y, allocation)
    size = np.abs(quadrics.linear).max(axis=(1, 2))
    bent = np.abs(quadrics.Q).max(axis=(1, 2, 3)) > ROUNDING * size
    if not bent.any():
        return everyone, "linear"
    if p != m * d or p > LARGEST_EXACT:
        return None
    counts = count_solutions(quadrics.homogeneous(), rng)
    return counts.real > 0, "all complex solutions"


def _has_linear_core(allocation, T, m, d, b, n) -> bool:
    if b < m or n < max(d, m * (T - 1)):
        return False
    for rows in allocation.rows:
        _, sizes = np.unique(rows, return_counts=True)
        if sizes.size * (T - 1) != d or (sizes != m * (T - 1)).any():
            return False
    return True


def _by_polynomial(problems, allocation) -> np.ndarray:
    net, X, Y = problems
    outcome = np.zeros(len(Y), dtype=bool)
    pairs = np.column_stack([allocation.rows[:, 0], allocation.cols[:, 0]])
    for pair in np.unique(pairs, axis=0):
        here = np.flatnonzero((pairs == pair).all(axis=1))
        some = LinearRNN(*(M[here] for M in net))
        c = single_weight_polynomial(some, X[here], Y[here], tuple(pair))
        degrees = polynomial_degree(c)
        for degree in np.unique(degrees[degrees > 0]):
            of = degrees == degree
            outcome[here[of]] = real_root_counts(c[of], int(degree)) > 0
    return outcome
