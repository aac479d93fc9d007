r"""How fast greedy neurons must close the gap: the bounds, and nothing else.

A greedy step gains at least a share ``alpha`` of the largest gain
:math:`G^*`. A lower bound on :math:`G^*` in terms of the deficit turns into a
decay of the deficit, and it takes a norm that says how expensive the low
frequencies are in neurons: :math:`\kappa` in the paper, :math:`\gamma` in our
companion results (:mod:`helpers.spectral_alignment.variation_norms` computes
both).
"""

from __future__ import annotations

import numpy as np

from helpers.core.checks import whole_number
from helpers.core.tolerances import RATE_FLOOR

RATE_CELLS = 2000


def _nonnegative(value, name: str) -> np.ndarray:
    value = np.asarray(value, dtype=float)
    if not (np.isfinite(value) & (value >= 0)).all():
        raise ValueError(f"{name} must be finite and >= 0, got {value}")
    return value


def _positive(value, name: str) -> np.ndarray:
    value = np.asarray(value, dtype=float)
    if not (np.isfinite(value) & (value > 0)).all():
        raise ValueError(f"{name} must be finite and > 0, got {value}")
    return value


def _share(alpha) -> float:
    if not 0 < alpha <= 1:
        raise ValueError(f"alpha must be in (0, 1], got {alpha!r}")
    return float(alpha)


def _inverse_law(t, delta0, rate) -> np.ndarray:
    """``1 / (1 / delta0 + rate t)``, with ``1 / 0`` infinite."""
    t, delta0 = _nonnegative(t, "t"), _nonnegative(delta0, "delta0")
    return delta0 / (1 + delta0 * rate * t)


def single_neuron_bound(gap, kappa, epsilon):
    r"""Gain that some neuron must have:
    :math:`s^2\max(s-\epsilon,0)^2/\kappa^2`.

    Parameters
    ----------
    gap : array_like, in [0, 1]
        Coverage gap :math:`s=s_K(H)`.
    kappa : array_like, > 0
    epsilon : array_like, >= 0
        The span of the low frequencies is
        :math:`(\kappa,\epsilon)`-representable.

    Returns
    -------
    float or ndarray
        Lower bound on :math:`G^*`, broadcast over the arguments.

    Raises
    ------
    ValueError
        If an argument is out of range.

    Notes
    -----
    Source: the spectral-alignment paper, Lemma 5.9, corrected: the paper
    squares :math:`s-\epsilon` whatever its sign, and its bound is wrong for
    :math:`\epsilon>s`.

    Examples
    --------
    >>> float(single_neuron_bound(0.5, 2.0, 0.25))
    0.00390625
    >>> float(single_neuron_bound(0.5, 2.0, 0.75))
    0.0
    """
    gap, epsilon = _nonnegative(gap, "gap"), _nonnegative(epsilon, "epsilon")
    if (gap > 1).any():
        raise ValueError(f"gap must be in [0, 1], got {gap}")
    kappa = _positive(kappa, "kappa")
    return (gap * np.maximum(gap - epsilon, 0) / kappa) ** 2


def greedy_rate_bound(t, delta0, K: int, kappa, alpha: float = 1.0):
    r"""Deficit after ``t`` greedy neurons:
    :math:`(1/\delta_0+\alpha t/(4K^2\kappa^2))^{-1}`.

    Holds as long as the gap is at least :math:`2\epsilon`.

    Parameters
    ----------
    t : array_like, >= 0
        Number of neurons.
    delta0 : array_like, >= 0
        Deficit before the first.
    K : int >= 1
    kappa : array_like, > 0
    alpha : float, in (0, 1]
        Every neuron reaches this share of the largest gain.

    Returns
    -------
    float or ndarray
        Upper bound on :math:`\delta_t`; 0 if ``delta0`` is 0.

    Raises
    ------
    ValueError
        If an argument is out of range.

    Notes
    -----
    For :math:`\epsilon=0` the factor 4 may be dropped: call with
    ``kappa / 2``.

    Source: the spectral-alignment paper, Theorem 5.10.

    Examples
    --------
    >>> float(greedy_rate_bound(8, 1.0, K=1, kappa=1.0))
    0.3333333333333333
    """
    rate = _share(alpha) / (2 * _size(K) * _positive(kappa, "kappa")) ** 2
    return _inverse_law(t, delta0, rate)


def _size(K) -> int:
    K = whole_number(K, "K")
    return K


def greedy_gap_bound(t, K: int, kappa, epsilon, alpha: float = 1.0):
    r"""Squared gap after ``t`` greedy neurons:
    :math:`\max\{4\epsilon^2,4K^2\kappa^2/(\alpha t)\}`.

    Parameters
    ----------
    t : array_like, > 0
    K : int >= 1
    kappa : array_like, > 0
    epsilon : array_like, >= 0
    alpha : float, in (0, 1]

    Returns
    -------
    float or ndarray
        Upper bound on :math:`s_t^2`. Says nothing where it exceeds 1, which
        is so for all :math:`t<4K^2\kappa^2/\alpha`.

    Raises
    ------
    ValueError
        If an argument is out of range.

    Notes
    -----
    Source: the spectral-alignment paper, Theorem 5.10.

    Examples
    --------
    >>> float(greedy_gap_bound(16, K=1, kappa=1.0, epsilon=0.0))
    0.25
    """
    kappa, epsilon = (
        _positive(kappa, "kappa"),
        _nonnegative(epsilon, "epsilon"),
    )
    rate = (2 * _size(K) * kappa) ** 2 / (_share(alpha) * _positive(t, "t"))
    return np.maximum(4 * epsilon**2, rate)


def block_gain_bound(delta, gamma, e=0.0):
    r"""Gain that some neuron must have, from the block norm:
    :math:`\delta\max(\sqrt\delta-e,0)^2/\gamma^2`.

    Parameters
    ----------
    delta : array_like, >= 0
        Deficit of features that contain :math:`H_0`.
    gamma : array_like, > 0
        Block variation norm :math:`\gamma(H_0,e)`, or an upper bound on it.
    e : array_like, >= 0
        Its tolerance, in Frobenius norm.

    Returns
    -------
    float or ndarray
        Lower bound on :math:`G^*`, broadcast over the arguments.

    Raises
    ------
    ValueError
        If an argument is out of range.

    Notes
    -----
    Source: ours (companion result C2).

    Examples
    --------
    >>> float(block_gain_bound(4.0, 8.0))
    0.25
    """
    delta, e = _nonnegative(delta, "delta"), _nonnegative(e, "e")
    gamma = _positive(gamma, "gamma")
    return delta * (np.maximum(np.sqrt(delta) - e, 0) / gamma) ** 2


def block_rate_bound(t, delta0, gamma, alpha: float = 1.0):
    r"""Deficit after ``t`` greedy neurons:
    :math:`(1/\delta_0+\alpha t/\gamma^2)^{-1}`.

    Parameters
    ----------
    t : array_like, >= 0
    delta0 : array_like, >= 0
    gamma : array_like, > 0
        :math:`\gamma(H_0,0)` or an upper bound on it.
    alpha : float, in (0, 1]

    Returns
    -------
    float or ndarray

    Raises
    ------
    ValueError
        If an argument is out of range.

    Notes
    -----
    Source: ours (companion result C2).

    Examples
    --------
    >>> float(block_rate_bound(8, 1.0, gamma=2.0))
    0.3333333333333333
    """
    return _inverse_law(
        t, delta0, _share(alpha) / _positive(gamma, "gamma") ** 2
    )


def adaptive_rate_bound(T: int, delta0: float, e, gamma, alpha: float = 1.0):
    r"""Deficit after 0 to ``T`` greedy neurons, from all pairs at once.

    Every pair :math:`(e,\gamma(H_0,e))` bounds the same step, so that
    :math:`\delta_{t+1}\le\delta_t-g(\delta_t)` with
    :math:`g(x)=\max_e\alpha x(\sqrt x-e)_+^2/\gamma(e)^2`. As
    :math:`x-g(x)` need not increase with :math:`x`, what follows from
    :math:`\delta_t\le b` is only
    :math:`\delta_{t+1}\le\max_{0\le x\le b}(x-g(x))`.

    Parameters
    ----------
    T : int >= 0
    delta0 : float >= 0
    e, gamma : array_like, shape (p,)
        Tolerances and upper bounds on the block variation norm at each.
    alpha : float, in (0, 1]

    Returns
    -------
    ndarray, shape (T + 1,)
        Nonincreasing; the first entry is ``delta0``.

    Raises
    ------
    ValueError
        If an argument is out of range or ``e`` and ``gamma`` differ in
        shape.

    Notes
    -----
    A maximum over grid points may be too small. :math:`g` is nondecreasing,
    so that on a cell :math:`[x_i,x_{i+1}]` no value exceeds
    :math:`x_{i+1}-g(x_i)`: the maximum of these is a rigorous bound, with
    ``RATE_CELLS`` cells a step. :math:`O(Tp)` times that.

    Source: ours (companion result C3).

    Examples
    --------
    With one pair and ``e = 0`` it is a little below the closed form of C2:

    >>> bound = adaptive_rate_bound(4, 1.0, [0.0], [2.0])
    >>> bool(bound[-1] < block_rate_bound(4, 1.0, 2.0)), float(bound[1])
    (True, 0.75)
    """
    T = whole_number(T, "T", 0)
    e, gamma = np.atleast_1d(_nonnegative(e, "e")), _positive(gamma, "gamma")
    gamma = np.atleast_1d(gamma)
    if e.shape != gamma.shape or e.ndim != 1:
        raise ValueError(
            f"e and gamma must have the same shape (p,), got {e.shape} and "
            f"{gamma.shape}"
        )
    alpha = _share(alpha)

    def gain(x):
        return alpha * block_gain_bound(x[:, None], gamma, e).max(axis=1)

    bounds = [float(_nonnegative(delta0, "delta0"))]
    for step in range(T):
        top = bounds[-1]
        if step == 0:
            after = top - gain(np.array([top]))[0]
        else:
            x = np.r_[0, top * np.geomspace(RATE_FLOOR, 1, RATE_CELLS)]
            after = np.max(x[1:] - gain(x[:-1]))
        bounds.append(min(top, max(float(after), 0.0)))
    return np.array(bounds)
