"""Copy-average points: hand values, full gradients, brute force, refusals."""

import math
from collections import Counter
from itertools import permutations, product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import minimize_scalar

from helpers.copy_average.configurations import (
    copy_average_loss,
    copy_average_point,
    correlated_teacher,
    count_copy_average,
    count_sizes,
    enumerate_groupings,
    enumerate_partitions,
    equicorrelated_teacher,
    equitable_defect,
    lift,
    linear_matching_ratio,
    tilted_gradient,
)
from helpers.copy_average.interactions import interaction, pair_expectations
from helpers.copy_average.networks import Student, Teacher, pack
from helpers.copy_average.one_neuron import (
    one_neuron_optimum,
    optimal_loss_erf,
)
from helpers.copy_average.population import (
    population_loss,
    population_loss_grad,
)
from helpers.copy_average.search import find_critical_points
from helpers.core.activations import Activation, get_activation


def gradient(student, teacher, activation="erf"):
    loss, *grads = population_loss_grad(
        student.W, student.a, teacher, activation
    )
    return float(loss), float(np.abs(pack(*grads)).max())


def block_teacher(sizes, within, between, b=None):
    labels = np.repeat(np.arange(len(sizes)), sizes)
    G = np.asarray(between, dtype=float)[np.ix_(labels, labels)]
    same = labels[:, None] == labels
    G = np.where(same, np.asarray(within, dtype=float)[labels], G)
    np.fill_diagonal(G, 1.0)
    return correlated_teacher(G, b)


def gaussian_cdf():
    erf = get_activation("erf")
    return Activation(
        "gaussian_cdf",
        lambda x: (1 + erf(x)) / 2,
        lambda x: erf.derivative(x) / 2,
        lambda x: erf.second_derivative(x) / 2,
        strictly_increasing=True,
    )


# --- the points ----------------------------------------------------------------


def test_point_by_hand():
    student = copy_average_point((1, 2), Teacher.orthonormal(3, 3), [1, -1])
    c = 1 / math.sqrt(6)
    np.testing.assert_allclose(student.W, [[1, 0, 0], [0, -c, -c]], atol=1e-15)
    np.testing.assert_array_equal(student.a, [1, -2])


def test_groups_may_be_named():
    teacher = Teacher.orthonormal(4)
    named = copy_average_point(([2, 0], [1, 3]), teacher)
    order = copy_average_point((2, 2), Teacher(teacher.V[[2, 0, 1, 3]]))
    np.testing.assert_allclose(named.W, order.W, atol=1e-15)


@pytest.mark.parametrize("k", range(1, 7))
def test_every_covering_point_is_critical(k):
    teacher, rng = Teacher.orthonormal(k), np.random.default_rng(k)
    for n in range(1, k + 1):
        for groups in enumerate_groupings(k, n):
            signs = rng.choice([-1, 1], size=n)
            student = copy_average_point(groups, teacher, signs)
            loss, steepest = gradient(student, teacher)
            assert steepest < 1e-13
            sizes = [len(group) for group in groups]
            assert loss == pytest.approx(
                copy_average_loss(sizes, k), abs=1e-13
            )


@pytest.mark.parametrize("sizes", [(2, 4), (1, 1, 1, 3)])
def test_every_sign_pattern_is_critical(sizes):
    teacher = Teacher.orthonormal(sum(sizes))
    for signs in product([-1, 1], repeat=len(sizes)):
        student = copy_average_point(sizes, teacher, signs)
        assert gradient(student, teacher)[1] < 1e-13


@pytest.mark.parametrize("k", [2, 5, 9])
def test_uncovered_neurons_pull(k):
    teacher = Teacher.orthonormal(k)
    for n in range(1, k):
        point = copy_average_point((1,) * n, teacher)
        assert gradient(point, teacher)[1] == pytest.approx(2 / math.pi)


@given(
    sizes=st.lists(st.integers(1, 5), min_size=1, max_size=4),
    left_out=st.integers(1, 4),
    seed=st.integers(0, 99),
)
@settings(max_examples=30, deadline=None)
def test_force_of_uncovered_neurons(sizes, left_out, seed):
    k = sum(sizes) + left_out
    teacher = Teacher.orthonormal(k)
    signs = np.random.default_rng(seed).choice([-1, 1], size=len(sizes))
    student = copy_average_point(sizes, teacher, signs)
    loss, grad_W, grad_a = population_loss_grad(student.W, student.a, teacher)
    expected = np.zeros_like(student.W)
    scale = np.sqrt(2 * (1 + student.norms**2))
    expected[:, sum(sizes) : k] = (-4 * student.a / math.pi / scale)[:, None]
    np.testing.assert_allclose(grad_W, expected, atol=1e-13)
    np.testing.assert_allclose(grad_a, 0, atol=1e-13)
    assert float(loss) == pytest.approx(copy_average_loss(sizes, k), abs=1e-12)
    largest = max(size * (2 * size - 1) for size in sizes)
    steepest = np.abs(grad_W).max()
    assert steepest == pytest.approx(2 / math.pi * math.sqrt(largest))


def test_each_neuron_is_the_best_of_its_group():
    teacher = Teacher.orthonormal(5)
    student = copy_average_point((2, 3), teacher)
    for i, size in enumerate((2, 3)):
        best = one_neuron_optimum(size)
        assert student.norms[i] == pytest.approx(best.r)
        found = find_critical_points(
            Teacher.orthonormal(size), rng=size, starts=4
        )
        np.testing.assert_allclose(found.student.norms, best.r, atol=1e-7)


# --- beyond the orthonormal teacher ----------------------------------------------


@given(
    sizes=st.lists(st.integers(1, 4), min_size=1, max_size=4),
    seed=st.integers(0, 999),
)
@settings(max_examples=30, deadline=None)
def test_constants_may_differ_between_groups(sizes, seed):
    rng, n = np.random.default_rng(seed), len(sizes)
    labels = np.repeat(np.arange(n), sizes)
    b = (rng.choice([-1, 1], n) * rng.uniform(0.3, 2, n))[labels]
    V = rng.uniform(0.3, 3, n)[labels, None] * np.eye(len(labels))
    teacher = Teacher(V, b)
    student = copy_average_point(sizes, teacher)
    assert equitable_defect(sizes, teacher) < 1e-14
    assert gradient(student, teacher)[1] < 1e-12


def test_unequal_voices_inside_a_group():
    teacher = Teacher(np.eye(3, 4), [1.0, 2.0, 0.5])
    with pytest.raises(ValueError, match="equal b inside"):
        copy_average_point((3,), teacher)
    assert equitable_defect((3,), teacher) == 1.5
    for direction, loss, steepest in (
        (np.ones(3), 0.444141, 2.43),
        (teacher.b, 0.050501, 0.082),
    ):
        unit = np.append(direction, 0) / np.linalg.norm(direction)
        u = unit[:3]

        def fit(r, u=u):
            force = teacher.b @ interaction(r, 1.0, u)
            return force / interaction(r, r, 1.0), force

        r = minimize_scalar(
            lambda r, fit=fit: -math.prod(fit(r)),
            bounds=(0.05, 4),
            method="bounded",
            options={"xatol": 1e-10},
        ).x
        point = Student(r * unit[None], [fit(r)[0]])
        measured = gradient(point, teacher)
        assert measured[0] == pytest.approx(loss, abs=1e-6)
        assert measured[1] == pytest.approx(steepest, rel=5e-3)
    found = find_critical_points(teacher, rng=3, starts=4)
    assert found.loss.min() == pytest.approx(0.049618, abs=1e-6)


@pytest.mark.parametrize("beta", [-0.1, 0.2, 0.5])
def test_equicorrelated_closed_form(beta):
    k = 4
    teacher = equicorrelated_teacher(k, beta)
    student = copy_average_point((k,), teacher)
    loss, steepest = gradient(student, teacher)
    expected = (
        k * math.pi / 6
        + k * (k - 1) * math.asin(beta / 2)
        - k**2 * math.asin((1 + (k - 1) * beta) / (2 * k))
    )
    assert loss == pytest.approx(2 / math.pi * expected, abs=1e-13)
    assert steepest < 1e-13
    found = find_critical_points(teacher, rng=1, starts=4)
    assert found.loss.min() == pytest.approx(loss, abs=1e-10)


def test_equicorrelated_losses_of_three_neurons():
    for beta, loss in ((0, 0.056755), (0.1, 0.052881), (0.7, 0.011814)):
        teacher = equicorrelated_teacher(6, beta)
        measured = gradient(copy_average_point((1, 1, 4), teacher), teacher)
        assert measured[0] == pytest.approx(loss, abs=1e-6)
        assert measured[1] < 1e-13


def test_block_equicorrelated_and_one_broken_entry():
    sizes, within = (1, 2, 3), (0.0, 0.4, -0.2)
    between = [[0, 0.1, -0.2], [0.1, 0, 0.05], [-0.2, 0.05, 0]]
    teacher = block_teacher(sizes, within, between, [2, -1, -1, 0.5, 0.5, 0.5])
    student = copy_average_point(sizes, teacher)
    assert equitable_defect(sizes, teacher) < 1e-14
    assert gradient(student, teacher)[1] < 1e-13
    G = teacher.V @ teacher.V.T
    G[0, 1] = G[1, 0] = 0.2
    broken = correlated_teacher(G, teacher.b)
    assert equitable_defect(sizes, broken) > 0.01
    student = copy_average_point(sizes, broken)
    assert gradient(student, broken)[1] > 1e-3


def test_a_ring_is_equitable_without_equal_correlations():
    # neighbours 0.3, opposite 0: row sums agree, entries do not
    G = np.eye(4) + 0.3 * (np.roll(np.eye(4), 1, 0) + np.roll(np.eye(4), 3, 0))
    teacher = correlated_teacher(G)
    assert gradient(copy_average_point((4,), teacher), teacher)[1] < 1e-13
    pairs = ([0, 2], [1, 3])
    assert gradient(copy_average_point(pairs, teacher), teacher)[1] < 1e-13
    assert equitable_defect(([0], [1, 2, 3]), teacher) > 0.01


def test_defect_by_hand():
    # a chain: lifted row means 0.65 / 3, 0.8 / 3, 0.65 / 3
    chain = correlated_teacher([[1, 0.3, 0], [0.3, 1, 0.3], [0, 0.3, 1]])
    assert equitable_defect((3,), chain) == pytest.approx(0.05)


def test_gaussian_cdf_is_a_quarter():
    phi, teacher = gaussian_cdf(), Teacher.orthonormal(4)
    plus = copy_average_point((1, 3), teacher)
    loss, steepest = gradient(plus, teacher, phi)
    assert loss == pytest.approx(copy_average_loss((1, 3), 4) / 4, abs=1e-13)
    assert steepest < 1e-13
    flipped = copy_average_point((1, 3), teacher, [-1, 1])
    assert gradient(flipped, teacher, phi)[1] > 0.1


@pytest.mark.parametrize("name", ["tanh", "sigmoid", "softplus", "relu"])
def test_other_activations_are_not_critical(name):
    teacher = Teacher.orthonormal(4)
    student = copy_average_point((2, 2), teacher, activation=name)
    assert gradient(student, teacher, name)[1] > 1e-7


@pytest.mark.parametrize(
    "name", ["erf", "tanh", "sigmoid", "softplus", "relu"]
)
def test_copies_and_one_average_for_any_activation(name):
    teacher = Teacher.orthonormal(5)
    student = copy_average_point((1, 1, 3), teacher, activation=name)
    loss = float(population_loss(student.W, student.a, teacher, name))
    best = one_neuron_optimum(3, name).loss
    assert loss == pytest.approx(best, abs=1e-10)


def test_voices_scale_the_best_neuron_of_any_activation():
    loud = Teacher(2.0 * np.eye(3), [-3.0, -3.0, -3.0])
    student = copy_average_point((3,), loud, activation="sigmoid")
    best = one_neuron_optimum(3, "sigmoid", teacher_norm=2.0)
    assert student.a[0] == pytest.approx(-3 * best.a)
    assert student.norms[0] == pytest.approx(best.r)
    assert gradient(student, loud, "sigmoid")[1] < 1e-7


def test_linear_matching():
    for size in (1, 2, 7):
        assert linear_matching_ratio(size) == pytest.approx(1, abs=1e-13)
        assert linear_matching_ratio(size, "erf", 2.0) == pytest.approx(1)
    assert linear_matching_ratio(1, "tanh") == pytest.approx(1, abs=1e-8)
    assert abs(linear_matching_ratio(2, "tanh") - 1.000073) < 1e-6
    assert abs(linear_matching_ratio(5, "tanh") - 1.000004) < 1e-6
    x = np.linspace(-9, 9, 20001)
    density = np.exp(-x * x / 2) / math.sqrt(2 * math.pi) * (x[1] - x[0])
    tanh, best = get_activation("tanh"), one_neuron_optimum(3, "tanh", 1.5)
    own = best.a * best.r * (density @ tanh.derivative(best.r * x))
    group = math.sqrt(3) * 1.5 * (density @ tanh.derivative(1.5 * x))
    measured = linear_matching_ratio(3, "tanh", 1.5)
    assert measured == pytest.approx(own / group, abs=1e-9)


# --- the gradient by tilting ------------------------------------------------------


@given(
    n=st.integers(1, 3),
    k=st.integers(1, 4),
    d=st.integers(1, 4),
    batch=st.integers(0, 2),
    seed=st.integers(0, 999),
)
@settings(max_examples=30, deadline=None)
def test_tilt_identity(n, k, d, batch, seed):
    rng = np.random.default_rng(seed)
    teacher = Teacher(rng.standard_normal((k, d)), rng.standard_normal(k))
    shape = (2, n) if batch else (n,)
    W, a = rng.standard_normal((*shape, d)), rng.standard_normal(shape)
    exact = population_loss_grad(W, a, teacher)[1]
    np.testing.assert_allclose(
        tilted_gradient(W, a, teacher), exact, atol=1e-12
    )


def test_tilted_gradient_by_hand_and_at_zero():
    teacher = Teacher.orthonormal(1, 1)
    # one dimension: w = 0, slope a(-b) 4 / pi / sqrt(2)
    by_hand = tilted_gradient([[0.0]], [1.0], teacher)
    assert float(by_hand[0, 0]) == pytest.approx(-4 / math.pi / math.sqrt(2))


def test_lifted_interaction():
    rng = np.random.default_rng(4)
    W = 3 * rng.standard_normal((6, 4))
    y = lift(W)
    np.testing.assert_allclose(
        pair_expectations(W, W).value,
        2 / math.pi * np.arcsin(y @ y.T),
        atol=1e-14,
    )
    mean = lift(Teacher.orthonormal(3).V).mean(axis=0)
    np.testing.assert_allclose(
        lift(copy_average_point((3,), Teacher.orthonormal(3)).W[0]), mean
    )


# --- losses and partitions ---------------------------------------------------------


def test_losses_by_hand():
    assert copy_average_loss((1, 1), 2) == pytest.approx(0, abs=1e-15)
    assert copy_average_loss((1,), 3) == pytest.approx(2 / 3)
    pair = 2 / 3 - 8 / math.pi * math.asin(1 / 4)
    assert copy_average_loss((2, 2), 4) == pytest.approx(2 * pair)


@pytest.mark.parametrize("k", [1, 2, 7, 30])
def test_the_best_partition_copies_all_but_one(k):
    for n in range(1, k + 1):
        partitions = enumerate_partitions(k, n)
        losses = np.array([copy_average_loss(p, k) for p in partitions])
        assert partitions[losses.argmin()] == (1,) * (n - 1) + (k - n + 1,)
        best = float(optimal_loss_erf(k - n + 1))
        assert losses.min() == pytest.approx(best, abs=1e-12)
        even = [k // n] * (n - k % n) + [k // n + 1] * (k % n)
        assert partitions[losses.argmax()] == tuple(even)
        if len(losses) > 1:
            assert np.partition(losses, 1)[1] - losses.min() > 0.00585


@pytest.mark.parametrize("k", [2, 6, 12])
def test_leaving_neurons_out_never_pays(k):
    for n in range(1, k + 1):
        partitions = enumerate_partitions(k, n, partial=True)
        losses = [copy_average_loss(p, k) for p in partitions]
        best = partitions[int(np.argmin(losses))]
        assert best == (1,) * (n - 1) + (k - n + 1,)


@given(sizes=st.lists(st.integers(1, 40), min_size=2, max_size=6))
@settings(max_examples=60, deadline=None)
def test_moving_a_neuron_to_the_larger_group_pays(sizes):
    sizes = sorted(sizes)
    k = sum(sizes)
    if sizes[0] == 1:
        return
    moved = [sizes[0] - 1, *sizes[1:-1], sizes[-1] + 1]
    assert copy_average_loss(moved, k) < copy_average_loss(sizes, k)


def test_partition_numbers():
    # p(10, n), by Euler's recursion p(k, n) = p(k-1, n-1) + p(k-n, n)
    counts = [len(enumerate_partitions(10, n)) for n in range(1, 11)]
    assert counts == [1, 5, 8, 9, 7, 5, 3, 2, 1, 1]
    partial = enumerate_partitions(4, 2, partial=True)
    assert partial == [(1, 1), (1, 2), (1, 3), (2, 2)]


# --- counts ------------------------------------------------------------------------


def brute_points(k, n):
    """Distinct copy-average points in weight space, by their sizes."""
    teacher, points = Teacher.orthonormal(k, k), {}
    for labels in product(range(n), repeat=k):
        if len(set(labels)) < n:
            continue
        groups = [[j for j in range(k) if labels[j] == i] for i in range(n)]
        for signs in product([-1, 1], repeat=n):
            student = copy_average_point(groups, teacher, signs)
            key = tuple(pack(student.W, student.a).round(9).tolist())
            points[key] = tuple(sorted(len(g) for g in groups))
    return Counter(points.values())


@pytest.mark.parametrize(
    "k, n", [(1, 1), (2, 1), (3, 2), (3, 3), (5, 3), (6, 3)]
)
def test_counts_by_brute_force(k, n):
    found = brute_points(k, n)
    counts = count_copy_average(k, n)
    assert counts.all == sum(found.values())
    assert counts.levels == len(found)
    best = (1,) * (n - 1) + (k - n + 1,)
    assert counts.optimal == found[best]
    assert all(count_sizes(sizes) == found[sizes] for sizes in found)
    copies = {
        (choice, signs)
        for choice in permutations(range(k), n)
        for signs in product([-1, 1], repeat=n)
    }
    assert counts.n_copy == len(copies)


@given(k=st.integers(1, 14), data=st.data())
@settings(max_examples=30, deadline=None)
def test_counts_add_up(k, data):
    n = data.draw(st.integers(1, k))
    partitions = enumerate_partitions(k, n)
    counts = count_copy_average(k, n)
    assert sum(map(count_sizes, partitions)) == counts.all
    assert count_sizes(partitions[0]) == counts.optimal
    assert counts.levels == len(partitions)


def test_published_counts():
    assert count_copy_average(3, 2)[:2] == (24, 24)
    assert count_copy_average(5, 3)[:2] == (480, 1200)
    assert count_copy_average(6, 3)[:2] == (720, 4320)
    full = 2**4 * math.factorial(4)
    assert count_copy_average(4, 4)[:3] == (full, full, full)


@pytest.mark.parametrize("k, n", [(5, 2), (6, 3), (4, 4), (1, 1)])
def test_groupings_are_all_different(k, n):
    found = list(enumerate_groupings(k, n))
    keys = {frozenset(map(frozenset, groups)) for groups in found}
    assert len(found) == len(keys)
    assert (
        len(found) * 2**n * math.factorial(n) == count_copy_average(k, n).all
    )
    assert all(sorted(sum(g, [])) == list(range(k)) for g in found)


# --- refusals ----------------------------------------------------------------------


@pytest.mark.parametrize(
    "partition",
    [(), (0, 2), (2, 2), (1.5,), ([0], []), ([0], [0, 1]), ([3],), (True,)],
)
def test_bad_partitions(partition):
    with pytest.raises(ValueError, match="must"):
        copy_average_point(partition, Teacher.orthonormal(3))


@pytest.mark.parametrize("signs", [[1], [1, 0], [1, math.nan], [1, 2]])
def test_bad_signs(signs):
    with pytest.raises(ValueError, match="signs"):
        copy_average_point((1, 2), Teacher.orthonormal(3), signs)


def test_flips_need_an_odd_activation():
    with pytest.raises(ValueError, match="odd"):
        copy_average_point((1, 1), Teacher.orthonormal(2), [1, -1], "relu")
    copy_average_point((1, 1), Teacher.orthonormal(2), [1, -1], "tanh")


@pytest.mark.parametrize(
    "V, activation, match",
    [
        ([[1.0, 0.0], [0.0, 2.0]], "erf", "norms"),
        ([[1.0, 0.0], [-1.0, 0.0]], "erf", "sum to zero"),
        ([[1.0, 0.0], [0.6, 0.8]], "tanh", "orthogonal"),
    ],
)
def test_teachers_without_a_closed_form(V, activation, match):
    with pytest.raises(ValueError, match=match):
        copy_average_point((2,), Teacher(V), activation=activation)
    G = np.array([[1, 0.5, 0], [0.5, 1, 0], [0, 0, 1.0]])
    with pytest.raises(ValueError, match="row sums"):
        copy_average_point((3,), correlated_teacher(G))


@pytest.mark.parametrize("partition", [(1, 1, 1), ([0], [1], [0])])
def test_more_neurons_than_the_teacher_has(partition):
    with pytest.raises(ValueError, match="must"):
        copy_average_point(partition, Teacher.orthonormal(2))


def test_silent_teacher_neurons_have_no_copy():
    teacher = Teacher(np.eye(3), [1.0, 0.0, 0.0])
    for partition in ((1, 1), (1, 2), ([1], [0])):
        with pytest.raises(ValueError, match="b different from 0"):
            copy_average_point(partition, teacher)


@pytest.mark.parametrize("k, n", [(2, 3), (0, 0), (2, 0), (2.5, 1), (3, True)])
def test_bad_widths(k, n):
    for function in (enumerate_partitions, count_copy_average):
        with pytest.raises(ValueError, match="must be"):
            function(k, n)
    with pytest.raises(ValueError, match="must be"):
        next(enumerate_groupings(k, n))


def test_bad_sizes():
    for bad in ((0, 1), (5, 5), (), (1.5,), (math.nan,)):
        with pytest.raises(ValueError, match="must"):
            copy_average_loss(bad, 6)
    for bad in ((), (0,), (2.5,)):
        with pytest.raises(ValueError, match="must"):
            count_sizes(bad)


@pytest.mark.parametrize("beta", [1.0, -0.5, math.nan, 2.0])
def test_bad_correlations(beta):
    with pytest.raises(ValueError, match="beta"):
        equicorrelated_teacher(3, beta)


@pytest.mark.parametrize(
    "gram",
    [
        [1.0],
        [[1.0, 2.0], [2.0, 1.0]],
        [[1.0, 0.1], [0.2, 1.0]],
        [[math.nan]],
        [[1.0, 1.0], [1.0, 1.0]],
    ],
)
def test_bad_gram_matrices(gram):
    with pytest.raises(ValueError, match="gram"):
        correlated_teacher(gram)


def test_size_one_correlations_and_dimensions():
    assert equicorrelated_teacher(1, -7.0, d=1).V.tolist() == [[1.0]]
    with pytest.raises(ValueError, match="d must"):
        equicorrelated_teacher(3, 0.1, d=2)


def test_other_refusals():
    with pytest.raises(ValueError, match="cover"):
        equitable_defect((1,), Teacher.orthonormal(2))
    with pytest.raises(ValueError, match="columns"):
        tilted_gradient([[1.0]], [1.0], Teacher.orthonormal(2))
    with pytest.raises(ValueError, match="finite"):
        tilted_gradient([[math.nan]], [1.0], Teacher.orthonormal(1, 1))
    with pytest.raises(ValueError, match="finite"):
        lift([math.inf])
    with pytest.raises(ValueError, match="size"):
        linear_matching_ratio(0)
