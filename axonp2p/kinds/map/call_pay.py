"""The debts to peers for results that were accepted, by reservation and peer.

results.sqlite has all that was ever accepted, written with the results; job.json what of it has a receipt, written with
the numbers of the receipts. So the difference is owed, whenever the client died.
"""

from __future__ import annotations

from collections.abc import Iterable

from axonp2p.client.leasing.lease import Lease
from axonp2p.client.ledger.receipts import ReceiptBook
from axonp2p.client.run.settlement import JobSettlement
from axonp2p.client.storage.job_journal import JobJournal
from axonp2p.kinds.map.record import MapRecord, PaidWork
from axonp2p.kinds.map.results.results_store import WorkDone
from axonp2p.ledger.receipt import MOST_AMOUNT, Work

PAY_EVERY_S = 30.0
"""One receipt for all calls of a peer that ended meanwhile."""
MOST_UNIT = 2**31


class CallPay:
    """Of one life of the client."""

    def __init__(self, journal: JobJournal) -> None:
        self._journal = journal
        self._done: dict[str, WorkDone] = {}
        """Of each place, all that is in results.sqlite."""
        self.due = 0.0
        """When to pay next."""

    def open(self, done: Iterable[WorkDone], book: ReceiptBook, now: float, *, forget: bool = False) -> None:
        """Receipts for what the last life of the job owed. `now`: Unix time. `forget`: results.sqlite is new."""
        self._done = {one.place: one for one in done}
        paid = {} if forget else dict(self._record.paid)
        for place in list(self._done):
            if work := self._owed(place, paid.get(place, PaidWork())):
                reservation, _, peer = place.partition("/")
                book.write(reservation, peer, work, now)
                paid[place] = self._all(place)
        self._journal.change(lasting=True, paid=paid, receipts=book.keep())

    def accepted(self, work: Iterable[WorkDone]) -> None:
        """This is in results.sqlite now, too."""
        for one in work:
            before = self._done.get(one.place, WorkDone(one.place, 0, 0, 0))
            flops, milliseconds = before.flops + one.flops, before.milliseconds + one.milliseconds
            self._done[one.place] = WorkDone(one.place, one.item, flops, milliseconds)

    def owes(self, place: str) -> bool:
        """Whether the peer there waits for a receipt."""
        return self._owed(place, self._record.paid.get(place, PaidWork())) is not None

    def pay(self, settlement: JobSettlement, now: float) -> None:
        """A receipt for each peer that is owed something. `now` is monotonic time."""
        self.due = now + PAY_EVERY_S
        works, paid = dict[int, Work](), dict(self._record.paid)
        for rank, lease in settlement.crew.leases.items():
            place = place_of(lease)
            if work := self._owed(place, paid.get(place, PaidWork())):
                works[rank] = work
                paid[place] = self._all(place)
        if works:
            settlement.pay(
                works,
                lambda credits, receipts: self._journal.change(
                    lasting=True, credits=credits, receipts=receipts, paid=paid
                ),
            )

    def _owed(self, place: str, paid: PaidWork) -> Work | None:
        done = self._done.get(place)
        if done is None:
            return None
        flops, milliseconds = done.flops - paid.flops, done.milliseconds - paid.milliseconds
        if flops <= 0 and milliseconds <= 0:
            return None
        return Work(
            unit=min(done.item, MOST_UNIT), flops=min(max(0, flops), MOST_AMOUNT), samples=0,
            milliseconds=max(0, milliseconds),
        )  # fmt: skip

    def _all(self, place: str) -> PaidWork:
        done = self._done[place]
        return PaidWork(flops=done.flops, milliseconds=done.milliseconds)

    @property
    def _record(self) -> MapRecord:
        record = self._journal.record
        assert isinstance(record, MapRecord)
        return record


def place_of(lease: Lease) -> str:
    """Its reservation and peer, as results.sqlite and job.json name them."""
    return f"{lease.promise.uuid}/{lease.row.peer}"
