r"""The loss of one neuron that points along the average of its teacher.

The teacher has :math:`k` orthogonal neurons of one norm :math:`R`, all with
outgoing weight one; the student neuron has the same cosine
:math:`\pm1/\sqrt k` with each of them. For a given norm :math:`r` the best
outgoing weight is a quotient, and one function of one variable remains, the
*aligned loss*: here are its values, its stationary points, and its limit for
large norms.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.integrate import quad
from scipy.optimize import brentq

from helpers.copy_average.interactions import interaction, interaction_grad
from helpers.core.activations import Activation, get_activation
from helpers.core.tolerances import ROUNDING

__all__ = [
    "aligned_loss",
    "aligned_outgoing",
    "checked_counts",
    "checked_norm",
    "rectifier_limit",
    "stationary_radii",
]

RECTIFIERS = frozenset({"softplus", "gelu", "silu"})
"""Smooth activations with sigma(r x) / r -> max(x, 0) as r grows."""

_SMALLEST_SCAN, _LARGEST_SCAN, _SCAN_POINTS = 0.02, 8.0, 33
# beyond ten standard deviations lies a mass of 2e-23
_GAUSSIAN_REACH = 10.0


def checked_counts(k: ArrayLike) -> NDArray:
    """Check numbers of teacher neurons.

    Parameters
    ----------
    k : array_like of int
        Whole numbers, 1 or more.

    Returns
    -------
    ndarray
        The same numbers as floats.

    Raises
    ------
    ValueError
        If ``k`` is empty or holds anything else.

    Notes
    -----
    Source: ours.

    Examples
    --------
    >>> checked_counts([1, 50]).tolist()
    [1.0, 50.0]
    """
    k = np.asarray(k)
    if k.size == 0 or not np.all((k >= 1) & (k == np.floor(k))):
        raise ValueError(f"k must hold whole numbers >= 1, got {k!r}")
    return k.astype(float)


def checked_norm(teacher_norm: float) -> float:
    """Check the common norm of the teacher neurons.

    Parameters
    ----------
    teacher_norm : float
        Positive and finite.

    Returns
    -------
    float

    Raises
    ------
    ValueError
        If ``teacher_norm`` is anything else.

    Notes
    -----
    Source: ours.

    Examples
    --------
    >>> checked_norm(2)
    2.0
    """
    if not 0 < teacher_norm < math.inf:
        raise ValueError(
            f"teacher_norm must be positive and finite, got {teacher_norm!r}"
        )
    return float(teacher_norm)


def _aligned_pair(r, k, activation, teacher_norm, sign):
    r = np.asarray(r, dtype=float)
    if np.any(~(r > 0)):
        raise ValueError(f"r must be positive, got {r!r}")
    if sign not in (1, -1):
        raise ValueError(f"sign must be 1 or -1, got {sign!r}")
    cosine = sign / np.sqrt(checked_counts(k))
    cross = interaction(r, checked_norm(teacher_norm), cosine, activation)
    return cross, interaction(r, r, 1.0, activation)


def _teacher_function_norm(k, activation, teacher_norm) -> NDArray:
    k, R = checked_counts(k), checked_norm(teacher_norm)
    own, other = interaction(R, R, [1.0, 0.0], activation)
    return k * own + k * (k - 1) * other


def aligned_outgoing(
    r: ArrayLike,
    k: int,
    activation: str | Activation = "erf",
    teacher_norm: float = 1.0,
    sign: int = 1,
) -> NDArray:
    r"""Compute the best outgoing weight of an aligned neuron of norm ``r``.

    .. math:: a(r) = k\,g(r, R, \pm 1/\sqrt k)\,/\,g(r, r, 1)

    Parameters
    ----------
    r : array_like
        Norms, positive.
    k : int
        Number of teacher neurons.
    activation : str or Activation, default "erf"
    teacher_norm : float, default 1.0
        Their common norm :math:`R`.
    sign : {1, -1}
        Sign of the common cosine.

    Returns
    -------
    ndarray
        Of the shape of ``r``.

    Raises
    ------
    ValueError
        If an argument is out of range.

    Notes
    -----
    Source: Simsek et al. (2023), Theorem 5.1.

    Examples
    --------
    >>> round(float(aligned_outgoing(1 / 3, 5)), 12)
    5.0
    """
    cross, own = _aligned_pair(r, k, activation, teacher_norm, sign)
    return k * cross / own


def aligned_loss(
    r: ArrayLike,
    k: int,
    activation: str | Activation = "erf",
    teacher_norm: float = 1.0,
    sign: int = 1,
) -> NDArray:
    r"""Compute the loss of the best aligned neuron of norm ``r``.

    .. math:: L(r) = C - \frac{k^2 g(r, R, \pm 1/\sqrt k)^2}{g(r, r, 1)}

    Parameters
    ----------
    r, k, activation, teacher_norm, sign
        As in :func:`aligned_outgoing`.

    Returns
    -------
    ndarray
        Of the shape of ``r``.

    Raises
    ------
    ValueError
        If an argument is out of range.

    Notes
    -----
    Source: Simsek et al. (2023), Theorem 5.1.

    Examples
    --------
    >>> round(float(aligned_loss(1 / 3, 5)), 6)
    0.072453
    """
    cross, own = _aligned_pair(r, k, activation, teacher_norm, sign)
    total = _teacher_function_norm(k, activation, teacher_norm)
    return total - (k * cross) ** 2 / own


def _gain_slope(r, k, activation, teacher_norm, sign) -> NDArray:
    """Derivative of log(k^2 g(r, R, u)^2 / g(r, r, 1)) in log(r)."""
    r = np.asarray(r, dtype=float)
    cosine = sign / math.sqrt(k)
    cross, own = _aligned_pair(r, k, activation, teacher_norm, sign)
    pull = interaction_grad(r, teacher_norm, cosine, activation)[0]
    push = 2 * interaction_grad(r, r, 1.0, activation)[0]
    return r * (2 * pull / cross - push / own)


def stationary_radii(
    k: int,
    activation: str | Activation = "erf",
    teacher_norm: float = 1.0,
    sign: int = 1,
    r_range: tuple[float, float] | None = None,
    points: int = _SCAN_POINTS,
) -> list[tuple[float, str]]:
    r"""Find the norms at which the aligned loss is stationary.

    Scans the derivative of the aligned loss on a logarithmic grid and refines
    every change of sign. Stationary points closer to each other than the
    grid, and those outside the range, are missed.

    Parameters
    ----------
    k : int
        Number of teacher neurons.
    activation : str or Activation, default "erf"
        Not a homogeneous one, for which every norm is stationary.
    teacher_norm : float, default 1.0
        The teacher's norm :math:`R`.
    sign : {1, -1}
        Sign of the common cosine.
    r_range : (float, float), optional
        Norms to scan; by default from :math:`R/(50\sqrt k)` to
        :math:`8\max(1, R)`.
    points : int
        Size of the grid.

    Returns
    -------
    list of (float, str)
        Norm, and ``"minimum"`` or ``"maximum"`` of the aligned loss.

    Raises
    ------
    ValueError
        If an argument is out of range or the activation is homogeneous.

    Notes
    -----
    Source: ours; the scan behind the uniqueness part of Theorem 5.1 of
    Simsek et al. (2023).

    Examples
    --------
    >>> [(round(r, 4), kind) for r, kind in stationary_radii(5)]
    [(0.3333, 'minimum')]
    """
    activation, R = get_activation(activation), checked_norm(teacher_norm)
    if activation.homogeneous:
        raise ValueError(
            f"{activation.name} is homogeneous: its loss does not depend on "
            "the norm alone"
        )
    low, high = r_range or (
        _SMALLEST_SCAN * R / math.sqrt(k),
        _LARGEST_SCAN * max(1.0, R),
    )
    grid = np.geomspace(low, high, points)
    slope = _gain_slope(grid, k, activation, R, sign)
    found = []
    for i in np.flatnonzero(np.sign(slope[:-1]) != np.sign(slope[1:])):
        root = brentq(
            _gain_slope,
            grid[i],
            grid[i + 1],
            args=(k, activation, R, sign),
            xtol=ROUNDING,
        )
        found.append((root, "minimum" if slope[i] > 0 else "maximum"))
    return found


def rectifier_limit(
    k: int, activation: str | Activation, teacher_norm: float = 1.0
) -> float:
    r"""Compute the loss of one ReLU neuron against a smooth teacher.

    It is what :func:`aligned_loss` tends to as the norm grows, for the
    activations with :math:`\sigma(rx)/r \to \max(x, 0)`: softplus, GELU
    and SiLU.

    .. math:: L_\infty = C - 2k^2\,
       \mathbb E[\max(X, 0)\,\sigma(RY)]^2

    Parameters
    ----------
    k : int
        Number of teacher neurons.
    activation : str or Activation
        ``softplus``, ``gelu`` or ``silu``: the teacher's.
    teacher_norm : float, default 1.0
        The teacher's norm :math:`R`.

    Returns
    -------
    float

    Raises
    ------
    ValueError
        If the activation does not tend to ReLU.

    Notes
    -----
    The inner expectation over :math:`X` given :math:`Y = y` is
    :math:`uy\,\Phi(uy/s) + s\,\phi(uy/s)` with
    :math:`s = \sqrt{1-u^2}`; what is left to integrate is smooth.

    Source: ours.

    Examples
    --------
    >>> round(rectifier_limit(2, "gelu"), 6)
    0.12161
    """
    activation, R = get_activation(activation), checked_norm(teacher_norm)
    if activation.name not in RECTIFIERS:
        raise ValueError(
            f"activation must be one of {sorted(RECTIFIERS)}, got "
            f"{activation.name}"
        )
    u = 1 / math.sqrt(float(checked_counts(k)))
    total = float(_teacher_function_norm(k, activation, R))
    s = math.sqrt((1 - u) * (1 + u))

    def integrand(y: float) -> float:
        density = math.exp(-(y**2) / 2) / math.sqrt(2 * math.pi)
        return density * _rectified_mean(u * y, s) * float(activation(R * y))

    # for k = 1 the integrand has a corner at zero
    overlap = sum(
        quad(integrand, *half, epsabs=ROUNDING, epsrel=ROUNDING)[0]
        for half in ((-_GAUSSIAN_REACH, 0.0), (0.0, _GAUSSIAN_REACH))
    )
    return total - 2 * (k * overlap) ** 2


def _rectified_mean(mean: float, deviation: float) -> float:
    """Mean of max(X, 0) for X Gaussian with this mean and deviation."""
    if deviation == 0:
        return max(mean, 0.0)
    x = mean / deviation
    density = math.exp(-(x**2) / 2) / math.sqrt(2 * math.pi)
    # x * Phi(x) is GELU
    return deviation * (float(get_activation("gelu")(x)) + density)
