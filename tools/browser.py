"""Open built pages in a real browser and report what a reader would meet.

Chromium is taken from the machine (``BOOK_BROWSER`` or the usual names);
nothing is downloaded. Each ``check_*`` takes an opened page and yields
messages; ``Visit`` collects what the page did while it loaded.
"""

from __future__ import annotations

import io
import os
import shutil
from contextlib import contextmanager
from pathlib import Path

import numpy as np

from tools import HTML, ROOT

AXE = ROOT / "tests" / "vendor" / "axe-core" / "axe.min.js"
NAMES = ("chromium", "chromium-browser", "google-chrome", "chrome")
ARGUMENTS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--allow-file-access-from-files",
]
# sphinx-thebe 0.3.1 writes its constants twice on every page
KNOWN_ERRORS = ("THEBE_JS_URL",)
DESKTOP, PHONE = (1280, 900), (390, 844)
LEAST_CONTRAST = 4.5
SETTLE = 100  # milliseconds for observers
PATIENCE = 30  # times to settle before giving up
TABS = 20  # presses between two looks at what is left
# listings leave the round of Tab when they no longer scroll
WAITING = "[...window.waiting].filter(e => e.tabIndex >= 0)"
FINISH = """() => document.getAnimations()
    .filter(a => a.effect.getComputedTiming().endTime < Infinity)
    .forEach(a => a.finish())"""


def find_browser() -> str | None:
    """Path of a Chromium on this machine."""
    named = os.environ.get("BOOK_BROWSER")
    return named or next(filter(None, map(shutil.which, NAMES)), None)


@contextmanager
def browser():
    from playwright.sync_api import sync_playwright

    with sync_playwright() as play:
        chromium = play.chromium.launch(
            executable_path=find_browser(), args=ARGUMENTS
        )
        yield chromium
        chromium.close()


class Visit:
    """A page opened in one theme and width, with the network cut."""

    def __init__(self, chromium, page: Path, theme="light", size=DESKTOP):
        self.path, self.theme, self.size = page, theme, size
        self.context = chromium.new_context(
            viewport={"width": size[0], "height": size[1]},
            color_scheme=theme,
        )
        self.context.set_offline(True)  # files still load
        self.context.add_init_script(
            f"localStorage.setItem('mode', '{theme}');"
            f"localStorage.setItem('theme', '{theme}');"
        )
        self.tab = self.context.new_page()
        self.requests, self.errors = [], []
        self.tab.on("request", self._request)
        self.tab.on("requestfailed", lambda r: self.errors.append(r.url))
        self.tab.on("pageerror", lambda e: self._error(str(e)))
        self.tab.on("console", self._console)
        self.tab.goto(page.as_uri())
        self.tab.evaluate(
            "async () => { if (window.MathJax?.startup)"
            " await MathJax.startup.promise }"
        )

    def become(self, theme: str, size: tuple[int, int]) -> None:
        """Switch theme and width without loading the page again.

        The theme is switched as its button does; typesetting a page of
        formulas anew would take most of the time of a visit.
        """
        if (theme, size) != (self.theme, self.size):
            self.tab.set_viewport_size({"width": size[0], "height": size[1]})
            self.tab.emulate_media(color_scheme=theme)
            self.tab.evaluate(
                """theme => {
                const root = document.documentElement.dataset;
                root.mode = theme; root.theme = theme; }""",
                theme,
            )
            self.tab.wait_for_timeout(SETTLE)
            self.tab.evaluate(FINISH)  # a busy machine may still be fading
        self.theme, self.size = theme, size

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.context.close()

    def _request(self, request):
        if request.url.startswith(("http:", "https:", "ws:")):
            self.requests.append(request.url)

    def _console(self, message):
        if message.type == "error":
            self._error(message.text)

    def _error(self, text):
        if not any(known in text for known in KNOWN_ERRORS):
            self.errors.append(text)


def check_network(visit):
    for url in visit.requests:
        yield f"asks another host: {url}; vendor the file in book/_static"


def check_errors(visit):
    for error in visit.errors:
        yield f"script or file error: {error}"


def check_maths(visit):
    bad = visit.tab.eval_on_selector_all(
        "[data-mjx-error]", "x => x.map(e => e.dataset.mjxError)"
    )
    for message in bad:
        yield (
            f"maths error: {message}; correct the TeX or add the macro to "
            "mathjax3_config in _config.yml"
        )
    left = visit.tab.eval_on_selector_all(
        ".math:not(:has(mjx-container))", "x => x.map(e => e.textContent)"
    )
    for text in left:
        yield f"maths not typeset: {text!r}"


def check_one_search_box(visit):
    count = visit.tab.evaluate(
        """() => [...document.querySelectorAll(
        '.search-button__button, .search-button-field, form.bd-search')]
        .filter(e => e.checkVisibility() && !e.closest('dialog:not([open])'))
        .length"""
    )
    if count != 1:
        yield f"shows {count} search boxes, needs exactly one"


def check_fits(visit):
    """No sideways scrolling of the page as a whole."""
    wide = visit.tab.evaluate(
        """() => {
        const room = document.documentElement.clientWidth;
        if (document.documentElement.scrollWidth <= room + 1) return [];
        const scrolls = e => e && e !== document.documentElement
          && (getComputedStyle(e).overflowX !== 'visible'
              || scrolls(e.parentElement));
        return [...document.querySelectorAll('body *')]
          .filter(e => e.getBoundingClientRect().right > room + 1
            && !scrolls(e.parentElement))
          .slice(0, 3).map(e => e.outerHTML.slice(0, 120)); }"""
    )
    for element in wide:
        yield f"is wider than the screen: {element}"


def check_formulas_fit(visit):
    """On a desktop no formula hides its end behind a scroll bar."""
    hidden = visit.tab.evaluate(
        """() => [...document.querySelectorAll(
        'article mjx-container[display="true"]')]
        .filter(e => e.checkVisibility() && e.scrollWidth > e.clientWidth + 1)
        .map(e => e.textContent.slice(0, 60)
          + ' in ' + (e.closest('[id]')?.id ?? 'the page'))"""
    )
    for formula in hidden:
        yield f"formula does not fit, break it into lines: {formula}"


def check_code_fits(visit):
    """On a desktop no line of a code cell is cut off at the edge."""
    wide = visit.tab.evaluate(
        """() => [...document.querySelectorAll('div.cell_input pre')]
        .filter(e => e.checkVisibility() && e.scrollWidth > 1
          + Math.max(e.clientWidth, e.parentElement.clientWidth))
        .map(e => e.textContent.trim().slice(0, 60))"""
    )
    for code in wide:
        yield f"code does not fit the column, shorten its lines: {code}"


def check_accessible(visit, rules: str = ""):
    """axe-core: nothing serious or critical."""
    visit.tab.add_script_tag(path=str(AXE))
    found = visit.tab.evaluate(
        """async rules => (await axe.run(document, {
        resultTypes: ['violations'],
        ...(rules ? {runOnly: [rules]} : {}) })).violations
        .filter(v => ['serious', 'critical'].includes(v.impact))
        .map(v => v.id + ': ' + v.help + ' -- '
          + v.nodes.slice(0, 3).map(n => n.html.slice(0, 160)).join(' | '))""",
        rules,
    )
    yield from found


def check_contrast(visit):
    """The one rule of axe-core that depends on the theme."""
    yield from check_accessible(visit, "color-contrast")


def check_keyboard(visit, most: int = 600):
    """Tab reaches every visible control, in a finite round."""
    tab = visit.tab
    tab.evaluate(
        """() => { window.waiting = new Set(
        [...document.querySelectorAll(
          'a[href], button, input, select, summary, [tabindex="0"]')]
        .filter(e => e.checkVisibility({visibilityProperty: true})
          && !e.disabled && e.tabIndex >= 0
          && !e.closest('dialog:not([open])'))) ;
        document.addEventListener('focusin',
          e => window.waiting.delete(e.target)); }"""
    )
    for _ in range(0, most, TABS):
        for _ in range(TABS):
            tab.keyboard.press("Tab")
        if not tab.evaluate(f"{WAITING}.length"):
            return
    for html in tab.evaluate(
        f"{WAITING}.slice(0, 5).map(e => e.outerHTML.slice(0, 120))"
    ):
        yield f"the keyboard does not reach {html}"


def check_solutions(visit):
    """A folded solution opens by a click, and is closed before."""
    first = visit.tab.locator(".solution.dropdown, .solution.toggle").first
    before = first.bounding_box()["height"]
    first.locator("button.toggle-button").first.click()
    for _ in range(PATIENCE):  # it unfolds slowly on a busy machine
        if first.bounding_box()["height"] > before + 20:
            return
        visit.tab.wait_for_timeout(SETTLE)
    yield "the first solution does not unfold; is it a dropdown?"


def check_figures(visit):
    """Figures sit on the page's ground, and their ink can be read."""
    images = visit.tab.query_selector_all("img.chapter-figure")
    page = _page_colour(visit)
    for image in images:
        picture = _pixels(image.screenshot())
        ground = _ground(picture)
        alt = (image.get_attribute("alt") or "")[:40]
        if np.abs(ground - page).max() > 8 / 255:
            yield (
                f"figure {alt!r} has the ground {_hex(ground)} on a page of "
                f"{_hex(page)}"
            )
        best = max(
            contrast(c, ground) for c in (picture.min(0), picture.max(0))
        )
        if best < LEAST_CONTRAST:
            yield (
                f"ink of figure {alt!r} reaches a contrast of {best:.1f}:1 "
                f"only, needs {LEAST_CONTRAST}:1"
            )


def _pixels(png: bytes) -> np.ndarray:
    from matplotlib.image import imread

    return imread(io.BytesIO(png))[..., :3].reshape(-1, 3)


def _ground(pixels) -> np.ndarray:
    """The most frequent colour."""
    packed = (pixels * 255).round().astype(int) @ [1 << 16, 1 << 8, 1]
    colours, first, counts = np.unique(
        packed, return_index=True, return_counts=True
    )
    return pixels[first[counts.argmax()]]


def _page_colour(visit) -> np.ndarray:
    text = visit.tab.evaluate(
        "getComputedStyle(document.body).backgroundColor"
    )
    numbers = text[text.index("(") + 1 : -1].split(",")[:3]
    return np.array([float(n) for n in numbers]) / 255


def _hex(colour) -> str:
    return "#" + "".join(f"{round(255 * float(c)):02x}" for c in colour)


def luminance(colour) -> float:
    """Relative luminance of an sRGB colour in [0, 1] (WCAG 2.2)."""
    c = np.asarray(colour, dtype=float)
    linear = np.where(c <= 0.04045, c / 12.92, ((c + 0.055) / 1.055) ** 2.4)
    return float(linear @ [0.2126, 0.7152, 0.0722])


def contrast(a, b) -> float:
    """Contrast ratio of two colours, 1 to 21 (WCAG 2.2)."""
    light, dark = sorted([luminance(a), luminance(b)], reverse=True)
    return (light + 0.05) / (dark + 0.05)


def check_search(visit, words: str, expected: str):
    """The search page lists a page for the given words."""
    tab = visit.tab
    tab.goto(visit.path.as_uri() + "?q=" + words.replace(" ", "+"))
    try:
        tab.wait_for_selector("#search-results li a", timeout=10_000)
    except Exception:
        yield f"search for {words!r} finds nothing"
        return
    tab.wait_for_timeout(300)
    links = tab.eval_on_selector_all(
        "#search-results li a", "x => x.map(e => e.getAttribute('href'))"
    )
    if not any(expected in link for link in links):
        yield f"search for {words!r} finds {links}, not {expected!r}"


CHECKS = [
    check_network,
    check_errors,
    check_maths,
    check_one_search_box,
    check_fits,
    check_formulas_fit,
    check_code_fits,
    check_accessible,
    check_figures,
]
DARK_CHECKS = [check_errors, check_contrast, check_figures]
PHONE_CHECKS = [check_network, check_errors, check_maths, check_fits]
CHAPTER_CHECKS = [check_keyboard, check_solutions]


def look_at(
    chromium, page: Path, folder: Path = HTML, chapter: bool = False
) -> list[str]:
    """Everything wrong with a page, in both themes and on a phone.

    A chapter is used as well: by keyboard, and its first solution opened.
    """
    found = []
    with Visit(chromium, page) as visit:
        for theme, size, checks in (
            ("light", DESKTOP, CHECKS),
            ("dark", DESKTOP, DARK_CHECKS),
            ("light", PHONE, PHONE_CHECKS),
            ("light", DESKTOP, CHAPTER_CHECKS if chapter else []),
        ):
            visit.become(theme, size)
            name = f"{page.relative_to(folder)} ({theme}, {size[0]} px)"
            found += [f"{name}: {m}" for k in checks for m in k(visit)]
    return found
