"""The account of one life of a job with its peers: bytes, receipts, credits, logs."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from functools import partial

from axonp2p.client.events.events import ReceiptsMissing
from axonp2p.client.ledger.convictions import Convictions
from axonp2p.client.ledger.receipts import ReceiptOffice
from axonp2p.client.run.crew import LeasedCrew
from axonp2p.client.storage.job_journal import JobJournal
from axonp2p.client.storage.job_record import NumberedReceipts
from axonp2p.errors import AxonError
from axonp2p.ledger.balances import credits_of
from axonp2p.ledger.receipt import Work

RECEIPTS_S = 10.0
"""How long the last receipts may take at the end of a job."""

Commit = Callable[[dict[str, float], list[NumberedReceipts]], None]
"""Has the job's record written down with these credits and receipts."""


class JobSettlement:
    """Of one life of a job, and what was there before it."""

    def __init__(self, journal: JobJournal, crew: LeasedCrew, office: ReceiptOffice, convictions: Convictions) -> None:
        self.crew = crew
        self.convictions = convictions
        self.between_members = 0
        """Bytes that peers sent each other."""
        self.voided: set[str] = set()
        """Names of peers whose receipts of this job are void."""
        self._journal = journal
        self._office = office
        self._bytes_before = self._bytes_told = journal.record.wire_bytes
        self._credits_before = dict(journal.record.credits)

    @property
    def wire_bytes(self) -> int:
        """All bytes of the job: between client and peers, and among the peers, each counted once."""
        return self._bytes_before + self.crew.wire_bytes + self.between_members

    def more_bytes(self) -> int:
        """Those since it was asked last."""
        before, self._bytes_told = self._bytes_told, self.wire_bytes
        return self._bytes_told - before

    def credits(self) -> dict[str, float]:
        """Credits of counter-signed receipts, by the peer's name; those of the job's earlier lives included."""
        found = dict(self._credits_before)
        names = {lease.row.peer: lease.name for lease in self.crew.leases.values()}
        for peer, name in names.items():
            found[name] = found.get(name, 0.0) + credits_of(self._office.book.flops.get(peer, 0))
        return found | dict.fromkeys(self.voided, 0.0)

    def pay(self, works: Mapping[int, Work], commit: Commit) -> None:
        """Write receipts for accepted work, by rank, and ask the peers for their signatures.

        `commit` has them written down before they are sent: so no number is given twice, and none is left out.
        """
        leases = self.crew.leases  # who is not of this life of the job can sign nothing
        written = self._office.write((leases[rank], work) for rank, work in works.items() if rank in leases)
        commit(self.credits(), self._office.book.keep())
        self._journal.afterwards(partial(self._office.ask, written))

    async def settle_after(self, error: BaseException) -> None:
        """The job ends with this error: all that was paid is on the disk, and settled unless it was cancelled."""
        await self._journal.disk.finished()
        if isinstance(error, AxonError):
            await self.settle()

    async def settle(self) -> int:
        """At the end: fetch logs, wait for the last receipts and convictions; how many receipts a tracker keeps."""
        settled, _, _ = await asyncio.gather(
            self._office.settle(RECEIPTS_S), self.convictions.settle(RECEIPTS_S), self.crew.keep_logs()
        )
        if settled.unsigned or settled.not_taken:
            missing = ReceiptsMissing(unsigned=settled.unsigned, not_taken=settled.not_taken, reason=settled.reason)
            self._journal.tell(missing)
        self._journal.change(wire_bytes=self.wire_bytes, credits=self.credits(), receipts=self._office.book.keep())
        return settled.kept
