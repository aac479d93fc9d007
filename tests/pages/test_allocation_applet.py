"""Recurrent allocations judged in the page and in Python."""

import numpy as np
import pytest

from helpers.allocation.allocations import (
    Allocation,
    entry_allocation,
    row_allocation,
)
from helpers.allocation.ranks import (
    column_rank_cap,
    label_rank,
    recurrent_rank_modp,
    row_rank_cap,
)
from tools import HTML, browser

pytestmark = pytest.mark.pages
PAGE = HTML / "book/allocation/recurrent.html"
FIGURE = "#recurrent-applet"
JUDGE = """cases => cases.map(([size, entries]) =>
  companion.allocation.judge(size, entries))"""


@pytest.fixture
def visit(chromium):
    with browser.Visit(chromium, PAGE) as visit:
        visit.tab.locator(FIGURE).scroll_into_view_if_needed()
        yield visit


def report(visit):
    return visit.tab.inner_text(f"{FIGURE} .applet-report")


def move(visit, label, value):
    control = visit.tab.locator(FIGURE).get_by_label(label, exact=True)
    control.evaluate(
        "(e, v) => { e.value = v; e.dispatchEvent(new Event('input')); }",
        str(value),
    )


def press(visit, name):
    visit.tab.locator(FIGURE).get_by_role("button", name=name).click()


def random_cases(number):
    rng = np.random.default_rng(0)
    for i in range(number):
        n, b, d, T, m = (int(v) for v in rng.integers([2, 1, 1, 1, 1],
                                                      [7, 4, 4, 6, 9]))  # fmt: skip
        if i % 3:
            a = entry_allocation((n, n), int(rng.integers(1, n * n + 1)), rng)
        else:
            k = int(rng.integers(1, n + 1))
            a = row_allocation((n, n), k, int(rng.integers(k, k * n + 1)), rng)
        yield dict(n=n, b=b, d=d, T=T, m=m), a


def test_ranks_caps_and_verdicts_agree_with_python(visit):
    """Other random numbers, another prime: the generic ranks are the same."""
    cases = list(random_cases(60))
    sent = [[size, np.transpose(a).tolist()] for size, a in cases]
    seen = set()
    found = visit.tab.evaluate(JUDGE, sent)
    for (size, a), there in zip(cases, found, strict=True):
        sizes = tuple(size.values())
        rank = recurrent_rank_modp(*sizes, a, 1)
        whole = label_rank(*sizes, 2)
        k, c = np.unique(a.rows).size, np.unique(a.cols).size
        assert (there["rank"], there["whole"]) == (rank, whole), sizes
        assert there["rowCap"] == row_rank_cap(*sizes, k)
        assert there["columnCap"] == column_rank_cap(*sizes, c)
        affine = size["T"] <= 2 or (
            size["T"] == 3 and not set(a.rows) & set(a.cols)
        )
        full = rank == size["m"] * size["d"]
        expected = "one" if full and affine else "positive"
        assert there["verdict"] == ("zero" if rank < whole else expected)
        seen.add(there["verdict"])
    assert seen == {"zero", "one", "positive"}


def test_the_beginning_and_two_steps(visit):
    assert "rank 4, all weights together 4, equations md = 4" in report(visit)
    assert "Verdict: positive" in report(visit)
    move(visit, "steps T", 2)
    assert "Verdict: one" in report(visit)
    press(visit, "all")
    move(visit, "examples m", 3)
    assert "25 weights" in report(visit) and "Verdict: zero" in report(visit)
    detail = visit.tab.inner_text(f"{FIGURE} .applet-detail")
    assert "= 2, exceeded" in detail


def test_does_not_fit_is_another_answer_than_zero(visit):
    before = visit.tab.locator(f"{FIGURE} [aria-pressed=true]").count()
    move(visit, "rows k", 2)
    move(visit, "budget p", 12)
    press(visit, "deal p weights over k rows")
    assert "does not fit" in report(visit)
    assert "2 rows of 5 hold 10" in report(visit)
    pressed = visit.tab.locator(f"{FIGURE} [aria-pressed=true]")
    assert pressed.count() == before
    move(visit, "budget p", 10)
    press(visit, "deal p weights over k rows")
    assert "10 weights in 2 rows and 5 columns" in report(visit)


def test_the_keyboard_toggles_cells(visit):
    press(visit, "none")
    assert "0 weights" in report(visit)
    tab = visit.tab
    tab.locator(f"{FIGURE} .allocation-grid [tabindex='0']").focus()
    for _ in range(5):
        tab.keyboard.press("ArrowUp")
        tab.keyboard.press("ArrowLeft")
    tab.keyboard.press("Space")
    tab.keyboard.press("ArrowDown")
    tab.keyboard.press("ArrowRight")
    tab.keyboard.press("Space")
    labels = tab.locator(f"{FIGURE} [aria-pressed=true]").evaluate_all(
        "cells => cells.map(c => c.ariaLabel)"
    )
    assert labels == ["row 1, column 1", "row 2, column 2"]
    stops = tab.locator(f"{FIGURE} .allocation-grid [tabindex='0']")
    assert stops.count() == 1
    a = Allocation(np.array([0, 1]), np.array([0, 1]))
    rank = recurrent_rank_modp(5, 2, 2, 3, 2, a, 0)
    assert f"rank {rank}," in report(visit)


def test_fits_a_phone_in_both_themes(visit):
    for theme in ("light", "dark"):
        visit.become(theme, (390, 844))
        wide = visit.tab.locator(f"{FIGURE} .applet-body").evaluate(
            "e => e.scrollWidth > e.clientWidth + 1"
        )
        assert not wide
        colours = visit.tab.locator(f"{FIGURE} [aria-pressed]").evaluate_all(
            "cells => [...new Set(cells.map(c => "
            "getComputedStyle(c).backgroundColor))]"
        )
        assert len(colours) == 2


def test_a_reader_without_scripts_has_the_verdicts(visit):
    text = visit.tab.inner_text(f"{FIGURE} > figcaption")
    assert "T = 3, two rows of two: rank 4 of 4, positive" in text
    assert list(browser.check_errors(visit)) == []
    assert list(browser.check_network(visit)) == []
