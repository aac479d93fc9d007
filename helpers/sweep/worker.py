"""What happens inside a worker: call the task, make its result storable."""

from __future__ import annotations

import json
import os
import signal
import threading
import time
import traceback
from collections.abc import Mapping
from functools import lru_cache
from typing import Any

import numpy as np

from helpers.sweep.digest import code_digest, load

ONE_THREAD = dict.fromkeys(
    (
        "OMP_NUM_THREADS",
        "OPENBLAS_NUM_THREADS",
        "MKL_NUM_THREADS",
        "BLIS_NUM_THREADS",
        "VECLIB_MAXIMUM_THREADS",
        "NUMBA_NUM_THREADS",
    ),
    "1",
)
LARGEST = 2**63
WATCH_SECONDS = 0.5

Outcome = tuple[str | None, str, str, float]
"""Result as JSON or ``None``; error; traceback; seconds."""


class OtherCode(RuntimeError):
    """The worker's files differ from the driver's."""


def run_group(
    reference: str, code: str, group: list[dict], budget: float
) -> list[Outcome]:
    """Compute some configurations one after the other.

    Parameters
    ----------
    reference : str
        ``module:name`` of the task.
    code : str
        Digest of the driver's code, see
        :func:`helpers.sweep.digest.code_digest`.
    group : list of dict
        Configurations.
    budget : float
        Seconds after which no further configuration is begun; those left
        over go back to the driver.

    Returns
    -------
    list of tuple
        For the first one and those after it within the budget: result as
        JSON or ``None``, error, traceback, seconds.

    Raises
    ------
    OtherCode
        If this machine would run other code than the driver asked for.

    Notes
    -----
    Source: ours.

    Examples
    --------
    >>> reference = "helpers.sweep.extras:installed_versions"
    >>> code = code_digest(reference)
    >>> [(result, error, _, _)] = run_group(reference, code, [{}], 1.0)
    >>> "numpy" in json.loads(result), error
    (True, '')
    """
    function = _prepared(reference, code)
    start, outcomes = time.perf_counter(), []
    for configuration in group:
        if outcomes and time.perf_counter() - start > budget:
            break
        outcomes.append(_outcome(function, configuration))
    return outcomes


def _outcome(function, configuration: dict) -> Outcome:
    start = time.perf_counter()
    text, error, trace = None, "", ""
    try:
        text = storable(function(**configuration), list(configuration))
    except (Exception, SystemExit) as problem:
        error = f"{type(problem).__name__}: {problem}"
        trace = traceback.format_exc()
    return text, error, trace, time.perf_counter() - start


@lru_cache(maxsize=8)
def _prepared(reference: str, code: str):
    """The task, once it is known to be the driver's, on one thread."""
    os.environ.update(ONE_THREAD)
    mine = code_digest(reference)
    if mine != code:
        raise OtherCode(
            f"{reference} has code {mine[:12]} on a worker and {code[:12]} "
            "in the driver: a file was changed while the sweep ran, or the "
            "workers' machine has another version. Nothing computed with "
            "other code is stored; run again"
        )
    from threadpoolctl import threadpool_limits

    threadpool_limits(1)
    return load(reference)


def storable(result: Any, taken: list[str]) -> str:
    """JSON of a task's result.

    Decided on purpose: NumPy scalars and arrays become numbers and nested
    lists; NaN and infinity stay what they are (a diverged run is a result)
    and are written as JavaScript writes them; complex numbers, whole
    numbers beyond 64 bits and other objects are refused.

    Parameters
    ----------
    result : mapping
        From names to numbers, texts, truth values, ``None``, arrays, or
        lists and mappings of them.
    taken : list of str
        Names that the result may not use: the configuration's.

    Returns
    -------
    str

    Raises
    ------
    ValueError
        If the result is none of these.

    Notes
    -----
    Source: ours.

    Examples
    --------
    >>> storable({"loss": np.float32(0.5), "w": np.array([1, np.inf])}, [])
    '{"loss": 0.5, "w": [1.0, Infinity]}'
    """
    if not isinstance(result, Mapping):
        raise ValueError(
            "a task must return a mapping from names to values, got "
            f"{type(result).__name__}"
        )
    both = sorted(set(map(str, result)) & set(taken))
    if both:
        raise ValueError(
            f"the result repeats names of the configuration: {both}"
        )
    return json.dumps(_plain(result, "result"))


def _plain(value: Any, where: str) -> Any:
    if isinstance(value, np.generic | np.ndarray):
        value = value.tolist()
    if value is None or isinstance(value, bool | str | float):
        return value
    if isinstance(value, int) and -LARGEST <= value < LARGEST:
        return value
    if isinstance(value, list | tuple):
        return [_plain(v, f"{where}[{i}]") for i, v in enumerate(value)]
    if isinstance(value, Mapping) and all(isinstance(k, str) for k in value):
        return {k: _plain(v, f"{where}[{k!r}]") for k, v in value.items()}
    raise ValueError(
        f"{where} must be a number of 64 bits, text, truth value, None, "
        f"array, or a list or a mapping with text keys of them, got "
        f"{type(value).__name__}: {value!r}"
    )


def follow_parent(parent: int) -> None:
    """End this process soon after the driver ended, however it did.

    Ctrl-C reaches every process of a terminal; the driver alone answers it.

    Parameters
    ----------
    parent : int
        Process number of the driver.

    Notes
    -----
    Source: ours.
    """

    def watch() -> None:
        while os.getppid() == parent:
            time.sleep(WATCH_SECONDS)
        os._exit(1)

    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=watch, daemon=True).start()
