r"""Where two conics meet: the smallest nonlinear match problem, exactly.

Two learnable entries of ``W``, one output, two examples, three steps: each
example asks for a point on a conic in the plane of the two weights.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from helpers.allocation.allocations import (
    Allocation,
    check_allocation,
    with_entries,
)
from helpers.allocation.networks import LinearRNN, check_lrnn, lrnn_forward
from helpers.core.checks import check_finite
from helpers.core.tolerances import CONIC_DEGREE, REAL_ROOT

TURN = 0.7390851332151607
"""Angle by which the plane is turned, so that no two points that structure
puts above each other stay so; any number unrelated to the axes does."""


class Intersections(NamedTuple):
    """How many points two conics share; -1 where they share a curve."""

    complex: np.ndarray
    real: np.ndarray


def conic_through(values) -> np.ndarray:
    r"""Coefficients of a quadratic function of two variables from values.

    Parameters
    ----------
    values : array_like (..., 6)
        At (0,0), (1,0), (-1,0), (0,1), (0,-1), (1,1).

    Returns
    -------
    numpy.ndarray (..., 6)
        Of :math:`u^2, uv, v^2, u, v, 1`.

    Raises
    ------
    ValueError
        If there are not six finite values.

    Notes
    -----
    Source: classical interpolation.

    Examples
    --------
    >>> conic_through([0, 1, 1, 1, 1, 2])  # u^2 + v^2
    array([1., 0., 1., 0., 0., 0.])
    """
    (values,) = check_finite(values=values)
    if not values.ndim or values.shape[-1] != 6:
        raise ValueError(f"values must be (..., 6), got {values.shape}")
    o, east, west, north, south, corner = np.moveaxis(values, -1, 0)
    uu, u = (east + west) / 2 - o, (east - west) / 2
    vv, v = (north + south) / 2 - o, (north - south) / 2
    uv = corner - o - uu - vv - u - v
    return np.stack([uu, uv, vv, u, v, o], axis=-1)


POINTS = ((0, 0), (1, 0), (-1, 0), (0, 1), (0, -1), (1, 1))


def recurrent_conics(
    net: LinearRNN, X, Y, allocation: Allocation
) -> np.ndarray:
    r"""The two conics that two learnable entries of ``W`` must lie on.

    Parameters
    ----------
    net : LinearRNN
        The student; the values of its learnable entries do not matter.
    X : array_like (..., T, b, m)
        At most three steps: the labels are then quadratic in the entries.
    Y : array_like (..., d, m)
        With :math:`dm=2`.
    allocation : Allocation
        Two entries of ``W``, ``(2,)`` or ``(K, 2)``.

    Returns
    -------
    numpy.ndarray (..., 2, 6)
        One conic an equation, in the order of :func:`conic_through`.

    Raises
    ------
    ValueError
        If there are more steps, not two entries or not two equations, or a
        shape does not fit.

    Notes
    -----
    Source: ours.

    Examples
    --------
    One step sees nothing of ``W``: both conics are constants.

    >>> net = LinearRNN([[1.0], [1.0]], np.zeros((2, 2)), [[1.0, 0.0]])
    >>> recurrent_conics(net, np.ones((1, 1, 2)), [[1.0, 3.0]],
    ...                  Allocation([0, 1], [0, 1]))[:, -1]
    array([ 0., -2.])
    """
    net = check_lrnn(net)
    X, Y = check_finite(X=X, Y=Y)
    rows, _ = check_allocation(allocation, net.W.shape[-2:])
    if rows.shape[-1] != 2:
        raise ValueError(f"allocation must hold 2 entries, got {rows.shape}")
    if X.ndim < 3 or X.shape[-3] > 3:
        raise ValueError(f"X must have at most 3 steps, got {X.shape}")
    if Y.ndim < 2 or Y.shape[-2] * Y.shape[-1] != 2:
        raise ValueError(f"Y must be two numbers each, got {Y.shape}")
    values = []
    for point in POINTS:
        w = np.broadcast_to(np.array(point, dtype=float), rows.shape)
        moved = net._replace(W=with_entries(net.W, allocation, w))
        gap = lrnn_forward(moved, X) - Y
        values.append(gap.reshape(*gap.shape[:-2], 2))
    return conic_through(np.stack(values, axis=-1))


def _turned(c, angle: float) -> np.ndarray:
    """Coefficients in turned coordinates."""
    cos, sin = np.cos(angle), np.sin(angle)
    uu, uv, vv, u, v, o = np.moveaxis(c, -1, 0)
    return np.stack(
        [
            uu * cos**2 + uv * cos * sin + vv * sin**2,
            2 * (vv - uu) * cos * sin + uv * (cos**2 - sin**2),
            uu * sin**2 - uv * cos * sin + vv * cos**2,
            u * cos + v * sin,
            v * cos - u * sin,
            o,
        ],
        axis=-1,
    )


def _resultant(f, g) -> tuple[np.ndarray, np.ndarray]:
    """Resultant in ``v``, highest power first, and the sizes of its terms."""

    def parts(c):
        uu, uv, vv, u, v, o = c
        return np.array([vv]), np.array([uv, v]), np.array([uu, u, o])

    def combine(sign, a, b):
        mul, add = np.polymul, np.polyadd
        (a2, a1, a0), (b2, b1, b0) = a, b
        outer = add(mul(a2, b0), sign * mul(b2, a0))
        left = add(mul(a2, b1), sign * mul(b2, a1))
        right = add(mul(a1, b0), sign * mul(b1, a0))
        found = add(mul(outer, outer), sign * mul(left, right))
        return np.r_[np.zeros(5 - found.size), found]

    return (
        combine(-1, parts(f), parts(g)),
        combine(1, parts(np.abs(f)), parts(np.abs(g))),
    )


def conic_intersections(first, second) -> Intersections:
    r"""Complex and real points common to pairs of conics or lines.

    Parameters
    ----------
    first, second : array_like (..., 6)
        Coefficients of :math:`u^2, uv, v^2, u, v, 1`.

    Returns
    -------
    Intersections
        Counted with multiplicity, points at infinity left out.

    Raises
    ------
    ValueError
        If a shape is wrong, a number is not finite or a conic vanishes
        identically.

    Notes
    -----
    The roots of the resultant in one of two turned coordinates. Leading
    coefficients that vanish stand for points at infinity. Two lines are
    solved as such: their resultant as conics vanishes. Source: classical.

    Examples
    --------
    Two circles, and a circle with a line that misses it.

    >>> conic_intersections([1, 0, 1, 0, 0, -1], [1, 0, 1, -1, 0, -1])
    Intersections(complex=array(2), real=array(2))
    >>> conic_intersections([1, 0, 1, 0, 0, -1], [0, 0, 0, 1, 0, -2])
    Intersections(complex=array(2), real=array(0))
    """
    first, second = check_finite(first=first, second=second)
    if first.shape != second.shape or first.shape[-1:] != (6,):
        raise ValueError(
            f"first and second must both be (..., 6), got {first.shape} and "
            f"{second.shape}"
        )
    size = np.abs(np.stack([first, second])).max(axis=-1, keepdims=True)
    if not (size > 0).all():
        raise ValueError("first and second must not vanish identically")
    first, second = first / size[0], second / size[1]
    lead = first.shape[:-1]
    counts = np.array(
        [
            _meet(f, g)
            for f, g in zip(
                _turned(first, TURN).reshape(-1, 6),
                _turned(second, TURN).reshape(-1, 6),
                strict=True,
            )
        ]
    ).reshape(*lead, 2)
    return Intersections(counts[..., 0], counts[..., 1])


def _meet(f, g) -> tuple[int, int]:
    if min(np.abs(c[:5]).max() for c in (f, g)) <= CONIC_DEGREE:
        return (0, 0)  # a constant other than 0
    lines = [np.abs(c[:3]).max() <= CONIC_DEGREE for c in (f, g)]
    if all(lines):
        across, *same = np.cross(f[3:], g[3:])[::-1]
        if abs(across) > CONIC_DEGREE:
            return (1, 1)
        return (0, 0) if np.abs(same).max() > CONIC_DEGREE else (-1, -1)
    if any(lines):
        line, conic = (f, g) if lines[0] else (g, f)
        # v = s u + t on the line; turned, it is not upright
        s, t = np.array([-line[3], -line[5]]) / line[4]
        poly, terms = _on_line(conic, s, t)
    else:
        poly, terms = _resultant(f, g)
    big = np.abs(poly) > CONIC_DEGREE * terms
    if not big.any():
        return (-1, -1)
    roots = np.roots(poly[np.argmax(big) :])
    real = np.abs(roots.imag) < REAL_ROOT * (1 + np.abs(roots))
    return roots.size, int(real.sum())


def _on_line(conic, s, t) -> tuple[np.ndarray, np.ndarray]:
    """The conic at ``v = s u + t``: coefficients, and sizes of their terms."""
    uu, uv, vv, u, v, o = conic
    terms = [
        np.array([uu, uv * s, vv * s * s]),
        np.array([uv * t, 2 * vv * s * t, u, v * s]),
        np.array([vv * t * t, v * t, o]),
    ]
    return (
        np.array([part.sum() for part in terms]),
        np.array([np.abs(part).sum() for part in terms]),
    )
