"""One neuron: gates, gain, relaxed bounds, and what an active set allows."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import approx_fprime

from helpers.core.linalg import complement, orthonormal_basis
from helpers.core.tolerances import FINITE_DIFFERENCE
from helpers.spectral_alignment import (
    active_bounds,
    gating_patterns,
    graphs,
    local_search,
    neurons,
    spectra,
)

SEEDS = st.integers(0, 2**32 - 1)
F3_POINTS = np.array([[0, 0], [1, 0], [0, 1], [2, 1], [1, 3], [3, 2]], float)
PATH = np.array([[0.0, 1, 0], [1, 0, 1], [0, 1, 0]])


def relu(z):
    return np.maximum(z, 0.0)


def captured(H, U):
    Q = orthonormal_basis(H)
    return float(np.sum((U.T @ Q) ** 2))


def random_problem(seed, degenerate=True):
    """Features, low frequencies and captured features of a small graph."""
    rng = np.random.default_rng(seed)
    n, d = int(rng.integers(5, 16)), int(rng.integers(1, 4))
    X = rng.normal(size=(n, d))
    if degenerate and rng.random() < 0.4:
        X[-2:] = X[0]
    if degenerate and rng.random() < 0.3:
        X = np.round(X)
    L = graphs.graph_laplacian(graphs.rbf_graph(rng.normal(size=(n, 2)), 1.0))
    U = spectra.laplacian_eigenbasis(L, int(rng.integers(1, n - 1))).vectors
    Phi = np.column_stack([X, np.ones(n)])
    columns = [np.zeros((n, 0)), np.ones((n, 1)), Phi]
    H = columns[rng.integers(3)]
    if rng.random() < 0.5:
        H = np.column_stack([H, relu(Phi @ rng.normal(size=d + 1))])
    Q = orthonormal_basis(H)
    return rng, Phi, U, complement(Q, U), Q, np.asarray(L), H


def f3():
    W = graphs.rbf_graph(F3_POINTS, 1.0)
    U = spectra.laplacian_eigenbasis(graphs.graph_laplacian(W), 3).vectors
    return np.column_stack([F3_POINTS, np.ones(6)]), U


@settings(max_examples=60, deadline=None)
@given(SEEDS)
def test_gain_is_the_increase_of_the_captured_features(seed):
    rng, Phi, U, M, Q, _, H = random_problem(seed)
    h = relu(Phi @ rng.normal(size=Phi.shape[1]))
    increase = captured(np.column_stack([H, h]), U) - captured(H, U)
    if H.shape[1] == 0 and not h.any():
        increase = 0.0
    gain = neurons.marginal_gain(h, M, Q)
    assert gain == pytest.approx(increase, abs=1e-9)
    assert 0 <= gain <= np.linalg.norm(M, 2) ** 2 + 1e-12
    both = neurons.marginal_gain(np.column_stack([h, 7 * h]), M, Q)
    assert both == pytest.approx([gain, gain], abs=1e-12)


@settings(max_examples=60, deadline=None)
@given(SEEDS)
def test_inside_its_pattern_a_neuron_is_a_rayleigh_quotient(seed):
    rng, Phi, U, M, Q, _, _ = random_problem(seed)
    theta = rng.normal(size=Phi.shape[1])
    S = neurons.gating_pattern(Phi, theta)
    A, B = neurons.gating_pencil(Phi, S, M, Q)
    h = relu(Phi @ theta)
    assert theta @ A @ theta == pytest.approx(np.sum((M.T @ h) ** 2))
    assert theta @ B @ theta == pytest.approx(
        np.sum(complement(Q, h) ** 2), abs=1e-12
    )
    relaxed = neurons.relaxed_gain(Phi, S, M, Q)
    gain = neurons.marginal_gain(h, M, Q)
    assert gain <= relaxed.value + 1e-10
    if relaxed.value > 0:
        v = relaxed.direction
        assert neurons.marginal_gain(v, M, Q) == pytest.approx(relaxed.value)
        assert v == pytest.approx(S * (Phi @ relaxed.theta), abs=1e-9)
        found = neurons.realizable_direction(Phi, S, v, Q)
        if found is not None:
            reached = neurons.marginal_gain(relu(Phi @ found), M, Q)
            assert reached == pytest.approx(relaxed.value, abs=1e-7)


def test_relaxed_gain_without_features_is_a_principal_angle():
    Phi, U = f3()
    for S in gating_patterns.enumerate_gating_patterns(Phi):
        if S.any():
            Q = orthonormal_basis(Phi * S[:, None])
            expected = np.linalg.norm(U.T @ Q, 2) ** 2
            value = neurons.relaxed_gain(Phi, S, U).value
            assert value == pytest.approx(expected, abs=1e-12)


def test_rank_is_measured_before_the_projection():
    """A covered pattern offers nothing; its rounding noise must not."""
    Phi, U = f3()
    Q = orthonormal_basis(Phi)
    M = complement(Q, U)
    assert neurons.relaxed_gain(Phi, np.ones(6), M, Q).value == 0
    noise = Phi - Q @ (Q.T @ Phi)
    if np.linalg.norm(noise) > 0:
        naive = orthonormal_basis(noise)
        assert naive.shape[1] > 0
        assert np.linalg.norm(U.T @ naive) > 0.1


def test_realizable_direction_against_sampling():
    """Where the programme says no, no sample of the cone comes near."""
    yes = no = 0
    for seed in range(40):
        rng, Phi, U, M, Q, *_ = random_problem(seed, degenerate=False)
        S = neurons.gating_pattern(Phi, rng.normal(size=Phi.shape[1]))
        relaxed = neurons.relaxed_gain(Phi, S, M, Q)
        if relaxed.value == 0:
            continue
        found = neurons.realizable_direction(Phi, S, relaxed.direction, Q)
        if found is not None:
            side = np.where(S, 1, -1) * (Phi @ found)
            assert side.min() > -1e-8 * np.abs(side).max()
            yes += 1
            continue
        no += 1
        theta = rng.normal(size=(4000, Phi.shape[1]))
        Z = Phi @ theta.T
        Z = Z[:, ((Z > 0) == S[:, None]).all(axis=0)]
        if Z.shape[1]:
            best = neurons.marginal_gain(relu(Z), M, Q).max()
            assert best < relaxed.value
    assert yes >= 5 and no >= 5


@settings(max_examples=40, deadline=None)
@given(SEEDS)
def test_gradient_against_differences(seed):
    rng, Phi, U, M, Q, *_ = random_problem(seed, degenerate=False)
    theta = rng.normal(size=Phi.shape[1])
    near = np.abs(Phi @ theta).min() < 100 * FINITE_DIFFERENCE
    h = relu(Phi @ theta)
    size = np.linalg.norm(complement(Q, h))
    if near or size < 1e-2 * max(np.linalg.norm(h), 1e-9):
        return

    def gain(x):
        return neurons.marginal_gain(relu(Phi @ x), M, Q)

    expected = [
        (gain(theta + e) - gain(theta - e)) / (2 * FINITE_DIFFERENCE)
        for e in FINITE_DIFFERENCE * np.eye(theta.size)
    ]
    ours = neurons.marginal_gain_gradient(theta, Phi, M, Q)
    assert ours == pytest.approx(expected, rel=1e-4, abs=1e-5)
    assert ours @ theta == pytest.approx(0, abs=1e-10)


def test_gradient_against_scipy_once():
    Phi, U = f3()
    theta = np.array([0.3, -0.4, 0.2])

    def gain(x):
        return neurons.marginal_gain(relu(Phi @ x), U)

    expected = approx_fprime(theta, gain, 1e-7)
    ours = neurons.marginal_gain_gradient(theta, Phi, U)
    assert ours == pytest.approx(expected, abs=1e-5)


@pytest.mark.parametrize("n, cells", [(4, 14), (6, 32), (10, 92), (15, 212)])
def test_pattern_counts_in_general_position(n, cells):
    rng = np.random.default_rng(n)
    Phi = np.column_stack([rng.normal(size=(n, 2)), np.ones(n)])
    patterns = gating_patterns.enumerate_gating_patterns(Phi)
    assert (
        len(patterns) == cells == gating_patterns.count_gating_patterns(n, 3)
    )


@settings(max_examples=30, deadline=None)
@given(SEEDS, st.integers(1, 4), st.integers(1, 7), st.booleans())
def test_patterns_are_those_that_sampling_finds(seed, rank, n, rounded):
    rng = np.random.default_rng(seed)
    G = rng.normal(size=(n, rank))
    G = np.round(G) if rounded else G
    if not G.any():
        return
    patterns = gating_patterns.enumerate_gating_patterns(G)
    assert len(patterns) <= gating_patterns.count_gating_patterns(n, rank)
    Z = G @ rng.normal(size=(rank, 3000)) > 0
    # zero rows are never on; the rest is never on the boundary
    sampled = {tuple(z) for z in Z.T}
    listed = {tuple(p) for p in patterns}
    assert sampled <= listed
    assert len(listed) == len(patterns)
    if not rounded and rank <= min(n, 3):
        assert len(listed) == gating_patterns.count_gating_patterns(n, rank)
    nonzero = G.any(axis=1)
    assert {tuple(~np.array(p) & nonzero) for p in listed} == listed


def test_f3_has_thirty_cells():
    Phi, _ = f3()
    assert len(gating_patterns.enumerate_gating_patterns(Phi)) == 30
    assert gating_patterns.count_gating_patterns(6, 3) == 32


def test_patterns_are_feasible():
    """Each pattern found has an interior neuron: a linear programme."""
    rng = np.random.default_rng(3)
    G = np.round(rng.normal(size=(7, 3)) * 1.5)
    from scipy.optimize import linprog

    for S in gating_patterns.enumerate_gating_patterns(G):
        signed = np.where(S, 1, -1)[:, None] * G
        signed = signed[G.any(axis=1)]
        answer = linprog(
            [0, 0, 0],
            A_ub=-signed,
            b_ub=-np.ones(len(signed)),
            bounds=[(None, None)] * 3,
        )
        assert answer.status == 0


def test_local_searches_reach_the_known_maximum_and_are_lower_bounds():
    Phi, U = f3()
    Q = orthonormal_basis(Phi)
    M = complement(Q, U)
    for search in (
        local_search.local_gain_search,
        local_search.gating_fixed_point,
    ):
        result = search(Phi, M, Q, starts=40, rng=0)
        h = relu(Phi @ result.theta)
        assert np.linalg.norm(h) == pytest.approx(1)
        assert neurons.marginal_gain(h, M, Q) == pytest.approx(result.gain)
        assert result.gain <= 0.2290343419 + 1e-9
        assert result.gains.shape == (40,)
        assert result.gain == result.gains.max()
    best = local_search.local_gain_search(Phi, M, Q, starts=40, rng=0).gain
    assert best == pytest.approx(0.2290343419, abs=1e-8)
    again = local_search.local_gain_search(Phi, M, Q, starts=40, rng=0).gain
    assert best == again


@settings(max_examples=60, deadline=None)
@given(SEEDS)
def test_active_set_bounds(seed):
    rng, Phi, U, _, _, L, _ = random_problem(seed)
    n = len(L)
    A = rng.random(n) < 0.5
    A[rng.integers(n)] = True
    bounds = active_bounds.active_set_bounds(U, L, A)
    h = np.where(A, rng.random(n), 0.0)
    capture = np.sum((U.T @ h) ** 2) / (h @ h)
    slack = 1e-12 * np.linalg.norm(L, 2)
    assert capture <= bounds["capture"] + 1e-12
    assert bounds["capture"] <= bounds["leverage"] + 1e-12
    assert spectra.rayleigh_quotient(L, h) >= bounds["energy"] - slack
    assert bounds["energy"] <= bounds["interlacing"] + slack
    # both are attained, though not by neurons
    top = np.zeros(n)
    top[A] = np.linalg.svd(U[A])[0][:, 0]
    assert np.sum((U.T @ top) ** 2) == pytest.approx(bounds["capture"])
    lowest = np.zeros(n)
    lowest[A] = np.linalg.eigh(L[np.ix_(A, A)])[1][:, 0]
    assert spectra.rayleigh_quotient(L, lowest) == pytest.approx(
        bounds["energy"], abs=1e-9
    )


def test_f1_active_set():
    L = graphs.graph_laplacian(PATH)
    U = spectra.laplacian_eigenbasis(L, 2).vectors
    bounds = active_bounds.active_set_bounds(U, L, [False, False, True])
    assert bounds == pytest.approx(
        {"capture": 5 / 6, "leverage": 5 / 6, "energy": 1, "interlacing": 3}
    )
    assert neurons.marginal_gain([0, 0, 1.0], U) == pytest.approx(5 / 6)
    Phi = np.column_stack([[-1.0, 0, 1], np.ones(3)])
    Q = orthonormal_basis(Phi)
    full = spectra.laplacian_spectrum(L)[1]
    assert neurons.marginal_gain(
        relu(Phi @ [1, 0]), complement(Q, full), Q
    ) == pytest.approx(1, abs=1e-12)


@pytest.mark.parametrize("kind", ["combinatorial", "symmetric"])
def test_nodal_domains_obey_the_discrete_theorem(kind):
    for seed in range(15):
        rng = np.random.default_rng(seed)
        W = graphs.knn_graph(rng.normal(size=(30, 2)), 5)
        lam, U = spectra.laplacian_spectrum(graphs.graph_laplacian(W, kind))
        if lam[1] < 1e-9:
            continue
        for k in range(30):
            tie = np.abs(lam - lam[k]) < 1e-9
            first = int(np.flatnonzero(tie)[0]) + 1
            allowed = first + int(tie.sum()) - 1
            assert active_bounds.nodal_domains(W, U[:, k]) <= allowed


def test_conventions():
    Phi, U = f3()
    Q = orthonormal_basis(Phi)
    M = complement(Q, U)
    assert neurons.marginal_gain(np.zeros(6), U) == 0
    assert neurons.marginal_gain(Phi @ [1, 2, 3], M, Q) == 0
    dead = np.array([0.0, 0, -1])
    assert not neurons.marginal_gain_gradient(dead, Phi, M, Q).any()
    tiny = neurons.marginal_gain(1e-200 * np.ones(6), U)
    assert tiny == pytest.approx(1)
    first, sign = gating_patterns.parallel_classes(
        [[0, 1], [0, -2], [0, 0], [1, 0]]
    )
    assert first.tolist() == [0, 0, 2, 3]
    assert sign.tolist() == [1, -1, 0, 1]
    assert active_bounds.nodal_domains(PATH, np.zeros(3)) == 0


@pytest.mark.parametrize(
    "call, name",
    [
        (lambda P, U: neurons.gating_pattern(P, [1.0]), "theta"),
        (lambda P, U: neurons.gating_pattern(P * np.nan, [1, 1, 1]), "Phi"),
        (lambda P, U: neurons.gating_pattern(P[:, :0], []), "Phi"),
        (lambda P, U: neurons.relaxed_gain(P, [2] * 6, U), "S"),
        (lambda P, U: neurons.relaxed_gain(P, [1] * 5, U), "S"),
        (lambda P, U: neurons.gating_pencil(P, [1] * 6, U[:5]), "M"),
        (lambda P, U: neurons.gating_pencil(P, [1] * 6, U[:, :0]), "M"),
        (lambda P, U: neurons.marginal_gain(P[:, 0], U, U), "M must be orth"),
        (lambda P, U: neurons.marginal_gain(P[:, 0], U, 2 * U), "QH"),
        (lambda P, U: neurons.marginal_gain(np.ones(5), U), "M"),
        (lambda P, U: neurons.marginal_gain(np.full(6, np.inf), U), "h"),
        (lambda P, U: local_search.local_gain_search(0 * P, U), "Phi"),
        (
            lambda P, U: local_search.local_gain_search(P, U, starts=0),
            "starts",
        ),
        (
            lambda P, U: neurons.realizable_direction(P, [1] * 6, [0] * 6),
            "v must",
        ),
        (lambda P, U: gating_patterns.count_gating_patterns(0, 3), "n must"),
        (lambda P, U: gating_patterns.count_gating_patterns(3, 1.5), "rank"),
        (
            lambda P, U: active_bounds.active_set_bounds(U, np.eye(6), []),
            "active",
        ),
        (
            lambda P, U: active_bounds.active_set_bounds(U, np.eye(6), [6]),
            "active",
        ),
        (
            lambda P, U: active_bounds.active_set_bounds(U, np.eye(5), [1]),
            "L must",
        ),
    ],
)
def test_bad_input_is_named(call, name):
    with pytest.raises(ValueError, match=name):
        call(*f3())
