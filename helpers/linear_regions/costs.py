"""What a network costs: parameters, multiplications, memory."""

from __future__ import annotations

from itertools import pairwise
from typing import NamedTuple

import numpy as np


class NetworkCost(NamedTuple):
    """Parameters with biases, multiplications an input, bytes."""

    parameters: int
    multiplications: int
    bytes: int


def network_cost(widths, block: int | None = None, itemsize: int = 8):
    """Cost of a network with the given widths.

    Parameters
    ----------
    widths : sequence of int
        Input, hidden layers, output: at least two numbers, all positive.
    block : int, optional
        If given, matrices between hidden layers are block diagonal with
        square blocks of this size, which must divide the hidden widths;
        these must then be equal.
    itemsize : int
        Bytes of a number: 8 for float64, 4 for float32.

    Returns
    -------
    NetworkCost

    Raises
    ------
    ValueError
        If a width is not a positive integer, there are fewer than two, or
        the block does not fit.

    Notes
    -----
    A multiplication is counted with its addition (a MAC). Zeros inside a
    block count, since the matrix is stored dense. Source: ours.

    Examples
    --------
    >>> network_cost([1, 4, 4, 4, 4, 4, 1])
    NetworkCost(parameters=93, multiplications=72, bytes=744)
    """
    w = [int(n) for n in widths]
    if len(w) < 2 or min(w) < 1 or w != list(widths):
        raise ValueError(
            f"widths must be two or more positive integers, got {widths}"
        )
    hidden = w[1:-1]
    if block is not None and (
        not hidden or block < 1 or len(set(hidden)) > 1 or hidden[0] % block
    ):
        raise ValueError(
            "block must be a positive number that divides the hidden widths, "
            f"which must be equal; got block {block} and widths {w}"
        )
    products = [n * m for n, m in pairwise(w)]
    if block is not None:
        products[1:-1] = [n * block for n in hidden[1:]]
    multiplications = int(np.sum(products))
    parameters = multiplications + sum(w[1:])
    return NetworkCost(parameters, multiplications, itemsize * parameters)
