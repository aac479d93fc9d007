"""The command line: ``python -m helpers.sweep run|status|export|rescue``."""

from __future__ import annotations

import argparse
import json
import shlex
import sys
from pathlib import Path
from typing import Any

from helpers.sweep.export import export
from helpers.sweep.grid import configurations, spawn_seeds
from helpers.sweep.rescue import rescue
from helpers.sweep.runner import SweepFailed, run_sweep
from helpers.sweep.store import Store, StoreError
from helpers.sweep.worker import OtherCode

EXAMPLES = """\
examples:
  python -m helpers.sweep run package.module:function sweep.sqlite \\
      --over 'n=[5,10]' --over k=12 --seeds 32
  python -m helpers.sweep run package.module:function sweep.sqlite \\
      --grid grid.json --scheduler tcp://10.0.0.1:8786
  python -m helpers.sweep status sweep.sqlite
  python -m helpers.sweep export sweep.sqlite table.parquet
  python -m helpers.sweep rescue damaged.sqlite new.sqlite
"""
INTERRUPTED = 130
EXPECTED = (ValueError, StoreError, OtherCode, OSError, ImportError)


def main(arguments: list[str] | None = None) -> int:
    """Run the command line.

    Parameters
    ----------
    arguments : list of str, optional
        Those of the process by default.

    Returns
    -------
    int
        0 if all is well, 1 if configurations failed, 2 if the command or
        the store is at fault, 130 after an interrupt.

    Notes
    -----
    Source: ours.

    Examples
    --------
    >>> main(["status", "no.sqlite"])
    2
    """
    arguments = sys.argv[1:] if arguments is None else arguments
    options = _parser().parse_args(arguments)
    options.command = shlex.join(["python", "-m", "helpers.sweep", *arguments])
    try:
        return options.action(options)
    except SweepFailed as error:
        print(error, file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print(
            "interrupted; what was finished is stored, the same command "
            "goes on from there",
            file=sys.stderr,
        )
        return INTERRUPTED
    except EXPECTED as error:
        print(f"error: {error}", file=sys.stderr)
        return 2


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m helpers.sweep",
        description="Large experiments that can be interrupted.",
        epilog=EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    actions = parser.add_subparsers(required=True, metavar="ACTION")
    _add_run(actions)
    status = actions.add_parser("status", help="what is done and missing")
    status.set_defaults(action=_status)
    status.add_argument("store", metavar="STORE")
    table = actions.add_parser("export", help="write Parquet and manifest")
    table.set_defaults(action=_export)
    table.add_argument("store", metavar="STORE")
    table.add_argument("target", metavar="TABLE.parquet")
    table.add_argument("--name", help="which sweep of the store")
    table.add_argument("--code", help="digest of the code, or its beginning")
    table.add_argument("--partial", action="store_true")
    saved = actions.add_parser("rescue", help="rows of a damaged store")
    saved.set_defaults(action=_rescue)
    saved.add_argument("store", metavar="DAMAGED")
    saved.add_argument("target", metavar="NEW")
    return parser


def _add_run(actions: Any) -> None:
    run = actions.add_parser("run", help="compute what is missing")
    run.set_defaults(action=_run)
    run.add_argument("function", metavar="MODULE:FUNCTION")
    run.add_argument("store", metavar="STORE")
    run.add_argument(
        "--grid",
        metavar="FILE",
        help="JSON: a mapping from names to lists, or a list of mappings",
    )
    run.add_argument(
        "--over",
        metavar="NAME=JSON",
        action="append",
        default=[],
        help="an axis (a list) or a fixed value; may be repeated",
    )
    run.add_argument("--seeds", type=int, help="number of values of `seed`")
    run.add_argument("--root-seed", type=int, default=0, metavar="R")
    run.add_argument("--name", help="of the sweep; default: the function's")
    run.add_argument("--scheduler", metavar="ADDRESS", help="of Dask")
    run.add_argument("--workers", type=int, help="local processes")
    run.add_argument("--attempts", type=int, default=2)
    run.add_argument("--quiet", action="store_true", help="no bar")


def _items(options: argparse.Namespace) -> Any:
    """The configurations that the options of ``run`` describe."""
    axes = {}
    for text in options.over:
        name, equals, value = text.partition("=")
        if not equals:
            raise ValueError(f"--over must be NAME=JSON, got {text!r}")
        axes[name] = _parsed(value, f"--over {name}")
    if options.seeds is not None:
        axes["seed"] = spawn_seeds(options.root_seed, options.seeds)
    if options.grid is None:
        if not axes:
            raise ValueError("nothing to run: give --grid, --over or --seeds")
        return axes
    read = _parsed(Path(options.grid).read_text("utf-8"), options.grid)
    if isinstance(read, dict):
        return {**read, **axes}
    if not axes:
        return read
    return [
        {**c, **a} for c in configurations(read) for a in configurations(axes)
    ]


def _parsed(text: str, where: str) -> Any:
    try:
        return json.loads(text)
    except json.JSONDecodeError as error:
        raise ValueError(
            f"{where} is no JSON: {error} (a text needs double quotes "
            "inside the single ones of the shell)"
        ) from error


def _run(options: argparse.Namespace) -> int:
    report = run_sweep(
        options.function,
        _items(options),
        options.store,
        scheduler=options.scheduler,
        workers=options.workers,
        name=options.name,
        attempts=options.attempts,
        progress=False if options.quiet else None,
        command=options.command,
    )
    print(
        f"{report.name} [{report.code[:12]}]: {report.total} configurations, "
        f"{report.computed} computed, {report.found} found, "
        f"{report.seconds:.1f} s"
    )
    return 0


def _status(options: argparse.Namespace) -> int:
    with Store(options.store) as store:
        found = store.status()
        for status in found:
            print(
                f"{status.sweep} [{status.code[:12]}]: "
                f"{status.planned} planned, {status.done} done, "
                f"{status.missing} missing, {status.failed} failed"
            )
            for configuration, error, attempts in store.failures(status):
                print(f"  failed {attempts} times: {configuration}: {error}")
    if not found:
        print("no sweep was run with this store yet")
    return 0


def _export(options: argparse.Namespace) -> int:
    manifest = export(
        options.store,
        options.target,
        name=options.name,
        code=options.code,
        partial=options.partial,
    )
    print(
        f"{manifest['rows']} rows of {manifest['function']} "
        f"[{manifest['code'][:12]}], sha256 {manifest['sha256']}"
    )
    return 0


def _rescue(options: argparse.Namespace) -> int:
    counts = rescue(options.store, options.target)
    print(
        f"{counts['results']} results of {counts['planned']} planned are in "
        f"{options.target}; the same `run` with it computes the others"
    )
    return 0


if __name__ == "__main__":
    sys.exit(main())
