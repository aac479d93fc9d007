"""Reading an exported table: the numbers, the manifest, and what is refused."""

import json

import numpy as np
import pytest

from helpers.sweep import export, load_results
from helpers.sweep.store import Row, Store

CODE = "c" * 64


@pytest.fixture
def table(tmp_path):
    pytest.importorskip("pyarrow", reason="the extra sweep is missing")
    items = [{"n": n, "seed": 0} for n in (2, 3, 4)]
    results = [
        {"loss": 0.5, "label": "a"},
        {"loss": float("nan"), "label": "b"},
        {"label": "a"},
    ]
    with Store(tmp_path / "s.sqlite", create=True) as store:
        store.plan("s", "m:f", items)
        run = store.begin_run("s", "m:f", CODE, "the command", "paper", {})
        store.record(
            "m:f",
            CODE,
            [
                Row(c, 0.5, json.dumps(r))
                for c, r in zip(items, results, strict=True)
            ],
        )
        store.end_run(run)
    export(tmp_path / "s.sqlite", tmp_path / "t.parquet", code="c")
    return tmp_path / "t.parquet"


def test_columns_and_manifest(table):
    results = load_results(table)
    assert len(results) == 3
    assert results["n"].tolist() == [2, 3, 4]
    assert results["label"].tolist() == ["a", "b", "a"]
    np.testing.assert_array_equal(results["loss"], [0.5, np.nan, np.nan])
    assert results.manifest["command"] == "the command"
    assert results.manifest["seconds"] == 1.5
    with pytest.raises(KeyError, match="no column 'width'; there are n, seed"):
        results["width"]


def test_another_table_is_refused(table):
    content = table.read_bytes()
    table.write_bytes(content + b"\0")
    with pytest.raises(ValueError, match="SHA-256 differs"):
        load_results(table)


def test_a_table_without_manifest_is_refused(table):
    table.with_suffix(".json").unlink()
    with pytest.raises(ValueError, match="manifest t.json of .* is missing"):
        load_results(table)
