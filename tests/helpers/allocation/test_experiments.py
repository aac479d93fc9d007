"""Points of match curves: hard zeros, exact points, honest columns."""

import inspect

import numpy as np
import pytest

from helpers.allocation import experiments
from helpers.allocation.allocations import row_allocation, stack_allocations
from helpers.allocation.experiments import (
    first_hits,
    has_linear_core,
    match_point,
)
from helpers.allocation.levenberg import draw_starts, solve_recurrent
from helpers.allocation.matching import recurrent_problems
from helpers.allocation.ranks import min_learned_rows, row_rank_cap

SMALL = dict(n=8, b=2, d=2, T=3, m=2, p=4)
COUNTS = ("drawn", "rank_full", "hits", "exact_hits", "missed", "unsound")


def test_first_hits_agree_with_all_starts_at_once():
    draws = recurrent_problems(40, 8, 2, 2, 3, 2, 1)
    chosen = stack_allocations(
        [row_allocation((8, 8), 4, 4, r) for r in range(40)]
    )
    starts = draw_starts(40, 6, 4, 2)
    at_once = solve_recurrent(*draws, chosen, starts)
    hit = at_once.residual < 1e-8
    expected = np.where(hit.any(axis=1), hit.argmax(axis=1) + 1, 0)
    np.testing.assert_array_equal(first_hits(draws, chosen, starts), expected)
    assert len(set(expected)) > 2


def test_nothing_left_of_the_transition_matches():
    # d / (T - 1) = 2 rows are needed
    assert min_learned_rows(12, 3, 3, 3, 3) == 2
    row = match_point(12, 3, 3, 3, 3, p=9, k=1, trials=60, seed=3)
    assert row["fits"] == 1 and row["rank_full"] == 0 and row["hits"] == 0
    row = match_point(12, 3, 3, 3, 3, p=9, k=2, trials=60, seed=3)
    assert row["rank_full"] == 60 and row["hits"] > 30


def test_linear_core_is_matched_in_every_trial():
    row = match_point(**SMALL, k=1, trials=80, seed=4)
    assert row["method"] == "linear core"
    assert row["exact_hits"] == row["rank_full"] == 80
    assert row["confirmed"] >= 78  # a few systems are ill-conditioned
    assert row["missed"] == 80 - row["hits"]


def test_complex_solutions_and_optimiser_agree_where_both_know():
    row = match_point(**SMALL, k=4, trials=150, seed=5)
    assert row["method"] == "all complex solutions"
    # a match that the optimiser holds exists: only lost paths deny one
    assert row["unsound"] <= 3
    assert row["hits"] == row["exact_hits"] - row["missed"] + row["unsound"]
    assert 0.7 < row["exact_hits"] / 150 < 0.97
    without = match_point(**SMALL, k=4, trials=150, seed=5, exact=False)
    assert without["method"] == "" and without["hits"] == row["hits"]


def test_more_starts_find_no_less():
    row = match_point(**SMALL, k=2, trials=60, seed=6, starts=12)
    assert len(row["after"]) == 12
    assert (np.diff(row["after"]) >= 0).all()
    assert row["after"][-1] == row["hits"]
    fewer = match_point(**SMALL, k=2, trials=60, seed=6, starts=12)
    assert fewer == row


def test_no_room_is_not_probability_zero():
    row = match_point(8, 2, 2, 3, 2, p=9, k=1, trials=10, seed=0)
    assert row["fits"] == 0 and all(row[c] == 0 for c in COUNTS)
    zero = match_point(12, 3, 3, 3, 3, p=9, k=1, trials=10, seed=0)
    assert zero["fits"] == 1 and zero["drawn"] == 10 and zero["hits"] == 0


def test_too_few_weights_never_match_and_spare_ones_do():
    few, many = (
        match_point(10, 3, 2, 3, 3, p=p, k=5, trials=40, seed=7, exact=False)
        for p in (5, 8)
    )
    assert few["rank_full"] == few["hits"] == 0
    assert many["hits"] >= 38


def test_entries_anywhere():
    row = match_point(12, 4, 2, 3, 3, p=12, k=0, trials=30, seed=8)
    assert row["hits"] >= 28 and row["method"] == ""


@pytest.mark.parametrize("n", [8, 16, 24, 32, 64])
def test_linear_core_sits_at_the_predicted_transition(n):
    q = n // 4
    k = min_learned_rows(n, q, q, 3, q)
    assert has_linear_core(n, q, q, 3, q, q * q, k)
    assert row_rank_cap(n, q, q, 3, q, k) == q * q
    assert not has_linear_core(n, q, q, 3, q, q * q, k + 1)
    assert not has_linear_core(n, q - 1, q, 3, q, q * q, k)


def test_rows_are_values_a_sweep_can_keep():
    row = match_point(**SMALL, k=2, trials=4, seed=0, starts=3, exact=False)
    assert {type(v) for v in row.values()} <= {int, str, list}
    names = list(inspect.signature(match_point).parameters)
    assert names[-4:] == ["trials", "seed", "starts", "exact"]
    assert set(experiments.__all__) == {
        "first_hits",
        "has_linear_core",
        "match_point",
        "point_row",
    }


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"m": 5}, "m must be at most"),
        ({"trials": 0}, "trials must be"),
        ({"starts": 0}, "starts must be"),
        ({"n": 0}, "n must"),
        ({"k": 9}, "k must be"),
        ({"k": 8}, "p must be at least k"),
        ({"k": -1}, "k must be"),
        ({"p": 0}, "p must be"),
    ],
)
def test_bad_input_names_the_argument(change, words):
    given = {**SMALL, "k": 2, "trials": 3, "seed": 0, **change}
    with pytest.raises(ValueError, match=words):
        match_point(**given)
