r"""Which sets of samples one neuron can be on for: count, list, group.

A pattern is a cell of the arrangement of the hyperplanes
:math:`(\Phi\theta)_i=0` in the space of neurons.
"""

from __future__ import annotations

from math import comb

import numpy as np
from scipy.linalg import null_space

from helpers.core.checks import finite_matrix, whole_number
from helpers.core.tolerances import PARALLEL_ROWS, RANK_RELATIVE
from helpers.spectral_alignment.neurons import reduced_features

__all__ = [
    "count_gating_patterns",
    "enumerate_gating_patterns",
    "parallel_classes",
]


def count_gating_patterns(n: int, rank: int) -> int:
    r"""Number of patterns of ``n`` samples in general position.

    :math:`2\sum_{k<r}\binom{n-1}k`, the cells of a central arrangement of
    ``n`` hyperplanes in :math:`\mathbb R^r`, any ``r`` of whose normals are
    independent. Otherwise there are fewer.

    Parameters
    ----------
    n : int >= 1
    rank : int >= 1
        Rank of the features, the bias column included.

    Returns
    -------
    int

    Raises
    ------
    ValueError
        If an argument is not a whole number of at least 1.

    Notes
    -----
    Source: Cover, IEEE Trans. Electronic Computers 14 (1965).

    Examples
    --------
    >>> [count_gating_patterns(n, 3) for n in (4, 6, 10, 15)]
    [14, 32, 92, 212]
    """
    n, rank = whole_number(n, "n"), whole_number(rank, "rank")
    return 2 * sum(comb(n - 1, k) for k in range(rank))


def enumerate_gating_patterns(Phi) -> np.ndarray:
    r"""All patterns that a neuron can have with no sample on its boundary.

    Every cell of the arrangement has a facet, and facets on one hyperplane
    are the cells of the others' arrangement in it: the patterns are found by
    recursion over the rank, and no linear programme is needed.

    Parameters
    ----------
    Phi : array_like, shape (n, m)
        Of rank ``r >= 1``. Duplicated, opposite and zero rows are allowed;
        a zero row is never active.

    Returns
    -------
    ndarray of bool, shape (cells, n)
        In lexicographic order. Patterns of neurons with
        :math:`(\Phi\theta)_i=0` somewhere need not be among them; their
        values are those of every neighbouring cell's linear map.

    Raises
    ------
    ValueError
        If ``Phi`` is zero or not a finite matrix.

    Notes
    -----
    :math:`O(n^{r-1})` patterns of :math:`n` bits, each found about
    :math:`r!` times: for small ranks, and for checks.

    Source: ours; a recursion by deletion and restriction, as in Zaslavsky
    (1975).

    Examples
    --------
    >>> enumerate_gating_patterns([[1.0], [2.0], [-1.0]]).astype(int)
    array([[0, 0, 1],
           [1, 1, 0]])
    """
    G, _ = reduced_features(Phi)
    return _cells(G) > 0


def _cells(G) -> np.ndarray:
    """Sign vectors of the cells, for rows that span their space."""
    first, sign = parallel_classes(G)
    if G.shape[1] == 1 or np.unique(first[sign != 0]).size == 1:
        one = sign.astype(np.int8)
        return np.unique(np.stack([one, -one]), axis=0)
    found = []
    for i in np.unique(first[sign != 0]):
        plane = null_space(G[i][None, :])
        rest = G @ plane
        rest[(first == i) | (sign == 0)] = 0.0
        for cell in _cells(_essential(rest)):
            on = np.where(first == i, sign, 0)
            found += [cell + on, cell - on]
    return np.unique(np.array(found, dtype=np.int8), axis=0)


def _essential(G) -> np.ndarray:
    """The same arrangement in the span of its normals."""
    left, sigma, _ = np.linalg.svd(G, full_matrices=False)
    kept = sigma > RANK_RELATIVE * max(sigma[0], 1.0)
    rows = left[:, kept] * sigma[kept]
    return rows if kept.any() else np.zeros((len(G), 1))


def parallel_classes(G) -> tuple[np.ndarray, np.ndarray]:
    r"""Group the rows that have one hyperplane in common.

    Parameters
    ----------
    G : array_like, shape (n, r)

    Returns
    -------
    first : ndarray of int, shape (n,)
        Smallest index among the rows parallel to this one.
    sign : ndarray of int, shape (n,)
        1 if the row points the same way as that first row, -1 if the
        opposite way, 0 if the row is zero (then it is in no class, and
        ``first`` is its own index).

    Raises
    ------
    ValueError
        If ``G`` is not a finite matrix.

    Notes
    -----
    Rows at an angle below 1e-9 count as parallel, rows below 1e-10 of the
    largest as zero. :math:`O(n^2r)`.

    Source: ours.

    Examples
    --------
    >>> parallel_classes([[1.0, 0], [0, 1], [-2, 0], [0, 0]])
    (array([0, 1, 0, 3]), array([ 1,  1, -1,  0]))
    """
    G = finite_matrix(G, "G")
    size = np.linalg.norm(G, axis=1)
    nonzero = size > RANK_RELATIVE * size.max()
    unit = G / np.where(nonzero, size, 1.0)[:, None]
    first, sign = np.arange(len(G)), np.zeros(len(G), dtype=int)
    for i in np.flatnonzero(nonzero):
        if sign[i]:
            continue
        cosine = unit @ unit[i]
        apart = np.linalg.norm(unit - cosine[:, None] * unit[i], axis=1)
        same = nonzero & (sign == 0) & (apart < PARALLEL_ROWS)
        first[same] = i
        sign[same] = np.where(cosine[same] > 0, 1, -1)
    return first, sign
