"""What convexity allows between samples."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from helpers.core.tolerances import ROUNDING


class Corridor(NamedTuple):
    """Bounds halfway between inner samples."""

    middle: np.ndarray
    low: np.ndarray
    high: np.ndarray


def convex_corridor(x, f) -> Corridor:
    r"""Where a convex function can be, halfway between inner samples.

    Above by the chord, below by the two neighbouring chords, continued.

    Parameters
    ----------
    x : array_like (N + 1,)
        Increasing, at least four.
    f : array_like (N + 1,)
        Values of a convex function.

    Returns
    -------
    Corridor
        Three arrays ``(N - 2,)``.

    Raises
    ------
    ValueError
        If the samples do not increase, are too few, or are not convex.

    Notes
    -----
    Both bounds are attained by convex functions through the samples.
    Source: ours.

    Examples
    --------
    >>> convex_corridor([0, 1, 2, 3], [0, 1, 4, 9])
    Corridor(middle=array([1.5]), low=array([1.5]), high=array([2.5]))
    """
    x, f = np.asarray(x, np.float64), np.asarray(f, np.float64)
    if x.ndim != 1 or x.shape != f.shape or x.size < 4:
        raise ValueError(
            "x and f must be vectors of the same length, four or more, got "
            f"shapes {x.shape} and {f.shape}"
        )
    h = np.diff(x)
    if not (h > 0).all() or not np.isfinite(f).all():
        raise ValueError("x must increase and f be finite")
    slope = np.diff(f) / h
    rounding = ROUNDING * np.abs(f).max() / h.min()
    if (np.diff(slope) < -rounding).any():
        raise ValueError("f must be convex on x: slopes must not decrease")
    half = h[1:-1] / 2
    left = f[1:-2] + slope[:-2] * half
    right = f[2:-1] - slope[2:] * half
    high = (f[1:-2] + f[2:-1]) / 2
    return Corridor(x[1:-2] + half, np.maximum(left, right), high)
