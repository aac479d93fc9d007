"""The objective for choosing a graph: bounds, invariances, degeneracies."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from helpers.spectral_alignment import coverage, graph_choice, graphs, spectra
from helpers.spectral_alignment.greedy import local_oracle, random_oracle
from helpers.spectral_alignment.sample_sets import sample_set

seeds = st.integers(0, 2**32 - 1)


def random_case(seed):
    rng = np.random.default_rng(seed)
    n = int(rng.integers(6, 16))
    X = rng.normal(size=(n, 2))
    W = graphs.rbf_graph(X, 0.5 + rng.random())
    K = int(rng.integers(1, n - 1))
    return W, rng.normal(size=n), np.column_stack([X, np.ones(n)]), K, rng


def test_by_hand_on_the_path():
    """f = u_3, K = 2, no neuron: nothing of it is low, all of it missed."""
    path = np.array([[0, 1, 0], [1, 0, 1], [0, 1, 0]])
    Phi = np.array([[-1.0, 1.0], [0.0, 1.0], [1.0, 1.0]])
    f = np.array([1.0, -2.0, 1.0])
    none = graph_choice.graph_selection_objective(path, f, Phi, 2, 0)
    assert (none.J, none.high, none.gap) == pytest.approx((1, 1, 0), abs=1e-9)
    assert none.J_energy == pytest.approx(1.0)  # E(f)^2 = 18, lambda_3 = 3
    assert none.residual == pytest.approx(1.0)
    slope = graph_choice.graph_selection_objective(path, [-1, 0, 1], Phi, 1, 0)
    # K = 1: the constant is covered, the slope is high, E^2 = 2 = |f|^2
    assert (slope.J, slope.J_energy) == pytest.approx((1, 1))
    assert slope.residual < 1e-9


@given(seeds, st.sampled_from(graphs.KINDS), st.integers(0, 3))
def test_the_objective_bounds_the_residual(seed, kind, t):
    W, f, Phi, K, rng = random_case(seed)
    found = graph_choice.graph_selection_objective(
        W, f, Phi, K, t, kind, random_oracle(rng)
    )
    assert found.residual <= found.J + 1e-9
    assert found.J <= found.J_energy + 1e-9
    assert found.J_least <= found.J + 1e-9
    Z = np.column_stack([Phi, np.maximum(Phi @ found.theta.T, 0)])
    L = graphs.graph_laplacian(W, kind)
    U = spectra.laplacian_eigenbasis(L, K).vectors
    assert found.gap == pytest.approx(coverage.coverage_gap(Z, U), abs=1e-9)


@given(seeds, st.sampled_from(graphs.KINDS), st.integers(0, 3))
def test_the_parts_of_the_objective_from_their_definitions(seed, kind, t):
    """By a full eigendecomposition, and sines as singular values."""
    W, f, Phi, K, rng = random_case(seed)
    found = graph_choice.graph_selection_objective(
        W, f, Phi, K, t, kind, random_oracle(rng)
    )
    lam, U = np.linalg.eigh(graphs.graph_laplacian(W, kind))
    size = np.linalg.norm(f)
    low, high = np.split(U.T @ f / size, [K])
    low, high = np.linalg.norm(low), np.linalg.norm(high)
    Q = np.linalg.qr(Phi)[0]
    eta = np.linalg.svd(U[:, :K] - Q @ (Q.T @ U[:, :K]), compute_uv=False)
    least = eta[t] if t < len(eta) else 0.0
    if lam[K] - lam[K - 1] > 1e-6:  # else the choice of U_K matters
        assert found.high == pytest.approx(high, abs=1e-7)
        assert found.J == pytest.approx(found.gap * low + high, abs=1e-7)
        assert found.J_least == pytest.approx(least * low + high, abs=1e-7)
    smooth = np.sqrt(f @ graphs.graph_laplacian(W, kind) @ f / lam[K]) / size
    assert found.J_energy == pytest.approx(found.gap + smooth)


@given(seeds, st.floats(1e-3, 1e3))
def test_weights_have_no_unit(seed, factor):
    W, f, Phi, K, _ = random_case(seed)
    found = [
        graph_choice.graph_selection_objective(
            w, f, Phi, K, 2, "combinatorial", random_oracle(1)
        )
        for w in (W, factor * W)
    ]
    assert found[0].J == pytest.approx(found[1].J)
    assert found[0].J_energy == pytest.approx(found[1].J_energy)


def test_exact_greedy_is_at_least_as_good_as_local():
    X, f = sample_set("moons", 40, 1)
    W, Phi = graphs.knn_graph(X, 6), np.column_stack([X, np.ones(40)])
    exact = graph_choice.graph_selection_objective(W, f, Phi, 4, 1)
    local = graph_choice.graph_selection_objective(
        W, f, Phi, 4, 1, "combinatorial", local_oracle(5)
    )
    U = spectra.laplacian_eigenbasis(graphs.graph_laplacian(W), 4).vectors
    deficits = [
        coverage.coverage_deficit(
            np.column_stack([Phi, np.maximum(Phi @ x.theta.T, 0)]), U
        )
        for x in (exact, local)
    ]
    assert deficits[0] <= deficits[1] + 1e-9


def test_a_graph_built_from_the_labels_makes_the_energy_term_vanish():
    """w_ij = [f_i = f_j]: zero energy, and coverage means learning f."""
    X, f = sample_set("moons", 40, 1)
    W = (f[:, None] == f).astype(float) - np.eye(40)
    Phi = np.column_stack([X, np.ones(40)])
    found = graph_choice.graph_selection_objective(W, f, Phi, 2, 0)
    assert found.J_energy == pytest.approx(found.gap) and found.high < 1e-9
    assert found.J == pytest.approx(found.gap)


def test_no_gap_in_the_spectrum_makes_the_energy_bound_infinite():
    cliques = np.kron(np.eye(3), np.ones((4, 4)) - np.eye(4))
    f = np.repeat([1.0, -1.0, 0.0], 4)
    found = graph_choice.graph_selection_objective(
        cliques, f, np.ones((12, 1)), 2, 0
    )
    assert found.J_energy == np.inf and found.J <= 1 + 1


@given(seeds)
def test_monotone_in_k_for_fixed_features(seed):
    W, f, Phi, _, _ = random_case(seed)
    _, U = spectra.laplacian_spectrum(graphs.graph_laplacian(W))
    K = range(1, len(f))
    gaps = [coverage.coverage_gap(Phi, U[:, :k]) for k in K]
    high = [np.linalg.norm(spectra.low_pass_split(U[:, :k], f)[1]) for k in K]
    assert (np.diff(gaps) >= -1e-9).all() and (np.diff(high) <= 1e-9).all()


@given(seeds, st.floats(0, 1))
def test_surrogate_is_quasiconvex_and_an_upper_bound(seed, a):
    rng = np.random.default_rng(seed)
    n = int(rng.integers(5, 12))
    X, f, K = (
        rng.normal(size=(n, 2)),
        rng.normal(size=n),
        rng.integers(1, n - 1),
    )
    W = [graphs.rbf_graph(X, 0.7), graphs.rbf_graph(X, 2.0)]
    ends = [graph_choice.mixture_surrogate(w, f, int(K)) for w in W]
    mixed = (1 - a) * W[0] + a * W[1]
    value = graph_choice.mixture_surrogate(mixed, f, int(K))
    assert value <= max(ends) * (1 + 1e-9)
    L = graphs.graph_laplacian(mixed)
    lam = spectra.laplacian_eigenbasis(L, int(K)).eigenvalues[-1]
    smooth = spectra.dirichlet_energy(L, f) / (lam * (f @ f))
    assert value >= smooth * (1 - 1e-9)
    if K == 1:
        assert value == pytest.approx(2 * smooth)


def test_surrogate_of_a_graph_in_pieces_is_infinite():
    cliques = np.kron(np.eye(3), np.ones((2, 2)) - np.eye(2))
    assert graph_choice.mixture_surrogate(cliques, np.arange(6.0), 2) == np.inf


def test_held_out_error_of_an_exact_rule():
    P = np.column_stack([np.linspace(-1, 1, 9), np.ones(9)])
    Q = np.column_stack([[-0.5, 0.25, 3.0], np.ones(3)])
    theta = [[1.0, -0.2]]

    def rule(x):
        return 2 * np.maximum(x - 0.2, 0) - x

    error = graph_choice.held_out_error(
        P, rule(P[:, 0]), theta, Q, rule(Q[:, 0])
    )
    assert error < 1e-9
    assert (
        graph_choice.held_out_error(
            P, rule(P[:, 0]), np.zeros((0, 2)), Q, rule(Q[:, 0])
        )
        > 0.1
    )


def test_held_out_error_by_hand():
    """The mean 1 of the fit against 3 and 4: sqrt(2^2 + 3^2) / 5."""
    one = np.ones((2, 1))
    found = graph_choice.held_out_error(
        one, [0.0, 2.0], np.zeros((0, 1)), one, [3.0, 4.0]
    )
    assert found == pytest.approx(np.sqrt(13) / 5)


def test_outcome_is_reproducible_and_the_target_beats_random_neurons():
    args = ("circles", "random", 0.0, "combinatorial", 1, 4, 3)
    found = graph_choice.choice_outcome(*args)
    again = graph_choice.choice_outcome(*args)
    assert found["residual"] == again["residual"] and np.isnan(found["J"])
    best = graph_choice.choice_outcome(
        "circles", "target", 0.0, "combinatorial", 1, 4, 3
    )
    assert best["residual"] < found["residual"] <= 1


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (
            lambda W, P: graph_choice.graph_selection_objective(
                W, [0, 0, 0], P, 1, 0
            ),
            "f must be finite",
        ),
        (
            lambda W, P: graph_choice.graph_selection_objective(
                W, [1, 2, 3], P, 3, 0
            ),
            "K must be",
        ),
        (
            lambda W, P: graph_choice.mixture_surrogate(W, [1, 2, 3], 3),
            "K must",
        ),
        (
            lambda W, P: graph_choice.mixture_surrogate(W, [0, 0, 0], 1),
            "f must",
        ),
        (
            lambda W, P: graph_choice.choice_outcome(
                "moons", "all", 0, "symmetric", 1, 1, 0
            ),
            "graph must be",
        ),
    ],
)
def test_bad_input_names_the_argument(call, message):
    W = np.ones((3, 3)) - np.eye(3)
    Phi = np.column_stack([[-1.0, 0, 1], np.ones(3)])
    with pytest.raises(ValueError, match=message):
        call(W, Phi)
