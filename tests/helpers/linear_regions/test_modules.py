"""Drop-in modules: equality with NumPy, gradients, clamps, the switch."""

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="torch is an optional extra")

from helpers.linear_regions.modules import (  # noqa: E402
    BlockNet,
    TriangleNet,
    VeeBlock,
    VeeLayer,
    fit_module,
    vee_params,
)
from helpers.linear_regions.networks import (  # noqa: E402
    block_diagonal_layers,
    relu_forward,
    triangle_net_layers,
    vee_net_layers,
)

MODES = "convex", "concave"
WAYS = "logistic", "clamp"


def numpy_of(tensor):
    return tensor.detach().numpy()


def same_layers(mine, theirs):
    for (W, b), (V, c) in zip(mine, theirs, strict=True):
        np.testing.assert_allclose(W, V, atol=1e-13)
        np.testing.assert_allclose(b, c, atol=1e-13)


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("depth", [1, 2, 6])
def test_triangle_net_is_the_numpy_network(mode, way, depth):
    net = TriangleNet(depth, mode, parametrisation=way, rng=depth)
    theirs = triangle_net_layers(numpy_of(net.peaks)[0], mode)
    same_layers(net.layers(), theirs)
    x = np.linspace(0, 1, 41)
    out = net(torch.tensor(x.reshape(1, 41, 1)))
    assert out.shape == (1, 41, 1)
    np.testing.assert_allclose(
        numpy_of(out).ravel(), relu_forward(theirs, x)[:, 0], atol=1e-13
    )
    assert net.region_count() == (2**depth, 2**depth)


@pytest.mark.parametrize("depth", [1, 2, 6])
def test_vee_block_is_the_numpy_network(depth):
    block = VeeBlock(3, depth, rng=depth)
    x = np.linspace(-2, 2, 33)
    out = numpy_of(block(torch.tensor(np.stack([x] * 3, axis=1))))
    for j, a in enumerate(numpy_of(block.peaks)):
        np.testing.assert_allclose(
            out[:, j], relu_forward(vee_net_layers(a), x)[:, 0], atol=1e-13
        )


def test_vee_layer_is_the_block_diagonal_network():
    layer = VeeLayer(2, 3, blocks=4, depth=5, rng=1)
    A, b = layer.before.weight, layer.before.bias
    C, c = layer.after.weight, layer.after.bias
    theirs = block_diagonal_layers(
        *(numpy_of(v) for v in (layer.peaks, A, b, C, c))
    )
    same_layers(layer.layers(), theirs)
    x = np.random.default_rng(0).normal(size=(5, 7, 2))
    out = numpy_of(layer(torch.tensor(x)))
    assert out.shape == (5, 7, 3)
    np.testing.assert_allclose(
        out.reshape(-1, 3), relu_forward(theirs, x.reshape(-1, 2)), atol=1e-12
    )


def test_without_affine_maps():
    layer = VeeLayer(2, 2, 2, 4, affine_in=False, affine_out=False, rng=0)
    x = torch.tensor(np.random.default_rng(0).normal(size=(6, 2)))
    assert torch.equal(layer(x), layer.block(x))
    assert {n for n, _ in layer.named_parameters()} == {"block.raw"}


def test_free_ratios_of_a_vee():
    """1 - sum of scaled waves, from the definition of the waves."""
    peaks = np.array([[0.3, 0.6, 0.45, 0.5]])
    ratios = np.array([[0.2, 0.4]])
    params = vee_params(torch.tensor(peaks), torch.tensor(ratios))
    x = np.linspace(-1, 1, 201)
    z, total, scale = (x + 1) / 2, np.ones(201), 1.0
    folds = [peaks[0, 0], *(1 - peaks[0, 1:3])]
    for a, ratio in zip(folds, [1.0, *ratios[0]], strict=True):
        z = np.where(z < a, z / a, (1 - z) / (1 - a))
        scale *= ratio
        total = total - scale * z
    layers = [(numpy_of(W[0]), numpy_of(b[0])) for W, b in params]
    np.testing.assert_allclose(
        relu_forward(layers, x)[:, 0], total, atol=1e-13
    )


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("free", [False, True])
def test_gradcheck(way, free):
    options = {"parametrisation": way, "free_scales": free}
    x = torch.tensor(np.random.default_rng(3).uniform(0, 1, (5, 1)))
    for net in (
        TriangleNet(3, "concave", rng=0, **options),
        VeeLayer(1, 2, 2, 3, rng=0, **options),
    ):
        names, values = zip(*net.named_parameters(), strict=True)

        def outputs(*values, net=net, names=names):
            given = dict(zip(names, values, strict=True))
            return torch.func.functional_call(net, given, (x,))

        assert torch.autograd.gradcheck(
            outputs, [v.detach().requires_grad_() for v in values]
        )
        assert any("ratios" in name for name in names) == free


@pytest.mark.parametrize("way", WAYS)
def test_peaks_never_leave(way):
    """A loss that drives every peak to 1, with a wild rate."""
    net = TriangleNet(4, "convex", parametrisation=way, clamp=0.05, rng=0)
    optimizer = torch.optim.SGD(net.parameters(), lr=10.0)
    for _ in range(20):
        optimizer.zero_grad()
        (-net.peaks.sum()).backward()
        optimizer.step()
        net.clamp_()
        assert numpy_of(net.peaks).min() >= 0.05
        assert numpy_of(net.peaks).max() <= 0.95
    assert numpy_of(net.peaks).min() > 0.9


def test_set_peaks_comes_back():
    for way in WAYS:
        net = TriangleNet(3, "convex", parametrisation=way)
        net.set_peaks([0.5] * 4)
        np.testing.assert_allclose(numpy_of(net.peaks), 0.5, atol=1e-15)
        x = torch.tensor(np.arange(9) / 8)
        np.testing.assert_allclose(numpy_of(net(x)), (np.arange(9) / 8) ** 2)
        with pytest.raises(ValueError, match="peaks must have shape"):
            net.set_peaks([0.5] * 3)
        with pytest.raises(ValueError, match="peaks must have shape"):
            net.set_peaks([0.5, 0.5, 0.5, 1.0])


def test_the_switch_keeps_the_function_and_frees_the_weights():
    net = TriangleNet(5, "convex", rng=2)
    plain = net.freeze_to_weights()
    x = torch.tensor(np.linspace(0, 1, 101)[:, None])
    np.testing.assert_allclose(
        numpy_of(plain(x)), numpy_of(net(x)), atol=1e-14
    )
    assert sum(p.numel() for p in plain.parameters()) == 93
    assert all(p.requires_grad for p in plain.parameters())
    before = numpy_of(net.raw).copy()
    with torch.no_grad():
        plain[0].weight += 1
    assert np.array_equal(before, numpy_of(net.raw))


@pytest.mark.parametrize("dense", [False, True])
def test_the_switch_of_blocks(dense):
    layer = VeeLayer(2, 1, blocks=3, depth=4, rng=0)
    plain = layer.freeze_to_weights(dense=dense)
    x = torch.tensor(np.random.default_rng(0).normal(size=(50, 2)))
    np.testing.assert_allclose(
        numpy_of(plain(x)), numpy_of(layer(x)), atol=1e-12
    )
    hidden = 3 * (12 * 12 if dense else 3 * 16) + 4 * 12
    first = 2 * 12 if dense else 2 * 3 + 3 + 12
    last = 12 + 1 if dense else 12 + 3 + 3 + 1
    assert sum(p.numel() for p in plain.parameters()) == hidden + first + last
    block = layer.block.freeze_to_weights(dense=dense)
    z = torch.tensor(np.random.default_rng(1).normal(size=(4, 3)))
    np.testing.assert_allclose(
        numpy_of(block(z)), numpy_of(layer.block(z)), atol=1e-12
    )
    assert isinstance(block, BlockNet) != dense


def test_region_counts_of_vees():
    one = VeeLayer(1, 1, 1, 5, affine_in=False, affine_out=False, rng=0)
    assert one.region_count() == (32, 32)
    assert one.region_count([-3.0], [3.0]) == (32, 32)
    plane = VeeLayer(2, 1, 2, 3, affine_in=False, affine_out=True, rng=0)
    # a diagonal meets the 7 kinks of either block
    assert plane.region_count([-1.0, -0.9], [1.0, 1.0]).activation == 15
    with pytest.raises(ValueError, match="start and stop"):
        plane.region_count()


def test_fitting_a_module_clamps_and_is_adam():
    x = torch.tensor(np.linspace(0, 1, 60))
    for way in WAYS:
        net = TriangleNet(3, "convex", parametrisation=way, clamp=0.3,
                          low=0.4, high=0.6)  # fmt: skip
        twin = TriangleNet(3, "convex", parametrisation=way, clamp=0.3,
                           low=0.4, high=0.6)  # fmt: skip
        error = fit_module(net, x, x**11, 80, 0.03)
        assert 0.3 <= numpy_of(net.peaks).min()
        assert numpy_of(net.peaks).max() <= 0.7
        assert error < fit_module(twin, x, x**11, 0, 0.03)
    with pytest.raises(ValueError, match="y must have the shape"):
        fit_module(net, x, x[:5], 1, 0.1)


def test_training_from_a_seed_is_reproducible_and_helps():
    losses = []
    for _ in range(2):
        torch.rand(3)
        net = VeeLayer(1, 1, 2, 5, rng=5)
        x = torch.tensor(np.linspace(-1, 1, 101)[:, None])
        optimizer = torch.optim.Adam(net.parameters(), lr=0.02)
        for _ in range(60):
            optimizer.zero_grad()
            loss = ((net(x) - x**3) ** 2).mean()
            loss.backward()
            optimizer.step()
        losses.append(loss.item())
    assert losses[0] == losses[1]
    # the variance of the target is 1/7
    assert losses[0] < 0.03


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: TriangleNet(0, "convex"), "depth"),
        (lambda: TriangleNet(3, "flat"), "mode"),
        (lambda: TriangleNet(3, "convex", clamp=0.5), "clamp"),
        (lambda: TriangleNet(3, "convex", low=0.0), "low"),
        (
            lambda: TriangleNet(3, "convex", parametrisation="free"),
            "parametrisation",
        ),
        (lambda: VeeBlock(0, 3), "blocks"),
        (lambda: VeeLayer(2, 1, 3, 2, affine_in=False), "inputs"),
        (lambda: VeeLayer(2, 0, 3, 2), "outputs"),
        (lambda: VeeBlock(3, 2)(torch.ones(4)), "x must have shape"),
        (lambda: vee_params(torch.ones(3)), "peaks must have"),
        (
            lambda: vee_params(torch.full((1, 4), 0.5), torch.ones(1, 3)),
            "ratios must have",
        ),
    ],
)
def test_bad_input(call, words):
    with pytest.raises(ValueError, match=words):
        call()
