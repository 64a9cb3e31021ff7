"""Joining: greet a few nodes, then look up the own place and a place in each far part of the ids."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable

from axonp2p.errors import MalformedMessage, SettingsError
from axonp2p.table.dht.routing.contact import Contact
from axonp2p.table.dht.routing.keys import ID_BYTES
from axonp2p.table.dht.rpc.pending_rpcs import Address
from axonp2p.table.dht.rpc.protocol import DhtProtocol
from axonp2p.table.dht.traversal.crawl import Crawl, drop
from axonp2p.transport.address import split_host_port

MOST_GREETED = 20
ENOUGH_GREETED = 3
GREETING_GRACE_S = 0.3
"""How long other first contacts are waited for once one has answered."""


async def join(protocol: DhtProtocol, contacts: Iterable[str]) -> None:
    """Get to know a network through nodes at HOST:PORT (IP addresses); what is no such address is ignored."""
    found = [address for address in map(_address_of, contacts) if address and protocol.same_family(address[0])]
    await _greet(protocol, found[:MOST_GREETED])
    if len(protocol.router):
        await look_up(protocol, protocol.source_node.id)
        await asyncio.gather(*(look_up(protocol, target) for target in _far_targets(protocol)))


async def look_up(protocol: DhtProtocol, target: bytes) -> None:
    """Walk to the nodes nearest to an id, for the contacts on the way."""
    await Crawl(protocol, target, None, drop).run()


async def _greet(protocol: DhtProtocol, addresses: list[Address]) -> None:
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
        protocol.challenges.greet(address, end)
    if addresses:
        await enough


def _far_targets(protocol: DhtProtocol) -> list[bytes]:
    """A chance id in each half, quarter, eighth... of the ids that this node is not in, down to its neighbours."""
    own = int.from_bytes(protocol.source_node.id)
    near = protocol.router.nearest(protocol.source_node.id, 1)
    bits = ID_BYTES * 8
    shared = bits - max((contact.long_id ^ own).bit_length() for contact in near) if near else 0
    targets = []
    for depth in range(shared):
        below = bits - depth - 1
        head = (own >> below) ^ 1
        targets.append((head << below | protocol.surroundings.chance.getrandbits(below)).to_bytes(ID_BYTES))
    return targets


def _address_of(text: str) -> Address | None:
    try:
        contact = Contact(bytes(ID_BYTES), *split_host_port(text))
    except (SettingsError, MalformedMessage):
        return None
    return contact.address
