"""Bad inputs by name, where they meet the larger functions.

Their own modules' tests have the rest. What is here: more components than
frequencies, nodes of degree zero, as many frequencies as samples, a split
eigenvalue, samples that agree, dependent columns, and what fuzzing found.
"""

import warnings

import numpy as np
import pytest

from helpers.spectral_alignment import (
    active_bounds,
    block_norms,
    census,
    clusters,
    coverage,
    exact_search,
    gating_patterns,
    graph_choice,
    graphs,
    greedy,
    leverage,
    norm_experiments,
    partitions,
    sample_sets,
    sparse_neurons,
    spectra,
    variation_norms,
)

PAIRS = np.kron(np.eye(2), [[0, 1], [1, 0]])  # two components
LONELY = np.pad([[0, 1], [1, 0]], (0, 1))  # the last node has no edge
COPIES = np.array([[0.0, 1], [0, 1], [1, 1]])  # samples 1 and 2 agree
SPIKE = np.array([1.0, 0, 0])


def summary(W, kind="combinatorial", K=1):
    n = len(W)
    return census.summarize_graph(
        W, kind, K, np.arange(n) + 1.0, np.ones((n, 1))
    )


def objective(W, kind="combinatorial", K=1):
    n = len(W)
    line = np.column_stack([np.arange(n), np.ones(n)])
    return graph_choice.graph_selection_objective(
        W, np.arange(n) + 1.0, line, K, 0, kind
    )


def surrogate(W, kind="combinatorial", K=1):
    return graph_choice.mixture_surrogate(W, np.arange(len(W)) + 1.0, K)


def test_fewer_frequencies_than_components_have_no_bound_from_the_energy():
    found = summary(PAIRS)
    assert (found.components, found.last, found.following) == (2, 0, 0)
    assert np.isnan(found.smoothness) and not found.least_leverage.any()
    assert objective(PAIRS).J_energy == np.inf
    assert np.isfinite(objective(PAIRS).J)
    assert surrogate(PAIRS) == np.inf
    assert np.isfinite(
        [objective(PAIRS, K=2).J_energy, surrogate(PAIRS, K=2)]
    ).all()
    with pytest.raises(ValueError, match="following"):
        census.leverage_lower_bound(PAIRS, 0.0)
    with pytest.raises(ValueError, match="next_eigenvalue"):
        spectra.high_frequency_bound(PAIRS, np.ones(4), 0.0)


@pytest.mark.parametrize("call", [summary, objective])
def test_a_node_of_degree_zero_is_refused_for_the_symmetric_kind(call):
    with pytest.raises(ValueError, match=r"1 node\(s\) of W .* first \[2\]"):
        call(LONELY, "symmetric")
    call(LONELY)  # and is a component for the other


@pytest.mark.parametrize("call", [summary, objective, surrogate])
@pytest.mark.parametrize("K", [3, 4, 0, 1.5, np.nan, np.inf])
def test_as_many_frequencies_as_samples_are_refused(call, K):
    with pytest.raises(ValueError, match=r"K must .*1\.\.2"):
        call(np.ones((3, 3)) - np.eye(3), K=K)


def test_a_split_eigenvalue_is_flagged_with_its_ratio():
    cycle = np.roll(np.eye(6), 1, axis=1)
    L = graphs.graph_laplacian(cycle + cycle.T)
    for solver in ("dense", "shift_invert"):
        with pytest.warns(
            spectra.PoorlySeparatedWarning,
            match=r"lambda_2 = lambda_3 = 1 \(gap ratio 1\).*if_tied",
        ) as heard:
            info = spectra.laplacian_eigenbasis(L, 2, solver).info
        assert heard[0].filename == __file__
        assert info.poorly_separated and info.gap_ratio == pytest.approx(1)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        spectra.laplacian_eigenbasis(L, 2, if_tied="ignore")
        assert not spectra.laplacian_eigenbasis(L, 3).info.poorly_separated
    with pytest.raises(ValueError, match="if_tied must be 'warn' or"):
        spectra.laplacian_eigenbasis(L, 2, if_tied="hide")


def test_near_ties_are_flagged_and_do_not_warn():
    path = np.diag([1.0, 1.02], 1)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        triangle = path + path.T
        triangle[0, 2] = triangle[2, 0] = 1.0
        L = graphs.graph_laplacian(triangle)
        info = spectra.laplacian_eigenbasis(L, 2).info
    assert 1 < info.gap_ratio < 1.05 and info.poorly_separated


def test_samples_that_agree_cannot_be_told_apart():
    trace = greedy.greedy_coverage(COPIES, SPIKE[:, None], 3)
    assert trace.deficit[-1] == pytest.approx(1 / 2)  # half of the spike
    price = variation_norms.variation_norm_bounds(COPIES, SPIKE)
    assert price.lower == price.upper == np.inf
    proof = block_norms.dual_bound
    # orthogonal to every neuron, and not to the spike
    assert proof(COPIES, SPIKE, np.array([1.0, -1, 0])) == np.inf
    # nor does it see what neurons reach
    assert proof(COPIES, np.ones(3), np.array([1.0, -1, 0])) == 0


def test_dependent_and_dead_columns_change_nothing():
    Phi = np.array([[-1.0, 1], [0, 1], [1, 1]])
    wide = np.column_stack([Phi, np.zeros(3), 2 * Phi])
    search = exact_search.maximal_gain_neuron
    M = np.array([[1.0], [-2], [1]]) / np.sqrt(6)
    assert search(wide, M).gain == pytest.approx(search(Phi, M).gain)
    readout = coverage.least_squares_readout
    twice = np.array([[1.0, 1, 0], [2, 2, 0]])
    assert readout(twice, [2.0, 4]).coefficients == pytest.approx([1, 1, 0])


@pytest.mark.parametrize(
    ("call", "arguments", "message"),
    [
        (leverage.sketched_leverage_scores, (np.zeros((3, 3)), 1), "edge"),
        (
            leverage.sketched_leverage_scores,
            (NAN := np.eye(3) * np.nan, 1),
            "L must be f",
        ),
        (census.leverage_lower_bound, (NAN, 1.0), "L must be finite"),
        (clusters.cluster_frequency_bound, (NAN, [0, 1, 1], 1.0), "L must"),
        (clusters.indicator_basis, ([0.0, np.nan],), "labels"),
        (coverage.ky_fan_directions, (NAN, np.eye(3), 1), "Phi must be f"),
        (census.standard_graph, (np.ones((12, 1)), "Gaussian"), "copies"),
        (census.standard_graph, (np.ones((12, 1)), "radius"), "copies"),
        (partitions.separating_direction, (np.eye(3), 0, 1, 0.9), "H must"),
        (block_norms.dual_bound, (COPIES, SPIKE, SPIKE, NAN), "H0 must"),
        (spectra.fix_signs, (NAN,), "U must be a finite"),
        (spectra.low_pass_split, (2 * np.eye(2), [1, 1]), "UK must"),
        (active_bounds.nodal_domains, (np.ones((2, 3)), [1, 1]), "W must"),
        (norm_experiments.near_pair, (np.eye(2), 2, [1, 0], 1.0), "i must"),
        (norm_experiments.moons_problem, (10,), "n must"),
        (
            graph_choice.held_out_error,
            (COPIES, SPIKE, [[1.0, 0]], COPIES, 0 * SPIKE),
            "f_new must",
        ),
        (
            gating_patterns.count_gating_patterns,
            (np.inf, 1),
            "n must be a whole",
        ),
        (sample_sets.sample_set, ("moons", np.nan), "n must be a whole"),
    ],
)
def test_what_fuzzing_found_is_named_now(call, arguments, message):
    with pytest.raises(ValueError, match=message):
        call(*arguments)


def test_a_neuron_that_is_off_captures_nothing():
    found = sparse_neurons.sparse_layers(
        np.ones((4, 1)), np.eye(4)[:, :1], 0.5, width=1, count=2, layers=1
    )
    assert found.alone.tolist() == [0, 0]
    assert found.captured == pytest.approx(1 / 4)  # the constant is left
