"""Networks that compute sums of waves, and what they cost."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from helpers.linear_regions.costs import network_cost
from helpers.linear_regions.networks import (
    block_diagonal_layers,
    check_layers,
    hidden_values,
    relu_forward,
    triangle_net_layers,
    vee_net_layers,
)
from helpers.linear_regions.regions_1d import count_regions_1d
from helpers.linear_regions.triangles import (
    limit_scales,
    triangle_sum,
    triangle_wave,
)

X = np.linspace(0, 1, 2001)
PEAKS = arrays(float, st.integers(2, 9), elements=st.floats(0.1, 0.9))
MODES = st.sampled_from(["concave", "convex"])


def vee_formula(x, peaks):
    """1 - sum of waves in (x + 1) / 2, with mirrored later peaks."""
    hat = np.r_[peaks[0], 1 - np.asarray(peaks[1:])]
    s = np.cumprod(np.r_[1.0, (1 - hat[1:-1]) * hat[2:]])
    return 1 - s @ triangle_wave((np.asarray(x) + 1) / 2, hat[:-1])


@given(PEAKS, MODES)
def test_the_network_is_the_sum(peaks, mode):
    net = relu_forward(triangle_net_layers(peaks, mode), X).ravel()
    np.testing.assert_allclose(net, triangle_sum(X, peaks, mode), atol=1e-13)


@given(PEAKS, MODES)
def test_what_each_neuron_holds(peaks, mode):
    """The invariant: sum, wave, wave beyond the next peak, constant."""
    s = limit_scales(peaks, mode)
    waves = triangle_wave(X, peaks[:-1])
    sign = 1 if mode == "concave" else -1
    for k, z in enumerate(
        hidden_values(triangle_net_layers(peaks, mode), X)[:-1]
    ):
        size = s[k - 1] if k else 1.0
        wave = waves[k - 1] if k else X
        held = np.maximum(z, 0)
        total = X + sign * s[:k] @ waves[:k]
        wanted = [total, size * wave, size * np.maximum(wave - peaks[k], 0)]
        np.testing.assert_allclose(held[:, :3].T, wanted, atol=1e-13)
        np.testing.assert_allclose(held[:, 3], size)


@pytest.mark.parametrize("slope", [0.01, 0.1, 0.5, -0.5, -1.0, 2.0])
@pytest.mark.parametrize("mode", ["concave", "convex"])
def test_leaky_networks_compute_the_same(slope, mode):
    peaks = np.random.default_rng(1).uniform(0.2, 0.8, 7)
    layers = triangle_net_layers(peaks, mode, negative_slope=slope)
    net = relu_forward(layers, X, slope).ravel()
    np.testing.assert_allclose(net, triangle_sum(X, peaks, mode), atol=1e-12)


def test_own_scales():
    peaks, s = [0.3, 0.6, 0.4], [0.5, 0.1]
    net = relu_forward(triangle_net_layers(peaks, "concave", s), X).ravel()
    np.testing.assert_allclose(
        net, triangle_sum(X, peaks, "concave", s), atol=1e-14
    )


def test_one_layer_too_early_is_the_paper_s_index():
    """With the threshold of one peak and the slopes of the next, the
    triangle does not come back to zero: S (a0 - a1) / (a1 (1 - a1))."""
    a0, a1 = 0.3, 0.6
    x = 1.0
    end = x / a1 - (x - a0) / (a1 * (1 - a1))
    assert abs(end - (a0 - a1) / (a1 * (1 - a1))) < 1e-15 and end < -1


@given(PEAKS)
def test_vee_networks(peaks):
    x = np.linspace(-1, 1, 2001)
    net = relu_forward(vee_net_layers(peaks), x).ravel()
    np.testing.assert_allclose(net, vee_formula(x, peaks), atol=1e-13)
    ends = relu_forward(vee_net_layers(peaks), [-1, 2 * peaks[0] - 1, 1])
    np.testing.assert_allclose(ends.ravel(), [1, 0, 1], atol=1e-13)


@pytest.mark.parametrize("d", [1, 2, 4, 7])
def test_vee_of_halves_is_the_square(d):
    x = np.linspace(-1, 1, 2 ** (d + 3) + 1)
    net = relu_forward(vee_net_layers([0.5] * (d + 1)), x).ravel()
    assert abs(np.abs(net - x**2).max() - 4.0**-d) < 1e-14


def test_vee_continues_straight_outside():
    net = vee_net_layers([0.5] * 11)
    y = relu_forward(net, [1.0, 1.5, 2.0, 3.0]).ravel()
    slope = np.diff(y) / [0.5, 0.5, 1.0]
    np.testing.assert_allclose(slope, 2 - 2.0**-9, atol=1e-12)
    assert np.ptp(slope) < 1e-12


@given(st.integers(0, 10**6))
def test_blocks_are_affine_maps_around_vee_networks(seed):
    rng = np.random.default_rng(seed)
    k, D, o = rng.integers(1, 4, 3)
    peaks = rng.uniform(0.2, 0.8, (k, 4))
    A, b = rng.normal(size=(k, D)), rng.normal(size=k)
    C, c = rng.normal(size=(o, k)), rng.normal(size=o)
    x = rng.normal(size=(20, D))
    inner = x @ A.T + b
    each = [
        relu_forward(vee_net_layers(peaks[j]), inner[:, j]).ravel()
        for j in range(k)
    ]
    net = relu_forward(block_diagonal_layers(peaks, A, b, C, c), x)
    np.testing.assert_allclose(net, np.stack(each, 1) @ C.T + c, atol=1e-11)


def test_costs_by_hand():
    assert network_cost([1, 4, 4, 4, 4, 4, 1])[:2] == (93, 72)
    assert network_cost([1, 31, 1])[:2] == (94, 62)
    dense = network_cost([1] + [128] * 5 + [1])
    blocks = network_cost([1] + [128] * 5 + [1], block=4)
    gain = dense.multiplications - blocks.multiplications
    assert gain == 65_536 - 2_048
    assert network_cost([2, 3], itemsize=4).bytes == 4 * 9


@given(st.lists(st.integers(1, 9), min_size=2, max_size=5))
def test_costs_count_the_entries_of_a_network(widths):
    layers = [
        (np.ones((m, n)), np.ones(m))
        for n, m in zip(widths, widths[1:], strict=False)
    ]
    entries = sum(W.size + b.size for W, b in layers)
    assert network_cost(widths).parameters == entries


GOOD = triangle_net_layers([0.5, 0.5, 0.5], "convex")


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: check_layers([]), "at least one layer"),
        (lambda: check_layers([(np.ones((0, 2)), [])]), r"layers\[0\]: W"),
        (lambda: check_layers([([[1.0]], [1.0, 2.0])]), r"b must have shape"),
        (lambda: check_layers([*GOOD, ([[1.0, 1.0]], [0.0])]), "1 columns"),
        (lambda: check_layers([([[np.nan]], [0.0])]), "finite"),
        (lambda: relu_forward(GOOD, np.ones((3, 2))), r"shape \(n, 1\)"),
        (lambda: relu_forward(GOOD, [np.nan]), "x must be finite"),
        (lambda: relu_forward(GOOD, X, 1.0), "negative_slope must be"),
        (
            lambda: triangle_net_layers([0.5] * 3, "convex", [0.1, -0.1]),
            "scales must be positive, got -0.1",
        ),
        (lambda: triangle_net_layers([0.5, 1.5], "convex"), "peaks must lie"),
        (lambda: vee_net_layers([0.5]), "at least 2"),
        (lambda: vee_net_layers([[0.5, 0.5]]), "one vector"),
        (
            lambda: block_diagonal_layers([0.5] * 2, [[1]], [0], [[1]], [0]),
            r"shape \(k, d \+ 1\)",
        ),
        (
            lambda: block_diagonal_layers(
                [[0.5] * 2], [[1.0]] * 2, [0.0] * 2, [[1.0] * 2], [0.0]
            ),
            "A must have 1 rows",
        ),
        (lambda: network_cost([4]), "two or more"),
        (lambda: network_cost([1, 4.5, 1]), "positive integers"),
        (lambda: network_cost([1, 6, 6, 1], block=4), "divides the hidden"),
    ],
)
def test_bad_input(call, words):
    with pytest.raises(ValueError, match=words):
        call()


@pytest.mark.parametrize("d", [2, 3, 4, 6])
def test_lowering_the_last_wave_splits_every_valley(d):
    """Two new ends at each inner valley, one at 0 and one at 1; and at
    least 2^d regions under noise."""
    rng = np.random.default_rng(d)
    net = triangle_net_layers(rng.uniform(0.25, 0.75, d + 1), "concave")
    lowered = [(W.copy(), b.copy()) for W, b in net]
    lowered[d - 1][1][1] -= 1e-9
    found = count_regions_1d(lowered, (0, 1)).activation
    assert found == 2**d + 2 ** (d - 1)
    for _ in range(10):
        noisy = [
            (
                W + 1e-8 * rng.normal(size=W.shape),
                b + 1e-8 * rng.normal(size=b.shape),
            )
            for W, b in net
        ]
        assert count_regions_1d(noisy, (0, 1)).activation >= 2**d
