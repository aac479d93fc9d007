"""Coverage: hand values, other formulas, laws on the test bed, pitfalls."""

import warnings

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.linalg import subspace_angles

from helpers.core import linalg
from helpers.spectral_alignment import coverage, graphs, spectra
from helpers.spectral_alignment.coverage import (
    captured_features,
    coverage_deficit,
    coverage_gap,
    coverage_sines,
    ky_fan_directions,
    ky_fan_limits,
    residual_matrix,
)

SEEDS = st.integers(0, 2**32 - 1)
TIGHT = 1e-12
PATH = np.array([[0.0, 1, 0], [1, 0, 1], [0, 1, 0]])


def relu(z):
    return np.maximum(z, 0)


def cycle_basis(n, columns):
    """1, cos, sin, cos 2, ... on the cycle: eigenvectors, by hand."""
    angle = 2 * np.pi * np.arange(n) / n
    waves = [np.ones(n)]
    for k in range(1, n // 2):
        waves += [np.cos(k * angle), np.sin(k * angle)]
    U = np.stack(waves[:columns], axis=1)
    return U / np.linalg.norm(U, axis=0), angle


def problem(seed):
    """Graph, basis, degenerate features: one case of the test bed."""
    rng = np.random.default_rng(seed)
    n = int(rng.integers(6, 30))
    X = rng.normal(size=(n, 2))
    family = rng.integers(3)
    if family == 0:
        W = graphs.knn_graph(X, 3)
    elif family == 1:
        W = graphs.rbf_graph(X, 1.0)
    else:
        W = np.zeros((n, n))
        for i in range(1, n):
            W[i, rng.integers(i)] = rng.uniform(0.1, 2)
        W = W + W.T
    L = graphs.graph_laplacian(W, graphs.KINDS[int(rng.integers(2))])
    K = int(rng.integers(1, n))
    basis = spectra.laplacian_eigenbasis(L, K)
    Z = relu(rng.normal(size=(n, int(rng.integers(1, n + 3)))))
    if rng.random() < 0.3:
        Z = np.c_[Z, Z[:, 0], np.zeros(n)]
    return Z, basis, L, rng


def projector(Z):
    """The orthogonal projector as a matrix, by the pseudoinverse."""
    return Z @ np.linalg.pinv(Z, rcond=1e-10)


# --- fixtures ------------------------------------------------------------


def test_f1_path_of_three_nodes():
    _, U = spectra.laplacian_spectrum(graphs.graph_laplacian(PATH))
    x = np.array([-1.0, 0, 1])
    Phi = np.c_[x, np.ones(3)]
    np.testing.assert_allclose(captured_features(Phi, U[:, :2]), 2)
    np.testing.assert_allclose(coverage_gap(Phi, U[:, :2]), 0, atol=TIGHT)
    np.testing.assert_allclose(captured_features(Phi, U), 2)
    np.testing.assert_allclose(coverage_gap(Phi, U), 1)
    np.testing.assert_allclose(coverage_sines(Phi, U), [1, 0, 0], atol=TIGHT)
    # sigma(x) has gain exactly 1, the limit for one direction
    full = np.c_[Phi, relu(x)]
    np.testing.assert_allclose(captured_features(full, U), 3)
    np.testing.assert_allclose(
        ky_fan_limits(Phi, U, [0, 1, 2, 7]).deficit, [1, 0, 0, 0], atol=TIGHT
    )
    # the neuron alone: u_1 and u_2 hold 1/3 and 1/2 of it
    np.testing.assert_allclose(
        captured_features(relu(x)[:, None], U[:, :2]), 5 / 6
    )


def test_f1_symmetric_laplacian():
    L = graphs.graph_laplacian(PATH, "symmetric")
    _, U = spectra.laplacian_spectrum(L)
    one = np.ones((3, 1))
    capture = (2 + np.sqrt(2)) ** 2 / 12
    np.testing.assert_allclose(captured_features(one, U[:, :1]), capture)
    np.testing.assert_allclose(
        coverage_gap(one, U[:, :1]), np.sqrt(1 - capture)
    )
    np.testing.assert_allclose(coverage_gap(one, U[:, :1]), 0.16910, atol=5e-6)


def test_cycle_of_24_two_choices_two_answers():
    U, angle = cycle_basis(24, 3)
    H = np.c_[relu(np.cos(angle)), np.ones(24)]
    cosine, sine = U[:, [0, 1]], U[:, [0, 2]]
    cot = 1 / np.tan(np.pi / 24)
    closed = np.sqrt(1 - 3 / (6 - cot**2 / 24))
    np.testing.assert_allclose(coverage_gap(H, cosine), closed)
    np.testing.assert_allclose(closed, 0.4071, atol=5e-5)
    np.testing.assert_allclose(coverage_gap(H, sine), 1)


def test_cycle_of_24_one_neuron_cannot_lower_the_gap():
    U, angle = cycle_basis(24, 3)
    one = np.ones((24, 1))
    np.testing.assert_allclose(coverage_sines(one, U), [1, 1, 0], atol=TIGHT)
    rng = np.random.default_rng(0)
    for _ in range(200):
        h = rng.random((24, 1))
        np.testing.assert_allclose(coverage_gap(np.c_[one, h], U), 1)
    pair = relu(np.c_[np.cos(angle), np.sin(angle)])
    assert coverage_gap(np.c_[one, pair], U) < 0.53


# --- statements ----------------------------------------------------------


@given(SEEDS)
@settings(max_examples=80, deadline=None)
def test_gap_and_capture_against_dense_projectors(seed):
    Z, basis, _, _ = problem(seed)
    U = basis.vectors
    P = projector(Z)
    M = residual_matrix(Z, U)
    np.testing.assert_allclose(M, U - P @ U, atol=1e-9)
    np.testing.assert_allclose(
        coverage_gap(Z, U), np.linalg.norm(U - P @ U, 2), atol=1e-9
    )
    np.testing.assert_allclose(
        captured_features(Z, U), np.trace(P @ U @ U.T), atol=1e-9
    )
    Q = linalg.orthonormal_basis(Z)
    np.testing.assert_allclose(Q.T @ M, 0, atol=TIGHT)


@given(SEEDS)
@settings(max_examples=60, deadline=None)
def test_corollary_3_1(seed):
    Z, basis, L, rng = problem(seed)
    f = rng.normal(size=(L.shape[0], 4))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", coverage.PoorlySeparatedWarning)
        bounds = coverage.readout_error_bounds(
            Z, basis.vectors, L, f, basis.eigenvalues
        )
    error = np.linalg.norm(
        coverage.least_squares_readout(Z, f).residual, axis=0
    )
    assert np.all(error <= bounds.low_high + TIGHT)
    assert np.all(bounds.low_high <= bounds.smooth + TIGHT)


def test_corollary_3_1_tight_case_and_mutation():
    fired = 0
    for seed in range(60):
        Z, basis, L, _ = problem(seed)
        U, lam = basis.vectors, basis.eigenvalues
        _, sines, right = np.linalg.svd(residual_matrix(Z, U))
        f = U @ right[0]
        error = np.linalg.norm(coverage.least_squares_readout(Z, f).residual)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", coverage.PoorlySeparatedWarning)
            bounds = coverage.readout_error_bounds(Z, U, L, f, lam)
        np.testing.assert_allclose(error, bounds.low_high, atol=1e-10)
        if len(sines) > 1 and sines[1] < sines[0] - 1e-6:
            fired += error > sines[1] + 1e-7
    assert fired >= 20


def test_readout_bounds_by_hand():
    """Path, K = 1, Z = 1, f = (0, -1, 1): error^2 = 2, bound^2 = 2 and 5."""
    L = graphs.graph_laplacian(PATH)
    U = np.ones((3, 1)) / np.sqrt(3)
    f = np.array([0.0, -1, 1])
    bounds = coverage.readout_error_bounds(U, U, L, f, [0, 1])
    np.testing.assert_allclose(bounds, np.sqrt([2, 5]))
    assert isinstance(bounds.smooth, float)
    # no features: the gap is 1
    none = coverage.readout_error_bounds(np.zeros((3, 1)), U, L, f, [0, 1])
    np.testing.assert_allclose(none.smooth, np.sqrt(2) + np.sqrt(5))


@given(SEEDS)
@settings(max_examples=60, deadline=None)
def test_lemma_3_2_and_invariance_of_definition_3_4(seed):
    Z, basis, _, rng = problem(seed)
    U = basis.vectors
    fewer = Z @ rng.normal(size=(Z.shape[1], int(rng.integers(1, 5))))
    assert np.all(coverage_sines(Z, U) <= coverage_sines(fewer, U) + 1e-9)
    assert captured_features(Z, U) >= captured_features(fewer, U) - 1e-9
    m = Z.shape[1]
    R = np.linalg.qr(rng.normal(size=(m, m)))[0] * rng.uniform(0.5, 2, m)
    np.testing.assert_allclose(
        captured_features(Z @ R, U), captured_features(Z, U), atol=1e-9
    )


def test_lemma_3_2_needs_the_inclusion():
    """Same number of columns, no inclusion: the gap may grow."""
    U = np.eye(3)[:, :1]
    assert coverage_gap(np.eye(3)[:, 1:2], U) > coverage_gap(U, U)


@given(SEEDS)
@settings(max_examples=80, deadline=None)
def test_lemma_3_5(seed):
    Z, basis, _, rng = problem(seed)
    U = basis.vectors
    K, r = U.shape[1], linalg.numerical_rank(Z).rank
    N, s = captured_features(Z, U), coverage_gap(Z, U)
    angles = coverage.principal_angles(Z, U)
    np.testing.assert_allclose(N, np.sum(np.cos(angles) ** 2), atol=1e-10)
    np.testing.assert_allclose(
        np.sin(angles)[::-1], coverage_sines(Z, U), atol=1e-10
    )
    assert 0 <= N <= min(K, r)
    np.testing.assert_allclose(K - N, coverage_deficit(Z, U), atol=1e-10)
    assert (K - N) / K <= s**2 + 1e-10
    assert s**2 <= K - N + 1e-10
    h = rng.normal(size=U.shape[0])
    np.testing.assert_allclose(
        captured_features(h[:, None], U), np.sum((U.T @ h) ** 2) / (h @ h)
    )


def test_lemma_3_5_equality_cases():
    # all sines equal: K columns, each at the same angle to its own axis
    U, t = np.eye(6)[:, :3], 0.4
    Z = np.cos(t) * np.eye(6)[:, :3] + np.sin(t) * np.eye(6)[:, 3:]
    np.testing.assert_allclose(coverage_deficit(Z, U), 3 * np.sin(t) ** 2)
    np.testing.assert_allclose(coverage_gap(Z, U), np.sin(t))
    # one sine only
    Z[:, 1:] = np.eye(6)[:, 1:3]
    np.testing.assert_allclose(coverage_deficit(Z, U), np.sin(t) ** 2)
    np.testing.assert_allclose(coverage_gap(Z, U), np.sin(t))


@given(SEEDS)
@settings(max_examples=30, deadline=None)
def test_proposition_3_3_copies_keep_coverage(seed):
    rng = np.random.default_rng(seed)
    n, d, K = 20, int(rng.integers(1, 4)), int(rng.integers(1, 8))
    U = np.linalg.qr(rng.normal(size=(n, K)))[0]
    H, one = rng.normal(size=(n, d)), np.ones((n, 1))
    sines = [coverage_sines(np.c_[H, one], U)]
    for depth in range(4):
        split = np.c_[np.eye(d), -np.eye(d)]
        copies = split if depth == 0 else np.eye(H.shape[1])
        free = rng.normal(size=(H.shape[1], 2))
        H = relu(H @ np.c_[copies, free])
        sines.append(coverage_sines(np.c_[H, one], U))
    assert np.max(np.diff(sines, axis=0)) < 1e-9


def test_proposition_3_3_needs_both_signs():
    x = np.array([[-2.0], [-1.0], [1.0], [2.0]])
    U = x / np.linalg.norm(x)
    one = np.ones((4, 1))
    assert coverage_gap(np.c_[x, one], U) < TIGHT
    assert coverage_gap(np.c_[relu(x), relu(-x), one], U) < TIGHT
    assert coverage_gap(np.c_[relu(x), one], U) > 0.3


@given(SEEDS)
@settings(max_examples=80, deadline=None)
def test_theorem_5_13(seed):
    Z, basis, _, rng = problem(seed)
    U, n = basis.vectors, Z.shape[0]
    K = U.shape[1]
    Phi = Z[:, : max(1, Z.shape[1] // 3)]
    t = int(rng.integers(0, K + 2))
    limit = ky_fan_limits(Phi, U, t)
    T = rng.normal(size=(n, t))
    if rng.random() < 0.5 and t:
        T = U @ rng.normal(size=(K, t))
    both = np.c_[Phi, T]
    assert coverage_deficit(both, U) >= limit.deficit - 1e-8
    assert coverage_gap(both, U) >= limit.gap - 1e-8
    best = np.c_[Phi, ky_fan_directions(Phi, U, t)]
    np.testing.assert_allclose(
        coverage_deficit(best, U), limit.deficit, atol=1e-8
    )
    np.testing.assert_allclose(coverage_gap(best, U), limit.gap, atol=1e-8)
    eta = coverage_sines(Phi, U)
    if 1 <= t <= K and eta[t - 1] > 1e-3:
        # the mutation t - 1 is beaten by the optimal directions
        wrong = ky_fan_limits(Phi, U, t - 1)
        assert coverage_deficit(best, U) < wrong.deficit - 1e-8
        if t == K or eta[t] < eta[t - 1] - 1e-3:
            assert coverage_gap(best, U) < wrong.gap - 1e-8


def test_ky_fan_limits_shapes():
    U = np.eye(4)[:, :2]
    one = ky_fan_limits(np.zeros((4, 0)), U, 1)
    assert one == (1.0, 1.0) and isinstance(one.gap, float)
    many = ky_fan_limits(np.zeros((4, 0)), U, np.arange(4))
    np.testing.assert_array_equal(many.deficit, [2, 1, 0, 0])
    np.testing.assert_array_equal(many.gap, [1, 1, 0, 0])
    assert ky_fan_directions(np.eye(4), U, 2).shape == (4, 0)
    assert ky_fan_directions(np.zeros((4, 0)), U, 0).shape == (4, 0)


# --- the readout ---------------------------------------------------------


@given(SEEDS)
@settings(max_examples=60, deadline=None)
def test_readout_is_the_least_squares_fit(seed):
    Z, _, _, rng = problem(seed)
    f = rng.normal(size=(Z.shape[0], 2))
    beta, g, r = coverage.least_squares_readout(Z, f)
    np.testing.assert_allclose(Z @ beta, g, atol=1e-7)
    np.testing.assert_allclose(r, g - f, atol=TIGHT)
    np.testing.assert_allclose(Z.T @ r, 0, atol=1e-9)
    other = np.linalg.lstsq(Z, f, rcond=1e-10)[0]
    np.testing.assert_allclose(beta, other, rtol=1e-6, atol=1e-6)


def test_readout_of_dependent_and_missing_features():
    Z = np.c_[np.ones(3), np.ones(3), np.zeros(3)]
    beta, g, _ = coverage.least_squares_readout(Z, [0.0, 0, 3])
    np.testing.assert_allclose(beta, [1 / 2, 1 / 2, 0], atol=TIGHT)
    np.testing.assert_allclose(g, 1)
    for empty in (np.zeros((3, 0)), np.zeros((3, 2))):
        beta, g, r = coverage.least_squares_readout(empty, [1.0, 2, 3])
        np.testing.assert_array_equal(beta, np.zeros(empty.shape[1]))
        np.testing.assert_array_equal(g, 0)
        np.testing.assert_array_equal(r, [-1, -2, -3])


# --- pitfalls ------------------------------------------------------------


def test_one_place_for_bases_and_angles():
    assert coverage.orthonormal_basis is linalg.orthonormal_basis
    assert coverage.principal_angles is linalg.principal_angles


def test_subspace_angles_needs_padding():
    """SciPy leaves out the directions that too few features must miss."""
    U, Z = np.eye(5)[:, :3], np.eye(5)[:, :2]
    theirs = subspace_angles(Z, U)
    assert len(theirs) == 2 and np.sin(theirs).max() < TIGHT
    ours = coverage.principal_angles(Z, U)
    np.testing.assert_allclose(ours, [0, 0, np.pi / 2], atol=TIGHT)
    assert coverage_gap(Z, U) == 1.0


def test_small_sines_keep_their_digits():
    """The root of 1 - cos^2 is off by three orders here."""
    angle = 1e-9
    U = np.array([[1.0], [0.0]])
    Z = np.array([[np.cos(angle)], [np.sin(angle)]])
    np.testing.assert_allclose(coverage_gap(Z, U), angle, rtol=1e-6)
    np.testing.assert_allclose(coverage_deficit(Z, U), angle**2, rtol=1e-6)
    cosine = np.linalg.norm(U.T @ linalg.orthonormal_basis(Z))
    naive = np.sqrt(max(0.0, 1 - cosine**2))
    assert not np.isclose(naive, angle, rtol=0.1, atol=0)


def test_renormalised_columns_turn_noise_into_a_direction():
    """Gram-Schmidt without a tolerance counts rounding as a feature."""
    rng = np.random.default_rng(3)
    U = np.linalg.qr(rng.normal(size=(40, 8)))[0]
    A = rng.normal(size=(40, 5))
    Z = np.c_[A, A @ rng.normal(size=(5, 12))]
    columns = []
    for z in Z.T:
        for q in columns:
            z = z - q * (q @ z)
        columns.append(z / np.linalg.norm(z))
    naive = np.linalg.norm(U.T @ np.stack(columns, axis=1)) ** 2
    truth = captured_features(A, U)
    np.testing.assert_allclose(captured_features(Z, U), truth, atol=1e-9)
    assert naive > truth + 1
    # choosing columns one by one stops at the true rank
    assert len(coverage.choose_features(Z, U, 17)) == 5


def test_zero_and_repeated_columns_change_nothing():
    rng = np.random.default_rng(4)
    Z, U = rng.normal(size=(12, 3)), np.eye(12)[:, :5]
    more = np.c_[Z, np.zeros(12), Z[:, :1], -2 * Z[:, 1:2]]
    np.testing.assert_allclose(
        coverage_sines(more, U), coverage_sines(Z, U), atol=TIGHT
    )
    np.testing.assert_allclose(
        captured_features(more, U), captured_features(Z, U)
    )


@pytest.mark.parametrize("empty", [np.zeros((4, 0)), np.zeros((4, 3))])
def test_no_features_capture_nothing(empty):
    U = np.eye(4)[:, :2]
    assert captured_features(empty, U) == 0.0
    assert coverage_gap(empty, U) == 1.0
    assert coverage_deficit(empty, U) == 2.0


def test_rank_is_relative_to_the_largest_column():
    """Documented: a feature in units of 1e-12 is rounding."""
    Z = np.diag([1.0, 1e-12, 0])[:, :2]
    U = np.eye(3)[:, :2]
    assert captured_features(Z, U) == 1.0
    np.testing.assert_allclose(captured_features(Z, U, rtol=1e-14), 2)
    np.testing.assert_allclose(captured_features(1e-12 * Z[:, :1], U), 1)


def test_everything_at_size_one():
    one = np.ones((1, 1))
    assert captured_features(one, one) == 1.0
    assert coverage_gap(one, one) == 0.0
    assert coverage_gap(0 * one, one) == 1.0


def test_a_split_eigenvalue_warns_with_the_ratio():
    U, _ = cycle_basis(24, 2)
    W = np.roll(np.eye(24), 1, axis=1)
    L = graphs.graph_laplacian(W + W.T)
    lam = spectra.laplacian_eigenbasis(L, 2).eigenvalues
    with pytest.warns(coverage.PoorlySeparatedWarning, match=r"= 1 for K = 2"):
        coverage.readout_error_bounds(U, U, L, U[:, 1], lam)
    with pytest.warns(coverage.PoorlySeparatedWarning):
        assert coverage.eigenvalue_separation([0.0, 0.0]) == 1.0
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert coverage.eigenvalue_separation([0.0, 1.0]) == np.inf
        assert coverage.eigenvalue_separation([0.0, 1.0, 1.06]) == 1.06


def test_fewer_frequencies_than_components_have_no_smooth_bound():
    W = np.zeros((4, 4))
    W[0, 1] = W[1, 0] = W[2, 3] = W[3, 2] = 1
    L = graphs.graph_laplacian(W)
    U = np.ones((4, 1)) / 2
    f = np.array([1.0, 1, -1, -1])
    with pytest.warns(coverage.PoorlySeparatedWarning):
        bounds = coverage.readout_error_bounds(U, U, L, f, [0.0, 0.0])
    assert bounds.smooth == np.inf
    np.testing.assert_allclose(bounds.low_high, 2)


GOOD = np.eye(3)[:, :2]
NAN = np.array([[np.nan, 0], [0, 1], [1, 0]])


@pytest.mark.parametrize(
    ("call", "match"),
    [
        (lambda: coverage_gap(NAN, GOOD), "Z must be finite"),
        (lambda: coverage_gap(GOOD, NAN), "UK must be finite"),
        (lambda: captured_features(NAN, GOOD), "Z must be finite"),
        (lambda: coverage_gap(np.ones(3), GOOD), r"Z must have shape \(3"),
        (lambda: coverage_gap(np.ones((4, 1)), GOOD), "Z must have shape"),
        (lambda: coverage_gap(GOOD, 2 * GOOD), "UK must have orthonormal"),
        (lambda: coverage_gap(GOOD, np.ones((3, 4))), "UK must have ortho"),
        (lambda: coverage_gap(GOOD, np.zeros((3, 0))), "UK must have at le"),
        (lambda: coverage_gap(GOOD, GOOD, rtol=1.0), "rtol"),
        (lambda: residual_matrix(GOOD, GOOD, rtol=-1), "rtol"),
        (lambda: ky_fan_limits(GOOD, GOOD, -1), "t must be"),
        (lambda: ky_fan_limits(GOOD, GOOD, 1.5), "t must be"),
        (lambda: ky_fan_limits(GOOD, GOOD, True), "t must be"),
        (lambda: ky_fan_directions(GOOD, GOOD, [1, 2]), "t must be one"),
        (lambda: coverage.choose_features(GOOD, GOOD, [1]), "t must be one"),
        (lambda: coverage.choose_features(NAN, GOOD, 1), "pool must be fin"),
        (
            lambda: coverage.least_squares_readout(GOOD, np.ones(4)),
            "f must have shape",
        ),
        (
            lambda: coverage.least_squares_readout(GOOD, NAN),
            "f must be finite",
        ),
        (
            lambda: coverage.least_squares_readout(np.ones(3), np.ones(3)),
            "Z must be a matrix",
        ),
        (
            lambda: coverage.least_squares_readout(NAN, np.ones(3)),
            "Z must be finite",
        ),
        (lambda: coverage.eigenvalue_separation([1.0]), "K . 1 lowest"),
        (lambda: coverage.eigenvalue_separation([1.0, 0.0]), "nondecreas"),
        (lambda: coverage.eigenvalue_separation([0, np.nan]), "finite"),
    ],
)
def test_bad_input_is_named(call, match):
    with pytest.raises(ValueError, match=match):
        call()


def test_readout_bounds_refuse_k_equal_to_n():
    L = graphs.graph_laplacian(PATH)
    _, U = spectra.laplacian_spectrum(L)
    f = np.ones(3)
    with pytest.raises(ValueError, match="K < n"):
        coverage.readout_error_bounds(U, U, L, f, [0, 1, 3, 3])
    with pytest.raises(ValueError, match=r"K \+ 1 = 3"):
        coverage.readout_error_bounds(U, U[:, :2], L, f, [0, 1])
    with pytest.raises(ValueError, match="f must have shape"):
        coverage.readout_error_bounds(U, U[:, :2], L, [1, 2], [0, 1, 3])


# --- choosing ------------------------------------------------------------


@given(SEEDS)
@settings(max_examples=25, deadline=None)
def test_chosen_features_against_recomputation(seed):
    rng = np.random.default_rng(seed)
    n, K = 14, 5
    U = np.linalg.qr(rng.normal(size=(n, K)))[0]
    pool = relu(rng.normal(size=(n, 9)))
    start = np.ones((n, 1))
    H = start
    for index in coverage.choose_features(pool, U, 4, start):
        all_of_them = [captured_features(np.c_[H, h], U) for h in pool.T]
        np.testing.assert_allclose(
            all_of_them[index], max(all_of_them), atol=1e-9
        )
        H = np.c_[H, pool[:, index]]


def test_choosing_takes_nothing_twice():
    pool = np.c_[np.eye(4)[:, :2], np.eye(4)[:, :1], np.zeros(4)]
    got = coverage.choose_features(pool, np.eye(4)[:, :3], 9)
    assert got.tolist() == [0, 1]
    start = np.eye(4)[:, :1]
    got = coverage.choose_features(pool, np.eye(4)[:, :3], 9, start)
    assert got.tolist() == [1]
    assert coverage.choose_features(pool, np.eye(4), 0).size == 0
