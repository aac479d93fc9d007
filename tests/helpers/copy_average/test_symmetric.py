"""Symmetric families: by hand, against whole networks, on random inputs."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from helpers.copy_average.aligned import aligned_loss, rectifier_limit
from helpers.copy_average.flow import gradient_flow
from helpers.copy_average.networks import (
    Student,
    Teacher,
    pack,
    teacher_cosines,
)
from helpers.copy_average.one_neuron import optimal_loss_relu
from helpers.copy_average.population import (
    population_hessian,
    population_loss,
    population_loss_grad,
)
from helpers.copy_average.symmetric import (
    FAMILIES,
    SymmetricPoint,
    fixed_norm_optimum,
    naive_parameters,
    symmetric_loss,
    symmetric_optimum,
    symmetric_student,
)
from helpers.core.activations import get_activation

PUBLISHED = [
    # k, n, copy-average, n-copy, own cosine of a copy in each, average's
    (3, 2, 0.153668, 0.155325, 0.9954, 0.9200, 0.6957),
    (6, 3, 0.586392, 0.592274, 0.9876, 0.9163, 0.4586),
    (6, 4, 0.303461, 0.302316, 0.9938, 0.9601, 0.5513),
    (10, 5, 0.972555, 0.976327, 0.9877, 0.9505, 0.3568),
    (10, 7, 0.425704, 0.420422, 0.9949, 0.9794, 0.4716),
    (20, 9, 2.327241, 2.328731, 0.9882, 0.9696, 0.2316),
    (20, 10, 1.905041, 1.903295, 0.9902, 0.9753, 0.2499),
]


def whole_gradient(student, activation="relu"):
    d = student.W.shape[1]
    teacher = Teacher.orthonormal(d - 1, d)
    _, *grads = population_loss_grad(student.W, student.a, teacher, activation)
    return np.abs(pack(*grads)).max()


def test_student_by_hand():
    student = symmetric_student([2, 3, 4, 5, 6, 7, 8], 4, 3, d=5)
    assert student.a.tolist() == [2, 2, 6]
    assert student.W.tolist() == [
        [3, 4, 5, 5, 0],
        [4, 3, 5, 5, 0],
        [7, 7, 8, 8, 0],
    ]
    copies = symmetric_student([2, 3, 4, 5], 3, 2, "n_copy")
    assert copies.W.tolist() == [[3, 4, 5], [4, 3, 5]]


def test_one_relu_copy_of_two_by_hand():
    # one neuron v_1 for v_1 and v_2: what is lost is E[relu^2] = 1/2, and
    # the pull of the other is that of two independent rectifiers
    loss, gradient = symmetric_loss([1, 1, 0, 0], 2, 1, "n_copy", "relu")
    assert loss == pytest.approx(1 / 2)
    assert gradient == pytest.approx([-1 / math.pi, -1 / math.pi, 0, -1 / 2])


@pytest.mark.parametrize("activation", ["erf", "relu", "gelu", "tanh"])
@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("k, n", [(5, 3), (4, 1), (4, 4), (3, 2), (1, 1)])
def test_loss_is_that_of_the_whole_network(family, k, n, activation):
    rng = np.random.default_rng(k + n)
    p = rng.standard_normal(FAMILIES[family])
    loss, _ = symmetric_loss(p, k, n, family, activation)
    student = symmetric_student(p, k, n, family)
    whole = population_loss(
        student.W, student.a, Teacher.orthonormal(k, k), activation
    )
    assert loss == pytest.approx(float(whole), rel=1e-12, abs=1e-12)


@given(
    seed=st.integers(0, 10**6),
    k=st.integers(1, 9),
    share=st.floats(0, 1),
    family=st.sampled_from(sorted(FAMILIES)),
    activation=st.sampled_from(["erf", "relu", "gelu"]),
)
@settings(max_examples=60, deadline=None)
def test_gradient_is_the_whole_one_summed(seed, k, share, family, activation):
    n = 1 + round(share * (k - 1))
    p = np.random.default_rng(seed).standard_normal(FAMILIES[family])
    _, gradient = symmetric_loss(p, k, n, family, activation)
    student = symmetric_student(p, k, n, family)
    _, gW, ga = population_loss_grad(
        student.W, student.a, Teacher.orthonormal(k, k), activation
    )
    unit = np.eye(p.size)
    for j, step in enumerate(unit):
        moved = symmetric_student(p + step, k, n, family)
        summed = (gW * (moved.W - student.W)).sum()
        summed += ga @ (moved.a - student.a)
        assert gradient[j] == pytest.approx(summed, rel=1e-9, abs=1e-9)


def test_gradient_between_whole_numbers():
    rng = np.random.default_rng(3)
    for family, size in FAMILIES.items():
        p, step = rng.standard_normal(size), 1e-6
        _, gradient = symmetric_loss(p, 7.5, 3.4, family, "relu")
        ends = [
            symmetric_loss(p + e, 7.5, 3.4, family, "relu")[0]
            - symmetric_loss(p - e, 7.5, 3.4, family, "relu")[0]
            for e in step * np.eye(size)
        ]
        assert gradient == pytest.approx(np.array(ends) / (2 * step), abs=1e-6)


@pytest.mark.parametrize("row", PUBLISHED)
def test_relu_table(row):
    k, n, average, copies, own, other, ideal = row
    first = symmetric_optimum(k, n, "copy_average", "relu")
    second = symmetric_optimum(k, n, "n_copy", "relu")
    assert first.loss == pytest.approx(average, abs=5e-7)
    assert second.loss == pytest.approx(copies, abs=5e-7)
    assert first.copy_cosines[0] == pytest.approx(own, abs=6e-5)
    assert second.copy_cosines[0] == pytest.approx(other, abs=6e-5)
    assert first.average_cosines[1] == pytest.approx(ideal, abs=6e-5)
    for point in (first, second):
        assert whole_gradient(point.student(k + 1)) < 1e-10
        measured = teacher_cosines(point.student().W, np.eye(k))
        assert measured[0, 0] == pytest.approx(point.copy_cosines[0])


def test_control_the_naive_point_is_not_critical():
    naive = symmetric_student(
        naive_parameters(3, 2, "copy_average", "relu"), 3, 2, d=4
    )
    assert whole_gradient(naive) > 0.1


@pytest.mark.parametrize("k", [1, 2, 5])
def test_one_neuron_alone_is_the_best_average(k):
    point = symmetric_optimum(k, 1, "copy_average", "relu")
    assert point.loss == pytest.approx(float(optimal_loss_relu(k)))


@pytest.mark.parametrize("activation", ["erf", "relu"])
@pytest.mark.parametrize("family", FAMILIES)
def test_as_many_students_as_teachers(family, activation):
    point = symmetric_optimum(4, 4, family, activation)
    assert point.loss == pytest.approx(0, abs=1e-12)


def test_erf_copy_average_stays_where_the_theorem_puts_it():
    point = symmetric_optimum(6, 3)
    naive = naive_parameters(6, 3)
    assert np.array(point.parameters) == pytest.approx(naive, abs=1e-9)


@pytest.mark.parametrize("k, n", [(6, 3), (6, 4)])
def test_no_random_start_within_the_family_ends_lower(k, n):
    rng = np.random.default_rng(8)
    for family, size in FAMILIES.items():
        best = symmetric_optimum(k, n, family, "relu").loss
        for _ in range(12):
            start = np.abs(rng.standard_normal(size)) + 0.1
            other = symmetric_optimum(k, n, family, "relu", start)
            assert other.loss > best - 1e-9


def test_homogeneous_points_have_unit_weights():
    point = symmetric_optimum(6, 3, "copy_average", "relu")
    assert point.copy_norm == pytest.approx(1)
    assert point.average_norm == pytest.approx(1)


@pytest.mark.parametrize(
    "change, message",
    [
        ({"family": "crowd"}, "family must be one of"),
        ({"n": 0}, "need 1 <= n <= k"),
        ({"n": 7}, "need 1 <= n <= k"),
        ({"n": math.nan}, "need 1 <= n <= k"),
        ({"k": math.inf}, "need 1 <= n <= k"),
        ({"k": True}, "need 1 <= n <= k"),
        ({"parameters": [1.0] * 4}, "must be 7 finite"),
        ({"parameters": [math.nan] * 7}, "must be 7 finite"),
        ({"activation": "step"}, "activation"),
    ],
)
def test_bad_input(change, message):
    good = {
        "parameters": [1.0] * 7,
        "k": 6,
        "n": 3,
        "family": "copy_average",
        "activation": "erf",
    }
    with pytest.raises(ValueError, match=message):
        symmetric_loss(**{**good, **change})


def test_students_need_whole_numbers():
    with pytest.raises(ValueError, match="whole k and n"):
        symmetric_student([1.0] * 4, 5, 2.5, "n_copy")


def test_copies_without_an_average():
    point = SymmetricPoint("n_copy", "relu", 3, 2, (1, 1, 0, 0), 0.0, 0.0)
    assert point.average_norm == 0
    with pytest.raises(ValueError, match="no average"):
        _ = point.average_cosines


@pytest.mark.parametrize(
    "name, k, n, loss, norm",
    [
        ("tanh", 4, 2, 0.074756, 1.0),
        ("sigmoid", 6, 3, 0.002585, 1.0211),
        ("softplus", 6, 3, 0.064709, 1.0034),
    ],
)
def test_smooth_activations_barely_move(name, k, n, loss, norm):
    point = symmetric_optimum(k, n, "copy_average", name)
    assert point.loss == pytest.approx(loss, abs=1e-6)
    assert point.copy_norm == pytest.approx(norm, abs=1e-4)
    ideal = 1 / math.sqrt(k - n + 1)
    assert point.average_cosines[1] == pytest.approx(ideal, abs=1e-4)
    assert whole_gradient(point.student(k + 1), name) < 1e-10


@pytest.mark.parametrize("name", ["tanh", "sigmoid", "softplus", "relu"])
def test_pull_at_the_exact_point(name):
    # mean and linear part of the group's error, by Monte Carlo
    student = symmetric_student(
        naive_parameters(3, 2, "copy_average", name), 3, 2
    )
    _, gW, ga = population_loss_grad(
        student.W, student.a, Teacher.orthonormal(3, 3), name
    )
    assert np.abs(gW[1]).max() < 1e-10 and abs(ga[1]) < 1e-10
    assert gW[0, 1] == pytest.approx(gW[0, 2])
    act = get_activation(name)
    x = np.random.default_rng(1).standard_normal((400_000, 3))
    error = act(x @ student.W[1]) * student.a[1] - act(x[:, 1:]).sum(axis=1)
    mean, linear = error.mean(), (error * x[:, 1]).mean()
    slack = 5 / math.sqrt(len(x))
    first = act(x[:, 0])
    assert ga[0] == pytest.approx(2 * mean * first.mean(), abs=slack)
    slope = act.derivative(x[:, 0])
    own = 2 * mean * (slope * x[:, 0]).mean()
    assert gW[0, 0] == pytest.approx(own, abs=slack)
    assert gW[0, 1] == pytest.approx(2 * linear * slope.mean(), abs=slack)


@pytest.mark.parametrize(
    "name, last", [("erf", 9), ("sigmoid", 8), ("softplus", 9), ("relu", 6)]
)
def test_smooth_crossing(name, last):
    for n, sign in ((last, 1), (last + 1, -1)):
        average, copies = (
            symmetric_optimum(12, n, family, name).loss
            for family in ("copy_average", "n_copy")
        )
        assert sign * (copies - average) > 0


@pytest.mark.parametrize("family", FAMILIES)
def test_gelu_falls_with_the_norm(family):
    points = [fixed_norm_optimum(4, 2, r, family) for r in (0.5, 2, 10, 1e3)]
    assert np.all(np.diff([p.loss for p in points]) < 0)
    for point, r in zip(points, (0.5, 2, 10, 1e3), strict=True):
        assert point.copy_norm == pytest.approx(r)
        assert point.gradient < 1e-9
    # the approach is quadratic in 1 / r
    limit = fixed_norm_optimum(4, 2, 1e7, family).loss
    gaps = [
        fixed_norm_optimum(4, 2, r, family).loss - limit for r in (200, 400)
    ]
    assert gaps[0] / gaps[1] == pytest.approx(4, rel=0.01)


def test_fixed_norm_is_the_least_of_random_students():
    rng, best = np.random.default_rng(2), fixed_norm_optimum(4, 2, 1.5)
    for _ in range(200):
        p = np.array(best.parameters) + 0.1 * rng.standard_normal(7)
        point = SymmetricPoint("copy_average", "gelu", 4, 2, tuple(p), 0, 0)
        p[1:4] *= 1.5 / point.copy_norm
        p[5:] *= 1.5 / point.average_norm
        assert symmetric_loss(p, 4, 2, activation="gelu")[0] >= best.loss


def test_silu_has_a_point_of_finite_norm():
    start = fixed_norm_optimum(4, 2, 1.7, "n_copy", "silu").parameters
    point = symmetric_optimum(4, 2, "n_copy", "silu", start)
    assert point.copy_norm == pytest.approx(1.71663, abs=1e-4)
    assert whole_gradient(point.student(5), "silu") < 1e-9


def test_silu_point_of_equal_norms_is_a_saddle():
    start = fixed_norm_optimum(4, 2, 1.7, "n_copy", "silu").parameters
    point = symmetric_optimum(4, 2, "n_copy", "silu", start).student(5)
    H = population_hessian(point.W, point.a, Teacher.orthonormal(4), "silu")
    assert np.linalg.eigvalsh(H)[0] < -0.005
    unequal = [0.222, 5.287, 0, 0.372, 1.998, -0.088, 0.454]
    loss, _ = symmetric_loss(unequal, 4, 2, "copy_average", "silu")
    best = fixed_norm_optimum(4, 2, 1.7, "copy_average", "silu").loss
    assert loss < best - 0.01


def test_gelu_norm_follows_its_law():
    c = 1e6 * float(aligned_loss(1e3, 2, "gelu") - rectifier_limit(2, "gelu"))
    times = np.array([1e8, 1e9])
    flow = gradient_flow(
        Student([[0.5, 0.3, 0.1]], [0.5]),
        Teacher.orthonormal(2),
        "gelu",
        t_max=1e9,
        gtol=1e-14,
        times=times,
        polish=False,
    )
    r = np.linalg.norm(flow.path[:, :3], axis=1)
    assert np.log10(r[1] / r[0]) == pytest.approx(0.25, abs=0.005)
    assert r[1] ** 4 == pytest.approx(8 * c * 1e9, rel=0.03)


def test_bad_norm():
    with pytest.raises(ValueError, match="norm must be positive"):
        fixed_norm_optimum(4, 2, 0.0)
