"""What the stored runs measure, layers without biases, and the runs."""

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from helpers.core.linalg import orthonormal_basis
from helpers.spectral_alignment import (
    coverage,
    graphs,
    layers,
    spectra,
    training_experiments,
)
from helpers.sweep import load_results

DATA = Path(__file__).parents[3] / "book/data"
NETS = DATA / "training_coverage.parquet"
GREEDY = DATA / "greedy_against_random.parquet"


def rings(m, K, ratio=0.5):
    """Two disjoint rings and their lowest frequencies, in closed form."""
    X = training_experiments.two_rings(m, ratio)
    angles = 2 * np.pi * np.arange(m) / m
    waves = [np.ones(m)]
    for k in range(1, K // 4 + 1):
        waves += [np.cos(k * angles), np.sin(k * angles)]
    V = np.array(waves).T[:, : K // 2]
    V /= np.linalg.norm(V, axis=0)
    return X, np.kron(np.eye(2), V)


def test_closed_form_of_the_rings_spans_the_lowest_frequencies():
    m = 12
    W = np.zeros((m, m))
    step = np.arange(m)
    W[step, (step + 1) % m] = W[(step + 1) % m, step] = 1
    L = graphs.graph_laplacian(np.kron(np.eye(2), W))
    UK = spectra.laplacian_eigenbasis(L, 6).vectors
    _, closed = rings(m, 6)
    assert coverage.coverage_gap(closed, UK) < 1e-10


@given(
    seed=st.integers(0, 10**6),
    m=st.integers(8, 16),
    half=st.sampled_from([1, 3, 5]),
    ratio=st.floats(0.2, 0.9),
    depth=st.integers(1, 3),
)
@settings(max_examples=40, deadline=None)
def test_without_biases_half_of_the_rings_is_out_of_reach(
    seed, m, half, ratio, depth
):
    """N_K <= K / 2 + 1 at any depth and width, and s_K = 1 from K = 6."""
    X, UK = rings(m, 2 * half, ratio)
    net = layers.random_layers(2, [40] * depth, seed, bias_scale=0.0)
    N, s = training_experiments.layer_coverage(X, net, UK)
    assert (N <= half + 1 + 1e-9).all()
    if half > 1:
        assert s == pytest.approx(1, abs=1e-9)


def test_the_limit_of_the_rings_is_attained_and_biases_pass_it():
    X, UK = rings(12, 6)
    bare = layers.random_layers(2, [60], 0, bias_scale=0.0)
    N, _ = training_experiments.layer_coverage(X, bare, UK)
    assert N[0] == pytest.approx(4, abs=1e-9)
    for scale in (1.0, 1e-4):  # however small
        net = layers.random_layers(2, [60], 0, bias_scale=scale)
        N, s = training_experiments.layer_coverage(X, net, UK)
        assert N[0] == pytest.approx(6, abs=1e-6) and s[0] < 1e-3


@given(st.integers(0, 10**6), st.integers(1, 3))
@settings(max_examples=25, deadline=None)
def test_on_a_line_layers_without_biases_have_rank_two(seed, depth):
    x = np.random.default_rng(seed).normal(size=(15, 1))
    net = layers.random_layers(1, [20] * depth, seed, bias_scale=0.0)
    for H in layers.relu_features(x, *net)[1:]:
        halves = np.maximum(np.c_[x, -x], 0)
        assert orthonormal_basis(H).shape[1] <= 2
        left = H - orthonormal_basis(halves) @ (
            orthonormal_basis(halves).T @ H
        )
        assert np.abs(left).max() < 1e-10 * max(1, np.abs(H).max())


def test_four_samples_by_hand():
    """x = -2, -1, 1, 2 on a path, K = 3: N = 2 + (10 + 7 sqrt 2) / 20."""
    path = np.diag(np.ones(3), 1)
    UK = spectra.laplacian_eigenbasis(
        graphs.graph_laplacian(path + path.T), 3
    ).vectors
    x = np.array([[-2.0], [-1], [1], [2]])
    net = layers.random_layers(1, [30], 0, bias_scale=0.0)
    N, _ = training_experiments.layer_coverage(x, net, UK)
    assert N[0] == pytest.approx(2 + (10 + 7 * np.sqrt(2)) / 20, abs=1e-10)


def test_layer_coverage_is_that_of_the_coverage_module():
    X, _, UK = training_experiments.training_problem("moons", 8)
    net = layers.random_layers(2, [12, 9], 3)
    N, s = training_experiments.layer_coverage(X, net, UK)
    for k, H in enumerate(layers.relu_features(X, *net)[1:]):
        Z = np.c_[H, np.ones(200)]
        assert N[k] == pytest.approx(coverage.captured_features(Z, UK))
        assert s[k] == pytest.approx(coverage.coverage_gap(Z, UK))


def test_readout_numbers_against_normal_equations():
    X, f, UK = training_experiments.training_problem("circles", 6)
    H = layers.relu_features(X, *layers.random_layers(2, [10], 1))[1]
    found = training_experiments.readout_numbers(H, UK, 3 * f)
    Z = np.c_[H, np.ones(200)]
    size = np.linalg.norm(f)
    for key, target in (("residual", f), ("low_left", UK @ (UK.T @ f))):
        fit = Z @ np.linalg.lstsq(Z, target, rcond=None)[0]
        assert found[key] == pytest.approx(np.linalg.norm(fit - target) / size)
    low = np.linalg.norm(UK.T @ f) / size
    assert found["high"] == pytest.approx(np.sqrt(1 - low**2))
    assert found["bound"] == pytest.approx(found["gap"] * low + found["high"])
    assert found["gap"] == pytest.approx(coverage.coverage_gap(Z, UK))
    assert found["captured"] == pytest.approx(
        coverage.captured_features(Z, UK)
    )
    assert found["residual"] <= found["low_left"] + found["high"] + 1e-12
    assert found["low_left"] <= found["gap"] * low + 1e-12


def test_a_layer_that_holds_the_target_needs_no_coverage():
    _, f, UK = training_experiments.training_problem("circles", 6)
    found = training_experiments.readout_numbers(f[:, None], UK, f)
    assert found["residual"] < 1e-12 and found["gap"] == 1
    assert found["bound"] > 1


@given(st.integers(0, 10**6))
@settings(max_examples=25, deadline=None)
def test_what_a_lone_target_misses(seed):
    """sqrt(p (1 - p)) of each part; the misses cancel for any fitting Z."""
    rng = np.random.default_rng(seed)
    UK = np.linalg.qr(rng.normal(size=(12, 4)))[0]
    f = rng.normal(size=12)
    found = training_experiments.readout_numbers(np.zeros((12, 0)), UK, f)
    low = UK @ (UK.T @ f)
    p = 1 - found["high"] ** 2
    for Z in (f[:, None], np.c_[f, rng.normal(size=(12, 3))]):
        a, b = (
            coverage.least_squares_readout(Z, part).residual
            for part in (low, f - low)
        )
        assert a == pytest.approx(-b, abs=1e-10)
        size = np.linalg.norm(a) / np.linalg.norm(f)
        assert size <= np.sqrt(p * (1 - p)) + 1e-10
        if Z.shape[1] == 1:
            assert size == pytest.approx(np.sqrt(p * (1 - p)))


def test_problems_are_named_and_drawn():
    first = training_experiments.training_problem("moons", 4)
    again = training_experiments.training_problem("moons", 4, draw=0)
    other = training_experiments.training_problem("moons", 4, draw=1)
    assert (first.X == again.X).all() and (first.X != other.X).any()
    assert first.UK.T @ first.UK == pytest.approx(np.eye(4), abs=1e-10)


def test_bad_input_is_named():
    with pytest.raises(ValueError, match="name must"):
        training_experiments.training_problem("blob", 4)
    with pytest.raises(ValueError, match="biases must"):
        training_experiments.train_coverage("moons", 4, "none", 0)
    with pytest.raises(ValueError, match="f must"):
        training_experiments.readout_numbers(
            np.eye(3), np.eye(3)[:, :1], np.zeros(3)
        )
    for m, ratio, name in (
        (0, 0.5, "m must"),
        (2, 0.0, "ratio must"),
        (2, np.nan, "ratio must"),
    ):
        with pytest.raises(ValueError, match=name):
            training_experiments.two_rings(m, ratio)


def test_a_random_layer_by_its_seed():
    found = training_experiments.random_coverage("moons", 20, 4, 0.5)
    X, _, UK = training_experiments.training_problem("moons", 8)
    net = layers.random_layers(2, [20], 4, bias_scale=0.5)
    N, s = training_experiments.layer_coverage(X, net, UK)
    assert found == {"captured": N[0], "gap": s[0]}


def stored(path, **wanted):
    runs = load_results(path)
    keep = np.all([np.array(runs[k]) == v for k, v in wanted.items()], axis=0)
    return runs, np.flatnonzero(keep)


def test_stored_training_begins_as_a_fresh_one_does():
    pytest.importorskip("torch")
    from helpers.spectral_alignment.training import train_relu_network

    runs, rows = stored(NETS, name="moons", width=32, biases="zero", K=8)
    assert len(rows) == 20
    row = next(r for r in rows if runs["seed"][r] == 3)
    X, f, UK = training_experiments.training_problem("moons", 8)
    marks = [k for k in training_experiments.MARKS if k <= 100]
    fresh = train_relu_network(X, f, [32, 32], 100, seed=3, record=marks)
    # a hundred steps of Adam amplify rounding by far less than 1e6
    assert fresh.mse == pytest.approx(
        np.array(runs["mse"][row])[: len(marks)], rel=1e-6
    )
    N, s = training_experiments.layer_coverage(X, fresh.layers[-1], UK)
    last = len(marks) - 1
    none = [np.zeros(32), np.zeros(32)]
    for key, weights, biases in (
        ("N2_unbiased", fresh.layers[-1].weights, none),
        ("N2_biases", fresh.layers[0].weights, fresh.layers[-1].biases),
    ):
        H = layers.relu_features(X, weights, biases)[2]
        found = coverage.captured_features(np.c_[H, np.ones(200)], UK)
        assert runs[key][row][last] == pytest.approx(found, rel=1e-6)
    found = training_experiments.readout_numbers(fresh.features[1], UK, f)
    for key in ("residual", "bound", "high", "low_left"):
        assert runs[key][row][last] == pytest.approx(found[key], rel=1e-5)
    assert [N[1], s[1]] == pytest.approx(
        [runs["N2"][row][last], runs["s2"][row][last]], rel=1e-6
    )


@pytest.mark.parametrize(
    ("name", "width", "K", "carried"),
    [
        ("moons", 32, 8, True),
        ("circles", 16, 10, True),
        ("swiss roll", 32, 8, True),
        ("moons", 8, 8, False),
        ("digits", 32, 10, False),
    ],
)
def test_stored_biases_carry_coverage_in_wide_layers_only(
    name, width, K, carried
):
    runs, rows = stored(
        NETS, name=name, width=width, K=K, biases="zero", draw=0
    )
    start, end, by_biases = (
        np.array([np.array(runs[key][row])[place] for row in rows])
        for key, place in (("N2", 0), ("N2", -1), ("N2_biases", -1))
    )
    rise = np.median(end - start)
    assert rise > 0.1
    assert (np.median(by_biases - start) > 0.8 * rise) == carried


def test_stored_nets_obey_corollary_3_1():
    runs = load_results(NETS)
    residual, low, high, bound = (
        np.array([np.array(v) for v in runs[key]])
        for key in ("residual", "low_left", "high", "bound")
    )
    assert (residual <= low + high + 1e-9).all()
    assert (residual <= bound + 1e-9).all()


def test_stored_greedy_layers_keep_to_ky_fan_and_repeat():
    runs = load_results(GREEDY)
    for row in range(len(runs["seed"])):
        name, K = runs["name"][row], int(runs["K"][row])
        X, _, UK = training_experiments.training_problem(name, K)
        Phi = layers.with_bias(X)
        floor = coverage.ky_fan_limits(Phi, UK, np.arange(33)).deficit
        for key in ("greedy", "random", "gaussian"):
            deficit = np.array(runs[key][row])
            assert (deficit >= floor - 1e-9).all()
            assert (np.diff(deficit) <= 1e-9).all()
    fresh = training_experiments.greedy_against_random("moons", 8, 2, 0)
    runs, rows = stored(GREEDY, name="moons", seed=0)
    assert np.array(runs["greedy"][rows[0]])[:3] == pytest.approx(
        fresh["greedy"],
        abs=2e-3,  # where a climb stops at a kink
    )
    assert np.array(runs["random"][rows[0]])[:3] == pytest.approx(
        fresh["random"], abs=1e-9
    )
