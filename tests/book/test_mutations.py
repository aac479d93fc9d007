"""A helper made wrong turns its chapter red.

Each case changes one constant, sign or factor in a copy of the repository
and runs the chapter that uses it under nbval, as `make test` does. These are
the quiet mistakes: the code still runs, and only a number moves.
"""

import os
import shutil
import subprocess
import sys

import pytest

from tools import ROOT

DIGITS = "book/foundations/smooth_functions.ipynb"
NEURON = "book/copy_average/one_neuron.ipynb"

MUTATIONS = {
    "a doubled energy": (
        DIGITS,
        "helpers/spectral_alignment/spectra.py",
        "energy = np.sum(x * (L @ x), axis=0)",
        "energy = 2 * np.sum(x * (L @ x), axis=0)",
    ),
    "a wider kernel": (
        DIGITS,
        "helpers/spectral_alignment/graphs.py",
        "squareform(np.exp(-(scaled**2) / 2))",
        "squareform(np.exp(-(scaled**2) / 2.2))",
    ),
    "other pixels": (
        DIGITS,
        "helpers/core/data.py",
        "Samples(counts / 16,",
        "Samples(np.minimum(counts, 14) / 16,",
    ),
    "a constant of GELU's interaction": (
        NEURON,
        "helpers/copy_average/closed_forms.py",
        "slope = 0.25 + (",
        "slope = 0.26 + (",
    ),
    "a factor of the closed-form loss": (
        NEURON,
        "helpers/copy_average/one_neuron.py",
        "return 2 / math.pi * k * (own - k * np.arcsin(t**2 / k))",
        "return 2 / 3.14 * k * (own - k * np.arcsin(t**2 / k))",
    ),
    "another random stream": (
        DIGITS,
        "helpers/core/randomness.py",
        "np.random.SeedSequence(int(seed))",
        "np.random.SeedSequence(int(seed) + 1)",
    ),
}


@pytest.fixture(scope="module")
def copy(tmp_path_factory):
    """A copy of what a chapter needs, to make one helper wrong in."""
    root = tmp_path_factory.mktemp("mutated")
    ignore = shutil.ignore_patterns("__pycache__", ".ipynb_checkpoints")
    for name in ("book", "helpers", "tools"):
        shutil.copytree(ROOT / name, root / name, ignore=ignore)
    shutil.copy(ROOT / "requirements.txt", root)
    return root


def nbval(root, chapter):
    environment = {**os.environ, "PYTHONPATH": str(root)}
    return subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-x", "-p", "no:cacheprovider"]
        + ["-p", "tools.nbval_plugin", "--nbval", "--nbval-current-env"]
        + [chapter],
        cwd=root,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.mark.parametrize("name", MUTATIONS)
def test_a_wrong_helper_turns_its_chapter_red(copy, name):
    chapter, module, right, wrong = MUTATIONS[name]
    path = copy / module
    text = path.read_text()
    assert text.count(right) == 1, "the helper changed: mend this test"
    path.write_text(text.replace(right, wrong))
    try:
        done = nbval(copy, chapter)
    finally:
        path.write_text(text)
    assert done.returncode == 1, done.stdout[-2000:]
    # red because a cell gave something else, not because nothing ran
    assert "failed" in done.stdout
    assert "Cell outputs differ" in done.stdout or "ClaimFailed" in (
        done.stdout
    ), done.stdout[-2000:]
