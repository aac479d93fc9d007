r"""The two conditions on an activation under which one neuron averages.

Condition (i) says that two neurons always interact more strongly the closer
their directions are: :math:`\partial_u g_\sigma \ne 0`. Condition (ii) is
about the curve :math:`\varphi_r(u) = \partial_u g_\sigma(r, R, u) / u` on
:math:`(0, 1)`, with :math:`R` the teacher's norm: it must not take one value
at two cosines that a unit vector can have at once.

Margins are elasticities, pure numbers that equal 1 for a linear activation:
:math:`-d\log\varphi / d\log u` at a point for (ii), and the same quotient
along a chord for (ii').
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from helpers.copy_average.interactions import (
    interaction_d2u,
    interaction_grad,
)
from helpers.core.activations import Activation, get_activation

__all__ = ["AssumptionReport", "check_assumption", "direction_profile"]


@dataclass(frozen=True)
class AssumptionReport:
    r"""What a grid says about the two conditions, a radius at a time.

    Parameters
    ----------
    activation : str
        Name of the activation.
    radius : ndarray, shape (R,)
        Student norms :math:`r`.
    slope_margin : ndarray, shape (R,)
        Smallest :math:`\partial_u g(r_1, r_2, u)/(r_1r_2)` over
        :math:`|u| \le` the largest grid point, for (i).
    pointwise_margin : ndarray, shape (R,)
        Smallest elasticity of :math:`\varphi_r`, for (ii).
    chord_margin : ndarray, shape (R,)
        Smallest chord elasticity over pairs with
        :math:`u_1^2 + u_2^2 \le 1`, for (ii'); ``inf`` if the grid has none.
    first_failure : ndarray, shape (R,)
        Smallest grid cosine at which (ii) fails; ``nan`` where it holds.
    """

    activation: str
    radius: NDArray
    slope_margin: NDArray
    pointwise_margin: NDArray
    chord_margin: NDArray
    first_failure: NDArray

    @property
    def slope_holds(self) -> bool:
        """Condition (i) on the whole grid."""
        return bool(np.all(self.slope_margin > 0))

    @property
    def pointwise_holds(self) -> bool:
        """Condition (ii), the curve falls everywhere, on the whole grid."""
        return bool(np.all(self.pointwise_margin > 0))

    @property
    def chord_holds(self) -> bool:
        """Condition (ii'), what the proof uses, on the whole grid."""
        return bool(np.all(self.chord_margin > 0))


def _grid(name: str, values: ArrayLike, top: float) -> NDArray:
    values = np.atleast_1d(np.asarray(values, dtype=float))
    inside = (values > 0) & (values < top)
    if values.ndim != 1 or values.size == 0 or not np.all(inside):
        raise ValueError(
            f"{name} must be a non-empty list of numbers between 0 and "
            f"{top:g} (both excluded), got {values!r}"
        )
    return np.unique(values)


def direction_profile(
    r: ArrayLike,
    u: ArrayLike,
    activation: str | Activation = "erf",
    teacher_norm: float = 1.0,
) -> NDArray:
    r"""Compute :math:`\varphi_r(u) = \partial_u g_\sigma(r, R, u)/u`.

    The optimal directions of one neuron solve
    :math:`\varphi_r(u_j) = 2\lambda` for all :math:`j` at once.

    Parameters
    ----------
    r : array_like
        Student norm, positive.
    u : array_like
        Cosines in :math:`[-1, 1]`, not zero. Broadcasts with ``r``.
    activation : str or Activation, default "erf"
    teacher_norm : float, default 1.0
        The teacher's norm :math:`R`.

    Returns
    -------
    ndarray
        Of the broadcast shape.

    Raises
    ------
    ValueError
        If a cosine is zero, or as
        :func:`~helpers.copy_average.interactions.interaction_grad`.

    Notes
    -----
    Source: Simsek et al. (2023), section 5 (Lagrange condition of
    Theorem 5.1).

    Examples
    --------
    >>> direction_profile(1.0, [0.5, 1.0], "identity").tolist()
    [2.0, 1.0]
    """
    u = np.asarray(u, dtype=float)
    if np.any(u == 0):
        raise ValueError("u must not hold 0: the profile has a pole there")
    return interaction_grad(r, teacher_norm, u, activation)[2] / u


def check_assumption(
    activation: str | Activation,
    r_grid: ArrayLike = (0.25, 0.5, 1.0, 2.0, 3.0),
    u_grid: ArrayLike | None = None,
    teacher_norm: float = 1.0,
) -> AssumptionReport:
    r"""Examine Assumption 3.1 on a grid of norms and cosines.

    Parameters
    ----------
    activation : str or Activation
    r_grid : array_like, shape (R,)
        Student norms, positive.
    u_grid : array_like, shape (U,), optional
        Cosines in :math:`(0, 1)`; by default 99 of them, from 0.01 to 0.99,
        and 0.999. Condition (i) is looked at on the same cosines with both
        signs and at 0.
    teacher_norm : float, default 1.0
        The teacher's norm :math:`R > 0`.

    Returns
    -------
    AssumptionReport

    Raises
    ------
    ValueError
        If a grid is empty or leaves its range.

    Notes
    -----
    A grid can refute a condition and cannot prove it. Costs one quadrature a
    grid point for activations without closed form.

    Source: Simsek et al. (2023), Assumption 3.1 and Lemma F.2; the form (ii')
    is what the proof of Theorem 5.1 uses.

    Examples
    --------
    >>> report = check_assumption("relu", r_grid=[1.0])
    >>> report.slope_holds, report.pointwise_holds, report.chord_holds
    (True, False, True)
    >>> float(report.first_failure[0])
    0.95
    """
    activation = get_activation(activation)
    if u_grid is None:
        u_grid = np.append(np.arange(1, 100) / 100, 0.999)
    r = _grid("r_grid", r_grid, np.inf)
    u = _grid("u_grid", u_grid, 1.0)
    signed = np.concatenate([-u[::-1], [0.0], u])
    slope = interaction_grad(r[:, None], teacher_norm, signed, activation)[2]
    rise = slope[:, -u.size :]
    bend = interaction_d2u(r[:, None], teacher_norm, u, activation)
    elasticity = 1 - u * bend / rise
    fails = elasticity <= 0
    return AssumptionReport(
        activation.name,
        r,
        (slope / (r[:, None] * teacher_norm)).min(axis=1),
        elasticity.min(axis=1),
        _chord_elasticity(u, rise / u),
        np.where(fails.any(axis=1), u[fails.argmax(axis=1)], np.nan),
    )


def _chord_elasticity(u: NDArray, profile: NDArray) -> NDArray:
    """Smallest fall of log(profile) over rise of log(u), a radius at a time.

    Without an admissible pair on the grid the condition is empty: ``inf``.
    """
    low, high = np.triu_indices(u.size, 1)
    admissible = u[low] ** 2 + u[high] ** 2 <= 1
    low, high = low[admissible], high[admissible]
    fall = np.log(profile[:, low] / profile[:, high])
    return (fall / np.log(u[high] / u[low])).min(axis=1, initial=np.inf)
