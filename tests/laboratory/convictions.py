"""Evidence made by hand: what peers of a job signed of one segment, and the client's word on it."""

from __future__ import annotations

import hashlib
import struct
from collections.abc import Sequence

import msgspec

from axonp2p.identity.keys import PrivateKey
from axonp2p.ledger.said import sign_said
from axonp2p.ledger.voiding import Voiding, VoidingHandedIn
from axonp2p.verification.claims import Mark, RoundDone, SegmentRedone
from axonp2p.verification.evidence import Evidence
from axonp2p.verification.signed_frames import SignedFrame, said_by
from axonp2p.wire.codec import Message, encode
from axonp2p.wire.envelope import sign
from axonp2p.wire.frame import pack_frame
from tests.fakes import key_of

START, BEFORE, END = [0.0] * 32, [0.9] * 32, [1.0] * 32
LAZY = [0.5] * 32
FURTHER = [2.0] * 32
WITNESSES = ("lynx", "hare", "crow", "wren")


def mark(step: int, weights: list[float], name: str = "") -> Mark:
    """Where weights had come to."""
    named = hashlib.sha256(f"{name}{weights}".encode()).digest()
    return Mark(leg=0, step=step, name=named, size=100, sketch=struct.pack("<32d", *weights), memory=[])


def claim(end: list[float]) -> RoundDone:
    """A report of a round of two segments, of which the second one begins anywhere and is honest."""
    return RoundDone(
        round=2, attempt=0, state=bytes(32), loss=1.0, samples=32, flops=1, train_seconds=1.0, exchange_seconds=0.0,
        exchanges=1, left_out=[], kept_back=0, slices=[], sent_bytes=0, received_bytes=0, metrics={}, test_samples=0,
        marks=[mark(0, START), mark(8, end), mark(16, FURTHER)],
    )  # fmt: skip


def opinion(end: list[float], step: int = 0, start: Mark | None = None, of: int = 1) -> SegmentRedone:
    """Where one who did it again was led."""
    began = start or mark(0, START)
    return SegmentRedone(
        of=of, round=2, attempt=0, step=step, start=began.name, end=mark(8, end),
        before_last=struct.pack("<32d", *BEFORE),
    )  # fmt: skip


def own(end: list[float], led: list[float] = FURTHER, of: int = 0) -> SegmentRedone:
    """Who reported `claim(end)` has done its second segment again."""
    return SegmentRedone(
        of=of, round=2, attempt=0, step=8, start=mark(8, end).name, end=mark(16, led),
        before_last=struct.pack("<32d", *BEFORE),
    )  # fmt: skip


def own_ends(end: list[float], of: int = 0) -> list[SegmentRedone]:
    """Both of its segments."""
    return [opinion(end, of=of), own(end, of=of)]


def said(key: PrivateKey, message: Message, client: PrivateKey, job: str, reservation: str, name: str) -> SignedFrame:
    """Signed by the daemon with this key."""
    frame = pack_frame(message)
    blank = SignedFrame(peer=key.peer_id, name=name, reservation=reservation, frame=frame, signature=bytes(64))
    return msgspec.structs.replace(blank, signature=sign_said(key, said_by(job, client.peer_id, blank)))


def evidence_against(
    accused: PrivateKey,
    client: PrivateKey,
    job: str,
    reservation: str,
    *,
    by: str = "",
    end: list[float] = LAZY,
    opinions: Sequence[list[float]] = (END, END),
) -> Evidence:
    """That its steps led to `end`, and others, in the reservation `by` (or in the same), were led elsewhere."""
    names = [name for name, _ in zip(WITNESSES, opinions, strict=False)]
    speakers = [(accused, "otter", reservation, end)]
    speakers += [(key_of(name), name, by or reservation, END) for name in names]
    return Evidence(
        job=job,
        client=client.peer_id,
        accused=accused.peer_id,
        step=0,
        report=said(accused, claim(end), client, job, reservation, "otter"),
        opinions=[
            said(key_of(name), opinion(one), client, job, by or reservation, name)
            for name, one in zip(names, opinions, strict=True)
        ],
        reports=[said(key, claim(ended), client, job, uuid, name) for key, name, uuid, ended in speakers[1:]],
        proofs=[
            said(key, one, client, job, uuid, name)
            for key, name, uuid, ended in speakers
            for one in ([own(ended)] if key is accused else own_ends(ended))
        ],
    )


def voiding_of(client: PrivateKey, evidence: Evidence, tokens: Sequence[bytes] = ()) -> VoidingHandedIn:
    """What a client hands in."""
    data = encode(evidence)
    word = Voiding(
        client=client.peer_id, job=evidence.job, peer=evidence.accused, evidence=hashlib.sha256(data).digest()
    )
    return VoidingHandedIn(voided=sign(client, word), evidence=data, tokens=list(tokens))
