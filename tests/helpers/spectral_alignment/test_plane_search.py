"""Exact search in random subspaces."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from helpers.core.linalg import complement, orthonormal_basis
from helpers.spectral_alignment import local_search, neurons
from helpers.spectral_alignment.exact_search import maximal_gain_neuron
from helpers.spectral_alignment.plane_search import plane_search

SEEDS = st.integers(0, 2**32 - 1)


def relu(z):
    return np.maximum(z, 0.0)


def random_problem(seed, d, n=12, K=2, repeated=False):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d))
    if repeated:
        X[n // 2 :] = X[: n - n // 2]
    Phi = np.column_stack([X, np.ones(n)])
    U = np.linalg.qr(rng.normal(size=(n, K)))[0]
    Q = orthonormal_basis(np.ones((n, 1)))
    return Phi, complement(Q, U), Q


@settings(max_examples=8, deadline=None)
@given(SEEDS, st.integers(3, 6), st.booleans())
def test_gain_never_falls_and_is_that_of_the_neuron(seed, d, repeated):
    Phi, M, Q = random_problem(seed, d, repeated=repeated)
    start = np.random.default_rng(seed).normal(size=d + 1)
    found = plane_search(Phi, M, Q, start, rng=seed, rounds=3)
    first = neurons.marginal_gain(relu(Phi @ start), M, Q)
    assert found.gains[0] == pytest.approx(first, abs=1e-9)
    assert (np.diff(found.gains) >= 0).all()
    h = relu(Phi @ found.theta)
    assert neurons.marginal_gain(h, M, Q) == pytest.approx(
        found.gain, abs=1e-9
    )
    assert np.linalg.norm(h) == pytest.approx(1)
    # at least the certified best of its subspace, which contains the start
    assert (found.gains[1:] >= found.plane_bounds * (1 - 1e-6)).all()
    assert (found.plane_bounds >= found.gains[:-1] * (1 - 1e-6)).all()


@pytest.mark.parametrize("d", [0, 1, 2])
def test_up_to_rank_three_one_round_is_the_exact_search(d):
    for seed in range(4):
        Phi, M, Q = random_problem(seed, d)
        if d == 0:
            M, Q = M + Q @ (Q.T @ M), None
        start = -np.ones(d + 1)
        start[-1] = 5.0
        found = plane_search(Phi, M, Q, start, rng=0, rounds=1)
        exact = maximal_gain_neuron(Phi, M, Q)
        assert found.gain == pytest.approx(exact.gain, abs=1e-9)


def test_rank_four_against_the_exact_maximum_by_faces():
    """A known maximum: never above it, and more often there than one climb."""
    climbed, searched = [], []
    for seed in range(5):
        Phi, M, Q = random_problem(seed, 3, n=12, K=1)
        exact = maximal_gain_neuron(Phi, M, Q, method="faces").gain
        one = local_search.local_gain_search(Phi, M, Q, starts=1, rng=seed)
        found = plane_search(Phi, M, Q, one.theta, rng=seed, rounds=6)
        assert found.gain <= exact * (1 + 1e-9)
        climbed.append(one.gain / exact)
        searched.append(found.gain / exact)
    assert np.sum(np.array(searched) > 0.999) > np.sum(
        np.array(climbed) > 0.999
    )
    assert np.mean(searched) > np.mean(climbed) + 0.1


def test_the_subspace_holds_weights_gradient_and_a_random_direction():
    """By hand: from e2 the only way up is e1, which the gradient names."""
    M = np.array([[1.0], [1.0], [0.0], [0.0]]) / np.sqrt(2)
    found = plane_search(
        np.eye(4), M, start=[0.1, 1.0, 0.0, 0.0], rng=3, rounds=1
    )
    # inside span(e1, e2, random) the best neuron is (1, 1, 0, 0)
    assert found.gains[0] == pytest.approx(1.1**2 / 2 / 1.01)
    assert found.gain == pytest.approx(1)
    assert found.plane_bounds == pytest.approx([1], abs=1e-9)


@pytest.mark.parametrize("seed", [1, 10])
def test_the_best_of_a_subspace_is_climbed_from(seed):
    """A start that no climb improves ends above its subspace's best."""
    Phi, M, Q = random_problem(seed, 5, n=14)
    start = local_search.climb_gain(np.ones(6), Phi, M, Q)
    found = plane_search(Phi, M, Q, start, rng=seed, rounds=1)
    assert found.gain > found.plane_bounds[0] * 1.02


def test_same_seed_same_answer_and_default_start():
    Phi, M, Q = random_problem(3, 4)
    a = plane_search(Phi, M, Q, rng=5, rounds=2)
    b = plane_search(Phi, M, Q, rng=np.random.default_rng(5), rounds=2)
    assert (a.theta == b.theta).all()
    local = local_search.local_gain_search(Phi, M, Q, starts=10, rng=5).gain
    assert a.gains[0] == pytest.approx(local)


@pytest.mark.parametrize(
    "change, name",
    [
        ({"rounds": 0}, "rounds"),
        ({"rounds": True}, "rounds"),
        ({"start": np.ones(3)}, "start"),
        ({"start": np.full(5, np.nan)}, "start"),
        ({"start": np.zeros(5)}, "start"),
        ({"Phi": np.zeros((6, 5))}, "Phi"),
        ({"M": np.ones((5, 1))}, "M"),
        ({"QH": np.ones((6, 1))}, "QH"),
        ({"rng": None}, "rng"),
    ],
)
def test_bad_input_is_named(change, name):
    rng = np.random.default_rng(0)
    good = {"Phi": rng.normal(size=(6, 5)), "M": np.eye(6)[:, :1]}
    with pytest.raises(ValueError, match=name):
        plane_search(**(good | change))
