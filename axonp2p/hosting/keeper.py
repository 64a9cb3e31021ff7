"""All jobs that a host holds: taken in, cared for over restarts of the host, and forgotten in time."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from pathlib import Path

from axonp2p.blobs.manifest import Blob
from axonp2p.clock import Clock
from axonp2p.errors import Busy, Refused
from axonp2p.hosting.admission import Applicant, HeldJob, HostLimits, admit, give_way, settle, why_forgotten
from axonp2p.hosting.copying import Copies
from axonp2p.hosting.hosted_folder import HostedFolder, HostedRecord, all_folders
from axonp2p.hosting.messages import HostJob
from axonp2p.hosting.process import Program, RunOrders
from axonp2p.hosting.tending import Tending
from axonp2p.identity.keys import PrivateKey
from axonp2p.identity.peer_id import PeerId, short
from axonp2p.jobs.bundle import admit as admit_bundle
from axonp2p.logs import get_logger
from axonp2p.supervision import alone

log = get_logger(__name__)

LOOK_EVERY_S = 20.0
"""How often it is looked how much disk each job takes, and which are to be forgotten."""


class Keeper:
    """The jobs in the folder `hosted`. `start()` it, let `run()` run, `stop()` it at the end."""

    def __init__(self, hosted: Path, limits: HostLimits, clock: Clock, program: Program | None = None) -> None:
        self.limits = limits
        self.trackers: Callable[[], Sequence[str]] = lambda: ()
        """Gives the addresses that the jobs' processes are told, the best first."""
        self._program = program or Program()
        self._hosted = hosted
        self.clock = clock
        self._jobs: dict[tuple[PeerId, str], Tending] = {}
        self._turn = asyncio.Lock()
        self._ends = asyncio.Lock()
        self.copies = Copies()

    async def start(self) -> None:
        """Go on with all that is not over."""
        for folder, record in await asyncio.to_thread(all_folders, self._hosted):
            tending = self._jobs[record.owner, record.job] = self._tending(folder, record)
            if record.arrived and not record.over_since:
                tending.begin()

    async def run(self) -> None:
        """Look after them, until cancelled."""
        while True:
            await asyncio.sleep(LOOK_EVERY_S)
            await self.look()

    async def stop(self) -> None:
        """End all processes; their jobs go on when the host is started again."""
        await asyncio.gather(*(tending.stop() for tending in self._jobs.values()))

    @property
    def running(self) -> int:
        """How many jobs a process works on."""
        return sum(tending.at_work for tending in self._jobs.values())

    async def free(self) -> int:
        """For how many jobs there is room."""
        here = [one for one in await self._held() if one.arrived and not one.is_copy]
        return max(0, self.limits.jobs - len(here) + len(give_way(here, self.clock.now())))

    def of(self, owner: PeerId) -> list[Tending]:
        """The jobs of one client whose bundles are whole."""
        return [one for (whose, _), one in self._jobs.items() if whose == owner and one.record.arrived]

    def find(self, owner: PeerId, job: str) -> Tending:
        """One of them. Raises `Refused`."""
        tending = self._jobs.get((owner, job))
        if tending is None or not tending.record.arrived:
            raise Refused(f"this host holds no job {job} of yours", fix="axon jobs")
        return tending

    def find_to_read(self, caller: PeerId, job: str) -> Tending:
        """One of the caller's, or the one whose own key the caller has: a second host that copies it. Raises `Refused`.

        `reader` is empty for jobs that are older than copies.
        """
        found = (one for (_, name), one in self._jobs.items() if name == job and one.record.reader == caller)
        return next((one for one in found if one.record.arrived), None) or self.find(caller, job)

    async def take(self, owner: PeerId, source: str, asked: HostJob, blob: Blob) -> Tending:
        """Make room for a job whose bundle is to come, or find what has come of it.

        Raises `Refused`, `LimitReached`, `Busy`, `MalformedMessage` or `MessageTooLarge` with why it may not come.
        """
        async with self._turn:  # two that come at once must not both have the last place
            if asked.copies and self.copies.find_host(asked.copies) is None:
                raise Refused(
                    f"this host copies from trackers that its operator trusts, and {short(asked.copies)} is none",
                    fix="its operator names that one: axon-tracker run --tracker ADDRESS",
                )
            known = self._jobs.get((owner, asked.job))
            if known is not None:
                record = known.record
                if (record.blob, record.copies) != (asked.blob.hex(), asked.copies):
                    raise Refused(f"this host holds another job {asked.job} of yours", fix="submit it again")
                return known
            admit_bundle(blob, self.limits.disk_bytes)
            applicant, now = Applicant(owner, asked.job, source, blob.size, bool(asked.copies)), self.clock.now()
            await self._forget_all(admit(applicant, await self._held(), self.limits, now))
            folder = HostedFolder(self._hosted, owner, asked.job)
            record = HostedRecord(
                job=asked.job,
                owner=owner,
                source=source,
                blob=asked.blob.hex(),
                began=self.clock.now(),
                reader=PrivateKey(asked.key).peer_id,
                copies=asked.copies,
            )
            await asyncio.to_thread(folder.make, record, blob, asked.key)
            tending = self._jobs[owner, asked.job] = self._tending(folder, record)
            log.info("job comes to be hosted", job=asked.job, owner=short(owner), mib=blob.size // 2**20)
            return tending

    async def arrived(self, tending: Tending) -> None:
        """Its bundle is whole: it runs from now on. Raises `TooOften` or `Busy` when there is no place for it."""
        async with self._turn:
            if tending.forgotten:
                raise Refused(f"this host holds the job no more: {tending.forgotten}", fix="hand it over again")
            try:
                await self._settle(tending, is_copy=bool(tending.record.copies))
            except Busy:
                await self._forget(tending, "others took the place")
                raise
            await tending.arrived()
            tending.begin()

    async def take_over(self, tending: Tending) -> None:
        """A copy is the job from now on, and takes a job's place.

        Raises `Refused` when its host works on it, `TooOften` or `Busy`; it stays a copy then.
        """
        await tending.check_host_is_gone()
        async with self._turn:
            if tending.record.copies and not tending.forgotten:  # nobody was faster
                await self._settle(tending, is_copy=False)
                await tending.take_over()

    async def _settle(self, tending: Tending, *, is_copy: bool) -> None:
        record = tending.record
        applicant = Applicant(record.owner, record.job, record.source, 0, is_copy)
        await self._forget_all(settle(applicant, await self._held(), self.limits, self.clock.now()))

    async def look(self) -> None:
        """Forget what has its time behind it, and give up what takes too much."""
        now = self.clock.now()
        for tending in list(self._jobs.values()):
            await alone("a look at a hosted job", self._look_at(tending, now))

    async def _look_at(self, tending: Tending, now: float) -> None:
        held = await asyncio.to_thread(tending.held)
        if why := why_forgotten(held, self.limits, now):
            await self._forget(tending, why)
        elif held.arrived and await asyncio.to_thread(tending.folder.bytes_used) > self.limits.disk_bytes:
            why = f"it takes more than the {self.limits.disk_bytes // 2**20} MiB that a job may"
            if held.is_copy:
                await self._forget(tending, why)
            elif tending.at_work:
                await tending.give_up(why)

    async def forget(self, tending: Tending, why: str) -> None:
        """It was no use."""
        async with self._turn:
            await self._forget(tending, why)

    async def _forget_all(self, going: Iterable[HeldJob]) -> None:
        for one in going:
            if tending := self._jobs.get((one.owner, one.job)):
                await self._forget(tending, "another job takes its place")

    async def _forget(self, tending: Tending, why: str) -> None:
        record, tending.forgotten = tending.record, why
        log.info("hosted job forgotten", job=record.job, owner=short(record.owner), reason=why)
        self._jobs.pop((record.owner, record.job), None)
        await tending.stop()
        with suppress(OSError):
            await asyncio.to_thread(tending.folder.remove)

    async def _held(self) -> list[HeldJob]:
        tended = list(self._jobs.values())
        return await asyncio.to_thread(lambda: [one.held() for one in tended])

    def _tending(self, folder: HostedFolder, record: HostedRecord) -> Tending:
        return Tending(folder, record, self.clock, self._orders, self._program, self._ends, self.copies)

    def _orders(self, record: HostedRecord) -> RunOrders:
        return RunOrders(record.job, self.limits.disk_bytes, self.trackers())
