r"""The best single neuron for a teacher with many.

One student neuron faces :math:`k` orthogonal teacher neurons of one norm
:math:`R`, all with outgoing weight one. Under Assumption 3.1 the best
direction has the same cosine :math:`1/\sqrt k` with each of them, so that only
a norm :math:`r` and an outgoing weight :math:`a` are left. For given
:math:`r` the best :math:`a` is a quotient, and one function of one variable
remains, the *aligned loss*.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.integrate import quad
from scipy.optimize import brentq

from helpers.copy_average.interactions import interaction, interaction_grad
from helpers.copy_average.population import Student, Teacher
from helpers.core.activations import Activation, get_activation
from helpers.core.tolerances import ROUNDING

__all__ = [
    "AlignedPoint",
    "NoMinimiserError",
    "aligned_loss",
    "aligned_outgoing",
    "one_neuron_optimum",
    "optimal_loss_erf",
    "optimal_loss_relu",
    "rectifier_limit",
    "relu_second_critical_point",
    "stationary_radii",
]

RECTIFIERS = frozenset({"softplus", "gelu", "silu"})
"""Smooth activations with sigma(r x) / r -> max(x, 0) as r grows."""

_SMALLEST_SCAN, _LARGEST_SCAN, _SCAN_POINTS = 0.02, 8.0, 33
# beyond ten standard deviations lies a mass of 2e-23
_GAUSSIAN_REACH = 10.0


class NoMinimiserError(ValueError):
    """The loss approaches its infimum only as the norm goes to infinity."""


@dataclass(frozen=True)
class AlignedPoint:
    r"""A critical point whose cosines with all teacher neurons are equal.

    Parameters
    ----------
    activation : str
    k : int
        Number of teacher neurons.
    teacher_norm : float
        Their common norm :math:`R`.
    sign : int
        Sign of the common cosine :math:`\pm 1/\sqrt k`.
    r, a : float
        Norm and outgoing weight. For homogeneous activations only the
        product matters, and ``r`` is 1.
    loss : float
    """

    activation: str
    k: int
    teacher_norm: float
    sign: int
    r: float
    a: float
    loss: float

    @property
    def cosine(self) -> float:
        r"""Common cosine with the teacher neurons, :math:`\pm 1/\sqrt k`."""
        return self.sign / math.sqrt(self.k)

    @property
    def w_coefficient(self) -> float:
        r"""The number :math:`c` in :math:`w = c\sum_j v_j`."""
        return self.r * self.cosine / self.teacher_norm

    def student(self, teacher: Teacher) -> Student:
        """Place the neuron in the input space of a teacher.

        Parameters
        ----------
        teacher : Teacher
            With ``k`` orthogonal neurons of norm ``teacher_norm``.

        Returns
        -------
        Student
            One neuron: ``W`` of shape (1, d), ``a`` of shape (1,).

        Raises
        ------
        ValueError
            If the teacher has another number of neurons.
        """
        if teacher.k != self.k:
            raise ValueError(
                f"teacher must have k={self.k} neurons, got {teacher.k}"
            )
        w = self.w_coefficient * teacher.V.sum(axis=0)
        return Student(w[None, :], np.array([self.a]))


def _counts(k: ArrayLike) -> NDArray:
    k = np.asarray(k)
    if k.size == 0 or not np.all((k >= 1) & (k == np.floor(k))):
        raise ValueError(f"k must hold whole numbers >= 1, got {k!r}")
    return k.astype(float)


def _norm(teacher_norm: float) -> float:
    if not 0 < teacher_norm < math.inf:
        raise ValueError(
            f"teacher_norm must be positive and finite, got {teacher_norm!r}"
        )
    return float(teacher_norm)


def optimal_loss_erf(k: ArrayLike, teacher_norm: float = 1.0) -> NDArray:
    r"""Compute the least loss of one erf neuron against ``k``.

    .. math:: L^*(k) = \frac2\pi\Big[k\arcsin\frac{R^2}{1+R^2}
       - k^2\arcsin\frac{R^2}{k(1+R^2)}\Big]

    Parameters
    ----------
    k : array_like of int
        Numbers of orthogonal teacher neurons, 1 or more.
    teacher_norm : float, default 1.0
        Their common norm :math:`R`.

    Returns
    -------
    ndarray
        Of the shape of ``k``; absolute error about ``k`` units of rounding.

    Raises
    ------
    ValueError
        If ``k`` or ``teacher_norm`` is out of range.

    Notes
    -----
    Source: Simsek et al. (2023), Corollary 5.2, for :math:`R = 1`; the
    extension to any norm is ours.

    Examples
    --------
    >>> optimal_loss_erf([1, 2, 5, 50]).round(6).tolist()
    [0.0, 0.023222, 0.072453, 0.750907]
    """
    k, R = _counts(k), _norm(teacher_norm)
    t = R / math.hypot(1, R)
    own = np.arcsin(t**2)
    return 2 / math.pi * k * (own - k * np.arcsin(t**2 / k))


def optimal_loss_relu(k: ArrayLike, teacher_norm: float = 1.0) -> NDArray:
    r"""Compute the least loss of one ReLU neuron against ``k``.

    .. math:: L^*(k) = R^2\Big[\frac k2 + \frac{k(k-1)}{2\pi}
       - 2k^2h(1/\sqrt k)^2\Big],\qquad
       h(u) = \frac{\sqrt{1-u^2} + (\pi-\arccos u)\,u}{2\pi} .

    Parameters
    ----------
    k : array_like of int
        Numbers of orthogonal teacher neurons, 1 or more.
    teacher_norm : float, default 1.0
        Their common norm :math:`R`.

    Returns
    -------
    ndarray
        Of the shape of ``k``.

    Raises
    ------
    ValueError
        If ``k`` or ``teacher_norm`` is out of range.

    Notes
    -----
    Source: Simsek et al. (2023), Corollary G.5.

    Examples
    --------
    >>> optimal_loss_relu([1, 2, 5]).round(6).tolist()
    [0.0, 0.177024, 1.560153]
    """
    k, R = _counts(k), _norm(teacher_norm)
    overlap = interaction(1.0, 1.0, 1 / np.sqrt(k), "relu")
    function_norm = k / 2 + k * (k - 1) / (2 * math.pi)
    return R**2 * (function_norm - 2 * (k * overlap) ** 2)


def _aligned_pair(r, k, activation, teacher_norm, sign):
    r = np.asarray(r, dtype=float)
    if np.any(~(r > 0)):
        raise ValueError(f"r must be positive, got {r!r}")
    if sign not in (1, -1):
        raise ValueError(f"sign must be 1 or -1, got {sign!r}")
    cosine = sign / np.sqrt(_counts(k))
    cross = interaction(r, _norm(teacher_norm), cosine, activation)
    return cross, interaction(r, r, 1.0, activation)


def _teacher_function_norm(k, activation, teacher_norm) -> NDArray:
    k, R = _counts(k), _norm(teacher_norm)
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
    activation, R = get_activation(activation), _norm(teacher_norm)
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
    activation, R = get_activation(activation), _norm(teacher_norm)
    if activation.name not in RECTIFIERS:
        raise ValueError(
            f"activation must be one of {sorted(RECTIFIERS)}, got "
            f"{activation.name}"
        )
    u = 1 / math.sqrt(float(_counts(k)))
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


def one_neuron_optimum(
    k: int,
    activation: str | Activation = "erf",
    teacher_norm: float = 1.0,
) -> AlignedPoint:
    r"""Find the best single neuron for ``k`` orthogonal teacher neurons.

    Parameters
    ----------
    k : int
        Number of teacher neurons, 1 or more.
    activation : str or Activation, default "erf"
        One for which the aligned direction is best: erf, tanh, sigmoid,
        softplus, ReLU, leaky ReLU or the identity; GELU and SiLU where a
        minimiser exists.
    teacher_norm : float, default 1.0
        Common norm :math:`R` of the teacher neurons.

    Returns
    -------
    AlignedPoint
        The point with positive cosine. For homogeneous activations only
        :math:`ar` is determined, and ``r`` is 1.

    Raises
    ------
    NoMinimiserError
        If the aligned loss falls towards the ReLU limit (GELU with
        :math:`k \ge 2`, SiLU with :math:`k \ge 3`, at unit norm).
    ValueError
        If an argument is out of range, or if the activation violates
        Assumption 3.1 (the square).

    Notes
    -----
    Closed forms for erf (Corollary 5.2) and homogeneous activations
    (Corollary G.5 for ReLU); otherwise a scan of the aligned loss, each
    stationary norm refined to rounding.

    Source: Simsek et al. (2023), Theorem 5.1.

    Examples
    --------
    >>> best = one_neuron_optimum(5)
    >>> round(best.r, 6), best.a, round(best.loss, 6)
    (0.333333, 5.0, 0.072453)
    >>> round(one_neuron_optimum(2, "tanh").r, 5)
    0.49395
    """
    activation, R = get_activation(activation), _norm(teacher_norm)
    k = int(_counts(k))
    if activation.name == "square":
        raise ValueError("square violates Assumption 3.1 (i)")
    if activation.name == "erf":
        r = R / math.sqrt(k * (1 + R**2) - R**2)
        loss = float(optimal_loss_erf(k, R))
        return AlignedPoint("erf", k, R, 1, r, float(k), loss)
    if activation.homogeneous:
        return _aligned_point(1.0, k, activation, R, 1)
    radii = stationary_radii(k, activation, R)
    points = [
        _aligned_point(r, k, activation, R, 1)
        for r, kind in radii
        if kind == "minimum"
    ]
    best = min(points, key=lambda point: point.loss, default=None)
    floor = math.inf
    if activation.name in RECTIFIERS:
        floor = rectifier_limit(k, activation, R)
    if best is None or floor < best.loss:
        raise NoMinimiserError(
            f"one {activation.name} neuron has no aligned minimiser for k={k} "
            f"and teacher_norm={R:g}: the loss falls towards {floor:.6g} as "
            "the norm grows"
        )
    return best


def _aligned_point(r, k, activation, R, sign) -> AlignedPoint:
    return AlignedPoint(
        activation.name,
        k,
        R,
        sign,
        float(r),
        float(aligned_outgoing(r, k, activation, R, sign)),
        float(aligned_loss(r, k, activation, R, sign)),
    )


def relu_second_critical_point(
    k: int, teacher_norm: float = 1.0
) -> AlignedPoint:
    r"""Return ReLU's critical point that points away from the teacher.

    All cosines are :math:`-1/\sqrt k`, and yet the outgoing weight is
    positive: :math:`ar = 2kR\,h(-1/\sqrt k)`.

    Parameters
    ----------
    k : int
        Number of teacher neurons, 2 or more (for one neuron the product
        vanishes).
    teacher_norm : float, default 1.0
        Common norm :math:`R` of the teacher neurons.

    Returns
    -------
    AlignedPoint
        With ``r`` = 1 and ``sign`` = -1; a saddle of the loss.

    Raises
    ------
    ValueError
        If an argument is out of range.

    Notes
    -----
    Source: ours; a companion to Theorem 5.1 of Simsek et al. (2023), whose
    uniqueness holds for the constrained problem and not in weight space.

    Examples
    --------
    >>> round(relu_second_critical_point(2).loss, 4)
    1.3136
    """
    k = int(_counts(k))
    if k < 2:
        raise ValueError(f"k must be 2 or more, got {k}")
    relu = get_activation("relu")
    return _aligned_point(1.0, k, relu, _norm(teacher_norm), -1)
