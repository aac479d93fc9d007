"""Column spaces: bases, projections, ranks and principal angles.

Rank is decided once, by singular values relative to the largest one, and
never by renormalising what a projection has left: columns that are zero up
to rounding would come back as directions.
"""

from __future__ import annotations

import contextlib
from typing import NamedTuple

import numpy as np

from helpers.core.checks import finite_matrix
from helpers.core.tolerances import ORTHONORMAL, RANK_RELATIVE


class NumericalRank(NamedTuple):
    """Rank with the evidence for it, see :func:`numerical_rank`."""

    rank: int
    gap: float
    singular_values: np.ndarray


def _rtol(rtol: float) -> float:
    if not 0 <= rtol < 1:
        raise ValueError(f"rtol must lie in [0, 1), got {rtol}")
    return float(rtol)


def check_orthonormal(U, name: str = "U") -> np.ndarray:
    """Return a basis in float64, or say why it is not orthonormal.

    Parameters
    ----------
    U : array_like, shape (n, K)
        ``K = 0`` is allowed: the basis of ``{0}``.
    name : str
        Name of the argument, for the message.

    Returns
    -------
    ndarray, shape (n, K)

    Raises
    ------
    ValueError
        If ``U`` is not a finite matrix with a row, or an entry of
        ``U.T @ U - I`` exceeds 1e-8.

    Examples
    --------
    >>> check_orthonormal(np.eye(3)[:, :2]).shape
    (3, 2)
    """
    U = finite_matrix(U, name)
    error = np.abs(U.T @ U - np.eye(U.shape[1])).max(initial=0.0)
    if error > ORTHONORMAL:
        raise ValueError(
            f"{name} must have orthonormal columns (to {ORTHONORMAL}), "
            f"the largest entry of {name}.T @ {name} - I is {error:.3g}; "
            "use orthonormal_basis first"
        )
    return U


def solve_each(A, b) -> np.ndarray:
    """Solutions of many square systems; NaN where a matrix is singular.

    Parameters
    ----------
    A : array_like (K, p, p)
        Real or complex.
    b : array_like (K, p)

    Returns
    -------
    numpy.ndarray (K, p)

    Raises
    ------
    numpy.linalg.LinAlgError
        If the shapes do not fit.

    Notes
    -----
    ``numpy.linalg.solve`` refuses the whole batch if one matrix is exactly
    singular; then the systems are solved one by one. Source: none, ours.

    Examples
    --------
    >>> solve_each([[[2.0]], [[0.0]]], [[4.0], [1.0]])
    array([[ 2.],
           [nan]])
    """
    A, b = np.asarray(A), np.asarray(b)
    try:
        return np.linalg.solve(A, b[..., None])[..., 0]
    except np.linalg.LinAlgError:
        if A.shape != (*b.shape, b.shape[-1]):
            raise
    out = np.full(b.shape, np.nan, dtype=np.result_type(A, b))
    for k in range(len(b)):
        with contextlib.suppress(np.linalg.LinAlgError):
            out[k] = np.linalg.solve(A[k], b[k])
    return out


def _paired(Q, x) -> tuple[np.ndarray, np.ndarray]:
    Q = check_orthonormal(Q, "Q")
    x = np.asarray(x, dtype=float)
    if x.ndim not in (1, 2) or x.shape[0] != Q.shape[0]:
        raise ValueError(
            f"x must have shape ({Q.shape[0]},) or ({Q.shape[0]}, q) to "
            f"match Q {Q.shape}, got {x.shape}"
        )
    if not np.isfinite(x).all():
        raise ValueError("x must be finite, it holds NaN or infinity")
    return Q, x


def orthonormal_basis(Z, rtol: float = RANK_RELATIVE) -> np.ndarray:
    r"""Orthonormal basis of a column space.

    The left singular vectors of :math:`Z=\sum_i\sigma_iq_iv_i^{\mathsf T}`
    with :math:`\sigma_i>\texttt{rtol}\cdot\sigma_1`, in order of decreasing
    :math:`\sigma_i`. What is below that is treated as rounding.

    Parameters
    ----------
    Z : array_like, shape (n, m)
        Columns that span the space; ``m = 0`` and zero columns are allowed.
        Columns in very different units should be brought to one scale
        first: the tolerance is relative to the largest singular value.
    rtol : float, in [0, 1)
        Relative rank tolerance.

    Returns
    -------
    ndarray, shape (n, r)
        :math:`Q` with :math:`Q^{\mathsf T}Q=I` and ``r`` the numerical rank.
        No columns, or only zeros, give the basis ``(n, 0)`` of ``{0}``.

    Raises
    ------
    ValueError
        If ``Z`` is not a finite matrix with a row, or ``rtol`` is outside
        its range.

    Notes
    -----
    One singular value decomposition, :math:`O(nm\min(n,m))`.

    Source: standard; Golub and Van Loan, *Matrix Computations*, §5.5.

    Examples
    --------
    >>> Z = np.array([[1.0, 2.0, 0.0], [1.0, 2.0, 0.0], [0.0, 1.0, 0.0]])
    >>> orthonormal_basis(Z).shape
    (3, 2)
    >>> orthonormal_basis(np.zeros((3, 5))).shape
    (3, 0)
    """
    Z, rtol = finite_matrix(Z, "Z"), _rtol(rtol)
    if Z.shape[1] == 0:
        return np.zeros((Z.shape[0], 0))
    left, sigma, _ = np.linalg.svd(Z, full_matrices=False)
    return np.ascontiguousarray(left[:, sigma > rtol * sigma[0]])


def numerical_rank(Z, rtol: float = RANK_RELATIVE) -> NumericalRank:
    r"""Rank of a matrix, with the gap that supports it.

    Parameters
    ----------
    Z : array_like, shape (n, m)
    rtol : float, in [0, 1)
        Singular values above ``rtol`` times the largest are counted.

    Returns
    -------
    NumericalRank
        ``rank`` :math:`r`; ``gap`` :math:`\sigma_r/\sigma_{r+1}`, infinite
        if nothing is left over (full rank, exact zeros or rank 0), close to
        1 if the decision hangs by a thread; ``singular_values``, shape
        ``(min(n, m),)``, decreasing.

    Raises
    ------
    ValueError
        As :func:`orthonormal_basis`.

    Notes
    -----
    Source: standard; Golub and Van Loan, *Matrix Computations*, §5.5.

    Examples
    --------
    >>> numerical_rank(np.outer([1.0, 2.0], [3.0, 0.0])).rank
    1
    """
    Z, rtol = finite_matrix(Z, "Z"), _rtol(rtol)
    if Z.shape[1] == 0:
        return NumericalRank(0, np.inf, np.zeros(0))
    sigma = np.linalg.svd(Z, compute_uv=False)
    rank = int(np.count_nonzero(sigma > rtol * sigma[0]))
    below = sigma[rank] if rank < sigma.size else 0.0
    if rank == 0 or below == 0.0:
        return NumericalRank(rank, np.inf, sigma)
    return NumericalRank(rank, float(sigma[rank - 1] / below), sigma)


def complement(Q, x) -> np.ndarray:
    r"""What an orthonormal basis misses: :math:`(I-QQ^{\mathsf T})x`.

    Computed in two passes. The first leaves rounding of the size of
    :math:`x` in the span of :math:`Q`; the second removes it, so that the
    result is orthogonal to :math:`Q` relative to *its own* size.

    Parameters
    ----------
    Q : array_like, shape (n, r)
        Orthonormal columns; ``r = 0`` stands for the space ``{0}``.
    x : array_like, shape (n,) or (n, q)

    Returns
    -------
    ndarray, shape of x

    Raises
    ------
    ValueError
        If shapes disagree, ``Q`` is not orthonormal or ``x`` is not finite.

    Notes
    -----
    Source: standard ("twice is enough", Kahan and Parlett).

    Examples
    --------
    >>> complement(np.array([[1.0], [0.0]]), [3.0, 4.0])
    array([0., 4.])
    """
    Q, x = _paired(Q, x)
    rest = x - Q @ (Q.T @ x)
    return rest - Q @ (Q.T @ rest)


def project(Q, x) -> np.ndarray:
    r"""Orthogonal projection :math:`QQ^{\mathsf T}x`.

    A second pass adds the projection of what the first has left, so that
    ``project + complement`` gives ``x`` back to rounding.

    Parameters
    ----------
    Q : array_like, shape (n, r)
        Orthonormal columns; ``r = 0`` stands for the space ``{0}``.
    x : array_like, shape (n,) or (n, q)

    Returns
    -------
    ndarray, shape of x

    Raises
    ------
    ValueError
        As :func:`complement`.

    Notes
    -----
    Source: standard; Golub and Van Loan, *Matrix Computations*, §2.5.

    Examples
    --------
    >>> project(np.array([[1.0], [0.0]]), [3.0, 4.0])
    array([3., 0.])
    """
    Q, x = _paired(Q, x)
    part = Q @ (Q.T @ x)
    return part + Q @ (Q.T @ (x - part))


def principal_angles(Z, U, rtol: float = RANK_RELATIVE) -> np.ndarray:
    r"""The ``K`` angles between a column space and a given subspace.

    With :math:`Q` an orthonormal basis of :math:`\mathrm{col}\,Z`, the
    cosines are the singular values of :math:`Q^{\mathsf T}U` and the sines
    those of :math:`(I-QQ^{\mathsf T})U`. Each angle is taken from whichever
    of the two is small: a cosine cannot resolve an angle below
    :math:`10^{-8}`, nor a sine one that close to :math:`\pi/2`.

    If :math:`\mathrm{rank}Z<K`, then :math:`K-\mathrm{rank}Z` directions of
    :math:`U` are orthogonal to all of :math:`\mathrm{col}\,Z`, and their
    angle is :math:`\pi/2`. ``scipy.linalg.subspace_angles`` leaves them out.

    Parameters
    ----------
    Z : array_like, shape (n, m)
        Any columns, dependent or zero ones included.
    U : array_like, shape (n, K)
        Orthonormal columns, ``K >= 1``.
    rtol : float, in [0, 1)
        Rank tolerance for ``Z``.

    Returns
    -------
    ndarray, shape (K,)
        Angles in radians, increasing, in :math:`[0,\pi/2]`.

    Raises
    ------
    ValueError
        If ``U`` has no or non-orthonormal columns, shapes disagree, or an
        input is not finite.

    Notes
    -----
    Source: Björck and Golub, Math. Comp. 27 (1973), for the two forms; the
    padding follows the spectral-alignment paper, where :math:`s_K(Z)` is the
    sine of the last angle.

    Examples
    --------
    >>> principal_angles(np.eye(3)[:, :1], np.eye(3)[:, :2]) / np.pi
    array([0. , 0.5])
    """
    U = check_orthonormal(U, "U")
    if U.shape[1] == 0:
        raise ValueError("U must have at least one column, got none")
    Z = finite_matrix(Z, "Z")
    if Z.shape[0] != U.shape[0]:
        raise ValueError(
            f"Z and U must have the same number of rows, got {Z.shape} "
            f"and {U.shape}"
        )
    Q = orthonormal_basis(Z, rtol)
    cosines = np.zeros(U.shape[1])
    found = np.linalg.svd(Q.T @ U, compute_uv=False)
    cosines[: found.size] = np.minimum(found, 1.0)
    sines = np.linalg.svd(complement(Q, U), compute_uv=False)[::-1]
    by_sine = np.arcsin(np.clip(sines, 0.0, 1.0))
    return np.where(cosines**2 > 1 / 2, by_sine, np.arccos(cosines))
