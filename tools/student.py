"""Make the student edition: every chapter with its exercises, no solutions.

``python -m tools.student`` writes ``_build/student/book``. Solutions and the
cells that run them are taken out, an empty cell stands for each, and outputs
are cleared. One source serves both editions: nothing is written twice.
"""

from __future__ import annotations

import re
import shutil
import sys
from pathlib import Path

import nbformat
from nbformat.v4 import new_code_cell

from tools import ROOT
from tools.execution import notebooks

FENCE = re.compile(r"(:{3,})\{solution\}")
BLANK = "# your turn"
FOLDER = ROOT / "_build" / "student"


def without_solutions(text: str) -> tuple[str, int]:
    """The text without its ``{solution}`` blocks, and how many there were."""
    kept, closing, count = [], "", 0
    for line in text.splitlines():
        opened = FENCE.match(line)
        if closing:
            bare = line.strip()
            if set(bare) == {":"} and len(bare) >= len(closing):
                closing = ""
        elif opened:
            closing, count = opened[1], count + 1
        else:
            kept.append(line)
    if closing:
        raise ValueError(f"a solution is not closed: add {closing!r}")
    return "\n".join(kept).strip("\n"), count


def student_edition(notebook):
    """A copy of a chapter without solutions and without outputs."""
    edition = nbformat.from_dict(notebook)
    cells, solving = [], False
    for cell in notebook.cells:
        cell = nbformat.from_dict(cell)
        if cell.cell_type == "code":
            if not solving:
                cell.outputs, cell.execution_count = [], None
                cells.append(cell)
            continue
        cell.source, count = without_solutions(cell.source)
        solving = count > 0
        if cell.source:
            cells.append(cell)
        cells += [new_code_cell(BLANK) for _ in range(count)]
    edition.cells = cells
    return edition


def main(arguments: list[str]) -> int:
    folder = Path(arguments[0]) if arguments else FOLDER
    shutil.rmtree(folder / "book", ignore_errors=True)
    for path in notebooks():
        target = folder / path.relative_to(ROOT)
        target.parent.mkdir(parents=True, exist_ok=True)
        chapter = nbformat.read(path, as_version=4)
        nbformat.write(student_edition(chapter), target)
    book = ROOT / "book"
    shutil.copytree(book / "data", folder / "book" / "data")
    shutil.copy(book / "ledger.yml", folder / "book")  # chapters settle rows
    print(f"{len(notebooks())} chapters without solutions in {folder}")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
