import numpy as np
import pytest

from helpers.book import interactive, results
from helpers.book.scale import pick, scale


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0.5, "0.5"),
        (np.float64(0.5), "0.5"),
        (np.array(3), "3"),
        (np.int64(7), "7"),
        (True, "True"),
        ("yes", "'yes'"),
        (1e-20, "1e-20"),
    ],
)
def test_glue_leaves_plain_python(shown, value, text):
    results.glue("demo-value", value)
    (data, metadata) = shown[0]
    assert data == {results.PREFIX + "text/plain": text}
    assert metadata["scrapbook"]["name"] == "demo-value"


@pytest.mark.parametrize("value", [np.nan, np.inf, None, [1, 2], np.ones(2)])
def test_glue_refuses_what_is_no_result(shown, value):
    with pytest.raises(ValueError, match="demo-value"):
        results.glue("demo-value", value)
    assert not shown


@pytest.mark.parametrize("key", ["value", "Demo-Value", "demo value", "a--b"])
def test_glue_refuses_bad_keys(shown, key):
    with pytest.raises(ValueError, match="key must be"):
        results.glue(key, 1.0)


def test_scale_and_pick(monkeypatch):
    monkeypatch.delenv("BOOK_SCALE", raising=False)
    assert (scale(), pick(quick=1, paper=2)) == ("quick", 1)
    monkeypatch.setenv("BOOK_SCALE", "paper")
    assert (scale(), pick(quick=1, paper=2)) == ("paper", 2)
    monkeypatch.setenv("BOOK_SCALE", "huge")
    with pytest.raises(ValueError, match="quick, paper"):
        scale()


def test_interactive_asks_no_other_host_and_has_a_text(shown):
    import plotly.graph_objects as go

    fig = go.Figure(go.Scatter(x=[0, 1], y=[0, 1]))
    interactive.show_interactive(
        fig, "demo-flow", "A line one can turn and zoom.", "It rises to 1."
    )
    data, metadata = shown[0]
    assert "https://" not in data["text/html"]
    assert f'src="{interactive.SCRIPT}"' in data["text/html"]
    assert 'aria-label="A line' in data["text/html"]
    assert data["text/plain"].endswith("It rises to 1.")
    assert metadata["companion"]["interactive"] == "demo-flow"


def test_interactive_needs_a_text_equivalent(shown):
    with pytest.raises(ValueError, match="summary"):
        interactive.show_interactive(None, "demo-flow", "A" * 30, " ")
