"""Minds the owner's machine: looks at it, decides with the policy and the owner's orders, and carries that out.

Looks twice a second while a worker lives, so that one is stopped within a second, and every ten seconds else.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from datetime import datetime

from axonp2p.clock import Clock
from axonp2p.errors import AxonError
from axonp2p.logs import get_logger
from axonp2p.supervision import alone
from peer_daemon.execution.running_leases import RunningLeases
from peer_daemon.execution.standby import StandbyWorkers
from peer_daemon.history.book import HistoryBook
from peer_daemon.idle.decision import Act, Readings, Why
from peer_daemon.idle.policy import IdlePolicy
from peer_daemon.idle.sensors import Sensors
from peer_daemon.lending.lending import Lending
from peer_daemon.owner.effective_state import EffectiveState, StandingOrders, effective_state_of, may_stand_by
from peer_daemon.owner.gpu_watch import GpuWatch
from peer_daemon.owner.orders import OrdersBook

log = get_logger(__name__)

WORKING_LOOK_S = 0.5
RESTING_LOOK_S = 10.0
BACK_WITHIN_S = 15.0
MEMORY_BACK_WITHIN_S = 5.0
"""How long a client has to take its work back, in seconds; less when the owner's programs lack memory."""
FINISH_WITHIN_S = 600.0
"""How long a round that is being finished may take."""
STILL_EVERY_S = 60.0
HISTORY_S = 30 * 86400


@dataclass(frozen=True)
class Supervised:
    """The parts of the daemon that the supervisor works with."""

    policy: IdlePolicy
    sensors: Sensors
    orders: OrdersBook
    history: HistoryBook
    running_leases: RunningLeases
    lending: Lending
    clock: Clock
    gpu_watch: GpuWatch
    standby: StandbyWorkers
    offer_changed: Callable[[], Awaitable[None]]
    """Others have to hear that this peer takes work again, or none, or that a slot is only held."""


class IdleSupervisor:
    """One daemon's. `no_sandbox` says why no job can run here, or is empty."""

    def __init__(self, supervised: Supervised, no_sandbox: str) -> None:
        self._with = supervised
        self.no_sandbox = no_sandbox
        self._woken = asyncio.Event()
        self._turn = asyncio.Lock()
        self._still_at = 0.0
        self._history_works = True
        self.readings = Readings()
        self.effective_state = EffectiveState("ready", Why.FREE, "it has only just begun", Act.WAIT, takes_work=False)
        """The state of the daemon now; real from the first look on."""
        self.since = supervised.clock.now()
        """When the present course began, Unix seconds."""
        self.looks = 0
        self.looked = asyncio.Condition()
        """Notified after each look."""

    def wake(self) -> None:
        """Look at once: a lease began or ended, or the owner said something."""
        self._woken.set()

    async def run(self) -> None:
        """Until cancelled."""
        await self._keep("started", "the daemon was started")
        while True:
            self._woken.clear()
            await alone("a look at the machine", self.look())
            try:
                async with asyncio.timeout(WORKING_LOOK_S if self._with.running_leases.runners else RESTING_LOOK_S):
                    await self._woken.wait()
            except TimeoutError:
                pass

    async def look(self) -> None:
        """Look once, and act."""
        async with self._turn:
            await self._look()

    async def _look(self) -> None:
        supervised = self._with
        if supervised.running_leases.look(supervised.clock.monotonic()):
            await supervised.offer_changed()
        if await supervised.gpu_watch.look(supervised.policy.settings):
            await supervised.offer_changed()
        used = supervised.running_leases.used()
        self.readings = await asyncio.to_thread(supervised.sensors.read, used.cpu_seconds, used.memory_mb)
        now, jobs = supervised.clock.now(), len(supervised.running_leases.runners)
        decision = supervised.policy.decide(
            self.readings, supervised.clock.monotonic(), datetime.fromtimestamp(now), working=bool(jobs)
        )
        wanted = self._wanted(now, jobs)
        until_text = datetime.fromtimestamp(wanted.until).strftime("%H:%M") if wanted.until else ""
        effective_state = effective_state_of(
            decision, wanted, no_sandbox=self.no_sandbox, jobs=jobs, until_text=until_text
        )
        await self._follow(effective_state)
        stands = bool(supervised.standby.pids)
        supervised.standby.follow(
            room=may_stand_by(effective_state, self.readings, supervised.policy.settings, stands=stands),
            free_slots=supervised.lending.lasting.slots - len(supervised.running_leases.runners),
        )
        await self._remember(effective_state, now)
        self.looks += 1
        async with self.looked:
            self.looked.notify_all()

    def _wanted(self, now: float, jobs: int) -> StandingOrders:
        orders = self._with.orders
        wanted = orders.in_force(now)
        if wanted.finishing and not jobs:  # done: from now on it is a pause
            orders.pause(None, now)
        return orders.in_force(now)

    async def _follow(self, effective_state: EffectiveState) -> None:
        supervised = self._with
        if supervised.lending.refuse(self._no_room() if effective_state.takes_work else effective_state.for_clients):
            await supervised.offer_changed()
        if effective_state.act is Act.RUN:
            supervised.running_leases.hold_to(effective_state.cores)
            await supervised.running_leases.let_go_on()
            if effective_state.state == "finishing":
                supervised.running_leases.hand_back(
                    effective_state.for_clients, FINISH_WITHIN_S, noted=effective_state.sentence
                )
            return
        if effective_state.act is Act.WAIT:
            await supervised.running_leases.stop_all(effective_state.for_clients)
            return
        # One core at idle priority for some seconds more, so that a client whose only peer this is can fetch the state.
        supervised.running_leases.hold_to(1)
        await supervised.running_leases.let_go_on()
        within_s = MEMORY_BACK_WITHIN_S if effective_state.why is Why.MEMORY else BACK_WITHIN_S
        supervised.running_leases.hand_back(effective_state.for_clients, within_s, noted=effective_state.sentence)

    def _no_room(self) -> str:
        """Why no second job may begin beside one that runs; empty when there is room."""
        free, keep = self.readings.disk_free_mb, self._with.policy.settings.keep_disk_free_mb
        return "" if free is None or free >= keep else f"only {free} MiB of disk free ({keep} are kept for its owner)"

    async def _remember(self, effective_state: EffectiveState, now: float) -> None:
        before, self.effective_state = self.effective_state, effective_state
        if not self.looks or (before.state, before.why) != (effective_state.state, effective_state.why):
            self.since = now
            log.info(effective_state.state, because=effective_state.sentence)
            await self._history(
                self._with.history.began, effective_state.state, effective_state.why, effective_state.sentence, now
            )
        elif now - self._still_at >= STILL_EVERY_S:
            await self._history(self._with.history.still, now)
            await self._history(self._with.history.forget, now - HISTORY_S)
        else:
            return
        self._still_at = now

    async def leave(self) -> None:
        """The daemon stops: the present span ends now."""
        await self._history(self._with.history.still, self._with.clock.now())
        await self._keep("stopped", "the daemon was stopped")
        self._with.gpu_watch.close()
        await asyncio.to_thread(self._with.history.close)

    async def happened(self, kind: str, sentence: str, job: str = "") -> None:
        """Note something in the history."""
        await self._keep(kind, sentence, job)
        self.wake()

    async def _keep(self, kind: str, sentence: str, job: str = "") -> None:
        await self._history(self._with.history.happened, kind, sentence, self._with.clock.now(), job)

    async def _history(self, write: Callable[..., object], *values: object) -> None:
        """A disk that is full costs the history, never the daemon."""
        try:
            await asyncio.to_thread(write, *values)
            self._history_works = True
        except AxonError as error:
            if self._history_works:
                log.warning("history not kept", reason=error.in_a_line, fix=error.fix)
            self._history_works = False
