"""What builds and checks the book. Nothing here is imported by ``helpers``."""

import os
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
BOOK = ROOT / "book"
BUILD = ROOT / "_build"
HTML = BUILD / "html"

# One thread a process: two busy cores make threaded small work many times
# slower, and stored digits were made with one. Kernels inherit it.
for _name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ.setdefault(_name, "1")
