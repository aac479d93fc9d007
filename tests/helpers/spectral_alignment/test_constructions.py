"""Layers that keep coverage: copies, principal directions, the shift."""

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from scipy.linalg import subspace_angles

from helpers.core.linalg import numerical_rank
from helpers.spectral_alignment import graphs
from helpers.spectral_alignment.constructions import (
    copy_layer,
    principal_direction_layer,
    principal_vectors,
    shifted_copy_layer,
    shifted_principal_layer,
)
from helpers.spectral_alignment.coverage import (
    captured_features,
    coverage_gap,
    coverage_sines,
    residual_matrix,
)
from helpers.spectral_alignment.layers import neuron_outputs, with_bias
from helpers.spectral_alignment.partitions import (
    coverage_ceiling,
    sample_partition,
    separating_direction,
    staircase_neurons,
)
from helpers.spectral_alignment.spectra import laplacian_eigenbasis

SEEDS = st.integers(0, 2**32 - 1)
LAW = {"max_examples": 50, "deadline": None}


def case(seed, connected=False):
    """Features of odd kinds, a basis, a generator; copies in some cases."""
    rng = np.random.default_rng(seed)
    n, m = int(rng.integers(5, 25)), int(rng.integers(1, 6))
    kind = rng.integers(4)
    H = rng.normal(size=(n, m))
    if kind == 1:
        H = np.c_[H, H @ rng.normal(size=(m, 3)), np.zeros(n)]
    elif kind == 2:
        H = rng.integers(0, 3, size=(n, m)).astype(float)
    elif kind == 3:
        H[n // 2 :] = H[rng.integers(n // 2, size=n - n // 2)]
    K = int(rng.integers(1, min(n, 8)))
    if connected:
        W = graphs.rbf_graph(rng.normal(size=(n, 2)), 1.0)
        U = laplacian_eigenbasis(graphs.graph_laplacian(W), K).vectors
    else:
        U = np.linalg.qr(rng.normal(size=(n, K)))[0]
    return H, with_bias(H), U, rng


# --- copies --------------------------------------------------------------


@given(SEEDS)
@settings(**LAW)
def test_copies_keep_the_column_space(seed):
    H, Phi, U, _ = case(seed)
    both = neuron_outputs(Phi, copy_layer(H, first=True))
    shifted = neuron_outputs(Phi, shifted_copy_layer(H))
    assert both.shape[1] == 2 * H.shape[1]
    assert shifted.shape == H.shape
    rank = numerical_rank(Phi).rank
    for R in (both, shifted):
        grown = numerical_rank(np.c_[with_bias(R), Phi]).rank
        assert grown == numerical_rank(with_bias(R)).rank
    # the shifted copies add nothing
    assert numerical_rank(with_bias(shifted)).rank == rank
    np.testing.assert_allclose(
        coverage_sines(with_bias(shifted), U),
        coverage_sines(Phi, U),
        atol=1e-8,
    )
    # outputs of ReLUs are copied as they are
    again = neuron_outputs(with_bias(both), copy_layer(both, first=False))
    np.testing.assert_array_equal(again, both)


def test_copies_by_hand():
    x = np.array([[-2.0], [1.0]])
    np.testing.assert_array_equal(
        neuron_outputs(with_bias(x), copy_layer(x, first=True)),
        [[0, 2], [1, 0]],
    )
    np.testing.assert_array_equal(
        neuron_outputs(with_bias(x), shifted_copy_layer(x)), [[0], [3]]
    )


def test_erratum_proposition_3_3_width():
    """One neuron does for d = 1 what the paper does with two; none cannot."""
    x = np.array([[-1.0], [0.0], [1.0]])
    U = np.c_[np.ones(3), x[:, 0]] / np.sqrt([3, 2])
    shifted = neuron_outputs(with_bias(x), shifted_copy_layer(x))
    assert shifted.shape[1] == 1
    assert coverage_gap(with_bias(shifted), U) < 1e-12
    assert coverage_gap(np.ones((3, 1)), U) == pytest.approx(1)
    # without the shift one neuron loses: sigma(x) = (0, 0, 1)
    plain = neuron_outputs(with_bias(x), [[1.0], [0.0]])
    assert coverage_gap(with_bias(plain), U) == pytest.approx(0.5)


def test_no_fewer_neurons_can_copy():
    """k neurons and the constant have rank k + 1 at most."""
    H = np.random.default_rng(0).normal(size=(12, 3))
    Phi = with_bias(H)
    rank = numerical_rank(Phi).rank
    few = neuron_outputs(Phi, shifted_copy_layer(H)[:, :2])
    assert numerical_rank(with_bias(few)).rank == rank - 1


def test_new_inputs_are_cut_off_with_probability_one_over_n_plus_one():
    """Every one of six points in turn is the new one: one sixth, exactly."""
    X = np.random.default_rng(7).standard_cauchy(size=(6, 3))
    cut = np.zeros(3)
    for new in range(6):
        Theta = shifted_copy_layer(np.delete(X, new, axis=0))
        cut += (with_bias(X[[new]]) @ Theta)[0] < 0
    np.testing.assert_array_equal(cut, 1)


# --- Proposition 5.5 -----------------------------------------------------


@given(SEEDS)
@settings(**LAW)
def test_principal_vectors_against_scipy(seed):
    _, Phi, U, _ = case(seed)
    vectors, theta, cosines = principal_vectors(Phi, U)
    r = min(U.shape[1], numerical_rank(Phi).rank)
    assert vectors.shape == (len(U), r) and theta.shape[1] == r
    np.testing.assert_allclose(Phi @ theta, vectors, atol=1e-8)
    np.testing.assert_allclose(vectors.T @ vectors, np.eye(r), atol=1e-10)
    found = np.sort(np.cos(subspace_angles(Phi, U)))[::-1]
    np.testing.assert_allclose(cosines, found[:r], atol=1e-8)
    # U.T p_i are orthogonal, with the cosines as lengths
    gram = (U.T @ vectors).T @ (U.T @ vectors)
    np.testing.assert_allclose(gram, np.diag(cosines**2), atol=1e-10)


@given(SEEDS)
@settings(**LAW)
def test_proposition_5_5(seed):
    H, Phi, U, rng = case(seed)
    Theta = principal_direction_layer(Phi, U, rng)
    r = min(U.shape[1], numerical_rank(Phi).rank)
    assert Theta.shape == (Phi.shape[1], 2 * r + 2)
    R = neuron_outputs(Phi, Theta)
    np.testing.assert_allclose(
        R[:, -2] - R[:, -1], Phi @ Theta[:, -2], atol=1e-12
    )
    before, after = (coverage_sines(Z, U) for Z in (Phi, with_bias(R)))
    assert np.all(after <= before + 1e-8)
    assert (
        captured_features(with_bias(R), U) >= captured_features(Phi, U) - 1e-8
    )
    # rows that were distinct stay so, copies stay copies
    assert sample_partition(R).tolist() == sample_partition(H).tolist()
    # the principal vectors alone have the sines of Phi, every one of them
    vectors = principal_vectors(Phi, U).vectors
    np.testing.assert_allclose(coverage_sines(vectors, U), before, atol=1e-8)


def test_proposition_5_5_needs_the_pair_and_the_minus():
    """K = 1: p_1 is constant, alone it merges all samples."""
    x = np.array([[-1.0], [0.0], [2.0]])
    Phi, U = with_bias(x), np.ones((3, 1)) / np.sqrt(3)
    Theta = principal_direction_layer(Phi, U, 0)
    assert Theta.shape == (2, 4)
    without = neuron_outputs(Phi, Theta[:, :2])
    assert sample_partition(without).max() == 0
    # without the minus neurons coverage is lost, in nearly every case
    lost = []
    for seed in range(20):
        rng = np.random.default_rng(seed)
        Phi = with_bias(rng.normal(size=(12, 2)))
        U = np.linalg.qr(rng.normal(size=(12, 2)))[0]
        theta = principal_direction_layer(Phi, U, rng)[:, :2]
        half = neuron_outputs(Phi, theta)
        lost.append(captured_features(half, U) - captured_features(Phi, U))
    assert np.median(lost) < -1e-2


@given(SEEDS)
@settings(**LAW)
def test_corollary_5_4_and_remark_5_6_increase_strictly(seed):
    """Copies plus one neuron; 2r + 1; and r + 1 with the shift."""
    H, Phi, U, rng = case(seed)
    N = captured_features(Phi, U)
    assume(coverage_ceiling(H, U).captured > N + 1e-4)
    stairs = staircase_neurons(H, separating_direction(H, rng))
    moved = np.abs(residual_matrix(Phi, U).T @ neuron_outputs(Phi, stairs))
    extra = stairs[:, [int(np.argmax(moved.max(axis=0)))]]
    theta = principal_vectors(Phi, U).theta
    shifted = shifted_principal_layer(Phi, U, 0)[:, :-1]
    for kept in (
        copy_layer(H, first=True),
        shifted_copy_layer(H),
        np.c_[theta, -theta],
        shifted,
    ):
        Z = with_bias(neuron_outputs(Phi, np.c_[kept, extra]))
        assert captured_features(Z, U) > N + 1e-9
        assert coverage_gap(Z, U) <= coverage_gap(Phi, U) + 1e-8


# --- C1 ------------------------------------------------------------------


@given(SEEDS)
@settings(**LAW)
def test_c1_shifted_principal_layer(seed):
    H, Phi, U, rng = case(seed)
    Theta = shifted_principal_layer(Phi, U, rng)
    r = min(U.shape[1], numerical_rank(Phi).rank)
    assert Theta.shape == (Phi.shape[1], r + 1)
    R = neuron_outputs(Phi, Theta)
    # nothing is cut off: the layer is affine on the sample
    np.testing.assert_allclose(R, Phi @ Theta, atol=1e-8)
    # not only no larger: every sine is the same
    np.testing.assert_allclose(
        coverage_sines(with_bias(R), U), coverage_sines(Phi, U), atol=1e-8
    )
    assert sample_partition(R).tolist() == sample_partition(H).tolist()


@given(SEEDS)
@settings(**LAW)
def test_c1_centered_needs_at_most_k_neurons(seed):
    H, Phi, U, rng = case(seed, connected=True)
    # the constant need not be a column of the basis
    K = U.shape[1]
    U = U @ np.linalg.qr(rng.normal(size=(K, K)))[0]
    Theta = shifted_principal_layer(Phi, U, rng, centered=True)
    r = min(U.shape[1], numerical_rank(Phi).rank)
    assert Theta.shape[1] == r <= U.shape[1]
    R = neuron_outputs(Phi, Theta)
    np.testing.assert_allclose(R, Phi @ Theta, atol=1e-8)
    np.testing.assert_allclose(
        coverage_sines(with_bias(R), U), coverage_sines(Phi, U), atol=1e-7
    )
    assert sample_partition(R).tolist() == sample_partition(H).tolist()


def test_c1_centered_by_hand():
    """x = (-1, 0, 1) and K = 2: two neurons, both multiples of x + 1."""
    x = np.array([[-1.0], [0.0], [1.0]])
    U = np.c_[np.ones(3), x[:, 0]] / np.sqrt([3, 2])
    R = neuron_outputs(
        with_bias(x), shifted_principal_layer(with_bias(x), U, 0, True)
    )
    assert R.shape == (3, 2)
    for column in (R / R.max(axis=0)).T:
        assert np.allclose(np.sort(column), [0, 0.5, 1])
        assert column[1] == pytest.approx(0.5)
    # features that are constant have nothing but the separating neuron
    flat = with_bias(np.full((3, 2), 0.1))
    assert shifted_principal_layer(flat, U, 0, True).shape == (3, 1)
    # without features at all
    alone = shifted_principal_layer(np.ones((3, 1)), U, 0, True)
    assert alone.shape == (1, 1)


X2, U2 = np.array([[-1.0, 1], [1, 1]]), np.eye(2)[:, :1]
NAN = np.full((2, 2), np.nan)


@pytest.mark.parametrize(
    ("call", "match"),
    [
        (lambda: copy_layer(np.ones(3), True), "H must be a matrix"),
        (lambda: copy_layer(NAN, True), "H must be finite"),
        (lambda: copy_layer(X2, False), "negative entry -1"),
        (lambda: shifted_copy_layer(np.zeros((2, 0))), "H must be a matrix"),
        (lambda: shifted_copy_layer(NAN), "H must be finite"),
        (lambda: principal_vectors(X2, np.eye(3)), "UK must have shape"),
        (lambda: principal_vectors(X2, 2 * U2), "UK must have orthonormal"),
        (lambda: principal_vectors(X2, U2, rtol=1.0), "rtol must lie"),
        (lambda: principal_vectors(NAN, U2), "Phi must be finite"),
        (lambda: principal_direction_layer(X2, U2, None), "rng must be"),
        (lambda: principal_direction_layer(X2, U2, 0, 2.0), "tol must lie"),
        (lambda: shifted_principal_layer(2 * X2, U2, 0), "constant 1"),
        (lambda: shifted_principal_layer(X2, U2, 0, True), "holds only 0.5"),
        (lambda: shifted_principal_layer(X2, U2[:, :0], 0), "K >= 1"),
    ],
)
def test_bad_input_is_named(call, match):
    with pytest.raises(ValueError, match=match):
        call()
