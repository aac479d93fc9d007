"""The student edition: exercises stay, solutions go, the rest still runs."""

import ast
import builtins

import nbformat
import pytest
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook

from tools import ROOT, student
from tools.execution import notebooks

CHAPTERS = notebooks()
NAMES = [str(p.relative_to(ROOT)) for p in CHAPTERS]

PAGE = """:::{exercise} Add
:label: ex-add

What is $1+1$?
:::

::::{solution} ex-add
:label: sol-add
:class: dropdown

Two.
:::{note}
And not three.
:::
::::

After it."""


def words(edition):
    return "\n".join(cell.source for cell in edition.cells)


def bound_and_used(sources):
    """Names that cells bind at their top, and names that they read."""
    bound, used = set(), set()
    for source in sources:
        for node in ast.walk(ast.parse(source)):
            if isinstance(node, ast.Name):
                into = used if isinstance(node.ctx, ast.Load) else bound
                into.add(node.id)
            elif isinstance(node, ast.FunctionDef | ast.ClassDef):
                bound.add(node.name)
            elif isinstance(node, ast.alias):
                bound.add((node.asname or node.name).split(".")[0])
            elif isinstance(node, ast.arg):
                bound.add(node.arg)
            elif isinstance(node, ast.ExceptHandler):
                bound.add(node.name)
    return bound, used


def test_a_block_is_cut_at_its_own_fence():
    text, count = student.without_solutions(PAGE)
    assert count == 1
    assert "three" not in text and "sol-add" not in text
    assert text.startswith(":::{exercise} Add") and text.endswith("After it.")
    assert student.without_solutions("no fence") == ("no fence", 0)


def test_a_solution_without_an_end_is_refused():
    with pytest.raises(ValueError, match="not closed: add ':::'"):
        student.without_solutions(":::{solution} ex\nfor ever")


def test_cells_of_a_solution_go_with_it():
    chapter = new_notebook(
        cells=[
            new_code_cell("x = 1", execution_count=1),
            new_markdown_cell(PAGE),
            new_code_cell("print('two')"),
            new_code_cell("assert True"),
            new_markdown_cell("## More"),
            new_code_cell("x"),
        ]
    )
    edition = student.student_edition(chapter)
    sources = [cell.source for cell in edition.cells]
    assert sources[0] == "x = 1" and edition.cells[0].execution_count is None
    assert sources[2:] == [student.BLANK, "## More", "x"]
    assert "Two." in words(chapter), "the chapter itself must not change"


@pytest.mark.parametrize("path", CHAPTERS, ids=NAMES)
def test_every_chapter_has_one(path):
    chapter = nbformat.read(path, as_version=4)
    edition = student.student_edition(chapter)
    nbformat.validate(edition)
    kept, whole = words(edition), words(chapter)
    assert "{solution}" not in kept and "sol-" not in kept
    assert kept.count("{exercise}") == whole.count("{exercise}") >= 5
    assert kept.count(student.BLANK) == whole.count("{solution}")
    assert not any(c.get("outputs") for c in edition.cells)


@pytest.mark.parametrize("path", CHAPTERS, ids=NAMES)
def test_nothing_kept_needs_what_was_cut(path):
    chapter = nbformat.read(path, as_version=4)
    left = [
        cell.source
        for cell in student.student_edition(chapter).cells
        if cell.cell_type == "code"
    ]
    bound, used = bound_and_used(left)
    assert used - bound - set(dir(builtins)) == set()


def test_the_edition_is_written(tmp_path, capsys):
    assert student.main([str(tmp_path)]) == 0
    assert len(list(tmp_path.rglob("*.ipynb"))) == len(CHAPTERS)
    assert (tmp_path / "book" / "data").is_dir()
    assert (tmp_path / "book" / "ledger.yml").is_file()
    assert "chapters without solutions" in capsys.readouterr().out
