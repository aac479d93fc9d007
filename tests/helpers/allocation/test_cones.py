"""Cones, zonotopes and activation patterns."""

from itertools import product
from math import comb

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import linprog

from helpers.allocation.cones import (
    cone_membership,
    wendel_probability,
    zonotope_membership,
)
from helpers.allocation.patterns import enumerate_matches, row_patterns


def test_wendel_by_hand():
    assert wendel_probability(0, 2) == 0
    for d in range(1, 6):
        assert wendel_probability(d - 1, d) == 0
        assert wendel_probability(d, d) == pytest.approx(2.0**-d)
        assert wendel_probability(2 * d - 1, d) == pytest.approx(0.5)
        extra = 0.5 + 0.5 * comb(2 * d, d) / 4**d
        assert wendel_probability(2 * d, d) == pytest.approx(extra)
    for k in range(1, 8):
        assert wendel_probability(k, 1) == pytest.approx(1 - 2.0**-k)


@pytest.mark.parametrize(
    "d,k", [(1, 3), (2, 2), (2, 5), (3, 4), (3, 6), (4, 3)]
)
def test_sign_flips_of_any_generic_columns_reach_the_counted_number(d, k):
    """The step of the proof: no average, each single draw has this count."""
    for seed in range(3):
        rng = np.random.default_rng(seed)
        V, t = rng.normal(size=(d, k)), rng.normal(size=(d, 1))
        reached = sum(
            bool(cone_membership(V * signs, t)[0])
            for signs in product([-1, 1], repeat=k)
        )
        assert reached == sum(comb(k, i) for i in range(d, k + 1))


def test_wendel_frequency():
    rng, draws = np.random.default_rng(0), 1500
    for d, k in ((2, 3), (3, 6), (5, 10)):
        found = np.mean(
            [
                cone_membership(
                    rng.normal(size=(d, k)), rng.normal(size=(d, 1))
                )[0]
                for _ in range(draws)
            ]
        )
        p = wendel_probability(k, d)
        assert abs(found - p) < 4 * (p * (1 - p) / draws) ** 0.5


def test_wendel_needs_symmetry():
    # columns that all point one way: the target does so in half of the draws
    rng = np.random.default_rng(1)
    D = np.abs(rng.normal(size=(1, 4)))
    assert wendel_probability(4, 1) == 15 / 16
    assert not cone_membership(D, [[-1.0]])[0]


def _feasible(A, t, **bounds):
    return linprog(np.zeros(A.shape[1]), A_eq=A, b_eq=t, **bounds).status == 0


@settings(max_examples=25, deadline=None)
@given(st.integers(0, 10_000), st.integers(1, 4), st.integers(1, 6))
def test_membership_agrees_with_linear_programs(seed, d, k):
    rng = np.random.default_rng(seed)
    D, t = rng.normal(size=(d, k)), rng.normal(size=(d, 3))
    t[:, 0] = D @ rng.uniform(0, 0.9, k)  # inside both
    cone = [_feasible(D, b, bounds=(0, None)) for b in t.T]
    box = [_feasible(D, b, bounds=(-1, 1)) for b in t.T]
    assert cone_membership(D, t).tolist() == cone
    assert zonotope_membership(D, t).tolist() == box
    assert cone[0] and box[0]


def test_the_zonotope_is_open_and_the_cone_scales():
    D = np.eye(2)
    assert not zonotope_membership(D, [[1.0], [0.0]])[0]
    assert zonotope_membership(D, [[1 - 1e-9], [0.0]])[0]
    t = np.array([[1.0, -1.0], [2.0, 0.5]])
    for scale in (1e-6, 1e6):
        assert cone_membership(D, scale * t).tolist() == [True, False]
    assert cone_membership(D, np.zeros((2, 1)))[0]


@settings(max_examples=20, deadline=None)
@given(st.integers(0, 10_000), st.integers(1, 3), st.integers(1, 5))
def test_row_patterns_are_all_cells(seed, q, m):
    rng = np.random.default_rng(seed)
    c, A = rng.normal(size=m), rng.normal(size=(q, m))
    found = {tuple(r) for r in row_patterns(c, A)}
    assert len(found) == sum(comb(m, i) for i in range(min(q, m) + 1))
    w = rng.normal(size=(400, q)) * rng.choice([0.1, 1, 10], (400, 1))
    assert {tuple(r) for r in c + w @ A > 0} <= found


def test_degenerate_rows_get_all_patterns():
    assert len(row_patterns(np.zeros(3), [[1.0, 2.0, -1.0]])) == 8
    twice = [[1.0, 1.0, 2.0], [2.0, 2.0, 1.0]]
    assert len(row_patterns([0.3, -0.2, 1.0], twice)) == 8


def _by_hand(t, D, c, rows, inputs):
    """All patterns, least squares, no pruning."""
    d, m = t.shape
    k, count = D.shape[1], 0
    for pattern in product([0.0, 1.0], repeat=k * m):
        S = np.reshape(pattern, (k, m))
        M = [np.outer(D[:, j], S[j] * x).ravel() for j, x in
             zip(rows, inputs, strict=True)]  # fmt: skip
        r = (t - D @ (S * c)).ravel()
        w, _, rank, _ = np.linalg.lstsq(np.transpose(M), r, rcond=1e-11)
        z = c.copy()
        np.add.at(z, rows, w[:, None] * inputs)
        count += rank == m * d and ((z > 0) == S).all()
    return count


@pytest.mark.parametrize("d,m,k", [(1, 3, 2), (2, 2, 3), (1, 2, 2), (1, 3, 3)])
def test_pruned_enumeration_misses_nothing(d, m, k):
    total = 0
    for seed in range(12):
        rng = np.random.default_rng(seed)
        t, D = rng.normal(size=(d, m)), rng.normal(size=(d, k))
        c, rows = rng.normal(size=(k, m)), np.arange(m * d) % k
        inputs = rng.normal(size=(m * d, m))
        found = enumerate_matches(t, D, c, rows, inputs)
        assert found == _by_hand(t, D, c, rows, inputs)
        total += found
    assert total > 0


def test_bad_input():
    with pytest.raises(ValueError, match="d must be"):
        wendel_probability(2, 0)
    with pytest.raises(ValueError, match="k must be"):
        wendel_probability(-1, 2)
    with pytest.raises(ValueError, match="t must be finite"):
        cone_membership(np.eye(2), [[np.nan], [0.0]])
    with pytest.raises(ValueError, match="D_S must be"):
        cone_membership(np.eye(2), np.ones((3, 1)))
    with pytest.raises(ValueError, match="D_S must be"):
        zonotope_membership(np.zeros((2, 0)), np.ones((2, 1)))
    with pytest.raises(ValueError, match="offset must be"):
        row_patterns([1.0, 2.0], [[1.0]])
    with pytest.raises(ValueError, match="finite"):
        row_patterns([np.inf], [[1.0]])
    with pytest.raises(ValueError, match="p = m d"):
        enumerate_matches([[1.0]], [[1.0]], [[0.0]], [0, 0], [[1.0], [2.0]])
