r"""Best fits by peaks alone, as far as a quasi-Newton search can find them.

What training could reach at best: the mean squared error over peaks is
minimised by L-BFGS from many random starts, with exact gradients. Linear
parameters (free scales, outer coefficients) are eliminated by least squares
at every step; by the envelope theorem the gradient in the others is then the
one at fixed linear parameters.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy.optimize import minimize

from helpers.core.randomness import Seed, as_generator
from helpers.linear_regions.targets import target
from helpers.linear_regions.triangles import (
    Mode,
    check_mode,
    check_peaks,
    limit_scales,
    peak_jacobian,
    triangle_sum,
)

__all__ = [
    "PeakFit",
    "WrappedFit",
    "best_free_scales",
    "best_peaks",
    "best_wrapped",
    "vee_values",
    "vee_jacobian",
    "wave_gradient",
    "wrapped_outcome",
]

POINTS = 500
ITERATIONS = 2000


class PeakFit(NamedTuple):
    """Mean squared error, peaks and scales of the best of the starts."""

    mse: float
    peaks: np.ndarray
    scales: np.ndarray


class WrappedFit(NamedTuple):
    """Best fit ``c + sum_j C_j v_j(A_j x + b_j)`` by V blocks."""

    mse: float
    peaks: np.ndarray
    A: np.ndarray
    b: np.ndarray
    C: np.ndarray
    c: float


def _data(x, y) -> tuple[np.ndarray, np.ndarray]:
    x, y = np.asarray(x, np.float64), np.asarray(y, np.float64)
    if x.ndim != 1 or x.size == 0 or y.shape != x.shape:
        raise ValueError(
            "x and y must be vectors of one length, at least 1, got shapes "
            f"{x.shape} and {y.shape}"
        )
    if not (np.isfinite(y).all() and np.all((x >= 0) & (x <= 1))):
        raise ValueError("x must lie in [0, 1] and y must be finite")
    return x, y


def _search(depth: int, starts: int, clamp: float) -> None:
    if depth < 1 or starts < 1:
        raise ValueError(
            f"depth and starts must be 1 or more, got {depth} and {starts}"
        )
    if not 0 < clamp < 0.5:
        raise ValueError(f"clamp must lie in (0, 0.5), got {clamp}")


def _descend(value_and_gradient, start, bounds):
    """L-BFGS on the logarithm of the error, which has no scale of its own."""

    def objective(p):
        mse, gradient = value_and_gradient(p)
        mse = max(mse, np.finfo(float).tiny)
        return np.log(mse), gradient / mse

    found = minimize(
        objective,
        start,
        jac=True,
        method="L-BFGS-B",
        bounds=bounds,
        options={"maxiter": ITERATIONS, "maxcor": 20},
    )
    return found.x, float(np.exp(found.fun))


def best_peaks(
    x,
    y,
    depth: int,
    mode: Mode,
    rng: Seed,
    starts: int = 6,
    clamp: float = 0.01,
) -> PeakFit:
    r"""Best peaks under the recurrence of the scales.

    Minimises :math:`\frac1n\sum_j\big(F(x_j)-y_j\big)^2` over
    :math:`d+1` peaks in :math:`[c,1-c]`.

    Parameters
    ----------
    x, y : array_like (n,)
        Points of [0, 1] and targets.
    depth : int
        Number of waves ``d``, 1 or more.
    mode : {"concave", "convex"}
    rng : int or numpy.random.Generator
        For the starts, uniform in (0.1, 0.9).
    starts : int
    clamp : float
        The bound :math:`c`, in (0, 0.5).

    Returns
    -------
    PeakFit
        The best of the starts. It is an upper bound on the best error: the
        problem has local minima and kinks where a bend meets a point.

    Raises
    ------
    ValueError
        If an argument is outside its range or shapes disagree.

    Notes
    -----
    Cost: a few hundred evaluations of :math:`O(dn)` a start. Source: ours.

    Examples
    --------
    >>> x = np.linspace(0, 1, 200)
    >>> fit = best_peaks(x, x**2, 3, "convex", rng=0, starts=2)
    >>> bool(fit.mse < 3e-6)
    True
    """
    x, y = _data(x, y)
    _search(depth, starts, clamp)
    check_mode(mode)
    rng = as_generator(rng)

    def evaluate(a):
        residual = triangle_sum(x, a, mode) - y
        gradient = 2 / x.size * peak_jacobian(x, a, mode) @ residual
        return float(np.mean(residual**2)), gradient

    bounds = [(clamp, 1 - clamp)] * (depth + 1)
    found = [
        _descend(evaluate, rng.uniform(0.1, 0.9, depth + 1), bounds)
        for _ in range(starts)
    ]
    peaks, mse = min(found, key=lambda one: one[1])
    return PeakFit(mse, peaks, limit_scales(peaks, mode))


def wave_gradient(x, peaks, scales) -> tuple[np.ndarray, np.ndarray]:
    r"""Derivatives of :math:`\sum_is_iW_i(x)` at fixed scales.

    Triangles are continued beyond [0, 1] along their outer sides.

    Parameters
    ----------
    x : array_like (n,)
        Any real numbers.
    peaks, scales : array_like (d,)

    Returns
    -------
    by_peak : numpy.ndarray (d, n)
    by_point : numpy.ndarray (n,)
        At a bend the slope on the rising side is taken.

    Raises
    ------
    ValueError
        If a peak is outside (0, 1) or the lengths disagree.

    Notes
    -----
    Cost :math:`O(d)` a point, one backward sweep. Source: ours.

    Examples
    --------
    >>> by_peak, by_point = wave_gradient([0.25], [0.5], [1.0])
    >>> print(by_peak, by_point)
    [[-1.]] [2.]
    """
    a, s = check_peaks(peaks), np.asarray(scales, np.float64)
    if a.ndim != 1 or s.shape != a.shape:
        raise ValueError(
            f"peaks and scales must be vectors of one length, got {a.shape} "
            f"and {s.shape}"
        )
    y = np.asarray(x, dtype=np.float64)
    before = np.empty((a.size, y.size))
    for i, peak in enumerate(a):
        before[i] = y
        y = np.minimum(y / peak, (1 - y) / (1 - peak))
    by_peak, reach = np.empty(before.shape), np.zeros(y.size)
    for i in range(a.size - 1, -1, -1):
        y, peak = before[i], a[i]
        rising = y <= peak
        reach = reach + s[i]
        by_peak[i] = reach * np.where(
            rising, -y / peak**2, (1 - y) / (1 - peak) ** 2
        )
        reach = reach * np.where(rising, 1 / peak, -1 / (1 - peak))
    return by_peak, reach


def best_free_scales(
    x,
    y,
    depth: int,
    rng: Seed,
    starts: int = 6,
    clamp: float = 0.01,
) -> PeakFit:
    r"""Best peaks when every scale is free, of either sign.

    As :func:`best_peaks`, for :math:`x+\sum_{i<d}s_iW_i` with the scales
    found by least squares.

    Parameters
    ----------
    x, y, depth, rng, starts, clamp
        As there.

    Returns
    -------
    PeakFit
        With ``depth`` peaks and as many scales.

    Raises
    ------
    ValueError
        If an argument is outside its range or shapes disagree.

    Notes
    -----
    Source: ours.

    Examples
    --------
    >>> x = np.linspace(0, 1, 200)
    >>> fit = best_free_scales(x, x**2, 2, rng=0, starts=2)
    >>> bool(fit.mse < 5e-5)
    True
    """
    x, y = _data(x, y)
    _search(depth, starts, clamp)
    rng = as_generator(rng)

    def solve(a):
        waves, z = np.empty((depth, x.size)), x
        for i, peak in enumerate(a):
            z = waves[i] = np.minimum(z / peak, (1 - z) / (1 - peak))
        scales = np.linalg.lstsq(waves.T, y - x, rcond=None)[0]
        return scales, scales @ waves + x - y

    def evaluate(a):
        scales, residual = solve(a)
        gradient = 2 / x.size * wave_gradient(x, a, scales)[0] @ residual
        return float(np.mean(residual**2)), gradient

    bounds = [(clamp, 1 - clamp)] * depth
    found = [
        _descend(evaluate, rng.uniform(0.1, 0.9, depth), bounds)
        for _ in range(starts)
    ]
    peaks, mse = min(found, key=lambda one: one[1])
    return PeakFit(mse, peaks, solve(peaks)[0])


def _vee_parts(peaks):
    """Peaks and scales of the waves inside a V block."""
    hat = np.concatenate([peaks[:1], 1 - peaks[1:]])
    return hat, limit_scales(hat, "concave", 1.0)


def vee_values(u, peaks) -> np.ndarray:
    r"""A V block, :math:`1-\sum_i\hat s_i\hat W_i((u+1)/2)`, on the line.

    The same function as
    :func:`~helpers.linear_regions.networks.vee_net_layers`, without its
    matrices.

    Parameters
    ----------
    u : array_like (n,)
        Any real numbers; beyond [-1, 1] the outer pieces go on.
    peaks : array_like (d + 1,)

    Returns
    -------
    numpy.ndarray (n,)

    Raises
    ------
    ValueError
        If a peak is outside (0, 1).

    Notes
    -----
    Source: Milkert, Hyde and Laine, A.1.

    Examples
    --------
    >>> print(vee_values([-1, -0.5, 1, 2], [0.25, 0.5]))
    [1.         0.         1.         1.66666667]
    """
    hat, scales = _vee_parts(check_peaks(peaks, least=2))
    z = (np.asarray(u, dtype=np.float64) + 1) / 2
    total = np.ones(z.shape)
    for peak, scale in zip(hat[:-1], scales, strict=True):
        z = np.minimum(z / peak, (1 - z) / (1 - peak))
        total = total - scale * z
    return total


def vee_jacobian(u, peaks) -> tuple[np.ndarray, np.ndarray]:
    r"""Derivatives of :func:`vee_values` in its peaks and in its argument.

    Parameters
    ----------
    u : array_like (n,)
    peaks : array_like (d + 1,)

    Returns
    -------
    by_peak : numpy.ndarray (d + 1, n)
    by_point : numpy.ndarray (n,)

    Raises
    ------
    ValueError
        If a peak is outside (0, 1).

    Notes
    -----
    Source: ours.

    Examples
    --------
    >>> print(vee_jacobian([0.5], [0.5, 0.5])[1])
    [1.]
    """
    a = check_peaks(peaks, least=2)
    hat, scales = _vee_parts(a)
    z = (np.asarray(u, dtype=np.float64) + 1) / 2
    moved, by_point = wave_gradient(z, hat[:-1], scales)
    result = np.zeros((a.size, z.size))
    result[:-1] = moved
    tail, w = np.zeros(z.size), []
    for peak in hat[:-1]:
        z = np.minimum(z / peak, (1 - z) / (1 - peak))
        w.append(z)
    for i in range(scales.size - 1, 0, -1):  # s_i = prod (1-a_j) a_{j+1}
        tail = tail + scales[i] * w[i]
        result[i + 1] += tail / hat[i + 1]
        result[i] -= tail / (1 - hat[i])
    result[1:] *= -1  # the peaks beyond the first are 1 - a
    return -result, -by_point / 2


def best_wrapped(
    x,
    y,
    depth: int,
    blocks: int,
    rng: Seed,
    starts: int = 6,
    clamp: float = 0.01,
) -> WrappedFit:
    r"""Best fit by V blocks, each between two affine maps.

    Minimises the mean squared error of
    :math:`c+\sum_{j\le k}C_j\,v_j(A_jx+b_j)` over the peaks of the blocks
    and the affine maps. Whatever these are, a block has :math:`2^d` pieces
    on the line.

    Parameters
    ----------
    x, y, depth, rng, starts, clamp
        As :func:`best_peaks`.
    blocks : int
        Their number ``k``, 1 or more.

    Returns
    -------
    WrappedFit
        In the notation of
        :func:`~helpers.linear_regions.networks.block_diagonal_layers`.

    Raises
    ------
    ValueError
        If an argument is outside its range or shapes disagree.

    Notes
    -----
    Outer coefficients are least-squares solutions. Source: ours.

    Examples
    --------
    >>> x = np.linspace(0, 1, 200)
    >>> fit = best_wrapped(x, x**3, 3, 1, rng=0, starts=2)
    >>> bool(fit.mse < 1e-4)
    True
    """
    x, y = _data(x, y)
    _search(depth, starts, clamp)
    if blocks < 1:
        raise ValueError(f"blocks must be 1 or more, got {blocks}")
    rng = as_generator(rng)
    k, m = blocks, depth + 1

    def parts(p):
        return p[: k * m].reshape(k, m), p[k * m : -k], p[-k:]

    def solve(p):
        peaks, A, b = parts(p)
        rows = [vee_values(A[j] * x + b[j], peaks[j]) for j in range(k)]
        design = np.stack([*rows, np.ones(x.size)])
        outer = np.linalg.lstsq(design.T, y, rcond=None)[0]
        return outer, outer @ design - y

    def evaluate(p):
        peaks, A, b = parts(p)
        outer, residual = solve(p)
        weighted = 2 / x.size * residual
        gradient = np.empty(p.size)
        for j in range(k):
            by_peak, by_point = vee_jacobian(A[j] * x + b[j], peaks[j])
            gradient[j * m : (j + 1) * m] = outer[j] * by_peak @ weighted
            gradient[k * m + j] = outer[j] * (by_point * x) @ weighted
            gradient[k * m + k + j] = outer[j] * by_point @ weighted
        return float(np.mean(residual**2)), gradient

    bounds = [(clamp, 1 - clamp)] * (k * m) + [(None, None)] * (2 * k)
    found = []
    for _ in range(starts):
        low, high = np.sort(rng.uniform(-1.2, 1.2, (2, k)), axis=0)
        start = [rng.uniform(0.2, 0.8, k * m), high - low, low]
        found.append(_descend(evaluate, np.concatenate(start), bounds))
    p, mse = min(found, key=lambda one: one[1])
    (peaks, A, b), (outer, _) = parts(p), solve(p)
    return WrappedFit(mse, peaks, A, b, outer[:-1], float(outer[-1]))


def wrapped_outcome(name: str, depth: int, blocks: int, seed: int) -> dict:
    """One configuration of the sweep over wrapped blocks.

    Parameters
    ----------
    name : str
    depth, blocks : int
    seed : int

    Returns
    -------
    dict
        ``mse`` of one start on 500 equispaced points.

    Raises
    ------
    ValueError
        If the name is unknown, or as :func:`best_wrapped`.

    Notes
    -----
    Source: ours.

    Examples
    --------
    >>> bool(wrapped_outcome("x^2", 2, 1, 0)["mse"] < 1e-2)
    True
    """
    x = np.linspace(0, 1, POINTS)
    y = target(name)(x)
    return {"mse": best_wrapped(x, y, depth, blocks, seed, starts=1).mse}
