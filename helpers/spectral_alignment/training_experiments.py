r"""Experiments E3, E5 and E6: does training cover the low frequencies?

Tasks of stored runs. The module that trains, and with it torch, is imported
only when a network is trained.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from helpers.core.checks import whole_number
from helpers.core.randomness import spawn
from helpers.spectral_alignment.coverage import (
    coverage_deficit,
    coverage_sines,
    least_squares_readout,
)
from helpers.spectral_alignment.graphs import graph_laplacian, knn_graph
from helpers.spectral_alignment.greedy import (
    greedy_coverage,
    local_oracle,
    random_oracle,
)
from helpers.spectral_alignment.layers import (
    Layers,
    random_layers,
    relu_features,
    with_bias,
)
from helpers.spectral_alignment.sample_sets import sample_set
from helpers.spectral_alignment.spectra import laplacian_eigenbasis

__all__ = [
    "MARKS",
    "TrainingProblem",
    "greedy_against_random",
    "layer_coverage",
    "random_coverage",
    "readout_numbers",
    "train_coverage",
    "training_problem",
    "two_rings",
]

MARKS = (0, 3, 10, 30, 100, 200, 300, 600, 1000, 2000, 3000)
"""Steps at which the stored runs are recorded."""

STARTS = {
    "zero": {},
    "frozen": {"train_biases": False},
    "gaussian": {"bias_scale": 1.0},
}

SIZES = {"moons": 200, "circles": 200, "swiss roll": 300, "digits": 300}


class TrainingProblem(NamedTuple):
    """What :func:`training_problem` returns."""

    X: np.ndarray
    f: np.ndarray
    UK: np.ndarray


def training_problem(name: str, K: int, draw: int = 0) -> TrainingProblem:
    r"""Samples, target, and low frequencies of the 10-neighbour graph.

    Parameters
    ----------
    name : {'moons', 'circles', 'swiss roll', 'digits'}
        The first two with 200 samples, the others with 300.
    K : int
        Low frequencies of the combinatorial Laplacian, fewer than samples.
    draw : int
        Seed of the samples.

    Returns
    -------
    TrainingProblem
        ``X`` (n, d), ``f`` (n,), ``UK`` (n, K).

    Raises
    ------
    ValueError
        If the name is unknown or ``K`` is out of range.

    Notes
    -----
    Source: ours (experiments E3, E5 and E6).

    Examples
    --------
    >>> [a.shape for a in training_problem("swiss roll", 8)]
    [(300, 3), (300,), (300, 8)]
    """
    if name not in SIZES:
        raise ValueError(f"name must be one of {tuple(SIZES)}, got {name!r}")
    X, f = sample_set(name, SIZES[name], draw)
    basis = laplacian_eigenbasis(graph_laplacian(knn_graph(X, 10)), K)
    return TrainingProblem(X, f, basis.vectors)


def two_rings(m: int, ratio: float) -> np.ndarray:
    r"""``m`` equally spaced samples on the unit circle, and as many at the
    same angles on a circle of radius ``ratio``.

    Parameters
    ----------
    m : int >= 1
    ratio : float > 0

    Returns
    -------
    ndarray, shape (2 m, 2)
        The unit circle first.

    Raises
    ------
    ValueError
        If an argument is out of range.

    Notes
    -----
    Source: ours (what layers without biases cannot tell apart).

    Examples
    --------
    >>> two_rings(1, 0.5).tolist()
    [[1.0, 0.0], [0.5, 0.0]]
    """
    m = whole_number(m, "m")
    if not 0 < ratio < np.inf:
        raise ValueError(f"ratio must be positive and finite, got {ratio!r}")
    angles = 2 * np.pi * np.arange(m) / m
    ring = np.column_stack([np.cos(angles), np.sin(angles)])
    return np.vstack([ring, ratio * ring])


def layer_coverage(X, layers, UK) -> tuple[np.ndarray, np.ndarray]:
    r"""Captures and gap of each hidden layer, the constant included.

    Parameters
    ----------
    X : array_like, shape (n, d)
    layers : Layers
        Weights and biases.
    UK : array_like, shape (n, K)

    Returns
    -------
    captured, gap : ndarray, shape (p,)
        :math:`N_K([H_\ell,\mathbf 1])` and :math:`s_K([H_\ell,\mathbf 1])`.

    Raises
    ------
    ValueError
        As :func:`helpers.spectral_alignment.coverage.coverage_sines`.

    Notes
    -----
    Source: the spectral-alignment paper, section 1 and Definition 3.4.

    Examples
    --------
    >>> affine = Layers([np.ones((1, 2))], [np.full(2, 9.0)])
    >>> N, s = layer_coverage(np.arange(3.0)[:, None], affine, np.eye(3))
    >>> N.round(6).tolist(), s.round(6).tolist()
    ([2.0], [1.0])
    """
    hidden = relu_features(X, layers.weights, layers.biases)[1:]
    sines = np.array([coverage_sines(with_bias(H), UK) for H in hidden])
    return UK.shape[1] - np.sum(sines**2, axis=1), sines[:, 0]


def readout_numbers(H, UK, f) -> dict[str, float]:
    r"""The best readout of a target, and what Corollary 3.1 says of it.

    Parameters
    ----------
    H : array_like, shape (n, m)
        Features; the constant is appended.
    UK : array_like, shape (n, K)
    f : array_like, shape (n,)
        Not zero.

    Returns
    -------
    dict
        All relative to :math:`\|f\|`: ``residual``; ``bound``,
        :math:`s_K\|P_Kf\|+\|P_K^\perp f\|`; ``high``,
        :math:`\|P_K^\perp f\|`; ``low_left``, :math:`\|(I-\Pi_Z)P_Kf\|`.
        And ``gap`` and ``captured``.

    Raises
    ------
    ValueError
        If ``f`` is zero; as
        :func:`helpers.spectral_alignment.coverage.least_squares_readout`.

    Notes
    -----
    Source: the spectral-alignment paper, Corollary 3.1.

    Examples
    --------
    >>> found = readout_numbers(np.zeros((2, 0)), np.eye(2)[:, :1], [3., -3.])
    >>> round(found["residual"], 6), round(found["high"] ** 2, 6)
    (1.0, 0.5)
    """
    f, UK = np.asarray(f, dtype=float), np.asarray(UK, dtype=float)
    size = np.linalg.norm(f)
    if not size > 0:
        raise ValueError("f must not be zero")
    Z = with_bias(H)
    sines = coverage_sines(Z, UK)
    low = UK @ (UK.T @ f)
    high = np.linalg.norm(f - low)
    left, low_left = (
        np.linalg.norm(least_squares_readout(Z, target).residual)
        for target in (f, low)
    )
    return {
        "residual": float(left / size),
        "bound": float((sines[0] * np.linalg.norm(low) + high) / size),
        "high": float(high / size),
        "low_left": float(low_left / size),
        "gap": float(sines[0]),
        "captured": float(UK.shape[1] - np.sum(sines**2)),
    }


def train_coverage(
    name: str,
    width: int,
    biases: str,
    seed: int,
    K: int = 8,
    draw: int = 0,
) -> dict:
    r"""Train two hidden layers and follow what they cover.

    Parameters
    ----------
    name : str
        As :func:`training_problem`.
    width : int
        Neurons of both layers.
    biases : {'zero', 'frozen', 'gaussian'}
        Hidden biases begin at zero and are trained; stay at zero; begin
        standard Gaussian and are trained. The weights begin equal for equal
        seeds with ``zero`` and ``frozen``.
    seed : int
        Of the starting weights.
    K, draw : int
        As :func:`training_problem`.

    Returns
    -------
    dict
        Vectors over :data:`MARKS`: ``mse``; ``N1``, ``s1``, ``dead1`` of the
        first layer and ``N2``, ``s2``, ``dead2`` of the second;
        ``N2_unbiased``, of the second layer with all hidden biases put to
        zero; ``N2_biases``, of the starting weights with the biases of that
        step; those of :func:`readout_numbers` for the second layer but
        ``gap`` and ``captured``.

    Raises
    ------
    ValueError
        If ``biases`` is unknown; as :func:`training_problem`.

    Notes
    -----
    Source: ours (experiments E3 and E5).
    """
    from helpers.spectral_alignment.training import train_relu_network

    if biases not in STARTS:
        raise ValueError(
            f"biases must be one of {tuple(STARTS)}, got {biases!r}"
        )
    X, f, UK = training_problem(name, K, draw)
    trace = train_relu_network(
        X,
        f,
        [width, width],
        MARKS[-1],
        seed=seed,
        record=MARKS,
        **STARTS[biases],
    )
    rows = [_numbers(X, f, UK, trace.layers[0], now) for now in trace.layers]
    found = {key: np.array([row[key] for row in rows]) for key in rows[0]}
    return found | {
        "mse": trace.mse,
        "dead1": trace.dead[:, 0],
        "dead2": trace.dead[:, 1],
    }


def _numbers(X, f, UK, first, now) -> dict[str, float]:
    N, s = layer_coverage(X, now, UK)
    none = [np.zeros_like(b) for b in now.biases]
    H = relu_features(X, now.weights, now.biases)[-1]
    numbers = readout_numbers(H, UK, f)
    del numbers["gap"], numbers["captured"]
    return numbers | {
        "N1": N[0],
        "s1": s[0],
        "N2": N[1],
        "s2": s[1],
        "N2_unbiased": layer_coverage(X, Layers(now.weights, none), UK)[0][1],
        "N2_biases": layer_coverage(X, Layers(first.weights, now.biases), UK)[
            0
        ][1],
    }


def random_coverage(
    name: str, width: int, seed: int, bias_scale: float = 1.0, K: int = 8
) -> dict[str, float]:
    r"""Captures and gap of one random layer.

    Parameters
    ----------
    name : str
        As :func:`training_problem`.
    width, seed : int
    bias_scale : float >= 0
        Standard deviation of the biases.
    K : int

    Returns
    -------
    dict
        ``captured`` and ``gap``.

    Raises
    ------
    ValueError
        As :func:`training_problem`.

    Notes
    -----
    Source: ours (experiment E3).

    Examples
    --------
    >>> random_coverage("moons", 32, 0)["captured"] > 7
    True
    """
    X, _, UK = training_problem(name, K)
    layer = random_layers(X.shape[1], [width], seed, bias_scale=bias_scale)
    N, s = layer_coverage(X, layer, UK)
    return {"captured": float(N[0]), "gap": float(s[0])}


def greedy_against_random(name: str, K: int, t: int, seed: int) -> dict:
    r"""Deficits of greedy and of random neurons on top of the inputs.

    Parameters
    ----------
    name : str
        As :func:`training_problem`.
    K, t : int
        Low frequencies, and neurons added to :math:`\Phi=[X,\mathbf 1]`.
    seed : int
        Of the climbs' starts and, in another stream, of random neurons.

    Returns
    -------
    dict
        Deficits, shape (t + 1,), beginning with :math:`\Phi`: ``greedy``;
        ``random``, neurons that switch off at a random sample;
        ``gaussian``, neurons of a Gaussian layer with biases of standard
        deviation 1. And, for a greedy layer of ``t`` neurons beginning with
        the constant alone, all of :func:`readout_numbers`.

    Raises
    ------
    ValueError
        As :func:`training_problem`.

    Notes
    -----
    Fifteen climbs a neuron, without a certificate.

    Source: ours (experiments E5 and E6).
    """
    X, f, UK = training_problem(name, K)
    Phi = with_bias(X)
    climbs, draws, alone, gauss = spawn(seed, 4)
    chosen = greedy_coverage(Phi, UK, t, Phi, local_oracle(15, climbs))
    drawn = greedy_coverage(Phi, UK, t, Phi, random_oracle(draws))
    one = np.ones((len(X), 1))
    layer = greedy_coverage(Phi, UK, t, one, local_oracle(15, alone))
    start = random_layers(X.shape[1], [t], gauss)
    R = relu_features(X, start.weights, start.biases)[1]
    return readout_numbers(layer.features, UK, f) | {
        "greedy": _padded(chosen.deficit, t),
        "random": _padded(drawn.deficit, t),
        "gaussian": np.array(
            [
                coverage_deficit(np.column_stack([Phi, R[:, :s]]), UK)
                for s in range(t + 1)
            ]
        ),
    }


def _padded(deficit, t: int) -> np.ndarray:
    """A layer that is complete stays so."""
    return np.pad(deficit, (0, t + 1 - len(deficit)), mode="edge")
