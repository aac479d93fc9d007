"""Levenberg-Marquardt in compiled loops, one problem after the other.

Importable without numba; then ``AVAILABLE`` is False and nothing here may be
called. Each driver is the loop of :mod:`helpers.allocation.levenberg` with
its residual written out; a test holds them to the NumPy route.
"""

from __future__ import annotations

import numpy as np

try:
    from numba import njit

    AVAILABLE = True
except ImportError:  # pragma: no cover - numba is optional
    AVAILABLE = False

    def njit(*args, **options):
        return lambda f: f


@njit(cache=True, error_model="numpy")
def _damped_step(A, g, damping, floor, U, delta):
    """Solve ``(A + damping tr(A)/p I) delta = -g`` by Cholesky, in ``U``.

    False where the matrix is not positive definite.
    """
    p = g.size
    trace = 0.0
    for i in range(p):
        trace += A[i, i]
        delta[i] = -g[i]
        for j in range(i, p):
            U[i, j] = A[i, j]
    shift = damping * trace / p + floor
    for i in range(p):
        U[i, i] += shift
    for k in range(p):
        if not U[k, k] > 0.0:
            return False
        top = 1.0 / np.sqrt(U[k, k])
        for j in range(k, p):
            U[k, j] *= top
        for i in range(k + 1, p):
            factor = U[k, i]
            for j in range(i, p):
                U[i, j] -= factor * U[k, j]
    for k in range(p):
        delta[k] /= U[k, k]
        value = delta[k]
        for j in range(k + 1, p):
            delta[j] -= U[k, j] * value
    for i in range(p - 1, -1, -1):
        total = delta[i]
        for j in range(i + 1, p):
            total -= U[i, j] * delta[j]
        delta[i] = total / U[i, i]
    return True


@njit(cache=True)
def _square(r):
    total = 0.0
    for value in r:
        total += value * value
    return total


@njit(cache=True)
def _quadratic(w, Q, lin, const, J):
    """Residual and Jacobian of ``w'Q_i w + lin_i w + const_i``."""
    c, p = lin.shape
    half = np.dot(Q, w).reshape(c, p)
    r = np.empty(c)
    for i in range(c):
        total = const[i]
        for k in range(p):
            total += (half[i, k] + lin[i, k]) * w[k]
            J[i, k] = 2.0 * half[i, k] + lin[i, k]
        r[i] = total
    return r


@njit(cache=True)
def quadratic_lm(Q, lin, const, w0, most, tol, rules):
    """Many starts on many quadratic systems.

    Parameters
    ----------
    Q, lin, const : ndarray (K, c, p, p), (K, c, p), (K, c)
    w0 : ndarray (K, S, p)
    most : int
    tol : float
    rules : tuple of six float
        ``levenberg.RULES``.

    Returns
    -------
    w (K, S, p), squared residual (K, S), steps (K, S)

    Notes
    -----
    Arrays are contiguous and checked by the caller. Source: ours.
    """
    K, S, p = w0.shape
    c = lin.shape[1]
    down, up, largest, first, floor, flat = rules
    w_out = np.empty((K, S, p))
    f_out = np.empty((K, S))
    steps = np.zeros((K, S), dtype=np.int64)
    J, J2 = np.empty((c, p)), np.empty((c, p))
    U, delta = np.zeros((p, p)), np.empty(p)
    for k in range(K):
        stacked = np.ascontiguousarray(Q[k]).reshape(c * p, p)
        goal = tol * tol * _square(const[k])
        for s in range(S):
            w = w0[k, s].copy()
            r = _quadratic(w, stacked, lin[k], const[k], J)
            f, damping, n, fresh = _square(r), first, 0, True
            A, g = U, delta
            while n < most and f > goal and damping < largest:
                n += 1
                if fresh:
                    A, g, fresh = np.dot(J.T, J), np.dot(r, J), False
                    if _square(g) <= flat * flat * np.trace(A) * f:
                        break  # a minimum that is not zero
                if not _damped_step(A, g, damping, floor, U, delta):
                    damping *= up
                    continue
                trial = w + delta
                r2 = _quadratic(trial, stacked, lin[k], const[k], J2)
                f2 = _square(r2)
                if f2 < f:
                    w, r, f = trial, r2, f2
                    J, J2, fresh = J2, J, True
                    damping *= down
                else:
                    damping *= up
            w_out[k, s], f_out[k, s], steps[k, s] = w, f, n
    return w_out, f_out, steps


@njit(cache=True)
def _recurrent(W, B, D, driven, Y, rows, cols, J):
    """Residual and Jacobian of a linear RNN in entries of ``W``."""
    T, n, m = driven.shape
    d, p = D.shape[0], rows.size
    h = np.empty((T, n, m))
    h[0] = driven[0]
    for t in range(1, T):
        h[t] = np.dot(W, h[t - 1]) + driven[t]
    r = np.dot(D, h[T - 1]) - Y
    onward = D.copy()
    J[:, :] = 0.0
    for s in range(T - 1, 0, -1):
        for q in range(p):
            i, j = rows[q], cols[q]
            for a in range(d):
                lead = onward[a, i]
                for e in range(m):
                    J[a * m + e, q] += lead * h[s - 1, j, e]
        if s > 1:
            onward = np.dot(onward, W)
    return r.reshape(d * m)


@njit(cache=True)
def recurrent_lm(B, W, D, X, Y, rows, cols, w0, most, tol, rules):
    """Many starts on many recurrent problems.

    Parameters
    ----------
    B, W, D : ndarray (K, n, b), (K, n, n), (K, d, n)
    X, Y : ndarray (K, T, b, m), (K, d, m)
    rows, cols : ndarray of int (K, p)
    w0 : ndarray (K, S, p)
    most : int
    tol : float
    rules : tuple of six float
        ``levenberg.RULES``.

    Returns
    -------
    w (K, S, p), squared residual (K, S), steps (K, S)

    Notes
    -----
    Arrays are contiguous and checked by the caller. Source: ours.
    """
    K, S, p = w0.shape
    n = W.shape[1]
    T, m, d = X.shape[1], X.shape[3], D.shape[1]
    down, up, largest, first, floor, flat = rules
    w_out = np.empty((K, S, p))
    f_out = np.empty((K, S))
    steps = np.zeros((K, S), dtype=np.int64)
    J, J2 = np.empty((d * m, p)), np.empty((d * m, p))
    U, delta = np.zeros((p, p)), np.empty(p)
    for k in range(K):
        driven = np.empty((T, n, m))
        for t in range(T):
            driven[t] = np.dot(B[k], X[k, t])
        goal = tol * tol * _square(Y[k].reshape(d * m))
        now = W[k].copy()
        for s in range(S):
            w = w0[k, s].copy()
            for q in range(p):
                now[rows[k, q], cols[k, q]] = w[q]
            r = _recurrent(now, B[k], D[k], driven, Y[k], rows[k], cols[k], J)
            f, damping, count, fresh = _square(r), first, 0, True
            A, g = U, delta
            while count < most and f > goal and damping < largest:
                count += 1
                if fresh:
                    A, g, fresh = np.dot(J.T, J), np.dot(r, J), False
                    if _square(g) <= flat * flat * np.trace(A) * f:
                        break  # a minimum that is not zero
                if not _damped_step(A, g, damping, floor, U, delta):
                    damping *= up
                    continue
                trial = w + delta
                for q in range(p):
                    now[rows[k, q], cols[k, q]] = trial[q]
                r2 = _recurrent(
                    now, B[k], D[k], driven, Y[k], rows[k], cols[k], J2
                )
                f2 = _square(r2)
                if f2 < f:
                    w, r, f = trial, r2, f2
                    J, J2, fresh = J2, J, True
                    damping *= down
                else:
                    damping *= up
            w_out[k, s], f_out[k, s], steps[k, s] = w, f, count
    return w_out, f_out, steps


@njit(cache=True)
def _layer(z, kind, slope):
    """Activation and its derivative: 0 ReLU, 1 leaky, 2 tanh, 3 identity."""
    a, da = np.empty_like(z), np.empty_like(z)
    for i in range(z.shape[0]):
        for j in range(z.shape[1]):
            v = z[i, j]
            if kind == 2:
                a[i, j] = np.tanh(v)
                da[i, j] = 1.0 - a[i, j] * a[i, j]
            elif kind == 3:
                a[i, j], da[i, j] = v, 1.0
            elif v > 0.0:
                a[i, j], da[i, j] = v, 1.0
            else:
                a[i, j], da[i, j] = slope * v, slope
    return a, da


@njit(cache=True)
def _shallow(B, D, X, Y, rows, cols, kind, slope, J):
    d, m = Y.shape
    a, da = _layer(np.dot(B, X), kind, slope)
    r = np.dot(D, a) - Y
    for q in range(rows.size):
        i, j = rows[q], cols[q]
        for o in range(d):
            for e in range(m):
                J[o * m + e, q] = D[o, i] * da[i, e] * X[j, e]
    return r.reshape(d * m)


@njit(cache=True)
def shallow_lm(B, D, X, Y, rows, cols, kind, slope, w0, most, tol, rules):
    """Many starts on many shallow problems.

    Parameters
    ----------
    B, D : ndarray (K, n, b), (K, d, n)
    X, Y : ndarray (K, b, m), (K, d, m)
    rows, cols : ndarray of int (K, p)
    kind : int
        0 ReLU, 1 leaky, 2 tanh, 3 identity.
    slope : float
        On the negative side.
    w0 : ndarray (K, S, p)
    most : int
    tol : float
    rules : tuple of six float
        ``levenberg.RULES``.

    Returns
    -------
    w (K, S, p), squared residual (K, S), steps (K, S)

    Notes
    -----
    Arrays are contiguous and checked by the caller. Source: ours.
    """
    K, S, p = w0.shape
    d, m = Y.shape[1], Y.shape[2]
    down, up, largest, first, floor, flat = rules
    w_out = np.empty((K, S, p))
    f_out = np.empty((K, S))
    steps = np.zeros((K, S), dtype=np.int64)
    J, J2 = np.empty((d * m, p)), np.empty((d * m, p))
    U, delta = np.zeros((p, p)), np.empty(p)
    for k in range(K):
        goal = tol * tol * _square(Y[k].reshape(d * m))
        now = B[k].copy()
        for s in range(S):
            w = w0[k, s].copy()
            for q in range(p):
                now[rows[k, q], cols[k, q]] = w[q]
            r = _shallow(
                now, D[k], X[k], Y[k], rows[k], cols[k], kind, slope, J
            )
            f, damping, count, fresh = _square(r), first, 0, True
            A, g = U, delta
            while count < most and f > goal and damping < largest:
                count += 1
                if fresh:
                    A, g, fresh = np.dot(J.T, J), np.dot(r, J), False
                    if _square(g) <= flat * flat * np.trace(A) * f:
                        break  # a minimum that is not zero
                if not _damped_step(A, g, damping, floor, U, delta):
                    damping *= up
                    continue
                trial = w + delta
                for q in range(p):
                    now[rows[k, q], cols[k, q]] = trial[q]
                r2 = _shallow(
                    now, D[k], X[k], Y[k], rows[k], cols[k], kind, slope, J2
                )
                f2 = _square(r2)
                if f2 < f:
                    w, r, f = trial, r2, f2
                    J, J2, fresh = J2, J, True
                    damping *= down
                else:
                    damping *= up
            w_out[k, s], f_out[k, s], steps[k, s] = w, f, count
    return w_out, f_out, steps
