"""The aligned loss: other weights, the one stationary norm, the limit."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.integrate import quad

from helpers.copy_average.aligned import (
    aligned_loss,
    aligned_outgoing,
    rectifier_limit,
    stationary_radii,
)
from helpers.copy_average.interactions import interaction
from helpers.copy_average.networks import Teacher
from helpers.copy_average.one_neuron import one_neuron_optimum
from helpers.copy_average.population import population_loss_grad
from helpers.core.activations import get_activation


@pytest.mark.parametrize("name", ["erf", "tanh", "sigmoid", "softplus"])
def test_one_stationary_norm(name):
    for k in (2, 20):
        [(r, kind)] = stationary_radii(k, name)
        assert kind == "minimum"
        assert r == pytest.approx(one_neuron_optimum(k, name).r, abs=1e-9)
        other = stationary_radii(k, name, sign=-1)
        if get_activation(name).odd:  # the mirror image
            assert other == [(pytest.approx(r, abs=1e-9), "minimum")]
        else:
            assert other == []


@settings(max_examples=30, deadline=None)
@given(r=st.floats(0.05, 3), k=st.integers(1, 9), a=st.floats(-3, 3))
def test_no_other_outgoing_weight_is_better(r, k, a):
    for name in ("erf", "relu", "gelu"):
        teacher = Teacher.orthonormal(k)
        W = r / math.sqrt(k) * teacher.V.sum(axis=0)[None, :]
        loss = population_loss_grad(W, [a], teacher, name)[0]
        assert loss >= aligned_loss(r, k, name) - 1e-12
        best = [float(aligned_outgoing(r, k, name))]
        assert population_loss_grad(W, best, teacher, name)[0] == (
            pytest.approx(float(aligned_loss(r, k, name)), abs=1e-10)
        )


def test_gelu_losses():
    losses = aligned_loss([0.5, 1, 2, 4, 8, 12], 2, "gelu")
    np.testing.assert_allclose(
        losses, [0.1905, 0.1487, 0.1360, 0.1279, 0.1237, 0.1226], atol=5e-5
    )
    assert rectifier_limit(2, "gelu") == pytest.approx(0.121610, abs=1e-6)
    far = aligned_loss(1e6, 2, "gelu")
    assert far == pytest.approx(rectifier_limit(2, "gelu"), abs=1e-10)


@pytest.mark.parametrize(
    "name, k", [("gelu", 1), ("gelu", 3), ("silu", 2), ("softplus", 6)]
)
def test_rectifier_limit_by_double_integral(name, k):
    act, u = get_activation(name), 1 / math.sqrt(k)

    z, omega = np.polynomial.hermite_e.hermegauss(80)
    s = math.sqrt(1 - u * u)

    def inner(x):
        mean = act(u * x + s * z) @ omega / omega.sum()
        return x * mean * math.exp(-x * x / 2) / math.sqrt(2 * math.pi)

    overlap = quad(inner, 0, 12)[0]
    total = aligned_loss(1.0, k, name) + (
        aligned_outgoing(1.0, k, name) ** 2 * float(act_norm(act))
    )
    limit = float(total) - 2 * (k * overlap) ** 2
    assert rectifier_limit(k, name) == pytest.approx(limit, abs=1e-8)


@pytest.mark.parametrize("k", [2, 5])
@pytest.mark.parametrize(
    "name, area, r",
    [
        ("gelu", -1 / 2, 500.0),
        ("silu", -(math.pi**2) / 6, 10.0),
        ("softplus", math.pi**2 / 6, 10.0),
    ],
)
def test_side_of_the_rectifier_limit(name, area, r, k):
    # L(r) = L_inf - 4 k^2 I m e / (sqrt(2 pi) r^2) + O(r^-3)
    limit = rectifier_limit(k, name)
    total = aligned_loss(1.0, k, name) + aligned_outgoing(
        1.0, k, name
    ) ** 2 * interaction(1.0, 1.0, 1.0, name)
    m = math.sqrt((total - limit) / 2) / k
    z, omega = np.polynomial.hermite_e.hermegauss(120)
    e = omega @ get_activation(name)(math.sqrt(1 - 1 / k) * z) / omega.sum()
    expected = -4 * k**2 / math.sqrt(2 * math.pi) * area * m * e
    one, two = (
        x**2 * float(aligned_loss(x, k, name) - limit) for x in (r, 2 * r)
    )
    # the next term falls like 1 / r: extrapolate it away
    assert 2 * two - one == pytest.approx(expected, rel=20 / r**2 + 1e-5)
    assert abs(one - expected) > abs(2 * two - one - expected)


def act_norm(act):
    z, omega = np.polynomial.hermite_e.hermegauss(200)
    return omega @ act(z) ** 2 / omega.sum()


def test_refusals():
    with pytest.raises(ValueError, match="r must be positive"):
        aligned_loss([0.0, 1.0], 2)
    with pytest.raises(ValueError, match="sign"):
        aligned_loss(1.0, 2, sign=0)
    with pytest.raises(ValueError, match="homogeneous"):
        stationary_radii(2, "relu")
    with pytest.raises(ValueError, match="activation must be one of"):
        rectifier_limit(2, "tanh")
