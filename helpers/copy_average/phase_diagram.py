r"""From the classes of many runs to the two ends of the mixed regime.

Runs at one teacher size fall into two classes whose shares change with the
width. A logistic curve through the share of one class has a place where it
leaves 1 and a place where it reaches 0; resampling the seeds says how well
they are known.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import expit, logit

from helpers.copy_average.classify import LABELS
from helpers.core.randomness import Seed, as_generator
from helpers.core.tolerances import LOGIT_RIDGE

__all__ = [
    "ClassCounts",
    "RegimeThresholds",
    "Threshold",
    "class_counts",
    "logistic_fit",
    "regime_thresholds",
]

_NEWTON_STEPS = 60


class ClassCounts(NamedTuple):
    """How many runs ended in which class, by width.

    Parameters
    ----------
    widths : ndarray of int, shape (W,)
        Increasing.
    counts : ndarray of int, shape (W, C)
        A column for each of :data:`~helpers.copy_average.classify.LABELS`.
    """

    widths: NDArray
    counts: NDArray

    @property
    def runs(self) -> NDArray:
        """Runs at each width, shape (W,)."""
        return self.counts.sum(axis=1)

    def of(self, label: str) -> NDArray:
        """Runs of one class at each width, shape (W,).

        Parameters
        ----------
        label : str
            One of :data:`~helpers.copy_average.classify.LABELS`.

        Returns
        -------
        ndarray of int, shape (W,)
        """
        if label not in LABELS:
            raise ValueError(f"label must be one of {LABELS}, got {label!r}")
        return self.counts[:, LABELS.index(label)]


def class_counts(n: ArrayLike, labels: ArrayLike) -> ClassCounts:
    """Count the classes of runs by width.

    Parameters
    ----------
    n : array_like of int, shape (R,)
        Width of each run.
    labels : array_like of str, shape (R,)
        Its class.

    Returns
    -------
    ClassCounts

    Raises
    ------
    ValueError
        If the shapes differ, there is no run, or a label is unknown.

    Notes
    -----
    Source: ours, for Figure 4 of Simsek et al. (2023).

    Examples
    --------
    >>> found = class_counts([2, 3, 2], ["optimal_ca", "dead", "optimal_ca"])
    >>> found.widths.tolist(), found.of("optimal_ca").tolist()
    ([2, 3], [2, 0])
    """
    n, labels = np.asarray(n), np.asarray(labels)
    if n.ndim != 1 or n.shape != labels.shape or n.size == 0:
        raise ValueError(
            "n and labels must be rows of one length >= 1, got shapes "
            f"{n.shape} and {labels.shape}"
        )
    unknown = set(labels.tolist()) - set(LABELS)
    if unknown:
        raise ValueError(
            f"labels must be among {LABELS}, got {sorted(unknown)}"
        )
    widths, place = np.unique(n, return_inverse=True)
    counts = np.zeros((widths.size, len(LABELS)), dtype=int)
    np.add.at(counts, (place, [LABELS.index(x) for x in labels]), 1)
    return ClassCounts(widths, counts)


class Threshold(NamedTuple):
    """A place on the axis of widths, with its interval."""

    value: float
    low: float
    high: float


class RegimeThresholds(NamedTuple):
    r"""Where the share of copy-average runs leaves 1, is 1/2 and reaches 0.

    Parameters
    ----------
    gamma_1, half, gamma_2 : Threshold
        In units of :math:`n/k`.
    intercept, slope : float
        Of the fitted log-odds, as a function of :math:`n`.
    """

    gamma_1: Threshold
    half: Threshold
    gamma_2: Threshold
    intercept: float
    slope: float


def logistic_fit(
    n: ArrayLike, hits: ArrayLike, runs: ArrayLike
) -> tuple[NDArray, NDArray]:
    r"""Fit :math:`P(\mathrm{hit}) = 1/(1 + e^{-(c + sn)})` to counts.

    Maximum likelihood, with a ridge on the slope that matters only where the
    classes do not overlap.

    Parameters
    ----------
    n : array_like, shape (W,)
        Widths, at least two different ones.
    hits : array_like, shape (..., W)
        Runs of the class; leading axes are fitted one by one.
    runs : array_like, shape (W,)
        All runs, 1 or more.

    Returns
    -------
    intercept, slope : ndarray, shape (...)

    Raises
    ------
    ValueError
        If shapes do not fit, a width has no run, or hits exceed runs.

    Notes
    -----
    Damped Newton steps for all fits at once; :math:`O(W)` each.

    Source: textbook logistic regression.

    Examples
    --------
    >>> c, s = logistic_fit([1, 2, 3], [9, 5, 1], [10, 10, 10])
    >>> bool(abs(c + 2 * s) < 1e-3), bool(s < 0)
    (True, True)
    """
    n, runs = np.asarray(n, dtype=float), np.asarray(runs, dtype=float)
    hits = np.asarray(hits, dtype=float)
    if n.ndim != 1 or np.unique(n).size < 2 or runs.shape != n.shape:
        raise ValueError(
            "n and runs must be rows of one length with two different widths "
            f"or more, got shapes {n.shape} and {runs.shape}"
        )
    if hits.shape[-1:] != n.shape or np.any(runs < 1):
        raise ValueError("hits must end in the axis of n, and runs be >= 1")
    if np.any(hits < 0) or np.any(hits > runs):
        raise ValueError("hits must be between 0 and runs")
    middle = n.mean()
    x = n - middle
    fit = np.zeros((*hits.shape[:-1], 2))
    for _ in range(_NEWTON_STEPS):
        p = expit(fit[..., :1] + fit[..., 1:] * x)
        miss, weight = hits - runs * p, runs * p * (1 - p)
        gradient = np.stack([miss.sum(-1), (miss * x).sum(-1)], axis=-1)
        gradient = gradient - LOGIT_RIDGE * fit
        a = weight.sum(-1) + LOGIT_RIDGE
        b, c = (weight * x).sum(-1), (weight * x * x).sum(-1) + LOGIT_RIDGE
        step = (
            np.stack(
                [
                    c * gradient[..., 0] - b * gradient[..., 1],
                    a * gradient[..., 1] - b * gradient[..., 0],
                ],
                axis=-1,
            )
            / (a * c - b * b)[..., None]
        )
        # log-odds that jump by more than a few units overshoot
        size = np.abs(step).max(axis=-1, keepdims=True)
        fit = fit + step / np.maximum(1, size)
    return fit[..., 0] - fit[..., 1] * middle, fit[..., 1]


def regime_thresholds(
    n: ArrayLike,
    k: int,
    hits: ArrayLike,
    runs: ArrayLike,
    rng: Seed,
    *,
    share: float = 0.95,
    level: float = 0.95,
    resamples: int = 1000,
) -> RegimeThresholds:
    r"""Estimate the two ends of the mixed regime, with bootstrap intervals.

    :math:`\gamma_1` is where the fitted share of copy-average runs falls to
    ``share`` and :math:`\gamma_2` where it falls to ``1 - share``. The paper
    reads both off twenty seeds a width: twenty seeds of one class are what
    one expects half of the time at a share of 0.966.

    Parameters
    ----------
    n : array_like of int, shape (W,)
        Widths.
    k : int
        Teacher neurons, 1 or more.
    hits : array_like of int, shape (W,)
        Copy-average runs.
    runs : array_like of int, shape (W,)
        Runs of either class.
    rng : numpy.random.Generator or int
        For the resampling.
    share : float, default 0.95
        Above one half, below 1.
    level : float, default 0.95
        Of the percentile intervals.
    resamples : int, default 1000
        At least 100.

    Returns
    -------
    RegimeThresholds

    Raises
    ------
    ValueError
        If a number is out of range, as :func:`logistic_fit`, or if the share
        does not fall with the width.

    Notes
    -----
    Seeds are drawn anew within each width, which for two classes is a
    binomial draw. The interval covers the chance in the seeds; that the curve
    is a logistic one is an assumption which it does not cover.

    Source: ours, for Figure 4 of Simsek et al. (2023).

    Examples
    --------
    >>> found = regime_thresholds(
    ...     [6, 7, 8, 9], 12, [20, 19, 4, 0], [20, 20, 20, 20], rng=0
    ... )
    >>> found.gamma_1.value < found.half.value < found.gamma_2.value
    True
    """
    if not 0.5 < share < 1 or not 0 < level < 1:
        raise ValueError(
            "share must be between 1/2 and 1 and level between 0 and 1, got "
            f"{share} and {level}"
        )
    if k < 1 or resamples < 100:
        raise ValueError(
            f"need k >= 1 and resamples >= 100, got {k} and {resamples}"
        )
    hits, runs = np.asarray(hits), np.asarray(runs)
    intercept, slope = logistic_fit(n, hits, runs)
    if not slope < 0:
        raise ValueError("the share of hits must fall with n")
    draws = as_generator(rng).binomial(
        runs, hits / runs, size=(resamples, runs.size)
    )
    drawn = logistic_fit(n, draws, runs)
    odds = float(logit(share))
    return RegimeThresholds(
        *(
            _threshold((intercept, slope), drawn, height, k, level)
            for height in (odds, 0.0, -odds)
        ),
        float(intercept),
        float(slope),
    )


def _threshold(fit, drawn, height: float, k: int, level: float) -> Threshold:
    places = (height - drawn[0]) / drawn[1] / k
    tail = (1 - level) / 2
    low, high = np.quantile(places, [tail, 1 - tail])
    value = (height - fit[0]) / fit[1] / k
    return Threshold(float(value), float(low), float(high))
