"""From a need to leases: ask the table, measure, reserve, take; who says no is replaced by the next candidate."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass

from axonp2p.client.events import Event, PeerHired, PeerRefused, PeersFound, Reserved, RttMeasured
from axonp2p.client.lease import Lease
from axonp2p.client.lease_sides import Promise
from axonp2p.client.taking import Wanted, take_lease
from axonp2p.client.trackers import Trackers
from axonp2p.clock import Clock
from axonp2p.errors import AxonError, Busy, MalformedMessage
from axonp2p.identity.keys import PrivateKey
from axonp2p.identity.peer_id import PeerId, short
from axonp2p.peers.capability import Need, as_map, read_capability
from axonp2p.peers.rtt import Target, measure
from axonp2p.peers.selection import MOST_CANDIDATES, Candidate, Distance, Shortlist, how_many_to_ask
from axonp2p.reservation.reserving import new_uuid, reserve
from axonp2p.reservation.token import LONGEST_S
from axonp2p.table.records import Row
from axonp2p.table.tracker_client import Found, query
from axonp2p.transport.http_caller import HttpCaller

LOOKS = 3
"""How often at most the table is asked for one job."""
PAUSE_S = 1.0
"""Between two looks, when there were too few peers but others live."""


@dataclass(frozen=True)
class Wish:
    """How many peers a job wants, and what each of them must offer."""

    job: str
    need: Need
    wanted: int
    at_least: int
    max_rtt_s: float


class Hiring:
    """One job's search for peers. `hire()` is called once."""

    def __init__(
        self, key: PrivateKey, trackers: Trackers, clock: Clock, wish: Wish, see: Callable[[Event], None]
    ) -> None:
        self._key = key
        self._trackers = trackers
        self._clock = clock
        self._wish = wish
        self._see = see
        self._shortlist = Shortlist(wish.need, wish.max_rtt_s)
        self._rows: dict[PeerId, Row] = {}
        self._names: dict[PeerId, str] = {}
        self.distances: dict[PeerId, Distance] = {}
        """Of all candidates that were measured."""
        self.hired: list[Lease] = []
        """In the order of their ranks. Whoever calls `hire` ends them, also when it raises."""

    async def hire(self) -> None:
        """Fill `hired`. Raises `NobodyFits`, `TrackerUnreachable`, or a tracker's refusal."""
        count = how_many_to_ask(self._wish.wanted)
        for look in range(LOOKS):
            found = await self._look(count)
            await self._take()
            if len(self.hired) >= self._wish.wanted or look == LOOKS - 1:
                break
            if found.fitting > len(found.rows):
                count = MOST_CANDIDATES  # there are more than were shown
            elif found.alive > found.fitting:
                # A peer whose last job has just ended needs a moment to tell the tracker that it is free.
                await asyncio.sleep(PAUSE_S)
            else:
                break
        if len(self.hired) < self._wish.at_least:
            await self._look_at_the_others()
            raise self._shortlist.nobody_fits(hired=len(self.hired), needed=self._wish.at_least)

    async def _look(self, count: int) -> Found:
        """Put peers that the table knows on the shortlist."""
        need = as_map(self._wish.need)
        tracker, found = await self._trackers.first(lambda caller: query(caller, need, count, now=self._clock.now()))
        looked_at = len(found.rows)
        self._see(PeersFound(tracker=tracker.called, alive=found.alive, fitting=found.fitting, looked_at=looked_at))
        rows = [candidate for row in found.rows if (candidate := self._candidate(row))]
        if candidates := self._shortlist.worth_measuring(rows):
            await self._measure(candidates)
        return found

    async def _look_at_the_others(self) -> None:
        """For the error: what do those lack that the table did not even show?"""
        any_free = as_map(Need(kind=self._wish.need.kind))
        _, found = await self._trackers.first(
            lambda caller: query(caller, any_free, MOST_CANDIDATES, now=self._clock.now())
        )
        self._shortlist.worth_measuring([other for row in found.rows if (other := self._candidate(row))])
        not_shown = found.alive - found.fitting - len(self.hired)
        self._shortlist.add_unseen(not_shown, "busy or taking no work now")

    def _candidate(self, row: Row) -> Candidate | None:
        if row.capability is None or row.peer == self._key.peer_id:
            return None
        try:
            offer = read_capability(row.capability)
        except MalformedMessage:
            return None
        self._rows[row.peer] = row
        if row.peer not in self._names:
            taken = row.name in self._names.values()
            self._names[row.peer] = f"{row.name}-{short(row.peer)}" if taken else row.name
        return Candidate(row.peer, self._names[row.peer], offer)

    async def _measure(self, candidates: list[Candidate]) -> None:
        targets = {
            candidate.peer: Target(candidate.name, row.addresses, row.certificate)
            for candidate in candidates
            if (row := self._rows[candidate.peer])
        }
        distances = await measure(targets)
        self.distances |= distances
        too_far = self._shortlist.add_measured(candidates, distances)
        names = self._names
        self._see(
            RttMeasured(
                seconds={names[peer]: found.seconds for peer, found in distances.items() if found.seconds is not None},
                too_far=[candidate.name for candidate in too_far],
                unreachable={names[peer]: found.why_not for peer, found in distances.items() if found.seconds is None},
            )
        )

    async def _take(self) -> None:
        """Reserve and lease from the shortlist until there are enough or nobody is left on it."""
        while missing := self._wish.wanted - len(self.hired):
            chosen = self._shortlist.take(missing)
            if not chosen:
                return
            promise = await self._reserve(chosen)
            tasks = [asyncio.create_task(self._lease(candidate, promise)) for candidate in chosen]
            try:
                await asyncio.gather(*tasks)
            finally:
                # Cancelled midway: who has said yes by then is in `hired`, who has not must not say it unheard.
                for task in tasks:
                    task.cancel()
                await asyncio.gather(*tasks, return_exceptions=True)

    async def _reserve(self, chosen: list[Candidate]) -> Promise:
        uuid = new_uuid()
        peers = [candidate.peer for candidate in chosen]

        async def ask(caller: HttpCaller) -> Promise:
            kinds = [self._wish.need.kind]
            token = await reserve(
                caller, self._key, peers, uuid=uuid, kinds=kinds, seconds=LONGEST_S, now=self._clock.now()
            )
            return Promise(uuid, token, caller)

        tracker, promise = await self._trackers.first(ask)
        names = [candidate.name for candidate in chosen]
        self._see(Reserved(reservation=uuid, tracker=tracker.called, peers=names))
        return promise

    async def _lease(self, candidate: Candidate, promise: Promise) -> None:
        need, row = self._wish.need, self._rows[candidate.peer]
        wanted = Wanted(self._wish.job, need.kind, need.cores, need.memory_mb)
        try:
            lease = await take_lease(self._key, row, row.addresses, promise, wanted, name=candidate.name)
        except AxonError as error:
            self._shortlist.refused("busy" if isinstance(error, Busy) else error.message)
            self._see(PeerRefused(peer=candidate.name, reason=error.message))
            return
        rank = len(self.hired)
        self.hired.append(lease)
        taken = lease.taken
        self._see(PeerHired(peer=lease.name, rank=rank, cores=taken.cores, memory_mb=taken.memory_mb))
