r"""ReLU networks that compute sums of waves exactly.

A network is a list of pairs ``(W, b)``, with a ReLU after all but the last.
Four neurons a layer are enough: the running sum, the two halves of the next
triangle, and a constant that shrinks with the wave.
"""

from __future__ import annotations

import numpy as np

from helpers.linear_regions.triangles import (
    Mode,
    _sum_arguments,
    check_peaks,
)

Layers = list[tuple[np.ndarray, np.ndarray]]


def check_layers(layers, name: str = "layers") -> Layers:
    """Layers as float64 arrays whose shapes fit together.

    Parameters
    ----------
    layers : sequence of pairs
        ``W (out, in)`` and ``b (out,)``, at least one pair.
    name : str
        What the argument is called in an error.

    Raises
    ------
    ValueError
        If there is no layer, a layer is empty, shapes do not fit, or an
        entry is not finite.

    Notes
    -----
    Source: ours.

    Examples
    --------
    >>> len(check_layers([([[1.0]], [0.0])]))
    1
    """
    checked: Layers = []
    for i, (W, b) in enumerate(layers):
        W, b = np.asarray(W, np.float64), np.asarray(b, np.float64)
        if W.ndim != 2 or W.size == 0:
            raise ValueError(
                f"{name}[{i}]: W must be a matrix with at least one row and "
                f"column, got shape {W.shape}"
            )
        if b.shape != W.shape[:1]:
            raise ValueError(
                f"{name}[{i}]: b must have shape {W.shape[:1]}, got {b.shape}"
            )
        if checked and W.shape[1] != checked[-1][0].shape[0]:
            raise ValueError(
                f"{name}[{i}]: W must have {checked[-1][0].shape[0]} columns, "
                f"one for each neuron before, got {W.shape[1]}"
            )
        if not (np.isfinite(W).all() and np.isfinite(b).all()):
            raise ValueError(f"{name}[{i}]: weights must be finite numbers")
        checked.append((W, b))
    if not checked:
        raise ValueError(f"{name} must hold at least one layer")
    return checked


def check_negative_slope(slope: float) -> float:
    """A slope other than 1, with which the activation would be linear.

    Parameters
    ----------
    slope : float

    Notes
    -----
    Source: ours.
    """
    slope = float(slope)
    if not np.isfinite(slope) or slope == 1:
        raise ValueError(
            f"negative_slope must be a finite number other than 1, got {slope}"
        )
    return slope


def _rectify(z: np.ndarray, slope: float) -> np.ndarray:
    return np.where(z > 0, z, slope * z) if slope else np.maximum(z, 0)


def hidden_values(layers, x, negative_slope: float = 0.0) -> list:
    """Pre-activations of every layer, the output among them.

    Parameters
    ----------
    layers : Layers
    x : array_like (n, D)
        Points as rows; a vector of length ``n`` where ``D`` is 1.
    negative_slope : float
        Slope of the activation on the negative side; 0 is ReLU.

    Returns
    -------
    list of numpy.ndarray (n, width)
        The last one is the output.

    Raises
    ------
    ValueError
        If layers or points are not as :func:`check_layers` wants them.

    Notes
    -----
    Source: ours.

    Examples
    --------
    >>> net = triangle_net_layers([0.5, 0.5], "convex")
    >>> [z.shape for z in hidden_values(net, [0.1, 0.2, 0.3])]
    [(3, 4), (3, 1)]
    """
    layers = check_layers(layers)
    slope = check_negative_slope(negative_slope)
    values = np.asarray(x, dtype=np.float64)
    if values.ndim == 1:
        values = values[:, None]
    wanted = layers[0][0].shape[1]
    if values.ndim != 2 or values.shape[1] != wanted:
        raise ValueError(f"x must have shape (n, {wanted}), got {np.shape(x)}")
    if not np.isfinite(values).all():
        raise ValueError("x must be finite numbers")
    seen = []
    for i, (W, b) in enumerate(layers):
        before = _rectify(values, slope) if i else values
        values = before @ W.T + b
        seen.append(values)
    return seen


def relu_forward(layers, x, negative_slope: float = 0.0) -> np.ndarray:
    """The output of a network.

    Parameters
    ----------
    layers, x, negative_slope
        As :func:`hidden_values`.

    Returns
    -------
    numpy.ndarray (n, o)

    Raises
    ------
    ValueError
        As :func:`hidden_values`.

    Notes
    -----
    Source: ours.

    Examples
    --------
    >>> relu_forward(vee_net_layers([0.5] * 3), [-1.0, 0.0, 0.5]).ravel()
    array([1.  , 0.  , 0.25])
    """
    return hidden_values(layers, x, negative_slope)[-1]


def triangle_net_layers(
    peaks, mode: Mode, scales=None, negative_slope: float = 0.0
) -> Layers:
    r"""Width-4 network for :math:`x \pm \sum_{i<d} s_i W_i` on [0, 1].

    Neurons of a hidden layer: running sum, the wave, the wave beyond the
    next peak, and a constant as large as the wave. After hidden layer ``k``
    they hold :math:`x \pm f_k`, :math:`s_{k-1} W_{k-1}`,
    :math:`s_{k-1}\,\mathrm{ReLU}(W_{k-1} - a_k)` and :math:`s_{k-1}`.

    Parameters
    ----------
    peaks : array_like (d + 1,)
    mode : {"concave", "convex"}
    scales : array_like (d,), optional
        Positive. By default those of
        :func:`~helpers.linear_regions.triangles.limit_scales`.
    negative_slope : float
        For a leaky ReLU of that slope, any number but 1.

    Returns
    -------
    Layers
        ``d`` hidden layers of width 4, then the output.

    Raises
    ------
    ValueError
        If an argument is outside its range, or a scale is not positive.

    Notes
    -----
    The identity needs a running sum that is nowhere negative. The scales of
    the recurrence guarantee it; free scales with ``mode="convex"`` may not,
    and the network then clips what the formula does not. Outside [0, 1] the
    two differ. Source: Milkert, Hyde and Laine, section 3 and A.1, with the
    layer index mended; leaky slopes are ours.

    Examples
    --------
    >>> from helpers.linear_regions.triangles import triangle_sum
    >>> a, x = [0.3, 0.6, 0.4, 0.5], np.linspace(0, 1, 9)
    >>> net = relu_forward(triangle_net_layers(a, "concave"), x).ravel()
    >>> bool(np.allclose(net, triangle_sum(x, a, "concave")))
    True
    """
    a, sign, s = _sum_arguments(peaks, mode, scales)
    if not np.all(s > 0):
        raise ValueError(f"scales must be positive, got {s[s <= 0][0]}")
    nu = check_negative_slope(negative_slope)
    ratio = s / np.concatenate([[1.0], s[:-1]])
    first = np.array([[1.0], [1.0], [1.0], [0.0]])
    layers = [(first, np.array([0.0, 0.0, -a[0], 1.0]))]
    for i in range(s.size):
        beyond = -1 / ((1 - nu) * a[i] * (1 - a[i]))
        wave = ratio[i] * np.array(
            [0.0, 1 / a[i] - nu * beyond, beyond, nu * a[i] * beyond]
        )
        total = np.array([1.0, 0, 0, 0]) + sign * wave
        if i == s.size - 1:
            layers.append((total[None], np.zeros(1)))
            break
        constant = np.array([0, 0, 0, ratio[i]])
        rows = [total, wave, wave - a[i + 1] * constant, constant]
        layers.append((np.stack(rows), np.zeros(4)))
    return layers


def vee_net_layers(peaks) -> Layers:
    r"""Width-4 network on [-1, 1] whose graph is a rounded letter V.

    With :math:`z = (x+1)/2` it computes
    :math:`1 - \sum_{i<d} \hat s_i \hat W_i(z)`, where the peaks are
    :math:`\hat a_0 = a_0` and :math:`\hat a_i = 1 - a_i` after it, and the
    scales obey the recurrence from :math:`\hat s_0 = 1`. It is 1 at both
    ends, and 0 at :math:`x = 2 a_0 - 1`; all peaks one half give
    :math:`x^2` up to :math:`4^{-d}`.

    Parameters
    ----------
    peaks : array_like (d + 1,)

    Returns
    -------
    Layers
        ``d`` hidden layers of width 4, then the output.

    Raises
    ------
    ValueError
        If a peak is outside (0, 1) or there are fewer than two.

    Notes
    -----
    The number of pieces is :math:`2^d` on the whole line, since the outer
    pieces go on as they are. Source: Milkert, Hyde and Laine, A.1.

    Examples
    --------
    >>> relu_forward(vee_net_layers([0.25, 0.5]), [-1, -0.5, 1]).ravel()
    array([1., 0., 1.])
    """
    a = check_peaks(peaks, least=2)
    if a.ndim != 1:
        raise ValueError(f"peaks must be one vector, got shape {a.shape}")
    left, right = 1 / (2 * a[0]), 1 / (2 * (1 - a[0]))
    first = np.array([[0.0], [-left], [right], [0.0]])
    layers = [(first, np.array([1.0, 1 - left, 1 - right, 1.0]))]
    for i in range(1, a.size - 1):
        q = a[i] * (1 - a[i + 1])
        r = q / (1 - a[i])
        rows = [
            [1, 1, 1, -1],
            [0, a[i + 1] - 1, a[i + 1] - 1, q],
            [0, r, r, -a[i] * r],
            [0, 0, 0, q],
        ]
        layers.append((np.array(rows, dtype=np.float64), np.zeros(4)))
    layers.append((np.array([[1.0, 1.0, 1.0, -1.0]]), np.zeros(1)))
    return layers


def block_diagonal_layers(peaks, A, b, C, c) -> Layers:
    r"""Several V networks side by side: :math:`x \mapsto c + C\,v(Ax + b)`.

    Block ``j`` applies the V network of its own peaks to the number
    :math:`A_j \cdot x + b_j`. Its hidden matrices are block diagonal; there
    is no activation between the affine map and a block.

    Parameters
    ----------
    peaks : array_like (k, d + 1)
    A : array_like (k, D)
    b : array_like (k,)
    C : array_like (o, k)
    c : array_like (o,)

    Returns
    -------
    Layers
        ``d`` hidden layers of width ``4 k``, then the output.

    Raises
    ------
    ValueError
        If shapes do not fit together, an entry is not finite or a peak is
        outside (0, 1).

    Notes
    -----
    Source: Milkert, Hyde and Laine, section 5 and figure 9.

    Examples
    --------
    The difference of two blocks at the same number is zero.

    >>> net = block_diagonal_layers(
    ...     [[0.3, 0.5]] * 2, [[1.0]] * 2, [0.0] * 2, [[1.0, -1.0]], [0.0]
    ... )
    >>> bool(np.abs(relu_forward(net, [0.1, 0.7])).max() < 1e-15)
    True
    """
    a = check_peaks(peaks, least=2)
    if a.ndim != 2:
        raise ValueError(f"peaks must have shape (k, d + 1), got {a.shape}")
    k = a.shape[0]
    (A, b), (C, c) = check_layers([(A, b), (C, c)], "[(A, b), (C, c)]")
    if A.shape[0] != k:
        raise ValueError(f"A must have {k} rows, one a block, got {A.shape}")
    nets = [vee_net_layers(row) for row in a]
    first = np.concatenate([net[0][0] * A[j] for j, net in enumerate(nets)])
    shift = [net[0][0][:, 0] * b[j] + net[0][1] for j, net in enumerate(nets)]
    layers: Layers = [(first, np.concatenate(shift))]
    for i in range(1, a.shape[1] - 1):
        W = np.zeros((4 * k, 4 * k))
        for j, net in enumerate(nets):
            W[4 * j : 4 * j + 4, 4 * j : 4 * j + 4] = net[i][0]
        layers.append((W, np.zeros(4 * k)))
    layers.append((np.kron(C, nets[0][-1][0]), c))
    return layers
