"""One neuron: closed forms, full gradients, the table, the exceptions."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import minimize

from helpers.copy_average.aligned import (
    aligned_loss,
    rectifier_limit,
    stationary_radii,
)
from helpers.copy_average.networks import Teacher, pack
from helpers.copy_average.one_neuron import (
    NoMinimiserError,
    one_neuron_optimum,
    optimal_loss_erf,
    optimal_loss_relu,
    relu_second_critical_point,
)
from helpers.copy_average.population import (
    population_hessian,
    population_loss_grad,
)
from helpers.core.activations import Activation


def gradient(point, teacher):
    student = point.student(teacher)
    loss, *grads = population_loss_grad(
        student.W, student.a, teacher, point.activation
    )
    return float(loss), float(np.abs(pack(*grads)).max())


# --- closed forms --------------------------------------------------------------

ERF = {
    1: 0,
    2: 0.0232217,
    3: 0.0405932,
    4: 0.0567545,
    5: 0.0724526,
    8: 0.1185268,
    10: 0.1489067,
    20: 0.2998056,
    50: 0.7509071,
}
RELU = {1: 0, 2: 0.177024, 3: 0.484710, 4: 0.942833, 5: 1.560153, 10: 7.197311}


def test_published_losses():
    np.testing.assert_allclose(
        optimal_loss_erf(list(ERF)), list(ERF.values()), atol=1e-7
    )
    np.testing.assert_allclose(
        optimal_loss_relu(list(RELU)), list(RELU.values()), atol=1e-6
    )


def test_two_erf_neurons_by_hand():
    best = one_neuron_optimum(2)
    assert best.r == pytest.approx(1 / math.sqrt(3)) and best.a == 2
    assert best.w_coefficient == pytest.approx(1 / math.sqrt(6))
    exact = 2 / math.pi * (2 * math.pi / 6 - 4 * math.asin(1 / 4))
    assert best.loss == pytest.approx(exact, abs=1e-15)


def test_large_k_expansion():
    k = np.array([50.0, 100.0, 400.0])
    line = k * (1 / 3 - 1 / math.pi) - 1 / (24 * math.pi * k)
    # the next term is of order k^-3
    np.testing.assert_array_less(
        np.abs(optimal_loss_erf(k) - line), 0.01 / k**3 + 1e-13 * k
    )


# --- the gradient of the whole loss vanishes ------------------------------------


@settings(max_examples=30, deadline=None)
@given(
    k=st.integers(1, 30),
    R=st.floats(0.1, 5),
    name=st.sampled_from(["erf", "relu", "leaky_relu", "identity"]),
)
def test_closed_forms_are_critical_in_weight_space(k, R, name):
    point = one_neuron_optimum(k, name, R)
    loss, slope = gradient(point, Teacher.orthonormal(k, norm=R))
    assert slope < 1e-11 * k * k * max(1, R**2)
    assert loss == pytest.approx(point.loss, abs=1e-11 * k * k * R**2)


@pytest.mark.parametrize("name", ["tanh", "sigmoid", "softplus"])
@pytest.mark.parametrize("k, R", [(1, 1.0), (2, 1.0), (4, 0.5), (7, 2.0)])
def test_scans_are_critical_in_weight_space(name, k, R):
    point = one_neuron_optimum(k, name, R)
    loss, slope = gradient(point, Teacher.orthonormal(k, norm=R))
    assert slope < 1e-10
    assert loss == pytest.approx(point.loss, abs=1e-11)
    hessian = population_hessian(
        *(lambda s: (s.W, s.a))(point.student(Teacher.orthonormal(k, norm=R))),
        Teacher.orthonormal(k, norm=R),
        name,
    )
    assert np.linalg.eigvalsh(hessian)[0] > 0


def test_a_wrong_norm_is_noticed():
    # control: the same check fails one per cent off
    teacher = Teacher.orthonormal(5)
    student = one_neuron_optimum(5).student(teacher)
    _, *grads = population_loss_grad(1.01 * student.W, student.a, teacher)
    assert np.abs(pack(*grads)).max() > 1e-3


@pytest.mark.parametrize("name", ["erf", "relu", "tanh", "softplus"])
@pytest.mark.parametrize("R", [0.5, 1.0, 2.0])
def test_no_better_neuron_is_found(name, R):
    k = 3
    teacher, rng = Teacher.orthonormal(k, k, norm=R), np.random.default_rng(0)

    def objective(theta):
        loss, *grads = population_loss_grad(
            theta[None, :k], theta[k:], teacher, name
        )
        return float(loss), pack(*grads)

    best = min(
        minimize(objective, rng.standard_normal(k + 1), jac=True).fun
        for _ in range(4)
    )
    point = one_neuron_optimum(k, name, R)
    assert best == pytest.approx(point.loss, abs=1e-7)
    assert best > point.loss - 1e-12


TABLE = {
    ("tanh", 2): (0.49395, 2.09078, 0.0432972),
    ("tanh", 5): (0.26847, 5.38624, 0.132639),
    ("tanh", 20): (0.12530, 21.9533, 0.547204),
    ("sigmoid", 2): (0.63871, 2.00007, 0.00104581),
    ("sigmoid", 20): (0.18640, 20.0000, 0.0137043),
    ("softplus", 2): (0.65150, 2.16792, 0.0216479),
    ("softplus", 5): (0.39477, 5.65863, 0.0862386),
    ("softplus", 50): (0.12192, 57.9898, 1.054412),
}


@pytest.mark.parametrize("case, expected", TABLE.items())
def test_table_of_optima(case, expected):
    name, k = case
    point = one_neuron_optimum(k, name)
    np.testing.assert_allclose(
        (point.r, point.a, point.loss), expected, rtol=5e-5
    )


# --- the exceptions ----------------------------------------------------------------


@pytest.mark.parametrize("k, loss", [(2, 1.3136), (5, 5.4812), (10, 17.7708)])
def test_relu_has_a_second_critical_point(k, loss):
    point, teacher = relu_second_critical_point(k), Teacher.orthonormal(k)
    full, slope = gradient(point, teacher)
    assert slope < 1e-13 and point.a > 0 and point.cosine < 0
    assert full == pytest.approx(point.loss, abs=1e-12)
    assert point.loss == pytest.approx(loss, abs=1e-4)
    student = point.student(teacher)
    eigenvalues = np.linalg.eigvalsh(
        population_hessian(student.W, student.a, teacher, "relu")
    )
    # a saddle: down in the k directions across, up in the outgoing weight
    assert (eigenvalues < -1e-6).sum() == k and eigenvalues[-1] > 0.1


def test_no_second_critical_point_for_one_neuron():
    with pytest.raises(ValueError, match="k must be 2"):
        relu_second_critical_point(1)


@pytest.mark.parametrize(
    "name, k",
    [("gelu", 2), ("gelu", 3), ("gelu", 10), ("silu", 3), ("silu", 8)],
)
def test_no_minimiser(name, k):
    with pytest.raises(NoMinimiserError, match="no aligned minimiser"):
        one_neuron_optimum(k, name)
    assert stationary_radii(k, name) == []
    losses = aligned_loss(np.geomspace(0.05, 12, 25), k, name)
    assert np.all(np.diff(losses) < 0)
    assert losses[-1] > rectifier_limit(k, name)


def test_silu_with_two_neurons_keeps_its_minimiser():
    (low, kind), (high, other) = stationary_radii(2, "silu")
    assert (kind, other) == ("minimum", "maximum")
    assert (low, high) == (
        pytest.approx(1.12562, abs=1e-5),
        pytest.approx(4.90, abs=0.01),
    )
    best = one_neuron_optimum(2, "silu")
    assert best.loss == pytest.approx(0.0902635, abs=1e-7)
    assert (
        best.loss < rectifier_limit(2, "silu") < aligned_loss(high, 2, "silu")
    )


def test_the_sine_copies():
    # (i) holds and (ii') fails: the answer of Theorem 5.1 flips
    sine = Activation("sine", np.sin, np.cos, lambda x: -np.sin(x), odd=True)
    teacher = Teacher.orthonormal(2, norm=2.0)
    copy = population_loss_grad(teacher.V[:1], [1.0], teacher, sine)[0]
    average = aligned_loss(np.geomspace(0.1, 6, 40), 2, sine, 2.0).min()
    # copying leaves the other neuron: e^-4 sinh(4)
    assert copy == pytest.approx(math.exp(-4) * math.sinh(4))
    assert average > copy + 0.1
    # at norm one the average wins again
    teacher = Teacher.orthonormal(2)
    copy = population_loss_grad(teacher.V[:1], [1.0], teacher, sine)[0]
    assert aligned_loss(0.7, 2, sine) < copy - 0.1


def test_one_teacher_neuron_is_copied():
    for name in ("erf", "tanh", "sigmoid", "softplus", "gelu", "silu"):
        for R in (0.5, 1.5):
            point = one_neuron_optimum(1, name, R)
            assert point.r == pytest.approx(R, abs=1e-7)
            assert point.a == pytest.approx(1, abs=1e-6)
            assert abs(point.loss) < 1e-12


# --- refusals --------------------------------------------------------------------


@pytest.mark.parametrize("k", [0, -1, 2.5, math.nan, []])
def test_bad_counts(k):
    for function in (optimal_loss_erf, optimal_loss_relu):
        with pytest.raises(ValueError, match="k must"):
            function(k)


@pytest.mark.parametrize("norm", [0, -1.0, math.nan, math.inf])
def test_bad_teacher_norms(norm):
    for function in (
        optimal_loss_erf,
        optimal_loss_relu,
        one_neuron_optimum,
        relu_second_critical_point,
    ):
        with pytest.raises(ValueError, match="teacher_norm"):
            function(2, teacher_norm=norm)


def test_other_refusals():
    with pytest.raises(ValueError, match="violates"):
        one_neuron_optimum(2, "square")
    with pytest.raises(ValueError, match="k=2 neurons, got 3"):
        one_neuron_optimum(2).student(Teacher.orthonormal(3))
