"""The ledger in the book: the full table, the summary, and two roles.

``ledger-table`` is the page of all rows, ``ledger-summary`` the count of
settled rows a paper, ``{ledger}`` links to a row, ``{published}`` prints what
the paper published.
"""

from __future__ import annotations

from pathlib import Path

from docutils import nodes
from docutils.parsers.rst import directives
from sphinx.util import logging
from sphinx.util.docutils import SphinxDirective, SphinxRole

from companion.freshness import mark_derived
from companion.sources_of_tests import anchor_of, page_of
from companion.tables import table
from helpers.book import ledger
from tools.ledger import PAPERS, records_of, settled_counts

log = logging.getLogger(__name__)


def rows_of(env) -> list[dict]:
    path = Path(env.srcdir) / "book" / "ledger.yml"
    env.note_dependency(str(path))
    return ledger.load(path)


def find(env, row_id: str, location) -> dict | None:
    for row in rows_of(env):
        if row["id"] == row_id:
            return row
    log.warning(
        "the ledger has no row %r; add it to book/ledger.yml or correct the id",
        row_id,
        location=location,
    )
    return None


class LedgerRole(SphinxRole):
    """``{ledger}`row``` links to the row on the ledger page."""

    def run(self):
        row = find(self.env, self.text, self.get_location())
        if row is None:
            return [nodes.literal(text=self.text)], []
        return [reference(self.env, row, label(row))], []


class PublishedRole(SphinxRole):
    """``{published}`row``` or ``{published}`row:key``` prints a value."""

    def run(self):
        row_id, _, key = self.text.partition(":")
        row = find(self.env, row_id, self.get_location())
        value = None if row is None else row.get("published")
        if key and isinstance(value, dict):
            value = value.get(key)
        if value is None:
            log.warning(
                "ledger row %r has no published value",
                self.text,
                location=self.get_location(),
            )
            return [nodes.literal(text=self.text)], []
        return [nodes.inline(text=str(value), classes=["published"])], []


def label(row: dict) -> str:
    return row.get("number") or row["title"]


def reference(env, row, text):
    """Link to a row of the ledger page."""
    page = "book/reference/ledger"
    here = env.app.builder.get_relative_uri(env.docname, page)
    uri = f"{here}#{ledger.anchor(row['id'])}"
    return nodes.reference("", text, internal=True, refuri=uri)


class LedgerSummary(SphinxDirective):
    """Settled rows of each paper, as a table."""

    def run(self):
        mark_derived(self.env)
        rows = []
        for paper, counts in settled_counts(rows_of(self.env)).items():
            rows.append(
                [
                    nodes.Text(PAPERS[paper]),
                    nodes.Text(str(counts["settled"])),
                    nodes.Text(str(counts["total"])),
                ]
            )
        head = ["paper", "settled", "claims in the ledger"]
        return [table(head, rows, classes=["ledger-summary"])]


class LedgerTable(SphinxDirective):
    """Every row: claim, paper's value, ours, verdict, links."""

    option_spec = {"paper": directives.unchanged_required}
    head = ["claim", "paper says", "we find", "verdict"]

    def run(self):
        mark_derived(self.env)
        paper = self.options["paper"]
        rows = [r for r in rows_of(self.env) if r["paper"] == paper]
        found = records_of(Path(self.env.srcdir))
        cells, ids = [], []
        for row in rows:
            cells.append(self._cells(row, found.get(row["id"], [])))
            ids.append(ledger.anchor(row["id"]))
        node = table(self.head, cells, classes=["ledger"], ids=ids)
        for body_row, row in zip(node[0][-1], rows, strict=True):
            body_row["classes"] += [
                f"paper-{paper.replace('_', '-')}",
                f"kind-{row['kind']}",
                "verdict-" + row["status"].replace(" ", "-"),
            ]
        return [node]

    def _cells(self, row, records):
        name = nodes.strong(text=label(row))
        claim = [name, nodes.Text(f" ({row['kind']}). ")]
        if row.get("number"):
            claim += [nodes.emphasis(text=row["title"]), nodes.Text(". ")]
        claim += self._inline(row["claim"])
        if row.get("note"):
            claim.append(nodes.Text(" "))
            note = nodes.inline(classes=["ledger-note"])
            note += self._inline(f"Note: {row['note']}")
            claim.append(note)
        return [
            claim,
            nodes.Text(published_text(row)),
            [part for r in records for part in self._found(r)],
            self._verdict(row),
        ]

    def _inline(self, text):
        found, messages = self.state.inline_text(text, self.lineno)
        return [*found, *messages]

    def _found(self, record):
        words = f"{record['part']}: " if record["part"] else ""
        if record["rule"].startswith(f"{record['shown']} within"):
            words += f"agrees: {record['rule']}"
        else:
            words += f"{record['shown']} (needs {record['rule']})"
        if record["interval"]:
            low, high = record["interval"]
            words += f", interval [{low:.4g}, {high:.4g}]"
        words += f", {record['scale']} scale"
        return [nodes.inline(text=words, classes=["ledger-found"])]

    def _verdict(self, row):
        out = [nodes.inline(text=row["status"], classes=["verdict"])]
        if row.get("chapter"):
            page, _, target = row["chapter"].partition("#")
            page = "book/" + page.rsplit(".", 1)[0]
            here = self.env.app.builder.get_relative_uri(
                self.env.docname, page
            )
            uri = f"{here}#{target}" if target else here
            out += [
                nodes.Text(" "),
                nodes.reference("", "cell", internal=True, refuri=uri),
            ]
        for test in row.get("tests") or []:
            out += [nodes.Text(" "), self._test(test)]
        return out

    def _test(self, node_id):
        """Link to the source of a test, which is a page of the book."""
        file = node_id.split("::")[0]
        words = nodes.literal(text=anchor_of(node_id))
        if not (Path(self.env.srcdir) / file).is_file():
            return words
        here = self.env.app.builder.get_relative_uri(
            self.env.docname, page_of(file)
        )
        link = nodes.reference(
            "", "", internal=True, refuri=f"{here}#{anchor_of(node_id)}"
        )
        link += words
        return link


def published_text(row) -> str:
    """The published value as one cell of text."""
    value = row.get("published")
    if value is None:
        return ""
    if isinstance(value, dict):
        return "; ".join(f"{k}: {v}" for k, v in value.items())
    if isinstance(value, list):
        return "; ".join(map(str, value))
    return str(value)


def setup(app):
    app.add_role("ledger", LedgerRole())
    app.add_role("published", PublishedRole())
    app.add_directive("ledger-summary", LedgerSummary)
    app.add_directive("ledger-table", LedgerTable)
