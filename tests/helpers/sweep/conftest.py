"""What the tests of sweeps share: tasks on the path, drivers as processes."""

import os
import sqlite3
import subprocess
import sys
import time
from collections import Counter
from contextlib import closing
from pathlib import Path

import pytest

from tools import ROOT

HERE = Path(__file__).parent


class Bench:
    """A folder with a store, a log of calls, and drivers to start."""

    def __init__(self, folder: Path):
        self.folder = folder
        self.store = folder / "sweep.sqlite"
        self.log = folder / "calls.log"
        self.started: list[subprocess.Popen] = []

    def start(self, *arguments, **options) -> subprocess.Popen:
        process = subprocess.Popen(
            [sys.executable, "-m", "helpers.sweep", *map(str, arguments)],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            cwd=self.folder,
            **options,
        )
        self.started.append(process)
        return process

    def run(self, *arguments, **options):
        process = self.start(*arguments, **options)
        out, err = process.communicate(timeout=60)
        return process.returncode, out, err

    def calls(self) -> Counter:
        """How often each value of ``x`` was computed."""
        return Counter(line.split()[0] for line in self._lines())

    def pids(self) -> set[int]:
        return {int(line.split()[1]) for line in self._lines()}

    def _lines(self) -> list[str]:
        if not self.log.exists():
            return []
        return self.log.read_text().splitlines()

    def rows(self, table: str = "results") -> list[tuple]:
        """Read without our code: configuration and code of each row."""
        if not self.store.exists():
            return []
        with closing(sqlite3.connect(self.store, timeout=30)) as db:
            return db.execute(
                f"SELECT configuration, code FROM {table}"
            ).fetchall()

    def wait_for_rows(self, count: int) -> None:
        self.wait_until(lambda: len(self.rows()) >= count, f"{count} rows")

    @staticmethod
    def wait_until(condition, what: str, seconds: float = 40) -> None:
        end = time.monotonic() + seconds
        while not condition():
            assert time.monotonic() < end, f"waited in vain for {what}"
            time.sleep(0.02)


@pytest.fixture
def bench(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(HERE)
    path = os.pathsep.join([str(HERE), str(ROOT)])
    monkeypatch.setenv("PYTHONPATH", path)
    bench = Bench(tmp_path)
    monkeypatch.setenv("SWEEP_TEST_LOG", str(bench.log))
    yield bench
    for process in bench.started:
        if process.poll() is None:
            process.kill()
        process.communicate()
