"""Corrections to the paper that no kernel's own tests hold.

Each test shows that the statement as printed fails, on the smallest example
that we know, and that the corrected one holds there. The other corrections
are tested beside their kernels: Lemma 5.9 (greedy experiments), Example 5.12
(clusters), Remark 5.7 (partitions), Propositions 3.3 and 5.5
(constructions), Definition 5.8 (variation norms).
"""

import numpy as np
import pytest

from helpers.core.linalg import numerical_rank
from helpers.spectral_alignment import graphs, rates, spectra
from helpers.spectral_alignment.clusters import cluster_indicator_neurons
from helpers.spectral_alignment.coverage import (
    captured_features,
    coverage_deficit,
    coverage_gap,
    coverage_sines,
)
from helpers.spectral_alignment.greedy import greedy_coverage
from helpers.spectral_alignment.layers import neuron_outputs, with_bias
from helpers.spectral_alignment.partitions import (
    coverage_ceiling,
    staircase_neurons,
)
from helpers.spectral_alignment.sample_sets import three_clouds

PATH = graphs.graph_laplacian([[0, 1, 0], [1, 0, 1], [0, 1, 0]])
LINE = np.array([[-1.0], [0.0], [1.0]])


def test_abstract_what_decays_like_one_over_t_is_the_squared_gap():
    """One frequency, so that s^2 is the deficit, and kappa = 1: neurons that
    gain what Lemma 5.9 asks for and no more keep to the corrected rate."""
    deficit = [1 / 2]
    for _ in range(3000):
        gap = np.sqrt(deficit[-1])
        deficit.append(deficit[-1] - rates.single_neuron_bound(gap, 1.0, 0.0))
    t, gap = np.arange(1, 3001), np.sqrt(deficit[1:])
    constant = 4.0  # 4 K^2 kappa^2, alpha = 1
    assert (t * gap**2 <= constant).all()
    assert (gap**2 <= rates.greedy_gap_bound(t, 1, 1.0, 0.0)).all()
    # as printed, the gap itself: off by more than ten in the end
    assert t[-1] * gap[-1] > 10 * constant


def test_remark_5_14_strictly_below_counts_equal_sines():
    """Path of three, all frequencies, the linear model: sines 1, 0, 0."""
    U = spectra.laplacian_spectrum(PATH)[1]
    Phi, c = with_bias(LINE), 1.0
    sines = coverage_sines(Phi, U).round(9)
    printed, corrected = int(np.sum(sines > c)), int(np.sum(sines >= c))
    assert (printed, corrected) == (0, 1)
    # as printed no neuron might do, and none does not do
    gaps = [coverage_gap(Phi, U)]
    gaps.append(coverage_gap(np.c_[Phi, np.maximum(LINE, 0)], U))
    needed = next(k for k, gap in enumerate(gaps) if gap < c - 1e-9)
    assert needed == corrected > printed


def test_remark_6_1_an_upper_bound_is_not_attained_by_itself():
    """Distinct rows: the ceiling is 3, and an affine neuron stops at 2."""
    U = spectra.laplacian_spectrum(PATH)[1]
    top = coverage_ceiling(LINE, U).captured
    assert top == pytest.approx(3)
    plain = with_bias(neuron_outputs(with_bias(LINE), [[1.0], [1.0]]))
    assert captured_features(plain, U) == pytest.approx(2)
    # Theorem 5.1 (b): a staircase attains it; 5.3: one neuron more gains
    stairs = staircase_neurons(LINE, [1.0])
    reached = neuron_outputs(with_bias(LINE), stairs)
    assert captured_features(reached, U) == pytest.approx(top)
    more = [captured_features(np.c_[plain, h], U) for h in reached.T]
    assert max(more) == pytest.approx(top)


def test_remark_6_1_full_coverage_of_clouds_needs_few_neurons():
    """Three components: four neurons and the constant, of sixty samples."""
    X, labels = three_clouds(20, 0.3, 0)
    W = graphs.knn_graph(X, 8)
    basis = spectra.laplacian_eigenbasis(graphs.graph_laplacian(W), 3)
    assert basis.info.n_components == 3
    neurons = np.column_stack(
        [cluster_indicator_neurons(X, labels, c).theta for c in (0, 1)]
    )
    H = with_bias(neuron_outputs(with_bias(X), neurons))
    assert H.shape[1] == 5
    assert coverage_deficit(H, basis.vectors) < 1e-12
    # the third indicator is 1 minus the others; two neurons less, and no
    fewer = np.delete(H, [2, 3], axis=1)
    assert coverage_deficit(fewer, basis.vectors) > 0.1


@pytest.mark.parametrize("seed", [0, 1])
def test_remark_6_1_generic_samples_are_nearly_interpolated_first(seed):
    """Exact greedy on twelve samples, K = 2."""
    X = np.random.default_rng(seed).normal(size=(12, 2))
    L = graphs.graph_laplacian(graphs.rbf_graph(X, 1.0))
    U = spectra.laplacian_eigenbasis(L, 2).vectors
    Phi = with_bias(X)
    free = 12 - numerical_rank(Phi).rank
    deficit = greedy_coverage(Phi, U, free, Phi).deficit
    needed = int(np.flatnonzero(deficit < 1e-8)[0])
    assert 2 / 3 * free < needed <= free
