"""Activation patterns of learned ReLU neurons, and the matches in them."""

from __future__ import annotations

from itertools import combinations, product

import numpy as np

from helpers.core.tolerances import MATCHED_RELATIVE, ROUNDING

LARGEST_PATTERNS = 18
"""Largest number of neurons times examples whose patterns are enumerated."""
CHUNK = 8192


def row_patterns(offset, inputs) -> np.ndarray:
    r"""Activity patterns that one neuron can have on the examples.

    The pre-activations are ``offset + inputs.T @ w`` with any ``w``: the
    hyperplanes where one of them is zero cut the space of ``w`` into cells.

    Parameters
    ----------
    offset : array_like (m,)
    inputs : array_like (q, m)
        Of the learnable entries.

    Returns
    -------
    numpy.ndarray of bool (P, m)
        Distinct patterns, all that occur in an open cell. In degenerate
        position (inputs that repeat, or no offset) all ``2^m`` patterns are
        returned, which is more than can occur.

    Raises
    ------
    ValueError
        If shapes do not fit, there is no example or no input, or an entry is
        not finite.

    Notes
    -----
    With :math:`q<m` hyperplanes in general position each cell has a vertex,
    where :math:`q` of them meet; all :math:`2^q` sign patterns of those occur
    around it. There are :math:`\sum_{i\le q}\binom mi` cells. Source: ours.

    Examples
    --------
    One weight, two examples: three intervals.

    >>> len(row_patterns([1.0, -2.0], [[1.0, 1.0]]))
    3
    """
    offset = np.asarray(offset, dtype=float)
    inputs = np.asarray(inputs, dtype=float)
    if (
        offset.ndim != 1
        or inputs.ndim != 2
        or inputs.shape[1] != offset.size
        or not inputs.size
    ):
        raise ValueError(
            "offset must be (m,) and inputs (q, m) with m and q at least 1, "
            f"got {offset.shape} and {inputs.shape}"
        )
    if not (np.isfinite(offset).all() and np.isfinite(inputs).all()):
        raise ValueError("offset and inputs must be finite numbers")
    q, m = inputs.shape
    everything = np.array(list(product([False, True], repeat=m)))
    if q >= m:
        return everything
    subsets = np.array(list(combinations(range(m), q)))
    A = np.swapaxes(inputs[:, subsets], 0, 1).swapaxes(1, 2)
    scale = np.abs(inputs).max() + np.abs(offset).max()
    if (np.abs(np.linalg.det(A)) <= ROUNDING * scale**q).any():
        return everything
    w = np.linalg.solve(A, -offset[subsets][..., None])[..., 0]
    z = offset + w @ inputs
    others = np.ones((len(subsets), m), dtype=bool)
    np.put_along_axis(others, subsets, False, axis=1)
    if (np.abs(z[others]) <= ROUNDING * scale).any():
        return everything
    around = np.array(list(product([False, True], repeat=q)))
    patterns = np.repeat((z > 0)[:, None], len(around), axis=1)
    where = np.broadcast_to(
        subsets[:, None], (len(subsets), len(around), q)
    ).copy()
    values = np.broadcast_to(around, where.shape)
    np.put_along_axis(patterns, where, values, axis=2)
    return np.unique(patterns.reshape(-1, m), axis=0)


def enumerate_matches(t, D_S, offset, rows, inputs, slope: float = 0.0) -> int:
    r"""Number of isolated matches of one problem with :math:`p=md`.

    Parameters
    ----------
    t : array_like (d, m)
        Targets of the learned neurons.
    D_S : array_like (d, k)
    offset : array_like (k, m)
    rows : array_like of int (p,)
        Learned neuron, from 0 to ``k - 1``, of each learnable entry.
    inputs : array_like (p, m)
        Its input on each example.
    slope : float
        Of the activation where it is negative: 0 for ReLU.

    Returns
    -------
    int

    Raises
    ------
    ValueError
        If :math:`p\ne md`.

    Notes
    -----
    A pattern is tried if each row can have it. For ReLU, each example must
    have at least ``d`` active neurons, too, and each row with :math:`q_j` entries is active on
    at least :math:`\min(q_j,m)` examples: the system is singular otherwise,
    and almost surely has no solution. Row by row the patterns come from
    :func:`row_patterns`. Source: ours (2.13 of the reconstruction).

    Examples
    --------
    >>> enumerate_matches([[3.0]], [[1.0]], [[0.0]], [0], [[1.0]])
    1
    """
    t, D_S, offset, inputs = (
        np.asarray(a, dtype=float) for a in (t, D_S, offset, inputs)
    )
    rows = np.asarray(rows)
    d, m = t.shape
    if rows.size != m * d:
        raise ValueError(f"rows must name p = m d = {m * d} entries")
    k = D_S.shape[1]
    sizes = np.bincount(rows, minlength=k)
    if (sizes > m).any():
        return 0  # more entries than examples in a row: always singular
    choices = []
    for j in range(k):
        found = row_patterns(offset[j], inputs[rows == j])
        choices.append(found[found.sum(axis=1) >= (slope == 0) * sizes[j]])
    total = np.prod([len(c) for c in choices])
    count = 0
    for begin in range(0, int(total), CHUNK):
        index = np.unravel_index(
            np.arange(begin, min(begin + CHUNK, total)),
            [len(c) for c in choices],
        )
        S = np.stack([c[i] for c, i in zip(choices, index, strict=True)], 1)
        if slope == 0:
            S = S[(S.sum(axis=1) >= d).all(axis=1)]
        if len(S):
            count += _matches(S, t, D_S, offset, rows, inputs, slope)
    return count


def _matches(S, t, D_S, offset, rows, inputs, slope) -> int:
    """Solutions with their own pattern among the patterns ``S (P, k, m)``."""
    p = rows.size
    gain = np.where(S, 1.0, slope)
    driven = gain[:, rows] * inputs
    M = np.einsum("ap,spc->sacp", D_S[:, rows], driven).reshape(len(S), p, p)
    r = (t - D_S @ (gain * offset)).reshape(len(S), p)
    regular = np.linalg.matrix_rank(M) == p
    S, M, r = S[regular], M[regular], r[regular]
    if not len(S):
        return 0
    w = np.linalg.solve(M, r[..., None])[..., 0]
    z = np.broadcast_to(offset, S.shape).copy()
    for e in range(p):
        z[:, rows[e]] += w[:, e, None] * inputs[e]
    gap = D_S @ np.where(z > 0, z, slope * z) - t
    near = np.linalg.norm(gap, axis=(1, 2)) <= MATCHED_RELATIVE * (
        np.linalg.norm(t) + np.linalg.norm(offset)
    )
    return int((near & ((z > 0) == S).all(axis=(1, 2))).sum())
