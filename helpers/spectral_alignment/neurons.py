r"""One ReLU neuron on a fixed sample: capture, gain, gates, local search.

Features ``Phi`` have one sample a row, shape ``(n, m)``, the bias column
included; a neuron is a vector ``theta`` of shape ``(m,)`` and its values on
the sample are :math:`h=\sigma(\Phi\theta)`. What other features ``H`` have
already captured enters by an orthonormal basis ``QH``, shape ``(n, p)``, of
their span (``None`` for no features), what they have not by
:math:`M=(I-\Pi_H)U_K`, shape ``(n, K)``.

Decided on purpose: a neuron inside the span of ``H``, the zero neuron
included, has gain 0; a sample with :math:`(\Phi\theta)_i=0` is off.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import comb
from typing import NamedTuple

import numpy as np
from scipy import sparse
from scipy.linalg import eigvalsh, null_space
from scipy.optimize import linprog, minimize
from scipy.sparse.csgraph import connected_components

from helpers.core.linalg import check_orthonormal, complement
from helpers.core.randomness import Seed, as_generator
from helpers.core.tolerances import (
    CONE_SLACK,
    ORTHONORMAL,
    PARALLEL_ROWS,
    QUASI_NEWTON_GRADIENT,
    RANK_RELATIVE,
)
from helpers.spectral_alignment.spectra import leverage_scores


class RelaxedGain(NamedTuple):
    """What :func:`relaxed_gain` returns."""

    value: float
    direction: np.ndarray
    theta: np.ndarray


@dataclass(frozen=True)
class LocalSearch:
    """What a local method found from its starts.

    Attributes
    ----------
    theta : ndarray, shape (m,)
        The best neuron, scaled so that its values have norm 1 where it is
        not dead.
    gain : float
        Its marginal gain: a lower bound of the maximum, never a certificate.
    gains : ndarray, shape (starts,)
        Where each start ended, in order of the starts.
    """

    theta: np.ndarray
    gain: float
    gains: np.ndarray


def _finite_matrix(x, name: str, rows: int | None = None) -> np.ndarray:
    x = np.asarray(x, dtype=float)
    if x.ndim != 2 or x.shape[0] == 0:
        raise ValueError(
            f"{name} must be a matrix with one sample a row, got {x.shape}"
        )
    if rows is not None and x.shape[0] != rows:
        raise ValueError(f"{name} must have {rows} rows, got {x.shape}")
    if not np.isfinite(x).all():
        raise ValueError(f"{name} must be finite, it holds NaN or infinity")
    return x


def _vector(x, size: int, name: str) -> np.ndarray:
    x = np.asarray(x, dtype=float)
    if x.shape != (size,):
        raise ValueError(f"{name} must have shape ({size},), got {x.shape}")
    if not np.isfinite(x).all():
        raise ValueError(f"{name} must be finite, it holds NaN or infinity")
    return x


def _features(Phi) -> np.ndarray:
    Phi = _finite_matrix(Phi, "Phi")
    if Phi.shape[1] == 0:
        raise ValueError("Phi must have at least one column, got none")
    return Phi


def _pattern(S, n: int) -> np.ndarray:
    S = np.asarray(S)
    if S.shape != (n,) or not np.isin(S, (0, 1)).all():
        raise ValueError(
            f"S must hold one truth value a sample, shape ({n},), got "
            f"{S.dtype} of shape {S.shape}"
        )
    return S.astype(bool)


def check_uncovered(M, QH, n: int) -> tuple[np.ndarray, np.ndarray]:
    r"""Return ``M`` and ``QH`` in float64, or say why they do not fit.

    Parameters
    ----------
    M : array_like, shape (n, K)
        Orthogonal to ``QH``; ``K >= 1``.
    QH : array_like, shape (n, p), or None
        Orthonormal columns; ``None`` or ``p = 0`` for no features.
    n : int
        Number of samples.

    Returns
    -------
    M : ndarray, shape (n, K)
    QH : ndarray, shape (n, p)

    Raises
    ------
    ValueError
        If a shape is wrong, an entry is not finite, ``QH`` is not
        orthonormal, or a column of ``M`` reaches into its span: then ``M``
        is not :math:`(I-\Pi_H)U_K`.

    Notes
    -----
    Source: the spectral-alignment paper, Proposition 4.5.

    Examples
    --------
    >>> M, QH = check_uncovered(np.eye(3)[:, :2], None, 3)
    >>> QH.shape
    (3, 0)
    """
    M = _finite_matrix(M, "M", n)
    if M.shape[1] == 0:
        raise ValueError("M must have at least one column, got none")
    QH = np.zeros((n, 0)) if QH is None else _finite_matrix(QH, "QH", n)
    QH = check_orthonormal(QH, "QH")
    inside = np.abs(QH.T @ M).max(initial=0.0)
    if inside > ORTHONORMAL * max(1.0, np.abs(M).max()):
        raise ValueError(
            "M must be orthogonal to QH, as (I - QH QH.T) U_K is; the largest "
            f"entry of QH.T @ M is {inside:.3g}"
        )
    return M, QH


def reduced_features(Phi) -> tuple[np.ndarray, np.ndarray]:
    r"""Orthonormal features of the same neurons: :math:`G=\Phi T`.

    Parameters
    ----------
    Phi : array_like, shape (n, m)
        Of any rank :math:`r\ge1`.

    Returns
    -------
    G : ndarray, shape (n, r)
        Left singular vectors of ``Phi``.
    T : ndarray, shape (m, r)
        The neuron :math:`\eta` of ``G`` is the neuron :math:`T\eta` of
        ``Phi``; every value vector of a neuron is reached so.

    Raises
    ------
    ValueError
        If ``Phi`` is not a finite matrix, or is zero.

    Notes
    -----
    Source: ours (the reduction behind algorithm A1).

    Examples
    --------
    >>> G, T = reduced_features(np.array([[1.0, 2.0], [2.0, 4.0]]))
    >>> G.shape, T.shape
    ((2, 1), (2, 1))
    """
    Phi = _features(Phi)
    left, sigma, right = np.linalg.svd(Phi, full_matrices=False)
    rank = int(np.count_nonzero(sigma > RANK_RELATIVE * sigma[0]))
    if rank == 0:
        raise ValueError("Phi must not be identically zero")
    T = right[:rank].T / sigma[:rank]
    return np.ascontiguousarray(left[:, :rank]), np.ascontiguousarray(T)


def gating_pattern(Phi, theta) -> np.ndarray:
    r"""Which samples a neuron is active on, :math:`(\Phi\theta)_i>0`.

    Parameters
    ----------
    Phi : array_like, shape (n, m)
    theta : array_like, shape (m,)

    Returns
    -------
    ndarray of bool, shape (n,)

    Raises
    ------
    ValueError
        If shapes disagree or an input is not finite.

    Notes
    -----
    Source: the spectral-alignment paper, section 1.

    Examples
    --------
    >>> gating_pattern([[-1.0, 1.0], [0.0, 1.0], [1.0, 1.0]], [1.0, 0.0])
    array([False, False,  True])
    """
    Phi = _features(Phi)
    return Phi @ _vector(theta, Phi.shape[1], "theta") > 0


def gating_pencil(Phi, S, M, QH=None) -> tuple[np.ndarray, np.ndarray]:
    r"""Numerator and denominator of the gain inside one gating pattern.

    :math:`A=\Phi^{\mathsf T}SMM^{\mathsf T}S\Phi` and
    :math:`B=\Phi^{\mathsf T}S(I-\Pi_H)S\Phi`; on the cone of the pattern the
    gain is :math:`\theta^{\mathsf T}A\theta/\theta^{\mathsf T}B\theta`. With
    ``QH=None`` and :math:`M=U_K` this is the capture :math:`N_K(h)`.

    Parameters
    ----------
    Phi : array_like, shape (n, m)
    S : array_like of bool or 0/1, shape (n,)
    M : array_like, shape (n, K)
    QH : array_like, shape (n, p), optional

    Returns
    -------
    A, B : ndarray, shape (m, m)
        Symmetric, positive semidefinite. ``B`` is singular as soon as the
        pattern turns some neuron into a combination of ``H``; the kernel of
        ``B`` lies in that of ``A``.

    Raises
    ------
    ValueError
        As :func:`check_uncovered`, or if ``S`` is not a pattern.

    Notes
    -----
    :math:`O(n(m+p+K)m)`.

    Source: the spectral-alignment paper, Propositions 4.3 and 4.5.

    Examples
    --------
    >>> A, B = gating_pencil(np.eye(2), [1, 0], np.array([[0.6], [0.8]]))
    >>> A.round(12).tolist(), B.tolist()
    ([[0.36, 0.0], [0.0, 0.0]], [[1.0, 0.0], [0.0, 0.0]])
    """
    Phi = _features(Phi)
    S = _pattern(S, Phi.shape[0])
    M, QH = check_uncovered(M, QH, Phi.shape[0])
    gated = Phi * S[:, None]
    numerator = M.T @ gated
    rest = complement(QH, gated)
    return numerator.T @ numerator, rest.T @ rest


def relaxed_gain(Phi, S, M, QH=None) -> RelaxedGain:
    r"""Largest gain in a pattern when its sign conditions are forgotten.

    :math:`\|M^{\mathsf T}Q\|_2^2` with :math:`Q` an orthonormal basis of
    :math:`\mathrm{col}((I-\Pi_H)S\Phi)`: an upper bound of the gain of every
    neuron with this pattern, and attained if a maximiser satisfies the sign
    conditions (:func:`realizable_direction`).

    Parameters
    ----------
    Phi : array_like, shape (n, m)
    S : array_like of bool or 0/1, shape (n,)
    M : array_like, shape (n, K)
    QH : array_like, shape (n, p), optional

    Returns
    -------
    RelaxedGain
        ``value``; ``direction`` (n,), the maximiser
        :math:`S\Phi\theta`, of unit norm outside the span of ``H``; and one
        ``theta`` (m,) for it. All zero if the pattern offers nothing outside
        the span of ``H``.

    Raises
    ------
    ValueError
        As :func:`gating_pencil`.

    Notes
    -----
    The rank of :math:`(I-\Pi_H)S\Phi` is decided relative to
    :math:`\|S\Phi\|_2`: relative to itself, a pattern that is wholly covered
    would come back as rounding noise with a gain of order one.

    Source: the spectral-alignment paper, Propositions 4.3 and 4.5.

    Examples
    --------
    >>> relaxed_gain(np.eye(2), [1, 1], np.array([[0.6], [0.8]])).value
    1.0
    """
    Phi = _features(Phi)
    S = _pattern(S, Phi.shape[0])
    M, QH = check_uncovered(M, QH, Phi.shape[0])
    gated = Phi * S[:, None]
    Q, lift = _range_outside(gated, QH)
    if Q.shape[1] == 0:
        return RelaxedGain(0.0, np.zeros(S.size), np.zeros(Phi.shape[1]))
    _, cosines, right = np.linalg.svd(M.T @ Q, full_matrices=False)
    theta = lift @ right[0]
    return RelaxedGain(float(cosines[0] ** 2), gated @ theta, theta)


def _range_outside(gated, QH) -> tuple[np.ndarray, np.ndarray]:
    """Basis of the part outside H, and weights that give its vectors."""
    scale = np.linalg.norm(gated, 2)
    left, sigma, right = np.linalg.svd(
        complement(QH, gated), full_matrices=False
    )
    kept = sigma > RANK_RELATIVE * scale
    return left[:, kept], right[kept].T / sigma[kept]


def realizable_direction(Phi, S, v, QH=None) -> np.ndarray | None:
    r"""A neuron with pattern ``S`` that equals ``v``, if there is one.

    Looks for :math:`\theta` with :math:`(2S-I)\Phi\theta\ge0` and
    :math:`S\Phi\theta=\pm v`, or equality outside the span of ``H`` if
    ``QH`` is given. What equality leaves free is a linear programme.

    Parameters
    ----------
    Phi : array_like, shape (n, m)
    S : array_like of bool or 0/1, shape (n,)
    v : array_like, shape (n,)
        Not zero outside the span of ``H``.
    QH : array_like, shape (n, p), optional

    Returns
    -------
    ndarray, shape (m,), or None
        ``None`` if no neuron of this pattern has the direction. The sign
        conditions hold up to 1e-9 of the largest entry.

    Raises
    ------
    ValueError
        If shapes disagree, an input is not finite, or ``v`` is zero.

    Notes
    -----
    If the top singular value of the relaxed problem is multiple, another
    maximiser may be realisable though this one is not.

    Source: the spectral-alignment paper, Remark 4.4.

    Examples
    --------
    >>> Phi = np.array([[-1.0, 1.0], [0.0, 1.0], [1.0, 1.0]])
    >>> theta = realizable_direction(Phi, [0, 0, 1], [0.0, 0.0, -1.0])
    >>> (np.maximum(Phi @ theta, 0) + 0.0).round(9).tolist()
    [0.0, 0.0, 1.0]
    >>> realizable_direction(Phi, [0, 1, 1], [0.0, 1.0, 3.0]) is None
    False
    >>> realizable_direction(Phi, [1, 1, 1], [-1.0, 0.0, 1.0]) is None
    True
    """
    Phi = _features(Phi)
    S, v = _pattern(S, Phi.shape[0]), _vector(v, Phi.shape[0], "v")
    QH = np.zeros((v.size, 0)) if QH is None else check_orthonormal(QH, "QH")
    gated = Phi * S[:, None]
    target = complement(QH, v)
    size = np.linalg.norm(target)
    if size <= RANK_RELATIVE * np.linalg.norm(v):
        raise ValueError("v must not be zero outside the span of H")
    Q, lift = _range_outside(gated, QH)
    if np.linalg.norm(target - Q @ (Q.T @ target)) > CONE_SLACK * size:
        return None
    theta = lift @ (Q.T @ target)
    free = null_space(complement(QH, gated), rcond=RANK_RELATIVE)
    signed = np.where(S, 1.0, -1.0)[:, None] * Phi
    for sign in (1.0, -1.0):
        found = _into_cone(signed, sign * theta, free)
        if found is not None:
            return found
    return None


def _into_cone(signed, theta, free) -> np.ndarray | None:
    """A point of ``theta + span(free)`` on which no row is negative."""
    rows = np.linalg.norm(signed, axis=1)
    signed = signed[rows > 0] / rows[rows > 0, None]
    size = np.linalg.norm(theta)
    theta = theta / size
    if free.shape[1] and (signed @ theta).min() < 0:
        # the largest margin t, capped at 1, among all shifts by ``free``
        answer = linprog(
            np.append(np.zeros(free.shape[1]), -1.0),
            A_ub=np.column_stack([-signed @ free, np.ones(len(signed))]),
            b_ub=signed @ theta,
            bounds=[(None, None)] * free.shape[1] + [(None, 1.0)],
            method="highs",
        )
        if answer.x is None:
            return None
        theta = theta + free @ answer.x[:-1]
    inside = (signed @ theta).min() >= -CONE_SLACK * np.linalg.norm(theta)
    return size * theta if inside else None


def marginal_gain(h, M, QH=None) -> np.ndarray | float:
    r"""What one more feature adds to :math:`N_K`.

    :math:`G_H(h)=N_K([H,h])-N_K(H)=\|M^{\mathsf T}h\|^2/\|(I-\Pi_H)h\|^2`.

    Parameters
    ----------
    h : array_like, shape (n,) or (n, q)
        Features, each one on its own; they need not come from a neuron.
    M : array_like, shape (n, K)
    QH : array_like, shape (n, p), optional

    Returns
    -------
    float or ndarray, shape (q,)
        In :math:`[0,\|M\|_2^2]`. Zero if less than 1e-10 of ``h`` lies
        outside the span of ``H``: then ``h`` adds nothing.

    Raises
    ------
    ValueError
        As :func:`check_uncovered`, or if ``h`` does not fit.

    Notes
    -----
    Source: the spectral-alignment paper, Proposition 4.5.

    Examples
    --------
    Two of the three low frequencies of a path are covered by 1 and x:

    >>> U = np.array([[1.0, -1.0, 1.0], [1, 0, -2], [1, 1, 1]])
    >>> U /= np.linalg.norm(U, axis=0)
    >>> round(marginal_gain([0.0, 0.0, 1.0], U[:, 2:], U[:, :2]), 12)
    1.0
    """
    h = np.asarray(h, dtype=float)
    if h.ndim not in (1, 2) or h.shape[0] == 0:
        raise ValueError(f"h must have shape (n,) or (n, q), got {h.shape}")
    if not np.isfinite(h).all():
        raise ValueError("h must be finite, it holds NaN or infinity")
    M, QH = check_uncovered(M, QH, h.shape[0])
    peak = np.abs(h).max(axis=0)
    h = h / np.where(peak > 0, peak, 1.0)
    rest = complement(QH, h)
    mass, whole = np.sum(rest**2, axis=0), np.sum(h**2, axis=0)
    new = mass > RANK_RELATIVE**2 * whole
    gain = np.sum((M.T @ rest) ** 2, axis=0) / np.where(new, mass, 1.0)
    gain = np.where(new, gain, 0.0)
    return float(gain) if h.ndim == 1 else gain


def marginal_gain_gradient(theta, Phi, M, QH=None) -> np.ndarray:
    r"""Gradient of the gain of :math:`\sigma(\Phi\theta)` by the weights.

    :math:`\Phi^{\mathsf T}S(2MM^{\mathsf T}h-2G(I-\Pi_H)h)/\|(I-\Pi_H)h\|^2`.

    Parameters
    ----------
    theta : array_like, shape (m,)
    Phi : array_like, shape (n, m)
    M : array_like, shape (n, K)
    QH : array_like, shape (n, p), optional

    Returns
    -------
    ndarray, shape (m,)
        Orthogonal to ``theta``: the gain does not depend on the scale. Off
        the arrangement of the samples, where some
        :math:`(\Phi\theta)_i=0`, it is the derivative; on it, the one of the
        side on which these samples are off. Zero where the gain is 0 by
        convention.

    Raises
    ------
    ValueError
        As :func:`check_uncovered`, or if ``theta`` does not fit.

    Notes
    -----
    Source: ours (differentiate Proposition 4.5 inside a pattern).

    Examples
    --------
    >>> marginal_gain_gradient([1.0, 1.0], np.eye(2), [[1.0], [0.0]])
    array([ 0.5, -0.5])
    """
    Phi = _features(Phi)
    theta = _vector(theta, Phi.shape[1], "theta")
    M, QH = check_uncovered(M, QH, Phi.shape[0])
    return _gain_and_gradient(theta, Phi, M, QH)[1]


def _gain_and_gradient(theta, Phi, M, QH) -> tuple[float, np.ndarray]:
    h = np.maximum(Phi @ theta, 0.0)
    rest = h - QH @ (QH.T @ h)
    rest -= QH @ (QH.T @ rest)
    mass = rest @ rest
    if mass <= RANK_RELATIVE**2 * (h @ h):
        return 0.0, np.zeros_like(theta)
    captured = M.T @ rest
    gain = captured @ captured / mass
    slope = 2 * (M @ captured - gain * rest) / mass
    return float(gain), Phi.T @ (slope * (h > 0))


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
    for value, name in ((n, "n"), (rank, "rank")):
        if isinstance(value, bool) or value % 1 != 0 or value < 1:
            raise ValueError(
                f"{name} must be a whole number >= 1, got {value!r}"
            )
    return 2 * sum(comb(int(n) - 1, k) for k in range(int(rank)))


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
    G = _finite_matrix(G, "G")
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


def _starts(starts) -> int:
    if isinstance(starts, bool) or starts % 1 != 0 or starts < 1:
        raise ValueError(f"starts must be a whole number >= 1, got {starts!r}")
    return int(starts)


def _best(G, T, ends, gains) -> LocalSearch:
    best = int(np.argmax(gains))
    eta = ends[best]
    size = np.linalg.norm(np.maximum(G @ eta, 0.0))
    eta = eta / size if size > 0 else eta
    return LocalSearch(T @ eta, float(gains[best]), np.array(gains))


def local_gain_search(Phi, M, QH=None, starts: int = 10, rng: Seed = 0):
    r"""Climb the gain by L-BFGS from random neurons.

    Directions are drawn evenly from the sphere of the whitened features
    (:func:`reduced_features`), in which the search runs.

    Parameters
    ----------
    Phi : array_like, shape (n, m)
        Any rank.
    M : array_like, shape (n, K)
    QH : array_like, shape (n, p), optional
    starts : int >= 1
    rng : int, SeedSequence or numpy.random.Generator

    Returns
    -------
    LocalSearch

    Raises
    ------
    ValueError
        As :func:`check_uncovered`, or if ``starts`` is not positive.

    Notes
    -----
    The gain has many local maxima and kinks on the arrangement: the best of
    50 starts can still be less than half of the maximum.

    Source: ours; the gradient is :func:`marginal_gain_gradient`.

    Examples
    --------
    >>> Phi = np.array([[-1.0, 1.0], [0.0, 1.0], [1.0, 1.0]])
    >>> constant = np.ones((3, 1)) / np.sqrt(3)
    >>> round(local_gain_search(Phi, constant, starts=5).gain, 6)
    1.0
    """
    G, T = reduced_features(Phi)
    M, QH = check_uncovered(M, QH, G.shape[0])
    rng, starts = as_generator(rng), _starts(starts)
    ends, gains = [], []
    for eta in rng.normal(size=(starts, G.shape[1])):
        end = _climb(eta / np.linalg.norm(eta), G, M, QH)
        ends.append(end)
        gains.append(_gain_and_gradient(end, G, M, QH)[0])
    return _best(G, T, ends, gains)


def climb_gain(theta, Phi, M, QH=None) -> np.ndarray:
    r"""Climb the gain by L-BFGS from one given neuron.

    Parameters
    ----------
    theta : array_like, shape (m,)
        Where to start; what is returned has no smaller gain.
    Phi : array_like, shape (n, m)
    M : array_like, shape (n, K)
    QH : array_like, shape (n, p), optional

    Returns
    -------
    ndarray, shape (m,)

    Raises
    ------
    ValueError
        As :func:`marginal_gain_gradient`.

    Notes
    -----
    Source: ours.

    Examples
    --------
    >>> end = climb_gain([1.0, 1.0], np.eye(2), [[1.0], [0.0]])
    >>> round(marginal_gain(np.maximum(end, 0), [[1.0], [0.0]]), 6)
    1.0
    """
    Phi = _features(Phi)
    theta = _vector(theta, Phi.shape[1], "theta")
    M, QH = check_uncovered(M, QH, Phi.shape[0])
    return _climb(theta, Phi, M, QH)


def _climb(eta, G, M, QH) -> np.ndarray:
    def loss(eta):
        gain, gradient = _gain_and_gradient(eta, G, M, QH)
        return -gain, -gradient

    end = minimize(
        loss,
        eta,
        jac=True,
        method="L-BFGS-B",
        options={"gtol": QUASI_NEWTON_GRADIENT, "ftol": 0.0},
    ).x
    return end if -loss(end)[0] >= -loss(eta)[0] else eta


def gating_fixed_point(
    Phi, M, QH=None, starts: int = 10, rng: Seed = 0, steps: int = 100
):
    r"""Iterate: relaxed maximiser of the pattern, then its new pattern.

    Each step takes the better sign of the maximiser of
    :func:`relaxed_gain`; a start ends when the gain no longer grows.

    Parameters
    ----------
    Phi : array_like, shape (n, m)
    M : array_like, shape (n, K)
    QH : array_like, shape (n, p), optional
    starts : int >= 1
    rng : int, SeedSequence or numpy.random.Generator
    steps : int >= 1
        Largest number of steps from a start.

    Returns
    -------
    LocalSearch

    Raises
    ------
    ValueError
        As :func:`local_gain_search`.

    Notes
    -----
    Source: ours (suggested by Proposition 4.3).

    Examples
    --------
    >>> Phi = np.array([[-1.0, 1.0], [0.0, 1.0], [1.0, 1.0]])
    >>> constant = np.ones((3, 1)) / np.sqrt(3)
    >>> round(gating_fixed_point(Phi, constant, starts=5).gain, 6)
    1.0
    """
    G, T = reduced_features(Phi)
    M, QH = check_uncovered(M, QH, G.shape[0])
    rng, ends, gains = as_generator(rng), [], []
    for eta in rng.normal(size=(_starts(starts), G.shape[1])):
        gain = _gain_and_gradient(eta, G, M, QH)[0]
        for _ in range(_starts(steps)):
            relaxed = relaxed_gain(G, G @ eta > 0, M, QH).theta
            signs = [relaxed, -relaxed]
            values = [_gain_and_gradient(x, G, M, QH)[0] for x in signs]
            if max(values) <= gain:
                break
            gain, eta = max(values), signs[int(np.argmax(values))]
        ends.append(eta)
        gains.append(gain)
    return _best(G, T, ends, gains)


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
    L = _finite_matrix(L, "L")
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


def nodal_domains(W, x, rtol: float = RANK_RELATIVE) -> int:
    r"""Number of strong nodal domains of a function on a graph.

    Components of the graph on the samples where ``x`` is positive, and on
    those where it is negative: the supports of :math:`\sigma(\pm x)`.

    Parameters
    ----------
    W : array_like or sparse array, shape (n, n)
        Weights; only whether they are zero matters.
    x : array_like, shape (n,)
    rtol : float >= 0
        Values below this fraction of the largest count as zero.

    Returns
    -------
    int

    Raises
    ------
    ValueError
        If shapes disagree or ``x`` is not finite.

    Notes
    -----
    Source: Davies, Gladwell, Leydold and Stadler, Linear Algebra Appl. 336
    (2001); Remark 4.2 of the spectral-alignment paper.

    Examples
    --------
    >>> path = np.array([[0.0, 1, 0], [1, 0, 1], [0, 1, 0]])
    >>> nodal_domains(path, [1.0, -2.0, 1.0])
    3
    """
    W = W if sparse.issparse(W) else _finite_matrix(W, "W")
    if W.shape[0] != W.shape[1]:
        raise ValueError(f"W must have shape (n, n), got {W.shape}")
    W = sparse.csr_array(W)
    x = _vector(x, W.shape[0], "x")
    W.eliminate_zeros()
    cut = rtol * np.abs(x).max()
    domains = 0
    for side in (x > cut, x < -cut):
        part = np.flatnonzero(side)
        if part.size:
            inside = W[part][:, part]
            domains += connected_components(inside, directed=False)[0]
    return int(domains)
