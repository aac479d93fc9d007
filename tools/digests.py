"""When is a stored execution still right? A digest of all it depends on.

A notebook's result depends on its code cells, on the helper modules it
reaches (through imports of imports), on the data files it names, on the lock,
the Python version and the scale. Prose is left out: editing a sentence runs
nothing again.
"""

from __future__ import annotations

import hashlib
import os
import re
import sys
from pathlib import Path

import nbformat

from helpers.core.imports import reached_files
from tools import ROOT

PACKAGE = "helpers"
DATA_FILE = re.compile(r"[\w./-]+\.(?:parquet|csv|json|npz|npy|gz)\b")
RUNS_ANYTHING = (
    "tools/digests.py",
    "helpers/core/imports.py",
    "requirements.txt",
)


def code_cells(notebook) -> list:
    return [c for c in notebook.cells if c.cell_type == "code"]


def notebook_digest(path: Path, root: Path = ROOT) -> str:
    """Digest of everything that the outputs of a notebook depend on."""
    notebook = nbformat.read(path, as_version=4)
    sources = [c.source for c in code_cells(notebook)]
    digest = hashlib.sha256()
    kernel = notebook.metadata.get("kernelspec", {}).get("name", "")
    for text in (kernel, *sources, os.environ.get("BOOK_SCALE", "quick")):
        digest.update(text.encode() + b"\0")
    digest.update(f"python {sys.version_info[:2]}".encode())
    modules = reached_modules(sources, root)
    files = [*modules, *_data_files(sources, modules, root)]
    files += [root / name for name in RUNS_ANYTHING]
    for file in sorted(set(files)):
        if file.is_file():
            digest.update(str(file.relative_to(root)).encode())
            digest.update(file.read_bytes())
    return digest.hexdigest()


def reached_modules(sources: list[str], root: Path = ROOT) -> set[Path]:
    """Files of ``helpers`` that the given code imports, directly or not."""
    return reached_files(sources, {root: frozenset({PACKAGE})})


def _data_files(sources, modules, root: Path) -> list[Path]:
    """Data that the cells name, and that reached modules ship."""
    files = []
    named = {Path(m).name for s in sources for m in DATA_FILE.findall(s)}
    data = root / "book" / "data"
    if named and data.is_dir():
        files += [f for f in data.rglob("*") if f.name in named]
    for module in modules:
        shipped = module.parent / "datasets"
        if module.name == "data.py" and shipped.is_dir():
            files += [f for f in shipped.iterdir() if f.is_file()]
    return files
