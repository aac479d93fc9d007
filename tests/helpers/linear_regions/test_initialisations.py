"""Initialisations: moments, orthogonality, homogeneity, other coordinates."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from helpers.linear_regions.initialisations import (
    KINDS,
    geometric_coordinates,
    geometric_layer,
    init_params,
    network_of,
    random_peaks,
    ratios_of_scales,
)
from helpers.linear_regions.networks import relu_forward
from helpers.linear_regions.regions_1d import count_regions_1d
from helpers.linear_regions.triangles import limit_scales

WIDTHS = 1, 4, 4, 4, 4, 4, 1
X = np.linspace(0, 1, 50)[:, None]


@pytest.mark.parametrize("kind", KINDS)
def test_shapes_and_streams(kind):
    many = init_params(kind, WIDTHS, 5, 3, X)
    few = init_params(kind, WIDTHS, 2, 3, X)
    for (W, b), (V, c), n, m in zip(
        many, few, WIDTHS[1:], WIDTHS[:-1], strict=True
    ):
        assert W.shape == (5, n, m)
        assert b.shape == (5, n)
        assert np.array_equal(W[:2], V)
        assert np.array_equal(b[:2], c)
    assert not np.array_equal(many[1][0][0], many[1][0][1])


def test_default_is_what_torch_does():
    """Range and second moment of torch's own layers."""
    torch = pytest.importorskip("torch", reason="torch is an optional extra")
    W, b = init_params("default", (7, 40), 100, 0)[0]
    torch.manual_seed(0)
    theirs = [torch.nn.Linear(7, 40) for _ in range(100)]
    V = np.stack([one.weight.detach().numpy() for one in theirs])
    c = np.stack([one.bias.detach().numpy() for one in theirs])
    for mine, other in ((W, V), (b, c)):
        assert abs(mine).max() <= 7**-0.5
        assert abs(mine).max() > 0.99 * 7**-0.5
        # 28 000 and 4 000 draws; the variance of a square is 4/45 bound^4
        assert mine.var() == pytest.approx(1 / 21, rel=0.07)
        assert other.var() == pytest.approx(1 / 21, rel=0.07)


def test_he_and_xavier_have_their_variances():
    W, _ = init_params("he", (8, 24), 300, 1)[0]
    assert W.var() == pytest.approx(2 / 8, rel=0.03)
    W, _ = init_params("xavier", (8, 24), 300, 1)[0]
    assert W.var() == pytest.approx(2 / 32, rel=0.03)
    assert abs(W).max() <= (6 / 32) ** 0.5


@pytest.mark.parametrize("widths", [(3, 5), (5, 3), (4, 4)])
def test_orthogonal_up_to_root_two(widths):
    W, _ = init_params("orthogonal", widths, 3, 0)[0]
    for one in W:
        gram = one @ one.T if one.shape[0] < one.shape[1] else one.T @ one
        np.testing.assert_allclose(gram, 2 * np.eye(len(gram)), atol=1e-12)


def test_orthogonal_is_haar():
    """First entry of a 2 x 2 rotation or reflection: the arcsine law."""
    W, _ = init_params("orthogonal", (2, 2), 2000, 0)[0]
    first = W[:, 0, 0] / np.sqrt(2)
    assert abs(first.mean()) < 0.06
    assert (first**2).mean() == pytest.approx(0.5, abs=0.03)
    assert (first**4).mean() == pytest.approx(3 / 8, abs=0.03)


def test_lsuv_has_unit_variance_in_every_layer():
    params = init_params("lsuv", (1, 6, 6, 6, 1), 10, 0, X)
    alive = 0
    for run in range(10):
        h = X
        for W, b in network_of(params, run):
            z = h @ W.T + b
            if z.any():
                alive += 1
                assert z.std() == pytest.approx(1, abs=1e-9)
            h = np.maximum(z, 0)
    assert alive > 20


def test_rai_replaces_one_entry_of_each_row():
    """Beta(2, 1) has mean 2/3; the others are normal around zero."""
    W, b = init_params("rai", (3, 50), 200, 0)[0]
    rows = np.concatenate([W, b[..., None]], axis=-1).reshape(-1, 4)
    assert rows.mean() == pytest.approx(2 / 3 / 4, abs=0.01)
    second = (3 * 0.6007**2 / 3 + 1 / 2) / 4
    assert (rows**2).mean() == pytest.approx(second, abs=0.01)
    assert not (rows.max(axis=1) <= 0).any()


def test_raai_is_anti_correlated():
    """Covariance of entries without the replaced one, by rejection."""
    W, b = init_params("raai", (9, 50), 400, 0)[0]
    rows = np.concatenate([W, b[..., None]], axis=-1).reshape(-1, 10)
    plain = init_params("rai", (9, 50), 400, 0)[0]
    other = np.concatenate([plain[0], plain[1][..., None]], -1).reshape(-1, 10)
    # the sum of a row has half the variance before the replacement; both
    # batches replace the same entries by the same numbers
    same = rows == other
    assert (same.sum(axis=1) == 1).all()
    free = np.where(same, 0, rows).sum(axis=1)
    sigma2 = 0.6007**2 / 9
    # 9 of 10 entries: 9 s^2 - (1/2)(81/10) s^2
    assert free.var() == pytest.approx(sigma2 * (9 - 81 / 20), rel=0.05)


@pytest.mark.parametrize("kind", ["he", "xavier", "orthogonal", "lsuv"])
def test_zero_biases_make_one_region(kind):
    params = init_params(kind, WIDTHS, 12, 5, X)
    for run in range(12):
        net = network_of(params, run)
        assert count_regions_1d(net, (0, 1)) == (1, 1)
        values = relu_forward(net, [0.25, 0.5])[:, 0]
        assert values[1] == pytest.approx(2 * values[0], abs=1e-12)
    W, b = params[0]
    shifted = [(W, b + 0.1 * np.arange(-2, 2)), *params[1:]]
    counts = [count_regions_1d(network_of(shifted, r), (0, 1)).activation
              for r in range(12)]  # fmt: skip
    assert max(counts) > 1


@given(seed=st.integers(0, 2**32 - 1), m=st.integers(1, 6))
@settings(max_examples=60, deadline=None)
def test_geometric_coordinates_come_back(seed, m):
    rng = np.random.default_rng(seed)
    W, b = rng.normal(size=(3, 4, m)), rng.normal(size=(3, 4))
    if m > 2:
        W[0, 0, 2:] = 0
        W[0, 1, :-1] = 0
    theta, lam, r, signs = geometric_coordinates(W, b)
    u, offset, gain = geometric_layer(theta, lam, r, signs)
    np.testing.assert_allclose(np.linalg.norm(u, axis=-1), 1, atol=1e-12)
    np.testing.assert_allclose(gain[..., None] * u, W, atol=1e-12)
    np.testing.assert_allclose(gain * offset, b, atol=1e-12)


def test_angles_of_the_plane():
    theta, lam, r, _ = geometric_coordinates([[0.0, -3.0]], [6.0])
    assert theta[0, 0] == pytest.approx(-np.pi / 2)
    assert (lam[0], r[0]) == (2, 3)


def test_ratios_multiply_to_the_scales():
    peaks = random_peaks(4, 6, 0)
    for mode in ("convex", "concave"):
        ratios = ratios_of_scales(peaks, mode)
        for a, S in zip(peaks, ratios, strict=True):
            np.testing.assert_allclose(np.cumprod(S), limit_scales(a, mode))


def test_peaks_stay_in_their_interval_and_streams():
    peaks = random_peaks(40, 5, 1, 0.2, 0.3)
    assert peaks.min() >= 0.2
    assert peaks.max() <= 0.3
    assert np.array_equal(random_peaks(3, 5, 1, 0.2, 0.3), peaks[:3])


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: init_params("best", WIDTHS, 1, 0), "kind must be one of"),
        (lambda: init_params("he", (4,), 1, 0), "inputs and outputs"),
        (lambda: init_params("he", (4, 0), 1, 0), "widths"),
        (lambda: init_params("he", WIDTHS, 0, 0), "runs"),
        (lambda: init_params("lsuv", WIDTHS, 1, 0), "x must be given"),
        (
            lambda: init_params("lsuv", WIDTHS, 1, 0, [[np.nan]]),
            "x must be finite",
        ),
        (
            lambda: init_params("lsuv", WIDTHS, 1, 0, [1.0]),
            "x must have shape",
        ),
        (lambda: random_peaks(1, 0, 0), "depth"),
        (lambda: random_peaks(1, 2, 0, 0.5, 0.5), "low < high"),
        (lambda: ratios_of_scales([0.5, 0.5], "flat"), "mode"),
        (lambda: ratios_of_scales([0.5], "convex"), "two entries"),
        (
            lambda: network_of([(np.ones((2, 1, 1)), np.ones((2, 1)))], 2),
            "run",
        ),
        (lambda: geometric_coordinates([[0.0, 0.0]], [1.0]), "no zero row"),
        (
            lambda: geometric_coordinates([[1.0, 0.0]], [1.0, 2.0]),
            "do not fit",
        ),
        (lambda: geometric_layer([[1.0]], [1.0, 2.0], [1.0]), "must fit"),
        (lambda: geometric_layer([[np.nan]], [1.0], [1.0]), "theta must be"),
    ],
)
def test_bad_input(call, words):
    with pytest.raises(ValueError, match=words):
        call()
