"""Neurons with a given active fraction."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from helpers.spectral_alignment import graphs, spectra
from helpers.spectral_alignment.active_bounds import active_set_bounds
from helpers.spectral_alignment.coverage import (
    captured_features,
    coverage_gap,
)
from helpers.spectral_alignment.sparse_neurons import (
    neurons_active_on,
    sparse_layers,
    sparse_neuron_bounds,
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


PATH = graphs.graph_laplacian([[0, 1, 0], [1, 0, 1], [0, 1, 0]])
LINE = np.array([[-1.0], [0.0], [1.0]])


def test_bounds_by_hand():
    """Two of three nodes on, an end and the middle: h = (0, 1, 3) up to its
    length and a mirror, as the bias is in the middle of the gap."""
    U = spectra.laplacian_eigenbasis(PATH, 2).vectors
    found = sparse_neuron_bounds(LINE, U, PATH, 2 / 3, count=5, seed=3)
    # (16 / 3 + 9 / 2) / 10, and 1 - u_3^2 of the better of two directions
    assert found.alone == pytest.approx(np.full(5, 59 / 60))
    assert found.capture == pytest.approx(np.ones(5))
    assert found.leverage == pytest.approx(np.ones(5))
    # energy 1 + 4 of squared length 10; the drum of two nodes
    assert found.rayleigh == pytest.approx(np.full(5, 1 / 2))
    assert found.energy == pytest.approx(np.full(5, (3 - np.sqrt(5)) / 2))


@given(st.integers(0, 999), st.sampled_from(graphs.KINDS))
@settings(max_examples=20, deadline=None)
def test_bounds_are_those_of_the_active_set_and_hold(seed, kind):
    rng = np.random.default_rng(seed)
    n, fraction = int(rng.integers(5, 20)), rng.uniform(0.2, 1)
    X = rng.normal(size=(n, 2))
    L = graphs.graph_laplacian(graphs.knn_graph(X, 3), kind)
    U = spectra.laplacian_eigenbasis(L, int(rng.integers(1, n))).vectors
    found = sparse_neuron_bounds(X, U, L, fraction, count=3, seed=seed)
    first = np.random.default_rng(np.random.SeedSequence(seed).spawn(1)[0])
    H = neurons_active_on(X, fraction, 3, first)
    for k, h in enumerate(H.T):
        bounds = active_set_bounds(U, L, h > 0)
        for name in ("capture", "leverage", "energy"):
            assert getattr(found, name)[k] == pytest.approx(
                bounds[name], abs=1e-9
            )
        assert found.alone[k] == pytest.approx(
            captured_features(h[:, None], U)
        )
        assert found.rayleigh[k] == pytest.approx(
            spectra.rayleigh_quotient(L, h), abs=1e-12
        )
    assert (found.alone <= found.capture + 1e-9).all()
    assert (found.capture <= found.leverage + 1e-9).all()
    assert (found.rayleigh >= found.energy - 1e-9).all()


def test_layers_and_bounds_draw_the_same_neurons():
    X = np.random.default_rng(1).normal(size=(12, 2))
    L = graphs.graph_laplacian(graphs.knn_graph(X, 3))
    U = spectra.laplacian_eigenbasis(L, 3).vectors
    layers = sparse_layers(X, U, 0.5, width=2, count=6, layers=3, seed=9)
    bounds = sparse_neuron_bounds(X, U, L, 0.5, count=6, seed=9)
    assert bounds.alone == pytest.approx(layers.alone)


@pytest.mark.parametrize(
    ("X", "L", "message"),
    [
        (LINE[:2], PATH, "X must have 3 rows"),
        (LINE, PATH[:2], "L must have shape"),
        (LINE, np.nan * PATH, "L must be finite"),
        (0 * LINE, PATH, "X must have different rows"),
    ],
)
def test_bad_input_of_the_bounds_is_named(X, L, message):
    with pytest.raises(ValueError, match=message):
        sparse_neuron_bounds(X, np.eye(3)[:, :1], L, 0.5, count=2)


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
