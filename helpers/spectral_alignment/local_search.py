r"""Searches for a neuron of large gain that certify nothing.

Arguments are as in :mod:`helpers.spectral_alignment.neurons`.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.optimize import minimize

from helpers.core.checks import finite_vector, whole_number
from helpers.core.randomness import Seed, as_generator
from helpers.core.tolerances import QUASI_NEWTON_GRADIENT
from helpers.spectral_alignment.neurons import (
    _features,
    _gain_and_gradient,
    check_uncovered,
    reduced_features,
    relaxed_gain,
)

__all__ = [
    "LocalSearch",
    "climb_gain",
    "gating_fixed_point",
    "local_gain_search",
]


@dataclass(frozen=True)
class LocalSearch:
    """What a local method found from its starts.

    Attributes
    ----------
    theta : ndarray, shape (m,)
        The best neuron, scaled so that its values have norm 1 where it is
        not dead.
    gain : float
        Its marginal gain: a lower bound of the maximum, never a certificate.
    gains : ndarray, shape (starts,)
        Where each start ended, in order of the starts.
    """

    theta: np.ndarray
    gain: float
    gains: np.ndarray


def _best(G, T, ends, gains) -> LocalSearch:
    best = int(np.argmax(gains))
    eta = ends[best]
    size = np.linalg.norm(np.maximum(G @ eta, 0.0))
    eta = eta / size if size > 0 else eta
    return LocalSearch(T @ eta, float(gains[best]), np.array(gains))


def local_gain_search(Phi, M, QH=None, starts: int = 10, rng: Seed = 0):
    r"""Climb the gain by L-BFGS from random neurons.

    Directions are drawn evenly from the sphere of the whitened features
    (:func:`~helpers.spectral_alignment.neurons.reduced_features`), in which
    the search runs.

    Parameters
    ----------
    Phi : array_like, shape (n, m)
        Any rank.
    M : array_like, shape (n, K)
    QH : array_like, shape (n, p), optional
    starts : int >= 1
    rng : int, SeedSequence or numpy.random.Generator

    Returns
    -------
    LocalSearch

    Raises
    ------
    ValueError
        As :func:`~helpers.spectral_alignment.neurons.check_uncovered`, or
        if ``starts`` is not positive.

    Notes
    -----
    The gain has many local maxima and kinks on the arrangement: the best of
    50 starts can still be less than half of the maximum.

    Source: ours; the gradient is
    :func:`~helpers.spectral_alignment.neurons.marginal_gain_gradient`.

    Examples
    --------
    >>> Phi = np.array([[-1.0, 1.0], [0.0, 1.0], [1.0, 1.0]])
    >>> constant = np.ones((3, 1)) / np.sqrt(3)
    >>> round(local_gain_search(Phi, constant, starts=5).gain, 6)
    1.0
    """
    G, T = reduced_features(Phi)
    M, QH = check_uncovered(M, QH, G.shape[0])
    rng, starts = as_generator(rng), whole_number(starts, "starts")
    ends, gains = [], []
    for eta in rng.normal(size=(starts, G.shape[1])):
        end = _climb(eta / np.linalg.norm(eta), G, M, QH)
        ends.append(end)
        gains.append(_gain_and_gradient(end, G, M, QH)[0])
    return _best(G, T, ends, gains)


def climb_gain(theta, Phi, M, QH=None) -> np.ndarray:
    r"""Climb the gain by L-BFGS from one given neuron.

    Parameters
    ----------
    theta : array_like, shape (m,)
        Where to start; what is returned has no smaller gain.
    Phi : array_like, shape (n, m)
    M : array_like, shape (n, K)
    QH : array_like, shape (n, p), optional

    Returns
    -------
    ndarray, shape (m,)

    Raises
    ------
    ValueError
        As :func:`~helpers.spectral_alignment.neurons.marginal_gain_gradient`.

    Notes
    -----
    Source: ours.

    Examples
    --------
    >>> end = climb_gain([1.0, 1.0], np.eye(2), [[1.0], [0.0]])
    >>> from helpers.spectral_alignment.neurons import marginal_gain
    >>> round(marginal_gain(np.maximum(end, 0), [[1.0], [0.0]]), 6)
    1.0
    """
    Phi = _features(Phi)
    theta = finite_vector(theta, "theta", Phi.shape[1])
    M, QH = check_uncovered(M, QH, Phi.shape[0])
    return _climb(theta, Phi, M, QH)


def _climb(eta, G, M, QH) -> np.ndarray:
    def loss(eta):
        gain, gradient = _gain_and_gradient(eta, G, M, QH)
        return -gain, -gradient

    end = minimize(
        loss,
        eta,
        jac=True,
        method="L-BFGS-B",
        options={"gtol": QUASI_NEWTON_GRADIENT, "ftol": 0.0},
    ).x
    return end if -loss(end)[0] >= -loss(eta)[0] else eta


def gating_fixed_point(
    Phi, M, QH=None, starts: int = 10, rng: Seed = 0, steps: int = 100
):
    r"""Iterate: relaxed maximiser of the pattern, then its new pattern.

    Each step takes the better sign of the maximiser of
    :func:`~helpers.spectral_alignment.neurons.relaxed_gain`; a start ends
    when the gain no longer grows.

    Parameters
    ----------
    Phi : array_like, shape (n, m)
    M : array_like, shape (n, K)
    QH : array_like, shape (n, p), optional
    starts : int >= 1
    rng : int, SeedSequence or numpy.random.Generator
    steps : int >= 1
        Largest number of steps from a start.

    Returns
    -------
    LocalSearch

    Raises
    ------
    ValueError
        As :func:`local_gain_search`.

    Notes
    -----
    Source: ours (suggested by Proposition 4.3).

    Examples
    --------
    >>> Phi = np.array([[-1.0, 1.0], [0.0, 1.0], [1.0, 1.0]])
    >>> constant = np.ones((3, 1)) / np.sqrt(3)
    >>> round(gating_fixed_point(Phi, constant, starts=5).gain, 6)
    1.0
    """
    G, T = reduced_features(Phi)
    M, QH = check_uncovered(M, QH, G.shape[0])
    rng, ends, gains = as_generator(rng), [], []
    for eta in rng.normal(size=(whole_number(starts, "starts"), G.shape[1])):
        gain = _gain_and_gradient(eta, G, M, QH)[0]
        for _ in range(whole_number(steps, "steps")):
            relaxed = relaxed_gain(G, G @ eta > 0, M, QH).theta
            signs = [relaxed, -relaxed]
            values = [_gain_and_gradient(x, G, M, QH)[0] for x in signs]
            if max(values) <= gain:
                break
            gain, eta = max(values), signs[int(np.argmax(values))]
        ends.append(eta)
        gains.append(gain)
    return _best(G, T, ends, gains)
