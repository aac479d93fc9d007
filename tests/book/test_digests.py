"""What an execution depends on, and when two outputs count as equal."""

import json

import nbformat
import pytest
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook

from tools.digests import notebook_digest, reached_modules
from tools.execution import Record, is_fresh, keep, read_record


@pytest.fixture
def house(tmp_path):
    """A root with helper packages that import each other."""
    files = {
        "helpers/__init__.py": "",
        "helpers/core/__init__.py": "",
        "helpers/core/ground.py": "X = 1\n",
        "helpers/core/data.py": "",
        "helpers/core/datasets/table.csv": "1,2\n",
        "helpers/part/__init__.py": "",
        "helpers/part/kernel.py": "from helpers.core.ground import X\n",
        "helpers/part/lazy.py": "def f():\n    import helpers.core.data\n",
        "helpers/other/__init__.py": "from helpers.other import deep\n",
        "helpers/other/deep.py": "",
        "book/data/sweep.parquet": "bytes",
        "requirements.txt": "numpy==2\n",
    }
    for name, text in files.items():
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return tmp_path


def names(root, *sources):
    return {
        str(p.relative_to(root / "helpers"))
        for p in reached_modules(list(sources), root)
        if p.name != "__init__.py"
    }


@pytest.mark.parametrize(
    ("source", "reached"),
    [
        ("import numpy", set()),
        ("import helpers.part.kernel", {"part/kernel.py", "core/ground.py"}),
        ("from helpers.part import kernel", {"part/kernel.py"}),
        ("from helpers.core.ground import X", {"core/ground.py"}),
        ("from helpers.part.lazy import f", {"part/lazy.py", "core/data.py"}),
        ("import helpers.other", {"other/deep.py"}),
        ("if True:\n    from helpers.part import kernel", {"part/kernel.py"}),
        ("this is not Python", set()),
    ],
)
def test_reached_modules(house, source, reached):
    assert reached <= names(house, source)
    if not reached:
        assert names(house, source) == set()


def write(root, source="from helpers.part import kernel", prose="words"):
    notebook = new_notebook(
        cells=[new_markdown_cell(prose), new_code_cell(source)]
    )
    notebook.metadata["kernelspec"] = {"name": "python3"}
    path = root / "book" / "chapter.ipynb"
    nbformat.write(notebook, path)
    return path


def test_prose_and_strangers_do_not_matter(house):
    before = notebook_digest(write(house), house)
    (house / "helpers/other/deep.py").write_text("Y = 2\n")
    assert notebook_digest(write(house, prose="new"), house) == before


@pytest.mark.parametrize(
    "name", ["helpers/core/ground.py", "helpers/__init__.py"]
)
def test_a_reached_module_matters(house, name):
    before = notebook_digest(write(house), house)
    (house / name).write_text("X = 2\n")
    assert notebook_digest(write(house), house) != before


def test_code_lock_scale_and_data_matter(house, monkeypatch):
    digests = [notebook_digest(write(house), house)]
    source = "from helpers.core import data\nread('sweep.parquet')"
    digests.append(notebook_digest(write(house, source), house))
    (house / "book/data/sweep.parquet").write_text("other bytes")
    digests.append(notebook_digest(write(house, source), house))
    (house / "helpers/core/datasets/table.csv").write_text("1,3\n")
    digests.append(notebook_digest(write(house, source), house))
    (house / "requirements.txt").write_text("numpy==3\n")
    digests.append(notebook_digest(write(house, source), house))
    monkeypatch.setenv("BOOK_SCALE", "paper")
    digests.append(notebook_digest(write(house, source), house))
    assert len(set(digests)) == len(digests)


def record(path, root):
    return Record(
        "book/chapter.ipynb", notebook_digest(path, root), "quick", 1
    )


def test_a_kept_execution_is_fresh_until_something_changes(house):
    path = write(house)
    assert not is_fresh(path, house)
    keep(path, nbformat.read(path, 4), record(path, house), house)
    assert is_fresh(path, house)
    (house / "helpers/core/ground.py").write_text("X = 3\n")
    assert not is_fresh(path, house)


@pytest.mark.parametrize(
    "text", ["", "{", "[]", "{}", json.dumps({"notebook": "x", "digest": 1})]
)
def test_a_damaged_record_counts_as_none(house, text):
    path = write(house)
    keep(path, nbformat.read(path, 4), record(path, house), house)
    beside = house / "_build/executed/book/chapter.json"
    beside.write_text(text)
    assert read_record(path, house) is None
    assert not is_fresh(path, house)


def close(a, b):
    from tools.nbval_plugin import Close

    return Close(a) == Close(b)


WIDE = "figure a-b: 1 axes, compared to 1e-03\naxes 1: "


@pytest.mark.parametrize(
    ("a", "b", "equal"),
    [
        ("x 1.0000000", "x 1.0000005", True),
        ("x 1.00000", "x 1.00001", False),
        ("x 1.0", "y 1.0", False),
        ("n 3", "n 4", False),  # whole numbers are words
        ("1.0 and 2.0", "1.0", False),
        ("-1.5e-3", "-1.5000001e-3", True),
        ("1.5e-3", "-1.5e-3", False),
        ("0.0", "1e-13", True),
        ("a  b\n", "a b", True),  # white space is folded
        ("1e5", "100000.0", True),
        (WIDE + "y 1.0", WIDE + "y 1.0005", True),
        (WIDE + "y 1.0", WIDE + "y 1.005", False),
        (WIDE + "y 1.0", "figure a-b: 1 axes\naxes 1: y 1.0", False),
        ("said " + WIDE + "y 1.0", "said " + WIDE + "y 1.0005", False),
    ],
)
def test_what_counts_as_equal(a, b, equal):
    assert close(a, b) is equal and close(b, a) is equal
