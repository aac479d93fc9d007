r"""The activation functions of the book, with two derivatives each.

One frozen object an activation: its value, its first and second derivative,
and the facts that theorems ask for (is it odd, is it strictly increasing,
where does it bend). Every function is vectorised, keeps ``NaN``, and has the
right limit at plus and minus infinity.

The second derivative of a piecewise linear activation is a point mass at
zero. Arrays cannot hold one, so ``second_derivative`` returns its regular
part, which is zero, and ``jump`` carries the mass: the distribution is
``second_derivative(x) + jump * delta(x)``. Whoever integrates has to add
the second term; ``kink`` says when there is one.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import lru_cache
from types import MappingProxyType

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import erf, expit, ndtr

__all__ = ["ACTIVATIONS", "Activation", "get_activation"]

Function = Callable[[ArrayLike], NDArray]

# Beyond these arguments exp(-x**2 / 2) and exp(-|x|) are zero in float64, so
# that clipping there changes nothing but keeps "infinity times zero" out.
_GAUSSIAN_ZERO = 40.0
_EXPONENTIAL_ZERO = 800.0
_DENSITY_AT_ZERO = 1 / math.sqrt(2 * math.pi)


@dataclass(frozen=True)
class Activation:
    r"""A function :math:`\sigma` with what the theorems need to know of it.

    Parameters
    ----------
    name : str
        The name under which :func:`get_activation` finds it.
    value, derivative, second_derivative : callable
        Vectorised maps from an array to a float64 array of the same shape.
    odd : bool
        Whether :math:`\sigma(-x) = -\sigma(x)`.
    strictly_increasing : bool
        Whether :math:`\sigma` is strictly increasing on the whole line.
    homogeneous : bool
        Whether :math:`\sigma(cx) = c\,\sigma(x)` for every :math:`c > 0`.
    jump : float
        Jump of :math:`\sigma'` at zero, the mass of :math:`\sigma''` there.
    strip : float
        Distance from the real line to the nearest singularity of
        :math:`\sigma` in the complex plane; ``inf`` for entire functions and
        ``0`` where there is a kink. It sets how fast quadrature converges.
    slope : float or None
        Slope on the negative half line, where that is a parameter.
    """

    name: str
    value: Function = field(repr=False)
    derivative: Function = field(repr=False)
    second_derivative: Function = field(repr=False)
    odd: bool = False
    strictly_increasing: bool = False
    homogeneous: bool = False
    jump: float = 0.0
    strip: float = math.inf
    slope: float | None = None

    @property
    def kink(self) -> bool:
        """Whether the first derivative jumps at zero."""
        return self.jump != 0

    def __call__(self, x: ArrayLike) -> NDArray:
        """Return the value at ``x``."""
        return self.value(x)

    def __reduce__(self):
        """Travel to another process by name, where the name is enough."""
        if ACTIVATIONS.get(self.name) is self:
            return _rebuild, (self.name, None)
        if self.name == "leaky_relu" and self is _leaky_relu(self.slope):
            return _rebuild, (self.name, self.slope)
        return super().__reduce__()


def _real(x: ArrayLike) -> NDArray:
    return np.asarray(x, dtype=float)


def _density(x: NDArray) -> NDArray:
    x = np.clip(x, -_GAUSSIAN_ZERO, _GAUSSIAN_ZERO)
    return _DENSITY_AT_ZERO * np.exp(-(x**2) / 2)


def _times_density(x: NDArray, power: int) -> NDArray:
    x = np.clip(x, -_GAUSSIAN_ZERO, _GAUSSIAN_ZERO)
    return x**power * _density(x)


def _logistic_slope(x: NDArray) -> NDArray:
    decay = np.exp(-np.abs(x))
    return decay / (1 + decay) ** 2


def _logistic_curvature(x: NDArray) -> NDArray:
    return -_logistic_slope(x) * np.tanh(x / 2)


def _identity() -> Activation:
    return Activation(
        "identity",
        lambda x: _real(x).copy(),
        lambda x: _constant(x, 1.0),
        lambda x: _constant(x, 0.0),
        odd=True,
        strictly_increasing=True,
        homogeneous=True,
    )


def _constant(x: ArrayLike, number: float) -> NDArray:
    x = _real(x)
    return np.where(np.isnan(x), x, number)


def _piecewise_linear(name: str, slope: float) -> Activation:
    def value(x: ArrayLike) -> NDArray:
        x = _real(x)
        negative = slope * np.minimum(x, 0.0) if slope else 0.0
        return np.maximum(x, 0.0) + negative

    def derivative(x: ArrayLike) -> NDArray:
        x = _real(x)
        return np.where(np.isnan(x), x, np.where(x > 0, 1.0, slope))

    return Activation(
        name,
        value,
        derivative,
        lambda x: _constant(x, 0.0),
        strictly_increasing=slope > 0,
        homogeneous=True,
        jump=1.0 - slope,
        strip=0.0,
        slope=None if name == "relu" else slope,
    )


def _erf() -> Activation:
    return Activation(
        "erf",
        lambda x: erf(_real(x) / math.sqrt(2)),
        lambda x: 2 * _density(_real(x)),
        lambda x: -2 * _times_density(_real(x), 1),
        odd=True,
        strictly_increasing=True,
    )


def _tanh() -> Activation:
    return Activation(
        "tanh",
        lambda x: np.tanh(_real(x)),
        lambda x: 4 * _logistic_slope(2 * _real(x)),
        lambda x: 8 * _logistic_curvature(2 * _real(x)),
        odd=True,
        strictly_increasing=True,
        strip=math.pi / 2,
    )


def _sigmoid() -> Activation:
    return Activation(
        "sigmoid",
        lambda x: expit(_real(x)),
        lambda x: _logistic_slope(_real(x)),
        lambda x: _logistic_curvature(_real(x)),
        strictly_increasing=True,
        strip=math.pi,
    )


def _softplus_value(x: ArrayLike) -> NDArray:
    x = _real(x)
    return np.maximum(x, 0.0) + np.log1p(np.exp(-np.abs(x)))


def _softplus() -> Activation:
    return Activation(
        "softplus",
        _softplus_value,
        lambda x: expit(_real(x)),
        lambda x: _logistic_slope(_real(x)),
        strictly_increasing=True,
        strip=math.pi,
    )


def _gelu() -> Activation:
    def value(x: ArrayLike) -> NDArray:
        x = np.maximum(_real(x), -_GAUSSIAN_ZERO)
        return x * ndtr(x)

    def derivative(x: ArrayLike) -> NDArray:
        x = _real(x)
        return ndtr(x) + _times_density(x, 1)

    def second_derivative(x: ArrayLike) -> NDArray:
        x = _real(x)
        return 2 * _density(x) - _times_density(x, 2)

    return Activation("gelu", value, derivative, second_derivative)


def _silu() -> Activation:
    def value(x: ArrayLike) -> NDArray:
        x = np.maximum(_real(x), -_EXPONENTIAL_ZERO)
        return x * expit(x)

    def derivative(x: ArrayLike) -> NDArray:
        x = np.clip(_real(x), -_EXPONENTIAL_ZERO, _EXPONENTIAL_ZERO)
        return expit(x) + x * _logistic_slope(x)

    def second_derivative(x: ArrayLike) -> NDArray:
        x = np.clip(_real(x), -_EXPONENTIAL_ZERO, _EXPONENTIAL_ZERO)
        return 2 * _logistic_slope(x) + x * _logistic_curvature(x)

    return Activation(
        "silu", value, derivative, second_derivative, strip=math.pi
    )


def _square() -> Activation:
    return Activation(
        "square",
        lambda x: _real(x) ** 2,
        lambda x: 2 * _real(x),
        lambda x: _constant(x, 2.0),
    )


DEFAULT_LEAKY_SLOPE = 0.01

ACTIVATIONS = MappingProxyType(
    {
        activation.name: activation
        for activation in (
            _piecewise_linear("relu", 0.0),
            _piecewise_linear("leaky_relu", DEFAULT_LEAKY_SLOPE),
            _erf(),
            _tanh(),
            _sigmoid(),
            _softplus(),
            _gelu(),
            _silu(),
            _identity(),
            _square(),
        )
    }
)
"""Every activation by name. ``erf`` means ``erf(x / sqrt(2))``, ``gelu`` is
the exact ``x * Phi(x)``, and ``square`` is here for controls that must fail.
"""


@lru_cache(maxsize=64)
def _leaky_relu(slope: float) -> Activation:
    return _piecewise_linear("leaky_relu", slope)


def _rebuild(name: str, slope: float | None) -> Activation:
    return get_activation(name, slope=slope)


def get_activation(
    activation: str | Activation, *, slope: float | None = None
) -> Activation:
    r"""Look an activation up by name.

    Parameters
    ----------
    activation : str or Activation
        One of the names in ``ACTIVATIONS``; an ``Activation`` is returned
        as it is.
    slope : float, optional
        Slope of ``leaky_relu`` on the negative half line, in
        :math:`[0, 1)`; 0.01 when it is not given. No other activation
        takes it.

    Returns
    -------
    Activation

    Raises
    ------
    ValueError
        If the name is unknown, if ``slope`` is out of range, or if it is
        given for an activation that has none.

    Notes
    -----
    ``erf`` is :math:`\operatorname{erf}(x/\sqrt2) = 2\Phi(x) - 1`, the
    scaling in which the formulas of the copy-or-average papers are short.
    At a kink the derivative is the left one, so that ``relu`` has
    derivative 0 at 0, as automatic differentiation has it.

    Source: the usual definitions; the scaling of ``erf`` is that of Saad and
    Solla (1995) and of Simsek et al. (2023).

    Examples
    --------
    >>> get_activation("erf").odd
    True
    >>> get_activation("leaky_relu", slope=0.25)([-4.0, 4.0]).tolist()
    [-1.0, 4.0]
    >>> get_activation("relu").jump
    1.0
    """
    if isinstance(activation, Activation):
        if slope is not None:
            raise ValueError("slope goes with a name, not with an Activation")
        return activation
    if not isinstance(activation, str) or activation not in ACTIVATIONS:
        allowed = ", ".join(sorted(ACTIVATIONS))
        raise ValueError(
            f"activation must be one of {allowed}; got {activation!r}"
        )
    if slope is None:
        return ACTIVATIONS[activation]
    if activation != "leaky_relu":
        raise ValueError(f"slope belongs to leaky_relu, not to {activation}")
    if not 0 <= slope < 1:
        raise ValueError(f"slope must lie in [0, 1), got {slope!r}")
    return _leaky_relu(float(slope))
