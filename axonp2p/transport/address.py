"""Where a tracker or a peer listens, and which certificate must answer there."""

from __future__ import annotations

import ipaddress
import re
from dataclasses import dataclass
from functools import lru_cache
from urllib.parse import urlsplit

from axonp2p.errors import MalformedMessage, SettingsError
from axonp2p.identity.certificate_bytes import fingerprint_of_text, fingerprint_text

WHOLE_ADDRESS = "copy the whole address as `axon-tracker run` prints it: https://HOST:PORT#FINGERPRINT"
_LISTEN_FIX = "write HOST:PORT, such as 0.0.0.0:7071; port 0 takes a free one"

_HOST_PORT = re.compile(r"(?:\[(?P<six>[0-9A-Fa-f:.]+)\]|(?P<host>[A-Za-z0-9._-]+)):(?P<port>[0-9]{1,5})", re.ASCII)


@dataclass(frozen=True)
class PinnedAddress:
    """`https://HOST:PORT#FINGERPRINT`; without a fingerprint an ordinary certificate authority must vouch."""

    host: str
    port: int
    fingerprint: bytes | None

    @classmethod
    def parse(cls, text: str) -> PinnedAddress:
        """The address that a person or a settings file wrote. Raises `SettingsError`."""
        try:
            parts = urlsplit(text.strip())
            host, port = parts.hostname, parts.port
        except ValueError as error:
            raise SettingsError(f"{text!r} is not an address: {error}", fix=WHOLE_ADDRESS) from error
        extra = parts.path not in ("", "/") or parts.query or parts.username or parts.password
        if parts.scheme != "https" or not host or extra or port == 0:
            raise SettingsError(f"{text!r} is not an address", fix=WHOLE_ADDRESS)
        try:
            fingerprint = fingerprint_of_text(parts.fragment) if parts.fragment else None
        except ValueError as error:
            raise SettingsError(f"{text!r}: the part after the # is no fingerprint", fix=WHOLE_ADDRESS) from error
        return cls(host, 443 if port is None else port, fingerprint)

    @classmethod
    def of(cls, address: str, fingerprint: bytes | None) -> PinnedAddress:
        """The address in a row, HOST:PORT, with the fingerprint from the same row. Raises `MalformedMessage`."""
        try:
            host, port = split_host_port(address)
        except SettingsError as error:
            raise MalformedMessage(error.message) from error
        return cls(host, port, fingerprint)

    @property
    def host_port(self) -> str:
        """HOST:PORT; an IPv6 address stands in brackets."""
        return join_host_port(self.host, self.port)

    @property
    def url(self) -> str:
        """Without the fingerprint, as an HTTP library takes it."""
        return f"https://{self.host_port}"

    def __str__(self) -> str:
        return self.url if self.fingerprint is None else f"{self.url}#{fingerprint_text(self.fingerprint)}"


def join_host_port(host: str, port: int) -> str:
    """HOST:PORT; an IPv6 address is put in brackets."""
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


def split_host_port(text: str) -> tuple[str, int]:
    """Host (without brackets) and port of HOST:PORT. Raises `SettingsError`."""
    found = _HOST_PORT.fullmatch(text.strip())
    if found is None or int(found["port"]) > 65535:
        raise SettingsError(f"{text!r} is not HOST:PORT", fix=_LISTEN_FIX)
    return found["six"] or found["host"], int(found["port"])


def parse_listen(text: str) -> tuple[str, int]:
    """Where to listen, from a person's HOST:PORT. Raises `SettingsError`."""
    return split_host_port(text)


# Callers come again and again, and reading an address costs more than finding it in a table.
@lru_cache(maxsize=16_384)
def source_of(address: str) -> str:
    """The household of an IP address: an IPv4 address itself, or the IPv6 /56 that a provider gives to one customer."""
    plain = plain_address(address)
    try:
        parsed = ipaddress.ip_address(plain)
    except ValueError:
        return plain
    if parsed.version == 4:
        return plain
    return str(ipaddress.ip_network((parsed, 56), strict=False))


@lru_cache(maxsize=16_384)
def plain_address(address: str) -> str:
    """An IP address without an IPv6 zone, and as IPv4 when it is an IPv4 address in IPv6's clothes."""
    try:
        parsed = ipaddress.ip_address(address.partition("%")[0])
    except ValueError:
        return address
    if isinstance(parsed, ipaddress.IPv6Address) and parsed.ipv4_mapped:
        return str(parsed.ipv4_mapped)
    return str(parsed)
