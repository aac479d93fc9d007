"""Layers on a fixed sample: hand values, other routes, laws of the skips."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from helpers.spectral_alignment.coverage import (
    captured_features,
    coverage_sines,
)
from helpers.spectral_alignment.layers import (
    Layers,
    neuron_outputs,
    random_layers,
    relu_features,
    with_bias,
)
from helpers.spectral_alignment.partitions import sample_partition

SEEDS = st.integers(0, 2**32 - 1)


def by_loops(X, weights, biases, skip=None, outgoing=None):
    """The same network, one sample and one neuron at a time."""
    layers = [np.array(X, dtype=float)]
    for depth, (W, b) in enumerate(zip(weights, biases, strict=True)):
        rows = []
        for h in layers[-1]:
            r = [
                max(sum(h[i] * W[i][k] for i in range(len(h))) + b[k], 0.0)
                for k in range(len(b))
            ]
            if skip == "concat":
                r = list(h) + r
            elif skip == "add" and depth:
                omega = np.eye(len(r)) if outgoing is None else outgoing
                if outgoing is not None:
                    omega = outgoing[depth - 1]
                r = [
                    h[j] + sum(r[k] * omega[k][j] for k in range(len(r)))
                    for j in range(len(h))
                ]
            rows.append(r)
        layers.append(np.array(rows))
    return layers


def case(seed, skip):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(int(rng.integers(2, 15)), int(rng.integers(1, 4))))
    if rng.random() < 0.4:
        X = np.vstack([X, X[:1], X[:1]])
    widths = [int(rng.integers(1, 5))] * int(rng.integers(1, 4))
    U = np.linalg.qr(rng.normal(size=(len(X), int(rng.integers(1, len(X))))))
    return X, random_layers(X.shape[1], widths, rng, skip=skip), U[0], rng


def test_two_layers_by_hand():
    x = [[-1.0], [0.5], [2.0]]
    weights, biases = [[[1.0, -1.0]], [[1.0], [3.0]]], [[0.0, 1.0], [-1.0]]
    plain = relu_features(x, weights, biases)
    np.testing.assert_array_equal(plain[1], [[0, 2], [0.5, 0.5], [2, 0]])
    np.testing.assert_array_equal(plain[2], [[5], [1], [1]])
    skip = relu_features(x, weights[:1], biases[:1], skip="concat")[1]
    np.testing.assert_array_equal(skip, np.c_[x, plain[1]])


@pytest.mark.parametrize("skip", [None, "concat", "add"])
@given(SEEDS)
@settings(max_examples=20, deadline=None)
def test_features_against_loops(skip, seed):
    X, layers, _, rng = case(seed, skip)
    outgoing = None
    if skip == "add" and rng.random() < 0.5:
        k = len(layers.biases[0])
        outgoing = [rng.normal(size=(k, k)) for _ in layers.biases[1:]]
    ours = relu_features(X, *layers, skip=skip, outgoing=outgoing)
    theirs = by_loops(X, *layers, skip=skip, outgoing=outgoing)
    assert len(ours) == len(layers.weights) + 1
    for a, b in zip(ours, theirs, strict=True):
        np.testing.assert_allclose(a, b, atol=1e-10)


def test_neuron_outputs_agree_with_layers():
    X, layers, _, _ = case(5, None)
    Theta = np.vstack([layers.weights[0], layers.biases[0]])
    H = relu_features(X, *layers)[1]
    np.testing.assert_allclose(neuron_outputs(with_bias(X), Theta), H)
    np.testing.assert_allclose(
        neuron_outputs(with_bias(X), Theta[:, 0]), H[:, 0]
    )
    assert with_bias(np.zeros((3, 0))).tolist() == [[1.0]] * 3


@given(SEEDS)
@settings(max_examples=40, deadline=None)
def test_remark_5_7_concatenated_skips_are_monotone(seed):
    """For any weights, dead ones included: sines fall, classes stay."""
    X, layers, U, rng = case(seed, "concat")
    if rng.random() < 0.3:
        layers.biases[0][:] = -100.0
    features = relu_features(X, *layers, skip="concat")
    sines = [coverage_sines(with_bias(H), U) for H in features]
    assert np.max(np.diff(sines, axis=0), initial=0) < 1e-9
    for H in features:
        assert sample_partition(H).tolist() == sample_partition(X).tolist()


def test_additive_skip_forgets_everything():
    """Two samples, one neuron: x + sigma(-x) = 0 for negative x."""
    x = np.array([[-2.0], [-1.0]])
    U = np.eye(2)
    R = neuron_outputs(with_bias(x), [[-1.0], [0.0]])
    assert captured_features(with_bias(x), U) == pytest.approx(2)
    assert captured_features(with_bias(x + R), U) == pytest.approx(1)
    assert sample_partition(x + R).tolist() == [0, 0]
    # one sample is not enough: the constant covers all there is
    one = np.ones((1, 1))
    assert captured_features(with_bias(0 * one), one) == pytest.approx(1)
    # the same inside relu_features, behind a copying first layer
    features = relu_features(
        -x, [[[1.0]], [[1.0]]], [[0.0], [0.0]], "add", [[[-1.0]]]
    )
    np.testing.assert_array_equal(features[2], 0)


def test_additive_skips_lose_on_random_layers():
    lost = 0
    for seed in range(40):
        X, _, U, rng = case(seed, None)
        layers = random_layers(X.shape[1], [4, 4], rng)
        H = relu_features(X, *layers, skip="add")
        N = [captured_features(with_bias(h), U) for h in H[1:]]
        lost += N[1] < N[0] - 1e-6
    assert lost >= 5


def test_random_layers_have_the_stated_moments():
    layers = random_layers(50, [400, 400], 3, gain=2.0, bias_scale=0.5)
    # five standard errors of a variance of 20 000 numbers are 0.05, and four of
    # a deviation of 800 numbers 0.1
    assert np.var(layers.weights[0]) == pytest.approx(4 / 50, rel=0.05)
    assert np.var(layers.weights[1]) == pytest.approx(4 / 400, rel=0.05)
    assert np.std(np.r_[tuple(layers.biases)]) == pytest.approx(0.5, rel=0.1)
    again = random_layers(50, [400, 400], 3, gain=2.0, bias_scale=0.5)
    np.testing.assert_array_equal(layers.weights[1], again.weights[1])
    assert isinstance(again, Layers)
    grown = random_layers(3, [2, 2, 2], 0, skip="concat")
    assert [w.shape[0] for w in grown.weights] == [3, 5, 7]
    assert not random_layers(2, 3, 0, bias_scale=0.0).biases[0].any()


def test_he_gain_keeps_the_mean_square():
    """Without biases, on average over wide layers."""
    X = np.random.default_rng(0).normal(size=(20, 300))
    H = relu_features(X, *random_layers(300, [3000], 1, bias_scale=0.0))[1]
    # 3000 neurons and 20 samples: one per cent is a standard error
    assert np.mean(H**2) == pytest.approx(np.mean(X**2), rel=0.05)


X2, W2, B2 = np.eye(2), np.ones((2, 2)), np.zeros(2)


@pytest.mark.parametrize(
    ("call", "match"),
    [
        (lambda: relu_features(np.ones(3), [], []), "X must have shape"),
        (lambda: relu_features(X2 * np.nan, [], []), "X must be finite"),
        (lambda: relu_features(np.zeros((0, 2)), [], []), "X must have"),
        (lambda: relu_features(X2, [W2], []), "biases must have one"),
        (lambda: relu_features(X2, [W2], [B2], "sum"), "skip must be"),
        (lambda: relu_features(X2, [W2[:1]], [B2]), "layer 1: weights"),
        (lambda: relu_features(X2, [W2], [B2[:1]]), "layer 1: weights"),
        (lambda: relu_features(X2, [W2 * np.inf], [B2]), "finite"),
        (
            lambda: relu_features(X2, [W2, W2[:, :1]], [B2, B2[:1]], "add"),
            "layer 2: an additive skip needs 2 neurons",
        ),
        (
            lambda: relu_features(X2, [W2, W2], [B2, B2], "add", [W2[:1]]),
            "layer 2: outgoing must have shape",
        ),
        (
            lambda: relu_features(
                X2, [W2, W2], [B2, B2], "add", [W2 * np.nan]
            ),
            "outgoing must be finite",
        ),
        (
            lambda: relu_features(X2, [W2], [B2], outgoing=[W2]),
            "needs skip='add'",
        ),
        (lambda: with_bias(np.ones(3)), "H must be a matrix"),
        (lambda: with_bias(X2 * np.nan), "H must be finite"),
        (lambda: neuron_outputs(X2, np.ones(3)), "Theta must have shape"),
        (lambda: neuron_outputs(X2, [np.nan, 1]), "Theta must be finite"),
        (lambda: random_layers(0, [2], 0), "d must be"),
        (lambda: random_layers(2, [0], 0), "widths must be"),
        (lambda: random_layers(2, [1.5], 0), "widths must be"),
        (lambda: random_layers(2, [2, 3], 0, skip="add"), "equal"),
        (lambda: random_layers(2, [2], 0, gain=0.0), "gain must be"),
        (lambda: random_layers(2, [2], 0, bias_scale=-1.0), "bias_scale"),
        (lambda: random_layers(2, [2], 0, skip="cat"), "skip must be"),
    ],
)
def test_bad_input_is_named(call, match):
    with pytest.raises(ValueError, match=match):
        call()
