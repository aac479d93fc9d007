r"""Students that treat all copied, and all averaged, teacher neurons alike.

The teacher is unit-orthonormal with ``k`` neurons. Two families of students
are closed under gradient flow, because they are all the students that a group
of permutations leaves unchanged:

*copy-average*: ``n - 1`` copies and one average,

.. math:: w_i = \alpha v_i + \beta\sum_{j\ne i}v_j
   + \gamma\sum_{\text{rest}}v_j, \qquad
   w_0 = \delta\sum_{\text{copied}}v_j + \varepsilon\sum_{\text{rest}}v_j,

with outgoing weights :math:`a` of each copy and :math:`a_0` of the average;
*n-copy*: ``n`` copies and no average. A critical point of the loss within a
family is a critical point of the loss (Palais's principle of symmetric
criticality), so that a search in seven or four numbers replaces one in
``n (k + 1)``, for every activation.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.optimize import minimize

from helpers.copy_average.interactions import pair_expectations
from helpers.copy_average.networks import Student, Teacher
from helpers.copy_average.one_neuron import one_neuron_optimum
from helpers.core.activations import Activation, get_activation
from helpers.core.tolerances import (
    FINITE_DIFFERENCE,
    NEWTON_GRADIENT,
    QUASI_NEWTON_GRADIENT,
)

__all__ = [
    "FAMILIES",
    "SymmetricPoint",
    "fixed_norm_optimum",
    "naive_parameters",
    "symmetric_loss",
    "symmetric_optimum",
    "symmetric_student",
]

FAMILIES = {"copy_average": 7, "n_copy": 4}
"""Names of the two families and how many parameters each has."""

_NEWTON_STEPS = 30


def _checked(k, n, family: str) -> tuple[float, float, float]:
    """Return k, the number of copies and the number of the others."""
    if family not in FAMILIES:
        raise ValueError(
            f"family must be one of {sorted(FAMILIES)}, got {family!r}"
        )
    numbers = [x for x in (k, n) if not isinstance(x, bool)]
    if len(numbers) < 2 or not 1 <= float(n) <= float(k) < math.inf:
        raise ValueError(f"need 1 <= n <= k, got n={n!r} and k={k!r}")
    copies = float(n) - 1 if family == "copy_average" else float(n)
    return float(k), copies, float(k) - copies


def _parameters(parameters: ArrayLike, family: str) -> NDArray:
    p = np.asarray(parameters, dtype=float)
    if p.shape != (FAMILIES[family],) or not np.all(np.isfinite(p)):
        raise ValueError(
            f"parameters of {family} must be {FAMILIES[family]} finite "
            f"numbers, got {parameters!r}"
        )
    return p if p.size == 7 else np.concatenate([p, np.zeros(3)])


def _plane(q1: NDArray, q2: NDArray, c: NDArray) -> tuple[NDArray, NDArray]:
    """Vectors of the plane with given squared norms and inner products."""
    r1 = np.sqrt(q1)
    along = np.divide(c, r1, out=np.zeros_like(c), where=r1 > 0)
    across = np.sqrt(np.maximum(q2 - along**2, 0.0))
    first = np.stack([r1, np.zeros_like(r1)], axis=-1)
    second = np.stack([along, across], axis=-1)
    return first[:, None, :], second[:, None, :]


def symmetric_loss(
    parameters: ArrayLike,
    k: float,
    n: float,
    family: str = "copy_average",
    activation: str | Activation = "erf",
) -> tuple[float, NDArray]:
    r"""Compute the loss of a symmetric student and its derivative.

    A sum of twelve interactions, whatever the width: of a copy with itself,
    with another copy, with the average and with a teacher neuron that is its
    own, another's or nobody's, and the same for the average.

    Parameters
    ----------
    parameters : array_like, shape (7,) or (4,)
        :math:`(a, \alpha, \beta, \gamma, a_0, \delta, \varepsilon)` for
        "copy_average", the first four for "n_copy".
    k, n : float
        Teacher and student neurons, :math:`1\le n\le k`. They enter as
        multiplicities only and need not be whole: between whole numbers the
        result interpolates.
    family : {"copy_average", "n_copy"}
    activation : str or Activation, default "erf"

    Returns
    -------
    loss : float
        The population loss of the student that
        :func:`symmetric_student` builds.
    gradient : ndarray, shape of ``parameters``
        Derivative in the parameters: the sum of the loss's gradient over the
        weights that share one.

    Raises
    ------
    ValueError
        If an argument is out of range.

    Notes
    -----
    Source: ours, after the reduced families that the experiments of Simsek
    et al. (2023) suggest.

    Examples
    --------
    >>> loss, gradient = symmetric_loss([1, 1, 0, 0], 3, 3, "n_copy", "relu")
    >>> bool(abs(loss) < 1e-12), bool(abs(gradient).max() < 1e-12)
    (True, True)
    """
    k, m, rest = _checked(k, n, family)
    p = _parameters(parameters, family)
    a, al, be, ga, a0, de, ep = p
    others = max(m - 1, 0.0)
    Q = al**2 + others * be**2 + rest * ga**2
    q = 2 * al * be + (m - 2) * be**2 + rest * ga**2
    P = m * de**2 + rest * ep**2
    c = al * de + others * be * de + rest * ga * ep
    weight = np.array(
        [m * a * a, m * others * a * a, a0 * a0, m * a * a0, m * a * a0]
        + [-2 * m * a, -2 * m * others * a, -2 * m * rest * a]
        + [-2 * m * a0, -2 * rest * a0, k, k * (k - 1)]
    )
    first = np.array([Q, Q, P, Q, P, Q, Q, Q, P, P, 1, 1])
    second = np.array([Q, Q, P, P, Q, 1, 1, 1, 1, 1, 1, 1])
    inner = np.array([Q, q, P, c, c, al, be, ga, de, ep, 1, 0])
    # with fewer than two copies, the inner product of two of them is no
    # number that a network has; with one or none it has weight zero
    bound = np.sqrt(first * second)
    inner = np.clip(inner, -bound, bound)
    pair = pair_expectations(*_plane(first, second, inner), activation)
    value, curvature, slope = (x[:, 0, 0] for x in pair)
    bend, tilt = weight * curvature, weight * slope
    d_Q = bend[0] + tilt[0] + bend[1] + bend[3] + bend[5:8].sum() / 2
    d_P = bend[2] + tilt[2] + bend[4] + bend[8:10].sum() / 2
    d_q, d_c = tilt[1], tilt[3] + tilt[4]
    single = m * value[5] + m * others * value[6] + m * rest * value[7]
    alone = m * value[8] + rest * value[9]
    gradient = np.array(
        [
            2 * m * (a * (value[0] + others * value[1]) + a0 * value[3])
            - 2 * single,
            2 * al * d_Q + 2 * be * d_q + de * d_c + tilt[5],
            2 * others * be * d_Q
            + 2 * (al + (m - 2) * be) * d_q
            + others * de * d_c
            + tilt[6],
            2 * rest * ga * (d_Q + d_q) + rest * ep * d_c + tilt[7],
            2 * (a0 * value[2] + m * a * value[3]) - 2 * alone,
            2 * m * de * d_P + (al + others * be) * d_c + tilt[8],
            2 * rest * ep * d_P + rest * ga * d_c + tilt[9],
        ]
    )
    return float(weight @ value), gradient[: FAMILIES[family]]


def symmetric_student(
    parameters: ArrayLike,
    k: int,
    n: int,
    family: str = "copy_average",
    d: int | None = None,
) -> Student:
    """Build the student that a point of a family stands for.

    Parameters
    ----------
    parameters, family
        As in :func:`symmetric_loss`.
    k, n : int
        Whole numbers, :math:`1 \\le n \\le k`.
    d : int, optional
        Input dimension, at least ``k``, which it is if not given.

    Returns
    -------
    Student
        ``W`` of shape (n, d): the copies, of the first teacher neurons in
        order, then the average.

    Raises
    ------
    ValueError
        If an argument is out of range.

    Notes
    -----
    Source: as :func:`symmetric_loss`.

    Examples
    --------
    >>> symmetric_student([1, 1, 0, 0, 2, 0, 0.4], 3, 2).W.tolist()
    [[1.0, 0.0, 0.0], [0.0, 0.4, 0.4]]
    """
    _, copies, _ = _checked(k, n, family)
    a, al, be, ga, a0, de, ep = _parameters(parameters, family)
    if int(k) != k or int(n) != n:
        raise ValueError(f"a student needs whole k and n, got {k} and {n}")
    m, k, n = int(copies), int(k), int(n)
    W = np.zeros((n, k))
    W[:m, :m] = be + (al - be) * np.eye(m)
    W[:m, m:] = ga
    W[m:, :m], W[m:, m:] = de, ep
    outgoing = np.array([a] * m + [a0] * (n - m))
    basis = Teacher.orthonormal(k, k if d is None else d).V
    return Student(W @ basis, outgoing)


@dataclass(frozen=True)
class SymmetricPoint:
    r"""A critical point of the loss within a symmetric family.

    Parameters
    ----------
    family : str
        "copy_average" or "n_copy".
    activation : str
    k, n : float
    parameters : tuple of float
        As in :func:`symmetric_loss`. For homogeneous activations every
        incoming weight has norm one, since only products count.
    loss : float
    gradient : float
        Largest absolute derivative in the parameters.
    """

    family: str
    activation: str
    k: float
    n: float
    parameters: tuple[float, ...]
    loss: float
    gradient: float

    @property
    def copies(self) -> float:
        """How many copies the student has."""
        return self.n - (self.family == "copy_average")

    @property
    def copy_norm(self) -> float:
        r"""Norm of the incoming weights of a copy."""
        _, al, be, ga = self.parameters[:4]
        m = self.copies
        return math.sqrt(al**2 + max(m - 1, 0) * be**2 + (self.k - m) * ga**2)

    @property
    def average_norm(self) -> float:
        """Norm of the incoming weights of the average; 0 without one."""
        _, de, ep = (*self.parameters, 0.0, 0.0, 0.0)[4:7]
        m = self.copies
        return math.sqrt(m * de**2 + (self.k - m) * ep**2)

    @property
    def copy_cosines(self) -> NDArray:
        """Cosines of a copy: its own neuron, others' neurons, the rest."""
        return np.array(self.parameters[1:4]) / self.copy_norm

    @property
    def average_cosines(self) -> NDArray:
        """Cosines of the average: copied neurons, the rest."""
        if self.family != "copy_average":
            raise ValueError("the family n_copy has no average")
        return np.array(self.parameters[5:7]) / self.average_norm

    def student(self, d: int | None = None) -> Student:
        """Build the student, see :func:`symmetric_student`."""
        return symmetric_student(
            self.parameters, self.k, self.n, self.family, d
        )


def naive_parameters(
    k: float,
    n: float,
    family: str = "copy_average",
    activation: str | Activation = "erf",
) -> NDArray:
    """Give the exact copies, and the best average of the rest.

    Parameters
    ----------
    k, n, family, activation
        As in :func:`symmetric_loss`. Where a number is not whole, the
        average is that of the next whole number of neurons.

    Returns
    -------
    ndarray, shape (7,) or (4,)
        Parameters of the unperturbed point: for erf a critical point in the
        family "copy_average"; for other activations a start.

    Raises
    ------
    ValueError
        If an argument is out of range or one neuron has no best average.

    Notes
    -----
    Source: Simsek et al. (2023), section 4.

    Examples
    --------
    >>> naive_parameters(5, 3).round(4).tolist()
    [1.0, 1.0, 0.0, 0.0, 3.0, 0.0, 0.2582]
    """
    _, _, rest = _checked(k, n, family)
    copy = [1.0, 1.0, 0.0, 0.0]
    if family == "n_copy":
        return np.array(copy)
    best = one_neuron_optimum(math.ceil(rest), activation)
    return np.array([*copy, best.a, 0.0, best.w_coefficient])


def symmetric_optimum(
    k: float,
    n: float,
    family: str = "copy_average",
    activation: str | Activation = "erf",
    start: ArrayLike | None = None,
) -> SymmetricPoint:
    r"""Find the minimum of the loss within a family near its naive point.

    Descent (BFGS) within the family, then Newton's method. The result is a
    critical point of the full loss; whether it is a minimum there is another
    question, which its Hessian answers.

    Parameters
    ----------
    k, n, family, activation
        As in :func:`symmetric_loss`.
    start : array_like, optional
        Parameters to start from; :func:`naive_parameters` if not given.

    Returns
    -------
    SymmetricPoint

    Raises
    ------
    ValueError
        If an argument is out of range.

    Notes
    -----
    Source: ours.

    Examples
    --------
    >>> round(symmetric_optimum(3, 2, "copy_average", "relu").loss, 6)
    0.153668
    >>> round(symmetric_optimum(3, 2, "n_copy", "relu").loss, 6)
    0.155325
    """
    activation = get_activation(activation)
    if start is None:
        start = naive_parameters(k, n, family, activation)

    def objective(p: NDArray) -> tuple[float, NDArray]:
        return symmetric_loss(p, k, n, family, activation)

    found = minimize(
        objective,
        np.asarray(start, dtype=float),
        jac=True,
        method="BFGS",
        options={"gtol": QUASI_NEWTON_GRADIENT},
    ).x
    found = _newton(lambda p: objective(p)[1], found)
    if activation.homogeneous:
        found = _unit_norms(found, k, n, family)
    loss, gradient = objective(found)
    return SymmetricPoint(
        family,
        activation.name,
        k,
        n,
        tuple(found.tolist()),
        loss,
        float(np.abs(gradient).max()),
    )


def _newton(gradient, p: NDArray) -> NDArray:
    """Least-norm Newton steps: directions that are free are not taken."""
    for _ in range(_NEWTON_STEPS):
        residual = gradient(p)
        if np.abs(residual).max() <= NEWTON_GRADIENT:
            break
        step = FINITE_DIFFERENCE * np.eye(p.size)
        slopes = [gradient(p + s) - gradient(p - s) for s in step]
        hessian = np.array(slopes) / (2 * FINITE_DIFFERENCE)
        trial = p - np.linalg.lstsq(hessian, residual, rcond=_FREE)[0]
        if np.abs(gradient(trial)).max() >= np.abs(residual).max():
            break
        p = trial
    return p


# relative size below which an eigenvalue of a finite-difference Hessian is
# taken for a free direction
_FREE = FINITE_DIFFERENCE**1.5


def _unit_norms(p: NDArray, k: float, n: float, family: str) -> NDArray:
    """Use the scale symmetry to give incoming weights the norm one."""
    point = SymmetricPoint(family, "", k, n, tuple(p), 0.0, 0.0)
    p, norms = p.copy(), [point.copy_norm, point.average_norm]
    for first, last, norm in ((0, 4, norms[0]), (4, 7, norms[1])):
        if norm > 0:
            p[first + 1 : last] /= norm
            p[first:last][:1] *= norm
    return p


def fixed_norm_optimum(
    k: int,
    n: int,
    norm: float,
    family: str = "copy_average",
    activation: str | Activation = "gelu",
) -> SymmetricPoint:
    r"""Minimise within a family, all incoming weights having one norm.

    For activations such as GELU the loss may fall as norms grow, for ever;
    this is a curve along which it falls, and its end is a student of
    rectifiers.

    Parameters
    ----------
    k, n, family
        As in :func:`symmetric_loss`.
    norm : float
        Norm of all incoming weights, positive.
    activation : str or Activation, default "gelu"

    Returns
    -------
    SymmetricPoint
        ``gradient`` is the largest derivative along the constraint; that it
        vanishes does not make the point critical for the loss.

    Raises
    ------
    ValueError
        If an argument is out of range.

    Notes
    -----
    Source: ours; a companion to Theorem 5.1 of Simsek et al. (2023).

    Examples
    --------
    >>> losses = [fixed_norm_optimum(4, 2, r).loss for r in (1, 10, 100)]
    >>> losses == sorted(losses, reverse=True)
    True
    """
    activation = get_activation(activation)
    _, m, rest = _checked(k, n, family)
    if not 0 < norm < math.inf:
        raise ValueError(f"norm must be positive and finite, got {norm!r}")
    metric = np.array([1, max(m - 1, 0), rest, m, rest])
    size = FAMILIES[family]
    blocks = [(0, slice(1, 4)), (4, slice(5, 7))][: size // 3]

    def parameters(x: NDArray) -> tuple[NDArray, NDArray]:
        p, slope = x / norm, np.eye(size) / norm
        for first, some in blocks:
            weight = metric[:3] if first == 0 else metric[3:]
            length = math.sqrt(weight @ x[some] ** 2)
            unit = x[some] / length
            p[some] = norm * unit
            slope[some, some] = (
                norm
                / length
                * (np.eye(unit.size) - np.outer(unit, weight * unit))
            )
        return p, slope

    def objective(x: NDArray) -> tuple[float, NDArray]:
        p, slope = parameters(x)
        loss, gradient = symmetric_loss(p, k, n, family, activation)
        return loss, gradient @ slope

    start = np.array([1, 1, 0, 0, rest, 0, 1], dtype=float)[:size]
    found = minimize(
        objective,
        start,
        jac=True,
        method="BFGS",
        options={"gtol": QUASI_NEWTON_GRADIENT},
    ).x
    found = _newton(lambda x: objective(x)[1], found)
    loss, gradient = objective(found)
    return SymmetricPoint(
        family,
        activation.name,
        k,
        n,
        tuple(parameters(found)[0].tolist()),
        loss,
        float(np.abs(gradient).max()),
    )
