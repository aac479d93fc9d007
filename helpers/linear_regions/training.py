r"""Many narrow ReLU networks trained at once, by their peaks or weights.

The module of this part that trains; needs torch. ``R`` networks of one shape
are trained side by side: values are ``(R, width, n)``, weights
``(R, out, in)``. Adam acts entry by entry and each network has its own loss,
so that this is the same as training them one after the other. Arithmetic is
float64 on one thread, every step uses the whole sample. Between machines the
last digits differ and a thousand steps on raw weights make that visible:
long runs agree as samples of one experiment.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
import torch

from helpers.core.checks import positive_number, whole_number
from helpers.core.tolerances import ADAM_DENOMINATOR
from helpers.linear_regions.initialisations import (
    geometric_coordinates,
    ratios_of_scales,
)

__all__ = [
    "Fit",
    "batched_forward",
    "fit_geometric",
    "fit_params",
    "fit_peaks",
    "map_entries",
    "peak_derivative",
    "peaks_to_params",
    "recurrence_ratios",
    "weights_of_peaks",
]

_ADAM_MOMENTS = 0.9, 0.999
CLAMP = 0.01
"""Default distance that peaks keep from 0 and 1."""

Params = list[tuple[np.ndarray, np.ndarray]]


class Fit(NamedTuple):
    """Where training ended, and what was seen on the way.

    Parameters
    ----------
    params : list of (W, b)
        Shapes ``(R, out, in)`` and ``(R, out)``.
    mse : ndarray, shape (records, R)
        Mean square error at the recorded epochs.
    epochs : ndarray, shape (records,)
        Steps done by then.
    probes : list
        What the probe returned at each record.
    peaks : ndarray, shape (R, d + 1), or None
    ratios : ndarray, shape (R, d), or None
        Freed ratios of scales.
    escaped : ndarray of bool, shape (R,), or None
        Whether a peak ever left (0, 1).
    """

    params: Params
    mse: np.ndarray
    epochs: np.ndarray
    probes: list
    peaks: np.ndarray | None = None
    ratios: np.ndarray | None = None
    escaped: np.ndarray | None = None


def recurrence_ratios(peaks: torch.Tensor, mode: str) -> torch.Tensor:
    """Ratios of scales, from the recurrence, differentiable.

    Parameters
    ----------
    peaks : Tensor, shape (..., d + 1)
    mode : {"convex", "concave"}

    Returns
    -------
    Tensor, shape (..., d)

    Raises
    ------
    ValueError
        If the mode is unknown or there are fewer than two peaks.

    Notes
    -----
    Source: Milkert, Hyde and Laine (2025), Theorem 3.1 and section 4.1.

    Examples
    --------
    >>> recurrence_ratios(torch.full((3,), 0.5), "concave").tolist()
    [0.25, 0.25]
    """
    if mode not in ("convex", "concave"):
        raise ValueError(f"mode must be convex or concave, got {mode!r}")
    if peaks.ndim == 0 or peaks.shape[-1] < 2:
        raise ValueError(
            f"peaks need two entries, got shape {tuple(peaks.shape)}"
        )
    left = 1 - peaks[..., :-1]
    if mode == "convex":
        left = torch.cat([peaks[..., :1], left[..., 1:]], dim=-1)
    return left * peaks[..., 1:]


def peaks_to_params(
    peaks: torch.Tensor, mode: str, ratios: torch.Tensor | None = None
) -> list[tuple[torch.Tensor, torch.Tensor]]:
    r"""The weights of width-4 networks as a function of their peaks.

    With :math:`t^{(i)}=(0,\frac{S_i}{a_i},-\frac{S_i}{a_i(1-a_i)},0)` the
    layer after triangle :math:`i` has the rows
    :math:`e_1\pm t^{(i)}`, :math:`t^{(i)}`,
    :math:`t^{(i)}-S_ia_{i+1}e_4` and :math:`S_ie_4`.

    Parameters
    ----------
    peaks : Tensor, shape (R, d + 1)
        ``d >= 1``. The last one is used by the recurrence alone.
    mode : {"convex", "concave"}
        Waves are subtracted or added.
    ratios : Tensor, shape (R, d), optional
        :math:`S_i=s_i/s_{i-1}`; by default from the recurrence.

    Returns
    -------
    list of (W, b), length d + 1
        Tensors ``(R, out, in)`` and ``(R, out)``; autograd goes through.

    Raises
    ------
    ValueError
        If shapes do not fit or the mode is unknown.

    Notes
    -----
    :math:`O(d)` numbers, each a function of at most two peaks.

    Source: Milkert, Hyde and Laine (2025), appendix A.1 and Algorithm 1, with
    the index shift corrected.

    Examples
    --------
    >>> half = torch.full((1, 3), 0.5, dtype=torch.float64)
    >>> params = peaks_to_params(half, "convex")
    >>> x = torch.tensor([[[0.0, 0.25, 0.5, 1.0]]], dtype=torch.float64)
    >>> batched_forward(params, x).flatten().tolist()
    [0.0, 0.0625, 0.25, 1.0]
    """
    if peaks.ndim != 2:
        raise ValueError(
            f"peaks must have shape (R, d + 1), got {tuple(peaks.shape)}"
        )
    S = recurrence_ratios(peaks, mode) if ratios is None else ratios
    runs, depth = peaks.shape[0], peaks.shape[1] - 1
    if S.shape != (runs, depth):
        raise ValueError(
            f"ratios must have shape ({runs}, {depth}), got {tuple(S.shape)}"
        )
    sign = -1.0 if mode == "convex" else 1.0
    a, following = peaks[:, :-1], peaks[:, 1:]
    rising = S / a
    zero = torch.zeros_like(S)
    t = torch.stack([zero, rising, -rising / (1 - a), zero], dim=-1)
    one = torch.zeros(4, dtype=peaks.dtype)
    one[0] = 1.0
    total = one + sign * t
    fourth = torch.zeros(4, dtype=peaks.dtype)
    fourth[3] = 1.0
    hidden = torch.stack(
        [
            total,
            t,
            t - (S * following).unsqueeze(-1) * fourth,
            S.unsqueeze(-1) * fourth,
        ],
        dim=2,
    )
    shape = torch.tensor([1.0, 1.0, 1.0, 0.0], dtype=peaks.dtype)
    first = shape.reshape(1, 4, 1).expand(runs, 4, 1)
    none = torch.zeros_like(peaks[:, 0])
    bias = torch.stack([none, none, -peaks[:, 0], none + 1], dim=-1)
    empty = torch.zeros(runs, 4, dtype=peaks.dtype)
    layers = [(first, bias)]
    layers += [(hidden[:, i], empty) for i in range(depth - 1)]
    layers.append((total[:, -1:], torch.zeros(runs, 1, dtype=peaks.dtype)))
    return layers


def weights_of_peaks(peaks, mode: str, ratios=None) -> Params:
    """Weights of a batch of networks from peaks and ratios, in NumPy.

    Unlike :func:`helpers.linear_regions.networks.triangle_net_layers` it
    takes ratios of any sign, as freed scales may end with.

    Parameters
    ----------
    peaks : array_like, shape (R, d + 1)
    mode : {"convex", "concave"}
    ratios : array_like, shape (R, d), optional

    Returns
    -------
    list of (W, b)

    Raises
    ------
    ValueError
        As :func:`peaks_to_params`.

    Notes
    -----
    Source: Milkert, Hyde and Laine (2025), appendix A.1.

    Examples
    --------
    >>> W, b = weights_of_peaks([[0.5, 0.5]], "convex")[-1]
    >>> (W + 0.0).tolist()
    [[[1.0, -0.5, 1.0, 0.0]]]
    """
    a = torch.tensor(np.asarray(peaks, dtype=float))
    S = None
    if ratios is not None:
        S = torch.tensor(np.asarray(ratios, dtype=float))
    return _arrays(peaks_to_params(a, mode, S))


def peak_derivative(peaks, mode: str, x, ratios=None) -> np.ndarray:
    r"""Derivative of a network's output in its peaks, by autograd.

    Parameters
    ----------
    peaks : array_like, shape (d + 1,)
        In (0, 1).
    mode : {"convex", "concave"}
    x : array_like, shape (n,)
        In [0, 1].
    ratios : array_like, shape (d,), optional
        Ratios of scales, held fixed; by default they follow the peaks.

    Returns
    -------
    ndarray, shape (d + 1, n)

    Raises
    ------
    ValueError
        As :func:`peaks_to_params`.

    Notes
    -----
    :math:`O(d n)` a point: slow, and there as a witness of
    :func:`helpers.linear_regions.triangles.peak_jacobian`.

    Source: Milkert, Hyde and Laine (2025), Algorithm 1.

    Examples
    --------
    >>> peak_derivative([0.5, 0.5], "convex", [0.5]).tolist()
    [[0.0], [-0.5]]
    """
    a = torch.tensor(np.asarray(peaks, dtype=float)[None])
    t = torch.tensor(np.asarray(x, dtype=float))[None, None]
    S = None
    if ratios is not None:
        S = torch.tensor(np.asarray(ratios, dtype=float)[None])
    jacobian = torch.autograd.functional.jacobian(
        lambda a: batched_forward(peaks_to_params(a, mode, S), t)[0, 0], a
    )
    return jacobian[:, 0].T.numpy()


def map_entries(peaks, mode: str, scales: bool = False) -> int:
    r"""Nonzero entries of the Jacobian of the map from peaks to weights.

    Parameters
    ----------
    peaks : array_like, shape (d + 1,)
        In (0, 1).
    mode : {"convex", "concave"}
    scales : bool
        Take the map from peaks to the scales :math:`s_i` instead.

    Returns
    -------
    int
        Multiplications that back-propagation through the map costs.

    Raises
    ------
    ValueError
        As :func:`peaks_to_params`.

    Notes
    -----
    Source: ours, for a question of the reviewers.

    Examples
    --------
    The scales of two waves depend on two and three peaks.

    >>> map_entries([0.3, 0.4, 0.6], "convex", scales=True)
    5
    """
    a = torch.tensor(np.asarray(peaks, dtype=float)[None])

    def numbers(a):
        if scales:
            return recurrence_ratios(a, mode).cumprod(dim=1)
        pairs = peaks_to_params(a, mode)
        return torch.cat([v.reshape(-1) for pair in pairs for v in pair])

    jacobian = torch.autograd.functional.jacobian(numbers, a)
    return int((jacobian != 0).sum())


def batched_forward(params, x: torch.Tensor) -> torch.Tensor:
    """Outputs of a batch of networks.

    Parameters
    ----------
    params : list of (W, b)
        Tensors ``(R, out, in)`` and ``(R, out)``.
    x : Tensor, shape (R or 1, inputs, n)

    Returns
    -------
    Tensor, shape (R, outputs, n)

    Notes
    -----
    One ``baddbmm`` a layer.

    Source: ours.

    Examples
    --------
    >>> W, b = torch.ones(2, 1, 1), torch.zeros(2, 1)
    >>> batched_forward([(W, b)], torch.ones(1, 1, 5)).shape
    torch.Size([2, 1, 5])
    """
    h = x.expand(params[0][0].shape[0], *x.shape[1:])
    for k, (W, b) in enumerate(params):
        if k:
            h = torch.relu(h)
        h = torch.baddbmm(b.unsqueeze(-1), W, h)
    return h


def fit_params(
    params: Params,
    x,
    y,
    epochs: int,
    lr: float,
    *,
    record=None,
    probe: Callable | None = None,
    fixed_output_bias: bool = False,
) -> Fit:
    r"""Train raw weights by full-batch Adam on each network's mean square.

    Parameters
    ----------
    params : list of (W, b)
        Starts, shapes ``(R, out, in)`` and ``(R, out)``.
    x : array_like, shape (n, inputs)
        Samples as rows.
    y : array_like, shape (n,) or (n, outputs)
    epochs : int >= 0
    lr : float > 0
        Moments are 0.9 and 0.999.
    record : sequence of int, optional
        Epochs at which loss and probe are taken, increasing, in
        ``[0, epochs]``; by default the first and the last.
    probe : callable, optional
        ``probe(params)`` with NumPy arrays, at every record.
    fixed_output_bias : bool
        Whether the bias of the output stays what it is.

    Returns
    -------
    Fit

    Raises
    ------
    ValueError
        If an argument is out of range, not finite, or shapes do not fit.

    Notes
    -----
    A network that diverges keeps its NaN; the others do not notice. For
    30 networks 4x5 and 500 samples an epoch takes a few milliseconds.

    Source: Milkert, Hyde and Laine (2025), section 4; Adam is that of Kingma
    and Ba (2015).

    Examples
    --------
    >>> from helpers.linear_regions.initialisations import init_params
    >>> x = np.linspace(0, 1, 50)[:, None]
    >>> start = init_params("default", (1, 16, 1), runs=3, seed=0)
    >>> fit = fit_params(start, x, x[:, 0] ** 2, epochs=200, lr=0.01)
    >>> fit.mse.shape, bool((fit.mse[1] < fit.mse[0]).all())
    ((2, 3), True)
    """
    flat = [np.array(v, dtype=float) for pair in params for v in pair]
    for v in flat:
        if not np.isfinite(v).all():
            raise ValueError("params must be finite, they hold NaN")
    leaves = [torch.tensor(v, requires_grad=True) for v in flat]
    if fixed_output_bias:
        leaves[-1].requires_grad_(False)

    def build(leaves):
        return list(zip(leaves[::2], leaves[1::2], strict=True))

    return _descend(leaves, build, x, y, epochs, lr, record, probe)


def fit_peaks(
    peaks,
    mode: str,
    x,
    y,
    epochs: int,
    lr: float,
    *,
    free_scales: bool = False,
    clamp: float | None = CLAMP,
    record=None,
    probe: Callable | None = None,
) -> Fit:
    r"""Train peaks only: Algorithm 1 of the paper, for many networks at once.

    Each step sets all weights from the peaks, back-propagates through the
    weights and the weight-setting map, and moves the peaks. Then they are put
    back into :math:`[c,1-c]`.

    Parameters
    ----------
    peaks : array_like, shape (R, d + 1)
        Starts in (0, 1).
    mode : {"convex", "concave"}
    x : array_like, shape (n, 1)
        In [0, 1].
    y : array_like, shape (n,)
    epochs : int >= 0
    lr : float > 0
    free_scales : bool
        Train the ratios :math:`S_i` too, from where the recurrence puts them
        ("unregularised").
    clamp : float in (0, 1/2), or None
        :math:`c`; without it peaks may leave (0, 1), and then ``escaped``
        says so.
    record, probe
        As in :func:`fit_params`.

    Returns
    -------
    Fit
        With ``peaks``, ``ratios`` (those used, also where they are not
        free) and ``escaped``.

    Raises
    ------
    ValueError
        If an argument is out of range, not finite, or shapes do not fit.

    Notes
    -----
    Source: Milkert, Hyde and Laine (2025), Algorithm 1; the clamp is ours.

    Examples
    --------
    >>> x = np.linspace(0, 1, 101)[:, None]
    >>> fit = fit_peaks([[0.4, 0.6, 0.3]], "convex", x, x[:, 0] ** 2, 400,
    ...                 lr=0.01)
    >>> fit.peaks.shape, bool(fit.mse[1, 0] < fit.mse[0, 0] / 5)
    ((1, 3), True)
    """
    start = np.array(peaks, dtype=float)
    if start.ndim != 2 or start.shape[1] < 2 or not len(start):
        raise ValueError(
            f"peaks must have shape (R, d + 1), got {start.shape}"
        )
    if not ((start > 0) & (start < 1)).all():
        raise ValueError("peaks must lie in (0, 1)")
    if clamp is not None and not 0 < clamp < 0.5:
        raise ValueError(f"clamp must lie in (0, 1/2), got {clamp}")
    leaves = [torch.tensor(start, requires_grad=True)]
    if free_scales:
        ratios = ratios_of_scales(start, mode)
        leaves.append(torch.tensor(ratios, requires_grad=True))
    escaped = torch.zeros(len(start), dtype=torch.bool)

    def after(leaves):
        a = leaves[0]
        if clamp is not None:
            a.clamp_(clamp, 1 - clamp)
        escaped.logical_or_(~((a > 0) & (a < 1)).all(dim=1))

    fit = _descend(
        leaves,
        lambda leaves: peaks_to_params(leaves[0], mode, *leaves[1:]),
        x, y, epochs, lr, record, probe, after,
    )  # fmt: skip
    final = leaves[0].detach().numpy().copy()
    ratios = (
        leaves[1].detach().numpy().copy()
        if free_scales
        else ratios_of_scales(final, mode)
    )
    return fit._replace(peaks=final, ratios=ratios, escaped=escaped.numpy())


def fit_geometric(
    params: Params, x, y, epochs: int, lr: float, *, record=None, probe=None
) -> Fit:
    r"""Train in geometric coordinates: directions, offsets and gains.

    Hidden neurons are :math:`r\,\mathrm{ReLU}(u(\theta)^{\mathsf T}x
    +\lambda)`, the output layer is plain. Starts at the function of
    ``params``.

    Parameters
    ----------
    params, x, y, epochs, lr, record, probe
        As in :func:`fit_params`.

    Returns
    -------
    Fit
        Its ``params`` are plain weights of the same functions.

    Raises
    ------
    ValueError
        As :func:`fit_params`, and if a hidden neuron has no weights.

    Notes
    -----
    With one input a direction is a sign and is not trained.

    Source: Chen and Ge (2024), section 4.

    Examples
    --------
    >>> from helpers.linear_regions.initialisations import init_params
    >>> x = np.linspace(0, 1, 50)[:, None]
    >>> start = init_params("default", (1, 16, 1), runs=3, seed=0)
    >>> fit = fit_geometric(start, x, x[:, 0] ** 2, epochs=200, lr=0.01)
    >>> bool((fit.mse[1] < fit.mse[0]).all())
    True
    """
    leaves, signs = [], []
    for W, b in params[:-1]:
        theta, lam, r, sign = geometric_coordinates(W, b)
        signs.append(torch.tensor(sign))
        leaves += [torch.tensor(v) for v in (theta, lam, r)]
    leaves += [torch.tensor(np.array(v, dtype=float)) for v in params[-1]]
    leaves = [leaf.requires_grad_() for leaf in leaves]

    def build(leaves):
        layers, gain = [], None
        for k, sign in enumerate(signs):
            theta, lam, r = leaves[3 * k : 3 * k + 3]
            ones = torch.ones_like(lam).unsqueeze(-1)
            sines = torch.cumprod(torch.sin(theta), dim=-1)
            W = torch.cat([torch.cos(theta), ones], dim=-1)
            W = W * torch.cat([ones, sines], dim=-1) * sign
            layers.append((W if gain is None else W * gain, lam))
            gain = r.unsqueeze(-2)
        W = leaves[-2]
        layers.append((W if gain is None else W * gain, leaves[-1]))
        return layers

    return _descend(leaves, build, x, y, epochs, lr, record, probe)


def _descend(leaves, build, x, y, epochs, lr, record, probe, after=None):
    marks = _checked_run(epochs, lr, record)
    x, y = _checked_samples(x, y)
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        return _run(leaves, build, x, y, marks, lr, probe, after)
    finally:
        torch.set_num_threads(threads)


def _run(leaves, build, x, y, marks, lr, probe, after) -> Fit:
    optimizer = torch.optim.Adam(
        [leaf for leaf in leaves if leaf.requires_grad and leaf.numel()],
        lr=lr,
        betas=_ADAM_MOMENTS,
        eps=ADAM_DENOMINATOR,
        fused=True,
    )
    mse, probes, records = [], [], set(marks.tolist())
    with torch.no_grad():
        first = build(leaves)[0][0]
        if first.shape[2] != x.shape[1]:
            raise ValueError(
                f"x must have {first.shape[2]} columns, got {x.shape[1]}"
            )
    for step in range(int(marks[-1]) + 1):
        params = build(leaves)
        error = batched_forward(params, x) - y
        loss = (error * error).mean(dim=(1, 2))
        if step in records:
            mse.append(loss.detach().numpy().copy())
            if probe is not None:
                probes.append(probe(_arrays(params)))
        if step == marks[-1]:
            break
        optimizer.zero_grad()
        loss.sum().backward()
        optimizer.step()
        if after is not None:
            with torch.no_grad():
                after(leaves)
    return Fit(_arrays(params), np.array(mse), marks, probes)


def _arrays(params) -> Params:
    return [
        (W.detach().numpy().copy(), b.detach().numpy().copy())
        for W, b in params
    ]


def _checked_samples(x, y):
    x, y = np.asarray(x, dtype=float), np.asarray(y, dtype=float)
    if x.ndim != 2 or 0 in x.shape or not np.isfinite(x).all():
        raise ValueError(
            f"x must be a finite matrix with samples as rows, got {x.shape}"
        )
    if y.ndim == 1:
        y = y[:, None]
    if y.ndim != 2 or len(y) != len(x) or not np.isfinite(y).all():
        raise ValueError(
            f"y must be finite with {len(x)} rows, got shape {y.shape}"
        )
    return (
        torch.tensor(np.ascontiguousarray(x.T)[None]),
        torch.tensor(np.ascontiguousarray(y.T)[None]),
    )


def _checked_run(epochs, lr, record) -> np.ndarray:
    epochs = whole_number(epochs, "epochs", 0)
    positive_number(lr, "lr")
    if record is None:
        return np.unique([0, epochs])
    marks = np.asarray(record)
    if (
        marks.ndim != 1
        or not marks.size
        or marks.dtype.kind not in "iu"
        or marks[0] < 0
        or marks[-1] != epochs
        or np.any(np.diff(marks) <= 0)
    ):
        raise ValueError(
            "record must hold increasing whole numbers from 0 up and end at "
            f"{epochs}, got {record!r}"
        )
    return marks
