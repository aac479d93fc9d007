"""When is a stored execution still right? A digest of all it depends on.

A notebook's result depends on its code cells, on the helper modules it
reaches (through imports of imports), on the data files it names, on the lock,
the Python version and the scale. Prose is left out: editing a sentence runs
nothing again.
"""

from __future__ import annotations

import ast
import hashlib
import os
import re
import sys
from functools import lru_cache
from pathlib import Path

import nbformat

from tools import ROOT

PACKAGE = "helpers"
DATA_FILE = re.compile(r"[\w./-]+\.(?:parquet|csv|json|npz|npy|gz)\b")
RUNS_ANYTHING = ("tools/digests.py", "requirements.txt")


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
    found: set[Path] = set()
    waiting = [f for s in sources for f in _imported(s, root)]
    while waiting:
        file = waiting.pop()
        if file not in found:
            found.add(file)
            waiting += _imported_by_file(file, file.stat().st_mtime_ns, root)
    return found


@lru_cache(maxsize=1024)
def _imported_by_file(file: Path, _changed: int, root: Path) -> list[Path]:
    return _imported(file.read_text(encoding="utf-8"), root)


def _imported(source: str, root: Path) -> list[Path]:
    """Helper files named by the import statements of some code."""
    try:
        tree = ast.parse(source)
    except SyntaxError:
        return []  # the runner will say so
    names = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            names.add(node.module)
            names |= {f"{node.module}.{a.name}" for a in node.names}
    files = []
    for name in names:
        if name.split(".")[0] == PACKAGE:
            files += _files_of_module(name, root)
    return files


def _files_of_module(name: str, root: Path) -> list[Path]:
    """The module's file and the ``__init__`` of every package above it."""
    parts = name.split(".")
    files = []
    for end in range(1, len(parts) + 1):
        stem = root.joinpath(*parts[:end])
        files += [stem / "__init__.py", stem.with_suffix(".py")]
    return [f for f in files if f.is_file()]


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
