r"""The largest Rayleigh quotient on a small cone, face by face.

A direct transcription of the face theorem for cones with as many rays as
dimensions. For reading and for checks; the searches of
:mod:`helpers.spectral_alignment.exact_search` do the same for all cones of an
arrangement at once.
"""

from __future__ import annotations

from itertools import combinations
from typing import NamedTuple

import numpy as np
from scipy.linalg import eigh

from helpers.core.tolerances import (
    CONE_SLACK,
    COVERED_RELATIVE,
    PARALLEL_ROWS,
    SYMMETRY,
)
from helpers.spectral_alignment.neurons import gating_pencil

__all__ = [
    "ConeMaximum",
    "extreme_rays",
    "pattern_maximum",
    "simplicial_cone_maximum",
]


class ConeMaximum(NamedTuple):
    """What :func:`simplicial_cone_maximum` returns."""

    value: float
    point: np.ndarray
    face: tuple[int, ...]


def simplicial_cone_maximum(A, B, rays, dimensions=None) -> ConeMaximum:
    r"""Maximise :math:`x^{\mathsf T}Ax/x^{\mathsf T}Bx` over ``rays @ w``.

    The maximum over :math:`w\ge0`. Every set of rays spans a face; a face
    counts if :math:`B` is positive definite on its span and the top
    eigenvector of the pencil there has no two signs in :math:`w`.

    Parameters
    ----------
    A, B : array_like, shape (r, r)
        Symmetric, positive semidefinite; the kernel of ``B`` lies in that of
        ``A``, which is not checked.
    rays : array_like, shape (r, k)
        Independent columns, so that the cone is pointed.
    dimensions : iterable of int, optional
        Only faces of these dimensions, to see what each is for.

    Returns
    -------
    ConeMaximum
        ``value``; a ``point`` of the cone (r,) where it is attained; the
        rays of its ``face``. Zero, the origin and no rays if no face counts.

    Raises
    ------
    ValueError
        If shapes disagree, an input is not finite or not symmetric, or the
        rays are dependent.

    Notes
    -----
    :math:`2^k` eigenproblems.

    Source: ours (C7).

    Examples
    --------
    In the quadrant the top eigenvector (1, -1) of this form is forbidden:

    >>> A = [[1.0, -1.0], [-1.0, 1.0]]
    >>> found = simplicial_cone_maximum(A, np.eye(2), np.eye(2))
    >>> found.value, found.face
    (1.0, (0,))
    """
    A, B, rays = (np.asarray(x, dtype=float) for x in (A, B, rays))
    if rays.ndim != 2 or rays.size == 0 or not np.isfinite(rays).all():
        raise ValueError(
            f"rays must be a finite matrix, got shape {rays.shape}"
        )
    for x, name in ((A, "A"), (B, "B")):
        if x.shape != (len(rays), len(rays)):
            raise ValueError(
                f"{name} must have shape {(len(rays),) * 2}, got {x.shape}"
            )
        if not np.isfinite(x).all():
            raise ValueError(f"{name} must be finite")
        if np.abs(x - x.T).max() > SYMMETRY * np.abs(x).max():
            raise ValueError(f"{name} must be symmetric")
    if np.linalg.matrix_rank(rays) < rays.shape[1]:
        raise ValueError("rays must have independent columns")
    best = ConeMaximum(0.0, np.zeros(len(rays)), ())
    sizes = range(1, rays.shape[1] + 1) if dimensions is None else dimensions
    for size in sizes:
        for face in combinations(range(rays.shape[1]), size):
            best = max(best, _on_face(A, B, rays, face), key=lambda x: x.value)
    return best


def _on_face(A, B, rays, face) -> ConeMaximum:
    F = rays[:, face]
    below = F.T @ B @ F
    nothing = ConeMaximum(0.0, np.zeros(len(rays)), ())
    if eigh(below, eigvals_only=True)[0] <= COVERED_RELATIVE * np.trace(B):
        return nothing
    values, vectors = eigh(F.T @ A @ F, below)
    w = vectors[:, -1]
    w = w if w.sum() > 0 else -w
    if w.min() < -CONE_SLACK * w.max():
        return nothing
    return ConeMaximum(float(values[-1]), F @ np.maximum(w, 0.0), face)


def extreme_rays(Phi, S) -> np.ndarray:
    r"""Rays that generate the cone of a gating pattern, in rank three.

    :math:`C_S=\{\theta:(2S-I)\Phi\theta\ge0\}`; its extreme rays are those
    crossings of two samples' planes that satisfy all sign conditions.

    Parameters
    ----------
    Phi : array_like, shape (n, 3)
        Of rank 3, so that the cone contains no line.
    S : array_like of bool or 0/1, shape (n,)

    Returns
    -------
    ndarray, shape (3, k)
        Unit vectors, no two of them equal; ``k = 0`` if the cone is the
        origin. Crossings on the edge of two cells belong to both.

    Raises
    ------
    ValueError
        If ``Phi`` has another shape or rank, or ``S`` is no pattern.

    Notes
    -----
    :math:`O(n^3)`.

    Source: ours.

    Examples
    --------
    >>> extreme_rays(np.eye(3), [1, 1, 0]).T.astype(int).tolist()
    [[0, 0, -1], [0, 1, 0], [1, 0, 0]]
    """
    Phi, S = np.asarray(Phi, dtype=float), np.asarray(S)
    if Phi.ndim != 2 or Phi.shape[1] != 3 or not np.isfinite(Phi).all():
        raise ValueError(
            f"Phi must be finite, of shape (n, 3), got shape {Phi.shape}"
        )
    if np.linalg.matrix_rank(Phi) < 3:
        raise ValueError("Phi must have rank 3")
    if S.shape != (len(Phi),) or not np.isin(S, (0, 1)).all():
        raise ValueError(f"S must hold one truth value a sample, got {S!r}")
    size = np.linalg.norm(Phi, axis=1)
    unit = Phi / np.where(size > 0, size, 1.0)[:, None]
    i, j = np.array(list(combinations(range(len(unit)), 2))).T
    rays = np.cross(unit[i], unit[j])
    sine = np.linalg.norm(rays, axis=1)
    rays = rays[sine > PARALLEL_ROWS] / sine[sine > PARALLEL_ROWS, None]
    rays = np.concatenate([rays, -rays])
    signed = np.where(S, 1, -1) * (rays @ unit.T)
    rays = rays[(signed > -CONE_SLACK).all(axis=1)]
    kept: list[np.ndarray] = []
    for ray in rays:
        if all(np.abs(ray - old).max() > PARALLEL_ROWS for old in kept):
            kept.append(ray)
    return np.array(sorted(kept, key=tuple)).reshape(-1, 3).T


def pattern_maximum(Phi, S, M, QH=None) -> float:
    r"""Largest gain of the neurons of one gating pattern, in rank three.

    Every point of the cone is a nonnegative combination of three of its
    rays (Carathéodory): the largest of :func:`simplicial_cone_maximum` over
    all independent triples.

    Parameters
    ----------
    Phi : array_like, shape (n, 3)
    S : array_like of bool or 0/1, shape (n,)
    M : array_like, shape (n, K)
    QH : array_like, shape (n, p), optional

    Returns
    -------
    float
        0 if the pattern offers nothing outside the span of ``H``.

    Raises
    ------
    ValueError
        As :func:`extreme_rays` and
        :func:`~helpers.spectral_alignment.neurons.gating_pencil`.

    Notes
    -----
    Source: ours (C7).

    Examples
    --------
    >>> round(pattern_maximum(np.eye(3), [1, 1, 0], [[0.6], [-0.8], [0]]), 9)
    0.64
    """
    rays = extreme_rays(Phi, S)
    A, B = gating_pencil(Phi, S, M, QH)
    best = 0.0
    for chosen in combinations(range(rays.shape[1]), 3):
        three = rays[:, list(chosen)]
        if np.linalg.matrix_rank(three) == 3:
            best = max(best, simplicial_cone_maximum(A, B, three).value)
    return best
