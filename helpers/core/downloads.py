"""Data sets that have to be fetched, for readers with a network.

Building the book never needs this module; the data that it needs are in
:mod:`helpers.core.data`, and a chapter fetches others only if a reader asks
for it. Each loader works in three steps: use the file in
``folder`` if it is there and intact, else fetch it, verify it, and only then
put it in place. A download that is interrupted, truncated or altered leaves
nothing behind.

Where the files come from is decided by, in this order, the argument ``url``,
the environment variable named at each data set, and the address of the
publisher. Only digests are trusted, never the address. All of them may be a
folder address that starts with ``file://``.
"""

from __future__ import annotations

import gzip
import hashlib
import io
import os
import pickle
import tarfile
import tempfile
import urllib.error
import urllib.request
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from helpers.core.data import Samples, parse_idx

CHUNK = 1 << 16
SCHEMES = ("https://", "http://", "file://")
PARTS = ("train", "test")


@dataclass(frozen=True)
class RemoteFile:
    """One file and how to recognise it.

    Attributes
    ----------
    name : str
        File name below the address of its data set.
    algorithm : str
        ``md5`` or ``sha256``.
    digest : str
        Hexadecimal digest.
    decompressed : bool
        Whether the digest is of the content under gzip instead of the file
        itself. Some distributors compress anew, the content stays.
    """

    name: str
    algorithm: str
    digest: str
    decompressed: bool = False


@dataclass(frozen=True)
class RemoteDataset:
    """Files of a data set, the publisher's address, and its variable."""

    title: str
    files: dict[str, RemoteFile]
    url: str
    variable: str


def _idx_files(algorithm: str, digests: tuple[str, ...], decompressed: bool):
    keys = [(a, b) for a in PARTS for b in ("images", "labels")]
    files = {}
    for (part, content), digest in zip(keys, digests, strict=True):
        prefix = "train" if part == "train" else "t10k"
        axes = "idx3" if content == "images" else "idx1"
        name = f"{prefix}-{content}-{axes}-ubyte.gz"
        files[f"{part}-{content}"] = RemoteFile(
            name, algorithm, digest, decompressed
        )
    return files


MNIST = RemoteDataset(
    "MNIST",
    _idx_files(
        "md5",
        (
            "f68b3c2dcbeaaa9fbdd348bbdeb94873",
            "d53e105ee54ea40749a09fcbcd1e9432",
            "9fb629c4189551a2d022fa330f9573f3",
            "ec29112dd5afa0611ce80d1b7f02629c",
        ),
        decompressed=False,
    ),
    "https://ossci-datasets.s3.amazonaws.com/mnist/",
    "HELPERS_MNIST_URL",
)

FASHION_MNIST = RemoteDataset(
    "Fashion-MNIST",
    _idx_files(
        "sha256",
        (
            "c59f468a2f672dc815687fe0f83887768d799fd8a3f3276145d20f83aa44d888",
            "bad3541b69d912435c50bb6ba87bec294ff4f6a2e1246121d8633921760443d9",
            "5b4141f0afbad91edebe8549f8fcffe087ea10ca49f1dbef5c9a5cd8815ce37b",
            "0402a96d92fd2663957122ceb108a494c5af83dab82d92729df917d7dec38c34",
        ),
        decompressed=True,
    ),
    "http://fashion-mnist.s3-website.eu-central-1.amazonaws.com/",
    "HELPERS_FASHION_MNIST_URL",
)

CIFAR10 = RemoteDataset(
    "CIFAR-10",
    {
        "archive": RemoteFile(
            "cifar-10-python.tar.gz",
            "md5",
            "c58f30108f718f92721af3b95e74349a",
        )
    },
    "https://www.cs.toronto.edu/~kriz/",
    "HELPERS_CIFAR10_URL",
)


def _digest_matches(payload: bytes, remote: RemoteFile) -> bool:
    if remote.decompressed:
        try:
            payload = gzip.decompress(payload)
        except (OSError, EOFError):
            return False
    return (
        hashlib.new(
            remote.algorithm, payload, usedforsecurity=False
        ).hexdigest()
        == remote.digest
    )


def _read_all(url: str, timeout: float) -> bytes:
    """Bytes behind an address, or an error that says what to do."""
    try:
        with urllib.request.urlopen(url, timeout=timeout) as answer:
            announced = answer.headers.get("Content-Length")
            blocks = iter(lambda: answer.read(CHUNK), b"")
            payload = b"".join(blocks)
    except (urllib.error.URLError, OSError) as error:
        raise ConnectionError(
            f"cannot fetch {url} ({error}). Without a network, copy the file "
            "from another machine into the folder that is given to the "
            "loader, or point the loader's url to where it lies "
            "(file:// addresses work)"
        ) from error
    if announced is not None and len(payload) != int(announced):
        raise ConnectionError(
            f"{url} announced {announced} bytes and sent {len(payload)}: the "
            "download was cut short; nothing was kept, try again"
        )
    return payload


def _write_whole(path: Path, payload: bytes) -> None:
    """Write next to the target, then rename: never half a file."""
    handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=".partial-")
    try:
        with os.fdopen(handle, "wb") as stream:
            stream.write(payload)
            stream.flush()
            os.fsync(stream.fileno())
        os.replace(temporary, path)
    except BaseException:
        Path(temporary).unlink(missing_ok=True)
        raise


def fetch(remote: RemoteFile, folder, url: str, timeout: float = 60.0) -> Path:
    """Have a verified file in a folder, fetching it if need be.

    Parameters
    ----------
    remote : RemoteFile
    folder : path
        Created if missing.
    url : str
        Address of the folder that holds ``remote.name``; ``https://``,
        ``http://`` or ``file://``.
    timeout : float, seconds
        For each wait on the network.

    Returns
    -------
    pathlib.Path
        The file, whose digest has been checked in this call.

    Raises
    ------
    ValueError
        If ``url`` has another scheme, or the file (fetched or already in
        the folder) does not have the digest. A wrong file that was fetched
        is not kept; a wrong file that was there is left for you to look at.
    ConnectionError
        If the file cannot be fetched, or arrives shorter than announced.

    Notes
    -----
    The whole file is held in memory (170 MB for CIFAR-10).

    Examples
    --------
    >>> file = RemoteFile("a.txt", "md5", "900150983cd24fb0d6963f7d28e17f72")
    >>> with tempfile.TemporaryDirectory() as there:
    ...     _ = Path(there, "a.txt").write_bytes(b"abc")
    ...     with tempfile.TemporaryDirectory() as here:
    ...         fetch(file, here, Path(there).as_uri()).read_bytes()
    b'abc'
    """
    path = Path(folder) / remote.name
    if path.exists():
        if _digest_matches(path.read_bytes(), remote):
            return path
        raise ValueError(
            f"{path} is damaged: its {remote.algorithm} is not "
            f"{remote.digest}; delete it and call again"
        )
    if not url.startswith(SCHEMES):
        raise ValueError(f"url must start with one of {SCHEMES}, got {url!r}")
    path.parent.mkdir(parents=True, exist_ok=True)
    address = url.rstrip("/") + "/" + remote.name
    payload = _read_all(address, timeout)
    if not _digest_matches(payload, remote):
        raise ValueError(
            f"{address} is not the published file: its {remote.algorithm} "
            f"is not {remote.digest}; nothing was kept, try another url"
        )
    _write_whole(path, payload)
    return path


def address_of(dataset: RemoteDataset, url: str | None = None) -> str:
    """Where a data set is fetched from: argument, variable, publisher.

    Parameters
    ----------
    dataset : RemoteDataset
    url : str, optional

    Returns
    -------
    str

    Examples
    --------
    >>> address_of(MNIST, "file:///data/mnist")
    'file:///data/mnist'
    """
    return url or os.environ.get(dataset.variable) or dataset.url


def _part(part: str) -> str:
    if part not in PARTS:
        raise ValueError(f"part must be one of {PARTS}, got {part!r}")
    return part


def _load_idx(dataset: RemoteDataset, folder, part, url) -> Samples:
    address = address_of(dataset, url)
    arrays = []
    for content in ("images", "labels"):
        remote = dataset.files[f"{_part(part)}-{content}"]
        path = fetch(remote, folder, address)
        arrays.append(
            parse_idx(gzip.decompress(path.read_bytes()), remote.name)
        )
    return Samples(arrays[0], arrays[1].astype(np.int64))


def load_mnist(folder, part: str = "train", url: str | None = None) -> Samples:
    """MNIST, 60 000 training or 10 000 test digits. Needs a network once.

    Parameters
    ----------
    folder : path
        Where the files are kept. No default: it is your disk.
    part : {'train', 'test'}
    url : str, optional
        Address of a folder with the four IDX files; else the environment
        variable ``HELPERS_MNIST_URL``, else a mirror that PyTorch's
        authors keep.

    Returns
    -------
    Samples
        ``inputs`` (n, 28, 28) uint8; ``targets`` (n,) int64 in 0..9.

    Raises
    ------
    ValueError, ConnectionError
        As :func:`fetch`; ``ValueError`` if ``part`` is unknown.

    Notes
    -----
    Verified by the md5 of the gzipped files, as torchvision does.

    Source: LeCun, Cortes and Burges, *The MNIST database*.

    Examples
    --------
    >>> load_mnist("mnist", "test").inputs.shape  # doctest: +SKIP
    (10000, 28, 28)
    """
    return _load_idx(MNIST, folder, part, url)


def load_fashion_mnist(
    folder, part: str = "train", url: str | None = None
) -> Samples:
    """All of Fashion-MNIST, 60 000 or 10 000 images. Needs a network once.

    Parameters
    ----------
    folder : path
        Where the files are kept.
    part : {'train', 'test'}
    url : str, optional
        Address of a folder with the four IDX files; else the environment
        variable ``HELPERS_FASHION_MNIST_URL``, else the publisher's.

    Returns
    -------
    Samples
        ``inputs`` (n, 28, 28) uint8; ``targets`` (n,) int64 in 0..9.

    Raises
    ------
    ValueError, ConnectionError
        As :func:`fetch`; ``ValueError`` if ``part`` is unknown.

    Notes
    -----
    Verified by the SHA-256 of the decompressed content, so that copies
    which were compressed anew are accepted.

    Source: Xiao, Rasul and Vollgraf, *Fashion-MNIST* (2017), MIT licence.

    Examples
    --------
    >>> load_fashion_mnist("fashion").inputs.shape  # doctest: +SKIP
    (60000, 28, 28)
    """
    return _load_idx(FASHION_MNIST, folder, part, url)


class _ArrayUnpickler(pickle.Unpickler):
    """Reads pickled byte arrays and refuses everything else.

    A pickle can run code when it is read, and md5 does not keep out someone
    who wants in.
    """

    allowed = {"_reconstruct", "ndarray", "dtype", "_frombuffer", "encode"}
    modules = {
        "numpy",
        "numpy.core.multiarray",
        "numpy._core.multiarray",
        "numpy.core.numeric",
        "numpy._core.numeric",
        "_codecs",
    }

    def find_class(self, module: str, name: str):
        if module not in self.modules or name not in self.allowed:
            raise ValueError(f"the archive asks for {module}.{name}, refused")
        return super().find_class(
            module.replace("numpy.core", "numpy._core"), name
        )


def _cifar_batch(archive: tarfile.TarFile, name: str) -> Samples:
    member = archive.extractfile(f"cifar-10-batches-py/{name}")
    batch = _ArrayUnpickler(io.BytesIO(member.read()), encoding="bytes").load()
    images = np.asarray(batch[b"data"], dtype=np.uint8)
    return Samples(
        images.reshape(-1, 3, 32, 32).transpose(0, 2, 3, 1),
        np.asarray(batch[b"labels"], dtype=np.int64),
    )


def load_cifar10(
    folder, part: str = "train", url: str | None = None
) -> Samples:
    """CIFAR-10, 50 000 or 10 000 colour images. Needs a network once.

    Parameters
    ----------
    folder : path
        Where the archive (170 MB) is kept; it is read without unpacking.
    part : {'train', 'test'}
    url : str, optional
        Address of a folder with ``cifar-10-python.tar.gz``; else the
        environment variable ``HELPERS_CIFAR10_URL``, else the publisher's.

    Returns
    -------
    Samples
        ``inputs`` (n, 32, 32, 3) uint8; ``targets`` (n,) int64 in 0..9.

    Raises
    ------
    ValueError, ConnectionError
        As :func:`fetch`; ``ValueError`` if ``part`` is unknown or the
        archive holds anything but arrays, lists, numbers and strings.

    Notes
    -----
    Verified by the md5 of the archive.

    Source: Krizhevsky, *Learning multiple layers of features from tiny
    images* (2009).

    Examples
    --------
    >>> load_cifar10("cifar", "test").inputs.shape  # doctest: +SKIP
    (10000, 32, 32, 3)
    """
    names = ["test_batch"]
    if _part(part) == "train":
        names = [f"data_batch_{i}" for i in range(1, 6)]
    path = fetch(CIFAR10.files["archive"], folder, address_of(CIFAR10, url))
    with tarfile.open(path, "r:gz") as archive:
        batches = [_cifar_batch(archive, name) for name in names]
    return Samples(
        *(np.concatenate(arrays) for arrays in zip(*batches, strict=True))
    )
