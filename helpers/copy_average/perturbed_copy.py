r"""Perturbed copies along a real number of neurons, and their thresholds.

The symmetric family of :mod:`helpers.copy_average.perturbed_family` is
followed from exact copies, as many as the teacher has neurons, down to fewer.
On the way it becomes worse than the best copy-average point, and then no
minimum any more, at two widths that need not be whole.
"""

from __future__ import annotations

import math
from functools import lru_cache
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.optimize import brentq

from helpers.copy_average.perturbed_family import (
    PerturbedCopy,
    checked_widths,
    family_equations,
    family_loss,
)
from helpers.copy_average.perturbed_spectrum import unstable_block
from helpers.core.tolerances import NEWTON_STEP

__all__ = [
    "CopyEnergy",
    "PerturbedThresholds",
    "copy_energy",
    "perturbed_copy_family",
    "perturbed_copy_thresholds",
    "threshold_constant",
]

_HALF = math.sqrt(0.5)
_RATIO = 0.88  # of widths, from one stored point of the family to the next
_NEWTON_STEPS = 7
_MOST_PARTS = 2**12
_NO_FOLD = 20  # up to this k the family reaches n = 1 without turning back
_SERIES_BELOW = 1 / 8
# coefficients of x**3, x**5, ... of the arcsine
_SERIES = [math.comb(2 * m, m) / (4**m * (2 * m + 1)) for m in range(1, 10)]
_GRID, _TOP = 50, 0.98  # widths at which a change of sign is looked for


def _cubic(x: float) -> tuple[float, float]:
    """The arcsine less its linear part, and the derivative of that."""
    root = math.sqrt(1 - x * x)
    value = math.asin(x) - x
    if abs(x) < _SERIES_BELOW:
        value = x**3 * np.polynomial.polynomial.polyval(x * x, _SERIES)
    return value, x * x / (root * (1 + root))


def _without_linear_part(
    a: float, A: float, B: float, C: float, k: int, n: float
) -> NDArray:
    """Combinations of the equations, the first two free of cancellation.

    Copies that lean far change little but the higher Hermite parts of the
    student. In two combinations of the four equations the linear parts
    cancel; they are left out before rounding can see them.
    """
    S = A * A + (n - 1) * B * B + (k - n) * C * C
    Q = 2 * A * B + (n - 2) * B * B + (k - n) * C * C
    (f0, f1), (g0, g1) = _cubic(S), _cubic(Q)
    (p0, p1), (q0, q1), (u0, u1) = (_cubic(_HALF * x) for x in (A, B, C))
    near, rest, total = A + (n - 2) * B, k - n, A + (n - 1) * B
    in_B = a * (f1 * B + g1 * near) - _HALF * q1
    in_C = a * (f1 + (n - 1) * g1) * C - _HALF * u1
    volume = a * (f0 + (n - 1) * g0) - p0 - (n - 1) * q0 - rest * u0
    return np.array(
        [
            volume - total * in_B - rest * C * in_C,
            a * (A - B) * (f1 - g1) - _HALF * (p1 - q1),
            a * total - _HALF + in_B,
            a * n * C - _HALF + in_C,
        ]
    )


def _system(point: NDArray, k: int, n: float) -> tuple[NDArray, ...]:
    """What Newton's method solves, with its derivatives, rows of order 1."""
    _, jacobian, in_n = family_equations(*point, k, n)
    _, A, B, C = point
    mix = np.eye(4)
    mix[0, 2:] = -(A + (n - 1) * B), -(k - n) * C
    mix[1, 2] = -1
    jacobian = mix @ jacobian
    scale = np.abs(jacobian).max(axis=1)
    values = _without_linear_part(*point, k, n)
    return values / scale, jacobian / scale[:, None], mix @ in_n / scale


def _newton(point: NDArray, k: int, n: float) -> NDArray | None:
    """Newton's method, or ``None`` if it does not converge at once."""
    for _ in range(_NEWTON_STEPS):
        try:
            values, jacobian, _ = _system(point, k, n)
        except ValueError:  # stepped out of the unit ball
            return None
        step = np.linalg.solve(jacobian, values)
        point = point - step
        if np.abs(step).max() < NEWTON_STEP * max(1.0, abs(point[0])):
            return point
    return None


def _follow(point: NDArray, k: int, n: float, target: float) -> NDArray:
    """Tangent and Newton steps from ``n`` to ``target``."""
    parts = 1
    while n != target and parts < _MOST_PARTS:
        _, jacobian, in_n = _system(point, k, n)
        near = target if parts == 1 else n + (target - n) / parts
        tangent = np.linalg.solve(jacobian, in_n)
        found = _newton(point - (near - n) * tangent, k, near)
        if found is None:
            parts *= 2
        else:
            point, n, parts = found, near, max(1, parts // 2)
    if n != target:
        raise ArithmeticError(f"the family turns back at k={k}, n={n:.6g}")
    return point


@lru_cache(maxsize=8192)
def _node(k: int, number: int) -> tuple[float, ...]:
    """The point after ``number`` steps of the continuation from n = k."""
    if number == 0:
        # exact copies; C is what an uncopied neuron would begin to pull
        return tuple(_newton(np.array([1, _HALF, 0, _HALF / k]), k, k))
    start = np.array(_node(k, number - 1))
    n = k * _RATIO ** (number - 1)
    lowest = 1.0 if k <= _NO_FOLD else 2.0
    return tuple(_follow(start, k, n, max(lowest, _RATIO * n)))


@lru_cache(maxsize=8192)
def _lifted(k: int, n: float) -> tuple[float, ...]:
    if n > 2 or k <= _NO_FOLD:
        number = int(math.log(n / k) / math.log(_RATIO))
        near = max(n, k * _RATIO**number)
        point = _follow(np.array(_node(k, number)), k, near, n)
    else:
        # the average of all; B is what a second neuron would begin to see
        lift = _HALF / k
        average = _newton(np.array([k, lift, -lift, lift]), k, 1.0)
        point = _follow(average, k, 1.0, n)
    return tuple(float(x) for x in point)


def perturbed_copy_family(k: int, n: float) -> PerturbedCopy:
    r"""Follow exact copies, ``n = k``, down to fewer student neurons.

    At :math:`n=k` the student is the teacher. The four equations of
    :func:`family_equations
    <helpers.copy_average.perturbed_family.family_equations>` determine how the point moves as ``n``, a real
    number, falls. At whole ``n`` it is a critical point of the population
    loss of ``n`` neurons: a *perturbed n-copy*. For ``k`` above 20 the family
    turns back a little above :math:`n=2`; for :math:`n\le2` it is followed
    upwards from the average of all teacher neurons at :math:`n=1`.

    Parameters
    ----------
    k : int
        Neurons of the unit-orthonormal erf teacher, 1 or more.
    n : float
        Student neurons, real, from 1 to ``k``.

    Returns
    -------
    PerturbedCopy
        At :math:`n=k` its ``gamma``, and at :math:`n=1` its ``beta``, weigh
        nothing: they are the limits.

    Raises
    ------
    ValueError
        If ``k`` or ``n`` is out of range.
    ArithmeticError
        For ``k`` above 20 and :math:`2<n<2.13`, in the turn of the family.

    Notes
    -----
    Continuation by tangent and Newton steps, about :math:`20\log_{10}(k/n)`
    of them at some tenths of a millisecond; points on the way are kept for
    the next call. The outgoing weight and all signs are for neurons that lean
    with a positive weight; erf's sign flips give the others.

    Source: ours, for the solutions that Simsek et al. (2023), section 1,
    find by gradient flow.

    Examples
    --------
    >>> p = perturbed_copy_family(12, 8)
    >>> [round(x, 4) for x in (p.a, p.alpha, p.beta, p.gamma)]
    [1.556, 0.7466, -0.0247, 0.0708]
    >>> round(p.loss, 6)
    0.076087
    """
    k, n = checked_widths(k, n)
    a, A, B, C = _lifted(k, n)
    S = A * A + (n - 1) * B * B + (k - n) * C * C
    alpha, beta, gamma = np.array([A, B, C]) / math.sqrt(1 - S)
    values, *_ = family_equations(a, A, B, C, k, n)
    loss = float(family_loss(a, alpha, beta, gamma, k, n))
    return PerturbedCopy(
        k,
        n,
        a,
        float(alpha),
        float(beta),
        float(gamma),
        loss,
        float(np.abs(values).max()),
    )


class PerturbedThresholds(NamedTuple):
    r"""Where the perturbed n-copy changes its role, in neurons.

    Parameters
    ----------
    n_c : float
        The point is a local minimum for ``n`` above, a saddle below.
    n_cross : float
        Its loss is below that of the best copy-average point for ``n``
        above; ``nan`` if it nowhere is.
    """

    n_c: float
    n_cross: float


def _average_loss(size: float) -> float:
    """The least loss of one neuron for a real number of neurons."""
    return size / 3 - 2 * size**2 / math.pi * math.asin(1 / (2 * size))


def _sign_change(f, grid: NDArray) -> float:
    """Zero of f between the first two grid points where its sign changes."""
    before = grid[0], f(grid[0])
    for x in grid[1:]:
        value = f(x)
        if value * before[1] < 0:
            return float(brentq(f, x, before[0]))
        before = x, value
    return math.nan


@lru_cache(maxsize=256)
def perturbed_copy_thresholds(k: int) -> PerturbedThresholds:
    r"""Compute where the perturbed n-copy becomes stable, and where it wins.

    Both are zeros in the real number ``n`` along
    :func:`perturbed_copy_family`: of the lowest eigenvalue of
    :func:`unstable_block
    <helpers.copy_average.perturbed_spectrum.unstable_block>`, and of the loss less that of the best copy-average
    point, :math:`L^*(k-n+1)`. The first zeros met from :math:`n=k` downwards
    count.

    Parameters
    ----------
    k : int
        Neurons of the unit-orthonormal erf teacher, 3 or more.

    Returns
    -------
    PerturbedThresholds
        Entries are ``nan`` where there is no change of sign for
        :math:`2<n<k`.

    Raises
    ------
    ValueError
        If ``k`` is not a whole number >= 3.

    Notes
    -----
    Source: ours.

    Examples
    --------
    >>> n_c, n_cross = perturbed_copy_thresholds(12)
    >>> round(n_c, 3), round(n_cross, 3)
    (6.329, 9.105)
    """
    k, _ = checked_widths(k, 1)
    if k < 3:
        raise ValueError(f"k must be 3 or more, got {k}")

    def lowest(n: float) -> float:
        block = unstable_block(perturbed_copy_family(k, n))
        return float(np.linalg.eigvalsh(block)[0])

    def excess(n: float) -> float:
        point = perturbed_copy_family(k, n)
        return point.loss - _average_loss(k - n + 1)

    grid = np.geomspace(_TOP * k, 2, _GRID)[:-1]
    return PerturbedThresholds(
        _sign_change(lowest, grid), _sign_change(excess, grid)
    )


class CopyEnergy(NamedTuple):
    r"""What a copy of a given voice costs, to leading order in many copies.

    Parameters
    ----------
    a : ndarray
        Outgoing weight.
    value : ndarray
        :math:`e(a)=\min_A[a^2\psi(A^2)-2a\psi(A/\sqrt2)]`.
    slope, curvature : ndarray
        :math:`e'(a)` and :math:`e''(a)`.
    """

    a: NDArray
    value: NDArray
    slope: NDArray
    curvature: NDArray


def copy_energy(A: ArrayLike) -> CopyEnergy:
    r"""Compute the energy of a copy, along the best lifted coefficient.

    With :math:`\psi(x)=\arcsin x-x`, the part of the erf interaction that
    is not linear, a copy of lifted own coefficient ``A`` and outgoing weight
    ``a`` contributes :math:`a^2\psi(A^2)-2a\psi(A/\sqrt2)` to
    :math:`\frac\pi2L`. Given ``A``, the ``a`` for which ``A`` is best is
    :math:`a=\psi'(A/\sqrt2)/(\sqrt2A\,\psi'(A^2))`.

    Parameters
    ----------
    A : array_like
        Above 0 and at most :math:`1/\sqrt2`, the exact copy.

    Returns
    -------
    CopyEnergy

    Raises
    ------
    ValueError
        If an entry of ``A`` is out of range.

    Notes
    -----
    Source: ours.

    Examples
    --------
    >>> exact = copy_energy(0.5**0.5)
    >>> round(float(exact.a), 6), bool(abs(exact.slope) < 1e-12)
    (1.0, True)
    """
    A = np.asarray(A, dtype=float)
    if not np.all((A > 0) & (A <= _HALF)):
        raise ValueError(f"A must be above 0 and at most sqrt(1/2), got {A}")
    own, cross = A * A, _HALF * A
    f, g = np.arcsin(own) - own, np.arcsin(cross) - cross
    f1, g1 = 1 / np.sqrt(1 - own**2) - 1, 1 / np.sqrt(1 - cross**2) - 1
    f2, g2 = own / (1 - own**2) ** 1.5, cross / (1 - cross**2) ** 1.5
    a = _HALF * g1 / (A * f1)
    mixed = 4 * a * A * f1 - 2 * _HALF * g1
    in_A = 2 * a * a * f1 + 4 * a * a * own * f2 - a * g2
    return CopyEnergy(
        a,
        a * a * f - 2 * a * g,
        2 * a * f - 2 * g,
        2 * f - mixed**2 / in_A,
    )


def threshold_constant() -> float:
    r"""Compute the limit of :math:`n_c/k^{3/5}` for wide teachers.

    At :math:`n=xk^{3/5}` the copies pay :math:`e(a)+1/(48x^5a^4)` each, the
    second term for the direction that all of them share. Moves that they
    make unlike see :math:`e` alone, so that they are unstable beyond the
    inflection :math:`e''(a)=0`; there, :math:`12\,x^5a^5e'(a)=1`.

    Returns
    -------
    float

    Notes
    -----
    A formal expansion with corrections of order :math:`k^{-1/5}`.

    Source: ours.

    Examples
    --------
    >>> round(threshold_constant(), 4)
    1.6989
    """
    A = brentq(lambda A: float(copy_energy(A).curvature), _HALF / 2, _HALF)
    point = copy_energy(A)
    return float((12 * point.a**5 * point.slope) ** -0.2)
