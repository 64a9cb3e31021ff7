"""Valid bytes made wrong: bits, lengths, types, boundaries, depth, ends cut off; and, often, left as they are."""

from __future__ import annotations

import random
import re

import msgpack

_BOUNDARIES = (
    *(0, 1, -1, 2**31 - 1, 2**31, 2**32, 2**53, 2**63 - 1, 2**63, -(2**63), 2**64 - 1),
    *(float("nan"), float("inf"), float("-inf"), -0.0, 5e-324, 1e308),
)
_OTHERS = (None, True, "", "x" * 70_000, b"", b"\0" * 70_000, [], {}, [[]] * 500, {"a": {"a": {}}}, "\0", "é\n")
_FORGED = (
    *(b"\xdb\xff\xff\xff\xff", b"\xc6\xff\xff\xff\xffab", b"\xdd\xff\xff\xff\xff", b"\xdf\xff\xff\xff\xff"),
    *(b"\xde\xff\xff\xa1a\x01", b"\xdc\xff\xff\x01", b"\xd9\xffab", b"\xc4\xff"),  # lengths with few bytes behind them
    *(b"\xa3\xff\xfe\xc3", b"\xa3\xed\xa0\x80", b"\xa4\xf4\x90\x80\x80", b"\xa2\xc0\x80"),  # no UTF-8: surrogates too
    *(b"\xd4\x01\x00", b"\xc7\x04\x7fabcd", b"\xc9\xff\xff\xff\xff\x01", b"\xd6\xff\x00\x00\x00\x00"),  # extensions
    *(b"\xc7\x0c\xff" + b"\xff" * 12, b"\xd7\xff" + b"\xff" * 8, b"\xc1"),  # times out of range; what means nothing
    *(b"\x81\xc0\xc0", b"\x81\x90\xc0", b"\x81\x80\xc0", b"\x82\xa1a\x01\xc4\x01a\x02"),  # keys that are no text
    *(b"\xcb\x7f\xf8" + b"\0" * 6, b"\xca\xff\x80\0\0", b"\xcb\x80" + b"\0" * 7, b"\xd3\x80" + b"\0" * 7),
    *(b"\x91" * 5000, b"\x81\xa1a" * 3000, b"\x91" * 200 + b"\xc0", b"\xcf" + b"\xff" * 8),
)
"""Raw bytes that stand where a value was."""
_ADDRESS = re.compile(rb"\d{1,3}(?:\.\d{1,3}){3}|[\w.-]{1,16}:\d|::")


class _Raw(bytes):
    """Stands in a message as it is."""


class _Twice(dict[object, object]):
    """Said with its first key twice."""


def mutated(chance: random.Random, data: bytes) -> bytes:
    """`data`, a message's msgpack, or something near it. It names no other address than `data` does."""
    wrong = _mutated(chance, data)
    return wrong if _addresses(wrong) <= _addresses(data) else data


def _addresses(data: bytes) -> set[bytes]:
    """Whatever could be read as an address, but for those of this machine."""
    return {one for one in _ADDRESS.findall(data) if not one.startswith(b"127.0.0.")}


def _mutated(chance: random.Random, data: bytes) -> bytes:
    kind = chance.randrange(9)
    if kind <= 1 or not data:
        return data
    if kind == 2:
        return _flipped(chance, data)
    if kind == 3:
        return data[: chance.randrange(len(data))]
    if kind == 4:
        return data + chance.choice((chance.randbytes(1), chance.randbytes(40), b"\xc0", data))
    if kind == 5:
        cut = chance.randrange(len(data))
        return data[:cut] + chance.choice(_FORGED) + data[cut:]
    try:
        return _packed(_changed(chance, msgpack.unpackb(data, strict_map_key=False)))
    except (ValueError, TypeError, OverflowError, RecursionError):
        return _flipped(chance, data)


def _flipped(chance: random.Random, data: bytes) -> bytes:
    wrong = bytearray(data)
    for _ in range(chance.choice((1, 1, 8))):
        wrong[chance.randrange(len(wrong))] ^= 1 << chance.randrange(8)
    return bytes(wrong)


def _changed(chance: random.Random, plain: object) -> object:
    """One value somewhere inside is another one."""
    if isinstance(plain, dict) and plain:
        key = chance.choice(list(plain))
        what = chance.random()
        if what < 0.1:
            return {**{one: value for one, value in plain.items() if one != key}, "unknown": plain[key]}
        if what < 0.2:
            return _Twice({key: plain[key], **{one: value for one, value in plain.items() if one != key}})
        return {**plain, key: _changed(chance, plain[key])}
    if isinstance(plain, list) and plain and chance.random() < 0.7:
        place = chance.randrange(len(plain))
        what = chance.random()
        if what < 0.1:
            return plain * 300
        if what < 0.2:
            return [*plain, plain[place]]
        if what < 0.3:
            return plain[:place] + plain[place + 1 :]
        return [*plain[:place], _changed(chance, plain[place]), *plain[place + 1 :]]
    if isinstance(plain, bytes) and len(plain) > 20 and chance.random() < 0.6:  # a message inside a message
        return _mutated(chance, plain)
    if isinstance(plain, int) and not isinstance(plain, bool) and chance.random() < 0.4:
        return plain + chance.choice((-1, 1, 1000, -1000))
    return chance.choice((*_BOUNDARIES, *_OTHERS, *map(_Raw, _FORGED)))


def _packed(plain: object) -> bytes:
    if isinstance(plain, _Raw):
        return bytes(plain)
    if isinstance(plain, dict):
        pairs = list(plain.items())
        pairs += pairs[:1] if isinstance(plain, _Twice) else []
        said = [_packed(part) for pair in pairs for part in pair]
        return _head(len(pairs), 0x80, b"\xde") + b"".join(said)
    if isinstance(plain, list):
        return _head(len(plain), 0x90, b"\xdc") + b"".join(map(_packed, plain))
    packed: bytes = msgpack.packb(plain)
    return packed


def _head(count: int, short: int, long: bytes) -> bytes:
    return bytes([short | count]) if count < 16 else long + min(count, 2**16 - 1).to_bytes(2)
