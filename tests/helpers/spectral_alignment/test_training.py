"""Training: forward pass, gradient, first step, and what cannot change."""

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from helpers.spectral_alignment.layers import (  # noqa: E402
    Layers,
    random_layers,
    relu_features,
)
from helpers.spectral_alignment.training import (  # noqa: E402
    train_relu_network,
)


def mse(X, f, weights, biases, readout):
    """NumPy, without the package."""
    H = X
    for W, b in zip(weights, biases, strict=True):
        H = np.maximum(H @ W + b, 0)
    return np.mean((H @ readout[:-1] + readout[-1] - f) ** 2)


@pytest.fixture(scope="module")
def sample():
    rng = np.random.default_rng(4)
    return rng.normal(size=(30, 3)), rng.normal(size=30)


@pytest.fixture(scope="module")
def trace(sample):
    return train_relu_network(*sample, [6, 5], 40, record=[0, 1, 20, 40])


def test_the_start_is_he_with_zero_biases(sample, trace):
    X, _ = sample
    start = random_layers(3, [6, 5], 0, bias_scale=0.0)
    for ours, given in zip(
        trace.layers[0].weights, start.weights, strict=True
    ):
        assert (ours == given).all()
    assert all((b == 0).all() for b in trace.layers[0].biases)
    assert trace.readout[0, -1] == 0
    wide = train_relu_network(X, np.ones(30), [400, 300], 0, seed=3)
    spread = [W.std() for W in wide.layers[0].weights]
    # 800 weights and 300: 2.5 and 4 per cent are a standard error
    assert spread == pytest.approx(np.sqrt([2 / 3, 2 / 400]), rel=0.05)
    assert wide.readout[0, :-1].std() == pytest.approx(
        np.sqrt(2 / 300), rel=0.15
    )


def test_recorded_errors_are_those_of_the_recorded_weights(sample, trace):
    for k in range(4):
        found = mse(*sample, *trace.layers[k], trace.readout[k])
        assert trace.mse[k] == pytest.approx(found, rel=1e-12)
    last = relu_features(sample[0], *trace.layers[3])[1:]
    for ours, given in zip(trace.features, last, strict=True):
        assert ours == pytest.approx(given)
    # a record is a copy, not a view of weights that go on moving
    assert (trace.layers[1].weights[0] != trace.layers[3].weights[0]).any()


def central_difference(sample, layers, readout, part, index, step=1e-5):
    values = []
    for sign in (1, -1):
        weights = [w.copy() for w in layers.weights]
        biases = [b.copy() for b in layers.biases]
        v = readout.copy()
        {
            "W0": weights[0],
            "W1": weights[1],
            "b0": biases[0],
            "b1": biases[1],
            "v": v,
        }[part][index] += sign * step
        values.append(mse(*sample, weights, biases, v))
    return (values[0] - values[1]) / (2 * step)


def test_the_first_step_of_adam_by_hand(sample, trace):
    """The first step is the learning rate against the sign of the gradient:
    first moment over root of second moment, both without their bias."""
    before, after = trace.layers[0], trace.layers[1]
    checked = 0
    for part, old, new in (
        ("W0", before.weights[0], after.weights[0]),
        ("W1", before.weights[1], after.weights[1]),
        ("b0", before.biases[0], after.biases[0]),
        ("b1", before.biases[1], after.biases[1]),
        ("v", trace.readout[0], trace.readout[1]),
    ):
        for index in list(np.ndindex(old.shape))[:7]:
            g = central_difference(
                sample, before, trace.readout[0], part, index
            )
            if abs(g) < 1e-3:  # Adam's denominator and rounding show below
                continue
            step = new[index] - old[index]
            assert step == pytest.approx(-0.003 * np.sign(g), rel=1e-4)
            checked += 1
    assert checked > 20


def test_the_second_step_uses_the_gradient_itself():
    """One live neuron with output v w x + c, fitted to 0 at x = 1: by hand,
    and unlike the first step the second tells a gradient from its sign."""
    X, f = np.array([[1.0]]), np.array([0.0])
    run = train_relu_network(
        X, f, [1], 2, lr=0.1, seed=6, record=[0, 1, 2], train_biases=False
    )
    w, v, c = (
        np.array([y.weights[0][0, 0] for y in run.layers]),
        run.readout[:, 0],
        run.readout[:, 1],
    )
    if w[0] < 0:
        pytest.fail("choose a seed that starts with a live neuron")
    g = [2 * (w[k] * v[k] + c[k]) for k in range(2)]  # d mse / d c
    m = (0.1 * g[1] + 0.9 * 0.1 * g[0]) / (1 - 0.9**2)
    s = (0.001 * g[1] ** 2 + 0.999 * 0.001 * g[0] ** 2) / (1 - 0.999**2)
    assert c[1] == pytest.approx(-0.1 * np.sign(g[0]), rel=1e-6)
    assert c[2] - c[1] == pytest.approx(-0.1 * m / np.sqrt(s), rel=1e-6)


def test_frozen_biases_stay_and_keep_features_homogeneous(sample):
    X, f = sample
    run = train_relu_network(X, f, [6, 5], 30, train_biases=False)
    assert all((b == 0).all() for b in run.layers[-1].biases)
    assert (run.layers[-1].weights[0] != run.layers[0].weights[0]).any()
    scale = np.linspace(0.1, 3, 30)[:, None]
    longer = relu_features(scale * X, *run.layers[-1])[-1]
    assert longer == pytest.approx(scale * run.features[-1])
    moved = train_relu_network(X, f, [6, 5], 30).layers[-1]
    assert all((b != 0).any() for b in moved.biases)


def test_gaussian_starts_keep_their_biases_when_frozen(sample):
    run = train_relu_network(
        *sample, [6], 20, bias_scale=2.0, train_biases=False
    )
    start = random_layers(3, [6], 0, bias_scale=2.0)
    assert (run.layers[-1].biases[0] == start.biases[0]).all()


def test_runs_repeat_and_seeds_differ(sample):
    threads = torch.get_num_threads()
    one, two = (train_relu_network(*sample, [4], 25, seed=9) for _ in "ab")
    assert (one.features[0] == two.features[0]).all()
    assert torch.get_num_threads() == threads
    other = train_relu_network(*sample, [4], 25, seed=8)
    assert other.mse[0] != one.mse[0]


def test_a_fit_that_is_reachable_is_reached():
    X = np.linspace(-1, 1, 21)[:, None]
    run = train_relu_network(X, np.abs(X[:, 0]), [16], 1500, seed=1)
    assert run.mse[-1] < 1e-4 < run.mse[0]


def test_dead_neurons_are_counted_and_get_no_gradient():
    """All samples on one side of every gate of some neurons."""
    X = np.ones((5, 1)) * np.arange(1, 6)[:, None]
    run = train_relu_network(X, np.ones(5), [50, 40], 20, seed=2)
    off = run.layers[0].weights[0][0] < 0
    assert run.dead[0, 0] == pytest.approx(off.mean()) and off.any()
    same = (
        run.layers[-1].weights[0][0, off] == run.layers[0].weights[0][0, off]
    )
    assert same.all()


def test_zero_steps_and_repeated_samples():
    X = np.zeros((4, 2))
    run = train_relu_network(X, np.arange(4.0), [3], 0)
    assert run.step.tolist() == [0] and len(run.layers) == 1
    assert run.dead.tolist() == [[1.0]]
    # equal rows get equal outputs: the best constant is what is left
    run = train_relu_network(X, np.arange(4.0), [3], 800, lr=0.05)
    assert run.mse[-1] == pytest.approx(1.25, rel=1e-6)


@pytest.mark.parametrize(
    ("change", "name"),
    [
        ({"X": np.full((3, 1), np.nan)}, "X must"),
        ({"X": np.zeros(3)}, "X must"),
        ({"X": np.zeros((0, 1))}, "X must"),
        ({"f": np.zeros(4)}, "f must"),
        ({"f": [0.0, np.inf, 0.0]}, "f must"),
        ({"widths": []}, "widths must"),
        ({"widths": [0]}, "widths must"),
        ({"steps": -1}, "steps must"),
        ({"steps": True}, "steps must"),
        ({"lr": 0.0}, "lr must"),
        ({"lr": np.nan}, "lr must"),
        ({"record": [0, 3]}, "record must"),
        ({"record": [1, 1]}, "record must"),
        ({"record": [0.5]}, "record must"),
        ({"record": []}, "record must"),
        ({"seed": None}, "rng must"),
        ({"bias_scale": -1.0}, "bias_scale"),
    ],
)
def test_bad_input_is_named(change, name):
    given = {"X": np.ones((3, 1)), "f": np.zeros(3), "widths": [2], "steps": 2}
    with pytest.raises(ValueError, match=name):
        train_relu_network(**(given | change))


def test_layers_are_what_relu_features_takes(trace):
    assert all(isinstance(layers, Layers) for layers in trace.layers)
    assert trace.dead.shape == (4, 2) and trace.readout.shape == (4, 6)
