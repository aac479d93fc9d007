r"""What a sum of waves converges to, and how its slope jumps.

Peaks are :math:`a_0, a_1, \dots` and scales obey the recurrence
:math:`s_{i+1} = s_i(1-a_{i+1})a_{i+2}` unless other scales are given.
:math:`G = \sum s_iW_i` is the full sum, :math:`f_d` that of the first
:math:`d` waves, :math:`P_i` the points where :math:`W_i = 1`.

A cell of level :math:`n` is an interval on which the wave
:math:`W_{n-1}` runs once from 0 to 1 or back. The peak :math:`a_n` splits it:
the part next to the end where the wave vanishes gets the share :math:`a_n` of
its length and the share :math:`1-a_n` of the fall of :math:`G'`. Everything
here follows from these shares, so that nothing needs a network or a grid.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from helpers.core.checks import positive_number
from helpers.core.randomness import Seed, as_generator
from helpers.linear_regions.cells import LARGEST_DEPTH
from helpers.linear_regions.triangles import (
    check_peaks,
    limit_scales,
    triangle_wave,
)

__all__ = [
    "CellShares",
    "EndSlopes",
    "SecantFactors",
    "bend_factors",
    "cell_shares",
    "draw_limit_points",
    "end_slopes",
    "hellinger_affinity",
    "hoelder_exponent",
    "largest_share",
    "largest_slope_jumps",
    "limit_derivative_cdf",
    "secant_factors",
    "slopes_at_peaks",
    "tail_profile",
    "tail_sup",
    "variation_support",
]


class CellShares(NamedTuple):
    """Lengths and masses of the cells of one level, from left to right."""

    lengths: np.ndarray
    masses: np.ndarray


class EndSlopes(NamedTuple):
    """One-sided slopes of a sum of waves at 0 and at 1."""

    left: float
    right: float


class SecantFactors(NamedTuple):
    """What :func:`secant_factors` returns, one entry for each later level."""

    distances: np.ndarray
    curvatures: np.ndarray


def _vector(peaks, least: int = 1) -> np.ndarray:
    a = check_peaks(peaks, least)
    if a.ndim != 1:
        raise ValueError(f"peaks must be one vector, got shape {a.shape}")
    return a


def limit_derivative_cdf(x, peaks) -> np.ndarray:
    r"""The distribution function :math:`M_a` behind the limit slope.

    :math:`M_a(x) = (1-a_0)\,M_{a^+}(x/a_0)` for :math:`x\le a_0` and
    :math:`1-a_0\,M_{a^+}\big(\frac{1-x}{1-a_0}\big)` beyond, where
    :math:`a^+ = (a_1, a_2, \dots)`. The limits of the two sums have slopes
    :math:`F_-' = M_a/(1-a_0)` and :math:`F_+' = (1-M_a)/a_0`.

    Parameters
    ----------
    x : array_like
        Points of [0, 1], any shape.
    peaks : array_like (m,)
        Peaks in (0, 1). After the last one the mass of a cell is spread
        evenly over its length: the result is exact at the ``2^m + 1`` ends
        of cells, and elsewhere off by at most :func:`largest_share`.

    Returns
    -------
    numpy.ndarray
        Values in [0, 1], in the shape of ``x``.

    Raises
    ------
    ValueError
        If a point or a peak is outside its interval, or not a number.

    Notes
    -----
    Cost :math:`O(m)` a point. Source: ours.

    Examples
    --------
    >>> limit_derivative_cdf([0, 0.09, 0.3, 1], [0.3, 0.3])
    array([0.  , 0.49, 0.7 , 1.  ])
    """
    a = _vector(peaks)
    y = np.asarray(x, dtype=np.float64)
    if not np.all((y >= 0) & (y <= 1)):
        wrong = y[~((y >= 0) & (y <= 1))].flat[0]
        raise ValueError(f"x must lie in [0, 1], got {wrong}")
    below, weight = np.zeros(y.shape), np.ones(y.shape)
    for peak in a:
        left = y <= peak
        below = np.where(left, below, below + weight)
        weight = weight * np.where(left, 1 - peak, -peak)
        y = np.where(left, y / peak, (1 - y) / (1 - peak))
    return below + weight * y


def cell_shares(peaks) -> CellShares:
    r"""Length and mass of every cell of a level.

    The mass of a cell is what :math:`G'` falls by across it, as a part of
    the whole. Where the length splits :math:`a:(1-a)`, the mass splits
    :math:`(1-a):a`.

    Parameters
    ----------
    peaks : array_like (d,)

    Returns
    -------
    CellShares
        ``lengths (2^d,)`` and ``masses (2^d,)``; each sums to 1.

    Raises
    ------
    ValueError
        If a peak is outside (0, 1), or there are more than
        ``cells.LARGEST_DEPTH``.

    Notes
    -----
    Cost :math:`O(2^d)`. Source: ours.

    Examples
    --------
    >>> print(*cell_shares([0.25, 0.5]).masses)
    0.375 0.375 0.125 0.125
    """
    a = _vector(peaks)
    if a.size > LARGEST_DEPTH:
        raise ValueError(
            f"peaks has {a.size} entries, which makes 2^{a.size} cells; "
            f"arrays over all cells are made up to {LARGEST_DEPTH} peaks"
        )
    lengths, masses = np.ones(1), np.ones(1)
    for peak in a:
        rising = np.tile([True, False], -(-lengths.size // 2))
        share = np.where(rising[: lengths.size], peak, 1 - peak)
        lengths = np.stack([lengths * share, lengths * (1 - share)], 1).ravel()
        masses = np.stack([masses * (1 - share), masses * share], 1).ravel()
    return CellShares(lengths, masses)


def draw_limit_points(peaks, n: int, rng: Seed) -> np.ndarray:
    r"""Random points whose distribution function is :math:`M_a`.

    Digits are independent: near the end where the wave vanishes with
    probability :math:`1-a_i`, beyond the peak with probability :math:`a_i`.

    Parameters
    ----------
    peaks : array_like (m,)
        One digit each; the point lies in the middle of what is left.
    n : int
        Number of points, 1 or more.
    rng : int or numpy.random.Generator

    Returns
    -------
    numpy.ndarray (n,)

    Raises
    ------
    ValueError
        If a peak is outside (0, 1), or ``n`` is below 1.

    Notes
    -----
    Cost :math:`O(nm)`. Source: ours.

    Examples
    --------
    >>> x = draw_limit_points([0.25] * 40, 10000, rng=0)
    >>> bool(abs(x.mean() - 0.25) < 0.01)
    True
    """
    a, rng = _vector(peaks), as_generator(rng)
    if n < 1:
        raise ValueError(f"n must be 1 or more, got {n}")
    x = np.full(n, 0.5)
    for peak in a[::-1]:
        far = rng.random(n) < peak
        x = np.where(far, 1 - (1 - peak) * x, peak * x)
    return x


def largest_share(peaks) -> float:
    r"""Length of the longest cell, and mass of the heaviest one.

    Both are :math:`\prod_i\max(a_i, 1-a_i)`. The limit is continuously
    differentiable exactly if this product tends to zero.

    Parameters
    ----------
    peaks : array_like (d,)

    Returns
    -------
    float

    Raises
    ------
    ValueError
        If a peak is outside (0, 1).

    Notes
    -----
    Source: ours.

    Examples
    --------
    >>> round(largest_share([0.25, 0.5, 0.9]), 6)
    0.3375
    """
    a = _vector(peaks)
    return float(np.prod(np.maximum(a, 1 - a)))


def _sizes(peaks, scales) -> tuple[np.ndarray, np.ndarray]:
    a = _vector(peaks, least=2)
    s = np.asarray(scales, dtype=np.float64)
    if s.shape != (a.size - 1,) or not np.all(np.isfinite(s)):
        raise ValueError(
            f"scales must be {a.size - 1} finite numbers, one fewer than "
            f"peaks, got shape {s.shape}"
        )
    return a, s


def bend_factors(peaks, scales) -> np.ndarray:
    r"""By how much of its own slope each wave still jumps at its peaks.

    At a point of :math:`P_i` the one-sided slopes of
    :math:`\sum_{i\le n<d}s_nW_n` are those of :math:`W_i` times

    .. math:: \Sigma_i = s_i - \frac{1}{1-a_{i+1}}\Big(s_{i+1} +
        \sum_{n=i+2}^{d-1}s_n\prod_{k=i+2}^{n}\frac1{a_k}\Big).

    Parameters
    ----------
    peaks : array_like (d + 1,)
    scales : array_like (d,)
        Any scales, those of the recurrence or others.

    Returns
    -------
    numpy.ndarray (d,)
        :math:`\Sigma_0,\dots,\Sigma_{d-1}`. With the recurrence they are
        :math:`s_i\prod_{m=i+2}^{d}(1-a_m)`, positive.

    Raises
    ------
    ValueError
        If a peak is outside (0, 1), or the lengths disagree.

    Notes
    -----
    Cost :math:`O(d)`, by a recursion from the last wave. The differences
    are accurate relative to :math:`s_i`, not to :math:`\Sigma_i`. Source:
    Milkert, Hyde and Laine, Lemma A.2; the finite form is ours.

    Examples
    --------
    >>> bend_factors([0.5, 0.5, 0.5], [0.25, 0.0625])
    array([0.125 , 0.0625])
    """
    a, s = _sizes(peaks, scales)
    result = s.copy()
    beyond = 0.0  # s_{i+1} + sum over later waves, slopes from the valley
    for i in range(s.size - 2, -1, -1):
        beyond = s[i + 1] + beyond / a[i + 2]
        result[i] = s[i] - beyond / (1 - a[i + 1])
    return result


def largest_slope_jumps(peaks, mode=None, *, scales=None, s0=None):
    r"""Largest jump of the slope of :math:`f_d` at the peaks of each wave.

    At a point of :math:`P_i` in a cell of length :math:`\ell` the slope
    changes by :math:`-\Sigma_i/(\ell\,a_i(1-a_i))`, and the shortest cell
    has length :math:`\prod_{k<i}\min(a_k, 1-a_k)`.

    Parameters
    ----------
    peaks : array_like (d + 1,)
    mode : {"concave", "convex"}, optional
        Which first scale to take.
    scales : array_like (d,), optional
        Other scales, instead of a mode.
    s0 : float, optional
        Another first scale, instead of a mode.

    Returns
    -------
    numpy.ndarray (d,)
        Entry ``i``: the largest change over :math:`P_i`, positive where the
        slope falls.

    Raises
    ------
    ValueError
        If a peak is outside (0, 1), lengths disagree, or not exactly one of
        ``mode``, ``scales`` and ``s0`` is given.

    Notes
    -----
    Cost :math:`O(d)`, at any depth. With the recurrence the factors are
    products, added up as logarithms: nothing
    cancels or underflows on the way. Source: ours.

    Examples
    --------
    Peaks at one half: the slopes of the parabola's polygon, all alike.

    >>> largest_slope_jumps([0.5] * 4, "convex")
    array([0.25, 0.25, 0.25])
    """
    if sum(given is not None for given in (mode, scales, s0)) != 1:
        raise ValueError("give exactly one of mode, scales and s0")
    a = _vector(peaks, least=2)
    inner = a[:-1]
    if scales is not None:
        shortest = np.cumprod(np.minimum(inner, 1 - inner)[:-1])
        shortest = np.concatenate([[1.0], shortest])
        return bend_factors(a, scales) / (shortest * inner * (1 - inner))
    s0 = limit_scales(a[:2], mode or "concave", s0)[0]
    log_ratios = np.log1p(-a[1:-1]) + np.log(a[2:])
    log_scales = np.log(s0) + np.concatenate([[0.0], np.cumsum(log_ratios)])
    rest = np.concatenate([np.cumsum(np.log1p(-a[:1:-1]))[::-1], [0.0]])
    logs = np.log(np.minimum(inner, 1 - inner))
    shortest = np.concatenate([[0.0], np.cumsum(logs[:-1])])
    around = np.log(inner) + np.log1p(-inner)
    return np.exp(log_scales + rest - shortest - around)


def end_slopes(peaks, s0) -> EndSlopes:
    r"""Slopes of :math:`f_d` at the two ends of the interval.

    :math:`f_d'(0^+) = (1-P)\,\frac{s_0}{a_0a_1}` and
    :math:`f_d'(1^-) = -(1-P)\,\frac{s_0}{(1-a_0)a_1}` with
    :math:`P = \prod_{j=1}^{d}(1-a_j)`.

    Parameters
    ----------
    peaks : array_like (d + 1,)
        Give many for the limit.
    s0 : float
        First scale, positive.

    Returns
    -------
    EndSlopes

    Raises
    ------
    ValueError
        If a peak is outside (0, 1), there are fewer than two, or ``s0`` is
        not positive.

    Notes
    -----
    Source: ours.

    Examples
    --------
    >>> end_slopes([0.5] * 60, 0.25)
    EndSlopes(left=1.0, right=-1.0)
    """
    a, s0 = _vector(peaks, least=2), positive_number(s0, "s0")
    reached = -np.expm1(np.sum(np.log1p(-a[1:])))
    return EndSlopes(
        float(reached * s0 / (a[0] * a[1])),
        float(-reached * s0 / ((1 - a[0]) * a[1])),
    )


def tail_sup(peaks, s0, d: int) -> float:
    r"""Largest error of stopping after ``d`` waves: it is :math:`s_d`.

    :math:`\lVert G-f_d\rVert_\infty = s_d =
    s_0(1-a_1)\,a_{d+1}\prod_{j=2}^{d}a_j(1-a_j)`, and :math:`s_0` for
    :math:`d = 0`.

    Parameters
    ----------
    peaks : array_like (m,)
        At least ``d + 2`` of them.
    s0 : float
        First scale, positive.
    d : int
        Number of waves that are kept, 0 or more.

    Returns
    -------
    float

    Raises
    ------
    ValueError
        If a peak is outside (0, 1), there are too few, ``s0`` is not
        positive or ``d`` is negative.

    Notes
    -----
    Source: ours; Milkert, Hyde and Laine, Lemma A.7, bound the same error.

    Examples
    --------
    >>> tail_sup([0.5] * 12, 0.25, 9) == 4.0**-10
    True
    """
    if d < 0:
        raise ValueError(f"d must be 0 or more, got {d}")
    a, s0 = _vector(peaks, least=d + 2), positive_number(s0, "s0")
    if d == 0:
        return s0
    inner = a[2 : d + 1]
    return float(s0 * (1 - a[1]) * a[d + 1] * np.prod(inner * (1 - inner)))


def tail_profile(y, peaks) -> np.ndarray:
    r"""The shape :math:`\Phi_d` of the tail, :math:`E_d = s_d\,\Phi_d(W_d)`.

    It is the concave limit of the peaks that are left:
    :math:`\Phi_d = F_+` for :math:`(a_{d+1}, a_{d+2}, \dots)`.

    Parameters
    ----------
    y : array_like
        Values of the wave :math:`W_d`, in [0, 1].
    peaks : array_like (m,)
        The peaks from :math:`a_{d+1}` on, at least two; the sum stops
        after ``m - 1`` waves.

    Returns
    -------
    numpy.ndarray
        Values in [0, 1], in the shape of ``y``.

    Raises
    ------
    ValueError
        If a value or a peak is outside its interval.

    Notes
    -----
    Source: ours.

    Examples
    --------
    >>> print(tail_profile([0, 0.5, 1], [0.5] * 60))
    [0.   0.75 1.  ]
    """
    a = _vector(peaks, least=2)
    scales = limit_scales(a, "concave")
    waves = triangle_wave(y, a[:-1])
    return np.asarray(y, np.float64) + np.tensordot(scales, waves, axes=1)


def hellinger_affinity(peaks) -> float:
    r"""Overlap of masses and lengths: :math:`\prod_i2\sqrt{a_i(1-a_i)}`.

    It equals :math:`\sum_C\sqrt{\ell(C)\,m(C)}` over the cells of the level.
    The limit slope is absolutely continuous if the infinite product is
    positive and singular if it is zero.

    Parameters
    ----------
    peaks : array_like (m,)

    Returns
    -------
    float
        In (0, 1], or 0 where the product underflows.

    Raises
    ------
    ValueError
        If a peak is outside (0, 1).

    Notes
    -----
    Source: ours, after Kakutani (1948).

    Examples
    --------
    >>> round(hellinger_affinity([0.1, 0.5]), 12)
    0.6
    """
    a = _vector(peaks)
    return float(np.exp(np.sum(np.log(4 * a * (1 - a))) / 2))


def hoelder_exponent(peak):
    r"""Hölder exponent of the limit slope when all peaks are equal.

    :math:`h = \log\max(a,1-a)\,/\log\min(a,1-a)`: the cell that is most
    concentrated has mass :math:`\max^n` on a length :math:`\min^n`.

    Parameters
    ----------
    peak : array_like
        In (0, 1), any shape.

    Returns
    -------
    float or numpy.ndarray
        In (0, 1], and 1 only at one half.

    Raises
    ------
    ValueError
        If a peak is outside (0, 1).

    Notes
    -----
    Source: ours.

    Examples
    --------
    >>> round(hoelder_exponent(0.3), 4)
    0.2962
    """
    a = check_peaks(np.atleast_1d(peak), name="peak")
    h = np.log(np.maximum(a, 1 - a)) / np.log(np.minimum(a, 1 - a))
    return float(h[0]) if np.ndim(peak) == 0 else h


def variation_support(peaks, share: float = 0.9) -> float:
    r"""Smallest length that carries a share of the fall of :math:`G'`.

    Cells are taken in the order of mass over length, the last one in part.

    Parameters
    ----------
    peaks : array_like (d,)
        The level of the cells is ``d``.
    share : float
        In [0, 1].

    Returns
    -------
    float
        In [0, ``share``]; equal to ``share`` if all peaks are one half.

    Raises
    ------
    ValueError
        If ``share`` is not in [0, 1], or as :func:`cell_shares`.

    Notes
    -----
    Cost :math:`O(d\,2^d)`. Source: ours.

    Examples
    --------
    >>> round(variation_support([0.3], 0.9), 6)
    0.766667
    """
    if not 0 <= share <= 1:
        raise ValueError(f"share must lie in [0, 1], got {share}")
    lengths, masses = cell_shares(peaks)
    order = np.argsort(lengths / masses, kind="stable")
    mass = np.concatenate([[0.0], np.cumsum(masses[order])])
    length = np.concatenate([[0.0], np.cumsum(lengths[order])])
    return float(np.interp(share * mass[-1], mass, length))


def secant_factors(peaks, level: int, s0) -> SecantFactors:
    r"""Secants of :math:`G'` from a bend to the nearest bends beside it.

    Let :math:`x\in P_i`, and let :math:`W_i` have slopes :math:`L>0` and
    :math:`R<0` there. The nearest points of :math:`P_n`, :math:`n>i`, are
    :math:`x-\lambda_n/L` and :math:`x+\lambda_n/|R|`, and the secant slopes
    of :math:`G'` to them are :math:`-L^2\kappa_n` and :math:`-R^2\kappa_n`,

    .. math:: \lambda_n=(1-a_{i+1})\prod_{k=i+2}^na_k,\qquad
        \kappa_n=\frac{s_i}{1-a_{i+1}}\prod_{m=i+2}^n\frac{1-a_m}{a_m}.

    Parameters
    ----------
    peaks : array_like (d + 1,)
    level : int
        The level :math:`i` of the bend, at most ``d - 2``.
    s0 : float
        First scale, positive.

    Returns
    -------
    SecantFactors
        ``distances`` :math:`\lambda_n` and ``curvatures`` :math:`\kappa_n`
        for ``n = i + 1, ..., d - 1``.

    Raises
    ------
    ValueError
        If a peak is outside (0, 1), ``level`` leaves no later level, or
        ``s0`` is not positive.

    Notes
    -----
    Source: Milkert, Hyde and Laine, Lemma A.8; the closed form is ours.

    Examples
    --------
    >>> secant_factors([0.3, 0.5, 0.5, 0.5], 0, 0.15).curvatures
    array([0.3, 0.3])
    """
    a, s0 = _vector(peaks, least=3), positive_number(s0, "s0")
    if not 0 <= level <= a.size - 3:
        raise ValueError(
            f"level must lie in [0, {a.size - 3}] for {a.size} peaks, "
            f"got {level}"
        )
    s = limit_scales(a, "concave", s0)[level]
    first, later = a[level + 1], a[level + 2 : -1]
    distances = (1 - first) * np.cumprod(np.concatenate([[1.0], later]))
    ratios = np.concatenate([[1.0], (1 - later) / later])
    return SecantFactors(distances, s / (1 - first) * np.cumprod(ratios))


def slopes_at_peaks(slopes, level: int) -> tuple[np.ndarray, np.ndarray]:
    r"""Slopes of a sum of waves on both sides of every point of :math:`P_i`.

    Parameters
    ----------
    slopes : array_like (2^d,)
        Slopes on the cells of level ``d``, from
        :func:`~helpers.linear_regions.cells.cell_slopes`.
    level : int
        The level ``i`` of the bends, at most ``d - 1``.

    Returns
    -------
    left, right : numpy.ndarray (2^i,)

    Raises
    ------
    ValueError
        If the number of slopes is no power of two, or ``level`` is outside
        its range.

    Notes
    -----
    Source: ours.

    Examples
    --------
    >>> slopes_at_peaks([0.75, 0.25, -0.25, -0.75], 0)
    (array([0.25]), array([-0.25]))
    """
    m = np.asarray(slopes, dtype=np.float64)
    depth = m.size.bit_length() - 1
    if m.ndim != 1 or m.size != 2**depth or m.size < 2:
        raise ValueError(
            f"slopes must be a vector of 2^d numbers, got shape {m.shape}"
        )
    if not 0 <= level < depth:
        raise ValueError(f"level must lie in [0, {depth - 1}], got {level}")
    half = 2 ** (depth - level - 1)
    return m[half - 1 :: 2 * half], m[half :: 2 * half]
