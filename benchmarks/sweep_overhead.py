"""What the machinery of a sweep costs beside its tasks, in one run.

    python benchmarks/sweep_overhead.py          # 2 000 tasks of 0.2 ms

A short task is computed many times: in a plain loop, through joblib (loky,
one call a task), and through ``run_sweep``, each result committed to the
disk, with groups of a tenth of a second and with no groups. Each task notes
when it began and ended, so that starting the workers is left out: what is
compared is the time from the first beginning to the last end. The second
table is what storing costs by itself. Ratios are to the plain loop of this
run.
"""

from __future__ import annotations

import argparse
import json
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from helpers.sweep import Store, run_sweep
from helpers.sweep.store import Row

SPIN_SECONDS = 0.0002
GROUP = 500


def spin(x: int) -> dict[str, float]:
    """Keep a processor busy for a fixed while."""
    start, clock = time.time(), time.perf_counter()
    while time.perf_counter() < clock + SPIN_SECONDS:
        pass
    return {"start": start, "end": time.time()}


Way = Callable[[int], list[dict[str, float]]]


def plain_loop(count: int) -> list[dict[str, float]]:
    return [spin(x) for x in range(count)]


def joblib_loop(count: int) -> list[dict[str, float]]:
    import joblib

    # two workers, since a single one would be this process
    pool = joblib.Parallel(
        n_jobs=2, batch_size=1, return_as="generator_unordered"
    )
    return list(pool(joblib.delayed(spin)(x) for x in range(count)))


def sweep(task_seconds: float) -> Way:
    def run(count: int) -> list[dict[str, float]]:
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "s.sqlite"
            run_sweep(
                "sweep_overhead:spin",
                {"x": range(count)},
                path,
                workers=1,
                task_seconds=task_seconds,
                progress=False,
            )
            with Store(path) as store:
                [status] = store.status()
                return [r for _, r, _ in store.results(status)]

    return run


def seconds_a_task(run: Way, count: int) -> float:
    times = run(count)
    assert len(times) == count
    first, last = min(t["start"] for t in times), max(t["end"] for t in times)
    return (last - first) / count


def store_rows(count: int, at_once: int) -> float:
    rows = [Row({"x": x}, 0.1, json.dumps({"y": x})) for x in range(count)]
    with tempfile.TemporaryDirectory() as folder:
        with Store(Path(folder) / "s.sqlite", create=True) as store:
            start = time.perf_counter()
            for i in range(0, count, at_once):
                new = store.record("m:f", "c", rows[i : i + at_once])
                assert new == len(rows[i : i + at_once])
            return (time.perf_counter() - start) / count


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--tasks", type=int, default=2000)
    count = parser.parse_args().tasks
    plain = seconds_a_task(plain_loop, count)
    ways = {
        "plain loop": (plain_loop, count, 1),
        "joblib, two workers": (joblib_loop, count, 2),
        "run_sweep, grouped": (sweep(0.1), count, 1),
        "run_sweep, no groups": (
            sweep(SPIN_SECONDS / 10),
            max(count // 10, 1),
            1,
        ),
    }
    print(f"{count} tasks of {1e3 * SPIN_SECONDS:g} ms")
    for name, (run, number, workers) in ways.items():
        taken = workers * seconds_a_task(run, number)
        print(
            f"  {name:22}{1e3 * taken:8.3f} ms of a worker a task"
            f"   {taken / plain:6.2f} x the loop"
        )
    print("storing a row, committed to the disk")
    for at_once in (GROUP, 1):
        taken = store_rows(GROUP, at_once)
        print(f"  {at_once:4d} in a commit {1e6 * taken:10.1f} us a row")


if __name__ == "__main__":
    main()
