r"""Generic ranks, and caps on them.

A minor of the Jacobian that is not identically zero vanishes on a null set
only, so the rank at one random draw is the generic rank with probability 1.
Floating point can blur it; modulo a prime it cannot.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from helpers.allocation.allocations import Allocation, check_allocation
from helpers.allocation.jacobians import PARTS, lrnn_jacobian
from helpers.allocation.networks import LinearRNN, sample_lrnn
from helpers.core.checks import check_finite, check_sizes, whole_number
from helpers.core.randomness import Seed, as_generator
from helpers.core.tolerances import RANK_RELATIVE

PRIME = 2_147_483_629
"""The largest prime below 2^31 - 2: products of two residues fit int64."""


class GenericRank(NamedTuple):
    """Rank, and the gap in the singular values that decided it.

    ``gap`` is the smallest singular value that counts over the largest that
    does not; infinite if there is none of the latter.
    """

    rank: np.ndarray
    gap: np.ndarray


def generic_rank(J, rtol: float = RANK_RELATIVE) -> GenericRank:
    """Rank of each Jacobian of a stack, by singular values.

    Parameters
    ----------
    J : array_like (..., c, p)
    rtol : float
        Singular values below this fraction of the largest are zero.

    Returns
    -------
    GenericRank
        Arrays of the leading shape.

    Raises
    ------
    ValueError
        If ``J`` is not a matrix, is empty or not finite, or ``rtol`` is not
        in (0, 1).

    Notes
    -----
    A gap below some thousands calls for :func:`rank_modp`. Source: ours.

    Examples
    --------
    >>> generic_rank([[1.0, 0.0], [1.0, 0.0]]).rank
    np.int64(1)
    """
    (J,) = check_finite(J=J)
    if J.ndim < 2 or 0 in J.shape[-2:]:
        raise ValueError(f"J must have shape (..., c, p), got {J.shape}")
    if not 0 < rtol < 1:
        raise ValueError(f"rtol must lie in (0, 1), got {rtol}")
    s = np.linalg.svd(J, compute_uv=False)
    top = s[..., :1]
    counts = (s > rtol * top) & (top > 0)
    rank = counts.sum(axis=-1)
    least = np.where(counts, s, np.inf).min(axis=-1)
    rest = np.where(counts, 0.0, s).max(axis=-1)
    with np.errstate(divide="ignore", invalid="ignore"):
        gap = np.where(rest > 0, least / rest, np.inf)
    return GenericRank(rank, gap)


def rank_modp(M, prime: int = PRIME) -> int:
    r"""Rank of an integer matrix modulo a prime, by elimination.

    Parameters
    ----------
    M : array_like of int (c, p)
    prime : int
        At most 2^31.

    Returns
    -------
    int
        Never above the rank over the rationals; below it only if the prime
        divides all of certain minors.

    Raises
    ------
    ValueError
        If ``M`` is not an integer matrix or the prime too large.

    Notes
    -----
    Cost :math:`O(cp\min(c,p))`, exact. Source: ours.

    Examples
    --------
    >>> rank_modp([[1, 2], [2, 4]]), rank_modp([[1, 2], [2, 5]])
    (1, 2)
    """
    A = np.asarray(M)
    if A.ndim != 2 or A.dtype.kind not in "iu":
        raise ValueError("M must be a matrix of integers")
    if not 2 <= prime <= 2**31:
        raise ValueError(f"prime must lie in [2, 2^31], got {prime}")
    A = A.astype(np.int64) % prime
    rank = 0
    for column in range(A.shape[1]):
        found = np.flatnonzero(A[rank:, column])
        if not found.size:
            continue
        pivot = rank + found[0]
        A[[rank, pivot]] = A[[pivot, rank]]
        A[rank] = A[rank] * pow(int(A[rank, column]), -1, prime) % prime
        below = A[rank + 1 :]
        below -= below[:, column : column + 1] * A[rank] % prime
        below %= prime
        rank += 1
        if rank == A.shape[0]:
            break
    return rank


def _dot(A, B, prime: int) -> np.ndarray:
    """Matrix product modulo a prime, term by term."""
    total = np.zeros((A.shape[0], B.shape[1]), dtype=np.int64)
    for k in range(A.shape[1]):
        total = (total + A[:, k : k + 1] * B[k] % prime) % prime
    return total


def recurrent_rank_modp(
    n: int, b: int, d: int, T: int, m: int, allocation: Allocation, rng: Seed
) -> int:
    """Generic rank of a recurrent allocation, in exact arithmetic.

    Draws network and inputs as residues and eliminates the Jacobian.

    Parameters
    ----------
    n, b, d, T, m : int
        Neurons, inputs, outputs, steps, examples.
    allocation : Allocation
        Entries of ``W``, ``(p,)``.
    rng : seed or Generator

    Returns
    -------
    int
        The generic rank, with probability about one minus its square over
        the prime.

    Raises
    ------
    ValueError
        If a size is not positive or the allocation does not fit.

    Notes
    -----
    Source: ours.

    Examples
    --------
    Two examples, one input: the last input bypasses ``W``.

    >>> recurrent_rank_modp(4, 1, 1, 2, 2, ([0, 1], [0, 1]), 0)
    1
    """
    check_sizes(n=n, b=b, d=d, T=T, m=m)
    rows, cols = check_allocation(allocation, (n, n))
    rng = as_generator(rng)

    def draw(*shape):
        return rng.integers(0, PRIME, shape)

    B, W, D = draw(n, b), draw(n, n), draw(d, n)
    X = draw(T, b, m)
    h = [_dot(B, X[0], PRIME)]
    for t in range(1, T):
        h.append((_dot(W, h[-1], PRIME) + _dot(B, X[t], PRIME)) % PRIME)
    onward = [D]
    for _ in range(T - 2):
        onward.append(_dot(onward[-1], W, PRIME))
    J = np.zeros((d, m, rows.size), dtype=np.int64)
    for s in range(1, T):
        led, reached = onward[T - 1 - s][:, rows], h[s - 1][cols]
        J = (J + led[:, None, :] * reached.T[None] % PRIME) % PRIME
    return rank_modp(J.reshape(d * m, rows.size))


def gauge_cap(n: int, b: int, d: int) -> int:
    r"""Rank that no allocation of ``W`` exceeds, at any ``T`` and ``m``.

    .. math:: n^2-\max(n-b,0)\max(n-d,0)

    A change of basis that leaves ``B`` and ``D`` as they are moves ``W`` and
    no label; this counts what is left.

    Parameters
    ----------
    n, b, d : int

    Raises
    ------
    ValueError
        If a size is not positive.

    Notes
    -----
    Source: ours; it is not in the reconstruction's section 2.7 and bites
    where ``n`` is small against ``T``.

    Examples
    --------
    >>> gauge_cap(10, 1, 1), gauge_cap(2, 3, 1)
    (19, 4)
    """
    check_sizes(n=n, b=b, d=d)
    return n * n - max(n - b, 0) * max(n - d, 0)


def row_rank_cap(n: int, b: int, d: int, T: int, m: int, k: int) -> int:
    r"""An upper bound on the rank of ``k`` whole rows of ``W``.

    .. math::
        \min\Bigl\{k\min(n,(T-1)b),\ \sum_{s=1}^{T-1}(r_s-r_{s-1})
        \min\bigl(d, n, k(T-s)\bigr),\ g\Bigr\}

    with :math:`r_s=\min(m,sb)` and :func:`gauge_cap` ``g``.

    Parameters
    ----------
    n, b, d, T, m : int
        Neurons, inputs, outputs, steps, examples.
    k : int
        Learned rows, from 0 to ``n``.

    Raises
    ------
    ValueError
        If a size is out of range.

    Notes
    -----
    Source: ours (section 2.7 of the reconstruction).

    Examples
    --------
    >>> [row_rank_cap(16, 4, 4, 3, 4, k) for k in (1, 2, 16)]
    [8, 16, 16]
    """
    _check_cap(n, b, d, T, m, k=k)
    reach = [min(m, s * b) for s in range(T)]
    full_d, d = d, min(d, n)
    flags = sum(
        (reach[s] - reach[s - 1]) * min(d, k * (T - s)) for s in range(1, T)
    )
    return min(k * min(n, (T - 1) * b), flags, gauge_cap(n, b, full_d))


def redundant_row_cap(n: int, b: int, d: int, T: int, m: int, k: int) -> int:
    r"""A second bound on ``k`` whole rows, where inputs become redundant.

    .. math:: k(T-1)b-f\max\bigl(0,\ k-(T-2)(\bar d-k)\bigr)

    with :math:`f=(T-1)b-m` and :math:`\bar d=\min(d,n)`, where
    :math:`(T-2)b<m<(T-1)b` and :math:`k\le\bar d`; elsewhere
    :math:`k(T-1)b`, which is no news.

    Parameters
    ----------
    n, b, d, T, m, k : int
        As :func:`row_rank_cap`.

    Raises
    ------
    ValueError
        If a size is out of range.

    Notes
    -----
    Source: ours; it is not in the reconstruction.

    Examples
    --------
    >>> row_rank_cap(12, 2, 4, 4, 5, 3), redundant_row_cap(12, 2, 4, 4, 5, 3)
    (18, 17)
    """
    _check_cap(n, b, d, T, m, k=k)
    reach = min(d, n)
    free = (T - 1) * b - m
    lost = k - (T - 2) * (reach - k)
    if 0 < free < b and k <= reach and lost > 0:
        return k * (T - 1) * b - free * lost
    return k * (T - 1) * b


def column_rank_cap(n: int, b: int, d: int, T: int, m: int, c: int) -> int:
    r"""An upper bound on the rank of ``c`` whole columns of ``W``.

    .. math::
        \min\Bigl\{c\min(n,(T-1)d),\ d\min_{0\le s\le T-1}
        [\min(m,sb)+c(T-1-s)],\ g\Bigr\}

    with :func:`gauge_cap` ``g``; for ``n < d`` the factor ``d`` is ``n``.

    Parameters
    ----------
    n, b, d, T, m : int
    c : int
        Learned columns, from 0 to ``n``.

    Raises
    ------
    ValueError
        If a size is out of range.

    Notes
    -----
    Source: ours (section 2.7 of the reconstruction).

    Examples
    --------
    >>> column_rank_cap(16, 4, 4, 3, 4, 1)
    8
    """
    _check_cap(n, b, d, T, m, c=c)
    full_d, d = d, min(d, n)
    levels = [min(m, s * b) + c * (T - 1 - s) for s in range(T)]
    return min(
        c * min(n, (T - 1) * d), d * min(levels), gauge_cap(n, b, full_d)
    )


def _check_cap(n, b, d, T, m, **part) -> None:
    check_sizes(n=n, b=b, d=d, T=T, m=m)
    [(name, value)] = part.items()
    whole_number(value, name, 0, n)


def min_learned_rows(n: int, b: int, d: int, T: int, m: int) -> int | None:
    r"""Fewest rows of ``W`` whose cap reaches :math:`md`; None if none do.

    Parameters
    ----------
    n, b, d, T, m : int

    Notes
    -----
    :math:`\lceil d/(T-1)\rceil` if :math:`b\ge m` and
    :math:`n\ge m(T-1)`; None beyond the ceiling :math:`m\le(T-1)b`.
    Source: ours.

    Examples
    --------
    >>> min_learned_rows(16, 4, 4, 3, 4), min_learned_rows(8, 2, 2, 3, 5)
    (2, None)
    """
    for k in range(1, n + 1):
        if row_rank_cap(n, b, d, T, m, k) >= m * d:
            return k
    return None


def check_within_ceiling(b: int, T: int, m: int) -> None:
    r"""Refuse more examples than an allocation of ``W`` alone can match.

    Parameters
    ----------
    b, T, m : int
        Inputs, steps, examples.

    Raises
    ------
    ValueError
        If :math:`m>(T-1)b`: the last input bypasses ``W``, so that every
        allocation of ``W`` alone is minimal.

    Notes
    -----
    For the entry of a sweep, where such sizes are a mistake and not a
    result. Source: ours (section 2.7 of the reconstruction).

    Examples
    --------
    >>> check_within_ceiling(b=2, T=3, m=4)
    """
    check_sizes(b=b, T=T, m=m)
    if m > (T - 1) * b:
        raise ValueError(
            f"m must be at most (T - 1) b = {(T - 1) * b}, got {m}: the last "
            "input bypasses W, so no allocation of W alone can match"
        )


def teacher_map_rank(n: int, b: int, d: int, T: int, rng: Seed) -> int:
    r"""Generic rank of the map from all weights to the effective ones.

    A teacher is non-degenerate if it is :math:`Tbd`.

    Parameters
    ----------
    n, b, d, T : int
    rng : seed or Generator

    Raises
    ------
    ValueError
        If a size is not positive.

    Notes
    -----
    Differentiates :math:`K_s = D W^s B` in closed form. Source: ours
    (section 2.2 of the reconstruction).

    Examples
    --------
    >>> teacher_map_rank(1, 1, 1, 5, 0), teacher_map_rank(4, 1, 1, 5, 0)
    (2, 5)
    """
    check_sizes(n=n, b=b, d=d, T=T)
    net = sample_lrnn(1, n, b, d, rng)
    B, W, D = (M[0] for M in net)
    left, right = [D], [B]  # D W^i and W^i B
    for _ in range(T - 1):
        left.append(left[-1] @ W)
        right.append(W @ right[-1])
    blocks = []
    for s in range(T):
        in_B = np.kron(left[s], np.eye(b))
        in_D = np.kron(np.eye(d), right[s].T)
        in_W = np.zeros((d * b, n * n))
        for i in range(s):
            in_W += np.kron(left[i], right[s - 1 - i].T)
        blocks.append(np.hstack([in_B, in_W, in_D]))
    return int(generic_rank(np.vstack(blocks)).rank)


def label_rank(n: int, b: int, d: int, T: int, m: int, rng: Seed) -> int:
    r"""Generic rank of the labels in *all* weights of a linear RNN.

    An allocation has a positive match probability with a teacher of the same
    architecture exactly if its own rank is this.

    Parameters
    ----------
    n, b, d, T, m : int
        Neurons, inputs, outputs, steps, examples.
    rng : seed or Generator

    Raises
    ------
    ValueError
        If a size is not positive.

    Notes
    -----
    Labels of such a teacher have a density exactly if it is :math:`md`. For
    :math:`m\ge Tb` it is :func:`teacher_map_rank`. Source: ours.

    Examples
    --------
    >>> label_rank(1, 1, 1, 5, 5, 0), label_rank(4, 1, 1, 5, 5, 0)
    (2, 5)
    """
    check_sizes(n=n, b=b, d=d, T=T, m=m)
    rng = as_generator(rng)
    net = LinearRNN(*(M[0] for M in sample_lrnn(1, n, b, d, rng)))
    X = rng.normal(size=(T, b, m))
    blocks = []
    for M, part in zip(net, PARTS, strict=True):
        rows, cols = np.indices(M.shape).reshape(2, -1)
        blocks.append(lrnn_jacobian(net, X, Allocation(rows, cols), part))
    return int(generic_rank(np.hstack(blocks)).rank)
