"""Which code counts, and which functions can be found again."""

import functools
import importlib
import sys

import pytest

from helpers.core.imports import reached_files
from helpers.core.statistics import wilson_interval
from helpers.sweep.digest import code_digest, code_files, load, reference_of


@pytest.fixture
def study(tmp_path, monkeypatch):
    """A small package and a script with a neighbour."""
    files = {
        "study/__init__.py": "",
        "study/task.py": (
            "from . import near\nfrom .deep.far import X\n"
            "from helpers.core.tolerances import ROUNDING\n"
            "def f(x):\n    return {'y': x}\n"
        ),
        "study/near.py": "import lonely\n",
        "study/other.py": "",
        "study/deep/__init__.py": "",
        "study/deep/far.py": "from ..sibling import Y as X\n",
        "study/sibling.py": "Y = 1\n",
        "lonely.py": "",
    }
    for name, text in files.items():
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    monkeypatch.syspath_prepend(tmp_path)
    yield tmp_path
    for name in [n for n in sys.modules if n.split(".")[0] == "study"]:
        del sys.modules[name]


def test_files_by_hand(study):
    assert set(code_files("study.task:f")) == {
        "study/__init__.py",
        "study/task.py",
        "study/near.py",
        "study/deep/__init__.py",
        "study/deep/far.py",
        "study/sibling.py",
        "lonely.py",
        "helpers/__init__.py",
        "helpers/core/__init__.py",
        "helpers/core/tolerances.py",
    }


@pytest.mark.parametrize("name", ["task", "near", "deep/far", "sibling"])
def test_a_reached_file_matters(study, name):
    before = code_digest("study.task:f")
    with open(study / f"study/{name}.py", "a") as file:
        file.write("Z = 2\n")
    assert code_digest("study.task:f") != before


def test_strangers_and_ends_of_lines_do_not_matter(study):
    before = code_digest("study.task:f")
    (study / "study/other.py").write_text("Z = 2\n")
    text = (study / "study/sibling.py").read_text()
    (study / "study/sibling.py").write_bytes(
        text.replace("\n", "\r\n").encode()
    )
    assert code_digest("study.task:f") == before


def test_a_package_s_own_function(study):
    (study / "study/__init__.py").write_text(
        "from study.sibling import Y\ndef g():\n    return {'y': Y}\n"
    )
    importlib.invalidate_caches()
    assert {"study/__init__.py", "study/sibling.py"} <= set(
        code_files("study:g")
    )


def test_installed_packages_are_not_digested():
    files = code_files("joblib.parallel:cpu_count")
    assert {n.split("/")[0] for n in files} <= {"joblib", "helpers"}


def test_broken_code_reaches_nothing(tmp_path):
    assert reached_files(["def"], {tmp_path: None}) == set()


def test_references():
    assert reference_of(wilson_interval) == (
        "helpers.core.statistics:wilson_interval"
    )
    assert load(reference_of(wilson_interval)) is wilson_interval


def a_function():
    return lambda: {}


@pytest.mark.parametrize(
    ("function", "words"),
    [
        (lambda: {}, "top of a module"),
        (a_function(), "top of a module"),
        (functools.partial(wilson_interval, 1), "partial"),
        (len, "plain function"),
        (3, "plain function"),
        ("helpers.core.statistics", "MODULE:NAME"),
        ("helpers.core.statistics:nothing", "no function"),
        ("helpers.nowhere:f", "no function"),
        ("helpers.core.tolerances:ROUNDING", "is no function"),
    ],
)
def test_refused_functions(function, words):
    with pytest.raises(ValueError, match=words):
        reference_of(function)


def test_a_function_of_the_started_script_is_refused(monkeypatch):
    monkeypatch.setattr(a_function, "__module__", "__main__")
    with pytest.raises(ValueError, match="move it into a file"):
        reference_of(a_function)
