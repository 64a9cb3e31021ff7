"""Evidence: what peers signed in a job, examined by somebody who was not there."""

from __future__ import annotations

import random

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from axonp2p.errors import BadSignature, MalformedMessage, PeerMisbehaved, Refused
from axonp2p.verification.claims import SegmentRedone
from axonp2p.verification.evidence import Evidence, examine, examine_voiding, read_evidence
from axonp2p.verification.judgement import Outcome
from axonp2p.verification.signed_frames import SignedFrame
from axonp2p.wire.codec import Message, encode
from axonp2p.wire.frame import pack_frame
from client_cli.text.verdict_text import verdict_data, verdict_text
from tests.fakes import key_of
from tests.laboratory.convictions import (
    END,
    FURTHER,
    LAZY,
    START,
    WITNESSES,
    claim,
    mark,
    opinion,
    own,
    own_ends,
    said,
    voiding_of,
)

JOB, CLIENT = "digits-1", key_of("client")
SPEAKERS = " ".join(("otter", *WITNESSES))
RESERVATION = "3f2a9c1e-7b55-4f0e-9a6d-2d8f0c4b1e77"


def signed(name: str, message: Message) -> SignedFrame:
    return said(key_of(name), message, CLIENT, JOB, RESERVATION, name)


def evidence(end: list[float], *opinions: SegmentRedone, accused: str = "otter", proven: str = SPEAKERS) -> Evidence:
    """Of whom `proven` names it is shown that they came to an end of their own again."""
    others = [signed(name, one) for name, one in zip(WITNESSES, opinions, strict=False)]
    ends = {"otter": end} | {name: END for name, _ in zip(WITNESSES, opinions, strict=False)}
    return Evidence(
        job=JOB, client=CLIENT.peer_id, accused=key_of(accused).peer_id, step=0, report=signed("otter", claim(end)),
        opinions=others, reports=[signed(name, claim(END)) for name in ends if name != "otter"],
        proofs=[
            signed(name, one) for name, ended in ends.items() if name in proven.split()
            for one in ([own(ended)] if name == "otter" else own_ends(ended))
        ],
    )  # fmt: skip


def test_two_that_were_led_to_the_same_place_convict_one_that_says_another() -> None:
    examined = examine(read_evidence(encode(evidence(LAZY, opinion(END), opinion(END)))))
    assert examined.convicts
    assert (examined.round, examined.first, examined.last) == (2, 0, 8)
    assert examined.judgement.distance == pytest.approx(0.5)
    assert examined.judgement.step == pytest.approx(0.1)
    assert verdict_text(examined).endswith(
        f"This convicts otter ({key_of('otter').peer_id}): the result is not what it said."
    )
    assert verdict_data(examined)["convicts"] is True


def test_one_alone_convicts_nobody() -> None:
    examined = examine(evidence(LAZY, opinion(END)))
    assert not examined.convicts
    assert examined.judgement.outcome is Outcome.UNDECIDED
    assert verdict_text(examined).endswith("This does not convict otter: undecided.")


@pytest.mark.parametrize("proven", ["", "otter", "otter lynx", "lynx hare"])
def test_nobody_is_convicted_unless_it_and_two_who_accuse_came_to_ends_of_their_own_again(proven: str) -> None:
    examined = examine(evidence(LAZY, opinion(END), opinion(END), proven=proven))
    assert examined.judgement.outcome is Outcome.CONVICTED
    assert not examined.convicts
    assert verdict_text(examined).endswith(
        "This does not convict otter: it and two of its accusers must have reproduced steps of their own, and "
        f"the evidence shows that only of {' and '.join(proven.split()) or 'nobody'}."
    )
    assert examine(evidence(LAZY, opinion(END), opinion(END), proven="otter lynx hare")).convicts


def test_ends_that_are_not_ones_own_show_nothing() -> None:
    good = evidence(LAZY, opinion(END), opinion(END))
    elsewhere = signed("lynx", own(END, led=START))
    disputed = signed("otter", opinion(LAZY))
    of_another = signed("lynx", own(LAZY))
    otter, lynx, lynx_too, *hare = good.proofs
    for bad in (elsewhere, of_another):
        for proofs in ([otter, lynx, bad, *hare], [otter, lynx, lynx_too, bad, *hare]):
            assert not examine(msgspec.structs.replace(good, proofs=proofs)).convicts
    assert not examine(msgspec.structs.replace(good, proofs=[otter, lynx, lynx, *hare])).convicts
    assert not examine(msgspec.structs.replace(good, proofs=[disputed, *good.proofs[1:]])).convicts
    assert not examine(msgspec.structs.replace(good, reports=good.reports[:1])).convicts
    stranger = signed("another", own(END))
    for broken in (
        {"proofs": [*good.proofs, stranger]},
        {"proofs": [good.report]},
        {"reports": [good.opinions[0]]},
    ):
        with pytest.raises(MalformedMessage):
            examine(msgspec.structs.replace(good, **broken))
    forged = msgspec.structs.replace(lynx, frame=pack_frame(own(END, led=FURTHER[::-1])), signature=bytes(64))
    with pytest.raises(BadSignature):
        examine(msgspec.structs.replace(good, proofs=[forged]))


def test_an_honest_claim_acquits_and_convicts_who_accused_it_falsely() -> None:
    made_up = [random.Random(1).gauss(0, 3) for _ in range(32)]
    against_otter = evidence(END, opinion(made_up), opinion(END), opinion(END), opinion(END))
    assert not examine(against_otter).convicts
    against_lynx = evidence(END, opinion(made_up), opinion(END), opinion(END), opinion(END), accused="lynx")
    assert examine(against_lynx).convicts
    assert "it said that the result is another, and it is not" in verdict_text(examine(against_lynx))


def test_what_was_not_signed_is_no_evidence() -> None:
    good = evidence(LAZY, opinion(END), opinion(END))
    forged = msgspec.structs.replace(good.report, frame=pack_frame(claim(END)))
    for bad in (
        msgspec.structs.replace(good, report=forged),
        msgspec.structs.replace(good, job="digits-2"),
        msgspec.structs.replace(good, client=key_of("another").peer_id),
        msgspec.structs.replace(
            good, opinions=[good.opinions[0], msgspec.structs.replace(good.opinions[1], peer=key_of("crow").peer_id)]
        ),
    ):
        with pytest.raises(BadSignature):
            examine(bad)


def test_what_does_not_belong_together_is_no_evidence() -> None:
    good = evidence(LAZY, opinion(END), opinion(END))
    twice = msgspec.structs.replace(good, opinions=[good.opinions[0]] * 2)
    itself = msgspec.structs.replace(good, opinions=[good.opinions[0], signed("otter", opinion(END))])
    elsewhere = evidence(LAZY, opinion(END), opinion(END, start=mark(0, START, "another")))
    other_step = evidence(LAZY, opinion(END), opinion(END, step=8))
    by_the_client = msgspec.structs.replace(
        good, opinions=[good.opinions[0], said(CLIENT, opinion(END), CLIENT, JOB, RESERVATION, "client")]
    )
    nobody = msgspec.structs.replace(good, accused=key_of("another").peer_id)
    no_claim = msgspec.structs.replace(good, step=4)
    swapped = msgspec.structs.replace(good, report=signed("otter", opinion(END)))
    for bad in (twice, itself, by_the_client, elsewhere, other_step, nobody, no_claim, swapped):
        with pytest.raises(MalformedMessage):
            examine(bad)


@given(st.binary(max_size=300))
def test_any_bytes_are_evidence_or_refused(data: bytes) -> None:
    with pytest.raises(PeerMisbehaved):
        examine(read_evidence(data))


def test_a_clients_word_needs_evidence_of_that_very_conviction() -> None:
    good = voiding_of(CLIENT, evidence(LAZY, opinion(END), opinion(END)))
    voiding, examined = examine_voiding(good.voided, good.evidence)
    assert voiding.spoils == (CLIENT.peer_id, JOB, key_of("otter").peer_id)
    assert examined.convicts
    alone = voiding_of(CLIENT, evidence(LAZY, opinion(END)))
    with pytest.raises(Refused, match="does not convict"):
        examine_voiding(alone.voided, alone.evidence)
    with pytest.raises(MalformedMessage, match="not the evidence"):
        examine_voiding(good.voided, alone.evidence)
    stranger = voiding_of(key_of("another"), evidence(LAZY, opinion(END), opinion(END)))
    with pytest.raises(BadSignature):
        examine_voiding(msgspec.structs.replace(stranger.voided, signer=CLIENT.peer_id), stranger.evidence)
    with pytest.raises(MalformedMessage, match="another client"):
        examine_voiding(stranger.voided, stranger.evidence)
