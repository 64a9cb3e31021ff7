"""The debts to peers for results that were accepted: in job.json before a result counts, then in receipts."""

from __future__ import annotations

from axonp2p.client.ledger.receipts import ReceiptBook
from axonp2p.client.run.processor_time import flops_of
from axonp2p.client.run.settlement import JobSettlement
from axonp2p.client.storage.job_journal import JobJournal
from axonp2p.kinds.run.messages import CopyExited
from axonp2p.kinds.run.record import RunRecord, UnpaidWork
from axonp2p.kinds.run.results import CopyResult

PAY_EVERY_S = 30.0
"""One receipt for all copies of a peer that ended meanwhile."""


class CopyPay:
    """Of one life of the client."""

    def __init__(self, journal: JobJournal) -> None:
        self._journal = journal
        self.due = 0.0
        """When to pay next."""

    def write_left(self, book: ReceiptBook, now: float) -> None:
        """Receipts for what the last life of the job owed. `now` is Unix time."""
        # Ranks of earlier lives stand before those of the last one.
        there = {peer.rank: peer for peer in self._record.peers}
        for rank, unpaid in self._record.unpaid.items():
            if peer := there.get(rank):
                book.write(peer.reservation, peer.peer, unpaid.work, now)

    def owe(self, settlement: JobSettlement, rank: int, ended: CopyExited, line: CopyResult) -> None:
        """Its processor seconds at the speed that the peer's row tells, as far as a core can have it."""
        flops = flops_of(ended.cpu_seconds, settlement.crew.leases[rank].row.capability)
        before = self._record.unpaid.get(rank) or UnpaidWork(index=line.index)
        unpaid = before.and_also(line.index, flops, round(1000 * ended.seconds))
        self._journal.change(lasting=True, unpaid={**self._record.unpaid, rank: unpaid}, accepted=line)

    def owes(self, rank: int) -> bool:
        """Whether this peer waits for a receipt."""
        return rank in self._record.unpaid

    def pay(self, settlement: JobSettlement, now: float) -> None:
        """A receipt for each peer that is owed something. `now` is monotonic time."""
        self.due = now + PAY_EVERY_S
        if unpaid := self._record.unpaid:
            settlement.pay(
                {rank: one.work for rank, one in unpaid.items()},
                lambda credits, receipts: self._journal.change(
                    lasting=True, credits=credits, receipts=receipts, unpaid={}
                ),
            )

    @property
    def _record(self) -> RunRecord:
        record = self._journal.record
        assert isinstance(record, RunRecord)
        return record
