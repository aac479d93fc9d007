"""Allocations: which entries of a matrix may learn, and how to draw them."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from helpers.core.checks import whole_number
from helpers.core.randomness import Seed, as_generator


class DoesNotFit(ValueError):
    """A budget for which there is no room. Not the same as probability 0."""


class Allocation(NamedTuple):
    """Rows and columns of the learnable entries, each ``(p,)``.

    Several allocations of one size are stacked as ``(K, p)``.
    """

    rows: np.ndarray
    cols: np.ndarray


def check_allocation(allocation, shape) -> Allocation:
    """An allocation whose entries exist, each named once.

    Parameters
    ----------
    allocation : pair of array_like of int, shapes (..., p)
    shape : (int, int)
        Of the matrix.

    Raises
    ------
    ValueError
        If the two differ in shape, an index is not whole or out of range,
        or an entry is named twice.

    Notes
    -----
    Source: ours.

    Examples
    --------
    >>> check_allocation(([0, 1], [2, 2]), (2, 3)).cols
    array([2, 2])
    """
    rows, cols = (np.asarray(part) for part in allocation)
    if rows.shape != cols.shape or rows.ndim < 1:
        raise ValueError(
            f"rows and cols must have the same shape, got {rows.shape} and "
            f"{cols.shape}"
        )
    for name, part, size in (
        ("rows", rows, shape[0]),
        ("cols", cols, shape[1]),
    ):
        if part.size and part.dtype.kind not in "iu":
            raise ValueError(f"{name} must be whole numbers")
        if part.size and not ((part >= 0) & (part < size)).all():
            raise ValueError(
                f"{name} must lie in [0, {size}), got "
                f"{part[(part < 0) | (part >= size)].flat[0]}"
            )
    code = np.sort(rows.astype(np.int64) * shape[1] + cols, axis=-1)
    if (np.diff(code, axis=-1) == 0).any():
        raise ValueError("an allocation must not name an entry twice")
    return Allocation(rows.astype(np.int64), cols.astype(np.int64))


def _fits(p: int, room: int, words: str) -> None:
    p = whole_number(p, "p")
    if p > room:
        raise DoesNotFit(f"p = {p} does not fit: {words} hold {room} entries")


def row_allocation(
    shape, k: int, p: int, rng: Seed, columns: str = "balanced"
) -> Allocation:
    """``p`` entries in ``k`` random rows, as evenly as possible.

    Parameters
    ----------
    shape : (n1, n0)
        Of the matrix.
    k : int
        Learned rows, at most ``n1``.
    p : int
        Budget, at least ``k`` and at most ``k n0``.
    rng : seed or Generator
    columns : {"balanced", "random"}
        Balanced: each row takes the columns used least so far, ties broken
        at random. Random: each row takes any.

    Returns
    -------
    Allocation

    Raises
    ------
    DoesNotFit
        A ``ValueError``: if ``p`` exceeds the room in ``k`` rows.
    ValueError
        If ``k`` or ``p`` is out of range or ``columns`` is unknown.

    Notes
    -----
    Source: ours; "balanced" avoids column clashes, cyclic shifts can still
    hit special positions and random ties do not.

    Examples
    --------
    >>> a = row_allocation((6, 4), k=2, p=8, rng=0)
    >>> sorted(np.bincount(a.rows, minlength=6).tolist())
    [0, 0, 0, 0, 4, 4]
    """
    n1, n0 = shape
    k = whole_number(k, "k", 1, n1)
    _fits(p, k * n0, f"{k} rows of {n0}")
    if p < k:
        raise ValueError(f"p must be at least k = {k}, got {p}")
    if columns not in ("balanced", "random"):
        raise ValueError(
            f"columns must be balanced or random, got {columns!r}"
        )
    rng = as_generator(rng)
    chosen = rng.permutation(n1)[:k]
    sizes = np.full(k, p // k) + (np.arange(k) < p % k)
    used = np.zeros(n0)
    rows, cols = [], []
    for row, size in zip(chosen, sizes, strict=True):
        order = rng.random(n0)
        if columns == "balanced":
            order = order + used
        taken = np.argsort(order)[:size]
        used[taken] += 1
        rows.append(np.full(size, row))
        cols.append(taken)
    return Allocation(np.concatenate(rows), np.concatenate(cols))


def entry_allocation(shape, p: int, rng: Seed) -> Allocation:
    """``p`` entries anywhere, uniformly.

    Parameters
    ----------
    shape : (n1, n0)
        Of the matrix.
    p : int
        Budget.
    rng : seed or Generator

    Raises
    ------
    DoesNotFit
        If the matrix has fewer entries.

    Notes
    -----
    Source: ours.

    Examples
    --------
    >>> entry_allocation((3, 3), 4, 0).rows.shape
    (4,)
    """
    n1, n0 = shape
    _fits(p, n1 * n0, f"{n1} x {n0}")
    code = as_generator(rng).permutation(n1 * n0)[:p]
    return Allocation(code // n0, code % n0)


def diagonal_allocation(n: int, p: int, rng: Seed) -> Allocation:
    """``p`` self-connections of random neurons.

    Parameters
    ----------
    n : int
        Neurons.
    p : int
        Budget.
    rng : seed or Generator

    Raises
    ------
    DoesNotFit
        If there are fewer neurons.

    Notes
    -----
    Source: ours.

    Examples
    --------
    >>> a = diagonal_allocation(5, 3, 0)
    >>> bool((a.rows == a.cols).all())
    True
    """
    _fits(p, n, f"{n} self-connections")
    chosen = as_generator(rng).permutation(n)[:p]
    return Allocation(chosen, chosen.copy())


def cycle_allocation(n: int, p: int, rng: Seed) -> Allocation:
    """One directed cycle through ``p`` random neurons.

    Parameters
    ----------
    n : int
        Neurons.
    p : int
        Budget, the length of the cycle.
    rng : seed or Generator

    Raises
    ------
    DoesNotFit
        If there are fewer neurons.

    Notes
    -----
    Source: ours.

    Examples
    --------
    >>> a = cycle_allocation(5, 3, 0)
    >>> sorted(a.rows) == sorted(a.cols)
    True
    """
    _fits(p, n, f"a cycle through {n} neurons")
    chosen = as_generator(rng).permutation(n)[:p]
    return Allocation(chosen, np.roll(chosen, 1))


def block_allocation(n: int, side: int, rng: Seed) -> Allocation:
    """All entries of a random principal block of ``side`` neurons.

    Parameters
    ----------
    n : int
        Neurons.
    side : int
        Neurons of the block; the budget is its square.
    rng : seed or Generator

    Raises
    ------
    DoesNotFit
        If there are fewer neurons.

    Notes
    -----
    Source: ours.

    Examples
    --------
    >>> block_allocation(5, 2, 0).rows.shape
    (4,)
    """
    _fits(side, n, f"a block of {n} neurons")
    chosen = as_generator(rng).permutation(n)[:side]
    return Allocation(np.repeat(chosen, side), np.tile(chosen, side))


def stack_allocations(allocations) -> Allocation:
    """Allocations of one size as one with shape ``(K, p)``.

    Parameters
    ----------
    allocations : sequence of Allocation
        Each ``(p,)``.

    Raises
    ------
    ValueError
        If there are none or their sizes differ.

    Notes
    -----
    Source: ours.

    Examples
    --------
    >>> stack_allocations([([0], [1]), ([2], [2])]).rows
    array([[0],
           [2]])
    """
    pairs = [tuple(map(np.asarray, a)) for a in allocations]
    if not pairs or len({r.shape for r, _ in pairs}) > 1:
        raise ValueError("allocations must be one or more of one size")
    return Allocation(*(np.stack(part) for part in zip(*pairs, strict=True)))


def allocation_mask(allocation: Allocation, shape) -> np.ndarray:
    """Boolean matrix, true where an entry learns.

    Parameters
    ----------
    allocation : Allocation
    shape : (n1, n0)
        Of the matrix.

    Notes
    -----
    Source: ours.

    Examples
    --------
    >>> allocation_mask(Allocation([0], [1]), (2, 2)).astype(int)
    array([[0, 1],
           [0, 0]])
    """
    rows, cols = check_allocation(allocation, shape)
    mask = np.zeros((*rows.shape[:-1], *shape), dtype=bool)
    if rows.ndim == 1:
        mask[rows, cols] = True
    else:
        np.put_along_axis(
            mask.reshape(*rows.shape[:-1], -1),
            rows * shape[1] + cols,
            True,
            axis=-1,
        )
    return mask


def with_entries(matrix, allocation: Allocation, values) -> np.ndarray:
    """A copy of a matrix (or a stack) with its learnable entries set.

    Parameters
    ----------
    matrix : array_like (..., n1, n0)
    allocation : Allocation
        ``(p,)`` for all, or ``(K, p)`` for a stack of ``K``.
    values : array_like (..., p)

    Notes
    -----
    Source: ours.

    Examples
    --------
    >>> with_entries(np.zeros((2, 2)), Allocation([0], [1]), [5.0])
    array([[0., 5.],
           [0., 0.]])
    """
    matrix = np.asarray(matrix, dtype=np.float64)
    rows, cols = check_allocation(allocation, matrix.shape[-2:])
    values = np.asarray(values, dtype=np.float64)
    lead = np.broadcast_shapes(
        matrix.shape[:-2], rows.shape[:-1], values.shape[:-1]
    )
    n1, n0 = matrix.shape[-2:]
    flat = np.broadcast_to(matrix, (*lead, n1, n0)).reshape(*lead, n1 * n0)
    flat = flat.copy()
    place = np.broadcast_to(rows * n0 + cols, (*lead, rows.shape[-1]))
    np.put_along_axis(flat, place, np.broadcast_to(values, place.shape), -1)
    return flat.reshape(*lead, n1, n0)


def entries(matrix, allocation: Allocation) -> np.ndarray:
    """The learnable entries of a matrix, ``(..., p)``.

    Parameters
    ----------
    matrix : array_like (..., n1, n0)
    allocation : Allocation

    Notes
    -----
    Source: ours.

    Examples
    --------
    >>> entries(np.eye(2), Allocation([0, 1], [0, 0]))
    array([1., 0.])
    """
    matrix = np.asarray(matrix, dtype=np.float64)
    rows, cols = check_allocation(allocation, matrix.shape[-2:])
    n1, n0 = matrix.shape[-2:]
    lead = np.broadcast_shapes(matrix.shape[:-2], rows.shape[:-1])
    flat = np.broadcast_to(matrix, (*lead, n1, n0)).reshape(*lead, n1 * n0)
    place = np.broadcast_to(rows * n0 + cols, (*lead, rows.shape[-1]))
    return np.take_along_axis(flat, place, -1)
