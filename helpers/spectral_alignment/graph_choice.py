r"""Choosing the graph, when labels may be looked at and graphs may not see
them.

For a graph and a number of frequencies, the layer is built greedily to cover
them, without the labels. The labels enter at the end: the objective adds what
the layer leaves open of their low part, and their high part. It bounds the
error of the readout.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.linalg import eigvalsh

from helpers.core.checks import finite_matrix, finite_vector
from helpers.core.randomness import spawn
from helpers.spectral_alignment.coverage import (
    ky_fan_limits,
    least_squares_readout,
)
from helpers.spectral_alignment.graphs import (
    graph_laplacian,
    knn_graph,
    rbf_graph,
)
from helpers.spectral_alignment.greedy import (
    Oracle,
    exact_oracle,
    greedy_coverage,
    random_oracle,
)
from helpers.spectral_alignment.neurons import _features
from helpers.spectral_alignment.sample_sets import sample_set
from helpers.spectral_alignment.spectra import (
    dirichlet_energy,
    laplacian_eigenbasis,
    low_pass_split,
)


@dataclass(frozen=True)
class GraphObjective:
    r"""What a graph promises for a target, and what comes of it.

    All numbers are relative to :math:`\|f\|`.

    Attributes
    ----------
    J : float
        :math:`s\|P_Kf\|+\|P_K^\perp f\|` with :math:`s` the gap after ``t``
        greedy neurons; an upper bound on ``residual``.
    J_energy : float
        :math:`s+E(f)/\sqrt{\lambda_{K+1}}`, a bound on ``J``; infinite if
        :math:`\lambda_{K+1}` is zero.
    J_least : float
        ``J`` with the Ky Fan limit in place of the gap: no ``t`` neurons do
        better. Costs no search.
    gap, high : float
        :math:`s` and :math:`\|P_K^\perp f\|`.
    residual : float
        Error of the least-squares readout on the samples.
    theta : ndarray, shape (s, m)
        The neurons.
    """

    J: float
    J_energy: float
    J_least: float
    gap: float
    high: float
    residual: float
    theta: np.ndarray


def graph_selection_objective(
    W,
    f,
    Phi,
    K: int,
    t: int,
    kind: str = "combinatorial",
    oracle: Oracle = exact_oracle,
) -> GraphObjective:
    r"""The objective :math:`J(\mathcal G,K)` of a graph.

    Parameters
    ----------
    W : array_like or sparse array, shape (n, n)
        Built from the samples alone.
    f : array_like, shape (n,)
        Not zero.
    Phi : array_like, shape (n, m)
        Inputs with the bias column; the layer keeps them.
    K : int in 1..n-1
    t : int >= 0
        Neurons to spend.
    kind : {'combinatorial', 'symmetric'}
        Which Laplacian.
    oracle : callable
        As for :func:`helpers.spectral_alignment.greedy.greedy_coverage`.

    Returns
    -------
    GraphObjective

    Raises
    ------
    ValueError
        If an argument is out of range.

    Notes
    -----
    ``J`` does not change if all weights are multiplied by one number.

    Source: ours, for the second direction that Remark 6.1 of the
    spectral-alignment paper leaves open.

    Examples
    --------
    >>> path = np.array([[0, 1, 0], [1, 0, 1], [0, 1, 0]])
    >>> Phi = np.array([[-1.0, 1.0], [0.0, 1.0], [1.0, 1.0]])
    >>> found = graph_selection_objective(path, [1.0, -2.0, 1.0], Phi, 2, 0)
    >>> round(found.J, 9), round(found.residual, 9)
    (1.0, 1.0)
    """
    f = np.asarray(f, dtype=float)
    size = float(np.linalg.norm(f))
    if not (size > 0 and np.isfinite(size)):
        raise ValueError(f"f must be finite and not zero, its norm is {size}")
    L = graph_laplacian(W, kind)
    f = finite_vector(f, "f", L.shape[0])
    Phi = finite_matrix(Phi, "Phi", len(f))
    lam, U, info = laplacian_eigenbasis(L, K, if_tied="ignore")
    trace = greedy_coverage(Phi, U, t, Phi, oracle)
    low, high = (np.linalg.norm(x) / size for x in low_pass_split(U, f))
    smooth = (
        np.sqrt(dirichlet_energy(L, f) / lam[-1]) / size
        if info.bound_applies
        else np.inf
    )
    gap = float(trace.gap[-1])
    least = float(ky_fan_limits(Phi, U, t).gap)
    Z = np.column_stack([Phi, trace.features])
    r = least_squares_readout(Z, f).residual
    return GraphObjective(
        J=float(gap * low + high),
        J_energy=float(gap + smooth),
        J_least=float(least * low + high),
        gap=gap,
        high=float(high),
        residual=float(np.linalg.norm(r)) / size,
        theta=trace.theta,
    )


def held_out_error(Phi, f, theta, Phi_new, f_new) -> float:
    r"""Relative error on other samples of the readout fitted on these.

    Parameters
    ----------
    Phi, Phi_new : array_like, shapes (n, m) and (N, m)
        Inputs with the bias column; the layer keeps them.
    f, f_new : array_like, shapes (n,) and (N,)
    theta : array_like, shape (t, m)
        Neurons, one a row.

    Returns
    -------
    float
        :math:`\|g-f\|/\|f\|` on the new samples.

    Raises
    ------
    ValueError
        If shapes disagree, an input is not finite or ``f_new`` is zero.

    Notes
    -----
    Source: ours (experiment E11).

    Examples
    --------
    >>> Phi = np.array([[-1.0, 1.0], [0.0, 1.0], [1.0, 1.0]])
    >>> held_out_error(Phi, [0, 0, 1], [[1.0, 0.0]], [[3.0, 1.0]], [3.0]) < 1e-9
    True
    """
    Phi, Phi_new = _features(Phi), finite_matrix(Phi_new, "Phi_new")
    m = Phi.shape[1]
    theta = np.atleast_2d(np.asarray(theta, dtype=float))
    if Phi_new.shape[1] != m or theta.shape[1:] != (m,):
        raise ValueError(
            f"Phi_new and theta must have {m} columns as Phi has, got "
            f"{Phi_new.shape} and {theta.shape}"
        )
    if not np.isfinite(theta).all():
        raise ValueError("theta must be finite, it holds NaN or infinity")
    f_new = finite_vector(f_new, "f_new", len(Phi_new))
    if not f_new.any():
        raise ValueError("f_new must not be zero")

    def features(P):
        return np.column_stack([P, np.maximum(P @ theta.T, 0)])

    beta = least_squares_readout(features(Phi), f).coefficients
    error = features(Phi_new) @ beta - f_new
    return float(np.linalg.norm(error) / np.linalg.norm(f_new))


def mixture_surrogate(W, f, K: int) -> float:
    r"""The surrogate
    :math:`(K+1)f^{\mathsf T}L_Wf/(\|f\|^2\sum_{k\le K+1}\lambda_k(L_W))`.

    An upper bound on the squared smoothness term
    :math:`E(f)^2/(\lambda_{K+1}\|f\|^2)`, linear over concave in the weights
    and so quasi-convex.

    Parameters
    ----------
    W : array_like, shape (n, n)
    f : array_like, shape (n,)
        Not zero.
    K : int in 1..n-1

    Returns
    -------
    float
        Infinite if the ``K + 1`` lowest eigenvalues are zero.

    Raises
    ------
    ValueError
        If an argument is out of range.

    Notes
    -----
    Source: ours (open problem B).

    Examples
    --------
    >>> path = np.array([[0, 1, 0], [1, 0, 1], [0, 1, 0]])
    >>> round(mixture_surrogate(path, [-1.0, 0.0, 1.0], 1), 9)
    2.0
    """
    L = graph_laplacian(W)
    L = L.toarray() if hasattr(L, "toarray") else L
    f = finite_vector(f, "f", len(L))
    if isinstance(K, bool) or K % 1 != 0 or not 1 <= K < len(L):
        raise ValueError(f"K must be in 1..{len(L) - 1}, got {K!r}")
    if not np.linalg.norm(f) > 0:
        raise ValueError("f must be finite and not zero")
    lam = np.maximum(eigvalsh(L, subset_by_index=(0, int(K))), 0.0)
    top = (K + 1) * dirichlet_energy(L, f)
    bottom = lam.sum() * (f @ f)
    tiny = np.trace(L) * np.finfo(float).eps
    return float(top / bottom) if lam.sum() > tiny else np.inf


def choice_outcome(
    data: str, graph: str, scale: float, kind: str, K: int, t: int, seed: int
) -> dict[str, float]:
    r"""One configuration of experiment E11.

    Parameters
    ----------
    data : {'moons', 'circles'}
        120 samples to fit and 400 to test, standardised alike.
    graph : {'knn', 'rbf', 'random', 'target', 'linear'}
        The last three are baselines without a graph: random neurons, exact
        greedy neurons for the target itself, and no neurons.
    scale : float
        Number of neighbours, or width of the Gaussian.
    kind : str
        Which Laplacian.
    K, t : int
    seed : int
        Of the samples.

    Returns
    -------
    dict
        ``J``, ``J_energy``, ``J_least``, ``gap``, ``high``, ``residual`` and
        ``test``; NaN where a baseline has none.

    Raises
    ------
    ValueError
        If a name is unknown.

    Notes
    -----
    Source: ours (experiment E11).

    Examples
    --------
    >>> found = choice_outcome("moons", "linear", 0, "combinatorial", 1, 0, 0)
    >>> 0.3 < found["residual"] < 1
    True
    """
    fit = sample_set(data, 520, seed)
    order = spawn(seed, 2)[1].permutation(520)
    X, f = fit.X[order], fit.f[order]
    Phi = np.column_stack([X, np.ones(520)])
    P, g = Phi[:120], f[:120]
    keys = ("J", "J_energy", "J_least", "gap", "high")
    if graph in ("knn", "rbf"):
        W = (
            knn_graph(X[:120], int(scale))
            if graph == "knn"
            else rbf_graph(X[:120], float(scale))
        )
        found = graph_selection_objective(W, g, P, K, t, kind)
        row = {key: getattr(found, key) for key in keys}
        theta = found.theta
    else:
        row = dict.fromkeys(keys, np.nan)
        theta = _baseline(graph, P, g, t, seed)
    H = np.column_stack([P, np.maximum(P @ theta.T, 0)])
    r = least_squares_readout(H, g).residual
    row["residual"] = float(np.linalg.norm(r) / np.linalg.norm(g))
    row["test"] = held_out_error(P, g, theta, Phi[120:], f[120:])
    return row


def _baseline(name: str, P, g, t: int, seed: int) -> np.ndarray:
    target = (g / np.linalg.norm(g))[:, None]
    if name == "linear":
        return np.zeros((0, P.shape[1]))
    if name == "random":
        return greedy_coverage(P, target, t, P, random_oracle(seed)).theta
    if name == "target":
        return greedy_coverage(P, target, t, P).theta
    raise ValueError(
        "graph must be 'knn', 'rbf', 'random', 'target' or 'linear', got "
        f"{name!r}"
    )
