"""Points of the optimiser chapter: one configuration, one point.

Tasks of :mod:`helpers.sweep`: plain values in, a mapping of numbers, texts
and lists out. One seed gives the same problems to every method.
"""

from __future__ import annotations

import numpy as np

from helpers.allocation.allocations import (
    Allocation,
    row_allocation,
    stack_allocations,
)
from helpers.allocation.descent import (
    RULES,
    bfgs,
    descend,
    quadratic_system,
    real_solutions,
    steps_to,
)
from helpers.allocation.experiments import first_hits, has_linear_core
from helpers.allocation.levenberg import (
    SCALES,
    draw_starts,
    solve_quadratics,
    solve_recurrent,
)
from helpers.allocation.lifted import solve_lifted
from helpers.allocation.linear_systems import layer_system
from helpers.allocation.matching import Problems, recurrent_problems
from helpers.allocation.networks import lffn_forward, sample_lffn
from helpers.allocation.quadrics import Quadrics, lrnn_quadrics
from helpers.core.checks import check_sizes
from helpers.core.randomness import Seed, as_generator, spawn
from helpers.core.tolerances import MATCHED_RELATIVE

METHODS = ("exact", *RULES, "bfgs", "lm")
SIZES = dict(n=12, b=3, d=2, m=3, k=6)
"""Six equations in six unknowns: all complex solutions are known."""
NEAR = 0.01
"""Relative residual that some would call a match, and should not."""


def _small(trials: int, seed: int, n: int, b: int, d: int, m: int, k: int):
    """Three-step problems at critical budget, from one seed."""
    check_sizes(trials=trials)
    draws, places, paths, begins = spawn(seed, 4)
    problems = recurrent_problems(trials, n, b, d, 3, m, draws)
    chosen = stack_allocations(
        row_allocation((n, n), k, d * m, r) for r in places.spawn(trials)
    )
    return problems, chosen, paths, begins


def small_systems(
    trials: int, seed: int, n=12, b=3, d=2, m=3, k=6
) -> tuple[Problems, Allocation, Quadrics]:
    """Three-step problems with ``p = m d`` learned weights in ``k`` rows.

    Parameters
    ----------
    trials, seed : int
    n, b, d, m, k : int
        Neurons, inputs, outputs, examples, learned rows.

    Returns
    -------
    Problems, Allocation, Quadrics
        The same for every method of :func:`optimiser_point`.

    Raises
    ------
    ValueError
        If a size does not fit.

    Notes
    -----
    Source: ours (R5 of the reconstruction).

    Examples
    --------
    >>> small_systems(4, 0)[2].Q.shape
    (4, 6, 6, 6)
    """
    problems, chosen, _, _ = _small(trials, seed, n, b, d, m, k)
    return problems, chosen, lrnn_quadrics(*problems, chosen)


def optimiser_point(
    method: str,
    trials: int,
    seed: int,
    rate: float = 1.0,
    steps: int = 20000,
    starts: int = 12,
    n: int = 12,
    b: int = 3,
    d: int = 2,
    m: int = 3,
    k: int = 6,
) -> dict:
    """What one method finds of small recurrent problems.

    Parameters
    ----------
    method : str
        "exact" for all complex solutions, one of the rules of
        :func:`~helpers.allocation.descent.descend`, "bfgs" or "lm".
    trials, seed : int
        The same seed gives the same problems and starts to each method.
    rate : float
        Learning rate of first-order rules.
    steps : int
        Gradients a start for first-order rules; iterations for BFGS;
        Levenberg-Marquardt has 150 steps.
    starts : int
        Their scales cycle through those of
        :func:`~helpers.allocation.levenberg.draw_starts`.
    n, b, d, m, k : int
        As :func:`small_systems`.

    Returns
    -------
    dict
        Lists with one entry a problem. ``solutions``: real solutions found
        by the homotopy and confirmed; ``norm`` and ``condition``: the root
        mean square and the condition number of the Jacobian at the smallest
        of them, 0 if there is none. ``first``: first start that matches,
        from 1, or 0. ``near``: whether a start ends below ``NEAR``.
        ``share``: matched starts.

    Raises
    ------
    ValueError
        If the method is unknown or a size does not fit.

    Notes
    -----
    Source: ours (R5 of the reconstruction).

    Examples
    --------
    >>> point = optimiser_point("lm", trials=5, seed=0)
    >>> len(point["first"]), point["solutions"]
    (5, [0, 0, 0, 0, 0])
    """
    if method not in METHODS:
        raise ValueError(f"method must be one of {METHODS}, got {method!r}")
    check_sizes(steps=steps, starts=starts)
    problems, chosen, paths, begins = _small(trials, seed, n, b, d, m, k)
    system = lrnn_quadrics(*problems, chosen)
    K, c, p = system.linear.shape
    nothing = [0] * K
    row = dict.fromkeys(("solutions", "first", "near"), nothing)
    row |= dict.fromkeys(("norm", "condition", "share"), [0.0] * K)
    f = quadratic_system(system)
    if method == "exact":
        found = real_solutions(system, paths)
        row["solutions"] = [len(w) for w in found]
        norm, condition = np.zeros(K), np.zeros(K)
        for i, w in enumerate(found):
            if len(w):
                sizes = np.sqrt((w**2).mean(axis=1))
                least = w[sizes.argmin()][None]
                norm[i] = sizes.min()
                condition[i] = np.linalg.cond(f(least, np.array([i]))[1][0])
        return row | {"norm": norm.tolist(), "condition": condition.tolist()}
    begin = draw_starts(K, starts, p, begins)
    if method == "lm":
        residual = solve_quadratics(*system, begin).residual
    else:
        owner = np.repeat(np.arange(K), starts)
        size = np.linalg.norm(problems.Y.reshape(K, -1), axis=1)[owner]
        first = begin.reshape(K * starts, p)

        def each(w, which):
            return f(w, owner[which])

        if method == "bfgs":
            _, residual = bfgs(each, first, size, most=steps)
        else:
            _, residual = descend(
                each, first, size, method, rate, steps, begins, m
            )
        residual = residual.reshape(K, starts)
    hit = residual < MATCHED_RELATIVE
    row["first"] = np.where(hit.any(1), hit.argmax(1) + 1, 0).tolist()
    row["near"] = (residual < NEAR).any(axis=1).astype(int).tolist()
    row["share"] = hit.mean(axis=1).tolist()
    return row


def scale_point(
    scale: float,
    k: int,
    trials: int,
    seed: int,
    starts: int = 42,
    n: int = 16,
    b: int = 4,
    d: int = 4,
    m: int = 4,
) -> dict:
    """Levenberg-Marquardt with all starts at one scale.

    Parameters
    ----------
    scale : float
        Standard deviation of the starts; 0 for all of
        :data:`~helpers.allocation.levenberg.SCALES` in turn.
    k : int
        Learned rows.
    trials, seed : int
        The same seed gives the same problems to every scale.
    starts : int
    n, b, d, m : int
        Neurons, inputs, outputs, examples; three steps, ``p = m d``.

    Returns
    -------
    dict
        ``first``: for each problem the first start that matches, from 1, or
        0.

    Raises
    ------
    ValueError
        If an argument does not fit.

    Notes
    -----
    Source: ours (R12 of the reconstruction).

    Examples
    --------
    >>> len(scale_point(1.0, 2, trials=3, seed=0, starts=2)["first"])
    3
    """
    if not (np.isfinite(scale) and scale >= 0):
        raise ValueError(f"scale must be a number >= 0, got {scale}")
    problems, chosen, _, begins = _small(trials, seed, n, b, d, m, k)
    scales = (scale,) if scale else SCALES
    begin = draw_starts(trials, starts, d * m, begins, scales)
    return {"first": first_hits(problems, chosen, begin).tolist()}


def lifted_point(
    trials: int,
    seed: int,
    starts: int,
    n: int,
    b: int,
    d: int,
    m: int,
    k: int,
) -> dict:
    """Direct and lifted Levenberg-Marquardt against exact truth.

    Parameters
    ----------
    trials, seed, starts : int
        Both methods begin at the same weights.
    n, b, d, m, k : int
        As :func:`small_systems`. At most six unknowns, or a linear core,
        where there is one solution by theorem.

    Returns
    -------
    dict
        Lists with one entry a problem: ``solutions``, ``direct`` and
        ``lifted``, the first start that matches, from 1, or 0.

    Raises
    ------
    ValueError
        If an argument does not fit.

    Notes
    -----
    Source: ours (section 5 of the reconstruction).

    Examples
    --------
    >>> sorted(lifted_point(3, 0, 2, n=8, b=2, d=2, m=2, k=1))
    ['direct', 'lifted', 'solutions']
    """
    problems, chosen, paths, begins = _small(trials, seed, n, b, d, m, k)
    begin = draw_starts(trials, starts, d * m, begins)
    if has_linear_core(n, b, d, 3, m, d * m, k):
        row = {"solutions": [1] * trials}
    else:
        system = lrnn_quadrics(*problems, chosen)
        row = {"solutions": [len(w) for w in real_solutions(system, paths)]}
    for name, solve in (
        ("direct", solve_recurrent),
        ("lifted", solve_lifted),
    ):
        args = (*problems,) if name == "direct" else (problems,)
        hit = solve(*args, chosen, begin).residual < MATCHED_RELATIVE
        first = np.where(hit.any(axis=1), hit.argmax(axis=1) + 1, 0)
        row[name] = first.tolist()
    return row


def fast_rows(draws: int, rng: Seed, d=3, m=6, n=12, rows=2):
    """A linear hidden layer in which two rows are fast, many times.

    Parameters
    ----------
    draws : int
    rng : seed or Generator
    d, m, n : int
        Outputs, examples, width of input and hidden layers.
    rows : int
        Fast rows of the layer; all entries learn.

    Returns
    -------
    M : numpy.ndarray (draws, d m, n n)
    target : numpy.ndarray (draws, d m)
        Labels minus what the student says before it learns.
    fast : numpy.ndarray of bool (n n,)
    rate : numpy.ndarray (draws,)
        One over the largest eigenvalue of :math:`MM^\\top`.

    Raises
    ------
    ValueError
        If a size does not fit.

    Notes
    -----
    Source: ours (R6 of the reconstruction).

    Examples
    --------
    >>> [np.shape(a) for a in fast_rows(5, 0)]
    [(5, 18, 144), (5, 18), (144,), (5,)]
    """
    check_sizes(draws=draws, d=d, m=m, n=n, rows=rows)
    if rows > n:
        raise ValueError(f"rows must be at most n = {n}, got {rows}")
    rng = as_generator(rng)
    student = sample_lffn(draws, [n, n, n, d], rng)
    teacher = sample_lffn(draws, [n, n, n, d], rng)
    X = rng.normal(size=(draws, n, m))
    every = Allocation(np.repeat(np.arange(n), n), np.tile(np.arange(n), n))
    Y = lffn_forward(teacher, X)
    M, _ = layer_system(student, X, Y, every, 1)
    target = (Y - lffn_forward(student, X)).reshape(draws, -1)
    rate = 1 / np.linalg.norm(M, 2, axis=(1, 2)) ** 2
    return M, target, every.rows < rows, rate


def decade_ratios(M, target, fast, rate, rates, level: float = 0.01):
    """Steps to a level for each relative rate of the slow weights.

    Parameters
    ----------
    M, target, fast, rate
        As :func:`fast_rows` returns.
    rates : sequence of float
        Of the slow weights, relative to the fast.
    level : float
        Relative residual, in (0, 1).

    Returns
    -------
    numpy.ndarray (draws, len(rates))

    Raises
    ------
    ValueError
        As :func:`~helpers.allocation.descent.steps_to`.

    Notes
    -----
    Source: ours (R6 of the reconstruction).

    Examples
    --------
    >>> M, target, fast, rate = fast_rows(2, 0)
    >>> decade_ratios(M, target, fast, rate, [1.0, 0.0]).shape
    (2, 2)
    """
    return np.array(
        [
            [
                steps_to(A, t, e * np.where(fast, 1.0, slow), level)
                for slow in rates
            ]
            for A, t, e in zip(M, target, rate, strict=True)
        ]
    )
