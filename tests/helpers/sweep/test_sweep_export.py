"""Tables for readers, and the manifest beside them."""

import json
import math
from hashlib import sha256

import pytest

from helpers.sweep import StoreError, export, run_sweep, spawn_seeds
from helpers.sweep.digest import code_digest
from helpers.sweep.store import Row, Store

MINE = ("m:f", "c" * 64)


@pytest.fixture
def parquet():
    return pytest.importorskip(
        "pyarrow.parquet", reason="the extra sweep is not installed"
    )


def filled(path, results, code=MINE[1], name="s", planned=None):
    items = [{"x": i} for i in range(planned or len(results))]
    with Store(path, create=True) as store:
        store.plan(name, MINE[0], items)
        run = store.begin_run(name, MINE[0], code, "the command", "paper", {})
        rows = [
            Row(c, 0.5, json.dumps(r))
            for c, r in zip(items, results, strict=False)
        ]
        store.record(MINE[0], code, reversed(rows))
        store.end_run(run)
    return path


def test_from_run_to_table(bench, parquet):
    seeds = spawn_seeds(3, 4)
    code, _, err = bench.run(
        *("run", "tasks:draw", bench.store, "--name", "means"),
        *("--over", "n=[2,3]", "--seeds", 4, "--root-seed", 3),
    )
    assert code == 0, err
    code, out, err = bench.run("export", bench.store, "means.parquet")
    assert code == 0 and "8 rows of tasks:draw" in out, err
    table = parquet.read_table("means.parquet")
    assert table.column_names == ["n", "seed", "mean"]
    assert table["n"].to_pylist() == [2] * 4 + [3] * 4
    assert table["seed"].to_pylist() == 2 * seeds
    manifest = json.loads((bench.folder / "means.json").read_text())
    file = (bench.folder / "means.parquet").read_bytes()
    assert manifest["sha256"] == sha256(file).hexdigest()
    assert manifest["code"] == code_digest("tasks:draw")
    assert manifest["function"] == "tasks:draw"
    assert manifest["command"].startswith("python -m helpers.sweep run tasks")
    assert "--root-seed 3" in manifest["command"]
    assert manifest["seeds"] == seeds
    assert (manifest["rows"], manifest["missing"]) == (8, 0)
    assert manifest["scale"] == "quick" and manifest["seconds"] >= 0
    assert {"numpy", "joblib"} <= set(manifest["versions"])
    # equal results make an equal file
    export(bench.store, "again.parquet")
    assert (bench.folder / "again.parquet").read_bytes() == file


def test_values_that_json_has_no_word_for(tmp_path, parquet):
    results = [
        {"y": math.nan, "v": [1.0, math.inf]},
        {"y": None, "v": []},
        {"y": 3, "extra": "only here"},
    ]
    store = filled(tmp_path / "s.sqlite", results)
    manifest = export(store, tmp_path / "t.parquet", code="cc")
    assert manifest["scale"] == "paper" and manifest["seconds"] == 1.5
    table = parquet.read_table(tmp_path / "t.parquet")
    first, *rest = table["y"].to_pylist()
    assert math.isnan(first) and rest == [None, 3.0]
    assert table["v"].to_pylist() == [[1.0, math.inf], [], None]
    assert table["extra"].to_pylist() == [None, None, "only here"]
    assert table["x"].to_pylist() == [0, 1, 2]  # the order of the plan


def test_mixed_columns_are_refused(tmp_path, parquet):
    store = filled(tmp_path / "s.sqlite", [{"y": 1}, {"y": "one"}])
    with pytest.raises(ValueError, match="column 'y'"):
        export(store, tmp_path / "t.parquet", code="c")
    assert {p.name for p in tmp_path.iterdir()} == {"s.sqlite"}


def test_an_unfinished_sweep_is_exported_only_on_demand(tmp_path, parquet):
    store = filled(tmp_path / "s.sqlite", [{"y": 1}] * 3, planned=5)
    with pytest.raises(ValueError, match="2 configurations of s are missing"):
        export(store, tmp_path / "t.parquet", code="c")
    manifest = export(store, tmp_path / "t.parquet", code="c", partial=True)
    assert (manifest["rows"], manifest["missing"]) == (3, 2)


def test_which_sweep_and_which_code(tmp_path, parquet):
    path = filled(tmp_path / "s.sqlite", [{"y": 1}])
    filled(path, [{"y": 2}], code="cd" + "0" * 62)
    target = tmp_path / "t.parquet"
    export(path, target, code="cd")
    assert parquet.read_table(target)["y"].to_pylist() == [2]
    export(path, target, code="cc")
    assert parquet.read_table(target)["y"].to_pylist() == [1]
    with pytest.raises(ValueError, match="was asked for"):
        export(path, target, code="c")  # both begin so
    with pytest.raises(ValueError, match="was asked for"):
        export(path, target, code="e")
    filled(path, [{"y": 2}], name="other")
    with pytest.raises(ValueError, match=r"one of \['other', 's'\]"):
        export(path, target, code="cc")
    with pytest.raises(ValueError, match="got 'none'"):
        export(path, target, name="none")
    with pytest.raises(ValueError, match="must end in .parquet"):
        export(path, tmp_path / "t.csv", name="s")
    with pytest.raises(StoreError, match="there is no store"):
        export(tmp_path / "no.sqlite", target)


def test_code_that_changed_since_is_not_exported_by_default(bench, parquet):
    run_sweep("tasks:square", {"x": [2]}, bench.store, workers=1)
    with Store(bench.store) as store:
        store._db.execute("UPDATE runs SET code = ?", ("e" * 64,))
        store._db.execute("UPDATE results SET code = ?", ("e" * 64,))
    with pytest.raises(ValueError, match="is the code as it is now"):
        export(bench.store, bench.folder / "t.parquet")
    assert export(bench.store, bench.folder / "t.parquet", code="ee")["rows"]


def test_status_of_an_empty_store(tmp_path, capsys):
    from helpers.sweep.__main__ import main

    with Store(tmp_path / "s.sqlite", create=True):
        pass
    assert main(["status", str(tmp_path / "s.sqlite")]) == 0
    assert "no sweep" in capsys.readouterr().out


def test_a_missing_extra_is_named(monkeypatch):
    from helpers.sweep.extras import need

    with pytest.raises(ModuleNotFoundError, match=r"pip install '\.\[dask\]'"):
        need("no_such_package", "dask")
