"""Teachers whose neurons differ: hand values, descents, laws, refusals."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import minimize

from helpers.copy_average.configurations import (
    copy_average_point,
    correlated_teacher,
    equicorrelated_teacher,
    equitable_defect,
    lift,
)
from helpers.copy_average.networks import Student, Teacher, pack, unpack
from helpers.copy_average.one_neuron import (
    one_neuron_optimum,
    optimal_loss_erf,
)
from helpers.copy_average.population import (
    population_loss,
    population_loss_grad,
)
from helpers.copy_average.search import newton_polish
from helpers.copy_average.unequal_teachers import (
    best_average,
    correlation_price,
    first_order_response,
    monotonicity_margin,
    rank_copies,
    weighted_copy_average_point,
    weighted_equitable_defect,
)

weights = st.lists(
    st.floats(0.05, 20).flatmap(lambda x: st.sampled_from([x, -x])),
    min_size=2,
    max_size=6,
)


def teacher_of(b, norms=1.0, d=None):
    b = np.asarray(b, dtype=float)
    norms = np.broadcast_to(np.asarray(norms, dtype=float), b.shape)
    return Teacher(norms[:, None] * np.eye(b.size, d or b.size + 1), b)


def steepness(student, teacher):
    _, *grads = population_loss_grad(student.W, student.a, teacher)
    return float(np.abs(pack(*grads)).max())


def as_student(average, teacher):
    return Student(average.coefficients[None] @ teacher.V, [average.a])


# --- one neuron ------------------------------------------------------------


@pytest.mark.parametrize("k", [1, 2, 5, 50])
@pytest.mark.parametrize("R", [0.3, 1.0])
def test_equal_weights_give_the_closed_form(k, R):
    found, known = best_average(np.ones(k), R), one_neuron_optimum(k, "erf", R)
    assert found.loss == pytest.approx(known.loss, abs=1e-13 * k)
    assert found.a == pytest.approx(k, rel=1e-8)
    assert found.r == pytest.approx(known.r, rel=1e-8)
    np.testing.assert_allclose(found.coefficients, known.w_coefficient)


def test_best_average_by_hand():
    """For equal weights cos(phi) = 1 - 1 / (2 k^2) and q = 1 / (2k)."""
    found = best_average([3.0, 3.0, -3.0])
    np.testing.assert_allclose(np.cos(found.angles), 1 - 1 / 18)
    assert found.q == pytest.approx(1 / 6)
    np.testing.assert_allclose(np.sign(found.overlaps), [1, 1, -1])
    assert found.loss == pytest.approx(9 * float(optimal_loss_erf(3)))


@settings(max_examples=60, deadline=None)
@given(b=weights, seed=st.integers(0, 999))
def test_best_average_is_critical(b, seed):
    norms = np.random.default_rng(seed).uniform(0.2, 1, len(b))
    found, teacher = best_average(b, norms), teacher_of(b, norms)
    student, scale = as_student(found, teacher), np.square(b).sum()
    loss = float(population_loss(student.W, student.a, teacher))
    assert loss == pytest.approx(found.loss, abs=1e-12 * scale)
    assert steepness(student, teacher) < 1e-6 * scale
    np.testing.assert_allclose(
        lift(student.W)[0] @ lift(teacher.V).T, found.overlaps, atol=1e-9
    )


@pytest.mark.parametrize("seed", range(6))
def test_best_average_against_descent(seed):
    """No descent from a random start ends lower, and all end there."""
    rng = np.random.default_rng(seed)
    b, norms = rng.normal(size=4), rng.uniform(0.3, 1, 4)
    teacher = teacher_of(b, norms)

    def objective(theta):
        loss, *grads = population_loss_grad(*unpack(theta, 1), teacher)
        return float(loss), pack(*grads)

    starts = rng.standard_normal((5, 6))
    found = [minimize(objective, x, jac=True, tol=1e-12).fun for x in starts]
    # a start may be caught at the saddle a = 0, never below the minimum
    assert min(found) == pytest.approx(best_average(b, norms).loss, abs=1e-8)
    assert sum(abs(f - min(found)) < 1e-7 for f in found) >= 4


def test_one_neuron_and_very_unequal_weights():
    assert best_average([-2.5], 0.7).loss == 0
    assert best_average([-2.5], 0.7).overlaps[0] < 0
    found = best_average([1000.0, 1.0])
    # the quiet neuron is fitted by tilting the loud copy
    assert found.loss == pytest.approx(
        1 / 3 - math.sqrt(3) / (2 * math.pi), abs=1e-4
    )


# --- louder is dearer --------------------------------------------------------


@settings(max_examples=100, deadline=None)
@given(b=weights, seed=st.integers(0, 999))
def test_louder_is_dearer(b, seed):
    norms = np.random.default_rng(seed).uniform(0.2, 1, len(b))
    margin = monotonicity_margin(best_average(b, norms))
    assert (margin > -1e-9 * np.abs(b).max()).all()
    louder = np.array(b)
    louder[seed % len(b)] *= 1.5
    scale = np.square(louder).sum()
    gain = best_average(louder, norms).loss - best_average(b, norms).loss
    assert gain > -1e-12 * scale


def test_margin_is_the_derivative():
    b, norms, h = np.array([1.0, 2.0, -0.5]), np.array([1.0, 0.6, 0.8]), 1e-5
    margin = monotonicity_margin(best_average(b, norms))
    for j in range(3):
        step = h * np.eye(3)[j] * np.sign(b[j])
        up, down = best_average(b + step, norms), best_average(b - step, norms)
        slope = (up.loss - down.loss) / (2 * h)
        assert margin[j] == pytest.approx(slope, abs=1e-8)
        assert margin[j] > 0


def test_margin_vanishes_for_one_neuron():
    assert abs(monotonicity_margin(best_average([2.0]))[0]) < 1e-15


def test_the_loudest_are_copied_and_others_rank_by_loss():
    choices = rank_copies(teacher_of([1.0, -3, 1.5, 2, 0.5]), 3)
    assert choices[0].copied == (1, 3)
    losses = [c.loss for c in choices]
    assert losses == sorted(losses) and len(losses) == 10
    for choice in choices:
        s, teacher = choice.student, teacher_of([1.0, -3, 1.5, 2, 0.5])
        assert float(population_loss(s.W, s.a, teacher)) == pytest.approx(
            choice.loss, abs=1e-12
        )


def test_two_levels_reach_the_closed_form():
    best = rank_copies(teacher_of([2.0, 2, 1, 1, 1, 1, 1, 1]), 3)[0]
    assert best.copied == (0, 1)
    assert best.loss == pytest.approx(float(optimal_loss_erf(6)))
    assert best.student.a[-1] == pytest.approx(6)


def test_a_loud_flat_neuron_is_averaged():
    """It is almost linear, and costs an average almost nothing."""
    teacher = teacher_of([5.0, 1, 1], [0.2, 1, 1])
    assert {c.copied for c in rank_copies(teacher, 2)[:2]} == {(1,), (2,)}


# --- glue ----------------------------------------------------------------------


@pytest.mark.parametrize("n", [2, 3])
def test_glue_criterion(n):
    s2 = np.array([1 / 2, 1 / 4, 1 / 6, 1 / 2, 1 / 3])
    norms = np.sqrt(s2 / (1 - s2))
    same = teacher_of([1.0, -2, 3, 1, 3 / 2], norms)
    other = teacher_of([1.0, -2, 3, 1, 1.7], norms)
    for choice in rank_copies(same, n):
        assert steepness(choice.student, same) < 1e-10
    rests = [c for c in rank_copies(other, n) if 4 not in c.copied]
    assert min(steepness(c.student, other) for c in rests) > 1e-4


def test_weighted_means_are_critical():
    s2 = np.array([1 / 2, 1 / 4, 1 / 6, 1 / 2, 1 / 3])
    teacher = teacher_of([1.0, 2, 3, 1, 3 / 2], np.sqrt(s2 / (1 - s2)))
    for groups in ([[0, 1], [2, 3, 4]], [[4, 0], [1, 3], [2]], [range(5)]):
        groups = [list(g) for g in groups]
        student = weighted_copy_average_point(groups, teacher)
        assert weighted_equitable_defect(groups, teacher) < 1e-15
        assert steepness(student, teacher) < 1e-13
    # the plain condition of equal weights does not see it
    assert equitable_defect([[0, 1], [2, 3, 4]], teacher) > 0.5


def test_weighted_means_with_equal_weights():
    teacher = equicorrelated_teacher(5, 0.3)
    groups = [[0, 3], [1, 2, 4]]
    plain = copy_average_point(groups, teacher)
    weighted = weighted_copy_average_point(groups, teacher)
    np.testing.assert_allclose(weighted.W, plain.W, atol=1e-15)
    np.testing.assert_allclose(weighted.a, plain.a)


def test_weighted_means_of_a_correlated_teacher():
    """Not orthogonal, not equal: built so that the overlaps agree."""
    b, s2, c = np.array([1.0, 2.0]), np.array([0.5, 0.3]), 0.1
    # y.z_1 = (b1 s1 + b2 c) / 3 and y.z_2 = (b1 c + b2 s2) / 3 agree
    assert b[0] * s2[0] + b[1] * c == pytest.approx(b[0] * c + b[1] * s2[1])
    stretch = 1 / np.sqrt(1 - s2)
    gram = np.outer(stretch, stretch) * [[s2[0], c], [c, s2[1]]]
    teacher = correlated_teacher(gram, b)
    student = weighted_copy_average_point([[0, 1]], teacher)
    assert weighted_equitable_defect([[0, 1]], teacher) < 1e-15
    assert steepness(student, teacher) < 1e-14
    broken = Teacher(teacher.V, [1.0, 2.2])
    student = weighted_copy_average_point([[0, 1]], broken)
    assert steepness(student, broken) > 1e-3


# --- perturbed teachers --------------------------------------------------------


def perturbation(seed, k):
    E = np.random.default_rng(seed).standard_normal((k, k))
    E = (E + E.T) / 2
    np.fill_diagonal(E, 0)
    return E, np.hstack([E / 2, np.zeros((k, 1))])


@pytest.mark.parametrize("seed", [0, 1])
def test_response_against_newton(seed):
    E, dV = perturbation(seed, 5)
    db, teacher = np.array([0.5, -1, 0, 1, 2]), Teacher.orthonormal(5)
    start = copy_average_point((1, 1, 3), teacher)
    response = first_order_response(start, teacher, dV, db)
    ends, h = [], 1e-4
    for eps in (h, -h):
        moved = correlated_teacher(np.eye(5) + eps * E, 1 + eps * db)
        W, a, _ = newton_polish(start.W, start.a, moved)
        ends.append((pack(W, a), float(population_loss(W, a, moved))))
    (up, loss_up), (down, loss_down) = ends
    np.testing.assert_allclose(
        pack(response.dW, response.da), (up - down) / (2 * h), atol=2e-4
    )
    assert response.slope == pytest.approx(
        (loss_up - loss_down) / (2 * h), abs=1e-6
    )


def test_response_by_hand():
    """A copy follows its teacher neuron, in length, direction and volume."""
    teacher = Teacher.orthonormal(1, 2)
    copy = Student(teacher.V, teacher.b)
    response = first_order_response(copy, teacher, [[0.3, -0.7]], [2.0])
    np.testing.assert_allclose(response.dW, [[0.3, -0.7]], atol=1e-12)
    np.testing.assert_allclose(response.da, [2.0])
    assert abs(response.slope) < 1e-14


@pytest.mark.parametrize("size", [1, 2, 4])
def test_correlation_price(size):
    k = size + 2
    E, dV = perturbation(size, k)
    teacher = Teacher.orthonormal(k)
    point = copy_average_point((1, 1, size), teacher)
    slope = first_order_response(point, teacher, dV).slope
    inside = np.triu(E[2:, 2:], 1).sum()
    assert slope == pytest.approx(-correlation_price(size) * inside)


def test_correlation_price_is_the_slope_of_the_equicorrelated_loss():
    h, k = 1e-6, 4
    losses = []
    for beta in (h, -h):
        teacher = equicorrelated_teacher(k, beta)
        s = copy_average_point((k,), teacher)
        losses.append(float(population_loss(s.W, s.a, teacher)))
    slope = (losses[0] - losses[1]) / (2 * h)
    assert slope == pytest.approx(-6 * correlation_price(4), abs=1e-8)


# --- refusals ------------------------------------------------------------------


@pytest.mark.parametrize(
    ("b", "norms", "word"),
    [
        ([1.0, 0.0], 1.0, "zero"),
        ([1.0, np.nan], 1.0, "finite"),
        ([], 1.0, "non-empty"),
        ([[1.0]], 1.0, "vector"),
        ([1.0, 1.0], [1.0, 1.5], "norms"),
        ([1.0, 1.0], 0.0, "norms"),
    ],
)
def test_bad_averages(b, norms, word):
    with pytest.raises(ValueError, match=word):
        best_average(b, norms)


def test_other_refusals():
    teacher = Teacher.orthonormal(3)
    for n in (0, 3, 1.5, True):
        with pytest.raises(ValueError, match="n must"):
            rank_copies(teacher, n)
    with pytest.raises(ValueError, match="orthogonal"):
        rank_copies(equicorrelated_teacher(3, 0.1), 2)
    for groups in ([[0, 1]], [[0, 1], [1, 2]], [[0, 1], [2], []], [0, 1, 2]):
        with pytest.raises(ValueError, match="partition"):
            weighted_copy_average_point(groups, teacher)
    cancel = Teacher(np.eye(2), [1.0, -1.0])
    with pytest.raises(ValueError, match="sum"):
        weighted_copy_average_point([[0, 1]], cancel)
    nearly = Teacher(np.eye(2), [1.0, -0.9])
    with pytest.raises(ValueError, match="ball"):
        weighted_copy_average_point([[0, 1]], nearly)
    with pytest.raises(ValueError, match="dV"):
        first_order_response(Student(teacher.V, teacher.b), teacher, [[1.0]])
    split = Student([teacher.V[0], teacher.V[0]], [0.4, 0.6])
    with pytest.raises(ValueError, match="singular"):
        first_order_response(split, Teacher.orthonormal(1, 4))
    for size in (0, 1.5, True):
        with pytest.raises(ValueError, match="size"):
            correlation_price(size)
