"""Networks and directions: shapes, bundles, refusals."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from helpers.copy_average.networks import (
    Student,
    Teacher,
    outside_fraction,
    pack,
    teacher_cosines,
    unpack,
)


@given(
    n=st.integers(1, 4), d=st.integers(1, 4), batch=st.lists(st.integers(1, 3))
)
@settings(max_examples=25, deadline=None)
def test_pack_and_unpack(n, d, batch):
    batch = tuple(batch[:2])
    W = np.random.default_rng(0).standard_normal((*batch, n, d))
    a = W.sum(axis=-1)
    theta = pack(W, a)
    assert theta.shape == (*batch, n * (d + 1))
    W2, a2 = unpack(theta, n)
    np.testing.assert_array_equal(W, W2)
    np.testing.assert_array_equal(a, a2)


@pytest.mark.parametrize("n", [0, 2, 5])
def test_unpack_refuses(n):
    with pytest.raises(ValueError, match="neurons"):
        unpack(np.zeros(5), n)


def test_teacher_is_immutable_and_independent():
    V = np.eye(2)
    teacher = Teacher(V)
    V[0, 0] = 5
    assert teacher.V[0, 0] == 1 and teacher.b.tolist() == [1, 1]
    with pytest.raises(ValueError, match="read-only"):
        teacher.V[0, 0] = 2


@pytest.mark.parametrize(
    "V, b",
    [
        ([1.0, 2.0], None),
        ([[1.0]], [1.0, 2.0]),
        ([[math.nan]], None),
        ([[1.0]], [math.inf]),
        (np.zeros((0, 2)), None),
    ],
)
def test_bad_teachers(V, b):
    with pytest.raises(ValueError, match="must"):
        Teacher(V, b)


@pytest.mark.parametrize("args", [(0, 3), (3, 2), (-1, None)])
def test_bad_orthonormal_teachers(args):
    with pytest.raises(ValueError, match="k <= d"):
        Teacher.orthonormal(*args)
    with pytest.raises(ValueError, match="norm"):
        Teacher.orthonormal(2, norm=0.0)


def test_student():
    student = Student([[[3.0, 4.0]]], [[1.0]])
    assert student.norms.tolist() == [[5.0]]
    with pytest.raises(ValueError, match="W must"):
        Student([[1.0]], [1.0, 2.0])


def test_cosines_and_span():
    V = np.array([[2.0, 0, 0], [0, 3.0, 0]])
    W = np.array([[3.0, 4.0, 0], [0, 0, 1.0], [0, 0, 0]])
    cosines = teacher_cosines(W, V)
    np.testing.assert_allclose(cosines[:2], [[0.6, 0.8], [0, 0]])
    assert np.isnan(cosines[2]).all()
    outside = outside_fraction(W, V)
    np.testing.assert_allclose(outside[:2], [0, 1], atol=1e-15)
    assert np.isnan(outside[2])
    # linearly dependent teachers span less than they are many
    assert outside_fraction(W[:1], [[1.0, 0, 0], [2.0, 0, 0]]) == (
        pytest.approx([0.8])
    )
    with pytest.raises(ValueError, match="vanishing"):
        teacher_cosines(W, np.zeros((1, 3)))
