"""ReLU flow: what it conserves, who dies, and where it ends."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from helpers.copy_average.configurations import copy_average_point
from helpers.copy_average.networks import Student, Teacher, pack
from helpers.copy_average.population import (
    population_hessian,
    population_loss,
    population_loss_grad,
)
from helpers.copy_average.rectified import (
    balanced,
    distinct_neurons,
    imbalance,
    name_ending,
    rectified_crossing,
    rectified_flow,
    run_flow,
    transverse_eigenvalues,
)
from helpers.copy_average.symmetric import symmetric_optimum


def random_student(seed, n=3, d=5, scale=1.0):
    rng = np.random.default_rng(seed)
    return Student(
        scale * rng.standard_normal((n, d)), scale * rng.standard_normal(n)
    )


def test_imbalance_by_hand():
    student = Student([[3.0, 4.0], [0.0, 1.0]], [6.0, 0.0])
    assert imbalance(student).tolist() == [11, -1]


@given(seed=st.integers(0, 10**6), n=st.integers(1, 5), k=st.integers(1, 5))
@settings(max_examples=40, deadline=None)
def test_velocity_keeps_the_imbalance(seed, n, k):
    # d/dt (a^2 - |w|^2) = 2 (a da - w dw), and Euler's rule makes it zero
    student = random_student(seed, n, k + 1)
    _, gW, ga = population_loss_grad(
        student.W, student.a, Teacher.orthonormal(k), "relu"
    )
    change = student.a * ga - (student.W * gW).sum(axis=1)
    np.testing.assert_allclose(change, 0, atol=1e-10)


def test_control_erf_does_not_keep_it():
    student = random_student(1)
    _, gW, ga = population_loss_grad(
        student.W, student.a, Teacher.orthonormal(4), "erf"
    )
    change = student.a * ga - (student.W * gW).sum(axis=1)
    assert np.abs(change).max() > 0.1


def test_integrator_keeps_the_imbalance():
    student = random_student(2, scale=0.5)
    teacher = Teacher.orthonormal(4)
    drifts = []
    for rtol in (1e-4, 1e-7):
        flow = rectified_flow(
            student, teacher, rtol=rtol, atol=rtol / 1000, t_max=50
        )
        change = imbalance(flow.student) - imbalance(student)
        drifts.append(np.abs(change).max())
    assert drifts[1] < 1e-5 < drifts[0]


@given(seed=st.integers(0, 10**6))
@settings(max_examples=20, deadline=None)
def test_balanced_is_the_same_function(seed):
    student, teacher = random_student(seed), Teacher.orthonormal(4)
    even = balanced(student)
    np.testing.assert_allclose(imbalance(even), 0, atol=1e-12)
    before, after = (
        population_loss(s.W, s.a, teacher, "relu") for s in (student, even)
    )
    assert after == pytest.approx(before)


def test_balanced_of_silent_neurons():
    even = balanced(Student([[0.0, 0.0], [3.0, 4.0]], [2.0, 0.0]))
    assert even.a.tolist() == [0, 0]
    assert even.W.tolist() == [[0, 0], [0, 0]]


def test_distinct_neurons_by_hand():
    student = Student(
        [[2.0, 0.0], [0.0, 0.0], [1.0, 0.0], [-1.0, 0.0], [0.0, 3.0]],
        [0.5, 9.0, -0.25, 1.0, 2.0],
    )
    kept = distinct_neurons(student)
    # opposite ReLU neurons are two neurons
    assert kept.W.tolist() == [[1, 0], [-1, 0], [0, 1]]
    assert kept.a.tolist() == [0.75, 1, 6]


def test_distinct_neurons_that_cancel():
    kept = distinct_neurons(Student([[1.0, 0], [1.0, 0]], [1.0, -1.0]))
    assert kept.a.tolist() == [0]


@given(seed=st.integers(0, 10**6))
@settings(max_examples=20, deadline=None)
def test_distinct_neurons_keep_the_function(seed):
    student = random_student(seed, 4)
    doubled = Student(
        np.concatenate([student.W, 3 * student.W[:2]]),
        np.concatenate([student.a, [0.3, -0.2]]),
    )
    kept = distinct_neurons(doubled)
    assert kept.a.size == 4
    teacher = Teacher.orthonormal(4)
    before, after = (
        population_loss(s.W, s.a, teacher, "relu") for s in (doubled, kept)
    )
    assert after == pytest.approx(before, abs=1e-10)


@pytest.mark.parametrize("family", ["copy_average", "n_copy"])
def test_endings_of_both_families(family):
    point = symmetric_optimum(6, 4, family, "relu").student(7)
    turned = Student(point.W[::-1], point.a[::-1])
    assert name_ending(turned, 6).label == family
    split = Student(
        np.concatenate([point.W, 2 * point.W[:1]]),
        np.append(point.a, 0.0),
    )
    split.a[[0, 4]] = 0.7 * point.a[0], 0.15 * point.a[0]
    ending = name_ending(split, 6)
    assert (ending.label, ending.family, ending.width) == ("merged", family, 4)
    silent = Student(
        np.concatenate([point.W, np.zeros((1, 7))]), np.append(point.a, 1.0)
    )
    ending = name_ending(silent, 6)
    assert (ending.label, ending.family, ending.width) == ("dead", family, 4)


def test_endings_that_are_neither():
    assert name_ending(random_student(3), 4).label == "other"
    nothing = name_ending(Student(np.zeros((2, 5)), np.ones(2)), 4)
    assert (nothing.label, nothing.width) == ("dead", 0)
    assert nothing.loss == pytest.approx(2 + 6 / math.pi)


def test_a_loud_negative_neuron_dies():
    # a^2 > |w|^2 and a < 0 against a positive teacher: w falls to zero
    start = Student([[0.2, 0.1]], [-1.0])
    flow = rectified_flow(start, Teacher.orthonormal(1, 2))
    assert list(flow.deaths) == [0]
    assert flow.student.W.tolist() == [[0, 0]]
    assert flow.student.a[0] == pytest.approx(-math.sqrt(0.95), abs=1e-4)
    assert flow.loss == pytest.approx(1 / 2)


def test_a_quiet_negative_neuron_changes_its_mind():
    # a^2 < |w|^2: the outgoing weight crosses zero, the incoming cannot
    start = Student([[1.0, 0.5]], [-0.2])
    flow = rectified_flow(start, Teacher.orthonormal(1, 2))
    assert not flow.deaths
    assert flow.student.a[0] > 0
    assert flow.loss < 1e-9
    W = flow.path.reshape(-1, 3)[:, :2]
    assert (W**2).sum(axis=1).min() > 1.25 - 0.04 - 1e-6


def test_flow_is_the_same_as_a_plain_integrator():
    from scipy.integrate import solve_ivp

    start, teacher = random_student(5, 2, 3, 0.4), Teacher.orthonormal(2, 3)
    flow = rectified_flow(start, teacher, t_max=5.0)

    def velocity(_t, theta):
        both = theta.reshape(2, 4)
        _, gW, ga = population_loss_grad(
            both[:, :3], both[:, 3], teacher, "relu"
        )
        return -pack(gW, ga)

    plain = solve_ivp(
        velocity,
        (0, 5.0),
        pack(start.W, start.a),
        method="DOP853",
        rtol=1e-10,
        atol=1e-12,
    )
    end = pack(flow.student.W, flow.student.a)
    np.testing.assert_allclose(end, plain.y[:, -1], atol=1e-5)
    assert flow.status == "time" and flow.time == pytest.approx(5)
    assert np.all(np.diff(flow.times) > 0)


def test_loss_falls_along_the_flow():
    teacher = Teacher.orthonormal(3)
    flow = rectified_flow(random_student(6, 2, 4, 0.5), teacher)
    path = flow.path.reshape(len(flow.times), 2, 5)
    losses = population_loss(path[..., :4], path[..., 4], teacher, "relu")
    assert np.diff(losses).max() < 1e-9
    assert flow.status == "converged" and flow.gradient <= 5e-8 * (1 + 1e-6)


def test_eigenvalues_across_the_symmetry():
    teacher = Teacher.orthonormal(10)
    lowest = {}
    for n in (4, 5, 7, 8):
        for family in ("copy_average", "n_copy"):
            point = symmetric_optimum(10, n, family, "relu").student(11)
            values = transverse_eigenvalues(point, teacher)
            assert values.size == n * 11
            lowest[n, family] = values[0]
    # which of the two are minima
    assert lowest[4, "n_copy"] < -1e-4 < 1e-2 < lowest[5, "n_copy"]
    assert lowest[8, "copy_average"] < -1e-2 < 1e-3 < lowest[7, "copy_average"]


def test_eigenvalues_do_not_see_the_scale():
    point = symmetric_optimum(4, 2, "copy_average", "relu").student(5)
    scaled = Student(3 * point.W, point.a / 3)
    teacher = Teacher.orthonormal(4)
    first, second = (
        transverse_eigenvalues(s, teacher) for s in (point, scaled)
    )
    np.testing.assert_allclose(first, second, atol=1e-7)


@pytest.mark.parametrize(
    "k, below", [(6, 3), (8, 4), (10, 5), (12, 6), (20, 9), (50, 16)]
)
def test_crossing(k, below):
    assert below < rectified_crossing(k) < below + 1
    for n, sign in ((below, -1), (below + 1, 1)):
        average, copy = (
            symmetric_optimum(k, n, family, "relu").loss
            for family in ("copy_average", "n_copy")
        )
        assert sign * (average - copy) > 0


def test_one_task_of_the_sweep():
    row = run_flow(3, 2, seed=1)
    assert row["label"] == row["family"] == "copy_average"
    assert row["loss"] == pytest.approx(0.153668, abs=1e-6)
    assert row["drift"] < 1e-5 and row["lowest"] > 0.02
    assert row == run_flow(3, 2, seed=1)
    small = run_flow(3, 2, seed=1, scale=0.05)
    assert small["status"] == "converged" and small["positive"] <= 2


@pytest.mark.parametrize(
    "call, message",
    [
        (lambda: rectified_crossing(3), "from 4 to 50"),
        (lambda: rectified_crossing(True), "from 4 to 50"),
        (
            lambda: rectified_flow(
                random_student(0), Teacher.orthonormal(4), gtol=0
            ),
            "gtol must be positive",
        ),
        (
            lambda: rectified_flow(
                random_student(0), Teacher.orthonormal(4), t_max=math.nan
            ),
            "t_max must be positive",
        ),
        (
            lambda: rectified_flow(random_student(0), Teacher.orthonormal(7)),
            "W must have shape",
        ),
        (
            lambda: distinct_neurons(Student(np.ones((2, 1, 3)), [[1], [1]])),
            "need one student",
        ),
        (
            lambda: transverse_eigenvalues(
                Student(np.eye(2), [1.0, 0.0]), Teacher.orthonormal(2, 2)
            ),
            "no silent neuron",
        ),
        (lambda: name_ending(random_student(0), 9), "1 <= k <= d"),
    ],
)
def test_bad_input(call, message):
    with pytest.raises(ValueError, match=message):
        call()


def test_a_split_is_a_trap_if_signs_differ():
    # eigenvalues of an equal split in closed form; none negative otherwise
    k, teacher = 5, Teacher.orthonormal(5)
    alone = balanced(
        symmetric_optimum(k, 1, "copy_average", "relu").student(6)
    )
    lowest = {}
    for share in (0.5, 0.2, -0.3):
        split = balanced(
            Student(
                np.tile(alone.W, (2, 1)),
                alone.a * np.array([1 - share, share]),
            )
        )
        lowest[share] = np.linalg.eigvalsh(
            population_hessian(split.W, split.a, teacher, "relu")
        )
    s = math.sqrt(1 - 1 / k)
    expected = [-(k * s + 1 / s) / math.pi] * (k - 1) + [-k * s / math.pi]
    for share in (0.5, 0.2):
        # third derivatives jump here, so that differences err by their step
        np.testing.assert_allclose(lowest[share][:k], expected, atol=1e-4)
    assert lowest[-0.3][0] > -1e-4
    assert (np.abs(lowest[-0.3]) < 1e-4).sum() == 3


def test_relaxed_plans_change_their_order():
    teacher = Teacher.orthonormal(6)
    before, after, lowest = [], [], []
    for sizes in ((1, 1, 4), (1, 2, 3), (2, 2, 2)):
        exact = balanced(copy_average_point(sizes, teacher, activation="relu"))
        before.append(population_loss(exact.W, exact.a, teacher, "relu"))
        flow = rectified_flow(exact, teacher)
        after.append(flow.loss)
        lowest.append(transverse_eigenvalues(flow.student, teacher)[0])
    assert np.all(np.diff(before) < -0.01) and np.all(np.diff(after) > 0.01)
    assert lowest[0] > 0.01 and max(lowest[1:]) < -0.01
