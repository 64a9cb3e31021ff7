"""The shared table as one client opens it: from its settings, and from what its home remembers of earlier runs.

HOME/trackers.json    the trackers that it knows, and how each was of late
HOME/dht.json         DHT nodes to begin with
HOME/coordinate       where this machine stands in the network
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from axonp2p.client.discovery.trackers import known_by
from axonp2p.clock import Clock
from axonp2p.identity.keys import PrivateKey
from axonp2p.logs import get_logger
from axonp2p.peers.coordinate_file import CoordinateFile
from axonp2p.settings import ClientSettings
from axonp2p.table.dht.routing.node_state import SavedContact, load_state, save_state
from axonp2p.table.dht_source import DhtSource
from axonp2p.table.shared_table import SharedTable
from axonp2p.table.tracker_file import read_health, write_health
from axonp2p.table.tracker_lines import TrackerLines
from axonp2p.transport.address import PinnedAddress, split_host_port
from axonp2p.transport.dial_policy import DialPolicy

if TYPE_CHECKING:
    from axonp2p.table.dht.node import DhtNode

log = get_logger(__name__)

LOOK_AROUND_S = 1.5
"""How long the local network is listened to."""


class TableHome:
    """Opens the table, and keeps what was learnt. `close()` it at the end."""

    def __init__(
        self,
        home: Path,
        settings: ClientSettings,
        trackers: Sequence[PinnedAddress],
        clock: Clock,
        *,
        hosted: bool = False,
    ) -> None:
        """`hosted`: a tracker, the first of `trackers`, carries a stranger's job on here.

        Raises nothing: what the home remembers and cannot be read is forgotten. Touches the disk."""
        self._home = home
        self._clock = clock
        self._chance = random.SystemRandom()
        health = read_health(home / "trackers.json", [str(address) for address in trackers], clock.now(), self._chance)
        self._lines = TrackerLines(health, clock, self._chance)
        self._coordinate = CoordinateFile(home / "coordinate", self._chance)
        self.position = self._coordinate.position
        self._known_by = known_by(trackers, settings, hosted=hosted)
        dials = self._lines.dials = DialPolicy(lambda: self._known_by, tells_why=not hosted)
        dht = None
        if settings.dht:
            new = [SavedContact(address, clock.now()) for address in settings.dht_contacts]
            saved = [*load_state(home / "dht.json", clock.now()), *new]
            look_around = self._look_around if settings.lan and not hosted else None
            dht = DhtSource(self._make_node, clock, dials, saved, look_around)
        self.table = SharedTable(self._lines, dht, dials, clock)

    async def knows_anybody(self) -> bool:
        """Whether there is a tracker or a DHT node to ask. Without any, the local network is looked at first."""
        dht = self.table.dht
        if not self._lines.health.addresses and dht and not dht.known:
            await dht.look()
        return bool(self._lines.health.addresses or (dht and dht.known))

    async def close(self) -> None:
        """Close the table, and write down whom it knows."""
        await self.table.close()
        await asyncio.to_thread(self._keep)

    def _keep(self) -> None:
        write_health(self._home / "trackers.json", self._lines.health)
        self._coordinate.keep()
        try:
            if self.table.dht:
                save_state(self._home / "dht.json", self.table.dht.known)
        except OSError as error:
            log.warning("what was learnt of the network is not kept", home=str(self._home), reason=error.strerror)

    def _make_node(self) -> DhtNode:
        from axonp2p.table.dht.node import DhtNode

        # A key of its own, for this run alone: who asks the DHT need not be known by it.
        return DhtNode(PrivateKey.generate(), self._clock, self._chance, serves=False)

    async def _look_around(self) -> list[str]:
        # It loads zeroconf, a tenth of a client's start, for those few that know nobody.
        from axonp2p.table.dht.lan import LanPeer
        from axonp2p.table.dht.mdns import Lan

        found: list[LanPeer] = []
        lan = Lan(None, found.append)
        try:
            if await lan.start():
                await asyncio.sleep(LOOK_AROUND_S)
        finally:
            await lan.stop()
        contacts = [contact for peer in found for contact in peer.contacts]
        self._known_by |= {split_host_port(contact)[0] for contact in contacts}
        self._lines.learn(tracker for peer in found for tracker in peer.trackers)
        return contacts
