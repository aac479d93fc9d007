"""The compiled kernels against NumPy, a complex step and exact values."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from helpers.copy_average import compiled
from helpers.copy_average.networks import Teacher, pack, unpack
from helpers.copy_average.objective import Objective
from helpers.copy_average.population import (
    differentiated_hessian,
    population_loss_grad,
)

pytest.importorskip("numba", reason="the kernels are compiled by numba")


def random_teacher(rng, k, d):
    return Teacher(rng.normal(size=(k, d)), rng.normal(size=k))


SIZES = st.tuples(
    st.integers(1, 9), st.integers(1, 9), st.integers(1, 9), st.integers(1, 3)
)


def test_arcsine_is_within_two_roundings_everywhere():
    x = np.concatenate([np.linspace(-1, 1, 200_001), [0.5, -0.5, 0.0]])
    y = np.sqrt((1 - x) * (1 + x))
    error = np.abs(compiled.arcsine(x, y) - np.arcsin(x))
    assert error.max() <= 2 * np.finfo(float).eps
    assert compiled.arcsine(0.5, math.sqrt(0.75)) == pytest.approx(
        math.pi / 6, abs=3e-16
    )


@settings(max_examples=60, deadline=None)
@given(SIZES, st.integers(0, 2**31), st.sampled_from([0.01, 1.0, 30.0]))
def test_gradient_equals_numpy(sizes, seed, scale):
    n, k, d, batch = sizes
    rng = np.random.default_rng(seed)
    teacher = random_teacher(rng, k, d)
    theta = scale * rng.normal(size=(batch, n * (d + 1)))
    loss, gradient = Objective(teacher, n).loss_and_gradient(theta)
    expected, *grads = population_loss_grad(*unpack(theta, n), teacher)
    size = 1 + scale**2
    np.testing.assert_allclose(loss, expected, rtol=0, atol=1e-12 * size)
    np.testing.assert_allclose(
        gradient, pack(*grads), rtol=0, atol=1e-11 * size
    )


@pytest.mark.parametrize("d", [3, 4, 9])
def test_unit_teacher_takes_the_short_way_to_the_same_numbers(d):
    rng, teacher = np.random.default_rng(1), Teacher.orthonormal(3, d)
    short = Objective(teacher, 2)
    long = Objective(teacher, 2)
    long._sliced = False
    assert short._sliced
    theta = rng.normal(size=(4, short.size))
    for x, y in zip(
        short.loss_and_gradient(theta),
        long.loss_and_gradient(theta),
        strict=True,
    ):
        np.testing.assert_allclose(x, y, rtol=0, atol=1e-13)


@settings(max_examples=40, deadline=None)
@given(SIZES, st.integers(0, 2**31))
def test_hessian_equals_complex_step(sizes, seed):
    n, k, d, _ = sizes
    rng = np.random.default_rng(seed)
    teacher = random_teacher(rng, k, d)
    W, a = rng.normal(size=(n, d)), rng.normal(size=n)
    ours = Objective(teacher, n).hessian(pack(W, a))
    exact = differentiated_hessian(W, a, teacher)
    np.testing.assert_array_equal(ours, ours.T)
    np.testing.assert_allclose(ours, exact, rtol=0, atol=1e-12)


def test_hessian_of_one_neuron_by_hand():
    # L(w, a) = 2/pi [a^2 asin(w^2/(1+w^2)) - 2 a asin(w/sqrt(2+2w^2)) + ...]
    hessian = Objective(Teacher.orthonormal(1, 1), 1).hessian([1.0, 1.0])
    by_a = 4 / math.pi * math.asin(1 / 2)
    # gradient by a, 4/pi [a asin(..) - asin(..)], differentiated by w at 1
    mixed = 4 / math.pi * (1 / math.sqrt(3) - 1 / (2 * math.sqrt(3)))
    # at the teacher the second derivative by w is 2 E[(a sigma'(x) x)^2]
    by_w = 2 * (2 / math.pi) / (3 * math.sqrt(3))
    np.testing.assert_allclose(hessian, [[by_w, mixed], [mixed, by_a]])


def test_vanishing_neuron_and_parallel_large_neurons_stay_finite():
    teacher = Teacher.orthonormal(2, 2)
    objective = Objective(teacher, 3)
    W = np.array([[0.0, 0.0], [1e7, 1e7], [1e7, 1e7 + 1]])
    theta = pack(W, np.ones(3))
    loss, gradient = objective.loss_and_gradient(theta)
    assert np.isfinite(loss) and np.all(np.isfinite(gradient))
    assert np.all(np.isfinite(objective.hessian(theta)))


@pytest.mark.parametrize("shape", [(), (1,), (2, 3)])
def test_leading_axes(shape):
    objective = Objective(Teacher.orthonormal(2), 2)
    theta = np.random.default_rng(0).normal(size=(*shape, objective.size))
    loss, gradient = objective.loss_and_gradient(theta)
    assert np.shape(loss) == shape and gradient.shape == theta.shape


def test_bad_requests_are_named():
    teacher = Teacher.orthonormal(2)
    with pytest.raises(ValueError, match="n must be a positive integer"):
        Objective(teacher, 0)
    with pytest.raises(ValueError, match="compiled=True with relu"):
        Objective(teacher, 1, "relu", compiled=True)
    for n, name in ((1, "erf"), (2, "erf"), (1, "tanh")):
        objective = Objective(teacher, n, name)
        for theta in (np.zeros(objective.size + 1), np.zeros((2, 3)), 1.0):
            with pytest.raises(ValueError, match="theta must hold"):
                objective.loss_and_gradient(theta)
        with pytest.raises(ValueError, match="theta must hold"):
            objective.hessian(np.zeros((1, objective.size)))
    assert Objective(teacher, 1).compiled
    assert not Objective(teacher, 1, compiled=False).compiled
    assert not Objective(teacher, 1, "tanh").compiled


def test_without_numba_the_numpy_path_serves(monkeypatch):
    import helpers.copy_average.objective as module

    monkeypatch.setattr(module, "compiled_kernels", lambda: None)
    teacher = Teacher.orthonormal(3)
    slow, theta = Objective(teacher, 2), np.linspace(-1, 1, 10)
    monkeypatch.undo()
    fast = Objective(teacher, 2)
    assert fast.compiled and not slow.compiled
    np.testing.assert_allclose(
        slow.loss_and_gradient(theta)[1],
        fast.loss_and_gradient(theta)[1],
        atol=1e-14,
    )
    np.testing.assert_allclose(
        slow.hessian(theta), fast.hessian(theta), atol=1e-14
    )
    np.testing.assert_allclose(
        fast.pack_teacher()[:5], [1.0, 0.0, 0.0, 0.0, 1.0]
    )


def test_plain_python_computes_the_same():
    """The source of the kernels, run by the interpreter."""
    theta = np.random.default_rng(2).normal(size=(2, 3, 5))
    teacher = Teacher.orthonormal(3)
    D, arguments = 1 + np.ones(3), (teacher.b, 1.0)
    fast = compiled.packed_loss_grad(
        theta, theta, arguments[0], D, arguments[1], True
    )
    plain = compiled.packed_loss_grad.py_func(
        theta, theta, arguments[0], D, arguments[1], True
    )
    for x, y in zip(fast, plain, strict=True):
        np.testing.assert_allclose(x, y, rtol=0, atol=1e-13)
