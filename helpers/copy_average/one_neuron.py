r"""The best single neuron for a teacher with many.

One student neuron faces :math:`k` orthogonal teacher neurons of one norm
:math:`R`, all with outgoing weight one. Under Assumption 3.1 the best
direction has the same cosine :math:`1/\sqrt k` with each of them, so that only
a norm :math:`r` and an outgoing weight :math:`a` are left: closed forms for
erf and ReLU, a search along :mod:`helpers.copy_average.aligned` for the rest.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from helpers.copy_average.aligned import (
    RECTIFIERS,
    aligned_loss,
    aligned_outgoing,
    checked_counts,
    checked_norm,
    rectifier_limit,
    stationary_radii,
)
from helpers.copy_average.interactions import interaction
from helpers.copy_average.networks import Student, Teacher
from helpers.core.activations import Activation, get_activation

__all__ = [
    "AlignedPoint",
    "NoMinimiserError",
    "one_neuron_optimum",
    "optimal_loss_erf",
    "optimal_loss_relu",
    "relu_second_critical_point",
]


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
    k, R = checked_counts(k), checked_norm(teacher_norm)
    t = R / math.hypot(1, R)
    own = np.arcsin(t**2)
    return 2 / math.pi * k * (own - k * np.arcsin(t**2 / k))


def optimal_loss_relu(k: ArrayLike, teacher_norm: float = 1.0) -> NDArray:
    r"""Compute the least loss of one ReLU neuron against ``k``.

    .. math::

       L^*(k) &= R^2\Big[\frac k2 + \frac{k(k-1)}{2\pi}
       - 2k^2h(1/\sqrt k)^2\Big], \\
       h(u) &= \frac{\sqrt{1-u^2} + (\pi-\arccos u)\,u}{2\pi} .

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
    k, R = checked_counts(k), checked_norm(teacher_norm)
    overlap = interaction(1.0, 1.0, 1 / np.sqrt(k), "relu")
    function_norm = k / 2 + k * (k - 1) / (2 * math.pi)
    return R**2 * (function_norm - 2 * (k * overlap) ** 2)


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
    activation, R = get_activation(activation), checked_norm(teacher_norm)
    k = int(checked_counts(k))
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
    k = int(checked_counts(k))
    if k < 2:
        raise ValueError(f"k must be 2 or more, got {k}")
    relu = get_activation("relu")
    return _aligned_point(1.0, k, relu, checked_norm(teacher_norm), -1)
