"""Pictures: what is drawn where, and what is refused."""

import matplotlib.pyplot as plt
import numpy as np
import pytest

from helpers.allocation.pictures import (
    draw_allocation,
    plot_mp_curve,
    schematic,
)


@pytest.fixture
def ax():
    fig, ax = plt.subplots()
    yield ax
    plt.close(fig)


def test_row_one_is_on_top(ax):
    mask = np.zeros((3, 4), dtype=bool)
    mask[0, 3] = True
    draw_allocation(ax, mask, "one", column_label="from")
    values = ax.collections[0].get_array()
    np.testing.assert_array_equal(values, mask)
    low, high = ax.get_ylim()
    assert low > high and ax.get_xlabel() == "from"


def test_curve_and_what_is_known(ax):
    plot_mp_curve(ax, [0.2, 0.5], [0, 0.9], [0, 0.8], [0.1, 1], "n = 8",
                  hard_zero=0.1, ceiling=([0, 1], [0.5, 1]),
                  exact_points=([0.2], [1.0]))  # fmt: skip
    main, ceiling, zero, exact = ax.lines
    np.testing.assert_array_equal(main.get_ydata(), [0, 0.9])
    np.testing.assert_array_equal(ceiling.get_ydata(), [0.5, 1])
    np.testing.assert_array_equal(zero.get_xdata(), [0.1, 0.1])
    np.testing.assert_array_equal(exact.get_xdata(), [0.2])
    assert exact.get_linestyle() == "None"
    bars = [p.vertices[:, 1] for p in ax.collections[0].get_paths()]
    np.testing.assert_array_equal(bars, [[0, 0.1], [0.8, 1]])


def test_refused(ax):
    for wrong in (np.eye(2), np.zeros(3, bool), np.zeros((0, 2), bool)):
        with pytest.raises(ValueError, match="boolean matrix"):
            draw_allocation(ax, wrong)
    with pytest.raises(ValueError, match="one length"):
        plot_mp_curve(ax, [1, 2], [0.5], [0], [1], "x")
    with pytest.raises(ValueError, match="one length"):
        plot_mp_curve(ax, [], [], [], [], "x")
    with pytest.raises(ValueError, match="finite"):
        plot_mp_curve(ax, [1], [np.nan], [0], [1], "x")
    for mp, low, high in ((0.5, 0.6, 1), (0.5, 0, 0.4), (1.2, 1, 1.3)):
        with pytest.raises(ValueError, match="need 0 <= low"):
            plot_mp_curve(ax, [1], [mp], [low], [high], "x")


def test_schematic():
    fig, axes = plt.subplots(1, 3)
    masks = [np.eye(3) > 0, np.eye(3)[::-1] > 0]
    schematic(axes, -2 * np.eye(3), masks, ["teacher", "first", "second"])
    assert axes[0].collections[0].get_array().max() == 2
    np.testing.assert_array_equal(axes[2].collections[0].get_array(), masks[1])
    with pytest.raises(ValueError, match="same budget"):
        schematic(axes, np.eye(3), [masks[0], ~masks[0]], "abc")
    with pytest.raises(ValueError, match="one shape"):
        schematic(axes, np.eye(2), masks, "abc")
    with pytest.raises(ValueError, match="3 axes and titles"):
        schematic(axes, np.eye(3), masks, "ab")
    plt.close(fig)
