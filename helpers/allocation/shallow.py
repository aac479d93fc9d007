r"""Shallow networks whose first layer learns in a few rows.

The readout ``D`` is frozen. What the frozen neurons leave of the labels,
:math:`t=Y-D_F\sigma(B_FX)`, is for the learned ones:
:math:`t=D_S\,\sigma(Z)`, where :math:`Z` are their pre-activations. So the
*range* of the activation decides first; which :math:`Z` a row can have, second.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy.optimize import linprog, nnls

from helpers.allocation.allocations import (
    Allocation,
    check_allocation,
    with_entries,
)
from helpers.allocation.cones import cone_membership, zonotope_membership
from helpers.allocation.jacobians import relu_jacobian
from helpers.allocation.levenberg import (
    ACTIVATIONS,
    draw_starts,
    solve_shallow,
)
from helpers.allocation.linear_systems import affine_residual, layer_system
from helpers.allocation.matching import MatchResult, match_result
from helpers.allocation.networks import ShallowReLU, relu_forward, sample_relu
from helpers.allocation.patterns import LARGEST_PATTERNS, enumerate_matches
from helpers.allocation.ranks import generic_rank
from helpers.core.checks import check_finite, check_sizes
from helpers.core.randomness import Seed, as_generator
from helpers.core.tolerances import MATCHED_RELATIVE

SLOPE = 0.1
"""Of leaky ReLU on the negative side."""


class ShallowProblems(NamedTuple):
    """Students ``B (K, n, b)``, ``D (K, d, n)``, inputs ``X (K, b, m)`` and
    labels ``Y (K, d, m)`` of independent draws, and their activation."""

    student: ShallowReLU
    X: np.ndarray
    Y: np.ndarray
    activation: str = "relu"


class ReluTargets(NamedTuple):
    """What is left to the learned neurons.

    ``t (K, d, m)``; ``D_S (K, d, k)``, their columns of the readout;
    ``offset (K, k, m)``, pre-activations with their learned entries at zero;
    ``rows (K, k)``, which neurons they are.
    """

    t: np.ndarray
    D_S: np.ndarray
    offset: np.ndarray
    rows: np.ndarray


class FreeMatch(NamedTuple):
    """``matched (K,)``; relative ``residual (K,)`` of the weights
    ``w (K, p)``, infinite and NaN where nothing matches."""

    matched: np.ndarray
    residual: np.ndarray
    w: np.ndarray


def activate(z, activation: str = "relu") -> np.ndarray:
    r"""One of four activations, elementwise.

    Parameters
    ----------
    z : array_like
    activation : {"relu", "leaky", "tanh", "linear"}
        Leaky ReLU has slope 0.1 on the negative side.

    Raises
    ------
    ValueError
        If the activation is unknown.

    Notes
    -----
    Source: ours.

    Examples
    --------
    >>> activate([-2.0, 3.0], "leaky").tolist()
    [-0.2, 3.0]
    """
    z = np.asarray(z, dtype=float)
    _check_activation(activation)
    if activation == "tanh":
        return np.tanh(z)
    if activation == "linear":
        return z
    return np.where(z > 0, z, (SLOPE if activation == "leaky" else 0.0) * z)


def shallow_problems(
    K: int,
    n: int,
    b: int,
    d: int,
    m: int,
    rng: Seed,
    labels: str = "teacher",
    activation: str = "relu",
) -> ShallowProblems:
    """Independent teachers, students and inputs.

    Parameters
    ----------
    K, n, b, d, m : int
        Draws, hidden neurons, inputs, outputs, examples.
    rng : seed or Generator
    labels : {"teacher", "random"}
        Labels of a teacher of the same architecture, or independent standard
        normal ones.
    activation : {"relu", "leaky", "tanh", "linear"}
        Of teacher and student.

    Returns
    -------
    ShallowProblems

    Raises
    ------
    ValueError
        If a size is not positive, or a word is unknown.

    Notes
    -----
    Source: ours; the scales are those of
    :func:`~helpers.allocation.networks.sample_relu`.

    Examples
    --------
    >>> shallow_problems(4, 6, 3, 2, 5, rng=0).Y.shape
    (4, 2, 5)
    """
    check_sizes(K=K, n=n, b=b, d=d, m=m)
    _check_activation(activation)
    if labels not in ("teacher", "random"):
        raise ValueError(f"labels must be teacher or random, got {labels!r}")
    rng = as_generator(rng)
    teacher, student = (
        sample_relu(K, n, b, d, rng),
        sample_relu(K, n, b, d, rng),
    )
    X = rng.normal(size=(K, b, m))
    Y = relu_forward(teacher, X, lambda z: activate(z, activation))
    if labels == "random":
        Y = rng.normal(size=Y.shape)
    return ShallowProblems(student, X, Y, activation)


def relu_targets(
    problems: ShallowProblems, allocation: Allocation
) -> ReluTargets:
    r"""What the frozen neurons leave to the learned ones.

    A neuron with at least one learnable entry counts as learned, and its
    frozen entries move its pre-activation by ``offset``. With
    :math:`F` the other neurons,
    :math:`t=Y-D_F\,\sigma(B_FX)`.

    Parameters
    ----------
    problems : ShallowProblems
    allocation : Allocation
        ``(p,)`` for all draws, or ``(K, p)``, with equally many learned rows.

    Returns
    -------
    ReluTargets

    Raises
    ------
    ValueError
        If shapes do not fit, an entry is not finite, or draws differ in the
        number of learned rows.

    Notes
    -----
    The values of the learnable entries do not matter. Source: ours (2.13 of
    the reconstruction).

    Examples
    --------
    Two neurons; the second is frozen and says 1 where the label is 3.

    >>> student = ShallowReLU([[[9.0], [1.0]]], [[[5.0, 1.0]]])
    >>> left = relu_targets(
    ...     ShallowProblems(student, [[[1.0]]], [[[3.0]]]), Allocation([0], [0])
    ... )
    >>> left.t.item(), left.D_S.item(), left.offset.item()
    (2.0, 5.0, 0.0)
    """
    B, D, X, Y, mine, activation = _checked(problems, allocation)
    per_draw = [np.unique(rows) for rows in mine.rows]
    if len({rows.size for rows in per_draw}) != 1:
        raise ValueError(
            "allocation must have one number of learned rows in all draws, got "
            f"{sorted({rows.size for rows in per_draw})}"
        )
    rows = np.stack(per_draw)
    z = with_entries(B, mine, np.zeros(mine.rows.shape)) @ X
    at = np.arange(len(B))[:, None]
    frozen = D.copy()
    frozen[at, :, rows] = 0
    return ReluTargets(
        Y - frozen @ activate(z, activation),
        np.take_along_axis(D, rows[:, None, :], axis=2),
        z[at, rows],
        rows,
    )


def within_range(left: ReluTargets, activation: str = "relu") -> np.ndarray:
    r"""Whether each target is :math:`D_S r` with values of the activation.

    Necessary for a match, whatever the budget; sufficient with free rows.

    Parameters
    ----------
    left : ReluTargets
    activation : {"relu", "leaky", "tanh", "linear"}
        Its range: non-negative numbers, all numbers, or those between
        :math:`-1` and 1.

    Returns
    -------
    numpy.ndarray of bool (K, m)

    Raises
    ------
    ValueError
        If the activation is unknown.

    Notes
    -----
    Source: ours (2.13 and 2.14 of the reconstruction).

    Examples
    --------
    >>> left = ReluTargets([[[2.0]]], [[[-5.0]]], [[[0.0]]], [[0]])
    >>> {name: bool(within_range(left, name).item())
    ...  for name in ("relu", "leaky", "tanh")}
    {'relu': False, 'leaky': True, 'tanh': True}
    """
    _check_activation(activation)
    tests = {"relu": cone_membership, "tanh": zonotope_membership}
    test = tests.get(activation, _in_span)
    return np.stack(
        [test(D, t) for D, t in zip(left.D_S, left.t, strict=True)]
    )


def has_free_rows(X, allocation: Allocation) -> bool:
    """Whether each learned row can have any pre-activations.

    Parameters
    ----------
    X : array_like (K, b, m)
    allocation : Allocation
        ``(p,)`` or ``(K, p)``.

    Returns
    -------
    bool
        True if in each draw and each learned row the inputs of the learnable
        entries, ``(q_j, m)``, have rank ``m``.

    Notes
    -----
    Source: ours (2.13 of the reconstruction).

    Examples
    --------
    >>> X = np.random.default_rng(0).normal(size=(3, 4, 2))
    >>> has_free_rows(X, Allocation([0, 0, 1, 1], [0, 1, 2, 3]))
    True
    >>> has_free_rows(X, Allocation([0, 0, 1], [0, 1, 2]))
    False
    """
    (X,) = check_finite(X=X)
    K, b, m = X.shape
    rows, cols = (np.broadcast_to(a, (K, np.shape(a)[-1])) for a in allocation)
    for r, c, x in zip(rows, cols, X, strict=True):
        for j in np.unique(r):
            inputs = x[c[r == j]]
            if len(inputs) < m or generic_rank(inputs).rank < m:
                return False
    return True


def free_rows_solve(
    problems: ShallowProblems, allocation: Allocation
) -> FreeMatch:
    r"""A match in closed form, where every learned row is free.

    Write each :math:`t_i=D_Sr_i` with values :math:`r_i` of the activation,
    choose pre-activations with these values, and solve one linear system a
    row.

    Parameters
    ----------
    problems : ShallowProblems
    allocation : Allocation
        Each learned row with inputs of rank ``m``.

    Returns
    -------
    FreeMatch

    Raises
    ------
    ValueError
        If a row is not free or shapes do not fit.

    Notes
    -----
    ReLU by non-negative least squares, tanh by a linear program for the
    smallest largest value, the others by least squares. Source: ours (2.13
    and 2.14 of the reconstruction).

    Examples
    --------
    >>> draws = shallow_problems(20, 6, 4, 1, 2, rng=0)
    >>> done = free_rows_solve(draws, Allocation([0, 0], [0, 1]))
    >>> bool((done.residual[done.matched] < 1e-8).all())
    True
    >>> bool(0 < done.matched.sum() < 20)
    True
    """
    B, D, X, Y, mine, activation = _checked(problems, allocation)
    if not has_free_rows(X, mine):
        raise ValueError(
            "allocation must give every learned row inputs of rank m = "
            f"{X.shape[-1]}"
        )
    left = relu_targets(problems, allocation)
    matched = within_range(left, activation).all(axis=1)
    w = np.full(mine.rows.shape, np.nan)
    residual = np.full(len(B), np.inf)
    for i in np.flatnonzero(matched):
        pairs = [_values(left.D_S[i], t, activation) for t in left.t[i].T]
        z = np.stack(pairs, axis=1) - left.offset[i]
        for j, row in enumerate(left.rows[i]):
            here = mine.rows[i] == row
            inputs = X[i][mine.cols[i][here]]
            w[i, here] = np.linalg.lstsq(inputs.T, z[j], rcond=None)[0]
        now = ShallowReLU(
            with_entries(B[i], Allocation(*(a[i] for a in mine)), w[i]), D[i]
        )
        gap = relu_forward(now, X[i], lambda v: activate(v, activation)) - Y[i]
        size = np.linalg.norm(Y[i])
        residual[i] = np.linalg.norm(gap) / (size if size > 0 else 1.0)
    return FreeMatch(matched, residual, w)


def bijective_activation_solve(
    problems: ShallowProblems, allocation: Allocation
) -> FreeMatch:
    r"""The match that a bijective activation always has in ``d`` free rows.

    Solve :math:`D_Sr=t`, invert the activation, and solve an
    :math:`m\times m` system a row.

    Parameters
    ----------
    problems : ShallowProblems
        With activation "leaky" or "linear".
    allocation : Allocation
        Exactly ``m`` entries in each of ``d`` rows.

    Returns
    -------
    FreeMatch

    Raises
    ------
    ValueError
        If the activation is no bijection of the line, the allocation has
        another form, or shapes do not fit.

    Notes
    -----
    Source: ours (2.14 of the reconstruction).

    Examples
    --------
    >>> draws = shallow_problems(5, 6, 4, 1, 2, rng=0, activation="leaky")
    >>> done = bijective_activation_solve(draws, Allocation([3, 3], [0, 1]))
    >>> bool(done.matched.all()), bool((done.residual < 1e-8).all())
    (True, True)
    """
    _, D, X, _, mine, activation = _checked(problems, allocation)
    if activation not in ("leaky", "linear"):
        raise ValueError(
            "activation must be a bijection of the line, leaky or linear, got "
            f"{activation!r}"
        )
    d, m = D.shape[1], X.shape[-1]
    for rows in mine.rows:
        _, sizes = np.unique(rows, return_counts=True)
        if sizes.size != d or (sizes != m).any():
            raise ValueError(
                f"allocation must have m = {m} entries in each of d = {d} "
                f"rows, got rows of {sizes.tolist()}"
            )
    return free_rows_solve(problems, allocation)


def region_rank(
    problems: ShallowProblems,
    allocation: Allocation,
    rng: Seed,
    regions: int = 8,
) -> np.ndarray:
    """Largest rank of the Jacobian at random weights, ``(K,)``.

    Parameters
    ----------
    problems : ShallowProblems
    allocation : Allocation
    rng : seed or Generator
    regions : int
        Random weights that are tried; each lies in some activation region.

    Returns
    -------
    numpy.ndarray of int (K,)

    Raises
    ------
    ValueError
        If shapes do not fit or ``regions`` is not positive.

    Notes
    -----
    The rank of a ReLU network differs from region to region, so this is a
    lower bound of the best. Where rows are free every pattern occurs, and the
    one with all learned neurons active is tried too. Source: ours.

    Examples
    --------
    >>> draws = shallow_problems(5, 8, 4, 2, 2, rng=0)
    >>> bool((region_rank(draws, Allocation([0] * 4, range(4)), 1) <= 2).all())
    True
    """
    check_sizes(regions=regions)
    B, D, X, _, mine, activation = _checked(problems, allocation)
    slopes = {
        "leaky": lambda z: np.where(z > 0, 1.0, SLOPE),
        "tanh": lambda z: 1 - np.tanh(z) ** 2,
        "linear": np.ones_like,
    }
    starts = draw_starts(len(B), regions, mine.rows.shape[1], rng)
    best = np.zeros(len(B), dtype=int)
    for s in range(regions):
        net = ShallowReLU(with_entries(B, mine, starts[:, s]), D)
        J = relu_jacobian(net, X, mine, slopes.get(activation))
        best = np.maximum(best, generic_rank(J).rank)
    if activation == "relu" and has_free_rows(X, mine):
        J = relu_jacobian(ShallowReLU(B, D), X, mine, np.ones_like)
        best = np.maximum(best, generic_rank(J).rank)
    return best


def relu_enumerate_matches(
    problems: ShallowProblems, allocation: Allocation
) -> np.ndarray:
    r"""Number of isolated matches of each draw, by all activation patterns.

    Within one pattern of the learned neurons the network is affine in its
    weights. Each pattern that the rows can have, for ReLU with at least ``d``
    active neurons for each example, gives a linear system of :math:`md`
    equations; its solution counts if it has that pattern and matches.

    Parameters
    ----------
    problems : ShallowProblems
        With activation "relu", or "leaky" of slope 0.1.
    allocation : Allocation
        :math:`p=md` entries in :math:`k` rows, :math:`km\le18`.

    Returns
    -------
    numpy.ndarray of int (K,)

    Raises
    ------
    ValueError
        If the activation is another, :math:`p\ne md`, :math:`km>18`,
        :math:`m>b`, or some target is exactly zero, so that matches are not
        isolated.

    Notes
    -----
    With more examples than inputs, labels of examples that share all activity
    depend on each other linearly, and a match may lie on the border of two
    patterns. Source: ours (2.13 of the reconstruction). Cost: up to :math:`2^{km}`
    linear systems.

    Examples
    --------
    One neuron, one example: the target needs the sign of the readout.

    >>> student = ShallowReLU(np.ones((2, 1, 1)), [[[1.0]], [[-1.0]]])
    >>> draws = ShallowProblems(student, [[[1.0]]] * 2, [[[3.0]]] * 2)
    >>> relu_enumerate_matches(draws, Allocation([0], [0])).tolist()
    [1, 0]
    """
    B, D, X, Y, mine, activation = _checked(problems, allocation)
    if activation not in ("relu", "leaky"):
        raise ValueError(
            f"activation must be relu or leaky, got {activation!r}"
        )
    d, m, p = D.shape[1], X.shape[-1], mine.rows.shape[1]
    left = relu_targets(problems, allocation)
    k = left.rows.shape[1]
    if p != m * d:
        raise ValueError(
            f"allocation must have p = m d = {m * d} entries for isolated "
            f"matches, got {p}"
        )
    if k * m > LARGEST_PATTERNS:
        raise ValueError(
            f"k m must be at most {LARGEST_PATTERNS}, got {k} x {m}: there "
            "would be too many activation patterns"
        )
    if m > X.shape[1]:
        raise ValueError(
            f"X must have at most as many examples as inputs, got m = {m} "
            f"and b = {X.shape[1]}"
        )
    if (left.t == 0).all(axis=1).any():
        raise ValueError(
            "problems must leave no target exactly zero: silence matches it, "
            "and no match is isolated"
        )
    return np.array(
        [
            enumerate_matches(
                left.t[i],
                left.D_S[i],
                left.offset[i],
                np.searchsorted(left.rows[i], mine.rows[i]),
                X[i][mine.cols[i]],
                SLOPE if activation == "leaky" else 0.0,
            )
            for i in range(len(B))
        ]
    )


def shallow_match_probability(
    problems: ShallowProblems,
    allocation: Allocation,
    rng: Seed,
    starts: int = 12,
    exact_only: bool = False,
) -> MatchResult:
    """How often entries of the first layer can be chosen to match.

    Parameters
    ----------
    problems : ShallowProblems
    allocation : Allocation
        ``(p,)`` for all draws, or ``(K, p)``.
    rng : seed or Generator
        Of regions and starts.
    starts : int
        For Levenberg-Marquardt, if it comes to that.
    exact_only : bool
        Raise instead of falling back on the optimiser.

    Returns
    -------
    MatchResult
        ``rank_full`` counts draws with a full rank at one of eight random
        weights. ``method`` is "range" (the values that the learned neurons
        can take decide), "linear", "enumeration" or "levenberg-marquardt".

    Raises
    ------
    ValueError
        If shapes do not fit, or no exact method applies and one was asked
        for.

    Notes
    -----
    Draws with a target out of range are decided for any budget; where all
    are, the answer is an exact zero. Source: ours (2.13 and 2.14 of the
    reconstruction).

    Examples
    --------
    >>> draws = shallow_problems(50, 8, 8, 2, 2, rng=0)
    >>> found = shallow_match_probability(draws, Allocation([5] * 4, range(4)), 1)
    >>> found.mp, found.exact, found.method
    (0.0, True, 'range')
    """
    check_sizes(starts=starts)
    B, D, X, Y, mine, activation = _checked(problems, allocation)
    rng = as_generator(rng)
    full = region_rank(problems, mine, rng) == Y[0].size
    left = relu_targets(problems, mine)
    outcome = within_range(left, activation).all(axis=1)
    if not outcome.any() or has_free_rows(X, mine):
        return match_result(outcome, full, True, "range")
    here = np.flatnonzero(outcome)
    some = take(problems, here)
    part = Allocation(*(a[here] for a in mine))
    p, c, k = mine.rows.shape[1], Y[0].size, left.rows.shape[1]
    if activation == "linear":
        layers = [some.student.B, some.student.D]
        systems = (
            layer_system([a[i] for a in layers], some.X[i], some.Y[i],
                         Allocation(part.rows[i], part.cols[i]), 0)
            for i in range(here.size)
        )  # fmt: skip
        outcome[here] = [
            affine_residual(s) < MATCHED_RELATIVE for s in systems
        ]
        return match_result(outcome, full, True, "linear")
    silent = (left.t[here] == 0).all(axis=1).any()
    piecewise = activation in ("relu", "leaky")
    m = X.shape[-1]
    small = p == c and k * m <= LARGEST_PATTERNS and m <= X.shape[1]
    if piecewise and small and not silent:
        outcome[here] = relu_enumerate_matches(some, part) > 0
        return match_result(outcome, full, True, "enumeration")
    if exact_only:
        raise ValueError(
            "no exact method applies: rows must be free, the activation "
            f"linear, or piecewise linear with p = m d and k m at most {LARGEST_PATTERNS}"
        )
    first = draw_starts(here.size, starts, p, rng)
    done = solve_shallow(*some[:3], part, first, activation, SLOPE)
    outcome[here] = done.matched
    return match_result(outcome, full, False, "levenberg-marquardt")


def take(problems: ShallowProblems, which) -> ShallowProblems:
    """Some of the draws.

    Parameters
    ----------
    problems : ShallowProblems
    which : array_like of int or bool

    Notes
    -----
    Source: ours.

    Examples
    --------
    >>> take(shallow_problems(5, 3, 2, 1, 1, rng=0), [0, 3]).Y.shape
    (2, 1, 1)
    """
    student, X, Y, activation = problems
    return ShallowProblems(
        ShallowReLU(*(np.asarray(M)[which] for M in student)),
        np.asarray(X)[which],
        np.asarray(Y)[which],
        activation,
    )


def _check_activation(activation) -> None:
    if activation not in ACTIVATIONS:
        raise ValueError(
            f"activation must be one of {list(ACTIVATIONS)}, got "
            f"{activation!r}"
        )


def _checked(problems, allocation):
    """Arrays of a stack of problems that fit together."""
    student, X, Y, activation = problems
    _check_activation(activation)
    B, D, X, Y = check_finite(B=student.B, D=student.D, X=X, Y=Y)
    K, n, b = B.shape if B.ndim == 3 else (0, 0, 0)
    m = X.shape[-1] if X.ndim == 3 else 0
    d = D.shape[1] if D.ndim == 3 else 0
    wanted = [(K, n, b), (K, d, n), (K, b, m), (K, d, m)]
    if [a.shape for a in (B, D, X, Y)] != wanted or 0 in (K, n, b, d, m):
        raise ValueError(
            "B, D, X and Y must be (K, n, b), (K, d, n), (K, b, m) and "
            f"(K, d, m), got {[a.shape for a in (B, D, X, Y)]}"
        )
    rows, cols = check_allocation(allocation, (n, b))
    if not rows.shape[-1] or rows.shape[:-1] not in ((), (K,)):
        raise ValueError(
            f"allocation must hold entries and be (p,) or ({K}, p), got "
            f"{rows.shape}"
        )
    mine = (np.broadcast_to(a, (K, rows.shape[-1])) for a in (rows, cols))
    return B, D, X, Y, Allocation(*mine), activation


def _in_span(D_S, t):
    D_S, t = (np.asarray(a, dtype=float) for a in (D_S, t))
    r = np.linalg.lstsq(D_S, t, rcond=None)[0]
    gap = np.linalg.norm(D_S @ r - t, axis=0)
    return gap <= MATCHED_RELATIVE * np.linalg.norm(t, axis=0)


def _values(D_S, t, activation):
    """Pre-activations whose values make the target."""
    if activation == "relu":
        r, _ = nnls(D_S, t)
        return np.where(r > 0, r, -1.0)
    if activation == "tanh":
        d, k = D_S.shape
        A = np.hstack([D_S, np.zeros((d, 1))])
        side = -np.ones((k, 1))
        bounds = np.vstack(
            [np.hstack([np.eye(k), side]), np.hstack([-np.eye(k), side])]
        )
        cost = np.r_[np.zeros(k), 1.0]
        done = linprog(
            cost, bounds, np.zeros(2 * k), A, t, bounds=(None, None)
        )
        return np.arctanh(done.x[:k])
    r = np.linalg.lstsq(D_S, t, rcond=None)[0]
    return np.where(r > 0, r, r / SLOPE) if activation == "leaky" else r
