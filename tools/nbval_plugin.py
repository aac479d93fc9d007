"""Strict nbval, with a tolerance for floats and no comparison of pictures.

Loaded with ``-p tools.nbval_plugin``. Words must agree to the letter,
decimals to a relative 1e-6, or to what the fingerprint of a figure says of
itself. Every notebook that passes is kept as executed,
so that the book is built from the very run that was compared.
"""

from __future__ import annotations

import math
import os
import re
from pathlib import Path

import nbformat
import pytest
from nbval import plugin

from tools import ROOT
from tools.digests import code_cells, notebook_digest
from tools.execution import PeakMemory, Record, keep

RTOL = float(os.environ.get("NB_RTOL", "1e-6"))
ATOL = float(os.environ.get("NB_ATOL", "1e-12"))
PICTURES = ("image/svg+xml", "image/png", "image/jpeg", "application/pdf")
NOT_COMPARED = (
    *PICTURES,
    "text/html",  # always beside a text/plain, see the contracts
)
ADVICE = """\
The cell does not give what is stored with it. If the new result is right, see
what the prose says about it, then store it: python -m tools.store {}
"""
FIGURE = re.compile(r"figure [a-z0-9-]+: \d+ axes, compared to ([-\d.e]+)\s")
NUMBER = re.compile(
    r"[-+]?(?:\d+\.\d*|\.\d+)(?:[eE][-+]?\d+)?|[-+]?\d+[eE][-+]?\d+"
)


class Close(str):
    """Text that equals a text with the same words and close decimals."""

    __slots__ = ()
    __hash__ = str.__hash__

    def __eq__(self, other):
        if str.__eq__(self, other):
            return True
        a, b = str(self), str(other)
        if _words(a) != _words(b):
            return False
        rtol = _asked(a)
        return all(
            math.isclose(float(x), float(y), rel_tol=rtol, abs_tol=ATOL)
            for x, y in zip(NUMBER.findall(a), NUMBER.findall(b), strict=True)
        )

    def __ne__(self, other):
        return not self == other


def _asked(text: str) -> float:
    """Tolerance of a comparison; a figure may ask for a wider one."""
    found = FIGURE.match(text)
    return float(found[1]) if found else RTOL


def _words(text: str) -> str:
    return " ".join(NUMBER.sub("#", text).split())


_sanitize = plugin.IPyNbCell.sanitize


def _sanitize_close(self, text):
    clean = _sanitize(self, text)
    return Close(clean) if isinstance(clean, str) else clean


plugin.IPyNbCell.sanitize = _sanitize_close

_runs: dict[Path, dict] = {}


def pytest_collection_modifyitems(items):
    for file in {i.parent for i in items if isinstance(i, plugin.IPyNbCell)}:
        prefix = "application/papermill.record/"
        file.skip_compare += NOT_COMPARED
        file.skip_compare += tuple(prefix + m for m in NOT_COMPARED)


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport(item, call):
    report = (yield).get_result()
    if not isinstance(item, plugin.IPyNbCell):
        return
    if report.failed and call.when == "call":
        name = item.parent.path.relative_to(ROOT)
        report.sections.append(("what to do", ADVICE.format(name)))
    run = _runs.setdefault(item.parent.path, {"cells": {}, "memory": None})
    if call.when == "setup" and run["memory"] is None:
        run["digest"] = notebook_digest(item.parent.path)
        kernel = item.parent.kernel
        if kernel is not None:
            run["memory"] = PeakMemory(kernel.km.provisioner.pid)
            run["memory"].start()
    if call.when == "call":
        run["cells"][item.cell_num] = (
            getattr(item, "test_outputs", None),
            report.passed,
            call.duration,
        )
        if item.cell_num == _last_cell(item) and run["memory"]:
            run["peak"] = run["memory"].stop()


def _last_cell(item) -> int:
    return len(code_cells(item.parent.nb)) - 1


def pytest_sessionfinish(session):
    for path, run in _runs.items():
        if path.is_relative_to(ROOT / "book"):
            hand_over(path, run)


def hand_over(path: Path, run: dict, root: Path = ROOT) -> bool:
    """Keep a run as the book's execution, if every cell of it passed."""
    notebook = nbformat.read(path, as_version=4)
    cells = code_cells(notebook)
    ran = [run["cells"].get(n) for n in range(len(cells))]
    if not cells or not all(c and c[1] and c[0] is not None for c in ran):
        return False
    for number, (cell, (outputs, _, _)) in enumerate(
        zip(cells, ran, strict=True), 1
    ):
        cell.execution_count = number
        cell.outputs = [nbformat.from_dict(_as_v4(o)) for o in outputs]
    seconds = [round(c[2], 3) for c in ran]
    record = Record(
        path.relative_to(root).as_posix(),
        run["digest"],
        os.environ.get("BOOK_SCALE", "quick"),
        round(sum(seconds), 2),
        seconds,
        round(run.get("peak", 0.0), 1),
        by="nbval",
    )
    keep(path, notebook, record, root)
    return True


def _as_v4(output) -> dict:
    output = dict(output)
    if output["output_type"] == "execute_result":
        output.setdefault("execution_count", None)
    if output["output_type"] in ("display_data", "execute_result"):
        output.setdefault("metadata", {})
    return output
