r"""Compiled subdivision of a planar mesh by one layer of neurons.

Edges are cut first, at every place where a neuron changes sign, so that the
two cells at an edge share the new vertices. Then each cell is taken apart on
its own: as long as a neuron has both signs on it, a chord joins the two
vertices where that neuron vanishes. A chord is cut when it is made, like any
edge. Signs are three-valued, a bit for positive and a bit for negative, so
that "which neurons still cross this cell" is a few bitwise operations.

Without numba the functions run as plain Python, far too slowly for more than
a test: :mod:`helpers.linear_regions.regions_2d` has a NumPy route.
"""

from __future__ import annotations

import numpy as np

try:
    from numba import njit
except ImportError:  # the functions below then run as plain, slow Python
    AVAILABLE = False

    def njit(**options):
        return lambda function: function

else:
    AVAILABLE = True

__all__ = ["AVAILABLE", "subdivide"]

_ONE = np.uint64(1)
_ZERO = np.uint64(0)


_PAIRS = np.uint64(0x5555555555555555)
_QUADS = np.uint64(0x3333333333333333)
_BYTES = np.uint64(0x0F0F0F0F0F0F0F0F)
_SUM = np.uint64(0x0101010101010101)


@njit(cache=True)
def _lowest(word):
    """Index of the lowest set bit: the number of bits below it."""
    x = (word & (~word + _ONE)) - _ONE
    x -= (x >> _ONE) & _PAIRS
    x = (x & _QUADS) + ((x >> np.uint64(2)) & _QUADS)
    x = (x + (x >> np.uint64(4))) & _BYTES
    return np.int64((x * _SUM) >> np.uint64(56))


@njit(cache=True)
def _cut(a, b, P, Z, pos, neg, limit, nv, where, which):
    """Put vertices on the segment from a to b; returns how many there are.

    ``where`` and ``which`` are scratch for crossings, sorted by insertion.
    """
    words = pos.shape[1]
    n = Z.shape[1]
    count = 0
    for w in range(words):
        left = (pos[a, w] & neg[b, w]) | (neg[a, w] & pos[b, w])
        while left != _ZERO:
            m = w * 64 + _lowest(left)
            left &= left - _ONE
            place = Z[a, m] / (Z[a, m] - Z[b, m])
            i = count
            while i > 0 and where[i - 1] > place:
                where[i] = where[i - 1]
                which[i] = which[i - 1]
                i -= 1
            where[i] = place
            which[i] = m
            count += 1
    made = 0
    for i in range(count):
        m = which[i]
        bit = _ONE << np.uint64(m & 63)
        if made > 0:
            last = nv + made - 1
            if ((pos[last, m >> 6] | neg[last, m >> 6]) & bit) == _ZERO:
                continue  # it vanishes at the vertex before: one crossing
        c = nv + made
        t = where[i]
        u = 1.0 - t
        P[c, 0] = u * P[a, 0] + t * P[b, 0]
        P[c, 1] = u * P[a, 1] + t * P[b, 1]
        for j in range(n):
            Z[c, j] = u * Z[a, j] + t * Z[b, j]
        for w in range(words):
            pos[c, w] = pos[a, w] | pos[b, w]
            neg[c, w] = neg[a, w] | neg[b, w]
        Z[c, m] = 0.0
        for k in range(count):
            j = which[k]
            w = j >> 6
            mark = _ONE << np.uint64(j & 63)
            pos[c, w] &= ~mark
            neg[c, w] &= ~mark
            if Z[c, j] > limit[j]:
                pos[c, w] |= mark
            elif Z[c, j] < -limit[j]:
                neg[c, w] |= mark
        made += 1
    return made


@njit(cache=True)
def _signs(Z, limit, pos, neg):
    V, n = Z.shape
    for v in range(V):
        for w in range(pos.shape[1]):
            p = _ZERO
            q = _ZERO
            low = w * 64
            for i in range(min(n - low, 64)):
                z = Z[v, low + i]
                most = limit[low + i]
                # no branches: signs cannot be predicted
                p |= np.uint64(z > most) << np.uint64(i)
                q |= np.uint64(z < -most) << np.uint64(i)
            pos[v, w] = p
            neg[v, w] = q


@njit(cache=True)
def _lines(start, loops, pos, neg, lines):
    """How many neurons cross each cell."""
    words = pos.shape[1]
    for f in range(len(lines)):
        count = 0
        for w in range(words):
            some = _ZERO
            other = _ZERO
            for i in range(start[f], start[f + 1]):
                some |= pos[loops[i, 0], w]
                other |= neg[loops[i, 0], w]
            left = some & other
            while left != _ZERO:
                left &= left - _ONE
                count += 1
        lines[f] = count


@njit(cache=True)
def _edges(E, ends, P, Z, pos, neg, limit, chain, where, which, nv):
    """Cut the edges; ``chain`` says where an edge's pieces are."""
    words = pos.shape[1]
    ne = E
    for e in range(E):
        a, b = ends[e, 0], ends[e, 1]
        crossed = _ZERO
        for w in range(words):
            crossed |= (pos[a, w] & neg[b, w]) | (neg[a, w] & pos[b, w])
        chain[e, 2] = 0
        if crossed == _ZERO:
            continue
        k = _cut(a, b, P, Z, pos, neg, limit, nv, where, which)
        chain[e, 0], chain[e, 1], chain[e, 2] = nv, ne, k
        ends[e, 1] = nv
        for i in range(k):
            ends[ne + i, 0] = nv + i
            ends[ne + i, 1] = nv + i + 1
        ends[ne + k - 1, 1] = b
        nv += k
        ne += k
    return nv, ne


@njit(cache=True)
def _cells(
    f,
    state,
    start,
    loops,
    ends0,
    chain,
    lines,
    P,
    Z,
    pos,
    neg,
    limit,
    ends,
    faces,
    out,
    out_start,
    parent,
    bits,
    stack,
    ring,
    bottom,
    some,
    where,
    which,
):
    """Take cells apart from ``f`` on, as long as there is room.

    ``state`` holds the numbers of vertices, edges, cells and loop entries.
    """
    words = pos.shape[1]
    nv, ne, nf, nl = state[0], state[1], state[2], state[3]
    F = len(lines)
    while f < F:
        k = lines[f]
        crossings = k * (k - 1) // 2
        size = 0
        for i in range(start[f], start[f + 1]):
            size += 1 + chain[loops[i, 1], 2]
        entries = size + 2 * (k + 2 * crossings)
        if (
            nv + crossings > len(P)
            or ne + k + 2 * crossings > len(ends)
            or nf + 1 + k + crossings >= len(out_start)
            or nl + entries > len(out)
            or entries > len(stack)
            or k + 2 > len(bottom)
        ):
            break
        top = 0
        for i in range(start[f], start[f + 1]):
            v, e = loops[i, 0], loops[i, 1]
            k = chain[e, 2]
            if ends0[e, 0] == v:
                stack[top, 0], stack[top, 1] = v, e
                top += 1
                for j in range(k):
                    stack[top, 0] = chain[e, 0] + j
                    stack[top, 1] = chain[e, 1] + j
                    top += 1
            else:
                stack[top, 0] = v
                for j in range(k - 1, -1, -1):
                    stack[top, 1] = chain[e, 1] + j
                    top += 1
                    stack[top, 0] = chain[e, 0] + j
                stack[top, 1] = e
                top += 1
        depth = 1
        bottom[0] = 0
        while depth > 0:
            low = bottom[depth - 1]
            size = top - low
            m = -1
            for w in range(words):
                above = _ZERO
                below = _ZERO
                for i in range(low, top):
                    above |= pos[stack[i, 0], w]
                    below |= neg[stack[i, 0], w]
                some[w] = above
                if (above & below) != _ZERO:
                    m = w * 64 + _lowest(above & below)
                    break
            if m < 0:
                for i in range(size):
                    v, e = stack[low + i, 0], stack[low + i, 1]
                    out[nl + i, 0] = v
                    out[nl + i, 1] = e
                    if ends[e, 0] == v:
                        faces[e, 0] = nf
                    else:
                        faces[e, 1] = nf
                nl += size
                parent[nf] = f
                for w in range(words):
                    bits[nf, w] = some[w]
                nf += 1
                out_start[nf] = nl
                top = low
                depth -= 1
                continue
            w = m >> 6
            bit = _ONE << np.uint64(m & 63)
            # where the sign goes from negative to zero, and from positive
            up = -1
            down = -1
            before = stack[top - 1, 0]
            for i in range(size):
                v = stack[low + i, 0]
                if ((pos[v, w] | neg[v, w]) & bit) == _ZERO:
                    if (neg[before, w] & bit) != _ZERO:
                        up = i
                    elif (pos[before, w] & bit) != _ZERO:
                        down = i
                before = v
            for i in range(size):
                ring[i, 0] = stack[low + i, 0]
                ring[i, 1] = stack[low + i, 1]
            p, q = ring[up, 0], ring[down, 0]
            k = _cut(q, p, P, Z, pos, neg, limit, nv, where, which)
            for i in range(k + 1):
                ends[ne + i, 0] = nv + i - 1
                ends[ne + i, 1] = nv + i
            ends[ne, 0] = q
            ends[ne + k, 1] = p
            # the negative side: down ... up, and back along the chord
            top = low
            i = down
            while i != up:
                stack[top, 0] = ring[i, 0]
                stack[top, 1] = ring[i, 1]
                top += 1
                i = i + 1 if i + 1 < size else 0
            stack[top, 0] = p
            for j in range(k - 1, -1, -1):
                stack[top, 1] = ne + j + 1
                top += 1
                stack[top, 0] = nv + j
            stack[top, 1] = ne
            top += 1
            bottom[depth] = top
            # the positive side: up ... down, and the chord
            while i != down:
                stack[top, 0] = ring[i, 0]
                stack[top, 1] = ring[i, 1]
                top += 1
                i = i + 1 if i + 1 < size else 0
            stack[top, 0] = q
            stack[top, 1] = ne
            top += 1
            for j in range(k):
                stack[top, 0] = nv + j
                stack[top, 1] = ne + j + 1
                top += 1
            depth += 1
            nv += k
            ne += k + 1
        f += 1
    state[0], state[1], state[2], state[3] = nv, ne, nf, nl
    return f


@njit(cache=True)
def _roomy(array, used, size):
    """An array with room for ``size`` rows; the first ``used`` are kept."""
    bigger = np.empty((size,) + array.shape[1:], array.dtype)  # noqa: RUF005
    bigger[:used] = array[:used]
    return bigger


@njit(cache=True)
def subdivide(P0, Z0, limit, start, loops, ends0, most):
    """Cut every cell of a mesh by every neuron of a layer.

    Parameters
    ----------
    P0 : ndarray, shape (V, 2)
    Z0 : ndarray, shape (V, n)
        Pre-activations at the vertices.
    limit : ndarray, shape (n,)
        What is not larger counts as zero.
    start : ndarray of int64, shape (F + 1,)
    loops : ndarray of int32, shape (L, 2)
        Vertex and following edge, anticlockwise, of cell ``f`` in rows
        ``start[f]:start[f + 1]``.
    ends0 : ndarray of int32, shape (E, 2)
    most : int
        Stop if more cells than this may come out.

    Returns
    -------
    tuple
        ``bound, P, Z, start, loops, ends, faces, parent, bits``; with
        ``bound > most`` nothing was done and all arrays are empty. ``bits``
        holds the neurons that are positive on a cell.

    Raises
    ------
    Nothing: its caller has checked the arguments.

    Notes
    -----
    Source: none, ours.

    Examples
    --------
    The square, cut by the line x = 0:

    >>> P = np.array([[-1.0, -1], [1, -1], [1, 1], [-1, 1]])
    >>> ring = np.array([[0, 0], [1, 1], [2, 2], [3, 3]], dtype=np.int32)
    >>> ends = np.array([[0, 1], [1, 2], [2, 3], [3, 0]], dtype=np.int32)
    >>> out = subdivide(P, P[:, :1].copy(), np.zeros(1), np.array([0, 4]),
    ...                 ring, ends, 100)
    >>> len(out[1]), len(out[5]), len(out[3]) - 1
    (6, 7, 2)
    """
    V, n = Z0.shape
    E, cells0 = len(ends0), len(start) - 1
    words = (n + 63) // 64
    pos = np.empty((V, words), np.uint64)
    neg = np.empty((V, words), np.uint64)
    _signs(Z0, limit, pos, neg)
    lines = np.empty(cells0, np.int64)
    _lines(start, loops, pos, neg, lines)
    cuts, inner, deepest = 0, 0, 0
    for k in lines:
        cuts += 2 * k
        inner += k * (k - 1) // 2
        deepest = max(deepest, k)
    bound = cells0 + cuts // 2 + inner
    if bound > most:
        none = np.empty((0, 2), np.int32)
        return (
            bound, P0[:0], Z0[:0], np.zeros(1, np.int64), none, none, none,
            np.empty(0, np.int32), pos[:0],
        )  # fmt: skip
    # a chord meets two edges, and at most one more belongs to it alone
    room = V + cuts + min(inner, 2 * V + 4 * n)
    P, Z = _roomy(P0, V, room), _roomy(Z0, V, room)
    pos, neg = _roomy(pos, V, room), _roomy(neg, V, room)
    ends = _roomy(ends0, E, E + 2 * room)
    chain = np.empty((E, 3), np.int32)
    where, which = np.empty(n), np.empty(n, np.int64)
    nv, ne = _edges(E, ends, P, Z, pos, neg, limit, chain, where, which, V)
    faces = np.full((len(ends), 2), -1, np.int32)
    out = np.empty((2 * len(ends), 2), np.int32)
    F = cells0 + cuts
    out_start = np.zeros(F + 1, np.int64)
    parent = np.empty(F, np.int32)
    bits = np.empty((F, words), np.uint64)
    stack = np.empty((4 * n + 64, 2), np.int32)
    ring, bottom = np.empty_like(stack), np.empty(deepest + 2, np.int64)
    some = np.empty(words, np.uint64)
    state = np.array([nv, ne, 0, 0])
    f = 0
    while True:
        f = _cells(
            f, state, start, loops, ends0, chain, lines, P, Z, pos, neg,
            limit, ends, faces, out, out_start, parent, bits, stack, ring,
            bottom, some, where, which,
        )  # fmt: skip
        nv, ne, nf, nl = state
        if f == cells0:
            break
        k = lines[f]
        crossings = k * (k - 1) // 2
        room = 2 * nv + crossings
        P, Z = _roomy(P, nv, room), _roomy(Z, nv, room)
        pos, neg = _roomy(pos, nv, room), _roomy(neg, nv, room)
        more = 2 * ne + k + 2 * crossings
        ends, faces = _roomy(ends, ne, more), _roomy(faces, ne, more)
        faces[ne:] = -1
        size = 0
        for i in range(start[f], start[f + 1]):
            size += 1 + chain[loops[i, 1], 2]
        entries = size + 2 * (k + 2 * crossings)
        out = _roomy(out, nl, 2 * nl + entries)
        room = 2 * nf + 2 + k + crossings
        out_start = _roomy(out_start, nf + 1, room)
        parent, bits = _roomy(parent, nf, room), _roomy(bits, nf, room)
        if entries > len(stack):
            stack = np.empty((entries, 2), np.int32)
            ring = np.empty_like(stack)
    return (
        bound, P[:nv], Z[:nv], out_start[: nf + 1], out[:nl], ends[:ne],
        faces[:ne], parent[:nf], bits[:nf],
    )  # fmt: skip
