"""``helpers`` as a wheel, in a clean environment, with no network.

The environment holds the wheel and what the wheel declares to need, linked
from this environment, and nothing else: no torch, no numba, no matplotlib.
"""

import os
import re
import shutil
import subprocess
import sys
import venv
from importlib.metadata import distribution
from pathlib import Path

import pytest

from tools import ROOT


def run(*command, **options):
    done = subprocess.run(
        [str(c) for c in command],
        capture_output=True,
        text=True,
        check=False,
        **options,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def declared(name: str, extra: str = "") -> set[str]:
    """Distributions that one needs, and those that they need."""
    found, waiting = set(), [name]
    while waiting:
        dist = distribution(waiting.pop())
        for line in dist.requires or []:
            marker = line.partition(";")[2]
            if marker and f"extra == '{extra}'" not in marker.replace(
                '"', "'"
            ):
                continue
            need = re.match(r"[\w.-]+", line)[0]
            if need not in found:
                found.add(need)
                waiting.append(need)
    return found


def link(name: str, site: Path) -> None:
    """Make an installed distribution visible in another environment."""
    dist = distribution(name)
    tops = {Path(f).parts[0] for f in dist.files or []}
    for top in tops - {"..", "__pycache__"}:
        target = site / top
        if not target.exists():
            os.symlink(dist.locate_file(top), target)


@pytest.fixture(scope="module")
def clean(tmp_path_factory):
    """Python of a clean environment with the wheel installed."""
    folder = tmp_path_factory.mktemp("clean")
    # built from a copy, so that the checkout stays as it is
    source = folder / "src"
    ignore = shutil.ignore_patterns("__pycache__")
    shutil.copytree(ROOT / "helpers", source / "helpers", ignore=ignore)
    for name in ("pyproject.toml", "README.md", "LICENSE", "LICENSE-TEXT"):
        shutil.copy(ROOT / name, source / name)
    run(
        *(sys.executable, "-m", "pip", "wheel", "-q", "--no-deps"),
        *("--no-build-isolation", "--no-index", "-w", folder, source),
    )
    wheel = next(folder.glob("*.whl"))
    venv.create(folder / "env", symlinks=os.name != "nt", with_pip=False)
    bin_ = folder / "env" / ("Scripts" if os.name == "nt" else "bin")
    python = bin_ / "python"
    run(
        *(sys.executable, "-m", "pip", "--python", python, "install", "-q"),
        *("--no-deps", "--no-index", wheel),
    )
    code = "import sysconfig; print(sysconfig.get_path('purelib'))"
    site = Path(run(python, "-c", code).strip())
    for name in declared("constrained-expressivity"):
        link(name, site)
    return python


# modules whose whole subject is a network in torch, as in test_layering
TRAINING = ("modules", "training", "block_training", "convolution")


def test_every_module_imports_from_the_wheel(clean, tmp_path):
    code = f"""
import importlib, pkgutil, sys
import helpers
names = ["helpers"]
for info in pkgutil.walk_packages(helpers.__path__, "helpers."):
    if info.name.split(".")[-1] not in {TRAINING!r}:
        names.append(info.name)
for name in names:
    importlib.import_module(name)
for absent in ("torch", "numba", "matplotlib", "IPython", "yaml"):
    assert absent not in sys.modules, absent
print(len(names))
"""
    count = int(run(clean, "-I", "-c", code, cwd=tmp_path))
    modules = [p.stem for p in (ROOT / "helpers").rglob("*.py")]
    assert count == sum(stem not in TRAINING for stem in modules)


def test_the_wheel_ships_its_data(clean, tmp_path):
    code = (
        "from helpers.core.data import load_concrete as f; print(len(f()[0]))"
    )
    assert int(run(clean, "-I", "-c", code, cwd=tmp_path)) == 1030


def test_a_documented_call_works_without_torch_and_numba(clean, tmp_path):
    code = (
        "from helpers.copy_average.one_neuron import one_neuron_optimum as f;"
        "print(f(5, 'erf'))"
    )
    assert "0.333333" in run(clean, "-I", "-c", code, cwd=tmp_path)
