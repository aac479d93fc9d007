"""Build the book with warnings as errors, and say where it lies.

``python -m tools.build`` (``--from-nothing`` forgets the last build first).
A failed build is forgotten too: Sphinx would not repeat its warnings.
"""

from __future__ import annotations

import argparse
import shutil
import subprocess
import sys
from pathlib import Path

from tools import ROOT


def build(root: Path = ROOT, from_nothing: bool = False) -> int:
    """Build ``root``; exit status of Jupyter Book."""
    doctrees = root / "_build" / ".doctrees"
    html = root / "_build" / "html"
    if from_nothing:
        shutil.rmtree(doctrees, ignore_errors=True)
    # pages are always written anew: Sphinx skips changed style sheets
    shutil.rmtree(html, ignore_errors=True)
    call = "from jupyter_book.cli.main import main; main()"
    command = [sys.executable, "-c", call, "build", "-W", "-n"]
    command += ["--keep-going", str(root)]
    status = subprocess.run(command, cwd=root, check=False).returncode
    if not status and not (html / "index.html").is_file():
        status = 1  # nothing said, nothing written
    if status:
        shutil.rmtree(doctrees, ignore_errors=True)
    return status


def main(arguments=None) -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--from-nothing", action="store_true")
    options = parser.parse_args(arguments)
    status = build(from_nothing=options.from_nothing)
    if status:
        print("\nThe book was not built: see the warnings above.")
    else:
        page = ROOT / "_build" / "html" / "index.html"
        print(f"\nThe book is built. Open {page.as_uri()}")
    return status


if __name__ == "__main__":
    sys.exit(main())
