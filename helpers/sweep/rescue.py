"""Read what can still be read in a damaged store, into a new one."""

from __future__ import annotations

import json
import os
import shutil
import sqlite3
import tempfile
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

from helpers.sweep.grid import configuration_key
from helpers.sweep.store import Store, StoreError

TABLES = ("runs", "planned", "results", "failures")
HOLE = 20_000  # rows in a row that cannot be read: nothing comes after them
HOPELESS = ("no such table", "not a database")
LOG = "-wal"
LONGEST = 2**36  # bytes; a larger number in a header is damage


def rescue(damaged: str | os.PathLike, target: str | os.PathLike) -> dict:
    """Copy every readable row of a damaged store into a new store.

    The damaged file and its log are copied first and stay as they are. Rows
    are read one at a time, so that a damaged page costs the rows on it and
    no others. A row is kept if its key is that of its configuration and its
    result is one; the next run computes what is missing.

    Parameters
    ----------
    damaged : path
        The store that :class:`~helpers.sweep.store.Store` refuses.
    target : path
        A file that does not exist yet.

    Returns
    -------
    dict from str to int
        Rows in the new store, for each of its tables.

    Raises
    ------
    StoreError
        If there is no such store, the target exists, or so much is damaged
        that no table can be found.

    Notes
    -----
    SQLite keeps no check sums: a number that was changed inside a page which
    is whole otherwise looks like any other. A copy made before the damage is
    worth more than what is rescued.

    Source: ours.

    Examples
    --------
    >>> rescue("no.sqlite", "new.sqlite")
    Traceback (most recent call last):
    helpers.sweep.store.StoreError: there is no store no.sqlite
    """
    damaged, target = Path(damaged), Path(target)
    if not damaged.exists():
        raise StoreError(f"there is no store {damaged}")
    if target.exists():
        raise StoreError(f"{target} exists: give a new name for the rescue")
    with tempfile.TemporaryDirectory() as folder:
        copy = Path(folder) / "copy.sqlite"
        shutil.copy(damaged, copy)
        _lengthen(copy)
        if (log := Path(f"{damaged}{LOG}")).exists():
            shutil.copy(log, f"{copy}{LOG}")
        with closing(sqlite3.connect(copy)) as db:
            found = {name: list(_rows(db, name)) for name in TABLES}
    if not any(found.values()):
        raise StoreError(
            f"nothing in {damaged} can be read: its first page is gone, or "
            "it never was a store of sweeps"
        )
    counts = {}
    with Store(target, create=True) as store, store._transaction() as new:
        for name, rows in found.items():
            marks = ",".join("?" * len(rows[0])) if rows else ""
            counts[name] = sum(
                new.execute(
                    f"INSERT OR IGNORE INTO {name} VALUES ({marks})", row
                ).rowcount
                for row in rows
            )
    return counts


def _lengthen(file: Path) -> None:
    """Give a file that was cut off the length that its header speaks of."""
    header = file.read_bytes()[:32]
    if len(header) < 32:
        return
    page = int.from_bytes(header[16:18], "big")
    pages = int.from_bytes(header[28:32], "big")
    size = pages * (65536 if page == 1 else page)
    if file.stat().st_size < size <= LONGEST:
        os.truncate(file, size)


def _rows(db: sqlite3.Connection, table: str) -> Iterator[tuple]:
    """The rows that can be read and make sense, by their row numbers."""
    number = failures = 0
    while failures < HOLE:
        try:
            row = db.execute(
                f"SELECT rowid, * FROM {table} WHERE rowid >= ? "
                "ORDER BY rowid LIMIT 1",
                (number,),
            ).fetchone()
        except (sqlite3.DatabaseError, UnicodeDecodeError) as error:
            if any(word in str(error) for word in HOPELESS):
                return
            number, failures = number + 1, failures + 1
            continue
        if row is None:
            return
        number, failures = row[0] + 1, 0
        if _sound(table, row[1:]):
            yield row[1:]


def _sound(table: str, row: tuple) -> bool:
    try:
        if table == "runs":
            return isinstance(json.loads(row[6]), dict)
        key = row[1] if table == "planned" else row[2]
        text = row[4] if table == "planned" else row[3]
        if table == "results":
            json.loads(row[4])
        return configuration_key(json.loads(text)) == key
    except (TypeError, ValueError):
        return False
