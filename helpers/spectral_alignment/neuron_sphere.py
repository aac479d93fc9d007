r"""Maps of a half sphere of neurons, for features of rank three.

The gain does not depend on the length of a neuron, so that neurons of rank
three are points of a sphere. Lambert's azimuthal map shows the half of it
around a centre in a disc of radius :math:`\sqrt2`, and keeps areas: a region
that looks large is likely to be hit by a random neuron.
"""

from __future__ import annotations

import numpy as np

from helpers.core.checks import whole_number

__all__ = ["disc_grid", "from_disc", "half_circle", "to_disc"]


def _frame(center) -> np.ndarray:
    center = np.asarray(center, dtype=float)
    if center.shape != (3,) or not np.isfinite(center).all():
        raise ValueError(
            f"center must be a finite vector of shape (3,), got {center!r}"
        )
    size = np.linalg.norm(center)
    if size == 0:
        raise ValueError("center must not be zero")
    z = center / size
    # the axis farthest from the centre, made orthogonal to it
    x = np.eye(3)[np.argmin(np.abs(z))]
    x = x - z * (z @ x)
    x /= np.linalg.norm(x)
    return np.stack([x, np.cross(z, x), z])


def _directions(eta, name: str = "eta") -> np.ndarray:
    eta = np.asarray(eta, dtype=float)
    if eta.shape[-1:] != (3,):
        raise ValueError(f"{name} must have shape (..., 3), got {eta.shape}")
    size = np.linalg.norm(eta, axis=-1, keepdims=True)
    if not np.isfinite(size).all() or (size == 0).any():
        raise ValueError(
            f"{name} must hold finite directions, none of them zero"
        )
    return eta / size


def to_disc(eta, center) -> np.ndarray:
    r"""Lambert's equal-area image of directions, seen from ``center``.

    With :math:`(x,y,z)` the unit direction in a frame whose third axis is
    the centre: :math:`\sqrt{2/(1+z)}\,(x,y)`.

    Parameters
    ----------
    eta : array_like, shape (..., 3)
        Any length but zero. Directions behind the disc, at more than a
        right angle to the centre, are shown as their opposites.
    center : array_like, shape (3,)

    Returns
    -------
    ndarray, shape (..., 2)
        Points of the disc of radius :math:`\sqrt2`.

    Raises
    ------
    ValueError
        If a shape is wrong, or a direction is zero or not finite.

    Notes
    -----
    Source: Lambert (1772).

    Examples
    --------
    >>> to_disc([[0, 0, 2.0], [0, 0, -2.0]], [0, 0, 1]).tolist()
    [[0.0, 0.0], [0.0, 0.0]]
    """
    local = _directions(eta) @ _frame(center).T
    local = np.where(local[..., 2:] < 0, -local, local) + 0.0
    return local[..., :2] * np.sqrt(2 / (1 + local[..., 2:]))


def from_disc(point, center) -> np.ndarray:
    r"""Unit directions whose image in the disc is ``point``.

    Parameters
    ----------
    point : array_like, shape (..., 2)
        Of norm at most :math:`\sqrt2`, up to rounding.
    center : array_like, shape (3,)

    Returns
    -------
    ndarray, shape (..., 3)

    Raises
    ------
    ValueError
        If a shape is wrong or a point lies outside the disc.

    Notes
    -----
    Source: Lambert (1772).

    Examples
    --------
    >>> from_disc([0.0, 0.0], [0, 3.0, 0]).tolist()
    [0.0, 1.0, 0.0]
    """
    point = np.asarray(point, dtype=float)
    if point.shape[-1:] != (2,):
        raise ValueError(f"point must have shape (..., 2), got {point.shape}")
    z = 1 - np.sum(point**2, axis=-1, keepdims=True) / 2
    if not (z >= -np.finfo(float).eps * 8).all():
        raise ValueError("point must lie in the disc of radius sqrt(2)")
    flat = point * np.sqrt((1 + z) / 2)
    return np.concatenate([flat, z], axis=-1) @ _frame(center)


def disc_grid(center, size: int) -> tuple[np.ndarray, np.ndarray]:
    r"""A square grid over the disc, and the directions of its points.

    Parameters
    ----------
    center : array_like, shape (3,)
    size : int >= 2
        Points a side.

    Returns
    -------
    ticks : ndarray, shape (size,)
        From :math:`-\sqrt2` to :math:`\sqrt2`.
    eta : ndarray, shape (size, size, 3)
        Row by row upwards; NaN outside the disc.

    Raises
    ------
    ValueError
        If ``size`` is too small or ``center`` is no direction.

    Notes
    -----
    Source: ours; the map is Lambert's (1772).

    Examples
    --------
    >>> ticks, eta = disc_grid([0, 0, 1.0], 3)
    >>> eta[1, 1].tolist(), bool(np.isnan(eta[0, 0]).all())
    ([0.0, 0.0, 1.0], True)
    """
    size = whole_number(size, "size", 2)
    ticks = np.linspace(-np.sqrt(2), np.sqrt(2), size)
    points = np.stack(np.meshgrid(ticks, ticks), axis=-1)
    inside = np.sum(points**2, axis=-1) <= 2
    eta = np.full((size, size, 3), np.nan)
    eta[inside] = from_disc(points[inside], center)
    return ticks, eta


def half_circle(normal, center, size: int = 181) -> np.ndarray:
    r"""Image of the half of a great circle that lies around ``center``.

    Parameters
    ----------
    normal : array_like, shape (3,)
        The circle holds the directions orthogonal to it.
    center : array_like, shape (3,)
    size : int >= 2
        Points along the half circle, evenly spaced.

    Returns
    -------
    ndarray, shape (size, 2)

    Raises
    ------
    ValueError
        As :func:`disc_grid`, or if ``normal`` is no direction.

    Notes
    -----
    Source: ours; the map is Lambert's (1772).

    Examples
    --------
    >>> half_circle([1.0, 0, 0], [0, 0, 1.0], 3)[1].tolist()
    [0.0, 0.0]
    """
    size = whole_number(size, "size", 2)
    normal = _directions(normal, "normal")
    if normal.ndim != 1:
        raise ValueError(f"normal must have shape (3,), got {normal.shape}")
    frame = _frame(center)
    local = frame @ normal
    # the middle is the point of the circle nearest to the centre
    level = np.array([-local[1], local[0], 0.0])
    length = np.linalg.norm(level)
    level = level / length if length > 0 else np.array([1.0, 0.0, 0.0])
    middle = np.cross(local, level)
    middle = -middle if middle[2] < 0 else middle
    angle = np.linspace(-np.pi / 2, np.pi / 2, size)[:, None]
    circle = np.cos(angle) * middle + np.sin(angle) * level
    height = np.clip(circle[:, 2:], 0.0, None)
    return circle[:, :2] * np.sqrt(2 / (1 + height)) + 0.0
