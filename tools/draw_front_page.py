"""Draw the front page's picture: four questions, one small picture each.

``python -m tools.draw_front_page`` writes ``book/_static/four_questions.svg``.
Nothing in it is a result; each panel is a sketch of what its part asks.
"""

from __future__ import annotations

import numpy as np

from helpers.book import style
from tools import BOOK

TARGET = BOOK / "_static" / "four_questions.svg"
INK, PALE = style.TEXT, "#D5D5D5"


def draw():
    """The figure; four axes in a row of two by two."""
    import matplotlib.pyplot as plt

    fig, axes = plt.subplots(2, 2, figsize=(8.4, 5.6))
    panels = (_allocation, _regions, _copy_average, _smooth)
    for panel, ax in zip(panels, axes.flat, strict=True):
        ax.set_axis_off()
        ax.set_anchor("N")
        panel(ax)
    return fig


def _allocation(ax):
    ax.set_title("I. Which weights should learn?")
    rows, columns, budget = 5, 8, 12
    spread = np.zeros((rows, columns), dtype=bool)
    for k in range(budget):
        spread[k % rows, (3 * k) % columns] = True
    packed = np.zeros_like(spread)
    packed.flat[:budget] = True
    for left, learns in ((0, packed), (columns + 2, spread)):
        for (i, j), on in np.ndenumerate(learns):
            ax.add_patch(_cell(left + j, rows - i, on))
    ax.text(columns / 2, -0.3, "twelve in two rows", ha="center")
    ax.text(columns * 1.5 + 2, -0.3, "twelve in five rows", ha="center")
    ax.set(xlim=(-0.5, 2 * columns + 2.5), ylim=(-1, rows + 1.5))
    ax.set_aspect("equal")


def _cell(x, y, on):
    from matplotlib.patches import Rectangle

    colour = style.BLUE if on else "white"
    return Rectangle(
        (x, y), 0.86, 0.86, facecolor=colour, edgecolor=INK, lw=0.6
    )


def _regions(ax):
    ax.set_title("II. How many pieces can depth fold?")
    peaks = (0.42, 0.6, 0.45, 0.55)
    x = np.linspace(0, 1, 2001)
    wave = x
    for layer, a in enumerate(peaks):
        wave = np.where(wave < a, wave / a, (1 - wave) / (1 - a))
        ax.plot(x, wave + 1.35 * (len(peaks) - layer), "-", color=style.GREEN)
        ax.text(
            -0.03,
            1.35 * (len(peaks) - layer) + 0.5,
            f"{2 ** (layer + 1)} pieces",
            ha="right",
            va="center",
        )
    ax.set_xlim(-0.3, 1.02)


def _copy_average(ax):
    ax.set_title("III. Copy some, or average them all?")
    teacher = np.arange(6)
    ax.scatter(teacher, np.ones(6), s=170, color=style.RED, zorder=3)
    student = [0, 1, 3.5]
    sizes = [170, 170, 520]
    ax.scatter(student, np.zeros(3), s=sizes, color=style.BLUE, zorder=3)
    groups = [(0, [0]), (1, [1]), (3.5, [2, 3, 4, 5])]
    for end, starts in groups:
        for start in starts:
            ax.plot([start, end], [1, 0], "-", color=INK, lw=0.9)
    ax.text(-0.5, 1, "teacher", ha="right", va="center")
    ax.text(-0.5, 0, "student", ha="right", va="center")
    ax.set(xlim=(-1.9, 5.6), ylim=(-0.5, 1.5))


def _smooth(ax):
    ax.set_title("IV. Which functions are smooth on the data?")
    rng = np.random.default_rng(3)
    angle = np.sort(rng.uniform(0, np.pi, 26))
    radius = 1 + 0.08 * rng.normal(size=26)
    x, y = radius * np.cos(angle), radius * np.sin(angle)
    for shift, values in ((0, np.cos(angle)), (2.6, rng.normal(size=26))):
        for i in range(25):
            ends = [i, i + 1]
            ax.plot(x[ends] + shift, y[ends], "-", color=PALE, zorder=1)
        ax.scatter(
            x + shift, y, c=values, cmap=style.DIVERGING, s=46, zorder=2,
            edgecolor=INK, linewidth=0.5,
        )  # fmt: skip
    ax.text(0, 0.2, "smooth", ha="center")
    ax.text(2.6, 0.2, "not smooth", ha="center")
    ax.set(xlim=(-1.3, 3.9), ylim=(-0.3, 1.4))
    ax.set_aspect("equal")


def main() -> None:
    fig = draw()
    fig.savefig(TARGET, metadata={"Date": None, "Creator": None})
    print(f"wrote {TARGET.name}")


if __name__ == "__main__":
    main()
