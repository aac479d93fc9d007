r"""Greedy layers on the sample sets, and what the rates are worth there.

The stored runs of the chapter on greedy neurons come from here. The floor on
:math:`\kappa` is what makes a rate certifiably empty: it holds for every pair
:math:`(\kappa,\epsilon)` at once, however the pair was found.
"""

from __future__ import annotations

import warnings
from typing import NamedTuple

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import Lasso

from helpers.core.checks import finite_matrix
from helpers.core.linalg import (
    check_orthonormal,
    complement,
    orthonormal_basis,
)
from helpers.core.randomness import Seed, as_generator, spawn
from helpers.core.tolerances import COVERED_RELATIVE
from helpers.spectral_alignment.block_norms import block_variation_norm_bounds
from helpers.spectral_alignment.clusters import spread_to_margin
from helpers.spectral_alignment.coverage import ky_fan_limits
from helpers.spectral_alignment.exact_search import maximal_gain_neuron
from helpers.spectral_alignment.graphs import graph_laplacian, knn_graph
from helpers.spectral_alignment.greedy import (
    Oracle,
    greedy_coverage,
    random_oracle,
)
from helpers.spectral_alignment.local_search import local_gain_search
from helpers.spectral_alignment.norm_curves import variation_pareto_curve
from helpers.spectral_alignment.norm_experiments import MUS
from helpers.spectral_alignment.sample_sets import sample_set, three_clouds
from helpers.spectral_alignment.spectra import laplacian_eigenbasis
from helpers.spectral_alignment.variation_norms import variation_norm_bounds

__all__ = [
    "GreedyProblem",
    "cloud_rates",
    "fresh_random_oracle",
    "greedy_decay",
    "greedy_problem",
    "representability_floor",
    "rate_constants",
    "roll_climbs",
]

FREQUENCIES = {
    "moons": 5,
    "moons, symmetric": 6,
    "circles": 5,
    "blobs": 4,
    "clouds": 3,
}
"""K for each set, at a wide gap of its eigenvalues."""

NEIGHBOURS = 10
CLOUD_SPREAD = 0.4
REDRAWS = 100
PENALTIES = (0.95, 0.85, 0.75, 0.65, 0.55, 0.45, 0.35)


class GreedyProblem(NamedTuple):
    """What :func:`greedy_problem` returns."""

    X: np.ndarray
    Phi: np.ndarray
    UK: np.ndarray
    gap_ratio: float


def greedy_problem(name: str, n: int, rng: Seed = 0) -> GreedyProblem:
    r"""Samples, their 10-nearest-neighbour graph and its low frequencies.

    Parameters
    ----------
    name : {'moons', 'moons, symmetric', 'circles', 'blobs', 'clouds'}
        ``symmetric``: :math:`L_{\rm sym}` in place of :math:`L`; ``clouds``:
        :func:`~helpers.spectral_alignment.sample_sets.three_clouds` of
        deviation 0.4 on a circle of radius 4.
    n : int > 10
        Divisible by three for the clouds.
    rng : int, SeedSequence or numpy.random.Generator

    Returns
    -------
    GreedyProblem
        ``X`` (n, 2); ``Phi`` (n, 3), with the bias; ``UK`` (n, K) with
        ``K`` = 5, 6, 5, 4, 3; ``gap_ratio``
        :math:`\lambda_{K+1}/\lambda_K`.

    Raises
    ------
    ValueError
        If the name is unknown or ``n`` does not fit.

    Notes
    -----
    Source: ours (experiment E4).

    Examples
    --------
    >>> greedy_problem("clouds", 60).UK.shape
    (60, 3)
    """
    if name not in FREQUENCIES:
        raise ValueError(
            f"name must be one of {tuple(FREQUENCIES)}, got {name!r}"
        )
    if isinstance(n, bool) or n % 1 != 0 or n <= NEIGHBOURS:
        raise ValueError(f"n must be a whole number > {NEIGHBOURS}, got {n!r}")
    if name == "clouds":
        if n % 3:
            raise ValueError(f"n must be divisible by 3, got {n}")
        X = three_clouds(n // 3, CLOUD_SPREAD, rng).X
    else:
        X = sample_set(name.split(",")[0], n, rng).X
    kind = "symmetric" if "symmetric" in name else "combinatorial"
    L = graph_laplacian(knn_graph(X, NEIGHBOURS), kind)
    basis = laplacian_eigenbasis(L, FREQUENCIES[name])
    return GreedyProblem(
        X,
        np.column_stack([X, np.ones(n)]),
        basis.vectors,
        float(basis.info.gap_ratio),
    )


def fresh_random_oracle(rng: Seed = 0) -> Oracle:
    """Random neurons, drawn again while they add nothing new.

    :func:`~helpers.spectral_alignment.greedy.random_oracle` may answer with a
    neuron that is off on all samples, or on at all but one, which ends a
    greedy run on top of the inputs early.

    Parameters
    ----------
    rng : int, SeedSequence or numpy.random.Generator

    Returns
    -------
    callable
        An oracle for
        :func:`~helpers.spectral_alignment.greedy.greedy_coverage`. Gives up
        after a hundred draws.

    Notes
    -----
    Source: ours.

    Examples
    --------
    >>> Phi = np.array([[1.0, 1.0], [2.0, 1.0], [4.0, 1.0]])
    >>> U = np.array([[1.0], [-2.0], [1.0]]) / np.sqrt(6)
    >>> all(
    ...     greedy_coverage(Phi, U, 1, Phi, fresh_random_oracle(s)).gain.size
    ...     for s in range(20)
    ... )
    True
    """
    draw = random_oracle(rng)

    def oracle(Phi, M, QH):
        for _ in range(REDRAWS):
            found = draw(Phi, M, QH)
            h = np.maximum(Phi @ found.theta, 0)
            rest = complement(QH, h)
            if rest @ rest > COVERED_RELATIVE * (h @ h):
                break
        return found

    return oracle


def greedy_decay(name: str, n: int, seed: int, t: int = 40) -> dict:
    r"""Deficit and gap of greedy and of random neurons on one draw.

    Parameters
    ----------
    name, n
        As :func:`greedy_problem`.
    seed : int
    t : int >= 0
        Neurons on top of ``Phi``.

    Returns
    -------
    dict
        ``deficit``, ``gap``, ``random`` (deficit of random neurons):
        vectors of length ``t + 1``, filled up with their last value if
        greedy ends early; ``limit``: Ky Fan limit of the deficit;
        ``gap_ratio``.

    Raises
    ------
    ValueError
        As :func:`greedy_problem`.

    Notes
    -----
    Source: ours (experiment E4).

    Examples
    --------
    >>> run = greedy_decay("moons", 30, 0, 3)
    >>> bool((run["deficit"] >= run["limit"] - 1e-12).all())
    True
    """
    rng = as_generator(seed)
    _, Phi, UK, ratio = greedy_problem(name, n, rng)
    best = greedy_coverage(Phi, UK, t, Phi)
    some = greedy_coverage(Phi, UK, t, Phi, fresh_random_oracle(rng))
    return {
        "deficit": _filled(best.deficit, t),
        "gap": _filled(best.gap, t),
        "random": _filled(some.deficit, t),
        "limit": ky_fan_limits(Phi, UK, np.arange(t + 1)).deficit,
        "gap_ratio": ratio,
    }


def _filled(x, t: int) -> np.ndarray:
    return np.pad(x, (0, t + 1 - len(x)), mode="edge")


def representability_floor(Phi, UK, Y, epsilon: float) -> float:
    r"""No :math:`(\kappa,\epsilon)`-representation has a smaller
    :math:`\kappa` than this.

    .. math::

        \kappa\ge\max_j\frac{\|U_K^{\mathsf T}y_j\|-\epsilon\|y_j\|}
        {\rho(y_j)},\qquad
        \rho(y)=\max_{d\in\mathcal A_\Phi}|y^{\mathsf T}d| .

    Parameters
    ----------
    Phi : array_like, shape (n, m), or None
        Features of rank at most 3, for an exact :math:`\rho`. ``None``: any
        features; :math:`\rho(y)` is then bounded by
        :math:`\max(\|y_+\|,\|y_-\|)`, since neurons are nonnegative.
    UK : array_like, shape (n, K)
        Orthonormal columns.
    Y : array_like, shape (n, q)
        Certificates to try; zero columns prove nothing.
    epsilon : float >= 0

    Returns
    -------
    float
        At least 0.

    Raises
    ------
    ValueError
        If shapes disagree, an input is not finite, or ``epsilon`` is out of
        range.

    Notes
    -----
    For a unit :math:`u=v+e`,
    :math:`u^{\mathsf T}y\le\rho(y)\|v\|_{\mathcal A}+\epsilon\|y\|`; take
    the ``u`` in :math:`\mathrm{span}U_K` with the largest left side.

    Source: ours.

    Examples
    --------
    The middle wave of a path of three costs exactly the root of two:

    >>> u = np.array([[-1.0], [0.0], [1.0]]) / np.sqrt(2)
    >>> round(representability_floor(None, u, u, 0.0) ** 2, 9)
    2.0
    """
    UK = check_orthonormal(UK, "UK")
    Y = np.asarray(Y, dtype=float)
    if Y.ndim != 2 or len(Y) != len(UK) or not np.isfinite(Y).all():
        raise ValueError(
            f"Y must be a finite matrix of shape ({len(UK)}, q), got shape "
            f"{Y.shape}"
        )
    if not (np.isfinite(epsilon) and epsilon >= 0):
        raise ValueError(f"epsilon must be finite and >= 0, got {epsilon!r}")
    if Phi is not None:
        Phi = finite_matrix(Phi, "Phi", len(UK))
    best = 0.0
    for y in Y.T:
        if not y.any():
            continue
        top = np.linalg.norm(UK.T @ y) - epsilon * np.linalg.norm(y)
        best = max(best, float(top) / _largest_product(Phi, y))
    return best


def _largest_product(Phi, y) -> float:
    if Phi is None:
        return float(max(np.linalg.norm(y[y > 0]), np.linalg.norm(y[y < 0])))
    nothing = np.zeros((len(y), 0))
    found = maximal_gain_neuron(Phi, y[:, None], nothing, "sweep")
    return float(np.sqrt(found.upper_bound))


def rate_constants(name: str, n: int, seed: int = 0) -> dict:
    r"""What the three rates need, with certificates, on one draw.

    Parameters
    ----------
    name, n
        As :func:`greedy_problem`.
    seed : int

    Returns
    -------
    dict
        ``kappa_lower``, ``kappa_upper``: certified bracket of the least
        :math:`\kappa` with :math:`\epsilon=0`, the upper end
        :math:`(\sum_k\|u_k\|_{\mathcal A}^2)^{1/2}`; ``kappa_half``: floor
        for :math:`\epsilon=1/2`; ``gamma_lower``, ``gamma_upper``: bracket of
        :math:`\gamma(\Phi,0)`; ``e``, ``gamma``: pairs, vectors;
        ``deficit``, ``gap``: of 40 greedy neurons.

    Raises
    ------
    ValueError
        As :func:`greedy_problem`.

    Notes
    -----
    Source: ours (experiment E4).

    Examples
    --------
    >>> found = rate_constants("clouds", 12)
    >>> found["kappa_half"] <= found["kappa_upper"]
    True
    """
    _, Phi, UK, _ = greedy_problem(name, n, as_generator(seed))
    prices = [variation_norm_bounds(Phi, u) for u in UK.T]
    block = block_variation_norm_bounds(Phi, UK, Phi)
    curve = variation_pareto_curve(Phi, UK, Phi, MUS, dictionary=block)
    Y = np.column_stack(
        [_residuals(p.atoms, u) for p, u in zip(prices, UK.T, strict=True)]
    )
    duals = np.column_stack([p.dual for p in prices])
    trace = greedy_coverage(Phi, UK, 40, Phi)
    return {
        "kappa_lower": max(
            *(p.lower for p in prices),
            representability_floor(Phi, UK, duals, 0.0),
        ),
        "kappa_upper": float(np.linalg.norm([p.upper for p in prices])),
        "kappa_half": representability_floor(Phi, UK, Y, 0.5),
        "gamma_lower": float(block.lower),
        "gamma_upper": float(block.upper),
        "e": np.append(curve.e, 0.0),
        "gamma": np.append(curve.gamma, block.upper),
        "deficit": _filled(trace.deficit, 40),
        "gap": _filled(trace.gap, 40),
    }


def cloud_rates(n: int, seed: int, t: int = 12) -> dict:
    r"""Greedy neurons on three clouds, on top of the constant alone, and
    what the block rate and the constants of Example 5.12 need there.

    Parameters
    ----------
    n : int > 10
        Divisible by three.
    seed : int
        Of the clouds.
    t : int >= 0
        Neurons.

    Returns
    -------
    dict
        ``gamma_lower``, ``gamma_upper``: bracket of
        :math:`\gamma(\mathbf 1,0)`; ``kappa``:
        :math:`2\sqrt3\max_c\omega_c`; ``deficit``, ``gap``: vectors of
        length ``t + 1``.

    Raises
    ------
    ValueError
        As :func:`greedy_problem`.

    Notes
    -----
    Source: ours (experiment E4).

    Examples
    --------
    >>> found = cloud_rates(36, 0, 2)
    >>> float(found["deficit"][0].round(9)), bool(found["gap"][2] < 0.5)
    (2.0, True)
    """
    X, Phi, UK, _ = greedy_problem("clouds", n, as_generator(seed))
    one = np.ones((n, 1))
    block = block_variation_norm_bounds(Phi, UK, one)
    trace = greedy_coverage(Phi, UK, t, one)
    cloud = np.repeat([0, 1, 2], n // 3)
    widest = max(spread_to_margin(X, cloud, c).omega for c in range(3))
    return {
        "gamma_lower": float(block.lower),
        "gamma_upper": float(block.upper),
        "kappa": float(2 * np.sqrt(3) * widest),
        "deficit": _filled(trace.deficit, t),
        "gap": _filled(trace.gap, t),
    }


def roll_climbs(n: int, seed: int, steps: int = 4, starts: int = 30) -> dict:
    r"""Climbs against the exact maximum by faces, on a swiss roll (rank 4).

    Parameters
    ----------
    n : int > 10
        Samples; the exact search is :math:`O(n^3)`, a few seconds for 40.
    seed : int
        Of the samples and of the climbs.
    steps : int >= 1
        Exact greedy neurons for the five lowest frequencies, on top of the
        inputs; each is a problem.
    starts : int >= 1
        Climbs a problem.

    Returns
    -------
    dict
        ``exact``: maximal gains, shape (steps,); ``climbs``: gains of the
        climbs over it, shape (steps * starts,), one problem after the other.

    Raises
    ------
    ValueError
        If an argument is out of range.

    Notes
    -----
    Source: ours (experiment E10).

    Examples
    --------
    >>> found = roll_climbs(12, 0, 1, 3)
    >>> found["climbs"].shape, bool(found["climbs"].max() < 1 + 1e-9)
    ((3,), True)
    """
    if isinstance(n, bool) or n % 1 != 0 or n <= NEIGHBOURS:
        raise ValueError(f"n must be a whole number > {NEIGHBOURS}, got {n!r}")
    draw, climber = spawn(seed, 2)
    X = sample_set("swiss roll", n, draw).X
    L = graph_laplacian(knn_graph(X, NEIGHBOURS))
    U = laplacian_eigenbasis(L, 5).vectors
    Phi = np.column_stack([X, np.ones(n)])
    H, exact, shares = Phi, [], []
    for _ in range(steps):
        QH = orthonormal_basis(H)
        M = complement(QH, U)
        best = maximal_gain_neuron(Phi, M, QH, "faces")
        found = local_gain_search(Phi, M, QH, starts, climber)
        exact.append(best.gain)
        shares.append(found.gains / best.gain)
        H = np.column_stack([H, np.maximum(Phi @ best.theta, 0)])
    return {"exact": np.array(exact), "climbs": np.concatenate(shares)}


def _residuals(atoms, u) -> np.ndarray:
    """What the lasso leaves of a frequency: certificates to try."""
    left = []
    top = np.abs(atoms.T @ u).max() / len(u)
    for share in PENALTIES:
        model = Lasso(share * top, fit_intercept=False, max_iter=1000)
        with warnings.catch_warnings():
            # any residual is a valid certificate, converged or not
            warnings.simplefilter("ignore", ConvergenceWarning)
            fit = model.fit(atoms, u)
        left.append(u - atoms @ fit.coef_)
    return np.column_stack(left)
