"""Fetching: a server on this machine, and everything that goes wrong."""

import gzip
import hashlib
import io
import pickle
import tarfile
import threading
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import numpy as np
import pytest

from helpers.core import downloads
from tools.make_fashion_subset import to_idx

CONTENT = b"what was published"
FILE = downloads.RemoteFile(
    "file.bin", "sha256", hashlib.sha256(CONTENT).hexdigest()
)


class Handler(BaseHTTPRequestHandler):
    """Serves CONTENT; below /short it stops before the announced end."""

    def do_GET(self):
        if "missing" in self.path:
            return self.send_error(404)
        body = b"something else" if "other" in self.path else CONTENT
        self.server.hits.append(self.path)
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body[:-5] if "short" in self.path else body)

    def log_message(self, *_):
        pass


@pytest.fixture
def server():
    httpd = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    httpd.hits = []
    thread = threading.Thread(target=httpd.serve_forever, daemon=True)
    thread.start()
    yield httpd
    httpd.shutdown()
    thread.join()
    httpd.server_close()


def address(httpd, folder=""):
    return f"http://127.0.0.1:{httpd.server_address[1]}/{folder}"


def test_fetch_once_then_use_the_copy(server, tmp_path):
    folder = tmp_path / "new" / "folder"
    for _ in range(2):
        path = downloads.fetch(FILE, folder, address(server))
        assert path.read_bytes() == CONTENT
    assert server.hits == ["/file.bin"]
    assert [p.name for p in folder.iterdir()] == ["file.bin"]


@pytest.mark.parametrize(
    "folder, error, message",
    [
        ("short", ConnectionError, "announced 18 bytes and sent 13"),
        ("other", ValueError, "not the published file"),
        ("missing", ConnectionError, "404"),
    ],
)
def test_a_bad_download_leaves_nothing(
    server, tmp_path, folder, error, message
):
    with pytest.raises(error, match=message):
        downloads.fetch(FILE, tmp_path, address(server, folder))
    assert list(tmp_path.iterdir()) == []
    assert downloads.fetch(FILE, tmp_path, address(server)).exists()


def test_offline_says_what_to_do(server, tmp_path):
    url = address(server)
    server.shutdown()
    server.server_close()
    with pytest.raises(ConnectionError, match="copy the file"):
        downloads.fetch(FILE, tmp_path, url, timeout=2)
    assert list(tmp_path.iterdir()) == []


def test_a_full_disk_leaves_nothing(server, tmp_path, monkeypatch):
    def full(*_):
        raise OSError("no space left")

    monkeypatch.setattr(downloads.os, "replace", full)
    with pytest.raises(OSError, match="no space"):
        downloads.fetch(FILE, tmp_path, address(server))
    assert list(tmp_path.iterdir()) == []


def test_a_damaged_copy_is_reported_and_left(tmp_path):
    (tmp_path / "file.bin").write_bytes(b"damaged")
    with pytest.raises(ValueError, match="delete it"):
        downloads.fetch(FILE, tmp_path, "http://127.0.0.1:1/")
    assert (tmp_path / "file.bin").read_bytes() == b"damaged"


@pytest.mark.parametrize("url", ["ftp://host/", "", "/etc"])
def test_other_schemes_are_refused(tmp_path, url):
    with pytest.raises(ValueError, match="url must start"):
        downloads.fetch(FILE, tmp_path, url)


def test_where_a_data_set_comes_from(monkeypatch):
    monkeypatch.delenv("HELPERS_MNIST_URL", raising=False)
    assert downloads.address_of(downloads.MNIST) == downloads.MNIST.url
    monkeypatch.setenv("HELPERS_MNIST_URL", "file:///a")
    assert downloads.address_of(downloads.MNIST) == "file:///a"
    assert downloads.address_of(downloads.MNIST, "file:///b") == "file:///b"


def sealed(dataset, key, payload, monkeypatch, name):
    """Give a data set the digest of our small stand-in file."""
    remote = dataset.files[key]
    content = gzip.decompress(payload) if remote.decompressed else payload
    digest = hashlib.new(remote.algorithm, content).hexdigest()
    files = dict(dataset.files)
    files[key] = replace(remote, digest=digest)
    sealed_set = replace(dataset, files=files)
    monkeypatch.setattr(downloads, name, sealed_set)
    return sealed_set


@pytest.mark.parametrize(
    "name, load",
    [
        ("MNIST", downloads.load_mnist),
        ("FASHION_MNIST", downloads.load_fashion_mnist),
    ],
)
def test_idx_loaders_from_a_folder(name, load, tmp_path, monkeypatch):
    source, folder = tmp_path / "source", tmp_path / "folder"
    source.mkdir()
    images = np.arange(24, dtype=np.uint8).reshape(2, 3, 4)
    arrays = {"images": images, "labels": np.array([7, 1], dtype=np.uint8)}
    dataset = getattr(downloads, name)
    for content, array in arrays.items():
        payload = gzip.compress(to_idx(array))
        key = f"test-{content}"
        (source / dataset.files[key].name).write_bytes(payload)
        dataset = sealed(dataset, key, payload, monkeypatch, name)
    inputs, targets = load(folder, "test", url=source.as_uri())
    np.testing.assert_array_equal(inputs, images)
    assert targets.tolist() == [7, 1] and targets.dtype == np.int64
    with pytest.raises(ConnectionError):
        load(folder, "train", url=source.as_uri())
    with pytest.raises(ValueError, match="part must be"):
        load(folder, "all")


def cifar_archive(batches):
    stream = io.BytesIO()
    with tarfile.open(fileobj=stream, mode="w:gz") as archive:
        for name, batch in batches.items():
            payload = pickle.dumps(batch, protocol=2)
            member = tarfile.TarInfo(f"cifar-10-batches-py/{name}")
            member.size = len(payload)
            archive.addfile(member, io.BytesIO(payload))
    return stream.getvalue()


def test_cifar_is_read_from_its_archive(tmp_path, monkeypatch):
    rng = np.random.default_rng(0)
    images = rng.integers(0, 256, (10, 3072), dtype=np.uint8)
    batches = {
        f"data_batch_{i}": {
            b"data": images[2 * i - 2 : 2 * i],
            b"labels": [i, 0],
        }
        for i in range(1, 6)
    }
    payload = cifar_archive(batches)
    sealed(downloads.CIFAR10, "archive", payload, monkeypatch, "CIFAR10")
    (tmp_path / "cifar-10-python.tar.gz").write_bytes(payload)
    inputs, targets = downloads.load_cifar10(tmp_path)
    assert inputs.shape == (10, 32, 32, 3)
    assert targets.tolist() == [1, 0, 2, 0, 3, 0, 4, 0, 5, 0]
    planes = images.reshape(10, 3, 32, 32)
    np.testing.assert_array_equal(inputs[3, :, :, 2], planes[3, 2])


class Evil:
    def __reduce__(self):
        return (print, ("this ran",))


def test_an_archive_that_wants_to_run_code_is_refused(
    tmp_path, monkeypatch, capsys
):
    payload = cifar_archive({"test_batch": {b"data": Evil()}})
    sealed(downloads.CIFAR10, "archive", payload, monkeypatch, "CIFAR10")
    (tmp_path / "cifar-10-python.tar.gz").write_bytes(payload)
    with pytest.raises(ValueError, match="refused"):
        downloads.load_cifar10(tmp_path, "test")
    assert "this ran" not in capsys.readouterr().out


def test_digests_are_well_formed():
    for dataset in (
        downloads.MNIST,
        downloads.FASHION_MNIST,
        downloads.CIFAR10,
    ):
        for remote in dataset.files.values():
            length = {"md5": 32, "sha256": 64}[remote.algorithm]
            assert len(bytes.fromhex(remote.digest)) * 2 == length
