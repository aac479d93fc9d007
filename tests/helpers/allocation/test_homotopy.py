"""All solutions of quadratic systems."""

import numpy as np
import pytest

from helpers.allocation import homotopy
from helpers.allocation.allocations import row_allocation, stack_allocations
from helpers.allocation.homotopy import (
    count_solutions,
    total_degree_homotopy,
)
from helpers.allocation.matching import recurrent_problems
from helpers.allocation.quadrics import kostlan_quadrics, lrnn_quadrics


def system(*polynomials):
    return np.array([polynomials], dtype=float)


def test_two_circles_and_their_points_at_infinity():
    """x^2 + y^2 = 1 and (x - c)^2 + y^2 = 1 meet in two finite points,
    real for c < 2 and complex beyond."""
    for c, real in ((1.0, 2), (3.0, 0)):
        one = np.diag([-1.0, 1, 1])
        two = np.array([[c * c - 1, -c, 0], [-c, 1, 0], [0, 0, 1]])
        counts = count_solutions(system(one, two), 0)
        assert (counts.complex[0], counts.real[0]) == (2, real)


def test_products_of_lines():
    """(x - 1)(x + 2) = 0, (y - 3)(y - 4) = 0: four real points."""
    one = np.array([[-2.0, 0.5, 0], [0.5, 1, 0], [0, 0, 0]])
    two = np.array([[12.0, 0, -3.5], [0, 0, 0], [-3.5, 0, 1]])
    z, failed = total_degree_homotopy(system(one, two), 1)
    w = (z[0, :, 1:] / z[0, :, :1]).real
    found = {tuple(np.round(v, 6)) for v in w}
    assert found == {(1, 3), (1, 4), (-2, 3), (-2, 4)} and not failed.any()


def test_ends_solve_their_systems():
    Q = kostlan_quadrics(30, 3, 2)
    z, failed = total_degree_homotopy(Q, 3)
    value = np.einsum("kpi,knij,kpj->kpn", z, Q, z)
    assert np.abs(value[~failed]).max() < 1e-9 and failed.mean() < 0.01


@pytest.mark.parametrize(("N", "K"), [(1, 600), (2, 400), (3, 200)])
def test_kostlan_counts(N, K):
    """Two to the N complex solutions, real ones root two to the N in the
    mean, within four standard errors, and of the parity of 2^N."""
    counts = count_solutions(kostlan_quadrics(K, N, 5 + N), 0)
    assert (counts.complex == 2**N).mean() > 0.99
    error = counts.real.std() / K**0.5
    assert abs(counts.real.mean() - 2 ** (N / 2)) < 4 * error
    whole = counts.complex == 2**N
    assert (counts.real[whole] % 2 == 0).all()


def test_conics_against_the_resultant():
    """Numbers of real intersections by eliminating y by hand."""
    rng = np.random.default_rng(8)
    Q = kostlan_quadrics(100, 2, rng)
    counts = count_solutions(Q, 0)
    for forms, real in zip(Q, counts.real, strict=True):
        (a, b) = forms
        rows = []
        for f in (a, b):  # coefficients in y, as polynomials in x
            rows.append(
                [
                    np.array([f[1, 1], 2 * f[0, 1], f[0, 0]]),
                    np.array([2 * f[1, 2], 2 * f[0, 2]]),
                    np.array([f[2, 2]]),
                ]
            )
        (c0, c1, c2), (d0, d1, d2) = rows
        mul, sub = np.polymul, np.polysub
        first = sub(mul(c2, d0), mul(d2, c0))
        left, right = (
            sub(mul(c2, d1), mul(d2, c1)),
            sub(mul(c1, d0), mul(d1, c0)),
        )
        resultant = sub(mul(first, first), mul(left, right))
        roots = np.roots(resultant)
        x = roots[np.abs(roots.imag) < 1e-7 * (1 + np.abs(roots))]
        assert len(x) == real


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: total_degree_homotopy(np.ones((1, 2, 2, 2)), 0), "Q must"),
        (lambda: count_solutions(np.ones((1, 11, 12, 12)), 0), "at most 10"),
        (
            lambda: count_solutions(np.triu(np.ones((1, 1, 2, 2))), 0),
            "symmetric",
        ),
        (
            lambda: count_solutions(np.full((1, 1, 2, 2), np.nan), 0),
            "Q must be finite",
        ),
        (
            lambda: total_degree_homotopy(np.ones((1, 1, 2, 2)), 0, 2.0),
            "first must lie",
        ),
    ],
)
def test_bad_input(call, words):
    with pytest.raises(ValueError, match=words):
        call()


def test_a_second_try_finds_large_solutions(monkeypatch):
    """One row at T = 3 and d = 2 always matches, often far away."""
    problems = recurrent_problems(120, 12, 2, 2, 3, 2, 0)
    rows = stack_allocations(
        row_allocation((12, 12), 1, 4, s) for s in range(120)
    )
    forms = lrnn_quadrics(*problems, rows).homogeneous()
    twice = count_solutions(forms, 0)
    monkeypatch.setattr(homotopy, "UNITS", ())
    once = count_solutions(forms, 0)
    assert (twice.real >= once.real).all()
    assert twice.complex.max() == 1, "no copies of the same solution"
    found = [(counts.real == 1).sum() for counts in (once, twice)]
    assert found[0] + 1 < found[1] >= 117, found
