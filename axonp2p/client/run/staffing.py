"""Peers for a job: first those that wait for it, with what they hold, then others, for as long as may be waited.

A job that was killed wrote down its leases (`kept_leases`). Each of these peers is shown its promise again: one whose
worker waits gives that back, one that has forgotten it starts a new worker in the same slot.
"""

from __future__ import annotations

import asyncio
import dataclasses
import itertools
import random
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import suppress

from axonp2p.client.events.events import Event, PeersAwaited, PeersFound, RttsGuessed
from axonp2p.client.leasing.hiring import Hiring, Means, PeerRequest, anybody, none_left_alone, wanted_of
from axonp2p.client.leasing.kept_leases import KeptLease, kept_leases, kept_of, slot_holders
from axonp2p.client.leasing.lease import Lease
from axonp2p.client.leasing.slot_holders import LookPace, with_holders
from axonp2p.client.storage.job_journal import JobJournal
from axonp2p.client.storage.job_record import PeerRecord
from axonp2p.client.storage.job_store import JobStore
from axonp2p.errors import AxonError, NobodyFits, Unreachable
from axonp2p.identity.peer_id import PeerId
from axonp2p.logs import get_logger
from axonp2p.peers.coordinates import guess_between
from axonp2p.plain_text import plural
from axonp2p.table.records import Row

log = get_logger(__name__)

FIRST_PAUSE_S, LONGEST_PAUSE_S = 2.0, 15.0
"""Between two looks at the table while there are too few peers; doubled each time."""
LET_GO_S = 5.0


class Staffing:
    """Fills `leases`, by rank. Its caller ends those that are there, also when it raises."""

    def __init__(
        self,
        means: Means,
        request: PeerRequest,
        journal: JobJournal,
        see: Callable[[Event], None],
    ) -> None:
        self._means = means
        self._found: PeersFound | None = None
        """The last news told of the table."""
        self._request = request
        self._journal = journal
        self._see = see
        self._rtt: dict[str, float] = {peer.peer: peer.rtt_s for peer in journal.record.peers}
        self.leases: dict[int, Lease] = {}
        self.ranks_from = 0
        """New peers have higher ranks than any that was given."""

    async def take_back(self) -> None:
        """The peers of the last life of the job, as far as they are there: where they were, or where they are now."""
        await self._take_all_again(kept_leases(self._journal.folder.leases))

    async def take_again(self, cut_off: Mapping[int, Lease]) -> None:
        """The same with peers of this life whose lines were lost: by other ways, through other relays."""
        await self._take_all_again(kept_of(cut_off))

    async def _take_all_again(self, kept: Sequence[KeptLease]) -> None:
        await self._take_again(kept, {})
        missing = [one for one in kept if one.rank not in self.leases]
        if missing and (rows := await self._rows_now()):
            await self._take_again(missing, rows)

    async def _take_again(self, kept: Sequence[KeptLease], rows: Mapping[PeerId, Row]) -> None:
        await none_left_alone(self._take_one_again(one, rows) for one in kept)

    async def fill(self, seconds: float, *, holds: bool = True) -> None:
        """Hire until there are as many as the job wants, or after so many seconds as it needs at least.

        Raises `NobodyFits` or `TrackerUnreachable` when there are too few by then. With enough for a beginning it does
        not wait: the others are looked for while those train. With `holds` those that came are kept meanwhile; without
        it a job that waits holds no slot that others could use, and asks for none while too few are free.
        """
        until, told = self._means.clock.monotonic() + seconds, ""
        pace = LookPace(FIRST_PAUSE_S, LONGEST_PAUSE_S, random.random)
        while self._missing > 0:
            before = set(self.leases)
            try:
                await self._hire(all_or_none=seconds > 0 and not holds)
            except (NobodyFits, Unreachable) as error:
                if not holds:
                    await self._give_back(self.leases.keys() - before)
                left = until - self._means.clock.monotonic()
                if left <= 0:
                    raise
                told = self._wait_for(error, left, told)
                await asyncio.sleep(pace.pause(left))
        if told:
            self._journal.waits_for([])

    def _wait_for(self, error: AxonError, seconds: float, told: str) -> str:
        """Write down and tell what is waited for, unless that is what was told; gives what has been told by now."""
        have, need = len(self._there), self._request.at_least
        self._journal.change(waits_for=[plural(need - have, "more peer")])
        if error.in_a_line != told:
            self._see(PeersAwaited(there=have, needed=need, seconds=seconds, reason=error.in_a_line))
        return error.in_a_line

    async def _give_back(self, ranks: Collection[int]) -> None:
        """End the leases of these."""
        going = [self.leases.pop(rank) for rank in ranks]
        await asyncio.gather(*(lease.end() for lease in going))

    def records(self, ranks: Collection[int]) -> list[PeerRecord]:
        """The records of those of these ranks."""
        return [
            PeerRecord(
                name=lease.name,
                peer=lease.row.peer,
                rank=rank,
                reservation=lease.promise.uuid,
                rtt_s=self._rtt.get(lease.row.peer, 0.0),
            )
            for rank, lease in sorted(self.leases.items())
            if rank in ranks
        ]

    async def let_go(self, lost: Lease) -> None:
        """Give back the slot of a peer whose session was lost, if it answers soon: its worker need not wait for us."""
        with suppress(AxonError, TimeoutError):
            async with asyncio.timeout(LET_GO_S):
                wanted = dataclasses.replace(wanted_of(self._request), grace_s=0)
                lease = await self._means.take(lost.row, lost.promise, wanted, name=lost.name)
                await lease.end()

    @property
    def _there(self) -> dict[int, Lease]:
        return {rank: lease for rank, lease in self.leases.items() if not lease.gone}

    @property
    def _missing(self) -> int:
        """Without how many more the job cannot begin."""
        return self._request.at_least - len(self._there)

    async def _hire(self, *, all_or_none: bool) -> None:
        there = self._there
        request = dataclasses.replace(
            self._request,
            wanted=self._request.wanted - len(there),
            at_least=self._missing,
            present=len(there),
            without=frozenset(lease.row.peer for lease in there.values()),
            names=self._journal.record.peer_names | {lease.row.peer: lease.name for lease in self.leases.values()},
            first_rank=max([self.ranks_from - 1, *self.leases]) + 1,
            all_or_none=all_or_none,
        )
        hiring = Hiring(self._means, request, self._tell)
        try:
            await hiring.hire()
        except NobodyFits as error:
            raise await self._with_holders(error, hiring.taken) from error
        finally:
            self.leases |= dict(enumerate(hiring.hired, request.first_rank))
            self._rtt |= {peer: found.seconds or 0.0 for peer, found in hiring.distances.items()}

    def _tell(self, event: Event) -> None:
        """News that the table shows again and again while a job waits is told once."""
        if isinstance(event, PeersFound):
            if event == self._found:
                return
            self._found = event
        self._see(event)

    async def _with_holders(self, error: NobodyFits, taken: Collection[PeerId]) -> NobodyFits:
        folder = self._journal.folder.path
        store = JobStore(folder.parent.parent)
        holders = await asyncio.to_thread(slot_holders, store, self._means.clock.now(), folder.name) if taken else []
        return with_holders(error, taken, holders)

    async def _rows_now(self) -> dict[PeerId, Row]:
        """Of all peers that the table shows: one that was started again may listen elsewhere."""
        try:
            sight = await anybody(self._means, self._request)
        except AxonError:
            return {}
        return {seen.row.peer: seen.row for seen in sight.rows}

    async def _take_one_again(self, kept: KeptLease, rows: Mapping[PeerId, Row]) -> None:
        """At the addresses that the lease was taken at, or at those in `rows` when they are others."""
        try:
            row, promise = kept.opened()
            if rows:
                now = rows.get(row.peer)
                if now is None or (now.addresses, now.relays) == (row.addresses, row.relays):
                    return
                row = now
            wanted = wanted_of(self._request)
            lease = await self._means.take(row, promise, wanted, name=kept.name)
        except AxonError as error:
            log.info("a peer that the job had is not there", peer=kept.name, reason=error.in_a_line)
            return
        self.leases[kept.rank] = lease


def rtts_among(leases: Sequence[Lease]) -> RttsGuessed | None:
    """How far the peers are from each other, as their rows tell; None when they tell nothing."""
    seconds: dict[str, dict[str, float]] = {}
    for one, other in itertools.combinations(leases, 2):
        guess = guess_between(one.row.coordinate, other.row.coordinate)
        if guess is not None:
            seconds.setdefault(one.name, {})[other.name] = guess
    return RttsGuessed(seconds=seconds) if seconds else None
