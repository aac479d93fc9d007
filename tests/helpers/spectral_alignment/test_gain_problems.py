"""Problems for the comparison of neuron searches."""

import numpy as np
import pytest

from helpers.core.linalg import orthonormal_basis
from helpers.spectral_alignment import climbs, gain_problems, graphs, neurons
from helpers.spectral_alignment.gain_problems import (
    compare_searches,
    greedy_gain_problems,
    low_and_high_targets,
    random_gain,
)


@pytest.mark.parametrize("data", gain_problems.DATA)
def test_targets_are_eigenvectors_of_the_graph(data):
    Phi, U = low_and_high_targets(data, 45, "u6..15", seed=1)
    assert Phi[:, :2].mean(axis=0) == pytest.approx([0, 0], abs=1e-12)
    assert Phi[:, :2].std(axis=0) == pytest.approx([1, 1])
    L = graphs.graph_laplacian(graphs.knn_graph(Phi[:, :2], 10)).toarray()
    lam = np.linalg.eigvalsh(L)
    assert np.linalg.norm(L @ U - U * lam[5:15]) < 1e-9
    _, u10 = low_and_high_targets(data, 45, "u10", seed=1)
    assert abs(u10[:, 0] @ U[:, 4]) == pytest.approx(1)


def test_circles_are_two_rings():
    Phi, _ = low_and_high_targets("circles", 60, "u1..5")
    radius = np.linalg.norm(Phi[:, :2], axis=1)
    inner = np.sort(radius)[:30]
    assert inner.max() < 1.2 < np.sort(radius)[30:].min()


def test_greedy_problems_add_the_best_neuron_each_time():
    Phi, U = low_and_high_targets("moons", 40, "u1..5")
    run = list(greedy_gain_problems(Phi, U, 3))
    left = [np.sum(p.M**2) for p in run]
    for k, p in enumerate(run):
        Q = orthonormal_basis(
            np.column_stack(
                [Phi] + [np.maximum(Phi @ q.exact.theta, 0) for q in run[:k]]
            )
        )
        assert np.abs(Q @ Q.T - p.QH @ p.QH.T).max() < 1e-9
        if k:
            fall = left[k - 1] - left[k]
            assert fall == pytest.approx(run[k - 1].exact.gain, abs=1e-9)


def test_random_gain_is_the_best_of_the_same_directions_one_by_one():
    Phi, U = low_and_high_targets("moons", 40, "u10")
    G, _ = neurons.reduced_features(Phi)
    eta = np.random.default_rng(4).normal(size=(3, 50)).T
    gains = [neurons.marginal_gain(np.maximum(G @ e, 0), U) for e in eta]
    assert random_gain(Phi, U, tries=50, rng=4) == pytest.approx(max(gains))


def test_fractions_are_at_most_one_and_grow_with_the_budget():
    row = compare_searches("circles", 40, "u20", 2, seed=1, starts=20)
    for step in range(2):
        best = [row[f"best_{k}"][step] for k in (1, 2, 5, 10, 20)]
        assert np.diff(best).min() >= 0
        others = [row[k][step] for k in ("median", "fixed_point", "random")]
        assert max(best + others) <= 1 + 1e-9 <= row["relaxed"][step] + 2e-9
        assert (row["hits"][step] > 0) == (best[-1] > 0.999)
    assert "best_50" not in row
    one = compare_searches("circles", 40, "u20", 4, seed=1, starts=1)
    assert one["hits"] == [int(a > 0.999) for a in one["best_1"]]
    assert any(0.5 < a < 0.99 for a in one["best_1"])


@pytest.mark.parametrize(
    "call, name",
    [
        (lambda: low_and_high_targets("blobs", 40, "u10"), "data"),
        (lambda: low_and_high_targets("moons", 40, "u9"), "target"),
        (lambda: low_and_high_targets("moons", 30, "u11..30"), "n must"),
        (lambda: random_gain(np.eye(3), np.eye(3), tries=0), "tries"),
        (lambda: random_gain(np.eye(3), np.full((3, 1), np.nan)), "M"),
        (lambda: random_gain(np.zeros((3, 1)), np.eye(3)), "Phi"),
    ],
)
def test_bad_input_is_named(call, name):
    with pytest.raises(ValueError, match=name):
        call()


def test_climbs_end_no_lower_than_they_start_and_where_they_say():
    ends = climbs.climb_ends("moons", 40, "u15", seed=3, starts=6)
    theta = np.array([ends["w1"], ends["w2"], ends["bias"]])
    assert np.linalg.norm(theta, axis=0) == pytest.approx(np.ones(6))
    Phi, U = low_and_high_targets("moons", 40, "u15", seed=3)
    Q = orthonormal_basis(Phi)
    M = U - Q @ (Q.T @ U)
    first = np.random.default_rng(3).normal(size=(6, 3)).T
    before = neurons.marginal_gain(np.maximum(Phi @ first, 0), M, Q)
    after = neurons.marginal_gain(np.maximum(Phi @ theta, 0), M, Q)
    assert after == pytest.approx(ends["gain"], abs=1e-9)
    assert (after >= before - 1e-9).all() and after.sum() > before.sum() + 0.1
    with pytest.raises(ValueError, match="starts"):
        climbs.climb_ends("moons", 40, "u15", seed=3, starts=0)
