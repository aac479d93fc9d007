import numpy as np
import pytest

from helpers.core.randomness import as_generator, spawn


def test_a_seed_gives_numpys_stream():
    wanted = np.random.default_rng(3).random(5)
    for seed in (3, np.int64(3), np.random.SeedSequence(3)):
        assert np.array_equal(as_generator(seed).random(5), wanted)


def test_a_generator_is_used_as_it_is():
    rng = np.random.default_rng(0)
    assert as_generator(rng) is rng


@pytest.mark.parametrize("bad", [None, -1, 1.5, "7", True])
def test_no_seed_is_refused(bad):
    with pytest.raises(ValueError, match="rng must be"):
        as_generator(bad)


def test_spawned_streams_are_the_documented_ones():
    wanted = [
        np.random.default_rng(s) for s in np.random.SeedSequence(9).spawn(3)
    ]
    for mine, theirs in zip(spawn(9, 3), wanted, strict=True):
        assert np.array_equal(mine.random(4), theirs.random(4))


def test_spawn_does_not_count_in_the_callers_sequence():
    seed = np.random.SeedSequence(1)
    first = [g.random() for g in spawn(seed, 2)]
    assert [g.random() for g in spawn(seed, 3)][:2] == first


def test_streams_differ():
    values = [g.random() for g in spawn(0, 50)]
    assert len(set(values)) == 50


@pytest.mark.parametrize("n", [-1, 1.5, True])
def test_a_bad_number_of_streams_is_refused(n):
    with pytest.raises(ValueError, match="n must be"):
        spawn(0, n)


@pytest.mark.parametrize("seed", [-1, None, True])
def test_a_bad_seed_is_refused(seed):
    with pytest.raises(ValueError, match="seed must be"):
        spawn(seed, 1)
