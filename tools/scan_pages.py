"""Read every built page as text and find what a reader would stumble on.

``python -m tools.scan_pages [folder]``. The browser tests see the rest.
"""

from __future__ import annotations

import re
import sys
from functools import lru_cache
from pathlib import Path
from urllib.parse import unquote, urlsplit

from bs4 import BeautifulSoup

from tools import HTML
from tools.contracts import Problem

LEAST_ALT = 20
# attributes by which a page fetches something without being asked
FETCHED = {
    "script": "src",
    "link": "href",
    "img": "src",
    "iframe": "src",
    "source": "src",
    "video": "src",
    "audio": "src",
    "object": "data",
    "embed": "src",
}
RAW = re.compile(
    r":{3,}\s*\{\w|^```\{\w|\{(?:glue|cite|numref|eq|ref|prf:ref|doc|ledger"
    r"|published)(?::\w+)?\}`|\$\$|:label:|&lt;&lt;",
    re.MULTILINE,
)


def pages(folder: Path) -> list[Path]:
    """Built pages, without static files and redirects."""
    return sorted(
        p
        for p in folder.rglob("*.html")
        if "_static" not in p.relative_to(folder).parts
        and 'http-equiv="Refresh"' not in p.read_text("utf-8")
    )


@lru_cache(maxsize=4096)
def soup(page: Path, _changed: int) -> BeautifulSoup:
    return BeautifulSoup(page.read_text("utf-8"), "html.parser")


def read(page: Path) -> BeautifulSoup:
    return soup(page, page.stat().st_mtime_ns)


def article(page: Path):
    return read(page).find("article") or read(page)


def check_no_traceback(page, folder):
    """Examples of docstrings and sources of modules may hold one."""
    if page.relative_to(folder).parts[0] == "_modules":
        return
    body = BeautifulSoup(str(article(page)), "html.parser")
    for example in body.select(".doctest"):
        example.decompose()
    text = body.get_text()
    if "Traceback (most recent call last)" in text:
        yield problem(
            "no_traceback",
            page,
            folder,
            "shows a traceback: mend the cell, or catch the error and print "
            "its message",
        )


def check_no_raw_markup(page, folder):
    """MyST that reached the reader as text, code left out."""
    body = BeautifulSoup(str(article(page)), "html.parser")
    for tag in body.find_all(["pre", "code", "script", "style"]):
        tag.decompose()
    for tag in body.select(".math"):
        tag.decompose()
    for found in RAW.finditer(body.get_text()):
        around = body.get_text()[found.start() : found.start() + 50]
        yield problem(
            "no_raw_markup",
            page,
            folder,
            f"shows raw markup {around!r}: use a colon fence where a title "
            "holds a role or maths, and close every fence",
        )


def check_outputs_present(page, folder):
    """A cell that draws must have its picture; glue must have its value."""
    for figure in article(page).find_all("figure"):
        if not figure.find(["img", "svg", "div", "pre"]):
            yield problem(
                "outputs_present",
                page,
                folder,
                "has a figure without a picture: run the chapter again",
            )
    for image in article(page).find_all("img"):
        src = image.get("src", "")
        if (
            _local(src)
            and not (page.parent / unquote(src)).resolve().is_file()
        ):
            yield problem(
                "outputs_present", page, folder, f"lacks the picture {src}"
            )


def check_links(page, folder):
    """Internal links and their anchors."""
    for link in read(page).find_all("a", href=True):
        href = link["href"]
        if not _local(href):
            continue
        parts = urlsplit(href)
        target = page
        if parts.path:
            target = (page.parent / unquote(parts.path)).resolve()
            if target.is_dir():
                target /= "index.html"
        if not target.is_file():
            yield problem(
                "links", page, folder, f"links to {href}, which is not built"
            )
        elif parts.fragment and target.suffix == ".html":
            if unquote(parts.fragment) not in anchors(target):
                yield problem(
                    "links",
                    page,
                    folder,
                    f"links to {href}: the page has no such anchor",
                )


@lru_cache(maxsize=4096)
def _anchors(page: Path, changed: int) -> frozenset:
    tags = soup(page, changed).find_all(True)
    return frozenset(
        t.get(key) for t in tags for key in ("id", "name") if t.get(key)
    )


def anchors(page: Path) -> frozenset:
    return _anchors(page, page.stat().st_mtime_ns)


def check_alt(page, folder):
    for image in article(page).find_all("img"):
        alt = image.get("alt", "")
        if "_static/" in image.get("src", ""):
            continue  # the theme's own marks, such as the index's + and -
        if len(alt.strip()) < LEAST_ALT or re.fullmatch(r"[\w./-]+", alt):
            yield problem(
                "alt",
                page,
                folder,
                f"picture {image.get('src', '')[-40:]} lacks alt text: pass "
                "alt=... to show_figure, at least "
                f"{LEAST_ALT} characters",
            )


def check_no_third_party(page, folder):
    """Nothing that the page fetches may come from another host."""
    for tag, attribute in FETCHED.items():
        for element in read(page).find_all(tag):
            url = element.get(attribute, "")
            rel = element.get("rel") or []
            if "canonical" in rel or "license" in rel:
                continue
            if re.match(r"(?:https?:)?//", url):
                yield problem(
                    "no_third_party",
                    page,
                    folder,
                    f"fetches {url}: vendor the file under book/_static",
                )
    for style in read(page).find_all("style"):
        if re.search(r"url\(['\"]?(?:https?:)?//", style.get_text()):
            yield problem(
                "no_third_party", page, folder, "a style fetches from a host"
            )


def check_heading(page, folder):
    """One title a page, so that search and outline are right."""
    count = len(article(page).find_all("h1"))
    if count != 1 and page.name not in ("search.html", "genindex.html"):
        yield problem(
            "heading", page, folder, f"has {count} level-1 headings, needs one"
        )


def _local(url: str) -> bool:
    parts = urlsplit(url)
    return not parts.scheme and not parts.netloc and bool(url)


def problem(check, page, folder, message) -> Problem:
    return Problem(check, str(page.relative_to(folder)), message)


CHECKS = [
    check_no_traceback,
    check_no_raw_markup,
    check_outputs_present,
    check_links,
    check_alt,
    check_no_third_party,
    check_heading,
]


def problems(folder: Path = HTML) -> list[Problem]:
    return [
        p for page in pages(folder) for k in CHECKS for p in k(page, folder)
    ]


def main(arguments: list[str]) -> int:
    folder = Path(arguments[0]) if arguments else HTML
    found = problems(folder)
    print("\n".join(map(str, found)) or f"{len(pages(folder))} pages are fine")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
