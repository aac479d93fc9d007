"""Rates against exact greedy layers, floors on kappa, and the stored runs."""

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from helpers.core.linalg import orthonormal_basis
from helpers.core.randomness import spawn
from helpers.core.statistics import log_log_slope
from helpers.core.tolerances import FULL_GAIN
from helpers.spectral_alignment import coverage, graphs, rates, spectra
from helpers.spectral_alignment import greedy_experiments as experiments
from helpers.spectral_alignment.exact_search import maximal_gain_neuron
from helpers.spectral_alignment.greedy import greedy_coverage, lazy_oracle
from helpers.spectral_alignment.variation_norms import (
    block_variation_norm_bounds,
    representability_curve,
    variation_norm_bounds,
    variation_pareto_curve,
)
from helpers.sweep import load_results

DATA = Path(__file__).parents[3] / "book/data"
PATH = np.array([[-1.0, 1.0], [0.0, 1.0], [1.0, 1.0]])
WAVES = np.array([[1.0, -1.0, 1.0], [1, 0, -2], [1, 1, 1]])
WAVES = WAVES / np.linalg.norm(WAVES, axis=0)


@pytest.fixture(scope="module")
def bed():
    """Small problems with pairs (kappa, epsilon) and (gamma, e)."""
    problems = []
    for rng in spawn(17, 2):
        n, K = int(rng.integers(10, 13)), 2
        X = rng.normal(size=(n, 2))
        Phi = np.column_stack([X, np.ones(n)])
        L = graphs.graph_laplacian(graphs.knn_graph(X, 4))
        U = spectra.laplacian_eigenbasis(L, K).vectors
        free = block_variation_norm_bounds(Phi, U)
        pairs = representability_curve(
            Phi, U, (0.8, 0.3, 0.05), dictionary=free
        )
        one = np.ones((n, 1))
        block = block_variation_norm_bounds(Phi, U, one)
        curve = variation_pareto_curve(
            Phi, U, one, (0.6, 0.15), dictionary=block
        )
        whole = np.linalg.norm(
            [variation_norm_bounds(Phi, u).upper for u in U.T]
        )
        problems.append(
            (
                Phi,
                U,
                np.append(pairs.kappa, whole),
                np.append(pairs.epsilon, 0.0),
                np.append(curve.gamma, block.upper),
                np.append(curve.e, 0.0),
            )
        )
    return problems


def test_lemma_against_the_exact_gain_and_its_printed_form(bed):
    refuted = 0
    for Phi, U, kappa, eps, *_ in bed:
        trace = greedy_coverage(Phi, U, 4, Phi)
        for s, gain in zip(trace.gap, trace.upper_bound, strict=False):
            bound = rates.single_neuron_bound(s, kappa, eps)
            assert (bound <= gain * (1 + 1e-9)).all()
            printed = (s * (s - eps) / kappa) ** 2
            refuted += np.sum(printed > gain)
            assert (printed <= gain)[eps < s].all()
    assert refuted > 0


@pytest.mark.parametrize("eps", [0.0, 0.3, 0.9])
def test_lemma_is_tight_for_a_frequency_that_is_a_neuron(eps):
    flat = np.ones((3, 1)) / np.sqrt(3)
    nothing = np.zeros((3, 0))
    gain = maximal_gain_neuron(PATH, flat, nothing, "sweep").gain
    assert rates.single_neuron_bound(1.0, 1 - eps, eps) == pytest.approx(gain)


def test_printed_lemma_fails_in_closed_form():
    """F5 on three nodes: v = 0, epsilon = 1, kappa = s (1 - s) / 2."""
    W = [[0, 1, 0], [1, 0, 1], [0, 1, 0]]
    L = graphs.graph_laplacian(W, "symmetric")
    low = spectra.laplacian_spectrum(L)[1][:, :1]
    one = np.ones((3, 1))
    s = coverage.coverage_gap(one, low)
    assert s**2 == pytest.approx(1 - (2 + np.sqrt(2)) ** 2 / 12)
    M = coverage.residual_matrix(one, low)
    gain = maximal_gain_neuron(PATH, M, orthonormal_basis(one), "sweep").gain
    kappa = s * (1 - s) / 2
    assert (s * (s - 1) / kappa) ** 2 == pytest.approx(4)
    assert gain <= s**2 < 1
    assert rates.single_neuron_bound(s, kappa, 1.0) == 0


@pytest.mark.parametrize("alpha", [1.0, 0.3, 0.05])
def test_all_rates_hold_for_adversarial_neurons(bed, alpha):
    for (Phi, U, kappa, eps, gamma, e), rng in zip(
        bed, spawn(18, 2), strict=True
    ):
        one = np.ones((len(Phi), 1))
        trace = greedy_coverage(Phi, U, 6, one, lazy_oracle(alpha, rng))
        d, s, K = trace.deficit, trace.gap, U.shape[1]
        t = np.arange(len(d))
        for a, b in zip(kappa, eps, strict=True):
            valid = np.append(True, s[:-1] >= 2 * b)
            bound = rates.greedy_rate_bound(t, d[0], K, a, alpha)
            assert (d <= bound * (1 + 1e-9))[valid].all()
            limit = rates.greedy_gap_bound(t[1:], K, a, b, alpha)
            assert (s[1:] ** 2 <= limit * (1 + 1e-9)).all()
        exact = rates.greedy_rate_bound(t, d[0], K, kappa[-1] / 2, alpha)
        block = rates.block_rate_bound(t, d[0], gamma[-1], alpha)
        every = rates.adaptive_rate_bound(t[-1], d[0], e, gamma, alpha)
        for bound in (exact, block, every):
            assert (d <= bound * (1 + 1e-9)).all()
        asked = rates.block_gain_bound(d[:-1, None], gamma, e)
        assert (asked <= trace.upper_bound[:, None] * (1 + 1e-9)).all()


def test_the_block_bound_is_nearly_tight_at_the_first_step(bed):
    """So that a factor of two in it would be seen."""
    shares = []
    for Phi, U, _, _, gamma, e in bed:
        trace = greedy_coverage(Phi, U, 1, np.ones((len(Phi), 1)))
        asked = rates.block_gain_bound(trace.deficit[0], gamma, e)
        shares.append(asked.max() / trace.upper_bound[0])
    assert max(shares) > 0.5


def test_the_block_bound_is_tight_on_the_path():
    found = block_variation_norm_bounds(PATH, WAVES, PATH, tol=1e-4)
    assert rates.block_gain_bound(1.0, found.upper) == pytest.approx(
        1, abs=3e-4
    )
    trace = greedy_coverage(PATH, WAVES, 1, PATH)
    assert trace.gain == pytest.approx([1.0])


def test_first_lazy_step_is_within_second_order_of_the_theorem():
    line = np.column_stack([np.linspace(-1, 1, 40), np.ones(40)])
    flat = np.ones((40, 1)) / np.sqrt(40)
    for alpha in (0.3, 0.05):
        trace = greedy_coverage(line, flat, 1, None, lazy_oracle(alpha, 0))
        bound = rates.greedy_rate_bound(1, 1.0, 1, 0.5, alpha)
        assert trace.deficit[1] == pytest.approx(1 - alpha, abs=1e-9)
        assert bound - trace.deficit[1] == pytest.approx(
            alpha**2 / (1 + alpha), abs=1e-9
        )


def test_floor_is_attained_on_the_path():
    """The dearest unit function of the plane of u_1 and u_2 is u_2."""
    U = WAVES[:, :2]
    found = experiments.representability_floor(None, U, U[:, 1:], 0.0)
    exact = experiments.representability_floor(PATH, U, U[:, 1:], 0.0)
    prices = [
        variation_norm_bounds(
            PATH, np.cos(p) * U[:, 0] + np.sin(p) * U[:, 1], tol=1e-5
        ).upper
        for p in np.linspace(0, np.pi, 9)
    ]
    assert found == pytest.approx(np.sqrt(2))
    assert exact == pytest.approx(np.sqrt(2))
    assert max(prices) == pytest.approx(np.sqrt(2), abs=1e-6)


def test_floor_is_below_every_pair(bed):
    for Phi, U, kappa, eps, *_ in bed:
        Y = np.column_stack([U, np.random.default_rng(0).normal(size=U.shape)])
        for a, b in zip(kappa, eps, strict=True):
            exact = experiments.representability_floor(Phi, U, Y, b)
            coarse = experiments.representability_floor(None, U, Y, b)
            assert coarse <= exact + 1e-12 and exact <= a * (1 + 1e-9)
            assert np.sqrt(2) * (1 - b) <= a * (1 + 1e-9)


@given(st.integers(0, 999), st.floats(0, 1))
@settings(max_examples=25, deadline=None)
def test_a_balanced_function_gives_the_root_of_two(seed, eps):
    rng = np.random.default_rng(seed)
    U = np.linalg.qr(rng.normal(size=(9, 2)))[0]
    low, high = 0.0, np.pi

    def turned(angle):
        return U @ np.array([np.cos(angle), np.sin(angle)])

    def balance(angle):
        u = turned(angle)
        return np.sum(u[u > 0] ** 2) - 0.5

    for _ in range(60):
        middle = (low + high) / 2
        same = balance(middle) * balance(0.0) > 0
        low, high = (middle, high) if same else (low, middle)
    floor = experiments.representability_floor(
        None, U, turned(low)[:, None], eps
    )
    assert floor == pytest.approx(np.sqrt(2) * (1 - eps), abs=1e-7)


def test_floor_of_nothing_is_zero():
    assert (
        experiments.representability_floor(
            PATH, WAVES[:, :1], np.zeros((3, 2)), 0.5
        )
        == 0.0
    )


def test_random_neurons_do_not_end_early():
    problem = experiments.greedy_problem("moons", 30)
    for rng in spawn(3, 12):
        trace = greedy_coverage(
            problem.Phi,
            problem.UK,
            15,
            problem.Phi,
            experiments.fresh_random_oracle(rng),
        )
        assert len(trace.gain) == 15


@pytest.mark.parametrize("name", tuple(experiments.FREQUENCIES))
def test_problems_have_the_frequencies_they_say(name):
    problem = experiments.greedy_problem(name, 60, 1)
    K = experiments.FREQUENCIES[name]
    assert problem.UK.shape == (60, K) and problem.Phi.shape == (60, 3)
    assert problem.UK.T @ problem.UK == pytest.approx(np.eye(K))
    assert problem.gap_ratio >= 1


def test_a_short_decay_agrees_with_its_parts():
    run = experiments.greedy_decay("circles", 40, 3, 5)
    assert (run["limit"] <= run["deficit"] + 1e-12).all()
    assert (np.diff(run["deficit"]) <= 1e-12).all()
    assert (run["gap"] ** 2 <= run["deficit"] + 1e-12).all()
    assert run["random"][0] == run["deficit"][0]


def test_decay_of_a_covered_space_is_filled_up():
    run = experiments.greedy_decay("clouds", 12, 0, 15)
    assert run["deficit"].shape == (16,) and run["deficit"][-1] < 1e-9
    filled = experiments._filled(np.array([2.0, 1.0]), 3)
    assert filled.tolist() == [2, 1, 1, 1]


def test_constants_bracket_each_other():
    found = experiments.rate_constants("clouds", 12)
    assert found["kappa_half"] <= found["kappa_lower"]
    assert found["kappa_lower"] <= found["kappa_upper"]
    assert np.sqrt(2) <= found["kappa_upper"]
    assert found["gamma_lower"] <= found["gamma_upper"] == found["gamma"][-1]
    bound = rates.adaptive_rate_bound(
        40, found["deficit"][0], found["e"], found["gamma"]
    )
    assert (found["deficit"] <= bound * (1 + 1e-9)).all()


def test_clouds_from_the_constant_alone():
    """kappa by its formula, and the rates of C2 above the greedy deficit."""
    found = experiments.cloud_rates(30, 2, 6)
    X = experiments.greedy_problem("clouds", 30, 2).X
    omega = []
    for c in range(3):  # widest margin over 720 directions
        turns = np.linspace(0, 2 * np.pi, 720, endpoint=False)
        z = X @ np.array([np.cos(turns), np.sin(turns)])
        inside = np.repeat(np.arange(3), 10) == c
        near, far = z[~inside].max(axis=0), z[inside].min(axis=0)
        cut = far > near
        ratio = (z[inside].max(axis=0) - near)[cut] / (far - near)[cut]
        omega.append(ratio.min())
    # a grid of half degrees is above the linear programme, by little
    kappa = 2 * np.sqrt(3) * max(omega)
    assert kappa * 0.99 < found["kappa"] <= kappa
    assert found["gamma_lower"] <= found["gamma_upper"]
    assert found["deficit"][0] == pytest.approx(2)
    t = np.arange(7)
    bound = rates.block_rate_bound(t, 2.0, found["gamma_upper"])
    assert (found["deficit"] <= bound * (1 + 1e-9)).all()
    assert (found["gap"] ** 2 <= found["deficit"] + 1e-12).all()


def test_climbs_on_a_roll_never_pass_the_exact_gain():
    found = experiments.roll_climbs(12, 1, 2, 4)
    assert found["exact"].shape == (2,) and found["climbs"].shape == (8,)
    assert (np.diff(found["exact"]) < 0).all()
    assert found["climbs"].max() <= 1 + 1e-9
    assert (found["climbs"].reshape(2, 4).max(axis=1) > 0.5).all()


def test_stored_climbs_on_a_roll():
    run = load_results(DATA / "roll_climbs.parquet")
    shares = np.array([np.array(c).reshape(4, 30) for c in run["climbs"]])
    assert shares.shape[0] == 10 and shares.max() <= 1 + 1e-9
    best = shares.max(axis=2)
    # thirty climbs are not enough in every problem, but never far off
    assert 0 < np.sum(best <= FULL_GAIN) <= 10 and best.min() > 0.8


def test_stored_clouds_close_long_before_any_promise():
    run = load_results(DATA / "cloud_rates.parquet")
    assert len(run["seed"]) == 10
    for i, d in enumerate(run["deficit"]):
        d = np.array(d)
        promise = rates.block_rate_bound(12, d[0], run["gamma_upper"][i])
        paper = rates.greedy_rate_bound(12, d[0], 3, run["kappa"][i])
        assert d[12] < 1e-6 < promise < paper < d[0]


def test_stored_decays_are_faster_than_one_over_t():
    run = load_results(DATA / "greedy_decay.parquet")
    t = np.arange(5, 41)
    for name, d, r in zip(
        run["name"], run["deficit"], run["random"], strict=True
    ):
        d, r = np.array(d), np.array(r)
        assert log_log_slope(t, d[5:]).slope < -1
        assert r[20] > d[20]
        assert d[0] <= experiments.FREQUENCIES[name]


def test_stored_random_neurons_lag_by_a_factor_on_moons_and_circles():
    """Same slope, higher curve; on blobs the slope differs as well."""
    run = load_results(DATA / "greedy_decay.parquet")
    t, found = np.arange(5, 41), {}
    for name, n, d, r in zip(
        run["name"], run["n"], run["deficit"], run["random"], strict=True
    ):
        if n == 100:
            d, r = np.array(d), np.array(r)
            slopes = [log_log_slope(t, x[5:]).slope for x in (d, r)]
            found.setdefault(name, []).append([*slopes, r[20] / d[20]])
    for name, ratio in (("moons", 4), ("circles", 5), ("blobs", 30)):
        greedy, some, lag = np.median(found[name], axis=0)
        # "about four, five, thirty" in the ledger: whole numbers, one digit
        assert lag == pytest.approx(ratio, rel=0.15)
        assert (abs(greedy - some) < 0.3) == (name != "blobs")


def test_stored_gaps_stay_at_one_for_as_long_as_they_must():
    run = load_results(DATA / "greedy_decay.parquet")
    for name, gap in zip(run["name"], run["gap"], strict=True):
        stuck = experiments.FREQUENCIES[name] - 3
        gap = np.array(gap)
        assert gap[:stuck] == pytest.approx(1) and gap[stuck] < 1 - 1e-6


def test_stored_constants_make_the_theorem_empty_or_not():
    run = load_results(DATA / "greedy_rates.parquet")
    for i, (name, n) in enumerate(zip(run["name"], run["n"], strict=True)):
        K2 = experiments.FREQUENCIES[name] ** 2
        low, up, half = (
            run[key][i] for key in ("kappa_lower", "kappa_upper", "kappa_half")
        )
        assert half <= low <= up
        empty = min(K2 * low**2, 4 * K2 * half**2) >= n - 3
        assert empty == (name != "clouds")
        assert (K2 * up**2 < n - 3) == (name == "clouds")
        if name in ("moons", "blobs"):  # and part (i), which knows delta_0
            saved = 1 - 1 / np.array(run["deficit"][i])[0]
            assert saved * min(K2 * low**2, 4 * K2 * half**2) > n - 3


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: experiments.greedy_problem("rings", 50), "name must be one"),
        (lambda: experiments.greedy_problem("moons", 9), "n must be a whole"),
        (lambda: experiments.greedy_problem("clouds", 50), "divisible by 3"),
        (lambda: experiments.cloud_rates(50, 0), "divisible by 3"),
        (lambda: experiments.roll_climbs(9, 0), "n must be a whole"),
        (
            lambda: experiments.representability_floor(
                None, WAVES, np.full((3, 1), np.nan), 0
            ),
            "Y must be a finite",
        ),
        (
            lambda: experiments.representability_floor(None, WAVES, WAVES, -1),
            "epsilon must be",
        ),
        (
            lambda: experiments.representability_floor(
                None, 2 * WAVES, WAVES, 0
            ),
            "UK must",
        ),
    ],
)
def test_bad_input_names_the_argument(call, message):
    with pytest.raises(ValueError, match=message):
        call()
