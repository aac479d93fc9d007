"""Variation norms: by hand on three nodes, by duality, and as norms."""

import warnings

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.spatial import ConvexHull
from sklearn.datasets import make_moons
from sklearn.linear_model import lars_path

from helpers.spectral_alignment import (
    graphs,
    neuron_dictionary,
    neurons,
    spectra,
    variation_norms,
)
from helpers.spectral_alignment.sample_sets import sample_set
from helpers.spectral_alignment.variation_norms import (
    basis_pursuit,
    variation_norm_bounds,
)

SEEDS = st.integers(0, 2**32 - 1)
PATH = np.array([[-1.0, 1.0], [0.0, 1.0], [1.0, 1.0]])
F2 = {
    "constant": (np.ones(3) / np.sqrt(3), 1.0),
    "u2": (np.array([-1.0, 0, 1]) / np.sqrt(2), np.sqrt(2)),
    "e2": (np.array([0.0, 1, 0]), 2 + np.sqrt(3)),
    "u3": (np.array([1.0, -2, 1]) / np.sqrt(6), np.sqrt(6) + np.sqrt(2)),
}


def relu(z):
    return np.maximum(z, 0.0)


def unit_neurons(Phi, count, rng):
    H = relu(Phi @ rng.normal(size=(Phi.shape[1], count)))
    size = np.linalg.norm(H, axis=0)
    return H[:, size > 1e-9] / size[size > 1e-9]


def plane_sample(rng, n):
    return np.column_stack([rng.normal(size=(n, 2)), np.ones(n)])


def check(found, Phi, v, rng=0):
    """Feasible primal and dual, from the definition and by sampling."""
    D = relu(Phi @ found.theta)
    assert np.linalg.norm(D, axis=0) == pytest.approx(1, abs=1e-9)
    assert found.atoms == pytest.approx(D, abs=1e-9)
    assert D @ found.coefficients == pytest.approx(v, abs=1e-9)
    assert np.abs(found.coefficients).sum() >= found.upper * (1 - 1e-9)
    assert np.abs(found.coefficients).sum() <= found.upper * (1 + 1e-9)
    sampled = unit_neurons(Phi, 2000, np.random.default_rng(rng))
    worst = np.abs(found.dual @ np.column_stack([sampled, found.atoms])).max()
    assert worst <= 1 + 1e-9
    assert v @ found.dual == pytest.approx(found.lower, abs=1e-9)
    assert found.lower <= found.upper
    assert np.linalg.norm(v) <= found.upper * (1 + 1e-9)


@pytest.mark.parametrize("name", F2)
def test_f2_closed_forms(name):
    v, value = F2[name]
    found = variation_norm_bounds(PATH, v, tol=1e-7)
    # HiGHS is content with a basis that is optimal to 1e-7
    assert found.upper == pytest.approx(value, rel=1e-7)
    assert found.lower == pytest.approx(value, rel=2e-7)
    check(found, PATH, v)


def test_f2_by_hand():
    """The atoms and the certificate of the text, nothing else."""
    D = np.column_stack([np.eye(3)[:, [0, 2]], np.ones(3) / np.sqrt(3)])
    y = np.array([-1.0, 2 + np.sqrt(3), -1.0])
    for name, weights in (
        ("e2", [-1, -1, np.sqrt(3)]),
        ("u3", [np.sqrt(1.5), np.sqrt(1.5), -np.sqrt(2)]),
    ):
        v, value = F2[name]
        assert D @ weights == pytest.approx(v)
        assert np.abs(weights).sum() == pytest.approx(value)
        assert abs(y @ v) == pytest.approx(value)
    grid = np.linspace(0, 2 * np.pi, 20_001)
    H = relu(PATH @ np.stack([np.cos(grid), np.sin(grid)]))
    size = np.linalg.norm(H, axis=0)
    reach = np.abs(y @ (H[:, size > 0] / size[size > 0]))
    assert reach.max() == pytest.approx(1, abs=1e-6)
    wrong = np.array([-1.0, 2.1 + np.sqrt(3), -1.0])
    assert np.abs(wrong @ (H[:, size > 0] / size[size > 0])).max() > 1.02


def test_f2_kappas():
    norms = [F2[name][1] for name in ("constant", "u2", "u3")]
    assert np.sqrt(3) * max(norms) == pytest.approx(6.692, abs=5e-4)
    assert np.linalg.norm(norms) == pytest.approx(4.234, abs=5e-4)


@settings(max_examples=25, deadline=None)
@given(SEEDS)
def test_basis_pursuit_equals_its_dual(seed):
    rng = np.random.default_rng(seed)
    n, N = int(rng.integers(2, 8)), int(rng.integers(2, 25))
    D = rng.normal(size=(n, N)) * 10 ** rng.uniform(-2, 2, size=N)
    if seed % 3 == 0:
        D[-1] = D[0]
        D[:, -1] = 0.0
    v = 10 ** rng.uniform(-4, 4) * (D / np.linalg.norm(D)) @ rng.normal(size=N)
    found = basis_pursuit(D, v)
    assert D @ found.coefficients == pytest.approx(
        v, abs=1e-8 * np.linalg.norm(v)
    )
    assert found.value == np.abs(found.coefficients).sum()
    assert np.abs(D.T @ found.dual).max() <= 1 + 1e-12
    assert found.dual @ v == pytest.approx(found.value, rel=1e-5)
    assert np.count_nonzero(found.coefficients) <= n
    # any other way to write v costs as much or more
    null = np.linalg.svd(D)[2][n:]
    for direction in null[:3]:
        other = found.coefficients + rng.normal() * direction
        assert np.abs(other).sum() >= found.value * (1 - 1e-6)


def test_basis_pursuit_out_of_reach_zero_and_empty():
    D = np.eye(3)[:, :2]
    out = basis_pursuit(D, [1.0, 0.0, 2.0])
    assert out.value == np.inf and (out.coefficients == 0).all()
    assert np.abs(D.T @ out.dual).max() < 1e-12
    assert out.dual @ [1.0, 0.0, 2.0] == pytest.approx(2)
    zero = basis_pursuit(D, np.zeros(3))
    assert zero.value == 0 and zero.residual == 0
    empty = basis_pursuit(np.zeros((2, 0)), [1.0, 0.0])
    assert empty.value == np.inf and empty.coefficients.shape == (0,)


def test_intervals_nest_when_the_dictionary_grows():
    rng = np.random.default_rng(4)
    Phi = plane_sample(rng, 9)
    v = rng.normal(size=9)
    found = variation_norm_bounds(Phi, v, tol=1e-3)
    start = neuron_dictionary.staircase(Phi)[1]
    pool = unit_neurons(Phi, 400, rng)
    values = [
        basis_pursuit(np.column_stack([start, pool[:, :k]]), v).value
        for k in (0, 20, 100, 400)
    ]
    assert (np.diff(values) <= 1e-6 * values[0]).all()
    assert values[0] > values[-1] > found.lower
    loose = variation_norm_bounds(Phi, v, tol=0.2)
    assert loose.lower <= found.upper * (1 + 1e-9)
    assert found.lower <= loose.upper * (1 + 1e-9)


@settings(max_examples=6, deadline=None)
@given(SEEDS)
def test_it_is_a_norm_above_the_euclidean_one(seed):
    rng = np.random.default_rng(seed)
    n = int(rng.integers(3, 9))
    Phi = plane_sample(rng, n)
    if seed % 4 == 0:
        Phi[:, 0] = np.round(Phi[:, 0])
        Phi[n // 2 :, 1] = Phi[n // 2 :, 0] / 2
        Phi = np.unique(Phi, axis=0)
    if seed % 4 == 1:
        Phi = Phi[:, 1:]
    v, w = rng.normal(size=(2, len(Phi)))
    scale = float(10 ** rng.uniform(-3, 3))
    a, b = (variation_norm_bounds(Phi, x, tol=0.01) for x in (v, w))
    both = variation_norm_bounds(Phi, v + w, tol=0.01)
    check(a, Phi, v, seed)
    assert both.lower <= (a.upper + b.upper) * (1 + 1e-9)
    mirrored = variation_norm_bounds(Phi, -scale * v, tol=0.01)
    assert mirrored.lower <= scale * a.upper * (1 + 1e-9)
    assert scale * a.lower <= mirrored.upper * (1 + 1e-9)
    # neurons are nonnegative: a bound that needs no sweep
    half = max(np.linalg.norm(relu(v)), np.linalg.norm(relu(-v)))
    assert v @ v / half <= a.upper * (1 + 1e-9)


@pytest.mark.parametrize("d", [0, 1, 2])
def test_a_unit_neuron_costs_one(d):
    rng = np.random.default_rng(d)
    Phi = np.column_stack([rng.normal(size=(7, d)), np.ones(7)])
    for h in unit_neurons(Phi, 6, rng).T[:2]:
        found = variation_norm_bounds(Phi, -3 * h, tol=1e-4)
        assert found.upper == pytest.approx(3, rel=1e-4)
        assert found.lower <= 3 * (1 + 1e-9)


def test_sampled_dictionaries_never_beat_the_lower_bound():
    X, _ = make_moons(30, noise=0.08, random_state=0)
    L = graphs.graph_laplacian(graphs.knn_graph(X, 6))
    u = spectra.laplacian_eigenbasis(L, 3).vectors[:, 2]
    Phi = np.column_stack([X, np.ones(30)])
    found = variation_norm_bounds(Phi, u, tol=0.01)
    check(found, Phi, u)
    assert found.lower >= 0.99 * found.upper
    pool = unit_neurons(Phi, 3000, np.random.default_rng(0))
    sampled = basis_pursuit(pool, u).value
    assert found.lower < sampled < 1.5 * found.upper
    # all crossings of two circles: a finite dictionary without any search
    faces = neuron_dictionary.NeuronFaces(Phi, np.zeros((30, 0)))
    crossings = basis_pursuit(faces.ray_atoms, u).value
    assert found.lower <= crossings * (1 + 1e-6)


def near_pair(h, interior, seed=3):
    """Twelve points and one more at distance h from one of them."""
    X = np.random.default_rng(seed).normal(size=(12, 2))
    hull = ConvexHull(X)
    depth = -(hull.equations @ np.column_stack([X, np.ones(12)]).T).max(axis=0)
    i = int(np.argmax(depth)) if interior else int(hull.vertices[0])
    out = X[i] - X.mean(axis=0)
    step = np.array([1.0, 0] if interior else [-out[1], out[0]])
    X = np.vstack([X, X[i] + h * step / np.linalg.norm(step)])
    v = np.zeros(13)
    v[i], v[12] = 1 / np.sqrt(2), -1 / np.sqrt(2)
    return np.column_stack([X, np.ones(13)]), v, depth[i]


def test_near_duplicates_inside_cost_like_one_over_h():
    products = []
    for h in (0.03, 0.01, 0.003):
        Phi, v, radius = near_pair(h, True)
        found = variation_norm_bounds(Phi, v, tol=0.01)
        check(found, Phi, v)
        # sqrt(2) r / h is proved, r the distance of both to the hull
        assert found.upper * h >= np.sqrt(2) * (radius - h)
        products.append([found.lower * h, found.upper * h])
    low, high = np.array(products).T
    assert high.max() / low.min() < 1.1


def test_near_duplicates_on_the_hull_cost_sqrt_two():
    for h in (0.03, 0.001):
        Phi, v, _ = near_pair(h, False)
        points = ConvexHull(Phi[:, :2]).vertices
        assert set(np.flatnonzero(v)) <= set(points)
        found = variation_norm_bounds(Phi, v, tol=1e-6)
        assert found.upper == pytest.approx(np.sqrt(2), rel=1e-6)
        assert found.lower == pytest.approx(np.sqrt(2), rel=2e-6)


def test_infinite_exactly_outside_the_classes():
    Phi = PATH[[0, 1, 2, 1]]
    out = variation_norm_bounds(Phi, [0.0, 1.0, 0.0, 0.0])
    assert out.lower == out.upper == np.inf
    assert out.dual @ [0.0, 1.0, 0.0, 0.0] > 0
    pool = unit_neurons(Phi, 100, np.random.default_rng(0))
    assert np.abs(out.dual @ pool).max() < 1e-9
    inside = variation_norm_bounds(Phi, [0.0, 1.0, 0.0, 1.0], tol=1e-4)
    assert np.isfinite(inside.upper)
    check(inside, Phi, np.array([0.0, 1.0, 0.0, 1.0]))


def test_zero_and_one_sample():
    zero = variation_norm_bounds(PATH, np.zeros(3))
    assert zero.lower == zero.upper == 0
    one = variation_norm_bounds([[2.0, 1.0]], [-5.0], tol=1e-6)
    assert one.upper == pytest.approx(5)
    same = variation_norm_bounds(np.ones((4, 1)), np.full(4, 2.0), tol=1e-6)
    assert same.lower == pytest.approx(4) == same.upper


def test_sparse_support():
    rng = np.random.default_rng(8)
    Phi = plane_sample(rng, 20)
    found = variation_norm_bounds(Phi, rng.normal(size=20))
    assert np.count_nonzero(found.coefficients) <= 20 < len(found.coefficients)


@pytest.mark.parametrize(
    "change, name",
    [
        ({"v": np.ones(4)}, "v must have shape"),
        ({"v": [np.nan, 0, 0]}, "v must be finite"),
        ({"v": np.ones((3, 1))}, "v must have shape"),
        ({"Phi": np.full((3, 2), np.inf)}, "Phi"),
        ({"Phi": np.zeros((3, 2))}, "Phi"),
        ({"Phi": PATH[:, :1]}, "constant"),
        ({"Phi": np.eye(3)[:, :0]}, "Phi"),
        ({"tol": 0.0}, "tol"),
        ({"tol": 1.0}, "tol"),
        ({"tol": np.nan}, "tol"),
        ({"rounds": 0}, "rounds"),
    ],
)
def test_bad_input_is_named(change, name):
    with pytest.raises(ValueError, match=name):
        variation_norm_bounds(**({"Phi": PATH, "v": np.ones(3)} | change))


def test_rank_four_is_refused():
    Phi = np.column_stack([np.eye(5)[:, :3], np.ones(5)])
    with pytest.raises(ValueError, match="rank at most 3"):
        variation_norm_bounds(Phi, np.eye(5)[0])


@pytest.mark.parametrize(
    "D, v, name",
    [
        (np.eye(2), [1.0], "D must have shape"),
        (np.eye(2), [], "v must have shape"),
        (np.eye(2), [np.nan, 1], "v must be finite"),
        (np.full((2, 2), np.inf), [1.0, 1], "D must be finite"),
        (np.ones(2), [1.0, 1], "D must have shape"),
    ],
)
def test_bad_dictionaries_are_named(D, v, name):
    with pytest.raises(ValueError, match=name):
        basis_pursuit(D, v)


def test_names_are_exported():
    for name in variation_norms.__all__:
        assert hasattr(variation_norms, name)
    assert neurons.reduced_features(PATH)[0].shape == (3, 2)


def test_least_angle_regression_gives_up_on_near_copies():
    """A dictionary of ReLUs has columns that nearly agree: scikit-learn's
    path ends early, with a larger sum and a residual; the programme does not."""
    rng = np.random.default_rng(0)
    X, _ = sample_set("moons", 100, 0)
    Phi = np.column_stack([X, np.ones(100)])
    L = graphs.graph_laplacian(graphs.knn_graph(X, 10))
    v = spectra.laplacian_eigenbasis(L, 5).vectors[:, 4]
    theta = rng.normal(size=(3, 1500))
    near = theta[:, :300] + 1e-4 * rng.normal(size=(3, 300))
    D = np.maximum(Phi @ np.column_stack([theta, near]), 0)
    D = D[:, np.linalg.norm(D, axis=0) > 1e-9]
    D /= np.linalg.norm(D, axis=0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        *_, path = lars_path(D, v, method="lasso", max_iter=3000)
    theirs, ours = path[:, -1], basis_pursuit(D, v)
    assert np.linalg.norm(D @ ours.coefficients - v) < 1e-6
    assert np.linalg.norm(D @ theirs - v) > 0.01
    assert np.abs(theirs).sum() > ours.value
