"""What the fuzzer makes wrong: in every way that it is meant to, and never so that it names an address of somebody."""

from __future__ import annotations

import random
import re

import msgpack
import pytest

from axonp2p.errors import AxonError
from axonp2p.table.records import KnownTrackers
from axonp2p.wire.codec import decode_as, encode
from tests.laboratory.message_values import Values
from tests.laboratory.mutations import mutated

_PLAIN = {"at": ["127.0.0.1:99", "https://127.0.0.1:80#abc"], "inside": {"number": 1.5, "bytes": b"x" * 30}}


def _mutations(data: bytes, count: int) -> list[bytes]:
    chance = random.Random(1)
    return [mutated(chance, data) for _ in range(count)]


def test_no_other_address_is_named() -> None:
    for wrong in _mutations(msgpack.packb(_PLAIN), 1500):
        assert all(one.startswith(b"127.0.0.") for one in re.findall(rb"\d+\.\d+\.\d+\.\d+", wrong))
        assert all(one.startswith(b"127.0.0.") for one in re.findall(rb"[\w.-]{1,16}(?=:\d)", wrong))


def _twice(pairs: list[tuple[object, object]]) -> dict[object, object]:
    if len({key for key, _ in pairs}) < len(pairs):
        raise LookupError
    return dict(pairs)


def test_keys_come_twice_and_text_is_no_text() -> None:
    seen = set()
    for wrong in _mutations(msgpack.packb(_PLAIN), 1500):
        try:
            msgpack.unpackb(wrong, object_pairs_hook=_twice, strict_map_key=False)
        except (LookupError, ValueError, TypeError, RecursionError) as error:
            seen.add(type(error).__name__)
    assert {"LookupError", "UnicodeDecodeError", "ExtraData", "ValueError"} <= seen


@pytest.mark.parametrize("seed", range(40))
def test_whatever_it_makes_is_a_message_or_malformed(seed: int) -> None:
    chance = random.Random(seed)
    data = encode(Values(chance).message(KnownTrackers))
    for _ in range(25):
        try:
            decode_as(mutated(chance, data), KnownTrackers, 2**20)
        except AxonError:
            continue
