"""The local network: a peer tells of itself by mDNS (RFC 6762, through zeroconf), and hears of others and of trackers.

What is heard is a hint from anybody on the same network: a contact proves itself as every other does, and a tracker
by the fingerprint in its address.
"""

from __future__ import annotations

import asyncio
import ipaddress
from collections.abc import Callable, Sequence
from typing import Annotated

import msgspec
import psutil
from zeroconf import InterfaceChoice, IPVersion, NonUniqueNameException, ServiceStateChange, Zeroconf
from zeroconf.asyncio import AsyncServiceBrowser, AsyncServiceInfo, AsyncZeroconf

from axonp2p.identity.peer_id import PeerId
from axonp2p.logs import get_logger
from axonp2p.supervision import alone, cancel_and_wait, in_background
from axonp2p.table.records import Port, TrackerAddress
from axonp2p.transport.address import join_host_port
from axonp2p.wire.quantities import IpText

SERVICE = "_axon._udp.local."
ANSWER_MS = 3000
MOST_HEARD = 64
"""How many services are asked what they are; a network with more has enough contacts among the first."""
MOST_TRACKERS = 2
LONGEST_PROPERTY = 240
"""Bytes: one property of a service has at most 255 with its name."""

log = get_logger(__name__)


class LanPeer(msgspec.Struct, frozen=True):
    """What a peer says of itself to its local network."""

    peer: PeerId
    """Its id."""
    name: Annotated[str, msgspec.Meta(max_length=32)]
    """What people see."""
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


class Lan:
    """Tells of one peer (or of none) and calls `on_peer` for each other peer that is heard."""

    def __init__(self, own: PeerId | None, on_peer: Callable[[LanPeer], None], interfaces: Sequence[str] = ()) -> None:
        """`own` is not reported when heard. mDNS is spoken on the interfaces with these addresses, else on all."""
        self._own = own
        self._on_peer = on_peer
        self._interfaces = list(interfaces)
        self._zeroconf: AsyncZeroconf | None = None
        self._browser: AsyncServiceBrowser | None = None
        self._advert: AsyncServiceInfo | None = None
        self._heard: set[str] = set()
        self._asking: set[asyncio.Task[None]] = set()

    async def start(self) -> bool:
        """Begin to listen; whether that worked: a machine without a network that carries multicast has no LAN."""
        try:
            self._zeroconf = AsyncZeroconf(
                interfaces=self._interfaces or InterfaceChoice.All, ip_version=IPVersion.V4Only
            )
        except OSError as error:
            log.info("no mDNS here: peers on the local network are not looked for", reason=str(error))
            return False
        self._browser = AsyncServiceBrowser(self._zeroconf.zeroconf, SERVICE, handlers=[self._changed])
        return True

    async def tell(self, own: LanPeer) -> None:
        """Tell the network of this peer, or that something about it has changed."""
        if self._zeroconf is None:
            return
        advert = AsyncServiceInfo(
            SERVICE,
            f"{own.peer}.{SERVICE}",
            port=own.dht or own.listens,
            properties=_properties(own),
            parsed_addresses=own.hosts,
            server=f"{own.peer}.local.",
        )
        try:
            if self._advert is None:
                await self._zeroconf.async_register_service(advert)
            else:
                await self._zeroconf.async_update_service(advert)
            self._advert = advert
        except (OSError, NonUniqueNameException) as error:
            log.info("the local network was not told of this peer", reason=str(error))

    async def stop(self) -> None:
        """Take back what was told and be silent."""
        await cancel_and_wait(*self._asking)
        if self._browser is not None:
            await self._browser.async_cancel()
        if self._zeroconf is not None:
            await self._zeroconf.async_close()
            self._zeroconf = None

    def _changed(self, zeroconf: Zeroconf, service_type: str, name: str, state_change: ServiceStateChange) -> None:
        # zeroconf calls with these names.
        if state_change is ServiceStateChange.Removed:
            self._heard.discard(name)
            return
        if len(self._heard) >= MOST_HEARD and name not in self._heard:
            return
        self._heard.add(name)
        asking = alone("a question to the local network", self._ask(zeroconf, name))
        in_background(self._asking, asking, "mdns question")

    async def _ask(self, zeroconf: Zeroconf, name: str) -> None:
        info = AsyncServiceInfo(SERVICE, name)
        if not await info.async_request(zeroconf, ANSWER_MS):
            return
        found = read_peer(info.properties, info.parsed_addresses(IPVersion.V4Only))
        if found is not None and found.peer != self._own:
            self._on_peer(found)


def read_peer(properties: dict[bytes, bytes | None], hosts: list[str]) -> LanPeer | None:
    """What a service of the local network says, or None when it is none of ours (pure)."""
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


def _properties(own: LanPeer) -> dict[str, str]:
    properties = {"peer": own.peer, "name": own.name, "dht": str(own.dht), "listens": str(own.listens)}
    for number, tracker in enumerate(own.trackers[:MOST_TRACKERS]):
        if len(tracker) <= LONGEST_PROPERTY:
            properties[f"tracker{number}"] = tracker
    return properties
