"""Plotly figures and applets that work in the built page with no network."""

from __future__ import annotations

import json
import os

from helpers.book.figures import check_description

# where the build puts plotly's script, seen from a chapter's page
SCRIPT = "../../_static/plotly.min.js"
APPLETS = "../../_static/applets"


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


def show_applet(
    name: str, applet: str, alt: str, summary: str, data=None
) -> None:
    """Display a small program of the book's own that runs in the page.

    The program is ``book/_static/applets/<applet>.js``, plain JavaScript
    with what ``applet.js`` beside it offers; it starts once the page is
    read, and needs neither a kernel nor a network. In a notebook, which has
    no such page around it, the summary stands alone.

    Parameters
    ----------
    name : str
        As in :func:`helpers.book.show_figure`; becomes the element's id.
    applet : str
        The script's name without its ending.
    alt : str
        At least 20 characters: what the applet shows and what can be moved.
    summary : str
        What a reader without the applet needs: the finding, in words or as
        a small table. Shown below it, and compared by nbval.
    data : optional
        Handed to the program, as JSON: where it begins.

    Raises
    ------
    ValueError
        If the name or the description is not fit, the summary is empty, or
        ``applet`` is not a plain name.
    TypeError
        If the data cannot be written as JSON.
    """
    from html import escape

    from IPython.display import display

    check_description(name, alt)
    if not summary.strip():
        raise ValueError(f"summary of {name!r} must not be empty")
    if not applet.isidentifier():
        raise ValueError(f"applet must be a plain name, got {applet!r}")
    text = json.dumps(data, allow_nan=False).replace("<", "\\u003c")
    html = (
        f'<figure class="interactive applet" id="{name}" role="group" '
        f'aria-label="{escape(alt)}" data-applet="{applet}">'
        f'<script type="application/json">{text}</script>'
        f"<figcaption><pre>{escape(summary)}</pre></figcaption></figure>"
        f'<script src="{APPLETS}/applet.js" defer></script>'
        f'<script src="{APPLETS}/{applet}.js" defer></script>'
    )
    display(
        {"text/html": html, "text/plain": f"applet {name}\n{summary}"},
        raw=True,
        metadata={"companion": {"applet": name, "alt": alt}},
    )
