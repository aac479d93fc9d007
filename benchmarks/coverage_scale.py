"""Coverage of a layer on thousands of samples: graph, eigenbasis, N_K, s_K.

    python benchmarks/coverage_scale.py                    # n = 5000, K = 50
    python benchmarks/coverage_scale.py -n 2000 --neurons 64

Ten neighbours on digit-like samples: the bundled scans, each moved by a
little noise until there are enough of them. Prints CPU seconds of every
stage and the largest resident memory, and at n = 1000 how far sparse and
dense eigenbases are apart in N_K and s_K.
"""

from __future__ import annotations

import argparse
import resource
import time

import numpy as np

from helpers.core.data import load_digits_samples
from helpers.spectral_alignment.coverage import captured_features, coverage_gap
from helpers.spectral_alignment.graphs import graph_laplacian, knn_graph
from helpers.spectral_alignment.spectra import SOLVERS, laplacian_eigenbasis


def samples(n: int, seed: int = 0) -> np.ndarray:
    X, _ = load_digits_samples(None, 0)
    rng = np.random.default_rng(seed)
    chosen = X[rng.integers(len(X), size=n)]
    return chosen + 0.05 * rng.normal(size=chosen.shape)


def layer(X, neurons: int, seed: int = 1) -> np.ndarray:
    rng = np.random.default_rng(seed)
    z = X @ rng.normal(size=(X.shape[1], neurons))
    bias = z[rng.integers(len(X), size=neurons), np.arange(neurons)]
    return np.column_stack([np.maximum(z - bias, 0), np.ones(len(X))])


def staged(stages) -> list:
    """Run the stages in order, each on what the last one gave."""
    found = []
    for name, stage in stages:
        start = time.process_time()
        found.append(stage(*found))
        print(f"{name:28} {time.process_time() - start:7.2f} s CPU")
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("-n", type=int, default=5000)
    parser.add_argument("-K", type=int, default=50)
    parser.add_argument("--neurons", type=int, default=256)
    options = parser.parse_args()
    X = samples(options.n)
    *_, U, Z, N, s = staged(
        [
            ("graph and Laplacian", lambda: graph_laplacian(knn_graph(X, 10))),
            (
                "eigenbasis, shift-invert",
                lambda L: (
                    laplacian_eigenbasis(L, options.K, "shift_invert").vectors
                ),
            ),
            ("layer", lambda L, U: layer(X, options.neurons)),
            ("N_K", lambda L, U, Z: captured_features(Z, U)),
            ("s_K", lambda L, U, Z, N: coverage_gap(Z, U)),
        ]
    )
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    print(
        f"n = {options.n}, {options.neurons} neurons: N_K = {N:.3f} of "
        f"{options.K}, s_K = {s:.4f}; {peak:.2f} GB at most"
    )
    X = samples(1000)
    L, Z = graph_laplacian(knn_graph(X, 10)), layer(X, options.neurons)
    bases = [laplacian_eigenbasis(L, options.K, x) for x in SOLVERS[:2]]
    for name, measure in (("N_K", captured_features), ("s_K", coverage_gap)):
        values = [measure(Z, basis.vectors) for basis in bases]
        print(f"n = 1000: {name} differs by {np.ptp(values):.1e}")
    print(f"gap ratio {bases[0].info.gap_ratio:.3f}")


if __name__ == "__main__":
    main()
