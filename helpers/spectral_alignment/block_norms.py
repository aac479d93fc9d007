r"""What low frequencies cost in neurons, all at once: block norms.

The block norm of the part of :math:`U_K` outside of features ``H0`` is

.. math::

    \gamma(H_0,e)=\min\Bigl\{\sum_j\|A_j\|:\
    \bigl\|M_{H_0}-\sum_j\tilde d_jA_j^{\mathsf T}\bigr\|_F\le e\Bigr\},

over neurons :math:`\tilde d_j`, projected by :math:`I-\Pi_{H_0}` and scaled
to length one. Its dual is
:math:`\max_Y\{\mathrm{tr}(Y^{\mathsf T}M)-e\|Y\|_F\}` over all ``Y`` with
:math:`\|Y^{\mathsf T}\tilde d\|\le1` for every neuron: any ``Y`` gives a lower
bound once its worst neuron is known exactly, and any feasible combination an
upper bound.

What every number is: ``upper`` comes from a finite dictionary and an exactly
feasible combination, ``lower`` from
:func:`~helpers.spectral_alignment.exact_search.maximal_gain_neuron`; together
they are a certified interval.
"""

from __future__ import annotations

import numpy as np

from helpers.core.linalg import check_orthonormal, complement
from helpers.core.tolerances import RANK_RELATIVE
from helpers.spectral_alignment.column_generation import (
    BlockNorm,
    _bounds,
    _largest_gain,
    _reduce,
)

__all__ = ["block_variation_norm_bounds", "dual_bound"]


def dual_bound(Phi, targets, Y, H0=None) -> float:
    r"""The lower bound that a dual variable proves, whoever found it.

    .. math::

        \gamma(H_0,0)\ge\frac{\mathrm{tr}(Y^{\mathsf T}M_{H_0})}
        {\max_d\|Y^{\mathsf T}\tilde d\|},

    for one target without features: :math:`\|v\|_{\mathcal A}\ge
    v^{\mathsf T}y/\max_d|y^{\mathsf T}d|`.

    Parameters
    ----------
    Phi : array_like, shape (n, m)
        Features of the neurons, the constant in their span, rank at most 3.
    targets : array_like, shape (n,) or (n, K)
        A function, or the columns of ``UK``.
    Y : array_like, shape of ``targets``
        Any; its part in the span of ``H0`` is removed.
    H0 : array_like, shape (n, p), optional

    Returns
    -------
    float
        0 if ``Y`` proves nothing; infinite if ``Y`` is orthogonal to all
        neurons and not to the targets, which are out of reach then.

    Raises
    ------
    ValueError
        If shapes disagree, an input is not finite, the rank of ``Phi`` is
        above 3, its span lacks the constant, or ``Y`` is zero outside of
        ``H0``.

    Notes
    -----
    One exact search for the worst neuron. Neurons of which less than 1e-5
    lies outside of ``H0`` count as covered.

    Source: ours.

    Examples
    --------
    The certificate of the middle node of three, by hand:

    >>> Phi = np.array([[-1.0, 1.0], [0.0, 1.0], [1.0, 1.0]])
    >>> y = np.array([-1.0, 2 + np.sqrt(3), -1.0])
    >>> round(dual_bound(Phi, [0.0, 1.0, 0.0], y), 6)  # 2 + sqrt(3)
    3.732051
    """
    targets, Y = np.asarray(targets, float), np.asarray(Y, float)
    if targets.ndim not in (1, 2) or targets.size == 0:
        raise ValueError(f"targets must be columns, got {targets.shape}")
    if Y.shape != targets.shape or not np.isfinite(Y).all():
        raise ValueError(
            f"Y must be finite and of shape {targets.shape}, got {Y.shape}"
        )
    if not np.isfinite(targets).all():
        raise ValueError("targets must be finite")
    Phi = np.asarray(Phi, dtype=float)
    columns = targets.reshape(len(targets), -1)
    reduced = _reduce(Phi, columns, H0)
    whole = Y.reshape(columns.shape)
    Y = complement(reduced.QH, whole)
    if np.linalg.norm(Y) <= RANK_RELATIVE * np.linalg.norm(whole):
        raise ValueError("Y must not be zero outside of H0")
    value = np.sum(Y * reduced.M)
    size = np.linalg.norm(Y)
    if np.linalg.norm(reduced.basis.T @ Y) <= RANK_RELATIVE * size:
        noise = RANK_RELATIVE * size * np.linalg.norm(reduced.M)
        return np.inf if value > noise else 0.0
    return max(float(value / _largest_gain(Phi, Y, reduced.QH)), 0.0)


def block_variation_norm_bounds(
    Phi, UK, H0=None, tol: float = 0.02, *, rounds: int = 60
) -> BlockNorm:
    r"""Certified interval for the block norm :math:`\gamma(H_0,0)`.

    .. math::

        \gamma(H_0,0)=\min\Bigl\{\sum_j\|a_j\|\,\|(I-\Pi_{H_0})d_j\|:\
        (I-\Pi_{H_0})\bigl(U_K-\sum_jd_ja_j^{\mathsf T}\bigr)=0\Bigr\}.

    Parameters
    ----------
    Phi : array_like, shape (n, m)
        Features of the neurons, the constant in their span, rank at most 3.
    UK : array_like, shape (n, K)
        Orthonormal columns. Only their span matters.
    H0 : array_like, shape (n, p), optional
        Features at hand, any columns; ``None`` for none.
    tol : float, in (0, 1)
        The search ends when ``lower >= (1 - tol) * upper``.
    rounds : int >= 1
        Largest number of rounds; the interval is valid whenever it ends.

    Returns
    -------
    BlockNorm
        ``lower`` and ``upper``. Both 0 if ``H0`` covers ``UK``; both
        infinite if neurons and ``H0`` together do not (samples that agree
        and should not): ``dual`` is then orthogonal to every neuron.

    Raises
    ------
    ValueError
        If ``UK`` is not orthonormal, the rank of ``Phi`` is above 3 or its
        span lacks the constant, shapes disagree, or an option is out of
        range.

    Notes
    -----
    Column generation. A round centres the dual variable by Newton's method
    with a logarithmic barrier, :math:`O(N(nK)^2+(nK)^3)` for ``N`` neurons;
    the Newton step turns into a combination that is feasible whether or not
    it has converged. Then the exact sweep bounds the worst neuron, and the
    best ones of all circles join. Neurons of which less than 1e-5 lies
    outside of ``H0`` count as covered.

    Source: ours (companion result C2 to the spectral-alignment paper); for
    centres in column generation see Goffin, Haurie and Vial (1992).

    Examples
    --------
    The third frequency of the path of three nodes, relative to 1 and x:
    all that a neuron can add points its way.

    >>> Phi = np.array([[-1.0, 1.0], [0.0, 1.0], [1.0, 1.0]])
    >>> u = np.array([[1.0], [-2.0], [1.0]]) / np.sqrt(6)
    >>> found = block_variation_norm_bounds(Phi, u, Phi, tol=0.001)
    >>> found.lower <= 1 <= found.upper < 1.001
    True
    """
    UK = check_orthonormal(UK, "UK")
    if UK.shape[1] == 0:
        raise ValueError("UK must have at least one column, got none")
    return _bounds(Phi, UK, H0, tol, rounds)
