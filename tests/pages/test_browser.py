"""The built book in a real browser, with the network cut.

Skipped where there is no Chromium, but not on CI: there it must be found.
"""

import pytest

from tools import HTML, ROOT, browser, execution, scan_pages

pytestmark = pytest.mark.pages
LISTINGS = ("_modules", "book/tests")  # source code, by one template each


def worth_a_look(pages):
    """Written pages, and of each kind of listing the shortest and the longest.

    The others differ from these in their text only, which the scan of pages
    reads; hundreds of listings would take most of the browser's time.
    """
    names = {page: page.relative_to(HTML).as_posix() for page in pages}
    for kind in LISTINGS:
        alike = [p for p in pages if names[p].startswith(kind + "/")]
        alike.sort(key=lambda p: p.stat().st_size)
        pages = [p for p in pages if p not in alike[1:-1]]
    return pages


PAGES = worth_a_look(scan_pages.pages(HTML)) if HTML.is_dir() else []
CHAPTERS = [
    HTML / path.relative_to(ROOT).with_suffix(".html")
    for path in execution.notebooks()
]


@pytest.mark.parametrize(
    "page", PAGES, ids=[str(p.relative_to(HTML)) for p in PAGES]
)
def test_page_in_both_themes_and_on_a_phone(chromium, page):
    found = browser.look_at(chromium, page, chapter=page in CHAPTERS)
    assert not found, "\n".join(found)


@pytest.mark.parametrize(
    ("words", "page"),
    [
        ("Corollary 5.2 closed form", "copy_average/one_neuron"),
        ("high-frequency mass lemma", "foundations/smooth_functions"),
        ("Dirichlet energy", "reference/glossary"),
    ],
)
def test_search_finds(chromium, words, page):
    with browser.Visit(chromium, HTML / "search.html") as visit:
        found = list(browser.check_search(visit, words, page))
    assert not found, "\n".join(found)


def test_the_ledger_filters(chromium):
    page = HTML / "book/reference/ledger.html"
    with browser.Visit(chromium, page) as visit:
        tab = visit.tab
        rows = tab.locator("table.ledger tbody tr")
        total = rows.count()
        boxes = tab.locator("#ledger-filter select")
        boxes.nth(1).select_option("kind-theorem")
        shown = tab.locator("table.ledger tbody tr:visible").count()
        assert 0 < shown < total
        assert f"{shown} of {total} rows" in tab.inner_text("#ledger-filter")
        boxes.nth(0).select_option("paper-copy-average")
        fewer = tab.locator("table.ledger tbody tr:visible").count()
        assert 0 < fewer < shown
        boxes.nth(2).select_option("verdict-proved-here")
        proved = tab.locator("table.ledger tbody tr:visible").count()
        assert 0 < proved <= fewer
        for box in (0, 1, 2):
            boxes.nth(box).select_option("")
        tab.locator("#ledger-filter input").fill("no such words at all")
        assert tab.locator("table.ledger tbody tr:visible").count() == 0


def test_the_theme_switch_works(chromium):
    with browser.Visit(chromium, HTML / "book/index.html") as visit:
        tab = visit.tab
        before = tab.evaluate("document.documentElement.dataset.theme")
        for _ in range(2):
            tab.locator(".theme-switch-button:visible").first.click()
        after = tab.evaluate("document.documentElement.dataset.theme")
    assert {before, after} == {"light", "dark"}
