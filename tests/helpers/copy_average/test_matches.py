"""Matches: their equations, ranks, and what a match on many examples is."""

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
from helpers.copy_average.matches import always_matched, match_equations
from helpers.copy_average.networks import Teacher, pack, unpack
from helpers.copy_average.population import population_loss
from helpers.core.linalg import numerical_rank
from helpers.core.tolerances import MATCHED_RELATIVE, ROUNDING

SEEDS = st.integers(0, 2**32 - 1)


def sample(rng, m, teacher):
    X = rng.normal(size=(m, teacher.d))
    return X, network(teacher.V, teacher.b, X)


def fit(X, y, n, rng, tries):
    """Best of some runs of SciPy's solver: weights and relative residual."""
    equations = match_equations(X[None], y[None], n)
    zero = np.array([0])
    runs = [
        least_squares(
            lambda w: equations(w[None], zero)[0][0],
            rng.normal(size=n * (X.shape[1] + 1)),
            lambda w: equations(w[None], zero)[1][0],
            xtol=1e-15,
            ftol=1e-15,
            gtol=1e-15,
            max_nfev=400,
        )
        for _ in range(tries)
    ]
    best = min(runs, key=lambda run: run.cost)
    return best.x, np.linalg.norm(best.fun) / np.linalg.norm(y)


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


@given(SEEDS, st.integers(1, 3), st.integers(1, 4), st.integers(1, 20))
@settings(max_examples=30, deadline=None)
def test_the_rank_is_the_smaller_number(seed, n, d, m):
    """At weights without accidents; two equal neurons lose d + 1 of it."""
    rng = np.random.default_rng(seed)
    W, a = 2 * rng.normal(size=(n, d)), rng.choice([-1.0, 1.0], size=n)
    X = rng.normal(size=(m, d))
    near = np.abs(W[:, None] - W).sum(-1) + np.abs(W[:, None] + W).sum(-1)
    if n > 1 and near[~np.eye(n, dtype=bool)].min() < 1:
        return
    J = network_jacobian(W, a, X)
    assert numerical_rank(J, ROUNDING).rank == min(m, n * (d + 1))
    if n > 1:
        W[1] = W[0]
        J = network_jacobian(W, a, X)
        assert numerical_rank(J, ROUNDING).rank <= min(m, n * (d + 1) - d - 1)


def test_no_match_on_one_example_more_than_weights():
    """Two neurons for four: matches at ten examples, none at eleven."""
    rng, teacher = np.random.default_rng(4), Teacher.orthonormal(4, 4)
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


@pytest.mark.parametrize("n, d", [(2, 3), (3, 2), (4, 1)])
def test_any_labels_are_matched_up_to_half(n, d):
    rng = np.random.default_rng(n)
    m = always_matched(n, d)
    X, y = rng.normal(size=(m, d)), rng.normal(size=m)
    assert fit(X, y, n, rng, 20)[1] < MATCHED_RELATIVE


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


def test_bad_sizes_are_named():
    with pytest.raises(ValueError, match="n"):
        always_matched(0, 3)
    with pytest.raises(ValueError, match="W must have shape"):
        network_jacobian(np.ones((2, 3)), np.ones(3), np.ones((4, 3)))
