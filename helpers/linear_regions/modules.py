r"""Triangle networks as drop-in torch modules.

:class:`TriangleNet` is the width-4 network on [0, 1], :class:`VeeBlock` a
row of ``k`` independent V networks, to be used where an activation would
stand, and :class:`VeeLayer` puts trainable affine maps around them. Their
parameters are peaks; all weights are computed from them on each call, and
autograd goes through. ``freeze_to_weights`` ends that: it returns a plain
network of the same function, whose weights are parameters.

Decided on purpose: float64 throughout; starting values come from NumPy
streams, never from torch's global state. With ``parametrisation="logistic"``
a peak is :math:`c+(1-2c)/(1+e^{-u})` and any optimiser may move :math:`u`;
with ``"clamp"`` the peaks themselves are parameters, and ``clamp_()`` must be
called after each step.
"""

from __future__ import annotations

import numpy as np
import torch
from torch import nn

from helpers.core.checks import check_sizes
from helpers.core.randomness import Seed, as_generator
from helpers.linear_regions.regions_1d import (
    RegionCount,
    count_regions_on_segment,
)
from helpers.linear_regions.training import (
    CLAMP,
    batched_forward,
    peaks_to_params,
    recurrence_ratios,
)

__all__ = [
    "BlockNet",
    "TriangleNet",
    "VeeBlock",
    "VeeLayer",
    "fit_module",
    "vee_params",
]

PARAMETRISATIONS = ("logistic", "clamp")


def vee_params(peaks: torch.Tensor, ratios: torch.Tensor | None = None):
    r"""Weights of V networks on [-1, 1] as a function of their peaks.

    Parameters
    ----------
    peaks : Tensor, shape (k, d + 1)
        In (0, 1), ``d >= 1``. The last one is used by the recurrence alone.
    ratios : Tensor, shape (k, d - 1), optional
        Ratios of neighbouring scales; by default from the recurrence,
        :math:`a_i(1-a_{i+1})`.

    Returns
    -------
    list of (W, b), length d + 1
        Tensors ``(k, out, in)`` and ``(k, out)``; autograd goes through.

    Raises
    ------
    ValueError
        If shapes do not fit.

    Notes
    -----
    Source: Milkert, Hyde and Laine (2025), appendix A.1; the free ratios in
    this form are ours.

    Examples
    --------
    >>> half = torch.full((1, 3), 0.5, dtype=torch.float64)
    >>> x = torch.tensor([[[-1.0, -0.5, 0.0, 1.0]]], dtype=torch.float64)
    >>> batched_forward(vee_params(half), x).flatten().tolist()
    [1.0, 0.25, 0.0, 1.0]
    """
    if peaks.ndim != 2 or peaks.shape[1] < 2:
        raise ValueError(
            f"peaks must have shape (k, d + 1), got {tuple(peaks.shape)}"
        )
    k, depth = peaks.shape[0], peaks.shape[1] - 1
    inner = peaks[:, 1:-1]
    q = inner * (1 - peaks[:, 2:]) if ratios is None else ratios
    if q.shape != (k, depth - 1):
        raise ValueError(
            f"ratios must have shape ({k}, {depth - 1}), got {tuple(q.shape)}"
        )
    a = peaks[:, 0]
    zero, one = torch.zeros_like(a), torch.ones_like(a)
    left, right = 1 / (2 * a), 1 / (2 * (1 - a))
    W = torch.stack([zero, -left, right, zero], dim=-1).unsqueeze(-1)
    layers = [(W, torch.stack([one, 1 - left, 1 - right, one], dim=-1))]
    out = torch.tensor([1.0, 1.0, 1.0, -1.0], dtype=peaks.dtype)
    zeros, r = torch.zeros_like(q), q / (1 - inner)
    rows = torch.stack(
        [
            out.expand(*q.shape, 4),
            torch.stack([zeros, -q / inner, -q / inner, q], dim=-1),
            torch.stack([zeros, r, r, -inner * r], dim=-1),
            torch.stack([zeros, zeros, zeros, q], dim=-1),
        ],
        dim=2,
    )
    empty = torch.zeros(k, 4, dtype=peaks.dtype)
    layers += [(rows[:, i], empty) for i in range(depth - 1)]
    layers.append((out.expand(k, 1, 4), empty[:, :1]))
    return layers


class _Peaked(nn.Module):
    """Peaks as parameters, and what follows from them."""

    def __init__(self, nets, depth, *, clamp, parametrisation, low, high, rng):
        super().__init__()
        check_sizes(depth=depth, blocks=nets)
        if not 0 < clamp < 0.5:
            raise ValueError(f"clamp must lie in (0, 1/2), got {clamp}")
        if parametrisation not in PARAMETRISATIONS:
            raise ValueError(
                f"parametrisation must be one of {PARAMETRISATIONS}, got "
                f"{parametrisation!r}"
            )
        if not clamp < low < high < 1 - clamp:
            raise ValueError(
                f"need clamp < low < high < 1 - clamp, got low={low}, "
                f"high={high}, clamp={clamp}"
            )
        self.depth, self.clamp = int(depth), float(clamp)
        self.parametrisation = parametrisation
        start = as_generator(rng).uniform(low, high, (int(nets), depth + 1))
        self.raw = nn.Parameter(self._to_raw(torch.tensor(start)))

    def _to_raw(self, peaks):
        if self.parametrisation == "clamp":
            return peaks
        c = self.clamp
        return torch.logit((peaks - c) / (1 - 2 * c))

    @property
    def peaks(self) -> torch.Tensor:
        """Peaks, shape ``(nets, depth + 1)``, a function of the parameter."""
        if self.parametrisation == "clamp":
            return self.raw
        return self.clamp + (1 - 2 * self.clamp) * torch.sigmoid(self.raw)

    @torch.no_grad()
    def set_peaks(self, peaks) -> None:
        """Put given peaks in; shape ``(nets, depth + 1)`` or one row."""
        a = torch.as_tensor(np.asarray(peaks, dtype=float))
        a = a.reshape(1, -1) if a.ndim == 1 else a
        c = self.clamp
        if a.shape != self.raw.shape or not ((a > c) & (a < 1 - c)).all():
            raise ValueError(
                f"peaks must have shape {tuple(self.raw.shape)} and lie in "
                f"({c}, {1 - c}), got shape {tuple(a.shape)}"
            )
        self.raw.copy_(self._to_raw(a))

    @torch.no_grad()
    def clamp_(self) -> None:
        """Put peaks back into ``[c, 1 - c]``; call it after each step.

        Does nothing for the logistic parametrisation, which cannot leave.
        """
        if self.parametrisation == "clamp":
            self.raw.clamp_(self.clamp, 1 - self.clamp)

    def layers(self) -> list:
        """The dense network as it is now, ``(W, b)`` pairs of NumPy."""
        return [
            (W.detach().numpy().copy(), b.detach().numpy().copy())
            for W, b in self.dense_weights()
        ]


class TriangleNet(_Peaked):
    r"""A triangle network on [0, 1] of width 4, parametrised by its peaks.

    Parameters
    ----------
    depth : int >= 1
        Hidden layers, :math:`d`; the function has :math:`2^d` pieces.
    mode : {"convex", "concave"}
        Subtract waves from :math:`x`, or add them.
    free_scales : bool
        Train the ratios of scales as well; otherwise the recurrence sets
        them. Free scales do not guarantee :math:`2^d` pieces.
    clamp : float in (0, 1/2)
        Distance that peaks keep from 0 and 1.
    parametrisation : {"logistic", "clamp"}
    low, high : float
        Starting peaks are uniform in between.
    rng : seed or Generator

    Raises
    ------
    ValueError
        If an argument is out of range.

    Notes
    -----
    Source: Milkert, Hyde and Laine (2025), appendix A.1 and Algorithm 1.

    Examples
    --------
    >>> net = TriangleNet(5, "convex", rng=0)
    >>> net(torch.tensor([0.0, 1.0], dtype=torch.float64)).tolist()
    [0.0, 1.0]
    >>> net.region_count()
    RegionCount(activation=32, linear=32)
    """

    def __init__(
        self,
        depth: int,
        mode: str,
        *,
        free_scales: bool = False,
        clamp: float = CLAMP,
        parametrisation: str = "logistic",
        low: float = 0.1,
        high: float = 0.9,
        rng: Seed = 0,
    ):
        super().__init__(
            1,
            depth,
            clamp=clamp,
            parametrisation=parametrisation,
            low=low,
            high=high,
            rng=rng,
        )
        self.mode = mode
        start = recurrence_ratios(self.peaks.detach(), mode)
        self.ratios = nn.Parameter(start) if free_scales else None

    def weights(self):
        """Weights as a function of the peaks: tensors ``(1, out, in)``."""
        return peaks_to_params(self.peaks, self.mode, self.ratios)

    def dense_weights(self):
        """Weights as matrices ``(out, in)`` and vectors ``(out,)``."""
        return [(W[0], b[0]) for W, b in self.weights()]

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Values at ``x`` of any shape, in [0, 1]."""
        out = batched_forward(self.weights(), x.reshape(1, 1, -1))
        return out.reshape(x.shape)

    def region_count(self, interval=(0.0, 1.0)) -> RegionCount:
        """Activation and linear regions on an interval, exactly."""
        start, stop = ([float(end)] for end in interval)
        return count_regions_on_segment(self.layers(), start, stop)

    def freeze_to_weights(self) -> nn.Sequential:
        """The switch: a plain network of the same function."""
        return _sequential(self.dense_weights())


class VeeBlock(_Peaked):
    r"""``k`` independent V networks side by side, :math:`x_j\mapsto v_j(x_j)`.

    Each one maps [-1, 1] into [0, 1] with :math:`2^d` pieces and continues
    linearly outside. Stands where an activation would; there is no ReLU
    between an affine map and a block.

    Parameters
    ----------
    blocks : int >= 1
        :math:`k`, features in and out.
    depth : int >= 1
    free_scales, clamp, parametrisation, low, high, rng
        As in :class:`TriangleNet`.

    Raises
    ------
    ValueError
        If an argument is out of range.

    Notes
    -----
    Source: Milkert, Hyde and Laine (2025), section 5 and Figure 9.

    Examples
    --------
    >>> block = VeeBlock(3, depth=5, rng=0)
    >>> block(torch.ones(2, 3, dtype=torch.float64)).shape
    torch.Size([2, 3])
    """

    def __init__(
        self,
        blocks: int,
        depth: int,
        *,
        free_scales: bool = False,
        clamp: float = CLAMP,
        parametrisation: str = "logistic",
        low: float = 0.1,
        high: float = 0.9,
        rng: Seed = 0,
    ):
        super().__init__(
            blocks,
            depth,
            clamp=clamp,
            parametrisation=parametrisation,
            low=low,
            high=high,
            rng=rng,
        )
        self.blocks = int(blocks)
        a = self.peaks.detach()
        start = a[:, 1:-1] * (1 - a[:, 2:])
        self.ratios = nn.Parameter(start) if free_scales else None

    def weights(self):
        """Weights as a function of the peaks: tensors ``(k, out, in)``."""
        return vee_params(self.peaks, self.ratios)

    def dense_weights(self):
        """Block-diagonal matrices ``(4k, 4k)``, the first ``(4k, k)``."""
        return _dense(self.weights())

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Values at ``x`` of shape ``(..., k)``."""
        return _blockwise(self.weights(), x)

    def freeze_to_weights(self, dense: bool = False) -> nn.Module:
        """The switch, to trainable blocks or to dense matrices."""
        if dense:
            return _sequential(self.dense_weights())
        return BlockNet(self.weights())


class VeeLayer(nn.Module):
    r"""Affine map, V blocks, affine map: :math:`c+C\,v(Ax+b)`.

    Parameters
    ----------
    inputs, outputs : int >= 1
    blocks : int >= 1
        :math:`k`.
    depth : int >= 1
    affine_in, affine_out : bool
        Whether the maps are there; without, they are the identity and sizes
        must be equal to ``blocks``.
    rng : seed or Generator
        Maps start as PyTorch's ``Linear`` does, peaks uniform.
    **options
        For :class:`VeeBlock`.

    Raises
    ------
    ValueError
        If an argument is out of range or sizes do not fit.

    Notes
    -----
    Source: Milkert, Hyde and Laine (2025), sections 5 and 6; the wrapped
    variant trained by peaks and maps alone is ours.

    Examples
    --------
    >>> layer = VeeLayer(2, 1, blocks=4, depth=5, rng=0)
    >>> layer(torch.zeros(7, 2, dtype=torch.float64)).shape
    torch.Size([7, 1])
    """

    def __init__(
        self,
        inputs: int,
        outputs: int,
        blocks: int,
        depth: int,
        *,
        affine_in: bool = True,
        affine_out: bool = True,
        rng: Seed = 0,
        **options,
    ):
        super().__init__()
        rng = as_generator(rng)
        self.block = VeeBlock(blocks, depth, rng=rng, **options)
        for name, size, there in (
            ("inputs", inputs, affine_in),
            ("outputs", outputs, affine_out),
        ):
            if size < 1 or (not there and size != blocks):
                raise ValueError(
                    f"{name} must be >= 1, and {blocks} without an affine "
                    f"map, got {size}"
                )
        self.before = _linear(inputs, blocks, rng) if affine_in else None
        self.after = _linear(blocks, outputs, rng) if affine_out else None

    @property
    def peaks(self) -> torch.Tensor:
        """Peaks of the blocks, shape ``(k, depth + 1)``."""
        return self.block.peaks

    def clamp_(self) -> None:
        """As :meth:`VeeBlock.clamp_`."""
        self.block.clamp_()

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Values at ``x`` of shape ``(..., inputs)``."""
        x = x if self.before is None else self.before(x)
        x = self.block(x)
        return x if self.after is None else self.after(x)

    def dense_weights(self):
        """The whole as one network of width ``4k``; affine maps merged."""
        layers = self.block.dense_weights()
        if self.before is not None:
            W, b = layers[0]
            A, shift = self.before.weight, self.before.bias
            layers[0] = (W @ A, W @ shift + b)
        if self.after is not None:
            W, b = layers[-1]
            C, c = self.after.weight, self.after.bias
            layers[-1] = (C @ W, C @ b + c)
        return layers

    def layers(self) -> list:
        """The dense network as it is now, ``(W, b)`` pairs of NumPy."""
        return _Peaked.layers(self)

    def region_count(self, start=None, stop=None) -> RegionCount:
        """Regions that a segment meets, exactly; [-1, 1] by default.

        The default needs one input; give two points otherwise.
        """
        layers = self.layers()
        if start is None and stop is None:
            if layers[0][0].shape[1] != 1:
                raise ValueError(
                    "start and stop must be given for more than one input"
                )
            start, stop = [-1.0], [1.0]
        return count_regions_on_segment(layers, start, stop)

    def freeze_to_weights(self, dense: bool = False) -> nn.Sequential:
        """The switch, to trainable blocks or to dense matrices.

        With blocks the affine maps stay layers of their own; with dense
        matrices they are merged into the first and the last one.
        """
        if dense:
            return _sequential(self.dense_weights())
        parts = [_copy(self.before), self.block.freeze_to_weights()]
        parts.append(_copy(self.after))
        return nn.Sequential(*(part for part in parts if part is not None))


class BlockNet(nn.Module):
    """Plain weights in blocks: what a :class:`VeeBlock` is frozen to.

    Parameters
    ----------
    weights : list of (W, b)
        Tensors ``(k, out, in)`` and ``(k, out)``, copied.

    Notes
    -----
    Source: Milkert, Hyde and Laine (2025), section 6.

    Examples
    --------
    >>> net = BlockNet(VeeBlock(2, depth=3, rng=0).weights())
    >>> sum(p.numel() for p in net.parameters())
    106
    """

    def __init__(self, weights):
        super().__init__()
        self.W = nn.ParameterList(W.detach().clone() for W, _ in weights)
        self.b = nn.ParameterList(b.detach().clone() for _, b in weights)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Values at ``x`` of shape ``(..., k)``."""
        return _blockwise(list(zip(self.W, self.b, strict=True)), x)


def fit_module(
    module: nn.Module, x: torch.Tensor, y: torch.Tensor, steps: int, lr: float
) -> float:
    """Fit any module by full-batch Adam on the mean square error.

    Parameters
    ----------
    module : torch.nn.Module
        If it has a method ``clamp_``, that is called after each step.
    x, y : Tensor
        Inputs, and targets of the outputs' shape.
    steps : int >= 0
    lr : float > 0

    Returns
    -------
    float
        The error at the end.

    Raises
    ------
    ValueError
        If the outputs do not have the targets' shape.

    Notes
    -----
    Source: ours; the ordinary loop of torch, with the clamp in its place.

    Examples
    --------
    >>> x = torch.linspace(0, 1, 50, dtype=torch.float64)
    >>> net = TriangleNet(3, "convex", parametrisation="clamp")
    >>> fit_module(net, x, x**2, 200, 0.02) < 1e-4
    True
    """
    if module(x).shape != y.shape:
        raise ValueError(
            f"y must have the shape {tuple(module(x).shape)} of the outputs, "
            f"got {tuple(y.shape)}"
        )
    optimizer = torch.optim.Adam(module.parameters(), lr=lr)
    for _ in range(steps):
        optimizer.zero_grad()
        torch.mean((module(x) - y) ** 2).backward()
        optimizer.step()
        if hasattr(module, "clamp_"):
            module.clamp_()
    with torch.no_grad():
        return torch.mean((module(x) - y) ** 2).item()


def _blockwise(weights, x: torch.Tensor) -> torch.Tensor:
    k = weights[0][0].shape[0]
    if x.shape[-1:] != (k,):
        raise ValueError(f"x must have shape (..., {k}), got {tuple(x.shape)}")
    columns = x.reshape(-1, k).T.unsqueeze(1)
    return batched_forward(weights, columns)[:, 0].T.reshape(x.shape)


def _dense(weights):
    layers = [(torch.block_diag(*W), b.reshape(-1)) for W, b in weights]
    return layers


def _sequential(layers) -> nn.Sequential:
    parts = []
    for W, b in layers:
        part = nn.utils.skip_init(
            nn.Linear, W.shape[1], W.shape[0], dtype=W.dtype
        )
        with torch.no_grad():
            part.weight.copy_(W)
            part.bias.copy_(b)
        parts += [part, nn.ReLU()]
    return nn.Sequential(*parts[:-1])


def _linear(inputs: int, outputs: int, rng) -> nn.Linear:
    bound = 1 / np.sqrt(inputs)
    W = torch.tensor(rng.uniform(-bound, bound, (outputs, inputs)))
    b = torch.tensor(rng.uniform(-bound, bound, outputs))
    return _sequential([(W, b)])[0]


def _copy(linear: nn.Linear | None) -> nn.Linear | None:
    if linear is None:
        return None
    return _sequential([(linear.weight.detach(), linear.bias.detach())])[0]
