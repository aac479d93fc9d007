"""The store by itself: unique rows, damage, no room."""

import json
import os
import sqlite3
import subprocess
import sys
from contextlib import closing

import pytest

from helpers.sweep.rescue import rescue
from helpers.sweep.store import Row, Store, StoreError
from tools import ROOT

MINE = ("m:f", "c" * 64)


def row(x, y=0.0):
    return Row({"x": x}, 0.1, json.dumps({"y": y}))


def failure(x, attempts=2):
    return Row({"x": x}, 0.1, error="Poison: x", attempts=attempts)


@pytest.fixture
def path(tmp_path):
    """A store with 200 rows of about a kilobyte."""
    path = tmp_path / "sweep.sqlite"
    rows = [
        Row({"x": i}, 0.1, json.dumps({"t": "x" * 1000})) for i in range(200)
    ]
    with Store(path, create=True) as store:
        store.plan("s", MINE[0], [{"x": i} for i in range(200)])
        store.begin_run("s", *MINE, "command", "quick", {})
        assert store.record(*MINE, rows) == 200
    return path


def test_a_row_is_counted_once(path):
    with Store(path) as store, Store(path) as other:
        assert store.record(*MINE, [row(1), row(1000)]) == 1
        assert other.record(*MINE, [row(1000, 9.0), row(1001)]) == 1
        assert store.record("m:f", "d" * 64, [row(1)]) == 1  # other code
        [status] = store.status()
        assert (status.planned, status.done, status.failed) == (200, 200, 0)


def test_the_first_result_stays(tmp_path):
    with Store(tmp_path / "s.sqlite", create=True) as store:
        store.record(*MINE, [row(1, 1.0)])
        store.record(*MINE, [row(1, 2.0)])
        store.plan("s", MINE[0], [{"x": 1}])
        run = store.begin_run("s", *MINE, "", "quick", {})
        store.end_run(run)
        [(configuration, result, _)] = store.results(store.status()[0])
        assert (configuration, result) == ({"x": 1}, {"y": 1.0})


def test_a_failure_gives_way_to_a_result(path):
    with Store(path) as store:
        store.plan("s", MINE[0], [{"x": 1000}, {"x": 1001}])
        store.record(*MINE, [failure(1000)])
        store.record(*MINE, [failure(1000, attempts=3)])
        [status] = store.status()
        assert (status.done, status.failed, status.missing) == (0, 1, 1)
        assert store.failures(status) == [({"x": 1000}, "Poison: x", 5)]
        store.record(*MINE, [row(1000)])
        store.record(*MINE, [failure(1000)])  # another driver, too late
        [status] = store.status()
        assert (status.done, status.failed) == (1, 0)
        assert store.failures(status) == []


def test_all_or_none(path):
    bad = Row({"x": 2000}, None, "{}")  # seconds must not be null
    with Store(path) as store:
        with pytest.raises(StoreError):
            store.record(*MINE, [row(1000), bad])
        assert store.record(*MINE, [row(1000)]) == 1


def truncated(data):
    return data[: len(data) // 2 + 100]


def overwritten(data):
    return data[:8192] + b"\x5a" * 8192 + data[16384:]


DAMAGE = {
    "truncated": truncated,
    "overwritten": overwritten,
    "emptied": lambda data: b"",
    "beheaded": lambda data: b"no database" + data[11:],
    "text": lambda data: b"x,y\n1,2\n" * 1000,
}


@pytest.mark.parametrize("kind", DAMAGE)
def test_damage_is_named_and_left_alone(path, kind):
    damaged = DAMAGE[kind](path.read_bytes())
    path.write_bytes(damaged)
    with pytest.raises(StoreError) as caught:
        Store(path, create=True)
    words = str(caught.value)
    assert str(path) in words and "damaged" in words
    assert "rescue" in words and "run again" in words
    assert path.read_bytes() == damaged


@pytest.mark.parametrize("place", range(0, 40_960, 4096))
def test_what_is_rescued_is_what_was_there(path, tmp_path, place):
    """A page overwritten anywhere: rows are lost, and none is made up."""
    whole = path.read_bytes()
    damaged = whole[:place] + b"\x5a" * 4096 + whole[place + 4096 :]
    path.write_bytes(damaged)
    new = tmp_path / "new.sqlite"
    if place == 0:
        with pytest.raises(StoreError, match="nothing in .* can be read"):
            rescue(path, new)
        assert not new.exists()
        return
    counts = rescue(path, new)
    assert path.read_bytes() == damaged
    with Store(new) as store:
        rows = store._query("SELECT configuration, result FROM results")
    assert len(rows) == counts["results"] <= 200
    assert {json.loads(c)["x"] for c, _ in rows} <= set(range(200))
    assert {json.loads(r)["t"] for _, r in rows} <= {"x" * 1000}


def test_rows_that_do_not_fit_their_key_are_not_rescued(path, tmp_path):
    with closing(sqlite3.connect(path)) as db, db:
        db.execute(
            "UPDATE results SET configuration = '{\"x\":-1}' WHERE rowid = 3"
        )
        db.execute("UPDATE results SET result = '{\"t\":' WHERE rowid = 5")
    assert rescue(path, tmp_path / "new.sqlite")["results"] == 198


def test_rescues_that_are_refused(path, tmp_path):
    (tmp_path / "text").write_text("x,y\n" * 1000)
    (tmp_path / "empty").touch()
    new = tmp_path / "new.sqlite"
    for name, words in (
        ("none", "there is no store"),
        ("text", "nothing in"),
        ("empty", "nothing in"),
    ):
        with pytest.raises(StoreError, match=words):
            rescue(tmp_path / name, new)
        assert not new.exists()
    with pytest.raises(StoreError, match="exists: give a new name"):
        rescue(path, tmp_path / "text")


def test_a_lost_store_with_its_log_left_is_not_recreated(path):
    path.rename(path.with_suffix(".away"))
    (path.parent / f"{path.name}-wal").write_bytes(b"rows")
    with pytest.raises(StoreError, match="is left of one"):
        Store(path, create=True)
    assert not path.exists()


def test_somebody_else_s_database_is_refused(tmp_path):
    path = tmp_path / "other.sqlite"
    with closing(sqlite3.connect(path)) as db:
        db.execute("CREATE TABLE t (x)")
    before = path.read_bytes()
    with pytest.raises(StoreError, match="no store of sweeps"):
        Store(path, create=True)
    assert path.read_bytes() == before


def test_missing(tmp_path):
    with pytest.raises(StoreError, match="there is no store"):
        Store(tmp_path / "no.sqlite")
    with pytest.raises(StoreError, match="no folder"):
        Store(tmp_path / "no" / "s.sqlite", create=True)
    assert list(tmp_path.iterdir()) == []


def test_no_room(path):
    with Store(path) as store:
        [pages] = store._db.execute("PRAGMA page_count").fetchone()
        store._db.execute(f"PRAGMA max_page_count = {pages + 1}")
        big = [Row({"x": i}, 0.1, '"' + "y" * 9000 + '"') for i in (-1, -2)]
        with pytest.raises(StoreError) as caught:
            store.record(*MINE, big)
        words = str(caught.value)
        assert "database or disk is full" in words and str(path) in words
        assert "intact" in words and "run the same command again" in words
    with Store(path) as store:
        assert store.status()[0].done == 200


def test_many_that_create_at_once_make_one_store(tmp_path):
    code = """
import sys
from helpers.sweep.rescue import rescue
from helpers.sweep.store import Row, Store
with Store("s.sqlite", create=True) as store:
    for x in range(20):
        row = Row({"x": x}, 0.0, "{}")
        sys.stdout.write("x" * store.record("m:f", "c", [row]))
"""
    started = [
        subprocess.Popen(
            [sys.executable, "-c", code],
            cwd=tmp_path,
            env={**os.environ, "PYTHONPATH": str(ROOT)},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        for _ in range(4)
    ]
    ends = [p.communicate(timeout=60) for p in started]
    assert [p.returncode for p in started] == [0] * 4, ends
    assert sum(len(out) for out, _ in ends) == 20  # new rows of all four
    names = {p.name for p in tmp_path.iterdir()}
    assert names == {"s.sqlite"}
