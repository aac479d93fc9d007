"""The erf loss, its Hessian and its flow against their peers, in one run.

    python benchmarks/erf_flow.py           # k = d = 20, n = 10, 64 students
    python benchmarks/erf_flow.py --flows 64

*Gradient*: student evaluations a second of the compiled kernel, of NumPy and
of torch autograd, for a batch and for one student. *Hessian*: formula against
complex step. *Flow*: CPU seconds from a Glorot start to a gradient of 5e-8,
LSODA and Newton against SciPy's Radau with the same compiled gradient and
Hessian; each end is compared with a reference at a hundred times smaller
tolerances, and counts as the same minimum only within what the reference's
own gradient over the smallest eigenvalue allows. Ratios are within this run.
"""

from __future__ import annotations

import argparse
import sys

import numpy as np
from interactions import timed, torch_gradient

from helpers.copy_average.classify import classify_solution
from helpers.copy_average.flow import gradient_flow
from helpers.copy_average.initial import glorot_normal
from helpers.copy_average.networks import Student, Teacher, pack, unpack
from helpers.copy_average.objective import Objective
from helpers.core.tolerances import ROUNDING


def gradients(teacher: Teacher, n: int, batch: int, repeats: int) -> bool:
    students = glorot_normal(0, n, teacher.d, batch=batch)
    theta = pack(students.W, students.a)
    fast = Objective(teacher, n)
    slow = Objective(teacher, n, compiled=False)
    W, a = unpack(theta, n)
    routes = {
        "compiled": lambda: fast.loss_and_gradient(theta)[1],
        "NumPy": lambda: slow.loss_and_gradient(theta)[1],
        "torch autograd": torch_gradient(W, a, teacher),
    }
    print(f"gradient, {batch} student{'s' * (batch > 1)}")
    seconds, results = {}, {}
    for name, route in routes.items():
        if route is None:
            print(f"  {name:16} not installed")
            continue
        route()
        seconds[name], results[name] = timed(route, repeats)
        print(
            f"  {name:16}{batch / seconds[name]:12,.0f} evaluations/s  "
            f"compiled is {seconds[name] / seconds['compiled']:7.1f} times "
            "as fast"
        )
    return np.abs(results["compiled"] - results["NumPy"]).max() < ROUNDING


def hessians(teacher: Teacher, n: int, repeats: int) -> bool:
    student = glorot_normal(0, n, teacher.d)
    theta = pack(student.W, student.a)
    fast = Objective(teacher, n)
    slow = Objective(teacher, n, compiled=False)
    fast.hessian(theta)
    compiled, ours = timed(lambda: fast.hessian(theta), repeats)
    stepped, exact = timed(lambda: slow.hessian(theta), max(3, repeats // 20))
    print(
        f"Hessian, {theta.size} parameters\n  compiled is "
        f"{stepped / compiled:.1f} times as fast as the complex step"
    )
    return np.abs(ours - exact).max() < ROUNDING


def flows(teacher: Teacher, n: int, count: int) -> bool:
    print("flow to rest, CPU seconds a student")
    ours, radau, same = [], [], 0
    gradient_flow(glorot_normal(0, n, teacher.d), teacher)
    for seed in range(count):
        start = glorot_normal(seed, n, teacher.d)
        seconds, end = timed(lambda s=start: gradient_flow(s, teacher), 1)
        ours.append(seconds)
        seconds, _ = timed(
            lambda s=start: gradient_flow(
                s, teacher, method="Radau", polish=False
            ),
            1,
        )
        radau.append(seconds)
        same += _same_minimum(start, end, teacher)
    solution = classify_solution(end.student, teacher)
    print(
        f"  LSODA, then Newton {np.median(ours):.3f}\n"
        f"  Radau              {np.median(radau):.3f}\n"
        f"  Radau takes {np.sum(radau) / np.sum(ours):.1f} times as long\n"
        f"  same minimum as the tight reference: {same} of {count}\n"
        f"  the last: {solution.label}, gradient {solution.gradient:.1e}, "
        f"smallest eigenvalue {solution.smallest_eigenvalue:.2e}"
    )
    return same == count


def _same_minimum(start: Student, end, teacher: Teacher) -> bool:
    tight = gradient_flow(
        start, teacher, method="BDF", rtol=1e-8, atol=1e-10, polish=False
    )
    x, y = (pack(f.student.W, f.student.a) for f in (end, tight))
    allowed = tight.gradient * np.sqrt(x.size) / end.smallest_eigenvalue
    return bool(
        end.smallest_eigenvalue > 0 and np.linalg.norm(x - y) < 2 * allowed
    )


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--n", type=int, default=10)
    parser.add_argument("--k", type=int, default=20)
    parser.add_argument("--batch", type=int, default=64)
    parser.add_argument("--repeats", type=int, default=200)
    parser.add_argument("--flows", type=int, default=4)
    options = parser.parse_args(arguments)
    teacher = Teacher.orthonormal(options.k, options.k)
    fine = [
        gradients(teacher, options.n, options.batch, options.repeats),
        gradients(teacher, options.n, 1, options.repeats),
        hessians(teacher, options.n, options.repeats),
        flows(teacher, options.n, options.flows),
    ]
    return 0 if all(fine) else 1


if __name__ == "__main__":
    sys.exit(main())
