r"""Column generation for variation norms, in scalars and in blocks.

A problem is solved in coordinates of what neurons add to given features: the
dual variable is kept central by a logarithmic barrier, every Newton step of
which gives a feasible combination as well, and the exact sweep says how far
the dual variable is from feasible for *all* neurons. See
:func:`helpers.spectral_alignment.block_norms.block_variation_norm_bounds`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from scipy.linalg import cho_factor, cho_solve

from helpers.core.checks import whole_number
from helpers.core.linalg import complement, orthonormal_basis
from helpers.core.tolerances import CENTRED, RANK_RELATIVE, ROUNDING
from helpers.spectral_alignment.exact_search import maximal_gain_neuron
from helpers.spectral_alignment.neuron_dictionary import (
    NeuronFaces,
    class_basis,
    staircase,
)

__all__ = ["BlockNorm"]

_NEWTON = 60  # steps at one point of the central path; ten are usual
_HALVINGS = 40
_RAYS = 600  # neurons to start from, spread over all crossings
_INSIDE = 0.95  # how far the last dual variable is drawn in before a round
_WIDEST = 0.3  # duality gap of the first centres, relative


@dataclass(frozen=True)
class BlockNorm:
    r"""A certified interval for a block norm, and what certifies it.

    Attributes
    ----------
    lower : float
        Lower bound: :math:`\mathrm{tr}(Y^{\mathsf T}M)/\rho(Y)` with the
        exact :math:`\rho`. Infinite if the targets are out of reach.
    upper : float
        Upper bound (dictionary): :math:`\sum_j\|A_j\|`.
    theta : ndarray, shape (m, N)
        Neurons of the dictionary, scaled so that their values outside of
        ``H0`` have norm 1.
    atoms : ndarray, shape (n, N)
        Those values :math:`\tilde d_j`.
    coefficients : ndarray, shape (N, K)
        :math:`A` with :math:`\tilde DA=M_{H_0}` up to ``residual``.
    dual : ndarray, shape (n, K)
        :math:`Y`, orthogonal to ``H0``, scaled so that no neuron has
        :math:`\|Y^{\mathsf T}\tilde d\|>1`.
    residual : float
        :math:`\|M_{H_0}-\tilde DA\|_F`, rounding.
    """

    lower: float
    upper: float
    theta: np.ndarray
    atoms: np.ndarray
    coefficients: np.ndarray
    dual: np.ndarray
    residual: float


class _Reduced(NamedTuple):
    """A problem in coordinates of what neurons add to H0."""

    basis: np.ndarray
    M: np.ndarray
    QH: np.ndarray
    reachable: bool


def _reduce(Phi, targets, H0) -> _Reduced:
    n = len(targets)
    H0 = np.zeros((n, 0)) if H0 is None else np.asarray(H0, dtype=float)
    if H0.ndim != 2 or H0.shape[0] != n:
        raise ValueError(
            f"H0 must have shape ({n}, p) to match the targets, got {H0.shape}"
        )
    if not np.isfinite(H0).all():
        raise ValueError("H0 must be finite, it holds NaN or infinity")
    QH = orthonormal_basis(H0)
    classes = class_basis(Phi)
    if len(classes) != n:
        raise ValueError(f"Phi must have {n} rows, got {len(classes)}")
    left, sigma, _ = np.linalg.svd(
        complement(QH, classes), full_matrices=False
    )
    # columns had norm one before the projection
    basis = left[:, sigma > RANK_RELATIVE]
    M = complement(QH, targets)
    off = np.linalg.norm(complement(basis, M))
    reachable = off <= RANK_RELATIVE * np.linalg.norm(targets)
    return _Reduced(basis, M, QH, bool(reachable))


def _largest_gain(Phi, Y, QH) -> float:
    """What no neuron exceeds in norm of Y.T d, tight to twelve digits."""
    size = np.linalg.norm(Y)
    found = maximal_gain_neuron(Phi, Y / size, QH)
    return size * float(np.sqrt(found.upper_bound))


def _newton(D, M, t, Y, mu):
    """One Newton step of the barrier, its decrement, and a primal point."""
    (q, N), K = D.shape, M.shape[1]
    U = D.T @ Y
    w = 1 / (1 - np.sum(U**2, axis=1))
    slope = D @ (2 * w[:, None] * U) - t * (M - mu * Y)
    V = (D[:, None, :] * (2 * w * U.T)[None]).reshape(q * K, N)
    hessian = V @ V.T + np.kron((D * (2 * w)) @ D.T, np.eye(K))
    # near the boundary curvatures differ by more than float64's digits
    ridge = t * mu + ROUNDING * np.diag(hessian).max()
    hessian[np.diag_indices(q * K)] += ridge
    step = -cho_solve(cho_factor(hessian), slope.ravel()).reshape(q, K)
    decrement = float(np.sqrt(max(-np.sum(step * slope), 0.0)))
    # linearised at Y + step, the barrier's gradient is t times M - mu Y
    P = D.T @ step
    along = np.sum(U * P, axis=1)
    A = 2 * w[:, None] * (U + P) + (4 * w**2 * along)[:, None] * U
    return step, decrement, A / t


def _centre(D, M, t, Y, mu=0.0):
    r"""Follow Newton's method to the centre for ``t``.

    Minimises :math:`-t(\mathrm{tr}(Y^{\mathsf T}M)-\mu\|Y\|_F^2/2)
    -\sum_j\log(1-\|Y^{\mathsf T}d_j\|^2)` from a strictly feasible ``Y``.
    The primal point satisfies :math:`DA=M-\mu Y` near the centre, and for
    :math:`\mu=0` everywhere, to rounding.
    """

    def barrier(Y):
        inside = 1 - np.sum((D.T @ Y) ** 2, axis=1)
        if inside.min(initial=1.0) <= 0:
            return np.inf
        value = np.sum(Y * M) - mu * np.sum(Y**2) / 2
        return -t * value - np.sum(np.log(inside))

    for _ in range(_NEWTON):
        step, decrement, A = _newton(D, M, t, Y, mu)
        if decrement <= CENTRED:
            break
        scale, value = 1.0, barrier(Y)
        for _ in range(_HALVINGS):
            if barrier(Y + scale * step) < value:
                break
            scale /= 2
        else:
            break
        Y = Y + scale * step
    return Y, A


def _feasible(D, M, A) -> np.ndarray:
    """Take what a combination misses by least squares."""
    for _ in range(2):
        A = A + np.linalg.lstsq(D, M - D @ A, rcond=None)[0]
    return A


class _Generation:
    """Column generation for one problem."""

    def __init__(self, Phi, reduced: _Reduced, dictionary=None):
        self.Phi, self.problem = Phi, reduced
        self.faces = NeuronFaces(Phi, reduced.QH)
        Y = reduced.M / _largest_gain(Phi, reduced.M, reduced.QH)
        self.lower, self.dual = float(np.sum(Y * reduced.M)), Y
        self.upper, self.coefficients = np.inf, None
        if dictionary is not None:
            self.theta, self.atoms = dictionary.theta, dictionary.atoms
            return
        theta, atoms = staircase(Phi)
        rest = complement(reduced.QH, atoms)
        size = np.linalg.norm(rest, axis=0)
        new = size > RANK_RELATIVE
        self.theta = theta[:, new] / size[new]
        self.atoms = rest[:, new] / size[new]
        stride = max(1, len(self.faces.rays) // _RAYS)
        self._append(*self.faces.crossings(stride))
        self._append(*self.faces.price(Y, 0.0))

    def _append(self, theta, atoms) -> None:
        self.theta = np.concatenate([self.theta, theta], axis=1)
        self.atoms = np.concatenate([self.atoms, atoms], axis=1)

    @property
    def gap(self) -> float:
        return 1 - self.lower / self.upper

    def centre(self, share: float, mu: float = 0.0):
        """A centred pair; the exact worst neuron; new columns."""
        basis, M = self.problem.basis, self.problem.basis.T @ self.problem.M
        D, start = basis.T @ self.atoms, _INSIDE * basis.T @ self.dual
        value = np.sum(start * M) - mu * np.sum(start**2) / 2
        t = D.shape[1] / (share * max(value, self.lower / 2))
        Y, A = _centre(D, M, t, start, mu)
        Y = basis @ Y
        worst = _largest_gain(self.Phi, Y, self.problem.QH)
        self._append(*self.faces.price(Y, min(1.0, worst * (1 - ROUNDING))))
        return Y / worst, A, D, M

    def round(self, share: float) -> None:
        """Tighten the interval of the norm itself."""
        Y, A, D, M = self.centre(share)
        A = _feasible(D, M, A)
        value = float(np.linalg.norm(A, axis=1).sum())
        if value < self.upper:
            self.upper, self.coefficients = value, A
        value = float(np.sum(Y * self.problem.M))
        if value > self.lower:
            self.lower, self.dual = value, Y

    def pair(self, mu: float, tol: float, rounds: int):
        """Error, norm and a lower bound of the norm at that error."""
        M, best = self.problem.M, None
        share = _WIDEST
        for _ in range(rounds):
            Y, A, D, _ = self.centre(share, mu)
            self.dual = Y
            e = float(np.linalg.norm(M - self.problem.basis @ (D @ A)))
            gamma = float(np.linalg.norm(A, axis=1).sum())
            lower = float(np.sum(Y * M)) - e * float(np.linalg.norm(Y))
            if best is None or gamma - lower < best[1] - best[2]:
                best = e, gamma, max(lower, 0.0)
            gap = 1 - best[2] / best[1]
            if gap <= tol:
                break
            share = min(max(gap, tol) / 3, _WIDEST)
        return best

    def solution(self) -> BlockNorm:
        K = self.problem.M.shape[1]
        used = len(self.coefficients)
        A = np.zeros((self.atoms.shape[1], K))
        A[:used] = self.coefficients
        rest = self.problem.M - self.atoms @ A
        return BlockNorm(
            lower=min(self.lower, self.upper),
            upper=self.upper,
            theta=self.theta,
            atoms=self.atoms,
            coefficients=A,
            dual=self.dual,
            residual=float(np.linalg.norm(rest)),
        )


def _open_interval(tol: float) -> float:
    if not 0 < tol < 1:
        raise ValueError(f"tol must lie in (0, 1), got {tol}")
    return float(tol)


def _trivial(Phi, reduced: _Reduced, value: float, dual) -> BlockNorm:
    n, K = reduced.M.shape
    return BlockNorm(
        value,
        value,
        np.zeros((np.shape(Phi)[1], 0)),
        np.zeros((n, 0)),
        np.zeros((0, K)),
        dual,
        0.0 if value == 0 else float(np.linalg.norm(dual)),
    )


def _bounds(Phi, targets, H0, tol: float, rounds: int) -> BlockNorm:
    tol = _open_interval(tol)
    rounds = whole_number(rounds, "rounds")
    Phi = np.asarray(Phi, dtype=float)
    reduced = _reduce(Phi, targets, H0)
    if not reduced.reachable:
        # orthogonal to every neuron, and not to the targets
        off = complement(reduced.basis, reduced.M)
        return _trivial(Phi, reduced, np.inf, off)
    left = np.linalg.norm(reduced.M)
    if left <= RANK_RELATIVE * np.linalg.norm(targets):
        return _trivial(Phi, reduced, 0.0, np.zeros_like(reduced.M))
    run = _Generation(Phi, reduced)
    for _ in range(rounds):
        if run.gap <= tol:
            break
        run.round(min(max(run.gap, tol) / 3, _WIDEST))
    return run.solution()
