r"""Networks degree by degree, and a floor that no student passes.

Under Gaussian inputs a neuron splits into orthogonal parts, one for each
degree of the Hermite polynomials,

.. math:: \sigma(w\cdot x)=\sum_{m\ge0} c_m(\lVert w\rVert)\,
    h_m(\hat w\cdot x),\qquad
    c_m(r)=\mathbb E[\sigma(rX)\,h_m(X)],

with :math:`h_m` orthonormal and :math:`\hat w` the direction of :math:`w`.
Since :math:`\mathbb E[h_m(\hat w\cdot x)\,h_m(\hat v\cdot x)]=
(\hat w\cdot\hat v)^m`, the part of degree :math:`m` of a sum of neurons is a
symmetric tensor, a combination of the powers :math:`\hat w_i^{\otimes m}`,
and the loss is the sum of squared distances of tensors.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike, NDArray

from helpers.copy_average.interactions import interaction
from helpers.copy_average.networks import Teacher
from helpers.copy_average.population import population_loss_grad
from helpers.copy_average.quadrature import trapezoid_nodes
from helpers.core.activations import Activation, get_activation
from helpers.core.checks import check_sizes, finite_array, whole_number

__all__ = [
    "HIGHEST_DEGREE",
    "degree_coefficients",
    "free_line_loss_grad",
    "loss_by_degree",
    "nonlinear_energy",
    "ridge_floor",
]

HIGHEST_DEGREE = 40
"""Beyond it quadrature against a Hermite polynomial loses digits."""


def degree_coefficients(
    norms: ArrayLike, activation: str | Activation, most: int
) -> NDArray:
    r"""Hermite coefficients :math:`c_0(r),\dots,c_M(r)` of neurons.

    Parameters
    ----------
    norms : array_like (...)
        Norms :math:`r\ge0`.
    activation : str or Activation
        erf and piecewise linear ones in closed form, others by quadrature.
    most : int
        Highest degree :math:`M`, from 0 to 40.

    Returns
    -------
    ndarray (..., most + 1)

    Raises
    ------
    ValueError
        If a norm is negative or not finite, or ``most`` is out of range.

    Notes
    -----
    For erf, with :math:`s=r/\sqrt{1+r^2}` and odd :math:`m`,
    :math:`c_m(r)=(-1)^{(m-1)/2}\sqrt{\tfrac2\pi A_m}\;s^m`, where
    :math:`\arcsin z=\sum_mA_mz^m`. For ReLU :math:`c_0=r/\sqrt{2\pi}`,
    :math:`c_1=r/2`, and :math:`c_m=(-1)^{m/2+1}(m-3)!!\,r/\sqrt{2\pi\,m!}`
    for even :math:`m\ge2`.

    Source: classical; the interaction of two erf neurons is an arcsine
    (Simsek et al., 2023, section 3).

    Examples
    --------
    >>> (degree_coefficients(1.0, "erf", 3) ** 2 * np.pi).round(4).tolist()
    [0.0, 1.0, 0.0, 0.0417]
    """
    r = finite_array(norms, "norms")
    if (r < 0).any():
        raise ValueError(f"norms must be >= 0, got {r.min()}")
    most = whole_number(most, "most", 0, HIGHEST_DEGREE)
    activation = get_activation(activation)
    if activation.name == "erf":
        return _erf_coefficients(r, most)
    if activation.kink and activation.homogeneous:
        return r[..., None] * _piecewise_coefficients(activation, most)
    found = [_by_quadrature(x, activation, most) for x in r.ravel()]
    return np.reshape(found, (*r.shape, most + 1))


def _erf_coefficients(r: NDArray, most: int) -> NDArray:
    s = r / np.sqrt(1 + r**2)
    c = np.zeros((*r.shape, most + 1))
    for m in range(1, most + 1, 2):
        half = (m - 1) // 2
        arcsine = math.comb(m - 1, half) / (2 ** (m - 1) * m)
        c[..., m] = (-1) ** half * math.sqrt(2 / math.pi * arcsine) * s**m
    return c


def _piecewise_coefficients(activation: Activation, most: int) -> NDArray:
    """Jump times ReLU plus a line, at norm one."""
    c = np.zeros(most + 1)
    c[0] = 1 / math.sqrt(2 * math.pi)
    c[1:2] = 0.5
    for m in range(2, most + 1, 2):
        odd = math.prod(range(m - 3, 1, -2))
        sign = (-1) ** (m // 2 + 1)
        c[m] = sign * odd / math.sqrt(2 * math.pi * math.factorial(m))
    c *= activation.jump
    c[1:2] -= activation(-1.0)  # slope on the left
    return c


def _by_quadrature(r: float, activation: Activation, most: int) -> NDArray:
    z, weight = trapezoid_nodes(r, activation)
    return _hermite(z, most) @ (weight * activation(r * z))


def _hermite(z: NDArray, most: int) -> NDArray:
    """Orthonormal Hermite polynomials, one degree a row."""
    h = np.ones((most + 1, z.size))
    h[1:2] = z
    for m in range(1, most):
        h[m + 1] = (z * h[m] - math.sqrt(m) * h[m - 1]) / math.sqrt(m + 1)
    return h


def _parts(W, a, activation, most: int) -> tuple[NDArray, NDArray]:
    """Size of each neuron's parts, and its direction."""
    r = np.linalg.norm(W, axis=-1)
    c = a[:, None] * degree_coefficients(r, activation, most)
    return c, W / np.where(r > 0, r, 1.0)[:, None]


def loss_by_degree(
    W: ArrayLike,
    a: ArrayLike,
    teacher: Teacher,
    activation: str | Activation = "erf",
    most: int = 9,
) -> NDArray:
    r"""The loss in each degree, :math:`L=\sum_mL_m`.

    Parameters
    ----------
    W : array_like (n, d)
    a : array_like (n,)
    teacher : Teacher
    activation : str or Activation
    most : int
        Highest degree, from 0 to 40.

    Returns
    -------
    ndarray (most + 1,)
        Nonnegative up to rounding. What is missing of the loss is in higher
        degrees.

    Raises
    ------
    ValueError
        If shapes do not fit, an entry is not finite, or ``most`` is out of
        range.

    Notes
    -----
    :math:`L_m=z^\top G^{\circ m}z`, where :math:`z` holds the sizes of the
    student's parts and minus those of the teacher's, and :math:`G` the
    cosines of all neurons. :math:`O((n+k)^2M)`.

    Source: ours.

    Examples
    --------
    A copy of one of two neurons misses all of the other.

    >>> teacher = Teacher.orthonormal(2, 2)
    >>> missed = loss_by_degree([[1.0, 0.0]], [1.0], teacher, most=1)
    >>> (missed * np.pi).round(6).tolist()
    [0.0, 1.0]
    """
    W, a = finite_array(W, "W", 2), finite_array(a, "a", 1)
    if a.shape != W.shape[:1] or W.shape[1] != teacher.d or not a.size:
        raise ValueError(
            f"W must have shape (n, {teacher.d}) and a shape (n,) with n at "
            f"least 1, got {W.shape} and {a.shape}"
        )
    most = whole_number(most, "most", 0, HIGHEST_DEGREE)
    mine, theirs = (
        _parts(*network, activation, most)
        for network in ((W, a), (teacher.V, teacher.b))
    )
    z = np.vstack([mine[0], -theirs[0]])
    directions = np.vstack([mine[1], theirs[1]])
    cosines = np.clip(directions @ directions.T, -1, 1)
    return np.array([z[:, m] @ cosines**m @ z[:, m] for m in range(most + 1)])


def nonlinear_energy(
    activation: str | Activation = "erf", norm: float = 1.0
) -> float:
    r"""What a neuron holds beyond a constant and a line,
    :math:`\eta=\mathbb E[\sigma(rX)^2]-c_0^2-c_1^2`.

    Parameters
    ----------
    activation : str or Activation
    norm : float
        Norm :math:`r\ge0` of the incoming weights.

    Raises
    ------
    ValueError
        If ``norm`` is negative or not finite.

    Notes
    -----
    For erf at norm one :math:`\frac13-\frac1\pi\approx0.0150`, for ReLU
    :math:`\frac14-\frac1{2\pi}\approx0.0908`. Source: ours.

    Examples
    --------
    >>> round(nonlinear_energy("erf"), 6), round(1 / 3 - 1 / np.pi, 6)
    (0.015023, 0.015023)
    """
    c = degree_coefficients(norm, activation, 1)
    whole = interaction(norm, norm, 1.0, activation)
    return float(whole - c @ c)


def ridge_floor(
    n: int,
    teacher: Teacher,
    activation: str | Activation = "erf",
    most: int = 15,
) -> float:
    r"""A loss that no sum of ``n`` ridge functions falls below.

    Parameters
    ----------
    n : int
        Number of terms :math:`\phi_i(w_i\cdot x)`, at least 0. The
        :math:`\phi_i` may be anything of finite mean square; a constant and
        a linear function of :math:`x` may be added.
    teacher : Teacher
        Any norms, weights and correlations.
    activation : str or Activation
        That of the teacher.
    most : int
        Highest degree that is counted, from 2 to 40. More can only raise the
        floor.

    Returns
    -------
    float

    Raises
    ------
    ValueError
        If ``n`` or ``most`` is out of range.

    Notes
    -----
    The part of degree :math:`m` of the sum is a tensor of rank at most
    :math:`n`, so is each of its flattenings, and by Eckart and Young the
    distance of two matrices is at least what is left of one after its
    :math:`n` largest singular values. For a unit-orthonormal teacher every
    degree leaves :math:`(k-n)c_m^2`, together :math:`(k-n)\eta` with
    :func:`nonlinear_energy`. :math:`O(Mk^3)`.

    Source: ours.

    Examples
    --------
    >>> teacher = Teacher.orthonormal(6)
    >>> round(ridge_floor(4, teacher) / nonlinear_energy(), 4)
    2.0
    """
    n = whole_number(n, "n", 0)
    most = whole_number(most, "most", 2, HIGHEST_DEGREE)
    c, directions = _parts(teacher.V, teacher.b, activation, most)
    cosines = np.clip(directions @ directions.T, -1, 1)
    left = [
        _flattened(c[:, m], cosines, m)[: max(teacher.k - n, 0)].sum()
        for m in range(2, most + 1)
    ]
    return float(sum(left))


def _flattened(c: NDArray, cosines: NDArray, m: int) -> NDArray:
    """Squared singular values of the middle flattening, rising."""
    values, vectors = np.linalg.eigh(cosines ** (m // 2))
    root = vectors * np.sqrt(np.maximum(values, 0.0))
    scaled = c[:, None] * root
    inner = scaled.T @ cosines ** (m - m // 2) @ scaled
    return np.maximum(np.linalg.eigvalsh(inner), 0.0)


def free_line_loss_grad(
    W: ArrayLike, a: ArrayLike, teacher: Teacher
) -> tuple[float, NDArray, NDArray]:
    r"""The erf loss of a student that has the best linear term besides.

    Parameters
    ----------
    W : array_like (n, d)
    a : array_like (n,)
    teacher : Teacher

    Returns
    -------
    loss : float
        :math:`L-L_1`: what the neurons leave when
        :math:`\min_\ell\mathbb E[(f+\ell\cdot x-f^*)^2]` is taken.
    grad_W : ndarray (n, d)
    grad_a : ndarray (n,)

    Raises
    ------
    ValueError
        If shapes do not fit or an entry is not finite.

    Notes
    -----
    :math:`L_1=\frac2\pi\lVert\sum_ia_iy_i-\sum_jb_jy_j^*\rVert^2` with
    :math:`y=w/\sqrt{1+\lVert w\rVert^2}`. :math:`O(n(n+k)d)`.

    Source: ours.

    Examples
    --------
    Copies of two neurons of three lose what one neuron holds beyond a line.

    >>> loss, _, _ = free_line_loss_grad(
    ...     np.eye(2, 3), np.ones(2), Teacher.orthonormal(3, 3))
    >>> round(loss / nonlinear_energy(), 9)
    1.0
    """
    W, a = finite_array(W, "W", 2), finite_array(a, "a", 1)
    check_sizes(n=a.size)
    loss, grad_W, grad_a = population_loss_grad(W, a, teacher)
    D = 1 + (W**2).sum(axis=1)
    y = W / np.sqrt(D)[:, None]
    own = 1 + (teacher.V**2).sum(axis=1)
    error = a @ y - teacher.b @ (teacher.V / np.sqrt(own)[:, None])
    along = y @ error
    turned = (error - along[:, None] * y) / np.sqrt(D)[:, None]
    scale = 4 / math.pi
    return (
        float(loss - scale / 2 * error @ error),
        grad_W - scale * a[:, None] * turned,
        grad_a - scale * along,
    )
