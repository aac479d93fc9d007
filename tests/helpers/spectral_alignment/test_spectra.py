"""Frequencies: fixtures with exact values, and laws on random graphs."""

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse
from scipy.linalg import eigh
from scipy.sparse.linalg import ArpackNoConvergence, eigsh
from sklearn.datasets import make_moons

from helpers.core.linalg import principal_angles
from helpers.core.tolerances import ROUNDING
from helpers.spectral_alignment import graphs, spectra
from helpers.spectral_alignment.coverage import (
    captured_features,
    coverage_gap,
)

SEEDS = st.integers(0, 2**32 - 1)
PATH = np.array([[0.0, 1, 0], [1, 0, 1], [0, 1, 0]])


def cycle(n):
    ring = np.roll(np.eye(n), 1, axis=1)
    return ring + ring.T


def star(leaves):
    W = np.zeros((leaves + 1, leaves + 1))
    W[0, 1:] = W[1:, 0] = 1
    return W


def disjoint(*blocks):
    return sparse.block_diag(blocks).toarray()


def random_graph(rng):
    """One of the four families of the spec, without isolated nodes."""
    n = int(rng.integers(6, 30))
    family = rng.integers(4)
    if family == 0:
        return graphs.knn_graph(rng.normal(size=(n, 2)), 3).toarray()
    if family == 1:
        return graphs.rbf_graph(rng.normal(size=(n, 2)), 1.0)
    W = np.zeros((n, n))
    for i in range(1, n):
        W[i, rng.integers(i)] = rng.uniform(0.1, 2)
    if family == 2:
        extra = rng.random((n, n)) * (rng.random((n, n)) < 0.2)
        W = np.maximum(W, np.tril(extra, -1))
    return W + W.T


def random_weights(rng, n):
    """Any weights, some of them 0; nodes without edges are possible."""
    W = np.triu(rng.random((n, n)) * (rng.random((n, n)) < 0.7), 1)
    return W + W.T


def bed(kind, graphs_wanted=200):
    """The test bed: 200 graphs for each Laplacian, 400 in all."""
    for seed in range(graphs_wanted):
        rng = np.random.default_rng(seed)
        W = random_graph(rng)
        yield W, graphs.graph_laplacian(W, kind), rng


# --- fixtures with exact values -----------------------------------------


def test_f1_path_of_three_nodes():
    L = graphs.graph_laplacian(PATH)
    lam, U = spectra.laplacian_spectrum(L)
    np.testing.assert_allclose(lam, [0, 1, 3], atol=ROUNDING)
    expected = np.array([[1, 1, 1], [1, 0, -1], [-1, 2, -1]]).T
    expected = expected / np.sqrt([3, 2, 6])
    np.testing.assert_allclose(U, expected, atol=ROUNDING)
    lam2, U2, info = spectra.laplacian_eigenbasis(L, 2)
    np.testing.assert_allclose(lam2, lam, atol=ROUNDING)
    np.testing.assert_allclose(
        spectra.leverage_scores(U2), [5 / 6, 1 / 3, 5 / 6], atol=ROUNDING
    )
    np.testing.assert_allclose(info.gap_ratio, 3)
    assert not info.poorly_separated and info.bound_applies
    np.testing.assert_allclose(spectra.rayleigh_quotient(L, [0, 0, 1.0]), 1)


def test_f1_symmetric_laplacian():
    L = graphs.graph_laplacian(PATH, "symmetric")
    lam, U = spectra.laplacian_spectrum(L)
    np.testing.assert_allclose(lam, [0, 1, 2], atol=ROUNDING)
    np.testing.assert_allclose(
        U[:, 0], np.array([1, np.sqrt(2), 1]) / 2, atol=ROUNDING
    )
    captured = spectra.cumulative_energy(U, np.ones(3))[0]
    np.testing.assert_allclose(captured, (2 + np.sqrt(2)) ** 2 / 12)
    np.testing.assert_allclose(np.sqrt(1 - captured), 0.16910, atol=5e-6)


def test_f4_cycle_splits_a_pair():
    L = graphs.graph_laplacian(cycle(24))
    lam, U = spectra.laplacian_spectrum(L)
    k = np.arange(24)
    np.testing.assert_allclose(
        lam, np.sort(2 - 2 * np.cos(2 * np.pi * k / 24)), atol=1e-12
    )
    basis = spectra.laplacian_eigenbasis(L, 2)
    assert basis.info.poorly_separated
    np.testing.assert_allclose(basis.info.gap_ratio, 1)
    assert not spectra.laplacian_eigenbasis(L, 3).info.poorly_separated
    # H = [relu(cos), 1]: two legal choices of u_2, two different answers
    angle = 2 * np.pi * k / 24
    H = np.c_[np.maximum(np.cos(angle), 0), np.ones(24)]
    gaps = []
    for wave in (np.cos(angle), np.sin(angle)):
        U2 = np.c_[np.ones(24), wave] / np.sqrt([24, 12])
        residual = U2 - H @ np.linalg.lstsq(H, U2)[0]
        gaps.append(np.linalg.norm(residual, 2))
    np.testing.assert_allclose(gaps, [0.4071, 1], atol=5e-5)


def test_f4_three_cliques_have_a_high_part_without_energy():
    clique = np.ones((4, 4)) - np.eye(4)
    L = graphs.graph_laplacian(disjoint(clique, clique, clique))
    basis = spectra.laplacian_eigenbasis(L, 2)
    np.testing.assert_array_equal(basis.eigenvalues, 0)
    assert basis.info.n_components == basis.info.n_zero == 3
    assert basis.info.poorly_separated and not basis.info.bound_applies
    assert basis.info.gap_ratio == 1
    ones = np.kron(np.eye(3), np.ones((4, 1)))
    UK = ones[:, :2] / 2
    low, high = spectra.low_pass_split(UK, ones[:, 2])
    np.testing.assert_allclose(high @ high, 4)
    assert spectra.dirichlet_energy(L, ones[:, 2]) == 0
    with pytest.raises(ValueError, match="next_eigenvalue"):
        spectra.high_frequency_bound(L, ones[:, 2], basis.eigenvalues[-1])
    three = spectra.laplacian_eigenbasis(L, 3)
    assert three.info.gap_ratio == np.inf and three.info.bound_applies
    np.testing.assert_allclose(three.eigenvalues, [0, 0, 0, 4])


@pytest.mark.parametrize(
    "leaves, gap", [(5, 0.357), (20, 0.536), (100, 0.633)]
)
def test_f4_two_stars_separate_the_laplacians(leaves, gap):
    """Indicators of components: exact for L, not for L_sym."""
    W = disjoint(star(leaves), star(leaves))
    n = leaves + 1
    chi = np.kron(np.eye(2), np.ones((n, 1))) / np.sqrt(n)
    for kind, expected in (("combinatorial", 0.0), ("symmetric", gap)):
        L = graphs.graph_laplacian(W, kind)
        _, U, info = spectra.laplacian_eigenbasis(L, 2)
        assert info.n_zero == 2
        distance = np.linalg.norm(U - chi @ (chi.T @ U), 2)
        np.testing.assert_allclose(distance, expected, atol=6e-4)


def test_f4_isolated_node():
    W = disjoint(cycle(5), np.zeros((1, 1)))
    basis = spectra.laplacian_eigenbasis(graphs.graph_laplacian(W), 2)
    assert basis.info.n_components == 2
    np.testing.assert_allclose(spectra.leverage_scores(basis.vectors)[5], 1)
    with pytest.raises(ValueError, match="positive degrees"):
        graphs.graph_laplacian(W, "symmetric")


# --- Definition 1.1 and Lemma 2.1 on the test bed ------------------------


@pytest.mark.parametrize("kind", graphs.KINDS)
def test_energy_and_rayleigh_quotient_over_six_decades(kind):
    for W, L, rng in bed(kind):
        n = len(W)
        lam, U = spectra.laplacian_spectrum(L)
        x = rng.normal(size=n) * 10.0 ** rng.uniform(-3, 3)
        root = np.sqrt(W.sum(axis=1)) if kind == "symmetric" else 1.0
        steps = (x / root)[:, None] - (x / root)
        by_edges = np.sum(W * steps**2) / 2
        energy = spectra.dirichlet_energy(L, x)
        np.testing.assert_allclose(energy, by_edges, rtol=1e-12)
        xhat = spectra.graph_fourier_transform(U, x)
        R = spectra.rayleigh_quotient(L, x)
        np.testing.assert_allclose(
            R, np.sum(lam * xhat**2) / np.sum(xhat**2), rtol=1e-10
        )
        assert -ROUNDING <= R <= lam[-1] * (1 + ROUNDING)
        np.testing.assert_allclose(
            spectra.rayleigh_quotient(L, U), lam, atol=1e-11
        )


@pytest.mark.parametrize("kind", graphs.KINDS)
def test_lemma_2_1_equality_and_mutation(kind):
    """Holds; is an equality at u_(K+1); lambda_(K+2) breaks it there."""
    fired = 0
    for W, L, rng in bed(kind):
        n = len(W)
        K = int(rng.integers(1, n - 1))
        lam, U = spectra.laplacian_spectrum(L)
        if lam[K] <= 1e-8:
            continue
        x = rng.normal(size=n)
        _, high = spectra.low_pass_split(U[:, :K], x)
        bound = spectra.high_frequency_bound(L, x, lam[K])
        assert high @ high <= bound * (1 + ROUNDING)
        edge = U[:, K]
        _, high = spectra.low_pass_split(U[:, :K], edge)
        tight = spectra.high_frequency_bound(L, edge, lam[K])
        np.testing.assert_allclose(tight, high @ high, rtol=1e-8)
        if lam[K + 1] > lam[K] * (1 + 1e-6):
            mutated = spectra.high_frequency_bound(L, edge, lam[K + 1])
            assert high @ high > mutated
            fired += 1
    assert fired > 150


@pytest.mark.parametrize("kind", graphs.KINDS)
@given(seed=SEEDS)
@settings(max_examples=25, deadline=None)
def test_lemma_2_1_complete_equality_case(kind, seed):
    """Kernel plus next eigenspace above the cut; nothing else."""
    rng = np.random.default_rng(seed)
    n, copies = int(rng.integers(3, 9)), int(rng.integers(1, 4))
    L = graphs.graph_laplacian(disjoint(*[cycle(n)] * copies), kind)
    lam, U = spectra.laplacian_spectrum(L)
    K = int(rng.integers(copies, n * copies))

    def gap(x):
        _, high = spectra.low_pass_split(U[:, :K], x)
        return spectra.high_frequency_bound(L, x, lam[K]) - high @ high

    tied = np.isclose(lam, lam[K], atol=1e-9) & (np.arange(lam.size) >= K)
    kept = np.flatnonzero(tied | (lam == 0))
    x = U[:, kept] @ rng.uniform(0.5, 1, size=kept.size)
    np.testing.assert_allclose(gap(x), 0, atol=1e-10)
    for k in np.setdiff1d(np.arange(lam.size), kept):
        assert gap(x + U[:, k]) > 0.01


def test_mutation_cannot_fire_inside_a_repeated_eigenvalue():
    L = graphs.graph_laplacian(cycle(24))
    lam, U = spectra.laplacian_spectrum(L)
    np.testing.assert_allclose(lam[1], lam[2])
    mutated = spectra.high_frequency_bound(L, U[:, 1], lam[2])
    np.testing.assert_allclose(mutated, 1)


# --- labels: averages by brute force ---------------------------------------


@given(SEEDS)
@settings(max_examples=25, deadline=None)
def test_mean_rayleigh_quotient_over_all_orders(seed):
    """All n! orders of centred numbers, repeated numbers included."""
    rng = np.random.default_rng(seed)
    n = int(rng.integers(2, 7))
    W = random_weights(rng, n)
    L = graphs.graph_laplacian(W)
    x = rng.integers(-3, 4, size=n).astype(float)
    x[0] += n * (np.ptp(x) == 0)
    x -= x.mean()
    orders = np.array(list(itertools.permutations(x)))
    mean = spectra.rayleigh_quotient(L, orders.T).mean()
    np.testing.assert_allclose(mean, W.sum() / (n - 1), atol=ROUNDING)


@given(SEEDS)
@settings(max_examples=25, deadline=None)
def test_mean_rayleigh_quotient_over_all_class_subsets(seed):
    """Equal classes: the mean over subsets does not depend on their size."""
    rng = np.random.default_rng(seed)
    classes, members = int(rng.integers(2, 6)), int(rng.integers(1, 5))
    n = classes * members
    W = random_weights(rng, n)
    L = graphs.graph_laplacian(W)
    names = rng.permutation(np.repeat(np.arange(classes), members))
    across = np.triu(W * (names[:, None] != names)).sum()
    for a in range(1, classes):
        marked = np.array(
            [
                np.isin(names, subset)
                for subset in itertools.combinations(range(classes), a)
            ]
        ).T
        means = spectra.rayleigh_quotient(L, marked - marked.mean(axis=0))
        np.testing.assert_allclose(
            means.mean(),
            2 * classes * across / (n * (classes - 1)),
            atol=ROUNDING,
        )


def test_merging_formula_needs_equal_classes():
    """Path of four, classes of 1, 1 and 2 samples, by hand."""
    W = np.diag(np.ones(3), 1)
    L = graphs.graph_laplacian(W + W.T)
    marked = np.array([[1, 0, 0, 0], [0, 1, 0, 0], [0, 0, 1, 1]]).T
    R = spectra.rayleigh_quotient(L, marked - marked.mean(axis=0))
    np.testing.assert_allclose(R, [4 / 3, 8 / 3, 1])
    across = 2
    assert R.mean() > 2 * 3 * across / (4 * 2) + 0.1


# --- what L_sym changes -----------------------------------------------------


def test_what_the_bias_column_covers():
    """s_1 of the constant: 0 for L, the closed form for L_sym."""
    for W, L, _ in bed("symmetric", 40):
        if spectra.laplacian_eigenbasis(L, 1).info.n_components > 1:
            continue
        n, d = len(W), W.sum(axis=1)
        ones = np.ones((n, 1))
        u1 = spectra.laplacian_eigenbasis(L, 1).vectors
        formula = np.sqrt(1 - np.sum(np.sqrt(d)) ** 2 / (n * d.sum()))
        found = np.sin(principal_angles(ones, u1)[0])
        np.testing.assert_allclose(found, formula, atol=1e-7)
        u1 = spectra.laplacian_eigenbasis(graphs.graph_laplacian(W), 1)
        angle = principal_angles(ones, u1.vectors)[0]
        np.testing.assert_allclose(angle, 0, atol=1e-10)


def test_localised_eigenvectors_on_two_moons():
    """Largest leverage, K = 8: outliers rule L on dense graphs only."""
    X = make_moons(200, noise=0.08, random_state=0)[0]
    X = (X - X.mean(axis=0)) / X.std(axis=0)
    width = np.median(graphs.neighbor_distances(X, 7))
    reach = graphs.neighbor_distances(X, 10).max()
    peaks = [
        spectra.leverage_scores(
            spectra.laplacian_eigenbasis(
                graphs.graph_laplacian(W, kind), 8
            ).vectors
        ).max()
        for kind in graphs.KINDS
        for W in (
            graphs.knn_graph(X, 10),
            graphs.rbf_graph(X, width),
            graphs.epsilon_graph(X, reach),
        )
    ]
    np.testing.assert_allclose(
        peaks, [0.066, 0.79, 0.99, 0.076, 0.08, 0.12], atol=0.005
    )


# --- the solvers ----------------------------------------------------------


@pytest.mark.parametrize("kind", graphs.KINDS)
@pytest.mark.parametrize("pack", [np.asarray, sparse.csr_array])
def test_shift_invert_agrees_with_dense(kind, pack):
    X = np.random.default_rng(3).normal(size=(150, 2))
    L = pack(graphs.graph_laplacian(graphs.rbf_graph(X, 0.7), kind))
    dense = spectra.laplacian_eigenbasis(L, 9)
    krylov = spectra.laplacian_eigenbasis(L, 9, "shift_invert")
    np.testing.assert_allclose(
        krylov.eigenvalues, dense.eigenvalues, atol=1e-11
    )
    np.testing.assert_allclose(krylov.vectors, dense.vectors, atol=1e-7)


@pytest.mark.parametrize("kind", graphs.KINDS)
@pytest.mark.parametrize("K", [8, 50])
def test_sparse_equals_dense_at_a_thousand_samples(kind, K):
    """Ten digits: eigenvalues, subspace, captured features and gap."""
    X = make_moons(1000, noise=0.08, random_state=0)[0]
    X = (X - X.mean(axis=0)) / X.std(axis=0)
    L = graphs.graph_laplacian(graphs.knn_graph(X, 10), kind)
    dense = spectra.laplacian_eigenbasis(L, K)
    krylov = spectra.laplacian_eigenbasis(L, K, "shift_invert")
    np.testing.assert_allclose(
        krylov.eigenvalues, dense.eigenvalues, atol=1e-10
    )
    assert principal_angles(krylov.vectors, dense.vectors).max() < 1e-10
    rng = np.random.default_rng(0)
    H = X @ rng.normal(size=(2, 64)) + rng.normal(size=64)
    Z = np.c_[np.maximum(H, 0), np.ones(1000)]
    for measure in (captured_features, coverage_gap):
        assert measure(Z, krylov.vectors) == pytest.approx(
            measure(Z, dense.vectors), abs=1e-10
        )


def test_asking_for_the_smallest_without_a_shift_does_not_converge():
    """which='SM' on a long path; shift-invert has the cosines at once."""
    n = 2000
    bonds = sparse.diags_array([np.ones(n - 1)] * 2, offsets=[-1, 1])
    L = graphs.graph_laplacian(bonds.tocsr())
    start = np.random.default_rng(0).normal(size=n)
    with pytest.raises(ArpackNoConvergence):
        eigsh(L, k=4, which="SM", maxiter=200, v0=start)
    lam = spectra.laplacian_eigenbasis(L, 3, "shift_invert").eigenvalues
    exact = 2 - 2 * np.cos(np.pi * np.arange(4) / n)
    np.testing.assert_allclose(lam, exact, atol=1e-12)


@pytest.mark.parametrize("kind", graphs.KINDS)
def test_lobpcg_agrees_with_dense(kind):
    X = np.random.default_rng(3).normal(size=(200, 2))
    L = graphs.graph_laplacian(graphs.knn_graph(X, 10), kind)
    dense = spectra.laplacian_eigenbasis(L, 9)
    found = spectra.laplacian_eigenbasis(L, 9, "lobpcg")
    np.testing.assert_allclose(found.eigenvalues, dense.eigenvalues, atol=1e-9)
    assert principal_angles(found.vectors, dense.vectors).max() < 1e-6


def test_lobpcg_counts_the_components_of_a_disconnected_graph():
    W = disjoint(cycle(20), cycle(21), cycle(22))
    basis = spectra.laplacian_eigenbasis(
        sparse.csr_array(graphs.graph_laplacian(W)), 3, "lobpcg"
    )
    assert basis.info.n_components == basis.info.n_zero == 3


def test_lobpcg_says_that_it_has_not_converged(monkeypatch):
    """SciPy's answer after three steps looks like any other."""
    monkeypatch.setattr(spectra, "LOBPCG_STEPS", 3)
    L = graphs.graph_laplacian(cycle(100))
    with pytest.raises(RuntimeError, match="use solver='shift_invert'"):
        spectra.laplacian_eigenbasis(L, 4, "lobpcg")
    with pytest.raises(ValueError, match="K must be at most n / 5"):
        spectra.laplacian_eigenbasis(L, 16, "lobpcg")


def test_shift_invert_survives_a_singular_factor_and_multiplicities():
    """sigma = 0 dies on disconnected graphs; Krylov methods miss copies."""
    W = disjoint(cycle(20), cycle(20), cycle(20))
    for kind in graphs.KINDS:
        L = graphs.graph_laplacian(W, kind)
        exact = np.sort(
            np.tile(2 - 2 * np.cos(np.pi * np.arange(20) / 10), 3)
        ) / (1 if kind == "combinatorial" else 2)
        for K in (2, 3, 8, 14, 15):
            basis = spectra.laplacian_eigenbasis(
                sparse.csr_array(L), K, "shift_invert"
            )
            np.testing.assert_allclose(
                basis.eigenvalues, exact[: K + 1], atol=1e-10
            )
            assert basis.info.n_components == 3
            assert basis.info.n_zero == min(3, K + 1)


@pytest.mark.parametrize(
    "n, copies, K", [(24, 5, 27), (60, 3, 20), (60, 5, 25)]
)
def test_guard_vectors_find_the_late_copies(n, copies, K):
    """Asked for exactly K + 1 pairs, ARPACK returns a wrong one here."""
    L = graphs.graph_laplacian(
        sparse.csr_array(sparse.block_diag([cycle(n)] * copies))
    )
    lam = spectra.laplacian_eigenbasis(L, K, "shift_invert").eigenvalues
    exact = np.repeat(2 - 2 * np.cos(2 * np.pi * np.arange(n) / n), copies)
    np.testing.assert_allclose(lam, np.sort(exact)[: K + 1], atol=1e-9)


def test_sign_convention_does_not_depend_on_the_solver():
    L = graphs.graph_laplacian(PATH)
    for flip in (1, -1):
        U = flip * eigh(L)[1]
        np.testing.assert_allclose(
            spectra.fix_signs(U),
            spectra.laplacian_spectrum(L)[1],
            atol=ROUNDING,
        )
    noise = 1e-15 * np.random.default_rng(0).normal(size=(3, 3))
    np.testing.assert_allclose(
        spectra.fix_signs(U + noise), spectra.fix_signs(U), atol=1e-14
    )
    np.testing.assert_array_equal(spectra.fix_signs(np.zeros((2, 1))), 0)


def test_components_that_rounding_cannot_see():
    """Weight 1e-14 joins two cliques: one component, two zeros."""
    W = disjoint(np.ones((4, 4)) - np.eye(4), np.ones((4, 4)) - np.eye(4))
    W[0, 4] = W[4, 0] = 1e-14
    info = spectra.laplacian_eigenbasis(graphs.graph_laplacian(W), 1).info
    assert info.n_components == 1 and info.n_zero == 2
    assert info.poorly_separated and not info.bound_applies


# --- laws ------------------------------------------------------------------


@given(SEEDS)
@settings(max_examples=50, deadline=None)
def test_split_parseval_and_leverage(seed):
    rng = np.random.default_rng(seed)
    L = graphs.graph_laplacian(random_graph(rng), graphs.KINDS[seed % 2])
    n = len(L)
    _, U = spectra.laplacian_spectrum(L)
    K = int(rng.integers(1, n))
    x = rng.normal(size=(n, 3))
    low, high = spectra.low_pass_split(U[:, :K], x)
    np.testing.assert_allclose(low + high, x, atol=ROUNDING)
    np.testing.assert_allclose(np.sum(low * high, axis=0), 0, atol=1e-11)
    xhat = spectra.graph_fourier_transform(U, x)
    np.testing.assert_allclose(
        np.linalg.norm(xhat, axis=0), np.linalg.norm(x, axis=0)
    )
    share = spectra.cumulative_energy(U, x)
    np.testing.assert_allclose(
        share[K - 1], np.sum(low**2, axis=0) / np.sum(x**2, axis=0)
    )
    assert np.all(np.diff(share, axis=0) >= 0)
    np.testing.assert_allclose(share[-1], 1)
    scores = spectra.leverage_scores(U[:, :K])
    np.testing.assert_allclose(scores.sum(), K)
    assert scores.min() >= 0 and scores.max() <= 1 + ROUNDING
    energies = spectra.dirichlet_energy(L, x)
    np.testing.assert_allclose(
        energies,
        spectra.dirichlet_energy(L, low) + spectra.dirichlet_energy(L, high),
        rtol=1e-9,
        atol=1e-11,
    )


@given(SEEDS)
@settings(max_examples=30, deadline=None)
def test_shares_with_eigenvalues_do_not_depend_on_the_basis(seed):
    rng = np.random.default_rng(seed)
    lam, U = spectra.laplacian_spectrum(graphs.graph_laplacian(cycle(12)))
    turned = U.copy()
    for k in range(1, 11, 2):
        Q = np.linalg.qr(rng.normal(size=(2, 2)))[0]
        turned[:, k : k + 2] = U[:, k : k + 2] @ Q
    x = rng.normal(size=(12, 2))
    share = spectra.cumulative_energy(U, x, lam)
    np.testing.assert_allclose(
        spectra.cumulative_energy(turned, x, lam), share, atol=ROUNDING
    )
    plain = spectra.cumulative_energy(U, x)
    np.testing.assert_allclose(share[::2], plain[::2], atol=ROUNDING)
    middle = (plain[2::2] + plain[:-2:2]) / 2
    np.testing.assert_allclose(share[1:-1:2], middle, atol=ROUNDING)
    np.testing.assert_allclose(
        spectra.cumulative_energy(U, x[:, 0], lam), share[:, 0]
    )


@given(SEEDS)
@settings(max_examples=40, deadline=None)
def test_twins_have_an_eigenvector_of_their_own(seed):
    """Equal weights to all others: e_a - e_b, at the eigenvalue d + w_ab."""
    rng = np.random.default_rng(seed)
    n = int(rng.integers(2, 9))
    W = random_weights(rng, n)
    a, b = rng.choice(n, size=2, replace=False)
    others = np.setdiff1d(np.arange(n), [a, b])
    W[b, others] = W[others, b] = W[a, others]
    L = graphs.graph_laplacian(W)
    twin = np.eye(n)[a] - np.eye(n)[b]
    eigenvalue = W[a].sum() + W[a, b]
    np.testing.assert_allclose(L @ twin, eigenvalue * twin, atol=ROUNDING)
    lam, _ = spectra.laplacian_spectrum(L)
    np.testing.assert_allclose(np.abs(lam - eigenvalue).min(), 0, atol=1e-11)
    if others.size:
        W[b, others[0]] = W[others[0], b] = W[a, others[0]] + 1
        L = graphs.graph_laplacian(W)
        rest = L @ twin - spectra.rayleigh_quotient(L, twin) * twin
        assert np.abs(rest).max() > 0.9


def test_energy_of_a_constant_is_never_negative():
    """x.T L x comes out as -1e-17 or so; a square root would be NaN."""
    for seed in range(40):
        rng = np.random.default_rng(seed)
        L = graphs.graph_laplacian(random_graph(rng))
        energy = spectra.dirichlet_energy(L, np.full(len(L), rng.normal()))
        assert 0 <= energy < 1e-12


def test_rayleigh_quotient_at_extreme_scales():
    L = graphs.graph_laplacian(PATH)
    for scale in (1e-200, 1e-3, 1e200):
        R = spectra.rayleigh_quotient(L, scale * np.array([1, -2, 1.0]))
        np.testing.assert_allclose(R, 3)


def test_two_nodes_are_the_smallest_graph():
    L = graphs.graph_laplacian([[0, 2.0], [2.0, 0]])
    basis = spectra.laplacian_eigenbasis(L, 1)
    np.testing.assert_allclose(basis.eigenvalues, [0, 4])
    assert basis.vectors.shape == (2, 1)
    assert basis.info.gap_ratio == np.inf
    lam, U = spectra.laplacian_spectrum([[0.0]])
    assert lam.tolist() == [0.0] and U.tolist() == [[1.0]]


L3 = graphs.graph_laplacian(PATH)


@pytest.mark.parametrize(
    "call, message",
    [
        (lambda: spectra.laplacian_eigenbasis(L3, 3), r"K must .* 1\.\.2"),
        (lambda: spectra.laplacian_eigenbasis(L3, 0), "K must"),
        (lambda: spectra.laplacian_eigenbasis(L3, np.nan), "K must"),
        (lambda: spectra.laplacian_eigenbasis(L3, np.inf), "K must"),
        (lambda: spectra.laplacian_eigenbasis(L3, 1, "SM"), "solver must"),
        (lambda: spectra.laplacian_eigenbasis(L3, 2, "shift_invert"), "n - 2"),
        (lambda: spectra.laplacian_eigenbasis(PATH, 1), "not a graph Lap"),
        (lambda: spectra.laplacian_eigenbasis(np.eye(3), 1), "not a graph"),
        (lambda: spectra.laplacian_spectrum(np.triu(L3)), "symmetric"),
        (lambda: spectra.laplacian_spectrum(np.ones((2, 3))), "shape"),
        (lambda: spectra.laplacian_spectrum(L3 * np.nan), "finite"),
        (lambda: spectra.dirichlet_energy(L3, [1, 2]), "x must have shape"),
        (lambda: spectra.dirichlet_energy(L3, [1, 2, np.nan]), "x must be f"),
        (lambda: spectra.dirichlet_energy(-L3, [1, 0, 0]), "semidefinite"),
        (lambda: spectra.rayleigh_quotient(L3, [0, 0, 0]), "identically 0"),
        (lambda: spectra.cumulative_energy(np.eye(3), [0, 0, 0]), "identi"),
        (
            lambda: spectra.cumulative_energy(np.eye(3), [1, 0, 0], [0, 1]),
            "eigenvalues must",
        ),
        (
            lambda: spectra.cumulative_energy(np.eye(2), [1, 0], [1, 0]),
            "eigenvalues must",
        ),
        (lambda: spectra.high_frequency_bound(L3, [1, 0, 0], np.nan), "next"),
        (lambda: spectra.leverage_scores(2 * np.eye(3)), "orthonormal"),
        (lambda: spectra.graph_fourier_transform(np.eye(3), [1]), "x must"),
        (lambda: spectra.low_pass_split(np.eye(3), [1]), "x must have"),
        (lambda: spectra.fix_signs([1.0]), "matrix"),
    ],
)
def test_bad_input_is_named(call, message):
    with pytest.raises(ValueError, match=message):
        call()
