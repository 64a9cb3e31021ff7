"""The end of a job of this kind: what is told of its results; also where no peer is there any more."""

from __future__ import annotations

from typing import Any

from axonp2p.client.events.events import FileDamaged, JobFinished
from axonp2p.client.ledger.receipts import ReceiptBook
from axonp2p.client.no_result import no_result
from axonp2p.client.storage.job_journal import JobJournal
from axonp2p.client.storage.job_store import JobFolder
from axonp2p.client.storage.kept_bundle import spec_of
from axonp2p.errors import JobFailed
from axonp2p.jobs.lifecycle import JobState
from axonp2p.kinds.map.call_pay import CallPay
from axonp2p.kinds.map.calls.calls_store import CallsStore
from axonp2p.kinds.map.events import CallsDone
from axonp2p.kinds.map.items_file import ItemsFile
from axonp2p.kinds.map.record import MapRecord
from axonp2p.kinds.map.results.results_store import ResultsStore
from axonp2p.kinds.map.section import MapJob, tree_of

RESULTS = "results.sqlite"


def finish(journal: JobJournal, book: ReceiptBook, now: float) -> JobFinished:
    """End a job on which nobody works with the results that it has; what is to be told last. Blocks.

    `now` is Unix time. Raises `JobFailed` when it has none, `SettingsError` of the disk.
    """
    store = ResultsStore(journal.folder.path / RESULTS)
    try:
        found = open_results(journal, store, CallPay(journal), book, now)
        tree = store.tree()
    finally:
        store.close()
    if tree and tree.calls - 1 not in found:
        problem = f"{journal.record.id} has no result: its results are not merged yet"
        raise JobFailed(problem, fix=f"axon resume {journal.record.id}")
    if not found:
        raise no_result(journal.record, at_work=False)
    journal.enter(JobState.FINISHED)
    journal.disk.finish()
    return finished_event(journal)


def open_results(journal: JobJournal, store: ResultsStore, pay: CallPay, book: ReceiptBook, now: float) -> list[int]:
    """The items that have their result, with receipts for what the last life of the job owed. Blocks."""
    spec = spec_of(journal.record)
    assert isinstance(spec, MapJob)
    aside = store.open()
    if aside:
        journal.tell(FileDamaged(name=RESULTS, file=str(aside)))
    found = store.finished()
    pay.open(store.work(), book, now, forget=bool(aside))
    items = items_of(spec, journal.folder)
    if tree := tree_of(spec, items):
        store.keep_tree(tree)
        # An error ends the job: one that no second peer gave is not believed for ever.
        alone = store.failed_alone()
        store.forget(alone)
        found = sorted(set(found).difference(alone))
        # A crash may have come between a result that was taken back and those that it is part of.
        lacking = tree.ancestors_of(set(range(tree.calls)).difference(found))
        store.forget(lacking)
        items, found = tree.calls, sorted(set(found) - lacking)
    journal.change(lasting=True, items=items, results=len(found), failed=len(store.failed()))
    return found


def items_of(spec: MapJob, folder: JobFolder) -> int:
    """How many items the job in that folder has. Blocks."""
    section = spec.map
    if section.calls:
        calls = CallsStore(folder.path)
        try:
            return calls.count()
        finally:
            calls.close()
    if isinstance(section.items, int):
        return section.items
    return len(ItemsFile(folder.bundle / section.items))


def finished_event(journal: JobJournal, *, copied: int = 0, **of_this_life: Any) -> JobFinished:
    """Tell of all results; what is told last. Without `of_this_life`, what a life knows, no peer was there."""
    record, folder = journal.record, str(journal.folder.path)
    assert isinstance(record, MapRecord)
    facts: dict[str, Any] = {"seconds": 0.0, "receipts": 0, "peers": [], "lost": []} | of_this_life
    done = CallsDone(
        job=record.id, folder=folder, items=record.items, done=record.results, failed=record.failed,
        seconds=facts["seconds"], copied=copied,
    )  # fmt: skip
    journal.tell(done)
    return journal.finished_event(facts)
