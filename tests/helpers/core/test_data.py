"""Shipped data: counts, known entries, and damage that must be noticed."""

import gzip
import os
from pathlib import Path

import numpy as np
import pytest
from sklearn.datasets import load_digits

from helpers.core import data
from tools import make_fashion_subset


def test_digits_are_those_of_scikit_learn():
    inputs, targets = data.load_digits_samples()
    theirs = load_digits()
    np.testing.assert_array_equal(inputs * 16, theirs.data)
    np.testing.assert_array_equal(targets, theirs.target)
    assert inputs.shape == (1797, 64) and inputs.max() == 1


def test_drawing_digits():
    every = data.load_digits_samples()
    some = data.load_digits_samples(300, rng=0)
    order = np.random.default_rng(0).permutation(1797)[:300]
    np.testing.assert_array_equal(some.inputs, every.inputs[order])
    np.testing.assert_array_equal(some.targets, every.targets[order])
    fewer = data.load_digits_samples(20, rng=0)
    np.testing.assert_array_equal(fewer.inputs, some.inputs[:20])
    assert (
        len(np.unique(data.load_digits_samples(1797, 3).inputs, axis=0))
        == 1797
    )


@pytest.mark.parametrize("n", [0, 1798, 2.5, True, np.nan, np.inf])
def test_a_wrong_number_of_digits_is_named(n):
    with pytest.raises(ValueError, match="n must .* from 1 to 1797"):
        data.load_digits_samples(n, rng=0)


def test_a_draw_needs_a_seed():
    with pytest.raises(ValueError, match="rng"):
        data.load_digits_samples(10)


def test_concrete():
    inputs, strength = data.load_concrete()
    assert inputs.shape == (1030, 8) and strength.shape == (1030,)
    np.testing.assert_array_equal(
        inputs[0], [540, 0, 0, 162, 2.5, 1040, 676, 28]
    )
    rows = np.c_[inputs, strength]
    assert len(np.unique(rows, axis=0)) == 1030 - 25
    assert len(data.CONCRETE_COLUMNS) == 8
    assert inputs[:, 7].min() == 1 and inputs[:, 7].max() == 365


def test_fashion_subset():
    images, classes = data.load_fashion_mnist_subset()
    assert images.shape == (1000, 28, 28) and images.dtype == np.uint8
    np.testing.assert_array_equal(np.bincount(classes), [100] * 10)
    assert classes[0] == 9 and len(data.FASHION_CLASSES) == 10
    images[:] = 0
    assert data.load_fashion_mnist_subset().inputs.max() == 255


@pytest.mark.parametrize(
    "load", [data.load_concrete, data.load_fashion_mnist_subset]
)
def test_one_changed_byte_is_noticed_on_the_next_load(load, monkeypatch):
    load()
    intact = data._packaged

    def damaged(name):
        payload = intact(name)
        packed = name.endswith(".gz")
        content = bytearray(gzip.decompress(payload) if packed else payload)
        content[-2] ^= 1
        return gzip.compress(content) if packed else bytes(content)

    monkeypatch.setattr(data, "_packaged", damaged)
    with pytest.raises(ValueError, match="is not the expected data"):
        load()


def test_other_digits_are_noticed(monkeypatch):
    monkeypatch.setattr(data, "DIGITS_SHA256", "0" * 64)
    with pytest.raises(ValueError, match="digits of scikit-learn"):
        data.load_digits_samples()


@pytest.mark.parametrize(
    "payload, message",
    [
        (b"", "header"),
        (b"\x00\x00\x09\x01\x00\x00\x00\x01a", "header"),
        (b"\x00\x00\x08\x00", "axes"),
        (b"\x00\x00\x08\x02\x00\x00\x00\x01", "axes"),
        (b"\x00\x00\x08\x01\x00\x00\x00\x03ab", "truncated"),
        (b"\x00\x00\x08\x01\x00\x00\x00\x01ab", "truncated"),
    ],
)
def test_a_damaged_idx_file_is_named(payload, message):
    with pytest.raises(ValueError, match=message):
        data.parse_idx(payload)


@pytest.mark.parametrize("shape", [(1,), (0,), (3, 2), (2, 3, 4)])
def test_idx_there_and_back(shape):
    array = np.random.default_rng(0).integers(0, 256, shape, dtype=np.uint8)
    back = data.parse_idx(make_fashion_subset.to_idx(array))
    np.testing.assert_array_equal(back, array)


def test_the_subset_is_the_first_of_each_class():
    labels = np.array([1, 0, 1, 1, 0, 0])
    chosen = make_fashion_subset.first_of_each_class(labels, 2)
    np.testing.assert_array_equal(chosen, [0, 1, 2, 4])


def test_the_script_refuses_other_sources(tmp_path):
    for name in make_fashion_subset.SOURCE_SHA256:
        (tmp_path / name).write_bytes(gzip.compress(b"other"))
    with pytest.raises(ValueError, match="not the expected data"):
        make_fashion_subset.main([str(tmp_path), "--check"])


def test_the_subset_can_be_made_again():
    folder = os.environ.get("FASHION_MNIST_FOLDER")
    if not folder:
        pytest.skip("set FASHION_MNIST_FOLDER to the published IDX files")
    assert make_fashion_subset.main([str(Path(folder)), "--check"]) == 0
