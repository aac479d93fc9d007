r"""Linear splines: what a number of pieces can buy without a deep network.

Errors are mean squares on ``[0, 1]``, by Gauss quadrature on every piece for
functions, or over the samples that are given. A spline is continuous and
linear between knots, ``knots[0] = 0`` and ``knots[-1] = 1``.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from scipy.integrate import quad
from scipy.linalg import solveh_banded
from scipy.optimize import minimize

from helpers.core.checks import whole_number
from helpers.core.tolerances import NEWTON_STEP, ROUNDING

__all__ = [
    "FreeKnotSpline",
    "SampledSpline",
    "effective_pieces",
    "equidistributed_knots",
    "free_knot_spline",
    "least_squares_spline",
    "spline_constant",
    "spline_layers",
]

Function = Callable[[np.ndarray], np.ndarray]

# nodes of Gauss quadrature on a piece: exact for the square of a cubic error
# many times over
_NODES, _WEIGHTS = np.polynomial.legendre.leggauss(12)
# cells of the table by which the density of knots is inverted
_TABLE = 20_000


class FreeKnotSpline(NamedTuple):
    """A linear spline that approximates a function.

    Parameters
    ----------
    knots, values : ndarray, shape (N + 1,)
    mse : float
        Mean square error on [0, 1].
    """

    knots: np.ndarray
    values: np.ndarray
    mse: float


class SampledSpline(NamedTuple):
    """A linear spline fitted to samples.

    Parameters
    ----------
    values : ndarray, shape (N + 1,)
        At the knots.
    mse : float
        Mean square over the samples.
    """

    values: np.ndarray
    mse: float


def _knots(knots) -> np.ndarray:
    knots = np.asarray(knots, dtype=float)
    if knots.ndim != 1 or knots.size < 2 or not (np.diff(knots) > 0).all():
        raise ValueError(
            "knots must be a vector of two or more increasing numbers, got "
            f"{knots!r}"
        )
    return knots


def _density(d2f: Function, x) -> np.ndarray:
    return np.abs(np.asarray(d2f(x), dtype=float)) ** 0.4


def spline_constant(d2f: Function) -> float:
    r"""The constant of the best linear spline,
    :math:`C_f=\frac1{720}\bigl(\int_0^1|f''|^{2/5}\bigr)^5`.

    The best spline with :math:`N` free pieces has mean square error
    :math:`C_f/N^4` for large :math:`N`.

    Parameters
    ----------
    d2f : callable
        Second derivative on [0, 1].

    Returns
    -------
    float

    Raises
    ------
    ValueError
        If the integral is not finite.

    Notes
    -----
    On a piece of length :math:`h` with constant :math:`f''` the best line
    errs by :math:`f''^2h^5/720` (integral of the square). With pieces of
    length :math:`1/(N\rho)` these add up to
    :math:`N^{-4}\frac1{720}\int f''^2/\rho^4`, and
    :math:`\rho\propto|f''|^{2/5}` is the best density.

    Source: classical (de Boor's free-knot splines); ours as a yardstick.

    Examples
    --------
    >>> round(180 * spline_constant(lambda x: 2.0), 9)
    1.0
    """
    integral = quad(lambda t: float(_density(d2f, t)), 0, 1, limit=200)[0]
    if not np.isfinite(integral):
        raise ValueError("d2f must have a finite integral of |f''|^(2/5)")
    return integral**5 / 720


def effective_pieces(mse, d2f: Function):
    r"""How many free pieces a mean square error is worth,
    :math:`(C_f/\mathrm{MSE})^{1/4}`.

    Parameters
    ----------
    mse : array_like
        Positive.
    d2f : callable
        Second derivative on [0, 1].

    Returns
    -------
    ndarray or float
        Shape of ``mse``.

    Raises
    ------
    ValueError
        If an error is not positive.

    Notes
    -----
    Source: ours. An asymptotic law: below five pieces or so the number is
    good to some tenths only.

    Examples
    --------
    >>> round(effective_pieces(1 / (180 * 16.0**4), lambda x: 2.0), 6)
    16.0
    """
    mse = np.asarray(mse, dtype=float)
    if not (mse > 0).all():
        raise ValueError("mse must be positive")
    pieces = (spline_constant(d2f) / mse) ** 0.25
    return float(pieces) if pieces.ndim == 0 else pieces


def equidistributed_knots(d2f: Function, pieces: int) -> np.ndarray:
    r"""Knots that share :math:`\int|f''|^{2/5}` out evenly.

    Parameters
    ----------
    d2f : callable
        Second derivative on [0, 1], not zero on an interval.
    pieces : int >= 1
        :math:`N`.

    Returns
    -------
    ndarray, shape (N + 1,)

    Raises
    ------
    ValueError
        If ``pieces`` is not positive, or the density is zero throughout or
        not finite.

    Notes
    -----
    Source: as :func:`spline_constant`.

    Examples
    --------
    >>> equidistributed_knots(lambda x: 2 + 0 * x, 4).round(9).tolist()
    [0.0, 0.25, 0.5, 0.75, 1.0]
    """
    pieces = whole_number(pieces, "pieces")
    # graded towards 0, where the densities of high powers vanish
    x = np.linspace(0, 1, _TABLE + 1) ** 2
    middle = _density(d2f, (x[1:] + x[:-1]) / 2)
    mass = np.concatenate([[0.0], np.cumsum(np.diff(x) * middle)])
    if not (np.isfinite(mass[-1]) and mass[-1] > 0):
        raise ValueError("d2f must be finite and not zero on all of [0, 1]")
    knots = np.interp(np.linspace(0, mass[-1], pieces + 1), mass, x)
    knots[0], knots[-1] = 0.0, 1.0
    return knots


def _fit(f: Function, knots: np.ndarray):
    """Best values at given knots, the error, and its slope in each knot."""
    h = np.diff(knots)
    u = (1 + _NODES) / 2
    x = knots[:-1, None] + h[:, None] * u
    weight = h[:, None] * _WEIGHTS / 2
    y = np.asarray(f(x), dtype=float)
    left, right = (weight * y * (1 - u)).sum(1), (weight * y * u).sum(1)
    load = np.r_[left, 0] + np.r_[0, right]
    # mass matrix of the hat functions, upper banded form
    band = np.zeros((2, knots.size))
    band[1, :-1] += h / 3
    band[1, 1:] += h / 3
    band[0, 1:] = h / 6
    values = solveh_banded(band, load)
    slope = np.diff(values) / h
    error = values[:-1, None] + slope[:, None] * h[:, None] * u - y
    mse = float((weight * error**2).sum())
    inner = (weight * error * (1 - u)).sum(1)[1:]
    return values, mse, -2 * np.diff(slope) * inner


def free_knot_spline(
    f: Function, d2f: Function, pieces: int, refine: bool = False
) -> FreeKnotSpline:
    r"""Linear spline with well-placed knots, least squares in between.

    Parameters
    ----------
    f, d2f : callable
        The function on [0, 1] and its second derivative.
    pieces : int >= 1
        :math:`N`.
    refine : bool
        Move the knots from their asymptotically best places to a local
        minimum of the error.

    Returns
    -------
    FreeKnotSpline

    Raises
    ------
    ValueError
        As :func:`equidistributed_knots`.

    Notes
    -----
    The values solve a tridiagonal system, :math:`O(N)`. With :math:`m_l, m_r`
    the slopes left and right of knot :math:`j`, :math:`\varphi_j` its hat
    function and :math:`e` the error at the best values,
    :math:`\partial\mathrm{MSE}/\partial t_j
    =-2(m_r-m_l)\int_{t_j}^{t_{j+1}}e\varphi_j`; refinement follows it by
    L-BFGS.

    Source: ours.

    Examples
    --------
    >>> spline = free_knot_spline(lambda x: x**2, lambda x: 2 + 0 * x, 8)
    >>> round(spline.mse * 180 * 8**4, 6)
    1.0
    """
    knots = equidistributed_knots(d2f, pieces)
    values, mse, _ = _fit(f, knots)
    if not refine or knots.size < 3:
        return FreeKnotSpline(knots, values, mse)

    def knots_of(u):
        gaps = np.exp(u - u.max())
        inner = np.cumsum(gaps / gaps.sum())[:-1]
        return np.concatenate([[0.0], inner, [1.0]])

    def objective(u):
        t = knots_of(u)
        _, now, slope = _fit(f, t)
        gaps = np.diff(t)
        # t_j = sum of the first j gaps, gaps = softmax(u)
        towards = np.concatenate([np.cumsum(slope[::-1])[::-1], [0.0]])
        gradient = gaps * (towards - gaps @ towards)
        return np.log(now), gradient / now

    best = minimize(
        objective,
        np.log(np.diff(knots)),
        jac=True,
        method="L-BFGS-B",
        options={"maxiter": 500, "ftol": ROUNDING, "gtol": NEWTON_STEP},
    )
    better = knots_of(best.x)
    if (np.diff(better) > 0).all():
        moved = _fit(f, better)
        if moved[1] < mse:
            knots, values, mse = better, *moved[:2]
    return FreeKnotSpline(knots, values, mse)


def least_squares_spline(x, y, knots) -> SampledSpline:
    r"""Best continuous linear spline with given knots on samples.

    Parameters
    ----------
    x, y : array_like, shape (n,)
        Samples; ``x`` between the first and the last knot.
    knots : array_like, shape (N + 1,)
        Increasing.

    Returns
    -------
    SampledSpline

    Raises
    ------
    ValueError
        If shapes do not fit, a value is not finite, or a sample lies outside
        the knots.

    Notes
    -----
    With too few samples for the knots the spline of least norm. Source: ours.

    Examples
    --------
    >>> least_squares_spline([0, 1, 2], [1, 1, 3], [0, 1, 2]).values.round(9)
    array([1., 1., 3.])
    """
    knots = _knots(knots)
    x, y = np.asarray(x, dtype=float), np.asarray(y, dtype=float)
    if x.ndim != 1 or x.shape != y.shape or not x.size:
        raise ValueError(
            f"x and y must be vectors of one size, got {x.shape}, {y.shape}"
        )
    if not (np.isfinite(x).all() and np.isfinite(y).all()):
        raise ValueError("x and y must be finite")
    if x.min() < knots[0] or x.max() > knots[-1]:
        raise ValueError(f"x must lie in [{knots[0]}, {knots[-1]}]")
    hats = np.stack(
        [np.interp(x, knots, unit) for unit in np.eye(knots.size)], axis=1
    )
    values = np.linalg.lstsq(hats, y, rcond=None)[0]
    return SampledSpline(values, float(np.mean((hats @ values - y) ** 2)))


def spline_layers(knots, values) -> list:
    r"""The spline as a shallow ReLU network with a neuron a piece.

    :math:`v_0+\sum_{i<N}(m_i-m_{i-1})\mathrm{ReLU}(x-t_i)` with slopes
    :math:`m_i` and :math:`m_{-1}=0`. Its neuron at :math:`t_0` is always on:
    :math:`N` neurons make :math:`N-1` kinks.

    Parameters
    ----------
    knots, values : array_like, shape (N + 1,)

    Returns
    -------
    list of (W, b)
        Widths 1, N, 1: :math:`3N+1` numbers, of which :math:`N+1` come from
        least squares.

    Raises
    ------
    ValueError
        If shapes do not fit.

    Notes
    -----
    Source: ours.

    Examples
    --------
    >>> (W, b), (C, c) = spline_layers([0.0, 0.5, 1.0], [1.0, 1.0, 2.0])
    >>> b.tolist(), C.tolist(), c.tolist()
    ([-0.0, -0.5], [[0.0, 2.0]], [1.0])
    """
    knots, values = _knots(knots), np.asarray(values, dtype=float)
    if values.shape != knots.shape:
        raise ValueError(
            f"values must have shape {knots.shape}, got {values.shape}"
        )
    slopes = np.diff(values) / np.diff(knots)
    kinks = np.diff(slopes, prepend=0.0)
    return [
        (np.ones((slopes.size, 1)), -knots[:-1]),
        (kinks[None], values[:1].copy()),
    ]
