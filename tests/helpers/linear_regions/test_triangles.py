"""Triangles, waves, scales, sums of waves and their gradient."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from helpers.linear_regions.triangles import (
    check_peaks,
    limit_scales,
    peak_jacobian,
    triangle,
    triangle_sum,
    triangle_wave,
)

X = np.linspace(0, 1, 1001)
PEAKS = arrays(float, st.integers(2, 8), elements=st.floats(0.05, 0.95))
MODES = st.sampled_from(["concave", "convex"])


def by_definition(x, a):
    return x / a if x <= a else (1 - x) / (1 - a)


def test_a_triangle_by_hand():
    values = triangle([0, 0.125, 0.25, 0.625, 1], 0.25)
    np.testing.assert_array_equal(values, [0, 0.5, 1, 0.5, 0])


@given(st.floats(0, 1), st.floats(1e-6, 1 - 1e-6))
def test_a_triangle_by_definition_and_within_its_range(x, a):
    value = float(triangle(x, a))
    assert value == by_definition(x, a) and 0 <= value <= 1


def test_a_triangle_broadcasts_peaks():
    both = triangle(X[:, None], [0.2, 0.7])
    np.testing.assert_array_equal(both[:, 1], triangle(X, 0.7))


def test_a_wave_of_halves_is_the_distance_to_even_numbers():
    """W_i(x) is the distance of 2^(i+1) x to the nearest even integer."""
    for i, wave in enumerate(triangle_wave(X, [0.5] * 5)):
        u = 2 ** (i + 1) * X
        np.testing.assert_allclose(wave, np.abs(u - 2 * np.round(u / 2)))


@given(PEAKS)
def test_valleys_are_the_peaks_and_valleys_before(peaks):
    """W vanishes exactly where the wave before is 0 or 1."""
    waves = triangle_wave(np.array([0, peaks[0], 1]), peaks)
    assert waves[0].tolist() == [0, 1, 0]
    assert not waves[1:].any()


@given(PEAKS)
def test_waves_preserve_length(peaks):
    """The share of [0, 1] where a wave is below t is t (Lebesgue measure)."""
    x = (np.arange(200_000) + 0.5) / 200_000
    last = triangle_wave(x, peaks[:3])[-1]
    assert abs(np.mean(last < 0.3) - 0.3) < 8 * 8 / 200_000 / 0.05


def test_scales_by_hand():
    a = [0.2, 0.3, 0.4, 0.6]
    concave = [0.8 * 0.3, 0.8 * 0.3 * 0.7 * 0.4]
    concave.append(concave[1] * 0.6 * 0.6)
    np.testing.assert_allclose(limit_scales(a, "concave"), concave)
    ratio = limit_scales(a, "convex") / limit_scales(a, "concave")
    np.testing.assert_allclose(ratio, 0.2 / 0.8)
    np.testing.assert_allclose(
        limit_scales(a, "convex", s0=1.0), np.array(concave) / concave[0]
    )


def test_scales_are_batched():
    a = np.random.default_rng(0).uniform(0.1, 0.9, (3, 5))
    each = [limit_scales(row, "convex") for row in a]
    np.testing.assert_allclose(limit_scales(a, "convex"), each)


@given(PEAKS, MODES)
def test_scales_solve_the_recurrence(peaks, mode):
    s = limit_scales(peaks, mode)
    wanted = s[:-1] * (1 - peaks[1:-1]) * peaks[2:]
    np.testing.assert_allclose(s[1:], wanted, rtol=1e-13)


def test_halves_interpolate_the_square():
    """Exact at multiples of 2^-d, and a quarter to the d + 1 away between."""
    for d in (1, 3, 6):
        grid = np.arange(2**d + 1) / 2**d
        f = triangle_sum(grid, [0.5] * (d + 1), "convex")
        np.testing.assert_allclose(f, grid**2, atol=1e-15)
        middle = (grid[:-1] + grid[1:]) / 2
        gap = triangle_sum(middle, [0.5] * (d + 1), "convex") - middle**2
        np.testing.assert_allclose(gap, 4.0 ** -(d + 1))


@given(PEAKS, MODES)
def test_a_sum_is_monotone_and_bent_one_way(peaks, mode):
    x = np.sort(np.r_[X, peaks[0]])
    f = triangle_sum(x, peaks, mode)
    slope = np.diff(f) / np.maximum(np.diff(x), 1e-300)
    slope = slope[np.diff(x) > 1e-6]
    assert f[0] == 0 and f[-1] == 1 and slope.min() > -1e-8
    bend = np.diff(slope) * (1 if mode == "convex" else -1)
    assert bend.min() > -1e-7


def test_own_scales_enter_linearly():
    a, s = [0.3, 0.4, 0.6], np.array([0.2, -0.1])
    waves = triangle_wave(X, a[:-1])
    wanted = X - 0.2 * waves[0] + 0.1 * waves[1]
    np.testing.assert_allclose(triangle_sum(X, a, "convex", s), wanted)


@pytest.mark.parametrize("mode", ["concave", "convex"])
@pytest.mark.parametrize("d", [1, 2, 3, 6])
def test_jacobian_against_central_differences(mode, d):
    rng = np.random.default_rng(d)
    a = rng.uniform(0.2, 0.8, d + 1)
    x = rng.uniform(0, 1, 300)
    step = 1e-6
    for j, row in enumerate(peak_jacobian(x, a, mode)):
        shift = step * np.eye(d + 1)[j]
        up, down = (triangle_sum(x, a + e, mode) for e in (shift, -shift))
        error = np.abs(row - (up - down) / (2 * step))
        # next to a bend the difference straddles it
        assert np.quantile(error, 0.95) < 1e-8


def test_jacobian_of_one_wave_by_hand():
    """F = x - a0 a1 x / a0 on the left: -x in a1, 0 in a0."""
    x = np.array([0.1, 0.2])
    J = peak_jacobian(x, [0.4, 0.7], "convex")
    np.testing.assert_allclose(J, [[0, 0], -x], atol=1e-16)


def test_jacobian_by_complex_step():
    def value(x, a):
        s, w, total = a[0] * a[1], x + 0j, x + 0j
        for i in range(a.size - 1):
            rising = w.real <= a[i].real
            w = np.where(rising, w / a[i], (1 - w) / (1 - a[i]))
            total = total - s * w
            if i + 2 < a.size:
                s = s * (1 - a[i + 1]) * a[i + 2]
        return total

    a = np.array([0.3, 0.6, 0.45, 0.7])
    for j, row in enumerate(peak_jacobian(X, a, "convex")):
        moved = a + 1e-30j * np.eye(4)[j]
        np.testing.assert_allclose(
            row, value(X, moved).imag / 1e-30, atol=1e-13
        )


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: triangle(1.5, 0.5), r"x must lie in \[0, 1\], got 1.5"),
        (lambda: triangle(np.nan, 0.5), r"x must lie in .*nan"),
        (lambda: triangle(0.5, 1.0), "peak must lie strictly .*1.0"),
        (lambda: triangle_wave(X, []), "peaks must have at least 1"),
        (lambda: triangle_wave(X, [[0.5]]), "peaks must be one vector"),
        (lambda: limit_scales([0.5], "convex"), "at least 2 entries"),
        (lambda: limit_scales([0.5, np.nan], "convex"), "peaks must lie"),
        (lambda: limit_scales([0.5, 0.5], "both"), "mode must be one of"),
        (lambda: limit_scales([0.5, 0.5], "convex", 0), "s0 must be a pos"),
        (lambda: triangle_sum(X, [0.5] * 3, "convex", [1]), "scales must be"),
        (
            lambda: triangle_sum(X, [0.5] * 2, "convex", [np.inf]),
            "scales must be 1 finite",
        ),
        (lambda: peak_jacobian(X[None], [0.5] * 2, "convex"), "x must be one"),
        (lambda: check_peaks([0.5, -0.0]), "peaks must lie strictly"),
    ],
)
def test_bad_input(call, words):
    with pytest.raises(ValueError, match=words):
        call()


@given(PEAKS)
def test_a_convex_sum_stays_in_its_corridor(peaks):
    """Chords of neighbours bound a convex function from both sides."""
    x = np.linspace(0, 1, 11)
    f = triangle_sum(x, peaks, "convex")
    fine = np.linspace(0.1, 0.9, 801)
    value = triangle_sum(fine, peaks, "convex")
    i = np.minimum((fine * 10).astype(int), 8)
    step = (f[1:] - f[:-1]) * 10
    chord = f[i] + step[i] * (fine - x[i])
    before = f[i] + step[i - 1] * (fine - x[i])
    after = f[i + 1] - step[i + 1] * (x[i + 1] - fine)
    assert (value <= chord + 1e-12).all()
    assert (value >= np.maximum(before, after) - 1e-12).all()
