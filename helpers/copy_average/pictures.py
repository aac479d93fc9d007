r"""Pictures of a student of a teacher with three neurons.

Three orthogonal teacher neurons seen along their sum: each pulls in a
direction of its own, 120 degrees apart, an average of two lies between the
two, and the average of all three at the centre.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike, NDArray

__all__ = ["along_the_sum", "flow_animation"]

_PLANE = np.array([[2.0, -1, -1], [0, 3**0.5, -(3**0.5)]]) / 6**0.5


def along_the_sum(x: ArrayLike) -> NDArray:
    r"""Project three coordinates along :math:`(1, 1, 1)`.

    Parameters
    ----------
    x : array_like, shape (..., 3)
        Weights or cosines, one for each teacher neuron.

    Returns
    -------
    ndarray, shape (..., 2)
        Orthonormal coordinates in the plane across the sum. A unit vector
        along the first teacher neuron goes to :math:`(\sqrt{2/3}, 0)`.

    Raises
    ------
    ValueError
        If the last axis is not of length 3.

    Notes
    -----
    Source: ours, for Figure 1 of Simsek et al. (2023).

    Examples
    --------
    >>> along_the_sum([[1.0, 0, 0], [1.0, 1, 1]]).round(4).tolist()
    [[0.8165, 0.0], [0.0, 0.0]]
    """
    x = np.asarray(x, dtype=float)
    if x.ndim < 1 or x.shape[-1] != 3:
        raise ValueError(f"x must have a last axis of 3, got {x.shape}")
    return x @ _PLANE.T


def flow_animation(
    times: ArrayLike,
    cosines: ArrayLike,
    a: ArrayLike,
    loss: ArrayLike,
    colors: Sequence[str],
):
    r"""Animate a flow in the cosines with three teacher neurons.

    Above, the cosines of each student neuron along the sum of the teacher
    neurons, a disc as large as its outgoing weight; below, the loss. A slider
    and a button move both through time. It is as wide as the page.

    Parameters
    ----------
    times : array_like, shape (T,)
        Positive, increasing; drawn on a logarithmic scale.
    cosines : array_like, shape (T, n, 3)
        Cosines of student and teacher neurons.
    a : array_like, shape (T, n)
        Outgoing weights.
    loss : array_like, shape (T,)
        Positive.
    colors : sequence of str
        One for each student neuron.

    Returns
    -------
    plotly.graph_objects.Figure

    Raises
    ------
    ValueError
        If shapes do not fit together, or there are fewer colours than
        neurons.

    Notes
    -----
    Source: ours, for Figure 1 (top) of Simsek et al. (2023).

    Examples
    --------
    >>> figure = flow_animation(
    ...     [1.0, 2.0], np.zeros((2, 1, 3)), [[1.0], [1.0]], [1.0, 0.5], ["red"]
    ... )
    >>> len(figure.frames)
    2
    """
    times, a, loss = (np.asarray(x, dtype=float) for x in (times, a, loss))
    cosines = np.asarray(cosines, dtype=float)
    T, n = times.size, cosines.shape[1] if cosines.ndim == 3 else 0
    if cosines.shape != (T, n, 3) or a.shape != (T, n) or loss.shape != (T,):
        raise ValueError(
            "cosines, a and loss must have shapes (T, n, 3), (T, n) and (T,) "
            f"with T = {T}, got {cosines.shape}, {a.shape} and {loss.shape}"
        )
    if len(colors) < n:
        raise ValueError(f"colors must hold {n} entries, got {len(colors)}")
    xy = along_the_sum(cosines)
    figure = _still(times, xy, a, loss, colors)
    moving = list(range(len(figure.data) - n - 1, len(figure.data)))
    figure.frames = [
        _frame(i, times, xy, a, loss, colors, moving) for i in range(T)
    ]
    figure.update_layout(
        sliders=[_slider(times)], updatemenus=[_button()], **_LAYOUT
    )
    return figure


_LAYOUT = {
    "autosize": True,
    "height": 680,
    "template": "plotly_white",
    "showlegend": False,
    "margin": {"l": 30, "r": 20, "t": 40, "b": 90},
    "hovermode": "closest",
}


def _still(times, xy, a, loss, colors):
    """Landmarks, the whole paths, and the discs of the first time."""
    import plotly.graph_objects as go
    from plotly.subplots import make_subplots

    figure = make_subplots(
        rows=2,
        row_heights=[0.68, 0.32],
        vertical_spacing=0.1,
        subplot_titles=["where the neurons point", "loss"],
    )
    names = ["v1", "v2", "v3", "v1+v2", "v2+v3", "v1+v3"]
    marks = np.eye(3)
    sums = (marks + np.roll(marks, -1, axis=0)) / np.sqrt(2)
    x, y = along_the_sum(np.vstack([marks, sums])).T
    figure.add_scatter(
        x=x,
        y=y,
        text=names,
        mode="markers+text",
        textposition="bottom center",
        marker={"symbol": 3 * ["star"] + 3 * ["x"], "color": "#333333"},
        hoverinfo="text",
        row=1,
        col=1,
    )
    lines = [(xy[:, i, 0], xy[:, i, 1], c, 1) for i, c in enumerate(colors)]
    for x, y, color, row in [*lines, (times, loss, "#333333", 2)]:
        figure.add_scatter(
            x=x, y=y, mode="lines", line_color=color, row=row, col=1
        )
    for trace in _moving(0, times, xy, a, loss, colors):
        row = 2 if trace.name == "loss" else 1
        figure.add_trace(go.Scatter(trace), row=row, col=1)
    figure.update_xaxes(range=[-1, 1], showticklabels=False, row=1)
    figure.update_yaxes(
        range=[-1, 1], showticklabels=False, scaleanchor="x", row=1
    )
    figure.update_xaxes(type="log", dtick=1, title="time", row=2)
    figure.update_yaxes(type="log", dtick=1, row=2)
    return figure


def _moving(i, times, xy, a, loss, colors) -> list:
    import plotly.graph_objects as go

    discs = [
        go.Scatter(
            x=[xy[i, m, 0]],
            y=[xy[i, m, 1]],
            mode="markers",
            name=f"neuron {m + 1}",
            hovertext=f"neuron {m + 1}, a = {a[i, m]:.3f}",
            hoverinfo="text",
            marker={
                "size": 10 + 14 * abs(a[i, m]),
                "color": colors[m],
                "opacity": 0.75,
                "symbol": "circle" if a[i, m] >= 0 else "circle-open",
            },
        )
        for m in range(a.shape[1])
    ]
    dot = go.Scatter(
        x=[times[i]],
        y=[loss[i]],
        mode="markers",
        name="loss",
        marker={"size": 11, "color": "#333333"},
    )
    return [*discs, dot]


def _frame(i, times, xy, a, loss, colors, moving):
    import plotly.graph_objects as go

    return go.Frame(
        data=_moving(i, times, xy, a, loss, colors),
        traces=moving,
        name=str(i),
    )


def _slider(times) -> dict:
    still = {"mode": "immediate", "frame": {"duration": 0, "redraw": False}}
    steps = [
        {"label": f"{t:.3g}", "method": "animate", "args": [[str(i)], still]}
        for i, t in enumerate(times)
    ]
    return {
        "steps": steps,
        "currentvalue": {"prefix": "time "},
        "x": 0.14,
        "len": 0.86,
        "pad": {"t": 40},
    }


def _button() -> dict:
    run = {"frame": {"duration": 60, "redraw": False}, "fromcurrent": True}
    return {
        "type": "buttons",
        "buttons": [
            {"label": "Play", "method": "animate", "args": [None, run]}
        ],
        "x": 0.0,
        "y": -0.12,
        "xanchor": "left",
        "yanchor": "top",
        "pad": {"t": 20},
    }
