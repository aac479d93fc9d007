"""Fits of peaks: gradients, exact members, floors, bad input."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from helpers.linear_regions import peak_fits
from helpers.linear_regions.networks import (
    block_diagonal_layers,
    relu_forward,
    vee_net_layers,
)
from helpers.linear_regions.representable import fold_asymmetry_bound
from helpers.linear_regions.targets import TARGETS
from helpers.linear_regions.triangles import triangle_sum, triangle_wave

SEEDS = st.integers(0, 2**32 - 1)
X = np.linspace(0, 1, 200)


def difference(function, at, step=1e-6):
    moves = step * np.eye(at.size)
    return np.array(
        [(function(at + m) - function(at - m)) / (2 * step) for m in moves]
    )


def close_off_bends(found, wanted):
    """Differences that straddle a bend are wrong; they are few."""
    error = np.abs(found - wanted) / (1 + np.abs(wanted))
    assert np.quantile(error, 0.95) < 1e-6


@settings(max_examples=15, deadline=None)
@given(SEEDS)
def test_gradient_of_waves_at_fixed_scales(seed):
    rng = np.random.default_rng(seed)
    a, s = rng.uniform(0.2, 0.8, 5), rng.normal(size=5)
    by_peak, by_point = peak_fits.wave_gradient(X, a, s)
    close_off_bends(by_peak, difference(lambda p: s @ triangle_wave(X, p), a))
    inner = X[1:-1]
    step = 1e-7
    slope = s @ (
        triangle_wave(inner + step, a) - triangle_wave(inner - step, a)
    )
    error = np.abs(by_point[1:-1] - slope / (2 * step))
    assert np.quantile(error, 0.9) < 1e-5 * (1 + np.abs(by_point).max())


@settings(max_examples=15, deadline=None)
@given(SEEDS)
def test_vee_is_the_network_and_its_gradient(seed):
    rng = np.random.default_rng(seed)
    a, u = rng.uniform(0.2, 0.8, 5), rng.uniform(-3, 3, 150)
    net = relu_forward(vee_net_layers(a), u).ravel()
    np.testing.assert_allclose(peak_fits.vee_values(u, a), net, atol=1e-12)
    by_peak, by_point = peak_fits.vee_jacobian(u, a)
    close_off_bends(
        by_peak, difference(lambda p: peak_fits.vee_values(u, p), a)
    )
    step = 1e-7
    slope = peak_fits.vee_values(u + step, a)
    slope = (slope - peak_fits.vee_values(u - step, a)) / (2 * step)
    assert np.quantile(np.abs(by_point - slope), 0.9) < 1e-5


def test_parabola_is_found():
    fit = peak_fits.best_peaks(X, X**2, 4, "convex", rng=0, starts=3)
    np.testing.assert_allclose(fit.peaks[:3], 0.5, atol=0.01)
    assert fit.mse <= np.mean(
        (triangle_sum(X, [0.5] * 5, "convex") - X**2) ** 2
    )
    assert fit.scales.shape == (4,)


@pytest.mark.parametrize("name", ["x^3", "sin"])
def test_fits_stop_at_the_floor(name):
    f = TARGETS[name]
    x = np.linspace(0, 1, 500)
    floor = fold_asymmetry_bound(f).value
    tied = peak_fits.best_peaks(x, f(x), 5, f.mode, rng=1, starts=6)
    free = peak_fits.best_free_scales(x, f(x), 5, rng=1, starts=6)
    # a mean over 500 points is within 2 % of the integral
    assert 0.98 * floor <= free.mse <= tied.mse <= 2 * floor
    np.testing.assert_allclose(
        np.mean((triangle_sum(x, tied.peaks, f.mode) - f(x)) ** 2), tied.mse
    )
    waves = triangle_wave(x, free.peaks)
    np.testing.assert_allclose(
        np.mean((x + free.scales @ waves - f(x)) ** 2), free.mse
    )


def test_wrapped_fit_is_a_network():
    fit = peak_fits.best_wrapped(X, X**3, 3, 2, rng=3, starts=1)
    net = block_diagonal_layers(
        fit.peaks, fit.A[:, None], fit.b, fit.C[None], [fit.c]
    )
    error = relu_forward(net, X).ravel() - X**3
    np.testing.assert_allclose(np.mean(error**2), fit.mse, rtol=1e-6)
    assert fit.mse < fold_asymmetry_bound(TARGETS["x^3"]).value


def test_wrapped_outcome_is_one_start():
    x = np.linspace(0, 1, 500)
    fit = peak_fits.best_wrapped(x, x**2, 2, 1, rng=4, starts=1)
    assert peak_fits.wrapped_outcome("x^2", 2, 1, 4) == {"mse": fit.mse}


def test_same_seed_same_fit():
    one, two = (
        peak_fits.best_peaks(X, X**3, 3, "convex", rng=7, starts=2)
        for _ in range(2)
    )
    assert one.mse == two.mse


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: peak_fits.best_peaks([], [], 2, "convex", 0), "x and y"),
        (lambda: peak_fits.best_peaks(X, X[1:], 2, "convex", 0), "x and y"),
        (lambda: peak_fits.best_peaks(X, X * np.nan, 2, "convex", 0), "fin"),
        (lambda: peak_fits.best_peaks(X - 1, X, 2, "convex", 0), "x must"),
        (lambda: peak_fits.best_peaks(X, X, 0, "convex", 0), "depth"),
        (lambda: peak_fits.best_peaks(X, X, 2, "flat", 0), "mode must"),
        (lambda: peak_fits.best_free_scales(X, X, 2, 0, starts=0), "starts"),
        (lambda: peak_fits.best_free_scales(X, X, 2, 0, clamp=0.5), "clamp"),
        (lambda: peak_fits.best_wrapped(X, X, 2, 0, 0), "blocks"),
        (lambda: peak_fits.best_peaks(X, X, 2, "convex", None), "rng must"),
        (lambda: peak_fits.wave_gradient(X, [0.5], [1.0, 2]), "one length"),
        (lambda: peak_fits.vee_values(X, [0.5]), "at least 2"),
        (lambda: peak_fits.vee_jacobian(X, [0.5, 1.5]), "between 0 and 1"),
    ],
)
def test_bad_input_is_named(call, message):
    with pytest.raises(ValueError, match=message):
        call()
