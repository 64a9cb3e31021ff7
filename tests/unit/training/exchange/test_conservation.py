"""Whatever happens in an exchange, nothing is lost, nothing is counted twice, and all go on with the same bits."""

from __future__ import annotations

import random

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from axonp2p.tensors.coding import Coding
from axonp2p.tensors.dense import values_to_bytes
from tests.unit.training.exchange.meeting import MOST_SAMPLES, Meeting, vectors, weighted_mean

pytestmark = pytest.mark.slow

codings = st.builds(Coding, bits=st.sampled_from([32, 16, 8, 4, 2, 1]), density=st.sampled_from([1.0, 0.5, 0.05]))


@st.composite
def meetings(draw):
    members = sorted(draw(st.lists(st.integers(0, 63), min_size=1, max_size=6, unique=True), label="members"))
    length = draw(st.integers(1, 70), label="length")
    shares = draw(st.lists(st.integers(0, 3), min_size=len(members), max_size=len(members)).filter(any), label="shares")
    meeting = Meeting(
        vectors(members, length, draw(st.integers(0, 2**32))),
        {rank: draw(st.integers(1, MOST_SAMPLES)) for rank in members},
        shares=shares,
        part=draw(st.integers(1, 20), label="part"),
        exact_from=draw(st.integers(0, length), label="exact from"),
        listeners=tuple({63 - members[0]} - set(members)),
        result=draw(codings, label="result"),
    )
    meeting.codings = {rank: draw(codings) for rank in members}
    return meeting


def check_all_equal(meeting):
    one, *others = meeting.everyone()
    for exchange in others:
        assert values_to_bytes(exchange.mean()) == values_to_bytes(one.mean())
        assert exchange.digests == one.digests
    for rank, told in meeting.told.items():
        assert values_to_bytes(told) == values_to_bytes(meeting.exchanges[rank].mean())


def check_nothing_is_lost(meeting, *, whole):
    """Only parameters: buffers are not held back, so those of who was left out are given up."""
    kept = meeting.changes["exact_from"]
    sent = sum(meeting.samples[rank] * meeting.sendings[rank][:kept].double() for rank in meeting.members)
    left = sum(meeting.samples[rank] * meeting.exchanges[rank].leftover()[:kept].double() for rank in meeting.members)
    applied = whole[:kept] * meeting.exchanges[meeting.members[0]].mean()[:kept].double()
    assert torch.allclose(sent, applied + left, atol=1e-5 * MOST_SAMPLES * len(meeting.members))


def weights_in_the_mean(meeting):
    """For each value of the vector, the sum of weights that its owner told."""
    whole = torch.full((meeting.length,), float(sum(meeting.samples.values())), dtype=torch.float64)
    for *_, part in meeting.arrived:
        if part.phase == "result":
            own = meeting.terms_for(part.slice)
            begin = own.slices[part.slice][0] + part.offset
            whole[begin : begin + own.parts_of(part.slice)[part.offset]] = part.samples
    return whole


@settings(max_examples=150, deadline=None)
@given(meeting=meetings(), seed=st.integers(0, 2**32))
def test_when_all_arrive_in_time_their_orderchanges_nothing(meeting, seed):
    chance = random.Random(seed)
    meeting.play(lambda *_: chance.random() * 9)
    assert all(exchange.complete and not exchange.left_out for exchange in meeting.everyone())
    check_all_equal(meeting)
    check_nothing_is_lost(meeting, whole=weights_in_the_mean(meeting))
    begins = meeting.changes["exact_from"]
    exact = weighted_mean(meeting.sendings, meeting.samples)[begins:]
    assert values_to_bytes(meeting.everyone()[0].mean()[begins:]) == values_to_bytes(exact)

    calm = Meeting(meeting.sendings, meeting.samples, **meeting.changes)
    calm.codings = meeting.codings
    calm.play()
    assert values_to_bytes(calm.everyone()[0].mean()) == values_to_bytes(meeting.everyone()[0].mean())


@settings(max_examples=150, deadline=None)
@given(meeting=meetings(), seed=st.integers(0, 2**32), data=st.data())
def test_nothing_is_lost_when_members_are_late_slow_or_unheard(meeting, seed, data):
    chance = random.Random(seed)
    ranks = st.sampled_from(meeting.members)
    late = data.draw(st.dictionaries(ranks, st.floats(0, 30), max_size=3), label="begin")
    slow = data.draw(st.dictionaries(ranks, st.floats(0, 5), max_size=3), label="a part")
    # Fewer than half, so that each part still gets its half.
    most = (len(meeting.members) - 1) // 2
    unheard = data.draw(st.sets(ranks, max_size=most), label="unheard")

    def delay(sender, to, part):
        if sender in unheard and part.phase == "gather":
            return None
        return chance.choice([0.0, 0.1, chance.random() * 20])

    meeting.play(delay, begins=late, a_part=slow)
    assert all(exchange.complete for exchange in meeting.everyone())
    for exchange in meeting.everyone():
        assert exchange.left_out <= set(meeting.members)
    check_all_equal(meeting)
    check_nothing_is_lost(meeting, whole=weights_in_the_mean(meeting))


@settings(max_examples=30, deadline=None)
@given(meeting=meetings(), seed=st.integers(0, 2**32))
def test_a_mean_with_late_members_is_the_mean_of_the_others(meeting, seed):
    meeting.changes["result"] = Coding()
    meeting.codings = {}
    chance = random.Random(seed)
    meeting.play(lambda *_: chance.random() * 20)
    sums = torch.zeros(meeting.length, dtype=torch.float64)
    for rank in meeting.members:
        used = meeting.sendings[rank].double() - meeting.exchanges[rank].leftover().double()
        sums += meeting.samples[rank] * used
    expected = sums / weights_in_the_mean(meeting)
    begins = meeting.changes["exact_from"]
    assert torch.allclose(meeting.everyone()[0].mean()[:begins].double(), expected[:begins], atol=1e-5)
