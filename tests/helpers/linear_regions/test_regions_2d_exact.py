"""Exact cells: rational waves, hand values, what the certificate certifies."""

from fractions import Fraction
from itertools import pairwise

import numpy as np
import pytest

from helpers.linear_regions.arrangements import arrangement_cells
from helpers.linear_regions.networks import relu_forward
from helpers.linear_regions.random_networks import (
    he_network,
    side_by_side,
    wave_network,
)
from helpers.linear_regions.regions_1d import breakpoints_1d
from helpers.linear_regions.regions_2d import TooManyRegionsError, regions_2d
from helpers.linear_regions.regions_2d_exact import regions_2d_exact

UNIT = ((0, 1), (0, 1))
LINES = [[1, 0], [0, 1], [1, 1]]
FIFTHS = [Fraction(k, 5) for k in (1, 2, 3, 1, 2, 3)]
TENTHS = [Fraction(1, 10)] * 6


@pytest.mark.parametrize("L", range(1, 7))
def test_rational_waves(L):
    """4^L cells, the smallest as large as the product of the smaller parts,
    the areas exactly 1, vertices a grid."""
    net = side_by_side(wave_network(FIFTHS[:L]), wave_network(TENTHS[:L]))
    mesh = regions_2d_exact(net, UNIT)
    assert mesh.n_cells == mesh.n_pieces == 4**L
    assert sum(mesh.areas) == 1
    smaller = np.prod([min(a, 1 - a) for a in FIFTHS[:L]])
    assert min(mesh.areas) == smaller * Fraction(1, 10) ** L
    assert mesh.euler == ((2**L + 1) ** 2, 2 * 2**L * (2**L + 1), 4**L + 1)


def test_stored_weights_are_another_network():
    """Rounded to float64 the same waves do have slivers; the tolerance of
    the mesh looks past them."""
    peaks = [[float(a) for a in side] for side in (FIFTHS[:4], TENTHS[:4])]
    net = side_by_side(*map(wave_network, peaks))
    exact = regions_2d_exact(net, UNIT)
    assert exact.n_cells > 4**4
    assert sum(exact.areas) == 1
    slivers = sorted(exact.areas)[: exact.n_cells - 4**4]
    assert max(slivers) < 1e-13
    assert regions_2d(net, UNIT).n_cells == 4**4


def test_three_lines():
    outer = ([[1, 1, 1]], [0])
    mesh = regions_2d_exact([(LINES, [0, 0, Fraction(-1, 2)]), outer])
    assert mesh.n_cells == arrangement_cells(3) == 7
    assert min(mesh.areas) == Fraction(1, 8)
    mesh = regions_2d_exact([(LINES, [0, 0, 0]), outer])
    assert sorted(mesh.areas) == [Fraction(1, 2)] * 4 + [1, 1]
    # far away the third line still counts, a millimetre off it does not
    assert regions_2d_exact([(LINES, [0, 0, -2]), outer]).n_cells == 4
    near = Fraction(-(10**30) + 1, 10**30) * 2
    assert regions_2d_exact([(LINES, [0, 0, near]), outer]).n_cells == 5


def test_maps_are_the_network():
    rng = np.random.default_rng(0)
    layers = he_network([2, 6, 6, 2], rng)
    mesh = regions_2d_exact(layers)
    for cell in range(mesh.n_cells):
        corners = [mesh.vertices[v] for v in mesh.polygons[cell]]
        x, y = (
            sum(side) / len(corners) for side in zip(*corners, strict=True)
        )
        exact = [
            float(p * x + q * y + c)
            for (p, q), c in zip(mesh.A[cell], mesh.b[cell], strict=True)
        ]
        point = np.array([[float(x), float(y)]])
        assert np.allclose(relu_forward(layers, point)[0], exact, atol=1e-12)


def test_neighbours_agree_on_their_edge():
    """The function is continuous, exactly."""
    layers = he_network([2, 5, 5, 1], 1)
    mesh = regions_2d_exact(layers)
    owner = {}
    for cell, polygon in enumerate(mesh.polygons):
        for u, v in pairwise([*polygon, polygon[0]]):
            other = owner.setdefault(frozenset((u, v)), cell)
            for x, y in (mesh.vertices[u], mesh.vertices[v]):
                values = [
                    mesh.A[c][0][0] * x + mesh.A[c][0][1] * y + mesh.b[c][0]
                    for c in (cell, other)
                ]
                assert values[0] == values[1]


def test_one_dimensional_knots_are_exact_knots():
    peaks = FIFTHS[:4]
    flat = side_by_side(wave_network(peaks), wave_network([FIFTHS[0]] * 4))
    mesh = regions_2d_exact(flat, UNIT)
    exact = sorted({float(x) for x, _ in mesh.vertices})
    knots = breakpoints_1d(wave_network([float(a) for a in peaks]), (0, 1))[0]
    assert np.allclose(exact, knots, atol=1e-15)


def test_slope_on_the_negative_side():
    net = [([[1, 0]], [0]), ([[1]], [0])]
    mesh = regions_2d_exact(net, negative_slope=Fraction(1, 3))
    assert sorted(A[0][0] for A in mesh.A) == [Fraction(1, 3), 1]


def test_bad_input_is_named():
    net = [(LINES, [0, 0, 0]), ([[1, 1, 1]], [0])]
    for call, word in (
        (lambda: regions_2d_exact([]), "at least one"),
        (lambda: regions_2d_exact([([[np.nan, 0]], [0])]), "finite"),
        (lambda: regions_2d_exact([([[1]], [0])]), "2 columns"),
        (lambda: regions_2d_exact([(LINES, [0])]), "entry a row"),
        (lambda: regions_2d_exact([([], [])]), "layers"),
        (lambda: regions_2d_exact(net, ((0, 0), (0, 1))), "width zero"),
        (lambda: regions_2d_exact(net, (0, 1)), "box"),
        (lambda: regions_2d_exact(net, negative_slope=1), "negative_slope"),
    ):
        with pytest.raises(ValueError, match=word):
            call()
    with pytest.raises(TooManyRegionsError, match="max_cells"):
        regions_2d_exact(net, max_cells=2)
