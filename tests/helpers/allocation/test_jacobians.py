"""Jacobians: by hand, by complex steps, by exact differences, refusals."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from helpers.allocation.allocations import (
    Allocation,
    entries,
    entry_allocation,
    stack_allocations,
    with_entries,
)
from helpers.allocation.jacobians import (
    lffn_jacobian,
    lrnn_jacobian,
    relu_jacobian,
)
from helpers.allocation.networks import (
    LinearRNN,
    ShallowReLU,
    relu_forward,
    sample_lffn,
    sample_lrnn,
    sample_relu,
)

SEEDS = st.integers(0, 2**32 - 1)
SIZE = st.integers(1, 4)
LETTER = {"encoder": 0, "recurrent": 1, "decoder": 2}


def complex_forward(B, W, D, X):
    """The recurrence, in plain NumPy, for complex weights."""
    h = 0
    for x in X:
        h = W @ h + B @ x if np.ndim(h) else B @ x
    return D @ h


def complex_step(f, M, rows, cols):
    """Derivatives without cancellation: the imaginary part of one step."""
    columns = []
    for j, c in zip(rows, cols, strict=True):
        moved = M.astype(complex)
        moved[j, c] += 1e-30j
        columns.append(f(moved).imag.ravel() / 1e-30)
    return np.stack(columns, axis=1)


@given(SEEDS, SIZE, SIZE, SIZE, SIZE, SIZE)
@settings(max_examples=40, deadline=None)
def test_linear_rnn_by_complex_steps(seed, n, b, d, T, m):
    rng = np.random.default_rng(seed)
    net = LinearRNN(*(M[0] for M in sample_lrnn(1, n, b, d, rng)))
    X = rng.normal(size=(T, b, m))
    for part, place in LETTER.items():
        shape = net[place].shape
        p = int(rng.integers(1, shape[0] * shape[1] + 1))
        a = entry_allocation(shape, p, rng)

        def forward(M, place=place):
            parts = list(net)
            parts[place] = M
            return complex_forward(*parts, X)

        J = lrnn_jacobian(net, X, a, part)
        assert J.shape == (d * m, p)
        np.testing.assert_allclose(
            J, complex_step(forward, net[place], *a), atol=1e-10
        )


def test_recurrent_column_by_hand():
    """W_21 carries neuron 1's state at step 1 and 2 to the output; at step
    1 the path on has one more factor W_22."""
    W = np.array([[2.0, 0.0], [1.0, 3.0]])
    net = LinearRNN([[1.0], [0.0]], W, [[0.0, 1.0]])
    X = np.ones((3, 1, 1))
    # h_1 = (1, 0), h_2 = (3, 1): column = 3 * 1 + 1 * 3
    J = lrnn_jacobian(net, X, Allocation(np.array([1]), np.array([0])))
    np.testing.assert_allclose(J, [[6.0]])
    # one step: nothing has gone through W
    J = lrnn_jacobian(net, X[:1], Allocation(np.array([1]), np.array([0])))
    np.testing.assert_array_equal(J, [[0.0]])


def test_a_stack_is_its_members():
    rng = np.random.default_rng(3)
    net = sample_lrnn(4, 3, 2, 2, rng)
    X = rng.normal(size=(4, 3, 2, 5))
    stack = stack_allocations(
        [entry_allocation((3, 3), 4, rng) for _ in range(4)]
    )
    J = lrnn_jacobian(net, X, stack)
    for i in range(4):
        alone = LinearRNN(*(M[i] for M in net))
        a = Allocation(stack.rows[i], stack.cols[i])
        np.testing.assert_allclose(J[i], lrnn_jacobian(alone, X[i], a))
    one = Allocation(stack.rows[0], stack.cols[0])
    np.testing.assert_allclose(lrnn_jacobian(net, X, one)[0], J[0])


@given(SEEDS, st.lists(SIZE, min_size=2, max_size=5), SIZE)
@settings(max_examples=40, deadline=None)
def test_layers_by_complex_steps(seed, widths, m):
    rng = np.random.default_rng(seed)
    layers = [W[0] for W in sample_lffn(1, widths, rng)]
    X = rng.normal(size=(widths[0], m))
    learned = [
        entry_allocation(W.shape, int(rng.integers(1, W.size + 1)), rng)
        if rng.random() < 0.6 or i == 0
        else None
        for i, W in enumerate(layers)
    ]
    columns = []
    for i, a in enumerate(learned):
        if a is None:
            continue

        def forward(M, i=i):
            Z = X
            for j, W in enumerate(layers):
                Z = (M if j == i else W) @ Z
            return Z

        columns.append(complex_step(forward, layers[i], *a))
    np.testing.assert_allclose(
        lffn_jacobian(layers, X, learned), np.hstack(columns), atol=1e-10
    )


@given(SEEDS, SIZE, SIZE, SIZE, SIZE)
@settings(max_examples=40, deadline=None)
def test_relu_is_linear_within_a_region(seed, n, b, d, m):
    """A step too small to switch a neuron gives an exact difference."""
    rng = np.random.default_rng(seed)
    net = ShallowReLU(*(M[0] for M in sample_relu(1, n, b, d, rng)))
    X = rng.normal(size=(b, m))
    p = int(rng.integers(1, n * b + 1))
    a = entry_allocation((n, b), p, rng)
    J = relu_jacobian(net, X, a)
    step = np.abs(net.B @ X).min() / np.abs(X).max() / b / 2
    w = step * rng.uniform(-1, 1, p)
    moved = with_entries(net.B, a, entries(net.B, a) + w)
    change = relu_forward(net._replace(B=moved), X) - relu_forward(net, X)
    np.testing.assert_allclose(change.ravel(), J @ w, atol=1e-13)


def test_relu_with_another_activation():
    rng = np.random.default_rng(0)
    net = ShallowReLU(*(M[0] for M in sample_relu(1, 3, 2, 2, rng)))
    X = rng.normal(size=(2, 4))
    a = entry_allocation((3, 2), 5, rng)
    J = relu_jacobian(net, X, a, derivative=lambda z: 1 / np.cosh(z) ** 2)
    numeric = complex_step(lambda B: net.D @ np.tanh(B @ X), net.B, *a)
    np.testing.assert_allclose(J, numeric, atol=1e-12)
    stack = sample_relu(3, 3, 2, 2, rng)
    assert relu_jacobian(stack, X, a).shape == (3, 8, 5)


def test_refused():
    net = LinearRNN(*(M[0] for M in sample_lrnn(1, 3, 2, 1, 0)))
    X = np.ones((2, 2, 4))
    a = Allocation(np.array([0]), np.array([2]))
    with pytest.raises(ValueError, match="part must be one of"):
        lrnn_jacobian(net, X, a, "readout")
    with pytest.raises(ValueError, match=r"cols must lie in \[0, 2\)"):
        lrnn_jacobian(net, X, a, "encoder")
    with pytest.raises(ValueError, match="X must be finite"):
        lrnn_jacobian(net, X * np.nan, a)
    layers = [np.ones((3, 2)), np.ones((1, 3))]
    for wrong in ([None, None], [None], [a, None, None]):
        with pytest.raises(ValueError, match="allocations must be 2"):
            lffn_jacobian(layers, X[0], wrong)
    with pytest.raises(ValueError, match="twice"):
        lffn_jacobian(layers, X[0], [None, ([0, 0], [1, 1])])
    with pytest.raises(ValueError, match="D must be finite"):
        relu_jacobian(ShallowReLU([[1.0]], [[np.inf]]), [[1.0]], a)
    with pytest.raises(ValueError, match="cols must lie"):
        relu_jacobian(ShallowReLU([[1.0]], [[1.0]]), [[1.0]], a)
