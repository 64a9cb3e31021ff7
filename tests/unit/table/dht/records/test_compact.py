"""Compact rows: small, true, and refused when they are anything else."""

from __future__ import annotations

from contextlib import suppress
from typing import Any

import msgpack
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from axonp2p.errors import AxonError, BadSignature, MalformedMessage, MessageTooLarge, StaleRow
from axonp2p.table.dht.records.compact import (
    LARGEST,
    PURPOSE,
    CompactRow,
    open_compact,
    pack_addresses,
    pack_relays,
    sign_compact,
    withdrawal_of,
)
from axonp2p.table.records import LONGEST_LIFE_S
from tests.unit.table.dht.rows import NOW, key_number, row_of

KEY = key_number(1)
ROW = row_of(KEY)
rows = st.builds(
    row_of,
    st.just(KEY),
    packed_addresses=st.sampled_from(
        [pack_addresses(["8.8.4.4:7071"]), pack_addresses(["8.8.4.4:7071", "[2001:4860::1]:65535"])]
    ),
    dht=st.integers(0, 65535),
    certificate=st.binary(min_size=32, max_size=32),
    sequence=st.integers(0, 2**53),
    expires=st.integers(int(NOW), int(NOW) + LONGEST_LIFE_S),
    cores=st.integers(0, 4096),
    memory_mb=st.integers(0, 2**32 - 1),
    gpu_memory_mb=st.integers(0, 2**32 - 1),
    tags=st.sets(st.from_regex(r"[a-z][a-z0-9-]{0,15}", fullmatch=True), max_size=4).map(lambda t: tuple(sorted(t))),
    flags=st.integers(0, 15),
    packed_relays=st.sampled_from([(), (bytes([8, 8, 4, 4, 27, 159]) + bytes(range(32)),)]),
)


@given(rows)
def test_what_is_signed_opens_and_is_small(row: CompactRow) -> None:
    data = sign_compact(KEY, row)
    assert len(data) <= LARGEST
    assert open_compact(data, NOW) == row


def test_a_usual_row_leaves_room_for_six_on_a_page() -> None:
    assert len(sign_compact(KEY, ROW)) <= 180


@given(st.integers(0, 10_000), st.integers(1, 255))
def test_a_changed_byte_never_passes(place: int, change: int) -> None:
    data = bytearray(sign_compact(KEY, ROW))
    data[place % len(data)] ^= change
    with pytest.raises(AxonError):
        open_compact(bytes(data), NOW)


@given(st.binary(max_size=400))
def test_random_bytes_raise_our_errors_only(data: bytes) -> None:
    with pytest.raises((MalformedMessage, MessageTooLarge)):
        open_compact(data, NOW)


def test_another_key_cannot_sign_for_a_peer() -> None:
    payload = sign_compact(KEY, ROW)[64:]
    with pytest.raises(BadSignature):
        open_compact(key_number(2).sign(PURPOSE, payload) + payload, NOW)
    with pytest.raises(ValueError, match="own peer"):
        sign_compact(key_number(2), ROW)


def test_a_signature_for_another_purpose_does_not_fit() -> None:
    payload = sign_compact(KEY, ROW)[64:]
    with pytest.raises(BadSignature):
        open_compact(KEY.sign("axon/row/1", payload) + payload, NOW)


def test_expired_and_immortal_rows() -> None:
    data = sign_compact(KEY, ROW)
    assert open_compact(data, ROW.expires + 29) == ROW
    with pytest.raises(StaleRow):
        open_compact(data, ROW.expires + 30)
    with pytest.raises(MalformedMessage):
        open_compact(sign_compact(KEY, replace(ROW, expires=int(NOW) + LONGEST_LIFE_S + 31)), NOW)


@pytest.mark.parametrize(
    "changes",
    [
        {"packed_addresses": (b"\x08\x08\x04\x04\x00\x00",)},
        {"packed_addresses": (b"\x00\x00\x00\x00\x1b\x9f",)},
        {"packed_addresses": (b"\xe0\x00\x00\x01\x1b\x9f",)},
        {"packed_addresses": (b"seven77",)},
        {"packed_addresses": pack_addresses(["8.8.4.4:1"]) * 3},
        {"packed_addresses": ()},
        {"tags": ("torch2", "py311")},
        {"tags": ("torch2", "torch2")},
        {"tags": ("Torch",)},
        {"tags": ("",)},
        {"flags": 16},
        {"flags": 4, "packed_addresses": ()},
        {"packed_relays": (b"seven77" + bytes(32),)},
        {"packed_relays": (b"short",)},
        {"cores": -1},
        {"cores": 5000},
        {"memory_mb": 2**32},
        {"dht": 70000},
        {"public_key": b"short"},
        {"certificate": b"short"},
        {"sequence": 2**53 + 1},
        {"sequence": "5"},
    ],
)
def test_a_row_that_breaks_a_rule_is_malformed_even_when_signed(changes: dict[str, Any]) -> None:
    payload = msgpack.packb([getattr(replace(ROW, **changes), name) for name in CompactRow.__struct_fields__])
    with pytest.raises(MalformedMessage):
        open_compact(KEY.sign(PURPOSE, payload) + payload, NOW)


@pytest.mark.parametrize("fields", [11, 13])
def test_too_few_or_too_many_fields(fields: int) -> None:
    plain = [*(getattr(ROW, name) for name in CompactRow.__struct_fields__), 0][:fields]
    payload = msgpack.packb(plain)
    with pytest.raises(MalformedMessage):
        open_compact(KEY.sign(PURPOSE, payload) + payload, NOW)


def test_addresses_as_a_full_row_has_them() -> None:
    row = replace(ROW, packed_addresses=pack_addresses(["8.8.4.4:7071", "[2001:4860::1]:7072"]), dht=9)
    assert row.peer == KEY.peer_id
    assert row.addresses == ["8.8.4.4:7071", "[2001:4860::1]:7072"]


def test_names_and_third_addresses_are_left_out() -> None:
    assert pack_addresses(["lab.local:1", "8.8.4.4:1", "0.0.0.0:1", "8.8.4.5:2", "8.8.4.6:3"]) == pack_addresses(
        ["8.8.4.4:1", "8.8.4.5:2"]
    )


def test_a_withdrawal_outlives_what_it_withdraws() -> None:
    left = withdrawal_of(ROW, ROW.sequence + 1, int(NOW) + 60)
    assert left.withdrawn
    assert not left.offers_work
    assert not left.issues_tokens
    assert left.expires == ROW.expires
    assert (left.cores, left.memory_mb, left.tags) == (ROW.cores, ROW.memory_mb, ROW.tags)
    assert open_compact(sign_compact(KEY, left), NOW) == left


@given(st.lists(st.none() | st.integers(-5, 2**54) | st.binary(max_size=40) | st.lists(st.binary(max_size=20))))
def test_any_signed_list_is_a_row_or_an_error_of_ours(plain: list[object]) -> None:
    payload = msgpack.packb(plain)
    with suppress(AxonError):
        open_compact(KEY.sign(PURPOSE, payload) + payload, NOW)


def test_a_relay_as_a_full_row_has_it() -> None:
    relay = f"https://8.8.4.4:7070#{'a' * 52}"
    row = replace(ROW, packed_relays=pack_relays(["https://relay.example:1#" + "a" * 52, relay, relay]), flags=12)
    assert row.relays == [relay]
    assert row.dialable is False
    assert row.carries
    assert len(sign_compact(KEY, row)) <= LARGEST
    assert (ROW.relays, ROW.dialable, ROW.carries) == ([], None, False)
