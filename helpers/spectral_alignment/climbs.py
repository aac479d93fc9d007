r"""Where climbs of the gain end, for a picture of its landscape.

The gain has kinks, and a climb that stalls at one stops at a place that
depends on rounding. So the ends are computed once and stored.
"""

from __future__ import annotations

import numpy as np

from helpers.core.checks import whole_number
from helpers.core.linalg import complement, orthonormal_basis
from helpers.core.randomness import as_generator
from helpers.spectral_alignment.gain_problems import low_and_high_targets
from helpers.spectral_alignment.local_search import climb_gain
from helpers.spectral_alignment.neurons import marginal_gain

__all__ = ["climb_ends"]


def climb_ends(
    data: str, n: int, target: str, seed: int, starts: int
) -> dict[str, list]:
    r"""Climb from random weights, with nothing covered but the inputs.

    Parameters
    ----------
    data, n, target, seed
        As :func:`~helpers.spectral_alignment.gain_problems.low_and_high_targets`;
        ``seed`` also seeds the starts.
    starts : int >= 1
        Directions of weights, even on the sphere.

    Returns
    -------
    dict
        ``gain``: the gains at the ends; ``w1``, ``w2``, ``bias``: the
        weights there, of norm 1.

    Raises
    ------
    ValueError
        As the functions it calls, or if ``starts`` is not positive.

    Notes
    -----
    Source: ours (experiment E10).

    Examples
    --------
    >>> ends = climb_ends("moons", 40, "u10", seed=0, starts=3)
    >>> len(ends["gain"]), len(ends["bias"])
    (3, 3)
    """
    starts = whole_number(starts, "starts")
    Phi, U = low_and_high_targets(data, n, target, seed)
    QH = orthonormal_basis(Phi)
    M = complement(QH, U)
    first = as_generator(seed).normal(size=(starts, 3))
    theta = np.array([climb_gain(x, Phi, M, QH) for x in first])
    theta /= np.linalg.norm(theta, axis=1, keepdims=True)
    h = np.maximum(Phi @ theta.T, 0.0)
    w1, w2, bias = theta.T
    return {
        "gain": marginal_gain(h, M, QH).tolist(),
        "w1": w1.tolist(),
        "w2": w2.tolist(),
        "bias": bias.tolist(),
    }
