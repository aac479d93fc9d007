r"""The population loss of a student network, its gradient and its Hessian.

With standard Gaussian inputs the mean squared difference of two networks is a
quadratic form in the outgoing weights whose coefficients are interactions:

.. math:: L = a^\top G_{WW}\,a - 2\,a^\top G_{WV}\,b + b^\top G_{VV}\,b .

No sampling is involved. All functions are batched over leading axes of the
student, which has shapes ``W (..., n, d)`` and ``a (..., n)``.
"""

from __future__ import annotations

from functools import lru_cache
from types import ModuleType

import numpy as np
from numpy.typing import ArrayLike, NDArray

from helpers.copy_average.interactions import pair_expectations
from helpers.copy_average.networks import Teacher, pack, unpack
from helpers.core.activations import Activation, get_activation
from helpers.core.tolerances import COMPLEX_STEP, FINITE_DIFFERENCE

__all__ = [
    "compiled_kernels",
    "differentiated_hessian",
    "function_norm",
    "hessian_vector_product",
    "population_hessian",
    "population_loss",
    "population_loss_grad",
]

# activations whose closed form is analytic, so that a complex step works
_ANALYTIC = frozenset({"erf", "gelu", "identity", "square"})


def compiled_kernels() -> ModuleType | None:
    """Import the compiled kernels of the erf loss.

    Returns
    -------
    module or None
        None where numba is not installed.

    Notes
    -----
    The first call on a machine compiles, later processes read the result.

    Source: ours.

    Examples
    --------
    >>> kernels = compiled_kernels()
    >>> kernels is None or "packed_hessian" in kernels.__all__
    True
    """
    from helpers.copy_average import compiled

    return compiled if compiled.AVAILABLE else None


def _checked(W: ArrayLike, a: ArrayLike, teacher: Teacher):
    W, a = np.asarray(W), np.asarray(a)
    if W.ndim < 2 or W.shape[:-1] != a.shape or W.shape[-1] != teacher.d:
        raise ValueError(
            f"W must have shape (..., n, {teacher.d}) and a shape (..., n), "
            f"got {W.shape} and {a.shape}"
        )
    for name, x in (("W", W), ("a", a)):
        if not np.all(np.isfinite(x)):
            raise ValueError(f"{name} must be finite")
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

    Parameters
    ----------
    W : array_like, shape (n, d)
    a : array_like, shape (n,)
        One student, not a batch; real.
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
    For erf by its formula, compiled, :math:`O(n(n + k)d^2)`; otherwise by
    :func:`differentiated_hessian`.

    Source: ours; the formula stands in
    :mod:`helpers.copy_average.compiled`.

    Examples
    --------
    >>> teacher = Teacher.orthonormal(1, 1)
    >>> population_hessian(teacher.V, teacher.b, teacher).round(4).tolist()
    [[0.245, 0.3676], [0.3676, 0.6667]]
    """
    activation = get_activation(activation)
    W, a = _single(W, a, teacher)
    kernels = compiled_kernels() if activation.name == "erf" else None
    if kernels is None:
        return differentiated_hessian(W, a, teacher, activation)
    network = pack(W, a).astype(float).reshape(a.size, -1)
    return kernels.packed_hessian(network, teacher.V, teacher.b)


def _single(W: ArrayLike, a: ArrayLike, teacher: Teacher):
    W, a = _checked(W, a, teacher)
    if W.ndim != 2:
        raise ValueError(f"W must have shape (n, d), got {W.shape}")
    return W, a


def differentiated_hessian(
    W: ArrayLike,
    a: ArrayLike,
    teacher: Teacher,
    activation: str | Activation = "erf",
) -> NDArray:
    r"""Compute the Hessian of the loss by differentiating its gradient.

    By a complex step, which is exact to rounding, where the closed form is
    analytic (erf, GELU, square, identity); by central differences, good to
    about nine digits, elsewhere.

    Parameters
    ----------
    W, a, teacher, activation
        As in :func:`population_hessian`.

    Returns
    -------
    ndarray, shape (P, P)

    Raises
    ------
    ValueError
        As :func:`population_hessian`.

    Notes
    -----
    One batched gradient call over the :math:`P` unit vectors.

    Source: ours; the complex step is Squire and Trapp's (1998).

    Examples
    --------
    >>> teacher = Teacher.orthonormal(1, 1)
    >>> differentiated_hessian(teacher.V, teacher.b, teacher).round(4).tolist()
    [[0.245, 0.3676], [0.3676, 0.6667]]
    """
    activation = get_activation(activation)
    W, a = _single(W, a, teacher)
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


def hessian_vector_product(
    W: ArrayLike,
    a: ArrayLike,
    dW: ArrayLike,
    da: ArrayLike,
    teacher: Teacher,
    activation: str | Activation = "erf",
) -> tuple[NDArray, NDArray]:
    r"""Multiply the Hessian of the loss by a vector, without building it.

    :math:`\nabla^2L(\theta)\,v = \operatorname{Im}\nabla L(\theta + ihv)/h`
    with :math:`h = 10^{-30}`, exact to rounding, where the closed form is
    analytic (erf, GELU, square, identity); a central difference of the
    gradient, good to about nine digits, elsewhere.

    Parameters
    ----------
    W : array_like, shape (..., n, d)
        Incoming weights of the students, real.
    a : array_like, shape (..., n)
        Outgoing weights, real.
    dW : array_like, shape (..., n, d)
        Incoming part of the vector; its leading axes broadcast with those
        of ``W``.
    da : array_like, shape (..., n)
        Outgoing part.
    teacher : Teacher
    activation : str or Activation, default "erf"

    Returns
    -------
    hW : ndarray, shape (..., n, d)
    ha : ndarray, shape (..., n)

    Raises
    ------
    ValueError
        As :func:`population_loss`, for the vector too, and if the shapes of
        student and vector do not broadcast together.

    Notes
    -----
    One complex gradient, or two real ones, a vector: :math:`O(n(n + k)d)`
    for erf, where the Hessian has :math:`n^2(d+1)^2` entries.

    Source: ours; the complex step is Squire and Trapp's (1998).

    Examples
    --------
    >>> teacher = Teacher.orthonormal(1, 1)
    >>> hW, ha = hessian_vector_product([[1.0]], [1.0], [[0.0]], [1.0], teacher)
    >>> hW.round(4).tolist(), ha.round(4).tolist()
    ([[0.3676]], [0.6667])
    """
    activation = get_activation(activation)
    W, a = _checked(W, a, teacher)
    dW, da = np.asarray(dW), np.asarray(da)
    if dW.shape[-2:] != W.shape[-2:] or dW.shape[:-1] != da.shape:
        raise ValueError(
            f"dW must have shape (..., {W.shape[-2]}, {W.shape[-1]}) and da "
            f"shape (..., {W.shape[-2]}), got {dW.shape} and {da.shape}"
        )
    for name, x in (("dW", dW), ("da", da)):
        if not np.all(np.isfinite(x)):
            raise ValueError(f"{name} must be finite")

    def gradient(step: complex) -> NDArray:
        return pack(
            *population_loss_grad(
                W + step * dW, a + step * da, teacher, activation
            )[1:]
        )

    if activation.name in _ANALYTIC:
        product = gradient(1j * COMPLEX_STEP).imag / COMPLEX_STEP
    else:
        step = FINITE_DIFFERENCE
        product = (gradient(step) - gradient(-step)) / (2 * step)
    return unpack(product, a.shape[-1])
