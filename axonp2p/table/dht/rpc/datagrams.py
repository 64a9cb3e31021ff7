"""The DHT's datagrams: rpcudp's frame (a type byte, a 20-byte number, msgpack) with our own four questions in it.

Pure: bytes in, values out. Every datagram is bounded first, then unpacked with limits, then checked field by field,
because a value of the wrong kind that gets past here ends in somebody's arithmetic.
"""

from __future__ import annotations

from typing import Any

import msgpack

from axonp2p.errors import MalformedMessage
from axonp2p.table.dht.rpc.rpc import (
    ANSWER,
    COORDINATE_BYTES,
    DEEPEST,
    FRAME_BYTES,
    ID_BYTES,
    KEY_BYTES,
    LARGEST_DATAGRAM,
    LONGEST_RECORD,
    MOST_BYTES_A_CONTACT,
    MOST_CONTACTS,
    MOST_RECORDS,
    NONCE_BYTES,
    PLACE_BYTES,
    REQUEST,
    SIGNATURE_BYTES,
    Answer,
    Call,
    Find,
    FindAnswer,
    Get,
    GetAnswer,
    Hi,
    HiAnswer,
    Put,
    PutAnswer,
    Question,
    name_of,
)
from axonp2p.transport.flow.address_tokens import TOKEN_BYTES


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
    datagram = _frame(REQUEST, call.number, [name_of(question), body])
    if body[-1] == b"" and len(datagram) < size:
        body[-1] = bytes(size - len(datagram))
        datagram = _frame(REQUEST, call.number, [name_of(question), body])
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
