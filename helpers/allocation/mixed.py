"""Learned entries of encoder, recurrent matrix and decoder together.

A learned row of ``D`` reaches one output; one of ``W`` acts at each step from
the second on, one of ``B`` from the first.
"""

from __future__ import annotations

import numpy as np

from helpers.allocation.factors import (
    Equations,
    _check_parts,
    _filled,
    _norms,
    _some,
    _spread,
)
from helpers.allocation.jacobians import PARTS, lrnn_jacobian
from helpers.allocation.networks import LinearRNN, lrnn_forward
from helpers.core.checks import check_finite, check_sizes

__all__ = [
    "mixed_equations",
    "mixed_jacobian",
    "mixed_row_cap",
]


def mixed_jacobian(net: LinearRNN, X, allocations) -> np.ndarray:
    """Jacobian in learned entries of encoder, recurrent matrix and decoder.

    Parameters
    ----------
    net : LinearRNN
    X : array_like (..., T, b, m)
    allocations : list
        For ``B``, ``W`` and ``D``, in this order; an Allocation or None.

    Returns
    -------
    numpy.ndarray (..., d m, p)

    Raises
    ------
    ValueError
        If nothing learns or shapes do not fit.

    Notes
    -----
    Source: ours.

    Examples
    --------
    >>> from helpers.allocation.allocations import Allocation
    >>> net, one = LinearRNN([[1.0]], [[0.5]], [[2.0]]), Allocation([0], [0])
    >>> mixed_jacobian(net, np.ones((2, 1, 1)), [one, one, one]).tolist()
    [[3.0, 2.0, 1.5]]
    """
    parts = _check_parts([np.shape(M)[-2:] for M in net], allocations)
    J = [
        lrnn_jacobian(net, X, a, name)
        for a, name in zip(parts, PARTS, strict=True)
        if a is not None
    ]
    return np.concatenate(J, axis=-1)


def mixed_equations(problems, allocations) -> Equations:
    """The match of learned entries in ``B``, ``W`` and ``D`` together.

    Parameters
    ----------
    problems : Problems
        As :func:`helpers.allocation.matching.recurrent_problems` draws them.
    allocations : list
        For ``B``, ``W`` and ``D``; ``(p,)`` or ``(K, p)``, or None.

    Returns
    -------
    Equations
        Unknowns in the order encoder, recurrent, decoder.

    Raises
    ------
    ValueError
        If an argument does not fit, or all labels of a problem are zero.

    Notes
    -----
    Source: ours.

    Examples
    --------
    >>> from helpers.allocation.allocations import Allocation
    >>> from helpers.allocation.matching import recurrent_problems
    >>> draws = recurrent_problems(2, 4, 2, 1, 3, 2, 0)
    >>> made = mixed_equations(draws, [Allocation([0], [1]), None,
    ...                                Allocation([0], [2])])
    >>> made.p, made.residual_jac(np.zeros((2, 2)), np.arange(2))[1].shape
    (2, (2, 2, 2))
    """
    net, X, Y = problems
    X, Y = check_finite(X=X, Y=Y)
    parts = _check_parts([M.shape[-2:] for M in net], allocations)
    parts = _spread(parts, len(Y))

    def residual_jac(w, which):
        mine = _some(parts, which)
        now = LinearRNN(*_filled([M[which] for M in net], mine, w))
        r = lrnn_forward(now, X[which]) - Y[which]
        return r.reshape(len(which), -1), mixed_jacobian(now, X[which], mine)

    p = sum(a.rows.shape[1] for a in parts if a is not None)
    return Equations(residual_jac, _norms(Y), p)


def mixed_row_cap(n: int, d: int, T: int, allocations) -> int:
    r"""Output directions that learned rows of ``B``, ``W``, ``D`` reach.

    .. math::
        \min\bigl\{d,\ k_D+\min(n,\ T\,|S_B|+(T-1)\,|S_W\setminus S_B|)
        \bigr\}

    Parameters
    ----------
    n, d, T : int
        Neurons, outputs, steps.
    allocations : list
        For ``B``, ``W`` and ``D``, ``(p,)`` or None.

    Returns
    -------
    int
        Times :math:`m` it bounds the rank; below :math:`d` no match exists,
        with probability one.

    Raises
    ------
    ValueError
        If a size is not positive, a row does not exist or nothing learns.

    Notes
    -----
    Source: ours.

    Examples
    --------
    >>> from helpers.allocation.allocations import Allocation
    >>> one = Allocation([0], [0])
    >>> mixed_row_cap(8, 9, 3, [one, None, one])
    4
    """
    check_sizes(n=n, d=d, T=T)
    if len(allocations) != 3 or all(a is None for a in allocations):
        raise ValueError("allocations must be three, not all None")
    B, W, D = (
        set() if a is None else set(np.asarray(a[0]).ravel().tolist())
        for a in allocations
    )
    if any(not 0 <= row < n for row in B | W) or any(
        not 0 <= row < d for row in D
    ):
        raise ValueError(f"rows must be below n = {n}, for D below d = {d}")
    return min(d, len(D) + min(n, T * len(B) + (T - 1) * len(W - B)))
