r"""The Hessian at copy-average points, taken apart.

For erf and a unit-orthonormal teacher, a student whose neurons average groups
of sizes :math:`\ell_1,\dots,\ell_n` has a Hessian that falls into blocks: one
for each direction of input space outside the teacher, one for each direction
inside a group across its average, and one for each group's average. All of
them are made of three numbers for each group, with :math:`c=1/(2\ell)` and
:math:`s=\sqrt{1-c^2}`:

.. math:: \delta=\frac1s-1,\qquad h=\frac{c^2}{s^3},\qquad
   m=\sqrt{\ell(\ell-\tfrac12)} .
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.optimize import brentq

from helpers.copy_average.networks import Student
from helpers.core.checks import whole_number

__all__ = [
    "CopyAverageStability",
    "copy_average_index",
    "copy_average_spectrum",
    "copy_average_stability",
    "critical_copies",
    "critical_width",
    "group_margins",
    "optimal_spectrum",
    "split_neuron",
]

Spectrum = list[tuple[str, float, int]]


def _checked_sizes(partition: Sequence[int]) -> NDArray:
    sizes = [whole_number(size, "group sizes") for size in partition]
    if not sizes:
        raise ValueError("partition must hold 1 or more group sizes")
    return np.array(sizes, dtype=float)


@dataclass(frozen=True)
class _Numbers:
    """What the blocks are made of, one entry a group; sizes may be real."""

    c: NDArray
    delta: NDArray
    h: NDArray
    m: NDArray

    @classmethod
    def of(cls, sizes: ArrayLike) -> _Numbers:
        sizes = np.asarray(sizes, dtype=float)
        c = 1 / (2 * sizes)
        s = np.sqrt(1 - c * c)
        # 1/s - 1 without cancellation
        delta = c * c / (s * (1 + s))
        return cls(c, delta, c * c / s**3, np.sqrt(sizes * (sizes - 0.5)))

    @property
    def pull(self) -> NDArray:
        r""":math:`h-\delta`, what a group gains by falling apart."""
        return self.h - self.delta

    def outside(self) -> NDArray:
        """Moves along one direction orthogonal to the teacher, (n, n)."""
        block = np.diag(self.m**2 * self.delta) + np.outer(self.m, self.m)
        return 4 / math.pi * block

    def across(self, g: int) -> NDArray:
        """Moves along one direction across the average of group g."""
        block = self.outside()
        block[g, g] -= 4 / math.pi * self.m[g] ** 2 * self.h[g]
        return block

    def along(self, g: int) -> NDArray:
        """Outgoing weight of g and moves along its average, (n + 1, n + 1)."""
        m = self.m.copy()
        m[g] *= 1 - self.c[g]
        block = np.zeros((len(m) + 1, len(m) + 1))
        block[1:, 1:] = np.diag(m**2 * self.delta) + np.outer(m, m)
        block[1 + g, 1 + g] += m[g] ** 2 * self.h[g]
        block[0, 0] = math.asin(self.c[g])
        block[0, 1:] = math.sqrt(self.c[g]) * m
        block[0, 1 + g] *= 1 + self.delta[g]
        block[1:, 0] = block[0, 1:]
        return 4 / math.pi * block


def group_margins(partition: Sequence[int]) -> NDArray:
    r"""Measure how firmly each group of a copy-average point holds together.

    .. math:: \frac1{1+\sum_{i\ne g}1/\delta_i}-(h_g-\delta_g)

    Parameters
    ----------
    partition : sequence of int
        Group sizes, each 1 or more, in any order; they cover the teacher.

    Returns
    -------
    ndarray, shape (n,)
        Negative where group ``g``, if it has 2 or more members, contributes
        :math:`\ell_g-1` negative eigenvalues to the Hessian, positive where
        it contributes none. Entries of groups of one member mean nothing.

    Raises
    ------
    ValueError
        If there is no group, or a size is not a whole number >= 1.

    Notes
    -----
    For large groups the sign is that of
    :math:`\ell_g^2-\sum_{i\ne g}\ell_i^2`.

    Source: ours.

    Examples
    --------
    >>> (group_margins((3, 4, 6)) > 0).tolist()
    [False, False, True]
    """
    numbers = _Numbers.of(_checked_sizes(partition))
    others = (1 / numbers.delta).sum() - 1 / numbers.delta
    return 1 / (1 + others) - numbers.pull


def copy_average_index(partition: Sequence[int]) -> int:
    r"""Count the negative eigenvalues at a copy-average point.

    Parameters
    ----------
    partition : sequence of int
        Group sizes, each 1 or more, in any order; they cover the
        unit-orthonormal erf teacher.

    Returns
    -------
    int
        Sum of :math:`\ell_g-1` over the groups with a negative
        :func:`group_margins`. 0 means a strict local minimum.

    Raises
    ------
    ValueError
        If there is no group, or a size is not a whole number >= 1.

    Notes
    -----
    Independent of the input dimension.

    Source: ours; proved in the book.

    Examples
    --------
    >>> [copy_average_index(p) for p in ((1, 5), (2, 4), (3, 3), (4, 4, 4))]
    [0, 1, 4, 9]
    """
    sizes = _checked_sizes(partition)
    return int((sizes - 1)[group_margins(partition) < 0].sum())


def copy_average_spectrum(
    partition: Sequence[int], d: int | None = None
) -> Spectrum:
    r"""Compute all eigenvalues of the Hessian at a copy-average point.

    Parameters
    ----------
    partition : sequence of int
        Group sizes, each 1 or more, with sum ``k``; they cover the
        unit-orthonormal erf teacher.
    d : int, optional
        Input dimension, at least ``k``; ``k + 1`` if not given.

    Returns
    -------
    list of (str, float, int)
        Kind of move, eigenvalue, multiplicity. Kinds are ``"outside"`` the
        teacher, ``"across"`` the average of a group, ``"along"`` it, with
        the size of the group. Multiplicities add up to :math:`n(d+1)`.

    Raises
    ------
    ValueError
        If a size is not a whole number >= 1, or ``d`` is below ``k``.

    Notes
    -----
    Blocks of size :math:`n` and :math:`n+1`, one for each different size:
    at most :math:`O(n^3\sqrt k)`, against :math:`O(n^3d^3)`.

    Source: ours.

    Examples
    --------
    >>> rows = copy_average_spectrum((1, 2, 3))
    >>> sum(times for _, _, times in rows)
    24
    >>> sum(times for _, value, times in rows if value < 0)
    1
    """
    sizes = _checked_sizes(partition)
    k = int(sizes.sum())
    d = k + 1 if d is None else whole_number(d, "d", k)
    numbers = _Numbers.of(sizes)
    blocks = [("outside", numbers.outside(), d - k)]
    for size, g, groups in zip(
        *np.unique(sizes, return_index=True, return_counts=True), strict=True
    ):
        name, members = f"group of {int(size)}", int(size)
        across = int(groups) * (members - 1)
        blocks.append((f"across a {name}", numbers.across(g), across))
        blocks.append((f"along a {name}", numbers.along(g), int(groups)))
    return _eigenvalues(blocks)


def _eigenvalues(blocks: list[tuple[str, NDArray, int]]) -> Spectrum:
    return [
        (name, float(value), times)
        for name, block, times in blocks
        if times > 0
        for value in np.linalg.eigvalsh(block)
    ]


def _optimal(k: int, n: int) -> tuple[int, int, int]:
    k = whole_number(k, "k")
    n = whole_number(n, "n", 1, k)
    return k, n, k - n + 1


def _fold(block: NDArray, equal: slice) -> NDArray:
    """Restrict a block to moves that its equal rows make alike."""
    size = len(block)
    alike = np.zeros(size)
    alike[equal] = 1
    rest = np.flatnonzero(alike == 0)
    basis = np.eye(size)[rest]
    if alike.any():
        basis = np.vstack([basis, alike / np.linalg.norm(alike)])
    return basis @ block @ basis.T


def optimal_spectrum(k: int, n: int, d: int | None = None) -> Spectrum:
    r"""Compute the spectrum of the best copy-average point by symmetry.

    The point copies :math:`n-1` teacher neurons and averages the other
    :math:`\ell=k-n+1`. Permutations of the copies and of the averaged
    neurons leave blocks of size 1 to 4:

    ====================================== ===== ===========================
    kind of move                           block multiplicity
    ====================================== ===== ===========================
    copies against each other                1   (n-2)(d-k+ℓ) + (n-1)(n-3)
    outside the teacher                      2   d-k
    across the average                       2   ℓ-1
    along the average                        3   1
    along a copied neuron                    4   n-1
    ====================================== ===== ===========================

    Parameters
    ----------
    k : int
        Teacher neurons, 1 or more.
    n : int
        Student neurons, from 1 to ``k``.
    d : int, optional
        Input dimension, at least ``k``; ``k + 1`` if not given.

    Returns
    -------
    list of (str, float, int)
        Kind of move, eigenvalue, multiplicity, which add up to
        :math:`n(d+1)`. Blocks shrink where there are fewer neurons: for
        :math:`n\le3`, and for :math:`n=k`, where all neurons are copies.

    Raises
    ------
    ValueError
        If ``k``, ``n`` or ``d`` is out of range.

    Notes
    -----
    :math:`O(n^2)`. The eigenvalue of the first row is
    :math:`\frac2\pi(\frac2{\sqrt3}-1)`, whatever ``k``, ``n`` and ``d``.

    Source: ours.

    Examples
    --------
    >>> for name, value, times in optimal_spectrum(50, 20)[:3]:
    ...     print(f"{name}: {value:.6f}, {times} times")
    copies against each other: 0.098485, 899 times
    outside the teacher: 0.099064, 1 times
    outside the teacher: 1216.099805, 1 times
    """
    k, n, size = _optimal(k, n)
    d = k + 1 if d is None else whole_number(d, "d", k)
    copies, average = (n - 1, [float(size)]) if n < k else (n, [])
    numbers = _Numbers.of([1.0] * copies + average)
    blocks = [("outside the teacher", numbers.outside(), slice(copies), d - k)]
    if average:
        blocks += [
            (
                "across the average",
                numbers.across(-1),
                slice(copies),
                size - 1,
            ),
            ("along the average", numbers.along(n - 1), slice(1, n), 1),
        ]
    against = max(copies - 1, 0) * sum(times for *_, times in blocks)
    if copies:
        equal, times = slice(2, 1 + copies), copies
        blocks.append(
            ("along a copied neuron", numbers.along(0), equal, times)
        )
        against += copies * max(copies - 2, 0)
    folded = [(name, _fold(x, equal), m) for name, x, equal, m in blocks]
    value = 2 / math.pi * (2 / math.sqrt(3) - 1)
    rows = [("copies against each other", value, against)] if against else []
    return rows + _eigenvalues(folded)


def split_neuron(student: Student, neuron: int, share: float) -> Student:
    r"""Replace a neuron by two of the same direction and half a voice each.

    Parameters
    ----------
    student : Student
        ``W`` of shape (n, d).
    neuron : int
        Index of the neuron, from 0 to ``n - 1``.
    share : float
        The first of the two keeps :math:`\text{share}\cdot a`, the other one,
        put last, gets the rest. Any finite number.

    Returns
    -------
    Student
        Of ``n + 1`` neurons, the same function.

    Raises
    ------
    ValueError
        For a batch of students, or an argument out of range.

    Notes
    -----
    A critical point stays critical.

    Source: ours; splitting neurons is the device of Fukumizu and Amari
    (2000).

    Examples
    --------
    >>> split_neuron(Student([[1.0, 0.0]], [2.0]), 0, 0.25).a.tolist()
    [0.5, 1.5]
    """
    if student.W.ndim != 2:
        raise ValueError(
            f"student must be a single one, got W of shape {student.W.shape}"
        )
    neuron = whole_number(neuron, "neuron", 0, len(student.a) - 1)
    if not math.isfinite(share):
        raise ValueError(f"share must be finite, got {share}")
    a = np.append(student.a, (1 - share) * student.a[neuron])
    a[neuron] *= share
    return Student(np.vstack([student.W, student.W[neuron]]), a)


@dataclass(frozen=True, eq=False)
class CopyAverageStability:
    r"""Whether the best copy-average point is a minimum.

    Parameters
    ----------
    k, n : int
        Teacher and student neurons.
    size : int
        Teacher neurons that are averaged, :math:`\ell=k-n+1`.
    block : ndarray, shape (2, 2), or (1, 1) for ``n`` = 1
        The Hessian on the average neuron and on all copies together, both
        moving in one direction across the average.
    smallest_eigenvalue : float
        Of the block. It is :math:`\ell-1` times an eigenvalue of the full
        Hessian.
    negative : int
        Number of negative eigenvalues of the full Hessian.
    """

    k: int
    n: int
    size: int
    block: NDArray
    smallest_eigenvalue: float
    negative: int

    @property
    def stable(self) -> bool:
        """Whether the point is a strict local minimum."""
        return self.negative == 0


def copy_average_stability(k: int, n: int) -> CopyAverageStability:
    r"""Compute the block that decides on the best copy-average point.

    With :math:`\ell=k-n+1`, :math:`s=\sqrt{1-1/(4\ell^2)}` and
    :math:`q=\ell^2/s-1/(4s^3)`,

    .. math:: \frac4\pi\begin{pmatrix}
       q\,\frac{2\ell-1}{2\ell}&\sqrt{\frac{\ell(2\ell-1)(n-1)}4}\\
       \cdot&\frac1{\sqrt3}+\frac{n-2}2\end{pmatrix}.

    Parameters
    ----------
    k : int
        Neurons of the unit-orthonormal erf teacher, 2 or more.
    n : int
        Student neurons, from 1 to ``k - 1``.

    Returns
    -------
    CopyAverageStability

    Raises
    ------
    ValueError
        If ``k`` or ``n`` is out of range. At ``n = k`` nothing is averaged,
        and the block does not exist: the point is the global minimum.

    Notes
    -----
    Source: ours; proved in the book.

    Examples
    --------
    >>> [copy_average_stability(12, n).negative for n in (9, 10, 11)]
    [0, 0, 1]
    """
    k = whole_number(k, "k", 2)
    n = whole_number(n, "n", 1, k - 1)
    size = k - n + 1
    s = math.sqrt(1 - 1 / (4 * size**2))
    q = size**2 / s - 1 / (4 * s**3)
    block = np.array([[q * (2 * size - 1) / (2 * size)]])
    if n > 1:
        coupling = math.sqrt(size * (2 * size - 1) * (n - 1) / 4)
        copies = 1 / math.sqrt(3) + (n - 2) / 2
        block = np.array([[block[0, 0], coupling], [coupling, copies]])
    block = 4 / math.pi * block
    negative = copy_average_index((1,) * (n - 1) + (size,))
    smallest = float(np.linalg.eigvalsh(block)[0])
    return CopyAverageStability(k, n, size, block, smallest, negative)


def critical_copies(size: ArrayLike) -> NDArray:
    r"""Compute how many copies it takes to break an average.

    .. math:: \Big(\frac2{\sqrt3}-1\Big)
       \Big(\frac1{s^{-3}-2s^{-1}+1}-1\Big),\qquad
       s=\sqrt{1-\frac1{4\ell^2}}

    Parameters
    ----------
    size : array_like
        Averaged teacher neurons :math:`\ell`, real, 1 or more.

    Returns
    -------
    ndarray
        The best copy-average point is a minimum for :math:`n-1` below this,
        a saddle above. About
        :math:`(\frac{16}{\sqrt3}-8)(\ell^2-\frac{11}{16})`.

    Raises
    ------
    ValueError
        If a size is below 1 or not finite.

    Notes
    -----
    Source: ours; proved in the book.

    Examples
    --------
    >>> critical_copies([2, 3, 4, 6, 10]).round(2).tolist()
    [4.14, 10.3, 18.96, 43.71, 122.91]
    """
    size = np.asarray(size, dtype=float)
    if not np.all((size >= 1) & np.isfinite(size)):
        raise ValueError(f"size must be finite and at least 1, got {size}")
    return _Numbers.of(1.0).delta * (1 / _Numbers.of(size).pull - 1)


def critical_width(k: int) -> float:
    r"""Compute the width at which the best copy-average point breaks.

    Parameters
    ----------
    k : int
        Teacher neurons, 2 or more.

    Returns
    -------
    float
        The real ``n`` with :math:`n-1` equal to
        :func:`critical_copies` of :math:`k-n+1`: the point is a minimum for
        whole ``n`` below, and a saddle for ``n`` above that are less than
        ``k``.

    Raises
    ------
    ValueError
        If ``k`` is not a whole number >= 2.

    Notes
    -----
    About :math:`k-\sqrt{k/(16/\sqrt3-8)}`.

    Source: ours.

    Examples
    --------
    >>> round(critical_width(12), 3), round(critical_width(20), 3)
    (10.159, 17.281)
    """
    k = whole_number(k, "k", 2)
    return float(brentq(lambda n: n - 1 - critical_copies(k - n + 1), 1, k))
