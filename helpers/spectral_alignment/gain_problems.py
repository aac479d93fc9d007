r"""Problems on which neuron searches can be compared with the exact maximum.

A greedy run from the inputs, :math:`H^{(0)}=\Phi`, is a row of such problems:
at each step the neuron of maximal gain is found with a certificate and
appended, so that the next problem does not depend on the methods compared.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from sklearn.datasets import make_circles, make_moons

from helpers.core.checks import finite_matrix, whole_number
from helpers.core.linalg import (
    check_orthonormal,
    complement,
    orthonormal_basis,
)
from helpers.core.randomness import Seed, as_generator, spawn
from helpers.core.tolerances import FULL_GAIN
from helpers.spectral_alignment.exact_search import (
    ExactNeuron,
    maximal_gain_neuron,
)
from helpers.spectral_alignment.graphs import graph_laplacian, knn_graph
from helpers.spectral_alignment.local_search import (
    gating_fixed_point,
    local_gain_search,
)
from helpers.spectral_alignment.neurons import (
    check_uncovered,
    marginal_gain,
    reduced_features,
)
from helpers.spectral_alignment.spectra import laplacian_eigenbasis

DATA = ("moons", "circles")

# frequencies by their number, counted from 1
TARGETS = {
    "u1..5": range(1, 6),
    "u10": (10,),
    "u15": (15,),
    "u20": (20,),
    "u25": (25,),
    "u6..15": range(6, 16),
    "u11..30": range(11, 31),
}

BUDGETS = (1, 2, 5, 10, 20, 50, 100)


class GainProblem(NamedTuple):
    """One search problem: two coordinates and the bias column, shape
    ``(n, 3)``; what is not yet covered of the targets, shape ``(n, K)``; an
    orthonormal basis of what is covered, shape ``(n, p)``; and the solution,
    an ``ExactNeuron``."""

    Phi: np.ndarray
    M: np.ndarray
    QH: np.ndarray
    exact: ExactNeuron


def low_and_high_targets(
    data: str, n: int, target: str, seed: int = 0
) -> tuple[np.ndarray, np.ndarray]:
    r"""Two-dimensional samples and some frequencies of their graph.

    Parameters
    ----------
    data : {'moons', 'circles'}
        Two half circles with noise 0.08, or two rings with noise 0.05 and
        radii 1 and 1/2; each coordinate standardised.
    n : int > 30
    target : str
        A key of ``TARGETS``: frequencies of the combinatorial Laplacian of
        the ten-nearest-neighbour graph, counted from 1.
    seed : int
        Of the sample.

    Returns
    -------
    Phi : ndarray, shape (n, 3)
    U : ndarray, shape (n, K)

    Raises
    ------
    ValueError
        If an argument is not one of these.

    Notes
    -----
    Source: ours (experiment E10).

    Examples
    --------
    >>> Phi, U = low_and_high_targets("moons", 40, "u6..15")
    >>> Phi.shape, U.shape
    ((40, 3), (40, 10))
    """
    if data not in DATA:
        raise ValueError(f"data must be one of {DATA}, got {data!r}")
    if target not in TARGETS:
        raise ValueError(f"target must be one of {[*TARGETS]}, got {target!r}")
    least = max(TARGETS[target]) + 1
    if isinstance(n, bool) or n % 1 != 0 or n < least:
        raise ValueError(
            f"n must be a whole number >= {least} for {target}, got {n!r}"
        )
    if data == "moons":
        X, _ = make_moons(n, noise=0.08, random_state=seed)
    else:
        X, _ = make_circles(n, noise=0.05, factor=0.5, random_state=seed)
    X = (X - X.mean(axis=0)) / X.std(axis=0)
    L = graph_laplacian(knn_graph(X, min(10, n - 1)))
    # single vectors are asked for: a tie makes another choice possible
    U = laplacian_eigenbasis(L, least - 1, if_tied="ignore").vectors
    columns = np.array(TARGETS[target]) - 1
    return np.column_stack([X, np.ones(n)]), U[:, columns]


def greedy_gain_problems(Phi, U, steps: int) -> Iterator[GainProblem]:
    r"""The problems that an exact greedy run from the inputs meets.

    Parameters
    ----------
    Phi : array_like, shape (n, m)
        Of rank at most 3.
    U : array_like, shape (n, K)
        Orthonormal targets.
    steps : int >= 1

    Yields
    ------
    GainProblem

    Raises
    ------
    ValueError
        As :func:`~helpers.spectral_alignment.exact_search.maximal_gain_neuron`,
        or if ``U`` is not orthonormal or ``steps`` is not positive; at the
        first problem.

    Notes
    -----
    Source: ours (experiment E10).

    Examples
    --------
    >>> run = greedy_gain_problems(*low_and_high_targets("moons", 40, "u10"), 3)
    >>> [p.QH.shape[1] for p in run]
    [3, 4, 5]
    """
    steps = whole_number(steps, "steps")
    U = check_orthonormal(U, "U")
    Phi = finite_matrix(Phi, "Phi", len(U))
    H = Phi
    for _ in range(steps):
        QH = orthonormal_basis(H)
        M = complement(QH, U)
        exact = maximal_gain_neuron(Phi, M, QH)
        yield GainProblem(Phi, M, QH, exact)
        h = np.maximum(Phi @ exact.theta, 0.0)
        H = np.column_stack([H, h])


def random_gain(Phi, M, QH=None, tries: int = 2000, rng: Seed = 0) -> float:
    r"""Largest gain among random neurons: no search at all.

    Parameters
    ----------
    Phi : array_like, shape (n, m)
    M : array_like, shape (n, K)
    QH : array_like, shape (n, p), optional
    tries : int >= 1
        Directions, even on the sphere of the whitened features.
    rng : int, SeedSequence or numpy.random.Generator

    Returns
    -------
    float

    Raises
    ------
    ValueError
        As :func:`~helpers.spectral_alignment.neurons.check_uncovered`, or if
        ``tries`` is not positive.

    Notes
    -----
    Source: ours (experiment E10).

    Examples
    --------
    >>> Phi = np.array([[-1.0, 1.0], [0.0, 1.0], [1.0, 1.0]])
    >>> round(random_gain(Phi, np.array([[0.0], [0.0], [1.0]])), 6)
    1.0
    """
    tries = whole_number(tries, "tries")
    G, _ = reduced_features(Phi)
    M, QH = check_uncovered(M, QH, len(G))
    eta = as_generator(rng).normal(size=(G.shape[1], tries))
    return float(np.max(marginal_gain(np.maximum(G @ eta, 0.0), M, QH)))


def compare_searches(
    data: str,
    n: int,
    target: str,
    steps: int,
    seed: int,
    starts: int = 100,
    fixed: int = 50,
    tries: int = 2000,
) -> dict[str, list]:
    r"""Local searches against the exact maximum along one greedy run.

    Parameters
    ----------
    data, n, target, seed
        As :func:`low_and_high_targets`; ``seed`` also seeds the searches.
    steps : int >= 1
    starts : int >= 1
        Starts of the climb.
    fixed : int >= 1
        Starts of the gating fixed point.
    tries : int >= 1
        Random neurons.

    Returns
    -------
    dict of lists, one entry a step
        ``exact``: the maximal gain. Then fractions of it:
        ``median``: where half of the starts end; ``best_k`` for each
        budget ``k`` up to ``starts``: the best of the first ``k``;
        ``fixed_point``; ``random``. ``hits``: starts that end within a
        thousandth of the maximum. ``relaxed``: the largest relaxed bound
        over the maximum.

    Raises
    ------
    ValueError
        As the functions it calls.

    Notes
    -----
    Source: ours (experiment E10).

    Examples
    --------
    >>> row = compare_searches("moons", 40, "u10", 2, 0, starts=5)
    >>> sorted(row)[:4], len(row["hits"])
    (['best_1', 'best_2', 'best_5', 'exact'], 2)
    """
    Phi, U = low_and_high_targets(data, n, target, seed)
    rows = []
    streams = iter(spawn(seed, 3 * steps))
    for *problem, exact in greedy_gain_problems(Phi, U, steps):
        climb = local_gain_search(*problem, starts=starts, rng=next(streams))
        fix = gating_fixed_point(*problem, starts=fixed, rng=next(streams))
        chance = random_gain(*problem, tries=tries, rng=next(streams))
        alpha = climb.gains / exact.gain
        row = {
            "exact": exact.gain,
            "median": float(np.median(alpha)),
            "hits": int(np.sum(alpha > FULL_GAIN)),
            "fixed_point": fix.gain / exact.gain,
            "random": chance / exact.gain,
            "relaxed": exact.relaxed_bound / exact.gain,
        }
        row |= {
            f"best_{k}": float(alpha[:k].max()) for k in BUDGETS if k <= starts
        }
        rows.append(row)
    return {name: [row[name] for row in rows] for name in rows[0]}
