r"""Closed forms of the interaction of two neurons.

Each is a function of the two squared norms :math:`q_1, q_2`, the inner
product :math:`c` and the Gram determinant ``gram`` :math:`= q_1q_2 - c^2` of
the two weight vectors. Written so, vanishing norms and parallel vectors are
no special cases, nothing has to be clipped, and the smooth ones accept
complex arguments (a complex step differentiates them exactly).

Notes
-----
Source: Williams (1997) for erf; Cho and Saul (2009) for ReLU; leaky ReLU is a
mixture of ReLU and the identity; Tsuchida et al. (2021) for GELU, derived here by Stein's lemma,
twice, and a Gaussian tilt. Simsek et al. (2023), section 3, for their role.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from helpers.core.activations import ACTIVATIONS, Activation

__all__ = ["ClosedForm", "PairExpectations", "closed_form"]


class PairExpectations(NamedTuple):
    r"""Three expectations over a pair of neurons.

    They are all that the loss and its weight gradient need, because
    :math:`\nabla_{w_1}\mathbb E[\sigma(w_1\cdot x)\sigma(w_2\cdot x)]`
    is ``curvature * w1 + slope * w2``.

    Parameters
    ----------
    value : ndarray
        :math:`\mathbb E[\sigma(w_1\cdot x)\,\sigma(w_2\cdot x)]`.
    curvature : ndarray
        :math:`\mathbb E[\sigma''(w_1\cdot x)\,\sigma(w_2\cdot x)]`.
    slope : ndarray
        :math:`\mathbb E[\sigma'(w_1\cdot x)\,\sigma'(w_2\cdot x)]`.
    """

    value: NDArray
    curvature: NDArray
    slope: NDArray


def _erf_pair(q1, q2, c, gram) -> PairExpectations:
    root = np.sqrt(1 + q1 + q2 + gram)
    return PairExpectations(
        2 / math.pi * np.arctan(c / root),
        -2 / math.pi * c / ((1 + q1) * root),
        2 / math.pi / root,
    )


def _erf_second(q1, q2, c, gram) -> NDArray:
    return 2 / math.pi * c / (1 + q1 + q2 + gram) ** 1.5


def _relu_pair(q1, q2, c, gram) -> PairExpectations:
    root = np.sqrt(np.maximum(gram, 0.0))
    half_turn = math.pi - np.arctan2(root, c)
    alive = (q1 > 0) & (q2 > 0)
    return PairExpectations(
        (root + half_turn * c) / (2 * math.pi),
        np.where(alive, root, 0.0) / (2 * math.pi * np.where(q1 > 0, q1, 1.0)),
        np.where(alive, half_turn, 0.0) / (2 * math.pi),
    )


def _relu_second(q1, q2, c, gram) -> NDArray:
    with np.errstate(divide="ignore"):
        return 1 / (2 * math.pi * np.sqrt(np.maximum(gram, 0.0)))


def _gelu_pair(q1, q2, c, gram) -> PairExpectations:
    d1, d2 = 1 + q1, 1 + q2
    delta = 1 + q1 + q2 + gram
    root = np.sqrt(delta)
    both = 1 / d1 + 1 / d2
    numerator = gram + c**2 * both
    turn = np.arctan(c / root)
    value = c / 4 + (c * turn + numerator / root) / (2 * math.pi)
    curvature = (
        q2 - c**2 / d1**2 - c**2 / (2 * d1) - numerator * d2 / (2 * delta)
    ) / (math.pi * root)
    slope = 0.25 + (
        turn + c * (2 * both - 1) / root + c * numerator / (delta * root)
    ) / (2 * math.pi)
    return PairExpectations(value, curvature, slope)


def _gelu_second(q1, q2, c, gram) -> NDArray:
    d1, d2 = 1 + q1, 1 + q2
    delta = 1 + q1 + q2 + gram
    both = 1 / d1 + 1 / d2
    numerator = gram + c**2 * both
    excess = 2 * both - 1
    bracket = (
        1
        + excess
        + (excess * c**2 + numerator + 2 * c**2 * (both - 1)) / delta
        + 3 * c**2 * numerator / delta**2
    )
    return bracket / (2 * math.pi * np.sqrt(delta))


def _identity_pair(q1, q2, c, gram) -> PairExpectations:
    return PairExpectations(c, 0 * c, 1 + 0 * c)


def _square_pair(q1, q2, c, gram) -> PairExpectations:
    return PairExpectations(q1 * q2 + 2 * c**2, 2 * q2 + 0 * c, 4 * c)


def _leaky_pair(slope: float, *gram_entries) -> PairExpectations:
    bend = (1 - slope) ** 2
    relu = _relu_pair(*gram_entries)
    return PairExpectations(
        slope * gram_entries[2] + bend * relu.value,
        bend * relu.curvature,
        slope + bend * relu.slope,
    )


class ClosedForm(NamedTuple):
    """The functions ``pair`` and ``second`` of ``(q1, q2, c, gram)``.

    ``pair`` returns :class:`PairExpectations`, ``second`` the expectation of
    the product of the two second derivatives.
    """

    pair: Callable[..., PairExpectations]
    second: Callable[..., NDArray]


_CLOSED_FORMS = {
    "erf": ClosedForm(_erf_pair, _erf_second),
    "relu": ClosedForm(_relu_pair, _relu_second),
    "gelu": ClosedForm(_gelu_pair, _gelu_second),
    "identity": ClosedForm(_identity_pair, lambda q1, q2, c, gram: 0 * c),
    "square": ClosedForm(_square_pair, lambda q1, q2, c, gram: 4 + 0 * c),
}


def closed_form(activation: Activation) -> ClosedForm | None:
    """Find the closed form of an activation.

    Parameters
    ----------
    activation : Activation

    Returns
    -------
    ClosedForm or None
        ``None`` for activations that have to be integrated, and for any
        activation that is not one of the registry's own.

    Notes
    -----
    Source: named in the docstring of this module.

    Examples
    --------
    >>> from helpers.core.activations import get_activation
    >>> closed_form(get_activation("tanh")) is None
    True
    """
    if activation.name == "leaky_relu" and activation.slope is not None:
        slope, bend = activation.slope, (1 - activation.slope) ** 2
        return ClosedForm(
            lambda *entries: _leaky_pair(slope, *entries),
            lambda *entries: bend * _relu_second(*entries),
        )
    if ACTIVATIONS.get(activation.name) is activation:
        return _CLOSED_FORMS.get(activation.name)
    return None
