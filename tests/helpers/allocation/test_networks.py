"""Networks: by hand, against sums over paths, and what is refused."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from helpers.allocation.networks import (
    LinearRNN,
    ShallowReLU,
    controllability_matrix,
    lffn_forward,
    lrnn_forward,
    lrnn_states,
    markov_parameters,
    observability_matrix,
    relu_forward,
    sample_lffn,
    sample_lrnn,
    sample_lrnn_problems,
    sample_relu,
)

SEEDS = st.integers(0, 2**32 - 1)
SIZE = st.integers(1, 4)


def one(seed, n, b, d):
    return LinearRNN(*(M[0] for M in sample_lrnn(1, n, b, d, seed)))


def test_two_neurons_by_hand():
    """Input 2 enters neuron 1, which feeds neuron 2, which is read."""
    net = LinearRNN([[1.0], [0.0]], [[0.0, 0.0], [3.0, 0.0]], [[0.0, 5.0]])
    X = np.array([2.0, 7.0]).reshape(2, 1, 1)
    np.testing.assert_allclose(lrnn_states(net, X)[:, :, 0], [[2, 0], [7, 6]])
    np.testing.assert_allclose(lrnn_forward(net, X), [[30.0]])
    np.testing.assert_allclose(markov_parameters(net, 3).ravel(), [0, 15, 0])
    np.testing.assert_allclose(observability_matrix(net, 2), [[15, 0], [0, 5]])


@given(SEEDS, SIZE, SIZE, SIZE, SIZE, SIZE)
@settings(max_examples=40, deadline=None)
def test_three_ways_to_the_label(seed, n, b, d, T, m):
    """Recurrence, effective weights, controllability matrix."""
    net = one(seed, n, b, d)
    X = np.random.default_rng(seed).normal(size=(T, b, m))
    Y = lrnn_forward(net, X)
    powers = [np.linalg.matrix_power(net.W, s) for s in range(T)]
    summed = sum(net.D @ powers[T - 1 - t] @ net.B @ X[t] for t in range(T))
    np.testing.assert_allclose(Y, summed, atol=1e-12)
    K = markov_parameters(net, T)
    np.testing.assert_allclose(
        Y, np.einsum("sab,sbm->am", K[::-1], X), atol=1e-12
    )
    C = controllability_matrix(net, T)
    np.testing.assert_allclose(Y, net.D @ C @ X.reshape(T * b, m), atol=1e-12)
    O_T = observability_matrix(net, T)
    blocks = np.vstack([net.D @ powers[s] for s in range(T)[::-1]])
    np.testing.assert_allclose(O_T, blocks, atol=1e-12)


@given(SEEDS, SIZE)
@settings(max_examples=25, deadline=None)
def test_a_change_of_basis_does_not_show(seed, n):
    net = one(seed, n, 2, 2)
    rng = np.random.default_rng(seed)
    G = np.linalg.qr(rng.normal(size=(n, n)))[0] * 2
    inverse = G.T / 4
    turned = LinearRNN(G @ net.B, G @ net.W @ inverse, net.D @ inverse)
    X = rng.normal(size=(3, 2, 5))
    np.testing.assert_allclose(
        lrnn_forward(turned, X), lrnn_forward(net, X), atol=1e-10
    )


def test_leading_axes_broadcast():
    net = sample_lrnn(3, 4, 2, 1, 0)
    X = np.random.default_rng(0).normal(size=(5, 1, 3, 2, 6))
    Y = lrnn_forward(net, X)
    assert Y.shape == (5, 3, 1, 6)
    alone = LinearRNN(*(M[1] for M in net))
    np.testing.assert_allclose(Y[2, 1], lrnn_forward(alone, X[2, 0]))


def test_linear_and_relu_networks_by_hand():
    layers = [np.array([[1.0, 2.0]]), np.array([[3.0], [-1.0]])]
    np.testing.assert_allclose(
        lffn_forward(layers, [[1.0], [1.0]]), [[9.0], [-3.0]]
    )
    net = ShallowReLU([[1.0, -1.0], [0.0, 2.0]], [[1.0, 10.0]])
    np.testing.assert_allclose(
        relu_forward(net, [[3.0, 0.0], [1.0, -2.0]]), [[2 + 20, 2]]
    )
    doubled = relu_forward(net, [[3.0], [1.0]], activation=lambda z: 2 * z)
    np.testing.assert_allclose(doubled, [[44.0]])


def test_variances_of_the_draws():
    """Within five standard errors, at sizes where fan-in matters."""
    net = sample_lrnn(400, 9, 3, 4, 1, gain=2.0)
    relu = sample_relu(400, 9, 4, 3, 2)
    layers = sample_lffn(400, [5, 7, 2], 3)
    wanted = [
        (net.B, 1),
        (net.W, 4 / 9),
        (net.D, 1 / 9),
        (relu.B, 1 / 4),
        (relu.D, 1 / 9),
        (layers[0], 1 / 5),
        (layers[1], 1 / 7),
    ]
    for M, variance in wanted:
        bar = 5 * np.sqrt(2 / M.size)
        assert abs(M.var() / variance - 1) < bar
        assert abs(M.mean()) < 5 * np.sqrt(variance / M.size)


@pytest.mark.parametrize("value", [0, -1, 1.5, True, np.nan, np.inf, "2"])
def test_sizes_are_positive_whole_numbers(value):
    for call in (
        lambda: sample_lrnn(1, value, 1, 1, 0),
        lambda: sample_relu(1, 2, value, 1, 0),
        lambda: sample_lffn(1, [2, value], 0),
        lambda: markov_parameters(one(0, 2, 1, 1), value),
    ):
        with pytest.raises(ValueError, match="whole number >= 1"):
            call()


def test_what_does_not_fit_is_refused():
    net = one(0, 3, 2, 1)
    X = np.ones((2, 2, 4))
    bad = X.copy()
    bad[0, 0, 0] = np.nan
    with pytest.raises(ValueError, match="X must be finite"):
        lrnn_forward(net, bad)
    for wrong in (X[:, :1], X[0], X[:, :, :0], X[:0]):
        with pytest.raises(ValueError, match="X must have shape"):
            lrnn_states(net, wrong)
    with pytest.raises(ValueError, match="W must be"):
        lrnn_forward(net._replace(D=np.ones((1, 2))), X)
    with pytest.raises(ValueError, match="D must be finite"):
        lrnn_forward(net._replace(D=np.full((1, 3), np.inf)), X)
    with pytest.raises(ValueError, match="needs a neuron"):
        lrnn_forward(net._replace(D=np.ones((0, 3))), X)
    with pytest.raises(ValueError, match="must be matrices"):
        lrnn_forward(net._replace(D=np.ones(3)), X)
    for gain in (0, -1, np.nan, np.inf):
        with pytest.raises(ValueError, match="gain"):
            sample_lrnn(1, 2, 1, 1, 0, gain=gain)
    with pytest.raises(ValueError, match="two or more sizes"):
        sample_lffn(1, [3], 0)
    with pytest.raises(ValueError, match="at least one matrix"):
        lffn_forward([], X[0])
    with pytest.raises(ValueError, match=r"layers\[1\] must have as many"):
        lffn_forward([np.ones((3, 2)), np.ones((1, 2))], X[0])
    with pytest.raises(ValueError, match="B must be"):
        relu_forward(ShallowReLU(np.ones((3, 2)), np.ones((1, 2))), X[0])
    with pytest.raises(ValueError, match="B must be finite"):
        relu_forward(ShallowReLU([[np.nan]], [[1.0]]), [[1.0]])


def test_problems_are_independent_draws():
    problem = sample_lrnn_problems(300, 4, 2, 1, T=2, m=3, rng=0)
    np.testing.assert_allclose(
        problem.Y, lrnn_forward(problem.teacher, problem.X)
    )
    assert problem.X.shape == (300, 2, 2, 3)
    for mine, other in zip(problem.student, problem.teacher, strict=True):
        r = np.corrcoef(mine.ravel(), other.ravel())[0, 1]
        assert abs(r) < 5 / np.sqrt(mine.size)
    with pytest.raises(ValueError, match="m must be a whole"):
        sample_lrnn_problems(1, 2, 1, 1, 2, 0, 0)


def test_a_seed_gives_the_same_network_twice():
    first, second = (sample_lrnn(2, 3, 2, 1, 5) for _ in range(2))
    for A, B in zip(first, second, strict=True):
        np.testing.assert_array_equal(A, B)
