"""What every chapter promises, checked without running it.

Each ``check_*`` takes a chapter and yields problems; a problem says what is
wrong, where, and what to do. ``python -m tools.contracts [notebook ...]``
prints those of the book.
"""

from __future__ import annotations

import ast
import re
import sys
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

import nbformat
import yaml

from tools import ROOT
from tools.execution import notebooks

MOST_LINES = 15  # of code: the words of an alternative text do not count
MOST_WIDTH = 79  # what a page shows without a scroll bar
MOST_DEFINED = 5  # lines of a function that may live in a notebook
LEAST_EXERCISES = 5
LEAST_ALT = 20
LEAST_CAPTION = 20
CARD = ("**You will be able to**", "**You need**", "**Time**")


@dataclass(frozen=True)
class Problem:
    """Something that breaks a contract."""

    check: str
    where: str
    message: str

    def __str__(self):
        return f"{self.where}: {self.message} [{self.check}]"


@dataclass
class Chapter:
    """A notebook with what the checks ask of it."""

    path: Path
    root: Path = ROOT

    def __post_init__(self):
        self.notebook = nbformat.read(self.path, as_version=4)
        self.name = self.path.relative_to(self.root).as_posix()
        cells = self.notebook.cells
        self.code = [c for c in cells if c.cell_type == "code"]
        self.markdown = [c for c in cells if c.cell_type == "markdown"]
        self.prose = "\n\n".join(c.source for c in self.markdown)

    def problem(self, check: str, message: str, cell: int | None = None):
        where = self.name if cell is None else f"{self.name}, code cell {cell}"
        return Problem(check, where, message)


def outputs(chapter: Chapter):
    """Code cell number and output, one by one."""
    for number, cell in enumerate(chapter.code, 1):
        for output in cell.outputs:
            yield number, output


# --- cells ---------------------------------------------------------------


def check_stored_run(chapter):
    """nbval compares nothing for a cell without an execution count."""
    counts = [c.execution_count for c in chapter.code]
    if counts != list(range(1, len(counts) + 1)):
        yield chapter.problem(
            "stored_run",
            f"cells are not stored as run in order (counts {counts}): "
            f"python -m tools.store {chapter.name}",
        )


def check_kernel(chapter):
    name = chapter.notebook.metadata.get("kernelspec", {}).get("name")
    if name != "python3":
        yield chapter.problem(
            "kernel",
            f"kernel is {name!r}, must be 'python3': choose the plain Python "
            "kernel and store the chapter again",
        )


def check_no_stderr(chapter):
    for number, output in outputs(chapter):
        if output.get("name") == "stderr":
            yield chapter.problem(
                "no_stderr",
                "writes to stderr: remove the cause of the warning; a reader "
                "sees a red box",
                number,
            )


def check_no_error(chapter):
    for number, output in outputs(chapter):
        if output.output_type == "error":
            yield chapter.problem(
                "no_error",
                f"stored with {output.ename}: mend the cell; to show that a "
                "call is refused, catch the error and print its message",
                number,
            )


def check_comparable_outputs(chapter):
    """nbval leaves HTML and pictures out, so text must stand beside them."""
    for number, output in outputs(chapter):
        data = output.get("data", {})
        if data and not any(m.endswith("text/plain") for m in data):
            yield chapter.problem(
                "comparable_outputs",
                f"has only {sorted(data)} as output, which nothing compares: "
                "show it through helpers.book, which adds text",
                number,
            )
        text = str(data.get("text/plain", "")) + str(output.get("text", ""))
        if re.search(r"0x[0-9a-fA-F]{6,}", text):
            yield chapter.problem(
                "comparable_outputs",
                "prints an address of memory, which differs in every run: "
                "print the value, not the object",
                number,
            )


def check_pictures_dropped(chapter):
    for number, output in outputs(chapter):
        if any("image/" in mime for mime in output.get("data", {})):
            yield chapter.problem(
                "pictures_dropped",
                "is stored with a picture: "
                f"python -m tools.store {chapter.name}",
                number,
            )


def check_cell_form(chapter):
    for number, cell in enumerate(chapter.code, 1):
        lines = cell.source.splitlines()
        count = len(lines) - _lines_of_words(cell.source)
        if count > MOST_LINES:
            yield chapter.problem(
                "cell_form",
                f"has {count} lines, at most {MOST_LINES} are allowed: "
                "split it, one idea a cell, or move code to a helper",
                number,
            )
        if wide := [line for line in lines if len(line) > MOST_WIDTH]:
            yield chapter.problem(
                "cell_form",
                f"has a line of {len(wide[0])} characters, at most "
                f"{MOST_WIDTH} fit the page: break {wide[0].strip()[:40]!r}",
                number,
            )
        if cell.source.rstrip().endswith(";"):
            yield chapter.problem(
                "cell_form",
                "ends with ';', which nbval shows as output: assign to _",
                number,
            )
        if not _is_python(cell.source):
            yield chapter.problem(
                "cell_form",
                "is not plain Python: an unknown IPython magic passes, and "
                "the rest of its cell never runs; write plain Python",
                number,
            )


def _lines_of_words(source: str) -> int:
    """Lines that an alternative text adds to its first."""
    if not _is_python(source):
        return 0
    return sum(
        node.value.end_lineno - node.value.lineno
        for node in ast.walk(ast.parse(source))
        if isinstance(node, ast.keyword) and node.arg == "alt"
    )


def _is_python(source: str) -> bool:
    try:
        ast.parse(source)
    except SyntaxError:
        return False
    return True


def check_defines_nothing_big(chapter):
    for number, cell in enumerate(chapter.code, 1):
        try:
            tree = ast.parse(cell.source)
        except SyntaxError:
            continue  # the form of the cell is checked above
        for node in ast.walk(tree):
            kinds = ast.FunctionDef | ast.ClassDef | ast.AsyncFunctionDef
            if not isinstance(node, kinds):
                continue
            length = node.end_lineno - node.lineno + 1
            if length > MOST_DEFINED:
                yield chapter.problem(
                    "defines_nothing_big",
                    f"defines {node.name!r} in {length} lines: a helper "
                    "should hold it, with a test; a chapter only calls",
                    number,
                )


MACHINE_PATH = re.compile(
    r"(?<![\w.])/(?:home|root|Users|tmp|work|mnt|var|opt)/[\w.-]+"
    r"|[A-Z]:\\\\?Users"
)
DOWNLOAD = re.compile(
    r"\burlopen|\burlretrieve|\brequests\.|\bdownload\s*=\s*True"
    r"|\bfetch_\w+\(|\bcurl\b|\bwget\b|helpers\.core\.downloads"
)


def check_no_machine_path(chapter):
    for cell in chapter.notebook.cells:
        text = cell.source + str(cell.get("outputs", ""))
        for path in MACHINE_PATH.findall(text):
            yield chapter.problem(
                "no_machine_path",
                f"names {path!r}, a path of one machine: use a relative path "
                "or a helper that finds the file",
            )


def check_no_download(chapter):
    for number, cell in enumerate(chapter.code, 1):
        for found in DOWNLOAD.findall(cell.source):
            yield chapter.problem(
                "no_download",
                f"downloads at run time ({found!r}): chapters use data that "
                "ship with helpers.core.data",
                number,
            )


# --- the template --------------------------------------------------------


def check_opening(chapter):
    first = chapter.notebook.cells[0]
    if first.cell_type != "markdown" or not first.source.startswith("# "):
        yield chapter.problem(
            "opening", "must open with a markdown cell that begins '# Title'"
        )
    for phrase in CARD:
        if phrase not in chapter.prose:
            yield chapter.problem(
                "opening",
                f"lacks {phrase} in its card: objectives, prerequisites and "
                "minutes stand in ':::{admonition} Before you start'",
            )
    if not re.search(r"\d+ minutes to read", chapter.prose):
        yield chapter.problem(
            "opening", "must say '<N> minutes to read' in its card"
        )


def check_closing(chapter):
    if not re.search(r"^## Key takeaways", chapter.prose, re.MULTILINE):
        yield chapter.problem("closing", "lacks '## Key takeaways'")
    if not re.search(r"\{cite(:\w+)?\}`", chapter.prose):
        yield chapter.problem(
            "closing", "cites nothing: name the paper with {cite:t}`key`"
        )


def check_exercises(chapter):
    fences = r"^:{3,}\{exercise(?:-start)?\}.*?^:label:\s*(\S+)"
    flags = re.MULTILINE | re.DOTALL
    labels = re.findall(fences, chapter.prose, flags)
    solved = re.findall(
        r"^:{3,}\{solution(?:-start)?\}\s+(\S+)", chapter.prose, re.MULTILINE
    )
    if len(labels) < LEAST_EXERCISES:
        yield chapter.problem(
            "exercises",
            f"has {len(labels)} exercises, needs {LEAST_EXERCISES}: by hand, "
            "by code, breaking a hypothesis, a short program, an open one",
        )
    for label in labels:
        if label not in solved:
            yield chapter.problem(
                "exercises", f"exercise {label!r} has no solution"
            )
    bodies = re.split(r"^:{3,}\{solution", chapter.prose, flags=re.MULTILINE)
    for body in bodies[1:]:
        if not re.search(r"^:class:.*dropdown", body[:400], re.MULTILINE):
            label = body.split("\n")[0].partition("}")[2].strip()
            yield chapter.problem(
                "exercises",
                f"solution of {label!r} is not folded: add ':class: dropdown'",
            )


def check_figures(chapter):
    shown = {}
    for number, output in outputs(chapter):
        described = output.get("metadata", {}).get("companion", {})
        if "figure" in described:
            shown[described["figure"]] = (number, described.get("alt", ""))
        elif "Figure size" in str(output.get("data", {}).get("text/plain")):
            yield chapter.problem(
                "figures",
                "shows a figure without a name: call show_figure(fig, name, "
                "alt=...)",
                number,
            )
    captions = dict(
        re.findall(
            r"^:{3,}\{shown-figure\}\s+(\S+)\n(.*?)^:{3,}",
            chapter.prose,
            re.MULTILINE | re.DOTALL,
        )
    )
    for name, (number, alt) in shown.items():
        if len(alt.strip()) < LEAST_ALT:
            yield chapter.problem(
                "figures",
                f"figure {name!r} lacks alt text: say in at least {LEAST_ALT} "
                "characters what one sees and what follows",
                number,
            )
        if name not in captions:
            yield chapter.problem(
                "figures",
                f"figure {name!r} is drawn but not placed: write "
                f"':::{{shown-figure}} {name}' with a caption",
                number,
            )
        if f"`fig-{name}`" not in chapter.prose:
            yield chapter.problem(
                "figures",
                f"no sentence refers to figure {name!r}: write "
                f"{{numref}}`fig-{name}`",
                number,
            )
    for name, caption in captions.items():
        if name not in shown:
            yield chapter.problem(
                "figures", f"places {name!r}, which no cell shows"
            )
        text = re.sub(r"^:[\w-]+:.*$", "", caption, flags=re.MULTILINE)
        if len(text.strip()) < LEAST_CAPTION:
            yield chapter.problem("figures", f"figure {name!r} has no caption")


# --- numbers in the prose ------------------------------------------------

# what may hold digits without being a result
NOT_PROSE = re.compile(
    r"^```.*?^```|^~~~.*?^~~~"  # fenced code
    r"|\{[\w:+-]+\}`[^`]*`"  # roles, glue among them
    r"|`[^`]*`"  # code spans
    r"|^:[\w-]+:.*?$"  # directive options
    r"|^\([\w-]+\)=$"  # targets
    r"|^:{3,}\{[\w:-]+\}[^\n]*$"  # directive heads, statement numbers
    r"|\]\([^)]*\)|<[^>\n]*>"  # links
    r"|(?:Theorem|Lemma|Proposition|Corollary|Definition|Remark|Example"
    r"|Assumption|Section|Figure|Table|Appendix|Chapter|Eq\.|§+)s?"
    r"(?:\s|~)*[A-Z]?\.?[\d.]+[\d](?:[-–,]\s?[\d.]+\d)*",
    re.MULTILINE | re.DOTALL,
)
TYPED_RESULT = re.compile(
    r"(?<![\w.])"
    r"(?:\d+\.\d{2,}"  # two decimals or more
    r"|\d+(?:\.\d+)?\s*\\?(?:%|percent\b|per cent\b)"
    r"|\d+(?:\.\d+)?[eE][-+]?\d+"
    r"|\d+\.\d+\s*(?:\\times|\\cdot|×|·)\s*10)"
)


def whitelist(root: Path = ROOT) -> list[dict]:
    """Numbers that may be typed, each with its reason."""
    path = root / "book" / "typed_numbers.yml"
    return (yaml.safe_load(path.read_text()) or []) if path.is_file() else []


def typed_results(text: str) -> list[str]:
    """Numbers in prose that look like results."""
    return TYPED_RESULT.findall(NOT_PROSE.sub(" ", text))


def check_numbers_are_glued(chapter):
    allowed = {
        str(w["text"])
        for w in whitelist(chapter.root)
        if w["file"] == chapter.name and w.get("reason")
    }
    for cell in chapter.markdown:
        for number in typed_results(cell.source):
            if number not in allowed:
                yield chapter.problem(
                    "numbers_are_glued",
                    f"{number!r} is typed by hand: glue it where it is "
                    "computed and write {glue:text}`key:.3f`, take a paper's "
                    "value by {published}`row`, write a fraction, or argue "
                    "for it in book/typed_numbers.yml",
                )


# --- the whole book ------------------------------------------------------


def glue_keys(chapter) -> list[str]:
    return [
        output.metadata["scrapbook"]["name"]
        for _, output in outputs(chapter)
        if "scrapbook" in output.get("metadata", {})
    ]


def check_glue_used(chapter):
    keys = set(glue_keys(chapter))
    used = re.findall(r"\{glue:\w+\}`([\w-]+)", chapter.prose)
    for key in sorted(set(used) - keys):
        yield chapter.problem(
            "glue_used", f"quotes {key!r}, which no cell of it glues"
        )


def check_glue_unique(chapters: list[Chapter]):
    """A key glued twice shows one of its values, and nobody knows which."""
    where: dict[str, list[str]] = {}
    for chapter in chapters:
        for key in glue_keys(chapter):
            where.setdefault(key, []).append(chapter.name)
    for key, names in where.items():
        if len(names) > 1:
            yield Problem(
                "glue_unique",
                ", ".join(sorted(set(names))),
                f"glue key {key!r} is used {len(names)} times in the book: "
                "begin keys with the chapter's name",
            )


def check_labels_unique(chapters: list[Chapter]):
    found = Counter()
    for chapter in chapters:
        pattern = r"^:(?:label|name):\s*(\S+)|^\(([\w-]+)\)="
        for pair in re.findall(pattern, chapter.prose, re.MULTILINE):
            found["".join(pair)] += 1
    for label, count in found.items():
        if count > 1:
            yield Problem(
                "labels_unique",
                "book",
                f"label {label!r} stands {count} times: make it unique, "
                "references go to one of them only",
            )


CHAPTER_CHECKS = [
    check_stored_run,
    check_kernel,
    check_no_stderr,
    check_no_error,
    check_comparable_outputs,
    check_pictures_dropped,
    check_cell_form,
    check_defines_nothing_big,
    check_no_machine_path,
    check_no_download,
    check_opening,
    check_closing,
    check_exercises,
    check_figures,
    check_numbers_are_glued,
    check_glue_used,
]
BOOK_CHECKS = [check_glue_unique, check_labels_unique]


def problems(paths: list[Path], root: Path = ROOT) -> list[Problem]:
    """Everything that is wrong with the given chapters."""
    chapters = [Chapter(Path(p).resolve(), root) for p in paths]
    found = [p for c in chapters for k in CHAPTER_CHECKS for p in k(c)]
    return found + [p for k in BOOK_CHECKS for p in k(chapters)]


def main(arguments: list[str]) -> int:
    found = problems([Path(a) for a in arguments] or notebooks())
    print("\n".join(map(str, found)) or "every contract is kept")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
