r"""ReLU students: what their flow conserves, where it ends, and its two classes.

Scaling :math:`(w, a) \to (cw, a/c)` leaves a ReLU neuron's function alone.
Three things follow. Gradient flow conserves :math:`a_i^2 - \lVert w_i\rVert^2`
in every neuron. The loss has a corner at :math:`w_i = 0`, which neurons with
:math:`a_i^2 > \lVert w_i\rVert^2` reach in finite time and then stay at. And
two neurons of one direction are one neuron, so that a student may end with
fewer neurons than it has.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.integrate import LSODA
from scipy.optimize import brentq

from helpers.copy_average.initial import gaussian, glorot_normal
from helpers.copy_average.networks import Student, Teacher, pack, unpack
from helpers.copy_average.population import (
    population_hessian,
    population_loss_grad,
)
from helpers.copy_average.symmetric import FAMILIES, symmetric_optimum
from helpers.core.checks import whole_number
from helpers.core.randomness import Seed
from helpers.core.tolerances import (
    DEAD_NORM,
    DEAD_PRODUCT,
    MERGED_COSINE,
    RELU_FLOW_ABSOLUTE,
    RELU_FLOW_GRADIENT,
    RELU_FLOW_RELATIVE,
    SAME_LOSS,
    SETTLE_EXACT,
)

__all__ = [
    "Ending",
    "RectifiedFlow",
    "balanced",
    "distinct_neurons",
    "imbalance",
    "name_ending",
    "rectified_crossing",
    "rectified_flow",
    "run_flow",
    "transverse_eigenvalues",
]

LONGEST = 100_000.0
"""Time at which a flow is given up; those of the book take a few hundred."""


def imbalance(student: Student) -> NDArray:
    r"""Compute what gradient flow conserves, :math:`a_i^2-\lVert w_i\rVert^2`.

    Parameters
    ----------
    student : Student
        One student or a batch.

    Returns
    -------
    ndarray, shape (..., n)
        If negative, :math:`w_i` never vanishes along the flow; if positive,
        :math:`a_i` never changes sign.

    Notes
    -----
    Source: Du, Hu and Lee (2018); proved in the book.

    Examples
    --------
    >>> imbalance(Student([[3.0, 4.0]], [6.0])).tolist()
    [11.0]
    """
    return student.a**2 - (student.W**2).sum(axis=-1)


def balanced(student: Student) -> Student:
    r"""Rescale each neuron to :math:`|a_i|=\lVert w_i\rVert`.

    Parameters
    ----------
    student : Student
        One student or a batch; a neuron with ``w = 0`` or ``a = 0`` becomes
        zero in both.

    Returns
    -------
    Student
        The same function, if the activation is ReLU.

    Notes
    -----
    Source: ours.

    Examples
    --------
    >>> balanced(Student([[4.0, 0.0]], [1.0])).W.tolist()
    [[2.0, 0.0]]
    """
    norms = student.norms
    size = np.sqrt(np.abs(student.a) * norms)
    unit = student.W / np.where(norms > 0, norms, 1.0)[..., None]
    return Student(size[..., None] * unit, np.sign(student.a) * size)


def distinct_neurons(student: Student) -> Student:
    r"""Drop silent neurons and add up neurons of one direction.

    Parameters
    ----------
    student : Student
        One student, not a batch.

    Returns
    -------
    Student
        The same function up to rounding, with unit incoming weights in the
        order of first appearance. A student of silent neurons alone comes
        back with one neuron, of outgoing weight zero.

    Raises
    ------
    ValueError
        For a batch of students.

    Notes
    -----
    Silent: :math:`|a|\lVert w\rVert` below ``DEAD_PRODUCT``. One direction:
    cosine above ``MERGED_COSINE``.

    Source: ours.

    Examples
    --------
    >>> twice = Student([[2.0, 0.0], [1.0, 0.0]], [0.5, -0.25])
    >>> distinct_neurons(twice).a.tolist()
    [0.75]
    """
    if student.a.ndim != 1:
        raise ValueError(f"need one student, got a batch {student.a.shape}")
    norms = student.norms
    product = student.a * norms
    unit = student.W / np.where(norms > 0, norms, 1.0)[:, None]
    kept: list[int] = []
    total = np.zeros(len(product))
    for i in np.flatnonzero(np.abs(product) >= DEAD_PRODUCT):
        same = [j for j in kept if unit[i] @ unit[j] > MERGED_COSINE]
        if not same:
            kept.append(i)
        total[same[0] if same else i] += product[i]
    loud = [i for i in kept if abs(total[i]) >= DEAD_PRODUCT]
    if not loud:
        return Student(np.eye(1, student.W.shape[1]), np.zeros(1))
    return Student(unit[loud], total[loud])


class Ending(NamedTuple):
    """What a ReLU student has become.

    Parameters
    ----------
    label : str
        "copy_average" or "n_copy" if all neurons are in use; "dead" or
        "merged" if some are silent or share a direction; "other".
    family : str
        The family of what is left: "copy_average", "n_copy" or "other".
    width : int
        Number of distinct neurons, at most that of the student.
    loss : float
    """

    label: str
    family: str
    width: int
    loss: float


@lru_cache(maxsize=512)
def _family_loss(k: int, n: int, family: str) -> float:
    return symmetric_optimum(k, n, family, "relu").loss


def name_ending(student: Student, k: int) -> Ending:
    """Name where a ReLU student has come to rest.

    Parameters
    ----------
    student : Student
        Converged student of the unit-orthonormal teacher.
    k : int
        Number of teacher neurons; the teacher's are the first ``k`` axes.

    Returns
    -------
    Ending
        By geometry first (how many distinct neurons there are), then by the
        loss, which has to agree with that of a family to ``SAME_LOSS``.

    Raises
    ------
    ValueError
        If ``k`` exceeds the input dimension, or for a batch.

    Notes
    -----
    Source: ours, in the place of the authors' rule, whose cosine thresholds
    are made for erf.

    Examples
    --------
    >>> point = symmetric_optimum(3, 2, "copy_average", "relu")
    >>> name_ending(point.student(), 3).label
    'copy_average'
    """
    teacher = Teacher.orthonormal(k, student.W.shape[-1])
    rest = distinct_neurons(student)
    loss, *_ = population_loss_grad(rest.W, rest.a, teacher, "relu")
    width, n = int((rest.a != 0).sum()), student.a.size
    loss = float(loss)
    family = "other"
    for name in FAMILIES if 1 <= width <= k else ():
        if abs(loss - _family_loss(k, width, name)) < SAME_LOSS:
            family = name
            break
    if width == n:
        return Ending(family, family, width, loss)
    silent = np.abs(student.a) * student.norms < DEAD_PRODUCT
    return Ending("dead" if silent.any() else "merged", family, width, loss)


@dataclass(frozen=True, eq=False)
class RectifiedFlow:
    r"""Gradient flow of a ReLU student.

    Parameters
    ----------
    student : Student
        Where it ended.
    loss, gradient : float
        There; ``gradient`` is the largest absolute entry.
    time : float
    status : {"converged", "time"}
    deaths : dict of int to float
        Neurons whose incoming weight reached zero, and when. They are kept
        at zero from then on.
    times : ndarray, shape (T,)
    path : ndarray, shape (T, P)
        Packed students along the way.
    """

    student: Student
    loss: float
    gradient: float
    time: float
    status: str
    deaths: dict[int, float]
    times: NDArray
    path: NDArray


def rectified_flow(
    student: Student,
    teacher: Teacher,
    *,
    t_max: float = LONGEST,
    gtol: float = RELU_FLOW_GRADIENT,
    rtol: float = RELU_FLOW_RELATIVE,
    atol: float = RELU_FLOW_ABSOLUTE,
) -> RectifiedFlow:
    r"""Follow :math:`\dot\theta=-\nabla L(\theta)` for a ReLU student.

    LSODA, stopped where the gradient is small. A neuron whose incoming
    weight falls to ``DEAD_NORM`` has lost its direction; it is set
    to zero, where the gradient is zero by convention, and the flow of the
    others goes on.

    Parameters
    ----------
    student : Student
        Start, one student and not a batch.
    teacher : Teacher
    t_max : float
        Largest time, positive.
    gtol : float
        Largest absolute entry of the gradient at which to stop, positive.
    rtol, atol : float
        Tolerances of the integrator, positive.

    Returns
    -------
    RectifiedFlow

    Raises
    ------
    ValueError
        If a number is not positive, or if the student does not fit.

    Notes
    -----
    Never polished by Newton's method: where neurons die or merge the end
    point lies on a manifold of critical points, and which of them it is has
    to be the flow's own choice.

    Source: the acceptance rule is that of Simsek et al. (2023); the
    integrator is SciPy's.

    Examples
    --------
    >>> start = Student([[0.9, 0.1], [-0.2, 0.8]], [0.3, 0.2])
    >>> flow = rectified_flow(start, Teacher.orthonormal(2, 2))
    >>> flow.status, bool(flow.loss < 1e-9)
    ('converged', True)
    """
    numbers = {"t_max": t_max, "gtol": gtol, "rtol": rtol, "atol": atol}
    for name, value in numbers.items():
        if not 0 < value < np.inf:
            raise ValueError(f"{name} must be positive, got {value!r}")
    if student.a.ndim != 1:
        raise ValueError(f"need one student, got a batch {student.a.shape}")
    n, theta = student.a.size, pack(student.W, student.a)

    def velocity(_t: float, theta: NDArray) -> NDArray:
        _, *grads = population_loss_grad(*unpack(theta, n), teacher, "relu")
        return -pack(*grads)

    def jacobian(_t: float, theta: NDArray) -> NDArray:
        W, a = unpack(theta, n)
        moves = np.repeat((W != 0).any(axis=1), teacher.d + 1)
        hessian = population_hessian(W, a, teacher, "relu")
        return np.where(moves & moves[:, None], -hessian, 0.0)

    now, deaths, times, path = 0.0, {}, [0.0], [theta]
    alive = np.ones(n, dtype=bool)
    while now < t_max and np.abs(velocity(now, theta)).max() > gtol:
        # a fresh integrator after each death, since the velocity jumps there
        solver = LSODA(
            velocity, now, theta, t_max, rtol=rtol, atol=atol, jac=jacobian
        )
        lost = np.zeros(n, dtype=bool)
        while solver.status == "running" and not lost.any():
            before = unpack(solver.y, n)[0].copy()
            solver.step()
            lost = alive & _arrived(before, unpack(solver.y, n)[0])
            times.append(float(solver.t))
            path.append(solver.y.copy())
            if np.abs(velocity(solver.t, solver.y)).max() <= gtol:
                break
        now, theta = float(solver.t), solver.y.copy()
        if solver.status == "failed":
            break
        unpack(theta, n)[0][lost] = 0.0
        alive &= ~lost
        deaths |= dict.fromkeys(np.flatnonzero(lost).tolist(), now)
    W, a = unpack(theta, n)
    loss, *grads = population_loss_grad(W, a, teacher, "relu")
    steepest = float(np.abs(pack(*grads)).max())
    return RectifiedFlow(
        Student(W, a),
        float(loss),
        steepest,
        now,
        "converged" if steepest <= gtol * (1 + rtol) else "time",
        deaths,
        np.array(times),
        np.array(path),
    )


def _arrived(before: NDArray, after: NDArray) -> NDArray:
    """Whether incoming weights reached zero in a step, or stepped over it."""
    size = (after**2).sum(axis=1)
    small = size < DEAD_NORM
    turned = (before * after).sum(axis=1) < 0
    return (size < DEAD_NORM**2) | (small & turned)


def transverse_eigenvalues(student: Student, teacher: Teacher) -> NDArray:
    r"""Compute the Hessian's eigenvalues across the scale symmetry.

    At a critical point, moving along :math:`(w_i, -a_i)` changes nothing to
    second order. The eigenvalues are those of the Hessian on the orthogonal
    complement of these ``n`` directions, at the balanced student.

    Parameters
    ----------
    student : Student
        A critical point of the ReLU loss, without silent neurons.
    teacher : Teacher

    Returns
    -------
    ndarray, shape (n * d,)
        In increasing order. All positive: a strict local minimum, up to the
        symmetry.

    Raises
    ------
    ValueError
        If a neuron is silent, or for a batch.

    Notes
    -----
    The Hessian is differenced, good to about nine digits.

    Source: ours.

    Examples
    --------
    >>> teacher = Teacher.orthonormal(2, 2)
    >>> values = transverse_eigenvalues(Student(teacher.V, [1, 1]), teacher)
    >>> bool(values[0] > 0.1)
    True
    """
    if student.a.ndim != 1:
        raise ValueError(f"need one student, got a batch {student.a.shape}")
    if np.any(np.abs(student.a) * student.norms < DEAD_PRODUCT):
        raise ValueError("student must have no silent neuron")
    student = balanced(student)
    n, d = student.W.shape
    directions = np.zeros((n, n, d + 1))
    neuron = np.arange(n)
    directions[neuron, neuron, :d] = student.W
    directions[neuron, neuron, d] = -student.a
    across = np.linalg.svd(directions.reshape(n, -1)).Vh[n:]
    hessian = population_hessian(student.W, student.a, teacher, "relu")
    return np.linalg.eigvalsh(across @ hessian @ across.T)


def rectified_crossing(k: int) -> float:
    r"""Find the width from which n-copy has the lower ReLU loss.

    Parameters
    ----------
    k : int
        Teacher neurons, from 4 to 50. (For ``k = 3`` there is no crossing
        with :math:`2 \le n < k`. Up to 50, following the minima down from
        :math:`n = k - 1` gave the same ones as starting at each width's
        naive point; at 100 it did not.)

    Returns
    -------
    float
        The real number :math:`n_\times` at which the minima within the
        families "copy_average" and "n_copy" have one loss.

    Raises
    ------
    ValueError
        If ``k`` is out of range.

    Notes
    -----
    Source: ours.

    Examples
    --------
    >>> round(rectified_crossing(10), 3)
    5.685
    """
    k = whole_number(k, "k", 4, 50)

    def gap(n: float) -> float:
        losses = (symmetric_optimum(k, n, f, "relu").loss for f in FAMILIES)
        average, copy = losses
        return average - copy

    return float(brentq(gap, 2.0, k - 1 / 2, xtol=SETTLE_EXACT))


def run_flow(
    k: int, n: int, seed: Seed, scale: float | None = None
) -> dict[str, object]:
    r"""Draw a start, follow the flow, and name its end: one task of a sweep.

    Parameters
    ----------
    k, n : int
        Teacher and student neurons; the input dimension is ``k + 1``.
    seed : int
        Seed of the start.
    scale : float, optional
        Standard deviation of all weights at the start; that of Glorot's
        rule, :math:`\sqrt{2/(d+n)}` and :math:`\sqrt{2/(n+1)}`, if not
        given.

    Returns
    -------
    dict
        ``label``, ``family``, ``width`` (see :class:`Ending`), ``loss``,
        ``gradient``, ``time``, ``status``, ``deaths`` (how many),
        ``positive`` (how many neurons start with
        :math:`a^2>\lVert w\rVert^2`), ``negative`` (how many end with
        :math:`a<0` and are not silent), ``drift`` (largest change of what is
        conserved) and ``lowest`` (lowest transverse eigenvalue; ``nan`` if
        neurons are dead or merged).

    Raises
    ------
    ValueError
        If a number is out of range.

    Notes
    -----
    Source: the set-up of Simsek et al. (2023), appendix C.3.

    Examples
    --------
    >>> run_flow(3, 2, seed=1)["label"]
    'copy_average'
    """
    teacher = Teacher.orthonormal(k)
    if scale is None:
        start = glorot_normal(seed, n, teacher.d)
    else:
        start = gaussian(seed, n, teacher.d, scale)
    flow = rectified_flow(start, teacher)
    ending = name_ending(flow.student, k)
    alive = [i for i in range(n) if i not in flow.deaths]
    drift = imbalance(flow.student) - imbalance(start)
    products = flow.student.a * flow.student.norms
    whole = ending.width == n
    lowest = np.nan
    if whole:
        lowest = float(transverse_eigenvalues(flow.student, teacher)[0])
    return {
        **ending._asdict(),
        "gradient": flow.gradient,
        "time": flow.time,
        "status": flow.status,
        "deaths": len(flow.deaths),
        "positive": int((imbalance(start) > 0).sum()),
        "negative": int((products < -DEAD_PRODUCT).sum()),
        "drift": float(np.abs(drift[alive]).max(initial=0.0)),
        "lowest": lowest,
    }
