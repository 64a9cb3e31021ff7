"""The seam between a job's life and its kind of work: the driver, and what it is given.

client/run     finds, reserves, sends, DRIVES, pays, keeps, resumes: knows leases and receipts, no round, no loss
kinds/<name>   one room a kind: knows its unit of work, no tracker
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from typing import Protocol

from axonp2p.client.events.events import Event
from axonp2p.client.leasing.hiring import Means
from axonp2p.client.ledger.receipts import ReceiptBook
from axonp2p.client.run.crew import LeasedCrew
from axonp2p.client.run.settlement import JobSettlement
from axonp2p.client.storage.job_journal import JobJournal
from axonp2p.jobs.spec import JobSpec


@dataclass(frozen=True)
class JobContext:
    """The parts of its job that a driver is given. `journal` keeps the job's record and tells its events."""

    means: Means
    journal: JobJournal
    spec: JobSpec
    began: float
    """When this life of the job did, in monotonic seconds."""
    may_wait: Callable[[LeasedCrew], bool]
    """Whether the job looks for others once too few peers are left."""
    replacing: Callable[[LeasedCrew], AbstractAsyncContextManager[None]]
    """Meanwhile peers are hired in place of those that go, and `WorkListener.joined` is told."""
    program: object = None
    """The object that the program that submitted the job has given its driver to work with, as `Swarm.begin` says."""


class Driver(Protocol):
    """The work of one life of a job, on the client: says what each worker does, and hears what comes of it.

    Made with a `JobContext`. To hear its peers it gives their crew a `WorkListener` (`LeasedCrew.work_for`).
    """

    def open(self, book: ReceiptBook) -> None:
        """Make whole what is kept, whatever ended the last life of the job, before peers are looked for.

        Work that was accepted and not paid gets its receipts in `book` now. Blocks, in a thread of its own.
        """

    async def run(self, settlement: JobSettlement) -> Event | None:
        """Until the work is done; how the job ended, or None: too few peers are left, and `may_wait` said yes.

        Called again once there are others. Raises the error that the job fails with.
        """

    def pause(self) -> None:
        """Let `run` end after the unit of work that is under way."""

    def stop(self) -> None:
        """Let `run` end after the unit of work that is under way, or the first one: the job has finished then."""

    def leave(self) -> None:
        """Let `run` end soon, keeping what is done; at once when it begins."""
