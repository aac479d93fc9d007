"""The face theorem on small cones."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import nnls

from helpers.core.linalg import complement, orthonormal_basis
from helpers.spectral_alignment import (
    gating_patterns,
    graphs,
    neurons,
    spectra,
)
from helpers.spectral_alignment.cone_faces import (
    extreme_rays,
    pattern_maximum,
    simplicial_cone_maximum,
)
from helpers.spectral_alignment.exact_search import maximal_gain_neuron

SEEDS = st.integers(0, 2**32 - 1)


def random_pencil(rng, singular):
    """Numerators and denominators; singular ones share their kernel."""
    C, E = rng.normal(size=(2, 3)), rng.normal(size=(3, 3))
    if singular:
        q = np.linalg.qr(rng.normal(size=(3, 3)))[0][:, :2]
        C, E = C @ q @ q.T, E @ q @ q.T
    return C.T @ C, E.T @ E


def test_by_hand():
    inside = simplicial_cone_maximum([[2.0, 1], [1, 2]], np.eye(2), np.eye(2))
    assert inside.value == pytest.approx(3) and inside.face == (0, 1)
    assert inside.point[0] == pytest.approx(inside.point[1])
    edge = simplicial_cone_maximum([[2.0, -1], [-1, 1]], np.eye(2), np.eye(2))
    assert edge.value == 2 and edge.face == (0,)
    assert simplicial_cone_maximum(np.eye(2), 0 * np.eye(2), np.eye(2)) == (
        0,
        pytest.approx(np.zeros(2)),
        (),
    )


@settings(max_examples=60, deadline=None)
@given(SEEDS, st.booleans())
def test_attained_and_nothing_sampled_is_better(seed, singular):
    rng = np.random.default_rng(seed)
    A, B = random_pencil(rng, singular)
    rays = rng.normal(size=(3, 3))
    found = simplicial_cone_maximum(A, B, rays)
    x = found.point
    assert x @ A @ x / (x @ B @ x) == pytest.approx(found.value, rel=1e-6)
    assert nnls(rays, x)[1] < 1e-9 * max(np.linalg.norm(x), 1)
    X = rays @ rng.exponential(size=(3, 20_000)) ** 3
    below = np.sum(X * (B @ X), axis=0)
    kept = below > 1e-6 * np.sum(X**2, axis=0) * np.trace(B)
    sampled = np.sum(X * (A @ X), axis=0)[kept] / below[kept]
    assert sampled.max() <= found.value * (1 + 1e-6)


@settings(max_examples=30, deadline=None)
@given(SEEDS)
def test_for_one_target_it_is_a_projection(seed):
    """A = mm', B = I: Moreau and nonnegative least squares."""
    rng = np.random.default_rng(seed)
    m, rays = rng.normal(size=3), rng.normal(size=(3, 3))
    expected = max(
        float(np.sum((rays @ nnls(rays, s * m)[0]) ** 2)) for s in (1, -1)
    )
    found = simplicial_cone_maximum(np.outer(m, m), np.eye(3), rays)
    assert found.value == pytest.approx(expected, abs=1e-9)


def test_each_dimension_of_faces_is_needed():
    needed = set()
    for seed in range(40):
        rng = np.random.default_rng(seed)
        A, B = random_pencil(rng, False)
        needed.add(len(simplicial_cone_maximum(A, B, np.eye(3)).face))
    assert needed == {1, 2, 3}
    A = [[2.0, 1], [1, 2]]
    only = simplicial_cone_maximum(A, np.eye(2), np.eye(2), dimensions=[1])
    assert only.value == 2


@pytest.mark.parametrize(
    "change, name",
    [
        ({"A": np.eye(3)}, "A"),
        ({"B": np.full((2, 2), np.nan)}, "B"),
        ({"A": [[0.0, 1], [0, 0]]}, "A must be symmetric"),
        ({"rays": np.ones((2, 2))}, "rays"),
        ({"rays": np.ones(2)}, "rays"),
    ],
)
def test_bad_input_is_named(change, name):
    good = {"A": np.eye(2), "B": np.eye(2), "rays": np.eye(2)}
    with pytest.raises(ValueError, match=name):
        simplicial_cone_maximum(**(good | change))


@settings(max_examples=20, deadline=None)
@given(SEEDS)
def test_rays_generate_the_cone(seed):
    rng = np.random.default_rng(seed)
    F = np.column_stack([rng.normal(size=(7, 2)).round(1), np.ones(7)])
    if np.linalg.matrix_rank(F) < 3:
        return
    theta = rng.normal(size=3)
    S = neurons.gating_pattern(F, theta)
    rays = extreme_rays(F, S)
    assert (np.where(S, 1, -1)[:, None] * (F @ rays)).min() > -1e-8
    assert nnls(rays, theta)[1] < 1e-7
    distinct = np.unique(rays.round(7), axis=1)
    assert distinct.shape == rays.shape


@settings(max_examples=10, deadline=None)
@given(SEEDS)
def test_the_best_pattern_is_the_exact_maximum(seed):
    rng = np.random.default_rng(seed)
    F = np.column_stack([rng.normal(size=(6, 2)), np.ones(6)])
    U = np.linalg.qr(rng.normal(size=(6, 2)))[0]
    Q = orthonormal_basis(np.ones((6, 1)))
    M = complement(Q, U)
    each = [
        pattern_maximum(F, S, M, Q)
        for S in gating_patterns.enumerate_gating_patterns(F)
    ]
    exact = maximal_gain_neuron(F, M, Q).gain
    assert max(each) == pytest.approx(exact, abs=1e-8)


def test_f3_is_attained_in_eight_closed_cones():
    six = np.array([[0, 0], [1, 0], [0, 1], [2, 1], [1, 3], [3, 2]], float)
    L = graphs.graph_laplacian(graphs.rbf_graph(six, 1.0))
    U = spectra.laplacian_eigenbasis(L, 3).vectors
    F = np.column_stack([six, np.ones(6)])
    Q = orthonormal_basis(F)
    M = complement(Q, U)
    attained = [
        set(np.flatnonzero(S) + 1)
        for S in gating_patterns.enumerate_gating_patterns(F)
        if pattern_maximum(F, S, M, Q) > 0.2290343419 - 1e-8
    ]
    four = [{3, 5}, {3, 5, 6}, {2, 4, 6}, {2, 4, 5, 6}]
    expected = four + [set(range(1, 7)) - s for s in four]
    assert sorted(map(sorted, attained)) == sorted(map(sorted, expected))


@pytest.mark.parametrize(
    "Phi, S, name",
    [
        (np.eye(2), [1, 0], "Phi"),
        (np.full((3, 3), np.nan), [1, 0, 0], "Phi"),
        (np.ones((4, 3)), [1, 0, 0, 0], "rank 3"),
        (np.eye(3), [1, 0], "S"),
        (np.eye(3), [1, 0, 2], "S"),
    ],
)
def test_bad_rays_are_named(Phi, S, name):
    with pytest.raises(ValueError, match=name):
        extreme_rays(Phi, S)


def test_nonnegative_least_squares_must_not_see_rounding():
    """A column that is zero up to rounding gets an absurd weight, and with it
    an improvement that is not there; why covered rays are dropped first."""
    rng = np.random.default_rng(0)
    rays, target = np.abs(rng.normal(size=(8, 3))), rng.normal(size=8)
    rounding = np.zeros((8, 1))
    rounding[2] = -1e-16
    honest = nnls(rays, target)[1]
    weights, fooled = nnls(np.c_[rays, rounding], target)
    assert weights[-1] > 1e12 and fooled < honest - 0.01
