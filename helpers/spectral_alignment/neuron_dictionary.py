r"""Unit neurons by the thousand: staircases, and pricing against a target.

Variation norms are linear programmes whose columns are all unit neurons of a
sample. They are solved with a few hundred of them, and this module supplies
those: one staircase, which spans everything that neurons can span, and for
given targets ``Y`` the best neurons of many faces of the arrangement of
:mod:`helpers.spectral_alignment.exact_search`. What it offers is good, never
certified; certificates come from
:func:`~helpers.spectral_alignment.exact_search.maximal_gain_neuron`.

Features ``Phi``, shape ``(n, m)``, must hold the constant in their span (the
bias), and have rank at most 3 where faces are enumerated.
"""

from __future__ import annotations

import numpy as np
from scipy.linalg import null_space

from helpers.core.linalg import project
from helpers.core.tolerances import (
    ANGLE_TIE,
    COVERED_RELATIVE,
    RANK_RELATIVE,
    ROUNDING,
    SAME_ATOM,
)
from helpers.spectral_alignment.exact_search_compiled import circle_events
from helpers.spectral_alignment.gating_patterns import (
    enumerate_gating_patterns,
    parallel_classes,
)
from helpers.spectral_alignment.neurons import reduced_features
from helpers.spectral_alignment.partitions import (
    partition_basis,
    sample_partition,
    separating_direction,
    staircase_neurons,
)

__all__ = ["NeuronFaces", "class_basis", "staircase"]


def class_basis(Phi) -> np.ndarray:
    r"""Orthonormal basis of :math:`V_{\mathcal P}`, all that neurons span.

    Samples with equal rows form a class; the columns are the indicators of
    the classes, scaled to length one.

    Parameters
    ----------
    Phi : array_like, shape (n, m)
        The constant must lie in its column space.

    Returns
    -------
    ndarray, shape (n, q)
        Classes in the order of their first sample.

    Raises
    ------
    ValueError
        If ``Phi`` is not a finite matrix, is zero, or lacks the constant.

    Notes
    -----
    Rows count as equal if the whitened rows
    (:func:`~helpers.spectral_alignment.neurons.reduced_features`) do for
    :func:`~helpers.spectral_alignment.partitions.sample_partition`.

    Source: the spectral-alignment paper, Theorem 5.1.

    Examples
    --------
    >>> class_basis([[0.0, 1.0], [2.0, 1.0], [0.0, 1.0]]).round(3)
    array([[0.707, 0.   ],
           [0.   , 1.   ],
           [0.707, 0.   ]])
    """
    G, _ = reduced_features(Phi)
    _bias(G)
    return partition_basis(sample_partition(G))


def _bias(G) -> np.ndarray:
    """Weights of the constant in orthonormal features."""
    one = np.ones(len(G))
    off = np.linalg.norm(one - project(G, one))
    if off > np.sqrt(len(G)) * RANK_RELATIVE:
        raise ValueError(
            "Phi must hold the constant in its column space, as [H, 1] does; "
            f"the constant's distance to it is {off:.3g}"
        )
    return G.T @ one


def staircase(Phi, rng=0) -> tuple[np.ndarray, np.ndarray]:
    r"""Neurons of one direction that span all of :math:`V_{\mathcal P}`.

    Those of
    :func:`~helpers.spectral_alignment.partitions.staircase_neurons`, as unit
    neurons of ``Phi``.

    Parameters
    ----------
    Phi : array_like, shape (n, m)
        The constant must lie in its column space.
    rng : int, SeedSequence or numpy.random.Generator
        For the direction, as
        :func:`~helpers.spectral_alignment.partitions.separating_direction`.

    Returns
    -------
    theta : ndarray, shape (m, q)
        The neurons, scaled so that their values have norm 1.
    atoms : ndarray, shape (n, q)
        Their values.

    Raises
    ------
    ValueError
        As :func:`class_basis`.

    Notes
    -----
    The condition number grows quickly with ``q``.

    Source: the spectral-alignment paper, Theorem 5.1 (b).

    Examples
    --------
    >>> theta, atoms = staircase([[-1.0, 1.0], [0.0, 1.0], [1.0, 1.0]])
    >>> int(np.linalg.matrix_rank(atoms))
    3
    """
    G, T = reduced_features(Phi)
    bias = _bias(G)
    w = separating_direction(G, rng)
    affine = staircase_neurons(G, w)
    eta = affine[:-1] + bias[:, None] * affine[-1]
    atoms = np.maximum(G @ eta, 0.0)
    size = np.linalg.norm(atoms, axis=0)
    return T @ (eta / size), atoms / size


class NeuronFaces:
    r"""Faces of a sample's arrangement, ready to be priced many times.

    Parameters
    ----------
    Phi : array_like, shape (n, m)
        Of rank at most 3.
    QH : array_like, shape (n, p)
        Orthonormal basis of the features at hand.

    Raises
    ------
    ValueError
        If the rank is above 3 or ``Phi`` is not a finite nonzero matrix.

    Notes
    -----
    Patterns and the denominators of their gains do not depend on the target
    and are kept: :math:`O(n^3)` bytes, 16 MB for ``n = 200``.

    Source: ours.

    Examples
    --------
    >>> Phi = np.array([[-1.0, 1.0], [0.0, 1.0], [1.0, 1.0]])
    >>> faces = NeuronFaces(Phi, np.zeros((3, 0)))
    >>> theta, atoms = faces.price(np.array([[0.0], [0.0], [2.0]]), 1.0)
    >>> atoms[:, 0].round(12).tolist()
    [0.0, 0.0, 1.0]
    """

    def __init__(self, Phi, QH):
        self.G, self.T = reduced_features(Phi)
        self.QH = np.asarray(QH, dtype=float)
        rank = self.G.shape[1]
        if rank > 3:
            raise ValueError(f"Phi must have rank at most 3, got {rank}")
        families = _circles(self.G) if rank == 3 else _flat_faces(self.G)
        self.families = [self._whitened(*family) for family in families]
        rays = [family[3] for family in self.families]
        self.rays = np.concatenate(rays)
        self.ray_atoms, kept = self._atoms(self.rays)
        self.rays = self.rays[kept]
        owner = np.repeat(np.arange(len(rays)), [len(r) for r in rays])
        self.ray_owner = owner[kept]

    def _whitened(self, gates, spans, rays):
        """Per span: gates and the inverse roots of the denominators."""
        G, QH = self.G, self.QH
        r = G.shape[1]
        grams = (G[:, :, None] * G[:, None]).reshape(len(G), -1)
        cross = (QH[:, :, None] * G[:, None]).reshape(len(G), -1)
        F = (gates @ grams).reshape(len(gates), r, r)
        E = (gates @ cross).reshape(len(gates), QH.shape[1], r)
        B = F - E.transpose(0, 2, 1) @ E
        trace = np.trace(F, axis1=1, axis2=2)
        whites = []
        for span in spans:
            beta, V = np.linalg.eigh(span.T @ B @ span)
            new = beta > COVERED_RELATIVE * trace[:, None]
            root = np.where(new, 1 / np.sqrt(np.where(new, beta, 1.0)), 0.0)
            whites.append(span @ (V * root[:, None]))
        return gates, spans, whites, rays

    def _atoms(self, eta) -> tuple[np.ndarray, np.ndarray]:
        """Unit values outside of H, and which neurons have such values."""
        rest, whole = self._outside(eta)
        mass = np.sum(rest**2, axis=0)
        kept = mass > COVERED_RELATIVE * whole
        return rest[:, kept] / np.sqrt(mass[kept]), np.flatnonzero(kept)

    def _outside(self, eta) -> tuple[np.ndarray, np.ndarray]:
        """Values outside of H, and the squared norm of all values."""
        z = self.G @ eta.T
        # on a face values that are zero but for rounding must not count
        h = np.where(z > ROUNDING * np.abs(z).max(axis=0), z, 0.0)
        rest = h - self.QH @ (self.QH.T @ h)
        rest -= self.QH @ (self.QH.T @ rest)
        return rest, np.sum(h**2, axis=0)

    def crossings(self, stride: int):
        """Every ``stride``-th neuron that is zero on two samples.

        Parameters
        ----------
        stride : int >= 1

        Returns
        -------
        theta, atoms : ndarray, shapes (m, N) and (n, N)
            As :meth:`price`.
        """
        eta = self.rays[::stride]
        scale = np.linalg.norm(self._outside(eta)[0], axis=0)
        return self.T @ (eta.T / scale), self.ray_atoms[:, ::stride]

    def price(self, Y, level: float, most: int = 150):
        r"""Neurons with :math:`\|Y^{\mathsf T}\tilde d\|` above a level.

        :math:`\tilde d` are the values of a neuron outside the span of
        ``H``, scaled to norm one. From each circle of the arrangement come
        its best cell, arc and crossing.

        Parameters
        ----------
        Y : ndarray, shape (n, K)
            Orthogonal to ``QH``.
        level : float
        most : int
            Largest number of neurons returned.

        Returns
        -------
        theta : ndarray, shape (m, N)
            Best first, scaled so that the projected values have norm 1.
        atoms : ndarray, shape (n, N)
            :math:`\tilde d`.

        Notes
        -----
        :math:`O(n^3(K + p))` by matrix products.

        Source: ours.
        """
        r = self.G.shape[1]
        products = (Y[:, :, None] * self.G[:, None]).reshape(len(Y), -1)
        found = []
        for gates, _, whites, _ in self.families:
            C = (gates @ products).reshape(-1, Y.shape[1], r)
            for white in whites:
                found.append(self._best_of(C @ white, white, Y, level))
        values = np.linalg.norm(Y.T @ self.ray_atoms, axis=0)
        for i in range(len(self.families)):
            mine = np.flatnonzero((self.ray_owner == i) & (values > level))
            if mine.size:
                found.append(self.rays[mine[np.argmax(values[mine])]][None])
        eta = np.concatenate(found) if found else np.zeros((0, r))
        return self._distinct(eta, Y, level, most)

    def _best_of(self, half, white, Y, level) -> np.ndarray:
        """Best neurons of one circle, of those whose bound is above."""
        if half.shape[1] == 1:
            top, bound = half[:, 0], np.sum(half[:, 0] ** 2, axis=1)
        else:
            alpha, V = np.linalg.eigh(half.transpose(0, 2, 1) @ half)
            top, bound = V[:, :, -1], alpha[:, -1]
        able = bound > level**2
        if not able.any():
            return np.zeros((0, self.G.shape[1]))
        eta = np.einsum("aij,aj->ai", white[able], top[able])
        eta = np.concatenate([eta, -eta])
        atoms, kept = self._atoms(eta)
        values = np.linalg.norm(Y.T @ atoms, axis=0)
        if values.max(initial=0.0) <= level:
            return eta[:0]
        return eta[kept[np.argmax(values)]][None]

    def _distinct(self, eta, Y, level, most):
        atoms, kept = self._atoms(eta)
        eta = eta[kept]
        values = np.linalg.norm(Y.T @ atoms, axis=0)
        chosen: list[int] = []
        for k in np.argsort(-values):
            if len(chosen) == most or values[k] <= level:
                break
            overlap = np.abs(atoms[:, chosen].T @ atoms[:, k])
            if overlap.max(initial=0.0) < SAME_ATOM:
                chosen.append(k)
        scale = np.linalg.norm(self._outside(eta[chosen])[0], axis=0)
        return self.T @ (eta[chosen].T / scale), atoms[:, chosen]


def _circles(G):
    """Per circle: gates of its arcs, the spans to search, its crossings."""
    first, sign = parallel_classes(G)
    kept, place = np.unique(first[sign != 0], return_inverse=True)
    normals = G[kept] / np.linalg.norm(G[kept], axis=1)[:, None]
    where = np.zeros(len(G), dtype=int)
    where[sign != 0] = place
    for i in range(len(normals)):
        plane, order, angles, before, _, _ = circle_events(normals, i)
        count = len(order)
        passed = np.tri(count)
        half = before * (1 - 2 * passed)
        sides = np.zeros((2 * count, len(normals)))
        sides[:, order] = np.concatenate([half, -half])
        signs = sides[:, where] * sign
        own = sign * (where == i)
        # each crossing once, from the circle of the lower number
        once = angles[order > i]
        ends = np.concatenate([once, once + np.pi])
        rays = (plane @ np.stack([np.cos(ends), np.sin(ends)])).T
        yield signs > 0, [plane], rays
        for side in (1, -1):
            yield signs + side * own > 0, [np.eye(3)], rays[:0]


def _flat_faces(G):
    """The same for rank 1 and 2, in one family."""
    gates = enumerate_gating_patterns(G)
    rank = G.shape[1]
    if rank == 1:
        rays = np.array([[1.0], [-1.0]])
    else:
        size = np.linalg.norm(G, axis=1)
        normals = G[size > ANGLE_TIE * size.max()]
        rays = np.concatenate([null_space(g[None]).T for g in normals])
        rays = np.concatenate([rays, -rays])
    yield gates, [np.eye(rank)], rays
