"""Block norms: closed forms, the scalar case, duality, and the curve."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from helpers.core.linalg import complement, orthonormal_basis
from helpers.spectral_alignment import column_generation
from helpers.spectral_alignment.block_norms import (
    block_variation_norm_bounds,
    dual_bound,
)
from helpers.spectral_alignment.norm_curves import (
    representability_curve,
    variation_pareto_curve,
)
from helpers.spectral_alignment.variation_norms import variation_norm_bounds

SEEDS = st.integers(0, 2**32 - 1)
PATH = np.array([[-1.0, 1.0], [0.0, 1.0], [1.0, 1.0]])
U3 = np.array([[1.0, -1, 1], [1, 0, -2], [1, 1, 1]]) / np.sqrt([3, 2, 6])


def relu(z):
    return np.maximum(z, 0.0)


def problem(seed, n=8, K=2):
    rng = np.random.default_rng(seed)
    Phi = np.column_stack([rng.normal(size=(n, 2)), np.ones(n)])
    U = np.linalg.qr(rng.normal(size=(n, K)))[0]
    return rng, Phi, U


def check(found, Phi, U, H0, rng):
    """Primal and dual feasible, from the definition and by sampling."""
    Q = orthonormal_basis(H0)
    D = complement(Q, relu(Phi @ found.theta))
    assert D == pytest.approx(found.atoms, abs=1e-7)
    assert np.linalg.norm(found.atoms, axis=0) == pytest.approx(1)
    M = complement(Q, U)
    assert found.atoms @ found.coefficients == pytest.approx(M, abs=1e-9)
    sizes = np.linalg.norm(found.coefficients, axis=1)
    assert sizes.sum() == pytest.approx(found.upper)
    assert np.sum(found.dual * U) == pytest.approx(found.lower)
    assert np.abs(Q.T @ found.dual).max(initial=0) < 1e-9
    H = complement(Q, relu(Phi @ rng.normal(size=(Phi.shape[1], 3000))))
    size = np.linalg.norm(H, axis=0)
    H = H[:, size > 1e-4] / size[size > 1e-4]
    reach = np.linalg.norm(found.dual.T @ H, axis=0).max(initial=0)
    assert reach <= 1 + 1e-9
    assert found.lower <= found.upper


def test_path_by_hand():
    """Orthogonal single atoms: nothing cheaper than K; all must be paid."""
    none = np.zeros((3, 0))
    full = block_variation_norm_bounds(PATH, U3, tol=1e-4)
    assert 3 <= full.upper <= 1 + np.sqrt(2) + np.sqrt(6) + np.sqrt(2)
    check(full, PATH, U3, none, np.random.default_rng(0))
    # relative to 1 and x only u3 is left, and new parts are multiples of it
    rest = block_variation_norm_bounds(PATH, U3, PATH, tol=1e-5)
    assert rest.upper == pytest.approx(1, rel=1e-5)
    done = block_variation_norm_bounds(PATH, U3[:, :2], PATH)
    assert done.lower == done.upper == 0


@settings(max_examples=6, deadline=None)
@given(SEEDS)
def test_laws(seed):
    rng, Phi, U = problem(seed, n=6)
    H0 = [np.zeros((6, 0)), np.ones((6, 1)), Phi][seed % 3]
    found = block_variation_norm_bounds(Phi, U, H0, tol=0.02)
    check(found, Phi, U, H0, rng)
    # the basis inside the span does not matter
    turn = np.linalg.qr(rng.normal(size=(2, 2)))[0]
    turned = block_variation_norm_bounds(Phi, U @ turn, H0, tol=0.02)
    assert turned.lower <= found.upper * (1 + 1e-9)
    assert found.lower <= turned.upper * (1 + 1e-9)
    singles = sum(variation_norm_bounds(Phi, u, tol=0.02).upper for u in U.T)
    assert found.lower <= singles
    if H0.shape[1] == 0:
        assert found.upper >= 2 - 1e-9


def test_one_target_is_the_variation_norm():
    rng, Phi, U = problem(1, n=10, K=1)
    block = block_variation_norm_bounds(Phi, U, tol=1e-3)
    single = variation_norm_bounds(Phi, U[:, 0], tol=1e-3)
    # each interval is a thousandth wide
    assert block.upper == pytest.approx(single.upper, rel=2e-3)
    assert block.lower == pytest.approx(single.lower, rel=2e-3)


def test_dual_bound_by_hand_and_for_any_variable():
    """2 + sqrt(3) for the middle spike; never above the price."""
    e2, y = np.eye(3)[1], np.array([-1.0, 2 + np.sqrt(3), -1.0])
    assert dual_bound(PATH, e2, 7 * y) == pytest.approx(2 + np.sqrt(3))
    # no unit neuron has more of e2 than the constant
    assert dual_bound(PATH, e2, e2) == pytest.approx(np.sqrt(3))
    assert dual_bound(PATH, e2, -y) == 0
    rng, Phi, U = problem(3)
    H0 = np.ones((8, 1))
    found = block_variation_norm_bounds(Phi, U, H0, tol=0.02)
    own = dual_bound(Phi, U, found.dual + H0, H0)  # H0 is removed
    assert own == pytest.approx(found.lower)
    others = found.dual + 0.3 * rng.normal(size=(20, *U.shape))
    assert max(dual_bound(Phi, U, Y, H0) for Y in others) < found.upper


@pytest.mark.parametrize(
    "targets, Y, H0, name",
    [
        (np.eye(3)[0], np.ones(2), None, "Y must be finite and of shape"),
        (np.eye(3)[0], [1.0, np.nan, 0], None, "Y must be finite"),
        ([1.0, np.nan, 0], np.ones(3), None, "targets must be finite"),
        (np.eye(3)[0], np.ones(3), np.ones((3, 1)), "Y must not be zero"),
        (np.zeros((3, 0)), np.zeros((3, 0)), None, "targets must be columns"),
    ],
)
def test_bad_dual_variables_are_named(targets, Y, H0, name):
    with pytest.raises(ValueError, match=name):
        dual_bound(PATH, targets, Y, H0)


def test_newton_step_is_feasible_before_it_converges():
    rng = np.random.default_rng(2)
    D = rng.normal(size=(4, 30))
    D /= np.linalg.norm(D, axis=0)
    M = rng.normal(size=(4, 3))
    Y = 0.1 * rng.normal(size=(4, 3))
    for mu in (0.0, 0.3):
        step, decrement, A = column_generation._newton(D, M, 50.0, Y, mu)
        assert decrement > 1
        assert D @ A == pytest.approx(M - mu * (Y + step), abs=1e-8)


def test_pareto_curve_brackets_and_ends_at_the_norm():
    _, Phi, U = problem(5, n=9)
    H0 = np.ones((9, 1))
    norm = block_variation_norm_bounds(Phi, U, H0, tol=0.005)
    mus = [1.0, 0.5, 0.2, 0.05, 0.005]
    curve = variation_pareto_curve(Phi, U, H0, mus, dictionary=norm)
    size = np.linalg.norm(complement(orthonormal_basis(H0), U))
    assert (curve.e[0], curve.gamma[0]) == (pytest.approx(size), 0)
    assert (np.diff(curve.e) < 0).all() and (np.diff(curve.gamma) > 0).all()
    assert (curve.lower <= curve.gamma).all()
    assert (curve.lower[1:] >= 0.9 * curve.gamma[1:]).all()
    # gamma(e) is convex and falls to 0 at e = size: chords lie above it
    chord = norm.upper * (1 - curve.e / size)
    assert (curve.lower <= chord + 1e-9).all()
    # a curve is known to a tenth (line above), with a dictionary of its own
    # at either end of it
    assert curve.gamma[-1] == pytest.approx(norm.upper, rel=0.1)
    fresh = variation_pareto_curve(Phi, U, H0, mus[:2])
    assert fresh.gamma[1] == pytest.approx(curve.gamma[1], rel=0.2)


def test_pareto_curve_on_a_line():
    """One direction to gain: gamma(e) = |M| - e exactly."""
    curve = variation_pareto_curve(PATH, U3[:, 2:], PATH, [0.7, 0.3, 0.01])
    assert curve.e + curve.gamma == pytest.approx(1, abs=1e-9)
    # the bound from below stops at three per cent
    assert curve.lower == pytest.approx(curve.gamma, rel=0.05)


def test_representability_pairs_are_valid():
    rng, Phi, U = problem(6, n=9)
    mus = [1.0, 0.3, 0.03, 0.001]
    curve = representability_curve(Phi, U, mus)
    assert curve.kappa[0] == 0 and curve.epsilon[0] == pytest.approx(1)
    assert (np.diff(curve.kappa) > 0).all()
    assert (np.diff(curve.epsilon) < 0).all()
    norms = [variation_norm_bounds(Phi, u, tol=0.01) for u in U.T]
    upper = np.linalg.norm([x.upper for x in norms])
    lower = np.linalg.norm([x.lower for x in norms])
    assert curve.kappa[-1] <= upper * 1.01
    assert curve.epsilon[-1] < 0.05
    # what is left is paid for at most at the dearest unit function's price
    assert curve.kappa[-1] >= lower * (1 - 0.2)


def test_out_of_reach():
    Phi = PATH[[0, 1, 2, 1]]
    u = np.array([[0.0], [1], [0], [-1]]) / np.sqrt(2)
    found = block_variation_norm_bounds(Phi, u)
    assert found.lower == found.upper == np.inf
    assert np.abs(found.dual.T @ relu(Phi @ [[1.0, -1], [0.5, 2]])).max() < (
        1e-9
    )
    with pytest.raises(ValueError, match="infinite"):
        variation_pareto_curve(Phi, u, None, [0.5])
    with pytest.raises(ValueError, match="infinite"):
        representability_curve(Phi, u, [0.5])


@pytest.mark.parametrize(
    "change, name",
    [
        ({"UK": np.ones((3, 1))}, "UK"),
        ({"UK": np.zeros((3, 0))}, "UK"),
        ({"UK": np.eye(4)[:, :1]}, "Phi must have 4 rows"),
        ({"UK": np.full((3, 1), np.nan)}, "UK"),
        ({"H0": np.ones((2, 1))}, "H0"),
        ({"H0": np.full((3, 1), np.nan)}, "finite"),
        ({"Phi": PATH[:, :1]}, "constant"),
        ({"tol": 2.0}, "tol"),
        ({"rounds": 1.5}, "rounds"),
    ],
)
def test_bad_input_is_named(change, name):
    with pytest.raises(ValueError, match=name):
        block_variation_norm_bounds(
            **({"Phi": PATH, "UK": U3[:, :1], "H0": None} | change)
        )


def test_bad_penalties_and_dictionaries_are_named():
    for mus in ([], [0.0], [1.5], [np.nan], 0.5):
        with pytest.raises(ValueError, match="mus"):
            variation_pareto_curve(PATH, U3, None, mus)
    other = block_variation_norm_bounds(PATH, U3[:, 2:], PATH)
    with pytest.raises(ValueError, match="dictionary"):
        variation_pareto_curve(PATH, U3, None, [0.5], dictionary=other)
    with pytest.raises(ValueError, match="block norm is 0"):
        variation_pareto_curve(PATH, U3[:, :2], PATH, [0.5])
