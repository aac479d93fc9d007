"""Loss of a sample: torch, differences, hand values, regression."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from helpers.copy_average.configurations import copy_average_point
from helpers.copy_average.empirical import (
    empirical_hessian,
    empirical_loss_grad,
    empirical_minimiser,
    gradient_covariance,
    network,
    sampling_constants,
)
from helpers.copy_average.inputs import input_rule, product_rule
from helpers.copy_average.networks import Student, Teacher, pack, unpack
from helpers.copy_average.population import (
    population_hessian,
    population_loss,
    population_loss_grad,
)


def problem(seed, n=3, d=4, N=20, batch=()):
    rng = np.random.default_rng(seed)
    W, a = rng.normal(size=(*batch, n, d)), rng.normal(size=(*batch, n))
    return W, a, rng.normal(size=(N, d)), rng.normal(size=N)


def test_loss_by_hand():
    erf_one = math.erf(1 / math.sqrt(2))
    loss, grad_W, grad_a = empirical_loss_grad(
        [[1.0, 0.0]], [2.0], [[1.0, 3.0], [0.0, 1.0]], [0.0, 1.0]
    )
    assert float(loss) == pytest.approx((4 * erf_one**2 + 1) / 2)
    slope = math.sqrt(2 / math.pi)
    tilt = 2 * erf_one * 2 * slope * math.exp(-0.5)
    np.testing.assert_allclose(grad_W, [[tilt, 3 * tilt - 2 * slope]])
    np.testing.assert_allclose(grad_a, [2 * erf_one**2])


@pytest.mark.parametrize("name", ["erf", "tanh", "softplus", "relu"])
def test_gradient_against_torch(name):
    torch = pytest.importorskip("torch", reason="torch is the witness")
    functions = {
        "erf": lambda z: torch.erf(z / math.sqrt(2)),
        "tanh": torch.tanh,
        "softplus": torch.nn.functional.softplus,
        "relu": torch.relu,
    }
    W, a, X, y = problem(0)
    loss, grad_W, grad_a = empirical_loss_grad(W, a, X, y, name)
    w, b = (torch.tensor(v, requires_grad=True) for v in (W, a))
    field = torch.tensor(X) @ w.T
    error = functions[name](field) @ b - torch.tensor(y)
    known = (error**2).mean()
    known.backward()
    assert float(loss) == pytest.approx(known.item())
    np.testing.assert_allclose(grad_W, w.grad.numpy(), atol=1e-13)
    np.testing.assert_allclose(grad_a, b.grad.numpy(), atol=1e-13)


@settings(max_examples=25, deadline=None)
@given(
    seed=st.integers(0, 999),
    n=st.integers(1, 4),
    d=st.integers(1, 4),
    N=st.integers(1, 9),
)
def test_batches_and_single_students_agree(seed, n, d, N):
    W, a, X, y = problem(seed, n, d, N, batch=(2, 3))
    all_at_once = empirical_loss_grad(W, a, X, y)
    for i in np.ndindex(2, 3):
        for many, one in zip(
            all_at_once, empirical_loss_grad(W[i], a[i], X, y), strict=True
        ):
            np.testing.assert_allclose(many[i], one, atol=1e-12)
    own = np.broadcast_to(X, (2, 3, *X.shape))
    for many, same in zip(
        all_at_once, empirical_loss_grad(W, a, own, y), strict=True
    ):
        np.testing.assert_allclose(many, same, atol=1e-12)


def test_a_large_sample_is_the_population():
    # 200 000 samples: some six standard errors of each entry
    teacher, rng = Teacher.orthonormal(3), np.random.default_rng(1)
    W, a = rng.normal(size=(2, 4)), rng.normal(size=2)
    X = rng.standard_normal((200_000, 4))
    y = network(teacher.V, teacher.b, X)
    for sampled, exact in zip(
        empirical_loss_grad(W, a, X, y),
        population_loss_grad(W, a, teacher),
        strict=True,
    ):
        np.testing.assert_allclose(sampled, exact, atol=0.03)


def test_a_quadrature_rule_is_the_population():
    teacher, rng = Teacher.orthonormal(3, 3), np.random.default_rng(2)
    W, a = rng.normal(size=(2, 3)) / 2, rng.normal(size=2)
    X, weights = product_rule(*input_rule("gaussian", 22), 3)
    y = network(teacher.V, teacher.b, X)
    found = empirical_loss_grad(W, a, X, y, weights=weights)
    for rule, exact in zip(
        found, population_loss_grad(W, a, teacher), strict=True
    ):
        np.testing.assert_allclose(rule, exact, atol=1e-4)
    np.testing.assert_allclose(
        empirical_hessian(W, a, X, y, weights=weights),
        population_hessian(W, a, teacher),
        atol=1e-4,
    )


@pytest.mark.parametrize("name", ["erf", "tanh", "gelu"])
def test_hessian_against_differences(name):
    W, a, X, y = problem(3, N=9)
    weights = np.random.default_rng(0).uniform(size=9)
    theta, h = pack(W, a), 1e-6

    def gradient(point):
        W, a = unpack(point, 3)
        return pack(*empirical_loss_grad(W, a, X, y, name, weights)[1:])

    rows = [
        (gradient(theta + h * e) - gradient(theta - h * e)) / (2 * h)
        for e in np.eye(theta.size)
    ]
    found = empirical_hessian(W, a, X, y, name, weights)
    np.testing.assert_allclose(found, rows, atol=1e-7)
    np.testing.assert_allclose(found, found.T, atol=1e-14)


def test_a_realisable_sample_is_fitted_exactly():
    teacher, rng = Teacher.orthonormal(2), np.random.default_rng(4)
    X = rng.standard_normal((60, 3))
    start = Student(teacher.V + 0.2 * rng.normal(size=(2, 3)), [0.8, 1.3])
    found = empirical_minimiser(start, X, network(teacher.V, teacher.b, X))
    assert found.loss < 1e-20 and found.gradient < 1e-9
    np.testing.assert_allclose(found.student.W, teacher.V, atol=1e-7)


def test_the_minimiser_is_a_minimum_near_the_start():
    teacher, rng = Teacher.orthonormal(4), np.random.default_rng(5)
    start = copy_average_point((1, 3), teacher)
    X = rng.standard_normal((4000, 5))
    y = network(teacher.V, teacher.b, X)
    found = empirical_minimiser(start, X, y)
    before = float(empirical_loss_grad(start.W, start.a, X, y)[0])
    assert found.gradient < 1e-9 and found.smallest_eigenvalue > 0
    assert found.loss < before
    # and worse than the start where it counts
    after = population_loss(found.student.W, found.student.a, teacher)
    assert float(after) > float(population_loss(start.W, start.a, teacher))


def test_downhill_from_a_saddle():
    """At zero weights the gradient vanishes: it stays, and says so."""
    X, y = np.ones((3, 1)), np.ones(3)
    found = empirical_minimiser(Student([[0.0]], [0.0]), X, y)
    assert found.gradient == 0 and found.smallest_eigenvalue < 0
    found = empirical_minimiser(Student([[0.1]], [0.0]), X, y)
    assert found.loss < 1e-15


def test_constants_of_linear_regression():
    """Noise of variance s^2 costs s^2 P / N, Gauss already knew."""
    H, s2 = np.diag([2.0, 4.0, 6.0]), 0.3
    found = sampling_constants(H, 2 * s2 * H)
    assert found.excess == pytest.approx(3 * s2)
    assert found.distance == pytest.approx(
        2 * s2 * np.trace(np.diag(1 / np.diag(H)))
    )


def test_constants_against_many_small_samples():
    teacher, rng = Teacher.orthonormal(2, 2), np.random.default_rng(6)
    best = copy_average_point((2,), teacher)
    X = rng.standard_normal((200_000, 2))
    y = network(teacher.V, teacher.b, X)
    H = population_hessian(best.W, best.a, teacher)
    found = sampling_constants(H, gradient_covariance(best, X, y))
    start = float(population_loss(best.W, best.a, teacher))
    excess = []
    for x, t in zip(np.split(X, 100), np.split(y, 100), strict=True):
        s = empirical_minimiser(best, x, t).student
        excess.append(float(population_loss(s.W, s.a, teacher)) - start)
    error = 2000 * np.std(excess) / 10
    assert abs(2000 * np.mean(excess) - found.excess) < 4 * error
    assert error < 0.2 * found.excess


def test_covariance_is_that_of_gradients():
    W, a, X, y = problem(7, N=30)
    each = [
        pack(*empirical_loss_grad(W, a, X[i : i + 1], y[i : i + 1])[1:])
        for i in range(30)
    ]
    np.testing.assert_allclose(
        gradient_covariance(Student(W, a), X, y), np.cov(np.array(each).T)
    )


def test_bad_samples():
    W, a, X, y = problem(11)
    for args, word in (
        ((W, a, X[:, :3], y), "shape"),
        ((W, a[:2], X, y), "shape"),
        ((W, a, X[:0], y[:0]), "shape"),
        ((W, a, X, y[:3]), "y must"),
        ((W, a, X * np.nan, y), "finite"),
    ):
        with pytest.raises(ValueError, match=word):
            empirical_loss_grad(*args)
    for weights in (np.ones(3), -np.ones(20), np.zeros(20)):
        with pytest.raises(ValueError, match="weights"):
            empirical_loss_grad(W, a, X, y, weights=weights)
    with pytest.raises(ValueError, match="kink"):
        empirical_hessian(W, a, X, y, "relu")
    with pytest.raises(ValueError, match="one student"):
        empirical_hessian(W[None], a[None], X, y)
    with pytest.raises(ValueError, match="two samples"):
        gradient_covariance(Student(W, a), X[:1], y[:1])
    with pytest.raises(ValueError, match="shape"):
        sampling_constants(np.eye(2), np.eye(3))
    with pytest.raises(ValueError, match="positive definite"):
        sampling_constants(np.diag([1.0, 0.0]), np.eye(2))
