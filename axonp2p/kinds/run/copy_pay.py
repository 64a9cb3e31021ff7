"""What peers are owed for results that were accepted: in job.json before a result counts, then in receipts."""

from __future__ import annotations

from axonp2p.client.ledger.receipts import ReceiptBook
from axonp2p.client.run.settlement import JobSettlement
from axonp2p.client.storage.job_journal import JobJournal
from axonp2p.kinds.run.messages import CopyExited
from axonp2p.kinds.run.record import RunRecord, UnpaidWork
from axonp2p.kinds.run.results import CopyResult
from axonp2p.peers.capability import read_capability

PAY_EVERY_S = 30.0
"""One receipt for all copies of a peer that ended meanwhile."""
MOST_CORE_GFLOPS = 400.0
"""A row may boast: no core that a sandbox runs on has more float32 speed (two 512-bit FMA units at 5 GHz make 320)."""


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
        offer = read_capability(settlement.crew.leases[rank].row.capability or {})
        core_gflops = min(offer.gflops / max(1, offer.cores), MOST_CORE_GFLOPS)
        flops = round(ended.cpu_seconds * core_gflops * 1e9)
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
