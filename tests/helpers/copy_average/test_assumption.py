"""Assumption 3.1: exact algebra for erf and ReLU, the table, refusals."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import brentq

from helpers.copy_average.assumption import (
    check_assumption,
    direction_profile,
)
from helpers.copy_average.interactions import interaction


def test_profile_by_hand():
    # erf at r = R = 1: (2 / pi) / (u sqrt(4 - u^2))
    u = np.array([0.2, 0.6, 1.0])
    np.testing.assert_allclose(
        direction_profile(1.0, u), 2 / math.pi / (u * np.sqrt(4 - u**2))
    )
    # ReLU at r = R = 1: (pi - arccos u) / (2 pi u)
    np.testing.assert_allclose(
        direction_profile(1.0, u, "relu"),
        (math.pi - np.arccos(u)) / (2 * math.pi * u),
    )


@pytest.mark.parametrize("name", ["erf", "tanh", "gelu", "silu"])
def test_profile_against_differences(name):
    u, h = np.array([0.1, 0.5, 0.9]), 1e-6
    rise = interaction(1.3, 0.7, u + h, name)
    rise = (rise - interaction(1.3, 0.7, u - h, name)) / (2 * h)
    np.testing.assert_allclose(
        direction_profile(1.3, u, name, 0.7), rise / u, rtol=1e-7
    )


def test_linear_activation_has_elasticity_one():
    report = check_assumption("identity")
    np.testing.assert_allclose(report.pointwise_margin, 1)
    np.testing.assert_allclose(report.chord_margin, 1)
    np.testing.assert_allclose(report.slope_margin, 1)


@settings(max_examples=30, deadline=None)
@given(r=st.floats(0.05, 50), R=st.floats(0.1, 20))
def test_erf_chords_hold_for_every_norm(r, R):
    # phi(u1) = phi(u2) needs u1^2 + u2^2 = 1 / s^2 > 1
    report = check_assumption("erf", [r], teacher_norm=R)
    assert report.chord_holds and report.slope_holds


@settings(max_examples=30, deadline=None)
@given(r=st.floats(0.05, 50))
def test_erf_pointwise_holds_at_unit_norm(r):
    assert check_assumption("erf", [r]).pointwise_holds


def test_erf_pointwise_fails_for_long_teachers():
    # s^2 u^2 < 1/2 fails near u = 1 when s^2 > 1/2; s^2 = 0.9 * 0.8 here
    report = check_assumption(
        "erf", [3.0], np.linspace(0.5, 0.999, 2000), teacher_norm=2.0
    )
    assert not report.pointwise_holds and report.chord_holds
    assert report.first_failure[0] == pytest.approx(
        math.sqrt(0.5 / 0.72), abs=1e-3
    )


def test_relu_fails_where_algebra_says():
    # h' = u h'': (pi - arccos u) sqrt(1 - u^2) = u
    edge = brentq(
        lambda u: (math.pi - math.acos(u)) * math.sqrt(1 - u**2) - u, 0.5, 0.99
    )
    assert edge == pytest.approx(0.9417, abs=1e-4)
    report = check_assumption("relu", [1.0], np.linspace(0.5, 0.999, 4000))
    assert report.first_failure[0] == pytest.approx(edge, abs=2e-4)
    assert report.pointwise_margin[0] < 0


@pytest.mark.parametrize("r, edge", [(2.0, 0.9595), (3.0, 0.9221)])
def test_tanh_fails_at_large_norm_near_one(r, edge):
    report = check_assumption("tanh", [r], edge + np.array([-2, 2]) * 1e-4)
    assert report.first_failure[0] == edge + 2e-4


TABLE = {
    "erf": True,
    "sigmoid": True,
    "softplus": True,
    "gelu": True,
    "silu": True,
    "tanh": False,
    "relu": False,
}


@pytest.mark.parametrize("name, pointwise", TABLE.items())
def test_table(name, pointwise):
    report = check_assumption(name, [0.5, 2.0], np.arange(1, 50) / 50)
    assert report.slope_holds and report.chord_holds
    assert report.pointwise_holds == pointwise
    assert np.isnan(report.first_failure).all() == pointwise


def test_control_the_square_violates_the_first_condition():
    report = check_assumption("square", [1.0])
    assert not report.slope_holds


def test_grid_without_admissible_pair_is_empty_not_wrong():
    report = check_assumption("erf", [1.0], [0.8, 0.9])
    assert np.isinf(report.chord_margin[0])


@pytest.mark.parametrize(
    "kwargs, match",
    [
        ({"r_grid": []}, "r_grid"),
        ({"r_grid": [0.0]}, "r_grid"),
        ({"r_grid": [math.nan]}, "r_grid"),
        ({"u_grid": [1.0]}, "u_grid"),
        ({"u_grid": [-0.5]}, "u_grid"),
        ({"u_grid": [[0.5]]}, "u_grid"),
        ({"teacher_norm": -1.0}, "r2"),
    ],
)
def test_bad_grids(kwargs, match):
    with pytest.raises(ValueError, match=match):
        check_assumption("erf", **kwargs)


def test_profile_refuses_its_pole():
    with pytest.raises(ValueError, match="pole"):
        direction_profile(1.0, [0.0, 0.5])
