r"""Student and teacher networks, and where their neurons point.

A network is a matrix of incoming weights, one neuron a row, and a vector of
outgoing weights. Students may come in batches, with leading axes: ``W`` has
shape ``(..., n, d)`` and ``a`` shape ``(..., n)``.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

__all__ = [
    "Student",
    "Teacher",
    "outside_fraction",
    "pack",
    "teacher_cosines",
    "unpack",
]


def _finite(name: str, x: ArrayLike, ndim: int) -> NDArray:
    x = np.asarray(x, dtype=float)
    if x.ndim < ndim or x.size == 0:
        raise ValueError(
            f"{name} must be a non-empty array with at least {ndim} axes, "
            f"got shape {x.shape}"
        )
    if not np.all(np.isfinite(x)):
        raise ValueError(f"{name} must be finite")
    return x


@dataclass(frozen=True, eq=False)
class Teacher:
    r"""The network to imitate, :math:`\sum_j b_j\,\sigma(v_j\cdot x)`.

    Parameters
    ----------
    V : ndarray, shape (k, d)
        Incoming weights, one neuron a row.
    b : ndarray, shape (k,)
        Outgoing weights; ones if not given.

    Raises
    ------
    ValueError
        If shapes do not match or an entry is not finite.

    Examples
    --------
    >>> Teacher.orthonormal(2, 3).V.tolist()
    [[1.0, 0.0, 0.0], [0.0, 1.0, 0.0]]
    """

    V: NDArray
    b: NDArray | None = None

    def __post_init__(self) -> None:
        V = _finite("V", self.V, 2)
        b = np.ones(len(V)) if self.b is None else _finite("b", self.b, 1)
        if V.ndim != 2 or b.shape != (V.shape[0],):
            raise ValueError(
                "V must have shape (k, d) and b shape (k,), got "
                f"{V.shape} and {b.shape}"
            )
        for name, x in (("V", V.copy()), ("b", b.copy())):
            x.setflags(write=False)
            object.__setattr__(self, name, x)

    @classmethod
    def orthonormal(
        cls, k: int, d: int | None = None, *, norm: float = 1.0
    ) -> Teacher:
        """Build the teacher with orthogonal neurons of one norm, all b = 1.

        Parameters
        ----------
        k : int
            Number of neurons, 1 or more.
        d : int, optional
            Input dimension, at least ``k``; ``k + 1`` if not given, as in
            the paper's experiments.
        norm : float, default 1.0
            Common norm of the incoming weights.

        Returns
        -------
        Teacher
        """
        d = k + 1 if d is None else d
        if not 1 <= k <= d:
            raise ValueError(f"need 1 <= k <= d, got k={k} and d={d}")
        if not 0 < norm < np.inf:
            raise ValueError(f"norm must be positive and finite, got {norm}")
        return cls(norm * np.eye(k, d))

    @property
    def k(self) -> int:
        """Number of neurons."""
        return self.V.shape[0]

    @property
    def d(self) -> int:
        """Input dimension."""
        return self.V.shape[1]


@dataclass(frozen=True, eq=False)
class Student:
    r"""A network or a batch of them, :math:`\sum_i a_i\,\sigma(w_i\cdot x)`.

    Parameters
    ----------
    W : ndarray, shape (..., n, d)
        Incoming weights.
    a : ndarray, shape (..., n)
        Outgoing weights.

    Raises
    ------
    ValueError
        If shapes do not match or an entry is not finite.

    Examples
    --------
    >>> Student([[3.0, 4.0]], [2.0]).norms.tolist()
    [5.0]
    """

    W: NDArray
    a: NDArray

    def __post_init__(self) -> None:
        W, a = _finite("W", self.W, 2), _finite("a", self.a, 1)
        if W.shape[:-1] != a.shape:
            raise ValueError(
                "W must have shape (..., n, d) and a shape (..., n), got "
                f"{W.shape} and {a.shape}"
            )
        object.__setattr__(self, "W", W)
        object.__setattr__(self, "a", a)

    @property
    def norms(self) -> NDArray:
        """Norms of the incoming weights, shape (..., n)."""
        return np.linalg.norm(self.W, axis=-1)


def pack(W: ArrayLike, a: ArrayLike) -> NDArray:
    """Write a student as one parameter vector, neuron by neuron.

    Parameters
    ----------
    W : array_like, shape (..., n, d)
    a : array_like, shape (..., n)

    Returns
    -------
    ndarray, shape (..., n * (d + 1))
        ``(w_1, a_1, w_2, a_2, ...)``, the order of the paper.

    Notes
    -----
    Source: the order of the parameters in Simsek et al. (2023), section 2.

    Examples
    --------
    >>> pack([[1.0, 2.0]], [3.0]).tolist()
    [1.0, 2.0, 3.0]
    """
    W, a = np.asarray(W), np.asarray(a)
    both = np.concatenate([W, a[..., None]], axis=-1)
    return both.reshape(*both.shape[:-2], -1)


def unpack(theta: ArrayLike, n: int) -> tuple[NDArray, NDArray]:
    """Undo :func:`pack`.

    Parameters
    ----------
    theta : array_like, shape (..., n * (d + 1))
    n : int
        Number of neurons.

    Returns
    -------
    W : ndarray, shape (..., n, d)
    a : ndarray, shape (..., n)

    Raises
    ------
    ValueError
        If the last axis does not divide into ``n`` neurons.

    Notes
    -----
    Source: as :func:`pack`.

    Examples
    --------
    >>> W, a = unpack([1.0, 2.0, 3.0], 1)
    >>> W.tolist(), a.tolist()
    ([[1.0, 2.0]], [3.0])
    """
    theta = np.asarray(theta)
    if n < 1 or theta.shape[-1] % n or theta.shape[-1] < 2 * n:
        raise ValueError(
            f"theta of length {theta.shape[-1]} is not n={n} neurons with at "
            "least one incoming weight each"
        )
    both = theta.reshape(*theta.shape[:-1], n, -1)
    return both[..., :-1], both[..., -1]


def teacher_cosines(W: ArrayLike, V: ArrayLike) -> NDArray:
    r"""Compute the cosines between student and teacher neurons.

    Parameters
    ----------
    W : array_like, shape (..., n, d)
    V : array_like, shape (k, d)
        Rows must not vanish.

    Returns
    -------
    ndarray, shape (..., n, k)
        :math:`u_{ij}`; ``nan`` in the row of a vanishing student neuron,
        which has no direction.

    Raises
    ------
    ValueError
        If a teacher neuron vanishes.

    Notes
    -----
    Source: Simsek et al. (2023), section 3 (order parameters).

    Examples
    --------
    >>> teacher_cosines([[3.0, 4.0]], [[1.0, 0.0]]).tolist()
    [[0.6]]
    """
    W, V = np.asarray(W, dtype=float), np.asarray(V, dtype=float)
    r = np.linalg.norm(W, axis=-1, keepdims=True)
    norms = np.linalg.norm(V, axis=-1)
    if np.any(norms == 0):
        raise ValueError("V must not hold a vanishing row")
    scale = np.where(r > 0, r, np.nan)
    return (W @ V.T) / (scale * norms)


def outside_fraction(W: ArrayLike, V: ArrayLike) -> NDArray:
    r"""Compute how much of each neuron lies outside the teacher's span.

    Parameters
    ----------
    W : array_like, shape (..., n, d)
    V : array_like, shape (k, d)

    Returns
    -------
    ndarray, shape (..., n)
        :math:`\lVert w_\perp\rVert / \lVert w\rVert` in :math:`[0, 1]`;
        ``nan`` for a vanishing neuron.

    Notes
    -----
    Source: the quantity that Proposition 4.1 of Simsek et al. (2023) says is
    zero at critical points.

    Examples
    --------
    >>> outside_fraction([[3.0, 4.0]], [[2.0, 0.0]]).tolist()
    [0.8]
    """
    W, V = np.asarray(W, dtype=float), np.asarray(V, dtype=float)
    basis = np.linalg.svd(V, full_matrices=False)
    basis = basis.Vh[: np.linalg.matrix_rank(V)]
    outside = W - (W @ basis.T) @ basis
    r = np.linalg.norm(W, axis=-1)
    return np.linalg.norm(outside, axis=-1) / np.where(r > 0, r, np.nan)
