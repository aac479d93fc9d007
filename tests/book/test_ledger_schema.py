"""The ledger is well formed and leaves nothing of the papers out."""

from __future__ import annotations

import copy
import json
import re
from collections import Counter
from pathlib import Path

import jsonschema
import pytest
import yaml

BOOK = Path(__file__).resolve().parents[2] / "book"
NOT_YET = "not yet"

# rows that each paper has at least; they only ever grow
LEAST_ROWS = {
    "allocation": 80,
    "linear_regions": 130,
    "copy_average": 100,
    "spectral_alignment": 90,
}

# The numbered items of each paper, as they are known (by number printed).
NUMBERED = {
    "allocation": """
        Theorem 3.2; Lemma 3.3; Theorem 4.1; Theorem B1; Theorem B6;
        Theorem B9; Figure 1; Figure 3c
    """,
    "linear_regions": """
        Theorem 3.1; Lemma A.1; Lemma A.2; Lemma A.3; Lemma A.4; Theorem A.6;
        Lemma A.7; Lemma A.8; Theorem A.9; Lemma A.10; Theorem A.11;
        Algorithm 1; Table 1; Table 2; Table 3; Figure 1; Figure 2; Figure 3;
        Figure 4; Figure 5; Figure 6; Figure 7; Figure 8; Figure 9; Figure 10;
        Figure 11; Figure 12; Figure 13; Figure 14; Figure 15; Figure 16;
        Figure 17
    """,
    "copy_average": """
        Assumption 3.1; Proposition 4.1; Theorem 4.2; Theorem 5.1;
        Corollary 5.2; Proposition 5.3; Proposition 5.4; Theorem 5.5;
        Remark D.1; Lemma F.1; Lemma F.2; Corollary G.5; Eq. 10; Eq. 56;
        Appendix E.1; Appendix C.3; Figure 1 (top); Figure 1 (bottom);
        Figure 2; Figure 3; Figure 4
    """,
    "spectral_alignment": """
        Definition 1.1; Lemma 2.1; Corollary 3.1; Lemma 3.2; Proposition 3.3;
        Definition 3.4; Lemma 3.5; Proposition 4.1; Remark 4.2;
        Proposition 4.3; Remark 4.4; Proposition 4.5; Theorem 5.1;
        Corollary 5.2; Theorem 5.3; Corollary 5.4; Proposition 5.5;
        Remark 5.6; Remark 5.7; Definition 5.8; Lemma 5.9; Theorem 5.10;
        Remark 5.11; Example 5.12; Theorem 5.13; Remark 5.14; Remark 6.1;
        Open problem A; Open problem B
    """,
}

# Series of our own or of the reviewers: prefix of the id and last number.
SERIES = {
    "allocation.request_r": 12,
    "allocation.figure_f": 11,
    "linear_regions.experiment_e": 18,
    "copy_average.request_": 10,
    "spectral_alignment.experiment_e": 12,
    "spectral_alignment.companion_c": 7,
    "spectral_alignment.fixture_f": 5,
}


@pytest.fixture(scope="module")
def rows():
    text = (BOOK / "ledger.yml").read_text(encoding="utf-8")
    return yaml.safe_load(text)


@pytest.fixture(scope="module")
def validator():
    text = (BOOK / "ledger.schema.json").read_text(encoding="utf-8")
    schema = json.loads(text)
    jsonschema.Draft202012Validator.check_schema(schema)
    return jsonschema.Draft202012Validator(schema)


def complaints(validator, rows):
    return [
        f"{rows[e.absolute_path[0]].get('id') if e.absolute_path else 'ledger'}"
        f": {'/'.join(map(str, list(e.absolute_path)[1:]))} {e.message[:120]}"
        for e in validator.iter_errors(rows)
    ]


def test_rows_satisfy_the_schema(validator, rows):
    found = complaints(validator, rows)
    assert not found, "book/ledger.yml: " + "; ".join(found[:10])


def test_ids_are_unique(rows):
    counts = Counter(r["id"] for r in rows)
    double = [i for i, n in counts.items() if n > 1]
    assert not double, f"ids used more than once: {double}"


def test_ids_begin_with_their_paper(rows):
    wrong = [r["id"] for r in rows if r["id"].split(".")[0] != r["paper"]]
    assert not wrong, f"the id must begin with the row's paper: {wrong}"


@pytest.mark.parametrize("paper", LEAST_ROWS)
def test_no_row_was_lost(rows, paper):
    mine = sum(r["paper"] == paper for r in rows)
    assert mine >= LEAST_ROWS[paper], f"{paper}: only {mine} rows"


@pytest.mark.parametrize("paper", NUMBERED)
def test_every_numbered_item_has_a_row(rows, paper):
    wanted = {" ".join(n.split()) for n in NUMBERED[paper].split(";")}
    present = {r.get("number") for r in rows if r["paper"] == paper}
    missing = sorted(wanted - present)
    assert not missing, f"book/ledger.yml lacks rows of {paper} for {missing}"


@pytest.mark.parametrize("prefix", SERIES)
def test_series_are_complete(rows, prefix):
    ids = {r["id"] for r in rows}
    wanted = [f"{prefix}{n}" for n in range(1, SERIES[prefix] + 1)]
    missing = [i for i in wanted if i not in ids]
    assert not missing, f"book/ledger.yml lacks {missing}"


def test_a_row_has_a_chapter_exactly_when_it_is_settled(rows):
    wrong = [
        r["id"]
        for r in rows
        if (r["status"] == NOT_YET) != (r["chapter"] is None)
    ]
    assert not wrong, f"status and chapter contradict each other: {wrong}"


def test_settled_rows_name_a_test(rows):
    silent = (NOT_YET, "not run here", "open")
    bare = [
        r["id"] for r in rows if r["status"] not in silent and not r["tests"]
    ]
    assert not bare, f"settled without a test: {bare}"


def test_maths_is_closed(rows):
    wrong = [
        r["id"]
        for r in rows
        for text in (r["claim"], r.get("note", ""))
        if text.count("$") % 2 or text.count("{") != text.count("}")
    ]
    assert not wrong, f"dollars or braces do not pair up: {wrong}"


def test_rows_are_written_in_one_key_order(rows):
    order = (
        "id paper number kind title claim published tolerance chapter tests "
        "status note"
    ).split()
    wrong = [r["id"] for r in rows if [k for k in order if k in r] != list(r)]
    assert not wrong, f"keys must follow {order}: {wrong}"


def test_reconstructed_statements_say_so(rows):
    """No one may take our wording for that of a paper we have not seen."""
    wanted = re.compile(r"reconstruction|not recovered|unknown|respons|Ours")
    kinds = {"definition", "lemma", "theorem", "remark"}
    bare = [
        r["id"]
        for r in rows
        if r["paper"] == "allocation"
        and r["kind"] in kinds
        and not wanted.search(r.get("note", ""))
    ]
    assert not bare, f"the note must say what is our reconstruction: {bare}"


BROKEN = {
    "unknown key": {"chaper": "typo"},
    "unknown status": {"status": "done"},
    "unknown kind": {"kind": "fact"},
    "claim too thin": {"claim": "true"},
    "TeX in the title": {"title": "The norm $r$"},
    "chapter without anchor": {
        "status": "reproduced",
        "chapter": "copy_average/one_neuron.ipynb",
        "tests": ["tests/a.py::test_b"],
    },
    "settled without chapter": {
        "status": "reproduced",
        "tests": ["tests/a.py::test_b"],
    },
    "chapter but not settled": {
        "status": NOT_YET,
        "chapter": "copy_average/one_neuron.ipynb#theorem-5-1",
    },
    "settled without test": {
        "status": "proved here",
        "chapter": "copy_average/one_neuron.ipynb#theorem-5-1",
    },
    "not run, without a reason": {
        "status": "not run here",
        "chapter": "copy_average/one_neuron.ipynb#theorem-5-1",
    },
    "malformed test": {"tests": ["test_b"]},
    "tolerance without value": {"tolerance": 0.1},
    "negative tolerance": {"published": 1.0, "tolerance": -0.1},
    "wrong prefix": {"id": "gravity.theorem_1"},
}


@pytest.mark.parametrize("defect", BROKEN)
def test_the_schema_refuses_a_broken_row(validator, defect):
    row = {
        "id": "bridges.example",
        "paper": "bridges",
        "kind": "theorem",
        "title": "An example",
        "claim": "A claim that is long enough to be a sentence.",
        "chapter": None,
        "tests": [],
        "status": NOT_YET,
    }
    assert not complaints(validator, [copy.deepcopy(row)])
    assert complaints(validator, [row | BROKEN[defect]]), defect
