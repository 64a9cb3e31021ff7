"""One hosted job in the host's care: its process is started, again when it dies, and told what its owner wants."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping

import msgspec

from axonp2p.clock import Clock
from axonp2p.errors import Refused
from axonp2p.hosting.admission import HeldJob
from axonp2p.hosting.copying import Copies, Copying
from axonp2p.hosting.hosted_folder import HostedFolder, HostedProgress, HostedRecord
from axonp2p.hosting.lives import Lives, StopTrying
from axonp2p.hosting.messages import HostedWish
from axonp2p.hosting.process import EndAs, JobProcess, Program, RunOrders
from axonp2p.identity.peer_id import short
from axonp2p.jobs.lifecycle import JobState
from axonp2p.logs import get_logger
from axonp2p.supervision import cancel_and_wait, keep_up
from axonp2p.transport.flow.rate_limit import RateLimit

log = get_logger(__name__)

STARTS_A_SECOND, STARTS_AT_ONCE = 0.1, 5
"""How often a job's owner may have a process started for it, by resuming or ending it: each costs a second or more."""
_ENDS: Mapping[HostedWish, EndAs] = {"stop": "finished", "cancel": "cancelled"}
"""As what a job without a process is written down when its owner wants this."""
SAID_BYTES = 500
"""Of the end of a process's log, for its owner."""


class Tending:
    """One job. `begin()` it when its bundle is whole."""

    def __init__(
        self,
        folder: HostedFolder,
        record: HostedRecord,
        clock: Clock,
        orders: Callable[[HostedRecord], RunOrders],
        program: Program,
        ends: asyncio.Lock,
        copies: Copies,
    ) -> None:
        """`ends` is held while a job's end is written down: by one process at a time at the whole host."""
        self.folder = folder
        self.record = record
        self.arriving = asyncio.Lock()
        """Held by the session on which its bundle comes."""
        self.forgotten = ""
        """Why the host holds it no more."""
        self.stirred = max(record.began, record.copied) if record.copies and record.arrived else clock.now()
        """When a piece of its bundle, a new round or result, or a copy came last, Unix seconds."""
        self.came_bytes = 0
        """Of its bundle, while that is not whole."""
        self._done = -1
        self._clock = clock
        self._orders = orders
        self._program = program
        self._ends = ends
        self._copies = copies
        self._starts = RateLimit(STARTS_A_SECOND, STARTS_AT_ONCE)
        self._process: JobProcess | None = None
        self._task: asyncio.Task[None] | None = None
        self._copying: asyncio.Task[None] | None = None
        self._ending = False

    @property
    def at_work(self) -> bool:
        """Whether a process works on it, or is about to."""
        return self._ending or (self._task is not None and not self._task.done())

    @property
    def pid(self) -> int | None:
        """Of the process that works on it now."""
        return self._process.pid if self._process else None

    def held(self) -> HeldJob:
        """The facts of it that `admission` needs. Reads the disk."""
        record, progress = self.record, self.folder.progress()
        done = progress.done if progress else 0
        if done > self._done:
            if self._done >= 0:
                self.stirred = self._clock.now()
            self._done = done
        return HeldJob(
            owner=record.owner,
            job=record.job,
            source=record.source,
            began=record.began,
            arrived=record.arrived,
            over_since=record.over_since,
            came_bytes=self.came_bytes,
            stirred=self.stirred,
            state=progress.state if progress else None,
            done=done,
            fetched=record.fetched,
            is_copy=bool(record.copies),
        )

    def came(self, count: int) -> None:
        """Another piece of its bundle is here, of so many bytes."""
        self.came_bytes += count
        self.stirred = self._clock.now()

    async def arrived(self) -> None:
        """Its bundle is whole."""
        await self._change(arrived=True)

    def begin(self) -> None:
        """Care for it from now on. Harmless when somebody does."""
        if self.record.copies:
            if self._copying is None and not self.record.fetched:
                self._copying = asyncio.create_task(keep_up("the copy of a job", self._copy), name="copy")
        elif not self.at_work:
            self._task = asyncio.create_task(
                keep_up("the care of a hosted job", self._tend), name=f"hosted {self.record.job}"
            )

    async def tell(self, wish: HostedWish) -> None:
        """Take in the wish of its owner. Raises `TooOften` when that would start processes again and again.

        A copy begins by `take_over` alone, and is let go when the job is.
        """
        if self.record.copies:
            if wish in ("fetched", "cancel"):
                await self.stop()
                await self._change(fetched=True)
        elif wish == "fetched":
            await self._change(fetched=True)
        elif wish == "resume":
            if not self.at_work and not await self._is_over_for_good():
                self._starts.charge("", self._clock.monotonic())
                if self._done > 0:  # it has its time to find peers again
                    self.stirred = self._clock.now()
                self.begin()
        elif self._process:
            self._process.say(wish)
        elif wish in _ENDS or self.at_work:
            await self._stop_as(_ENDS.get(wish, "paused"), "", charged=True)

    async def check_host_is_gone(self) -> None:
        """Before a copy takes over: raise `Refused` when there is nothing to go on with, or its host works on it."""
        if await self._is_over_for_good():
            raise Refused("the job is over", fix=f"axon fetch {self.record.job} -o OUT")
        self._starts.charge("", self._clock.monotonic())
        if await self._new_copying().host_works():
            raise Refused(
                "its host answers here, and works on the job: there must not be two",
                fix=f"see to the line to that host, and try again: axon status {self.record.job}",
            )

    async def take_over(self) -> None:
        """The copy is the job from now on: its owner says that the host is gone for good."""
        await self.stop()
        log.info("job continues from a copy", job=self.record.job, owner=short(self.record.owner))
        now = self._clock.now()
        self.stirred = now
        await self._change(copies="", took_over=True, began=now)
        self.begin()

    async def _is_over_for_good(self) -> bool:
        progress = await asyncio.to_thread(self.folder.progress)
        return progress is not None and progress.state in (JobState.FINISHED, JobState.CANCELLED)

    async def give_up(self, why: str) -> None:
        """It goes on no more, and says so."""
        log.warning("hosted job given up", job=self.record.job, owner=short(self.record.owner), reason=why)
        await self._change(trouble=why)
        await self._stop_as("failed", why)

    async def stop(self) -> None:
        """The host stops: the process is killed, and the job is left as it is."""
        tasks = [one for one in (self._task, self._copying) if one is not None and one is not asyncio.current_task()]
        await cancel_and_wait(*tasks)
        self._copying = None

    def _new_copying(self) -> Copying:
        return Copying(self.folder, self.record, self._copies, self._program, self._orders, self._clock)

    async def _copy(self) -> None:
        copying = self._new_copying()
        while True:
            await asyncio.sleep(copying.pause_s())
            if await copying.copy():
                self.stirred = self._clock.now()
                await self._change(copied=self.stirred)

    async def _tend(self) -> None:
        lives = Lives()
        await self._change(over_since=0.0, trouble="", fetched=False)
        while True:
            progress = await self._live()
            if progress is not None and progress.over:
                if not progress.packed:  # its process was killed in the middle of that
                    await self._program.end_as(self.folder, self._orders(self.record), "paused")
                log.info("hosted job over", job=self.record.job, state=progress.state, done=progress.done)
                await self._change(over_since=self._clock.now())
                return
            next_step = lives.died(progress.done if progress else 0)
            said = await asyncio.to_thread(self._last_words)
            log.warning("hosted job's process died", job=self.record.job, said=said)
            if isinstance(next_step, StopTrying):
                why = f"its process at the host died {next_step.deaths} times in a row{': ' if said else ''}{said}"
                await self.give_up(why)
                return
            await asyncio.sleep(next_step.wait_s)

    async def _live(self) -> HostedProgress | None:
        """One life of its process; how far the job is then."""
        try:
            self._process = process = await self._program.start(self.folder, self._orders(self.record))
        except OSError as error:
            log.error("no process can be started", job=self.record.job, reason=error.strerror)
            return await asyncio.to_thread(self.folder.progress)
        try:
            await process.wait()
        finally:
            self._process = None
            await process.kill()
        return await asyncio.to_thread(self.folder.progress)

    async def _stop_as(self, state: EndAs, why: str, *, charged: bool = False) -> None:
        """No process works on it any more; it is written down as that."""
        async with self._ends:
            if not self.at_work and await self._is_over_for_good():
                return
            if charged:
                self._starts.charge("", self._clock.monotonic())
            self._ending = True
            try:
                await self.stop()
                if not await self._program.end_as(self.folder, self._orders(self.record), state, why):
                    log.warning("hosted job's end not written down", job=self.record.job)
                await self._change(over_since=self._clock.now())
            finally:
                self._ending = False

    async def _change(self, **fields: object) -> None:
        self.record = msgspec.structs.replace(self.record, **fields)
        try:
            await asyncio.to_thread(self.folder.write, self.record)
        except OSError as error:
            log.error("hosted job not written down", job=self.record.job, reason=error.strerror)

    def _last_words(self) -> str:
        try:
            text = self.folder.log.read_bytes()[-4 * SAID_BYTES :].decode(errors="replace")
        except OSError:
            return ""
        lines = [line for line in text.splitlines() if line.strip()]
        return lines[-1][:SAID_BYTES] if lines else ""
