r"""Levenberg-Marquardt with many starts, batched over problems.

From :math:`w` the step solves
:math:`(J^\top J + \lambda\,\tfrac{\operatorname{tr}J^\top J}{p} I)\,\delta
= -J^\top r`. It is taken if the residual falls, and :math:`\lambda` shrinks;
otherwise :math:`\lambda` grows. A start ends at the wanted residual, at a
minimum that is not zero, when :math:`\lambda` has left its range, or after
``most`` steps.

What is reported is a *lower bound* of what exists: a start that fails proves
nothing.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from helpers.allocation import levenberg_compiled
from helpers.allocation.allocations import (
    Allocation,
    check_allocation,
    with_entries,
)
from helpers.allocation.jacobians import lrnn_jacobian, relu_jacobian
from helpers.allocation.networks import (
    LinearRNN,
    ShallowReLU,
    check_lrnn,
    lrnn_forward,
    relu_forward,
)
from helpers.core.checks import check_finite, check_sizes
from helpers.core.linalg import solve_each
from helpers.core.randomness import Seed, as_generator
from helpers.core.tolerances import (
    DAMPING_FLOOR,
    LARGEST_DAMPING,
    MATCHED_RELATIVE,
    SOLVED_RELATIVE,
    STATIONARY_COSINE,
)

DOWN, UP, FIRST = 0.2, 4.0, 0.01
RULES = (DOWN, UP, LARGEST_DAMPING, FIRST, DAMPING_FLOOR, STATIONARY_COSINE)
SCALES = (0.1, 0.25, 1.0, 3.0, 10.0, 30.0)
"""Start scales that are cycled: solutions have heavy-tailed norms, and wide
starts find many that narrow ones miss."""
MOST_COMPILED = 200
"""Unknowns beyond which LAPACK in NumPy beats the compiled loops."""
ACTIVATIONS = {"relu": 0, "leaky": 1, "tanh": 2, "linear": 3}


class Solved(NamedTuple):
    """End of every start.

    ``w (K, S, p)``, ``residual (K, S)`` relative to the labels, and
    ``steps (K, S)``.
    """

    w: np.ndarray
    residual: np.ndarray
    steps: np.ndarray

    @property
    def matched(self) -> np.ndarray:
        """Whether some start of a problem ends in a match, ``(K,)``."""
        return (self.residual < MATCHED_RELATIVE).any(axis=1)


def draw_starts(K: int, S: int, p: int, rng: Seed, scales=SCALES):
    """Gaussian starts whose scale cycles through ``scales``.

    Parameters
    ----------
    K, S, p : int
        Problems, starts for each, unknowns.
    rng : seed or Generator
    scales : sequence of float
        Positive standard deviations.

    Returns
    -------
    numpy.ndarray (K, S, p)

    Raises
    ------
    ValueError
        If a number is not positive.

    Notes
    -----
    Source: ours.

    Examples
    --------
    >>> draw_starts(2, 3, 4, 0).shape
    (2, 3, 4)
    """
    scales = np.asarray(scales, dtype=float)
    if min(K, S, p) < 1 or scales.ndim != 1 or not (scales > 0).all():
        raise ValueError(
            f"K, S, p and scales must be positive, got {K}, {S}, {p}, {scales}"
        )
    sizes = scales[np.arange(S) % scales.size]
    return sizes[:, None] * as_generator(rng).normal(size=(K, S, p))


def first_match(starts, solve) -> np.ndarray:
    """First start from which each problem is matched.

    Parameters
    ----------
    starts : array_like (K, S, p)
    solve : callable
        ``solve(left (k,), begin (k, 1, p))`` tries one start each of the
        problems ``left`` and returns whether they are matched, ``(k,)``.

    Returns
    -------
    numpy.ndarray of int (K,)
        From 1; 0 if none of the starts ends in a match.

    Raises
    ------
    Nothing itself; what ``solve`` raises.

    Notes
    -----
    A problem that is matched is not tried again. Source: ours.

    Examples
    --------
    >>> first_match(np.array([[[1.0], [5.0]], [[2.0], [3.0]]]),
    ...             lambda left, begin: begin[:, 0, 0] > 4).tolist()
    [2, 0]
    """
    starts = np.asarray(starts, dtype=float)
    first = np.zeros(len(starts), dtype=int)
    for s in range(starts.shape[1]):
        left = np.flatnonzero(first == 0)
        if not left.size:
            break
        first[left[solve(left, starts[left, s : s + 1])]] = s + 1
    return first


def levenberg_marquardt(
    residual_jac, w0, size, most: int = 150, tol: float = SOLVED_RELATIVE
) -> Solved:
    """The loop in NumPy, all problems side by side, one start for each.

    Parameters
    ----------
    residual_jac : callable
        ``residual_jac(w (k, p), which (k,))`` returns ``r (k, c)`` and
        ``J (k, c, p)`` of the problems ``which``.
    w0 : array_like (K, p)
    size : array_like (K,)
        Norm of the labels, to which the residual is relative; positive.
    most : int
        Most steps.
    tol : float
        Relative residual that is enough.

    Returns
    -------
    Solved
        With one start: shapes ``(K, 1, p)`` and ``(K, 1)``.

    Raises
    ------
    ValueError
        If a start is not finite, ``size`` not positive, or ``tol`` or
        ``most`` out of range.

    Notes
    -----
    Source: ours; the method is Levenberg's and Marquardt's.

    Examples
    --------
    >>> def square(w, which):
    ...     return w**2 - 4, 2 * w[:, :, None]
    >>> levenberg_marquardt(square, [[1.0]], [4.0]).w.ravel().round(9)
    array([2.])
    """
    w, size = (a.copy() for a in check_finite(w0=w0, size=size))
    if w.ndim != 2 or size.shape != w.shape[:1] or not (size > 0).all():
        raise ValueError(
            "w0 must be (K, p) and size (K,) with positive entries, got "
            f"{w.shape} and {size.shape}"
        )
    _check_loop(most, tol)
    K, p = w.shape
    which = np.arange(K)
    r, J = residual_jac(w, which)
    f = (r**2).sum(axis=1)
    damping, steps = np.full(K, FIRST), np.zeros(K, dtype=np.int64)
    goal = (tol * size) ** 2
    for _ in range(most):
        A = np.swapaxes(J, 1, 2) @ J
        g = np.einsum("kcp,kc->kp", J, r)
        trace = np.trace(A, axis1=1, axis2=2)
        here = f[which]
        going = (here > goal[which]) & (damping[which] < LARGEST_DAMPING)
        going &= (g**2).sum(axis=1) > STATIONARY_COSINE**2 * trace * here
        which, r, J, A = which[going], r[going], J[going], A[going]
        g, trace = g[going], trace[going]
        if not which.size:
            break
        shift = damping[which] * trace / p + DAMPING_FLOOR
        delta = solve_each(A + shift[:, None, None] * np.eye(p), -g)
        steps[which] += 1  # a singular system is a step that is refused
        trial = w[which] + np.where(np.isfinite(delta), delta, 0.0)
        r2, J2 = residual_jac(trial, which)
        f2 = (r2**2).sum(axis=1)
        better = f2 < f[which]
        won = which[better]
        w[won], f[won] = trial[better], f2[better]
        r[better], J[better] = r2[better], J2[better]
        damping[which] *= np.where(better, DOWN, UP)
    residual = np.sqrt(f) / size
    return Solved(w[:, None], residual[:, None], steps[:, None])


def _check_loop(most, tol) -> None:
    check_sizes(most=most)
    if not 0 < tol < 1:
        raise ValueError(f"tol must lie in (0, 1), got {tol}")


def _use_compiled(compiled, p: int) -> bool:
    if compiled and not levenberg_compiled.AVAILABLE:
        raise ValueError("compiled must be None or False without numba")
    if compiled is None:
        return levenberg_compiled.AVAILABLE and p <= MOST_COMPILED
    return compiled


def _start_by_start(residual_jac, starts, size, most, tol) -> Solved:
    ends = [
        levenberg_marquardt(residual_jac, starts[:, s], size, most, tol)
        for s in range(starts.shape[1])
    ]
    return Solved(
        *(
            np.concatenate([getattr(e, n) for e in ends], 1)
            for n in Solved._fields
        )
    )


def _starts(starts, K: int, p: int) -> np.ndarray:
    (starts,) = check_finite(starts=starts)
    if starts.ndim != 3 or starts.shape[::2] != (K, p) or not starts.shape[1]:
        raise ValueError(
            f"starts must have shape ({K}, S, {p}), got {starts.shape}"
        )
    return np.ascontiguousarray(starts)


def solve_quadratics(
    Q,
    linear,
    constant,
    starts,
    most: int = 150,
    tol: float = SOLVED_RELATIVE,
    compiled: bool | None = None,
) -> Solved:
    r"""Real solutions of :math:`w^\top Q_i w + l_i\cdot w + c_i = 0`.

    Parameters
    ----------
    Q : array_like (K, c, p, p)
        Symmetric.
    linear : array_like (K, c, p)
    constant : array_like (K, c)
        Residuals are relative to its norm, which must be positive.
    starts : array_like (K, S, p)
    most, tol
        As :func:`levenberg_marquardt`.
    compiled : bool, optional
        By default if numba is installed and there are at most
        ``MOST_COMPILED`` unknowns.

    Returns
    -------
    Solved

    Raises
    ------
    ValueError
        If shapes do not fit, an entry is not finite, a ``Q`` is not
        symmetric or a constant is zero.

    Notes
    -----
    Cost a step :math:`O(cp^2+p^3)`. Source: ours.

    Examples
    --------
    The circle and a line: w = (3/5, 4/5) or its mirror image.

    >>> Q = [[np.eye(2), np.zeros((2, 2))]]
    >>> done = solve_quadratics(Q, [[[0, 0], [4.0, -3.0]]], [[-1.0, 0.0]],
    ...                         [[[1.0, 1.0]]])
    >>> done.w.round(6).tolist()
    [[[0.6, 0.8]]]
    """
    Q, linear, constant = check_finite(Q=Q, linear=linear, constant=constant)
    if Q.ndim != 4 or Q.shape != (*linear.shape, linear.shape[-1]):
        raise ValueError(
            "Q must be (K, c, p, p) and linear (K, c, p), got "
            f"{Q.shape} and {linear.shape}"
        )
    if constant.shape != linear.shape[:2]:
        raise ValueError(
            f"constant must have shape {linear.shape[:2]}, got "
            f"{constant.shape}"
        )
    if not np.array_equal(Q, np.swapaxes(Q, -1, -2)):
        raise ValueError("Q must be symmetric in its last two axes")
    size = np.linalg.norm(constant, axis=1)
    if not (size > 0).all():
        raise ValueError("constant must not be zero for any problem")
    K, _, p = linear.shape
    starts = _starts(starts, K, p)
    _check_loop(most, tol)
    if _use_compiled(compiled, starts.shape[2]):
        w, f, steps = levenberg_compiled.quadratic_lm(
            Q, linear, constant, starts, most, tol, RULES
        )
        return Solved(w, np.sqrt(f) / size[:, None], steps)

    def residual_jac(w, which):
        half = np.einsum("kcpq,kq->kcp", Q[which], w)
        r = np.einsum("kcp,kp->kc", half + linear[which], w)
        return r + constant[which], 2 * half + linear[which]

    return _start_by_start(residual_jac, starts, size, most, tol)


def _labels(Y, K, allocation, shape):
    (Y,) = check_finite(Y=Y)
    rows, cols = check_allocation(allocation, shape)
    rows, cols = (np.broadcast_to(a, (K, a.shape[-1])) for a in (rows, cols))
    size = np.linalg.norm(Y.reshape(K, -1), axis=1)
    if not (size > 0).all():
        raise ValueError("Y must not be zero for any problem")
    return Y, np.ascontiguousarray(rows), np.ascontiguousarray(cols), size


def solve_recurrent(
    net: LinearRNN,
    X,
    Y,
    allocation: Allocation,
    starts,
    most: int = 150,
    tol: float = SOLVED_RELATIVE,
    compiled: bool | None = None,
) -> Solved:
    r"""Choose entries of ``W`` such that a linear RNN has the labels ``Y``.

    Parameters
    ----------
    net : LinearRNN
        Students, stacked: ``B (K, n, b)``, ``W (K, n, n)``, ``D (K, d, n)``.
    X : array_like (K, T, b, m)
    Y : array_like (K, d, m)
        Not all zero for any problem.
    allocation : Allocation
        ``(p,)`` or ``(K, p)``.
    starts : array_like (K, S, p)
    most, tol, compiled
        As :func:`solve_quadratics`.

    Returns
    -------
    Solved

    Raises
    ------
    ValueError
        If an argument does not fit.

    Notes
    -----
    Source: ours.

    Examples
    --------
    >>> from helpers.allocation.networks import (sample_lrnn)
    >>> teacher, student = sample_lrnn(5, 4, 2, 1, 0), sample_lrnn(5, 4, 2, 1, 1)
    >>> X = np.random.default_rng(2).normal(size=(5, 2, 2, 1))
    >>> Y = lrnn_forward(teacher, X)
    >>> done = solve_recurrent(student, X, Y, Allocation([0], [1]),
    ...                        draw_starts(5, 3, 1, 3))
    >>> bool(done.matched.all())  # T = 2 is linear
    True
    """
    net = check_lrnn(net)
    (X,) = check_finite(X=X)
    K, n, _ = net.B.shape
    Y, rows, cols, size = _labels(Y, K, allocation, (n, n))
    starts = _starts(starts, K, rows.shape[1])
    _check_loop(most, tol)
    if _use_compiled(compiled, starts.shape[2]):
        arrays = (net.B, net.W, net.D, X, Y)
        w, f, steps = levenberg_compiled.recurrent_lm(
            *map(np.ascontiguousarray, arrays),
            rows, cols, starts, most, tol, RULES,
        )  # fmt: skip
        return Solved(w, np.sqrt(f) / size[:, None], steps)

    def residual_jac(w, which):
        mine = Allocation(rows[which], cols[which])
        W = with_entries(net.W[which], mine, w)
        now = LinearRNN(net.B[which], W, net.D[which])
        r = lrnn_forward(now, X[which]) - Y[which]
        return r.reshape(len(which), -1), lrnn_jacobian(now, X[which], mine)

    return _start_by_start(residual_jac, starts, size, most, tol)


def solve_shallow(
    net: ShallowReLU,
    X,
    Y,
    allocation: Allocation,
    starts,
    activation: str = "relu",
    slope: float = 0.1,
    most: int = 150,
    tol: float = SOLVED_RELATIVE,
    compiled: bool | None = None,
) -> Solved:
    r"""Choose entries of the first layer such that the labels are ``Y``.

    Parameters
    ----------
    net : ShallowReLU
        Students, stacked: ``B (K, n, b)``, ``D (K, d, n)``.
    X : array_like (K, b, m)
    Y : array_like (K, d, m)
    allocation : Allocation
        ``(p,)`` or ``(K, p)``.
    starts : array_like (K, S, p)
    activation : {"relu", "leaky", "tanh", "linear"}
    slope : float
        Of "leaky" on the negative side.
    most, tol, compiled
        As :func:`solve_quadratics`.

    Returns
    -------
    Solved

    Raises
    ------
    ValueError
        If an argument does not fit or the activation is unknown.

    Notes
    -----
    Source: ours.

    Examples
    --------
    >>> net = ShallowReLU(np.ones((1, 1, 1)), np.ones((1, 1, 1)))
    >>> done = solve_shallow(net, [[[2.0]]], [[[6.0]]], Allocation([0], [0]),
    ...                      [[[1.0]]])
    >>> done.w.ravel().round(9)
    array([3.])
    """
    if activation not in ACTIVATIONS:
        raise ValueError(
            f"activation must be one of {list(ACTIVATIONS)}, got "
            f"{activation!r}"
        )
    B, D, X = check_finite(B=net.B, D=net.D, X=X)
    K = B.shape[0]
    Y, rows, cols, size = _labels(Y, K, allocation, B.shape[-2:])
    starts = _starts(starts, K, rows.shape[1])
    _check_loop(most, tol)
    kind, leak = ACTIVATIONS[activation], slope * (activation == "leaky")
    if _use_compiled(compiled, starts.shape[2]):
        w, f, steps = levenberg_compiled.shallow_lm(
            *map(np.ascontiguousarray, (B, D, X, Y)),
            rows, cols, kind, leak, starts, most, tol, RULES,
        )  # fmt: skip
        return Solved(w, np.sqrt(f) / size[:, None], steps)

    def value(z):
        if kind == 2:
            return np.tanh(z)
        return z if kind == 3 else np.where(z > 0, z, leak * z)

    def derivative(z):
        if kind == 2:
            return 1 - np.tanh(z) ** 2
        return np.ones_like(z) if kind == 3 else np.where(z > 0, 1.0, leak)

    def residual_jac(w, which):
        mine = Allocation(rows[which], cols[which])
        now = ShallowReLU(with_entries(B[which], mine, w), D[which])
        r = relu_forward(now, X[which], value) - Y[which]
        J = relu_jacobian(now, X[which], mine, derivative)
        return r.reshape(len(which), -1), J

    return _start_by_start(residual_jac, starts, size, most, tol)
