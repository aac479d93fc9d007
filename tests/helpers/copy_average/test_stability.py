"""Hessians at copy-average points: blocks against full matrices."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from helpers.copy_average.configurations import (
    copy_average_point,
    enumerate_partitions,
)
from helpers.copy_average.networks import Student, Teacher, pack
from helpers.copy_average.population import (
    population_hessian,
    population_loss_grad,
)
from helpers.copy_average.stability import (
    copy_average_index,
    copy_average_spectrum,
    copy_average_stability,
    critical_copies,
    critical_width,
    group_margins,
    optimal_spectrum,
    split_neuron,
)


def full_spectrum(student, k, d=None):
    teacher = Teacher.orthonormal(k, d)
    return np.linalg.eigvalsh(
        population_hessian(student.W, student.a, teacher)
    )


def listed(rows):
    values = [value for _, value, _ in rows]
    return np.sort(np.repeat(values, [times for *_, times in rows]))


def best(k, n):
    return (1,) * (n - 1) + (k - n + 1,)


@st.composite
def partitions(draw):
    sizes = draw(st.lists(st.integers(1, 4), min_size=1, max_size=4))
    return tuple(sizes), sum(sizes) + draw(st.integers(0, 2))


@given(partitions())
@settings(deadline=None, max_examples=40)
def test_blocks_hold_the_whole_spectrum(case):
    sizes, d = case
    k = sum(sizes)
    rng = np.random.default_rng(k)
    signs = rng.choice([-1, 1], len(sizes))
    student = copy_average_point(sizes, Teacher.orthonormal(k, d), signs)
    found = listed(copy_average_spectrum(sizes, d))
    np.testing.assert_allclose(found, full_spectrum(student, k, d), atol=1e-10)


@pytest.mark.parametrize(
    "k, n, d",
    [(1, 1, 2), (4, 1, 5), (3, 2, 3), (6, 2, 7), (6, 3, 7), (7, 4, 9),
     (9, 7, 10), (4, 4, 5), (2, 2, 2), (12, 6, 13)],
)  # fmt: skip
def test_symmetry_leaves_small_blocks(k, n, d):
    rows = optimal_spectrum(k, n, d)
    assert all(times > 0 for *_, times in rows)
    assert sum(times for *_, times in rows) == n * (d + 1)
    student = copy_average_point(best(k, n), Teacher.orthonormal(k, d))
    np.testing.assert_allclose(
        listed(rows), full_spectrum(student, k, d), atol=1e-11
    )


def test_the_spike_by_hand():
    value = 2 / math.pi * (2 / math.sqrt(3) - 1)
    for k, n, d in ((9, 5, 10), (20, 12, 20), (30, 29, 40)):
        name, found, times = optimal_spectrum(k, n, d)[0]
        size = k - n + 1
        assert name == "copies against each other"
        assert found == pytest.approx(value, rel=1e-12)
        assert times == (n - 2) * (d - k + size) + (n - 1) * (n - 3)


def test_the_whole_table_of_seven_pairs():
    # the statement: strict saddles but for the best, with a known index
    for k, n in ((7, 3), (8, 4), (9, 3), (10, 4), (11, 2), (12, 3)):
        teacher = Teacher.orthonormal(k, k)
        for sizes in enumerate_partitions(k, n):
            student = copy_average_point(sizes, teacher)
            values = full_spectrum(student, k, k)
            negative = int((values < 0).sum())
            assert np.abs(values).min() > 1e-6
            assert copy_average_index(sizes) == negative
            assert (negative == 0) == (sizes == best(k, n))


@pytest.mark.parametrize(
    "sizes, index",
    [((2, 4), 1), ((3, 3), 4), ((2, 2, 2, 2), 4), ((4, 4, 4), 9),
     ((2, 3, 7), 3), ((3, 4, 5), 9), ((1, 5), 0), ((6,), 0), ((1, 1), 0)],
)  # fmt: skip
def test_examples(sizes, index):
    assert copy_average_index(sizes) == index
    assert copy_average_index(sizes[::-1]) == index


@given(st.lists(st.integers(1, 60), min_size=1, max_size=8))
@settings(deadline=None)
def test_at_most_one_crowd_is_stable(sizes):
    margins = group_margins(sizes)
    crowds = [
        (size, margin)
        for size, margin in zip(sizes, margins, strict=True)
        if size > 1
    ]
    stable = [size for size, margin in crowds if margin > 0]
    assert len(stable) <= 1
    assert all(size == max(sizes) for size in stable)
    if len(crowds) > 1:
        assert copy_average_index(sizes) > 0


def test_margins_by_hand():
    # groups of two and four: c = 1/4 and 1/8
    delta = [4 / math.sqrt(15) - 1, 8 / math.sqrt(63) - 1]
    h = [(1 / 16) / (15 / 16) ** 1.5, (1 / 64) / (63 / 64) ** 1.5]
    expected = [
        1 / (1 + 1 / delta[1]) - h[0] + delta[0],
        1 / (1 + 1 / delta[0]) - h[1] + delta[1],
    ]
    np.testing.assert_allclose(group_margins((2, 4)), expected, rtol=1e-10)


def test_squares_decide_large_groups():
    assert group_margins((30, 40, 49))[2] < 0 < group_margins((30, 40, 51))[2]
    # a Pythagorean triple nearly ties
    ties = [group_margins(p)[2] for p in ((3, 4, 5), (30, 40, 50))]
    scaled = [8 * 25 * ties[0], 8 * 2500 * ties[1]]
    assert scaled[0] < 0 and abs(scaled[1]) < 1e-3 < abs(scaled[0])


@pytest.mark.parametrize("k", [4, 7, 12, 20, 30])
def test_optimal_points_lose_stability_where_predicted(k):
    width = critical_width(k)
    for n in range(1, k):
        found = copy_average_stability(k, n)
        lowest = min(value for _, value, _ in optimal_spectrum(k, n))
        assert found.stable == (n < width) == (lowest > 0)
        assert found.negative == (0 if n < width else k - n)
        assert (found.smallest_eigenvalue > 0) == found.stable
        across = [
            value
            for name, value, _ in optimal_spectrum(k, n)
            if name == "across the average"
        ]
        np.testing.assert_allclose(
            np.linalg.eigvalsh(found.block), across, rtol=1e-9
        )


@pytest.mark.parametrize("k, n", [(7, 5), (7, 6), (12, 10), (12, 11)])
def test_block_against_the_full_hessian(k, n):
    teacher = Teacher.orthonormal(k)
    student = copy_average_point(best(k, n), teacher)
    H = population_hessian(student.W, student.a, teacher)
    direction = np.zeros((n, k + 2))
    moves = []
    for neurons in ([n - 1], range(n - 1)):
        move = direction.copy()
        move[list(neurons), n - 1] = 1 / math.sqrt(2 * len(neurons))
        move[list(neurons), n] = -move[list(neurons), n - 1]
        moves.append(move.ravel())
    found = copy_average_stability(k, n)
    moves = np.array(moves)
    np.testing.assert_allclose(moves @ H @ moves.T, found.block, atol=1e-12)
    # and the two moves are closed under the Hessian
    np.testing.assert_allclose(
        moves @ H, found.block @ moves, atol=1e-12, rtol=1e-12
    )


def test_pairs_that_lose_it():
    unstable = {
        k: [n for n in range(1, k) if not copy_average_stability(k, n).stable]
        for k in (6, 7, 12, 20)
    }
    assert unstable == {6: [], 7: [6], 12: [11], 20: [18, 19]}


def test_critical_copies():
    np.testing.assert_allclose(
        critical_copies([2, 3, 4, 6, 10]),
        [4.14, 10.30, 18.96, 43.7, 122.9],
        atol=0.02,
    )
    size = np.array([20.0, 40.0, 80.0])
    constant = 16 / math.sqrt(3) - 8
    assert constant == pytest.approx(1.2376, abs=1e-4)
    excess = critical_copies(size) - constant * size**2
    np.testing.assert_allclose(excess, -11 / 16 * constant, atol=2e-3)
    assert critical_copies(1.0).shape == ()


def test_conditioning_of_one_neuron():
    k = np.array([50, 100, 200, 400])
    lowest = [min(v for _, v, _ in optimal_spectrum(int(x), 1)) for x in k]
    ratio = 3 * math.pi * k**3.0 * lowest
    np.testing.assert_allclose(ratio, 1, atol=0.03)
    assert np.all(np.diff(np.abs(ratio - 1)) < 0)
    for k, n, low, high in (
        (12, 1, 6.1e-5, 176),
        (12, 6, 2.5e-4, 61),
        (20, 1, 1.3e-5, 496),
        (20, 10, 6.8e-5, 153),
        (20, 16, 3.5e-4, 38),
    ):
        values = listed(optimal_spectrum(k, n))
        # half a unit of the two digits that the spec gives, rounded up
        assert values[0] == pytest.approx(low, rel=0.03)
        assert values[-1] == pytest.approx(high, rel=0.02)


@pytest.mark.parametrize("share", [0.2, 0.5, 0.8, 1.5])
def test_a_split_copy_has_zeros_and_a_split_average_does_not_hold(share):
    k, d = 7, 8
    teacher = Teacher.orthonormal(k, d)
    point = copy_average_point(best(k, 3), teacher)
    for neuron, negative, zero in ((0, 0, d + 1), (2, 4, d + 1 - 4)):
        split = split_neuron(point, neuron, share)
        loss, *grads = population_loss_grad(split.W, split.a, teacher)
        assert np.abs(pack(*grads)).max() < 1e-12
        assert float(loss) == pytest.approx(
            float(population_loss_grad(point.W, point.a, teacher)[0])
        )
        values = full_spectrum(split, k, d)
        if 0 < share < 1:
            assert (values < -1e-9).sum() == negative
            assert (np.abs(values) < 1e-9).sum() == zero


@given(st.integers(2, 400))
@settings(deadline=None)
def test_critical_width_is_a_root(k):
    n = critical_width(k)
    assert 1 < n < k
    assert n - 1 == pytest.approx(critical_copies(k - n + 1), rel=1e-6)


def test_bad_input():
    with pytest.raises(ValueError, match="group sizes"):
        group_margins((2, 0))
    with pytest.raises(ValueError, match="group sizes"):
        copy_average_index((2, 1.5))
    with pytest.raises(ValueError, match="1 or more"):
        copy_average_spectrum(())
    with pytest.raises(ValueError, match="d must be"):
        copy_average_spectrum((1, 2), 2)
    with pytest.raises(ValueError, match="d must be"):
        optimal_spectrum(4, 2, 3)
    with pytest.raises(ValueError, match="n must be"):
        optimal_spectrum(4, 5)
    with pytest.raises(ValueError, match="n must be"):
        copy_average_stability(4, 4)
    with pytest.raises(ValueError, match="k must be"):
        critical_width(1)
    with pytest.raises(ValueError, match="size must be"):
        critical_copies([2.0, 0.5])
    one = Student([[1.0, 2.0]], [1.0])
    with pytest.raises(ValueError, match="neuron must be"):
        split_neuron(one, 1, 0.5)
    with pytest.raises(ValueError, match="share must be"):
        split_neuron(one, 0, math.nan)
    with pytest.raises(ValueError, match="single"):
        split_neuron(Student(np.ones((2, 1, 2)), np.ones((2, 1))), 0, 0.5)
