r"""ReLU layers on a fixed sample, plain and with skip connections.

A layer takes features ``H``, shape ``(n, m)``, one sample a row, to
:math:`R=\sigma(HW+\mathbf 1b^{\mathsf T})` with weights ``(m, k)`` and biases
``(k,)``. With :math:`\Phi=[H,\mathbf 1]` and :math:`\Theta` the weights over
the biases, shape ``(m + 1, k)``, the same layer is
:math:`\sigma(\Phi\Theta)`.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from helpers.core.checks import whole_number
from helpers.core.randomness import Seed, as_generator

SKIPS = (None, "concat", "add")


class Layers(NamedTuple):
    """Weights and biases of consecutive layers, first layer first."""

    weights: list[np.ndarray]
    biases: list[np.ndarray]


def _samples(X, name: str = "X") -> np.ndarray:
    X = np.asarray(X, dtype=float)
    if X.ndim != 2 or 0 in X.shape:
        raise ValueError(
            f"{name} must have shape (n, d) with n, d >= 1, got {X.shape}"
        )
    if not np.isfinite(X).all():
        raise ValueError(f"{name} must be finite, it holds NaN or infinity")
    return X


def _skip(skip) -> None:
    if skip not in SKIPS:
        raise ValueError(f"skip must be one of {SKIPS}, got {skip!r}")


def with_bias(H) -> np.ndarray:
    r"""Append the constant: :math:`\Phi=[H,\mathbf 1]`.

    Parameters
    ----------
    H : array_like, shape (n, m)
        ``m = 0`` is allowed and leaves the constant alone.

    Returns
    -------
    ndarray, shape (n, m + 1)

    Raises
    ------
    ValueError
        If ``H`` is not a finite matrix with a row.

    Notes
    -----
    Source: the spectral-alignment paper, section 1.

    Examples
    --------
    >>> with_bias([[2.0], [3.0]])
    array([[2., 1.],
           [3., 1.]])
    """
    H = np.asarray(H, dtype=float)
    if H.ndim != 2 or H.shape[0] == 0:
        raise ValueError(f"H must be a matrix with a row, got {H.shape}")
    if not np.isfinite(H).all():
        raise ValueError("H must be finite, it holds NaN or infinity")
    return np.column_stack([H, np.ones(H.shape[0])])


def neuron_outputs(Phi, Theta) -> np.ndarray:
    r"""Outputs of neurons on the sample: :math:`\sigma(\Phi\Theta)`.

    Parameters
    ----------
    Phi : array_like, shape (n, m)
        Features, the bias column included.
    Theta : array_like, shape (m,) or (m, k)
        One neuron, or one a column.

    Returns
    -------
    ndarray, shape (n,) or (n, k)
        Nonnegative.

    Raises
    ------
    ValueError
        If shapes disagree or an input is not finite.

    Notes
    -----
    Source: the spectral-alignment paper, section 1.

    Examples
    --------
    >>> neuron_outputs([[-1.0, 1.0], [2.0, 1.0]], [1.0, 0.0])
    array([0., 2.])
    """
    Phi = _samples(Phi, "Phi")
    Theta = np.asarray(Theta, dtype=float)
    if Theta.ndim not in (1, 2) or Theta.shape[0] != Phi.shape[1]:
        raise ValueError(
            f"Theta must have shape ({Phi.shape[1]},) or "
            f"({Phi.shape[1]}, k), got {Theta.shape}"
        )
    if not np.isfinite(Theta).all():
        raise ValueError("Theta must be finite, it holds NaN or infinity")
    return np.maximum(Phi @ Theta, 0.0)


def _widths(widths) -> list[int]:
    widths = list(np.atleast_1d(widths))
    for width in widths:
        if not isinstance(width, int | np.integer) or width < 1:
            raise ValueError(f"widths must be whole numbers >= 1: {widths}")
    return [int(width) for width in widths]


def random_layers(
    d: int,
    widths,
    rng: Seed,
    *,
    skip: str | None = None,
    gain: float = np.sqrt(2.0),
    bias_scale: float = 1.0,
) -> Layers:
    r"""Gaussian weights and biases for layers that fit together.

    Weights of a layer with :math:`m` inputs are independent with mean 0 and
    variance :math:`\texttt{gain}^2/m`, biases have standard deviation
    ``bias_scale``.

    Parameters
    ----------
    d : int >= 1
        Inputs of the first layer.
    widths : int or sequence of int
        Neurons of each layer.
    rng : int, SeedSequence or Generator
    skip : None, 'concat' or 'add'
        With ``'concat'`` the inputs of layer :math:`\ell` are all that came
        before, :math:`d+k_1+\dots+k_{\ell-1}`. With ``'add'`` all widths
        must be equal.
    gain : float > 0
        The default keeps the mean square of a plain layer without biases
        (He initialisation).
    bias_scale : float >= 0

    Returns
    -------
    Layers
        ``weights`` (m, k) and ``biases`` (k,) for :func:`relu_features`.

    Raises
    ------
    ValueError
        If an argument is out of range.

    Notes
    -----
    Source: standard; the paper has no random layers.

    Examples
    --------
    >>> layers = random_layers(2, [3, 4], 0, skip="concat")
    >>> [w.shape for w in layers.weights]
    [(2, 3), (5, 4)]
    """
    _skip(skip)
    rng = as_generator(rng)
    widths = _widths(widths)
    d = whole_number(d, "d")
    if not 0 < gain < np.inf or not 0 <= bias_scale < np.inf:
        raise ValueError(
            "gain must be > 0 and bias_scale >= 0, both finite, got "
            f"{gain} and {bias_scale}"
        )
    if skip == "add" and len(set(widths)) > 1:
        raise ValueError(f"widths must be equal for skip='add', got {widths}")
    weights, biases, m = [], [], d
    for k in widths:
        weights.append(rng.normal(0.0, gain / np.sqrt(m), size=(m, k)))
        biases.append(rng.normal(0.0, bias_scale, size=k))
        m = m + k if skip == "concat" else k
    return Layers(weights, biases)


def relu_features(
    X, weights, biases, skip: str | None = None, outgoing=None
) -> list[np.ndarray]:
    r"""Features of every layer of a ReLU network.

    With :math:`H_0=X` and
    :math:`R_\ell=\sigma(H_{\ell-1}W_\ell+\mathbf 1b_\ell^{\mathsf T})`:

    - ``None``, plain: :math:`H_\ell=R_\ell`;
    - ``'concat'``: :math:`H_\ell=[H_{\ell-1},R_\ell]`;
    - ``'add'``: :math:`H_1=R_1`, which takes the inputs to the width of the
      network, and :math:`H_\ell=H_{\ell-1}+R_\ell\Omega_\ell` for
      :math:`\ell\ge2`. These features may be negative.

    Parameters
    ----------
    X : array_like, shape (n, d)
        Samples as rows.
    weights : sequence of array_like, shapes (m, k)
        ``m`` is the number of columns of :math:`H_{\ell-1}`.
    biases : sequence of array_like, shapes (k,)
    skip : None, 'concat' or 'add'
    outgoing : sequence of array_like, shapes (k, m), optional
        :math:`\Omega_2,\Omega_3,\dots`, one fewer than layers, for ``'add'``
        only. By default identities.

    Returns
    -------
    list of ndarray
        :math:`H_0,H_1,\dots,H_p`, each with ``n`` rows; the constant of the
        readout is not among the columns.

    Raises
    ------
    ValueError
        If shapes do not fit, an input is not finite, or ``skip`` is unknown.

    Notes
    -----
    Source: the spectral-alignment paper, section 1 and Remark 5.7.

    Examples
    --------
    >>> x = [[-1.0], [2.0]]
    >>> relu_features(x, [[[1.0]]], [[0.0]], skip="concat")[1]
    array([[-1.,  0.],
           [ 2.,  2.]])
    """
    _skip(skip)
    H = _samples(X)
    depth = len(weights)
    if len(biases) != depth:
        raise ValueError(
            "biases must have one entry a layer: got "
            f"{depth} weights and {len(biases)} biases"
        )
    if outgoing is not None and (
        skip != "add" or len(outgoing) != max(depth - 1, 0)
    ):
        raise ValueError(
            "outgoing must have one matrix for every layer but the first, "
            f"and needs skip='add': got {len(outgoing)} for {depth} layers"
        )
    features = [H]
    for layer in range(depth):
        R = _branch(H, weights[layer], biases[layer], layer)
        if skip == "concat":
            R = np.column_stack([H, R])
        elif skip == "add" and layer > 0:
            omega = None if outgoing is None else outgoing[layer - 1]
            R = H + _outgoing(R, omega, H.shape[1], layer)
        H = R
        features.append(H)
    return features


def _branch(H, W, b, layer: int) -> np.ndarray:
    W, b = np.asarray(W, dtype=float), np.asarray(b, dtype=float)
    if W.ndim != 2 or W.shape[0] != H.shape[1] or b.shape != W.shape[1:]:
        raise ValueError(
            f"layer {layer + 1}: weights must have shape ({H.shape[1]}, k) "
            f"and biases (k,), got {W.shape} and {b.shape}"
        )
    if not (np.isfinite(W).all() and np.isfinite(b).all()):
        raise ValueError(
            f"layer {layer + 1}: weights and biases must be finite"
        )
    return np.maximum(H @ W + b, 0.0)


def _outgoing(R, omega, m: int, layer: int) -> np.ndarray:
    if omega is None:
        if R.shape[1] != m:
            raise ValueError(
                f"layer {layer + 1}: an additive skip needs {m} neurons or "
                f"outgoing weights, got {R.shape[1]} neurons"
            )
        return R
    omega = np.asarray(omega, dtype=float)
    if omega.shape != (R.shape[1], m):
        raise ValueError(
            f"layer {layer + 1}: outgoing must have shape "
            f"({R.shape[1]}, {m}), got {omega.shape}"
        )
    if not np.isfinite(omega).all():
        raise ValueError(f"layer {layer + 1}: outgoing must be finite")
    return R @ omega
