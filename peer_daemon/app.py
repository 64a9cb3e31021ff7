"""Makes and joins the parts of the peer; nothing else builds one."""

from __future__ import annotations

import asyncio
import os
import random
import shutil
from importlib.metadata import version
from pathlib import Path

from aiohttp import web

from axonp2p.clock import SystemClock
from axonp2p.errors import SettingsError
from axonp2p.identity.certificate import Certificate, make_certificate
from axonp2p.identity.key_file import load_or_create_key
from axonp2p.identity.peer_id import short
from axonp2p.jobs.kinds import KINDS
from axonp2p.logs import get_logger
from axonp2p.peers.capability import Capability
from axonp2p.peers.coordinate_file import CoordinateFile
from axonp2p.sandbox.child import why_no_sandbox
from axonp2p.sandbox.watch.worker_group import own_territory
from axonp2p.settings import PeerSettings
from axonp2p.supervision import cancel_and_wait, keep_up
from axonp2p.table.dht.lan import own_hosts
from axonp2p.table.dht.node import DhtNode
from axonp2p.table.tracker_file import read_health
from axonp2p.table.tracker_lines import TrackerLines
from axonp2p.transport.address import parse_listen
from axonp2p.transport.dial_policy import DialPolicy
from axonp2p.transport.http.http_replies import add_ping
from axonp2p.transport.lanes.opening import BulkLanes
from axonp2p.transport.relay.choice import RelayChoice
from axonp2p.transport.relay.server import RelayServer
from axonp2p.transport.sessions.listener import Listener
from axonp2p.transport.tunnel.messages import limits_of
from peer_daemon.announcing.announce_rota import Rota
from peer_daemon.announcing.announce_ways import AnnounceWays
from peer_daemon.announcing.announcer import Announcer, Hearers
from peer_daemon.announcing.own_row import OwnRow, lasting_row
from peer_daemon.announcing.row_sender import RowSender
from peer_daemon.announcing.row_writer import Numbers, RowWriter
from peer_daemon.bundles.kept_bundles import KeptBundles
from peer_daemon.discovery.dht_side import DhtSide
from peer_daemon.discovery.lan_side import LanSide, is_on_lan
from peer_daemon.discovery.presence import Parts, Presence
from peer_daemon.discovery.reachability import Reachability
from peer_daemon.discovery.relay_discovery import RelayDiscovery
from peer_daemon.discovery.tracker_news import TrackerNews
from peer_daemon.earnings.log_looker import LogLooker
from peer_daemon.earnings.proofs import Proofs
from peer_daemon.earnings.receipts_book import ReceiptsBook
from peer_daemon.earnings.receipts_courier import ReceiptsCourier
from peer_daemon.execution.lease_context import LeaseContext, usual_limits
from peer_daemon.execution.memory import give_back
from peer_daemon.execution.running_leases import RunningLeases
from peer_daemon.execution.standby import StandbyWorkers
from peer_daemon.lending.hardware import look_at_machine
from peer_daemon.lending.lease_file import interrupted_leases, keep_leases
from peer_daemon.lending.leases import Leases
from peer_daemon.lending.lend_settings import limits_to_lend, priority_of
from peer_daemon.lending.lending import Lending
from peer_daemon.lending.offer import capability_of, lent_gpus, name_of
from peer_daemon.lending.own_tokens import OwnTokens
from peer_daemon.lending.questions import PeerQuestions
from peer_daemon.links.in_turn import InTurn
from peer_daemon.links.line_watch import LineWatch
from peer_daemon.links.turns import BYTES_A_MBIT, SendPace
from peer_daemon.owner_side import Lent, OwnerSide
from peer_daemon.reachability.dial_back import DialBackAsker, DialBackDoor
from peer_daemon.reachability.port_mapping import port_mapping
from peer_daemon.reachability.relay_side import RelaySide
from peer_daemon.session_router import SessionRouter
from peer_daemon.wheels.wheel_cache import open_wheels

log = get_logger(__name__)

_LAST_RECEIPTS_S = 3.0
_OF_A_VOLUNTEER = {"peers": 16, "streams": 64, "streams_of_peer": 16, "streams_of_caller": 16}


class Peer:
    """The whole daemon: `start`, `until_broken`, `stop`."""

    def __init__(self, home: Path, settings: PeerSettings) -> None:
        """Raises `SettingsError` for settings that cannot work, `KeyFileUnsafe`."""
        self._home = home
        self._settings = settings
        self._clock = SystemClock()
        self._chance = random.SystemRandom()
        self._listen = parse_listen(settings.listen)
        self._limits = limits_to_lend(settings)
        health = read_health(home / "trackers.json", settings.trackers, self._clock.now(), self._chance)
        if not health.addresses and not settings.dht:
            raise SettingsError(
                "no tracker is configured and the DHT is off, so nobody would find this peer",
                fix="axon-peer run --tracker https://HOST:PORT#FINGERPRINT   (as `axon-tracker run` prints it)",
            )
        (home / "ready").unlink(missing_ok=True)
        self._key = load_or_create_key(home / "peer.key")
        self._name = name_of(settings.name, self._key.peer_id)
        self._lines = TrackerLines(health, self._clock, self._chance)
        self._coordinate = CoordinateFile(home / "coordinate", self._chance)
        self._relay_limits = limits_of(settings.relay_mbit, settings.relay_hourly_mb, **_OF_A_VOLUNTEER)
        self._relay: RelayServer | None = None
        self._tasks: list[asyncio.Task[None]] = []

    async def start(self) -> None:
        """Look at the machine, listen, begin to announce. Raises `PortTaken` or `SettingsError`."""
        await asyncio.to_thread(_remove_leftovers, self._home / "jobs")
        await asyncio.to_thread(own_territory)  # before there is any child; removes the groups of a daemon that crashed
        machine = await look_at_machine(self._home, self._limits)
        refuses = await asyncio.to_thread(why_no_sandbox)
        if refuses:
            log.warning("no job will run here", reason=refuses)
        offer = capability_of(machine, self._limits, refuses)
        certificate = make_certificate(self._key, self._home / "certificate.pem")
        self._make_door(offer, certificate)
        self._leases.gpus.gpus = tuple(lent_gpus(machine, self._limits))
        self._parts = self._presence.parts = self._make_parts()
        lent = Lent(machine, self._lending, self._leases, self._running_leases, self._standby, self._book)
        self._owner = OwnerSide(
            self._home,
            self._settings,
            (self._key.peer_id, self._name),
            lent,
            self._clock,
            network=self._presence.network,
            ledger=self._proofs.told,
            announce=self._offer_changed,
        )
        port = await self._open()
        await self._owner.start()
        log.info("peer", name=self._name, id=short(self._key.peer_id), port=port, version=version("axonp2p"))
        log.info("lending", cores=offer.cores, memory_mb=offer.memory_mb, slots=offer.slots, gflops=offer.gflops)
        parts = self._parts
        if parts.dht and parts.dht.is_the_first and not self._lines.health.addresses:
            log.warning(
                "nobody is known yet: others have to come to this peer",
                fix="axon-peer run --tracker https://HOST:PORT#FINGERPRINT, or --dht-contact HOST:PORT",
            )
        tasks = parts.tasks() | self._owner.tasks()
        self._tasks = [asyncio.create_task(keep_up(name, run), name=name) for name, run in tasks.items()]
        give_back()  # looking at all installed packages took some megabytes, once

    async def until_broken(self) -> None:
        """Wait for the end of one of the tasks: none has any, as each is begun again after a mistake of ours."""
        await asyncio.wait(self._tasks, return_when=asyncio.FIRST_COMPLETED)

    async def stop(self) -> None:
        """Withdraw the row, end every lease, hand in what can be, close everything."""
        (self._home / "ready").unlink(missing_ok=True)
        await cancel_and_wait(*self._tasks)
        parts, last = self._parts, await self._rows.withdrawal()
        leaving = [parts.announcer.withdraw(last), self._door.close("the peer is stopping")]
        leaving += [parts.dht.withdraw(last.compact)] if parts.dht else []
        leaving += [parts.lan.stop()] if parts.lan else []
        leaving += [parts.mapping.close()] if parts.mapping else []
        await asyncio.gather(*leaving)
        await self._owner.stop()
        try:
            async with asyncio.timeout(_LAST_RECEIPTS_S):
                await parts.courier.hand_in_all()
        except TimeoutError:
            log.info("receipts kept for the next start")
        if self._relay:
            await self._relay.stop()
        await self._listener.stop()
        if parts.dht:
            await parts.dht.stop()
        await self._lines.close()
        await parts.news.keep()
        await asyncio.to_thread(self._coordinate.keep)
        await asyncio.to_thread(self._book.close)
        log.info("stopped")

    def _make_door(self, offer: Capability, certificate: Certificate) -> None:
        """Make the parts that answer clients, members, and everybody who asks for the row."""
        settings, clock, health = self._settings, self._clock, self._lines.health
        self._lending = Lending(offer)
        self._fingerprint = certificate.fingerprint
        self._leases = leases = Leases(self._key.peer_id, self._lending, check_address=settings.check_client_address)
        leases.interrupted(interrupted_leases(self._home / "leases.json"), clock.now())
        leases.trackers = health.trusted
        tokens = None
        if settings.issue_tokens:
            tokens = OwnTokens(self._key, self._lending)
            leases.trust(self._key.peer_id)
        self._book = ReceiptsBook(self._home / "receipts.db", self._key, clock)
        self._proofs = Proofs()
        lasting = lasting_row(
            self._key.peer_id, self._name, certificate.fingerprint, issues_tokens=settings.issue_tokens
        )
        self._own = OwnRow(lasting, self._lending, self._listen[0])
        self._own.own_hosts = own_hosts
        self._rows = RowWriter(
            self._key, self._own, Numbers(self._home / "sequence", clock), clock, lambda: self._coordinate.published
        )
        self._presence = Presence(self._home / "ready", self._rows, leases, health, clock)
        datasets = {name: Path(folder) for name, folder in settings.datasets.items()}
        upload = settings.upload_limit_mbit * BYTES_A_MBIT
        download = settings.download_limit_mbit * BYTES_A_MBIT
        self._dials = self._lines.dials = DialPolicy(self._own.hosts)
        self._standby = StandbyWorkers(
            self._home / "jobs",
            next((kind.worker for kind in KINDS.values() if kind.stands_by and kind.name in offer.kinds), ""),
            usual_limits(offer, priority_of(settings)),
            clock,
        )
        lanes = BulkLanes(certificate)
        context = LeaseContext(
            self._key,
            clock,
            self._rows.encoded,
            DialPolicy(self._own.hosts, tells_why=False),
            self._home / "jobs",
            self._book,
            upload=InTurn(upload),
            download=SendPace(download),
            line=LineWatch(upload, download),
            lanes=lanes,
            kept=KeptBundles(self._home / "jobs", settings.disk_mb * 2**20),
            wheels=open_wheels(self._home, settings),
            start_worker=self._standby,
            priority=priority_of(settings),
            datasets=datasets,
        )
        self._running_leases = RunningLeases(self._standby)
        self._door = SessionRouter(leases, context, self._running_leases, clock, self._slots_changed, self._noted)
        app = web.Application()
        add_ping(app)
        PeerQuestions(lambda: self._rows.signed, tokens, leases, clock).add_to(app)
        DialBackDoor(clock).add_to(app)
        self._listener = Listener(self._key, certificate, app)
        self._listener.serve_sessions(app, self._door.serve)
        self._listener.take_lanes(lanes)
        if settings.relay:
            self._relay = self._door.relay = RelayServer(self._relay_limits, clock)
            app.middlewares.append(self._relay.connects)
            self._relay.add_routes(app)

    def _make_parts(self) -> Parts:
        """Make the parts that keep the row with the trackers, in the DHT and on the local network."""
        settings, clock, presence, lines = self._settings, self._clock, self._presence, self._lines
        host, dht, node, lan, asker = self._listen[0], None, None, None, None
        if settings.dht:
            node = DhtNode(
                self._key,
                clock,
                self._chance,
                serves=False,
                coordinate=lambda: self._coordinate.told,
                on_rtt=self._answered_by_node,
            )
            dht = DhtSide(node, self._key, self._home / "dht.json", clock, self._chance, presence.met)
            dht.offer(settings.dht_contacts)
            asker = DialBackAsker(
                (self._key.peer_id, self._fingerprint),
                clock,
                self._chance,
                self._dials,
                node.find,
                presence.told_by_peers,
            )
        relay_discovery = RelayDiscovery(self._key.peer_id, lines, clock, self._dials, node.find if node else None)
        relays = RelaySide(
            self._key,
            self._listener,
            self._own,
            RelayChoice(self._chance),
            clock,
            changed=presence.relays_changed,
            find_relays=relay_discovery.find,
        )
        if settings.lan and is_on_lan(host):
            lan = LanSide(self._key.peer_id, self._name, host, presence.heard_on_lan)
        hearers = Hearers(presence.announced, presence.written, presence.tracker_lost)
        sender = RowSender(AnnounceWays(), lines.policy_of, clock, os.urandom)
        return Parts(
            announcer=Announcer(lines, Rota(lines.health, self._chance), self._rows, sender, clock, hearers),
            courier=ReceiptsCourier(self._book, lines, self._key.peer_id, clock),
            looker=LogLooker(self._home, self._book, lines, self._key.peer_id, clock, self._chance, self._proofs),
            news=TrackerNews(lines, self._home / "trackers.json", clock, dht.offer if dht else None, self._dials),
            dht=dht,
            reachability=Reachability(self._own, node, own_hosts, carries=settings.relay),
            lan=lan,
            relays=relays,
            asker=asker,
            carrying=self._relay,
            mapping=port_mapping(wanted=settings.map_port, everywhere=self._own.listens_everywhere),
        )

    async def _open(self) -> int:
        """Take the ports, TCP and UDP; which TCP port. Raises `PortTaken` or `SettingsError`."""
        parts, host = self._parts, self._listen[0]
        port = self._own.port = await self._listener.start(*self._listen)
        self._own.listens_at(self._listener.host)
        if parts.asker:
            parts.asker.port = port
        if parts.mapping:
            await parts.mapping.open(port)
        if parts.dht and parts.reachability:
            parts.reachability.port = await parts.dht.listen(host, port)
        if parts.lan:
            parts.lan.port = port
            parts.lan.dht = parts.reachability.port if parts.reachability else 0
        return port

    async def _slots_changed(self) -> asyncio.Event:
        """A lease began or ended. The event is set when the trackers know."""
        await asyncio.to_thread(keep_leases, self._home / "leases.json", self._leases.living())
        told = self._presence.slots_changed()
        self._owner.idle_supervisor.wake()
        return told

    async def _noted(self, kind: str, sentence: str, job: str) -> None:
        """Something for the owner's history."""
        await self._owner.idle_supervisor.happened(kind, sentence, job)

    async def _offer_changed(self) -> None:
        """The owner's machine is free again, or is not; or a slot is held for nothing, or is not."""
        self._door.see_idle()
        self._presence.slots_changed()

    def _answered_by_node(self, seconds: float, coordinate: bytes, who: str) -> None:
        self._coordinate.heard(seconds, coordinate, who)
        if self._parts.dht:
            self._parts.dht.noticed()


def _remove_leftovers(jobs: Path) -> None:
    """Remove what the jobs of a daemon that crashed left behind, and make the folder anew."""
    shutil.rmtree(jobs, ignore_errors=True)
    jobs.mkdir(mode=0o700, exist_ok=True)
