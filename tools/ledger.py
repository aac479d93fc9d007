"""The ledger as the build and the tests see it.

A row is settled where a chapter calls ``ledger.settle`` for it and the row's
status says so; :func:`problems` finds every disagreement between the two.
"""

from __future__ import annotations

import re
from pathlib import Path

import nbformat

from helpers.book import ledger
from helpers.book.ledger import NOT_YET, UNSETTLED, shown
from tools import ROOT
from tools.execution import notebooks, outputs_of

PAPERS = {
    "allocation": "I. Allocation",
    "linear_regions": "II. Linear regions",
    "copy_average": "III. Copy or average",
    "spectral_alignment": "IV. Spectral alignment",
    "bridges": "V. Bridges",
}


def settled_counts(rows: list[dict]) -> dict[str, dict[str, int]]:
    """Rows and settled rows of each paper that has rows."""
    counts = {}
    for paper in PAPERS:
        mine = [r for r in rows if r["paper"] == paper]
        settled = [r for r in mine if r["status"] not in UNSETTLED]
        if mine:
            counts[paper] = {"settled": len(settled), "total": len(mine)}
    return counts


def settled_in(notebook) -> list[dict]:
    """Records that the cells of an executed notebook left."""
    found = []
    for cell in notebook.cells:
        for output in cell.get("outputs", []):
            described = output.get("metadata", {}).get("companion", {})
            if "ledger" in described:
                record = dict(described["ledger"])
                record["shown"] = shown(record["measured"])
                found.append(record)
    return found


def records_of(root: Path = ROOT) -> dict[str, list[dict]]:
    """All records of the book by row."""
    found: dict[str, list[dict]] = {}
    for path in notebooks(root / "book"):
        for record in settled_in(outputs_of(path, root)):
            record["notebook"] = path.relative_to(root / "book").as_posix()
            found.setdefault(record["id"], []).append(record)
    return found


def problems(root: Path = ROOT) -> list[str]:
    """Rows and ``settle`` calls that do not answer each other."""
    rows = {r["id"]: r for r in ledger.load(root / "book" / "ledger.yml")}
    found = records_of(root)
    out = []
    for row_id, records in found.items():
        where = ", ".join(sorted({r["notebook"] for r in records}))
        if row_id not in rows:
            out.append(
                f"{where} settles {row_id!r}, which book/ledger.yml does not "
                "have: add the row, or correct the id"
            )
        elif (status := rows[row_id]["status"]) in UNSETTLED:
            out.append(
                f"{where} settles {row_id!r}, but its row says {status!r}: set "
                "status, chapter and tests in book/ledger.yml"
            )
        out += _repeated(row_id, records)
    for row_id, row in rows.items():
        if row["status"] != NOT_YET:
            out += _claimed_but_missing(row_id, row, found, root)
    return out


def _repeated(row_id, records) -> list[str]:
    parts = [r["part"] for r in records]
    if len(set(parts)) == len(parts):
        return []
    return [
        f"{row_id!r} is settled {len(parts)} times with parts {parts}: give "
        "each settle(...) a part of its own"
    ]


def _claimed_but_missing(row_id, row, found, root) -> list[str]:
    out = []
    if row["status"] not in UNSETTLED and row_id not in found:
        out.append(
            f"{row_id!r} has status {row['status']!r}, but no chapter calls "
            f'ledger.settle("{row_id}", ...): settle it, or say "not yet"'
        )
    chapter, _, target = (row.get("chapter") or "").partition("#")
    path = root / "book" / chapter
    if not chapter or not path.is_file():
        out.append(f"{row_id!r} names the chapter {chapter!r}: no such file")
    elif target not in labels_of(path):
        out.append(
            f"{row_id!r} names the anchor #{target}, which {chapter} lacks: "
            "give the statement that :label:, or correct the row"
        )
    if row["status"] not in UNSETTLED and not row.get("tests"):
        out.append(f"{row_id!r} is settled but names no test")
    return out


def labels_of(path: Path) -> set[str]:
    """Labels that a page defines, as anchors."""
    if path.suffix == ".ipynb":
        nb = nbformat.read(path, as_version=4)
        text = "\n".join(
            c.source for c in nb.cells if c.cell_type == "markdown"
        )
    else:
        text = path.read_text(encoding="utf-8")
    found = re.findall(r"^\s*:(?:label|name):\s*(\S+)", text, re.MULTILINE)
    found += re.findall(r"^\(([\w-]+)\)=", text, re.MULTILINE)
    shown = re.findall(r"^:::\{shown-figure\} (\S+)", text, re.MULTILINE)
    found += [f"fig-{name}" for name in shown]
    return set(found)
