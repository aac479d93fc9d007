"""Showing a figure so that it can be named, described and compared.

A shown figure leaves three things in a notebook: the picture, a description
(alt text), and a *fingerprint*: what was plotted, as text. Pictures are not
stored with the book's sources; fingerprints are, and nbval compares them, so
a curve that moves turns a test red although no pixel is kept.
"""

from __future__ import annotations

import io
import re

import numpy as np

from helpers.core import tolerances

NAME = re.compile(r"[a-z0-9]+(?:-[a-z0-9]+)+")
LEAST_ALT = 20


def show_figure(fig, name: str, alt: str, rtol: float | None = None) -> None:
    """Display a matplotlib figure under a name, with its description.

    Parameters
    ----------
    fig : matplotlib.figure.Figure
        Is closed afterwards, so that a notebook does not show it twice.
    name : str
        Lower-case words joined by hyphens, unique in the book; begin with
        the chapter's name. ``:::{shown-figure} name`` places it in the page.
    alt : str
        What one sees and what follows from it; at least 20 characters.
    rtol : float, optional
        Relative accuracy of what is plotted, if it is less than 1e-6: curves
        of an adaptive integrator differ from machine to machine by as much
        as its tolerance allows.

    Raises
    ------
    ValueError
        If the name is not of that form, the description is too short, the
        figure has no axes, or ``rtol`` is not in (0, 0.1).
    """
    import matplotlib.pyplot as plt
    from IPython.display import display

    check_description(name, alt)
    if not fig.axes:
        raise ValueError(f"figure {name!r} has no axes")
    text = fingerprint(fig, name, rtol)
    picture = io.StringIO()
    fig.savefig(
        picture, format="svg", metadata={"Date": None, "Creator": None}
    )
    plt.close(fig)
    display(
        {"image/svg+xml": picture.getvalue(), "text/plain": text},
        raw=True,
        metadata={
            "scrapbook": {"name": name, "mime_prefix": ""},
            "companion": {"figure": name, "alt": alt},
        },
    )


def check_description(name: str, alt: str) -> None:
    """Raise ``ValueError`` unless name and alt text are fit for the book."""
    if not NAME.fullmatch(name):
        raise ValueError(
            "name must be lower-case words joined by hyphens, such as "
            f"'one-neuron-losses', got {name!r}"
        )
    if len(alt.strip()) < LEAST_ALT:
        raise ValueError(
            f"alt of {name!r} must say in at least {LEAST_ALT} characters "
            f"what one sees and what follows, got {alt!r}"
        )


def fingerprint(fig, name: str = "figure", rtol: float | None = None) -> str:
    """What a figure shows, as text.

    One line an axes (labels, limits are left out: they follow from the data)
    and one line an artist that carries data: its kind, the number of points
    and, per coordinate, minimum, maximum, mean and root mean square.

    Parameters
    ----------
    fig : matplotlib.figure.Figure
    name : str
    rtol : float, optional
        As for :func:`show_figure`; stands in the first line, where the
        comparison finds it.

    Returns
    -------
    str

    Raises
    ------
    ValueError
        If ``rtol`` is not in (0, 0.1).

    Notes
    -----
    Lines, scatters, images, meshes, filled areas, bars and texts are
    recognised. Values are given to 8 significant digits and compared to 6;
    values below 1e-9 of the artist's largest, or a thousandth of ``rtol``,
    print as 0. Cost is linear in
    the number of points.

    Examples
    --------
    >>> import matplotlib.pyplot as plt
    >>> fig, ax = plt.subplots()
    >>> _ = ax.plot([0, 1, 2], [0, 1, 4], label="squares")
    >>> print(fingerprint(fig, "demo"))
    figure demo: 1 axes
    axes 1: x '' y '' title ''
      line 'squares' 3 points, x 0 2 1 1.2909944, y 0 4 1.6666667 2.3804761
    >>> plt.close(fig)
    """
    if rtol is not None and not 0 < rtol < 0.1:
        raise ValueError(f"rtol must be in (0, 0.1), got {rtol!r}")
    zero = max(tolerances.FINGERPRINT_ZERO, (rtol or 0) / 1000)
    compared = "" if rtol is None else f", compared to {rtol:.0e}"
    lines = [f"figure {name}: {len(fig.axes)} axes{compared}"]
    for number, ax in enumerate(fig.axes, 1):
        lines.append(
            f"axes {number}: x {ax.get_xlabel()!r} y {ax.get_ylabel()!r} "
            f"title {ax.get_title()!r}"
        )
        lines += ["  " + line for line in _artists(ax, zero)]
    return "\n".join(lines)


def _artists(ax, zero: float):
    for line in ax.lines:
        yield _line(zero, "line", line, *line.get_data(orig=False))
    for collection in ax.collections:
        yield from _collection(collection, zero)
    for image in ax.images:
        yield _line(zero, "image", image, None, None, image.get_array())
    bars = [p for p in ax.patches if hasattr(p, "get_height")]
    if bars:
        x = [p.get_x() + p.get_width() / 2 for p in bars]
        yield _line(zero, "bars", None, x, [p.get_height() for p in bars])
    texts = [t.get_text() for t in ax.texts if t.get_text()]
    if texts:
        yield f"texts {len(texts)} {texts!r}"


def _collection(collection, zero: float):
    values = collection.get_array()
    offsets = np.asarray(collection.get_offsets(), dtype=float)
    paths = collection.get_paths()
    kind = type(collection).__name__
    if kind == "PathCollection":
        yield _line(
            zero, kind, collection, offsets[:, 0], offsets[:, 1], values
        )
    elif kind == "QuadMesh" or not paths:
        yield _line(zero, kind, collection, None, None, values)
    else:
        points = np.concatenate([p.vertices for p in paths])
        yield _line(zero, kind, collection, points[:, 0], points[:, 1], values)


def _line(zero, kind, artist, x=None, y=None, values=None) -> str:
    label = "" if artist is None else str(artist.get_label())
    label = "" if label.startswith("_") else f" {label!r}"
    parts = []
    size = 0
    for axis, data in (("x", x), ("y", y), ("values", values)):
        if data is None:
            continue
        data = np.ma.filled(np.ma.asarray(data, dtype=float), np.nan)
        size = max(size, data.size)
        parts.append(f"{axis} {_summary(data, zero)}")
    return f"{kind}{label} {size} points, " + ", ".join(parts)


def _summary(data: np.ndarray, zero: float) -> str:
    data = data[np.isfinite(data)]
    if not data.size:
        return "nothing finite"
    numbers = [data.min(), data.max(), data.mean(), np.sqrt((data**2).mean())]
    largest = max(abs(data.min()), abs(data.max()))
    digits = tolerances.FINGERPRINT_DIGITS
    return " ".join(
        "0" if abs(v) <= zero * largest else f"{v:.{digits}g}" for v in numbers
    )
