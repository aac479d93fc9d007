"""Packages that sweeps need and the rest of the helpers does not."""

from __future__ import annotations

import importlib
from importlib import metadata
from types import ModuleType

VERSIONS = (
    "constrained-expressivity numpy scipy scikit-learn numba torch joblib "
    "dask distributed pyarrow"
).split()


def need(module: str, extra: str = "sweep") -> ModuleType:
    """Import an optional package, or say how to install it.

    Parameters
    ----------
    module : str
        Name of the module.
    extra : str
        The extra of this package that brings it.

    Returns
    -------
    module

    Raises
    ------
    ModuleNotFoundError
        If it is missing.

    Notes
    -----
    Source: ours.

    Examples
    --------
    >>> need("json").dumps([1])
    '[1]'
    """
    try:
        return importlib.import_module(module)
    except ModuleNotFoundError as error:
        raise ModuleNotFoundError(
            f"this needs {error.name}: python -m pip install '.[{extra}]'",
            name=error.name,
        ) from error


def installed_versions() -> dict[str, str]:
    """Versions of the packages that results may depend on.

    Returns
    -------
    dict from str to str
        Of those that are installed.

    Notes
    -----
    Source: ours.

    Examples
    --------
    >>> "numpy" in installed_versions()
    True
    """
    found = {}
    for name in VERSIONS:
        try:
            found[name] = metadata.version(name)
        except metadata.PackageNotFoundError:
            continue
    return found
