"""Two conics: by hand, by a Groebner basis, by the law of parity."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from helpers.allocation.allocations import (
    Allocation,
    entry_allocation,
    stack_allocations,
    with_entries,
)
from helpers.allocation.conics import (
    conic_intersections,
    conic_through,
    recurrent_conics,
)
from helpers.allocation.networks import (
    LinearRNN,
    lrnn_forward,
    sample_lrnn,
    sample_lrnn_problems,
)
from helpers.allocation.ranks import recurrent_rank_modp

SEEDS = st.integers(0, 2**32 - 1)
CIRCLE = [1, 0, 1, 0, 0, -1]
HAND = [
    (CIRCLE, [0, 0, 0, 0, 1, 0], 2, 2),  # a diameter
    (CIRCLE, [0, 0, 0, 0, 1, -2], 2, 0),  # a line that misses
    (
        CIRCLE,
        [1, 0, 1, -2, 0, 0],
        2,
        2,
    ),  # circles share two points at infinity
    (CIRCLE, [1, 0, 1, 0, 0, -4], 0, 0),  # concentric: all four there
    (CIRCLE, [1, 0, 4, 0, 0, -2], 4, 4),  # an ellipse across
    (CIRCLE, [1, 0, 9, 0, 0, -16], 4, 0),  # an ellipse around
    ([1, 0, 0, 0, -1, 0], [0, 0, 1, -1, 0, 0], 4, 2),  # v = u^2, u = v^2
    ([0, 1, 0, 0, 0, -1], [0, 0, 0, 1, 0, -2], 1, 1),  # hyperbola, u = 2
    ([0, 1, 0, 0, 0, -1], [0, 1, 0, 1, 0, -1], 0, 0),  # all at infinity
    ([0, 0, 0, 1, 1, 0], [0, 0, 0, 1, -1, 2], 1, 1),  # two lines
    ([0, 0, 0, 1, 1, 0], [0, 0, 0, 2, 2, 1], 0, 0),  # parallel
    ([0, 0, 0, 1, 1, 3], [0, 0, 0, 2, 2, 6], -1, -1),  # the same line
    (CIRCLE, [0, 0, 0, 0, 0, 3], 0, 0),  # 3 = 0
    (CIRCLE, [2, 0, 2, 0, 0, -2], -1, -1),  # the same conic
]


@pytest.mark.parametrize("first, second, number, real", HAND)
def test_by_hand(first, second, number, real):
    assert conic_intersections(first, second) == (number, real)
    assert conic_intersections(second, first) == (number, real)


def test_a_grobner_basis_counts_the_same():
    sympy = pytest.importorskip("sympy", reason="comes with torch only")
    u, v = sympy.symbols("u v")
    rng = np.random.default_rng(0)
    monomials = [u**2, u * v, v**2, u, v, 1]
    for trial in range(12):
        pair = rng.integers(-4, 5, (2, 6))
        if trial % 3 == 0:
            pair[:, 2] = 0
        if trial % 3 == 1:
            pair[:, :3] = pair[:1, :3]
        polys = [
            sum(int(c) * t for c, t in zip(f, monomials, strict=True))
            for f in pair
        ]
        basis = sympy.groebner(polys, u, v, order="lex")
        last = sympy.Poly(basis.exprs[-1], v)
        generic = (
            len(basis.exprs) == 2 and sympy.degree(basis.exprs[0], u) == 1
        )
        if not generic or not last.is_sqf:
            continue
        found = conic_intersections(*pair)
        assert found.complex == last.degree()
        assert found.real == last.count_roots()


@given(SEEDS)
@settings(max_examples=30, deadline=None)
def test_an_odd_number_has_a_real_point(seed):
    rng = np.random.default_rng(seed)
    pairs = rng.normal(size=(40, 2, 6))
    pairs[:20, 1, :2] = pairs[:20, 0, :2]
    pairs[:20, 0, 2] = pairs[:20, 1, 2] = 0  # one point fewer at least
    found = conic_intersections(pairs[:, 0], pairs[:, 1])
    assert ((found.complex - found.real) % 2 == 0).all()
    assert (found.complex[20:] == 4).all()
    assert (found.real[found.complex % 2 == 1] >= 1).all()


@given(SEEDS, st.integers(2, 5), st.integers(1, 3))
@settings(max_examples=30, deadline=None)
def test_conics_are_the_labels(seed, n, T):
    rng = np.random.default_rng(seed)
    net = sample_lrnn(3, n, 2, 1, rng)
    X, Y = rng.normal(size=(3, T, 2, 2)), rng.normal(size=(3, 1, 2))
    a = stack_allocations([entry_allocation((n, n), 2, rng) for _ in range(3)])
    w = rng.normal(size=(3, 2))
    u, v = w.T
    point = np.stack([u * u, u * v, v * v, u, v, np.ones(3)])
    conics = recurrent_conics(net, X, Y, a)
    moved = net._replace(W=with_entries(net.W, a, w))
    gap = (lrnn_forward(moved, X) - Y)[:, 0]
    np.testing.assert_allclose(
        np.einsum("kec,ck->ke", conics, point), gap, atol=1e-10
    )


def test_a_student_like_its_teacher_has_a_real_point():
    """Labels from the student's own weights: never zero real points."""
    rng = np.random.default_rng(4)
    net, X = sample_lrnn(60, 5, 2, 1, rng), rng.normal(size=(60, 3, 2, 2))
    a = stack_allocations(
        [entry_allocation((5, 5), 2, rng) for _ in range(60)]
    )
    conics = recurrent_conics(net, X, lrnn_forward(net, X), a)
    found = conic_intersections(conics[:, 0], conics[:, 1])
    assert (found.real >= 1).all()


def test_refused():
    with pytest.raises(ValueError, match="values must be"):
        conic_through([1, 2, 3])
    with pytest.raises(ValueError, match="values must be finite"):
        conic_through([np.nan] * 6)
    with pytest.raises(ValueError, match="first must be finite"):
        conic_intersections([np.inf] * 6, CIRCLE)
    with pytest.raises(ValueError, match="must both be"):
        conic_intersections([1, 2], [1, 2])
    with pytest.raises(ValueError, match="vanish identically"):
        conic_intersections([0] * 6, CIRCLE)
    net = LinearRNN(*(M[0] for M in sample_lrnn(1, 3, 2, 1, 0)))
    a = Allocation([0, 1], [1, 1])
    X, Y = np.ones((3, 2, 2)), np.ones((1, 2))
    with pytest.raises(ValueError, match="at most 3 steps"):
        recurrent_conics(net, np.ones((4, 2, 2)), Y, a)
    with pytest.raises(ValueError, match="two numbers"):
        recurrent_conics(net, X, np.ones((1, 3)), a)
    with pytest.raises(ValueError, match="2 entries"):
        recurrent_conics(net, X, Y, Allocation([0], [1]))


def test_rank_decides_zero_from_positive():
    """Deficient rank: no real point in any draw; full rank: in some."""
    rng = np.random.default_rng(7)
    seen = set()
    for _ in range(25):
        n, b, T = (int(v) for v in rng.integers([2, 1, 2], [5, 3, 4]))
        d, m = [(1, 2), (2, 1)][int(rng.integers(2))]
        a = entry_allocation((n, n), 2, rng)
        rank = recurrent_rank_modp(n, b, d, T, m, a, rng)
        problem = sample_lrnn_problems(40, n, b, d, T, m, rng)
        q = recurrent_conics(problem.student, problem.X, problem.Y, a)
        real = conic_intersections(q[:, 0], q[:, 1]).real
        assert (real > 0).any() == (rank == 2), (n, b, d, T, m, a)
        assert (real >= 0).all()
        seen.add(rank)
    assert seen == {1, 2}
