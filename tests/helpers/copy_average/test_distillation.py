"""Warm starts: closed forms, brute force, and that they are worth it."""

import math
from itertools import combinations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from helpers.copy_average.configurations import (
    copy_average_point,
    equicorrelated_teacher,
)
from helpers.copy_average.distillation import (
    STARTS,
    copy_start,
    run_distillation,
    stand_in,
    time_to,
    trained_teacher,
    warm_start,
)
from helpers.copy_average.networks import Student, Teacher
from helpers.copy_average.one_neuron import optimal_loss_erf
from helpers.copy_average.population import (
    population_loss,
    population_loss_grad,
)
from helpers.copy_average.search import find_critical_points
from helpers.copy_average.unequal_teachers import rank_copies


def loss_of(student, teacher):
    return float(population_loss(student.W, student.a, teacher))


def test_stand_in_by_hand():
    w, a = stand_in(Teacher.orthonormal(3, 4), [0, 2])
    assert w == pytest.approx(np.array([1, 0, 1, 0]) / math.sqrt(6))
    assert a == pytest.approx(2)
    w, a = stand_in(Teacher([[0.0, 2.0]], [-3.0]), [0])
    assert a * w == pytest.approx(np.array([0, -6.0]))


@pytest.mark.parametrize("beta", [-0.1, 0.0, 0.4])
def test_warm_start_is_the_exact_point_where_there_is_one(beta):
    teacher = equicorrelated_teacher(6, beta)
    made = warm_start(teacher, 3)
    exact = copy_average_point(([0], [1], [2, 3, 4, 5]), teacher)
    assert made.copied == (0, 1)
    np.testing.assert_allclose(made.student.W, exact.W, atol=1e-12)
    np.testing.assert_allclose(made.student.a, exact.a)
    if beta == 0:
        assert made.loss == pytest.approx(float(optimal_loss_erf(4)))


@given(seed=st.integers(0, 10**6), k=st.integers(1, 6), share=st.floats(0, 1))
@settings(max_examples=30, deadline=None)
def test_laws_on_random_teachers(seed, k, share):
    n = 1 + round(share * (k - 1))
    rng = np.random.default_rng(seed)
    teacher = Teacher(rng.standard_normal((k, k + 1)), rng.standard_normal(k))
    made = warm_start(teacher, n)
    assert made.student.W.shape == (n, k + 1)
    assert made.loss == pytest.approx(loss_of(made.student, teacher))
    assert len(made.copied) == n - 1
    # the stand-in's outgoing weight is the best one
    _, _, ga = population_loss_grad(made.student.W, made.student.a, teacher)
    assert ga[-1] == pytest.approx(0, abs=1e-9)
    # flipping a teacher neuron is no change
    flip = np.where(rng.random(k) < 0.5, -1.0, 1.0)
    turned = Teacher(flip[:, None] * teacher.V, flip * teacher.b)
    assert warm_start(turned, n).loss == pytest.approx(made.loss)
    if n == k:
        assert made.loss == pytest.approx(0, abs=1e-9)


def test_copied_neurons_do_not_count():
    teacher = trained_teacher("crooked", 6, 3)
    made = warm_start(teacher, 4)
    rest = [j for j in range(6) if j not in made.copied]
    alone = Teacher(teacher.V[rest], teacher.b[rest])
    one = Student(made.student.W[-1:], made.student.a[-1:])
    assert made.loss == pytest.approx(loss_of(one, alone))


@pytest.mark.parametrize("seed", range(4))
def test_greedy_choice_against_all_choices(seed):
    teacher = trained_teacher("uneven", 6, seed)
    made = warm_start(teacher, 4)
    losses = []
    for copied in combinations(range(6), 3):
        rest = [j for j in range(6) if j not in copied]
        w, a = stand_in(teacher, rest)
        alone = Teacher(teacher.V[rest], teacher.b[rest])
        losses.append(loss_of(Student([w], [a]), alone))
    assert made.loss == pytest.approx(min(losses))
    # and the closed form with the best average is not much lower
    best = rank_copies(teacher, 4)[0]
    assert best.copied == made.copied
    assert best.loss <= made.loss < 1.02 * best.loss


def test_twins_are_merged():
    # taking out the dearest would copy both twins: they are loud together
    gram = np.eye(6)
    gram[0, 1] = gram[1, 0] = 0.5
    V = np.hstack([np.linalg.cholesky(gram), np.zeros((6, 1))])
    made = warm_start(Teacher(V), 5)
    assert made.copied == (2, 3, 4, 5)
    pair = math.pi / 6 + math.asin(1 / 4) - 2 * math.asin(3 / 8)
    assert made.loss == pytest.approx(4 / math.pi * pair)


@pytest.mark.parametrize("seed", range(4))
def test_search_against_all_groups(seed):
    rng = np.random.default_rng(seed)
    teacher = Teacher(rng.standard_normal((6, 7)), rng.standard_normal(6))
    losses = []
    for group in combinations(range(6), 3):
        w, a = stand_in(teacher, group)
        alone = Teacher(teacher.V[list(group)], teacher.b[list(group)])
        losses.append(loss_of(Student([w], [a]), alone))
    assert min(losses) - 1e-9 <= warm_start(teacher, 4).loss
    assert warm_start(teacher, 4).loss <= np.sort(losses)[1] + 1e-9


def test_stand_in_is_close_to_the_best_neuron():
    teacher = trained_teacher("crooked", 5, 8)
    w, a = stand_in(teacher, np.arange(5))
    found = find_critical_points(teacher, rng=0, starts=2)
    made, best = loss_of(Student([w], [a]), teacher), np.nanmin(found.loss)
    assert best <= made < 1.05 * best


def test_neurons_that_cancel():
    teacher = Teacher([[1.0, 0.0], [1.0, 0.0]], [1.0, -1.0])
    w, a = stand_in(teacher, [0, 1])
    assert w.tolist() == [0, 0] and a == 0
    assert warm_start(teacher, 1).loss == pytest.approx(0, abs=1e-12)


def test_copy_start_takes_the_loudest():
    teacher = Teacher(np.diag([1.0, 3.0, 1.0]), [1.0, 1.0, -1.5])
    made = copy_start(teacher, 2)
    assert made.copied == (1, 2)
    assert made.loss == pytest.approx(1 / 3)


def test_trained_teachers():
    plain = trained_teacher("orthonormal", 4, 0)
    assert np.all(plain.b == 1)
    uneven = trained_teacher("uneven", 4, 0)
    assert np.array_equal(uneven.V, plain.V) and np.ptp(uneven.b) > 0.01
    crooked = trained_teacher("crooked", 200, 0)
    norms = np.linalg.norm(crooked.V, axis=1)
    # three standard errors of a deviation of 200 draws
    assert np.std(np.log(norms)) == pytest.approx(0.25, abs=0.04)
    gram = (crooked.V / norms[:, None]) @ (crooked.V / norms[:, None]).T
    off = gram[~np.eye(200, dtype=bool)]
    assert 0.01 < off.std() < 0.05


def test_time_to():
    assert time_to([0, 1, 4], [3.0, 2.0, 1.0], 3.0) == 0
    assert time_to([0, 1, 4], [3.0, 2.0, 1.0], 1.5) == 4
    assert time_to([0, 1, 4], [3.0, 2.0, 1.0], 0.5) == math.inf


@pytest.mark.parametrize(
    "n, label", [(5, "optimal_ca"), (8, "perturbed_n_copy")]
)
def test_start_at_copies_switches_class(n, label):
    # the threshold is 6.33 at k = 12
    assert (
        run_distillation("orthonormal", 12, n, "n_copy", 1)["label"] == label
    )


def test_tasks_share_their_teacher():
    rows = {s: run_distillation("crooked", 5, 3, s, 7) for s in STARTS}
    assert rows["copy_average"]["first"] < 0.2 < rows["n_copy"]["first"]
    assert rows["copy_average"]["near"] < rows["random"]["near"]
    assert all(row["status"] == "converged" for row in rows.values())


@pytest.mark.parametrize(
    "call, message",
    [
        (lambda t: warm_start(t, 0), "n must be a whole number"),
        (lambda t: warm_start(t, 4), "n must be a whole number"),
        (lambda t: copy_start(t, 1.5), "n must be a whole number"),
        (lambda t: stand_in(t, []), "group must hold different indices"),
        (lambda t: stand_in(t, [0, 0]), "group must hold different indices"),
        (lambda t: stand_in(t, [0, 3]), "group must hold different indices"),
        (lambda t: trained_teacher("kind", 3, 0), "kind must be one of"),
        (lambda t: trained_teacher("uneven", 0, 0), "1 <= k <= d"),
        (lambda t: time_to([0, 1], [1.0], 1), "rows of one length"),
        (
            lambda t: run_distillation("uneven", 3, 2, "cold", 0),
            "start must be one of",
        ),
    ],
)
def test_bad_input(call, message):
    with pytest.raises(ValueError, match=message):
        call(Teacher.orthonormal(3))
