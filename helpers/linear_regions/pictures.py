"""Diagrams of networks."""

from __future__ import annotations

from typing import NamedTuple

RADIUS = 0.3
INK = "#333333"
NODE_POINTS = 24


class Node(NamedTuple):
    """Column and row of a node, and what is written in it."""

    column: float
    row: float
    text: str
    square: bool = False


def network_diagram(ax, nodes: dict[str, Node], edges, color: str = INK):
    """Draw nodes in columns and arrows between them.

    Parameters
    ----------
    ax : matplotlib.axes.Axes
    nodes : dict of Node
        By name. Rows count downwards.
    edges : iterable of (str, str)
        Names of the nodes that an arrow joins.
    color : str
        Of the arrows.

    Raises
    ------
    ValueError
        If an edge names a node that does not exist.

    Notes
    -----
    Source: ours; it draws figures 2 and 9 of Milkert, Hyde and Laine.
    """
    for edge in edges:
        for name in edge:
            if name not in nodes:
                raise ValueError(
                    f"edges must join names of nodes, got {name!r}; "
                    f"nodes are {sorted(nodes)}"
                )
        a, b = (nodes[name] for name in edge)
        length = ((b.column - a.column) ** 2 + (b.row - a.row) ** 2) ** 0.5
        share = RADIUS / max(length, RADIUS)
        across, down = b.column - a.column, a.row - b.row
        ax.annotate(
            "",
            (b.column - share * across, -b.row - share * down),
            (a.column + share * across, -a.row + share * down),
            arrowprops={"arrowstyle": "-|>", "color": color, "lw": 0.9},
        )
    for node in nodes.values():
        at = (node.column, -node.row)
        ax.plot(
            *at,
            marker="s" if node.square else "o",
            ms=NODE_POINTS,
            mfc="white",
            mec=INK,
            zorder=3,
        )
        ax.text(*at, node.text, ha="center", va="center", size=9, zorder=4)
    columns = [n.column for n in nodes.values()]
    rows = [n.row for n in nodes.values()]
    ax.set_xlim(min(columns) - 0.6, max(columns) + 0.6)
    ax.set_ylim(-max(rows) - 0.6, -min(rows) + 0.6)
    ax.set_aspect("equal")
    ax.axis("off")


def width_four_diagram(ax, depth: int, color: str = INK) -> None:
    """The network of waves: input, ``depth`` hidden layers, output.

    Parameters
    ----------
    ax : matplotlib.axes.Axes
    depth : int
        At least 1.
    color : str

    Notes
    -----
    Source: ours, after figure 2 of Milkert, Hyde and Laine.
    """
    if depth < 1:
        raise ValueError(f"depth must be at least 1, got {depth}")
    names = {"s": r"$\Sigma$", "t": "$t_1$", "u": "$t_2$", "b": "1"}
    nodes = {"x": Node(0, 1.5, "$x$")}
    edges = [("x", f"{kind}1") for kind in "stu"]
    for k in range(1, depth + 1):
        for row, (kind, text) in enumerate(names.items()):
            label = f"$s_{k - 2}$" if kind == "b" and k > 1 else text
            nodes[f"{kind}{k}"] = Node(1.6 * k, 1.1 * row, label)
        if k > 1:
            edges += [(f"{a}{k - 1}", f"{b}{k}") for a in "tu" for b in "stu"]
            edges += [(f"s{k - 1}", f"s{k}"), (f"b{k - 1}", f"u{k}")]
            edges += [(f"b{k - 1}", f"b{k}")]
    nodes["F"] = Node(1.6 * (depth + 1), 1.1, "$F$")
    edges += [(f"{kind}{depth}", "F") for kind in "stu"]
    network_diagram(ax, nodes, edges, color)


def blocks_diagram(ax, blocks: int, color: str = INK) -> None:
    """Blocks as activations: affine map, one block a coordinate, affine map.

    Parameters
    ----------
    ax : matplotlib.axes.Axes
    blocks : int
        At least 1.
    color : str

    Notes
    -----
    Source: ours, after figure 9 of Milkert, Hyde and Laine.
    """
    if blocks < 1:
        raise ValueError(f"blocks must be at least 1, got {blocks}")
    middle = (blocks - 1) / 2
    nodes, edges = {}, []
    for j in (0, 1):
        nodes[f"x{j}"] = Node(0, middle - 0.5 + j, f"$x_{j + 1}$")
    nodes["y"] = Node(6.4, middle, "$y$")
    for j in range(blocks):
        nodes[f"z{j}"] = Node(2, j, f"$z_{j + 1}$")
        nodes[f"v{j}"] = Node(3.6, j, f"$v_{j + 1}$", square=True)
        edges += [("x0", f"z{j}"), ("x1", f"z{j}")]
        edges += [(f"z{j}", f"v{j}"), (f"v{j}", "y")]
    network_diagram(ax, nodes, edges, color)
