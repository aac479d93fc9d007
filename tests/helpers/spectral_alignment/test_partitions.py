"""Identical rows: classes, the span of neurons, the ceiling, the staircase."""

from itertools import permutations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.cluster.hierarchy import fcluster, linkage

from helpers.core.linalg import numerical_rank
from helpers.spectral_alignment import graphs, spectra
from helpers.spectral_alignment.coverage import (
    captured_features,
    coverage_deficit,
    coverage_gap,
    residual_matrix,
)
from helpers.spectral_alignment.layers import (
    neuron_outputs,
    random_layers,
    relu_features,
    with_bias,
)
from helpers.spectral_alignment.partitions import (
    coverage_ceiling,
    partition_basis,
    sample_partition,
    separating_direction,
    staircase_neurons,
)

SEEDS = st.integers(0, 2**32 - 1)


def case(seed, n=None):
    """Samples with copies, an orthonormal basis, a generator."""
    rng = np.random.default_rng(seed)
    n = n or int(rng.integers(3, 16))
    q = int(rng.integers(1, n + 1))
    distinct = rng.normal(size=(q, int(rng.integers(1, 4))))
    labels = np.r_[np.arange(q), rng.integers(q, size=n - q)]
    rng.shuffle(labels)
    U = np.linalg.qr(rng.normal(size=(n, int(rng.integers(1, n)))))[0]
    return distinct[labels], labels, U, rng


# --- classes -------------------------------------------------------------


@given(SEEDS)
@settings(max_examples=60, deadline=None)
def test_partition_against_pairwise_comparison(seed):
    H, labels, _, rng = case(seed)
    found = sample_partition(H)
    same = np.all(H[:, None] == H[None], axis=2)
    np.testing.assert_array_equal(found[:, None] == found[None], same)
    np.testing.assert_array_equal(same, labels[:, None] == labels[None])
    # numbered by first appearance
    first = np.unique(found, return_index=True)[1]
    assert np.all(np.diff(first) > 0)
    # rounding does not split copies, and is seen at tolerance zero
    noisy = H * (1 + 1e-15 * rng.normal(size=H.shape))
    np.testing.assert_array_equal(sample_partition(noisy), found)
    # scale does not matter
    np.testing.assert_array_equal(sample_partition(1e-13 * H), found)


def test_copies_that_a_matrix_product_has_split():
    """Why zero is not a safe tolerance for computed features."""
    H = np.array([[1.0], [1.0 + 2e-16]])
    assert H[0, 0] != H[1, 0]
    assert sample_partition(H, tol=0.0).tolist() == [0, 1]
    assert sample_partition(H).tolist() == [0, 0]
    # distinct samples at a small distance stay distinct
    assert sample_partition([[1.0], [1.0 + 1e-9]]).tolist() == [0, 1]


def test_partition_of_special_features():
    assert sample_partition(np.zeros((3, 0))).tolist() == [0, 0, 0]
    assert sample_partition(np.zeros((3, 2))).tolist() == [0, 0, 0]
    assert sample_partition([[0.0], [-0.0], [1.0]]).tolist() == [0, 0, 1]
    assert sample_partition([[0.0], [-0.0]], tol=0.0).tolist() == [0, 0]
    assert sample_partition([[5.0]]).tolist() == [0]


def test_closeness_that_is_not_transitive_is_refused():
    chain = [[0.0], [0.1], [0.2], [1.0]]
    assert sample_partition(chain, tol=0.05).tolist() == [0, 1, 2, 3]
    assert sample_partition(chain, tol=0.3).tolist() == [0, 0, 0, 1]
    with pytest.raises(ValueError, match="does not define classes"):
        sample_partition(chain, tol=0.15)


def test_partition_basis_is_orthonormal_and_constant_on_classes():
    labels = np.array([7, -1, 7, 3, 7])
    B = partition_basis(labels)
    np.testing.assert_allclose(B.T @ B, np.eye(3), atol=1e-15)
    np.testing.assert_allclose(B[:, 2], [3**-0.5, 0, 3**-0.5, 0, 3**-0.5])


# --- Theorem 5.1 ---------------------------------------------------------


@given(SEEDS)
@settings(max_examples=60, deadline=None)
def test_theorem_5_1(seed):
    H, labels, _, rng = case(seed)
    basis = partition_basis(labels)
    # (a) neurons are constant on classes
    Phi = with_bias(H)
    out = neuron_outputs(Phi, rng.normal(size=(Phi.shape[1], 30)))
    inside = basis @ (basis.T @ out)
    np.testing.assert_allclose(out, inside, atol=1e-10)
    # (b) the staircase spans all of them
    w = separating_direction(H, rng)
    q = basis.shape[1]
    A = neuron_outputs(Phi, staircase_neurons(H, w))
    assert A.shape == (len(H), q)
    np.testing.assert_allclose(A, basis @ (basis.T @ A), atol=1e-10)
    assert numerical_rank(A, rtol=1e-13).rank == q


@given(SEEDS, st.sampled_from([0.0, 0.5, 0.9]))
@settings(max_examples=40, deadline=None)
def test_staircase_is_triangular_with_positive_diagonal(seed, offset):
    H, labels, _, rng = case(seed)
    w = separating_direction(H, rng)
    A = neuron_outputs(with_bias(H), staircase_neurons(H, w, offset))
    first = np.unique(sample_partition(H), return_index=True)[1]
    T = A[first[np.argsort((H @ w)[first])]]
    assert np.all(np.diag(T) > 0)
    np.testing.assert_allclose(np.triu(T, 1), 0, atol=1e-12)


def test_staircase_by_hand():
    """t = 0, 1, 3: mean gap 3/2; switch-on points -3/2, 0, 1."""
    H = np.array([[3.0], [0.0], [1.0], [3.0]])
    Theta = staircase_neurons(H, [1.0])
    np.testing.assert_allclose(Theta, [[1, 1, 1], [1.5, 0, -1]])
    A = neuron_outputs(with_bias(H), Theta)
    np.testing.assert_allclose(
        A, [[4.5, 3, 2], [1.5, 0, 0], [2.5, 1, 0], [4.5, 3, 2]]
    )
    middle = staircase_neurons(H, [1.0], offset=0.5)
    np.testing.assert_allclose(middle[1], [0.75, -0.5, -2])


@given(SEEDS)
@settings(max_examples=40, deadline=None)
def test_staircase_coefficients_are_changes_of_slope(seed):
    """The inverse in closed form, on distinct sorted points."""
    rng = np.random.default_rng(seed)
    t = np.sort(rng.normal(size=int(rng.integers(2, 12))))
    H = t[:, None]
    A = neuron_outputs(with_bias(H), staircase_neurons(H, [1.0]))
    v = rng.normal(size=t.size)
    g = np.append((t[-1] - t[0]) / (t.size - 1), np.diff(t))
    slopes = np.diff(np.append(0.0, v)) / g
    np.testing.assert_allclose(
        A @ np.diff(np.append(0.0, slopes)), v, atol=1e-8
    )


@given(SEEDS)
@settings(max_examples=40, deadline=None)
def test_smallest_singular_value_of_the_staircase(seed):
    rng = np.random.default_rng(seed)
    t = np.sort(rng.uniform(size=int(rng.integers(2, 40))))[:, None]
    A = neuron_outputs(with_bias(t), staircase_neurons(t, [1.0]))
    smallest = np.linalg.svd(A, compute_uv=False)[-1]
    gap = np.diff(t[:, 0]).min()
    assert gap / 4 * (1 - 1e-6) <= smallest
    assert smallest <= gap / np.sqrt(2) * (1 + 1e-6)


def test_staircase_conditioning_grows_and_offset_costs():
    """Even spacing: 16 n^2 / pi^2 at offset 0, an order more in the middle."""
    for n in (20, 100):
        t = np.arange(float(n))[:, None]
        cond = [
            np.linalg.cond(
                neuron_outputs(with_bias(t), staircase_neurons(t, [1.0], o))
            )
            for o in (0.0, 0.5)
        ]
        assert 0.6 < cond[0] / (16 * n**2 / np.pi**2) < 1
        assert cond[1] > n * cond[0] / 2
    medians = []
    for n in (20, 100):
        draws = []
        for seed in range(12):
            rng = np.random.default_rng(seed)
            H, w = rng.normal(size=(n, 2)), rng.normal(size=2)
            Theta = staircase_neurons(H, w, offset=0.5)
            draws.append(np.linalg.cond(neuron_outputs(with_bias(H), Theta)))
        medians.append(np.median(draws))
    assert 1e4 < medians[0] < 1e6
    assert 1e6 < medians[1] < 1e9


def test_separating_direction_chooses_the_wider_gap():
    H = np.random.default_rng(1).normal(size=(30, 2))

    def gap(w):
        return np.diff(np.sort(H @ w)).min() / np.ptp(H @ w)

    many = gap(separating_direction(H, 0, tries=64))
    assert many >= gap(separating_direction(H, 0, tries=1))
    assert np.linalg.norm(separating_direction(H, 0)) == pytest.approx(1)
    # one class: any direction will do
    assert separating_direction(np.ones((4, 2)), 0).shape == (2,)


# --- Corollary 5.2 -------------------------------------------------------


@given(SEEDS)
@settings(max_examples=60, deadline=None)
def test_corollary_5_2(seed):
    H, labels, U, rng = case(seed)
    ceiling = coverage_ceiling(H, U)
    basis = partition_basis(labels)
    K = U.shape[1]
    assert ceiling.classes == basis.shape[1]
    # three routes
    P = basis @ basis.T
    np.testing.assert_allclose(
        ceiling.captured, np.trace(P @ U @ U.T), atol=1e-10
    )
    within = sum(
        np.sum((U[labels == c] - U[labels == c].mean(axis=0)) ** 2)
        for c in np.unique(labels)
    )
    np.testing.assert_allclose(ceiling.deficit, within, atol=1e-10)
    np.testing.assert_allclose(K - ceiling.captured, within, atol=1e-10)
    np.testing.assert_allclose(
        ceiling.gap, np.linalg.norm(U - P @ U, 2), atol=1e-10
    )
    # no later layer gets past it, and rows stay equal
    layers = random_layers(H.shape[1], [20, 20, 40], rng)
    for Z in relu_features(H, *layers):
        Z = with_bias(Z)
        assert captured_features(Z, U) <= ceiling.captured + 1e-9
        assert coverage_gap(Z, U) >= ceiling.gap - 1e-9
    # adding more of the same is not needed: the staircase reaches it
    A = neuron_outputs(
        with_bias(H), staircase_neurons(H, separating_direction(H, rng))
    )
    np.testing.assert_allclose(
        coverage_deficit(A, U, rtol=1e-13), ceiling.deficit, atol=1e-6
    )


def test_ceiling_by_hand():
    """Path of three nodes, the two ends merged: u_2 is lost, and only it."""
    path = graphs.graph_laplacian([[0, 1, 0], [1, 0, 1], [0, 1, 0]])
    _, U = spectra.laplacian_spectrum(path)
    ends = coverage_ceiling([[1.0], [0.0], [1.0]], U)
    np.testing.assert_allclose(ends.captured, 2)
    np.testing.assert_allclose(ends.gap, 1)
    # a neighbouring pair: half of the squared distance of the two rows
    pair = coverage_ceiling([[0.0], [0.0], [1.0]], U[:, :2])
    np.testing.assert_allclose(pair.deficit, 1 / 4)
    np.testing.assert_allclose(pair.gap, 1 / 2)
    # distinct rows: nothing is lost
    assert coverage_ceiling([[0.0], [1.0], [2.0]], U).deficit < 1e-20


def test_ceiling_is_the_sum_of_squares_of_ward_clustering():
    """Ward's heights add up to what merging costs, at every level."""
    X = np.random.default_rng(3).normal(size=(60, 2))
    L = graphs.graph_laplacian(graphs.knn_graph(X, 6))
    U = spectra.laplacian_eigenbasis(L, 5).vectors
    tree = linkage(U, "ward")
    cost = np.cumsum(tree[:, 2] ** 2 / 2)
    for q in (50, 20, 6, 2):
        labels = fcluster(tree, q, "maxclust")
        assert len(np.unique(labels)) == q
        found = coverage_ceiling(labels[:, None], U)
        np.testing.assert_allclose(found.deficit, cost[60 - q - 1])
        assert found.captured <= min(q, 5)


def test_twins_of_the_graph_merge_for_free():
    """Copies that the graph has seen: the ceiling stays K."""
    X = np.random.default_rng(4).normal(size=(14, 2))
    X[7:9] = X[:2]
    L = graphs.graph_laplacian(graphs.rbf_graph(X, 1.0))
    lam, V = spectra.laplacian_spectrum(L)
    least = np.diag(L)[[0, 1]].min() + 1  # degree + weight of the pair
    K = int(np.sum(lam < least - 1e-9))
    assert 2 <= K < 14
    assert coverage_ceiling(X, V[:, :K]).deficit < 1e-12
    assert coverage_ceiling(X, V).deficit == pytest.approx(2)


def test_random_merging_costs_a_straight_line():
    """Exact mean over all assignments of six samples to sizes 3, 2, 1."""
    U = spectra.laplacian_eigenbasis(
        graphs.graph_laplacian(
            graphs.rbf_graph(np.random.default_rng(5).normal(size=(6, 2)), 1.0)
        ),
        3,
    ).vectors
    ceilings = [
        coverage_ceiling(np.array([0, 0, 0, 1, 1, 2.0])[list(p), None], U)
        for p in permutations(range(6))
    ]
    mean = np.mean([c.captured for c in ceilings])
    np.testing.assert_allclose(mean, 1 + (3 - 1) * (3 - 1) / (6 - 1))


def test_merge_probability_of_a_random_layer():
    """x = 1 and x' = -1: at right angles, so (1/4)^m; 1/4 and 1/16."""
    x = with_bias([[1.0], [-1.0]])
    rng = np.random.default_rng(6)
    for m in (1, 2):
        merged = [
            sample_partition(neuron_outputs(x, rng.normal(size=(2, m)))).max()
            == 0
            for _ in range(3000)
        ]
        p = 0.25**m
        assert abs(np.mean(merged) - p) < 5 * np.sqrt(p * (1 - p) / 3000)


@given(SEEDS)
@settings(max_examples=30, deadline=None)
def test_ceilings_never_rise_with_depth(seed):
    H, _, U, rng = case(seed)
    layers = random_layers(H.shape[1], [2, 2, 3, 2], rng)
    tops = [coverage_ceiling(Z, U) for Z in relu_features(H, *layers)]
    assert np.max(np.diff([c.captured for c in tops])) < 1e-9
    assert np.max(np.diff([c.classes for c in tops])) <= 0


# --- Theorem 5.3 ---------------------------------------------------------


@given(SEEDS)
@settings(max_examples=60, deadline=None)
def test_theorem_5_3(seed):
    H0, labels, U, rng = case(seed)
    Phi, basis = with_bias(H0), partition_basis(labels)
    H = Phi
    if rng.random() < 0.5:
        H = neuron_outputs(Phi, rng.normal(size=(Phi.shape[1], 3)))
    ceiling, N = coverage_ceiling(H0, U), captured_features(H, U)
    projector = H @ np.linalg.pinv(H, rcond=1e-10)
    difference = (basis @ basis.T - projector) @ U
    np.testing.assert_allclose(
        ceiling.captured - N, np.sum(difference**2), atol=1e-9
    )
    A = neuron_outputs(
        Phi, staircase_neurons(H0, separating_direction(H0, rng))
    )
    M = residual_matrix(H, U)
    if ceiling.captured - N > 1e-6:
        # (a) some neuron of the staircase has positive gain
        gains = [captured_features(np.c_[H, a], U) - N for a in A.T]
        assert max(gains) > 1e-12
        assert np.abs(M.T @ A).max() > 0
    if ceiling.captured - N < 1e-12:
        # (b) nothing helps any more
        more = neuron_outputs(Phi, rng.normal(size=(Phi.shape[1], 30)))
        assert np.abs(M.T @ more).max() < 1e-6
        assert captured_features(np.c_[H, more], U) < N + 1e-9


def test_theorem_5_3_needs_columns_in_v_p():
    """Two samples with equal rows; H tells them apart, the layer cannot."""
    U = np.array([[1.0], [-1.0]]) / np.sqrt(2)
    basis, H = partition_basis([0, 0]), np.array([[1.0], [0.0]])
    left = captured_features(basis, U) - captured_features(H, U)
    right = np.sum(((basis @ basis.T - H @ H.T) @ U) ** 2)
    np.testing.assert_allclose([left, right], [-1 / 2, 1 / 2], atol=1e-12)


def test_erratum_remark_5_7_inputs_are_not_neurons():
    """A column with a negative entry is no ReLU output, in one sample.

    Its span with the constant is that of a neuron and the constant.
    """
    x = np.array([[-1.0]])
    thetas = np.random.default_rng(0).normal(size=(2, 500))
    assert neuron_outputs(with_bias(x), thetas).min() >= 0 > x.min()
    x = np.array([[-1.0], [0.0], [3.0]])
    shifted = neuron_outputs(with_bias(x), [[1.0], [1.0]])
    both = np.c_[with_bias(x), with_bias(shifted)]
    assert numerical_rank(both).rank == 2


def test_erratum_remark_5_7_gains_do_not_add():
    """Path of four: two neurons with gains that add up to more than all."""
    W = np.diag([1.0, 1, 1], 1)
    _, V = spectra.laplacian_spectrum(graphs.graph_laplacian(W + W.T))
    U = V[:, :3]
    Phi = with_bias(np.arange(4.0)[:, None])
    h = neuron_outputs(Phi, [[1.0, 1.0], [-1.0, -2.0]])
    N = captured_features(Phi, U)
    single = [captured_features(np.c_[Phi, a], U) - N for a in h.T]
    joint = captured_features(np.c_[Phi, h], U) - N
    np.testing.assert_allclose(joint, 3 - N, atol=1e-12)
    assert sum(single) > joint + 0.6
    # and twice the same neuron has twice the sum, and the joint gain of one
    twice = captured_features(np.c_[Phi, h[:, :1], h[:, :1]], U) - N
    np.testing.assert_allclose(twice, single[0], atol=1e-12)
    # the other way round: two useless directions that are useful together
    U1 = np.array([[0.0], [1.0], [0.0]])
    a, b = np.array([1.0, 0.1, 0.0]), np.array([1.0, 0.0, 0.0])
    one_by_one = [captured_features(c[:, None], U1) for c in (a, b)]
    assert sum(one_by_one) < 0.01
    assert captured_features(np.c_[a, b], U1) == pytest.approx(1)


# --- bad input -----------------------------------------------------------


X2 = np.eye(2)
NAN = np.full((2, 2), np.nan)


@pytest.mark.parametrize(
    ("call", "match"),
    [
        (lambda: sample_partition(np.ones(3)), "H must be a matrix"),
        (lambda: sample_partition(np.zeros((0, 2))), "H must be a matrix"),
        (lambda: sample_partition(NAN), "H must be finite"),
        (lambda: sample_partition(X2, tol=1.0), "tol must lie"),
        (lambda: sample_partition(X2, tol=np.nan), "tol must lie"),
        (lambda: partition_basis([]), "labels must be"),
        (lambda: partition_basis([0.5]), "labels must be"),
        (lambda: partition_basis([[1]]), "labels must be"),
        (lambda: coverage_ceiling(X2, np.eye(3)), "UK must have shape"),
        (lambda: coverage_ceiling(X2, 2 * X2), "UK must have orthonormal"),
        (lambda: coverage_ceiling(X2, np.zeros((2, 0))), "K >= 1"),
        (lambda: coverage_ceiling(NAN, X2), "H must be finite"),
        (lambda: staircase_neurons(X2, [1.0]), "w must be finite with"),
        (lambda: staircase_neurons(X2, [1.0, np.nan]), "w must be finite"),
        (lambda: staircase_neurons(X2, [1.0, 1.0]), "samples 0 and 1"),
        (lambda: staircase_neurons(X2, [1.0, 0.0], 1.0), "offset must"),
        (lambda: separating_direction(X2, 0, tries=0), "tries must be"),
        (lambda: separating_direction(np.zeros((2, 0)), 0), "at least one"),
        (lambda: separating_direction(X2, None), "rng must be"),
    ],
)
def test_bad_input_is_named(call, match):
    with pytest.raises(ValueError, match=match):
        call()
