r"""Samples for the chapter on variation norms, and its stored run."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from sklearn.datasets import make_moons

from helpers.spectral_alignment.graphs import graph_laplacian, knn_graph
from helpers.spectral_alignment.norm_curves import variation_pareto_curve
from helpers.spectral_alignment.spectra import laplacian_eigenbasis
from helpers.spectral_alignment.variation_norms import (
    block_variation_norm_bounds,
    variation_norm_bounds,
)

__all__ = ["MoonsProblem", "moons_norms", "moons_problem", "near_pair"]

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
    X, _ = make_moons(n, noise=0.08, random_state=0)
    X = (X - X.mean(axis=0)) / X.std(axis=0)
    L = graph_laplacian(knn_graph(X, 10))
    UK = laplacian_eigenbasis(L, K).vectors
    dense = L.toarray() if hasattr(L, "toarray") else L
    return MoonsProblem(X, np.column_stack([X, np.ones(n)]), UK, dense)


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
        If ``step`` is zero or ``h`` is not positive.

    Notes
    -----
    Source: ours; the case of near-duplicates after Corollary 5.2 of the
    spectral-alignment paper.

    Examples
    --------
    >>> near_pair([[0.0], [2.0]], 1, [1.0], 0.5)[0].tolist()
    [[0.0, 1.0], [2.0, 1.0], [2.5, 1.0]]
    """
    X, step = np.asarray(X, dtype=float), np.asarray(step, dtype=float)
    size = np.linalg.norm(step)
    if not size > 0 or not h > 0:
        raise ValueError(
            f"step must not be zero and h must be positive, got {step}, {h}"
        )
    X = np.vstack([X, X[i] + h * step / size])
    v = np.zeros(len(X))
    v[i], v[-1] = 1 / np.sqrt(2), -1 / np.sqrt(2)
    return np.column_stack([X, np.ones(len(X))]), v


def moons_norms(n: int, target: str) -> dict:
    r"""One certified interval, or one curve, for the five low frequencies.

    Parameters
    ----------
    n : int
    target : str
        ``u1`` to ``u5``: a variation norm. ``free``, ``relative``: the block
        norm without features, and relative to the inputs and the bias.
        ``curve``: the pairs for the latter.

    Returns
    -------
    dict
        ``e``, ``lower`` and ``upper``: vectors of length 1, with ``e = 0``,
        or of the length of the curve; ``support``: number of neurons used by
        a variation norm, 0 for blocks.

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
    >>> found["upper"].round(6), found["support"]
    (array([1.]), 1)
    """
    _, Phi, UK, _ = moons_problem(n)
    if target in ("free", "relative", "curve"):
        H0 = None if target == "free" else Phi
        block = block_variation_norm_bounds(Phi, UK, H0)
        if target != "curve":
            return _row([0.0], [block.lower], [block.upper])
        curve = variation_pareto_curve(Phi, UK, H0, MUS, dictionary=block)
        return _row(curve.e, curve.lower, curve.gamma)
    if target not in ("u1", "u2", "u3", "u4", "u5"):
        raise ValueError(f"target must be u1 to u5 or a block, got {target!r}")
    found = variation_norm_bounds(Phi, UK[:, int(target[1]) - 1])
    support = int(np.count_nonzero(found.coefficients))
    return _row([0.0], [found.lower], [found.upper], support)


def _row(e, lower, upper, support: int = 0) -> dict:
    vectors = {"e": e, "lower": lower, "upper": upper}
    row = {key: np.array(x, dtype=float) for key, x in vectors.items()}
    return row | {"support": support}
