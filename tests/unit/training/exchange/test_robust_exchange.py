"""Exchanges by rules that bear liars: all go on with the same bits, and what a coding drops is not lost."""

from __future__ import annotations

import random

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from axonp2p.errors import PeerMisbehaved
from axonp2p.jobs.aggregation import AGGREGATIONS, MEAN, Rule, rule_for
from axonp2p.tensors.coding import Coding
from axonp2p.tensors.dense import values_to_bytes
from axonp2p.tensors.encoding import encode
from axonp2p.training.exchange.error_feedback import Past
from axonp2p.training.messages import SlicePart
from axonp2p.training.robust.aggregate import aggregate
from tests.unit.training.exchange.meeting import Meeting, terms, vectors

ROBUST = AGGREGATIONS[1:]
EIGHT = tuple(range(8))


def check_all_equal(meeting):
    one, *others = meeting.everyone()
    assert all(values_to_bytes(other.mean()) == values_to_bytes(one.mean()) for other in others)
    assert all(other.digests == one.digests for other in others)


def part_by_part(meeting, rule, centre):
    """What owners must come to: the rule over what each member's values decode to."""
    own = meeting.terms_for(0)
    found = torch.zeros(meeting.length)
    for owner, (begin, _) in own.slices.items():
        for offset, count in own.parts_of(owner).items():
            here = slice(begin + offset, begin + offset + count)
            rows = []
            for rank in meeting.members:
                mine = meeting.sendings[rank][here]
                coding = meeting.codings.get(rank, Coding()) if begin + offset < own.exact_from else Coding()
                rows.append(mine if rank == owner else encode(mine.clone(), coding)[1])
            weights = [meeting.samples[rank] for rank in meeting.members]
            found[here] = aggregate(rule, rows, weights, centre[here])
    return found


@pytest.mark.slow
@settings(max_examples=60, deadline=None)
@given(
    name=st.sampled_from(ROBUST),
    bits=st.sampled_from([32, 8, 2, 1]),
    members=st.integers(1, 8),
    length=st.integers(1, 60),
    part=st.integers(1, 20),
    seed=st.integers(0, 2**32),
)
def test_owners_come_to_what_the_rule_makes_of_what_was_sent(name, bits, members, length, part, seed):
    chance = random.Random(seed)
    rule = rule_for(name, None, members)
    meeting = Meeting(
        vectors(range(members), length, seed),
        {rank: chance.randint(1, 9) for rank in range(members)},
        rule=rule,
        part=part,
        exact_from=chance.randint(0, length),
    )
    meeting.codings = dict.fromkeys(range(members), Coding(bits))
    centre = vectors([0], length, seed + 1)[0]
    meeting.pasts = {rank: Past(centre=centre) for rank in range(members)}
    meeting.play(lambda *_: chance.random() * 9)
    check_all_equal(meeting)
    assert torch.equal(meeting.everyone()[0].mean(), part_by_part(meeting, rule, centre))


@pytest.mark.parametrize("name", ROBUST)
def test_what_the_coding_of_a_result_dropped_comes_with_the_next(name):
    rule = rule_for(name, None, 8)
    sendings = vectors(EIGHT, 64, 1)
    first = Meeting(sendings, rule=rule, result=Coding(bits=1))
    first.play()
    check_all_equal(first)
    exact = part_by_part(first, rule, torch.zeros(64))
    pasts = {rank: exchange.past() for rank, exchange in first.exchanges.items()}
    owed = sum(past.owed for past in pasts.values())
    assert torch.allclose(first.everyone()[0].mean() + owed, exact, atol=1e-6)
    for rank, exchange in first.exchanges.items():
        assert torch.equal(pasts[rank].centre, first.everyone()[0].mean())
        assert not exchange.leftover().any()  # its own values have all gone out, in 32 bits

    silent = Meeting({rank: torch.zeros(64) for rank in EIGHT}, rule=rule)
    silent.pasts = {rank: Past(owed=past.owed) for rank, past in pasts.items()}
    silent.play()
    assert torch.allclose(silent.everyone()[0].mean(), owed, atol=1e-6)
    assert not any(exchange.past().owed.any() for exchange in silent.everyone())


def test_what_is_owed_where_slices_move_waits_at_its_owner():
    rule = rule_for("median", None, 4)
    meeting = Meeting({rank: torch.zeros(8) for rank in range(4)}, rule=rule, shares=[0, 1, 0, 0])
    meeting.pasts = {0: Past(owed=torch.ones(8))}
    meeting.play()
    assert not meeting.everyone()[0].mean().any()
    assert torch.equal(meeting.exchanges[0].past().owed, torch.ones(8))


@pytest.mark.parametrize("name", ROBUST)
def test_what_a_coding_dropped_of_own_values_stays_with_who_sent_them(name):
    meeting = Meeting(vectors(EIGHT, 64, 2), rule=rule_for(name, None, 8))
    meeting.codings = dict.fromkeys(EIGHT, Coding(bits=2))
    meeting.play()
    own = meeting.terms_for(0)
    for rank, exchange in meeting.exchanges.items():
        for owner, (begin, _) in own.slices.items():
            for offset, count in own.parts_of(owner).items():
                here = slice(begin + offset, begin + offset + count)
                mine = meeting.sendings[rank][here].clone()
                dropped = torch.zeros(count) if owner == rank else mine - encode(mine, Coding(bits=2))[1]
                assert torch.equal(exchange.leftover()[here], dropped)


def test_large_values_alone_are_enough_for_a_rule_that_looks_at_rows():
    meeting = Meeting(vectors(EIGHT, 512, 3), rule=rule_for("centred-clipping", None, 8), part=64)
    meeting.codings = dict.fromkeys(EIGHT, Coding(bits=8, density=0.25))
    meeting.play()
    check_all_equal(meeting)
    assert meeting.everyone()[0].mean().any()
    assert all(exchange.leftover().count_nonzero() > 256 for exchange in meeting.everyone())


def test_who_is_late_is_left_out_and_keeps_its_values():
    meeting = Meeting(vectors(EIGHT, 64, 4), rule=Rule("trimmed-mean", 2))
    meeting.play(lambda sender, to, part: 60.0 if sender == 7 and part.phase == "gather" else 0.0)
    check_all_equal(meeting)
    own = slice(*meeting.terms_for(7).slices[7])
    left = meeting.exchanges[7].leftover()
    assert torch.equal(left[: own.start], meeting.sendings[7][: own.start])
    assert all(exchange.left_out == {7} for rank, exchange in meeting.exchanges.items() if rank != 7)


def test_no_part_is_closed_with_fewer_than_the_rule_needs():
    assert [terms(0, EIGHT, 8, rule=Rule(name, 2)).fewest for name in ROBUST] == [5, 5, 5, 7]
    assert terms(0, EIGHT, 8, rule=MEAN).fewest == 4
    meeting = Meeting(vectors(EIGHT, 64, 5), rule=Rule("multi-krum", 2))
    meeting.play(lambda sender, to, part: None if sender > 5 and part.phase == "gather" else 0.0)
    assert not any(exchange.complete for exchange in meeting.everyone())


def test_a_result_of_fewer_is_not_taken():
    meeting = Meeting(vectors(EIGHT, 8, 6), rule=Rule("median", 2))
    meeting.play(lambda *_: None)
    forged = SlicePart(
        round=3, attempt=1, exchange=2, phase="result", slice=0, offset=0, samples=4, left_out=[4, 5, 6, 7]
    )
    with pytest.raises(PeerMisbehaved, match="mean of 4 members"):
        meeting.exchanges[1].receive(0, forged, encode(torch.zeros(1), Coding())[0], 0.0)


def test_the_mean_leaves_nothing_to_remember():
    meeting = Meeting(vectors(EIGHT, 64, 7), result=Coding(bits=1))
    meeting.play()
    assert all(not len(exchange.past().centre) and not len(exchange.past().owed) for exchange in meeting.everyone())
