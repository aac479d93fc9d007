"""Corridors of convex functions."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from helpers.linear_regions.convexity import convex_corridor


def test_the_square_by_hand():
    """Chord h^2/4 above, neighbours' chords 3 h^2/4 below."""
    h = 0.1
    x = h * np.arange(11)
    middle, low, high = convex_corridor(x, x**2)
    np.testing.assert_allclose(high - middle**2, h**2 / 4)
    np.testing.assert_allclose(middle**2 - low, 3 * h**2 / 4)


@given(st.integers(0, 10**6))
def test_convex_functions_stay_inside_and_reach_both_ends(seed):
    rng = np.random.default_rng(seed)
    x = np.sort(rng.uniform(-1, 1, 8))
    kinks, weights = rng.uniform(-1, 1, 30), rng.uniform(0, 1, 30)

    def function(t):
        return np.maximum(np.subtract.outer(t, kinks), 0) @ weights

    middle, low, high = convex_corridor(x, function(x))
    value = function(middle)
    assert (low <= value + 1e-12).all() and (value <= high + 1e-12).all()
    # the interpolant is the largest; the maximum of all chords the least
    np.testing.assert_allclose(np.interp(middle, x, function(x)), high)
    slope = np.diff(function(x)) / np.diff(x)
    i = np.searchsorted(x, middle) - 1
    chords = function(x[:-1]) + slope * np.subtract.outer(middle, x[:-1])
    chords[np.arange(len(i)), i] = -np.inf
    np.testing.assert_allclose(chords.max(axis=1), low, atol=1e-12)


@pytest.mark.parametrize(
    ("x", "f", "words"),
    [
        ([0, 1, 2], [0, 1, 4], "four or more"),
        ([0, 1, 1, 2], [0, 1, 1, 2], "x must increase"),
        ([0, 1, 2, 3], [0, 1, 0, 1], "f must be convex"),
        ([0, 1, 2, 3], [0, 1, np.nan, 1], "x must increase and f be finite"),
    ],
)
def test_bad_input(x, f, words):
    with pytest.raises(ValueError, match=words):
        convex_corridor(x, f)
