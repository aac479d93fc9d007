r"""Gradient flow with activations that have to be integrated: one task.

A run takes seconds for two neurons against four, so that chapters show a
stored table of runs.
"""

from __future__ import annotations

import numpy as np

from helpers.copy_average.flow import gradient_flow
from helpers.copy_average.initial import glorot_normal
from helpers.copy_average.networks import Teacher, teacher_cosines
from helpers.core.randomness import Seed

__all__ = ["run_smooth_flow"]


def run_smooth_flow(
    activation: str, k: int, n: int, seed: Seed, t_max: float = 1e6
) -> dict[str, object]:
    r"""Follow the flow from a Glorot start and describe its end.

    Parameters
    ----------
    activation : str
        Name of a smooth activation.
    k, n : int
        Teacher and student neurons; the input dimension is ``k + 1``.
    seed : int
        Seed of the start.
    t_max : float
        Largest time.

    Returns
    -------
    dict
        ``loss``, ``gradient`` (largest entry), ``time``, ``status``,
        ``lowest`` (smallest eigenvalue of the Hessian), ``copies`` (how many
        neurons have a cosine above 0.95 with a teacher neuron of their own),
        ``smallest_norm`` and ``largest_norm`` of the incoming weights.

    Raises
    ------
    ValueError
        If an argument is out of range.

    Notes
    -----
    Source: reader question 3; the set-up is that of Simsek et al. (2023)
    with other activations.

    Examples
    --------
    >>> run_smooth_flow("erf", 3, 2, seed=0)["copies"]
    1
    """
    teacher = Teacher.orthonormal(k)
    start = glorot_normal(seed, n, teacher.d)
    flow = gradient_flow(start, teacher, activation, t_max=t_max)
    cosines = np.abs(teacher_cosines(flow.student.W, teacher.V))
    close = np.argwhere(cosines > _COPY)
    return {
        "loss": flow.loss,
        "gradient": flow.gradient,
        "time": flow.time,
        "status": flow.status,
        "lowest": flow.smallest_eigenvalue,
        "copies": len(set(close[:, 1].tolist())),
        "smallest_norm": float(flow.student.norms.min()),
        "largest_norm": float(flow.student.norms.max()),
    }


# the threshold of the authors' plots, between copies (above 0.98 for the
# activations of the book) and averages of two or more (below 0.71)
_COPY = 0.95
