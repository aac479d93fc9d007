"""The palette can be told apart, in both themes and by everybody."""

from itertools import combinations

import numpy as np
import pytest

from helpers.book import style
from tools.browser import contrast

LIGHT, DARK = np.ones(3), np.array([0x12, 0x12, 0x12]) / 255


def rgb(text):
    return np.array([int(text[i : i + 2], 16) for i in (1, 3, 5)]) / 255


def on_dark(colour):
    """What the style sheet makes of a colour: invert, hue-rotate(180deg),
    then screen with the ground. Matrices of the CSS filter specification."""
    c, s = np.cos(np.pi), np.sin(np.pi)
    rotate = (
        np.array([[0.213, 0.715, 0.072]] * 3)
        + c
        * np.array(
            [
                [0.787, -0.715, -0.072],
                [-0.213, 0.285, -0.072],
                [-0.213, -0.715, 0.928],
            ]
        )
        + s
        * np.array(
            [
                [-0.213, -0.715, 0.928],
                [0.143, 0.140, -0.283],
                [-0.787, 0.715, 0.072],
            ]
        )
    )
    turned = np.clip(rotate @ (1 - colour), 0, 1)
    return 1 - (1 - turned) * (1 - DARK)


def test_white_becomes_the_dark_page():
    assert on_dark(LIGHT) == pytest.approx(DARK, abs=0.01)


def test_text_can_be_read_in_both_themes():
    assert contrast(rgb(style.TEXT), LIGHT) >= 4.5
    assert contrast(on_dark(rgb(style.TEXT)), DARK) >= 4.5


@pytest.mark.parametrize("colour", style.COLORS)
def test_marks_stand_out_in_both_themes(colour):
    """3:1 is what WCAG asks of graphics."""
    assert contrast(rgb(colour), LIGHT) >= 3
    assert contrast(on_dark(rgb(colour)), DARK) >= 3


# Viénot, Brettel and Mollon 1999, in linear RGB
DEFICIENT = {
    "protanopia": [[0.11238, 0.88762, 0], [0.11238, 0.88762, 0],
                   [0.00401, -0.00401, 1]],
    "deuteranopia": [[0.29275, 0.70725, 0], [0.29275, 0.70725, 0],
                     [-0.02234, 0.02234, 1]],
}  # fmt: skip


def seen(colour, kind):
    linear = colour**2.2
    return np.clip(np.array(DEFICIENT[kind]) @ linear, 0, 1) ** (1 / 2.2)


def lab(colour):
    """CIE L*a*b* of an sRGB colour, white point D65."""
    linear = np.where(
        colour <= 0.04045, colour / 12.92, ((colour + 0.055) / 1.055) ** 2.4
    )
    xyz = (
        np.array(
            [
                [0.4124, 0.3576, 0.1805],
                [0.2126, 0.7152, 0.0722],
                [0.0193, 0.1192, 0.9505],
            ]
        )
        @ linear
        / [0.9505, 1, 1.089]
    )
    f = np.where(xyz > (6 / 29) ** 3, np.cbrt(xyz), xyz * 841 / 108 + 4 / 29)
    return np.array(
        [116 * f[1] - 16, 500 * (f[0] - f[1]), 200 * (f[1] - f[2])]
    )


@pytest.mark.parametrize("kind", DEFICIENT)
def test_first_four_colours_are_told_apart_by_everybody(kind):
    """The four that figures use most; all vary marker and line as well."""
    for a, b in combinations(style.COLORS[:4], 2):
        distance = np.linalg.norm(
            lab(seen(rgb(a), kind)) - lab(seen(rgb(b), kind))
        )
        assert distance > 10, (a, b, distance)


def test_every_colour_has_a_marker_and_a_line():
    assert len(style.COLORS) == len(style.MARKERS) == len(style.LINES)
    assert len(set(style.COLORS)) == len(style.COLORS)


def test_importing_the_package_applies_the_style():
    import matplotlib

    import helpers.book  # noqa: F401  the import is what is tested

    assert matplotlib.rcParams["svg.hashsalt"] == "constrained-expressivity"
