r"""What moving one learnable entry does to the labels.

Each column is an outer product, or a sum of outer products over time: where
the entry's neuron leads, times what reaches it. Labels are ordered row by
row: entry ``a m + c`` is output ``a`` at example ``c``.
"""

from __future__ import annotations

import numpy as np

from helpers.allocation.allocations import Allocation, check_allocation
from helpers.allocation.networks import (
    LinearRNN,
    ShallowReLU,
    check_lrnn,
    lffn_forward,
    lrnn_states,
    observability_matrix,
)
from helpers.core.checks import check_finite

PARTS = ("encoder", "recurrent", "decoder")


def _products(left, right, allocation, shape) -> np.ndarray:
    """Columns ``sum_s left[s][:, row] (x) right[s][col]``.

    ``left (..., S, d, n1)``, ``right (..., S, n0, m)``.
    """
    rows, cols = check_allocation(allocation, shape)
    lead = np.broadcast_shapes(
        left.shape[:-3], right.shape[:-3], rows.shape[:-1]
    )
    S, d, _ = left.shape[-3:]
    m, p = right.shape[-1], rows.shape[-1]
    left = np.broadcast_to(left, (*lead, *left.shape[-3:]))
    right = np.broadcast_to(right, (*lead, *right.shape[-3:]))
    rows = np.broadcast_to(rows, (*lead, p))
    cols = np.broadcast_to(cols, (*lead, p))
    where = np.broadcast_to(rows[..., None, None, :], (*lead, S, d, p))
    led = np.take_along_axis(left, where, -1)
    where = np.broadcast_to(cols[..., None, :, None], (*lead, S, p, m))
    reached = np.take_along_axis(right, where, -2)
    J = np.einsum("...sap,...spc->...acp", led, reached)
    return J.reshape(*lead, d * m, p)


def lrnn_jacobian(
    net: LinearRNN, X, allocation: Allocation, part: str = "recurrent"
) -> np.ndarray:
    r"""Jacobian of a linear RNN's labels in entries of one of its matrices.

    For entry :math:`(j, l)` of ``W`` the column is
    :math:`\sum_{s=1}^{T-1} (D W^{T-1-s} e_j) \otimes h_s[l]`; for ``B``,
    :math:`\sum_t (D W^{T-t} e_j) \otimes x_t[l]`; for ``D``,
    :math:`e_j \otimes h_T[l]`.

    Parameters
    ----------
    net : LinearRNN
        The student at its present weights.
    X : array_like (..., T, b, m)
    allocation : Allocation
    part : {"encoder", "recurrent", "decoder"}

    Returns
    -------
    numpy.ndarray (..., d m, p)

    Raises
    ------
    ValueError
        If an argument does not fit.

    Notes
    -----
    Cost :math:`O(T d m p)` and the states. Source: ours.

    Examples
    --------
    >>> net = LinearRNN([[1.0]], [[0.5]], [[2.0]])
    >>> X = np.ones((3, 1, 1))
    >>> lrnn_jacobian(net, X, Allocation([0], [0]))  # 2 (1.5 + 0.5 * 1)
    array([[4.]])
    """
    if part not in PARTS:
        raise ValueError(f"part must be one of {PARTS}, got {part!r}")
    net = check_lrnn(net)
    h = lrnn_states(net, X)
    T, d, n = h.shape[-3], net.D.shape[-2], net.W.shape[-1]
    if part == "decoder":
        left, right = np.eye(d)[None], h[..., -1:, :, :]
        return _products(left, right, allocation, net.D.shape[-2:])
    onward = observability_matrix(net, T)
    onward = onward.reshape(*onward.shape[:-2], T, d, n)  # D W^(T-1) first
    if part == "encoder":
        X = np.asarray(X, dtype=np.float64)
        return _products(onward, X, allocation, net.B.shape[-2:])
    return _products(
        onward[..., 1:, :, :],
        h[..., :-1, :, :],
        allocation,
        net.W.shape[-2:],
    )


def lffn_jacobian(layers, X, allocations) -> np.ndarray:
    r"""Jacobian of a linear feedforward network in entries of its layers.

    The column of entry :math:`(j, c)` of layer ``l`` is
    :math:`(W_L\cdots W_{l+1}) e_j \otimes (W_{l-1}\cdots W_1 X)[c]`.

    Parameters
    ----------
    layers : list of array_like (..., n_l, n_{l-1})
    X : array_like (..., n_0, m)
    allocations : list
        One a layer, an Allocation or None.

    Returns
    -------
    numpy.ndarray (..., d m, p)
        Columns in the order of the layers.

    Raises
    ------
    ValueError
        If the numbers of layers and allocations differ, nothing learns, or
        shapes do not fit.

    Notes
    -----
    Source: ours.

    Examples
    --------
    >>> J = lffn_jacobian([[[2.0]], [[3.0]]], [[1.0, 0.5]],
    ...                   [Allocation([0], [0]), None])
    >>> J.ravel()
    array([3. , 1.5])
    """
    if len(layers) != len(allocations) or all(a is None for a in allocations):
        raise ValueError(
            f"allocations must be {len(layers)}, one a layer, not all None"
        )
    lffn_forward(layers, X)
    layers = [np.asarray(W, dtype=np.float64) for W in layers]
    Z, P = [np.asarray(X, np.float64)], [np.eye(layers[-1].shape[-2])]
    for W in layers[:-1]:
        Z.append(W @ Z[-1])
    for W in layers[:0:-1]:
        P.append(P[-1] @ W)
    parts = [
        _products(
            P[-1 - i][..., None, :, :], Z[i][..., None, :, :], a, W.shape[-2:]
        )
        for i, (W, a) in enumerate(zip(layers, allocations, strict=True))
        if a is not None
    ]
    lead = np.broadcast_shapes(*(J.shape[:-2] for J in parts))
    parts = [np.broadcast_to(J, (*lead, *J.shape[-2:])) for J in parts]
    return np.concatenate(parts, axis=-1)


def relu_jacobian(
    net: ShallowReLU, X, allocation: Allocation, derivative=None
) -> np.ndarray:
    r"""Jacobian of a shallow network in entries of its first layer.

    The column of entry :math:`(j, l)` is
    :math:`D e_j \otimes (\sigma'(z_j)\, x[l])`, :math:`z = Bx`.

    Parameters
    ----------
    net : ShallowReLU
    X : array_like (..., b, m)
    allocation : Allocation
    derivative : callable, optional
        Of the activation; of ReLU by default, 0 at 0.

    Returns
    -------
    numpy.ndarray (..., d m, p)

    Raises
    ------
    ValueError
        If shapes do not fit or an entry is not finite.

    Notes
    -----
    Source: ours.

    Examples
    --------
    >>> net = ShallowReLU([[1.0], [-1.0]], [[3.0, 4.0]])
    >>> relu_jacobian(net, [[2.0, -5.0]], Allocation([0, 1], [0, 0]))
    array([[  6.,   0.],
           [  0., -20.]])
    """
    B, D, X = check_finite(B=net.B, D=net.D, X=X)
    rows, cols = check_allocation(allocation, B.shape[-2:])
    z = B @ X
    slope = (z > 0).astype(float) if derivative is None else derivative(z)
    lead = np.broadcast_shapes(
        D.shape[:-2], z.shape[:-2], X.shape[:-2], rows.shape[:-1]
    )
    p, m, d = rows.shape[-1], X.shape[-1], D.shape[-2]

    def pick(A, index, axis):
        A = np.broadcast_to(A, (*lead, *A.shape[-2:]))
        index = np.broadcast_to(index, (*lead, p))
        if axis == -1:
            where = np.broadcast_to(index[..., None, :], (*lead, d, p))
        else:
            where = np.broadcast_to(index[..., :, None], (*lead, p, m))
        return np.take_along_axis(A, where, axis)

    reach = pick(slope, rows, -2) * pick(X, cols, -2)
    J = np.einsum("...ap,...pc->...acp", pick(D, rows, -1), reach)
    return J.reshape(*lead, d * m, p)
