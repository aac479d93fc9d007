"""Configurations: products, canonical form, seeds, and what is refused."""

import json

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from helpers.core.randomness import as_generator
from helpers.sweep.grid import (
    canonical_json,
    configuration_key,
    configurations,
    grid,
    spawn_seeds,
)


def test_product_by_hand():
    assert grid(n=[1, 2], k=5, s=("a", "b")) == [
        {"n": 1, "k": 5, "s": "a"},
        {"n": 1, "k": 5, "s": "b"},
        {"n": 2, "k": 5, "s": "a"},
        {"n": 2, "k": 5, "s": "b"},
    ]


def test_fixed_values_and_lists_of_lists():
    [only] = grid(widths=[[3, 4]], name="relu", scale=None, deep={"a": 1})
    assert only == {
        "widths": [3, 4],
        "name": "relu",
        "scale": None,
        "deep": {"a": 1},
    }


def test_numpy_values_become_plain():
    items = configurations(
        [{"a": np.float64(0.5), "b": np.arange(2), "c": np.True_, "d": (1,)}]
    )
    assert (
        json.dumps(items) == '[{"a": 0.5, "b": [0, 1], "c": true, "d": [1]}]'
    )
    assert configurations({"x": np.arange(2)}) == [{"x": 0}, {"x": 1}]
    assert grid(x=np.array(3)) == [{"x": 3}]


JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(),
    lambda v: st.lists(v, max_size=3) | st.dictionaries(st.text(), v),
    max_leaves=6,
)
NAMES = st.sampled_from(["a", "b", "seed", "n"])


@given(st.dictionaries(NAMES, JSON, min_size=1))
def test_a_key_is_a_property_of_the_values(item):
    turned = dict(reversed(item.items()))
    assert configuration_key(item) == configuration_key(turned)
    [again] = configurations([json.loads(canonical_json(item))])
    assert configuration_key(again) == configuration_key(item)


@given(st.lists(st.dictionaries(NAMES, JSON), min_size=2, max_size=2))
def test_different_configurations_have_different_keys(two):
    texts = [canonical_json(c) for c in two]
    keys = {configuration_key(c) for c in two}
    assert (len(keys) == 1) == (texts[0] == texts[1])


def test_one_and_one_point_zero_are_two_configurations():
    assert len(configurations([{"x": 1}, {"x": 1.0}])) == 2


@pytest.mark.parametrize(
    ("items", "words"),
    [
        ([], "empty"),
        ({"n": []}, "'n' is empty"),
        ([{"x": 1}, {"x": 1}], "configuration 1 was given before"),
        ([{"x": np.int64(1)}, {"x": 1}], "given before"),
        ({"x": [1, 2, 1]}, "given before"),
        ([{"x": float("nan")}], "x must be finite"),
        ([{"x": [1, np.inf]}], r"x\[1\] must be finite"),
        ([{"x": 1j}], "complex"),
        ([{"x": object()}], "must be a JSON value"),
        ([{"x": {1: 2}}], "no text"),
        ([{"x": {1, 2}}], "set"),
        ([{1: 2}], "names of a configuration"),
        ([{"not a name": 2}], "names of a configuration"),
        ({"a-b": [1]}, "names of a configuration"),
        ([3], "configuration 0 must be a mapping"),
        ("grid", "must be a grid"),
        (3, "must be a grid"),
    ],
)
def test_refused(items, words):
    with pytest.raises(ValueError, match=words):
        configurations(items)


def test_seeds_are_reproducible_distinct_and_may_be_widened():
    seeds = spawn_seeds(7, 200)
    assert seeds[:20] == spawn_seeds(7, 20)
    assert len(set(seeds)) == 200 and not set(seeds) & set(spawn_seeds(8, 99))
    assert all(0 <= s < 2**63 for s in seeds)
    # the definition, written down once more
    child = np.random.SeedSequence(7).spawn(4)[3]
    assert seeds[3] == int(child.generate_state(1, np.uint64)[0]) // 2
    values = [as_generator(s).random() for s in seeds]
    assert len(set(values)) == 200


@pytest.mark.parametrize("bad", [(-1, 2), (0, 0), (0.5, 2), (True, 1)])
def test_refused_seeds(bad):
    with pytest.raises(ValueError, match="must be a whole number"):
        spawn_seeds(*bad)
