r"""Exact neuron search by branch and bound over gating patterns.

A node fixes on which side of the first hyperplanes the neuron lies. It works
in any dimension and its bound is valid at any time, but it prunes late: most
patterns must be all but decided before their bound falls. For teaching and
for checks; :mod:`helpers.spectral_alignment.exact_search` is for work.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import combinations

import numpy as np
from scipy.linalg import null_space
from scipy.optimize import linprog

from helpers.core.linalg import complement
from helpers.core.tolerances import (
    CERTIFIED_RELATIVE,
    CONE_SLACK,
    RANK_RELATIVE,
)
from helpers.spectral_alignment.exact_search_compiled import neuron_gain
from helpers.spectral_alignment.gating_patterns import parallel_classes
from helpers.spectral_alignment.local_search import local_gain_search
from helpers.spectral_alignment.neurons import (
    check_uncovered,
    reduced_features,
    relaxed_gain,
)


@dataclass(frozen=True)
class TreeSearch:
    """What :func:`branch_and_bound` found, and what it cost.

    Attributes
    ----------
    theta : ndarray, shape (m,)
        A neuron of maximal gain.
    gain : float
    nodes : int
        Nodes met, the root included; each but the root took one linear
        programme to see that it is not empty.
    leaves : int
        Complete patterns that were looked into.
    depths : ndarray of int
        Hyperplanes decided at each pruned node, in the order of the visit.
    """

    theta: np.ndarray
    gain: float
    nodes: int
    leaves: int
    depths: np.ndarray


@dataclass
class _Tree:
    G: np.ndarray
    M: np.ndarray
    QH: np.ndarray
    normals: np.ndarray
    place: np.ndarray
    sign: np.ndarray
    best: np.ndarray
    gain: float
    prune: bool
    nodes: int = 0
    leaves: int = 0
    depths: list[int] = field(default_factory=list)


def branch_and_bound(
    Phi,
    M,
    QH=None,
    *,
    prune: bool = True,
    warm_starts: int = 10,
    largest_first: bool = True,
) -> TreeSearch:
    r"""Maximise the gain of a neuron by a tree of gating patterns.

    With the samples of the first ``j`` hyperplanes gated and the others
    free to take any values, no neuron below the node gains more than
    :math:`\|M^{\mathsf T}Q\|_2^2`, :math:`Q` a basis of
    :math:`\mathrm{col}((I-\Pi_H)[S_{\rm fixed}\Phi,E_{\rm undecided}])`.
    Hyperplanes of samples with large rows of ``M`` come first, unless
    ``largest_first`` says otherwise.

    Parameters
    ----------
    Phi : array_like, shape (n, m)
        Of any rank; cost limits ``n`` to a few dozens.
    M : array_like, shape (n, K)
    QH : array_like, shape (n, p), optional
    prune : bool
        ``False`` visits every pattern: brute force with a linear programme
        a node.
    warm_starts : int >= 1
        Starts of the local search that supplies the value to beat.
    largest_first : bool
        ``False`` takes the hyperplanes in the order of the samples.

    Returns
    -------
    TreeSearch

    Raises
    ------
    ValueError
        As :func:`~helpers.spectral_alignment.neurons.check_uncovered`.

    Notes
    -----
    Source: ours (algorithm A3); incremental enumeration of cells by Rada
    and Černý, SIAM J. Discrete Math. 32 (2018).

    Examples
    --------
    >>> Phi = np.array([[-1.0, 1.0], [0.0, 1.0], [1.0, 1.0]])
    >>> U = np.array([[1.0], [-2.0], [1.0]]) / np.sqrt(6)
    >>> tree = branch_and_bound(Phi, U, prune=False)
    >>> round(tree.gain, 6), tree.leaves
    (0.166667, 6)
    """
    G, T = reduced_features(Phi)
    M, QH = check_uncovered(M, QH, len(G))
    M, QH = np.ascontiguousarray(M), np.ascontiguousarray(QH)
    first, sign = parallel_classes(G)
    weight = np.zeros(len(G))
    np.add.at(weight, first, np.sum(M**2, axis=1))
    kept = np.unique(first[sign != 0])
    if largest_first:
        kept = kept[np.argsort(-weight[kept], kind="stable")]
    place = np.full(len(G), -1)
    for position, representative in enumerate(kept):
        place[(first == representative) & (sign != 0)] = position
    normals = G[kept] / np.linalg.norm(G[kept], axis=1)[:, None]
    start = local_gain_search(G, M, QH, warm_starts, rng=0)
    tree = _Tree(
        G, M, QH, normals, place, sign, start.theta, start.gain, prune
    )
    _visit(tree, ())
    return TreeSearch(
        T @ tree.best,
        tree.gain,
        tree.nodes,
        tree.leaves,
        np.array(tree.depths, dtype=int),
    )


def _visit(tree: _Tree, sides: tuple[int, ...]) -> None:
    tree.nodes += 1
    depth = len(sides)
    if tree.prune and _bound(tree, sides) <= tree.gain * (
        1 + CERTIFIED_RELATIVE
    ):
        tree.depths.append(depth)
        return
    if depth == len(tree.normals):
        tree.leaves += 1
        _search_cone(tree, _gates(tree, sides))
        return
    for side in (1, -1):
        if _has_interior(tree.normals[: depth + 1], (*sides, side)):
            _visit(tree, (*sides, side))


def _has_interior(normals, sides) -> bool:
    signed = np.array(sides)[:, None] * normals
    answer = linprog(
        np.zeros(normals.shape[1]),
        A_ub=-signed,
        b_ub=-np.ones(len(signed)),
        bounds=(None, None),
        method="highs",
    )
    return answer.status == 0


def _gates(tree: _Tree, sides) -> np.ndarray:
    decided = (tree.place >= 0) & (tree.place < len(sides))
    side = np.zeros(len(tree.G))
    side[decided] = np.array(sides, dtype=float)[tree.place[decided]]
    return side * tree.sign > 0


def _bound(tree: _Tree, sides) -> float:
    gated = tree.G * _gates(tree, sides)[:, None]
    free = np.eye(len(gated))[:, tree.place >= len(sides)]
    columns = np.column_stack([gated, free])
    rest = complement(tree.QH, columns)
    scale = np.linalg.norm(columns, 2)
    left, sigma, _ = np.linalg.svd(rest, full_matrices=False)
    Q = left[:, sigma > RANK_RELATIVE * scale]
    return float(np.linalg.norm(tree.M.T @ Q, 2) ** 2) if Q.size else 0.0


def _search_cone(tree: _Tree, S) -> None:
    """Relaxed maximisers on the spans of all faces that the cone can have."""
    rank = tree.G.shape[1]
    for zeros in range(rank):
        for chosen in combinations(range(len(tree.normals)), zeros):
            span = np.eye(rank)
            if chosen:
                span = null_space(tree.normals[list(chosen)], rcond=CONE_SLACK)
            if span.shape[1] == 0:
                continue
            # samples on the face are zero there, whatever their gate
            gated = (tree.G @ span) * S[:, None]
            if span.shape[1] == 1:
                _offer(tree, span[:, 0])
            elif gated.any():
                found = relaxed_gain(gated, S, tree.M, tree.QH)
                if found.value > tree.gain:
                    _offer(tree, span @ found.theta)


def _offer(tree: _Tree, eta) -> None:
    for turned in (eta, -eta):
        turned = np.ascontiguousarray(turned)
        gain = neuron_gain(turned, tree.G, tree.M, tree.QH)
        if gain > tree.gain:
            tree.gain, tree.best = float(gain), turned
