"""From chosen peers to promises: one token for all from a tracker, or from each peer its own when no tracker helps."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Sequence

from axonp2p.client.leasing.lease_sides import Reservation
from axonp2p.clock import Clock
from axonp2p.errors import AxonError, PeerMisbehaved, Refused, Unreachable
from axonp2p.identity.keys import PrivateKey
from axonp2p.identity.peer_id import PeerId
from axonp2p.logs import get_logger
from axonp2p.reservation.reserving import new_uuid, reserve
from axonp2p.table.records import Row
from axonp2p.table.shared_table import SharedTable
from axonp2p.table.sightings import SeenRow
from axonp2p.transport.dial_policy import NO_ADDRESS, NOT_REACHED
from axonp2p.transport.http.http_caller import HttpCaller
from axonp2p.transport.ways import ways_to

log = get_logger(__name__)

NEXT_AFTER_S = 2.0
"""A tracker writes a token to its disk first: the next one is asked later than for a mere question."""
NOT_WILLING = "no tracker gives a token for it, and it issues none itself"


class TokenSource:
    """Gets tokens for one client, good for so many seconds."""

    def __init__(self, key: PrivateKey, table: SharedTable, clock: Clock, kind: str, seconds: int) -> None:
        self._key = key
        self._trackers = table.trackers
        self._dials = table.dials
        self._clock = clock
        self._kind = kind
        self._seconds = seconds
        self._why_not: dict[PeerId, str] = {}
        """The reason of the last tracker that refused a token for a peer."""

    async def promises(self, chosen: Sequence[SeenRow]) -> dict[PeerId, Reservation | AxonError]:
        """A promise for each of the chosen peers, or why there is none. Raises nothing of the family."""
        found: dict[PeerId, Reservation | AxonError] = {}
        for peers in await self._at_trackers(chosen):
            found |= peers
        left = [seen.row for seen in chosen if seen.row.peer not in found]
        own = await asyncio.gather(*(self.of_the_peer(row) for row in left))
        return found | {row.peer: promise for row, promise in zip(left, own, strict=True)}

    async def of_the_peer(self, row: Row) -> Reservation | AxonError:
        """A promise that the peer itself gives, or why it does not."""
        if not row.issues_tokens:
            why = self._why_not.get(row.peer, "")
            return Unreachable(f"peer {row.name}: {NOT_WILLING}" + (f": {why}" if why else ""))
        failure: AxonError = Unreachable(f"peer {row.name} cannot be reached", cause=NO_ADDRESS)
        for way in ways_to(row, self._dials):
            try:
                async with HttpCaller(way.address, called=f"peer {row.name}", relay=way.relay) as caller:
                    return await self._reserve(caller, [row.peer], issuer=row.peer)
            except AxonError as error:
                failure = error
                if isinstance(error, Unreachable | PeerMisbehaved) and not self._dials.tells_why:
                    failure = Unreachable(f"peer {row.name} cannot be reached", cause=NOT_REACHED)
        return failure

    async def _at_trackers(self, chosen: Sequence[SeenRow]) -> list[dict[PeerId, Reservation | AxonError]]:
        peers = [seen.row.peer for seen in chosen]
        try:
            _, promise = await self._trackers.first(
                lambda caller: self._reserve(caller, peers), next_after_s=NEXT_AFTER_S, trusted=True
            )
            return [dict.fromkeys(peers, promise)]
        except Refused as error:
            # Most often no single tracker knows them all: each is asked for those that it showed.
            self._why_not |= dict.fromkeys(peers, error.in_a_line)
            log.debug("no tracker gives one token for all", reason=error.message)
            return await asyncio.gather(*(self._at(line, shown) for line, shown in self._by_tracker(chosen)))
        except AxonError as error:
            log.debug("no tracker gives a token", reason=error.in_a_line)
            return []

    def _by_tracker(self, chosen: Iterable[SeenRow]) -> list[tuple[HttpCaller, list[PeerId]]]:
        """Every peer once, at the healthiest tracker that showed it."""
        shares: list[tuple[HttpCaller, list[PeerId]]] = []
        left = {seen.row.peer: seen.sources for seen in chosen}
        for line in self._trackers.trusted():  # peers believe no other one's tokens
            share = [peer for peer, sources in left.items() if line.called in sources]
            if share:
                shares.append((line, share))
            for peer in share:
                del left[peer]
        return shares

    async def _at(self, line: HttpCaller, peers: list[PeerId]) -> dict[PeerId, Reservation | AxonError]:
        try:
            promise = await self._trackers.ask(line, lambda caller: self._reserve(caller, peers))
        except AxonError as error:
            log.debug("a tracker gives no token", tracker=line.called, peers=len(peers), reason=error.in_a_line)
            if isinstance(error, Refused):
                self._why_not |= dict.fromkeys(peers, error.in_a_line)
            if not isinstance(error, Refused) or len(peers) == 1:
                return {}
            # One that cannot be reserved there shall not cost the others their token.
            shares = await asyncio.gather(*(self._at(line, [peer]) for peer in peers))
            return {peer: promise for share in shares for peer, promise in share.items()}
        return dict.fromkeys(peers, promise)

    async def _reserve(self, caller: HttpCaller, peers: list[PeerId], issuer: PeerId = "") -> Reservation:
        uuid = new_uuid()
        token = await reserve(
            caller,
            self._key,
            peers,
            uuid=uuid,
            kinds=[self._kind],
            seconds=self._seconds,
            now=self._clock.now(),
            issuer=issuer,
        )
        return Reservation(uuid, token, caller.called, "" if issuer else str(caller.address))
