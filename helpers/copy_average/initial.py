r"""Where training starts: random students, one law a function.

The law decides which of two minima gradient flow finds (it moves
:math:`\gamma_2`), so that each function states it in full.
"""

from __future__ import annotations

import math

from helpers.copy_average.networks import Student
from helpers.core.randomness import Seed, as_generator

__all__ = ["gaussian", "glorot_normal"]


def _shape(n: int, d: int, batch: int | None) -> tuple[int, ...]:
    for name, size in (("n", n), ("d", d), ("batch", batch)):
        if size is not None and (size != int(size) or size < 1):
            raise ValueError(f"{name} must be a positive integer, got {size}")
    return (n, d) if batch is None else (batch, n, d)


def glorot_normal(
    rng: Seed, n: int, d: int, batch: int | None = None
) -> Student:
    r"""Draw students by Glorot's normal law.

    All entries are independent and Gaussian with mean 0, of variance
    :math:`2/(d + n)` for incoming and :math:`2/(n + 1)` for outgoing weights.

    Parameters
    ----------
    rng : numpy.random.Generator or int
    n : int
        Neurons, 1 or more.
    d : int
        Input dimension, 1 or more.
    batch : int, optional
        Number of students; one student without a batch axis by default.

    Returns
    -------
    Student
        ``W`` of shape (n, d) or (batch, n, d).

    Raises
    ------
    ValueError
        If a size is no positive integer.

    Notes
    -----
    The incoming weights of one student are drawn before its outgoing ones,
    student by student, so that the first students of a larger batch are
    those of a smaller one.

    Source: Glorot and Bengio (2010); the start of the runs behind Figure 4
    of Simsek et al. (2023), whose text says "fixed standard deviation".

    Examples
    --------
    >>> glorot_normal(0, n=3, d=4, batch=2).W.shape
    (2, 3, 4)
    """
    _shape(n, d, batch)
    return _draw(rng, n, d, batch, math.sqrt(2 / (d + n)), 2 / (n + 1))


def gaussian(
    rng: Seed, n: int, d: int, std: float, batch: int | None = None
) -> Student:
    r"""Draw students all of whose entries have one standard deviation.

    Parameters
    ----------
    rng : numpy.random.Generator or int
    n : int
        Neurons, 1 or more.
    d : int
        Input dimension, 1 or more.
    std : float
        Standard deviation of every incoming and outgoing weight, positive.
    batch : int, optional
        As in :func:`glorot_normal`.

    Returns
    -------
    Student

    Raises
    ------
    ValueError
        If a size is no positive integer or ``std`` not positive and finite.

    Notes
    -----
    Source: ours, to vary what Simsek et al. (2023) keep fixed.

    Examples
    --------
    >>> gaussian(0, n=2, d=3, std=0.1).a.shape
    (2,)
    """
    _shape(n, d, batch)
    if not 0 < std < math.inf:
        raise ValueError(f"std must be positive and finite, got {std}")
    return _draw(rng, n, d, batch, std, std**2)


def _draw(rng, n, d, batch, std_in, variance_out) -> Student:
    shape = _shape(n, d, batch)
    both = as_generator(rng).standard_normal((*shape[:-2], n * (d + 1)))
    W = std_in * both[..., : n * d].reshape(shape)
    return Student(W, math.sqrt(variance_out) * both[..., n * d :])
