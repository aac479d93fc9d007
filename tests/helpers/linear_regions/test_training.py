"""Training: weights from peaks, gradients, Adam, clamps, independence."""

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="torch is an optional extra")

from helpers.linear_regions.cells import wave_cells  # noqa: E402
from helpers.linear_regions.initialisations import (  # noqa: E402
    geometric_coordinates,
    geometric_layer,
    init_params,
    network_of,
    random_peaks,
)
from helpers.linear_regions.networks import (  # noqa: E402
    relu_forward,
    triangle_net_layers,
)
from helpers.linear_regions.training import (  # noqa: E402
    batched_forward,
    fit_geometric,
    fit_params,
    fit_peaks,
    map_entries,
    peak_derivative,
    peaks_to_params,
    recurrence_ratios,
    weights_of_peaks,
)
from helpers.linear_regions.triangles import (  # noqa: E402
    limit_scales,
    peak_jacobian,
    triangle_sum,
)

MODES = "convex", "concave"
X = np.linspace(0, 1, 101)[:, None]
CUBE = X[:, 0] ** 3


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("depth", [1, 2, 5, 8])
def test_weights_of_peaks_are_the_network(mode, depth):
    peaks = random_peaks(3, depth, depth)
    params = peaks_to_params(torch.tensor(peaks), mode)
    out = batched_forward(params, torch.tensor(X.T[None])).numpy()
    for run, a in enumerate(peaks):
        for (W, b), (V, c) in zip(
            weights_of_peaks(peaks, mode),
            triangle_net_layers(a, mode),
            strict=True,
        ):
            np.testing.assert_allclose(W[run], V, atol=1e-13)
            np.testing.assert_allclose(b[run], c, atol=1e-13)
        np.testing.assert_allclose(
            out[run, 0], triangle_sum(X[:, 0], a, mode), atol=1e-13
        )


@pytest.mark.parametrize("mode", MODES)
def test_free_ratios_are_products_of_scales(mode):
    peaks = random_peaks(1, 4, 0)
    scales = np.array([0.3, 0.02, 0.05, 0.001])
    ratios = scales / np.r_[1, scales[:-1]]
    params = peaks_to_params(
        torch.tensor(peaks), mode, torch.tensor(ratios[None])
    )
    out = batched_forward(params, torch.tensor(X.T[None])).numpy()[0, 0]
    wanted = triangle_sum(X[:, 0], peaks[0], mode, scales)
    # concave sums stay positive; convex ones may not, so compare where ReLU
    # has not cut the running sum
    assert (wanted > 0)[1:].all()
    np.testing.assert_allclose(out, wanted, atol=1e-13)


@pytest.mark.parametrize("mode", MODES)
def test_weight_setting_passes_gradcheck(mode):
    """Autograd against torch's numerical derivative, and the closed form."""
    peaks = torch.tensor(random_peaks(2, 4, 7), requires_grad=True)
    ratios = recurrence_ratios(peaks.detach(), mode).requires_grad_()
    x = torch.tensor(np.random.default_rng(0).uniform(size=(1, 1, 9)))

    def outputs(a, s):
        return batched_forward(peaks_to_params(a, mode, s), x)

    assert torch.autograd.gradcheck(outputs, (peaks, ratios))
    t = x.numpy().ravel()
    for a in peaks.detach().numpy():
        found = peak_derivative(a, mode, t)
        np.testing.assert_allclose(
            found, peak_jacobian(t, a, mode), atol=1e-12
        )
        numbers = np.array(
            [
                triangle_sum(t, a + 1e-6 * e, mode)
                - triangle_sum(t, a - 1e-6 * e, mode)
                for e in np.eye(5)
            ]
        )
        np.testing.assert_allclose(found, numbers / 2e-6, atol=1e-6)


def test_largest_derivative_in_a_peak_is_a_scale():
    """s_(j-1) / a_j, attained; and of one sign."""
    for a in random_peaks(40, 8, 1):
        knots = wave_cells(a[:-1]).knots
        grid = np.union1d(knots, (knots[1:] + knots[:-1]) / 2)
        for mode, sign in (("convex", -1), ("concave", 1)):
            slopes = sign * peak_jacobian(grid, a, mode)[1:]
            largest = limit_scales(a, mode) / a[1:]
            np.testing.assert_allclose(slopes.max(axis=1), largest, rtol=1e-9)
            assert (slopes >= -1e-9 * largest[:, None]).all()
            # the first peak lowers F in either mode
            assert peak_jacobian(grid, a, mode)[0].max() < 1e-9


def test_entries_of_the_map_grow_by_a_fixed_number():
    counts = [map_entries(random_peaks(1, d, 0)[0], "convex")
              for d in range(3, 9)]  # fmt: skip
    # two peaks each in 4 numbers of rows one, two and three together with
    # the threshold and the bias: 2 (2 + 2 + 3 + 1)
    assert set(np.diff(counts)) == {16}
    assert map_entries([0.3, 0.4, 0.6], "concave", scales=True) == 5
    scales = [map_entries(random_peaks(1, d, 0)[0], "convex", scales=True)
              for d in range(3, 9)]  # fmt: skip
    assert set(np.diff(scales, 2)) == {1}


def test_each_weight_depends_on_two_peaks_at_most():
    peaks = torch.tensor(random_peaks(1, 9, 0))
    for pair in range(10):
        for part in range(2):
            jacobian = torch.autograd.functional.jacobian(
                lambda a, pair=pair, part=part: peaks_to_params(a, "convex")[
                    pair
                ][part],
                peaks,
            )
            used = (jacobian[..., 0, :] != 0).reshape(-1, 10)
            assert used.sum(dim=1).max() <= 2


def test_one_step_of_adam_by_hand():
    """The first step moves every weight by the rate, against the gradient;
    the gradient by finite differences of the NumPy network."""
    params = init_params("default", (1, 3, 1), 1, 4)
    fit = fit_params(params, X, CUBE, 1, 0.01)

    def loss(k, part, index, step):
        net = [[v.copy() for v in pair] for pair in network_of(params, 0)]
        net[k][part][index] += step
        return np.mean((relu_forward(net, X)[:, 0] - CUBE) ** 2)

    for k, pair in enumerate(params):
        for part, value in enumerate(pair):
            for index in np.ndindex(value[0].shape):
                slope = (
                    loss(k, part, index, 1e-6) - loss(k, part, index, -1e-6)
                ) / 2e-6
                moved = fit.params[k][part][0][index] - value[0][index]
                if abs(slope) > 1e-5:
                    assert moved == pytest.approx(
                        -0.01 * np.sign(slope), rel=1e-2
                    )
                else:
                    assert abs(moved) < 0.011


def test_against_a_plain_torch_loop():
    start = init_params("default", (1, 4, 4, 1), 1, 2)
    layers = []
    for W, b in network_of(start, 0):
        layer = torch.nn.Linear(W.shape[1], W.shape[0], dtype=torch.float64)
        with torch.no_grad():
            layer.weight.copy_(torch.tensor(W))
            layer.bias.copy_(torch.tensor(b))
        layers += [layer, torch.nn.ReLU()]
    net = torch.nn.Sequential(*layers[:-1])
    optimizer = torch.optim.Adam(net.parameters(), lr=0.01)
    x, y = torch.tensor(X), torch.tensor(CUBE[:, None])
    for _ in range(60):
        optimizer.zero_grad()
        torch.nn.functional.mse_loss(net(x), y).backward()
        optimizer.step()
    theirs = torch.nn.functional.mse_loss(net(x), y).item()
    fit = fit_params(start, X, CUBE, 60, 0.01)
    assert fit.mse[-1, 0] == pytest.approx(theirs, rel=1e-8)


def test_runs_do_not_notice_each_other():
    """One diverging network among three, and runs one by one."""
    start = init_params("default", (1, 4, 4, 1), 3, 0)
    start[0][0][1] *= 1e200
    fit = fit_params(start, X, CUBE, 30, 0.01)
    for run in (0, 2):
        alone = [(W[run : run + 1], b[run : run + 1]) for W, b in start]
        single = fit_params(alone, X, CUBE, 30, 0.01)
        np.testing.assert_allclose(
            fit.mse[:, run], single.mse[:, 0], rtol=1e-9
        )
    peaks = random_peaks(3, 4, 0)
    both = fit_peaks(peaks, "convex", X, CUBE, 30, 0.01)
    single = fit_peaks(peaks[1:2], "convex", X, CUBE, 30, 0.01)
    np.testing.assert_allclose(both.peaks[1], single.peaks[0], rtol=1e-9)


def test_records_and_probes():
    seen = []
    start = init_params("he", (1, 4, 1), 2, 0)
    fit = fit_params(
        start, X, CUBE, 7, 0.01, record=[0, 3, 7],
        probe=lambda params: seen.append(params) or len(seen),
    )  # fmt: skip
    assert fit.epochs.tolist() == [0, 3, 7]
    assert fit.probes == [1, 2, 3]
    assert np.array_equal(seen[0][0][0], start[0][0])
    assert np.array_equal(seen[-1][1][0], fit.params[1][0])
    errors = relu_forward(network_of(fit.params, 1), X)[:, 0] - CUBE
    assert fit.mse[-1, 1] == pytest.approx(np.mean(errors**2))
    assert not np.array_equal(seen[0][0][0], seen[1][0][0])


def test_the_clamp_holds_and_its_absence_shows():
    """From a start next to 1 the peak of x^11 runs out."""
    y = X[:, 0] ** 11
    start = np.full((1, 6), 0.95)
    kept = fit_peaks(start, "convex", X, y, 100, 0.01, clamp=0.05)
    assert kept.peaks.min() >= 0.05
    assert kept.peaks.max() <= 0.95
    assert not kept.escaped.any()
    free = fit_peaks(start, "convex", X, y, 100, 0.01, clamp=None)
    assert free.escaped.all()
    # a target above x: every wave is in the way, and peaks go down
    root = np.sqrt(X[:, 0])
    kept = fit_peaks(1 - start, "convex", X, root, 100, 0.01, clamp=0.04)
    assert kept.peaks.min() == 0.04
    free = fit_peaks(1 - start, "convex", X, root, 100, 0.01, clamp=None)
    assert free.escaped.all()


def test_output_bias_can_be_fixed():
    start = init_params("default", (1, 4, 1), 2, 0)
    fit = fit_params(start, X, CUBE, 5, 0.01, fixed_output_bias=True)
    assert np.array_equal(fit.params[-1][1], start[-1][1])
    assert not np.array_equal(fit.params[0][1], start[0][1])


@pytest.mark.parametrize("widths", [(1, 4, 4, 1), (2, 3, 5, 2)])
def test_geometric_coordinates_start_at_the_same_function(widths):
    start = init_params("default", widths, 2, 0)
    x = np.random.default_rng(0).normal(size=(40, widths[0]))
    y = np.zeros((40, widths[-1]))
    fit = fit_geometric(start, x, y, 0, 0.01)
    for run in range(2):
        np.testing.assert_allclose(
            relu_forward(network_of(fit.params, run), x),
            relu_forward(network_of(start, run), x),
            atol=1e-12,
        )
    theta, lam, r, signs = geometric_coordinates(*start[0])
    W, b, _ = geometric_layer(theta, lam, r, signs)
    np.testing.assert_allclose(fit.params[0][0], W, atol=1e-12)
    np.testing.assert_allclose(fit.params[0][1], b, atol=1e-12)
    moved = fit_geometric(start, x, y + 1, 50, 0.01)
    assert (moved.mse[-1] < moved.mse[0]).all()
    # directions keep unit length
    np.testing.assert_allclose(
        np.linalg.norm(moved.params[0][0], axis=-1), 1, atol=1e-12
    )


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: recurrence_ratios(torch.ones(3), "flat"), "mode"),
        (lambda: recurrence_ratios(torch.ones(1), "convex"), "two entries"),
        (lambda: peaks_to_params(torch.ones(3), "convex"), "peaks must have"),
        (
            lambda: peaks_to_params(
                torch.full((1, 3), 0.5), "convex", torch.ones(1, 3)
            ),
            "ratios must have",
        ),
        (lambda: fit_peaks([0.5, 0.5], "convex", X, CUBE, 1, 0.1), "shape"),
        (
            lambda: fit_peaks([[0.5, 1.0]], "convex", X, CUBE, 1, 0.1),
            "must lie",
        ),
        (
            lambda: fit_peaks([[0.5, np.nan]], "convex", X, CUBE, 1, 0.1),
            "must lie",
        ),
        (
            lambda: fit_peaks(
                [[0.5, 0.5]], "convex", X, CUBE, 1, 0.1, clamp=0.5
            ),
            "clamp",
        ),
    ],
)
def test_bad_peaks(call, words):
    with pytest.raises(ValueError, match=words):
        call()


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"x": X[:, 0]}, "x must be a finite matrix"),
        ({"x": np.full((101, 1), np.nan)}, "x must be a finite matrix"),
        ({"x": np.ones((101, 2))}, "columns"),
        ({"y": CUBE[:5]}, "y must be finite with 101 rows"),
        ({"y": np.full(101, np.inf)}, "y must be finite"),
        ({"epochs": -1}, "epochs"),
        ({"epochs": 1.5}, "epochs"),
        ({"lr": 0.0}, "lr"),
        ({"lr": np.nan}, "lr"),
        ({"record": [0, 1]}, "record"),
        ({"record": [3, 0, 5]}, "record"),
        (
            {"params": [(np.full((1, 1, 1), np.nan), np.ones((1, 1)))]},
            "params",
        ),
    ],
)
def test_bad_runs(change, words):
    usual = {
        "params": init_params("he", (1, 2, 1), 1, 0),
        "x": X, "y": CUBE, "epochs": 5, "lr": 0.01,
    }  # fmt: skip
    with pytest.raises(ValueError, match=words):
        fit_params(**(usual | change))
