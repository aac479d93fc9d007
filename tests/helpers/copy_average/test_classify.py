"""Classes of solutions: each made on purpose, and each taken apart."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from helpers.copy_average.classify import (
    LABELS,
    canonicalize,
    classify_solution,
)
from helpers.copy_average.configurations import (
    copy_average_point,
    equicorrelated_teacher,
)
from helpers.copy_average.flow import gradient_flow
from helpers.copy_average.initial import glorot_normal
from helpers.copy_average.networks import Student, Teacher

TEACHER = Teacher.orthonormal(6)


def optimal(n=3, teacher=TEACHER):
    groups = [[j] for j in range(n - 1)] + [list(range(n - 1, teacher.k))]
    return copy_average_point(groups, teacher)


def label(student, teacher=TEACHER):
    return classify_solution(student, teacher).label


@pytest.mark.parametrize("n", [1, 2, 5, 6])
def test_copies_and_one_average(n):
    solution = classify_solution(optimal(n), TEACHER)
    assert solution.label == "optimal_ca"
    assert solution.gradient < 1e-12
    expected = list(range(n - 1)) + ([5] if n == 6 else [])
    assert solution.copies.tolist() == expected


def test_the_average_of_two_is_no_copy():
    student = optimal(5)
    assert label(student) == "optimal_ca"
    assert np.abs(classify_solution(student, TEACHER).cosines[4]).max() < 0.71


def test_other_groups_are_another_class():
    assert label(copy_average_point([[0, 1], [2, 3], [4, 5]], TEACHER)) == (
        "other_ca"
    )
    # a group that nobody takes: neither
    partial = copy_average_point([[0], [1], [2, 3]], TEACHER)
    assert label(partial) == "other"


def test_n_copy_and_its_perturbation():
    copies = copy_average_point([[0], [1], [2]], TEACHER)
    assert label(copies) == "perturbed_n_copy"
    lean = Student(copies.W + 0.1 * TEACHER.V[3:].sum(axis=0), copies.a)
    assert label(lean) == "perturbed_n_copy"
    far = Student(copies.W + 0.4 * TEACHER.V[3:].sum(axis=0), copies.a)
    assert label(far) == "other"
    twice = Student(TEACHER.V[[0, 1, 2]] + 0.3 * TEACHER.V[0], copies.a)
    assert label(twice) == "perturbed_n_copy"


def test_two_neurons_of_one_direction():
    base = optimal(3)
    # the first copy split in two: shares 0.3 and 0.7
    W = np.vstack([base.W[0], base.W])
    a = np.concatenate([[0.3], base.a])
    a[1] = 0.7
    split = classify_solution(Student(W, a), TEACHER)
    assert split.label == "split"
    assert split.gradient < 1e-12
    assert abs(split.smallest_eigenvalue) < 1e-10
    a[:2] = 2.0, -1.0
    assert label(Student(W, a)) == "channel"
    # turning one neuron round changes nothing
    W[0], a[0] = -W[0], -a[0]
    assert label(Student(W, a)) == "channel"


def test_dead_neurons():
    base = optimal(3)
    for W, a in (
        (base.W * [[1e-9], [1], [1]], base.a),
        (base.W, base.a * [1e-9, 1, 1]),
        (base.W * [[0], [1], [1]], base.a),
    ):
        assert label(Student(W, a)) == "dead"


def test_opposite_rectifiers_do_different_work():
    W = np.vstack([TEACHER.V[0], -TEACHER.V[0]])
    student = Student(W, [1.0, 0.5])
    assert label(student) == "channel"
    assert classify_solution(student, TEACHER, "relu").label == "other"


@pytest.mark.parametrize(
    "groups", [[[0], [1, 2, 3, 4, 5]], [[0, 1, 2], [3, 4, 5]], [[0], [1]]]
)
@pytest.mark.parametrize("turned", [0, 1])
def test_a_mirror_image_is_no_copy_unless_the_activation_is_odd(
    groups, turned
):
    student = copy_average_point(groups, TEACHER)
    as_it_is = label(student)
    assert as_it_is == classify_solution(student, TEACHER, "relu").label
    sign = np.where(np.arange(2) == turned, -1.0, 1.0)
    mirror = Student(sign[:, None] * student.W, sign * student.a)
    assert label(mirror) == as_it_is
    assert classify_solution(mirror, TEACHER, "relu").label == "other"


@settings(max_examples=25, deadline=None)
@given(st.integers(0, 2**31))
def test_class_is_invariant(seed):
    rng = np.random.default_rng(seed)
    student, n = optimal(4), 4
    order = rng.permutation(n)
    sign = rng.choice([-1.0, 1.0], size=n)
    turn, _ = np.linalg.qr(rng.normal(size=(7, 7)))
    moved = Student(
        (sign[:, None] * student.W)[order] @ turn, (sign * student.a)[order]
    )
    turned = Teacher(TEACHER.V @ turn)
    assert label(moved, turned) == "optimal_ca"
    back, permutation = canonicalize(moved, turned)
    np.testing.assert_allclose(back.a, np.abs(back.a))
    np.testing.assert_allclose(
        back.a, np.abs(moved.a[permutation]), rtol=1e-12
    )


def test_canonical_order_of_a_flow():
    flow = gradient_flow(glorot_normal(0, 3, 7), TEACHER)
    ordered, permutation = canonicalize(flow.student, TEACHER)
    assert sorted(permutation.tolist()) == [0, 1, 2]
    again, identity = canonicalize(ordered, TEACHER)
    assert identity.tolist() == [0, 1, 2]
    np.testing.assert_array_equal(again.W, ordered.W)
    assert classify_solution(ordered, TEACHER).label == "optimal_ca"


def test_correlated_teachers_have_averages_too():
    teacher = equicorrelated_teacher(6, 0.4)
    assert label(optimal(3, teacher), teacher) == "optimal_ca"


def test_every_label_is_listed():
    assert len(set(LABELS)) == len(LABELS) == 7


@pytest.mark.parametrize("function", [classify_solution, canonicalize])
def test_bad_input(function):
    with pytest.raises(ValueError, match="student must be one network"):
        function(glorot_normal(0, 2, 7, batch=2), TEACHER)
    with pytest.raises(ValueError, match="student must be one network"):
        function(glorot_normal(0, 2, 5), TEACHER)
    with pytest.raises(ValueError, match="n <= 2"):
        canonicalize(glorot_normal(0, 3, 3), Teacher.orthonormal(2))
