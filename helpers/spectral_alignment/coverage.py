r"""How much of the low frequencies a set of features can represent.

Features are the columns of ``Z``, shape ``(n, m)``, one row a sample; the
low-pass basis ``UK``, shape ``(n, K)``, has orthonormal columns. Everything
here depends on the column space of ``Z`` only, and on the span of ``UK``.

Decided on purpose: rank is the number of singular values above ``rtol`` times
the largest one of the features *as given*, never of what a projection has
left of them. Zero columns, repeated columns and ``m = 0`` are allowed; no
features have gap 1 and capture 0. ``K = n`` is allowed where no eigenvalue
:math:`\lambda_{K+1}` is asked for.

``orthonormal_basis`` and ``principal_angles`` live in
:mod:`helpers.core.linalg` and can be imported from here as well.
"""

from __future__ import annotations

import warnings
from typing import NamedTuple

import numpy as np

from helpers.core.linalg import (
    check_orthonormal,
    complement,
    orthonormal_basis,
    principal_angles,
    project,
)
from helpers.core.tolerances import GAP_WARNING, RANK_RELATIVE
from helpers.spectral_alignment.spectra import (
    PoorlySeparatedWarning,
    dirichlet_energy,
    high_frequency_bound,
    low_pass_split,
)

__all__ = [
    "KyFanLimits",
    "PoorlySeparatedWarning",
    "Readout",
    "ReadoutBounds",
    "captured_features",
    "choose_features",
    "coverage_deficit",
    "coverage_gap",
    "coverage_sines",
    "eigenvalue_separation",
    "ky_fan_directions",
    "ky_fan_limits",
    "least_squares_readout",
    "orthonormal_basis",
    "principal_angles",
    "readout_error_bounds",
    "residual_matrix",
]


class Readout(NamedTuple):
    """What :func:`least_squares_readout` returns."""

    coefficients: np.ndarray
    fitted: np.ndarray
    residual: np.ndarray


class ReadoutBounds(NamedTuple):
    """What :func:`readout_error_bounds` returns."""

    low_high: np.ndarray | float
    smooth: np.ndarray | float


class KyFanLimits(NamedTuple):
    """What :func:`ky_fan_limits` returns."""

    deficit: np.ndarray | float
    gap: np.ndarray | float


def _paired(Z, UK, name: str = "Z") -> tuple[np.ndarray, np.ndarray]:
    UK = check_orthonormal(UK, "UK")
    if UK.shape[1] == 0:
        raise ValueError("UK must have at least one column, got none")
    Z = np.asarray(Z, dtype=float)
    if Z.ndim != 2 or Z.shape[0] != UK.shape[0]:
        raise ValueError(
            f"{name} must have shape ({UK.shape[0]}, m) to match UK "
            f"{UK.shape}, got {Z.shape}"
        )
    if not np.isfinite(Z).all():
        raise ValueError(f"{name} must be finite, it holds NaN or infinity")
    return Z, UK


def residual_matrix(Z, UK, rtol: float = RANK_RELATIVE) -> np.ndarray:
    r"""What the features miss of the basis: :math:`M_Z=(I-\Pi_Z)U_K`.

    Parameters
    ----------
    Z : array_like, shape (n, m)
        Features, one a column.
    UK : array_like, shape (n, K)
        Orthonormal columns, ``K >= 1``.
    rtol : float, in [0, 1)
        Relative rank tolerance for ``Z``.

    Returns
    -------
    ndarray, shape (n, K)
        Orthogonal to ``Z`` relative to its own size (two passes).

    Raises
    ------
    ValueError
        If shapes disagree, an input is not finite, ``UK`` is not
        orthonormal or ``rtol`` is out of range.

    Notes
    -----
    :math:`O(nm\min(n,m))` for the basis of ``Z``; no ``(n, n)`` matrix.

    Source: the spectral-alignment paper, section 1.

    Examples
    --------
    >>> residual_matrix([[1.0], [0.0]], np.eye(2))
    array([[0., 0.],
           [0., 1.]])
    """
    Z, UK = _paired(Z, UK)
    return complement(orthonormal_basis(Z, rtol), UK)


def coverage_sines(Z, UK, rtol: float = RANK_RELATIVE) -> np.ndarray:
    r"""The ``K`` singular values :math:`\eta_1\ge\dots\ge\eta_K` of
    :math:`M_Z`.

    They are the sines of the principal angles between :math:`\mathrm{col}Z`
    and :math:`\mathrm{span}U_K`, with a sine of 1 for every dimension that
    :math:`\mathrm{rank}Z` falls short of ``K``.

    Parameters
    ----------
    Z : array_like, shape (n, m)
    UK : array_like, shape (n, K)
        Orthonormal columns, ``K >= 1``.
    rtol : float, in [0, 1)

    Returns
    -------
    ndarray, shape (K,)
        Decreasing, in [0, 1]. Absolute error near 1e-16, for small sines as
        well: no square root of a difference is taken.

    Raises
    ------
    ValueError
        As :func:`residual_matrix`.

    Notes
    -----
    Source: the spectral-alignment paper, Theorem 5.13 (its
    :math:`\eta_i`).

    Examples
    --------
    >>> coverage_sines(np.eye(3)[:, :1], np.eye(3)[:, :2])
    array([1., 0.])
    """
    M = residual_matrix(Z, UK, rtol)
    return np.minimum(np.linalg.svd(M, compute_uv=False), 1.0)


def coverage_gap(Z, UK, rtol: float = RANK_RELATIVE) -> float:
    r"""Coverage gap :math:`s_K(Z)=\|(I-\Pi_Z)U_K\|_2`.

    The largest share, in length, that a low function of norm one can have
    outside the reach of the features. 1 whenever
    :math:`\mathrm{rank}Z<K`.

    Parameters
    ----------
    Z : array_like, shape (n, m)
    UK : array_like, shape (n, K)
        Orthonormal columns, ``K >= 1``.
    rtol : float, in [0, 1)

    Returns
    -------
    float
        In [0, 1].

    Raises
    ------
    ValueError
        As :func:`residual_matrix`.

    Notes
    -----
    Source: the spectral-alignment paper, section 1.

    Examples
    --------
    >>> coverage_gap(np.ones((2, 1)), [[1.0], [0.0]]) ** 2
    0.5...
    """
    return float(coverage_sines(Z, UK, rtol)[0])


def captured_features(Z, UK, rtol: float = RANK_RELATIVE) -> float:
    r"""Captured features :math:`N_K(Z)=\|U_K^{\mathsf T}Q_Z\|_F^2`.

    The sum of the squared cosines of the principal angles: how many of the
    ``K`` frequencies the features hold, counted in parts.

    Parameters
    ----------
    Z : array_like, shape (n, m)
    UK : array_like, shape (n, K)
        Orthonormal columns, ``K >= 1``.
    rtol : float, in [0, 1)

    Returns
    -------
    float
        In :math:`[0,\min(K,\mathrm{rank}Z)]`. What is missing to ``K`` is
        better taken from :func:`coverage_deficit`.

    Raises
    ------
    ValueError
        As :func:`residual_matrix`.

    Notes
    -----
    Source: the spectral-alignment paper, Definition 3.4.

    Examples
    --------
    >>> captured_features(np.eye(3)[:, :1], np.eye(3)[:, :2])
    1.0
    """
    Z, UK = _paired(Z, UK)
    Q = orthonormal_basis(Z, rtol)
    total = float(np.sum((UK.T @ Q) ** 2))
    return min(total, float(min(UK.shape[1], Q.shape[1])))


def coverage_deficit(Z, UK, rtol: float = RANK_RELATIVE) -> float:
    r"""Coverage deficit :math:`\delta(Z)=K-N_K(Z)=\|M_Z\|_F^2`.

    Computed from :math:`M_Z`, so that a deficit of :math:`10^{-20}` comes
    out as such; the difference of ``K`` and :func:`captured_features` ends
    near :math:`10^{-15}`.

    Parameters
    ----------
    Z : array_like, shape (n, m)
    UK : array_like, shape (n, K)
        Orthonormal columns, ``K >= 1``.
    rtol : float, in [0, 1)

    Returns
    -------
    float
        In [0, K].

    Raises
    ------
    ValueError
        As :func:`residual_matrix`.

    Notes
    -----
    Source: the spectral-alignment paper, Lemma 3.5 (iv).

    Examples
    --------
    >>> coverage_deficit(np.eye(3)[:, :1], np.eye(3)[:, :2])
    1.0
    """
    return float(np.sum(coverage_sines(Z, UK, rtol) ** 2))


def _targets(f, n: int) -> np.ndarray:
    f = np.asarray(f, dtype=float)
    if f.ndim not in (1, 2) or f.shape[0] != n:
        raise ValueError(
            f"f must have shape ({n},) or ({n}, q), got {f.shape}"
        )
    if not np.isfinite(f).all():
        raise ValueError("f must be finite, it holds NaN or infinity")
    return f


def least_squares_readout(Z, f, rtol: float = RANK_RELATIVE) -> Readout:
    r"""Least-squares readout :math:`\beta=Z^+f`, :math:`g=Z\beta=\Pi_Zf`.

    Parameters
    ----------
    Z : array_like, shape (n, m)
        Features, the constant column included if there is one.
    f : array_like, shape (n,) or (n, q)
        Target values.
    rtol : float, in [0, 1)
        Relative rank tolerance for ``Z``.

    Returns
    -------
    Readout
        ``coefficients`` (m,) or (m, q): of all minimisers the shortest;
        ``fitted`` :math:`g`; ``residual`` :math:`r=g-f`, orthogonal to the
        features relative to its own size.

    Raises
    ------
    ValueError
        If shapes disagree, an input is not finite or ``rtol`` is out of
        range.

    Notes
    -----
    Source: the spectral-alignment paper, section 1.

    Examples
    --------
    >>> least_squares_readout(np.ones((3, 1)), [0.0, 0.0, 3.0]).fitted
    array([1., 1., 1.])
    """
    Z = np.asarray(Z, dtype=float)
    if Z.ndim != 2:
        raise ValueError(f"Z must be a matrix, got shape {Z.shape}")
    Q = orthonormal_basis(Z, rtol)
    f = _targets(f, Z.shape[0])
    fitted = project(Q, f)
    # (Q.T Z) has full row rank, and its pseudoinverse gives Z^+ f
    inverse = np.linalg.pinv(Q.T @ Z, rcond=0.0)
    coefficients = inverse @ (Q.T @ fitted)
    return Readout(coefficients, fitted, -complement(Q, f))


def eigenvalue_separation(lam) -> float:
    r"""Ratio :math:`\lambda_{K+1}/\lambda_K`, with a warning if it is low.

    If the two are equal, :math:`U_K` is one choice of many, and gap and
    capture are not functions of the graph.

    Parameters
    ----------
    lam : array_like, shape (K + 1,)
        The lowest eigenvalues, as :func:`laplacian_eigenbasis
        <helpers.spectral_alignment.spectra.laplacian_eigenbasis>` returns
        them: nonnegative and nondecreasing.

    Returns
    -------
    float
        At least 1; infinite if only :math:`\lambda_K` is zero.

    Warns
    -----
    PoorlySeparatedWarning
        If the ratio is below 1.05.

    Raises
    ------
    ValueError
        If ``lam`` has fewer than two entries, is not finite, is negative
        somewhere or decreases.

    Notes
    -----
    Source: ours; the paper leaves the case open.

    Examples
    --------
    >>> eigenvalue_separation([0.0, 1.0, 3.0])
    3.0
    """
    lam = np.asarray(lam, dtype=float)
    if lam.ndim != 1 or lam.size < 2:
        raise ValueError(
            "lam must hold the K + 1 lowest eigenvalues, K >= 1, got shape "
            f"{lam.shape}"
        )
    if not np.isfinite(lam).all() or lam[0] < 0 or np.any(np.diff(lam) < 0):
        raise ValueError("lam must be finite, nonnegative and nondecreasing")
    lower, upper = lam[-2:]
    if upper == 0:
        ratio = 1.0
    else:
        ratio = np.inf if lower == 0 else float(upper / lower)
    if ratio < GAP_WARNING:
        warnings.warn(
            f"lambda_(K+1) / lambda_K = {ratio:.4g} for K = {lam.size - 1}: "
            "the low-pass basis is poorly determined, and so are the gap and "
            "the captured features; move K",
            PoorlySeparatedWarning,
            stacklevel=2,
        )
    return ratio


def readout_error_bounds(
    Z, UK, L, f, lam, rtol: float = RANK_RELATIVE
) -> ReadoutBounds:
    r"""Corollary 3.1: bounds on :math:`\|g-f\|` for the readout on ``Z``.

    .. math::

        \|g-f\|\le s_K\|P_Kf\|+\|P_K^\perp f\|
        \le s_K\|f\|+E(f)/\sqrt{\lambda_{K+1}} .

    Parameters
    ----------
    Z : array_like, shape (n, m)
    UK : array_like, shape (n, K)
        The ``K`` lowest eigenvectors of ``L``, ``1 <= K < n``.
    L : array_like or sparse array, shape (n, n)
        Graph Laplacian of either kind.
    f : array_like, shape (n,) or (n, q)
        Target values.
    lam : array_like, shape (K + 1,)
        The lowest eigenvalues, the last one being :math:`\lambda_{K+1}`.
    rtol : float, in [0, 1)

    Returns
    -------
    ReadoutBounds
        ``low_high`` and ``smooth``, floats or shape ``(q,)``. ``smooth`` is
        infinite if :math:`\lambda_{K+1}=0` (more components than ``K``):
        there is no bound of that form then.

    Warns
    -----
    PoorlySeparatedWarning
        As :func:`eigenvalue_separation`.

    Raises
    ------
    ValueError
        If ``K >= n``, ``lam`` does not have ``K + 1`` entries, shapes
        disagree or an input is not finite.

    Notes
    -----
    That ``UK`` and ``lam`` belong to ``L`` is not checked.

    Source: the spectral-alignment paper, Corollary 3.1.

    Examples
    --------
    >>> path = np.array([[1.0, -1, 0], [-1, 2, -1], [0, -1, 1]])
    >>> flat = np.ones((3, 1)) / np.sqrt(3)
    >>> f = [0.0, -1.0, 1.0]
    >>> readout_error_bounds(flat, flat, path, f, [0.0, 1.0]).smooth ** 2
    5.0...
    """
    Z, UK = _paired(Z, UK)
    n, K = UK.shape
    if K >= n:
        raise ValueError(
            f"UK must have K < n columns, so that lambda_(K+1) exists, got "
            f"{UK.shape}"
        )
    if np.shape(lam) != (K + 1,):
        raise ValueError(
            f"lam must hold K + 1 = {K + 1} eigenvalues, got shape "
            f"{np.shape(lam)}"
        )
    f = _targets(f, n)
    eigenvalue_separation(lam)
    gap = coverage_gap(Z, UK, rtol)
    low, high = (np.linalg.norm(p, axis=0) for p in low_pass_split(UK, f))
    if lam[-1] > 0:
        tail = np.sqrt(high_frequency_bound(L, f, lam[-1]))
    else:
        tail = np.full_like(dirichlet_energy(L, f), np.inf)
    low_high = gap * low + high
    smooth = gap * np.linalg.norm(f, axis=0) + tail
    if f.ndim == 1:
        return ReadoutBounds(float(low_high), float(smooth))
    return ReadoutBounds(low_high, smooth)


def _counts(t) -> np.ndarray:
    t = np.asarray(t)
    if t.dtype.kind not in "iu" or t.ndim > 1 or np.any(t < 0):
        raise ValueError(
            f"t must be a whole number >= 0, or a vector of them, got {t!r}"
        )
    return t


def ky_fan_limits(Phi, UK, t, rtol: float = RANK_RELATIVE) -> KyFanLimits:
    r"""Theorem 5.13: what no ``t`` added directions can beat.

    For every ``Z`` with :math:`\mathrm{col}Z\subseteq\mathrm{col}\Phi+T`,
    :math:`\dim T\le t`,

    .. math::

        K-N_K(Z)\ge\sum_{i>t}\eta_i^2,\qquad s_K(Z)\ge\eta_{t+1},

    with :math:`\eta` the singular values of :math:`M_\Phi` and 0 beyond
    ``K``. Both hold with equality for the span of
    :func:`ky_fan_directions`.

    Parameters
    ----------
    Phi : array_like, shape (n, m)
        What is there already. ``m = 0`` is allowed.
    UK : array_like, shape (n, K)
        Orthonormal columns, ``K >= 1``.
    t : int or array_like of int, shape (q,)
        Number of added directions, each >= 0.
    rtol : float, in [0, 1)

    Returns
    -------
    KyFanLimits
        ``deficit`` and ``gap``: floats, or shape ``(q,)``.

    Raises
    ------
    ValueError
        As :func:`residual_matrix`, and if ``t`` is negative or not whole.

    Notes
    -----
    Source: the spectral-alignment paper, Theorem 5.13.

    Examples
    --------
    >>> ky_fan_limits(np.zeros((3, 0)), np.eye(3)[:, :2], [0, 1, 2]).deficit
    array([2., 1., 0.])
    """
    t = _counts(t)
    Phi, UK = _paired(Phi, UK, "Phi")
    sines = coverage_sines(Phi, UK, rtol)
    K = sines.size
    # summed from the small end, so that tails keep their digits
    tails = np.append(np.cumsum(sines[::-1] ** 2)[::-1], 0.0)
    at = np.minimum(t, K)
    deficit, gap = tails[at], np.append(sines, 0.0)[at]
    if t.ndim == 0:
        return KyFanLimits(float(deficit), float(gap))
    return KyFanLimits(deficit, gap)


def ky_fan_directions(
    Phi, UK, t: int, rtol: float = RANK_RELATIVE
) -> np.ndarray:
    r"""The directions that attain :func:`ky_fan_limits`.

    The top ``t`` left singular vectors of :math:`M_\Phi`. They are not
    neurons: in general none of them is the output of a ReLU.

    Parameters
    ----------
    Phi : array_like, shape (n, m)
    UK : array_like, shape (n, K)
        Orthonormal columns, ``K >= 1``.
    t : int >= 0
    rtol : float, in [0, 1)
        Also for :math:`\eta_i`, relative to 1, the norm of the columns of
        ``UK``: directions that a projection has emptied are not returned.

    Returns
    -------
    ndarray, shape (n, p)
        Orthonormal and orthogonal to ``Phi``;
        :math:`p\le t` is smaller only if nothing is left to add.

    Raises
    ------
    ValueError
        As :func:`ky_fan_limits`.

    Notes
    -----
    Source: the spectral-alignment paper, Theorem 5.13.

    Examples
    --------
    >>> ky_fan_directions(np.eye(2)[:, :1], np.eye(2), 2).shape
    (2, 1)
    """
    if _counts(t).ndim:
        raise ValueError(f"t must be one whole number, got {t!r}")
    Phi, UK = _paired(Phi, UK, "Phi")
    M = residual_matrix(Phi, UK, rtol)
    left, sines, _ = np.linalg.svd(M, full_matrices=False)
    return left[:, sines > rtol][:, : int(t)]


def choose_features(
    pool, UK, t: int, start=None, rtol: float = RANK_RELATIVE
) -> np.ndarray:
    r"""Choose ``t`` columns, each time the one that captures most.

    In every step the candidate :math:`h` with the largest
    :math:`N_K([H,h])-N_K(H)=\|M_H^{\mathsf T}h\|^2/\|(I-\Pi_H)h\|^2` joins
    :math:`H`. Not the best set of ``t`` columns in general.

    Parameters
    ----------
    pool : array_like, shape (n, p)
        Candidates. Zero columns and copies are never chosen twice.
    UK : array_like, shape (n, K)
        Orthonormal columns, ``K >= 1``.
    t : int >= 0
    start : array_like, shape (n, m), optional
        Columns that :math:`H` begins with; none by default.
    rtol : float, in [0, 1)
        A candidate of which the projection leaves less than this share of
        its own length counts as represented already.

    Returns
    -------
    ndarray of int, shape (c,)
        Indices in the order of choice; :math:`c<t` if every candidate is
        represented before.

    Raises
    ------
    ValueError
        As :func:`residual_matrix`, and if ``t`` is negative or not whole.

    Notes
    -----
    Rank-one updates, :math:`O(np)` a step plus :math:`O(npK)`.

    Source: ours, from the spectral-alignment paper, Proposition 4.5.

    Examples
    --------
    >>> choose_features(np.eye(3), np.eye(3)[:, 1:], 5).tolist()
    [1, 2, 0]
    """
    if _counts(t).ndim:
        raise ValueError(f"t must be one whole number, got {t!r}")
    pool, UK = _paired(pool, UK, "pool")
    nothing = np.zeros((UK.shape[0], 0))
    begin, _ = _paired(nothing if start is None else start, UK, "start")
    Q = orthonormal_basis(begin, rtol)
    rest, M = complement(Q, pool), complement(Q, UK)
    least = (rtol * np.linalg.norm(pool, axis=0)) ** 2
    chosen: list[int] = []
    for _ in range(int(t)):
        size = np.sum(rest**2, axis=0)
        gain = np.full(size.size, -1.0)
        new = size > least
        gain[new] = np.sum((M.T @ rest[:, new]) ** 2, axis=0) / size[new]
        if not new.any():
            break
        best = int(np.argmax(gain))
        chosen.append(best)
        # orthogonalised against the whole basis before it is normalised
        q = complement(Q, rest[:, best])
        q /= np.linalg.norm(q)
        Q = np.column_stack([Q, q])
        rest = rest - np.outer(q, q @ rest)
        # without rounding UK.T @ rest would do: M drops what rounding has
        # left of rest along the basis
        M = M - np.outer(q, q @ M)
    return np.array(chosen, dtype=int)
