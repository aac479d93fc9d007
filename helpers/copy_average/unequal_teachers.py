r"""Teachers whose neurons are not alike: who is copied, who is averaged.

For erf and an orthogonal teacher the best single neuron is found by one
equation in one unknown, whatever the outgoing weights :math:`b_j` and, up to
norm 1, whatever the norms. Write :math:`z_j` for the lifted teacher neurons,
:math:`s_j=\lVert z_j\rVert`, :math:`y` for the lifted student neuron and
:math:`t_j=y\cdot z_j=\sin(\varphi_j/2)`. Stationarity says
:math:`\sin\varphi_j=2\lambda b_js_j^2` with one :math:`\lambda` for all
:math:`j`, and

.. math::

   \begin{gathered}
   \lVert y\rVert^2-\sqrt{1-\lVert y\rVert^4}\arcsin\lVert y\rVert^2
   =\sum_j\frac{1-\cos\varphi_j-\frac12\varphi_j\sin\varphi_j}{2s_j^2},\\
   \lVert y\rVert^2=\sum_j\frac{1-\cos\varphi_j}{2s_j^2} .
   \end{gathered}
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.optimize import brentq

from helpers.copy_average.configurations import lift
from helpers.copy_average.networks import Student, Teacher, pack, unpack
from helpers.copy_average.population import (
    population_hessian,
    population_loss_grad,
)
from helpers.core.activations import Activation
from helpers.core.checks import whole_number
from helpers.core.tolerances import ORTHONORMAL, RANK_RELATIVE, ROUNDING

__all__ = [
    "CopyChoice",
    "Response",
    "UnequalAverage",
    "best_average",
    "correlation_price",
    "first_order_response",
    "monotonicity_margin",
    "rank_copies",
    "weighted_copy_average_point",
    "weighted_equitable_defect",
]


def _vector(name: str, x: ArrayLike) -> NDArray:
    x = np.atleast_1d(np.asarray(x, dtype=float))
    if x.ndim != 1 or x.size == 0 or not np.all(np.isfinite(x)):
        raise ValueError(
            f"{name} must be a non-empty vector of finite numbers, got {x!r}"
        )
    return x


@dataclass(frozen=True, eq=False)
class UnequalAverage:
    r"""The best erf neuron for orthogonal teacher neurons that differ.

    Parameters
    ----------
    b, norms : ndarray, shape (k,)
        Outgoing weights and norms of the teacher neurons.
    overlaps : ndarray, shape (k,)
        :math:`t_j=y\cdot z_j`, of the sign of :math:`b_j`.
    q : float
        :math:`\lVert y\rVert^2`, the squared norm of the lifted neuron.
    a : float
        Outgoing weight, positive.
    loss : float
    """

    b: NDArray
    norms: NDArray
    overlaps: NDArray
    q: float
    a: float
    loss: float

    @property
    def angles(self) -> NDArray:
        r"""The numbers :math:`\varphi_j = 2\arcsin\lvert t_j\rvert`."""
        return 2 * np.arcsin(np.abs(self.overlaps))

    @property
    def r(self) -> float:
        """Norm of the neuron's incoming weights."""
        return math.sqrt(self.q / (1 - self.q))

    @property
    def coefficients(self) -> NDArray:
        r"""The numbers :math:`c_j` in :math:`w=\sum_jc_jv_j`, shape (k,)."""
        s2 = self.norms**2 / (1 + self.norms**2)
        lifted = self.overlaps / (s2 * np.sqrt(1 + self.norms**2))
        return lifted / math.sqrt(1 - self.q)


def _angles(scale: float, pull: NDArray) -> NDArray:
    return np.arcsin(np.minimum(scale * pull, 1.0))


def _balance(scale: float, pull: NDArray, s2: NDArray) -> float:
    """Growing through zero at the best neuron: A(q) less the sum of B."""
    angle = _angles(scale, pull)
    half = np.sin(angle / 2) ** 2
    q = (half / s2).sum()
    if q >= 1:
        return 1.0
    own = q - math.sqrt((1 - q) * (1 + q)) * math.asin(q)
    return own - float(((half - angle * np.sin(angle) / 4) / s2).sum())


def best_average(b: ArrayLike, norms: ArrayLike = 1.0) -> UnequalAverage:
    r"""Find the best erf neuron for an orthogonal teacher with any ``b``.

    Parameters
    ----------
    b : array_like, shape (k,)
        Outgoing weights of the teacher; any signs, none zero.
    norms : array_like, shape (k,) or scalar, default 1.0
        Norms of the teacher neurons, in :math:`(0, 1]`. Beyond norm 1 the
        best direction need not be unique, and no answer is given.

    Returns
    -------
    UnequalAverage
        The only critical point with :math:`a\ne0`, up to a sign flip, and
        the global minimum of the loss of one neuron.

    Raises
    ------
    ValueError
        If a weight is zero or not finite, a norm is out of range, or the
        shapes do not fit.

    Notes
    -----
    One bracketed root, :math:`O(k)` an evaluation. Weights that differ by
    more than about :math:`10^6` leave the small ones without digits.

    Source: ours; Corollary 5.2 of Simsek et al. (2023) is the case of equal
    weights and norm 1.

    Examples
    --------
    >>> best = best_average([1.0, 2.0, 0.5])
    >>> round(best.loss, 6), best.overlaps.round(4).tolist()
    (0.049618, [0.1687, 0.3558, 0.0834])
    """
    b = _vector("b", b)
    norms = np.broadcast_to(_vector("norms", norms), b.shape).copy()
    if np.any(b == 0):
        raise ValueError(f"b must hold no zero, got {b}")
    if np.any(norms <= 0) or np.any(norms > 1):
        raise ValueError(f"norms must lie in (0, 1], got {norms}")
    s2 = norms**2 / (1 + norms**2)
    own = 2 / math.pi * float(b**2 @ np.arcsin(s2))
    pull = 2 * np.abs(b) * s2
    pull = pull / pull.max()
    if b.size == 1:
        return UnequalAverage(
            b, norms, np.sign(b) * s2, float(s2[0]), float(abs(b[0])), 0.0
        )
    low = 0.5
    while _balance(low, pull, s2) >= 0:
        low /= 2
        if low < ROUNDING:
            raise ValueError(
                f"b has too many entries, {b.size}, for float64: their angles "
                "are lost in rounding"
            )
    scale = brentq(_balance, low, 1.0, args=(pull, s2), xtol=ROUNDING * low)
    angle = _angles(scale, pull)
    q = float((np.sin(angle / 2) ** 2 / s2).sum())
    a = math.sqrt(1 - q**2) * 2 * (np.abs(b) * s2).max() / scale
    loss = own - 2 / math.pi * float(a) ** 2 * math.asin(q)
    overlaps = np.sign(b) * np.sin(angle / 2)
    return UnequalAverage(b, norms, overlaps, q, float(a), float(loss))


def monotonicity_margin(average: UnequalAverage) -> NDArray:
    r"""Measure how much each further unit of ``b`` would cost.

    .. math:: \frac{\partial M}{\partial\lvert b_j\rvert}
       =\frac4\pi\Big[\lvert b_j\rvert\arcsin s_j^2-\tfrac12a\varphi_j\Big]

    for the least loss :math:`M(b)` of one neuron.

    Parameters
    ----------
    average : UnequalAverage

    Returns
    -------
    ndarray, shape (k,)
        Positive for two neurons or more: a louder teacher neuron is dearer
        to average.

    Notes
    -----
    Source: ours, by the envelope theorem.

    Examples
    --------
    >>> bool((monotonicity_margin(best_average([1.0, 9.0, 0.2])) > 0).all())
    True
    """
    s2 = average.norms**2 / (1 + average.norms**2)
    own = np.abs(average.b) * np.arcsin(s2)
    return 4 / math.pi * (own - average.a * average.angles / 2)


class CopyChoice(NamedTuple):
    """One way to choose whom to copy.

    Parameters
    ----------
    copied : tuple of int
        Teacher neurons that are copied exactly.
    loss : float
        Loss of the glued student: that of the best average of the others.
    student : Student
        The copies, then the average; ``W`` (n, d), ``a`` (n,).
    """

    copied: tuple[int, ...]
    loss: float
    student: Student


def _orthogonal_norms(teacher: Teacher) -> NDArray:
    gram = teacher.V @ teacher.V.T
    squares = np.diag(gram)
    off = np.abs(gram - np.diag(squares)).max()
    if off > ORTHONORMAL * squares.max():
        raise ValueError(
            "teacher must have orthogonal neurons, the largest inner product "
            f"of two is {off:.3g}"
        )
    return np.sqrt(squares)


def rank_copies(teacher: Teacher, n: int) -> list[CopyChoice]:
    r"""Rank the ways to copy :math:`n-1` neurons and average the others.

    The loss of each is exact: copies have no error, and the average is
    :func:`best_average` of what is left. In general these students are not
    critical points; descent improves on them.

    Parameters
    ----------
    teacher : Teacher
        Orthogonal neurons; those that are averaged with norms at most 1.
    n : int
        Student neurons, from 1 to ``k - 1``.

    Returns
    -------
    list of CopyChoice
        All :math:`\binom k{n-1}` choices, the least loss first; choices of
        equal loss keep the order of their indices up to rounding.

    Raises
    ------
    ValueError
        If the teacher is not orthogonal, ``n`` is out of range, or an
        average is refused by :func:`best_average`.

    Notes
    -----
    Source: ours.

    Examples
    --------
    >>> teacher = Teacher(np.eye(4, 5), [1.0, 1.5, 1.0, 1.2])
    >>> [choice.copied for choice in rank_copies(teacher, 3)[:2]]
    [(1, 3), (0, 1)]
    """
    norms = _orthogonal_norms(teacher)
    n = whole_number(n, "n", 1, teacher.k - 1)
    subsets = combinations(range(teacher.k), n - 1)
    choices = [_choice(teacher, norms, copied) for copied in subsets]
    return sorted(choices, key=lambda choice: choice.loss)


def _choice(teacher: Teacher, norms: NDArray, copied) -> CopyChoice:
    kept = list(copied)
    rest = np.setdiff1d(np.arange(teacher.k), kept)
    average = best_average(teacher.b[rest], norms[rest])
    w = average.coefficients @ teacher.V[rest]
    student = Student(
        np.vstack([teacher.V[kept], w]), np.append(teacher.b[kept], average.a)
    )
    return CopyChoice(tuple(kept), average.loss, student)


def _checked_groups(partition: Sequence, k: int) -> list[NDArray]:
    groups = [np.asarray(group) for group in partition]
    fine = groups and all(
        g.ndim == 1 and g.size and np.issubdtype(g.dtype, np.integer)
        for g in groups
    )
    members = np.concatenate(groups) if fine else np.array([-1])
    if not fine or sorted(members.tolist()) != list(range(k)):
        raise ValueError(
            f"partition must hold each of 0..{k - 1} in exactly one "
            f"non-empty group, got {partition!r}"
        )
    return groups


def _weighted_means(groups: list[NDArray], teacher: Teacher):
    a = np.array([teacher.b[group].sum() for group in groups])
    sizes = np.array([np.abs(teacher.b[group]).sum() for group in groups])
    if np.any(np.abs(a) <= ORTHONORMAL * sizes):
        raise ValueError(
            "the outgoing weights of each group must have a sum other than "
            f"zero, got sums {a}"
        )
    z = lift(teacher.V)
    sums = np.array([teacher.b[group] @ z[group] for group in groups])
    return sums / a[:, None], a


def weighted_copy_average_point(
    partition: Sequence[Sequence[int]], teacher: Teacher
) -> Student:
    r"""Build the student of weighted means in lifted coordinates.

    .. math:: y_i=\frac{\sum_{m\in G_i}b_mz_m}{\sum_{m\in G_i}b_m},\qquad
       a_i=\sum_{m\in G_i}b_m .

    Parameters
    ----------
    partition : sequence of sequences of int
        Groups that hold each teacher neuron once.
    teacher : Teacher
        In no group may the outgoing weights sum to zero.

    Returns
    -------
    Student
        ``W`` (n, d), ``a`` (n,). A critical point for erf if
        :func:`weighted_equitable_defect` vanishes.

    Raises
    ------
    ValueError
        If the groups do not cover the teacher, a sum vanishes, or a mean
        leaves the unit ball (possible with weights of both signs).

    Notes
    -----
    Source: ours; with equal weights in each group the points of
    Theorem 4.2 of Simsek et al. (2023).

    Examples
    --------
    A flat loud neuron and a steep quiet one:

    >>> teacher = Teacher([[1.0, 0.0], [0.0, 3**-0.5]], [1.0, 2.0])
    >>> student = weighted_copy_average_point([[0, 1]], teacher)
    >>> student.W.round(6).tolist(), student.a.tolist()
    ([[0.258199, 0.365148]], [3.0])
    """
    groups = _checked_groups(partition, teacher.k)
    y, a = _weighted_means(groups, teacher)
    square = (y * y).sum(axis=1, keepdims=True)
    if np.any(square >= 1):
        raise ValueError(
            "a weighted mean leaves the unit ball, where no neuron is: "
            f"squared norms {square.ravel()}"
        )
    return Student(y / np.sqrt(1 - square), a)


def weighted_equitable_defect(
    partition: Sequence[Sequence[int]], teacher: Teacher
) -> float:
    r"""Measure by how much the members of a group differ for the means.

    Parameters
    ----------
    partition : sequence of sequences of int
        As in :func:`weighted_copy_average_point`.
    teacher : Teacher

    Returns
    -------
    float
        Largest spread of :math:`y_i\cdot z_m` over the members of one
        group; at 0 the point of weighted means is critical.

    Raises
    ------
    ValueError
        If the groups do not cover the teacher or a sum vanishes.

    Notes
    -----
    Source: ours.

    Examples
    --------
    >>> teacher = Teacher(np.eye(2), [1.0, 2.0])
    >>> round(weighted_equitable_defect([[0, 1]], teacher), 6)
    0.166667
    """
    groups = _checked_groups(partition, teacher.k)
    y, _ = _weighted_means(groups, teacher)
    seen = lift(teacher.V) @ y.T
    return float(max(np.ptp(seen[group], axis=0).max() for group in groups))


class Response(NamedTuple):
    r"""What a critical point does when its teacher changes.

    Parameters
    ----------
    dW : ndarray, shape (n, d)
    da : ndarray, shape (n,)
        Derivative of the critical point.
    slope : float
        Derivative of its loss.
    """

    dW: NDArray
    da: NDArray
    slope: float


def first_order_response(
    student: Student,
    teacher: Teacher,
    dV: ArrayLike | None = None,
    db: ArrayLike | None = None,
    activation: str | Activation = "erf",
) -> Response:
    r"""Differentiate a critical point along a change of the teacher.

    The critical point :math:`\theta(\varepsilon)` of the teacher
    :math:`V+\varepsilon\,dV,\ b+\varepsilon\,db` moves with

    .. math:: \theta'(0)=-H^{-1}\,\partial_\varepsilon\nabla_\theta L .

    The mixed derivative is a block of one larger Hessian: that of the error
    :math:`f-f^*`, taken for a student of :math:`n+k` neurons.

    Parameters
    ----------
    student : Student
        A critical point with an invertible Hessian, ``W`` (n, d).
    teacher : Teacher
    dV : array_like, shape (k, d), optional
        Change of the incoming weights; none by default.
    db : array_like, shape (k,), optional
        Change of the outgoing weights; none by default.
    activation : str or Activation, default "erf"

    Returns
    -------
    Response

    Raises
    ------
    ValueError
        If shapes do not fit or the Hessian is singular to working accuracy.

    Notes
    -----
    :math:`O((n+k)^2d^2)` memory for the large Hessian.

    Source: ours, by the implicit function theorem.

    Examples
    --------
    A teacher that grows louder makes its copy louder:

    >>> teacher = Teacher.orthonormal(1, 1)
    >>> copy = Student(teacher.V, teacher.b)
    >>> first_order_response(copy, teacher, db=[1.0]).da.round(6).tolist()
    [1.0]
    """
    V, b, n = teacher.V, teacher.b, student.a.size
    dV = np.zeros_like(V) if dV is None else np.asarray(dV, dtype=float)
    db = np.zeros_like(b) if db is None else np.asarray(db, dtype=float)
    if dV.shape != V.shape or db.shape != b.shape or student.W.ndim != 2:
        raise ValueError(
            f"dV must have shape {V.shape}, db {b.shape} and W two axes, got "
            f"{dV.shape}, {db.shape} and {student.W.shape}"
        )
    nothing = Teacher(np.zeros((1, teacher.d)), np.zeros(1))
    joint = np.vstack([student.W, V]), np.append(student.a, -b)
    hessian = population_hessian(*joint, nothing, activation)
    _, *grads = population_loss_grad(*joint, nothing, activation)
    change, own = pack(dV, -db), student.W.size + n
    block = hessian[:own, :own]
    values = np.abs(np.linalg.eigvalsh(block))
    if values.min() <= RANK_RELATIVE * values.max():
        raise ValueError(
            "the Hessian of the student is singular: the critical point is "
            "not isolated, and its response is not defined"
        )
    moved = -np.linalg.solve(block, hessian[:own, own:] @ change)
    slope = float(pack(*grads)[own:] @ change)
    return Response(*unpack(moved, n), slope)


def correlation_price(size: int) -> float:
    r"""Compute how much a correlation inside an average saves.

    Let the Gram matrix of a unit erf teacher with equal outgoing weights be
    :math:`I+\varepsilon E`. The loss of the best copy-average point with the
    averaged group :math:`G`, :math:`\lvert G\rvert=\ell`, changes by
    :math:`-\varepsilon\,\kappa_\ell\sum_{i<j\in G}E_{ij}+O(\varepsilon^2)`
    with

    .. math:: \kappa_\ell=\frac2\pi\Big[\frac{2\ell}{\sqrt{4\ell^2-1}}
       -1\Big].

    Parameters
    ----------
    size : int
        Size :math:`\ell` of the averaged group, 1 or more.

    Returns
    -------
    float
        :math:`\kappa_\ell`, positive.

    Raises
    ------
    ValueError
        If ``size`` is not a whole number >= 1.

    Notes
    -----
    Source: ours.

    Examples
    --------
    >>> round(correlation_price(4), 6)
    0.005033
    """
    size = whole_number(size, "size")
    return 2 / math.pi * (2 * size / math.sqrt(4 * size**2 - 1) - 1)
