"""The built book, page by page, as text. `make test` builds it first."""

import pytest

from tools import HTML, ROOT, execution, scan_pages

pytestmark = pytest.mark.pages
PAGES = scan_pages.pages(HTML) if HTML.is_dir() else []


def test_the_book_is_built():
    assert (HTML / "index.html").is_file(), "build it first: make book"
    assert len(PAGES) > 10


@pytest.mark.parametrize(
    "page", PAGES, ids=[str(p.relative_to(HTML)) for p in PAGES]
)
def test_page(page):
    found = [p for check in scan_pages.CHECKS for p in check(page, HTML)]
    assert not found, "\n".join(map(str, found))


def test_every_page_of_the_contents_is_built():
    import yaml

    toc = yaml.safe_load((ROOT / "_toc.yml").read_text())

    def files(node):
        for item in node.get("chapters", []) + node.get("sections", []):
            yield item["file"]
            yield from files(item)

    for part in toc["parts"]:
        for name in files(part):
            assert (HTML / f"{name}.html").is_file(), name


CHAPTERS = execution.notebooks()


@pytest.mark.parametrize("path", CHAPTERS, ids=lambda p: p.stem)
def test_pages_show_the_execution_that_was_compared(path):
    """nbval handed over what it ran, and nothing ran again since."""
    record = execution.read_record(path)
    assert execution.is_fresh(path), "run `make test`, or `make execute`"
    page = HTML / path.relative_to(ROOT).with_suffix(".html")
    status = (HTML / "book/reference/status.html").read_text()
    assert record.digest[:12] in status
    assert page.is_file()


@pytest.mark.parametrize("path", CHAPTERS, ids=lambda p: p.stem)
def test_chapters_keep_their_budget(path):
    record = execution.read_record(path)
    if record.scale == "quick":
        assert record.seconds <= execution.NOTEBOOK_SECONDS
        assert record.peak_mb <= execution.PEAK_MB


def test_the_ledger_page_shows_every_row():
    from helpers.book import ledger

    ids = scan_pages.anchors(HTML / "book/reference/ledger.html")
    for row in ledger.load(ROOT / "book/ledger.yml"):
        assert ledger.anchor(row["id"]) in ids, row["id"]


def test_the_front_page_shows_the_counts_of_the_ledger():
    from helpers.book import ledger
    from tools.ledger import PAPERS, settled_counts

    front = scan_pages.article(HTML / "book/index.html")
    rows = [
        [cell.get_text().strip() for cell in row.find_all("td")]
        for row in front.select("table.ledger-summary tbody tr")
    ]
    counts = settled_counts(ledger.load(ROOT / "book/ledger.yml"))
    wanted = [
        [PAPERS[p], str(c["settled"]), str(c["total"])]
        for p, c in counts.items()
    ]
    assert rows == wanted
