"""The local network: tell it of this peer, and hear of others there."""

from __future__ import annotations

import asyncio
import ipaddress
from collections.abc import Callable

from axonp2p.identity.peer_id import PeerId
from axonp2p.table.dht.lan import LanPeer, own_hosts

_WILDCARDS = ("0.0.0.0", "::", "")  # noqa: S104 (compared with, not bound to)


class LanSide:
    """One supervised task, `run`. `heard` is called for each other peer of the local network."""

    def __init__(self, peer: PeerId, name: str, host: str, heard: Callable[[LanPeer], None]) -> None:
        """`host` is where the peer listens."""
        # Not loaded by a peer that is on no local network, and has no `LanSide`: zeroconf takes 4 MB.
        from axonp2p.table.dht.mdns import Lan

        self.port = 0
        """Its TCP port, set before `run`."""
        self.dht = 0
        """The UDP port of its DHT node, 0 for none: on one's own network it can be reached anyway."""
        self._peer = peer
        self._name = name
        self._host = host
        self._lan = Lan(peer, heard, () if host in _WILDCARDS else (host,))
        self._news = asyncio.Event()
        self._trackers: list[str] = []

    def say(self, trackers: list[str]) -> None:
        """These trackers have the row now."""
        if trackers != self._trackers:
            self._trackers = trackers
            self._news.set()

    async def run(self) -> None:
        """Tell what is new until cancelled."""
        if not await self._lan.start():
            await asyncio.Event().wait()  # no multicast here; the daemon goes on without
        while True:
            self._news.clear()
            hosts = own_hosts() if self._host in _WILDCARDS else [self._host]
            others = [host for host in hosts if not ipaddress.ip_address(host).is_loopback][:8]
            if others:
                await self._lan.tell(LanPeer(self._peer, self._name, others, self.dht, self.port, self._trackers[:2]))
            await self._news.wait()

    async def stop(self) -> None:
        """Take back what was told."""
        await self._lan.stop()


def is_on_lan(host: str) -> bool:
    """Whether a peer that listens at `host` can be reached from the local network, by mDNS over IPv4."""
    if host in _WILDCARDS:
        return True
    try:
        address = ipaddress.ip_address(host)
    except ValueError:
        return False  # a name: where it leads is others' business
    return address.version == 4 and not address.is_loopback
