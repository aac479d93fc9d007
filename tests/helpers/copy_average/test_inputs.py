"""Input laws and their rules, and what gluing makes of them."""

import math

import numpy as np
import pytest

from helpers.copy_average.configurations import copy_average_point
from helpers.copy_average.empirical import (
    empirical_loss_grad,
    empirical_minimiser,
    network,
)
from helpers.copy_average.inputs import (
    LAWS,
    input_rule,
    product_rule,
    sample_inputs,
)
from helpers.copy_average.networks import Student, Teacher, pack
from helpers.core.activations import get_activation


@pytest.mark.parametrize("law", LAWS)
def test_rules_and_samples_have_one_law(law):
    nodes, weights = input_rule(law, 32)
    x = sample_inputs(law, 0, (200_000,))
    assert weights.sum() == pytest.approx(1)
    assert weights @ nodes == pytest.approx(0, abs=1e-12)
    assert weights @ nodes**2 == pytest.approx(1, abs=2e-5)
    # 200 000 draws: four standard errors or more in each line
    assert x.mean() == pytest.approx(0, abs=0.01)
    assert x.var() == pytest.approx(1, abs=0.02)
    erf = get_activation("erf")
    assert (erf(x) ** 2).mean() == pytest.approx(
        weights @ erf(nodes) ** 2, abs=0.004
    )


def test_rules_integrate_erf_exactly():
    erf = get_activation("erf")
    nodes, weights = input_rule("gaussian")
    assert weights @ erf(nodes) ** 2 == pytest.approx(1 / 3, abs=1e-8)
    nodes, weights = input_rule("rademacher")
    assert weights @ erf(nodes) ** 2 == pytest.approx(
        math.erf(1 / math.sqrt(2)) ** 2
    )


def test_product_rule_factorises():
    X, weights = product_rule([0.0, 1.0, 3.0], [1.0, 2.0, 1.0], 3)
    assert X.shape == (27, 3) and weights.sum() == pytest.approx(1)
    np.testing.assert_allclose(weights @ X, [5 / 4] * 3)
    assert weights @ np.prod(X, axis=1) == pytest.approx((5 / 4) ** 3)


def glued_pair(law, turn=None):
    """Copy one of three neurons, average two as this law would have it."""
    V = np.eye(3) if turn is None else turn
    X, weights = product_rule(*input_rule(law, 16), 3)
    pair, teacher = Teacher(V[1:]), Teacher(V)
    start = copy_average_point((2,), pair)
    best = empirical_minimiser(
        start, X, network(pair.V, pair.b, X), weights=weights
    ).student
    student = Student(np.vstack([V[:1], best.W]), np.append(1, best.a))
    y = network(teacher.V, teacher.b, X)
    return student, X, y, weights


@pytest.mark.parametrize("law", ["uniform", "student"])
def test_glued_points_of_product_laws(law):
    student, X, y, weights = glued_pair(law)
    _, grad_W, grad_a = empirical_loss_grad(
        student.W, student.a, X, y, weights=weights
    )
    error = network(student.W, student.a, X) - y
    erf = get_activation("erf")
    slope = weights @ erf.derivative(X[:, 0])
    predicted = np.zeros((2, 3))
    predicted[0, 1:] = 2 * slope * (weights * error) @ X[:, 1:]
    np.testing.assert_allclose(grad_W, predicted, atol=1e-10)
    np.testing.assert_allclose(grad_a, 0, atol=1e-10)
    assert np.abs(predicted).max() > 1e-6
    q, _ = np.linalg.qr(np.random.default_rng(3).normal(size=(3, 3)))
    student, X, y, weights = glued_pair(law, q.T)
    _, turned, _ = empirical_loss_grad(
        student.W, student.a, X, y, weights=weights
    )
    assert np.abs(turned).max() > 10 * np.abs(predicted).max()


def test_two_coins_are_averaged_for_nothing():
    student, X, y, weights = glued_pair("rademacher")
    loss, *grads = empirical_loss_grad(
        student.W, student.a, X, y, weights=weights
    )
    assert float(loss) < 1e-20
    assert np.abs(pack(*grads)).max() < 1e-10


@pytest.mark.parametrize(
    "call",
    [
        lambda: input_rule("cauchy"),
        lambda: sample_inputs("cauchy", 0, (2,)),
        lambda: input_rule("uniform", 1),
        lambda: product_rule([[1.0]], [1.0], 2),
        lambda: product_rule([1.0], [1.0], 0),
        lambda: product_rule([1.0, 2.0], [1.0], 2),
        lambda: product_rule([1.0, 2.0], [1.0, -1.0], 2),
    ],
)
def test_bad_inputs(call):
    with pytest.raises(ValueError, match="must"):
        call()


def price(law, size, nodes):
    """The best neuron for a group along the axes, integrated."""
    X, weights = product_rule(*input_rule(law, nodes), size)
    teacher = Teacher.orthonormal(size, size)
    y = network(teacher.V, teacher.b, X)
    start = copy_average_point((size,), teacher)
    return empirical_minimiser(start, X, y, weights=weights)


@pytest.mark.parametrize(
    "law, sign, nodes", [("uniform", -1, 12), ("student", 1, 24)]
)
def test_light_tails_favour_crowds_and_heavy_tails_do_not(law, sign, nodes):
    found = [price(law, size, nodes) for size in (2, 3)]
    steps = np.diff([0.0] + [best.loss for best in found])
    assert sign * (steps[1] - steps[0]) > 2e-3
    # enough nodes: the order is not one of the rule
    finer = price(law, 2, 2 * nodes).loss
    assert found[0].loss == pytest.approx(finer, abs=5e-6)
    # and inputs that were drawn agree
    X = sample_inputs(law, 3, (100_000, 3))
    error = network(found[1].student.W, found[1].student.a, X)
    squares = (error - network(np.eye(3), np.ones(3), X)) ** 2
    assert squares.mean() == pytest.approx(
        found[1].loss, abs=4 * squares.std() / math.sqrt(len(X))
    )
    # plans of six for three: losses of groups add
    plans = {"even": 3 * steps[0], "mixed": steps[0] + steps[:2].sum()}
    assert min(plans, key=plans.get) == ("mixed" if sign < 0 else "even")
