r"""A network as lengths and angles.

On Gaussian inputs the population loss sees the incoming weights only through
the *order parameters*: norms :math:`r_i`, cosines :math:`u_{ij}` with the
teacher neurons and cosines :math:`\rho_{ii'}` among the student's own. Which
numbers are order parameters of a network in :math:`\mathbb R^d`? For an
orthogonal teacher those for which

.. math:: G = R - UU^\top \succeq 0, \qquad \operatorname{rank} G \le d - k,

where :math:`R` holds the :math:`\rho_{ii'}` and a unit diagonal. The pairwise
constraints of the paper say that the principal minors of order one and two
of :math:`G` are not negative.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.optimize import minimize

from helpers.copy_average.interactions import interaction, interaction_grad
from helpers.copy_average.networks import (
    Student,
    Teacher,
    teacher_cosines,
)
from helpers.copy_average.population import function_norm
from helpers.core.activations import Activation, get_activation
from helpers.core.randomness import Seed, as_generator
from helpers.core.tolerances import (
    COSINE_SLACK,
    ORTHONORMAL,
    QUASI_NEWTON_GRADIENT,
    ROUNDING,
)

__all__ = [
    "Feasibility",
    "InfeasibleError",
    "OrderParameters",
    "RelaxedMinimum",
    "feasibility",
    "minimize_relaxation",
    "nearest_feasible",
    "order_parameter_loss",
    "order_parameters",
    "realize_order_parameters",
]


class InfeasibleError(ValueError):
    """No network in the given dimension has these order parameters."""


@dataclass(frozen=True, eq=False)
class OrderParameters:
    r"""Norms and cosines, of a network or of none.

    Only what holds for each number alone is checked; whether the numbers fit
    together is the question of :func:`feasibility`.

    Parameters
    ----------
    r : ndarray, shape (..., n)
        Norms of the student neurons, 0 or more.
    u : ndarray, shape (..., n, k)
        Cosines with the teacher neurons, in :math:`[-1, 1]`; an excess below
        1e-9 is taken for rounding and cut.
    rho : ndarray, shape (..., n, n)
        Cosines among the student neurons: symmetric, ones on the diagonal.

    Raises
    ------
    ValueError
        If shapes do not match, a number is not finite, a norm is negative or
        a cosine outside :math:`[-1, 1]`, or ``rho`` is not symmetric with
        unit diagonal.

    Examples
    --------
    >>> order = OrderParameters([1.0, 2.0], [[0.6], [0.8]], np.eye(2))
    >>> order.n, order.k
    (2, 1)
    """

    r: NDArray
    u: NDArray
    rho: NDArray

    def __post_init__(self) -> None:
        r = np.asarray(self.r, dtype=float)
        if r.ndim < 1 or r.size == 0 or not np.all((r >= 0) & (r < np.inf)):
            raise ValueError(
                "r must hold at least one norm, finite and not negative, got "
                f"{self.r!r}"
            )
        u, rho = _cosines("u", self.u), _cosines("rho", self.rho)
        n = r.shape[-1]
        if u.ndim < 2 or u.shape[:-1] != r.shape or u.shape[-1] == 0:
            raise ValueError(
                f"u must have shape {(*r.shape, 'k')} with k >= 1, got "
                f"{u.shape}"
            )
        if rho.shape != (*r.shape, n):
            raise ValueError(
                f"rho must have shape {(*r.shape, n)}, got {rho.shape}"
            )
        skew = np.abs(rho - np.swapaxes(rho, -1, -2)).max()
        diagonal = np.abs(np.diagonal(rho, axis1=-2, axis2=-1) - 1).max()
        if max(skew, diagonal) > COSINE_SLACK:
            raise ValueError(
                "rho must be symmetric with ones on the diagonal; it is off "
                f"by {max(skew, diagonal):.3g}"
            )
        for name, x in (("r", r), ("u", u), ("rho", rho)):
            object.__setattr__(self, name, x)

    @property
    def n(self) -> int:
        """Number of student neurons."""
        return self.r.shape[-1]

    @property
    def k(self) -> int:
        """Number of teacher neurons."""
        return self.u.shape[-1]

    @property
    def residual_gram(self) -> NDArray:
        r"""The matrix :math:`G = R - UU^\top`, shape (..., n, n)."""
        return self.rho - self.u @ np.swapaxes(self.u, -1, -2)


def _cosines(name: str, x: ArrayLike) -> NDArray:
    x = np.asarray(x, dtype=float)
    bad = ~(np.abs(x) <= 1 + COSINE_SLACK)
    if np.any(bad):
        raise ValueError(
            f"{name} must hold cosines in [-1, 1], got {x[bad].flat[0]!r}"
        )
    return np.clip(x, -1.0, 1.0)


def _teacher_directions(teacher: Teacher, k: int) -> tuple[NDArray, NDArray]:
    """Norms and unit vectors of an orthogonal teacher with k neurons."""
    if teacher.k != k:
        raise ValueError(
            f"teacher must have as many neurons as u has columns, {k}, got "
            f"{teacher.k}"
        )
    norms = np.linalg.norm(teacher.V, axis=1)
    if np.any(norms == 0):
        raise ValueError("teacher must not have a vanishing neuron")
    directions = teacher.V / norms[:, None]
    off = np.abs(directions @ directions.T - np.eye(k)).max()
    if off > ORTHONORMAL:
        raise ValueError(
            "teacher neurons must be pairwise orthogonal, the largest cosine "
            f"between two of them is {off:.3g}"
        )
    return norms, directions


def order_parameters(student: Student, teacher: Teacher) -> OrderParameters:
    r"""Measure the norms and cosines of a student.

    .. math:: r_i = \lVert w_i\rVert,\qquad
       u_{ij} = \frac{w_i\cdot v_j}{r_i\lVert v_j\rVert},\qquad
       \rho_{ii'} = \frac{w_i\cdot w_{i'}}{r_ir_{i'}} .

    Parameters
    ----------
    student : Student
        A network or a batch of them, ``W`` of shape (..., n, d).
    teacher : Teacher
        With pairwise orthogonal neurons in the same dimension, so that
        ``k <= d``.

    Returns
    -------
    OrderParameters

    Raises
    ------
    ValueError
        If a neuron vanishes (it has no direction), the dimensions differ, or
        the teacher is not orthogonal.

    Notes
    -----
    Source: Simsek et al. (2023), section 3.

    Examples
    --------
    >>> student = Student([[3.0, 4.0, 0.0], [0.0, 0.0, 2.0]], [1.0, 1.0])
    >>> order = order_parameters(student, Teacher.orthonormal(1, 3))
    >>> order.r.tolist(), order.u.tolist(), order.rho[0].tolist()
    ([5.0, 2.0], [[0.6], [0.0]], [1.0, 0.0])
    """
    W = student.W
    if W.shape[-1] != teacher.d:
        raise ValueError(
            f"student must live in the teacher's dimension {teacher.d}, got "
            f"{W.shape[-1]}"
        )
    _teacher_directions(teacher, teacher.k)
    r = student.norms
    if np.any(r == 0):
        raise ValueError(
            "student must not have a vanishing neuron: its cosines are "
            "undefined"
        )
    unit = W / r[..., None]
    rho = unit @ np.swapaxes(unit, -1, -2)
    n = np.arange(W.shape[-2])
    rho[..., n, n] = 1.0
    return OrderParameters(r, teacher_cosines(W, teacher.V), rho)


def order_parameter_loss(
    order: OrderParameters,
    a: ArrayLike,
    teacher: Teacher,
    activation: str | Activation = "erf",
) -> NDArray:
    r"""Compute the loss from lengths and angles alone.

    .. math::

       L &= \sum_i a_i^2\,g(r_i, r_i, 1)
       + 2\sum_{i<i'} a_ia_{i'}\,g(r_i, r_{i'}, \rho_{ii'}) \\
       &\quad - 2\sum_{i,j} a_ib_j\,g(r_i, \lVert v_j\rVert, u_{ij}) + C .

    The formula is defined for any cosines in :math:`[-1, 1]`. Where no
    network has them, it is no mean square and may be negative.

    Parameters
    ----------
    order : OrderParameters
    a : array_like, shape (..., n)
        Outgoing weights.
    teacher : Teacher
        With orthogonal neurons; only its norms and outgoing weights enter.
    activation : str or Activation, default "erf"

    Returns
    -------
    ndarray, shape (...)

    Raises
    ------
    ValueError
        If shapes do not match, ``a`` is not finite, or the teacher is not
        orthogonal.

    Notes
    -----
    :math:`n(n + k)` interactions. The cross sum runs over unordered pairs.

    Source: Simsek et al. (2023), Eq. 10.

    Examples
    --------
    >>> rho = np.full((3, 3), -0.9) + 1.9 * np.eye(3)
    >>> impossible = OrderParameters(np.ones(3), np.zeros((3, 5)), rho)
    >>> teacher = Teacher.orthonormal(5)
    >>> loss = order_parameter_loss(impossible, [2.0, 2.0, 2.0], teacher)
    >>> round(float(loss), 3)
    -1.465
    """
    a = np.asarray(a, dtype=float)
    if a.shape[-1:] != (order.n,) or not np.all(np.isfinite(a)):
        raise ValueError(
            f"a must hold {order.n} finite outgoing weights, got shape "
            f"{a.shape}"
        )
    norms, _ = _teacher_directions(teacher, order.k)
    activation = get_activation(activation)
    rows, columns = order.r[..., :, None], order.r[..., None, :]
    own = interaction(rows, columns, order.rho, activation)
    cross = interaction(rows, norms, order.u, activation)
    inner = (own @ a[..., None])[..., 0] - 2 * cross @ teacher.b
    return (a * inner).sum(axis=-1) + function_norm(teacher, activation)


@dataclass(frozen=True, eq=False)
class Feasibility:
    r"""How order parameters stand to the two constraints.

    Parameters
    ----------
    norm_slack : ndarray, shape (...)
        Smallest :math:`1 - \lVert u_i\rVert^2`, minor of order one.
    pair_slack : ndarray, shape (...)
        Smallest :math:`(1-\lVert u_i\rVert^2)(1-\lVert u_{i'}\rVert^2)
        - (\rho_{ii'} - u_i\cdot u_{i'})^2`, minor of order two; ``inf`` for
        one neuron.
    smallest_eigenvalue : ndarray, shape (...)
        Of :math:`G = R - UU^\top`.
    rank : ndarray of int, shape (...)
        Number of eigenvalues of :math:`G` above 1e-9.
    room : int
        Dimensions outside the teacher's span, :math:`d - k`.
    """

    norm_slack: NDArray
    pair_slack: NDArray
    smallest_eigenvalue: NDArray
    rank: NDArray
    room: int

    @property
    def pairwise(self) -> NDArray:
        """Whether the constraints of the paper hold, up to rounding."""
        return (self.norm_slack >= -COSINE_SLACK) & (
            self.pair_slack >= -COSINE_SLACK
        )

    @property
    def feasible(self) -> NDArray:
        """Whether some network has these order parameters."""
        return (self.smallest_eigenvalue >= -COSINE_SLACK) & (
            self.rank <= self.room
        )


def feasibility(order: OrderParameters, d: int) -> Feasibility:
    r"""Test order parameters against both sets of constraints.

    Parameters
    ----------
    order : OrderParameters
    d : int
        Input dimension, at least ``k``.

    Returns
    -------
    Feasibility

    Raises
    ------
    ValueError
        If ``d < k``: an orthogonal teacher does not fit.

    Notes
    -----
    Slacks are given as minors, without the square roots of Eq. 10, which
    have the same sign and lose half of the digits near
    :math:`\lVert u_i\rVert = 1`. :math:`O(n^2k + n^3)`.

    Source: the pairwise constraints are those of Simsek et al. (2023),
    Eq. 10; the semidefinite condition is ours.

    Examples
    --------
    >>> rho = np.full((3, 3), -0.9) + 1.9 * np.eye(3)
    >>> impossible = OrderParameters(np.ones(3), np.zeros((3, 5)), rho)
    >>> found = feasibility(impossible, 9)
    >>> bool(found.pairwise), bool(found.feasible)
    (True, False)
    >>> round(float(found.smallest_eigenvalue), 12)
    -0.8
    """
    if isinstance(d, bool) or d != int(d) or d < order.k:
        raise ValueError(
            f"d must be a whole number, at least k={order.k}, got {d!r}"
        )
    G = order.residual_gram
    diagonal = np.diagonal(G, axis1=-2, axis2=-1)
    minors = diagonal[..., :, None] * diagonal[..., None, :] - G**2
    above = np.triu_indices(order.n, 1)
    values = np.linalg.eigvalsh(G)
    return Feasibility(
        norm_slack=diagonal.min(axis=-1),
        pair_slack=minors[..., *above].min(axis=-1, initial=np.inf),
        smallest_eigenvalue=values[..., 0],
        rank=(values > COSINE_SLACK).sum(axis=-1),
        room=int(d) - order.k,
    )


def realize_order_parameters(
    order: OrderParameters, teacher: Teacher
) -> NDArray:
    r"""Build weights with given norms and cosines.

    .. math:: \hat w_i = \sum_j u_{ij}\hat v_j + \sum_m E_{im}q_m,
       \qquad EE^\top = R - UU^\top,

    with an orthonormal basis :math:`q_1,\dots,q_{d-k}` of what is orthogonal
    to the teacher.

    Parameters
    ----------
    order : OrderParameters
        Of one network, not a batch.
    teacher : Teacher
        With pairwise orthogonal neurons; it sets the dimension.

    Returns
    -------
    ndarray, shape (n, d)
        Incoming weights. They are one choice of many: a rotation outside
        the teacher's span changes no order parameter.

    Raises
    ------
    InfeasibleError
        If no network has these order parameters; says which condition fails.
    ValueError
        If the teacher does not fit, or for a batch.

    Notes
    -----
    Eigenvalues of :math:`G` within 1e-9 of zero are cut, which changes the
    cosines by as much. A neuron with ``r = 0`` gets the zero vector.

    Source: ours.

    Examples
    --------
    >>> order = OrderParameters([2.0], [[0.6]], [[1.0]])
    >>> W = realize_order_parameters(order, Teacher.orthonormal(1, 2))
    >>> np.abs(W).round(12).tolist()
    [[1.2, 1.6]]
    """
    if order.r.ndim != 1:
        raise ValueError(
            f"order must be that of one network, got r of shape "
            f"{order.r.shape}"
        )
    _, directions = _teacher_directions(teacher, order.k)
    found = feasibility(order, teacher.d)
    if found.smallest_eigenvalue < -COSINE_SLACK:
        raise InfeasibleError(
            "no network has these order parameters: R - UU^T has the "
            f"eigenvalue {float(found.smallest_eigenvalue):.6g}, none may be "
            "negative"
        )
    if found.rank > found.room:
        raise InfeasibleError(
            f"these order parameters need {int(found.rank)} dimensions "
            f"outside the teacher's span, d={teacher.d} leaves {found.room}"
        )
    values, vectors = np.linalg.eigh(order.residual_gram)
    kept = min(order.n, found.room)
    factor = (vectors * np.sqrt(np.clip(values, 0, None)))[:, ::-1][:, :kept]
    basis = np.linalg.svd(directions).Vh[order.k :]
    unit = order.u @ directions + factor @ basis[:kept]
    return order.r[:, None] * unit


def nearest_feasible(order: OrderParameters) -> OrderParameters:
    r"""Project order parameters onto the feasible set of a large dimension.

    Order parameters are feasible for :math:`d \ge k + n` exactly when the
    Gram matrix of all unit vectors, with blocks :math:`I`, :math:`U` and
    :math:`R`, is positive semidefinite. The projection is the nearest such
    matrix in the Frobenius norm.

    Parameters
    ----------
    order : OrderParameters
        Of one network, not a batch.

    Returns
    -------
    OrderParameters
        The norms are kept.

    Raises
    ------
    ValueError
        For a batch.

    Notes
    -----
    L-BFGS on the dual, whose unknowns are multipliers of the fixed entries:
    with :math:`X(Y)` the semidefinite part of the given matrix plus
    :math:`Y`, minimise :math:`\frac12\lVert X(Y)\rVert^2` less the inner
    product of :math:`Y` and the fixed entries. One eigendecomposition,
    :math:`O((n+k)^3)`, a step; the answer is good to about seven digits. At
    the end a congruence makes the blocks exact and keeps the matrix
    semidefinite. The rank condition of a small dimension is not convex and
    is not imposed.

    Source: ours, after the dual method of Qi and Sun (2006) for the nearest
    correlation matrix.

    Examples
    --------
    >>> rho = np.full((3, 3), -0.9) + 1.9 * np.eye(3)
    >>> impossible = OrderParameters(np.ones(3), np.zeros((3, 2)), rho)
    >>> nearest_feasible(impossible).rho[0].round(6).tolist()
    [1.0, -0.5, -0.5]
    """
    if order.r.ndim != 1:
        raise ValueError(
            f"order must be that of one network, got r of shape "
            f"{order.r.shape}"
        )
    k, n = order.k, order.n
    gram = np.block([[np.eye(k), order.u.T], [order.u, order.rho]])
    np.fill_diagonal(gram, 1.0)
    if np.linalg.eigvalsh(gram)[0] >= -ROUNDING:
        return order
    fixed = np.eye(k + n, dtype=bool)
    fixed[:k, :k] = True

    def dual(y: NDArray) -> tuple[float, NDArray]:
        part = _semidefinite_part(_plus(gram, fixed, y))
        value = (part**2).sum() / 2 - (y * gram[fixed]).sum()
        return float(value), part[fixed] - gram[fixed]

    y = minimize(
        dual,
        np.zeros(fixed.sum()),
        jac=True,
        method="L-BFGS-B",
        options={"gtol": ROUNDING, "ftol": 0, "maxiter": 2000},
    ).x
    cone = _semidefinite_part(_plus(gram, fixed, y))
    values, vectors = np.linalg.eigh(cone[:k, :k])
    whiten = (vectors / np.sqrt(values)) @ vectors.T
    size = np.sqrt(np.diagonal(cone)[k:])
    rho = cone[k:, k:] / np.outer(size, size)
    rho = (rho + rho.T) / 2
    rho[np.arange(n), np.arange(n)] = 1.0
    u = cone[k:, :k] @ whiten / size[:, None]
    return OrderParameters(order.r, u, rho)


def _semidefinite_part(matrix: NDArray) -> NDArray:
    values, vectors = np.linalg.eigh(matrix)
    return (vectors * np.clip(values, 0, None)) @ vectors.T


def _plus(matrix: NDArray, where: NDArray, y: NDArray) -> NDArray:
    matrix = matrix.copy()
    matrix[where] += y
    return matrix


@dataclass(frozen=True, eq=False)
class RelaxedMinimum:
    """The lowest point that a search of the relaxed problem found.

    Parameters
    ----------
    order : OrderParameters
    a : ndarray, shape (n,)
    loss : float
    """

    order: OrderParameters
    a: NDArray
    loss: float


class _Relaxation:
    r"""The pairwise-constrained problem in free coordinates.

    A neuron is a norm and a unit vector :math:`(u_i, h_i)`, given by any
    multiple of it; a pair is a number :math:`s_{ii'}\in[-1,1]`, with
    :math:`\rho_{ii'} = u_i\cdot u_{i'} + s_{ii'}h_ih_{i'}`.
    """

    def __init__(self, teacher: Teacher, n: int, activation: Activation):
        self.norms, _ = _teacher_directions(teacher, teacher.k)
        self.teacher, self.n, self.activation = teacher, n, activation
        self.above = np.triu_indices(n, 1)

    def split(self, theta: NDArray):
        n, k = self.n, self.teacher.k
        a, r, z, s = np.split(theta, [n, 2 * n, 2 * n + n * (k + 1)])
        S = np.eye(n)
        S[self.above] = s
        S.T[self.above] = s
        return a, r, z.reshape(n, k + 1), S

    def order(self, theta: NDArray) -> OrderParameters:
        _, r, z, S = self.split(theta)
        unit = z / np.linalg.norm(z, axis=1, keepdims=True)
        u, h = unit[:, :-1], unit[:, -1]
        rho = u @ u.T + S * np.outer(h, h)
        rho[np.arange(self.n), np.arange(self.n)] = 1.0
        return OrderParameters(r, u, rho)

    def loss_and_gradient(self, theta: NDArray) -> tuple[float, NDArray]:
        a, r, z, S = self.split(theta)
        order, b = self.order(theta), self.teacher.b
        loss = float(
            order_parameter_loss(order, a, self.teacher, self.activation)
        )
        pair = (r[:, None], r[None, :], order.rho, self.activation)
        cross = (r[:, None], self.norms, order.u, self.activation)
        grad_a = 2 * (interaction(*pair) @ a - interaction(*cross) @ b)
        own_r, _, own_rho = interaction_grad(*pair)
        cross_r, _, cross_u = interaction_grad(*cross)
        grad_r = 2 * a * (own_r @ a - cross_r @ b)
        P = 2 * np.outer(a, a) * own_rho * (1 - np.eye(self.n))
        size = np.linalg.norm(z, axis=1, keepdims=True)
        h = z[:, -1] / size[:, 0]
        grad_u = P @ order.u - 2 * np.outer(a, b) * cross_u
        grad_unit = np.column_stack([grad_u, (P * S) @ h])
        unit = z / size
        along = (grad_unit * unit).sum(axis=1, keepdims=True)
        grad_z = (grad_unit - along * unit) / size
        grad_s = (P * np.outer(h, h))[self.above]
        return loss, np.concatenate([grad_a, grad_r, grad_z.ravel(), grad_s])


def minimize_relaxation(
    teacher: Teacher,
    n: int,
    activation: str | Activation = "erf",
    *,
    rng: Seed,
    starts: int = 8,
    largest: float = 10.0,
) -> RelaxedMinimum:
    r"""Search the minimum over order parameters with pairwise constraints.

    Parameters
    ----------
    teacher : Teacher
        With pairwise orthogonal neurons.
    n : int
        Number of student neurons, 1 or more.
    activation : str or Activation, default "erf"
    rng : numpy.random.Generator or int
        Generator, or seed, of the starts.
    starts : int, default 8
        Number of starts, 1 or more.
    largest : float, default 10.0
        Bound on norms and on the absolute outgoing weights, without which
        the problem has no minimum for three neurons or more.

    Returns
    -------
    RelaxedMinimum
        The best end point. For ``n >= 3`` it need not belong to a network.

    Raises
    ------
    ValueError
        If a number is out of range or the teacher is not orthogonal.

    Notes
    -----
    L-BFGS-B in coordinates that satisfy the constraints by construction,
    with the exact gradient.

    Source: Simsek et al. (2023), Eq. 10, as printed; the coordinates are
    ours.

    Examples
    --------
    >>> found = minimize_relaxation(Teacher.orthonormal(2), 1, rng=0)
    >>> round(found.loss, 6)
    0.023222
    """
    activation, rng = get_activation(activation), as_generator(rng)
    if n < 1 or starts < 1 or not 0 < largest < np.inf:
        raise ValueError(
            "n and starts must be >= 1 and largest positive and finite, got "
            f"n={n}, starts={starts}, largest={largest}"
        )
    problem, k = _Relaxation(teacher, n, activation), teacher.k
    pairs = n * (n - 1) // 2
    bounds = [(-largest, largest)] * n + [(0.0, largest)] * n
    bounds += [(None, None)] * (n * (k + 1)) + [(-1.0, 1.0)] * pairs
    ends = []
    for _ in range(starts):
        start = np.concatenate(
            [
                rng.uniform(-1, 1, n) * min(1.0, largest),
                rng.uniform(0.2, 1, n) * min(1.0, largest),
                rng.standard_normal(n * (k + 1)),
                rng.uniform(-1, 1, pairs),
            ]
        )
        ends.append(
            minimize(
                problem.loss_and_gradient,
                start,
                jac=True,
                method="L-BFGS-B",
                bounds=bounds,
                options={
                    "gtol": QUASI_NEWTON_GRADIENT,
                    "ftol": 0,
                    "maxiter": 2000,
                },
            )
        )
    best = min(ends, key=lambda end: end.fun)
    a = problem.split(best.x)[0]
    return RelaxedMinimum(problem.order(best.x), a, float(best.fun))
