"""Waves and cosines: energies, correlations, octaves, visible pieces."""

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.fft import dct
from scipy.integrate import quad

from helpers.core.tolerances import ROUNDING
from helpers.linear_regions import frequencies as fr
from helpers.linear_regions.cells import wave_cells
from helpers.linear_regions.networks import (
    hidden_values,
    triangle_net_layers,
)
from helpers.linear_regions.triangles import limit_scales, triangle_wave

PEAKS = st.lists(st.floats(0.02, 0.98), min_size=1, max_size=7)
SEEDS = st.integers(0, 2**32 - 1)


def levels(x, peaks):
    """The line and all waves, one a row."""
    return np.vstack([x, triangle_wave(x, peaks)])


def midpoints(n):
    return (np.arange(n) + 0.5) / n


def integrals(peaks, power=1):
    """Simpson on the finest cells: exact for products of two waves."""
    knots = wave_cells(peaks).knots
    h = np.diff(knots)
    ends = [levels(k, peaks) for k in (knots[:-1], knots[1:])]
    centre = levels((knots[:-1] + knots[1:]) / 2, peaks)
    pair = [v[:, None] * v[None] for v in (*ends, centre)]
    return (h * (pair[0] + pair[1] + 4 * pair[2]) / 6).sum(axis=-1)


@given(PEAKS)
@settings(max_examples=40, deadline=None)
def test_energies_and_their_sums(peaks):
    """Slopes squared times lengths, for a random sum of all levels."""
    knots = wave_cells(peaks).knots
    values = levels(knots, peaks)
    values[1:, [0, -1]] = 0
    c = np.cos(np.arange(len(peaks) + 1))
    keep = np.diff(knots) > 0  # cells below the spacing of floats
    steps, h = np.diff(c @ values)[keep], np.diff(knots)[keep]
    if h.min() < 1e-9:  # their slopes have lost too many digits
        return
    energy = fr.wave_energies(peaks)
    assert np.sum(steps**2 / h) == pytest.approx(c**2 @ energy, rel=1e-5)
    assert np.all(energy >= 4.0 ** np.arange(c.size) * (1 - ROUNDING))


def test_energy_by_hand():
    """Slopes 4 and -4/3 on lengths 1/4 and 3/4."""
    assert fr.wave_energies([0.25])[1] == pytest.approx(16 / 4 + 16 / 12)


@given(PEAKS)
@settings(max_examples=40, deadline=None)
def test_limit_scales_make_each_fold_cheap(peaks):
    """Fold n costs a0/(1-a0) a_(n+1)^2 prod a(1-a), at most 4^-n of that."""
    a = np.r_[peaks, 0.6]
    s = limit_scales(a, "convex")
    price = s**2 * fr.wave_energies(a[:-1])[1:]
    ratio = a[0] / (1 - a[0])
    inner = np.cumprod(np.r_[1.0, a[1:-1] * (1 - a[1:-1])])
    np.testing.assert_allclose(price, ratio * a[1:] ** 2 * inner, rtol=1e-9)
    assert np.all(price <= ratio * 4.0 ** -np.arange(s.size) * (1 + 1e-9))


@given(PEAKS)
@settings(max_examples=40, deadline=None)
def test_correlations_are_integrals(peaks):
    gram = 12 * (integrals(peaks) - 0.25)
    np.testing.assert_allclose(fr.wave_correlations(peaks), gram, atol=1e-9)


def test_correlations_by_hand():
    """x with a triangle: (1 + a) / 6 is the integral of the product."""
    for a in (0.1, 0.5, 0.8):
        by_hand = 12 * ((1 + a) / 6 - 1 / 4)
        assert fr.wave_correlations([a])[0, 1] == pytest.approx(by_hand)


@pytest.mark.parametrize("peaks", [[0.5, 0.5], [0.2, 0.7, 0.4]])
def test_cosines_against_quadrature(peaks):
    knots = wave_cells(peaks).knots
    found = fr.wave_cosines(peaks, 6)
    for k in range(6):
        scale = 1.0 if k == 0 else np.sqrt(2)
        for level in range(len(peaks) + 1):

            def f(x, level=level, k=k):
                wave = levels(np.array([x]), peaks)[level, 0]
                return wave * np.cos(np.pi * k * x)

            direct = sum(
                quad(f, *ends)[0] for ends in itertools.pairwise(knots)
            )
            assert found[level, k] == pytest.approx(scale * direct, abs=1e-10)


@given(PEAKS, st.integers(1, 30))
@settings(max_examples=40, deadline=None)
def test_cosines_are_the_limit_of_the_graph(peaks, K):
    x = midpoints(2**13)
    direct = dct(levels(x, peaks), type=2, norm="ortho")[:, :K] / 2**6.5
    np.testing.assert_allclose(fr.wave_cosines(peaks, K), direct, atol=2e-3)


@given(PEAKS, st.integers(1, 20))
@settings(max_examples=40, deadline=None)
def test_shares_make_the_captured_number(peaks, K):
    """Against the trace of the projection, from Gram and cosines."""
    gram = np.eye(len(peaks) + 2)
    gram[1:, 1:] = integrals(peaks)
    gram[0, 1:] = gram[1:, 0] = 0.5
    cosines = np.vstack([np.eye(1, K), fr.wave_cosines(peaks, K)])
    trace = np.trace(np.linalg.solve(gram, cosines @ cosines.T))
    shares = fr.octave_shares(peaks, K)
    assert 1 + shares.sum() == pytest.approx(trace, abs=1e-8)
    assert np.all(shares <= fr.octave_bounds(peaks, K) + ROUNDING)


def test_the_bound_needs_the_longest_piece():
    """With the mean length in its place it is broken."""
    peaks, K = [0.1] * 8, 20
    shares = fr.octave_shares(peaks, K)
    mean = np.minimum(1, ((K - 1) * 0.5 ** np.arange(9)) ** 2)
    assert np.any(shares > mean)
    np.testing.assert_allclose(fr.longest_cells(peaks), 0.9 ** np.arange(9))


def test_equal_waves_hold_an_octave_each():
    """96/pi^4 over the fourth powers of the odd numbers."""
    shares = fr.octave_shares([0.5] * 5, 13)
    odd = [np.arange(1, 13, 2), [1, 3, 5], [1, 3], [1], [], []]
    series = [np.sum(1 / np.array(m, float) ** 4) for m in odd]
    np.testing.assert_allclose(
        shares, 96 / np.pi**4 * np.array(series), atol=ROUNDING
    )


@pytest.mark.parametrize(
    ("n", "d"), [(1, 0), (2, 1), (64, 6), (96, 5), (7, 0)]
)
def test_grid_shares_against_the_transform(n, d):
    x = midpoints(n)
    rows = levels(x, [0.5] * max(d, 1))[: d + 1]
    coefficients = dct(rows, type=2, norm="ortho")
    coefficients[:, 0] = 0
    mass = np.maximum((coefficients**2).sum(axis=1), ROUNDING)
    for K in range(1, n + 1):
        direct = (coefficients[:, :K] ** 2).sum(axis=1) / mass
        np.testing.assert_allclose(
            fr.grid_octave_shares(n, K, d), direct, atol=1e-9
        )


@pytest.mark.parametrize("n", [2, 4, 16, 1024])
def test_an_audible_wave_is_nearly_all_heard(n):
    first = fr.grid_octave_shares(n, 2, 0)[0]
    assert 96 / np.pi**4 < first <= 1 + ROUNDING


@given(st.lists(st.floats(0.1, 0.9), min_size=2, max_size=6))
@settings(max_examples=20, deadline=None)
def test_neurons_of_the_exact_network_span_the_waves(peaks):
    """4 d neurons, d + 2 dimensions, any peaks."""
    x = midpoints(4096)
    layers = triangle_net_layers(peaks, "concave")
    H = np.maximum(np.hstack(hidden_values(layers, x)[:-1]), 0)
    H /= np.linalg.norm(H, axis=0)
    Z = np.vstack([np.ones(x.size), levels(x, peaks[:-1])]).T
    both = [np.linalg.matrix_rank(M, 1e-9) for M in (H, Z, np.c_[H, Z])]
    assert both == [len(peaks) + 1] * 3


def fewest(y, h):
    """By dynamic programming over all cuts, lines by linear programming."""

    def fits(part):
        i = np.arange(part.size)
        slopes = [
            (
                (part[b] - part[a] - 2 * h) / (b - a),
                (part[b] - part[a] + 2 * h) / (b - a),
            )
            for a, b in itertools.combinations(i, 2)
        ]
        if not slopes:
            return True
        candidates = [s for pair in slopes for s in pair]
        return any(
            np.ptp(part - s * i) <= 2 * h * (1 + 1e-9) for s in candidates
        )

    best = [0]
    for j in range(1, y.size + 1):
        best.append(1 + min(best[i] for i in range(j) if fits(y[i:j])))
    return best[-1]


@given(SEEDS, st.integers(1, 12), st.floats(0.05, 2.0))
@settings(max_examples=40, deadline=None)
def test_greedy_pieces_are_fewest(seed, n, h):
    y = np.random.default_rng(seed).normal(size=n)
    assert fr.pieces_within(y, h) == fewest(y, h)


@given(SEEDS, st.integers(2, 200), st.floats(0.01, 2.0))
@settings(max_examples=60, deadline=None)
def test_energy_bounds_pieces(seed, n, h):
    rng = np.random.default_rng(seed)
    y = np.cumsum(rng.normal(size=n) * rng.integers(0, 2, n))
    energy = np.sum(np.diff(y) ** 2)
    bound = 1 + np.sqrt((n - 1) * energy) / (4 * h)
    assert fr.pieces_within(y, h) <= bound + ROUNDING


def test_equal_waves_reach_the_bound():
    """At a height just below one half: half of the pieces, plus one."""
    x = np.linspace(0, 1, 2**7 + 1)
    for d in range(1, 7):
        y = triangle_wave(x, [0.5] * d)[-1]
        assert np.sum(np.diff(y) ** 2) * (x.size - 1) == 4**d
        assert fr.pieces_within(y, 0.4999) == 2 ** (d - 1) + 1
        assert fr.pieces_within(y, 0.5) == 1


def test_one_line_and_none():
    assert fr.pieces_within([3.0], 1.0) == 1
    assert fr.pieces_within(np.linspace(0, 1, 50), 1e-6) == 1


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: fr.wave_energies([0.0]), "peaks must"),
        (lambda: fr.wave_energies([[0.5]]), "one vector"),
        (lambda: fr.wave_correlations([]), "peaks must"),
        (lambda: fr.wave_cosines([0.5], 0), "K must"),
        (lambda: fr.wave_cosines([0.5] * 25, 2), "25 entries"),
        (lambda: fr.octave_shares([1.5], 2), "peaks must"),
        (lambda: fr.octave_bounds([0.5], 1.5), "K must"),
        (lambda: fr.longest_cells([np.nan]), "peaks must"),
        (lambda: fr.grid_octave_shares(12, 3, 3), "multiple of 2"),
        (lambda: fr.grid_octave_shares(8, 9, 1), "K must"),
        (lambda: fr.grid_octave_shares(8, 2, -1), "d must"),
        (lambda: fr.pieces_within([], 1.0), "y must"),
        (lambda: fr.pieces_within([0.0, np.inf], 1.0), "y"),
        (lambda: fr.pieces_within([0.0, 1.0], 0.0), "tolerance must"),
    ],
)
def test_bad_input(call, message):
    with pytest.raises(ValueError, match=message):
        call()


def projected(features, y):
    q, s, _ = np.linalg.svd(features, full_matrices=False)
    return q[:, s > 1e-10 * s[0]].T @ y


@pytest.mark.parametrize("m", [1, 3, 10])
def test_plain_layers_hold_what_is_promised(m):
    """On a fine path, against the bound; and never more than m + 1."""
    n, K = 1024, 16
    x = midpoints(n)
    U = np.cos(np.pi * np.outer(x, np.arange(K)))
    U /= np.linalg.norm(U, axis=0)
    Z = np.c_[np.ones(n), np.maximum(x[:, None] - np.arange(m) / m, 0)]
    found = np.sum(projected(Z, U) ** 2)
    promised = K - np.sum(np.minimum(1, (np.arange(K) / m) ** 4))
    assert promised <= found <= min(K, m + 1) + ROUNDING


@given(SEEDS, st.integers(1, 6), st.integers(0, 40))
@settings(max_examples=30, deadline=None)
def test_few_knots_miss_a_high_wave(seed, D, m):
    """Random knots and bends; the wave itself with all of its bends."""
    n = 2**D * 4
    x, rng = midpoints(n), np.random.default_rng(seed)
    wave = triangle_wave(x, [0.5] * D)[-1] - 0.5
    bends = np.arange(1, 2**D) / 2**D
    knots = np.where(rng.random(m) < 0.5, rng.random(m), rng.choice(bends, m))
    Z = np.c_[np.ones(n), x, np.maximum(x[:, None] - knots, 0)]
    kept = np.sum(projected(Z, wave) ** 2) / (wave @ wave)
    assert kept <= min(1, m / 2 ** (D - 1)) + ROUNDING
    Z = np.c_[np.ones(n), x, np.maximum(x[:, None] - bends, 0)]
    assert np.sum(projected(Z, wave) ** 2) == pytest.approx(wave @ wave)
