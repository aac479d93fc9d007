r"""Input laws beside the standard Gaussian: samples and quadrature rules.

All have independent coordinates of mean 0 and variance 1. A rule replaces the
expectation where a sample would be too coarse; it is for a handful of
dimensions.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike, NDArray

from helpers.core.checks import whole_number
from helpers.core.randomness import Seed, as_generator

__all__ = ["LAWS", "input_rule", "product_rule", "sample_inputs"]

LAWS = ("gaussian", "uniform", "student", "rademacher")
"""Input laws of mean 0 and variance 1; ``student`` has 5 degrees of freedom.
"""

_FREEDOM = 5
_T_SCALE = math.sqrt(_FREEDOM / (_FREEDOM - 2))
_SINH_END = 5.0


def _checked_law(law: str) -> str:
    if law not in LAWS:
        raise ValueError(f"law must be one of {', '.join(LAWS)}, got {law!r}")
    return law


def sample_inputs(law: str, rng: Seed, shape: tuple) -> NDArray:
    r"""Draw inputs with independent coordinates of mean 0 and variance 1.

    Parameters
    ----------
    law : {"gaussian", "uniform", "student", "rademacher"}
        Of one coordinate; ``student`` is Student's t with 5 degrees of
        freedom, scaled.
    rng : seed or numpy.random.Generator
    shape : tuple of int

    Returns
    -------
    ndarray

    Raises
    ------
    ValueError
        If the law is unknown.

    Notes
    -----
    Source: ours, for reader question 9.

    Examples
    --------
    >>> sorted(set(sample_inputs("rademacher", 0, (8,)).tolist()))
    [-1.0, 1.0]
    """
    rng = as_generator(rng)
    draw = {
        "gaussian": rng.standard_normal,
        "uniform": lambda size: rng.uniform(-math.sqrt(3), math.sqrt(3), size),
        "student": lambda size: rng.standard_t(_FREEDOM, size) / _T_SCALE,
        "rademacher": lambda size: rng.choice([-1.0, 1.0], size),
    }
    return draw[_checked_law(law)](shape)


def input_rule(law: str, size: int = 24) -> tuple[NDArray, NDArray]:
    r"""Build a quadrature rule for one coordinate of an input law.

    Parameters
    ----------
    law : {"gaussian", "uniform", "student", "rademacher"}
        As in :func:`sample_inputs`.
    size : int, default 24
        Number of nodes, 2 or more: Gauss-Hermite, Gauss-Legendre, or for
        ``student`` equal steps in :math:`\operatorname{arsinh}x`, which
        give about six digits with 24 nodes; ``rademacher`` has two.

    Returns
    -------
    nodes, weights : ndarray, shape (size,)
        Weights sum to 1.

    Raises
    ------
    ValueError
        If the law is unknown or ``size`` below 2.

    Notes
    -----
    Source: textbook rules.

    Examples
    --------
    >>> nodes, weights = input_rule("uniform")
    >>> round(float(weights @ nodes**4), 9)  # 9 / 5
    1.8
    """
    size = whole_number(size, "size", 2)
    if _checked_law(law) == "rademacher":
        return np.array([-1.0, 1.0]), np.array([0.5, 0.5])
    if law == "gaussian":
        nodes, weights = np.polynomial.hermite_e.hermegauss(size)
    elif law == "uniform":
        nodes, weights = np.polynomial.legendre.leggauss(size)
        nodes = math.sqrt(3) * nodes
    else:
        step = np.linspace(-_SINH_END, _SINH_END, size)
        nodes = np.sinh(step)
        density = (1 + (_T_SCALE * nodes) ** 2 / _FREEDOM) ** -(
            (_FREEDOM + 1) / 2
        )
        weights = np.cosh(step) * density
    return nodes, weights / weights.sum()


def product_rule(
    nodes: ArrayLike, weights: ArrayLike, d: int
) -> tuple[NDArray, NDArray]:
    r"""Combine a rule in one dimension into one for independent inputs.

    Parameters
    ----------
    nodes, weights : array_like, shape (m,)
        A rule for one coordinate.
    d : int
        Number of independent coordinates with this law, 1 or more.

    Returns
    -------
    X : ndarray, shape (m**d, d)
    weights : ndarray, shape (m**d,)
        Normalised to sum to 1.

    Raises
    ------
    ValueError
        If the shapes differ, ``d`` is out of range, or a weight is negative.

    Notes
    -----
    :math:`m^d` points: for a handful of dimensions.

    Source: ours.

    Examples
    --------
    Two fair coins:

    >>> X, weights = product_rule([-1.0, 1.0], [0.5, 0.5], 2)
    >>> X.tolist()
    [[-1.0, -1.0], [-1.0, 1.0], [1.0, -1.0], [1.0, 1.0]]
    >>> weights.tolist()
    [0.25, 0.25, 0.25, 0.25]
    """
    x = np.asarray(nodes, dtype=float)
    if x.ndim != 1 or x.size == 0 or not np.all(np.isfinite(x)):
        raise ValueError(f"nodes must be a finite vector, got {nodes!r}")
    w = np.asarray(weights, dtype=float)
    if w.shape != x.shape or not np.all(w >= 0) or not 0 < w.sum() < math.inf:
        raise ValueError(
            f"weights must be {x.size} non-negative numbers, not all zero, "
            f"got {weights!r}"
        )
    w = w / w.sum()
    d = whole_number(d, "d")
    grids = np.meshgrid(*[x] * d, indexing="ij")
    masses = np.meshgrid(*[w] * d, indexing="ij")
    X = np.stack([g.ravel() for g in grids], axis=-1)
    return X, np.prod([m.ravel() for m in masses], axis=0)
