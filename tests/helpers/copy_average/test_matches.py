"""Matches: their equations, ranks, and what a match on many examples is."""

from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import approx_fprime, least_squares
from scipy.special import erfinv

from helpers.copy_average.empirical import (
    empirical_loss_grad,
    network,
    network_jacobian,
)
from helpers.copy_average.matches import (
    Ends,
    always_matched,
    cancelling_pairs,
    ends_of_starts,
    match_equations,
)
from helpers.copy_average.networks import Teacher, pack, unpack
from helpers.copy_average.population import population_loss
from helpers.core.linalg import numerical_rank
from helpers.core.tolerances import MATCHED_RELATIVE, ROUNDING

SEEDS = st.integers(0, 2**32 - 1)


def sample(rng, m, teacher):
    X = rng.normal(size=(m, teacher.d))
    return X, network(teacher.V, teacher.b, X)


def polish(X, y, n, begin):
    """SciPy's solver from one start: weights and relative residual."""
    equations = match_equations(X[None], y[None], n)
    zero = np.array([0])
    run = least_squares(
        lambda w: equations(w[None], zero)[0][0],
        begin,
        lambda w: equations(w[None], zero)[1][0],
        xtol=1e-15,
        ftol=1e-15,
        gtol=1e-15,
        x_scale="jac",
        max_nfev=400,
    )
    return run.x, np.linalg.norm(run.fun) / np.linalg.norm(y)


def fit(X, y, n, rng, tries):
    """The best of some random starts."""
    size = n * (X.shape[1] + 1)
    runs = [polish(X, y, n, rng.normal(size=size)) for _ in range(tries)]
    return min(runs, key=lambda run: run[1])


def test_one_neuron_by_hand():
    """3 erf(1) at w = 1/2, x = 2 sqrt 2, and its two derivatives."""
    equations = match_equations([[[np.sqrt(8)]]], [[1.0]], 1)
    r, J = equations(np.array([[0.5, 3.0]]), np.array([0]))
    value = 0.8427007929497149  # erf(1), from tables
    slope = 3 * np.sqrt(2 / np.pi) * np.exp(-1) * np.sqrt(8)
    np.testing.assert_allclose(r, [[3 * value - 1]], atol=ROUNDING)
    np.testing.assert_allclose(J, [[[slope, value]]], atol=ROUNDING)


@given(SEEDS, st.integers(1, 4), st.integers(1, 4), st.integers(1, 7))
@settings(max_examples=30, deadline=None)
def test_jacobian_is_the_derivative(seed, n, d, m):
    rng = np.random.default_rng(seed)
    theta, X, y = (
        rng.normal(size=n * (d + 1)),
        *(rng.normal(size=s) for s in ((1, m, d), (1, m))),
    )
    equations = match_equations(X, y, n, activation="tanh")
    r, J = equations(theta[None], np.array([0]))
    for s in range(m):

        def one(t, s=s):
            return equations(t[None], np.array([0]))[0][0, s]

        slope = approx_fprime(theta, one, 1e-7)
        np.testing.assert_allclose(J[0, s], slope, atol=1e-5)
    _, *grads = empirical_loss_grad(*unpack(theta, n), X[0], y[0], "tanh")
    np.testing.assert_allclose(pack(*grads), 2 / m * r[0] @ J[0], atol=1e-11)


@given(SEEDS, st.integers(1, 4), st.integers(1, 4), st.integers(1, 3))
@settings(max_examples=20, deadline=None)
def test_learned_entries_are_columns(seed, n, d, tries):
    """Samples, starts and allocations are taken apart in the right order."""
    rng = np.random.default_rng(seed)
    size = n * (d + 1)
    X, y = rng.normal(size=(3, 5, d)), rng.normal(size=(3, 5))
    frozen = rng.normal(size=(3, size))
    learned = rng.permutation(size)[: rng.integers(1, size + 1)]
    w = rng.normal(size=(3 * tries, learned.size))
    which = rng.permutation(3 * tries)
    r, J = match_equations(X, y, n, tries, learned=learned, frozen=frozen)(
        w[which], which
    )
    for row, i in enumerate(which):
        theta = frozen[i // tries].copy()
        theta[learned] = w[i]
        W, a = unpack(theta, n)
        Xi = X[i // tries]
        np.testing.assert_allclose(
            r[row], network(W, a, Xi) - y[i // tries], atol=ROUNDING
        )
        np.testing.assert_allclose(
            J[row], network_jacobian(W, a, Xi)[:, learned], atol=ROUNDING
        )


def test_frozen_weights_are_not_written_to():
    frozen = np.ones((1, 2))
    equations = match_equations(
        [[[1.0]]], [[1.0]], 1, learned=[1], frozen=frozen
    )
    first = equations(np.array([[5.0]]), np.array([0]))[0]
    assert frozen.tolist() == [[1.0, 1.0]]
    again = equations(np.array([[5.0]]), np.array([0]))[0]
    assert first.tolist() == again.tolist()


@given(SEEDS, st.integers(1, 2), st.integers(2, 4), st.integers(1, 14))
@settings(max_examples=30, deadline=None)
def test_the_rank_is_the_smaller_number(seed, n, d, m):
    """At well separated neurons; two equal ones lose d + 1 of it."""
    rng = np.random.default_rng(seed)
    turned = np.linalg.qr(rng.normal(size=(d, d)))[0]
    W, a = turned[:n] * np.arange(1, n + 1)[:, None], np.ones(n)
    X = rng.normal(size=(m, d))
    J = network_jacobian(W, a, X)
    assert numerical_rank(J, ROUNDING).rank == min(m, n * (d + 1))
    J = network_jacobian(np.repeat(W[:1], n, axis=0), a, X)
    assert numerical_rank(J, ROUNDING).rank == min(m, d + 1)


def test_no_match_on_one_example_more_than_weights():
    """Two neurons for four: matches at ten examples, none at eleven."""
    rng, teacher = np.random.default_rng(5), Teacher.orthonormal(4, 4)
    X, y = sample(rng, 11, teacher)
    assert fit(X[:9], y[:9], 2, rng, 8)[1] < MATCHED_RELATIVE
    assert fit(X, y, 2, rng, 8)[1] > 1e3 * MATCHED_RELATIVE


def test_a_match_on_more_examples_than_weights_is_a_copy():
    """One neuron for one, three weights: copies at four examples, and
    another student at two."""
    rng, teacher = np.random.default_rng(1), Teacher.orthonormal(1, 2)
    X, y = sample(rng, 4, teacher)
    for m, copy in ((4, True), (2, False)):
        theta, residual = fit(X[:m], y[:m], 1, rng, 8)
        loss = population_loss(*unpack(theta, 1), teacher)
        assert residual < MATCHED_RELATIVE
        assert (loss < MATCHED_RELATIVE) == copy


@given(SEEDS, st.sampled_from([(0, True), (1, False), (1, True), (2, False)]))
@settings(max_examples=20, deadline=None)
def test_pairs_miss_the_labels_by_a_square(seed, kind):
    """A hundredth for ten times the strength, any labels that are sought by
    weights of moderate size."""
    rng, (h, odd), d = np.random.default_rng(seed), kind, 3
    m = always_matched(2 * h + odd, d)
    X, W = rng.normal(size=(m, d)), rng.normal(size=(h, d))
    J = [network_jacobian(W, np.ones(h), X)] if h else []
    y = np.hstack([*J, *([np.sqrt(2 / np.pi) * X] if odd else [])]).sum(1)
    missed = []
    for A in (300.0, 3000.0):
        s = cancelling_pairs(X, y, W, A, odd)
        assert s.a.size == 2 * h + odd
        missed.append(np.abs(network(s.W, s.a, X) - y).max())
    assert missed[1] < missed[0] / 50 + 3000 * ROUNDING


@pytest.mark.parametrize("h, odd", [(1, False), (1, True), (2, False)])
def test_any_labels_are_matched_up_to_half(h, odd):
    """From the pairs to an exact match, by Newton's method in SciPy."""
    rng, n, d = np.random.default_rng(h), 2 * h + odd, 3
    m = always_matched(n, d)
    X, y, W = (rng.normal(size=s) for s in ((m, d), m, (h, d)))
    s = cancelling_pairs(X, y, W, 1000.0, odd)
    theta, residual = polish(X, y, n, pack(s.W, s.a))
    assert residual < MATCHED_RELATIVE
    assert np.abs(network(*unpack(theta, n), X) - y).max() < MATCHED_RELATIVE


def scipy_solver(equations, begin, size):
    """The batch, problem by problem."""
    ends = []
    for i, w in enumerate(begin):
        which = np.array([i])
        run = least_squares(
            lambda w, which=which: equations(w[None], which)[0][0],
            w,
            lambda w, which=which: equations(w[None], which)[1][0],
        )
        ends.append((run.x, np.linalg.norm(run.fun) / size[i]))
    w, residual = zip(*ends, strict=True)
    return SimpleNamespace(w=np.array(w), residual=np.array(residual))


def test_ends_are_what_they_say():
    """One neuron, all weights but one outgoing frozen: linear, by hand."""
    teacher, kept = Teacher.orthonormal(2, 2), {}

    def record(equations, begin, size):
        kept["end"] = scipy_solver(equations, begin, size)
        kept["size"] = size
        return kept["end"]

    ends = ends_of_starts(record, teacher, 1, 3, 4, 2, 7, learned=[2])
    rng = np.random.default_rng(7)
    X = rng.normal(size=(4, 3, 2))
    W = rng.normal(size=(4, 3))[:, None, :2]
    y = network(teacher.V, teacher.b, X)
    h = network(W, np.ones((4, 1)), X)
    a = (h * y).sum(1) / (h * h).sum(1)
    loss = population_loss(W, a[:, None], teacher)
    left = ((a[:, None] * h - y) ** 2).mean(1)
    for s in range(2):
        np.testing.assert_allclose(ends.loss[:, s], loss, atol=1e-6)
        np.testing.assert_allclose(ends.training[:, s], left, atol=1e-6)
    np.testing.assert_allclose(
        kept["size"].reshape(4, 2)[:, 0], np.linalg.norm(y, axis=1)
    )
    assert not ends.matched.any()


def test_chosen_is_the_first_match_or_the_best():
    residual = np.array([[0.5, 1e-9, 0.0], [0.3, 0.1, 0.2]])
    rows, columns = Ends(residual, residual, residual).chosen
    assert rows.tolist() == [0, 1] and columns.tolist() == [1, 1]


def test_labels_may_be_random():
    ends = [
        ends_of_starts(
            scipy_solver, Teacher.orthonormal(1, 2), 1, 2, 3, 2, 0, labels=x
        )
        for x in ("teacher", "random")
    ]
    assert not np.allclose(ends[0].loss, ends[1].loss)


@pytest.mark.parametrize(
    "words, change",
    [
        ("labels", {"labels": "free"}),
        ("m", {"m": 0}),
        ("draws", {"draws": -1}),
        ("from 0 to 2", {"learned": [3]}),
    ],
)
def test_bad_trials_are_named(words, change):
    good = {"n": 1, "m": 2, "draws": 1, "starts": 1, "rng": 0}
    with pytest.raises(ValueError, match=words):
        ends_of_starts(
            scipy_solver, Teacher.orthonormal(2, 2), **{**good, **change}
        )


def test_one_neuron_matches_d_examples_by_hand():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(3, 3)), rng.normal(size=3)
    a = 2 * np.abs(y).max()
    w = np.linalg.solve(X, np.sqrt(2) * erfinv(y / a))
    np.testing.assert_allclose(network([w], [a], X), y, atol=ROUNDING)
    assert always_matched(1, 3) == 3


@pytest.mark.parametrize(
    "words, change",
    [
        ("X must have shape", {"y": np.ones((2, 3))}),
        ("X must have 3 axes", {"X": np.ones((4, 2))}),
        ("finite", {"y": [[1.0, np.nan, 0.0, 0.0]]}),
        ("n", {"n": 0}),
        ("starts", {"starts": 0}),
        ("neither", {"learned": [0]}),
        ("neither", {"frozen": np.ones((1, 6))}),
        ("from 0 to 5", {"learned": [6], "frozen": np.ones((1, 6))}),
        ("from 0 to 5", {"learned": [0.5], "frozen": np.ones((1, 6))}),
        ("different", {"learned": [1, 1], "frozen": np.ones((1, 6))}),
        ("frozen must", {"learned": [1], "frozen": np.ones((2, 6))}),
    ],
)
def test_bad_problems_are_named(words, change):
    good = {"X": np.ones((1, 4, 2)), "y": np.ones((1, 4)), "n": 2}
    with pytest.raises(ValueError, match=words):
        match_equations(**{**good, **change})


@pytest.mark.parametrize(
    "words, change",
    [
        ("y", {"y": np.ones(3)}),
        ("neuron", {"W": np.ones((0, 3))}),
        ("1 to 4 inputs", {"X": np.ones((5, 3)), "y": np.ones(5)}),
        ("strength", {"strength": 0.0}),
        ("finite", {"W": np.full((1, 3), np.inf)}),
    ],
)
def test_bad_pairs_are_named(words, change):
    good = {"X": np.ones((4, 3)), "y": np.ones(4), "W": np.ones((1, 3))}
    with pytest.raises(ValueError, match=words):
        cancelling_pairs(**{**good, "strength": 1.0, **change})


def test_bad_sizes_are_named():
    with pytest.raises(ValueError, match="n"):
        always_matched(0, 3)
    with pytest.raises(ValueError, match="W must have shape"):
        network_jacobian(np.ones((2, 3)), np.ones(3), np.ones((4, 3)))
