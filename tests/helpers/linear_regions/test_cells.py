"""Cells of waves from their peaks alone."""

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from helpers.linear_regions.cells import (
    LARGEST_DEPTH,
    cell_address,
    cell_slopes,
    wave_cells,
)
from helpers.linear_regions.triangles import (
    limit_scales,
    triangle_sum,
    triangle_wave,
)

PEAKS = arrays(float, st.integers(1, 8), elements=st.floats(0.05, 0.95))


def test_two_peaks_by_hand():
    """Rising cells split a : 1 - a, falling ones 1 - a : a."""
    knots, rising = wave_cells([0.5, 0.25])
    np.testing.assert_array_equal(knots, [0, 0.125, 0.5, 0.875, 1])
    assert rising.tolist() == [True, False, True, False]


@given(PEAKS)
def test_the_wave_runs_between_zero_and_one_on_each_cell(peaks):
    knots, rising = wave_cells(peaks)
    assert knots.size == 2**peaks.size + 1 and rising.size == 2**peaks.size
    wave = triangle_wave(np.clip(knots, 0, 1), peaks)[-1]
    # a knot off by one rounding moves the wave by its slope times that
    steep = 1 / np.prod(np.minimum(peaks, 1 - peaks))
    np.testing.assert_allclose(
        wave, np.arange(knots.size) % 2, atol=4e-16 * steep * peaks.size
    )
    middles = triangle_wave((knots[:-1] + knots[1:]) / 2, peaks)[-1]
    np.testing.assert_allclose(middles, 0.5, atol=4e-16 * steep * peaks.size)


def test_exact_knots_are_fractions_that_never_coincide():
    tiny = [Fraction(1, 10**6)] * 6
    knots, _ = wave_cells(tiny, exact=True)
    assert all(isinstance(k, Fraction) for k in knots[1:-1])
    assert len(set(knots)) == 65 and list(knots) == sorted(knots)
    assert knots[1] == Fraction(1, 10**36)
    floats, _ = wave_cells([1e-6] * 6)
    assert np.unique(floats).size < 65  # why there is an exact mode


def test_exact_and_float_agree():
    peaks = np.random.default_rng(0).uniform(0.1, 0.9, 9)
    exact = wave_cells(peaks, exact=True).knots.astype(float)
    np.testing.assert_allclose(wave_cells(peaks).knots, exact, atol=1e-15)


@given(PEAKS, st.integers(0, 10**6))
def test_slopes_against_differences(peaks, seed):
    scales = np.random.default_rng(seed).normal(size=peaks.size)
    lengths, slopes = cell_slopes(peaks, scales)
    exact = wave_cells(peaks, exact=True).knots
    np.testing.assert_allclose(
        lengths, np.diff(exact).astype(float), rtol=1e-12
    )
    assert abs(lengths.sum() - 1) < 1e-12
    # the sum from both ends: what the slopes add up to is zero at 1
    assert abs(np.sum(lengths * slopes)) < 1e-9 * np.abs(slopes).max()
    knots = exact.astype(float)
    rise = np.cumsum(lengths * slopes)
    long = np.flatnonzero(lengths > 1e-3)
    waves = triangle_wave(knots[long + 1], peaks)
    np.testing.assert_allclose(scales @ waves, rise[long], atol=1e-9)


def test_slopes_of_the_parabola():
    s = limit_scales([0.5] * 7, "convex")
    lengths, slopes = cell_slopes([0.5] * 6, s)
    assert (lengths == 1 / 64).all()
    odd = (2 * np.arange(64) + 1) / 64  # slopes of the chords of x squared
    np.testing.assert_allclose(1 - slopes, odd, atol=1e-15)


@given(PEAKS.filter(lambda a: a.size > 1))
def test_all_slopes_differ_under_the_recurrence(peaks):
    s = limit_scales(peaks, "concave")
    assert np.all(np.diff(cell_slopes(peaks[:-1], s).slopes) < 0)


@given(PEAKS, st.floats(0, 1))
def test_addresses_find_their_cell(peaks, x):
    exact = [Fraction(a) for a in peaks]
    right, log_length = cell_address(Fraction(x), exact)
    knots, _ = wave_cells(exact, exact=True)
    cell = min(np.searchsorted(knots[1:], Fraction(x)), 2**peaks.size - 1)
    length = float(knots[cell + 1] - knots[cell])
    ties = Fraction(x) in list(knots)
    if not ties:
        assert abs(np.log(length) - log_length) < 1e-10
        index = 0
        for beyond in right:  # in a falling cell "beyond" is on the left
            falling = index % 2 == 1
            index = 2 * index + (bool(beyond) != falling)
        assert index == cell


def test_addresses_at_great_depth():
    halves = [Fraction(1, 2)] * 3000
    right, log_length = cell_address(Fraction(1, 3), halves)
    assert right[1:].all() and not right[0]
    assert abs(log_length + 3000 * np.log(2)) < 1e-9


def test_the_number_of_cells_is_the_number_of_addresses():
    exact = [Fraction(1, 10), Fraction(2, 3), Fraction(1, 7)]
    knots, _ = wave_cells(exact, exact=True)
    middles = (knots[:-1] + knots[1:]) / 2
    seen = {tuple(cell_address(x, exact).right) for x in middles}
    assert len(seen) == 8


def test_sum_and_cells_agree_with_the_function():
    peaks = np.random.default_rng(4).uniform(0.2, 0.8, 7)
    s = limit_scales(peaks, "convex")
    lengths, slopes = cell_slopes(peaks[:-1], s)
    knots = np.concatenate([[0], np.cumsum(lengths)])
    values = np.concatenate([[0], np.cumsum(lengths * (1 - slopes))])
    x = np.random.default_rng(5).uniform(0, 1, 500)
    np.testing.assert_allclose(
        np.interp(x, knots, values),
        triangle_sum(x, peaks, "convex"),
        atol=1e-13,
    )


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: wave_cells([0.5, 1.0]), "peaks must lie strictly"),
        (lambda: wave_cells([0.5] * (LARGEST_DEPTH + 1)), "makes 2.25 cells"),
        (lambda: wave_cells([]), "at least 1"),
        (lambda: cell_slopes([0.5], [1.0, 2.0]), "scales must be 1 finite"),
        (lambda: cell_slopes([0.5], [np.nan]), "scales must be 1 finite"),
        (lambda: cell_slopes([[0.5]], [[1.0]]), "one vector"),
        (lambda: cell_address(-0.1, [0.5]), "x must lie in"),
        (lambda: cell_address(0.1, [0.0]), "peaks must lie strictly"),
    ],
)
def test_bad_input(call, words):
    with pytest.raises(ValueError, match=words):
        call()


def test_every_bend_survives():
    """At a_0 the share (1 - a_2)(1 - a_3) of the first kink is left."""
    a = np.array([0.3, 0.6, 0.2, 0.7])
    s = limit_scales(a, "concave")
    jump = np.diff(cell_slopes(a[:-1], s).slopes)
    kink = -s[0] / (0.3 * 0.7)
    assert abs(jump[3] - kink * 0.8 * 0.3) < 1e-14
    lost = cell_slopes([0.3, 0.6], [0.5, 0.5 * (1 - 0.6)]).slopes
    assert abs(lost[2] - lost[1]) < 1e-15
