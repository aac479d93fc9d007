"""Match probabilities: exact methods against each other and the optimiser."""

import numpy as np
import pytest

from helpers.allocation.allocations import (
    Allocation,
    diagonal_allocation,
    entry_allocation,
    row_allocation,
    stack_allocations,
)
from helpers.allocation.levenberg import draw_starts, solve_recurrent
from helpers.allocation.matching import (
    match_probability,
    recurrent_counts,
    recurrent_problems,
)


def allocations(law, K, rng):
    return stack_allocations([law(r) for r in rng.spawn(K)])


def test_rank_settles_what_is_beyond_the_ceiling():
    """m > (T - 1) b: no recurrent allocation matches, however large."""
    draws = recurrent_problems(20, 5, 1, 1, 3, 3, 0)
    everything = Allocation(*np.divmod(np.arange(25), 5))
    found = match_probability(draws, everything, 1)
    assert found == (0.0, 0.0, found.high, 20, 0.0, True, "rank")


def test_two_steps_are_linear():
    draws = recurrent_problems(50, 6, 3, 2, 2, 2, 0)
    a = row_allocation((6, 6), 2, 4, 0)
    assert match_probability(draws, a, 1)[-2:] == (True, "linear")


def test_disjoint_rows_and_columns_are_linear():
    draws = recurrent_problems(40, 8, 2, 2, 3, 2, 3)
    a = Allocation([0, 0, 1, 1], [4, 5, 6, 7])
    found = match_probability(draws, a, 1)
    assert (found.mp, found.method) == (1.0, "linear")


def test_the_linear_core_is_recognised():
    draws = recurrent_problems(30, 8, 2, 2, 3, 2, 4)
    a = Allocation([3] * 4, [0, 1, 3, 6])
    found = match_probability(draws, a, 1)
    assert (found.mp, found.method) == (1.0, "linear core")


def test_one_weight_by_polynomial_and_by_all_solutions_agree():
    """At T = 3 a self-connection is a quadratic in one unknown: the
    discriminant is a third witness."""
    draws = recurrent_problems(400, 6, 2, 1, 3, 1, 5)
    found = match_probability(draws, Allocation([2], [2]), 1)
    from helpers.allocation.quadrics import lrnn_quadrics

    q = lrnn_quadrics(*draws, Allocation([2], [2]))
    a, b, c = q.Q.ravel(), q.linear.ravel(), q.constant.ravel()
    real = b * b - 4 * a * c >= 0
    assert found.method == "polynomial" and found.mp == real.mean()


def test_the_optimiser_never_claims_what_the_exact_method_denies():
    rng = np.random.default_rng(6)
    K = 120
    draws = recurrent_problems(K, 6, 2, 1, 3, 2, rng)
    a = allocations(lambda r: entry_allocation((6, 6), 2, r), K, rng)
    exact = match_probability(draws, a, 7)
    assert exact.exact and 0.6 < exact.mp < 1
    done = solve_recurrent(*draws, a, draw_starts(K, 12, 2, 8))
    each = [
        match_probability(
            type(draws)(
                type(draws.student)(*(M[k : k + 1] for M in draws.student)),
                draws.X[k : k + 1],
                draws.Y[k : k + 1],
            ),
            Allocation(a.rows[k : k + 1], a.cols[k : k + 1]),
            9,
        ).mp
        == 1
        for k in range(K)
    ]
    wrong = done.matched & ~np.array(each)
    assert wrong.mean() <= 0.01  # homotopy may lose a path in a hundred
    assert done.matched.mean() <= exact.mp + 0.01


def test_an_added_example_never_turns_a_failure_into_a_match():
    rng = np.random.default_rng(10)
    K = 200
    draws = recurrent_problems(K, 6, 2, 1, 3, 2, rng)
    a = allocations(lambda r: diagonal_allocation(6, 1, r), K, rng)
    first = type(draws)(draws.student, draws.X[..., :1], draws.Y[..., :1])
    one = match_probability(first, a, 1)
    two = match_probability(draws, a, 1)
    assert one.mp > 0.4 and two.mp == 0 and two.method == "rank"


def test_beyond_the_exact_methods_the_answer_is_a_lower_bound():
    draws = recurrent_problems(20, 8, 2, 2, 4, 2, 11)
    a = row_allocation((8, 8), 3, 6, 0)
    found = match_probability(draws, a, 1, starts=6)
    assert not found.exact and found.low <= found.mp <= found.high
    with pytest.raises(ValueError, match="no exact method applies"):
        match_probability(draws, a, 1, exact_only=True)


def test_random_labels_beyond_the_effective_inputs():
    """Teacher labels of superfluous examples are implied, random ones not;
    here all of W learns and m stays below the ceiling."""
    with pytest.raises(ValueError, match="labels must be teacher or random"):
        recurrent_problems(1, 2, 1, 1, 2, 1, 0, labels="noise")
    draws = recurrent_problems(30, 4, 1, 1, 3, 2, 0, labels="random")
    a = row_allocation((4, 4), 2, 2, 0)
    assert match_probability(draws, a, 1).rank_full == 1


def test_zero_sizes_are_refused():
    with pytest.raises(ValueError, match="m must be a whole number"):
        recurrent_problems(1, 2, 1, 1, 2, 0, 0)


def test_odd_counts_hold_a_real_solution():
    """Two random entries: one to four solutions, odd ones always match."""
    found = recurrent_counts(
        lambda r: entry_allocation((6, 6), 2, r), 300, 6, 2, 1, 2, 3
    )
    odd = found.complex % 2 == 1
    assert (found.real[odd] > 0).all() and odd.mean() > 0.3
    assert 0.5 < (found.real[~odd] > 0).mean() < 0.9
    assert found.low < found.mp < found.high


def test_self_connections_keep_all_paths():
    """w_i^2 + (Mw)_i = c_i has 2^p solutions, all finite."""
    for p, d, m in ((1, 1, 1), (2, 2, 1), (4, 2, 2)):
        found = recurrent_counts(
            lambda r, p=p: diagonal_allocation(8, p, r), 40, 8, 3, d, m, 4
        )
        assert (found.complex == 2**p).all()
    with pytest.raises(ValueError, match="law must draw p = m d = 2"):
        recurrent_counts(
            lambda r: diagonal_allocation(8, 1, r), 4, 8, 3, 2, 1, 4
        )


def test_decoder_and_encoder_know_only_zero_and_one():
    """The lists of section 2.4 and 2.5, and free labels beyond T b."""
    rows = np.array([0, 1, 2])
    for counts, m, wanted in (
        ((5, 5, 5), 5, 1),
        ((4, 6, 5), 5, 0),
        ((8, 8, 8), 11, 1),
        ((12, 12, 7), 11, 0),
    ):
        A = Allocation(
            np.repeat(rows, counts),
            np.concatenate([np.arange(q) for q in counts]),
        )
        problems = recurrent_problems(40, 12, 2, 3, 4, m, 0)
        found = match_probability(problems, A, 0, part="decoder")
        assert (found.mp, found.rank_full, found.exact) == (
            wanted,
            wanted,
            True,
        )
        free = recurrent_problems(40, 12, 2, 3, 4, m, 0, labels="random")
        found = match_probability(free, A, 0, part="decoder")
        assert found.mp == wanted * (m <= 8)
    for counts, wanted in (((4, 4, 4), 1), ((6, 6, 0), 1), ((7, 5, 0), 0)):
        A = Allocation(
            np.concatenate([np.arange(q) for q in counts]),
            np.repeat(rows, counts),
        )
        problems = recurrent_problems(40, 12, 3, 2, 3, 6, 1)
        assert match_probability(problems, A, 0, part="encoder").mp == wanted
    with pytest.raises(ValueError, match="part"):
        match_probability(problems, A, 0, part="input")
