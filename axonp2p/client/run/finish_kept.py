"""Ending a job on which no program works with what is kept of it: nobody is hired, and no tracker is asked."""

from __future__ import annotations

import asyncio

from axonp2p.client.events.events import Event
from axonp2p.client.ledger.receipts import ReceiptBook
from axonp2p.client.no_result import cannot_be_stopped, is_over_for
from axonp2p.client.storage.job_journal import JobJournal
from axonp2p.client.storage.job_store import JobFolder
from axonp2p.clock import Clock
from axonp2p.identity.keys import PrivateKey
from axonp2p.jobs.kinds import KINDS, load
from axonp2p.jobs.lifecycle import JobState


async def finish_kept(folder: JobFolder, key: PrivateKey, clock: Clock) -> Event:
    """End it; what was told last. Raises `AlreadyRunning`, `SettingsError`, or `JobFailed` where nothing is kept or it
    is over for good."""
    with folder.held():
        mended = folder.mend()
        record = folder.read()
        if record.state in (JobState.FINISHED, JobState.CANCELLED):
            raise is_over_for(record, "stopped")
        if not KINDS[record.kind].finish:
            raise cannot_be_stopped(record)
        journal = JobJournal(folder, record, clock, lambda event: None)
        try:
            for event in mended:
                journal.tell(event)
            book = ReceiptBook(key, record.id, record.receipts)
            last: Event = await asyncio.to_thread(load(KINDS[record.kind].finish), journal, book, clock.now())
            journal.tell(last)
            await journal.disk.finished()
        finally:
            await journal.disk.close()
    return last
