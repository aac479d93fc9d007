r"""Training on a stream of batches: SGD and Adam beside gradient flow.

NumPy throughout; the tests hold gradients and optimiser steps against torch.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from helpers.copy_average.classify import classify_solution
from helpers.copy_average.empirical import empirical_loss_grad, network
from helpers.copy_average.flow import gradient_flow
from helpers.copy_average.initial import glorot_normal
from helpers.copy_average.networks import Student, Teacher, pack, unpack
from helpers.copy_average.population import (
    population_loss,
    population_loss_grad,
)
from helpers.core.randomness import Seed, as_generator, spawn
from helpers.core.tolerances import ADAM_DENOMINATOR

__all__ = ["Training", "train_and_classify", "train_sgd_adam"]

Sampler = Callable[[np.random.Generator, tuple], NDArray]

_ADAM_MOMENTS = 0.9, 0.999
# steps, batch and learning rate of train_and_classify
_RUNS = {
    "gd": (15_000, None, 0.03),
    "sgd": (15_000, 64, 0.03),
    "adam": (6_000, 256, 0.01),
}


class Training(NamedTuple):
    """Where online training ended.

    Parameters
    ----------
    student : Student
        ``W`` (..., n, d), ``a`` (..., n).
    losses : ndarray, shape (records, ...)
        Population loss, at the start and after equal numbers of steps, the
        last one at the end.
    steps : ndarray, shape (records,)
        Steps done by then.
    """

    student: Student
    losses: NDArray
    steps: NDArray


def _rate(schedule: str, lr: float, step: int, steps: int) -> float:
    if schedule == "cosine":
        return lr * (1 + math.cos(math.pi * step / steps)) / 2
    return lr


def _checked_run(steps, batch, lr, schedule, optimizer, records) -> None:
    for name, value in (("steps", steps), ("records", records)):
        if isinstance(value, bool) or value != int(value) or value < 1:
            raise ValueError(f"{name} must be >= 1, got {value!r}")
    if batch is not None and (batch != int(batch) or batch < 1):
        raise ValueError(f"batch must be >= 1 or None, got {batch!r}")
    if not 0 < lr < math.inf:
        raise ValueError(f"lr must be positive and finite, got {lr!r}")
    if schedule not in ("constant", "cosine"):
        raise ValueError(
            f"schedule must be constant or cosine, got {schedule!r}"
        )
    if optimizer not in ("sgd", "adam"):
        raise ValueError(f"optimizer must be sgd or adam, got {optimizer!r}")


def _gaussian(rng: np.random.Generator, shape: tuple) -> NDArray:
    return rng.standard_normal(shape)


def train_sgd_adam(
    W0: ArrayLike,
    a0: ArrayLike,
    teacher: Teacher,
    sampler: Sampler = _gaussian,
    *,
    steps: int,
    batch: int | None,
    lr: float,
    schedule: str = "cosine",
    optimizer: str = "adam",
    rng: Seed = 0,
    records: int = 20,
) -> Training:
    r"""Train erf students online, on a fresh batch in every step.

    Parameters
    ----------
    W0 : array_like, shape (..., n, d)
        Starts; leading axes are a batch of students, each with its own
        inputs.
    a0 : array_like, shape (..., n)
    teacher : Teacher
    sampler : callable
        ``sampler(rng, shape)`` returns inputs; standard Gaussian by default.
    steps : int
        Number of steps.
    batch : int or None
        Inputs a step; ``None`` takes the exact population gradient for
        Gaussian inputs, so that ``sgd`` is plain gradient descent.
    lr : float
        Largest learning rate.
    schedule : {"cosine", "constant"}
        Cosine decay to zero, or no decay.
    optimizer : {"adam", "sgd"}
        Adam with the usual moments 0.9 and 0.999; SGD without momentum.
    rng : seed or numpy.random.Generator
        Of the inputs.
    records : int, default 20
        How often the population loss is recorded, beside the start.

    Returns
    -------
    Training

    Raises
    ------
    ValueError
        If an argument is out of range or shapes do not fit.

    Notes
    -----
    Each step costs :math:`O(n(n+k)d)` or, with a batch of :math:`N`,
    :math:`O(N(n+k)d)` a student.

    Source: Simsek et al. (2023) train by gradient flow; the comparison is
    ours. Adam is that of Kingma and Ba (2015).

    Examples
    --------
    >>> run = train_sgd_adam([[0.3, 0.1]], [0.5], Teacher.orthonormal(1, 2),
    ...                      steps=2000, batch=None, lr=0.1, optimizer="sgd")
    >>> run.student.W.round(1).tolist(), run.student.a.round(1).tolist()
    ([[1.0, 0.0]], [1.0])
    """
    _checked_run(steps, batch, lr, schedule, optimizer, records)
    W, a = np.asarray(W0, dtype=float), np.asarray(a0, dtype=float)
    losses = [population_loss(W, a, teacher)]
    rng, n, theta = as_generator(rng), a.shape[-1], pack(W, a)
    first, second = np.zeros_like(theta), np.zeros_like(theta)
    marks = np.unique(np.linspace(0, steps, int(records) + 1).round())
    for step in range(int(steps)):
        gradient = _batch_gradient(theta, n, teacher, sampler, batch, rng)
        rate = _rate(schedule, lr, step, steps)
        if optimizer == "adam":
            gradient = _adam(gradient, first, second, step + 1)
        theta = theta - rate * gradient
        if step + 1 in marks:
            losses.append(population_loss(*unpack(theta, n), teacher))
    return Training(Student(*unpack(theta, n)), np.array(losses), marks)


def _batch_gradient(theta, n, teacher, sampler, batch, rng) -> NDArray:
    W, a = unpack(theta, n)
    if batch is None:
        return pack(*population_loss_grad(W, a, teacher)[1:])
    X = sampler(rng, (*W.shape[:-2], int(batch), teacher.d))
    y = network(teacher.V, teacher.b, X)
    return pack(*empirical_loss_grad(W, a, X, y)[1:])


def _adam(gradient, first, second, step) -> NDArray:
    """Direction of an Adam step; the two moments are updated in place."""
    one, two = _ADAM_MOMENTS
    first += (1 - one) * (gradient - first)
    second += (1 - two) * (gradient**2 - second)
    root = np.sqrt(second / (1 - two**step)) + ADAM_DENOMINATOR
    return first / (1 - one**step) / root


def train_and_classify(
    optimizer: str,
    k: int,
    n: int,
    seed: int,
    steps: int | None = None,
    batch: int | None = None,
    lr: float | None = None,
) -> dict:
    r"""Train one student from a Glorot start and name what it became.

    The task of a sweep. All optimisers start from the same student for the
    same ``(k, n, seed)``. The end of training is noisy; its class is that of
    the critical point to which gradient flow takes it from there.

    Parameters
    ----------
    optimizer : {"flow", "gd", "sgd", "adam"}
        Gradient flow, gradient descent on the population loss, or online
        training with batches.
    k, n : int
        Teacher and student neurons; ``d = k + 1``.
    seed : int
        Of the start and, in a stream of its own, of the batches.
    steps, batch : int, optional
        By default 15 000 steps for ``gd`` and ``sgd``, the latter with
        batches of 64; 6 000 steps with batches of 256 for ``adam``. Not
        used by ``flow``; ``gd`` has no batch.
    lr : float, optional
        Largest learning rate, decays by a cosine; 0.03 for ``gd`` and
        ``sgd`` and 0.01 for ``adam`` by default.

    Returns
    -------
    dict
        ``label``; ``trained_loss`` at the end of training (for ``flow``, of
        the start) and ``loss`` after the flow; ``gradient``, ``smallest_eigenvalue``, ``status`` of
        the flow.

    Raises
    ------
    ValueError
        If an argument is out of range.

    Notes
    -----
    Source: ours, for reader question 5.

    Examples
    --------
    >>> train_and_classify("flow", 2, 1, 0)["label"]
    'optimal_ca'
    """
    if optimizer != "flow" and optimizer not in _RUNS:
        raise ValueError(
            f"optimizer must be flow, gd, sgd or adam, got {optimizer!r}"
        )
    start_rng, data_rng = spawn(seed, 2)
    teacher = Teacher.orthonormal(k)
    student = glorot_normal(start_rng, n, teacher.d)
    if optimizer != "flow":
        usual = _RUNS[optimizer]
        given = (steps, batch, lr)
        steps, batch, lr = (
            old if new is None else new
            for old, new in zip(usual, given, strict=True)
        )
        student = train_sgd_adam(
            student.W,
            student.a,
            teacher,
            steps=steps,
            batch=None if optimizer == "gd" else batch,
            lr=lr,
            optimizer="adam" if optimizer == "adam" else "sgd",
            rng=data_rng,
            records=1,
        ).student
    trained = float(population_loss(student.W, student.a, teacher))
    flow = gradient_flow(student, teacher)
    return {
        "label": classify_solution(flow.student, teacher).label,
        "trained_loss": trained,
        "loss": float(flow.loss),
        "gradient": float(flow.gradient),
        "smallest_eigenvalue": float(flow.smallest_eigenvalue),
        "status": flow.status,
    }
