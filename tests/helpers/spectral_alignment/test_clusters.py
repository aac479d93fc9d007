"""Cluster indicators from two neurons, and how low they are."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.sparse import csr_array
from sklearn.svm import SVC

from helpers.core.linalg import principal_angles
from helpers.spectral_alignment import clusters, graphs, spectra
from helpers.spectral_alignment.sample_sets import three_clouds

seeds = st.integers(0, 2**32 - 1)


def test_by_hand_on_a_line():
    """Samples 0, 1 | 3, 5, 9: a = 1, a' = 3, end 9: omega = 8 / 2."""
    H = np.array([[0.0], [1], [3], [5], [9]])
    labels = [0, 0, 1, 1, 1]
    margin = clusters.spread_to_margin(H, labels, 1)
    assert margin.omega == pytest.approx(4)
    assert (margin.near, margin.far) == pytest.approx((0.5, 1.5))
    other = clusters.spread_to_margin(H, labels, 0)
    assert other.omega == pytest.approx(1.5) and other.w[0] < 0


@given(seeds, st.integers(0, 2))
def test_two_neurons_are_the_indicator(seed, c):
    H, labels = three_clouds(20, 0.4, seed)
    theta, coefficients = clusters.cluster_indicator_neurons(H, labels, c)
    ramps = np.maximum(np.c_[H, np.ones(len(H))] @ theta, 0)
    assert ramps @ coefficients == pytest.approx((labels == c) * 1.0, abs=1e-9)


@given(seeds)
def test_no_direction_has_a_smaller_ratio(seed):
    H, labels = three_clouds(8, 1.0, seed)
    best = clusters.spread_to_margin(H, labels, 0).omega
    w = np.random.default_rng(seed).normal(size=(2, 500))
    z, inside = H @ w, labels == 0
    near, far = z[~inside].max(axis=0), z[inside].min(axis=0)
    cut = far > near
    ratios = (z[inside].max(axis=0) - near)[cut] / (far - near)[cut]
    assert best >= 1 and (ratios >= best * (1 - 1e-9)).all()
    if cut.any():
        assert np.isfinite(best)


def test_the_widest_margin_is_not_the_best_ratio():
    """A support vector machine maximises another thing."""
    H = np.array([[0.0, 0], [2, 0], [6, 3]])
    labels = np.array([0, 1, 1])
    # the machine looks along (1, 0): z = 0 against 2 and 6, ratio 3
    z = H @ SVC(kernel="linear", C=1e6).fit(H, labels).coef_[0]
    ratio = (z[1:].max() - z[0]) / (z[1:].min() - z[0])
    assert ratio == pytest.approx(3, rel=1e-3)  # its own stopping tolerance
    # w = (1/2, -2/3) sees both samples of the cluster at 1
    assert clusters.spread_to_margin(H, labels, 1).omega == pytest.approx(1)


@given(seeds)
def test_ratio_ignores_units_shifts_and_rotations(seed):
    rng = np.random.default_rng(seed)
    H, labels = three_clouds(6, 0.4, seed)
    turned = H @ np.linalg.qr(rng.normal(size=(2, 2)))[0] * 3 + rng.normal(
        size=2
    )
    assert clusters.spread_to_margin(turned, labels, 1).omega == pytest.approx(
        clusters.spread_to_margin(H, labels, 1).omega, rel=1e-6
    )


def test_norm_bounds_are_ordered_and_end_at_an_atom():
    H, labels = three_clouds(20, 0.4)
    for c in range(3):
        bounds = clusters.indicator_norm_bounds(H, labels, c)
        assert (np.diff(bounds) <= 0).all() and bounds[-1] >= 1
    assert clusters.indicator_norm_bounds(
        [[-1.0], [0], [1]], [0, 0, 1], 1
    ).tolist() == [2, 1, 1]


def test_the_middle_of_three_is_not_cut_off():
    H = np.array([[-1.0], [0], [1]])
    assert clusters.spread_to_margin(H, [0, 1, 2], 1).omega == np.inf
    assert np.isinf(clusters.indicator_norm_bounds(H, [0, 1, 2], 1)).all()
    with pytest.raises(ValueError, match="no hyperplane cuts off"):
        clusters.cluster_indicator_neurons(H, [0, 1, 2], 1)


def test_equal_samples_in_two_clusters_are_not_cut_off():
    H = np.array([[0.0, 0], [0, 0], [1, 1]])
    assert clusters.spread_to_margin(H, [0, 1, 1], 1).omega == np.inf


@pytest.mark.parametrize(
    ("leaves", "value"), [(5, 0.357), (20, 0.536), (100, 0.633)]
)
def test_two_stars_refute_the_literal_remark(leaves, value):
    """Zero weight between the clusters, and epsilon is not zero for L_sym."""
    star = np.zeros((leaves + 1, leaves + 1))
    star[0, 1:] = star[1:, 0] = 1
    W, labels = np.kron(np.eye(2), star), np.repeat([0, 1], leaves + 1)
    found = []
    for kind in graphs.KINDS:
        L = graphs.graph_laplacian(W, kind)
        U = spectra.laplacian_eigenbasis(L, 2).vectors
        found.append(
            clusters.cluster_representability(U, labels, [1, 1]).epsilon
        )
    assert found[0] < 1e-9
    assert found[1] == pytest.approx(value, abs=5e-4)  # three digits given
    share = (np.sqrt(leaves) + leaves) ** 2 / ((leaves + 1) * 2 * leaves)
    assert found[1] == pytest.approx(np.sqrt(1 - share))
    # the corrected step holds for L_sym as well
    L = graphs.graph_laplacian(W, "symmetric")
    lam = spectra.laplacian_eigenbasis(L, 2).eigenvalues[-1]
    assert found[1] <= clusters.cluster_frequency_bound(L, labels, lam)


@given(seeds, st.sampled_from(graphs.KINDS))
def test_frequency_bound_dominates_epsilon(seed, kind):
    rng = np.random.default_rng(seed)
    n = int(rng.integers(6, 20))
    W = np.triu(rng.random((n, n)) ** 3 + 0.01, 1)
    L = graphs.graph_laplacian(W + W.T, kind)
    labels = np.r_[[0, 1, 2], rng.integers(0, 3, n - 3)]
    lam, U, _ = spectra.laplacian_eigenbasis(L, 3)
    eps = clusters.cluster_representability(U, labels, [1, 1, 1]).epsilon
    assert eps <= clusters.cluster_frequency_bound(L, labels, lam[-1]) + 1e-9
    angles = principal_angles(clusters.indicator_basis(labels), U)
    assert eps == pytest.approx(np.sin(angles.max()))


def test_frequency_bound_by_hand():
    """Path of three: one cluster is the constant, lowest of all."""
    L = graphs.graph_laplacian([[0, 1, 0], [1, 0, 1], [0, 1, 0]])
    assert clusters.cluster_frequency_bound(L, [0, 0, 0], 1.0) < 1e-9
    # clusters {1, 2} and {3}: the cut weighs 1, chi^T L chi by hand
    chi = np.array([[0.5, -1 / np.sqrt(2)], [-1 / np.sqrt(2), 1]])
    wanted = np.sqrt(np.linalg.eigvalsh(chi)[-1] / 3)
    for form in (np.asarray(L).tolist(), np.asarray(L), csr_array(L)):
        assert clusters.cluster_frequency_bound(
            form, [0, 0, 1], 3.0
        ) == pytest.approx(wanted)


def test_kappa_by_hand():
    U = clusters.indicator_basis([0, 0, 1, 2])
    pair = clusters.cluster_representability(U, [0, 0, 1, 2], [1, 2, 2])
    assert pair.kappa == pytest.approx(3) and pair.epsilon < 1e-12


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: clusters.spread_to_margin([[1.0]], [0], 0), "c must be"),
        (lambda: clusters.spread_to_margin([[1.0], [2]], [0, 1], 7), "c must"),
        (lambda: clusters.spread_to_margin([[np.nan]], [0], 0), "H must be"),
        (lambda: clusters.spread_to_margin([[1.0]], [0, 1], 0), "labels must"),
        (lambda: clusters.indicator_basis([]), "labels must be"),
        (
            lambda: clusters.cluster_representability(
                np.eye(3)[:, :1], [0, 1], [1, 1]
            ),
            "labels must have",
        ),
        (
            lambda: clusters.cluster_representability(
                np.eye(2)[:, :1], [0, 1], [0.5, 1]
            ),
            "norms must be",
        ),
        (
            lambda: clusters.cluster_frequency_bound(np.eye(2), [0, 1], 0),
            "following must",
        ),
        (
            lambda: clusters.cluster_frequency_bound(np.eye(3), [0, 1], 1),
            "L must have",
        ),
    ],
)
def test_bad_input_names_the_argument(call, message):
    with pytest.raises(ValueError, match=message):
        call()
