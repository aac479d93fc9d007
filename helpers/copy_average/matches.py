r"""Students that reproduce examples: the equations of a match.

A student with :math:`n` neurons in :math:`d` dimensions *matches*
:math:`m` examples if :math:`f_\theta(x_s)=y_s` for all of them. These are
:math:`m` equations for the :math:`p` weights that may learn, at most
:math:`P=n(d+1)`. They are handed out as a function that returns residuals
and their Jacobian for many problems side by side, which is what a
least-squares solver asks for.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import ArrayLike, NDArray

from helpers.copy_average.empirical import network, network_jacobian
from helpers.copy_average.networks import unpack
from helpers.core.activations import Activation, get_activation
from helpers.core.checks import check_sizes, finite_array

__all__ = ["always_matched", "match_equations"]


def always_matched(n: int, d: int) -> int:
    r"""How many examples ``n`` erf neurons can match whatever the labels are.

    .. math:: Q=\lfloor n/2\rfloor\,(d+1)+d\,[n\text{ odd}]

    Parameters
    ----------
    n : int
        Neurons, 1 or more.
    d : int
        Input dimension, 1 or more.

    Returns
    -------
    int
        Half of the parameters :math:`n(d+1)` for even ``n``.

    Raises
    ------
    ValueError
        If a size is no positive whole number.

    Notes
    -----
    Two neurons that nearly cancel are worth the :math:`d+1` functions
    :math:`\sigma(w\cdot x)` and :math:`x_l\,\sigma'(w\cdot x)`, with
    weights that may be chosen freely; a neuron left over is worth the
    :math:`d` linear functions. A lower bound: more may be possible.

    Source: ours.

    Examples
    --------
    >>> always_matched(2, 4), always_matched(3, 4), always_matched(1, 1)
    (5, 9, 1)
    """
    check_sizes(n=n, d=d)
    return n // 2 * (d + 1) + (n % 2) * d


def match_equations(
    X: ArrayLike,
    y: ArrayLike,
    n: int,
    starts: int = 1,
    activation: str | Activation = "erf",
    learned: ArrayLike | None = None,
    frozen: ArrayLike | None = None,
) -> Callable[[NDArray, NDArray], tuple[NDArray, NDArray]]:
    r"""The equations :math:`f_\theta(x_s)-y_s=0` of many problems.

    Parameters
    ----------
    X : array_like, shape (K, m, d)
        ``K`` samples of ``m`` inputs.
    y : array_like, shape (K, m)
        Labels.
    n : int
        Neurons of the student, 1 or more.
    starts : int, default 1
        Each problem is posed this often in a row, for a solver that takes
        one start each: problem ``i`` of the callable is sample
        ``i // starts``.
    activation : str or Activation, default "erf"
    learned : array_like of int, shape (p,), optional
        Entries of the packed parameters
        (:func:`~helpers.copy_average.networks.pack`) that may learn, each
        once; all of them by default.
    frozen : array_like, shape (K, P), optional
        The packed parameters whose other entries stay, for each sample;
        needed with ``learned``, and only then.

    Returns
    -------
    callable
        ``residual_jac(w (k, p), which (k,))`` returns the residuals
        ``(k, m)`` of the problems ``which`` and their Jacobian
        ``(k, m, p)``, as
        :func:`helpers.allocation.levenberg.levenberg_marquardt` asks for.

    Raises
    ------
    ValueError
        If shapes do not fit, an entry is not finite, or ``learned`` is not a
        list of different entries of the parameters.

    Notes
    -----
    :math:`O(mP)` a problem and call.

    Source: ours; a match is that of Schlisselberg and Darshan (2025).

    Examples
    --------
    One neuron, one input, one example: 3 erf(0) - 1, and its slope in w.

    >>> equations = match_equations([[[2.0]]], [[1.0]], n=1)
    >>> r, J = equations(np.array([[0.0, 3.0]]), np.array([0]))
    >>> r.tolist(), J.round(4).tolist()
    ([[-1.0]], [[[4.7873, 0.0]]])
    """
    X, y = finite_array(X, "X", 3), finite_array(y, "y", 2)
    if X.shape[:2] != y.shape or not X.size:
        raise ValueError(
            "X must have shape (K, m, d) and y (K, m), none of them zero, "
            f"got {X.shape} and {y.shape}"
        )
    check_sizes(n=n, starts=starts)
    size = n * (X.shape[2] + 1)
    learned, frozen = _allocation(learned, frozen, len(X), size)
    activation = get_activation(activation)

    def residual_jac(w, which):
        sample = np.asarray(which) // starts
        theta = frozen[sample]
        theta[:, learned] = w
        W, a = unpack(theta, n)
        r = network(W, a, X[sample], activation) - y[sample]
        J = network_jacobian(W, a, X[sample], activation)
        return r, J[..., learned]

    return residual_jac


def _allocation(learned, frozen, K: int, size: int):
    if (learned is None) != (frozen is None):
        raise ValueError("give learned and frozen, or neither of them")
    if learned is None:
        return np.arange(size), np.zeros((K, size))
    learned, frozen = np.asarray(learned), finite_array(frozen, "frozen", 2)
    whole = learned.ndim == 1 and np.issubdtype(learned.dtype, np.integer)
    if not whole or not set(learned.tolist()) <= set(range(size)):
        raise ValueError(
            f"learned must be a list of entries from 0 to {size - 1}, got "
            f"{learned.tolist()}"
        )
    if not 0 < learned.size == np.unique(learned).size:
        raise ValueError(
            f"learned must hold different entries, got {learned.tolist()}"
        )
    if frozen.shape != (K, size):
        raise ValueError(
            f"frozen must have shape {(K, size)}, got {frozen.shape}"
        )
    return learned, frozen
