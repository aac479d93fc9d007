"""Tasks of the sweeps: small runs by other means, and the stored tables."""

import numpy as np
import pytest

pytest.importorskip("torch", reason="torch is an optional extra")

from helpers.core.statistics import (  # noqa: E402
    bootstrap_interval,
    wilson_interval,
)
from helpers.linear_regions import experiments  # noqa: E402
from helpers.linear_regions.experiments import (  # noqa: E402
    best_unregularised,
    dense_fits,
    epoch_time,
    escaping_peaks,
    loss_curves,
    perturbed_regions,
    region_counts,
    sparse_fits,
    sparse_samples,
    switch_dynamics,
)
from helpers.linear_regions.initialisations import (  # noqa: E402
    init_params,
    network_of,
    random_peaks,
)
from helpers.linear_regions.networks import (  # noqa: E402
    relu_forward,
    triangle_net_layers,
)
from helpers.linear_regions.representable import (  # noqa: E402
    fold_asymmetry_bound,
)
from helpers.linear_regions.targets import TARGETS  # noqa: E402
from helpers.linear_regions.training import (  # noqa: E402
    fit_peaks,
    weights_of_peaks,
)
from helpers.linear_regions.triangles import triangle_sum  # noqa: E402
from helpers.sweep import load_results  # noqa: E402
from tools import ROOT  # noqa: E402

X = np.linspace(0, 1, 500)
FOUR = "x^3", "x^11", "sin", "tanh"


def stored(name):
    return load_results(ROOT / "book" / "data" / f"{name}.parquet").columns


def rows(table, **wanted):
    keep = np.ones(len(table["seed"]), dtype=bool)
    for name, value in wanted.items():
        keep &= np.array([
            list(v) == value if isinstance(value, list) else v == value
            for v in table[name]
        ])  # fmt: skip
    return np.flatnonzero(keep)


# --- small runs --------------------------------------------------------------


@pytest.mark.parametrize("method", ["triangle", "skipped", "default"])
def test_a_dense_fit_without_training_is_its_start(method):
    kind = "default" if method == "default" else "triangle"
    row = dense_fits("sin", kind, 0, 0, runs=3, seed=5)
    target = TARGETS["sin"]
    seeds = [np.random.SeedSequence([5, k]) for k in range(2)]
    for run in range(3):
        if kind == "default":
            params = init_params("default", (1, 4, 4, 4, 4, 4, 1), 3, seeds[1])
            net = network_of(params, run)
        else:
            net = triangle_net_layers(
                random_peaks(3, 5, seeds[0])[run], "concave"
            )
        error = relu_forward(net, X)[:, 0] - target(X)
        assert row["mse"][run] == pytest.approx(np.mean(error**2))
        assert row["start_mse"][run] == row["switch_mse"][run]
    assert row["variance"] == pytest.approx(target(X).var())


def test_methods_share_their_starting_peaks():
    starts = [
        dense_fits("x^3", method, 2, 0, runs=2, seed=1)["start_mse"]
        for method in ("triangle", "unregularised")
    ]
    assert starts[0] == pytest.approx(starts[1])
    few = dense_fits("x^3", "triangle", 2, 1, runs=1, seed=1)
    many = dense_fits("x^3", "triangle", 2, 1, runs=2, seed=1)
    assert few["mse"][0] == pytest.approx(many["mse"][0], rel=1e-9)


def test_the_output_bias_is_gone_and_stays():
    """At a dead start the network without output bias is zero."""
    row = dense_fits("x^3", "no_output_bias", 0, 3, runs=40, seed=0)
    dead = np.array(row["dead"])
    assert dead.any()
    silent = np.array(row["mse"])[dead]
    # 0 for all x: the mean of x^6
    assert np.isclose(silent, np.mean(X**6)).any()


def test_flat_means_close_to_the_variance():
    row = dense_fits("x^3", "he", 0, 0, runs=30, seed=0)
    expected = np.array(row["mse"]) > 0.9 * row["variance"]
    assert expected.tolist() == row["flat"]


def test_geometric_and_other_methods_run():
    for method in ("geometric", "lsuv", "raai"):
        row = dense_fits("tanh", method, 0, 3, runs=2, seed=0)
        assert np.isfinite(row["mse"]).all()


def test_counts_of_networks_that_are_not_finite():
    params = init_params("default", (1, 4, 1), 2, 0)
    params[0][0][1] = np.nan
    counts = region_counts(params)
    assert counts[1].tolist() == [0, 0]
    assert counts[0].min() >= 1


def test_both_layouts_of_sparse_samples():
    train, test = sparse_samples("ends")
    assert (len(train), len(test)) == (10, 9)
    assert train[-1] == 1
    train, test = sparse_samples("left")
    assert (len(train), len(test)) == (10, 10)
    assert test[-1] == 0.95
    for layout in ("ends", "left"):
        train, test = sparse_samples(layout)
        np.testing.assert_allclose(
            test[:9], (train[1:] + train[:-1]) / 2, atol=1e-15
        )


def test_sparse_errors_against_numpy():
    row = sparse_fits("x^3", "triangle", 0, 0, runs=2, seed=0)
    peaks = random_peaks(2, 5, np.random.SeedSequence([0, 0]))
    halfway = sparse_samples("ends")[1][:, 0]
    for run in range(2):
        net = triangle_net_layers(peaks[run], "convex")
        for name, x in (("test", halfway), ("dense", np.linspace(0, 1, 501))):
            error = np.mean((relu_forward(net, x)[:, 0] - x**3) ** 2)
            assert row[f"{name}_mse"][run] == pytest.approx(error)
            assert row[f"switch_{name}_mse"][run] == pytest.approx(error)


def test_dynamics_start_at_the_switch():
    row = switch_dynamics(
        "x^2", "triangle", 0.001, 3, 2, pretrain=5, record=[0, 2, 4]
    )
    assert row["epoch"] == [0] * 3 + [2] * 3 + [4] * 3
    assert row["run"] == [0, 1, 2] * 3
    dense = dense_fits("x^2", "triangle", 5, 4, 3, 2)
    assert row["mse"][:3] == pytest.approx(dense["switch_mse"])
    assert row["mse"][-3:] == pytest.approx(dense["mse"], rel=1e-6)
    assert row["activation"][-3:] == dense["activation"]
    assert len(row["single_precision"]) == 3


def test_curves_join_both_phases():
    row = loss_curves("x^3", "triangle", 25, 10, 2, seed=3, every=10)
    dense = dense_fits("x^3", "triangle", 25, 10, 2, seed=3)
    assert row["epoch"] == [0, 25, 35]
    for place, name in ((0, "start_mse"), (1, "switch_mse"), (2, "mse")):
        assert row["mse"][place] == pytest.approx(dense[name], rel=1e-9)
    raw = loss_curves("x^3", "default", 0, 10, 2, seed=3, every=5)
    assert raw["epoch"] == [0, 5, 10]


def test_the_best_unregularised_network_is_that_of_the_batch():
    row = best_unregularised("x^11", 4, 1, epochs=30)
    dense = dense_fits("x^11", "unregularised", 30, 0, 4, 1)
    assert row["mse"] == pytest.approx(min(dense["mse"]), rel=1e-9)
    assert row["run"] == int(np.argmin(dense["mse"]))


def test_stored_escape_is_below_the_floor_by_clipping():
    """The network is below the floor, the sum that it describes is not."""
    table = stored("best_unregularised")
    [i] = rows(table, target="x^11")
    peaks, scales = table["peaks"][i], np.cumprod(table["ratios"][i])
    target = TARGETS["x^11"]
    ratios = table["ratios"][i]
    net = network_of(weights_of_peaks([peaks], "convex", [ratios]), 0)
    error = np.mean((relu_forward(net, X)[:, 0] - target(X)) ** 2)
    assert error == pytest.approx(table["mse"][i], rel=1e-9)
    formula = triangle_sum(X, peaks, "convex", scales)
    floor = fold_asymmetry_bound(target, (0.01, 0.99)).value
    assert error < floor / 2
    assert np.mean((formula - target(X)) ** 2) > 0.98 * floor
    assert formula.min() < -0.01


def test_times_are_relative_to_raw_weights():
    """Twice the same is about one; many neurons take longer than few."""
    same = epoch_time("default", [4] * 5, 0, epochs=20, runs=5)["ratio"]
    wide = epoch_time("default", [200] * 2, 0, epochs=3, runs=5)["ratio"]
    assert 0.3 < same < 3 < wide


def test_stored_times_of_peaks_are_a_few_epochs_of_weights():
    table = stored("epoch_times")
    peaks = [r for r, m in zip(table["ratio"], table["method"], strict=True)
             if m == "triangle"]  # fmt: skip
    assert 0.8 < np.median(peaks) < 3


def test_noise_of_each_kind():
    """Multiplicative noise keeps zeros; both are nothing at size zero."""
    still = perturbed_regions("multiplicative", 0.0, 3, 0)
    assert still["activation"] == [32] * 3
    tiny = perturbed_regions("additive", 1e-9, 10, 0)["activation"]
    assert min(tiny) >= 32
    assert np.mean(tiny) > 36
    large = perturbed_regions("additive", 0.1, 10, 0)["activation"]
    mild = perturbed_regions("multiplicative", 0.1, 10, 0)["activation"]
    assert np.mean(large) < np.mean(mild) < 32


def test_escapes_are_those_of_the_fit():
    row = escaping_peaks("x^11", 0.1, 0.9, None, 5, 0, epochs=60, lr=0.03)
    peaks = random_peaks(5, 5, np.random.SeedSequence([0, 0]))
    fit = fit_peaks(peaks, "convex", X[:, None], X**11, 60, 0.03, clamp=None)
    assert row["escaped"] == fit.escaped.tolist()
    assert any(row["escaped"])
    kept = escaping_peaks("x^11", 0.1, 0.9, 0.01, 5, 0, epochs=60, lr=0.03)
    assert not any(kept["escaped"])


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: dense_fits("x^4", "he", 0, 0, 1, 0), "name must be"),
        (lambda: dense_fits("x^3", "best", 0, 0, 1, 0), "method"),
        (lambda: dense_fits("x^3", "he", 5, 0, 1, 0), "pretrain"),
        (
            lambda: dense_fits("x^3", "triangle", 0, 0, 1, 0, hidden=[5]),
            "width 4",
        ),
        (lambda: sparse_samples("right"), "layout"),
        (lambda: sparse_samples("ends", 1), "count"),
        (lambda: perturbed_regions("pink", 0.1, 1, 0), "noise"),
        (lambda: perturbed_regions("additive", -1, 1, 0), "size"),
        (lambda: perturbed_regions("additive", np.nan, 1, 0), "size"),
    ],
)
def test_bad_input(call, words):
    with pytest.raises(ValueError, match=words):
        call()


def test_unknown_methods_are_named():
    assert set(experiments.METHODS) >= {"triangle", "default", "geometric"}


# --- what is stored ----------------------------------------------------------


def test_stored_pretraining_keeps_every_region():
    table = stored("dense_fits")
    peaks = rows(table, method="triangle")
    assert all(set(table["fewest"][i]) == {32} for i in peaks)
    assert all(set(table["most"][i]) == {32} for i in peaks)
    free = rows(table, method="unregularised")
    assert min(min(table["fewest"][i]) for i in free) < 32
    assert max(max(table["most"][i]) for i in free) > 32


@pytest.mark.parametrize("name", FOUR)
def test_no_stored_peaks_only_run_is_below_the_floor(name):
    table = stored("dense_fits")
    floor = fold_asymmetry_bound(TARGETS[name], (0.01, 0.99)).value
    for i in rows(table, target=name, method="triangle", epochs=0):
        best = min(table["mse"][i])
        assert best > 0.98 * floor
        assert best < 1.5 * floor


def test_stored_row_is_what_the_code_gives():
    """A short one again; long ones differ between machines."""
    table = stored("dense_fits")
    [i] = rows(table, target="x^3", method="default", epochs=1000,
               hidden=[4] * 5, seed=0)  # fmt: skip
    again = dense_fits("x^3", "default", 0, 0, runs=30, seed=0)
    np.testing.assert_allclose(table["start_mse"][i], again["mse"])
    assert table["start_activation"][i].tolist() == again["activation"]
    [i] = rows(table, target="x^3", method="triangle", pretrain=500, seed=0)
    again = dense_fits("x^3", "triangle", 0, 0, runs=30, seed=0)
    np.testing.assert_allclose(table["start_mse"][i], again["mse"])


def test_stored_zero_bias_starts_have_one_region():
    table = stored("dense_fits")
    for kind in ("he", "xavier", "orthogonal", "lsuv"):
        for i in rows(table, method=kind):
            assert set(table["start_activation"][i]) == {1}
    default = rows(table, method="default", seed=0)
    assert max(max(table["start_activation"][i]) for i in default) > 1


@pytest.mark.parametrize("name", FOUR)
def test_stored_ordering_of_the_tables(name):
    """Recurrence before free scales before no pretraining before default,
    in the median, which does not hang on one seed."""
    table = stored("dense_fits")

    def median(method, pretrain, epochs):
        [i] = rows(table, target=name, method=method, pretrain=pretrain,
                   epochs=epochs, seed=0, hidden=[4] * 5)  # fmt: skip
        return np.median(table["mse"][i])

    ours = median("triangle", 1000, 1000)
    assert ours < median("unregularised", 1000, 1000)
    assert ours < median("triangle", 500, 500)
    assert median("triangle", 500, 500) < median("triangle", 0, 1000)
    assert median("triangle", 0, 1000) < median("default", 0, 1000)


PUBLISHED = {
    # minimum and mean of the row of Theorem 3.1, minimum of the default row
    "x^3": (7.86e-8, 5.27e-7, 2.11e-5),
    "x^11": (8.86e-7, 7.87e-6, 2.19e-5),
    "sin": (5.06e-8, 2.21e-7, 4.5e-5),
    "tanh": (6.82e-8, 8.42e-7, 5.75e-5),
}


@pytest.mark.parametrize("name", FOUR)
def test_stored_tables_are_those_of_the_paper(name):
    """To half an order of magnitude, about what a minimum of 30 moves; the
    default minimum on the sine is a factor 3.4 below the published one."""
    table = stored("dense_fits")
    usual = {"target": name, "seed": 0, "hidden": [4] * 5}
    [i] = rows(table, method="triangle", pretrain=1000, epochs=1000, **usual)
    [j] = rows(table, method="default", epochs=1000, **usual)
    mse = table["mse"][i]
    found = min(mse), np.mean(mse), min(table["mse"][j])
    gaps = np.abs(np.log10(np.array(found) / PUBLISHED[name]))
    assert gaps[:2].max() < 0.5
    assert gaps[2] < 0.6
    # the unpublished budget is further off in the mean
    [k] = rows(table, method="triangle", pretrain=500, **usual)
    half = np.mean(table["mse"][k])
    assert abs(np.log10(half / PUBLISHED[name][1])) > gaps[1]


def test_stored_default_networks_die():
    table = stored("dense_fits")
    flat = [table["flat"][i] for i in rows(
        table, target="x^3", method="default", epochs=1000, hidden=[4] * 5
    )]  # fmt: skip
    low, high = wilson_interval(int(np.sum(flat)), np.size(flat))
    assert low < 0.45 < high
    ours = [table["flat"][i] for i in rows(table, method="triangle")]
    assert not np.any(ours)
    saved = [np.mean(table["flat"][i]) for i in rows(table, method="rai")]
    assert max(saved) < 0.15


def test_stored_means_without_an_output_bias():
    """The published default mean of the sine is above the variance; ours is
    below with a bias and may be above without."""
    table = stored("dense_fits")
    for name, paper in (("sin", 0.115), ("tanh", 0.196)):
        [i] = rows(table, target=name, method="default", epochs=1000, seed=0,
                   hidden=[4] * 5)  # fmt: skip
        [j] = rows(table, target=name, method="no_output_bias")
        assert np.mean(table["mse"][i]) < table["variance"][i] < paper
        low, high = bootstrap_interval(table["mse"][j], rng=0)
        assert low < paper < high


def test_the_sine_is_a_quarter_of_a_period():
    sine = TARGETS["sin"]
    assert sine(1.0) == pytest.approx(1)
    assert sine.first(1.0) == pytest.approx(0, abs=1e-15)
    assert np.sin(1.0) < 0.9


def test_stored_starts_at_equal_budget():
    table, more = stored("dense_fits"), stored("fair_fits")
    for name in ("x^3", "tanh"):
        [i] = rows(table, target=name, method="triangle", pretrain=500, seed=0)
        ours = table["mse"][i]
        for kind in ("default", "he", "xavier", "orthogonal", "lsuv", "rai",
                     "raai", "geometric"):  # fmt: skip
            [j] = rows(table, target=name, method=kind, epochs=1000, seed=0,
                       hidden=[4] * 5)  # fmt: skip
            assert min(table["mse"][j]) > 10 * min(ours)
            assert np.median(table["mse"][j]) > 100 * np.median(ours)
        for j in rows(more, target=name, epochs=2000):
            assert np.median(more["mse"][j]) > 5 * np.median(ours)


def test_stored_half_budgets_are_worse():
    table = stored("dense_fits")
    for name in (*FOUR, "exp"):
        half, full = (
            np.concatenate([table["mse"][i] for i in rows(
                table, target=name, method="triangle", pretrain=k, epochs=k
            )])
            for k in (500, 1000)
        )  # fmt: skip
        assert np.median(half) > 1.5 * np.median(full)
        assert np.mean(half) > 1.5 * np.mean(full)


def test_stored_rates_fail_at_both_ends():
    table = stored("learning_rates")
    for method, epochs in (("default", 1000), ("triangle", 1000)):
        found = rows(table, method=method, epochs=epochs)
        usual = {table["lr"][i]: np.median(table["mse"][i]) for i in found}
        best = {table["lr"][i]: min(table["mse"][i]) for i in found}
        assert usual[0.001] < usual[0.1] / 50
        assert best[0.001] < best[0.1] / 2
        assert best[0.001] < best[1e-6] / 1000


def test_stored_escapes():
    table = stored("escaping_peaks")
    clamped = [i for i, c in enumerate(table["clamp"]) if c == 0.01]
    assert len(clamped) == 5
    assert not any(any(table["escaped"][i]) for i in clamped)
    free = [i for i in rows(table, target="x^11") if i not in clamped]
    assert all(np.mean(table["escaped"][i]) > 0.3 for i in free)


def test_stored_counts_leave_two_to_the_d_after_one_step():
    table = stored("switch_dynamics")
    for i in rows(table, method="triangle"):
        epoch = np.asarray(table["epoch"][i])
        counts = np.asarray(table["activation"][i])
        assert set(counts[epoch == 0]) == {32}
        assert np.mean(counts[epoch == 1] == 32) < 0.2
    for i in rows(table, method="default"):
        assert np.mean(table["activation"][i]) < 10


def test_stored_depths_start_with_all_regions():
    table = stored("depth_sweep")
    for i, hidden in enumerate(table["hidden"]):
        assert set(table["fewest"][i]) == {2 ** len(hidden)}
        if len(hidden) == 9:
            assert np.mean(table["activation"][i]) < 100


def test_stored_noise():
    table = stored("perturbed_regions")
    for kind in ("additive", "multiplicative"):
        found = rows(table, noise=kind)
        counts = {table["size"][i]: table["activation"][i] for i in found}
        assert set(counts[0.0]) == {32}
        assert np.mean(counts[1e-6]) > 32
        assert np.mean(counts[0.1]) < 32


def test_stored_sparse_runs():
    table = stored("sparse_fits")
    for i in rows(table, method="triangle", epochs=0):
        assert table["test_mse"][i].tolist() == pytest.approx(
            table["switch_test_mse"][i].tolist()
        )
    assert set(table["layout"]) == {"ends", "left"}
