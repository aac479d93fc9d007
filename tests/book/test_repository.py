"""What no file of the repository may hold, and files that must be valid."""

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from tools import ROOT


def tracked() -> list[Path]:
    done = subprocess.run(
        ["git", "ls-files", "-co", "--exclude-standard"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        pytest.skip("not a git checkout")
    return [ROOT / name for name in done.stdout.splitlines()]


TEXT = (
    ".py .md .yml .yaml .toml .txt .in .cff .json .ipynb .css .js .bib "
    ".sh .cfg"
).split()
# in halves, so that this file does not trip over itself
FORBIDDEN = {
    "a registry's host": "|".join(
        ["pypi" + r"\.org", "files\\.pythonhosted" + r"\.org"]
        + ["registry\\.npmjs" + r"\.org", "deb\\.debian" + r"\.org"]
    ),
    "a path of one machine": r"(?<![\w.])/(?:work|tmp|root)/\w|/home/[a-z]+/\w",
}
MAY_NAME_PATHS = {
    # tests that a path is refused
    "tests/book/test_broken_contracts.py",
    "tools/contracts.py",
}


@pytest.mark.parametrize("what", FORBIDDEN)
def test_no_file_names(what):
    found = []
    for path in tracked():
        name = str(path.relative_to(ROOT))
        vendored = "vendor" in path.parts
        if path.suffix not in TEXT or vendored or not path.is_file():
            continue
        if name in MAY_NAME_PATHS and "path" in what:
            continue
        text = path.read_text(encoding="utf-8", errors="replace")
        found += [f"{name}: {m}" for m in re.findall(FORBIDDEN[what], text)]
    assert not found, found


def test_large_files_are_vendored_or_data():
    allowed = {"book/_static/vendor/mathjax/tex-svg.js"}
    for path in tracked():
        name = str(path.relative_to(ROOT))
        if path.is_file() and path.stat().st_size > 1_000_000:
            assert name in allowed, f"{name} is larger than 1 MB"


def test_vendored_files_have_licence_and_checksum():
    from hashlib import sha256

    manifest = yaml.safe_load((ROOT / "tests/vendor.yml").read_text())
    folders = [ROOT / "book/_static/vendor", ROOT / "tests/vendor"]
    on_disk = {
        str(p.relative_to(ROOT))
        for folder in folders
        for p in folder.rglob("*")
        if p.is_file()
    }
    assert on_disk == set(manifest)
    for name, entry in manifest.items():
        digest = sha256((ROOT / name).read_bytes()).hexdigest()
        assert digest == entry["sha256"], f"{name} was changed"
        assert entry["licence"] and entry["source"]


WORKFLOWS = sorted((ROOT / ".github" / "workflows").glob("*.yml"))


def schema_check(builtin: str, *files: Path):
    return subprocess.run(
        [sys.executable, "-m", "check_jsonschema", "--builtin-schema"]
        + [builtin, *map(str, files)],
        capture_output=True,
        text=True,
        check=False,
    )


def test_workflows_are_valid():
    assert len(WORKFLOWS) >= 3
    done = schema_check("vendor.github-workflows", *WORKFLOWS)
    assert done.returncode == 0, done.stdout + done.stderr


def test_a_broken_workflow_is_refused(tmp_path):
    broken = tmp_path / "broken.yml"
    broken.write_text("on: push\njobs:\n  build:\n    runs-in: ubuntu\n")
    done = schema_check("vendor.github-workflows", broken)
    assert done.returncode != 0


def test_workflows_call_the_readme_s_commands():
    text = "\n".join(p.read_text() for p in WORKFLOWS)
    assert "make test" in text and "make book" in text
    # a moving tag of somebody else's action is somebody else's code
    for use in re.findall(r"uses:\s*(\S+)", text):
        assert re.search(r"@v\d+", use), use


def test_citation_file_is_valid():
    file = yaml.safe_load((ROOT / "CITATION.cff").read_text())
    assert file["cff-version"] == "1.2.0"
    for key in ("title", "message", "authors", "license", "version"):
        assert file[key], key
    assert file["version"] == _version()
    done = schema_check("vendor.citation-file-format", ROOT / "CITATION.cff")
    assert done.returncode == 0, done.stdout + done.stderr


def _version() -> str:
    text = (ROOT / "helpers/__init__.py").read_text()
    return re.search(r'__version__ = "(.*)"', text)[1]


def test_version_is_the_same_everywhere():
    text = (ROOT / "pyproject.toml").read_text()
    assert f'version = "{_version()}"' in text
    assert _version() in (ROOT / "CHANGELOG.md").read_text()


def test_devcontainer_is_valid_json():
    file = ROOT / ".devcontainer" / "devcontainer.json"
    assert "make" in json.loads(file.read_text())["postCreateCommand"]


def test_ci_calls_the_readme_s_command():
    ci = (ROOT / ".ci/run").read_text()
    readme = (ROOT / "README.md").read_text()
    assert "make test" in ci and "make test" in readme
    assert "make book" in readme


def test_help_names_every_target():
    makefile = (ROOT / "Makefile").read_text()
    targets = re.findall(r"^([a-z]+):.*## (.+)$", makefile, re.MULTILINE)
    names = {name for name, _ in targets}
    wanted = "help book test execute store lab serve lint bench lock clean"
    assert set(wanted.split()) <= names


CODE = ["helpers", "tools", "tests", "benchmarks", "book/_ext"]


@pytest.mark.parametrize(
    "command",
    [["check", "."], ["format", "--check", *CODE]],
    ids=lambda c: c[0],
)
def test_code_and_cells_keep_the_style(command):
    done = subprocess.run(
        [sys.executable, "-m", "ruff", *command],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr


def test_every_helper_module_has_its_place_in_the_reference():
    pages = "\n".join(
        p.read_text() for p in (ROOT / "book/reference").glob("api_*.md")
    )
    for path in (ROOT / "helpers").rglob("*.py"):
        name = ".".join(path.relative_to(ROOT).with_suffix("").parts)
        if not name.endswith("__init__"):
            assert f"automodule:: {name}\n" in pages, name


def test_the_front_page_s_picture_is_the_drawn_one():
    """Redrawn from its script it shows the same; bytes may differ."""
    import matplotlib.pyplot as plt

    from helpers.book.figures import fingerprint
    from tools.draw_front_page import TARGET, draw

    fig = draw()
    titles = [ax.get_title() for ax in fig.axes]
    assert [t.split(".")[0] for t in titles] == ["I", "II", "III", "IV"]
    assert "16 pieces" in fingerprint(fig)
    plt.close(fig)
    assert TARGET.read_text().count("<svg") == 1
