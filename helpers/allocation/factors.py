r"""Several learned factors: layers of a linear network, or B, W and D at once.

Write :math:`F` for the frozen network, with the learned entries at zero, and
:math:`a_l` for what the learned entries add to the pre-activations of the
learned rows :math:`S_l` of layer :math:`l`. Then

.. math:: Y = F_L\cdots F_1X + \sum_l F_L\cdots F_{l+1}E_{S_l}\,a_l ,

which is linear in the :math:`a_l`, however many layers learn.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from helpers.allocation.allocations import (
    Allocation,
    allocation_mask,
    check_allocation,
    row_allocation,
    with_entries,
)
from helpers.allocation.homotopy import count_solutions
from helpers.allocation.jacobians import lffn_jacobian
from helpers.allocation.levenberg import first_match, levenberg_marquardt
from helpers.allocation.matching import LARGEST_EXACT
from helpers.allocation.networks import lffn_forward, sample_lffn
from helpers.allocation.quadrics import Quadrics
from helpers.core.checks import check_finite, check_sizes
from helpers.core.randomness import Seed, as_generator
from helpers.core.tolerances import RIDGE_RELATIVE

__all__ = [
    "Eliminated",
    "Equations",
    "LayerProblems",
    "core_quadrics",
    "elimination_residuals",
    "factor_degree",
    "factor_rank_cap",
    "first_matches",
    "layer_equations",
    "layer_problems",
    "layer_quadrics",
    "one_row_each_solve",
    "two_layer_matches",
]


class LayerProblems(NamedTuple):
    """Student layers, inputs ``X (K, n_0, m)`` and labels ``Y (K, d, m)``."""

    layers: list
    X: np.ndarray
    Y: np.ndarray


class Equations(NamedTuple):
    """A match as ``residual_jac(w, which)``, the norms of the labels
    ``(K,)``, and the number of unknowns."""

    residual_jac: Callable
    size: np.ndarray
    p: int


class Eliminated(NamedTuple):
    """Values of the learned entries, one array a layer (None where nothing
    learns), and the relative residual of the network run forward."""

    w: list
    residual: float


def layer_problems(K: int, widths, m: int, rng: Seed) -> LayerProblems:
    """Independent teachers, students and inputs of linear networks.

    Parameters
    ----------
    K : int
        Draws.
    widths : sequence of int
        Input, hidden layers, output.
    m : int
        Examples.
    rng : seed or Generator

    Returns
    -------
    LayerProblems

    Raises
    ------
    ValueError
        If a size is not a positive whole number.

    Notes
    -----
    Networks as :func:`~helpers.allocation.networks.sample_lffn`, standard
    normal inputs. Source: ours.

    Examples
    --------
    >>> layer_problems(5, [4, 3, 2], 3, 0).Y.shape
    (5, 2, 3)
    """
    check_sizes(m=m)
    rng = as_generator(rng)
    teacher, student = (sample_lffn(K, widths, rng) for _ in range(2))
    X = rng.normal(size=(K, list(widths)[0], m))
    return LayerProblems(student, X, lffn_forward(teacher, X))


def _check_parts(shapes, allocations) -> list:
    if len(shapes) != len(allocations) or all(a is None for a in allocations):
        raise ValueError(
            f"allocations must be {len(shapes)}, one a matrix, not all None"
        )
    return [
        None if a is None else check_allocation(a, shape)
        for a, shape in zip(allocations, shapes, strict=True)
    ]


def _layer_shapes(widths) -> list:
    widths = list(widths)
    if len(widths) < 2:
        raise ValueError(f"widths must be two or more sizes, got {widths}")
    check_sizes(**{f"widths[{i}]": w for i, w in enumerate(widths)})
    return [(n1, n0) for n0, n1 in zip(widths, widths[1:], strict=False)]


def factor_degree(widths, allocations) -> int:
    """Degree of the labels in the learned entries of a linear network.

    The largest number of learned entries that one path from an input to an
    output passes. At most the number of learned layers, and often less.

    Parameters
    ----------
    widths : sequence of int
        Input, hidden layers, output.
    allocations : list
        One a layer, an Allocation ``(p,)`` or None.

    Raises
    ------
    ValueError
        If the lists do not fit each other or nothing learns.

    Notes
    -----
    Labels are sums over paths, and different paths are different monomials,
    so that nothing cancels. Source: ours.

    Examples
    --------
    The second layer listens to neuron 1; the first learns in row 0, or 1.

    >>> second = Allocation([0], [1])
    >>> [factor_degree([2, 2, 1], [Allocation([row], [0]), second])
    ...  for row in (0, 1)]
    [1, 2]
    """
    shapes = _layer_shapes(widths)
    best = np.zeros(shapes[0][1], dtype=int)
    for a, shape in zip(
        _check_parts(shapes, allocations), shapes, strict=True
    ):
        mask = (
            np.zeros(shape, bool) if a is None else allocation_mask(a, shape)
        )
        best = (best + mask).max(axis=1)
    return int(best.max())


def factor_rank_cap(widths, m: int, allocations) -> int:
    r"""What learned rows and columns permit of the rank, over all layers.

    Going up, :math:`\kappa_l=\min(n_l,\kappa_{l-1}+k_l)` counts the
    directions into which learned rows reach; the rank is at most
    :math:`m\kappa_L`. Going down, learned columns give
    :math:`d\min(m,\gamma_0)` with
    :math:`\gamma_{l-1}=\min(n_{l-1},\gamma_l+c_l)`.

    Parameters
    ----------
    widths : sequence of int
    m : int
        Examples.
    allocations : list
        One a layer, an Allocation ``(p,)`` or None.

    Returns
    -------
    int
        The least of both, of :math:`d\min(m,n_0)` and of the budget.

    Raises
    ------
    ValueError
        If an argument does not fit.

    Notes
    -----
    Below :math:`dm` there is no match, with probability one. Source: ours.

    Examples
    --------
    One row in each of two layers, three outputs:

    >>> a = Allocation([0] * 4, [0, 1, 2, 3])
    >>> factor_rank_cap([8, 10, 10, 3], 4, [a, a, None])
    8
    """
    check_sizes(m=m)
    widths = list(widths)
    shapes = _layer_shapes(widths)
    parts = _check_parts(shapes, allocations)
    rows = [0 if a is None else np.unique(a.rows).size for a in parts]
    cols = [0 if a is None else np.unique(a.cols).size for a in parts]
    up = down = 0
    for n, k in zip(widths[1:], rows, strict=True):
        up = min(n, up + k)
    for n, c in zip(widths[-2::-1], cols[::-1], strict=True):
        down = min(n, down + c)
    m_e = min(m, widths[0])
    budget = sum(0 if a is None else a.rows.shape[-1] for a in parts)
    return int(min(m_e * up, widths[-1] * min(m_e, down), budget))


def _cleared(layers, allocations) -> list:
    return [
        W if a is None else with_entries(W, a, np.zeros(np.shape(a.rows)))
        for W, a in zip(layers, allocations, strict=True)
    ]


def _filled(layers, allocations, w) -> list:
    found, at = [], 0
    for W, a in zip(layers, allocations, strict=True):
        if a is None:
            found.append(W)
            continue
        here = a.rows.shape[-1]
        found.append(with_entries(W, a, w[..., at : at + here]))
        at += here
    return found


def _some(allocations, which) -> list:
    return [
        None if a is None else Allocation(a.rows[which], a.cols[which])
        for a in allocations
    ]


def _spread(allocations, K: int) -> list:
    return [
        None
        if a is None
        else Allocation(
            *(np.broadcast_to(v, (K, v.shape[-1])).copy() for v in a)
        )
        for a in allocations
    ]


def _norms(Y) -> np.ndarray:
    size = np.linalg.norm(Y.reshape(len(Y), -1), axis=1)
    if not (size > 0).all():
        raise ValueError("Y must not be zero for any problem")
    return size


def layer_equations(problems: LayerProblems, allocations) -> Equations:
    """The match of learned entries in several layers.

    Parameters
    ----------
    problems : LayerProblems
    allocations : list
        One a layer, an Allocation ``(p,)`` or ``(K, p)``, or None.

    Returns
    -------
    Equations
        Unknowns in the order of the layers.

    Raises
    ------
    ValueError
        If an argument does not fit, or all labels of a problem are zero.

    Notes
    -----
    Source: ours.

    Examples
    --------
    >>> draws = layer_problems(2, [3, 3, 1], 1, 0)
    >>> made = layer_equations(draws, [Allocation([0], [1]), None])
    >>> r, J = made.residual_jac(np.zeros((2, 1)), np.arange(2))
    >>> r.shape, J.shape
    ((2, 1), (2, 1, 1))
    """
    layers, X, Y = problems
    lffn_forward(layers, X)
    (Y,) = check_finite(Y=Y)
    parts = _check_parts([W.shape[-2:] for W in layers], allocations)
    parts = _spread(parts, len(Y))

    def residual_jac(w, which):
        mine = _some(parts, which)
        now = _filled([W[which] for W in layers], mine, w)
        r = lffn_forward(now, X[which]) - Y[which]
        return r.reshape(len(which), -1), lffn_jacobian(now, X[which], mine)

    p = sum(a.rows.shape[1] for a in parts if a is not None)
    return Equations(residual_jac, _norms(Y), p)


def first_matches(equations: Equations, starts, most: int = 150) -> np.ndarray:
    """First start from which Levenberg-Marquardt matches each problem.

    Parameters
    ----------
    equations : Equations
    starts : array_like (K, S, p)
    most : int
        Most steps from a start.

    Returns
    -------
    numpy.ndarray of int (K,)
        From 1; 0 if none of the starts ends in a match, which proves nothing.

    Raises
    ------
    ValueError
        If the starts do not fit.

    Notes
    -----
    The damping has a floor, so that weights may be redundant. Source: ours.

    Examples
    --------
    One layer is linear: the first start is enough.

    >>> from helpers.allocation.levenberg import draw_starts
    >>> made = layer_equations(layer_problems(3, [3, 3, 1], 1, 0),
    ...                        [Allocation([0], [1]), None])
    >>> first_matches(made, draw_starts(3, 2, 1, 0)).tolist()
    [1, 1, 1]
    """
    (starts,) = check_finite(starts=starts)
    K = equations.size.size
    if starts.ndim != 3 or starts.shape[::2] != (K, equations.p):
        raise ValueError(
            f"starts must have shape ({K}, S, {equations.p}), got "
            f"{starts.shape}"
        )

    def solve(left, begin):
        return levenberg_marquardt(
            lambda w, i: _ridged(equations, w, left[i]),
            begin[:, 0],
            equations.size[left],
            most,
        ).matched

    return first_match(starts, solve)


def _ridged(equations, w, which):
    """Residuals and Jacobian with a tiny ridge below, as zero residuals."""
    r, J = equations.residual_jac(w, which)
    K, p = w.shape
    size = np.sqrt(RIDGE_RELATIVE * (J**2).sum(axis=(1, 2)))
    ridge = size[:, None, None] * np.eye(p)
    return (
        np.concatenate([r, np.zeros((K, p))], axis=1),
        np.concatenate([J, ridge], axis=1),
    )


def one_row_each_solve(layers, X, Y, allocations) -> Eliminated:
    r"""A match whose learned rows, over all layers, number the outputs.

    With :math:`\sum_lk_l=d` the labels fix every :math:`a_l` by one linear
    system of size :math:`d`. The states of all layers are then known, and
    each learned row solves a linear system of its own.

    Parameters
    ----------
    layers : list of array_like (n_l, n_{l-1})
        One student.
    X : array_like (n_0, m)
    Y : array_like (d, m)
    allocations : list
        One a layer, an Allocation ``(p,)`` or None. Each learned row has at
        least :math:`m` entries, and there are :math:`d` of them in all.

    Returns
    -------
    Eliminated
        With exactly :math:`m` entries a row the match is unique; with more,
        the one of least norm in each row.

    Raises
    ------
    ValueError
        If the learned rows are not :math:`d`, a row has fewer than
        :math:`m` entries, or shapes do not fit.

    Notes
    -----
    Cost :math:`O(d^3+dm^3)`. Needs generic weights, ``n_l`` of at least
    :math:`k_1+\dots+k_l` and of at least :math:`m`. Source: ours; section
    2.12 of the reconstruction has the case of one row in each of three
    layers.

    Examples
    --------
    >>> draws = layer_problems(1, [4, 4, 2], 3, 0)
    >>> one = Allocation([1] * 3, [0, 1, 3])
    >>> layers = [W[0] for W in draws.layers]
    >>> found = one_row_each_solve(layers, draws.X[0], draws.Y[0], [one, one])
    >>> found.residual < 1e-8
    True
    """
    X, Y = check_finite(X=X, Y=Y)
    layers = check_finite(**{f"layers[{i}]": W for i, W in enumerate(layers)})
    parts = _check_parts([W.shape for W in layers], allocations)
    frozen = _cleared(layers, parts)
    rows = [() if a is None else np.unique(a.rows) for a in parts]
    d, m = Y.shape
    if sum(map(len, rows)) != d:
        raise ValueError(
            f"allocations must have d = {d} learned rows in all, got "
            f"{sum(map(len, rows))}"
        )
    for a, mine in zip(parts, rows, strict=True):
        if any(np.sum(a.rows == row) < m for row in mine):
            raise ValueError(f"each learned row needs m = {m} entries")
    onward, reach = np.eye(d), []
    for F, mine in zip(frozen[::-1], rows[::-1], strict=True):
        reach.append(onward[:, list(mine)])
        onward = onward @ F
    left = Y - lffn_forward(frozen, X)
    added = np.linalg.solve(np.concatenate(reach[::-1], axis=1), left)
    Z, w, at = X, [], 0
    for F, a, mine in zip(frozen, parts, rows, strict=True):
        own = added[at : at + len(mine)]
        at += len(mine)
        w.append(None if a is None else np.empty(a.rows.size))
        for row, extra in zip(mine, own, strict=True):
            here = a.rows == row
            w[-1][here] = np.linalg.lstsq(Z[a.cols[here]].T, extra)[0]
        Z = F @ Z
        Z[list(mine)] += own
    flat = np.concatenate([v for v in w if v is not None])
    end = lffn_forward(_filled(layers, parts, flat), X)
    return Eliminated(w, float(np.linalg.norm(end - Y) / np.linalg.norm(Y)))


def elimination_residuals(
    widths, m: int, rows, count: int, seed: int
) -> np.ndarray:
    """Residuals of :func:`one_row_each_solve` over random draws.

    Parameters
    ----------
    widths : sequence of int
    m : int
        Examples, and learned entries in each learned row.
    rows : sequence of int
        Learned rows of each layer, ``d`` in all.
    count : int
        Draws.
    seed : int

    Returns
    -------
    numpy.ndarray (count,)

    Raises
    ------
    ValueError
        As :func:`one_row_each_solve`.

    Notes
    -----
    Source: ours.

    Examples
    --------
    >>> bool(elimination_residuals([4, 4, 2], 3, [1, 1], 5, 0).max() < 1e-6)
    True
    """
    rng = as_generator(seed)
    draws, shapes = (
        layer_problems(count, widths, m, rng),
        _layer_shapes(widths),
    )
    found = []
    for i in range(count):
        parts = [
            row_allocation(shape, k, k * m, rng) if k else None
            for shape, k in zip(shapes, rows, strict=True)
        ]
        layers = [W[i] for W in draws.layers]
        found.append(
            one_row_each_solve(layers, draws.X[i], draws.Y[i], parts).residual
        )
    return np.array(found)


def layer_quadrics(problems: LayerProblems, allocations) -> Quadrics:
    r"""The match of two learned layers, as quadrics.

    The product of entry :math:`(i,c)` of the lower layer and :math:`(j,c')`
    of the upper one has the coefficient
    :math:`P_{:,j}\otimes Z_{c,:}` times the frozen weight from neuron
    :math:`i` to neuron :math:`c'`, which for adjacent layers is 1 if
    :math:`i=c'` and 0 otherwise.

    Parameters
    ----------
    problems : LayerProblems
    allocations : list
        One a layer; exactly two are not None.

    Returns
    -------
    Quadrics
        With :math:`c=dm` equations.

    Raises
    ------
    ValueError
        If not exactly two layers learn or shapes do not fit.

    Notes
    -----
    Source: ours.

    Examples
    --------
    One neuron: w_2 w_1 x = y with x = 1.

    >>> one = Allocation([0], [0])
    >>> q = layer_quadrics(LayerProblems([np.ones((1, 1, 1))] * 2,
    ...                    np.ones((1, 1, 1)), np.full((1, 1, 1), 3.0)),
    ...                    [one, one])
    >>> q.Q[0, 0].tolist(), q.constant.item()
    ([[0.0, 0.5], [0.5, 0.0]], -3.0)
    """
    layers, X, Y = problems
    parts = _check_parts([W.shape[-2:] for W in layers], allocations)
    learned = [i for i, a in enumerate(parts) if a is not None]
    if len(learned) != 2:
        raise ValueError(f"two layers must learn, got {len(learned)}")
    K, low, high = len(Y), *learned
    parts = _spread(parts, K)
    frozen = _cleared(layers, parts)
    linear = lffn_jacobian(frozen, X, parts)
    constant = (lffn_forward(frozen, X) - Y).reshape(K, -1)
    below, above = parts[low], parts[high]
    Z = lffn_forward(frozen[:low], X) if low else X
    P = np.broadcast_to(np.eye(Y.shape[1]), (K, *[Y.shape[1]] * 2))
    for F in frozen[:high:-1]:
        P = P @ F
    between = np.broadcast_to(
        np.eye(frozen[low].shape[1]), (K, *[frozen[low].shape[1]] * 2)
    )
    for F in frozen[low + 1 : high]:
        between = F @ between
    each = np.arange(K)[:, None]
    weight = between[
        each[:, :, None], above.cols[:, None, :], below.rows[:, :, None]
    ]
    led = np.moveaxis(P, 1, 2)[each, above.rows]
    fed = Z[each, below.cols]
    cross = np.einsum("kij,kja,kic->kacij", weight, led, fed)
    cross = cross.reshape(K, -1, *weight.shape[1:]) / 2
    q, p = weight.shape[1], linear.shape[-1]
    Q = np.zeros((*linear.shape, p))
    Q[..., :q, q:] = cross
    Q[..., q:, :q] = np.swapaxes(cross, -1, -2)
    return Quadrics(Q, linear, constant)


def core_quadrics(quadrics: Quadrics) -> list[Quadrics]:
    """Each system without the unknowns that occur only linearly.

    Equations are combined so that those unknowns drop out of all but as many
    as there are of them.

    Parameters
    ----------
    quadrics : Quadrics
        As many equations as unknowns; the linear unknowns' columns are
        independent.

    Returns
    -------
    list of Quadrics
        One problem each, since sizes differ; a size of 0 means that the
        system is linear and has one solution.

    Raises
    ------
    ValueError
        If equations and unknowns differ in number.

    Notes
    -----
    A solution of the core extends to one of the system, in one way. Source:
    ours.

    Examples
    --------
    >>> draws = layer_problems(1, [4, 4, 4, 2], 1, 0)
    >>> one, other = Allocation([0], [1]), Allocation([2], [0])
    >>> [core] = core_quadrics(layer_quadrics(draws, [one, other, None]))
    >>> core.linear.shape
    (1, 2, 2)
    """
    K, c, p = quadrics.linear.shape
    if c != p:
        raise ValueError(
            f"quadrics must have as many equations as unknowns, got {c} and "
            f"{p}"
        )
    found = []
    for Q, linear, constant in zip(*quadrics, strict=True):
        bent = (Q != 0).any(axis=(0, 2))
        span, _ = np.linalg.qr(linear[:, ~bent], mode="complete")
        keep = span[:, int((~bent).sum()) :].T
        core = np.einsum("ec,cpq->epq", keep, Q[:, bent][:, :, bent])
        core = (core + np.swapaxes(core, -1, -2)) / 2
        found.append(
            Quadrics(
                core[None],
                (keep @ linear[:, bent])[None],
                (keep @ constant)[None],
            )
        )
    return found


def two_layer_matches(
    problems: LayerProblems, allocations, rng: Seed, largest=LARGEST_EXACT
) -> np.ndarray:
    """Whether two learned layers have a match, by all complex solutions.

    Parameters
    ----------
    problems : LayerProblems
    allocations : list
        Exactly two are not None; :math:`p=dm` entries and a full rank.
    rng : seed or Generator
    largest : int
        Systems whose core has more unknowns are left undecided.

    Returns
    -------
    numpy.ndarray of int (K,)
        1 if there is a match, 0 if not, -1 if the core is too large.

    Raises
    ------
    ValueError
        If an argument does not fit.

    Notes
    -----
    Up to a few lost paths. Source: ours.

    Examples
    --------
    Layers that do not touch are linear together:

    >>> draws = layer_problems(3, [4, 4, 4, 2], 1, 0)
    >>> pair = [Allocation([0], [1]), Allocation([2], [3]), None]
    >>> two_layer_matches(draws, pair, 0).tolist()
    [1, 1, 1]
    """
    rng = as_generator(rng)
    cores = core_quadrics(layer_quadrics(problems, allocations))
    sizes = np.array([core.linear.shape[-1] for core in cores])
    outcome = np.full(len(cores), -1)
    outcome[sizes == 0] = 1
    for N in np.unique(sizes[(sizes > 0) & (sizes <= largest)]):
        here = np.flatnonzero(sizes == N)
        forms = np.concatenate([cores[i].homogeneous() for i in here])
        outcome[here] = count_solutions(forms, rng).real > 0
    return outcome
