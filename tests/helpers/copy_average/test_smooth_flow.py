"""The task of the stored runs with smooth activations."""

import pytest

from helpers.copy_average.smooth_flow import run_smooth_flow
from helpers.copy_average.symmetric import symmetric_optimum


def test_sigmoid_ends_at_the_perturbed_point():
    row = run_smooth_flow("sigmoid", 3, 2, seed=0)
    point = symmetric_optimum(3, 2, "copy_average", "sigmoid")
    assert row["status"] == "converged" and row["lowest"] > 0
    assert row["loss"] == pytest.approx(point.loss, rel=1e-8)
    assert row["copies"] == 1
    assert row["largest_norm"] == pytest.approx(point.copy_norm, abs=1e-6)
    assert row["smallest_norm"] == pytest.approx(point.average_norm, abs=1e-6)


def test_bad_input():
    with pytest.raises(ValueError, match="activation must be one of"):
        run_smooth_flow("step", 3, 2, seed=0)
