"""Tasks that the tests of sweeps hand to workers. Not a test file.

Each call leaves a line in the file named by ``LOG``, so that the tests count
how often a configuration was really computed.
"""

import os
import signal
import sys
import time
from pathlib import Path

import numpy as np

from helpers.core.randomness import as_generator


def _log(*words) -> None:
    log = os.environ.get("SWEEP_TEST_LOG")
    if log:
        with open(log, "a") as file:
            file.write(" ".join(map(str, words)) + "\n")


def square(x, wait=0.0):
    _log(x, os.getpid())
    time.sleep(wait)
    return {"y": x * x}


def draw(n, seed):
    return {"mean": as_generator(seed).random(n).mean()}


def bulky(x):
    return {"text": "x" * 4000}


def poison(x, deadly=(), raising=(), quits=()):
    _log(x, os.getpid())
    if x in deadly:
        os.kill(os.getpid(), signal.SIGKILL)
    if x in raising:
        raise ZeroDivisionError(f"{x} is poison")
    if x in quits:
        sys.exit(3)
    return {"y": x}


def dies_once(x, flag, victim):
    """Kills its worker the first time that ``victim`` is computed."""
    _log(x, os.getpid())
    if x == victim and not Path(flag).exists():
        Path(flag).touch()
        os.kill(os.getpid(), signal.SIGKILL)
    return {"y": x}


def odd(kind):
    return {
        "numbers": {"a": np.float32(0.5), "b": np.int64(3), "c": np.True_},
        "arrays": {"v": np.arange(3), "m": np.eye(2)},
        "infinite": {"nan": np.nan, "up": np.inf, "v": np.array([-np.inf])},
        "complex": {"z": 1j},
        "large": {"n": 2**70},
        "scalar": 1.0,
        "repeated": {"kind": "again"},
        "object": {"o": object()},
    }[kind]


def threads(x):
    from threadpoolctl import threadpool_info

    np.eye(2) @ np.eye(2)
    pools = [pool["num_threads"] for pool in threadpool_info()]
    return {"omp": os.environ.get("OMP_NUM_THREADS"), "pools": pools}
