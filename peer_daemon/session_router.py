"""The door for sessions: the first message says whether it is a lease, another member's link, or a registration."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress

from axonp2p.clock import Clock
from axonp2p.errors import AxonError, Busy, MalformedMessage, Refused
from axonp2p.identity.peer_id import short
from axonp2p.jobs.messages import FirstMessage, LeaseEnded, TakeLease
from axonp2p.logs import get_logger
from axonp2p.plain_text import plural
from axonp2p.reservation.token import TokenHolder
from axonp2p.transport.messages import JoinMesh
from axonp2p.transport.relay.server import RelayServer
from axonp2p.transport.sessions.session import Session
from axonp2p.transport.tunnel.messages import RegisterAtRelay
from peer_daemon.execution.job_runner import JobRunner
from peer_daemon.execution.lease_context import LeaseContext
from peer_daemon.execution.memory import give_back
from peer_daemon.execution.running_leases import RunningLeases
from peer_daemon.history.refusals import Refusals
from peer_daemon.lending.leases import Leases, LentSlot

log = get_logger(__name__)

FIRST_MESSAGE_S = 10.0
"""How long a caller may take to say what it wants."""
CLOSE_S = 10.0
"""How long the end of every lease may take, in seconds; then the kernel ends the workers together with the daemon."""
TOLD_S = 2.0
"""How long the end of a lease waits until the trackers know: they show the slot to the client's next command then. It
is less than a client waits for the end, and more than it takes to give up datagrams."""


class SessionRouter:
    """Serves every session of the daemon.

    `slots_changed` is called when a lease began or ended, and gives an event that is set when the trackers know;
    `noted` is called with kind, sentence and job of what the owner's history shall tell.
    """

    def __init__(
        self,
        leases: Leases,
        context: LeaseContext,
        running_leases: RunningLeases,
        clock: Clock,
        slots_changed: Callable[[], Awaitable[asyncio.Event]],
        noted: Callable[[str, str, str], Awaitable[None]],
    ) -> None:
        self._leases = leases
        self._context = context
        self._clock = clock
        self._slots_changed = slots_changed
        self._noted = noted
        self._refusals = Refusals()
        self._running_leases = running_leases
        self._leasing: set[asyncio.Task[None]] = set()
        self._closing = False
        self.relay: RelayServer | None = None
        """The relay that carries to others; set before the first session where the owner allows it."""

    async def serve(self, session: Session) -> None:
        """Have the conversation. Its errors are told to the caller as refusals (`Listener.serve_sessions`)."""
        try:
            async with asyncio.timeout(FIRST_MESSAGE_S):
                first, payload = await session.receive(FirstMessage)
        except TimeoutError:
            raise Refused(f"nothing was said within {FIRST_MESSAGE_S:.0f} s") from None
        if payload:
            raise MalformedMessage("a first message has no payload")
        if self._closing:
            raise Refused("this peer is stopping")
        if isinstance(first, RegisterAtRelay):
            if self.relay is None:
                raise Refused("this peer carries connections for nobody")
            await self.relay.serve(session)
        elif isinstance(first, TakeLease):
            lease = asyncio.create_task(self._lease(session, first))
            self._leasing.add(lease)
            lease.add_done_callback(self._leasing.discard)
            await lease
        else:
            await self._link(session, first)

    def see_idle(self) -> None:
        """Let it be known under which leases nothing is done."""
        now = self._clock.now()
        for runner in self._running_leases.runners:
            self._leases.seen(runner.lease, runner.idle_s, now)

    async def close(self, reason: str) -> None:
        """Take nobody in any more and end every lease, telling the clients why."""
        self._closing = True
        for runner in self._running_leases.runners:
            runner.stop(reason)
        if self._leasing:
            await asyncio.wait(self._leasing, timeout=CLOSE_S)
        self._context.kept.close()

    async def _lease(self, session: Session, ask: TakeLease) -> None:
        caller = TokenHolder(key=session.peer, address=session.address, source=session.source)
        try:
            now = self._clock.now()
            self.see_idle()
            waiting = self._waiting(self._leases.returning(ask, caller, now))
            lease = waiting.lease if waiting else self._leases.take(ask, caller, now)
        except AxonError as error:
            if self._refusals.is_worth_noting(session.peer, error.message, self._clock.monotonic()):
                await self._noted("job refused", f"{ask.job} of {short(session.peer)}: {error.message}", ask.job)
            raise
        if waiting:
            await waiting.serve_again(session)
            return
        log.info("lease taken", job=lease.job, client=short(lease.client), cores=lease.cores, memory_mb=lease.memory_mb)
        self._context.kept.make_room(lease.client, self._leases.free(self._clock.now()))
        try:
            await self._end_idle(lease)
        except BaseException:
            self._leases.ended(lease)
            raise
        runner = JobRunner(lease, session, self._context)
        try:
            await self._carry_out(runner)
        finally:
            runner.over.set()
        await asyncio.to_thread(give_back)

    async def _end_idle(self, lease: LentSlot) -> None:
        """End those that give way to `lease`. Raises `Busy` when they take too long."""
        going = [runner for uuid in lease.instead_of if (runner := self._running_leases.find(uuid))]
        for runner in going:
            runner.unworked = True
            runner.stop(f"nothing was done under it for {runner.idle_s:.0f} s, and another client wants the slot")
        try:
            async with asyncio.timeout(CLOSE_S):
                for runner in going:
                    await runner.over.wait()
        except TimeoutError:
            raise Busy("the slot is not free yet", fix="ask again in some seconds") from None

    async def _carry_out(self, runner: JobRunner) -> None:
        lease = runner.lease
        try:
            await self._running_leases.add(runner)
            await self._slots_changed()
            await self._noted(
                "job began", f"{lease.job} of {short(lease.client)}, {plural(lease.cores, 'core')}", lease.job
            )
            reason = await runner.run(max(0.0, lease.until - self._clock.now()))
        finally:
            self._running_leases.remove(runner)
            self._leases.ended(lease)
            if runner.rounds:
                self._leases.paid(lease)
            if runner.unworked or runner.unpaid:
                self._leases.unworked(lease, self._clock.now(), unpaid=runner.unpaid)
            told = await self._slots_changed()
        why = f"handed back: {runner.handed_back}" if runner.handed_back else reason or "the client ended it"
        log.info("lease ended", job=lease.job, client=short(lease.client), reason=why)
        ended = f"{lease.job} after {plural(runner.rounds, 'round')}: {why}"
        await self._noted("job ended", ended, lease.job)
        if not reason:
            with suppress(TimeoutError):
                async with asyncio.timeout(TOLD_S):
                    await told.wait()
        await runner.line.send(LeaseEnded(reason=reason))

    def _waiting(self, lease: LentSlot | None) -> JobRunner | None:
        """The runner whose client has come back."""
        runner = self._running_leases.find(lease.reservation) if lease else None
        return runner if runner and runner.waits_for_clients else None

    async def _link(self, session: Session, join: JoinMesh) -> None:
        runner = self._running_leases.find(join.reservation)
        if runner is None or not runner.mesh.is_member(session.peer):
            # The same words for both, so that nobody learns which jobs run here.
            raise Refused("you are on no roster of that reservation here")
        await runner.mesh.adopt(session)
