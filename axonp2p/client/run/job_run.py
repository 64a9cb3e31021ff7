"""One life of a job, supervised: commands from outside are passed on, and whatever happens is written down."""

from __future__ import annotations

import asyncio
import contextlib

from axonp2p.client.events.events import Event, JobCancelled, JobEndedBadly, JobPaused
from axonp2p.client.leasing.hiring import Means
from axonp2p.client.run.job_life import JobLife
from axonp2p.client.storage.job_commands import JobCommand, listen
from axonp2p.client.storage.job_journal import JobJournal
from axonp2p.client.storage.job_record import ErrorRecord
from axonp2p.disk_errors import not_writable
from axonp2p.errors import AxonError
from axonp2p.jobs.bundle import Bundle
from axonp2p.jobs.lifecycle import JobState
from axonp2p.jobs.spec import JobSpec


class JobRun:
    """One life of a job: from submit, or resume, to its end. `run()` is called once."""

    def __init__(
        self,
        means: Means,
        journal: JobJournal,
        spec: JobSpec,
        bundle: Bundle,
        *,
        wait_s: float = 0.0,
        program: object = None,
    ) -> None:
        """`wait_s`: for how long peers are waited for, where too few are free when it begins. `program`: as
        `JobContext` has it."""
        self._journal = journal
        self._life = JobLife(means, journal, spec, bundle, wait_s=wait_s, program=program)
        self._task: asyncio.Task[None] | None = None
        self._cancelling = self._finishing = False

    async def run(self) -> None:
        """To the end; returns when it is finished, left or cancelled. Raises the error that it failed with."""
        self._task = asyncio.current_task()
        folder = self._journal.folder
        with folder.held():
            listening = asyncio.create_task(listen(folder.path, self._commanded), name="commands")
            try:
                self._journal.tell(await self._live())
                self._task = None  # there is nothing left to interrupt
                await self._journal.disk.finished()
            except AxonError as error:
                self._failed(error)
                raise
            except OSError as error:
                failure = not_writable(folder.path, error)
                self._failed(failure)
                raise failure from error
            except Exception as error:  # the edge of a supervised task: the job must not stay "running" for ever
                self._failed(AxonError(f"a mistake in axon itself: {error!r}"))
                raise
            finally:
                listening.cancel()
                await self._journal.disk.close()

    async def _live(self) -> Event:
        try:
            if not (self._life.leaving or self._cancelling or self._finishing):
                return await self._life.live()
        except asyncio.CancelledError:
            pass
        return await self._life.finish() if self._finishing else self._stopped()

    def _commanded(self, command: JobCommand) -> None:
        """Another program of this client says so."""
        match command:
            case JobCommand.PAUSE:
                self.pause()
            case JobCommand.LEAVE:
                self.leave()
            case JobCommand.STOP:
                self.stop()
            case JobCommand.CANCEL:
                self.cancel()

    def leave(self) -> None:
        """Stop soon, keeping the accepted rounds. Without effect once all rounds are trained."""
        if self._life.leaving or self._cancelling or self._finishing:
            return
        self._life.leave()
        if self._task and not self._life.drives:
            self._task.cancel()

    def let_go(self) -> None:
        """Leave, and wait for nothing any more but that the peers have their slots back."""
        self.leave()
        if self._task and self._life.drives and not self._life.ends:
            self._task.cancel()

    def pause(self) -> None:
        """Stop after the round that runs, keeping it too."""
        if self._life.drives and not self._life.leaving:
            self._life.pause()
        else:
            self.leave()

    def stop(self) -> None:
        """End it with what it came to after the round that runs, or the first one; at once where peers are looked for
        and something is kept."""
        if self._life.leaving or self._cancelling or self._finishing:
            return
        if self._life.drives or not self._journal.record.kept:
            self._life.stop()
            return
        self._finishing = True
        if self._task:
            self._task.cancel()

    def cancel(self) -> None:
        """Stop now, for good, keeping nothing that is not kept already."""
        if self._cancelling or self._finishing:
            return
        self._cancelling = True
        if self._task:
            # Once only: a second one would interrupt the giving back of leases.
            self._task.cancel()

    # --- ends without work ---

    def _stopped(self) -> Event:
        if self._life.leaving and not self._cancelling:
            return self._left()
        self._journal.enter(JobState.CANCELLED)
        return JobCancelled(job=self._journal.record.id)

    def _left(self) -> Event:
        record = self._journal.record
        self._journal.enter(JobState.PAUSED)
        return JobPaused(job=record.id, folder=str(self._journal.folder.path), round=record.kept)

    def _failed(self, error: AxonError) -> None:
        code, message, cause, fix = error.code, error.message, error.cause, error.fix
        shown = ErrorRecord(code=code, message=message, cause=cause, fix=fix)
        job = self._journal.record.id
        self._journal.disk.try_again()
        with contextlib.suppress(OSError):  # the disk may be what failed
            self._journal.enter(JobState.FAILED, error=shown)
            self._journal.tell(JobEndedBadly(job=job, code=code, message=message, cause=cause, fix=fix))
