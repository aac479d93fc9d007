"""Results that the prose quotes: glued numbers and words."""

from __future__ import annotations

import math
import re

PREFIX = "application/papermill.record/"
KEY = re.compile(r"[a-z0-9]+(?:-[a-z0-9]+)+")


def glue(key: str, value) -> None:
    """Record a result under a name, for ``{glue:text}`` in the prose.

    Parameters
    ----------
    key : str
        Lower-case words joined by hyphens, unique in the book; begin with
        the chapter's name (``one-neuron-loss-k2``).
    value : float, int, bool or str
        NumPy scalars are turned into Python's. Must be finite.

    Raises
    ------
    ValueError
        If the key is not of that form, or the value is not a finite scalar.

    Notes
    -----
    The format is chosen where the number is quoted: ``{glue:text}`key:.3f```.
    nbval compares the stored value with a relative tolerance of 1e-6, so
    glue what is stable, never a rounding residual.
    """
    from IPython.display import display

    if not KEY.fullmatch(key):
        raise ValueError(
            "key must be lower-case words joined by hyphens, such as "
            f"'one-neuron-loss-k2', got {key!r}"
        )
    text = _as_text(key, value)
    display(
        {PREFIX + "text/plain": text},
        raw=True,
        metadata={"scrapbook": {"name": key, "mime_prefix": PREFIX}},
    )


def _as_text(key: str, value) -> str:
    if hasattr(value, "item") and getattr(value, "size", 1) == 1:
        value = value.item()
    if isinstance(value, bool | int):
        return repr(value)
    if isinstance(value, float):
        if not math.isfinite(value):
            raise ValueError(f"value of {key!r} must be finite, got {value}")
        return repr(value)
    if isinstance(value, str):
        return repr(value)
    raise ValueError(
        f"value of {key!r} must be one number or text, got {type(value)}"
    )
