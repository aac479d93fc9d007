r"""A local search that leaves local maxima: exact search in random planes.

The exact sweep needs features of rank at most three. For larger ranks it can
still answer a smaller question: which is the best neuron among those whose
weights lie in one three-dimensional subspace? If the subspace contains the
neuron at hand, the answer is no worse, and may lie far away.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from helpers.core.checks import whole_number
from helpers.core.linalg import orthonormal_basis
from helpers.core.randomness import Seed, as_generator
from helpers.spectral_alignment.exact_search import maximal_gain_neuron
from helpers.spectral_alignment.local_search import (
    climb_gain,
    local_gain_search,
)
from helpers.spectral_alignment.neurons import (
    check_uncovered,
    marginal_gain,
    marginal_gain_gradient,
    reduced_features,
)

__all__ = ["PlaneSearch", "plane_search"]


@dataclass(frozen=True)
class PlaneSearch:
    r"""What :func:`plane_search` found, round by round.

    Attributes
    ----------
    theta : ndarray, shape (m,)
        The best neuron, scaled so that its values have norm 1 where it is
        not dead.
    gain : float
        Its gain: a lower bound of the maximum over all neurons.
    gains : ndarray, shape (rounds + 1,)
        Gain at the start and after each round; never falls.
    plane_bounds : ndarray, shape (rounds,)
        Certified largest gain inside the subspace of each round. A gain
        above it was reached by climbing out of the subspace.
    """

    theta: np.ndarray
    gain: float
    gains: np.ndarray
    plane_bounds: np.ndarray


def plane_search(
    Phi, M, QH=None, start=None, rng: Seed = 0, rounds: int = 10
) -> PlaneSearch:
    r"""Alternate an exact search in a random subspace with a climb.

    Each round takes :math:`B` with orthonormal columns that span the current
    weights, the gradient of the gain and random directions, three columns
    in all, maximises :math:`G_H(\sigma(\Phi B\eta))` exactly, and climbs
    from the better of the old and the new neuron. Weights are those of the
    whitened features, :func:`~helpers.spectral_alignment.neurons.reduced_features`.

    Parameters
    ----------
    Phi : array_like, shape (n, m)
        Of any rank. Up to rank 3 the first round is the exact search.
    M : array_like, shape (n, K)
    QH : array_like, shape (n, p), optional
    start : array_like, shape (m,), optional
        The first neuron; by default the best of ten climbs.
    rng : int, SeedSequence or numpy.random.Generator
    rounds : int >= 1

    Returns
    -------
    PlaneSearch

    Raises
    ------
    ValueError
        As :func:`~helpers.spectral_alignment.neurons.check_uncovered`, or if
        ``start`` does not fit or is zero, or ``rounds`` is not positive.

    Notes
    -----
    A round costs one exact search in rank 3 and one climb. Optimality is
    certified inside the subspaces only.

    Source: ours (algorithm A4).

    Examples
    --------
    The gain of a positive multiple of the first unit vector is 1. A neuron
    dead on that sample stands on a plateau that no gradient leaves:

    >>> found = plane_search(np.eye(4), np.eye(4)[:, :1],
    ...                      start=[-1.0, 1.0, 0.0, 0.0], rounds=3)
    >>> found.gains[0].item(), round(found.gain, 6)
    (0.0, 1.0)
    """
    rounds = whole_number(rounds, "rounds")
    G, T = reduced_features(Phi)
    M, QH = check_uncovered(M, QH, len(G))
    rng = as_generator(rng)
    eta = _first(Phi, G, M, QH, start, rng)
    gains, bounds = [_gain(eta, G, M, QH)], []
    for _ in range(rounds):
        B = _subspace(eta, G, M, QH, rng)
        inside = maximal_gain_neuron(G @ B, M, QH, warm_starts=1)
        bounds.append(inside.upper_bound)
        offers = [eta, B @ inside.theta]
        best = max(offers, key=lambda x: _gain(x, G, M, QH))
        offers.append(climb_gain(best, G, M, QH))
        eta = max(offers, key=lambda x: _gain(x, G, M, QH))
        gains.append(_gain(eta, G, M, QH))
    size = np.linalg.norm(np.maximum(G @ eta, 0.0))
    theta = T @ eta / (size if size > 0 else 1.0)
    return PlaneSearch(theta, gains[-1], np.array(gains), np.array(bounds))


def _first(Phi, G, M, QH, start, rng) -> np.ndarray:
    Phi = np.asarray(Phi, dtype=float)
    if start is None:
        start = local_gain_search(Phi, M, QH, starts=10, rng=rng).theta
    start = np.asarray(start, dtype=float)
    if start.shape != (Phi.shape[1],) or not np.isfinite(start).all():
        raise ValueError(
            f"start must be a finite vector of shape ({Phi.shape[1]},), "
            f"got {start.dtype} of shape {start.shape}"
        )
    # columns of G are orthonormal and span the values of all neurons
    eta = G.T @ (Phi @ start)
    if not eta.any():
        raise ValueError("start must not be zero on every sample")
    return eta


def _gain(eta, G, M, QH) -> float:
    return marginal_gain(np.maximum(G @ eta, 0.0), M, QH)


def _subspace(eta, G, M, QH, rng) -> np.ndarray:
    slope = marginal_gain_gradient(eta, G, M, QH)
    chance = rng.normal(size=(eta.size, 2))
    columns = [eta / np.linalg.norm(eta)]
    if slope.any():
        columns.append(slope / np.linalg.norm(slope))
    columns = np.column_stack([*columns, chance])[:, :3]
    return orthonormal_basis(columns)
