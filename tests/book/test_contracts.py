"""Every chapter of the book keeps its contracts."""

import pytest

from tools import ROOT, contracts
from tools.execution import notebooks

CHAPTERS = notebooks()


@pytest.mark.parametrize(
    "path", CHAPTERS, ids=[str(p.relative_to(ROOT)) for p in CHAPTERS]
)
def test_chapter(path):
    chapter = contracts.Chapter(path)
    found = [p for check in contracts.CHAPTER_CHECKS for p in check(chapter)]
    assert not found, "\n".join(map(str, found))


def test_book():
    chapters = [contracts.Chapter(p) for p in CHAPTERS]
    found = [p for check in contracts.BOOK_CHECKS for p in check(chapters)]
    assert not found, "\n".join(map(str, found))


def test_every_typed_number_is_argued_and_used():
    for entry in contracts.whitelist():
        assert len(entry["reason"]) > 20, entry
        chapter = contracts.Chapter(ROOT / entry["file"])
        assert str(entry["text"]) in chapter.prose, f"no longer used: {entry}"


def test_the_table_of_contents_lists_every_page():
    toc = (ROOT / "_toc.yml").read_text()
    pages = [*CHAPTERS, *(ROOT / "book").rglob("*.md")]
    for page in pages:
        name = str(page.relative_to(ROOT).with_suffix(""))
        assert f"{name}\n" in toc, f"{name} is not in _toc.yml"
