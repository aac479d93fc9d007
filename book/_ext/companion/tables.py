"""A docutils table from lists of nodes."""

from __future__ import annotations

from docutils import nodes


def table(head: list[str], rows: list[list], classes=(), ids=()):
    """Table node; each cell of ``rows`` is a node or a list of nodes."""
    group = nodes.tgroup(cols=len(head))
    group += [nodes.colspec(colwidth=1) for _ in head]
    top = nodes.thead()
    top += _row([nodes.Text(h) for h in head])
    body = nodes.tbody()
    for number, cells in enumerate(rows):
        row = _row(cells)
        if number < len(ids):
            row["ids"].append(ids[number])
        body += row
    group += [top, body]
    node = nodes.table(classes=list(classes))
    node += group
    return node


def _row(cells):
    row = nodes.row()
    for cell in cells:
        entry = nodes.entry()
        paragraph = nodes.paragraph()
        paragraph += cell
        entry += paragraph
        row += entry
    return row
