"""Tells the local network of a peer by mDNS (RFC 6762, through zeroconf), and hears of others and of trackers.

Only who speaks mDNS loads this file: zeroconf takes 4 MB of memory.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence

from zeroconf import InterfaceChoice, IPVersion, NonUniqueNameException, ServiceStateChange, Zeroconf
from zeroconf.asyncio import AsyncServiceBrowser, AsyncServiceInfo, AsyncZeroconf

from axonp2p.identity.peer_id import PeerId
from axonp2p.logs import get_logger
from axonp2p.supervision import alone, cancel_and_wait, in_background
from axonp2p.table.dht.lan import LanPeer, properties_of, read_peer

SERVICE = "_axon._udp.local."
ANSWER_MS = 3000
MOST_HEARD = 64
"""How many services are asked what they are; a network with more has enough contacts among the first."""

log = get_logger(__name__)


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
            properties=properties_of(own),
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
