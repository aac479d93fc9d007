"""Rates: by hand, against the recursion they come from, and as laws."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from helpers.spectral_alignment import rates

positive = st.floats(0.05, 50)
share = st.floats(0.01, 1)


def test_single_neuron_bound_by_hand():
    assert rates.single_neuron_bound(1.0, 2.0, 0.5) == pytest.approx(1 / 16)


def test_single_neuron_bound_is_empty_where_the_error_exceeds_the_gap():
    literal = (0.5 * (0.5 - 0.9) / 0.1) ** 2
    assert literal > 0.5**2  # more than any neuron can gain
    assert rates.single_neuron_bound(0.5, 0.1, 0.9) == 0


@given(st.floats(0, 1), positive, st.floats(0, 1))
def test_single_neuron_bound_never_exceeds_the_trivial_bound(s, kappa, eps):
    """kappa >= 1 - eps for every representable span, and then the bound is
    at most the squared gap."""
    kappa = max(kappa, 1 - eps, 0.01)
    bound = rates.single_neuron_bound(s, kappa, eps)
    assert 0 <= bound <= s**2 * (1 + 1e-12)


def decay(delta, steps, rate, alpha):
    """The recursion of the proof, one step after the other."""
    found = [delta]
    for _ in range(steps):
        found.append(found[-1] - alpha * rate * found[-1] ** 2)
    return np.array(found)


@given(st.floats(0.01, 8), st.integers(1, 5), st.floats(1, 20), share)
def test_greedy_rate_dominates_its_recursion(delta, K, kappa, alpha):
    delta = min(delta, K)
    actual = decay(delta, 30, 1 / (4 * K**2 * kappa**2), alpha)
    bound = rates.greedy_rate_bound(np.arange(31), delta, K, kappa, alpha)
    assert (actual <= bound * (1 + 1e-12)).all()
    # and is sharp at first order: one step differs by delta^3 only
    x = alpha * delta / (4 * K**2 * kappa**2)
    assert bound[1] - actual[1] == pytest.approx(delta * x**2 / (1 + x))


@given(st.floats(0.01, 8), st.floats(3, 20), share)
def test_block_rate_dominates_its_recursion(delta, gamma, alpha):
    actual = decay(delta, 30, 1 / gamma**2, alpha)
    bound = rates.block_rate_bound(np.arange(31), delta, gamma, alpha)
    assert (actual <= bound * (1 + 1e-12)).all()


@given(st.integers(1, 6), positive, share, st.floats(1, 1e4))
def test_gap_bound_follows_from_the_deficit_and_is_vacuous_early(
    K, kappa, alpha, t
):
    """1 / delta_0 >= 0, so the deficit bound is below 4 K^2 kappa^2/(alpha t)."""
    gap = rates.greedy_gap_bound(t, K, kappa, 0.0, alpha)
    assert rates.greedy_rate_bound(t, float(K), K, kappa, alpha) <= gap
    assert (gap < 1) == (t > 4 * K**2 * kappa**2 / alpha)


def test_gap_bound_never_goes_below_the_resolution():
    assert rates.greedy_gap_bound(1e9, 1, 1.0, 0.2) == pytest.approx(0.16)


def test_nothing_to_cover_stays_nothing():
    assert rates.greedy_rate_bound([0, 5], 0.0, 3, 2.0).tolist() == [0, 0]
    assert rates.block_rate_bound([0, 5], 0.0, 2.0).tolist() == [0, 0]
    assert rates.adaptive_rate_bound(3, 0.0, [0.0], [1.0]).tolist() == [0] * 4


def test_block_gain_by_hand():
    assert rates.block_gain_bound(1.0, 2.0, 0.5) == pytest.approx(1 / 16)
    assert rates.block_gain_bound(0.25, 2.0, 0.5) == 0


@given(
    st.floats(0.05, 4),
    st.lists(
        st.tuples(st.floats(0, 1.5), st.floats(0.3, 9)), min_size=1, max_size=5
    ),
    share,
    st.integers(0, 999),
)
def test_adaptive_bound_covers_every_admissible_descent(
    delta, pairs, alpha, seed
):
    """Any sequence that gains what the pairs ask for, and at times more."""
    e, gamma = np.array(pairs).T
    gamma = np.maximum(gamma, delta)  # no gain beyond the deficit itself
    bound = rates.adaptive_rate_bound(12, delta, e, gamma, alpha)
    assert (np.diff(bound) <= 0).all()
    rng, x = np.random.default_rng(seed), delta
    for limit in bound[1:]:
        least = alpha * np.max(
            x * (np.maximum(np.sqrt(x) - e, 0) / gamma) ** 2
        )
        x = max(x - least - (x - least) * rng.choice([0, 0, 0.3]), 0)
        assert x <= limit * (1 + 1e-12)


def test_adaptive_bound_is_close_to_the_recursion_where_that_is_monotone():
    exact = decay(1.0, 20, 1 / 9, 1.0)
    bound = rates.adaptive_rate_bound(20, 1.0, [0.0], [3.0])
    assert (bound >= exact).all()
    # twenty steps, each at most the width of a cell (0.7 %) too high
    assert (bound <= exact * 1.0071**20).all()
    assert bound[1] == pytest.approx(exact[1])


def test_a_larger_choice_of_pairs_never_hurts():
    few = rates.adaptive_rate_bound(9, 2.0, [0.0], [5.0])
    more = rates.adaptive_rate_bound(9, 2.0, [0.0, 0.5], [5.0, 1.5])
    assert (more <= few).all() and more[-1] < few[-1]


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: rates.single_neuron_bound(1.5, 1, 0), "gap must be in"),
        (lambda: rates.single_neuron_bound(0.5, 0, 0), "kappa must be fin"),
        (lambda: rates.single_neuron_bound(0.5, 1, -1), "epsilon must be"),
        (lambda: rates.greedy_rate_bound(-1, 1, 1, 1), "t must be finite"),
        (lambda: rates.greedy_rate_bound(1, 1, 0, 1), "K must be a whole"),
        (lambda: rates.greedy_rate_bound(1, 1, 1, 1, 0), "alpha must be in"),
        (lambda: rates.greedy_gap_bound(0, 1, 1, 0), "t must be finite and >"),
        (lambda: rates.block_gain_bound(np.nan, 1), "delta must be finite"),
        (lambda: rates.block_rate_bound(1, 1, -2), "gamma must be finite"),
        (lambda: rates.adaptive_rate_bound(-1, 1, [0], [1]), "T must be a"),
        (lambda: rates.adaptive_rate_bound(1, 1, [0, 1], [1]), "same shape"),
    ],
)
def test_bad_input_names_the_argument(call, message):
    with pytest.raises(ValueError, match=message):
        call()
