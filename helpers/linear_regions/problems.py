r"""Problems beyond one dimension, and what sums of axis functions miss."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from helpers.core.checks import positive_number
from helpers.core.data import load_concrete
from helpers.core.randomness import Seed, as_generator


class Problem(NamedTuple):
    """Samples to train on and samples to test on, as rows."""

    x: np.ndarray
    y: np.ndarray
    x_test: np.ndarray
    y_test: np.ndarray


def additive_floor(z) -> float:
    r"""Mean square of what no sum :math:`u(x)+v(y)` can fit on a grid.

    The best sum is row means plus column means minus the grand mean; what
    is left is called the interaction.

    Parameters
    ----------
    z : array_like (n1, n2)
        Values on a grid.

    Returns
    -------
    float

    Raises
    ------
    ValueError
        If ``z`` is not a finite matrix with at least one entry.

    Notes
    -----
    Cost :math:`O(n_1n_2)`. Source: ours; the decomposition is that of
    two-way analysis of variance.

    Examples
    --------
    The product of two signs has no additive part at all.

    >>> additive_floor([[1.0, -1.0], [-1.0, 1.0]])
    1.0
    """
    z = np.asarray(z, dtype=np.float64)
    if z.ndim != 2 or z.size == 0 or not np.isfinite(z).all():
        raise ValueError(
            f"z must be a finite matrix with entries, got shape {z.shape}"
        )
    rows, columns = z.mean(axis=1, keepdims=True), z.mean(axis=0)
    return float(np.mean((z - rows - columns + z.mean()) ** 2))


def radius_floor(power: float = 3.0, nodes: int = 200) -> float:
    r"""The same for :math:`r^p` on the whole square :math:`[-1,1]^2`.

    Parameters
    ----------
    power : float
        Exponent of the radius, positive.
    nodes : int
        Gauss-Legendre nodes a quarter axis; the integrand is smooth away
        from the origin.

    Raises
    ------
    ValueError
        If ``power`` is not positive or ``nodes`` is below 2.

    Notes
    -----
    Source: ours.

    Examples
    --------
    >>> radius_floor(2.0) < 1e-25
    True
    """
    if not power > 0 or nodes < 2:
        raise ValueError(
            f"power must be positive and nodes at least 2, got {power}, "
            f"{nodes}"
        )
    t, w = np.polynomial.legendre.leggauss(nodes)
    t, w = (t + 1) / 2, w / 2  # one quarter of the square, by symmetry
    z = (t[:, None] ** 2 + t**2) ** (power / 2)
    rows = z @ w
    left = z - rows[:, None] - rows + w @ rows
    return float(w @ left**2 @ w)


def two_spirals(n: int, turns: float, noise: float = 0.0, rng: Seed = 0):
    r"""Two interleaved spirals in :math:`[-1,1]^2`.

    Radius grows like the square root of a uniform number, so that samples
    lie about equally dense along the arms.

    Parameters
    ----------
    n : int
        Samples, an even number of at least 2; half of each spiral.
    turns : float
        How often an arm goes round, positive.
    noise : float
        Standard deviation of a Gaussian displacement, at least 0.
    rng : seed or Generator

    Returns
    -------
    x : numpy.ndarray (n, 2)
    y : numpy.ndarray (n,)
        0 and 1.

    Raises
    ------
    ValueError
        If an argument is outside its range.

    Notes
    -----
    Source: ours, for the task of Milkert, Hyde and Laine, appendix B.2, who
    state neither turns nor noise.

    Examples
    --------
    >>> x, y = two_spirals(10, 1.5, rng=0)
    >>> x.shape, int(y.sum())
    ((10, 2), 5)
    """
    if n < 2 or n % 2 or n != int(n):
        raise ValueError(f"n must be an even number of at least 2, got {n}")
    positive_number(turns, "turns")
    if not (noise >= 0 and np.isfinite(noise)):
        raise ValueError(f"noise must be a number of at least 0, got {noise}")
    rng = as_generator(rng)
    u = np.sqrt(rng.uniform(0, 1, n // 2))
    angle = 2 * np.pi * turns * u
    arm = np.column_stack([u * np.cos(angle), u * np.sin(angle)])
    x = np.concatenate([arm, -arm])
    x += noise * rng.normal(size=x.shape)
    return x, np.repeat([0.0, 1.0], n // 2)


def problem(name: str, seed: int) -> Problem:
    """One of the problems of the part, the split drawn from the seed.

    Parameters
    ----------
    name : str
        ``cubic``: :math:`x^3-x` at 500 points of [-1, 1], tested between
        them; ``radius``: :math:`r^3` on a 25 x 25 grid of the square, tested
        between its points; ``spirals-1.5`` and ``spirals-3``: so many turns,
        400 and 800 samples, as many fresh ones for the test; ``concrete``: a
        random split of 80 to 20, inputs standardised by the training rows,
        targets in MPa, centred and scaled by the training rows.
    seed : int

    Raises
    ------
    ValueError
        If the name is not one of these.

    Notes
    -----
    Source: Milkert, Hyde and Laine, sections 5 and B.2; sizes that they do
    not state are ours.

    Examples
    --------
    >>> problem("radius", 0).x.shape
    (625, 2)
    """
    if name == "cubic":
        x = np.linspace(-1, 1, 500)[:, None]
        t = (x[1:] + x[:-1]) / 2
        return Problem(x, (x**3 - x)[:, 0], t, (t**3 - t)[:, 0])
    if name == "radius":
        grids = []
        line = np.linspace(-1, 1, 25)
        for side in (line, (line[1:] + line[:-1]) / 2):
            x = np.stack(np.meshgrid(side, side), -1).reshape(-1, 2)
            grids += [x, np.linalg.norm(x, axis=1) ** 3]
        return Problem(*grids)
    if name.startswith("spirals-"):
        turns = float(name.removeprefix("spirals-"))
        rng, n = as_generator(seed), 400 if turns < 2 else 800
        return Problem(
            *two_spirals(n, turns, rng=rng), *two_spirals(n, turns, rng=rng)
        )
    if name == "concrete":
        x, y = load_concrete()
        order = as_generator(seed).permutation(len(x))
        cut = round(0.8 * len(x))
        train, test = order[:cut], order[cut:]
        x = (x - x[train].mean(axis=0)) / x[train].std(axis=0)
        y = (y - y[train].mean()) / y[train].std()
        return Problem(x[train], y[train], x[test], y[test])
    raise ValueError(
        "name must be cubic, radius, spirals-<turns> or concrete, got "
        f"{name!r}"
    )


def concrete_unit(seed: int) -> float:
    """Variance of the training targets: turns scaled losses into MPa^2.

    Parameters
    ----------
    seed : int
        Of the split, as in :func:`problem`.

    Notes
    -----
    Source: ours.

    Examples
    --------
    >>> 250 < concrete_unit(0) < 320
    True
    """
    _, y = load_concrete()
    order = as_generator(seed).permutation(len(y))
    return float(y[order[: round(0.8 * len(y))]].var())


def concrete_losses(model, seeds) -> np.ndarray:
    """Test losses of a scikit-learn model on splits of the concrete table.

    Parameters
    ----------
    model : estimator
        With ``fit`` and ``predict``; fitted anew for each split.
    seeds : iterable of int
        Of the splits, as in :func:`problem`.

    Returns
    -------
    numpy.ndarray
        Mean squares in MPa^2, one a split.

    Notes
    -----
    Source: ours, for orientation beside the networks.

    Examples
    --------
    >>> from sklearn.linear_model import LinearRegression
    >>> loss = concrete_losses(LinearRegression(), [0])
    >>> bool(80 < loss[0] < 140)
    True
    """
    found = []
    for seed in seeds:
        data = problem("concrete", seed)
        guess = model.fit(data.x, data.y).predict(data.x_test)
        found.append(concrete_unit(seed) * np.mean((guess - data.y_test) ** 2))
    return np.array(found)
