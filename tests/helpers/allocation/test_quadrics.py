"""Quadratic forms of recurrent matches, one-weight polynomials, lifts."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from helpers.allocation.allocations import (
    Allocation,
    entry_allocation,
    row_allocation,
    with_entries,
)
from helpers.allocation.lift import (
    lifted_residual,
    lifted_sizes,
    linear_core_solve,
)
from helpers.allocation.networks import (
    LinearRNN,
    lrnn_forward,
    lrnn_states,
    sample_lrnn,
)
from helpers.allocation.quadrics import (
    kostlan_quadrics,
    lrnn_quadrics,
    polynomial_degree,
    real_root_counts,
    single_weight_polynomial,
)


def one(net):
    return LinearRNN(*(M[0] for M in net))


@given(st.integers(0, 10**6))
@settings(max_examples=40)
def test_quadrics_are_the_residual_of_the_network(seed):
    rng = np.random.default_rng(seed)
    n, b, d, m = rng.integers(1, 5, 4)
    p = int(rng.integers(1, n * n + 1))
    net = sample_lrnn(2, n, b, d, rng)
    X, Y = rng.normal(size=(2, 3, b, m)), rng.normal(size=(2, d, m))
    a = entry_allocation((n, n), p, rng)
    q = lrnn_quadrics(net, X, Y, a)
    w = rng.normal(size=(2, p))
    W = with_entries(net.W, a, w)
    r = lrnn_forward(LinearRNN(net.B, W, net.D), X) - Y
    np.testing.assert_allclose(q(w), r.reshape(2, -1), atol=1e-10)
    z = np.concatenate([np.ones((2, 1)), w], axis=1)
    forms = np.einsum("ki,kcij,kj->kc", z, q.homogeneous(), z)
    np.testing.assert_allclose(forms, q(w), atol=1e-10)


def test_rows_that_no_column_reads_are_affine():
    net = sample_lrnn(1, 6, 2, 2, 0)
    a = Allocation([0, 0, 1], [2, 3, 4])  # columns never in the rows
    q = lrnn_quadrics(net, np.ones((1, 3, 2, 2)), np.ones((1, 2, 2)), a)
    assert not q.Q.any() and q.linear.any()


@pytest.mark.parametrize("T", range(2, 9))
@pytest.mark.parametrize("entry", [(0, 0), (0, 1)])
def test_one_weight_against_the_network_and_its_degree(T, entry):
    rng = np.random.default_rng(T)
    net = sample_lrnn(20, 5, 2, 1, rng)
    X, Y = rng.normal(size=(20, T, 2, 1)), rng.normal(size=(20, 1, 1))
    c = single_weight_polynomial(net, X, Y, entry)
    a = Allocation([entry[0]], [entry[1]])
    for w in (-1.3, 0.0, 0.7):
        W = with_entries(net.W, a, np.full((20, 1), w))
        r = lrnn_forward(LinearRNN(net.B, W, net.D), X) - Y
        value = c @ w ** np.arange(T)
        np.testing.assert_allclose(value, r.ravel(), atol=1e-10)
    degree = T - 1 if entry == (0, 0) else -(-(T - 1) // 2)
    assert (polynomial_degree(c) == degree).all()


def test_odd_degree_always_has_a_real_root_even_degree_not():
    rng = np.random.default_rng(9)
    shares = {}
    for T in (3, 4, 5):
        teacher, net = (sample_lrnn(500, 6, 2, 1, rng) for _ in range(2))
        X = rng.normal(size=(500, T, 2, 1))
        c = single_weight_polynomial(net, X, lrnn_forward(teacher, X), (0, 0))
        shares[T] = np.mean(real_root_counts(c, T - 1) > 0)
    assert shares[4] == 1 and 0.5 < shares[3] < shares[5] < 0.88


@given(st.lists(st.floats(-3, 3), min_size=1, max_size=6), st.integers(0, 3))
def test_roots_that_were_put_in_are_counted(real, pairs):
    roots = np.unique(np.round(real, 1))
    c = np.array([1.0])
    for x in roots:
        c = np.convolve(c, [-x, 1.0])
    for i in range(pairs):
        c = np.convolve(c, [1.0 + i, 0.5 * i, 1.0])  # no real root
    degree = c.size - 1
    assert real_root_counts(c[None], degree)[0] == roots.size


def test_kostlan_law():
    """Variances, and invariance: a rotated form has the same law."""
    Q = kostlan_quadrics(40_000, 1, 3)[:, 0]
    np.testing.assert_allclose(Q.var(axis=0).diagonal(), 1, rtol=0.05)
    assert abs(Q[:, 0, 1].var() - 0.5) < 0.02
    R = np.array([[1, 1], [-1, 1]]) / 2**0.5
    turned = np.einsum("ji,kjl,lm->kim", R, Q, R)
    assert abs(turned[:, 0, 1].var() - 0.5) < 0.02


def test_lift_counts_and_degree():
    """Forty-two equations; a third difference along a line vanishes."""
    n, b, d, T, m = 7, 3, 2, 5, 3
    rng = np.random.default_rng(0)
    teacher, student = (one(sample_lrnn(1, n, b, d, rng)) for _ in range(2))
    X = rng.normal(size=(T, b, m))
    a = row_allocation((n, n), 3, 6, rng)
    learned = np.unique(a.rows)
    w, U = rng.normal(size=6), rng.normal(size=(T - 1, 3, m))
    dw, dU = rng.normal(size=6), rng.normal(size=U.shape)
    Y = lrnn_forward(teacher, X)

    def line(s):
        return lifted_residual(student, X, Y, a, w + s * dw, U + s * dU)

    values = np.stack([line(s) for s in range(4)])
    sizes = lifted_sizes(6, 3, d, T, m)
    assert values.shape[1] == sizes["equations"] == sizes["unknowns"] == 42
    assert np.abs(np.diff(values, 3, axis=0)).max() < 1e-11
    bent = np.abs(np.diff(values[:3], 2, axis=0)[0]) > 1e-9
    assert 0 < bent.sum() <= sizes["quadratics"] == 27
    # a true match solves the lifted system
    W = with_entries(student.W, a, w)
    now = LinearRNN(student.B, W, student.D)
    states = lrnn_states(now, X)[1:, learned]
    own = lifted_residual(student, X, lrnn_forward(now, X), a, w, states)
    assert np.abs(own).max() < 1e-12


@pytest.mark.parametrize(
    ("n", "b", "d", "T", "m", "k"),
    [(12, 6, 4, 3, 6, 2), (8, 2, 2, 3, 2, 1), (12, 2, 6, 3, 2, 3)]
    + [(10, 3, 6, 4, 2, 2)],
)
def test_the_linear_core_always_matches(n, b, d, T, m, k):
    rng = np.random.default_rng(4)
    found = []
    for _ in range(30):
        teacher, student = (
            one(sample_lrnn(1, n, b, d, rng)) for _ in range(2)
        )
        X = rng.normal(size=(T, b, m))
        a = row_allocation((n, n), k, k * m * (T - 1), rng)
        Y = lrnn_forward(teacher, X)
        found.append(linear_core_solve(student, X, Y, a).residual)
    # solves are ill-conditioned now and then, hence a median and a loose top
    assert np.median(found) < 1e-10 and max(found) < 1e-4


NET = sample_lrnn(1, 3, 1, 1, 0)


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (
            lambda: lrnn_quadrics(
                NET, np.ones((1, 2, 1, 1)), [[[1.0]]], ([0], [0])
            ),
            "X must have shape .K, 3",
        ),
        (
            lambda: single_weight_polynomial(
                NET, np.ones((1, 2, 1, 2)), [[[1.0]]], (0, 0)
            ),
            r"X must be .K, T, b, 1",
        ),
        (
            lambda: single_weight_polynomial(
                NET, np.ones((1, 2, 1, 1)), [[[1.0]]], (0, 7)
            ),
            r"cols must lie in \[0, 3\)",
        ),
        (lambda: real_root_counts([[1.0, 0.0]], 1), "nonzero entries"),
        (lambda: kostlan_quadrics(0, 2, 0), "K must be a whole number"),
        (lambda: lifted_sizes(1, 1, 1, 1, 1), "T must be at least 2"),
        (
            lambda: lifted_residual(
                one(NET), np.ones((3, 1, 1)), [[1.0]], ([0], [0]), [1.0], [1]
            ),
            "w must have shape",
        ),
        (
            lambda: linear_core_solve(
                one(NET), np.ones((3, 1, 1)), [[1.0]], ([0], [0])
            ),
            r"k \(T - 1\) must equal d",
        ),
    ],
)
def test_bad_input(call, words):
    with pytest.raises(ValueError, match=words):
        call()
