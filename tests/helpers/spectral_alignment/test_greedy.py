"""Greedy layers: against re-factorisation, certificates, and limits."""

import numpy as np
import pytest
from sklearn.datasets import make_moons

from helpers.core.linalg import orthonormal_basis
from helpers.spectral_alignment import coverage, graphs, greedy, spectra


def moons(n, K, seed=0):
    X, _ = make_moons(n, noise=0.08, random_state=seed)
    X = (X - X.mean(axis=0)) / X.std(axis=0)
    L = graphs.graph_laplacian(graphs.knn_graph(X, 6))
    return np.column_stack([X, np.ones(n)]), spectra.laplacian_eigenbasis(
        L, K
    ).vectors


@pytest.fixture(scope="module")
def layer():
    Phi, U = moons(40, 4)
    return Phi, U, greedy.greedy_coverage(Phi, U, 6, Phi)


def test_the_path_is_covered_by_one_neuron():
    """Fixture F1: the neuron (0, 0, 1) gains exactly 1."""
    U = np.array([[1.0, -1.0, 1.0], [1, 0, -2], [1, 1, 1]])
    U /= np.linalg.norm(U, axis=0)
    Phi = np.array([[-1.0, 1.0], [0.0, 1.0], [1.0, 1.0]])
    trace = greedy.greedy_coverage(Phi, U, 5, Phi)
    assert trace.gain == pytest.approx([1.0])
    assert trace.deficit == pytest.approx([1.0, 0.0], abs=1e-12)
    assert trace.gap == pytest.approx([1.0, 0.0], abs=1e-8)


def test_the_trace_is_what_refactorising_gives(layer):
    Phi, U, trace = layer
    for s in range(len(trace.gain) + 1):
        Z = np.column_stack([Phi, trace.features[:, :s]])
        assert trace.deficit[s] == pytest.approx(
            coverage.coverage_deficit(Z, U)
        )
        assert trace.gap[s] == pytest.approx(coverage.coverage_gap(Z, U))
    assert trace.deficit[:-1] - trace.deficit[1:] == pytest.approx(trace.gain)


def test_features_are_the_outputs_of_the_neurons(layer):
    Phi, _, trace = layer
    assert np.maximum(Phi @ trace.theta.T, 0) == pytest.approx(trace.features)


def test_each_step_is_certified_and_within_the_ky_fan_limit(layer):
    Phi, U, trace = layer
    assert (trace.gain <= trace.upper_bound * (1 + 1e-9)).all()
    assert trace.gain == pytest.approx(trace.upper_bound, rel=1e-9)
    limits = coverage.ky_fan_limits(Phi, U, np.arange(len(trace.deficit)))
    assert (trace.deficit >= limits.deficit - 1e-12).all()
    assert (trace.gap >= limits.gap - 1e-12).all()


def test_no_random_neuron_beats_the_first(layer):
    Phi, U, trace = layer
    rng = np.random.default_rng(0)
    w = rng.normal(size=(3, 4000))
    M = coverage.residual_matrix(Phi, U)
    from helpers.spectral_alignment.neurons import marginal_gain

    gains = marginal_gain(np.maximum(Phi @ w, 0), M, orthonormal_basis(Phi))
    assert 0.8 * trace.gain[0] < gains.max() <= trace.gain[0] * (1 + 1e-12)


def test_without_a_start_the_first_neuron_never_switches_off():
    Phi, U = moons(20, 2)
    trace = greedy.greedy_coverage(Phi, U, 1)
    assert trace.deficit[0] == pytest.approx(2) and trace.gap[0] == 1
    assert trace.gain[0] == pytest.approx(1)  # the constant, u_1 itself


def test_rank_four_goes_by_faces():
    rng = np.random.default_rng(3)
    X = rng.normal(size=(10, 3))
    L = graphs.graph_laplacian(graphs.knn_graph(X, 4))
    U = spectra.laplacian_eigenbasis(L, 3).vectors
    Phi = np.column_stack([X, np.ones(10)])
    trace = greedy.greedy_coverage(Phi, U, 2, np.ones((10, 1)))
    local = greedy.greedy_coverage(
        Phi, U, 1, np.ones((10, 1)), greedy.local_oracle(60)
    )
    assert trace.gain[0] == pytest.approx(trace.upper_bound[0])
    assert local.gain[0] <= trace.gain[0] * (1 + 1e-9)


@pytest.mark.parametrize("alpha", [1.0, 0.5, 0.1])
def test_the_lazy_oracle_takes_as_little_as_it_may(alpha):
    Phi, U = moons(24, 3)
    trace = greedy.greedy_coverage(
        Phi, U, 3, Phi, greedy.lazy_oracle(alpha, rng=1)
    )
    share = trace.gain / trace.upper_bound
    assert (share >= alpha * (1 - 1e-9)).all()
    # bisection reaches the share itself, or a jump of the gain prevents it
    assert np.median(share) <= alpha + 0.05


@pytest.mark.parametrize("seed", [0, 1, 2])
def test_rounding_does_not_choose_for_the_lazy_oracle(seed):
    """On top of Phi a neuron and its mirror image gain the same; another basis
    of the same span changes the last digits only."""
    Phi, U = moons(24, 3)
    turn = np.linalg.qr(np.random.default_rng(seed).normal(size=(3, 3)))[0]
    one, other = (
        greedy.greedy_coverage(
            Phi, basis, 4, Phi, greedy.lazy_oracle(0.3, rng=1, tries=6)
        ).deficit
        for basis in (U, U @ turn)
    )
    assert one == pytest.approx(other, abs=1e-6)


def test_local_and_random_oracles_certify_nothing():
    Phi, U = moons(24, 3)
    for oracle in (greedy.local_oracle(3), greedy.random_oracle(0)):
        trace = greedy.greedy_coverage(Phi, U, 2, Phi, oracle)
        assert np.isnan(trace.upper_bound).all()
        assert (np.diff(trace.deficit) <= 1e-12).all()


def test_same_seed_same_layer():
    Phi, U = moons(24, 3)
    runs = [
        greedy.greedy_coverage(Phi, U, 3, Phi, greedy.random_oracle(5)).theta
        for _ in range(2)
    ]
    assert np.array_equal(*runs)


def test_covered_from_the_start_ends_at_once():
    Phi, U = moons(20, 3)
    trace = greedy.greedy_coverage(Phi, U, 4, U)
    assert trace.gain.shape == (0,) and trace.features.shape == (20, 0)
    assert trace.theta.shape == (0, 3) and trace.deficit.shape == (1,)


def test_collapsed_samples_end_at_the_ceiling():
    """All rows equal: every neuron is a constant."""
    Phi = np.ones((8, 3))
    U = np.linalg.qr(np.random.default_rng(0).normal(size=(8, 3)))[0]
    trace = greedy.greedy_coverage(Phi, U, 5)
    assert len(trace.gain) == 1
    assert trace.deficit[-1] == pytest.approx(
        coverage.coverage_deficit(np.ones((8, 1)), U)
    )


def test_zero_neurons():
    Phi, U = moons(20, 3)
    trace = greedy.greedy_coverage(Phi, U, 0, Phi)
    assert trace.deficit == pytest.approx([coverage.coverage_deficit(Phi, U)])


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda P, U: greedy.greedy_coverage(P, U, -1), "t must be a whole"),
        (lambda P, U: greedy.greedy_coverage(P[1:], U, 1), "Phi must be a f"),
        (lambda P, U: greedy.greedy_coverage(P * np.nan, U, 1), "Phi must be"),
        (lambda P, U: greedy.greedy_coverage(P, U, 1, P[1:]), "H0 must have"),
        (lambda P, U: greedy.greedy_coverage(P, 2 * U, 1), "UK must"),
        (lambda P, U: greedy.lazy_oracle(0.0), "alpha must be in"),
        (lambda P, U: greedy.local_oracle(0)(P, U, None), "starts must be"),
    ],
)
def test_bad_input_names_the_argument(call, message):
    Phi, U = moons(12, 2)
    with pytest.raises(ValueError, match=message):
        call(Phi, U)
