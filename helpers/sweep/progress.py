"""A progress bar with rate and time left, where somebody looks."""

from __future__ import annotations

import sys
from typing import Any

from helpers.sweep.extras import need


class Progress:
    """A bar on a terminal or in Jupyter, and nothing elsewhere.

    In Jupyter the cell's output is cleared at the end, so that no bar is
    stored with the notebook: give the call a cell of its own.

    Parameters
    ----------
    total, done : int
        Configurations, and how many of them are there already.
    name : str
        What stands in front.
    show : bool, optional
        Whether to draw; decided by where we are unless given.
    """

    def __init__(
        self, total: int, done: int, name: str, show: bool | None = None
    ):
        self._jupyter = _in_jupyter()
        if show is None:
            show = self._jupyter or sys.stderr.isatty()
        self._bar: Any = None
        if show:
            self._bar = need("tqdm").tqdm(
                total=total,
                initial=done,
                desc=name,
                unit="conf",
                leave=not self._jupyter,
            )

    def add(self, done: int, failed: int) -> None:
        """Count finished ones, and say how many have failed so far."""
        if self._bar is not None:
            if failed:
                self._bar.set_postfix(failed=failed, refresh=False)
            self._bar.update(done)

    def close(self) -> None:
        if self._bar is None:
            return
        self._bar.close()
        if self._jupyter:
            from IPython.display import clear_output

            clear_output()


def _in_jupyter() -> bool:
    ipython = sys.modules.get("IPython")
    shell = ipython.get_ipython() if ipython else None
    return getattr(shell, "kernel", None) is not None
