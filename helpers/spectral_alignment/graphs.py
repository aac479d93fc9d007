"""Graphs on samples and their Laplacians.

Rows of ``X`` are samples, shape ``(n, d)``; the paper's ``X`` is the
transpose. Weights are symmetric and nonnegative with a zero diagonal. Sparse
graphs stay sparse: the neighbourhood graphs are ``scipy.sparse.csr_array``,
and everything below takes either storage.

Decided on purpose: equal samples are different nodes, joined like any other
near pair (weight 1); ties between neighbours go to the smaller index, so that
a graph does not depend on the machine; a node without edges is a component of
its own for ``L`` and an error for ``L_sym``, which would divide by its degree.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy import sparse
from scipy.sparse.csgraph import connected_components
from scipy.spatial.distance import pdist, squareform

from helpers.core.tolerances import SYMMETRY

KINDS = ("combinatorial", "symmetric")
MODES = ("union", "mutual")
WEIGHTS = ("binary", "gaussian")

Matrix = np.ndarray | sparse.csr_array


def _choice(value: str, allowed: tuple[str, ...], name: str) -> None:
    if value not in allowed:
        raise ValueError(f"{name} must be one of {allowed}, got {value!r}")


def _samples(X) -> np.ndarray:
    X = np.asarray(X, dtype=float)
    if X.ndim != 2 or min(X.shape) == 0:
        raise ValueError(
            f"X must hold one sample a row, shape (n, d), got {X.shape}"
        )
    if X.shape[0] < 2:
        raise ValueError("X must hold at least two samples, got one")
    if not np.isfinite(X).all():
        raise ValueError("X must be finite, it holds NaN or infinity")
    return np.ascontiguousarray(X)


def _positive(value: float, name: str) -> float:
    if not (np.isfinite(value) and value > 0):
        raise ValueError(f"{name} must be finite and > 0, got {value}")
    return float(value)


def check_weights(W) -> Matrix:
    """Return a weight matrix in float64, or say what is wrong with it.

    Parameters
    ----------
    W : array_like or sparse array, shape (n, n)

    Returns
    -------
    ndarray or csr_array, shape (n, n)
        The storage of ``W``, without explicit zeros.

    Raises
    ------
    ValueError
        If ``W`` is empty, not square, not finite, negative somewhere, not
        symmetric (to a relative 1e-10), or has a nonzero diagonal.

    Notes
    -----
    Source: the spectral-alignment paper, section 1 (its assumptions on the
    weights; positive degrees are asked for where they are needed).

    Examples
    --------
    >>> check_weights([[0, 1], [1, 0]]).dtype
    dtype('float64')
    """
    if sparse.issparse(W):
        W = sparse.csr_array(W, dtype=float)
        W.eliminate_zeros()
        entries = W.data
    else:
        W = np.asarray(W, dtype=float)
        entries = W.ravel()
    if W.ndim != 2 or W.shape[0] != W.shape[1] or W.shape[0] == 0:
        raise ValueError(f"W must have shape (n, n), n >= 1, got {W.shape}")
    if not np.isfinite(entries).all():
        raise ValueError("W must be finite, it holds NaN or infinity")
    if entries.min(initial=0.0) < 0:
        raise ValueError(f"W must be nonnegative, got {entries.min()}")
    if W.diagonal().any():
        raise ValueError("W must have a zero diagonal: no node joins itself")
    asymmetry = abs(W - W.T).max()
    if asymmetry > SYMMETRY * entries.max(initial=0.0):
        raise ValueError(
            f"W must be symmetric, W - W.T reaches {asymmetry:.3g}; a "
            "directed neighbour graph has to be symmetrised first"
        )
    return W


def _nearest(X: np.ndarray, k: int) -> tuple[np.ndarray, np.ndarray]:
    """Distances and indices (n, k) of the neighbours, ties by index.

    A few more than ``k`` are asked for; if a tie runs through the end of the
    list of some sample, twice as many.
    """
    from sklearn.neighbors import NearestNeighbors

    n = X.shape[0]
    # a tree subtracts coordinates; the brute-force search of scikit-learn
    # expands the square, and its rounding would break ties at random
    finder = NearestNeighbors(algorithm="kd_tree").fit(X)
    asked = min(k + 4, n - 1)
    while True:
        distance, index = finder.kneighbors(n_neighbors=asked)
        open_tie = np.any(distance[:, k - 1] == distance[:, -1])
        if asked == n - 1 or not open_tie:
            break
        asked = min(2 * asked, n - 1)
    order = np.lexsort((index, distance), axis=-1)[:, :k]
    return (
        np.take_along_axis(distance, order, axis=1),
        np.take_along_axis(index, order, axis=1),
    )


def _neighbour_count(k: int, n: int) -> int:
    if isinstance(k, bool) or not 1 <= k < n or k % 1 != 0:
        raise ValueError(
            f"k must be a whole number in 1..{n - 1} for {n} samples, "
            f"got {k!r}"
        )
    return int(k)


def neighbor_distances(X, k: int) -> np.ndarray:
    """Euclidean distance from each sample to its ``k``-th neighbour.

    The scale of a graph is usually set from it: the paper's companion takes
    the median of the 7th distance as the width of :func:`rbf_graph`, and the
    largest 10th distance as the radius of :func:`epsilon_graph`.

    Parameters
    ----------
    X : array_like, shape (n, d)
        One sample a row.
    k : int in 1..n-1

    Returns
    -------
    ndarray, shape (n,)
        0 where a sample has ``k`` exact copies.

    Raises
    ------
    ValueError
        If ``X`` is not a finite matrix with two rows or ``k`` is out of range.

    Notes
    -----
    Source: ours.

    Examples
    --------
    >>> neighbor_distances([[0.0], [1.0], [3.0]], 1)
    array([1., 1., 2.])
    """
    X = _samples(X)
    return _nearest(X, _neighbour_count(k, X.shape[0]))[0][:, -1].copy()


def knn_graph(
    X,
    k: int,
    mode: str = "union",
    weight: str = "binary",
    sigma: float | None = None,
) -> sparse.csr_array:
    r"""Join each sample with its ``k`` nearest neighbours.

    "``j`` is among the ``k`` nearest of ``i``" is not symmetric. ``union``
    joins the pair if it holds one way or the other (degrees at least
    ``k``), ``mutual`` if it holds both ways (degrees at most ``k``, and
    possibly 0). The average of the two, weights 1/2 and 1, is not offered.

    Parameters
    ----------
    X : array_like, shape (n, d)
        One sample a row (the paper: one a column).
    k : int in 1..n-1
        Number of neighbours, the sample itself not counted.
    mode : {'union', 'mutual'}
    weight : {'binary', 'gaussian'}
        Weight 1, or :math:`e^{-\|x_i-x_j\|^2/2\sigma^2}`.
    sigma : float > 0, optional
        Width for ``gaussian``; by default the median distance to the
        ``k``-th neighbour.

    Returns
    -------
    csr_array, shape (n, n)
        Symmetric weights with zero diagonal. Exact copies of a sample count
        as neighbours at distance 0, weight 1.

    Raises
    ------
    ValueError
        If ``X`` is not a finite matrix with two rows, ``k`` is out of range,
        a name is unknown, or the default width is 0 because most samples
        have ``k`` copies.

    Notes
    -----
    A k-d tree finds the neighbours; ties go to the smaller index.

    Source: von Luxburg, Statistics and Computing 17 (2007), section 2.2.

    Examples
    --------
    >>> knn_graph([[0.0], [1.0], [3.0]], 1).toarray()
    array([[0., 1., 0.],
           [1., 0., 1.],
           [0., 1., 0.]])
    """
    X = _samples(X)
    _choice(mode, MODES, "mode")
    _choice(weight, WEIGHTS, "weight")
    n = X.shape[0]
    k = _neighbour_count(k, n)
    distance, index = _nearest(X, k)
    values = np.ones(n * k)
    if weight == "gaussian":
        width = np.median(distance[:, -1]) if sigma is None else sigma
        values = np.exp(
            -((distance.ravel() / _positive(width, "sigma")) ** 2) / 2
        )
    rows = np.repeat(np.arange(n), k)
    directed = sparse.csr_array((values, (rows, index.ravel())), shape=(n, n))
    other = directed.T.tocsr()
    W = directed.maximum(other) if mode == "union" else directed.minimum(other)
    W.eliminate_zeros()
    return sparse.csr_array(W)


def epsilon_graph(X, eps: float) -> sparse.csr_array:
    """Join samples at Euclidean distance at most ``eps``, with weight 1.

    Parameters
    ----------
    X : array_like, shape (n, d)
        One sample a row.
    eps : float > 0
        Radius, inclusive, in the unit of ``X``.

    Returns
    -------
    csr_array, shape (n, n)
        A small radius leaves nodes without edges; they are returned as they
        are, and :func:`graph_laplacian` decides.

    Raises
    ------
    ValueError
        If ``X`` is not a finite matrix with two rows or ``eps`` is not
        finite and positive.

    Notes
    -----
    Source: von Luxburg, Statistics and Computing 17 (2007), section 2.2.

    Examples
    --------
    >>> epsilon_graph([[0.0], [1.0], [3.0]], 1.0).sum(axis=1)
    array([1., 1., 0.])
    """
    from sklearn.neighbors import NearestNeighbors

    X = _samples(X)
    eps = _positive(eps, "eps")
    finder = NearestNeighbors(algorithm="kd_tree", radius=eps).fit(X)
    W = sparse.csr_array(finder.radius_neighbors_graph())
    # the sample itself is left out by index; copies of it are kept
    return sparse.csr_array(W.maximum(W.T))


def rbf_graph(X, sigma: float) -> np.ndarray:
    r"""Join all pairs, with weight :math:`e^{-\|x_i-x_j\|^2/2\sigma^2}`.

    Parameters
    ----------
    X : array_like, shape (n, d)
        One sample a row.
    sigma : float > 0
        Width, in the unit of ``X``.

    Returns
    -------
    ndarray, shape (n, n)
        Dense, zero diagonal. Pairs more than about 38 widths apart get
        weight 0 (underflow), so that a far outlier has no edge at all.

    Raises
    ------
    ValueError
        If ``X`` is not a finite matrix with two rows or ``sigma`` is not
        finite and positive.

    Notes
    -----
    :math:`O(n^2d)` time, :math:`O(n^2)` memory.

    Source: von Luxburg, Statistics and Computing 17 (2007), section 2.2.

    Examples
    --------
    >>> rbf_graph([[0.0], [1.0]], 1.0).round(4)
    array([[0.    , 0.6065],
           [0.6065, 0.    ]])
    """
    X = _samples(X)
    scaled = pdist(X) / _positive(sigma, "sigma")
    return squareform(np.exp(-(scaled**2) / 2))


def graph_laplacian(W, kind: str = "combinatorial") -> Matrix:
    r"""Laplacian of a weighted graph.

    With degrees :math:`d_i=\sum_jw_{ij}` and :math:`D=\mathrm{diag}(d)`:
    ``combinatorial`` is :math:`L=D-W`, ``symmetric`` is
    :math:`L_{\rm sym}=D^{-1/2}LD^{-1/2}`. Both are positive semidefinite,

    .. math::

       x^{\mathsf T}Lx=\sum_{i<j}w_{ij}(x_i-x_j)^2,\qquad
       x^{\mathsf T}L_{\rm sym}x=\sum_{i<j}w_{ij}
       \Bigl(\frac{x_i}{\sqrt{d_i}}-\frac{x_j}{\sqrt{d_j}}\Bigr)^2 .

    Parameters
    ----------
    W : array_like or sparse array, shape (n, n)
        Symmetric, nonnegative, zero diagonal.
    kind : {'combinatorial', 'symmetric'}

    Returns
    -------
    ndarray or csr_array, shape (n, n)
        Exactly symmetric, in the storage of ``W``.

    Raises
    ------
    ValueError
        If ``W`` is not a weight matrix (:func:`check_weights`), ``kind`` is
        unknown, or ``kind`` is ``symmetric`` and a node has degree 0. For
        ``combinatorial`` such a node is allowed: a component of one node.
        (Other libraries put 0 or 1 on the diagonal for it; the paper
        excludes the case.)

    Notes
    -----
    Source: the spectral-alignment paper, section 1; Chung, *Spectral Graph
    Theory* (1997), section 1.2.

    Examples
    --------
    >>> path = [[0, 1, 0], [1, 0, 1], [0, 1, 0]]
    >>> graph_laplacian(path)
    array([[ 1., -1.,  0.],
           [-1.,  2., -1.],
           [ 0., -1.,  1.]])
    """
    _choice(kind, KINDS, "kind")
    W = check_weights(W)
    W = (W + W.T) / 2
    degrees = np.asarray(W.sum(axis=1)).ravel()
    diagonal = degrees
    if kind == "symmetric":
        isolated = np.flatnonzero(degrees == 0)
        if isolated.size:
            raise ValueError(
                "the symmetric Laplacian needs positive degrees, "
                f"{isolated.size} node(s) of W have none, first "
                f"{isolated[:5].tolist()}; drop them or join them"
            )
        root = np.sqrt(degrees)
        scale = 1 / root
        W = W * scale[:, None] * scale
        W = (W + W.T) / 2
        diagonal = np.ones_like(degrees)
    if sparse.issparse(W):
        return sparse.csr_array(sparse.diags_array(diagonal) - W)
    L = -W
    np.fill_diagonal(L, diagonal)
    return L + 0.0


@dataclass(frozen=True)
class SampleGraph:
    """A graph on samples with what one asks of it first.

    Make it with :func:`sample_graph`.

    Attributes
    ----------
    weights : ndarray or csr_array, shape (n, n)
    kind : str
        ``combinatorial`` or ``symmetric``.
    laplacian : ndarray or csr_array, shape (n, n)
        Of that kind.
    degrees : ndarray, shape (n,)
    components : ndarray of int, shape (n,)
        Number of the connected component of each node, from 0.
    """

    weights: Matrix
    kind: str
    laplacian: Matrix
    degrees: np.ndarray
    components: np.ndarray

    @property
    def n_samples(self) -> int:
        return self.degrees.size

    @property
    def n_components(self) -> int:
        return int(self.components.max()) + 1

    @property
    def n_edges(self) -> int:
        W = self.weights
        count = W.nnz if sparse.issparse(W) else np.count_nonzero(W)
        return int(count) // 2

    @property
    def isolated(self) -> np.ndarray:
        """Indices of the nodes of degree 0."""
        return np.flatnonzero(self.degrees == 0)


def sample_graph(W, kind: str = "combinatorial") -> SampleGraph:
    """Bundle weights with their Laplacian, degrees and components.

    Parameters
    ----------
    W : array_like or sparse array, shape (n, n)
        Symmetric, nonnegative, zero diagonal.
    kind : {'combinatorial', 'symmetric'}

    Returns
    -------
    SampleGraph

    Raises
    ------
    ValueError
        As :func:`graph_laplacian`.

    Notes
    -----
    Source: the spectral-alignment paper, section 1.

    Examples
    --------
    >>> pair_and_one = sample_graph([[0, 1, 0], [1, 0, 0], [0, 0, 0]])
    >>> pair_and_one.n_components, pair_and_one.isolated.tolist()
    (2, [2])
    """
    W = check_weights(W)
    L = graph_laplacian(W, kind)
    degrees = np.asarray(W.sum(axis=1)).ravel()
    components = connected_components(sparse.csr_array(W), directed=False)[1]
    return SampleGraph(W, kind, L, degrees, components)
