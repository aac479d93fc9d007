r"""The three architectures of Part I, batched over problems.

Shapes: ``K`` problems, ``n`` neurons, ``b`` inputs, ``d`` outputs, ``T``
steps, ``m`` examples. Leading axes broadcast, so one network may meet many
samples and the other way round.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from helpers.core.checks import check_finite, check_sizes, positive_number
from helpers.core.randomness import Seed, as_generator


class LinearRNN(NamedTuple):
    """Encoder ``B (..., n, b)``, recurrent ``W (..., n, n)``, decoder
    ``D (..., d, n)``."""

    B: np.ndarray
    W: np.ndarray
    D: np.ndarray


class ShallowReLU(NamedTuple):
    """First layer ``B (..., n, b)`` and readout ``D (..., d, n)``."""

    B: np.ndarray
    D: np.ndarray


def check_lrnn(net: LinearRNN) -> LinearRNN:
    """A network whose matrices fit together.

    Parameters
    ----------
    net : LinearRNN

    Raises
    ------
    ValueError
        If shapes do not fit, a size is zero or an entry is not finite.

    Notes
    -----
    Source: ours.

    Examples
    --------
    >>> net = check_lrnn(LinearRNN([[1.0]], [[0.5]], [[2.0]]))
    >>> net.W.shape
    (1, 1)
    """
    B, W, D = check_finite(B=net.B, W=net.W, D=net.D)
    if min(B.ndim, W.ndim, D.ndim) < 2:
        raise ValueError("B, W and D must be matrices, stacked or not")
    n = W.shape[-1]
    if W.shape[-2] != n or B.shape[-2] != n or D.shape[-1] != n:
        raise ValueError(
            "W must be (n, n), B (n, b) and D (d, n) with one n, got "
            f"{W.shape}, {B.shape} and {D.shape}"
        )
    if 0 in (n, B.shape[-1], D.shape[-2]):
        raise ValueError("a network needs a neuron, an input and an output")
    return LinearRNN(B, W, D)


def _draw(rng, shape, variance: float) -> np.ndarray:
    return rng.normal(0, variance**0.5, shape)


def sample_lrnn(
    K: int, n: int, b: int, d: int, rng: Seed, gain: float = 1.0
) -> LinearRNN:
    r"""Independent linear RNNs with Gaussian entries.

    Variances: 1 for ``B``, :math:`g^2/n` for ``W``, :math:`1/n` for ``D``.

    Parameters
    ----------
    K, n, b, d : int
        Networks, neurons, inputs and outputs, all at least 1.
    rng : seed or Generator
    gain : float
        :math:`g`, positive: about the spectral radius of ``W``.

    Raises
    ------
    ValueError
        If a size is not a positive whole number, or ``gain`` not positive.

    Notes
    -----
    Source: ours; the paper's scales are not known, and that of ``D`` cancels
    between teacher and student.

    Examples
    --------
    >>> sample_lrnn(5, 4, 2, 1, rng=0).D.shape
    (5, 1, 4)
    """
    check_sizes(K=K, n=n, b=b, d=d)
    gain = positive_number(gain, "gain")
    rng = as_generator(rng)
    return LinearRNN(
        _draw(rng, (K, n, b), 1.0),
        _draw(rng, (K, n, n), gain**2 / n),
        _draw(rng, (K, d, n), 1 / n),
    )


def _sequences(X, b: int) -> np.ndarray:
    (X,) = check_finite(X=X)
    if X.ndim < 3 or X.shape[-2] != b or 0 in X.shape[-3:]:
        raise ValueError(
            f"X must have shape (..., T, {b}, m) with T and m at least 1, "
            f"got {X.shape}"
        )
    return X


def lrnn_states(net: LinearRNN, X) -> np.ndarray:
    r"""States :math:`h_t = W h_{t-1} + B x_t`, :math:`h_0 = 0`.

    Parameters
    ----------
    net : LinearRNN
    X : array_like (..., T, b, m)

    Returns
    -------
    numpy.ndarray (..., T, n, m)
        ``[..., t - 1, :, :]`` is :math:`h_t`.

    Raises
    ------
    ValueError
        If shapes do not fit or an entry is not finite.

    Notes
    -----
    Source: ours, from the public descriptions of the paper's model.

    Examples
    --------
    >>> net = LinearRNN([[1.0]], [[0.5]], [[2.0]])
    >>> lrnn_states(net, [[[1.0]], [[1.0]], [[1.0]]]).ravel()
    array([1.  , 1.5 , 1.75])
    """
    B, W, _ = check_lrnn(net)
    X = _sequences(X, B.shape[-1])
    driven = B[..., None, :, :] @ X
    lead = np.broadcast_shapes(W.shape[:-2], driven.shape[:-3])
    h = np.empty((*lead, *driven.shape[-3:]))
    h[..., 0, :, :] = driven[..., 0, :, :]
    for t in range(1, X.shape[-3]):
        h[..., t, :, :] = W @ h[..., t - 1, :, :] + driven[..., t, :, :]
    return h


def lrnn_forward(net: LinearRNN, X) -> np.ndarray:
    r"""Labels :math:`y = D h_T`, read at the last step.

    Parameters
    ----------
    net : LinearRNN
    X : array_like (..., T, b, m)

    Returns
    -------
    numpy.ndarray (..., d, m)

    Raises
    ------
    ValueError
        As :func:`lrnn_states`.

    Notes
    -----
    Source: ours; that only the last step is read is our reading.

    Examples
    --------
    >>> net = LinearRNN([[1.0]], [[0.5]], [[2.0]])
    >>> lrnn_forward(net, [[[1.0]], [[1.0]], [[1.0]]])
    array([[3.5]])
    """
    return np.asarray(net.D, np.float64) @ lrnn_states(net, X)[..., -1, :, :]


class LinearProblem(NamedTuple):
    """Student, teacher, inputs ``X (K, T, b, m)`` and labels ``Y (K, d, m)``
    of ``K`` match problems."""

    student: LinearRNN
    teacher: LinearRNN
    X: np.ndarray
    Y: np.ndarray


def sample_lrnn_problems(
    K: int, n: int, b: int, d: int, T: int, m: int, rng: Seed
) -> LinearProblem:
    r"""Independent teachers, students and inputs: the draw behind ``MP``.

    Parameters
    ----------
    K : int
        Problems.
    n, b, d, T, m : int
        Neurons, inputs, outputs, steps, examples.
    rng : seed or Generator

    Returns
    -------
    LinearProblem

    Raises
    ------
    ValueError
        If a size is not a positive whole number.

    Notes
    -----
    Networks as :func:`sample_lrnn`, standard normal inputs. Source: ours.

    Examples
    --------
    >>> sample_lrnn_problems(5, 4, 2, 1, T=3, m=6, rng=0).Y.shape
    (5, 1, 6)
    """
    check_sizes(T=T, m=m)
    rng = as_generator(rng)
    teacher = sample_lrnn(K, n, b, d, rng)
    student = sample_lrnn(K, n, b, d, rng)
    X = rng.normal(size=(K, T, b, m))
    return LinearProblem(student, teacher, X, lrnn_forward(teacher, X))


def _powers(M, first, steps: int) -> list[np.ndarray]:
    """``first``, ``M first``, ... by repeated products from the left."""
    found = [first]
    for _ in range(steps - 1):
        found.append(M @ found[-1])
    return found


def markov_parameters(net: LinearRNN, T: int) -> np.ndarray:
    r"""The effective weights :math:`K_s = D W^s B`, :math:`s<T`.

    Parameters
    ----------
    net : LinearRNN
    T : int

    Returns
    -------
    numpy.ndarray (..., T, d, b)

    Raises
    ------
    ValueError
        If ``T`` is below 1 or the network does not fit together.

    Notes
    -----
    :math:`y=\sum_t K_{T-t}x_t`. Source: ours; the notion is Kalman's.

    Examples
    --------
    >>> net = LinearRNN([[1.0]], [[0.5]], [[2.0]])
    >>> markov_parameters(net, 3).ravel()
    array([2. , 1. , 0.5])
    """
    check_sizes(T=T)
    net = check_lrnn(net)
    reached = _powers(net.W, net.B, T)
    return np.stack([net.D @ R for R in reached], axis=-3)


def controllability_matrix(net: LinearRNN, T: int) -> np.ndarray:
    r""":math:`\mathcal C_T = [W^{T-1}B, \dots, WB, B]`.

    The last state is :math:`\mathcal C_T` times the stacked inputs.

    Parameters
    ----------
    net : LinearRNN
    T : int

    Returns
    -------
    numpy.ndarray (..., n, T b)

    Raises
    ------
    ValueError
        As :func:`markov_parameters`.

    Notes
    -----
    Source: ours; the notion is Kalman's.

    Examples
    --------
    >>> net = LinearRNN([[1.0], [0.0]], [[0.0, 0.0], [1.0, 0.0]], [[1.0, 1.0]])
    >>> controllability_matrix(net, 2)
    array([[0., 1.],
           [1., 0.]])
    """
    check_sizes(T=T)
    net = check_lrnn(net)
    return np.concatenate(_powers(net.W, net.B, T)[::-1], axis=-1)


def observability_matrix(net: LinearRNN, T: int) -> np.ndarray:
    r""":math:`\mathcal O_T = [D W^{T-1}; \dots; D W; D]`.

    Parameters
    ----------
    net : LinearRNN
    T : int

    Returns
    -------
    numpy.ndarray (..., T d, n)

    Raises
    ------
    ValueError
        As :func:`markov_parameters`.

    Notes
    -----
    Source: ours; the notion is Kalman's.

    Examples
    --------
    >>> net = LinearRNN([[1.0]], [[0.5]], [[2.0]])
    >>> observability_matrix(net, 3).ravel()
    array([0.5, 1. , 2. ])
    """
    check_sizes(T=T)
    net = check_lrnn(net)
    turned = _powers(np.swapaxes(net.W, -1, -2), np.swapaxes(net.D, -1, -2), T)
    return np.concatenate(
        [np.swapaxes(R, -1, -2) for R in turned[::-1]], axis=-2
    )


def sample_lffn(K: int, widths, rng: Seed) -> list[np.ndarray]:
    r"""Independent linear feedforward networks, variance 1 / fan-in.

    Parameters
    ----------
    K : int
    widths : sequence of int
        Input, hidden layers, output.
    rng : seed or Generator

    Returns
    -------
    list of numpy.ndarray (K, n_l, n_{l-1})
        The first acts on the input.

    Raises
    ------
    ValueError
        If a size is not a positive whole number or there are fewer than two
        widths.

    Notes
    -----
    Source: ours.

    Examples
    --------
    >>> [W.shape for W in sample_lffn(2, [3, 4, 1], 0)]
    [(2, 4, 3), (2, 1, 4)]
    """
    widths = list(widths)
    if len(widths) < 2:
        raise ValueError(f"widths must be two or more sizes, got {widths}")
    check_sizes(K=K, **{f"widths[{i}]": w for i, w in enumerate(widths)})
    rng = as_generator(rng)
    return [
        _draw(rng, (K, m, n), 1 / n)
        for n, m in zip(widths, widths[1:], strict=False)
    ]


def lffn_forward(layers, X) -> np.ndarray:
    r"""Labels :math:`W_L \cdots W_1 x` of a linear feedforward network.

    Parameters
    ----------
    layers : list of array_like (..., n_l, n_{l-1})
    X : array_like (..., n_0, m)

    Returns
    -------
    numpy.ndarray (..., n_L, m)

    Raises
    ------
    ValueError
        If shapes do not fit, an entry is not finite, or there is no layer.

    Notes
    -----
    Source: ours.

    Examples
    --------
    >>> lffn_forward([[[2.0]], [[3.0]]], [[1.0, 0.5]])
    array([[6., 3.]])
    """
    if not len(layers):
        raise ValueError("layers must hold at least one matrix")
    (Z,) = check_finite(X=X)
    for i, W in enumerate(layers):
        (W,) = check_finite(**{f"layers[{i}]": W})
        if W.ndim < 2 or Z.ndim < 2 or W.shape[-1] != Z.shape[-2]:
            raise ValueError(
                f"layers[{i}] must have as many columns as there are rows "
                f"before, got {W.shape} after {Z.shape}"
            )
        Z = W @ Z
    return Z


def sample_relu(K: int, n: int, b: int, d: int, rng: Seed) -> ShallowReLU:
    r"""Independent shallow ReLU networks, ``B`` of variance ``1 / b``, ``D``
    of variance ``1 / n``.

    Parameters
    ----------
    K, n, b, d : int
    rng : seed or Generator

    Raises
    ------
    ValueError
        If a size is not a positive whole number.

    Notes
    -----
    Source: ours.

    Examples
    --------
    >>> sample_relu(2, 5, 3, 1, 0).B.shape
    (2, 5, 3)
    """
    check_sizes(K=K, n=n, b=b, d=d)
    rng = as_generator(rng)
    return ShallowReLU(
        _draw(rng, (K, n, b), 1 / b), _draw(rng, (K, d, n), 1 / n)
    )


def relu_forward(net: ShallowReLU, X, activation=None) -> np.ndarray:
    r"""Labels :math:`D\,\sigma(B x)`.

    Parameters
    ----------
    net : ShallowReLU
    X : array_like (..., b, m)
    activation : callable, optional
        Elementwise; ReLU by default.

    Returns
    -------
    numpy.ndarray (..., d, m)

    Raises
    ------
    ValueError
        If shapes do not fit or an entry is not finite.

    Notes
    -----
    Source: ours.

    Examples
    --------
    >>> relu_forward(ShallowReLU([[1.0], [-1.0]], [[1.0, 1.0]]), [[2.0, -3.0]])
    array([[2., 3.]])
    """
    B, D, X = check_finite(B=net.B, D=net.D, X=X)
    if X.ndim < 2 or B.shape[-1] != X.shape[-2] or D.shape[-1] != B.shape[-2]:
        raise ValueError(
            "B must be (n, b), D (d, n) and X (b, m), got "
            f"{B.shape}, {D.shape} and {X.shape}"
        )
    z = B @ X
    return D @ (np.maximum(z, 0) if activation is None else activation(z))
