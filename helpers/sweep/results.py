"""Read what a sweep exported."""

from __future__ import annotations

import hashlib
import json
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from helpers.sweep.extras import need


@dataclass(frozen=True, eq=False)
class Results:
    """The table of a finished sweep.

    Attributes
    ----------
    columns : dict of str to ndarray, shape (rows,)
        One array for each name of configuration and result; texts as
        objects, and where a row lacks a number, NaN.
    manifest : dict
        As :func:`helpers.sweep.export` wrote it.
    """

    columns: dict[str, NDArray]
    manifest: dict[str, Any]

    def __getitem__(self, name: str) -> NDArray:
        try:
            return self.columns[name]
        except KeyError:
            raise KeyError(
                f"no column {name!r}; there are {', '.join(self.columns)}"
            ) from None

    def __len__(self) -> int:
        return self.manifest["rows"]


def load_results(path: str | os.PathLike) -> Results:
    """Read a Parquet table and its manifest, and check that they belong.

    Parameters
    ----------
    path : path
        The table, as :func:`helpers.sweep.export` wrote it, with its manifest
        beside it.

    Returns
    -------
    Results

    Raises
    ------
    ValueError
        If the manifest is missing, or the table is not the one it describes.
    FileNotFoundError
        If there is no table.

    Notes
    -----
    Source: ours.

    Examples
    --------
    >>> load_results("no.parquet")
    Traceback (most recent call last):
    FileNotFoundError: [Errno 2] No such file or directory: 'no.parquet'
    """
    path = Path(path)
    content, beside = path.read_bytes(), path.with_suffix(".json")
    if not beside.is_file():
        raise ValueError(f"the manifest {beside.name} of {path} is missing")
    manifest = json.loads(beside.read_text(encoding="utf-8"))
    if hashlib.sha256(content).hexdigest() != manifest.get("sha256"):
        raise ValueError(
            f"{path} is not the table that {beside.name} describes: its "
            "SHA-256 differs; export it again"
        )
    table = need("pyarrow.parquet").read_table(path)
    columns = {
        name: np.asarray(table[name].to_numpy(zero_copy_only=False))
        for name in table.column_names
    }
    return Results(columns, manifest)
