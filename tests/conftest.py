"""What tests of sources and of pages share."""

import os

import pytest

from tools import browser


@pytest.fixture(scope="module")
def chromium():
    """A browser; skipped where there is none, but not on CI."""
    if browser.find_browser() is None:
        if os.environ.get("CI"):
            pytest.fail("no Chromium on CI: .ci/run must install it")
        pytest.skip("no Chromium here; install one, or set BOOK_BROWSER")
    with browser.browser() as opened:
        yield opened
