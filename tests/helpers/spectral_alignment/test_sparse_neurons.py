"""Neurons with a given active fraction."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from helpers.spectral_alignment.coverage import (
    captured_features,
    coverage_gap,
)
from helpers.spectral_alignment.sparse_neurons import (
    neurons_active_on,
    sparse_layers,
)


@given(st.integers(2, 40), st.floats(0.01, 1), st.integers(0, 999))
def test_exactly_the_fraction_is_on(n, fraction, seed):
    X = np.random.default_rng(seed).normal(size=(n, 3))
    if round(fraction * n) >= 1:
        H = neurons_active_on(X, fraction, 4, seed)
        assert ((H > 0).sum(axis=0) == round(fraction * n)).all()


def test_by_hand():
    """Samples 0, 1, 3; half of three rounds to two."""
    H = neurons_active_on([[0.0], [1.0], [3.0]], 0.5, 1, rng=1)
    w = np.random.default_rng(1).normal()
    wanted = [0, 0.5, 2.5] if w > 0 else [2, 1, 0]
    assert H[:, 0] == pytest.approx(np.abs(w) * np.array(wanted))


def test_always_on_is_affine():
    X = np.random.default_rng(0).normal(size=(20, 2))
    H = neurons_active_on(X, 1.0, 5, 0)
    assert np.linalg.matrix_rank(np.c_[H, X, np.ones(20)]) == 3


def test_ties_are_off_together():
    H = neurons_active_on([[0.0], [1.0], [1.0]], 1 / 3, 3, 0)
    assert (H[1] == H[2]).all()


def test_layers_are_measured_as_coverage_measures_them():
    rng = np.random.default_rng(0)
    X, U = rng.normal(size=(30, 2)), np.linalg.qr(rng.normal(size=(30, 4)))[0]
    found = sparse_layers(X, U, 0.4, width=3, count=5, layers=2, seed=8)
    again = sparse_layers(X, U, 0.4, width=3, count=5, layers=2, seed=8)
    assert np.array_equal(found.captured, again.captured)
    first, second = np.random.SeedSequence(8).spawn(3)[:2]
    H = neurons_active_on(X, 0.4, 5, np.random.default_rng(first))
    assert found.alone == pytest.approx(
        [captured_features(h[:, None], U) for h in H.T]
    )
    Z = neurons_active_on(X, 0.4, 3, np.random.default_rng(second))
    Z = np.c_[Z, np.ones(30)]
    assert found.captured[0] == pytest.approx(captured_features(Z, U))
    assert found.gap[0] == pytest.approx(coverage_gap(Z, U))


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: neurons_active_on([[1.0]], 1, 1), "X must be"),
        (lambda: neurons_active_on([[1.0], [np.nan]], 1, 1), "X must be"),
        (lambda: neurons_active_on(np.eye(3), 0.1, 1), "fraction must be"),
        (lambda: neurons_active_on(np.eye(3), 1.5, 1), "fraction must be"),
        (lambda: neurons_active_on(np.eye(3), 1, 0), "count must be"),
    ],
)
def test_bad_input_names_the_argument(call, message):
    with pytest.raises(ValueError, match=message):
        call()
