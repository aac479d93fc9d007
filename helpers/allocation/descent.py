r"""Gradient descent: learning rates as an allocation, and how it ends.

For labels that are affine in the weights gradient descent with one rate for
each weight is solved in closed form. For quadratic systems this module has
gradient descent in its usual variants, side by side over problems, and what
is needed to say what they miss: all real solutions of small systems, a
certificate that a solution exists near a point, and conditioning.
"""

from __future__ import annotations

import numpy as np
from scipy.optimize import minimize

from helpers.allocation.homotopy import total_degree_homotopy
from helpers.allocation.levenberg import solve_quadratics
from helpers.allocation.quadrics import Quadrics
from helpers.core.checks import check_finite, check_sizes, positive_number
from helpers.core.linalg import orthonormal_basis
from helpers.core.randomness import Seed, as_generator
from helpers.core.tolerances import (
    ADAM_DENOMINATOR,
    FINITE_SHARE,
    LARGEST_NORM,
    MATCHED_RELATIVE,
    NEAR_MATCH,
    NEAR_REAL,
    QUASI_NEWTON_FLAT,
    ROUNDING,
    SAME_SOLUTION,
    SOLVED_RELATIVE,
    STALLED_RATE,
)

RULES = ("gradient", "stochastic", "momentum", "adam", "searched")
MOMENTUM = 0.9
MOMENTS = (0.9, 0.999)
"""Decay of Adam's two moments, the values of the paper that introduced it."""
ARMIJO = 0.25
"""Share of the predicted decrease that a searched step must bring."""
FURTHEST = 2**62
"""Steps beyond which a time counts as infinite."""


def _affine(M, target, lr):
    M, target, lr = check_finite(M=M, target=target, lr=lr)
    if M.ndim != 2 or target.shape != M.shape[:1] or lr.shape != M.shape[1:]:
        raise ValueError(
            "M must be (c, P), target (c,) and lr (P,), got "
            f"{M.shape}, {target.shape} and {lr.shape}"
        )
    if not (lr >= 0).all():
        raise ValueError("lr must not be negative")
    if not target.any():
        raise ValueError("target must not be zero")
    g, V = np.linalg.eigh((M * lr) @ M.T)
    if g[-1] >= 2:
        raise ValueError(
            "lr is too large: the largest eigenvalue of M diag(lr) M' must "
            f"be below 2, got {g[-1]:.3g}"
        )
    share = (V.T @ target) ** 2 / (target @ target)
    return np.maximum(g, 0), share


def _left(g, share, steps):
    return np.sqrt(((1 - g) ** (2.0 * steps[..., None]) * share).sum(axis=-1))


def two_timescale_gd(M, target, lr, steps) -> np.ndarray:
    r"""Residual of gradient descent on :math:`\frac12\|Mw-t\|^2`, exactly.

    From :math:`w=0`, with a rate for each weight,
    :math:`e_s=(I-M\,\mathrm{diag}(\eta)M^\top)^se_0`: powers of numbers, in
    the eigenvectors of a symmetric matrix.

    Parameters
    ----------
    M : array_like (c, P)
    target : array_like (c,)
        Not zero; residuals are relative to its norm.
    lr : array_like (P,)
        Rates, not negative, small enough for descent to converge.
    steps : array_like of numbers >= 0

    Returns
    -------
    numpy.ndarray, the shape of ``steps``

    Raises
    ------
    ValueError
        If shapes do not fit, the target is zero, a rate or a step negative,
        or the largest eigenvalue is 2 or more.

    Notes
    -----
    Cost :math:`O(c^2P+c^3)`, whatever the steps. Eigenvalues that rounding
    makes negative count as zero. Source: ours (R6 of the reconstruction).

    Examples
    --------
    Two equations, two weights, rates 1/2 and 0: half of the square stays.

    >>> two_timescale_gd(np.eye(2), [1.0, 1.0], [0.5, 0.0], [0, 1, 99]).round(4)
    array([1.    , 0.7906, 0.7071])
    """
    (steps,) = check_finite(steps=steps)
    if (steps < 0).any():
        raise ValueError("steps must not be negative")
    return _left(*_affine(M, target, lr), steps)


def steps_to(M, target, lr, level: float) -> float:
    """First step at which the relative residual is at most ``level``.

    Parameters
    ----------
    M, target, lr
        As :func:`two_timescale_gd`.
    level : float
        In (0, 1).

    Returns
    -------
    float
        A whole number, or infinity if the level is not reached within
        ``FURTHEST`` steps.

    Raises
    ------
    ValueError
        As :func:`two_timescale_gd`, or if ``level`` is out of range.

    Notes
    -----
    The residual never grows, so bisection finds the step exactly, up to
    rounding. Source: ours.

    Examples
    --------
    >>> steps_to([[1.0]], [1.0], [0.5], 0.1)
    4.0
    >>> steps_to(np.eye(2), [1.0, 1.0], [0.5, 0.0], 0.1)
    inf
    """
    g, share = _affine(M, target, lr)
    if not 0 < level < 1:
        raise ValueError(f"level must lie in (0, 1), got {level}")

    def there(step):
        return bool(_left(g, share, np.asarray(float(step))) <= level)

    high = 1
    while not there(high):
        high *= 2
        if high > FURTHEST:
            return float("inf")
    low = high // 2  # not there, or 0
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if there(middle) else (middle, high)
    return float(high)


def fast_only_residual(M, target, fast) -> float:
    """Relative residual that is left if only some weights learn, for ever.

    Parameters
    ----------
    M : array_like (c, P)
    target : array_like (c,)
    fast : array_like of bool (P,)
        The weights that learn.

    Returns
    -------
    float
        The plateau: distance of the target from the span of their columns.

    Raises
    ------
    ValueError
        If shapes do not fit or the target is zero.

    Notes
    -----
    Source: ours (R6 of the reconstruction).

    Examples
    --------
    >>> fast_only_residual(np.eye(2), [3.0, 4.0], [True, False])
    0.8
    """
    M, target, fast = _two_groups(M, target, fast)
    left = _complement(M[:, fast]).T @ target
    return float(np.linalg.norm(left) / np.linalg.norm(target))


def _two_groups(M, target, fast):
    M, target = check_finite(M=M, target=target)
    fast = np.asarray(fast)
    if M.ndim != 2 or target.shape != M.shape[:1]:
        raise ValueError(
            f"M must be (c, P) and target (c,), got {M.shape} and "
            f"{target.shape}"
        )
    if fast.dtype != bool or fast.shape != M.shape[1:]:
        raise ValueError(f"fast must be {M.shape[1]} truth values")
    if not target.any():
        raise ValueError("target must not be zero")
    return M, target, fast


def _complement(columns) -> np.ndarray:
    """Orthonormal basis of what the columns do not reach."""
    c = columns.shape[0]
    if not columns.size or not columns.any():
        return np.eye(c)
    used = orthonormal_basis(columns)
    full, _ = np.linalg.qr(np.column_stack([used, np.eye(c)]))
    return full[:, used.shape[1] : c]


def slow_time(M, target, fast, rate: float, level: float) -> float:
    r"""Limit of :math:`\varepsilon` times the steps that descent needs.

    Rates are ``rate`` for the fast weights and :math:`\varepsilon` times
    ``rate`` for the others. With :math:`N` an orthonormal basis of what the
    fast columns do not reach and :math:`E = \mathrm{rate}\cdot
    N^\top M_sM_s^\top N`, the limit :math:`\tau` solves
    :math:`\|e^{-\tau E}N^\top t\| = \mathrm{level}\cdot\|t\|`.

    Parameters
    ----------
    M, target, fast
        As :func:`fast_only_residual`.
    rate : float
        Positive.
    level : float
        In (0, 1).

    Returns
    -------
    float
        Zero if the fast weights alone reach the level, infinity if all
        weights together do not.

    Raises
    ------
    ValueError
        If an argument does not fit.

    Notes
    -----
    Source: ours (R6 of the reconstruction).

    Examples
    --------
    One slow equation: log(0.8 / 0.4).

    >>> slow_time(np.eye(2), [3.0, 4.0], [True, False], 1.0, 0.4)
    0.693147...
    """
    M, target, fast = _two_groups(M, target, fast)
    positive_number(rate, "rate")
    if not 0 < level < 1:
        raise ValueError(f"level must lie in (0, 1), got {level}")
    N = _complement(M[:, fast])
    slow = N.T @ M[:, ~fast]
    if not N.shape[1]:
        return 0.0
    E, V = np.linalg.eigh(rate * slow @ slow.T)
    largest = rate * np.linalg.norm(M[:, ~fast]) ** 2
    E = np.where(E > ROUNDING * largest, E, 0.0)  # out of reach of all weights
    share = (V.T @ (N.T @ target)) ** 2 / (target @ target)

    def there(time):
        return (np.exp(-2 * time * E) * share).sum() <= level**2

    if there(0.0):
        return 0.0
    high = 1.0
    while not there(high):
        high *= 2
        if high > FURTHEST:
            return float("inf")
    low = 0.0
    for _ in range(100):
        middle = (low + high) / 2
        low, high = (low, middle) if there(middle) else (middle, high)
    return float(high)


def quadratic_system(quadrics: Quadrics):
    """The system as residual and Jacobian of a batch, for the loops here.

    Parameters
    ----------
    quadrics : Quadrics
        ``Q (K, c, p, p)``.

    Returns
    -------
    callable
        ``f(w (k, p), which (k,))`` returns ``r (k, c)`` and ``J (k, c, p)``.

    Raises
    ------
    ValueError
        If an entry is not finite or a form is not symmetric.

    Notes
    -----
    Source: ours.

    Examples
    --------
    >>> f = quadratic_system(Quadrics(np.ones((1, 1, 1, 1)),
    ...                               np.zeros((1, 1, 1)), -np.ones((1, 1))))
    >>> [a.tolist() for a in f(np.array([[3.0]]), np.array([0]))]
    [[[8.0]], [[[6.0]]]]
    """
    Q, linear, constant = check_finite(
        Q=quadrics.Q, linear=quadrics.linear, constant=quadrics.constant
    )
    K, c, p = linear.shape
    if not np.array_equal(Q, np.swapaxes(Q, -1, -2)):
        raise ValueError("Q must be symmetric in its last two axes")
    flat = Q.reshape(K, c * p, p)

    def residual_jac(w, which):
        half = (flat[which] @ w[:, :, None]).reshape(-1, c, p)
        slope = linear[which]
        r = ((half + slope) @ w[:, :, None])[..., 0] + constant[which]
        return r, 2 * half + slope

    return residual_jac


def descend(
    residual_jac,
    w0,
    size,
    rule: str,
    rate: float,
    steps: int,
    rng: Seed = 0,
    examples: int = 1,
    tol: float = MATCHED_RELATIVE,
):
    r"""First-order descent on :math:`\frac12\|r(w)\|^2/\text{size}^2`.

    Parameters
    ----------
    residual_jac : callable
        ``residual_jac(w (k, p), which (k,))`` returns ``r (k, c)`` and
        ``J (k, c, p)`` of the problems ``which``.
    w0 : array_like (K, p)
    size : array_like (K,)
        Norm of the labels; positive.
    rule : {"gradient", "stochastic", "momentum", "adam", "searched"}
        Plain; one random example a step; heavy ball with 0.9; Adam; plain
        with the rate found by halving and doubling at every step.
    rate : float
        Positive; only where the search begins for "searched".
    steps : int
        Gradients, at most, each of the whole batch or of one example; for
        "searched" tries.
    rng : seed or Generator
        Of the examples.
    examples : int
        Equation ``a * examples + e`` belongs to example ``e``.
    tol : float
        Relative residual that is enough.

    Returns
    -------
    w : numpy.ndarray (K, p)
    residual : numpy.ndarray (K,)
        Relative, at the end; infinite where descent diverged.

    Raises
    ------
    ValueError
        If an argument does not fit.

    Notes
    -----
    A searched rate that has fallen by a factor ``STALLED_RATE`` ends its
    start. Source: ours.

    Examples
    --------
    >>> def square(w, which):
    ...     return w**2 - 4, 2 * w[:, :, None]
    >>> w, residual = descend(square, [[1.0]], [4.0], "gradient", 0.5, 200)
    >>> w.ravel().round(6)
    array([2.])
    """
    if rule not in RULES:
        raise ValueError(f"rule must be one of {RULES}, got {rule!r}")
    w, size = (a.copy() for a in check_finite(w0=w0, size=size))
    if w.ndim != 2 or size.shape != w.shape[:1] or not (size > 0).all():
        raise ValueError(
            "w0 must be (K, p) and size (K,) with positive entries, got "
            f"{w.shape} and {size.shape}"
        )
    positive_number(rate, "rate")
    check_sizes(steps=steps, examples=examples)
    loop = _searched if rule == "searched" else _ruled
    with np.errstate(over="ignore", invalid="ignore"):
        residual = loop(
            residual_jac, w, size, rule, rate, steps,
            as_generator(rng), examples, tol,
        )  # fmt: skip
    return w, residual


def _ruled(residual_jac, w, size, rule, rate, steps, rng, examples, tol):
    which = np.arange(len(w))
    residual = np.full(len(w), np.inf)
    first, second = np.zeros_like(w), np.zeros_like(w)
    a, b = MOMENTS
    for t in range(1, steps + 2):
        r, J = residual_jac(w[which], which)
        relative = np.sqrt((r**2).sum(axis=1)) / size[which]
        residual[which] = np.where(np.isfinite(relative), relative, np.inf)
        going = (relative >= tol) & (relative < LARGEST_NORM)
        if t > steps or not going.any():
            break
        if not going.all():
            which, r, J = which[going], r[going], J[going]
            first, second = first[going], second[going]
        if rule == "stochastic":
            r = r.reshape(len(r), -1, examples)
            pick = rng.integers(examples, size=len(r))
            r = r * (np.arange(examples) == pick[:, None])[:, None] * examples
            r = r.reshape(len(r), -1)
        g = (r[:, None, :] @ J)[:, 0] / size[which, None] ** 2
        if rule == "adam":
            first = a * first + (1 - a) * g
            second = b * second + (1 - b) * g**2
            scale = np.sqrt(second / (1 - b**t)) + ADAM_DENOMINATOR
            g = first / (1 - a**t) / scale
        elif rule == "momentum":
            first = MOMENTUM * first + g
            g = first
        w[which] -= rate * g
    residual[residual > LARGEST_NORM] = np.inf
    return residual


def _searched(residual_jac, w, size, rule, rate, steps, rng, examples, tol):
    everyone = np.arange(len(w))
    r, J = residual_jac(w, everyone)
    f = (r**2).sum(axis=1) / size**2 / 2
    g = (r[:, None, :] @ J)[:, 0] / size[:, None] ** 2
    pace = np.full(len(w), float(rate))
    for _ in range(steps):
        which = np.flatnonzero(
            (np.sqrt(2 * f) >= tol) & (pace > rate * STALLED_RATE)
        )
        if not which.size:
            break
        trial = w[which] - pace[which, None] * g[which]
        r, J = residual_jac(trial, which)
        now = (r**2).sum(axis=1) / size[which] ** 2 / 2
        wanted = f[which] - ARMIJO * pace[which] * (g[which] ** 2).sum(axis=1)
        good = now <= wanted
        won = which[good]
        w[won], f[won] = trial[good], now[good]
        g[won] = (r[good][:, None, :] @ J[good])[:, 0] / size[won, None] ** 2
        pace[won] *= 2
        pace[which[~good]] /= 2
    return np.sqrt(2 * f)


def bfgs(residual_jac, w0, size, most: int = 1000):
    """BFGS from SciPy on the same loss, start by start.

    Parameters
    ----------
    residual_jac, w0, size
        As :func:`descend`.
    most : int
        Iterations.

    Returns
    -------
    w : numpy.ndarray (K, p)
    residual : numpy.ndarray (K,)
        Relative.

    Raises
    ------
    ValueError
        If shapes do not fit.

    Notes
    -----
    Source: ours; the method is SciPy's.

    Examples
    --------
    >>> def square(w, which):
    ...     return w**2 - 4, 2 * w[:, :, None]
    >>> w, residual = bfgs(square, [[1.0]], [4.0])
    >>> bool(residual[0] < 1e-8)
    True
    """
    w0, size = check_finite(w0=w0, size=size)
    if w0.ndim != 2 or size.shape != w0.shape[:1] or not (size > 0).all():
        raise ValueError(
            "w0 must be (K, p) and size (K,) with positive entries, got "
            f"{w0.shape} and {size.shape}"
        )
    check_sizes(most=most)
    ends, residual = np.empty_like(w0), np.empty(len(w0))
    for i, start in enumerate(w0):
        which = np.array([i])

        def loss(w, which=which, i=i):
            r, J = residual_jac(w[None], which)
            return (r**2).sum() / size[i] ** 2 / 2, (r @ J[0])[0] / size[
                i
            ] ** 2

        with np.errstate(all="ignore"):
            done = minimize(
                loss, start, jac=True, method="BFGS",
                options={"gtol": QUASI_NEWTON_FLAT, "maxiter": most},
            )  # fmt: skip
        ends[i], residual[i] = done.x, np.sqrt(2 * done.fun)
    return ends, residual


def real_solutions(quadrics: Quadrics, rng: Seed) -> list[np.ndarray]:
    """All real solutions of small systems, each confirmed on its own.

    Paths of the homotopy that end near a real point give starts; what counts
    is where Levenberg-Marquardt goes from there with residual zero.

    Parameters
    ----------
    quadrics : Quadrics
        As many equations as unknowns, at most 10.
    rng : seed or Generator
        Of the paths.

    Returns
    -------
    list of numpy.ndarray (solutions, p)
        One entry a system; may be empty.

    Raises
    ------
    ValueError
        As :func:`~helpers.allocation.homotopy.total_degree_homotopy`.

    Notes
    -----
    About one path in a hundred is lost, so a solution may be missing; none
    is invented. Source: ours.

    Examples
    --------
    x^2 = 4 and x^2 = -4:

    >>> two = Quadrics(np.ones((2, 1, 1, 1)), np.zeros((2, 1, 1)),
    ...                np.array([[-4.0], [4.0]]))
    >>> [np.sort(w.ravel()).round(9).tolist() for w in real_solutions(two, 0)]
    [[-2.0, 2.0], []]
    """
    z, failed = total_degree_homotopy(quadrics.homogeneous(), rng)
    found = []
    for i, (ends, lost) in enumerate(zip(z, failed, strict=True)):
        ends = ends[(np.abs(ends[:, 0]) > FINITE_SHARE) & ~lost]
        w = ends[:, 1:] / ends[:, :1]
        reach = 1 + np.abs(w).max(axis=1, initial=0)
        w = w[np.abs(w.imag).max(axis=1, initial=0) < NEAR_REAL * reach].real
        if not len(w):
            found.append(w)
            continue
        one = (part[i : i + 1] for part in quadrics)
        done = solve_quadratics(*one, w[None])
        found.append(_distinct(done.w[0][done.residual[0] < MATCHED_RELATIVE]))
    return found


def _distinct(points) -> np.ndarray:
    kept = []
    for w in points:
        reach = 1 + np.abs(w).max()
        if all(np.abs(w - v).max() > SAME_SOLUTION * reach for v in kept):
            kept.append(w)
    return np.array(kept).reshape(-1, points.shape[1])


def local_rates(quadrics: Quadrics, w, steps: int = 3000):
    r"""How fast descent shrinks an error near a match, seen and predicted.

    From :math:`w` displaced a little along the last right singular vector of
    the Jacobian, plain descent with rate :math:`1/\sigma_1^2`.

    Parameters
    ----------
    quadrics : Quadrics
        One square system each for the rows of ``w``.
    w : array_like (K, p)
        Matches.
    steps : int

    Returns
    -------
    seen : numpy.ndarray (K,)
        Mean logarithm of the factor by which a step multiplies the residual.
    predicted : numpy.ndarray (K, p)
        :math:`\ln(1-\sigma_i^2/\sigma_1^2)`, minus infinity first, for each
        singular value; the last is that of the displacement.

    Raises
    ------
    ValueError
        If shapes do not fit.

    Notes
    -----
    At most as many steps as shrink the residual by about :math:`e^{-1}`.
    Source: ours (R5 of the reconstruction).

    Examples
    --------
    w_1 = 0 and w_2 / 2 = 0: a quarter of the square stays to be lost.

    >>> two = Quadrics(np.zeros((1, 2, 2, 2)), np.diag([1, 0.5])[None],
    ...                np.zeros((1, 2)))
    >>> seen, predicted = local_rates(two, [[0.0, 0.0]])
    >>> seen.round(6), predicted[:, -1].round(6)
    (array([-0.287682]), array([-0.287682]))
    """
    (w,) = check_finite(w=w)
    K, c, p = quadrics.linear.shape
    if c != p or w.shape != (K, p):
        raise ValueError(
            f"w must be ({K}, {p}) and the system square, got {w.shape} and "
            f"{c} equations in {p} unknowns"
        )
    check_sizes(steps=steps)
    f = quadratic_system(quadrics)
    _, J = f(w, np.arange(K))
    _, s, V = np.linalg.svd(J)
    with np.errstate(divide="ignore"):
        predicted = np.log1p(-((s / s[:, :1]) ** 2))
    seen = np.empty(K)
    for i in range(K):
        which = np.array([i])
        most = int(min(steps, max(1, -1 / predicted[i, -1])))
        reach = NEAR_MATCH * (1 + np.abs(w[i]).max())
        start = w[i : i + 1] + reach * V[i, -1]
        size = np.linalg.norm(f(start, which)[0])

        def alone(v, rows, which=which):
            return f(v, which[rows])

        rate = size**2 / s[i, 0] ** 2
        _, left = descend(
            alone, start, [size], "gradient", rate, most, tol=ROUNDING
        )
        seen[i] = np.log(left[0]) / most
    return seen, predicted


def certified(quadrics: Quadrics, w) -> np.ndarray:
    r"""Whether Kantorovich's theorem proves a real solution near ``w``.

    With :math:`\beta=\|J^{-1}\|`, :math:`\eta=\|J^{-1}r\|` and
    :math:`L=2\,(\sum_i\|Q_i\|_F^2)^{1/2}`, a Lipschitz constant of ``J``,
    there is one within :math:`2\eta` if :math:`\beta L\eta\le\frac12`.

    Parameters
    ----------
    quadrics : Quadrics
        As many equations as unknowns.
    w : array_like (K, p)

    Returns
    -------
    numpy.ndarray of bool (K,)
        False proves nothing.

    Raises
    ------
    ValueError
        If shapes do not fit.

    Notes
    -----
    A proof up to rounding. Source: Kantorovich (1948).

    Examples
    --------
    x^2 = 2 near 1.4, and x^2 = -2, which has none:

    >>> two = Quadrics(np.ones((2, 1, 1, 1)), np.zeros((2, 1, 1)),
    ...                np.array([[-2.0], [2.0]]))
    >>> certified(two, [[1.4], [1.4]]).tolist()
    [True, False]
    """
    (w,) = check_finite(w=w)
    K, c, p = quadrics.linear.shape
    if c != p or w.shape != (K, p):
        raise ValueError(
            f"w must be ({K}, {p}) and the system square, got {w.shape} and "
            f"{c} equations in {p} unknowns"
        )
    r, J = quadratic_system(quadrics)(w, np.arange(K))
    inverse = np.linalg.pinv(J)
    beta = np.linalg.norm(inverse, 2, axis=(1, 2))
    eta = np.linalg.norm((inverse @ r[:, :, None])[..., 0], axis=1)
    bend = 2 * np.sqrt((quadrics.Q**2).sum(axis=(1, 2, 3)))
    regular = np.linalg.cond(J) * SOLVED_RELATIVE < 1
    return regular & (beta * bend * eta <= 0.5)
