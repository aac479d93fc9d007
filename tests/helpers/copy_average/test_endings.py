"""Split copies: critical, flat to second order, and saddles at third."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from helpers.copy_average.endings import (
    split_copy,
    split_cubic_coefficient,
    split_direction,
)
from helpers.copy_average.networks import Student, pack
from helpers.copy_average.objective import Objective
from helpers.copy_average.one_neuron import optimal_loss_erf


@pytest.mark.parametrize("k, n, d", [(12, 9, 12), (12, 9, 13), (6, 3, 7)])
@pytest.mark.parametrize("ratio", [0.3, 0.5, 0.9])
def test_critical_with_flat_directions_only(k, n, d, ratio):
    student, teacher = split_copy(k, n, ratio, d)
    objective, theta = Objective(teacher, n), pack(student.W, student.a)
    loss, gradient = objective.loss_and_gradient(theta)
    assert loss == pytest.approx(float(optimal_loss_erf(k - n + 2)), abs=1e-13)
    assert np.abs(gradient).max() < 1e-14
    values = np.linalg.eigvalsh(objective.hessian(theta))
    assert np.abs(values[: d + 1]).max() < 1e-12
    assert values[d + 1] > 1e-5


def cubic(k, n, ratio, x, size=2e-3):
    """Odd part of the loss along the split, over the cube of the step."""
    student, teacher = split_copy(k, n, ratio)
    full = np.zeros(teacher.d)
    full[n - 2 : k] = x
    step = pack(*split_direction(full, ratio, n, teacher.d))
    theta = pack(student.W, student.a)
    losses = Objective(teacher, n).loss_and_gradient(
        theta + size * np.array([[1.0], [-1.0], [2.0], [-2.0]]) * step
    )[0]
    once = (losses[0] - losses[1]) / (2 * size**3)
    twice = (losses[2] - losses[3]) / (16 * size**3)
    # the next odd order is the fifth: extrapolate
    return (4 * once - twice) / 3


@pytest.mark.parametrize("k, n", [(7, 7), (12, 12), (20, 20)])
def test_cut_keeps_the_negative_eigenvalues(k, n):
    # one average of two and so many copies that the point is a saddle
    halves, teacher = split_copy(k, n, 0.4)
    whole = Student(halves.W[1:], np.append(1.0, halves.a[2:]))
    negative, zero = [], []
    for student in (whole, halves):
        objective = Objective(teacher, student.a.size)
        values = np.linalg.eigvalsh(
            objective.hessian(pack(student.W, student.a))
        )
        negative.append(int((values < -1e-9).sum()))
        zero.append(int((np.abs(values) < 1e-9).sum()))
    assert negative == [1, 1]
    assert zero == [0, teacher.d + 1]


@pytest.mark.parametrize("k, n", [(12, 9), (5, 5), (8, 4)])
def test_cubic_coefficient_towards_one_averaged_neuron(k, n):
    size, ratio = k - n + 2, 0.3
    unit = np.eye(size)[0]
    shares = ratio * (1 - 2 * ratio) / (1 - ratio) ** 2
    assert split_cubic_coefficient(k, n, ratio, unit) == pytest.approx(
        -shares * (1 - size**-2.0) / (12 * np.pi)
    )


@settings(max_examples=25, deadline=None)
@given(st.integers(0, 2**31), st.floats(0.15, 0.85), st.integers(3, 6))
def test_cubic_coefficient_against_the_loss(seed, ratio, n):
    x = np.random.default_rng(seed).normal(size=7 - n + 2)
    expected = split_cubic_coefficient(7, n, ratio, x)
    assert cubic(7, n, ratio, x) == pytest.approx(
        expected, abs=2e-5 + 2e-3 * abs(expected)
    )


def test_cubic_coefficient_by_hand():
    # l = 3, x across the sum: shares 1/4 * 1/2 / (9/16), sum of cubes 6
    by_hand = -(2 / 9) * 6 / (12 * np.pi)
    assert split_cubic_coefficient(4, 3, 0.25, [2, -1, -1]) == pytest.approx(
        by_hand
    )


def test_equal_shares_have_no_cubic_term_and_sides_change_sign():
    x = [2.0, -1.0, -1.0]
    assert split_cubic_coefficient(4, 3, 0.5, x) == 0
    assert split_cubic_coefficient(4, 3, 0.4, x) < 0
    assert split_cubic_coefficient(4, 3, 0.6, x) > 0


@pytest.mark.parametrize(
    "call, word",
    [
        (lambda: split_copy(5, 2, 0.5), "n must"),
        (lambda: split_copy(5, 6, 0.5), "n must"),
        (lambda: split_copy(5, 3, 1.0), "ratio must"),
        (lambda: split_cubic_coefficient(5, 3, 0.3, [1.0]), "x must hold"),
    ],
)
def test_bad_input(call, word):
    with pytest.raises(ValueError, match=word):
        call()
