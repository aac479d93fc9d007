"""Frequencies of a graph: eigenbases, energy, and the low-pass split.

``L`` stands for either Laplacian, dense or sparse, in the storage that
:func:`helpers.spectral_alignment.graphs.graph_laplacian` returns. A function
on the samples is a vector of shape ``(n,)``; ``q`` of them are the columns of
a matrix ``(n, q)``.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from scipy import sparse
from scipy.linalg import eigh
from scipy.sparse.csgraph import connected_components
from scipy.sparse.linalg import eigsh, lobpcg

from helpers.core.linalg import check_orthonormal, complement, project
from helpers.core.tolerances import (
    EIGENVALUE_TIE,
    GAP_WARNING,
    KERNEL_RELATIVE,
    LOBPCG_RESIDUAL,
    ROUNDING,
    SHIFT_RELATIVE,
    SIGN_TIE,
    SYMMETRY,
)

SOLVERS = ("dense", "shift_invert", "lobpcg")

# Pairs that shift_invert computes beyond those returned. A Krylov method
# finds the copies of a multiple eigenvalue late; without guards, 3 of 485
# unions of equal cycles came back with a wrong last pair, with 4 none did.
GUARD_VECTORS = 4

LOBPCG_STEPS = 500


class PoorlySeparatedWarning(UserWarning):
    """The low-pass basis is cut inside a (nearly) repeated eigenvalue."""


@dataclass(frozen=True)
class BasisInfo:
    r"""How well determined a low-pass basis is.

    Attributes
    ----------
    gap_ratio : float
        :math:`\lambda_{K+1}/\lambda_K`; infinite if only
        :math:`\lambda_K` is zero, 1 if both are.
    poorly_separated : bool
        ``gap_ratio`` is below 1.05. At exactly 1 the span of the basis is
        not a function of the graph.
    n_components : int
        Connected components, counted on the graph: the exact multiplicity
        of the eigenvalue 0.
    n_zero : int
        Computed eigenvalues that are zero to rounding. More than
        ``min(n_components, K + 1)`` means that components hang together by
        weights that rounding cannot see.
    bound_applies : bool
        :math:`\lambda_{K+1}>0`, as Lemma 2.1 asks.
    """

    gap_ratio: float
    poorly_separated: bool
    n_components: int
    n_zero: int
    bound_applies: bool


class LaplacianBasis(NamedTuple):
    """What :func:`laplacian_eigenbasis` returns."""

    eigenvalues: np.ndarray
    vectors: np.ndarray
    info: BasisInfo


def _laplacian(L) -> np.ndarray | sparse.csr_array:
    if sparse.issparse(L):
        L = sparse.csr_array(L, dtype=float)
        entries = L.data
    else:
        L = np.asarray(L, dtype=float)
        entries = L.ravel()
    if L.ndim != 2 or L.shape[0] != L.shape[1] or L.shape[0] == 0:
        raise ValueError(f"L must have shape (n, n), n >= 1, got {L.shape}")
    if not np.isfinite(entries).all():
        raise ValueError("L must be finite, it holds NaN or infinity")
    scale = np.abs(entries).max(initial=0.0)
    asymmetry = abs(L - L.T).max()
    if asymmetry > SYMMETRY * scale:
        raise ValueError(
            f"L must be symmetric, L - L.T reaches {asymmetry:.3g}"
        )
    return L


def _functions(x, n: int, name: str = "x") -> np.ndarray:
    x = np.asarray(x, dtype=float)
    if x.ndim not in (1, 2) or x.shape[0] != n:
        raise ValueError(
            f"{name} must have shape ({n},) or ({n}, q), got {x.shape}"
        )
    if not np.isfinite(x).all():
        raise ValueError(f"{name} must be finite, it holds NaN or infinity")
    return x


def _spectral_bound(L) -> float:
    """Upper bound of the largest eigenvalue (largest absolute row sum)."""
    return float(np.asarray(abs(L).sum(axis=1)).max())


def _count_components(L) -> int:
    pattern = sparse.csr_array(L)
    pattern = pattern - sparse.diags_array(pattern.diagonal())
    pattern.eliminate_zeros()
    return int(connected_components(pattern, directed=False)[0])


def fix_signs(U: np.ndarray) -> np.ndarray:
    """Flip columns so that their largest entry is positive.

    Among entries that tie for the largest magnitude (to a relative 1e-6)
    the first one decides. The sign of an eigenvector is a convention; this
    one does not depend on the solver.

    Parameters
    ----------
    U : ndarray, shape (n, K)

    Returns
    -------
    ndarray, shape (n, K)
        A new array. Zero columns stay zero.

    Raises
    ------
    ValueError
        If ``U`` is not a finite matrix with a row.

    Notes
    -----
    Source: ours; the paper leaves signs open.

    Examples
    --------
    >>> fix_signs(np.array([[-3.0, 1.0], [2.0, -1.0]]))
    array([[ 3.,  1.],
           [-2., -1.]])
    """
    U = np.asarray(U, dtype=float)
    if U.ndim != 2 or len(U) == 0 or not np.isfinite(U).all():
        raise ValueError(
            f"U must be a finite matrix with a row, got shape {U.shape}"
        )
    size = np.abs(U)
    ties = size >= (1 - SIGN_TIE) * size.max(axis=0, initial=0.0)
    pivot = np.argmax(ties, axis=0)
    pivots = np.take_along_axis(U, pivot[None, :], axis=0)
    return U * np.where(pivots < 0, -1.0, 1.0)


def _dense_pairs(L, count: int) -> tuple[np.ndarray, np.ndarray]:
    full = L.toarray() if sparse.issparse(L) else L
    return eigh(full, subset_by_index=(0, count - 1))


def _shift_invert_pairs(L, count: int) -> tuple[np.ndarray, np.ndarray]:
    n = L.shape[0]
    if count >= n:
        raise ValueError(
            f"K must be at most n - 2 = {n - 2} for shift_invert, got "
            f"{count - 1}; use solver='dense'"
        )
    asked = min(count + GUARD_VECTORS, n - 1)
    mean_diagonal = L.diagonal().mean()
    shift = -SHIFT_RELATIVE * (mean_diagonal if mean_diagonal > 0 else 1.0)
    start = np.random.default_rng(0).normal(size=n)
    lam, U = eigsh(
        sparse.csc_array(L), k=asked, sigma=shift, which="LM", v0=start
    )
    order = np.argsort(lam)[:count]
    return lam[order], U[:, order]


def _lobpcg_pairs(L, count: int) -> tuple[np.ndarray, np.ndarray]:
    n, block = L.shape[0], count + GUARD_VECTORS
    if 5 * block > n:
        raise ValueError(
            f"K must be at most n / 5 - {GUARD_VECTORS + 1} = "
            f"{n // 5 - GUARD_VECTORS - 1} for lobpcg, got {count - 1}; use "
            "solver='dense'"
        )
    start = np.random.default_rng(0).normal(size=(n, block))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # its residuals are checked below
        lam, U = lobpcg(
            L, start, largest=False, maxiter=LOBPCG_STEPS, tol=ROUNDING
        )
    order = np.argsort(lam)[:count]
    lam, U = lam[order], U[:, order]
    residual = np.linalg.norm(L @ U - U * lam, axis=0).max()
    if not residual <= LOBPCG_RESIDUAL * _spectral_bound(L):
        raise RuntimeError(
            f"lobpcg stopped with a residual of {residual:.1e} after "
            f"{LOBPCG_STEPS} steps; use solver='shift_invert' or 'dense'"
        )
    return lam, U


def _settle_kernel(lam: np.ndarray, L) -> tuple[np.ndarray, int, int]:
    """Set the eigenvalues that are zero by theorem to zero."""
    tolerance = KERNEL_RELATIVE * _spectral_bound(L)
    components = _count_components(L)
    known = min(components, lam.size)
    if lam[0] < -tolerance or lam[known - 1] > tolerance:
        raise ValueError(
            f"L is not a graph Laplacian: its pattern has {components} "
            f"component(s), so its {known} lowest eigenvalue(s) must be 0, "
            f"but they run from {lam[0]:.3g} to {lam[known - 1]:.3g}"
        )
    n_zero = int(np.count_nonzero(lam <= tolerance))
    lam = np.maximum(lam, 0.0)
    lam[:known] = 0.0
    return lam, components, n_zero


def _gap_ratio(lower: float, upper: float, tolerance: float) -> float:
    if upper <= tolerance:
        return 1.0
    return np.inf if lower <= tolerance else float(upper / lower)


def _warn_of_tie(K: int, value: float, ratio: float) -> None:
    warnings.warn(
        f"lambda_{K} = lambda_{K + 1} = {value:.4g} (gap ratio {ratio:.4g}): "
        f"the span of the {K} lowest frequencies is one choice of many; move "
        "K, or say if_tied='ignore'",
        PoorlySeparatedWarning,
        stacklevel=3,
    )


def laplacian_eigenbasis(
    L, K: int, solver: str = "dense", if_tied: str = "warn"
) -> LaplacianBasis:
    r"""The ``K`` lowest frequencies of a graph, and the next eigenvalue.

    :math:`\mathcal Lu_k=\lambda_ku_k` with
    :math:`0=\lambda_1\le\dots\le\lambda_{K+1}`.

    Parameters
    ----------
    L : array_like or sparse array, shape (n, n)
        Graph Laplacian of either kind.
    K : int in 1..n-1
        At most ``n - 2`` for ``shift_invert`` and ``n / 5 - 5`` for
        ``lobpcg``.
    solver : {'dense', 'shift_invert', 'lobpcg'}
        ``dense``: LAPACK on the full matrix, :math:`O(n^3)`, never misses
        an eigenvalue; right up to about ``n = 2000``. ``shift_invert``:
        ARPACK on :math:`(L-\sigma I)^{-1}` with a small negative
        :math:`\sigma` (at 0 the factor is singular), for sparse ``L``.
        ``lobpcg``: products with ``L`` only, without a preconditioner, for
        graphs whose factor does not fit; slower and less exact, and an error
        instead of a wrong answer where it does not converge. The number of
        zero eigenvalues is checked against the components; other
        multiplicities are not, but by ``dense``.
    if_tied : {'warn', 'ignore'}
        What to do if :math:`\lambda_K=\lambda_{K+1}` up to rounding.

    Returns
    -------
    LaplacianBasis
        ``eigenvalues`` (K + 1,), increasing, exactly 0 as often as the graph
        has components; ``vectors`` (n, K) orthonormal, the largest entry of
        each positive (:func:`fix_signs`); ``info`` (:class:`BasisInfo`).
        Inside a repeated eigenvalue the vectors are one arbitrary choice.

    Warns
    -----
    PoorlySeparatedWarning
        If :math:`\lambda_K=\lambda_{K+1}`: the span of the vectors is not a
        function of the graph. A ratio below 1.05 is only flagged in ``info``;
        :func:`~helpers.spectral_alignment.coverage.eigenvalue_separation`
        warns of it.

    Raises
    ------
    ValueError
        If ``L`` is not symmetric and finite, is not a Laplacian, ``K`` is
        out of range, or ``solver`` or ``if_tied`` is unknown.
    RuntimeError
        If ``lobpcg`` does not converge.

    Notes
    -----
    Source: the spectral-alignment paper, section 1 (the paper does not say
    what to do at a repeated eigenvalue; the flag is ours).

    Examples
    --------
    The path of three nodes, eigenvalues 0, 1, 3:

    >>> path = np.array([[1.0, -1, 0], [-1, 2, -1], [0, -1, 1]])
    >>> lam, U, info = laplacian_eigenbasis(path, 2)
    >>> lam.round(12), info.gap_ratio.__round__(9)
    (array([0., 1., 3.]), 3.0)
    """
    L = _laplacian(L)
    n = L.shape[0]
    if isinstance(K, bool) or not 1 <= K < n or K % 1 != 0:
        raise ValueError(
            f"K must be a whole number in 1..{n - 1} (K < n, so that "
            f"lambda_(K+1) exists), got {K!r}"
        )
    if solver not in SOLVERS:
        raise ValueError(f"solver must be one of {SOLVERS}, got {solver!r}")
    if if_tied not in ("warn", "ignore"):
        raise ValueError(
            f"if_tied must be 'warn' or 'ignore', got {if_tied!r}"
        )
    computed, U = {
        "dense": _dense_pairs,
        "shift_invert": _shift_invert_pairs,
        "lobpcg": _lobpcg_pairs,
    }[solver](L, int(K) + 1)
    lam, components, n_zero = _settle_kernel(computed, L)
    tolerance = KERNEL_RELATIVE * _spectral_bound(L)
    ratio = _gap_ratio(lam[-2], lam[-1], tolerance)
    if if_tied == "warn" and lam[-1] - lam[-2] <= tolerance:
        _warn_of_tie(int(K), lam[-1], ratio)
    info = BasisInfo(
        gap_ratio=ratio,
        poorly_separated=bool(ratio < GAP_WARNING),
        n_components=components,
        n_zero=n_zero,
        bound_applies=bool(lam[-1] > tolerance),
    )
    return LaplacianBasis(lam, fix_signs(U[:, :-1]), info)


def laplacian_spectrum(L) -> tuple[np.ndarray, np.ndarray]:
    r"""All frequencies of a graph: :math:`\mathcal L=U\Lambda U^{\mathsf T}`.

    Parameters
    ----------
    L : array_like or sparse array, shape (n, n)
        Graph Laplacian of either kind; treated as dense, :math:`O(n^3)`.

    Returns
    -------
    eigenvalues : ndarray, shape (n,)
        Increasing; exactly 0 as often as the graph has components.
    vectors : ndarray, shape (n, n)
        Orthogonal, signs as in :func:`laplacian_eigenbasis`.

    Raises
    ------
    ValueError
        If ``L`` is not symmetric and finite or not a Laplacian.

    Notes
    -----
    Source: the spectral-alignment paper, section 1.

    Examples
    --------
    >>> laplacian_spectrum([[1.0, -1.0], [-1.0, 1.0]])[0].round(12)
    array([0., 2.])
    """
    L = _laplacian(L)
    lam, U = _dense_pairs(L, L.shape[0])
    return _settle_kernel(lam, L)[0], fix_signs(U)


def graph_fourier_transform(U, x) -> np.ndarray:
    r"""Coefficients :math:`\hat x=U^{\mathsf T}x` in an eigenbasis.

    Parameters
    ----------
    U : array_like, shape (n, K)
        Orthonormal eigenvectors, all of them or the lowest ``K``.
    x : array_like, shape (n,) or (n, q)

    Returns
    -------
    ndarray, shape (K,) or (K, q)
        With all ``n`` vectors, :math:`\|\hat x\|=\|x\|` (Parseval).

    Raises
    ------
    ValueError
        If shapes disagree, ``U`` is not orthonormal or ``x`` is not finite.

    Notes
    -----
    Source: the spectral-alignment paper, Definition 1.1; Shuman et al., IEEE
    Signal Processing Magazine 30 (2013).

    Examples
    --------
    >>> graph_fourier_transform(np.eye(2), [3.0, 4.0])
    array([3., 4.])
    """
    U = check_orthonormal(U, "U")
    return U.T @ _functions(x, U.shape[0])


def dirichlet_energy(L, x) -> np.ndarray | float:
    r"""Energy :math:`E(x)^2=x^{\mathsf T}\mathcal Lx`, the square of (1.1).

    Parameters
    ----------
    L : array_like or sparse array, shape (n, n)
        Graph Laplacian of either kind.
    x : array_like, shape (n,) or (n, q)

    Returns
    -------
    float or ndarray, shape (q,)
        Nonnegative: what rounding makes negative is returned as 0, so that a
        square root can be taken. Zero exactly on functions that are constant
        on components (for ``L_sym``: constant times root of the degree).

    Raises
    ------
    ValueError
        If ``L`` is not symmetric, shapes disagree, an input is not finite,
        or the form is negative beyond rounding.

    Notes
    -----
    Source: the spectral-alignment paper, Definition 1.1.

    Examples
    --------
    Two edges of the path are crossed, by steps of 1 and 2:

    >>> path = np.array([[1.0, -1, 0], [-1, 2, -1], [0, -1, 1]])
    >>> dirichlet_energy(path, [0.0, 1.0, 3.0])
    5.0
    """
    L = _laplacian(L)
    x = _functions(x, L.shape[0])
    energy = np.sum(x * (L @ x), axis=0)
    slack = ROUNDING * L.shape[0] * _spectral_bound(L)
    if np.any(energy < -slack * np.sum(x**2, axis=0)):
        raise ValueError(
            f"L must be positive semidefinite, x.T @ L @ x = {energy.min()}"
        )
    energy = np.maximum(energy, 0.0)
    return float(energy) if x.ndim == 1 else energy


def rayleigh_quotient(L, x) -> np.ndarray | float:
    r"""Energy per unit of mass, :math:`R(x)=x^{\mathsf T}\mathcal Lx/\|x\|^2`.

    A weighted mean of the eigenvalues, with weights :math:`\hat x_k^2`.

    Parameters
    ----------
    L : array_like or sparse array, shape (n, n)
        Graph Laplacian of either kind.
    x : array_like, shape (n,) or (n, q)
        No zero columns. Subtract the mean first if a constant should not
        count as smoothness.

    Returns
    -------
    float or ndarray, shape (q,)
        In :math:`[\lambda_1,\lambda_n]`.

    Raises
    ------
    ValueError
        As :func:`dirichlet_energy`, and if a function is identically 0.

    Notes
    -----
    Source: the spectral-alignment paper, Definition 1.1.

    Examples
    --------
    >>> path = np.array([[1.0, -1, 0], [-1, 2, -1], [0, -1, 1]])
    >>> rayleigh_quotient(path, [1.0, -2.0, 1.0])
    3.0
    """
    L = _laplacian(L)
    x = _functions(x, L.shape[0])
    # by the largest entry first: then squares neither vanish nor overflow
    peak = np.abs(x).max(axis=0)
    if np.any(peak == 0):
        raise ValueError("x must not be identically 0: 0/0 has no value")
    x = x / peak
    ratio = dirichlet_energy(L, x) / np.sum(x**2, axis=0)
    return float(ratio) if x.ndim == 1 else ratio


def low_pass_split(UK, x) -> tuple[np.ndarray, np.ndarray]:
    r"""Split :math:`x=P_Kx+P_K^\perp x` into low and high frequencies.

    Parameters
    ----------
    UK : array_like, shape (n, K)
        Orthonormal columns.
    x : array_like, shape (n,) or (n, q)

    Returns
    -------
    low, high : ndarray, shape of x
        :math:`U_KU_K^{\mathsf T}x` and the rest; orthogonal, sum ``x``.

    Raises
    ------
    ValueError
        If shapes disagree, ``UK`` is not orthonormal or ``x`` is not finite.

    Notes
    -----
    Source: the spectral-alignment paper, section 1.

    Examples
    --------
    >>> low, high = low_pass_split(np.array([[1.0], [0.0]]), [3.0, 4.0])
    >>> low, high
    (array([3., 0.]), array([0., 4.]))
    """
    UK = check_orthonormal(UK, "UK")
    return project(UK, x), complement(UK, x)


def high_frequency_bound(L, x, next_eigenvalue: float) -> np.ndarray | float:
    r"""Lemma 2.1: :math:`\|P_K^\perp x\|^2\le E(x)^2/\lambda_{K+1}`.

    Parameters
    ----------
    L : array_like or sparse array, shape (n, n)
        Graph Laplacian of either kind.
    x : array_like, shape (n,) or (n, q)
    next_eigenvalue : float > 0
        :math:`\lambda_{K+1}`, the last entry that
        :func:`laplacian_eigenbasis` returns for ``K``.

    Returns
    -------
    float or ndarray, shape (q,)
        Bound on the squared norm of the high part. Never needs the
        eigenvectors. May exceed :math:`\|x\|^2`, and then says nothing.

    Raises
    ------
    ValueError
        As :func:`dirichlet_energy`, and if ``next_eigenvalue`` is not
        positive: then ``K`` is below the number of components and no bound
        of this form exists.

    Notes
    -----
    Source: the spectral-alignment paper, Lemma 2.1.

    Examples
    --------
    >>> path = np.array([[1.0, -1, 0], [-1, 2, -1], [0, -1, 1]])
    >>> high_frequency_bound(path, [0.0, 1.0, 3.0], 3.0) * 3
    5.0
    """
    if not (np.isfinite(next_eigenvalue) and next_eigenvalue > 0):
        raise ValueError(
            "next_eigenvalue must be finite and > 0 (K at least the number "
            f"of components), got {next_eigenvalue}"
        )
    return dirichlet_energy(L, x) / float(next_eigenvalue)


def _even_out_ties(squares: np.ndarray, lam: np.ndarray) -> np.ndarray:
    """Replace entries at a repeated eigenvalue by their mean."""
    new = np.diff(lam, prepend=lam[0]) > EIGENVALUE_TIE * np.abs(lam).max()
    group = np.cumsum(new)
    sums = np.zeros((group[-1] + 1, *squares.shape[1:]))
    np.add.at(sums, group, squares)
    size = np.bincount(group).reshape(-1, *[1] * (squares.ndim - 1))
    return (sums / size)[group]


def cumulative_energy(U, x, eigenvalues=None) -> np.ndarray:
    r"""Share of :math:`\|x\|^2` in the lowest 1, 2, ... frequencies.

    At a repeated eigenvalue the share in the first few of its vectors
    depends on the arbitrary choice of these. If ``eigenvalues`` are given,
    the share of the whole eigenspace is divided evenly among them: its mean
    over all choices, and a function of the graph alone.

    Parameters
    ----------
    U : array_like, shape (n, K)
        Orthonormal eigenvectors, lowest frequency first.
    x : array_like, shape (n,) or (n, q)
        No zero columns.
    eigenvalues : array_like, shape (K,), optional
        Nondecreasing; equal up to a relative 1e-9 counts as repeated. An
        eigenspace that is cut off at ``K`` is only evened out inside ``U``.

    Returns
    -------
    ndarray, shape (K,) or (K, q)
        Entry ``k - 1`` is :math:`\|P_kx\|^2/\|x\|^2`: nondecreasing, in
        [0, 1], and 1 at the end if ``U`` is complete.

    Raises
    ------
    ValueError
        As :func:`graph_fourier_transform`, if a function is 0, or if
        ``eigenvalues`` do not match ``U`` or decrease.

    Notes
    -----
    Source: ours (a running sum of Parseval's identity).

    Examples
    --------
    >>> cumulative_energy(np.eye(2), [3.0, 4.0])
    array([0.36, 1.  ])
    >>> cumulative_energy(np.eye(2), [3.0, 4.0], eigenvalues=[2.0, 2.0])
    array([0.5, 1. ])
    """
    squares = graph_fourier_transform(U, x) ** 2
    mass = np.sum(np.asarray(x, dtype=float) ** 2, axis=0)
    if np.any(mass == 0):
        raise ValueError("x must not be identically 0: 0/0 has no value")
    if eigenvalues is not None:
        lam = np.asarray(eigenvalues, dtype=float)
        if lam.shape != squares.shape[:1] or not np.all(np.diff(lam) >= 0):
            raise ValueError(
                f"eigenvalues must be {squares.shape[0]} nondecreasing "
                f"numbers, one for each column of U, got shape {lam.shape}"
            )
        squares = _even_out_ties(squares, lam)
    return np.minimum(np.cumsum(squares, axis=0) / mass, 1.0)


def leverage_scores(UK) -> np.ndarray:
    r"""Leverage of each sample, :math:`\ell_i=\|U_K^{\mathsf T}e_i\|^2`.

    The share of sample ``i``'s indicator that the low-pass basis holds. Near
    :math:`K/n` everywhere if the eigenvectors are spread out, near 1 at a
    sample on which one of them sits alone.

    Parameters
    ----------
    UK : array_like, shape (n, K)
        Orthonormal columns.

    Returns
    -------
    ndarray, shape (n,)
        In [0, 1], with sum ``K``.

    Raises
    ------
    ValueError
        If ``UK`` is not a finite matrix with orthonormal columns.

    Notes
    -----
    Source: the spectral-alignment paper, Proposition 4.1.

    Examples
    --------
    >>> leverage_scores(np.eye(3)[:, :2])
    array([1., 1., 0.])
    """
    return np.sum(check_orthonormal(UK, "UK") ** 2, axis=1)
