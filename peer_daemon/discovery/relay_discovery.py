"""Other peers that are relays: looked for in samples of what trackers and the DHT hold."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from axonp2p.clock import Clock
from axonp2p.errors import AxonError
from axonp2p.identity.peer_id import PeerId, short
from axonp2p.logs import get_logger
from axonp2p.peers.capability import Need, as_map
from axonp2p.table.dht.records.compact import CompactRow
from axonp2p.table.dht.records.index_keys import RowQuery
from axonp2p.table.records import MOST_ROWS, Row
from axonp2p.table.tracker_client import query
from axonp2p.table.tracker_lines import TrackerLines
from axonp2p.transport.dial_policy import DialPolicy
from axonp2p.transport.relay.choice import RelayCandidate
from axonp2p.transport.ways import direct_ways

log = get_logger(__name__)

SAMPLE = 50
"""Compact rows that the DHT is asked for."""

FindInDht = Callable[[RowQuery, int], Awaitable[list[CompactRow]]]


class RelayDiscovery:
    """`find_in_dht` is None when this peer takes no part in the DHT."""

    def __init__(
        self, peer: PeerId, lines: TrackerLines, clock: Clock, dials: DialPolicy, find_in_dht: FindInDht | None
    ) -> None:
        self._peer = peer
        self._lines = lines
        self._clock = clock
        self._dials = dials
        self._find_in_dht = find_in_dht

    async def find(self) -> list[RelayCandidate]:
        """Peers that say that they are relays. Raises nothing of the family."""
        rows: list[Row | CompactRow] = []
        need, now = as_map(Need(also_taken=True)), self._clock.now()
        try:
            _, found = await self._lines.first(lambda line: query(line, need, MOST_ROWS, now=now))
            rows += found.rows
        except AxonError as error:
            log.debug("no tracker names a relay", reason=error.in_a_line)
        if self._find_in_dht is not None:
            try:
                rows += await self._find_in_dht(RowQuery(), SAMPLE)
            except AxonError as error:
                log.debug("the DHT names no relay", reason=error.in_a_line)
        candidates = {row.peer: one for row in rows if row.peer != self._peer and (one := _candidate(row, self._dials))}
        return list(candidates.values())


def _candidate(row: Row | CompactRow, dials: DialPolicy) -> RelayCandidate | None:
    ways = direct_ways(row, dials)
    if not row.carries or row.dialable is False or not ways:
        return None
    return RelayCandidate(str(ways[0].address), row.peer, f"peer {short(row.peer)}", is_peer=True)
