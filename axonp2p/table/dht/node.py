"""A node of the DHT: what the daemon, the client and `axon doctor` use of it."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable, Iterable

from kademlia.network import Server

from axonp2p.clock import Clock
from axonp2p.errors import AxonError, PortTaken
from axonp2p.identity.keys import PrivateKey
from axonp2p.identity.peer_id import PeerId, public_key_of
from axonp2p.logs import get_logger
from axonp2p.supervision import cancel_and_wait, keep_up
from axonp2p.table.dht.records.compact import CompactRow
from axonp2p.table.dht.records.index_keys import RowQuery, SetDepths
from axonp2p.table.dht.records.record_store import RecordStore
from axonp2p.table.dht.routing.contact import Contact, network_of
from axonp2p.table.dht.routing.keys import node_id
from axonp2p.table.dht.routing.routing_table import BUCKET_SIZE
from axonp2p.table.dht.rpc.protocol import DhtProtocol, Surroundings
from axonp2p.table.dht.rpc.traffic import Traffic
from axonp2p.table.dht.traversal.finding import Finder
from axonp2p.table.dht.traversal.joining import join, look_up
from axonp2p.table.dht.traversal.publishing import Publisher
from axonp2p.transport.address import join_host_port

UPKEEP_S = 600.0
"""How often a node looks whether a part of its table was not used for an hour, and drops what expired."""
SECRET_BYTES = 32

log = get_logger(__name__)


class _Server(Server):  # type: ignore[misc]  # kademlia has no types
    """The package's server with our protocol. It neither republishes, nor pickles, nor refreshes by itself."""

    def __init__(self, key: PrivateKey, surroundings: Surroundings) -> None:
        store = RecordStore(surroundings.chance.randbytes(SECRET_BYTES))
        super().__init__(ksize=BUCKET_SIZE, node_id=node_id(public_key_of(key.peer_id)), storage=store)
        self.storage = store  # the package replaces one that is empty yet
        self._key = key
        self._surroundings = surroundings

    def _create_protocol(self) -> DhtProtocol:
        return DhtProtocol(self.node, self.storage, self.ksize, self._key, self._surroundings)

    def refresh_table(self, interval: float = 0) -> None:
        """The package would look up, and store again all that it holds; `DhtNode` refreshes."""


def _nowhere() -> bytes:
    return b""


def _unheard(seconds: float, coordinate: bytes, who: str) -> None:
    pass


class DhtNode:
    """One node of the DHT, on one UDP port of one address family. All waits are by the running loop's time."""

    def __init__(
        self,
        key: PrivateKey,
        clock: Clock,
        chance: random.Random,
        *,
        serves: bool,
        coordinate: Callable[[], bytes] = _nowhere,
        on_rtt: Callable[[float, bytes, str], None] = _unheard,
    ) -> None:
        """`chance` must be `random.SystemRandom` outside of tests. With `serves` others may ask this node; without, it
        only asks. `coordinate` gives what it tells of its place, `on_rtt` is told each round trip (seconds, the
        other's coordinate, its HOST:PORT)."""
        self._clock = clock
        self._chance = chance
        self._server = _Server(key, Surroundings(clock, chance, coordinate, on_rtt))
        self._serves = serves
        self._depths = SetDepths()
        self._upkeep: asyncio.Task[None] | None = None

    # --- begin and end ----------------------------------------------------------------------------

    async def listen(self, host: str, port: int) -> int:
        """Take a UDP port (0: a free one) at an IP address; the port. Raises `PortTaken` or `SettingsError`."""
        try:
            await self._server.listen(port, host)
        except OSError as error:
            raise PortTaken(
                f"cannot listen on UDP {join_host_port(host, port)}: {error.strerror or error}",
                fix="choose another port with listen in the settings, or stop the program that has it",
            ) from error
        self.serves = self._serves
        self._publisher = Publisher(self._protocol, self._depths, self._clock)
        self._finder = Finder(self._protocol, self._depths, self._clock)
        self._upkeep = asyncio.get_running_loop().create_task(
            keep_up("the upkeep of the DHT", self._keep_up), name="dht upkeep"
        )
        name = self._server.transport.get_extra_info("sockname")
        return int(name[1]) if name else port

    async def bootstrap(self, contacts: Iterable[str]) -> int:
        """Join through nodes at HOST:PORT (IP addresses); how many proven contacts are known then, 0 when none answers.

        A word that is no such address, and all beyond the first twenty, are ignored. When nobody answers, those that
        were known before stay, for a network that was away and comes back.
        """
        await join(self._protocol, contacts)
        return self.contact_count

    async def stop(self) -> None:
        """Close the port; questions under way end without an answer."""
        await cancel_and_wait(self._upkeep)
        if self._server.protocol is not None:
            self._protocol.calls.stop()
        self._server.stop()

    # --- the table --------------------------------------------------------------------------------

    async def publish(self, data: bytes) -> int:
        """Put a signed compact row under its own key and its index keys; how many nodes hold it under its own.

        Nothing is remembered: who wants a row to stay publishes it again before it expires.
        Raises what `open_compact` raises when it is no row that holders would take.
        """
        return await self._publisher.publish(data)

    async def find(self, wanted: RowQuery, count: int) -> list[CompactRow]:
        """Up to `count` checked rows that meet `wanted`, by chance, of each peer the newest that was heard."""
        return await self._finder.find(wanted, count)

    async def find_peer(self, peer: PeerId) -> CompactRow | None:
        """The newest row of one peer that holders showed; None when there is none, or it has left."""
        return await self._finder.find_peer(peer)

    async def refresh(self) -> None:
        """Look up an id in each part of the table that was not used for an hour, and drop rows that expired."""
        protocol = self._protocol
        protocol.storage.expire(self._clock.now())
        for target in protocol.router.refresh_targets(asyncio.get_running_loop().time(), self._chance):
            await look_up(protocol, target)

    # --- what it is and knows ---------------------------------------------------------------------

    @property
    def serves(self) -> bool:
        """Whether others may ask this node, and hold it for a contact."""
        return self._serves

    @serves.setter
    def serves(self, serves: bool) -> None:
        self._serves = serves
        if self._server.protocol is not None:
            self._protocol.calls.serves = serves
            self._protocol.answering.serves = serves

    @property
    def own_address_seen(self) -> str | None:
        """HOST:PORT as most others see this node; None before the first answer."""
        return self._protocol.challenges.own_address_seen if self._server.protocol else None

    @property
    def traffic(self) -> Traffic:
        """Messages and bytes by kind, in and out."""
        return self._protocol.traffic

    @property
    def contact_count(self) -> int:
        """How many proven contacts it has; 0 while none of its questions is answered."""
        return 0 if self._protocol.calls.cut_off else len(self._protocol.router)

    @property
    def row_count(self) -> int:
        """How many rows it holds for others."""
        return len(self._protocol.storage)

    def contacts(self, count: int) -> list[str]:
        """Up to `count` proven contacts, HOST:PORT, by chance, those of different networks first."""
        known: list[Contact] = self._protocol.router.contacts()
        self._chance.shuffle(known)
        networks: set[bytes] = set()
        first: list[Contact] = []
        rest: list[Contact] = []
        for contact in known:
            network = network_of(contact.ip)
            (rest if network in networks else first).append(contact)
            networks.add(network)
        return [join_host_port(*contact.address) for contact in (first + rest)[:count]]

    # --- inside -----------------------------------------------------------------------------------

    @property
    def _protocol(self) -> DhtProtocol:
        protocol: DhtProtocol = self._server.protocol
        return protocol

    async def _keep_up(self) -> None:
        while True:
            # Spread, so that nodes which were started together do not ask together.
            await asyncio.sleep(UPKEEP_S * (0.8 + 0.4 * self._chance.random()))
            try:
                await self.refresh()
                log.debug("the DHT", contacts=self.contact_count, rows=self.row_count, **self.traffic.totals())
            except AxonError as error:
                log.warning("the DHT's table was not refreshed", reason=error.in_a_line)
