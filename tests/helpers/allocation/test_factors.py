"""Several learned factors: degrees, caps, elimination, quadrics, points."""

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from helpers.allocation.allocations import (
    Allocation,
    entry_allocation,
    row_allocation,
    stack_allocations,
    with_entries,
)
from helpers.allocation.factor_experiments import (
    factors_point,
    mixed_point,
    stored_points,
)
from helpers.allocation.factors import (
    LayerProblems,
    core_quadrics,
    elimination_residuals,
    factor_degree,
    factor_rank_cap,
    first_matches,
    layer_equations,
    layer_problems,
    layer_quadrics,
    one_row_each_solve,
    two_layer_matches,
)
from helpers.allocation.jacobians import lffn_jacobian, lrnn_jacobian
from helpers.allocation.levenberg import draw_starts
from helpers.allocation.matching import recurrent_problems
from helpers.allocation.mixed import (
    mixed_equations,
    mixed_jacobian,
    mixed_row_cap,
)
from helpers.allocation.networks import LinearRNN, lffn_forward, sample_lffn
from helpers.allocation.ranks import generic_rank, rank_modp

ONE = Allocation([0], [0])


def ranks_of(widths, m, allocations, seed):
    layers = [W[0] for W in sample_lffn(1, widths, seed)]
    X = np.random.default_rng(seed).normal(size=(widths[0], m))
    return int(generic_rank(lffn_jacobian(layers, X, allocations)).rank)


# degree


def test_degree_by_hand():
    # two neurons; layer 2 listens to neuron 1 only
    second = Allocation([0], [1])
    assert factor_degree([2, 2, 1], [Allocation([0], [0]), second]) == 1
    assert factor_degree([2, 2, 1], [Allocation([1], [0]), second]) == 2
    # a dense frozen layer between always connects
    parts = [ONE, None, Allocation([1], [1])]
    assert factor_degree([2, 2, 2, 2], parts) == 2
    assert factor_degree([1, 1, 1, 1], [ONE, ONE, ONE]) == 3


@settings(max_examples=25, deadline=None)
@given(st.integers(0, 10_000))
def test_degree_is_the_degree_along_a_line(seed):
    rng = np.random.default_rng(seed)
    widths = rng.integers(2, 5, size=4)
    shapes = list(zip(widths[1:], widths, strict=False))
    parts = [
        entry_allocation(s, int(rng.integers(1, 4)), rng)
        if rng.random() < 0.7
        else None
        for s in shapes
    ]
    if all(a is None for a in parts):
        parts[0] = Allocation(np.array([0]), np.array([0]))
    layers = [W[0] for W in sample_lffn(1, widths, rng)]
    X = rng.normal(size=(widths[0], 2))
    ways = [
        None if a is None else rng.normal(size=(2, a.rows.size)) for a in parts
    ]

    def at(t):
        moved = [
            W if a is None else with_entries(W, a, w[0] + t * w[1])
            for W, a, w in zip(layers, parts, ways, strict=True)
        ]
        return lffn_forward(moved, X).ravel()

    found = np.polyfit(np.arange(-2.0, 3.0), [at(t) for t in range(-2, 3)], 4)
    size = np.abs(found).max()
    degree = factor_degree(widths, parts)
    high = found[: 4 - degree]
    assert np.abs(high).max(initial=0) < 1e-9 * size
    assert np.abs(found[4 - degree]).max() > 1e-9 * size


# caps


def test_cap_by_hand():
    row = Allocation([0] * 4, [0, 1, 2, 3])
    assert factor_rank_cap([8, 10, 10, 3], 4, [row, row, None]) == 8
    assert factor_rank_cap([8, 10, 10, 3], 4, [row, row, row]) == 12
    # one whole column in each of two layers: two input directions
    columns = [Allocation(np.arange(k), np.zeros(k, int)) for k in (9, 3)]
    assert factor_rank_cap([8, 9, 3], 4, columns) == 6
    assert ranks_of([8, 9, 3], 4, columns, 0) == 6
    # a layer of one neuron lets one direction through
    two = Allocation([0, 1] * 3, [0, 0, 1, 1, 2, 2])
    assert factor_rank_cap([4, 5, 1, 3], 3, [two, None, None]) == 3


@settings(max_examples=40, deadline=None)
@given(st.integers(0, 10_000))
def test_rank_never_exceeds_the_cap(seed):
    rng = np.random.default_rng(seed)
    widths = rng.integers(1, 6, size=int(rng.integers(2, 5)))
    m = int(rng.integers(1, 6))
    parts = [
        entry_allocation(s, int(rng.integers(1, s[0] * s[1] + 1)), rng)
        for s in zip(widths[1:], widths, strict=False)
    ]
    cap = factor_rank_cap(widths, m, parts)
    assert ranks_of(widths, m, parts, seed) <= cap


@pytest.mark.parametrize("counts", [(2, 0, 0), (1, 1, 0), (0, 1, 1)])
def test_cap_is_reached_below_the_outputs(counts):
    # k rows with m entries each, k < d: rank k m, exactly the cap
    rng = np.random.default_rng(3)
    shapes = [(7, 7), (7, 7), (4, 7)]
    parts = [
        row_allocation(s, k, 5 * k, rng) if k else None
        for s, k in zip(shapes, counts, strict=True)
    ]
    assert factor_rank_cap([7, 7, 7, 4], 5, parts) == 10
    assert ranks_of([7, 7, 7, 4], 5, parts, 1) == 10


def test_full_rank_in_exact_arithmetic():
    # one row of m in each of three layers, d = 3, modulo a prime
    prime, m = 1_000_003, 4
    rng = np.random.default_rng(0)
    A, B, C = (
        rng.integers(0, prime, s).astype(object)
        for s in ((6, 6), (6, 6), (3, 6))
    )
    X = rng.integers(0, prime, (6, m)).astype(object)
    cols = [0, 2, 3, 5]
    J = []
    for P, row, Z in (
        (C @ B, 1, X),
        (C, 4, A @ X),
        (np.eye(3, dtype=int).astype(object), 2, B @ A @ X),
    ):
        J += [np.outer(P[:, row], Z[c]).ravel() % prime for c in cols]
    J = np.array(J, dtype=np.int64)
    assert rank_modp(J, prime) == 12
    J[4:8] = J[:4]  # control: the same row twice
    assert rank_modp(J, prime) == 8


# elimination


def test_elimination_by_hand():
    # y_1 = w x, y_2 = u z_1 with z_1 = w x learned: x = 2, y = (6, 12)
    layers = [np.array([[9.0], [0.0]]), np.array([[1.0, 0.0], [9.0, 0.0]])]
    parts = [Allocation([0], [0]), Allocation([1], [0])]
    found = one_row_each_solve(layers, [[2.0]], [[6.0], [12.0]], parts)
    np.testing.assert_allclose(np.concatenate(found.w), [3.0, 2.0])
    assert found.residual < 1e-14


@pytest.mark.parametrize(
    "counts",
    [(3, 0, 0), (0, 3, 0), (0, 0, 3), (1, 1, 1), (2, 0, 1), (0, 1, 2)],
)
def test_d_rows_anywhere_match(counts):
    rng = np.random.default_rng(4)
    draws = layer_problems(12, [6, 7, 6, 3], 4, rng)
    shapes = [(7, 6), (6, 7), (3, 6)]
    worst = []
    for i in range(12):
        parts = [
            row_allocation(s, k, 4 * k, rng, "random") if k else None
            for s, k in zip(shapes, counts, strict=True)
        ]
        layers = [W[i] for W in draws.layers]
        found = one_row_each_solve(layers, draws.X[i], draws.Y[i], parts)
        worst.append(found.residual)
    assert np.median(worst) < 1e-11
    # a heavy tail: the product of a few ill-conditioned solves
    assert max(worst) < 1e-6


def test_elimination_is_the_only_solution_and_the_optimiser_finds_it():
    draws = layer_problems(1, [5, 5, 2], 3, 8)
    part = Allocation([1] * 3, [0, 2, 4])
    layers = [W[0] for W in draws.layers]
    found = one_row_each_solve(layers, draws.X[0], draws.Y[0], [part, part])
    w = np.concatenate(found.w)
    made = layer_equations(draws, [part, part])
    near = w + 1e-4 * np.random.default_rng(0).normal(size=6)
    assert first_matches(made, near[None, None]).tolist() == [1]
    r, J = made.residual_jac(w[None], np.arange(1))
    assert np.abs(r).max() < 1e-9
    assert generic_rank(J).rank[0] == 6
    # spare entries: still a match
    more = [Allocation([1] * 5, np.arange(5)), part]
    again = one_row_each_solve(layers, draws.X[0], draws.Y[0], more)
    assert again.residual < 1e-9


def test_residuals_and_stored_points_are_read_as_written():
    gaps = elimination_residuals([6, 6, 3], 4, [2, 1], 6, 1)
    assert gaps.shape == (6,) and 0 < gaps.max() < 1e-6
    rows = [[2, 2, 0], [1, 1, 0]]
    points = [
        factors_point([8, 8, 8, 2], 2, [2, 2, 0], r, 30, 4 + r[0])
        for r in rows
    ]
    table = {name: [p[name] for p in points] for name in points[0]}
    table |= {"rows": rows, "shares": [[2, 2, 0]] * 2, "m": [2, 2]}
    found = stored_points(table, m=2)
    assert found["k"].tolist() == [1, 2]
    two = points[0]
    assert found["most"][1] == two["exact_hits"] / 30
    assert found["least"][1] == (two["hits"] + two["missed"]) / 30
    assert found["least"][0] == found["most"][0] == 1
    assert stored_points(table, rows=[1, 1, 0])["k"].tolist() == [1]
    with pytest.raises(ValueError, match="no point"):
        stored_points(table, m=3)


def test_elimination_refuses():
    layers, X, Y = [np.eye(3), np.eye(3)[:2]], np.eye(3)[:, :2], np.eye(2)
    two = Allocation([0, 0], [0, 1])
    with pytest.raises(ValueError, match="d = 2 learned rows in all, got 1"):
        one_row_each_solve(layers, X, Y, [two, None])
    with pytest.raises(ValueError, match="needs m = 2"):
        one_row_each_solve(layers, X, Y, [two, ONE])
    with pytest.raises(ValueError, match="finite"):
        one_row_each_solve(layers, X * np.nan, Y, [two, two])
    with pytest.raises(ValueError, match="allocations must be 2"):
        one_row_each_solve(layers, X, Y, [two])
    with pytest.raises(np.linalg.LinAlgError):  # silent rows downstream
        one_row_each_solve([np.eye(3), np.zeros((2, 3))], X, Y, [
            Allocation([0, 0, 1, 1], [0, 1, 0, 1]), None])  # fmt: skip


# quadrics and cores


@pytest.mark.parametrize("learned", [(0, 1), (1, 2), (0, 2)])
def test_quadrics_are_the_network(learned):
    rng = np.random.default_rng(6)
    widths = [4, 5, 3, 2]
    draws = layer_problems(6, widths, 2, rng)
    parts = [None] * 3
    for i in learned:
        parts[i] = stack_allocations(
            [
                entry_allocation((widths[i + 1], widths[i]), 3, rng)
                for _ in range(6)
            ]  # fmt: skip
        )
    w = rng.normal(size=(6, 6))
    q = layer_quadrics(draws, parts)
    r, J = layer_equations(draws, parts).residual_jac(w, np.arange(6))
    np.testing.assert_allclose(q(w), r, atol=1e-12)
    slope = q.linear + 2 * np.einsum("kcpq,kq->kcp", q.Q, w)
    np.testing.assert_allclose(slope, J, atol=1e-12)


def test_quadrics_need_two_layers():
    draws = layer_problems(1, [2, 2, 2], 1, 0)
    with pytest.raises(ValueError, match="two layers must learn, got 1"):
        layer_quadrics(draws, [ONE, None])
    with pytest.raises(ValueError, match="as many equations as unknowns"):
        core_quadrics(layer_quadrics(draws, [ONE, Allocation([0, 1], [0, 0])]))


def test_core_has_the_solutions_of_the_system():
    rng = np.random.default_rng(7)
    draws = layer_problems(8, [4, 6, 6, 2], 2, rng)
    # rows 0 and 1 learn; the layer above listens to neurons 0 and 5
    parts = [Allocation([0, 1], [0, 1]), Allocation([2, 3], [0, 5]), None]
    q = layer_quadrics(draws, parts)
    cores = core_quadrics(q)
    assert {core.linear.shape for core in cores} == {(1, 2, 2)}
    # any w that solves the system solves the core in its bent unknowns
    w = rng.normal(size=(8, 4))
    shifted = q._replace(constant=q.constant - q(w))
    for core, one in zip(core_quadrics(shifted), w, strict=True):
        assert np.abs(core(one[None, [0, 2]])).max() < 1e-11
    assert np.abs(cores[0](w[:1, [0, 2]])).max() > 1e-3  # unshifted does not


def test_two_layers_agree_with_the_optimiser():
    rng = np.random.default_rng(9)
    K = 60
    draws = layer_problems(K, [8, 8, 8, 2], 2, rng)
    part = [
        stack_allocations(
            row_allocation((8, 8), 2, 2, r) for r in rng.spawn(K)
        )
        for _ in range(2)
    ]
    parts = [*part, None]
    truth = two_layer_matches(draws, parts, 1)
    made = layer_equations(draws, parts)
    found = first_matches(made, draw_starts(K, 24, 4, 2)) > 0
    assert set(truth) == {0, 1}
    assert not np.any(found & (truth == 0))
    assert np.mean(found[truth == 1]) > 0.9
    # a draw that is denied stays unmatched, however often one tries
    no = np.flatnonzero(truth == 0)
    again = LayerProblems(
        [W[no] for W in draws.layers], draws.X[no], draws.Y[no]
    )
    mine = [Allocation(a.rows[no], a.cols[no]) for a in part]
    more = draw_starts(no.size, 120, 4, 3)
    made = layer_equations(again, [*mine, None])
    assert not first_matches(made, more).any()
    small = two_layer_matches(draws, parts, 1, largest=1)
    assert set(small) <= {1, -1} and (small == -1).any()


def test_one_product_by_hand():
    # w_2 w_1 = y has real solutions for every y; (w_1 x)(w_2) + w_1 = y too
    K = 3
    ones = np.ones((K, 1, 1))
    draws = LayerProblems([ones, ones], ones, 2 * ones)
    q = layer_quadrics(draws, [ONE, ONE])
    w = np.array([[1.0, 2], [2, 1], [1, 1]])
    np.testing.assert_allclose(q(w)[:, 0], [0, 0, -1])


# equations and starts


def test_first_match_is_the_first():
    draws = layer_problems(4, [3, 3, 1], 1, 0)
    made = layer_equations(draws, [Allocation([0], [1]), None])
    starts = draw_starts(4, 3, 1, 1)
    assert first_matches(made, starts).tolist() == [1] * 4
    # no weight that is learned reaches the output: no match, ever
    layers = [draws.layers[0], draws.layers[1] * [[[0, 1, 1]]]]
    dead = layer_equations(
        LayerProblems(layers, draws.X, draws.Y), [Allocation([0], [1]), None]
    )
    assert first_matches(dead, starts).tolist() == [0] * 4
    with pytest.raises(ValueError, match=r"shape \(4, S, 1\)"):
        first_matches(made, starts[:2])


def test_equations_refuse():
    draws = layer_problems(2, [3, 3, 1], 1, 0)
    with pytest.raises(ValueError, match="Y must not be zero"):
        layer_equations(draws._replace(Y=0 * draws.Y), [ONE, None])
    with pytest.raises(ValueError, match="not all None"):
        layer_equations(draws, [None, None])
    with pytest.raises(ValueError, match="widths"):
        factor_degree([3], [ONE])
    with pytest.raises(ValueError, match="m must be"):
        layer_problems(1, [2, 2], 0, 0)


# recurrent networks


def test_mixed_jacobian_against_differences():
    rng = np.random.default_rng(2)
    problems = recurrent_problems(3, 4, 2, 2, 3, 2, rng)
    parts = [entry_allocation(s, 3, rng) for s in ((4, 2), (4, 4), (2, 4))]
    made = mixed_equations(problems, parts)
    w, step = rng.normal(size=(3, 9)), 1e-6
    _, J = made.residual_jac(w, np.arange(3))
    for i, e in enumerate(step * np.eye(9)):
        up, down = (
            made.residual_jac(w + s * e, np.arange(3))[0] for s in (1, -1)
        )
        np.testing.assert_allclose(
            (up - down) / (2 * step), J[..., i], rtol=1e-5, atol=1e-7
        )


def test_mixed_jacobian_has_the_parts():
    problems = recurrent_problems(1, 4, 2, 2, 3, 2, 1)
    net = LinearRNN(*(M[0] for M in problems.student))
    parts = [ONE, None, Allocation([1], [2])]
    J = mixed_jacobian(net, problems.X[0], parts)
    expected = [
        lrnn_jacobian(net, problems.X[0], parts[0], "encoder"),
        lrnn_jacobian(net, problems.X[0], parts[2], "decoder"),
    ]
    np.testing.assert_array_equal(J, np.concatenate(expected, axis=-1))


def full_rows(rows, width):
    rows = np.asarray(rows)
    return Allocation(
        np.repeat(rows, width), np.tile(np.arange(width), rows.size)
    )


def test_mixed_row_cap_is_reached():
    # d = 9 outputs, T = 3: B reaches 3 directions a row, W 2, D 1
    n, b, d, T, m = 9, 8, 9, 3, 2
    for B, W, D in itertools.product(
        ([], [0]), ([], [0], [1], [1, 2]), ([], [4])
    ):
        parts = [
            full_rows(rows, width) if rows else None
            for rows, width in ((B, b), (W, n), (D, n))
        ]
        if all(a is None for a in parts):
            continue
        cap = mixed_row_cap(n, d, T, parts)
        problems = recurrent_problems(1, n, b, d, T, m, 5)
        J = mixed_jacobian(problems.student, problems.X, parts)
        assert generic_rank(J).rank[0] == m * cap
    assert mixed_row_cap(n, d, T, [ONE, ONE, ONE]) == 4


def test_mixed_row_cap_refuses():
    with pytest.raises(ValueError, match="below n = 3"):
        mixed_row_cap(3, 2, 2, [Allocation([3], [0]), None, None])
    with pytest.raises(ValueError, match="three"):
        mixed_row_cap(3, 2, 2, [ONE])
    with pytest.raises(ValueError, match="T must be"):
        mixed_row_cap(3, 2, 0, [ONE, None, None])


def test_mixed_points():
    point = mixed_point(8, 2, 2, 3, 4, (8, 0, 0), 20, 1)
    assert point["hits"] == point["rank_full"] == 20
    some = mixed_point(8, 2, 2, 3, 4, (3, 3, 2), 30, 2, starts=12)
    assert some["rank_full"] == 30 and some["hits"] > 20
    assert sorted(some["after"]) == some["after"]
    with pytest.raises(ValueError, match="three counts"):
        mixed_point(8, 2, 2, 3, 4, (3, 3), 30, 2)


# points


def test_no_match_below_the_hard_zero():
    point = factors_point([12, 12, 12, 3], 3, [5, 4, 0], [1, 1, 0], 30, 1)
    assert (point["rank_full"], point["hits"], point["decided"]) == (0, 0, 30)
    three = factors_point([12, 12, 12, 3], 3, [6, 3, 0], [2, 1, 0], 40, 1)
    assert three["method"] == "elimination"
    assert three["exact_hits"] == three["rank_full"] == 40
    assert three["confirmed"] >= 38  # a few systems are ill-conditioned
    assert three["missed"] == 40 - three["hits"]


def test_one_layer_matches_as_often_as_its_rank_is_full():
    point = factors_point([8, 10, 10, 3], 4, [0, 0, 12], [0, 0, 0], 200, 3)
    assert point["method"] == "linear"
    assert 0 < point["exact_hits"] == point["rank_full"] < 60
    assert point["unsound"] == 0
    # 12 of 30 cells, four in each row: C(10,4)^3 / C(30,12) = 0.107
    assert abs(point["rank_full"] / 200 - 0.107) < 0.09


def test_points_at_critical_budget_count_solutions():
    point = factors_point([8, 8, 8, 2], 2, [2, 2, 0], [2, 2, 0], 80, 4)
    assert point["method"] == "complex solutions" and point["decided"] == 80
    assert 0.75 < point["exact_hits"] / 80 < 1
    assert point["unsound"] <= 1  # a lost path
    plain = factors_point(
        [8, 8, 8, 2], 2, [2, 2, 0], [2, 2, 0], 80, 4, exact=False
    )
    assert plain["method"] == "" and plain["hits"] == point["hits"]


def test_points_refuse_or_do_not_fit():
    point = factors_point([4, 4, 4, 2], 2, [5, 2, 0], [1, 1, 0], 5, 0)
    assert point["fits"] == 0 and point["drawn"] == 0
    with pytest.raises(ValueError, match="one number a layer"):
        factors_point([4, 4, 2], 2, [2, 2, 0], [1, 1, 0], 5, 0)
    with pytest.raises(ValueError, match="m be at most 4"):
        factors_point([4, 4, 2], 5, [2, 2], [1, 1], 5, 0)
    with pytest.raises(ValueError, match="trials"):
        factors_point([4, 4, 2], 2, [2, 2], [1, 1], 0, 0)


def test_points_are_what_a_sweep_can_keep():
    a, b = (
        factors_point([8, 8, 8, 2], 2, [2, 2, 0], [1, 1, 0], 6, 9)
        for _ in range(2)
    )
    assert a == b
    assert {type(v) for v in a.values()} <= {int, str, list}
    assert len(a["after"]) == 24
