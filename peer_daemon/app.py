"""Makes and joins the parts of the peer; nothing else builds one."""

from __future__ import annotations

import asyncio
import os
import shutil
import signal
from importlib.metadata import version
from pathlib import Path

from aiohttp import web

from axonp2p.clock import SystemClock
from axonp2p.errors import SettingsError
from axonp2p.files import locked, write_whole
from axonp2p.identity.certificate import make_certificate
from axonp2p.identity.key_file import load_or_create_key
from axonp2p.identity.peer_id import short
from axonp2p.logs import get_logger
from axonp2p.sandbox.child import why_no_sandbox
from axonp2p.settings import PeerSettings
from axonp2p.table.records import Announced
from axonp2p.table.tracker_client import line_to
from axonp2p.transport.address import PinnedAddress, parse_listen
from axonp2p.transport.http_caller import HttpCaller
from axonp2p.transport.http_replies import add_ping
from axonp2p.transport.listener import Listener
from peer_daemon.announcer import Announcer, Sequence
from peer_daemon.handlers import Door
from peer_daemon.hardware import look_at_machine
from peer_daemon.job_runner import Workplace
from peer_daemon.leases import Leases
from peer_daemon.offer import Wishes, capability_of, name_of
from peer_daemon.own_row import OwnRow
from peer_daemon.receipts_book import ReceiptsBook
from peer_daemon.receipts_courier import ReceiptsCourier

log = get_logger(__name__)

_LAST_RECEIPTS_S = 3.0


class Peer:
    """The whole daemon: `start`, `until_broken`, `stop`."""

    def __init__(self, home: Path, settings: PeerSettings) -> None:
        """Raises `SettingsError` for settings that cannot work, `KeyFileUnsafe`."""
        if not settings.trackers:
            raise SettingsError(
                "no tracker is configured, so nobody would find this peer",
                fix="axon-peer run --tracker https://HOST:PORT#FINGERPRINT   (as `axon-tracker run` prints it)",
            )
        self._home = home
        self._settings = settings
        self._listen = parse_listen(settings.listen)
        self._wishes = Wishes(settings.cores, settings.memory_mb, settings.disk_mb, settings.slots)
        self._wishes.check()
        addresses = [PinnedAddress.parse(text) for text in settings.trackers]
        (home / "ready").unlink(missing_ok=True)
        self._key = load_or_create_key(home / "peer.key")
        self._name = name_of(settings.name, self._key.peer_id)
        self._clock = SystemClock()
        self._trackers = [line_to(address) for address in addresses]
        self._tasks: list[asyncio.Task[None]] = []

    async def start(self) -> None:
        """Look at the machine, listen, begin to announce. Raises `PortTaken` or `SettingsError`."""
        await asyncio.to_thread(_remove_leftovers, self._home / "jobs")
        machine = await look_at_machine(self._home, self._wishes)
        refuses = await asyncio.to_thread(why_no_sandbox)
        if refuses:
            log.warning("no job will run here", reason=refuses)
        elif os.geteuid() == 0:
            # The kernel does not hold root to a number of processes; the sandbox's watch does, a moment later.
            log.warning("running as root: a fork bomb is stopped late", fix="run axon-peer as an ordinary user")
        offer = capability_of(machine, self._wishes, refuses)
        certificate = make_certificate(self._key, self._home / "certificate.pem")
        self._leases = Leases(self._key.peer_id, offer, check_address=self._settings.check_client_address)
        self._book = ReceiptsBook(self._home / "receipts.db", self._key)
        self._courier = ReceiptsCourier(self._book)
        place = Workplace(self._key, self._home / "jobs", self._book)
        self._door = Door(self._leases, place, self._clock, self._slots_changed)
        app = web.Application()
        add_ping(app)
        self._listener = Listener(self._key, certificate, app)
        self._listener.serve_sessions(app, self._door.serve)
        port = await self._listener.start(*self._listen)
        self._row = OwnRow(self._key.peer_id, self._name, certificate.fingerprint, offer, (self._listen[0], port))
        sequence = Sequence(self._home / "sequence", self._clock)
        self._announcer = Announcer(self._key, self._trackers, self._row, sequence, self._clock, self._announced)
        log.info("peer", name=self._name, id=short(self._key.peer_id), port=port, version=version("axonp2p"))
        lent = {"cores": offer.cores, "memory_mb": offer.memory_mb, "slots": offer.slots, "gflops": offer.gflops}
        log.info("lending", **lent, gpus_seen=len(machine.gpus))
        self._tasks = [asyncio.create_task(self._announcer.run()), asyncio.create_task(self._courier.run())]

    async def until_broken(self) -> None:
        """Wait for a mistake of ours in one of the tasks, and raise it."""
        done, _ = await asyncio.wait(self._tasks, return_when=asyncio.FIRST_COMPLETED)
        for task in done:
            task.result()

    async def stop(self) -> None:
        """Withdraw the row, end every lease, hand in what can be, close everything."""
        (self._home / "ready").unlink(missing_ok=True)
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        await asyncio.gather(self._announcer.withdraw(), self._door.close("the peer is stopping"))
        try:
            async with asyncio.timeout(_LAST_RECEIPTS_S):
                await self._courier.hand_in_all()
        except TimeoutError:
            log.info("receipts kept for the next start")
        await self._listener.stop()
        await asyncio.gather(*(tracker.close() for tracker in self._trackers))
        await asyncio.to_thread(self._book.close)
        log.info("stopped")

    def _slots_changed(self) -> None:
        self._announcer.free_slots(self._leases.free())
        self._courier.nudge()

    async def _announced(self, caller: HttpCaller, answer: Announced) -> None:
        # Only who answers on the line that the owner's address pins gets to say yes here.
        self._leases.trust(answer.tracker)
        self._courier.reached(answer.tracker, caller)
        if addresses := self._row.addresses:
            text = f"{self._key.peer_id} {addresses[0]}\n"
            try:
                await asyncio.to_thread(write_whole, self._home / "ready", text.encode())
            except OSError as error:
                log.warning("cannot write the ready file", reason=error.strerror)


def _remove_leftovers(jobs: Path) -> None:
    """Remove what the jobs of a daemon that crashed left behind, and make the folder anew."""
    shutil.rmtree(jobs, ignore_errors=True)
    jobs.mkdir(mode=0o700, exist_ok=True)


async def serve(home: Path, settings: PeerSettings) -> None:
    """Run a peer until SIGTERM or SIGINT. Raises what makes it impossible, `AlreadyRunning` too."""
    with locked(
        home / "lock",
        f"a peer already runs with {home}",
        fix="stop it first, or give this one its own folder: axon-peer run --home DIR --listen HOST:0",
    ):
        await _serve(home, settings)


async def _serve(home: Path, settings: PeerSettings) -> None:
    stopping = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stopping.set)
    peer = Peer(home, settings)
    starting = asyncio.create_task(peer.start())
    asked = asyncio.create_task(stopping.wait())
    await asyncio.wait([starting, asked], return_when=asyncio.FIRST_COMPLETED)
    if not starting.done():
        starting.cancel()
        await asyncio.gather(starting, return_exceptions=True)
        return
    starting.result()
    broken = asyncio.create_task(peer.until_broken())
    try:
        await asyncio.wait([broken, asked], return_when=asyncio.FIRST_COMPLETED)
        if broken.done():
            broken.result()
    finally:
        broken.cancel()
        asked.cancel()
        await peer.stop()
