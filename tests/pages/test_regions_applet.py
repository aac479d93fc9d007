"""The cells of a small network, cut in the page and in Python."""

import re

import pytest

from tools import HTML, browser

pytestmark = pytest.mark.pages
PAGE = HTML / "book/linear_regions/counting.html"
FIGURE = "#counting-applet"
EVERY = """figure => {
  const data = figure.querySelector("script[type='application/json']");
  const nets = JSON.parse(data.textContent).nets;
  return Object.values(nets).map(net => {
    const { cells, pieces, count, area } = companion.regions;
    const all = cells(net.layers);
    const sum = all.reduce((total, cell) => total + area(cell.polygon), 0);
    return [all.length, net.cells, count(pieces(all)), net.pieces, sum];
  });
}"""


@pytest.fixture
def visit(chromium):
    with browser.Visit(chromium, PAGE) as visit:
        visit.tab.locator(FIGURE).scroll_into_view_if_needed()
        yield visit


def lines(visit):
    reports = visit.tab.locator(f"{FIGURE} .applet-report")
    return reports.nth(0).inner_text(), reports.nth(1).inner_text()


def test_every_network_is_counted_as_in_python(visit):
    found = visit.tab.locator(FIGURE).evaluate(EVERY)
    assert len(found) == 36
    for cells, in_python, pieces, pieces_in_python, area in found:
        assert (cells, pieces) == (in_python, pieces_in_python)
        assert abs(area - 4) < 1e-9
    assert any(pieces < cells for cells, _, pieces, _, _ in found)


def test_sliders_choose_and_arrow_keys_walk(visit):
    tab = visit.tab
    first = lines(visit)[0]
    slider = tab.locator(FIGURE).get_by_label("hidden layers", exact=True)
    slider.focus()
    tab.keyboard.press("ArrowLeft")
    assert lines(visit)[0] != first
    counted = [int(n) for n in re.findall(r"\d+", lines(visit)[0])]
    assert counted[:2] == counted[2:]
    tab.locator(f"{FIGURE} svg").first.focus()
    seen = set()
    for key in ("ArrowRight", "ArrowUp", "ArrowLeft", "ArrowDown"):
        for _ in range(25):
            tab.keyboard.press(key)
            seen.add(lines(visit)[1])
    assert len(seen) > 3  # once around the square
    tab.locator(FIGURE).get_by_role("button", name="next cell").click()
    assert re.match(r"Cell \d+ of \d+: pattern [01 |]+;", lines(visit)[1])


def test_the_pointer_shows_a_cell(visit):
    box = visit.tab.locator(f"{FIGURE} svg").first.bounding_box()
    shown = set()
    for share in (0.1, 0.5, 0.9):
        visit.tab.mouse.move(
            box["x"] + share * box["width"], box["y"] + share * box["height"]
        )
        shown.add(lines(visit)[1])
    assert len(shown) > 1


def test_a_reader_without_scripts_has_the_numbers(visit):
    text = visit.tab.inner_text(f"{FIGURE} > figcaption")
    assert "4 x 1:" in text and "8 x 3:" in text
    assert list(browser.check_errors(visit)) == []
    assert list(browser.check_network(visit)) == []
