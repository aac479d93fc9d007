r"""Every cell of a ReLU network on a rectangle: the planar mesh it makes.

The rectangle is one cell. Layer after layer, each cell is cut by the lines on
which a neuron vanishes; vertices are shared, and a vertex keeps its position
and the pre-activations of the layer at work. One matrix product a layer gives
them, everything else is bookkeeping on signs.

Decided on purpose: signs are *three-valued*. A pre-activation that is not
larger than ``tol`` times the largest sum of absolute terms that its neuron
has in the rectangle is zero, the vertex lies *on* the line, and only edges
with strictly opposite ends are cut. A test with two signs cuts slivers off
every valley of a triangle wave. Where a zero is set, the other neurons of the
layer move along with it, as in one dimension.

Two notions are kept apart: an *activation cell* has one activation pattern; a
*linear piece* is a connected union of cells with one affine map.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components

from helpers.core.tolerances import PREACTIVATION_ZERO, SLOPE_TIE
from helpers.linear_regions import regions_2d_compiled
from helpers.linear_regions.networks import (
    check_layers,
    check_negative_slope,
)
from helpers.linear_regions.regions_1d import _snap

__all__ = [
    "MAX_CELLS",
    "Regions2D",
    "TooManyRegionsError",
    "cell_upper_bound",
    "check_box",
    "regions_2d",
]

MAX_CELLS = 4_000_000
"""Cells beyond which :func:`regions_2d` refuses to start, unless told: about
a hundred bytes each and eight for every neuron of a layer, some gigabytes."""

_CHUNK = 1 << 22  # entries of a block of affine maps
_ROWS = 1 << 10


class TooManyRegionsError(ValueError):
    """A layer may have more cells than allowed; names the bound."""


def check_box(box) -> tuple[tuple[float, float], tuple[float, float]]:
    """A rectangle ``((x0, x1), (y0, y1))`` of positive width and height.

    Parameters
    ----------
    box : array_like, shape (2, 2)

    Returns
    -------
    tuple
        The same in floats.

    Raises
    ------
    ValueError
        If the shape is wrong, an end is not finite or a side is empty.

    Notes
    -----
    Source: none, ours.

    Examples
    --------
    >>> check_box([[0, 1], [-1, 1]])
    ((0.0, 1.0), (-1.0, 1.0))
    """
    ends = np.asarray(box, dtype=float)
    if ends.shape != (2, 2) or not np.isfinite(ends).all():
        raise ValueError(
            f"box must be ((x0, x1), (y0, y1)) with finite ends, got {box!r}"
        )
    if not (ends[:, 0] < ends[:, 1]).all():
        raise ValueError(
            f"box must have x0 < x1 and y0 < y1, got {box!r}: a box of width "
            "zero has no cells"
        )
    (x0, x1), (y0, y1) = ends.tolist()
    return (x0, x1), (y0, y1)


def cell_upper_bound(widths, dim: int = 2) -> int:
    r"""A bound on cells that is known before anything is computed.

    :math:`\prod_l\sum_{k\le D}\binom{n_l}{k}` for hidden layers of widths
    :math:`n_l`: each cell of a layer is cut by at most :math:`n_l` lines.

    Parameters
    ----------
    widths : sequence of int >= 0
    dim : int >= 1

    Returns
    -------
    int
        Exact, as large as it may be.

    Raises
    ------
    ValueError
        If a width is negative or ``dim`` is not positive.

    Notes
    -----
    Source: Theorem A.11 of the paper, a layer at a time.

    Examples
    --------
    >>> cell_upper_bound([3]), cell_upper_bound([64] * 4)
    (7, 18753758574721)
    """
    widths = [int(w) for w in widths]
    if min(widths, default=0) < 0 or dim < 1:
        raise ValueError(
            f"widths must not be negative and dim must be positive, got "
            f"{widths} and {dim}"
        )
    return math.prod(
        sum(math.comb(n, k) for k in range(dim + 1)) for n in widths
    )


@dataclass(frozen=True)
class Regions2D:
    """The cells of a network on a rectangle.

    Attributes
    ----------
    layers : list of (W, b)
    negative_slope : float
    box : ((x0, x1), (y0, y1))
    vertices : ndarray, shape (V, 2)
    edges : ndarray of int, shape (E, 2)
        Two vertices each.
    edge_cells : ndarray of int, shape (E, 2)
        The cell left of an edge and the one right of it, -1 outside.
    patterns : list of ndarray of uint8, shape (F, ceil(n / 8))
        For each hidden layer the neurons that are positive on a cell, packed
        with ``numpy.packbits(..., bitorder="little")``.
    """

    layers: list
    negative_slope: float
    box: tuple
    vertices: np.ndarray
    edges: np.ndarray
    edge_cells: np.ndarray
    patterns: list

    @property
    def n_cells(self) -> int:
        """Activation cells."""
        return int(self.edge_cells.max()) + 1

    @property
    def euler(self) -> tuple[int, int, int]:
        """Vertices, edges and faces, the outer face among them."""
        return len(self.vertices), len(self.edges), self.n_cells + 1

    @cached_property
    def _half_edges(self):
        """Start, end and cell of every half edge, sorted by cell."""
        cell = self.edge_cells.T.ravel()
        start = self.edges.T.ravel()
        stop = self.edges[:, ::-1].T.ravel()
        order = np.argsort(cell, kind="stable")
        order = order[np.count_nonzero(cell < 0) :]
        return start[order], stop[order], cell[order]

    @cached_property
    def loops(self) -> tuple[np.ndarray, np.ndarray]:
        """Vertices of each cell, anticlockwise: cell ``f`` has
        ``corners[offset[f]:offset[f + 1]]`` of ``offset, corners``."""
        start, stop, cell = self._half_edges
        size = np.bincount(cell, minlength=self.n_cells)
        offset = np.concatenate([[0], np.cumsum(size)])
        V = len(self.vertices)
        key = cell.astype(np.int64) * V + start
        order = np.argsort(key)
        after = order[
            np.searchsorted(key[order], cell.astype(np.int64) * V + stop)
        ]
        corners = np.empty(len(start), dtype=np.int64)
        now = offset[:-1].copy()
        alive = np.arange(self.n_cells)
        for step in range(int(size.max())):
            alive = alive[size[alive] > step]
            corners[offset[alive] + step] = start[now[alive]]
            now[alive] = after[now[alive]]
        return offset, corners

    @property
    def polygons(self) -> list[np.ndarray]:
        """The corners ``(v, 2)`` of each cell, anticlockwise."""
        offset, corners = self.loops
        return np.split(self.vertices[corners], offset[1:-1])

    @cached_property
    def areas(self) -> np.ndarray:
        """Area of each cell, ``(F,)``."""
        start, stop, cell = self._half_edges
        origin = np.empty(self.n_cells, dtype=np.int64)
        origin[cell] = start
        u = self.vertices[start] - self.vertices[origin[cell]]
        v = self.vertices[stop] - self.vertices[origin[cell]]
        twice = u[:, 0] * v[:, 1] - u[:, 1] * v[:, 0]
        return np.bincount(cell, twice, minlength=self.n_cells) / 2

    @cached_property
    def centroids(self) -> np.ndarray:
        """The mean of each cell's corners, a point inside, ``(F, 2)``."""
        start, _, cell = self._half_edges
        size = np.bincount(cell)
        sums = [np.bincount(cell, self.vertices[start, i]) for i in (0, 1)]
        return np.stack(sums, axis=1) / size[:, None]

    def pattern(self, cell: int) -> list[np.ndarray]:
        """Which neurons are positive on a cell, a vector a hidden layer."""
        if not 0 <= cell < self.n_cells:
            raise ValueError(
                f"cell must lie in [0, {self.n_cells}), got {cell}"
            )
        return [
            _unpacked(bits[cell : cell + 1], len(W))[0]
            for bits, (W, _) in zip(self.patterns, self.layers, strict=False)
        ]

    def _maps(self):
        W, b = self.layers[-1]
        F, o = self.n_cells, len(b)
        A, shift = np.empty((F, o, 2)), np.empty((F, o))
        scale = np.empty((F, o, 3))
        widest = max(len(b) for _, b in self.layers)
        step = max(1, _CHUNK // (3 * widest))
        for low in range(0, F, step):
            part = slice(low, min(F, low + step))
            M = np.zeros((part.stop - part.start, 3, 2))
            M[:, 0, 0] = M[:, 1, 1] = 1.0
            for bits, (W, b) in zip(self.patterns, self.layers, strict=False):
                M = M @ W.T
                M[:, 2] += b
                on = _unpacked(bits[part], len(b))[:, None, :]
                M = np.where(on, M, self.negative_slope * M)
            W, b = self.layers[-1]
            size = np.abs(M) @ np.abs(W).T
            size[:, 2] += np.abs(b)
            M = M @ W.T
            M[:, 2] += b
            A[part] = M[:, :2].transpose(0, 2, 1)
            shift[part] = M[:, 2]
            scale[part] = size.transpose(0, 2, 1)
        return A, shift, scale

    @cached_property
    def affine_maps(self) -> tuple[np.ndarray, np.ndarray]:
        """``A (F, o, 2)`` and ``b (F, o)``: the output on cell ``f`` is
        ``A[f] @ x + b[f]``."""
        return self._maps()[:2]

    @cached_property
    def pieces(self) -> np.ndarray:
        """The linear piece of each cell, ``(F,)``, numbered from 0."""
        A, b, scale = self._maps()
        inner = self.edge_cells[(self.edge_cells >= 0).all(axis=1)]
        left, right = inner.T
        M = np.concatenate([A, b[:, :, None]], axis=2)
        same = np.ones(len(inner), dtype=bool)
        for i in range(M.shape[1]):
            for j in range(3):
                gap = np.abs(M[left, i, j] - M[right, i, j])
                size = np.maximum(scale[left, i, j], scale[right, i, j])
                same &= gap <= SLOPE_TIE * size
        joined = inner[same]
        graph = coo_array(
            (np.ones(len(joined)), (joined[:, 0], joined[:, 1])),
            shape=(self.n_cells, self.n_cells),
        )
        return connected_components(graph, directed=False)[1]

    @property
    def n_pieces(self) -> int:
        """Linear pieces: connected unions of cells with one affine map."""
        return int(self.pieces.max()) + 1


def _unpacked(bits, n) -> np.ndarray:
    return np.unpackbits(bits, axis=1, count=n, bitorder="little").view(bool)


def _too_many(bound, most, layer):
    return TooManyRegionsError(
        f"hidden layer {layer} may have up to {bound:,} cells, max_cells is "
        f"{most:,}; nothing of this layer was computed. Allow more by "
        "max_cells where memory allows, or take a smaller box or network"
    )


class _Edges:
    """Edges with their ends and cells, in arrays with room to grow; cell 0
    is the outside."""

    def __init__(self, ends, cells):
        self.n = len(ends)
        self.data = np.zeros((4, 2 * self.n + 64), dtype=np.int32)
        self.data[:2, : self.n] = ends.T
        self.data[2:, : self.n] = cells.T

    def add(self, a, b, left, right) -> None:
        stop = self.n + len(a)
        if stop > self.data.shape[1]:
            more = np.zeros((4, 2 * stop), dtype=np.int32)
            more[:, : self.n] = self.data[:, : self.n]
            self.data = more
        for row, values in zip(self.data, (a, b, left, right), strict=True):
            row[self.n : stop] = values
        self.n = stop


def _grouped(cell) -> np.ndarray:
    """A stable argsort of numbers below 2^32, in passes of 16 bits, which
    NumPy sorts in linear time."""
    order = np.argsort(cell.astype(np.uint16), kind="stable")
    high = (cell >> 16).astype(np.uint16)
    if high.any():
        order = order[np.argsort(high[order], kind="stable")]
    return order


def _by_cell(edges, cells):
    """The edges of each cell, one after another, and where each begins."""
    cell = edges.data[2:, : edges.n].ravel()
    order = _grouped(cell)
    size = np.bincount(cell, minlength=cells)
    return order[size[0] :] % edges.n, np.cumsum(size[1:]) - size[1:]


def _packed_signs(S, sign, edges, around):
    """The neurons that have a sign somewhere on each cell."""
    bits = np.packbits(S == sign, axis=0, bitorder="little").T
    wide = np.zeros((len(bits), 8 * (-(-bits.shape[1] // 8))), dtype=np.uint8)
    wide[:, : bits.shape[1]] = bits
    wide = wide.view(np.uint64)
    a, b = edges.data[:2, : edges.n]
    ends, first = around
    merged = np.bitwise_or.reduceat((wide[a] | wide[b])[ends], first, axis=0)
    return merged.view(np.uint8)[:, : bits.shape[1]]


def _subdivide(P, Z, limit, edges, cells, around, most, layer):
    """One layer, a neuron at a time, in NumPy."""
    V, n = Z.shape
    room = 2 * V + 64
    Z = np.concatenate([Z, np.empty((room - V, n))])
    P = np.concatenate([P, np.empty((room - V, 2))])
    S = np.zeros((n, room), dtype=np.int8)

    def signs(z):
        return (z > limit).astype(np.int8) - (z < -limit).astype(np.int8)

    S[:, :V] = signs(Z[:V]).T
    positive, negative = (
        _packed_signs(S[:, :V], sign, edges, around) for sign in (1, -1)
    )
    lines = np.bitwise_count(positive & negative).sum(axis=1, dtype=np.int64)
    bound = int((1 + lines + lines * (lines - 1) // 2).sum())
    if bound > most:
        raise _too_many(bound, most, layer)
    parent = np.arange(cells, dtype=np.int32)
    renamed = np.arange(max(2 * cells, 64), dtype=np.int32)
    opposite = np.full(len(renamed), -1, dtype=np.int32)
    mixed = np.unpackbits(
        np.bitwise_or.reduce(positive & negative, axis=0),
        count=n,
        bitorder="little",
    )
    for m in np.nonzero(mixed)[0]:
        a, b, left, right = edges.data[:, : edges.n]
        s = S[m, :V]
        generic = s.all()
        if generic:  # no vertex on the line: two signs do
            up_a, up_b = (s > 0)[a], (s > 0)[b]
            cut = np.flatnonzero(up_a != up_b)
            above = np.flatnonzero(up_a & up_b)
        else:
            sa, sb = s[a], s[b]
            cut = np.flatnonzero(sa * sb < 0)
            side = sa + sb
            side[cut] = 0
            above = np.flatnonzero(side > 0)
        i, j = a[cut], b[cut]
        new = np.arange(V, V + len(cut), dtype=np.int32)
        if V + len(cut) > len(Z):
            room = 2 * (V + len(cut))
            Z = np.concatenate([Z[:V], np.empty((room - V, n))])
            P = np.concatenate([P[:V], np.empty((room - V, 2))])
            S = np.concatenate(
                [S[:, :V], np.zeros((n, room - V), np.int8)], axis=1
            )
        zi = Z[i, m]
        t = (zi / (zi - Z[j, m]))[:, None]
        values = Z[i] * (1 - t) + Z[j] * t
        values[:, m] = 0.0
        Z[V : V + len(cut)] = values
        P[V : V + len(cut)] = P[i] * (1 - t) + P[j] * t
        S[:, V : V + len(cut)] = signs(values).T
        V += len(cut)
        # half edges that arrive on the line, from below or from above
        rising = zi < 0
        cl, cr = left[cut], right[cut]
        cell_up, at_up = np.where(rising, cl, cr), new
        cell_down, at_down = np.where(rising, cr, cl), new
        if not generic:
            touch = np.flatnonzero((side != 0) & (sa * sb == 0))
            forward = sb[touch] == 0
            cell = np.where(forward, left[touch], right[touch])
            at = np.where(forward, b[touch], a[touch])
            below = side[touch] < 0
            cell_up = np.concatenate([cell_up, cell[below]])
            at_up = np.concatenate([at_up, at[below]])
            cell_down = np.concatenate([cell_down, cell[~below]])
            at_down = np.concatenate([at_down, at[~below]])
        b[cut] = new
        second = np.arange(edges.n, edges.n + len(cut))
        above = np.concatenate([above, np.where(rising, second, cut)])
        edges.add(new, j, cl, cr)
        opposite[cell_down] = at_down
        both = (opposite[cell_up] >= 0) & (cell_up > 0)
        split, up = cell_up[both], at_up[both]
        down = opposite[split]
        opposite[cell_down] = -1
        fresh = np.arange(cells, cells + len(split), dtype=np.int32)
        cells += len(split)
        if cells > len(renamed):
            renamed = np.arange(2 * cells, dtype=np.int32)
            opposite = np.full(2 * cells, -1, dtype=np.int32)
        parent = np.concatenate([parent, parent[split]])
        renamed[split] = fresh
        for row in edges.data[2:]:
            row[above] = renamed[row[above]]
        renamed[split] = split
        edges.add(down, up, fresh, split)
    around = _by_cell(edges, cells)
    positive = _packed_signs(S[:, :V], 1, edges, around)
    return P[:V], Z[:V], cells, around, parent[1:] - 1, positive


def _limits(h, W, b, tol):
    """What counts as zero, a number for each neuron."""
    largest = np.maximum(h.max(axis=0), -h.min(axis=0))
    return tol * (np.abs(W) @ largest + np.abs(b))


def regions_2d(
    layers,
    box=((-1.0, 1.0), (-1.0, 1.0)),
    negative_slope: float = 0.0,
    tol: float = PREACTIVATION_ZERO,
    compiled: bool | None = None,
    max_cells: int = MAX_CELLS,
) -> Regions2D:
    r"""All activation cells of a network of two inputs on a rectangle.

    Parameters
    ----------
    layers : list of (W, b)
        ``W`` of shape ``(out, in)``, ``b`` of shape ``(out,)``; two inputs;
        ReLU after all but the last.
    box : ((x0, x1), (y0, y1))
    negative_slope : float
        Slope of the activation left of zero, not 1.
    tol : float, in [0, 1)
        A pre-activation below ``tol`` times the largest sum of absolute
        terms of its neuron on the vertices at hand is zero.
    compiled : bool, optional
        By default if numba is installed. Both routes give the same cells.
    max_cells : int
        Before each layer an upper bound of its cells is computed, from the
        number of lines that meet each cell; if it is larger, an error names
        it and the layer is not begun.

    Returns
    -------
    Regions2D
        The mesh. Polygons, areas, affine maps and linear pieces are computed
        when first asked for.

    Raises
    ------
    TooManyRegionsError
        A ``ValueError``: see ``max_cells``.
    ValueError
        If the layers do not fit or are not finite, do not take two inputs,
        the box has no area, or another argument is out of range.

    Notes
    -----
    For :math:`F` cells a layer takes one :math:`O(Fn^2)` product. The
    compiled route adds :math:`O(Fn/64)` and what it makes, the NumPy route
    about twenty array operations a neuron. Memory is linear in the cells:
    :math:`8n` bytes a vertex for the layer at work.

    Source: the algorithm is ours, after Berzins (2023), who cuts edges;
    Milkert, Hyde, Laine (2025), appendix A.2, for the notions.

    Examples
    --------
    Three lines in general position make seven cells:

    >>> three = np.array([[1.0, 0.0], [0.0, 1.0], [1.0, 1.0]])
    >>> net = [(three, np.array([0.0, 0.0, -0.5])), (np.ones((1, 3)), [0.0])]
    >>> mesh = regions_2d(net)
    >>> mesh.n_cells, mesh.n_pieces, bool(abs(mesh.areas.sum() - 4) < 1e-12)
    (7, 7, True)
    """
    layers = check_layers(layers)
    if layers[0][0].shape[1] != 2:
        raise ValueError(
            f"layers must take 2 inputs, the first matrix has shape "
            f"{layers[0][0].shape}"
        )
    slope = check_negative_slope(negative_slope)
    (x0, x1), (y0, y1) = box = check_box(box)
    if not 0 <= tol < 1:
        raise ValueError(f"tol must lie in [0, 1), got {tol}")
    if not max_cells >= 1:
        raise ValueError(f"max_cells must be at least 1, got {max_cells}")
    if compiled is None:
        compiled = regions_2d_compiled.AVAILABLE
    run = _run_compiled if compiled else _run_numpy
    P = np.array([[x0, y0], [x1, y0], [x1, y1], [x0, y1]])
    return Regions2D(
        layers, slope, box, *run(P, layers, slope, tol, max_cells)
    )


def _start(h, W, b, tol):
    Z = h @ W.T + b
    limit = _limits(h, W, b, tol)
    for low in range(0, len(Z), _ROWS):  # blocks that stay in the cache
        rows = slice(low, low + _ROWS)
        zero = np.abs(Z[rows]) <= limit
        if zero.any():
            _snap(Z[rows], zero, h[rows], W)
    return Z, limit


def _activated(Z, slope):
    """In place for ReLU: the pre-activations are not needed any more."""
    if slope == 0:
        return np.maximum(Z, 0.0, out=Z)
    return np.where(Z > 0, Z, slope * Z)


def _compose(patterns, parent, bits):
    return [old[parent] for old in patterns] + [bits]


def _run_numpy(P, layers, slope, tol, most):
    ring = np.array([[0, 1], [1, 2], [2, 3], [3, 0]])
    edges = _Edges(ring, np.array([[1, 0]] * 4))
    cells = 2  # the outside is cell 0
    around = _by_cell(edges, cells)
    patterns: list[np.ndarray] = []
    h = P
    for depth, (W, b) in enumerate(layers[:-1], start=1):
        Z, limit = _start(h, W, b, tol)
        h = None  # as large as the mesh
        P, Z, cells, around, parent, bits = _subdivide(
            P, Z, limit, edges, cells, around, most, depth
        )
        patterns = _compose(patterns, parent, bits)
        h = _activated(Z, slope)
    data = edges.data[:, : edges.n]
    return P, data[:2].T.copy(), data[2:].T - 1, patterns


def _run_compiled(P, layers, slope, tol, most):
    ends = np.array([[0, 1], [1, 2], [2, 3], [3, 0]], dtype=np.int32)
    cells = np.array([[0, -1]] * 4, dtype=np.int32)
    loops = np.array([[0, 0], [1, 1], [2, 2], [3, 3]], dtype=np.int32)
    start = np.array([0, 4])
    patterns: list[np.ndarray] = []
    h = P
    for depth, (W, b) in enumerate(layers[:-1], start=1):
        Z, limit = _start(h, W, b, tol)
        h = None  # as large as the mesh
        bound, *mesh = regions_2d_compiled.subdivide(
            P, Z, limit, start, loops, ends, most
        )
        if bound > most:
            raise _too_many(bound, most, depth)
        P, Z, start, loops, ends, cells, parent, bits = mesh
        used = -(-len(b) // 8)
        packed = np.ascontiguousarray(bits).view(np.uint8)[:, :used]
        patterns = _compose(patterns, parent, packed)
        h = _activated(Z, slope)
    return P, ends, cells, patterns
