"""A training's end: the files of its weights, and what is told of it; also where no peer is there any more."""

from __future__ import annotations

from functools import partial
from typing import Any

from axonp2p.client.events.events import JobFinished
from axonp2p.client.ledger.receipts import ReceiptBook
from axonp2p.client.no_result import no_result
from axonp2p.client.storage.checkpoints import Checkpoint
from axonp2p.client.storage.job_journal import JobJournal
from axonp2p.client.storage.kept_bundle import spec_of
from axonp2p.jobs.lifecycle import JobState
from axonp2p.kinds.train.events import StateDamaged, TrainingStops
from axonp2p.kinds.train.kept.model_files import write_weights
from axonp2p.kinds.train.metrics_file import MetricsFile
from axonp2p.kinds.train.round_commits import RoundCommits
from axonp2p.kinds.train.section import TrainJob
from axonp2p.kinds.train.settlement import paid_ahead


def finish(journal: JobJournal, book: ReceiptBook, now: float) -> JobFinished:
    """End a training on which nobody works with the newest state that is kept; what is to be told last. Blocks.

    `now` is Unix time. Raises `JobFailed` when no state is kept, `SettingsError` of the disk.
    """
    spec = spec_of(journal.record)
    assert isinstance(spec, TrainJob)
    books = RoundCommits(journal, journal.folder.checkpoints(spec.train.keep_states))
    good = books.open(partial(paid_ahead, books, book, now))
    if good is None:
        raise no_result(books.record, at_work=False)
    books.lose_after(good.rounds)
    if books.record.stops_after != good.rounds and good.rounds < books.record.rounds:
        journal.change(lasting=True, stops_after=good.rounds)
        journal.tell(TrainingStops(rounds=good.rounds))
    journal.disk.finish()
    files = write_files(books, good)
    enter_finished(books, files)
    journal.disk.finish()
    books.checkpoints.remove_all()
    return finished_event(books)


def write_files(books: RoundCommits, last: Checkpoint) -> dict[str, Any]:
    """Write the weights of this state and of the best one to their places; fields of the record. Blocks.

    Raises `JobFailed` when this state, or the layout, is not what it was, and `SettingsError` of the disk. A best state
    that is damaged is put aside, and the best of those that are left counts.
    """
    folder, journal = books.journal.folder, books.journal
    fields: dict[str, Any] = {"model_sha256": write_weights(folder, books.record, last, folder.model).hex()}
    while (best := books.best_left(last.rounds)) and best.rounds != last.rounds:
        kept = next(one for one in books.checkpoints.all() if one.rounds == best.rounds)
        if kept.fits():
            fields["best_sha256"] = write_weights(folder, books.record, kept, folder.best).hex()
            break
        journal.tell(StateDamaged(round=kept.rounds, file=str(books.checkpoints.put_aside(kept))))
    return fields | {"best": best}


def enter_finished(books: RoundCommits, fields: dict[str, Any]) -> None:
    """The job has finished, with these files."""
    books.journal.enter(JobState.FINISHED, kept_state="", ahead=None, **fields)


def finished_event(books: RoundCommits, **of_this_life: Any) -> JobFinished:
    """The last event. Without `of_this_life`, the fields that a life of the job knows, nobody was there."""
    record, folder = books.record, books.journal.folder
    facts: dict[str, Any] = {"seconds": 0.0, "receipts": 0, "peers": [], "lost": []} | of_this_life
    return JobFinished(
        job=record.id,
        folder=str(folder.path),
        rounds=record.round,
        loss=record.loss or 0.0,
        metrics=record.metrics,
        samples=sum(int(row["samples"]) for row in MetricsFile(folder.metrics).rows()),
        wire_bytes=record.wire_bytes,
        credits=record.credits,
        **facts,
    )
