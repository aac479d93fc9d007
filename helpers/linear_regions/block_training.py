r"""Networks of V blocks and their rivals, trained in two stages.

Stage one moves peaks and the affine maps around the blocks. At the switch
the network becomes plain weights, in blocks or dense, and stage two moves
all of them. Rivals have the usual random start and one stage as long as
both.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import torch
from torch import nn

from helpers.core.checks import check_sizes
from helpers.core.randomness import Seed, as_generator, spawn
from helpers.linear_regions.modules import BlockNet, VeeBlock, VeeLayer
from helpers.linear_regions.problems import Problem, concrete_unit, problem

METHODS = (
    "triangle-block",
    "triangle-dense",
    "kaiming-block",
    "kaiming-blocks-1d",
    "kaiming-dense",
)


class Setup(NamedTuple):
    """Blocks, depth, epochs of the two stages, rates, and the map inside."""

    blocks: int
    depth: int
    epochs: tuple[int, int]
    rates: tuple[float, float]
    free_map: bool
    classes: bool


SETUPS = {
    "cubic": Setup(2, 5, (500, 500), (0.001, 0.001), False, False),
    "radius": Setup(2, 5, (500, 500), (0.001, 0.001), False, False),
    "spirals": Setup(16, 5, (500, 1000), (0.001, 0.0005), True, True),
    "concrete": Setup(32, 5, (500, 1000), (0.001, 0.0005), True, False),
}


def setup_of(name: str) -> Setup:
    """The setup of a problem, by the first word of its name.

    Parameters
    ----------
    name : str
        Such as ``spirals-3``.

    Notes
    -----
    Source: ours.

    Examples
    --------
    >>> setup_of("spirals-3").blocks
    16
    """
    key = name.split("-")[0]
    if key not in SETUPS:
        raise ValueError(f"name must begin with one of {list(SETUPS)}")
    return SETUPS[key]


class BlockNetwork(nn.Module):
    """Plain weights: a free first layer, hidden matrices in blocks of four.

    Parameters
    ----------
    first : torch.nn.Linear
        ``D`` to ``4 k``.
    hidden : list of (W, b)
        Tensors ``(k, 4, 4)`` and ``(k, 4)``, copied.
    last : torch.nn.Linear
        ``4 k`` to the outputs.
    """

    def __init__(self, first: nn.Linear, hidden, last: nn.Linear):
        super().__init__()
        self.first, self.hidden, self.last = first, BlockNet(hidden), last

    def forward(self, x):
        width = self.first.out_features
        h = torch.relu(self.first(x)).T.reshape(width // 4, 4, -1)
        for W, b in zip(self.hidden.W, self.hidden.b, strict=True):
            h = torch.relu(torch.baddbmm(b.unsqueeze(-1), W, h))
        return self.last(h.reshape(width, -1).T)

    def dense_weights(self):
        return [
            (self.first.weight, self.first.bias),
            *_unblocked(self.hidden),
            (self.last.weight, self.last.bias),
        ]


class NarrowBlocks(nn.Module):
    """Affine map, blocks from one number to one number, affine map.

    Parameters
    ----------
    before, after : torch.nn.Linear
    inner : list of (W, b)
        Tensors ``(k, out, in)`` and ``(k, out)``, copied; one number in,
        one number out.
    """

    def __init__(self, before: nn.Linear, inner, after: nn.Linear):
        super().__init__()
        self.before, self.inner, self.after = before, BlockNet(inner), after

    def forward(self, x):
        return self.after(self.inner(self.before(x)))

    def dense_weights(self):
        layers = _unblocked(self.inner)
        return _wrapped(layers, self.before, self.after)


def _unblocked(net: BlockNet) -> list:
    return [
        (torch.block_diag(*W), b.reshape(-1))
        for W, b in zip(net.W, net.b, strict=True)
    ]


def _wrapped(layers: list, before: nn.Linear | None, after: nn.Linear):
    """Affine maps merged into the first and the last layer."""
    layers = list(layers)
    if before is not None:
        W, b = layers[0]
        layers[0] = (W @ before.weight, W @ before.bias + b)
    W, b = layers[-1]
    layers[-1] = (after.weight @ W, after.weight @ b + after.bias)
    return layers


def _linear(inputs: int, outputs: int, rng) -> nn.Linear:
    layer = nn.utils.skip_init(nn.Linear, inputs, outputs, dtype=torch.float64)
    bound = inputs**-0.5
    with torch.no_grad():
        for p in (layer.weight, layer.bias):
            p.copy_(torch.tensor(rng.uniform(-bound, bound, tuple(p.shape))))
    return layer


def _default_blocks(blocks: int, shapes, rng):
    """PyTorch's default law in each block: plus or minus 1 / root of in."""
    for out, fan_in in shapes:
        bound = fan_in**-0.5
        W = rng.uniform(-bound, bound, (blocks, out, fan_in))
        b = rng.uniform(-bound, bound, (blocks, out))
        yield torch.tensor(W), torch.tensor(b)


def make_net(
    method: str, inputs: int, outputs: int, setup: Setup, rng: Seed
) -> nn.Module:
    """A network before training.

    Parameters
    ----------
    method : str
        One of ``METHODS``. ``triangle-...`` are V blocks within affine maps;
        ``kaiming-block`` has PyTorch's default start, block-diagonal hidden
        matrices and a first layer in which every neuron sees every input;
        ``kaiming-blocks-1d`` feeds each block one number only, as the V
        blocks are fed; ``kaiming-dense`` is an ordinary network.
    inputs, outputs : int
    setup : Setup
    rng : seed or Generator

    Returns
    -------
    torch.nn.Module

    Raises
    ------
    ValueError
        If the method is unknown.

    Notes
    -----
    Source: Milkert, Hyde and Laine, sections 5 and B.2. What they call
    block-diagonal with the usual start is not said; both readings are here.

    Examples
    --------
    >>> net = make_net("kaiming-dense", 2, 1, SETUPS["radius"], 0)
    >>> sum(p.numel() for p in net.parameters())
    321
    """
    rng = as_generator(rng)
    k, d = setup.blocks, setup.depth
    if method.startswith("triangle-") and method in METHODS:
        if setup.free_map:
            return VeeLayer(
                inputs, outputs, k, d, rng=rng, parametrisation="clamp"
            )
        return FixedInput(inputs, k, d, rng)
    if method == "kaiming-block":
        first = _linear(inputs, 4 * k, rng)
        hidden = list(_default_blocks(k, [(4, 4)] * (d - 1), rng))
        return BlockNetwork(first, hidden, _linear(4 * k, outputs, rng))
    if method == "kaiming-blocks-1d":
        shapes = [(4, 1)] + [(4, 4)] * (d - 1) + [(1, 4)]
        before = _linear(inputs, k, rng)
        inner = list(_default_blocks(k, shapes, rng))
        return NarrowBlocks(before, inner, _linear(k, outputs, rng))
    if method == "kaiming-dense":
        widths = [inputs] + [4 * k] * d + [outputs]
        parts: list[nn.Module] = []
        for n, m in zip(widths, widths[1:], strict=False):
            parts += [_linear(n, m, rng), nn.ReLU()]
        return nn.Sequential(*parts[:-1])
    raise ValueError(f"method must be one of {METHODS}, got {method!r}")


class FixedInput(nn.Module):
    """V blocks that see the coordinates as they are, and a trained output.

    One input feeds all blocks; otherwise block ``j`` sees input ``j``.
    The output weights start at plus and minus one in turn for one input, so
    that the network is a difference of convex functions, and at one for
    several.

    Parameters
    ----------
    inputs, blocks, depth : int
        ``inputs`` must be 1 or equal to ``blocks``.
    rng : seed or Generator

    Raises
    ------
    ValueError
        If ``inputs`` is neither 1 nor ``blocks``.

    Notes
    -----
    Source: Milkert, Hyde and Laine, section 5.
    """

    def __init__(self, inputs: int, blocks: int, depth: int, rng: Seed):
        super().__init__()
        if inputs not in (1, blocks):
            raise ValueError(
                f"inputs must be 1 or blocks = {blocks}, got {inputs}"
            )
        self.block = VeeBlock(
            blocks, depth, rng=as_generator(rng), parametrisation="clamp"
        )
        self.inputs = inputs
        self.after = _linear(blocks, 1, as_generator(0))
        signs = [(-1.0) ** j if inputs == 1 else 1.0 for j in range(blocks)]
        with torch.no_grad():
            self.after.weight.copy_(torch.tensor([signs]))
            self.after.bias.zero_()

    def forward(self, x):
        return self.after(self.block(x.expand(-1, self.block.blocks)))

    def clamp_(self) -> None:
        """Keep the peaks inside; called after each step."""
        self.block.clamp_()

    def dense_weights(self):
        layers = self.block.dense_weights()
        if self.inputs == 1:
            W, b = layers[0]
            layers[0] = (W.sum(dim=1, keepdim=True), b)
        return _wrapped(layers, None, self.after)


def switch(net: nn.Module, dense: bool) -> nn.Module:
    """Plain weights of the same function, in blocks or dense.

    Parameters
    ----------
    net : VeeLayer or FixedInput
    dense : bool
        Whether the structural zeros become parameters.

    Notes
    -----
    In blocks, the first layer of each block is free to mix the inputs, as
    in ``kaiming-block``. Source: Milkert, Hyde and Laine, section 5.

    Examples
    --------
    >>> net = make_net("triangle-block", 2, 1, SETUPS["radius"], 0)
    >>> x = torch.zeros(1, 2, dtype=torch.float64)
    >>> bool(torch.allclose(net(x), switch(net, dense=False)(x)))
    True
    """
    layers = [(W.detach(), b.detach()) for W, b in net.dense_weights()]
    if dense:
        parts: list[nn.Module] = []
        for W, b in layers:
            parts += [_filled(W, b), nn.ReLU()]
        return nn.Sequential(*parts[:-1])
    (first, b), *hidden, (last, c) = layers
    k = first.shape[0] // 4
    blocks = [(_diagonal(W, k), bias.reshape(k, 4)) for W, bias in hidden]
    return BlockNetwork(_filled(first, b), blocks, _filled(last, c))


def _diagonal(W: torch.Tensor, k: int) -> torch.Tensor:
    """The ``k`` blocks on the diagonal, stacked."""
    return torch.stack([W[i : i + 4, i : i + 4] for i in range(0, 4 * k, 4)])


def _filled(W, b) -> nn.Linear:
    layer = nn.utils.skip_init(
        nn.Linear, W.shape[1], W.shape[0], dtype=torch.float64
    )
    with torch.no_grad():
        layer.weight.copy_(W)
        layer.bias.copy_(b)
    return layer


def plain_layers(net: nn.Module) -> list:
    """The network as dense ``(W, b)`` pairs of NumPy.

    Parameters
    ----------
    net : torch.nn.Module
        Any of this module.

    Notes
    -----
    Source: ours.

    Examples
    --------
    >>> net = make_net("kaiming-block", 2, 1, SETUPS["radius"], 0)
    >>> [W.shape for W, _ in plain_layers(net)][:2]
    [(8, 2), (8, 8)]
    """
    if isinstance(net, nn.Sequential):
        linear = [part for part in net if isinstance(part, nn.Linear)]
        pairs = [(part.weight, part.bias) for part in linear]
    else:
        pairs = net.dense_weights()
    return [(W.detach().numpy(), b.detach().numpy()) for W, b in pairs]


def loss_of(net: nn.Module, x, y, classes: bool) -> torch.Tensor:
    """Mean square, or cross-entropy of the sign's probability.

    Parameters
    ----------
    net : torch.nn.Module
    x, y : Tensor (n, D), (n,)
    classes : bool
        Cross-entropy in place of the mean square.

    Notes
    -----
    Source: ours.
    """
    out = net(x)[:, 0]
    if classes:
        return nn.functional.binary_cross_entropy_with_logits(out, y)
    return nn.functional.mse_loss(out, y)


def train(net: nn.Module, x, y, epochs: int, lr: float, classes: bool):
    """Full-batch Adam.

    Parameters
    ----------
    net : torch.nn.Module
    x, y : Tensor (n, D), (n,)
    epochs : int
    lr : float
    classes : bool
        Cross-entropy in place of the mean square.

    Returns
    -------
    numpy.ndarray (epochs + 1,)
        The loss before each step, and at the end.

    Raises
    ------
    ValueError
        If ``epochs`` is negative or ``lr`` is not positive.

    Notes
    -----
    Source: ours.
    """
    if epochs < 0 or not lr > 0:
        raise ValueError(
            f"epochs must be at least 0 and lr positive, got {epochs}, {lr}"
        )
    optimiser = torch.optim.Adam(net.parameters(), lr=lr)
    clamp = getattr(net, "clamp_", None)  # of peaks that are parameters
    losses = np.empty(epochs + 1)
    for epoch in range(epochs):
        optimiser.zero_grad()
        loss = loss_of(net, x, y, classes)
        loss.backward()
        optimiser.step()
        if clamp is not None:
            clamp()
        losses[epoch] = loss.item()
    with torch.no_grad():
        losses[epochs] = loss_of(net, x, y, classes).item()
    return losses


class Trained(NamedTuple):
    """A network after stage one (if any) and at the end, with its losses."""

    peaks_only: nn.Module | None
    net: nn.Module
    losses: np.ndarray


def train_two_stages(
    method: str, data: Problem, setup: Setup, rng: Seed
) -> Trained:
    """Train one network as its method prescribes.

    Parameters
    ----------
    method : str
        One of ``METHODS``.
    data : Problem
    setup : Setup
    rng : seed or Generator

    Returns
    -------
    Trained
        ``peaks_only`` is the network at the switch, None for rivals.

    Notes
    -----
    Rivals get the epochs of both stages at the first rate, with the second
    rate from the switch on. Source: Milkert, Hyde and Laine, algorithm 1.
    """
    x, y = torch.tensor(data.x), torch.tensor(data.y)
    net = make_net(method, data.x.shape[1], 1, setup, rng)
    first = train(net, x, y, setup.epochs[0], setup.rates[0], setup.classes)
    before = None
    if method.startswith("triangle-"):
        before = net
        net = switch(net, dense=method == "triangle-dense")
    second = train(net, x, y, setup.epochs[1], setup.rates[1], setup.classes)
    return Trained(before, net, np.concatenate([first[:-1], second]))


def _score(net, data: Problem, classes: bool) -> dict:
    x, y = torch.tensor(data.x_test), torch.tensor(data.y_test)
    with torch.no_grad():
        loss = loss_of(net, x, y, classes).item()
        right = ((net(x)[:, 0] > 0) == (y > 0.5)).double().mean().item()
    return {"test": loss} | ({"accuracy": right} if classes else {})


def _cells(net, name: str) -> dict:
    """Activation regions on the problem's own interval or square."""
    from helpers.linear_regions.regions_1d import count_regions_1d
    from helpers.linear_regions.regions_2d import regions_2d

    layers = plain_layers(net)
    if name == "cubic":
        return {"cells": count_regions_1d(layers, (-1, 1)).activation}
    if name == "concrete":
        return {}
    return {"cells": regions_2d(layers).n_cells}


def block_fit(name: str, method: str, seed: int, length: int = 1) -> dict:
    """One run, as a task of a sweep.

    Parameters
    ----------
    name : str
        As :func:`helpers.linear_regions.problems.problem`.
    method : str
        One of ``METHODS``.
    seed : int
        Of the split and of the start.
    length : int
        Multiplies the epochs of both stages; at least 1.

    Returns
    -------
    dict
        ``train``, ``test`` losses, ``cells``, ``accuracy`` where they
        exist, and the same at the switch with the prefix ``peaks_``.
        Losses of ``concrete`` are in MPa squared.

    Notes
    -----
    Source: Milkert, Hyde and Laine, sections 5 and B.2.
    """
    setup = setup_of(name)
    check_sizes(length=length)
    first, second = setup.epochs
    setup = setup._replace(epochs=(length * first, length * second))
    split, start = spawn(seed, 2)
    data = problem(name, seed if name == "concrete" else split)
    unit = concrete_unit(seed) if name == "concrete" else 1.0
    done = train_two_stages(method, data, setup, start)
    stages = [("", done.net, done.losses[-1])]
    if done.peaks_only is not None:
        stages.append(
            ("peaks_", done.peaks_only, done.losses[setup.epochs[0]])
        )
    result = {}
    for prefix, net, loss in stages:
        found = {"train": unit * loss}
        found |= _score(net, data, setup.classes) | _cells(net, name)
        found["test"] *= unit
        result |= {prefix + key: value for key, value in found.items()}
    return result
