r"""The population loss as a function of one packed vector.

Integrators, minimisers and root finders call loss, gradient and Hessian
thousands of times with the same teacher. :class:`Objective` prepares the
teacher once, and uses the compiled kernels for erf where numba is installed.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from helpers.copy_average.networks import Teacher, pack, unpack
from helpers.copy_average.population import (
    compiled_kernels,
    differentiated_hessian,
    function_norm,
    population_loss_grad,
)
from helpers.core.activations import Activation, get_activation

__all__ = ["Objective"]


class Objective:
    r"""Loss, gradient and Hessian of students with ``n`` neurons.

    Parameters
    ----------
    teacher : Teacher
    n : int
        Number of student neurons, 1 or more.
    activation : str or Activation, default "erf"
    compiled : bool, optional
        Whether to use the compiled kernels, which exist for erf. By default
        they are used where they can be.

    Raises
    ------
    ValueError
        If ``n`` is no positive integer, or if compiled kernels are asked for
        where there are none.

    Notes
    -----
    Compiled, a gradient is :math:`O(n(n + k)d)` and a Hessian
    :math:`O(n(n + k)d^2)`, without a temporary array larger than its result.

    Source: Simsek et al. (2023), section 2, for the loss.

    Examples
    --------
    >>> objective = Objective(Teacher.orthonormal(3, 3), n=3)
    >>> loss, gradient = objective.loss_and_gradient(objective.pack_teacher())
    >>> bool(loss < 1e-12), bool(abs(gradient).max() < 1e-12)
    (True, True)
    """

    def __init__(
        self,
        teacher: Teacher,
        n: int,
        activation: str | Activation = "erf",
        *,
        compiled: bool | None = None,
    ) -> None:
        if isinstance(n, bool) or n != int(n) or n < 1:
            raise ValueError(f"n must be a positive integer, got {n!r}")
        self.teacher, self.n = teacher, int(n)
        self.activation = get_activation(activation)
        possible = self.activation.name == "erf" and compiled is not False
        self._kernels = compiled_kernels() if possible else None
        if compiled and self._kernels is None:
            raise ValueError(
                "compiled kernels exist for erf, where numba is installed; "
                f"compiled=True with {self.activation.name} is not possible"
            )
        V = teacher.V
        self._constant = function_norm(teacher, self.activation)
        self._D = 1 + (V * V).sum(axis=1)
        self._sliced = np.array_equal(V, np.eye(*V.shape))

    @property
    def compiled(self) -> bool:
        """Whether the compiled kernels are in use."""
        return self._kernels is not None

    @property
    def size(self) -> int:
        """Number of parameters, ``n * (d + 1)``."""
        return self.n * (self.teacher.d + 1)

    def pack_teacher(self) -> NDArray:
        """Pack the first ``n`` teacher neurons as a student.

        Returns
        -------
        ndarray, shape (n * (d + 1),)
        """
        return pack(self.teacher.V[: self.n], self.teacher.b[: self.n])

    def _check(self, theta: ArrayLike, shape: tuple[int, ...]) -> None:
        if shape != (self.size,):
            raise ValueError(
                f"theta must hold n * (d + 1) = {self.size} parameters a "
                f"student, got shape {np.shape(theta)}"
            )

    def loss_and_gradient(self, theta: ArrayLike) -> tuple[NDArray, NDArray]:
        """Compute loss and gradient of one student or a batch.

        Parameters
        ----------
        theta : array_like, shape (..., n * (d + 1))
            Packed as :func:`~helpers.copy_average.networks.pack` does.

        Returns
        -------
        loss : ndarray, shape (...), or float
        gradient : ndarray, shape (..., n * (d + 1))

        Raises
        ------
        ValueError
            If the last axis has another length. Entries are not checked: of
            NaN compiled kernels make NaN, by which an integrator knows that
            it has to stop.
        """
        self._check(theta, np.shape(theta)[-1:])
        if self._kernels is None:
            loss, *grads = population_loss_grad(
                *unpack(theta, self.n), self.teacher, self.activation
            )
            return loss, pack(*grads)
        theta = np.ascontiguousarray(theta, dtype=float)
        d, shape = self.teacher.d, theta.shape
        networks = theta.reshape(-1, self.n, d + 1)
        V, b = self.teacher.V, self.teacher.b
        cross = networks if self._sliced else networks[..., :d] @ V.T
        loss, gradient, pull = self._kernels.packed_loss_grad(
            networks, cross, b, self._D, self._constant, self._sliced
        )
        if not self._sliced:
            gradient[..., :d] += pull @ V
        if len(shape) == 1:
            return loss[0], gradient.reshape(shape)
        return loss.reshape(shape[:-1]), gradient.reshape(shape)

    def hessian(self, theta: ArrayLike) -> NDArray:
        """Compute the Hessian of one student.

        Parameters
        ----------
        theta : array_like, shape (n * (d + 1),)

        Returns
        -------
        ndarray, shape (n * (d + 1), n * (d + 1))

        Raises
        ------
        ValueError
            If ``theta`` has another shape.
        """
        self._check(theta, np.shape(theta))
        if self._kernels is None:
            return differentiated_hessian(
                *unpack(theta, self.n), self.teacher, self.activation
            )
        network = np.ascontiguousarray(theta, dtype=float)
        network = network.reshape(self.n, self.teacher.d + 1)
        return self._kernels.packed_hessian(
            network, self.teacher.V, self.teacher.b
        )
