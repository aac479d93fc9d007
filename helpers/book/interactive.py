"""Plotly figures that work in the built page with no network."""

from __future__ import annotations

import os

from helpers.book.figures import check_description

# where the build puts plotly's script, seen from a chapter's page
SCRIPT = "../../_static/plotly.min.js"


def show_interactive(fig, name: str, alt: str, summary: str) -> None:
    """Display a plotly figure, with its description and a text equivalent.

    The script comes from the book's own static files (the build copies it
    from the installed plotly), so the page asks no other host for anything.

    Parameters
    ----------
    fig : plotly.graph_objects.Figure
    name : str
        As in :func:`helpers.book.show_figure`; becomes the element's id.
    alt : str
        At least 20 characters.
    summary : str
        What a reader without the picture needs: the finding, in words or as
        a small table. Shown below the figure, and compared by nbval.

    Raises
    ------
    ValueError
        If the name or the description is not fit, or the summary is empty.
    """
    from html import escape

    from IPython.display import display

    check_description(name, alt)
    if not summary.strip():
        raise ValueError(f"summary of {name!r} must not be empty")
    script = os.environ.get("BOOK_PLOTLY", SCRIPT)
    body = fig.to_html(
        include_plotlyjs=script,
        full_html=False,
        div_id=name,
        config={"responsive": True},
    )
    html = (
        f'<figure class="interactive" role="group" aria-label="{escape(alt)}">'
        f"{body}<figcaption><pre>{escape(summary)}</pre></figcaption></figure>"
    )
    display(
        {"text/html": html, "text/plain": f"interactive {name}\n{summary}"},
        raw=True,
        metadata={"companion": {"interactive": name, "alt": alt}},
    )
