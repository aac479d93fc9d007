"""What the set of samples that a neuron is on for allows it to catch."""

from __future__ import annotations

import numpy as np
from scipy import sparse
from scipy.linalg import eigvalsh
from scipy.sparse.csgraph import connected_components

from helpers.core.checks import finite_matrix, finite_vector
from helpers.core.tolerances import RANK_RELATIVE
from helpers.spectral_alignment.spectra import leverage_scores

__all__ = ["active_set_bounds", "dirichlet_eigenvalue", "nodal_domains"]


def _active(active, n: int) -> np.ndarray:
    active = np.asarray(active)
    if active.dtype != bool:
        if active.ndim != 1 or not np.isin(active, np.arange(n)).all():
            raise ValueError(
                f"active must be a mask of {n} samples or indices in "
                f"0..{n - 1}, got {active!r}"
            )
        mask = np.zeros(n, dtype=bool)
        mask[active.astype(int)] = True
        active = mask
    if active.shape != (n,):
        raise ValueError(
            f"active must be a mask of {n} samples, got shape {active.shape}"
        )
    if not active.any():
        raise ValueError("active must hold at least one sample, got none")
    return active


def dirichlet_eigenvalue(L, active) -> float:
    r"""Smallest eigenvalue of the Laplacian on an active set.

    :math:`\lambda_{\min}(\mathcal L_{AA})`: the least energy of a unit
    function that vanishes outside ``A``.

    Parameters
    ----------
    L : array_like or sparse array, shape (n, n)
        Graph Laplacian of either kind.
    active : array_like, mask of shape (n,) or indices
        Not empty.

    Returns
    -------
    float
        At least 0; 0 exactly if ``A`` holds a whole component.

    Raises
    ------
    ValueError
        If ``L`` is not a finite square matrix or ``active`` does not fit.

    Notes
    -----
    Dense, :math:`O(|A|^3)`.

    Source: the spectral-alignment paper, Proposition 4.1.

    Examples
    --------
    >>> path = np.array([[1.0, -1, 0], [-1, 2, -1], [0, -1, 1]])
    >>> dirichlet_eigenvalue(path, [2])
    1.0
    """
    L = L.toarray() if sparse.issparse(L) else L
    L = finite_matrix(L, "L")
    if L.shape[0] != L.shape[1]:
        raise ValueError(f"L must have shape (n, n), got {L.shape}")
    A = _active(active, L.shape[0])
    lowest = eigvalsh(L[np.ix_(A, A)], subset_by_index=(0, 0))[0]
    return max(float(lowest), 0.0)


def active_set_bounds(UK, L, active) -> dict[str, float]:
    r"""What a feature can be that vanishes outside an active set ``A``.

    For :math:`h\ne0` supported on ``A``:
    :math:`N_K(h)\le\|U_K[A,:]\|_2^2\le\min(1,\sum_{i\in A}\ell_i)`,
    :math:`R(h)\ge\lambda_{\min}(\mathcal L_{AA})`, and
    :math:`\lambda_{\min}(\mathcal L_{AA})\le\lambda_{n-|A|+1}`.

    Parameters
    ----------
    UK : array_like, shape (n, K)
        Orthonormal columns.
    L : array_like or sparse array, shape (n, n)
        Graph Laplacian of either kind.
    active : array_like, mask of shape (n,) or indices
        Not empty.

    Returns
    -------
    dict
        ``capture``: :math:`\|U_K[A,:]\|_2^2`; ``leverage``:
        :math:`\min(1,\sum_{i\in A}\ell_i)`; ``energy``:
        :math:`\lambda_{\min}(\mathcal L_{AA})`; ``interlacing``:
        :math:`\lambda_{n-|A|+1}`.

    Raises
    ------
    ValueError
        As :func:`dirichlet_eigenvalue`, or if ``UK`` does not fit.

    Notes
    -----
    Source: the spectral-alignment paper, Proposition 4.1.

    Examples
    --------
    The last node of a path of three (both capture bounds are 5/6):

    >>> path = np.array([[1.0, -1, 0], [-1, 2, -1], [0, -1, 1]])
    >>> U = np.array([[1.0, -1.0], [1, 0], [1, 1]]) / np.sqrt([3, 2])
    >>> bounds = active_set_bounds(U, path, [2])
    >>> [round(bounds[key], 6) for key in ("capture", "leverage")]
    [0.833333, 0.833333]
    >>> [round(bounds[key], 6) for key in ("energy", "interlacing")]
    [1.0, 3.0]
    """
    scores = leverage_scores(UK)
    UK = np.asarray(UK, dtype=float)
    A = _active(active, scores.size)
    full = L.toarray() if sparse.issparse(L) else np.asarray(L, dtype=float)
    if full.shape != (scores.size, scores.size):
        raise ValueError(
            f"L must have shape {(scores.size, scores.size)}, got {full.shape}"
        )
    index = scores.size - int(A.sum())
    energy = dirichlet_eigenvalue(full, A)
    upper = eigvalsh(full, subset_by_index=(index, index))[0]
    return {
        "capture": min(float(np.linalg.norm(UK[A], 2) ** 2), 1.0),
        "leverage": min(float(scores[A].sum()), 1.0),
        "energy": energy,
        "interlacing": max(float(upper), 0.0),
    }


def nodal_domains(
    W, x, strong: bool = True, rtol: float = RANK_RELATIVE
) -> int:
    r"""Number of nodal domains of a function on a graph.

    *Strong* domains are the components of the graph on the samples where
    ``x`` is positive, and on those where it is negative: the pieces of the
    supports of :math:`\sigma(\pm x)`. *Weak* domains are the components on
    the samples where ``x`` is not negative, and on those where it is not
    positive, as far as they hold a sample where it is not zero.

    Parameters
    ----------
    W : array_like or sparse array, shape (n, n)
        Weights; only whether they are zero matters.
    x : array_like, shape (n,)
    strong : bool
        Which of the two.
    rtol : float >= 0
        Values of at most this fraction of the largest count as zero.

    Returns
    -------
    int
        0 for the zero function. For the :math:`k`-th eigenvector of either
        Laplacian, with :math:`k` the first index of an eigenvalue of
        multiplicity :math:`r`: at most :math:`k+r-1` strong ones, and on a
        connected graph at most :math:`k` weak ones.

    Raises
    ------
    ValueError
        If shapes disagree or an input is not finite.

    Notes
    -----
    Source: Davies, Gladwell, Leydold and Stadler, Linear Algebra Appl. 336
    (2001); Remark 4.2 of the spectral-alignment paper.

    Examples
    --------
    >>> path = np.array([[0.0, 1, 0], [1, 0, 1], [0, 1, 0]])
    >>> nodal_domains(path, [1.0, -2.0, 1.0])
    3

    A zero parts strong domains and joins weak ones:

    >>> [nodal_domains(path, [1.0, 0.0, 1.0], kind) for kind in (True, False)]
    [2, 1]
    """
    W = W if sparse.issparse(W) else finite_matrix(W, "W")
    if W.shape[0] != W.shape[1]:
        raise ValueError(f"W must have shape (n, n), got {W.shape}")
    W = sparse.csr_array(W)
    x = finite_vector(x, "x", W.shape[0])
    W.eliminate_zeros()
    cut = rtol * np.abs(x).max()
    domains = 0
    for y in (x, -x):
        part = np.flatnonzero(y > cut if strong else y >= -cut)
        if part.size:
            label = connected_components(W[part][:, part], directed=False)[1]
            domains += np.unique(label[y[part] > cut]).size
    return int(domains)
