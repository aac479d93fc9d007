r"""Compiled kernels of the erf loss: gradient of a batch, Hessian of a student.

What is computed is what :mod:`helpers.copy_average.population` computes with
NumPy, whose functions call these where numba is installed. Networks are
packed, one neuron a row: incoming weights, then the outgoing weight.

The arcsines are the expensive part. ``math.asin`` is one call a pair; here
they are a polynomial on :math:`[-\frac12, \frac12]`, reached from outside by
turning the angle by 60 degrees, which needs the cosine. The cosine is at hand
(it divides the gradient), so that no branch and no second root is left and
the compiler does several pairs at once.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.polynomial import Polynomial, chebyshev
from numpy.typing import NDArray

try:
    from numba import njit, vectorize
except ImportError:  # the functions below then run as plain, slow Python
    AVAILABLE = False

    def njit(**options):
        return lambda function: function

    def vectorize(**options):
        return np.vectorize
else:
    AVAILABLE = True

__all__ = ["arcsine", "packed_hessian", "packed_loss_grad"]


# Sums may be reordered and products fused; with Python's check for a zero
# divisor ("python" error model) no loop that divides is vectorised.
_MATH = {"contract", "reassoc", "nsz"}


def _arcsine_coefficients(degree: int) -> NDArray:
    r"""Coefficients of :math:`\arcsin(t)/t` in :math:`8t^2 - 1`, t <= 1/2.

    Taylor's series, all of whose coefficients are positive, rewritten in
    Chebyshev polynomials of :math:`s = 8t^2 - 1` and cut there.
    """
    s = Polynomial([1 / 8, 1 / 8])
    series, power, factor = Polynomial([0.0]), Polynomial([1.0]), 1.0
    for m in range(28):
        series += factor / (2 * m + 1) * power
        power, factor = power * s, factor * (2 * m + 1) / (2 * m + 2)
    return chebyshev.cheb2poly(chebyshev.poly2cheb(series.coef)[: degree + 1])


# the error falls by 13.9 a degree, and is below rounding from 13
(_C0, _C1, _C2, _C3, _C4, _C5, _C6, _C7, _C8, _C9, _C10, _C11, _C12, _C13) = (
    float(c) for c in _arcsine_coefficients(13)
)
_TURN, _HALF_ROOT_3 = math.pi / 3, math.sqrt(3) / 2
_SCALE = 4 / math.pi


@njit(inline="always", fastmath=_MATH, error_model="numpy")
def _arcsine(x, y):
    size = abs(x)
    inside = size <= 0.5
    t = size if inside else 0.5 * size - _HALF_ROOT_3 * y
    s = 8 * t * t - 1
    p = _C13 * s + _C12
    p = p * s + _C11
    p = p * s + _C10
    p = p * s + _C9
    p = p * s + _C8
    p = p * s + _C7
    p = p * s + _C6
    p = p * s + _C5
    p = p * s + _C4
    p = p * s + _C3
    p = p * s + _C2
    p = p * s + _C1
    p = p * s + _C0
    angle = t * p + (0.0 if inside else _TURN)
    return math.copysign(angle, x)


@vectorize(cache=True)
def arcsine(x, y):
    r"""Compute the arcsine, given the cosine too.

    Parameters
    ----------
    x : array_like
        Sine of the angle, in :math:`[-1, 1]`.
    y : array_like
        Its cosine, in :math:`[0, 1]`; :math:`x^2 + y^2 = 1` to rounding.

    Returns
    -------
    ndarray
        The angle, in :math:`[-\pi/2, \pi/2]`, with an absolute error of
        at most two roundings.

    Notes
    -----
    Source: ours.

    Examples
    --------
    >>> float(arcsine(0.6, 0.8).round(6))
    0.643501
    """
    return _arcsine(x, y)


@njit(inline="always", fastmath=_MATH, error_model="numpy")
def _dot(x, y, d):
    total = 0.0
    for m in range(d):
        total += x[m] * y[m]
    return total


@njit(inline="always", fastmath=_MATH, error_model="numpy")
def _products(network, n, d, x):
    """Inner products of the neurons, into the first n columns."""
    for i in range(n):
        for j in range(i + 1):
            x[i, j] = _dot(network[i], network[j], d)
            x[j, i] = x[i, j]


@njit(inline="always", fastmath=_MATH, error_model="numpy")
def _angles(x, D_i, D, inverse, angle, slope):
    """Arcsines and reciprocal roots of one neuron's pairs."""
    inverse_i = 1 / math.sqrt(D_i)
    for m in range(x.size):
        # Cauchy and Schwarz: rounding must not make this determinant negative
        gram = max((D_i - 1) * (D[m] - 1) - x[m] * x[m], 0.0)
        root = math.sqrt(D_i + D[m] - 1 + gram)
        slope[m] = 1 / root
        scale = inverse_i * inverse[m]
        angle[m] = _arcsine(x[m] * scale, root * scale)


@njit(cache=True, fastmath=_MATH, error_model="numpy")
def packed_loss_grad(theta, cross, b, D_teacher, constant, sliced):
    """Compute loss and gradient of packed students.

    Student and teacher neurons stand side by side, the teacher's with
    outgoing weights of the other sign; silent ones fill up to whole vectors
    of the processor.

    Parameters
    ----------
    theta : ndarray, shape (B, n, d + 1)
        Students, contiguous.
    cross : ndarray, shape (B, n, >= k)
        Inner products with the teacher neurons. Of the unit-orthonormal
        teacher they are the first columns of ``theta`` itself.
    b : ndarray, shape (k,)
        The teacher's outgoing weights.
    D_teacher : ndarray, shape (k,)
        One plus the squared norms of the teacher neurons.
    constant : float
        Loss of the zero network.
    sliced : bool
        Whether the teacher is the first k unit vectors. Its pull is then
        added here, and otherwise returned for a matrix product.

    Returns
    -------
    loss : ndarray, shape (B,)
    gradient : ndarray, shape (B, n, d + 1)
        Without the teacher's pull on the incoming weights unless ``sliced``.
    pull : ndarray, shape (B, n, k)
        Coefficients of the teacher neurons in that pull; empty if ``sliced``.

    Notes
    -----
    Nothing is checked here; use
    :class:`~helpers.copy_average.objective.Objective`.
    :math:`O(Bn(n + k + d))` if ``sliced``, and :math:`O(Bn^2d)` for the
    products among students.

    Source: Simsek et al. (2023), section 3, with Williams (1997) for erf.

    Examples
    --------
    >>> theta, b = np.array([[[1.0, 1.0]]]), np.ones(1)
    >>> loss, gradient, _ = packed_loss_grad(theta, theta, b, 2 * b, 1 / 3, 1)
    >>> bool(abs(loss[0]) < 1e-12), bool(np.all(abs(gradient) < 1e-12))
    (True, True)
    """
    B, n, d = theta.shape[0], theta.shape[1], theta.shape[2] - 1
    k = b.size
    p = (n + k + 7) // 8 * 8
    loss, grad = np.empty(B), np.empty_like(theta)
    pull = np.empty((0 if sliced else B, n, k))
    x, D, inverse = np.zeros((n, p)), np.ones(p), np.empty(p)
    out, angle, slope = np.zeros(p), np.empty(p), np.empty(p)
    D[n : n + k], out[n : n + k] = D_teacher, -b
    for s in range(B):
        network, total = theta[s], 0.0
        _products(network, n, d, x)
        for i in range(n):
            D[i], out[i] = 1 + x[i, i], network[i, d]
            for m in range(k):
                x[i, n + m] = cross[s, i, m]
        for m in range(p):
            inverse[m] = 1 / math.sqrt(D[m])
        for i in range(n):
            _angles(x[i], D[i], D, inverse, angle, slope)
            own, residual, radial = 0.0, 0.0, 0.0
            for m in range(n):
                own += out[m] * angle[m]
            for m in range(p):
                residual += out[m] * angle[m]
                slope[m] *= out[m]
                radial += x[i, m] * slope[m]
            total += out[i] * (2 * residual - own)
            row, front = grad[s, i], _SCALE * out[i]
            for c in range(d):
                row[c] = -radial / D[i] * network[i, c]
            for j in range(n):
                for c in range(d):
                    row[c] += slope[j] * network[j, c]
            if sliced:
                for c in range(k):
                    row[c] += slope[n + c]
            else:
                for c in range(k):
                    pull[s, i, c] = front * slope[n + c]
            for c in range(d):
                row[c] *= front
            row[d] = _SCALE * residual
        loss[s] = _SCALE / 2 * total + constant
    return loss, grad, pull


@njit(inline="always", fastmath=_MATH, error_model="numpy")
def _own_block(block, i, Z, out, D, x, slope):
    r"""Second derivatives by one incoming weight, over ``_SCALE * a_i``.

    The angle with another neuron :math:`z` has the second derivative
    :math:`-(c\rho/D_i)I + \rho^3[c(3D_iD_z - 2c^2)/D_i^2\,ww^\top
    + c\,zz^\top - D_z(wz^\top + zw^\top)]`, where :math:`c = w\cdot z`
    and :math:`\rho = 1/\sqrt{D_iD_z - c^2}`.
    """
    d, w, D_i, y = Z.shape[1], Z[i], D[i], np.zeros(Z.shape[1])
    # with itself: the arcsine of q / (1 + q), where q = |w|^2
    stretch = 2 * D_i - 1
    identity = out[i] / (D_i * math.sqrt(stretch))
    square = -2 * identity * (1 / D_i + 1 / stretch)
    for m in range(D.size):
        if m == i:
            continue
        z, c, cubed = Z[m], x[m], out[m] * slope[m] ** 3
        identity -= out[m] * c * slope[m] / D_i
        square += cubed * c * (3 * D_i * D[m] - 2 * c * c) / (D_i * D_i)
        for r in range(d):
            y[r] -= cubed * D[m] * z[r]
            scale = cubed * c * z[r]
            for s in range(d):
                block[r, s] += scale * z[s]
    for r in range(d):
        block[r, r] += identity
        for s in range(d):
            block[r, s] += (square * w[r] + y[r]) * w[s] + w[r] * y[s]


@njit(inline="always", fastmath=_MATH, error_model="numpy")
def _cross_block(block, w, z, D_w, D_z, c, slope, weight):
    r"""Add the second derivatives by two incoming weights.

    The angle has :math:`\rho I - \rho^3[D_zww^\top + D_wzz^\top
    - c(wz^\top + zw^\top)]`, which is symmetric.
    """
    d, cubed = w.size, weight * slope**3
    for r in range(d):
        by_w = cubed * (c * z[r] - D_z * w[r])
        by_z = cubed * (c * w[r] - D_w * z[r])
        for s in range(d):
            block[r, s] += by_w * w[s] + by_z * z[s]
        block[r, r] += weight * slope


@njit(cache=True, fastmath=_MATH, error_model="numpy")
def packed_hessian(network, V, b):
    """Compute the Hessian of one packed student.

    Parameters
    ----------
    network : ndarray, shape (n, d + 1)
        The student, one neuron a row.
    V : ndarray, shape (k, d)
        The teacher's incoming weights.
    b : ndarray, shape (k,)
        Its outgoing weights.

    Returns
    -------
    ndarray, shape (P, P)
        Exactly symmetric, :math:`P = n(d + 1)`.

    Notes
    -----
    :math:`O(n(n + k)d^2)`. Nothing is checked here.

    Source: ours; derived in the docstrings of the two kinds of blocks.

    Examples
    --------
    >>> one = np.ones((1, 1))
    >>> packed_hessian(np.ones((1, 2)), one, one[0]).round(4).tolist()
    [[0.245, 0.3676], [0.3676, 0.6667]]
    """
    n, d, p = network.shape[0], V.shape[1], network.shape[0] + b.size
    Z, out, D, inverse = (
        np.empty((p, d)),
        np.empty(p),
        np.empty(p),
        np.empty(p),
    )
    Z[:n], Z[n:] = network[:, :d], V
    out[:n], out[n:] = network[:, d], -b
    for m in range(p):
        D[m] = 1 + _dot(Z[m], Z[m], d)
        inverse[m] = 1 / math.sqrt(D[m])
    x, angle, slope = np.empty(p), np.empty(p), np.empty(p)
    hessian = np.zeros((n, d + 1, n, d + 1))
    for i in range(n):
        for m in range(p):
            x[m] = _dot(Z[i], Z[m], d)
        _angles(x, D[i], D, inverse, angle, slope)
        _own_block(hessian[i, :, i], i, Z, out, D, x, slope)
        for r in range(d):
            for c in range(r + 1):
                hessian[i, r, i, c] *= _SCALE * out[i]
                hessian[i, c, i, r] = hessian[i, r, i, c]
        # by a_i and w_i: the gradient of the residual
        bend = 0.0
        for m in range(p):
            pull = out[m] * slope[m]
            bend += pull * x[m] / D[i]
            for c in range(d):
                hessian[i, d, i, c] += _SCALE * pull * Z[m, c]
        # with itself the neuron counts twice, once in each factor
        pull = out[i] * slope[i] * (1 - x[i] / D[i])
        for c in range(d):
            hessian[i, d, i, c] += _SCALE * (pull - bend) * Z[i, c]
            hessian[i, c, i, d] = hessian[i, d, i, c]
        hessian[i, d, i, d] = _SCALE * angle[i]
        for j in range(n):
            if j == i:
                continue
            weight = _SCALE * out[j] * slope[j]
            for c in range(d):
                pulled = weight * (Z[i, c] - x[j] / D[j] * Z[j, c])
                hessian[i, d, j, c] = pulled
                hessian[j, c, i, d] = pulled
            if j < i:
                hessian[i, d, j, d] = _SCALE * angle[j]
                hessian[j, d, i, d] = _SCALE * angle[j]
                weight = _SCALE * out[i] * out[j]
                _cross_block(
                    hessian[i, :, j],
                    Z[i],
                    Z[j],
                    D[i],
                    D[j],
                    x[j],
                    slope[j],
                    weight,
                )
                for r in range(d):
                    for c in range(d):
                        hessian[j, c, i, r] = hessian[i, r, j, c]
    return hessian.reshape(n * (d + 1), n * (d + 1))
