"""The DHT as one of the sources of the table: a node that only asks, started when it is first needed."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from axonp2p.clock import Clock
from axonp2p.errors import AxonError
from axonp2p.identity.peer_id import PeerId
from axonp2p.table.dht.records.compact import CompactRow
from axonp2p.table.dht.records.index_keys import RowQuery, tags_needed
from axonp2p.table.dht.routing.node_state import MOST_SAVED, SavedContact
from axonp2p.table.peer_client import fetch_rows
from axonp2p.table.records import Row
from axonp2p.table.sightings import DHT, SourceAnswer
from axonp2p.transport.dial_policy import DialPolicy

if TYPE_CHECKING:
    from axonp2p.table.dht.node import DhtNode  # it loads kademlia, which a client whose trackers answer does without

AT_ONCE = 20
"""Nodes that are greeted together when the first ones are looked for."""
LISTEN = ("0.0.0.0", 0)  # noqa: S104 (a free port, on which nobody is served)


@dataclass(frozen=True)
class DhtAnswer:
    """The answer of the DHT, and which of those that it named did not give their row."""

    answer: SourceAnswer
    silent: dict[PeerId, str]


class DhtSource:
    """Asks the DHT. `know` tells it of nodes at any time; `close` ends its node."""

    def __init__(
        self,
        make_node: Callable[[], DhtNode],
        clock: Clock,
        dials: DialPolicy,
        saved: Iterable[SavedContact] = (),
        look_around: Callable[[], Awaitable[Sequence[str]]] | None = None,
    ) -> None:
        """`saved`: nodes to begin with. `look_around` finds some (HOST:PORT, UDP) when none of those answers."""
        self._make_node = make_node
        self._clock = clock
        self._dials = dials
        self._look_around = look_around
        self._known = {contact.address: contact.heard for contact in saved}
        self._node: DhtNode | None = None
        self._joining = asyncio.Lock()

    @property
    def known(self) -> list[SavedContact]:
        """Nodes to begin with the next time."""
        self._note_living()
        return [SavedContact(address, heard) for address, heard in self._known.items()]

    def know(self, contacts: Iterable[str]) -> None:
        """There are DHT nodes at these HOST:PORT, somebody says now."""
        self._known |= dict.fromkeys(contacts, self._clock.now())
        newest = sorted(self._known.items(), key=lambda item: -item[1])
        self._known = dict(newest[:MOST_SAVED])

    async def look(self) -> Sequence[str]:
        """Look around for nodes, if that may be done."""
        found = await self._look_around() if self._look_around else []
        self.know(found)
        return found

    async def ask(self, need: Mapping[str, Any], count: int, seen: Callable[[], Mapping[PeerId, Row]]) -> DhtAnswer:
        """Peers that meet `need` (as far as compact rows say), with their full rows.

        The rows of those that `seen` knows by then are taken from there, the others' from the peers themselves.
        Raises nothing of the family.
        """
        began = self._clock.monotonic()
        try:
            node = await self._joined()
        except AxonError as error:
            return DhtAnswer(self._nothing(began, error.in_a_line), {})
        if node is None:
            known = len(self._known)
            trouble = f"none of {known} nodes answers" if known else "no node is known"
            return DhtAnswer(self._nothing(began, f"the DHT cannot be asked: {trouble}"), {})
        tags = tags_needed(need.get("packages", ()))
        # A compact row tells only how large the GPU is; the full one tells what it is capable of.
        gpu_mb = need.get("gpu_memory_mb", 0) or (1 if need.get("gpu_capability") else 0)
        wanted = RowQuery(need.get("cores", 1), need.get("memory_mb", 0), gpu_mb, tags)
        found = await node.find(wanted, count)
        rows, silent = await self._full(found, seen())
        answer = SourceAnswer(DHT, self._clock.monotonic() - began, tuple(rows), len(rows), len(found))
        return DhtAnswer(answer, silent)

    async def close(self) -> None:
        """End the node. A later question starts another."""
        self._note_living()
        node, self._node = self._node, None
        if node:
            await node.stop()

    def _note_living(self) -> None:
        if self._node:
            self.know(self._node.contacts(MOST_SAVED))

    async def _joined(self) -> DhtNode | None:
        """The node, when it knows any other."""
        async with self._joining:
            if self._node is not None and self._node.contacts(1):
                return self._node
            if await self._joins(list(self._known)):
                return self._node
            return self._node if await self._joins(await self.look()) else None

    async def _joins(self, contacts: Sequence[str]) -> bool:
        if contacts and self._node is None:
            node = self._make_node()
            await node.listen(*LISTEN)
            self._node = node
        for begin in range(0, len(contacts), AT_ONCE):
            if self._node and await self._node.bootstrap(contacts[begin : begin + AT_ONCE]):
                return True
        return False

    async def _full(
        self, found: Sequence[CompactRow], seen: Mapping[PeerId, Row]
    ) -> tuple[list[Row], dict[PeerId, str]]:
        known = [row for short in found if (row := seen.get(short.peer)) and row.certificate == short.certificate]
        at_hand = {row.peer for row in known}
        unknown = [short for short in found if short.peer not in at_hand]
        fetched = await fetch_rows(unknown, self._dials, now=self._clock.now())
        silent = {peer: row.in_a_line for peer, row in fetched.items() if isinstance(row, AxonError)}
        rows = [row for row in fetched.values() if isinstance(row, Row) and row.capability is not None]
        return [*known, *rows], silent

    def _nothing(self, began: float, trouble: str) -> SourceAnswer:
        return SourceAnswer(DHT, self._clock.monotonic() - began, trouble=trouble)
