"""Evidence: what peers signed in a job, examined by somebody who was not there."""

from __future__ import annotations

import hashlib
import random
import struct

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from axonp2p.client.evidence import Evidence, SignedFrame, examine, read_evidence, said_by
from axonp2p.errors import BadSignature, MalformedMessage, PeerMisbehaved
from axonp2p.ledger.said import sign_said
from axonp2p.training.checking.opinions import Outcome
from axonp2p.training.messages import Mark, RoundDone, SegmentRedone
from axonp2p.wire.codec import Message, encode
from axonp2p.wire.frame import pack_frame
from client_cli.verdict_text import verdict_data, verdict_text
from tests.fakes import key_of

JOB, CLIENT = "digits-1", key_of("client").peer_id
RESERVATION = "3f2a9c1e-7b55-4f0e-9a6d-2d8f0c4b1e77"
START, BEFORE, END = [0.0] * 32, [0.9] * 32, [1.0] * 32
LAZY = [0.5] * 32


def mark(step: int, weights: list[float], name: str = "") -> Mark:
    named = hashlib.sha256(f"{name}{weights}".encode()).digest()
    return Mark(leg=0, step=step, name=named, size=100, sketch=struct.pack("<32d", *weights), memory=[])


def signed(name: str, message: Message, job: str = JOB) -> SignedFrame:
    key = key_of(name)
    frame = pack_frame(message)
    blank = SignedFrame(peer=key.peer_id, name=name, reservation=RESERVATION, frame=frame, signature=bytes(64))
    return msgspec.structs.replace(blank, signature=sign_said(key, said_by(job, CLIENT, blank)))


def claim(end: list[float]) -> RoundDone:
    return RoundDone(
        round=2, attempt=0, state=bytes(32), loss=1.0, samples=32, flops=1, train_seconds=1.0, exchange_seconds=0.0,
        exchanges=1, left_out=[], kept_back=0, slices=[], sent_bytes=0, received_bytes=0, metrics={}, test_samples=0,
        marks=[mark(0, START), mark(8, end)],
    )  # fmt: skip


def opinion(end: list[float], step: int = 0, start: Mark | None = None) -> SegmentRedone:
    began = start or mark(0, START)
    return SegmentRedone(
        of=1, round=2, attempt=0, step=step, start=began.name, end=mark(8, end),
        before_last=struct.pack("<32d", *BEFORE),
    )  # fmt: skip


def evidence(end: list[float], *opinions: SegmentRedone, accused: str = "otter") -> Evidence:
    others = [signed(name, one) for name, one in zip(("lynx", "hare", "crow", "wren"), opinions, strict=False)]
    return Evidence(
        job=JOB, client=CLIENT, accused=key_of(accused).peer_id, step=0, report=signed("otter", claim(end)),
        opinions=others,
    )  # fmt: skip


def test_two_that_were_led_to_the_same_place_convict_one_that_says_another() -> None:
    examined = examine(read_evidence(encode(evidence(LAZY, opinion(END), opinion(END)))))
    assert examined.convicts
    assert (examined.round, examined.first, examined.last) == (2, 0, 8)
    assert examined.judgement.distance == pytest.approx(0.5)
    assert examined.judgement.step == pytest.approx(0.1)
    assert verdict_text(examined).endswith(
        f"This convicts otter ({key_of('otter').peer_id}): they do not lead where it said."
    )
    assert verdict_data(examined)["convicts"] is True


def test_one_alone_convicts_nobody() -> None:
    examined = examine(evidence(LAZY, opinion(END)))
    assert not examined.convicts
    assert examined.judgement.outcome is Outcome.UNDECIDED
    assert verdict_text(examined).endswith("This does not convict otter: undecided.")


def test_an_honest_claim_acquits_and_convicts_who_accused_it_falsely() -> None:
    made_up = [random.Random(1).gauss(0, 3) for _ in range(32)]
    against_otter = evidence(END, opinion(made_up), opinion(END), opinion(END), opinion(END))
    assert not examine(against_otter).convicts
    against_lynx = evidence(END, opinion(made_up), opinion(END), opinion(END), opinion(END), accused="lynx")
    assert examine(against_lynx).convicts
    assert "it said that they lead elsewhere, and they do not" in verdict_text(examine(against_lynx))


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
    nobody = msgspec.structs.replace(good, accused=key_of("another").peer_id)
    no_claim = msgspec.structs.replace(good, step=4)
    swapped = msgspec.structs.replace(good, report=signed("otter", opinion(END)))
    for bad in (twice, itself, elsewhere, other_step, nobody, no_claim, swapped):
        with pytest.raises(MalformedMessage):
            examine(bad)


@given(st.binary(max_size=300))
def test_any_bytes_are_evidence_or_refused(data: bytes) -> None:
    with pytest.raises(PeerMisbehaved):
        examine(read_evidence(data))
