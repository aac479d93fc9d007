r"""Random neurons that are on for a given fraction of the samples."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from helpers.core.checks import check_sizes, whole_number
from helpers.core.linalg import check_orthonormal
from helpers.core.randomness import Seed, as_generator, spawn
from helpers.spectral_alignment.active_bounds import dirichlet_eigenvalue
from helpers.spectral_alignment.coverage import coverage_sines
from helpers.spectral_alignment.spectra import (
    leverage_scores,
    rayleigh_quotient,
)


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
    count = whole_number(count, "count")
    w = as_generator(rng).normal(size=(X.shape[1], count))
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
    check_sizes(width=width, layers=layers)
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


class SparseBounds(NamedTuple):
    """What single neurons are, and what their active sets allow; each of
    shape ``(count,)``."""

    alone: np.ndarray
    capture: np.ndarray
    leverage: np.ndarray
    rayleigh: np.ndarray
    energy: np.ndarray


def sparse_neuron_bounds(
    X, UK, L, fraction: float, *, count: int, seed: int = 0
) -> SparseBounds:
    r"""Proposition 4.1 for neurons that are on for a fraction of the samples.

    For every neuron, with ``A`` the samples that it is on for:
    :math:`N_K(h)\le\|U_K[A,:]\|_2^2\le\min(1,\sum_{i\in A}\ell_i)` and
    :math:`R(h)\ge\lambda_{\min}(\mathcal L_{AA})`.

    Parameters
    ----------
    X : array_like, shape (n, d)
    UK : array_like, shape (n, K)
        Orthonormal columns.
    L : array_like or sparse array, shape (n, n)
        Graph Laplacian of either kind.
    fraction : float, in (0, 1]
    count : int >= 1
    seed : int
        The same seed gives the same weights for every fraction.

    Returns
    -------
    SparseBounds
        ``alone``: :math:`N_K(h)`; ``capture`` and ``leverage``, its two
        bounds; ``rayleigh``: :math:`R(h)`; ``energy``, its lower bound.

    Raises
    ------
    ValueError
        As :func:`neurons_active_on` and
        :func:`helpers.spectral_alignment.active_bounds.dirichlet_eigenvalue`,
        or if a neuron is off on all samples because they tie.

    Notes
    -----
    A dense eigenvalue for each neuron, :math:`O(|A|^3)`.

    Source: ours (experiment E2); the spectral-alignment paper, Proposition
    4.1.

    Examples
    --------
    One of the two ends of a path of three, whatever the weights:

    >>> path = np.array([[1.0, -1, 0], [-1, 2, -1], [0, -1, 1]])
    >>> U = np.array([[1.0, -1.0], [1, 0], [1, 1]]) / np.sqrt([3, 2])
    >>> X = [[-1.0], [0.0], [1.0]]
    >>> found = sparse_neuron_bounds(X, U, path, 1 / 3, count=4)
    >>> found.capture.round(6).tolist(), found.energy.tolist()
    ([0.833333, 0.833333, 0.833333, 0.833333], [1.0, 1.0, 1.0, 1.0])
    """
    UK = check_orthonormal(UK, "UK")
    if np.shape(X)[:1] != UK.shape[:1]:
        raise ValueError(
            f"X must have {len(UK)} rows as UK has, got shape {np.shape(X)}"
        )
    if np.shape(L) != (len(UK), len(UK)):
        raise ValueError(
            f"L must have shape {(len(UK), len(UK))}, got {np.shape(L)}"
        )
    H = neurons_active_on(X, fraction, count, spawn(seed, 1)[0])
    if not H.any(axis=0).all():
        raise ValueError(
            "X must have different rows: a neuron is off where all tie"
        )
    scores, sets = leverage_scores(UK), [h > 0 for h in H.T]
    return SparseBounds(
        alone=np.sum((UK.T @ H) ** 2, axis=0) / np.sum(H**2, axis=0),
        capture=np.array([np.linalg.norm(UK[A], 2) ** 2 for A in sets]),
        leverage=np.array([min(scores[A].sum(), 1.0) for A in sets]),
        rayleigh=rayleigh_quotient(L, H),
        energy=np.array([dirichlet_eigenvalue(L, A) for A in sets]),
    )
