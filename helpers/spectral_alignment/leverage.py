r"""Leverage scores where an eigenbasis or a factorisation is too dear.

Exact scores of a low-pass basis are
:func:`helpers.spectral_alignment.spectra.leverage_scores`. Here they are
estimated with products :math:`\mathcal Lx` only, and the scores of features
from a sketch of their rows.
"""

from __future__ import annotations

import numpy as np
from scipy import sparse

from helpers.core.checks import whole_number
from helpers.core.linalg import orthonormal_basis
from helpers.core.randomness import Seed, as_generator
from helpers.core.tolerances import RANK_RELATIVE

HALVINGS = 50


def _jackson(degree: int) -> np.ndarray:
    """Damping factors of a nonnegative kernel: no overshoot."""
    k, size = np.arange(degree + 1), degree + 2
    damping = (size - k) * np.cos(np.pi * k / size)
    damping += np.sin(np.pi * k / size) / np.tan(np.pi / size)
    return damping / size


def _step_coefficients(cut: float, degree: int) -> np.ndarray:
    """Damped Chebyshev series on [-1, 1] of the step that is 1 below
    ``cut``."""
    j, angle = np.arange(1, degree + 1), np.arccos(cut)
    series = np.r_[1 - angle / np.pi, -2 * np.sin(j * angle) / (j * np.pi)]
    return series * _jackson(degree)


def _chebyshev(A, x, degree: int):
    """Yield :math:`T_0(A)x,\\dots,T_{degree}(A)x`."""
    before, now = x, A @ x
    yield before
    for _ in range(degree):
        yield now
        before, now = now, 2 * (A @ now) - before


def sketched_leverage_scores(
    L, K: int, probes: int = 80, degree: int = 200, rng: Seed = 0
) -> np.ndarray:
    r"""Leverage scores of the ``K`` lowest frequencies, without eigenvectors.

    For a standard normal vector :math:`g` the mean of :math:`(P_Kg)_i^2` is
    :math:`\ell_i`. The projection is replaced by a Chebyshev polynomial of
    :math:`\mathcal L` that falls from 1 to 0 in the middle between the places
    where the estimated number of eigenvalues below passes
    :math:`K\mp\frac12`.

    Parameters
    ----------
    L : array_like or sparse array, shape (n, n)
        Graph Laplacian of either kind.
    K : int in 1..n-1
    probes : int >= 1
        Random vectors; the relative error of a score is about
        :math:`\sqrt{2/\text{probes}}`.
    degree : int >= 1
        Products with ``L`` for each probe and pass. The polynomial falls over
        a range of about :math:`\pi/\text{degree}` of half the spectrum, so
        that a gap narrower than this is smoothed over.
    rng : int, SeedSequence or numpy.random.Generator

    Returns
    -------
    ndarray, shape (n,)
        At least 0; scaled to sum to ``K``.

    Raises
    ------
    ValueError
        If ``L`` is not square and finite, has no edge, or an option is out
        of range.

    Notes
    -----
    Two passes of ``degree`` products with ``n`` by ``probes`` matrices.

    Source: ours; a spectral filter after Shuman et al. (2013), with the
    eigenvalue count of Di Napoli, Polizzi and Saad (2016).

    Examples
    --------
    Two components of one and three nodes, K = 2: the scores are 1 and 1/3.

    >>> L = np.zeros((4, 4))
    >>> L[1:, 1:] = 3 * np.eye(3) - 1
    >>> sketched_leverage_scores(L, 2, probes=4000).round(1).tolist()
    [1.0, 0.3, 0.3, 0.3]
    """
    L = sparse.csr_array(L) if sparse.issparse(L) else np.asarray(L, float)
    if L.ndim != 2 or L.shape[0] != L.shape[1]:
        raise ValueError(f"L must be square, got shape {L.shape}")
    n = L.shape[0]
    if whole_number(K, "K") >= n:
        raise ValueError(f"K must be in 1..{n - 1}, got {K!r}")
    probes, degree = (
        whole_number(probes, "probes"),
        whole_number(degree, "degree"),
    )
    if not np.isfinite(L.data if sparse.issparse(L) else L).all():
        raise ValueError("L must be finite, it holds NaN or infinity")
    if not L.diagonal().max() > 0:
        raise ValueError("L must have an edge, its diagonal is zero")
    half = float(L.diagonal().max())  # eigenvalues are at most twice this
    identity = sparse.eye_array(n) if sparse.issparse(L) else np.eye(n)
    A = L / half - identity
    g = as_generator(rng).normal(size=(n, probes))
    moments = np.array([np.sum(g * x) for x in _chebyshev(A, g, degree)])
    ends = [_counting_cut(moments / probes, K + s) for s in (-0.5, 0.5)]
    cut = float(np.mean(ends))
    filtered = np.zeros_like(g)
    for c, x in zip(
        _step_coefficients(cut, degree), _chebyshev(A, g, degree), strict=True
    ):
        filtered += c * x
    scores = np.mean(filtered**2, axis=1)
    return scores * (K / scores.sum())


def _counting_cut(moments, wanted: float) -> float:
    """Where the smoothed count of eigenvalues passes ``wanted``."""
    low, high = -1.0, 1.0
    for _ in range(HALVINGS):
        cut = (low + high) / 2
        count = _step_coefficients(cut, len(moments) - 1) @ moments
        low, high = (cut, high) if count < wanted else (low, cut)
    return cut


def feature_leverage_scores(
    Z, sketch_rows: int | None = None, rng: Seed = 0
) -> np.ndarray:
    r"""Leverage scores of the rows of a feature matrix,
    :math:`(\Pi_Z)_{ii}`.

    Parameters
    ----------
    Z : array_like, shape (n, m)
        Zero columns, as dead units leave them, and repeated columns are
        allowed.
    sketch_rows : int, optional
        Rows of a Gaussian sketch :math:`SZ`, at least as many as columns or
        more than the rank; its QR factor stands in for that of ``Z``. The relative error is about
        :math:`\sqrt{2\,\text{rank}/\text{sketch rows}}`. Exact by default.
    rng : int, SeedSequence or numpy.random.Generator

    Returns
    -------
    ndarray, shape (n,)
        At least 0; exact scores sum to the rank and are at most 1.

    Raises
    ------
    ValueError
        If ``Z`` is not a finite matrix with a row, or the sketch has too few
        rows.

    Notes
    -----
    Source: Drineas, Magdon-Ismail, Mahoney and Woodruff (2012).

    Examples
    --------
    >>> feature_leverage_scores([[1.0, 0.0], [1.0, 0.0]]).round(6).tolist()
    [0.5, 0.5]
    """
    Z = np.asarray(Z, dtype=float)
    if sketch_rows is None:
        return np.sum(orthonormal_basis(Z) ** 2, axis=1)
    rows = whole_number(sketch_rows, "sketch_rows")
    if Z.ndim != 2 or not Z.size or not np.isfinite(Z).all():
        raise ValueError(
            f"Z must be a finite matrix with a row, got shape {Z.shape}"
        )
    S = as_generator(rng).normal(size=(rows, Z.shape[0])) / np.sqrt(rows)
    _, sigma, V = np.linalg.svd(S @ Z, full_matrices=False)
    keep = sigma > RANK_RELATIVE * sigma[0]
    if keep.sum() >= rows and Z.shape[1] > rows:
        raise ValueError(
            f"sketch_rows must be at least the number of columns of Z, "
            f"{Z.shape[1]}, or more than its rank, got {rows}"
        )
    # dead and repeated units fall out with the small singular values
    return np.sum((Z @ V[keep].T / sigma[keep]) ** 2, axis=1)
