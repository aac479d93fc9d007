"""Multiple shooting: the same equations, their derivatives, their matches."""

import numpy as np
import pytest

from helpers.allocation.allocations import (
    Allocation,
    row_allocation,
    stack_allocations,
)
from helpers.allocation.levenberg import draw_starts
from helpers.allocation.lift import lifted_residual, linear_core_solve
from helpers.allocation.lifted import LiftedSystem, solve_lifted
from helpers.allocation.matching import recurrent_problems
from helpers.allocation.networks import LinearRNN


def drawn(K, n, b, d, T, m, k, seed):
    problems = recurrent_problems(K, n, b, d, T, m, seed)
    chosen = stack_allocations(
        [row_allocation((n, n), k, m * d, s) for s in range(K)]
    )
    return problems, chosen


SIZES = [(7, 3, 2, 5, 3, 3), (4, 1, 1, 2, 1, 1), (6, 2, 2, 3, 2, 4)]


@pytest.mark.parametrize("sizes", SIZES)
def test_residual_is_that_of_the_lift(sizes):
    problems, chosen = drawn(3, *sizes, 0)
    system = LiftedSystem(problems, chosen)
    _, _, _, T, m, k = sizes
    z = np.random.default_rng(1).normal(size=(3, system.p + (T - 1) * k * m))
    r, _ = system(z[[2, 0]], [2, 0])
    for i, one in zip((2, 0), r, strict=True):
        expected = lifted_residual(
            LinearRNN(*(M[i] for M in problems.student)),
            problems.X[i],
            problems.Y[i],
            Allocation(chosen.rows[i], chosen.cols[i]),
            z[i, : system.p],
            z[i, system.p :].reshape(T - 1, k, m),
        )
        np.testing.assert_allclose(one, expected, atol=1e-12)


@pytest.mark.parametrize("sizes", SIZES)
def test_jacobian_against_differences(sizes):
    problems, chosen = drawn(2, *sizes, 2)
    system = LiftedSystem(problems, chosen)
    z = system.start(np.random.default_rng(3).normal(size=(2, system.p)))
    z += 0.3  # off the dynamics
    _, J = system(z, [0, 1])
    for j in range(z.shape[1]):
        e = 1e-5 * np.eye(z.shape[1])[j]
        up, down = (system(z + s * e, [0, 1])[0] for s in (1, -1))
        # quadratic, so the central difference is exact up to rounding
        np.testing.assert_allclose(J[:, :, j], (up - down) / 2e-5, atol=1e-8)


def test_a_start_follows_the_dynamics():
    problems, chosen = drawn(4, *SIZES[0], 4)
    system = LiftedSystem(problems, chosen)
    z = system.start(np.random.default_rng(5).normal(size=(4, system.p)))
    r, _ = system(z, np.arange(4))
    outputs = problems.Y[0].size
    assert np.abs(r[:, :-outputs]).max() < 1e-10
    relative = np.linalg.norm(r[:, -outputs:], axis=1) / system.size
    np.testing.assert_allclose(relative, system.forward_residual(z))


def test_the_linear_core_is_found_as_by_linear_algebra():
    problems, chosen = drawn(20, 8, 2, 2, 3, 2, 1, 6)
    done = solve_lifted(problems, chosen, draw_starts(20, 12, 4, 7))
    assert done.matched.sum() >= 17
    for i in np.flatnonzero(done.matched):
        direct = linear_core_solve(
            LinearRNN(*(M[i] for M in problems.student)),
            problems.X[i],
            problems.Y[i],
            Allocation(chosen.rows[i], chosen.cols[i]),
        )
        best = done.w[i, done.residual[i].argmin()]
        np.testing.assert_allclose(best, direct.w, rtol=1e-4)


def test_bad_input_is_named():
    problems, chosen = drawn(2, *SIZES[2], 8)
    with pytest.raises(ValueError, match="same number of rows"):
        LiftedSystem(problems, Allocation([[0, 1], [2, 2]], [[0, 0], [0, 1]]))
    with pytest.raises(ValueError, match="at least two steps"):
        LiftedSystem(problems._replace(X=problems.X[:, :1]), chosen)
    with pytest.raises(ValueError, match="starts must have"):
        solve_lifted(problems, chosen, np.ones((2, 3, 5)))
    with pytest.raises(ValueError, match="w must have"):
        LiftedSystem(problems, chosen).start(np.ones((2, 3)))
    with pytest.raises(ValueError, match="finite"):
        solve_lifted(problems, chosen, np.full((2, 1, 4), np.nan))
