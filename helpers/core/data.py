"""Data sets that travel with the book: no network, and no silent change.

Every loader computes the SHA-256 of what it is about to return and compares
it with the value below, on every call. Rows are samples throughout, shape
``(n, d)``; the spectral-alignment paper stores samples as columns.

Data that have to be fetched live in :mod:`helpers.core.downloads`.
"""

from __future__ import annotations

import gzip
import hashlib
import struct
from importlib import resources
from typing import NamedTuple

import numpy as np

from helpers.core.checks import whole_number
from helpers.core.randomness import Seed, as_generator

DIGITS_SHA256 = (
    "f6d9e39f37dc45d327f6db33428ee58970ccceabb2535a5c179de35886b70443"
)
"""Of the 1797 x 64 pixel counts (little-endian float64), then the labels
(little-endian int64)."""

CONCRETE_SHA256 = (
    "431e0b0b8bab99794c905cb45440a089c32c8f6d14bfd2602d1449727db92222"
)
"""Of the file ``concrete.csv``."""

FASHION_IMAGES_SHA256 = (
    "a7e53275975bcefa1ef1bcac502fe6f5e4fd01774d43792f4a839144acf524f3"
)
"""Of the decompressed IDX payload of the subset's images."""

FASHION_LABELS_SHA256 = (
    "9f361592fa79786ffb0f262ede3ea19f20772797efa627328326451c74b21126"
)
"""Of the decompressed IDX payload of the subset's labels."""

FASHION_CLASSES = (
    "T-shirt/top",
    "Trouser",
    "Pullover",
    "Dress",
    "Coat",
    "Sandal",
    "Shirt",
    "Sneaker",
    "Bag",
    "Ankle boot",
)

CONCRETE_COLUMNS = (
    "cement",
    "blast_furnace_slag",
    "fly_ash",
    "water",
    "superplasticizer",
    "coarse_aggregate",
    "fine_aggregate",
    "age",
)


class Samples(NamedTuple):
    """Inputs, one row a sample, and one target for each of them."""

    inputs: np.ndarray
    targets: np.ndarray


def verify_sha256(payload: bytes, expected: str, name: str) -> bytes:
    """Return ``payload`` if its digest is the expected one.

    Parameters
    ----------
    payload : bytes
    expected : str
        SHA-256 as 64 hexadecimal digits.
    name : str
        What the bytes are, for the message.

    Returns
    -------
    bytes
        ``payload`` itself.

    Raises
    ------
    ValueError
        If the digests differ.

    Examples
    --------
    >>> verify_sha256(b"", hashlib.sha256(b"").hexdigest(), "nothing")
    b''
    """
    found = hashlib.sha256(payload).hexdigest()
    if found != expected:
        raise ValueError(
            f"{name} is not the expected data: its sha256 is {found}, "
            f"{expected} was published; the copy is damaged or of another "
            "version, reinstall it"
        )
    return payload


def parse_idx(payload: bytes, name: str = "payload") -> np.ndarray:
    """Read an array of bytes in the IDX format of the MNIST family.

    The format is: two zero bytes, a type code (8 for unsigned bytes, the
    only one allowed here), the number of axes, one big-endian 32-bit length
    for each axis, then the entries in row-major order.

    Parameters
    ----------
    payload : bytes
        The whole file, decompressed.
    name : str
        For the messages.

    Returns
    -------
    ndarray of uint8
        A read-write copy with the shape given in the header.

    Raises
    ------
    ValueError
        If the header is not that of an unsigned-byte IDX array, or the
        number of entries is not the announced one.

    Examples
    --------
    >>> parse_idx(bytes([0, 0, 8, 1, 0, 0, 0, 2, 5, 7]))
    array([5, 7], dtype=uint8)
    """
    if len(payload) < 4 or payload[:3] != b"\x00\x00\x08":
        raise ValueError(
            f"{name} must start with the IDX header of unsigned bytes "
            f"(00 00 08), got {payload[:4].hex(' ') or 'nothing'}"
        )
    axes = payload[3]
    start = 4 + 4 * axes
    if axes == 0 or len(payload) < start:
        raise ValueError(f"{name} must announce its axes, got {axes} of them")
    shape = struct.unpack(f">{axes}I", payload[4:start])
    entries = np.frombuffer(payload, dtype=np.uint8, offset=start)
    if entries.size != np.prod(shape, dtype=np.int64):
        raise ValueError(
            f"{name} announces shape {shape} but holds {entries.size} "
            "entries; it is truncated or padded"
        )
    return entries.reshape(shape).copy()


def _packaged(filename: str) -> bytes:
    """Bytes of a file shipped beside this module."""
    return (
        resources.files("helpers.core") / "datasets" / filename
    ).read_bytes()


def _subset(samples: Samples, n, rng) -> Samples:
    """Draw ``n`` rows without replacement, or keep all of them in order."""
    total = samples.targets.shape[0]
    if n is None:
        return samples
    n = whole_number(n, "n", 1, total)
    if rng is None:
        raise ValueError("rng must be a seed or a Generator when n is given")
    kept = as_generator(rng).permutation(total)[:n]
    return Samples(samples.inputs[kept], samples.targets[kept])


def load_digits_samples(
    n: int | None = None, rng: Seed | None = None
) -> Samples:
    """Handwritten digits of 8 x 8 pixels, bundled with scikit-learn.

    1797 images of the ten digits by 13 writers: each pixel counts, from 0 to
    16, the inked cells of a 4 x 4 block of a larger scan. Two images in it
    may be nearly equal, none are exactly equal.

    Parameters
    ----------
    n : int in 1..1797, optional
        Draw that many without replacement (the first ``n`` of a random
        permutation). By default all, in the order of the file.
    rng : int, SeedSequence or Generator
        Needed when ``n`` is given, unused otherwise.

    Returns
    -------
    Samples
        ``inputs`` (n, 64) float64 in [0, 1] (counts divided by 16), not
        centred; ``targets`` (n,) int64, the digit.

    Raises
    ------
    ValueError
        If ``n`` is out of range, ``rng`` is missing, or the installed
        scikit-learn carries other digits (SHA-256 of the pixel counts).

    Notes
    -----
    Source: Alpaydin and Kaynak, *Optical recognition of handwritten digits*
    (UCI repository, CC BY 4.0), the test part of it, as shipped by
    scikit-learn.

    Examples
    --------
    >>> inputs, digits = load_digits_samples(5, rng=0)
    >>> inputs.shape, digits.shape
    ((5, 64), (5,))
    """
    from sklearn.datasets import load_digits

    counts, digits = load_digits(return_X_y=True)
    payload = counts.astype("<f8").tobytes() + digits.astype("<i8").tobytes()
    verify_sha256(payload, DIGITS_SHA256, "the digits of scikit-learn")
    return _subset(Samples(counts / 16, digits.astype(np.int64)), n, rng)


def load_concrete() -> Samples:
    """Compressive strength of 1030 concrete mixtures.

    Returns
    -------
    Samples
        ``inputs`` (1030, 8) float64, the columns of ``CONCRETE_COLUMNS``:
        seven amounts in kg per cubic metre and the age in days, raw (not
        standardised); ``targets`` (1030,) float64, strength in MPa. 25 rows
        repeat an earlier one; they are kept, because the published file has
        them.

    Raises
    ------
    ValueError
        If the shipped file does not have the published SHA-256.

    Notes
    -----
    Source: I-Cheng Yeh, Cement and Concrete Research 28 (1998); UCI
    repository 165, DOI 10.24432/C5PK67.

    Examples
    --------
    >>> mixtures, strength = load_concrete()
    >>> mixtures.shape, float(strength[0])
    ((1030, 8), 79.99)
    """
    payload = verify_sha256(
        _packaged("concrete.csv"), CONCRETE_SHA256, "concrete.csv"
    )
    lines = payload.decode("ascii").splitlines()
    table = np.loadtxt(lines[1:], delimiter=",", ndmin=2)
    return Samples(table[:, :-1].copy(), table[:, -1].copy())


def load_fashion_mnist_subset() -> Samples:
    """1000 images of clothing: the first 100 of each class.

    Taken from the training set of Fashion-MNIST in the order of the file, so
    that classes are mixed. ``tools/make_fashion_subset.py`` makes it.

    Returns
    -------
    Samples
        ``inputs`` (1000, 28, 28) uint8, 0 is background; ``targets``
        (1000,) int64 in 0..9, named by ``FASHION_CLASSES``.

    Raises
    ------
    ValueError
        If a shipped payload does not have the published SHA-256.

    Notes
    -----
    Source: Xiao, Rasul and Vollgraf, *Fashion-MNIST* (2017), MIT licence.

    Examples
    --------
    >>> images, classes = load_fashion_mnist_subset()
    >>> images.shape, np.bincount(classes).tolist() == [100] * 10
    ((1000, 28, 28), True)
    """
    arrays = []
    for part, expected in (
        ("images", FASHION_IMAGES_SHA256),
        ("labels", FASHION_LABELS_SHA256),
    ):
        name = f"fashion_mnist_1000_{part}.gz"
        payload = gzip.decompress(_packaged(name))
        arrays.append(parse_idx(verify_sha256(payload, expected, name), name))
    return Samples(arrays[0], arrays[1].astype(np.int64))
