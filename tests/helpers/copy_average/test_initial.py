"""Laws of random students."""

import numpy as np
import pytest

from helpers.copy_average.initial import gaussian, glorot_normal


def test_glorot_variances():
    # 20 000 entries: the sample variance is within five standard errors
    student = glorot_normal(0, n=4, d=6, batch=5000)
    for x, variance in ((student.W, 2 / 10), (student.a, 2 / 5)):
        error = variance * np.sqrt(2 / x.size)
        assert abs(x.var() - variance) < 5 * error
        assert abs(x.mean()) < 5 * np.sqrt(variance / x.size)


def test_gaussian_has_one_deviation():
    student = gaussian(1, n=3, d=5, std=0.05, batch=4000)
    for x in (student.W, student.a):
        assert abs(x.std() / 0.05 - 1) < 5 / np.sqrt(2 * x.size)


@pytest.mark.parametrize("draw", [glorot_normal, gaussian])
def test_a_larger_batch_begins_with_the_smaller(draw):
    extra = () if draw is glorot_normal else (0.3,)
    small = draw(5, 2, 3, *extra, batch=2)
    large = draw(5, 2, 3, *extra, batch=7)
    one = draw(5, 2, 3, *extra)
    np.testing.assert_array_equal(small.W, large.W[:2])
    np.testing.assert_array_equal(one.W, large.W[0])
    np.testing.assert_array_equal(one.a, large.a[0])


@pytest.mark.parametrize(
    "call, word",
    [
        (lambda: glorot_normal(0, 0, 3), "n must"),
        (lambda: glorot_normal(0, 2, 1.5), "d must"),
        (lambda: glorot_normal(0, 2, 3, batch=0), "batch must"),
        (lambda: gaussian(0, 2, 3, std=0.0), "std must"),
        (lambda: gaussian(0, 2, 3, std=np.nan), "std must"),
        (lambda: glorot_normal(-1, 2, 3), "seed"),
    ],
)
def test_bad_input(call, word):
    with pytest.raises(ValueError, match=word):
        call()
