"""Which function does a sweep call, and which code does it depend on?"""

from __future__ import annotations

import hashlib
import importlib
import inspect
from collections.abc import Callable
from pathlib import Path

import helpers
from helpers.core.imports import reached_files

INSTALLED = ("site-packages", "dist-packages")


def reference_of(function: Callable | str) -> str:
    """How a worker finds the function: ``module:name``.

    Parameters
    ----------
    function : callable or str
        A function defined at the top of an importable module, or its
        reference.

    Returns
    -------
    str

    Raises
    ------
    ValueError
        If the function is a lambda, is defined in another function, in a
        notebook or in the script that was started, or is no function: its
        code could then not be found again tomorrow.

    Notes
    -----
    Source: ours.

    Examples
    --------
    >>> from helpers.core.statistics import wilson_interval
    >>> reference_of(wilson_interval)
    'helpers.core.statistics:wilson_interval'
    """
    if isinstance(function, str):
        load(function)
        return function
    if not inspect.isfunction(function):
        raise ValueError(
            "function must be a plain function (what a partial binds "
            f"belongs into the configurations), got {function!r}"
        )
    module, name = function.__module__, function.__qualname__
    if module == "__main__" or "<" in name or "." in name:
        raise ValueError(
            "function must stand at the top of a module that workers can "
            f"import, got {name!r} of {module!r}: move it into a file"
        )
    return f"{module}:{name}"


def load(reference: str) -> Callable:
    """Import the function that a reference names.

    Parameters
    ----------
    reference : str
        ``module:name``.

    Returns
    -------
    callable

    Raises
    ------
    ValueError
        If there is no such module or function.

    Notes
    -----
    Source: ours.

    Examples
    --------
    >>> load("helpers.sweep.grid:grid")(n=[1])
    [{'n': 1}]
    """
    module, colon, name = reference.partition(":")
    if not (colon and module and name):
        raise ValueError(
            f"function must be given as MODULE:NAME, got {reference!r}"
        )
    try:
        found = getattr(importlib.import_module(module), name)
    except (ImportError, AttributeError) as error:
        raise ValueError(f"no function {reference!r} here: {error}") from error
    if not inspect.isfunction(found):
        raise ValueError(f"{reference!r} is no function")
    return found


def code_digest(reference: str) -> str:
    """Digest of the code that a function may run.

    Parameters
    ----------
    reference : str
        ``module:name``.

    Returns
    -------
    str
        SHA-256 in 64 hexadecimal digits, over name and content of the
        function's module and of each module of ``helpers`` and of the
        module's own package or folder that it reaches by imports. Ends of
        lines are counted alike on every system.

    Raises
    ------
    ValueError
        If there is no such function or it has no source file.

    Notes
    -----
    Comments count as code: what cannot change a result is not guessed at.
    Installed packages, data files and names made at run time are not seen;
    the versions of the packages stand in the manifest.

    Source: ours.

    Examples
    --------
    >>> len(code_digest("helpers.core.linalg:numerical_rank"))
    64
    """
    files = code_files(reference)
    digest = hashlib.sha256()
    for name in sorted(files):
        content = files[name].read_bytes().replace(b"\r\n", b"\n")
        digest.update(name.encode() + b"\0" + content + b"\0")
    return digest.hexdigest()


def code_files(reference: str) -> dict[str, Path]:
    """The files that :func:`code_digest` covers.

    Parameters
    ----------
    reference : str
        ``module:name``.

    Returns
    -------
    dict from str to pathlib.Path
        By name relative to the folder from which they are imported.

    Raises
    ------
    ValueError
        If there is no such function or it has no source file.

    Notes
    -----
    Source: ours.

    Examples
    --------
    >>> files = code_files("helpers.core.linalg:numerical_rank")
    >>> "helpers/core/tolerances.py" in files
    True
    """
    module = reference.partition(":")[0]
    source = inspect.getsourcefile(load(reference))
    if source is None or not Path(source).is_file():
        raise ValueError(f"{reference!r} has no source file to digest")
    folder = _import_folder(Path(source).resolve(), module)
    mine = None
    if any(part in INSTALLED for part in folder.parts):
        mine = frozenset({module.split(".")[0]})
    ground = Path(helpers.__file__).resolve().parents[1]
    roots = {folder: mine, ground: frozenset({"helpers"})}
    if folder == ground and mine is not None:
        roots = {ground: mine | {"helpers"}}
    elif folder == ground:
        roots = {ground: None}
    found = reached_files([f"import {module}"], roots)
    found.add(Path(source).resolve())
    names = {}
    for file in found:
        root = next(r for r in roots if file.is_relative_to(r))
        names[file.relative_to(root).as_posix()] = file
    return names


def _import_folder(source: Path, module: str) -> Path:
    """The folder from which a module's dotted name leads to its file."""
    depth = len(module.split(".")) - 1
    if source.name == "__init__.py":
        depth += 1
    return source.parents[depth]
