"""Column spaces: closed forms, SciPy, and laws on random matrices."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.linalg import hilbert, subspace_angles

from helpers.core import linalg
from helpers.core.tolerances import RANK_RELATIVE, ROUNDING

SEEDS = st.integers(0, 2**32 - 1)


def random_matrix(seed, columns=None):
    """A matrix with a known rank: dependent, repeated and zero columns."""
    rng = np.random.default_rng(seed)
    n = int(rng.integers(1, 12))
    r = int(rng.integers(0, n + 1))
    m = int(rng.integers(r, r + 4)) if columns is None else columns
    base = np.linalg.qr(rng.normal(size=(n, n)))[0][:, :r]
    mix = np.zeros((r, m))
    mix[:, :r] = np.eye(r)
    mix[:, r:] = rng.normal(size=(r, m - r))
    Z = base @ mix
    return Z[:, rng.permutation(m)], r, rng


@given(SEEDS)
@settings(max_examples=80, deadline=None)
def test_a_basis_is_orthonormal_and_spans(seed):
    Z, r, _ = random_matrix(seed)
    Q = linalg.orthonormal_basis(Z)
    assert Q.shape == (Z.shape[0], r)
    np.testing.assert_allclose(Q.T @ Q, np.eye(r), atol=ROUNDING)
    np.testing.assert_allclose(linalg.complement(Q, Z), 0, atol=ROUNDING)
    assert linalg.numerical_rank(Z).rank == r


@given(SEEDS)
@settings(max_examples=60, deadline=None)
def test_projection_laws(seed):
    Z, r, rng = random_matrix(seed)
    Q = linalg.orthonormal_basis(Z)
    x = rng.normal(size=(Z.shape[0], 3))
    low, high = linalg.project(Q, x), linalg.complement(Q, x)
    np.testing.assert_allclose(low + high, x, atol=ROUNDING)
    np.testing.assert_allclose(linalg.project(Q, low), low, atol=ROUNDING)
    np.testing.assert_allclose(Q.T @ high, 0, atol=ROUNDING)
    by_columns = [linalg.project(Q, c) for c in x.T]
    np.testing.assert_allclose(low.T, by_columns, atol=ROUNDING)


def test_nothing_spans_the_zero_space():
    for Z in (np.zeros((4, 3)), np.zeros((4, 0))):
        Q = linalg.orthonormal_basis(Z)
        assert Q.shape == (4, 0)
        x = np.arange(4.0)
        np.testing.assert_array_equal(linalg.project(Q, x), 0)
        np.testing.assert_array_equal(linalg.complement(Q, x), x)
        report = linalg.numerical_rank(Z)
        assert report.rank == 0 and report.gap == np.inf


def test_noise_left_by_a_projection_is_no_direction():
    rng = np.random.default_rng(0)
    Q = linalg.orthonormal_basis(rng.normal(size=(20, 5)))
    inside = Q @ rng.normal(size=(5, 3))
    Z = np.c_[Q, inside - Q @ (Q.T @ inside)]
    assert linalg.numerical_rank(Z).rank == 5
    assert linalg.numerical_rank(Z).gap > 1e3


def test_the_tolerance_is_relative_to_the_largest_singular_value():
    Z = np.diag([1.0, 1e-6, 1e-14])
    for scale in (1e-9, 1.0, 1e9):
        assert linalg.numerical_rank(scale * Z).rank == 2
        assert linalg.orthonormal_basis(scale * Z).shape == (3, 2)
    assert linalg.numerical_rank(Z, rtol=1e-3).rank == 1
    assert linalg.numerical_rank(Z, rtol=0.0).rank == 3
    np.testing.assert_allclose(linalg.numerical_rank(Z).gap, 1e8)


def test_rank_of_the_hilbert_matrix_hangs_by_a_thread():
    report = linalg.numerical_rank(hilbert(12))
    ratio = report.singular_values / report.singular_values[0]
    assert report.rank == np.count_nonzero(ratio > RANK_RELATIVE)
    assert report.gap < 100


def test_the_second_pass_pays():
    """The first pass alone leaves 1e-10 of the result in the span."""
    rng = np.random.default_rng(1)
    Q = linalg.orthonormal_basis(rng.normal(size=(200, 40)))
    tiny = linalg.complement(Q, rng.normal(size=200))
    x = 1e9 * Q @ rng.normal(size=40) + tiny / np.linalg.norm(tiny)
    once = x - Q @ (Q.T @ x)
    twice = linalg.complement(Q, x)
    leak = np.linalg.norm(Q.T @ twice) / np.linalg.norm(twice)
    assert leak < 1e-14
    assert np.linalg.norm(Q.T @ once) > 100 * np.linalg.norm(Q.T @ twice)


def test_angles_of_a_plane_in_three_dimensions():
    U = np.eye(3)[:, :2]
    tilt = np.array([[1, 0], [0, np.cos(0.3)], [0, np.sin(0.3)]])
    angles = linalg.principal_angles(5 * tilt @ [[1, 2], [0, 1]], U)
    np.testing.assert_allclose(angles, [0, 0.3], atol=ROUNDING)


@pytest.mark.parametrize("angle", [1e-14, 1e-12, 1e-9, 1e-5, 0.5, 1.5])
def test_tiny_angles_keep_their_digits(angle):
    """sqrt(1 - cos^2) gives 3e-8 for a true 1e-9."""
    U = np.eye(4)[:, :1]
    Z = np.cos(angle) * np.eye(4)[:, :1] + np.sin(angle) * np.eye(4)[:, 1:2]
    (found,) = linalg.principal_angles(Z, U)
    np.testing.assert_allclose(found, angle, rtol=1e-6)


@pytest.mark.parametrize("short", [1e-12, 1e-10, 1e-8])
def test_nearly_right_angles_keep_their_digits(short):
    """arcsin of the sine gives exactly pi/2 for all of these."""
    U = np.eye(4)[:, :1]
    Z = np.sin(short) * np.eye(4)[:, :1] + np.cos(short) * np.eye(4)[:, 1:2]
    (found,) = linalg.principal_angles(Z, U)
    np.testing.assert_allclose(np.pi / 2 - found, short, rtol=1e-3)


def test_angles_are_padded_where_scipy_leaves_them_out():
    rng = np.random.default_rng(2)
    U = linalg.orthonormal_basis(rng.normal(size=(30, 5)))
    Z = U[:, :2] @ rng.normal(size=(2, 4))
    np.testing.assert_allclose(
        np.sin(subspace_angles(Z, U)).max(), 0, atol=1e-7
    )
    angles = linalg.principal_angles(Z, U)
    np.testing.assert_allclose(angles[:2], 0, atol=ROUNDING)
    np.testing.assert_allclose(angles[2:], np.pi / 2)


def test_no_features_give_right_angles():
    U = np.eye(3)[:, :2]
    for Z in (np.zeros((3, 0)), np.zeros((3, 2))):
        np.testing.assert_allclose(linalg.principal_angles(Z, U), np.pi / 2)


@given(SEEDS)
@settings(max_examples=60, deadline=None)
def test_angles_agree_with_scipy_at_full_rank(seed):
    rng = np.random.default_rng(seed)
    n = int(rng.integers(2, 12))
    K = int(rng.integers(1, n + 1))
    m = int(rng.integers(K, n + 1))
    Z = rng.normal(size=(n, m))
    U = linalg.orthonormal_basis(rng.normal(size=(n, K)))
    expected = np.sort(subspace_angles(Z, U))
    angles = linalg.principal_angles(Z, U)
    assert angles.shape == (K,)
    np.testing.assert_allclose(angles, expected, atol=1e-7)


@given(SEEDS)
@settings(max_examples=60, deadline=None)
def test_angles_satisfy_pythagoras(seed):
    """Cosines and sines belong to the same angles, rank-deficient or not."""
    Z, r, rng = random_matrix(seed)
    n = Z.shape[0]
    K = int(rng.integers(1, n + 1))
    U = linalg.orthonormal_basis(rng.normal(size=(n, K)))
    K = U.shape[1]
    angles = linalg.principal_angles(Z, U)
    Q = linalg.orthonormal_basis(Z)
    captured = np.linalg.norm(U.T @ Q) ** 2
    np.testing.assert_allclose(
        np.sum(np.cos(angles) ** 2), captured, atol=1e-10
    )
    gap = np.linalg.norm(linalg.complement(Q, U), 2)
    np.testing.assert_allclose(np.sin(angles[-1]), gap, atol=1e-10)
    assert np.all(np.diff(angles) >= -1e-9)


@pytest.mark.parametrize(
    "call, message",
    [
        (lambda: linalg.orthonormal_basis(np.ones(3)), "Z must be a matrix"),
        (lambda: linalg.orthonormal_basis([[np.nan]]), "Z must be finite"),
        (lambda: linalg.orthonormal_basis(np.ones((0, 2))), "one row"),
        (lambda: linalg.orthonormal_basis(np.eye(2), -1), "rtol"),
        (lambda: linalg.numerical_rank(np.eye(2), np.nan), "rtol"),
        (lambda: linalg.project(2 * np.eye(2), [1, 2]), "orthonormal"),
        (lambda: linalg.project(np.eye(2), [1, 2, 3]), "x must have shape"),
        (lambda: linalg.complement(np.eye(2), [1, np.inf]), "x must be fin"),
        (lambda: linalg.complement(np.eye(2), 3.0), "x must have shape"),
        (lambda: linalg.principal_angles(np.eye(2), np.eye(3)), "rows"),
        (lambda: linalg.principal_angles(np.eye(2), np.ones((2, 0))), "U mu"),
        (lambda: linalg.principal_angles(np.eye(2), np.ones((2, 2))), "orth"),
    ],
)
def test_bad_input_is_named(call, message):
    with pytest.raises(ValueError, match=message):
        call()


def test_solving_each_system_by_itself():
    """A singular matrix spoils its own system and no other."""
    rng = np.random.default_rng(0)
    A, b = rng.normal(size=(5, 3, 3)), rng.normal(size=(5, 3))
    whole = linalg.solve_each(A, b)
    np.testing.assert_allclose(
        np.einsum("kij,kj->ki", A, whole), b, atol=1e-12
    )
    A[2] = 0.0
    some = linalg.solve_each(A, b)
    assert np.isnan(some[2]).all()
    np.testing.assert_allclose(np.delete(some, 2, 0), np.delete(whole, 2, 0))
    assert linalg.solve_each(A + 1j, b).dtype == complex
    with pytest.raises(np.linalg.LinAlgError):
        linalg.solve_each(A[:, :2], b)
