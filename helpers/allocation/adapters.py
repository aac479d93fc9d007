r"""Low-rank adapters: a frozen matrix plus a learned :math:`UV^\top`.

All entries of :math:`U\in\mathbb R^{n_1\times r}` and
:math:`V\in\mathbb R^{n_0\times r}` learn. What the labels can do is
limited by the rank :math:`r`, not by the number of parameters.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from helpers.allocation.factors import Equations
from helpers.allocation.networks import (
    LinearRNN,
    check_lrnn,
    lffn_forward,
    lrnn_forward,
    lrnn_states,
    observability_matrix,
)
from helpers.core.checks import check_finite, check_sizes
from helpers.core.randomness import Seed, as_generator

__all__ = [
    "AdapterMatch",
    "Ends",
    "adapter_equations",
    "adapter_rank_cap",
    "adapter_residuals",
    "frozen_side",
    "layer_adapter_match",
    "layer_ends",
    "low_rank_adapter_jacobian",
    "recurrent_adapter_cap",
    "recurrent_adapter_match",
    "recurrent_ends",
]


class AdapterMatch(NamedTuple):
    """Factors ``U (n_1, r)``, ``V (n_0, r)`` and the relative residual of
    the network run forward."""

    U: np.ndarray
    V: np.ndarray
    residual: float


class Ends(NamedTuple):
    """What lies around an adapter: ``left (..., S, d, n_1)`` after it,
    ``right (..., S, n_0, m)`` before it, at each of its ``S`` uses."""

    left: np.ndarray
    right: np.ndarray


def _factors(U, V, n1: int, n0: int):
    U, V = check_finite(U=U, V=V)
    if (
        min(U.ndim, V.ndim) < 2
        or U.shape[-2] != n1
        or V.shape[-2] != n0
        or U.shape[-1] != V.shape[-1]
        or not U.shape[-1]
    ):
        raise ValueError(
            f"U must be ({n1}, r) and V ({n0}, r) with one r >= 1, got "
            f"{U.shape} and {V.shape}"
        )
    return U, V


def _check_index(layers, index) -> None:
    if index not in range(len(layers)):
        raise ValueError(f"index must be below {len(layers)}, got {index!r}")


def layer_ends(layers, X, index: int) -> Ends:
    """What lies around one layer of a linear feedforward network.

    Parameters
    ----------
    layers : list of array_like (..., n_l, n_{l-1})
    X : array_like (..., n_0, m)
    index : int
        Of the layer with the adapter, from 0.

    Raises
    ------
    ValueError
        If shapes do not fit or there is no such layer.

    Notes
    -----
    Source: ours.

    Examples
    --------
    >>> ends = layer_ends([[[2.0]], [[3.0]]], [[1.0, 0.5]], 1)
    >>> ends.left.tolist(), ends.right.tolist()
    ([[[1.0]]], [[[2.0, 1.0]]])
    """
    _check_index(layers, index)
    lffn_forward(layers, X)
    Z = lffn_forward(layers[:index], X) if index else np.asarray(X, float)
    P = np.eye(np.shape(layers[-1])[-2])
    for W in layers[:index:-1]:
        P = P @ np.asarray(W, dtype=np.float64)
    return Ends(P[..., None, :, :], Z[..., None, :, :])


def recurrent_ends(net: LinearRNN, X, U, V) -> Ends:
    r"""What lies around an adapter of ``W`` at each step.

    Left :math:`D(W+UV^\top)^{T-1-s}`, right :math:`h_s`, at
    :math:`s=1,\dots,T-1`.

    Parameters
    ----------
    net : LinearRNN
        Without the adapter.
    X : array_like (..., T, b, m)
        At least two steps.
    U, V : array_like (..., n, r)

    Raises
    ------
    ValueError
        If shapes do not fit or there is one step only.

    Notes
    -----
    Source: ours.

    Examples
    --------
    >>> net = LinearRNN([[1.0]], [[0.5]], [[2.0]])
    >>> ends = recurrent_ends(net, np.ones((3, 1, 1)), [[0.0]], [[0.0]])
    >>> ends.left.ravel().tolist(), ends.right.ravel().tolist()
    ([1.0, 2.0], [1.0, 1.5])
    """
    net = check_lrnn(net)
    n, d = net.W.shape[-1], net.D.shape[-2]
    U, V = _factors(U, V, n, n)
    now = LinearRNN(net.B, net.W + U @ np.swapaxes(V, -1, -2), net.D)
    h = lrnn_states(now, X)
    T = h.shape[-3]
    if T < 2:
        raise ValueError(f"X must have at least two steps, got {T}")
    onward = observability_matrix(now, T - 1)
    onward = onward.reshape(*onward.shape[:-2], T - 1, d, n)
    return Ends(onward, h[..., :-1, :, :])


def low_rank_adapter_jacobian(ends: Ends, U, V) -> np.ndarray:
    r"""Jacobian of the labels in all entries of :math:`U` and :math:`V`.

    Columns :math:`\sum_s L_se_i\otimes(V^\top R_s)_{a,:}` for
    :math:`U_{ia}`, then
    :math:`\sum_s L_sU_{:,a}\otimes(R_s)_{c,:}` for :math:`V_{ca}`.

    Parameters
    ----------
    ends : Ends
        From :func:`layer_ends` or :func:`recurrent_ends`.
    U : array_like (..., n_1, r)
    V : array_like (..., n_0, r)

    Returns
    -------
    numpy.ndarray (..., d m, (n_1 + n_0) r)
        Labels row by row; entries of ``U`` row by row, then those of ``V``.

    Raises
    ------
    ValueError
        If shapes do not fit.

    Notes
    -----
    Source: ours (section 2.15 of the reconstruction).

    Examples
    --------
    >>> ends = layer_ends([[[2.0]], [[3.0]]], [[1.0, 0.5]], 0)
    >>> low_rank_adapter_jacobian(ends, [[5.0]], [[7.0]])
    array([[21. , 15. ],
           [10.5,  7.5]])
    """
    left, right = ends
    U, V = _factors(U, V, left.shape[-1], right.shape[-2])
    fed = np.swapaxes(V, -1, -2)[..., None, :, :] @ right
    led = left @ U[..., None, :, :]
    in_U = np.einsum("...sdi,...sac->...dcia", left, fed)
    in_V = np.einsum("...sda,...skc->...dcka", led, right)
    parts = [J.reshape(*J.shape[:-4], J.shape[-4] * J.shape[-3], -1)
             for J in (in_U, in_V)]  # fmt: skip
    return np.concatenate(parts, axis=-1)


def adapter_rank_cap(d: int, m: int, r: int) -> int:
    r"""Rank of an adapter of one layer: :math:`\rho(d+m-\rho)`,
    :math:`\rho=\min(r,d,m)`.

    Parameters
    ----------
    d, m, r : int
        Outputs, examples, rank of the adapter.

    Raises
    ------
    ValueError
        If a size is not a positive whole number.

    Notes
    -----
    The dimension of the matrices of rank :math:`\rho`. Reached for generic
    weights without a bottleneck. Source: ours.

    Examples
    --------
    >>> [adapter_rank_cap(4, 5, r) for r in (1, 2, 3, 4, 5)]
    [8, 14, 18, 20, 20]
    """
    check_sizes(d=d, m=m, r=r)
    rho = min(r, d, m)
    return rho * (d + m - rho)


def recurrent_adapter_cap(n: int, d: int, T: int, m: int, r: int) -> int:
    r"""An upper bound on the rank of an adapter of ``W``.

    .. math:: \min\{\rho(\bar d+m-\rho),\ r(2n-r)\},\quad
        \rho=\min(r(T-1),\bar d,m),\quad \bar d=\min(d,n)

    Parameters
    ----------
    n, d, T, m, r : int
        Neurons, outputs, steps (at least 2), examples, rank (at most ``n``).

    Raises
    ------
    ValueError
        If a size is out of range.

    Notes
    -----
    Not tight for fewer inputs than examples. Source: ours (section 2.15 of
    the reconstruction).

    Examples
    --------
    >>> [recurrent_adapter_cap(12, 6, 3, 6, r) for r in (1, 2, 3)]
    [20, 32, 36]
    """
    check_sizes(n=n, d=d, m=m, r=r)
    check_sizes(steps_after_the_first=T - 1)
    if r > n:
        raise ValueError(f"r must be at most n = {n}, got {r}")
    return min(adapter_rank_cap(min(d, n), m, r * (T - 1)), r * (2 * n - r))


def layer_adapter_match(layers, X, Y, index: int, r: int) -> AdapterMatch:
    r"""The best adapter of a layer, by a truncated singular value
    decomposition.

    With :math:`P` after and :math:`Z` before the layer the adapter adds
    :math:`PUV^\top Z`. If :math:`P` has full row and :math:`Z` full column
    rank, these are all matrices of rank at most :math:`r`, and the nearest to
    what is missing is its truncated decomposition.

    Parameters
    ----------
    layers : list of array_like (n_l, n_{l-1})
        One student.
    X : array_like (n_0, m)
    Y : array_like (d, m)
        Not zero.
    index : int
        Of the layer, from 0.
    r : int
        Rank.

    Returns
    -------
    AdapterMatch
        Minimal residual among all adapters of this rank, if there is no
        bottleneck; ``U`` and ``V`` are balanced and of least norm.

    Raises
    ------
    ValueError
        If shapes do not fit, ``Y`` is zero, or the layer is a bottleneck:
        fewer neurons than outputs after it or fewer than examples before.

    Notes
    -----
    Source: ours; optimality is the theorem of Eckart and Young.

    Examples
    --------
    >>> layers = [np.eye(2), np.eye(2)]
    >>> goal = np.eye(2) + np.diag([3.0, 4.0])
    >>> found = layer_adapter_match(layers, np.eye(2), goal, 1, 1)
    >>> (found.U @ found.V.T).round(9).tolist()  # 3 is left
    [[0.0, 0.0], [0.0, 4.0]]
    """
    check_sizes(r=r)
    (Y,) = check_finite(Y=Y)
    left, right = layer_ends(layers, X, index)
    P, Z = left[0], right[0]
    size = np.linalg.norm(Y)
    if Y.shape != (P.shape[0], Z.shape[1]) or not size > 0:
        raise ValueError(
            f"Y must be ({P.shape[0]}, {Z.shape[1]}) and not zero, got shape "
            f"{Y.shape}"
        )
    ranks = np.linalg.matrix_rank(P), np.linalg.matrix_rank(Z)
    if ranks != (Y.shape[0], Y.shape[1]):
        raise ValueError(
            f"the network around layer {index} must have ranks {Y.shape}, "
            f"got {tuple(int(v) for v in ranks)}"
        )
    missing = Y - lffn_forward(layers, X)
    a, s, bt = np.linalg.svd(missing, full_matrices=False)
    root = np.sqrt(s[:r])
    U = np.linalg.pinv(P) @ (a[:, :r] * root)
    V = np.linalg.pinv(Z).T @ (bt[:r].T * root)
    pad = ((0, 0), (0, max(0, r - s.size)))
    U, V = np.pad(U, pad), np.pad(V, pad)
    now = list(layers)
    now[index] = np.asarray(layers[index], float) + U @ V.T
    gap = np.linalg.norm(lffn_forward(now, X) - Y)
    return AdapterMatch(U, V, float(gap / size))


def adapter_residuals(problems, index: int, ranks) -> np.ndarray:
    """Smallest residuals of adapters of one layer, over draws.

    Parameters
    ----------
    problems : LayerProblems
        As :func:`helpers.allocation.factors.layer_problems` draws them.
    index : int
        Of the layer, from 0.
    ranks : sequence of int

    Returns
    -------
    numpy.ndarray (K, len(ranks))
        Relative to the labels.

    Raises
    ------
    ValueError
        As :func:`layer_adapter_match`.

    Notes
    -----
    Source: ours.

    Examples
    --------
    >>> from helpers.allocation.factors import layer_problems
    >>> gaps = adapter_residuals(layer_problems(3, [4, 4, 2], 3, 0), 0, [1, 2])
    >>> (gaps < 1e-8).tolist()
    [[False, True], [False, True], [False, True]]
    """
    layers, X, Y = problems
    return np.array(
        [
            [
                layer_adapter_match(
                    [W[i] for W in layers], X[i], Y[i], index, r
                ).residual
                for r in ranks
            ]
            for i in range(len(Y))
        ]
    )


def frozen_side(n: int, b: int, d: int, T: int, m: int, r: int) -> str | None:
    r"""Which factor of an adapter of ``W`` may stay random in a match.

    Parameters
    ----------
    n, b, d, T, m, r : int
        Neurons, inputs, outputs, steps, examples, rank.

    Returns
    -------
    str or None
        "U" if :math:`r(T-1)\ge d`, :math:`b\ge m` and
        :math:`n\ge\max(d,m(T-1))`; else "V" if :math:`r(T-1)\ge m`,
        :math:`b\ge m` and :math:`n\ge\max(m,d(T-1))`; else None.

    Raises
    ------
    ValueError
        If a size is not positive.

    Notes
    -----
    Source: ours.

    Examples
    --------
    >>> [frozen_side(8, 4, 4, 3, 4, r) for r in (1, 2)]
    [None, 'U']
    """
    check_sizes(n=n, b=b, d=d, T=T, m=m, r=r)
    if b >= m and r * (T - 1) >= d and n >= max(d, m * (T - 1)):
        return "U"
    if b >= m and r * (T - 1) >= m and n >= max(m, d * (T - 1)):
        return "V"
    return None


def recurrent_adapter_match(
    net: LinearRNN, X, Y, r: int, rng: Seed
) -> AdapterMatch:
    r"""An adapter of ``W`` that matches, by linear systems.

    With :math:`U` random, the labels fix the signals
    :math:`A_t=V^\top h_t`, these fix the states, and
    :math:`V^\top[h_1,\dots,h_{T-1}]=[A_1,\dots,A_{T-1}]` is linear in
    :math:`V`. With :math:`V` random, the same upside down. See
    :func:`frozen_side`.

    Parameters
    ----------
    net : LinearRNN
        One student.
    X : array_like (T, b, m)
    Y : array_like (d, m)
        Not zero.
    r : int
    rng : seed or Generator
        For the factor that stays random.

    Returns
    -------
    AdapterMatch

    Raises
    ------
    ValueError
        If neither side applies or shapes do not fit.

    Notes
    -----
    Source: ours.

    Examples
    --------
    >>> from helpers.allocation.matching import recurrent_problems
    >>> net, X, Y = recurrent_problems(1, 8, 4, 4, 3, 4, 0)
    >>> one = LinearRNN(*(M[0] for M in net))
    >>> recurrent_adapter_match(one, X[0], Y[0], 2, 1).residual < 1e-8
    True
    """
    net = check_lrnn(net)
    X, Y = check_finite(X=X, Y=Y)
    if X.ndim != 3 or net.W.ndim != 2:
        raise ValueError(
            f"X must be (T, b, m) and the network one, got {X.shape} and "
            f"{net.W.shape}"
        )
    (T, b, m), (d, n) = X.shape, net.D.shape
    if Y.shape != (d, m) or not np.linalg.norm(Y) > 0:
        raise ValueError(f"Y must be ({d}, {m}) and not zero, got {Y.shape}")
    side = frozen_side(n, b, d, T, m, r)
    if side is None:
        raise ValueError(
            "r (T - 1) must reach d or m, with b >= m and n large enough, "
            f"got n = {n}, b = {b}, d = {d}, T = {T}, m = {m}, r = {r}"
        )
    rng = as_generator(rng)
    kept = rng.normal(size=(n, r)) / np.sqrt(n)
    solve = _solve_V if side == "U" else _solve_U
    other = solve(net, X, Y - lrnn_forward(net, X), kept, rng)
    U, V = (kept, other) if side == "U" else (other, kept)
    now = LinearRNN(net.B, net.W + U @ V.T, net.D)
    gap = np.linalg.norm(lrnn_forward(now, X) - Y) / np.linalg.norm(Y)
    return AdapterMatch(U, V, float(gap))


def _towards(G, goal, rng) -> np.ndarray:
    """A random solution of ``G A = goal``, the nearest to a random draw."""
    A = rng.normal(size=(G.shape[1], goal.shape[1]))
    return A + np.linalg.lstsq(G, goal - G @ A)[0]


def _solve_V(net, X, missing, U, rng) -> np.ndarray:
    T, r = X.shape[0], U.shape[1]
    onward = [net.D]
    for _ in range(T - 2):
        onward.append(onward[-1] @ net.W)
    G = np.concatenate([M @ U for M in onward], axis=1)
    A = _towards(G, missing, rng).reshape(T - 1, r, -1)[::-1]
    h = [net.B @ X[0]]
    for t in range(1, T - 1):
        h.append(net.W @ h[-1] + U @ A[t - 1] + net.B @ X[t])
    H, goal = np.concatenate(h, axis=1), np.concatenate(list(A), axis=1)
    return np.linalg.lstsq(H.T, goal.T)[0]


def _solve_U(net, X, missing, V, rng) -> np.ndarray:
    T, r = X.shape[0], V.shape[1]
    h = lrnn_states(net, X)[-2::-1]
    G = np.concatenate([V.T @ state for state in h])
    E = _towards(G.T, missing.T, rng).T
    E = [E[:, s * r : (s + 1) * r] for s in range(T - 1)]
    M = [net.D]
    for s in range(T - 2):
        M.append(M[-1] @ net.W + E[s] @ V.T)
    return np.linalg.lstsq(np.concatenate(M), np.concatenate(E))[0]


def adapter_equations(problems, r: int) -> Equations:
    """The match of an adapter of ``W``, for Levenberg-Marquardt.

    Parameters
    ----------
    problems : Problems
        As :func:`helpers.allocation.matching.recurrent_problems` draws them.
    r : int

    Returns
    -------
    Equations
        Unknowns ``U`` row by row, then ``V``; :math:`2nr` of them.

    Raises
    ------
    ValueError
        If ``r`` is not positive or shapes do not fit.

    Notes
    -----
    Source: ours.

    Examples
    --------
    >>> from helpers.allocation.matching import recurrent_problems
    >>> made = adapter_equations(recurrent_problems(3, 4, 2, 1, 2, 2, 0), 1)
    >>> made.p, made.residual_jac(np.ones((3, 8)), np.arange(3))[1].shape
    (8, (3, 2, 8))
    """
    check_sizes(r=r)
    net, X, Y = problems
    X, Y = check_finite(X=X, Y=Y)
    n = net.W.shape[-1]
    size = np.linalg.norm(Y.reshape(len(Y), -1), axis=1)
    if not (size > 0).all():
        raise ValueError("Y must not be zero for any problem")

    def residual_jac(w, which):
        U, V = w.reshape(-1, 2, n, r).swapaxes(0, 1)
        here = LinearRNN(*(M[which] for M in net))
        now = LinearRNN(here.B, here.W + U @ np.swapaxes(V, 1, 2), here.D)
        gap = lrnn_forward(now, X[which]) - Y[which]
        J = low_rank_adapter_jacobian(
            recurrent_ends(here, X[which], U, V), U, V
        )
        return gap.reshape(len(which), -1), J

    return Equations(residual_jac, size, 2 * n * r)
