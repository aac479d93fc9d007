"""Broken chapters, each caught by the contract that is named, and by no
other, with a message that says what to do. Nothing is executed here."""

import pytest
from nbformat.v4 import new_code_cell, new_markdown_cell, new_output

from tools import contracts, small_book

COMPUTE, DRAW, FIGURE, STATEMENT, SETTLE, EXERCISES = 1, 2, 3, 4, 5, 6
CLOSING = 7


def broken(root, change):
    """Problems of the chapter after a change to its notebook."""
    notebook = small_book.read(root)
    change(notebook)
    path = small_book.write(root, notebook)
    return contracts.problems([path], root)


def edit(index, old, new):
    def change(notebook):
        cell = notebook.cells[index]
        assert old in cell.source, "the small book changed: mend this test"
        cell.source = cell.source.replace(old, new)

    return change


def add_code(source, *outputs):
    def change(notebook):
        cell = new_code_cell(source, outputs=list(outputs))
        cell.execution_count = 4
        notebook.cells.append(cell)

    return change


def shown(**data):
    return new_output(
        "display_data", {k.replace("_", "/"): v for k, v in data.items()}
    )


def stream(name, text):
    return new_output("stream", name=name, text=text)


def error():
    return new_output("error", ename="ValueError", evalue="x", traceback=[])


def unrun(notebook):
    notebook.cells[DRAW].execution_count = None


def wrong_kernel(notebook):
    notebook.metadata["kernelspec"]["name"] = "my-env"


def short_alt(notebook):
    output = notebook.cells[DRAW].outputs[0]
    output.metadata["companion"]["alt"] = "a plot"


def unnamed_figure(notebook):
    output = shown(text_plain="<Figure size 640x360 with 1 Axes>")
    add_code("plt.figure()", output)(notebook)


LONG = "\n".join(f"x{n} = {n}" for n in range(16))
BIG = "def slope(x):\n" + "\n".join(f"    x += {n}" for n in range(5))

CASES = {
    "a cell that was not run": (unrun, "stored_run", "tools.store"),
    "a kernel of one machine": (wrong_kernel, "kernel", "plain Python"),
    "a warning on stderr": (
        add_code("1", stream("stderr", "Warning: x")),
        "no_stderr",
        "remove the cause",
    ),
    "a stored exception": (add_code("1 / 0", error()), "no_error", "catch"),
    "an output without text": (
        add_code("x", shown(text_html="<b>1</b>")),
        "comparable_outputs",
        "helpers.book",
    ),
    "an address of memory": (
        add_code(
            "print(object())", stream("stdout", "<object at 0x7f12ab34>")
        ),
        "comparable_outputs",
        "print the value",
    ),
    "a stored picture": (
        add_code("x", shown(text_plain="x", image_png="aaaa")),
        "pictures_dropped",
        "tools.store",
    ),
    "a long cell": (add_code(LONG), "cell_form", "split it"),
    "a wide line": (
        add_code("x = " + " + ".join("1" * 30)),
        "cell_form",
        "break 'x = 1",
    ),
    "a trailing semicolon": (add_code("x = 1;"), "cell_form", "assign to _"),
    "an unknown magic": (
        add_code("%matplotlb inline\nx = 1"),
        "cell_form",
        "plain Python",
    ),
    "a shell line": (add_code("!ls"), "cell_form", "plain Python"),
    "a function that a helper should hold": (
        add_code(BIG),
        "defines_nothing_big",
        "helper",
    ),
    "a path of one machine": (
        add_code('open("/home/ann/data.csv")'),
        "no_machine_path",
        "relative path",
    ),
    "a download": (
        add_code("urlopen(address)"),
        "no_download",
        "helpers.core.data",
    ),
    "no objectives": (
        edit(0, "**You will be able to**", "You can"),
        "opening",
        "Before you start",
    ),
    "no minutes": (edit(0, "5 minutes", "a while"), "opening", "minutes"),
    "no title": (edit(0, "# How", "How"), "opening", "# Title"),
    "no takeaways": (
        edit(CLOSING, "## Key takeaways", "## End"),
        "closing",
        "Key takeaways",
    ),
    "nothing cited": (
        edit(CLOSING, "{cite:p}`euclid`", "by Euclid"),
        "closing",
        "cite",
    ),
    "four exercises": (
        edit(EXERCISES, small_book.EXERCISE.format(n=5).rstrip(), ""),
        "exercises",
        "needs 5",
    ),
    "an exercise without a solution": (
        edit(EXERCISES, "{solution} ex-chapter-3", "{note} ex-chapter-3"),
        "exercises",
        "no solution",
    ),
    "a solution that is not folded": (
        edit(
            EXERCISES,
            ":label: sol-chapter-2\n:class: dropdown",
            ":label: sol-chapter-2",
        ),
        "exercises",
        "dropdown",
    ),
    "a figure without alt text": (short_alt, "figures", "what one sees"),
    "a figure without a name": (unnamed_figure, "figures", "show_figure"),
    "a figure without a caption": (
        edit(
            FIGURE,
            "The area grows as the square: a straight line in log-log axes.",
            "",
        ),
        "figures",
        "no caption",
    ),
    "a figure that no sentence refers to": (
        edit(FIGURE, "{numref}`fig-chapter-squares`", "the figure"),
        "figures",
        "numref",
    ),
    "a figure that no cell draws": (
        edit(FIGURE, "{shown-figure} chapter-squares", "{shown-figure} other"),
        "figures",
        "no cell shows",
    ),
    "a result typed in prose": (
        edit(FIGURE, "has slope", "has slope 1.98 or"),
        "numbers_are_glued",
        "glue it",
    ),
    "a result typed in maths": (
        edit(STATEMENT, "$(cs)^2=c^2s^2$", "$L(2)=0.0232$"),
        "numbers_are_glued",
        "glue it",
    ),
    "a percentage typed in prose": (
        edit(FIGURE, "has slope", "misses 28 % and has slope"),
        "numbers_are_glued",
        "glue it",
    ),
    "a quoted number that no cell glues": (
        edit(FIGURE, "`chapter-slope:.2f`", "`chapter-slopes:.2f`"),
        "glue_used",
        "no cell of it glues",
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_caught_by_the_named_contract(book, name):
    change, check, advice = CASES[name]
    found = broken(book, change)
    assert found, f"{name}: nothing was noticed"
    assert {p.check for p in found} == {check}, found
    assert any(advice in p.message for p in found), found


def test_the_good_book_keeps_every_contract(book):
    assert contracts.problems([book / small_book.CHAPTER], book) == []


def second_chapter(book):
    notebook = small_book.read(book)
    path = book / "book/part/second.ipynb"
    path.write_text((book / small_book.CHAPTER).read_text())
    assert notebook
    return [book / small_book.CHAPTER, path]


def test_a_glue_key_in_two_chapters_is_caught(book):
    found = contracts.problems(second_chapter(book), book)
    keys = [p for p in found if p.check == "glue_unique"]
    assert "chapter-slope" in keys[0].message
    assert "begin keys with the chapter's name" in keys[0].message


def test_a_label_in_two_chapters_is_caught(book):
    found = contracts.problems(second_chapter(book), book)
    labels = [p for p in found if p.check == "labels_unique"]
    assert any("theorem-squares" in p.message for p in labels)


def test_a_whitelisted_number_needs_a_reason(book):
    change = edit(FIGURE, "has slope", "has slope 1.98 or")
    listed = "- file: book/part/chapter.ipynb\n  text: '1.98'\n"
    allowed = book / "book/typed_numbers.yml"
    allowed.write_text(listed)
    assert broken(book, change)
    allowed.write_text(listed + "  reason: a made-up value, to be refused\n")
    assert not contracts.problems([book / small_book.CHAPTER], book)


@pytest.mark.parametrize(
    "text",
    [
        "Theorem 5.12 and Lemma A.11 of §3.45 hold.",
        "the value {glue:text}`key-name:.3f` of `0.123` cells",
        "```python\nx = 0.123\n```",
        "a factor of 1.5, of 1/2, and 1797 images in 2026",
        "[a link](page-1.234.html)",
        ":::{prf:theorem} Theorem 5.12 of the paper\n:label: x-1.23\n",
    ],
)
def test_what_is_no_result_is_left_alone(text):
    assert contracts.typed_results(text) == []


@pytest.mark.parametrize(
    "text",
    ["it is 0.1234", "$L=0.023$", "about 1e-7", "28%", "28\\%", "1.2e3"]
    + ["12 percent", "$1.1\\cdot10^5$"],
)
def test_what_looks_like_a_result_is_seen(text):
    assert len(contracts.typed_results(text)) == 1


def test_markdown_cells_are_all_linted(book):
    """A number in a late cell is not overlooked."""

    def change(notebook):
        notebook.cells.append(new_markdown_cell("And it is 3.14."))

    assert [p.check for p in broken(book, change)] == ["numbers_are_glued"]


def test_the_words_of_an_alternative_text_are_no_lines_of_code():
    words = "\n".join(f'    "part {n} of what is seen "' for n in range(9))
    code = "\n".join(f"x{n} = {n}" for n in range(13))
    figure = f'{code}\nshow_figure(fig, "name",\n    alt={words.strip()})'
    assert len(figure.splitlines()) == 23
    assert contracts._lines_of_words(figure) == 8
    assert contracts._lines_of_words("x = (") == 0
