"""The frames of a peer's worker, as its daemon has signed them, so that anybody can be shown them. Pure."""

from __future__ import annotations

import hashlib
from typing import Annotated

import msgspec

from axonp2p.identity.keys import SIGNATURE_BYTES
from axonp2p.identity.peer_id import PeerId
from axonp2p.ledger.said import Said
from axonp2p.transport.messages import Uuid
from axonp2p.verification.claims import RoundDone, SegmentRedone
from axonp2p.wire.codec import Message, decode
from axonp2p.wire.frame import HEADER_LIMIT, split_frame

FRAME_LIMIT = HEADER_LIMIT + 64


class SignedFrame(Message, frozen=True):
    """Something that a peer's worker said, as it came."""

    peer: PeerId
    """The peer whose daemon signed it."""
    name: Annotated[str, msgspec.Meta(max_length=64)]
    """As the job knew it."""
    reservation: Uuid
    """Of its lease."""
    frame: Annotated[bytes, msgspec.Meta(max_length=FRAME_LIMIT)]
    """The bytes that were signed."""
    signature: Annotated[bytes, msgspec.Meta(min_length=SIGNATURE_BYTES, max_length=SIGNATURE_BYTES)]
    """For `axon/said/1`."""


def said_by(job: str, client: PeerId, signed: SignedFrame) -> Said:
    """The bytes that its signature is over."""
    return Said(
        job=job,
        reservation=signed.reservation,
        client=client,
        peer=signed.peer,
        sha256=hashlib.sha256(signed.frame).digest(),
    )


def what_is_said(frame: bytes | memoryview) -> RoundDone | SegmentRedone:
    """A frame that evidence can be made of. Raises `MalformedMessage` for anything else, `MessageTooLarge`."""
    message: RoundDone | SegmentRedone = decode(split_frame(frame).header, RoundDone | SegmentRedone, HEADER_LIMIT)
    return message
