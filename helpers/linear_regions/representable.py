r"""Which functions are sums of waves, and how far the others stay away.

Whatever the depth and the scales, :math:`x \pm \sum s_iW_i` differs from
:math:`x` by a function of the first triangle :math:`T_{a_0}(x)`. Such a
function takes equal values at :math:`av` and at :math:`1-(1-a)v`, the two
points that the triangle folds onto :math:`v`. A target that does not can only
be approached up to a floor, and the floor has a formula.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from scipy.optimize import brentq, minimize_scalar

from helpers.core.tolerances import ARGMAX_PEAK, ROUNDING
from helpers.linear_regions.triangles import Mode, check_mode, check_peaks

__all__ = [
    "FoldBound",
    "RecoveredPeaks",
    "fold_asymmetry",
    "fold_asymmetry_bound",
    "recover_peaks",
    "two_fold_bound",
]

NODES, WEIGHTS = np.polynomial.legendre.leggauss(160)
NODES, WEIGHTS = (NODES + 1) / 2, WEIGHTS / 2
GRID = np.linspace(0, 1, 4001)
SCAN = 600
"""Peaks that are tried before the best of them is refined."""


class FoldBound(NamedTuple):
    """A floor, the first peak that attains it, and the slope taken off."""

    value: float
    peak: float
    slope: float


class RecoveredPeaks(NamedTuple):
    """Peaks, and how far each level is from what a member would show."""

    peaks: np.ndarray
    fold: np.ndarray
    compatibility: np.ndarray


def _values(f, x) -> np.ndarray:
    y = np.asarray(f(x), dtype=np.float64)
    if y.shape != np.shape(x):
        raise ValueError(
            f"f must return one value a point: {np.shape(x)} in, {y.shape} out"
        )
    if not np.isfinite(y).all():
        raise ValueError("f must be finite on [0, 1]")
    return y


def fold_asymmetry(f: Callable, peak, v) -> np.ndarray:
    r"""What a fold at ``peak`` would have to identify and cannot.

    :math:`\delta_a(v) = g(av)-g(1-(1-a)v)` with :math:`g(x) = f(x)-x`.

    Parameters
    ----------
    f : callable
        On [0, 1], vectorised.
    peak : array_like (...)
        In (0, 1).
    v : array_like (n,)
        Points of [0, 1].

    Returns
    -------
    numpy.ndarray (..., n)

    Raises
    ------
    ValueError
        If a peak or a point is outside its interval, or ``f`` does not
        return one finite value a point.

    Notes
    -----
    Source: ours.

    Examples
    --------
    The parabola is symmetric about one half after taking off ``x``.

    >>> print(fold_asymmetry(lambda x: x**2, 0.5, [0.0, 0.5, 1.0]))
    [0. 0. 0.]
    """
    a = check_peaks(np.atleast_1d(peak), name="peak")
    a = a.reshape(np.shape(peak))[..., None]
    v = np.asarray(v, dtype=np.float64)
    if not np.all((v >= 0) & (v <= 1)):
        raise ValueError("v must lie in [0, 1]")
    low, high = a * v, 1 - (1 - a) * v
    return (_values(f, low) - low) - (_values(f, high) - high)


def _floors(f, peaks, norm: str, free_slope: bool):
    """Floor and slope for each peak."""
    a = np.asarray(peaks, dtype=np.float64)
    if norm == "sup":
        delta = fold_asymmetry(f, a, GRID)
        return np.abs(delta).max(axis=-1) / 2, np.ones(a.shape)
    delta = fold_asymmetry(f, a, NODES)
    slope = np.ones(a.shape)
    if free_slope:  # taking off t x changes delta by t (1 - v)
        tilt = -3 * (delta * (1 - NODES)) @ WEIGHTS
        delta = delta + tilt[..., None] * (1 - NODES)
        slope = slope + tilt
    return a * (1 - a) * (delta**2 @ WEIGHTS), slope


def fold_asymmetry_bound(
    f: Callable,
    peak_range: tuple[float, float] = (0.01, 0.99),
    norm: str = "L2",
    free_slope: bool = False,
) -> FoldBound:
    r"""Floor under the error of every sum of waves with such a first peak.

    For ``norm="L2"`` the mean squared error on [0, 1] is at least
    :math:`\min_a a(1-a)\int_0^1\delta_a(v)^2\,dv`, for ``norm="sup"`` the
    largest error is at least :math:`\frac12\min_a\max_v|\delta_a(v)|`.
    Each is the exact distance to the functions
    :math:`x + H(T_a(x))` with arbitrary :math:`H`.

    Parameters
    ----------
    f : callable
        Target on [0, 1], vectorised.
    peak_range : (low, high)
        Where the peak of the fold may lie, within (0, 1).
    norm : {"L2", "sup"}
        Note that the first is a *squared* norm.
    free_slope : bool
        Take off the best multiple of ``x`` instead of ``x`` itself; for L2.

    Returns
    -------
    FoldBound

    Raises
    ------
    ValueError
        If the range is empty or leaves (0, 1), the norm is unknown,
        ``free_slope`` is asked for with ``norm="sup"``, or ``f`` does not
        return finite values.

    Notes
    -----
    Peaks are scanned and the best is refined: without convexity in the peak
    a narrow valley between two of 600 trial peaks would be missed. The
    quadrature has 160 Gauss nodes, exact to rounding for smooth targets; for
    the maximum 4001 points are compared. Source: ours.

    Examples
    --------
    >>> floor = fold_asymmetry_bound(lambda x: x**3)
    >>> print(f"{floor.value:.2e} at {floor.peak:.3f}")
    2.39e-05 at 0.618
    """
    low, high = (float(end) for end in peak_range)
    if not 0 < low < high < 1:
        raise ValueError(
            f"peak_range must be 0 < low < high < 1, got {peak_range}"
        )
    if norm not in ("L2", "sup"):
        raise ValueError(f'norm must be "L2" or "sup", got {norm!r}')
    if free_slope and norm == "sup":
        raise ValueError('free_slope is for norm="L2"')
    tried = np.linspace(low, high, SCAN)
    scanned = np.concatenate(
        [_floors(f, t, norm, free_slope)[0] for t in np.split(tried, 12)]
    )
    best = int(np.argmin(scanned))
    near = tried[max(best - 1, 0)], tried[min(best + 1, SCAN - 1)]
    fine = minimize_scalar(
        lambda a: float(_floors(f, np.array(a), norm, free_slope)[0]),
        bounds=near,
        method="bounded",
        options={"xatol": ARGMAX_PEAK},
    )
    peak = float(fine.x if fine.fun <= scanned[best] else tried[best])
    value, slope = _floors(f, np.array(peak), norm, free_slope)
    return FoldBound(float(value), peak, float(slope))


def two_fold_bound(f: Callable, first, second) -> np.ndarray:
    r"""Floor for given first two peaks, with any scales and any depth.

    Every sum is :math:`x+s_0T_{a_0}(x)+H(T_{a_1}(T_{a_0}(x)))`. Four points
    lie over each value of the second wave; :math:`H` may take their weighted
    mean, and the best :math:`s_0` is a least-squares coefficient.

    Parameters
    ----------
    f : callable
        Target on [0, 1], vectorised.
    first, second : array_like
        Peaks in (0, 1), broadcast against each other.

    Returns
    -------
    numpy.ndarray
        The squared :math:`L^2` distance from ``f`` to these functions.

    Raises
    ------
    ValueError
        If a peak is outside (0, 1), or ``f`` does not return finite values.

    Notes
    -----
    Source: ours.

    Examples
    --------
    A second fold can only raise the floor of the first.

    >>> one = fold_asymmetry_bound(lambda x: x**3).value
    >>> bool(two_fold_bound(lambda x: x**3, 0.618, 0.5) > one)
    True
    """
    a0 = check_peaks(np.atleast_1d(first), name="first")
    a1 = check_peaks(np.atleast_1d(second), name="second")
    shape = np.broadcast_shapes(np.shape(first), np.shape(second))
    a0, a1 = np.broadcast_arrays(a0, a1)
    a0, a1 = a0[..., None, None], a1[..., None, None]
    v = NODES
    inner = np.concatenate([a1 * v, 1 - (1 - a1) * v], axis=-2)
    x = np.concatenate([a0 * inner, 1 - (1 - a0) * inner], axis=-2)
    inner = np.concatenate([inner, inner], axis=-2)
    share = np.concatenate([a1, 1 - a1], axis=-2)
    weight = np.concatenate([a0 * share, (1 - a0) * share], axis=-2)
    gap = _values(f, x) - x
    gap = gap - (weight * gap).sum(axis=-2, keepdims=True)
    wave = inner - (weight * inner).sum(axis=-2, keepdims=True)
    square = ((weight * wave**2).sum(axis=-2)) @ WEIGHTS
    mixed = ((weight * wave * gap).sum(axis=-2)) @ WEIGHTS
    left = ((weight * gap**2).sum(axis=-2)) @ WEIGHTS
    return (left - mixed**2 / square).reshape(shape)


def _maximiser(g: Callable) -> float:
    best = int(np.argmax(g(GRID[1:-1]))) + 1
    fine = minimize_scalar(
        lambda x: -float(g(np.array(x))),
        bounds=(GRID[best - 1], GRID[best + 1]),
        method="bounded",
        options={"xatol": ARGMAX_PEAK},
    )
    return float(fine.x)


def _fold_root(g: Callable, near: float) -> float:
    """The peak for which the midpoints of the two halves agree."""

    def gap(a):
        return float(g(np.array(a / 2)) - g(np.array((1 + a) / 2)))

    low, high = near, near
    for step in np.geomspace(ARGMAX_PEAK, 0.25, 40):
        low, high = max(near - step, GRID[1]), min(near + step, GRID[-2])
        if gap(low) * gap(high) < 0:
            return float(brentq(gap, low, high, xtol=4 * np.finfo(float).eps))
    return near


def _peeled(gap: Callable, a: float, height: float) -> Callable:
    """The gap of the next level, from the rising half of this one."""
    return lambda v: gap(a * np.asarray(v, dtype=float)) / height - v


def recover_peaks(
    f: Callable, depth: int, mode: Mode, by: str = "maximum"
) -> RecoveredPeaks:
    r"""Peel the waves off a function, one after the other.

    With :math:`g_0 = \pm(f-x)` and :math:`a_0=\arg\max g_0`, the next
    function is :math:`f_1(v) = g_0(a_0v)/\max g_0`, and so on with
    :math:`g_k = f_k-x`. In a member of the family every :math:`g_k` is equal
    at :math:`a_kv` and :math:`1-(1-a_k)v`, and :math:`a_{k+1}` is
    :math:`\max g_k/(1-a_k)` (for the first level of a convex one,
    :math:`\max g_0/a_0`).

    Parameters
    ----------
    f : callable
        On [0, 1], vectorised, with ``f(0) = 0`` and ``f(1) = 1``.
    depth : int
        Levels that are peeled, 1 or more.
    mode : {"concave", "convex"}
    by : {"maximum", "fold"}
        How a peak is found: where the gap is largest, or where the
        midpoints :math:`g(a/2)` and :math:`g((1+a)/2)` agree. For members
        both are the same number, and the second keeps all digits.

    Returns
    -------
    RecoveredPeaks
        ``peaks (depth + 1,)``, the last one from compatibility;
        ``fold (depth,)``, the largest :math:`|\delta|` over the largest gap;
        ``compatibility (depth,)``, the next peak that the height asks for,
        minus the one found there; NaN at the last level, which has no next.

    Raises
    ------
    ValueError
        If ``depth`` is below 1, ``mode`` or ``by`` is unknown, ``f`` is not
        finite, does not go from 0 to 1, or a gap is nowhere positive.

    Notes
    -----
    A maximum is flat, so its place is known to half the digits only, and to
    fewer where later peaks exceed one half: the gap then falls off like
    :math:`|x-a_k|^p` with :math:`p=1+\log(1-a)/\log a>2`. Each level divides
    the error by its gap. Source: ours.

    Examples
    --------
    >>> found = recover_peaks(lambda x: x**2, 3, "convex", by="fold")
    >>> print(found.peaks.round(6))
    [0.5 0.5 0.5 0.5]
    """
    sign = check_mode(mode)
    if depth < 1:
        raise ValueError(f"depth must be 1 or more, got {depth}")
    if by not in ("maximum", "fold"):
        raise ValueError(f'by must be "maximum" or "fold", got {by!r}')
    ends = _values(f, np.array([0.0, 1.0]))
    if np.abs(ends - [0, 1]).max() > ROUNDING:
        raise ValueError(f"f must go from 0 to 1, got {ends[0]} and {ends[1]}")

    def gap(x):
        return sign * (_values(f, x) - x)

    peaks, fold, wanted = [], [], []
    for level in range(depth):
        a = _maximiser(gap)
        if by == "fold":
            a = _fold_root(gap, a)
        height = float(gap(np.array(a)))
        if not height > 0:
            raise ValueError(
                f"the gap of level {level} is nowhere positive: f is not "
                f"strictly {mode}"
            )
        delta = gap(a * GRID) - gap(1 - (1 - a) * GRID)
        fold.append(float(np.abs(delta).max() / height))
        side = a if (level == 0 and sign < 0) else 1 - a
        wanted.append(height / side)
        peaks.append(a)
        gap = _peeled(gap, a, height)

    wanted = np.array(wanted)
    following = np.array([*peaks[1:], np.nan])
    peaks.append(wanted[-1])
    return RecoveredPeaks(np.array(peaks), np.array(fold), wanted - following)
