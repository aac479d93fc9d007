"""Points of ReLU curves: hard zero, exact points, brackets."""

import numpy as np
import pytest

from helpers.allocation.allocations import (
    DoesNotFit,
    row_allocation,
    stack_allocations,
)
from helpers.allocation.levenberg import draw_starts, solve_shallow
from helpers.allocation.shallow import shallow_problems
from helpers.allocation.shallow_experiments import (
    enumeration_point,
    shallow_hits,
    shallow_point,
)

MAIN = dict(n=8, b=8, d=2, m=2, p=8)


def test_hits_agree_with_all_starts_at_once():
    draws = shallow_problems(40, 8, 8, 2, 2, 1)
    chosen = stack_allocations(
        [row_allocation((8, 8), 6, 8, r) for r in range(40)]
    )
    starts = draw_starts(40, 6, 8, 2)
    hit = solve_shallow(*draws[:3], chosen, starts).residual < 1e-8
    expected = np.where(hit.any(axis=1), hit.argmax(axis=1) + 1, 0)
    np.testing.assert_array_equal(
        shallow_hits(draws, chosen, starts), expected
    )
    assert len(set(expected)) > 2


def test_one_row_of_two_outputs_is_exactly_zero():
    row = shallow_point(**MAIN, k=1, trials=60, seed=3)
    assert row["fits"] == 1 and row["method"] == "range"
    counts = ("rank_full", "allowed", "hits", "exact_hits", "unsound")
    assert [row[c] for c in counts] == [0] * 5
    row = shallow_point(**MAIN, k=2, trials=60, seed=3)
    assert row["rank_full"] == 60 and 0 < row["exact_hits"] < 40


def test_free_rows_are_exact_and_the_optimiser_sound():
    row = shallow_point(**MAIN, k=4, trials=100, seed=4, starts=8)
    assert row["method"] == "range" and row["unsound"] == 0
    assert row["exact_hits"] == row["allowed"] == row["hits"] + row["missed"]
    assert row["missed"] > 0
    assert row["after"] == sorted(row["after"])
    assert row["after"][-1] == row["hits"]


def test_beyond_free_rows_there_is_a_bracket():
    row = shallow_point(**MAIN, k=8, trials=60, seed=5, starts=8)
    assert row["method"] == "" and row["exact_hits"] == 0
    assert row["hits"] <= row["allowed"] and row["unsound"] == 0


@pytest.mark.parametrize(
    "name,k,p,method",
    [("leaky", 1, 8, "range"), ("leaky", 4, 8, "range"), ("tanh", 3, 8, "range"),
     ("linear", 4, 4, "linear"), ("relu", 4, 4, "enumeration"),
     ("leaky", 4, 4, "enumeration"), ("leaky", 8, 8, ""), ("tanh", 8, 8, "")],
)  # fmt: skip
def test_exact_method_of_each_activation(name, k, p, method):
    row = shallow_point(8, 8, 2, 2, p, k, 40, 6, starts=6, activation=name)
    assert row["method"] == method and row["unsound"] == 0
    if method:
        assert row["exact_hits"] == row["missed"] + row["hits"]
    if name == "leaky" and k == 4 and p == 8:
        assert row["exact_hits"] == 40


def test_no_room_is_not_probability_zero():
    row = shallow_point(8, 8, 2, 2, p=12, k=1, trials=5, seed=0)
    assert row["fits"] == 0 and row["drawn"] == 0
    with pytest.raises(DoesNotFit):
        enumeration_point(8, 3, 2, 2, k=1, trials=5, seed=0)


def test_enumeration_point():
    few = enumeration_point(8, 6, 2, 2, k=2, trials=150, seed=7)
    assert few["matched"] == few["solutions"] == few["allowed"]
    many = enumeration_point(8, 6, 2, 2, k=4, trials=150, seed=7)
    assert many["matched"] < many["allowed"] and many["most"] > 1
    assert many["drawn"] + many["silent"] == 150
    zero = enumeration_point(8, 6, 2, 2, k=1, trials=150, seed=7)
    assert zero["matched"] == 0


def test_leaky_falls_where_relu_rises():
    """The same sizes, exactly: what spreading does depends on the range."""
    rate = {}
    for name in ("relu", "leaky"):
        for k in (2, 4):
            row = enumeration_point(8, 6, 2, 2, k, 250, 8, activation=name)
            rate[name, k] = row["matched"] / row["drawn"]
    assert rate["leaky", 2] == 1 > rate["leaky", 4] + 0.08
    assert rate["relu", 4] > rate["relu", 2] + 0.02


def test_bad_input():
    for wrong in ({"trials": 0}, {"starts": 0}, {"n": 0}):
        with pytest.raises(ValueError, match=next(iter(wrong))):
            shallow_point(**{**MAIN, "k": 2, "trials": 5, "seed": 0} | wrong)
    with pytest.raises(ValueError, match="activation"):
        shallow_point(**MAIN, k=2, trials=5, seed=0, activation="sign")
