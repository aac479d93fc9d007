"""What a climb and a fixed point promise; how good they are is measured with
the exact search."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from helpers.core.linalg import complement, orthonormal_basis
from helpers.spectral_alignment.local_search import (
    climb_gain,
    gating_fixed_point,
    local_gain_search,
)
from helpers.spectral_alignment.neurons import (
    gating_pattern,
    marginal_gain,
    realizable_direction,
    reduced_features,
    relaxed_gain,
)

SEEDS = st.integers(0, 2**32 - 1)


def relu(z):
    return np.maximum(z, 0.0)


def problem(seed, n=9, K=2):
    rng = np.random.default_rng(seed)
    Phi = np.column_stack([rng.normal(size=(n, 2)), np.ones(n)])
    Q = orthonormal_basis(np.ones((n, 1)))
    M = complement(Q, np.linalg.qr(rng.normal(size=(n, K)))[0])
    return rng, Phi, M, Q


@given(SEEDS)
@settings(max_examples=40, deadline=None)
def test_a_climb_does_not_descend(seed):
    rng, Phi, M, Q = problem(seed)
    theta = rng.normal(size=3)
    if seed % 3 == 0:  # on the boundary of two samples' half spaces
        theta = np.cross(Phi[0], Phi[1])
    before = marginal_gain(relu(Phi @ theta), M, Q)
    after = marginal_gain(relu(Phi @ climb_gain(theta, Phi, M, Q)), M, Q)
    assert after >= before * (1 - 1e-12)


def test_a_climb_by_hand():
    """Two samples, the first wanted: the second must be switched off."""
    M = np.array([[1.0], [0.0]])
    end = climb_gain([1.0, 0.5], np.eye(2), M)
    assert marginal_gain(relu(end), M) == pytest.approx(1)
    # and where nothing is on there is no slope
    stuck = climb_gain([-1.0, -1.0], np.eye(2), M)
    assert marginal_gain(relu(stuck), M) == 0


def test_the_fixed_point_tries_both_signs_of_the_relaxed_maximiser():
    """Nothing captured: where the maximiser or its opposite is a neuron of
    the start's pattern, the first step reaches it, whatever its sign."""
    signs = {1: 0, -1: 0}
    for seed in range(60):
        rng, Phi, *_ = problem(seed)
        G, _ = reduced_features(Phi)
        start = np.random.default_rng(seed).normal(size=(1, 3))[0]
        S = gating_pattern(G, start)
        if S.sum() < 3:  # several neurons would have the maximiser's values
            continue
        # a target that is nearly the neuron of the start
        M = (relu(G @ start) * rng.uniform(0.95, 1.05, size=9))[:, None]
        M = M / np.linalg.norm(M)
        relaxed = relaxed_gain(G, S, M)
        if realizable_direction(G, S, relaxed.direction) is None:
            continue
        end = gating_fixed_point(
            Phi, M, starts=1, rng=np.random.default_rng(seed)
        )
        assert end.gain >= relaxed.value * (1 - 1e-9)
        signs[1 if relaxed.direction.sum() > 0 else -1] += 1
    assert min(signs.values()) >= 3


def test_more_starts_are_never_worse():
    _, Phi, M, Q = problem(5)
    for search in (local_gain_search, gating_fixed_point):
        few = search(Phi, M, Q, starts=3, rng=7)
        many = search(Phi, M, Q, starts=12, rng=7)
        assert many.gains[:3] == pytest.approx(few.gains)
        assert many.gain >= few.gain
