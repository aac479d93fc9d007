"""Staircases and pricing: what the dictionaries of the norms are made of."""

import numpy as np
import pytest

from helpers.core.linalg import complement, orthonormal_basis
from helpers.spectral_alignment.exact_search import maximal_gain_neuron
from helpers.spectral_alignment.neuron_dictionary import (
    NeuronFaces,
    class_basis,
    staircase,
)


def relu(z):
    return np.maximum(z, 0.0)


@pytest.mark.parametrize("seed", range(4))
def test_staircase_spans_the_classes(seed):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(12, seed))
    if seed > 1:
        X[8:] = X[:4]
    Phi = np.column_stack([X, np.ones(12)])
    basis = class_basis(Phi)
    q = 1 if seed == 0 else len(np.unique(X, axis=0))
    assert basis.shape == (12, q)
    assert basis.T @ basis == pytest.approx(np.eye(q))
    theta, atoms = staircase(Phi)
    assert relu(Phi @ theta) == pytest.approx(atoms, abs=1e-12)
    assert np.linalg.norm(atoms, axis=0) == pytest.approx(1)
    assert np.linalg.matrix_rank(atoms) == q
    assert np.abs(complement(basis, atoms)).max() < 1e-12


@pytest.mark.parametrize("d", [0, 1, 2])
@pytest.mark.parametrize("covered", [False, True])
def test_pricing_finds_the_exact_maximum(d, covered):
    rng = np.random.default_rng(10 * d + covered)
    Phi = np.column_stack([rng.normal(size=(11, d)), np.ones(11)])
    Q = orthonormal_basis(Phi if covered else np.zeros((11, 0)))
    Y = complement(Q, rng.normal(size=(11, 2)))
    faces = NeuronFaces(Phi, Q)
    theta, atoms = faces.price(Y, 0.0)
    exact = maximal_gain_neuron(Phi, Y, Q).gain
    if exact == 0:
        assert atoms.shape[1] == 0
        return
    values = np.linalg.norm(Y.T @ atoms, axis=0)
    assert values[0] ** 2 == pytest.approx(exact, rel=1e-6)
    assert (np.diff(values) <= 1e-12).all()
    assert complement(Q, relu(Phi @ theta)) == pytest.approx(atoms, abs=1e-9)
    few, _ = faces.price(Y, values[0] * 0.9, most=2)
    assert 1 <= few.shape[1] <= 2


def test_crossings_vanish_on_two_samples():
    Phi = np.column_stack(
        [np.random.default_rng(0).normal(size=(6, 2)), np.ones(6)]
    )
    theta, atoms = NeuronFaces(Phi, np.zeros((6, 0))).crossings(1)
    assert theta.shape[1] == len(atoms.T) <= 6 * 5
    assert (np.sum(np.abs(Phi @ theta) < 1e-9, axis=0) == 2).all()


def test_bad_input_is_named():
    with pytest.raises(ValueError, match="rank at most 3"):
        NeuronFaces(np.eye(4), np.zeros((4, 0)))
    with pytest.raises(ValueError, match="constant"):
        staircase([[0.0], [1.0]])
