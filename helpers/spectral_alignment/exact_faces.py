r"""Exact neuron search face by face, for features of rank at most four.

The arrangement of the samples' hyperplanes is met along planes: each choice
of ``r - 2`` hyperplanes leaves a plane, which the others cut into arcs; the
faces around an arc differ in the signs of the samples that vanish on it. All
faces but rays are found so, and rays are the ends of the arcs. Unlike the
sweep, no sum is carried from one face to the next.
"""

from __future__ import annotations

from itertools import combinations
from typing import NamedTuple

import numpy as np
from scipy.linalg import null_space

from helpers.core.tolerances import (
    ANGLE_TIE,
    CERTIFIED_RELATIVE,
    CONE_SLACK,
    COVERED_RELATIVE,
    PARALLEL_ROWS,
)
from helpers.spectral_alignment.exact_search_compiled import neuron_gain
from helpers.spectral_alignment.gating_patterns import parallel_classes

_SLACK = 1 + CERTIFIED_RELATIVE


class _Problem(NamedTuple):
    """What every face needs: the sample, and products of its rows."""

    G: np.ndarray
    M: np.ndarray
    QH: np.ndarray
    unit: np.ndarray
    products: np.ndarray


def search_faces(G, M, QH, best, record) -> int:
    r"""Examine every face of the arrangement; leave the best in ``best``.

    Parameters
    ----------
    G : ndarray, shape (n, r)
        Features of full rank ``r <= 4``.
    M, QH : ndarray, shapes (n, K), (n, p)
    best : ndarray, shape (r,)
        The best neuron so far; replaced if beaten.
    record : ndarray, shape (4,)
        Its gain, the largest relaxed bound seen, the number of pencils, and
        of those that could beat the gain; updated.

    Returns
    -------
    int
        Number of gating patterns.

    Notes
    -----
    :math:`O(n^{r-2})` planes with :math:`O(n)` arcs each and
    :math:`3^{r-2}` faces around each. Nothing is checked here; use
    :func:`helpers.spectral_alignment.exact_search.maximal_gain_neuron`.

    Source: ours (algorithm A2).

    Examples
    --------
    >>> G, best, record = np.eye(2), np.zeros(2), np.zeros(4)
    >>> search_faces(G, np.eye(2, 1), np.zeros((2, 0)), best, record)
    4
    >>> best.tolist(), record[0].item()
    ([1.0, 0.0], 1.0)
    """
    n, rank = G.shape
    size = np.linalg.norm(G, axis=1)
    first, sign = parallel_classes(G)
    unit = np.where(sign[:, None] != 0, G, 0.0)
    unit = unit / np.where(sign != 0, size, 1.0)[:, None]
    products = [X[:, :, None] * G[:, None] for X in (M, QH, G)]
    flat = np.concatenate([x.reshape(n, -1) for x in products], axis=1)
    problem = _Problem(G, M, QH, unit, flat)
    if rank == 1:
        _offer(np.array([[1.0], [-1.0]]), problem, best, record)
        return 2
    normals = unit[np.unique(first[sign != 0])]
    patterns: set[bytes] = set()
    for chosen in combinations(range(len(normals)), rank - 2):
        plane = np.eye(2)
        if chosen:
            plane = null_space(normals[list(chosen)], rcond=CONE_SLACK)
        if plane.shape[1] == 2:
            _search_plane(plane, problem, best, record, patterns)
    return len(patterns)


def _offer(directions, problem: _Problem, best, record) -> None:
    G, M, QH = problem.G, problem.M, problem.QH
    for eta in np.ascontiguousarray(directions):
        gain = neuron_gain(eta, G, M, QH)
        if gain > record[0]:
            record[0], best[:] = gain, eta


def _crossings(flat) -> np.ndarray:
    """Angles at which lines of the plane are met, over the full circle."""
    angles = np.arctan2(flat[:, 0], -flat[:, 1]) % np.pi
    angles = np.sort(angles)
    angles = angles[np.append(True, np.diff(angles) > ANGLE_TIE)]
    if angles.size > 1 and angles[0] + np.pi - angles[-1] <= ANGLE_TIE:
        angles = angles[:-1]
    return np.concatenate([angles, angles + np.pi])


def _circle(angles) -> np.ndarray:
    return np.stack([np.cos(angles), np.sin(angles)])


def _middles(angles) -> np.ndarray:
    return (angles + np.append(angles[1:], angles[0] + 2 * np.pi)) / 2


def _search_plane(plane, problem, best, record, patterns) -> None:
    flat = problem.unit @ plane
    size = np.linalg.norm(flat, axis=1)
    nonzero = problem.unit.any(axis=1)
    crossing = nonzero & (size > PARALLEL_ROWS)
    angles = _crossings(flat[crossing])
    _offer_rays((plane @ _circle(angles)).T, problem, best, record)
    arcs = (flat @ _circle(_middles(angles))).T > 0
    arcs[:, ~crossing] = False
    vanishing = np.flatnonzero(nonzero & ~crossing)
    for signs, span in _faces_around(plane, problem.unit[vanishing]):
        gates = arcs.copy()
        gates[:, vanishing] = signs > 0
        if span.shape[1] == len(plane):
            packed = np.packbits(gates, axis=1)
            patterns.update(row.tobytes() for row in packed)
        _search_faces_of(gates, span, problem, best, record)


def _faces_around(plane, rows):
    """Signs of the samples that vanish on the plane, and the face's span."""
    rank = len(plane)
    if rank == 2:
        yield np.zeros(0), plane
        return
    normal = null_space(plane.T)
    local = rows @ normal
    yield np.zeros(len(rows)), plane
    if rank == 3:
        for side in (1.0, -1.0):
            yield np.sign(side * local[:, 0]), np.eye(3)
        return
    angles = _crossings(local)
    for direction in _circle(_middles(angles)).T:
        yield np.sign(local @ direction), np.eye(rank)
    for direction in _circle(angles).T:
        height = local @ direction
        height[np.abs(height) <= PARALLEL_ROWS] = 0.0
        yield np.sign(height), np.column_stack([plane, normal @ direction])


def _offer_rays(rays, problem, best, record) -> None:
    h = np.maximum(problem.G @ rays.T, 0.0)
    rest = h - problem.QH @ (problem.QH.T @ h)
    mass = np.sum(rest**2, axis=0)
    new = mass > COVERED_RELATIVE * np.sum(h**2, axis=0)
    gains = np.sum((problem.M.T @ rest) ** 2, axis=0)
    gains = np.where(new, gains / np.where(new, mass, 1.0), 0.0)
    top = np.argmax(gains)
    if gains[top] > record[0]:
        _offer(rays[top : top + 1], problem, best, record)


def _search_faces_of(gates, span, problem, best, record) -> None:
    """All faces with one span: relaxed maxima, then the neurons there."""
    bounds, directions = _relaxed(gates, span, problem)
    record[2] += bounds.size
    if span.shape[1] == len(span):
        record[1] = max(record[1], bounds.max(initial=0.0))
    for k in np.argsort(-bounds):
        if bounds[k] <= _SLACK * record[0]:
            break
        record[3] += 1
        eta = span @ directions[k]
        _offer(np.stack([eta, -eta]), problem, best, record)


def _relaxed(gates, span, problem) -> tuple[np.ndarray, np.ndarray]:
    count, rank = len(gates), span.shape[0]
    sums = (gates @ problem.products).reshape(count, -1, rank)
    K, p = problem.M.shape[1], problem.QH.shape[1]
    C, E = sums[:, :K] @ span, sums[:, K : K + p] @ span
    F = span.T @ sums[:, K + p :] @ span
    trace = np.trace(sums[:, K + p :], axis1=1, axis2=2)
    beta, V = np.linalg.eigh(F - E.transpose(0, 2, 1) @ E)
    kept = beta > COVERED_RELATIVE * trace[:, None]
    white = (
        V
        * np.where(kept, 1 / np.sqrt(np.where(kept, beta, 1.0)), 0.0)[:, None]
    )
    half = C @ white
    alpha, Y = np.linalg.eigh(half.transpose(0, 2, 1) @ half)
    return alpha[:, -1], (white @ Y[:, :, -1:])[:, :, 0]
