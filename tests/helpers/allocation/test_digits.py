"""Real labels: gradients, Adam, and what activations can reach."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import linprog

from helpers.allocation.allocations import (
    Allocation,
    row_allocation,
    stack_allocations,
)
from helpers.allocation.digits import (
    ImageProblems,
    classified,
    digits_point,
    free_rows,
    image_problems,
    image_samples,
    loss_and_gradient,
    point_interval,
    reachable,
    reachable_labels,
    solve_free_rows,
    train_adam,
)
from helpers.allocation.networks import ShallowReLU
from helpers.core.data import Samples


def drawn(K, n, m, k, p, seed, **kw):
    rng = np.random.default_rng(seed)
    problems = image_problems(image_samples(), K, n, m, rng, **kw)
    chosen = stack_allocations(
        [row_allocation((n, 64), k, p, rng) for _ in range(K)]
    )
    return problems, chosen


def test_images_are_centred_and_whole():
    images, classes = image_samples()
    assert np.abs(images.mean(axis=0)).max() < 1e-12
    assert 0.9 < np.ptp(images) <= 2 and set(classes) == set(range(10))


def test_mnist_is_skipped_in_words(capsys, tmp_path, monkeypatch):
    assert image_samples("mnist") is None
    monkeypatch.setenv("HELPERS_MNIST_URL", f"file://{tmp_path}/none/")
    assert image_samples("mnist", tmp_path / "kept") is None
    said = capsys.readouterr().out.splitlines()
    assert [line.startswith("MNIST skipped") for line in said] == [True] * 2
    with pytest.raises(ValueError, match="digits or mnist"):
        image_samples("letters")


def test_mnist_is_flattened_if_it_is_there(monkeypatch):
    fake = Samples(
        np.full((4, 28, 28), 255, dtype=np.uint8) * np.arange(2).repeat(2)[
            :, None, None
        ].astype(np.uint8),
        np.arange(4),
    )  # fmt: skip
    monkeypatch.setattr(
        "helpers.core.downloads.load_mnist", lambda folder: fake
    )
    images, classes = image_samples("mnist", "anywhere")
    assert images.shape == (4, 784) and classes.tolist() == [0, 1, 2, 3]
    np.testing.assert_allclose(np.unique(images), [-0.5, 0.5])


def test_loss_by_hand():
    # logits (1, 0) and (3, 0) at labels 0 and 1
    net = ShallowReLU(np.ones((1, 1, 1)), np.array([[[1.0], [0.0]]]))
    one = ImageProblems(net, np.array([[[1.0, 3.0]]]), np.array([[0, 1]]))
    loss, g = loss_and_gradient(one, Allocation([0], [0]), [[0.0]])
    expected = (np.log1p(np.exp(-1.0)) + np.log1p(np.exp(3.0))) / 2
    np.testing.assert_allclose(loss, [expected])
    # d loss / d z: q_0 - 1 and q_0, times x
    q = 1 / (1 + np.exp(-np.array([1.0, 3.0])))
    np.testing.assert_allclose(g, [[((q[0] - 1) * 1 + q[1] * 3) / 2]])
    assert classified(one, Allocation([0], [0]), [[0.0]]) == [0.5]


def test_gradient_against_differences():
    problems, chosen = drawn(3, 9, 7, 3, 20, 0)
    rng = np.random.default_rng(1)
    w = rng.normal(size=(3, 20))
    _, g = loss_and_gradient(problems, chosen, w)
    for j in range(20):
        e = 1e-5 * np.eye(20)[j]
        up, _ = loss_and_gradient(problems, chosen, w + e)
        down, _ = loss_and_gradient(problems, chosen, w - e)
        np.testing.assert_allclose(g[:, j], (up - down) / 2e-5, atol=1e-8)


def test_a_tie_counts_as_wrong():
    net = ShallowReLU(np.ones((1, 1, 1)), np.zeros((1, 3, 1)))
    one = ImageProblems(net, np.ones((1, 1, 1)), np.array([[0]]))
    assert classified(one, Allocation([0], [0]), [[0.0]]) == [0.0]
    train = train_adam(one, Allocation([0], [0]), steps=2)
    assert train.accuracy == [0.0]


def test_adam_in_a_batch_is_adam_alone():
    problems, chosen = drawn(6, 24, 10, 12, 200, 2)
    done = train_adam(problems, chosen, steps=40, rate=0.05)
    assert 0 < (done.accuracy == 1).sum() < 6  # some leave the batch early
    for i in range(6):
        one = ImageProblems(
            ShallowReLU(*(M[i : i + 1] for M in problems.student)),
            problems.X[i : i + 1],
            problems.labels[i : i + 1],
        )
        mine = Allocation(chosen.rows[i], chosen.cols[i])
        w, m1, m2 = (np.zeros((1, 200)) for _ in range(3))
        for t in range(1, 41):
            if classified(one, mine, w)[0] == 1:
                break
            g = loss_and_gradient(one, mine, w)[1]
            m1 += 0.1 * (g - m1)
            m2 += 0.001 * (g * g - m2)
            w -= (
                0.05
                * (m1 / (1 - 0.9**t))
                / (np.sqrt(m2 / (1 - 0.999**t)) + 1e-8)
            )
        np.testing.assert_allclose(done.w[i], w[0], atol=1e-9)
    matched = done.accuracy == 1
    np.testing.assert_array_equal(
        classified(problems, chosen, done.w)[matched], 1.0
    )


@given(st.integers(0, 10**6), st.integers(1, 5), st.integers(2, 5))
def test_reachable_against_the_dual(seed, k, classes):
    rng = np.random.default_rng(seed)
    D, t = rng.normal(size=(classes, k)), rng.normal(size=classes)
    label = int(rng.integers(classes))
    others = np.arange(classes) != label
    G, h = D[label] - D[others], t[others] - t[label]
    # Motzkin: no a >= 0 has G a > h iff some y >= 0, sum 1, has
    # G' y <= 0 and h' y >= 0
    dual = linprog(
        np.zeros(classes - 1),
        A_ub=np.vstack([G.T, -h]),
        b_ub=np.zeros(k + 1),
        A_eq=np.ones((1, classes - 1)),
        b_eq=[1.0],
    )
    assert reachable(D, t, label) == (dual.status == 2)


def test_reachable_two_classes_is_a_coin_for_each_neuron():
    # class 0 of two can be lifted iff some neuron leans to it
    rng = np.random.default_rng(3)
    for k in (1, 2, 4):
        D = rng.normal(size=(60, 2, k))
        got = [reachable(d, np.zeros(2), 0) for d in D]
        assert got == [(d[0] > d[1]).any() for d in D]


def test_more_rows_reach_more():
    rng = np.random.default_rng(4)
    D, t = rng.normal(size=(10, 12)), rng.normal(size=10)
    for label in range(10):
        got = [reachable(D[:, :k], t, label) for k in range(1, 13)]
        assert got == sorted(got)


def test_free_rows_make_the_ceiling_exact():
    problems, chosen = drawn(30, 20, 6, 6, 384, 5)
    possible = reachable_labels(problems, chosen)
    assert free_rows(problems, chosen).all() and 3 < possible.sum() < 27
    w = solve_free_rows(problems, chosen)
    np.testing.assert_array_equal(np.isfinite(w).all(axis=1), possible)
    np.testing.assert_array_equal(
        classified(problems, chosen, np.nan_to_num(w))[possible], 1.0
    )


def test_a_repeated_image_is_not_free():
    problems, chosen = drawn(2, 12, 6, 3, 192, 6)
    X = problems.X.copy()
    X[0, :, 1] = X[0, :, 0]
    found = free_rows(problems._replace(X=X), chosen)
    assert found.tolist() == [False, True]


def test_adam_never_matches_what_cannot_be():
    row = digits_point(20, 9, 6, 576, trials=60, seed=7, steps=200)
    assert row["unsound"] == 0 and row["free"] == row["drawn"] == 60
    assert row["hits"] == row["possible"] - row["missed"]
    assert 5 < row["hits"] < 55


def test_no_room_is_not_probability_zero():
    row = digits_point(8, 1, 4, 65, trials=3, seed=0)
    assert (row["fits"], row["drawn"], row["hits"]) == (0, 0, 0)


def test_spreading_helps_at_fixed_budget():
    few, many = (
        digits_point(16, k, 16, 256, 40, 8, steps=200, ceiling=False)["hits"]
        for k in (5, 16)
    )
    assert few <= 2 and many >= few + 8


def test_shuffled_labels_are_the_same_labels():
    a = drawn(4, 6, 12, 2, 10, 9)[0]
    b = drawn(4, 6, 12, 2, 10, 9, shuffled=True)[0]
    np.testing.assert_array_equal(np.sort(a.labels), np.sort(b.labels))
    assert (a.labels != b.labels).any()


def test_intervals_by_hand():
    rate, low, high = point_interval([0, 4], [4, 4])
    # Wilson at no hit: high = z^2 / (n + z^2)
    z2 = 1.959963984540054**2
    np.testing.assert_allclose(high[0], z2 / (4 + z2))
    np.testing.assert_allclose([rate[0], low[0], low[1]],
                               [0, 0, 1 - high[0]], atol=1e-12)  # fmt: skip


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda s: image_problems(s, 2, 4, 1798, 0), "at most 1797"),
        (lambda s: image_problems(s, 0, 4, 5, 0), "K must"),
        (
            lambda s: image_problems(s._replace(targets=s.targets + 5), 2, 4, 5, 0),
            "lie in 0..9",
        ),
        (
            lambda s: image_problems(
                s._replace(inputs=s.inputs * np.nan), 2, 4, 5, 0
            ),
            "inputs must be finite",
        ),
        (
            lambda s: train_adam(
                image_problems(s, 2, 4, 5, 0),
                Allocation([[0, 1], [2, 2]], [[0, 0], [0, 1]]),
            ),
            "same number of learned rows",
        ),
        (
            lambda s: train_adam(
                image_problems(s, 2, 4, 5, 0), Allocation([0], [0]), rate=0.0
            ),
            "rate must be",
        ),
        (lambda s: reachable(np.ones((1, 2)), [0.0], 0), "at least two"),
        (lambda s: reachable(np.ones((3, 2)), np.zeros(3), 3), "0..2"),
        (
            lambda s: reachable(np.full((3, 2), np.nan), np.zeros(3), 1),
            "D must be finite",
        ),
    ],
)  # fmt: skip
def test_bad_input_is_named(call, words):
    with pytest.raises(ValueError, match=words):
        call(image_samples())
