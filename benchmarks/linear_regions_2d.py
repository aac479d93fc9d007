"""Exact cells of ReLU networks in the plane, beside regioncam.

    python benchmarks/linear_regions_2d.py              # three networks
    python benchmarks/linear_regions_2d.py --large      # 128 x 6, a million
    python benchmarks/linear_regions_2d.py --hundred    # equal counts
    REGIONCAM=/somewhere python benchmarks/linear_regions_2d.py

Networks of ``helpers.linear_regions.random_networks.benchmark_network`` on
[-1, 1]^2. The routes take turns, and medians of CPU time (``process_time``,
one thread) are printed with their ratios, so that other work on the machine
hits all alike. ``regioncam`` (Rust, single precision, MIT or Apache) is an
oracle for developers and no dependency of the book: install it anywhere and
name the folder in ``REGIONCAM``. Without it its columns say "absent".

SplineCam's route (Humayun et al., CVPR 2023) was measured once with its
published code on one core, 1.4 s, 12.9 s and 46 s on these networks; those
figures are quoted, not measured here.
"""

from __future__ import annotations

import argparse
import os
import resource
import statistics
import sys
import time

import numpy as np

from helpers.linear_regions import regions_2d_compiled
from helpers.linear_regions.random_networks import (
    benchmark_network,
    he_network,
)
from helpers.linear_regions.regions_2d import regions_2d

SPLINECAM = {(16, 3): 1.4, (32, 4): 12.9, (64, 4): 46.0}
MANY = 10**8


def regioncam():
    """The module, or None."""
    sys.path.append(os.environ.get("REGIONCAM", ""))
    try:
        import regioncam as module
    except ImportError:
        return None
    return module


def ours(layers, compiled):
    return regions_2d(layers, compiled=compiled, max_cells=MANY).n_cells


def theirs(module, layers):
    mesh = module.Regioncam(size=1)
    for i, (W, b) in enumerate(layers):
        mesh.linear(W, b)
        if i < len(layers) - 1:
            mesh.relu()
    return mesh.num_faces


def in_their_form(layers):
    return [
        (np.ascontiguousarray(W.T, np.float32), b.astype(np.float32))
        for W, b in layers
    ]


def routes(module, layers):
    found = {"NumPy": lambda: ours(layers, False)}
    if regions_2d_compiled.AVAILABLE:
        found["compiled"] = lambda: ours(layers, True)
    if module is not None:
        single = in_their_form(layers)
        found["regioncam"] = lambda: theirs(module, single)
    return found


def interleaved(tasks, repeats):
    """Median CPU seconds of each task, and what it returned."""
    seconds = {name: [] for name in tasks}
    values = {name: task() for name, task in tasks.items()}  # warm
    for _ in range(repeats):
        for name, task in tasks.items():
            began = time.process_time()
            task()
            seconds[name].append(time.process_time() - began)
    return {n: statistics.median(s) for n, s in seconds.items()}, values


def compare(module, repeats) -> None:
    for width, depth in SPLINECAM:
        layers = benchmark_network(width, depth)
        medians, cells = interleaved(routes(module, layers), repeats)
        text = [f"{width} x {depth}: {cells['NumPy']:,} cells"]
        for name, seconds in medians.items():
            text.append(f"{name} {1e3 * seconds:.2f} ms")
        print("; ".join(text))
        best = medians.get("compiled", medians["NumPy"])
        if module is None:
            print("  regioncam absent: no ratio")
        else:
            assert cells["regioncam"] == cells["NumPy"], cells
            for name in medians:
                if name != "regioncam":
                    ratio = medians["regioncam"] / medians[name]
                    print(f"  {name}: {ratio:.2f} times regioncam's speed")
        quoted = SPLINECAM[width, depth]
        print(f"  SplineCam (quoted, {quoted} s): {quoted / best:,.0f} times")
        assert len(set(cells.values())) == 1, cells


def large() -> None:
    for width, depth in ((128, 6), (256, 8)):
        layers = benchmark_network(width, depth)
        began = time.process_time()
        cells = ours(layers, regions_2d_compiled.AVAILABLE)
        seconds = time.process_time() - began
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
        print(
            f"{width} x {depth}: {cells:,} cells in {seconds:.1f} s CPU; "
            f"peak memory so far {peak:.2f} GB"
        )


def hundred(module) -> None:
    rng = np.random.default_rng(0)
    differing = []
    for _ in range(100):
        width, depth = int(rng.integers(8, 65)), int(rng.integers(2, 5))
        layers = he_network([2, *[width] * depth, 1], rng)
        cells = {n: task() for n, task in routes(module, layers).items()}
        if len(set(cells.values())) > 1:
            differing.append((width, depth, cells))
    print(f"100 networks, routes {list(cells)}: {len(differing)} differ")
    for line in differing:
        print("  ", line)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--repeats", type=int, default=15)
    parser.add_argument("--large", action="store_true")
    parser.add_argument("--hundred", action="store_true")
    options = parser.parse_args()
    module = regioncam()
    print("regioncam", "absent" if module is None else "present")
    if options.large:
        large()
    elif options.hundred:
        hundred(module)
    else:
        compare(module, options.repeats)


if __name__ == "__main__":
    main()
