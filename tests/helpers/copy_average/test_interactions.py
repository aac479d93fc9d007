"""Interaction functions: hand values, quadrature, Monte Carlo, laws."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.integrate import quad

from helpers.copy_average.interactions import (
    has_closed_form,
    interaction,
    interaction_d2u,
    interaction_grad,
    pair_expectations,
)
from helpers.copy_average.quadrature import (
    gauss_hermite_nodes,
    product_expectations,
)
from helpers.core.activations import ACTIVATIONS, Activation, get_activation

NAMES = sorted(ACTIVATIONS)
SMOOTH = [name for name in NAMES if not ACTIVATIONS[name].kink]
U = np.array([-0.9, -0.3, 0.0, 0.5, 0.95])
R1, R2 = np.array([0.4, 1.7, 1.0])[:, None], np.array([1.0, 0.3, 2.5])[:, None]
CUSTOM = Activation("sine", np.sin, np.cos, lambda x: -np.sin(x), odd=True)


# --- closed forms and hand values ------------------------------------------


def test_erf_by_hand():
    assert interaction(1, 1, 1) == pytest.approx(1 / 3)
    assert interaction(1, 1, -1) == pytest.approx(-1 / 3)
    assert interaction(2, 0.5, 0) == 0
    # arcsin(sqrt(2) / 2) = pi / 4
    assert interaction(1, 1e15, math.sqrt(0.5)) == pytest.approx(1 / 3)
    assert interaction_d2u(1, 1, 0) == 0
    assert interaction_grad(1, 1, 1)[2] == pytest.approx(
        2 / math.pi / math.sqrt(3)
    )


def test_relu_by_hand():
    values = interaction(2.0, 3.0, [-1, 0, 1], "relu")
    np.testing.assert_allclose(values, [0, 6 / (2 * math.pi), 3], atol=1e-15)
    slope = interaction_grad(2.0, 3.0, [-1, 0, 1], "relu")[2]
    np.testing.assert_allclose(slope, [0, 1.5, 3], atol=1e-15)
    bend = interaction_d2u(2.0, 3.0, [-1, 0, 0.6, 1], "relu")
    np.testing.assert_allclose(
        bend[1:3], 6 / (2 * math.pi) / np.array([1, 0.8])
    )
    assert np.isinf(bend[[0, 3]]).all()


def test_gelu_by_hand():
    # E[X^2 Phi(X)^2]: both vectors equal and of norm one, Delta = 3
    exact = 0.25 + (math.pi / 6 + 1 / math.sqrt(3)) / (2 * math.pi)
    by_hand = quad(
        lambda x: (
            get_activation("gelu")(x) ** 2
            * math.exp(-(x**2) / 2)
            / math.sqrt(2 * math.pi)
        ),
        -12,
        12,
    )[0]
    assert exact == pytest.approx(by_hand, abs=1e-12)
    assert interaction(1, 1, 1, "gelu") == pytest.approx(exact, abs=1e-15)


def test_polynomials_by_hand():
    np.testing.assert_allclose(interaction(2, 3, U, "identity"), 6 * U)
    np.testing.assert_allclose(
        interaction(2, 3, U, "square"), 36 * (1 + 2 * U**2)
    )


def test_sigmoid_is_tanh_in_disguise():
    # sigmoid(x) = (1 + tanh(x / 2)) / 2 and tanh has mean zero
    tanh = interaction(R1 / 2, R2 / 2, U, "tanh")
    np.testing.assert_allclose(
        interaction(R1, R2, U, "sigmoid"), (1 + tanh) / 4, atol=1e-14
    )


def test_leaky_relu_between_relu_and_identity():
    for slope, name in ((0.0, "relu"), (1 - 1e-15, "identity")):
        leaky = get_activation("leaky_relu", slope=slope)
        np.testing.assert_allclose(
            interaction(R1, R2, U, leaky),
            interaction(R1, R2, U, name),
            atol=1e-14,
        )


# --- independent ways --------------------------------------------------------


@pytest.mark.parametrize("name", [n for n in SMOOTH if has_closed_form(n)])
def test_closed_forms_against_quadrature(name):
    act = get_activation(name)
    f, df, ddf = act.value, act.derivative, act.second_derivative
    rule = gauss_hermite_nodes(200)
    value, left, slope, bend = product_expectations(
        [(f, f), (ddf, f), (df, df), (ddf, ddf)], R1, R2, U, act, rule=rule
    )
    d_r1, _, d_u = interaction_grad(R1, R2, U, act)
    tol = {"rtol": 1e-9, "atol": 1e-9}
    np.testing.assert_allclose(interaction(R1, R2, U, act), value, **tol)
    np.testing.assert_allclose(d_u, R1 * R2 * slope, **tol)
    np.testing.assert_allclose(d_r1, R1 * left + R2 * U * slope, **tol)
    np.testing.assert_allclose(
        interaction_d2u(R1, R2, U, act), (R1 * R2) ** 2 * bend, **tol
    )


@pytest.mark.parametrize("name", ["relu", "leaky_relu"])
def test_kinked_forms_in_polar_coordinates(name):
    # homogeneous: E[f f] = (1 / pi) * integral of f(cos t) f(cos(t - theta))
    act = get_activation(name)
    for u in U:
        theta = math.acos(u)
        points = sorted(
            (p + 2 * math.pi) % (2 * math.pi)
            for p in (
                math.pi / 2,
                -math.pi / 2,
                theta + math.pi / 2,
                theta - math.pi / 2,
            )
        )
        integral = quad(
            lambda t, theta=theta: act(math.cos(t)) * act(math.cos(t - theta)),
            0,
            2 * math.pi,
            points=points,
        )[0]
        assert interaction(1, 1, u, act) == pytest.approx(
            integral / math.pi, abs=1e-10
        )


@pytest.mark.parametrize("name", NAMES)
def test_values_by_sampling(name):
    act, rng = get_activation(name), np.random.default_rng(0)
    x, z = rng.standard_normal((2, 200_000))
    y = 0.5 * x + math.sqrt(0.75) * z
    products = act(0.7 * x) * act(1.3 * y)
    error = products.std() / math.sqrt(products.size)
    exact = interaction(0.7, 1.3, 0.5, act)
    assert abs(products.mean() - exact) < 4 * error


@pytest.mark.parametrize("act", [*NAMES, CUSTOM])
def test_gradient_against_differences(act):
    act, h = get_activation(act), 1e-5
    args = (R1, R2, U)
    for axis, exact in enumerate(interaction_grad(*args, act)):
        up, down = list(args), list(args)
        up[axis], down[axis] = args[axis] + h, args[axis] - h
        difference = interaction(*up, act) - interaction(*down, act)
        np.testing.assert_allclose(
            exact, difference / (2 * h), rtol=1e-6, atol=1e-8
        )


@pytest.mark.parametrize("act", [*NAMES, CUSTOM])
def test_derivative_rule_applied_twice(act):
    act, h = get_activation(act), 1e-5
    up = interaction_grad(R1, R2, U + h, act)[2]
    down = interaction_grad(R1, R2, U - h, act)[2]
    np.testing.assert_allclose(
        interaction_d2u(R1, R2, U, act),
        (up - down) / (2 * h),
        rtol=1e-6,
        atol=1e-8,
    )


def test_derivative_rule_without_one_factor_is_wrong():
    # control: forgetting r1 * r2 is seen
    wrong = interaction_grad(R1, R2, U, "tanh")[2] / (R1 * R2)
    h = 1e-5
    right = interaction(R1, R2, U + h, "tanh")
    right = (right - interaction(R1, R2, U - h, "tanh")) / (2 * h)
    assert np.abs(wrong - right).max() > 0.01


def test_hermite_series():
    # g = sum over m of c_m(r1) c_m(r2) u^m, the paper's other way to see it
    act = get_activation("softplus")
    z, omega = gauss_hermite_nodes(120)
    basis = [np.ones_like(z), z]
    for m in range(1, 40):
        basis.append(
            (z * basis[m] - math.sqrt(m) * basis[m - 1]) / math.sqrt(m + 1)
        )
    c1 = [omega @ (act(0.8 * z) * h) for h in basis]
    c2 = [omega @ (act(1.4 * z) * h) for h in basis]
    series = sum(
        x * y * 0.6**m for m, (x, y) in enumerate(zip(c1, c2, strict=True))
    )
    assert interaction(0.8, 1.4, 0.6, act) == pytest.approx(series, abs=1e-12)


@pytest.mark.parametrize("name", NAMES)
def test_pairs_of_vectors_agree_with_norms_and_angles(name):
    rng = np.random.default_rng(1)
    z1, z2 = rng.standard_normal((2, 3, 4)), rng.standard_normal((5, 4))
    pairs = pair_expectations(z1, z2, name)
    r1 = np.linalg.norm(z1, axis=-1)[..., :, None]
    r2 = np.linalg.norm(z2, axis=-1)
    u = z1 @ z2.T / (r1 * r2)
    d_r1, _, d_u = interaction_grad(r1, r2, u, name)
    np.testing.assert_allclose(pairs.value, interaction(r1, r2, u, name))
    np.testing.assert_allclose(r1 * r2 * pairs.slope, d_u, atol=1e-13)
    np.testing.assert_allclose(
        r1 * pairs.curvature + r2 * u * pairs.slope, d_r1, atol=1e-12
    )


# --- laws --------------------------------------------------------------------

RADII = st.one_of(st.just(0.0), st.just(1.0), st.floats(1e-3, 4))
COSINES = st.one_of(st.sampled_from([-1.0, 0.0, 1.0]), st.floats(-1, 1))


@settings(max_examples=40, deadline=None)
@given(r1=RADII, r2=RADII, u=COSINES, name=st.sampled_from(NAMES))
def test_symmetric_and_bounded(r1, r2, u, name):
    g = float(interaction(r1, r2, u, name))
    assert g == pytest.approx(float(interaction(r2, r1, u, name)), abs=1e-12)
    own = interaction([r1, r2], [r1, r2], 1.0, name)
    assert abs(g) <= math.sqrt(own[0] * own[1]) + 1e-10
    a, b, _ = interaction_grad(r1, r2, u, name)
    b2, a2, _ = interaction_grad(r2, r1, u, name)
    assert (a, b) == (pytest.approx(a2, abs=1e-9), pytest.approx(b2, abs=1e-9))


@settings(max_examples=40, deadline=None)
@given(r1=RADII, r2=RADII, u=COSINES)
def test_odd_activations_have_odd_interactions(r1, r2, u):
    for name in NAMES:
        if ACTIVATIONS[name].odd:
            both = interaction(r1, r2, [u, -u], name)
            assert both.sum() == pytest.approx(0, abs=1e-13)


@settings(max_examples=40, deadline=None)
@given(r1=st.floats(0.01, 4), r2=st.floats(0.01, 4), u=st.floats(-0.99, 0.98))
def test_increasing_activations_interact_more_when_closer(r1, r2, u):
    for name in NAMES:
        if ACTIVATIONS[name].strictly_increasing:
            assert interaction_grad(r1, r2, u, name)[2] > 0
            low, high = interaction(r1, r2, [u, u + 0.01], name)
            assert high > low


@settings(max_examples=30, deadline=None)
@given(
    r=st.floats(0.01, 4),
    c=st.floats(0.01, 5),
    u=COSINES,
    name=st.sampled_from(["relu", "leaky_relu", "identity"]),
)
def test_homogeneous_activations_scale(r, c, u, name):
    assert interaction(c * r, r, u, name) == pytest.approx(
        float(c * interaction(r, r, u, name)), rel=1e-12, abs=1e-14
    )


@pytest.mark.parametrize("name", NAMES)
def test_gram_matrix_is_positive_semidefinite(name):
    rng = np.random.default_rng(2)
    z = rng.standard_normal((12, 5))
    gram = pair_expectations(z, z, name).value
    np.testing.assert_allclose(gram, gram.T, atol=1e-12)
    assert np.linalg.eigvalsh(gram)[0] > -1e-10


# --- the edges, each on purpose ---------------------------------------------


@pytest.mark.parametrize("name", NAMES)
def test_vanishing_norm(name):
    act = get_activation(name)
    z, omega = gauss_hermite_nodes(100)
    mean = omega @ act(1.5 * z) if not act.kink else None
    values = interaction(1.5, 0.0, U, name)
    assert np.ptp(values) < 1e-15
    if mean is not None:
        assert values[0] == pytest.approx(float(act(0.0) * mean), abs=1e-12)
    assert interaction(0.0, 0.0, 0.3, name) == pytest.approx(
        float(act(0.0)) ** 2
    )
    assert (
        interaction_d2u(1.5, 0.0, [0.3, 1.0, -1.0], name).tolist() == [0] * 3
    )
    assert np.all(np.isfinite(interaction_grad(0.0, 1.5, U, name)))


@pytest.mark.parametrize("name", SMOOTH)
def test_parallel_vectors(name):
    act, r = get_activation(name), 1.3
    z, omega = gauss_hermite_nodes(200)
    for u in (1.0, -1.0):
        exact = omega @ (act(r * z) * act(u * 0.8 * z))
        assert interaction(r, 0.8, u, name) == pytest.approx(exact, abs=1e-9)


def test_huge_norms():
    # erf tends to the sign function, GELU to ReLU
    for r in (1e4, 1e12, 1e30):
        sign = interaction(r, r, U, "erf")
        np.testing.assert_allclose(sign, 2 / math.pi * np.arcsin(U), atol=1e-7)
        gelu = interaction(r, 1.0, 1.0, "gelu") / r
        limit = quad(
            lambda x: (
                x
                * get_activation("gelu")(x)
                * math.exp(-(x**2) / 2)
                / math.sqrt(2 * math.pi)
            ),
            0,
            12,
        )[0]
        assert gelu == pytest.approx(limit, abs=1e-7)
        for function in (interaction, interaction_d2u):
            assert np.all(np.isfinite(function(r, r, U, "erf")))
            assert np.all(np.isfinite(function(r, r, U, "gelu")))
    # nearly parallel huge vectors: no cancellation in 1 - u^2
    assert interaction(1e8, 1e8, 1.0) == pytest.approx(
        2 / math.pi * (math.pi / 2 - math.sqrt(2) * 1e-8), abs=1e-15
    )


@pytest.mark.parametrize("function", [interaction, interaction_grad])
@pytest.mark.parametrize(
    "args, match",
    [
        ((-1.0, 1.0, 0.0), "r1"),
        ((1.0, math.nan, 0.0), "r2"),
        ((1.0, math.inf, 0.0), "r2"),
        ((1e31, 1.0, 0.0), "r1"),
        ((1.0, 1.0, 1.1), "u must"),
        ((1.0, 1.0, math.nan), "u must"),
        ((1.0, 1.0, [0.0, -2.0]), "u must"),
    ],
)
@pytest.mark.parametrize("name", ["erf", "tanh"])
def test_bad_numbers(function, args, match, name):
    with pytest.raises(ValueError, match=match):
        function(*args, name)


@pytest.mark.parametrize(
    "function", [interaction, interaction_grad, interaction_d2u]
)
@pytest.mark.parametrize("name", ["erf", "tanh"])
def test_shapes_that_do_not_broadcast(function, name):
    with pytest.raises(ValueError, match="r1, r2 and u must broadcast"):
        function([1.0, 2.0], [1.0, 2.0, 3.0], 0.5, name)


def test_rounding_in_a_cosine_is_forgiven():
    assert interaction(1, 1, 1 + 1e-12) == interaction(1, 1, 1)


def test_too_large_for_quadrature():
    with pytest.raises(ValueError, match="radius must be at most"):
        interaction(1000.0, 1.0, 0.5, "tanh")


@pytest.mark.parametrize(
    "z1, z2", [([1.0], [[1.0]]), ([[1.0, 2.0]], [[1.0]]), ([[1.0]], 1.0)]
)
def test_bad_shapes(z1, z2):
    with pytest.raises(ValueError, match="shapes"):
        pair_expectations(z1, z2)


@pytest.mark.parametrize("name", ["erf", "relu", "tanh"])
@pytest.mark.parametrize("bad", [math.nan, math.inf, 1e40])
def test_bad_weights(name, bad):
    with pytest.raises(ValueError, match="z1 must be finite"):
        pair_expectations([[bad, 1.0]], [[1.0, 0.0]], name)


def test_shapes_broadcast():
    assert interaction(1.0, 1.0, 0.5).shape == ()
    assert interaction(np.ones((3, 1)), np.ones(2), 0.5, "tanh").shape == (
        3,
        2,
    )
    assert interaction(np.ones(0), 1.0, 0.5).shape == (0,)


def test_a_custom_activation_never_gets_a_closed_form_by_name():
    impostor = Activation("erf", np.sin, np.cos, lambda x: -np.sin(x))
    assert not has_closed_form(impostor)
    # E[sin(X) sin(Y)] = exp(-1) sinh(u)
    assert interaction(1, 1, 0.5, impostor) == pytest.approx(
        math.exp(-1) * math.sinh(0.5), abs=1e-13
    )
