"""The ledger: every claim of the papers, and what the book found.

``book/ledger.yml`` holds a row for each claim. A chapter settles a row by
calling :func:`settle` with what it measured; the call raises if the claim
does not hold, and leaves a record in the notebook that the ledger page of the
book is made from.
"""

from __future__ import annotations

import os
from functools import lru_cache
from pathlib import Path

import numpy as np

from helpers.book.scale import scale
from helpers.core import tolerances

SMALL = tolerances.PRINTED_ZERO
NOT_YET = "not yet"
NOT_RUN = "not run here"
OPEN = "open"
UNSETTLED = (NOT_YET, NOT_RUN, OPEN)


class ClaimFailed(AssertionError):
    """What was measured contradicts the claim of a ledger row."""


def find_ledger(start: Path | None = None) -> Path:
    """Path of ``ledger.yml``: ``BOOK_LEDGER``, or the nearest one above.

    Raises
    ------
    FileNotFoundError
        If there is none in ``start`` (default: the working folder), its
        parents, or a ``book`` folder in one of them.
    """
    named = os.environ.get("BOOK_LEDGER")
    if named:
        return Path(named)
    start = Path(start or Path.cwd()).resolve()
    for folder in (start, *start.parents):
        for path in (folder / "ledger.yml", folder / "book" / "ledger.yml"):
            if path.is_file():
                return path
    raise FileNotFoundError(
        f"no ledger.yml at or above {start}; run the chapter inside the "
        "repository, or set BOOK_LEDGER to the file"
    )


def load(path: Path | None = None) -> list[dict]:
    """Rows of the ledger, in file order."""
    path = Path(path) if path else find_ledger()
    return _load(path, path.stat().st_mtime_ns)


@lru_cache(maxsize=4)
def _load(path: Path, _changed: int) -> list[dict]:
    import yaml

    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    with path.open(encoding="utf-8") as file:
        return yaml.load(file, Loader=loader) or []


def row(row_id: str) -> dict:
    """One row.

    Raises
    ------
    ValueError
        If the ledger has no such row; the message names the nearest ids.
    """
    rows = {r["id"]: r for r in load()}
    if row_id not in rows:
        from difflib import get_close_matches

        near = ", ".join(get_close_matches(row_id, rows)) or "none"
        raise ValueError(
            f"the ledger has no row {row_id!r} (nearest: {near}); "
            "add it to book/ledger.yml or correct the id"
        )
    return rows[row_id]


def settle(
    row_id: str,
    *,
    measured,
    expected=None,
    tolerance: float | None = None,
    at_most: float | None = None,
    at_least: float | None = None,
    control=None,
    interval: tuple[float, float] | None = None,
    part: str = "",
    note: str = "",
) -> None:
    """Hold a measurement against a claim, and record both.

    Parameters
    ----------
    row_id : str
        A row of ``book/ledger.yml``.
    measured : number, array, bool or str
        What the chapter computed.
    expected : same kind, optional
        What the claim says. Numbers must agree to ``tolerance`` in absolute
        value, entry by entry; everything else exactly.
    tolerance : float, optional
        Default 1e-9, exact for whole numbers, bool and str.
    at_most, at_least : float, optional
        Bounds on every entry of ``measured``; instead of ``expected``.
    control : same kind as measured, optional
        The same quantity with something made wrong on purpose. It must
        *fail* the rule: a rule that lets it pass proves nothing.
    interval : (low, high), optional
        Interval of ``measured`` over seeds or samples, for the ledger page.
    part : str, optional
        Which aspect, where a row is settled more than once.
    note : str, optional
        A remark for the ledger page.

    Raises
    ------
    ValueError
        If the row does not exist, no rule or two rules are given, or a
        number is not finite.
    ClaimFailed
        If the claim does not hold, or the control passes.
    """
    claim = row(row_id)
    rule = _Rule(expected, tolerance, at_most, at_least)
    name = row_id + (f" ({part})" if part else "")
    if not rule.holds(measured):
        raise ClaimFailed(
            f"{name}: measured {shown(measured)}, but the claim needs "
            f"{rule.words()}. Claim: {claim['claim']}"
        )
    if control is not None and rule.holds(control):
        raise ClaimFailed(
            f"{name}: the control {shown(control)} passes the rule "
            f"({rule.words()}) although it must fail; the check is empty"
        )
    record = {
        "id": row_id,
        "part": part,
        "measured": _plain(measured),
        "rule": rule.words(),
        "control": _plain(control),
        "interval": _plain(interval),
        "scale": scale(),
        "note": note,
    }
    _display(record, name, measured, rule, control)


def _display(record, name, measured, rule, control) -> None:
    from html import escape

    from IPython.display import display

    text = f"measured {shown(measured)}, needs {rule.words()}"
    if control is not None:
        text += f"; the control {shown(control)} fails, as it must"
    # chapters lie one folder below book/, as the ledger page does
    link = f"../reference/ledger.html#{anchor(record['id'])}"
    html = (
        '<p class="ledger-line"><span aria-hidden="true">✓</span> settled '
        f'<a href="{link}">{escape(name)}</a>: {escape(text)}</p>'
    )
    display(
        {"text/html": html, "text/plain": f"settled {name}: {text}"},
        raw=True,
        metadata={"companion": {"ledger": record}},
    )


def anchor(row_id: str) -> str:
    """Anchor of a row on the ledger page.

    Examples
    --------
    >>> anchor("copy_average.theorem_5_5")
    'row-copy-average-theorem-5-5'
    """
    return "row-" + row_id.replace(".", "-").replace("_", "-")


class _Rule:
    """What a measurement must satisfy."""

    def __init__(self, expected, tolerance, at_most, at_least):
        bounded = at_most is not None or at_least is not None
        if bounded == (expected is not None):
            raise ValueError(
                "give either expected (with tolerance) or at_most/at_least"
            )
        if tolerance is not None and not tolerance >= 0:
            raise ValueError(f"tolerance must be >= 0, got {tolerance}")
        if bounded and tolerance is not None:
            raise ValueError("tolerance goes with expected, not with bounds")
        self.exact = expected is not None and not _is_float(expected)
        self.exact = self.exact and tolerance is None
        self.expected, self.at_most, self.at_least = (
            expected,
            at_most,
            at_least,
        )
        self.tolerance = (
            tolerances.SETTLE_EXACT if tolerance is None else tolerance
        )

    def holds(self, value) -> bool:
        if self.expected is None:
            value = _finite(value)
            return not (
                (self.at_most is not None and (value > self.at_most).any())
                or (
                    self.at_least is not None and (value < self.at_least).any()
                )
            )
        if self.exact:
            return bool(np.array_equal(value, self.expected))
        value, wanted = _finite(value), _finite(self.expected)
        if value.shape != wanted.shape and wanted.ndim:
            raise ValueError(
                f"measured has shape {value.shape}, expected {wanted.shape}"
            )
        return bool((np.abs(value - wanted) <= self.tolerance).all())

    def words(self) -> str:
        if self.expected is not None:
            within = "" if self.exact else f" within {self.tolerance:g}"
            return f"{_number(self.expected)}{within}"
        bounds = []
        if self.at_least is not None:
            bounds.append(f"at least {self.at_least:.6g}")
        if self.at_most is not None:
            bounds.append(f"at most {self.at_most:.6g}")
        return " and ".join(bounds)


def _is_float(value) -> bool:
    try:
        return np.issubdtype(np.asarray(value).dtype, np.inexact)
    except (TypeError, ValueError):
        return False


def _finite(value) -> np.ndarray:
    value = np.asarray(value, dtype=float)
    if not value.size or not np.isfinite(value).all():
        raise ValueError("measured, expected and control must be finite")
    return value


def shown(value) -> str:
    """A measured value as printed: no digits of a rounding residual.

    A float below 1e-8 is printed as "below 1e-08", exact zero included: on
    another machine it may be a residual.

    Examples
    --------
    >>> shown(0.25), shown(3e-17), shown(0), shown([1.0, 2.0])
    ('0.25', 'below 1e-08', '0', '[1, 2]')
    """
    value = np.asarray(value)
    if value.ndim:
        return _several(value, shown)
    if _is_float(value) and abs(value) < SMALL:
        return f"below {SMALL:g}"
    return _number(value.item())


def _number(value) -> str:
    """A value that the claim names, as printed."""
    value = np.asarray(value)
    if value.ndim:
        return _several(value, _number)
    value = value.item()
    return f"{value:.6g}" if isinstance(value, float) else str(value)


def _several(values: np.ndarray, show) -> str:
    if values.size > 4:
        return f"{values.size} values"
    return "[" + ", ".join(show(v) for v in values.ravel()) + "]"


def _plain(value):
    """The same value in types that JSON has."""
    if value is None:
        return None
    return np.asarray(value).tolist()
