"""Gradient flow: it is one, it rests where it should, and says if not."""

import numpy as np
import pytest

from helpers.copy_average.flow import gradient_flow
from helpers.copy_average.initial import glorot_normal
from helpers.copy_average.networks import Student, Teacher, pack, unpack
from helpers.copy_average.objective import Objective
from helpers.copy_average.one_neuron import optimal_loss_erf

TEACHER = Teacher.orthonormal(6)


def test_one_neuron_ends_at_the_closed_form():
    flow = gradient_flow(glorot_normal(0, 1, 7), TEACHER)
    assert flow.status == "converged"
    assert flow.loss == pytest.approx(float(optimal_loss_erf(6)), abs=1e-12)
    assert flow.student.norms[0] == pytest.approx(1 / np.sqrt(11), abs=1e-9)
    assert abs(flow.student.a[0]) == pytest.approx(6, abs=1e-7)
    assert flow.smallest_eigenvalue > 0


def test_the_path_obeys_the_equation():
    times = np.linspace(0, 2, 401)
    flow = gradient_flow(
        glorot_normal(1, 3, 7), TEACHER, times=times, rtol=1e-10, atol=1e-12
    )
    objective = Objective(TEACHER, 3)
    velocity = np.gradient(flow.path, times, axis=0)[1:-1]
    gradient = objective.loss_and_gradient(flow.path)[1][1:-1]
    # the central difference errs by h^2 / 6 times a third derivative
    np.testing.assert_allclose(velocity, -gradient, atol=2e-4)
    assert np.abs(gradient).max() > 0.1


def test_the_loss_never_rises():
    times = np.concatenate([[0], np.geomspace(1e-2, 1e6, 200)])
    flow = gradient_flow(glorot_normal(2, 3, 7), TEACHER, times=times)
    loss = Objective(TEACHER, 3).loss_and_gradient(flow.path)[0]
    assert len(loss) == times.size
    assert np.all(np.diff(loss) < 1e-9)


@pytest.mark.parametrize("seed", range(4))
def test_same_minimum_as_a_tight_stiff_reference(seed):
    student, teacher = glorot_normal(seed, 8, 13), Teacher.orthonormal(12)
    ours = gradient_flow(student, teacher)
    tight = gradient_flow(
        student, teacher, method="Radau", rtol=1e-8, atol=1e-10, polish=False
    )
    assert ours.status == tight.status == "converged"
    # both at rest: the same point, up to the gradient over the eigenvalue
    reach = tight.gradient / ours.smallest_eigenvalue * np.sqrt(112)
    distance = np.linalg.norm(_packed(ours) - _packed(tight))
    assert distance < 2 * reach + 1e-9
    assert ours.gradient < 1e-10


def _packed(flow):
    return pack(flow.student.W, flow.student.a)


def test_polish_leaves_saddles_alone():
    # a saddle: two neurons average three teacher neurons each
    from helpers.copy_average.configurations import copy_average_point

    saddle = copy_average_point([[0, 1, 2], [3, 4, 5]], TEACHER)
    nudged = Student(saddle.W + 1e-9, saddle.a)
    flow = gradient_flow(nudged, TEACHER)
    assert flow.status == "converged" and flow.time == 0
    np.testing.assert_array_equal(flow.student.W, nudged.W)
    assert flow.smallest_eigenvalue < -1e-4


def test_polish_does_not_travel():
    """Far from rest Newton's method reaches a minimum, but not as a flow.

    From (0.3, 2.4) its iteration ends at the teacher, (1, 1), twice as far
    away as its first step promised. The flow may not claim that end.
    """
    teacher = Teacher.orthonormal(1, 1)
    for start, goes in (([0.3, 2.4], False), ([0.99, 1.02], True)):
        student = Student([start[:1]], start[1:])
        flow = gradient_flow(student, teacher, gtol=10.0)
        assert flow.status == "converged" and flow.time == 0
        end = [1.0, 1.0] if goes else start
        np.testing.assert_allclose(_packed(flow), end, atol=1e-12)


def test_flow_that_runs_out_of_time_says_so():
    flow = gradient_flow(
        glorot_normal(0, 2, 7), TEACHER, t_max=1.0, times=[0.0, 0.5, 2.0]
    )
    assert flow.status == "time" and flow.time == pytest.approx(1.0)
    assert flow.path.shape == (2, 16) and flow.times.tolist() == [0.0, 0.5]
    assert flow.gradient > 5e-8


def test_what_comes_after_rest_is_rest():
    flow = gradient_flow(
        glorot_normal(0, 1, 7), TEACHER, times=[0.0, 1e9], polish=False
    )
    np.testing.assert_allclose(flow.path[1], _packed(flow), atol=1e-12)


def test_rotations_permutations_and_signs_commute_with_the_flow():
    rng = np.random.default_rng(3)
    turn, _ = np.linalg.qr(rng.normal(size=(7, 7)))
    student = glorot_normal(4, 3, 7)
    turned = gradient_flow(
        Student(student.W @ turn, student.a), Teacher(TEACHER.V @ turn)
    )
    order = [2, 0, 1]
    flipped = gradient_flow(
        Student(-student.W[order], -student.a[order]), TEACHER
    )
    plain = gradient_flow(student, TEACHER)
    np.testing.assert_allclose(
        turned.student.W @ turn.T, plain.student.W, atol=1e-7
    )
    np.testing.assert_allclose(
        -flipped.student.W, plain.student.W[order], atol=1e-7
    )


def test_relu_conserves_the_difference_of_squares():
    student = glorot_normal(7, 2, 4)
    student = Student(student.W, 0.5 * student.norms)
    flow = gradient_flow(
        student, Teacher.orthonormal(3), "relu", t_max=20.0, times=[0, 5, 20]
    )
    W, a = unpack(flow.path, 2)
    conserved = a**2 - (W**2).sum(axis=-1)
    np.testing.assert_allclose(
        conserved, conserved[:1].repeat(3, 0), atol=1e-4
    )


@pytest.mark.parametrize(
    "change, word",
    [
        ({"gtol": 0.0}, "gtol must"),
        ({"rtol": -1.0}, "rtol must"),
        ({"atol": np.nan}, "atol must"),
        ({"t_max": np.inf}, "t_max must"),
        ({"method": "RK45"}, "method must be one of LSODA"),
        ({"times": [1.0, 0.5]}, "times must"),
        ({"times": [-1.0]}, "times must"),
        ({"activation": "nonsense"}, "nonsense"),
    ],
)
def test_bad_input(change, word):
    with pytest.raises(ValueError, match=word):
        gradient_flow(glorot_normal(0, 2, 7), TEACHER, **change)


def test_students_that_do_not_fit():
    with pytest.raises(ValueError, match="student must be one network"):
        gradient_flow(glorot_normal(0, 2, 7, batch=3), TEACHER)
    with pytest.raises(ValueError, match="student must be one network"):
        gradient_flow(glorot_normal(0, 2, 6), TEACHER)
