r"""One ReLU neuron on a fixed sample: capture, gain, gates, relaxed bounds.

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

from typing import NamedTuple

import numpy as np
from scipy.linalg import null_space
from scipy.optimize import linprog

from helpers.core.checks import finite_matrix, finite_vector
from helpers.core.linalg import check_orthonormal, complement
from helpers.core.tolerances import CONE_SLACK, ORTHONORMAL, RANK_RELATIVE


class RelaxedGain(NamedTuple):
    """What :func:`relaxed_gain` returns."""

    value: float
    direction: np.ndarray
    theta: np.ndarray


def _features(Phi) -> np.ndarray:
    return finite_matrix(Phi, "Phi", columns=1)


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
    M = finite_matrix(M, "M", n, columns=1)
    QH = np.zeros((n, 0)) if QH is None else finite_matrix(QH, "QH", n)
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
    return Phi @ finite_vector(theta, "theta", Phi.shape[1]) > 0


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
    S, v = _pattern(S, Phi.shape[0]), finite_vector(v, "v", Phi.shape[0])
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
    theta = finite_vector(theta, "theta", Phi.shape[1])
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
