r"""The population loss of a student network, its gradient and its Hessian.

With standard Gaussian inputs the mean squared difference of two networks is a
quadratic form in the outgoing weights whose coefficients are interactions:

.. math:: L = a^\top G_{WW}\,a - 2\,a^\top G_{WV}\,b + b^\top G_{VV}\,b .

No sampling is involved. All functions are batched over leading axes of the
student, which has shapes ``W (..., n, d)`` and ``a (..., n)``.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import ArrayLike, NDArray

from helpers.copy_average.interactions import pair_expectations
from helpers.core.activations import Activation, get_activation
from helpers.core.tolerances import COMPLEX_STEP, FINITE_DIFFERENCE

__all__ = [
    "Student",
    "Teacher",
    "function_norm",
    "outside_fraction",
    "pack",
    "population_hessian",
    "population_loss",
    "population_loss_grad",
    "teacher_cosines",
    "unpack",
]

# activations whose closed form is analytic, so that a complex step works
_ANALYTIC = frozenset({"erf", "gelu", "identity", "square"})


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


def _checked(W: ArrayLike, a: ArrayLike, teacher: Teacher):
    W, a = np.asarray(W), np.asarray(a)
    if W.ndim < 2 or W.shape[:-1] != a.shape or W.shape[-1] != teacher.d:
        raise ValueError(
            f"W must have shape (..., n, {teacher.d}) and a shape (..., n), "
            f"got {W.shape} and {a.shape}"
        )
    if not np.all(np.isfinite(a)):
        raise ValueError("a must be finite")
    return W, a


def function_norm(
    teacher: Teacher, activation: str | Activation = "erf"
) -> float:
    r"""Compute :math:`C = \mathbb E[f^*(x)^2]`, the loss of the zero network.

    Parameters
    ----------
    teacher : Teacher
    activation : str or Activation, default "erf"

    Returns
    -------
    float

    Notes
    -----
    Source: Simsek et al. (2023), section 3; :math:`k/3` for the
    unit-orthonormal erf teacher.

    Examples
    --------
    >>> round(function_norm(Teacher.orthonormal(6)), 12)
    2.0
    """
    return _function_norm(teacher, get_activation(activation))


# a teacher is immutable, and its norm costs k * k integrals
@lru_cache(maxsize=256)
def _function_norm(teacher: Teacher, activation: Activation) -> float:
    own = pair_expectations(teacher.V, teacher.V, activation).value
    return float(teacher.b @ own @ teacher.b)


def population_loss(
    W: ArrayLike,
    a: ArrayLike,
    teacher: Teacher,
    activation: str | Activation = "erf",
) -> NDArray:
    r"""Compute :math:`L = \mathbb E_{x\sim\mathcal N(0,I)}[(f - f^*)^2]`.

    Parameters
    ----------
    W : array_like, shape (..., n, d)
        Incoming weights of the students.
    a : array_like, shape (..., n)
        Outgoing weights.
    teacher : Teacher
    activation : str or Activation, default "erf"

    Returns
    -------
    ndarray, shape (...)
        The loss; there is no factor 1/2.

    Raises
    ------
    ValueError
        If shapes do not fit the teacher or a weight is not finite.

    Notes
    -----
    :math:`O(n(n + k)d)` a student with a closed form; without one, each of
    the :math:`n(n + k)` pairs costs a double integral.

    Source: Simsek et al. (2023), section 2.

    Examples
    --------
    >>> teacher = Teacher.orthonormal(3)
    >>> loss = population_loss(teacher.V, teacher.b, teacher)
    >>> bool(abs(loss) < 1e-12)
    True
    """
    W, a = _checked(W, a, teacher)
    own = pair_expectations(W, W, activation).value
    cross = pair_expectations(W, teacher.V, activation).value
    inner = (own @ a[..., None])[..., 0] - 2 * cross @ teacher.b
    return (a * inner).sum(axis=-1) + function_norm(teacher, activation)


def population_loss_grad(
    W: ArrayLike,
    a: ArrayLike,
    teacher: Teacher,
    activation: str | Activation = "erf",
) -> tuple[NDArray, NDArray, NDArray]:
    r"""Compute the loss and its gradient.

    With :math:`\alpha_{ij} = \mathbb E[\sigma''\sigma]` and
    :math:`\beta_{ij} = \mathbb E[\sigma'\sigma']` for each pair,

    .. math:: \nabla_{w_i}L = 2a_i\Big[\Big(\sum_j a_j\alpha_{ij}
       - \sum_m b_m\alpha_{im}\Big)w_i + \sum_j a_j\beta_{ij}w_j
       - \sum_m b_m\beta_{im}v_m\Big].

    Parameters
    ----------
    W, a, teacher, activation
        As in :func:`population_loss`. ``W`` and ``a`` may be complex where
        the closed form is analytic (erf, GELU).

    Returns
    -------
    loss : ndarray, shape (...)
    grad_W : ndarray, shape (..., n, d)
    grad_a : ndarray, shape (..., n)

    Raises
    ------
    ValueError
        As :func:`population_loss`.

    Notes
    -----
    Source: Simsek et al. (2023), section 3 (Stein's lemma).

    Examples
    --------
    >>> teacher = Teacher.orthonormal(2)
    >>> _, grad_W, _ = population_loss_grad([[0.0, 0.0, 1.0]], [1.0], teacher)
    >>> grad_W.round(4).tolist()
    [[-0.6366, -0.6366, 0.3676]]
    """
    W, a = _checked(W, a, teacher)
    own = pair_expectations(W, W, activation)
    cross = pair_expectations(W, teacher.V, activation)
    column = a[..., None]
    target = cross.value @ teacher.b
    residual = (own.value @ column)[..., 0] - target
    loss = (a * (residual - target)).sum(axis=-1)
    radial = own.curvature @ column - (cross.curvature @ teacher.b)[..., None]
    pull = (own.slope * a[..., None, :]) @ W
    push = (cross.slope * teacher.b) @ teacher.V
    grad_W = 2 * column * (radial * W + pull - push)
    return loss + function_norm(teacher, activation), grad_W, 2 * residual


def population_hessian(
    W: ArrayLike,
    a: ArrayLike,
    teacher: Teacher,
    activation: str | Activation = "erf",
) -> NDArray:
    r"""Compute the Hessian of the loss in the order of :func:`pack`.

    Differentiates the exact gradient: by a complex step, which is exact to
    rounding, where the closed form is analytic (erf, GELU, square,
    identity); by central differences, good to about nine digits, elsewhere.

    Parameters
    ----------
    W : array_like, shape (n, d)
    a : array_like, shape (n,)
        One student, not a batch.
    teacher : Teacher
    activation : str or Activation, default "erf"

    Returns
    -------
    ndarray, shape (P, P)
        Symmetric, :math:`P = n(d+1)`.

    Raises
    ------
    ValueError
        As :func:`population_loss`, or for a batch of students.

    Notes
    -----
    One batched gradient call over the :math:`P` unit vectors.

    Source: ours; the complex step is Squire and Trapp's (1998).

    Examples
    --------
    >>> teacher = Teacher.orthonormal(1, 1)
    >>> population_hessian(teacher.V, teacher.b, teacher).round(4).tolist()
    [[0.245, 0.3676], [0.3676, 0.6667]]
    """
    activation = get_activation(activation)
    W, a = _checked(W, a, teacher)
    if W.ndim != 2:
        raise ValueError(f"W must have shape (n, d), got {W.shape}")
    theta, n = pack(W, a), a.size
    unit = np.eye(theta.size)

    def gradient(points: NDArray) -> NDArray:
        _, *grads = population_loss_grad(
            *unpack(points, n), teacher, activation
        )
        return pack(*grads)

    if activation.name in _ANALYTIC:
        hessian = gradient(theta + 1j * COMPLEX_STEP * unit).imag
        hessian = hessian / COMPLEX_STEP
    else:
        step = FINITE_DIFFERENCE * unit
        hessian = gradient(theta + step) - gradient(theta - step)
        hessian = hessian / (2 * FINITE_DIFFERENCE)
    return (hessian + hessian.T) / 2


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
