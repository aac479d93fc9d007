"""Degrees: coefficients, the loss in each of them, the floor for students."""

import math
from functools import reduce

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.integrate import quad
from scipy.optimize import approx_fprime, minimize
from scipy.special import erf, eval_hermitenorm

from helpers.copy_average import degrees
from helpers.copy_average.configurations import copy_average_point
from helpers.copy_average.interactions import interaction
from helpers.copy_average.networks import Teacher, unpack
from helpers.copy_average.objective import Objective
from helpers.copy_average.population import population_loss
from helpers.core.activations import ACTIVATIONS, get_activation
from helpers.core.tolerances import FINITE_DIFFERENCE, ROUNDING

SEEDS = st.integers(0, 2**32 - 1)
ETA = 1 / 3 - 1 / np.pi


def by_integration(sigma, r, m):
    """One coefficient from its definition, each side of the kink apart."""

    def integrand(x):
        weight = math.exp(-x * x / 2) / math.sqrt(2 * math.pi)
        return sigma(r * x) * eval_hermitenorm(m, x) * weight

    halves = [quad(integrand, *ends)[0] for ends in ((-20, 0), (0, 20))]
    return sum(halves) / math.sqrt(math.factorial(m))


def random_student(rng, n, d):
    W = rng.normal(size=(n, d)) * rng.uniform(0.1, 3.0, (n, 1))
    return W, rng.normal(size=n)


@pytest.mark.parametrize("name", ["erf", "relu", "tanh", "softplus", "gelu"])
@pytest.mark.parametrize("r", [0.3, 1.0, 2.5])
def test_coefficients_are_their_integrals(name, r):
    sigma = get_activation(name)
    ours = degrees.degree_coefficients(r, name, 7)
    direct = [by_integration(sigma, r, m) for m in range(8)]
    np.testing.assert_allclose(ours, direct, atol=1e-8)  # accuracy of quad


def test_leaky_relu_is_a_ramp_and_a_line():
    leaky = get_activation("leaky_relu")
    direct = [by_integration(leaky, 1.0, m) for m in range(6)]
    ours = degrees.degree_coefficients(1.0, leaky, 5)
    np.testing.assert_allclose(ours, direct, atol=1e-8)


def test_erf_by_hand():
    """c_1 = 2 pdf(0) s and c_3 = -c_1 s^2 / sqrt(6)."""
    c = degrees.degree_coefficients([1.0, 0.0], "erf", 3)
    first = math.sqrt(2 / math.pi) * math.sqrt(0.5)
    np.testing.assert_allclose(
        c[0], [0, first, 0, -first / 2 / math.sqrt(6)], atol=ROUNDING
    )
    assert not c[1].any()


@given(st.floats(0, 4), st.floats(0, 4), st.floats(-0.9, 0.9))
@settings(max_examples=40, deadline=None)
def test_the_series_is_the_interaction(r1, r2, u):
    a, b = degrees.degree_coefficients([r1, r2], "erf", 40)
    series = (a * b) @ u ** np.arange(41)
    assert series == pytest.approx(interaction(r1, r2, u, "erf"), abs=1e-3)
    cut = 2 * 0.9**41  # what is beyond degree 40
    assert abs(series - interaction(r1, r2, u, "erf")) <= cut


@pytest.mark.parametrize("name", sorted(set(ACTIVATIONS) - {"identity"}))
def test_parseval_from_below(name):
    """Squares of coefficients add up to no more than the mean square."""
    c = degrees.degree_coefficients(1.0, name, 20)
    whole = float(interaction(1.0, 1.0, 1.0, name))
    assert (c**2).sum() <= whole * (1 + 1e-9)
    assert (c**2).sum() > 0.99 * whole
    eta = degrees.nonlinear_energy(name)
    assert eta >= (c[2:] ** 2).sum() - ROUNDING


def test_nonlinear_energies_by_hand():
    assert degrees.nonlinear_energy() == pytest.approx(ETA, abs=ROUNDING)
    ramp = 1 / 4 - 1 / (2 * np.pi)
    assert degrees.nonlinear_energy("relu") == pytest.approx(ramp)
    assert abs(degrees.nonlinear_energy("identity")) < ROUNDING
    assert degrees.nonlinear_energy("erf", 0.0) == 0


@given(SEEDS)
@settings(max_examples=30, deadline=None)
def test_degrees_add_up_to_the_loss(seed):
    rng = np.random.default_rng(seed)
    n, k = (int(x) for x in rng.integers(1, 5, 2))
    W, a = random_student(rng, n, k + 1)
    W[0] *= rng.integers(0, 2)  # a dead neuron now and then
    teacher = Teacher(rng.normal(size=(k, k + 1)) / 2, rng.normal(size=k))
    parts = degrees.loss_by_degree(W, a, teacher, "erf", 40)
    total = population_loss(W, a, teacher)
    assert parts.min() >= -1e-10 * (a @ a + teacher.b @ teacher.b)
    sizes = np.sum(np.abs(a)) + np.sum(np.abs(teacher.b))
    largest = max((W**2).sum(1).max(), (teacher.V**2).sum(1).max())
    beyond = sizes**2 * (largest / (1 + largest)) ** 41
    assert parts.sum() <= total + 1e-9
    assert parts.sum() >= total - beyond - 1e-9


def test_degree_one_is_the_error_of_the_slope():
    """From a sample: the squared length of E[(f - f*) x]."""
    rng = np.random.default_rng(0)
    W, a = random_student(rng, 3, 4)
    teacher = Teacher.orthonormal(4, 4)
    x = rng.normal(size=(400_000, 4))
    error = erf(x @ W.T / np.sqrt(2)) @ a - erf(x / np.sqrt(2)).sum(axis=1)
    each = error[:, None] * x
    slope, spread = each.mean(0), each.std(0) / np.sqrt(len(x))
    found = degrees.loss_by_degree(W, a, teacher, "erf", 1)[1]
    width = 2 * np.abs(slope) @ spread + spread @ spread
    assert abs(found - slope @ slope) < 4 * width


def test_rotations_change_nothing():
    rng = np.random.default_rng(1)
    W, a = random_student(rng, 2, 3)
    turn = np.linalg.qr(rng.normal(size=(3, 3)))[0]
    one = degrees.loss_by_degree(W, a, Teacher(np.eye(3)), "tanh", 5)
    two = degrees.loss_by_degree(W @ turn, a, Teacher(turn), "tanh", 5)
    np.testing.assert_allclose(one, two, atol=ROUNDING)


@given(SEEDS, st.integers(1, 4), st.integers(1, 6))
@settings(max_examples=60, deadline=None)
def test_no_student_is_below_the_floor(seed, n, k):
    rng = np.random.default_rng(seed)
    V = np.eye(k) + rng.integers(0, 2) * rng.normal(size=(k, k)) / 3
    teacher = Teacher(V, rng.normal(size=k))
    floor = degrees.ridge_floor(n, teacher)
    for _ in range(5):
        W, a = random_student(rng, n, k)
        assert population_loss(W, a, teacher) >= floor - ROUNDING
    if n >= k:
        assert floor == 0


def test_the_floor_of_fewer_neurons_is_passed():
    """The control: n neurons fall below the floor for n - 1."""
    for k, n in ((4, 2), (8, 3), (12, 11)):
        teacher = Teacher.orthonormal(k, k)
        best = copy_average_point([1] * (n - 1) + [k - n + 1], teacher)
        loss = population_loss(best.W, best.a, teacher)
        assert (k - n) * ETA < loss < (k - n + 1) * ETA
        assert loss < degrees.ridge_floor(n - 1, teacher, most=39)


@pytest.mark.parametrize("size", [1, 2, 7])
def test_an_average_keeps_a_power_of_its_size(size):
    """Share l^(1 - m) of degree m; found by search, not by its formula."""
    teacher = Teacher.orthonormal(size, size)
    descend = Objective(teacher, 1).loss_and_gradient
    start = np.r_[np.full(size, 0.5 / size), 1.0]
    best = minimize(descend, start, jac=True, tol=1e-12).x
    W, a = unpack(best, 1)
    left = degrees.loss_by_degree(W, a, teacher, "erf", 9)
    whole = degrees.loss_by_degree(0 * W, a, teacher, "erf", 9)
    m = np.arange(1, 10, 2)
    np.testing.assert_allclose(
        1 - left[m] / whole[m], float(size) ** (1 - m), atol=1e-6
    )


@pytest.mark.parametrize("m", [2, 3, 4, 5])
def test_flattenings_of_explicit_tensors(m):
    rng = np.random.default_rng(m)
    V = rng.normal(size=(4, 3))
    V /= np.linalg.norm(V, axis=1)[:, None]
    c = rng.normal(size=4)
    tensor = sum(
        weight * reduce(np.multiply.outer, [v] * m)
        for weight, v in zip(c, V, strict=True)
    )
    values = np.linalg.svd(tensor.reshape(3 ** (m // 2), -1))[1] ** 2
    ours = degrees._flattened(c, V @ V.T, m)[::-1]
    np.testing.assert_allclose(ours[: values.size], values[:4], atol=ROUNDING)
    np.testing.assert_allclose(ours[values.size :], 0, atol=ROUNDING)


def test_the_weakest_neurons_are_given_up():
    """Orthonormal, unequal weights: all but the n loudest."""
    teacher = Teacher(np.eye(4), [2.0, -1.0, 0.5, 3.0])
    floor = degrees.ridge_floor(2, teacher, most=39)
    assert floor == pytest.approx((1.0 + 0.25) * ETA, rel=1e-6)


@given(SEEDS)
@settings(max_examples=20, deadline=None)
def test_a_free_line_takes_degree_one(seed):
    rng = np.random.default_rng(seed)
    W, a = random_student(rng, 3, 4)
    teacher = Teacher.orthonormal(4, 4)
    loss, grad_W, grad_a = degrees.free_line_loss_grad(W, a, teacher)
    first = degrees.loss_by_degree(W, a, teacher, "erf", 1)[1]
    whole = population_loss(W, a, teacher)
    assert loss == pytest.approx(whole - first, abs=1e-10)

    def f(theta):
        return degrees.free_line_loss_grad(
            theta[:12].reshape(3, 4), theta[12:], teacher
        )[0]

    theta = np.concatenate([W.ravel(), a])
    np.testing.assert_allclose(
        np.concatenate([grad_W.ravel(), grad_a]),
        approx_fprime(theta, f, FINITE_DIFFERENCE * 1e-2),
        atol=FINITE_DIFFERENCE,
    )


def test_with_a_line_for_free_copies_are_optimal():
    """Descents end at (k - n) eta or above, and the best are copies."""
    k, n = 5, 2
    teacher, rng = Teacher.orthonormal(k, k), np.random.default_rng(3)

    def f(theta):
        loss, gw, ga = degrees.free_line_loss_grad(
            theta[: n * k].reshape(n, k), theta[n * k :], teacher
        )
        return loss, np.concatenate([gw.ravel(), ga])

    ends = [
        minimize(f, rng.normal(size=n * (k + 1)), jac=True, tol=1e-9)
        for _ in range(20)
    ]
    best = min(ends, key=lambda end: end.fun)
    assert best.fun == pytest.approx((k - n) * ETA, abs=1e-9)
    assert min(end.fun for end in ends) >= (k - n) * ETA - ROUNDING
    W = best.x[: n * k].reshape(n, k)
    # the minimum is flat: losses to 1e-9 are weights to a thousandth
    np.testing.assert_allclose(np.abs(W).max(axis=1), 1, atol=1e-3)
    np.testing.assert_allclose(np.linalg.norm(W, axis=1), 1, atol=1e-3)
    assert np.unique(np.abs(W).argmax(axis=1)).size == n


ONE = ([[1.0, 0.0]], [1.0], Teacher(np.eye(2)))


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: degrees.degree_coefficients(-1.0, "erf", 3), "norms must"),
        (lambda: degrees.degree_coefficients(np.nan, "erf", 3), "norms must"),
        (lambda: degrees.degree_coefficients(1.0, "erf", 41), "most must"),
        (lambda: degrees.degree_coefficients(1.0, "erf", 1.5), "most must"),
        (lambda: degrees.degree_coefficients(1.0, "sine", 1), "sine"),
        (lambda: degrees.loss_by_degree([1.0], [1.0], ONE[2]), "W must"),
        (lambda: degrees.loss_by_degree([[1.0]], [1.0], ONE[2]), "W must"),
        (lambda: degrees.loss_by_degree([[1, np.inf]], [1], ONE[2]), "W"),
        (lambda: degrees.loss_by_degree(*ONE, most=-1), "most must"),
        (lambda: degrees.ridge_floor(-1, ONE[2]), "n must"),
        (lambda: degrees.ridge_floor(1, ONE[2], most=1), "most must"),
        (lambda: degrees.nonlinear_energy("erf", np.inf), "norms must"),
        (lambda: degrees.free_line_loss_grad([[1.0]], [1], ONE[2]), "W must"),
        (
            lambda: degrees.free_line_loss_grad(
                np.ones((0, 2)), np.ones(0), ONE[2]
            ),
            "n must",
        ),
    ],
)
def test_bad_input(call, message):
    with pytest.raises(ValueError, match=message):
        call()
