"""Random streams: one way from a seed to independent generators."""

from __future__ import annotations

import numpy as np

from helpers.core.checks import whole_number

Seed = int | np.random.SeedSequence | np.random.Generator


def as_generator(rng: Seed) -> np.random.Generator:
    """Turn a seed into a generator, and leave a generator alone.

    Parameters
    ----------
    rng : int, numpy.random.SeedSequence or numpy.random.Generator
        A seed (``0`` or larger) or the generator to use.

    Returns
    -------
    numpy.random.Generator

    Raises
    ------
    ValueError
        If ``rng`` is none of these. ``None`` is refused on purpose: a result
        of the book that cannot be computed again is not a result.

    Examples
    --------
    >>> bool(as_generator(0).random() == as_generator(0).random())
    True
    """
    if isinstance(rng, np.random.Generator):
        return rng
    if isinstance(rng, np.random.SeedSequence):
        return np.random.default_rng(rng)
    if isinstance(rng, int | np.integer) and not isinstance(rng, bool):
        if rng >= 0:
            return np.random.default_rng(int(rng))
    raise ValueError(
        f"rng must be a seed >= 0, a SeedSequence or a Generator, got {rng!r}"
    )


def spawn(seed: int | np.random.SeedSequence, n: int) -> list:
    """Make ``n`` independent generators from one seed.

    The streams are the children of one ``SeedSequence``: they do not overlap,
    and the first ``m`` of them do not depend on ``n``.

    Parameters
    ----------
    seed : int or numpy.random.SeedSequence
    n : int
        Number of generators, 0 or more.

    Returns
    -------
    list of numpy.random.Generator

    Raises
    ------
    ValueError
        If ``n`` is negative or ``seed`` is not a seed.

    Examples
    --------
    >>> a, b = spawn(7, 2)
    >>> bool(a.random() == spawn(7, 5)[0].random())
    True
    """
    whole_number(n, "n", 0)
    if not isinstance(seed, np.random.SeedSequence):
        if isinstance(seed, bool) or not isinstance(seed, int | np.integer):
            raise ValueError(f"seed must be a whole number, got {seed!r}")
        if seed < 0:
            raise ValueError(f"seed must be >= 0, got {seed}")
        seed = np.random.SeedSequence(int(seed))
    else:
        # children are counted in the parent: start from a fresh copy, so that
        # the same call gives the same streams
        seed = np.random.SeedSequence(
            seed.entropy, spawn_key=seed.spawn_key, pool_size=seed.pool_size
        )
    return [np.random.default_rng(s) for s in seed.spawn(int(n))]
