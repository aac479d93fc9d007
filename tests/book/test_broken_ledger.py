"""Rows and ``settle`` calls that do not answer each other are caught."""

import subprocess

import pytest

from tools import ledger, small_book


def change_ledger(book, old, new):
    path = book / "book/ledger.yml"
    text = path.read_text()
    assert old in text, "the small book changed: mend this test"
    path.write_text(text.replace(old, new, 1))


def test_the_good_ledger_has_no_problem(book):
    assert ledger.problems(book) == []


CASES = {
    "a settle without a row": (
        "id: bridges.square_law",
        "id: bridges.squares",
        "does not have: add the row",
    ),
    "a settled row that says not yet": (
        "status: proved here",
        "status: not yet",
        "set status, chapter and tests",
    ),
    "a verdict without a settle": (
        "chapter: null\n  tests: []\n  status: not yet",
        "chapter: part/chapter.ipynb#theorem-squares\n  tests: [x]\n"
        "  status: reproduced",
        "no chapter calls",
    ),
    "a row with a wrong anchor": (
        "#theorem-squares",
        "#theorem-cubes",
        "chapter.ipynb lacks",
    ),
    "a row with a wrong file": (
        "part/chapter.ipynb",
        "part/other.ipynb",
        "no such file",
    ),
    "a verdict without a test": (
        "tests: [tests/test_squares.py::test_square]",
        "tests: []",
        "names no test",
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_caught_with_advice(book, name):
    old, new, advice = CASES[name]
    change_ledger(book, old, new)
    found = ledger.problems(book)
    assert any(advice in message for message in found), found


def test_a_row_settled_twice_needs_parts(book):
    notebook = small_book.read(book)
    cell = next(c for c in notebook.cells if "settle" in c.source)
    cell.outputs = cell.outputs * 2
    small_book.write(book, notebook)
    for record in (book / "_build/executed").rglob("*.json"):
        record.unlink()
    assert any("part of its own" in m for m in ledger.problems(book))


SETTLE = "from helpers.book import ledger; ledger.settle({})"


def settle(book, arguments) -> subprocess.CompletedProcess:
    return small_book.run(book, "-c", SETTLE.format(arguments))


@pytest.mark.parametrize(
    ("arguments", "advice"),
    [
        ('"bridges.sqare_law", measured=2.0, expected=2.0', "nearest: bridg"),
        ('"bridges.square_law", measured=2.1, expected=2.0', "claim needs"),
        (
            '"bridges.square_law", measured=2.0, expected=2.0, control=2.0',
            "the check is empty",
        ),
        ('"bridges.square_law", measured=2.0', "give either expected"),
        (
            '"bridges.square_law", measured=float("nan"), at_most=1.0',
            "must be finite",
        ),
    ],
    ids=["unknown row", "false claim", "empty control", "no rule", "nan"],
)
def test_a_settle_that_proves_nothing_raises(book, arguments, advice):
    done = settle(book, arguments)
    assert done.returncode != 0
    assert advice in done.stderr
