"""Run a sweep: compute what is missing, store each thing once."""

from __future__ import annotations

import inspect
import math
import os
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from helpers.core.checks import check_sizes
from helpers.sweep.digest import code_digest, load, reference_of
from helpers.sweep.driver import Driver
from helpers.sweep.extras import installed_versions
from helpers.sweep.grid import configurations
from helpers.sweep.pools import DaskPool, Job, LocalPool
from helpers.sweep.progress import Progress
from helpers.sweep.store import Store

TASK_SECONDS = 0.1
BUDGET = 10  # a group that turns out slow comes back after this many tasks
NAMED = 5  # failures that an error message spells out


@dataclass(frozen=True)
class SweepReport:
    """What a run did.

    Attributes
    ----------
    name, code : str
        The sweep, and the digest of the code it ran with.
    total, found, computed : int
        Configurations asked for; of them, stored before or by another
        driver meanwhile; and stored by this run.
    failed : list of (dict, str)
        Configurations that have no result, each with its last error.
    seconds : float
        Wall time of the run.
    """

    name: str
    code: str
    total: int
    found: int
    computed: int
    failed: list[tuple[dict, str]]
    seconds: float


class SweepFailed(RuntimeError):
    """Some configurations have no result; the others are stored.

    Attributes
    ----------
    report : SweepReport
    """

    def __init__(self, report: SweepReport):
        self.report = report
        lines = [f"  {c!r}: {error}" for c, error in report.failed[:NAMED]]
        more = len(report.failed) - NAMED
        if more > 0:
            lines.append(f"  and {more} more, see `status`")
        super().__init__(
            f"{len(report.failed)} of {report.total} configurations of "
            f"{report.name} failed; the other "
            f"{report.total - len(report.failed)} are stored:\n"
            + "\n".join(lines)
        )


def run_sweep(
    function: Callable | str,
    grid_or_configurations: Any,
    store: str | os.PathLike,
    *,
    scheduler: Any = None,
    workers: int | None = None,
    name: str | None = None,
    attempts: int = 2,
    task_seconds: float = TASK_SECONDS,
    progress: bool | None = None,
    command: str | None = None,
) -> SweepReport:
    """Compute a function at every configuration that is not stored yet.

    Parameters
    ----------
    function : callable or str
        The task, at the top of an importable module, or ``"module:name"``.
        It is called with a configuration's entries as keyword arguments
        and returns a mapping from names to numbers, texts or arrays.
    grid_or_configurations : mapping or iterable of mappings
        A grid, see :func:`helpers.sweep.grid.grid`, or the configurations.
    store : path
        SQLite file on a local disk; made if it is missing.
    scheduler : str or distributed.Client, optional
        Address of a Dask scheduler. Local processes otherwise.
    workers : int, optional
        Number of local processes, 1 or more; by default the CPUs.
    name : str, optional
        Name of the sweep in ``status`` and ``export``; by default the
        function's. The same name with another grid replaces the plan, never
        a result.
    attempts : int
        How often one configuration is tried, 1 or more.
    task_seconds : float
        Short configurations are grouped until a task takes this long.
    progress : bool, optional
        Draw a bar; by default on a terminal and in Jupyter.
    command : str, optional
        What the manifest gives as the command.

    Returns
    -------
    SweepReport

    Raises
    ------
    ValueError
        If an argument is not as said here, or the function does not take a
        configuration's entries. Nothing has been run then.
    SweepFailed
        If configurations failed in all attempts. All others are stored.
    StoreError
        If the store is damaged or cannot be written.
    ConnectionError
        If the Dask cluster cannot be reached.

    Notes
    -----
    Costs of the machinery beside the task: a few ms a group, and a commit
    to the disk.

    Source: ours.

    Examples
    --------
    >>> run_sweep("helpers.sweep.extras:need", [], "sweep.sqlite")
    Traceback (most recent call last):
    ValueError: there is no configuration: the grid is empty
    """
    _check(workers, attempts, task_seconds, scheduler)
    reference = reference_of(function)
    items = configurations(grid_or_configurations)
    _check_calls(load(reference), items)
    code = code_digest(reference)
    name = name or reference
    with Store(store, create=True) as opened:
        opened.plan(name, reference, items)
        run = opened.begin_run(
            *(name, reference, code),
            command or f"run_sweep({reference!r}, {len(items)} items)",
            os.environ.get("BOOK_SCALE", "quick"),
            installed_versions(),
        )
        start = time.perf_counter()
        driver = Driver(opened, reference, code, attempts, task_seconds)
        driver.choose(items)
        if driver.pending:
            job = Job(reference, code, BUDGET * task_seconds)
            most = len(driver.pending)
            if scheduler is None:
                pool = LocalPool(job, most, workers)
            else:
                pool = DaskPool(job, scheduler)
            bar = Progress(len(items), len(items) - most, name, progress)
            driver.work(pool, bar)
        opened.end_run(run)
    report = SweepReport(
        name=name,
        code=code,
        total=len(items),
        found=len(items) - driver.computed - len(driver.failed),
        computed=driver.computed,
        failed=driver.failed,
        seconds=time.perf_counter() - start,
    )
    if report.failed:
        raise SweepFailed(report)
    return report


def _check(workers, attempts, task_seconds, scheduler) -> None:
    check_sizes(attempts=attempts)
    if workers is not None:
        check_sizes(workers=workers)
    if not (0 < task_seconds < math.inf):
        raise ValueError(
            f"task_seconds must be positive and finite, got {task_seconds!r}"
        )
    if scheduler is not None and workers is not None:
        raise ValueError(
            "workers are local processes: give either them or a scheduler"
        )


def _check_calls(function: Callable, items: list[dict]) -> None:
    signature = inspect.signature(function)
    for item in items:
        try:
            signature.bind(**item)
        except TypeError as error:
            raise ValueError(
                f"{function.__name__}{signature} cannot be called with "
                f"{item!r}: {error}"
            ) from None
