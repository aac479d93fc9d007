"""pyproject.toml, requirements and environment.yml say the same."""

import re
import tomllib

import yaml

from tools import ROOT

PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
LOCK = (ROOT / "requirements.txt").read_text()
MAKEFILE = (ROOT / "Makefile").read_text()
TORCH = re.search(r"^TORCH\s*:=\s*(\S+)", MAKEFILE, re.MULTILINE)[1]
INDEX = re.search(r"^CPU_INDEX\s*:=\s*(\S+)", MAKEFILE, re.MULTILINE)[1]
NAME = re.compile(r"^[A-Za-z0-9][A-Za-z0-9._-]*")


def normal(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


def wanted(lines) -> set[str]:
    return {normal(NAME.match(s)[0]) for s in lines if NAME.match(s)}


def pins() -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for line in LOCK.splitlines():
        match = re.match(r"^([A-Za-z0-9._-]+)==(\S+)", line)
        if match:
            found.setdefault(normal(match[1]), []).append(match[2])
    return found


def test_everything_wanted_is_pinned():
    asked = wanted((ROOT / "requirements.in").read_text().splitlines())
    assert asked <= set(pins())


def test_pyproject_is_covered_by_the_lock():
    extras = PROJECT["optional-dependencies"]
    for name in ("book", "test", "numba", "sweep", "dask"):
        assert wanted(extras[name]) <= set(pins()), name
    assert wanted(PROJECT["dependencies"]) <= set(pins())


def test_the_user_s_packages_are_there():
    named = {"jupyter-book", "numpy", "scipy", "matplotlib", "nbval", "pytest"}
    assert named <= set(pins())


def test_pyproject_has_lower_bounds_that_the_pins_meet():
    extras = PROJECT["optional-dependencies"]
    everything = PROJECT["dependencies"] + [
        e for lines in extras.values() for e in lines
    ]
    for line in everything:
        bound = re.search(r">=([\d.]+)", line)
        assert bound, f"{line} has no lower bound"
        for pin in pins().get(normal(NAME.match(line)[0]), []):
            assert _version(pin) >= _version(bound[1]), line


def _version(text: str) -> tuple:
    return tuple(int(n) for n in re.findall(r"\d+", text)[:3])


def test_jupyter_book_stays_below_2():
    """2.x ignores _config.yml and _toc.yml and has no glue."""
    assert "jupyter-book<2" in (ROOT / "requirements.in").read_text()
    book = PROJECT["optional-dependencies"]["book"]
    assert any(re.match(r"jupyter-book.*<2$", line) for line in book)
    assert all(_version(pin) < (2,) for pin in pins()["jupyter-book"])


def test_every_pin_has_hashes():
    blocks = re.split(r"\n(?=[A-Za-z0-9])", LOCK.strip())
    bare = [b.split()[0] for b in blocks if "--hash=sha256:" not in b]
    assert not bare


def test_torch_takes_its_own_route():
    """Its index in a requirements file would cost a look-up a package."""
    assert "torch" not in pins()
    assert not any(name.startswith("nvidia") for name in pins())
    assert "--extra-index-url $(CPU_INDEX) torch==$(TORCH)" in MAKEFILE
    from importlib.metadata import requires

    needs = [
        r
        for r in requires("torch") or []
        if "extra" not in r and "nvidia" not in r and "cuda" not in r
    ]
    needs = wanted(n for n in needs if "triton" not in n)
    assert needs <= set(pins()), "what torch needs must be pinned too"


def test_conda_file_installs_the_same():
    """Pin by pin, read independently of the tool that wrote it."""
    file = yaml.safe_load((ROOT / "environment.yml").read_text())
    pip = next(d["pip"] for d in file["dependencies"] if isinstance(d, dict))
    assert pip[:2] == [f"--extra-index-url {INDEX}", f"torch=={TORCH}"]
    assert pip[-1] == "-e ."
    locked = re.findall(r"^\S+==\S+(?: ; [^\\\n]+)?", LOCK, re.MULTILINE)
    assert pip[2:-1] == [line.strip() for line in locked]
    least = PROJECT["requires-python"].removeprefix(">=")
    python = next(
        d for d in file["dependencies"] if str(d).startswith("python")
    )
    assert _version(python) >= _version(least)


def test_conda_file_mixes_no_hashes_with_what_has_none():
    """pip would refuse torch and this repository beside hashed pins."""
    assert "--hash" not in (ROOT / "environment.yml").read_text()
    assert "-r requirements.txt" not in (ROOT / "environment.yml").read_text()


def test_windows_commands_of_the_readme_install_the_same():
    readme = (ROOT / "README.md").read_text()
    assert f"torch=={TORCH}" in readme
    assert "--require-hashes -r requirements.txt" in readme


def test_the_helpers_name_no_registry():
    """Nobody's copy of the lock may depend on one host."""
    assert not re.search(r"https?://", LOCK)
