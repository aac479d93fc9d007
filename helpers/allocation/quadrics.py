r"""Recurrent allocations as polynomial systems.

With three steps the labels are quadratic in the learned entries of ``W``,
with one learned entry they are a polynomial in one variable whatever the
number of steps, and with the states as further unknowns they are quadratic
for every number of steps.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from helpers.allocation.allocations import (
    Allocation,
    check_allocation,
    with_entries,
)
from helpers.allocation.networks import LinearRNN, check_lrnn
from helpers.core.checks import check_finite, check_sizes
from helpers.core.randomness import Seed, as_generator
from helpers.core.tolerances import REAL_ROOT, ROUNDING


class Quadrics(NamedTuple):
    """``w'Q_i w + l_i w + c_i``: ``Q (K, c, p, p)``, ``linear (K, c, p)``,
    ``constant (K, c)``."""

    Q: np.ndarray
    linear: np.ndarray
    constant: np.ndarray

    def __call__(self, w) -> np.ndarray:
        """Values at ``w (K, p)``, real or complex: ``(K, c)``."""
        half = np.einsum("kcpq,kq->kcp", self.Q, w)
        return np.einsum("kcp,kp->kc", half + self.linear, w) + self.constant

    def homogeneous(self) -> np.ndarray:
        """Symmetric forms in ``(1, w)``: ``(K, c, p + 1, p + 1)``."""
        K, c, p = self.linear.shape
        form = np.empty((K, c, p + 1, p + 1))
        form[..., 0, 0] = self.constant
        form[..., 0, 1:] = form[..., 1:, 0] = self.linear / 2
        form[..., 1:, 1:] = self.Q
        return form


def lrnn_quadrics(net: LinearRNN, X, Y, allocation: Allocation) -> Quadrics:
    r"""The match of a three-step recurrent allocation, as quadrics.

    :math:`y=D\bigl(W(Wh_1+Bx_2)+Bx_3\bigr)`, :math:`h_1=Bx_1`, expanded in
    the learned entries of ``W``. The quadratic part couples two entries only
    if the column of one is the row of the other.

    Parameters
    ----------
    net : LinearRNN
        Students, stacked ``(K, ...)``.
    X : array_like (K, 3, b, m)
    Y : array_like (K, d, m)
    allocation : Allocation
        Entries of ``W``, ``(p,)`` or ``(K, p)``.

    Returns
    -------
    Quadrics
        With :math:`c=dm` equations.

    Raises
    ------
    ValueError
        If there are not three steps or shapes do not fit.

    Notes
    -----
    Source: ours; a special case of Lemma 3.3 in our reconstruction.

    Examples
    --------
    One neuron: D (w (w h_1 + B x_2) + B x_3) = y.

    >>> net = LinearRNN([[[1.0]]], [[[0.0]]], [[[1.0]]])
    >>> q = lrnn_quadrics(net, np.ones((1, 3, 1, 1)), [[[3.0]]], ([0], [0]))
    >>> q.Q.item(), q.linear.item(), q.constant.item()
    (1.0, 1.0, -2.0)
    """
    net = check_lrnn(net)
    X, Y = check_finite(X=X, Y=Y)
    if X.ndim != 4 or X.shape[1] != 3 or net.B.ndim != 3:
        raise ValueError(
            f"X must have shape (K, 3, b, m) and the network (K, ...), got "
            f"{X.shape} and {net.B.shape}"
        )
    K, n, _ = net.B.shape
    rows, cols = check_allocation(allocation, (n, n))
    p, m, d = rows.shape[-1], X.shape[-1], net.D.shape[1]
    rows, cols = (np.broadcast_to(a, (K, p)) for a in (rows, cols))
    W0 = with_entries(net.W, Allocation(rows, cols), np.zeros((K, p)))
    driven = net.B[:, None] @ X
    first = driven[:, 0]
    second = W0 @ first + driven[:, 1]
    constant = net.D @ (W0 @ second + driven[:, 2]) - Y

    def pick(A, index, axis):
        shape = (K, p, 1) if axis == 1 else (K, 1, p)
        where = index.reshape(shape)
        width = A.shape[2] if axis == 1 else A.shape[1]
        size = (K, p, width) if axis == 1 else (K, width, p)
        return np.take_along_axis(A, np.broadcast_to(where, size), axis)

    out = pick(net.D, rows, 2)  # (K, d, p), where an entry's row leads
    later = pick(net.D @ W0, rows, 2)
    linear = np.einsum("kap,kpm->kamp", out, pick(second, cols, 1))
    linear += np.einsum("kap,kpm->kamp", later, pick(first, cols, 1))
    meets = cols[:, :, None] == rows[:, None, :]  # entry q reads what r writes
    Q = np.einsum("kap,kpq,kqm->kampq", out, meets, pick(first, cols, 1))
    Q = (Q + np.swapaxes(Q, -1, -2)) / 2
    c = d * m
    return Quadrics(
        Q.reshape(K, c, p, p), linear.reshape(K, c, p), constant.reshape(K, c)
    )


def kostlan_quadrics(K: int, N: int, rng: Seed) -> np.ndarray:
    r"""Random quadratic forms in ``N + 1`` variables, Kostlan's law.

    Symmetric matrices with independent Gaussian entries, variance 1 on the
    diagonal and 1/2 off it; the law does not change under rotations.

    Parameters
    ----------
    K, N : int
        Systems, and equations in each.
    rng : seed or Generator

    Returns
    -------
    numpy.ndarray (K, N, N + 1, N + 1)

    Raises
    ------
    ValueError
        If a size is not positive.

    Notes
    -----
    The mean number of real solutions is :math:`2^{N/2}`. Source: Shub and
    Smale (1993); Kostlan.

    Examples
    --------
    >>> kostlan_quadrics(2, 3, 0).shape
    (2, 3, 4, 4)
    """
    check_sizes(K=K, N=N)
    A = as_generator(rng).normal(size=(K, N, N + 1, N + 1))
    # half the sum with the transpose has variances 1 and 1/2
    return (A + np.swapaxes(A, -1, -2)) / 2


def single_weight_polynomial(net: LinearRNN, X, Y, entry) -> np.ndarray:
    r"""The match of one learned entry of ``W``, as a polynomial in it.

    Parameters
    ----------
    net : LinearRNN
        Students, stacked ``(K, ...)``, with one output.
    X : array_like (K, T, b, 1)
        One example.
    Y : array_like (K, 1, 1)
    entry : (int, int)
        Row and column.

    Returns
    -------
    numpy.ndarray (K, T)
        Coefficients, the constant first. For a self-connection the degree is
        :math:`T-1`, otherwise :math:`\lceil(T-1)/2\rceil`: between two uses
        of the entry there must be another step.

    Raises
    ------
    ValueError
        If there is more than one output or example, or the entry does not
        exist.

    Notes
    -----
    Source: ours (section 2.10 of the reconstruction).

    Examples
    --------
    >>> net = LinearRNN([[[1.0]]], [[[9.0]]], [[[1.0]]])
    >>> single_weight_polynomial(net, np.ones((1, 3, 1, 1)), [[[3.0]]], (0, 0))
    array([[-2.,  1.,  1.]])
    """
    net = check_lrnn(net)
    X, Y = check_finite(X=X, Y=Y)
    if X.ndim != 4 or X.shape[-1] != 1 or net.D.shape[-2] != 1:
        raise ValueError(
            "X must be (K, T, b, 1) and the network must have one output, "
            f"got {X.shape} and D {net.D.shape}"
        )
    K, T, n = X.shape[0], X.shape[1], net.W.shape[-1]
    i, j = entry
    check_allocation(([i], [j]), (n, n))
    W0 = with_entries(net.W, Allocation([i], [j]), np.zeros((K, 1)))
    driven = (net.B[:, None] @ X)[..., 0]
    h = np.zeros((K, T, n))  # coefficient, then neuron
    h[:, 0] = driven[:, 0]
    for t in range(1, T):
        stepped = np.einsum("knm,kcm->kcn", W0, h)
        stepped[:, 1:, i] += h[:, :-1, j]
        stepped[:, 0] += driven[:, t]
        h = stepped
    found = np.einsum("kn,kcn->kc", net.D[:, 0], h)
    found[:, 0] -= Y.reshape(K)
    return found


def polynomial_degree(coefficients, rtol: float = ROUNDING) -> np.ndarray:
    """Degree of each polynomial, leading rounding dropped; -1 for zero.

    Parameters
    ----------
    coefficients : array_like (K, T)
        Constant first.
    rtol : float
        Smaller coefficients, relative to the largest, are zero.

    Returns
    -------
    numpy.ndarray of int (K,)

    Notes
    -----
    Source: ours.

    Examples
    --------
    >>> polynomial_degree([[1.0, 2.0, 0.0], [0.0, 0.0, 0.0]])
    array([ 1, -1])
    """
    (c,) = check_finite(coefficients=coefficients)
    size = np.abs(c)
    big = (size > rtol * size.max(axis=1, keepdims=True)) & (size > 0)
    last = c.shape[1] - 1 - np.argmax(big[:, ::-1], axis=1)
    return np.where(big.any(axis=1), last, -1)


def real_root_counts(coefficients, degree: int) -> np.ndarray:
    """Real roots of polynomials of one degree, by companion matrices.

    Parameters
    ----------
    coefficients : array_like (K, degree + 1 or more)
        Constant first; entries beyond the degree are ignored.
    degree : int
        At least 1; the coefficient there must not be zero.

    Returns
    -------
    numpy.ndarray of int (K,)

    Raises
    ------
    ValueError
        If the degree is not positive or a leading coefficient is zero.

    Notes
    -----
    Cost :math:`O(d^3)` each. Source: ours.

    Examples
    --------
    >>> real_root_counts([[-1.0, 0.0, 1.0], [1.0, 0.0, 1.0]], 2)
    array([2, 0])
    """
    (c,) = check_finite(coefficients=coefficients)
    check_sizes(degree=degree)
    if c.shape[1] <= degree or not c[:, degree].all():
        raise ValueError(
            f"coefficients must have nonzero entries at degree {degree}"
        )
    K = len(c)
    companion = np.zeros((K, degree, degree))
    companion[:, np.arange(1, degree), np.arange(degree - 1)] = 1
    companion[:, :, -1] = -c[:, :degree] / c[:, degree : degree + 1]
    roots = np.linalg.eigvals(companion)
    real = np.abs(roots.imag) <= REAL_ROOT * (1 + np.abs(roots))
    return real.sum(axis=1)
