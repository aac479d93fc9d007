"""Runs that go well, tasks that fail, results that are odd."""

import json
import math
import os
import re
import subprocess
import sys

import numpy as np
import pytest

from helpers.core.randomness import as_generator
from helpers.sweep import Store, SweepFailed, grid, run_sweep, spawn_seeds
from helpers.sweep.worker import ONE_THREAD


def results(bench, which=-1):
    with Store(bench.store) as store:
        return store.results(store.status()[which])


def run(bench, function, items, **options):
    return run_sweep(f"tasks:{function}", items, bench.store, **options)


def test_a_sweep_is_the_plain_loop(bench):
    import tasks

    seeds = spawn_seeds(0, 10)
    items = grid(n=[1, 5], seed=seeds)
    report = run_sweep(tasks.draw, items, bench.store, workers=2)
    assert (report.total, report.computed, report.found) == (20, 20, 0)
    found = [(c, r["mean"]) for c, r, _ in results(bench)]
    assert found == [
        (c, float(as_generator(c["seed"]).random(c["n"]).mean()))
        for c in items
    ]


def test_only_what_is_missing_is_computed(bench):
    assert run(bench, "square", {"x": range(6)}, workers=1).computed == 6
    again = run(bench, "square", {"x": range(9)}, workers=1)
    assert (again.computed, again.found, again.total) == (3, 6, 9)
    assert bench.calls() == {str(x): 1 for x in range(9)}
    # nothing is missing: no worker is started, and joblib is not asked
    assert run(bench, "square", {"x": range(9)}).computed == 0
    assert len(bench.rows()) == 9
    with Store(bench.store) as store:
        runs = store.runs(store.status()[0])
    assert len(runs) == 3
    assert all(run["ended"] >= run["started"] for run in runs)


def test_short_configurations_are_grouped(bench, monkeypatch):
    from helpers.sweep.pools import LocalPool

    sizes = []
    submit = LocalPool.submit

    def spy(self, group):
        sizes.append(len(group))
        submit(self, group)

    monkeypatch.setattr(LocalPool, "submit", spy)
    items = [{"x": x} for x in range(3000)]
    report = run(bench, "square", items, workers=1, task_seconds=0.02)
    assert report.computed == 3000 and sizes[0] == 1
    # on a busy machine the rest of a slow group is handed out again
    assert 3000 <= sum(sizes) < 6000
    assert len(sizes) < 300 and max(sizes) > 20


def test_long_ones_are_not(bench, monkeypatch):
    from helpers.sweep.pools import LocalPool

    sizes = []
    submit = LocalPool.submit
    monkeypatch.setattr(
        LocalPool,
        "submit",
        lambda self, group: [sizes.append(len(group)), submit(self, group)],
    )
    run(
        bench,
        "square",
        {"x": range(4), "wait": 0.05},
        workers=1,
        task_seconds=0.03,
    )
    assert sizes == [1] * 4


def test_a_group_that_turns_out_slow_comes_back(bench):
    """run_group stops at its budget and hands the rest back."""
    from helpers.sweep.digest import code_digest
    from helpers.sweep.worker import run_group

    group = [{"x": x, "wait": 0.05} for x in range(5)]
    code = code_digest("tasks:square")
    done = run_group("tasks:square", code, group, budget=0.07)
    found = [json.loads(t)["y"] for t, *_ in done]
    assert found == list(range(len(found)))
    assert 1 <= len(found) <= 2  # one, if the machine was slow to wake
    assert len(run_group("tasks:square", code, group[:1], 0.001)) == 1


def test_nothing_of_a_slow_group_is_lost(bench):
    """A slow one among quick ones: its group comes back early."""
    items = [{"x": x, "wait": 0.15 * (x % 50 == 7)} for x in range(400)]
    report = run(bench, "square", items, workers=1, task_seconds=0.01)
    assert report.computed == len(bench.rows()) == 400
    assert set(bench.calls().values()) == {1}


def test_other_code_in_a_worker_is_refused(bench):
    from helpers.sweep.worker import OtherCode, run_group

    with pytest.raises(OtherCode, match="run again"):
        run_group("tasks:square", "0" * 64, [{"x": 1}], 1.0)


def test_a_file_edited_while_the_sweep_runs(bench):
    """Its new content is refused by workers that start after it."""
    module = bench.folder / "edited.py"
    module.write_text(
        "import os\n"
        "def f(x, path):\n"
        "    with open(path, 'a') as file:\n"
        "        file.write('# edited\\n')\n"
        "    os._exit(1)\n"
    )
    code, out, err = bench.run(
        *("run", "edited:f", bench.store, "--over", "x=[1,2]"),
        *("--over", f"path={json.dumps(str(module))}", "--workers", 1),
    )
    assert code == 2 and "a file was changed while the sweep ran" in err
    assert "Traceback" not in err and bench.rows() == []


def test_code_that_changed_is_computed_again(bench):
    module = bench.folder / "moving.py"
    module.write_text("def f(x):\n    return {'y': x}\n")
    command = ("run", "moving:f", bench.store, "--over", "x=[1,2,3]")
    code, out, err = bench.run(*command)
    assert code == 0 and "3 computed" in out, err
    module.write_text("def f(x):\n    return {'y': 10 * x}\n")
    code, out, err = bench.run(*command)
    assert code == 0 and "3 computed, 0 found" in out, err
    assert len(bench.rows()) == 6
    for which, factor in ((0, 1), (1, 10)):
        values = [r["y"] for _, r, _ in results(bench, which)]
        assert values == [factor, 2 * factor, 3 * factor]
    # back to the first state of the code: nothing to do
    module.write_text("def f(x):\n    return {'y': x}\n")
    code, out, err = bench.run(*command)
    assert code == 0 and "0 computed, 3 found" in out, err


GOOD = {
    "numbers": {"a": 0.5, "b": 3, "c": True},
    "arrays": {"v": [0, 1, 2], "m": [[1.0, 0.0], [0.0, 1.0]]},
}
BAD = {
    "complex": r"result\['z'\] must be a number of 64 bits",
    "large": "int: 1180591620717411303424",
    "scalar": "must return a mapping",
    "repeated": r"repeats names of the configuration: \['kind'\]",
    "object": "must be a number of 64 bits",
}


def test_odd_results(bench):
    kinds = [*GOOD, *BAD, "infinite"]
    with pytest.raises(SweepFailed) as caught:
        run(bench, "odd", {"kind": kinds}, workers=2, attempts=1)
    failed = {c["kind"]: error for c, error in caught.value.report.failed}
    assert set(failed) == set(BAD)
    for kind, words in BAD.items():
        assert re.search(words, failed[kind]), failed[kind]
    found = {c["kind"]: r for c, r, _ in results(bench)}
    infinite = found.pop("infinite")
    assert found == GOOD
    assert math.isnan(infinite["nan"]) and infinite["up"] == math.inf
    assert infinite["v"] == [-math.inf]


@pytest.mark.skipif(os.name == "nt", reason="sends POSIX signals")
def test_poison_is_named_and_the_others_finish(bench):
    """Raises, exits, or kills its worker: each bounded, none contagious."""
    poison = {"deadly": [[3]], "raising": [[5]], "quits": [[7]]}
    with pytest.raises(SweepFailed) as caught:
        run(bench, "poison", {"x": range(12), **poison}, workers=2)
    words = str(caught.value)
    assert "3 of 12 configurations" in words and "other 9" in words
    failed = {c["x"]: e for c, e in caught.value.report.failed}
    assert set(failed) == {3, 5, 7}
    assert "worker process died" in failed[3] and "SIGKILL" in failed[3]
    assert failed[5] == "ZeroDivisionError: 5 is poison"
    assert failed[7] == "SystemExit: 3"
    assert all(repr({"x": x})[1:-1] in words for x in failed)
    assert len(bench.rows()) == 9 and len(bench.rows("failures")) == 3
    # two attempts; one call more for what shared a group with the killer
    calls = bench.calls()
    assert all(2 <= calls[x] <= 3 for x in ("3", "5", "7")), calls
    code, out, _ = bench.run("status", bench.store)
    assert code == 0 and "12 planned, 9 done, 0 missing, 3 failed" in out
    assert "failed 2 times: {'x': 5" in out and "worker process died" in out


def test_a_failure_is_tried_again_by_the_next_run(bench):
    (bench.folder / "later.py").write_text(
        "import os\ndef f(x):\n"
        "    if not os.path.exists('ready'):\n"
        "        raise OSError('not yet')\n"
        "    return {'y': x}\n"
    )
    command = ("run", "later:f", bench.store, "--over", "x=[1]")
    code, _, err = bench.run(*command, "--attempts", "1")
    assert code == 1 and "OSError: not yet" in err and "{'x': 1}" in err
    (bench.folder / "ready").touch()
    code, out, err = bench.run(*command)
    assert code == 0 and "1 computed" in out, err
    assert bench.rows("failures") == []


def test_one_thread_a_worker(bench, monkeypatch):
    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)
    run(bench, "threads", {"x": [1]}, workers=1)
    [(_, result, _)] = results(bench)
    assert result["omp"] == "1"
    assert result["pools"] and set(result["pools"]) == {1}


def test_one_thread_where_somebody_else_started_the_worker(bench):
    """As on a cluster, with NumPy loaded before."""
    code = """
import numpy, threadpoolctl
print([p["num_threads"] for p in threadpoolctl.threadpool_info()])
from helpers.sweep.digest import code_digest
from helpers.sweep.worker import run_group
name = "tasks:threads"
print(run_group(name, code_digest(name), [{"x": 1}], 1.0)[0][0])
"""
    done = subprocess.run(
        [sys.executable, "-c", code],
        env={**os.environ, **dict.fromkeys(ONE_THREAD, "2")},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    before, after = done.stdout.splitlines()
    if set(json.loads(before)) == {1}:
        pytest.skip("one thread is all that NumPy has here")
    pools = json.loads(after)["pools"]
    assert pools and set(pools) == {1}


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"workers": 0}, "workers must be"),
        ({"workers": 1.5}, "workers must be"),
        ({"attempts": 0}, "attempts must be"),
        ({"attempts": True}, "attempts must be"),
        ({"task_seconds": 0}, "task_seconds must be"),
        ({"task_seconds": np.nan}, "task_seconds must be"),
        ({"workers": 2, "scheduler": "tcp://x"}, "either"),
    ],
)
def test_refused_options(bench, options, words):
    with pytest.raises(ValueError, match=words):
        run(bench, "square", {"x": [1]}, **options)
    assert not bench.store.exists()


@pytest.mark.parametrize(
    ("items", "words"),
    [
        ({"y": [1]}, r"square\(x, wait=0.0\) cannot be called"),
        ({"x": [1], "z": 2}, "unexpected keyword"),
        ([], "empty"),
        ([{"x": {1}}], "JSON"),
    ],
)
def test_nothing_runs_if_one_configuration_is_wrong(bench, items, words):
    with pytest.raises(ValueError, match=words):
        run(bench, "square", items)
    assert not bench.store.exists() and not bench.log.exists()


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["tasks:square", "s"], "nothing to run"),
        (["tasks:square", "s", "--over", "x"], "NAME=JSON"),
        (["tasks:square", "s", "--over", "x=abc"], "no JSON"),
        (["tasks:square", "s", "--grid", "no.json"], "no.json"),
        (["tasks:none", "s", "--over", "x=1"], "no function"),
        (["tasks:draw", "s", "--over", "n=1", "--seeds", "0"], "count"),
    ],
)
def test_the_command_line_says_what_is_wrong(bench, capsys, arguments, words):
    from helpers.sweep.__main__ import main

    assert main(["run", *arguments]) == 2
    out, err = capsys.readouterr()
    assert not out and err.startswith("error: ") and words in err


def test_grids_from_files_and_options(bench, capsys):
    from helpers.sweep.__main__ import main

    (bench.folder / "grid.json").write_text('{"n": [1, 2]}')
    (bench.folder / "list.json").write_text('[{"n": 3}, {"n": 4}]')
    for name, total in (("grid", 6), ("list", 6)):
        arguments = ["--grid", f"{name}.json", "--seeds", "3", "--workers"]
        assert (
            main(["run", "tasks:draw", "s", *arguments, "1", "--quiet"]) == 0
        )
        assert f"{total} configurations, 6 computed" in capsys.readouterr()[0]
    with Store("s") as store:
        [status] = store.status()
        seeds = {c["seed"] for c, _, _ in store.results(status)}
    assert seeds == set(spawn_seeds(0, 3))
