"""A small good book, made and run once for all tests that break copies."""

import shutil

import pytest

from tools import small_book


@pytest.fixture(scope="session")
def good_book(tmp_path_factory):
    """A small book whose chapter is stored run. Do not change it."""
    root = small_book.make(tmp_path_factory.mktemp("good"), with_helpers=True)
    done = small_book.run(root, "-m", "tools.store")
    assert done.returncode == 0, small_book.words(done)
    return root


@pytest.fixture(scope="session")
def built_book(good_book, tmp_path_factory):
    """The same with its pages built. Do not change it."""
    root = tmp_path_factory.mktemp("built") / "book"
    shutil.copytree(good_book, root)
    done = small_book.run(root, "-m", "tools.build")
    assert done.returncode == 0, small_book.words(done)
    return root


@pytest.fixture
def book(good_book, tmp_path):
    """A copy of the small good book, to break."""
    root = tmp_path / "book"
    shutil.copytree(good_book, root)
    return root
