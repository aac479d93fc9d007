r"""Expectations over one and two standard Gaussian variables.

Two rules. Gauss-Hermite is the textbook rule and converges like
:math:`e^{-c\sqrt N}` when the integrand has singularities off the real line,
as ``tanh`` has. Equally spaced nodes (the trapezoidal rule) converge like
:math:`e^{-cN}` on the same integrands, down to the mass beyond the last node,
because the Gaussian weight makes the integrand vanish with all its derivatives
at both ends. The package uses the
second; the first is kept as an independent witness.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike, NDArray

from helpers.core.activations import Activation, Function
from helpers.core.checks import whole_number
from helpers.core.tolerances import QUADRATURE_TAIL

__all__ = [
    "OutOfReachError",
    "gauss_hermite_nodes",
    "largest_radius",
    "product_expectations",
    "trapezoid_nodes",
]

Rule = tuple[NDArray, NDArray]


class OutOfReachError(ValueError):
    """A norm is too large for the integrals to be accurate."""


MAX_NODES = 2048
"""Most nodes a dimension: one pair of neurons then costs four million
evaluations, a tenth of a second."""

_CHUNK = 1 << 21
_DIGITS = -math.log(QUADRATURE_TAIL)
# one unit beyond the Gaussian tail, for activations that grow
_REACH = math.sqrt(2 * _DIGITS) + 1
# stay clear of the singularity itself, where derivatives blow up
_STRIP_SHARE = 0.9
_SMALLEST_RADIUS = 0.5


def gauss_hermite_nodes(nodes: int) -> Rule:
    r"""Return the Gauss-Hermite rule for a standard Gaussian variable.

    :math:`\mathbb E[f(Z)] \approx \sum_i \omega_i f(z_i)`, exact for
    polynomials of degree up to :math:`2N-1`.

    Parameters
    ----------
    nodes : int
        Number of nodes :math:`N`, from 1 to 360 (beyond, SciPy's and NumPy's
        weights underflow in float64).

    Returns
    -------
    z : ndarray, shape (nodes,)
        Nodes in increasing order.
    omega : ndarray, shape (nodes,)
        Positive weights that sum to one.

    Raises
    ------
    ValueError
        If ``nodes`` is not a whole number in that range.

    Notes
    -----
    Source: the classical rule; "probabilists'" normalisation.

    Examples
    --------
    >>> z, omega = gauss_hermite_nodes(3)
    >>> round(float(omega @ z**4), 12)
    3.0
    """
    nodes = whole_number(nodes, "nodes", 1, 360)
    z, omega = np.polynomial.hermite_e.hermegauss(nodes)
    return z, omega / omega.sum()


def _step(radius: float, strip: float) -> float:
    """Largest step at which the aliasing error is below the tail."""
    entire = math.pi * math.sqrt(2 / _DIGITS)
    if math.isinf(strip):
        return entire / math.sqrt(1 + 2 * radius**2)
    reach = _STRIP_SHARE * strip / radius
    if reach * entire >= 2 * math.pi:
        return entire
    return 2 * math.pi * reach / (_DIGITS + reach**2 / 2)


def largest_radius(activation: Activation) -> float:
    """Largest norm at which quadrature of an activation keeps its accuracy.

    Parameters
    ----------
    activation : Activation
        Smooth activation (no kink).

    Returns
    -------
    float
        Norms up to this one need at most ``MAX_NODES`` nodes a dimension.

    Notes
    -----
    Source: ours, from the step of :func:`trapezoid_nodes`.

    Examples
    --------
    >>> from helpers.core.activations import get_activation
    >>> 20 < largest_radius(get_activation("tanh")) < 30
    True
    """
    coarsest = 2 * _REACH / (MAX_NODES - 1)
    low, high = _SMALLEST_RADIUS, float(MAX_NODES)
    while high - low > _SMALLEST_RADIUS / 2:
        middle = (low + high) / 2
        if _step(middle, activation.strip) >= coarsest:
            low = middle
        else:
            high = middle
    return low


def trapezoid_nodes(radius: float, activation: Activation) -> Rule:
    r"""Return equally spaced nodes good enough for one activation.

    :math:`\mathbb E[f(Z)] \approx \sum_i h\,\phi(ih) f(ih)` with the step
    :math:`h` chosen from the distance between the real line and the nearest
    singularity of :math:`z \mapsto \sigma(rz)`, so that the error is near
    float64's rounding for :math:`f` a product of :math:`\sigma(r z)` or its
    derivatives.

    Parameters
    ----------
    radius : float
        Largest norm :math:`r \ge 0` of a weight vector.
    activation : Activation
        Smooth activation; ``activation.strip`` sets the step.

    Returns
    -------
    z : ndarray, shape (N,)
        Equally spaced nodes, symmetric about zero.
    omega : ndarray, shape (N,)
        Weights.

    Raises
    ------
    ValueError
        If the activation has a kink (no rule of this kind converges).
    OutOfReachError
        If ``radius`` would need more than ``MAX_NODES`` nodes; a ValueError.

    Notes
    -----
    Source: Trefethen and Weideman (2014) for the convergence of the
    trapezoidal rule; the choice of the step is ours.

    Examples
    --------
    >>> from helpers.core.activations import get_activation
    >>> z, omega = trapezoid_nodes(1.0, get_activation("tanh"))
    >>> bool(abs(omega @ z**4 - 3) < 1e-12)
    True
    """
    if activation.kink or activation.strip <= 0:
        raise ValueError(
            f"quadrature needs a smooth activation; {activation.name} has a "
            "kink"
        )
    radius = max(float(radius), _SMALLEST_RADIUS)
    half = math.ceil(_REACH / _step(radius, activation.strip))
    if 2 * half + 1 > MAX_NODES:
        raise OutOfReachError(
            f"radius must be at most {largest_radius(activation):.4g} for "
            f"quadrature of {activation.name}, got {radius:.6g}"
        )
    step = _REACH / half
    z = step * np.arange(-half, half + 1)
    return z, step * np.exp(-(z**2) / 2) / math.sqrt(2 * math.pi)


def _rungs(radius: NDArray) -> NDArray:
    """Round radii up to a ladder of ratio sqrt(2).

    A pair's rule then depends on the pair alone, not on the batch it came in.
    """
    radius = np.maximum(radius, _SMALLEST_RADIUS)
    return 2.0 ** (np.ceil(2 * np.log2(radius)) / 2)


def product_expectations(
    pairs: Sequence[tuple[Function, Function]],
    r1: ArrayLike,
    r2: ArrayLike,
    u: ArrayLike,
    activation: Activation,
    *,
    rule: Rule | None = None,
) -> list[NDArray]:
    r"""Compute :math:`\mathbb E[f(r_1X)\,h(r_2Y)]` for several pairs of functions.

    :math:`X` and :math:`Y` are standard Gaussian with correlation
    :math:`u`; the double integral is a tensor rule in
    :math:`X = z_1`, :math:`Y = uz_1 + \sqrt{1-u^2}\,z_2`.

    Parameters
    ----------
    pairs : sequence of (callable, callable)
        The functions :math:`(f, h)`, vectorised.
    r1, r2 : array_like
        Norms, 0 or larger.
    u : array_like
        Cosines in :math:`[-1, 1]`. All three broadcast together.
    activation : Activation
        Sets the nodes, see :func:`trapezoid_nodes`.
    rule : (ndarray, ndarray), optional
        Nodes and weights to use instead, for instance Gauss-Hermite.

    Returns
    -------
    list of ndarray
        One array a pair of functions, of the broadcast shape.

    Notes
    -----
    Costs :math:`O(N^2)` evaluations a triple, with
    :math:`N \propto \max(r_1, r_2)`.

    Source: the change of variables is the paper's proof of its derivative
    rule, Simsek et al. (2023), Lemma F.1.

    Examples
    --------
    >>> import numpy as np
    >>> from helpers.core.activations import get_activation
    >>> tanh = get_activation("tanh")
    >>> [cosine] = product_expectations(
    ...     [(np.asarray, np.asarray)], 1.0, 1.0, 0.5, tanh
    ... )
    >>> round(float(cosine), 12)
    0.5
    """
    r1, r2, u = np.broadcast_arrays(r1, r2, u)
    shape = r1.shape
    r1, r2, u = (np.ravel(x).astype(float) for x in (r1, r2, u))
    out = np.zeros((len(pairs), r1.size))
    rungs = _rungs(np.maximum(r1, r2)) if rule is None else np.zeros(r1.size)
    for rung in np.unique(rungs):
        nodes = trapezoid_nodes(rung, activation) if rule is None else rule
        members = np.flatnonzero(rungs == rung)
        size = max(1, _CHUNK // nodes[0].size ** 2)
        for start in range(0, members.size, size):
            some = members[start : start + size]
            out[:, some] = _tensor_rule(
                pairs, r1[some], r2[some], u[some], nodes
            )
    return [row.reshape(shape) for row in out]


def _tensor_rule(
    pairs: Sequence[tuple[Function, Function]],
    r1: NDArray,
    r2: NDArray,
    u: NDArray,
    rule: Rule,
) -> NDArray:
    z, omega = rule
    first = r1[:, None] * z
    across = u[:, None] * z
    along = np.sqrt((1 - u) * (1 + u))[:, None] * z
    second = r2[:, None, None] * (across[:, :, None] + along[:, None, :])
    inner: dict[int, NDArray] = {}
    out = np.empty((len(pairs), r1.size))
    for row, (f, h) in zip(out, pairs, strict=True):
        if id(h) not in inner:
            inner[id(h)] = h(second) @ omega
        row[:] = (f(first) * inner[id(h)]) @ omega
    return out
