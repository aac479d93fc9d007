r"""Split copies: critical points that are no minima and look harmless.

A copy may be cut in two, with shares that add up to one. For erf the student
stays critical, and its Hessian has no negative eigenvalue; what makes it a
saddle is of third order.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike, NDArray

from helpers.copy_average.configurations import copy_average_point
from helpers.copy_average.networks import Student, Teacher

__all__ = ["split_copy", "split_cubic_coefficient", "split_direction"]


def _sizes(k: int, n: int, ratio: float) -> int:
    """Size of the averaged group of a student with one split copy."""
    if k != int(k) or n != int(n) or not 3 <= n <= k:
        raise ValueError(
            f"n must be a whole number from 3 to k, got n={n} and k={k}"
        )
    if not 0 < ratio < 1:
        raise ValueError(f"ratio must be between 0 and 1, got {ratio}")
    return k - n + 2


def split_copy(
    k: int, n: int, ratio: float, d: int | None = None
) -> tuple[Student, Teacher]:
    r"""Build the best copy-average point of n - 1 neurons, one copy split.

    Neurons 1 and 2 are both :math:`v_1`, with outgoing weights ``ratio`` and
    ``1 - ratio``; neurons 3 to n - 1 are copies, the last is the average.

    Parameters
    ----------
    k, n : int
        Teacher and student neurons, 3 <= n <= k.
    ratio : float
        Share of the first neuron, in (0, 1).
    d : int, optional
        Input dimension; k + 1 if not given.

    Returns
    -------
    student : Student
    teacher : Teacher
        Unit-orthonormal.

    Raises
    ------
    ValueError
        If ``n`` or ``ratio`` is out of range.

    Notes
    -----
    Source: ours; seen as an end of gradient flow.

    Examples
    --------
    >>> student, _ = split_copy(5, 3, 0.25)
    >>> student.a.tolist()
    [0.25, 0.75, 4.0]
    """
    rest = _sizes(k, n, ratio)
    teacher = Teacher.orthonormal(k, d)
    groups = [[j] for j in range(n - 2)] + [list(range(k - rest, k))]
    base = copy_average_point(groups, teacher)
    W = np.vstack([base.W[:1], base.W])
    a = np.concatenate([[ratio, 1 - ratio], base.a[1:]])
    return Student(W, a), teacher


def split_direction(
    x: ArrayLike, ratio: float, n: int, d: int
) -> tuple[NDArray, NDArray]:
    r"""Move the two halves of a split copy apart.

    Parameters
    ----------
    x : array_like, shape (d,)
        How the first neuron moves. The second moves by
        :math:`-x\lambda/(1-\lambda)`, where :math:`\lambda` is ``ratio``, so
        that the sum of the two stays the same to first order.
    ratio : float
    n, d : int
        Shape of the student.

    Returns
    -------
    dW : ndarray, shape (n, d)
    da : ndarray, shape (n,)
        Zeros.

    Notes
    -----
    Source: ours.

    Examples
    --------
    >>> split_direction([0.0, 1.0], 0.5, 2, 2)[0].tolist()
    [[0.0, 1.0], [-0.0, -1.0]]
    """
    dW = np.zeros((n, d))
    dW[0] = x
    dW[1] = -np.asarray(x, dtype=float) * ratio / (1 - ratio)
    return dW, np.zeros(n)


def split_cubic_coefficient(
    k: int, n: int, ratio: float, x: ArrayLike
) -> float:
    r"""Compute the third-order coefficient of the loss along a split.

    Moving the halves apart by :math:`\varepsilon x`, with :math:`x` in the
    span of the averaged teacher neurons, changes the loss by
    :math:`c\,\varepsilon^3 + O(\varepsilon^4)`,

    .. math::

       \begin{aligned}
       c &= -\frac{1}{6\sqrt\pi}\,
       \frac{\lambda(1-2\lambda)}{(1-\lambda)^2}\;
       \mathbb E[R\,(x\cdot z)^3],\\
       \mathbb E[R\,(x\cdot z)^3] &= \frac{1}{2\sqrt\pi}\sum_jx_j^3
       - \sqrt{\tfrac2\pi}\,\frac{\ell}{D^{3/2}}(w\cdot x)^3,
       \end{aligned}

    where :math:`R` is the error of the average of :math:`\ell = k - n + 2`
    teacher neurons, :math:`w` its incoming weight and
    :math:`D = 2\ell/(2\ell - 1)`.

    Parameters
    ----------
    k, n : int
        Teacher and student neurons, 3 <= n <= k.
    ratio : float
        :math:`\lambda`, in (0, 1).
    x : array_like, shape (l,)
        Coordinates along the averaged teacher neurons.

    Returns
    -------
    float
        0 at equal shares.

    Raises
    ------
    ValueError
        If a number is out of range, or ``x`` has another length.

    Notes
    -----
    Source: ours; proved in the chapter on other endings.

    Examples
    --------
    >>> round(split_cubic_coefficient(4, 3, 0.25, [2.0, -1.0, -1.0]), 6)
    -0.035368
    """
    size, x = _sizes(k, n, ratio), np.asarray(x, dtype=float)
    if x.shape != (size,):
        raise ValueError(
            f"x must hold the {size} coordinates along the averaged neurons, "
            f"got shape {x.shape}"
        )
    D = 2 * size / (2 * size - 1)
    along = x.sum() / math.sqrt(size * (2 * size - 1))
    third = (x**3).sum() / (2 * math.sqrt(math.pi))
    third -= math.sqrt(2 / math.pi) * size / D**1.5 * along**3
    shares = ratio * (1 - 2 * ratio) / (1 - ratio) ** 2
    return float(-shares * third / (6 * math.sqrt(math.pi)))
