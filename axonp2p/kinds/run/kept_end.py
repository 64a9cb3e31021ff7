"""The end of a job of this kind: what is told of its results; also where no peer is there any more."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from axonp2p.client.events.events import JobFinished
from axonp2p.client.ledger.receipts import ReceiptBook
from axonp2p.client.no_result import no_result
from axonp2p.client.storage.job_journal import JobJournal
from axonp2p.client.storage.kept_bundle import spec_of
from axonp2p.jobs.lifecycle import JobState
from axonp2p.kinds.run.copy_ends import CopyEnds
from axonp2p.kinds.run.copy_pay import CopyPay
from axonp2p.kinds.run.events import JobResults
from axonp2p.kinds.run.record import RunRecord
from axonp2p.kinds.run.result_keeper import ResultKeeper
from axonp2p.kinds.run.results import CopyResult
from axonp2p.kinds.run.section import RunJob


def finish(journal: JobJournal, book: ReceiptBook, now: float) -> JobFinished:
    """End a job on which nobody works with the copies that have their result; what is to be told last. Blocks.

    `now` is Unix time. Raises `JobFailed` when no copy has one, `SettingsError` of the disk.
    """
    spec = spec_of(journal.record)
    assert isinstance(spec, RunJob)
    pay = CopyPay(journal)
    keeper = ResultKeeper(journal, spec.run, CopyEnds(spec.need.cores), pay)
    found = open_results(journal, keeper, pay, book, now)
    if not found:
        raise no_result(journal.record, at_work=False)
    journal.enter(JobState.FINISHED)
    journal.disk.finish()
    return finished_event(journal, keeper.failed_indices())


def open_results(
    journal: JobJournal, keeper: ResultKeeper, pay: CopyPay, book: ReceiptBook, now: float
) -> dict[int, CopyResult]:
    """The results that count, by index, with receipts for what the last life of the job owed. Blocks."""
    found = keeper.open()
    pay.write_left(book, now)
    failed = sum(result.code != 0 for result in found.values())
    journal.change(lasting=True, results=len(found), failed=failed, unpaid={}, receipts=book.keep())
    return found


def finished_event(journal: JobJournal, failed: Sequence[int], **of_this_life: Any) -> JobFinished:
    """Tell of all results; what is told last. Without `of_this_life`, what a life knows, no peer was there."""
    record, folder = journal.record, str(journal.folder.path)
    assert isinstance(record, RunRecord)
    facts: dict[str, Any] = {"seconds": 0.0, "receipts": 0, "peers": [], "lost": []} | of_this_life
    results = JobResults(
        job=record.id, folder=folder, copies=record.results, failed=list(failed), seconds=facts["seconds"],
        credits=record.credits, receipts=facts["receipts"],
    )  # fmt: skip
    journal.tell(results)
    return journal.finished_event(facts)
