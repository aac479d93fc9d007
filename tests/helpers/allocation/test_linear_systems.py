"""Affine allocations: the systems, zero-one laws, counts and their limits."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from helpers.allocation.allocations import (
    Allocation,
    allocation_mask,
    entry_allocation,
    row_allocation,
    with_entries,
)
from helpers.allocation.linear_systems import (
    AffineSystem,
    Conditions,
    affine_residual,
    consecutive_allocation,
    decoder_condition,
    decoder_system,
    encoder_conditions,
    encoder_system,
    layer_conditions,
    layer_system,
    learned_counts,
    recurrent_conditions,
)
from helpers.allocation.networks import (
    LinearRNN,
    lffn_forward,
    lrnn_forward,
    sample_lffn,
    sample_lrnn,
    sample_lrnn_problems,
)
from helpers.allocation.ranks import generic_rank, recurrent_rank_modp

SEEDS = st.integers(0, 2**32 - 1)
SIZE = st.integers(1, 4)


def one(seed, n, b, d):
    return LinearRNN(*(M[0] for M in sample_lrnn(1, n, b, d, seed)))


def counted_rows(counts, n, rng):
    """Row ``j`` gets ``counts[j]`` random columns."""
    rows = np.repeat(np.arange(len(counts)), counts)
    cols = np.concatenate([rng.permutation(n)[:q] for q in counts])
    return Allocation(rows, cols.astype(int))


def residual(system):
    """Relative to the system as given, by plain least squares."""
    w = np.linalg.lstsq(*system, rcond=None)[0]
    return np.linalg.norm(system.M @ w - system.r) / np.linalg.norm(system.r)


@given(SEEDS, SIZE, SIZE, SIZE, SIZE, SIZE)
@settings(max_examples=40, deadline=None)
def test_systems_give_the_labels(seed, n, b, d, T, m):
    """M w - r is the student's label minus Y, at any weights."""
    rng = np.random.default_rng(seed)
    net, Y = one(rng, n, b, d), rng.normal(size=(d, m))
    X = rng.normal(size=(T, b, m))
    for make, name in ((decoder_system, "D"), (encoder_system, "B")):
        shape = getattr(net, name).shape
        p = int(rng.integers(1, shape[0] * shape[1] + 1))
        a, w = entry_allocation(shape, p, rng), rng.normal(size=p)
        moved = with_entries(getattr(net, name), a, w)
        gap = lrnn_forward(net._replace(**{name: moved}), X) - Y
        system = make(net, X, Y, a)
        np.testing.assert_allclose(
            system.M @ w - system.r, gap.ravel(), atol=1e-10
        )


@given(SEEDS, st.lists(SIZE, min_size=2, max_size=4), SIZE)
@settings(max_examples=40, deadline=None)
def test_layer_system_gives_the_labels(seed, widths, m):
    rng = np.random.default_rng(seed)
    layers = [W[0] for W in sample_lffn(1, widths, rng)]
    layer = int(rng.integers(len(layers)))
    shape = layers[layer].shape
    p = int(rng.integers(1, shape[0] * shape[1] + 1))
    a, w = entry_allocation(shape, p, rng), rng.normal(size=p)
    X, Y = rng.normal(size=(widths[0], m)), rng.normal(size=(widths[-1], m))
    system = layer_system(layers, X, Y, a, layer)
    moved = list(layers)
    moved[layer] = with_entries(moved[layer], a, w)
    gap = lffn_forward(moved, X) - Y
    np.testing.assert_allclose(
        system.M @ w - system.r, gap.ravel(), atol=1e-10
    )


@given(SEEDS, SIZE, st.integers(1, 6), st.integers(0, 4))
@settings(max_examples=40, deadline=None)
def test_residual_against_least_squares(seed, p, c, rank):
    rng = np.random.default_rng(seed)
    M = rng.normal(size=(3, c, rank)) @ rng.normal(size=(3, rank, p))
    r = rng.normal(size=(3, c))
    r[2] = 0
    found = affine_residual(AffineSystem(M, r))
    for i in (0, 1):
        expected = residual(AffineSystem(M[i], r[i]))
        np.testing.assert_allclose(found[i], expected, atol=1e-12)
    assert found[2] == 0
    with pytest.raises(ValueError, match="M must be"):
        affine_residual(AffineSystem(M, r[:, 1:]))
    with pytest.raises(ValueError, match="r must be finite"):
        affine_residual(AffineSystem(M, r * np.nan))


def test_decoder_by_hand():
    """States (1, 2) and (3, 4) at two examples, one row, entry 0 frozen."""
    net = LinearRNN(np.eye(2), np.zeros((2, 2)), [[10.0, 7.0]])
    X = np.array([[[1.0, 3.0], [2.0, 4.0]]])
    M, r = decoder_system(net, X, [[12.0, 34.0]], Allocation([0], [1]))
    np.testing.assert_allclose(M, [[2.0], [4.0]])
    np.testing.assert_allclose(r, [2.0, 4.0])


DECODER = [
    (5, (5, 5, 5), True),
    (5, (6, 6, 6), True),
    (5, (4, 6, 5), False),
    (5, (12, 12, 4), False),
    (11, (8, 8, 8), True),
    (11, (12, 12, 7), False),
]


@pytest.mark.parametrize("m, counts, matches", DECODER)
def test_decoder_zero_one(m, counts, matches):
    n, b, d, T = 12, 2, 3, 4
    rng = np.random.default_rng(m)
    for _ in range(12):
        teacher, student = one(rng, n, b, d), one(rng, n, b, d)
        X = rng.normal(size=(T, b, m))
        a = counted_rows(counts, n, rng)
        Y = lrnn_forward(teacher, X)
        found = residual(decoder_system(student, X, Y, a))
        assert (found < 1e-8) == matches
        assert decoder_condition(a, n, b, d, T, m) is matches


@pytest.mark.parametrize("n", [1, 2, 5])
def test_decoder_law_needs_no_room_in_the_teacher(n):
    """Few neurons: the teacher is degenerate, the law holds all the same."""
    rng = np.random.default_rng(n)
    for b, d, T, m in ((1, 2, 4, 2), (2, 1, 3, 3), (2, 2, 1, 4)):
        for p in (1, n, n * d):
            a = entry_allocation((d, n), p, rng)
            X = rng.normal(size=(T, b, m))
            Y = lrnn_forward(one(rng, n, b, d), X)
            found = residual(decoder_system(one(rng, n, b, d), X, Y, a))
            assert (found < 1e-8) == decoder_condition(a, n, b, d, T, m)


ENCODER = [((4, 4, 4), 12), ((6, 6, 0), 12), ((7, 5, 0), 11), ((12, 0, 0), 6)]


@pytest.mark.parametrize("counts, rank", ENCODER)
def test_encoder_zero_one(counts, rank):
    n, b, d, T, m = 12, 3, 2, 3, 6
    rng = np.random.default_rng(0)
    for _ in range(10):
        teacher, student = one(rng, n, b, d), one(rng, n, b, d)
        X = rng.normal(size=(T, b, m))
        cols, rows = counted_rows(counts, n, rng)  # columns of B
        a = Allocation(rows, cols)
        system = encoder_system(student, X, lrnn_forward(teacher, X), a)
        assert generic_rank(system.M).rank == rank
        assert (residual(system) < 1e-8) == (rank == d * m)
        wanted = Conditions(True, rank == d * m)
        assert encoder_conditions(a, n, b, d, T, m) == wanted


def test_encoder_row_cap():
    """One learned row: rank m min(d, T)."""
    n, b, d, m = 5, 30, 3, 2
    rng = np.random.default_rng(0)
    a = Allocation(np.zeros(b, int), np.arange(b))
    for T, rank in ((1, 2), (2, 4), (3, 6), (4, 6)):
        net, X = one(rng, n, b, d), rng.normal(size=(T, b, m))
        system = encoder_system(net, X, np.zeros((d, m)), a)
        assert generic_rank(system.M).rank == rank == m * min(d, T)
        assert encoder_conditions(a, n, b, d, T, m).rows is (T >= 3)


@given(SEEDS, st.integers(1, 5), SIZE, SIZE, SIZE, SIZE)
@settings(max_examples=60, deadline=None)
def test_encoder_conditions_are_necessary(seed, n, b, d, T, m):
    rng = np.random.default_rng(seed)
    a = entry_allocation((n, b), int(rng.integers(1, n * b + 1)), rng)
    X = rng.normal(size=(T, b, m))
    M = encoder_system(one(rng, n, b, d), X, np.zeros((d, m)), a).M
    if generic_rank(M).rank == d * min(m, T * b):
        assert encoder_conditions(a, n, b, d, T, m) == (True, True)


def middle_rank(a, shape, d, m, rng):
    """A layer between generic P and Z."""
    P, Z = rng.normal(size=(d, shape[0])), rng.normal(size=(shape[1], m))
    columns = [
        np.outer(P[:, j], Z[c]).ravel() for j, c in zip(*a, strict=True)
    ]
    return int(generic_rank(np.stack(columns, axis=1)).rank)


@given(SEEDS, SIZE, SIZE, SIZE, SIZE)
@settings(max_examples=40, deadline=None)
def test_full_blocks(seed, r, c, d, m):
    rng = np.random.default_rng(seed)
    a = Allocation(np.repeat(np.arange(r), c), np.tile(np.arange(c), r))
    rank = middle_rank(a, (r, c), d, m, rng)
    assert rank == min(r, d) * min(c, m)
    assert layer_conditions(a, (r, c), d, m) == (
        min(c, m) * r >= d * m,
        min(r, d) * c >= d * m,
    )


def test_maximal_families_and_the_counterexample():
    """d rows of m, m columns of d; two planes meet in a line."""
    d, m, shape = 3, 4, (6, 7)
    rng = np.random.default_rng(0)
    for _ in range(10):
        rows = np.repeat(rng.permutation(6)[:d], m)
        cols = np.concatenate([rng.permutation(7)[:m] for _ in range(d)])
        assert middle_rank((rows, cols), shape, d, m, rng) == d * m
        cols = np.repeat(rng.permutation(7)[:m], d)
        rows = np.concatenate([rng.permutation(6)[:d] for _ in range(m)])
        assert middle_rank((rows, cols), shape, d, m, rng) == d * m
    a = consecutive_allocation((4, 12), 4, 24)
    assert layer_conditions(a, (4, 12), 3, 8) == (True, True)
    assert middle_rank(a, (4, 12), 3, 8, rng) == 20


@given(SEEDS, st.integers(1, 5), st.integers(1, 3), st.integers(1, 3),
       st.integers(1, 4), st.integers(1, 4))  # fmt: skip
@settings(max_examples=80, deadline=None)
def test_recurrent_conditions_are_necessary(seed, n, b, d, T, m):
    rng = np.random.default_rng(seed)
    a = entry_allocation((n, n), int(rng.integers(1, n * n + 1)), rng)
    if recurrent_rank_modp(n, b, d, T, m, a, rng) == d * m:
        assert recurrent_conditions(a, n, b, d, T, m) == (True, True)


def test_recurrent_conditions_can_fail_either_way():
    n, b, d, T, m = 8, 4, 4, 3, 2
    row = Allocation(np.zeros(8, int), np.arange(8))
    column = Allocation(np.arange(8), np.zeros(8, int))
    assert recurrent_conditions(row, n, b, d, T, m) == (False, True)
    wide = (8, 4, 2, 3, 4)
    assert recurrent_conditions(column, *wide) == (True, False)
    spread = row_allocation((n, n), 4, 8, 0)
    assert recurrent_conditions(spread, n, b, d, T, m) == (True, True)


def test_consecutive_columns():
    a = consecutive_allocation((12, 12), 4, 24)
    rows, cols = learned_counts(a, (12, 12))
    np.testing.assert_array_equal(rows, [6] * 4 + [0] * 8)
    np.testing.assert_array_equal(cols, [2] * 12)
    mask = allocation_mask(a, (12, 12))
    np.testing.assert_array_equal(mask[0], mask[2])
    np.testing.assert_array_equal(mask[1], ~mask[0])
    uneven = consecutive_allocation((3, 4), 3, 7)
    np.testing.assert_array_equal(learned_counts(uneven, (3, 4))[0], [3, 2, 2])


def test_refused():
    net = one(0, 3, 2, 1)
    X, Y = np.ones((2, 2, 4)), np.ones((1, 4))
    a = Allocation([0], [1])
    for make in (decoder_system, encoder_system):
        with pytest.raises(ValueError, match="Y must be finite"):
            make(net, X, Y * np.inf, a)
        with pytest.raises(ValueError, match="Y must have shape"):
            make(net, X, Y.T, a)
        with pytest.raises(ValueError, match="rows must lie"):
            make(net, X, Y, Allocation([3], [0]))
        with pytest.raises(ValueError, match="X must have shape"):
            make(net, X[0], Y, a)
    for layer in (-1, 2, True, 0.5):
        with pytest.raises(ValueError, match="layer must be one of"):
            layer_system([np.eye(2)] * 2, X[0], np.ones((2, 4)), a, layer)
    for check, sizes in (
        (decoder_condition, (3, 0, 1, 2, 1)),
        (encoder_conditions, (3, 2, 1, 0, 1)),
        (recurrent_conditions, (3, 2, 1, 2, 0)),
    ):
        with pytest.raises(ValueError, match="whole number >= 1"):
            check(a, *sizes)
    with pytest.raises(ValueError, match="d must be a whole"):
        layer_conditions(a, (2, 2), 0, 1)
    with pytest.raises(ValueError, match="must be one"):
        learned_counts(([[0], [1]], [[0], [1]]), (2, 2))
    for k, p in ((4, 4), (2, 1), (2, 9)):
        with pytest.raises(ValueError, match="need 1 <= k"):
            consecutive_allocation((3, 4), k, p)


@given(SEEDS)
@settings(max_examples=40, deadline=None)
def test_exact_matches_are_monotone(seed):
    """A further example never makes a match, a further weight never breaks
    one; small sizes, so that both answers occur."""
    rng = np.random.default_rng(seed)
    n, b, d, T = 4, 1, 2, 3
    teacher, student = one(rng, n, b, d), one(rng, n, b, d)
    X, p = rng.normal(size=(T, b, 4)), int(rng.integers(1, 8))
    a = entry_allocation((d, n), 8, rng)

    def matched(entries, m):
        Y = lrnn_forward(teacher, X[..., :m])
        chosen = Allocation(a.rows[:entries], a.cols[:entries])
        return residual(decoder_system(student, X[..., :m], Y, chosen)) < 1e-8

    found = np.array([[matched(q, m) for m in (1, 2, 3)] for q in (p, p + 1)])
    assert (found[:, 1:] <= found[:, :-1]).all()
    assert (found[0] <= found[1]).all()


def test_free_labels_beyond_the_inputs():
    """Ten examples of eight numbers: only a linear teacher's labels fit."""
    n, b, d, T, m = 10, 2, 2, 4, 10
    rng = np.random.default_rng(5)
    a = counted_rows((8, 8), n, rng)
    for _ in range(10):
        teacher, student = one(rng, n, b, d), one(rng, n, b, d)
        X = rng.normal(size=(T, b, m))
        Y = lrnn_forward(teacher, X)
        assert residual(decoder_system(student, X, Y, a)) < 1e-8
        free = rng.normal(size=Y.shape)
        assert residual(decoder_system(student, X, free, a)) > 1e-6
        few = decoder_system(student, X[..., :8], free[:, :8], a)
        assert residual(few) < 1e-8


def test_small_residuals_of_failures_are_proportional():
    """One missing dimension: ten times the threshold, ten times the share,
    within five standard errors of the smaller count."""
    rng = np.random.default_rng(6)
    problem = sample_lrnn_problems(6000, 6, 2, 1, 3, 4, rng)
    a = counted_rows((3,), 6, rng)
    system = decoder_system(problem.student, problem.X, problem.Y, a)
    found = affine_residual(system)
    few, many = (found < 4e-3).sum(), (found < 4e-2).sum()
    assert few > 30 and abs(many - 10 * few) < 50 * np.sqrt(few)
    assert found.min() < 2e-3  # nothing keeps failures away from zero


def test_spreading_rows_alone_hurts():
    """Layer of 12, d = 3, m = 8, p = 24: exact rank of each placement, and
    least squares agrees with it."""
    rng = np.random.default_rng(8)
    share = {}
    for k, columns in ((2, "random"), (3, "random"), (12, "random"),
                       (12, "balanced")):  # fmt: skip
        full = []
        for _ in range(25):
            layers = [W[0] for W in sample_lffn(1, [12, 12, 12, 3], rng)]
            teacher = [W[0] for W in sample_lffn(1, [12, 12, 12, 3], rng)]
            X = rng.normal(size=(12, 8))
            a = row_allocation((12, 12), k, 24, rng, columns)
            system = layer_system(layers, X, lffn_forward(teacher, X), a, 1)
            full.append(generic_rank(system.M).rank == 24)
            assert full[-1] == (affine_residual(system) < 1e-8)
        share[k, columns] = np.mean(full)
    assert share[2, "random"] == 0 and share[3, "random"] == 1
    assert share[12, "random"] < 0.5 < share[12, "balanced"]


def test_repeated_and_correlated_examples():
    """Only ranks matter: by exact arithmetic of what repeats."""
    n, b, d, T, m = 8, 2, 2, 3, 4
    rng = np.random.default_rng(9)
    a = counted_rows((m, m), n, rng)
    for _ in range(10):
        teacher, student = one(rng, n, b, d), one(rng, n, b, d)
        X = rng.normal(size=(T, b, m))
        for t in range(1, T):
            X[t] = 0.95 * X[t - 1] + 0.3 * X[t]
        Y = lrnn_forward(teacher, X)
        assert residual(decoder_system(student, X, Y, a)) < 1e-8
        twice = np.concatenate([X, X[..., :1]], axis=-1)
        Y = lrnn_forward(teacher, twice)
        assert residual(decoder_system(student, twice, Y, a)) < 1e-8
        Y[:, -1] += 1.0
        assert residual(decoder_system(student, twice, Y, a)) > 1e-6
