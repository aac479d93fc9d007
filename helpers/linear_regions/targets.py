r"""The one-dimensional target functions of Part II, in one place.

Each target maps ``[0, 1]`` into ``[0, 1]``, vanishes at 0 and is strictly
convex or strictly concave (:math:`x^p` and the sine with one degenerate end
each). The *mode* says how a sum of waves approaches it: ``"concave"`` adds
waves to ``x``, ``"convex"`` subtracts them.

Decided on purpose: :math:`\tanh3x` is the paper's function as printed, so it
ends at :math:`\tanh3=0.99505` and not at 1, and the paper's ":math:`\sin x`"
is a quarter of a period, :math:`\sin(\pi x/2)`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from types import MappingProxyType

import numpy as np

__all__ = ["TARGETS", "Target", "target"]

Function = Callable[[np.ndarray], np.ndarray]


@dataclass(frozen=True)
class Target:
    r"""A target on ``[0, 1]`` with two derivatives.

    Calling it evaluates the function: ``target("x^3")(x)``.

    Attributes
    ----------
    name : str
        Key in :data:`TARGETS`.
    label : str
        The formula in TeX, between dollars.
    value, first, second : callable
        The function and its first and second derivative, elementwise,
        float64.
    mode : {"convex", "concave"}
        Whether waves are subtracted or added.
    """

    name: str
    label: str
    value: Function
    first: Function
    second: Function
    mode: str

    def __call__(self, x):
        """Values at ``x``, of any shape."""
        return self.value(np.asarray(x, dtype=float))


def _power(p: int) -> Target:
    return Target(
        name=f"x^{p}",
        label=f"$x^{{{p}}}$",
        value=lambda x: np.asarray(x, dtype=float) ** p,
        first=lambda x: p * np.asarray(x, dtype=float) ** (p - 1),
        second=lambda x: p * (p - 1) * np.asarray(x, dtype=float) ** (p - 2),
        mode="convex",
    )


HALF_PI = np.pi / 2
SINE = Target(
    name="sin",
    label=r"$\sin(\pi x/2)$",
    value=lambda x: np.sin(HALF_PI * np.asarray(x, dtype=float)),
    first=lambda x: HALF_PI * np.cos(HALF_PI * np.asarray(x, dtype=float)),
    second=lambda x: (
        -(HALF_PI**2) * np.sin(HALF_PI * np.asarray(x, dtype=float))
    ),
    mode="concave",
)
TANH = Target(
    name="tanh",
    label=r"$\tanh 3x$",
    value=lambda x: np.tanh(3 * np.asarray(x, dtype=float)),
    first=lambda x: 3 / np.cosh(3 * np.asarray(x, dtype=float)) ** 2,
    second=lambda x: (
        -18
        * np.tanh(3 * np.asarray(x, dtype=float))
        / np.cosh(3 * np.asarray(x, dtype=float)) ** 2
    ),
    mode="concave",
)
EXP = Target(
    name="exp",
    label=r"$(e^x-1-x)/(e-2)$",
    value=lambda x: (
        (np.expm1(np.asarray(x, dtype=float)) - np.asarray(x, dtype=float))
        / (np.e - 2)
    ),
    first=lambda x: np.expm1(np.asarray(x, dtype=float)) / (np.e - 2),
    second=lambda x: np.exp(np.asarray(x, dtype=float)) / (np.e - 2),
    mode="convex",
)

TARGETS = MappingProxyType(
    {
        one.name: one
        for one in (_power(2), _power(3), _power(11), SINE, TANH, EXP)
    }
)
"""Name to target: ``x^2``, ``x^3``, ``x^11``, ``sin``, ``tanh``, ``exp``."""


def target(name: str) -> Target:
    """The target of that name.

    Parameters
    ----------
    name : str
        One of the keys of :data:`TARGETS`.

    Returns
    -------
    Target

    Raises
    ------
    ValueError
        If there is no such target.

    Notes
    -----
    Source: Milkert, Hyde and Laine (2025), section 4, for the powers 3 and
    11, the sine and the hyperbolic tangent; the other two are ours.

    Examples
    --------
    >>> cube = target("x^3")
    >>> print(cube(0.5), cube.first(0.5), cube.second(0.5), cube.mode)
    0.125 0.75 3.0 convex
    """
    if name not in TARGETS:
        raise ValueError(
            f"name must be one of {', '.join(TARGETS)}, got {name!r}"
        )
    return TARGETS[name]
