"""Make the Fashion-MNIST subset that the helpers ship.

The first 100 images of each class of the training set, in the order of the
file. Input: the two training files of Fashion-MNIST in IDX format, gzipped,
in one folder (Debian's package ``dataset-fashion-mnist`` installs them); the
SHA-256 of their decompressed payloads is checked, so that it does not matter
who compressed them. Output: two gzipped IDX files without time stamps.

    python tools/make_fashion_subset.py FOLDER           # write
    python tools/make_fashion_subset.py FOLDER --check   # compare only

The compressed bytes depend on the zlib that wrote them; what is promised,
checked here and verified on every load, are the payloads.
"""

from __future__ import annotations

import argparse
import gzip
import struct
import sys
from pathlib import Path

import numpy as np

from helpers.core.data import parse_idx, verify_sha256

SOURCE_SHA256 = {
    "train-images-idx3-ubyte.gz": (
        "c59f468a2f672dc815687fe0f83887768d799fd8a3f3276145d20f83aa44d888"
    ),
    "train-labels-idx1-ubyte.gz": (
        "bad3541b69d912435c50bb6ba87bec294ff4f6a2e1246121d8633921760443d9"
    ),
}
PER_CLASS = 100
TARGET = Path(__file__).parents[1] / "helpers" / "core" / "datasets"
NAMES = ("fashion_mnist_1000_images.gz", "fashion_mnist_1000_labels.gz")


def read_source(folder: Path, name: str) -> np.ndarray:
    """Read and verify one of the published files."""
    payload = gzip.decompress((folder / name).read_bytes())
    return parse_idx(verify_sha256(payload, SOURCE_SHA256[name], name), name)


def first_of_each_class(labels: np.ndarray, count: int) -> np.ndarray:
    """Positions of the first ``count`` samples of each class, in order."""
    chosen = [np.flatnonzero(labels == c)[:count] for c in np.unique(labels)]
    return np.sort(np.concatenate(chosen))


def to_idx(array: np.ndarray) -> bytes:
    """Bytes of an unsigned-byte array in IDX format."""
    header = struct.pack(
        f">4B{array.ndim}I", 0, 0, 8, array.ndim, *array.shape
    )
    return header + np.ascontiguousarray(array, dtype=np.uint8).tobytes()


def make_payloads(folder: Path) -> list[bytes]:
    """The two payloads of the subset: images, then labels."""
    images, labels = (read_source(folder, name) for name in SOURCE_SHA256)
    chosen = first_of_each_class(labels, PER_CLASS)
    return [to_idx(images[chosen]), to_idx(labels[chosen])]


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path, help="where the files lie")
    parser.add_argument(
        "--check",
        action="store_true",
        help="compare with what is shipped, write nothing",
    )
    options = parser.parse_args(arguments)
    stale = 0
    for name, payload in zip(
        NAMES, make_payloads(options.folder), strict=True
    ):
        if options.check:
            shipped = gzip.decompress((TARGET / name).read_bytes())
            same = shipped == payload
            print(f"{name}: {'same payload' if same else 'DIFFERS'}")
            stale += not same
        else:
            (TARGET / name).write_bytes(
                gzip.compress(payload, compresslevel=9, mtime=0)
            )
            print(f"{name}: written")
    return int(stale > 0)


if __name__ == "__main__":
    sys.exit(main())
