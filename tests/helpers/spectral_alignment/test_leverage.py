"""Sketched leverage scores, against exact ones."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse

from helpers.core.linalg import orthonormal_basis
from helpers.spectral_alignment import graphs, leverage, spectra
from helpers.spectral_alignment.sample_sets import sample_set

seeds = st.integers(0, 2**32 - 1)


@pytest.fixture(scope="module")
def moons():
    X, _ = sample_set("moons", 200, 0)
    L = graphs.graph_laplacian(graphs.knn_graph(X, 10))
    basis = spectra.laplacian_eigenbasis(L, 8)
    return L, spectra.leverage_scores(basis.vectors)


def test_errors_shrink_like_the_root_of_the_probes(moons):
    L, exact = moons
    errors = [
        np.median(
            [
                np.median(
                    np.abs(
                        leverage.sketched_leverage_scores(
                            L, 8, probes, 300, seed
                        )
                        / exact
                        - 1
                    )
                )
                for seed in range(3)
            ]
        )
        for probes in (40, 640)
    ]
    # a quarter, times two for the edge that the polynomial smooths
    assert errors[1] < 0.5 * errors[0] and errors[1] < 0.1


@pytest.mark.parametrize("K", [1, 2, 4, 8])
def test_the_filter_ends_between_k_and_the_next(moons, K):
    """Closer to the scores of K frequencies than to those of K + 1."""
    L, _ = moons
    found = leverage.sketched_leverage_scores(L, K, 400, 300, 0)
    right, wrong = (
        np.linalg.norm(
            found
            - K
            / k
            * spectra.leverage_scores(
                spectra.laplacian_eigenbasis(L, k).vectors
            )
        )
        for k in (K, K + 1)
    )
    assert right < wrong / 2


def test_scores_sum_to_k_and_sparse_agrees_with_dense(moons):
    L, _ = moons
    one = leverage.sketched_leverage_scores(L, 8, 20, 60, 1)
    dense = L.toarray() if sparse.issparse(L) else L
    two = leverage.sketched_leverage_scores(
        sparse.csr_array(dense), 8, 20, 60, 1
    )
    three = leverage.sketched_leverage_scores(dense, 8, 20, 60, 1)
    assert one == pytest.approx(two) and two == pytest.approx(three)
    assert one.sum() == pytest.approx(8)


@pytest.mark.parametrize("degree", [1, 5, 40])
def test_the_damping_is_that_of_a_nonnegative_kernel(degree):
    damping = leverage._jackson(degree)
    angles = np.linspace(0, np.pi, 2000)
    kernel = (
        1
        + 2
        * np.cos(np.outer(angles, np.arange(1, degree + 1)))
        @ (damping[1:])
    )
    assert damping[0] == pytest.approx(1) and kernel.min() > -1e-9
    # among all such kernels of this degree the one with the largest g_1
    assert damping[1] == pytest.approx(np.cos(np.pi / (degree + 2)))


@pytest.mark.parametrize("cut", [-0.9, -0.3, 0.4])
def test_the_step_polynomial_is_a_step(cut):
    x = np.linspace(-1, 1, 401)
    series = leverage._step_coefficients(cut, 400)
    y = np.polynomial.chebyshev.chebval(x, series)
    assert (y > -1e-9).all() and (y < 1 + 1e-9).all()  # Jackson: no overshoot
    assert (y[x < cut - 0.05] > 0.97).all()
    assert (y[x > cut + 0.05] < 0.03).all()


def test_exact_feature_scores_by_hand():
    Z = np.array([[1.0, 1, 0], [1, 1, 0], [0, 0, 0], [0, 2, 0]])
    # span of (1,1,0,0) and e_4
    assert leverage.feature_leverage_scores(Z) == pytest.approx(
        [0.5, 0.5, 0, 1]
    )


@given(seeds)
def test_a_sketch_keeps_which_rows_matter(seed):
    """Rows of zeros have score zero and others have not, in any sketch."""
    rng = np.random.default_rng(seed)
    Z = np.maximum(rng.normal(size=(12, 4)), 0)
    Z = np.c_[Z, Z[:, 0], np.zeros(12)]
    exact = np.sum(orthonormal_basis(Z) ** 2, axis=1)
    S = leverage.feature_leverage_scores(Z, 12, rng)
    assert ((S > 1e-9) == (exact > 1e-9)).all()


def test_sketched_feature_scores_approach_the_exact_ones():
    X, _ = sample_set("digits", 300, 0)
    H = np.maximum(X @ np.random.default_rng(0).normal(size=(64, 20)), 0)
    exact = leverage.feature_leverage_scores(H)
    errors = [
        np.max(
            np.abs(leverage.feature_leverage_scores(H, rows, 1) - exact)
            / exact.max()
        )
        for rows in (60, 6000)
    ]
    assert errors[1] < 0.25 * errors[0] and errors[1] < 0.2


def test_dead_units_do_not_break_the_sketch():
    """A QR of the sketch as it is would be singular."""
    H = np.maximum(np.random.default_rng(0).normal(size=(50, 6)), 0)
    dead = np.c_[H, np.zeros((50, 3)), H[:, :2]]
    alive = leverage.feature_leverage_scores(H, 30, 5)
    assert leverage.feature_leverage_scores(dead, 30, 5) == pytest.approx(
        alive
    )
    assert (
        leverage.feature_leverage_scores(np.zeros((4, 2)), 3).tolist()
        == [0] * 4
    )


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (
            lambda: leverage.sketched_leverage_scores(np.ones((2, 3)), 1),
            "L must",
        ),
        (
            lambda: leverage.sketched_leverage_scores(np.eye(3), 3),
            "K must be in",
        ),
        (
            lambda: leverage.sketched_leverage_scores(np.eye(3), 0),
            "K must be a",
        ),
        (lambda: leverage.sketched_leverage_scores(np.eye(3), 1, 0), "probes"),
        (
            lambda: leverage.sketched_leverage_scores(np.eye(3), 1, 5, 0),
            "degree",
        ),
        (lambda: leverage.feature_leverage_scores([[np.nan]], 2), "Z must be"),
        (
            lambda: leverage.feature_leverage_scores(np.eye(5), 3),
            "sketch_rows",
        ),
        (
            lambda: leverage.feature_leverage_scores(np.eye(5), 0),
            "sketch_rows",
        ),
    ],
)
def test_bad_input_names_the_argument(call, message):
    with pytest.raises(ValueError, match=message):
        call()
