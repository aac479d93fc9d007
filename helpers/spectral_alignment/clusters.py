r"""Clusters that hyperplanes cut off: two neurons make an indicator.

A direction in which one cluster lies beyond all other samples, with a margin,
gives two ramps, one from each side of the margin. Their difference is constant
on the cluster and zero elsewhere. What it costs is the *spread-to-margin
ratio* :math:`\omega`, the way from the near side of the margin to the far end
of the cluster, in margins.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy import sparse
from scipy.optimize import linprog

from helpers.core.linalg import check_orthonormal, complement
from helpers.core.tolerances import ROUNDING


class Margin(NamedTuple):
    r"""How a hyperplane cuts off a cluster.

    The smallest possible ratio
    :math:`\omega=(z_{\max}-a)/(a'-a)\ge1`, infinite if no hyperplane cuts the
    cluster off; the direction, shape ``(d,)``, scaled to margin 1; and
    :math:`a`, :math:`a'=a+1`: every other sample has :math:`z\le a`, the
    cluster has :math:`z\ge a'`.
    """

    omega: float
    w: np.ndarray
    near: float
    far: float


class IndicatorNeurons(NamedTuple):
    r"""Two neurons, columns of ``theta`` of shape ``(d + 1, 2)`` with the bias
    last, and the coefficients ``(1, -1)`` that make the indicator."""

    theta: np.ndarray
    coefficients: np.ndarray


class Representability(NamedTuple):
    r"""A pair for which the low frequencies are
    :math:`(\kappa,\varepsilon)`-representable."""

    kappa: float
    epsilon: float


def _labelled(H, labels) -> tuple[np.ndarray, np.ndarray]:
    H, labels = np.asarray(H, dtype=float), np.asarray(labels)
    if H.ndim != 2 or not H.size or not np.isfinite(H).all():
        raise ValueError(
            f"H must be a finite matrix of shape (n, d), got {H.shape}"
        )
    if labels.shape != (len(H),):
        raise ValueError(
            f"labels must have shape ({len(H)},), got {labels.shape}"
        )
    return H, labels


def spread_to_margin(H, labels, c) -> Margin:
    r"""The hyperplane that cuts off a cluster at the least
    spread-to-margin ratio.

    With the margin scaled to 1, minimise :math:`u-a` over :math:`(w,a,u)`
    such that :math:`a+1\le z_i\le u` on the cluster and :math:`z_i\le a`
    elsewhere, :math:`z=Hw`: a linear programme.

    Parameters
    ----------
    H : array_like, shape (n, d)
        Inputs of the layer, one sample a row.
    labels : array_like, shape (n,)
    c : label
        Which cluster.

    Returns
    -------
    Margin

    Raises
    ------
    ValueError
        If shapes disagree, ``H`` is not finite, or the cluster is empty or
        holds all samples.
    RuntimeError
        If the linear programme ends without an answer.

    Notes
    -----
    Source: the spectral-alignment paper, Example 5.12, which takes any
    direction; the smallest ratio is ours.

    Examples
    --------
    Three points in a row, and the last one alone:

    >>> found = spread_to_margin([[-1.0], [0.0], [1.0]], [0, 0, 1], 1)
    >>> found.omega, found.near, found.w.tolist()
    (1.0, 0.0, [1.0])
    """
    H, labels = _labelled(H, labels)
    inside = labels == c
    if not inside.any() or inside.all():
        raise ValueError(
            f"c must be a label of some samples and not of all, got {c!r}"
        )
    n, d = H.shape
    # variables w, a, u
    rows = np.zeros((n + inside.sum(), d + 2))
    rows[:n, :d] = np.where(inside[:, None], -H, H)
    rows[:n, d] = np.where(inside, 1.0, -1.0)
    rows[n:, :d], rows[n:, d + 1] = H[inside], -1.0
    limits = np.r_[-inside.astype(float), np.zeros(inside.sum())]
    cost = np.r_[np.zeros(d), -1.0, 1.0]
    found = linprog(
        cost, A_ub=rows, b_ub=limits, bounds=(None, None), method="highs"
    )
    if found.status == 2:  # infeasible: no hyperplane
        return Margin(np.inf, np.full(d, np.nan), np.nan, np.nan)
    if found.status != 0:
        raise RuntimeError(f"the linear programme failed: {found.message}")
    return _measured(H @ found.x[:d], found.x[:d], inside)


def _measured(z, w, inside) -> Margin:
    """Ratio and margin recomputed from the direction itself."""
    near, far = z[~inside].max(), z[inside].min()
    omega = (z[inside].max() - near) / (far - near)
    scale = 1 / (far - near)
    return Margin(
        float(omega), w * scale, float(near * scale), float(far * scale)
    )


def cluster_indicator_neurons(H, labels, c) -> IndicatorNeurons:
    r"""Two neurons whose difference is the indicator of a cluster.

    :math:`\mathbb 1_{C}=\sigma(z-a)-\sigma(z-a')` for the direction of
    :func:`spread_to_margin`, scaled to margin 1.

    Parameters
    ----------
    H : array_like, shape (n, d)
    labels : array_like, shape (n,)
    c : label

    Returns
    -------
    IndicatorNeurons

    Raises
    ------
    ValueError
        As :func:`spread_to_margin`, and if no hyperplane cuts the cluster
        off.

    Notes
    -----
    Source: the spectral-alignment paper, Example 5.12.

    Examples
    --------
    >>> H = np.array([[-1.0], [0.0], [2.0], [3.0]])
    >>> theta, coefficients = cluster_indicator_neurons(H, [0, 0, 1, 1], 1)
    >>> ramps = np.maximum(np.c_[H, np.ones(4)] @ theta, 0)
    >>> (ramps @ coefficients).tolist()
    [0.0, 0.0, 1.0, 1.0]
    """
    margin = spread_to_margin(H, labels, c)
    if not np.isfinite(margin.omega):
        raise ValueError(
            f"no hyperplane cuts off cluster c = {c!r} from the other samples"
        )
    theta = np.column_stack(
        [np.r_[margin.w, -margin.near], np.r_[margin.w, -margin.far]]
    )
    return IndicatorNeurons(theta, np.array([1.0, -1.0]))


def indicator_norm_bounds(H, labels, c) -> np.ndarray:
    r"""Three upper bounds on the variation norm of a normalised indicator.

    Parameters
    ----------
    H : array_like, shape (n, d)
    labels : array_like, shape (n,)
    c : label

    Returns
    -------
    ndarray, shape (3,)
        :math:`2\omega`, :math:`2\omega-1` and
        :math:`(\|\sigma(z-a)\|+\|\sigma(z-a')\|)/\sqrt{|C|}`, decreasing;
        infinite if no hyperplane cuts the cluster off.

    Raises
    ------
    ValueError
        As :func:`spread_to_margin`.

    Notes
    -----
    Source: the spectral-alignment paper, Example 5.12, for the first; the
    others are ours.

    Examples
    --------
    >>> H = np.array([[-1.0], [0.0], [1.0]])
    >>> indicator_norm_bounds(H, [0, 0, 1], 1).tolist()
    [2.0, 1.0, 1.0]
    """
    H, labels = _labelled(H, labels)
    margin = spread_to_margin(H, labels, c)
    if not np.isfinite(margin.omega):
        return np.full(3, np.inf)
    z = H @ margin.w
    ramps = [np.maximum(z - side, 0) for side in (margin.near, margin.far)]
    size = np.sqrt(np.sum(labels == c))
    exact = sum(map(np.linalg.norm, ramps)) / size
    return np.array([2 * margin.omega, 2 * margin.omega - 1, exact])


def indicator_basis(labels) -> np.ndarray:
    r"""Normalised cluster indicators
    :math:`\chi_c=\mathbb 1_{C_c}/\sqrt{|C_c|}`.

    Parameters
    ----------
    labels : array_like, shape (n,)

    Returns
    -------
    ndarray, shape (n, K)
        Orthonormal, in the order of the sorted labels.

    Raises
    ------
    ValueError
        If ``labels`` is not a vector with an entry, or holds NaN.

    Notes
    -----
    Source: the spectral-alignment paper, Example 5.12.

    Examples
    --------
    >>> indicator_basis([0, 0, 0, 0, 1]).tolist()[-1]
    [0.0, 1.0]
    """
    labels = np.asarray(labels)
    if labels.ndim != 1 or labels.size == 0:
        raise ValueError(
            f"labels must be a vector with an entry, got shape {labels.shape}"
        )
    if labels.dtype.kind == "f" and np.isnan(labels).any():
        raise ValueError("labels must hold no NaN")
    inside = (labels[:, None] == np.unique(labels)).astype(float)
    return inside / np.sqrt(inside.sum(axis=0))


def cluster_representability(UK, labels, norms) -> Representability:
    r"""A pair :math:`(\kappa,\varepsilon)` for the low frequencies, from
    bounds on the indicators' norms.

    For a unit vector :math:`u` of the span,
    :math:`\Pi_\chi u=\sum_cx_c\chi_c` with :math:`\|x\|\le1`, so that by
    Cauchy and Schwarz :math:`\kappa=\sqrt{\sum_c\|\chi_c\|_{\mathcal A}^2}`
    will do, with :math:`\varepsilon=\|(I-\Pi_\chi)U_K\|_2`.

    Parameters
    ----------
    UK : array_like, shape (n, K)
        Orthonormal columns.
    labels : array_like, shape (n,)
    norms : array_like, shape (number of clusters,)
        Upper bounds on the variation norms, in the order of the sorted
        labels; an infinite one gives an infinite ``kappa``.

    Returns
    -------
    Representability

    Raises
    ------
    ValueError
        If shapes disagree or a norm is not at least 1.

    Notes
    -----
    Source: the spectral-alignment paper, Example 5.12, with
    :math:`\kappa=2\sqrt K\max_c\omega_c`.

    Examples
    --------
    >>> U = indicator_basis([0, 0, 1])
    >>> pair = cluster_representability(U, [0, 0, 1], [1.0, 3.0])
    >>> round(pair.kappa**2, 9), pair.epsilon < 1e-12
    (10.0, True)
    """
    UK, chi = check_orthonormal(UK, "UK"), indicator_basis(labels)
    norms = np.asarray(norms, dtype=float)
    if len(chi) != len(UK):
        raise ValueError(
            f"labels must have shape ({len(UK)},) to match UK, got "
            f"({len(chi)},)"
        )
    if norms.shape != (chi.shape[1],) or not (norms >= 1 - ROUNDING).all():
        raise ValueError(
            f"norms must be {chi.shape[1]} numbers >= 1, one a cluster, got "
            f"{norms}"
        )
    rest = complement(chi, UK)
    return Representability(
        float(np.linalg.norm(norms)), float(np.linalg.norm(rest, 2))
    )


def cluster_frequency_bound(L, labels, following: float) -> float:
    r"""Bound on :math:`\varepsilon`, from the cut:
    :math:`\sqrt{\lambda_{\max}(\chi^{\mathsf T}\mathcal
    L\chi)/\lambda_{K+1}}`.

    Parameters
    ----------
    L : array_like or sparse array, shape (n, n)
        Either Laplacian.
    labels : array_like, shape (n,)
        As many clusters as there are low frequencies.
    following : float, > 0
        :math:`\lambda_{K+1}`.

    Returns
    -------
    float

    Raises
    ------
    ValueError
        If shapes disagree or ``following`` is not positive.

    Notes
    -----
    Lemma 2.1 at the unit vectors of the span of the indicators: subspaces of
    equal dimension have the same sines either way.

    Source: ours, in place of the appeal to Davis and Kahan in Example 5.12.

    Examples
    --------
    >>> L = np.kron(np.eye(2), [[1.0, -1.0], [-1.0, 1.0]])
    >>> cluster_frequency_bound(L, [0, 0, 1, 1], 2.0)
    0.0
    """
    if not (np.isfinite(following) and following > 0):
        raise ValueError(f"following must be positive, got {following!r}")
    chi = indicator_basis(labels)
    L = L if sparse.issparse(L) else np.asarray(L, dtype=float)
    if L.shape != (len(chi), len(chi)):
        raise ValueError(
            f"L must have shape ({len(chi)}, {len(chi)}) to match labels, got "
            f"{L.shape}"
        )
    if not np.isfinite(L.data if sparse.issparse(L) else L).all():
        raise ValueError("L must be finite, it holds NaN or infinity")
    energy = np.linalg.eigvalsh(chi.T @ (L @ chi))[-1]
    return float(np.sqrt(max(energy, 0.0) / following))
