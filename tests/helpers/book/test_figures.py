import matplotlib.pyplot as plt
import numpy as np
import pytest

from helpers.book.figures import check_description, fingerprint, show_figure

ALT = "A line that rises from zero to one."


@pytest.fixture
def axes():
    fig, ax = plt.subplots()
    yield ax
    plt.close(fig)


def test_fingerprint_of_a_line_by_hand(axes):
    axes.plot([0, 1, 2], [0, 3, 6], label="triple")
    axes.set(xlabel="n", ylabel="3n")
    text = fingerprint(axes.figure, "demo")
    assert "figure demo: 1 axes" in text
    assert "x 'n' y '3n'" in text
    # minimum, maximum, mean, root mean square of 0, 3, 6: sqrt(15)
    assert "line 'triple' 3 points" in text
    assert "y 0 6 3 3.8729833" in text


DRAW = {
    "line": lambda ax, v: ax.plot(v),
    "scatter": lambda ax, v: ax.scatter(v, v),
    "colours": lambda ax, v: ax.scatter(range(4), range(4), c=v),
    "image": lambda ax, v: ax.imshow(v.reshape(2, 2)),
    "mesh": lambda ax, v: ax.pcolormesh(v.reshape(2, 2)),
    "band": lambda ax, v: ax.fill_between(range(4), v),
    "bars": lambda ax, v: ax.bar(range(4), v),
    "error bars": lambda ax, v: ax.errorbar(range(4), range(4), yerr=v),
    "contours": lambda ax, v: ax.contour(v.reshape(2, 2), levels=[2.5]),
    "text": lambda ax, v: ax.text(0, 0, f"{v.sum():.3f}"),
}


@pytest.mark.parametrize("kind", DRAW)
def test_a_moved_point_changes_the_fingerprint(kind):
    texts = []
    for last in (4.0, 4.01):
        fig, ax = plt.subplots()
        DRAW[kind](ax, np.array([1.0, 2.0, 3.0, last]))
        texts.append(fingerprint(fig))
        plt.close(fig)
    assert texts[0] != texts[1]


def test_rounding_noise_does_not_change_the_fingerprint():
    texts = []
    for noise in (0, 1e-13):
        fig, ax = plt.subplots()
        ax.plot([1.0, 2.0, noise])
        texts.append(fingerprint(fig))
        plt.close(fig)
    assert texts[0] == texts[1]


def test_empty_and_masked_data_are_told(axes):
    axes.plot([], [], label="empty")
    axes.plot([np.nan, np.nan], [0, 1], label="nan")
    axes.imshow(np.ma.masked_all((2, 2)))
    text = fingerprint(axes.figure)
    assert text.count("nothing finite") >= 3


def test_show_figure_leaves_name_alt_and_text(axes, shown):
    axes.plot([0, 1])
    show_figure(axes.figure, "demo-line", ALT)
    (data, metadata) = shown[0]
    assert metadata["companion"] == {"figure": "demo-line", "alt": ALT}
    assert metadata["scrapbook"]["name"] == "demo-line"
    assert data["image/svg+xml"].count("</svg>") == 1
    assert data["text/plain"].startswith("figure demo-line")
    assert axes.figure.number not in plt.get_fignums()


def test_the_same_figure_gives_the_same_bytes(shown):
    for _ in range(2):
        fig, ax = plt.subplots()
        ax.plot([0, 1, 4])
        show_figure(fig, "demo-line", ALT)
    assert shown[0][0] == shown[1][0]


@pytest.mark.parametrize("name", ["plot", "Demo-line", "demo line", "demo_x"])
def test_a_bad_name_is_refused(name):
    with pytest.raises(ValueError, match="joined by hyphens"):
        check_description(name, ALT)


@pytest.mark.parametrize("alt", ["", "a plot", " " * 30])
def test_a_thin_description_is_refused(alt):
    with pytest.raises(ValueError, match="what one sees"):
        check_description("demo-line", alt)


def test_a_figure_without_axes_is_refused():
    fig = plt.figure()
    with pytest.raises(ValueError, match="no axes"):
        show_figure(fig, "demo-line", ALT)
    plt.close(fig)


def test_a_figure_may_say_how_accurate_it_is(axes):
    axes.plot([1.0, 2.0], [1e-7, 1.0])
    text = fingerprint(axes.figure, "demo", rtol=1e-3)
    assert text.splitlines()[0].endswith("axes, compared to 1e-03")
    assert "y 0 1 0.5" in text  # below a millionth of the largest
    assert "y 1e-07 1 0.5" in fingerprint(axes.figure, "demo")
    for bad in (0.0, 0.5):
        with pytest.raises(ValueError, match="rtol must be in"):
            fingerprint(axes.figure, "demo", rtol=bad)
