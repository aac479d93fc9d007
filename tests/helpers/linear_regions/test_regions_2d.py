"""Cells in the plane: exact arithmetic, products, laws, degenerate nets."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from helpers.linear_regions import regions_2d_compiled
from helpers.linear_regions.networks import hidden_values, relu_forward
from helpers.linear_regions.random_networks import (
    benchmark_network,
    he_network,
    side_by_side,
    wave_network,
)
from helpers.linear_regions.regions_1d import (
    count_regions_1d,
    grid_pattern_count,
)
from helpers.linear_regions.regions_2d import (
    TooManyRegionsError,
    regions_2d,
)
from helpers.linear_regions.regions_2d_exact import regions_2d_exact

SEEDS = st.integers(0, 2**32 - 1)
UNIT = ((0, 1), (0, 1))
LINES = np.array([[1.0, 0.0], [0.0, 1.0], [1.0, 1.0]])
ROUTES = [
    False,
    pytest.param(
        True,
        marks=pytest.mark.skipif(
            not regions_2d_compiled.AVAILABLE, reason="numba is not installed"
        ),
    ),
]


def one_layer(W, b):
    return [(W, b), (np.ones((1, len(W))), [0.0])]


def degenerate_network(seed):
    """Small integers: coincident and parallel lines, triple points, dead
    and constant neurons, crossings at vertices, all of them common."""
    rng = np.random.default_rng(seed)
    widths = [2, *rng.integers(1, 6, size=int(rng.integers(1, 4))), 1]
    return [
        (
            rng.integers(-2, 3, size=(out, fan)).astype(float),
            rng.integers(-1, 2, size=out).astype(float),
        )
        for fan, out in zip(widths, widths[1:], strict=False)
    ]


def all_patterns(mesh):
    return np.concatenate(mesh.patterns, axis=1)


def check_mesh(mesh, area):
    """What every mesh must satisfy."""
    V, E, F = mesh.euler
    assert V - E + F == 2
    assert abs(mesh.areas.sum() - area) < 1e-9 * area
    assert mesh.areas.min() > -1e-15
    offset, corners = mesh.loops
    assert offset[-1] == len(corners) == 2 * E - (mesh.edge_cells < 0).sum()
    assert len(mesh.polygons) == mesh.n_cells
    used = np.unique(corners)
    assert used.tolist() == list(range(V))
    # convex cells have a pattern each
    assert len(np.unique(all_patterns(mesh), axis=0)) == mesh.n_cells
    assert 1 <= mesh.n_pieces <= mesh.n_cells


def check_maps(mesh, layers, rng, slope=0.0):
    """Affine maps and patterns are those of the network, inside cells."""
    A, b = mesh.affine_maps
    polygons = mesh.polygons
    for cell in rng.integers(0, mesh.n_cells, size=30):
        corners = polygons[cell]
        weights = rng.dirichlet(np.ones(len(corners)))
        point = weights @ corners
        there = A[cell] @ point + b[cell]
        seen = relu_forward(layers, point[None], slope)[0]
        scale = 1 + np.abs(A[cell]).sum() + np.abs(seen).max()
        assert np.abs(there - seen).max() < 1e-10 * scale
        if mesh.areas[cell] < 1e-8:
            continue
        for bits, z in zip(
            mesh.pattern(cell),
            hidden_values(layers, point[None], slope)[:-1],
            strict=True,
        ):
            clear = np.abs(z[0]) > 1e-9
            assert np.array_equal(bits[clear], z[0][clear] > 0)


@pytest.mark.parametrize("compiled", ROUTES)
def test_hand_values(compiled):
    """Lines x = 0, y = 0 and x + y = c: 7 cells, and 6 for c = 0; both
    corners that x + y = 0 passes are vertices already."""
    mesh = regions_2d(one_layer(LINES, [0.0, 0.0, -0.5]), compiled=compiled)
    assert mesh.euler == (13, 19, 8)
    assert np.isclose(np.sort(mesh.areas)[0], 1 / 8)
    mesh = regions_2d(one_layer(LINES, np.zeros(3)), compiled=compiled)
    assert mesh.euler == (9, 14, 7)
    assert np.allclose(np.sort(mesh.areas), [0.5] * 4 + [1, 1])


@pytest.mark.parametrize("compiled", ROUTES)
def test_published_counts(compiled):
    """579 and 6155 cells: four tools agree (TOOLCHAIN, section 5)."""
    for width, depth, cells in ((16, 3, 579), (32, 4, 6155)):
        layers = benchmark_network(width, depth)
        mesh = regions_2d(layers, compiled=compiled)
        assert mesh.n_cells == cells
        check_mesh(mesh, 4)
        check_maps(mesh, layers, np.random.default_rng(0))


@pytest.mark.parametrize("compiled", ROUTES)
def test_triangle_waves_make_four_to_the_depth(compiled):
    rng = np.random.default_rng(0)
    for L in range(1, 7):
        for peaks in (np.full((2, L), 0.1), rng.uniform(0.1, 0.9, (2, L))):
            layers = side_by_side(*map(wave_network, peaks))
            mesh = regions_2d(layers, UNIT, compiled=compiled)
            assert mesh.euler == (
                (2**L + 1) ** 2,
                2 * 2**L * (2**L + 1),
                4**L + 1,
            )
            assert mesh.n_pieces == 4**L
            assert abs(mesh.areas.sum() - 1) < 1e-9


def test_without_tolerance_valleys_grow_slivers():
    """Two signs are not enough: the control of the test above."""
    peaks = np.full((2, 5), 0.1)
    peaks[0] = [0.2, 0.4, 0.6, 0.2, 0.4]
    layers = side_by_side(*map(wave_network, peaks))
    assert regions_2d(layers, UNIT).n_cells == 4**5
    assert regions_2d(layers, UNIT, tol=0).n_cells > 4**5


def test_routes_agree_on_a_hundred_networks():
    if not regions_2d_compiled.AVAILABLE:
        pytest.skip("numba is not installed")
    rng = np.random.default_rng(1)
    for _ in range(100):
        width, depth = int(rng.integers(8, 33)), int(rng.integers(2, 5))
        layers = he_network([2, *[width] * depth, 2], rng)
        one, two = (regions_2d(layers, compiled=c) for c in (True, False))
        assert one.euler == two.euler
        for mesh in (one, two):
            assert abs(mesh.areas.sum() - 4) < 1e-9
        a, b = (
            mesh.areas[np.lexsort(all_patterns(mesh).T)] for mesh in (one, two)
        )
        assert np.abs(a - b).max() < 1e-12
        assert np.array_equal(
            *(np.unique(all_patterns(mesh), axis=0) for mesh in (one, two))
        )


@given(SEEDS)
@settings(max_examples=25, deadline=None)
def test_generic_networks_agree_with_exact_arithmetic(seed):
    rng = np.random.default_rng(seed)
    width, depth = int(rng.integers(1, 10)), int(rng.integers(1, 4))
    layers = he_network([2, *[width] * depth, 1], rng)
    exact = regions_2d_exact(layers)
    mesh = regions_2d(layers)
    assert mesh.euler == exact.euler
    assert mesh.n_pieces == exact.n_pieces
    areas = np.sort([float(a) for a in exact.areas])
    assert np.abs(np.sort(mesh.areas) - areas).max() < 1e-12
    check_mesh(mesh, 4)


@pytest.mark.parametrize("compiled", ROUTES)
@given(seed=SEEDS)
@settings(max_examples=60, deadline=None)
def test_degenerate_networks_agree_with_exact_arithmetic(compiled, seed):
    layers = degenerate_network(seed)
    exact = regions_2d_exact(layers)
    mesh = regions_2d(layers, compiled=compiled)
    assert mesh.euler == exact.euler
    assert mesh.n_pieces == exact.n_pieces
    check_mesh(mesh, 4)
    check_maps(mesh, layers, np.random.default_rng(seed))


@pytest.mark.parametrize("compiled", ROUTES)
@pytest.mark.parametrize("slope", [0.01, -1.0])
def test_leaky_networks(compiled, slope):
    rng = np.random.default_rng(2)
    layers = he_network([2, 7, 7, 1], rng)
    mesh = regions_2d(layers, negative_slope=slope, compiled=compiled)
    exact = regions_2d_exact(layers, negative_slope=slope)
    assert (mesh.euler, mesh.n_pieces) == (exact.euler, exact.n_pieces)
    check_mesh(mesh, 4)
    check_maps(mesh, layers, rng, slope)


@given(SEEDS)
@settings(max_examples=20, deadline=None)
def test_never_below_a_grid(seed):
    rng = np.random.default_rng(seed)
    layers = he_network([2, 8, 8, 1], rng)
    mesh = regions_2d(layers)
    points = rng.uniform(-1, 1, size=(3000, 2))
    assert grid_pattern_count(layers, points) <= mesh.n_cells


def test_products_of_one_dimensional_networks():
    rng = np.random.default_rng(3)
    nets = [he_network([1, 6, 5, 1], rng) for _ in range(2)]
    mesh = regions_2d(side_by_side(*nets), ((-1, 1), (-2, 1)))
    counts = [
        count_regions_1d(net, span)
        for net, span in zip(nets, ((-1, 1), (-2, 1)), strict=True)
    ]
    assert mesh.n_cells == counts[0].activation * counts[1].activation


@pytest.mark.parametrize("compiled", ROUTES)
def test_degenerate_nets_by_name(compiled):
    def cells(layers):
        mesh = regions_2d(layers, compiled=compiled)
        check_mesh(mesh, 4)
        return mesh.n_cells, mesh.n_pieces

    dead = one_layer(LINES, [-9.0, -9.0, -9.0])
    assert cells(dead) == (1, 1)
    duplicate = one_layer(LINES[[0, 0, 1]], [0.1, 0.1, 0.3])
    assert cells(duplicate) == (4, 4)
    scaled = one_layer(LINES[[0, 0, 0]] * [[1], [3], [-0.7]], np.zeros(3))
    assert cells(scaled) == (2, 2)
    through_corner = one_layer(LINES[2:], [-2.0])
    assert cells(through_corner) == (1, 1)
    along_side = one_layer(LINES[:1], [1.0])
    assert cells(along_side) == (1, 1)
    constant = one_layer(np.zeros((2, 2)), [0.0, 1.0])
    assert cells(constant) == (1, 1)
    affine = [(np.ones((1, 2)), [0.5])]
    mesh = regions_2d(affine, compiled=compiled)
    assert (mesh.n_cells, mesh.n_pieces, mesh.patterns) == (1, 1, [])
    # the output does not hear the second neuron
    mute = [(LINES[:2], [0.0, 0.0]), ([[1.0, 0.0]], [0.0])]
    assert cells(mute) == (4, 2)
    # |x| + |y| - 1/2 after folding: a diamond inside four quadrants
    fold = [
        (np.array([[1.0, 0], [-1, 0], [0, 1], [0, -1]]), np.zeros(4)),
        (np.ones((1, 4)), [-0.5]),
        ([[1.0]], [0.0]),
    ]
    assert cells(fold) == (8, 5)


def test_small_and_shifted_boxes():
    layers = benchmark_network(16, 3)
    whole = regions_2d(layers)
    box = ((-0.31, 0.27), (0.11, 0.57))
    part = regions_2d(layers, box)
    check_mesh(part, 0.58 * 0.46)
    assert part.n_cells < whole.n_cells
    patterns = {p.tobytes() for p in all_patterns(whole)}
    assert {p.tobytes() for p in all_patterns(part)} <= patterns
    tiny = regions_2d(layers, ((0.1, 0.1 + 1e-9), (0.2, 0.2 + 1e-9)))
    assert tiny.n_cells == 1


def test_too_many_regions_are_refused_before_they_are_made():
    layers = he_network([2, 100, 1], 0)
    for compiled in (False, True):
        with pytest.raises(TooManyRegionsError) as error:
            regions_2d(layers, compiled=compiled, max_cells=50)
        text = str(error.value)
        assert "max_cells is 50" in text and "hidden layer 1" in text
    assert regions_2d(layers, max_cells=5051).n_cells <= 5051


def test_bad_input_is_named():
    net = one_layer(LINES, np.zeros(3))
    broken = one_layer(LINES * np.nan, np.zeros(3))
    for call, word in (
        (lambda: regions_2d([]), "layers"),
        (lambda: regions_2d(broken), "finite"),
        (lambda: regions_2d(he_network([1, 3, 1], 0)), "2 inputs"),
        (lambda: regions_2d([(np.zeros((0, 2)), [])]), "layers"),
        (lambda: regions_2d(net, ((0, 0), (0, 1))), "width zero"),
        (lambda: regions_2d(net, ((0, np.inf), (0, 1))), "finite"),
        (lambda: regions_2d(net, (0, 1)), "box"),
        (lambda: regions_2d(net, tol=-1), "tol"),
        (lambda: regions_2d(net, max_cells=0), "max_cells"),
        (lambda: regions_2d(net, negative_slope=1), "negative_slope"),
        (lambda: regions_2d(net).pattern(99), "cell"),
    ):
        with pytest.raises(ValueError, match=word):
            call()


def test_plain_python_runs_the_compiled_route(monkeypatch):
    """Without numba the functions are plain Python and mean the same."""
    if not regions_2d_compiled.AVAILABLE:
        pytest.skip("numba is not installed")
    layers = he_network([2, 5, 5, 1], 0)
    before = regions_2d(layers, compiled=True)
    parts = ("_lowest", "_cut", "_signs", "_lines", "_edges", "_cells")
    for name in (*parts, "_roomy", "subdivide"):
        compiled = getattr(regions_2d_compiled, name)
        monkeypatch.setattr(regions_2d_compiled, name, compiled.py_func)
    with np.errstate(over="ignore"):  # words wrap around, as they should
        after = regions_2d(layers, compiled=True)
    assert before.euler == after.euler
    assert np.array_equal(before.vertices, after.vertices)
    assert np.array_equal(before.edge_cells, after.edge_cells)
