"""Run the chapters: in parallel, each only when something it uses changed.

``python -m tools.execution`` runs what is stale and hands it to the book's
cache. ``--list`` only says what is stale. An execution is kept as
``_build/executed/<chapter>.ipynb`` with a record beside it (digest, seconds
of each cell, peak memory, scale); the record is what makes it fresh.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass, field
from pathlib import Path

import nbformat

from tools import BUILD, ROOT
from tools.digests import code_cells, notebook_digest

CELL_SECONDS = int(os.environ.get("BOOK_CELL_SECONDS", "60"))
NOTEBOOK_SECONDS = int(os.environ.get("BOOK_NOTEBOOK_SECONDS", "120"))
PEAK_MB = int(os.environ.get("BOOK_PEAK_MB", "1024"))
EXECUTED = BUILD / "executed"
CACHE = BUILD / ".jupyter_cache"


class ExecutionFailed(Exception):
    """A chapter did not run; the message says which cell and why."""


@dataclass
class Record:
    """What is remembered of an execution."""

    notebook: str
    digest: str
    scale: str
    seconds: float
    cell_seconds: list = field(default_factory=list)
    peak_mb: float = 0.0
    by: str = "tools.execution"
    python: str = platform.python_version()


def notebooks(book: Path | None = None) -> list[Path]:
    """All chapters, in a fixed order."""
    book = book or ROOT / "book"
    return sorted(
        p
        for p in book.rglob("*.ipynb")
        if ".ipynb_checkpoints" not in p.parts and "_build" not in p.parts
    )


def paths_of(notebook: Path, root: Path = ROOT) -> tuple[Path, Path]:
    """Where the execution and the record of a notebook are kept."""
    stem = root / "_build" / "executed" / notebook.relative_to(root)
    return stem, stem.with_suffix(".json")


def read_record(notebook: Path, root: Path = ROOT) -> Record | None:
    try:
        return Record(**json.loads(paths_of(notebook, root)[1].read_text()))
    except (OSError, ValueError, TypeError):
        return None  # none, cut short, or of an older form: run it again


def is_fresh(notebook: Path, root: Path = ROOT) -> bool:
    record = read_record(notebook, root)
    return (
        record is not None
        and paths_of(notebook, root)[0].is_file()
        and record.digest == notebook_digest(notebook, root)
    )


def keep(notebook: Path, executed, record: Record, root: Path = ROOT) -> None:
    """Keep an execution; the record goes last, so a cut leaves it stale."""
    target, beside = paths_of(notebook, root)
    target.parent.mkdir(parents=True, exist_ok=True)
    beside.unlink(missing_ok=True)
    _replace(target, nbformat.writes(executed))
    _replace(beside, json.dumps(asdict(record), indent=1))


def _replace(path: Path, text: str) -> None:
    part = path.with_name(f"{path.name}.{os.getpid()}.part")
    part.write_text(text, encoding="utf-8")
    os.replace(part, path)


class PeakMemory(threading.Thread):
    """Watch the resident memory of a process and of its children."""

    def __init__(self, pid: int, every: float = 0.1):
        super().__init__(daemon=True)
        self.pid, self.every, self.peak = pid, every, 0
        self._done = threading.Event()

    def run(self):
        import psutil

        while not self._done.is_set():
            try:
                top = psutil.Process(self.pid)
                family = [top, *top.children(recursive=True)]
                now = sum(p.memory_info().rss for p in family)
            except psutil.Error:
                now = 0
            self.peak = max(self.peak, now)
            self._done.wait(self.every)

    def stop(self) -> float:
        """End the watch; peak in megabytes."""
        self._done.set()
        self.join()
        return self.peak / 2**20


def execute(notebook: Path, root: Path = ROOT):
    """Run one notebook in a fresh kernel and keep the execution.

    Raises
    ------
    ExecutionFailed
        If a cell raises or passes its limit, or the notebook passes its own.
    """
    name = notebook.relative_to(root).as_posix()
    digest = notebook_digest(notebook, root)
    nb = nbformat.read(notebook, as_version=4)
    start = time.perf_counter()
    cell_seconds, peak = _run_cells(nb, notebook, name)
    seconds = time.perf_counter() - start
    _within_limits(name, seconds, peak)
    record = Record(
        name,
        digest,
        os.environ.get("BOOK_SCALE", "quick"),
        round(seconds, 2),
        cell_seconds,
        round(peak, 1),
    )
    keep(notebook, nb, record, root)
    return nb, record


def _run_cells(nb, notebook: Path, name: str):
    from nbclient import NotebookClient
    from nbclient.exceptions import CellExecutionError, CellTimeoutError

    client = NotebookClient(
        nb,
        timeout=CELL_SECONDS,
        kernel_name="python3",
        resources={"metadata": {"path": str(notebook.parent)}},
        record_timing=False,
        # otherwise each kernel warns that it listens on TCP
        extra_arguments=["--log-level=ERROR"],
    )
    cell_seconds = []
    cell, number = None, 0
    with client.setup_kernel():
        memory = PeakMemory(client.km.provisioner.pid)
        memory.start()
        try:
            for index, cell in enumerate(nb.cells):
                if cell.cell_type != "code":
                    continue
                number += 1
                begin = time.perf_counter()
                client.execute_cell(cell, index, execution_count=number)
                cell_seconds.append(round(time.perf_counter() - begin, 3))
        except CellTimeoutError as error:
            raise ExecutionFailed(
                f"{name}, code cell {number}: ran past {CELL_SECONDS} s. Make "
                "it smaller, or store a paper-scale result and read that."
            ) from error
        except CellExecutionError as error:
            raise ExecutionFailed(
                f"{name}, code cell {number} raised {error.ename}: "
                f"{error.evalue}\n{cell.source}"
            ) from error
        finally:
            peak = memory.stop()
    return cell_seconds, peak


def _within_limits(name: str, seconds: float, peak: float) -> None:
    if os.environ.get("BOOK_SCALE", "quick") != "quick":
        return
    if seconds > NOTEBOOK_SECONDS:
        raise ExecutionFailed(
            f"{name}: took {seconds:.0f} s, the limit is {NOTEBOOK_SECONDS} s "
            "(a chapter aims at 20 s); see the cells' times with "
            "`python -m tools.execution --times`"
        )
    if peak > PEAK_MB:
        raise ExecutionFailed(
            f"{name}: used {peak:.0f} MB, the limit is {PEAK_MB} MB; work in "
            "batches, or free what is no longer needed"
        )


def sync_cache(root: Path = ROOT) -> list[Path]:
    """Make the book's cache hold exactly the fresh executions.

    Jupyter Book's own cache knows a notebook's cells but not the helpers that
    they call. What is stale is taken out, so that it can only be run again.

    Returns
    -------
    list of Path
        The notebooks that are stale.
    """
    from jupyter_cache import get_cache

    cache = get_cache(str(root / "_build" / ".jupyter_cache"))
    stale = []
    for notebook in notebooks(root / "book"):
        source = nbformat.read(notebook, as_version=4)
        fresh = is_fresh(notebook, root)
        if not fresh:
            stale.append(notebook)
        try:
            cached = cache.match_cache_notebook(source)
        except KeyError:
            cached = None
        if cached is not None:
            if fresh and cached.uri == _cache_uri(notebook, root):
                continue
            cache.remove_cache(cached.pk)
        if fresh:
            cache.cache_notebook_file(
                path=str(paths_of(notebook, root)[0]),
                uri=_cache_uri(notebook, root),
                check_validity=False,
                overwrite=True,
            )
    return stale


def _cache_uri(notebook: Path, root: Path) -> str:
    record = read_record(notebook, root)
    return f"{notebook}?{record.digest if record else ''}"


def outputs_of(notebook: Path, root: Path = ROOT):
    """The notebook with outputs: as executed if fresh, else as stored."""
    path = (
        paths_of(notebook, root)[0] if is_fresh(notebook, root) else notebook
    )
    return nbformat.read(path, as_version=4)


def run_stale(stale: list[Path], root: Path = ROOT, workers=None) -> list[str]:
    """Run notebooks in parallel; messages of those that failed."""
    failures = []

    def one(notebook):
        try:
            _, record = execute(notebook, root)
            print(f"ran {record.notebook} in {record.seconds:.1f} s")
        except Exception as error:  # one failure must not hide the others
            failures.append(str(error))

    with ThreadPoolExecutor(workers or os.cpu_count() or 1) as pool:
        list(pool.map(one, stale))
    return failures


def print_times() -> None:
    for notebook in notebooks():
        record = read_record(notebook)
        if record is None:
            continue
        print(
            f"{record.notebook}: {record.seconds:.1f} s, {record.peak_mb:.0f} MB"
        )
        cells = code_cells(nbformat.read(notebook, as_version=4))
        slow = sorted(
            zip(record.cell_seconds, cells, strict=False),
            key=lambda pair: -pair[0],
        )
        for seconds, cell in slow[:3]:
            print(f"  {seconds:6.2f} s  {cell.source.splitlines()[0]}")


def main(arguments=None) -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--list", action="store_true", help="only say")
    parser.add_argument("--times", action="store_true", help="slowest cells")
    parser.add_argument("--all", action="store_true", help="run all again")
    parser.add_argument("--workers", type=int, default=None)
    options = parser.parse_args(arguments)
    if options.times:
        print_times()
        return 0
    stale = notebooks() if options.all else sync_cache()
    if options.list:
        print("\n".join(str(p.relative_to(ROOT)) for p in stale) or "fresh")
        return 0
    failures = run_stale(stale, workers=options.workers)
    sync_cache()
    for failure in failures:
        print(f"\nFAILED {failure}", file=sys.stderr)
    count = len(notebooks())
    print(f"{count} chapters: {len(stale)} run, {count - len(stale)} fresh")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
