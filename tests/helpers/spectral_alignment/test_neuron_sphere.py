"""Maps of the sphere of neurons."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from helpers.spectral_alignment.neuron_sphere import (
    disc_grid,
    from_disc,
    half_circle,
    to_disc,
)

SEEDS = st.integers(0, 2**32 - 1)
NORTH = np.array([0.0, 0.0, 1.0])


def test_values_by_hand():
    """At 60 degrees from the centre the chord is 2 sin 30 = 1."""
    eta = [np.sin(np.pi / 3), 0, np.cos(np.pi / 3)]
    assert np.linalg.norm(to_disc(eta, NORTH)) == pytest.approx(1)
    assert np.linalg.norm(to_disc([5.0, 0, 0], NORTH)) == pytest.approx(
        np.sqrt(2)
    )


@settings(max_examples=40, deadline=None)
@given(SEEDS)
def test_there_and_back_and_the_chord(seed):
    rng = np.random.default_rng(seed)
    center = rng.normal(size=3)
    eta = rng.normal(size=(2, 5, 3))
    unit = eta / np.linalg.norm(eta, axis=-1, keepdims=True)
    pole = center / np.linalg.norm(center)
    unit *= np.where(unit @ pole < 0, -1.0, 1.0)[..., None]
    point = to_disc(eta, center)
    assert from_disc(point, center) == pytest.approx(unit, abs=1e-7)
    # the distance from the middle is that through the sphere
    chord = np.linalg.norm(unit - pole, axis=-1)
    assert np.linalg.norm(point, axis=-1) == pytest.approx(chord)
    assert to_disc(-3 * eta, center) == pytest.approx(point)


def test_areas_are_kept():
    """Even directions fill equal parts of the disc equally."""
    rng = np.random.default_rng(0)
    point = to_disc(rng.normal(size=(200_000, 3)), rng.normal(size=3))
    counts, *_ = np.histogram2d(*point.T, bins=2, range=[[-1, 1]] * 2)
    ring = np.mean(np.sum(point**2, axis=1) < 0.5)
    # five standard errors of shares of 200 000 directions
    assert ring == pytest.approx(0.25, abs=0.005)
    assert counts / counts.mean() == pytest.approx(np.ones((2, 2)), abs=0.02)


def test_grid():
    ticks, eta = disc_grid([1.0, 2.0, 2.0], 41)
    inside = ~np.isnan(eta[..., 0])
    # 41 cells across, so that the rim is a few per cent
    assert inside.mean() == pytest.approx(np.pi / 4, abs=0.05)
    row, column = np.argwhere(inside)[17]
    assert to_disc(eta[row, column], [1.0, 2.0, 2.0]) == pytest.approx(
        [ticks[column], ticks[row]]
    )


@settings(max_examples=40, deadline=None)
@given(SEEDS)
def test_half_circles_are_orthogonal_to_their_normal(seed):
    rng = np.random.default_rng(seed)
    normal, center = rng.normal(size=(2, 3))
    curve = half_circle(normal, center, 31)
    eta = from_disc(curve * (1 - 1e-12), center)
    assert np.abs(eta @ normal).max() < 1e-6 * np.linalg.norm(normal)
    assert np.linalg.norm(curve[[0, -1]], axis=1) == pytest.approx(
        [np.sqrt(2)] * 2
    )
    turn = np.sum(eta[1:] * eta[:-1], axis=1)
    assert turn == pytest.approx(np.full(30, np.cos(np.pi / 30)), abs=1e-6)


def test_the_rim_is_a_circle_too():
    rim = half_circle(NORTH, NORTH, 9)
    assert np.linalg.norm(rim, axis=1) == pytest.approx(np.full(9, 2**0.5))


@pytest.mark.parametrize(
    "call, name",
    [
        (lambda: to_disc(np.zeros(3), NORTH), "eta"),
        (lambda: to_disc([np.nan, 0, 0], NORTH), "eta"),
        (lambda: to_disc(np.ones(2), NORTH), "eta"),
        (lambda: to_disc(NORTH, np.zeros(3)), "center"),
        (lambda: to_disc(NORTH, np.ones(2)), "center"),
        (lambda: from_disc([1.5, 0.0], NORTH), "disc"),
        (lambda: from_disc([np.nan, 0.0], NORTH), "disc"),
        (lambda: from_disc(np.ones(3), NORTH), "point"),
        (lambda: disc_grid(NORTH, 1), "size"),
        (lambda: half_circle(NORTH, NORTH, 1), "size"),
        (lambda: half_circle(np.zeros(3), NORTH), "normal"),
    ],
)
def test_bad_input_is_named(call, name):
    with pytest.raises(ValueError, match=name):
        call()
