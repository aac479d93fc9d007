"""One look for every figure: palette, markers, line styles, rc settings.

Figures are drawn dark on white. On a dark page the style sheet inverts their
lightness and keeps their hue (``invert`` then ``hue-rotate``), so one picture
serves both themes; a test computes the contrasts in both.
"""

from __future__ import annotations

# Paul Tol's "bright" scheme, with yellow and cyan darkened until they reach
# 3:1 against white: seven hues told apart under the common colour-vision
# deficiencies
COLORS = [
    "#4477AA",  # blue
    "#C4455A",  # red
    "#228833",  # green
    "#8F7A00",  # olive, for Tol's yellow
    "#2A8CA8",  # cyan
    "#AA3377",  # purple
    "#6F6F6F",  # grey
]
BLUE, RED, GREEN, OLIVE, CYAN, PURPLE, GREY = COLORS
TEXT = "#333333"
MARKERS = ["o", "s", "^", "D", "v", "P", "X"]
LINES = ["-", "--", "-.", ":", (0, (5, 1)), (0, (3, 1, 1, 1)), (0, (1, 3))]
SEQUENTIAL = "cividis"
DIVERGING = "PuOr"


def rc_settings() -> dict:
    """Matplotlib settings of the book, as a dictionary for ``rcParams``."""
    from cycler import cycler

    cycle = cycler(color=COLORS, linestyle=LINES)
    return {
        "figure.figsize": (6.4, 3.6),
        "figure.dpi": 100,
        "figure.constrained_layout.use": True,
        "figure.facecolor": "white",
        "savefig.facecolor": "white",
        "font.size": 10.5,
        "font.family": "DejaVu Sans",
        "mathtext.fontset": "dejavusans",
        "text.color": TEXT,
        "axes.labelcolor": TEXT,
        "axes.edgecolor": TEXT,
        "axes.titlesize": 11,
        "axes.spines.top": False,
        "axes.spines.right": False,
        "axes.prop_cycle": cycle,
        "xtick.color": TEXT,
        "ytick.color": TEXT,
        "legend.frameon": False,
        "lines.linewidth": 1.8,
        "lines.markersize": 5,
        "image.cmap": SEQUENTIAL,
        # the same figure gives the same bytes
        "svg.hashsalt": "constrained-expressivity",
        "svg.fonttype": "path",
    }


def apply() -> None:
    """Make the book's style the default of this process.

    Does nothing where matplotlib is not installed.
    """
    try:
        import matplotlib
    except ImportError:
        return
    matplotlib.rcParams.update(rc_settings())
