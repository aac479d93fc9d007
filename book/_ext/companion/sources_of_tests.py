"""Sources of the tests as pages, so that the ledger can link to each test."""

from __future__ import annotations

import ast
from pathlib import Path

from pygments import highlight
from pygments.formatters import HtmlFormatter
from pygments.lexers import PythonLexer

from helpers.book import ledger


def page_of(test_file: str) -> str:
    """Name of the page of a test file (``tests/a/test_b.py``)."""
    return f"book/tests/{Path(test_file).with_suffix('').as_posix()}"


def anchor_of(node_id: str) -> str:
    """Anchor of a test on the page of its file."""
    return node_id.split("[")[0].rsplit("::", 1)[-1]


def pages_of_tests(app):
    """One page for each file of tests that the ledger names."""
    root = Path(app.srcdir)
    rows = ledger.load(root / "book" / "ledger.yml")
    files = {
        node_id.split("::")[0]
        for row in rows
        for node_id in row.get("tests") or []
    }
    for name in sorted(files):
        path = root / name
        if path.is_file():
            body = _body(name, path.read_text(encoding="utf-8"))
            yield page_of(name), {"title": name, "body": body}, "page.html"


def _body(name: str, source: str) -> str:
    lines = highlight(source, PythonLexer(), HtmlFormatter(nowrap=True))
    lines = lines.splitlines()
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.FunctionDef) and node.name.startswith("test"):
            mark = f'<span id="{node.name}"></span>'
            lines[node.lineno - 1] = mark + lines[node.lineno - 1]
    text = "\n".join(lines)
    return (
        f"<h1>{name}</h1><p>A file of tests that the ledger links to.</p>"
        '<div class="highlight-python notranslate"><div class="highlight">'
        f'<pre tabindex="0">{text}</pre></div></div>'
    )


def setup(app):
    app.connect("html-collect-pages", pages_of_tests)
