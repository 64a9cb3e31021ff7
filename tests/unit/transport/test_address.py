"""Addresses as people write them and as rows carry them."""

from __future__ import annotations

import contextlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from axonp2p.errors import MalformedMessage, SettingsError
from axonp2p.identity.certificate_bytes import fingerprint_text
from axonp2p.transport.address import PinnedAddress, join_host_port, parse_listen

PIN = bytes(range(32))


def test_the_printed_form_is_the_parsed_form() -> None:
    address = PinnedAddress.parse(f"https://tracker.example.org:7070#{fingerprint_text(PIN)}")
    assert address == PinnedAddress("tracker.example.org", 7070, PIN)
    assert address.url == "https://tracker.example.org:7070"
    assert PinnedAddress.parse(str(address)) == address


def test_without_a_fingerprint_and_port_it_is_an_ordinary_web_address() -> None:
    address = PinnedAddress.parse("https://tracker.example.org/")
    assert address == PinnedAddress("tracker.example.org", 443, None)
    assert str(address) == "https://tracker.example.org:443"


def test_an_ipv6_address_stands_in_brackets() -> None:
    address = PinnedAddress.of("[::1]:7071", PIN)
    assert address.host == "::1"
    assert address.url == "https://[::1]:7071"
    assert PinnedAddress.parse(str(address)) == address


@given(port=st.integers(1, 65535), pin=st.binary(min_size=32, max_size=32), host=st.ip_addresses())
def test_every_address_survives_being_printed(port: int, pin: bytes, host: object) -> None:
    address = PinnedAddress(str(host), port, pin)
    assert PinnedAddress.parse(str(address)) == address


@pytest.mark.parametrize(
    "text",
    [
        "",
        "tracker.example.org:7070",
        "http://tracker.example.org:7070",
        "https://",
        "https://host:0",
        "https://host:70000",
        "https://host:seven",
        "https://host:7070/path",
        "https://host:7070?query",
        "https://me@host:7070",
        "https://[::1:7070",
        "https://host:7070#short",
        f"https://host:7070#{fingerprint_text(PIN)}x",
        f"https://host:7070#{fingerprint_text(PIN)[:-1]}ü",
    ],
)
def test_what_is_no_address_is_said_with_the_right_form(text: str) -> None:
    with pytest.raises(SettingsError) as caught:
        PinnedAddress.parse(text)
    assert "https://HOST:PORT#FINGERPRINT" in caught.value.fix


@given(st.text(max_size=40))
def test_any_text_is_parsed_or_refused_in_our_words(text: str) -> None:
    for parse in (PinnedAddress.parse, parse_listen):
        with contextlib.suppress(SettingsError):
            parse(text)


@pytest.mark.parametrize(
    "text", ["host", "host:", ":7071", "::1:7071", "host:65536", "host:-1", "host:٣", "[host:7071"]
)
def test_listen_addresses_that_are_none(text: str) -> None:
    with pytest.raises(SettingsError):
        parse_listen(text)
    with pytest.raises(MalformedMessage):
        PinnedAddress.of(text, PIN)


def test_listen_addresses() -> None:
    assert parse_listen("0.0.0.0:0") == ("0.0.0.0", 0)
    assert parse_listen("[::]:7071") == ("::", 7071)
    assert join_host_port("::", 7071) == "[::]:7071"
