"""Scripts that the pages need, from the packages that are installed."""

from __future__ import annotations

from pathlib import Path


def copy_plotly(app, exception):
    """Put plotly's script beside the pages, where a page asks for it."""
    if exception is not None or app.builder.format != "html":
        return
    out = Path(app.outdir)
    pages = (out / "book").rglob("*.html")
    if any("plotly.min.js" in p.read_text("utf-8") for p in pages):
        from plotly.offline import get_plotlyjs

        target = out / "_static" / "plotly.min.js"
        target.write_text(get_plotlyjs(), encoding="utf-8")


def setup(app):
    app.connect("build-finished", copy_plotly)
