r"""Greedy layers: one neuron after the other, each the best it can be.

The neuron that joins is the one with the largest gain
:math:`G_H(h)=N_K([H,h])-N_K(H)`, as found by an *oracle*. Exact oracles
(:func:`helpers.spectral_alignment.exact_search.maximal_gain_neuron`) certify
it for features of rank up to four; a local search does not, and says nothing
about the share ``alpha`` of the best gain that it reached.

The basis of what is covered grows by a column a step and the uncovered part
:math:`M_H` loses a rank-one term, so that no ``(n, n)`` projector is formed.
:func:`helpers.spectral_alignment.coverage.choose_features` does the same with
a fixed pool of candidates in place of an oracle.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from helpers.core.checks import whole_number
from helpers.core.linalg import (
    complement,
    numerical_rank,
    orthonormal_basis,
)
from helpers.core.randomness import Seed, as_generator
from helpers.core.tolerances import COVERED_RELATIVE, GAIN_TIE, ROUNDING
from helpers.spectral_alignment.coverage import _paired, residual_matrix
from helpers.spectral_alignment.exact_search import maximal_gain_neuron
from helpers.spectral_alignment.local_search import local_gain_search
from helpers.spectral_alignment.neurons import _features, marginal_gain

BISECTIONS = 60


class FoundNeuron(NamedTuple):
    """What an oracle answers: a neuron, its gain, and what none exceeds."""

    theta: np.ndarray
    gain: float
    upper_bound: float


Oracle = Callable[[np.ndarray, np.ndarray, np.ndarray], FoundNeuron]


@dataclass(frozen=True)
class GreedyTrace:
    r"""A greedy layer and how the coverage grew with it.

    Attributes
    ----------
    theta : ndarray, shape (s, m)
        The neurons, in the order of choice; fewer than asked for if nothing
        was left to gain.
    features : ndarray, shape (n, s)
        Their outputs on the sample.
    gain : ndarray, shape (s,)
        What each added to :math:`N_K`.
    upper_bound : ndarray, shape (s,)
        What no neuron could have added at that step; NaN if the oracle
        certifies nothing.
    deficit : ndarray, shape (s + 1,)
        :math:`\delta_t=K-N_K`, beginning with :math:`H_0`. Decreasing.
    gap : ndarray, shape (s + 1,)
        Coverage gap :math:`s_t`.
    """

    theta: np.ndarray
    features: np.ndarray
    gain: np.ndarray
    upper_bound: np.ndarray
    deficit: np.ndarray
    gap: np.ndarray


def exact_oracle(Phi, M, QH) -> FoundNeuron:
    """The certified maximum, for features of rank up to four.

    Parameters
    ----------
    Phi : array_like, shape (n, m)
    M : array_like, shape (n, K)
    QH : array_like, shape (n, p)

    Returns
    -------
    FoundNeuron

    Raises
    ------
    ValueError
        As :func:`helpers.spectral_alignment.exact_search.maximal_gain_neuron`.

    Notes
    -----
    Source: ours (algorithms A1 and A2).

    Examples
    --------
    >>> Phi = np.array([[-1.0, 1.0], [0.0, 1.0], [1.0, 1.0]])
    >>> end = np.array([[0.0], [0.0], [1.0]])
    >>> round(exact_oracle(Phi, end, np.zeros((3, 0))).gain, 9)
    1.0
    """
    Phi = _features(Phi)
    method = "faces" if numerical_rank(Phi).rank == 4 else "sweep"
    found = maximal_gain_neuron(Phi, M, QH, method)
    return FoundNeuron(found.theta, found.gain, found.upper_bound)


def local_oracle(starts: int = 50, rng: Seed = 0) -> Oracle:
    """The best of several local climbs; certifies nothing.

    Parameters
    ----------
    starts : int >= 1
        Climbs a step.
    rng : int, SeedSequence or numpy.random.Generator

    Returns
    -------
    callable
        An oracle for :func:`greedy_coverage`; its starts differ from step to
        step.

    Notes
    -----
    Source: ours.

    Examples
    --------
    >>> Phi = np.array([[-1.0, 1.0], [0.0, 1.0], [1.0, 1.0]])
    >>> end = np.array([[0.0], [0.0], [1.0]])
    >>> answer = local_oracle(20)(Phi, end, np.zeros((3, 0)))
    >>> round(answer.gain, 6), answer.upper_bound
    (1.0, nan)
    """
    rng = as_generator(rng)

    def oracle(Phi, M, QH) -> FoundNeuron:
        found = local_gain_search(Phi, M, QH, starts, rng)
        return FoundNeuron(found.theta, found.gain, np.nan)

    return oracle


def random_oracle(rng: Seed = 0) -> Oracle:
    """Any neuron: a random direction that switches off at a random sample.

    The samples farthest out on either side are not taken, as the neuron
    would be affine or silent.

    Parameters
    ----------
    rng : int, SeedSequence or numpy.random.Generator

    Returns
    -------
    callable
        An oracle for :func:`greedy_coverage` that looks at nothing. The last
        column of ``Phi`` must be the bias, and there must be three samples.

    Notes
    -----
    Source: ours.

    Examples
    --------
    >>> Phi = np.array([[1.0, 1.0], [2.0, 1.0], [4.0, 1.0]])
    >>> theta = random_oracle(1)(Phi, np.eye(3), np.zeros((3, 0))).theta
    >>> bool(np.min(np.abs(Phi @ theta)) < 1e-12)
    True
    """
    rng = as_generator(rng)

    def oracle(Phi, M, QH) -> FoundNeuron:
        w = rng.normal(size=Phi.shape[1] - 1)
        z = Phi[:, :-1] @ w
        inner = np.sort(z)[rng.integers(1, len(z) - 1)]
        theta = np.append(w, -inner)
        gain = marginal_gain(np.maximum(Phi @ theta, 0), M, QH)
        return FoundNeuron(theta, gain, np.nan)

    return oracle


def lazy_oracle(alpha: float, rng: Seed = 0, tries: int = 20) -> Oracle:
    r"""The worst neuron it can find that still reaches ``alpha`` times the
    certified best gain.

    For testing rates against an adversary: the gain is continuous on the
    way from the best neuron to one of gain below
    :math:`\alpha G^*`, where it is defined, so that bisection finds a neuron
    of gain very nearly :math:`\alpha G^*`. Where a neuron and its mirror image
    are equally good, the way begins at the one whose largest weight is positive.

    Parameters
    ----------
    alpha : float, in (0, 1]
    rng : int, SeedSequence or numpy.random.Generator
        Draws the neurons at the other end of the way.
    tries : int >= 1

    Returns
    -------
    callable
        An oracle for :func:`greedy_coverage`, with the certified bound.

    Raises
    ------
    ValueError
        If ``alpha`` is out of range.

    Notes
    -----
    Source: ours, for the spectral-alignment paper, Theorem 5.10.

    Examples
    --------
    >>> Phi = np.array([[-1.0, 1.0], [0.0, 1.0], [1.0, 1.0]])
    >>> end = np.array([[0.0], [0.0], [1.0]])
    >>> round(lazy_oracle(0.5)(Phi, end, np.zeros((3, 0))).gain, 6)
    0.5
    """
    if not 0 < alpha <= 1:
        raise ValueError(f"alpha must be in (0, 1], got {alpha!r}")
    rng = as_generator(rng)

    def oracle(Phi, M, QH) -> FoundNeuron:
        best = exact_oracle(Phi, M, QH)
        least = alpha * best.upper_bound

        def gain(theta):
            return marginal_gain(np.maximum(Phi @ theta, 0), M, QH)

        top = _first_of_mirrors(best.theta, best.gain, gain)
        worst = top, best.gain
        size = np.linalg.norm(top)
        for _ in range(tries):
            other = rng.normal(size=Phi.shape[1])
            theta = _slide(
                top, other * size / np.linalg.norm(other), gain, least
            )
            if least <= gain(theta) < worst[1] * (1 - GAIN_TIE):
                worst = theta, gain(theta)
        return FoundNeuron(*worst, best.upper_bound)

    return oracle


def _first_of_mirrors(theta, value: float, gain) -> np.ndarray:
    """Of ``theta`` and ``-theta``, if equally good, the one whose largest
    coordinate is positive: otherwise rounding would choose."""
    turned = theta[np.abs(theta).argmax()] < 0
    if turned and gain(-theta) >= value * (1 - GAIN_TIE):
        return -theta
    return theta


def _slide(good, bad, gain, least: float) -> np.ndarray:
    """The last neuron on the way found with a gain of at least ``least``."""
    near, far = 0.0, 1.0
    for _ in range(BISECTIONS):
        middle = (near + far) / 2
        if gain(good + middle * (bad - good)) >= least:
            near = middle
        else:
            far = middle
    return good + near * (bad - good)


def greedy_coverage(
    Phi, UK, t: int, H0=None, oracle: Oracle = exact_oracle
) -> GreedyTrace:
    r"""Add ``t`` neurons, each as good as the oracle can make it.

    Parameters
    ----------
    Phi : array_like, shape (n, m)
        Inputs of the layer with the bias column; a neuron is
        :math:`\sigma(\Phi\theta)`.
    UK : array_like, shape (n, K)
        Orthonormal columns, ``K >= 1``.
    t : int >= 0
    H0 : array_like, shape (n, p), optional
        Features there are to begin with; none by default. ``Phi`` itself
        stands for a layer with a concatenated skip.
    oracle : callable
        Given ``Phi``, :math:`M_H` and an orthonormal basis of
        :math:`\mathrm{col}H`, returns a :class:`FoundNeuron`.

    Returns
    -------
    GreedyTrace

    Raises
    ------
    ValueError
        If shapes disagree, an input is not finite, ``UK`` is not orthonormal
        or ``t`` is negative or not whole; what the oracle raises.

    Notes
    -----
    Beside the oracle :math:`O(n(p+t)(p+t+K))` a step. Ends early when the neuron
    offered lies in the span of what is there, or the deficit is down to
    rounding.

    Source: the spectral-alignment paper, Theorem 5.10 and Proposition 4.5.

    Examples
    --------
    One neuron closes what a linear model leaves open on a path of three:

    >>> U = np.array([[1.0, -1.0, 1.0], [1, 0, -2], [1, 1, 1]])
    >>> Phi = np.array([[-1.0, 1.0], [0.0, 1.0], [1.0, 1.0]])
    >>> trace = greedy_coverage(Phi, U / np.linalg.norm(U, axis=0), 2, Phi)
    >>> np.abs(trace.deficit.round(9)).tolist()
    [1.0, 0.0]
    """
    t = whole_number(t, "t", 0)
    Phi = np.asarray(Phi, dtype=float)
    nothing = np.zeros((np.shape(UK)[0], 0))
    H0, UK = _paired(nothing if H0 is None else H0, UK, "H0")
    M, Q = residual_matrix(H0, UK), orthonormal_basis(H0)
    if Phi.ndim != 2 or len(Phi) != len(M) or not np.isfinite(Phi).all():
        raise ValueError(
            f"Phi must be a finite matrix of shape ({len(M)}, m) to match "
            f"UK, got shape {Phi.shape}"
        )
    steps: list[tuple] = []
    sines = [_sines(M)]
    while len(steps) < t and np.sum(sines[-1] ** 2) > ROUNDING:
        found = oracle(Phi, M, Q)
        h = np.maximum(Phi @ found.theta, 0)
        rest = complement(Q, h)
        if rest @ rest <= COVERED_RELATIVE * (h @ h):
            break
        gain = marginal_gain(h, M, Q)
        q = rest / np.linalg.norm(rest)
        Q = np.column_stack([Q, q])
        M = complement(Q, M)
        sines.append(_sines(M))
        steps.append((found.theta, h, gain, found.upper_bound))
    return _trace(steps, np.array(sines), Phi)


def _sines(M) -> np.ndarray:
    return np.minimum(np.linalg.svd(M, compute_uv=False), 1.0)


def _trace(steps, sines, Phi) -> GreedyTrace:
    theta, features, gain, bound = (
        zip(*steps, strict=True)
        if steps
        else (np.zeros((0, Phi.shape[1])), np.zeros((0, len(Phi))), [], [])
    )
    return GreedyTrace(
        theta=np.array(theta),
        features=np.array(features).T,
        gain=np.array(gain, dtype=float),
        upper_bound=np.array(bound, dtype=float),
        deficit=np.sum(sines**2, axis=1),
        gap=sines[:, 0],
    )
