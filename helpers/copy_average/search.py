r"""Searches for critical points of the population loss.

Two searches that answer different questions. *Descent* goes downhill from
random starts and finds minima. *Root finding* solves
:math:`\nabla L = 0` from random starts without asking whether the loss falls:
it finds saddles and maxima as readily as minima, and is the one that can
refute a statement about *all* critical points. Both end with the same
regularised Newton iteration. Neither is gradient flow: which critical point
a start leads to says nothing about the basins of training.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.optimize import minimize

from helpers.copy_average.networks import Student, Teacher, pack, unpack
from helpers.copy_average.objective import Objective
from helpers.copy_average.quadrature import OutOfReachError
from helpers.core.activations import Activation, get_activation
from helpers.core.randomness import Seed, as_generator
from helpers.core.tolerances import (
    CRITICAL_GRADIENT,
    NEWTON_GRADIENT,
    QUASI_NEWTON_GRADIENT,
    STALLED_DAMPING,
)

__all__ = [
    "CriticalPoints",
    "descend",
    "find_critical_points",
    "newton_polish",
]

_NEWTON_STEPS = 100

_RELAX, _TIGHTEN = 0.25, 4.0


@dataclass(frozen=True, eq=False)
class CriticalPoints:
    r"""Where a multi-start search ended, one entry a start.

    Parameters
    ----------
    student : Student
        End points, ``W`` (S, n, d) and ``a`` (S, n).
    loss : ndarray, shape (S,)
    gradient : ndarray, shape (S,)
        Largest absolute entry of the gradient.
    smallest_eigenvalue : ndarray, shape (S,)
        Of the Hessian: negative at saddles, zero up to rounding where a
        symmetry leaves a direction free.
    """

    student: Student
    loss: NDArray
    gradient: NDArray
    smallest_eigenvalue: NDArray

    @property
    def critical(self) -> NDArray:
        """Whether the gradient vanishes to working accuracy, shape (S,)."""
        return self.gradient <= CRITICAL_GRADIENT


class _Problem(Objective):
    """The gradient as a system of equations in the packed parameters.

    With ``deflate`` the equations of each incoming weight are divided by the
    neuron's outgoing weight, without which every neuron with ``a = 0`` that
    does not correlate with the residual would be a solution.
    """

    deflate = False

    def equations(self, theta: NDArray) -> NDArray:
        return self._divisor(theta) * self.loss_and_gradient(theta)[1]

    def jacobian(self, theta: NDArray) -> NDArray:
        jacobian = self._divisor(theta)[:, None] * self.hessian(theta)
        if not self.deflate:
            return jacobian
        width = theta.size // self.n
        quotient = self.equations(theta) / np.repeat(
            theta[width - 1 :: width], width
        )
        for i in range(self.n):
            rows = slice(i * width, (i + 1) * width - 1)
            jacobian[rows, (i + 1) * width - 1] -= quotient[rows]
        return jacobian

    def _divisor(self, theta: NDArray) -> NDArray:
        _, a = unpack(theta, self.n)
        shape = (self.n, theta.size // self.n - 1)
        a = a if self.deflate and np.all(a != 0) else np.ones(self.n)
        return pack(np.broadcast_to(1 / a[:, None], shape), np.ones(self.n))


def _solve(problem: _Problem, theta: NDArray) -> NDArray:
    """Levenberg-Marquardt on the equations of a problem."""
    residual, damping = problem.equations(theta), 1.0
    for _ in range(_NEWTON_STEPS):
        if np.abs(residual).max() <= NEWTON_GRADIENT:
            break
        left, values, right = np.linalg.svd(problem.jacobian(theta))
        along = left.T @ residual
        while damping < STALLED_DAMPING:
            # scaled by the residual: Newton's rate near a solution
            floor = damping * (residual @ residual)
            step = right.T @ (along * values / (values**2 + floor))
            trial = problem.equations(theta - step)
            if trial @ trial < residual @ residual:
                break
            damping *= _TIGHTEN
        else:
            break
        theta, residual = theta - step, trial
        damping *= _RELAX
    return theta


def descend(objective: Objective, theta: NDArray) -> NDArray:
    """Go downhill by L-BFGS from a packed start.

    Parameters
    ----------
    objective : Objective
    theta : ndarray, shape (P,)

    Returns
    -------
    ndarray, shape (P,)
        Where the gradient fell below 1e-8 or the method stalled, which on
        ill-conditioned losses it does between 1e-8 and 1e-6.

    Notes
    -----
    Source: ours; SciPy's L-BFGS-B without bounds.

    Examples
    --------
    >>> objective = Objective(Teacher.orthonormal(1, 1), 1)
    >>> descend(objective, np.array([0.9, 1.2])).round(4).tolist()
    [1.0, 1.0]
    """
    return minimize(
        objective.loss_and_gradient,
        theta,
        jac=True,
        method="L-BFGS-B",
        options={"gtol": QUASI_NEWTON_GRADIENT, "ftol": 0, "maxiter": 2000},
    ).x


def _search(problem: _Problem, start: NDArray, method: str) -> tuple:
    """End point, loss, largest gradient entry and lowest eigenvalue."""
    theta = start
    try:
        if method == "descent":
            theta = descend(problem, theta)
        problem.deflate = method == "root"
        theta = _solve(problem, theta)
        problem.deflate = False
        loss, gradient = problem.loss_and_gradient(theta)
        lowest = np.linalg.eigvalsh(problem.hessian(theta))[0]
    except OutOfReachError:
        return start, np.nan, np.inf, np.nan
    finally:
        problem.deflate = False
    return theta, loss, np.abs(gradient).max(), lowest


def newton_polish(
    W: ArrayLike,
    a: ArrayLike,
    teacher: Teacher,
    activation: str | Activation = "erf",
) -> tuple[NDArray, NDArray, float]:
    r"""Move a nearly critical student onto the critical point.

    Regularised Newton steps on :math:`\nabla L = 0`, each of which lowers
    :math:`\lVert\nabla L\rVert`; saddles are kept. Directions that a symmetry
    leaves free are not moved along.

    Parameters
    ----------
    W : array_like, shape (n, d)
    a : array_like, shape (n,)
    teacher : Teacher
    activation : str or Activation, default "erf"

    Returns
    -------
    W : ndarray, shape (n, d)
    a : ndarray, shape (n,)
    gradient : float
        Largest absolute entry of the gradient at the end. It may be large:
        far from critical points the iteration can stall.

    Raises
    ------
    ValueError
        If a weight is not finite, or the student is a batch or does not fit
        the teacher.

    Notes
    -----
    A gradient of :math:`10^{-8}` alone leaves a parameter error of
    :math:`10^{-8}/\lambda_{\min}`, and for one erf neuron
    :math:`\lambda_{\min}` shrinks like :math:`k^{-3}`.

    Source: ours, with textbook Levenberg-Marquardt damping.

    Examples
    --------
    >>> teacher = Teacher.orthonormal(2)
    >>> start = [[0.4, 0.4, 0.01]], [1.9]
    >>> W, a, gradient = newton_polish(*start, teacher)
    >>> W.round(6).tolist(), a.round(6).tolist()
    ([[0.408248, 0.408248, 0.0]], [2.0])
    """
    activation = get_activation(activation)
    start = Student(W, a)
    if start.W.shape != (start.a.size, teacher.d):
        raise ValueError(
            f"W must have shape (n, {teacher.d}) and a shape (n,), got "
            f"{start.W.shape} and {start.a.shape}"
        )
    a = start.a
    problem = _Problem(teacher, a.size, activation)
    theta = _solve(problem, pack(start.W, a))
    gradient = problem.loss_and_gradient(theta)[1]
    return *unpack(theta, a.size), float(np.abs(gradient).max())


def find_critical_points(
    teacher: Teacher,
    activation: str | Activation = "erf",
    *,
    rng: Seed,
    starts: int = 16,
    n: int = 1,
    method: str = "descent",
    scale: float = 1.0,
) -> CriticalPoints:
    r"""Search for critical points from random starts.

    Parameters
    ----------
    teacher : Teacher
    activation : str or Activation, default "erf"
    rng : numpy.random.Generator or int
        Generator, or seed, of the starts.
    starts : int, default 16
        Number of starts, 1 or more.
    n : int, default 1
        Number of student neurons.
    method : {"descent", "root"}
        ``"descent"``: L-BFGS, then Newton. ``"root"``: Newton on the
        gradient alone, which ends at saddles too; each neuron's equations
        are divided by its outgoing weight, so that neurons with ``a = 0``
        are no solutions.
    scale : float, default 1.0
        Starts have Gaussian entries: incoming weights of standard deviation
        ``scale / sqrt(d)``, so that norms are about ``scale``, and outgoing
        weights of standard deviation ``scale``.

    Returns
    -------
    CriticalPoints
        One entry a start; those for which ``critical`` is false have not
        converged and say nothing. A start whose norms leave the reach of
        quadrature is given back as it was, with an infinite gradient and
        ``nan`` for loss and eigenvalue.

    Raises
    ------
    ValueError
        If a number is out of range or ``method`` is unknown.

    Notes
    -----
    Source: the verification described for Corollary 5.2 of Simsek et al.
    (2023) is descent; the root search is ours.

    Examples
    --------
    >>> found = find_critical_points(Teacher.orthonormal(2), rng=0, starts=4)
    >>> found.loss.round(6).tolist()
    [0.023222, 0.023222, 0.023222, 0.023222]
    """
    activation = get_activation(activation)
    if starts < 1 or n < 1 or not 0 < scale < np.inf:
        raise ValueError(
            "starts and n must be >= 1 and scale positive, got "
            f"starts={starts}, n={n}, scale={scale}"
        )
    if method not in ("descent", "root"):
        raise ValueError(f"method must be descent or root, got {method!r}")
    rng = as_generator(rng)
    problem, rows = _Problem(teacher, n, activation), []
    for _ in range(starts):
        W = scale * rng.standard_normal((n, teacher.d)) / np.sqrt(teacher.d)
        theta = pack(W, scale * rng.standard_normal(n))
        rows.append(_search(problem, theta, method))
    theta, loss, gradient, lowest = (
        np.array(x) for x in zip(*rows, strict=True)
    )
    return CriticalPoints(Student(*unpack(theta, n)), loss, gradient, lowest)
