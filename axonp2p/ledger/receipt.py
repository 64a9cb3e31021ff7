"""Doubly signed receipts for accepted work."""

from __future__ import annotations

import functools
from collections.abc import Iterable
from dataclasses import dataclass
from hashlib import sha256
from typing import Annotated, ClassVar

import msgspec

from axonp2p.errors import BadSignature, MalformedMessage
from axonp2p.identity.keys import SIGNATURE_BYTES, PrivateKey, verify
from axonp2p.identity.peer_id import PeerId, short
from axonp2p.transport.messages import Uuid
from axonp2p.wire.codec import Message, encode
from axonp2p.wire.envelope import ENVELOPE_OVERHEAD, EncodedEnvelope, Signable, Signed, open_signed
from axonp2p.wire.quantities import Count, UnixTime

ACCEPT_PURPOSE = "axon/receipt-accepted/1"

MOST_AMOUNT = 2**63 - 1
Amount = Annotated[int, msgspec.Meta(ge=0, le=MOST_AMOUNT)]


@dataclass(frozen=True)
class Work:
    """The work that a receipt is given for: one accepted unit of a job's work, by one peer."""

    unit: int
    """Its number, from 0: a round of training, a copy of a command."""
    flops: int
    samples: int
    milliseconds: int


class Receipt(Signable, frozen=True):
    """A client accepts one round's work of one peer."""

    PURPOSE: ClassVar[str] = "axon/receipt/1"
    LIMIT: ClassVar[int] = 768

    reservation: Uuid
    number: Annotated[int, msgspec.Meta(ge=1, le=2**31)]
    """Counts the receipts of this peer within the reservation, from 1 without gaps."""
    job: Annotated[str, msgspec.Meta(min_length=1, max_length=64)]
    client: PeerId
    peer: PeerId
    round: Annotated[int, msgspec.Meta(ge=0, le=2**31)]
    flops: Amount
    """Floating point operations, counted by torch's flop counter."""
    samples: Amount
    milliseconds: Amount
    """Time spent on local steps."""
    issued: UnixTime
    """Unix time in seconds."""


DOUBLY_SIGNED_LIMIT = Receipt.LIMIT + 2 * ENVELOPE_OVERHEAD


class DoublySigned(Message, frozen=True):
    """A receipt's envelope by the client and the peer's signature over that envelope. Encoded, an entry of a log."""

    receipt: Signed[Receipt]
    """The client's envelope."""
    peer_signature: Annotated[bytes, msgspec.Meta(min_length=SIGNATURE_BYTES, max_length=SIGNATURE_BYTES)]
    """The peer's, over the encoded envelope, for `axon/receipt-accepted/1`."""


def accept(key: PrivateKey, receipt: Signed[Receipt]) -> DoublySigned:
    """The peer's counter-signature. Check with `open_receipt` first what is signed."""
    return DoublySigned(receipt=receipt, peer_signature=key.sign(ACCEPT_PURPOSE, encode(receipt)))


def open_receipt(signed: Signed[Receipt]) -> Receipt:
    """The receipt when its client signed it. Raises what `open_signed` raises, and `BadSignature`."""
    receipt = open_signed(signed, Receipt)
    if receipt.client != signed.signer:
        raise BadSignature(f"a receipt of {short(receipt.client)} was signed by {short(signed.signer)}")
    if receipt.client == receipt.peer:
        raise MalformedMessage("nobody gives a receipt to itself")
    return receipt


def open_doubly_signed(doubly: DoublySigned) -> Receipt:
    """The receipt when both signed it."""
    receipt = open_receipt(doubly.receipt)
    verify(receipt.peer, ACCEPT_PURPOSE, encode(doubly.receipt), doubly.peer_signature)
    return receipt


def place_key(receipt: Receipt) -> int:
    """The number that stands for its reservation, peer and number in an index: 64 bits, signed.

    Two places may have one key, and whoever tries many keys of peers makes thousands that do: who finds a receipt by it
    looks whether it is the one, and never goes through all. The keys of one reservation lie side by side, so that its
    receipts, which come one after the other, go to the same page of an index.
    """
    within = _within(receipt.peer, receipt.number)
    return int.from_bytes(_of_reservation(receipt.reservation)[:5] + within[:3], "big", signed=True)


def whole_key(receipt: Receipt) -> int:
    """64 bits more of the same hashes, signed: nobody makes many places that share these as well."""
    reservation, within = _of_reservation(receipt.reservation)[5:13], _within(receipt.peer, receipt.number)[3:11]
    return int.from_bytes(reservation, "big", signed=True) ^ int.from_bytes(within, "big", signed=True)


@functools.lru_cache(maxsize=4096)
def _of_reservation(reservation: str) -> bytes:
    return sha256(reservation.encode()).digest()


@functools.lru_cache(maxsize=4096)
def _within(peer: PeerId, number: int) -> bytes:
    return sha256(f"{peer}/{number}".encode()).digest()


def counts_instead(payload: bytes, other: bytes) -> bool:
    """Whether of two receipts with one reservation, peer and number the first counts, and not the other.

    Their client and their peer both signed both. Which came first differs from tracker to tracker, so their hashes
    decide: then all trackers agree, and nobody can tell before what making a second one brings. Nor can a disk be
    filled so: each next one that counts is twice as hard to find.
    """
    return sha256(payload).digest() < sha256(other).digest()


MOST_RECEIPTS = 200
RECEIPTS_LIMIT = MOST_RECEIPTS * DOUBLY_SIGNED_LIMIT
RECEIPTS_KEPT_LIMIT = 128 * 1024
MOST_BALANCES = 200
BALANCES_LIMIT = 64 * 1024


class Receipts(Message, frozen=True):
    """Receipts for a tracker to keep."""

    receipts: Annotated[list[DoublySigned], msgspec.Meta(min_length=1, max_length=MOST_RECEIPTS)]
    """In any order."""
    tokens: Annotated[list[EncodedEnvelope], msgspec.Meta(max_length=MOST_RECEIPTS)] = []
    """Encoded `Signed[Token]` of reservations that this tracker may not know: another tracker's, or a peer's own."""
    relayed: bool = False
    """Whether another tracker passes them on: then they travel no further."""


Index = Annotated[str, msgspec.Meta(pattern=r"^[0-9]{1,3}\Z")]
Reason = Annotated[str, msgspec.Meta(max_length=300)]


class ReceiptsKept(Message, frozen=True):
    """A tracker's answer: how many are new, how many it had already, and why it will never take the others."""

    new: Count
    """Stored now."""
    known: Count
    """Stored before."""
    reasons: Annotated[dict[Index, Reason], msgspec.Meta(max_length=MOST_RECEIPTS)] = {}
    """Why, by the index of a receipt in the question, in decimal digits: keys of maps are text on the wire."""

    @property
    def refused(self) -> dict[int, str]:
        """The reasons by index."""
        return {int(index): reason for index, reason in self.reasons.items()}


class BalancesAsked(Message, frozen=True):
    """Balances of these keys, or of the `job` alone when it is named."""

    keys: Annotated[list[PeerId], msgspec.Meta(max_length=MOST_BALANCES)] = []
    """Peers and clients; none means everyone in the job, or the largest earners."""
    job: Annotated[str, msgspec.Meta(max_length=64)] = ""


Total = Annotated[str, msgspec.Meta(pattern=r"^(0|[1-9][0-9]{0,39})\Z")]


class Balance(Message, frozen=True):
    """The sums of receipts for one key, in FLOPs as decimal digits: a month of one GPU is more than 64 bits."""

    key: PeerId
    """A peer's or a client's id."""
    earned: Total = "0"
    """FLOPs of accepted work."""
    owed: Total = "0"
    """FLOPs of work that it accepted."""
    stands: Total = "0"
    """FLOPs of what it earned that stand at this tracker: by reservations that it trusts, of clients that could pay."""
    receipts: Count = 0
    """How many its sums are made of."""

    @property
    def earned_flops(self) -> int:
        """The work that others owe this key for."""
        return int(self.earned)

    @property
    def owed_flops(self) -> int:
        """The work that this key owes others for."""
        return int(self.owed)


class Balances(Message, frozen=True):
    """A tracker's answer, the largest earners first."""

    balances: Annotated[list[Balance], msgspec.Meta(max_length=MOST_BALANCES)]
    """One for each key that has any."""
    receipts: Count
    """How many receipts these balances are the sum of."""


_OF_A_RECEIPT = Receipt.LIMIT + 2 * ENVELOPE_OVERHEAD
_OF_ITS_FRAME = 512


@dataclass(frozen=True)
class ReceiptBatch:
    """The receipts that go into one message."""

    receipts: list[DoublySigned]
    tokens: list[bytes]
    """Each once."""


def receipt_batch_of(waiting: Iterable[tuple[DoublySigned, bytes]]) -> ReceiptBatch:
    """The first of `waiting`, receipts with the encoded token of each (empty when it is not to be sent), that fit.

    At least one, when there is any: a receipt and the largest token are far below the limit.
    """
    receipts: list[DoublySigned] = []
    tokens: dict[bytes, None] = {}
    left = RECEIPTS_LIMIT - _OF_ITS_FRAME
    for doubly, token in waiting:
        left -= min(_OF_A_RECEIPT, len(doubly.receipt.payload) + 2 * ENVELOPE_OVERHEAD)
        if token and token not in tokens:
            left -= len(token) + 8
        if left < 0 or len(receipts) == MOST_RECEIPTS:
            break
        receipts.append(doubly)
        if token:
            tokens[token] = None
    return ReceiptBatch(receipts, list(tokens))
