"""The exact neuron search against itself, other routes, and samples."""

import subprocess
import sys

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.linalg import eigh
from sklearn.datasets import make_moons

from helpers.core.linalg import complement, orthonormal_basis
from helpers.spectral_alignment import (
    exact_search,
    exact_search_compiled,
    exact_tree,
    gating_patterns,
    graphs,
    local_search,
    neurons,
    spectra,
)
from helpers.spectral_alignment.exact_search import maximal_gain_neuron
from helpers.spectral_alignment.gain_problems import low_and_high_targets

SEEDS = st.integers(0, 2**32 - 1)
F3_POINTS = np.array([[0, 0], [1, 0], [0, 1], [2, 1], [1, 3], [3, 2]], float)
# the cones that hold a maximiser; another test finds them
F3_PATTERNS = [{2, 4}, {2, 4, 5}, {1, 3, 5}, {0, 2}]
F3_PATTERNS += [set(range(6)) - s for s in F3_PATTERNS]


def relu(z):
    return np.maximum(z, 0.0)


def f3():
    L = graphs.graph_laplacian(graphs.rbf_graph(F3_POINTS, 1.0))
    lam, U, _ = spectra.laplacian_eigenbasis(L, 3)
    return np.column_stack([F3_POINTS, np.ones(6)]), U, lam


def with_features(H, U):
    Q = orthonormal_basis(H)
    return complement(Q, U), Q


def degenerate_sample(rng, d=2, largest=10):
    """Random points, or with duplicates, on a grid, collinear, opposite."""
    n = int(rng.integers(d + 2, largest))
    X, kind = rng.normal(size=(n, d)), int(rng.integers(5))
    if kind == 1:
        X[n // 2 :] = X[: n - n // 2]
    if kind == 2:
        X = np.round(X)
    if kind == 3 and d > 1:
        X[: n // 2 + 1, 1] = X[: n // 2 + 1, 0] / 2
    Phi = np.column_stack([X, np.ones(n)])
    if kind == 4:
        Phi = np.vstack([Phi, -Phi[:2], np.zeros((1, d + 1))])
    return Phi


def random_problem(seed, d=2, largest=10):
    rng = np.random.default_rng(seed)
    Phi = degenerate_sample(rng, d, largest)
    n = len(Phi)
    U = np.linalg.qr(rng.normal(size=(n, int(rng.integers(1, 4)))))[0]
    choices = [
        np.zeros((n, 0)),
        np.ones((n, 1)),
        Phi,
        np.column_stack([Phi, relu(Phi @ rng.normal(size=(d + 1, 2)))]),
    ]
    M, Q = with_features(choices[rng.integers(4)], U)
    return rng, Phi, M, Q


def test_f3_to_the_digits_given():
    Phi, U, lam = f3()
    assert lam == pytest.approx([0, 0.2862709, 0.4114100, 1.2224653], abs=1e-7)
    Q = orthonormal_basis(Phi)
    assert np.sum((Q.T @ U) ** 2) == pytest.approx(2.7484018466, abs=1e-10)
    M = complement(Q, U)
    eta = np.linalg.svd(M, compute_uv=False)
    assert eta == pytest.approx([0.4811498213, 0.1417497897, 0], abs=1e-10)
    for method in exact_search.METHODS:
        empty = maximal_gain_neuron(Phi, U, method=method)
        assert empty.gain == pytest.approx(1, abs=1e-12)
        bias = maximal_gain_neuron(
            Phi, *with_features(np.ones((6, 1)), U), method=method
        )
        assert bias.gain == pytest.approx(0.9990684468, abs=1e-10)
        assert set(np.flatnonzero(bias.pattern)) == {2, 4}
        full = maximal_gain_neuron(Phi, M, Q, method=method)
        assert full.gain == pytest.approx(0.2290343419, abs=1e-10)
        assert full.relaxed_bound == pytest.approx(0.2315051505, abs=1e-10)
        assert full.relaxed_bound == pytest.approx(eta[0] ** 2)
        assert full.cells == 30
        assert set(np.flatnonzero(full.pattern)) in F3_PATTERNS


@settings(max_examples=16, deadline=None)
@given(SEEDS)
def test_three_routes_agree_and_nothing_sampled_is_better(seed):
    rng, Phi, M, Q = random_problem(seed)
    if np.linalg.norm(M) < 1e-6 or np.linalg.matrix_rank(Phi) < 2:
        return
    options = [{}, {"compiled": False}, {"method": "faces"}]
    found = [
        maximal_gain_neuron(Phi, M, Q, warm_starts=1, **o) for o in options
    ]
    gains = [r.gain for r in found]
    assert gains == pytest.approx([gains[0]] * 3, abs=1e-9)
    patterns = gating_patterns.enumerate_gating_patterns(Phi)
    assert {r.cells for r in found} == {len(patterns)}
    Z = relu(Phi @ rng.normal(size=(Phi.shape[1], 1500)))
    sampled = neurons.marginal_gain(Z, M, Q).max()
    local = local_search.local_gain_search(Phi, M, Q, starts=4, rng=rng).gain
    assert max(sampled, local) <= gains[0] * (1 + 1e-9) + 1e-12
    relaxed = max(neurons.relaxed_gain(Phi, S, M, Q).value for S in patterns)
    for r in found:
        h = relu(Phi @ r.theta)
        assert neurons.marginal_gain(h, M, Q) == pytest.approx(
            r.gain, abs=1e-9
        )
        assert r.gain <= r.upper_bound <= r.gain * (1 + 1e-8) + 1e-12
        assert r.gain <= r.relaxed_bound <= np.linalg.norm(M, 2) ** 2 + 1e-9
        assert r.gain <= relaxed + 1e-9


@settings(max_examples=14, deadline=None)
@given(SEEDS)
def test_one_target_is_a_convex_problem(seed):
    """A5: nonnegative least squares knows nothing of faces and pencils."""
    rng, Phi, M, Q = random_problem(seed, largest=8)
    if np.linalg.norm(M[:, 0]) < 1e-6 or np.linalg.matrix_rank(Phi) < 2:
        return
    convex = exact_search.single_target_gain(Phi, M[:, 0], Q)
    found = maximal_gain_neuron(Phi, M[:, :1], Q)
    assert found.gain == pytest.approx(convex, abs=1e-8)


@pytest.mark.parametrize("d", [0, 1, 3])
def test_other_ranks_against_convex_problems_and_samples(d):
    for seed in range(3):
        rng = np.random.default_rng(seed)
        Phi = np.column_stack([rng.normal(size=(7, d)), np.ones(7)])
        if seed == 2 and d:
            Phi[4:] = Phi[1]
            Phi[:5, 0] = np.round(Phi[:5, 0])
        U = np.linalg.qr(rng.normal(size=(7, 2)))[0]
        M, Q = with_features(np.ones((7, 1)) if d else np.zeros((7, 0)), U)
        found = maximal_gain_neuron(Phi, M, Q, method="faces")
        Z = relu(Phi @ rng.normal(size=(d + 1, 5000)))
        assert neurons.marginal_gain(Z, M, Q).max() <= found.gain + 1e-10
        assert found.cells == len(
            gating_patterns.enumerate_gating_patterns(Phi)
        )
        one = maximal_gain_neuron(Phi, M[:, :1], Q, method="faces").gain
        convex = exact_search.single_target_gain(Phi, M[:, 0], Q)
        assert one == pytest.approx(convex, abs=1e-8)
        if d < 3:
            swept = maximal_gain_neuron(Phi, M, Q, method="sweep").gain
            assert swept == pytest.approx(found.gain, abs=1e-10)


def test_collinear_points_in_rank_four():
    """More than two hyperplanes may share a plane: six cells, not nine."""
    rng = np.random.default_rng(5)
    X = rng.normal(size=(7, 3))
    X[2], X[3] = (X[0] + X[1]) / 2, 2 * X[0] - X[1]
    Phi = np.column_stack([X, np.ones(7)])
    U = np.linalg.qr(rng.normal(size=(7, 3)))[0]
    M, Q = with_features(np.ones((7, 1)), U)
    found = maximal_gain_neuron(Phi, M, Q, method="faces")
    assert found.cells == len(gating_patterns.enumerate_gating_patterns(Phi))
    local = local_search.local_gain_search(Phi, M, Q, starts=60, rng=0).gain
    assert local <= found.gain + 1e-10
    # sixty climbs come close, which is all a climb can show
    assert local == pytest.approx(found.gain, rel=1e-2)


def test_two_moons_need_few_patterns():
    X, _ = make_moons(60, noise=0.08, random_state=0)
    L = graphs.graph_laplacian(graphs.knn_graph(X, 10))
    U = spectra.laplacian_eigenbasis(L, 5).vectors
    Phi = np.column_stack([X, np.ones(60)])
    M, Q = with_features(Phi, U)
    cold = maximal_gain_neuron(Phi, M, Q, warm_starts=1)
    warm = maximal_gain_neuron(Phi, M, Q, warm_starts=30)
    faces = maximal_gain_neuron(Phi, M, Q, method="faces")
    assert cold.gain == pytest.approx(warm.gain, abs=1e-11)
    assert faces.gain == pytest.approx(warm.gain, abs=1e-11)
    assert (
        warm.cells
        == faces.cells
        == gating_patterns.count_gating_patterns(60, 3)
    )
    assert warm.checked <= cold.checked < warm.cells
    plain = maximal_gain_neuron(Phi, M, Q, warm_starts=30, compiled=False)
    assert plain.checked == warm.checked
    assert plain.gain == pytest.approx(warm.gain, abs=1e-12)


def test_c5_a_neuron_in_h_frees_its_pattern():
    """With an interior neuron of S in H the relaxed bound is attained."""
    checked = 0
    for seed in range(16):
        rng = np.random.default_rng(seed)
        Phi = np.column_stack([rng.normal(size=(9, 2)), np.ones(9)])
        theta0 = rng.normal(size=3)
        S = neurons.gating_pattern(Phi, theta0)
        if S.sum() < 2:
            continue
        U = np.linalg.qr(rng.normal(size=(9, 3)))[0]
        M, Q = with_features(relu(Phi @ theta0)[:, None], U)
        relaxed = neurons.relaxed_gain(Phi, S, M, Q)
        step = np.abs(Phi @ theta0).min() / np.abs(Phi @ relaxed.theta).max()
        h = relu(Phi @ (theta0 + 0.9 * step * relaxed.theta))
        assert neurons.marginal_gain(h, M, Q) == pytest.approx(
            relaxed.value, abs=1e-8
        )
        best = maximal_gain_neuron(Phi, M, Q).gain
        assert best >= relaxed.value - 1e-9
        checked += 1
    assert checked > 8


@settings(max_examples=40, deadline=None)
@given(SEEDS)
def test_c6_with_the_inputs_captured_a_neuron_equals_its_mirror(seed):
    rng, Phi, _, _ = random_problem(seed)
    U = np.linalg.qr(rng.normal(size=(len(Phi), 2)))[0]
    M, Q = with_features(Phi, U)
    z = Phi @ rng.normal(size=Phi.shape[1])
    three = np.column_stack([relu(z), relu(-z), np.abs(z)])
    rest = np.linalg.norm(complement(Q, three), axis=0)
    if rest.min() < 1e-6:
        return
    gains = neurons.marginal_gain(three, M, Q)
    assert gains == pytest.approx([gains[0]] * 3, abs=1e-9)


def test_c6_needs_the_inputs():
    Phi, U, _ = f3()
    z = Phi @ [1.0, 0.5, -1.0]
    M, Q = with_features(np.ones((6, 1)), U)
    up, down = neurons.marginal_gain(relu(np.stack([z, -z], axis=1)), M, Q)
    assert abs(up - down) > 0.01


def test_c7_maximum_on_a_pointed_cone_is_a_face_eigenvalue():
    """Simplicial cones: faces by eigenproblems, against dense sampling."""
    for seed in range(12):
        rng = np.random.default_rng(seed)
        R = rng.normal(size=(3, 3))
        C = rng.normal(size=(2, 3))
        E = rng.normal(size=(3 if seed % 2 else 2, 3))
        if seed % 2 == 0:  # singular B, its kernel inside that of A
            C = C[:, :2] @ np.linalg.qr(E.T)[0][:, :2].T
        A, B = C.T @ C, E.T @ E
        best = 0.0
        for size in (1, 2, 3):
            for face in np.array(np.meshgrid(*[range(3)] * size)).T.reshape(
                -1, size
            ):
                if len(set(face)) < size:
                    continue
                F = R[:, face]
                white, kept = eigh(F.T @ B @ F)
                kept = kept[:, white > 1e-10] / np.sqrt(white[white > 1e-10])
                value, y = eigh(kept.T @ F.T @ A @ F @ kept)
                weights = kept @ y[:, -1]
                if kept.shape[1] < size:
                    continue  # attained on a smaller face
                if weights.min() >= 0 or weights.max() <= 0:
                    best = max(best, value[-1])
        x = R @ rng.exponential(size=(3, 60_000)) ** 3
        sampled = np.sum((C @ x) ** 2, axis=0) / np.sum((E @ x) ** 2, axis=0)
        assert sampled.max() <= best * (1 + 1e-9)
        assert sampled.max() >= 0.98 * best


def test_nothing_left_to_gain():
    Phi, U, _ = f3()
    M, Q = with_features(np.eye(6), U)
    found = maximal_gain_neuron(Phi, 0 * M, Q)
    assert found.gain == 0 and found.checked == 0
    zero = maximal_gain_neuron(Phi, 0 * U)
    assert zero.gain == 0


def test_plain_python_equals_compiled():
    """Without numba the same functions run as plain Python."""
    code = (
        "import sys; sys.modules['numba'] = None\n"
        "import numpy as np\n"
        "from helpers.spectral_alignment.exact_search import *\n"
        "from helpers.spectral_alignment import exact_search_compiled as c\n"
        "assert not c.AVAILABLE\n"
        "rng = np.random.default_rng(0)\n"
        "Phi = np.column_stack([rng.normal(size=(7, 2)), np.ones(7)])\n"
        "U = np.linalg.qr(rng.normal(size=(7, 2)))[0]\n"
        "r = maximal_gain_neuron(Phi, U, compiled=False)\n"
        "s = maximal_gain_neuron(Phi, U, compiled=True)\n"
        "print(repr(float(r.gain)), repr(float(s.gain)), s.checked)\n"
    )
    answer = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True
    )
    assert answer.returncode == 0, answer.stderr
    rng = np.random.default_rng(0)
    Phi = np.column_stack([rng.normal(size=(7, 2)), np.ones(7)])
    U = np.linalg.qr(rng.normal(size=(7, 2)))[0]
    here = maximal_gain_neuron(Phi, U)
    vectorised, plain, checked = answer.stdout.split()
    assert float(plain) == pytest.approx(here.gain, abs=1e-12)
    assert float(vectorised) == pytest.approx(here.gain, abs=1e-12)
    assert int(checked) == here.checked


def test_events_are_in_order_and_counted():
    rng = np.random.default_rng(2)
    normals = rng.normal(size=(9, 3))
    normals /= np.linalg.norm(normals, axis=1)[:, None]
    plane, order, angles, before, edges, vertices = (
        exact_search_compiled.circle_events(normals, 4)
    )
    assert sorted(order) == [0, 1, 2, 3, 5, 6, 7, 8]
    assert (np.diff(angles) > 0).all() and angles[0] >= 0
    assert angles[-1] < np.pi
    assert (edges, vertices) == (16, 8)
    assert np.abs(plane.T @ normals[4]).max() < 1e-14
    for j, angle, side in zip(order, angles, before, strict=True):
        for step in (-1e-6, 1e-6):
            u = plane @ [np.cos(angle + step), np.sin(angle + step)]
            assert np.sign(normals[j] @ u) == (side if step < 0 else -side)


@pytest.mark.parametrize("compiled", [True, False])
def test_the_cell_that_no_normal_points_into_is_examined_too(compiled):
    """Its neuron is the target; a sweep that left it out would miss it."""
    direction = np.random.default_rng(0).normal(size=3)  # as in the search
    for seed in range(4):
        X = np.random.default_rng(seed).normal(size=(9, 2))
        G, _ = neurons.reduced_features(np.column_stack([X, np.ones(9)]))
        h = relu(-G @ direction)
        assert h.any()
        M, Q = h[:, None] / np.linalg.norm(h), np.zeros((9, 0))
        best, record = np.zeros(3), np.zeros(4)
        cells = exact_search._sweep(G, M, Q, best, record, compiled)
        assert cells == 9 * 8 + 2
        assert record[0] == pytest.approx(1, abs=1e-12)
        assert relu(G @ best) / np.linalg.norm(relu(G @ best)) == (
            pytest.approx(M[:, 0], abs=1e-6)
        )


@pytest.mark.parametrize("tilt", [1e-13, -1e-13])
@pytest.mark.parametrize("others", [0, 2])
def test_a_tie_may_go_on_across_the_start_of_the_half_circle(tilt, others):
    """Two circles that cross the third at angles 0 and pi, up to rounding:
    one point of three circles and its opposite, not two of two each."""
    rng = np.random.default_rng(0)
    normals = np.array([[0.0, 0, 1], [tilt, -1, 0.5], [-tilt, -1, 2]])
    more = np.column_stack([np.ones(others), rng.normal(size=(others, 2))])
    normals = np.vstack([normals, more])
    normals /= np.linalg.norm(normals, axis=1)[:, None]
    *_, edges, vertices = exact_search_compiled.circle_events(normals, 0)
    assert edges == 2 + 2 * others
    assert vertices == pytest.approx(2 / 3 + others)


@pytest.mark.parametrize(
    "change, name",
    [
        ({"method": "tree"}, "method"),
        ({"Phi": np.eye(6)}, "Phi must have rank"),
        ({"Phi": np.eye(6), "method": "faces"}, "Phi must have rank"),
        ({"Phi": np.eye(6)[:, :4]}, "faces"),
        ({"Phi": np.zeros((6, 3))}, "Phi"),
        ({"Phi": np.full((6, 3), np.nan)}, "Phi"),
        ({"M": np.ones((5, 1))}, "M"),
        ({"QH": np.ones((6, 1))}, "QH"),
        ({"QH": np.eye(6)[:, :1]}, "M must be orthogonal"),
        ({"warm_starts": 0}, "starts"),
    ],
)
def test_bad_input_is_named(change, name):
    Phi, U, _ = f3()
    with pytest.raises(ValueError, match=name):
        maximal_gain_neuron(**({"Phi": Phi, "M": U} | change))


@pytest.mark.parametrize("seed", [0, 1])
def test_tree_agrees_and_its_unpruned_leaves_are_the_patterns(seed):
    """A3: no running sums, no planes; a linear programme a node."""
    rng = np.random.default_rng(seed)
    Phi = np.column_stack([rng.normal(size=(6, 2)), np.ones(6)])
    if seed % 2:
        Phi[5:] = Phi[1]
        Phi[2, :2] = (Phi[0, :2] + Phi[1, :2]) / 2
    U = np.linalg.qr(rng.normal(size=(6, 2)))[0]
    M, Q = with_features(np.ones((6, 1)), U)
    found = maximal_gain_neuron(Phi, M, Q)
    brute = exact_tree.branch_and_bound(Phi, M, Q, prune=False)
    tree = exact_tree.branch_and_bound(Phi, M, Q)
    assert brute.gain == pytest.approx(found.gain, abs=1e-10)
    assert tree.gain == pytest.approx(found.gain, abs=1e-10)
    assert brute.leaves == found.cells
    assert tree.leaves <= brute.leaves and tree.nodes <= brute.nodes
    assert neurons.marginal_gain(relu(Phi @ tree.theta), M, Q) == (
        pytest.approx(tree.gain, abs=1e-10)
    )


def test_the_tree_visits_more_nodes_than_there_are_cells():
    """It prunes late, and later still in the order of the samples."""
    Phi, U = low_and_high_targets("moons", 8, "u1..5", seed=1)
    M, Q = with_features(Phi, U)
    found = maximal_gain_neuron(Phi, M, Q)
    first, plain = (
        exact_tree.branch_and_bound(Phi, M, Q, largest_first=x)
        for x in (True, False)
    )
    for tree in (first, plain):
        assert tree.gain == pytest.approx(found.gain, abs=1e-10)
        assert tree.nodes > found.cells > tree.leaves
    assert first.nodes < plain.nodes
