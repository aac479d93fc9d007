r"""Random neurons that are on for a given fraction of the samples."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from helpers.core.linalg import check_orthonormal
from helpers.core.randomness import Seed, as_generator, spawn
from helpers.spectral_alignment.coverage import coverage_sines


def neurons_active_on(
    X, fraction: float, count: int, rng: Seed = 0
) -> np.ndarray:
    r"""Outputs of random neurons, each on for the same number of samples.

    The incoming weights are standard normal. With :math:`z_{(1)}\ge\dots\ge
    z_{(n)}` the sorted projections and :math:`a=\operatorname{round}(pn)`,
    the bias is :math:`-(z_{(a)}+z_{(a+1)})/2`, so that the ``a`` samples
    farthest in the direction of the weights are on. For :math:`a=n` it is
    above :math:`-z_{(n)}` by half the spacing of the two smallest.

    Parameters
    ----------
    X : array_like, shape (n, d)
        One sample a row, ``n >= 2``.
    fraction : float, in (0, 1]
        At least one sample must be on.
    count : int >= 1
    rng : int, SeedSequence or numpy.random.Generator

    Returns
    -------
    ndarray, shape (n, count)
        Where two samples tie at the threshold neither is on.

    Raises
    ------
    ValueError
        If ``X`` is not a finite matrix with two rows, or an option is out of
        range.

    Notes
    -----
    Source: ours (experiment E2).

    Examples
    --------
    >>> X = np.arange(8.0)[:, None]
    >>> (neurons_active_on(X, 0.25, 3) > 0).sum(axis=0).tolist()
    [2, 2, 2]
    """
    X = np.asarray(X, dtype=float)
    if X.ndim != 2 or X.shape[0] < 2 or not np.isfinite(X).all():
        raise ValueError(
            f"X must be a finite matrix with two rows, got shape {X.shape}"
        )
    n = X.shape[0]
    if not (0 < fraction <= 1 and round(fraction * n) >= 1):
        raise ValueError(
            f"fraction must be in (0, 1] and leave a sample on, got "
            f"{fraction!r} of {n}"
        )
    if isinstance(count, bool) or count % 1 != 0 or count < 1:
        raise ValueError(f"count must be a whole number >= 1, got {count!r}")
    w = as_generator(rng).normal(size=(X.shape[1], int(count)))
    z = X @ w
    falling = -np.sort(-z, axis=0)
    on = round(fraction * n)
    below = falling[on] if on < n else 2 * falling[-1] - falling[-2]
    return np.maximum(z - (falling[on - 1] + below) / 2, 0.0)


class SparseLayers(NamedTuple):
    """Capture of single neurons, shape ``(count,)``; captured features and
    gap of layers, each of shape ``(layers,)``."""

    alone: np.ndarray
    captured: np.ndarray
    gap: np.ndarray


def sparse_layers(
    X,
    UK,
    fraction: float,
    *,
    width: int,
    count: int,
    layers: int,
    seed: int = 0,
) -> SparseLayers:
    r"""Neurons that are on for a fraction of the samples, alone and in layers.

    Parameters
    ----------
    X : array_like, shape (n, d)
    UK : array_like, shape (n, K)
        Orthonormal columns.
    fraction : float, in (0, 1]
    width : int >= 1
        Neurons of a layer, to which the constant is added.
    count, layers : int >= 1
        Single neurons, and layers.
    seed : int
        The same seed gives the same weights for every fraction.

    Returns
    -------
    SparseLayers

    Raises
    ------
    ValueError
        As :func:`neurons_active_on` and
        :func:`helpers.spectral_alignment.coverage.coverage_sines`.

    Notes
    -----
    Source: ours (experiment E2).

    Examples
    --------
    On for all samples, neurons are affine: a line and the constant.

    >>> X = np.arange(6.0)[:, None]
    >>> U = np.linalg.qr(X ** np.arange(4))[0]
    >>> found = sparse_layers(X, U, 1.0, width=9, count=1, layers=2)
    >>> found.captured.round(9).tolist(), found.gap.tolist()
    ([2.0, 2.0], [1.0, 1.0])
    """
    UK = check_orthonormal(UK, "UK")
    if np.shape(X)[:1] != UK.shape[:1]:
        raise ValueError(
            f"X must have {len(UK)} rows as UK has, got shape {np.shape(X)}"
        )
    for value, name in ((width, "width"), (layers, "layers")):
        if isinstance(value, bool) or value % 1 != 0 or value < 1:
            raise ValueError(
                f"{name} must be a whole number >= 1, got {value!r}"
            )
    first, *rest = spawn(seed, int(layers) + 1)
    single = neurons_active_on(X, fraction, count, first)
    alone = np.sum((UK.T @ single) ** 2, axis=0)
    size = np.sum(single**2, axis=0)
    one = np.ones((len(single), 1))
    sines = np.array(
        [
            coverage_sines(
                np.c_[neurons_active_on(X, fraction, width, g), one], UK
            )
            for g in rest
        ]
    )
    return SparseLayers(
        # where all samples tie a neuron is off and captures nothing
        alone=alone / np.where(size > 0, size, 1.0),
        captured=np.sum(1 - sines**2, axis=1),
        gap=sines[:, 0],
    )
