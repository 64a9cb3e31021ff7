"""The leases of one job as the crew that its driver works with: by rank, each in its own time.

Leases speak up by themselves (`LeaseListener`), the job's driver gives orders, and each needs the other; so whoever
listens for the driver comes in later, through `work_for`.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import Protocol

from axonp2p.client.leasing.kept_leases import keep_leases
from axonp2p.client.leasing.lease import Lease
from axonp2p.client.ledger.receipts import ReceiptOffice
from axonp2p.client.run.blob_office import BlobOffice
from axonp2p.client.storage.disk_work import DiskWork
from axonp2p.client.storage.job_store import JobFolder
from axonp2p.errors import AxonError, Unreachable
from axonp2p.jobs.bundle import Bundle
from axonp2p.jobs.messages import Member, OwnersMessage, SetRoster
from axonp2p.logs import get_logger
from axonp2p.supervision import in_background
from axonp2p.verification.signed_frames import SignedFrame

LOG_S = 15.0
"""How long the logs of all peers may take together at the end of a job."""

log = get_logger(__name__)


class WorkListener(Protocol):
    """Hears for a job's driver, once it works, what its peers come to."""

    async def heard(self, rank: int, payload: memoryview, *, signed: SignedFrame | None) -> None:
        """A worker's frame; `signed`: as its daemon has signed it, if it has. More is read after it."""

    async def joined(self, rank: int, name: str) -> None:
        """A peer has come that has the bundle; its rank is a new one."""

    async def lost(self, rank: int, reason: str) -> None:
        """A peer has gone."""

    async def link_lost(self, rank: int, to: int, reason: str) -> None:
        """A peer cannot reach another."""

    def line_measured(self, rank: int, upload: float, download: float) -> None:
        """Take in the speeds of a peer's line, in bytes a second, by its daemon; 0 where it does not know."""

    def owner_says(self, rank: int, message: OwnersMessage) -> None:
        """A peer's owner needs the machine, or needs it no longer."""


class LeasedCrew:
    """All peers that a job has or had. `release_all` must be called, whatever happens."""

    def __init__(
        self,
        leases: Mapping[int, Lease],
        folder: JobFolder,
        disk: DiskWork,
        office: ReceiptOffice,
        let_go: Callable[[Lease], Awaitable[None]],
        blobs: BlobOffice,
    ) -> None:
        """`disk` keeps what peers write. `let_go` gives back the slot of a peer whose session was lost: its worker
        would wait for us."""
        self.leases = dict(leases)
        self._let_go = let_go
        self._folder = folder
        self._disk = disk
        self._office = office
        self.blobs = blobs
        """All that the driver brings to peers, and how many bytes of it have travelled."""
        self._epoch = 0
        self._members: list[int] = []
        """Of the last roster that the driver set."""
        self._arriving: dict[int, Lease] = {}
        """The peers that are on every roster to be passed the bundle, and not yet in the job."""
        self._listener: WorkListener | None = None
        self._tasks: set[asyncio.Task[None]] = set()
        self._dismissed: set[int] = set()
        self._released: set[int] = set()
        self._logged: set[int] = set()
        self._turned_away: set[int] = set()
        self._given_back: set[int] = set()
        self.signed: Callable[[int, memoryview, bytes], SignedFrame] | None = None
        """Is told what peers sign of their workers' words; raises `PeerMisbehaved` for a wrong signature."""
        self.fewer = asyncio.Event()
        """Set when somebody has gone; whoever looks after it clears it."""

    def introduce(self) -> None:
        """Tell those that are present of each other, so that they pass on the bundle; waits for nobody."""
        self._members = list(self.present)
        self._post_rosters()

    def expect(self, lease: Lease) -> int:
        """One more peer, to which the members pass on the bundle from now on; its rank, which nobody had before."""
        rank = self.next_rank
        self._arriving[rank] = lease
        self._post_rosters()
        return rank

    def turn_away(self, rank: int) -> None:
        """It did not take the bundle."""
        self._turned_away.add(rank)
        del self._arriving[rank]

    def add(self, rank: int) -> None:
        """One that was expected has the bundle: it is in the job."""
        lease = self.leases[rank] = self._arriving.pop(rank)
        if self._listener:
            self._attach(rank, lease)
        self.write_down()

    async def let_in(self, rank: int) -> None:
        """One that was added works with the others from now on; before the work has begun it does so by itself."""
        if self._listener:
            await self._listener.joined(rank, self.leases[rank].name)

    def write_down(self) -> None:
        """Keep on disk which leases there are, for the next life of the job."""
        keep_leases(self._folder.leases, {rank: self.leases[rank] for rank in self.present})

    @property
    def next_rank(self) -> int:
        """Of whoever comes next."""
        return max((*self.leases, *self._arriving, *self._turned_away), default=-1) + 1

    def work_for(self, listener: WorkListener) -> None:
        """From now on the listener hears what members say, beginning with what they have come to by now."""
        self._listener = listener
        for rank, lease in self.leases.items():
            self._attach(rank, lease)

    @property
    def present(self) -> dict[int, str]:
        """Names of those that can work, by rank."""
        return {
            rank: lease.name for rank, lease in self.leases.items() if not lease.gone and rank not in self._dismissed
        }

    @property
    def wire_bytes(self) -> int:
        """Bytes between the client and all peers so far."""
        return sum(lease.wire_bytes for lease in self.leases.values())

    # --- what the driver orders ---

    def tell(self, rank: int, frame: bytes) -> None:
        """`training.crew.Crew`."""
        self.leases[rank].tell_worker(frame)

    async def send(self, rank: int, frame: bytes) -> None:
        """`training.crew.Crew`."""
        await self.leases[rank].send_to_worker(frame)

    def limit_of(self, rank: int) -> str:
        """`training.crew.Crew`."""
        return self.leases[rank].limit

    async def set_members(self, ranks: Sequence[int]) -> None:
        """`training.crew.Crew`. A peer that does not answer is noticed as gone, not here."""
        # A peer that was lost may be on its way back under another rank: nobody stands on a roster twice.
        back = {lease.row.peer for lease in self._arriving.values()}
        ranks = [rank for rank in ranks if self.leases[rank].row.peer not in back]
        self._members = list(ranks)
        rosters = self._rosters(ranks)
        answers = [lease.set_roster(roster) for roster, lease in rosters if roster.rank in ranks]
        for roster, lease in rosters:
            if roster.rank in self._arriving:
                lease.post_roster(roster)
        for rank, error in zip(ranks, await asyncio.gather(*answers, return_exceptions=True), strict=True):
            if isinstance(error, Unreachable):
                self.peer_gone(rank, error.message)
            elif isinstance(error, AxonError):
                self.peer_gone(rank, f"it refused the roster: {error.message}")
            elif isinstance(error, BaseException):
                raise error

    async def bring(self, rank: int, content: Bundle) -> None:
        """See to it that a peer has `content`, one file of this disk (`jobs.bundle.alone`), from here or from members.

        When it returns, the peer's worker can read the whole file at /blobs/NAME; `content.blob.name.hex()` is NAME.
        For a file that is there it returns at once, so call it before each use: a peer that was lost and is back is
        asked again. Several calls at once are fine, and one that is cancelled leaves the file on its way.

        Raises `Refused` when the peer does not take it (it has no room for it, say), `Unreachable` when it is gone or
        takes nothing for two minutes, what its misbehaviour ends the lease with, and `JobFileWrong` when the file
        changed since it was hashed. But for the last, that is the end of this peer's use, not of the job.
        """
        if rank not in self._members:  # of a kind that sets none: members pass on to those on their roster
            self._members.append(rank)
            self._post_rosters()
        await self.blobs.bring(rank, self.leases[rank], content)

    def drop(self, name: bytes) -> None:
        """No worker needs the blob of that name any more: peers remove it, which needs no waiting for."""
        self.blobs.drop(name)

    def _post_rosters(self) -> None:
        present = self.present
        for roster, receiver in self._rosters([rank for rank in self._members if rank in present]):
            receiver.post_roster(roster)

    def _rosters(self, ranks: Sequence[int]) -> list[tuple[SetRoster, Lease]]:
        """A new roster of these and of those that arrive, for each of them."""
        self._epoch += 1
        leases = {rank: self.leases[rank] for rank in ranks} | self._arriving
        members = [self._member(rank, lease) for rank, lease in leases.items()]
        return [(SetRoster(epoch=self._epoch, rank=rank, members=members), lease) for rank, lease in leases.items()]

    def _member(self, rank: int, lease: Lease) -> Member:
        return Member(rank=rank, reservation=lease.promise.uuid, row=lease.taken.row)

    # --- what leases say ---

    async def worker_said(self, rank: int, payload: memoryview, signature: bytes) -> None:
        """`LeaseListener`."""
        signed = self.signed(rank, payload, signature) if signature and self.signed else None
        if self._listener:
            await self._listener.heard(rank, payload, signed=signed)

    def receipt_signed(self, rank: int, receipt: bytes) -> None:
        """`LeaseListener`."""
        self._office.signed(self.leases[rank], receipt)

    def receipt_refused(self, rank: int, reason: str) -> None:
        """`LeaseListener`."""
        self._office.refused(self.leases[rank], reason)

    async def link_lost(self, rank: int, other: int, reason: str) -> None:
        """`LeaseListener`."""
        if self._listener and other in self.leases:
            await self._listener.link_lost(rank, other, reason)

    def line_measured(self, rank: int, upload: int, download: int) -> None:
        """`LeaseListener`."""
        if self._listener:
            self._listener.line_measured(rank, upload, download)

    def owner_says(self, rank: int, message: OwnersMessage) -> None:
        """`LeaseListener`."""
        if self._listener:
            self._listener.owner_says(rank, message)

    def peer_gone(self, rank: int, reason: str) -> None:
        """`LeaseListener`."""
        log.debug("peer gone", peer=self.leases[rank].name, reason=reason)
        self.fewer.set()
        self.blobs.gone(rank)
        if self.leases[rank].hung_up:
            self._office.given_up(self.leases[rank])
        if self._listener:
            in_background(self._tasks, self._listener.lost(rank, reason))

    # --- the end ---

    @property
    def cut_off(self) -> dict[int, Lease]:
        """Lost with the line to their peers, whose workers wait for us: by a relay's death, say."""
        return {rank: lease for rank, lease in self.leases.items() if lease.cut_off and rank not in self._given_back}

    def regained(self, rank: int, lease: Lease) -> None:
        """A peer that was cut off is here again, under its old promise. `ask_again` once it has all that it needs."""
        lease.log_end = self.leases[rank].log_end
        self.leases[rank] = lease
        for places in (self._dismissed, self._released, self._logged):
            places.discard(rank)
        self._office.regained(lease)

    def ask_again(self, ranks: Iterable[int]) -> None:
        """Have these sign what they had not signed, as far as is known, when they were heard of last."""
        for rank in ranks:
            self._office.ask_again(self.leases[rank])

    async def give_back_cut_off(self) -> None:
        """The job goes on without those that were cut off: their workers need not wait, and their slots are free."""
        going = self.cut_off
        self._given_back.update(going)
        await asyncio.gather(*(self._let_go(lease) for lease in going.values()))

    def dismiss(self, rank: int, reason: str) -> None:
        """A peer is out of the job: its log is fetched, then its lease ended, and it is told why, in the background."""
        self._dismissed.add(rank)
        self.blobs.gone(rank)
        self.write_down()
        self.fewer.set()
        in_background(self._tasks, self._release(rank, reason))

    async def keep_logs(self) -> None:
        """Fetch the logs of all peers that were not released yet."""
        missing = [rank for rank in self.leases if rank not in self._logged]
        try:
            async with asyncio.timeout(LOG_S):
                await asyncio.gather(*(self._keep_log(rank) for rank in missing))
        except TimeoutError:
            log.warning("logs are missing", peers=[self.leases[rank].name for rank in missing])

    async def release_all(self) -> None:
        """End every lease. Tasks in the background are given a short while."""
        if self._tasks:
            await asyncio.wait(self._tasks, timeout=LOG_S)
        for task in self._tasks:
            task.cancel()
        await self.blobs.close()
        self._released.update(self.leases)
        await asyncio.gather(*(lease.end() for lease in self.leases.values()), self.give_back_cut_off())
        # Not before: the slots of a program that is killed here are given back by the next one (`finish_killed`).
        self._folder.leases.unlink(missing_ok=True)

    async def _release(self, rank: int, reason: str) -> None:
        if rank in self._released:
            return
        self._released.add(rank)
        lease = self.leases[rank]
        lost = lease.hung_up
        await self._keep_log(rank)
        await lease.end(reason)
        if self.leases[rank] is lease:  # else it was taken again meanwhile
            self._office.given_up(lease)
        if lost and not lease.cut_off:
            await self._let_go(lease)

    async def _keep_log(self, rank: int) -> None:
        self._logged.add(rank)
        lease = self.leases[rank]
        self._write_log(lease, await lease.fetch_log())

    def _attach(self, rank: int, lease: Lease) -> None:
        lease.attach(rank, self)
        lease.follow_log(partial(self._write_log, lease))

    def _write_log(self, lease: Lease, text: bytes) -> None:
        # A disk that took nothing is told to whoever writes the record.
        with contextlib.suppress(OSError, AxonError):
            self._disk.do(partial(self._folder.add_log, lease.name, text))
