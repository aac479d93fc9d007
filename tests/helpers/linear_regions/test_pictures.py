"""Diagrams of networks: what is joined, and what is refused."""

import matplotlib.pyplot as plt
import numpy as np
import pytest

from helpers.linear_regions.networks import triangle_net_layers
from helpers.linear_regions.pictures import (
    Node,
    blocks_diagram,
    network_diagram,
    width_four_diagram,
)


@pytest.fixture
def ax():
    fig, ax = plt.subplots()
    yield ax
    plt.close(fig)


def arrows(ax):
    """The bare annotations are the arrows."""
    return sum(t.get_text() == "" for t in ax.texts)


@pytest.mark.parametrize("depth", [1, 2, 4])
def test_an_arrow_for_each_weight(ax, depth):
    """As many arrows as the construction has nonzero weights; the concave
    sum at unequal peaks has no accidental zeros."""
    peaks = [0.3 + 0.07 * i for i in range(depth + 1)]
    layers = triangle_net_layers(peaks, "concave")
    width_four_diagram(ax, depth)
    assert arrows(ax) == sum((W != 0).sum() for W, _ in layers)


def test_arrows_join_what_the_weights_join(ax):
    """Between hidden layers; columns are 1.6 and rows 1.1 apart."""
    width_four_diagram(ax, 4)
    layers = triangle_net_layers([0.3, 0.4, 0.6, 0.45, 0.7], "concave")

    def place(point):
        return round(point[0] / 1.6), round(-point[1] / 1.1)

    joined = {
        (place(text.xyann), place(text.xy))
        for text in ax.texts
        if text.get_text() == ""
    }
    for k in (1, 2, 3):
        wanted = {((k, j), (k + 1, i)) for i, j in np.argwhere(layers[k][0])}
        assert {pair for pair in joined if pair[0][0] == k} == wanted


def test_blocks(ax):
    blocks_diagram(ax, 3)
    assert arrows(ax) == 2 * 3 + 3 + 3


def test_refused(ax):
    with pytest.raises(ValueError, match="edges must join names of nodes"):
        network_diagram(ax, {"a": Node(0, 0, "a")}, [("a", "b")])
    with pytest.raises(ValueError, match="depth must be at least 1"):
        width_four_diagram(ax, 0)
    with pytest.raises(ValueError, match="blocks must be at least 1"):
        blocks_diagram(ax, 0)
