"""Where groups of configurations are computed: local processes, or Dask.

A pool holds as many groups in flight as it has places, says which ones came
back, and tells a group whose worker died from one that a worker could not begin.
"""

from __future__ import annotations

import os
import re
import time
from concurrent.futures import FIRST_COMPLETED, Future
from concurrent.futures import wait as wait_for_futures
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass
from typing import Any

from helpers.sweep.extras import need
from helpers.sweep.worker import (
    ONE_THREAD,
    Outcome,
    follow_parent,
    run_group,
)

POLL_SECONDS = 1.0
CONNECT_SECONDS = 20
DEATH = "its worker process died, by a crash or for want of memory"


@dataclass(frozen=True)
class Job:
    """What every call of a worker shares."""

    reference: str
    code: str
    budget: float


@dataclass(frozen=True)
class Died:
    """A group's worker ended without an answer.

    ``final`` says that the pool has tried again by itself already.
    """

    error: str
    final: bool = False


Answer = list[Outcome] | Died | BaseException
Back = list[tuple[list[dict], Answer]]


class LocalPool:
    """Local processes, one joblib (loky) executor each.

    An executor of many processes fails as a whole when one of them is
    killed, and does not say whose task it was. With one process each, the
    others go on, and the group that was running is known.

    Parameters
    ----------
    job : Job
    most : int
        More processes than this would have nothing to do.
    workers : int, optional
        Number of processes; by default the CPUs that this one may use.
    """

    def __init__(self, job: Job, most: int, workers: int | None = None):
        joblib = need("joblib")
        self._loky = need("joblib.externals.loky")
        self._job = job
        self._places = min(workers or joblib.cpu_count(), most)
        self._idle: list[Any] = []
        self._flying: dict[Future, tuple[list[dict], Any]] = {}

    def places(self) -> int:
        return self._places

    def flying(self) -> int:
        return len(self._flying)

    def _start(self):
        return self._loky.ProcessPoolExecutor(
            max_workers=1,
            env=ONE_THREAD,
            initializer=follow_parent,
            initargs=(os.getpid(),),
        )

    def submit(self, group: list[dict]) -> None:
        job = self._job
        call = (run_group, job.reference, job.code, group, job.budget)
        executor = self._idle.pop() if self._idle else self._start()
        try:
            future = executor.submit(*call)
        except BrokenProcessPool:  # killed while it had nothing to do
            executor.shutdown(wait=False, kill_workers=True)
            executor = self._start()
            future = executor.submit(*call)
        self._flying[future] = (group, executor)

    def wait(self) -> Back:
        """Groups that came back; none if nothing did for a while."""
        ready, _ = wait_for_futures(
            self._flying, POLL_SECONDS, return_when=FIRST_COMPLETED
        )
        back: Back = []
        for future in ready:
            group, executor = self._flying.pop(future)
            error = future.exception()
            if isinstance(error, BrokenProcessPool):
                executor.shutdown(wait=False, kill_workers=True)
                back.append((group, Died(_cause_of_death(error))))
                continue
            self._idle.append(executor)
            back.append((group, error or future.result()))
        return back

    def close(self) -> None:
        """End all processes, busy ones too."""
        # loky stumbles if it is ended between taking a call and passing it on
        end = time.monotonic() + POLL_SECONDS
        while any(not (f.running() or f.done()) for f in self._flying):
            if time.monotonic() > end:
                break
            time.sleep(POLL_SECONDS / 100)
        executors = self._idle + [e for _, e in self._flying.values()]
        for executor in executors:
            executor.shutdown(wait=True, kill_workers=True)


class DaskPool:
    """The workers of a Dask cluster.

    Parameters
    ----------
    job : Job
    scheduler : str or distributed.Client
        Address of the scheduler, or a client, which is left open.

    Raises
    ------
    ConnectionError
        If there is no scheduler at the address, or it has no worker.
    """

    def __init__(self, job: Job, scheduler: Any):
        self._dask = need("distributed", "dask")
        self._job = job
        self._mine = isinstance(scheduler, str)
        self._client = self._connect(scheduler) if self._mine else scheduler
        self._flying: dict[Any, list[dict]] = {}
        try:
            self._client.wait_for_workers(1, timeout=CONNECT_SECONDS)
        except TimeoutError as error:
            self.close()
            raise ConnectionError(
                f"the Dask scheduler has had no worker for {CONNECT_SECONDS} "
                "s: start some with `dask worker ADDRESS`"
            ) from error

    def _connect(self, address: str):
        try:
            return self._dask.Client(address, timeout=CONNECT_SECONDS)
        except (OSError, ValueError) as error:
            raise ConnectionError(
                f"no Dask scheduler answers at {address!r}: start one with "
                "`dask scheduler` and give the address that it prints"
            ) from error

    def places(self) -> int:
        return max(1, sum(self._client.nthreads().values()))

    def flying(self) -> int:
        return len(self._flying)

    def submit(self, group: list[dict]) -> None:
        job = self._job
        future = self._client.submit(
            run_group,
            *(job.reference, job.code, group, job.budget),
            pure=False,
        )
        self._flying[future] = group

    def wait(self) -> Back:
        """Groups that came back; none if nothing did for a while."""
        try:
            ready = self._dask.wait(
                list(self._flying), POLL_SECONDS, "FIRST_COMPLETED"
            ).done
        except TimeoutError:
            return []
        back: Back = []
        for future in ready:
            group = self._flying.pop(future)
            if future.status == "finished":
                back.append((group, future.result()))
                continue
            error = future.exception()
            if isinstance(error, self._dask.KilledWorker):
                times = error.allowed_failures + 1
                error = Died(f"{DEATH}, {times} times", final=True)
            back.append((group, error))
        return back

    def close(self) -> None:
        """Give up what is in flight; the cluster goes on."""
        if self._flying:
            self._client.cancel(list(self._flying))
        if self._mine:
            self._client.close()


def _cause_of_death(error: BaseException) -> str:
    """What loky knows of a process that ended without an answer."""
    codes = re.search(r"exit codes[^{]*\{(.*?)\}", str(error))
    return DEATH + (f" ({codes[1]})" if codes else "")
