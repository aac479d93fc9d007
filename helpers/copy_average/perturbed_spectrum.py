r"""The Hessian at a perturbed n-copy, taken apart by symmetry.

Permutations of the student neurons, and of the teacher neurons that nobody
copies, leave the point as it is. They split the Hessian into one block of
size four, one of size five that is repeated, and six numbers, all of them
functions of a real number of neurons.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from helpers.copy_average.perturbed_family import PerturbedCopy, arcsine

__all__ = ["perturbed_copy_spectrum", "symmetric_block", "unstable_block"]


class _Forms:
    """The arcsine and its derivatives at the inner products of a point."""

    def __init__(self, point: PerturbedCopy) -> None:
        self.k, self.n = point.k, point.n
        self.a, self.A, self.B, self.C = point.lifted
        A, B, C, n = self.A, self.B, self.C, self.n
        self.rest = self.k - n
        self.S = A * A + (n - 1) * B * B + self.rest * C * C
        self.own = arcsine(self.S)
        self.other = arcsine(2 * A * B + (n - 2) * B * B + self.rest * C * C)
        self.bend = [arcsine(x / math.sqrt(2))[2] / 2 for x in (A, B, C)]

    def to_weights(self, block: NDArray, own: NDArray, y: NDArray) -> NDArray:
        """From lifted to plain weights: dy = (dw - y (y.dw)) / sqrt(D)."""
        jacobian = np.eye(len(own)) - np.outer(y, own)
        jacobian[1:] *= math.sqrt(1 - self.S)
        return 4 / math.pi * jacobian.T @ block @ jacobian


def _square(x: NDArray) -> NDArray:
    return np.outer(x, x)


def _both(x: NDArray, y: NDArray) -> NDArray:
    return np.outer(x, y) + np.outer(y, x)


def symmetric_block(point: PerturbedCopy) -> NDArray:
    r"""Compute the Hessian on moves that all neurons make alike.

    Parameters
    ----------
    point : PerturbedCopy
        With :math:`1<n<k`, real.

    Returns
    -------
    ndarray, shape (4, 4)
        In an orthonormal basis of such moves of the weights: outgoing, own,
        other, uncopied. Its eigenvalues are simple eigenvalues of the full
        Hessian.

    Raises
    ------
    ValueError
        If ``n`` is 1 or ``k``, where there are fewer such moves.

    Notes
    -----
    Source: ours.

    Examples
    --------
    >>> from helpers.copy_average.perturbed_copy import perturbed_copy_family
    >>> block = symmetric_block(perturbed_copy_family(12, 8))
    >>> bool(np.linalg.eigvalsh(block)[0] > 0)
    True
    """
    _need_inside(point, 1)
    f = _Forms(point)
    a, n, (f0, f1, f2), (g0, g1, g2) = f.a, f.n, f.own, f.other
    unit, (A, B, C), rest = np.eye(4), (f.A, f.B, f.C), f.rest
    own = np.array([0, A, (n - 1) * B, rest * C])
    cross = np.array([0, B, A + (n - 2) * B, rest * C])
    gram = np.diag([0, 1, n - 1, rest])
    overlap = np.diag([0, 0, n - 2, rest]) + _both(unit[1], unit[2])
    block = _square(unit[0]) * (f0 + (n - 1) * g0)
    block += a * _both(unit[0], f1 * own + (n - 1) * g1 * cross)
    block += a * a * (f1 * gram + (n - 1) * g1 * overlap)
    block += 2 * a * a * (f2 * _square(own) + (n - 1) * g2 * _square(cross))
    block -= a * np.diag([0, *f.bend]) * gram
    block = f.to_weights(block, own, np.array([0, A, B, C]))
    scale = np.sqrt([1, 1, n - 1, rest])
    return block / np.outer(scale, scale)


def _need_inside(point: PerturbedCopy, least: int) -> None:
    if not least < point.n < point.k:
        raise ValueError(
            f"point must have {least} < n < k, got n={point.n}, k={point.k}"
        )


def unstable_block(point: PerturbedCopy) -> NDArray:
    r"""Compute the Hessian on moves that the neurons make unlike.

    Neuron ``i`` moves in proportion to :math:`x_i`, with
    :math:`\sum_ix_i=0`: one neuron gives way, another takes over. Such moves
    come in five kinds, for each of the :math:`n-1` dimensions of ``x``:
    outgoing weights; own coefficients; the other coefficients, by the mover
    or by the one it looks at, in the combinations :math:`x_i+x_j` and
    :math:`x_i-x_j`; and the coefficients on uncopied neurons.

    Parameters
    ----------
    point : PerturbedCopy
        With :math:`2<n<k`, real.

    Returns
    -------
    ndarray, shape (5, 5)
        In an orthonormal basis of such moves of the weights. Each of its
        eigenvalues is an eigenvalue of the full Hessian, :math:`n-1` times.

    Raises
    ------
    ValueError
        If ``n`` is at most 2, where moves :math:`x_i+x_j` vanish, or
        ``n`` is ``k``.

    Notes
    -----
    The block of the standard representation of the permutations of the
    neurons; its entries are functions of a real ``n``.

    Source: ours.

    Examples
    --------
    >>> from helpers.copy_average.perturbed_copy import perturbed_copy_family
    >>> blocks = [
    ...     unstable_block(perturbed_copy_family(12, n)) for n in (6, 7)
    ... ]
    >>> [bool(np.linalg.eigvalsh(block)[0] > 0) for block in blocks]
    [False, True]
    """
    _need_inside(point, 2)
    return _unlike(point, [0, 1, 2, 3, 4])


def _unlike(point: PerturbedCopy, kept: list[int]) -> NDArray:
    f = _Forms(point)
    a, n, (f0, f1, f2), (g0, g1, g2) = f.a, f.n, f.own, f.other
    unit, (A, B, C), rest = np.eye(5), (f.A, f.B, f.C), f.rest
    # y_i.dy_i = x_i own, y_j.dy_i = x_i mine + x_j yours, sum of all dy
    own = np.array([0, A, (n - 1) * B, -B, rest * C])
    mine = np.array([0, B, A + (n - 2) * B, -B, rest * C])
    yours = np.array([0, 0, 0, A - B, 0])
    total = np.array([0, 1, -1, n - 1, 0])
    twist = _both(unit[2], unit[3])
    gram = np.diag([0, 1, n - 1, n - 1, rest]) - twist
    block = _square(unit[0]) * (f0 - g0)
    block += a * _both(unit[0], f1 * own + g1 * ((n - 1) * yours - mine))
    block += a * a * ((f1 - g1) * gram + g1 * _square(total))
    both, mixed = _square(mine) + _square(yours), _both(mine, yours)
    pairs = (n - 2) * (both + mixed)
    block += a * a * (2 * f2 * _square(own) + g2 * pairs)
    bend = np.diag([0, *f.bend[:2], f.bend[1], f.bend[2]])
    block -= a * (bend * gram - f.bend[1] * twist)
    block = f.to_weights(block, own, np.array([0, A, B, 0, C]))
    basis = np.eye(5)
    basis[2:4, 2:4] = [[1, 1], [1, -1]]
    squares = np.diag(basis.T @ gram @ basis) + unit[0]
    basis = (basis / np.sqrt(np.where(squares > 0, squares, 1)))[:, kept]
    return basis.T @ block @ basis


def _scalars(point: PerturbedCopy) -> dict[str, float]:
    """Eigenvalues that symmetry leaves alone, by kind of move."""
    f = _Forms(point)
    alike = f.a**2 * (f.own[1] + (f.n - 1) * f.other[1])
    unlike = f.a**2 * (f.own[1] - f.other[1])
    _, other, uncopied = (f.a * bend for bend in f.bend)
    exchange = 2 * f.a**2 * f.other[2] * (f.A - f.B) ** 2
    values = {
        "outside, alike": alike,
        "outside, unlike": unlike,
        "among uncopied, alike": alike - uncopied,
        "among uncopied, unlike": unlike - uncopied,
        "turning pairs": unlike - other,
        "approaching pairs": unlike - other + exchange,
    }
    scale = 4 / math.pi * (1 - f.S)
    return {name: scale * value for name, value in values.items()}


def perturbed_copy_spectrum(
    point: PerturbedCopy, d: int | None = None
) -> list[tuple[str, float, int]]:
    r"""Compute all eigenvalues of the Hessian at a perturbed n-copy point.

    Symmetry splits the :math:`n(d+1)` dimensions into the four moves of
    :func:`symmetric_block`, the five of :func:`unstable_block`, :math:`n-1`
    times each, and six kinds whose eigenvalue is one formula.

    Parameters
    ----------
    point : PerturbedCopy
        Of whole ``n`` with :math:`1<n<k`.
    d : int, optional
        Input dimension, at least ``k``; ``k + 1`` if not given.

    Returns
    -------
    list of (str, float, int)
        Kind of move, eigenvalue, multiplicity; multiplicities are positive
        and add up to :math:`n(d+1)`.

    Raises
    ------
    ValueError
        If ``n`` is not whole or out of range, or ``d`` is below ``k``.

    Notes
    -----
    :math:`O(1)`, where the full matrix costs :math:`O(n^3d^3)`.

    Source: ours.

    Examples
    --------
    >>> from helpers.copy_average.perturbed_copy import perturbed_copy_family
    >>> rows = perturbed_copy_spectrum(perturbed_copy_family(12, 8))
    >>> len(rows), sum(times for _, _, times in rows)
    (15, 112)
    """
    _need_inside(point, 1)
    k, n = point.k, int(point.n)
    d = k + 1 if d is None else d
    if n != point.n or d < k:
        raise ValueError(
            f"n must be whole and d at least k, got n={point.n}, d={d}, k={k}"
        )
    unlike = _unlike(point, [0, 1, 2, 3, 4] if n > 2 else [0, 1, 3, 4])
    rows = [
        ("alike", x, 1) for x in np.linalg.eigvalsh(symmetric_block(point))
    ]
    rows += [("unlike", x, n - 1) for x in np.linalg.eigvalsh(unlike)]
    times = {
        "outside, alike": d - k,
        "outside, unlike": (n - 1) * (d - k),
        "among uncopied, alike": k - n - 1,
        "among uncopied, unlike": (n - 1) * (k - n - 1),
        "turning pairs": (n - 1) * (n - 2) // 2,
        "approaching pairs": n * (n - 3) // 2,
    }
    rows += [(name, x, times[name]) for name, x in _scalars(point).items()]
    return [(name, float(x), count) for name, x, count in rows if count > 0]
