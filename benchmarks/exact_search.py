"""The neuron of maximal gain, exactly: time against n, and against peers.

    python benchmarks/exact_search.py                  # n up to 2000
    python benchmarks/exact_search.py --sizes 100 200 400 --tree 12

Two moons, ten neighbours, K = 5 low frequencies on top of the inputs (rank
3). Prints CPU seconds of the certified sweep against n with the fitted
exponent, and the ratios on the same input, in one run, to
the sweep vectorised with NumPy, to the search by faces, and to brute force
over patterns with a linear programme a node. Compilation is not counted.
"""

from __future__ import annotations

import argparse
import time

import numpy as np
from sklearn.datasets import make_moons

from helpers.core.linalg import complement, orthonormal_basis
from helpers.core.statistics import log_log_slope
from helpers.core.tolerances import SETTLE_EXACT
from helpers.spectral_alignment.exact_search import maximal_gain_neuron
from helpers.spectral_alignment.exact_tree import branch_and_bound
from helpers.spectral_alignment.graphs import graph_laplacian, knn_graph
from helpers.spectral_alignment.spectra import laplacian_eigenbasis


def problem(n: int, K: int, seed: int):
    """Features, uncovered frequencies and covered span of two moons."""
    X, _ = make_moons(n, noise=0.08, random_state=seed)
    X = (X - X.mean(axis=0)) / X.std(axis=0)
    U = laplacian_eigenbasis(
        graph_laplacian(knn_graph(X, 10)), K, "shift_invert"
    ).vectors
    Phi = np.column_stack([X, np.ones(n)])
    Q = orthonormal_basis(Phi)
    return Phi, complement(Q, U), Q


def timed(search, repeats: int = 1):
    """Least CPU seconds of the repeats, and the last result."""
    seconds = []
    for _ in range(repeats):
        start = time.process_time()
        found = search()
        seconds.append(time.process_time() - start)
    return min(seconds), found


def growth(sizes, K: int, seed: int) -> None:
    print("     n     cells   CPU s  checked  gain          relaxed/exact")
    seconds = []
    for n in sizes:
        data = problem(n, K, seed)
        spent, found = timed(lambda d=data: maximal_gain_neuron(*d), 2)
        seconds.append(spent)
        print(
            f"{n:6}{found.cells:10}{spent:8.3f}{found.checked:9}  "
            f"{found.gain:.9f}{found.relaxed_bound / found.gain:10.4f}"
        )
    if len(sizes) > 2:
        print(
            "exponent of the time in n: "
            f"{log_log_slope(sizes, seconds).slope:.2f} over all sizes, "
            f"{np.diff(np.log(seconds))[-1] / np.diff(np.log(sizes))[-1]:.2f}"
            " over the last two"
        )


def peers(name: str, n: int, K: int, seed: int, search) -> bool:
    data = problem(n, K, seed)
    ours, found = timed(lambda: maximal_gain_neuron(*data), 5)
    theirs, other = timed(lambda: search(*data))
    agree = abs(found.gain - other.gain) < SETTLE_EXACT
    print(
        f"{name} at n = {n}: {theirs:.3f} s against {ours:.4f} s, "
        f"{theirs / ours:.1f} times as long; "
        + ("same gain" if agree else "THE GAINS DIFFER")
    )
    return agree


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument(
        "--sizes", type=int, nargs="+", default=[250, 500, 1000, 2000]
    )
    parser.add_argument("-K", type=int, default=5)
    parser.add_argument("--peer", type=int, default=400, help="n for NumPy")
    parser.add_argument("--faces", type=int, default=60)
    parser.add_argument("--tree", type=int, default=24)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args(arguments)
    K, seed = options.K, options.seed
    maximal_gain_neuron(*problem(20, K, seed))
    growth(options.sizes, K, seed)
    same = peers(
        "NumPy sweep",
        options.peer,
        K,
        seed,
        lambda *d: maximal_gain_neuron(*d, compiled=False),
    )
    same &= peers(
        "faces",
        options.faces,
        K,
        seed,
        lambda *d: maximal_gain_neuron(*d, method="faces"),
    )
    same &= peers(
        "all patterns, a linear programme a node",
        options.tree,
        K,
        seed,
        lambda *d: branch_and_bound(*d, prune=False),
    )
    return 0 if same else 1


if __name__ == "__main__":
    raise SystemExit(main())
