"""The store of a sweep: one SQLite file, one row per finished configuration.

Only drivers open it, so that it should lie on a local disk of the machine
from which the sweep is run. Rows are committed to the disk (WAL, full
synchronisation) before they are counted as done; their primary key is the
function, the digest of its code and the configuration, so that a result is
there once or not at all, whoever was killed and however many drivers ran.
"""

from __future__ import annotations

import json
import os
import sqlite3
import time
import uuid
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from helpers.sweep.grid import configuration_key

APPLICATION = 0x53574550  # "SWEP" in the file's header
BUSY_SECONDS = 60.0
BATCH = 500  # keys in one query

SCHEMA = """
CREATE TABLE results (
    function TEXT NOT NULL, code TEXT NOT NULL, key TEXT NOT NULL,
    configuration TEXT NOT NULL, result TEXT NOT NULL,
    seconds REAL NOT NULL, finished REAL NOT NULL,
    PRIMARY KEY (function, code, key)
);
CREATE TABLE failures (
    function TEXT NOT NULL, code TEXT NOT NULL, key TEXT NOT NULL,
    configuration TEXT NOT NULL, error TEXT NOT NULL,
    traceback TEXT NOT NULL, attempts INTEGER NOT NULL,
    finished REAL NOT NULL,
    PRIMARY KEY (function, code, key)
);
CREATE TABLE planned (
    sweep TEXT NOT NULL, key TEXT NOT NULL, position INTEGER NOT NULL,
    function TEXT NOT NULL, configuration TEXT NOT NULL,
    PRIMARY KEY (sweep, key)
);
CREATE TABLE runs (
    run INTEGER PRIMARY KEY, sweep TEXT NOT NULL, function TEXT NOT NULL,
    code TEXT NOT NULL, command TEXT NOT NULL, scale TEXT NOT NULL,
    versions TEXT NOT NULL, started REAL NOT NULL, ended REAL
);
"""


class StoreError(RuntimeError):
    """A store cannot be read or written; says which and what to do."""


@dataclass(frozen=True)
class Row:
    """A finished configuration: its result as JSON, or why it failed."""

    configuration: dict[str, Any]
    seconds: float
    result: str | None = None
    error: str = ""
    traceback: str = ""
    attempts: int = 1

    @property
    def key(self) -> str:
        return configuration_key(self.configuration)


@dataclass(frozen=True)
class Status:
    """How far a sweep is, with one state of the code."""

    sweep: str
    function: str
    code: str
    planned: int
    done: int
    failed: int

    @property
    def missing(self) -> int:
        return self.planned - self.done - self.failed


@contextmanager
def _explained(path: Path) -> Iterator[None]:
    """Turn SQLite's errors into what happened to which file."""
    try:
        yield
    except sqlite3.Error as error:
        code = getattr(error, "sqlite_errorcode", None)
        primary = None if code is None else code & 0xFF
        raise StoreError(_advice(path, primary, str(error))) from error


def _advice(path: Path, code: int | None, error: str) -> str:
    if code in (sqlite3.SQLITE_FULL, sqlite3.SQLITE_IOERR):
        return (
            f"the store {path} could not be written ({error}): the disk is "
            "full or failing. What was stored before is intact; free some "
            "space and run the same command again"
        )
    if code in (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB):
        return (
            f"the store {path} is damaged ({error}). It is left as it is: "
            "put a copy of it back, or rescue its rows with "
            f"`python -m helpers.sweep rescue {path} NEW.sqlite`, or move it "
            "away and run again to compute everything anew"
        )
    if code in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED):
        return (
            f"the store {path} was locked for {BUSY_SECONDS:g} s ({error}): "
            "is another program holding it open?"
        )
    return f"the store {path} cannot be used: {error}"


class Store:
    """An open store. Use it in a ``with`` statement.

    Parameters
    ----------
    path : str or os.PathLike
        The file.
    create : bool
        Whether to make a new store if there is no such file. An existing
        file is never replaced.

    Raises
    ------
    StoreError
        If the file is missing, damaged, empty or no store of sweeps.
    """

    def __init__(self, path: str | os.PathLike, create: bool = False):
        self.path = Path(path)
        if not self.path.exists():
            if not create:
                raise StoreError(f"there is no store {self.path}")
            _create(self.path)
        with _explained(self.path):
            self._db = sqlite3.connect(
                self.path, timeout=BUSY_SECONDS, isolation_level=None
            )
        try:
            self._check()
        except BaseException:
            self._db.close()
            raise

    def _check(self) -> None:
        size = self.path.stat().st_size
        if size == 0:
            raise StoreError(_advice(self.path, sqlite3.SQLITE_CORRUPT, "0 B"))
        with _explained(self.path):
            [ours] = self._db.execute("PRAGMA application_id").fetchone()
            if ours != APPLICATION:
                raise StoreError(
                    f"{self.path} is a database, but no store of sweeps: "
                    "give another file name"
                )
            self._db.execute("PRAGMA synchronous=FULL")
            [verdict] = self._db.execute("PRAGMA quick_check(1)").fetchone()
        if verdict != "ok":
            raise StoreError(
                _advice(self.path, sqlite3.SQLITE_CORRUPT, verdict)
            )

    def __enter__(self) -> Store:
        return self

    def __exit__(self, *_: object) -> None:
        self._db.close()

    @contextmanager
    def _transaction(self) -> Iterator[sqlite3.Connection]:
        with _explained(self.path):
            self._db.execute("BEGIN IMMEDIATE")
            try:
                yield self._db
                self._db.execute("COMMIT")
            except BaseException:
                if self._db.in_transaction:
                    self._db.execute("ROLLBACK")
                raise

    def _query(self, sql: str, *values: Any) -> list[tuple]:
        with _explained(self.path):
            return self._db.execute(sql, values).fetchall()

    def plan(self, sweep: str, function: str, items: Iterable[dict]) -> None:
        """Say what a sweep consists of, in place of what it was before."""
        rows = [
            (sweep, configuration_key(c), i, function, json.dumps(c))
            for i, c in enumerate(items)
        ]
        with self._transaction() as db:
            db.execute("DELETE FROM planned WHERE sweep = ?", (sweep,))
            db.executemany("INSERT INTO planned VALUES (?,?,?,?,?)", rows)

    def begin_run(self, sweep, function, code, command, scale, versions):
        """Note that a run started, and return its number."""
        facts = (sweep, function, code, command, scale, json.dumps(versions))
        with self._transaction() as db:
            return db.execute(
                "INSERT INTO runs (sweep, function, code, command, scale, "
                "versions, started) VALUES (?,?,?,?,?,?,?)",
                (*facts, time.time()),
            ).lastrowid

    def end_run(self, run: int) -> None:
        with self._transaction() as db:
            db.execute(
                "UPDATE runs SET ended = ? WHERE run = ?", (time.time(), run)
            )

    def done(self, function: str, code: str, keys: Iterable[str]) -> set[str]:
        """Those of the keys that have a result."""
        keys, found = list(keys), set()
        for i in range(0, len(keys), BATCH):
            some = keys[i : i + BATCH]
            marks = ",".join("?" * len(some))
            rows = self._query(
                "SELECT key FROM results WHERE function = ? AND code = ? "
                f"AND key IN ({marks})",
                *(function, code, *some),
            )
            found |= {key for (key,) in rows}
        return found

    def record(self, function: str, code: str, rows: Iterable[Row]) -> int:
        """Store finished configurations, all or none; count the new ones.

        A result that is there already stays; a failure gives way to it.
        """
        new = 0
        with self._transaction() as db:
            for row in rows:
                mine = (function, code, row.key)
                text = json.dumps(row.configuration)
                if row.result is None:
                    _record_failure(db, mine, text, row)
                    continue
                new += db.execute(
                    "INSERT INTO results VALUES (?,?,?,?,?,?,?) "
                    "ON CONFLICT DO NOTHING",
                    (*mine, text, row.result, row.seconds, time.time()),
                ).rowcount
                db.execute(
                    "DELETE FROM failures WHERE function = ? AND code = ? "
                    "AND key = ?",
                    mine,
                )
        return new

    def status(self) -> list[Status]:
        """One entry for each sweep and each code it was run with."""
        rows = self._query(
            """
            SELECT r.sweep, r.function, r.code, COUNT(*),
                   COUNT(d.key), COUNT(f.key)
            FROM (SELECT sweep, function, code, MAX(run) AS latest
                  FROM runs GROUP BY sweep, function, code) r
            JOIN planned p ON p.sweep = r.sweep AND p.function = r.function
            LEFT JOIN results d ON d.function = r.function
                 AND d.code = r.code AND d.key = p.key
            LEFT JOIN failures f ON f.function = r.function
                 AND f.code = r.code AND f.key = p.key AND d.key IS NULL
            GROUP BY r.sweep, r.function, r.code ORDER BY r.latest
            """
        )
        return [Status(*row) for row in rows]

    def failures(self, status: Status) -> list[tuple[dict, str, int]]:
        """Configuration, error and attempts of what failed."""
        rows = self._query(
            "SELECT f.configuration, f.error, f.attempts FROM planned p "
            "JOIN failures f ON f.key = p.key AND f.function = p.function "
            "WHERE p.sweep = ? AND f.function = ? AND f.code = ? "
            "AND NOT EXISTS (SELECT 1 FROM results r WHERE "
            "r.function = f.function AND r.code = f.code AND r.key = f.key) "
            "ORDER BY p.position",
            *(status.sweep, status.function, status.code),
        )
        return [(json.loads(c), error, n) for c, error, n in rows]

    def results(self, status: Status) -> list[tuple[dict, dict, float]]:
        """Configuration, result and seconds, in the order of the plan."""
        rows = self._query(
            "SELECT r.configuration, r.result, r.seconds FROM planned p "
            "JOIN results r ON r.key = p.key AND r.function = p.function "
            "WHERE p.sweep = ? AND r.function = ? AND r.code = ? "
            "ORDER BY p.position",
            *(status.sweep, status.function, status.code),
        )
        return [(json.loads(c), json.loads(r), s) for c, r, s in rows]

    def runs(self, status: Status) -> list[dict[str, Any]]:
        """What is known of the runs, the oldest first."""
        names = ("command", "scale", "versions", "started", "ended")
        rows = self._query(
            f"SELECT {', '.join(names)} FROM runs WHERE sweep = ? AND "
            "function = ? AND code = ? ORDER BY run",
            *(status.sweep, status.function, status.code),
        )
        found = [dict(zip(names, row, strict=True)) for row in rows]
        for run in found:
            run["versions"] = json.loads(run["versions"])
        return found


def _record_failure(db, mine: tuple, text: str, row: Row) -> None:
    db.execute(
        "INSERT INTO failures VALUES (?,?,?,?,?,?,?,?) "
        "ON CONFLICT DO UPDATE SET error = excluded.error, "
        "traceback = excluded.traceback, finished = excluded.finished, "
        "attempts = attempts + excluded.attempts",
        (*mine, text, row.error, row.traceback, row.attempts, time.time()),
    )


def _create(path: Path) -> None:
    """Make an empty store beside its place, then put it there if free.

    Of two drivers that start at once, one makes the store and both use it.
    """
    wal = path.with_name(path.name + "-wal")
    if wal.exists():
        raise StoreError(
            f"there is no store {path}, but {wal} is left of one: put the "
            "store back, or move the rest away to begin anew"
        )
    if not path.parent.is_dir():
        raise StoreError(f"there is no folder {path.parent} for the store")
    mine = path.with_name(f"{path.name}.{uuid.uuid4().hex}")
    try:
        with _explained(path):
            db = sqlite3.connect(mine, isolation_level=None)
            try:
                db.execute("PRAGMA journal_mode=WAL")
                db.execute(f"PRAGMA application_id={APPLICATION}")
                db.executescript(f"BEGIN; {SCHEMA} COMMIT;")
            finally:
                db.close()
        _put_if_free(mine, path)
    finally:
        for left in (mine, *path.parent.glob(f"{mine.name}-*")):
            left.unlink(missing_ok=True)


def _put_if_free(mine: Path, path: Path) -> None:
    try:
        os.link(mine, path)
    except FileExistsError:
        pass
    except OSError:  # no hard links here: as good as it gets
        if not path.exists():
            os.rename(mine, path)
