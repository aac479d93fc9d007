"""Two scales, one switch: ``BOOK_SCALE=quick`` (default) or ``paper``."""

from __future__ import annotations

import os

SCALES = ("quick", "paper")


def scale() -> str:
    """Scale at which this process runs.

    Returns
    -------
    str
        ``"quick"`` or ``"paper"``, from the variable ``BOOK_SCALE``.

    Raises
    ------
    ValueError
        If the variable holds anything else.
    """
    value = os.environ.get("BOOK_SCALE", "quick")
    if value not in SCALES:
        raise ValueError(
            f"BOOK_SCALE must be one of {', '.join(SCALES)}, got {value!r}"
        )
    return value


def pick(*, quick, paper):
    """Choose a setting by the scale.

    Parameters
    ----------
    quick, paper
        The two values, any type.

    Examples
    --------
    >>> pick(quick=16, paper=200) in (16, 200)
    True
    """
    return quick if scale() == "quick" else paper
