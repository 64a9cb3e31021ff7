"""What makes receipts void: a client's signed word, an entry of a log, and a set that a fold over receipts heeds."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from axonp2p.errors import BadSignature, MalformedMessage, PeerMisbehaved
from axonp2p.ledger.credit_proof import counting
from axonp2p.ledger.entry import ENTRY_LIMIT, decode_entry, key_of_place, open_entry, read_entry
from axonp2p.ledger.receipt import place_key
from axonp2p.ledger.voiding import Voided, Voiding, open_voiding, spoiled_by
from axonp2p.wire.codec import encode
from axonp2p.wire.envelope import sign
from tests.fakes import key_of, make_receipt, sign_both

CLIENT, ADA, BEN = key_of("client"), key_of("ada"), key_of("ben")
RESERVATION = "00000000-0000-4000-8000-000000000001"
JOBS = ["job-1", "job-2"]


def word(peer: str = ADA.peer_id, job: str = "job-1") -> Voiding:
    return Voiding(client=CLIENT.peer_id, job=job, peer=peer, evidence=bytes(32))


def test_only_the_client_of_the_job_makes_its_receipts_void() -> None:
    assert open_voiding(sign(CLIENT, word())) == word()
    with pytest.raises(BadSignature):
        open_voiding(sign(BEN, word()))
    with pytest.raises(MalformedMessage):
        open_voiding(sign(CLIENT, word(peer=CLIENT.peer_id)))


def test_the_two_kinds_of_entries_are_told_apart_and_come_back_as_they_were() -> None:
    receipt = make_receipt(CLIENT, ADA, RESERVATION)
    for entry, says in ((sign_both(CLIENT, ADA, receipt), receipt), (Voided(voided=sign(CLIENT, word())), word())):
        data = encode(entry)
        assert decode_entry(data) == entry
        assert open_entry(decode_entry(data)) == read_entry(decode_entry(data)) == says
    longest = Voided(voided=sign(CLIENT, word(job="j" * 64)))
    assert len(encode(longest)) < ENTRY_LIMIT


@given(st.binary(max_size=400))
def test_any_bytes_are_an_entry_or_refused(data: bytes) -> None:
    for begins in (b"", b"\x81\xa6voided"):
        with pytest.raises(PeerMisbehaved):
            open_entry(decode_entry(begins + data))


def test_each_client_peer_and_job_has_a_key_of_its_own() -> None:
    others = [word(), word(peer=BEN.peer_id), word(job="job-2")]
    receipt = make_receipt(CLIENT, ADA, RESERVATION)
    assert len({key_of_place(one) for one in (*others, receipt)}) == 4
    assert key_of_place(receipt) == place_key(receipt)
    assert all(-(2**63) <= key_of_place(one) < 2**63 for one in others)


some = st.tuples(st.sampled_from([ADA, BEN]), st.integers(1, 3), st.sampled_from(JOBS), st.integers(1, 3))


@given(st.lists(some, max_size=12), st.sets(st.tuples(st.sampled_from([ADA, BEN]), st.sampled_from(JOBS))), st.data())
def test_what_counts_does_not_depend_on_any_order(made: list, void: set, data: st.DataObject) -> None:  # type: ignore[type-arg]
    receipts = [
        make_receipt(CLIENT, peer, RESERVATION, number, job=job, flops=flops) for peer, number, job, flops in made
    ]
    pairs = [(receipt, encode(receipt)) for receipt in receipts]
    spoiled = {(CLIENT.peer_id, job, peer.peer_id) for peer, job in void}
    counted = counting(pairs, spoiled)
    assert counting(data.draw(st.permutations(pairs)), spoiled) == counted
    # Which one of several with one number it is does not depend on what is void; only whether it counts.
    assert counted == {payload for receipt, payload in pairs if spoiled_by(receipt) not in spoiled} & counting(pairs)
