"""Valid bytes made wrong: bits, lengths, types, boundaries, depth, ends cut off; and, often, left as they are."""

from __future__ import annotations

import random

import msgpack

_BOUNDARIES = (0, 1, -1, 2**31, 2**32, 2**53, 2**63 - 1, -(2**63), 2**64 - 1, float("nan"), float("inf"), 1e308)
_OTHERS = (None, True, "", "x" * 70_000, b"", b"\0" * 70_000, [], {}, [[]] * 500, {"a": {"a": {}}}, "\0", "é\n")


def mutated(chance: random.Random, data: bytes) -> bytes:
    """`data`, a message's msgpack, or something near it."""
    kind = chance.randrange(8)
    if kind <= 1 or not data:
        return data
    if kind == 2:
        return _flipped(chance, data)
    if kind == 3:
        return data[: chance.randrange(len(data))]
    if kind == 4:
        return data + chance.randbytes(chance.choice((1, 40)))
    if kind == 5:
        cut = chance.randrange(len(data))
        deep = chance.choice((b"\x91" * 5000, b"\x81\xa1a" * 3000, b"\xdd\xff\xff\xff\xff", b"\xdf\xff\xff\xff\xff"))
        return data[:cut] + deep + data[cut:]
    try:
        plain = msgpack.unpackb(data, strict_map_key=False)
        packed: bytes = msgpack.packb(_changed(chance, plain))
    except (ValueError, TypeError, OverflowError):
        return _flipped(chance, data)
    return packed


def _flipped(chance: random.Random, data: bytes) -> bytes:
    wrong = bytearray(data)
    for _ in range(chance.choice((1, 1, 8))):
        wrong[chance.randrange(len(wrong))] ^= 1 << chance.randrange(8)
    return bytes(wrong)


def _changed(chance: random.Random, plain: object) -> object:
    """One value somewhere inside is another one."""
    if isinstance(plain, dict) and plain:
        key = chance.choice(list(plain))
        if chance.random() < 0.1:
            return {**{one: value for one, value in plain.items() if one != key}, "unknown": plain[key]}
        return {**plain, key: _changed(chance, plain[key])}
    if isinstance(plain, list) and plain and chance.random() < 0.7:
        place = chance.randrange(len(plain))
        if chance.random() < 0.2:
            return plain * 300
        return [*plain[:place], _changed(chance, plain[place]), *plain[place + 1 :]]
    return chance.choice((*_BOUNDARIES, *_OTHERS))
