"""Tasks of the phase diagram: same seed, same start, honest columns."""

import numpy as np
import pytest

from helpers.copy_average.configurations import copy_average_loss
from helpers.copy_average.experiments import (
    descent_outcome,
    flow_outcome,
    start,
)
from helpers.sweep.grid import grid


def test_start_is_the_seed_and_the_law():
    one, teacher = start(5, 3, 7)
    two, _ = start(5, 3, 7)
    np.testing.assert_array_equal(one.W, two.W)
    assert teacher.d == 6
    scaled, wide = start(5, 3, 7, d=10, std=0.2)
    assert scaled.W.shape == (3, 10) and wide.d == 10
    again, _ = start(5, 3, 7, d=10, std=0.4)
    np.testing.assert_allclose(again.W, 2 * scaled.W)


@pytest.mark.parametrize("task", [flow_outcome, descent_outcome])
def test_narrow_students_copy_and_average(task):
    row = task(k=6, n=2, seed=3)
    assert row["label"] == "optimal_ca"
    assert row["loss"] == pytest.approx(copy_average_loss((1, 5), 6), abs=1e-9)
    assert row["largest_weight"] == pytest.approx(5, abs=1e-5)
    assert row["gradient"] < 1e-9 < row["smallest_eigenvalue"]


def test_rows_are_values_a_sweep_can_keep():
    row = flow_outcome(**grid(k=3, n=2, seed=0)[0])
    assert {type(v) for v in row.values()} <= {str, float}
    assert row["status"] == "converged" and row["time"] > 0


def test_bad_input_names_the_argument():
    with pytest.raises(ValueError, match="k <= d"):
        flow_outcome(k=5, n=2, seed=0, d=4)
    with pytest.raises(ValueError, match="std must"):
        flow_outcome(k=5, n=2, seed=0, std=-1.0)
