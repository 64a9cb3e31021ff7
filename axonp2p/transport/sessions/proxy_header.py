"""The PROXY protocol: what a TCP proxy says, before TLS, of who called it (pure).

Versions 1 (a line of text) and 2 (binary), as HAProxy's document of 2020 has them; nginx, HAProxy and Envoy write them.
"""

from __future__ import annotations

import ipaddress
import socket
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from axonp2p.errors import MalformedMessage, SettingsError
from axonp2p.transport.address import plain_address

HEADER_LIMIT = 536
"""Bytes: the address part of a Unix socket is the longest that exists; what proxies add beside it is small."""
_V1, _V1_LIMIT = b"PROXY ", 107
_V2, _V2_HEAD = b"\r\n\r\n\0\r\nQUIT\n", 16
_LOCAL, _PROXIED = 0x20, 0x21
_FAMILIES = {0x11: (socket.AF_INET, 4), 0x21: (socket.AF_INET6, 16)}

Networks = Sequence[ipaddress.IPv4Network | ipaddress.IPv6Network]


@dataclass(frozen=True)
class ProxyHeader:
    """`caller`: the IP address of who called the proxy; empty where the proxy itself calls, as health checks do."""

    caller: str
    length: int
    """Bytes of the header; TLS begins after it."""


def read_header(came: bytes) -> ProxyHeader | None:
    """The header at the beginning of `came`; None when more has to come. Raises `MalformedMessage`."""
    if came.startswith(_V2):
        return _version_2(came)
    if came.startswith(_V1):
        return _version_1(came)
    if _V2.startswith(came[: len(_V2)]) or _V1.startswith(came[: len(_V1)]):
        return None
    raise MalformedMessage("a trusted proxy sends no PROXY header")


def parse_networks(texts: Iterable[str]) -> Networks:
    """The networks that a person named, such as 192.0.2.0/24 or 127.0.0.1. Raises `SettingsError`."""
    found = []
    for text in texts:
        try:
            found.append(ipaddress.ip_network(text.strip()))
        except ValueError as error:
            fix = 'trusted-proxies = ["127.0.0.1", "192.0.2.0/24"]    the addresses from which the proxy calls'
            raise SettingsError(f"{text[:60]!r} is no network: {error}", fix=fix) from error
    return tuple(found)


def is_within(address: str, networks: Networks) -> bool:
    """Whether the IP address is of one of them."""
    if not networks:
        return False
    try:
        parsed = ipaddress.ip_address(plain_address(address))
    except ValueError:
        return False
    return any(parsed.version == network.version and parsed in network for network in networks)


def _version_1(came: bytes) -> ProxyHeader | None:
    end = came.find(b"\r\n", 0, _V1_LIMIT)
    if end < 0:
        if len(came) >= _V1_LIMIT:
            raise MalformedMessage("a PROXY header without an end")
        return None
    words = came[:end].split(b" ")
    if words[1:2] == [b"UNKNOWN"]:
        return ProxyHeader("", end + 2)
    if len(words) != 6 or words[1] not in (b"TCP4", b"TCP6"):
        raise MalformedMessage("a PROXY header that is not TCP4, TCP6 or UNKNOWN")
    try:
        caller = ipaddress.ip_address(words[2].decode("ascii"))
    except ValueError as error:
        raise MalformedMessage("a PROXY header without an address") from error
    if caller.version != int(words[1][3:]):
        raise MalformedMessage("a PROXY header with an address of the other family")
    return ProxyHeader(plain_address(str(caller)), end + 2)


def _version_2(came: bytes) -> ProxyHeader | None:
    if len(came) < _V2_HEAD:
        return None
    command, family, length = came[12], came[13], int.from_bytes(came[14:16])
    if command not in (_LOCAL, _PROXIED):
        raise MalformedMessage("a PROXY header of another version or command")
    if _V2_HEAD + length > HEADER_LIMIT:
        raise MalformedMessage(f"a PROXY header of more than {HEADER_LIMIT} bytes")
    if len(came) < _V2_HEAD + length:
        return None
    if command == _LOCAL or family not in _FAMILIES:
        return ProxyHeader("", _V2_HEAD + length)
    kind, size = _FAMILIES[family]
    if length < 2 * size + 4:
        raise MalformedMessage("a PROXY header that is cut short")
    caller = socket.inet_ntop(kind, came[_V2_HEAD : _V2_HEAD + size])
    return ProxyHeader(plain_address(caller), _V2_HEAD + length)
