r"""Compiled kernels of the exact neuron search in three dimensions.

Circle after circle, the sums that make up a pattern's pencil are carried from
arc to arc; a pattern is looked into only if it can beat the best neuron so
far. With :math:`g` the value to beat, :math:`gB-A\succ0` says that it cannot:
three pivots instead of an eigenproblem.

A pattern's sums are one vector: the rows of :math:`C=M^{\mathsf T}SG`, then
those of :math:`E=Q_H^{\mathsf T}SG`, then the upper triangle of
:math:`F=G^{\mathsf T}SG`; :math:`A=C^{\mathsf T}C`,
:math:`B=F-E^{\mathsf T}E`.
"""

from __future__ import annotations

import math

import numpy as np

from helpers.core.tolerances import (
    ANGLE_TIE,
    CERTIFIED_RELATIVE,
    CONE_SLACK,
    COVERED_RELATIVE,
    RANK_RELATIVE,
    ROUNDING,
)

try:
    from numba import njit
except ImportError:  # the functions below then run as plain, slow Python
    AVAILABLE = False

    def njit(**options):
        return lambda function: function

else:
    AVAILABLE = True

__all__ = ["circle_events", "examine", "neuron_gain", "sweep_circles"]

_SLACK = 1 + CERTIFIED_RELATIVE
_ROUNDOFF = float(np.finfo(float).eps)
_SWEEPS = 30  # Jacobi needs about five on 3 x 3 matrices


@njit(cache=True, error_model="numpy")
def neuron_gain(eta, G, M, QH):
    r"""Marginal gain of one neuron, from its values on the sample.

    Parameters
    ----------
    eta : ndarray, shape (r,)
    G : ndarray, shape (n, r)
    M : ndarray, shape (n, K)
    QH : ndarray, shape (n, p)

    Returns
    -------
    float
        As :func:`helpers.spectral_alignment.neurons.marginal_gain`, with
        values below 1e-12 of the largest one (of either sign) taken as 0.

    Notes
    -----
    :math:`O(n(r + K + p))`. Nothing is checked here.

    Source: the spectral-alignment paper, Proposition 4.5.

    Examples
    --------
    >>> G = np.eye(2)
    >>> float(neuron_gain(np.ones(2), G, np.eye(2, 1), np.zeros((2, 0))))
    0.5
    """
    n, rank = G.shape
    K, p = M.shape[1], QH.shape[1]
    rest, peak = np.empty(n), 0.0
    for i in range(n):
        rest[i] = 0.0
        for r in range(rank):
            rest[i] += G[i, r] * eta[r]
        peak = max(peak, abs(rest[i]))
    # on a face some values are zero but for rounding, and may be all that
    # is active: noise must not be measured
    whole = 0.0
    for i in range(n):
        if rest[i] <= ROUNDING * peak:
            rest[i] = 0.0
        whole += rest[i] * rest[i]
    inside = np.empty(max(K, p))
    for _ in range(2):
        inside[:] = 0.0
        for i in range(n):
            for k in range(p):
                inside[k] += QH[i, k] * rest[i]
        for i in range(n):
            for k in range(p):
                rest[i] -= QH[i, k] * inside[k]
    mass, captured = 0.0, 0.0
    inside[:] = 0.0
    for i in range(n):
        mass += rest[i] * rest[i]
        for k in range(K):
            inside[k] += M[i, k] * rest[i]
    if mass <= RANK_RELATIVE**2 * whole:
        return 0.0
    for k in range(K):
        captured += inside[k] * inside[k]
    return captured / mass


@njit(cache=True, error_model="numpy")
def _eigenpairs(A):
    """Eigenvalues and vectors of a small symmetric matrix, by Jacobi."""
    d = A.shape[0]
    A, V, size = A.copy(), np.zeros((d, d)), 0.0
    for i in range(d):
        V[i, i] = 1.0
        for j in range(d):
            size = max(size, abs(A[i, j]))
    for _ in range(_SWEEPS):
        off = 0.0
        for i in range(d):
            for j in range(i):
                off = max(off, abs(A[i, j]))
        if off <= _ROUNDOFF * size:
            break
        for i in range(d):
            for j in range(i):
                if A[i, j] == 0.0:
                    continue
                ratio = (A[i, i] - A[j, j]) / (2 * A[i, j])
                root = abs(ratio) + math.sqrt(1 + ratio * ratio)
                t = (1.0 if ratio >= 0 else -1.0) / root
                c = 1 / math.sqrt(1 + t * t)
                s = t * c
                for k in range(d):
                    x, y = A[k, i], A[k, j]
                    A[k, i], A[k, j] = c * x + s * y, c * y - s * x
                for k in range(d):
                    x, y = A[i, k], A[j, k]
                    A[i, k], A[j, k] = c * x + s * y, c * y - s * x
                for k in range(d):
                    x, y = V[k, i], V[k, j]
                    V[k, i], V[k, j] = c * x + s * y, c * y - s * x
    values = np.empty(d)
    for i in range(d):
        values[i] = A[i, i]
    return values, V


@njit(cache=True, error_model="numpy")
def _top_of_pencil(A, B, cut):
    """Largest quotient of two forms where the second exceeds ``cut``."""
    d = A.shape[0]
    beta, V = _eigenpairs(B)
    rank, x = 0, np.zeros(d)
    # the kernel's columns go: kept ones are whitened and moved to the left
    for k in range(d):
        if beta[k] > cut:
            for i in range(d):
                V[i, rank] = V[i, k] / math.sqrt(beta[k])
            rank += 1
    if rank == 0:
        return 0.0, x
    inner = np.zeros((rank, rank))
    for i in range(rank):
        for j in range(rank):
            for k in range(d):
                for m in range(d):
                    inner[i, j] += V[k, i] * A[k, m] * V[m, j]
    alpha, Y = _eigenpairs(inner)
    top, size = 0, 0.0
    for k in range(rank):
        if alpha[k] > alpha[top]:
            top = k
    for i in range(d):
        for k in range(rank):
            x[i] += V[i, k] * Y[k, top]
        size += x[i] * x[i]
    for i in range(d):
        x[i] /= math.sqrt(size)
    return alpha[top], x


@njit(cache=True, error_model="numpy")
def _pencil(state, plane, K, p):
    """A, B and trace of F of a pattern, restricted to a subspace."""
    d, f = plane.shape[1], 3 * (K + p)
    A, B = np.zeros((d, d)), np.zeros((d, d))
    row = np.empty(d)
    for k in range(K + p):
        for c in range(d):
            row[c] = 0.0
            for m in range(3):
                row[c] += state[3 * k + m] * plane[m, c]
        for c in range(d):
            for e in range(d):
                if k < K:
                    A[c, e] += row[c] * row[e]
                else:
                    B[c, e] -= row[c] * row[e]
    for i in range(3):
        for j in range(3):
            # place of (i, j) in the upper triangle, row by row
            low, high = min(i, j), max(i, j)
            entry = state[f + high + low * (5 - low) // 2]
            for c in range(d):
                for e in range(d):
                    B[c, e] += plane[i, c] * entry * plane[j, e]
    return A, B, state[f] + state[f + 3] + state[f + 5]


@njit(cache=True, error_model="numpy")
def _bounded(state, extra, value, K, p):
    """Whether no neuron of the pattern can have a gain above ``value``."""
    a0, a1, a2, a3, a4, a5 = 0.0, 0.0, 0.0, 0.0, 0.0, 0.0
    for k in range(K):
        x = state[3 * k] + extra[3 * k]
        y = state[3 * k + 1] + extra[3 * k + 1]
        z = state[3 * k + 2] + extra[3 * k + 2]
        a0 += x * x
        a1 += x * y
        a2 += x * z
        a3 += y * y
        a4 += y * z
        a5 += z * z
    e0, e1, e2, e3, e4, e5 = 0.0, 0.0, 0.0, 0.0, 0.0, 0.0
    for k in range(K, K + p):
        x = state[3 * k] + extra[3 * k]
        y = state[3 * k + 1] + extra[3 * k + 1]
        z = state[3 * k + 2] + extra[3 * k + 2]
        e0 += x * x
        e1 += x * y
        e2 += x * z
        e3 += y * y
        e4 += y * z
        e5 += z * z
    f = 3 * (K + p)
    w0 = value * (state[f] + extra[f] - e0) - a0
    if not w0 > 0:
        return False
    w1 = value * (state[f + 1] + extra[f + 1] - e1) - a1
    w2 = value * (state[f + 2] + extra[f + 2] - e2) - a2
    w3 = value * (state[f + 3] + extra[f + 3] - e3) - a3 - w1 * w1 / w0
    if not w3 > 0:
        return False
    w4 = value * (state[f + 4] + extra[f + 4] - e4) - a4 - w1 * w2 / w0
    w5 = value * (state[f + 5] + extra[f + 5] - e5) - a5 - w2 * w2 / w0
    return w5 - w4 * w4 / w3 > 0


@njit(cache=True, error_model="numpy")
def _offer(eta, sign, G, M, QH, best, record):
    """Keep a neuron, turned by ``sign``, if it beats the best one."""
    turned = np.empty(eta.size)
    for i in range(eta.size):
        turned[i] = sign * eta[i]
    gain = neuron_gain(turned, G, M, QH)
    if gain > record[0]:
        record[0] = gain
        for i in range(eta.size):
            best[i] = turned[i]


@njit(cache=True, error_model="numpy")
def _within(x, ends):
    """1 or -1 if the direction, or its opposite, lies on the arc, else 0."""
    first = math.cos(ends[0]) * x[1] - math.sin(ends[0]) * x[0]
    last = math.sin(ends[1]) * x[0] - math.cos(ends[1]) * x[1]
    if first >= -CONE_SLACK and last >= -CONE_SLACK:
        return 1.0
    if first <= CONE_SLACK and last <= CONE_SLACK:
        return -1.0
    return 0.0


@njit(cache=True, error_model="numpy")
def examine(state, own, plane, ends, walls, G, M, QH, best, record):
    r"""Look into a pattern that may beat the best neuron.

    Its relaxed maximiser is tried if it may lie in the cone, then the arc
    and the two crossings next to it. That is enough by the face theorem:
    the maximum over the cone is a relaxed maximum of the cone itself or of
    one of its faces, and all other faces are met on other circles.

    Parameters
    ----------
    state : ndarray, shape (3 (K + p) + 6,)
        Sums of the arc, without the samples on the circle.
    own : ndarray, shape of state
        Sums of the samples on the circle, on the pattern's side of it.
    plane : ndarray, shape (3, 2)
        Orthonormal basis of the circle's plane.
    ends : ndarray, shape (2,)
        Angles of the arc's ends in that basis.
    walls : ndarray, shape (3, 3)
        Three normals that point into the cone: the circle's, and those of
        the arc's ends.
    G, M, QH : ndarray
        As in :func:`neuron_gain`, with ``r = 3``.
    best : ndarray, shape (3,)
        The best neuron so far; replaced if beaten.
    record : ndarray, shape (4,)
        Its gain, the largest relaxed bound seen, and how many patterns were
        looked into, and how many bounds exceeded the gain; updated.

    Notes
    -----
    :math:`O(n(K + p))` if something is tried.

    Source: ours, with the face theorem of the companion (C7).

    Examples
    --------
    >>> G, M = np.eye(3), np.eye(3, 1)
    >>> own = np.array([1.0, 0, 0, 1, 0, 0, 0, 0, 0])
    >>> plane, best, record = np.eye(3, 2)[::-1].copy(), np.zeros(3), np.zeros(4)
    >>> examine(0 * own, own, plane, np.array([0, 1.0]), np.zeros((3, 3)),
    ...         G, M, np.zeros((3, 0)), best, record)
    >>> best.tolist(), record.tolist()
    ([1.0, 0.0, 0.0], [1.0, 1.0, 1.0, 1.0])
    """
    K, p = M.shape[1], QH.shape[1]
    record[2] += 1
    total, space, eta = state.copy(), np.zeros((3, 3)), np.empty(3)
    for w in range(state.size):
        total[w] += own[w]
    for i in range(3):
        space[i, i] = 1.0
    A, B, trace = _pencil(total, space, K, p)
    bound, top = _top_of_pencil(A, B, COVERED_RELATIVE * trace)
    if bound <= _SLACK * record[0]:
        return
    record[1] = max(record[1], bound)
    record[3] += 1
    least, most = np.inf, -np.inf
    for k in range(3):
        side = 0.0
        for m in range(3):
            side += walls[k, m] * top[m]
        least, most = min(least, side), max(most, side)
    if least >= -CONE_SLACK:
        _offer(top, 1.0, G, M, QH, best, record)
    if most <= CONE_SLACK:
        _offer(top, -1.0, G, M, QH, best, record)
    A, B, trace = _pencil(state, plane, K, p)
    cut = COVERED_RELATIVE * trace
    bound, top = _top_of_pencil(A, B, cut)
    for k in range(3):
        # the arc's relaxed maximiser, then its ends
        sign = _within(top, ends)
        if k > 0:
            sign = 1.0
            top[0], top[1] = math.cos(ends[k - 1]), math.sin(ends[k - 1])
        num, den = 0.0, 0.0
        for c in range(2):
            for e in range(2):
                num += top[c] * A[c, e] * top[e]
                den += top[c] * B[c, e] * top[e]
        if sign != 0 and den > cut and num > _SLACK * record[0] * den:
            for m in range(3):
                eta[m] = plane[m, 0] * top[0] + plane[m, 1] * top[1]
            _offer(eta, sign, G, M, QH, best, record)


@njit(cache=True, error_model="numpy")
def circle_events(normals, i):
    r"""Where one great circle is crossed by the others.

    Parameters
    ----------
    normals : ndarray, shape (h, 3)
        Unit normals, no two of them parallel.
    i : int
        The circle: directions orthogonal to ``normals[i]``.

    Returns
    -------
    plane : ndarray, shape (3, 2)
        Orthonormal basis; angles on the circle are taken in it.
    order : ndarray of int, shape (h - 1,)
        The other circles in order of their crossing.
    angles : ndarray, shape (h - 1,)
        Angles of the crossings in :math:`[0, \pi)`, increasing; each recurs
        at the angle plus :math:`\pi`.
    before : ndarray, shape (h - 1,)
        Side of the crossed circle just before the first crossing, 1 or -1.
    edges, vertices : float
        Arcs of the circle, and its share of the crossing points: one over
        the number of circles through each.

    Notes
    -----
    :math:`O(h\log h)`.

    Source: ours.

    Examples
    --------
    >>> plane, order, angles, before, edges, vertices = circle_events(
    ...     np.eye(3), 2)
    >>> order.size, edges, vertices
    (2, 4.0, 2.0)
    """
    h, x, y, z = normals.shape[0], normals[i, 0], normals[i, 1], normals[i, 2]
    # an axis away from the normal, made orthogonal to it, and their product
    a, b, c = 0.0, -z, y
    if abs(y) <= min(abs(x), abs(z)):
        a, b, c = z, 0.0, -x
    elif abs(z) <= abs(x):
        a, b, c = -y, x, 0.0
    size = math.sqrt(a * a + b * b + c * c)
    a, b, c = a / size, b / size, c / size
    plane = np.empty((3, 2))
    plane[0, 0], plane[1, 0], plane[2, 0] = a, b, c
    plane[0, 1] = y * c - z * b
    plane[1, 1] = z * a - x * c
    plane[2, 1] = x * b - y * a
    keys, sides = np.empty(h), np.empty(h)
    for j in range(h):
        u, v = 0.0, 0.0
        for m in range(3):
            u += normals[j, m] * plane[m, 0]
            v += normals[j, m] * plane[m, 1]
        angle, side = math.atan2(u, -v), 1.0
        if angle < 0:
            angle, side = angle + math.pi, -1.0
        if angle >= math.pi:  # one of 0, met half a turn earlier
            angle, side = 0.0, -side
        keys[j], sides[j] = angle, side
    keys[i] = 2 * math.pi
    sorted_ = np.argsort(keys)
    order = np.empty(h - 1, np.int64)
    angles, before = np.empty(h - 1), np.empty(h - 1)
    for k in range(h - 1):
        order[k] = sorted_[k]
        angles[k], before[k] = keys[order[k]], sides[order[k]]
    edges, vertices, run = 0.0, 0.0, 0.0
    first = 0.0
    for k in range(h - 1):
        run += 1
        last = k == h - 2
        if not last and angles[k + 1] - angles[k] <= ANGLE_TIE:
            continue
        if last and edges > 0 and angles[0] + math.pi - angles[k] <= ANGLE_TIE:
            # the tie goes on across the start of the half circle
            vertices += 2 / (first + run + 1) - 2 / (first + 1)
        else:
            vertices += 2 / (run + 1)
            edges += 2
        if first == 0:
            first = run
        run = 0.0
    return plane, order, angles, before, edges, vertices


@njit(cache=True, error_model="numpy")
def sweep_circles(normals, over, under, G, M, QH, best, record):
    r"""Sweep all circles; leave the best neuron in ``best``.

    Parameters
    ----------
    normals : ndarray, shape (h, 3)
        Unit normals of the distinct hyperplanes, all with a positive inner
        product with some direction.
    over, under : ndarray, shape (h, 3 (K + p) + 6)
        Sums of the samples on each hyperplane that are active on the side
        of its normal, and on the other side.
    G, M, QH : ndarray, shapes (n, 3), (n, K), (n, p)
    best, record : ndarray, shapes (3,) and (4,)
        As in :func:`examine`; updated.

    Returns
    -------
    float
        Number of cells of the arrangement, by Euler's formula.

    Notes
    -----
    :math:`O(h^2(\log h+K+p))` and the patterns looked into. Each cell but
    one, the opposite of the cell of that direction, is tested from those of
    its circles whose normal points into it. Nothing is checked here.

    Source: ours (algorithm A1, with a definiteness test for an
    eigenproblem).

    Examples
    --------
    >>> G, M = np.eye(3), np.eye(3, 1)
    >>> over = np.zeros((3, 9))
    >>> over[0, [0, 3]] = over[1, 6] = over[2, 8] = 1
    >>> best, record = np.zeros(3), np.zeros(4)
    >>> float(sweep_circles(G, over, 0 * over, G, M, np.zeros((3, 0)),
    ...                     best, record))
    8.0
    >>> abs(best.round(6)).tolist(), record[0].round(12)
    ([1.0, 0.0, 0.0], np.float64(1.0))
    """
    h, width = over.shape
    K, p = M.shape[1], QH.shape[1]
    jump = over - under
    state, walls, ends = np.empty(width), np.empty((3, 3)), np.empty(2)
    edges, vertices = 0.0, 0.0
    for i in range(h):
        plane, order, angles, before, e, v = circle_events(normals, i)
        edges += e
        vertices += v
        count = h - 1
        state[:] = 0.0
        for k in range(count):
            row = over[order[k]] if before[k] > 0 else under[order[k]]
            for w in range(width):
                state[w] += row[w]
        for step in range(2 * count):
            k = step % count
            j = order[k]
            # the side that the sweep enters
            side = -before[k] if step < count else before[k]
            row = jump[j]
            for w in range(width):
                state[w] += side * row[w]
            if _bounded(state, over[i], _SLACK * record[0], K, p):
                continue
            nxt = (step + 1) % (2 * count)
            wall = before[nxt % count]
            wall = wall if nxt < count else -wall
            for m in range(3):
                walls[0, m] = normals[i, m]
                walls[1, m] = side * normals[j, m]
                walls[2, m] = wall * normals[order[nxt % count], m]
            ends[0] = angles[k] + (0.0 if step < count else math.pi)
            ends[1] = angles[nxt % count] + (0.0 if nxt < count else math.pi)
            examine(state, over[i], plane, ends, walls, G, M, QH, best, record)
    return math.floor(2.5 + edges - vertices)
