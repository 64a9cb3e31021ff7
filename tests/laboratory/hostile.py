"""Nodes that lie. Each is a sound node that everybody takes in, with a liar between it and the network.

The package and ours share rpcudp's frame (type byte, 20-byte number, msgpack), so most lies fit both.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from typing import Any

import msgpack

from tests.laboratory.home_links import Address

FRAME_BYTES = 21
HONEST = ("hi", "ping")
"""Answered truly, or nobody would take the liar in."""

Said = Sequence[tuple[float, bytes]]
Lie = Callable[[str, bytes, bytes, random.Random], Said]
"""(name of the question, frame of the answer, true answer behind it, chance) -> what is said instead, and when."""


class Liar:
    """Stands in front of one endpoint and answers with lies of one kind."""

    def __init__(self, lie: Lie, seed: int) -> None:
        self.told = 0
        """How many answers were lies."""
        self._lie = lie
        self._chance = random.Random(seed)
        self._asked: dict[tuple[Address, bytes], str] = {}

    def hear(self, data: bytes, sender: Address) -> None:
        """Remember what was asked, to know what is answered."""
        if data[:1] == b"\0":
            try:
                self._asked[sender, data[1:FRAME_BYTES]] = str(_unpacked(data)[0])
            except (ValueError, TypeError, IndexError):
                return  # another liar

    def say(self, data: bytes, target: Address) -> Said:
        """Questions and honest answers as they are, all others as lies."""
        name = self._asked.pop((target, data[1:FRAME_BYTES]), "")
        if data[:1] == b"\0" or name in HONEST:
            return [(0.0, data)]
        self.told += 1
        return self._lie(name, data[:FRAME_BYTES], data[FRAME_BYTES:], self._chance)


def silent(name: str, frame: bytes, true: bytes, chance: random.Random) -> Said:
    """No answer."""
    return []


def slow(name: str, frame: bytes, true: bytes, chance: random.Random) -> Said:
    """True, but just too late, or far too late."""
    return [(chance.choice((0.9, 1.4, 3.0, 30.0)), frame + true)]


def oversized(name: str, frame: bytes, true: bytes, chance: random.Random) -> Said:
    """As large as a datagram may be."""
    return [(0.0, frame + msgpack.packb([[b"x" * 26] * 2000, b"t" * 8, [b"r" * 300] * 20, 9, True]))]


def empty(name: str, frame: bytes, true: bytes, chance: random.Random) -> Said:
    """Nothing known, nothing held; or not even that."""
    return [(0.0, frame + msgpack.packb(chance.choice(([[], b"", [], 0, False], [[], 0, False], [], None, ""))))]


def garbage(name: str, frame: bytes, true: bytes, chance: random.Random) -> Said:
    """What the package's readers stumble over, and chance bytes."""
    odd: list[Any] = [
        {},
        7,
        -1,
        "x",
        [7],
        [[1, 2]],
        [b"x" * 21],
        {"value": [1]},
        {"value": {}},
        [[[[[[]]]]]],
        [None] * 16,
    ]
    odd += [[["id" * 10, "1.2.3.4", 5]], [[b"i" * 20, "host.invalid", 5]], [[b"i" * 20, "::1", 0]], 2**63, 1e308]
    datagrams = [frame + msgpack.packb(chance.choice(odd)), frame + chance.randbytes(chance.randrange(900))]
    datagrams += [frame, b"", b"\x01", frame + true[: len(true) // 2], frame + true + true, b"\x02" + frame[1:] + true]
    return [(0.0, datagram) for datagram in chance.sample(datagrams, 3)]


def port_70000(name: str, frame: bytes, true: bytes, chance: random.Random) -> Said:
    """Contacts where nobody can be: in the package's form, and in ours port 0 and addresses of no family."""
    plain = [[chance.randbytes(20), "1.2.3.4", 70000], [chance.randbytes(20), "1.2.3.4", -1]]
    packed = [chance.randbytes(24) + b"\0\0", chance.randbytes(25), chance.randbytes(38), b"", chance.randbytes(20)]
    packed += [chance.randbytes(20) + bytes(host) + b"\x1b\x9e" for host in ((0, 0, 0, 0), (255,) * 4, (224, 0, 0, 1))]
    return [(0.0, frame + msgpack.packb(plain if name.startswith("find_") else [packed, b"", [], 0, False]))]


def repeated(name: str, frame: bytes, true: bytes, chance: random.Random) -> Said:
    """The true answer many times, among answers to questions that nobody asked."""
    others = [frame[:1] + chance.randbytes(20) + true for _ in range(10)]
    return [(0.0, datagram) for datagram in [frame + true] * 10 + others]


def with_rows(rows: Callable[[], list[bytes]], contacts: list[bytes]) -> Lie:
    """Ours: other rows than were asked for, these contacts (the true ones when there are none); `put` says yes."""

    def lie(name: str, frame: bytes, true: bytes, chance: random.Random) -> Said:
        answer = msgpack.unpackb(true)
        if name == "put":
            answer = "stored"
        elif name == "get":
            answer[0] = _some(rows(), chance)
        else:
            answer[2] = _some(rows(), chance)
            answer[0] = _some(contacts, chance, 8) or answer[0]
        return [(0.0, frame + msgpack.packb(answer))]

    return lie


def with_value(value: bytes) -> Lie:
    """The package: this value for every key."""

    def lie(name: str, frame: bytes, true: bytes, chance: random.Random) -> Said:
        return [(0.0, frame + (msgpack.packb({"value": value}) if name == "find_value" else true))]

    return lie


ANY_WIRE: dict[str, Lie] = {
    "silent": silent,
    "slow": slow,
    "oversized": oversized,
    "empty": empty,
    "garbage": garbage,
    "port 70000": port_70000,
    "repeated": repeated,
}


def _some(values: list[bytes], chance: random.Random, most: int = 5) -> list[bytes]:
    return chance.sample(values, min(most, len(values)))


def _unpacked(data: bytes) -> Any:
    return msgpack.unpackb(data[FRAME_BYTES:], strict_map_key=False)
