r"""Plain ReLU networks trained by gradient descent, recorded on the way.

The only module of this part that needs torch. Starting weights come from
NumPy, arithmetic is float64 on one thread, and every step uses the whole
sample, so that a run depends on its arguments alone. Between machines the
last digits differ, and a few thousand steps may make those visible: short
runs agree to many digits, long ones only as samples of the same experiment.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch

from helpers.core.checks import whole_number
from helpers.core.randomness import Seed, as_generator
from helpers.core.tolerances import ADAM_DENOMINATOR
from helpers.spectral_alignment.layers import (
    Layers,
    random_layers,
    relu_features,
)

__all__ = ["TrainingTrace", "train_relu_network"]

_ADAM_MOMENTS = 0.9, 0.999


@dataclass(frozen=True)
class TrainingTrace:
    r"""A network at some of its training steps.

    Attributes
    ----------
    step : ndarray of int, shape (r,)
        Steps done by then.
    mse : ndarray, shape (r,)
        Mean square of output minus target on the sample.
    layers : tuple of Layers, length r
        Hidden weights and biases, for
        :func:`helpers.spectral_alignment.layers.relu_features`.
    readout : ndarray, shape (r, m + 1)
        Outgoing weights of the last layer, and then the output's bias.
    dead : ndarray, shape (r, p)
        Fraction of each layer's neurons that are off at every sample.
    features : tuple of ndarray, shapes (n, m_l)
        Outputs of the hidden layers at the last record, first layer first.
    """

    step: np.ndarray
    mse: np.ndarray
    layers: tuple[Layers, ...]
    readout: np.ndarray
    dead: np.ndarray
    features: tuple[np.ndarray, ...]


def train_relu_network(
    X,
    f,
    widths,
    steps: int,
    lr: float = 0.003,
    seed: Seed = 0,
    record=None,
    *,
    bias_scale: float = 0.0,
    train_biases: bool = True,
) -> TrainingTrace:
    r"""Fit a plain ReLU network by full-batch Adam on the mean square error.

    Minimises :math:`\frac1n\|H_pv+c\mathbf 1-f\|^2` over all weights, from
    independent Gaussian weights of variance :math:`2/m` for :math:`m`
    inputs (He), the outgoing ones included, and :math:`c=0`.

    Parameters
    ----------
    X : array_like, shape (n, d)
        Samples as rows.
    f : array_like, shape (n,)
        Target values.
    widths : sequence of int
        Neurons of the hidden layers, at least one layer.
    steps : int >= 0
    lr : float > 0
        Learning rate; the moments of Adam are 0.9 and 0.999.
    seed : int, SeedSequence or Generator
        Of the starting weights.
    record : sequence of int, optional
        Steps after which to record, increasing, in [0, steps]; by default
        the first and the last.
    bias_scale : float >= 0
        Standard deviation of the starting biases of the hidden layers;
        zero by default.
    train_biases : bool
        Whether hidden biases are trained; the output's bias always is.

    Returns
    -------
    TrainingTrace

    Raises
    ------
    ValueError
        If an argument is out of range, not finite or shapes do not fit.

    Notes
    -----
    :math:`O(n\sum_\ell m_{\ell-1}m_\ell)` a step. torch runs on one thread
    meanwhile; the number of threads is put back afterwards.

    Source: ours (experiment E3 for the spectral-alignment paper). Adam is
    that of Kingma and Ba (2015).

    Examples
    --------
    >>> x = np.linspace(-1, 1, 9)[:, None]
    >>> trace = train_relu_network(x, np.abs(x[:, 0]), [32], 300)
    >>> trace.step.tolist(), bool(trace.mse[1] < trace.mse[0] / 100)
    ([0, 300], True)
    """
    X, f, widths = _checked_samples(X, f, widths)
    marks = _checked_run(steps, lr, record)
    rng = as_generator(seed)
    start = random_layers(X.shape[1], widths, rng, bias_scale=bias_scale)
    v = rng.normal(0.0, np.sqrt(2.0 / widths[-1]), size=widths[-1])
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        records = _run(X, f, start, v, marks, lr, train_biases)
    finally:
        torch.set_num_threads(threads)
    return _trace(X, f, marks, records)


def _run(X, f, start, v, marks, lr, train_biases) -> list[tuple]:
    weights = [torch.tensor(w, requires_grad=True) for w in start.weights]
    biases = [
        torch.tensor(b, requires_grad=bool(train_biases)) for b in start.biases
    ]
    readout = torch.tensor(np.append(v, 0.0), requires_grad=True)
    inputs, target = torch.tensor(X), torch.tensor(f)
    trained = [*weights, *(biases if train_biases else []), readout]
    optimizer = torch.optim.Adam(
        trained,
        lr=lr,
        betas=_ADAM_MOMENTS,
        eps=ADAM_DENOMINATOR,
        foreach=False,
    )
    records = []
    for step in range(int(marks[-1]) + 1):
        if step in marks:
            now = Layers(
                [w.detach().numpy().copy() for w in weights],
                [b.detach().numpy().copy() for b in biases],
            )
            records.append((now, readout.detach().numpy().copy()))
        if step == marks[-1]:
            break
        optimizer.zero_grad()
        _mse(inputs, target, weights, biases, readout).backward()
        optimizer.step()
    return records


def _mse(X, f, weights, biases, readout):
    H = X
    for W, b in zip(weights, biases, strict=True):
        H = torch.relu(H @ W + b)
    return torch.mean((H @ readout[:-1] + readout[-1] - f) ** 2)


def _trace(X, f, marks, records) -> TrainingTrace:
    """Measured in NumPy, from the recorded weights."""
    mse, dead = [], []
    for layers, readout in records:
        features = relu_features(X, layers.weights, layers.biases)[1:]
        output = features[-1] @ readout[:-1] + readout[-1]
        mse.append(np.mean((output - f) ** 2))
        dead.append([np.mean(~H.any(axis=0)) for H in features])
    return TrainingTrace(
        step=marks,
        mse=np.array(mse),
        layers=tuple(layers for layers, _ in records),
        readout=np.array([readout for _, readout in records]),
        dead=np.array(dead),
        features=tuple(features),
    )


def _checked_samples(X, f, widths):
    X, f = np.asarray(X, dtype=float), np.asarray(f, dtype=float)
    if X.ndim != 2 or 0 in X.shape or not np.isfinite(X).all():
        raise ValueError(
            "X must be a finite matrix with a row and a column, got shape "
            f"{X.shape}"
        )
    if f.shape != X.shape[:1] or not np.isfinite(f).all():
        raise ValueError(
            f"f must be finite with shape ({len(X)},), got shape {f.shape}"
        )
    widths = list(np.atleast_1d(widths))
    if not widths:
        raise ValueError("widths must name at least one hidden layer")
    return X, f, widths


def _checked_run(steps, lr, record) -> np.ndarray:
    steps = whole_number(steps, "steps", 0)
    if not 0 < lr < np.inf:
        raise ValueError(f"lr must be positive and finite, got {lr!r}")
    if record is None:
        return np.unique([0, steps])
    marks = np.asarray(record)
    if (
        marks.ndim != 1
        or not marks.size
        or marks.dtype.kind not in "iu"
        or marks[0] < 0
        or marks[-1] > steps
        or np.any(np.diff(marks) <= 0)
    ):
        raise ValueError(
            f"record must hold increasing whole numbers in [0, {steps}], "
            f"got {record!r}"
        )
    return marks
