r"""Which samples a layer can still tell apart, and what that leaves possible.

Samples with identical rows of ``H``, shape ``(n, m)``, form the classes of a
partition :math:`\mathcal P`; :math:`V_{\mathcal P}` are the vectors in
:math:`\mathbb R^n` that are constant on every class. Every neuron of this and
of any later layer lies in :math:`V_{\mathcal P}`.

Decided on purpose: two rows are identical if no entry differs by more than
``tol`` times the largest entry of ``H``. Copies of one row come out of a
matrix product equal up to rounding only, so zero is not a safe tolerance for
computed features. The default is near rounding because the two possible
errors are not alike: splitting copies gives a ceiling that is too high but
still a bound, merging distinct rows gives a false one. Where closeness is not
transitive there is no partition, and an error says so.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components
from scipy.spatial import cKDTree

from helpers.core.checks import whole_number
from helpers.core.linalg import check_orthonormal, complement
from helpers.core.randomness import Seed, as_generator
from helpers.core.tolerances import ROUNDING


class CoverageCeiling(NamedTuple):
    """What :func:`coverage_ceiling` returns."""

    captured: float
    deficit: float
    gap: float
    classes: int


def _features(H) -> np.ndarray:
    H = np.asarray(H, dtype=float)
    if H.ndim != 2 or H.shape[0] == 0:
        raise ValueError(
            f"H must be a matrix with one sample a row, got {H.shape}"
        )
    if not np.isfinite(H).all():
        raise ValueError("H must be finite, it holds NaN or infinity")
    return H


def _in_order(labels) -> np.ndarray:
    """Number classes by their first member."""
    _, first, inverse = np.unique(
        labels, return_index=True, return_inverse=True
    )
    rank = np.empty(first.size, dtype=int)
    rank[np.argsort(first)] = np.arange(first.size)
    return rank[inverse.reshape(-1)]


def sample_partition(H, tol: float = ROUNDING) -> np.ndarray:
    r"""Classes of samples with identical rows.

    Parameters
    ----------
    H : array_like, shape (n, m)
        Features without or with the constant; ``m = 0`` gives one class.
    tol : float, in [0, 1)
        Rows are identical if their largest entrywise difference is at most
        ``tol`` times the largest entry of ``H`` in absolute value.

    Returns
    -------
    ndarray of int, shape (n,)
        Class of each sample, numbered from 0 in order of first appearance.

    Raises
    ------
    ValueError
        If ``H`` is not a finite matrix with a row, ``tol`` is out of range,
        or two rows of a class are not identical to each other but only
        through a third one: then ``tol`` is of the size of the differences
        between samples.

    Notes
    -----
    Outputs of neurons with large weights carry more rounding than the
    default allows for; give ``tol`` there.

    Sorting and a k-d tree on the rows that remain; quadratic only in the
    number of distinct rows that lie within ``tol`` of each other.

    Source: the spectral-alignment paper, Theorem 5.1.

    Examples
    --------
    >>> sample_partition([[2.0], [0.0], [2.0], [1.0]])
    array([0, 1, 0, 2])
    """
    H = _features(H)
    if not 0 <= tol < 1:
        raise ValueError(f"tol must lie in [0, 1), got {tol}")
    if H.shape[1] == 0:
        return np.zeros(H.shape[0], dtype=int)
    rows, inverse = np.unique(H, axis=0, return_inverse=True)
    inverse = inverse.reshape(-1)
    radius = tol * np.abs(H).max()
    if radius == 0 or len(rows) == 1:
        return _in_order(inverse)
    pairs = cKDTree(rows).query_pairs(radius, p=np.inf, output_type="ndarray")
    links = coo_array(
        (np.ones(len(pairs)), pairs.T), shape=(len(rows), len(rows))
    )
    count, merged = connected_components(links, directed=False)
    sizes = np.bincount(merged, minlength=count)
    if len(pairs) != np.sum(sizes * (sizes - 1) // 2):
        raise ValueError(
            f"tol = {tol} does not define classes: some rows are within it "
            "of a third row and not of each other; choose a smaller tol"
        )
    return _in_order(merged[inverse])


def partition_basis(labels) -> np.ndarray:
    r"""Orthonormal basis of :math:`V_{\mathcal P}`.

    The indicators of the classes, each divided by the root of its size.

    Parameters
    ----------
    labels : array_like of int, shape (n,)
        Class of each sample; any integers.

    Returns
    -------
    ndarray, shape (n, q)
        One column a class, classes in increasing order of their label.

    Raises
    ------
    ValueError
        If ``labels`` is empty, not 1-D or not of whole numbers.

    Notes
    -----
    Source: the spectral-alignment paper, Theorem 5.1.

    Examples
    --------
    >>> partition_basis([0, 1, 0, 0, 0])
    array([[0.5, 0. ],
           [0. , 1. ],
           [0.5, 0. ],
           [0.5, 0. ],
           [0.5, 0. ]])
    """
    labels = np.asarray(labels)
    if labels.ndim != 1 or labels.size == 0 or labels.dtype.kind not in "iu":
        raise ValueError(
            "labels must be a nonempty vector of whole numbers, got shape "
            f"{labels.shape} and type {labels.dtype}"
        )
    names, inverse = np.unique(labels, return_inverse=True)
    basis = np.zeros((labels.size, names.size))
    basis[np.arange(labels.size), inverse.reshape(-1)] = 1.0
    return basis / np.sqrt(basis.sum(axis=0))


def coverage_ceiling(H, UK, tol: float = ROUNDING) -> CoverageCeiling:
    r"""Corollary 5.2: what no layer on top of ``H`` can exceed.

    With :math:`C` running over the classes of identical rows, :math:`u_i`
    the rows of :math:`U_K` and :math:`\bar u_C` their mean over a class,

    .. math::

        \begin{gathered}
        N_K(Z)\le N_K(V_{\mathcal P})
        =K-\sum_C\sum_{i\in C}\lVert u_i-\bar u_C\rVert^2,\\
        s_K(Z)\ge\lVert(I-\Pi_{\mathcal P})U_K\rVert_2 .
        \end{gathered}

    Parameters
    ----------
    H : array_like, shape (n, m)
        Features of a layer, or the samples themselves.
    UK : array_like, shape (n, K)
        Orthonormal columns, ``K >= 1``.
    tol : float, in [0, 1)
        As :func:`sample_partition`.

    Returns
    -------
    CoverageCeiling
        ``captured``, the ceiling of :math:`N_K`, in [0, min(K, classes)];
        ``deficit``, ``K`` minus that, computed without a difference;
        ``gap``, the floor of :math:`s_K`; and the number of ``classes``.

    Raises
    ------
    ValueError
        As :func:`sample_partition`, and if ``UK`` is not orthonormal or has
        another number of rows.

    Notes
    -----
    Source: the spectral-alignment paper, Corollary 5.2; the sum of squares
    is ours.

    Examples
    --------
    >>> merged = coverage_ceiling([[1.0], [1.0]], [[1.0], [0.0]])
    >>> round(merged.captured, 12), merged.classes
    (0.5, 1)
    """
    UK = check_orthonormal(UK, "UK")
    labels = sample_partition(H, tol)
    if labels.size != UK.shape[0] or UK.shape[1] == 0:
        raise ValueError(
            f"UK must have shape ({labels.size}, K) with K >= 1, got "
            f"{UK.shape}"
        )
    basis = partition_basis(labels)
    missed = np.linalg.svd(complement(basis, UK), compute_uv=False)
    captured = float(np.sum((basis.T @ UK) ** 2))
    return CoverageCeiling(
        min(captured, float(min(UK.shape[1], basis.shape[1]))),
        float(np.sum(missed**2)),
        float(min(missed[0], 1.0)),
        basis.shape[1],
    )


def _steps(t, labels, tol: float) -> tuple[np.ndarray, np.ndarray]:
    """Sorted projections of the classes, and the gaps between them."""
    q = labels.max() + 1
    place = np.zeros(q)
    place[labels] = t
    order = np.argsort(place)
    gaps = np.diff(place[order])
    if gaps.size and gaps.min() <= tol * np.abs(t).max():
        k = int(gaps.argmin())
        i, j = (int(np.flatnonzero(labels == c)[0]) for c in order[k : k + 2])
        raise ValueError(
            "w must give samples with different rows different values, "
            f"samples {i} and {j} have the same; try separating_direction"
        )
    return place[order], gaps


def separating_direction(
    H, rng: Seed, tries: int = 32, tol: float = ROUNDING
) -> np.ndarray:
    r"""A direction on which distinct rows stay distinct.

    Of ``tries`` random directions, the one whose projections of the distinct
    rows have the largest smallest gap, relative to their range.

    Parameters
    ----------
    H : array_like, shape (n, m)
        ``m >= 1``.
    rng : int, SeedSequence or Generator
    tries : int >= 1
    tol : float, in [0, 1)
        As :func:`sample_partition`.

    Returns
    -------
    ndarray, shape (m,)
        Of norm 1.

    Raises
    ------
    ValueError
        If an argument is out of range, or no direction separates all
        classes by more than ``tol``.

    Notes
    -----
    A direction fails only if it is orthogonal to a difference of two rows;
    with random directions this has probability 0. Among :math:`n` random
    projections the smallest gap is of order :math:`1/n^2` of the range.

    Source: the spectral-alignment paper, Theorem 5.1 (its :math:`w`); the
    choice among several is ours.

    Examples
    --------
    >>> abs(separating_direction([[0.0], [1.0]], 0))
    array([1.])
    """
    labels, H = sample_partition(H, tol), _features(H)
    if H.shape[1] == 0:
        raise ValueError("H must have at least one column")
    tries = whole_number(tries, "tries")
    W = as_generator(rng).normal(size=(H.shape[1], tries))
    W /= np.linalg.norm(W, axis=0)
    if labels.max() == 0:
        return W[:, 0]
    _, first = np.unique(labels, return_index=True)
    T = np.sort(H[first] @ W, axis=0)
    gaps = np.diff(T, axis=0).min(axis=0) / np.maximum(
        T[-1] - T[0], np.finfo(float).tiny
    )
    best = W[:, int(np.argmax(gaps))]
    try:
        _steps(H @ best, labels, tol)
    except ValueError:
        raise ValueError(
            f"H must have rows that one of {tries} directions separates by "
            f"more than tol = {tol}, and none does"
        ) from None
    return best


def staircase_neurons(
    H, w, offset: float = 0.0, tol: float = ROUNDING
) -> np.ndarray:
    r"""Theorem 5.1 (b): ``q`` neurons that span :math:`V_{\mathcal P}`.

    With :math:`t_1<\dots<t_q` the projections on :math:`w` of the distinct
    rows and :math:`g_k=t_k-t_{k-1}`, neuron :math:`k` is
    :math:`\sigma(Hw-b_k)` with :math:`b_k=t_{k-1}+\texttt{offset}\,g_k`;
    :math:`t_0` lies below :math:`t_1` by the mean gap. In the order of the
    projections the outputs form a lower triangular matrix with positive
    diagonal.

    Parameters
    ----------
    H : array_like, shape (n, m)
    w : array_like, shape (m,)
        Must give different rows different values.
    offset : float, in [0, 1)
        Where between two projections a neuron switches on. At 0 the singular
        values are at least :math:`\min_kg_k/4`; the middle, 1/2, costs a
        factor of the order of ``q`` for even spacing.
    tol : float, in [0, 1)
        As :func:`sample_partition`, and for the gaps of the projections,
        relative to the largest of them in absolute value.

    Returns
    -------
    ndarray, shape (m + 1, q)
        One neuron a column, for ``[H, 1]``: biases in the last row.

    Raises
    ------
    ValueError
        If shapes disagree, an input is not finite, an argument is out of
        range, or ``w`` does not separate two distinct rows.

    Notes
    -----
    The outputs are independent but nearly dependent: their condition number
    grows like :math:`n^3` on random samples, and beyond a few hundred samples
    a numerical rank with relative tolerance no longer sees all ``q``.

    Source: the spectral-alignment paper, Theorem 5.1, which asks for
    :math:`b_k` inside the gap; that the lower end is allowed, and better, is
    ours.

    Examples
    --------
    >>> staircase_neurons([[0.0], [2.0], [0.0]], [1.0])
    array([[1., 1.],
           [2., 0.]])
    """
    labels, H = sample_partition(H, tol), _features(H)
    w = np.asarray(w, dtype=float)
    if w.shape != (H.shape[1],) or not np.isfinite(w).all():
        raise ValueError(
            f"w must be finite with shape ({H.shape[1]},), got {w.shape}"
        )
    if not 0 <= offset < 1:
        raise ValueError(f"offset must lie in [0, 1), got {offset}")
    t, gaps = _steps(H @ w, labels, tol)
    mean = (t[-1] - t[0]) / gaps.size if gaps.size else 1.0
    gaps = np.append(mean, gaps)
    biases = t - (1 - offset) * gaps
    biases[1:] = t[:-1] + offset * gaps[1:]
    return np.vstack([np.tile(w[:, None], t.size), 0.0 - biases])
