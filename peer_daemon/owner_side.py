"""Makes and joins what serves the owner of the machine: idle supervisor, history, control door, status page."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from pathlib import Path

from axonp2p.clock import Clock
from axonp2p.errors import PortTaken
from axonp2p.identity.peer_id import PeerId
from axonp2p.logs import get_logger
from axonp2p.sandbox.child import why_no_sandbox
from axonp2p.settings import PeerSettings
from axonp2p.transport.address import join_host_port, split_host_port
from peer_daemon.control.server import ControlDoor
from peer_daemon.control.status import LedgerNow, NetworkNow
from peer_daemon.earnings.receipts_book import ReceiptsBook
from peer_daemon.execution.running_leases import RunningLeases
from peer_daemon.execution.standby import StandbyWorkers
from peer_daemon.history.book import HistoryBook
from peer_daemon.idle.policy import IdlePolicy
from peer_daemon.idle.read_idle_settings import idle_settings_of
from peer_daemon.idle.sensors import Sensors
from peer_daemon.lending.leases import Leases
from peer_daemon.lending.lend_settings import limits_to_lend
from peer_daemon.lending.lending import Lending
from peer_daemon.lending.offer import MeasuredMachine, capability_of, lent_gpus
from peer_daemon.owner.gpu_watch import GpuWatch
from peer_daemon.owner.idle_supervisor import IdleSupervisor, Supervised
from peer_daemon.owner.orders import OrdersBook
from peer_daemon.owner.owner_api import Myself, OwnerApi
from peer_daemon.page.app import StatusPage
from peer_daemon.page.token import TOKEN_FILE

log = get_logger(__name__)

TRY_SANDBOX_EVERY_S = 60.0


@dataclass(frozen=True)
class Lent:
    """The parts of the daemon that work for others, as far as the owner steers them."""

    machine: MeasuredMachine
    lending: Lending
    leases: Leases
    running_leases: RunningLeases
    standby: StandbyWorkers
    book: ReceiptsBook


class OwnerSide:
    """One daemon's. `announce` lets others hear that the offer changed; `network` says how the peer is to be found,
    `ledger` what trackers have proved of its receipts.
    """

    def __init__(
        self,
        home: Path,
        settings: PeerSettings,
        peer: tuple[PeerId, str],
        lent: Lent,
        clock: Clock,
        *,
        network: Callable[[], NetworkNow],
        ledger: Callable[[], LedgerNow],
        announce: Callable[[], Awaitable[None]],
    ) -> None:
        """`peer` is id and name. Raises `SettingsError` for limits that cannot be meant."""
        self._settings = settings
        self._lent = lent
        self._announce = announce
        idle = idle_settings_of(settings)
        self._supervised = Supervised(
            policy=IdlePolicy(idle),
            sensors=Sensors(idle, home, lent.running_leases.pids, clock=clock),
            orders=OrdersBook(home / "orders.json", clock),
            history=HistoryBook(home / "history.db"),
            running_leases=lent.running_leases,
            lending=lent.lending,
            clock=clock,
            gpu_watch=GpuWatch(lent.leases.gpus, lent.running_leases, clock),
            standby=lent.standby,
            offer_changed=announce,
        )
        self.idle_supervisor = IdleSupervisor(self._supervised, lent.lending.lasting.refuses)
        myself = Myself(home, peer[1], peer[0], lent.machine, clock)
        self._owner_api = OwnerApi(
            myself,
            settings,
            self._supervised,
            self.idle_supervisor,
            lent.book.earnings,
            network,
            ledger,
            self._settings_changed,
        )
        self._door = ControlDoor(self._owner_api, home / "control.sock")
        self._page = StatusPage(self._owner_api, settings.page, home / TOKEN_FILE) if settings.page else None
        self._token_file = home / TOKEN_FILE

    async def start(self) -> None:
        """Open the control door and the page. Raises `SettingsError` when the door cannot be had."""
        self._supervised.sensors.start()
        await self._door.start()
        if self._page is not None:
            try:
                self._owner_api.page = await self._page.start()
            except PortTaken:
                # Another peer of this machine has it, most likely.
                host, _ = split_host_port(self._settings.page)
                self._page = StatusPage(self._owner_api, join_host_port(host, 0), self._token_file)
                self._owner_api.page = await self._page.start()
            log.info("status page", at=self._owner_api.page, to_change_things="axon-peer page")

    def tasks(self) -> dict[str, Callable[[], Awaitable[None]]]:
        """The work that goes on until it is cancelled, by a name for people."""
        return {
            "minding the machine": self.idle_supervisor.run,
            "trying the sandbox": self._try_sandbox,
            "having a worker stand by": self._lent.standby.run,
        }

    async def stop(self) -> None:
        """Close the page and the door, and write down the end."""
        if self._page is not None:
            await self._page.stop()
        await self._door.stop()
        self._supervised.sensors.stop()
        await self.idle_supervisor.leave()

    async def _try_sandbox(self) -> None:
        """Where no job can run, look now and then whether somebody mended it."""
        while self.idle_supervisor.no_sandbox:
            await asyncio.sleep(TRY_SANDBOX_EVERY_S)
            self.idle_supervisor.no_sandbox = await asyncio.to_thread(why_no_sandbox)
            if not self.idle_supervisor.no_sandbox:
                log.info("a sandbox can be had now: jobs may come")
                self._offer()
                await self._announce()
                self.idle_supervisor.wake()
        await asyncio.Event().wait()

    def _settings_changed(self, settings: PeerSettings) -> None:
        idle = idle_settings_of(settings)
        self._supervised.policy.settings = idle
        self._supervised.sensors.settings = idle
        self._settings = settings
        self._offer()

    def _offer(self) -> None:
        limits = limits_to_lend(self._settings)
        offer = capability_of(self._lent.machine, limits, self.idle_supervisor.no_sandbox)
        self._lent.lending.change(offer)
        self._lent.leases.gpus.gpus = tuple(lent_gpus(self._lent.machine, limits))
        self._lent.leases.slots_changed()
