"""How the book draws an allocation, and a match probability.

One way for each, so that a reader learns it once: a matrix is a grid of
pale cells with the learnable ones dark, row ``j`` being what neuron ``j``
listens to; a match probability is marks with intervals, what theory predicts
is lines, and what is known exactly is an open diamond.
"""

from __future__ import annotations

import numpy as np

LEARNS = "#4477AA"
FROZEN = "#E3E6EA"
INK = "#333333"


def draw_allocation(
    ax,
    mask,
    title: str = "",
    color: str = LEARNS,
    row_label: str = "",
    column_label: str = "",
) -> None:
    """Draw a matrix with its learnable entries.

    Parameters
    ----------
    ax : matplotlib.axes.Axes
    mask : array_like of bool (n1, n0)
        True where an entry learns, as
        :func:`helpers.allocation.allocations.allocation_mask` returns.
    title : str
    color : str
        Of the learnable cells.
    row_label, column_label : str
        Words beside the matrix.

    Raises
    ------
    ValueError
        If ``mask`` is not a non-empty boolean matrix.

    Notes
    -----
    Source: ours.

    Examples
    --------
    >>> import matplotlib.pyplot as plt
    >>> fig, ax = plt.subplots()
    >>> draw_allocation(ax, [[True, False], [False, False]])
    >>> int(ax.collections[0].get_array().sum())
    1
    >>> plt.close(fig)
    """
    from matplotlib.colors import ListedColormap

    mask = np.asarray(mask)
    if mask.ndim != 2 or mask.dtype != bool or 0 in mask.shape:
        raise ValueError(
            "mask must be a boolean matrix with entries, got shape "
            f"{mask.shape} of {mask.dtype}"
        )
    ax.pcolormesh(
        mask.astype(float),
        cmap=ListedColormap([FROZEN, color]),
        vmin=0,
        vmax=1,
        edgecolors="white",
        linewidth=0.8,
    )
    ax.set_aspect("equal")
    ax.set(xticks=[], yticks=[], xlabel=column_label, ylabel=row_label)
    ax.set_ylim(mask.shape[0], 0)
    for spine in ax.spines.values():
        spine.set_visible(False)
    if title:
        ax.set_title(title)


def plot_mp_curve(
    ax,
    fraction,
    mp,
    low,
    high,
    label: str,
    hard_zero: float | None = None,
    ceiling=None,
    exact_points=None,
    color: str | None = None,
    marker: str = "o",
    linestyle: str = "-",
) -> None:
    """Draw match probabilities with intervals and what is known of them.

    Parameters
    ----------
    ax : matplotlib.axes.Axes
    fraction : array_like (q,)
        Fraction of learned rows, or another abscissa.
    mp, low, high : array_like (q,)
        Measured probability and the ends of its interval.
    label : str
        For the legend.
    hard_zero : float, optional
        Left of this the probability is 0 by a rank cap; a dotted line.
    ceiling : (x, y), optional
        A proved upper bound, drawn dashed.
    exact_points : (x, y), optional
        Probabilities known exactly, drawn as open diamonds.
    color, marker, linestyle : str
        The next colour of the axes if ``color`` is None.

    Raises
    ------
    ValueError
        If the four arrays differ in length or are empty, are not finite, or
        break ``0 <= low <= mp <= high <= 1``.

    Notes
    -----
    Source: ours.

    Examples
    --------
    >>> import matplotlib.pyplot as plt
    >>> fig, ax = plt.subplots()
    >>> plot_mp_curve(ax, [0.5, 1], [0.2, 0.9], [0.1, 0.8], [0.4, 1], "n = 2",
    ...               hard_zero=0.25)
    >>> [len(line.get_xdata()) for line in ax.lines]
    [2, 2]
    >>> plt.close(fig)
    """
    arrays = [np.asarray(a, dtype=float) for a in (fraction, mp, low, high)]
    x, mp, low, high = arrays
    if x.ndim != 1 or not x.size or {a.shape for a in arrays} != {x.shape}:
        raise ValueError(
            "fraction, mp, low and high must be lists of one length, got "
            f"{[a.shape for a in arrays]}"
        )
    if not all(np.isfinite(a).all() for a in arrays):
        raise ValueError("fraction, mp, low and high must be finite")
    if (
        np.diff([np.zeros_like(mp), low, mp, high, np.ones_like(mp)], axis=0)
        < 0
    ).any():
        raise ValueError("need 0 <= low <= mp <= high <= 1 at each point")
    (line,) = ax.plot(
        x, mp, marker=marker, ls=linestyle, label=label, color=color
    )
    color = line.get_color()
    ax.vlines(x, low, high, color=color, lw=1.2)
    if ceiling is not None:
        ax.plot(*ceiling, ls="--", lw=1.2, color=color)
    if hard_zero is not None:
        ax.axvline(hard_zero, ls=":", lw=1.2, color=color)
    if exact_points is not None:
        ax.plot(
            *exact_points,
            ls="none",
            marker="D",
            ms=7,
            mfc="none",
            mec=color,
            zorder=4,
        )
    ax.set_ylim(-0.04, 1.04)


def schematic(axes, teacher, masks, titles, color: str = LEARNS) -> None:
    """Teacher and students side by side: Figure 1 of the paper, redrawn.

    Parameters
    ----------
    axes : sequence of matplotlib.axes.Axes
        One for the teacher, one for each student.
    teacher : array_like (n1, n0)
        The teacher's matrix; drawn in grey by absolute size.
    masks : sequence of bool arrays (n1, n0)
        The students' learnable entries, all of one number.
    titles : sequence of str
        One for each of the axes.
    color : str

    Raises
    ------
    ValueError
        If there are not as many axes and titles as pictures, shapes differ,
        or the students have different budgets.

    Notes
    -----
    Source: ours, after a public description of Figure 1 of Schlisselberg
    and Darshan (2025).

    Examples
    --------
    >>> import matplotlib.pyplot as plt
    >>> fig, axes = plt.subplots(1, 3)
    >>> schematic(axes, np.eye(2), [np.eye(2) > 0, np.eye(2) == 0], "abc")
    >>> axes[1].get_title()
    'b'
    >>> plt.close(fig)
    """
    teacher = np.abs(np.asarray(teacher, dtype=float))
    masks = [np.asarray(mask) for mask in masks]
    if len(axes) != len(masks) + 1 or len(titles) != len(axes):
        raise ValueError(
            f"need {len(masks) + 1} axes and titles, got {len(axes)} and "
            f"{len(titles)}"
        )
    if {mask.shape for mask in masks} != {teacher.shape}:
        raise ValueError("teacher and masks must have one shape")
    if len({int(mask.sum()) for mask in masks}) != 1:
        raise ValueError("students must have the same budget")
    ax = axes[0]
    ax.pcolormesh(
        teacher, cmap="Greys", vmin=0, edgecolors="white", linewidth=0.8
    )
    ax.set_aspect("equal")
    ax.set(xticks=[], yticks=[], title=titles[0])
    ax.set_ylim(teacher.shape[0], 0)
    for spine in ax.spines.values():
        spine.set_visible(False)
    for ax, mask, title in zip(axes[1:], masks, titles[1:], strict=True):
        draw_allocation(ax, mask, title, color)
