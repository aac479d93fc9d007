r"""What a little error saves: variation norms against accuracy.

Pairs of an error and a norm for which the low frequencies can be written with
neurons. Every pair is valid, whatever the solver did: both of its numbers are
computed from the coefficients found. Norms are upper bounds (dictionary).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from helpers.core.checks import whole_number
from helpers.core.linalg import (
    check_orthonormal,
    complement,
    numerical_rank,
)
from helpers.core.tolerances import ORTHONORMAL, PENALISED_GAP, RANK_RELATIVE
from helpers.spectral_alignment.block_norms import (
    BlockNorm,
    block_variation_norm_bounds,
)
from helpers.spectral_alignment.column_generation import (
    _INSIDE,
    _centre,
    _Generation,
    _largest_gain,
    _open_interval,
    _reduce,
    _Reduced,
)

__all__ = [
    "ParetoCurve",
    "RepresentabilityCurve",
    "representability_curve",
    "variation_pareto_curve",
]


class ParetoCurve(NamedTuple):
    """What :func:`variation_pareto_curve` returns."""

    e: np.ndarray
    gamma: np.ndarray
    lower: np.ndarray


class RepresentabilityCurve(NamedTuple):
    """What :func:`representability_curve` returns."""

    kappa: np.ndarray
    epsilon: np.ndarray


def _fractions(mus) -> np.ndarray:
    mus = np.asarray(mus, dtype=float)
    if mus.ndim != 1 or mus.size == 0 or not np.isfinite(mus).all():
        raise ValueError(f"mus must be a vector of numbers, got {mus!r}")
    if mus.min() <= 0 or mus.max() > 1:
        raise ValueError(
            f"mus must lie in (0, 1], got {mus.min()} to {mus.max()}"
        )
    return mus


def variation_pareto_curve(
    Phi,
    UK,
    H0,
    mus,
    *,
    dictionary: BlockNorm | None = None,
    tol: float = 0.03,
    rounds: int = 8,
) -> ParetoCurve:
    r"""Pairs :math:`(e,\gamma)` with :math:`\gamma(H_0,e)\le\gamma`.

    Near solutions of the group lasso
    :math:`\min_A\frac12\|M-\tilde DA\|_F^2+\mu\sum_j\|A_j\|`. Whatever ``A``
    comes out, :math:`e=\|M-\tilde DA\|_F` and
    :math:`\gamma=\sum_j\|A_j\|` are computed from it, so that every pair is
    valid.

    Parameters
    ----------
    Phi : array_like, shape (n, m)
        As :func:`block_variation_norm_bounds`.
    UK : array_like, shape (n, K)
        Orthonormal columns.
    H0 : array_like, shape (n, p), or None
    mus : array_like, shape (q,)
        Penalties in (0, 1], as fractions of the least one at which
        ``A = 0`` (the exact worst neuron of ``M``).
    dictionary : BlockNorm, optional
        The answer of :func:`block_variation_norm_bounds` for the same
        ``Phi``, ``UK`` and ``H0``, if at hand; saves rounds.
    tol : float, in (0, 1)
        A penalty is done with when ``lower >= (1 - tol) * gamma``.
    rounds : int >= 1
        Largest number of rounds for a penalty.

    Returns
    -------
    ParetoCurve
        ``e`` (q,) exact for the coefficients found; ``gamma`` (q,) an upper
        bound (dictionary) of :math:`\gamma(H_0,e)`; ``lower`` (q,) a lower
        bound of it, :math:`(\mathrm{tr}(Y^{\mathsf T}M)-e\|Y\|_F)/\rho(Y)`
        with an exact sweep for :math:`\rho`.

    Raises
    ------
    ValueError
        As :func:`block_variation_norm_bounds`; if a penalty is out of
        range, ``dictionary`` does not fit, or the block norm is 0 or
        infinite.

    Notes
    -----
    Centres of the dual problem and column generation, as for the norm
    itself, from the largest penalty to the smallest. First-order methods
    (FISTA) need many thousands of steps on neurons this coherent.

    Source: ours (companion result C2 to the spectral-alignment paper).

    Examples
    --------
    >>> Phi = np.array([[-1.0, 1.0], [0.0, 1.0], [1.0, 1.0]])
    >>> u = np.array([[1.0], [-2.0], [1.0]]) / np.sqrt(6)  # one direction only
    >>> curve = variation_pareto_curve(Phi, u, Phi, [1.0, 0.5], tol=1e-4)
    >>> (curve.e + curve.gamma).round(3)
    array([1., 1.])
    """
    mus, tol = _fractions(mus), _open_interval(tol)
    UK, rounds = check_orthonormal(UK, "UK"), whole_number(rounds, "rounds")
    Phi = np.asarray(Phi, dtype=float)
    reduced = _reduce(Phi, UK, H0)
    if not reduced.reachable or np.linalg.norm(reduced.M) <= RANK_RELATIVE:
        raise ValueError(
            "UK must be within reach of neurons and not covered by H0: the "
            "block norm is " + ("0" if reduced.reachable else "infinite")
        )
    if dictionary is not None:
        _fits(dictionary, reduced)
    run = _Generation(Phi, reduced, dictionary)
    size = float(np.linalg.norm(reduced.M))
    zero = _largest_gain(Phi, reduced.M, reduced.QH)
    pairs = np.array([[size, 0.0, 0.0]] * mus.size)
    for k in np.argsort(-mus):
        if mus[k] < 1:
            pairs[k] = run.pair(mus[k] * zero, tol, rounds)
    return ParetoCurve(*pairs.T)


def _fits(dictionary: BlockNorm, reduced: _Reduced) -> None:
    atoms, basis = dictionary.atoms, reduced.basis
    good = atoms.shape[0] == len(basis)
    good = good and numerical_rank(atoms).rank == basis.shape[1]
    if not good or np.abs(complement(basis, atoms)).max() > ORTHONORMAL:
        raise ValueError(
            "dictionary must come from block_variation_norm_bounds with the "
            f"same Phi, UK and H0, got atoms of shape {atoms.shape}"
        )


def representability_curve(
    Phi, UK, mus, *, dictionary: BlockNorm | None = None
) -> RepresentabilityCurve:
    r"""Pairs :math:`(\kappa,\varepsilon)` for which ``UK`` is representable.

    The lasso :math:`\min_a\frac12\|u_k-Da\|^2+\mu\|a\|_1` for every basis
    vector gives :math:`v_k=Da_k`. For a unit vector
    :math:`\sum_kx_ku_k` the combination :math:`\sum_kx_kv_k` has norm at most
    :math:`\kappa=(\sum_k\|a_k\|_1^2)^{1/2}`, and is off by at most
    :math:`\varepsilon=\|U_K-V\|_2`.

    Parameters
    ----------
    Phi : array_like, shape (n, m)
        As :func:`block_variation_norm_bounds`.
    UK : array_like, shape (n, K)
        Orthonormal columns. The result depends on the basis, not only on
        the span.
    mus : array_like, shape (q,)
        Penalties in (0, 1], as fractions of the least one at which all
        ``a = 0``.
    dictionary : BlockNorm, optional
        The answer of :func:`block_variation_norm_bounds` for the same
        ``Phi`` and ``UK`` and no ``H0``.

    Returns
    -------
    RepresentabilityCurve
        ``kappa`` (q,), upper bounds (dictionary), and ``epsilon`` (q,): each
        pair is valid.

    Raises
    ------
    ValueError
        As :func:`variation_pareto_curve`.

    Notes
    -----
    Source: the spectral-alignment paper, Definition 5.8; the root of the sum
    of squares is ours.

    Examples
    --------
    >>> Phi = np.array([[-1.0, 1.0], [0.0, 1.0], [1.0, 1.0]])
    >>> flat = np.ones((3, 1)) / np.sqrt(3)
    >>> representability_curve(Phi, flat, [1.0, 0.25]).epsilon.round(2)
    array([1.  , 0.25])
    """
    mus, UK = _fractions(mus), check_orthonormal(UK, "UK")
    Phi = np.asarray(Phi, dtype=float)
    reduced = _reduce(Phi, UK, None)
    if not reduced.reachable:
        raise ValueError(
            "UK must be within reach of neurons: its variation norm is "
            "infinite"
        )
    if dictionary is None:
        dictionary = block_variation_norm_bounds(Phi, UK)
    _fits(dictionary, reduced)
    D, M = reduced.basis.T @ dictionary.atoms, reduced.basis.T @ UK
    norms = np.zeros((mus.size, UK.shape[1]))
    missed = np.tile(UK, (mus.size, 1, 1))
    tops = [_largest_gain(Phi, u[:, None], None) for u in UK.T]
    for i, u in enumerate(M.T):
        Y = _INSIDE * u[:, None] / tops[i]
        for k in np.argsort(-mus):
            mu = mus[k] * max(tops)
            if mu >= tops[i]:
                continue
            t = D.shape[1] / (PENALISED_GAP * np.sum(Y[:, 0] * u))
            Y, A = _centre(D, u[:, None], t, _INSIDE * Y, mu)
            norms[k, i] = np.abs(A).sum()
            missed[k, :, i] -= dictionary.atoms @ A[:, 0]
    epsilon = [np.linalg.norm(E, 2) for E in missed]
    return RepresentabilityCurve(
        np.linalg.norm(norms, axis=1), np.array(epsilon)
    )
