"""Projection along the sum, and the animation's frames."""

import numpy as np
import pytest

from helpers.copy_average.pictures import along_the_sum, flow_animation


def test_projection_keeps_lengths_across_the_sum():
    x = np.random.default_rng(0).normal(size=(20, 3))
    x -= x.mean(axis=1, keepdims=True)
    np.testing.assert_allclose(
        np.linalg.norm(along_the_sum(x), axis=1), np.linalg.norm(x, axis=1)
    )
    np.testing.assert_allclose(along_the_sum([5.0, 5.0, 5.0]), 0, atol=1e-15)


def test_teacher_neurons_are_120_degrees_apart():
    marks = along_the_sum(np.eye(3))
    np.testing.assert_allclose(marks @ marks.T, np.eye(3) - 1 / 3, atol=1e-15)


def test_frames_move_what_moves_and_nothing_else():
    rng = np.random.default_rng(1)
    cosines, a = rng.uniform(-1, 1, (4, 2, 3)), rng.normal(size=(4, 2))
    figure = flow_animation(
        [1.0, 2, 4, 8], cosines, a, [4.0, 3, 2, 1], ["#111", "#222"]
    )
    assert len(figure.frames) == 4
    names = [figure.data[i].name for i in figure.frames[0].traces]
    assert names == ["neuron 1", "neuron 2", "loss"]
    for i, frame in enumerate(figure.frames):
        for m in range(2):
            x, y = along_the_sum(cosines[i, m])
            assert frame.data[m].x[0] == x and frame.data[m].y[0] == y
        assert frame.data[2].y[0] == 4 - i
    assert [s.label for s in figure.layout.sliders[0].steps] == list("1248")


@pytest.mark.parametrize(
    "shapes", [((2, 1, 2), (2, 1)), ((2, 1, 3), (2, 2)), ((3, 1, 3), (2, 1))]
)
def test_bad_shapes(shapes):
    with pytest.raises(ValueError, match="must have shapes"):
        flow_animation(
            [1.0, 2.0], np.zeros(shapes[0]), np.zeros(shapes[1]), [1, 1], ["r"]
        )


def test_bad_input():
    with pytest.raises(ValueError, match="last axis of 3"):
        along_the_sum([1.0, 2.0])
    with pytest.raises(ValueError, match="colors must hold 1"):
        flow_animation([1.0], np.zeros((1, 1, 3)), [[1.0]], [1.0], [])
