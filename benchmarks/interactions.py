"""Interactions and population gradients against their peers, in one run.

    python benchmarks/interactions.py            # n = 10, k = d = 20, 64 seeds

Two tables. *Quadrature*: accuracy and CPU time of the rule the helpers use
against Gauss-Hermite with as many nodes and with 360, on one tanh pair.
*Gradient*: seed evaluations a second of the batched erf gradient, of a loop
over seeds, and of torch autograd where torch is installed. Ratios are within
this run; all answers are compared.
"""

from __future__ import annotations

import argparse
import math
import sys
import time
from collections.abc import Callable

import numpy as np

from helpers.copy_average.networks import Teacher
from helpers.copy_average.population import population_loss_grad
from helpers.copy_average.quadrature import (
    gauss_hermite_nodes,
    product_expectations,
    trapezoid_nodes,
)
from helpers.core.activations import get_activation
from helpers.core.tolerances import ROUNDING

REFERENCE_RADIUS = 16.0


def timed(function: Callable, repeats: int):
    """Least CPU seconds of the repeats, and the last result."""
    seconds = []
    for _ in range(repeats):
        start = time.process_time()
        result = function()
        seconds.append(time.process_time() - start)
    return max(min(seconds), sys.float_info.epsilon), result


def quadrature(radius: float, repeats: int) -> bool:
    tanh = get_activation("tanh")
    pairs = [(tanh.value, tanh.value)]

    def integrate(rule):
        [value] = product_expectations(
            pairs, radius, 1.0, 0.9, tanh, rule=rule
        )
        return float(value)

    exact = integrate(trapezoid_nodes(REFERENCE_RADIUS, tanh))
    equal = trapezoid_nodes(radius, tanh)
    rules = {
        "equal steps": equal,
        "Gauss-Hermite": gauss_hermite_nodes(min(equal[0].size, 360)),
        "Gauss-Hermite, most nodes": gauss_hermite_nodes(360),
    }
    print(f"tanh pair, norms {radius:g} and 1, cosine 0.9")
    errors = {}
    for name, rule in rules.items():
        seconds, value = timed(lambda rule=rule: integrate(rule), repeats)
        errors[name] = max(abs(value - exact), np.finfo(float).eps)
        print(
            f"  {name:26}{rule[0].size:5d} nodes  error {errors[name]:.1e}"
            f"  {1e3 * seconds:8.3f} ms"
        )
    return errors["equal steps"] < ROUNDING


def torch_gradient(W, a, teacher: Teacher) -> Callable | None:
    try:
        import torch
    except ImportError:
        return None
    torch.set_num_threads(1)
    V, b = (torch.tensor(np.array(x)) for x in (teacher.V, teacher.b))

    def interact(x, y):
        sizes = (1 + (x * x).sum(-1))[..., :, None]
        sizes = sizes * (1 + (y * y).sum(-1))[..., None, :]
        cosine = x @ y.transpose(-1, -2) / sizes.sqrt()
        return 2 / math.pi * torch.arcsin(cosine)

    def gradient():
        w = torch.tensor(W, requires_grad=True)
        c = torch.tensor(a, requires_grad=True)
        own = (c[:, None, :] @ interact(w, w) @ c[..., None]).sum()
        (own - 2 * (c * (interact(w, V) @ b)).sum()).backward()
        return w.grad.numpy(), c.grad.numpy()

    return gradient


def gradients(n: int, k: int, seeds: int, repeats: int) -> bool:
    rng, teacher = np.random.default_rng(0), Teacher.orthonormal(k, k)
    W = rng.standard_normal((seeds, n, k)) / math.sqrt(k)
    a = rng.standard_normal((seeds, n))

    def loop():
        grads = [
            population_loss_grad(w, c, teacher)
            for w, c in zip(W, a, strict=True)
        ]
        return tuple(np.array(x) for x in zip(*grads, strict=True))[1:]

    ways = {
        "batched": lambda: population_loss_grad(W, a, teacher)[1:],
        "loop over seeds": loop,
        "torch autograd": torch_gradient(W, a, teacher),
    }
    print(f"erf loss and gradient, n = {n}, k = d = {k}, {seeds} seeds")
    reference, agree, fastest = ways["batched"](), True, None
    for name, way in ways.items():
        if way is None:
            print(f"  {name:18} not installed")
            continue
        seconds, grads = timed(way, repeats)
        fastest = fastest or seconds
        agree &= all(
            np.allclose(x, y, rtol=0, atol=ROUNDING)
            for x, y in zip(grads, reference, strict=True)
        )
        print(
            f"  {name:18}{seeds / seconds:12,.0f} seed evaluations/s  "
            f"{seconds / fastest:6.2f} times the batched time"
        )
    return agree


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("-n", type=int, default=10, help="student neurons")
    parser.add_argument("-k", type=int, default=20, help="teacher neurons")
    parser.add_argument("--seeds", type=int, default=64)
    parser.add_argument("--radius", type=float, default=3.0)
    parser.add_argument("--repeats", type=int, default=20)
    options = parser.parse_args(arguments)
    accurate = quadrature(options.radius, options.repeats)
    agree = gradients(options.n, options.k, options.seeds, options.repeats)
    if not (accurate and agree):
        print("the answers DISAGREE")
        return 1
    print("all gradients agree; equal steps are accurate to rounding")
    return 0


if __name__ == "__main__":
    sys.exit(main())
