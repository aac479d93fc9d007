"""Arguments are returned as they are computed with, or refused by name."""

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from helpers.core import checks

NOT_WHOLE = [True, np.True_, 2.5, math.nan, math.inf, "3", None, [3], 1 + 0j]


@given(st.integers(-(2**40), 2**40))
def test_whole_numbers_of_every_kind_are_the_same_int(n):
    for value in (n, float(n), np.int64(n), np.float64(n), Fraction(n)):
        found = checks.whole_number(value, "n", least=-(2**40))
        assert found == n
        assert type(found) is int


@pytest.mark.parametrize("value", NOT_WHOLE)
def test_what_is_not_whole_is_refused_by_name(value):
    assert not checks.is_whole(value)
    with pytest.raises(ValueError, match=r"^depth must be a whole number >="):
        checks.whole_number(value, "depth")


@given(st.integers(-9, 9), st.integers(-9, 9), st.integers(-9, 9))
def test_both_ends_of_the_range_are_allowed(value, least, most):
    if least <= value <= most:
        assert checks.whole_number(value, "k", least, most) == value
    else:
        with pytest.raises(ValueError, match=f"from {least} to {most}, got"):
            checks.whole_number(value, "k", least, most)


@pytest.mark.parametrize("value", [0, -1.0, math.nan, math.inf, "x", None, []])
def test_only_positive_numbers_pass(value):
    with pytest.raises(ValueError, match=r"^rate must be finite and > 0, got"):
        checks.positive_number(value, "rate")


def test_the_smallest_positive_number_passes():
    assert checks.positive_number(np.nextafter(0, 1), "rate") > 0
    assert checks.positive_number(np.float32(2), "rate") == 2.0


@pytest.mark.parametrize("bad", [math.nan, math.inf, -math.inf])
@pytest.mark.parametrize(
    ("check", "shape"),
    [
        (checks.finite_array, (2, 3, 2)),
        (checks.finite_matrix, (3, 2)),
        (checks.finite_vector, (4,)),
    ],
)
def test_one_entry_spoils_an_array(check, shape, bad):
    x = np.zeros(shape)
    np.testing.assert_array_equal(check(x, "X"), x)
    x[-1] = bad
    with pytest.raises(ValueError, match=r"^X must be finite"):
        check(x, "X")


@pytest.mark.parametrize(
    ("value", "kwargs", "message"),
    [
        (np.zeros(3), {}, "must be a matrix"),
        (np.zeros((0, 3)), {}, "at least one row"),
        (np.zeros((2, 3)), {"rows": 3}, r"must have 3 rows, got shape \(2, 3"),
        (np.zeros((2, 0)), {"columns": 1}, r"at least 1 column, got"),
        (np.zeros((2, 1)), {"columns": 2}, r"at least 2 columns, got"),
    ],
)
def test_shapes_of_matrices(value, kwargs, message):
    with pytest.raises(ValueError, match=message):
        checks.finite_matrix(value, "Phi", **kwargs)


@pytest.mark.parametrize(
    ("value", "size", "message"),
    [
        (np.zeros((2, 1)), None, "must be a vector"),
        ([], None, "at least one entry"),
        (1.0, None, "must be a vector"),
        ([1.0, 2.0], 3, r"must have shape \(3,\), got \(2,\)"),
    ],
)
def test_shapes_of_vectors(value, size, message):
    with pytest.raises(ValueError, match=message):
        checks.finite_vector(value, "f", size)


def test_a_matrix_without_columns_is_a_matrix():
    assert checks.finite_matrix(np.zeros((2, 0)), "H").shape == (2, 0)


def test_the_number_of_axes_is_checked():
    with pytest.raises(ValueError, match=r"Y must have 3 axes, got shape"):
        checks.finite_array(np.zeros((2, 2)), "Y", 3)
