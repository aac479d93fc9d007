r"""The interaction function of two neurons.

:math:`g_\sigma(r_1, r_2, u) = \mathbb E[\sigma(r_1X)\,\sigma(r_2Y)]`, where
:math:`X` and :math:`Y` are standard Gaussian with correlation :math:`u`. It
is what two neurons with weight norms :math:`r_1, r_2` and angle
:math:`\arccos u` have in common on Gaussian inputs, and the whole loss is a
sum of such terms.

Closed forms are used where they exist (erf, ReLU and leaky ReLU, GELU, the
identity, the square); the others are integrated. ReLU is never integrated
numerically: at a kink every smooth rule is slow.

The closed forms themselves are in :mod:`helpers.copy_average.closed_forms`.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from helpers.copy_average.closed_forms import PairExpectations, closed_form
from helpers.copy_average.quadrature import (
    gauss_hermite_nodes,
    product_expectations,
)
from helpers.core.activations import Activation, get_activation
from helpers.core.tolerances import COSINE_SLACK, LARGEST_NORM

__all__ = [
    "PairExpectations",
    "gauss_hermite_nodes",
    "has_closed_form",
    "interaction",
    "interaction_d2u",
    "interaction_grad",
    "pair_expectations",
]


def has_closed_form(activation: str | Activation) -> bool:
    """Whether the interaction of an activation needs no quadrature.

    Parameters
    ----------
    activation : str or Activation

    Returns
    -------
    bool

    Notes
    -----
    Source: as :func:`~helpers.copy_average.closed_forms.closed_form`.

    Examples
    --------
    >>> has_closed_form("relu"), has_closed_form("tanh")
    (True, False)
    """
    return closed_form(get_activation(activation)) is not None


def _checked_norms(name: str, r: ArrayLike) -> NDArray:
    r = np.asarray(r, dtype=float)
    if not np.all((r >= 0) & (r <= LARGEST_NORM)):
        raise ValueError(
            f"{name} must hold norms from 0 to {LARGEST_NORM:.0e}, got "
            f"{r[~((r >= 0) & (r <= LARGEST_NORM))].flat[0]!r}"
        )
    return r


def _checked_weights(name: str, z: ArrayLike) -> NDArray:
    z = np.asarray(z)
    z = z if np.iscomplexobj(z) else z.astype(float)
    if not np.all(np.abs(z.real) <= LARGEST_NORM):
        raise ValueError(
            f"{name} must be finite, with entries up to {LARGEST_NORM:.0e}"
        )
    return z


def _checked_cosines(u: ArrayLike) -> NDArray:
    u = np.asarray(u, dtype=float)
    bad = ~(np.abs(u) <= 1 + COSINE_SLACK)
    if np.any(bad):
        raise ValueError(
            f"u must hold cosines in [-1, 1], got {u[bad].flat[0]!r}"
        )
    return np.clip(u, -1.0, 1.0)


def _checked_triple(r1: ArrayLike, r2: ArrayLike, u: ArrayLike):
    r1, r2 = _checked_norms("r1", r1), _checked_norms("r2", r2)
    u = _checked_cosines(u)
    try:
        np.broadcast_shapes(r1.shape, r2.shape, u.shape)
    except ValueError:
        raise ValueError(
            "r1, r2 and u must broadcast together, got shapes "
            f"{r1.shape}, {r2.shape} and {u.shape}"
        ) from None
    return r1, r2, u


def _gram_entries(r1, r2, u) -> tuple[NDArray, NDArray, NDArray, NDArray]:
    product = r1 * r2
    return r1**2, r2**2, product * u, product**2 * (1 - u) * (1 + u)


def interaction(
    r1: ArrayLike,
    r2: ArrayLike,
    u: ArrayLike,
    activation: str | Activation = "erf",
) -> NDArray:
    r"""Compute the interaction of two neurons.

    .. math:: g_\sigma(r_1, r_2, u)
       = \mathbb E[\sigma(r_1X)\,\sigma(r_2Y)],\qquad
       (X, Y) \sim \mathcal N\Big(0,
       \begin{pmatrix}1 & u\\ u & 1\end{pmatrix}\Big).

    Parameters
    ----------
    r1, r2 : array_like
        Norms of the two weight vectors, from 0 to 1e30 (for activations
        without closed form up to
        :func:`~helpers.copy_average.quadrature.largest_radius`).
    u : array_like
        Cosine of their angle, in :math:`[-1, 1]`; an excess below 1e-9 is
        taken for rounding. The three arrays broadcast together.
    activation : str or Activation, default "erf"
        See :func:`helpers.core.activations.get_activation`.

    Returns
    -------
    ndarray
        :math:`g_\sigma`, of the broadcast shape. At :math:`r_2 = 0` it is
        :math:`\sigma(0)\,\mathbb E[\sigma(r_1X)]`, whatever ``u`` is.

    Raises
    ------
    ValueError
        If a norm is negative, not finite or too large, if ``u`` is no
        cosine, if the shapes do not broadcast together, or if the activation
        is unknown.

    Notes
    -----
    Source: Simsek et al. (2023), section 3. Closed forms: Williams (1997)
    for erf, Cho and Saul (2009) for ReLU, Tsuchida et al. (2021) for GELU
    (derived in the chapter). Elsewhere :math:`O(N^2)` evaluations a pair.

    Examples
    --------
    >>> round(float(interaction(1.0, 1.0, 1.0, "erf")), 12)
    0.333333333333
    >>> interaction(1.0, 1.0, [-1.0, 0.0, 1.0], "relu").round(6).tolist()
    [0.0, 0.159155, 0.5]
    """
    activation = get_activation(activation)
    r1, r2, u = _checked_triple(r1, r2, u)
    closed = closed_form(activation)
    if closed is not None:
        return np.asarray(closed.pair(*_gram_entries(r1, r2, u)).value)
    f = activation.value
    return product_expectations([(f, f)], r1, r2, u, activation)[0]


def interaction_grad(
    r1: ArrayLike,
    r2: ArrayLike,
    u: ArrayLike,
    activation: str | Activation = "erf",
) -> tuple[NDArray, NDArray, NDArray]:
    r"""Compute the three partial derivatives of the interaction.

    .. math::

       \partial_u g &= r_1r_2\,\mathbb E[\sigma'(r_1X)\sigma'(r_2Y)], \\
       \partial_{r_1}g &= r_1\,\mathbb E[\sigma''(r_1X)\sigma(r_2Y)]
       + r_2u\,\mathbb E[\sigma'(r_1X)\sigma'(r_2Y)].

    Parameters
    ----------
    r1, r2, u, activation
        As in :func:`interaction`.

    Returns
    -------
    d_r1, d_r2, d_u : ndarray
        Partial derivatives, each of the broadcast shape. For ReLU and leaky
        ReLU the one-sided values at a vanishing norm are given by the
        convention of :func:`pair_expectations`.

    Raises
    ------
    ValueError
        As :func:`interaction`.

    Notes
    -----
    Source: Simsek et al. (2023), Lemma F.1 and Eq. 9 (Price's theorem).

    Examples
    --------
    >>> _, _, slope = interaction_grad(1.0, 1.0, 0.0, "relu")
    >>> round(float(slope), 12)
    0.25
    """
    activation = get_activation(activation)
    r1, r2, u = _checked_triple(r1, r2, u)
    closed = closed_form(activation)
    if closed is None:
        return _quadrature_grad(r1, r2, u, activation)
    q1, q2, c, gram = _gram_entries(r1, r2, u)
    first = closed.pair(q1, q2, c, gram)
    second = closed.pair(q2, q1, c, gram)
    return (
        r1 * first.curvature + r2 * u * first.slope,
        r2 * second.curvature + r1 * u * first.slope,
        r1 * r2 * first.slope,
    )


def _quadrature_grad(r1, r2, u, activation: Activation):
    f, df, ddf = (
        activation.value,
        activation.derivative,
        activation.second_derivative,
    )
    left, slope = product_expectations(
        [(ddf, f), (df, df)], r1, r2, u, activation
    )
    [right] = product_expectations([(ddf, f)], r2, r1, u, activation)
    return (
        r1 * left + r2 * u * slope,
        r2 * right + r1 * u * slope,
        r1 * r2 * slope,
    )


def interaction_d2u(
    r1: ArrayLike,
    r2: ArrayLike,
    u: ArrayLike,
    activation: str | Activation = "erf",
) -> NDArray:
    r"""Compute the second derivative of the interaction in the cosine.

    .. math:: \partial_u^2 g
       = r_1^2r_2^2\,\mathbb E[\sigma''(r_1X)\,\sigma''(r_2Y)].

    Parameters
    ----------
    r1, r2, u, activation
        As in :func:`interaction`.

    Returns
    -------
    ndarray
        Of the broadcast shape. For ReLU and leaky ReLU it is ``inf`` at
        :math:`|u| = 1` (where the derivative has a vertical tangent), unless
        a norm vanishes; then the interaction does not depend on ``u`` and
        the answer is 0.

    Raises
    ------
    ValueError
        As :func:`interaction`.

    Notes
    -----
    Source: the derivative rule (Simsek et al., 2023, Lemma F.1) applied
    twice; at a kink the point masses of :math:`\sigma''` are included.

    Examples
    --------
    >>> round(float(interaction_d2u(2.0, 3.0, 0.0, "relu")), 6)
    0.95493
    """
    activation = get_activation(activation)
    r1, r2, u = _checked_triple(r1, r2, u)
    closed = closed_form(activation)
    scale = (r1 * r2) ** 2
    if closed is not None:
        second = closed.second(*_gram_entries(r1, r2, u))
        return np.where(scale > 0, scale, 1.0) * np.where(scale > 0, second, 0)
    ddf = activation.second_derivative
    [second] = product_expectations([(ddf, ddf)], r1, r2, u, activation)
    return scale * second


def pair_expectations(
    z1: ArrayLike,
    z2: ArrayLike,
    activation: str | Activation = "erf",
) -> PairExpectations:
    r"""Compute the expectations that a loss and its gradient are made of.

    For every row :math:`w` of ``z1`` and :math:`v` of ``z2``, on standard
    Gaussian inputs :math:`x`: :math:`\mathbb E[\sigma(w\cdot x)\sigma(v\cdot
    x)]`, :math:`\mathbb E[\sigma''\sigma]` and
    :math:`\mathbb E[\sigma'\sigma']`.

    Parameters
    ----------
    z1 : array_like, shape (..., m, d)
    z2 : array_like, shape (..., p, d)
        Weight vectors as rows; leading axes broadcast. May be complex for
        closed forms of smooth activations (erf, GELU), so that a complex
        step differentiates them to machine precision.
    activation : str or Activation, default "erf"

    Returns
    -------
    PairExpectations
        Three arrays of shape (..., m, p).

    Raises
    ------
    ValueError
        If the last axes differ, if a weight is not finite or larger than
        1e30, or as :func:`interaction` for activations without closed form.

    Notes
    -----
    At a vanishing weight vector the ReLU loss has a corner; ``curvature``
    and ``slope`` are 0 there, so that its gradient is 0 by convention.

    Source: Simsek et al. (2023), section 3; Stein's lemma.

    Examples
    --------
    >>> pair_expectations([[1.0, 0.0]], [[0.0, 1.0]], "relu").slope
    array([[0.25]])
    """
    activation = get_activation(activation)
    z1, z2 = _checked_weights("z1", z1), _checked_weights("z2", z2)
    if z1.ndim < 2 or z2.ndim < 2 or z1.shape[-1] != z2.shape[-1]:
        raise ValueError(
            "z1 and z2 must have shapes (..., m, d) and (..., p, d), got "
            f"{z1.shape} and {z2.shape}"
        )
    c = z1 @ np.swapaxes(z2, -1, -2)
    q1 = (z1 * z1).sum(axis=-1)[..., :, None]
    q2 = (z2 * z2).sum(axis=-1)[..., None, :]
    return _expectations_from_gram(q1, q2, c, activation)


def _expectations_from_gram(q1, q2, c, activation) -> PairExpectations:
    closed = closed_form(activation)
    if closed is not None:
        return closed.pair(q1, q2, c, q1 * q2 - c * c)
    r1, r2 = np.sqrt(q1), np.sqrt(q2)
    size = r1 * r2
    u = np.where(size > 0, c / np.where(size > 0, size, 1.0), 0.0)
    f, df, ddf = (
        activation.value,
        activation.derivative,
        activation.second_derivative,
    )
    return PairExpectations(
        *product_expectations(
            [(f, f), (ddf, f), (df, df)],
            r1,
            r2,
            np.clip(u, -1.0, 1.0),
            activation,
        )
    )
