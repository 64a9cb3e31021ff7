from __future__ import annotations

import pytest
import torch

from axonp2p.errors import PeerMisbehaved
from axonp2p.tensors.coding import Coding
from axonp2p.tensors.dense import values_to_bytes
from axonp2p.tensors.encoding import decode, encode
from axonp2p.training.exchange.arrivals import ArrivalTimes
from axonp2p.training.exchange.slice_exchange import SliceExchange
from axonp2p.training.messages import SlicePart
from tests.unit.training.exchange.meeting import MOST_SAMPLES, Meeting, terms, vectors, weighted_mean

EXACT, TWO_BITS = Coding(), Coding(bits=2)


def test_all_end_with_the_mean_weighted_by_samples():
    sendings, samples = vectors([0, 2, 5], 31), {0: 3, 2: 100, 5: 20}
    meeting = Meeting(sendings, samples)
    meeting.play()
    for exchange in meeting.everyone():
        assert exchange.complete
        assert torch.equal(exchange.mean(), weighted_mean(sendings, samples))
        assert not exchange.leftover().any()
        assert exchange.left_out == set()
        assert exchange.kept_back == 0


def test_values_are_added_in_the_order_of_ranks_not_of_arrival():
    sendings = {0: torch.full((4,), 1e20), 1: torch.ones(4), 2: torch.full((4,), -1e20), 3: torch.full((4,), 8.0)}
    for first in (0, 1, 2):
        meeting = Meeting(sendings, shares=[0, 0, 0, 1])
        meeting.play(lambda sender, *_, first=first: float(sender != first))
        assert meeting.exchanges[3].mean().tolist() == [2.0] * 4  # (((1e20 + 1) - 1e20) + 8) / 4


def test_who_is_alone_needs_nobody():
    meeting = Meeting(vectors([4], 10), {4: 7})
    meeting.play()
    assert meeting.arrived == []
    assert torch.equal(meeting.exchanges[4].mean(), meeting.sendings[4])


def test_who_is_alone_with_a_listener_tells_it_what_both_go_on_from():
    meeting = Meeting(vectors([4], 10), listeners=(6,), result=TWO_BITS)
    meeting.play()
    alone, listener = meeting.exchanges[4], meeting.exchanges[6]
    assert torch.equal(alone.mean(), listener.mean())
    assert torch.allclose(alone.mean() + alone.leftover(), meeting.sendings[4])


def test_more_members_than_values():
    meeting = Meeting(vectors([0, 1, 2, 3], 2))
    meeting.play()
    assert all(exchange.complete for exchange in meeting.everyone())


def test_what_is_owned_by_nobody_costs_nobody():
    meeting = Meeting(vectors([0, 1, 2], 20), shares=[1, 0, 1])
    meeting.play()
    assert {part.slice for *_, part in meeting.arrived} == {0, 2}
    assert torch.equal(meeting.exchanges[1].mean(), weighted_mean(meeting.sendings, meeting.samples))


def test_a_listener_hears_the_results_and_says_nothing():
    meeting = Meeting(vectors([0, 1], 20), listeners=(3, 7), result=TWO_BITS)
    meeting.play(lambda sender, to, part: 0.1 * to)
    heard = {to: [part for _, _, receiver, part in meeting.arrived if receiver == to] for to in (3, 7)}
    assert {part.phase for part in heard[3] + heard[7]} == {"result"}
    assert not [sender for _, sender, *_ in meeting.arrived if sender in (3, 7)]
    for exchange in meeting.everyone():
        assert torch.equal(exchange.mean(), meeting.exchanges[0].mean())
        assert exchange.digests == meeting.exchanges[0].digests


def test_owners_are_served_side_by_side_in_proportion_to_their_slices():
    exchange = SliceExchange(terms(0, [0, 1, 2], 36, shares=[0, 1, 2]), torch.zeros(36), 1, ArrivalTimes(), 0.0)
    assert [out.to for out in exchange.outgoing()] == [1, 2, 2, 1, 2, 2, 1, 2, 2]


def test_a_result_comes_as_soon_as_its_part_is_there():
    exchange = SliceExchange(terms(0, [0, 1], 16), torch.zeros(16), 1, ArrivalTimes(), 0.0)
    said = exchange.receive(1, gather(offset=4), ONES, 0.5)
    assert [(out.to, out.part.phase, out.part.offset, out.part.samples) for out in said] == [(1, "result", 4, 11)]


def test_bytes_are_counted_both_ways():
    meeting = Meeting(vectors([0, 1, 2], 50), listeners=(9,), gather=TWO_BITS)
    meeting.play()
    sent = sum(exchange.sent_bytes for exchange in meeting.everyone())
    assert sent == sum(exchange.received_bytes for exchange in meeting.everyone())
    assert meeting.exchanges[9].sent_bytes == 0


def test_what_a_coding_drops_is_left_over_and_buffers_travel_exact():
    sendings = vectors([0, 1, 2], 40)
    meeting = Meeting(sendings, exact_from=30, part=7, gather=Coding(bits=4, density=0.2), result=TWO_BITS)
    meeting.play()
    assert torch.equal(meeting.exchanges[0].mean()[30:], weighted_mean(sendings, meeting.samples)[30:])
    for exchange in meeting.everyone():
        assert exchange.leftover()[:30].any()
        assert not exchange.leftover()[30:].any()


def test_who_is_late_is_left_out_and_puts_its_values_back():
    meeting = Meeting(vectors([0, 1, 2], 24), gather=TWO_BITS, exact_from=20)
    meeting.play(lambda sender, to, part: 60.0 if sender == 2 and part.phase == "gather" else 0.1)
    others, late = [meeting.exchanges[0], meeting.exchanges[1]], meeting.exchanges[2]
    assert [exchange.left_out for exchange in others] == [{2}, {2}]
    assert late.left_out == set()
    assert late.kept_back == 16
    assert [exchange.kept_back for exchange in others] == [0, 0]
    # Its own slice, [16, 24), has its values; those of the others' slices wait for the next exchange.
    assert torch.allclose(late.leftover()[:16], meeting.sendings[2][:16], atol=1e-6)
    assert not late.leftover()[16:].any()
    assert torch.equal(late.mean(), others[0].mean())


def test_what_nobody_waits_for_any_more_is_not_sent():
    meeting = Meeting(vectors([0, 1, 2], 48), gather=TWO_BITS)
    meeting.play(a_part={2: 4.0})  # eight parts; patience ends after ten seconds
    late = [at for at, sender, _, part in meeting.arrived if sender == 2 and part.phase == "gather"]
    assert late == [0.0, 4.0, 8.0]
    slow = meeting.exchanges[2]
    assert slow.complete
    assert slow.kept_back == 5 * 4
    assert slow.sent_bytes < meeting.exchanges[0].sent_bytes


def test_a_part_is_never_closed_with_fewer_than_half():
    exchange = SliceExchange(terms(0, [0, 1, 2, 3, 4], 20), torch.zeros(20), 1, ArrivalTimes(), 0.0)
    assert exchange.receive(1, gather(), ONES, 1.0) == []
    assert exchange.deadline() == 10.0
    assert exchange.due(10.0) == []
    assert exchange.deadline() is None
    said = exchange.receive(2, gather(), ONES, 11.0)
    assert [out.to for out in said] == [1, 2, 3, 4]
    assert {tuple(out.part.left_out) for out in said} == {(3, 4)}
    assert said[0].part.samples == 21
    assert exchange.left_out == {3, 4}


def test_late_values_of_a_closed_part_are_ignored_without_fault():
    exchange = SliceExchange(terms(0, [0, 1, 2], 12), torch.zeros(12), 1, ArrivalTimes(), 0.0)
    exchange.receive(1, gather(), ONES, 0.5)
    assert len(exchange.due(10.0)) == 2
    assert exchange.receive(2, gather(), ONES, 12.0) == []
    assert exchange.receive(2, gather(), b"anything at all", 12.0) == []
    assert exchange.receive(1, gather(), ONES, 12.0) == []


def test_a_lost_sender_costs_what_was_learnt_not_the_whole_patience():
    meeting = Meeting(vectors([0, 1, 2], 24))
    for _ in range(6):
        meeting.play(lambda sender, *_: 0.3)
        assert all(exchange.complete for exchange in meeting.everyone())
        meeting = again(meeting)
    meeting.play(lambda sender, to, part: None if sender == 2 and part.phase == "gather" else 0.3)
    assert all(exchange.complete for exchange in meeting.everyone())
    assert meeting.exchanges[0].left_out == {2}
    assert 0.5 <= meeting.now <= 1.0


def test_who_has_become_slower_is_waited_for_longer_until_it_is_heard_again():
    meeting = Meeting(vectors([0, 1, 2], 24))
    meeting.play()
    kept_back = []
    for _ in range(8):
        meeting = again(meeting)
        meeting.play(begins={2: 3.0})
        kept_back.append(meeting.exchanges[2].kept_back)
    assert kept_back[0] == 16
    assert kept_back[-3:] == [0, 0, 0]


def test_an_owner_that_is_gone_leaves_the_exchange_incomplete_for_the_coordinator():
    meeting = Meeting(vectors([0, 1, 2], 24))
    meeting.play(lambda sender, to, part: None if 1 in (sender, to) else 0.1)
    survivors = [meeting.exchanges[0], meeting.exchanges[2]]
    assert [exchange.complete for exchange in survivors] == [False, False]
    assert [exchange.left_out for exchange in survivors] == [{1}, {1}]
    assert [exchange.deadline() for exchange in survivors] == [None, None]


def test_digests_name_the_owner_that_told_members_different_things():
    one, other = (SliceExchange(terms(rank, [0, 1, 2], 12), torch.zeros(12), 1, ArrivalTimes(), 0.0) for rank in (0, 1))
    for exchange in (one, other):
        list(exchange.outgoing())
    for exchange, lie in ((one, 1.0), (other, 1.5)):
        exchange.receive(2, result(slice=2), coded(torch.full((4,), lie)), 0.1)
    one.receive(1, result(slice=1), ONES, 0.1)
    other.receive(0, result(slice=0), ONES, 0.1)
    for sender in (1, 2):
        one.receive(sender, gather(slice=0), ONES, 0.2)
    for sender in (0, 2):
        other.receive(sender, gather(slice=1), ONES, 0.2)
    assert {owner for owner in (0, 1, 2) if one.digests[owner] != other.digests[owner]} >= {2}


def coded(values, coding=EXACT):
    return encode(values, coding)[0]


ONES = coded(torch.ones(4))


def gather(**changes):
    """What rank 1 may say to rank 0 in the exchange of `begun`: its values of rank 0's slice."""
    plain = {"round": 3, "attempt": 1, "exchange": 2, "phase": "gather", "slice": 0, "offset": 0, "samples": 10}
    return SlicePart(**(plain | changes))


def result(**changes):
    return gather(**({"phase": "result", "slice": 1, "samples": 30} | changes))


def begun(length=12):
    exchange = SliceExchange(terms(0, [0, 1, 2], length), torch.zeros(length), 10, ArrivalTimes(), 0.0)
    list(exchange.outgoing())
    return exchange


def again(meeting):
    """The same members' next exchange: they have learnt."""
    other = Meeting(meeting.sendings, meeting.samples)
    other.arrivals = meeting.arrivals
    return other


@pytest.mark.parametrize(
    ("sender", "said", "payload", "reason"),
    [
        (1, gather(round=4), ONES, "another exchange"),
        (1, gather(attempt=0), ONES, "another exchange"),
        (1, gather(exchange=1), ONES, "another exchange"),
        (5, gather(), ONES, "not part of this exchange"),
        (0, gather(), ONES, "not part of this exchange"),
        (1, gather(slice=7), ONES, "names a slice that is not"),
        (1, gather(slice=1), ONES, "rank 1's slice to rank 0"),
        (1, gather(offset=4), ONES, "at 4 of a slice of 4"),
        (1, gather(offset=1), ONES, "at 1 of a slice of 4"),
        (1, gather(), ONES[:8], "cannot be read"),
        (1, gather(), b"", "cannot be read"),
        (1, gather(), coded(torch.ones(5)), "cannot be read"),
        (1, gather(samples=0), ONES, "claims 0 samples"),
        (1, gather(samples=MOST_SAMPLES + 1), ONES, "claims 1001 samples of at most 1000"),
        (1, gather(left_out=[2]), ONES, "leaves members out of its own values"),
        (1, gather(), coded(torch.full((4,), 3e38)), "too large to be true"),
        (1, gather(), ONES[:-4] + values_to_bytes(torch.tensor([float("nan")])), "cannot be read"),
        (1, result(slice=2), ONES, "which it does not own"),
        (1, result(slice=0), ONES, "which it does not own"),
        (1, result(), ONES[:-1], "cannot be read"),
        (1, result(left_out=[3]), ONES, "leaves out"),
        (1, result(left_out=[1]), ONES, "leaves out"),
        (1, result(left_out=[2, 2]), ONES, "leaves out"),
        (1, result(left_out=[2, 0]), ONES, "leaves out"),
        (1, result(left_out=[0, 2]), ONES, "a mean of 1 members"),
        (1, result(samples=2), ONES, "a mean of 3 members with 2 samples"),
        (1, result(samples=3 * MOST_SAMPLES + 1), ONES, "a mean of 3 members with 3001 samples"),
    ],
)
def test_what_a_member_may_not_say(sender, said, payload, reason):
    exchange = begun()
    with pytest.raises(PeerMisbehaved, match=rf"rank {sender} .*{reason}"):
        exchange.receive(sender, said, payload, 0.1)
    # It has changed nothing: the exchange still ends well.
    assert exchange.received_bytes == 0
    assert exchange.receive(1, gather(), ONES, 0.2) == []
    assert len(exchange.receive(2, gather(), ONES, 0.3)) == 2
    for owner in (1, 2):
        exchange.receive(owner, result(slice=owner), ONES, 0.4)
    assert exchange.complete
    assert exchange.left_out == set()
    assert torch.equal(exchange.mean()[4:], torch.ones(8))
    assert not exchange.leftover().any()


def test_nothing_may_be_said_twice():
    exchange = begun()
    exchange.receive(1, gather(), ONES, 0.1)
    with pytest.raises(PeerMisbehaved, match="rank 1 sent its values at 0 twice"):
        exchange.receive(1, gather(), ONES, 0.1)
    exchange.receive(1, result(), ONES, 0.1)
    with pytest.raises(PeerMisbehaved, match="rank 1 sent its result at 0 twice"):
        exchange.receive(1, result(), ONES, 0.1)


def test_a_member_keeps_to_its_number_of_samples():
    exchange = begun(24)
    exchange.receive(1, gather(samples=10), ONES, 0.1)
    with pytest.raises(PeerMisbehaved, match="rank 1 changed its number of samples"):
        exchange.receive(1, gather(samples=11, offset=4), ONES, 0.1)


def test_a_mean_cannot_hold_values_that_were_never_sent():
    exchange = SliceExchange(terms(0, [0, 1, 2], 12), torch.ones(12), 10, ArrivalTimes(), 0.0)
    with pytest.raises(PeerMisbehaved, match="rank 1 sent a mean with values at 0 that it cannot have"):
        exchange.receive(1, result(), ONES, 0.1)
    exchange.receive(1, result(left_out=[0]), ONES, 0.1)
    assert [out.to for out in exchange.outgoing()] == [2]


def test_a_listener_is_sent_results_only():
    exchange = SliceExchange(terms(9, [0, 1, 2], 12, listeners=(9,)), None, 0, ArrivalTimes(), 0.0)
    with pytest.raises(PeerMisbehaved, match="rank 1 sent values of rank 0's slice to rank 9"):
        exchange.receive(1, gather(), ONES, 0.1)
    assert list(exchange.outgoing()) == []
    assert exchange.deadline() is None
    assert exchange.due(1e9) == []


def test_the_owner_too_goes_on_with_what_the_result_decodes_to():
    meeting = Meeting(vectors([0, 1], 8), result=TWO_BITS)
    meeting.play()
    exact = weighted_mean(meeting.sendings, meeting.samples)[:4]
    payload, decoded = encode(exact, TWO_BITS)
    assert torch.equal(decode(payload, 4), decoded)
    assert torch.equal(meeting.exchanges[0].mean()[:4], decoded)
    # Two members of equal weight: half of what the owner sends next is in the mean.
    assert torch.allclose(meeting.exchanges[0].leftover()[:4], (exact - decoded) * 2, atol=1e-6)


def test_a_member_of_any_rank_may_be_left_out():
    meeting = Meeting(vectors([0, 300, 4095], 30))
    meeting.play(lambda sender, to, part: None if sender == 4095 and part.phase == "gather" else 0.0)
    assert meeting.exchanges[0].left_out == {4095}
    assert all(exchange.complete for exchange in meeting.everyone())
