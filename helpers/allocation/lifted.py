r"""Levenberg-Marquardt on the lifted system: multiple shooting.

The states of the learned rows are unknowns beside the weights. Every equation
is then at most quadratic, and a start may violate the dynamics; there are
more unknowns. One start a problem, problems side by side.
"""

from __future__ import annotations

import numpy as np

from helpers.allocation.allocations import (
    Allocation,
    check_allocation,
    with_entries,
)
from helpers.allocation.levenberg import Solved, levenberg_marquardt
from helpers.allocation.matching import Problems
from helpers.allocation.networks import check_lrnn, lrnn_forward, lrnn_states
from helpers.core.checks import check_finite
from helpers.core.tolerances import SOLVED_RELATIVE


class LiftedSystem:
    r"""Residual and Jacobian in :math:`(w, U_2, \dots, U_T)`, batched.

    Parameters
    ----------
    problems : Problems
        ``K`` students, inputs and labels.
    allocation : Allocation
        Of ``W``, ``(p,)`` or ``(K, p)``, the same number of learned rows in
        each problem.

    Raises
    ------
    ValueError
        If shapes do not fit or numbers of learned rows differ.

    Notes
    -----
    The equations are those of
    :func:`~helpers.allocation.lift.lifted_residual`, in its order. Source:
    ours (section 2.8 of the
    reconstruction).

    Examples
    --------
    >>> from helpers.allocation.matching import recurrent_problems
    >>> draws = recurrent_problems(3, 6, 2, 2, 3, 2, 0)
    >>> system = LiftedSystem(draws, Allocation([0, 1, 0, 1], [0, 1, 2, 3]))
    >>> z = system.start([[1.0, 1, 1, 1]] * 3)
    >>> r, J = system(z, [0, 1, 2])
    >>> r.shape, J.shape
    ((3, 12), (3, 12, 12))
    """

    def __init__(self, problems: Problems, allocation: Allocation):
        net = check_lrnn(problems.student)
        X, Y = check_finite(X=problems.X, Y=problems.Y)
        if net.W.ndim != 3 or X.ndim != 4 or X.shape[1] < 2:
            raise ValueError(
                "problems must be stacked, with at least two steps; got W "
                f"{net.W.shape} and X {X.shape}"
            )
        self.K, n = net.W.shape[:2]
        rows, cols = check_allocation(allocation, (n, n))
        shape = (self.K, rows.shape[-1])
        self.rows, self.cols = (
            np.broadcast_to(a, shape) for a in (rows, cols)
        )
        sets = [np.unique(r) for r in self.rows]
        if len({s.size for s in sets}) != 1 or not sets[0].size:
            raise ValueError(
                "allocation must learn the same number of rows, at least "
                "one, in each problem"
            )
        self.learned = np.stack(sets)
        self.place = (self.rows[:, :, None] == self.learned[:, None]).argmax(2)
        self.net, self.X, self.Y = net, X, Y
        self.T, self.m, self.p = X.shape[1], X.shape[3], shape[1]
        self.k = self.learned.shape[1]
        self.V = net.W.copy()
        self.V[np.arange(self.K)[:, None], self.learned] = 0
        self.driven = net.B[:, None] @ X
        # V^s E_S for s = 0 .. T - 2, and what the output sees of it
        unit = np.zeros((self.K, n, self.k))
        np.put_along_axis(unit, self.learned[:, None], 1.0, axis=1)
        self.reach = [unit]
        for _ in range(self.T - 2):
            self.reach.append(self.V @ self.reach[-1])

    @property
    def size(self) -> np.ndarray:
        """Norm of the labels, ``(K,)``."""
        return np.linalg.norm(self.Y.reshape(self.K, -1), axis=1)

    def start(self, w) -> np.ndarray:
        """Weights ``(K, p)`` and the states that they lead to."""
        (w,) = check_finite(w=w)
        if w.shape != (self.K, self.p):
            raise ValueError(
                f"w must have shape {(self.K, self.p)}, got {w.shape}"
            )
        mine = Allocation(self.rows, self.cols)
        net = self.net._replace(W=with_entries(self.net.W, mine, w))
        h = lrnn_states(net, self.X)[:, 1:]
        index = self.learned[:, None, :, None]
        U = np.take_along_axis(h, np.broadcast_to(
            index, (self.K, self.T - 1, self.k, self.m)), axis=2)  # fmt: skip
        return np.concatenate([w, U.reshape(self.K, -1)], axis=1)

    def forward_residual(self, z) -> np.ndarray:
        """Residual of the network with weights ``z[:, :p]``, relative."""
        mine = Allocation(self.rows, self.cols)
        W = with_entries(self.net.W, mine, np.asarray(z)[:, : self.p])
        Y = lrnn_forward(self.net._replace(W=W), self.X)
        missing = (Y - self.Y).reshape(self.K, -1)
        return np.linalg.norm(missing, axis=1) / self.size

    def __call__(self, z, which):
        """``r (q, c)`` and ``J (q, c, u)`` of the problems ``which``."""
        which = np.asarray(which)
        q, k, m, T, p = which.size, self.k, self.m, self.T, self.p
        each = np.arange(q)[:, None]
        w, U = z[:, :p], z[:, p:].reshape(q, T - 1, k, m)
        learned, place = self.learned[which], self.place[which]
        cols, V, D = self.cols[which], self.V[which], self.net.D[which]
        WS = np.take_along_axis(
            self.net.W[which], learned[:, :, None], axis=1
        )  # a copy
        WS[each, place, cols] = w
        d, n = D.shape[1:]
        h = self.driven[which, 0]
        lead = (T - 1) * k * m
        r = np.empty((q, lead + d * m))
        J = np.zeros((q, lead + d * m, p + lead))
        blocks = J[:, :lead].reshape(q, T - 1, k, m, p + lead)
        same = np.arange(m)
        reach = [R[which] for R in self.reach]
        for t in range(1, T):
            driven = self.driven[which, t]
            moved = WS @ h + np.take_along_axis(
                driven, learned[:, :, None], axis=1
            )
            r[:, (t - 1) * k * m : t * k * m] = (U[:, t - 1] - moved).reshape(
                q, -1
            )
            seen = np.take_along_axis(h, cols[:, :, None], axis=1)
            blocks[each, t - 1, place, :, np.arange(p)] = -seen
            states = blocks[:, t - 1, :, :, p:].reshape(q, k, m, T - 1, k, m)
            for s in range(1, t + 1):
                gain = np.eye(k) if s == t else -WS @ reach[t - 1 - s]
                states[:, :, same, s - 1, :, same] = gain
            blocks[:, t - 1, :, :, p:] = states.reshape(q, k, m, lead)
            h = V @ h + driven
            h[each, learned] = U[:, t - 1]
        r[:, lead:] = (D @ h - self.Y[which]).reshape(q, -1)
        out = np.zeros((q, d, m, T - 1, k, m))
        for s in range(1, T):
            out[:, :, same, s - 1, :, same] = D @ reach[T - 1 - s]
        J[:, lead:, p:] = out.reshape(q, d * m, lead)
        return r, J


def solve_lifted(
    problems: Problems,
    allocation: Allocation,
    starts,
    most: int = 150,
    tol: float = SOLVED_RELATIVE,
) -> Solved:
    """Levenberg-Marquardt on the lifted system from each start.

    Parameters
    ----------
    problems : Problems
    allocation : Allocation
        As :class:`LiftedSystem`.
    starts : array_like (K, S, p)
        Weights; the states begin where these weights lead.
    most, tol
        As :func:`~helpers.allocation.levenberg.levenberg_marquardt`.

    Returns
    -------
    Solved
        ``residual`` is that of the network run forward with the weights.

    Raises
    ------
    ValueError
        If an argument does not fit.

    Notes
    -----
    Cost a step :math:`O((p+km(T-1))^3)`. Source: ours (section 5 of the
    reconstruction).

    Examples
    --------
    Two steps make a linear system.

    >>> from helpers.allocation.matching import recurrent_problems
    >>> draws = recurrent_problems(4, 5, 2, 1, 2, 2, 0)
    >>> done = solve_lifted(draws, Allocation([0, 0], [1, 2]),
    ...                     np.ones((4, 1, 2)))
    >>> done.matched.all()
    np.True_
    """
    system = LiftedSystem(problems, allocation)
    (starts,) = check_finite(starts=starts)
    if starts.ndim != 3 or starts.shape[::2] != (system.K, system.p):
        raise ValueError(
            f"starts must have shape ({system.K}, S, {system.p}), got "
            f"{starts.shape}"
        )
    w, residual, steps = [], [], []
    for s in range(starts.shape[1]):
        begin = system.start(starts[:, s])
        done = levenberg_marquardt(system, begin, system.size, most, tol)
        z = done.w[:, 0]
        w.append(z[:, : system.p])
        residual.append(system.forward_residual(z))
        steps.append(done.steps[:, 0])
    return Solved(*(np.stack(part, axis=1) for part in (w, residual, steps)))
