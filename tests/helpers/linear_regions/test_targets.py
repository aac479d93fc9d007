"""Targets: derivatives against differences, shapes, ends."""

import numpy as np
import pytest

from helpers.linear_regions.targets import TARGETS, target

X = np.linspace(0.01, 0.99, 41)


@pytest.mark.parametrize("name", TARGETS)
def test_derivatives_against_differences(name):
    one = target(name)
    step = 1e-5
    first = (one(X + step) - one(X - step)) / (2 * step)
    second = (one.first(X + step) - one.first(X - step)) / (2 * step)
    # truncation and rounding of a central difference are near 1e-10 here;
    # the third derivatives of x^11 reach 990
    np.testing.assert_allclose(one.first(X), first, atol=1e-6)
    np.testing.assert_allclose(one.second(X), second, atol=1e-6)


@pytest.mark.parametrize("name", TARGETS)
def test_mode_is_the_sign_of_the_curvature(name):
    one = target(name)
    sign = 1 if one.mode == "convex" else -1
    assert np.all(sign * one.second(X) > 0)
    assert np.all(sign * (one(X) - X) < 0.004)  # tanh 3x ends below 1


@pytest.mark.parametrize("name", TARGETS)
def test_ends(name):
    end = np.tanh(3) if name == "tanh" else 1.0
    np.testing.assert_allclose(target(name)([0.0, 1.0]), [0, end], atol=1e-15)


def test_values_by_hand():
    np.testing.assert_allclose(target("sin")(1 / 3), 0.5)
    np.testing.assert_allclose(target("x^11")(0.5), 1 / 2048)
    np.testing.assert_allclose(
        target("tanh")(0.5), (np.e**3 - 1) / (np.e**3 + 1)
    )
    np.testing.assert_allclose(
        target("exp")(0.5), (np.sqrt(np.e) - 1.5) / (np.e - 2)
    )


def test_unknown_name():
    with pytest.raises(ValueError, match="name must be one of"):
        target("x^4")
