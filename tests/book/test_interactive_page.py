"""A plotly figure draws in a built page with the network cut."""

import shutil

from nbformat.v4 import new_code_cell

from tools import browser, scan_pages, small_book

CELL = """import plotly.graph_objects as go

from helpers.book import show_interactive

show_interactive(
    go.Figure(go.Scatter(x=side, y=area)),
    "chapter-turn",
    alt="Area against side, as a curve that one can zoom.",
    summary=f"At side 4 the area is {area[-1]:.0f}.",
)"""


def test_plotly_draws_offline_and_has_a_text(good_book, tmp_path, chromium):
    root = tmp_path / "book"
    shutil.copytree(good_book, root)
    notebook = small_book.read(root)
    notebook.cells.insert(2, new_code_cell(CELL))
    small_book.write(root, notebook)
    done = small_book.run(root, "-m", "tools.store")
    assert done.returncode == 0, small_book.words(done)
    stored = small_book.read(root).cells[2].outputs[0].data
    assert set(stored) == {"text/plain"}  # what nbval compares
    done = small_book.run(root, "-m", "tools.build")
    assert done.returncode == 0, small_book.words(done)
    folder = root / "_build/html"
    assert scan_pages.problems(folder) == []
    page = folder / "book/part/chapter.html"
    with browser.Visit(chromium, page) as visit:
        drawn = visit.tab.locator("#chapter-turn .main-svg").count()
        text = visit.tab.inner_text("figure.interactive figcaption")
        assert list(browser.check_network(visit)) == []
        assert list(browser.check_errors(visit)) == []
    assert drawn > 0
    assert "At side 4 the area is 16." in text
