r"""Every cell of a network on a rectangle, in exact rational arithmetic.

The certificate of :func:`~helpers.linear_regions.regions_2d.regions_2d`: no
tolerance, no rounding. Weights that are floats are the rational numbers that
they are. Inside, a point is an integer triple :math:`(X, Y, w)` with
:math:`w>0`, reduced, and an affine function an integer triple whose product
with it has the sign of the function; where an edge :math:`uv` is crossed,
with values :math:`z_u<0<z_v`, the new vertex is :math:`z_v u-z_u v`.

Polygons are cut one by one and share nothing; equal points have equal
triples. That their vertices fit together is therefore a check of the result,
:math:`V-E+F=2`, and not built in.
"""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property

import numpy as np

from helpers.linear_regions.regions_2d import TooManyRegionsError

__all__ = ["ExactRegions2D", "regions_2d_exact"]

MAX_EXACT_CELLS = 100_000
"""Cells beyond which the exact route stops: a millisecond and a few
kilobytes each."""


@dataclass(frozen=True)
class ExactRegions2D:
    """Cells with rational corners and maps.

    Attributes
    ----------
    vertices : list of (Fraction, Fraction)
    polygons : list of tuple of int
        Vertices of each cell, anticlockwise.
    A : list of list of (Fraction, Fraction)
        A row for each output.
    b : list of list of Fraction
    patterns : list of tuple of bool
        All hidden neurons of all layers.
    """

    vertices: list
    polygons: list
    A: list
    b: list
    patterns: list

    @property
    def n_cells(self) -> int:
        """Activation cells."""
        return len(self.polygons)

    @cached_property
    def _edges(self) -> Counter:
        edges: Counter = Counter()
        for polygon in self.polygons:
            for i, v in enumerate(polygon):
                u = polygon[i - 1]
                edges[min(u, v), max(u, v)] += 1
        return edges

    @property
    def euler(self) -> tuple[int, int, int]:
        """Vertices, edges and faces, the outer face among them."""
        return len(self.vertices), len(self._edges), self.n_cells + 1

    @cached_property
    def areas(self) -> list[Fraction]:
        """Exact area of each cell."""
        areas = []
        for polygon in self.polygons:
            points = [self.vertices[v] for v in polygon]
            twice = sum(
                points[i - 1][0] * y - x * points[i - 1][1]
                for i, (x, y) in enumerate(points)
            )
            areas.append(Fraction(twice) / 2)
        return areas

    @cached_property
    def pieces(self) -> list[int]:
        """The linear piece of each cell, numbered from 0."""
        owner: dict = {}
        root = list(range(self.n_cells))

        def find(i):
            while root[i] != i:
                root[i] = root[root[i]]
                i = root[i]
            return i

        for cell, polygon in enumerate(self.polygons):
            for i, v in enumerate(polygon):
                u = polygon[i - 1]
                edge = min(u, v), max(u, v)
                other = owner.setdefault(edge, cell)
                same = self.A[other] == self.A[cell]
                if same and self.b[other] == self.b[cell]:
                    root[find(cell)] = find(other)
        names = {r: k for k, r in enumerate(sorted(set(map(find, root))))}
        return [names[find(i)] for i in range(self.n_cells)]

    @property
    def n_pieces(self) -> int:
        """Linear pieces: connected unions of cells with one affine map."""
        return max(self.pieces) + 1


def _rational(value, name: str) -> Fraction:
    try:
        return Fraction(value)
    except (TypeError, ValueError, OverflowError) as error:
        raise ValueError(
            f"{name} must be a finite number, got {value!r}"
        ) from error


def _integers(W, b, index):
    """A layer times its common denominator."""
    W = np.asarray(W, dtype=object)
    b = np.asarray(b, dtype=object)
    if W.ndim != 2 or W.size == 0 or b.shape != W.shape[:1]:
        raise ValueError(
            f"layers[{index}] must be a matrix with rows and columns and a "
            f"vector with an entry a row, got shapes {W.shape} and {b.shape}"
        )
    name = f"layers[{index}]"
    W = [[_rational(w, name) for w in row] for row in W.tolist()]
    b = [_rational(x, name) for x in b.tolist()]
    common = math.lcm(
        *(x.denominator for x in b), *(w.denominator for r in W for w in r)
    )
    rows = [
        [(j, int(w * common)) for j, w in enumerate(row) if w] for row in W
    ]
    return rows, [int(x * common) for x in b], common, len(W[0])


def _check_rational_layers(layers):
    checked = [_integers(W, b, i) for i, (W, b) in enumerate(layers)]
    if not checked:
        raise ValueError("layers must hold at least one layer")
    width = 2
    for i, (rows, _, _, inputs) in enumerate(checked):
        if inputs != width:
            raise ValueError(
                f"layers[{i}] must have {width} columns, got {inputs}"
            )
        width = len(rows)
    return checked


def _point(X, Y, w):
    common = math.gcd(X, Y, w)
    if w < 0:
        common = -common
    return X // common, Y // common, w // common


def _split(polygon, z):
    """The parts of a polygon where a function is negative and positive."""
    below, above = [], []
    for i, v in enumerate(polygon):
        zu, zv = z[i - 1], z[i]
        if (zu < 0 < zv) or (zv < 0 < zu):
            u = polygon[i - 1]
            new = _point(*(zv * p - zu * q for p, q in zip(u, v, strict=True)))
            below.append(new)
            above.append(new)
        if zv <= 0:
            below.append(v)
        if zv >= 0:
            above.append(v)
    return below, above


def _product(rows, shift, M, scale):
    """Rows of integers times the affine functions ``M``."""
    out = []
    for row, constant in zip(rows, shift, strict=True):
        p = q = 0
        r = constant * scale
        for j, w in row:
            a, b, c = M[j]
            p += w * a
            q += w * b
            r += w * c
        out.append((p, q, r))
    return out


def _cut_all(polygon, functions):
    """Cells that the zero lines of functions make of a polygon, each with
    the list of functions positive on it."""
    parts = [(polygon, [])]
    for p, q, r in functions:
        found = []
        for part, signs in parts:
            z = [p * X + q * Y + r * w for X, Y, w in part]
            low, high = min(z), max(z)
            if low < 0 < high:
                below, above = _split(part, z)
                found.append((below, [*signs, False]))
                found.append((above, [*signs, True]))
            else:
                signs.append(high > 0)
                found.append((part, signs))
        parts = found
    return parts


def regions_2d_exact(
    layers,
    box=((-1, 1), (-1, 1)),
    negative_slope=0,
    max_cells: int = MAX_EXACT_CELLS,
) -> ExactRegions2D:
    r"""All activation cells of a network of two inputs, exactly.

    Parameters
    ----------
    layers : list of (W, b)
        Entries may be integers, floats (taken as they are) or fractions.
    box : ((x0, x1), (y0, y1))
        Numbers of the same kinds.
    negative_slope : number
        Slope of the activation left of zero, not 1.
    max_cells : int
        Stop with an error when there are more.

    Returns
    -------
    ExactRegions2D

    Raises
    ------
    TooManyRegionsError
        A ``ValueError``: see ``max_cells``.
    ValueError
        If the layers do not fit, are empty or not finite, or the box has no
        area.

    Notes
    -----
    About a millisecond a cell for small networks; integers grow by some 50
    bits a layer when weights are floats.

    Source: none, ours; appendix A.2 of the paper for the notions.

    Examples
    --------
    Three lines through one point make six cells, not seven.

    >>> W = [[1, 0], [0, 1], [1, 1]]
    >>> mesh = regions_2d_exact([(W, [0, 0, 0]), ([[1, 1, 1]], [0])])
    >>> mesh.n_cells, sum(mesh.areas), mesh.euler
    (6, Fraction(4, 1), (9, 14, 7))
    """
    layers = _check_rational_layers(layers)
    slope = _rational(negative_slope, "negative_slope")
    if slope == 1:
        raise ValueError("negative_slope must not be 1")
    ends = np.asarray(box, dtype=object)
    if ends.shape != (2, 2):
        raise ValueError(f"box must be ((x0, x1), (y0, y1)), got {box!r}")
    (x0, x1), (y0, y1) = (
        [_rational(v, "box") for v in side] for side in ends.tolist()
    )
    if not (x0 < x1 and y0 < y1):
        raise ValueError(
            f"box must have x0 < x1 and y0 < y1, got {box!r}: a box of width "
            "zero has no cells"
        )
    w = math.lcm(*(v.denominator for v in (x0, x1, y0, y1)))
    corners = [
        _point(int(x * w), int(y * w), w)
        for x, y in ((x0, y0), (x1, y0), (x1, y1), (x0, y1))
    ]
    scale = 1
    faces = [(corners, [(1, 0, 0), (0, 1, 0)], ())]
    for depth, (rows, shift, common, _) in enumerate(layers[:-1], start=1):
        found = []
        for polygon, M, pattern in faces:
            functions = _product(rows, shift, M, scale)
            for part, signs in _cut_all(polygon, functions):
                on, off = slope.denominator, slope.numerator
                kept = [
                    tuple(v * (on if s else off) for v in f)
                    for f, s in zip(functions, signs, strict=True)
                ]
                found.append((part, kept, (*pattern, *signs)))
            if len(found) > max_cells:
                raise TooManyRegionsError(
                    f"hidden layer {depth} has more than max_cells = "
                    f"{max_cells:,} cells"
                )
        faces = found
        scale *= common * slope.denominator
    rows, shift, common, _ = layers[-1]
    index: dict = {}
    polygons, A, b, patterns = [], [], [], []
    total = scale * common
    for polygon, M, pattern in faces:
        polygons.append(
            tuple(index.setdefault(v, len(index)) for v in polygon)
        )
        maps = _product(rows, shift, M, scale)
        A.append(
            [(Fraction(p, total), Fraction(q, total)) for p, q, _ in maps]
        )
        b.append([Fraction(r, total) for _, _, r in maps])
        patterns.append(pattern)
    vertices = [(Fraction(X, w), Fraction(Y, w)) for X, Y, w in index]
    return ExactRegions2D(vertices, polygons, A, b, patterns)
