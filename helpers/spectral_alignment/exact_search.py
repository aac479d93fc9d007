r"""The neuron of maximal gain, with a certificate.

The sample cuts the space of neurons into cones, one for each gating pattern,
and on each the gain is a quotient of two quadratic forms
(:func:`helpers.spectral_alignment.neurons.gating_pencil`). The maximum over a
cone is the maximum over the span of the cone or of one of its faces, so that
small eigenproblems and sign checks are enough: no sampling, no convexity.

Every neuron offered by a face is measured by its values on the sample, so
that the gain found is one that is reached; the certificate is that every
pattern's relaxed bound is below it, or that the pattern was looked into.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations

import numpy as np
from scipy.linalg import null_space
from scipy.optimize import nnls

from helpers.core.checks import finite_vector
from helpers.core.linalg import complement
from helpers.core.tolerances import (
    CERTIFIED_RELATIVE,
    CONE_SLACK,
    RANK_RELATIVE,
    ROUNDING,
)
from helpers.spectral_alignment.exact_faces import search_faces
from helpers.spectral_alignment.exact_search_compiled import (
    AVAILABLE,
    circle_events,
    examine,
    sweep_circles,
)
from helpers.spectral_alignment.gating_patterns import (
    enumerate_gating_patterns,
    parallel_classes,
)
from helpers.spectral_alignment.local_search import local_gain_search
from helpers.spectral_alignment.neurons import (
    check_uncovered,
    marginal_gain,
    reduced_features,
)

METHODS = ("sweep", "faces")


@dataclass(frozen=True)
class ExactNeuron:
    r"""A neuron of maximal gain and the evidence for it.

    Attributes
    ----------
    theta : ndarray, shape (m,)
        The neuron, scaled so that its values have norm 1. Maximisers are
        not unique: assert the gain, not the neuron.
    gain : float
        Its gain, recomputed from its values on the sample.
    upper_bound : float
        No neuron has a larger gain than this: ``gain`` and the relative
        slack 1e-12 of the comparisons.
    relaxed_bound : float
        Largest bound of a pattern whose sign conditions are forgotten, as
        far as it exceeds ``gain``: what a search that checks no signs could
        certify.
    pattern : ndarray of bool, shape (n,)
        Samples on which the neuron is active.
    cells : int
        Gating patterns in all.
    checked : int
        Patterns that their relaxed bound could not exclude and that were
        looked into, counted each time a face led to them.
    """

    theta: np.ndarray
    gain: float
    upper_bound: float
    relaxed_bound: float
    pattern: np.ndarray
    cells: int
    checked: int


def maximal_gain_neuron(
    Phi,
    M,
    QH=None,
    method: str = "sweep",
    *,
    warm_starts: int = 10,
    compiled: bool | None = None,
) -> ExactNeuron:
    r"""Maximise :math:`G_H(\sigma(\Phi\theta))` over all neurons, exactly.

    Parameters
    ----------
    Phi : array_like, shape (n, m)
        Features with the bias column, of rank ``r <= 3`` for ``sweep`` and
        ``r <= 4`` for ``faces``. Duplicated, opposite, collinear and zero
        rows are allowed.
    M : array_like, shape (n, K)
        Orthogonal to ``QH``: :math:`(I-\Pi_H)U_K`, or any other targets
        projected so.
    QH : array_like, shape (n, p), optional
        Orthonormal basis of the features at hand.
    method : {'sweep', 'faces'}
        ``sweep``: circle after circle, pencils carried by running sums.
        ``faces``: every face's pencil from its samples, by matrix products
        and LAPACK; an independent route, and the one for rank 4. Ranks 1
        and 2 go by ``faces`` in either case.
    warm_starts : int >= 1
        Starts of a local search that supplies the value to beat; fewer mean
        more patterns to look into, not another result.
    compiled : bool, optional
        Whether the sweep runs compiled; by default if numba is installed.
        Otherwise it is vectorised along each circle, with equal result.

    Returns
    -------
    ExactNeuron

    Raises
    ------
    ValueError
        As :func:`~helpers.spectral_alignment.neurons.check_uncovered`; if
        the rank of ``Phi`` is too large for the method, or an option is
        unknown.

    Notes
    -----
    ``sweep`` takes :math:`O(n^2(\log n+K+p))`, and :math:`O(n(K+p))` for
    each pattern looked into; ``faces`` takes :math:`O(n^{r-1})` pencils of
    :math:`O(n(K+p))` each. Neurons less than
    1e-5 of which lies outside the span of ``H`` count as covered when
    pencils are compared: quadratic forms cannot resolve them.

    Source: ours: algorithms A1 and A2 with the face theorem C7, for the
    problem that Remark 6.1 of the spectral-alignment paper leaves open.

    Examples
    --------
    On the path of three nodes 1 and x cover two of three frequencies, and
    one neuron covers the third:

    >>> Phi = np.array([[-1.0, 1.0], [0.0, 1.0], [1.0, 1.0]])
    >>> high = np.array([[1.0], [-2.0], [1.0]]) / np.sqrt(6)
    >>> low = np.array([[1.0, -1], [1, 0], [1, 1]]) / np.sqrt([3, 2])
    >>> found = maximal_gain_neuron(Phi, high, low)
    >>> round(found.gain, 9), found.cells
    (1.0, 6)
    """
    if method not in METHODS:
        raise ValueError(f"method must be one of {METHODS}, got {method!r}")
    G, T = reduced_features(Phi)
    M, QH = check_uncovered(M, QH, G.shape[0])
    n, rank = G.shape
    largest = 3 if method == "sweep" else 4
    if rank > largest:
        raise ValueError(
            f"Phi must have rank at most {largest} for method={method!r}, "
            f"got {rank}"
            + ("; use method='faces'" if rank == 4 else "")
            + "; for larger ranks only local_gain_search is at hand"
        )
    start = local_gain_search(G, M, QH, warm_starts, rng=0)
    best = np.ascontiguousarray(start.theta)
    record = np.array([start.gain, start.gain, 0.0, 0.0])
    M, QH = np.ascontiguousarray(M), np.ascontiguousarray(QH)
    if method == "sweep" and rank == 3:
        compiled = AVAILABLE if compiled is None else compiled
        cells = _sweep(G, M, QH, best, record, compiled)
    else:
        cells = search_faces(G, M, QH, best, record)
    return _certified(
        np.asarray(Phi, dtype=float), T, G, M, QH, best, record, cells
    )


def _certified(Phi, T, G, M, QH, best, record, cells) -> ExactNeuron:
    values = G @ best
    size = np.linalg.norm(np.maximum(values, 0.0))
    scale = 1 / size if size > 0 else 1.0
    theta = T @ best * scale
    z = Phi @ theta
    h = np.where(z > ROUNDING * np.abs(z).max(), z, 0.0)
    gain = marginal_gain(h, M, QH)
    gap = float(np.linalg.norm(M, 2))
    slack = CONE_SLACK * np.abs(values).max()
    return ExactNeuron(
        theta=theta,
        gain=gain,
        upper_bound=max(gain, float(record[0])) * (1 + CERTIFIED_RELATIVE),
        # no bound exceeds the squared gap, but for rounding noise
        relaxed_bound=max(min(float(record[1]), gap**2), gain),
        pattern=values > slack,
        cells=int(cells),
        checked=int(record[3]),
    )


def _sweep(G, M, QH, best, record, compiled: bool) -> int:
    normals, over, under = _hyperplanes(G, M, QH)
    run = sweep_circles if compiled else _sweep_numpy
    cells = run(normals, over, under, G, M, QH, best, record)
    # the one cell that has no facet whose normal points into it
    none = np.zeros(over.shape[1])
    examine(
        none,
        under.sum(axis=0),
        np.ascontiguousarray(np.eye(3)[:, :2]),
        np.zeros(2),
        np.zeros((3, 3)),
        G,
        M,
        QH,
        best,
        record,
    )
    return cells


def _hyperplanes(G, M, QH):
    """Distinct hyperplanes, and the sums of their samples by side."""
    first, sign = parallel_classes(G)
    kept, place = np.unique(first[sign != 0], return_inverse=True)
    normals = G[kept] / np.linalg.norm(G[kept], axis=1)[:, None]
    # any direction off the hyperplanes will do
    direction = np.random.default_rng(0).normal(size=G.shape[1])
    turn = np.where(normals @ direction > 0, 1.0, -1.0)
    upper = np.triu_indices(G.shape[1])
    sums = np.concatenate(
        [
            (M[:, :, None] * G[:, None]).reshape(len(G), -1),
            (QH[:, :, None] * G[:, None]).reshape(len(G), -1),
            (G[:, :, None] * G[:, None])[:, *upper],
        ],
        axis=1,
    )[sign != 0]
    side = sign[sign != 0] * turn[place]
    over, under = np.zeros((2, len(kept), sums.shape[1]))
    np.add.at(over, place[side > 0], sums[side > 0])
    np.add.at(under, place[side < 0], sums[side < 0])
    return normals * turn[:, None], over, under


def _sweep_numpy(normals, over, under, G, M, QH, best, record) -> float:
    """What ``sweep_circles`` does, vectorised along each circle."""
    jump, edges, vertices = over - under, 0.0, 0.0
    for i in range(len(normals)):
        plane, order, angles, before, e, v = circle_events(normals, i)
        edges, vertices = edges + e, vertices + v
        start = np.where(before[:, None] > 0, over[order], under[order])
        side = np.concatenate([-before, before])
        j = np.concatenate([order, order])
        states = start.sum(axis=0) + np.cumsum(side[:, None] * jump[j], axis=0)
        ends = np.concatenate([angles, angles + np.pi])
        open_ = ~_bounded(states + over[i], record[0], M.shape[1])
        for k in np.flatnonzero(open_):
            nxt = (k + 1) % len(j)
            walls = np.stack(
                [
                    normals[i],
                    side[k] * normals[j[k]],
                    -side[nxt] * normals[j[nxt]],
                ]
            )
            examine(
                states[k],
                over[i],
                plane,
                ends[[k, nxt]],
                walls,
                G,
                M,
                QH,
                best,
                record,
            )
    return round(2 + edges - vertices)


def _bounded(states, value: float, K: int) -> np.ndarray:
    """Three positive pivots of ``value * B - A``, pattern by pattern."""
    factors = states[:, :-6].reshape(len(states), -1, 3)
    C, E = factors[:, :K], factors[:, K:]
    A = np.einsum("aki,akj->aij", C, C)
    F = states[:, -6:][:, [[0, 1, 2], [1, 3, 4], [2, 4, 5]]]
    B = F - np.einsum("aki,akj->aij", E, E)
    W = value * (1 + CERTIFIED_RELATIVE) * B - A
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        second = W[:, 1, 1] - W[:, 0, 1] ** 2 / W[:, 0, 0]
        mixed = W[:, 1, 2] - W[:, 0, 1] * W[:, 0, 2] / W[:, 0, 0]
        third = W[:, 2, 2] - W[:, 0, 2] ** 2 / W[:, 0, 0] - mixed**2 / second
        return (W[:, 0, 0] > 0) & (second > 0) & (third > 0)


def single_target_gain(Phi, target, QH=None) -> float:
    r"""Maximal gain for one target, by convex problems (algorithm A5).

    With ``K = 1`` the gain :math:`\langle m,v\rangle^2/\|v\|^2` on the cone
    of a pattern is the squared length of the projection of :math:`m` or
    :math:`-m` onto the cone of the :math:`v=(I-\Pi_H)S\Phi\theta`:
    nonnegative least squares on its extreme rays. An independent check of
    :func:`maximal_gain_neuron` for small ``n``.

    Parameters
    ----------
    Phi : array_like, shape (n, m)
        Of rank ``r``, small.
    target : array_like, shape (n,)
        Orthogonal to ``QH``.
    QH : array_like, shape (n, p), optional

    Returns
    -------
    float

    Raises
    ------
    ValueError
        As :func:`~helpers.spectral_alignment.neurons.check_uncovered`.

    Notes
    -----
    :math:`O(n^{r-1})` patterns, each with its part of the
    :math:`O(n^{r-1})` rays.

    Source: ours; nonnegative least squares by SciPy.

    Examples
    --------
    >>> Phi = np.array([[-1.0, 1.0], [0.0, 1.0], [1.0, 1.0]])
    >>> round(single_target_gain(Phi, np.array([0.0, 0.0, -2.0])), 12)
    4.0
    """
    G, _ = reduced_features(Phi)
    target = finite_vector(target, "target", len(G))
    M, QH = check_uncovered(target[:, None], QH, G.shape[0])
    values = G @ _rays(G).T
    size = np.abs(values).max(axis=0)
    best = 0.0
    for S in enumerate_gating_patterns(G):
        signed = np.where(S, 1.0, -1.0)[:, None] * values
        rays = values[:, (signed >= -CONE_SLACK * size).all(axis=0)]
        gated = rays * S[:, None]
        V = complement(QH, gated)
        new = np.linalg.norm(V, axis=0)
        # a ray inside the span of H is rounding noise outside of it
        kept = new > np.sqrt(RANK_RELATIVE) * np.linalg.norm(rays, axis=0)
        if kept.any():
            best = max(best, _projection(V[:, kept] / new[kept], M[:, 0]))
    return best


def _rays(G) -> np.ndarray:
    """Directions in which enough hyperplanes meet, both ways."""
    first, sign = parallel_classes(G)
    normals = G[np.unique(first[sign != 0])]
    normals = normals / np.linalg.norm(normals, axis=1)[:, None]
    rank = G.shape[1]
    if rank == 1:
        return np.array([[1.0], [-1.0]])
    rays = []
    for chosen in combinations(range(len(normals)), rank - 1):
        line = null_space(normals[list(chosen)], rcond=CONE_SLACK)
        if line.shape[1] == 1:
            rays += [line[:, 0], -line[:, 0]]
    return np.array(rays)


def _projection(V, target) -> float:
    """Largest squared length of the projection of +-target on a cone."""
    best = 0.0
    # the cone may hold a line: then weights are not unique, and a tiny
    # penalty keeps the solver from huge ones that cancel
    ridge = np.sqrt(ROUNDING) * np.eye(V.shape[1])
    for sign in (1.0, -1.0):
        weights, _ = nnls(
            np.vstack([V, ridge]),
            np.append(sign * target, np.zeros(V.shape[1])),
        )
        v = V @ weights
        if v @ v > 0:
            best = max(best, float((target @ v) ** 2 / (v @ v)))
    return best
