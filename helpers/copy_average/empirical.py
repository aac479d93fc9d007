r"""The empirical loss: what a student sees of a finite sample.

Loss, gradient and Hessian of a mean over inputs, equal or weighted, its
minimiser by Newton's method, and what the sample costs: the minimiser misses
the population's by a distance of order :math:`N^{-1/2}`, with a constant that
is known.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from helpers.copy_average.networks import Student, pack, unpack
from helpers.core.activations import Activation, get_activation
from helpers.core.tolerances import (
    NEWTON_GRADIENT,
    RANK_RELATIVE,
    STALLED_DAMPING,
)

__all__ = [
    "EmpiricalMinimum",
    "SamplingConstants",
    "empirical_hessian",
    "empirical_loss_grad",
    "empirical_minimiser",
    "gradient_covariance",
    "network",
    "network_jacobian",
    "sampling_constants",
]

_RELAX, _TIGHTEN, _NEWTON_STEPS = 0.25, 4.0, 100


def network(
    W: ArrayLike,
    a: ArrayLike,
    X: ArrayLike,
    activation: str | Activation = "erf",
) -> NDArray:
    r"""Evaluate :math:`f(x)=\sum_ia_i\,\sigma(w_i\cdot x)` on inputs.

    Parameters
    ----------
    W : array_like, shape (..., n, d)
    a : array_like, shape (..., n)
    X : array_like, shape (..., N, d)
        Inputs, one a row; leading axes broadcast against those of ``W``.
    activation : str or Activation, default "erf"

    Returns
    -------
    ndarray, shape (..., N)

    Raises
    ------
    ValueError
        If shapes do not fit.

    Notes
    -----
    Source: Simsek et al. (2023), section 2.

    Examples
    --------
    >>> network([[1.0, 0.0]], [2.0], [[0.0, 5.0]]).tolist()
    [0.0]
    """
    W, a, X = _shapes(W, a, X)
    hidden = get_activation(activation)(X @ np.swapaxes(W, -1, -2))
    return (hidden @ a[..., None])[..., 0]


def _shapes(W, a, X):
    W, a, X = (np.asarray(x, dtype=float) for x in (W, a, X))
    fits = W.ndim >= 2 and X.ndim >= 2 and W.shape[:-1] == a.shape
    if not fits or W.shape[-1] != X.shape[-1] or 0 in X.shape:
        raise ValueError(
            "W must have shape (..., n, d), a (..., n) and X (..., N, d) "
            f"with N >= 1, got {W.shape}, {a.shape} and {X.shape}"
        )
    return W, a, X


def _weights(weights, X) -> NDArray:
    N = X.shape[-2]
    if weights is None:
        return np.full(N, 1 / N)
    weights = np.asarray(weights, dtype=float)
    if weights.shape != (N,) or not np.all(np.isfinite(weights)):
        raise ValueError(
            f"weights must hold {N} finite numbers, one an input, got shape "
            f"{weights.shape}"
        )
    if np.any(weights < 0) or not weights.sum() > 0:
        raise ValueError("weights must be non-negative, and not all zero")
    return weights / weights.sum()


def _targets(y, X):
    y = np.asarray(y, dtype=float)
    if y.ndim < 1 or y.shape[-1] != X.shape[-2]:
        raise ValueError(
            f"y must have shape (..., {X.shape[-2]}), one target an input, "
            f"got {y.shape}"
        )
    if not np.all(np.isfinite(X)) or not np.all(np.isfinite(y)):
        raise ValueError("X and y must be finite")
    return y


def empirical_loss_grad(
    W: ArrayLike,
    a: ArrayLike,
    X: ArrayLike,
    y: ArrayLike,
    activation: str | Activation = "erf",
    weights: ArrayLike | None = None,
) -> tuple[NDArray, NDArray, NDArray]:
    r"""Compute :math:`\hat L=\frac1N\sum_s(f(x_s)-y_s)^2` and its gradient.

    Parameters
    ----------
    W : array_like, shape (..., n, d)
    a : array_like, shape (..., n)
    X : array_like, shape (..., N, d)
        One sample for all students, or one each.
    y : array_like, shape (..., N)
        Targets.
    activation : str or Activation, default "erf"
    weights : array_like, shape (N,), optional
        Of a weighted mean over the inputs, such as those of a quadrature
        rule; normalised here. Equal by default.

    Returns
    -------
    loss : ndarray, shape (...)
    grad_W : ndarray, shape (..., n, d)
    grad_a : ndarray, shape (..., n)

    Raises
    ------
    ValueError
        If shapes do not fit or the sample is not finite.

    Notes
    -----
    :math:`O(Nnd)` a student. At a kink the left derivative is taken.

    Source: Simsek et al. (2023), section 2, with the mean over a sample in
    place of the expectation.

    Examples
    --------
    >>> loss, grad_W, _ = empirical_loss_grad([[0.0]], [1.0], [[1.0]], [2.0])
    >>> float(loss), grad_W.round(6).tolist()
    (4.0, [[-3.191538]])
    """
    W, a, X = _shapes(W, a, X)
    y, activation = _targets(y, X), get_activation(activation)
    weights = _weights(weights, X)
    field = X @ np.swapaxes(W, -1, -2)
    hidden = activation(field)
    residual = (hidden @ a[..., None])[..., 0] - y
    loss = (residual**2) @ weights
    residual = residual * (2 * weights)
    grad_a = (residual[..., None, :] @ hidden)[..., 0, :]
    pull = residual[..., None] * activation.derivative(field)
    grad_W = a[..., None] * (np.swapaxes(pull, -1, -2) @ X)
    return loss, grad_W, grad_a


def network_jacobian(
    W: ArrayLike,
    a: ArrayLike,
    X: ArrayLike,
    activation: str | Activation = "erf",
) -> NDArray:
    r"""Compute :math:`\partial f(x_s)/\partial\theta`, in the order of ``pack``.

    Parameters
    ----------
    W : array_like, shape (..., n, d)
    a : array_like, shape (..., n)
    X : array_like, shape (..., N, d)
        Leading axes broadcast against those of ``W``.
    activation : str or Activation, default "erf"

    Returns
    -------
    ndarray, shape (..., N, P)
        With :math:`P=n(d+1)`; at a kink the left derivative.

    Raises
    ------
    ValueError
        If shapes do not fit.

    Notes
    -----
    :math:`O(NP)` a student.

    Source: ours.

    Examples
    --------
    >>> network_jacobian([[0.0]], [3.0], [[2.0]]).round(4).tolist()
    [[4.7873, 0.0]]
    """
    W, a, X = _shapes(W, a, X)
    return _jacobian(W, a, X, get_activation(activation))[1]


def _jacobian(W, a, X, activation) -> tuple[NDArray, NDArray]:
    """Residual-free pieces: field (..., N, n) and d f / d theta (..., N, P)."""
    field = X @ np.swapaxes(W, -1, -2)
    slopes = a[..., None, :] * activation.derivative(field)
    both = np.concatenate(
        [
            slopes[..., None] * X[..., None, :],
            activation(field)[..., None],
        ],
        axis=-1,
    )
    return field, both.reshape(*field.shape[:-1], -1)


def empirical_hessian(
    W: ArrayLike,
    a: ArrayLike,
    X: ArrayLike,
    y: ArrayLike,
    activation: str | Activation = "erf",
    weights: ArrayLike | None = None,
) -> NDArray:
    r"""Compute the Hessian of the empirical loss, in the order of ``pack``.

    Parameters
    ----------
    W : array_like, shape (n, d)
    a : array_like, shape (n,)
    X : array_like, shape (N, d)
    y : array_like, shape (N,)
    activation : str or Activation, default "erf"
        Without a kink: a kink's second derivative is a point mass, which a
        sample never meets.
    weights : array_like, shape (N,), optional
        As in :func:`empirical_loss_grad`.

    Returns
    -------
    ndarray, shape (P, P)
        Symmetric, :math:`P=n(d+1)`.

    Raises
    ------
    ValueError
        If shapes do not fit, or the activation has a kink.

    Notes
    -----
    :math:`O(NP^2)` time and :math:`O(NP)` memory.

    Source: ours.

    Examples
    --------
    >>> empirical_hessian([[0.0]], [1.0], [[1.0]], [0.0]).round(4).tolist()
    [[1.2732, 0.0], [0.0, 0.0]]
    """
    W, a, X = _shapes(W, a, X)
    y, activation = _targets(y, X), get_activation(activation)
    if W.ndim != 2 or X.ndim != 2 or y.ndim != 1:
        raise ValueError(
            f"give one student and one sample, got W {W.shape}, X {X.shape}"
        )
    if activation.kink:
        raise ValueError(f"{activation.name} has a kink, and so no Hessian")
    weights = _weights(weights, X)
    field, jacobian = _jacobian(W, a, X, activation)
    residual = weights * (activation(field) @ a - y)
    hessian = (jacobian * weights[:, None]).T @ jacobian
    n, d = W.shape
    bend = residual[:, None] * a * activation.second_derivative(field)
    mixed = (residual[:, None] * activation.derivative(field)).T @ X
    for i in range(n):
        start = i * (d + 1)
        rows, own = slice(start, start + d), start + d
        hessian[rows, rows] += X.T @ (bend[:, i, None] * X)
        hessian[rows, own] += mixed[i]
        hessian[own, rows] += mixed[i]
    return 2 * hessian


class EmpiricalMinimum(NamedTuple):
    """A local minimum of an empirical loss.

    Parameters
    ----------
    student : Student
    loss : float
        The empirical loss there.
    gradient : float
        Largest absolute entry of its gradient.
    smallest_eigenvalue : float
        Of its Hessian.
    """

    student: Student
    loss: float
    gradient: float
    smallest_eigenvalue: float


def empirical_minimiser(
    student: Student,
    X: ArrayLike,
    y: ArrayLike,
    activation: str | Activation = "erf",
    weights: ArrayLike | None = None,
) -> EmpiricalMinimum:
    r"""Descend to a local minimum of the empirical loss by Newton's method.

    Each step solves :math:`(H+\mu I)\,\delta=-\nabla\hat L` with :math:`\mu`
    large enough that the matrix is positive definite and the loss falls.

    Parameters
    ----------
    student : Student
        Where to start, ``W`` (n, d).
    X : array_like, shape (N, d)
    y : array_like, shape (N,)
    activation : str or Activation, default "erf"
        Without a kink.
    weights : array_like, shape (N,), optional
        As in :func:`empirical_loss_grad`.

    Returns
    -------
    EmpiricalMinimum
        Converged if ``gradient`` is at most ``CRITICAL_GRADIENT`` of
        :mod:`helpers.core.tolerances`.

    Raises
    ------
    ValueError
        As :func:`empirical_hessian`.

    Notes
    -----
    Not gradient flow: from a start near a minimum it ends there, from
    elsewhere the end says nothing about basins.

    Source: ours, with textbook damping.

    Examples
    --------
    >>> x = np.linspace(-2, 2, 9)[:, None]
    >>> target = network([[1.0]], [1.0], x)
    >>> found = empirical_minimiser(Student([[0.8]], [1.1]), x, target)
    >>> found.student.W.round(6).tolist(), found.student.a.round(6).tolist()
    ([[1.0]], [1.0])
    """
    problem = _Sample(student, X, y, get_activation(activation), weights)
    theta, damping = pack(student.W, student.a), 1.0
    loss, gradient = problem.loss_and_gradient(theta)
    for _ in range(_NEWTON_STEPS):
        if np.abs(gradient).max() <= NEWTON_GRADIENT:
            break
        values, vectors = np.linalg.eigh(problem.hessian(theta))
        along, scale = vectors.T @ gradient, np.abs(values).max()
        steep = np.linalg.norm(gradient)
        while damping < STALLED_DAMPING:
            # absolute values: downhill along negative curvature as well
            floor = np.abs(values) + damping * steep / (1 + scale)
            trial = theta - vectors @ (along / floor)
            found = problem.loss_and_gradient(trial)
            # near the minimum rounding hides how the loss falls
            if found[0] < loss or np.linalg.norm(found[1]) < steep / 2:
                break
            damping *= _TIGHTEN
        else:
            break
        theta, (loss, gradient) = trial, found
        damping *= _RELAX
    lowest = np.linalg.eigvalsh(problem.hessian(theta))[0]
    end = Student(*unpack(theta, student.a.size))
    steepest = float(np.abs(gradient).max())
    return EmpiricalMinimum(end, loss, steepest, float(lowest))


class _Sample:
    """An empirical loss as a function of the packed parameters."""

    def __init__(self, student, X, y, activation, weights) -> None:
        self.n = student.a.size
        self.data = X, y, activation, weights

    def loss_and_gradient(self, theta: NDArray) -> tuple[float, NDArray]:
        W, a = unpack(theta, self.n)
        loss, *grads = empirical_loss_grad(W, a, *self.data)
        return float(loss), pack(*grads)

    def hessian(self, theta: NDArray) -> NDArray:
        return empirical_hessian(*unpack(theta, self.n), *self.data)


def gradient_covariance(
    student: Student,
    X: ArrayLike,
    y: ArrayLike,
    activation: str | Activation = "erf",
) -> NDArray:
    r"""Estimate the covariance of the gradient of one sample's loss.

    .. math:: S=\operatorname{Cov}\big[2\,(f(x)-y)\,\nabla_\theta f(x)\big]

    Parameters
    ----------
    student : Student
        ``W`` (n, d).
    X : array_like, shape (N, d)
        Two samples or more.
    y : array_like, shape (N,)
    activation : str or Activation, default "erf"

    Returns
    -------
    ndarray, shape (P, P)

    Raises
    ------
    ValueError
        If shapes do not fit or there are fewer than two samples.

    Notes
    -----
    Source: the middle of the sandwich of Huber (1967).

    Examples
    --------
    >>> student = Student([[1.0]], [1.0])
    >>> x = np.array([[-1.0], [1.0]])
    >>> gradient_covariance(student, x, [-1.0, 1.0]).shape
    (2, 2)
    """
    W, a, X = _shapes(student.W, student.a, X)
    y, activation = _targets(y, X), get_activation(activation)
    if W.ndim != 2 or len(X) < 2:
        raise ValueError(
            f"give one student and two samples or more, got W {W.shape} and "
            f"X {X.shape}"
        )
    field, jacobian = _jacobian(W, a, X, activation)
    residual = activation(field) @ a - y
    return np.cov(2 * residual[:, None] * jacobian, rowvar=False)


class SamplingConstants(NamedTuple):
    r"""What a sample of size :math:`N` costs, times :math:`N`.

    Parameters
    ----------
    excess : float
        :math:`\frac12\operatorname{tr}(H^{-1}S)`: the expected population
        loss of the empirical minimiser exceeds the least one by this over
        :math:`N`.
    distance : float
        :math:`\operatorname{tr}(H^{-1}SH^{-1})`: its expected squared
        distance from the population minimiser is this over :math:`N`.
    """

    excess: float
    distance: float


def sampling_constants(
    hessian: ArrayLike, covariance: ArrayLike
) -> SamplingConstants:
    r"""Compute the leading-order price of a finite sample.

    With :math:`\hat\theta-\theta^*\approx-H^{-1}\nabla\hat L(\theta^*)`, a
    vector with mean zero and covariance :math:`H^{-1}SH^{-1}/N`.

    Parameters
    ----------
    hessian : array_like, shape (P, P)
        Hessian :math:`H` of the population loss at its local minimum,
        positive definite.
    covariance : array_like, shape (P, P)
        Covariance :math:`S` of one sample's gradient there.

    Returns
    -------
    SamplingConstants

    Raises
    ------
    ValueError
        If the shapes differ or the Hessian is not positive definite.

    Notes
    -----
    For a realisable noisy linear model, :math:`S=2\sigma^2H`, the excess is
    the familiar :math:`\sigma^2P/N`.

    Source: the sandwich of Huber (1967).

    Examples
    --------
    >>> sampling_constants([[2.0]], [[4.0]])
    SamplingConstants(excess=1.0, distance=1.0)
    """
    H, S = np.asarray(hessian, float), np.asarray(covariance, float)
    if H.ndim != 2 or H.shape[0] != H.shape[1] or H.shape != S.shape:
        raise ValueError(
            "hessian and covariance must have one shape (P, P), got "
            f"{H.shape} and {S.shape}"
        )
    values = np.linalg.eigvalsh(H)
    if not values[0] > RANK_RELATIVE * values[-1]:
        raise ValueError(
            "hessian must be positive definite, its smallest eigenvalue is "
            f"{values[0]:.3g}"
        )
    half = np.linalg.solve(H, S)
    both = np.linalg.solve(H, half.T)
    return SamplingConstants(float(np.trace(half) / 2), float(np.trace(both)))
