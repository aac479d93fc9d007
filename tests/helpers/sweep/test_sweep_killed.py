"""Killed workers, killed drivers, two drivers, a full disk, a damaged store.

In real processes. After each accident: no stored row is lost, no row is
there twice, and the same command again computes what is missing and no more.
"""

import json
import os
import shutil
import signal
import subprocess
import sys

import pytest

from helpers.sweep import Store

pytestmark = pytest.mark.skipif(
    os.name == "nt", reason="sends POSIX signals to the processes"
)


def over(count, wait):
    values = json.dumps(list(range(count)))
    return ("--over", f"x={values}", "--over", f"wait={wait}")


def gone(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return True
    stat = f"/proc/{pid}/stat"
    if os.path.exists(stat):  # a zombie has ended
        with open(stat) as file:
            return file.read().rpartition(")")[2].split()[0] == "Z"
    return False


def stored(bench) -> list[int]:
    return sorted(json.loads(c)["x"] for c, _ in bench.rows())


def test_a_killed_worker(bench):
    """SIGKILL inside a task: its own task is repeated, no other."""
    command = ("run", "tasks:square", bench.store, *over(24, 0.1))
    driver = bench.start(*command, "--workers", 2)
    bench.wait_for_rows(3)
    os.kill(bench.pids().pop(), signal.SIGKILL)
    out, err = driver.communicate(timeout=60)
    assert driver.returncode == 0, err
    assert "24 computed" in out
    assert stored(bench) == list(range(24))
    assert sum(bench.calls().values()) <= 25  # at most the one in flight
    assert len(bench.pids()) == 3


def test_a_task_that_kills_its_worker_once(bench):
    flag = json.dumps(str(bench.folder / "flag"))
    values = json.dumps(list(range(200)))
    code, out, err = bench.run(
        *("run", "tasks:dies_once", bench.store, "--workers", 2),
        *("--over", f"x={values}", "--over", "victim=117"),
        *("--over", f"flag={flag}"),
    )
    assert code == 0 and "200 computed" in out, err
    assert stored(bench) == list(range(200))
    assert bench.calls()["117"] == 2


def test_a_killed_driver(bench):
    """What it had stored stays and is not computed again."""
    command = ("run", "tasks:square", bench.store, *over(24, 0.1))
    driver = bench.start(*command, "--workers", 2)
    bench.wait_for_rows(6)
    driver.kill()
    driver.wait()
    workers = bench.pids()
    bench.wait_until(lambda: all(map(gone, workers)), "its workers to end")
    before = stored(bench)
    assert 6 <= len(before) < 24
    code, out, err = bench.run(*command, "--workers", 2)
    assert code == 0, err
    assert f"{24 - len(before)} computed, {len(before)} found" in out
    assert stored(bench) == list(range(24))
    calls = bench.calls()
    assert all(calls[str(x)] == 1 for x in before)


def hear_interrupts():
    """Undo what a shell does to jobs in the background: ignore SIGINT."""
    signal.signal(signal.SIGINT, signal.default_int_handler)


def test_an_interrupted_driver(bench):
    command = ("run", "tasks:square", bench.store, *over(24, 0.1))
    driver = bench.start(
        *(*command, "--workers", 2),
        start_new_session=True,
        preexec_fn=hear_interrupts,
    )
    bench.wait_for_rows(3)
    os.killpg(driver.pid, signal.SIGINT)  # as Ctrl-C does, to all of them
    _, err = driver.communicate(timeout=30)
    assert driver.returncode == 130 and "goes on from there" in err
    assert "Traceback" not in err
    bench.wait_until(
        lambda: all(map(gone, bench.pids())), "the workers to end"
    )
    assert 3 <= len(stored(bench)) < 24
    with Store(bench.store) as store:
        [status] = store.status()
        assert status.done + status.missing == 24


def test_two_drivers_at_once(bench):
    """They share the work; a configuration is stored by one of them."""
    command = ("run", "tasks:square", bench.store, *over(40, 0.05))
    drivers = [bench.start(*command, "--workers", 1) for _ in range(2)]
    ends = [d.communicate(timeout=60) for d in drivers]
    assert [d.returncode for d in drivers] == [0, 0], ends
    assert stored(bench) == list(range(40))
    words = [out.split() for out, _ in ends]
    computed = [int(w[w.index("computed,") - 1]) for w in words]
    found = [int(w[w.index("found,") - 1]) for w in words]
    assert sum(computed) == 40
    assert all(c + f == 40 for c, f in zip(computed, found, strict=True))
    assert sum(bench.calls().values()) <= 50  # few meet at the same one


def full_disk(bench, store, start):
    """A run that fills the disk, and the same again with room."""
    values = json.dumps(list(range(150)))
    command = ("run", "tasks:bulky", store, "--over", f"x={values}")
    code, out, err = start(*command, "--workers", 1)
    assert code == 2, (out, err)
    assert f"error: the store {store} could not be written" in err
    assert "intact" in err and "run the same command again" in err
    assert "Traceback" not in err
    return command


def test_a_limit_on_the_size_of_files(bench):
    resource = pytest.importorskip("resource", reason="limits are POSIX")

    def limit():
        resource.setrlimit(resource.RLIMIT_FSIZE, (200_000, 200_000))

    def start(*command):
        return bench.run(*command, preexec_fn=limit)

    # stored bit by bit, so that rows are there before there is no room
    few = json.dumps([{"x": x} for x in range(10)])
    (bench.folder / "few.json").write_text(few)
    arguments = ("run", "tasks:bulky", bench.store, "--grid", "few.json")
    assert start(*arguments, "--workers", 1)[0] == 0
    command = full_disk(bench, bench.store, start)
    before = stored(bench)
    assert set(range(10)) <= set(before) and len(before) < 150
    code, out, err = bench.run(*command)
    assert code == 0 and f"{150 - len(before)} computed" in out, err
    assert stored(bench) == list(range(150))


def test_a_full_disk(bench):
    """A file system of 300 kB, where this user may mount one."""
    disk = bench.folder / "disk"
    disk.mkdir()
    small = "size=300k"
    mount = ["mount", "-t", "tmpfs", "-o", small, "tmpfs", str(disk)]
    inside = f'{" ".join(mount)} && exec "$@"'
    prefix = ["unshare", "-m", "-r", "sh", "-c", inside, "sh"]
    if shutil.which("unshare") is None or _cannot([*prefix, "true"]):
        pytest.skip("no private file system can be mounted here")
    values = json.dumps(list(range(150)))
    few = json.dumps(list(range(5)))
    script = """
python=$1; store=$2
run() { "$python" -m helpers.sweep run tasks:bulky "$store" --workers 1 "$@"; }
run --over "x=$3" || exit 10
run --over "x=$4"; code=$?
"$python" -m helpers.sweep status "$store" || exit 11
mount -o remount,size=20m tmpfs "$(dirname "$store")" || exit 12
run --over "x=$4" || exit 13
cp "$store" "$5"
exit $code
"""
    store = disk / "sweep.sqlite"
    done = subprocess.run(
        [*prefix, "sh", "-c", script, "sh", sys.executable]
        + [str(store), few, values, str(bench.store)],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 2, done.stdout + done.stderr
    assert "database or disk is full" in done.stderr
    assert f"the store {store} could not be written" in done.stderr
    assert "Traceback" not in done.stderr
    assert stored(bench) == list(range(150))
    _, status, last = done.stdout.splitlines()
    kept = int(status.partition(" done")[0].split()[-1])
    assert 5 <= kept < 150
    assert f"{150 - kept} computed, {kept} found" in last


DAMAGE = {
    "overwritten": lambda data: data[:65536] + b"\x5a" * 8192 + data[73728:],
    "cut off": lambda data: data[:200_000],
}


@pytest.mark.parametrize("kind", DAMAGE)
def test_a_damaged_store(bench, kind):
    """Refused by every action, left as it is, and its rows rescued."""
    values = json.dumps(list(range(80)))
    command = ("run", "tasks:bulky", bench.store, "--over", f"x={values}")
    command += ("--workers", 1)
    code, _, err = bench.run(*command)
    assert code == 0, err
    whole = bench.store.read_bytes()
    damaged = DAMAGE[kind](whole)
    bench.store.write_bytes(damaged)
    actions = [command]
    if kind == "overwritten":
        actions += [("status", bench.store)]
        actions += [("export", bench.store, "t.parquet")]
    for action in actions:
        code, out, err = bench.run(*action)
        assert code == 2 and out == "" and "Traceback" not in err
        assert f"the store {bench.store} is damaged" in err
        assert f"helpers.sweep rescue {bench.store} NEW.sqlite" in err
        assert bench.store.read_bytes() == damaged
    code, out, err = bench.run("rescue", bench.store, "new.sqlite")
    assert code == 0 and "of 80 planned are in new.sqlite" in out, err
    assert bench.store.read_bytes() == damaged
    saved = int(out.split()[0])
    assert 20 <= saved < 80
    code, out, err = bench.run(
        command[0], command[1], "new.sqlite", *command[3:]
    )
    assert code == 0 and f"{80 - saved} computed, {saved} found" in out, err
    with Store("new.sqlite") as store:
        [status] = store.status()
        rows = store.results(status)
    assert [(c["x"], r["text"]) for c, r, _ in rows] == [
        (x, "x" * 4000) for x in range(80)
    ]
    if kind == "cut off":
        return
    # a copy from before the damage is as good as ever
    bench.store.write_bytes(whole)
    code, out, err = bench.run(*command)
    assert code == 0 and "0 computed, 80 found" in out, err


def _cannot(command) -> bool:
    return subprocess.run(command, capture_output=True, check=False).returncode
