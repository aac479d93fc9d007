"""Levenberg-Marquardt on quadratic systems against SciPy, in one run.

    python benchmarks/levenberg_marquardt.py              # 30 unknowns
    python benchmarks/levenberg_marquardt.py --unknowns 12

Random systems of as many quadratic equations as unknowns, each with a real
solution by construction; every solver has the same start. Compared are the
compiled loop, the NumPy batch and SciPy's ``least_squares(method="lm")`` with
the analytic Jacobian, one system after the other. Rates are systems a second
of CPU time, the median of the repeats; ratios are within this run. Exits with
1 if the compiled loop is less than five times as fast as SciPy or matches
fewer systems by more than two standard errors.

The three differ in which systems they match: a match probability therefore
belongs to a solver, a law of starts and a number of starts.
"""

from __future__ import annotations

import argparse
import sys
import time

import numpy as np
from scipy.optimize import least_squares

from helpers.allocation.levenberg import solve_quadratics
from helpers.core.tolerances import MATCHED_RELATIVE

BAR = 5.0
TIGHT = np.finfo(float).eps * 5


def systems(K: int, p: int, seed: int):
    """Symmetric forms, linear parts, constants and one start for each."""
    rng = np.random.default_rng(seed)
    Q = rng.normal(size=(K, p, p, p))
    Q = (Q + np.swapaxes(Q, 2, 3)) / (2 * p**0.5)
    linear, w = rng.normal(size=(K, p, p)), rng.normal(size=(K, p))
    constant = -np.einsum("kipq,kp,kq->ki", Q, w, w)
    constant -= np.einsum("kip,kp->ki", linear, w)
    return Q, linear, constant, rng.normal(size=(K, 1, p))


def by_scipy(Q, linear, constant, starts, most: int):
    """Whether SciPy matches each system."""
    matched = np.zeros(len(Q), dtype=bool)
    for k, (A, L, c) in enumerate(zip(Q, linear, constant, strict=True)):
        end = least_squares(
            lambda w, A=A, L=L, c=c: (A @ w + L) @ w + c,
            starts[k, 0],
            jac=lambda w, A=A, L=L: 2 * (A @ w) + L,
            method="lm",
            xtol=TIGHT,
            ftol=TIGHT,
            gtol=TIGHT,
            max_nfev=most,
        )
        relative = np.linalg.norm(end.fun) / np.linalg.norm(c)
        matched[k] = relative < MATCHED_RELATIVE
    return matched


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--unknowns", type=int, default=30)
    parser.add_argument("--systems", type=int, default=200)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--most", type=int, default=150)
    args = parser.parse_args()
    drawn = systems(args.systems, args.unknowns, 0)

    def batch(compiled):
        done = solve_quadratics(*drawn, most=args.most, compiled=compiled)
        return done.matched

    routes = {
        "compiled": lambda: batch(True),
        "NumPy batch": lambda: batch(False),
        "SciPy lm": lambda: by_scipy(*drawn, args.most),
    }
    small = (part[:2] for part in drawn)
    solve_quadratics(*small, compiled=True)
    seconds = {name: [] for name in routes}
    matched = {}
    for _ in range(args.repeats):
        for name, route in routes.items():
            begun = time.process_time()
            matched[name] = route()
            seconds[name].append(time.process_time() - begun)
    rate = {n: args.systems / np.median(s) for n, s in seconds.items()}
    print(f"{args.systems} systems, {args.unknowns} unknowns, one start each")
    for name in routes:
        print(
            f"  {name:12}{rate[name]:9,.0f} systems/s  matched "
            f"{matched[name].mean():.3f}  compiled is "
            f"{rate['compiled'] / rate[name]:5.1f} times as fast"
        )
    votes = np.stack(list(matched.values()))
    agree = (votes == votes[0]).all(axis=0).mean()
    print(f"  all three agree on {agree:.3f}, together match "
          f"{votes.any(axis=0).mean():.3f}")  # fmt: skip
    # paired: only systems on which the two differ carry information
    ahead = (matched["SciPy lm"] & ~matched["compiled"]).sum()
    behind = (matched["compiled"] & ~matched["SciPy lm"]).sum()
    fair = ahead - behind <= 2 * max(ahead + behind, 1) ** 0.5
    fast = rate["compiled"] >= BAR * rate["SciPy lm"]
    print(f"  bar of {BAR:g} times SciPy, success not worse: {fast and fair}")
    return 0 if fast and fair else 1


if __name__ == "__main__":
    sys.exit(main())
