import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from helpers.core.statistics import (
    bootstrap_interval,
    log_log_slope,
    median_and_spread,
    wilson_interval,
)

# --- Wilson -----------------------------------------------------------------


def test_wilson_by_hand():
    """At one of two with z = 1 the ends are 1/2 -+ 1/(2 sqrt 3)."""
    level = 2 * stats.norm.cdf(1) - 1
    low, high = wilson_interval(1, 2, level)
    assert low == pytest.approx(0.5 - 1 / (2 * np.sqrt(3)), abs=1e-12)
    assert high == pytest.approx(0.5 + 1 / (2 * np.sqrt(3)), abs=1e-12)


@given(
    n=st.integers(1, 500),
    share=st.floats(0, 1),
    level=st.sampled_from([0.5, 0.9, 0.95, 0.99]),
)
def test_wilson_against_scipy(n, share, level):
    hits = round(share * n)
    ours = wilson_interval(hits, n, level)
    theirs = stats.binomtest(hits, n).proportion_ci(level, "wilson")
    assert ours == pytest.approx((theirs.low, theirs.high), abs=1e-12)


@given(n=st.integers(1, 200), hits=st.integers(0, 200))
def test_wilson_is_mirrored_and_holds_the_estimate(n, hits):
    hits = min(hits, n)
    low, high = wilson_interval(hits, n)
    other = wilson_interval(n - hits, n)
    assert other == pytest.approx((1 - high, 1 - low), abs=1e-12)
    assert 0 <= low <= hits / n <= high <= 1


def test_wilson_covers_about_what_it_says():
    """Exact coverage over all outcomes, at a few probabilities."""
    n = 60
    hits = np.arange(n + 1)
    low, high = wilson_interval(hits, n)
    for p in (0.1, 0.37, 0.5, 0.8):
        weight = stats.binom.pmf(hits, n, p)
        covered = weight[(low <= p) & (p <= high)].sum()
        assert 0.92 < covered < 0.98


def test_wilson_takes_arrays():
    low, high = wilson_interval(np.array([[0], [5]]), np.array([10, 20]))
    assert low.shape == high.shape == (2, 2)
    assert low[0, 0] == 0


@pytest.mark.parametrize(
    ("hits", "n"), [(-1, 5), (6, 5), (0, 0), (1.5, 3), (1, 2.0)]
)
def test_wilson_refuses(hits, n):
    with pytest.raises(ValueError, match="hits|n"):
        wilson_interval(hits, n)


# --- bootstrap --------------------------------------------------------------


def test_bootstrap_of_a_constant_sample_is_a_point():
    assert bootstrap_interval([2.0] * 5, rng=0) == (2.0, 2.0)


def test_bootstrap_against_scipy():
    sample = np.random.default_rng(1).exponential(size=80)
    ours = bootstrap_interval(sample, rng=2, resamples=20_000)
    theirs = stats.bootstrap(
        (sample,),
        np.mean,
        method="percentile",
        n_resamples=20_000,
        rng=np.random.default_rng(3),
    ).confidence_interval
    # the ends of two bootstraps differ by their own Monte Carlo error
    error = 4 * sample.std() / np.sqrt(80) / np.sqrt(20_000 * 0.025)
    assert ours == pytest.approx(tuple(theirs), abs=error)


def test_bootstrap_of_the_mean_against_theory():
    sample = np.random.default_rng(4).normal(size=400)
    low, high = bootstrap_interval(sample, rng=5)
    half = 1.96 * sample.std() / 20
    assert high - low == pytest.approx(2 * half, rel=0.1)


def test_bootstrap_repeats_itself_and_takes_statistics():
    sample = np.arange(30.0)
    once = bootstrap_interval(sample, 7, statistic=np.median)
    assert once == bootstrap_interval(sample, 7, statistic=np.median)
    assert bootstrap_interval(sample, 7) != bootstrap_interval(sample, 8)


@pytest.mark.parametrize(
    ("values", "options"),
    [
        ([1.0], {}),
        ([1.0, np.nan], {}),
        ([[1.0, 2.0]], {}),
        ([1.0, 2.0], {"resamples": 10}),
        ([1.0, 2.0], {"level": 1.0}),
    ],
)
def test_bootstrap_refuses(values, options):
    with pytest.raises(ValueError, match="values|resamples|level"):
        bootstrap_interval(values, rng=0, **options)


# --- spread and slope -------------------------------------------------------


def test_spread_by_hand():
    assert median_and_spread([5, 1, 4, 2, 3], 0.5) == (3, 2, 4)
    assert median_and_spread([7.0]) == (7, 7, 7)


@given(st.lists(st.floats(-1e6, 1e6), min_size=1, max_size=40))
def test_spread_is_ordered_and_shifts(values):
    spread = median_and_spread(values)
    assert min(values) <= spread.low <= spread.median <= spread.high
    assert spread.high <= max(values)
    shifted = median_and_spread(np.asarray(values) + 10)
    assert shifted == pytest.approx(np.asarray(spread) + 10, abs=1e-6)


@pytest.mark.parametrize("bad", [[], [np.inf], [[1.0]]])
def test_spread_refuses(bad):
    with pytest.raises(ValueError, match="values"):
        median_and_spread(bad)


@given(
    slope=st.floats(-4, 4),
    scale=st.floats(0.01, 100),
    factor=st.floats(0.1, 10),
)
def test_slope_of_a_power_law_whatever_the_units(slope, scale, factor):
    x = np.array([1.0, 2, 3, 5, 8])
    fit = log_log_slope(factor * x, scale * x**slope)
    assert fit.slope == pytest.approx(slope, abs=1e-9)


def test_slope_against_polyfit_and_its_interval_covers():
    rng = np.random.default_rng(0)
    x = np.linspace(1, 10, 12)
    covered = 0
    for _ in range(400):
        y = 2 * x**-1.5 * np.exp(rng.normal(scale=0.2, size=12))
        fit = log_log_slope(x, y)
        covered += fit.low <= -1.5 <= fit.high
    wanted = np.polyfit(np.log(x), np.log(y), 1)
    assert (fit.slope, fit.log_intercept) == pytest.approx(wanted)
    assert 0.91 < covered / 400 < 0.985


@pytest.mark.parametrize(
    ("x", "y"),
    [
        ([1, 2], [1, 2]),
        ([1, 2, 3], [1, 2]),
        ([1, 1, 1], [1, 2, 3]),
        ([1, 2, 0], [1, 2, 3]),
        ([1, 2, 3], [1, -2, 3]),
    ],
)
def test_slope_refuses(x, y):
    with pytest.raises(ValueError, match="x|y"):
        log_log_slope(x, y)
