r"""Students whose neurons all lean alike: their loss and its equations.

In lifted coordinates, :math:`y = w/\sqrt{1+\lVert w\rVert^2}`, all neurons of
a *perturbed n-copy* student of a unit-orthonormal erf teacher look alike:

.. math:: y_i = A\,v_i + B\!\!\sum_{j\le n,\,j\ne i}\!\!v_j
   + C\sum_{n<m\le k}v_m, \qquad a_i = a .

Four numbers, then, and the number of neurons enters the equations for them as
a parameter that may be any real number.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from helpers.copy_average.networks import Student
from helpers.core.checks import whole_number

__all__ = ["PerturbedCopy", "family_equations", "family_loss"]

_HALF = math.sqrt(0.5)


def checked_widths(k: int, n: float) -> tuple[int, float]:
    """Check the numbers of teacher and of student neurons.

    Parameters
    ----------
    k : int
        Teacher neurons, 1 or more.
    n : float
        Student neurons, real, from 1 to ``k``.

    Returns
    -------
    k : int
    n : float

    Raises
    ------
    ValueError
        If one is out of range.

    Notes
    -----
    Source: ours.

    Examples
    --------
    >>> checked_widths(5, 3)
    (5, 3.0)
    """
    k = whole_number(k, "k")
    if isinstance(n, bool) or not 1 <= n <= k:
        raise ValueError(f"n must be a real number from 1 to k={k}, got {n!r}")
    return k, float(n)


def arcsine(x: float) -> tuple[float, float, float]:
    """Compute the arcsine and its first two derivatives.

    Parameters
    ----------
    x : float
        Between -1 and 1, both excluded.

    Returns
    -------
    value, slope, curvature : float

    Raises
    ------
    ValueError
        If ``x`` is not inside the interval.

    Notes
    -----
    Source: ours.

    Examples
    --------
    >>> [round(value, 6) for value in arcsine(0.5)]
    [0.523599, 1.154701, 0.7698]
    """
    if not -1 < x < 1:
        raise ValueError(f"x must be between -1 and 1, got {x!r}")
    square = 1 - x * x
    slope = 1 / math.sqrt(square)
    return math.asin(x), slope, x * slope / square


@dataclass(frozen=True)
class PerturbedCopy:
    r"""A perturbed n-copy point, or what continues it to real ``n``.

    Parameters
    ----------
    k : int
        Teacher neurons.
    n : float
        Student neurons, real.
    a : float
        Outgoing weight of every neuron.
    alpha, beta, gamma : float
        Coefficients of an incoming weight: on its own teacher neuron, on
        those of the other students, on those that nobody copies.
    loss : float
        Population loss.
    residual : float
        Largest absolute value of the four :func:`family_equations`.
    """

    k: int
    n: float
    a: float
    alpha: float
    beta: float
    gamma: float
    loss: float
    residual: float

    @property
    def norm(self) -> float:
        """Norm of an incoming weight."""
        return math.sqrt(
            self.alpha**2
            + (self.n - 1) * self.beta**2
            + (self.k - self.n) * self.gamma**2
        )

    @property
    def cosine(self) -> float:
        """Cosine between a student neuron and its own teacher neuron."""
        return self.alpha / self.norm

    @property
    def lifted(self) -> tuple[float, float, float, float]:
        """The parameters ``(a, A, B, C)`` in lifted coordinates."""
        scale = 1 / math.sqrt(1 + self.norm**2)
        return (
            self.a,
            scale * self.alpha,
            scale * self.beta,
            scale * self.gamma,
        )

    def student(self, d: int | None = None) -> Student:
        """Write the point in weight space, for whole ``n``.

        Parameters
        ----------
        d : int, optional
            Input dimension, at least ``k``; ``k + 1`` if not given. The
            teacher is the one of :meth:`Teacher.orthonormal
            <helpers.copy_average.networks.Teacher.orthonormal>`.

        Returns
        -------
        Student
            ``W`` of shape (n, d): neuron ``i`` leans on teacher neuron ``i``.

        Raises
        ------
        ValueError
            If ``n`` is not whole or ``d`` is below ``k``.
        """
        d = self.k + 1 if d is None else d
        if self.n != int(self.n):
            raise ValueError(
                f"n must be whole to be a network, this point has n={self.n}"
            )
        if d < self.k:
            raise ValueError(f"d must be at least k={self.k}, got {d}")
        n = int(self.n)
        W = np.zeros((n, d))
        W[:, :n], W[:, n : self.k] = self.beta, self.gamma
        W[np.arange(n), np.arange(n)] = self.alpha
        return Student(W, np.full(n, self.a))


def family_loss(
    a: ArrayLike,
    alpha: ArrayLike,
    beta: ArrayLike,
    gamma: ArrayLike,
    k: int,
    n: ArrayLike,
) -> NDArray:
    r"""Compute the loss of students of the symmetric family.

    With :math:`r^2=\alpha^2+(n-1)\beta^2+(k-n)\gamma^2`, :math:`D=1+r^2` and
    :math:`q=2\alpha\beta+(n-2)\beta^2+(k-n)\gamma^2`,

    .. math::
       L &= \tfrac{2n}\pi\Big\{a^2\arcsin\tfrac{r^2}D
       + (n-1)\,a^2\arcsin\tfrac qD\\
       &\quad - 2a\Big[\arcsin\tfrac\alpha{\sqrt{2D}}
       + (n-1)\arcsin\tfrac\beta{\sqrt{2D}}
       + (k-n)\arcsin\tfrac\gamma{\sqrt{2D}}\Big]\Big\} + \tfrac k3 .

    Parameters
    ----------
    a, alpha, beta, gamma : array_like
        Outgoing weight and the three coefficients of an incoming weight;
        they broadcast.
    k : int
        Teacher neurons, 1 or more.
    n : array_like
        Student neurons, real, from 1 to ``k``.

    Returns
    -------
    ndarray

    Raises
    ------
    ValueError
        If ``k`` or ``n`` is out of range, or a parameter is not finite.

    Notes
    -----
    Source: ours, after the perturbed n-copy solutions of Simsek et al.
    (2023), section 1.

    Examples
    --------
    >>> float(family_loss(1.0, 1.0, 0.0, 0.0, 5, 3).round(6))  # plain copies
    0.666667
    """
    n = np.asarray(n, dtype=float)
    for value in (n.min(), n.max()):
        k, _ = checked_widths(k, float(value))
    a, *weight = np.broadcast_arrays(a, alpha, beta, gamma)
    a, weight = np.asarray(a, dtype=float), np.array(weight, dtype=float)
    if not (np.all(np.isfinite(a)) and np.all(np.isfinite(weight))):
        raise ValueError("a, alpha, beta and gamma must be finite")
    others, rest = n - 1, k - n
    # no other neuron, or no uncopied one: the coefficient is not there
    weight = np.where([others >= 0, others > 0, rest > 0], weight, 0.0)
    alpha, beta, gamma = weight
    r2 = alpha**2 + others * beta**2 + rest * gamma**2
    q = 2 * alpha * beta + (n - 2) * beta**2 + rest * gamma**2
    D = 1 + r2
    own, two, three = np.arcsin(weight / np.sqrt(2 * D))
    student = a**2 * (np.arcsin(r2 / D) + others * np.arcsin(q / D))
    cross = a * (own + others * two + rest * three)
    return 2 * n / math.pi * (student - 2 * cross) + k / 3


def family_equations(
    a: float, A: float, B: float, C: float, k: int, n: float
) -> tuple[NDArray, NDArray, NDArray]:
    r"""Compute the equations of a critical point, and their derivatives.

    With :math:`\phi=\arcsin`, :math:`S=A^2+(n-1)B^2+(k-n)C^2` and
    :math:`Q=2AB+(n-2)B^2+(k-n)C^2`,

    .. math::
       F_a &= a[\phi(S)+(n-1)\phi(Q)] - \phi(\tfrac A{\sqrt2})
       - (n-1)\phi(\tfrac B{\sqrt2}) - (k-n)\phi(\tfrac C{\sqrt2}),\\
       F_A &= a[\phi'(S)A+(n-1)\phi'(Q)B]
       - \tfrac1{\sqrt2}\phi'(\tfrac A{\sqrt2}),\\
       F_B &= a[\phi'(S)B+\phi'(Q)(A+(n-2)B)]
       - \tfrac1{\sqrt2}\phi'(\tfrac B{\sqrt2}),\\
       F_C &= a[\phi'(S)+(n-1)\phi'(Q)]C
       - \tfrac1{\sqrt2}\phi'(\tfrac C{\sqrt2}).

    The gradient of the loss in :math:`(a,A,B,C)` is
    :math:`\frac{4n}\pi(F_a,\,aF_A,\,(n-1)aF_B,\,(k-n)aF_C)`.

    Parameters
    ----------
    a, A, B, C : float
        Outgoing weight and lifted coefficients, with :math:`S<1`.
    k : int
        Teacher neurons.
    n : float
        Student neurons, real, from 1 to ``k``.

    Returns
    -------
    values : ndarray, shape (4,)
        :math:`(F_a,F_A,F_B,F_C)`.
    jacobian : ndarray, shape (4, 4)
        Derivatives in :math:`(a,A,B,C)`, one equation a row.
    in_n : ndarray, shape (4,)
        Derivatives in ``n``.

    Raises
    ------
    ValueError
        If ``k`` or ``n`` is out of range, or the lifted weights are outside
        the unit ball.

    Notes
    -----
    Source: ours.

    Examples
    --------
    >>> A = C = 0.5 ** 0.5 / 2       # two neurons averaged by one
    >>> values, *_ = family_equations(2.0, A, 0.0, C, 2, 1)
    >>> bool(abs(values[[0, 1, 3]]).max() < 1e-15)
    True
    """
    k, n = checked_widths(k, n)
    S = A * A + (n - 1) * B * B + (k - n) * C * C
    Q = 2 * A * B + (n - 2) * B * B + (k - n) * C * C
    if not max(abs(S), abs(Q), A * A / 2, B * B / 2, C * C / 2) < 1:
        raise ValueError(
            "lifted weights must lie inside the unit ball, got "
            f"A={A}, B={B}, C={C} for k={k}, n={n}"
        )
    (f0, f1, f2), (g0, g1, g2) = arcsine(S), arcsine(Q)
    t = np.array([arcsine(_HALF * x) for x in (A, B, C)])
    others, rest, seen = n - 1, k - n, A + (n - 2) * B
    share = np.array([1.0, others, rest])
    sum0, sum1 = f0 + others * g0, f1 + others * g1
    pulls = np.array([f1 * A + others * g1 * B, f1 * B + g1 * seen, sum1 * C])
    values = np.append(a * sum0 - share @ t[:, 0], a * pulls - _HALF * t[:, 1])
    dS = 2 * np.array([A, others * B, rest * C, (B * B - C * C) / 2])
    dQ = 2 * np.array([B, seen, rest * C, (B * B - C * C) / 2])
    slopes = np.empty((4, 5))  # columns a, A, B, C, n
    slopes[:, 0] = sum0, *pulls
    slopes[0, 1:] = a * (f1 * dS + others * g1 * dQ)
    slopes[0, 1:4] -= _HALF * share * t[:, 1]
    slopes[0, 4] += a * g0 - t[1, 0] + t[2, 0]
    slopes[1, 1:] = a * (f2 * A * dS + others * g2 * B * dQ)
    slopes[2, 1:] = a * (f2 * B * dS + g2 * seen * dQ)
    slopes[3, 1:] = a * C * (f2 * dS + others * g2 * dQ)
    direct = [[f1, others * g1, 0], [g1, f1 + (n - 2) * g1, 0], [0, 0, sum1]]
    slopes[1:, 1:4] += a * np.array(direct) - np.diag(t[:, 2]) / 2
    slopes[1:, 4] += a * g1 * np.array([B, B, C])
    return values, slopes[:, :4], slopes[:, 4]
