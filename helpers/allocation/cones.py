r"""What a few columns can reach with the values that an activation takes.

A learned neuron adds its column of the readout times a number in the range
of the activation: a cone for ReLU, an open zonotope for tanh, the whole span
for a bijection. A target outside is out of reach for any weights.
"""

from __future__ import annotations

from itertools import combinations

import numpy as np
from scipy.optimize import nnls
from scipy.stats import binom

from helpers.core.checks import check_finite, check_sizes
from helpers.core.tolerances import MATCHED_RELATIVE


def wendel_probability(k: int, d: int) -> float:
    r"""Probability that a generic point lies in the cone of random columns.

    .. math::

       \Pr[t\in\operatorname{cone}(v_1,\dots,v_k)]
       = 1 - 2^{-k}\sum_{i<d}\binom ki
       = \Pr[\mathrm{Bin}(k,\tfrac12)\ge d].

    Parameters
    ----------
    k : int
        Columns, 0 or more, whose law is unchanged by independent flips of
        their signs and which are in general position with :math:`t`.
    d : int
        Dimension, at least 1.

    Returns
    -------
    float

    Raises
    ------
    ValueError
        If a number is not whole or too small.

    Notes
    -----
    Source: ours (2.13 of the reconstruction); the count is Wendel's and
    Cover's.

    Examples
    --------
    >>> [wendel_probability(k, 2) for k in (1, 2, 3, 4)]
    [0.0, 0.25, 0.5, 0.6875]
    """
    check_sizes(d=d)
    if k != 0:
        check_sizes(k=k)
    return float(binom.sf(d - 1, k, 0.5))


def cone_membership(D_S, t) -> np.ndarray:
    r"""Which targets are :math:`D_S r` with :math:`r\ge0`.

    Parameters
    ----------
    D_S : array_like (d, k)
        Columns that span the cone; ``k`` at least 1.
    t : array_like (d, m)
        Targets. The target 0 lies in every cone.

    Returns
    -------
    numpy.ndarray of bool (m,)

    Raises
    ------
    ValueError
        If shapes do not fit, or an entry is not finite.

    Notes
    -----
    Non-negative least squares, one target after the other; a residual of at
    most ``MATCHED_RELATIVE`` of the target counts as zero. Source: ours
    (2.13 of the reconstruction).

    Examples
    --------
    >>> cone_membership(np.eye(2), [[1.0, 1.0], [2.0, -1.0]]).tolist()
    [True, False]
    """
    D_S, t = _columns(D_S, t)
    return np.array(
        [nnls(D_S, b)[1] <= MATCHED_RELATIVE * np.linalg.norm(b) for b in t.T]
    )


def zonotope_membership(D_S, t) -> np.ndarray:
    r"""Which targets are :math:`D_S r` with all :math:`\lvert r_j\rvert<1`.

    Parameters
    ----------
    D_S : array_like (d, k)
        Columns in general position: any ``min(d, k)`` are independent.
    t : array_like (d, m)

    Returns
    -------
    numpy.ndarray of bool (m,)

    Raises
    ------
    ValueError
        If shapes do not fit, or an entry is not finite.

    Notes
    -----
    For :math:`k\ge d` the open zonotope is the set of :math:`t` with
    :math:`\lvert u\cdot t\rvert<\sum_j\lvert u\cdot v_j\rvert` for each
    :math:`u` that is orthogonal to :math:`d-1` of the columns: cost
    :math:`\binom k{d-1}`. For :math:`k<d` the coefficients are unique.
    Source: ours.

    Examples
    --------
    >>> zonotope_membership(np.eye(2), [[0.9, 1.1], [-0.9, 0.0]]).tolist()
    [True, False]
    """
    D_S, t = _columns(D_S, t)
    d, k = D_S.shape
    if k < d:
        r = np.linalg.lstsq(D_S, t, rcond=None)[0]
        gap = np.linalg.norm(D_S @ r - t, axis=0)
        near = gap <= MATCHED_RELATIVE * np.linalg.norm(t, axis=0)
        return near & (np.abs(r) < 1).all(axis=0)
    normals = np.ones((1, 1))
    if d > 1:
        chosen = np.array(list(combinations(range(k), d - 1)))
        faces = D_S.T[chosen]
        normals = np.linalg.svd(faces)[2][:, -1]
    width = np.abs(normals @ D_S).sum(axis=1)
    return (np.abs(normals @ t) < width[:, None]).all(axis=0)


def _columns(D_S, t):
    D_S, t = check_finite(D_S=D_S, t=t)
    if D_S.ndim != 2 or t.ndim != 2 or len(D_S) != len(t) or not D_S.size:
        raise ValueError(
            "D_S must be (d, k) and t (d, m) with d and k at least 1, got "
            f"{D_S.shape} and {t.shape}"
        )
    return D_S, t
