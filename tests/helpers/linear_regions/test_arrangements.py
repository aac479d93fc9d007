"""Cells of arrangements: by hand, by the mesh, by the paper's recursion."""

from functools import cache
from itertools import combinations
from math import prod

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from helpers.linear_regions.arrangements import arrangement_cells
from helpers.linear_regions.networks import block_diagonal_layers
from helpers.linear_regions.random_networks import he_network
from helpers.linear_regions.regions_2d import cell_upper_bound, regions_2d

BLOCKS = [
    (2, 1, 4),
    (3, 1, 7),
    (2, 3, 16),
    (3, 3, 37),
    (4, 3, 67),
    (3, 7, 169),
]


@cache
def recursion(n, m, D):
    """The recursion in the proof of Theorem A.11."""
    if n == 0 or D == 0:
        return 1
    return recursion(n - 1, m, D) + m * recursion(n - 1, m, D - 1)


def block_network(n, m, seed=1):
    """n blocks of m kinks each along n directions, close to the origin."""
    depth = (m + 1).bit_length() - 1
    rng = np.random.default_rng(seed)
    angle = np.pi * (np.arange(n) + 0.3) / n
    A = 0.35 * np.stack([np.cos(angle), np.sin(angle)], axis=1)
    b = np.array([0.05, -0.08, 0.03, 0.11])[:n]
    peaks = rng.uniform(0.3, 0.7, (n, depth + 1))
    return block_diagonal_layers(peaks, A, b, np.ones((1, n)), [0.0])


def test_pascal():
    assert [arrangement_cells(n, 1, 2) for n in range(6)] == [
        1,
        2,
        4,
        7,
        11,
        16,
    ]
    assert [arrangement_cells(n, 1, 3) for n in (3, 4)] == [8, 15]
    assert arrangement_cells(5, 4, 1) == 21
    assert arrangement_cells(10, 1, 10) == 2**10


@pytest.mark.parametrize(("n", "m", "cells"), BLOCKS)
def test_block_layers_are_arrangements(n, m, cells):
    assert arrangement_cells(n, m, 2) == cells
    net = block_network(n, m)
    mesh = regions_2d(net, ((-10, 10), (-10, 10)))
    assert mesh.n_cells == mesh.n_pieces == cells


@pytest.mark.parametrize("half", [20, 300, 3000, 30000])
def test_pitfall_large_boxes(half):
    """Two cells too many were once seen at half width 3000."""
    net = block_network(4, 3)
    mesh = regions_2d(net, ((-half, half), (-half, half)))
    assert mesh.n_cells == 67


def test_depth_five_blocks_have_31_kinks():
    """The gain of n blocks is 31^D for large n, not 32^D."""
    gain = arrangement_cells(10**6, 31, 2) / arrangement_cells(10**6, 1, 2)
    assert abs(gain / 31**2 - 1) < 1e-5
    net = block_network(2, 31)
    assert regions_2d(net, ((-10, 10), (-10, 10))).n_cells == 32**2


@given(st.integers(0, 12), st.integers(0, 40), st.integers(1, 6))
def test_recursion_of_the_proof(n, m, D):
    assert arrangement_cells(n, m, D) == recursion(n, m, D)


@given(st.lists(st.integers(0, 9), max_size=7), st.integers(1, 5))
def test_unequal_families(sizes, D):
    subsets = [
        prod(chosen) for k in range(D + 1) for chosen in combinations(sizes, k)
    ]
    assert arrangement_cells(len(sizes), sizes, D) == sum(subsets)


@given(st.integers(0, 2**32 - 1))
@settings(max_examples=25, deadline=None)
def test_one_hidden_layer_meets_the_formula_in_a_huge_box(seed):
    """Generic lines all cross in a box that holds every crossing."""
    rng = np.random.default_rng(seed)
    n = int(rng.integers(1, 12))
    layers = he_network([2, n, 1], rng)
    W, b = layers[0]
    corners = [0.0]
    for i, j in combinations(range(n), 2):
        corners += np.linalg.solve(W[[i, j]], -b[[i, j]]).tolist()
    half = 2 * np.abs(corners).max() + np.abs(b).max() / np.min(
        np.linalg.norm(W, axis=1)
    )
    half = max(half, 2.0) * 2
    mesh = regions_2d(layers, ((-half, half), (-half, half)))
    assert mesh.n_cells == arrangement_cells(n, 1, 2)
    assert mesh.n_cells <= cell_upper_bound([n])


def test_bad_input_is_named():
    for arguments, word in (
        ((-1,), "families"),
        ((2, 1, 0), "dim"),
        ((2, -1), "parallel"),
        ((2, [1]), "parallel"),
    ):
        with pytest.raises(ValueError, match=word):
            arrangement_cells(*arguments)
    with pytest.raises(TypeError):
        arrangement_cells(2.5)
    with pytest.raises(ValueError, match="widths"):
        cell_upper_bound([-1])
