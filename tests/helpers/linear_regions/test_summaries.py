"""Summaries of runs: by hand, against SciPy, and what is refused."""

import numpy as np
import pytest
from scipy.stats import bootstrap

from helpers.linear_regions.summaries import (
    pick_rows,
    pooled,
    summarise_runs,
)


def test_four_runs_by_hand():
    line = summarise_runs(
        [4, 1, 2, 9], [False, False, False, True], [1, 2, 3, 4]
    )
    assert (line.best, line.median, line.mean) == (1, 3, 4)
    assert (line.flat, line.regions) == (0.25, 2.5)
    # Wilson, 1 of 4
    assert line.flat_low == pytest.approx(0.0456, abs=1e-4)
    assert line.flat_high == pytest.approx(0.6994, abs=1e-4)
    assert line.mean_low < 4 < line.mean_high


def test_interval_of_the_mean_against_scipy():
    mse = np.random.default_rng(0).lognormal(size=30)
    line = summarise_runs(mse, mse > 3, mse)
    theirs = bootstrap((mse,), np.mean, method="percentile",
                       n_resamples=20000, rng=1).confidence_interval  # fmt: skip
    assert line.mean_low == pytest.approx(theirs.low, rel=0.05)
    assert line.mean_high == pytest.approx(theirs.high, rel=0.05)


def test_the_seed_decides():
    mse = np.arange(1.0, 9)
    assert summarise_runs(mse, mse > 3, mse, 1) == summarise_runs(
        mse, mse > 3, mse, 1
    )
    assert summarise_runs(mse, mse > 3, mse, 1) != summarise_runs(
        mse, mse > 3, mse, 2
    )


def test_rows_are_picked_by_lists_too():
    table = {"hidden": [[4, 4], np.array([16])], "k": np.array([1, 2])}
    assert [row["k"] for row in pick_rows(table, hidden=[16])] == [2]
    assert len(pick_rows(table, hidden=[4, 4], k=1)) == 1
    with pytest.raises(ValueError, match="no row"):
        pick_rows(table, hidden=[4], k=1)
    with pytest.raises(ValueError, match="no column"):
        pick_rows(table, seed=1)


def test_pooling_is_joining():
    row = {"mse": [1.0, 3], "flat": [False, True], "activation": [2, 4]}
    other = {"mse": [5.0], "flat": [True], "activation": [9]}
    joined = summarise_runs([1, 3, 5], [False, True, True], [2, 4, 9])
    assert pooled([row, other]) == joined


@pytest.mark.parametrize(
    "arguments",
    [
        ([1.0], [True], [1]),
        ([1.0, np.nan], [True, True], [1, 1]),
        ([1.0, 2.0], [True], [1, 1]),
        ([], [], []),
        ([1.0, 2.0], [True, False], [[1, 1]]),
    ],
)
def test_bad_runs(arguments):
    with pytest.raises(ValueError):  # noqa: PT011
        summarise_runs(*arguments)
