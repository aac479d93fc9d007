r"""The linear regions of a ReLU network on an interval, counted exactly.

Between two neighbouring *knots* every neuron is affine. A layer keeps the
values of its neurons at the knots, finds where a pre-activation changes sign
between two of them, and puts a knot there. What is left at the end are the
activation regions; neighbours with equal output slope make one linear region.

Decided on purpose: a pre-activation counts as zero where it is below ``tol``
times the terms it is the sum of, *not* where two knots come close. Waves only
touch zero at their valleys, and rounding would cut slivers off there without
a tolerance; a tolerance on the spacing of knots, which is offered as
``spacing``, eats true cells that are as narrow (spec, section 7, pitfalls 1
and 2). Slopes are carried through the layers a cell at a time, never taken
as quotients of differences, so that narrow cells have exact slopes too.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from helpers.core.tolerances import PREACTIVATION_ZERO, SLOPE_TIE
from helpers.linear_regions.networks import (
    check_layers,
    check_negative_slope,
)

__all__ = [
    "Breakpoints",
    "RegionCount",
    "breakpoints_1d",
    "breakpoints_on_segment",
    "count_regions_1d",
    "count_regions_1d_batched",
    "count_regions_on_segment",
    "grid_pattern_count",
]


class Breakpoints(NamedTuple):
    """The knots of a network on an interval, both ends included.

    ``knots`` has shape ``(K,)`` and ``outputs`` shape ``(K, o)``.
    """

    knots: np.ndarray
    outputs: np.ndarray


class RegionCount(NamedTuple):
    """Activation regions, and linear regions after merging neighbours."""

    activation: int
    linear: int


class _Cells(NamedTuple):
    knots: np.ndarray
    outputs: np.ndarray
    slopes: np.ndarray
    slope_scales: np.ndarray


def _check_interval(interval) -> tuple[float, float]:
    ends = np.asarray(interval, dtype=float)
    if ends.shape != (2,) or not np.isfinite(ends).all():
        raise ValueError(
            f"interval must be two finite numbers (start, stop), got "
            f"{interval!r}"
        )
    if not ends[0] < ends[1]:
        raise ValueError(
            f"interval must have start < stop, got {interval!r}: an interval "
            "of width zero has no regions"
        )
    return float(ends[0]), float(ends[1])


def _check_tolerances(negative_slope, **tolerances) -> None:
    check_negative_slope(negative_slope)
    for name, value in tolerances.items():
        if not 0 <= value < 1:
            raise ValueError(f"{name} must lie in [0, 1), got {value}")


def _crossings(z, scale, tol):
    """Where neurons change sign between knots, each place listed once.

    Returns the interval of each new knot, its position within the interval,
    and the pairs (new knot, neuron) that vanish there.
    """
    sign = np.sign(z)
    interval, neuron = np.nonzero(sign[:-1] * sign[1:] < 0)
    left = z[interval, neuron]
    rise = z[interval + 1, neuron] - left
    place = -left / rise
    order = np.lexsort((place, interval))
    interval, neuron = interval[order], neuron[order]
    place, rise = place[order], np.abs(rise[order])
    size = np.maximum(scale[interval, neuron], scale[interval + 1, neuron])
    fresh = np.ones(len(interval), dtype=bool)
    if len(interval) > 1:
        # two crossings are one where a neuron's value at the other's
        # crossing cannot be told from zero
        gap = np.diff(place)
        same = (gap * rise[1:] <= tol * size[1:]) | (
            gap * rise[:-1] <= tol * size[:-1]
        )
        fresh[1:] = ~(same & (np.diff(interval) == 0))
    return interval[fresh], place[fresh], np.cumsum(fresh) - 1, neuron


def _insert(z, scale, knots, crossings, width, spacing):
    interval, place, group, neuron = crossings
    if spacing > 0:
        length = np.diff(knots)[interval]
        keep = (np.minimum(place, 1 - place) * length) > spacing * width
        # a knot too close to the last one kept within its interval
        where = knots[interval] + place * length
        close = (np.diff(interval) == 0) & (np.diff(where) <= spacing * width)
        keep[1:] &= ~close
        rank = np.cumsum(keep) - 1
        alive = keep[group]
        group, neuron = rank[group[alive]], neuron[alive]
        interval, place = interval[keep], place[keep]
    t = place[:, None]
    values = (1 - t) * z[interval] + t * z[interval + 1]
    values[group, neuron] = 0.0
    scales = (1 - t) * scale[interval] + t * scale[interval + 1]
    new = knots[interval] * (1 - place) + knots[interval + 1] * place
    slot = interval + 1
    parent = np.insert(np.arange(len(knots) - 1), slot, interval)
    return (
        np.insert(z, slot, values, axis=0),
        np.insert(scale, slot, scales, axis=0),
        np.insert(knots, slot, new),
        parent,
    )


def _snap(z, zero, h, W) -> None:
    """Set pre-activations to zero, and move the others along with them.

    The hidden values are known up to rounding. Of all that are, take those
    closest (relatively) for which the pre-activation vanishes: neurons that
    share its inputs then change consistently. Setting it to zero alone would
    let errors grow by a factor 1/a from wave to wave.
    """
    stale = zero & (z != 0)
    for neuron in np.nonzero(stale.any(axis=0))[0]:
        rows = np.nonzero(stale[:, neuron])[0]
        direction = h[rows] ** 2 * W[neuron]
        size = direction @ W[neuron]
        step = np.divide(
            z[rows, neuron], size, out=np.zeros_like(size), where=size > 0
        )
        z[rows] -= (step[:, None] * direction) @ W.T
    z[zero] = 0.0


def _propagate(layers, start, stop, negative_slope, tol, spacing) -> _Cells:
    knots = np.array([start, stop])
    h = knots[:, None]
    slopes = np.ones((1, 1))
    for depth, (W, b) in enumerate(layers):
        z = h @ W.T + b
        scale = np.abs(h) @ np.abs(W).T + np.abs(b)
        slope_scales = np.abs(slopes) @ np.abs(W).T
        slopes = slopes @ W.T
        if depth == len(layers) - 1:
            return _Cells(knots, z, slopes, slope_scales)
        _snap(z, np.abs(z) <= tol * scale, h, W)
        found = _crossings(z, scale, tol)
        if len(found[0]):
            z, scale, knots, parent = _insert(
                z, scale, knots, found, stop - start, spacing
            )
            slopes = slopes[parent]
        # within a cell no sign changes; where an end vanishes the other rules
        on = (z[:-1] + z[1:]) > 0
        slopes = np.where(on, slopes, negative_slope * slopes)
        h = np.where(z > 0, z, negative_slope * z)
    raise AssertionError("unreachable: check_layers refuses no layers")


def _merged(cells: _Cells, slope_rtol: float) -> int:
    jump = np.abs(np.diff(cells.slopes, axis=0))
    scale = np.maximum(cells.slope_scales[:-1], cells.slope_scales[1:])
    return 1 + int(np.any(jump > slope_rtol * scale, axis=1).sum())


def _checked(layers, inputs: int):
    layers = check_layers(layers)
    if layers[0][0].shape[1] != inputs:
        raise ValueError(
            f"layers must take {inputs} input(s) here, the first matrix has "
            f"shape {layers[0][0].shape}"
        )
    return layers


def breakpoints_1d(
    layers,
    interval,
    negative_slope: float = 0.0,
    tol: float = PREACTIVATION_ZERO,
    spacing: float = 0.0,
) -> Breakpoints:
    r"""All knots of a network on an interval, and its outputs there.

    The knots are the ends of the activation regions: the two ends of the
    interval and every :math:`x` between them at which the pre-activation of
    some neuron changes sign. Between neighbouring knots the output is affine,
    so that knots and outputs are the function.

    Parameters
    ----------
    layers : list of (W, b)
        ``W`` of shape ``(out, in)``, ``b`` of shape ``(out,)``; one input;
        ReLU after all but the last.
    interval : (float, float)
        Start and stop, finite, start < stop.
    negative_slope : float
        Slope of the activation left of zero, not 1.
    tol : float, in [0, 1)
        A pre-activation below ``tol`` times the sum of the absolute values of
        its terms is zero.
    spacing : float, in [0, 1)
        Crossings closer to a knot than this fraction of the interval are
        dropped as well. Only to show what that does: it eats true cells.

    Returns
    -------
    Breakpoints
        ``knots`` ``(K,)``, not decreasing (cells narrower than rounding have
        two equal ends), and ``outputs`` ``(K, o)``.

    Raises
    ------
    ValueError
        If the layers do not fit or are not finite, the interval is empty or
        not finite, or a tolerance is out of range.

    Notes
    -----
    A layer costs :math:`O(K w_{in} w_{out})` for :math:`K` knots.

    Source: Milkert, Hyde, Laine (2025), appendix A.2, for the definitions.

    Examples
    --------
    A tent: two neurons, a kink at 0.25.

    >>> tent = [([[1.0], [1.0]], [0.0, -0.25]), ([[4.0, -16 / 3]], [0.0])]
    >>> breakpoints_1d(tent, (0.0, 1.0)).knots
    array([0.  , 0.25, 1.  ])
    """
    layers = _checked(layers, 1)
    start, stop = _check_interval(interval)
    _check_tolerances(negative_slope, tol=tol, spacing=spacing)
    cells = _propagate(layers, start, stop, negative_slope, tol, spacing)
    return Breakpoints(cells.knots, cells.outputs)


def count_regions_1d(
    layers,
    interval,
    negative_slope: float = 0.0,
    tol: float = PREACTIVATION_ZERO,
    spacing: float = 0.0,
    slope_rtol: float = SLOPE_TIE,
) -> RegionCount:
    r"""Activation regions and linear regions of a network on an interval.

    Parameters
    ----------
    layers, interval, negative_slope, tol, spacing
        As in :func:`breakpoints_1d`.
    slope_rtol : float, in [0, 1)
        Neighbouring cells are one linear region if each output slope agrees
        to this fraction of the terms that it is the sum of.

    Returns
    -------
    RegionCount
        ``activation``, the number of cells with a constant activation
        pattern, and ``linear``, the number left after merging; ``linear`` is
        never the larger.

    Raises
    ------
    ValueError
        As :func:`breakpoints_1d`.

    Notes
    -----
    :math:`2^{18}` regions of a network of width 4 take a fraction of a second.

    Source: Milkert, Hyde, Laine (2025), appendix A.2 (both notions).

    Examples
    --------
    The second neuron has no say in the output.

    >>> net = [([[1.0], [1.0]], [0.0, -0.5]), ([[1.0, 0.0]], [0.0])]
    >>> count_regions_1d(net, (-1.0, 1.0))
    RegionCount(activation=3, linear=2)
    """
    layers = _checked(layers, 1)
    start, stop = _check_interval(interval)
    _check_tolerances(
        negative_slope, tol=tol, spacing=spacing, slope_rtol=slope_rtol
    )
    cells = _propagate(layers, start, stop, negative_slope, tol, spacing)
    return RegionCount(len(cells.knots) - 1, _merged(cells, slope_rtol))


def count_regions_1d_batched(
    weights, biases, interval, negative_slope: float = 0.0, **tolerances
) -> np.ndarray:
    """Count many networks of equal widths.

    Parameters
    ----------
    weights : list of array_like, shape (R, out, in)
        One entry a layer, the runs first.
    biases : list of array_like, shape (R, out)
    interval, negative_slope, tolerances
        As in :func:`count_regions_1d`.

    Returns
    -------
    ndarray of int, shape (R, 2)
        Activation regions and linear regions, a row a run.

    Raises
    ------
    ValueError
        If the batches do not fit, and as :func:`count_regions_1d`.

    Notes
    -----
    A loop: knots differ between runs, and a small net takes a millisecond.

    Source: none, ours.

    Examples
    --------
    >>> W, b = [[[[1.0]], [[1.0]]], [[[1.0]], [[1.0]]]], [[[0.0], [3.0]]] * 2
    >>> count_regions_1d_batched(W, b, (-1.0, 1.0))
    array([[2, 2],
           [1, 1]])
    """
    weights = [np.asarray(W, dtype=float) for W in weights]
    biases = [np.asarray(b, dtype=float) for b in biases]
    if not weights or len(weights) != len(biases):
        raise ValueError(
            f"weights and biases must list the same layers, at least one, "
            f"got {len(weights)} and {len(biases)}"
        )
    runs = {array.shape[:1] for array in (*weights, *biases)}
    if len(runs) != 1 or runs == {()}:
        raise ValueError(
            f"weights and biases must agree in the number of runs, got "
            f"{sorted(runs)}"
        )
    return np.array(
        [
            count_regions_1d(
                [(W[r], b[r]) for W, b in zip(weights, biases, strict=True)],
                interval,
                negative_slope,
                **tolerances,
            )
            for r in range(len(weights[0]))
        ],
        dtype=int,
    ).reshape(-1, 2)


def _on_segment(layers, start, stop):
    layers = check_layers(layers)
    W, b = layers[0]
    start = np.asarray(start, dtype=float)
    stop = np.asarray(stop, dtype=float)
    for name, end in (("start", start), ("stop", stop)):
        if end.shape != (W.shape[1],) or not np.isfinite(end).all():
            raise ValueError(
                f"{name} must be a finite point of {W.shape[1]} coordinates, "
                f"got shape {end.shape}"
            )
    if np.array_equal(start, stop):
        raise ValueError("start and stop must differ, got the same point")
    first = ((W @ (stop - start))[:, None], W @ start + b)
    return [first, *layers[1:]]


def breakpoints_on_segment(
    layers, start, stop, negative_slope: float = 0.0, **tolerances
) -> Breakpoints:
    r"""Knots along the segment from ``start`` to ``stop`` in
    :math:`\mathbb R^D`.

    Parameters
    ----------
    layers : list of (W, b)
        With ``D`` inputs.
    start, stop : array_like, shape (D,)
        Different points.
    negative_slope, tolerances
        As in :func:`breakpoints_1d`.

    Returns
    -------
    Breakpoints
        ``knots`` are parameters :math:`t\in[0,1]` of
        :math:`(1-t)\,start+t\,stop`.

    Raises
    ------
    ValueError
        If a point does not fit, both are equal, and as
        :func:`breakpoints_1d`.

    Notes
    -----
    Exact in any dimension: a network on a line is a network of one input.

    Source: Hanin and Rolnick (2019) count along lines.

    Examples
    --------
    >>> corner = [([[1.0, 0.0], [0.0, 1.0]], [0.0, 0.0]), ([[1, 1]], [0])]
    >>> breakpoints_on_segment(corner, [-1.0, -3.0], [1.0, 1.0]).knots
    array([0.  , 0.5 , 0.75, 1.  ])
    """
    return breakpoints_1d(
        _on_segment(layers, start, stop),
        (0.0, 1.0),
        negative_slope,
        **tolerances,
    )


def count_regions_on_segment(
    layers, start, stop, negative_slope: float = 0.0, **tolerances
) -> RegionCount:
    r"""Regions that the segment from ``start`` to ``stop`` meets.

    Parameters
    ----------
    layers, start, stop, negative_slope, tolerances
        As in :func:`breakpoints_on_segment` and :func:`count_regions_1d`.

    Returns
    -------
    RegionCount
        Linear regions are those of the function *on the segment*: two cells
        of the plane with different affine maps can agree along a line.

    Raises
    ------
    ValueError
        As :func:`breakpoints_on_segment`.

    Notes
    -----
    Source: Hanin and Rolnick (2019) count along lines.

    Examples
    --------
    >>> corner = [([[1.0, 0.0], [0.0, 1.0]], [0.0, 0.0]), ([[1, 1]], [0])]
    >>> count_regions_on_segment(corner, [-1.0, -3.0], [1.0, 1.0])
    RegionCount(activation=3, linear=3)
    """
    return count_regions_1d(
        _on_segment(layers, start, stop),
        (0.0, 1.0),
        negative_slope,
        **tolerances,
    )


def grid_pattern_count(layers, x) -> int:
    """Activation patterns that a sample of points happens to see.

    Parameters
    ----------
    layers : list of (W, b)
    x : array_like, shape (n,) or (n, D)
        Points; a vector is a column for networks of one input.

    Returns
    -------
    int
        The number of distinct patterns "which pre-activations are positive".
        Away from boundaries at most the number of activation regions, and
        usually far below: shown as a pitfall.

    Raises
    ------
    ValueError
        If the points do not fit the network or are not finite.

    Notes
    -----
    A point *on* a boundary can show a pattern that no region has.

    Source: none, ours.

    Examples
    --------
    >>> net = [([[1.0], [1.0]], [0.0, -0.5]), ([[1.0, 0.0]], [0.0])]
    >>> grid_pattern_count(net, [-0.9, -0.1, 0.1])
    2
    """
    layers = check_layers(layers)
    x = np.asarray(x, dtype=float)
    h = x[:, None] if x.ndim == 1 else x
    D = layers[0][0].shape[1]
    if h.ndim != 2 or h.shape[1] != D or not np.isfinite(h).all():
        raise ValueError(
            f"x must be finite, of shape (n, {D}), got shape {x.shape}"
        )
    masks = []
    for W, b in layers[:-1]:
        z = h @ W.T + b
        masks.append(z > 0)
        h = np.maximum(z, 0.0)
    if not masks:
        return min(1, len(h))
    bits = np.packbits(np.concatenate(masks, axis=1), axis=1)
    return len(np.unique(bits, axis=0))
