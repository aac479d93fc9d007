"""Population loss: hand values, autograd, sampling, laws."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from helpers.copy_average.networks import (
    Teacher,
    pack,
    unpack,
)
from helpers.copy_average.objective import Objective
from helpers.copy_average.population import (
    differentiated_hessian,
    function_norm,
    hessian_vector_product,
    population_hessian,
    population_loss,
    population_loss_grad,
)
from helpers.core.activations import ACTIVATIONS, get_activation

NAMES = sorted(ACTIVATIONS)


def random_problem(seed, batch=(), n=2, k=3, d=4):
    rng = np.random.default_rng(seed)
    teacher = Teacher(rng.standard_normal((k, d)), rng.standard_normal(k))
    W = rng.standard_normal((*batch, n, d))
    return W, rng.standard_normal((*batch, n)), teacher


# --- hand values ---------------------------------------------------------------


def test_function_norm_by_hand():
    for k in (1, 2, 7):
        teacher = Teacher.orthonormal(k)
        assert function_norm(teacher) == pytest.approx(k / 3)
        relu = k / 2 + k * (k - 1) / (2 * math.pi)
        assert function_norm(teacher, "relu") == pytest.approx(relu)
        assert function_norm(teacher, "identity") == pytest.approx(k)
        square = 3 * k + k * (k - 1)
        assert function_norm(teacher, "square") == pytest.approx(square)


def test_two_linear_networks():
    teacher = Teacher([[1.0, 0.0], [0.0, 2.0]], [3.0, 1.0])
    W, a = [[1.0, 1.0]], [2.0]
    # f - f* = 2 (x1 + x2) - 3 x1 - 2 x2 = -x1
    assert population_loss(W, a, teacher, "identity") == pytest.approx(1)
    _, grad_W, grad_a = population_loss_grad(W, a, teacher, "identity")
    np.testing.assert_allclose(grad_W, [[-4, 0]], atol=1e-14)
    np.testing.assert_allclose(grad_a, [-2])


@pytest.mark.parametrize("k", [2, 5, 9])
def test_force_at_the_copy_point(k):
    # one neuron on one of k teacher neurons: the others pull with 2 / pi
    teacher = Teacher.orthonormal(k)
    _, grad_W, grad_a = population_loss_grad(teacher.V[:1], [1.0], teacher)
    expected = np.zeros(k + 1)
    expected[1:k] = -2 / math.pi
    np.testing.assert_allclose(grad_W[0], expected, atol=1e-14)
    np.testing.assert_allclose(grad_a, 0, atol=1e-14)


@pytest.mark.parametrize("name", NAMES)
def test_the_teacher_itself_is_a_zero(name):
    teacher = random_problem(3)[2]
    loss, *grads = population_loss_grad(teacher.V, teacher.b, teacher, name)
    assert abs(loss) < 1e-11
    np.testing.assert_allclose(pack(*grads), 0, atol=1e-11)


# --- independent ways ------------------------------------------------------------


@pytest.mark.parametrize("name", NAMES)
def test_gradient_against_differences(name):
    W, a, teacher = random_problem(0, batch=(2,))
    loss, *grads = population_loss_grad(W, a, teacher, name)
    np.testing.assert_allclose(loss, population_loss(W, a, teacher, name))
    theta, h = pack(W, a), 1e-5
    for column, unit in enumerate(h * np.eye(theta.shape[-1])):
        up = population_loss(*unpack(theta + unit, 2), teacher, name)
        down = population_loss(*unpack(theta - unit, 2), teacher, name)
        np.testing.assert_allclose(
            pack(*grads)[:, column],
            (up - down) / (2 * h),
            rtol=1e-6,
            atol=1e-7,
        )


@pytest.mark.parametrize("name", NAMES)
def test_loss_by_sampling(name):
    W, a, teacher = random_problem(1)
    act = get_activation(name)
    x = np.random.default_rng(2).standard_normal((100_000, 4))
    squares = (act(x @ W.T) @ a - act(x @ teacher.V.T) @ teacher.b) ** 2
    error = squares.std() / math.sqrt(len(x))
    assert abs(squares.mean() - population_loss(W, a, teacher, name)) < (
        4 * error
    )


def test_erf_against_autograd():
    torch = pytest.importorskip("torch")
    W, a, teacher = random_problem(4, batch=(3,))
    tensors = [torch.tensor(x, requires_grad=True) for x in (W, a)]
    V, b = torch.tensor(np.array(teacher.V)), torch.tensor(np.array(teacher.b))

    def g(x, y):
        sizes = torch.sqrt(
            (1 + (x * x).sum(-1))[..., :, None]
            * (1 + (y * y).sum(-1))[..., None, :]
        )
        return 2 / math.pi * torch.arcsin(x @ y.transpose(-1, -2) / sizes)

    w, c = tensors
    loss = (c[:, None, :] @ g(w, w) @ c[..., None]).squeeze()
    loss = loss - 2 * (c * (g(w, V) @ b)).sum(-1) + b @ g(V, V) @ b
    loss.sum().backward()
    ours = population_loss_grad(W, a, teacher)
    theirs = (loss.detach(), w.grad, c.grad)
    for x, y in zip(ours, theirs, strict=True):
        np.testing.assert_allclose(x, y.numpy(), rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize("name", NAMES)
def test_hessian_against_differences(name):
    W, a, teacher = random_problem(5, n=2, k=2, d=2)
    hessian = population_hessian(W, a, teacher, name)
    np.testing.assert_array_equal(hessian, hessian.T)
    theta, h = pack(W, a), 1e-4
    for i, unit in enumerate(h * np.eye(theta.size)):
        up, down = (
            pack(*population_loss_grad(*unpack(x, 2), teacher, name)[1:])
            for x in (theta + unit, theta - unit)
        )
        np.testing.assert_allclose(
            hessian[i], (up - down) / (2 * h), rtol=1e-4, atol=1e-5
        )


# --- laws -------------------------------------------------------------------------


@settings(max_examples=25, deadline=None)
@given(
    seed=st.integers(0, 10**6),
    n=st.integers(1, 3),
    k=st.integers(1, 3),
    name=st.sampled_from(["erf", "relu", "gelu", "sigmoid", "leaky_relu"]),
)
def test_symmetries(seed, n, k, name):
    W, a, teacher = random_problem(seed, n=n, k=k, d=3)
    loss = float(population_loss(W, a, teacher, name))
    assert loss >= -1e-10
    rng = np.random.default_rng(seed)
    order = rng.permutation(n)
    rotation = np.linalg.qr(rng.standard_normal((3, 3)))[0]
    turned = Teacher(teacher.V @ rotation, teacher.b)
    for other in (
        population_loss(W[order], a[order], teacher, name),
        population_loss(W @ rotation, a, turned, name),
    ):
        assert float(other) == pytest.approx(loss, rel=1e-9, abs=1e-10)
    if ACTIVATIONS[name].odd:
        flipped = population_loss(-W, -a, teacher, name)
        assert float(flipped) == pytest.approx(loss, abs=1e-12)
    if ACTIVATIONS[name].homogeneous:
        scaled = population_loss(3 * W, a / 3, teacher, name)
        assert float(scaled) == pytest.approx(loss, rel=1e-9, abs=1e-12)


@settings(max_examples=30, deadline=None)
@given(
    seed=st.integers(0, 10**6),
    n=st.integers(1, 4),
    k=st.integers(1, 4),
    name=st.sampled_from(["erf", "relu", "gelu", "identity"]),
)
def test_gradient_and_hessian_move_with_the_student(seed, n, k, name):
    """Neurons in another order, single ones turned round, inputs rotated.

    Each is an orthogonal map Q of the parameters, and the loss of the moved
    problem at the moved student is L: so its gradient is Q times the
    gradient, its Hessian Q H Q'. On the NumPy path, and on the one that is
    compiled for erf.
    """
    d = 4
    W, a, teacher = random_problem(seed, n=n, k=k, d=d)
    rng = np.random.default_rng(seed)
    odd = ACTIVATIONS[name].odd
    sign = rng.choice([-1.0, 1.0], n) if odd else np.ones(n)
    order = rng.permutation(n)
    turn = np.linalg.qr(rng.standard_normal((d, d)))[0]
    moved = (sign[:, None] * W)[order] @ turn, (sign * a)[order]
    turned = Teacher(teacher.V @ turn, teacher.b)
    neuron = np.eye(d + 1)
    neuron[:d, :d] = turn.T  # a column: w -> turn' w
    Q = np.kron(np.eye(n)[order] * sign, neuron)
    np.testing.assert_allclose(Q @ pack(W, a), pack(*moved), atol=1e-13)
    for before, after in (
        (
            population_loss_grad(W, a, teacher, name),
            population_loss_grad(*moved, turned, name),
        ),
        (
            Objective(teacher, n, name).loss_and_gradient(pack(W, a)),
            Objective(turned, n, name).loss_and_gradient(pack(*moved)),
        ),
    ):
        assert after[0] == pytest.approx(float(before[0]), rel=1e-9, abs=1e-9)
        g, h = (x[1] if len(x) == 2 else pack(*x[1:]) for x in (before, after))
        np.testing.assert_allclose(h, Q @ g, rtol=1e-8, atol=1e-9)
    if name != "relu":
        H = population_hessian(W, a, teacher, name)
        np.testing.assert_allclose(
            population_hessian(*moved, turned, name),
            Q @ H @ Q.T,
            rtol=1e-8,
            atol=1e-9,
        )


@settings(max_examples=25, deadline=None)
@given(seed=st.integers(0, 10**6))
def test_relu_gradient_flow_conserves_balance(seed):
    W, a, teacher = random_problem(seed)
    _, grad_W, grad_a = population_loss_grad(W, a, teacher, "relu")
    np.testing.assert_allclose(
        (grad_W * W).sum(axis=-1), a * grad_a, rtol=1e-9, atol=1e-10
    )


@pytest.mark.parametrize("name", ["erf", "relu", "tanh"])
def test_batches_are_loops(name):
    W, a, teacher = random_problem(6, batch=(2, 3))
    together = population_loss_grad(W, a, teacher, name)
    for index in np.ndindex(2, 3):
        alone = population_loss_grad(W[index], a[index], teacher, name)
        for x, y in zip(together, alone, strict=True):
            np.testing.assert_allclose(x[index], y, rtol=1e-12, atol=1e-14)


@pytest.mark.parametrize("name", NAMES)
def test_degenerate_students(name):
    # dead, doubled and vanishing neurons give finite gradients
    teacher = Teacher.orthonormal(2)
    W = np.array([[1.0, 0, 0], [1.0, 0, 0], [0, 0, 0], [0, 0, 2.0]])
    a = np.array([1.0, -1.0, 1.0, 0.0])
    loss, grad_W, grad_a = population_loss_grad(W, a, teacher, name)
    for x in (loss, grad_W, grad_a):
        assert np.all(np.isfinite(x))
    np.testing.assert_allclose(grad_W[3], 0, atol=1e-15)


def test_size_one():
    teacher = Teacher([[2.0]], [3.0])
    assert (teacher.k, teacher.d) == (1, 1)
    assert population_loss([[2.0]], [3.0], teacher) == pytest.approx(0)


# --- bundles and shapes -------------------------------------------------------------


@pytest.mark.parametrize("function", [population_loss, population_loss_grad])
@pytest.mark.parametrize(
    "W, a",
    [
        ([1.0, 0.0, 0.0], 1.0),
        ([[1.0, 0.0]], [1.0]),
        ([[1.0, 0.0, 0.0]], [1.0, 2.0]),
        ([[math.nan, 0.0, 0.0]], [1.0]),
        ([[1.0, 0.0, 0.0]], [math.inf]),
    ],
)
@pytest.mark.parametrize("name", ["erf", "relu", "sigmoid"])
def test_bad_students(function, W, a, name):
    argument = "a" if np.any(np.isinf(a)) else "W"
    with pytest.raises(ValueError, match=f"^{argument} must"):
        function(W, a, Teacher.orthonormal(2), name)


@pytest.mark.parametrize("name", ["erf", "tanh"])
def test_silent_neurons_are_trivial_saddles(name):
    # a = 0 and a direction at right angles to the teacher, or w = 0
    teacher = Teacher.orthonormal(3)
    for W in (np.eye(4)[3:], np.zeros((1, 4))):
        loss, *grads = population_loss_grad(W, [0.0], teacher, name)
        np.testing.assert_allclose(pack(*grads), 0, atol=1e-14)
        assert loss == pytest.approx(function_norm(teacher, name))
        hessian = population_hessian(W, [0.0], teacher, name)
        eigenvalues = np.linalg.eigvalsh(hessian)
        assert eigenvalues[0] < -0.1 and eigenvalues[-1] > 0.1


def test_hessian_refuses_a_batch():
    W, a, teacher = random_problem(0, batch=(2,))
    with pytest.raises(ValueError, match="W must"):
        population_hessian(W, a, teacher)


# --- the Hessian times a vector ---------------------------------------------


def test_hessian_vector_product_by_hand():
    # one neuron on one teacher neuron: the Hessian is 2 E[Df Df']
    by_w = 2 * (2 / math.pi) / (3 * math.sqrt(3))
    mixed = 4 / math.pi * (1 / math.sqrt(3) - 1 / (2 * math.sqrt(3)))
    by_a = 4 / math.pi * math.asin(1 / 2)
    hW, ha = hessian_vector_product(
        [[1.0]], [1.0], [[3.0]], [-1.0], Teacher.orthonormal(1, 1)
    )
    np.testing.assert_allclose(hW, [[3 * by_w - mixed]])
    np.testing.assert_allclose(ha, [3 * mixed - by_a])


@pytest.mark.parametrize("name", NAMES)
def test_hessian_vector_product_against_the_hessian(name):
    W, a, teacher = random_problem(7, batch=(3,))
    dW, da = random_problem(8, batch=(2, 3))[:2]
    product = pack(*hessian_vector_product(W, a, dW, da, teacher, name))
    assert product.shape == (2, 3, 10)
    for i, j in np.ndindex(2, 3):
        H = differentiated_hessian(W[j], a[j], teacher, name)
        expected = H @ pack(dW[i, j], da[i, j])
        np.testing.assert_allclose(
            product[i, j], expected, rtol=1e-6, atol=1e-6
        )
    if name == "erf":  # by its formula, which no derivative was taken of
        H = Objective(teacher, 2).hessian(pack(W[0], a[0]))
        np.testing.assert_allclose(
            product[0, 0], H @ pack(dW[0, 0], da[0, 0]), atol=1e-12
        )


@settings(max_examples=25, deadline=None)
@given(
    seed=st.integers(0, 10**6),
    n=st.integers(1, 4),
    name=st.sampled_from(["erf", "gelu"]),
)
def test_hessian_vector_product_is_linear_and_symmetric(seed, n, name):
    W, a, teacher = random_problem(seed, n=n)
    u, v = (random_problem(seed + i, n=n)[:2] for i in (1, 2))
    times_u, times_v = (
        pack(*hessian_vector_product(W, a, *x, teacher, name)) for x in (u, v)
    )
    assert pack(*u) @ times_v == pytest.approx(pack(*v) @ times_u, abs=1e-10)
    both = [2 * x - 3 * y for x, y in zip(u, v, strict=True)]
    np.testing.assert_allclose(
        pack(*hessian_vector_product(W, a, *both, teacher, name)),
        2 * times_u - 3 * times_v,
        atol=1e-10,
    )


@pytest.mark.parametrize(
    "dW, da, word",
    [
        ([[1.0, 0.0]], [1.0], "dW must have shape"),
        ([[1.0, 0.0, 0.0]], [1.0, 1.0], "dW must have shape"),
        ([[math.nan, 0.0, 0.0]], [1.0], "dW must be finite"),
        ([[1.0, 0.0, 0.0]], [math.inf], "da must be finite"),
    ],
)
def test_bad_vectors(dW, da, word):
    with pytest.raises(ValueError, match=word):
        hessian_vector_product(
            [[1.0, 0.0, 0.0]], [1.0], dW, da, Teacher.orthonormal(2)
        )
