"""The DHT's datagrams: rpcudp's frame (a type byte, a 20-byte number, msgpack) with our own four questions in it.

Pure: bytes in, values out. Every datagram is bounded first, then unpacked with limits, then checked field by field,
because a value of the wrong kind that gets past here ends in somebody's arithmetic. docs/protocol/dht.md describes
each field.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import msgpack

from axonp2p.errors import MalformedMessage

LARGEST_DATAGRAM = 1232
"""Bytes that fit an IPv6 packet of the smallest allowed size (RFC 8200: 1280) with its headers."""
FRAME_BYTES = 21
ID_BYTES = 20
KEY_BYTES = 32
NONCE_BYTES = 16
TOKEN_BYTES = 8
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
    """What the node handed out before, or nothing: it proves that the caller's address is real."""
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
    """What became of the record: a value of `record_store.Outcome`."""

    outcome: str


Answer = HiAnswer | FindAnswer | GetAnswer | PutAnswer

_NAMES: dict[type, str] = {Hi: "hi", Find: "find", Get: "get", Put: "put"}


def name_of(question: Question) -> str:
    """As it stands on the wire and in counters."""
    return _NAMES[type(question)]


def kind_of(datagram: bytes) -> tuple[int, bytes]:
    """Whether a datagram asks or answers, and its number. Raises `MalformedMessage`."""
    if not FRAME_BYTES < len(datagram) <= LARGEST_DATAGRAM or datagram[0] not in (REQUEST, ANSWER):
        raise MalformedMessage("not a datagram of the DHT")
    return datagram[0], datagram[1:FRAME_BYTES]


def encode_call(call: Call, size: int = 0) -> bytes:
    """The datagram of a question, padded to at least `size` bytes so that a longer answer is allowed."""
    question = call.question
    body: list[Any]
    if isinstance(question, Hi):
        body = [call.caller, call.serves, question.nonce]
    elif isinstance(question, Put):
        body = [call.caller, call.serves, question.key, question.depth, question.token, question.record]
    else:
        body = [call.caller, call.serves, question.key, question.token, question.start, b""]
    datagram = _frame(REQUEST, call.number, [_NAMES[type(question)], body])
    if body[-1] == b"" and len(datagram) < size:
        body[-1] = bytes(size - len(datagram))
        datagram = _frame(REQUEST, call.number, [_NAMES[type(question)], body])
    return datagram


def decode_call(datagram: bytes) -> Call:
    """The question in a datagram of kind REQUEST. Raises `MalformedMessage`, and nothing else, whatever the bytes."""
    name, body = _list(_unpack(datagram), 2)
    body = _list(body, None)
    if len(body) < 3:
        raise MalformedMessage("a question of the DHT without its caller")
    question: Question
    if name == "hi":
        (nonce,) = _list(body[2:], 1)
        question = Hi(_bytes(nonce, NONCE_BYTES))
    elif name in ("find", "get"):
        key, token, start, padding = _list(body[2:], 4)
        _bytes(padding, 0, LARGEST_DATAGRAM)
        kind = Find if name == "find" else Get
        question = kind(_bytes(key, ID_BYTES), _none_or(token, TOKEN_BYTES), _none_or(start, PLACE_BYTES))
    elif name == "put":
        key, depth, token, record = _list(body[2:], 4)
        question = Put(
            _bytes(key, ID_BYTES),
            _whole(depth, DEEPEST),
            _none_or(token, TOKEN_BYTES),
            _bytes(record, 1, LONGEST_RECORD),
        )
    else:
        raise MalformedMessage("a question that the DHT does not know")
    return Call(datagram[1:FRAME_BYTES], _bytes(body[0], ID_BYTES), _truth(body[1]), question)


def encode_answer(number: bytes, answer: Answer) -> bytes:
    """The datagram of an answer."""
    body: Any
    if isinstance(answer, HiAnswer):
        body = [answer.key, answer.signature, answer.token, answer.seen, answer.coordinate, answer.serves]
    elif isinstance(answer, FindAnswer):
        body = [answer.contacts, answer.token, answer.records, answer.held, answer.split]
    elif isinstance(answer, GetAnswer):
        body = [answer.records, answer.held, answer.split]
    else:
        body = answer.outcome
    return _frame(ANSWER, number, body)


def decode_answer(datagram: bytes, question: Question) -> Answer:
    """The answer to `question` in a datagram of kind ANSWER. Raises `MalformedMessage` and nothing else."""
    plain = _unpack(datagram)
    if isinstance(question, Put):
        if type(plain) is not str:
            raise MalformedMessage("an outcome was expected")
        return PutAnswer(plain)
    if isinstance(question, Hi):
        key, signature, token, seen, coordinate, serves = _list(plain, 6)
        return HiAnswer(
            _bytes(key, KEY_BYTES),
            _bytes(signature, SIGNATURE_BYTES),
            _none_or(token, TOKEN_BYTES),
            _bytes(seen, 6, 18),
            _bytes(coordinate, 0, COORDINATE_BYTES),
            _truth(serves),
        )
    if isinstance(question, Get):
        records, held, split = _list(plain, 3)
        return GetAnswer(_many(records, MOST_RECORDS, LONGEST_RECORD), _whole(held, 65535), _truth(split))
    contacts, token, records, held, split = _list(plain, 5)
    return FindAnswer(
        _many(contacts, MOST_CONTACTS, MOST_BYTES_A_CONTACT),
        _none_or(token, TOKEN_BYTES),
        _many(records, MOST_RECORDS, LONGEST_RECORD),
        _whole(held, 65535),
        _truth(split),
    )


def room_for_answer(request_bytes: int, proven: bool) -> int:
    """How many bytes an answer may have: a forged sender's address must not get much more than was sent."""
    return LARGEST_DATAGRAM if proven else min(LARGEST_DATAGRAM, AMPLIFICATION * request_bytes)


def hi_payload(nonce: bytes, seen: bytes, coordinate: bytes) -> bytes:
    """What the answer to `hi` signs."""
    return nonce + bytes([len(seen)]) + seen + coordinate


def _frame(kind: int, number: bytes, body: Any) -> bytes:
    packed: bytes = msgpack.packb(body)
    return bytes([kind]) + number + packed


def _unpack(datagram: bytes) -> Any:
    if not FRAME_BYTES < len(datagram) <= LARGEST_DATAGRAM:
        raise MalformedMessage(f"a datagram of {len(datagram)} bytes; at most {LARGEST_DATAGRAM}")
    try:
        return msgpack.unpackb(
            memoryview(datagram)[FRAME_BYTES:], raw=False, max_array_len=16, max_map_len=0, max_str_len=8, max_ext_len=0
        )
    except (ValueError, TypeError, RecursionError, OverflowError, MemoryError) as error:
        raise MalformedMessage("not msgpack in a datagram of the DHT") from error


def _list(value: Any, length: int | None) -> list[Any]:
    if type(value) is not list or (length is not None and len(value) != length):
        raise MalformedMessage("a list of another length was expected")
    return value


def _bytes(value: Any, least: int, most: int | None = None) -> bytes:
    if type(value) is not bytes or not least <= len(value) <= (least if most is None else most):
        raise MalformedMessage("bytes of another length were expected")
    return value


def _none_or(value: Any, length: int) -> bytes:
    return _bytes(value, 0 if value == b"" else length, length)


def _whole(value: Any, most: int) -> int:
    if type(value) is not int or not 0 <= value <= most:
        raise MalformedMessage("a whole number in its range was expected")
    return value


def _truth(value: Any) -> bool:
    if type(value) is not bool:
        raise MalformedMessage("yes or no was expected")
    return value


def _many(value: Any, most: int, longest: int) -> list[bytes]:
    values = _list(value, None)
    if len(values) > most:
        raise MalformedMessage("more than an answer may hold")
    return [_bytes(one, 1, longest) for one in values]
