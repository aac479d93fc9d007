"""The five sample sets of this part, each with a target.

Four are drawn in two or three dimensions by scikit-learn, the fifth is its
bundled 8 by 8 scans of digits. Coordinates are standardised; the scans are
centred only, so that empty pixels stay empty.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from sklearn.datasets import (
    make_blobs,
    make_circles,
    make_moons,
    make_swiss_roll,
)

from helpers.core.checks import whole_number
from helpers.core.data import load_digits_samples
from helpers.core.randomness import Seed, as_generator

NAMES = ("moons", "circles", "blobs", "swiss roll", "digits")


class LabelledSamples(NamedTuple):
    """Samples, shape ``(n, d)``, and a target, shape ``(n,)``."""

    X: np.ndarray
    f: np.ndarray


def sample_set(name: str, n: int = 300, rng: Seed = 0) -> LabelledSamples:
    r"""Draw one of the sample sets.

    ======================  =====================================  ==========
    name                    samples                                target
    ======================  =====================================  ==========
    ``moons``               two half circles, noise 0.08           which, ±1
    ``circles``             radii 1 and 0.5, noise 0.05            which, ±1
    ``blobs``               four Gaussians, deviation 0.6          even, ±1
    ``swiss roll``          three-dimensional roll, noise 0.05     sin angle
    ``digits``              8 by 8 scans                           even, ±1
    ======================  =====================================  ==========

    Parameters
    ----------
    name : {'moons', 'circles', 'blobs', 'swiss roll', 'digits'}
    n : int >= 4
        At most 1797 for the digits.
    rng : int, SeedSequence or numpy.random.Generator
        The blobs' centres are always the same; their samples are drawn.

    Returns
    -------
    LabelledSamples

    Raises
    ------
    ValueError
        If the name is unknown or ``n`` is out of range.

    Notes
    -----
    Source: ours (the data of experiments E1 to E11).

    Examples
    --------
    >>> X, f = sample_set("circles", 40)
    >>> X.shape, float(f.sum()), bool(np.allclose(X.std(axis=0), 1))
    ((40, 2), 0.0, True)
    """
    if name not in NAMES:
        raise ValueError(f"name must be one of {NAMES}, got {name!r}")
    n = whole_number(n, "n", 4)
    if name == "digits":
        X, y = load_digits_samples(n, rng)
        return LabelledSamples(X - X.mean(axis=0), 1.0 - 2 * (y % 2))
    X, y = _drawn(name, n, int(as_generator(rng).integers(2**31)))
    f = np.sin(y) if name == "swiss roll" else 1.0 - 2 * (y % 2)
    return LabelledSamples((X - X.mean(axis=0)) / X.std(axis=0), f)


def _drawn(name: str, n: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    if name == "moons":
        return make_moons(n, noise=0.08, random_state=seed)
    if name == "circles":
        return make_circles(n, noise=0.05, factor=0.5, random_state=seed)
    if name == "swiss roll":
        return make_swiss_roll(n, noise=0.05, random_state=seed)
    centres = np.random.RandomState(3).uniform(-4, 4, size=(4, 2))
    return make_blobs(n, centers=centres, cluster_std=0.6, random_state=seed)


def three_clouds(n: int, spread: float, rng: Seed = 0) -> LabelledSamples:
    r"""Three Gaussian clouds on a circle of radius 4 in the plane.

    Parameters
    ----------
    n : int >= 1
        Samples a cloud.
    spread : float >= 0
        Standard deviation of each coordinate.
    rng : int, SeedSequence or numpy.random.Generator

    Returns
    -------
    LabelledSamples
        ``X`` of shape ``(3 n, 2)``, not standardised; ``f`` holds which cloud,
        0, 1 or 2.

    Raises
    ------
    ValueError
        If an option is out of range.

    Notes
    -----
    Source: ours (for Example 5.12).

    Examples
    --------
    >>> three_clouds(1, 0.0).X.round(3).tolist()[0]
    [4.0, 0.0]
    """
    n = whole_number(n, "n")
    if not (np.isfinite(spread) and spread >= 0):
        raise ValueError(f"spread must be finite and >= 0, got {spread!r}")
    angles = 2 * np.pi * np.arange(3) / 3
    centres = 4 * np.column_stack([np.cos(angles), np.sin(angles)])
    noise = as_generator(rng).normal(size=(3, n, 2))
    X = (centres[:, None] + spread * noise).reshape(-1, 2)
    return LabelledSamples(X, np.repeat([0.0, 1.0, 2.0], n))
