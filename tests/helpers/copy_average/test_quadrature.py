"""Quadrature: exact moments, two rules against each other, refusals."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from helpers.copy_average.quadrature import (
    MAX_NODES,
    gauss_hermite_nodes,
    largest_radius,
    product_expectations,
    trapezoid_nodes,
)
from helpers.core.activations import get_activation

TANH = get_activation("tanh")
MOMENTS = [1, 0, 1, 0, 3, 0, 15, 0, 105]


@pytest.mark.parametrize("nodes", [5, 20, 160, 360])
def test_gauss_hermite_moments(nodes):
    z, omega = gauss_hermite_nodes(nodes)
    assert z.shape == omega.shape == (nodes,) and np.all(omega >= 0)
    moments = [omega @ z**power for power in range(9)]
    np.testing.assert_allclose(moments, MOMENTS, atol=1e-11)


def test_gauss_hermite_one_node_is_the_mean():
    z, omega = gauss_hermite_nodes(1)
    assert z.tolist() == [0.0] and omega.tolist() == [1.0]


@pytest.mark.parametrize("bad", [0, -3, 361, 2.5, True])
def test_gauss_hermite_refuses(bad):
    with pytest.raises(ValueError, match="nodes"):
        gauss_hermite_nodes(bad)


@pytest.mark.parametrize("name", ["tanh", "sigmoid", "softplus", "silu"])
@pytest.mark.parametrize("radius", [0.0, 0.3, 1.0, 7.0])
def test_trapezoid_moments(name, radius):
    z, omega = trapezoid_nodes(radius, get_activation(name))
    np.testing.assert_array_equal(z, -z[::-1])
    moments = [omega @ z**power for power in range(9)]
    np.testing.assert_allclose(moments, MOMENTS, atol=1e-11)


@pytest.mark.parametrize("name", ["tanh", "sigmoid", "softplus", "silu"])
def test_step_halved_changes_nothing(name):
    act = get_activation(name)
    for radius in (0.5, 1.0, 3.0, 9.0):
        values = []
        for reach in (radius, 2 * radius):
            z, omega = trapezoid_nodes(reach, act)
            x = radius * z
            values.append(omega @ (act.second_derivative(x) * act(x)))
        assert values[0] == pytest.approx(values[1], abs=1e-14)


def test_twice_the_step_is_noticed():
    # the rule is not wastefully fine: a step four times as long errs
    z, omega = trapezoid_nodes(3.0, TANH)
    full = omega @ np.tanh(3 * z) ** 2
    middle = z.size // 2 % 4
    coarse = 4 * omega[middle::4] @ np.tanh(3 * z[middle::4]) ** 2
    assert abs(coarse - full) > 1e-6


def test_radius_ladder():
    limit = largest_radius(TANH)
    assert trapezoid_nodes(limit, TANH)[0].size <= MAX_NODES
    with pytest.raises(ValueError, match="radius must be at most"):
        trapezoid_nodes(2 * limit, TANH)


@pytest.mark.parametrize("name", ["relu", "leaky_relu"])
def test_kinks_are_refused(name):
    with pytest.raises(ValueError, match="kink"):
        trapezoid_nodes(1.0, get_activation(name))


def test_why_kinks_are_refused():
    # Gauss-Hermite on ReLU is still wrong in the third digit at 160 nodes
    relu = get_activation("relu").value
    [value] = product_expectations(
        [(relu, relu)], 1.0, 1.0, 0.5, TANH, rule=gauss_hermite_nodes(160)
    )
    exact = (math.sqrt(0.75) + (math.pi - math.acos(0.5)) / 2) / (2 * math.pi)
    assert 1e-4 < abs(value - exact) < 1e-2


@pytest.mark.parametrize("name", ["sigmoid", "softplus", "silu", "tanh"])
def test_two_rules_agree(name):
    act = get_activation(name)
    r1, r2, u = np.array([[0.5, 1, 1], [1, 0.5, 0], [-0.9, 1, 0.3]])
    pairs = [(act.value, act.value), (act.derivative, act.derivative)]
    ours = product_expectations(pairs, r1, r2, u, act)
    theirs = product_expectations(
        pairs, r1, r2, u, act, rule=gauss_hermite_nodes(200)
    )
    np.testing.assert_allclose(ours, theirs, atol=1e-12)


def test_trapezoid_wins_at_equal_cost():
    # tanh at r = 3: equal nodes, errors nine digits apart
    pairs, args = [(np.tanh, np.tanh)], (3.0, 1.0, 0.9, TANH)
    rule = trapezoid_nodes(3.0, TANH)
    [exact] = product_expectations(
        pairs, *args, rule=trapezoid_nodes(8.0, TANH)
    )
    [ours] = product_expectations(pairs, *args, rule=rule)
    [theirs] = product_expectations(
        pairs, *args, rule=gauss_hermite_nodes(rule[0].size)
    )
    assert abs(ours - exact) < 1e-14 < 1e-8 < abs(theirs - exact)


@settings(max_examples=25, deadline=None)
@given(
    r=st.lists(st.floats(0, 3), min_size=1, max_size=5),
    u=st.floats(-1, 1),
)
def test_a_pair_does_not_depend_on_its_batch(r, u):
    pairs = [(np.tanh, np.tanh)]
    together = product_expectations(pairs, r, 1.0, u, TANH)[0]
    alone = [float(product_expectations(pairs, x, 1.0, u, TANH)[0]) for x in r]
    np.testing.assert_allclose(together, alone, rtol=1e-13, atol=1e-15)


def test_chunks_and_shapes():
    r = np.full((30, 20), 3.0)  # more than one chunk
    [values] = product_expectations([(np.tanh, np.tanh)], r, 1.0, 0.5, TANH)
    assert values.shape == (30, 20) and np.ptp(values) < 1e-15
    [empty] = product_expectations(
        [(np.tanh, np.tanh)], np.ones(0), 1.0, 0.5, TANH
    )
    assert empty.shape == (0,)
