"""Mistakes that only the built pages show: the build, the scan, a browser."""

import shutil

import pytest

from tools import browser, scan_pages, small_book

PLANTED = """

## Planted mistakes

A reference to {{prf:ref}}`theorem-cubes`, a citation {{cite:p}}`archimedes`,
a number {{glue:text}}`chapter-nothing`, a row {{ledger}}`bridges.nothing`, a
value {{published}}`bridges.square_law`, a [page](missing.md).

:::{{shown-figure}} chapter-nothing
A figure that no cell shows, with a caption.
:::

{more}
"""

WARNINGS = {
    "a broken reference": "theorem-cubes",
    "an unknown citation": "archimedes",
    "a number that nobody glued": "chapter-nothing",
    "a row that the ledger lacks": "the ledger has no row 'bridges.nothing'",
    "a value that was not published": "has no published value",
    "a link to a missing page": "missing.md",
    "a figure that no cell shows": "no cell of this page calls show_figure",
    "a duplicate label": "duplicate",
}


@pytest.fixture(scope="module")
def planted(good_book, tmp_path_factory):
    """Words of a build of a book with one mistake of each kind."""
    root = tmp_path_factory.mktemp("planted") / "book"
    shutil.copytree(good_book, root)
    notebook = small_book.read(root)
    notebook.cells[-1].source += PLANTED.format(more=small_book.STATEMENT)
    small_book.write(root, notebook)
    done = small_book.run(root, "-m", "tools.build")
    assert done.returncode != 0, "the build accepted planted mistakes"
    return small_book.words(done)


@pytest.mark.parametrize("name", WARNINGS)
def test_the_build_names_the_mistake(planted, name):
    lines = [line for line in planted.splitlines() if "WARNING" in line]
    assert any(WARNINGS[name] in line for line in lines), planted[-4000:]


@pytest.fixture
def pages(built_book, tmp_path):
    """A copy of good built pages, to break."""
    folder = tmp_path / "html"
    shutil.copytree(built_book / "_build/html", folder)
    return folder


PAGE = "book/part/chapter.html"
ARTICLE = '<section id="the-law"'


def plant(folder, html, before=ARTICLE):
    path = folder / PAGE
    text = path.read_text()
    assert before in text, "the small book changed: mend this test"
    path.write_text(text.replace(before, html + before, 1))
    return folder


def test_good_pages_have_no_problem(pages):
    assert scan_pages.problems(pages) == []


SCAN = {
    "a traceback": (
        "<pre>Traceback (most recent call last)</pre>",
        "no_traceback",
        "mend the cell",
    ),
    "a raw directive": (
        "<p>:::{prf:theorem} Big</p>",
        "no_raw_markup",
        "colon fence",
    ),
    "a raw role": (
        "<p>see {numref}`fig-x`</p>",
        "no_raw_markup",
        "colon fence",
    ),
    "raw maths": ("<p>so $$x^2$$ grows</p>", "no_raw_markup", "raw markup"),
    "a missing picture": (
        '<img src="gone.svg" alt="a curve that rises and then falls">',
        "outputs_present",
        "lacks the picture",
    ),
    "an empty figure": (
        "<figure></figure>",
        "outputs_present",
        "without a picture",
    ),
    "a broken link": ('<a href="gone.html">x</a>', "links", "not built"),
    "a broken anchor": (
        '<a href="#gone">x</a>',
        "links",
        "no such anchor",
    ),
    "a picture without alt text": (
        '<img src="data:," alt="">',
        "alt",
        "show_figure",
    ),
    "a hash as alt text": (
        '<img src="data:," alt="../_images/0a1b2c3d4e5f60718293.png">',
        "alt",
        "show_figure",
    ),
    "a script of another host": (
        '<script src="https://cdn.example.org/x.js"></script>',
        "no_third_party",
        "vendor the file",
    ),
    "a style of another host": (
        "<style>@import url(//fonts.example.org/x.css)</style>",
        "no_third_party",
        "fetches from a host",
    ),
    "two titles": ("<h1>Again</h1>", "heading", "needs one"),
}


@pytest.mark.parametrize("name", SCAN)
def test_the_scan_names_the_mistake(pages, name):
    html, check, advice = SCAN[name]
    found = scan_pages.problems(plant(pages, html))
    assert {p.check for p in found} == {check}, found
    assert advice in found[0].message


BROWSER = {
    "an undefined macro": (
        '<div class="math">\\[\\undefinedmacro{x}\\]</div>',
        "add the macro",
    ),
    "a failing script": ("<script>nothing()</script>", "nothing"),
    "a request to another host": (
        "<script>fetch('https://example.org/x').catch(() => 0)</script>",
        "asks another host",
    ),
    "a second search box": (
        '<form class="bd-search"><input aria-label="find"></form>',
        "2 search boxes",
    ),
    "something wider than a phone": (
        '<p style="width: 2000px">wide</p>',
        "wider than the screen",
    ),
    "a formula that hides its end": (
        '<div class="math">\\[' + "x+" * 80 + "x\\]</div>",
        "break it into lines",
    ),
    "code that is cut off": (
        '<div class="cell_input"><div class="highlight"><pre tabindex="0">'
        + "x = " * 60
        + "1</pre></div></div>",
        "shorten its lines",
    ),
    "pale text": (
        '<p style="color: #bbb; background: #fff">pale</p>',
        "color-contrast",
    ),
    "a control without a name": ("<button></button>", "button-name"),
    "a pale figure": (
        '<img class="chapter-figure" alt="a pale square on white" src="data:'
        "image/svg+xml,<svg xmlns='http://www.w3.org/2000/svg' width='90' "
        "height='90'><rect width='90' height='90' fill='white'/><rect "
        "width='30' height='30' fill='%23ccc'/></svg>\">",
        "contrast",
    ),
}


@pytest.mark.parametrize("name", BROWSER)
def test_the_browser_names_the_mistake(pages, chromium, name):
    html, advice = BROWSER[name]
    plant(pages, html)
    found = browser.look_at(chromium, pages / PAGE, pages)
    assert any(advice in message for message in found), found


def test_good_pages_pass_in_the_browser(built_book, chromium):
    folder = built_book / "_build/html"
    assert browser.look_at(chromium, folder / PAGE, folder) == []


def test_a_keyboard_trap_is_found(pages, chromium):
    trap = (
        "<button id='trap' onkeydown='event.preventDefault()'>stuck</button>"
    )
    plant(pages, trap)
    with browser.Visit(chromium, pages / PAGE) as visit:
        found = list(browser.check_keyboard(visit, most=120))
    assert any("does not reach" in message for message in found)


def test_a_solution_that_stays_folded_is_found(pages, chromium):
    stuck = (
        "<div class='solution dropdown'><button class='toggle-button'>show"
        "</button></div>"
    )
    plant(pages, stuck)
    with browser.Visit(chromium, pages / PAGE) as visit:
        found = list(browser.check_solutions(visit))
    assert any("does not unfold" in message for message in found)


def test_search_that_finds_nothing_is_reported(pages, chromium):
    with browser.Visit(chromium, pages / "search.html") as visit:
        found = list(browser.check_search(visit, "xylophone", "chapter"))
    assert found
