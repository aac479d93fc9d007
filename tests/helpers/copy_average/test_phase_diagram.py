"""Counts, the logistic fit, and the ends of the mixed regime."""

import numpy as np
import pytest
from scipy.optimize import minimize
from scipy.special import expit

from helpers.copy_average.classify import LABELS
from helpers.copy_average.phase_diagram import (
    class_counts,
    logistic_fit,
    regime_thresholds,
)


def test_counts_by_hand():
    found = class_counts(
        [3, 2, 3, 3], ["split", "optimal_ca", "optimal_ca", "split"]
    )
    assert found.widths.tolist() == [2, 3]
    assert found.runs.tolist() == [1, 3]
    assert found.of("split").tolist() == [0, 2]
    assert sum(found.of(x).sum() for x in LABELS) == 4
    with pytest.raises(ValueError, match="label must be one of"):
        found.of("copies")


def test_fit_maximises_the_likelihood():
    n, runs = np.arange(5, 12), np.full(7, 20)
    hits = np.array([20, 19, 15, 11, 4, 1, 0])

    def loss(fit):
        p = expit(fit[0] + fit[1] * n)
        return -(hits * np.log(p) + (runs - hits) * np.log1p(-p)).sum()

    best = minimize(
        loss,
        [8.0, -1.0],
        method="Nelder-Mead",
        options={"xatol": 1e-8, "fatol": 1e-12},
    )
    intercept, slope = logistic_fit(n, hits, runs)
    # the ridge moves the maximum by about its size over the information
    assert slope == pytest.approx(best.x[1], abs=1e-3)
    assert -intercept / slope == pytest.approx(
        -best.x[0] / best.x[1], abs=1e-4
    )


def test_recovers_the_curve_that_made_the_data():
    rng, n = np.random.default_rng(0), np.arange(1, 21)
    runs = np.full(20, 4000)
    hits = rng.binomial(runs, expit(15 - 1.5 * n))
    intercept, slope = logistic_fit(n, hits, runs)
    # these counts know the slope to 1.1 %: nearly three standard errors
    assert slope == pytest.approx(-1.5, rel=0.03)
    assert intercept == pytest.approx(15, rel=0.03)


def test_a_clean_jump_is_found_within_a_neuron():
    n, runs = np.arange(1, 13), np.full(12, 16)
    hits = np.where(n <= 6, 16, 0)
    found = regime_thresholds(n, 12, hits, runs, rng=0)
    assert found.half.value == pytest.approx(6.5 / 12, abs=1e-3)
    assert found.gamma_2.value - found.gamma_1.value < 1 / 12
    assert found.half.low == pytest.approx(found.half.high)


def test_interval_covers_the_truth_about_as_often_as_it_says():
    rng, n, runs = np.random.default_rng(5), np.arange(5, 15), np.full(10, 32)
    share = expit(10 - n)
    inside = 0
    for seed in range(60):
        found = regime_thresholds(
            n, 10, rng.binomial(runs, share), runs, seed, resamples=300
        )
        inside += found.half.low <= 1.0 <= found.half.high
    # 95 % of 60 is 57; below 50 has a probability under 0.1 %
    assert inside >= 50


def test_batch_of_fits_is_fit_by_fit():
    n, runs = np.arange(4), np.full(4, 9)
    hits = np.array([[9, 6, 2, 0], [9, 9, 0, 0], [0, 0, 0, 0]])
    together = logistic_fit(n, hits, runs)
    for i, row in enumerate(hits):
        alone = logistic_fit(n, row, runs)
        np.testing.assert_allclose([t[i] for t in together], alone)


@pytest.mark.parametrize(
    "call, word",
    [
        (lambda: class_counts([1], ["x"]), "labels must be among"),
        (lambda: class_counts([1, 2], ["split"]), "rows of one length"),
        (lambda: logistic_fit([1, 1], [1, 1], [2, 2]), "two different"),
        (lambda: logistic_fit([1, 2], [3, 1], [2, 2]), "between 0 and runs"),
        (lambda: logistic_fit([1, 2], [0, 0], [0, 2]), "runs be >= 1"),
        (
            lambda: regime_thresholds([1, 2], 2, [0, 2], [2, 2], 0),
            "fall with n",
        ),
        (
            lambda: regime_thresholds([1, 2], 2, [2, 0], [2, 2], 0, share=0.4),
            "share must",
        ),
        (
            lambda: regime_thresholds([1, 2], 0, [2, 0], [2, 2], 0),
            "k >= 1",
        ),
    ],
)
def test_bad_input(call, word):
    with pytest.raises(ValueError, match=word):
        call()
