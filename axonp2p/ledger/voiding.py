"""A client's word that what one peer earned in one of its jobs counts no more, since it was convicted there (pure).

The word alone does nothing: it names evidence by its hash, and trackers keep it only when that evidence, examined by
the rule of docs/trust.md, convicts this peer in this job of this client. Here evidence is bytes; what is in it is known
to `training.checking.evidence`.
"""

from __future__ import annotations

from hashlib import sha256
from typing import Annotated, ClassVar

import msgspec

from axonp2p.errors import BadSignature, MalformedMessage
from axonp2p.identity.peer_id import PeerId, short
from axonp2p.ledger.receipt import Receipt
from axonp2p.ledger.tree_head import Hash
from axonp2p.wire.codec import Message, decode_as
from axonp2p.wire.envelope import EncodedEnvelope, Signable, Signed, open_signed

EVIDENCE_LIMIT = 208 * 1024
"""A report of a round is at most a frame's header (64 KiB; with as many marks as there may be about half of that), what
is said of some of its steps about 1 KiB each. Three speak, of up to two rounds, and of four segments of their own."""
MOST_TOKENS = 8
"""As many as there may be reservations in one piece of evidence, and some more."""
VOIDING_LIMIT = EVIDENCE_LIMIT + 80 * 1024
VOIDING_KEPT_LIMIT = 2048

Spoiled = tuple[PeerId, str, PeerId]
"""Client, job and peer whose receipts are void."""


class Voiding(Signable, frozen=True):
    """The receipts of this peer in this job of this client count no more."""

    PURPOSE: ClassVar[str] = "axon/voiding/1"
    LIMIT: ClassVar[int] = 512

    client: PeerId
    """The client of the job, which signs this."""
    job: Annotated[str, msgspec.Meta(min_length=1, max_length=64)]
    peer: PeerId
    """The convicted peer."""
    evidence: Hash
    """SHA-256 of the evidence's bytes."""

    @staticmethod
    def in_entry(entry: Voided) -> Voiding:
        """Of an entry whose signature was checked before. Raises `MessageTooLarge`, `MalformedMessage`."""
        return decode_as(entry.voided.payload, Voiding, Voiding.LIMIT)

    @property
    def spoils(self) -> Spoiled:
        """The client and the peer whose receipts they are, and the job."""
        return self.client, self.job, self.peer


class Voided(Message, frozen=True):
    """Encoded, an entry of a log: its only key tells it from a receipt."""

    voided: Signed[Voiding]
    """As the client signed it."""


class VoidingHandedIn(Message, frozen=True):
    """A conviction for a tracker to keep."""

    voided: Signed[Voiding]
    """The client's signed statement."""
    evidence: Annotated[bytes, msgspec.Meta(max_length=EVIDENCE_LIMIT)]
    """Why: what peers signed, an encoded `Evidence`."""
    tokens: Annotated[list[EncodedEnvelope], msgspec.Meta(max_length=MOST_TOKENS)] = []
    """Encoded `Signed[Token]` of the reservations in it, which this tracker may not know."""
    relayed: bool = False
    """Whether another tracker passes it on: then it travels no further."""


class VoidingKept(Message, frozen=True):
    """A tracker's answer."""

    new: bool
    """Whether it is stored now; if not, and there is no reason, one about this peer and job was there before."""
    reason: Annotated[str, msgspec.Meta(max_length=300)] = ""
    """Why it will never be taken; empty when it is kept."""


class EvidenceAsked(Message, frozen=True):
    """The evidence that a `Voiding` names."""

    sha256: Hash
    """Of its bytes."""


class EvidenceTold(Message, frozen=True):
    """The evidence, and what the reservations in it stand on."""

    evidence: Annotated[bytes, msgspec.Meta(max_length=EVIDENCE_LIMIT)]
    """An encoded `Evidence`."""
    tokens: Annotated[list[EncodedEnvelope], msgspec.Meta(max_length=MOST_TOKENS)]
    """Encoded `Signed[Token]`, each once."""


def open_voiding(signed: Signed[Voiding]) -> Voiding:
    """The message that the client of the job signed. Raises what `open_signed` raises, and `BadSignature`."""
    voiding = open_signed(signed, Voiding)
    if voiding.client != signed.signer:
        raise BadSignature(f"a word of {short(voiding.client)} was signed by {short(signed.signer)}")
    if voiding.client == voiding.peer:
        raise MalformedMessage("nobody has receipts from itself")
    return voiding


def spoiled_by(receipt: Receipt) -> Spoiled:
    """The client, job and peer of a word that would make this receipt void."""
    return receipt.client, receipt.job, receipt.peer


def voiding_key(voiding: Voiding) -> int:
    """The number for its client, job and peer in an index of places: 64 bits, signed, as `receipt.place_key`."""
    return int.from_bytes(sha256(f"{voiding.client}/{voiding.peer}/{voiding.job}".encode()).digest()[:8], signed=True)
