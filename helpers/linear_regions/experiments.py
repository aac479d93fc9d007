r"""The runs behind the one-dimensional experiments: one batch, one row.

Each function is a task of :mod:`helpers.sweep`: plain values in, a mapping of
plain values out. A configuration names a target, a method and a seed, and
trains ``runs`` networks from that seed side by side; results are lists with
one entry a network, in the order of the networks. Run ``r`` of one seed
starts from the same peaks in every method, and does not depend on ``runs``.

torch is imported where networks are trained.
"""

from __future__ import annotations

import time

import numpy as np

from helpers.core.checks import whole_number
from helpers.linear_regions.initialisations import (
    KINDS,
    init_params,
    network_of,
    random_peaks,
)
from helpers.linear_regions.networks import hidden_values, triangle_net_layers
from helpers.linear_regions.regions_1d import count_regions_1d
from helpers.linear_regions.targets import target as named_target

__all__ = [
    "METHODS",
    "best_unregularised",
    "dense_fits",
    "epoch_time",
    "escaping_peaks",
    "loss_curves",
    "perturbed_regions",
    "region_counts",
    "sparse_fits",
    "sparse_samples",
    "switch_dynamics",
]

METHODS = ("triangle", "unregularised", "geometric", "no_output_bias", *KINDS)
"""What :func:`dense_fits` can start from and train."""

UNIT = 0.0, 1.0
RATE = 0.001
# a network whose error is above this part of the target's variance has
# learnt nothing but the mean
FLAT = 0.9
CHECKPOINTS = 25


def region_counts(params) -> np.ndarray:
    r"""Regions of each network of a batch on ``[0, 1]``.

    Parameters
    ----------
    params : list of (W, b)
        Shapes ``(R, out, in)`` and ``(R, out)``, one input.

    Returns
    -------
    ndarray of int, shape (R, 2)
        Activation regions and linear regions; 0 and 0 for a network whose
        weights are not finite.

    Raises
    ------
    ValueError
        As :func:`~helpers.linear_regions.regions_1d.count_regions_1d`.

    Notes
    -----
    Source: Milkert, Hyde and Laine (2025), appendix A.2, for both notions.

    Examples
    --------
    >>> region_counts(init_params("he", (1, 4, 4, 1), 2, seed=0)).tolist()
    [[1, 1], [1, 1]]
    """
    counts = []
    for run in range(len(params[0][0])):
        net = network_of(params, run)
        finite = all(np.isfinite(W).all() and np.isfinite(b).all()
                     for W, b in net)  # fmt: skip
        counts.append(count_regions_1d(net, UNIT) if finite else (0, 0))
    return np.array(counts, dtype=int).reshape(-1, 2)


def _streams(seed: int):
    """Seeds of the peaks and of the weights."""
    return [np.random.SeedSequence([int(seed), k]) for k in range(2)]


def _dead(params, x) -> list[bool]:
    """Whether some hidden layer is off at all samples."""
    dead = []
    for run in range(len(params[0][0])):
        hidden = hidden_values(network_of(params, run), x)
        dead.append(any(not (z > 0).any() for z in hidden))
    return dead


def _start(method, widths, runs, seed, x):
    kind = method if method in KINDS else "default"
    params = init_params(kind, widths, runs, seed, x)
    if method == "no_output_bias":
        params[-1] = (params[-1][0], np.zeros_like(params[-1][1]))
    return params


def _trained(method, mode, x, y, pretrain, epochs, lr, runs, seed, hidden,
             raw=None, raw_probe=None, probe=region_counts):  # fmt: skip
    """Both phases; the second one is empty for ``epochs = 0``."""
    from helpers.linear_regions import training

    if method not in METHODS:
        raise ValueError(f"method must be one of {METHODS}, got {method!r}")
    peak_seed, weight_seed = _streams(seed)
    first, second = lr if isinstance(lr, list | tuple) else (lr, lr)
    if method in ("triangle", "unregularised"):
        if any(width != 4 for width in hidden):
            raise ValueError(f"triangles need width 4, got {hidden}")
        marks = np.unique([*range(0, pretrain, CHECKPOINTS), pretrain])
        before = training.fit_peaks(
            random_peaks(runs, len(hidden), peak_seed), mode, x, y, pretrain,
            first, free_scales=method == "unregularised", record=marks,
            probe=probe,
        )  # fmt: skip
    else:
        if pretrain:
            raise ValueError(f"{method} has no peaks: pretrain must be 0")
        widths = (1, *hidden, 1)
        before = training.Fit(
            _start(method, widths, runs, weight_seed, x), None, None, []
        )
    if method == "geometric":
        fit = training.fit_geometric
    else:
        fit = training.fit_params
    keep = {"fixed_output_bias": True} if method == "no_output_bias" else {}
    after = fit(
        before.params,
        x,
        y,
        epochs,
        second,
        record=raw,
        probe=raw_probe,
        **keep,
    )
    return before, after


def dense_fits(
    target: str,
    method: str,
    pretrain: int,
    epochs: int,
    runs: int,
    seed: int,
    lr: float = RATE,
    hidden=(4, 4, 4, 4, 4),
    points: int = 500,
) -> dict:
    r"""Fit a target on equispaced points and say how good and how bent.

    Parameters
    ----------
    target : str
        A name of :data:`helpers.linear_regions.targets.TARGETS`.
    method : str
        ``triangle`` (peaks, scales from the recurrence), ``unregularised``
        (scales trained too), a kind of
        :func:`~helpers.linear_regions.initialisations.init_params`,
        ``geometric`` (default start, trained in geometric coordinates) or
        ``no_output_bias`` (default start, output bias fixed at 0).
    pretrain : int >= 0
        Epochs in which only peaks (and free scales) move; 0 for methods
        without peaks.
    epochs : int >= 0
        Epochs on raw weights afterwards, with a fresh optimiser.
    runs : int >= 1
        Networks, at once.
    seed : int >= 0
    lr : float > 0
        Rate of Adam in both phases.
    hidden : sequence of int
        Hidden widths; all 4 for triangles.
    points : int >= 2

    Returns
    -------
    dict
        Lists with an entry a network: ``mse``, ``activation`` and ``linear``
        (regions on [0, 1]) at the end, ``start_mse`` and
        ``start_activation``, ``switch_mse`` and ``switch_activation`` at the
        switch; ``fewest`` and ``most``, activation regions over checkpoints
        25 epochs apart during pretraining; ``dead`` (a hidden layer is off
        at all samples), ``flat`` (MSE above 0.9 times the variance). And
        ``variance`` of the target on the points, one number.

    Raises
    ------
    ValueError
        If the target or method is unknown or numbers are out of range.

    Notes
    -----
    Thirty networks 4x5 on 500 points take 1 to 4 milliseconds an epoch.

    Source: Milkert, Hyde and Laine (2025), section 4 and Tables 1 and 2.

    Examples
    --------
    >>> row = dense_fits("x^3", "triangle", 20, 0, runs=2, seed=0)
    >>> row["fewest"], row["most"], row["linear"]
    ([32, 32], [32, 32], [32, 32])
    """
    wanted = named_target(target)
    x = np.linspace(0, 1, points)[:, None]
    y = wanted(x[:, 0])
    before, after = _trained(
        method, wanted.mode, x, y, pretrain, epochs, lr, runs, seed, hidden
    )
    start = before.probes[0] if before.probes else region_counts(before.params)
    checks = np.array(before.probes or [start])[..., 0]
    end = region_counts(after.params)
    first = after.mse[0] if before.mse is None else before.mse[0]
    return {
        "mse": after.mse[-1].tolist(),
        "activation": end[:, 0].tolist(),
        "linear": end[:, 1].tolist(),
        "start_mse": first.tolist(),
        "start_activation": start[:, 0].tolist(),
        "switch_mse": after.mse[0].tolist(),
        "switch_activation": checks[-1].tolist(),
        "fewest": checks.min(axis=0).tolist(),
        "most": checks.max(axis=0).tolist(),
        "dead": _dead(after.params, x),
        "flat": (after.mse[-1] > FLAT * y.var()).tolist(),
        "variance": float(y.var()),
    }


def sparse_samples(layout: str, count: int = 10):
    r"""Training and test points of the sparse experiment.

    Parameters
    ----------
    layout : {"ends", "left"}
        ``ends``: :math:`i/(N-1)` with both ends, and the :math:`N-1` points
        halfway. ``left``: :math:`i/N` and :math:`(i+\frac12)/N`, as many
        test points as training points, the last one beyond the data.
    count : int >= 2
        :math:`N`.

    Returns
    -------
    train, test : ndarray, shapes (N, 1) and (N - 1, 1) or (N, 1)

    Raises
    ------
    ValueError
        If the layout is unknown or the count too small.

    Notes
    -----
    Source: Milkert, Hyde and Laine (2025), Table 3: "10 training points" and
    10 test points halfway between them; there is no such layout with both
    ends, so that we run both readings.

    Examples
    --------
    >>> train, test = sparse_samples("ends", 3)
    >>> train[:, 0].tolist(), test[:, 0].tolist()
    ([0.0, 0.5, 1.0], [0.25, 0.75])
    """
    count = whole_number(count, "count", 2)
    if layout == "ends":
        train = np.linspace(0, 1, count)
        test = (train[1:] + train[:-1]) / 2
    elif layout == "left":
        train = np.arange(count) / count
        test = (np.arange(count) + 0.5) / count
    else:
        raise ValueError(f"layout must be ends or left, got {layout!r}")
    return train[:, None], test[:, None]


def sparse_fits(
    target: str,
    method: str,
    pretrain: int,
    epochs: int,
    runs: int,
    seed: int,
    layout: str = "ends",
    lr: float = RATE,
    hidden=(4, 4, 4, 4, 4),
) -> dict:
    r"""Fit ten samples and measure the error halfway between them.

    Parameters
    ----------
    target, method, pretrain, epochs, runs, seed, lr, hidden
        As in :func:`dense_fits`.
    layout : {"ends", "left"}
        As in :func:`sparse_samples`.

    Returns
    -------
    dict
        Lists with an entry a network: ``train_mse``, ``test_mse``,
        ``dense_mse`` (501 points), ``activation``, ``linear``; the same three
        errors at the switch as ``switch_train_mse`` and so on.

    Raises
    ------
    ValueError
        As :func:`dense_fits` and :func:`sparse_samples`.

    Notes
    -----
    Source: Milkert, Hyde and Laine (2025), Table 3 and Figure 4.

    Examples
    --------
    >>> row = sparse_fits("x^2", "triangle", 200, 0, runs=2, seed=0)
    >>> sorted(row)[:3], row["activation"]
    (['activation', 'dense_mse', 'linear'], [32, 32])
    """
    wanted = named_target(target)
    x, halfway = sparse_samples(layout)
    y = wanted(x[:, 0])
    before, after = _trained(
        method, wanted.mode, x, y, pretrain, epochs, lr, runs, seed, hidden
    )
    counts = region_counts(after.params)
    row = {
        "activation": counts[:, 0].tolist(),
        "linear": counts[:, 1].tolist(),
    }
    dense = np.linspace(0, 1, 501)[:, None]
    for prefix, params in (("switch_", before.params), ("", after.params)):
        for name, at in (("train", x), ("test", halfway), ("dense", dense)):
            row[f"{prefix}{name}_mse"] = _errors(params, at, wanted).tolist()
    return row


def _errors(params, x, wanted) -> np.ndarray:
    h = x.T[None]
    for k, (W, b) in enumerate(params):
        h = W @ (np.maximum(h, 0) if k else h) + b[..., None]
    return np.mean((h[:, 0] - wanted(x[:, 0])) ** 2, axis=1)


def switch_dynamics(
    target: str,
    method: str,
    raw_lr: float,
    runs: int,
    seed: int,
    pretrain: int = 1000,
    record=(0, 1, 2, 5, 10, 20, 50, 100, 200, 500, 1000),
    points: int = 500,
) -> dict:
    r"""Count regions on the way, from the switch on.

    Parameters
    ----------
    target, runs, seed, points
        As in :func:`dense_fits`.
    method : str
        As in :func:`dense_fits`; a method without peaks starts at once.
    raw_lr : float > 0
        Rate on raw weights; peaks are trained at 0.001 before.
    pretrain : int >= 0
        Epochs on peaks.
    record : sequence of int
        Epochs after the switch, from 0 up; the last one ends the run.

    Returns
    -------
    dict
        Lists of equal length, one entry an epoch and network: ``epoch``,
        ``run``, ``activation``, ``linear``, ``mse``. And
        ``single_precision``, one entry a network: activation regions at
        epoch 0 with weights rounded to float32.

    Raises
    ------
    ValueError
        As :func:`dense_fits`.

    Notes
    -----
    Source: ours, for a question of the reviewers.

    Examples
    --------
    >>> row = switch_dynamics("x^3", "triangle", 0.001, runs=2, seed=0,
    ...                       pretrain=10, record=[0, 1])
    >>> row["epoch"], row["activation"][:2]
    ([0, 0, 1, 1], [32, 32])
    """
    wanted = named_target(target)
    x = np.linspace(0, 1, points)[:, None]
    y = wanted(x[:, 0])
    record = np.array(record, dtype=int)
    has_peaks = method in ("triangle", "unregularised")
    before, after = _trained(
        method, wanted.mode, x, y, pretrain if has_peaks else 0,
        int(record[-1]), (RATE, raw_lr), runs, seed, (4,) * 5,
        record, region_counts,
    )  # fmt: skip
    counts = np.array(after.probes)
    rounded = [
        (
            W.astype(np.float32).astype(float),
            b.astype(np.float32).astype(float),
        )
        for W, b in before.params
    ]
    return {
        "epoch": np.repeat(record, runs).tolist(),
        "run": np.tile(np.arange(runs), len(record)).tolist(),
        "activation": counts[..., 0].ravel().tolist(),
        "linear": counts[..., 1].ravel().tolist(),
        "mse": after.mse.ravel().tolist(),
        "single_precision": region_counts(rounded)[:, 0].tolist(),
    }


def loss_curves(
    target: str,
    method: str,
    pretrain: int,
    epochs: int,
    runs: int,
    seed: int,
    every: int = 25,
    points: int = 500,
) -> dict:
    r"""The error along both phases.

    Parameters
    ----------
    target, method, pretrain, epochs, runs, seed, points
        As in :func:`dense_fits`.
    every : int >= 1
        Epochs between records of the second phase; the first one is
        recorded every 25.

    Returns
    -------
    dict
        ``epoch``, counted from the start, and ``mse``, a list a record with
        an entry a network.

    Raises
    ------
    ValueError
        As :func:`dense_fits`.

    Notes
    -----
    Source: ours.

    Examples
    --------
    >>> row = loss_curves("x^3", "triangle", 25, 25, runs=2, seed=0)
    >>> row["epoch"], len(row["mse"]), len(row["mse"][0])
    ([0, 25, 50], 3, 2)
    """
    wanted = named_target(target)
    x = np.linspace(0, 1, points)[:, None]
    record = np.unique([*range(0, epochs, every), epochs])
    before, after = _trained(
        method, wanted.mode, x, wanted(x[:, 0]), pretrain, epochs, RATE, runs,
        seed, (4,) * 5, record,
    )  # fmt: skip
    epoch, mse = record + pretrain, after.mse
    if before.mse is not None:
        epoch = np.concatenate([before.epochs[:-1], epoch])
        mse = np.concatenate([before.mse[:-1], mse])
    return {"epoch": epoch.tolist(), "mse": mse.tolist()}


def epoch_time(
    method: str, hidden, repeat: int, epochs: int = 100, runs: int = 30
) -> dict:
    r"""How long an epoch of a method takes, relative to raw weights 4x5.

    Parameters
    ----------
    method : {"triangle", "unregularised", "default"}
        The first two train peaks, the last one raw weights.
    hidden : sequence of int
        Hidden widths.
    repeat : int >= 0
        Seed, and a name for the repetition.
    epochs, runs : int >= 1
        Epochs that are timed, and networks trained at once.

    Returns
    -------
    dict
        ``ratio`` of processor times, the best of three of either kind, taken
        in turns.

    Raises
    ------
    ValueError
        As :func:`dense_fits`.

    Notes
    -----
    Differs from machine to machine, of course. Source: ours, for a question
    of the reviewers.

    Examples
    --------
    >>> epoch_time("triangle", [4] * 5, 0, 3, 2)["ratio"] > 0
    True
    """
    wanted = named_target("x^3")
    x = np.linspace(0, 1, 500)[:, None]
    y = wanted(x[:, 0])
    peaks = method in ("triangle", "unregularised")
    taken = {"this": [], "raw": []}
    for _ in range(3):
        for name, kind, widths in (
            ("this", method, hidden),
            ("raw", "default", (4,) * 5),
        ):
            first = epochs if peaks and name == "this" else 0
            start = time.process_time()
            _trained(
                kind, "convex", x, y, first, epochs - first, RATE, runs,
                repeat, widths, probe=None,
            )  # fmt: skip
            taken[name].append(time.process_time() - start)
    return {"ratio": min(taken["this"]) / min(taken["raw"])}


def best_unregularised(
    target: str, runs: int, seed: int, epochs: int = 1000, points: int = 500
) -> dict:
    r"""The best network of unregularised pretraining, by its parameters.

    Parameters
    ----------
    target, runs, seed, points
        As in :func:`dense_fits`.
    epochs : int >= 0
        Epochs on peaks and scales, at rate 0.001.

    Returns
    -------
    dict
        ``run``, ``peaks``, ``ratios`` and ``mse`` of the best network.

    Raises
    ------
    ValueError
        As :func:`dense_fits`.

    Notes
    -----
    Source: ours; the row "unregularised" of the paper's Tables 1 and 2.

    Examples
    --------
    >>> row = best_unregularised("x^2", runs=2, seed=0, epochs=5)
    >>> len(row["peaks"]), len(row["ratios"])
    (6, 5)
    """
    from helpers.linear_regions import training

    wanted = named_target(target)
    x = np.linspace(0, 1, points)[:, None]
    fit = training.fit_peaks(
        random_peaks(runs, 5, _streams(seed)[0]), wanted.mode, x,
        wanted(x[:, 0]), epochs, RATE, free_scales=True,
    )  # fmt: skip
    best = int(np.argmin(fit.mse[-1]))
    return {
        "run": best,
        "peaks": fit.peaks[best].tolist(),
        "ratios": fit.ratios[best].tolist(),
        "mse": float(fit.mse[-1, best]),
    }


def perturbed_regions(
    noise: str, size: float, nets: int, seed: int, depth: int = 5
) -> dict:
    r"""Count regions of triangle networks with noisy weights.

    Parameters
    ----------
    noise : {"additive", "multiplicative"}
        ``additive``: :math:`\varepsilon` times a standard normal number is
        added to every weight and bias, the structural zeros among them.
        ``multiplicative``: every number :math:`w` becomes
        :math:`w(1+\varepsilon z)`, so that zeros stay.
    size : float >= 0
        :math:`\varepsilon`.
    nets : int >= 1
        Networks, with uniform peaks in (0.1, 0.9), convex.
    seed : int >= 0
        The same networks and the same :math:`z` for every size.
    depth : int >= 1

    Returns
    -------
    dict
        ``activation`` and ``linear``, regions on [0, 1], an entry a network.

    Raises
    ------
    ValueError
        If an argument is out of range.

    Notes
    -----
    Source: ours; the paper's Figure 5 speaks of a neighbourhood of networks
    with :math:`2^d` regions.

    Examples
    --------
    >>> perturbed_regions("additive", 0.0, nets=2, seed=0)["activation"]
    [32, 32]
    """
    if noise not in ("additive", "multiplicative"):
        raise ValueError(
            f"noise must be additive or multiplicative, got {noise!r}"
        )
    if not 0 <= size < np.inf:
        raise ValueError(f"size must be finite and >= 0, got {size}")
    peak_seed, noise_seed = _streams(seed)
    rng = np.random.default_rng(noise_seed)
    counts = []
    for peaks in random_peaks(nets, depth, peak_seed):
        noisy = []
        for pair in triangle_net_layers(peaks, "convex"):
            z = [rng.normal(size=np.shape(v)) for v in pair]
            if noise == "additive":
                step = [size * one for one in z]
            else:
                step = [size * v * one for v, one in zip(pair, z, strict=True)]
            noisy.append(
                tuple(v + one for v, one in zip(pair, step, strict=True))
            )
        counts.append(count_regions_1d(noisy, UNIT))
    counts = np.array(counts, dtype=int)
    return {
        "activation": counts[:, 0].tolist(),
        "linear": counts[:, 1].tolist(),
    }


def escaping_peaks(
    target: str,
    low: float,
    high: float,
    clamp: float | None,
    runs: int,
    seed: int,
    epochs: int = 1000,
    lr: float = RATE,
    points: int = 500,
) -> dict:
    r"""Train peaks without a clamp and see which leave (0, 1).

    Parameters
    ----------
    target, runs, seed, epochs, lr, points
        As in :func:`dense_fits`; ``epochs`` on peaks.
    low, high : float
        Starting peaks are uniform in between.
    clamp : float or None
        As in :func:`~helpers.linear_regions.training.fit_peaks`.

    Returns
    -------
    dict
        ``escaped`` (a truth value a network: some peak left at some epoch)
        and ``mse``.

    Raises
    ------
    ValueError
        As :func:`dense_fits`.

    Notes
    -----
    Source: Milkert, Hyde and Laine (2025) mention no clamp; the count is
    ours.

    Examples
    --------
    >>> escaping_peaks("x^2", 0.4, 0.6, None, 2, seed=0, epochs=5)["escaped"]
    [False, False]
    """
    from helpers.linear_regions import training

    wanted = named_target(target)
    x = np.linspace(0, 1, points)[:, None]
    peaks = random_peaks(runs, 5, _streams(seed)[0], low, high)
    fit = training.fit_peaks(
        peaks, wanted.mode, x, wanted(x[:, 0]), epochs, lr, clamp=clamp
    )
    return {"escaped": fit.escaped.tolist(), "mse": fit.mse[-1].tolist()}
