r"""Layers that keep, by construction, what the layer before them covered.

A layer is returned as ``Theta``, shape ``(m, width)``, one neuron a column,
for the features ``Phi``, shape ``(n, m)``, whose last column is the constant:
the last row holds the biases and the outputs are :math:`\sigma(\Phi\Theta)`.

Two ways to carry a function :math:`z=\Phi\theta` through a ReLU: the pair
:math:`\sigma(z)-\sigma(-z)=z`, which holds for every sample, and the shift
:math:`\sigma(z+c\mathbf 1)=z+c\mathbf 1` for :math:`c\ge-\min_iz_i`, which
holds for the samples at hand and costs half as many neurons.

The partition helpers of Theorem 5.1 live in
:mod:`helpers.spectral_alignment.partitions` and can be imported from here as
well.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from helpers.core.linalg import check_orthonormal
from helpers.core.randomness import Seed, as_generator
from helpers.core.tolerances import ORTHONORMAL, RANK_RELATIVE, ROUNDING
from helpers.spectral_alignment.partitions import (
    separating_direction,
)

__all__ = [
    "PrincipalVectors",
    "copy_layer",
    "principal_direction_layer",
    "principal_vectors",
    "shifted_copy_layer",
    "shifted_principal_layer",
]


class PrincipalVectors(NamedTuple):
    """What :func:`principal_vectors` returns."""

    vectors: np.ndarray
    theta: np.ndarray
    cosines: np.ndarray


def _features(H, name: str) -> np.ndarray:
    H = np.asarray(H, dtype=float)
    if H.ndim != 2 or 0 in H.shape:
        raise ValueError(
            f"{name} must be a matrix with one sample a row, got {H.shape}"
        )
    if not np.isfinite(H).all():
        raise ValueError(f"{name} must be finite, it holds NaN or infinity")
    return H


def _with_constant(Phi) -> np.ndarray:
    Phi = _features(Phi, "Phi")
    if not np.all(Phi[:, -1] == 1.0):
        raise ValueError(
            "Phi must have the constant 1 as its last column (the bias)"
        )
    return Phi


def _basis(UK, n: int) -> np.ndarray:
    UK = check_orthonormal(UK, "UK")
    if UK.shape[0] != n or UK.shape[1] == 0:
        raise ValueError(
            f"UK must have shape ({n}, K) with K >= 1, got {UK.shape}"
        )
    return UK


def copy_layer(H, first: bool) -> np.ndarray:
    r"""Proposition 3.3: the neurons that copy the layer before.

    Parameters
    ----------
    H : array_like, shape (n, m)
        Features without the constant.
    first : bool
        True: ``H`` are inputs of any sign, and the :math:`2m` neurons
        :math:`\pm e_k` are returned. False: ``H`` are outputs of ReLUs, and
        the :math:`m` neurons :math:`e_k` do.

    Returns
    -------
    ndarray, shape (m + 1, 2 m) or (m + 1, m)
        For ``[H, 1]``; all biases are 0.

    Raises
    ------
    ValueError
        If ``H`` is not a finite nonempty matrix, or has a negative entry
        although ``first`` is False.

    Notes
    -----
    Source: the spectral-alignment paper, Proposition 3.3 (b) and (c).

    Examples
    --------
    >>> copy_layer([[1.0], [2.0]], first=False)
    array([[1.],
           [0.]])
    """
    H = _features(H, "H")
    if not first and H.min() < 0:
        raise ValueError(
            f"H has the negative entry {H.min():.4g}, which a neuron e_k "
            "does not copy; use first=True or shifted_copy_layer"
        )
    one = np.eye(H.shape[1])
    weights = np.hstack([one, -one]) if first else one
    return np.vstack([weights, np.zeros(weights.shape[1])])


def shifted_copy_layer(H) -> np.ndarray:
    r"""Companion C1: ``m`` neurons that copy features of any sign.

    :math:`\sigma(x_k-\min_ix_{ik})=x_k-\min_ix_{ik}` on the sample, and the
    constant of the readout takes the shift away.

    Parameters
    ----------
    H : array_like, shape (n, m)
        Features without the constant.

    Returns
    -------
    ndarray, shape (m + 1, m)
        For ``[H, 1]``.

    Raises
    ------
    ValueError
        If ``H`` is not a finite nonempty matrix.

    Notes
    -----
    A new sample may fall below the smallest value of a coordinate; there the
    copy is clipped.

    Source: ours, companion result C1.

    Examples
    --------
    >>> shifted_copy_layer([[-3.0], [2.0]])
    array([[1.],
           [3.]])
    """
    H = _features(H, "H")
    return np.vstack([np.eye(H.shape[1]), -H.min(axis=0)])


def principal_vectors(
    Phi, UK, rtol: float = RANK_RELATIVE
) -> PrincipalVectors:
    r"""Principal vectors of :math:`\mathrm{col}\Phi` against
    :math:`\mathrm{span}U_K`.

    With :math:`Q` an orthonormal basis of :math:`\mathrm{col}\Phi` and
    :math:`y_1,\dots,y_r` the top right singular vectors of
    :math:`U_K^{\mathsf T}Q`, :math:`r=\min(K,\mathrm{rank}\Phi)`, they are
    :math:`p_i=Qy_i=\Phi\theta_i`.

    Parameters
    ----------
    Phi : array_like, shape (n, m)
    UK : array_like, shape (n, K)
        Orthonormal columns, ``K >= 1``.
    rtol : float, in [0, 1)
        Relative rank tolerance for ``Phi``.

    Returns
    -------
    PrincipalVectors
        ``vectors`` (n, r), orthonormal; ``theta`` (m, r), of least norm;
        ``cosines`` (r,), decreasing.

    Raises
    ------
    ValueError
        If shapes disagree, an input is not finite, ``UK`` is not orthonormal
        or ``rtol`` is out of range.

    Notes
    -----
    ``Phi @ theta`` equals ``vectors`` up to rounding times the condition
    number of ``Phi``, at most ``1 / rtol``.

    Source: the spectral-alignment paper, Proposition 5.5.

    Examples
    --------
    >>> principal_vectors(np.eye(3), np.eye(3)[:, 1:]).cosines
    array([1., 1.])
    """
    Phi = _features(Phi, "Phi")
    UK = _basis(UK, Phi.shape[0])
    if not 0 <= rtol < 1:
        raise ValueError(f"rtol must lie in [0, 1), got {rtol}")
    left, sigma, right = np.linalg.svd(Phi, full_matrices=False)
    kept = sigma > rtol * sigma[0]
    Q = left[:, kept]
    _, cosines, y = np.linalg.svd(UK.T @ Q, full_matrices=False)
    vectors = Q @ y.T
    theta = right[kept].T @ (y.T / sigma[kept][:, None])
    return PrincipalVectors(vectors, theta, np.minimum(cosines, 1.0))


def _separating(Phi, rng: Seed, tol: float) -> np.ndarray:
    """A ``w`` with ``Phi @ w`` distinct on classes, scaled to norm 1."""
    w = separating_direction(Phi, rng, tol=tol)
    size = np.linalg.norm(Phi @ w)
    return w / size if size > 0 else w


def principal_direction_layer(
    Phi, UK, rng: Seed, tol: float = ROUNDING
) -> np.ndarray:
    r"""Proposition 5.5: :math:`2r+2` neurons that preserve coverage.

    The neurons :math:`\sigma(\pm\Phi\theta_i)` of the principal vectors and
    the pair :math:`\sigma(\pm\Phi w)` with :math:`\Phi w` different on
    different rows.

    Parameters
    ----------
    Phi : array_like, shape (n, m)
        Features, the bias column included.
    UK : array_like, shape (n, K)
        Orthonormal columns, ``K >= 1``.
    rng : int, SeedSequence or Generator
        For :math:`w`.
    tol : float, in [0, 1)
        As :func:`sample_partition
        <helpers.spectral_alignment.partitions.sample_partition>`.

    Returns
    -------
    ndarray, shape (m, 2 r + 2)
        Columns :math:`\theta_1,\dots,\theta_r,-\theta_1,\dots,-\theta_r,
        w,-w`.

    Raises
    ------
    ValueError
        As :func:`principal_vectors`, or if no tried :math:`w` separates
        distinct rows by more than ``tol``.

    Notes
    -----
    Where rows of ``Phi`` are equal, the layer keeps them equal and all
    others apart.

    Source: the spectral-alignment paper, Proposition 5.5.

    Examples
    --------
    >>> Phi = np.array([[-1.0, 1], [0, 1], [1, 1]])
    >>> principal_direction_layer(Phi, np.ones((3, 1)) / 3**0.5, 0).shape
    (2, 4)
    """
    theta = principal_vectors(Phi, UK).theta
    w = _separating(_features(Phi, "Phi"), as_generator(rng), tol)[:, None]
    return np.hstack([theta, -theta, w, -w])


def shifted_principal_layer(
    Phi, UK, rng: Seed, centered: bool = False, tol: float = ROUNDING
) -> np.ndarray:
    r"""Companion C1: the conclusions of Proposition 5.5 with half as many.

    :math:`\sigma(p_i+c_i\mathbf 1)` and :math:`\sigma(\Phi w+c\mathbf 1)`,
    each shifted until nothing is cut off on the sample: :math:`r+1` neurons.
    If :math:`\mathbf 1\in\mathrm{span}U_K`, as for :math:`L` on a connected
    graph, the readout holds the constant already and principal vectors
    orthogonal to it suffice: :math:`r\le K` neurons (``centered``).

    Parameters
    ----------
    Phi : array_like, shape (n, m)
        Features; the last column must be the constant 1.
    UK : array_like, shape (n, K)
        Orthonormal columns, ``K >= 1``.
    rng : int, SeedSequence or Generator
        For :math:`w`.
    centered : bool
        Use only vectors orthogonal to the constant.
    tol : float, in [0, 1)
        As :func:`sample_partition
        <helpers.spectral_alignment.partitions.sample_partition>`.

    Returns
    -------
    ndarray, shape (m, r + 1), or (m, r) if ``centered``
        The separating neuron is the last column.

    Raises
    ------
    ValueError
        As :func:`principal_direction_layer`; if the last column of ``Phi``
        is not 1; if ``centered`` and the constant is not in the span of
        ``UK``.

    Notes
    -----
    The outputs are affine in ``Phi`` on the sample: together with the
    constant they cover exactly what ``Phi`` covers of ``UK``, never more.

    Source: ours, companion result C1.

    Examples
    --------
    >>> Phi = np.array([[-1.0, 1], [0, 1], [1, 1]])
    >>> u1 = np.ones((3, 1)) / 3**0.5
    >>> shifted_principal_layer(Phi, u1, 0).shape
    (2, 2)
    >>> shifted_principal_layer(Phi, u1, 0, centered=True).shape
    (2, 1)
    """
    Phi = _with_constant(Phi)
    UK = _basis(UK, Phi.shape[0])
    theta = (_centered if centered else _uncentered)(Phi, UK)
    w = _separating(Phi, as_generator(rng), tol)
    theta = np.column_stack([theta, w])
    theta[-1] -= (Phi @ theta).min(axis=0)
    return theta


def _uncentered(Phi, UK) -> np.ndarray:
    return principal_vectors(Phi, UK).theta


def _centered(Phi, UK) -> np.ndarray:
    """``theta`` of the principal vectors orthogonal to the constant."""
    n = Phi.shape[0]
    one = np.full(n, 1 / np.sqrt(n))
    inside = UK.T @ one
    if abs(inside @ inside - 1) > ORTHONORMAL:
        raise ValueError(
            "centered needs the constant in the span of UK (L on a connected "
            f"graph), but UK holds only {inside @ inside:.4g} of it"
        )
    if UK.shape[1] == 1:
        return np.zeros((Phi.shape[1], 0))
    # an orthonormal basis of the part of span(UK) orthogonal to the constant
    _, _, right = np.linalg.svd(inside[None, :], full_matrices=True)
    rest = UK @ right[1:].T
    mean = Phi[:, :-1].mean(axis=0)
    varying = Phi[:, :-1] - mean
    # features that are constant up to rounding have no directions to offer
    if np.abs(varying).max(initial=0.0) <= ROUNDING * np.abs(Phi).max():
        return np.zeros((Phi.shape[1], 0))
    theta = principal_vectors(varying, rest).theta
    # the bias is set by the shift
    return np.vstack([theta, np.zeros(theta.shape[1])])
