"""Hand a finished sweep to readers: a Parquet file and its manifest."""

from __future__ import annotations

import hashlib
import json
import os
from pathlib import Path
from typing import Any

from helpers.sweep.digest import code_digest
from helpers.sweep.extras import installed_versions, need
from helpers.sweep.store import Status, Store, StoreError

SEED = "seed"


def export(
    store: str | os.PathLike,
    target: str | os.PathLike,
    *,
    name: str | None = None,
    code: str | None = None,
    partial: bool = False,
) -> dict[str, Any]:
    """Write the results of a sweep as a table.

    One row a configuration in the order of the plan, one column for each
    name of configuration and result; what a row lacks is null, and NaN
    stays NaN. Times stand in the manifest and not in the table, so that
    equal results make equal files.

    Parameters
    ----------
    store : path
        The store.
    target : path
        The Parquet file; the manifest is written beside it, with ``.json``
        in place of ``.parquet``.
    name : str, optional
        Name of the sweep, needed if the store holds several.
    code : str, optional
        Digest of the code, or its beginning; by default the digest of the
        code as it is now.
    partial : bool
        Export what there is although configurations are missing; the
        manifest says how many.

    Returns
    -------
    dict
        The manifest: command, function, code digest, seeds, rows, missing,
        seconds of work, package versions, scale, SHA-256 of the file.

    Raises
    ------
    ValueError
        If there is no such sweep or code, if configurations are missing, or
        if a column holds values of several kinds.
    StoreError
        If the store is missing or damaged.

    Notes
    -----
    Source: ours.

    Examples
    --------
    >>> export("no.sqlite", "no.parquet")
    Traceback (most recent call last):
    helpers.sweep.store.StoreError: there is no store no.sqlite
    """
    target = Path(target)
    if target.suffix != ".parquet":
        raise ValueError(f"target must end in .parquet, got {target}")
    with Store(store) as opened:
        status = _chosen(opened.status(), name, code)
        if status.done < status.planned and not partial:
            raise ValueError(
                f"{status.missing} configurations of {status.sweep} are "
                f"missing and {status.failed} failed with code "
                f"{status.code[:12]}: run the sweep again, choose the code "
                "of a finished run (see `status`), or export what there is "
                "as partial"
            )
        results, runs = opened.results(status), opened.runs(status)
    if not results:
        raise ValueError(f"{status.sweep} has no result to export yet")
    _write_table(results, target)
    manifest = {
        "command": runs[-1]["command"],
        "function": status.function,
        "code": status.code,
        "seeds": _seeds(results),
        "rows": len(results),
        "missing": status.planned - status.done,
        "seconds": round(sum(s for _, _, s in results), 3),
        "scale": runs[-1]["scale"],
        "versions": runs[-1]["versions"],
        "written_with": {"pyarrow": installed_versions()["pyarrow"]},
        "sha256": hashlib.sha256(target.read_bytes()).hexdigest(),
    }
    text = json.dumps(manifest, indent=2) + "\n"
    target.with_suffix(".json").write_text(text, encoding="utf-8")
    return manifest


def _chosen(found: list[Status], name: str | None, code: str | None) -> Status:
    names = sorted({s.sweep for s in found})
    if name is None and len(names) == 1:
        [name] = names
    if name not in names:
        raise ValueError(f"name must be one of {names}, got {name!r}")
    found = [s for s in found if s.sweep == name]
    if code is None:
        code = code_digest(found[-1].function)
        why = "is the code as it is now: run the sweep with it"
    else:
        why = "was asked for"
    fits = [s for s in found if s.code.startswith(code)]
    if len(fits) != 1:
        known = ", ".join(s.code[:12] for s in found)
        raise ValueError(
            f"{name} was run with code {known}; {code[:12]!r} {why}, or "
            "give the beginning of one of these"
        )
    return fits[0]


def _seeds(results: list[tuple[dict, dict, float]]) -> list:
    """The different values of the argument ``seed``, in order."""
    seeds = [c[SEED] for c, _, _ in results if SEED in c]
    return list(dict.fromkeys(map(_hashable, seeds)))


def _hashable(seed: Any) -> Any:
    return json.dumps(seed) if isinstance(seed, list | dict) else seed


def _write_table(results: list, target: Path) -> None:
    pa = need("pyarrow")
    write_table = need("pyarrow.parquet").write_table
    rows = [{**c, **r} for c, r, _ in results]
    names = list(dict.fromkeys(name for row in rows for name in row))
    columns = {}
    for name in names:
        try:
            columns[name] = pa.array([row.get(name) for row in rows])
        except (pa.ArrowInvalid, pa.ArrowTypeError) as error:
            raise ValueError(
                f"column {name!r} cannot be one column of a table: {error}"
            ) from error
    beside = target.with_name(target.name + ".part")
    try:
        write_table(pa.table(columns), beside)
        beside.replace(target)
    except OSError as error:
        raise StoreError(f"{target} could not be written: {error}") from error
    finally:
        beside.unlink(missing_ok=True)
