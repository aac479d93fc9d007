"""Chapters whose numbers changed or that do not run, caught by running.

Real processes: nbval, the runner and the build on a small book.
"""

import re

import pytest

from tools import small_book

NBVAL = [
    *("-m", "pytest", "-q", "-p", "no:cacheprovider"),
    *("-p", "tools.nbval_plugin", "--nbval", "--nbval-current-env", "book"),
]


def change_code(book, old, new):
    notebook = small_book.read(book)
    for cell in notebook.cells:
        if cell.cell_type == "code" and old in cell.source:
            cell.source = cell.source.replace(old, new)
            small_book.write(book, notebook)
            return
    raise AssertionError("the small book changed: mend this test")


def change_helper(book, module, old, new):
    path = book / "helpers" / module
    text = path.read_text()
    assert old in text, "the helper changed: mend this test"
    path.write_text(text.replace(old, new, 1))


def nbval(book):
    return small_book.run(book, *NBVAL)


def test_the_good_chapter_passes_and_is_handed_over(book):
    for record in (book / "_build/executed").rglob("*"):
        if record.is_file():
            record.unlink()
    done = nbval(book)
    assert done.returncode == 0, small_book.words(done)
    listed = small_book.run(book, "-m", "tools.execution", "--list")
    assert listed.stdout.strip() == "fresh"


def test_a_changed_stored_number_is_caught(book):
    path = book / small_book.CHAPTER
    text = path.read_text()
    assert "slope 2.0000" in text
    path.write_text(text.replace("slope 2.0000", "slope 2.0001"))
    done = nbval(book)
    assert done.returncode == 1
    assert "slope 2.0001" in done.stdout


def test_a_changed_curve_is_caught_without_a_picture(book):
    change_code(book, "ax.loglog(side, area", "ax.loglog(side, 1.01 * area")
    done = nbval(book)
    assert done.returncode == 1
    assert "1.01 16.16" in done.stdout  # the diff of the fingerprint
    assert "python -m tools.store book/part/chapter.ipynb" in done.stdout


def test_a_false_claim_is_caught(book):
    change_code(book, "expected=2.0", "expected=3.0")
    done = small_book.run(book, "-m", "tools.execution")
    assert done.returncode == 1
    assert "ClaimFailed" in done.stderr and "claim needs 3" in done.stderr


def test_a_raising_cell_is_named(book):
    change_code(book, "area = side**2", "area = side**2 / missing")
    done = small_book.run(book, "-m", "tools.execution")
    assert done.returncode == 1
    assert "code cell 1 raised NameError" in done.stderr


def test_an_endless_cell_is_stopped(book, monkeypatch):
    monkeypatch.setenv("BOOK_CELL_SECONDS", "3")
    change_code(book, "area = side**2", "import time; time.sleep(60)")
    done = small_book.run(book, "-m", "tools.execution")
    assert done.returncode == 1
    assert "code cell 1: ran past 3 s" in done.stderr


def test_a_hungry_notebook_is_named(book, monkeypatch):
    monkeypatch.setenv("BOOK_PEAK_MB", "400")
    hungry = "import time; x = np.ones(2**26); time.sleep(1); area = side**2"
    change_code(book, "area = side**2", hungry)
    done = small_book.run(book, "-m", "tools.execution")
    assert done.returncode == 1
    assert "the limit is 400 MB" in done.stderr


def test_a_stale_helper_is_caught_and_rebuilt(book):
    """The trap of Jupyter Book's own cache: a changed helper, an old page."""
    assert small_book.run(book, "-m", "tools.build").returncode == 0
    page = book / "_build/html/book/part/chapter.html"
    assert re.search(r"has slope\s*<\w[^>]*>2.00<", page.read_text())
    change_helper(
        book, "core/statistics.py", "float(fit.slope),", "2.5 * fit.slope,"
    )
    listed = small_book.run(book, "-m", "tools.execution", "--list")
    assert listed.stdout.strip() == small_book.CHAPTER
    assert nbval(book).returncode == 1
    # the claim fails, so the book must not be built with the old number
    done = small_book.run(book, "-m", "tools.build")
    assert done.returncode != 0
    assert "ClaimFailed" in small_book.words(done)
    # a change that keeps the claim shows on the page
    change_helper(
        book, "core/statistics.py", "2.5 * fit.slope,", "fit.slope + 1e-10,"
    )
    change_code(book, "print(f", "print('new'); print(f")
    assert small_book.run(book, "-m", "tools.build").returncode == 0
    assert "new" in page.read_text()


def test_an_unused_helper_makes_nothing_stale(book):
    change_helper(book, "core/randomness.py", "import numpy", "import  numpy")
    first = small_book.run(book, "-m", "tools.execution", "--list")
    assert first.stdout.strip() == small_book.CHAPTER  # statistics uses it
    small_book.run(book, "-m", "tools.execution")
    path = book / "helpers/copy_average/__init__.py"
    path.write_text(path.read_text() + "\n# a remark\n")
    second = small_book.run(book, "-m", "tools.execution", "--list")
    assert second.stdout.strip() == "fresh"


@pytest.mark.parametrize("name", ["requirements.txt", "scale"])
def test_lock_and_scale_make_everything_stale(book, name, monkeypatch):
    if name == "scale":
        script = "import os; os.environ['BOOK_SCALE'] = 'paper'; "
    else:
        script = ""
        path = book / name
        path.write_text(path.read_text() + "# a new pin\n")
    script += "from tools.execution import main; main(['--list'])"
    listed = small_book.run(book, "-c", script)
    assert listed.stdout.strip() == small_book.CHAPTER


def test_a_cut_execution_is_run_again(book):
    """A record cut short by a crash is no record."""
    record = next((book / "_build/executed").rglob("*.json"))
    record.write_text(record.read_text()[:40])
    listed = small_book.run(book, "-m", "tools.execution", "--list")
    assert listed.stdout.strip() == small_book.CHAPTER
