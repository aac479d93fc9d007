r"""Several graphs on the same samples, each summed up in one record."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy import sparse

from helpers.core.checks import finite_matrix, finite_vector
from helpers.core.tolerances import ROUNDING
from helpers.spectral_alignment.coverage import coverage_sines
from helpers.spectral_alignment.graphs import (
    epsilon_graph,
    graph_laplacian,
    knn_graph,
    neighbor_distances,
    rbf_graph,
)
from helpers.spectral_alignment.spectra import (
    dirichlet_energy,
    laplacian_eigenbasis,
    leverage_scores,
    low_pass_split,
)

GRAPHS = ("10-NN", "mutual", "Gaussian", "radius")


def standard_graph(X, name: str):
    """One of the four graphs of the census.

    Parameters
    ----------
    X : array_like, shape (n, d)
        One sample a row, ``n >= 11``.
    name : {'10-NN', 'mutual', 'Gaussian', 'radius'}
        Ten neighbours either way, or both ways; Gaussian weights whose width
        is the median distance to the 7th neighbour; all within the largest
        distance to a 10th neighbour.

    Returns
    -------
    sparse array or ndarray, shape (n, n)

    Raises
    ------
    ValueError
        If the name is unknown, ``X`` is not a finite matrix with eleven
        rows, or the width or radius is 0 because of copies.

    Notes
    -----
    Source: ours (experiment E1).

    Examples
    --------
    >>> W = standard_graph(np.arange(12.0)[:, None], "radius")
    >>> int(W.sum(axis=0).min())
    10
    """
    if name not in GRAPHS:
        raise ValueError(f"name must be one of {GRAPHS}, got {name!r}")
    if np.ndim(X) == 2 and len(X) < 11:
        raise ValueError(f"X must have at least eleven rows, got {len(X)}")
    if name in ("Gaussian", "radius"):
        scale = (
            float(np.median(neighbor_distances(X, 7)))
            if name == "Gaussian"
            else float(np.max(neighbor_distances(X, 10)))
        )
        if scale == 0:
            raise ValueError(
                f"X must hold fewer copies: the scale for {name!r} is 0"
            )
        return (rbf_graph if name == "Gaussian" else epsilon_graph)(X, scale)
    return knn_graph(X, 10, "mutual" if name == "mutual" else "union")


def leverage_lower_bound(L, following: float) -> np.ndarray:
    r"""How much of a node the low frequencies must hold.

    With :math:`m_i=\mathcal L_{ii}` and
    :math:`v_i=\sum_{j\ne i}\mathcal L_{ij}^2`, the leverage of node ``i`` is
    at least :math:`c^2/(c^2+v_i)` with :math:`c=(\lambda_{K+1}-m_i)_+`, and at least
    :math:`c/\lambda_{K+1}`; this is the larger of the two.

    Parameters
    ----------
    L : array_like or sparse array, shape (n, n)
        Either Laplacian.
    following : float, > 0
        :math:`\lambda_{K+1}`.

    Returns
    -------
    ndarray, shape (n,)
        In [0, 1]; 0 where :math:`m_i\ge\lambda_{K+1}`, 1 for an isolated
        node of :math:`L`.

    Raises
    ------
    ValueError
        If ``L`` is not square and finite or ``following`` is not positive.

    Notes
    -----
    Source: ours: Cantelli's and Markov's inequalities for the spectral measure
    of a node, whose mean is :math:`m_i` and whose variance is :math:`v_i`.
    The second is Lemma 2.1 of the paper at the indicator of the node.

    Examples
    --------
    On the path of three nodes the bound is exact in the middle:

    >>> L = [[1, -1, 0], [-1, 2, -1], [0, -1, 1]]
    >>> leverage_lower_bound(L, 3.0).round(6).tolist()
    [0.8, 0.333333, 0.8]
    """
    if not (np.isfinite(following) and following > 0):
        raise ValueError(f"following must be positive, got {following!r}")
    if not sparse.issparse(L):
        L = np.asarray(L, dtype=float)
    if L.ndim != 2 or L.shape[0] != L.shape[1]:
        raise ValueError(f"L must be square, got shape {L.shape}")
    if not np.isfinite(L.data if sparse.issparse(L) else L).all():
        raise ValueError("L must be finite, it holds NaN or infinity")
    mean = np.asarray(L.diagonal(), dtype=float)
    square = L.multiply(L) if sparse.issparse(L) else L * L
    variance = np.asarray(square.sum(axis=0)).ravel() - mean**2
    below = np.maximum(following - mean, 0.0)
    # a node without edges has no variance, and mean zero
    cantelli = np.divide(
        below**2,
        below**2 + variance,
        out=np.zeros_like(below),
        where=below > 0,
    )
    return np.maximum(cantelli, below / following)


@dataclass(frozen=True)
class GraphSummary:
    r"""What a graph's low frequencies are like.

    Attributes
    ----------
    components, isolated : int
        Connected components, and nodes without an edge.
    last, following : float
        :math:`\lambda_K` and :math:`\lambda_{K+1}`.
    sines : ndarray, shape (K,)
        Sines :math:`\eta_i` of the features against :math:`U_K`, decreasing.
    leverage, least_leverage : ndarray, shape (n,)
        Squared row lengths of :math:`U_K`, and
        :func:`leverage_lower_bound`.
    high : float
        :math:`\|P_K^\perp f\|/\|f\|`.
    smoothness : float
        Lemma 2.1's bound on it, :math:`E(f)/(\sqrt{\lambda_{K+1}}\|f\|)`;
        NaN if :math:`\lambda_{K+1}` is zero.
    """

    components: int
    isolated: int
    last: float
    following: float
    sines: np.ndarray
    leverage: np.ndarray
    least_leverage: np.ndarray
    high: float
    smoothness: float

    @property
    def captured(self) -> float:
        """Captured features :math:`N_K`."""
        return float(np.sum(1 - self.sines**2))

    @property
    def looseness(self) -> float:
        """Lemma 2.1's bound over the truth; NaN where both are zero."""
        exists = self.high > ROUNDING
        return self.smoothness / self.high if exists else np.nan


def summarize_graph(W, kind: str, K: int, f, features) -> GraphSummary:
    r"""Sum up a graph against a target and a set of features.

    Parameters
    ----------
    W : array_like or sparse array, shape (n, n)
    kind : {'combinatorial', 'symmetric'}
        Which Laplacian.
    K : int in 1..n-1
    f : array_like, shape (n,)
        Not zero.
    features : array_like, shape (n, m)

    Returns
    -------
    GraphSummary

    Raises
    ------
    ValueError
        If an argument is out of range, or ``kind`` is ``symmetric`` and a
        node has no edge.

    Notes
    -----
    One dense eigendecomposition.

    Source: ours (experiment E1).

    Examples
    --------
    >>> path = np.array([[0, 1, 0], [1, 0, 1], [0, 1, 0]])
    >>> found = summarize_graph(path, "combinatorial", 2, [1, -2, 1],
    ...                         np.ones((3, 1)))
    >>> round(found.captured, 9), round(found.following, 9), found.high
    (1.0, 3.0, 1.0)
    """
    L = graph_laplacian(W, kind)
    f = finite_vector(f, "f", L.shape[0])
    features = finite_matrix(features, "features", len(f))
    lam, U, info = laplacian_eigenbasis(L, K, if_tied="ignore")
    size = float(np.linalg.norm(f))
    if not (size > 0 and np.isfinite(size)):
        raise ValueError(f"f must be finite and not zero, its norm is {size}")
    degrees = np.asarray(sparse.csr_array(W).sum(axis=0)).ravel()
    energy = dirichlet_energy(L, f)
    return GraphSummary(
        components=info.n_components,
        isolated=int(np.sum(degrees == 0)),
        last=float(lam[-2]),
        following=float(lam[-1]),
        sines=coverage_sines(features, U),
        leverage=leverage_scores(U),
        least_leverage=leverage_lower_bound(L, lam[-1])
        if info.bound_applies
        else np.zeros(len(f)),
        high=float(np.linalg.norm(low_pass_split(U, f)[1])) / size,
        smoothness=float(np.sqrt(energy / lam[-1])) / size
        if info.bound_applies
        else np.nan,
    )
