"""Activations: hand values, another library, laws on random inputs."""

import math
import pickle

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from helpers.core.activations import ACTIVATIONS, Activation, get_activation

NAMES = sorted(ACTIVATIONS)
SMOOTH = [name for name in NAMES if not ACTIVATIONS[name].kink]
PHI_1 = (1 + math.erf(1 / math.sqrt(2))) / 2
LOGISTIC_1 = 1 / (1 + math.exp(-1))

HAND = {
    "relu": (1.0, 0.0),
    "leaky_relu": (1.0, -0.01),
    "erf": (2 * PHI_1 - 1, 1 - 2 * PHI_1),
    "tanh": (math.tanh(1), -math.tanh(1)),
    "sigmoid": (LOGISTIC_1, 1 - LOGISTIC_1),
    "softplus": (math.log(1 + math.e), math.log(1 + math.exp(-1))),
    "gelu": (PHI_1, PHI_1 - 1),
    "silu": (LOGISTIC_1, LOGISTIC_1 - 1),
    "identity": (1.0, -1.0),
    "square": (1.0, 1.0),
}

# value, derivative, second derivative at -inf and at +inf
LIMITS = {
    "relu": [(0, math.inf), (0, 1), (0, 0)],
    "leaky_relu": [(-math.inf, math.inf), (0.01, 1), (0, 0)],
    "erf": [(-1, 1), (0, 0), (0, 0)],
    "tanh": [(-1, 1), (0, 0), (0, 0)],
    "sigmoid": [(0, 1), (0, 0), (0, 0)],
    "softplus": [(0, math.inf), (0, 1), (0, 0)],
    "gelu": [(0, math.inf), (0, 1), (0, 0)],
    "silu": [(0, math.inf), (0, 1), (0, 0)],
    "identity": [(-math.inf, math.inf), (1, 1), (0, 0)],
    "square": [(math.inf, math.inf), (-math.inf, math.inf), (2, 2)],
}


@pytest.mark.parametrize("name", NAMES)
def test_hand_values(name):
    assert get_activation(name)([1.0, -1.0]) == pytest.approx(HAND[name])


@pytest.mark.parametrize("name", NAMES)
def test_derivatives_against_differences(name):
    act, h = get_activation(name), 1e-6
    x = np.linspace(-4, 4, 41) + 0.05  # no point at a kink
    for low, high in (
        (act.value, act.derivative),
        (act.derivative, act.second_derivative),
    ):
        difference = (low(x + h) - low(x - h)) / (2 * h)
        np.testing.assert_allclose(high(x), difference, atol=1e-8)


@pytest.mark.parametrize("name", NAMES)
def test_against_torch(name):
    torch = pytest.importorskip("torch")
    functional = torch.nn.functional
    peers = {
        "relu": functional.relu,
        "leaky_relu": functional.leaky_relu,
        "erf": lambda x: torch.erf(x / math.sqrt(2)),
        "tanh": torch.tanh,
        "sigmoid": torch.sigmoid,
        "softplus": lambda x: functional.softplus(x, threshold=1e9),
        "gelu": functional.gelu,
        "silu": functional.silu,
        "identity": lambda x: x + 0,
        "square": torch.square,
    }
    x = torch.linspace(-60, 60, 241, dtype=torch.float64, requires_grad=True)
    y = peers[name](x)
    (slope,) = torch.autograd.grad(y.sum(), x)
    act, points = get_activation(name), x.detach().numpy()
    np.testing.assert_allclose(
        act(points), y.detach().numpy(), rtol=1e-12, atol=1e-15
    )
    np.testing.assert_allclose(
        act.derivative(points), slope.numpy(), rtol=1e-12, atol=1e-15
    )


@pytest.mark.parametrize("name", NAMES)
def test_limits_at_infinity_and_nan(name):
    act = get_activation(name)
    x = np.array([-math.inf, math.inf])
    functions = (act.value, act.derivative, act.second_derivative)
    with np.errstate(all="raise", under="ignore"):
        for function, limits in zip(functions, LIMITS[name], strict=True):
            np.testing.assert_array_equal(function(x), np.array(limits))
            assert np.isnan(function(math.nan))


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("shape", [(), (0,), (1,), (2, 3)])
def test_shapes_and_integers(name, shape):
    act, x = get_activation(name), np.ones(shape, dtype=int)
    for function in (act.value, act.derivative, act.second_derivative):
        assert np.shape(function(x)) == shape
        assert np.asarray(function(x)).dtype == float


def test_input_is_not_changed_or_shared():
    x = np.array([1.0, -2.0])
    for name in NAMES:
        y = np.asarray(get_activation(name)(x))
        y += 1
        assert x.tolist() == [1.0, -2.0]


REALS = st.floats(-1e6, 1e6, allow_subnormal=False)


@given(x=REALS)
def test_flags_tell_the_truth_odd(x):
    for act in ACTIVATIONS.values():
        if act.odd:
            assert act(-x) == -act(x)
            assert act.derivative(-x) == act.derivative(x)


@given(x=REALS, c=st.floats(1e-3, 1e3))
def test_flags_tell_the_truth_homogeneous(x, c):
    for act in ACTIVATIONS.values():
        if act.homogeneous:
            assert act(c * x) == pytest.approx(float(c * act(x)))


@given(x=st.floats(-5, 5), y=st.floats(-5, 5))
def test_flags_tell_the_truth_increasing(x, y):
    for act in ACTIVATIONS.values():
        if act.strictly_increasing:
            assert act.derivative(x) > 0
            if x - y > 1e-3:
                assert act(x) > act(y)


def test_flags_are_not_all_true():
    assert not get_activation("softplus").odd
    assert not get_activation("relu").strictly_increasing
    assert not get_activation("gelu").strictly_increasing
    assert not get_activation("tanh").homogeneous


@pytest.mark.parametrize("name", SMOOTH)
def test_smooth_activations_have_no_point_mass(name):
    act = get_activation(name)
    assert act.jump == 0 and act.strip > 0
    rise = act.derivative(1e-9) - act.derivative(-1e-9)
    assert rise == pytest.approx(0, abs=1e-8)


@pytest.mark.parametrize("name, jump", [("relu", 1.0), ("leaky_relu", 0.99)])
def test_point_mass_at_the_kink(name, jump):
    act = get_activation(name)
    assert act.kink and act.jump == pytest.approx(jump)
    rise = act.derivative(1e-9) - act.derivative(-1e-9)
    assert rise == pytest.approx(act.jump)
    assert act.derivative(0.0) == act.derivative(-1.0)


def test_leaky_slope():
    act = get_activation("leaky_relu", slope=0.25)
    assert act([-4.0, 4.0]).tolist() == [-1.0, 4.0]
    assert act.slope == 0.25 and act.jump == 0.75
    assert get_activation("leaky_relu", slope=0.0)(-1.0) == 0.0


@pytest.mark.parametrize("bad", ["Relu", "", "swish", None, 3])
def test_unknown_name_lists_the_known(bad):
    with pytest.raises(ValueError, match="erf.*tanh.*got"):
        get_activation(bad)


@pytest.mark.parametrize("slope", [-0.1, 1.0, math.nan, math.inf])
def test_bad_slope(slope):
    with pytest.raises(ValueError, match="slope"):
        get_activation("leaky_relu", slope=slope)


def test_slope_for_others():
    with pytest.raises(ValueError, match="slope belongs to leaky_relu"):
        get_activation("tanh", slope=0.1)
    with pytest.raises(ValueError, match="slope"):
        get_activation(get_activation("tanh"), slope=0.1)


def test_activations_pass_through_and_travel_to_other_processes():
    for act in (
        *ACTIVATIONS.values(),
        get_activation("leaky_relu", slope=0.3),
    ):
        assert get_activation(act) is act
        assert pickle.loads(pickle.dumps(act)) is act


def test_registry_cannot_be_changed():
    with pytest.raises(TypeError):
        ACTIVATIONS["mine"] = get_activation("tanh")
    mine = Activation("mine", np.sin, np.cos, lambda x: -np.sin(x))
    assert get_activation(mine) is mine
