from __future__ import annotations

import random

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from axonp2p.errors import PeerMisbehaved
from axonp2p.tensors.frames import values_to_bytes
from axonp2p.training import exchange as module
from axonp2p.training.exchange import SliceExchange
from axonp2p.training.messages import VALUES_A_PART, SlicePart, StartRound

MOST = 1000


def order(members, round=3, attempt=1):
    return StartRound(round=round, attempt=attempt, state=bytes(32), members=members, shards=[0], steps=1)


def vectors(members, length, seed):
    chance = torch.Generator().manual_seed(seed)
    return {rank: torch.randn(length, generator=chance) for rank in members}


def weighted_mean(deltas, samples):
    total = sum(samples.values())
    added = torch.zeros(len(next(iter(deltas.values()))), dtype=torch.float64)
    for rank in sorted(deltas):
        added += deltas[rank].double() * samples[rank]
    return (added / total).float()


def deliver(exchanges, chance):
    """Deliver everything that is said, in any order; gives how many parts there were."""
    waiting = [(rank, out) for rank, exchange in exchanges.items() for out in exchange.outgoing()]
    delivered = 0
    while waiting:
        rank, out = waiting.pop(chance.randrange(len(waiting)))
        said = exchanges[out.to].receive(rank, out.part, bytes(out.payload))
        waiting += [(out.to, answer) for answer in said]
        delivered += 1
    return delivered


@settings(max_examples=60, deadline=None)
@given(
    members=st.lists(st.integers(0, 63), min_size=1, max_size=6, unique=True),
    length=st.integers(1, 70),
    seed=st.integers(0, 2**32),
    data=st.data(),
)
def test_all_end_with_the_same_bits_whatever_the_order_of_arrival(members, length, seed, data):
    part = data.draw(st.integers(1, 20), label="values a part")
    samples = {rank: data.draw(st.integers(1, MOST)) for rank in members}
    deltas = vectors(members, length, seed)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "VALUES_A_PART", part)
        exchanges = {rank: SliceExchange(rank, order(members), deltas[rank], samples[rank], MOST) for rank in members}
        deliver(exchanges, random.Random(seed))
    expected = values_to_bytes(weighted_mean(deltas, samples))
    for exchange in exchanges.values():
        assert exchange.complete
        assert values_to_bytes(exchange.mean()) == expected


def test_large_vectors_travel_in_parts_twice_over_and_no_more():
    members, length = [0, 1, 2], 4 * VALUES_A_PART
    deltas = vectors(members, length, 1)
    exchanges = {rank: SliceExchange(rank, order(members), deltas[rank], 5, MOST) for rank in members}
    assert all(len(out.payload) <= 4 * VALUES_A_PART for out in exchanges[0].outgoing())
    assert deliver(exchanges, random.Random(1)) == 3 * 2 * 2 * 2  # slices, parts of each, others, there and back
    assert torch.equal(exchanges[1].mean(), weighted_mean(deltas, dict.fromkeys(members, 5)))


def test_one_member_needs_nobody():
    delta = torch.randn(10)
    exchange = SliceExchange(4, order([4]), delta, 7, MOST)
    assert list(exchange.outgoing()) == []
    assert torch.equal(exchange.mean(), delta)


def test_more_members_than_values():
    members = [0, 1, 2, 3]
    deltas = vectors(members, 2, 9)
    exchanges = {rank: SliceExchange(rank, order(members), deltas[rank], 1, MOST) for rank in members}
    deliver(exchanges, random.Random(0))
    assert all(exchange.complete for exchange in exchanges.values())


def part(**changes):
    """What rank 1 may say to rank 0 in the exchange of `begun`: its values of rank 0's slice."""
    plain = {"round": 3, "attempt": 1, "phase": "gather", "slice": 0, "offset": 0, "samples": 10}
    return SlicePart(**(plain | changes))


def begun():
    return SliceExchange(0, order([0, 1, 2]), torch.zeros(12), 10, MOST)


ONES = values_to_bytes(torch.ones(4))


@pytest.mark.parametrize(
    ("sender", "said", "payload", "reason"),
    [
        (1, part(round=4), ONES, "another round"),
        (1, part(attempt=0), ONES, "another round"),
        (5, part(), ONES, "not part of this exchange"),
        (0, part(), ONES, "not part of this exchange"),
        (1, part(slice=7), ONES, "names a slice that is not"),
        (1, part(slice=1), ONES, "rank 1's slice to rank 0"),
        (1, part(offset=4), ONES, "at 4 of a slice of 4"),
        (1, part(offset=1), ONES, "at 1 of a slice of 4"),
        (1, part(), ONES[:8], "8 bytes where a part has 16"),
        (1, part(), b"", "0 bytes"),
        (1, part(samples=0), ONES, "claims 0 samples"),
        (1, part(samples=MOST + 1), ONES, "claims 1001 samples of at most 1000"),
        (1, part(), values_to_bytes(torch.tensor([1.0, float("nan"), 1.0, 1.0])), "not finite"),
        (1, part(phase="result", slice=2), ONES, "which it does not own"),
        (1, part(phase="result", slice=0), ONES, "which it does not own"),
        (1, part(phase="result", slice=1), values_to_bytes(torch.full((4,), float("inf"))), "not finite"),
    ],
)
def test_what_a_member_may_not_say(sender, said, payload, reason):
    exchange = begun()
    with pytest.raises(PeerMisbehaved, match=rf"rank {sender} .*{reason}"):
        exchange.receive(sender, said, payload)
    # It has changed nothing: the round still ends well.
    assert exchange.receive(1, part(), ONES) == []
    assert len(exchange.receive(2, part(), ONES)) == 2


def test_nothing_may_be_said_twice():
    exchange = begun()
    exchange.receive(1, part(), ONES)
    with pytest.raises(PeerMisbehaved, match="rank 1 sent its values at 0 twice"):
        exchange.receive(1, part(), ONES)
    exchange.receive(2, part(), ONES)
    with pytest.raises(PeerMisbehaved, match="rank 2 sent its values at 0 twice"):
        exchange.receive(2, part(), ONES)
    exchange.receive(1, part(phase="result", slice=1, samples=30), ONES)
    with pytest.raises(PeerMisbehaved, match="rank 1 sent its result at 0 twice"):
        exchange.receive(1, part(phase="result", slice=1, samples=30), ONES)


def test_a_member_keeps_to_its_number_of_samples(monkeypatch):
    monkeypatch.setattr(module, "VALUES_A_PART", 2)
    exchange = begun()
    two = ONES[:8]
    exchange.receive(1, part(samples=10), two)
    with pytest.raises(PeerMisbehaved, match="rank 1 changed its number of samples"):
        exchange.receive(1, part(samples=11, offset=2), two)
    exchange.receive(1, part(phase="result", slice=1, samples=30), two)
    with pytest.raises(PeerMisbehaved, match="rank 1 changed its sum of samples"):
        exchange.receive(1, part(phase="result", slice=1, samples=31, offset=2), two)
