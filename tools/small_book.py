"""A small good book in a folder of its own, for testing the checks.

The tests break one thing in it and see which check says so. It uses the
real configuration, extension and static files, one chapter and a ledger of
two rows.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import nbformat
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook

from tools import ROOT

CHAPTER = "book/part/chapter.ipynb"

OPENING = """# How fast does a square grow?

*If a side doubles, does the area?*

:::{admonition} Before you start
:class: chapter-card
**You will be able to** say how a square grows.

**You need** multiplication.

**Time** 5 minutes to read, under a minute to run.
:::
"""

COMPUTE = """import matplotlib.pyplot as plt
import numpy as np

from helpers.book import glue, ledger, show_figure
from helpers.core.statistics import log_log_slope

side = np.array([1.0, 2.0, 4.0])
area = side**2
fit = log_log_slope(side, area)
glue("chapter-slope", fit.slope)
print(f"slope {fit.slope:.4f}")"""

SETTLE = """ledger.settle(
    "bridges.square_law",
    measured=fit.slope,
    expected=2.0,
    tolerance=1e-9,
    control=1.0,
)"""

DRAW = """fig, ax = plt.subplots()
ax.loglog(side, area, "o-")
ax.set(xlabel="side", ylabel="area")
show_figure(
    fig,
    "chapter-squares",
    alt="Area against side on log axes: a straight line of slope two.",
)"""

FIGURE = """The line of {numref}`fig-chapter-squares` has slope
{glue:text}`chapter-slope:.2f`.

:::{shown-figure} chapter-squares
The area grows as the square: a straight line in log-log axes.
:::
"""

STATEMENT = """## The law

:::{prf:theorem} Theorem 1.1 of the paper: squares
:label: theorem-squares
If a side is multiplied by $c$, the area is multiplied by $c^2$.
:::

:::{prf:proof}
$(cs)^2=c^2s^2$. The next cell would have shown another slope. See also
{prf:ref}`theorem-squares` and {ledger}`bridges.square_law`.
:::
"""

EXERCISE = """:::{{exercise}} Number {n}
:label: ex-chapter-{n}
What is the area of a square of side {n}?
:::

:::{{solution}} ex-chapter-{n}
:label: sol-chapter-{n}
:class: dropdown
Multiply {n} by itself.
:::
"""

CLOSING = """## Key takeaways

Areas grow as squares {cite:p}`euclid`.

```{bibliography}
:filter: docname in docnames
```
"""

LEDGER = """- id: bridges.square_law
  paper: bridges
  number: Theorem 1.1
  kind: theorem
  title: Areas grow as squares
  claim: >-
    Multiplying the side by $c$ multiplies the area by $c^2$.
  chapter: part/chapter.ipynb#theorem-squares
  tests: [tests/test_squares.py::test_square]
  status: proved here
- id: bridges.cube_law
  paper: bridges
  kind: theorem
  title: Volumes grow as cubes
  claim: >-
    Multiplying the side by $c$ multiplies the volume by $c^3$.
  chapter: null
  tests: []
  status: not yet
"""

INDEX = """# A small book

```{ledger-summary}
```
"""

LEDGER_PAGE = """# The ledger

```{ledger-table}
:paper: bridges
```

```{execution-status}
```
"""

BIB = """@book{euclid, author = {Euclid}, title = {Elements},
  publisher = {Alexandria}, year = {300}}
"""

TOC = """format: jb-book
root: book/index
chapters:
  - file: book/part/chapter
  - file: book/reference/ledger
"""


def chapter():
    """The chapter as a notebook that has not been run."""
    exercises = "\n".join(EXERCISE.format(n=n) for n in range(1, 6))
    notebook = new_notebook(
        cells=[
            new_markdown_cell(OPENING),
            new_code_cell(COMPUTE),
            new_code_cell(DRAW),
            new_markdown_cell(FIGURE),
            new_markdown_cell(STATEMENT),
            new_code_cell(SETTLE),
            new_markdown_cell("## Exercises\n\n" + exercises),
            new_markdown_cell(CLOSING),
        ]
    )
    notebook.metadata["kernelspec"] = {
        "display_name": "Python 3",
        "language": "python",
        "name": "python3",
    }
    for number, cell in enumerate(notebook.cells):
        cell.id = f"cell-{number}"
    return notebook


def make(root: Path, with_helpers: bool = False) -> Path:
    """Write the small book below ``root``; its chapter is not run yet."""
    files = {
        "book/index.md": INDEX,
        "book/reference/ledger.md": LEDGER_PAGE,
        "book/ledger.yml": LEDGER,
        "book/references.bib": BIB,
        "_toc.yml": TOC,
    }
    for name, text in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    for name in ("_config.yml", "requirements.txt"):
        shutil.copy(ROOT / name, root / name)
    for name in ("book/_ext", "book/_static"):
        shutil.copytree(ROOT / name, root / name)
    shutil.copytree(ROOT / "tools", root / "tools", ignore=_no_caches)
    if with_helpers:
        shutil.copytree(ROOT / "helpers", root / "helpers", ignore=_no_caches)
    write(root, chapter())
    return root


_no_caches = shutil.ignore_patterns("__pycache__")


def write(root: Path, notebook) -> Path:
    path = root / CHAPTER
    path.parent.mkdir(parents=True, exist_ok=True)
    nbformat.write(notebook, path)
    return path


def read(root: Path):
    return nbformat.read(root / CHAPTER, as_version=4)


def run(root: Path, *arguments: str) -> subprocess.CompletedProcess:
    """Run Python with arguments in the small book, and catch its words."""
    environment = dict(os.environ)
    # the book's own helpers if it has a copy, else the repository's
    environment["PYTHONPATH"] = os.pathsep.join([str(root), str(ROOT)])
    environment.setdefault("OMP_NUM_THREADS", "1")
    for name in ("BOOK_LEDGER", "BOOK_SCALE", "PYTEST_ADDOPTS"):
        environment.pop(name, None)
    return subprocess.run(
        [sys.executable, *arguments],
        cwd=root,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )


def words(done: subprocess.CompletedProcess) -> str:
    return done.stdout + done.stderr
