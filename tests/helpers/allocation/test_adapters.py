"""Low-rank adapters: Jacobians, ranks, the dichotomy, exact matches."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from helpers.allocation.adapters import (
    adapter_equations,
    adapter_rank_cap,
    adapter_residuals,
    frozen_side,
    layer_adapter_match,
    layer_ends,
    low_rank_adapter_jacobian,
    recurrent_adapter_cap,
    recurrent_adapter_match,
    recurrent_ends,
)
from helpers.allocation.factors import first_matches, layer_problems
from helpers.allocation.levenberg import draw_starts, levenberg_marquardt
from helpers.allocation.matching import recurrent_problems
from helpers.allocation.networks import (
    LinearRNN,
    lffn_forward,
    lrnn_forward,
)
from helpers.allocation.ranks import generic_rank

SCALES = (0.1, 0.3, 1.0, 3.0)


def one(problems, i=0):
    net = LinearRNN(*(M[i] for M in problems.student))
    return net, problems.X[i], problems.Y[i]


def layer(seed, widths, m):
    draws = layer_problems(1, widths, m, seed)
    return [W[0] for W in draws.layers], draws.X[0], draws.Y[0]


def recurrent_rank(n, b, d, T, m, r, seed):
    net, X, _ = one(recurrent_problems(1, n, b, d, T, m, seed))
    U, V = np.random.default_rng(seed).normal(size=(2, n, r))
    J = low_rank_adapter_jacobian(recurrent_ends(net, X, U, V), U, V)
    return int(generic_rank(J).rank)


# Jacobians


def test_jacobian_by_hand():
    # y = 3 (2 + u v) x, x = 1: slopes 3 v and 3 u
    ends = layer_ends([[[2.0]], [[3.0]]], [[1.0]], 0)
    J = low_rank_adapter_jacobian(ends, [[5.0]], [[7.0]])
    np.testing.assert_allclose(J, [[21.0, 15.0]])


def test_layer_jacobian_against_differences():
    layers, X, _ = layer(1, [4, 5, 3, 2], 3)
    rng = np.random.default_rng(1)
    U, V = rng.normal(size=(3, 2)), rng.normal(size=(5, 2))

    def labels(w):
        now = list(layers)
        now[1] = layers[1] + w[:6].reshape(3, 2) @ w[6:].reshape(5, 2).T
        return lffn_forward(now, X).ravel()

    w = np.r_[U.ravel(), V.ravel()]
    J = low_rank_adapter_jacobian(layer_ends(layers, X, 1), U, V)
    slopes = [(labels(w + e) - labels(w - e)) / 2 for e in np.eye(16)]
    np.testing.assert_allclose(J, np.transpose(slopes), atol=1e-12)


def test_recurrent_jacobian_against_differences():
    problems = recurrent_problems(2, 4, 2, 2, 4, 3, 2)
    made = adapter_equations(problems, 2)
    rng = np.random.default_rng(2)
    w, which = rng.normal(size=(2, 16)), np.arange(2)
    _, J = made.residual_jac(w, which)
    step = 1e-6
    for i, e in enumerate(step * np.eye(16)):
        up, down = (made.residual_jac(w + s * e, which)[0] for s in (1, -1))
        slope = (up - down) / (2 * step)
        # differences of a quintic, in the unit of the residuals
        np.testing.assert_allclose(slope, J[..., i], rtol=1e-4, atol=1e-7)


def test_ends_at_zero_are_the_network():
    net, X, _ = one(recurrent_problems(1, 5, 2, 3, 3, 2, 0))
    U = V = np.zeros((5, 1))
    ends = recurrent_ends(net, X, U, V)
    h1 = net.B @ X[0]
    np.testing.assert_allclose(ends.right[0], h1)
    np.testing.assert_allclose(ends.right[1], net.W @ h1 + net.B @ X[1])
    np.testing.assert_allclose(ends.left[0], net.D @ net.W)
    np.testing.assert_allclose(ends.left[1], net.D)


# ranks


@pytest.mark.parametrize("r", [1, 2, 3, 4, 5])
def test_layer_rank_is_the_dimension(r):
    layers, X, _ = layer(r, [12, 12, 12, 4], 5)
    U, V = np.random.default_rng(r).normal(size=(2, 12, r))
    J = low_rank_adapter_jacobian(layer_ends(layers, X, 1), U, V)
    expected = {1: 8, 2: 14, 3: 18, 4: 20, 5: 20}[r]
    assert generic_rank(J).rank == adapter_rank_cap(4, 5, r) == expected


@settings(max_examples=40, deadline=None)
@given(st.integers(0, 10_000))
def test_recurrent_rank_never_exceeds_the_cap(seed):
    rng = np.random.default_rng(seed)
    n, b, d, m = (int(v) for v in rng.integers(1, 8, 4))
    T, r = int(rng.integers(2, 5)), int(rng.integers(1, n + 1))
    cap = recurrent_adapter_cap(n, d, T, m, r)
    assert recurrent_rank(n, b, d, T, m, r, seed) <= cap


@settings(max_examples=40, deadline=None)
@given(st.integers(0, 10_000))
def test_recurrent_cap_is_reached_with_room(seed):
    # with b >= m and n >= (T - 1) max(d, m)
    rng = np.random.default_rng(seed)
    d, m = (int(v) for v in rng.integers(1, 6, 2))
    T = int(rng.integers(2, 5))
    n, b = (T - 1) * max(d, m) + int(rng.integers(3)), m + int(rng.integers(3))
    r = int(rng.integers(1, min(n, 5) + 1))
    cap = recurrent_adapter_cap(n, d, T, m, r)
    assert recurrent_rank(n, b, d, T, m, r, seed) == cap


def test_cap_by_degrees_of_freedom():
    # two neurons: a 2 x 2 matrix of rank one has three degrees of freedom
    assert recurrent_adapter_cap(2, 2, 5, 6, 1) == 3
    assert recurrent_rank(2, 2, 2, 5, 6, 1, 0) == 3


def test_caps_of_the_reconstruction():
    assert [recurrent_rank(12, 6, 6, 3, 6, r, r) for r in (1, 2, 3)] == [
        20,
        32,
        36,
    ]
    assert recurrent_rank(12, 6, 6, 3, 2, 1, 0) == 12
    # fewer inputs than examples: later than the cap says
    assert [recurrent_rank(12, 3, 2, 3, 6, r, r) for r in (1, 2)] == [8, 12]
    assert recurrent_adapter_cap(12, 2, 3, 6, 1) == 12


# one layer


def test_best_adapter_by_hand():
    layers = [np.eye(2), np.eye(2)]
    goal = np.eye(2) + np.diag([3.0, 4.0])
    found = layer_adapter_match(layers, np.eye(2), goal, 0, 1)
    np.testing.assert_allclose(found.U @ found.V.T, np.diag([0, 4.0]))
    assert found.residual == pytest.approx(3 / np.hypot(4, 5))
    both = layer_adapter_match(layers, np.eye(2), goal, 0, 3)
    assert both.U.shape == (2, 3) and both.residual < 1e-14


@pytest.mark.parametrize("d,m", [(4, 5), (5, 4), (3, 3)])
def test_dichotomy_at_the_smaller_of_d_and_m(d, m):
    for seed in range(5):
        layers, X, Y = layer(seed, [7, 8, 7, d], m)
        gaps = [
            layer_adapter_match(layers, X, Y, 1, r).residual
            for r in range(1, min(d, m) + 2)
        ]
        assert max(gaps[min(d, m) - 1 :]) < 1e-11
        assert min(gaps[: min(d, m) - 1]) > 1e-4
        assert (np.diff(gaps[: min(d, m)]) < 0).all()


def test_nothing_of_this_rank_is_nearer():
    # T = 2 is one layer: descent from many starts ends at the truncation
    problems = recurrent_problems(1, 6, 4, 3, 2, 4, 3)
    net, X, Y = one(problems)
    goal = Y - net.D @ net.B @ X[1]
    layers, first = [net.W, net.D], net.B @ X[0]
    best = layer_adapter_match(layers, first, goal, 0, 2)
    best_gap = best.residual * np.linalg.norm(goal) / np.linalg.norm(Y)
    made = adapter_equations(problems, 2)
    ends = [
        levenberg_marquardt(
            made.residual_jac,
            draw_starts(1, 1, made.p, s, (1.0,))[:, 0],
            made.size,
        ).residual.item()
        for s in range(8)
    ]
    assert min(ends) == pytest.approx(best_gap, rel=1e-4)
    assert min(ends) > best_gap * (1 - 1e-9)


def test_residuals_of_many_draws():
    draws = layer_problems(4, [5, 6, 3], 4, 2)
    gaps = adapter_residuals(draws, 0, [1, 3])
    layers = [W[2] for W in draws.layers]
    alone = layer_adapter_match(layers, draws.X[2], draws.Y[2], 0, 1)
    assert gaps.shape == (4, 2) and gaps[2, 0] == alone.residual
    assert gaps[:, 1].max() < 1e-11 < gaps[:, 0].min()


def test_layer_match_refuses():
    layers, X, Y = layer(0, [4, 4, 3], 2)
    with pytest.raises(ValueError, match="index must be below 2"):
        layer_adapter_match(layers, X, Y, 2, 1)
    with pytest.raises(ValueError, match="r must be"):
        layer_adapter_match(layers, X, Y, 0, 0)
    with pytest.raises(ValueError, match="not zero"):
        layer_adapter_match(layers, X, 0 * Y, 0, 1)
    with pytest.raises(ValueError, match="finite"):
        layer_adapter_match(layers, X, np.nan * Y, 0, 1)
    twice = np.concatenate([X, X[:, :1]], axis=1)  # a repeated example
    with pytest.raises(ValueError, match=r"ranks \(3, 3\), got \(3, 2\)"):
        layer_adapter_match(layers, twice, np.ones((3, 3)), 0, 1)


# recurrent networks


def test_threshold_of_the_rank_of_the_correction():
    # whatever U and V are, the correction has rank at most r (T - 1)
    rng = np.random.default_rng(5)
    net, X, _ = one(recurrent_problems(1, 9, 4, 7, 3, 7, 5))
    for r, expected in ((1, 2), (2, 4), (3, 6), (4, 7)):
        U, V = rng.normal(size=(2, 9, r))
        now = net._replace(W=net.W + U @ V.T)
        gap = lrnn_forward(now, X) - lrnn_forward(net, X)
        assert np.linalg.matrix_rank(gap) == expected


@pytest.mark.parametrize(
    "sizes,side",
    [
        ((8, 4, 4, 3, 4, 2), "U"),
        ((8, 4, 4, 3, 4, 3), "U"),
        ((16, 4, 8, 3, 4, 2), "V"),
        ((12, 5, 6, 4, 3, 1), "V"),
        ((6, 4, 4, 2, 4, 4), "U"),
        ((18, 6, 4, 4, 6, 2), "U"),
    ],
)
def test_exact_recurrent_match(sizes, side):
    n, b, d, T, m, r = sizes
    if side == "V" and T == 4:
        n = 18
    assert frozen_side(n, b, d, T, m, r) == side
    problems = recurrent_problems(15, n, b, d, T, m, 6)
    gaps = [
        recurrent_adapter_match(*one(problems, i), r, i).residual
        for i in range(15)
    ]
    # ill-conditioned solves have a heavy tail
    assert np.median(gaps) < 1e-9 and max(gaps) < 1e-3


def test_side_needs_room():
    assert frozen_side(8, 4, 4, 3, 4, 1) is None  # r (T - 1) = 2 < 4
    assert frozen_side(7, 4, 4, 3, 4, 2) is None  # n < m (T - 1)
    assert frozen_side(8, 3, 4, 3, 4, 2) is None  # b < m
    assert frozen_side(12, 4, 8, 3, 4, 2) is None  # V needs n >= 16


def test_recurrent_match_refuses():
    net, X, Y = one(recurrent_problems(1, 8, 4, 4, 3, 4, 0))
    with pytest.raises(ValueError, match="must reach d or m"):
        recurrent_adapter_match(net, X, Y, 1, 0)
    with pytest.raises(ValueError, match="not zero"):
        recurrent_adapter_match(net, X, 0 * Y, 2, 0)
    with pytest.raises(ValueError, match=r"X must be \(T, b, m\)"):
        recurrent_adapter_match(net, X[None], Y, 2, 0)
    with pytest.raises(ValueError, match="two steps"):
        recurrent_ends(net, X[:1], np.ones((8, 1)), np.ones((8, 1)))
    with pytest.raises(ValueError, match=r"U must be \(8, r\)"):
        recurrent_ends(net, X, np.ones((7, 1)), np.ones((8, 1)))
    with pytest.raises(ValueError, match="at most n = 3"):
        recurrent_adapter_cap(3, 2, 3, 2, 4)
    with pytest.raises(ValueError, match="steps_after_the_first"):
        recurrent_adapter_cap(3, 2, 1, 2, 1)


def test_optimiser_on_both_sides_of_the_threshold():
    problems = recurrent_problems(12, 8, 4, 4, 3, 4, 7)
    shares = []
    for r in (1, 2):
        made = adapter_equations(problems, r)
        starts = draw_starts(12, 6, made.p, 3, SCALES)
        shares.append(np.mean(first_matches(made, starts) > 0))
    assert shares[0] == 0 and shares[1] > 0.9
    with pytest.raises(ValueError, match="Y must not be zero"):
        adapter_equations(problems._replace(Y=0 * problems.Y), 1)
