"""Representability: hand values, the nearest function, laws, bad input."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from helpers.linear_regions.representable import (
    fold_asymmetry,
    fold_asymmetry_bound,
    recover_peaks,
    two_fold_bound,
)
from helpers.linear_regions.targets import TARGETS
from helpers.linear_regions.triangles import (
    triangle,
    triangle_sum,
    triangle_wave,
)

SEEDS = st.integers(0, 2**32 - 1)


def cube(x):
    return x**3


def cube_floor(a):
    """a (1-a) int delta^2 for x^3, by exact arithmetic on polynomials."""
    P = np.polynomial.Polynomial
    low, high = P([0, a]), P([1, -(1 - a)])
    delta = (low**3 - low) - (high**3 - high)
    square = (delta**2).integ()
    return a * (1 - a) * (square(1) - square(0))


def test_floor_of_the_cube_against_polynomials():
    found = fold_asymmetry_bound(cube)
    near = np.linspace(-1e-3, 1e-3, 201) + found.peak
    floors = np.array([cube_floor(a) for a in near])
    np.testing.assert_allclose(found.value, floors.min(), rtol=1e-9)
    everywhere = [cube_floor(a) for a in np.linspace(0.01, 0.99, 99)]
    assert found.value < min(everywhere)


@pytest.mark.parametrize("name", TARGETS)
def test_floor_is_the_distance_to_functions_of_one_fold(name):
    """Conditional means over a fine grid, at the minimising peak."""
    f = TARGETS[name]
    found = fold_asymmetry_bound(f)
    a, n = found.peak, 4000
    v = (np.arange(n) + 0.5) / n
    low, high = f(a * v) - a * v, f(1 - (1 - a) * v) - 1 + (1 - a) * v
    mean = a * low + (1 - a) * high
    mse = np.mean(a * (low - mean) ** 2 + (1 - a) * (high - mean) ** 2)
    np.testing.assert_allclose(found.value, mse, rtol=1e-5, atol=1e-15)


@settings(max_examples=25, deadline=None)
@given(SEEDS, st.sampled_from(sorted(TARGETS)))
def test_no_sum_of_waves_beats_the_floor(seed, name):
    rng = np.random.default_rng(seed)
    f, depth = TARGETS[name], int(rng.integers(1, 6))
    peaks = rng.uniform(0.05, 0.95, depth)
    x = np.linspace(0, 1, 4001)
    waves = triangle_wave(x, peaks)
    scales = np.linalg.lstsq(waves.T, f(x) - x, rcond=None)[0]
    error = f(x) - x - scales @ waves
    fixed = (peaks[0] - 1e-9, peaks[0] + 1e-9)
    # a grid mean of squares differs from the integral by about 1 / n
    assert np.mean(error**2) >= 0.99 * fold_asymmetry_bound(f, fixed).value
    sup = fold_asymmetry_bound(f, fixed, norm="sup").value
    assert np.abs(error).max() >= sup - 1e-3 * sup - 1e-9


def test_floor_of_members_is_zero():
    a = np.random.default_rng(5).uniform(0.2, 0.8, 30)

    def member(x):
        return triangle_sum(x, a, "concave")

    near = (a[0] - 1e-9, a[0] + 1e-9)
    assert fold_asymmetry_bound(member, near).value < 1e-15
    assert fold_asymmetry_bound(member, near, norm="sup").value < 1e-8
    assert fold_asymmetry_bound(TARGETS["x^2"]).value < 1e-15


def test_sup_floor_is_attained_by_the_midpoint():
    found = fold_asymmetry_bound(cube, norm="sup")
    a, x = found.peak, np.linspace(0, 1, 20001)
    v = triangle(x, a)
    low, high = a * v, 1 - (1 - a) * v
    H = ((cube(low) - low) + (cube(high) - high)) / 2
    np.testing.assert_allclose(
        np.abs(cube(x) - x - H).max(), found.value, rtol=1e-5
    )


@pytest.mark.parametrize("name", TARGETS)
def test_free_slope_is_the_least_over_slopes(name):
    f = TARGETS[name]
    free = fold_asymmetry_bound(f, (0.05, 0.95), free_slope=True)
    at = (free.peak - 1e-9, free.peak + 1e-9)

    def floor(slope):
        # taking off slope * x in place of x
        return fold_asymmetry_bound(lambda x: f(x) + (1 - slope) * x, at).value

    np.testing.assert_allclose(floor(free.slope), free.value, atol=1e-13)
    assert floor(free.slope + 0.01) > free.value
    assert floor(free.slope - 0.01) > free.value


@settings(max_examples=20, deadline=None)
@given(SEEDS)
def test_two_folds_by_least_squares(seed):
    """The same distance from a discretised problem."""
    rng = np.random.default_rng(seed)
    a0, a1 = rng.uniform(0.2, 0.8, 2)
    n = 400
    v = (np.arange(n) + 0.5) / n
    inner = np.stack([a1 * v, 1 - (1 - a1) * v])
    x = np.concatenate([a0 * inner, 1 - (1 - a0) * inner])
    share = np.array([a1, 1 - a1])
    weight = np.r_[a0 * share, (1 - a0) * share][:, None] / n
    root = np.sqrt(weight)
    # unknowns: one scale and one value of H for each v, eliminated by hand
    total = weight.sum(axis=0)
    g = cube(x) - x
    w = np.concatenate([inner, inner])
    g = root * (g - (weight * g).sum(axis=0) / total)
    w = root * (w - (weight * w).sum(axis=0) / total)
    scale = np.linalg.lstsq(w.reshape(-1, 1), g.ravel(), rcond=None)[0]
    distance = np.sum((g - scale * w) ** 2)
    np.testing.assert_allclose(two_fold_bound(cube, a0, a1), distance, 1e-4)


def test_two_folds_broadcast_and_exceed_one_fold():
    a0 = np.linspace(0.1, 0.9, 9)
    both = two_fold_bound(cube, a0[:, None], [0.3, 0.5])
    assert both.shape == (9, 2)
    one = [fold_asymmetry_bound(cube, (a - 1e-9, a + 1e-9)).value for a in a0]
    assert np.all(both >= np.array(one)[:, None] - 1e-12)
    x = np.linspace(0, 1, 3001)
    waves = triangle_wave(x, [0.4, 0.3, 0.6])
    s = np.linalg.lstsq(waves.T, cube(x) - x, rcond=None)[0]
    mse = np.mean((cube(x) - x - s @ waves) ** 2)
    assert mse >= 0.99 * two_fold_bound(cube, 0.4, 0.3)


@settings(max_examples=10, deadline=None)
@given(SEEDS, st.sampled_from(["concave", "convex"]))
def test_peaks_of_members_are_recovered(seed, mode):
    a = np.random.default_rng(seed).uniform(0.2, 0.8, 45)

    def member(x):
        return triangle_sum(x, a, mode)

    sharp = recover_peaks(member, 4, mode, by="fold")
    np.testing.assert_allclose(sharp.peaks, a[:5], atol=1e-9)
    assert sharp.fold.max() < 1e-9
    assert np.abs(sharp.compatibility[:-1]).max() < 1e-9
    # with later peaks up to 0.8 the gap falls off like |x - a|^8 at its top:
    # rounding, 1e-16, hides a distance of about 1e-2
    flat = recover_peaks(member, 1, mode)
    np.testing.assert_allclose(flat.peaks, a[:2], atol=0.03)


def test_sine_is_no_member():
    found = recover_peaks(TARGETS["sin"], 2, "concave")
    place = 2 / np.pi * np.arccos(2 / np.pi)
    np.testing.assert_allclose(found.peaks[0], place, atol=1e-7)
    assert found.fold[0] > 0.08
    assert abs(found.compatibility[0]) > 0.09


def test_fold_asymmetry_by_hand():
    # a = 1/4, v = 1: both points are the peak; v = 0: the two ends
    delta = fold_asymmetry(cube, 0.25, [0.0, 0.5, 1.0])
    low, high = 0.125**3 - 0.125, 0.625**3 - 0.625
    np.testing.assert_allclose(delta, [0, low - high, 0], atol=1e-15)
    assert fold_asymmetry(cube, [[0.2, 0.5]], [0.1, 0.2]).shape == (1, 2, 2)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: fold_asymmetry(cube, 1.0, [0.5]), "peak must"),
        (lambda: fold_asymmetry(cube, 0.5, [np.nan]), "v must"),
        (lambda: fold_asymmetry(lambda x: 1.0, 0.5, [0.5]), "one value"),
        (lambda: fold_asymmetry(np.log, 0.5, [0.0]), "finite"),
        (lambda: fold_asymmetry_bound(cube, (0.5, 0.5)), "peak_range"),
        (lambda: fold_asymmetry_bound(cube, (0.0, 0.5)), "peak_range"),
        (lambda: fold_asymmetry_bound(cube, norm="L1"), "norm must"),
        (
            lambda: fold_asymmetry_bound(cube, norm="sup", free_slope=True),
            "free_slope",
        ),
        (lambda: two_fold_bound(cube, 0.5, 1.5), "second must"),
        (lambda: recover_peaks(cube, 0, "convex"), "depth must"),
        (lambda: recover_peaks(cube, 1, "both"), "mode must"),
        (lambda: recover_peaks(cube, 1, "convex", by="eye"), "by must"),
        (lambda: recover_peaks(cube, 1, "concave"), "nowhere positive"),
        (lambda: recover_peaks(lambda x: x / 2, 1, "convex"), "from 0 to 1"),
    ],
)
# one of the functions that must be refused divides by zero
@pytest.mark.filterwarnings("ignore:divide by zero")
def test_bad_input_is_named(call, message):
    with pytest.raises(ValueError, match=message):
        call()
