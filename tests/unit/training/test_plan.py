"""Which samples each step reads."""

from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from axonp2p.training.plan import batch_indices, seed_for

sizes = st.integers(1, 60)


@given(samples=sizes, batch=sizes, seed=st.integers(0, 2**62), first=st.integers(0, 50), steps=st.integers(0, 20))
def test_every_batch_is_full_and_of_samples_that_exist(
    samples: int, batch: int, seed: int, first: int, steps: int
) -> None:
    batches = batch_indices(samples, batch, seed, first, steps)
    assert [len(indices) for indices in batches] == [batch] * steps
    assert all(0 <= index < samples for indices in batches for index in indices)


@given(samples=sizes, batch=sizes, seed=st.integers(0, 2**62), cut=st.integers(0, 12))
def test_a_step_reads_the_same_wherever_one_begins(samples: int, batch: int, seed: int, cut: int) -> None:
    whole = batch_indices(samples, batch, seed, 0, 12)
    assert batch_indices(samples, batch, seed, 0, cut) + batch_indices(samples, batch, seed, cut, 12 - cut) == whole


@given(samples=sizes, batch=sizes, seed=st.integers(0, 2**62))
def test_each_epoch_reads_every_sample_once(samples: int, batch: int, seed: int) -> None:
    steps = -(-2 * samples // batch)
    stream = [index for indices in batch_indices(samples, batch, seed, 0, steps) for index in indices]
    assert sorted(stream[:samples]) == sorted(stream[samples : 2 * samples]) == list(range(samples))


def test_a_batch_larger_than_the_data_goes_round() -> None:
    (batch,) = batch_indices(3, 7, 0, 0, 1)
    assert sorted(Counter(batch).values()) == [2, 2, 3]


def test_other_seeds_and_other_epochs_have_other_orders() -> None:
    first, second = batch_indices(100, 100, 1, 0, 2)
    assert first != second
    assert first != batch_indices(100, 100, 2, 0, 1)[0]


def test_the_order_never_changes() -> None:
    """Peers of different versions must read alike, and a resumed job must go on where it was."""
    assert batch_indices(10, 5, 42, 0, 3) == GOLDEN
    assert seed_for(7, 3, [2, 0]) == GOLDEN_SEED


GOLDEN = [[8, 4, 3, 1, 7], [6, 0, 5, 2, 9], [0, 1, 5, 7, 6]]
GOLDEN_SEED = 8263186199221398258


@pytest.mark.parametrize(("samples", "batch"), [(0, 4), (4, 0), (-1, 1)])
def test_nothing_to_draw_from_is_an_error(samples: int, batch: int) -> None:
    with pytest.raises(ValueError, match="cannot draw"):
        batch_indices(samples, batch, 0, 0, 1)


@given(st.integers(0, 2**53), st.integers(0, 1000), st.lists(st.integers(0, 63), unique=True))
def test_a_seed_fits_63_bits_and_knows_no_order_of_shards(job_seed: int, round: int, shards: list[int]) -> None:
    seed = seed_for(job_seed, round, shards)
    assert 0 <= seed < 2**63
    assert seed == seed_for(job_seed, round, reversed(shards))


def test_seeds_differ_by_job_round_and_shards() -> None:
    seeds = {
        seed_for(job, round, shards) for job in range(3) for round in range(3) for shards in ([], [0], [1], [0, 1])
    }
    assert len(seeds) == 36
