"""Configurations: what one task of a sweep is given, and its name.

A configuration is a mapping from argument names to JSON values. It is the
identity of a result, so that it must read the same tomorrow and on another
machine: NumPy scalars and arrays become numbers and lists, and what JSON
cannot hold (NaN and infinity included) is refused.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping
from itertools import product
from typing import Any

import numpy as np

from helpers.core.checks import whole_number

Configuration = dict[str, Any]
SEED_BITS = 63  # the largest whole number of Parquet and SQLite


def grid(**axes: Any) -> list[Configuration]:
    """All combinations of the given values.

    Parameters
    ----------
    **axes
        For each argument of the task, a list, tuple, range or
        one-dimensional array of its values, or one fixed value (a number, a
        string, a mapping, ``None``). To fix a list, put it in a list.

    Returns
    -------
    list of dict
        The product of the axes, the last one running fastest; its length is
        the product of theirs.

    Raises
    ------
    ValueError
        If an axis is empty, holds a value twice, or holds what is no JSON
        value.

    Notes
    -----
    Source: ours.

    Examples
    --------
    >>> grid(n=[1, 2], k=12, seed=range(2))[:2]
    [{'n': 1, 'k': 12, 'seed': 0}, {'n': 1, 'k': 12, 'seed': 1}]
    """
    values = {name: _axis(name, axis) for name, axis in axes.items()}
    combinations = product(*values.values())
    return configurations(
        [dict(zip(values, c, strict=True)) for c in combinations]
    )


def _axis(name: str, axis: Any) -> list:
    if isinstance(axis, np.ndarray) and axis.ndim == 0:
        axis = axis.item()
    if not isinstance(axis, list | tuple | range | np.ndarray):
        return [axis]
    if len(axis) == 0:
        raise ValueError(f"axis {name!r} is empty, so that the grid would be")
    return list(axis)


def spawn_seeds(root: int, count: int) -> list[int]:
    """Seeds of independent streams, for use as an axis of a grid.

    Parameters
    ----------
    root : int
        Seed of them all, 0 or larger.
    count : int
        How many, 1 or more.

    Returns
    -------
    list of int
        Whole numbers in ``[0, 2**63)``, drawn from the children of
        ``SeedSequence(root)``. The first ``m`` do not depend on ``count``:
        a sweep may be widened later without losing what was computed.

    Raises
    ------
    ValueError
        If an argument is no whole number or too small.

    Notes
    -----
    Source: ours, with ``numpy.random.SeedSequence``.

    Examples
    --------
    >>> spawn_seeds(0, 5)[:2] == spawn_seeds(0, 2)
    True
    """
    root, count = whole_number(root, "root", 0), whole_number(count, "count")
    children = np.random.SeedSequence(root).spawn(count)
    words = [child.generate_state(1, np.uint64)[0] for child in children]
    return [int(word) >> (64 - SEED_BITS) for word in words]


def configurations(items: Any) -> list[Configuration]:
    """Bring configurations into their canonical form.

    Parameters
    ----------
    items : mapping or iterable of mappings
        A mapping is a grid, see :func:`grid`; anything else is taken for a
        list of configurations.

    Returns
    -------
    list of dict
        With JSON values only: what a task is called with, whichever way it
        was typed. ``1`` and ``1.0`` stay two different values.

    Raises
    ------
    ValueError
        If there is none, if one is given twice, if a name is no Python
        name, or if a value is no JSON value.

    Notes
    -----
    Source: ours.

    Examples
    --------
    >>> configurations([{"x": np.float64(0.5), "shape": (2, 3)}])
    [{'x': 0.5, 'shape': [2, 3]}]
    """
    if isinstance(items, Mapping):
        return grid(**_named(items))
    if isinstance(items, str) or not isinstance(items, Iterable):
        raise ValueError(
            "configurations must be a grid (a mapping) or a list of "
            f"mappings, got {items!r}"
        )
    found: dict[str, Configuration] = {}
    for number, item in enumerate(items):
        if not isinstance(item, Mapping):
            raise ValueError(
                f"configuration {number} must be a mapping from argument "
                f"names to values, got {item!r}"
            )
        plain = {
            name: _plain(value, f"configuration {number}: {name}")
            for name, value in _named(item).items()
        }
        key = configuration_key(plain)
        if key in found:
            raise ValueError(
                f"configuration {number} was given before: {plain!r}"
            )
        found[key] = plain
    if not found:
        raise ValueError("there is no configuration: the grid is empty")
    return list(found.values())


def _named(item: Mapping) -> dict[str, Any]:
    for name in item:
        if not isinstance(name, str) or not name.isidentifier():
            raise ValueError(
                "the names of a configuration are those of the task's "
                f"arguments, got {name!r}"
            )
    return dict(item)


def _plain(value: Any, where: str) -> Any:
    """The JSON value that stands for a value."""
    if isinstance(value, np.generic | np.ndarray):
        value = value.tolist()
    if value is None or isinstance(value, bool | int | str):
        return value
    if isinstance(value, float):
        if np.isfinite(value):
            return value
        raise ValueError(f"{where} must be finite, got {value!r}")
    if isinstance(value, list | tuple | range):
        return [_plain(v, f"{where}[{i}]") for i, v in enumerate(value)]
    if isinstance(value, Mapping):
        for key in value:
            if not isinstance(key, str):
                raise ValueError(f"{where} has a key that is no text: {key!r}")
        return {k: _plain(v, f"{where}[{k!r}]") for k, v in value.items()}
    raise ValueError(
        f"{where} must be a JSON value (number, text, truth value, None, "
        f"list or mapping of them), got {type(value).__name__}: {value!r}"
    )


def configuration_key(configuration: Configuration) -> str:
    """Name of a configuration: SHA-256 of its canonical JSON.

    Parameters
    ----------
    configuration : dict
        In canonical form, see :func:`configurations`.

    Returns
    -------
    str
        64 hexadecimal digits; the order of the names does not matter.

    Notes
    -----
    Source: ours.

    Examples
    --------
    >>> a = configuration_key({"n": 1, "k": 2})
    >>> a == configuration_key({"k": 2, "n": 1})
    True
    """
    return hashlib.sha256(canonical_json(configuration).encode()).hexdigest()


def canonical_json(configuration: Configuration) -> str:
    """One text for one configuration.

    Parameters
    ----------
    configuration : dict
        In canonical form.

    Returns
    -------
    str
        JSON with sorted names and no spaces.

    Notes
    -----
    Source: ours.

    Examples
    --------
    >>> canonical_json({"n": 1, "k": 2})
    '{"k":2,"n":1}'
    """
    return json.dumps(
        configuration,
        sort_keys=True,
        separators=(",", ":"),
        allow_nan=False,
        ensure_ascii=False,
    )
