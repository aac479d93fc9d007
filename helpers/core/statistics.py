"""Intervals and spreads: how sure a number of the book is."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy import stats

from helpers.core.randomness import Seed, as_generator


class Spread(NamedTuple):
    """Median with the quantiles of a central interval."""

    median: float
    low: float
    high: float


class Slope(NamedTuple):
    """Slope of a straight line in log-log axes with its interval."""

    slope: float
    low: float
    high: float
    log_intercept: float


def _level(level: float) -> float:
    if not 0 < level < 1:
        raise ValueError(f"level must lie in (0, 1), got {level}")
    return float(level)


def _sample(values, name: str, least: int = 1) -> np.ndarray:
    values = np.asarray(values, dtype=float)
    if values.ndim != 1:
        raise ValueError(f"{name} must be 1-D, got shape {values.shape}")
    if values.size < least:
        raise ValueError(
            f"{name} must hold at least {least} values, got {values.size}"
        )
    if not np.isfinite(values).all():
        raise ValueError(f"{name} must be finite")
    return values


def wilson_interval(hits, n, level: float = 0.95):
    r"""Wilson's score interval of a probability.

    With :math:`\hat p=h/n` and :math:`z` the normal quantile,

    .. math::

       \frac{\hat p+\frac{z^2}{2n}\pm z\sqrt{\frac{\hat p(1-\hat p)}{n}
       +\frac{z^2}{4n^2}}}{1+z^2/n}.

    Unlike :math:`\hat p\pm z\,\mathrm{se}` it is not empty at 0 and 1.

    Parameters
    ----------
    hits, n : int or array of int, broadcast against each other
        Successes and trials, ``0 <= hits <= n`` and ``n >= 1``.
    level : float in (0, 1)
        Coverage.

    Returns
    -------
    low, high : float or array
        Ends of the interval, within ``[0, 1]``.

    Raises
    ------
    ValueError
        If ``hits`` is not between 0 and ``n``, or ``n < 1``.

    Notes
    -----
    Source: E. B. Wilson, J. Amer. Statist. Assoc. 22 (1927) 209-212.

    Examples
    --------
    >>> low, high = wilson_interval(9, 10)
    >>> f"{low:.4f} {high:.4f}"
    '0.5958 0.9821'
    """
    z = stats.norm.ppf(0.5 + _level(level) / 2)
    hits, n = np.asarray(hits), np.asarray(n)
    for name, value in (("hits", hits), ("n", n)):
        if not np.issubdtype(value.dtype, np.integer):
            raise ValueError(f"{name} must be whole numbers")
    if (n < 1).any() or (hits < 0).any() or (hits > n).any():
        raise ValueError(
            f"need n >= 1 and 0 <= hits <= n, got hits={hits}, n={n}"
        )
    p = hits / n
    middle = p + z**2 / (2 * n)
    half = z * np.sqrt(p * (1 - p) / n + z**2 / (4 * n**2))
    # the ends at 0 and n are exact; rounding must not leave [0, 1]
    low = np.where(hits == 0, 0.0, (middle - half) / (1 + z**2 / n))
    high = np.where(hits == n, 1.0, (middle + half) / (1 + z**2 / n))
    if low.ndim == 0:
        return float(low), float(high)
    return low, high


def bootstrap_interval(
    values,
    rng: Seed,
    statistic=np.mean,
    level: float = 0.95,
    resamples: int = 2000,
) -> tuple[float, float]:
    """Percentile bootstrap interval of a statistic.

    Parameters
    ----------
    values : array, shape (n,)
        Sample, finite, ``n >= 2``.
    rng : seed or numpy.random.Generator
    statistic : callable
        ``statistic(sample, axis=-1)``, vectorised as NumPy's are.
    level : float in (0, 1)
    resamples : int
        Number of resamples, at least 100.

    Returns
    -------
    low, high : float

    Raises
    ------
    ValueError
        If the sample is too small or not finite, or ``resamples < 100``.

    Notes
    -----
    A percentile interval of a handful of seeds is too short: with ``n``
    below about ten say so beside the number. Time and memory are
    ``O(resamples * n)``.

    Examples
    --------
    >>> low, high = bootstrap_interval([1.0, 2.0, 3.0, 4.0], rng=0)
    >>> low < 2.5 < high
    True
    """
    values = _sample(values, "values", least=2)
    if resamples < 100:
        raise ValueError(f"resamples must be >= 100, got {resamples}")
    rng = as_generator(rng)
    picks = rng.integers(values.size, size=(int(resamples), values.size))
    means = statistic(values[picks], axis=-1)
    tail = (1 - _level(level)) / 2
    low, high = np.quantile(means, [tail, 1 - tail])
    return float(low), float(high)


def median_and_spread(values, level: float = 0.8) -> Spread:
    """Median of a sample and the central interval that holds ``level`` of it.

    Parameters
    ----------
    values : array, shape (n,)
        Finite, ``n >= 1``.
    level : float in (0, 1)
        Share of the sample between ``low`` and ``high`` (linear quantiles).

    Returns
    -------
    Spread
        ``median``, ``low``, ``high``.

    Raises
    ------
    ValueError
        If the sample is empty, not 1-D or not finite.

    Examples
    --------
    >>> median_and_spread([1, 2, 3, 4, 5], level=0.5)
    Spread(median=3.0, low=2.0, high=4.0)
    """
    values = _sample(values, "values")
    tail = (1 - _level(level)) / 2
    low, mid, high = np.quantile(values, [tail, 0.5, 1 - tail])
    return Spread(float(mid), float(low), float(high))


def log_log_slope(x, y, level: float = 0.95) -> Slope:
    """Least-squares slope of ``log y`` on ``log x``, with a t interval.

    Parameters
    ----------
    x, y : array, shape (n,)
        Positive, finite, ``n >= 3``, ``x`` not all equal.
    level : float in (0, 1)

    Returns
    -------
    Slope
        ``slope``, ``low``, ``high``, ``log_intercept`` (natural logarithm).

    Raises
    ------
    ValueError
        If a value is not positive, sizes differ, or ``n < 3``.

    Notes
    -----
    The interval takes the residuals as independent and of equal variance; it
    says nothing about curvature. Plot the points.

    Examples
    --------
    >>> fit = log_log_slope([1, 2, 4, 8], [3, 12, 48, 192])
    >>> f"{fit.slope:.6f} {fit.high - fit.low < 1e-9}"
    '2.000000 True'
    """
    x, y = _sample(x, "x", least=3), _sample(y, "y", least=3)
    if x.size != y.size:
        raise ValueError(
            f"x and y must have equal sizes, got {x.size}, {y.size}"
        )
    for name, value in (("x", x), ("y", y)):
        if (value <= 0).any():
            raise ValueError(f"{name} must be positive")
    if np.ptp(x) == 0:
        raise ValueError("x must hold at least two different values")
    fit = stats.linregress(np.log(x), np.log(y))
    half = stats.t.ppf(0.5 + _level(level) / 2, x.size - 2) * fit.stderr
    return Slope(
        float(fit.slope),
        float(fit.slope - half),
        float(fit.slope + half),
        float(fit.intercept),
    )
