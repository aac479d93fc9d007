"""Limits of sums of waves: hand values, other routes, laws, bad input."""

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import binom

from helpers.linear_regions import limits
from helpers.linear_regions.cells import cell_slopes, wave_cells
from helpers.linear_regions.triangles import (
    limit_scales,
    triangle,
    triangle_sum,
    triangle_wave,
)

SEEDS = st.integers(0, 2**32 - 1)


def random_peaks(seed, size, low=0.1, high=0.9):
    return np.random.default_rng(seed).uniform(low, high, size)


# --- the distribution function -------------------------------------------


def test_cdf_of_the_parabola_is_the_identity():
    x = np.linspace(0, 1, 33)
    np.testing.assert_allclose(
        limits.limit_derivative_cdf(x, [0.5] * 20), x, atol=1e-15
    )


def test_cdf_by_hand_at_two_levels():
    # 0.3: mass 0.7 on the left; its left part has length 0.09, mass 0.49;
    # the right cell falls, its part next to the peak has length 0.49
    x = [0.0, 0.09, 0.3, 0.79, 1.0]
    np.testing.assert_allclose(
        limits.limit_derivative_cdf(x, [0.3, 0.3]), [0, 0.49, 0.7, 0.79, 1]
    )


@settings(max_examples=25, deadline=None)
@given(SEEDS)
def test_cdf_is_what_the_slopes_of_long_sums_converge_to(seed):
    a = random_peaks(seed, 15, 0.3, 0.7)
    level = 8
    masses = limits.cell_shares(a[:level]).masses
    for mode, side in (("convex", 1 - a[0]), ("concave", a[0])):
        sign = 1 if mode == "convex" else -1
        slopes = cell_slopes(a[:-1], limit_scales(a, mode)).slopes
        first = 1 - sign * slopes  # slope of F on each cell
        per_cell = first.reshape(2**level, -1)
        below = np.r_[0, np.cumsum(masses)]
        wanted = (below if sign > 0 else 1 - below) / side
        low, high = per_cell.min(axis=1), per_cell.max(axis=1)
        slack = 0.7**14 / 0.3
        if sign > 0:
            assert np.all(low >= wanted[:-1] - slack)
            assert np.all(high <= wanted[1:] + slack)
        else:
            assert np.all(high <= wanted[:-1] + slack)
            assert np.all(low >= wanted[1:] - slack)


@settings(max_examples=25, deadline=None)
@given(SEEDS)
def test_cdf_conjugates_the_triangles(seed):
    a = random_peaks(seed, 40, 0.3, 0.7)
    x = np.random.default_rng(seed).random(50)
    left = triangle(limits.limit_derivative_cdf(x, a), 1 - a[0])
    right = limits.limit_derivative_cdf(triangle(x, a[0]), a[1:])
    # the function is only Hölder with exponent 0.3, so that a rounding error
    # of 1e-16 in its argument may cost as much as 2e-5
    np.testing.assert_allclose(left, right, atol=2e-5)


@settings(max_examples=20, deadline=None)
@given(SEEDS)
def test_cdf_integrates_to_the_convex_limit(seed):
    # exact at the cells' ends: the integral is a sum over finer cells
    a = random_peaks(seed, 40, 0.3, 0.7)
    knots = wave_cells(a[:16]).knots
    M = limits.limit_derivative_cdf(knots, a)
    steps = np.diff(knots) * (M[:-1] + M[1:]) / 2
    F = np.r_[0, np.cumsum(steps)] / (1 - a[0])
    np.testing.assert_allclose(
        F, triangle_sum(knots, a, "convex"), atol=0.7**16
    )


@settings(max_examples=25, deadline=None)
@given(SEEDS)
def test_cdf_is_monotone_and_has_mean_first_peak(seed):
    a = random_peaks(seed, 12, 0.3, 0.7)
    lengths, masses = limits.cell_shares(a)
    knots = wave_cells(a).knots
    values = limits.limit_derivative_cdf(knots, a)
    # knots are rounded to 1e-16 and the shortest cell, of mass 1e-2, may be
    # as short as 5e-7
    np.testing.assert_allclose(np.diff(values), masses, atol=1e-10)
    assert np.all(np.diff(values) > 0)
    mean = np.sum(masses * (knots[:-1] + knots[1:]) / 2)
    assert abs(mean - a[0]) <= lengths.max()


def test_drawn_points_have_the_distribution_function():
    a = random_peaks(8, 40)
    x = np.sort(limits.draw_limit_points(a, 20000, rng=1))
    M = limits.limit_derivative_cdf(x, a)
    # Kolmogorov: 2.2 / sqrt(n) is exceeded with probability 1e-4
    gap = np.abs(M - (np.arange(x.size) + 0.5) / x.size).max()
    assert gap < 2.2 / np.sqrt(x.size)
    other = limits.limit_derivative_cdf(x, 1 - a)
    assert np.abs(other - np.arange(x.size) / x.size).max() > 0.05


def test_cell_shares_follow_the_digits():
    a = [0.2, 0.6, 0.3]
    lengths, masses = limits.cell_shares(a)
    assert lengths.size == masses.size == 8
    np.testing.assert_allclose(lengths[0], 0.2 * 0.6 * 0.3)
    np.testing.assert_allclose(masses[0], 0.8 * 0.4 * 0.7)
    # last cell: right at a_0, then next to a valley twice
    np.testing.assert_allclose(lengths[-1], 0.8 * 0.6 * 0.3)
    np.testing.assert_allclose(masses[-1], 0.2 * 0.4 * 0.7)
    np.testing.assert_allclose([lengths.sum(), masses.sum()], 1)
    np.testing.assert_allclose(np.cumsum(lengths), wave_cells(a).knots[1:])


@given(SEEDS)
@settings(max_examples=20, deadline=None)
def test_largest_share_is_the_longest_and_the_heaviest(seed):
    a = random_peaks(seed, 9, 0.01, 0.99)
    lengths, masses = limits.cell_shares(a)
    share = limits.largest_share(a)
    np.testing.assert_allclose([lengths.max(), masses.max()], share)


# --- slopes at bends -----------------------------------------------------


def test_bend_factors_by_hand():
    # three waves: Sigma_0 = s0 - (s1 + s2 / a2) / (1 - a1)
    a, s = [0.3, 0.25, 0.5, 0.8], [1.0, 0.5, 0.1]
    wanted = [1 - (0.5 + 0.1 / 0.5) / 0.75, 0.5 - 0.1 / 0.5, 0.1]
    np.testing.assert_allclose(limits.bend_factors(a, s), wanted)


@settings(max_examples=25, deadline=None)
@given(SEEDS)
def test_bend_factors_with_the_recurrence_are_products(seed):
    a = random_peaks(seed, 12)
    s = limit_scales(a, "convex")
    wanted = [s[i] * np.prod(1 - a[i + 2 :]) for i in range(11)]
    np.testing.assert_allclose(limits.bend_factors(a, s), wanted, atol=1e-14)


@settings(max_examples=25, deadline=None)
@given(SEEDS, st.booleans())
def test_largest_jumps_against_all_cells(seed, perturbed):
    rng = np.random.default_rng(seed)
    a = rng.uniform(0.1, 0.9, 9)
    s = limit_scales(a, "concave")
    if perturbed:
        s = s * rng.uniform(0.5, 1.5, s.size)
        found = limits.largest_slope_jumps(a, scales=s)
    else:
        found = limits.largest_slope_jumps(a, "concave")
    fall = -np.diff(cell_slopes(a[:-1], s).slopes)
    for i, jump in enumerate(found):
        at_peaks = fall[2 ** (7 - i) - 1 :: 2 ** (8 - i)]
        largest = at_peaks[np.argmax(np.abs(at_peaks))]
        np.testing.assert_allclose(jump, largest, rtol=1e-6, atol=1e-9)


def test_largest_jumps_agree_on_both_ways_to_give_scales():
    a = random_peaks(1, 10)
    s = limit_scales(a, "convex")
    by_mode = limits.largest_slope_jumps(a, "convex")
    np.testing.assert_allclose(
        limits.largest_slope_jumps(a, scales=s), by_mode
    )
    np.testing.assert_allclose(limits.largest_slope_jumps(a, s0=s[0]), by_mode)


def test_largest_jumps_at_a_depth_where_every_factor_underflows():
    # peaks 1/2, 2/3, 3/4, ...: 2 (d+1) / (d (d+2)), by hand
    for d in (4, 18, 3000):
        a = (np.arange(d + 1) + 1) / (np.arange(d + 1) + 2)
        np.testing.assert_allclose(
            limits.largest_slope_jumps(a, "convex").max(),
            2 * (d + 1) / (d * (d + 2)),
        )


@settings(max_examples=25, deadline=None)
@given(SEEDS)
def test_end_slopes_are_the_outer_cells(seed):
    a = random_peaks(seed, 10)
    for mode in ("convex", "concave"):
        s = limit_scales(a, mode)
        slopes = cell_slopes(a[:-1], s).slopes
        np.testing.assert_allclose(
            limits.end_slopes(a, s[0]), [slopes[0], slopes[-1]]
        )


def test_end_slopes_of_summable_peaks():
    a = 1 / (np.arange(4000) + 2.0) ** 2
    # product over m >= 3 of 1 - 1/m^2 is 2/3
    slopes = limits.end_slopes(a, a[0] * a[1])
    np.testing.assert_allclose(slopes.left, 1 / 3, atol=2e-4)


# --- the tail ------------------------------------------------------------


@settings(max_examples=25, deadline=None)
@given(SEEDS, st.integers(0, 5))
def test_tail_sup_is_attained_at_the_peaks(seed, d):
    a = random_peaks(seed, 40)
    s = limit_scales(a, "concave")
    knots = wave_cells(a[: d + 1]).knots
    waves = triangle_wave(knots, a[:-1])
    tail = np.tensordot(s[d:], waves[d:], axes=1)
    sup = limits.tail_sup(a, s[0], d)
    np.testing.assert_allclose(sup, s[d], rtol=1e-12)
    np.testing.assert_allclose(tail[1::2], sup, rtol=1e-8, atol=1e-13)
    assert tail.max() <= sup + 1e-12


@settings(max_examples=25, deadline=None)
@given(SEEDS, st.integers(1, 12))
def test_tail_sup_is_at_most_a_quarter_each(seed, d):
    a = random_peaks(seed, d + 2, 0.001, 0.999)
    assert limits.tail_sup(a, 0.3, d) <= 0.3 * 4.0 ** -(d - 1)


@settings(max_examples=25, deadline=None)
@given(SEEDS, st.integers(0, 4))
def test_tail_is_a_profile_of_its_first_wave(seed, d):
    a = random_peaks(seed, 60)
    s = limit_scales(a, "convex")
    x = np.random.default_rng(seed).random(40)
    waves = triangle_wave(x, a[:-1])
    tail = np.tensordot(s[d:], waves[d:], axes=1)
    shape = limits.tail_profile(waves[d], a[d + 1 :])
    np.testing.assert_allclose(tail, s[d] * shape, rtol=1e-7, atol=1e-13)


def test_tail_profile_of_halves_is_a_parabola():
    y = np.linspace(0, 1, 9)
    np.testing.assert_allclose(
        limits.tail_profile(y, [0.5] * 40), 2 * y - y**2, atol=1e-15
    )


# --- masses and lengths --------------------------------------------------


@settings(max_examples=25, deadline=None)
@given(SEEDS)
def test_hellinger_affinity_of_the_cells(seed):
    a = random_peaks(seed, 8, 0.02, 0.98)
    lengths, masses = limits.cell_shares(a)
    np.testing.assert_allclose(
        limits.hellinger_affinity(a), np.sum(np.sqrt(lengths * masses))
    )


def test_hellinger_affinity_by_hand_and_underflow():
    assert limits.hellinger_affinity([0.5, 0.5]) == 1
    np.testing.assert_allclose(limits.hellinger_affinity([0.2, 0.1]), 0.48)
    assert limits.hellinger_affinity([0.001] * 5000) == 0


def test_hoelder_exponent_bounds_every_cell_and_is_attained():
    assert limits.hoelder_exponent(0.5) == 1
    golden = (np.sqrt(5) - 1) / 2  # 1 - g = g^2
    np.testing.assert_allclose(limits.hoelder_exponent(golden), 0.5)
    for a in (0.1, 0.3, 0.62):
        h = limits.hoelder_exponent(a)
        np.testing.assert_allclose(h, limits.hoelder_exponent(1 - a))
        lengths, masses = limits.cell_shares([a] * 10)
        ratio = masses / lengths**h
        np.testing.assert_allclose(ratio.max(), 1)
    np.testing.assert_array_less(limits.hoelder_exponent([0.2, 0.4]), 1)


def test_typical_exponent_of_equal_peaks():
    # entropy over Lyapunov exponent, from all cells of a level
    for a in (0.3, 0.4):
        lengths, masses = limits.cell_shares([a] * 12)
        found = np.sum(masses * np.log(masses))
        found /= np.sum(masses * np.log(lengths))
        entropy = (1 - a) * np.log(1 - a) + a * np.log(a)
        stretch = (1 - a) * np.log(a) + a * np.log(1 - a)
        np.testing.assert_allclose(found, entropy / stretch)
        assert limits.hoelder_exponent(a) < found < 1


def test_variation_support_by_hand():
    # all of the short cell (0.3, mass 0.7), and 2/3 of the long one
    np.testing.assert_allclose(
        limits.variation_support([0.3], 0.9), 0.3 + 0.7 * (0.2 / 0.3)
    )
    np.testing.assert_allclose(limits.variation_support([0.5] * 9, 0.9), 0.9)
    assert limits.variation_support([0.3], 0) == 0


def test_variation_support_against_the_binomial_law():
    a, n = 0.3, 12
    k = np.arange(n + 1)  # digits that are short and heavy, in order
    mass, length = binom.pmf(k, n, 1 - a), binom.pmf(k, n, a)
    heavy = np.r_[0, np.cumsum(mass[::-1])], np.r_[0, np.cumsum(length[::-1])]
    np.testing.assert_allclose(
        limits.variation_support([a] * n, 0.9), np.interp(0.9, *heavy)
    )


# --- secants -------------------------------------------------------------


@pytest.mark.parametrize("level", [0, 1, 2])
def test_secants_by_exact_slopes_at_bends(level):
    """Slopes of the limit at bends are slopes of finite sums, in fractions."""
    a = [Fraction(n, 20) for n in (6, 11, 8, 9, 13, 7, 10, 5)]
    s = [(1 - a[0]) * a[1]]
    for i in range(1, len(a) - 1):
        s.append(s[-1] * (1 - a[i]) * a[i + 1])

    def limit_slope(n, index):
        """Slope of f_n on cell ``index`` of level n: G' at its peak."""
        slope = Fraction(0)
        for m in range(n):
            cells = wave_cells(a[: m + 1], exact=True)
            cell = index >> (n - m - 1)
            length = cells.knots[cell + 1] - cells.knots[cell]
            slope += (1 if cells.rising[cell] else -1) * s[m] / length
        return slope

    bend = wave_cells(a[: level + 1], exact=True).knots[1]
    home = limit_slope(level, 0)
    L = 1 / bend
    R = -L * a[level] / (1 - a[level])
    found = limits.secant_factors(np.array(a, float), level, float(s[0]))
    for k, n in enumerate(range(level + 1, len(a) - 1)):
        knots = wave_cells(a[: n + 1], exact=True).knots
        here = int(np.searchsorted(knots, bend))
        left, right = knots[here - 1], knots[here + 1]
        cell = here // 2 - 1
        for end, index, slope in ((left, cell, L), (right, cell + 1, R)):
            secant = (limit_slope(n, index) - home) / (end - bend)
            np.testing.assert_allclose(
                float(secant), -(float(slope) ** 2) * found.curvatures[k]
            )
            np.testing.assert_allclose(
                float(abs(end - bend)),
                found.distances[k] / float(abs(slope)),
            )


def test_slopes_at_peaks_are_the_neighbours_of_the_knots():
    a = random_peaks(3, 5)
    slopes = cell_slopes(a, np.ones(5)).slopes
    knots = wave_cells(a).knots
    for level in range(5):
        peaks = wave_cells(a[: level + 1]).knots[1::2]
        place = np.searchsorted(knots, peaks - 1e-12)
        left, right = limits.slopes_at_peaks(slopes, level)
        np.testing.assert_array_equal(left, slopes[place - 1])
        np.testing.assert_array_equal(right, slopes[place])


# --- bad input -----------------------------------------------------------


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: limits.limit_derivative_cdf([np.nan], [0.5]), "x must"),
        (lambda: limits.limit_derivative_cdf([1.2], [0.5]), "x must"),
        (lambda: limits.limit_derivative_cdf([0.2], []), "peaks must"),
        (lambda: limits.cell_shares([0.5] * 40), "cells"),
        (lambda: limits.draw_limit_points([0.5], 0, 1), "n must"),
        (lambda: limits.cell_shares([[0.5]]), "one vector"),
        (lambda: limits.largest_share([1.0]), "between 0 and 1"),
        (lambda: limits.bend_factors([0.5, 0.5], [0.1, 0.1]), "scales must"),
        (lambda: limits.bend_factors([0.5, 0.5], [np.nan]), "scales must"),
        (lambda: limits.largest_slope_jumps([0.5] * 3), "exactly one"),
        (
            lambda: limits.largest_slope_jumps([0.5] * 3, "convex", s0=1.0),
            "exactly one",
        ),
        (lambda: limits.end_slopes([0.5, 0.5], -1.0), "s0 must"),
        (lambda: limits.tail_sup([0.5] * 3, 0.25, 2), "peaks must"),
        (lambda: limits.tail_sup([0.5] * 3, 0.25, -1), "d must"),
        (lambda: limits.tail_profile([2.0], [0.5, 0.5]), "x must"),
        (lambda: limits.hellinger_affinity([np.nan]), "between 0 and 1"),
        (lambda: limits.hoelder_exponent(0.0), "peak must"),
        (lambda: limits.variation_support([0.5], 1.5), "share must"),
        (lambda: limits.secant_factors([0.5] * 4, 2, 0.1), "level must"),
        (lambda: limits.secant_factors([0.5] * 4, 0, 0.0), "s0 must"),
        (lambda: limits.slopes_at_peaks([1.0, 2, 3], 0), "slopes must"),
        (lambda: limits.slopes_at_peaks([1.0, 2], 1), "level must"),
    ],
)
def test_bad_input_is_named(call, message):
    with pytest.raises(ValueError, match=message):
        call()
