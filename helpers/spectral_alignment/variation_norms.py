r"""What a function costs in neurons: variation norms with certificates.

The dictionary is :math:`\mathcal A_\Phi`, all neurons
:math:`\sigma(\Phi\theta)` scaled to length one, and
:math:`\|v\|_{\mathcal A}` is the least sum of absolute weights with which
they add up to ``v``. A finite part of the dictionary gives an upper bound, by
a linear programme; a function ``y`` on the sample gives a lower bound, if its
worst neuron is known exactly. Both are found here.

The block norms of :mod:`helpers.spectral_alignment.block_norms`, which take
all low frequencies together, and the curves of
:mod:`helpers.spectral_alignment.norm_curves` can be imported from here as
well.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from scipy.optimize import linprog

from helpers.core.linalg import complement, orthonormal_basis
from helpers.core.tolerances import RANK_RELATIVE, SPARSE_WEIGHT
from helpers.spectral_alignment.block_norms import (
    block_variation_norm_bounds,
    dual_bound,
)
from helpers.spectral_alignment.column_generation import _bounds
from helpers.spectral_alignment.norm_curves import (
    ParetoCurve,
    RepresentabilityCurve,
    representability_curve,
    variation_pareto_curve,
)

__all__ = [
    "BasisPursuit",
    "ParetoCurve",
    "RepresentabilityCurve",
    "VariationNorm",
    "basis_pursuit",
    "block_variation_norm_bounds",
    "dual_bound",
    "representability_curve",
    "variation_norm_bounds",
    "variation_pareto_curve",
]


class BasisPursuit(NamedTuple):
    """What :func:`basis_pursuit` returns."""

    value: float
    coefficients: np.ndarray
    dual: np.ndarray
    residual: float


@dataclass(frozen=True)
class VariationNorm:
    r"""A certified interval for :math:`\|v\|_{\mathcal A}` and its evidence.

    Attributes
    ----------
    lower : float
        Lower bound: :math:`v^{\mathsf T}y` with :math:`|y^{\mathsf T}d|\le1`
        for every unit neuron ``d``, by an exact sweep.
    upper : float
        Upper bound (dictionary): :math:`\sum_j|a_j|`.
    theta : ndarray, shape (m, N)
        Neurons of the dictionary, scaled to values of norm 1.
    atoms : ndarray, shape (n, N)
        Those values.
    coefficients : ndarray, shape (N,)
        ``a`` with ``atoms @ a = v`` up to ``residual``; at most ``n`` of
        them are not zero.
    dual : ndarray, shape (n,)
        ``y``. If the norm is infinite: orthogonal to every neuron, and not
        to ``v``.
    residual : float
        :math:`\|v-\sum_ja_jd_j\|`, rounding.
    """

    lower: float
    upper: float
    theta: np.ndarray
    atoms: np.ndarray
    coefficients: np.ndarray
    dual: np.ndarray
    residual: float


def _column(v, n: int | None = None) -> np.ndarray:
    v = np.asarray(v, dtype=float)
    if v.ndim != 1 or v.size == 0 or (n is not None and v.size != n):
        raise ValueError(
            f"v must have shape ({'n' if n is None else n},), got {v.shape}"
        )
    if not np.isfinite(v).all():
        raise ValueError("v must be finite, it holds NaN or infinity")
    return v


def basis_pursuit(D, v) -> BasisPursuit:
    r"""Least sum of absolute weights: :math:`\min\{\|a\|_1:Da=v\}`.

    Parameters
    ----------
    D : array_like, shape (n, N)
        Columns of any length; zero columns get weight 0. ``N = 0`` is
        allowed.
    v : array_like, shape (n,)

    Returns
    -------
    BasisPursuit
        ``value``: :math:`\|a\|_1`, infinite if ``v`` is not in the column
        space; ``coefficients`` (N,), refitted by least squares on their
        support; ``dual`` (n,), a ``y`` with :math:`|y^{\mathsf T}D_j|\le1`
        and :math:`y^{\mathsf T}v` equal to ``value`` to about seven digits,
        or :math:`y\perp D`, :math:`y^{\mathsf T}v>0` if ``value`` is
        infinite; ``residual``: :math:`\|Da-v\|`.

    Raises
    ------
    ValueError
        If shapes disagree or an input is not finite.

    Notes
    -----
    HiGHS, in coordinates of the column space and with columns and ``v``
    scaled to length one, since it keeps its constraints to 1e-7. For a
    dictionary of unit neurons ``value`` is an upper bound of the variation
    norm, and ``dual`` proves nothing about neurons outside of it.

    Source: Chen, Donoho and Saunders (1998); SciPy's ``linprog``.

    Examples
    --------
    >>> found = basis_pursuit([[1.0, 0.0, 0.6], [0.0, 1.0, 0.8]], [0.6, 0.8])
    >>> round(found.value, 9), found.coefficients.round(9).tolist()
    (1.0, [0.0, 0.0, 1.0])
    """
    v = _column(v)
    D = np.asarray(D, dtype=float)
    if D.ndim != 2 or D.shape[0] != v.size:
        raise ValueError(f"D must have shape ({v.size}, N), got {D.shape}")
    if not np.isfinite(D).all():
        raise ValueError("D must be finite, it holds NaN or infinity")
    length = np.linalg.norm(D, axis=0)
    used = length > 0
    unit, size = D[:, used] / length[used], np.linalg.norm(v)
    weights = np.zeros(D.shape[1])
    if size == 0:
        return BasisPursuit(0.0, weights, np.zeros(v.size), 0.0)
    Q = orthonormal_basis(unit)
    off = complement(Q, v)
    if np.linalg.norm(off) > RANK_RELATIVE * size:
        out = off / np.linalg.norm(off)
        return BasisPursuit(np.inf, weights, out, float(off @ out))
    costs = length[used].min() / length[used]
    found, y = _programme(Q.T @ unit, Q.T @ v / size, costs)
    weights[used] = size * found / length[used]
    # HiGHS ends within 1e-7: scale until no column is above one
    y = Q @ y / length[used].min()
    y /= max(1.0, np.abs(D.T @ y).max())
    residual = float(np.linalg.norm(D @ weights - v))
    return BasisPursuit(float(np.abs(weights).sum()), weights, y, residual)


def _programme(D, v, costs) -> tuple[np.ndarray, np.ndarray]:
    """The programme for unit columns and a unit right side; refitted."""
    answer = linprog(
        np.concatenate([costs, costs]),
        A_eq=np.concatenate([D, -D], axis=1),
        b_eq=v,
        bounds=(0, None),
        method="highs",
    )
    if answer.x is None:
        raise ArithmeticError(f"HiGHS failed: {answer.message}")
    a = answer.x[: D.shape[1]] - answer.x[D.shape[1] :]
    support = np.abs(a) > SPARSE_WEIGHT * np.abs(a).max()
    refit = np.zeros_like(a)
    for _ in range(2):
        refit[support] += np.linalg.lstsq(
            D[:, support], v - D @ refit, rcond=None
        )[0]
    better = np.linalg.norm(D @ refit - v) <= np.linalg.norm(D @ a - v)
    return (refit if better else a), answer.eqlin.marginals


def variation_norm_bounds(
    Phi, v, tol: float = 0.02, *, rounds: int = 60
) -> VariationNorm:
    r"""Certified interval for the variation norm of ``v``.

    .. math::

        \|v\|_{\mathcal A}=\min\Bigl\{\sum_j|a_j|:\ v=\sum_ja_jd_j,\
        d_j=\sigma(\Phi\theta_j)/\|\sigma(\Phi\theta_j)\|\Bigr\}.

    Parameters
    ----------
    Phi : array_like, shape (n, m)
        Features of the neurons, the constant in their span, rank at most 3.
    v : array_like, shape (n,)
    tol : float, in (0, 1)
        The search ends when ``lower >= (1 - tol) * upper``.
    rounds : int >= 1
        Largest number of rounds; the interval is valid whenever it ends.

    Returns
    -------
    VariationNorm
        ``lower`` and ``upper``. Both 0 for ``v = 0``; both infinite if ``v``
        differs on samples with equal rows of ``Phi``.

    Raises
    ------
    ValueError
        If shapes disagree, an input is not finite, the rank of ``Phi`` is
        above 3, its span lacks the constant, or an option is out of range.

    Notes
    -----
    Column generation as in
    :func:`~helpers.spectral_alignment.block_norms.block_variation_norm_bounds`
    and a linear programme over its dictionary at the end, for a sparse
    combination.

    Source: the spectral-alignment paper, Definition 5.8; the certificates
    are ours.

    Examples
    --------
    The indicator of the middle node of three takes 2 + sqrt(3):

    >>> Phi = np.array([[-1.0, 1.0], [0.0, 1.0], [1.0, 1.0]])
    >>> found = variation_norm_bounds(Phi, [0.0, 1.0, 0.0], tol=1e-3)
    >>> bool(found.lower <= 2 + np.sqrt(3) <= found.upper + 1e-9)
    True
    """
    Phi = np.asarray(Phi, dtype=float)
    v = _column(v, len(Phi) if Phi.ndim else None)
    size = np.linalg.norm(v)
    unit = v / size if size > 0 else v
    block = _bounds(Phi, unit[:, None], None, tol, rounds)
    a, upper = block.coefficients[:, 0], block.upper
    if 0 < upper < np.inf:
        sparse = basis_pursuit(block.atoms, unit)
        if sparse.residual <= RANK_RELATIVE:
            a, upper = sparse.coefficients, min(upper, sparse.value)
    return VariationNorm(
        lower=float(min(block.lower, upper) * size) if size > 0 else 0.0,
        upper=float(upper * size) if size > 0 else 0.0,
        theta=block.theta,
        atoms=block.atoms,
        coefficients=a * size,
        dual=block.dual[:, 0],
        residual=float(np.linalg.norm(block.atoms @ a * size - v)),
    )
