"""Ranks: known matrices, exact arithmetic, caps against true rank."""

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from helpers.allocation import ranks
from helpers.allocation.allocations import Allocation, entry_allocation
from helpers.allocation.jacobians import lrnn_jacobian
from helpers.allocation.networks import (
    LinearRNN,
    controllability_matrix,
    lrnn_forward,
    observability_matrix,
    sample_lrnn,
)
from helpers.allocation.ranks import (
    PRIME,
    check_within_ceiling,
    column_rank_cap,
    gauge_cap,
    generic_rank,
    label_rank,
    min_learned_rows,
    rank_modp,
    recurrent_rank_modp,
    redundant_row_cap,
    row_rank_cap,
    teacher_map_rank,
)

SEEDS = st.integers(0, 2**32 - 1)
SIZE = st.integers(1, 5)


def whole(axis, chosen, n):
    """All entries of the chosen rows (axis 0) or columns."""
    chosen = np.asarray(chosen)
    long, other = np.repeat(chosen, n), np.tile(np.arange(n), chosen.size)
    return Allocation(long, other) if axis == 0 else Allocation(other, long)


def fraction_rank(M):
    """Gauss over the rationals."""
    A = [[Fraction(int(v)) for v in row] for row in M]
    rank = 0
    for c in range(len(A[0])):
        at = next((r for r in range(rank, len(A)) if A[r][c]), None)
        if at is None:
            continue
        A[rank], A[at] = A[at], A[rank]
        for r in range(rank + 1, len(A)):
            f = A[r][c] / A[rank][c]
            A[r] = [x - f * y for x, y in zip(A[r], A[rank], strict=True)]
        rank += 1
        if rank == len(A):
            break
    return rank


@given(SEEDS, SIZE, SIZE, st.integers(0, 4))
@settings(max_examples=50, deadline=None)
def test_low_rank_products(seed, c, p, r):
    """L R has rank min(r, c, p); three methods agree."""
    rng = np.random.default_rng(seed)
    L, R = rng.integers(-50, 50, (c, r)), rng.integers(-50, 50, (r, p))
    M = L @ R
    true = fraction_rank(M)
    assert rank_modp(M) == true
    assert generic_rank(M).rank == true
    assert rank_modp(M.T) == true


def test_the_gap_says_what_decided():
    found = generic_rank(np.diag([4.0, 2.0, 1e-13]))
    assert found.rank == 2 and np.isclose(found.gap, 2e13)
    assert generic_rank(np.zeros((2, 3))) == (0, np.inf)
    assert generic_rank(np.eye(2)) == (2, np.inf)
    stack = np.stack([np.eye(2), np.ones((2, 2)), np.zeros((2, 2))])
    np.testing.assert_array_equal(generic_rank(stack).rank, [2, 1, 0])
    assert generic_rank(np.diag([1, 0.5]), rtol=0.6).rank == 1


def test_a_prime_can_divide_a_minor():
    assert rank_modp([[3, 0], [0, 1]]) == 2
    assert rank_modp([[3, 0], [0, 1]], prime=3) == 1
    assert rank_modp([[PRIME]]) == 0
    # entries that would overflow if squared without reduction
    big = np.array([[2**62, 1], [2**62, 2]])
    assert rank_modp(big) == 2


def test_the_prime_is_prime():
    assert PRIME < 2**31 and pow(2, PRIME - 1, PRIME) == 1
    assert all(PRIME % q for q in range(2, int(PRIME**0.5) + 1))


@given(SEEDS, SIZE, st.integers(1, 3), st.integers(1, 3), SIZE, SIZE)
@settings(max_examples=60, deadline=None)
def test_float_and_exact_rank_agree(seed, n, b, d, T, m):
    rng = np.random.default_rng(seed)
    a = entry_allocation((n, n), int(rng.integers(1, n * n + 1)), rng)
    net = LinearRNN(*(M[0] for M in sample_lrnn(1, n, b, d, rng)))
    J = lrnn_jacobian(net, rng.normal(size=(T, b, m)), a)
    exact = recurrent_rank_modp(n, b, d, T, m, a, rng)
    assert generic_rank(J).rank == exact


@given(SEEDS, st.integers(1, 6), st.integers(1, 3), st.integers(1, 4),
       st.integers(1, 5), st.integers(1, 6))  # fmt: skip
@settings(max_examples=80, deadline=None)
def test_caps_are_never_exceeded(seed, n, b, d, T, m):
    rng = np.random.default_rng(seed)
    k = int(rng.integers(1, n + 1))
    chosen = rng.permutation(n)[:k]
    sizes = n, b, d, T, m
    row = recurrent_rank_modp(*sizes, whole(0, chosen, n), rng)
    column = recurrent_rank_modp(*sizes, whole(1, chosen, n), rng)
    assert row <= row_rank_cap(*sizes, k)
    assert column <= column_rank_cap(*sizes, k)
    if T == 1:
        assert row == column == 0 == row_rank_cap(*sizes, k)


def test_caps_are_attained_when_there_are_neurons_enough():
    """Equality in at least 97 of 100 random sizes, rows and columns."""
    rng = np.random.default_rng(1)
    hits = np.zeros(2)
    trials = 100
    for _ in range(trials):
        b, d, T = (int(v) for v in rng.integers(1, 4, 3) + (0, 0, 1))
        n = (T - 1) * max(b, d) + int(rng.integers(3))
        m, k = int(rng.integers(1, 7)), int(rng.integers(1, n + 1))
        chosen, sizes = rng.permutation(n)[:k], (n, b, d, T, m)
        hits += (
            recurrent_rank_modp(*sizes, whole(0, chosen, n), rng)
            == row_rank_cap(*sizes, k),
            recurrent_rank_modp(*sizes, whole(1, chosen, n), rng)
            == column_rank_cap(*sizes, k),
        )
    assert (hits >= 97).all(), hits


def test_figures_of_the_reconstruction():
    whole_matrix = whole(0, range(10), 10)
    found = [
        recurrent_rank_modp(10, 2, 2, 3, m, whole_matrix, 0) for m in (3, 4, 5)
    ]
    assert found == [6, 8, 8]
    assert [row_rank_cap(10, 2, 2, 3, m, 10) for m in (3, 4, 5)] == [6, 8, 8]
    assert [row_rank_cap(16, 4, 4, 3, 4, k) for k in (1, 2)] == [8, 16]
    assert [row_rank_cap(24, 6, 6, 3, 6, k) for k in (2, 3)] == [24, 36]
    # short rows: 3, not m min(d, k (T - 1)) = 12
    assert row_rank_cap(3, 4, 6, 4, 4, 1) == 3
    assert recurrent_rank_modp(3, 4, 6, 4, 4, whole(0, [1], 3), 0) == 3


@given(st.integers(1, 8), st.integers(1, 4), st.integers(1, 6),
       st.integers(2, 5), st.integers(0, 9), st.integers(0, 8), SEEDS)  # fmt: skip
@settings(max_examples=60, deadline=None)
def test_redundant_inputs_cost_rank(n, b, d, T, m, k, seed):
    """Never exceeded, at the counts of examples where it says something."""
    m, k = max(1, (T - 2) * b + m % (b + 1)), min(k, n)
    sizes = n, b, d, T, m
    rank = recurrent_rank_modp(*sizes, whole(0, range(k), n), seed)
    assert rank <= redundant_row_cap(*sizes, k)


def test_redundant_inputs_explain_what_flags_do_not():
    """Wherever it is below the other caps it is the rank."""
    lower = 0
    for b, d, T in np.ndindex(3, 4, 2):
        b, d, T = b + 2, d + 3, T + 2
        n = (T - 1) * max(b, d)
        for m in range((T - 2) * b + 1, (T - 1) * b):
            for k in range(1, d + 1):
                caps = [cap(n, b, d, T, m, k)
                        for cap in (row_rank_cap, redundant_row_cap)]  # fmt: skip
                if caps[1] < caps[0]:
                    lower += 1
                    A = whole(0, range(k), n)
                    assert recurrent_rank_modp(n, b, d, T, m, A, 0) == caps[1]
    assert lower > 20


def test_the_gauge_cap_bites_and_is_attained():
    """Many steps, few neurons: 19 where flags and lengths allow 20."""
    for sizes in ((4, 1, 1, 10, 9), (3, 1, 2, 9, 8), (3, 2, 2, 8, 14),
                  (2, 3, 1, 6, 12), (5, 1, 1, 11, 10)):  # fmt: skip
        n, b, d, T, m = sizes
        rank = recurrent_rank_modp(*sizes, whole(0, range(n), n), 0)
        assert rank == gauge_cap(n, b, d) < d * m
        assert row_rank_cap(*sizes, n) == rank == column_rank_cap(*sizes, n)
    # the stabiliser's dimension, from the linear equations G B = 0 = D G
    rng = np.random.default_rng(0)
    for n, b, d in ((5, 2, 1), (3, 4, 1), (4, 1, 6), (3, 1, 1)):
        B, D = rng.normal(size=(n, b)), rng.normal(size=(d, n))
        equations = np.vstack([np.kron(np.eye(n), B.T), np.kron(D, np.eye(n))])
        assert np.linalg.matrix_rank(equations) == gauge_cap(n, b, d)


@given(st.integers(1, 9), st.integers(2, 6), st.integers(1, 5))
@settings(max_examples=60, deadline=None)
def test_threshold_in_closed_form(d, T, m):
    """b >= m and long rows: the cap is m min(d, k (T - 1))."""
    n = max(m * (T - 1), d)
    for k in range(n + 1):
        cap = row_rank_cap(n, m, d, T, m, k)
        assert cap == m * min(d, k * (T - 1))
    assert min_learned_rows(n, m, d, T, m) == -(-d // (T - 1))


@given(st.integers(1, 6), st.integers(1, 3), st.integers(1, 4),
       st.integers(1, 4), st.integers(1, 8))  # fmt: skip
@settings(max_examples=80, deadline=None)
def test_caps_grow_and_the_ceiling_holds(n, b, d, T, m):
    for cap in (row_rank_cap, column_rank_cap):
        values = [cap(n, b, d, T, m, k) for k in range(n + 1)]
        assert values[0] == 0 and values == sorted(values)
        assert values[-1] <= min(d, n) * min(m, (T - 1) * b)
    if m > (T - 1) * b:
        assert min_learned_rows(n, b, d, T, m) is None
        with pytest.raises(ValueError, match="bypasses W"):
            check_within_ceiling(b, T, m)
    else:
        check_within_ceiling(b, T, m)


def test_teacher_map():
    """Never above the dimension count; one short where realisations are
    not unique; equal where they are."""
    assert teacher_map_rank(1, 1, 1, 5, 0) == 2
    assert teacher_map_rank(3, 2, 2, 3, 0) == 11  # n (b + d) = Tbd = 12
    assert teacher_map_rank(2, 3, 3, 1, 0) == 2 * (3 + 3 - 2)
    for n in range(1, 5):
        for b, d, T in ((1, 1, 4), (2, 1, 3), (2, 2, 2), (3, 2, 4)):
            bound = min(T * b * d, n * (b + d))
            found = teacher_map_rank(n, b, d, T, 1)
            assert bound - 1 <= found <= bound
            if any(min(i * d, (T - i) * b) >= n for i in range(1, T)):
                assert found == n * (b + d)


def test_teacher_map_by_finite_differences():
    """Rank of a numerical derivative of the effective weights."""
    n, b, d, T = 2, 2, 1, 4
    rng = np.random.default_rng(0)
    flat = rng.normal(size=n * b + n * n + d * n)

    def effective(v):
        B, W, D = np.split(v, [n * b, n * b + n * n])
        B, W, D = B.reshape(n, b), W.reshape(n, n), D.reshape(d, n)
        return np.concatenate(
            [(D @ np.linalg.matrix_power(W, s) @ B).ravel() for s in range(T)]
        )

    J = np.stack(
        [(effective(flat + e) - effective(flat - e)) / 2e-5
         for e in 1e-5 * np.eye(flat.size)], axis=1)  # fmt: skip
    numeric = generic_rank(J, rtol=1e-7).rank
    assert numeric == teacher_map_rank(n, b, d, T, 0) == 6


def test_refused():
    for wrong in (np.ones(3), np.ones((0, 3)), np.ones((3, 0))):
        with pytest.raises(ValueError, match="J must have shape"):
            generic_rank(wrong)
    with pytest.raises(ValueError, match="J must be finite"):
        generic_rank([[np.nan]])
    for rtol in (0, 1, -1, np.nan):
        with pytest.raises(ValueError, match="rtol"):
            generic_rank(np.eye(2), rtol)
    for wrong in (np.ones((2, 2)), np.ones(2, int)):
        with pytest.raises(ValueError, match="matrix of integers"):
            rank_modp(wrong)
    for prime in (1, 2**31 + 11):
        with pytest.raises(ValueError, match="prime must lie"):
            rank_modp([[1]], prime)
    a = ([0], [3])
    with pytest.raises(ValueError, match=r"cols must lie in \[0, 3\)"):
        recurrent_rank_modp(3, 1, 1, 2, 1, a, 0)
    with pytest.raises(ValueError, match="T must be a whole"):
        recurrent_rank_modp(3, 1, 1, 0, 1, ([0], [0]), 0)
    for cap, name in ((row_rank_cap, "k"), (column_rank_cap, "c")):
        for value in (-1, 4, 1.5, np.nan, True):
            with pytest.raises(ValueError, match=f"{name} must be a whole"):
                cap(3, 1, 1, 2, 1, value)
    with pytest.raises(ValueError, match="m must be a whole"):
        min_learned_rows(3, 1, 1, 2, 0)
    with pytest.raises(ValueError, match="n must be a whole"):
        teacher_map_rank(0, 1, 1, 2, 0)
    assert ranks.min_learned_rows(3, 1, 1, 1, 1) is None


@given(SEEDS, st.integers(1, 4), st.integers(1, 2), st.integers(1, 3),
       st.integers(1, 4), st.integers(1, 5))  # fmt: skip
@settings(max_examples=40, deadline=None)
def test_labels_of_all_weights(seed, n, b, d, T, m):
    """At most what the equations, the effective weights and one allocation
    allow; all effective weights once examples suffice."""
    found = label_rank(n, b, d, T, m, seed)
    through = teacher_map_rank(n, b, d, T, seed)
    assert found <= min(d * min(m, T * b), through)
    if m >= T * b:
        assert found == through
    rng = np.random.default_rng(seed)
    a = entry_allocation((n, n), int(rng.integers(1, n * n + 1)), rng)
    assert recurrent_rank_modp(n, b, d, T, m, a, rng) <= found


def test_degenerate_teacher_is_matched_beyond_its_budget():
    """n = b = d = 1, T = m = 5: W and D learn, two weights, five equations."""
    rng = np.random.default_rng(0)
    for _ in range(20):
        student = LinearRNN(*(M[0] for M in sample_lrnn(1, 1, 1, 1, rng)))
        teacher = LinearRNN(*(M[0] for M in sample_lrnn(1, 1, 1, 1, rng)))
        X = rng.normal(size=(5, 1, 5))
        match = LinearRNN(
            student.B, teacher.W, teacher.D * teacher.B / student.B
        )
        Y = lrnn_forward(teacher, X)
        gap = np.linalg.norm(lrnn_forward(match, X) - Y) / np.linalg.norm(Y)
        assert gap < 1e-12
    assert label_rank(1, 1, 1, 5, 5, 0) == 2
    with pytest.raises(ValueError, match="m must be a whole"):
        label_rank(1, 1, 1, 5, 0, 0)


def test_controllability_every_set_of_rows():
    """r rows have rank min(r, T b); and dually for columns of O_T."""
    rng = np.random.default_rng(2)
    for _ in range(60):
        n, b, T = (int(v) for v in rng.integers([2, 1, 1], [9, 4, 5]))
        net = LinearRNN(*(M[0] for M in sample_lrnn(1, n, b, b, rng)))
        r = int(rng.integers(1, n + 1))
        rows = rng.permutation(n)[:r]
        C, O_T = controllability_matrix(net, T), observability_matrix(net, T)
        assert generic_rank(C[rows]).rank == min(r, T * b)
        assert generic_rank(O_T[:, rows]).rank == min(r, T * b)
    # not for every network: a W that forgets
    still = LinearRNN(np.ones((4, 1)), np.eye(4), np.ones((1, 4)))
    assert generic_rank(controllability_matrix(still, 3)).rank == 1
