"""Who may import whom, and what no module may hold.

book -> helpers; parts, ``helpers.book`` and ``helpers.sweep`` ->
``helpers.core``, which imports none of them; a part never imports a part.
"""

import ast
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tools import ROOT

MODULES = sorted((ROOT / "helpers").rglob("*.py"))
NAMES = [str(p.relative_to(ROOT)) for p in MODULES]
SHARED = {"core"}
STANDALONE = {"book", "sweep"}


def imported(path: Path) -> set[str]:
    """Dotted names that a module imports, functions' bodies included."""
    names = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            names |= {a.name for a in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: write absolute imports"
            names.add(node.module)
            names |= {f"{node.module}.{a.name}" for a in node.names}
    return names


def package(path: Path) -> str:
    parts = path.relative_to(ROOT / "helpers").parts
    return parts[0] if len(parts) > 1 else ""


@pytest.mark.parametrize("path", MODULES, ids=NAMES)
def test_arrows(path):
    mine = package(path)
    for name in imported(path):
        top, *rest = name.split(".")
        assert top not in ("tools", "book", "tests"), f"imports {name}"
        if top != "helpers" or not rest:
            continue
        other = rest[0]
        allowed = SHARED | {mine, "__version__"}
        assert other in allowed, (
            f"{path.name} of helpers.{mine} imports {name}; only "
            "helpers.core may be shared"
        )


# modules whose whole subject is a network in torch
TRAINING = ("modules", "training", "block_training", "convolution")


@pytest.mark.parametrize("path", MODULES, ids=NAMES)
def test_torch_and_numba_are_optional(path):
    """torch and numba are never imported by the mere import of a module,
    but for numba behind ``try`` and torch in the modules named for it."""
    tree = ast.parse(path.read_text())
    for node in tree.body:
        names = set()
        if isinstance(node, ast.Import):
            names = {a.name.split(".")[0] for a in node.names}
        elif isinstance(node, ast.ImportFrom):
            names = {node.module.split(".")[0]}
        assert "numba" not in names, "import numba behind try/except"
        if path.stem not in TRAINING:
            assert "torch" not in names, "import torch where it is used"


def test_helpers_import_without_torch_and_numba():
    """In a process in which both are missing."""
    names = [
        ".".join(p.relative_to(ROOT).with_suffix("").parts) for p in MODULES
    ]
    names = [n.removesuffix(".__init__") for n in names]
    names = [n for n in names if n.split(".")[-1] not in TRAINING]
    code = f"""
import importlib, sys

class Absent:
    def find_spec(self, name, *_):
        if name.split(".")[0] in ("torch", "numba"):
            raise ModuleNotFoundError(name)

sys.meta_path.insert(0, Absent())
for name in {names!r}:
    importlib.import_module(name)
"""
    done = subprocess.run(
        [sys.executable, "-c", code],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr


TOLERANCE = re.compile(r"\b\d+(?:\.\d+)?[eE]-\d+\b")


@pytest.mark.parametrize("path", MODULES, ids=NAMES)
def test_tolerances_live_in_one_module(path):
    if path.name == "tolerances.py":
        return
    code = _without_text(path.read_text())
    found = TOLERANCE.findall(code)
    assert not found, (
        f"{found} in {path.name}: name it in helpers/core/tolerances.py, "
        "with the reason for its size"
    )


def _without_text(source: str) -> str:
    """The source without docstrings, other strings and comments."""
    tree = ast.parse(source)
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            node.value = ""
    # unparse writes floats anew, so keep those that were typed with an e
    typed = []
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, float):
            typed.append(ast.get_source_segment(source, node) or "")
    return "\n".join(typed)


PUBLIC = [
    (path, node)
    for path in MODULES
    for node in ast.parse(path.read_text()).body
    if isinstance(node, ast.FunctionDef) and not node.name.startswith("_")
]


@pytest.mark.parametrize(
    ("path", "node"),
    PUBLIC,
    ids=[f"{p.relative_to(ROOT)}::{n.name}" for p, n in PUBLIC],
)
def test_public_functions_are_documented(path, node):
    text = ast.get_docstring(node) or ""
    assert text, "has no docstring"
    arguments = [a.arg for a in node.args.args + node.args.kwonlyargs]
    if package(path) == "book" and len(text.splitlines()) == 1:
        return  # plumbing of the book, one line says it
    if arguments and package(path) not in ("book",):
        assert "Parameters" in text, "does not say what its arguments are"
        for name in arguments:
            assert name in text, f"does not name its argument {name!r}"
    if package(path) not in ("book", "core", ""):
        assert "Source" in text, "does not give its source"
