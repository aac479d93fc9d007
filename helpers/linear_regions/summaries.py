"""From lists of errors, one a network, to a line of a table."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from helpers.core.randomness import Seed, spawn
from helpers.core.statistics import bootstrap_interval, wilson_interval

__all__ = [
    "Course",
    "RunSummary",
    "course",
    "pick_rows",
    "pooled",
    "summarise_runs",
]


class RunSummary(NamedTuple):
    """A batch of runs in a few numbers.

    Parameters
    ----------
    best, median, mean : float
    mean_low, mean_high : float
        Bootstrap interval of the mean, 95 %.
    median_low, median_high : float
        Bootstrap interval of the median, 95 %.
    flat, flat_low, flat_high : float
        Fraction of runs that learnt nothing but the mean, and its Wilson
        interval, 95 %.
    regions : float
        Mean number of activation regions.
    """

    best: float
    median: float
    mean: float
    mean_low: float
    mean_high: float
    median_low: float
    median_high: float
    flat: float
    flat_low: float
    flat_high: float
    regions: float


def summarise_runs(mse, flat, regions, rng: Seed = 0) -> RunSummary:
    """Minimum, median, mean, intervals and fractions of a batch of runs.

    Parameters
    ----------
    mse : array_like, shape (R,)
        Errors, finite, ``R >= 2``.
    flat : array_like of bool, shape (R,)
    regions : array_like, shape (R,)
    rng : int or SeedSequence
        Of the bootstrap.

    Returns
    -------
    RunSummary

    Raises
    ------
    ValueError
        If shapes differ, an error is not finite, or there are fewer than
        two.

    Notes
    -----
    The minimum has no bootstrap interval: resampling never sees a smaller
    one. How much it moves is seen in other batches of seeds.

    Source: Milkert, Hyde and Laine (2025), Tables 1 and 2, for minimum and
    mean; the rest is ours.

    Examples
    --------
    >>> line = summarise_runs([1.0, 2.0, 6.0], [False, False, True], [4, 5, 6])
    >>> line.best, line.median, line.mean, line.regions
    (1.0, 2.0, 3.0, 5.0)
    """
    mse, flat = np.asarray(mse, dtype=float), np.asarray(flat)
    regions = np.asarray(regions, dtype=float)
    if mse.ndim != 1 or flat.shape != mse.shape or regions.shape != mse.shape:
        raise ValueError(
            "mse, flat and regions must be vectors of one size, got "
            f"{mse.shape}, {flat.shape} and {regions.shape}"
        )
    if mse.size < 2 or not np.isfinite(mse).all():
        raise ValueError(
            f"mse must hold two or more finite errors, got {mse.size}"
        )
    first, second = spawn(rng, 2)
    return RunSummary(
        float(mse.min()),
        float(np.median(mse)),
        float(mse.mean()),
        *bootstrap_interval(mse, first),
        *bootstrap_interval(mse, second, np.median),
        float(flat.mean()),
        *wilson_interval(int(flat.sum()), flat.size),
        float(regions.mean()),
    )


def pick_rows(columns, **wanted) -> list[dict]:
    """Rows of a stored table that hold the given values.

    Parameters
    ----------
    columns : mapping from names to arrays
        As ``load_results(path).columns``: one entry a row in each array.
    **wanted
        Names and values; a list is compared entry by entry.

    Returns
    -------
    list of dict
        The rows that fit, at least one, in their order.

    Raises
    ------
    ValueError
        If a column does not exist or no row fits.

    Notes
    -----
    Source: ours.

    Examples
    --------
    >>> columns = {"method": ["a", "b"], "mse": [1.0, 2.0]}
    >>> pick_rows(columns, method="b")
    [{'method': 'b', 'mse': 2.0}]
    """
    for name in wanted:
        if name not in columns:
            raise ValueError(
                f"the table has no column {name!r}, only {list(columns)}"
            )
    rows = [
        dict(zip(columns, values, strict=True))
        for values in zip(*columns.values(), strict=True)
    ]
    found = [
        row
        for row in rows
        if all(_plain(row[k]) == _plain(v) for k, v in wanted.items())
    ]
    if not found:
        raise ValueError(f"no row holds {wanted}")
    return found


class Course(NamedTuple):
    """Epochs ``(E,)``, and regions and errors ``(E, runs)`` at them."""

    epochs: np.ndarray
    regions: np.ndarray
    mse: np.ndarray


def course(columns, **wanted) -> Course:
    """The course of training after the switch, from ``switch_dynamics``.

    Parameters
    ----------
    columns : mapping from names to arrays
    **wanted
        As for :func:`pick_rows`; the first row that fits is taken.

    Returns
    -------
    Course

    Raises
    ------
    ValueError
        As :func:`pick_rows`.

    Notes
    -----
    Source: ours.

    Examples
    --------
    >>> table = {"target": ["x^2"], "runs": [2], "epoch": [[0, 0, 5, 5]],
    ...          "activation": [[32, 32, 40, 41]], "mse": [[4.0, 3, 2, 1]]}
    >>> course(table, target="x^2").regions.tolist()
    [[32, 32], [40, 41]]
    """
    row = pick_rows(columns, **wanted)[0]
    shape = (-1, int(row["runs"]))
    epochs, regions, mse = (
        np.reshape(row[name], shape) for name in ("epoch", "activation", "mse")
    )
    return Course(epochs[:, 0], regions, mse)


def pooled(rows) -> RunSummary:
    """Summary of all networks of the given rows of ``dense_fits``.

    Parameters
    ----------
    rows : list of dict
        With lists ``mse``, ``flat`` and ``activation``, as from
        :func:`pick_rows`.

    Returns
    -------
    RunSummary

    Raises
    ------
    ValueError
        As :func:`summarise_runs`.

    Notes
    -----
    Source: ours.

    Examples
    --------
    >>> row = {"mse": [1.0, 3.0], "flat": [False, True], "activation": [2, 4]}
    >>> pooled([row, row]).mean
    2.0
    """
    joined = [
        np.concatenate([np.asarray(row[name]) for row in rows])
        for name in ("mse", "flat", "activation")
    ]
    return summarise_runs(*joined)


def _plain(value):
    if isinstance(value, list | tuple | np.ndarray):
        return [_plain(v) for v in value]
    return value.item() if isinstance(value, np.generic) else value
