"""``execution-status``: how each chapter was run, as a table."""

from __future__ import annotations

from pathlib import Path

from docutils import nodes
from sphinx.util.docutils import SphinxDirective

from companion.freshness import mark_derived
from companion.tables import table
from tools import execution


class ExecutionStatus(SphinxDirective):
    """Chapter, scale, seconds, slowest cell, peak memory, digest."""

    def run(self):
        mark_derived(self.env)
        root = Path(self.env.srcdir)
        rows = []
        for notebook in execution.notebooks(root / "book"):
            record = execution.read_record(notebook, root)
            name = notebook.relative_to(root / "book").as_posix()
            if record is None:
                rows.append([name, "not run", "", "", "", ""])
                continue
            rows.append(
                [
                    name,
                    record.scale,
                    f"{record.seconds:.1f}",
                    f"{max(record.cell_seconds, default=0):.1f}",
                    f"{record.peak_mb:.0f}",
                    record.digest[:12],
                ]
            )
        head = [
            "chapter",
            "scale",
            "seconds",
            "slowest cell",
            "peak MB",
            "digest",
        ]
        cells = [[nodes.Text(c) for c in row] for row in rows]
        return [table(head, cells, classes=["execution-status"])]


def setup(app):
    app.add_directive("execution-status", ExecutionStatus)
