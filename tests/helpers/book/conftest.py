"""Catch what a helper would display in a notebook."""

import pytest


@pytest.fixture
def shown(monkeypatch):
    """Pairs of data and metadata, in the order of display."""
    import IPython.display

    found = []
    monkeypatch.setattr(
        IPython.display,
        "display",
        lambda data, raw, metadata=None: found.append((data, metadata)),
    )
    return found
