"""Every public kernel on drawn arguments, good ones and bad ones.

A call returns finite numbers (or the infinite and undefined ones that its
docstring announces), or raises a ValueError that names a parameter. Nothing
else: no other exception, no warning of division or overflow.
"""

import dataclasses
import importlib
import inspect
import os
import pkgutil
import re
import warnings
import zlib
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import HealthCheck, Phase, given, seed, settings
from hypothesis import strategies as st
from scipy import sparse

import helpers.spectral_alignment as part
from helpers.spectral_alignment.coverage import PoorlySeparatedWarning

MODULES_LEFT_OUT = {
    "training": "needs torch",
    "training_experiments": "tasks of stored runs; most of them train",
    "climbs": "one task of a stored run",
}
FUNCTIONS_LEFT_OUT = {
    "exact_faces.search_faces exact_search_compiled.neuron_gain "
    "exact_search_compiled.examine exact_search_compiled.circle_events "
    "exact_search_compiled.sweep_circles": "inner loops of the exact search",
    "gain_problems.low_and_high_targets gain_problems.compare_searches "
    "graph_choice.choice_outcome greedy_experiments.greedy_decay "
    "greedy_experiments.rate_constants greedy_experiments.cloud_rates "
    "greedy_experiments.roll_climbs "
    "norm_experiments.moons_norms": "tasks of stored runs",
}

# where an infinite or undefined number is an answer that is documented
NOT_FINITE = {
    "block_norms.block_variation_norm_bounds": "neurons out of reach",
    "census.summarize_graph": "no bound where the next eigenvalue is 0",
    "block_norms.dual_bound": "targets out of reach",
    "clusters.cluster_representability": "a norm is infinite",
    "clusters.indicator_norm_bounds": "no hyperplane cuts the cluster off",
    "clusters.spread_to_margin": "no hyperplane cuts the cluster off",
    "coverage.eigenvalue_separation": "only one of the two is zero",
    "coverage.readout_error_bounds": "no bound if the next eigenvalue is 0",
    "graph_choice.graph_selection_objective": "the same",
    "graph_choice.mixture_surrogate": "all those eigenvalues are zero",
    "neuron_sphere.disc_grid": "NaN outside the disc",
    "spectra.laplacian_eigenbasis": "a gap ratio over zero",
    "variation_norms.basis_pursuit": "out of the column space",
    "variation_norms.variation_norm_bounds": "neurons out of reach",
}


def public_functions():
    for module in pkgutil.iter_modules(part.__path__):
        if module.name in MODULES_LEFT_OUT:
            continue
        loaded = importlib.import_module(f"{part.__name__}.{module.name}")
        for name, what in vars(loaded).items():
            own = getattr(what, "__module__", None) == loaded.__name__
            if own and callable(what) and not inspect.isclass(what):
                if not name.startswith("_"):
                    yield f"{module.name}.{name}", what


FUNCTIONS = dict(public_functions())

# a scene: everything that a call may need, drawn to fit together
SAMPLES = ("cloud",) * 3 + ("copies", "point", "line", "dead", "zero")
GRAPHS = ("near", "two parts", "isolated node", "none", "complete", "path")


def samples(kind, n, d, rng):
    X = rng.normal(size=(n, d))
    if kind == "copies":
        X = X[rng.integers(max(1, n // 2), size=n)]
    elif kind == "point":
        X = np.tile(X[:1], (n, 1))
    elif kind == "line":
        X = np.outer(X[:, 0], np.arange(1, d + 1))
    elif kind == "dead":
        X[:, 0] = 0.0
    elif kind == "zero":
        X = 0 * X
    return X


def weights(kind, n, rng):
    W = np.triu(rng.uniform(0.1, 2.0, size=(n, n)), 1)
    i, j = np.indices((n, n))
    if kind == "near":
        W = np.where(rng.uniform(size=(n, n)) < 0.4, W, 0)
    elif kind == "two parts":
        W = np.where((i < n // 2) == (j < n // 2), W, 0)
    elif kind == "isolated node":
        W[:, -1] = 0.0
    elif kind == "none":
        W = 0 * W
    elif kind == "complete":
        W = np.triu(np.ones((n, n)), 1)
    elif kind == "path":
        W = np.where(j == i + 1, 1.0, 0.0)
    return W + W.T


@st.composite
def scenes(draw):
    def one_of(*values):
        return draw(st.sampled_from(values))

    s = SimpleNamespace(rng=np.random.default_rng(draw(st.integers(0, 2**32))))
    rng, n, d = s.rng, one_of(5, 9, 4, 6, 3, 2, 1), one_of(2, 1, 3)
    scale = one_of(1.0, 1.0, 1.0, 1.0, 1e-30, 1e30)
    s.n, s.d, s.t, s.few = n, d, draw(st.integers(0, 4)), one_of(1, 2)
    s.number, s.level = one_of(0.3, 1.0, 0.0, 1e-30, 1e30), one_of(0.0, 2.0)
    s.tol, s.yes = one_of(0.0, 1e-12, 0.5), one_of(True, False)
    s.kind = one_of("combinatorial", "symmetric")
    s.mode, s.weight = one_of("union", "mutual"), one_of("binary", "gaussian")
    s.width, s.rows = one_of(None, s.number), one_of(None, 1, 4)
    s.method, s.compiled = one_of("sweep", "faces"), one_of(None, False)
    s.solver = one_of("dense", "shift_invert", "lobpcg")
    s.skip, s.widths = one_of(None, "concat", "add"), [1, 2]
    s.census = one_of("10-NN", "mutual", "Gaussian", "radius")
    s.data, s.problem_name = (
        one_of("moons", "blobs"),
        one_of("moons", "clouds"),
    )
    s.twelve = one_of(12, 15, 10)
    # samples, a graph, and what they should fit
    s.X = scale * samples(one_of(*SAMPLES), n, d, rng)
    s.more, s.last, s.step = np.vstack([s.X, s.X + 1, s.X + 2]), n - 1, s.X[0]
    s.Z = scale * samples(one_of(*SAMPLES), n, d, rng)
    s.Phi = np.column_stack([s.X[:, :2], np.ones(n)])
    s.H0 = one_of(None, s.Phi, s.Z)
    s.K = one_of(1, 1, 2, n - 1, n, n + 1, 0)
    s.W = scale * weights(one_of(*GRAPHS), n, rng)
    s.L = np.diag(s.W.sum(axis=0)) - s.W
    if draw(st.booleans()):
        s.W, s.L = sparse.csr_array(s.W), sparse.csr_array(s.L)
    k = min(max(s.K, 1), n)
    s.U = np.linalg.qr(rng.normal(size=(n, n)))[0]
    s.UK, s.lam = s.U[:, :k], scale * np.sort(rng.integers(4, size=k + 1))
    s.M = one_of(0, 1, 1) * s.UK
    s.m, s.QH = s.M[:, 0], one_of(None, s.U[:, k : k + 2])
    s.f = scale * one_of(0, 1, 1) * rng.normal(size=n)
    s.h, s.eigenvalues = one_of(s.f, s.Z), one_of(None, np.arange(n) // 2)
    s.Phi_new, s.f_new = s.Phi[:2], s.f[:2]
    s.three = one_of(s.Phi, rng.normal(size=(n, 3)))
    s.S, s.labels = rng.integers(2, size=n), rng.integers(3, size=n)
    if one_of(True, True, False):
        s.labels = 1 * (s.X[:, 0] > np.median(s.X[:, 0]))
    s.c, s.norms = s.labels[0], np.ones(len(set(s.labels)))
    # neurons, layers, directions
    s.Theta = rng.normal(size=(s.Phi.shape[1], one_of(0, 1, 4)))
    s.theta = one_of(0, 1, 1) * rng.normal(size=s.Phi.shape[1])
    s.rows_theta, s.w = s.Theta.T, rng.normal(size=d)
    s.weights = [rng.normal(size=(d, s.few)), rng.normal(size=(s.few,) * 2)]
    s.biases = [np.zeros(s.few)] * 2
    s.point, s.center = rng.normal(size=(2, 3))
    s.plane = s.point[:2] * s.number
    G = rng.normal(size=(3, 3))
    s.A, s.B, s.rays = G @ G.T, one_of(0, 1) * np.eye(3), np.eye(3)[:, : s.few]
    s.shares = rng.uniform(0, 1.03, size=one_of(1, 3, 1, 0))
    s.e, s.gamma = np.array([0.0, 0.5]), np.array([2.0, s.number])
    s.problem = MOONS
    return s


# a function, and its arguments by their names in a scene
REGISTRY = """
block_norms.dual_bound Phi H0 targets=UK Y=M
block_norms.block_variation_norm_bounds Phi UK H0 rounds=few
census.standard_graph X=more name=census
census.leverage_lower_bound L following=number
census.summarize_graph W kind K f features=Z
clusters.spread_to_margin labels H=X c
clusters.cluster_indicator_neurons labels H=X c
clusters.indicator_norm_bounds labels H=X c
clusters.indicator_basis labels
clusters.cluster_representability UK labels norms
clusters.cluster_frequency_bound L labels following=number
cone_faces.simplicial_cone_maximum A B rays
cone_faces.extreme_rays Phi=three S
cone_faces.pattern_maximum Phi=three S M QH
constructions.copy_layer H=X first=yes
constructions.shifted_copy_layer H=Phi
constructions.principal_vectors Phi UK
constructions.principal_direction_layer Phi UK rng tol
constructions.shifted_principal_layer Phi UK rng tol centered=yes
coverage.residual_matrix Z UK
coverage.coverage_sines Z UK
coverage.coverage_gap Z UK rtol=tol
coverage.captured_features Z UK
coverage.coverage_deficit Z UK
coverage.least_squares_readout Z f rtol=tol
coverage.eigenvalue_separation lam
coverage.readout_error_bounds Z UK L f lam
coverage.ky_fan_limits Phi UK t
coverage.ky_fan_directions Phi UK t
coverage.choose_features UK t pool=Z start=H0
exact_search.maximal_gain_neuron Phi M QH method compiled
exact_search.single_target_gain Phi QH target=m
exact_tree.branch_and_bound Phi M QH
gain_problems.greedy_gain_problems Phi U steps=few
gain_problems.random_gain Phi M QH tries=few
graph_choice.graph_selection_objective W f Phi K t kind
graph_choice.held_out_error Phi f theta=rows_theta Phi_new f_new
graph_choice.mixture_surrogate W f K
graphs.check_weights W
graphs.neighbor_distances X k=K
graphs.knn_graph X k=K mode weight sigma=width
graphs.epsilon_graph X eps=number
graphs.rbf_graph X sigma=number
graphs.graph_laplacian W kind
graphs.sample_graph W kind
greedy.exact_oracle Phi M QH
greedy.local_oracle rng starts=few
greedy.random_oracle rng
greedy.lazy_oracle rng alpha=number tries=few
greedy.greedy_coverage Phi UK t H0
greedy_experiments.greedy_problem name=problem_name n=twelve
greedy_experiments.fresh_random_oracle rng
greedy_experiments.representability_floor UK Phi Y=M epsilon=number
layers.with_bias H=X
layers.neuron_outputs Phi Theta
layers.random_layers d rng widths skip gain=number bias_scale=number
layers.relu_features X weights biases skip
leverage.sketched_leverage_scores L K rng probes=few degree=few
leverage.feature_leverage_scores Z rng sketch_rows=rows
neuron_dictionary.class_basis Phi
neuron_dictionary.staircase Phi rng
neuron_sphere.to_disc eta=point center
neuron_sphere.from_disc point=plane center
neuron_sphere.disc_grid center size=twelve
neuron_sphere.half_circle normal=point center
neurons.check_uncovered M QH n
neurons.reduced_features Phi
neurons.gating_pattern Phi theta
neurons.gating_pencil Phi S M QH
neurons.relaxed_gain Phi S M QH
neurons.realizable_direction Phi S QH v=f
neurons.marginal_gain M QH h
neurons.marginal_gain_gradient theta Phi M QH
gating_patterns.count_gating_patterns n rank=d
gating_patterns.enumerate_gating_patterns Phi
gating_patterns.parallel_classes G=X
local_search.local_gain_search Phi M QH starts=few
local_search.climb_gain theta Phi M QH
local_search.gating_fixed_point Phi M QH starts=few steps=few
active_bounds.dirichlet_eigenvalue L active=S
active_bounds.active_set_bounds UK L active=S
active_bounds.nodal_domains W x=f
norm_curves.variation_pareto_curve Phi UK H0 mus=shares rounds=few
norm_curves.representability_curve Phi UK mus=shares
norm_experiments.moons_problem n=twelve K
norm_experiments.moons_functions problem
norm_experiments.near_pair X i=last step h=number
partitions.sample_partition H=X tol
partitions.partition_basis labels
partitions.coverage_ceiling H=X UK tol
partitions.separating_direction H=X rng tries=few
partitions.staircase_neurons H=X w offset=number
plane_search.plane_search Phi M QH rounds=few
rates.single_neuron_bound gap=shares kappa=number epsilon=tol
rates.greedy_rate_bound t K delta0=number kappa=number
rates.greedy_gap_bound t K kappa=number epsilon=tol
rates.block_gain_bound delta=number gamma=level
rates.block_rate_bound t delta0=number gamma=level
rates.adaptive_rate_bound T=t delta0=number e gamma
sample_sets.sample_set name=data n
sample_sets.three_clouds n rng spread=number
sparse_neurons.neurons_active_on X rng fraction=number count=few
sparse_neurons.sparse_layers X UK fraction=number width=few count=few layers=few
sparse_neurons.sparse_neuron_bounds X UK L fraction=number count=few
spectra.fix_signs U=Z
spectra.laplacian_eigenbasis L K solver
spectra.laplacian_spectrum L
spectra.graph_fourier_transform U=UK x=f
spectra.dirichlet_energy L x=f
spectra.rayleigh_quotient L x=f
spectra.low_pass_split UK x=Z
spectra.high_frequency_bound L x=f next_eigenvalue=number
spectra.cumulative_energy U x=f eigenvalues
spectra.leverage_scores UK
variation_norms.basis_pursuit D=Z v=f
variation_norms.variation_norm_bounds Phi v=f rounds=few
"""
CASES = {
    line.split()[0]: [
        (pair + "=" + pair).split("=")[:2] for pair in line.split()[1:]
    ]
    for line in REGISTRY.strip().splitlines()
}
EXAMPLES = int(os.environ.get("FUZZ", 16))
MOONS = FUNCTIONS["norm_experiments.moons_problem"](12)


def test_every_public_function_is_fuzzed_or_left_out_with_a_reason():
    left_out = set(" ".join(FUNCTIONS_LEFT_OUT).split())
    assert set(CASES) | left_out == set(FUNCTIONS)
    assert not set(CASES) & left_out
    assert set(NOT_FINITE) <= set(CASES)


def spoiled(value, draw):
    """One argument made bad."""
    if isinstance(value, bool | np.random.Generator) or value is None:
        return value
    if isinstance(value, str):
        return "no such name"
    if isinstance(value, int | np.integer):
        return draw(st.sampled_from([-1, 0, 2.5, np.nan, np.inf, 99]))
    if isinstance(value, float):
        return draw(st.sampled_from([-1.0, 0.0, np.nan, np.inf, 1.0]))
    if isinstance(value, list):
        return value[:-1]
    if sparse.issparse(value):
        value = value.toarray()
    if not isinstance(value, np.ndarray):
        return value
    how = draw(st.sampled_from(["nan", "inf", "empty", "deep", "short", "0"]))
    if how in ("nan", "inf") and value.size:
        value = value.astype(float)
        value.flat[-1] = float(how)
        return value
    bad = {
        "deep": value[None, ..., None],
        "short": value[:-1],
        "0": 0 * value,
    }
    return bad.get(how, np.zeros((0,) * value.ndim))


def numbers(result):
    """All arrays and floats of a result, whatever holds them."""
    if dataclasses.is_dataclass(result):
        result = [getattr(result, x.name) for x in dataclasses.fields(result)]
    if isinstance(result, dict):
        result = list(result.values())
    if inspect.isgenerator(result):
        result = list(result)
    if sparse.issparse(result):
        result = result.data
    if isinstance(result, list | tuple):
        for item in result:
            yield from numbers(item)
    elif isinstance(result, np.ndarray | float | np.floating):
        yield np.asarray(result, dtype=float)


@pytest.mark.parametrize("name", CASES)
def test_a_call_answers_or_names_what_is_wrong(name):
    function, outcomes = FUNCTIONS[name], set()
    parameters = "|".join(inspect.signature(function).parameters)

    @settings(
        max_examples=EXAMPLES,
        deadline=None,
        database=None,
        phases=[Phase.generate],  # a scene does not shrink usefully
        suppress_health_check=list(HealthCheck),
    )
    @given(scenes(), st.sampled_from([False, False, True]), st.data())
    def calls(drawn, spoil, data):
        arguments = {key: getattr(drawn, of) for key, of in CASES[name]}
        if spoil and arguments:
            which = data.draw(st.sampled_from(sorted(arguments)))
            arguments[which] = spoiled(arguments[which], data.draw)
        try:
            found = list(numbers(function(**arguments)))
        except ValueError as error:
            message = str(error)
            assert re.search(rf"\b({parameters})\b", message), message
            outcomes.add("refused")
            return
        outcomes.add("answered")
        if name not in NOT_FINITE:
            assert all(np.isfinite(x).all() for x in found)

    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warnings.simplefilter("ignore", PoorlySeparatedWarning)
        for attempt in range(6):  # the same examples on every machine
            seed(zlib.crc32(f"{name} {attempt}".encode()))(calls)()
            if "answered" in outcomes:
                return
    pytest.fail(f"the arguments of the registry miss {name}")
