"""Arguments: what is allowed, and the error that says so.

Each function returns the argument in the form that the caller computes with,
or raises a ``ValueError`` that names the argument, what was given and what
is allowed.
"""

from __future__ import annotations

import math
from numbers import Real

import numpy as np

__all__ = [
    "check_finite",
    "check_sizes",
    "finite_array",
    "finite_matrix",
    "finite_vector",
    "is_whole",
    "positive_number",
    "whole_number",
]


def is_whole(value) -> bool:
    """Whether a value is a finite whole number; truth values are not.

    Parameters
    ----------
    value : object

    Notes
    -----
    ``3.0`` is whole: sizes read from tables are floats. Source: ours.

    Examples
    --------
    >>> is_whole(3.0), is_whole(True), is_whole(float("nan"))
    (True, False, False)
    """
    if isinstance(value, bool | np.bool_) or not isinstance(value, Real):
        return False
    return math.isfinite(value) and value == int(value)


def whole_number(
    value, name: str, least: int = 1, most: int | None = None
) -> int:
    """A whole number in a range, as ``int``.

    Parameters
    ----------
    value : object
        What was given.
    name : str
        Name of the argument, for the message.
    least, most : int
        Ends of the range, both allowed; no upper end if ``most`` is None.

    Raises
    ------
    ValueError
        If ``value`` is no whole number (see :func:`is_whole`) or outside.

    Notes
    -----
    Source: ours.

    Examples
    --------
    >>> whole_number(3.0, "n")
    3
    >>> whole_number(5, "n", 1, 4)
    Traceback (most recent call last):
    ValueError: n must be a whole number from 1 to 4, got 5
    """
    top = math.inf if most is None else most
    if not is_whole(value) or not least <= value <= top:
        allowed = f">= {least}" if most is None else f"from {least} to {most}"
        raise ValueError(
            f"{name} must be a whole number {allowed}, got {value!r}"
        )
    return int(value)


def check_sizes(**sizes) -> None:
    """Refuse sizes that are not whole numbers of at least one.

    Parameters
    ----------
    **sizes : int
        By name.

    Raises
    ------
    ValueError
        Names the size.

    Notes
    -----
    Source: ours.

    Examples
    --------
    >>> check_sizes(n=3, m=1)
    """
    for name, value in sizes.items():
        whole_number(value, name)


def positive_number(value, name: str) -> float:
    """A finite number above zero, as ``float``.

    Parameters
    ----------
    value : object
        What was given.
    name : str
        Name of the argument, for the message.

    Raises
    ------
    ValueError
        If ``value`` is not a number, not finite or not positive.

    Notes
    -----
    Source: ours.

    Examples
    --------
    >>> positive_number(0.5, "rate")
    0.5
    """
    try:
        number = float(value)
    except (TypeError, ValueError):
        number = math.nan
    if not 0 < number < math.inf:  # NaN fails too
        raise ValueError(f"{name} must be finite and > 0, got {value!r}")
    return number


def finite_array(value, name: str, ndim: int | None = None) -> np.ndarray:
    """A float64 array without NaN or infinity.

    Parameters
    ----------
    value : array_like
        What was given.
    name : str
        Name of the argument, for the message.
    ndim : int, optional
        Number of axes that it must have.

    Raises
    ------
    ValueError
        If the number of axes is another, or an entry is not finite.

    Notes
    -----
    Source: ours.

    Examples
    --------
    >>> finite_array([[1, 2]], "X", 2).dtype
    dtype('float64')
    """
    array = np.asarray(value, dtype=np.float64)
    if ndim is not None and array.ndim != ndim:
        raise ValueError(
            f"{name} must have {ndim} axes, got shape {array.shape}"
        )
    if not np.isfinite(array).all():
        raise ValueError(f"{name} must be finite, it holds NaN or infinity")
    return array


def finite_matrix(
    value, name: str, rows: int | None = None, columns: int = 0
) -> np.ndarray:
    """A finite float64 matrix with one sample a row, and at least one row.

    Parameters
    ----------
    value : array_like, shape (n, m)
        What was given.
    name : str
        Name of the argument, for the message.
    rows : int, optional
        Number of rows that it must have.
    columns : int
        Fewest columns.

    Raises
    ------
    ValueError
        If the shape does not fit or an entry is not finite.

    Notes
    -----
    Source: ours.

    Examples
    --------
    >>> finite_matrix([[1, 2], [3, 4]], "X", rows=2).shape
    (2, 2)
    """
    array = np.asarray(value, dtype=np.float64)
    if array.ndim != 2 or array.shape[0] == 0:
        raise ValueError(
            f"{name} must be a matrix with one sample a row and at least one "
            f"row, got shape {array.shape}"
        )
    if rows is not None and array.shape[0] != rows:
        raise ValueError(
            f"{name} must have {rows} rows, got shape {array.shape}"
        )
    if array.shape[1] < columns:
        raise ValueError(
            f"{name} must have at least {columns} column"
            f"{'s' if columns > 1 else ''}, got shape {array.shape}"
        )
    return finite_array(array, name)


def finite_vector(value, name: str, size: int | None = None) -> np.ndarray:
    """A finite float64 vector with at least one entry.

    Parameters
    ----------
    value : array_like, shape (n,)
        What was given.
    name : str
        Name of the argument, for the message.
    size : int, optional
        Number of entries that it must have.

    Raises
    ------
    ValueError
        If the shape does not fit or an entry is not finite.

    Notes
    -----
    Source: ours.

    Examples
    --------
    >>> finite_vector([1, 2], "f", 2)
    array([1., 2.])
    """
    array = np.asarray(value, dtype=np.float64)
    if size is not None and array.shape != (size,):
        raise ValueError(
            f"{name} must have shape ({size},), got {array.shape}"
        )
    if array.ndim != 1 or array.size == 0:
        raise ValueError(
            f"{name} must be a vector with at least one entry, got shape "
            f"{array.shape}"
        )
    return finite_array(array, name)


def check_finite(**arrays) -> list[np.ndarray]:
    """Float64 arrays without NaN or infinity, in the order given.

    Parameters
    ----------
    **arrays : array_like
        By name.

    Raises
    ------
    ValueError
        Names the array.

    Notes
    -----
    Source: ours.

    Examples
    --------
    >>> X, Y = check_finite(X=[[1, 2]], Y=3)
    >>> X.dtype, Y.shape
    (dtype('float64'), ())
    """
    return [finite_array(value, name) for name, value in arrays.items()]
