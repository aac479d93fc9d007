"""SGD and Adam: torch step by step, schedules, classes, refusals."""

import math

import numpy as np
import pytest

from helpers.copy_average.empirical import network
from helpers.copy_average.inputs import sample_inputs
from helpers.copy_average.networks import Teacher
from helpers.copy_average.population import (
    population_loss,
    population_loss_grad,
)
from helpers.copy_average.training import train_and_classify, train_sgd_adam


def problem(seed, n, d=4, batch=()):
    rng = np.random.default_rng(seed)
    return rng.normal(size=(*batch, n, d)), rng.normal(size=(*batch, n))


def test_adam_and_sgd_against_torch():
    torch = pytest.importorskip("torch", reason="torch is the witness")
    teacher, W, a = Teacher.orthonormal(3), *problem(8, n=2)
    rules = {"adam": torch.optim.Adam, "sgd": torch.optim.SGD}
    for optimizer, rule in rules.items():
        run = train_sgd_adam(
            W,
            a,
            teacher,
            steps=40,
            batch=8,
            lr=0.05,
            rng=9,
            optimizer=optimizer,
            schedule="constant",
        )
        w, b = (torch.tensor(v, requires_grad=True) for v in (W, a))
        steps, rng = rule([w, b], lr=0.05), np.random.default_rng(9)
        for _ in range(40):
            x = rng.standard_normal((8, 4))
            y = torch.tensor(network(teacher.V, teacher.b, x))
            steps.zero_grad()
            hidden = torch.erf(torch.tensor(x) @ w.T / math.sqrt(2))
            ((hidden @ b - y) ** 2).mean().backward()
            steps.step()
        np.testing.assert_allclose(
            run.student.W, w.detach().numpy(), atol=1e-12
        )
        np.testing.assert_allclose(
            run.student.a, b.detach().numpy(), atol=1e-12
        )


def test_full_gradient_is_gradient_descent():
    teacher, W, a = Teacher.orthonormal(3), *problem(9, n=2)
    run = train_sgd_adam(
        W, a, teacher, steps=2, batch=None, lr=0.1, optimizer="sgd"
    )
    # the cosine schedule: rates 0.1 and 0.05
    for rate in (0.1, 0.05):
        _, gW, ga = population_loss_grad(W, a, teacher)
        W, a = W - rate * gW, a - rate * ga
    np.testing.assert_allclose(run.student.W, W, atol=1e-14)
    np.testing.assert_allclose(run.student.a, a, atol=1e-14)


def test_seeds_batch_and_records():
    teacher = Teacher.orthonormal(2)
    W, a = problem(10, n=1, d=3, batch=(4,))
    run = train_sgd_adam(
        W, a, teacher, steps=30, batch=16, lr=0.01, rng=3, records=3
    )
    assert run.losses.shape == (4, 4) and run.steps.tolist() == [0, 10, 20, 30]
    np.testing.assert_allclose(run.losses[0], population_loss(W, a, teacher))
    np.testing.assert_allclose(
        run.losses[-1],
        population_loss(run.student.W, run.student.a, teacher),
    )
    again = train_sgd_adam(W, a, teacher, steps=30, batch=16, lr=0.01, rng=3)
    np.testing.assert_array_equal(run.student.W, again.student.W)


def test_sampler_is_used():
    teacher, calls = Teacher.orthonormal(2), []

    def sampler(rng, shape):
        calls.append(shape)
        return sample_inputs("uniform", rng, shape)

    train_sgd_adam(
        np.ones((5, 1, 3)),
        np.ones((5, 1)),
        teacher,
        sampler,
        steps=2,
        batch=7,
        lr=0.1,
    )
    assert calls == [(5, 7, 3), (5, 7, 3)]


@pytest.mark.parametrize("optimizer", ["flow", "gd", "sgd", "adam"])
def test_train_and_classify(optimizer):
    """Small enough that every way of training ends at the only minimum."""
    found = train_and_classify(optimizer, 3, 2, seed=5, steps=300, batch=16)
    assert found["label"] == "optimal_ca" and found["status"] == "converged"
    assert found["loss"] == pytest.approx(0.0232217, abs=1e-6)
    assert found["smallest_eigenvalue"] > 0 and found["gradient"] < 1e-9


@pytest.mark.parametrize(
    "bad",
    [
        {"steps": 0},
        {"batch": 0},
        {"lr": 0.0},
        {"lr": np.nan},
        {"schedule": "linear"},
        {"optimizer": "rmsprop"},
        {"records": 0},
    ],
)
def test_bad_runs(bad):
    good = {"steps": 2, "batch": 2, "lr": 0.1}
    with pytest.raises(ValueError, match=next(iter(bad))):
        train_sgd_adam([[1.0]], [1.0], Teacher.orthonormal(1, 1), **good | bad)


def test_bad_students_and_tasks():
    with pytest.raises(ValueError, match="W must"):
        train_sgd_adam(
            [[1.0]], [1.0], Teacher.orthonormal(2), steps=1, batch=1, lr=0.1
        )
    with pytest.raises(ValueError, match="optimizer"):
        train_and_classify("lbfgs", 3, 2, 0)
