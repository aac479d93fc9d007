"""Shallow networks: targets, hard zero, ceiling, free rows, enumeration."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from helpers.allocation.allocations import (
    Allocation,
    row_allocation,
    stack_allocations,
    with_entries,
)
from helpers.allocation.cones import wendel_probability
from helpers.allocation.levenberg import draw_starts, solve_shallow
from helpers.allocation.networks import ShallowReLU, relu_forward
from helpers.allocation.shallow import (
    ShallowProblems,
    activate,
    bijective_activation_solve,
    free_rows_solve,
    has_free_rows,
    region_rank,
    relu_enumerate_matches,
    relu_targets,
    shallow_match_probability,
    shallow_problems,
    take,
    within_range,
)


def placed(K, shape, k, p, seed):
    rng = np.random.default_rng(seed)
    return stack_allocations(
        [row_allocation(shape, k, p, rng) for _ in range(K)]
    )


@settings(max_examples=20, deadline=None)
@given(
    st.integers(0, 10_000),
    st.sampled_from(["relu", "leaky", "tanh", "linear"]),
    st.integers(1, 3),
    st.integers(1, 4),
)
def test_targets_are_what_the_learned_neurons_must_add(seed, name, k, m):
    """Any weights: labels minus output = target minus learned part."""
    draws = shallow_problems(3, 4, 3, 2, m, seed, "random", name)
    mine = placed(3, (4, 3), k, k + 1, seed)
    left = relu_targets(draws, mine)
    w = np.random.default_rng(seed).normal(size=mine.rows.shape)
    now = ShallowReLU(with_entries(draws.student.B, mine, w), draws.student.D)
    gap = draws.Y - relu_forward(now, draws.X, lambda z: activate(z, name))
    for i in range(3):
        z = left.offset[i].copy()
        rows = np.searchsorted(left.rows[i], mine.rows[i])
        np.add.at(z, rows, w[i][:, None] * draws.X[i][mine.cols[i]])
        mine_gap = left.t[i] - left.D_S[i] @ activate(z, name)
        np.testing.assert_allclose(mine_gap, gap[i], atol=1e-12)


def test_target_by_hand_with_a_frozen_entry_in_the_learned_row():
    student = ShallowReLU([[[9.0, 2.0], [1.0, 1.0]]], [[[5.0, 3.0]]])
    draws = ShallowProblems(student, [[[1.0], [4.0]]], [[[7.0]]])
    left = relu_targets(draws, Allocation([0], [0]))
    # frozen neuron: 3 relu(1 + 4) = 15; its own frozen entry adds 2 * 4
    assert left.t.item() == -8 and left.offset.item() == 8
    assert left.D_S.item() == 5 and left.rows.item() == 0
    assert not within_range(left).item()


def test_activations_by_hand():
    z = [-1.0, 0.0, 2.0]
    assert activate(z).tolist() == [0, 0, 2]
    assert activate(z, "leaky").tolist() == [-0.1, 0, 2]
    assert activate(z, "linear").tolist() == z
    np.testing.assert_allclose(activate(z, "tanh"), np.tanh(z))


@pytest.mark.parametrize("n,k,d", [(2, 1, 2), (3, 1, 2), (3, 2, 3)])
def test_the_atom_is_all_that_matches_below_d_rows(n, k, d):
    K = 2500
    draws = shallow_problems(K, n, 4, d, 1, 5)
    mine = placed(K, (n, 4), k, k, 6)
    found = shallow_match_probability(draws, mine, 0)
    p = 2.0 ** -(2 * n - k)
    assert found.exact and abs(found.mp - p) < 4 * (p * (1 - p) / K) ** 0.5
    # not one match beyond the atom
    left = relu_targets(draws, mine)
    silent = (left.t == 0).all(axis=(1, 2))
    np.testing.assert_array_equal(within_range(left).all(axis=1), silent)
    other = shallow_problems(K, n, 4, d, 1, 5, labels="random")
    assert shallow_match_probability(other, mine, 0).mp == 0


@pytest.mark.parametrize("k,d", [(2, 2), (3, 2), (4, 3)])
def test_the_ceiling_is_attained_at_one_example(k, d):
    """Tight: free rows and m = 1 give ceiling and atom exactly."""
    K, n = 2000, 4
    draws = shallow_problems(K, n, 3, d, 1, 7)
    found = shallow_match_probability(draws, placed(K, (n, 3), k, k, 8), 0)
    atom = 2.0 ** -(2 * n - k)
    p = atom + (1 - atom) * wendel_probability(k, d)
    assert found.exact and found.method == "range"
    assert abs(found.mp - p) < 4 * (p * (1 - p) / K) ** 0.5


@pytest.mark.parametrize("name", ["relu", "leaky", "tanh", "linear"])
def test_free_rows_have_a_witness_exactly_where_the_range_permits(name):
    K, k = 60, 3
    draws = shallow_problems(K, 8, 8, 2, 3, 9, activation=name)
    mine = placed(K, (8, 8), k, 3 * k, 10)
    done = free_rows_solve(draws, mine)
    matched = within_range(relu_targets(draws, mine), name).all(axis=1)
    np.testing.assert_array_equal(done.matched, matched)
    assert (done.residual[matched] < 1e-8).all()
    assert np.isinf(done.residual[~matched]).all()
    if name in ("relu", "tanh"):
        assert 3 < matched.sum() < 57
    else:
        assert matched.all()
    # the optimiser matches nothing outside
    first = draw_starts(K, 8, 3 * k, 11)
    hits = solve_shallow(*draws[:3], mine, first, name).matched
    assert not (hits & ~matched).any() and hits.sum() > 3


@settings(max_examples=15, deadline=None)
@given(st.integers(0, 10_000), st.integers(1, 3), st.integers(1, 4))
def test_bijections_match_in_d_rows(seed, d, m):
    for name in ("leaky", "linear"):
        draws = shallow_problems(4, 6, 5, d, m, seed, activation=name)
        done = bijective_activation_solve(
            draws, placed(4, (6, 5), d, m * d, seed)
        )
        # a badly conditioned draw may lose digits, not its match
        assert done.matched.all() and np.median(done.residual) < 1e-8


def test_leaky_matches_by_enumeration():
    """One match in d free rows; beyond, none is promised."""
    K = 60
    draws = shallow_problems(K, 8, 6, 2, 2, 30, activation="leaky")
    at_d = relu_enumerate_matches(draws, placed(K, (8, 6), 2, 4, 31))
    assert (at_d == 1).all()
    mine = placed(K, (8, 6), 4, 4, 32)
    counts = relu_enumerate_matches(draws, mine)
    starts = draw_starts(K, 40, 4, 33)
    hits = solve_shallow(*draws[:3], mine, starts, "leaky", 0.1).matched
    assert not (hits & (counts == 0)).any()
    assert 0 < (counts == 0).sum() < K and counts.max() > 1


def test_one_row_less_than_d_is_zero_for_bijections_too():
    draws = shallow_problems(30, 6, 6, 3, 2, 1, activation="leaky")
    found = shallow_match_probability(draws, placed(30, (6, 6), 2, 6, 2), 0)
    assert found.mp == 0 and found.exact and found.rank_full == 0


def test_enumeration_and_cone_test_agree_where_both_apply():
    K = 120
    for d, m in ((1, 3), (2, 2), (2, 3)):
        draws = shallow_problems(K, 8, 6, d, m, 12)
        mine = placed(K, (8, 6), d, m * d, 13)
        left = relu_targets(draws, mine)
        counts = relu_enumerate_matches(draws, mine)
        np.testing.assert_array_equal(
            counts > 0, within_range(left).all(axis=1)
        )
        assert set(counts) == {0, 1}


@pytest.mark.parametrize("d,m,k", [(1, 3, 3), (2, 2, 4), (2, 3, 3)])
def test_optimiser_is_sound_against_enumeration(d, m, k):
    K = 80
    draws = shallow_problems(K, 9, 6, d, m, 14)
    mine = placed(K, (9, 6), k, m * d, 15)
    exists = relu_enumerate_matches(draws, mine) > 0
    first = draw_starts(K, 30, m * d, 16)
    hits = solve_shallow(*draws[:3], mine, first).matched
    assert not (hits & ~exists).any()
    assert hits.sum() >= exists.sum() / 2  # it misses some
    assert exists.mean() < 0.7


def test_a_planted_match_is_counted():
    """Labels of the student itself with other learned weights."""
    draws = shallow_problems(20, 6, 5, 1, 3, 17)
    mine = placed(20, (6, 5), 3, 3, 18)
    w = np.random.default_rng(19).normal(size=(20, 3))
    B, D = draws.student
    Y = relu_forward(ShallowReLU(with_entries(B, mine, w), D), draws.X)
    planted = draws._replace(Y=Y)
    rank = region_rank(planted._replace(
        student=ShallowReLU(with_entries(B, mine, w), D)), mine, 0)  # fmt: skip
    active = (with_entries(B, mine, w) @ draws.X > 0).sum(axis=2)
    for i in range(20):
        rows = relu_targets(planted, mine).rows[i]
        if (active[i][rows] >= 1).all() and rank[i] == 3:
            one = take(planted, [i])
            chosen = Allocation(mine.rows[i : i + 1], mine.cols[i : i + 1])
            left = relu_targets(one, chosen)
            if (left.t == 0).all(axis=1).any() or not _regular(
                one, chosen, w[i]
            ):
                continue
            assert relu_enumerate_matches(one, chosen)[0] >= 1


def _regular(one, chosen, w):
    """Whether the planted weights lie in a region of full rank."""
    from helpers.allocation.jacobians import relu_jacobian

    B = with_entries(one.student.B, chosen, w[None])
    J = relu_jacobian(ShallowReLU(B, one.student.D), one.X, chosen)
    return np.linalg.matrix_rank(J[0]) == J.shape[1]


def test_more_examples_never_turn_a_failure_into_a_match():
    draws = shallow_problems(100, 8, 8, 2, 3, 20)
    mine = placed(100, (8, 8), 4, 12, 21)
    three = within_range(relu_targets(draws, mine)).all(axis=1)
    fewer = draws._replace(X=draws.X[:, :, :2], Y=draws.Y[:, :, :2])
    two = within_range(relu_targets(fewer, mine)).all(axis=1)
    assert not (three & ~two).any() and two.sum() > three.sum()


def test_methods_and_their_honesty():
    draws = shallow_problems(30, 8, 8, 2, 2, 22)
    cases = {(1, 4): "range", (4, 8): "range", (4, 4): "enumeration"}
    for (k, p), method in cases.items():
        found = shallow_match_probability(
            draws, placed(30, (8, 8), k, p, 1), 0
        )
        assert (found.method, found.exact) == (method, True)
        assert found.low <= found.mp <= found.high and found.trials == 30
    wide = placed(30, (8, 8), 8, 8, 1)
    found = shallow_match_probability(draws, wide, 0)
    assert found.method == "levenberg-marquardt" and not found.exact
    with pytest.raises(ValueError, match="no exact method"):
        shallow_match_probability(draws, wide, 0, exact_only=True)
    flat = shallow_problems(30, 8, 8, 2, 2, 22, activation="linear")
    found = shallow_match_probability(flat, placed(30, (8, 8), 4, 4, 1), 0)
    assert found.method == "linear" and found.exact
    assert found.mp == pytest.approx(found.rank_full)


def test_duplicated_examples_leave_no_row_free():
    draws = shallow_problems(10, 6, 6, 1, 3, 23)
    X = draws.X.copy()
    X[:, :, 2] = X[:, :, 1]
    mine = placed(10, (6, 6), 1, 3, 24)
    assert has_free_rows(draws.X, mine) and not has_free_rows(X, mine)
    with pytest.raises(ValueError, match="rank m = 3"):
        free_rows_solve(draws._replace(X=X), mine)


def test_rank_of_regions():
    draws = shallow_problems(20, 8, 8, 2, 2, 25)
    assert (region_rank(draws, placed(20, (8, 8), 2, 4, 1), 0) == 4).all()
    assert (region_rank(draws, placed(20, (8, 8), 1, 4, 1), 0) <= 2).all()


def test_bad_input():
    draws = shallow_problems(3, 4, 3, 2, 2, 0)
    one = Allocation([0, 1], [0, 0])
    with pytest.raises(ValueError, match="labels must be"):
        shallow_problems(3, 4, 3, 2, 2, 0, labels="true")
    with pytest.raises(ValueError, match="activation must be"):
        shallow_problems(3, 4, 3, 2, 2, 0, activation="gelu")
    with pytest.raises(ValueError, match="n must be"):
        shallow_problems(3, 0, 3, 2, 2, 0)
    with pytest.raises(ValueError, match="Y must be finite"):
        relu_targets(draws._replace(Y=draws.Y * np.nan), one)
    with pytest.raises(ValueError, match="B, D, X and Y"):
        relu_targets(draws._replace(Y=draws.Y[:, :1]), one)
    with pytest.raises(ValueError, match="out of range|rows|columns"):
        relu_targets(draws, Allocation([9], [0]))
    with pytest.raises(ValueError, match="one number of learned rows"):
        relu_targets(draws, Allocation([[0, 1], [0, 0], [0, 1]],
                                       [[0, 0], [0, 1], [0, 0]]))  # fmt: skip
    with pytest.raises(ValueError, match="p = m d"):
        relu_enumerate_matches(draws, one)
    with pytest.raises(ValueError, match="bijection"):
        bijective_activation_solve(draws, one)
    leaky = shallow_problems(3, 4, 3, 2, 2, 0, activation="leaky")
    with pytest.raises(ValueError, match="m = 2 entries"):
        bijective_activation_solve(leaky, one)
    tanh = shallow_problems(3, 4, 3, 2, 2, 0, activation="tanh")
    with pytest.raises(ValueError, match="activation must be relu or leaky"):
        relu_enumerate_matches(tanh, one)
    many = shallow_problems(2, 8, 8, 1, 7, 0)
    with pytest.raises(ValueError, match="at most 18"):
        relu_enumerate_matches(many, placed(2, (8, 8), 7, 7, 0))
    crowded = shallow_problems(2, 8, 2, 1, 4, 0)
    with pytest.raises(ValueError, match="as many examples as inputs"):
        relu_enumerate_matches(crowded, placed(2, (8, 2), 2, 4, 0))
    four = Allocation([0, 0, 0, 1], [0, 1, 2, 0])
    first = (np.arange(4) < 2)[:, None]
    still = ShallowReLU(np.where(first, 0.0, draws.student.B), draws.student.D)
    frozen = ShallowProblems(still, draws.X, relu_forward(still, draws.X))
    with pytest.raises(ValueError, match="exactly zero"):
        relu_enumerate_matches(frozen, four)
    with pytest.raises(ValueError, match="starts"):
        shallow_match_probability(draws, one, 0, starts=0)
    with pytest.raises(ValueError, match="regions"):
        region_rank(draws, one, 0, regions=0)
