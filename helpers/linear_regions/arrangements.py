r"""How many cells hyperplanes make: the theorem of Zaslavsky for families of
parallel hyperplanes in general position, in exact integers."""

from __future__ import annotations

from operator import index

__all__ = ["arrangement_cells"]


def arrangement_cells(families, parallel=1, dim: int = 2) -> int:
    r"""Cells of ``families`` families of parallel hyperplanes in
    :math:`\mathbb R^D`.

    .. math:: R=\sum_{k=0}^{\min(n,D)}\binom nk m^k

    for :math:`n` families of :math:`m` parallel hyperplanes, one direction a
    family, all else in general position. With different numbers the power is
    the elementary symmetric polynomial :math:`e_k(m_1,\dots,m_n)`.

    Parameters
    ----------
    families : int >= 0
        How many families; one hyperplane is a family of one.
    parallel : int >= 0, or sequence of them
        Hyperplanes in each family.
    dim : int >= 1

    Returns
    -------
    int
        Exact, as large as it may be.

    Raises
    ------
    ValueError
        If an argument is out of range or numbers do not fit.

    Notes
    -----
    By the recursion :math:`e_k\leftarrow e_k+m_ne_{k-1}`, which is that of
    the proof: the new family makes :math:`m_n` copies of what lies in one of
    its hyperplanes. :math:`O(nD)` products.

    Source: Milkert, Hyde, Laine (2025), Theorem A.11; Zaslavsky (1975).

    Examples
    --------
    >>> [arrangement_cells(n, 1, 2) for n in (1, 2, 3, 4)]
    [2, 4, 7, 11]
    >>> arrangement_cells(2, 31, 2) == 32**2
    True
    """
    families, dim = index(families), index(dim)
    if families < 0 or dim < 1:
        raise ValueError(
            f"families must not be negative and dim must be positive, got "
            f"{families} and {dim}"
        )
    if hasattr(parallel, "__len__"):
        sizes = [index(m) for m in parallel]
        if len(sizes) != families:
            raise ValueError(
                f"parallel must have an entry for each of {families} "
                f"families, got {len(sizes)}"
            )
    else:
        sizes = [index(parallel)] * families
    if min(sizes, default=0) < 0:
        raise ValueError(f"parallel must not be negative, got {parallel}")
    symmetric = [1] + [0] * min(families, dim)
    for m in sizes:
        for k in range(len(symmetric) - 1, 0, -1):
            symmetric[k] += m * symmetric[k - 1]
    return sum(symmetric)
