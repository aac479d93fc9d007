r"""Gradient flow: the path of a student that always goes straight downhill.

:math:`\dot\theta = -\nabla L(\theta)` is integrated with an error that is
controlled along the whole path, by an implicit method that is given the exact
Hessian. This is not optimisation: of two minima a path leads to one, and a
quasi-Newton method that reaches a minimum faster may reach the other one.
Only after the flow has come to rest is the end point polished by Newton's
method, and the polish is kept only if it stays there.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.integrate import BDF, LSODA, Radau
from scipy.linalg import LinAlgError, cho_factor, cho_solve

from helpers.copy_average.networks import Student, Teacher, pack, unpack
from helpers.copy_average.objective import Objective
from helpers.core.activations import Activation
from helpers.core.tolerances import (
    FLOW_ABSOLUTE,
    FLOW_RELATIVE,
    FLOW_REST,
    NEWTON_GRADIENT,
)

__all__ = ["Flow", "gradient_flow"]

_METHODS = {"LSODA": LSODA, "BDF": BDF, "Radau": Radau}
_LARGEST_STEPS = 100_000
_NEWTON_STEPS = 10


@dataclass(frozen=True, eq=False)
class Flow:
    r"""Where a gradient flow went.

    Parameters
    ----------
    student : Student
        The end point.
    loss : float
    gradient : float
        Largest absolute entry of the gradient there.
    time : float
        Flow time at which the integration ended.
    status : {"converged", "time", "stalled"}
        Whether the gradient fell below ``gtol``, the time ran out, or the
        integrator gave up (its step vanished, or too many were needed).
    times : ndarray, shape (T,)
    path : ndarray, shape (T, P)
        Packed students at ``times``, as far as the flow came.
    objective : Objective

    Attributes
    ----------
    smallest_eigenvalue : float
        Of the Hessian at the end point; computed when it is asked for.
    """

    student: Student
    loss: float
    gradient: float
    time: float
    status: str
    times: NDArray
    path: NDArray
    objective: Objective

    @cached_property
    def smallest_eigenvalue(self) -> float:
        theta = pack(self.student.W, self.student.a)
        return float(np.linalg.eigvalsh(self.objective.hessian(theta))[0])


def gradient_flow(
    student: Student,
    teacher: Teacher,
    activation: str | Activation = "erf",
    *,
    t_max: float = 1e7,
    gtol: float = FLOW_REST,
    rtol: float = FLOW_RELATIVE,
    atol: float = FLOW_ABSOLUTE,
    method: str = "LSODA",
    polish: bool = True,
    times: ArrayLike | None = None,
) -> Flow:
    r"""Follow :math:`\dot\theta = -\nabla L(\theta)` until it rests.

    Parameters
    ----------
    student : Student
        One student, ``W`` (n, d) and ``a`` (n,), not a batch.
    teacher : Teacher
    activation : str or Activation, default "erf"
    t_max : float, default 1e7
        Time at which to give up. Near the minima of this loss the smallest
        eigenvalue is :math:`10^{-3}` to :math:`10^{-5}`, so that times from
        :math:`10^4` to :math:`10^6` are common.
    gtol : float, default 5e-8
        Rest: largest absolute entry of the gradient, the paper's rule.
    rtol, atol : float, default 1e-6 and 1e-8
        Error that one step of the integrator may make in a weight, relative
        to it and absolutely.
    method : {"LSODA", "BDF", "Radau"}
        Implicit methods of SciPy. LSODA is the fastest here; the others are
        for comparison.
    polish : bool, default True
        Whether to end with Newton's method, where the Hessian is positive
        definite and the end point moves no farther than twice the first
        Newton step: the same basin's bottom, and no other point.
    times : array_like, shape (T,), optional
        Increasing times >= 0 at which to record the path; none by default.

    Returns
    -------
    Flow

    Raises
    ------
    ValueError
        If the student is a batch or does not fit the teacher, or a number is
        out of range.

    Notes
    -----
    A step costs a gradient and two triangular solves, :math:`O(P^2)`; every
    tenth also a Hessian and its factors, :math:`O(P^3)`.

    Source: Simsek et al. (2023), section 1 and its footnote; they use
    KenCarp58 and TRBDF2 with tolerances of 1e-6 and do not polish.

    Examples
    --------
    >>> from helpers.copy_average.initial import glorot_normal
    >>> teacher = Teacher.orthonormal(3)
    >>> flow = gradient_flow(glorot_normal(0, n=2, d=4), teacher)
    >>> flow.status, round(flow.loss, 6)
    ('converged', 0.023222)
    """
    _check(student, teacher, t_max, gtol, rtol, atol, method)
    times = _checked_times(times)
    objective = Objective(teacher, student.a.size, activation)
    theta = pack(student.W, student.a)
    solver = _METHODS[method](
        lambda t, y: -objective.loss_and_gradient(y)[1],
        0.0,
        theta,
        t_max,
        rtol=rtol,
        atol=atol,
        jac=lambda t, y: -objective.hessian(y),
    )
    status, path = _integrate(solver, objective, gtol, times)
    theta, reached = solver.y, times[: len(path)]
    if status == "converged" and polish:
        theta = _polished(objective, theta)
    loss, gradient = objective.loss_and_gradient(theta)
    return Flow(
        Student(*unpack(theta, objective.n)),
        float(loss),
        float(np.abs(gradient).max()),
        float(solver.t),
        status,
        reached,
        np.array(path).reshape(-1, theta.size),
        objective,
    )


def _integrate(solver, objective: Objective, gtol: float, times: NDArray):
    path: list[NDArray] = []
    while len(path) < times.size and times[len(path)] <= 0:
        path.append(solver.y.copy())
    for _ in range(_LARGEST_STEPS):
        gradient = objective.loss_and_gradient(solver.y)[1]
        if np.abs(gradient).max() <= gtol:
            # at rest, what comes later is what is
            path += [solver.y.copy()] * (times.size - len(path))
            return "converged", path
        if solver.status == "finished":
            return "time", path
        solver.step()
        if solver.status == "failed" or not np.all(np.isfinite(solver.y)):
            return "stalled", path
        if len(path) < times.size and times[len(path)] <= solver.t:
            dense = solver.dense_output()
            while len(path) < times.size and times[len(path)] <= solver.t:
                path.append(dense(times[len(path)]))
    return "stalled", path


def _polished(objective: Objective, start: NDArray) -> NDArray:
    """Newton's method, unless it leaves or the point is no strict minimum.

    In the long curved valleys of this loss the first step of a convergent
    iteration raises the gradient, so that only its end is judged.
    """
    theta, reach = start, None
    gradient = resting = objective.loss_and_gradient(start)[1]
    for _ in range(_NEWTON_STEPS):
        if np.abs(gradient).max() <= NEWTON_GRADIENT:
            break
        try:
            factor = cho_factor(objective.hessian(theta))
        except LinAlgError:
            return start
        step = cho_solve(factor, gradient)
        reach = 2 * np.linalg.norm(step) if reach is None else reach
        theta = theta - step
        gradient = objective.loss_and_gradient(theta)[1]
    better = np.abs(gradient).max() < np.abs(resting).max()
    stays = reach is None or np.linalg.norm(theta - start) <= reach
    return theta if better and stays else start


def _check(student, teacher, t_max, gtol, rtol, atol, method) -> None:
    if student.W.ndim != 2 or student.W.shape[1] != teacher.d:
        raise ValueError(
            f"student must be one network with W of shape (n, {teacher.d}), "
            f"got {student.W.shape}"
        )
    numbers = {"t_max": t_max, "gtol": gtol, "rtol": rtol, "atol": atol}
    for name, value in numbers.items():
        if not 0 < value < np.inf:
            raise ValueError(
                f"{name} must be positive and finite, got {value}"
            )
    if method not in _METHODS:
        raise ValueError(
            f"method must be one of {', '.join(_METHODS)}, got {method!r}"
        )


def _checked_times(times: ArrayLike | None) -> NDArray:
    times = np.array([] if times is None else times, dtype=float)
    if times.ndim != 1 or np.any(np.diff(times) < 0) or np.any(times < 0):
        raise ValueError("times must be one increasing row of numbers >= 0")
    return times
