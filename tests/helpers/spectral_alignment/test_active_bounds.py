"""Nodal domains, strong and weak; the bounds themselves are tested with
single neurons."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse

from helpers.spectral_alignment import graphs, spectra
from helpers.spectral_alignment.active_bounds import nodal_domains

SEEDS = st.integers(0, 2**32 - 1)
PATH = np.array([[0.0, 1, 0], [1, 0, 1], [0, 1, 0]])


def by_flooding(W, x, strong):
    """Grow one domain after the other, from the definition."""
    domains = 0
    for y in (x, -x):
        open_ = set(np.flatnonzero(y > 0 if strong else y >= 0))
        while open_:
            grown, edge = set(), [open_.pop()]
            while edge:
                i = edge.pop()
                grown.add(i)
                near = open_ & set(np.flatnonzero(W[i]))
                open_ -= near
                edge += near
            domains += any(y[i] > 0 for i in grown)
    return domains


def test_by_hand():
    """A zero in the middle: its two sides are weakly one."""
    assert nodal_domains(PATH, [1.0, 0, 1]) == 2
    assert nodal_domains(PATH, [1.0, 0, 1], strong=False) == 1
    # opposite signs: the zero belongs to both, and neither grows together
    for strong in (True, False):
        assert nodal_domains(PATH, [1.0, 0, -1], strong) == 2
        assert nodal_domains(PATH, np.zeros(3), strong) == 0
        assert nodal_domains(PATH, [1.0, -1, 1], strong) == 3
    # nodes that are zero with all their neighbours are no domain
    assert nodal_domains(np.zeros((3, 3)), [0.0, 1, 0], strong=False) == 1


@given(SEEDS)
@settings(max_examples=60, deadline=None)
def test_against_flooding(seed):
    rng = np.random.default_rng(seed)
    n = int(rng.integers(1, 14))
    W = np.triu(rng.random((n, n)) < rng.uniform(0.1, 0.6), 1) * 1.0
    W = W + W.T
    x = rng.integers(-1, 2, size=n).astype(float)
    for strong in (True, False):
        expected = by_flooding(W, x, strong)
        assert nodal_domains(W, x, strong) == expected
        assert nodal_domains(sparse.csr_array(W), -3 * x, strong) == expected
    assert nodal_domains(W, x, False) <= nodal_domains(W, x)


@pytest.mark.parametrize("kind", graphs.KINDS)
def test_weak_domains_do_not_count_the_multiplicity(kind):
    """A star: r + 1 strong pieces for the second eigenvalue, two weak ones."""
    star = np.zeros((7, 7))
    star[0, 1:] = star[1:, 0] = 1
    lam, _ = spectra.laplacian_spectrum(graphs.graph_laplacian(star, kind))
    assert lam[1:6] == pytest.approx(np.ones(5))
    u = np.array([0, 1, 1, 1, -1, -1, -1.0])  # an eigenvector for 1
    L = graphs.graph_laplacian(star, kind)
    assert L @ u == pytest.approx(u)
    assert nodal_domains(star, u) == 6 == 2 + 5 - 1
    assert nodal_domains(star, u, strong=False) == 2


def test_weak_domains_of_connected_graphs_obey_their_theorem():
    for seed in range(12):
        rng = np.random.default_rng(seed)
        X = np.round(rng.normal(size=(30, 2)), 1)
        W = graphs.knn_graph(X, 5)
        lam, U = spectra.laplacian_spectrum(graphs.graph_laplacian(W))
        if lam[1] < 1e-9:
            continue
        for k in range(30):
            first = int(np.flatnonzero(np.abs(lam - lam[k]) < 1e-9)[0]) + 1
            assert nodal_domains(W, U[:, k], strong=False) <= first
