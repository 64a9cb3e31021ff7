"""A node of the DHT: what the daemon, the client and `axon doctor` use of it."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable, Iterable

import structlog
from kademlia.network import Server

from axonp2p.clock import Clock
from axonp2p.errors import AxonError, MalformedMessage, PortTaken, SettingsError
from axonp2p.identity.keys import PrivateKey
from axonp2p.identity.peer_id import PeerId, public_key_of
from axonp2p.table.dht.calls import Address
from axonp2p.table.dht.compact import CompactRow
from axonp2p.table.dht.contact import Contact, network_of
from axonp2p.table.dht.crawl import Crawl, drop
from axonp2p.table.dht.depths import Depths
from axonp2p.table.dht.finding import Finder
from axonp2p.table.dht.index_keys import Wanted
from axonp2p.table.dht.keys import ID_BYTES, node_id
from axonp2p.table.dht.protocol import DhtProtocol, Surroundings
from axonp2p.table.dht.publishing import Publisher
from axonp2p.table.dht.record_store import RecordStore
from axonp2p.table.dht.routing_table import BUCKET_SIZE
from axonp2p.table.dht.traffic import Traffic
from axonp2p.transport.address import join_host_port, split_host_port

UPKEEP_S = 600.0
"""How often a node looks whether a part of its table was not used for an hour, and drops what expired."""
MOST_GREETED = 20
ENOUGH_GREETED = 3
GREETING_GRACE_S = 0.3
"""How long other first contacts are waited for once one has answered."""
SECRET_BYTES = 32

log = structlog.get_logger()


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
        self._depths = Depths()
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
        self._upkeep = asyncio.get_running_loop().create_task(self._keep_up(), name="dht upkeep")
        name = self._server.transport.get_extra_info("sockname")
        return int(name[1]) if name else port

    async def bootstrap(self, contacts: Iterable[str]) -> int:
        """Join through nodes at HOST:PORT (IP addresses); how many proven contacts are known then, 0 when none answers.

        What is no such address, and all beyond the first twenty, is ignored.
        """
        await self._greet([address for address in map(_address_of, contacts) if address][:MOST_GREETED])
        if len(self._protocol.router):
            await self._look_up(self._protocol.source_node.id)
            await asyncio.gather(*(self._look_up(target) for target in self._far_targets()))
        return len(self._protocol.router)

    async def stop(self) -> None:
        """Close the port; questions under way end without an answer."""
        if self._upkeep is not None:
            self._upkeep.cancel()
            await asyncio.gather(self._upkeep, return_exceptions=True)
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

    async def find(self, wanted: Wanted, count: int) -> list[CompactRow]:
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
            await self._look_up(target)

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
        """How many proven contacts it has."""
        return len(self._protocol.router)

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

    async def _greet(self, addresses: list[Address]) -> None:
        """Ask who is there, until enough have proved themselves or nobody is left."""
        loop = asyncio.get_running_loop()
        enough: asyncio.Future[None] = loop.create_future()
        left, proven = len(addresses), 0

        def go_on() -> None:
            if not enough.done():
                enough.set_result(None)

        def end(contact: Contact | None) -> None:
            nonlocal left, proven
            left -= 1
            proven += contact is not None
            if not left or proven >= ENOUGH_GREETED:
                go_on()
            elif contact is not None:
                loop.call_later(GREETING_GRACE_S, go_on)

        for address in addresses:
            self._protocol.challenges.greet(address, end)
        if addresses:
            await enough

    async def _look_up(self, target: bytes) -> None:
        await Crawl(self._protocol, target, None, drop).run()

    def _far_targets(self) -> list[bytes]:
        """A chance id in each half, quarter, eighth... of the ids that this node is not in, down to its neighbours."""
        own = int.from_bytes(self._protocol.source_node.id)
        near = self._protocol.router.nearest(self._protocol.source_node.id, 1)
        bits = ID_BYTES * 8
        shared = bits - max((contact.long_id ^ own).bit_length() for contact in near) if near else 0
        targets = []
        for depth in range(shared):
            below = bits - depth - 1
            head = (own >> below) ^ 1
            targets.append((head << below | self._chance.getrandbits(below)).to_bytes(ID_BYTES))
        return targets

    async def _keep_up(self) -> None:
        while True:
            # Spread, so that nodes which were started together do not ask together.
            await asyncio.sleep(UPKEEP_S * (0.8 + 0.4 * self._chance.random()))
            try:
                await self.refresh()
            except AxonError as error:
                log.warning("the DHT's table was not refreshed", reason=error.in_a_line)


def _address_of(text: str) -> Address | None:
    try:
        contact = Contact(bytes(ID_BYTES), *split_host_port(text))
    except (SettingsError, MalformedMessage):
        return None
    return contact.address
