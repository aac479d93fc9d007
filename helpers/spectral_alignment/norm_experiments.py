r"""Samples for the chapter on variation norms, and its stored run."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from sklearn.datasets import make_moons

from helpers.core.checks import finite_matrix, finite_vector, whole_number
from helpers.spectral_alignment.graphs import graph_laplacian, knn_graph
from helpers.spectral_alignment.norm_curves import (
    representability_curve,
    variation_pareto_curve,
)
from helpers.spectral_alignment.spectra import laplacian_eigenbasis
from helpers.spectral_alignment.variation_norms import (
    block_variation_norm_bounds,
    variation_norm_bounds,
)

__all__ = [
    "MoonsProblem",
    "moons_functions",
    "moons_norms",
    "moons_problem",
    "near_pair",
]

MUS = (0.6, 0.4, 0.25, 0.15, 0.08, 0.04, 0.02, 0.01)
"""Penalties of the curves, as fractions of the one with nothing left."""


class MoonsProblem(NamedTuple):
    """What :func:`moons_problem` returns."""

    X: np.ndarray
    Phi: np.ndarray
    UK: np.ndarray
    laplacian: np.ndarray


def moons_problem(n: int, K: int = 5) -> MoonsProblem:
    r"""Two moons, their 10-nearest-neighbour graph, and its low frequencies.

    Parameters
    ----------
    n : int > 10
    K : int
        Low frequencies, fewer than ``n``.

    Returns
    -------
    MoonsProblem
        ``X`` (n, 2), standardised; ``Phi`` (n, 3), with the bias; ``UK``
        (n, K); ``laplacian`` (n, n), combinatorial.

    Raises
    ------
    ValueError
        If ``n`` is too small for the graph, or ``K`` for the sample.

    Notes
    -----
    Source: ours, the moons of the book (noise 0.08, state 0).

    Examples
    --------
    >>> moons_problem(30).Phi.shape
    (30, 3)
    """
    n = whole_number(n, "n", 11)
    X, _ = make_moons(n, noise=0.08, random_state=0)
    X = (X - X.mean(axis=0)) / X.std(axis=0)
    L = graph_laplacian(knn_graph(X, 10))
    UK = laplacian_eigenbasis(L, K).vectors
    dense = L.toarray() if hasattr(L, "toarray") else L
    return MoonsProblem(X, np.column_stack([X, np.ones(len(X))]), UK, dense)


def moons_functions(problem: MoonsProblem) -> dict[str, np.ndarray]:
    r"""The functions whose prices the chapter compares, all of length one.

    Parameters
    ----------
    problem : MoonsProblem

    Returns
    -------
    dict of ndarray, shape (n,)
        ``u1``, ``u2`` and so on: the low frequencies. ``outer``: 1 on the
        sample farthest to the right, a vertex of the convex hull.
        ``inner``: 1 on the sample nearest to the origin.

    Notes
    -----
    Source: ours (experiment E12).

    Examples
    --------
    >>> list(moons_functions(moons_problem(30, K=2)))
    ['u1', 'u2', 'outer', 'inner']
    """
    X, _, UK, _ = problem
    functions = {f"u{k}": u for k, u in enumerate(UK.T, start=1)}
    spikes = np.eye(len(X))
    functions["outer"] = spikes[np.argmax(X[:, 0])]
    functions["inner"] = spikes[np.argmin(np.linalg.norm(X, axis=1))]
    return functions


def near_pair(X, i: int, step, h: float) -> tuple[np.ndarray, np.ndarray]:
    r"""A sample gets a neighbour at distance ``h``, and the two a function.

    Parameters
    ----------
    X : array_like, shape (n, d)
    i : int
    step : array_like, shape (d,)
        Direction of the new sample, not zero.
    h : float > 0

    Returns
    -------
    Phi : ndarray, shape (n + 1, d + 1)
        The samples with the bias; the new one is the last.
    v : ndarray, shape (n + 1,)
        :math:`(e_i-e_{n+1})/\sqrt2`.

    Raises
    ------
    ValueError
        If ``X`` is not a finite matrix, ``i`` is no sample, ``step`` is zero
        or ``h`` is not finite and positive.

    Notes
    -----
    Source: ours; the case of near-duplicates after Corollary 5.2 of the
    spectral-alignment paper.

    Examples
    --------
    >>> near_pair([[0.0], [2.0]], 1, [1.0], 0.5)[0].tolist()
    [[0.0, 1.0], [2.0, 1.0], [2.5, 1.0]]
    """
    X = finite_matrix(X, "X")
    step = finite_vector(step, "step", X.shape[1])
    if isinstance(i, bool) or i % 1 != 0 or not -len(X) <= i < len(X):
        raise ValueError(f"i must be a sample of {len(X)}, got {i!r}")
    size = np.linalg.norm(step)
    if not size > 0 or not 0 < h < np.inf:
        raise ValueError(
            f"step must not be zero and h must be positive, got {step}, {h}"
        )
    X = np.vstack([X, X[i] + h * step / size])
    v = np.zeros(len(X))
    v[i], v[-1] = 1 / np.sqrt(2), -1 / np.sqrt(2)
    return np.column_stack([X, np.ones(len(X))]), v


def moons_norms(n: int, target: str) -> dict:
    r"""One certified interval and its evidence, or one curve.

    Parameters
    ----------
    n : int
    target : str
        A name of :func:`moons_functions`: its variation norm. ``free``,
        ``relative``: the block norm of the five low frequencies without
        features, and relative to the inputs and the bias. ``curve``: the
        pairs for the latter. ``plain``: the pairs
        :math:`(\varepsilon,\kappa)` for the frequencies one by one.

    Returns
    -------
    dict of vectors
        ``e``, ``lower`` and ``upper``: of length 1, with ``e = 0``, or of
        the length of the curve; ``lower`` is 0 for ``plain``, where none is
        computed. ``dual``: what certifies the lower end, row by row; empty
        for curves. ``theta``, ``weights``: what certifies the upper end of
        a variation norm, the weights of its neurons row by row and their
        coefficients; empty otherwise.

    Raises
    ------
    ValueError
        If ``target`` is unknown.

    Notes
    -----
    Source: ours (experiment E12).

    Examples
    --------
    >>> found = moons_norms(20, "u1")
    >>> found["upper"].round(6), found["weights"].size
    (array([1.]), 1)
    """
    problem = moons_problem(n)
    _, Phi, UK, _ = problem
    functions = moons_functions(problem)
    if target in functions:
        found = variation_norm_bounds(Phi, functions[target])
        used = found.coefficients != 0
        return _row(
            [0.0],
            [found.lower],
            [found.upper],
            dual=found.dual,
            theta=found.theta[:, used],
            weights=found.coefficients[used],
        )
    if target == "plain":
        curve = representability_curve(Phi, UK, MUS)
        return _row(curve.epsilon, np.zeros(len(MUS)), curve.kappa)
    if target not in ("free", "relative", "curve"):
        raise ValueError(
            f"target must be one of {[*functions]}, 'free', 'relative', "
            f"'curve' or 'plain', got {target!r}"
        )
    H0 = None if target == "free" else Phi
    block = block_variation_norm_bounds(Phi, UK, H0)
    if target != "curve":
        return _row([0.0], [block.lower], [block.upper], dual=block.dual)
    curve = variation_pareto_curve(Phi, UK, H0, MUS, dictionary=block)
    return _row(curve.e, curve.lower, curve.gamma)


def _row(e, lower, upper, **evidence) -> dict:
    row = {"e": e, "lower": lower, "upper": upper}
    row |= {key: () for key in ("dual", "theta", "weights")} | evidence
    return {key: np.ravel(np.asarray(x, float)) for key, x in row.items()}
