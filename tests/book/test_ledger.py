"""Rows and chapters answer each other, and every named test exists."""

import ast
from pathlib import Path

from helpers.book import ledger as rows_of_book
from tools import ROOT, ledger

ROWS = rows_of_book.load(ROOT / "book" / "ledger.yml")


def test_rows_and_settles_answer_each_other():
    found = ledger.problems()
    assert not found, "\n".join(found)


def test_every_named_test_exists():
    missing = [
        f"{row['id']}: {name}"
        for row in ROWS
        for name in row.get("tests") or []
        if not _exists(name)
    ]
    assert not missing, "\n".join(missing)


def _exists(node_id: str) -> bool:
    file, *names = node_id.split("[")[0].split("::")
    path = Path(ROOT / file)
    if not path.is_file() or not names:
        return False
    body = ast.parse(path.read_text()).body
    for name in names:
        found = [n for n in body if getattr(n, "name", None) == name]
        if not found:
            return False
        body = getattr(found[0], "body", [])
    return True


def test_summary_counts_what_the_rows_say():
    counts = ledger.settled_counts(ROWS)
    assert sum(c["total"] for c in counts.values()) == len(ROWS)
    settled = [r for r in ROWS if r["status"] not in rows_of_book.UNSETTLED]
    assert sum(c["settled"] for c in counts.values()) == len(settled)


def test_the_front_page_claims_no_more_than_the_ledger():
    """No count and no superlative is typed; the summary is made."""
    text = (ROOT / "book" / "index.md").read_text()
    assert "{ledger-summary}" in text
    for word in ("all theorems", "every theorem is proved", "complete"):
        assert word not in text.lower()
