"""The networks whose regions are counted."""

from fractions import Fraction

import numpy as np
import pytest

from helpers.linear_regions.networks import check_layers, relu_forward
from helpers.linear_regions.random_networks import (
    benchmark_network,
    default_network,
    he_network,
    side_by_side,
    wave_network,
)
from helpers.linear_regions.triangles import triangle_wave


def test_variances():
    W, b = he_network([50, 400, 1], 0)[0]
    assert abs(W.var() / (2 / 50) - 1) < 0.05
    assert abs(b.std() / 0.3 - 1) < 0.2
    W, b = default_network([50, 400, 1], 0)[0]
    assert np.abs(W).max() <= 50**-0.5
    assert abs(W.var() / (1 / (3 * 50)) - 1) < 0.05


def test_seeds_are_those_of_the_benchmark():
    rng = np.random.default_rng(16030)
    first = rng.normal(size=(16, 2)) * np.sqrt(2 / 2)
    assert np.array_equal(benchmark_network(16, 3)[0][0], first)
    assert len(benchmark_network(16, 3)) == 4


@pytest.mark.parametrize("d", [1, 2, 5])
def test_wave_network_is_the_wave(d):
    peaks = np.random.default_rng(d).uniform(0.1, 0.9, d)
    x = np.linspace(0, 1, 501)
    wave = triangle_wave(x, peaks)[-1]
    net = relu_forward(wave_network(peaks), x)[:, 0]
    assert np.abs(net - wave).max() < 1e-12


def test_side_by_side_is_the_sum():
    first, second = wave_network([0.3, 0.6]), wave_network([0.5, 0.2])
    points = np.random.default_rng(0).uniform(size=(100, 2))
    both = relu_forward(side_by_side(first, second), points)
    apart = relu_forward(first, points[:, 0]) + relu_forward(
        second, points[:, 1]
    )
    assert np.abs(both - apart).max() < 1e-13


def test_fractions_stay_fractions():
    net = wave_network([Fraction(1, 3), Fraction(1, 2)])
    both = side_by_side(net, net)
    assert isinstance(both[1][0][0, 0], Fraction)
    assert both[1][0][0, 2] == 0
    floats = [(W.astype(float), b.astype(float)) for W, b in net]
    assert len(check_layers(floats)) == 3


def test_bad_input_is_named():
    for call, word in (
        (lambda: he_network([2], 0), "widths"),
        (lambda: he_network([2, 0, 1], 0), "widths"),
        (lambda: he_network([2, 3, 1], 0, -1), "bias_scale"),
        (lambda: default_network([], 0), "widths"),
        (lambda: benchmark_network(4, 0), "depth"),
        (lambda: wave_network([]), "peaks"),
        (lambda: wave_network([1.0]), "peaks"),
        (
            lambda: side_by_side(wave_network([0.5]), wave_network([0.5] * 2)),
            "layers",
        ),
    ):
        with pytest.raises(ValueError, match=word):
            call()
