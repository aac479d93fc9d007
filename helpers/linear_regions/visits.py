r"""Samples and regions: which regions samples visit, and the network whose
neurons are the samples.

A sample is a point in the space of inputs and a hyperplane in the space of
neurons. Both readings are here, for networks given as lists of ``(W, b)``.
"""

from __future__ import annotations

from itertools import combinations
from operator import index

import numpy as np

from helpers.core.checks import finite_matrix, finite_vector, whole_number
from helpers.core.tolerances import PARALLEL_ROWS, ROUNDING
from helpers.linear_regions.networks import hidden_values

__all__ = [
    "affine_on_regions",
    "expected_visits",
    "sample_network",
    "vertex_box",
    "visited_regions",
]


def sample_network(X, base: int = 0) -> list:
    r"""The one-layer network whose neurons are the samples, seen from one.

    A neuron :math:`(w,b)` whose pre-activation on sample ``base`` is 1 has
    :math:`(x_i-x_{\rm base})\cdot w+1` on sample :math:`i`: an affine
    function of :math:`w`. Its activation regions are the patterns that a
    neuron can have on the other samples while it is on for ``base``.

    Parameters
    ----------
    X : array_like, shape (n, d)
        At least two samples.
    base : int, from -n to n - 1

    Returns
    -------
    list of (W, b)
        One hidden layer, ``W (n - 1, d)`` and ``b`` of ones, in the order of
        the samples without ``base``, and an output that adds them up. A
        sample equal to ``base`` becomes a neuron that is always on.

    Raises
    ------
    ValueError
        If ``X`` is not a finite matrix of two rows or more, or ``base`` is
        not the number of a row.

    Notes
    -----
    Source: ours.

    Examples
    --------
    >>> sample_network([[0.0], [2.0], [3.0]])[0]
    (array([[2.],
           [3.]]), array([1., 1.]))
    """
    X = finite_matrix(X, "X", columns=1)
    base, n = index(base), len(X)
    if n < 2:
        raise ValueError(f"X must have at least 2 rows, got {n}")
    if not -n <= base < n:
        raise ValueError(f"base must lie in [-{n}, {n}), got {base}")
    W = np.delete(X, base, axis=0) - X[base]
    return [(W, np.ones(n - 1)), (np.ones((1, n - 1)), np.zeros(1))]


def vertex_box(W, b, margin: float = 0.1) -> tuple:
    r"""A rectangle that every cell of an arrangement of lines reaches into.

    It holds all points where two of the lines :math:`w_i\cdot x+b_i=0`
    cross, and the point of each line that is next to the origin, in its
    interior. If two lines cross, every cell has a corner; if all are
    parallel, the nearest points lie on a line across all cells.

    Parameters
    ----------
    W : array_like, shape (m, 2)
        A row of zeros is no line.
    b : array_like, shape (m,)
    margin : float > 0
        What is added on each side, as a fraction of the longer side.

    Returns
    -------
    ((x0, x1), (y0, y1))

    Raises
    ------
    ValueError
        If ``W`` does not have two columns, shapes do not fit, an entry is
        not finite or ``margin`` is not positive.

    Notes
    -----
    Lines at an angle below 1e-9 count as parallel. :math:`O(m^2)` crossings.

    Source: ours.

    Examples
    --------
    >>> vertex_box([[1.0, 0.0], [0.0, 1.0]], [0.0, -2.0], margin=0.5)
    ((-1.0, 1.0), (-1.0, 3.0))
    """
    W = finite_matrix(W, "W", columns=1)
    b = finite_vector(b, "b", len(W))
    if W.shape[1] != 2:
        raise ValueError(f"W must have 2 columns, got {W.shape[1]}")
    if not 0 < margin < np.inf:
        raise ValueError(f"margin must be finite and > 0, got {margin}")
    size = np.linalg.norm(W, axis=1)
    W, b, size = W[size > 0], b[size > 0], size[size > 0]
    unit, shift = W / size[:, None], b / size
    points = [np.zeros((1, 2)), -shift[:, None] * unit]
    for i, j in combinations(range(len(W)), 2):
        pair = unit[[i, j]]
        if abs(np.linalg.det(pair)) > PARALLEL_ROWS:
            points.append(np.linalg.solve(pair, -shift[[i, j]])[None])
    points = np.concatenate(points)
    low, high = points.min(axis=0), points.max(axis=0)
    pad = margin * (np.max(high - low) or 1.0)
    (x0, y0), (x1, y1) = (low - pad).tolist(), (high + pad).tolist()
    return (x0, x1), (y0, y1)


def visited_regions(layers, X) -> np.ndarray:
    """The region of each sample, as a number.

    Parameters
    ----------
    layers : list of (W, b)
        ReLU after all but the last.
    X : array_like, shape (n, D)
        Samples; a vector is a column for networks of one input.

    Returns
    -------
    ndarray of int, shape (n,)
        From 0; two samples have one number if no hidden neuron, of any
        layer, is positive on one of them and not on the other.

    Raises
    ------
    ValueError
        If the samples do not fit the network or are not finite.

    Notes
    -----
    A sample on a boundary gets the pattern with that neuron off. That may be
    no region's, but the network is affine on the samples of one number
    nevertheless, since the neuron's value is 0 on either side.

    Source: ours.

    Examples
    --------
    >>> net = [([[1.0], [1.0]], [0.0, -0.5]), ([[1.0, 0.0]], [0.0])]
    >>> visited_regions(net, [-0.9, 0.1, -0.1, 0.7])
    array([0, 1, 0, 2])
    """
    before = hidden_values(layers, X)[:-1]
    if not before:
        return np.zeros(len(np.asarray(X)), dtype=int)
    bits = np.packbits(np.concatenate(before, axis=1) > 0, axis=1)
    return np.unique(bits, axis=0, return_inverse=True)[1].reshape(-1)


def affine_on_regions(X, regions) -> np.ndarray:
    r"""Functions on the samples that are affine on each visited region.

    Parameters
    ----------
    X : array_like, shape (n, d)
    regions : array_like of int, shape (n,)
        As :func:`visited_regions` returns them; any labels will do.

    Returns
    -------
    ndarray, shape (n, c (d + 1))
        For each of the ``c`` regions, coordinates and a one on its samples
        and zeros elsewhere. The rank is the sum of the ranks of
        ``[X, 1]`` on the regions, at most
        :math:`\sum_r\min(d+1,n_r)`. The columns span every hidden layer of a
        network with these regions, and the constant.

    Raises
    ------
    ValueError
        If ``X`` is not a finite matrix or ``regions`` does not name a region
        for each sample.

    Notes
    -----
    Coordinates are taken from the mean of the region's samples, so that
    small regions far from the origin keep their rank.

    Source: ours.

    Examples
    --------
    >>> affine_on_regions([[0.0], [2.0], [5.0]], [0, 0, 1])
    array([[-1.,  1.,  0.,  0.],
           [ 1.,  1.,  0.,  0.],
           [ 0.,  0.,  0.,  1.]])
    """
    X = finite_matrix(X, "X")
    labels = np.asarray(regions)
    if labels.shape != (len(X),):
        raise ValueError(
            f"regions must have shape ({len(X)},), one for each sample, got "
            f"{labels.shape}"
        )
    blocks = []
    for label in np.unique(labels):
        here = labels == label
        block = np.zeros((len(X), X.shape[1] + 1))
        block[here, :-1] = X[here] - X[here].mean(axis=0)
        block[here, -1] = 1.0
        blocks.append(block)
    return np.concatenate(blocks, axis=1)


def expected_visits(shares, n: int) -> float:
    r"""How many cells ``n`` independent samples are expected to visit.

    :math:`\sum_j1-(1-p_j)^n` for cells of probabilities :math:`p_j`; for
    equal ones, :math:`c\,(1-(1-1/c)^n)`, and less for all others.

    Parameters
    ----------
    shares : array_like, shape (c,)
        Not negative, of sum one.
    n : int >= 0

    Returns
    -------
    float
        To full relative accuracy, for cells however small.

    Raises
    ------
    ValueError
        If a share is negative, their sum is not one to 1e-12, or ``n`` is
        not a whole number of at least 0.

    Notes
    -----
    Source: ours; linearity of the expectation.

    Examples
    --------
    >>> expected_visits([0.5, 0.5], 2)
    1.5
    """
    shares = finite_vector(shares, "shares")
    n = whole_number(n, "n", 0)
    if (shares < 0).any() or abs(shares.sum() - 1) > ROUNDING:
        raise ValueError(
            "shares must not be negative and must sum to 1, got the least "
            f"{shares.min()} and the sum {shares.sum()}"
        )
    if n == 0:
        return 0.0
    whole = shares == 1
    part = np.where(whole, 0.0, shares)
    return float(np.sum(np.where(whole, 1.0, -np.expm1(n * np.log1p(-part)))))
