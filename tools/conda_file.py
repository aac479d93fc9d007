"""Write ``environment.yml`` from the lock: the same pins, for conda.

``python -m tools.conda_file`` (``make lock`` calls it). conda hands pip one
file, and pip, when it sees one hash, wants a hash for everything, torch and
this repository included. So the pins are written out without their hashes.
"""

from __future__ import annotations

import re

from tools import ROOT

HEAD = """\
# conda env create -f environment.yml
# Written by tools/conda_file.py from requirements.txt and the Makefile: the
# same pins as `make setup`, without hashes. A test keeps the files equal.
name: constrained-expressivity
channels: [conda-forge]
dependencies:
  - python=3.11
  - pip
  - make
  - pip:
"""


def torch_route() -> tuple[str, str]:
    """Version of torch and the index of its CPU builds."""
    makefile = (ROOT / "Makefile").read_text()
    version = re.search(r"^TORCH\s*:=\s*(\S+)", makefile, re.MULTILINE)[1]
    index = re.search(r"^CPU_INDEX\s*:=\s*(\S+)", makefile, re.MULTILINE)[1]
    return version, index


def pins() -> list[str]:
    """``name==version ; marker`` of every package of the lock."""
    lock = (ROOT / "requirements.txt").read_text()
    found = re.findall(r"^([A-Za-z0-9][^\\\n]*?)\s*\\?$", lock, re.MULTILINE)
    return [pin for pin in found if "==" in pin]


def text() -> str:
    version, index = torch_route()
    lines = [
        f"--extra-index-url {index}",
        f"torch=={version}",
        *pins(),
        "-e .",
    ]
    quoted = [f'      - "{line}"\n' for line in lines]
    return HEAD + "".join(quoted)


def main() -> None:
    (ROOT / "environment.yml").write_text(text(), encoding="utf-8")
    print(f"environment.yml: {len(pins())} pins")


if __name__ == "__main__":
    main()
