"""A client hands in a conviction: believed only with evidence that convicts, kept, told, and the receipts are void."""

from __future__ import annotations

import hashlib
from pathlib import Path

import msgspec
import pytest

from axonp2p.errors import MalformedMessage, MessageTooLarge, Refused
from axonp2p.ledger import log_client
from axonp2p.ledger.entry import decode_entry
from axonp2p.ledger.ledger_client import balances, hand_in, hand_in_voiding
from axonp2p.ledger.log_messages import MOST_ENTRIES
from axonp2p.ledger.voiding import EVIDENCE_LIMIT, Voided, VoidingHandedIn, VoidingKept
from axonp2p.verification.evidence import examine_voiding
from axonp2p.wire.codec import encode
from tests.fakes import key_of, make_receipt, sign_both
from tests.laboratory.convictions import END, evidence_against, voiding_of
from tests.unit.tracker.conftest import Running, Start
from tests.unit.tracker.logs import ADA, BEN, CLIENT, convicted, reserved, witnesses_reserved
from tracker.ledger.intake import TrackerTrust


async def earned(lab: Running, *jobs: str) -> list[int]:
    """What Ada earned in these jobs, or in all."""
    found = [await balances(lab.caller, [ADA.peer_id], job) for job in jobs or ("",)]
    return [one.balances[0].earned_flops for one in found]


async def test_what_a_convicted_peer_earned_in_the_job_counts_no_more(start: Start):
    lab = await start()
    uuid = await reserved(lab, ADA, BEN)
    receipts = [sign_both(CLIENT, ADA, make_receipt(CLIENT, ADA, uuid, number)) for number in range(1, 5)]
    other_job = sign_both(CLIENT, ADA, make_receipt(CLIENT, ADA, uuid, 5, job="job-2"))
    other_peer = sign_both(CLIENT, BEN, make_receipt(CLIENT, BEN, uuid, 1))
    await hand_in(lab.caller, [*receipts[:3], other_job, other_peer])
    assert await earned(lab, "job-1", "job-2", "") == [3 * 10**12, 10**12, 4 * 10**12]
    await convicted(lab, of=ADA, reservation=uuid)
    assert await earned(lab, "job-1", "job-2", "") == [0, 10**12, 10**12]
    # What comes later is kept, and is void too.
    assert (await hand_in(lab.caller, receipts)).new == 1
    assert await earned(lab, "job-1", "") == [0, 10**12]
    (owes,) = (await balances(lab.caller, [CLIENT.peer_id])).balances
    assert owes.owed_flops == 2 * 10**12
    await lab.stop()
    again = await start(clock=lab.clock)
    assert await earned(again, "job-1", "") == [0, 10**12]


async def test_the_evidence_can_be_fetched_and_examined_by_anybody(lab: Running):
    uuid = await reserved(lab, ADA)
    await hand_in(lab.caller, [sign_both(CLIENT, ADA, make_receipt(CLIENT, ADA, uuid))])
    handed_in = await convicted(lab, of=ADA, reservation=uuid)
    for key in (ADA.peer_id, CLIENT.peer_id):
        lab.clock.time += 2
        (one,) = (await log_client.history(lab.caller, key, prove=True, only_voidings=True)).entries
        entry = decode_entry(one.entry)
        assert entry == Voided(voided=handed_in.voided)
        assert (await log_client.inclusion(lab.caller, one.entry)).included.number == one.number
    sha256 = hashlib.sha256(handed_in.evidence).digest()
    told = await log_client.evidence(lab.caller, sha256)
    _, examined = examine_voiding(handed_in.voided, told.evidence)
    assert examined.convicts
    assert len(told.tokens) == 2
    assert len((await log_client.history(lab.caller, ADA.peer_id)).entries) == 2
    assert not (await log_client.history(lab.caller, BEN.peer_id, only_voidings=True)).entries
    with pytest.raises(Refused, match="no such evidence"):
        await log_client.evidence(lab.caller, bytes(32))


async def test_a_second_conviction_in_the_same_job_changes_nothing(lab: Running):
    uuid = await reserved(lab, ADA)
    handed_in = await convicted(lab, of=ADA, reservation=uuid)
    assert await hand_in_voiding(lab.caller, handed_in) == VoidingKept(new=False)
    other = evidence_against(ADA, CLIENT, "job-1", uuid, end=[0.4] * 32)
    assert await hand_in_voiding(lab.caller, voiding_of(CLIENT, other)) == VoidingKept(new=False)


async def refused(lab: Running, handed_in: VoidingHandedIn) -> str:
    kept = await hand_in_voiding(lab.caller, handed_in)
    assert not kept.new
    return kept.reason


async def test_without_evidence_that_convicts_nothing_is_void(lab: Running):
    uuid = await reserved(lab, ADA)
    await hand_in(lab.caller, [sign_both(CLIENT, ADA, make_receipt(CLIENT, ADA, uuid))])
    token = await witnesses_reserved(lab)
    by = msgspec.msgpack.decode(token.payload)["uuid"]
    tokens = [encode(token)]

    def against(opinions: int = 2, client: str = "client", job: str = "job-1") -> VoidingHandedIn:
        evidence = evidence_against(ADA, key_of(client), job, uuid, by=by, opinions=[END] * opinions)
        return voiding_of(key_of(client), evidence, tokens)

    good, mallory = against(), key_of("mallory")
    assert "does not convict" in await refused(lab, against(opinions=1))
    assert "not the evidence" in await refused(lab, msgspec.structs.replace(good, evidence=against(1).evidence))
    by_mallory = msgspec.structs.replace(good, voided=msgspec.structs.replace(good.voided, signer=mallory.peer_id))
    assert "signature" in await refused(lab, by_mallory)
    # A client cannot use what peers signed in another's job, nor in another job of its own.
    stolen = voiding_of(mallory, msgspec.structs.replace(evidence_against(ADA, CLIENT, "job-1", uuid, by=by)))
    assert "another client" in await refused(lab, stolen)
    other_job = evidence_against(ADA, CLIENT, "job-2", uuid, by=by)
    assert "signature" in await refused(lab, voiding_of(CLIENT, msgspec.structs.replace(other_job, job="job-1")))
    assert "convict" in await refused(lab, against(opinions=1, job="job-2"))
    # Nor peers that nobody reserved for it, nor the reservation of somebody else.
    invented = "00000000-0000-4000-8000-00000000000f"
    nobody = evidence_against(ADA, CLIENT, "job-1", uuid, by=invented)
    assert "did not give its reservation" in await refused(lab, voiding_of(CLIENT, nobody))
    not_in_it = evidence_against(ADA, CLIENT, "job-1", uuid)
    assert "was not reserved" in await refused(lab, voiding_of(CLIENT, not_in_it))
    assert "belongs to another client" in await refused(lab, against(client="mallory"))
    assert await earned(lab) == [10**12]
    assert (await hand_in_voiding(lab.caller, good)).new


def test_whoever_speaks_or_hires_is_no_witness_that_it_was_reserved():
    tracker, friend, client, peer = (key_of(name).peer_id for name in ("tracker", "friend", "client", "ada"))
    trust = TrackerTrust(own=tracker, trusted=lambda one: one in (friend, client, peer))
    assert [trust.stands(issuer, client, peer) for issuer in (tracker, friend)] == [True, True]
    assert [trust.stands(issuer, client, peer) for issuer in (client, peer)] == [False, False]
    assert not trust.stands(key_of("stranger").peer_id, client, peer)


async def test_evidence_that_is_too_large_is_not_read(lab: Running):
    good = voiding_of(CLIENT, evidence_against(ADA, CLIENT, "job-1", await reserved(lab, ADA)))
    with pytest.raises(MalformedMessage):
        await hand_in_voiding(lab.caller, msgspec.structs.replace(good, evidence=bytes(EVIDENCE_LIMIT + 1)))
    with pytest.raises(MessageTooLarge):
        await hand_in_voiding(lab.caller, msgspec.structs.replace(good, evidence=bytes(2 * EVIDENCE_LIMIT)))


async def test_entries_are_told_receipts_and_voidings_apart(lab: Running):
    uuid = await reserved(lab, ADA)
    receipts = [sign_both(CLIENT, ADA, make_receipt(CLIENT, ADA, uuid, number)) for number in range(1, 4)]
    await hand_in(lab.caller, receipts[:2])
    await convicted(lab, of=ADA, reservation=uuid)
    await hand_in(lab.caller, receipts[2:])
    lacking, pages = [0, 1, 2, 3], []
    while lacking:
        told = await log_client.entries(lab.caller, lacking[:MOST_ENTRIES])
        pages.append([type(decode_entry(entry)).__name__ for entry in told.entries])
        del lacking[: len(told.entries)]
    assert pages == [["DoublySigned"] * 2, ["Voided"], ["DoublySigned"]]


async def test_a_tracker_that_knows_no_token_takes_those_that_come_along(start: Start, tmp_path: Path):
    for name in ("first", "second"):
        (tmp_path / name).mkdir()
    first, second = await start(tmp_path / "first"), await start(tmp_path / "second")
    uuid = await reserved(first, ADA)
    handed_in = await convicted(first, of=ADA, reservation=uuid)
    assert "did not give its reservation" in await refused(second, handed_in)
    told = await log_client.evidence(first.caller, hashlib.sha256(handed_in.evidence).digest())
    not_trusted = await refused(second, msgspec.structs.replace(handed_in, tokens=told.tokens))
    assert "no tracker that this one trusts" in not_trusted
    second.trusts(first)
    kept = await hand_in_voiding(second.caller, msgspec.structs.replace(handed_in, tokens=told.tokens))
    assert kept == VoidingKept(new=True)
    assert (await log_client.evidence(second.caller, hashlib.sha256(told.evidence).digest())) == told
