"""A job from its first question to its last receipt: the order of things, and every lease ended whatever happens."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator

from axonp2p.client.events.events import BundleSent, Event, Reserved
from axonp2p.client.leasing.hiring import Means, PeerRequest
from axonp2p.client.leasing.lease import Lease
from axonp2p.client.leasing.release_leases import finish_killed
from axonp2p.client.ledger.convictions import Convictions
from axonp2p.client.ledger.receipts import ReceiptBook, ReceiptOffice
from axonp2p.client.run.blob_office import BlobOffice
from axonp2p.client.run.crew import LeasedCrew
from axonp2p.client.run.driver import Driver, JobContext
from axonp2p.client.run.job_packages import JobPackages
from axonp2p.client.run.replacements import Replacements
from axonp2p.client.run.settlement import JobSettlement
from axonp2p.client.run.staffing import Staffing, rtts_among
from axonp2p.client.storage.job_journal import JobJournal
from axonp2p.client.storage.job_store import JobStore
from axonp2p.errors import JobFailed
from axonp2p.jobs.bundle import Bundle
from axonp2p.jobs.kinds import KINDS, load
from axonp2p.jobs.lifecycle import JobState
from axonp2p.jobs.spec import JobSpec, need_of
from axonp2p.peers.capability import Capability, read_need
from axonp2p.supervision import cancel_and_wait, keep_up

REFILL_S = 60.0
"""For so long others are hired, or the same ones once they are back, when too few have taken the bundle."""


class JobLife:
    """The work of one life of a job with its peers. `live()` is called once."""

    def __init__(
        self,
        means: Means,
        journal: JobJournal,
        spec: JobSpec,
        bundle: Bundle,
        *,
        wait_s: float = 0.0,
        program: object = None,
    ) -> None:
        """`wait_s`: for how long peers are waited for before anything is done, where too few are free. `program`: as
        `JobContext` has it."""
        self._wait_s = wait_s
        self._means = means
        self._journal = journal
        self._spec = spec
        self._packages = JobPackages(means, journal, spec, bundle)
        self._began = means.clock.monotonic()
        context = JobContext(means, journal, spec, self._began, self._may_wait, self._replacing, program)
        self._driver: Driver = load(KINDS[spec.kind].driver)(context)
        self.drives = False
        """Whether there is work that can be paused or left in good order."""
        self.ends = False
        """Whether all peers are given their slots back by now."""
        self._first_round_by = 0.0
        """Until then lost lines are waited for before the first round; 0: none was lost."""
        self.leaving = False
        """Whether it was told to leave."""
        self._stopping = False

    def leave(self) -> None:
        """End the work soon, keeping what is accepted; at once when it begins."""
        self.leaving = True
        self._driver.leave()

    def pause(self) -> None:
        """End the work after the unit that is under way."""
        self._driver.pause()

    def stop(self) -> None:
        """End the job after the unit of work that is under way, or the first one, with what is done."""
        self._stopping = True
        self._driver.stop()

    async def finish(self) -> Event:
        """End the job without peers, with what is kept; how it ended. Raises `JobFailed` where nothing is."""
        book = ReceiptBook(self._means.key, self._journal.record.id, self._journal.record.receipts)
        finish = load(KINDS[self._spec.kind].finish)
        last: Event = await asyncio.to_thread(finish, self._journal, book, self._means.clock.now())
        return last

    async def live(self) -> Event:
        """From the search for peers to the last receipt; how it ended. Raises the error that the job fails with."""
        journal, means = self._journal, self._means
        journal.enter(JobState.FINDING, error=None)
        store = JobStore(journal.folder.path.parent.parent)
        await finish_killed(store, means.key, means.table.dials, means.clock.now())
        book = ReceiptBook(means.key, journal.record.id, journal.record.receipts)
        await asyncio.to_thread(self._driver.open, book)
        async with (
            ReceiptOffice(book, means.table.trackers, means.clock) as office,
            Convictions(means.trust, means.table.trackers) as convictions,
        ):
            staffing = Staffing(means, self._request(), journal, self._tell)
            async with _ended(staffing.leases):
                await self._packages.resolve()
                await staffing.take_back()
                done = bool(journal.record.done)
                await staffing.fill(max(self._wait_s, self._spec.need.wait if done else 0), holds=done)
                blobs = BlobOffice(means.clock, journal.tell)
                crew = LeasedCrew(staffing.leases, journal.folder, journal.disk, office, staffing.let_go, blobs)
                settlement = JobSettlement(journal, crew, office, convictions)
                try:
                    await self._begin(crew, staffing, office)
                    while (last := await self._drive(settlement)) is None:
                        if self._stopping and journal.record.kept:
                            await settlement.settle()
                            return await self.finish()
                        await self._fill_again(crew, staffing)
                    return last
                finally:
                    self.ends = True
                    await crew.release_all()

    async def _begin(self, crew: LeasedCrew, staffing: Staffing, office: ReceiptOffice) -> None:
        """All peers have the bundle, and are paid for what they did before."""
        peers = staffing.records(crew.leases)
        reservations = list(dict.fromkeys(peer.reservation for peer in peers))
        trackers = (lease.promise.tracker for lease in crew.leases.values())
        self._journal.joined(peers, reservations, next((tracker for tracker in trackers if tracker), ""))
        if among := rtts_among(list(crew.leases.values())):
            self._journal.tell(among)
        crew.write_down()
        await self._send_bundle(crew, list(crew.leases))
        office.book.go_on_with({(lease.promise.uuid, lease.row.peer) for lease in crew.leases.values()})
        for lease in crew.leases.values():
            office.ask_again(lease)

    async def _fill_again(self, crew: LeasedCrew, staffing: Staffing) -> None:
        """Too few peers were left. Those that are wait with their workers until there are others."""
        self._journal.enter(JobState.FINDING)
        staffing.leases.clear()
        staffing.leases |= {rank: crew.leases[rank] for rank in crew.present}
        before = set(staffing.leases)
        staffing.ranks_from = crew.next_rank
        try:
            await staffing.take_again(crew.cut_off)
            await staffing.fill(self._spec.need.wait)
        finally:
            new = {rank: lease for rank, lease in staffing.leases.items() if rank not in before}
            again = sorted(new.keys() & crew.cut_off.keys())
            for rank in again:
                crew.regained(rank, new[rank])
            crew.leases |= new
        for peer in staffing.records(new):
            self._journal.joined_late(peer)
        await self._send_bundle(crew, list(new))
        crew.ask_again(again)

    def _request(self) -> PeerRequest:
        need = self._spec.need
        return PeerRequest(
            job=self._journal.record.id,
            need=read_need(need_of(self._spec)),
            wanted=need.peers,
            at_least=need.min_peers,
            max_rtt_s=need.max_rtt / 1000,
            reserve_s=need.reserve,
            also=self._why_not,
        )

    def _why_not(self, offer: Capability) -> str:
        """Why a peer that meets the need cannot do the job."""
        suits = KINDS[self._spec.kind].suits
        return self._packages.why_not(offer) or (load(suits)(self._spec, offer) if suits else "")

    def _tell(self, event: Event) -> None:
        if isinstance(event, Reserved) and self._journal.record.state is JobState.FINDING:
            self._journal.enter(JobState.RESERVING)
        self._journal.tell(event)

    async def _send_bundle(self, crew: LeasedCrew, ranks: list[int]) -> None:
        """To those of these whose workers lack it."""
        self._journal.enter(JobState.SENDING)
        lacking = [rank for rank in ranks if not crew.leases[rank].taken.waited]
        if not lacking:
            return
        began = self._means.clock.monotonic()
        crew.introduce()
        answers = await asyncio.gather(*(self._packages.deliver(rank, crew.leases[rank]) for rank in lacking))
        for rank, reason in zip(lacking, answers, strict=True):
            if reason:
                crew.dismiss(rank, reason)
                self._journal.lost(rank, crew.leases[rank].name, reason, len(crew.present))
        needed = self._spec.need.min_peers
        if len(crew.present) < needed:
            await self._replacements(crew).fill(needed, REFILL_S)
        present = crew.present
        if len(present) < needed:
            reasons = "; ".join(reason for reason in answers if reason)
            raise JobFailed(
                f"only {len(present)} of at least {needed} peers took the bundle", cause=reasons, fix="submit again"
            )
        names = [name for rank, name in present.items() if rank in lacking or rank not in ranks]
        seconds = self._means.clock.monotonic() - began
        sent, passed_on = self._packages.sent_bytes, self._packages.member_bytes
        self._journal.tell(BundleSent(peers=names, bytes=sent, member_bytes=passed_on, seconds=seconds))

    async def _drive(self, settlement: JobSettlement) -> Event | None:
        """Work with the peers that are there; how it ended, or None when it may go on with others."""
        self._journal.change(lasting=True, lives=self._journal.record.lives + 1)
        self._journal.enter(JobState.RUNNING)
        self.drives = True
        last = await self._driver.run(settlement)
        self.drives = last is not None
        return last

    def _may_wait(self, crew: LeasedCrew) -> bool:
        """Whether others are looked for when too few are left: before a round is done only for as long as `wait` says
        in all, and only when it was lines that were lost, for peers at which the task dies would be hired for ever."""
        if not self._spec.need.wait or self.leaving:
            return False
        if self._journal.record.done:
            return True
        now = self._means.clock.monotonic()
        self._first_round_by = self._first_round_by or now + self._spec.need.wait
        return bool(crew.cut_off) and now < self._first_round_by

    @contextlib.asynccontextmanager
    async def _replacing(self, crew: LeasedCrew) -> AsyncIterator[None]:
        """Meanwhile peers are hired in place of those that go."""
        replacements = self._replacements(crew)
        task = asyncio.create_task(keep_up("finding replacements", replacements.run), name="replacements")
        try:
            yield
        finally:
            await cancel_and_wait(task)

    def _replacements(self, crew: LeasedCrew) -> Replacements:
        return Replacements(self._means, self._request(), crew, self._journal, deliver=self._packages.deliver)


@contextlib.asynccontextmanager
async def _ended(leases: dict[int, Lease]) -> AsyncIterator[None]:
    """In every case, no lease outlives this."""
    try:
        yield
    finally:
        await asyncio.gather(*(lease.end() for lease in leases.values()))
