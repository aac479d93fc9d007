"""Which files does some code reach by its imports?

Digests of code are made from these files: the digest of a notebook's
execution, and the digest under which a sweep files its results.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Mapping
from functools import lru_cache
from pathlib import Path

Roots = Mapping[Path, frozenset[str] | None]


def reached_files(sources: Iterable[str], roots: Roots) -> set[Path]:
    """Files that the given code imports, directly or through others.

    Import statements are read, wherever they stand, functions' bodies
    included; nothing is run. Names made at run time are not seen.

    Parameters
    ----------
    sources : iterable of str
        Python code. Code that does not parse imports nothing.
    roots : mapping from pathlib.Path to frozenset of str, or None
        Folders in which modules are looked up, each with the top-level
        packages that may be followed there; ``None`` follows any.

    Returns
    -------
    set of pathlib.Path
        The modules' files, with the ``__init__.py`` of each package above.

    Notes
    -----
    Each file is parsed once for each of its modification times: linear in
    the size of the reached code.

    Source: ours.

    Examples
    --------
    >>> import helpers
    >>> root = Path(helpers.__file__).parents[1]
    >>> code = "from helpers.core.linalg import numerical_rank"
    >>> found = reached_files([code], {root: frozenset({"helpers"})})
    >>> sorted(f.name for f in found if f.name != "__init__.py")
    ['checks.py', 'linalg.py', 'tolerances.py']
    """
    frozen = tuple(roots.items())
    found: set[Path] = set()
    waiting = [f for s in sources for f in _imported(s, "", frozen)]
    while waiting:
        file = waiting.pop()
        if file not in found:
            found.add(file)
            waiting += _imported_by(file, file.stat().st_mtime_ns, frozen)
    return found


@lru_cache(maxsize=1024)
def _imported_by(file: Path, _changed: int, roots: tuple) -> list[Path]:
    above = [root for root, _ in roots if file.is_relative_to(root)]
    root = max(above, key=lambda folder: len(folder.parts))
    package = ".".join(file.relative_to(root).parts[:-1])
    return _imported(file.read_text(encoding="utf-8"), package, roots)


def _imported(source: str, package: str, roots: tuple) -> list[Path]:
    """Files named by the import statements of code in a package."""
    try:
        tree = ast.parse(source)
    except SyntaxError:
        return []  # whoever runs it will say so
    names = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            base = _absolute(node, package)
            names.add(base)
            names |= {f"{base}.{alias.name}" for alias in node.names}
    return [f for n in sorted(names) for f in _files_of(n, roots)]


def _absolute(node: ast.ImportFrom, package: str) -> str:
    """The dotted name that ``from ..name import`` means in a package."""
    if not node.level:
        return node.module or ""
    above = package.split(".")[: -(node.level - 1) or None]
    return ".".join([*above, *([node.module] if node.module else [])])


def _files_of(name: str, roots: tuple) -> list[Path]:
    """The module's file and the ``__init__`` of every package above it."""
    parts = name.split(".")
    files = []
    for root, packages in roots:
        if packages is not None and parts[0] not in packages:
            continue
        for end in range(1, len(parts) + 1):
            stem = root.joinpath(*parts[:end])
            files += [stem / "__init__.py", stem.with_suffix(".py")]
    return [f for f in files if f.is_file()]
