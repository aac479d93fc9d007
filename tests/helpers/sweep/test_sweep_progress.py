"""A bar where somebody looks, and nothing left where nobody does."""

import os
import struct
import subprocess
import sys

import pytest

COMMAND = ("run", "tasks:square", "s", "--over", "x=[1,2,3]", "--workers", 1)


def test_no_bar_in_a_file(bench):
    code, out, err = bench.run(*COMMAND)
    assert code == 0 and err == "" and out.count("\n") == 1


def test_a_bar_on_a_terminal(bench):
    pty = pytest.importorskip("pty", reason="terminals are POSIX")
    import fcntl
    import termios

    ours, theirs = pty.openpty()
    size = struct.pack("HHHH", 24, 100, 0, 0)
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, size)
    arguments = [sys.executable, "-m", "helpers.sweep", *map(str, COMMAND)]
    done = subprocess.run(arguments, stderr=theirs, timeout=60, check=False)
    os.close(theirs)
    bar = os.read(ours, 100_000).decode()
    os.close(ours)
    assert done.returncode == 0
    assert "tasks:square: 100%" in bar and "3/3" in bar
    assert "conf/s" in bar or "s/conf" in bar
    assert "<00:00" in bar  # time left


def test_nothing_is_left_in_a_notebook(bench):
    nbformat = pytest.importorskip("nbformat", reason="needs the book's extra")
    from nbclient import NotebookClient

    source = (
        "from helpers.sweep import run_sweep\n"
        "report = run_sweep('tasks:square', {'x': range(3)}, 's', workers=1)\n"
    )
    cells = [
        nbformat.v4.new_code_cell(source),
        nbformat.v4.new_code_cell("print(report.computed)"),
    ]
    notebook = nbformat.v4.new_notebook(cells=cells)
    # a forced bar is cleared as well
    cells[0].source = source.replace("workers=1", "workers=1, progress=True")
    NotebookClient(notebook, timeout=60, kernel_name="python3").execute()
    assert cells[0].outputs == []
    assert cells[1].outputs[0]["text"] == "3\n"
