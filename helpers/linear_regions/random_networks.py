r"""Networks to count regions of: random ones, and waves in two directions."""

from __future__ import annotations

import numpy as np

from helpers.core.randomness import as_generator
from helpers.linear_regions.networks import Layers, check_layers

__all__ = [
    "benchmark_network",
    "default_network",
    "he_network",
    "side_by_side",
    "wave_network",
]


def _check_widths(widths) -> list[int]:
    checked = [int(w) for w in widths]
    if len(checked) < 2 or min(checked) < 1:
        raise ValueError(
            f"widths must list inputs, hidden layers and outputs, all "
            f"positive, got {list(widths)}"
        )
    return checked


def he_network(widths, rng, bias_scale: float = 0.3) -> Layers:
    r"""Weights :math:`N(0,2/\text{fan-in})`, biases
    :math:`N(0,\sigma_b^2)`.

    Parameters
    ----------
    widths : sequence of int
        Inputs, hidden layers, outputs.
    rng : numpy.random.Generator or int
    bias_scale : float >= 0
        :math:`\sigma_b`.

    Returns
    -------
    list of (W, b)

    Raises
    ------
    ValueError
        If a width is not positive or the scale is negative.

    Notes
    -----
    Source: He et al. (2015) for the weights; biases as in Hanin and Rolnick
    (2019), who need them: without biases all lines pass through the origin.

    Examples
    --------
    >>> [W.shape for W, b in he_network([2, 5, 5, 1], 0)]
    [(5, 2), (5, 5), (1, 5)]
    """
    widths = _check_widths(widths)
    if not bias_scale >= 0:
        raise ValueError(f"bias_scale must be at least 0, got {bias_scale}")
    rng = as_generator(rng)
    return [
        (
            rng.normal(size=(out, fan_in)) * np.sqrt(2 / fan_in),
            bias_scale * rng.normal(size=out),
        )
        for fan_in, out in zip(widths, widths[1:], strict=False)
    ]


def default_network(widths, rng) -> Layers:
    r"""PyTorch's default: weights and biases uniform on
    :math:`\pm1/\sqrt{\text{fan-in}}`.

    Parameters
    ----------
    widths : sequence of int
        Inputs, hidden layers, outputs.
    rng : numpy.random.Generator or int

    Returns
    -------
    list of (W, b)

    Raises
    ------
    ValueError
        If a width is not positive.

    Notes
    -----
    Source: the documentation of ``torch.nn.Linear``.

    Examples
    --------
    >>> W, b = default_network([4, 3, 1], 0)[0]
    >>> W.shape, bool(abs(W).max() <= 0.5)
    ((3, 4), True)
    """
    widths = _check_widths(widths)
    rng = as_generator(rng)
    return [
        tuple(
            rng.uniform(-1, 1, size=shape) / np.sqrt(fan_in)
            for shape in ((out, fan_in), (out,))
        )
        for fan_in, out in zip(widths, widths[1:], strict=False)
    ]


def benchmark_network(width: int, depth: int) -> Layers:
    """The network of the benchmark: two inputs, ``depth`` hidden layers.

    Parameters
    ----------
    width, depth : int >= 1

    Returns
    -------
    list of (W, b)
        :func:`he_network` with the seed ``1000 * width + 10 * depth``.

    Raises
    ------
    ValueError
        If a number is not positive.

    Notes
    -----
    Source: none, ours.

    Examples
    --------
    >>> from helpers.linear_regions.regions_2d import regions_2d
    >>> regions_2d(benchmark_network(16, 3), compiled=False).n_cells
    579
    """
    if depth < 1:
        raise ValueError(f"depth must be at least 1, got {depth}")
    rng = np.random.default_rng(1000 * width + 10 * depth)
    return he_network([2, *[width] * depth, 1], rng)


def wave_network(peaks) -> list:
    r"""The wave :math:`T_{a_{d-1}}\circ\dots\circ T_{a_0}` by two neurons a
    layer, in the arithmetic of its peaks.

    Parameters
    ----------
    peaks : sequence of numbers in (0, 1)
        Fractions give a network of fractions, for
        :func:`~helpers.linear_regions.regions_2d_exact.regions_2d_exact`.

    Returns
    -------
    list of (W, b)
        Arrays of objects if the peaks are fractions.

    Raises
    ------
    ValueError
        If there is no peak or one is outside (0, 1).

    Notes
    -----
    Source: Milkert, Hyde, Laine (2025), section 3.

    Examples
    --------
    >>> from fractions import Fraction
    >>> wave_network([Fraction(1, 3)])[-1][0].tolist()
    [[Fraction(3, 1), Fraction(-9, 2)]]
    """
    peaks = list(peaks)
    if not peaks or not all(0 < a < 1 for a in peaks):
        raise ValueError(
            f"peaks must be numbers in (0, 1), at least one, got {peaks}"
        )
    one = peaks[0] / peaks[0]
    rows = [[one], [one]]
    layers = []
    for a in peaks:
        layers.append((np.array(rows), np.array([0 * one, -a])))
        triangle = [1 / a, -1 / (a * (1 - a))]
        rows = [triangle, triangle]
    layers.append((np.array([triangle]), np.array([0 * one])))
    return layers


def side_by_side(first, second) -> list:
    r"""The sum :math:`f(x)+g(y)` of two networks of one input each.

    Parameters
    ----------
    first, second : list of (W, b)
        Equally many layers and outputs.

    Returns
    -------
    list of (W, b)
        Block-diagonal; its cells are the products of theirs.

    Raises
    ------
    ValueError
        If numbers of layers or outputs differ.

    Notes
    -----
    Source: section 5 of the paper adds blocks in this way.

    Examples
    --------
    >>> tent = wave_network([0.5])
    >>> [W.shape for W, b in side_by_side(tent, tent)]
    [(4, 2), (1, 4)]
    """
    if len(first) != len(second) or len(first[-1][1]) != len(second[-1][1]):
        raise ValueError(
            f"first and second must have equally many layers and outputs, "
            f"got {len(first)} and {len(second)} layers"
        )
    if np.asarray(first[0][0]).dtype != object:
        first, second = check_layers(first), check_layers(second)
    layers = []
    for (W, b), (U, c) in zip(first, second, strict=True):
        (p, q), (r, s) = W.shape, U.shape
        M = np.zeros((p + r, q + s), dtype=W.dtype)
        M[:p, :q], M[p:, q:] = W, U
        layers.append((M, np.concatenate([b, c])))
    W, b = layers[-1]
    half = len(W) // 2
    layers[-1] = W[:half] + W[half:], b[:half] + b[half:]
    return layers
