r"""The pieces of a sum of waves, from its parameters alone.

Wave :math:`W_i` runs from 0 to 1 or back on each of its :math:`2^{i+1}`
cells. The next peak splits a rising cell in the ratio
:math:`a : (1-a)` and a falling one in the ratio :math:`(1-a) : a`, so the
cells of any depth are known without a network and without a search.
"""

from __future__ import annotations

from fractions import Fraction
from typing import NamedTuple

import numpy as np

from helpers.linear_regions.triangles import check_peaks

LARGEST_DEPTH = 24
"""Arrays over all cells are refused beyond: 2^24 cells take 128 MB each."""


class WaveCells(NamedTuple):
    """Knots of a wave and the direction in which it runs between them."""

    knots: np.ndarray
    rising: np.ndarray


class CellSlopes(NamedTuple):
    """Lengths of the cells of a sum of waves, and its slopes on them."""

    lengths: np.ndarray
    slopes: np.ndarray


class CellAddress(NamedTuple):
    """Where a point lies: side of each peak, and the log of the length."""

    right: np.ndarray
    log_length: float


def _depth(size: int) -> int:
    if size > LARGEST_DEPTH:
        raise ValueError(
            f"peaks has {size} entries, which makes 2^{size} cells; arrays "
            f"over all cells are made up to {LARGEST_DEPTH} peaks. Use "
            "cell_address for single cells at any depth"
        )
    return size


def _one_vector(peaks) -> np.ndarray:
    a = check_peaks(peaks)
    if a.ndim != 1:
        raise ValueError(f"peaks must be one vector, got shape {a.shape}")
    return a


def wave_cells(peaks, exact: bool = False) -> WaveCells:
    r"""Knots of the wave :math:`W_{d-1}`, all :math:`2^d + 1` of them.

    Parameters
    ----------
    peaks : array_like (d,)
        Peaks in (0, 1); with ``exact`` also fractions. Floats are taken at
        their exact binary value.
    exact : bool
        Rational arithmetic: knots are :class:`fractions.Fraction`, no two
        of them ever coincide.

    Returns
    -------
    WaveCells
        ``knots (2^d + 1,)``, from 0 to 1, and ``rising (2^d,)`` of booleans.

    Raises
    ------
    ValueError
        If a peak is outside (0, 1), or there are more than
        ``LARGEST_DEPTH``.

    Notes
    -----
    Cost :math:`O(2^d)`. In float64 a cell shorter than the spacing of
    numbers near its knot has length zero; ``exact`` or
    :func:`cell_address` do not lose it. Source: ours, from section 3 of
    Milkert, Hyde and Laine.

    Examples
    --------
    >>> wave_cells([0.25, 0.5]).knots
    array([0.   , 0.125, 0.25 , 0.625, 1.   ])
    >>> wave_cells([Fraction(1, 3)], exact=True).knots[1]
    Fraction(1, 3)
    """
    _one_vector([float(a) for a in peaks])
    one = Fraction(1) if exact else 1.0
    a = [Fraction(p) if exact else float(p) for p in peaks]
    _depth(len(a))
    knots = np.array([0 * one, one], dtype=object if exact else float)
    rising = np.array([True])
    for peak in a:
        share = np.where(rising, peak, one - peak)
        finer = np.empty(2 * knots.size - 1, dtype=knots.dtype)
        finer[::2] = knots
        finer[1::2] = knots[:-1] + share * (knots[1:] - knots[:-1])
        knots = finer
        rising = np.tile([True, False], knots.size // 2)
    return WaveCells(knots, rising)


def cell_slopes(peaks, scales) -> CellSlopes:
    r"""Slopes of :math:`\sum_{i<d} s_i W_i` on its cells.

    The wave of a cell of level ``i`` has slope plus or minus one over the
    length of that cell. Lengths are products, so that they keep their
    relative accuracy however short they are.

    Parameters
    ----------
    peaks, scales : array_like (d,)

    Returns
    -------
    CellSlopes
        ``lengths (2^d,)``, which sum to 1, and ``slopes (2^d,)``.

    Raises
    ------
    ValueError
        If the lengths of the arguments differ, or as :func:`wave_cells`.

    Notes
    -----
    Cost :math:`O(2^d)`. Source: ours.

    Examples
    --------
    >>> cell_slopes([0.5, 0.5], [0.25, 0.0625]).slopes
    array([ 0.75,  0.25, -0.25, -0.75])
    """
    a = _one_vector(peaks)
    s = np.asarray(scales, dtype=np.float64)
    if s.shape != a.shape or not np.all(np.isfinite(s)):
        raise ValueError(
            f"scales must be {a.size} finite numbers, one for each peak, got "
            f"shape {s.shape}"
        )
    _depth(a.size)
    lengths, slopes = np.ones(1), np.zeros(1)
    rising = np.array([True])
    for peak, scale in zip(a, s, strict=True):
        left = np.where(rising, peak, 1 - peak)
        right = np.where(rising, 1 - peak, peak)
        lengths = np.stack([lengths * left, lengths * right], 1).ravel()
        rising = np.tile([True, False], lengths.size // 2)
        step = np.where(rising, scale, -scale) / lengths
        slopes = np.repeat(slopes, 2) + step
    return CellSlopes(lengths, slopes)


def cell_address(x: float, peaks) -> CellAddress:
    r"""The cell of :math:`W_{d-1}` that contains a point, at any depth.

    Parameters
    ----------
    x : float or Fraction
        Point of [0, 1]. A fraction is followed in exact arithmetic.
    peaks : sequence (d,)
        Of numbers in (0, 1), as exact as ``x``.

    Returns
    -------
    CellAddress
        ``right (d,)``: whether the point lies beyond the peak when it
        arrives there; ``log_length``: the sum of the logarithms of the
        splits, finite at every depth.

    Raises
    ------
    ValueError
        If ``x`` or a peak is outside its interval.

    Notes
    -----
    Cost :math:`O(d)`. Every address has a cell of positive length, so
    there are exactly :math:`2^d`. In float64 a point forgets one bit or so a
    layer: beyond some fifty layers give fractions. Source: ours.

    Examples
    --------
    >>> cell_address(Fraction(1, 3), [Fraction(1, 2)] * 4).right
    array([False,  True,  True,  True])
    >>> round(cell_address(0.3, [0.5] * 2000).log_length, 6)
    -1386.294361
    """
    _one_vector([float(a) for a in peaks])
    if not 0 <= x <= 1:
        raise ValueError(f"x must lie in [0, 1], got {x}")
    right, log_length = [], 0.0
    for peak in peaks:
        beyond = bool(x > peak)
        right.append(beyond)
        log_length += float(
            np.log1p(-float(peak)) if beyond else np.log(float(peak))
        )
        x = (1 - x) / (1 - peak) if beyond else x / peak
    return CellAddress(np.array(right), log_length)
