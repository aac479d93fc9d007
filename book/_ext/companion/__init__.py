"""The book's own Sphinx extension: figures, ledger, status, freshness."""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[3]))

from companion import (
    figures,
    freshness,
    ledger_pages,
    sources_of_tests,
    static_files,
    status,
)

PARTS = (
    figures,
    freshness,
    ledger_pages,
    static_files,
    status,
    sources_of_tests,
)


def setup(app):
    for part in PARTS:
        part.setup(app)
    return {"version": "1", "parallel_read_safe": True}
