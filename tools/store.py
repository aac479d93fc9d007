"""Run chapters and store them: words and numbers kept, pictures dropped.

``python -m tools.store book/part/chapter.ipynb ...`` (default: all chapters).
What is stored is what nbval compares; pictures are made again at build time.
"""

from __future__ import annotations

import sys
from pathlib import Path

import nbformat

from tools import ROOT
from tools.execution import ExecutionFailed, execute, notebooks

HIDE = "remove-output"  # the page shows a figure where its caption stands


def is_picture(mime: str) -> bool:
    bare = mime.removeprefix("application/papermill.record/")
    return bare.startswith("image/") or bare in (
        "text/html",
        "application/pdf",
    )


def strip(executed) -> None:
    """Drop pictures and run-time metadata from an executed notebook."""
    for cell in executed.cells:
        if cell.cell_type != "code":
            continue
        for key in ("execution", "collapsed", "scrolled"):
            cell.metadata.pop(key, None)
        for output in cell.outputs:
            data = output.get("data", {})
            if "text/plain" in data or any(
                m.endswith("/text/plain") for m in data
            ):
                for mime in [m for m in data if is_picture(m)]:
                    del data[mime]
        if _shows_figure(cell):
            tags = cell.metadata.setdefault("tags", [])
            if HIDE not in tags:
                tags.append(HIDE)
    executed.metadata.pop("widgets", None)
    executed.metadata["kernelspec"] = {
        "display_name": "Python 3",
        "language": "python",
        "name": "python3",
    }
    executed.metadata["language_info"] = {"name": "python"}


def _shows_figure(cell) -> bool:
    return any(
        "figure" in output.get("metadata", {}).get("companion", {})
        for output in cell.outputs
    )


def normalise(path: Path) -> None:
    """Bring the source into the stored form before it is run."""
    nb = nbformat.read(path, as_version=4)
    for cell in nb.cells:
        cell.source = cell.source.strip("\n")
    nb.metadata["kernelspec"] = {
        "display_name": "Python 3",
        "language": "python",
        "name": "python3",
    }
    nbformat.write(nb, path)


def store(path: Path) -> None:
    path = path.resolve()
    normalise(path)
    executed, record = execute(path, ROOT)
    strip(executed)
    nbformat.write(executed, path)
    print(f"stored {record.notebook} ({record.seconds:.1f} s)")


def main(arguments: list[str]) -> int:
    failed = 0
    for path in [Path(a) for a in arguments] or notebooks():
        try:
            store(path)
        except ExecutionFailed as error:
            failed += 1
            print(f"FAILED {error}", file=sys.stderr)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
