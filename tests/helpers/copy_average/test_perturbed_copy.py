"""Perturbed copies: against the full problem, by symmetry, and at the ends."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import minimize, minimize_scalar

from helpers.copy_average.flow import gradient_flow
from helpers.copy_average.networks import Student, Teacher, pack
from helpers.copy_average.one_neuron import (
    one_neuron_optimum,
    optimal_loss_erf,
)
from helpers.copy_average.perturbed_copy import (
    copy_energy,
    perturbed_copy_family,
    perturbed_copy_thresholds,
    threshold_constant,
)
from helpers.copy_average.perturbed_family import (
    PerturbedCopy,
    arcsine,
    family_equations,
    family_loss,
)
from helpers.copy_average.perturbed_spectrum import (
    perturbed_copy_spectrum,
    symmetric_block,
    unstable_block,
)
from helpers.copy_average.population import (
    population_hessian,
    population_loss,
    population_loss_grad,
)

coefficient = st.floats(-2, 2, allow_nan=False)


@st.composite
def members(draw):
    """Any student of the family, not only critical ones."""
    k = draw(st.integers(1, 7))
    n = draw(st.integers(1, k))
    a, alpha, beta, gamma = (draw(coefficient) for _ in range(4))
    beta, gamma = beta * (n > 1), gamma * (n < k)
    return PerturbedCopy(k, float(n), a, alpha, beta, gamma, 0.0, 0.0)


@given(members())
@settings(deadline=None, max_examples=60)
def test_loss_is_the_population_loss(p):
    student = p.student()
    full = population_loss(student.W, student.a, Teacher.orthonormal(p.k))
    reduced = family_loss(p.a, p.alpha, p.beta, p.gamma, p.k, p.n)
    assert reduced == pytest.approx(full, abs=1e-11)


@given(members())
@settings(deadline=None, max_examples=60)
def test_equations_are_the_full_gradient(p):
    # the gradient of a member of the family is a member of the family, and
    # its coefficients are the equations: critical here is critical everywhere
    s, (a, *lifted) = p.student(), p.lifted
    F, *_ = family_equations(a, *lifted, p.k, p.n)
    _, gW, ga = population_loss_grad(s.W, s.a, Teacher.orthonormal(p.k))
    n, S = int(p.n), 1 - 1 / (1 + p.norm**2)
    bracket = np.full(p.k + 1, F[3])
    bracket[:n], bracket[0], bracket[-1] = F[2], F[1], 0
    y = np.append(np.full(n, lifted[1]), np.full(p.k - n, lifted[2]))
    y[0] = lifted[0]
    y = np.append(y, 0.0)
    force = 4 * a / math.pi * math.sqrt(1 - S) * (bracket - y * (y @ bracket))
    np.testing.assert_allclose(gW[0], force, atol=1e-10)
    np.testing.assert_allclose(ga, 4 / math.pi * F[0], atol=1e-10)


def test_coefficients_without_a_place_weigh_nothing():
    assert family_loss(1, 1, 7.0, 7.0, 1, 1) == pytest.approx(0, abs=1e-12)
    plain = family_loss([1, 2], 0.5, 0.0, 0.1, 4, [1, 2])
    assert family_loss(1, 0.5, 7.0, 0.1, 4, 1) == pytest.approx(plain[0])
    assert plain.shape == (2,)


def in_lifted(x, k, n):
    a, *y = x
    S = y[0] ** 2 + (n - 1) * y[1] ** 2 + (k - n) * y[2] ** 2
    return float(family_loss(a, *(np.array(y) / math.sqrt(1 - S)), k, n))


def test_equations_by_differences():
    x, k, n, h = np.array([1.3, 0.5, -0.02, 0.06]), 9, 5.3, 1e-6
    F, jacobian, in_n = family_equations(*x, k, n)
    scale = 4 * n / math.pi * np.array([1, x[0], x[0] * (n - 1), x[0] * 3.7])
    for i, step in enumerate(h * np.eye(4)):
        slope = in_lifted(x + step, k, n) - in_lifted(x - step, k, n)
        assert slope / (2 * h) == pytest.approx(scale[i] * F[i], abs=1e-8)
        up = family_equations(*(x + step), k, n)[0]
        down = family_equations(*(x - step), k, n)[0]
        np.testing.assert_allclose((up - down) / (2 * h), jacobian[:, i], 1e-6)
    up = family_equations(*x, k, n + h)[0]
    down = family_equations(*x, k, n - h)[0]
    np.testing.assert_allclose((up - down) / (2 * h), in_n, atol=1e-8)


@pytest.mark.parametrize("k", [1, 2, 3, 7, 20, 21, 60])
def test_ends_are_copies_and_the_average(k):
    copies, average = (perturbed_copy_family(k, n) for n in (k, 1))
    one = one_neuron_optimum(k)
    assert copies.loss == pytest.approx(0, abs=1e-12)
    np.testing.assert_allclose([copies.a, copies.alpha], 1, atol=1e-12)
    assert average.loss == pytest.approx(one.loss, abs=1e-12)
    assert average.a == pytest.approx(k, rel=1e-9)
    assert average.norm == pytest.approx(one.r, rel=1e-9)
    assert average.gamma == pytest.approx(one.w_coefficient, rel=1e-9)


TABLE = """
12  6 2.2799 .5883 -.04448 .06031 .6147 .9571 .113309
12  8 1.5560 .7466 -.02473 .07083 .7627 .9788 .076087
12 10 1.2003 .8839 -.01039 .07808 .8913 .9917 .038014
20  9 2.5261 .5773 -.03128 .03607 .5962 .9684 .193213
20 12 1.6976 .7222 -.01855 .04285 .7349 .9828 .140981
20 15 1.3066 .8444 -.00947 .04708 .8517 .9915 .087913
50 25 1.8092 .7114 -.00955 .01921 .7194 .9889 .406576
"""


@pytest.mark.parametrize("row", TABLE.split("\n")[1:-1])
def test_table(row):
    k, n, *numbers = map(float, row.split())
    p = perturbed_copy_family(int(k), n)
    found = [p.a, p.alpha, p.beta, p.gamma, p.norm, p.cosine, p.loss]
    np.testing.assert_allclose(found, numbers, atol=6e-5)
    assert p.loss == pytest.approx(numbers[-1], abs=6e-7)


@pytest.mark.parametrize(
    "k, n", [(2, 1), (3, 2), (6, 2), (12, 6), (12, 10), (30, 2), (50, 25)]
)
def test_point_is_critical_for_the_full_loss(k, n):
    p = perturbed_copy_family(k, n)
    s = p.student()
    loss, *grads = population_loss_grad(s.W, s.a, Teacher.orthonormal(k))
    assert p.residual < 1e-13
    assert np.abs(pack(*grads)).max() < 1e-12
    assert float(loss) == pytest.approx(p.loss, abs=1e-12)


@pytest.mark.parametrize("k, n", [(6, 4), (12, 8), (9, 6)])
def test_minimising_the_family_finds_it(k, n):
    p = perturbed_copy_family(k, n)
    start = np.array([1.2, 0.8, 0.0, 0.1])
    found = minimize(lambda x: float(family_loss(*x, k, n)), start, tol=1e-12)
    np.testing.assert_allclose(
        found.x, [p.a, p.alpha, p.beta, p.gamma], atol=1e-4
    )
    assert found.fun == pytest.approx(p.loss, abs=1e-10)


@pytest.mark.parametrize(
    "k, n, d", [(3, 2, 3), (4, 3, 6), (6, 2, 7), (7, 5, 8), (12, 6, 13)]
)
def test_spectrum_is_that_of_the_full_hessian(k, n, d):
    p = perturbed_copy_family(k, n)
    s = p.student(d)
    full = np.linalg.eigvalsh(
        population_hessian(s.W, s.a, Teacher.orthonormal(k, d))
    )
    rows = perturbed_copy_spectrum(p, d)
    values = np.repeat([x for _, x, _ in rows], [m for *_, m in rows])
    assert len(values) == n * (d + 1)
    np.testing.assert_allclose(np.sort(values), full, atol=1e-11)


def test_lowest_eigenvalues_by_hand_of_the_reference():
    for k, n, lowest in ((12, 8, 1.0e-3), (12, 10, 2.7e-3), (20, 12, 4.9e-4)):
        block = unstable_block(perturbed_copy_family(k, n))
        found = np.linalg.eigvalsh(block)[0]
        assert found == pytest.approx(lowest, abs=6e-5)


def test_blocks_are_smooth_in_real_widths():
    widths = np.linspace(6.9, 7.1, 5)
    for block in (symmetric_block, unstable_block):
        values = [
            np.linalg.eigvalsh(block(perturbed_copy_family(12, n)))
            for n in widths
        ]
        assert np.abs(np.diff(values, 3, axis=0)).max() < 1e-2


def test_negative_eigenvalues_are_all_or_none_of_one_kind():
    for k in (4, 5, 8, 12, 20, 40):
        n_c = perturbed_copy_thresholds(k).n_c
        for n in range(2, k):
            rows = perturbed_copy_spectrum(perturbed_copy_family(k, n))
            negative = [(name, m) for name, x, m in rows if x < 0]
            assert negative == ([("unlike", n - 1)] if n < n_c else [])


REFERENCE = {
    8: (0.602, 0.775),
    10: (0.559, 0.765),
    12: (0.527, 0.759),
    16: (0.486, 0.753),
    20: (0.462, 0.750),
    30: (0.435, 0.748),
    50: (0.429, 0.751),
    75: (0.424, 0.753),
    100: (0.413, 0.756),
    150: (0.389, 0.758),
    200: (0.368, 0.760),
    300: (0.332, 0.762),
}


@pytest.mark.parametrize("k", REFERENCE)
def test_thresholds(k):
    found = np.array(perturbed_copy_thresholds(k)) / k
    np.testing.assert_allclose(found, REFERENCE[k], atol=6e-4)


def test_thresholds_at_twelve():
    n_c, n_cross = perturbed_copy_thresholds(12)
    assert n_c == pytest.approx(6.329, abs=5e-4)
    assert n_cross == pytest.approx(9.105, abs=5e-4)


def test_small_teachers_prefer_the_average():
    for k in (3, 4, 5, 6, 7, 8):
        wins = [
            perturbed_copy_family(k, n).loss < optimal_loss_erf(k - n + 1)
            for n in range(2, k)
        ]
        assert any(wins) == (k >= 6)
        # the crossing is there for real n, but leaves no whole n above it
        assert any(wins) == (perturbed_copy_thresholds(k).n_cross < k - 1)


def test_limits_for_wide_teachers():
    # leading orders tie; the next one gives n_cross / k a limit, n_c / k none
    mismatch = 2 / math.sqrt(3) - 1
    limit = mismatch / (mismatch + math.pi / 3 - 1)
    ks = np.array([1000, 4000, 16_000])
    found = np.array([perturbed_copy_thresholds(int(k)) for k in ks])
    error = limit - found[:, 1] / ks
    np.testing.assert_allclose(error[:-1] / error[1:], 4, rtol=0.05)
    assert error[-1] < 2e-4
    assert np.all(np.diff(found[:, 0] / ks) < -0.05)


def test_energy_of_a_copy_by_minimisation():
    def energy(A, a):
        own, cross = A * A, A / math.sqrt(2)
        first = a * a * (math.asin(own) - own)
        return first - 2 * a * (math.asin(cross) - cross)

    for A in (0.45, 0.6, 0.68):
        found, h = copy_energy(A), 1e-4
        a = float(found.a)
        around = [
            minimize_scalar(
                energy,
                bounds=(0.3, 0.71),
                args=(a + x,),
                options={"xatol": 1e-10},
            )
            for x in (-h, 0, h)
        ]
        low, middle, high = (x.fun for x in around)
        assert around[1].x == pytest.approx(A, abs=1e-5)
        assert middle == pytest.approx(float(found.value), abs=1e-14)
        assert (high - low) / (2 * h) == pytest.approx(
            float(found.slope), rel=1e-6
        )
        assert (high - 2 * middle + low) / h**2 == pytest.approx(
            float(found.curvature), abs=2e-6
        )


def test_threshold_grows_like_the_power_three_fifths():
    ks = 10.0 ** np.arange(8, 12)
    n_c = np.array([perturbed_copy_thresholds(int(k)).n_c for k in ks])
    ratio = n_c / ks**0.6
    excess = ratio - threshold_constant()
    assert np.all(excess > 0)
    # corrections fall like k ** (-1/5)
    decay = excess[:-1] / excess[1:]
    assert np.all(np.diff(np.abs(decay - 10**0.2)) < 0)
    assert decay[-1] == pytest.approx(10**0.2, rel=0.03)
    # and at the threshold the voice is that of the inflection
    voice = perturbed_copy_family(10**11, n_c[-1]).a
    assert voice == pytest.approx(1.6251, abs=0.01)


def test_thresholds_of_a_million_neurons():
    n_c, n_cross = perturbed_copy_thresholds(10**6)
    assert n_cross / 10**6 == pytest.approx(0.76623, abs=1e-5)
    assert 9_000 < n_c < 10_000


def test_large_gap_of_the_excess_loss():
    # next-order expansion at fixed n / k: (1 - rho) / (pi rho) mismatch
    k, rho = 40_000, 0.6
    p = perturbed_copy_family(k, rho * k)
    linear = k * (1 - rho) * (1 / 3 - 1 / math.pi)
    mismatch = 2 / math.sqrt(3) - 1
    expected = (1 - rho) / (math.pi * rho) * mismatch
    assert p.loss - linear == pytest.approx(expected, rel=2e-3)


@pytest.mark.parametrize("k", [6, 8, 12])
def test_flow_from_noisy_copies_switches_at_the_threshold(k):
    teacher, n_c = Teacher.orthonormal(k), perturbed_copy_thresholds(k).n_c
    for n in (math.floor(n_c), math.ceil(n_c)):
        noise = np.random.default_rng(n).normal(scale=1e-3, size=(n, k + 2))
        W, a = teacher.V[:n] + noise[:, :-1], 1 + noise[:, -1]
        loss = gradient_flow(Student(W, a), teacher).loss
        lean = perturbed_copy_family(k, n).loss
        best = float(optimal_loss_erf(k - n + 1))
        assert loss == pytest.approx(lean if n > n_c else best, abs=1e-9)
        assert abs(lean - best) > 1e-4


def test_only_erf_like_flips_are_left_out():
    p = perturbed_copy_family(12, 7)
    assert p.a > 0 and p.alpha > 0 and p.beta < 0 < p.gamma


@pytest.mark.parametrize("k, n", [(0, 1), (2.5, 1), (True, 1), (5, 6)])
def test_bad_widths(k, n):
    with pytest.raises(ValueError, match="must be a"):
        perturbed_copy_family(k, n)


@pytest.mark.parametrize("n", [0.5, math.nan, math.inf, True])
def test_bad_student_widths(n):
    with pytest.raises(ValueError, match="n must be a real number"):
        perturbed_copy_family(5, n)


def test_other_bad_input():
    p = perturbed_copy_family(6, 3.5)
    with pytest.raises(ValueError, match="n must be whole"):
        p.student()
    with pytest.raises(ValueError, match="d must be at least"):
        perturbed_copy_family(6, 3).student(5)
    with pytest.raises(ValueError, match="n must be whole"):
        perturbed_copy_spectrum(p)
    with pytest.raises(ValueError, match="unit ball"):
        family_equations(1.0, 2.0, 0.0, 0.0, 3, 2)
    with pytest.raises(ValueError, match="2 < n < k"):
        unstable_block(perturbed_copy_family(6, 2))
    with pytest.raises(ValueError, match="1 < n < k"):
        symmetric_block(perturbed_copy_family(6, 6))
    with pytest.raises(ValueError, match="finite"):
        family_loss(math.nan, 1.0, 0.0, 0.0, 3, 2)
    with pytest.raises(ValueError, match="3 or more"):
        perturbed_copy_thresholds(2)
    with pytest.raises(ValueError, match="x must be"):
        arcsine(1.0)
    with pytest.raises(ValueError, match="A must be"):
        copy_energy([0.5, 0.8])
    with pytest.raises(ArithmeticError, match="turns back"):
        perturbed_copy_family(30, 2.05)
