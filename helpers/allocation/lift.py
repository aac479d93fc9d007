r"""The quadratic lift of a recurrent allocation.

Make the states of the learned rows unknowns. The states of all other rows
are then affine in them, and each remaining equation is at most quadratic,
whatever the number of steps.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from helpers.allocation.allocations import Allocation, check_allocation
from helpers.allocation.networks import LinearRNN, check_lrnn, lrnn_states
from helpers.core.checks import check_finite, check_sizes


class LinearCore(NamedTuple):
    """Weights found without iteration, and their relative residual."""

    w: np.ndarray
    residual: float


def _one_problem(net, X, Y, allocation):
    net = check_lrnn(net)
    X, Y = check_finite(X=X, Y=Y)
    n, d = net.W.shape[-1], net.D.shape[-2]
    if net.W.ndim != 2 or X.ndim != 3 or Y.shape != (d, X.shape[-1]):
        raise ValueError(
            "this takes one problem: X (T, b, m) and Y (d, m), got "
            f"{X.shape} and {Y.shape} for d = {d}"
        )
    if X.shape[0] < 2:
        raise ValueError("X must have at least two steps")
    rows, cols = check_allocation(allocation, (n, n))
    if rows.ndim != 1 or not rows.size:
        raise ValueError("allocation must be one allocation, not empty")
    return net, X, Y, rows, cols, np.unique(rows)


def _states(net, X, learned, U) -> np.ndarray:
    """All states, those of the learned rows as given from step 2 on."""
    h = [net.B @ X[0]]
    for t in range(1, X.shape[0]):
        now = net.W @ h[-1] + net.B @ X[t]
        now[learned] = U[t - 1]
        h.append(now)
    return np.stack(h)


def lifted_residual(
    net: LinearRNN, X, Y, allocation: Allocation, w, U
) -> np.ndarray:
    r"""Residual of the lifted system, quadratic in ``(w, U)``.

    :math:`U_t - W_S(w)\,h_{t-1}(U) - B_S x_t` for :math:`t=2..T`, then
    :math:`D\,h_T(U) - Y`.

    Parameters
    ----------
    net : LinearRNN
        One student; its learned entries are ignored.
    X : array_like (T, b, m)
    Y : array_like (d, m)
    allocation : Allocation
        Entries of ``W``, ``(p,)``, in ``k`` rows.
    w : array_like (p,)
    U : array_like (T - 1, k, m)
        States of the learned rows, in increasing order of the rows.

    Returns
    -------
    numpy.ndarray ((T - 1) k m + d m,)

    Raises
    ------
    ValueError
        If an argument does not fit.

    Notes
    -----
    Source: Lemma 3.3 of Schlisselberg and Darshan, in our reconstruction.

    Examples
    --------
    At a student's own states and labels everything vanishes.

    >>> from helpers.allocation.networks import (lrnn_forward, sample_lrnn)
    >>> net = LinearRNN(*(M[0] for M in sample_lrnn(1, 4, 2, 1, 0)))
    >>> X, a = np.ones((3, 2, 1)), Allocation([0, 2], [1, 0])
    >>> U = lrnn_states(net, X)[1:, [0, 2]]
    >>> w = net.W[[0, 2], [1, 0]]
    >>> r = lifted_residual(net, X, lrnn_forward(net, X), a, w, U)
    >>> bool(np.abs(r).max() < 1e-12)
    True
    """
    net, X, Y, rows, cols, learned = _one_problem(net, X, Y, allocation)
    w, U = check_finite(w=w, U=U)
    shape = (X.shape[0] - 1, learned.size, X.shape[2])
    if w.shape != rows.shape or U.shape != shape:
        raise ValueError(
            f"w must have shape {rows.shape} and U {shape}, got {w.shape} "
            f"and {U.shape}"
        )
    W = net.W.copy()
    W[rows, cols] = w
    h = _states(net, X, learned, U)
    moved = W[learned] @ h[:-1] + net.B[learned] @ X[1:]
    return np.concatenate([(U - moved).ravel(), (net.D @ h[-1] - Y).ravel()])


def lifted_sizes(p: int, k: int, d: int, T: int, m: int) -> dict:
    r"""Unknowns, equations, quadratics at most, and the nonlinear core.

    Parameters
    ----------
    p, k, d, T, m : int
        Learned entries, learned rows, outputs, steps, examples.

    Returns
    -------
    dict
        ``unknowns``, ``equations``, ``quadratics`` :math:`= km(T-2)`, and
        ``core`` :math:`= m\min\{k(T-2), \max(0, k(T-1)-d)\}`.

    Raises
    ------
    ValueError
        If a size is not positive or ``T`` is below 2.

    Notes
    -----
    Source: ours (section 2.8 of the reconstruction).

    Examples
    --------
    >>> lifted_sizes(6, 3, 2, 5, 3)
    {'unknowns': 42, 'equations': 42, 'quadratics': 27, 'core': 27}
    """
    check_sizes(p=p, k=k, d=d, T=T, m=m)
    if T < 2:
        raise ValueError(f"T must be at least 2, got {T}")
    lifted = k * m * (T - 1)
    core = m * min(k * (T - 2), max(0, k * (T - 1) - d))
    return {
        "unknowns": p + lifted,
        "equations": lifted + m * d,
        "quadratics": k * m * (T - 2),
        "core": core,
    }


def linear_core_solve(
    net: LinearRNN, X, Y, allocation: Allocation
) -> LinearCore:
    r"""The match of a recurrent allocation with :math:`k(T-1)=d`, directly.

    The labels fix the states of the learned rows, by one linear system an
    example; each row then solves a linear system of its own.

    Parameters
    ----------
    net : LinearRNN
        One student.
    X : array_like (T, b, m)
    Y : array_like (d, m)
    allocation : Allocation
        ``k`` rows with :math:`m(T-1)` entries each.

    Returns
    -------
    LinearCore
        The residual is that of the network run forward, relative to ``Y``.

    Raises
    ------
    ValueError
        If :math:`k(T-1)\ne d`, a row does not have :math:`m(T-1)` entries,
        or a shape does not fit.

    Notes
    -----
    Cost :math:`O(d^3 + k (mT)^3)`. Source: ours (section 2.9 of the
    reconstruction).

    Examples
    --------
    >>> from helpers.allocation.networks import (lrnn_forward, sample_lrnn)
    >>> teacher, net = (LinearRNN(*(M[0] for M in sample_lrnn(1, 6, 2, 2, s)))
    ...                 for s in (0, 1))
    >>> X = np.random.default_rng(2).normal(size=(3, 2, 2))
    >>> a = Allocation([1] * 4, [0, 2, 3, 5])
    >>> found = linear_core_solve(net, X, lrnn_forward(teacher, X), a)
    >>> found.residual < 1e-8
    True
    """
    net, X, Y, rows, cols, learned = _one_problem(net, X, Y, allocation)
    T, _, m = X.shape
    k, d = learned.size, Y.shape[0]
    if k * (T - 1) != d:
        raise ValueError(
            f"k (T - 1) must equal d, got k = {k}, T = {T}, d = {d}"
        )
    if any(np.sum(rows == r) != m * (T - 1) for r in learned):
        raise ValueError(f"each learned row needs m (T - 1) = {m * (T - 1)}")
    nothing = np.zeros((T - 1, k, m))
    affine = net.D @ _states(net, X, learned, nothing)[-1]
    units = np.eye(d).reshape(T - 1, k, d)
    still = np.zeros((T, X.shape[1], d))
    through = net.D @ _states(net, still, learned, units)[-1]
    U = np.linalg.solve(through, Y - affine).reshape(T - 1, k, m)
    h = _states(net, X, learned, U)[:-1]
    W = net.W.copy()
    W[rows, cols] = 0
    w = np.empty(rows.size)
    for i, row in enumerate(learned):
        mine = rows == row
        left = U[:, i] - W[row] @ h - net.B[row] @ X[1:]
        A = np.moveaxis(h[:, cols[mine]], 1, -1).reshape(-1, mine.sum())
        w[mine] = np.linalg.solve(A, left.ravel())
    W[rows, cols] = w
    end = net.D @ lrnn_states(LinearRNN(net.B, W, net.D), X)[-1]
    return LinearCore(w, float(np.linalg.norm(end - Y) / np.linalg.norm(Y)))
