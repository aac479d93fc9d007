"""Allocations: counts, uniformity, a place for everything, refusals."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from helpers.allocation.allocations import (
    Allocation,
    DoesNotFit,
    allocation_mask,
    block_allocation,
    check_allocation,
    cycle_allocation,
    diagonal_allocation,
    entries,
    entry_allocation,
    row_allocation,
    stack_allocations,
    with_entries,
)

SEEDS = st.integers(0, 2**32 - 1)


@given(SEEDS, st.integers(1, 7), st.integers(1, 7), st.data())
@settings(max_examples=80, deadline=None)
def test_rows_are_even_and_balanced_columns_too(seed, n1, n0, data):
    k = data.draw(st.integers(1, n1))
    p = data.draw(st.integers(k, k * n0))
    for columns in ("balanced", "random"):
        a = row_allocation((n1, n0), k, p, seed, columns)
        mask = allocation_mask(a, (n1, n0))
        rows, cols = mask.sum(axis=1), mask.sum(axis=0)
        assert mask.sum() == p == a.rows.size  # no entry twice
        learned = rows[rows > 0]
        assert learned.size == k and np.ptp(learned) <= 1
        if columns == "balanced":
            assert np.ptp(cols) <= 1


def test_placement_is_uniform():
    """Each cell is used with probability p / (n1 n0), five sigma."""
    rng = np.random.default_rng(0)
    draws, p, shape = 3000, 3, (4, 3)
    makers = {
        "entries": lambda: entry_allocation(shape, p, rng),
        "random": lambda: row_allocation(shape, 2, p, rng, "random"),
        "balanced": lambda: row_allocation(shape, 2, p, rng, "balanced"),
    }
    sigma = np.sqrt(draws * 0.25 * 0.75)
    for name, make in makers.items():
        total = sum(
            allocation_mask(make(), shape).astype(int) for _ in range(draws)
        )
        assert np.abs(total - draws / 4).max() < 5 * sigma, name


def test_special_families():
    a = cycle_allocation(6, 4, 0)
    step = dict(zip(a.cols.tolist(), a.rows.tolist(), strict=True))
    start = a.cols[0]
    seen, at = [], start
    for _ in range(4):
        seen.append(at)
        at = step[int(at)]
    assert at == start and len(set(map(int, seen))) == 4  # one cycle
    a = diagonal_allocation(6, 6, 0)
    np.testing.assert_array_equal(allocation_mask(a, (6, 6)), np.eye(6) > 0)
    mask = allocation_mask(block_allocation(5, 3, 1), (5, 5))
    chosen = mask.diagonal()
    np.testing.assert_array_equal(mask, np.outer(chosen, chosen))
    assert mask.sum() == 9


@given(SEEDS, st.integers(1, 4), st.integers(1, 4), st.integers(1, 3))
@settings(max_examples=40, deadline=None)
def test_entries_come_back(seed, n1, n0, K):
    rng = np.random.default_rng(seed)
    p = int(rng.integers(1, n1 * n0 + 1))
    stack = stack_allocations(
        [entry_allocation((n1, n0), p, rng) for _ in range(K)]
    )
    M, v = rng.normal(size=(K, n1, n0)), rng.normal(size=(K, p))
    changed = with_entries(M, stack, v)
    np.testing.assert_array_equal(entries(changed, stack), v)
    mask = allocation_mask(stack, (n1, n0))
    np.testing.assert_array_equal(changed[~mask], M[~mask])
    for i in range(K):  # one by one, with plain indexing
        by_hand = M[i].copy()
        by_hand[stack.rows[i], stack.cols[i]] = v[i]
        np.testing.assert_array_equal(changed[i], by_hand)
    np.testing.assert_array_equal(with_entries(M, stack, entries(M, stack)), M)


def test_one_allocation_serves_a_stack_of_matrices():
    a = Allocation(np.array([1]), np.array([0]))
    M = np.zeros((3, 2, 2))
    changed = with_entries(M, a, np.arange(3.0)[:, None])
    np.testing.assert_array_equal(changed[:, 1, 0], [0, 1, 2])
    assert not M.any()  # the original is left alone


def test_does_not_fit_is_not_probability_zero():
    for call in (
        lambda: row_allocation((5, 4), 2, 9, 0),
        lambda: entry_allocation((2, 2), 5, 0),
        lambda: diagonal_allocation(3, 4, 0),
        lambda: cycle_allocation(3, 4, 0),
        lambda: block_allocation(3, 4, 0),
    ):
        with pytest.raises(DoesNotFit, match="does not fit"):
            call()
    assert issubclass(DoesNotFit, ValueError)
    row_allocation((5, 4), 2, 8, 0)  # exactly full


@pytest.mark.parametrize("value", [0, -2, 2.5, True, np.nan, "3"])
def test_budgets_and_rows_are_whole_numbers(value):
    with pytest.raises(ValueError, match="p must be a whole number"):
        entry_allocation((3, 3), value, 0)
    with pytest.raises(ValueError, match="k must be a whole number"):
        row_allocation((3, 3), value, 3, 0)


def test_out_of_range_is_refused():
    with pytest.raises(ValueError, match="k must be .* from 1 to 3"):
        row_allocation((3, 3), 4, 5, 0)
    with pytest.raises(ValueError, match="p must be at least k"):
        row_allocation((3, 3), 3, 2, 0)
    with pytest.raises(ValueError, match="columns must be"):
        row_allocation((3, 3), 1, 2, 0, "even")
    for bad, words in (
        (([0, 3], [0, 0]), r"rows must lie in \[0, 3\), got 3"),
        (([0, 0], [0, -1]), r"cols must lie in \[0, 2\), got -1"),
        (([0, 0], [1, 1]), "twice"),
        (([0, 1], [1]), "same shape"),
        (([0.0], [1.0]), "whole numbers"),
        ((0, 1), "same shape"),
    ):
        with pytest.raises(ValueError, match=words):
            check_allocation(bad, (3, 2))
        with pytest.raises(ValueError, match=words):
            with_entries(np.zeros((3, 2)), bad, [1.0])
    for stacks in ([], [([0], [0]), ([0, 1], [0, 1])]):
        with pytest.raises(ValueError, match="one or more of one size"):
            stack_allocations(stacks)
