"""What a TCP proxy says of its caller, as bytes."""

from __future__ import annotations

import ipaddress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from axonp2p.errors import MalformedMessage, SettingsError
from axonp2p.transport.sessions.proxy_header import HEADER_LIMIT, is_within, parse_networks, read_header

SIGNATURE = b"\r\n\r\n\0\r\nQUIT\n"
HELLO = b"\x16\x03\x01 the beginning of TLS"


def version_2(caller: str, *, command: int = 0x21, more: bytes = b"") -> bytes:
    address = ipaddress.ip_address(caller)
    family = 0x11 if address.version == 4 else 0x21
    told = address.packed * 2 + bytes(4) + more
    return SIGNATURE + bytes([command, family]) + len(told).to_bytes(2) + told


@pytest.mark.parametrize(
    ("header", "caller"),
    [
        (b"PROXY TCP4 192.0.2.7 192.0.2.1 55000 7070\r\n", "192.0.2.7"),
        (b"PROXY TCP6 2001:db8::7 2001:db8::1 55000 7070\r\n", "2001:db8::7"),
        (b"PROXY UNKNOWN\r\n", ""),
        (version_2("192.0.2.7"), "192.0.2.7"),
        (version_2("2001:db8::7", more=b"\x03\0\x04abcd"), "2001:db8::7"),
        (version_2("::ffff:192.0.2.7"), "192.0.2.7"),
        (SIGNATURE + b"\x20\0\0\0", ""),
        (SIGNATURE + b"\x21\x31\0\x02xx", ""),
    ],
)
def test_both_versions_name_the_caller_and_leave_the_rest(header: bytes, caller: str) -> None:
    found = read_header(header + HELLO)
    assert found is not None
    assert (found.caller, found.length) == (caller, len(header))
    for part in range(len(header)):
        assert read_header(header[:part]) is None


@pytest.mark.parametrize(
    "came",
    [
        HELLO,
        b"GET / HTTP/1.1\r\n",
        b"PROXY TCP4 otter 192.0.2.1 1 2\r\n",
        b"PROXY TCP4 2001:db8::7 192.0.2.1 1 2\r\n",
        b"PROXY TCP4 192.0.2.7\r\n",
        b"PROXY " + b"x" * 120,
        SIGNATURE + b"\x31\x11\0\x0c" + bytes(12),
        SIGNATURE + b"\x21\x11\0\x04" + bytes(4),
        SIGNATURE + b"\x21\x11\xff\xff",
    ],
)
def test_what_is_no_header_is_refused(came: bytes) -> None:
    with pytest.raises(MalformedMessage):
        read_header(came)


@given(st.binary(max_size=HEADER_LIMIT) | st.binary(max_size=60).map(SIGNATURE.__add__))
def test_whatever_comes_is_read_within_its_bounds_or_refused(came: bytes) -> None:
    try:
        found = read_header(came)
    except MalformedMessage:
        return
    assert found is None or found.length <= min(HEADER_LIMIT, len(came))


def test_only_networks_that_were_named_are_believed() -> None:
    named = parse_networks(["192.0.2.0/24", "2001:db8::5"])
    assert is_within("192.0.2.99", named)
    assert is_within("::ffff:192.0.2.99", named)
    assert is_within("2001:db8::5", named)
    assert not is_within("198.51.100.1", named)
    assert not is_within("192.0.2.1", ())
    assert not is_within("", named)
    with pytest.raises(SettingsError, match="no network"):
        parse_networks(["192.0.2.1/24"])
