"""Regions on an interval: closed forms, other routes, laws, pitfalls."""

import time

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from helpers.linear_regions.networks import (
    relu_forward,
    triangle_net_layers,
    vee_net_layers,
)
from helpers.linear_regions.random_networks import (
    default_network,
    he_network,
    wave_network,
)
from helpers.linear_regions.regions_1d import (
    breakpoints_1d,
    breakpoints_on_segment,
    count_regions_1d,
    count_regions_1d_batched,
    count_regions_on_segment,
    grid_pattern_count,
)

SEEDS = st.integers(0, 2**32 - 1)
UNIT = (0.0, 1.0)
OUTPUT = ([[1.0]], [0.0])


def random_network(seed):
    """Some width and depth, now and then a dead layer or equal rows."""
    rng = np.random.default_rng(seed)
    widths = [1, *rng.integers(1, 9, size=int(rng.integers(1, 5))), 1]
    layers = he_network(widths, rng)
    if rng.random() < 0.2:
        layers[-2] = layers[-2][0], np.full(widths[-2], -100.0)
    if rng.random() < 0.3 and widths[1] > 1:
        for array in layers[0]:
            array[-1] = 3 * array[0]
    return layers


def test_hand_values():
    """|x| by two neurons, the kink at 0 is one knot although both make it;
    a third neuron the output does not hear makes a region, not a piece."""
    W = [[1.0], [-1.0], [2.0]]
    net = [(W, [0.0, 0.0, -1.0]), ([[1.0, 1.0, 0.0]], [0.0])]
    found = breakpoints_1d(net, (-1, 1))
    assert found.knots.tolist() == [-1.0, 0.0, 0.5, 1.0]
    assert found.outputs.ravel().tolist() == [1.0, 0.0, 0.5, 1.0]
    assert count_regions_1d(net, (-1, 1)) == (3, 2)


def test_a_touched_zero_is_no_knot():
    """relu(|x|) touches zero: the second layer adds nothing."""
    first = ([[1.0], [-1.0]], [0.0, 0.0])
    second = ([[1.0, 1.0]], [0.0])
    assert count_regions_1d([first, second, OUTPUT], (-1, 1)) == (2, 2)
    lower = ([[1.0, 1.0]], [-0.5])
    assert count_regions_1d([first, lower, OUTPUT], (-1, 1)) == (4, 3)


@given(SEEDS)
@settings(max_examples=100, deadline=None)
def test_network_is_affine_between_knots_and_only_there(seed):
    layers = random_network(seed)
    knots, outputs = breakpoints_1d(layers, (-1, 1.5))
    x = np.random.default_rng(seed).uniform(-1, 1.5, size=200)
    y = relu_forward(layers, x)[:, 0]
    assert np.abs(np.interp(x, knots, outputs[:, 0]) - y).max() < 1e-11
    # patterns, counted on a grid that has a point in every cell
    middles = (knots[1:] + knots[:-1]) / 2
    count = count_regions_1d(layers, (-1, 1.5))
    assert count.activation == len(knots) - 1
    seen = grid_pattern_count(layers, np.concatenate([middles, x]))
    assert seen == count.activation
    assert 1 <= count.linear <= count.activation


@pytest.mark.parametrize("mode", ["concave", "convex"])
def test_waves_have_two_to_the_depth(mode):
    rng = np.random.default_rng(5)
    for _ in range(20):
        d = int(rng.integers(1, 13))
        net = triangle_net_layers(rng.uniform(0.1, 0.9, d + 1), mode)
        assert count_regions_1d(net, UNIT) == (2**d, 2**d)
        if d > 1:  # the kinks at 0 and 1
            assert count_regions_1d(net, (-1, 2)).activation == 2**d + 2


@pytest.mark.parametrize("slope", [0.01, 0.5, -0.5, -1.0])
def test_leaky_waves(slope):
    peaks = np.random.default_rng(1).uniform(0.1, 0.9, 7)
    net = triangle_net_layers(peaks, "concave", negative_slope=slope)
    assert count_regions_1d(net, UNIT, slope) == (64, 64)


def test_v_network_on_the_line():
    peaks = np.random.default_rng(2).uniform(0.2, 0.8, 6)
    net = vee_net_layers(peaks)
    assert count_regions_1d(net, (-3, 3)) == (32, 32)


def test_narrow_cells_survive():
    """The smallest cell of a = 0.05, d = 18 is 4e-24 wide, and it counts."""
    net = triangle_net_layers(np.full(19, 0.05), "concave")
    began = time.process_time()
    assert count_regions_1d(net, UNIT).activation == 2**18
    assert time.process_time() - began < 5  # 0.3 s where nothing else runs


def test_pitfall_valleys():
    """Without a tolerance rounding cuts slivers off valleys.

    How many depends on the order of operations; that none of nine networks
    is hit would be a surprise."""
    excess = []
    for peak in np.linspace(0.05, 0.45, 9):
        net = triangle_net_layers(np.full(11, peak), "concave")
        assert count_regions_1d(net, UNIT) == (1024, 1024)
        excess.append(count_regions_1d(net, UNIT, tol=0).activation - 1024)
    assert min(excess) >= 0 and max(excess) > 10
    net = triangle_net_layers(np.full(9, 0.1), "concave")
    assert count_regions_1d(net, UNIT, tol=0, spacing=1e-13) == (256, 256)


def test_pitfall_spacing_eats_cells():
    """A tolerance on the spacing loses cells that exist."""
    for peak, d in ((0.1, 14), (0.05, 10)):
        net = triangle_net_layers(np.full(d + 1, peak), "concave")
        assert count_regions_1d(net, UNIT).activation == 2**d
        few = count_regions_1d(net, UNIT, tol=0, spacing=1e-13)
        assert few.activation < 2**d


def test_pitfall_equal_slopes():
    """A loose tolerance merges pieces; slopes carried exactly need none."""
    net = triangle_net_layers(
        np.random.default_rng(0).uniform(0.1, 0.9, 15), "concave"
    )
    assert count_regions_1d(net, UNIT) == (2**14, 2**14)
    loose = count_regions_1d(net, UNIT, slope_rtol=1e-6)
    assert loose.activation == 2**14 > loose.linear


def test_pitfall_dead_layers():
    dead = [([[1.0], [2.0]], [0.0, -1.0]), ([[-1.0, -1.0]], [-1.0]), OUTPUT]
    assert count_regions_1d(dead, (-1, 1)).linear == 1
    first = [([[1.0]], [-5.0]), OUTPUT]
    assert count_regions_1d(first, (-1, 1)) == (1, 1)


def test_pitfall_grid():
    """A grid sees some of 1024 regions, and never more than there are."""
    peaks = np.random.default_rng(3).uniform(0.2, 0.8, 11)
    net = triangle_net_layers(peaks, "concave")
    counts = [
        grid_pattern_count(net, (np.arange(n) + 0.5) / n) for n in (500, 5000)
    ]
    assert counts == sorted(counts)
    assert counts[0] < 500 and counts[1] < 1024
    assert count_regions_1d(net, UNIT).activation == 1024


def test_pitfall_domain():
    net = triangle_net_layers(np.full(6, 0.5), "convex")
    spans = [UNIT, (-1, 2), (0.0, 0.5), (0.2, 0.21)]
    counts = [count_regions_1d(net, s).activation for s in spans]
    assert counts == [32, 34, 16, 1]


def test_zero_bias_is_linear_on_the_half_line():
    layers = [(W, 0 * b) for W, b in he_network([1, 9, 9, 1], 4)]
    assert count_regions_1d(layers, UNIT) == (1, 1)
    assert count_regions_1d(layers, (-1, 1)).activation == 2


def test_random_shallow_networks_have_half_the_neurons():
    """Expectation 1 + n / 2: a kink -b/w lies inside with chance one half.

    The count is 1 + Binomial(n, 1/2); five standard errors."""
    rng = np.random.default_rng(6)
    n, runs = 20, 400
    counts = [
        count_regions_1d(default_network([1, n, 1], rng), (-1, 1)).activation
        for _ in range(runs)
    ]
    error = np.sqrt(n / 4 / runs)
    assert abs(np.mean(counts) - (1 + n / 2)) < 5 * error


def test_rational_waves_agree_with_cells_by_hand():
    """Knots of T_b o T_a: 0, ab, a, 1 - (1 - a) b, 1."""
    a, b = 0.3, 0.6
    knots = breakpoints_1d(wave_network([a, b]), UNIT).knots
    assert np.allclose(knots, [0, a * b, a, 1 - (1 - a) * b, 1], atol=1e-15)


@given(SEEDS)
@settings(max_examples=30, deadline=None)
def test_segments_are_restrictions(seed):
    rng = np.random.default_rng(seed)
    D = int(rng.integers(1, 6))
    layers = he_network([D, 7, 7, 2], rng)
    p, q = rng.normal(size=(2, D))
    knots, outputs = breakpoints_on_segment(layers, p, q)
    t = rng.uniform(size=100)
    points = (1 - t)[:, None] * p + t[:, None] * q
    y = relu_forward(layers, points)
    for j in range(2):
        gap = np.interp(t, knots, outputs[:, j]) - y[:, j]
        assert np.abs(gap).max() < 1e-10
    there = count_regions_on_segment(layers, p, q)
    assert there == count_regions_on_segment(layers, q, p)
    assert there.activation == len(knots) - 1


def test_batch_is_a_loop():
    rng = np.random.default_rng(8)
    nets = [default_network([1, 6, 5, 2], rng) for _ in range(7)]
    W = [np.stack([net[i][0] for net in nets]) for i in range(3)]
    b = [np.stack([net[i][1] for net in nets]) for i in range(3)]
    batch = count_regions_1d_batched(W, b, (-1, 1))
    assert batch.tolist() == [
        list(count_regions_1d(net, (-1, 1))) for net in nets
    ]


def test_bad_input_is_named():
    net = wave_network([0.5])
    broken = [(np.array([[np.nan]]), [0.0]), OUTPUT]
    for call, word in (
        (lambda: count_regions_1d(net, (1, 1)), "interval"),
        (lambda: count_regions_1d(net, (0, np.inf)), "interval"),
        (lambda: count_regions_1d(net, (0, 1, 2)), "interval"),
        (lambda: count_regions_1d([], UNIT), "layers"),
        (lambda: count_regions_1d(broken, UNIT), "layers"),
        (lambda: count_regions_1d(he_network([2, 3, 1], 0), UNIT), "input"),
        (lambda: count_regions_1d(net, UNIT, 1.0), "negative_slope"),
        (lambda: count_regions_1d(net, UNIT, tol=-1), "tol"),
        (lambda: count_regions_1d(net, UNIT, slope_rtol=2), "slope_rtol"),
        (lambda: breakpoints_on_segment(net, [0], [0]), "differ"),
        (lambda: breakpoints_on_segment(net, [0, 1], [0]), "start"),
        (lambda: grid_pattern_count(net, [[np.nan]]), "x must"),
        (lambda: count_regions_1d_batched([], [], UNIT), "weights"),
        (
            lambda: count_regions_1d_batched(
                [np.ones((2, 1, 1))], [np.ones((3, 1))], UNIT
            ),
            "runs",
        ),
    ):
        with pytest.raises(ValueError, match=word):
            call()
