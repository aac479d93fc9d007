r"""Waves and cosines: what a fold costs, and which frequencies it holds.

The energy of a function on [0, 1] is :math:`\int f'^2`, its frequencies are
the cosines :math:`\varphi_0=1`, :math:`\varphi_k=\sqrt2\cos\pi kx`. They are
what the Laplacian of a path graph tends to when its samples become dense, and
its eigenvectors are these cosines at the midpoints :math:`(i+\frac12)/n`.

Levels are counted as waves are folded: level 0 is the line ``x``, level
``j`` the wave of ``j`` peaks, :math:`W_{j-1}`, with :math:`2^j` pieces.
"""

from __future__ import annotations

import numpy as np

from helpers.core.checks import finite_vector, positive_number, whole_number
from helpers.linear_regions.cells import wave_cells
from helpers.linear_regions.triangles import check_peaks

__all__ = [
    "grid_octave_shares",
    "longest_cells",
    "octave_bounds",
    "octave_shares",
    "pieces_within",
    "wave_correlations",
    "wave_cosines",
    "wave_energies",
]


def _vector(peaks) -> np.ndarray:
    a = check_peaks(peaks)
    if a.ndim != 1:
        raise ValueError(f"peaks must be one vector, got shape {a.shape}")
    return a


def wave_energies(peaks) -> np.ndarray:
    r"""Energies :math:`\int W'^2` of the line and of all waves.

    :math:`\prod_{l<j}1/(a_l(1-a_l))` at level ``j``, at least
    :math:`4^j`. Waves of different levels have derivatives that are
    orthogonal, so that the energy of a sum is the sum of the energies.

    Parameters
    ----------
    peaks : array_like (d,)
        Peaks in (0, 1).

    Returns
    -------
    numpy.ndarray (d + 1,)

    Raises
    ------
    ValueError
        If a peak is outside (0, 1) or there is none.

    Notes
    -----
    Source: ours.

    Examples
    --------
    >>> wave_energies([0.5, 0.5])
    array([ 1.,  4., 16.])
    """
    a = _vector(peaks)
    return np.cumprod(np.r_[1.0, 1 / (a * (1 - a))])


def wave_correlations(peaks) -> np.ndarray:
    r"""Correlations of the line and the waves over a uniform ``x``.

    Between levels ``i < j`` it is :math:`\prod_{i\le l<j}(2a_l-1)`: the
    waves, read from the last one to the first, are a Markov chain.

    Parameters
    ----------
    peaks : array_like (d,)

    Returns
    -------
    numpy.ndarray (d + 1, d + 1)
        Symmetric, with ones on the diagonal; the identity for halves.

    Raises
    ------
    ValueError
        If a peak is outside (0, 1) or there is none.

    Notes
    -----
    Source: ours.

    Examples
    --------
    >>> wave_correlations([0.25, 0.75])
    array([[ 1.  , -0.5 , -0.25],
           [-0.5 ,  1.  ,  0.5 ],
           [-0.25,  0.5 ,  1.  ]])
    """
    steps = 2 * _vector(peaks) - 1
    result = np.eye(steps.size + 1)
    for i in range(steps.size):
        result[i, i + 1 :] = result[i + 1 :, i] = np.cumprod(steps[i:])
    return result


def wave_cosines(peaks, K: int) -> np.ndarray:
    r"""Coefficients :math:`\int_0^1W\varphi_k` of the line and the waves.

    On a cell with midpoint :math:`c`, length :math:`\ell` and slope
    :math:`\pm1/\ell` integration by parts leaves
    :math:`\mp\sqrt2\,\sin(\pi kc)\,\mathrm{sinc}(k\ell/2)/(\pi k)`, and the
    ends of the cells cancel: nothing is approximated.

    Parameters
    ----------
    peaks : array_like (d,)
        At most 24.
    K : int >= 1
        Frequencies ``0 .. K - 1``.

    Returns
    -------
    numpy.ndarray (d + 1, K)
        Row ``j`` is level ``j``. The first column is one half.

    Raises
    ------
    ValueError
        If a peak is outside (0, 1), there are none or too many, or ``K`` is
        not a whole number >= 1.

    Notes
    -----
    Cost :math:`O(2^dK)`. Source: ours.

    Examples
    --------
    The line: minus the square root of eight over pi squared, then zero.

    >>> wave_cosines([0.5], 3).round(4) + 0.0
    array([[ 0.5   , -0.2866,  0.    ],
           [ 0.5   ,  0.    , -0.2866]])
    """
    a = _vector(peaks)
    k = np.arange(1, whole_number(K, "K"))[:, None]
    finest = wave_cells(a).knots
    result = np.full((a.size + 1, k.size + 1), 0.5)
    for level in range(a.size + 1):
        knots = finest[:: 2 ** (a.size - level)]
        middle, length = (knots[1:] + knots[:-1]) / 2, np.diff(knots)
        up = 1.0 - 2 * (np.arange(length.size) % 2)
        parts = np.sin(np.pi * k * middle) * np.sinc(k * length / 2) * up
        result[level, 1:] = -np.sqrt(2) * parts.sum(axis=1) / (np.pi * k[:, 0])
    return result


def octave_shares(peaks, K: int) -> np.ndarray:
    r"""What each fold adds to the captured number of ``K`` frequencies.

    The span of 1, ``x`` and all waves has an orthogonal basis for any peaks:
    the constant, what each level is beyond its regression on the next one,
    :math:`W_{j-1}-\frac12-(2a_j-1)(W_j-\frac12)`, and the last wave. The
    share of each that lies in the ``K`` lowest frequencies is returned, and
    the captured number of the span is one plus their sum.

    Parameters
    ----------
    peaks : array_like (d,)
        At most 24.
    K : int >= 1

    Returns
    -------
    numpy.ndarray (d + 1,)
        In [0, 1]; entry ``j`` belongs to level ``j``.

    Raises
    ------
    ValueError
        As :func:`wave_cosines`.

    Notes
    -----
    Source: ours; the captured number is Definition 3.4 of the
    spectral-alignment paper, for [0, 1] in place of a graph.

    Examples
    --------
    Equal folds hold an octave each: frequencies 1, 2 and 4.

    >>> octave_shares([0.5] * 3, 5).round(3)
    array([0.998, 0.986, 0.986, 0.   ])
    """
    a = _vector(peaks)
    c = wave_cosines(a, K)[:, 1:]
    own = c.copy()
    own[:-1] -= (2 * a - 1)[:, None] * c[1:]
    size = np.r_[a * (1 - a) / 3, 1 / 12]
    return np.minimum((own**2).sum(axis=1) / size, 1.0)


def longest_cells(peaks) -> np.ndarray:
    r"""Length of the longest piece of each level.

    Parameters
    ----------
    peaks : array_like (d,)

    Returns
    -------
    numpy.ndarray (d + 1,)
        :math:`\prod_{l<j}\max(a_l,1-a_l)\ge2^{-j}`.

    Raises
    ------
    ValueError
        If a peak is outside (0, 1) or there is none.

    Notes
    -----
    Source: ours.

    Examples
    --------
    >>> longest_cells([0.5, 0.75])
    array([1.   , 0.5  , 0.375])
    """
    a = _vector(peaks)
    return np.cumprod(np.r_[1.0, np.maximum(a, 1 - a)])


def octave_bounds(peaks, K: int) -> np.ndarray:
    r"""Upper bounds :math:`\min(1,((K-1)\ell_j)^2)` of the octave shares.

    What a level adds has mean zero on every piece of that level, so that a
    slow cosine sees it only through its own variation on pieces of length
    at most :math:`\ell_j`.

    Parameters
    ----------
    peaks : array_like (d,)
        Any number of them.
    K : int >= 1

    Returns
    -------
    numpy.ndarray (d + 1,)

    Raises
    ------
    ValueError
        If a peak is outside (0, 1), there is none, or ``K`` is not a whole
        number >= 1.

    Notes
    -----
    Source: ours.

    Examples
    --------
    >>> octave_bounds([0.5] * 4, 5)
    array([1.    , 1.    , 1.    , 0.25  , 0.0625])
    """
    reach = (whole_number(K, "K") - 1) * longest_cells(peaks)
    return np.minimum(1.0, reach**2)


def grid_octave_shares(n: int, K: int, d: int) -> np.ndarray:
    r"""Shares of equal waves on a path graph of ``n`` samples, exactly.

    Samples at :math:`(i+\frac12)/n`, all peaks one half. Level ``j`` lives on
    the odd multiples of :math:`2^j`, and the multiple ``m`` has the share

    .. math::

        \frac{6}{N^2(N^2-1)}\,\frac{\cos^2\phi}{\sin^4\phi},\qquad
        N=n/2^j,\quad\phi=\frac{\pi m}{2N}.

    Parameters
    ----------
    n : int >= 1
        A multiple of :math:`2^d`.
    K : int in 1..n
    d : int >= 0
        Number of folds.

    Returns
    -------
    numpy.ndarray (d + 1,)
        Zero for a level that has one sample a piece: it is constant there.

    Raises
    ------
    ValueError
        If a number is not whole or outside its range.

    Notes
    -----
    Source: ours.

    Examples
    --------
    >>> grid_octave_shares(8, 4, 2).round(3)
    array([0.999, 0.995, 0.   ])
    >>> grid_octave_shares(8, 8, 3)
    array([1., 1., 1., 0.])
    """
    d, n = whole_number(d, "d", 0), whole_number(n, "n")
    if n % 2**d:
        raise ValueError(
            f"n must be a multiple of 2^d = {2**d} for d = {d}, got {n}"
        )
    K = whole_number(K, "K", 1, n)
    result = np.zeros(d + 1)
    for level in range(d + 1):
        N = n // 2**level
        phi = np.pi * np.arange(1, -(-K // 2**level), 2) / (2 * N)
        if N > 1:
            weight = np.sum(np.cos(phi) ** 2 / np.sin(phi) ** 4)
            result[level] = 6 * weight / (N**2 * (N**2 - 1))
    return result


def pieces_within(y, tolerance: float) -> int:
    r"""Fewest straight pieces that follow equispaced samples.

    Consecutive samples form a piece if some line is within ``tolerance`` of
    all of them. Pieces need not join. A run that is too long stays too long
    when it grows, so taking each as long as possible is best.

    Parameters
    ----------
    y : array_like (n,)
        Values on equispaced samples.
    tolerance : float > 0

    Returns
    -------
    int
        At least 1.

    Raises
    ------
    ValueError
        If ``y`` is no finite vector or ``tolerance`` no positive number.

    Notes
    -----
    A line of slope ``s`` exists if and only if
    :math:`|y_j-y_i-s(j-i)|\le2h` for all pairs, which is one interval of
    slopes. Cost :math:`O(n)` times the length of a piece. Source: ours.

    Examples
    --------
    >>> pieces_within([0.0, 1.0, 2.0, 1.0, 0.0], 0.1)
    2
    >>> pieces_within([0.0, 1.0, 2.0, 1.0, 0.0], 1.0)
    1
    """
    y = finite_vector(y, "y")
    h = positive_number(tolerance, "tolerance")
    pieces, start, low, high = 1, 0, -np.inf, np.inf
    for j in range(1, y.size):
        apart = np.arange(j - start, 0, -1)
        rise = y[j] - y[start:j]
        low = max(low, np.max((rise - 2 * h) / apart))
        high = min(high, np.min((rise + 2 * h) / apart))
        if low > high:
            pieces, start, low, high = pieces + 1, j, -np.inf, np.inf
    return pieces
