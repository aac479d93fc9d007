r"""Students glued together from one-neuron solutions.

Split the teacher's neurons into groups and give each student neuron one
group to stand for: a *copy-average point*. For erf everything about it is
simple in *lifted* coordinates, :math:`y = w/\sqrt{1+\lVert w\rVert^2}`, in
which the interaction of two neurons is
:math:`\frac2\pi\arcsin(y\cdot y')`: the best neuron of a group is the mean of
the group there.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from helpers.copy_average.interactions import interaction_grad
from helpers.copy_average.networks import Student, Teacher
from helpers.copy_average.one_neuron import (
    one_neuron_optimum,
    optimal_loss_erf,
)
from helpers.core.activations import Activation, get_activation
from helpers.core.checks import whole_number
from helpers.core.tolerances import ORTHONORMAL

__all__ = [
    "CopyAverageCounts",
    "copy_average_loss",
    "copy_average_point",
    "correlated_teacher",
    "count_copy_average",
    "count_sizes",
    "enumerate_groupings",
    "enumerate_partitions",
    "equicorrelated_teacher",
    "equitable_defect",
    "lift",
    "linear_matching_ratio",
    "tilted_gradient",
]

Groups = list[NDArray]


def _width(k: int, n: int) -> tuple[int, int]:
    k, n = whole_number(k, "k"), whole_number(n, "n")
    if n > k:
        raise ValueError(
            f"n must be at most k, since no group is empty; got n={n}, k={k}"
        )
    return k, n


def _sizes(partition: Sequence[int], k: int) -> list[int]:
    sizes = [whole_number(size, "group sizes") for size in partition]
    if not sizes or sum(sizes) > k:
        raise ValueError(
            f"partition must hold 1 or more group sizes with sum at most "
            f"k={k}, got {tuple(partition)}"
        )
    return sizes


def _groups(partition: Sequence, k: int) -> Groups:
    if all(np.ndim(part) == 0 for part in partition):
        ends = np.cumsum([0, *_sizes(partition, k)])
        return [np.arange(*ends[i : i + 2]) for i in range(len(ends) - 1)]
    if any(np.ndim(part) != 1 or len(part) == 0 for part in partition):
        raise ValueError(
            "partition must hold group sizes, or non-empty groups of indices, "
            f"got {partition!r}"
        )
    groups = [
        [whole_number(j, "indices", 0) for j in part] for part in partition
    ]
    members = [j for group in groups for j in group]
    if len(set(members)) < len(members) or max(members) >= k:
        raise ValueError(
            f"groups must be disjoint and hold indices 0..{k - 1}, got "
            f"{groups}"
        )
    return [np.array(group) for group in groups]


def _signs(signs: ArrayLike | None, n: int, activation: Activation) -> NDArray:
    signs = np.ones(n) if signs is None else np.asarray(signs, dtype=float)
    if signs.shape != (n,) or not np.all(np.abs(signs) == 1):
        raise ValueError(
            f"signs must hold {n} entries, each +1 or -1, got {signs!r}"
        )
    if not activation.odd and np.any(signs < 0):
        raise ValueError(
            "signs must all be +1: flipping a neuron changes the function "
            f"unless the activation is odd, and {activation.name} is not"
        )
    return signs


def _common(name: str, values: NDArray, group: NDArray) -> float:
    scale = max(1.0, float(np.abs(values).max()))
    if np.ptp(values) > ORTHONORMAL * scale:
        raise ValueError(
            f"teacher must have equal {name} inside each group, got "
            f"{values} in group {group.tolist()}"
        )
    return float(values.mean())


def copy_average_point(
    partition: Sequence,
    teacher: Teacher,
    signs: ArrayLike | None = None,
    activation: str | Activation = "erf",
) -> Student:
    r"""Build the student whose neurons average their groups as well as can be.

    Each neuron points along the sum of its group, with the norm and the
    outgoing weight that are best for the group alone. For erf, with :math:`s_i=\sum_{j\in G_i}v_j` and :math:`R` the norm of the
    neurons of group :math:`G_i`,

    .. math:: w_i = \pm\frac{s_i}{\sqrt{\ell_i^2(1+R^2)-\lVert s_i\rVert^2}},
       \qquad a_i = \pm\,\ell_i\,b_{G_i},

    which is :math:`s_i/\sqrt{\ell_i(2\ell_i-1)}` for a unit-orthonormal
    teacher. For other activations it is the :func:`one_neuron_optimum
    <helpers.copy_average.one_neuron.one_neuron_optimum>` of the group.

    Parameters
    ----------
    partition : sequence of int, or of sequences of int
        Sizes :math:`\ell_i\ge1` of the groups, which then hold consecutive
        teacher neurons; or the groups themselves, disjoint, as indices from
        0. They may leave teacher neurons out.
    teacher : Teacher
        Inside each group all ``b`` are equal, all norms, and all sums
        :math:`\sum_{j\in G}v_j\cdot v_m`. Orthogonal inside the group, if
        the activation is not erf.
    signs : array_like, shape (n,), optional
        +1 or -1 for each neuron, multiplies :math:`w_i` and :math:`a_i`; -1
        only for odd activations.
    activation : str or Activation, default "erf"

    Returns
    -------
    Student
        ``W`` of shape (n, d), ``a`` of shape (n,).

    Raises
    ------
    ValueError
        For a bad partition or signs, for a teacher that differs inside a
        group or is silent there, for a group that sums to zero (it has no direction), or if a
        group has no best neuron.

    Notes
    -----
    Source: Simsek et al. (2023), Theorem 4.2, for erf and a unit-orthonormal
    teacher; the other cases are ours.

    Examples
    --------
    >>> student = copy_average_point((1, 2), Teacher.orthonormal(3))
    >>> student.a.tolist(), student.norms.round(6).tolist()
    ([1.0, 2.0], [1.0, 0.57735])
    """
    activation = get_activation(activation)
    groups = _groups(partition, teacher.k)
    signs = _signs(signs, len(groups), activation)
    neurons = [_best_neuron(teacher, group, activation) for group in groups]
    W = np.array([coefficient * s for coefficient, s, _ in neurons])
    a = np.array([outgoing for _, _, outgoing in neurons])
    return Student(signs[:, None] * W, signs * a)


def _best_neuron(teacher: Teacher, group: NDArray, activation: Activation):
    V, size = teacher.V[group], len(group)
    b = _common("b", teacher.b[group], group)
    if b == 0:
        raise ValueError(
            f"teacher must have b different from 0, got 0 in group "
            f"{group.tolist()}: a silent neuron has no copy"
        )
    R2 = _common("norms", (V * V).sum(axis=1), group)
    s = V.sum(axis=0)
    _common("row sums of the Gram matrix", V @ s, group)
    if not s @ s > ORTHONORMAL * R2:
        raise ValueError(
            f"the neurons of group {group.tolist()} sum to zero, so that no "
            "direction is their average"
        )
    if activation is get_activation("erf"):
        return 1 / math.sqrt(size**2 * (1 + R2) - s @ s), s, size * b
    if np.abs(V @ V.T - R2 * np.eye(size)).max() > ORTHONORMAL * max(1, R2):
        raise ValueError(
            "teacher must be orthogonal inside each group for activations "
            f"other than erf; group {group.tolist()} is not"
        )
    best = one_neuron_optimum(size, activation, teacher_norm=math.sqrt(R2))
    return best.w_coefficient, s, best.a * b


def copy_average_loss(partition: Sequence[int], k: int) -> float:
    r"""Compute the loss of a copy-average point.

    .. math:: L = \sum_i L^*(\ell_i) + \frac{k-\sum_i\ell_i}3

    Parameters
    ----------
    partition : sequence of int
        Group sizes, each 1 or more, with sum at most ``k``.
    k : int
        Neurons of the unit-orthonormal erf teacher.

    Returns
    -------
    float

    Raises
    ------
    ValueError
        If a size is not a whole number >= 1, or they exceed ``k``.

    Notes
    -----
    Source: Simsek et al. (2023), used for Theorem 5.5; proved in the book.

    Examples
    --------
    >>> [round(copy_average_loss(p, 6), 4) for p in ((2, 2, 2), (1, 1, 4))]
    [0.0697, 0.0568]
    """
    sizes = _sizes(partition, whole_number(k, "k"))
    return float(optimal_loss_erf(sizes).sum() + (k - sum(sizes)) / 3)


def enumerate_partitions(
    k: int, n: int, *, partial: bool = False
) -> list[tuple[int, ...]]:
    """List the ways to write ``k`` as a sum of ``n`` group sizes.

    Parameters
    ----------
    k : int
        Teacher neurons, 1 or more.
    n : int
        Student neurons, from 1 to ``k``.
    partial : bool, default False
        Also list sums below ``k``: groups that leave neurons out.

    Returns
    -------
    list of tuple of int
        Sizes in non-decreasing order, tuples in lexicographic order; the
        first, if ``partial`` is false, is ``(1, ..., 1, k - n + 1)``.

    Raises
    ------
    ValueError
        If ``k`` or ``n`` is out of range.

    Notes
    -----
    Source: ours.

    Examples
    --------
    >>> enumerate_partitions(6, 3)
    [(1, 1, 4), (1, 2, 3), (2, 2, 2)]
    """
    k, n = _width(k, n)
    totals = range(n, k + 1) if partial else [k]
    return sorted(p for total in totals for p in _parts(total, n, 1))


def _parts(total: int, n: int, least: int) -> Iterator[tuple[int, ...]]:
    if n == 1:
        yield (total,)
        return
    for first in range(least, total // n + 1):
        for rest in _parts(total - first, n - 1, first):
            yield (first, *rest)


def enumerate_groupings(k: int, n: int) -> Iterator[tuple[list[int], ...]]:
    """List the ways to put ``k`` teacher neurons into ``n`` groups.

    Parameters
    ----------
    k : int
        Teacher neurons, 1 or more.
    n : int
        Unnamed, non-empty groups, from 1 to ``k``.

    Yields
    ------
    tuple of list of int
        Groups of indices ``0 .. k-1``, in the order of their least member.

    Raises
    ------
    ValueError
        If ``k`` or ``n`` is out of range, when the first one is asked for.

    Notes
    -----
    There are Stirling's :math:`S(k, n)` of them.

    Source: ours.

    Examples
    --------
    >>> list(enumerate_groupings(3, 2))
    [([0, 1], [2]), ([0, 2], [1]), ([0], [1, 2])]
    """
    k, n = _width(k, n)
    yield from _place(0, k, n, [])


def _place(j: int, k: int, n: int, groups: list[list[int]]):
    if n - len(groups) > k - j:
        return
    if j == k:
        yield tuple(list(group) for group in groups)
        return
    for group in groups:
        group.append(j)
        yield from _place(j + 1, k, n, groups)
        group.pop()
    if len(groups) < n:
        groups.append([j])
        yield from _place(j + 1, k, n, groups)
        groups.pop()


class CopyAverageCounts(NamedTuple):
    """How many points of each kind weight space holds.

    Parameters
    ----------
    optimal : int
        Best copy-average points.
    all : int
        Copy-average points of groups that cover the teacher.
    n_copy : int
        Points that copy ``n`` teacher neurons and ignore the others.
    levels : int
        Ways to choose the group sizes, each with a loss of its own.
    """

    optimal: int
    all: int
    n_copy: int
    levels: int


def count_sizes(partition: Sequence[int]) -> int:
    r"""Count the copy-average points with given group sizes.

    .. math:: 2^n\,n!\,\frac{k!}{\prod_i\ell_i!\,\prod_s m_s!},

    where :math:`m_s` groups have size :math:`s` and :math:`k=\sum\ell_i`.

    Parameters
    ----------
    partition : sequence of int
        Group sizes, each 1 or more, in any order.

    Returns
    -------
    int
        Points in weight space: orders of the neurons and erf's sign flips
        count.

    Raises
    ------
    ValueError
        If there is no group or a size is not a whole number >= 1.

    Notes
    -----
    Source: ours, after Simsek et al. (2023), appendix E.1.

    Examples
    --------
    >>> count_sizes((1, 1, 3)), count_sizes((1, 2, 2))
    (480, 720)
    """
    sizes = [whole_number(size, "group sizes") for size in partition]
    if not sizes:
        raise ValueError("partition must hold 1 or more group sizes")
    ways = math.factorial(sum(sizes))
    for size, repeats in Counter(sizes).items():
        ways //= math.factorial(size) ** repeats * math.factorial(repeats)
    return 2 ** len(sizes) * math.factorial(len(sizes)) * ways


def _stirling(k: int, n: int) -> int:
    terms = ((-1) ** (n - j) * math.comb(n, j) * j**k for j in range(n + 1))
    return sum(terms) // math.factorial(n)


def count_copy_average(k: int, n: int) -> CopyAverageCounts:
    r"""Count copy-average points in weight space, for erf.

    The best ones are :math:`\binom k{n-1}n!\,2^n` for :math:`n<k` and
    :math:`k!\,2^k` for :math:`n=k`; all of them :math:`2^nn!\,S(k,n)`, with
    Stirling's numbers of the second kind; the :math:`n`-copy points
    :math:`\binom kn n!\,2^n`.

    Parameters
    ----------
    k : int
        Teacher neurons, 1 or more.
    n : int
        Student neurons, from 1 to ``k``.

    Returns
    -------
    CopyAverageCounts
        Exact, of any size.

    Raises
    ------
    ValueError
        If ``k`` or ``n`` is out of range.

    Notes
    -----
    Source: Simsek et al. (2023), appendix E.1; formulas derived here.

    Examples
    --------
    >>> count_copy_average(5, 3)
    CopyAverageCounts(optimal=480, all=1200, n_copy=480, levels=2)
    """
    k, n = _width(k, n)
    labels = 2**n * math.factorial(n)
    return CopyAverageCounts(
        optimal=labels * (math.comb(k, n - 1) if n < k else 1),
        all=labels * _stirling(k, n),
        n_copy=labels * math.comb(k, n),
        levels=len(enumerate_partitions(k, n)),
    )


def correlated_teacher(
    gram: ArrayLike, b: ArrayLike | None = None, d: int | None = None
) -> Teacher:
    r"""Build a teacher whose neurons have given inner products.

    Parameters
    ----------
    gram : array_like, shape (k, k)
        :math:`v_i\cdot v_j`, symmetric and positive definite.
    b : array_like, shape (k,), optional
        Outgoing weights; ones if not given.
    d : int, optional
        Input dimension, at least ``k``; ``k + 1`` if not given.

    Returns
    -------
    Teacher

    Raises
    ------
    ValueError
        If ``gram`` is no such matrix, or ``d`` is below ``k``.

    Notes
    -----
    Source: ours.

    Examples
    --------
    >>> teacher = correlated_teacher([[1.0, 0.5], [0.5, 1.0]])
    >>> (teacher.V @ teacher.V.T).round(6).tolist()
    [[1.0, 0.5], [0.5, 1.0]]
    """
    G = np.asarray(gram, dtype=float)
    if G.ndim != 2 or G.shape[0] != G.shape[1] or G.size == 0:
        raise ValueError(f"gram must have shape (k, k), got {G.shape}")
    scale = np.abs(G).max()
    if not np.isfinite(scale) or np.abs(G - G.T).max() > ORTHONORMAL * scale:
        raise ValueError("gram must be finite and symmetric")
    k = len(G)
    d = k + 1 if d is None else whole_number(d, "d", k)
    values, vectors = np.linalg.eigh(G)
    if not values[0] > ORTHONORMAL * values[-1]:
        raise ValueError(
            "gram must be positive definite, its smallest eigenvalue is "
            f"{values[0]:.3g}"
        )
    root = (vectors * np.sqrt(values)) @ vectors.T
    return Teacher(np.hstack([root, np.zeros((k, d - k))]), b)


def equicorrelated_teacher(
    k: int, beta: float, d: int | None = None
) -> Teacher:
    r"""Build the teacher of unit neurons, any two with inner product beta.

    Parameters
    ----------
    k : int
        Neurons, 1 or more.
    beta : float
        Between :math:`-1/(k-1)` and 1, both excluded.
    d : int, optional
        Input dimension, at least ``k``; ``k + 1`` if not given.

    Returns
    -------
    Teacher
        All outgoing weights are 1.

    Raises
    ------
    ValueError
        If ``beta`` is out of range or no number.

    Notes
    -----
    Source: ours.

    Examples
    --------
    >>> V = equicorrelated_teacher(3, -0.25).V
    >>> float((V[0] @ V[2]).round(6))
    -0.25
    """
    k = whole_number(k, "k")
    least = -1 / (k - 1) if k > 1 else -math.inf
    if not least < beta < 1:
        raise ValueError(
            f"beta must be above {least:.6g} and below 1 for k={k}, got "
            f"{beta!r}"
        )
    return correlated_teacher((1 - beta) * np.eye(k) + beta, d=d)


def lift(W: ArrayLike) -> NDArray:
    r"""Compute lifted weights, :math:`y=w/\sqrt{1+\lVert w\rVert^2}`.

    The erf interaction of two neurons is
    :math:`\frac2\pi\arcsin(y\cdot y')`.

    Parameters
    ----------
    W : array_like, shape (..., d)

    Returns
    -------
    ndarray, shape (..., d)
        Inside the unit ball.

    Raises
    ------
    ValueError
        If a weight is not finite.

    Notes
    -----
    Source: ours; the denominator is that of Williams (1997).

    Examples
    --------
    >>> lift([3.0, 4.0]).round(4).tolist()
    [0.5883, 0.7845]
    """
    W = np.asarray(W, dtype=float)
    if W.ndim < 1 or not np.all(np.isfinite(W)):
        raise ValueError("W must be a finite array of vectors")
    return W / np.sqrt(1 + (W * W).sum(axis=-1, keepdims=True))


def equitable_defect(partition: Sequence, teacher: Teacher) -> float:
    r"""Measure by how much a teacher misses the condition for criticality.

    With lifted teacher neurons :math:`z_j` and the means :math:`y_i` of their
    groups, the copy-average point of groups that cover the teacher is
    critical for erf as soon as :math:`b_m` and all :math:`y_i\cdot z_m` are
    constant for :math:`m` inside each group.

    Parameters
    ----------
    partition : sequence of int, or of sequences of int
        As in :func:`copy_average_point`; must cover the teacher.
    teacher : Teacher

    Returns
    -------
    float
        Largest spread of one of these numbers inside a group; 0 if the
        groups are equitable.

    Raises
    ------
    ValueError
        For a bad partition, or one that leaves neurons out.

    Notes
    -----
    Source: ours.

    Examples
    --------
    >>> equitable_defect((1, 2), Teacher(np.eye(3), [1.0, 2.0, 5.0]))
    3.0
    """
    groups = _groups(partition, teacher.k)
    if sum(len(group) for group in groups) < teacher.k:
        raise ValueError("partition must cover all neurons of the teacher")
    z = lift(teacher.V)
    means = np.array([z[group].mean(axis=0) for group in groups])
    columns = np.column_stack([teacher.b, z @ means.T])
    return float(max(np.ptp(columns[g], axis=0).max() for g in groups))


def tilted_gradient(W: ArrayLike, a: ArrayLike, teacher: Teacher) -> NDArray:
    r"""Compute the erf gradient in the incoming weights by tilting.

    With :math:`\Sigma_i=(I+w_iw_i^\top)^{-1}`,

    .. math:: \nabla_{w_i}L=\frac{4a_i}{\pi\sqrt{1+\lVert w_i\rVert^2}}\,
       \Sigma_i\Big[\sum_j\frac{a_jw_j}{\sqrt{1+w_j^\top\Sigma_iw_j}}
       -\sum_m\frac{b_mv_m}{\sqrt{1+v_m^\top\Sigma_iv_m}}\Big].

    Parameters
    ----------
    W : array_like, shape (..., n, d)
    a : array_like, shape (..., n)
    teacher : Teacher

    Returns
    -------
    ndarray, shape (..., n, d)

    Raises
    ------
    ValueError
        If shapes do not fit or a weight is not finite.

    Notes
    -----
    An independent form of what :func:`population_loss_grad
    <helpers.copy_average.population.population_loss_grad>` computes; it
    forms the matrices :math:`\Sigma_i`, :math:`O(nd^3)`.

    Source: the proof of Theorem 4.2 of Simsek et al. (2023), rebuilt.

    Examples
    --------
    >>> teacher = Teacher.orthonormal(2)
    >>> tilted_gradient([[0.0, 0.0, 1.0]], [1.0], teacher).round(4).tolist()
    [[-0.6366, -0.6366, 0.3676]]
    """
    student = Student(W, a)
    W, a = student.W, student.a
    if W.shape[-1] != teacher.d:
        raise ValueError(
            f"W must have {teacher.d} columns, as the teacher, got "
            f"{W.shape[-1]}"
        )
    eye = np.eye(teacher.d)
    Sigma = np.linalg.inv(eye + W[..., :, None] * W[..., None, :])
    V = np.broadcast_to(teacher.V, (*W.shape[:-2], *teacher.V.shape))
    b = np.broadcast_to(teacher.b, V.shape[:-1])
    bracket = _tilted_sum(Sigma, W, a) - _tilted_sum(Sigma, V, b)
    scale = 4 * a / (math.pi * np.sqrt(1 + student.norms**2))
    return scale[..., None] * np.einsum("...ide,...ie->...id", Sigma, bracket)


def _tilted_sum(Sigma: NDArray, Z: NDArray, c: NDArray) -> NDArray:
    form = np.einsum("...jd,...ide,...je->...ij", Z, Sigma, Z)
    return (c[..., None, :] / np.sqrt(1 + form)) @ Z


def linear_matching_ratio(
    size: int,
    activation: str | Activation = "erf",
    teacher_norm: float = 1.0,
) -> float:
    r"""Compare the linear part of a best neuron with that of its group.

    .. math:: \frac{a^*\,r^*\,\mathbb E\sigma'(r^*X)}
       {\sqrt\ell\,R\,\mathbb E\sigma'(RX)}

    Parameters
    ----------
    size : int
        Size :math:`\ell` of a group of orthogonal neurons, 1 or more.
    activation : str or Activation, default "erf"
        One that has a best neuron.
    teacher_norm : float, default 1.0
        Their common norm :math:`R`.

    Returns
    -------
    float
        1 if the first Hermite parts agree, as they do for erf.

    Raises
    ------
    ValueError
        If ``size`` or ``teacher_norm`` is out of range, or there is no best
        neuron.

    Notes
    -----
    Source: ours, from the proof of Theorem 4.2 of Simsek et al. (2023).

    Examples
    --------
    >>> round(linear_matching_ratio(2, "tanh"), 6)
    1.000073
    """
    size = whole_number(size, "size")
    activation = get_activation(activation)
    best = one_neuron_optimum(size, activation, teacher_norm=teacher_norm)
    # two independent neurons of norm r: the slope is (r E sigma'(rX))**2
    norms = np.array([best.r, teacher_norm])
    slope = np.sqrt(interaction_grad(norms, norms, 0.0, activation)[2])
    return float(best.a * slope[0] / (math.sqrt(size) * slope[1]))
