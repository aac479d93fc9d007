"""The samples of the chapter, and the stored run against fresh bounds."""

from pathlib import Path

import numpy as np
import pytest

from helpers.spectral_alignment.norm_experiments import (
    moons_norms,
    moons_problem,
    near_pair,
)
from helpers.sweep import load_results

DATA = Path(__file__).parents[3] / "book/data/variation_norms.parquet"


def test_moons_are_standardised_and_their_basis_is_low():
    X, Phi, U, L = moons_problem(40, 3)
    assert X.mean(axis=0) == pytest.approx(0, abs=1e-12)
    assert X.std(axis=0) == pytest.approx(1)
    assert (Phi[:, 2] == 1).all() and (Phi[:, :2] == X).all()
    energy = np.diag(U.T @ L @ U)
    assert energy[0] == pytest.approx(0, abs=1e-9)
    assert energy == pytest.approx(np.linalg.eigvalsh(L)[:3], abs=1e-9)


def test_near_pair():
    Phi, v = near_pair([[0.0, 0.0], [1.0, 0.0]], 0, [0.0, 3.0], 0.25)
    assert Phi[2].tolist() == [0.0, 0.25, 1.0]
    assert v == pytest.approx(np.array([1, 0, -1]) / np.sqrt(2))
    for step, h in (([0.0, 0.0], 1.0), ([1.0, 0.0], 0.0)):
        with pytest.raises(ValueError, match="step"):
            near_pair([[0.0, 0.0]], 0, step, h)


def test_stored_intervals_hold():
    """A fresh interval meets the stored one; intervals are narrow."""
    stored = load_results(DATA)
    rows = {
        (n, t): (np.array(lo), np.array(up))
        for n, t, lo, up in zip(
            stored["n"],
            stored["target"],
            stored["lower"],
            stored["upper"],
            strict=True,
        )
    }
    assert len(rows) == 16
    for (_, target), (low, high) in rows.items():
        slack = 0.05 if target == "curve" else 0.02
        assert (low >= (1 - slack) * high).all() and (low <= high).all()
    for target in ("u2", "u4"):
        fresh = moons_norms(60, target)
        low, high = rows[60, target]
        assert fresh["lower"][0] <= high[0] * (1 + 1e-9)
        assert low[0] <= fresh["upper"][0] * (1 + 1e-9)


def test_unknown_targets_are_named():
    with pytest.raises(ValueError, match="target"):
        moons_norms(20, "u6")
