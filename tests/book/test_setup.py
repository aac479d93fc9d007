"""The commands of the Makefile, without running them for real."""

import shutil
import subprocess

import pytest

from tools import ROOT

pytestmark = pytest.mark.skipif(
    shutil.which("make") is None, reason="no make on this machine"
)


def make(folder, *arguments):
    return subprocess.run(
        ["make", "--no-print-directory", *arguments],
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.fixture
def clone(tmp_path):
    for name in ("Makefile", "requirements.txt", "pyproject.toml"):
        shutil.copy(ROOT / name, tmp_path / name)
    return tmp_path


def test_help_is_the_default_and_one_line_a_command():
    done = make(ROOT)
    lines = done.stdout.splitlines()
    assert done.returncode == 0 and len(lines) >= 11
    assert any(line.startswith("book ") for line in lines)
    assert all(len(line) < 80 for line in lines), lines


def test_setup_comes_first_and_leaves_its_stamp_last(clone):
    steps = make(clone, "-n", "book").stdout.splitlines()
    order = ["-m venv", "torch==", "--require-hashes", "-e .", "touch"]
    found = [next(i for i, s in enumerate(steps) if o in s) for o in order]
    assert found == sorted(found)
    build = next(i for i, s in enumerate(steps) if "tools.build" in s)
    assert found[-1] < build


def test_an_interrupted_setup_starts_over(clone):
    """A half-made environment has no stamp, so its steps run again."""
    (clone / ".venv").mkdir()
    assert "-m venv" in make(clone, "-n", "setup").stdout
    (clone / ".venv/.done").touch()
    assert "-m venv" not in make(clone, "-n", "setup").stdout


def test_a_changed_lock_sets_up_again(clone):
    import os

    (clone / ".venv").mkdir()
    stamp = clone / ".venv/.done"
    stamp.touch()
    later = stamp.stat().st_mtime + 10
    os.utime(clone / "requirements.txt", (later, later))
    assert "--require-hashes" in make(clone, "-n", "setup").stdout


def test_an_old_python_is_refused_with_advice(clone):
    fake = clone / "old-python"
    fake.write_text(
        "#!/bin/sh\n"
        'exec python3 -c "import sys; sys.version_info = (3, 9); $2"\n'
    )
    fake.chmod(0o755)
    done = make(clone, "setup", "PYTHON=./old-python")
    assert done.returncode != 0
    assert "Python 3.11 or newer is needed" in done.stderr
    assert not (clone / ".venv").exists()


def test_every_failure_of_a_step_fails_the_command(clone):
    """`make test` stops at the first group that fails, with its status."""
    (clone / ".venv/bin").mkdir(parents=True)
    (clone / ".venv/.done").touch()
    python = clone / ".venv/bin/python"
    python.write_text("#!/bin/sh\necho called; exit 3\n")
    python.chmod(0o755)
    done = make(clone, "test")
    assert done.returncode != 0
    assert done.stdout.count("called") == 1
