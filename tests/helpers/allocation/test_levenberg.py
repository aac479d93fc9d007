"""Levenberg-Marquardt: both routes, known solutions, honest failures."""

import numpy as np
import pytest

from helpers.allocation import levenberg_compiled
from helpers.allocation.allocations import (
    Allocation,
    entries,
    row_allocation,
    stack_allocations,
    with_entries,
)
from helpers.allocation.levenberg import (
    ACTIVATIONS,
    draw_starts,
    levenberg_marquardt,
    solve_quadratics,
    solve_recurrent,
    solve_shallow,
)
from helpers.allocation.networks import (
    LinearRNN,
    ShallowReLU,
    lrnn_forward,
    relu_forward,
    sample_lrnn,
    sample_relu,
)

ROUTES = [False] + [True] * levenberg_compiled.AVAILABLE


def quadratics(K, p, rng):
    """Systems with a known real solution."""
    Q = rng.normal(size=(K, p, p, p)) / p**0.5
    Q = Q + np.swapaxes(Q, -1, -2)
    linear, w = rng.normal(size=(K, p, p)), rng.normal(size=(K, p))
    constant = -np.einsum("kcpq,kp,kq->kc", Q, w, w)
    return Q, linear, constant - np.einsum("kcp,kp->kc", linear, w), w


@pytest.mark.parametrize("compiled", ROUTES)
def test_from_close_by_the_known_solution_is_found(compiled):
    Q, linear, constant, w = quadratics(40, 6, np.random.default_rng(0))
    starts = w[:, None] + 1e-4
    done = solve_quadratics(Q, linear, constant, starts, compiled=compiled)
    assert done.matched.all()
    np.testing.assert_allclose(done.w[:, 0], w, atol=1e-5)


@pytest.mark.parametrize("compiled", ROUTES)
def test_what_is_called_a_match_is_one(compiled):
    """The residual is recomputed from the weights that were returned."""
    Q, linear, constant, _ = quadratics(60, 8, np.random.default_rng(1))
    starts = draw_starts(60, 3, 8, 2)
    done = solve_quadratics(Q, linear, constant, starts, compiled=compiled)
    r = np.einsum("kcpq,ksp,ksq->ksc", Q, done.w, done.w)
    r = r + np.einsum("kcp,ksp->ksc", linear, done.w) + constant[:, None]
    size = np.linalg.norm(constant, axis=1)[:, None]
    again = np.linalg.norm(r, axis=2) / size
    np.testing.assert_allclose(done.residual, again, atol=1e-12)
    share = done.matched.mean()
    assert 0.3 < share < 1
    stuck = done.residual[done.residual > 1e-8]
    assert stuck.min() > 1e-4  # failures are far from matches


@pytest.mark.parametrize("compiled", ROUTES)
def test_no_match_where_none_exists(compiled):
    """w^2 + 1 = 0 and an inconsistent pair of lines."""
    Q = np.array([[np.eye(1)]])
    none = solve_quadratics(
        Q, np.zeros((1, 1, 1)), [[1.0]], draw_starts(1, 6, 1, 0),
        compiled=compiled,
    )  # fmt: skip
    assert not none.matched.any()
    np.testing.assert_allclose(none.residual, 1, atol=1e-6)
    lines = solve_quadratics(
        np.zeros((1, 2, 1, 1)), [[[1.0], [1.0]]], [[0.0, -1.0]],
        draw_starts(1, 4, 1, 0), compiled=compiled,
    )  # fmt: skip
    np.testing.assert_allclose(lines.residual, 0.5**0.5, rtol=1e-6)


@pytest.mark.skipif(not levenberg_compiled.AVAILABLE, reason="needs numba")
def test_both_routes_agree():
    """Same rules, so nearly all starts end in the same place; chaos in
    rounding may separate a few long runs."""
    rng = np.random.default_rng(3)
    Q, linear, constant, _ = quadratics(80, 5, rng)
    starts = draw_starts(80, 2, 5, 4, scales=(1.0,))
    one, two = (
        solve_quadratics(Q, linear, constant, starts, compiled=c)
        for c in (True, False)
    )
    same = np.abs(one.w - two.w).max(axis=2) < 1e-5
    assert same.mean() > 0.95
    assert abs(one.matched.mean() - two.matched.mean()) < 0.05


@pytest.mark.parametrize("compiled", ROUTES)
def test_recurrent_matches_reproduce_the_labels(compiled):
    K, n, b, d, T, m = 12, 6, 2, 2, 3, 2
    rng = np.random.default_rng(5)
    teacher, student = (
        sample_lrnn(K, n, b, d, rng),
        sample_lrnn(K, n, b, d, rng),
    )
    X = rng.normal(size=(K, T, b, m))
    Y = lrnn_forward(teacher, X)
    a = stack_allocations(
        [row_allocation((n, n), 2, 6, r) for r in rng.spawn(K)]
    )
    done = solve_recurrent(
        student, X, Y, a, draw_starts(K, 6, 6, 6), compiled=compiled
    )
    assert done.matched.mean() > 0.8  # two weights to spare
    for k in np.flatnonzero(done.matched):
        s = done.residual[k].argmin()
        mine = Allocation(a.rows[k], a.cols[k])
        W = with_entries(student.W[k], mine, done.w[k, s])
        now = LinearRNN(student.B[k], W, student.D[k])
        np.testing.assert_allclose(lrnn_forward(now, X[k]), Y[k], atol=1e-6)


@pytest.mark.parametrize("compiled", ROUTES)
@pytest.mark.parametrize("activation", ACTIVATIONS)
def test_shallow_from_the_answer_and_from_next_to_it(activation, compiled):
    K, n, b, d, m = 5, 6, 5, 2, 3
    rng = np.random.default_rng(7)
    net = sample_relu(K, n, b, d, rng)
    X = rng.normal(size=(K, b, m))
    functions = {
        "relu": None,
        "leaky": lambda z: np.where(z > 0, z, 0.1 * z),
        "tanh": np.tanh,
        "linear": lambda z: z,
    }
    Y = relu_forward(net, X, functions[activation])
    a = row_allocation((n, b), 3, 6, 8)
    truth = entries(net.B, a)[:, None]
    moved = ShallowReLU(with_entries(net.B, a, 0.0), net.D)
    done = solve_shallow(
        moved, X, Y, a, truth + 1e-3, activation, compiled=compiled
    )
    assert done.matched.all()
    exact = solve_shallow(moved, X, Y, a, truth, activation, compiled=compiled)
    assert (exact.residual < 1e-14).all() and not exact.steps.any()


@pytest.mark.parametrize("compiled", ROUTES)
def test_silent_neurons_do_not_stop_the_solver(compiled):
    """All learned neurons off: the Jacobian is zero, the answer is no."""
    net = ShallowReLU(-np.ones((1, 2, 1)), np.ones((1, 1, 2)))
    done = solve_shallow(
        net, [[[1.0]]], [[[1.0]]], Allocation([0], [0]), [[[-3.0]]],
        compiled=compiled,
    )  # fmt: skip
    assert not done.matched.any() and np.isfinite(done.w).all()


def test_the_loop_by_hand():
    """One step from w = 1 for w^2 = 4: J = 2, r = -3, damping 0.01."""

    def square(w, which):
        return w**2 - 4, 2 * w[:, :, None]

    done = levenberg_marquardt(square, [[1.0]], [4.0], most=1)
    step = 6 / (4 + 0.01 * 4 + 1e-12)
    np.testing.assert_allclose(done.w[0, 0], 1 + step)
    assert done.steps[0, 0] == 1


def test_starts_cycle_their_scales():
    starts = draw_starts(4000, 4, 1, 0, scales=(0.1, 10.0))
    deviation = starts.std(axis=(0, 2))
    np.testing.assert_allclose(deviation, [0.1, 10, 0.1, 10], rtol=0.05)


GOOD = np.eye(2)[None, None], np.zeros((1, 1, 2)), [[-1.0]], np.ones((1, 1, 2))


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({0: np.array([[[[0.0, 1], [0, 0]]]])}, "Q must be symmetric"),
        ({1: np.zeros((1, 2, 2))}, "Q must be"),
        ({2: [[0.0]]}, "constant must not be zero"),
        ({2: [[np.nan]]}, "constant must be finite"),
        ({3: np.ones((1, 2))}, "starts must have shape"),
        ({3: np.full((1, 1, 2), np.inf)}, "starts must be finite"),
    ],
)
def test_bad_systems(change, words):
    arguments = [change.get(i, a) for i, a in enumerate(GOOD)]
    with pytest.raises(ValueError, match=words):
        solve_quadratics(*arguments)


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: solve_quadratics(*GOOD, most=0), "most must be"),
        (lambda: solve_quadratics(*GOOD, tol=1.0), "tol must lie"),
        (lambda: draw_starts(0, 1, 1, 0), "must be positive"),
        (lambda: draw_starts(1, 1, 1, 0, (0.0,)), "must be positive"),
        (
            lambda: levenberg_marquardt(None, [[1.0]], [0.0]),
            "size .K,. with positive",
        ),
        (
            lambda: solve_shallow(
                sample_relu(1, 2, 2, 1, 0), np.ones((1, 2, 1)),
                np.ones((1, 1, 1)), Allocation([0], [0]), np.ones((1, 1, 1)),
                activation="gelu",
            ),
            "activation must be one of",
        ),
        (
            lambda: solve_recurrent(
                sample_lrnn(1, 2, 1, 1, 0), np.ones((1, 2, 1, 1)),
                np.zeros((1, 1, 1)), Allocation([0], [0]), np.ones((1, 1, 1)),
            ),
            "Y must not be zero",
        ),
        (
            lambda: solve_recurrent(
                sample_lrnn(1, 2, 1, 1, 0), np.ones((1, 2, 1, 1)),
                np.ones((1, 1, 1)), Allocation([5], [0]), np.ones((1, 1, 1)),
            ),
            r"rows must lie in \[0, 2\)",
        ),
    ],
)  # fmt: skip
def test_bad_input(call, words):
    with pytest.raises(ValueError, match=words):
        call()


def test_a_singular_system_is_a_refused_step():
    """(u + v)^3: steps are accepted until nothing is left of the damping."""

    def residual_jac(w, which):
        s = w.sum(axis=1, keepdims=True)
        return s**3, np.repeat(3 * s**2, 2, axis=1)[:, None]

    done = levenberg_marquardt(residual_jac, [[1e6, 5e5]], [1.0], tol=1e-15)
    assert np.isfinite(done.w).all()
    assert done.residual.max() < 1e-6
