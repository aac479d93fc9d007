"""Programs in pages: moved by keyboard and pointer, counted beside Python."""

import re

import numpy as np
import pytest

from helpers.linear_regions.cells import cell_slopes
from helpers.linear_regions.triangles import limit_scales
from tools import HTML, browser

pytestmark = pytest.mark.pages
PEAKS = HTML / "book/linear_regions/tent_maps.html"
FIGURE = "#tents-applet"


@pytest.fixture
def visit(chromium):
    with browser.Visit(chromium, PEAKS) as visit:
        visit.tab.locator(FIGURE).scroll_into_view_if_needed()
        yield visit


def report(visit):
    text = visit.tab.inner_text(f"{FIGURE} .applet-report")
    count, waves = map(int, re.findall(r"\b\d+\b(?= linear| wave)", text))
    shortest = float(re.search(r"shortest ([\d.e-]+)", text)[1])
    jump = float(re.search(r"derivative ([\d.e-]+)\.", text)[1])
    return count, waves, shortest, jump


def move(visit, label, value):
    """As a keyboard does: set the range input and tell the page."""
    control = visit.tab.locator(FIGURE).get_by_label(label, exact=True)
    control.evaluate(
        "(e, v) => { e.value = v; e.dispatchEvent(new Event('input')); }",
        str(value),
    )


def in_python(peaks, mode, factor=1.0):
    s = limit_scales(peaks, mode)
    s[1:] *= factor
    lengths, slopes = cell_slopes(peaks[:-1], s)
    steps = np.abs(np.diff(slopes))
    return lengths.min(), steps.max(), 1 + np.count_nonzero(steps > 1e-9)


@pytest.mark.parametrize("mode", ["convex", "concave"])
def test_the_peaks_applet_agrees_with_python(visit, mode):
    visit.tab.locator(FIGURE).get_by_label("the waves are").select_option(mode)
    move(visit, "waves d", 4)
    peaks = [0.3, 0.6, 0.25, 0.7, 0.4]
    for i, peak in enumerate(peaks):
        move(visit, f"peak a{chr(0x2080 + i)}", peak)
    shortest, jump, pieces = in_python(peaks, mode)
    count, waves, shown_shortest, shown_jump = report(visit)
    assert (count, waves) == (pieces, 4) == (16, 4)
    assert abs(shown_shortest - shortest) < 1e-2 * shortest
    assert abs(shown_jump - jump) < 1e-2 * jump


def test_a_doubled_second_scale_loses_a_piece(visit):
    move(visit, "waves d", 2)
    assert report(visit)[0] == 4
    move(visit, "second scale, times", 2)
    assert report(visit)[0] == 3 == in_python([0.5] * 3, "convex", 2.0)[2]


def test_a_dot_can_be_dragged_and_an_arrow_key_moves_a_slider(visit):
    tab = visit.tab
    move(visit, "peak a₀", 0.7)  # at one half all dots lie on each other
    before = report(visit)[2]
    circle = tab.locator(f"{FIGURE} circle").first
    circle.evaluate("e => e.scrollIntoView({block: 'center'})")
    dot = circle.bounding_box()
    x, y = dot["x"] + dot["width"] / 2, dot["y"] + dot["height"] / 2
    tab.mouse.move(x, y)
    tab.mouse.down()
    tab.mouse.move(x + 20, y, steps=4)
    tab.mouse.up()
    assert report(visit)[2] < before
    slider = tab.locator(FIGURE).get_by_label("peak a₀", exact=True)
    value = float(slider.input_value())
    assert value > 0.7
    slider.focus()
    tab.keyboard.press("ArrowRight")
    assert abs(float(slider.input_value()) - value - 0.01) < 1e-9


def test_a_reader_without_scripts_has_the_numbers(visit):
    text = visit.tab.inner_text(f"{FIGURE} > figcaption")
    assert "8 pieces" in text and "3 pieces" in text
    assert list(browser.check_errors(visit)) == []
    assert list(browser.check_network(visit)) == []
