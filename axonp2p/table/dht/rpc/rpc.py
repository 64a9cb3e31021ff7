"""The questions and answers of nodes of the DHT, and the bounds of it. docs/protocol/dht.md describes each field."""

from __future__ import annotations

from dataclasses import dataclass

LARGEST_DATAGRAM = 1232
"""Bytes that fit an IPv6 packet of the smallest allowed size (RFC 8200: 1280) with its headers."""
FRAME_BYTES = 21
ID_BYTES = 20
KEY_BYTES = 32
NONCE_BYTES = 16
SIGNATURE_BYTES = 64
COORDINATE_BYTES = 12
PLACE_BYTES = 8
LONGEST_RECORD = 320
MOST_RECORDS = 8
MOST_CONTACTS = 16
MOST_BYTES_A_CONTACT = 38
DEEPEST = 24
REQUEST, ANSWER = 0, 1
AMPLIFICATION = 3
"""An answer to an address that has not proved itself has at most this many times the bytes of its request."""
HI_PURPOSE = "axon/dht-hi/1"


@dataclass(frozen=True, slots=True)
class Hi:
    """Who are you, and how do you see me?"""

    nonce: bytes
    """Fresh random bytes, which the answer signs."""


@dataclass(frozen=True, slots=True)
class Find:
    """Whom do you know near this key, and what do you hold under it?"""

    key: bytes
    token: bytes
    """A token that the node handed out before, or nothing: it proves that the caller's address is real."""
    start: bytes
    """From which place in the set records are wanted (`keys.page_order`); nothing when none are."""


@dataclass(frozen=True, slots=True)
class Get:
    """A page of what you hold under this key, from a place in the set on."""

    key: bytes
    token: bytes
    start: bytes


@dataclass(frozen=True, slots=True)
class Put:
    """Hold this record under this key."""

    key: bytes
    depth: int
    """By how many shard bits the key's set is split."""
    token: bytes
    record: bytes


Question = Hi | Find | Get | Put


@dataclass(frozen=True, slots=True)
class Call:
    """A question as it arrives: its number, who says that it asks, and whether others may ask it back."""

    number: bytes
    caller: bytes
    serves: bool
    question: Question


@dataclass(frozen=True, slots=True)
class HiAnswer:
    """My key, and its signature over your nonce and your address as I see it."""

    key: bytes
    signature: bytes
    token: bytes
    seen: bytes
    """The caller's address, packed: 6 bytes for IPv4, 18 for IPv6."""
    coordinate: bytes
    serves: bool
    """Whether it answers more than `hi`."""


@dataclass(frozen=True, slots=True)
class FindAnswer:
    """Contacts near the key, some records, how many there are in all, and a token for `put`."""

    contacts: list[bytes]
    """Packed: 20 bytes of id, 4 or 16 of IP address, 2 of port."""
    token: bytes
    records: list[bytes]
    held: int
    split: bool
    """Whether the set is so large that it goes on under the next bit of its shards."""


@dataclass(frozen=True, slots=True)
class GetAnswer:
    """A page of records."""

    records: list[bytes]
    held: int
    split: bool


@dataclass(frozen=True, slots=True)
class PutAnswer:
    """The outcome for the record: a value of `record_store.Outcome`."""

    outcome: str


Answer = HiAnswer | FindAnswer | GetAnswer | PutAnswer

_NAMES: dict[type, str] = {Hi: "hi", Find: "find", Get: "get", Put: "put"}


def name_of(question: Question) -> str:
    """As it stands on the wire and in counters."""
    return _NAMES[type(question)]


def room_for_answer(request_bytes: int, proven: bool) -> int:
    """How many bytes an answer may have: a forged sender's address must not get much more than was sent."""
    return LARGEST_DATAGRAM if proven else min(LARGEST_DATAGRAM, AMPLIFICATION * request_bytes)


def hi_payload(nonce: bytes, seen: bytes, coordinate: bytes) -> bytes:
    """The bytes that the answer to `hi` signs."""
    return nonce + bytes([len(seen)]) + seen + coordinate
