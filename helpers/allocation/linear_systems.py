r"""Allocations whose labels are affine in what is learned.

The decoder alone, the encoder alone and one layer of a linear feedforward
network: the labels are :math:`M w + \text{const}`, so a match is a solution of
a linear system, and counting learnable entries per row and per column says
much, though not all, about its rank.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from helpers.allocation.allocations import (
    Allocation,
    check_allocation,
    with_entries,
)
from helpers.allocation.jacobians import lffn_jacobian, lrnn_jacobian
from helpers.allocation.networks import (
    LinearRNN,
    check_lrnn,
    lffn_forward,
    lrnn_forward,
)
from helpers.allocation.ranks import column_rank_cap, row_rank_cap
from helpers.core.checks import check_finite, check_sizes
from helpers.core.tolerances import RANK_RELATIVE


class AffineSystem(NamedTuple):
    """``M (..., d m, p)`` and ``r (..., d m)``: a match solves ``M w = r``."""

    M: np.ndarray
    r: np.ndarray


class Conditions(NamedTuple):
    """Whether the counts over rows and over columns allow full rank."""

    rows: bool
    columns: bool


def _missing(Y, frozen) -> np.ndarray:
    (Y,) = check_finite(Y=Y)
    if Y.shape[-2:] != frozen.shape[-2:]:
        raise ValueError(
            f"Y must have shape (..., {frozen.shape[-2]}, "
            f"{frozen.shape[-1]}), got {Y.shape}"
        )
    rest = Y - frozen
    return rest.reshape(*rest.shape[:-2], -1)


def _learned_to_zero(matrix, allocation) -> np.ndarray:
    rows, _ = check_allocation(allocation, matrix.shape[-2:])
    return with_entries(matrix, allocation, np.zeros(rows.shape))


def decoder_system(
    net: LinearRNN, X, Y, allocation: Allocation
) -> AffineSystem:
    r"""Equations for learnable entries of the decoder ``D``.

    Parameters
    ----------
    net : LinearRNN
        The student. The values of its learnable entries do not matter.
    X : array_like (..., T, b, m)
    Y : array_like (..., d, m)
        Labels.
    allocation : Allocation
        Entries of ``D``.

    Returns
    -------
    AffineSystem

    Raises
    ------
    ValueError
        If a shape does not fit, an entry does not exist or a number is not
        finite.

    Notes
    -----
    Rows of ``D`` do not meet: ``M`` is block diagonal after a permutation.
    Source: ours (section 2.4 of the reconstruction).

    Examples
    --------
    One neuron with state 3 and label 6: the weight must be 2.

    >>> net = LinearRNN([[1.0]], [[0.0]], [[9.0]])
    >>> decoder_system(net, [[[3.0]]], [[6.0]], Allocation([0], [0]))
    AffineSystem(M=array([[3.]]), r=array([6.]))
    """
    net = check_lrnn(net)
    M = lrnn_jacobian(net, X, allocation, "decoder")
    rest = net._replace(D=_learned_to_zero(net.D, allocation))
    return AffineSystem(M, _missing(Y, lrnn_forward(rest, X)))


def encoder_system(
    net: LinearRNN, X, Y, allocation: Allocation
) -> AffineSystem:
    r"""Equations for learnable entries of the encoder ``B``.

    The column of entry :math:`(k, c)` is
    :math:`\sum_t (D W^{T-t} e_k) \otimes x_t[c]`.

    Parameters
    ----------
    net : LinearRNN
    X : array_like (..., T, b, m)
    Y : array_like (..., d, m)
    allocation : Allocation
        Entries of ``B``.

    Returns
    -------
    AffineSystem

    Raises
    ------
    ValueError
        As :func:`decoder_system`.

    Notes
    -----
    Source: ours (section 2.5 of the reconstruction).

    Examples
    --------
    >>> net = LinearRNN([[1.0]], [[0.5]], [[2.0]])
    >>> X = [[[1.0]], [[1.0]]]  # M = 2 * (0.5 + 1)
    >>> encoder_system(net, X, [[6.0]], Allocation([0], [0]))
    AffineSystem(M=array([[3.]]), r=array([6.]))
    """
    net = check_lrnn(net)
    M = lrnn_jacobian(net, X, allocation, "encoder")
    rest = net._replace(B=_learned_to_zero(net.B, allocation))
    return AffineSystem(M, _missing(Y, lrnn_forward(rest, X)))


def layer_system(
    layers, X, Y, allocation: Allocation, layer: int
) -> AffineSystem:
    r"""Equations for learnable entries of one layer of a linear network.

    The column of entry :math:`(j, c)` of layer ``l`` is
    :math:`P_{:,j} \otimes Z_{c,:}` with what comes after, :math:`P`, and what
    comes before, :math:`Z`.

    Parameters
    ----------
    layers : list of array_like (..., n_l, n_{l-1})
    X : array_like (..., n_0, m)
    Y : array_like (..., d, m)
    allocation : Allocation
        Entries of ``layers[layer]``.
    layer : int
        Counted from 0.

    Returns
    -------
    AffineSystem

    Raises
    ------
    ValueError
        As :func:`decoder_system`, or if there is no such layer.

    Notes
    -----
    Source: ours (section 2.6 of the reconstruction).

    Examples
    --------
    >>> layer_system([[[5.0]], [[3.0]]], [[1.0]], [[6.0]],
    ...              Allocation([0], [0]), layer=0)
    AffineSystem(M=array([[3.]]), r=array([6.]))
    """
    if isinstance(layer, bool) or layer not in range(len(layers)):
        raise ValueError(
            f"layer must be one of 0..{len(layers) - 1}, got {layer!r}"
        )
    wanted = [allocation if i == layer else None for i in range(len(layers))]
    M = lffn_jacobian(layers, X, wanted)
    rest = [np.asarray(W, dtype=np.float64) for W in layers]
    rest[layer] = _learned_to_zero(rest[layer], allocation)
    return AffineSystem(M, _missing(Y, lffn_forward(rest, X)))


def affine_residual(system: AffineSystem) -> np.ndarray:
    r"""Least relative residual :math:`\min_w\lVert Mw-r\rVert/\lVert r\rVert`.

    Parameters
    ----------
    system : AffineSystem

    Returns
    -------
    numpy.ndarray (...)
        0 where ``r`` is 0.

    Raises
    ------
    ValueError
        If shapes do not fit or a number is not finite.

    Notes
    -----
    ``r`` is projected on the column space of ``M``, whose rank is decided by
    relative singular values; ill-conditioned but solvable systems come out
    near rounding. Source: ours.

    Examples
    --------
    >>> affine_residual(AffineSystem([[1.0], [0.0]], [3.0, 4.0])).round(6)
    np.float64(0.8)
    """
    M, r = check_finite(M=system.M, r=system.r)
    if M.ndim < 2 or r.shape[-1:] != M.shape[-2:-1] or 0 in M.shape[-2:]:
        raise ValueError(
            f"M must be (..., c, p) and r (..., c), got {M.shape} and {r.shape}"
        )
    U, s, _ = np.linalg.svd(M, full_matrices=False)
    kept = (s > RANK_RELATIVE * s[..., :1]).astype(float)
    reached = np.einsum("...cq,...c->...q", U, r) * kept
    rest = r - np.einsum("...cq,...q->...c", U, reached)
    size = np.linalg.norm(r, axis=-1)
    left = np.linalg.norm(rest, axis=-1)
    return np.divide(left, size, out=np.zeros_like(left), where=size > 0)


def learned_counts(allocation: Allocation, shape):
    """Learnable entries of each row and of each column.

    Parameters
    ----------
    allocation : Allocation
        ``(p,)``.
    shape : (n1, n0)

    Returns
    -------
    rows, columns : numpy.ndarray of int (n1,), (n0,)

    Raises
    ------
    ValueError
        If an entry does not exist or the allocation is a stack.

    Notes
    -----
    Source: ours (section 1 of the reconstruction).

    Examples
    --------
    >>> learned_counts(Allocation([0, 0], [0, 2]), (2, 3))
    (array([2, 0]), array([1, 0, 1]))
    """
    rows, cols = check_allocation(allocation, shape)
    if rows.ndim != 1:
        raise ValueError(f"allocation must be one, (p,), got {rows.shape}")
    return (
        np.bincount(rows, minlength=shape[0]),
        np.bincount(cols, minlength=shape[1]),
    )


def decoder_condition(
    allocation: Allocation, n: int, b: int, d: int, T: int, m: int
) -> bool:
    r"""Whether a decoder allocation is maximal: :math:`q_j\ge\min(m,Tb)`.

    With fewer neurons than that no row can have as many entries.

    Parameters
    ----------
    allocation : Allocation
        Entries of ``D``, ``(p,)``.
    n, b, d, T, m : int
        Neurons, inputs, outputs, steps, examples.

    Raises
    ------
    ValueError
        If a size is not positive or an entry does not exist.

    Notes
    -----
    Exact: probability 1 if true and 0 if false. Source: ours (section 2.4 of
    the reconstruction).

    Examples
    --------
    >>> decoder_condition(Allocation([0, 0, 1, 1], [0, 1, 0, 1]),
    ...                   n=4, b=1, d=2, T=3, m=2)
    True
    """
    check_sizes(n=n, b=b, d=d, T=T, m=m)
    q, _ = learned_counts(allocation, (d, n))
    return bool((q >= min(m, T * b)).all())


def encoder_conditions(
    allocation: Allocation, n: int, b: int, d: int, T: int, m: int
) -> Conditions:
    r"""Necessary counts of an encoder allocation.

    Rows: :math:`\sum_k\min(r_k, m\min(d,T))\ge d m_e`; columns:
    :math:`\sum_c\min(q_c, d\min(m,T))\ge d m_e`, with
    :math:`m_e=\min(m,Tb)`.

    Parameters
    ----------
    allocation : Allocation
        Entries of ``B``, ``(p,)``.
    n, b, d, T, m : int

    Raises
    ------
    ValueError
        If a size is not positive or an entry does not exist.

    Notes
    -----
    Not sufficient. Source: ours (section 2.5 of the reconstruction).

    Examples
    --------
    Seven entries of one input channel count as ``T d = 6`` only.

    >>> a = Allocation([0, 1, 2, 3, 4, 5, 6, 0], [0] * 7 + [1])
    >>> encoder_conditions(a, n=7, b=2, d=2, T=3, m=4)
    Conditions(rows=True, columns=False)
    """
    check_sizes(n=n, b=b, d=d, T=T, m=m)
    r, q = learned_counts(allocation, (n, b))
    needed = d * min(m, T * b)
    return Conditions(
        bool(np.minimum(r, m * min(d, T)).sum() >= needed),
        bool(np.minimum(q, d * min(m, T)).sum() >= needed),
    )


def layer_conditions(
    allocation: Allocation, shape, d: int, m: int
) -> Conditions:
    r"""Necessary counts of one learned layer.

    :math:`\sum_j\min(q_j,m)\ge dm` over rows and
    :math:`\sum_c\min(q_c,d)\ge dm` over columns.

    Parameters
    ----------
    allocation : Allocation
        Entries of the layer, ``(p,)``.
    shape : (n_l, n_{l-1})
    d, m : int
        Outputs and examples (no more examples than inputs).

    Raises
    ------
    ValueError
        If a size is not positive or an entry does not exist.

    Notes
    -----
    Not sufficient: two planes in space meet in a line. Source: ours
    (section 2.6 of the reconstruction).

    Examples
    --------
    >>> layer_conditions(Allocation([0, 1], [0, 0]), (2, 2), d=1, m=2)
    Conditions(rows=True, columns=False)
    """
    check_sizes(d=d, m=m)
    rows, columns = learned_counts(allocation, shape)
    return Conditions(
        bool(np.minimum(rows, m).sum() >= d * m),
        bool(np.minimum(columns, d).sum() >= d * m),
    )


def recurrent_conditions(
    allocation: Allocation, n: int, b: int, d: int, T: int, m: int
) -> Conditions:
    r"""Necessary counts of a recurrent allocation.

    For every ``k``: what lies outside the ``k`` heaviest rows, plus the rank
    cap of ``k`` rows, must reach :math:`md`; the same for columns.

    Parameters
    ----------
    allocation : Allocation
        Entries of ``W``, ``(p,)``.
    n, b, d, T, m : int

    Raises
    ------
    ValueError
        If a size is not positive or an entry does not exist.

    Notes
    -----
    Source: ours (section 2.7 (iii) of the reconstruction).

    Examples
    --------
    One row of four entries, two steps, two outputs: rank 2 of 4.

    >>> a = Allocation([0] * 4, [0, 1, 2, 3])
    >>> recurrent_conditions(a, n=4, b=2, d=2, T=2, m=2)
    Conditions(rows=False, columns=True)
    """
    check_sizes(n=n, b=b, d=d, T=T, m=m)
    found = []
    for counts, cap in zip(
        learned_counts(allocation, (n, n)),
        (row_rank_cap, column_rank_cap),
        strict=True,
    ):
        heaviest = np.r_[0, np.cumsum(np.sort(counts)[::-1])]
        bounds = [
            heaviest[-1] - heaviest[k] + cap(n, b, d, T, m, k)
            for k in range(n + 1)
        ]
        found.append(bool(min(bounds) >= m * d))
    return Conditions(*found)


def consecutive_allocation(shape, k: int, p: int) -> Allocation:
    """The first ``k`` rows, columns dealt out in order, round and round.

    Balanced, and special: neighbours in the order share rows.

    Parameters
    ----------
    shape : (n1, n0)
    k, p : int
        Rows, and budget divided as evenly as possible.

    Raises
    ------
    ValueError
        If ``k`` is out of range or the entries of a row would not fit.

    Notes
    -----
    Source: ours; four rows of six entries among twelve columns make the
    counterexample of section 2.6 of the reconstruction.

    Examples
    --------
    >>> consecutive_allocation((3, 4), k=2, p=6).cols
    array([0, 1, 2, 3, 0, 1])
    """
    n1, n0 = shape
    check_sizes(k=k, p=p)
    if k > n1 or p < k or -(-p // k) > n0:
        raise ValueError(
            f"need 1 <= k <= {n1} rows and k <= p <= k * {n0}, got k = {k} "
            f"and p = {p}"
        )
    sizes = np.full(k, p // k) + (np.arange(k) < p % k)
    return Allocation(np.repeat(np.arange(k), sizes), np.arange(p) % n0)
