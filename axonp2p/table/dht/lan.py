"""The records of peers of one local network about themselves (RFC 6762, told and heard by `mdns`).

Each word heard is a hint from anybody on the same network: a contact proves itself as every other does, and a tracker
by the fingerprint in its address.
"""

from __future__ import annotations

import ipaddress
from typing import Annotated

import msgspec
import psutil

from axonp2p.identity.peer_id import PeerId
from axonp2p.table.records import Port, TrackerAddress
from axonp2p.transport.address import join_host_port
from axonp2p.wire.quantities import IpText

MOST_TRACKERS = 2
LONGEST_PROPERTY = 240
"""Bytes: one property of a service has at most 255 with its name."""


class LanPeer(msgspec.Struct, frozen=True):
    """The record of a peer about itself for its local network."""

    peer: PeerId
    """Its id."""
    name: Annotated[str, msgspec.Meta(max_length=32)]
    """The name that people see."""
    hosts: Annotated[list[IpText], msgspec.Meta(max_length=8)]
    """Its IP addresses."""
    dht: Port
    """UDP port of its DHT node; 0 when it has none."""
    listens: Port
    """TCP port where it listens."""
    trackers: Annotated[list[TrackerAddress], msgspec.Meta(max_length=MOST_TRACKERS)] = []
    """Trackers that it is in touch with."""

    @property
    def contacts(self) -> list[str]:
        """HOST:PORT of its DHT node."""
        return [join_host_port(host, self.dht) for host in self.hosts] if self.dht else []


def properties_of(own: LanPeer) -> dict[str, str]:
    """The properties that `read_peer` reads, for a service of one's own (pure)."""
    properties = {"peer": own.peer, "name": own.name, "dht": str(own.dht), "listens": str(own.listens)}
    for number, tracker in enumerate(own.trackers[:MOST_TRACKERS]):
        if len(tracker) <= LONGEST_PROPERTY:
            properties[f"tracker{number}"] = tracker
    return properties


def read_peer(properties: dict[bytes, bytes | None], hosts: list[str]) -> LanPeer | None:
    """The peer that a service of the local network tells, or None when it is none of ours (pure)."""
    texts = {
        key.decode("ascii", "replace"): value.decode("utf-8", "replace")
        for key, value in properties.items()
        if value is not None and len(value) <= LONGEST_PROPERTY
    }
    trackers = [texts[key] for key in (f"tracker{number}" for number in range(MOST_TRACKERS)) if key in texts]
    plain = {
        "peer": texts.get("peer"),
        "name": texts.get("name", ""),
        "hosts": hosts[:8],
        "dht": texts.get("dht", "0"),
        "listens": texts.get("listens", "0"),
        "trackers": trackers,
    }
    try:
        return msgspec.convert(plain, LanPeer, strict=False)
    except msgspec.ValidationError:
        return None


def own_hosts() -> list[str]:
    """The IPv4 addresses of this machine's interfaces, loopback last."""
    found = [
        address.address
        for addresses in psutil.net_if_addrs().values()
        for address in addresses
        if address.family.name == "AF_INET"
    ]
    return sorted(found, key=lambda host: ipaddress.ip_address(host).is_loopback)
