import numpy as np
import pytest

from helpers.book import ledger

ROWS = """
- {id: bridges.one, paper: bridges, claim: "one is one", status: not yet}
- {id: bridges.two, paper: bridges, claim: "two", status: not yet}
"""


@pytest.fixture(autouse=True)
def two_rows(monkeypatch, tmp_path):
    path = tmp_path / "ledger.yml"
    path.write_text(ROWS)
    monkeypatch.setenv("BOOK_LEDGER", str(path))


def record(shown):
    return shown[-1][1]["companion"]["ledger"]


PASS = [
    {"measured": 1.0, "expected": 1.0},
    {"measured": 1.0 + 5e-10, "expected": 1.0},
    {"measured": 1.05, "expected": 1.0, "tolerance": 0.1},
    {"measured": np.ones((2, 2)), "expected": 1.0},
    {"measured": [1, 2], "expected": [1, 2]},
    {"measured": True, "expected": True},
    {"measured": "saddle", "expected": "saddle"},
    {"measured": 3, "at_most": 3},
    {"measured": [0.2, 0.4], "at_least": 0.1, "at_most": 0.5},
    {"measured": 0.0, "at_most": 1e-12, "control": 0.5},
    {"measured": 1, "expected": 1, "control": 2},
    {"measured": 1.0, "expected": 1.0, "control": [1.0, 2.0]},
]
FAIL = [
    {"measured": 1.0 + 1e-8, "expected": 1.0},
    {"measured": 1.2, "expected": 1.0, "tolerance": 0.1},
    {"measured": [1.0, 1.5], "expected": 1.0},
    {"measured": [1, 2], "expected": [1, 3]},
    {"measured": False, "expected": True},
    {"measured": 3.1, "at_most": 3},
    {"measured": [0.2, 0.6], "at_least": 0.1, "at_most": 0.5},
    {"measured": 0.05, "at_least": 0.1},
]


@pytest.mark.parametrize("arguments", PASS, ids=str)
def test_a_true_claim_is_recorded(shown, arguments):
    ledger.settle("bridges.one", **arguments)
    assert record(shown)["id"] == "bridges.one"
    assert shown[-1][0]["text/plain"].startswith("settled bridges.one")


@pytest.mark.parametrize("arguments", FAIL, ids=str)
def test_a_false_claim_raises_and_records_nothing(shown, arguments):
    with pytest.raises(ledger.ClaimFailed, match="one is one"):
        ledger.settle("bridges.one", **arguments)
    assert not shown


def test_a_control_that_passes_raises(shown):
    with pytest.raises(ledger.ClaimFailed, match="check is empty"):
        ledger.settle("bridges.one", measured=1.0, at_most=2.0, control=1.5)
    assert not shown


@pytest.mark.parametrize(
    "arguments",
    [
        {"measured": 1.0},
        {"measured": 1.0, "expected": 1.0, "at_most": 2.0},
        {"measured": 1.0, "at_most": 2.0, "tolerance": 0.1},
        {"measured": 1.0, "expected": 1.0, "tolerance": -1},
        {"measured": 1.0, "expected": 1.0, "tolerance": float("nan")},
        {"measured": float("nan"), "expected": 1.0},
        {"measured": [], "at_most": 1.0},
        {"measured": [1.0, 1.0], "expected": [1.0, 1.0, 1.0]},
    ],
    ids=str,
)
def test_a_rule_that_means_nothing_is_refused(shown, arguments):
    with pytest.raises(ValueError):
        ledger.settle("bridges.one", **arguments)
    assert not shown


def test_an_unknown_row_names_the_nearest(shown):
    with pytest.raises(ValueError, match="nearest: bridges.one"):
        ledger.settle("bridges.oen", measured=1.0, expected=1.0)


def test_the_printed_line_holds_no_rounding_residual(shown):
    ledger.settle("bridges.two", measured=3.1e-16, at_most=1e-12, part="a")
    text = shown[-1][0]["text/plain"]
    assert "below 1e-08" in text and "e-16" not in text
    assert record(shown)["measured"] == 3.1e-16


def test_an_exact_zero_prints_as_a_residual_would(shown):
    """On another BLAS it may be one, and nbval compares the words."""
    ledger.settle("bridges.two", measured=0.0, at_most=1e-12)
    first = shown[-1][0]["text/plain"]
    ledger.settle("bridges.two", measured=1e-17, at_most=1e-12)
    assert shown[-1][0]["text/plain"] == first
    ledger.settle("bridges.two", measured=0, at_most=0)
    assert "measured 0," in shown[-1][0]["text/plain"]


def test_no_ledger_says_where_it_was_sought(tmp_path, monkeypatch):
    monkeypatch.delenv("BOOK_LEDGER")
    (tmp_path / "ledger.yml").unlink()
    with pytest.raises(FileNotFoundError, match="BOOK_LEDGER"):
        ledger.find_ledger(tmp_path)
    path = tmp_path / "book" / "ledger.yml"
    path.parent.mkdir()
    path.touch()
    assert ledger.find_ledger(tmp_path / "book") == path
