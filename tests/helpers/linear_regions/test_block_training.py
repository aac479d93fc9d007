"""Networks of blocks: what they compute, the switch, and their training."""

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="torch is an optional extra")

from helpers.linear_regions import block_training as training  # noqa: E402
from helpers.linear_regions.networks import (  # noqa: E402
    block_diagonal_layers,
    relu_forward,
)
from helpers.linear_regions.problems import problem  # noqa: E402

SMALL = training.Setup(3, 3, (20, 20), (1e-2, 1e-2), True, False)


def value(net, x):
    with torch.no_grad():
        return net(torch.tensor(x)).numpy()


@pytest.mark.parametrize("method", training.METHODS)
@pytest.mark.parametrize("inputs", [1, 2])
def test_plain_layers_compute_what_the_network_does(method, inputs):
    setup = SMALL._replace(blocks=2, free_map=inputs == 2)
    net = training.make_net(method, inputs, 1, setup, 3)
    x = np.random.default_rng(0).uniform(-2, 2, (50, inputs))
    plain = relu_forward(training.plain_layers(net), x)
    np.testing.assert_allclose(plain, value(net, x), atol=1e-12)


def test_v_blocks_are_those_of_the_numpy_construction():
    net = training.make_net("triangle-block", 2, 1, SMALL, 5)
    linear = [net.before, net.after]
    A, C = (p.weight.detach().numpy() for p in linear)
    b, c = (p.bias.detach().numpy() for p in linear)
    layers = block_diagonal_layers(net.peaks.detach().numpy(), A, b, C, c)
    x = np.random.default_rng(1).uniform(-1, 1, (40, 2))
    np.testing.assert_allclose(
        relu_forward(layers, x), value(net, x), atol=1e-12
    )


@pytest.mark.parametrize("dense", [True, False])
@pytest.mark.parametrize("name", ["cubic", "radius", "spirals-3"])
def test_the_switch_keeps_the_function(name, dense):
    setup = training.setup_of(name)
    inputs = 1 if name == "cubic" else 2
    net = training.make_net("triangle-block", inputs, 1, setup, 0)
    x = np.random.default_rng(2).uniform(-1, 1, (30, inputs))
    after = training.switch(net, dense)
    np.testing.assert_allclose(value(after, x), value(net, x), atol=1e-12)
    before_layers = training.plain_layers(net)
    for (W, b), (V, c) in zip(
        before_layers, training.plain_layers(after), strict=True
    ):
        np.testing.assert_allclose(W, V, atol=1e-12)
        np.testing.assert_allclose(b, c, atol=1e-12)


def test_what_is_a_parameter():
    """Blocks keep their structural zeros, dense networks do not."""
    setup = training.SETUPS["radius"]  # two blocks, depth five, width eight
    net = training.make_net("triangle-block", 2, 1, setup, 0)
    sizes = {
        dense: sum(p.numel() for p in training.switch(net, dense).parameters())
        for dense in (True, False)
    }
    ends = (2 * 8 + 8) + (8 + 1)
    assert sizes[True] == ends + 4 * (64 + 8)
    assert sizes[False] == ends + 4 * 2 * (16 + 4)
    rival = training.make_net("kaiming-block", 2, 1, setup, 0)
    assert sum(p.numel() for p in rival.parameters()) == sizes[False]


def test_a_difference_of_two_blocks_starts_as_one():
    net = training.make_net(
        "triangle-block", 1, 1, training.SETUPS["cubic"], 0
    )
    ends = value(net, np.array([[-1.0], [1.0]]))
    np.testing.assert_allclose(ends, 0, atol=1e-12)  # 1 - 1


def test_training_goes_down_and_peaks_stay_inside():
    data = problem("cubic", 0)
    setup = training.SETUPS["cubic"]._replace(epochs=(150, 150))
    done = training.train_two_stages("triangle-dense", data, setup, 1)
    assert done.losses.shape == (301,)
    assert done.losses[150] < done.losses[0] / 2
    assert done.losses[-1] < done.losses[150] / 10
    peaks = done.peaks_only.block.peaks
    assert 0.0099 < peaks.min() and peaks.max() < 0.9901


def test_training_is_reproducible_and_seeds_matter():
    once, again, other = (
        training.block_fit("radius", "kaiming-block", seed)["train"]
        for seed in (3, 3, 4)
    )
    assert once == again != other


def test_concrete_is_scored_in_its_own_units():
    """A network of zeros has the variance of the targets as its loss."""
    data = problem("concrete", 0)
    net = training.make_net(
        "kaiming-dense", 8, 1, training.SETUPS["radius"], 0
    )
    with torch.no_grad():
        for p in net.parameters():
            p.zero_()
    loss = training.loss_of(
        net, torch.tensor(data.x), torch.tensor(data.y), classes=False
    ).item()
    assert abs(loss - 1) < 1e-12


def test_cross_entropy_by_hand():
    x, y = torch.zeros(2, 1), torch.tensor([0.0, 1.0])
    loss = training.loss_of(lambda x: x + np.log(3.0), x, y, classes=True)
    # probability 3/4 of the class 1
    assert abs(loss.item() - np.mean([np.log(4), np.log(4 / 3)])) < 1e-6


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (
            lambda: training.make_net("xavier", 1, 1, SMALL, 0),
            "method must be one of",
        ),
        (
            lambda: training.make_net(
                "triangle-block",
                2,
                1,
                training.SETUPS["cubic"]._replace(blocks=3),
                0,
            ),
            "inputs must be 1 or blocks = 3",
        ),
        (lambda: training.setup_of("moons"), "name must begin with"),
        (
            lambda: training.train(None, None, None, -1, 0.1, False),
            "epochs must be at least 0",
        ),
        (
            lambda: training.block_fit("radius", "kaiming-dense", 0, 0),
            "length must be",
        ),
    ],
)
def test_bad_input(call, words):
    with pytest.raises(ValueError, match=words):
        call()
