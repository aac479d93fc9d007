r"""What kind of solution a student is.

Two solutions can differ by :math:`10^{-5}` in the loss and be nothing alike,
so that the class is read off the geometry: the cosines of student and
teacher neurons. The loss confirms it. The gradient and the smallest
eigenvalue of the Hessian belong to every answer, since a small gradient alone
is found near saddles too.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import linear_sum_assignment

from helpers.copy_average.networks import (
    Student,
    Teacher,
    pack,
    teacher_cosines,
    unpack,
)
from helpers.copy_average.objective import Objective
from helpers.core.activations import Activation, get_activation
from helpers.core.tolerances import (
    AVERAGE_COSINE,
    COPY_COSINE,
    DEAD_NEURON,
    NEAR_COPY_COSINE,
    SAME_DIRECTION,
)

__all__ = ["LABELS", "Solution", "canonicalize", "classify_solution"]

LABELS = (
    "optimal_ca",
    "perturbed_n_copy",
    "other_ca",
    "split",
    "channel",
    "dead",
    "other",
)
"""Every class, in the order in which tables list them."""


@dataclass(frozen=True, eq=False)
class Solution:
    r"""The class of a student, and what the class rests on.

    Parameters
    ----------
    label : str
        One of :data:`LABELS`: copies and one average of all others; every
        neuron near a teacher neuron of its own; other groups averaged; one
        neuron split in two; two neurons of one direction that work against
        each other; a neuron that does nothing; none of these.
    matching : ndarray of int, shape (n,)
        The teacher neuron with the largest absolute cosine, for each student
        neuron.
    cosines : ndarray, shape (n, k)
        With the teacher neurons; 0 for a vanishing neuron.
    loss : float
    gradient : float
        Largest absolute entry.
    smallest_eigenvalue : float
        Of the Hessian.
    """

    label: str
    matching: NDArray
    cosines: NDArray
    loss: float
    gradient: float
    smallest_eigenvalue: float

    @property
    def copies(self) -> NDArray:
        """Teacher neurons that have a copy, in increasing order."""
        largest = np.abs(self.cosines).max(axis=1)
        return np.unique(self.matching[largest > COPY_COSINE])


def classify_solution(
    student: Student,
    teacher: Teacher,
    activation: str | Activation = "erf",
) -> Solution:
    r"""Decide what kind of solution a student is.

    In this order: *dead*, a neuron with :math:`|a_i|\lVert w_i\rVert <
    10^{-3}`; *channel* or *split*, two neurons with absolute cosine above
    0.98 whose outgoing weights, after making the cosine positive, have
    opposite or equal signs; *optimal_ca*, :math:`n - 1` copies (absolute
    cosine above 0.999) of distinct teacher neurons and one neuron along the
    sum of all others, to :math:`10^{-3}` in each cosine;
    *perturbed_n_copy*, all neurons above 0.9 with distinct teacher neurons;
    *other_ca*, disjoint groups that cover the teacher, each neuron along the
    sum of its group; else *other*. Where the activation is not odd, the
    cosines count with their signs.

    Parameters
    ----------
    student : Student
        One student, ``W`` (n, d) and ``a`` (n,).
    teacher : Teacher
        Any. The words copy and average are meant for neurons of one norm
        and one outgoing weight.
    activation : str or Activation, default "erf"

    Returns
    -------
    Solution

    Raises
    ------
    ValueError
        If the student is a batch or does not fit the teacher.

    Notes
    -----
    The Hessian's eigenvalues cost :math:`O(P^3)`, the rest nothing.

    Source: ours; the authors' plotting code of Simsek et al. (2023) calls a
    neuron with no absolute cosine above 0.95 "the average".

    Examples
    --------
    >>> from helpers.copy_average.configurations import copy_average_point
    >>> teacher = Teacher.orthonormal(4)
    >>> student = copy_average_point([[0], [1, 2, 3]], teacher)
    >>> classify_solution(student, teacher).label
    'optimal_ca'
    """
    if student.W.ndim != 2 or student.W.shape[1] != teacher.d:
        raise ValueError(
            f"student must be one network with W of shape (n, {teacher.d}), "
            f"got {student.W.shape}"
        )
    activation = get_activation(activation)
    objective = Objective(teacher, student.a.size, activation)
    theta = pack(student.W, student.a)
    loss, gradient = objective.loss_and_gradient(theta)
    cosines = np.nan_to_num(teacher_cosines(student.W, teacher.V))
    return Solution(
        _label(student, teacher, cosines, activation.odd),
        np.abs(cosines).argmax(axis=1),
        cosines,
        float(loss),
        float(np.abs(gradient).max()),
        float(np.linalg.eigvalsh(objective.hessian(theta))[0]),
    )


def _label(student, teacher, cosines, odd: bool) -> str:
    if np.any(np.abs(student.a) * student.norms < DEAD_NEURON):
        return "dead"
    shared = _shared_direction(student, odd)
    if shared:
        return shared
    size = np.abs(cosines) if odd else cosines
    best, matching = size.max(axis=1), size.argmax(axis=1)
    if _copies_and_average(cosines, best, matching, teacher, odd):
        return "optimal_ca"
    distinct = np.unique(matching).size == matching.size
    if distinct and best.min() > NEAR_COPY_COSINE:
        return "perturbed_n_copy"
    return "other_ca" if _groups(cosines, teacher, odd) else "other"


def _shared_direction(student: Student, odd: bool) -> str | None:
    """Two neurons in one direction: together or against each other?"""
    unit = student.W / student.norms[:, None]
    cosine = np.triu(unit @ unit.T, 1)
    aligned = np.abs(cosine) if odd else cosine
    i, j = np.unravel_index(aligned.argmax(), aligned.shape)
    if aligned[i, j] <= SAME_DIRECTION:
        return None
    sign = student.a[i] * student.a[j] * cosine[i, j]
    return "split" if sign > 0 else "channel"


def _along(
    cosines: NDArray, group: NDArray, teacher: Teacher, odd: bool
) -> bool:
    """Whether a neuron points along the sum of a group."""
    unit = teacher.V / np.linalg.norm(teacher.V, axis=1)[:, None]
    mean = teacher.V[group].sum(axis=0)
    norm = np.linalg.norm(mean)
    if norm == 0:
        return False
    expected = unit @ mean / norm
    sign = -1 if odd and cosines @ expected < 0 else 1
    return np.abs(sign * cosines - expected)[group].max() <= AVERAGE_COSINE


def _copies_and_average(cosines, best, matching, teacher, odd) -> bool:
    n, k = cosines.shape
    last = int(best.argmin())
    others = np.delete(np.arange(n), last)
    copied = np.unique(matching[others])
    rest = np.setdiff1d(np.arange(k), copied)
    if copied.size < n - 1 or np.any(best[others] <= COPY_COSINE):
        return False
    return rest.size > 0 and _along(cosines[last], rest, teacher, odd)


def _groups(cosines: NDArray, teacher: Teacher, odd: bool) -> bool:
    """Whether disjoint groups, averaged, cover the teacher."""
    owner = (np.abs(cosines) if odd else cosines).argmax(axis=0)
    for i, row in enumerate(cosines):
        group = np.flatnonzero(owner == i)
        if group.size == 0 or not _along(row, group, teacher, odd):
            return False
    return True


def canonicalize(
    student: Student, teacher: Teacher, *, odd: bool = True
) -> tuple[Student, NDArray]:
    r"""Order the neurons of a student by the teacher neurons they are near.

    Parameters
    ----------
    student : Student
        One student, ``W`` (n, d) and ``a`` (n,), with n <= k.
    teacher : Teacher
    odd : bool, default True
        Whether :math:`\sigma(-z) = -\sigma(z)`, so that the sign of a neuron
        may be turned: each is given a positive largest cosine.

    Returns
    -------
    student : Student
        The same function.
    permutation : ndarray of int, shape (n,)
        Row i of the result is row ``permutation[i]`` of the input.

    Raises
    ------
    ValueError
        If the student is a batch, does not fit the teacher or is wider.

    Notes
    -----
    The assignment with the largest sum of squared cosines, in
    :math:`O(nk^2)`. Among equals, such as students with a symmetry, the
    order is arbitrary.

    Source: ours.

    Examples
    --------
    >>> teacher = Teacher.orthonormal(2, 2)
    >>> student = Student([[0.0, -1.0], [1.0, 0.0]], [-2.0, 3.0])
    >>> ordered, permutation = canonicalize(student, teacher)
    >>> ordered.a.tolist(), permutation.tolist()
    ([3.0, 2.0], [1, 0])
    """
    n, k = student.a.size, teacher.k
    if student.W.ndim != 2 or student.W.shape[1] != teacher.d or n > k:
        raise ValueError(
            f"student must be one network with W of shape (n, {teacher.d}) "
            f"and n <= {k}, got {student.W.shape}"
        )
    cosines = np.nan_to_num(teacher_cosines(student.W, teacher.V))
    rows, columns = linear_sum_assignment(-(cosines**2))
    permutation = rows[np.argsort(columns)]
    theta = np.column_stack([student.W, student.a])[permutation]
    if odd:
        own = cosines[permutation, np.sort(columns)]
        theta = theta * np.where(own < 0, -1.0, 1.0)[:, None]
    return Student(*unpack(theta.reshape(-1), n)), permutation
