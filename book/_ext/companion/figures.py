"""``shown-figure``: put a figure of a code cell where its caption stands."""

from __future__ import annotations

from docutils import nodes
from myst_nb.core.variables import RetrievalError
from myst_nb.ext.glue.directives import PasteFigureDirective
from myst_nb.ext.glue.utils import glue_warning, retrieve_glue_data


class ShownFigure(PasteFigureDirective):
    """``:::{shown-figure} name`` with the caption as content.

    The description (alt text) comes from the call of ``show_figure``; the
    figure is referred to as ``fig-name``.
    """

    def run(self):
        name = self.arguments[0]
        try:
            data = retrieve_glue_data(self.document, name)
        except RetrievalError:
            return [
                glue_warning(
                    f"no figure {name!r}: no cell of this page calls "
                    f"show_figure(fig, {name!r}, ...)",
                    self.document,
                    self.line,
                )
            ]
        described = data.metadata.get("companion", {})
        self.options["alt"] = described.get("alt", "")
        self.options["name"] = f"fig-{name}"
        found = super().run()
        for image in found[0].findall(nodes.image):
            image["classes"].append("chapter-figure")
        return found


def setup(app):
    app.add_directive("shown-figure", ShownFigure)
