r"""All solutions of quadratic systems, by continuation.

:math:`N` quadrics in :math:`N` unknowns have at most :math:`2^N` isolated
complex solutions. Each is the end of a path that starts at a solution of
:math:`z_i^2=z_0^2`. Paths are followed in projective space, on a random patch
:math:`a\cdot z=1`, where those that leave for infinity stay bounded; all
systems and paths are one batch.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from helpers.core.checks import check_finite
from helpers.core.linalg import solve_each
from helpers.core.randomness import Seed, as_generator
from helpers.core.tolerances import (
    FINITE_SHARE,
    PATH_NEWTON,
    REAL_ROOT,
    SAME_SOLUTION,
    SMALLEST_STEP,
)

LARGEST_SYSTEM = 10
UNITS = (1e2, 1e4)
"""Units of the unknowns in further tries."""


class Endpoints(NamedTuple):
    """Ends of all paths.

    ``z (K, 2^N, N + 1)`` complex, scaled to norm one, and ``failed
    (K, 2^N)``: paths whose step became too small.
    """

    z: np.ndarray
    failed: np.ndarray


class SolutionCounts(NamedTuple):
    """Finite complex and real solutions of each system, ``(K,)``, and
    whether a path was lost."""

    complex: np.ndarray
    real: np.ndarray
    lost: np.ndarray


def _forms(Q) -> np.ndarray:
    (Q,) = check_finite(Q=Q)
    N = Q.shape[1] if Q.ndim == 4 else 0
    if Q.ndim != 4 or Q.shape[2:] != (N + 1, N + 1) or not 1 <= N:
        raise ValueError(
            f"Q must have shape (K, N, N + 1, N + 1), got {Q.shape}"
        )
    if N > LARGEST_SYSTEM:
        raise ValueError(
            f"Q has N = {N} equations, 2^N paths each; at most "
            f"{LARGEST_SYSTEM} are followed"
        )
    if not np.array_equal(Q, np.swapaxes(Q, -1, -2)):
        raise ValueError("Q must be symmetric in its last two axes")
    return Q


class _Paths:
    """Value and derivatives of the homotopy on a batch of paths."""

    def __init__(self, Q, gamma, patch):
        self.Q, self.gamma, self.patch = Q, gamma, patch

    def jacobian(self, z, t, k):
        P, M = z.shape
        J = np.empty((P, M, M), dtype=complex)
        J[:, :-1] = (
            2 * t[:, None, None] * np.einsum("pnij,pj->pni", self.Q[k], z)
        )
        start = 2 * (1 - t)[:, None] * self.gamma[k]
        i = np.arange(M - 1)
        J[:, i, i + 1] += start * z[:, 1:]
        J[:, i, 0] -= start * z[:, :1]
        J[:, -1] = self.patch[k]
        return J

    def parts(self, z, k):
        squares = self.gamma[k] * (z[:, 1:] ** 2 - z[:, :1] ** 2)
        forms = np.einsum("pi,pnij,pj->pn", z, self.Q[k], z)
        return squares, forms

    def value(self, z, t, k):
        squares, forms = self.parts(z, k)
        t = t[:, None]
        on_patch = np.einsum("pi,pi->p", self.patch[k], z) - 1
        return np.concatenate(
            [(1 - t) * squares + t * forms, on_patch[:, None]], axis=1
        )

    def velocity(self, z, t, k):
        squares, forms = self.parts(z, k)
        still = np.zeros((len(z), 1))
        moved = np.concatenate([forms - squares, still], axis=1)
        return -solve_each(self.jacobian(z, t, k), moved)


def total_degree_homotopy(Q, rng: Seed, first: float = 0.05) -> Endpoints:
    r"""Follow all :math:`2^N` paths of each system from ``t = 0`` to 1.

    Fourth-order prediction, three Newton corrections, and a step of its own
    for each path: halved when Newton does not settle, grown after success.

    Parameters
    ----------
    Q : array_like (K, N, N + 1, N + 1)
        Symmetric forms, the homogenising variable first.
    rng : seed or Generator
        Of the random constants and patches.
    first : float
        First step, in (0, 1).

    Returns
    -------
    Endpoints

    Raises
    ------
    ValueError
        If ``Q`` does not have this form or is too large, or ``first`` is out
        of range.

    Notes
    -----
    Cost: some hundred solves of size ``N + 1`` a path. Paths to singular
    ends at infinity may fail, about one in a hundred for recurrent systems.
    Source: ours; the method is standard (Sommese and Wampler).

    Examples
    --------
    Two circles of radius 1 around (0, 0) and (1, 0): two finite solutions,
    two at infinity.

    >>> one = np.diag([-1.0, 1, 1])
    >>> two = np.array([[0.0, -1, 0], [-1, 1, 0], [0, 0, 1]])
    >>> count_solutions([[one, two]], 0).real
    array([2])
    """
    Q = _forms(Q)
    if not 0 < first < 1:
        raise ValueError(f"first must lie in (0, 1), got {first}")
    K, N = Q.shape[:2]
    rng = as_generator(rng)
    gamma = np.exp(2j * np.pi * rng.random((K, N)))
    patch = rng.normal(size=(K, N + 1)) + 1j * rng.normal(size=(K, N + 1))
    scale = np.abs(Q).max(axis=(2, 3), keepdims=True)
    paths = _Paths(Q / np.where(scale > 0, scale, 1), gamma, patch)
    signs = np.array(np.meshgrid(*[[1.0, -1.0]] * N, indexing="ij"))
    begin = np.concatenate([np.ones((1, 2**N)), signs.reshape(N, -1)]).T
    k = np.repeat(np.arange(K), 2**N)
    z = np.tile(begin, (K, 1)).astype(complex)
    z /= np.einsum("pi,pi->p", patch[k], z)[:, None]
    t, h = np.zeros(len(z)), np.full(len(z), float(first))
    failed = np.zeros(len(z), dtype=bool)
    going = np.arange(len(z))
    while going.size:
        step = np.minimum(h[going], 1 - t[going])
        moved, good = _advance(paths, z[going], t[going], step, k[going])
        won = going[good]
        z[won], t[won] = moved[good], t[won] + step[good]
        t[won[1 - t[won] < SMALLEST_STEP]] = 1.0
        h[won] *= 1.6
        h[going[~good]] = step[~good] / 2
        failed[going[(~good) & (step / 2 < SMALLEST_STEP)]] = True
        going = going[(t[going] < 1) & ~failed[going]]
    z /= np.linalg.norm(z, axis=1, keepdims=True)
    return Endpoints(z.reshape(K, 2**N, N + 1), failed.reshape(K, 2**N))


def _advance(paths, z, t, h, k):
    half, whole = h[:, None] / 2, h[:, None]
    with np.errstate(all="ignore"):
        a = paths.velocity(z, t, k)
        b = paths.velocity(z + half * a, t + h / 2, k)
        c = paths.velocity(z + half * b, t + h / 2, k)
        d = paths.velocity(z + whole * c, t + h, k)
        moved = z + whole * (a + 2 * b + 2 * c + d) / 6
        for _ in range(3):
            J = paths.jacobian(moved, t + h, k)
            change = solve_each(J, paths.value(moved, t + h, k))
            moved = moved - change
        small = np.linalg.norm(change, axis=1) <= PATH_NEWTON * np.linalg.norm(
            moved, axis=1
        )
    return moved, small & np.isfinite(moved).all(axis=1)


def count_solutions(Q, rng: Seed) -> SolutionCounts:
    r"""Numbers of finite complex and of real solutions.

    Parameters
    ----------
    Q : array_like (K, N, N + 1, N + 1)
        As :func:`total_degree_homotopy`.
    rng : seed or Generator

    Returns
    -------
    SolutionCounts
        Ends with a vanishing homogenising variable are at infinity; ends that
        agree are one solution. Systems that lost a path and have no real
        solution are tried again, with unknowns measured in ``UNITS``: what is lost is often a finite solution that is large.

    Raises
    ------
    ValueError
        As :func:`total_degree_homotopy`.

    Notes
    -----
    Source: ours.

    Examples
    --------
    x^2 = 4 and x^2 = -4:

    >>> Q = [[[[-4.0, 0], [0, 1]]], [[[4.0, 0], [0, 1]]]]
    >>> counts = count_solutions(Q, 0)
    >>> counts.complex.tolist(), counts.real.tolist()
    ([2, 2], [2, 0])
    """
    Q, rng = _forms(Q), as_generator(rng)
    found, lost = _distinct_ends(Q, rng)
    for unit in UNITS:
        again = np.flatnonzero(lost & (_real(found) == 0))
        if not again.size:
            break
        wide = np.r_[1.0, np.full(Q.shape[1], unit)]
        scaled = Q[again] * wide[:, None] * wide
        more, lost[again] = _distinct_ends(scaled, rng)
        for i, ends in zip(again, more, strict=True):
            found[i] = _without_copies(found[i] + [unit * w for w in ends])
    return SolutionCounts(
        np.array([len(ends) for ends in found]), _real(found), lost
    )


def _distinct_ends(Q, rng) -> tuple[list, np.ndarray]:
    """Finite ends of each system, and whether a path was lost."""
    z, failed = total_degree_homotopy(Q, rng)
    finite = (np.abs(z[..., 0]) > FINITE_SHARE) & ~failed
    ends = [
        _without_copies(_polish(*one, keep))
        for *one, keep in zip(Q, z, finite, strict=True)
    ]
    return ends, failed.any(axis=1)


def _without_copies(ends) -> list:
    kept: list = []
    for one in ends:
        size = 1 + np.abs(one).max()
        if all(
            np.abs(one - other).max() > SAME_SOLUTION * size for other in kept
        ):
            kept.append(one)
    return kept


def _real(found) -> np.ndarray:
    return np.array(
        [
            sum(
                np.abs(w.imag).max() <= REAL_ROOT * (1 + np.abs(w).max())
                for w in ends
            )
            for ends in found
        ]
    )


def _polish(forms, ends, keep) -> np.ndarray:
    """Affine Newton from the kept ends of paths; ``(P, N)``."""
    ends = ends[keep]
    w = ends[:, 1:] / ends[:, :1]
    for _ in range(3):
        z = np.concatenate([np.ones((len(w), 1)), w], axis=1)
        half = np.einsum("nij,pj->pni", forms, z)
        value = np.einsum("pni,pi->pn", half, z)
        change = solve_each(2 * half[:, :, 1:], value)
        w = np.where(np.isfinite(change), w - change, w)
    return w
