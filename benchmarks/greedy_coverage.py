"""Greedy coverage: rank-one updates against naive re-factorisation.

    python benchmarks/greedy_coverage.py
    python benchmarks/greedy_coverage.py --large 5000 --small 300

Ten neighbours, samples with few-dimensional structure (swiss roll), K low
frequencies, a pool of ReLU neurons. At the small size both routes choose
from the same pool in one run: the naive one takes a new singular value
decomposition of the features for every candidate and step. At the large
size the updates choose 64 neurons; printed are CPU seconds and the largest
resident memory of the process, which an (n, n) projector of float64 would
raise by 8 n^2 bytes.
"""

from __future__ import annotations

import argparse
import resource
import time

import numpy as np
from sklearn.datasets import make_swiss_roll

from helpers.spectral_alignment.coverage import (
    captured_features,
    choose_features,
    coverage_gap,
)
from helpers.spectral_alignment.graphs import graph_laplacian, knn_graph
from helpers.spectral_alignment.spectra import laplacian_eigenbasis


def problem(n: int, K: int, pool: int, seed: int = 0):
    """Low frequencies, inputs with bias, and a pool of random neurons."""
    X, _ = make_swiss_roll(n, noise=0.05, random_state=seed)
    X = (X - X.mean(axis=0)) / X.std(axis=0)
    L = graph_laplacian(knn_graph(X, 10))
    U = laplacian_eigenbasis(L, K, "shift_invert").vectors
    rng = np.random.default_rng(seed)
    z = X @ rng.normal(size=(3, pool))
    bias = z[rng.integers(n, size=pool), np.arange(pool)]
    return U, np.column_stack([X, np.ones(n)]), np.maximum(z - bias, 0)


def naive(pool, U, t: int, start) -> list[int]:
    """Every candidate with a factorisation of its own, every step."""
    H, chosen = start, []
    for _ in range(t):
        captured = [
            -np.inf
            if j in chosen
            else captured_features(np.column_stack([H, h]), U)
            for j, h in enumerate(pool.T)
        ]
        chosen.append(int(np.argmax(captured)))
        H = np.column_stack([H, pool[:, chosen[-1]]])
    return chosen


def timed(run):
    start = time.process_time()
    found = run()
    return time.process_time() - start, found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--small", type=int, default=300)
    parser.add_argument("--large", type=int, default=5000)
    parser.add_argument("--neurons", type=int, default=64)
    parser.add_argument("--pool", type=int, default=1000)
    options = parser.parse_args()

    U, Phi, pool = problem(options.small, 10, 200)
    few = options.neurons
    slow, wanted = timed(lambda: naive(pool, U, few, Phi))
    fast, found = timed(lambda: choose_features(pool, U, few, Phi))
    print(
        f"n = {options.small}, {few} of {pool.shape[1]} neurons: "
        f"naive {slow:.2f} s, updates {fast:.4f} s, ratio {slow / fast:.0f}; "
        f"same selection: {wanted == found.tolist()}"
    )

    spent, (U, Phi, pool) = timed(
        lambda: problem(options.large, 50, options.pool)
    )
    print(f"n = {options.large}: graph, 50 frequencies, pool {spent:.2f} s")
    spent, found = timed(
        lambda: choose_features(pool, U, options.neurons, Phi)
    )
    Z = np.column_stack([Phi, pool[:, found]])
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    print(
        f"{len(found)} of {options.pool} neurons {spent:.2f} s, N_K = "
        f"{captured_features(Z, U):.2f} of 50, s_K = {coverage_gap(Z, U):.3f};"
        f" {peak:.2f} GB at most"
    )


if __name__ == "__main__":
    main()
