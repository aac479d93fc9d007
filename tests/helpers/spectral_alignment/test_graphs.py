"""Graphs on samples: hand-made cases, brute force, and laws."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse
from scipy.sparse.csgraph import laplacian as scipy_laplacian
from sklearn.neighbors import kneighbors_graph

from helpers.core.tolerances import ROUNDING
from helpers.spectral_alignment import graphs

SEEDS = st.integers(0, 2**32 - 1)
PATH = np.array([[0.0, 1, 0], [1, 0, 1], [0, 1, 0]])


def brute_force_knn(X, k, mode):
    """Sort all distances, smaller index first, and symmetrise."""
    n = len(X)
    directed = np.zeros((n, n))
    for i in range(n):
        far = [(np.sum((X[i] - X[j]) ** 2), j) for j in range(n) if j != i]
        for _, j in sorted(far)[:k]:
            directed[i, j] = 1
    combine = np.maximum if mode == "union" else np.minimum
    return combine(directed, directed.T)


def random_weights(rng, n):
    W = rng.random((n, n)) * (rng.random((n, n)) < rng.uniform(0.2, 1))
    return np.triu(W, 1) + np.triu(W, 1).T


@pytest.mark.parametrize("mode", ["union", "mutual"])
@given(seed=SEEDS)
@settings(max_examples=40, deadline=None)
def test_neighbour_graph_against_brute_force(mode, seed):
    """Small integers: many ties and many equal samples."""
    rng = np.random.default_rng(seed)
    n = int(rng.integers(2, 30))
    X = rng.integers(0, 4, size=(n, int(rng.integers(1, 4)))).astype(float)
    k = int(rng.integers(1, n))
    W = graphs.knn_graph(X, k, mode).toarray()
    np.testing.assert_array_equal(W, brute_force_knn(X, k, mode))


def test_neighbour_graph_against_scikit_learn():
    X = np.random.default_rng(0).normal(size=(120, 5))
    theirs = kneighbors_graph(X, 7).toarray()
    ours = graphs.knn_graph(X, 7).toarray()
    np.testing.assert_array_equal(ours, np.maximum(theirs, theirs.T))
    average = (theirs + theirs.T) / 2
    assert set(np.unique(average)) == {0, 0.5, 1}
    np.testing.assert_array_equal(
        graphs.knn_graph(X, 7, "mutual").toarray(), average == 1
    )


def test_degrees_of_union_and_mutual_graphs():
    X = np.random.default_rng(1).normal(size=(80, 3))
    assert graphs.knn_graph(X, 6).sum(axis=1).min() >= 6
    assert graphs.knn_graph(X, 6, "mutual").sum(axis=1).max() <= 6


def test_gaussian_weights_by_hand():
    X = np.array([[0.0], [1.0], [3.0]])
    W = graphs.knn_graph(X, 1, weight="gaussian", sigma=2.0).toarray()
    expected = [
        [0, np.exp(-1 / 8), 0],
        [np.exp(-1 / 8), 0, np.exp(-1 / 2)],
        [0, np.exp(-1 / 2), 0],
    ]
    np.testing.assert_allclose(W, expected, rtol=ROUNDING)
    default = graphs.knn_graph(X, 1, weight="gaussian").toarray()
    np.testing.assert_allclose(default[0, 1], np.exp(-1 / 2))
    dense = graphs.rbf_graph(X, 2.0)
    np.testing.assert_allclose(dense[W > 0], W[W > 0], rtol=ROUNDING)
    np.testing.assert_allclose(dense[0, 2], np.exp(-9 / 8))
    assert not dense.diagonal().any()


def test_k_equal_to_all_others_gives_the_complete_graph():
    X = np.random.default_rng(2).normal(size=(9, 2))
    for mode in graphs.MODES:
        W = graphs.knn_graph(X, 8, mode).toarray()
        np.testing.assert_array_equal(W, 1 - np.eye(9))
    W = graphs.knn_graph([[0.0], [5.0]], 1)
    np.testing.assert_array_equal(W.toarray(), [[0, 1], [1, 0]])


def test_equal_samples_are_joined_nodes():
    X = np.r_[np.zeros((6, 2)), np.ones((1, 2)) * 9]
    W = graphs.knn_graph(X, 3, weight="gaussian", sigma=1.0).toarray()
    assert W.shape == (7, 7)
    np.testing.assert_array_equal(W[0, 1:4], 1)
    assert W[6].max() < np.exp(-30)
    np.testing.assert_array_equal(graphs.neighbor_distances(X, 3)[:6], 0)
    with pytest.raises(ValueError, match="sigma"):
        graphs.knn_graph(X, 3, weight="gaussian")
    E = graphs.epsilon_graph(X, 0.5).toarray()
    np.testing.assert_array_equal(E[:6, :6], 1 - np.eye(6))


def test_epsilon_graph_is_inclusive_and_may_isolate():
    W = graphs.epsilon_graph([[0.0], [1.0], [2.5]], 1.0).toarray()
    np.testing.assert_array_equal(W, [[0, 1, 0], [1, 0, 0], [0, 0, 0]])


@given(SEEDS)
@settings(max_examples=25, deadline=None)
def test_epsilon_graph_against_brute_force(seed):
    rng = np.random.default_rng(seed)
    X = rng.integers(0, 5, size=(int(rng.integers(2, 20)), 2)).astype(float)
    squares = np.sum((X[:, None] - X) ** 2, axis=2)
    W = graphs.epsilon_graph(X, 2.0).toarray()
    np.testing.assert_array_equal(W, (squares <= 4) - np.eye(len(X)))


def test_a_far_outlier_loses_its_edges_by_underflow():
    W = graphs.rbf_graph([[0.0], [1.0], [100.0]], 1.0)
    assert W[2].sum() == 0
    graph = graphs.sample_graph(W)
    assert graph.isolated.tolist() == [2] and graph.n_components == 2
    with pytest.raises(ValueError, match="positive degrees"):
        graphs.graph_laplacian(W, "symmetric")


def test_laplacians_of_the_path():
    L = graphs.graph_laplacian(PATH)
    np.testing.assert_array_equal(L, [[1, -1, 0], [-1, 2, -1], [0, -1, 1]])
    r = np.sqrt(1 / 2)
    np.testing.assert_allclose(
        graphs.graph_laplacian(PATH, "symmetric"),
        [[1, -r, 0], [-r, 1, -r], [0, -r, 1]],
        atol=ROUNDING,
    )


@pytest.mark.parametrize("kind", graphs.KINDS)
@given(seed=SEEDS)
@settings(max_examples=50, deadline=None)
def test_laplacian_laws(kind, seed):
    """SciPy, sparse storage, the kernel, and the sum over edges."""
    rng = np.random.default_rng(seed)
    n = int(rng.integers(2, 15))
    W = random_weights(rng, n)
    ring = np.roll(np.eye(n), 1, axis=1)
    W = W + (ring + ring.T) * (1 - np.eye(n))
    L = graphs.graph_laplacian(W, kind)
    theirs = scipy_laplacian(W, normed=kind == "symmetric")
    np.testing.assert_allclose(L, theirs, atol=ROUNDING)
    thin = graphs.graph_laplacian(sparse.csr_array(W), kind)
    assert sparse.issparse(thin)
    np.testing.assert_allclose(thin.toarray(), L, atol=ROUNDING)
    np.testing.assert_array_equal(L, L.T)
    root = np.sqrt(W.sum(axis=1)) if kind == "symmetric" else np.ones(n)
    np.testing.assert_allclose(L @ root, 0, atol=1e-11)
    x = rng.normal(size=n)
    steps = (x / root)[:, None] - x / root
    np.testing.assert_allclose(
        x @ L @ x, np.sum(W * steps**2) / 2, rtol=1e-10, atol=1e-12
    )


def test_isolated_node_is_a_component_for_one_and_an_error_for_the_other():
    """SciPy puts 0 there, other libraries 1; the paper excludes it."""
    W = np.zeros((3, 3))
    W[0, 1] = W[1, 0] = 2
    L = graphs.graph_laplacian(W)
    np.testing.assert_array_equal(L, [[2, -2, 0], [-2, 2, 0], [0, 0, 0]])
    with pytest.raises(ValueError, match=r"first \[2\]"):
        graphs.graph_laplacian(W, "symmetric")
    assert scipy_laplacian(W, normed=True)[2, 2] == 0


def test_one_node():
    assert graphs.graph_laplacian([[0.0]]).tolist() == [[0.0]]
    graph = graphs.sample_graph([[0.0]])
    assert (graph.n_samples, graph.n_edges, graph.n_components) == (1, 0, 1)


@pytest.mark.parametrize("pack", [np.asarray, sparse.csr_array])
def test_sample_graph_counts(pack):
    clique = np.ones((4, 4)) - np.eye(4)
    graph = graphs.sample_graph(pack(np.kron(np.eye(3), clique)))
    assert graph.n_components == 3 and graph.n_edges == 18
    assert graph.n_samples == 12 and graph.isolated.size == 0
    np.testing.assert_array_equal(graph.degrees, 3)
    np.testing.assert_array_equal(graph.components, np.repeat([0, 1, 2], 4))


X2 = np.eye(2)


@pytest.mark.parametrize(
    "call, message",
    [
        (lambda: graphs.knn_graph(X2, 2), r"k must .* 1\.\.1"),
        (lambda: graphs.knn_graph(X2, 0), "k must"),
        (lambda: graphs.knn_graph(X2, 1.5), "k must"),
        (lambda: graphs.knn_graph(X2, np.nan), "k must"),
        (lambda: graphs.knn_graph(X2, np.inf), "k must"),
        (lambda: graphs.knn_graph([[1.0, 2.0]], 1), "two samples"),
        (lambda: graphs.knn_graph([1.0, 2.0], 1), "X must hold one sample"),
        (lambda: graphs.knn_graph([[np.nan], [1]], 1), "X must be finite"),
        (lambda: graphs.knn_graph(X2, 1, "average"), "mode must be"),
        (lambda: graphs.knn_graph(X2, 1, weight="cosine"), "weight must be"),
        (
            lambda: graphs.knn_graph(X2, 1, weight="gaussian", sigma=-1.0),
            "sigma must",
        ),
        (lambda: graphs.rbf_graph(X2, 0.0), "sigma must"),
        (lambda: graphs.epsilon_graph(X2, np.inf), "eps must"),
        (lambda: graphs.graph_laplacian(PATH, "random-walk"), "kind must"),
        (lambda: graphs.graph_laplacian(np.ones((2, 3))), "shape"),
        (lambda: graphs.graph_laplacian(np.zeros((0, 0))), "shape"),
        (lambda: graphs.graph_laplacian(-PATH), "nonnegative"),
        (lambda: graphs.graph_laplacian(np.eye(2)), "zero diagonal"),
        (lambda: graphs.graph_laplacian([[0, 1], [0, 0]]), "symmetric"),
        (lambda: graphs.graph_laplacian([[0, np.inf], [np.inf, 0]]), "finite"),
    ],
)
def test_bad_input_is_named(call, message):
    with pytest.raises(ValueError, match=message):
        call()
