"""The lowest Laplacian eigenpairs: shift-invert against dense, in one run.

    python benchmarks/laplacian_eigenpairs.py              # n = 800, K = 20
    python benchmarks/laplacian_eigenpairs.py -n 5000 -K 50

A 10-nearest-neighbour graph on random points of the plane. Prints the time
of each solver (least of the repeats), their ratio, and whether they agree:
eigenvalues, and the angle between the two spans where a gap separates them
from the rest.
"""

from __future__ import annotations

import argparse
import time

import numpy as np

from helpers.core.linalg import principal_angles
from helpers.core.tolerances import SETTLE_EXACT
from helpers.spectral_alignment.graphs import graph_laplacian, knn_graph
from helpers.spectral_alignment.spectra import SOLVERS, laplacian_eigenbasis


def timed(L, K: int, solver: str, repeats: int):
    """Least CPU seconds of the repeats, and the last result."""
    seconds = []
    for _ in range(repeats):
        start = time.process_time()
        basis = laplacian_eigenbasis(L, K, solver)
        seconds.append(time.process_time() - start)
    return min(seconds), basis


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("-n", type=int, default=800, help="samples")
    parser.add_argument("-K", type=int, default=20, help="frequencies")
    parser.add_argument("--neighbours", type=int, default=10)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args(arguments)
    points = np.random.default_rng(options.seed).normal(size=(options.n, 2))
    L = graph_laplacian(knn_graph(points, options.neighbours))
    results = {
        solver: timed(L, options.K, solver, options.repeats)
        for solver in SOLVERS
    }
    (slow, dense), (fast, krylov) = (results[s] for s in SOLVERS[:2])
    error = np.abs(dense.eigenvalues - krylov.eigenvalues).max()
    angle = principal_angles(dense.vectors, krylov.vectors)[-1]
    separated = not dense.info.poorly_separated
    agree = error < SETTLE_EXACT * dense.eigenvalues[-1]
    agree &= not separated or angle < np.sqrt(SETTLE_EXACT)
    print(
        f"n = {options.n}, K = {options.K}, "
        f"components = {dense.info.n_components}, "
        f"gap ratio = {dense.info.gap_ratio:.4g}"
    )
    print(f"dense        {slow:8.3f} s CPU")
    print(
        f"shift_invert {fast:8.3f} s CPU, {slow / max(fast, 1e-9):.1f} "
        "times as fast"
    )
    print(
        f"largest difference of eigenvalues {error:.1e}, angle of the "
        f"spans {angle:.1e}{'' if separated else ' (no gap)'}"
    )
    print("the solvers agree" if agree else "THE SOLVERS DISAGREE")
    return 0 if agree else 1


if __name__ == "__main__":
    raise SystemExit(main())
