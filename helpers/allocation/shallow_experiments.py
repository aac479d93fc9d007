"""Points of match curves of shallow networks, for stored sweeps.

Teacher, student, inputs and placement are drawn anew in each trial.
"""

from __future__ import annotations

import numpy as np

from helpers.allocation.allocations import (
    Allocation,
    DoesNotFit,
    row_allocation,
    stack_allocations,
)
from helpers.allocation.experiments import point_row
from helpers.allocation.levenberg import (
    draw_starts,
    first_match,
    solve_shallow,
)
from helpers.allocation.patterns import LARGEST_PATTERNS
from helpers.allocation.shallow import (
    SLOPE,
    ShallowProblems,
    has_free_rows,
    region_rank,
    relu_enumerate_matches,
    relu_targets,
    shallow_match_probability,
    shallow_problems,
    take,
    within_range,
)
from helpers.core.checks import check_sizes
from helpers.core.randomness import spawn

__all__ = ["enumeration_point", "shallow_hits", "shallow_point"]


def shallow_hits(problems: ShallowProblems, allocation: Allocation, starts):
    """First start from which each problem is matched.

    Parameters
    ----------
    problems : ShallowProblems
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
        As :func:`~helpers.allocation.levenberg.solve_shallow`.

    Notes
    -----
    A problem that is matched is not tried again. Source: ours.

    Examples
    --------
    A linear neuron: the first start is enough.

    >>> draws = shallow_problems(3, 4, 2, 1, 1, 0, activation="linear")
    >>> chosen = stack_allocations([([0], [1])] * 3)
    >>> shallow_hits(draws, chosen, draw_starts(3, 2, 1, 1)).tolist()
    [1, 1, 1]
    """

    def solve(left, begin):
        some = take(problems, left)
        return solve_shallow(
            some.student,
            some.X,
            some.Y,
            Allocation(*(part[left] for part in allocation)),
            begin,
            problems.activation,
            SLOPE,
        ).matched

    return first_match(starts, solve)


def shallow_point(
    n: int,
    b: int,
    d: int,
    m: int,
    p: int,
    k: int,
    trials: int,
    seed: int,
    starts: int = 16,
    activation: str = "relu",
) -> dict:
    """One point of a match curve, and what is exactly known of it.

    Parameters
    ----------
    n, b, d, m : int
        Hidden neurons, inputs, outputs, examples.
    p : int
        Weights of the first layer that learn.
    k : int
        Rows over which they are spread, as evenly as possible, with balanced
        columns.
    trials : int
        Independent draws of everything.
    seed : int
    starts : int
        Of Levenberg-Marquardt for each draw.
    activation : {"relu", "leaky", "tanh", "linear"}

    Returns
    -------
    dict
        ``fits``: whether there is room for the weights; if not, the counts
        are 0 and mean nothing. ``rank_full``: draws with a full rank at one
        of eight random weights. ``allowed``: draws all of whose targets lie
        within range of the learned neurons, an upper bound of the matches.
        ``hits``, ``after``: matches by the optimiser, a lower bound, and
        those after 1, 2, ... starts. ``method``: the exact method or empty;
        ``exact_hits``: matches that exist by it; ``missed``: those that the
        optimiser did not find; ``unsound``: matches of the optimiser in draws
        that are known to have none.

    Raises
    ------
    ValueError
        If a size is not positive, there are fewer weights than rows, or
        ``activation`` is unknown.

    Notes
    -----
    Draws out of range are tried by the optimiser like all others. Exact are
    free rows, points without any allowed draw, the identity, and ReLU or
    leaky ReLU by enumeration with ``p = m d`` and ``k m`` at most 18. Source:
    ours (F8 and R4 of the reconstruction).

    Examples
    --------
    >>> point = shallow_point(8, 8, 2, 2, p=8, k=1, trials=5, seed=0, starts=2)
    >>> [point[c] for c in ("fits", "method", "exact_hits", "hits")]
    [1, 'range', 0, 0]
    >>> shallow_point(8, 8, 2, 2, p=9, k=1, trials=5, seed=0)["fits"]
    0
    """
    check_sizes(n=n, b=b, d=d, m=m, trials=trials, starts=starts)
    draws, places, regions, begins = spawn(seed, 4)
    problems = shallow_problems(
        trials, n, b, d, m, draws, activation=activation
    )
    try:
        chosen = stack_allocations(
            row_allocation((n, b), k, p, r) for r in places.spawn(trials)
        )
    except DoesNotFit:
        none = np.zeros(0, bool)
        return point_row(0, none, none, starts) | {"allowed": 0}
    first = shallow_hits(
        problems, chosen, draw_starts(trials, starts, p, begins)
    )
    left = relu_targets(problems, chosen)
    allowed = within_range(left, activation).all(axis=1)
    truth, method = _truth(problems, chosen, left, allowed)
    possible = allowed if truth is None else truth
    full = region_rank(problems, chosen, regions) == m * d
    row = point_row(1, full, first, starts)
    row |= {
        "allowed": int(allowed.sum()),
        "method": method,
        "unsound": int((~possible & (first > 0)).sum()),
    }
    if truth is not None:
        row["exact_hits"] = int(truth.sum())
        row["missed"] = int((truth & (first == 0)).sum())
    return row


def enumeration_point(
    n: int,
    b: int,
    d: int,
    m: int,
    k: int,
    trials: int,
    seed: int,
    activation: str = "relu",
) -> dict:
    """All isolated matches of problems with as many weights as equations.

    Parameters
    ----------
    n, b, d, m : int
        Hidden neurons, inputs, outputs, examples.
    k : int
        Rows over which the ``m d`` weights are spread; ``k m`` at most 18.
    trials : int
    seed : int
    activation : {"relu", "leaky"}

    Returns
    -------
    dict
        ``silent``, draws with a target of exactly zero, where matches are not
        isolated and which are left out; ``drawn``, the others; ``matched``,
        those with a match; ``solutions``, their total; ``most``, the largest
        number in one draw; ``allowed``, draws whose targets are in range.

    Raises
    ------
    ValueError
        As :func:`~helpers.allocation.shallow.relu_enumerate_matches`, or
        :class:`~helpers.allocation.allocations.DoesNotFit`.

    Notes
    -----
    Source: ours (F9 of the reconstruction).

    Examples
    --------
    >>> enumeration_point(8, 6, 2, 2, k=1, trials=5, seed=0)["matched"]
    0
    """
    check_sizes(trials=trials)
    draws, places = spawn(seed, 2)
    problems = shallow_problems(
        trials, n, b, d, m, draws, activation=activation
    )
    chosen = stack_allocations(
        row_allocation((n, b), k, m * d, r) for r in places.spawn(trials)
    )
    left = relu_targets(problems, chosen)
    silent = (left.t == 0).all(axis=1).any(axis=1)
    allowed = within_range(left, activation).all(axis=1) & ~silent
    counts = np.zeros(trials, dtype=int)
    if allowed.any():
        counts[allowed] = relu_enumerate_matches(
            take(problems, allowed),
            Allocation(*(a[allowed] for a in chosen)),
        )
    return {
        "silent": int(silent.sum()),
        "drawn": int((~silent).sum()),
        "matched": int((counts > 0).sum()),
        "solutions": int(counts.sum()),
        "most": int(counts.max()),
        "allowed": int(allowed.sum()),
    }


def _truth(problems, chosen, left, allowed):
    """Which draws match, or None, and the method that knows it."""
    if not allowed.any() or has_free_rows(problems.X, chosen):
        return allowed, "range"
    activation, c = problems.activation, problems.Y[0].size
    p, m = chosen.rows.shape[1], problems.X.shape[-1]
    if activation == "linear":
        truth = [
            shallow_match_probability(
                take(problems, [i]),
                Allocation(*(a[i : i + 1] for a in chosen)),
                0,
                exact_only=True,
            ).mp
            > 0
            for i in range(len(allowed))
        ]
        return np.array(truth), "linear"
    small = p == c and left.rows.shape[1] * m <= LARGEST_PATTERNS
    small = small and m <= problems.X.shape[1]
    silent = (left.t == 0).all(axis=1).any()
    if activation in ("relu", "leaky") and small and not silent:
        truth = np.zeros(len(allowed), dtype=bool)
        truth[allowed] = (
            relu_enumerate_matches(
                take(problems, allowed),
                Allocation(*(a[allowed] for a in chosen)),
            )
            > 0
        )
        return truth, "enumeration"
    return None, ""
