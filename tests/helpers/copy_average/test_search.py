"""Searches: known optima, a certificate each, controls that must fail."""

import math

import numpy as np
import pytest

from helpers.copy_average.networks import Teacher, outside_fraction, pack
from helpers.copy_average.one_neuron import (
    one_neuron_optimum,
    relu_second_critical_point,
)
from helpers.copy_average.population import population_loss_grad
from helpers.copy_average.search import find_critical_points, newton_polish


@pytest.mark.parametrize("k", [1, 2, 5, 20])
def test_descent_finds_the_closed_form(k):
    found = find_critical_points(Teacher.orthonormal(k), rng=k, starts=12)
    best = one_neuron_optimum(k)
    assert found.critical.all()
    np.testing.assert_allclose(found.student.norms, best.r, atol=1e-7)
    np.testing.assert_allclose(np.abs(found.student.a), k, atol=2e-7)
    np.testing.assert_allclose(found.loss, best.loss, atol=1e-12)
    assert np.all(found.smallest_eigenvalue > 0)


@pytest.mark.parametrize("name", ["tanh", "sigmoid", "softplus"])
def test_descent_finds_the_scan(name):
    found = find_critical_points(Teacher.orthonormal(2), name, rng=0, starts=3)
    best = one_neuron_optimum(2, name)
    np.testing.assert_allclose(found.student.norms, best.r, atol=1e-6)
    np.testing.assert_allclose(found.loss, best.loss, atol=1e-10)


def orthogonal_teacher(seed, k, d):
    rng = np.random.default_rng(seed)
    basis = np.linalg.qr(rng.standard_normal((d, k)))[0].T
    norms = rng.uniform(0.5, 2, k)
    signs = rng.choice([-1, 1], k) * rng.uniform(0.5, 2, k)
    return Teacher(norms[:, None] * basis, signs)


@pytest.mark.parametrize(
    "name, method, k, d",
    [
        ("erf", "descent", 3, 8),
        ("relu", "descent", 3, 8),
        ("erf", "root", 2, 4),
        ("relu", "root", 3, 8),
    ],
)
def test_critical_neurons_lie_in_the_span(name, method, k, d):
    teacher = orthogonal_teacher(1, k, d)
    found = find_critical_points(
        teacher, name, rng=2, starts=24, method=method
    )
    real = (np.abs(found.student.a[:, 0]) > 1e-3) & found.critical
    real &= (found.student.norms[:, 0] > 1e-3) & (
        found.student.norms[:, 0] < 50
    )
    assert real.any()
    outside = outside_fraction(found.student.W, teacher.V)[real]
    assert np.all(outside < 1e-8)


def test_critical_neurons_lie_in_the_span_of_oblique_teachers():
    rng = np.random.default_rng(4)
    teacher = Teacher(rng.standard_normal((3, 7)), rng.standard_normal(3))
    found = find_critical_points(teacher, rng=5, starts=8)
    assert found.critical.sum() >= 4
    outside = outside_fraction(found.student.W, teacher.V)[found.critical]
    assert np.all(outside < 1e-8)


def test_control_the_square_leaves_the_span():
    # a r^2 = sum(b |v|^2) / 3 on any direction outside is critical
    teacher = orthogonal_teacher(1, 3, 8)
    total = teacher.b @ (teacher.V**2).sum(axis=1)
    direction = np.linalg.svd(teacher.V)[2][-1]
    W, a = 1.3 * direction[None, :], [total / 3 / 1.3**2]
    _, *grads = population_loss_grad(W, a, teacher, "square")
    assert np.abs(pack(*grads)).max() < 1e-13
    assert outside_fraction(W, teacher.V)[0] == pytest.approx(1)
    _, *grads = population_loss_grad(W, a, teacher, "erf")
    assert np.abs(pack(*grads)).max() > 0.1


def test_root_search_finds_the_saddle_that_descent_misses():
    teacher = Teacher.orthonormal(2)
    saddle = relu_second_critical_point(2).loss
    best = one_neuron_optimum(2, "relu").loss
    root = find_critical_points(
        teacher, "relu", rng=1, starts=24, method="root"
    )
    descent = find_critical_points(teacher, "relu", rng=1, starts=24)
    at = np.abs(root.loss - saddle) < 1e-9
    assert at[root.critical].any()
    assert np.all(root.smallest_eigenvalue[at & root.critical] < 0)
    assert np.all(np.abs(descent.loss - saddle)[descent.critical] > 1e-3)
    np.testing.assert_allclose(descent.loss[descent.critical], best, atol=1e-9)


def test_polish_keeps_a_saddle():
    teacher, point = Teacher.orthonormal(3), relu_second_critical_point(3)
    student = point.student(teacher)
    W, a, slope = newton_polish(student.W + 1e-3, student.a, teacher, "relu")
    assert slope < 1e-10
    assert float(a[0] * np.linalg.norm(W)) == pytest.approx(point.a)


def test_polish_reports_a_stall_honestly():
    # far away the gradient of a saturated neuron has no zero to reach
    W, a, slope = newton_polish(
        [[1.0, 1.0, 0.5]], [2.0], Teacher.orthonormal(2), "gelu"
    )
    _, *grads = population_loss_grad(W, a, Teacher.orthonormal(2), "gelu")
    assert slope == pytest.approx(np.abs(pack(*grads)).max())


@pytest.mark.parametrize(
    "W, a, word",
    [
        ([[math.nan, 0.0, 0.0]], [1.0], "W must be finite"),
        ([[1.0, 0.0, 0.0]], [math.inf], "a must be finite"),
        ([[1.0, 0.0]], [1.0], "W must have shape"),
        ([[[1.0, 0.0, 0.0]]], [[1.0]], "W must have shape"),
    ],
)
def test_polish_refuses(W, a, word):
    with pytest.raises(ValueError, match=word):
        newton_polish(W, a, Teacher.orthonormal(2))


def test_a_start_that_leaves_the_reach_of_quadrature_is_reported():
    found = find_critical_points(
        Teacher.orthonormal(2), "tanh", rng=0, starts=2, scale=500.0
    )
    assert not found.critical.any()
    assert np.isinf(found.gradient).all() and np.isnan(found.loss).all()
    assert np.all(np.isfinite(found.student.W))


def test_same_seed_same_answer():
    teacher = Teacher.orthonormal(2)
    one, two = (
        find_critical_points(teacher, rng=seed, starts=2)
        for seed in (3, np.random.default_rng(3))
    )
    np.testing.assert_array_equal(one.student.W, two.student.W)
    assert math.isclose(one.loss[0], two.loss[0])


@pytest.mark.parametrize(
    "kwargs, match",
    [
        ({"starts": 0}, "starts"),
        ({"n": 0}, "starts"),
        ({"scale": -1.0}, "scale"),
        ({"method": "flow"}, "method"),
        ({"rng": None}, "rng"),
    ],
)
def test_refusals(kwargs, match):
    kwargs = {"rng": 0} | kwargs
    with pytest.raises(ValueError, match=match):
        find_critical_points(Teacher.orthonormal(2), **kwargs)
