"""Points of match curves with several learned factors.

Tasks of :mod:`helpers.sweep`, like
:func:`~helpers.allocation.experiments.match_point` for recurrent networks.
"""

from __future__ import annotations

import numpy as np

from helpers.allocation.allocations import (
    DoesNotFit,
    entry_allocation,
    row_allocation,
    stack_allocations,
)
from helpers.allocation.experiments import point_row
from helpers.allocation.factors import (
    LayerProblems,
    _layer_shapes,
    _some,
    first_matches,
    layer_equations,
    layer_problems,
    one_row_each_solve,
    two_layer_matches,
)
from helpers.allocation.jacobians import lffn_jacobian
from helpers.allocation.levenberg import draw_starts
from helpers.allocation.matching import LARGEST_EXACT, recurrent_problems
from helpers.allocation.mixed import mixed_equations, mixed_jacobian
from helpers.allocation.networks import sample_lffn
from helpers.allocation.ranks import generic_rank
from helpers.core.checks import check_sizes, is_whole
from helpers.core.randomness import spawn

__all__ = [
    "factors_point",
    "mixed_point",
    "stored_points",
]


def factors_point(
    widths,
    m: int,
    shares,
    rows,
    trials: int,
    seed: int,
    starts: int = 24,
    exact: bool = True,
    largest: int = LARGEST_EXACT,
) -> dict:
    """One point of a match curve of several learned layers.

    Parameters
    ----------
    widths : sequence of int
        Input, hidden layers, output.
    m : int
        Examples, at most the input width.
    shares : sequence of int
        Learned entries of each layer; 0 for a frozen one.
    rows : sequence of int
        Rows over which they are spread, as evenly as possible, with balanced
        columns; 0 for entries anywhere. Ignored where nothing learns.
    trials : int
        Independent draws of everything.
    seed : int
    starts : int
        Of Levenberg-Marquardt for each draw.
    exact : bool
        Also by exact methods, where there are any.
    largest : int
        Of the cores that are solved, as :func:`two_layer_matches`.

    Returns
    -------
    dict
        ``fits``, ``drawn``, ``rank_full``, ``hits`` (by the optimiser, a
        lower bound) and ``after``, as
        :func:`helpers.allocation.experiments.match_point`. ``method``:
        "elimination" where linear systems solve each draw of full rank,
        "linear" for one layer, where a full rank is a match,
        "complex solutions" for two layers with as many entries as equations,
        or empty. Of the draws that it decides: ``decided``, ``exact_hits``,
        ``missed`` (matches that the optimiser did not find) and ``unsound``
        (matches of the optimiser that it denies). ``confirmed``: matches
        computed by elimination to the tolerance of a match.

    Raises
    ------
    ValueError
        If arguments do not fit each other.

    Notes
    -----
    A draw of deficient rank counts as decided, with no match, and is tried
    by the optimiser like all others. Source: ours (F7 and section 2.12 of
    the reconstruction).

    Examples
    --------
    >>> point = factors_point([8, 8, 8, 2], 2, [2, 2, 0], [1, 1, 0], 5, 0)
    >>> point["method"], point["rank_full"], point["exact_hits"]
    ('elimination', 5, 5)
    """
    shapes = _layer_shapes(widths)
    d = list(widths)[-1]
    check_sizes(trials=trials, starts=starts, m=m)
    if not len(shares) == len(rows) == len(shapes) or m > list(widths)[0]:
        raise ValueError(
            f"shares and rows must have one number a layer, {len(shapes)}, "
            f"and m be at most {list(widths)[0]}"
        )
    draws, places, moves, begins, paths = spawn(seed, 5)
    try:
        chosen = [
            stack_allocations(
                row_allocation(shape, k, p, r)
                if k
                else entry_allocation(shape, p, r)
                for r in places.spawn(trials)
            )
            if p
            else None
            for shape, p, k in zip(shapes, shares, rows, strict=True)
        ]
    except DoesNotFit:
        return _point(0, np.zeros(0, bool), np.zeros(0, int), starts)
    problems = layer_problems(trials, widths, m, draws)
    made = layer_equations(problems, chosen)
    first = first_matches(made, draw_starts(trials, starts, made.p, begins))
    moved = sample_lffn(trials, widths, moves)
    J = lffn_jacobian(moved, problems.X, chosen)
    full = generic_rank(J).rank == m * d
    point = _point(1, full, first, starts)
    outcome = np.where(full, -1, 0)
    if not exact:
        return point
    learned = [(p, k) for p, k in zip(shares, rows, strict=True) if p]
    enough = all(k and p >= k * m for p, k in learned)
    if enough and sum(k for _, k in learned) == d:
        point["method"] = "elimination"
        outcome[full] = 1
        point["confirmed"] = int(_by_elimination(problems, chosen).sum())
    elif len(learned) == 1:
        point["method"] = "linear"
        outcome[full] = 1
    elif len(learned) == 2 and sum(shares) == m * d:
        point["method"] = "complex solutions"
        some = np.flatnonzero(full)
        if some.size:
            part = LayerProblems(
                [W[some] for W in problems.layers],
                problems.X[some],
                problems.Y[some],
            )
            outcome[some] = two_layer_matches(
                part, _some(chosen, some), paths, largest
            )
    else:
        return point
    known = outcome >= 0
    point["decided"] = int(known.sum())
    point["exact_hits"] = int((outcome == 1).sum())
    point["missed"] = int(((outcome == 1) & (first == 0)).sum())
    point["unsound"] = int(((outcome == 0) & (first > 0)).sum())
    return point


def stored_points(table, **fixed) -> dict:
    """Points of :func:`factors_point` in a stored table, by learned rows.

    Parameters
    ----------
    table : mapping of arrays
        With the arguments and results of the points.
    **fixed : list or number
        Arguments that the points must have.

    Returns
    -------
    dict
        Arrays of ``shares``, ``k`` (most learned rows in a layer), the
        counts, ``rate`` of matches found, and ``least`` and ``most``: between
        them is the truth in these draws, since matches found exist and draws
        decided against have none.

    Raises
    ------
    ValueError
        If there is no such point.

    Notes
    -----
    Source: ours.

    Examples
    --------
    >>> one = factors_point([8, 8, 8, 2], 2, [2, 2, 0], [1, 1, 0], 5, 0)
    >>> one |= {"widths": [8, 8, 8, 2], "shares": [2, 2, 0], "rows": [1, 1, 0]}
    >>> table = {name: [value] for name, value in one.items()}
    >>> found = stored_points(table, widths=[8, 8, 8, 2])
    >>> found["k"].tolist(), found["least"].tolist()
    ([1], [1.0])
    """
    here = [
        i
        for i in range(len(table["hits"]))
        if all(
            np.array_equal(table[name][i], value)
            for name, value in fixed.items()
        )
    ]
    if not here:
        raise ValueError(f"table has no point with {fixed}")
    here.sort(key=lambda i: max(table["rows"][i]))
    found = {
        name: np.array([int(table[name][i]) for i in here])
        for name in _point(0, np.zeros(0, bool), np.zeros(0, int), 1)
        if name not in ("after", "method")
    }
    found["shares"] = np.array([np.asarray(table["shares"][i]) for i in here])
    found["k"] = np.array([max(table["rows"][i]) for i in here])
    found["rate"] = found["hits"] / found["drawn"]
    found["least"] = (found["hits"] + found["missed"]) / found["drawn"]
    denied = found["decided"] - found["exact_hits"]
    found["most"] = 1 - denied / found["drawn"]
    return found


def mixed_point(
    n: int,
    b: int,
    d: int,
    T: int,
    m: int,
    shares,
    trials: int,
    seed: int,
    starts: int = 24,
) -> dict:
    """One point: weights shared among encoder, recurrent matrix, decoder.

    Parameters
    ----------
    n, b, d, T, m : int
        Neurons, inputs, outputs, steps, examples.
    shares : (int, int, int)
        Learned entries of ``B``, ``W``, ``D``, each spread over as many rows
        as possible with balanced columns.
    trials : int
    seed : int
    starts : int

    Returns
    -------
    dict
        ``drawn``, ``rank_full``, ``hits`` and ``after``, as
        :func:`factors_point`; ``hits`` is a lower bound unless only ``B`` or
        only ``D`` learns.

    Raises
    ------
    ValueError
        If sizes do not fit or nothing learns.

    Notes
    -----
    Source: ours (section 2.12 of the reconstruction).

    Examples
    --------
    >>> mixed_point(8, 2, 2, 3, 4, (0, 0, 8), 5, 0, 2)["hits"]
    5
    """
    check_sizes(trials=trials, starts=starts)
    if len(shares) != 3 or not all(is_whole(p) and p >= 0 for p in shares):
        raise ValueError(f"shares must be three counts, got {shares}")
    draws, places, moves, begins = spawn(seed, 4)
    problems = recurrent_problems(trials, n, b, d, T, m, draws)
    chosen = [
        stack_allocations(
            row_allocation(shape, min(shape[0], p), p, r)
            for r in places.spawn(trials)
        )
        if p
        else None
        for p, shape in zip(shares, ((n, b), (n, n), (d, n)), strict=True)
    ]
    made = mixed_equations(problems, chosen)
    first = first_matches(made, draw_starts(trials, starts, made.p, begins))
    moved = recurrent_problems(trials, n, b, d, T, m, moves).student
    J = mixed_jacobian(moved, problems.X, chosen)
    full = generic_rank(J).rank == d * min(m, T * b)
    point = _point(1, full, first, starts)
    return {
        name: point[name] for name in ("drawn", "rank_full", "hits", "after")
    }


def _by_elimination(problems, chosen) -> np.ndarray:
    """Matches by linear systems, refined by the optimiser."""
    w = [
        one_row_each_solve(
            [W[i] for W in problems.layers],
            problems.X[i],
            problems.Y[i],
            _some(chosen, i),
        ).w
        for i in range(len(problems.Y))
    ]
    flat = np.stack(
        [np.concatenate([v for v in one if v is not None]) for one in w]
    )
    return first_matches(layer_equations(problems, chosen), flat[:, None]) > 0


def _point(*known) -> dict:
    return point_row(*known) | {"decided": 0, "confirmed": 0}
