"""Descent: closed forms against loops, plateaus, slow times, certificates."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import brentq, minimize

from helpers.allocation.descent import (
    RULES,
    bfgs,
    certified,
    descend,
    fast_only_residual,
    local_rates,
    quadratic_system,
    real_solutions,
    slow_time,
    steps_to,
    two_timescale_gd,
)
from helpers.allocation.homotopy import count_solutions
from helpers.allocation.quadrics import Quadrics, kostlan_quadrics


def problem(seed, c=4, P=7, fast=3):
    rng = np.random.default_rng(seed)
    M, t = rng.normal(size=(c, P)), rng.normal(size=c)
    return M, t, np.arange(P) < fast, 1 / np.linalg.norm(M, 2) ** 2


@given(st.integers(0, 10**6), st.integers(1, 5), st.integers(1, 6))
def test_closed_form_is_the_loop(seed, c, P):
    rng = np.random.default_rng(seed)
    M, t = rng.normal(size=(c, P)), rng.normal(size=c)
    lr = rng.random(P) * (rng.random(P) < 0.8) / np.linalg.norm(M, 2) ** 2
    w, seen = np.zeros(P), []
    for _ in range(31):
        seen.append(np.linalg.norm(t - M @ w) / np.linalg.norm(t))
        w = w + lr * (M.T @ (t - M @ w))
    got = two_timescale_gd(M, t, lr, np.arange(31))
    np.testing.assert_allclose(got, seen, atol=1e-10)
    assert (np.diff(got) <= 1e-12).all()


def test_two_equations_by_hand():
    # residual (1 - a)^s and (1 - b)^s of equal parts
    a, b = 0.5, 0.001
    s = np.array([0, 3, 1000])
    by_hand = np.sqrt((0.5 ** (2 * s) + 0.999 ** (2.0 * s)) / 2)
    got = two_timescale_gd(np.eye(2), [1.0, 1.0], [a, b], s)
    np.testing.assert_allclose(got, by_hand)
    # slow part alone after the fast one is gone: 0.999^s = 0.1 sqrt 2
    expected = np.ceil(np.log(0.1 * 2**0.5) / np.log(0.999))
    assert steps_to(np.eye(2), [1.0, 1.0], [a, b], 0.1) == expected


def test_steps_are_the_first():
    M, t, fast, rate = problem(0)
    lr = rate * np.where(fast, 1, 0.05)
    for level in (0.5, 0.1, 0.01):
        s = steps_to(M, t, lr, level)
        before, there = two_timescale_gd(M, t, lr, [s - 1, s])
        assert there <= level < before


def test_plateau_is_what_never_learns():
    M, t, fast, rate = problem(1)
    left = fast_only_residual(M, t, fast)
    still = two_timescale_gd(M, t, rate * fast, 10**9)
    np.testing.assert_allclose(left, still, atol=1e-6)
    w = np.linalg.lstsq(M[:, fast], t, rcond=None)[0]
    expected = np.linalg.norm(t - M[:, fast] @ w) / np.linalg.norm(t)
    np.testing.assert_allclose(left, expected)
    assert steps_to(M, t, rate * fast, 0.9 * left) == np.inf
    assert fast_only_residual(M, t, ~fast & fast) == 1.0


@pytest.mark.parametrize("seed", range(6))
def test_slow_time_is_the_limit(seed):
    M, t, fast, rate = problem(seed + 10)
    tau = slow_time(M, t, fast, rate, 0.01)
    errors = []
    for eps in (1e-4, 1e-5):
        lr = rate * np.where(fast, 1, eps)
        errors.append(abs(eps * steps_to(M, t, lr, 0.01) / tau - 1))
    # the next order is proportional to eps, here at most a few hundred eps
    assert errors[1] < 0.01 and errors[1] < 0.3 * errors[0] + 1e-4


def test_slow_time_with_one_slow_direction():
    M, t, fast, rate = problem(30)  # three fast columns of four dimensions
    left = fast_only_residual(M, t, fast)
    N = np.linalg.svd(M[:, fast])[0][:, 3]
    E = rate * ((M[:, ~fast].T @ N) ** 2).sum()
    expected = np.log(left / 0.01) / E
    np.testing.assert_allclose(slow_time(M, t, fast, rate, 0.01), expected)
    assert slow_time(M, t, fast, rate, 0.9999) == 0.0
    assert slow_time(M[:, fast], t, np.array([1, 1, 0], bool), rate, 0.01) == (
        np.inf
    )


def test_what_no_weight_reaches_is_reached_never():
    """A row repeated up to rounding, with another target."""
    rng = np.random.default_rng(0)
    for size in (0.0, 1e-15, 1e-14):
        M = rng.normal(size=(3, 9))
        M = np.vstack([M, M[:1] * (1 + size * rng.normal(size=9))])
        fast = np.arange(9) < 2
        assert slow_time(M, rng.normal(size=4), fast, 0.01, 0.01) == np.inf


def test_slow_time_with_two_slow_directions_solves_its_equation():
    M, t, fast, rate = problem(31, fast=2)
    N = np.linalg.svd(M[:, fast])[0][:, 2:]
    A = N.T @ M[:, ~fast]
    e, V = np.linalg.eigh(rate * A @ A.T)
    y = V.T @ N.T @ t / np.linalg.norm(t)
    root = brentq(
        lambda s: np.linalg.norm(np.exp(-s * e) * y) - 0.05, 0, 1e4 / e[0]
    )
    np.testing.assert_allclose(slow_time(M, t, fast, rate, 0.05), root)


def test_early_descent_stays_with_the_fast_allocation():
    # |e_s(eps) - e_s(0)| <= s eps |G_slow| |t|
    M, t, fast, rate = problem(40)
    slow = rate * np.linalg.norm(M[:, ~fast], 2) ** 2
    steps = np.array([1, 10, 100, 1000])
    for eps in (1e-1, 1e-3):
        with_slow = two_timescale_gd(
            M, t, rate * np.where(fast, 1, eps), steps
        )
        without = two_timescale_gd(M, t, rate * fast, steps)
        assert (
            np.abs(with_slow - without) <= steps * eps * slow + 1e-12
        ).all()


def system(seed, K=5, p=3):
    rng = np.random.default_rng(seed)
    Q = rng.normal(size=(K, p, p, p)) / 4
    q = Quadrics(
        (Q + np.swapaxes(Q, -1, -2)) / 2,
        rng.normal(size=(K, p, p)),
        np.zeros((K, p)),
    )
    w = rng.normal(size=(K, p))
    return q._replace(constant=-q(w)), w


def test_quadratic_system_is_the_quadrics():
    q, w = system(0)
    r, J = quadratic_system(q)(w[[3, 1]], np.array([3, 1]))
    assert np.abs(r).max() < 1e-12
    v = np.random.default_rng(1).normal(size=w.shape)
    some, _ = quadratic_system(q)(v, np.arange(5))
    np.testing.assert_allclose(some, q(v))
    e = 1e-5
    for j in range(3):
        step = e * np.eye(3)[j]
        change = (q(w + step) - q(w - step)) / (2 * e)
        np.testing.assert_allclose(J[:, :, j], change[[3, 1]], atol=1e-9)


@pytest.mark.parametrize("rule", RULES)
def test_every_rule_goes_down_a_linear_system(rule):
    rng = np.random.default_rng(2)
    A = np.eye(3) + 0.2 * rng.normal(size=(4, 3, 3))
    want = rng.normal(size=(4, 3))
    t = np.einsum("kcp,kp->kc", A, want)

    def f(w, which):
        return np.einsum("kcp,kp->kc", A[which], w) - t[which], A[which]

    size = np.linalg.norm(t, axis=1)
    rate = {"adam": 0.03, "stochastic": 0.1}.get(rule, 0.2)
    w, residual = descend(f, np.zeros((4, 3)), size, rule, rate, 20000, 3, 3)
    assert (residual < 1e-8).all()
    np.testing.assert_allclose(w, want, atol=1e-6)


def test_plain_descent_is_its_closed_form():
    M, t, _, rate = problem(50)
    size = np.linalg.norm(t)

    def f(w, which):
        return (w @ M.T - t), np.broadcast_to(M, (len(w), *M.shape))

    for steps in (1, 7, 60):
        _, residual = descend(
            f, np.zeros((1, 7)), [size], "gradient", rate * size**2, steps
        )
        exact = two_timescale_gd(M, t, np.full(7, rate), steps)
        np.testing.assert_allclose(residual, exact)


@pytest.mark.parametrize("rule", ["momentum", "adam"])
def test_moments_by_hand_on_one_weight(rule):
    # r = w - 1, size 1: two steps from 0
    def f(w, which):
        return w - 1, np.ones((len(w), 1, 1))

    w, _ = descend(f, [[0.0]], [1.0], rule, 0.1, 2)
    if rule == "momentum":
        expected = 0.1 + 0.1 * (0.9 * 1 + 0.9)
    else:
        g = np.array([1.0, 0.9])  # first step has size 0.1
        m = (0.9 * 0.1 * g[0] + 0.1 * g[1]) / (1 - 0.9**2)
        v = (0.999 * 0.001 * g[0] ** 2 + 0.001 * g[1] ** 2) / (1 - 0.999**2)
        expected = 0.1 + 0.1 * m / v**0.5
    np.testing.assert_allclose(w.item(), expected, rtol=1e-6)


def test_stochastic_steps_have_the_right_mean():
    q, _ = system(3, K=1, p=4)
    f = quadratic_system(q)
    many = 4000
    w0 = np.ones((many, 4))
    own = np.zeros(many, dtype=int)

    def each(w, which):
        return f(w, own[which])

    moved, _ = descend(each, w0, np.ones(many), "stochastic", 0.01, 1, 4, 2)
    plain, _ = descend(each, w0[:1], np.ones(1), "gradient", 0.01, 1)
    spread = moved.std(axis=0) / many**0.5
    assert (np.abs(moved.mean(axis=0) - plain[0]) < 5 * spread + 1e-12).all()
    # two examples, so two different steps
    assert len(np.unique(moved.round(12), axis=0)) == 2


def test_divergence_is_infinite_and_harmless():
    q, w = system(4)
    size = np.linalg.norm(q.constant, axis=1)
    start = w + 0.01
    _, residual = descend(
        quadratic_system(q), start, size, "gradient", 1e4, 300
    )
    assert np.isinf(residual).all()
    _, searched = descend(
        quadratic_system(q), start, size, "searched", 1e4, 3000
    )
    assert np.isfinite(searched).all()


def test_bfgs_finds_what_scipy_finds():
    q, w = system(5)
    f = quadratic_system(q)
    size = np.linalg.norm(q.constant, axis=1)
    ends, residual = bfgs(f, w + 0.05, size)
    assert (residual < 1e-8).sum() >= 4
    for i in np.flatnonzero(residual < 1e-8):
        one = Quadrics(*(a[i : i + 1] for a in q))
        other = minimize(
            lambda v, one=one: 1e6 * (one(v[None]) ** 2).sum(),
            w[i] + 0.05,
            method="Nelder-Mead",
            options={"xatol": 1e-9, "fatol": 1e-12, "maxiter": 4000},
        )
        np.testing.assert_allclose(ends[i], other.x, atol=1e-4)


def test_real_solutions_agree_with_the_count_and_are_matches():
    forms = kostlan_quadrics(30, 3, 6)
    q = Quadrics(
        forms[:, :, 1:, 1:], 2 * forms[:, :, 0, 1:], forms[:, :, 0, 0]
    )
    found = real_solutions(q, 7)
    counted = count_solutions(forms, 8).real
    assert np.mean([len(w) for w in found] == counted) >= 0.9
    for i, w in enumerate(found):
        one = Quadrics(*(np.repeat(a[i : i + 1], len(w), 0) for a in q))
        assert np.abs(one(w)).max(initial=0) < 1e-8
        assert certified(one, w).all() if len(w) else True


def test_a_planted_solution_is_found():
    q, w = system(9, K=8)
    for found, planted in zip(real_solutions(q, 10), w, strict=True):
        assert np.abs(found - planted).max(axis=1).min() < 1e-7


def test_local_rates_are_those_of_the_singular_values():
    q, w = system(11, K=6)
    seen, predicted = local_rates(q, w)
    s = np.linalg.svd(quadratic_system(q)(w, np.arange(6))[1])[1]
    by_hand = np.log(1 - (s[:, -1] / s[:, 0]) ** 2)
    np.testing.assert_allclose(predicted[:, -1], by_hand)
    # what is left is the curvature at a displacement of 1e-7 or so
    np.testing.assert_allclose(seen, by_hand, rtol=1e-4)
    assert (predicted[:, 0] == -np.inf).all()
    # off a match the residual does not go to zero at that rate
    away, _ = local_rates(q, w + 0.3)
    assert (np.abs(away / by_hand - 1) > 0.05).any()
    with pytest.raises(ValueError, match="square"):
        local_rates(q, w[:, :2])


def test_certificates_at_the_edge():
    # x^2 = a from x = 1: beta L eta = (1/2) 2 |1 - a| / 2 <= 1/2, |1-a| <= 1
    a = np.array([0.001, 1.999, 2.001, -0.001])
    q = Quadrics(np.ones((4, 1, 1, 1)), np.zeros((4, 1, 1)), -a[:, None])
    got = certified(q, np.ones((4, 1)))
    assert got.tolist() == [True, True, False, False]
    flat = Quadrics(*(part[:1] for part in q))
    assert certified(flat, [[0.0]]).tolist() == [False]


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda M, t, f: two_timescale_gd(M, t, -f, 1), "negative"),
        (lambda M, t, f: two_timescale_gd(M, t, 10.0 * f, 1), "too large"),
        (lambda M, t, f: two_timescale_gd(M, 0 * t, f, 1), "not be zero"),
        (lambda M, t, f: two_timescale_gd(M, t[:2], f, 1), "M must be"),
        (lambda M, t, f: two_timescale_gd(M * np.nan, t, f, 1), "finite"),
        (lambda M, t, f: two_timescale_gd(M, t, 0.01 * f, -1), "steps"),
        (lambda M, t, f: steps_to(M, t, 0.01 * f, 1.0), "level"),
        (lambda M, t, f: slow_time(M, t, f > 0, 0.0, 0.1), "rate"),
        (lambda M, t, f: slow_time(M, t, f, 0.1, 0.1), "truth values"),
        (lambda M, t, f: fast_only_residual(M, t, f[:2] > 0), "truth values"),
    ],
)  # fmt: skip
def test_bad_systems_are_named(call, words):
    M, t, fast, _ = problem(60)
    with pytest.raises(ValueError, match=words):
        call(M, t, fast.astype(float))


def test_bad_descent_is_named():
    q, w = system(61)
    f = quadratic_system(q)
    with pytest.raises(ValueError, match="rule must be"):
        descend(f, w, np.ones(5), "newton", 0.1, 3)
    with pytest.raises(ValueError, match="rate must be"):
        descend(f, w, np.ones(5), "adam", np.nan, 3)
    with pytest.raises(ValueError, match="w0 must be"):
        descend(f, w, np.zeros(5), "adam", 0.1, 3)
    with pytest.raises(ValueError, match="steps must be"):
        descend(f, w, np.ones(5), "adam", 0.1, 0)
    with pytest.raises(ValueError, match="w0 must be"):
        bfgs(f, w, np.zeros(5))
    with pytest.raises(ValueError, match="square"):
        certified(q, w[:, :2])
    bad = q._replace(Q=q.Q + np.triu(np.ones((3, 3)), 1))
    with pytest.raises(ValueError, match="symmetric"):
        quadratic_system(bad)
