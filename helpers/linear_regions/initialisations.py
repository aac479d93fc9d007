r"""Starting weights of many ReLU networks at once.

A batch of ``R`` networks of equal shape is a list of pairs ``(W, b)``, one a
layer, with ``W`` of shape ``(R, out, in)`` and ``b`` of shape ``(R, out)``;
ReLU after all layers but the last. :func:`network_of` takes one network out,
in the form that :mod:`helpers.linear_regions.networks` uses.

Decided on purpose: the networks draw from streams of their own, so that the
first ten of thirty are the ten of a smaller experiment; every kind also
initialises the output layer, by the rule of the hidden ones.
"""

from __future__ import annotations

import numpy as np

from helpers.core.checks import whole_number
from helpers.core.randomness import spawn

__all__ = [
    "KINDS",
    "geometric_coordinates",
    "geometric_layer",
    "init_params",
    "network_of",
    "random_peaks",
    "ratios_of_scales",
]

KINDS = ("default", "he", "xavier", "orthogonal", "lsuv", "rai", "raai")
"""Names of the initialisations."""

Params = list[tuple[np.ndarray, np.ndarray]]

# standard deviation of RAI's normal entries, times the root of the fan-in:
# Lu et al. (2020) choose it so that the length of the input is kept
_RAI = 0.6007
_BETA = 2, 1


def random_peaks(runs: int, depth: int, seed, low=0.1, high=0.9):
    """Starting peaks, independent and uniform.

    Parameters
    ----------
    runs, depth : int >= 1
    seed : int or SeedSequence
    low, high : float
        ``0 <= low < high <= 1``.

    Returns
    -------
    ndarray, shape (runs, depth + 1)

    Raises
    ------
    ValueError
        If an argument is out of range.

    Notes
    -----
    Each run draws from a stream of its own.

    Source: Milkert, Hyde and Laine (2025), Algorithm 1; the interval is ours.

    Examples
    --------
    >>> random_peaks(2, 3, seed=0).shape
    (2, 4)
    """
    runs, depth = whole_number(runs, "runs"), whole_number(depth, "depth")
    if not 0 <= low < high <= 1:
        raise ValueError(
            f"need 0 <= low < high <= 1, got low={low}, high={high}"
        )
    return np.array(
        [rng.uniform(low, high, depth + 1) for rng in spawn(seed, runs)]
    )


def ratios_of_scales(peaks, mode: str) -> np.ndarray:
    r"""What the recurrence puts into the weights: :math:`S_i=s_i/s_{i-1}`.

    With :math:`s_{-1}=1`, :math:`S_i=(1-a_i)a_{i+1}` for :math:`i\ge1`, and
    :math:`S_0` is :math:`(1-a_0)a_1` for concave and :math:`a_0a_1` for
    convex targets.

    Parameters
    ----------
    peaks : array_like, shape (..., d + 1)
        In (0, 1), ``d >= 1``.
    mode : {"convex", "concave"}

    Returns
    -------
    ndarray, shape (..., d)

    Raises
    ------
    ValueError
        If ``mode`` is unknown or there are fewer than two peaks.

    Notes
    -----
    Source: Milkert, Hyde and Laine (2025), Theorem 3.1 and section 4.1.

    Examples
    --------
    >>> ratios_of_scales([0.5, 0.5, 0.5], "convex").tolist()
    [0.25, 0.25]
    """
    a = np.asarray(peaks, dtype=float)
    if mode not in ("convex", "concave"):
        raise ValueError(f"mode must be convex or concave, got {mode!r}")
    if a.ndim == 0 or a.shape[-1] < 2:
        raise ValueError(f"peaks need two entries, got shape {a.shape}")
    left = 1 - a[..., :-1]
    if mode == "convex":
        left = np.concatenate([a[..., :1], left[..., 1:]], axis=-1)
    return left * a[..., 1:]


def init_params(kind: str, widths, runs: int, seed, x=None) -> Params:
    r"""Draw the weights of ``runs`` networks.

    ==============  ===================================================
    ``default``     PyTorch's ``Linear``: weights and biases uniform in
                    :math:`\pm1/\sqrt{m}`, :math:`m` the number of inputs
    ``he``          normal, variance :math:`2/m`; biases zero
    ``xavier``      uniform in :math:`\pm\sqrt{6/(m+n)}`, :math:`n`
                    outputs; biases zero
    ``orthogonal``  orthonormal rows or columns times :math:`\sqrt2`;
                    biases zero
    ``lsuv``        orthogonal, then each layer in turn scaled until its
                    output has variance 1 over ``x``; biases zero
    ``rai``         rows of :math:`[W\,|\,b]` normal with standard deviation
                    :math:`0.6007/\sqrt m`, one entry of each replaced by a
                    draw from Beta(2, 1)
    ``raai``        as ``rai``, with rows of covariance
                    :math:`\propto I-\frac12J/N` (anti-correlated)
    ==============  ===================================================

    Parameters
    ----------
    kind : str
        One of :data:`KINDS`.
    widths : sequence of int
        Inputs, hidden widths, outputs: ``(1, 4, 4, 4, 4, 4, 1)``.
    runs : int >= 1
    seed : int or SeedSequence
    x : array_like, shape (n, inputs), optional
        Samples, needed by ``lsuv`` alone.

    Returns
    -------
    list of (W, b)
        Shapes ``(runs, out, in)`` and ``(runs, out)``.

    Raises
    ------
    ValueError
        If the kind is unknown, a size is not positive, or ``x`` is missing
        where it is needed, not finite or of the wrong width.

    Notes
    -----
    A layer that is dead on all samples has variance 0 and is left as it is.
    ``raai`` follows the idea of its paper (asymmetric and anti-correlated);
    we do not know its law in every detail.

    Source: He et al. (2015), Glorot and Bengio (2010), Saxe et al. (2014),
    Mishkin and Matas (2016), Lu et al. (2020), Singh and Sreejith (2021).

    Examples
    --------
    >>> W, b = init_params("he", (1, 4, 1), runs=30, seed=0)[0]
    >>> W.shape, b.shape, bool(b.any())
    ((30, 4, 1), (30, 4), False)
    """
    if kind not in KINDS:
        raise ValueError(f"kind must be one of {KINDS}, got {kind!r}")
    widths = [whole_number(w, "widths") for w in widths]
    if len(widths) < 2:
        raise ValueError(f"widths needs inputs and outputs, got {widths}")
    streams = spawn(seed, whole_number(runs, "runs"))
    if kind == "lsuv":
        x = _samples(x, widths[0])
    nets = [_one(kind, widths, rng, x) for rng in streams]
    return [
        (np.stack([net[k][0] for net in nets]),
         np.stack([net[k][1] for net in nets]))
        for k in range(len(widths) - 1)
    ]  # fmt: skip


def _samples(x, inputs: int) -> np.ndarray:
    if x is None:
        raise ValueError("x must be given for kind 'lsuv'")
    x = np.asarray(x, dtype=float)
    if x.ndim != 2 or x.shape[1] != inputs or not len(x):
        raise ValueError(f"x must have shape (n, {inputs}), got {x.shape}")
    if not np.isfinite(x).all():
        raise ValueError("x must be finite, it holds NaN or infinity")
    return x


def _one(kind: str, widths, rng, x) -> Params:
    layers = [
        _LAYERS[kind](n, m, rng)
        for m, n in zip(widths[:-1], widths[1:], strict=True)
    ]
    if kind != "lsuv":
        return layers
    scaled, h = [], x
    for W, b in layers:
        spread = (h @ W.T).std()
        W = W / spread if spread > 0 else W
        scaled.append((W, b))
        h = np.maximum(h @ W.T, 0)
    return scaled


def _default(n, m, rng):
    bound = 1 / np.sqrt(m)
    return rng.uniform(-bound, bound, (n, m)), rng.uniform(-bound, bound, n)


def _he(n, m, rng):
    return rng.normal(0, np.sqrt(2 / m), (n, m)), np.zeros(n)


def _xavier(n, m, rng):
    bound = np.sqrt(6 / (m + n))
    return rng.uniform(-bound, bound, (n, m)), np.zeros(n)


def _orthogonal(n, m, rng):
    q, r = np.linalg.qr(rng.normal(size=(max(n, m), min(n, m))))
    q = q * np.sign(np.diag(r))
    return np.sqrt(2) * (q if n >= m else q.T), np.zeros(n)


def _rai(n, m, rng, anti: float = 0.0):
    rows = rng.normal(0, _RAI / np.sqrt(m), (n, m + 1))
    # (I - c J/N) has the root I - (1 - sqrt(1 - c)) J/N
    rows -= (1 - np.sqrt(1 - anti)) * rows.mean(axis=1, keepdims=True)
    rows[np.arange(n), rng.integers(m + 1, size=n)] = rng.beta(*_BETA, n)
    return rows[:, :m], rows[:, m]


def _raai(n, m, rng):
    return _rai(n, m, rng, anti=0.5)


_LAYERS = {
    "default": _default,
    "he": _he,
    "xavier": _xavier,
    "orthogonal": _orthogonal,
    "lsuv": _orthogonal,
    "rai": _rai,
    "raai": _raai,
}


def network_of(params: Params, run: int) -> Params:
    """One network of a batch, as ``(W (out, in), b (out,))``.

    Parameters
    ----------
    params : list of (W, b)
        Shapes ``(R, out, in)`` and ``(R, out)``.
    run : int
        From 0 to ``R - 1``.

    Returns
    -------
    list of (W, b)
        For :func:`helpers.linear_regions.networks.relu_forward`.

    Raises
    ------
    ValueError
        If there is no such run.

    Notes
    -----
    Source: ours.

    Examples
    --------
    >>> params = init_params("default", (1, 4, 1), runs=3, seed=0)
    >>> [W.shape for W, b in network_of(params, 2)]
    [(4, 1), (1, 4)]
    """
    runs = len(params[0][0])
    if not 0 <= run < runs:
        raise ValueError(f"run must lie in [0, {runs - 1}], got {run}")
    return [(np.array(W[run]), np.array(b[run])) for W, b in params]


def geometric_layer(theta, lam, r, signs=None):
    r"""Weights of neurons given by angles, offsets and gains.

    Neuron :math:`r\,\mathrm{ReLU}(u(\theta)^{\mathsf T}x+\lambda)` with
    :math:`u(\theta)` the unit vector of the spherical angles
    :math:`\theta`: :math:`u_1=\cos\theta_1`,
    :math:`u_2=\sin\theta_1\cos\theta_2`, …, the last one a product of sines.

    Parameters
    ----------
    theta : array_like, shape (..., n, m - 1)
    lam : array_like, shape (..., n)
    r : array_like, shape (..., n)
        Belongs behind the ReLU: multiply the columns of the next layer.
    signs : array_like, shape (..., n, 1), optional
        For one input, ``m = 1``, where :math:`u` is a sign and no angle; by
        default 1.

    Returns
    -------
    W : ndarray, shape (..., n, m)
    b : ndarray, shape (..., n)
        Equal to ``lam``.
    r : ndarray, shape (..., n)

    Raises
    ------
    ValueError
        If shapes do not fit or a value is not finite.

    Notes
    -----
    Source: Chen and Ge (2024), section 4.

    Examples
    --------
    >>> W, b, r = geometric_layer([[0.0], [np.pi / 2]], [0.5, 0], [2, 1])
    >>> W.round(12).tolist(), b.tolist()
    ([[1.0, 0.0], [0.0, 1.0]], [0.5, 0.0])
    """
    theta = np.asarray(theta, dtype=float)
    lam, r = np.asarray(lam, dtype=float), np.asarray(r, dtype=float)
    if theta.shape[:-1] != lam.shape or lam.shape != r.shape:
        raise ValueError(
            "theta (..., n, m - 1), lam (..., n) and r (..., n) must fit, got "
            f"{theta.shape}, {lam.shape} and {r.shape}"
        )
    for name, value in (("theta", theta), ("lam", lam), ("r", r)):
        if not np.isfinite(value).all():
            raise ValueError(f"{name} must be finite")
    sines = np.cumprod(np.sin(theta), axis=-1)
    one = np.ones((*lam.shape, 1))
    W = np.concatenate([np.cos(theta), one], axis=-1)
    W *= np.concatenate([one, sines], axis=-1)
    if signs is not None:
        W = W * np.asarray(signs, dtype=float)
    return W, lam, r


def geometric_coordinates(W, b):
    r"""Angles, offsets and gains of neurons: the inverse of
    :func:`geometric_layer`.

    Parameters
    ----------
    W : array_like, shape (..., n, m)
        No zero rows.
    b : array_like, shape (..., n)

    Returns
    -------
    theta : ndarray, shape (..., n, m - 1)
    lam : ndarray, shape (..., n)
        :math:`b/\lVert w\rVert`.
    r : ndarray, shape (..., n)
        :math:`\lVert w\rVert`.
    signs : ndarray, shape (..., n, 1)
        1, or the sign of the weight where ``m = 1``.

    Raises
    ------
    ValueError
        If shapes do not fit or a row is zero or not finite.

    Notes
    -----
    The function of the network is the same in both coordinates, as
    :math:`\mathrm{ReLU}(rz)=r\,\mathrm{ReLU}(z)` for :math:`r>0`; gradient
    descent is not.

    Source: Chen and Ge (2024), section 4; the start is ours.

    Examples
    --------
    >>> theta, lam, r, _ = geometric_coordinates([[0.0, 2.0]], [1.0])
    >>> (2 * theta / np.pi).tolist(), lam.tolist(), r.tolist()
    ([[1.0]], [0.5], [2.0])
    """
    W, b = np.asarray(W, dtype=float), np.asarray(b, dtype=float)
    if W.shape[:-1] != b.shape or W.ndim < 2:
        raise ValueError(f"W {W.shape} and b {b.shape} do not fit")
    r = np.linalg.norm(W, axis=-1)
    if not (np.isfinite(r).all() and np.isfinite(b).all() and (r > 0).all()):
        raise ValueError("W must have no zero row, and W and b be finite")
    u = W / r[..., None]
    if u.shape[-1] == 1:
        return np.zeros((*b.shape, 0)), b / r, r, np.sign(u)
    # lengths of what is left of u from each coordinate on
    rest = np.sqrt(np.cumsum(u[..., ::-1] ** 2, axis=-1))[..., ::-1]
    theta = np.arctan2(rest[..., 1:], u[..., :-1])
    theta[..., -1] = np.arctan2(u[..., -1], u[..., -2])
    return theta, b / r, r, np.ones((*b.shape, 1))
