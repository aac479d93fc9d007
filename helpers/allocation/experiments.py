"""Points of recurrent match curves: one configuration, one point.

A task of :mod:`helpers.sweep`: plain values in, a mapping of numbers, texts
and lists out. Teacher, student, inputs and placement are drawn anew in each
trial, so that no curve depends on one lucky mask.
"""

from __future__ import annotations

import numpy as np

from helpers.allocation.allocations import (
    Allocation,
    DoesNotFit,
    entry_allocation,
    row_allocation,
    stack_allocations,
)
from helpers.allocation.homotopy import count_solutions
from helpers.allocation.jacobians import lrnn_jacobian
from helpers.allocation.levenberg import (
    draw_starts,
    first_match,
    solve_recurrent,
)
from helpers.allocation.lift import linear_core_solve
from helpers.allocation.matching import (
    LARGEST_EXACT,
    Problems,
    recurrent_problems,
)
from helpers.allocation.networks import LinearRNN
from helpers.allocation.quadrics import lrnn_quadrics
from helpers.allocation.ranks import check_within_ceiling, generic_rank
from helpers.core.checks import check_sizes
from helpers.core.randomness import spawn

__all__ = ["first_hits", "has_linear_core", "match_point", "point_row"]


def first_hits(problems: Problems, allocation: Allocation, starts):
    """First start from which each problem is matched.

    Parameters
    ----------
    problems : Problems
    allocation : Allocation
        ``(K, p)``.
    starts : array_like (K, S, p)

    Returns
    -------
    numpy.ndarray of int (K,)
        From 1; 0 if none of the starts ends in a match.

    Raises
    ------
    ValueError
        As :func:`~helpers.allocation.levenberg.solve_recurrent`.

    Notes
    -----
    A problem that is matched is not tried again. Source: ours.

    Examples
    --------
    Two steps make a linear system: the first start is enough.

    >>> draws = recurrent_problems(3, 4, 1, 1, 2, 1, 0)
    >>> chosen = stack_allocations([([0], [1])] * 3)
    >>> first_hits(draws, chosen, draw_starts(3, 2, 1, 1)).tolist()
    [1, 1, 1]
    """
    student, X, Y = problems

    def solve(left, begin):
        return solve_recurrent(
            LinearRNN(*(M[left] for M in student)),
            X[left],
            Y[left],
            Allocation(*(part[left] for part in allocation)),
            begin,
        ).matched

    return first_match(starts, solve)


def has_linear_core(
    n: int, b: int, d: int, T: int, m: int, p: int, k: int
) -> bool:
    """Whether ``p`` weights spread evenly over ``k`` rows are linear inside.

    Parameters
    ----------
    n, b, d, T, m, p, k : int
        Neurons, inputs, outputs, steps, examples, weights, rows.

    Notes
    -----
    Then a match exists with probability one. Source: ours (section 2.9 of
    the reconstruction).

    Examples
    --------
    >>> has_linear_core(16, 4, 4, 3, 4, 16, 2)
    True
    >>> has_linear_core(16, 4, 4, 3, 4, 16, 4)
    False
    """
    return (
        k * (T - 1) == d
        and p == k * m * (T - 1)
        and b >= m
        and n >= max(d, m * (T - 1))
    )


def match_point(
    n: int,
    b: int,
    d: int,
    T: int,
    m: int,
    p: int,
    k: int,
    trials: int,
    seed: int,
    starts: int = 24,
    exact: bool = True,
) -> dict:
    """One point of a match curve, and what is exactly known of it.

    Parameters
    ----------
    n, b, d, T, m : int
        Neurons, inputs, outputs, steps, examples.
    p : int
        Weights of ``W`` that learn.
    k : int
        Rows over which they are spread, as evenly as possible, with balanced
        columns; 0 for entries anywhere.
    trials : int
        Independent draws of everything.
    seed : int
    starts : int
        Of Levenberg-Marquardt for each draw.
    exact : bool
        Also by an exact method, where there is one.

    Returns
    -------
    dict
        ``fits``: whether there is room for the weights, and if not,
        ``drawn`` and all counts are 0 and mean nothing. ``rank_full`` and
        ``hits``: draws with a full rank, and matched by the optimiser, which
        is a lower bound. ``after``: hits after 1, 2, ... starts. ``method``:
        the exact method, or empty. ``exact_hits``: matches that exist by
        it, ``confirmed``: those of them for which a solution was computed
        to the tolerance of a match. ``missed``: those that the optimiser did
        not find. ``unsound``: matches of the optimiser that the exact method
        denies.

    Raises
    ------
    ValueError
        If a size is not positive, ``m`` exceeds ``(T - 1) b``, there are
        fewer weights than rows, or ``trials`` or ``starts`` is not positive.

    Notes
    -----
    Exact are three steps with ``p = m d`` at most 6, by all complex
    solutions (about one path in a hundred is lost), and the linear core,
    where full rank decides and linear systems confirm it, except where they
    are too ill-conditioned. Draws of deficient rank are tried like all
    others. Source: ours (F5, F6, F11 and section 2.16 of
    the reconstruction).

    Examples
    --------
    >>> point = match_point(8, 2, 2, 3, 2, p=4, k=1, trials=5, seed=0)
    >>> point["fits"], point["rank_full"], point["exact_hits"]
    (1, 5, 5)
    >>> match_point(8, 2, 2, 3, 2, p=9, k=1, trials=5, seed=0)["fits"]
    0
    """
    check_sizes(n=n, d=d, trials=trials, starts=starts)
    check_within_ceiling(b, T, m)
    draws, places, moves, begins, paths = spawn(seed, 5)
    try:
        chosen = stack_allocations(
            row_allocation((n, n), k, p, r)
            if k
            else entry_allocation((n, n), p, r)
            for r in places.spawn(trials)
        )
    except DoesNotFit:
        return _row(0, np.zeros(0, bool), np.zeros(0, int), starts)
    problems = recurrent_problems(trials, n, b, d, T, m, draws)
    first = first_hits(
        problems, chosen, draw_starts(trials, starts, p, begins)
    )
    moved = LinearRNN(
        problems.student.B,
        moves.normal(size=(trials, n, n)) / n**0.5,
        problems.student.D,
    )
    full = generic_rank(lrnn_jacobian(moved, problems.X, chosen)).rank == m * d
    row = _row(1, full, first, starts)
    truth = None
    if exact and k and has_linear_core(n, b, d, T, m, p, k):
        row["method"] = "linear core"
        truth = full
        row["confirmed"] = int(_by_core(problems, chosen).sum())
    elif exact and T == 3 and p == m * d <= LARGEST_EXACT:
        row["method"] = "all complex solutions"
        forms = lrnn_quadrics(*problems, chosen).homogeneous()
        truth = full & (count_solutions(forms, paths).real > 0)
        row["confirmed"] = int(truth.sum())
    if truth is not None:
        row["exact_hits"] = int(truth.sum())
        row["missed"] = int((truth & (first == 0)).sum())
        row["unsound"] = int((~truth & (first > 0)).sum())
    return row


def point_row(fits: int, full, first, starts: int) -> dict:
    """The columns that all tables of match curves share.

    Parameters
    ----------
    fits : int
        1 if there is room for the weights.
    full : ndarray of bool (K,)
        Draws of full rank.
    first : ndarray of int (K,)
        As :func:`~helpers.allocation.levenberg.first_match`.
    starts : int

    Returns
    -------
    dict
        See :func:`match_point`; nothing is known exactly yet.

    Raises
    ------
    Nothing.

    Notes
    -----
    Source: ours.

    Examples
    --------
    >>> point_row(1, np.ones(2, bool), np.array([2, 0]), 2)["after"]
    [0, 1]
    """
    return {
        "fits": fits,
        "drawn": int(first.size),
        "rank_full": int(full.sum()),
        "hits": int((first > 0).sum()),
        "after": [
            int(((first > 0) & (first <= s)).sum())
            for s in range(1, starts + 1)
        ],
        "method": "",
        "exact_hits": 0,
        "missed": 0,
        "unsound": 0,
    }


def _row(*known) -> dict:
    return point_row(*known) | {"confirmed": 0}


def _by_core(problems: Problems, chosen: Allocation) -> np.ndarray:
    """Matches by linear systems, refined."""
    student, X, Y = problems
    w = [
        linear_core_solve(
            LinearRNN(*(M[i] for M in student)),
            X[i],
            Y[i],
            Allocation(chosen.rows[i], chosen.cols[i]),
        ).w
        for i in range(len(Y))
    ]
    return solve_recurrent(*problems, chosen, np.stack(w)[:, None]).matched
