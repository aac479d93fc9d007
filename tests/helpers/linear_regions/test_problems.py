"""Problems of two and eight dimensions, and the additive floor."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from helpers.core.data import load_concrete
from helpers.linear_regions.problems import (
    additive_floor,
    concrete_losses,
    concrete_unit,
    problem,
    radius_floor,
    two_spirals,
)


@given(st.integers(1, 7), st.integers(1, 7), st.integers(0, 10**6))
def test_the_floor_is_a_least_squares_residual(n1, n2, seed):
    """Against an explicit fit by indicators of rows and columns."""
    z = np.random.default_rng(seed).normal(size=(n1, n2))
    rows = np.repeat(np.eye(n1), n2, axis=0)
    columns = np.tile(np.eye(n2), (n1, 1))
    design = np.hstack([rows, columns])
    best = np.linalg.lstsq(design, z.ravel(), rcond=None)[0]
    left = np.mean((design @ best - z.ravel()) ** 2)
    assert abs(additive_floor(z) - left) < 1e-12


def test_the_floor_by_hand():
    """(r^2)^2 = x^4 + y^4 + 2 x^2 y^2: the last term's interaction."""
    assert additive_floor(np.add.outer([1.0, 5.0], [2.0, 0.0, 3.0])) < 1e-30
    # 2 (x^2 - 1/3)(y^2 - 1/3): mean square 4 (4/45)^2
    assert abs(radius_floor(4.0) - 4 * (4 / 45) ** 2) < 1e-14


def test_the_floor_of_the_cube_of_the_radius():
    """Grid and continuum, the second against a fine midpoint grid."""
    data = problem("radius", 0)
    coarse = additive_floor(data.y.reshape(25, 25))
    side = (np.arange(800) + 0.5) / 400 - 1
    fine = additive_floor(np.hypot(*np.meshgrid(side, side)) ** 3)
    assert abs(coarse - 7.75e-3) < 1e-5  # the spec's three digits
    assert abs(radius_floor() - fine) < 1e-6
    assert abs(radius_floor() - 6.13e-3) < 1e-5


@given(st.integers(1, 200), st.floats(0.2, 4), st.integers(0, 99))
def test_spirals_lie_on_their_arms(half, turns, seed):
    x, y = two_spirals(2 * half, turns, rng=seed)
    radius = np.linalg.norm(x, axis=1)
    assert radius.max() <= 1 and y.sum() == half
    np.testing.assert_array_equal(x[half:], -x[:half])
    angle = np.angle(x[:half] @ [1, 1j])
    turned = np.exp(1j * (angle - 2 * np.pi * turns * radius[:half]))
    np.testing.assert_allclose(turned, 1, atol=1e-9)


def test_noise_moves_samples_by_its_standard_deviation():
    clean, _ = two_spirals(20_000, 2, rng=3)
    noisy, _ = two_spirals(20_000, 2, noise=0.05, rng=3)
    assert abs(np.std(noisy - clean) - 0.05) < 2e-3


def test_concrete_splits():
    """Rows of the table, each once, scaled by the training rows."""
    x, y = load_concrete()
    data = problem("concrete", 4)
    assert (len(data.y), len(data.y_test)) == (824, 206)
    np.testing.assert_allclose(data.x.mean(axis=0), 0, atol=1e-12)
    np.testing.assert_allclose(data.x.std(axis=0), 1)
    back = np.r_[data.y, data.y_test] * concrete_unit(4) ** 0.5
    shift = np.sort(y) - np.sort(back)
    np.testing.assert_allclose(shift, shift[0], atol=1e-9)
    other = problem("concrete", 5)
    assert not np.array_equal(data.y, other.y)


def test_losses_of_a_model_are_in_mpa_squared():
    """Predicting the training mean, against the raw table."""
    from sklearn.dummy import DummyRegressor

    _, y = load_concrete()
    order = np.random.default_rng(2).permutation(len(y))
    train, test = y[order[:824]], y[order[824:]]
    wanted = np.mean((test - train.mean()) ** 2)
    found = concrete_losses(DummyRegressor(), [2])
    np.testing.assert_allclose(found, [wanted])


def test_test_points_lie_between():
    cubic = problem("cubic", 0)
    assert np.all(cubic.x_test[:, 0] > cubic.x[:-1, 0])
    radius = problem("radius", 0)
    assert not set(map(tuple, radius.x)) & set(map(tuple, radius.x_test))
    spirals = problem("spirals-3", 1)
    assert len(spirals.y) == 800 and len(problem("spirals-1.5", 1).y) == 400
    assert not np.array_equal(spirals.x, spirals.x_test)


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: additive_floor([1.0, 2.0]), "z must be a finite matrix"),
        (lambda: additive_floor([[np.nan]]), "z must be a finite matrix"),
        (lambda: additive_floor(np.empty((0, 3))), "z must be a finite"),
        (lambda: radius_floor(0), "power must be positive"),
        (lambda: two_spirals(7, 1), "n must be an even number"),
        (lambda: two_spirals(8, 0), "turns must be finite and > 0"),
        (lambda: two_spirals(8, 1, -1), "noise must be a number"),
        (lambda: problem("moons", 0), "name must be cubic, radius"),
    ],
)
def test_bad_input(call, words):
    with pytest.raises(ValueError, match=words):
        call()
