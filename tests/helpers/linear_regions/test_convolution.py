"""The small convolutional network and its arithmetic."""

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="torch is an optional extra")

from helpers.core.data import load_digits_samples  # noqa: E402
from helpers.linear_regions.convolution import (  # noqa: E402
    FEATURES,
    HEADS,
    DigitNet,
    block_parameters,
    digit_run,
    equal_units,
)


def count(net):
    return sum(p.numel() for p in net.parameters())


def test_parameters_of_a_block():
    """One 4x1, d - 1 of 4x4, one 1x4, with biases; and by counting."""
    assert block_parameters(1) == 8 + 5
    net = DigitNet("random-blocks", 64, 3, 0)
    assert count(net.middle) == net.units * block_parameters(3)


def test_the_papers_arithmetic():
    assert equal_units(256, 2048, 10, 75) == 247
    freed = (256 - 247) * (2048 + 1 + 10)
    assert freed == 18_531 and round(freed / 247, 2) == 75.02


def test_no_network_is_larger_than_the_dense_one():
    sizes = {head: count(DigitNet(head, 128, 4, 0)) for head in HEADS}
    assert sizes["dense"] == 80 + 1168 + 128 * 1035 + 10
    after = DigitNet("triangle", 128, 4, 0)
    after.switch()
    each = FEATURES + 1 + 10 + block_parameters(4)
    assert count(after) == sizes["random-blocks"]
    assert 0 <= sizes["dense"] - sizes["random-blocks"] < each


def test_the_switch_keeps_the_function():
    net = DigitNet("triangle", 32, 3, 1)
    x = torch.tensor(load_digits_samples(20, 0)[0])
    before = net(x).detach()
    net.switch()
    np.testing.assert_allclose(net(x).detach(), before, atol=1e-12)


def test_the_convolutions_are_convolutions():
    """Shifting a picture by a pixel shifts what they see, off the border."""
    net = DigitNet("dense", 8, 3, 0)
    picture = np.zeros((8, 8))
    picture[2:5, 2:5] = np.random.default_rng(0).random((3, 3))

    def seen(p):
        h = torch.tensor(p).reshape(1, 1, 8, 8)
        for convolution in net.convolutions:
            h = torch.relu(convolution(h))
        return h.detach().numpy()[0]

    moved = np.roll(picture, 1, axis=1)
    np.testing.assert_allclose(
        seen(picture)[:, 2:6, 2:5], seen(moved)[:, 2:6, 3:6], atol=1e-12
    )


def test_runs_are_reproducible_and_learn():
    short = {"epochs": 3, "units": 16, "depth": 2}
    one = digit_run("triangle", 3, **short)
    assert one == digit_run("triangle", 3, **short)
    other = digit_run("triangle", 3, switch_at=1, **short)
    assert other["train"][:2] == one["train"][:2]
    assert other["train"][3] != one["train"][3]
    assert one["train"][-1] < one["train"][0]
    assert len(one["accuracy"]) == 4 and max(one["accuracy"]) <= 1


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: block_parameters(0), "depth must be"),
        (lambda: equal_units(0, 1, 1, 1), "must be positive"),
        (lambda: equal_units(1, 10, 1, 500), "must pay for a block"),
        (lambda: DigitNet("conv", 8, 2, 0), "head must be one of"),
        (lambda: digit_run("dense", 0, 2, 2), "switch_at must lie"),
    ],
)
def test_bad_input(call, words):
    with pytest.raises(ValueError, match=words):
        call()
