r"""Triangles, the waves they make when composed, and sums of waves.

A *triangle* with peak :math:`a` rises from 0 to 1 on :math:`[0, a]` and falls
back on :math:`[a, 1]`. Composing :math:`d` of them folds the interval
:math:`d` times. The last wave has :math:`2^d` pieces, and so has the sum.
"""

from __future__ import annotations

from typing import Literal

import numpy as np

Mode = Literal["concave", "convex"]
MODES = ("concave", "convex")


def check_peaks(peaks, least: int = 1, name: str = "peaks") -> np.ndarray:
    """Peaks as float64, each strictly between 0 and 1.

    Parameters
    ----------
    peaks : array_like (..., m)
    least : int
        Smallest length of the last axis.
    name : str
        What the argument is called in an error.

    Raises
    ------
    ValueError
        If an entry is outside the open interval or there are too few.

    Notes
    -----
    Source: ours.

    Examples
    --------
    >>> check_peaks([0.25, 0.5])
    array([0.25, 0.5 ])
    """
    a = np.asarray(peaks, dtype=np.float64)
    if a.ndim == 0 or a.shape[-1] < least:
        raise ValueError(
            f"{name} must have at least {least} entries along the last axis, "
            f"got shape {a.shape}"
        )
    if not np.all((a > 0) & (a < 1)):  # NaN fails both
        wrong = a[~((a > 0) & (a < 1))][0]
        raise ValueError(
            f"{name} must lie strictly between 0 and 1, got {wrong}"
        )
    return a


def check_mode(mode: str) -> float:
    """The sign of the waves: +1 for concave targets, -1 for convex ones.

    Parameters
    ----------
    mode : {"concave", "convex"}

    Notes
    -----
    Source: ours.

    Examples
    --------
    >>> check_mode("convex")
    -1.0
    """
    if mode not in MODES:
        raise ValueError(f"mode must be one of {MODES}, got {mode!r}")
    return 1.0 if mode == "concave" else -1.0


def _points(x) -> np.ndarray:
    x = np.asarray(x, dtype=np.float64)
    if not np.all((x >= 0) & (x <= 1)):
        wrong = x[~((x >= 0) & (x <= 1))].flat[0]
        raise ValueError(f"x must lie in [0, 1], got {wrong}")
    return x


def _fold(x, a):
    """A triangle without checks; exact bounds 0 and 1 survive rounding."""
    return np.minimum(x / a, (1 - x) / (1 - a))


def triangle(x, peak) -> np.ndarray:
    r"""The triangle function :math:`T_a`.

    :math:`T_a(x) = x/a` on :math:`[0, a]` and :math:`(1-x)/(1-a)` on
    :math:`[a, 1]`.

    Parameters
    ----------
    x : array_like
        Points of [0, 1].
    peak : array_like
        Peaks in (0, 1); broadcasts against ``x``.

    Returns
    -------
    numpy.ndarray
        Values in [0, 1].

    Raises
    ------
    ValueError
        If a point or a peak is outside its interval, or not a number.

    Notes
    -----
    Source: Milkert, Hyde and Laine, section 3.

    Examples
    --------
    >>> triangle([0, 0.1, 0.2, 0.6, 1], 0.2)
    array([0. , 0.5, 1. , 0.5, 0. ])
    """
    a = check_peaks(np.atleast_1d(peak), name="peak")
    return _fold(_points(x), a.reshape(np.shape(peak)))


def triangle_wave(x, peaks) -> np.ndarray:
    r"""All waves :math:`W_i = T_{a_i} \circ \dots \circ T_{a_0}`.

    Parameters
    ----------
    x : array_like
        Points of [0, 1], any shape.
    peaks : array_like (d,)
        Peaks in (0, 1).

    Returns
    -------
    numpy.ndarray (d, ...)
        Row ``i`` is :math:`W_i(x)`, a wave of :math:`2^{i+1}` pieces.

    Raises
    ------
    ValueError
        If a point or a peak is outside its interval, or there is no peak.

    Notes
    -----
    Cost :math:`O(d)` a point. Source: Milkert, Hyde and Laine, section 3.

    Examples
    --------
    >>> triangle_wave([0, 0.25, 0.5, 0.75, 1], [0.5, 0.5])[1]
    array([0., 1., 0., 1., 0.])
    """
    x = _points(x)
    a = _vector(peaks)
    waves = np.empty((a.size, *x.shape))
    for i, peak in enumerate(a):
        x = waves[i] = _fold(x, peak)
    return waves


def _vector(peaks, least: int = 1) -> np.ndarray:
    a = check_peaks(peaks, least)
    if a.ndim != 1:
        raise ValueError(f"peaks must be one vector, got shape {a.shape}")
    return a


def limit_scales(peaks, mode: Mode, s0=None) -> np.ndarray:
    r"""The scales that make the limit of the sum differentiable.

    :math:`s_{i+1} = s_i (1 - a_{i+1}) a_{i+2}`, from
    :math:`s_0 = (1-a_0) a_1` (concave) or :math:`s_0 = a_0 a_1` (convex).

    Parameters
    ----------
    peaks : array_like (..., d + 1)
        Peaks in (0, 1), one more than there are waves: the last peak only
        scales the last wave.
    mode : {"concave", "convex"}
        Whether the waves are added to ``x`` or subtracted from it.
    s0 : float, optional
        Another first scale, positive; the others follow from it.

    Returns
    -------
    numpy.ndarray (..., d)
        Positive scales.

    Raises
    ------
    ValueError
        If a peak is outside (0, 1), there are fewer than two, ``mode`` is
        unknown, or ``s0`` is not a positive number.

    Notes
    -----
    Source: Milkert, Hyde and Laine, Theorem 3.1 and section 4.1.

    Examples
    --------
    >>> limit_scales([0.5, 0.5, 0.5, 0.5], "convex")
    array([0.25    , 0.0625  , 0.015625])
    """
    a = check_peaks(peaks, least=2)
    sign = check_mode(mode)
    if s0 is None:
        first = a[..., 1] * ((1 - a[..., 0]) if sign > 0 else a[..., 0])
    else:
        first = np.broadcast_to(np.float64(s0), a.shape[:-1])
        if not np.all((first > 0) & np.isfinite(first)):
            raise ValueError(f"s0 must be a positive number, got {s0}")
    ratios = (1 - a[..., 1:-1]) * a[..., 2:]
    chain = np.concatenate([first[..., None], ratios], axis=-1)
    return np.cumprod(chain, axis=-1)


def _sum_arguments(peaks, mode, scales):
    a = _vector(peaks, least=2)
    sign = check_mode(mode)
    if scales is None:
        return a, sign, limit_scales(a, mode)
    s = np.asarray(scales, dtype=np.float64)
    if s.shape != (a.size - 1,) or not np.all(np.isfinite(s)):
        raise ValueError(
            f"scales must be {a.size - 1} finite numbers, one fewer than "
            f"peaks, got shape {s.shape}: {s}"
        )
    return a, sign, s


def triangle_sum(x, peaks, mode: Mode, scales=None) -> np.ndarray:
    r"""The function of the network, :math:`x \pm \sum_{i<d} s_i W_i(x)`.

    Parameters
    ----------
    x : array_like
        Points of [0, 1], any shape.
    peaks : array_like (d + 1,)
        Peaks in (0, 1). The last one enters through the scales only.
    mode : {"concave", "convex"}
        Plus for concave, minus for convex.
    scales : array_like (d,), optional
        By default those of :func:`limit_scales`.

    Returns
    -------
    numpy.ndarray
        Values, in the shape of ``x``.

    Raises
    ------
    ValueError
        If an argument is outside its range or has the wrong length.

    Notes
    -----
    Source: Milkert, Hyde and Laine, sections 3 and 4.1.

    Examples
    --------
    Ten halves give the parabola, up to a quarter to the tenth.

    >>> x = np.linspace(0, 1, 2001)
    >>> error = np.abs(triangle_sum(x, [0.5] * 11, "convex") - x**2).max()
    >>> bool(error <= 4.0 ** -11)
    True
    """
    a, sign, s = _sum_arguments(peaks, mode, scales)
    waves = triangle_wave(x, a[:-1])
    return np.asarray(x, np.float64) + sign * np.tensordot(s, waves, axes=1)


def peak_jacobian(x, peaks, mode: Mode) -> np.ndarray:
    r"""Derivative of :func:`triangle_sum` in the peaks, scales included.

    One backward sweep over the waves. With :math:`g_i` the derivative of the
    sum in :math:`W_i` at fixed scales,
    :math:`g_i = s_i + T'_{a_{i+1}}(W_i)\, g_{i+1}`, the waves contribute
    :math:`g_j\, \partial_a T_{a_j}(W_{j-1})`; the scales contribute
    logarithmic derivatives times the tail sums.

    Parameters
    ----------
    x : array_like (n,)
        Points of [0, 1]. At a bend the slope on the rising side is taken.
    peaks : array_like (d + 1,)
    mode : {"concave", "convex"}

    Returns
    -------
    numpy.ndarray (d + 1, n)

    Raises
    ------
    ValueError
        As :func:`triangle_sum`.

    Notes
    -----
    Cost :math:`O(d)` a point, as for the value. Source: ours; the paper
    leaves the derivative to back-propagation (algorithm 1).

    Examples
    --------
    >>> float(peak_jacobian([0.5], [0.5, 0.5], "convex")[1, 0])
    -0.5
    """
    x = np.asarray(x, dtype=np.float64)
    if x.ndim != 1:
        raise ValueError(f"x must be one vector, got shape {x.shape}")
    a, sign, s = _sum_arguments(peaks, mode, None)
    inner = a[:-1, None]
    waves = triangle_wave(x, a[:-1])
    before = np.concatenate([x[None], waves[:-1]])
    rising = before <= inner
    slope = np.where(rising, 1 / inner, -1 / (1 - inner))
    moved = np.where(
        rising, -before / inner**2, (1 - before) / (1 - inner) ** 2
    )
    result = np.zeros((a.size, x.size))
    tail, reach = np.zeros(x.size), np.zeros(x.size)
    tails = np.zeros((a.size, x.size))  # sum of s_n W_n from n = i on
    for i in range(s.size - 1, -1, -1):
        reach = s[i] + reach
        result[i] = reach * moved[i]
        reach = reach * slope[i]
        tail = tails[i] = tail + s[i] * waves[i]
    result[2:] += tails[1:-1] / a[2:, None]
    result[1:] -= tails[1:] / (1 - a[1:, None])
    result[0] += tails[0] * (1 / a[0] if sign < 0 else -1 / (1 - a[0]))
    result[1] += tails[0] / a[1]
    return sign * result
