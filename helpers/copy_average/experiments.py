r"""The runs behind the phase diagram: one student, one row.

Each function is a task of :mod:`helpers.sweep`: plain values in, a mapping of
plain values out. The same seed gives the same start to both, so that what a
quasi-Newton method finds can be held against what gradient flow finds.
"""

from __future__ import annotations

from helpers.copy_average.classify import classify_solution
from helpers.copy_average.flow import gradient_flow
from helpers.copy_average.initial import gaussian, glorot_normal
from helpers.copy_average.networks import Student, Teacher, pack, unpack
from helpers.copy_average.objective import Objective
from helpers.copy_average.search import descend, newton_polish

__all__ = ["descent_outcome", "flow_outcome", "start"]


def start(
    k: int, n: int, seed: int, d: int | None = None, std: float | None = None
) -> tuple[Student, Teacher]:
    """Draw the start of a run, and its unit-orthonormal teacher.

    Parameters
    ----------
    k, n : int
        Teacher and student neurons, 1 or more.
    seed : int
    d : int, optional
        Input dimension, at least ``k``; ``k + 1`` as in the paper if not
        given.
    std : float, optional
        One standard deviation for all weights; Glorot's normal law if not
        given.

    Returns
    -------
    student : Student
    teacher : Teacher

    Notes
    -----
    Source: Simsek et al. (2023), section 1 and their code.

    Examples
    --------
    >>> student, teacher = start(k=3, n=2, seed=0)
    >>> student.W.shape, teacher.V.shape
    ((2, 4), (3, 4))
    """
    teacher = Teacher.orthonormal(k, d)
    if std is None:
        return glorot_normal(seed, n, teacher.d), teacher
    return gaussian(seed, n, teacher.d, std), teacher


def flow_outcome(
    k: int, n: int, seed: int, d: int | None = None, std: float | None = None
) -> dict:
    """Follow gradient flow from a random start and say where it ends.

    Parameters
    ----------
    k, n, seed, d, std
        As in :func:`start`.

    Returns
    -------
    dict
        ``label``, ``loss``, ``gradient`` and ``smallest_eigenvalue`` as in
        :class:`~helpers.copy_average.classify.Solution`, ``time`` and
        ``status`` as in :class:`~helpers.copy_average.flow.Flow`, and
        ``largest_weight``, the largest absolute outgoing weight.

    Notes
    -----
    Source: Figure 4 of Simsek et al. (2023).

    Examples
    --------
    >>> flow_outcome(k=3, n=2, seed=0)["label"]
    'optimal_ca'
    """
    student, teacher = start(k, n, seed, d, std)
    flow = gradient_flow(student, teacher)
    return {
        **_described(flow.student, teacher),
        "time": flow.time,
        "status": flow.status,
    }


def descent_outcome(k: int, n: int, seed: int) -> dict:
    """Minimise by L-BFGS and Newton from the start of a flow.

    This is not gradient flow, and is here to show it.

    Parameters
    ----------
    k, n, seed
        As in :func:`start`.

    Returns
    -------
    dict
        As :func:`flow_outcome`, without ``time`` and ``status``.

    Notes
    -----
    Source: ours.

    Examples
    --------
    >>> descent_outcome(k=3, n=2, seed=0)["label"]
    'optimal_ca'
    """
    student, teacher = start(k, n, seed)
    objective = Objective(teacher, n)
    theta = descend(objective, pack(student.W, student.a))
    W, a, _ = newton_polish(*unpack(theta, n), teacher)
    return _described(Student(W, a), teacher)


def _described(student: Student, teacher: Teacher) -> dict:
    solution = classify_solution(student, teacher)
    return {
        "label": solution.label,
        "loss": solution.loss,
        "gradient": solution.gradient,
        "smallest_eigenvalue": solution.smallest_eigenvalue,
        "largest_weight": float(abs(student.a).max()),
    }
