"""The census of graphs, and what libraries make of a graph."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.sparse import csc_array
from scipy.sparse.csgraph import laplacian as scipy_laplacian
from scipy.sparse.linalg import eigsh
from sklearn.manifold import SpectralEmbedding
from sklearn.neighbors import kneighbors_graph

from helpers.core.linalg import principal_angles
from helpers.spectral_alignment import census, graphs, spectra
from helpers.spectral_alignment.coverage import captured_features
from helpers.spectral_alignment.sample_sets import (
    NAMES,
    sample_set,
    three_clouds,
)

seeds = st.integers(0, 2**32 - 1)


def random_graph(seed, isolated=False):
    rng = np.random.default_rng(seed)
    n = int(rng.integers(4, 25))
    W = np.triu(rng.random((n, n)) * (rng.random((n, n)) < 0.4), 1)
    if not isolated:
        W[np.arange(n - 1), np.arange(1, n)] = rng.random(n - 1) + 0.05
    return W + W.T, rng


def test_localization_by_hand():
    """Path of three nodes, K = 2: leverages 5/6, 1/3, 5/6."""
    L = graphs.graph_laplacian([[0, 1, 0], [1, 0, 1], [0, 1, 0]])
    bound = census.leverage_lower_bound(L, 3.0)
    assert bound == pytest.approx([4 / 5, 1 / 3, 4 / 5])


@pytest.mark.parametrize("n", [2, 3, 7])
def test_localization_is_exact_on_the_complete_graph(n):
    """K = 1: eigenvalues 0 and n, leverage 1 / n everywhere."""
    L = graphs.graph_laplacian(np.ones((n, n)) - np.eye(n))
    assert census.leverage_lower_bound(L, n) == pytest.approx([1 / n] * n)


@given(seeds, st.sampled_from(graphs.KINDS))
def test_localization_never_exceeds_the_leverage(seed, kind):
    W, rng = random_graph(seed, isolated=kind == "combinatorial")
    W = W * 10.0 ** rng.integers(-3, 4)
    if kind == "symmetric" or W.any():
        L = graphs.graph_laplacian(W, kind)
        lam, U = spectra.laplacian_spectrum(L)
        K = int(rng.integers(1, len(lam)))
        if lam[K] > 1e-9 * lam[-1]:
            bound = census.leverage_lower_bound(L, lam[K])
            assert (bound <= spectra.leverage_scores(U[:, :K]) + 1e-9).all()
            assert (bound >= 0).all()


def test_an_isolated_node_is_held_whole():
    W = np.zeros((4, 4))
    W[:3, :3] = 1 - np.eye(3)
    bound = census.leverage_lower_bound(graphs.graph_laplacian(W), 3.0)
    assert bound == pytest.approx([1 / 3, 1 / 3, 1 / 3, 1])


def test_each_of_the_two_bounds_is_the_better_one_somewhere():
    """Cantelli's where v <= m (lambda - m), Markov's elsewhere."""
    path = graphs.graph_laplacian([[0, 1, 0], [1, 0, 1], [0, 1, 0]])
    assert census.leverage_lower_bound(path, 3.0)[0] > 1 - 1 / 3
    heavy = np.zeros((3, 3))
    heavy[0, 1] = heavy[1, 0] = 10.0
    heavy[1, 2] = heavy[2, 1] = 0.1
    L = graphs.graph_laplacian(heavy)
    c = 11.0 - 10.0  # node 0: mean 10, variance 100
    bound = census.leverage_lower_bound(L, 11.0)[0]
    assert bound == pytest.approx(c / 11) and bound > c**2 / (c**2 + 100)


def test_dense_and_sparse_laplacians_agree():
    X, _ = sample_set("moons", 40)
    W = graphs.knn_graph(X, 5)
    bounds = [
        census.leverage_lower_bound(
            graphs.graph_laplacian(w, "symmetric"), 1.2
        )
        for w in (W, W.toarray())
    ]
    assert bounds[0] == pytest.approx(bounds[1])


def test_summary_of_the_path():
    path = [[0, 1, 0], [1, 0, 1], [0, 1, 0]]
    found = census.summarize_graph(
        path, "combinatorial", 2, [1, 0, 1], np.ones((3, 1))
    )
    assert (found.components, found.isolated) == (1, 0)
    assert (found.last, found.following) == pytest.approx((1, 3))
    assert found.captured == pytest.approx(1)
    # f = (1,0,1): energy 2, high part along u_3 is 2/sqrt(6) of sqrt(2)
    assert found.high == pytest.approx(1 / np.sqrt(3))
    assert found.smoothness == pytest.approx(1 / np.sqrt(3))
    assert found.looseness == pytest.approx(1)  # u_1 and u_3 only: tight


def test_summary_counts_captures_as_coverage_does():
    X, f = sample_set("blobs", 40)
    features = np.maximum(X, 0)
    W = census.standard_graph(X, "radius")
    found = census.summarize_graph(W, "symmetric", 5, f, features)
    L = graphs.graph_laplacian(W, "symmetric")
    U = spectra.laplacian_eigenbasis(L, 5).vectors
    assert found.captured == pytest.approx(captured_features(features, U))
    assert found.looseness > 1


def test_summary_where_nothing_is_high():
    cliques = np.kron(np.eye(2), np.ones((3, 3)) - np.eye(3))
    found = census.summarize_graph(
        cliques, "combinatorial", 2, [1, 1, 1, -1, -1, -1], np.ones((6, 1))
    )
    assert found.components == 2 and found.high < 1e-12
    assert np.isnan(found.looseness)


@pytest.mark.parametrize("name", NAMES)
def test_sample_sets(name):
    X, f = sample_set(name, 60, 3)
    assert X.shape[0] == f.size == 60 and np.abs(f).max() <= 1
    assert np.abs(X.mean(axis=0)).max() < 1e-12
    again = sample_set(name, 60, 3)
    assert np.array_equal(X, again.X) and np.array_equal(f, again.f)
    assert not np.array_equal(X, sample_set(name, 60, 4).X)
    if name not in ("digits",):
        assert X.std(axis=0) == pytest.approx(np.ones(X.shape[1]))
    if name != "swiss roll":
        assert set(f) == {-1.0, 1.0}


def test_clouds_are_centred_on_the_corners_of_a_triangle():
    X, cloud = three_clouds(4000, 0.5, 2)
    means = np.array([X[cloud == c].mean(axis=0) for c in range(3)])
    sides = np.linalg.norm(means - np.roll(means, 1, axis=0), axis=1)
    # 4000 samples of deviation 1/2: four standard errors of a side, 0.045,
    # and of a deviation, 4.5 %
    assert sides == pytest.approx([4 * np.sqrt(3)] * 3, abs=0.05)
    assert X[cloud == 0].std(axis=0) == pytest.approx([0.5, 0.5], rel=0.05)


def test_blobs_keep_their_centres():
    """Draws differ in the samples, not in where the four clusters lie."""
    means = []
    for seed in (0, 1):
        X, f = sample_set("blobs", 2000, seed)
        means.append(np.sort(X[f > 0].mean(axis=0)))
    assert means[0] == pytest.approx(means[1], abs=0.1)  # four std errors


@pytest.mark.parametrize("name", census.GRAPHS)
def test_standard_graphs_have_no_isolated_node_but_for_mutual(name):
    X, _ = sample_set("blobs", 100, 0)
    W = census.standard_graph(X, name)
    degrees = np.asarray(W.sum(axis=0)).ravel()
    if name in ("10-NN",):
        assert degrees.min() >= 10
    if name == "mutual":
        assert degrees.max() <= 10
    if name == "radius":
        assert degrees.min() >= 10 - 1e-9  # inclusive at the largest distance


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: sample_set("rings"), "name must be one of"),
        (lambda: three_clouds(0, 1.0), "n must be a whole number >= 1"),
        (lambda: three_clouds(3, -1.0), "spread must be finite"),
        (lambda: sample_set("moons", 3), "n must be a whole number >= 4"),
        (lambda: census.standard_graph(np.eye(12), "all"), "name must be one"),
        (lambda: census.leverage_lower_bound(np.eye(2), 0), "following must"),
        (lambda: census.leverage_lower_bound(np.ones((2, 3)), 1), "L must be"),
        (
            lambda: census.summarize_graph(
                np.ones((3, 3)) - np.eye(3),
                "combinatorial",
                1,
                [0, 0, 0],
                np.ones((3, 1)),
            ),
            "f must be finite and not zero",
        ),
    ],
)
def test_bad_input_names_the_argument(call, message):
    with pytest.raises(ValueError, match=message):
        call()


# What libraries do differently: each is a reason for a line of ours.


def test_neighbour_lists_of_scikit_learn_are_directed():
    X, _ = sample_set("moons", 80)
    A = kneighbors_graph(X, 5).toarray()
    assert not np.array_equal(A, A.T)
    averaged = (A + A.T) / 2
    assert set(np.unique(averaged)) == {0, 0.5, 1}  # a third kind of graph
    assert np.array_equal(np.maximum(A, A.T), graphs.knn_graph(X, 5).toarray())


def test_scipy_gives_an_isolated_node_the_eigenvalue_zero_without_a_word():
    W = np.zeros((3, 3))
    W[0, 1] = W[1, 0] = 1
    assert scipy_laplacian(W, normed=True)[2, 2] == 0
    with pytest.raises(ValueError, match="positive degrees"):
        graphs.graph_laplacian(W, "symmetric")


def test_shift_invert_at_zero_meets_a_singular_matrix():
    """SciPy's eigsh with sigma=0 fails where the graph falls apart."""
    cliques = np.kron(np.eye(3), np.ones((4, 4)) - np.eye(4))
    L = graphs.graph_laplacian(graphs.check_weights(cliques))
    with pytest.raises(RuntimeError, match="singular"):
        eigsh(csc_array(L), k=4, sigma=0)
    lam = spectra.laplacian_eigenbasis(L, 4, "shift_invert").eigenvalues
    assert lam == pytest.approx([0, 0, 0, 4, 4], abs=1e-9)


def test_spectral_embedding_is_not_the_low_pass_basis():
    """scikit-learn divides by root degrees and drops the first vector."""
    X, _ = sample_set("moons", 80)
    W = graphs.rbf_graph(X, 0.5)
    embedded = SpectralEmbedding(
        2, affinity="precomputed", random_state=0
    ).fit_transform(W)
    assert np.abs(embedded.T @ embedded - np.eye(2)).max() > 0.5
    _, U = spectra.laplacian_spectrum(graphs.graph_laplacian(W, "symmetric"))
    root = np.sqrt(W.sum(axis=0))[:, None]
    same = principal_angles(embedded * root, U[:, 1:3])
    assert same.max() < 1e-5  # as good as its iterative solver makes it
