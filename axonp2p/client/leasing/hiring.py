"""From a need to leases: ask the table, measure, reserve, take; who says no is replaced by the next candidate."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable, Coroutine, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from axonp2p.client.events.events import Event, PeerHired, PeerRefused, PeersFound, Reserved, RttMeasured
from axonp2p.client.leasing.lease import Lease
from axonp2p.client.leasing.lease_sides import Reservation
from axonp2p.client.leasing.take_lease import LeaseRequest, take_lease
from axonp2p.client.leasing.token_source import TokenSource
from axonp2p.client.storage.trust_book import TrustBook
from axonp2p.clock import Clock
from axonp2p.errors import AxonError, Busy, MalformedMessage, TokenRefused, TrackerUnreachable
from axonp2p.identity.keys import PrivateKey
from axonp2p.identity.peer_id import PeerId, short
from axonp2p.peers.capability import Capability, Need, as_map, read_capability
from axonp2p.peers.coordinates import Position, guess_between
from axonp2p.peers.rtt import PingTarget, measure
from axonp2p.peers.selection import (
    MOST_CANDIDATES,
    UNREACHABLE,
    Candidate,
    Distance,
    Shortlist,
    how_many_to_ask,
    nearest_first,
    other_version,
)
from axonp2p.reservation.token import LONGEST_S
from axonp2p.supervision import cancel_and_wait
from axonp2p.table.health import wrong_clock_among
from axonp2p.table.records import Row
from axonp2p.table.reporting import Reporter
from axonp2p.table.shared_table import SharedTable
from axonp2p.table.sightings import SeenRow, Sight
from axonp2p.wire.schema import row_differs

LOOKS = 3
"""How often at most the table is asked for one job."""
GRACE_S = 300
"""For how long workers are asked to wait for a client that has vanished: time for a computer to start again."""
PAUSE_S = 1.0
"""Between two looks, when there were too few peers but others live."""


@dataclass(frozen=True)
class PeerRequest:
    """How many peers a job wants, and what each of them must offer."""

    job: str
    need: Need
    wanted: int
    at_least: int
    max_rtt_s: float
    reserve_s: int = LONGEST_S
    without: frozenset[PeerId] = frozenset()
    """Peers that are not asked: they are in the job already, or failed it."""
    names: Mapping[PeerId, str] = field(default_factory=dict)
    """By which the job knows peers of all of its lives: they keep them, and nobody else is given one."""
    present: int = 0
    """How many the job has beside these."""
    first_rank: int = 0
    """Of the first one that is hired; the others follow."""
    all_or_none: bool = False
    """Whether nobody is asked for a slot as long as fewer than `at_least` may have one."""
    also: Callable[[Capability], str] = lambda offer: ""
    """Why a peer that meets the need cannot take the job all the same; empty when it can."""


def wanted_of(request: PeerRequest) -> LeaseRequest:
    """The terms that each peer is asked for."""
    need = request.need
    gpu = (need.gpu_memory_mb, need.gpu_capability)
    return LeaseRequest(request.job, need.kind, need.cores, need.memory_mb, tuple(need.datasets), GRACE_S, *gpu)


@dataclass(frozen=True)
class Means:
    """The parts that every job of one client works with."""

    key: PrivateKey
    table: SharedTable
    position: Position
    """Where this client stands in the network, as its measurements tell."""
    clock: Clock
    trust: TrustBook

    async def take(self, row: Row, promise: Reservation, wanted: LeaseRequest, *, name: str, spread: int = 0) -> Lease:
        """`take_lease` with this client's key, at addresses that it may dial."""
        return await take_lease(self.key, self.table.dials, row, promise, wanted, name=name, spread=spread)


async def anybody(means: Means, request: PeerRequest) -> Sight:
    """All peers of the wished-for kind that the table shows, those too that are taken."""
    need = as_map(Need(kind=request.need.kind, also_taken=True))
    return await means.table.find(need, MOST_CANDIDATES, enough=MOST_CANDIDATES)


async def none_left_alone(takings: Iterable[Coroutine[Any, Any, None]]) -> None:
    """Take several leases at once. Cancelled midway, it returns when nobody can say yes unheard any more."""
    tasks = [asyncio.create_task(taking) for taking in takings]
    try:
        await asyncio.gather(*tasks)
    finally:
        await cancel_and_wait(*tasks)


class Hiring:
    """One job's search for peers. `hire()` is called once."""

    def __init__(self, means: Means, request: PeerRequest, see: Callable[[Event], None]) -> None:
        self._means = means
        self._request = request
        self._see = see
        self._tokens = TokenSource(means.key, means.table, means.clock, request.need.kind, request.reserve_s)
        self._reporter = Reporter(means.key, means.table.trackers, means.clock)
        self._shortlist = Shortlist(request.need, request.max_rtt_s, request.also)
        self._unmeasured: list[Candidate] = []
        self._seen: dict[PeerId, SeenRow] = {}
        self._silent: set[PeerId] = set()
        self._convicted = means.trust.convicted()
        self._seen_false: set[PeerId] = set()
        self._other_version: set[PeerId] = set()
        self._dialled = request.first_rank
        self._names = dict(request.names)
        self._names_given = {name.lower() for name in self._names.values()}
        self.distances: dict[PeerId, Distance] = {}
        """Of all candidates that were measured."""
        self.hired: list[Lease] = []
        """In the order of their ranks. The caller of `hire` ends them, also when it raises."""

    async def hire(self) -> None:
        """Fill `hired`. Raises `NobodyFits`, `ClockWrong`, `TrackerUnreachable`, or a tracker's refusal of the need."""
        try:
            await self._hire()
        finally:
            await self._reporter.close()

    async def _hire(self) -> None:
        count, enough = how_many_to_ask(self._request.wanted), self._request.wanted
        for look in range(LOOKS):
            try:
                sight = await self._look(count, enough)
            except TrackerUnreachable:
                if look == 0:
                    raise
                break  # those who were hired by then may be enough
            if self._may_be_enough:
                await self._take()
            if len(self.hired) >= self._request.wanted or look == LOOKS - 1:
                break
            if not sight.complete:
                enough = MOST_CANDIDATES  # those who were shown first did not do: now everybody is asked
            elif sight.fitting > len(sight.rows):
                count = MOST_CANDIDATES  # there are more than were shown
            elif sight.alive > sight.fitting:
                # A peer whose last job has just ended needs a moment to tell the tracker that it is free.
                await asyncio.sleep(PAUSE_S)
            else:
                break
        if len(self.hired) < self._request.at_least:
            await self._look_at_the_others()
            # Rows of a time that is not ours are dropped unseen: then too few fit, and nobody would look at a clock.
            trackers = self._means.table.trackers.in_order()
            if wrong := await wrong_clock_among(trackers, self._means.clock):
                raise wrong
            not_asked = 0 if self._may_be_enough else len(self._unmeasured) + len(self._shortlist)
            hired = len(self.hired) + not_asked
            raise self._shortlist.nobody_fits(hired=hired, needed=self._request.at_least)

    @property
    def taken(self) -> frozenset[PeerId]:
        """Peers whose slots are all taken."""
        return frozenset(self._shortlist.taken)

    @property
    def _may_be_enough(self) -> bool:
        candidates = len(self.hired) + len(self._unmeasured) + len(self._shortlist)
        return candidates >= self._request.at_least or not self._request.all_or_none

    async def _look(self, count: int, enough: int) -> Sight:
        """Note the peers that the table shows."""
        means = self._means
        sight = await means.table.find(as_map(self._request.need), count, enough=enough, near=means.position.told)
        sources = [answer.source for answer in sight.heard]
        present = self._request.present
        self._see(
            PeersFound(
                sources=sources,
                alive=sight.alive,
                fitting=sight.fitting,
                looked_at=len(sight.rows),
                hired=present + len(self.hired),
                wanted=present + self._request.wanted,
            )
        )
        false = {seen.row.peer for seen in sight.rows} & self._convicted - self._seen_false
        self._seen_false |= false
        self._shortlist.add_unseen(len(false), "convicted of false work, in an earlier job of yours")
        silent = sight.silent.keys() - self._silent - self._seen.keys()
        self._silent |= silent
        self._shortlist.add_unseen(len(silent), UNREACHABLE)
        self._count_other_versions([seen.row for seen in sight.rows])
        known = [candidate for seen in sight.rows if (candidate := self._candidate(seen))]
        self._unmeasured += self._shortlist.worth_measuring(known)
        return sight

    def _count_other_versions(self, rows: list[Row]) -> None:
        kind = self._request.need.kind
        others = {row.peer: reason for row in rows if (reason := other_version(row.schema, kind))}
        new = others.keys() - self._other_version
        self._other_version |= new
        for reason, count in Counter(others[peer] for peer in new).items():
            self._shortlist.add_unseen(count, reason)

    async def _look_at_the_others(self) -> None:
        """For the error: what do those lack that the table did not even show?"""
        try:
            sight = await anybody(self._means, self._request)
        except AxonError:
            return  # then it is said without them
        self._shortlist.worth_measuring([other for seen in sight.rows if (other := self._candidate(seen))])
        not_shown = sight.alive - sight.fitting - len(self.hired)
        self._shortlist.add_unseen(not_shown, "busy or taking no work now")

    def _candidate(self, seen: SeenRow) -> Candidate | None:
        row = seen.row
        if row.capability is None or row.peer == self._means.key.peer_id or row.peer in self._request.without:
            return None
        if row.peer in self._convicted or row_differs(row.schema, self._request.need.kind):
            return None
        try:
            offer = read_capability(row.capability)
        except MalformedMessage:
            return None
        self._seen[row.peer] = seen
        if row.peer not in self._names:
            self._names[row.peer] = self._name_for(row)
        return Candidate(row.peer, self._names[row.peer], offer)

    def _name_for(self, row: Row) -> str:
        """The name in its row, with as much of its key as nobody else's name has."""
        names, longest = (row.name, f"{row.name}-{short(row.peer)}"), f"{row.name}-{row.peer}"
        # In lower case, since names of files are made of them, and some disks do not tell the cases apart.
        name = next((one for one in names if one.lower() not in self._names_given), longest)
        self._names_given.add(name.lower())
        return name

    async def _measure_some(self, wanted: int) -> None:
        """Measure as many as it may take to find `wanted` of them, the nearest by their coordinates first."""
        rows = {candidate.peer: self._seen[candidate.peer].row for candidate in self._unmeasured}
        here = self._means.position.told
        guesses = {peer: guess_between(here, row.coordinate) for peer, row in rows.items()}
        estimates = {peer: seconds for peer, seconds in guesses.items() if seconds is not None}
        ranked = nearest_first(self._unmeasured, estimates)
        count = how_many_to_ask(wanted)
        candidates, self._unmeasured = ranked[:count], ranked[count:]
        targets = {candidate.peer: PingTarget(candidate.name, rows[candidate.peer]) for candidate in candidates}
        distances = await measure(targets, self._means.table.dials, enough=wanted, near_s=self._request.max_rtt_s)
        self.distances |= distances
        for peer, distance in distances.items():
            if distance.seconds is not None:
                self._means.position.heard(peer, distance.seconds, rows[peer].coordinate)
        self._report_dead(distances)
        too_far = self._shortlist.add_measured(candidates, distances)
        names = self._names
        self._see(
            RttMeasured(
                seconds={names[peer]: found.seconds for peer, found in distances.items() if found.seconds is not None},
                too_far=[candidate.name for candidate in too_far],
                unreachable={names[peer]: found.why_not for peer, found in distances.items() if found.seconds is None},
                estimated={names[peer]: estimates[peer] for peer in distances if peer in estimates},
                relayed={names[peer]: found.relay for peer, found in distances.items() if found.relay},
            )
        )

    def _report_dead(self, distances: Mapping[PeerId, Distance]) -> None:
        if all(distance.seconds is None for distance in distances.values()):
            return  # then it is more likely our own line that is dead
        for peer, distance in distances.items():
            if distance.seconds is None and not distance.given_up:
                self._reporter.report(peer, self._seen[peer].sources)

    async def _take(self) -> None:
        """Reserve and lease from the shortlist until there are enough or nobody is left on it."""
        while missing := self._request.wanted - len(self.hired):
            chosen = self._shortlist.take(missing)
            if not chosen and not self._unmeasured:
                return
            if not chosen:
                await self._measure_some(missing)
                continue
            promises = await self._promises(chosen)
            await none_left_alone(self._lease(candidate, promises[candidate.peer]) for candidate in chosen)

    async def _promises(self, chosen: list[Candidate]) -> dict[PeerId, Reservation | AxonError]:
        promises = await self._tokens.promises([self._seen[candidate.peer] for candidate in chosen])
        for uuid, (issuer, peers) in _by_reservation(promises).items():
            self._see(Reserved(reservation=uuid, issuer=issuer, peers=[self._names[peer] for peer in peers]))
        return promises

    async def _lease(self, candidate: Candidate, promise: Reservation | AxonError) -> None:
        row = self._seen[candidate.peer].row
        try:
            lease = await self._lease_on(candidate, row, promise)
        except AxonError as error:
            self._shortlist.refused("busy" if isinstance(error, Busy) else error.message)
            if type(error) is Busy:
                self._shortlist.taken.add(candidate.peer)
            self._see(PeerRefused(peer=candidate.name, reason=error.message))
            return
        rank = self._request.first_rank + len(self.hired)
        self.hired.append(lease)
        taken = lease.taken
        self._see(PeerHired(peer=lease.name, rank=rank, cores=taken.cores, memory_mb=taken.memory_mb))

    async def _lease_on(self, candidate: Candidate, row: Row, promise: Reservation | AxonError) -> Lease:
        if isinstance(promise, AxonError):
            raise promise
        wanted = wanted_of(self._request)
        # When a relay dies, it shall not take all peers of a job with it.
        spread, self._dialled = self._dialled, self._dialled + 1
        try:
            return await self._means.take(row, promise, wanted, name=candidate.name, spread=spread)
        except TokenRefused:
            # It may not know the tracker that signed, or not know it yet; its own word it knows.
            own = await self._tokens.of_the_peer(row) if promise.tracker else None
            if not isinstance(own, Reservation):
                raise
        self._see(Reserved(reservation=own.uuid, issuer=own.issued_by, peers=[candidate.name]))
        return await self._means.take(row, own, wanted, name=candidate.name, spread=spread)


def _by_reservation(promises: Mapping[PeerId, Reservation | AxonError]) -> dict[str, tuple[str, list[PeerId]]]:
    found: dict[str, tuple[str, list[PeerId]]] = {}
    for peer, promise in promises.items():
        if isinstance(promise, Reservation):
            found.setdefault(promise.uuid, (promise.issued_by, []))[1].append(peer)
    return found
