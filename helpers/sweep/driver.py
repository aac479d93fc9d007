"""The loop of a run: hand out groups, take answers, commit them.

What is missing is worked through in a random order: the first results then
speak for all of them (rate, time left, size of the groups), and two drivers
on one store rarely meet at the same configuration.
"""

from __future__ import annotations

import math
from collections import Counter, deque
from dataclasses import dataclass, field

import numpy as np

from helpers.sweep.grid import Configuration, configuration_key
from helpers.sweep.pools import Back, DaskPool, Died, LocalPool
from helpers.sweep.progress import Progress
from helpers.sweep.store import Row, Store

LARGEST_GROUP = 10_000


@dataclass
class Driver:
    """State of one run.

    A configuration is in one place at a time: ``pending``, in flight,
    ``alone``, stored, or ``failed``. Those in ``alone`` were in a group
    whose worker died, or have failed before; each is tried by itself, so
    that the one to blame is known.
    """

    store: Store
    reference: str
    code: str
    attempts: int
    task_seconds: float
    pending: deque[Configuration] = field(default_factory=deque)
    alone: deque[Configuration] = field(default_factory=deque)
    tries: Counter = field(default_factory=Counter)
    failed: list[tuple[Configuration, str]] = field(default_factory=list)
    computed: int = 0
    settled: int = 0
    seconds: float = 0.0
    answered: int = 0
    trouble: BaseException | None = None

    def choose(self, items: list[Configuration]) -> None:
        """Line up what is missing."""
        missing = self._missing(items)
        order = np.random.default_rng().permutation(len(missing))
        self.pending.extend(missing[i] for i in order)

    def work(self, pool: LocalPool | DaskPool, bar: Progress) -> None:
        """Compute all that is pending; close the pool however it ends."""
        try:
            self._fill(pool)
            while pool.flying():
                before, rows = self.settled, self._take(pool.wait())
                if self.trouble is None:  # before the commit, which lasts
                    self._fill(pool)
                if rows:
                    self.computed += self.store.record(
                        self.reference, self.code, rows
                    )
                bar.add(self.settled - before, len(self.failed))
                if self.trouble is not None:  # after what came with it
                    raise self.trouble
        finally:
            pool.close()
            bar.close()

    def _missing(self, items: list[Configuration]) -> list[Configuration]:
        keys = [configuration_key(c) for c in items]
        done = self.store.done(self.reference, self.code, keys)
        pairs = zip(items, keys, strict=True)
        return [c for c, key in pairs if key not in done]

    def _fill(self, pool: LocalPool | DaskPool) -> None:
        """Keep every place busy with what nobody has stored yet."""
        places = pool.places()
        while pool.flying() < places and (self.pending or self.alone):
            group = self._next_group(places)
            missing = self._missing(group)
            self.settled += len(group) - len(missing)
            if missing:
                pool.submit(missing)

    def _next_group(self, places: int) -> list[Configuration]:
        if not self.pending:
            return [self.alone.popleft()]
        size = 1
        if self.seconds:
            pace = self.answered / self.seconds
            size = min(LARGEST_GROUP, math.ceil(self.task_seconds * pace))
        size = min(size, math.ceil(len(self.pending) / places))
        return [self.pending.popleft() for _ in range(size)]

    def _take(self, back: Back) -> list[Row]:
        """Sort what came back into rows, another try, and the rest."""
        rows: list[Row] = []
        for group, answer in back:
            if isinstance(answer, BaseException):
                self.trouble = answer
                continue
            if isinstance(answer, Died):
                if len(group) > 1:
                    self.alone.extend(group)
                    continue
                [one] = group
                row = Row(one, 0.0, error=answer.error)
                rows += self._again(row, answer.final)
                continue
            outcomes = zip(group, answer, strict=False)
            for one, (text, error, trace, seconds) in outcomes:
                self.answered += 1
                self.seconds += seconds
                row = Row(one, seconds, text, error, trace)
                rows += self._again(row) if text is None else [row]
            self.pending.extend(group[len(answer) :])
        self.settled += len(rows)
        return rows

    def _again(self, row: Row, final: bool = False) -> list[Row]:
        """Another try, or a row that says why there is none."""
        self.tries[row.key] += 1
        if self.tries[row.key] < self.attempts and not final:
            self.alone.append(row.configuration)
            return []
        self.failed.append((row.configuration, row.error))
        return [
            Row(
                row.configuration,
                row.seconds,
                error=row.error,
                traceback=row.traceback,
                attempts=self.tries[row.key],
            )
        ]
