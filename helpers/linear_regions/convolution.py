r"""A small convolutional network whose hidden layer is dense or of blocks.

Two convolutions, one hidden layer, ten classes. In the first version the
hidden layer has ReLUs; in the others each of its units feeds a block of
depth ``d``, and it has as many fewer units as the blocks cost parameters.
"""

from __future__ import annotations

import numpy as np
import torch
from torch import nn

from helpers.core.checks import check_sizes
from helpers.core.data import load_digits_samples
from helpers.core.randomness import Seed, as_generator, spawn
from helpers.linear_regions.block_training import _default_blocks, _linear
from helpers.linear_regions.modules import BlockNet, VeeBlock

HEADS = ("dense", "triangle", "random-blocks")
CHANNELS = (8, 16)
FEATURES = 64 * CHANNELS[1]  # 8 x 8 pixels, padded, no pooling
CLASSES = 10


def block_parameters(depth: int) -> int:
    """Parameters of one block from one number to one number, width four.

    Its ``d`` hidden layers have ``4 + 4`` and ``16 + 4`` each, the output
    ``4 + 1``.

    Parameters
    ----------
    depth : int
        Hidden layers, at least 1.

    Notes
    -----
    Source: ours.

    Examples
    --------
    >>> block_parameters(4)
    73
    """
    check_sizes(depth=depth)
    return 8 + 20 * (depth - 1) + 5


def equal_units(units: int, features: int, classes: int, each: int) -> int:
    """Units that a layer can afford if each carries ``each`` parameters more.

    Parameters
    ----------
    units : int
        Of the dense layer.
    features, classes : int
        Numbers in and out.
    each : int
        Parameters of a block.

    Returns
    -------
    int
        The largest number with no more parameters than the dense layer.

    Raises
    ------
    ValueError
        If a number is not positive, or not even one unit fits.

    Notes
    -----
    Source: the arithmetic behind Milkert, Hyde and Laine, B.3.

    Examples
    --------
    The paper's small network: 256 units become 247.

    >>> equal_units(256, 2048, 10, 75)
    247
    """
    if min(units, features, classes, each) < 1:
        raise ValueError(
            "units, features, classes and each must be positive, got "
            f"{units}, {features}, {classes}, {each}"
        )
    cost = features + 1 + classes
    fit = units * cost // (cost + each)
    if fit < 1:
        raise ValueError(f"units must pay for a block of {each} parameters")
    return fit


class DigitNet(nn.Module):
    """Two padded convolutions, then a hidden layer as ``head`` says.

    Parameters
    ----------
    head : {"dense", "triangle", "random-blocks"}
        ReLUs; V blocks, whose peaks are trained; or blocks of the same
        shape with PyTorch's default start, whose weights are trained.
    units : int
        Of the hidden layer with ReLUs; the others get fewer, so that no
        network has more parameters than that one. V blocks are counted as
        if their weights were parameters.
    depth : int
        Of a block.
    rng : seed or Generator

    Raises
    ------
    ValueError
        If the head is unknown or the sizes do not fit.

    Notes
    -----
    Source: ours, after Milkert, Hyde and Laine, B.3.

    Examples
    --------
    >>> net = DigitNet("dense", 16, 4, 0)
    >>> net(torch.zeros(3, 64, dtype=torch.float64)).shape
    torch.Size([3, 10])
    """

    def __init__(self, head: str, units: int, depth: int, rng: Seed):
        super().__init__()
        if head not in HEADS:
            raise ValueError(f"head must be one of {HEADS}, got {head!r}")
        rng = as_generator(rng)
        self.convolutions = nn.ModuleList(
            _convolution(n, m, rng)
            for n, m in zip((1, *CHANNELS), CHANNELS, strict=False)
        )
        if head != "dense":
            each = block_parameters(depth)
            units = equal_units(units, FEATURES, CLASSES, each)
        self.units = units
        self.before = _linear(FEATURES, units, rng)
        if head == "dense":
            self.middle: nn.Module = nn.ReLU()
        elif head == "triangle":
            self.middle = VeeBlock(units, depth, rng=rng)
        else:
            shapes = [(4, 1)] + [(4, 4)] * (depth - 1) + [(1, 4)]
            self.middle = BlockNet(list(_default_blocks(units, shapes, rng)))
        self.after = _linear(units, CLASSES, rng)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Logits of pictures of 64 pixels, shape ``(n, 10)``."""
        h = x.reshape(-1, 1, 8, 8)
        for convolution in self.convolutions:
            h = torch.relu(convolution(h))
        return self.after(self.middle(self.before(h.flatten(1))))

    def switch(self) -> None:
        """Peaks become plain weights, in blocks; others stay as they are."""
        if isinstance(self.middle, VeeBlock):
            self.middle = self.middle.freeze_to_weights()


def _convolution(inputs: int, outputs: int, rng) -> nn.Conv2d:
    layer = nn.utils.skip_init(
        nn.Conv2d, inputs, outputs, 3, padding=1, dtype=torch.float64
    )
    bound = (9 * inputs) ** -0.5
    with torch.no_grad():
        for p in (layer.weight, layer.bias):
            p.copy_(torch.tensor(rng.uniform(-bound, bound, tuple(p.shape))))
    return layer


def _measure(net, x, labels) -> tuple[float, float]:
    with torch.no_grad():
        out = net(x)
        loss = nn.functional.cross_entropy(out, labels).item()
        return loss, (out.argmax(1) == labels).double().mean().item()


def digit_run(
    head: str,
    seed: int,
    epochs: int = 60,
    switch_at: int = 0,
    units: int = 128,
    depth: int = 4,
    rate: float = 0.001,
) -> dict:
    """Train on the digits of scikit-learn, as a task of a sweep.

    Parameters
    ----------
    head : str
        As :class:`DigitNet`.
    seed : int
        Of the split (four fifths to train on), the start and the batches.
    epochs : int
        Of Adam in batches of 128.
    switch_at : int
        Epoch after which peaks become weights; 0 for never.
    units, depth : int
    rate : float

    Returns
    -------
    dict
        ``train`` and ``test`` losses and test ``accuracy`` after each
        epoch (the start first), ``units`` and ``parameters``.

    Raises
    ------
    ValueError
        If ``switch_at`` lies outside the run.

    Notes
    -----
    Source: ours, after Milkert, Hyde and Laine, B.3.
    """
    if not 0 <= switch_at < max(epochs, 1):
        raise ValueError(
            f"switch_at must lie in [0, {epochs}), got {switch_at}"
        )
    split, start, batches = spawn(seed, 3)
    pictures, digits = load_digits_samples()
    order = split.permutation(len(digits))
    cut = 4 * len(digits) // 5
    x = torch.tensor(pictures[order]) - 0.3
    labels = torch.tensor(digits[order])
    net = DigitNet(head, units, depth, start)
    optimiser = torch.optim.Adam(net.parameters(), lr=rate)
    rows = []
    for epoch in range(epochs + 1):
        train, _ = _measure(net, x[:cut], labels[:cut])
        rows.append((train, *_measure(net, x[cut:], labels[cut:])))
        if epoch == epochs:
            break
        if switch_at and epoch == switch_at:
            net.switch()
            optimiser = torch.optim.Adam(net.parameters(), lr=rate)
        for rows_of in np.array_split(batches.permutation(cut), cut // 128):
            optimiser.zero_grad()
            out = net(x[rows_of])
            nn.functional.cross_entropy(out, labels[rows_of]).backward()
            optimiser.step()
    train, test, accuracy = np.array(rows).T
    return {
        "train": train.tolist(),
        "test": test.tolist(),
        "accuracy": accuracy.tolist(),
        "units": net.units,
        "parameters": sum(p.numel() for p in net.parameters()),
    }
