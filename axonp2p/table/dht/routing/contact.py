"""Contacts: where a DHT node is (id, IP address, UDP port), and to which network it counts for the limits."""

from __future__ import annotations

import ipaddress
from functools import lru_cache
from typing import NamedTuple

from kademlia.node import Node

from axonp2p.errors import MalformedMessage
from axonp2p.table.dht.routing.keys import ID_BYTES
from axonp2p.transport.dial_policy import may_dial

_V4_BYTES = ID_BYTES + 4 + 2
_V6_BYTES = ID_BYTES + 16 + 2
_BROADCAST = ipaddress.IPv4Address("255.255.255.255")
# Reading an address costs ten times what all else in a contact costs, and the same few hundred come again and again.
_REMEMBERED = 16384


class ContactHost(NamedTuple):
    """The sort of an IP address."""

    text: str
    """Its one spelling; an IPv4 address in IPv6's clothes is IPv4."""
    packed: bytes
    """4 or 16 bytes."""
    network: bytes
    """Its /24, or its /48 in IPv6: what one person has easily."""
    local: bool
    """Whether it cannot be reached from everywhere (loopback, private, link-local): the limits are not for it."""


class Contact(Node):  # type: ignore[misc]  # kademlia has no types
    """A DHT node as others name it. Whether it is there, and whether the id is its own, only asking it tells."""

    id: bytes
    ip: str
    port: int
    long_id: int

    def __init__(self, id: bytes, host: str, port: int) -> None:
        """Raises `MalformedMessage` when the id has not 20 bytes, the host is no IP address or the port is none."""
        if len(id) != ID_BYTES:
            raise MalformedMessage(f"a node id has {ID_BYTES} bytes, not {len(id)}")
        if not 0 < port < 65536:
            raise MalformedMessage(f"{port} is no UDP port")
        super().__init__(id, read_host(host).text, port)

    @property
    def host(self) -> str:
        """The IP address."""
        return self.ip

    @property
    def address(self) -> tuple[str, int]:
        """As a socket takes it."""
        return self.ip, self.port

    def pack(self) -> bytes:
        """26 bytes (38 with IPv6): id, address, port (big endian)."""
        return b"%b%b%b" % (self.id, read_host(self.ip).packed, self.port.to_bytes(2))

    @classmethod
    def unpack(cls, data: bytes) -> Contact:
        """The contact that `pack` wrote. Raises `MalformedMessage`."""
        if len(data) not in (_V4_BYTES, _V6_BYTES):
            raise MalformedMessage(f"a contact has {_V4_BYTES} or {_V6_BYTES} bytes, not {len(data)}")
        return cls(data[:ID_BYTES], host_of_packed(data[ID_BYTES:-2]), int.from_bytes(data[-2:]))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Contact) and self.id == other.id and self.address == other.address

    def __hash__(self) -> int:
        return hash(self.id)


def read_contacts(values: object, said_by: str, most: int) -> list[Contact]:
    """The sound ones among the packed contacts in a stranger's answer, `most` at the most; never raises.

    Dropped is what is no contact, and what may not be dialled on the word of a host at `said_by` (an IP address): our
    own network is not for strangers to point at.
    """
    if not isinstance(values, list | tuple):
        return []
    found: list[Contact] = []
    for value in values[:most]:
        if not isinstance(value, bytes):
            continue
        try:
            contact = Contact.unpack(value)
        except MalformedMessage:
            continue
        if may_dial(contact.ip, [said_by]):
            found.append(contact)
    return found


def network_of(host: str) -> bytes:
    """The /24 (IPv6: /48) of an IP address. Raises `MalformedMessage`."""
    return read_host(host).network


def is_local(host: str) -> bool:
    """Whether an IP address is not routable everywhere. Raises `MalformedMessage`."""
    return read_host(host).local


@lru_cache(maxsize=_REMEMBERED)
def host_of_packed(packed: bytes) -> str:
    """The text of an address in 4 or 16 bytes. Raises `MalformedMessage` when it is none that a machine has."""
    if len(packed) not in (4, 16):
        raise MalformedMessage(f"an IP address has 4 or 16 bytes, not {len(packed)}")
    return _facts_of(ipaddress.ip_address(packed)).text


@lru_cache(maxsize=_REMEMBERED)
def read_host(host: str) -> ContactHost:
    """The facts of an IP address.

    Raises `MalformedMessage` when it is none, or one that no single machine has (multicast, unspecified, broadcast).
    """
    try:
        # Without the zone of a link-local address: it means something on one machine only.
        return _facts_of(ipaddress.ip_address(host.partition("%")[0]))
    except ValueError as error:
        raise MalformedMessage(f"{host[:64]!r} is no IP address") from error


def _facts_of(address: ipaddress.IPv4Address | ipaddress.IPv6Address) -> ContactHost:
    if isinstance(address, ipaddress.IPv6Address) and address.ipv4_mapped:
        address = address.ipv4_mapped
    if address.is_multicast or address.is_unspecified or address == _BROADCAST:
        raise MalformedMessage(f"{address} is no machine's address")
    packed = address.packed
    return ContactHost(str(address), packed, packed[: 3 if len(packed) == 4 else 6], not address.is_global)
