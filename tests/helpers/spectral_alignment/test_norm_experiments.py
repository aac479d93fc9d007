"""The samples of the chapter, and the stored run against fresh bounds."""

from pathlib import Path

import numpy as np
import pytest

from helpers.spectral_alignment.block_norms import dual_bound
from helpers.spectral_alignment.norm_experiments import (
    moons_functions,
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


def test_functions_are_units_and_the_outer_spike_is_a_neuron():
    problem = moons_problem(30, 2)
    functions = moons_functions(problem)
    assert list(functions) == ["u1", "u2", "outer", "inner"]
    for v in functions.values():
        assert np.linalg.norm(v) == pytest.approx(1)
    assert functions["u2"] == pytest.approx(problem.UK[:, 1])
    edge = functions["outer"] @ problem.X
    # a threshold of the first coordinate is on for this sample only
    h = np.maximum(problem.X[:, 0] - np.sort(problem.X[:, 0])[-2], 0)
    assert (h > 0).tolist() == (functions["outer"] == 1).tolist()
    assert edge[0] == problem.X[:, 0].max()
    inner = functions["inner"] @ problem.X
    assert (inner @ inner <= np.sum(problem.X**2, axis=1)).all()


def stored_rows():
    stored = load_results(DATA)
    keys = ("e", "lower", "upper", "dual", "theta", "weights")
    return {
        (n, t): [np.array(stored[key][i]) for key in keys]
        for i, (n, t) in enumerate(
            zip(stored["n"], stored["target"], strict=True)
        )
    }


def test_stored_intervals_hold():
    """Narrow, and their evidence proves both ends."""
    rows = stored_rows()
    assert len(rows) == 22
    for n in (60, 100):
        problem = moons_problem(n)
        for name, v in moons_functions(problem).items():
            _, low, high, y, theta, weights = rows[n, name]
            assert 0.98 * high <= low <= high
            # eigenvectors of another machine: agree to about 1e-12
            assert dual_bound(problem.Phi, v, y) >= low * (1 - 1e-6)
            h = np.maximum(problem.Phi @ theta.reshape(3, -1), 0)
            assert h @ weights == pytest.approx(v, abs=1e-6)
            cost = np.abs(weights) @ np.linalg.norm(h, axis=0)
            assert cost <= high * (1 + 1e-6)
        for name, H0 in (("free", None), ("relative", problem.Phi)):
            _, low, high, Y, *_ = rows[n, name]
            assert 0.98 * high <= low <= high
            proved = dual_bound(problem.Phi, problem.UK, Y.reshape(n, 5), H0)
            assert proved >= low * (1 - 1e-6)
        e, low, high, *_ = rows[n, "curve"]
        assert (low >= 0.95 * high).all() and (low <= high).all()
        assert (np.diff(e) < 0).all() and (np.diff(high) > 0).all()
        e, _, kappa, *_ = rows[n, "plain"]
        assert (np.diff(e) < 0).all() and (np.diff(kappa) > 0).all()


def test_a_fresh_interval_meets_the_stored_one():
    fresh = moons_norms(60, "u2")
    _, low, high, *_ = stored_rows()[60, "u2"]
    assert fresh["lower"][0] <= high[0] * (1 + 1e-9)
    assert low[0] <= fresh["upper"][0] * (1 + 1e-9)


def test_curves_of_a_small_sample():
    plain, curve = (moons_norms(12, name) for name in ("plain", "curve"))
    assert (plain["lower"] == 0).all() and plain["dual"].size == 0
    assert (curve["lower"] <= curve["upper"] * (1 + 1e-9)).all()
    assert plain["e"].shape == curve["e"].shape


def test_unknown_targets_are_named():
    with pytest.raises(ValueError, match="target"):
        moons_norms(20, "u6")
