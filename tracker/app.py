"""The tracker put together: the one file that makes its parts and joins them."""

from __future__ import annotations

import asyncio
import gc
import os
import random
import time
from collections.abc import Callable
from pathlib import Path

from axonp2p.clock import Clock
from axonp2p.errors import AxonError, Busy, SettingsError
from axonp2p.hosting.admission import limits_of as host_limits_of
from axonp2p.hosting.host import Host
from axonp2p.hosting.keeper import Keeper
from axonp2p.hosting.server import HostServer
from axonp2p.identity.certificate import Certificate, authority_certificate, make_certificate
from axonp2p.identity.key_file import load_or_create_key
from axonp2p.identity.peer_id import PeerId
from axonp2p.logs import get_logger
from axonp2p.settings import TrackerSettings
from axonp2p.supervision import cancel_and_wait, keep_up
from axonp2p.table.announce_datagrams import NEWS_BYTES
from axonp2p.table.records import LEAST_AGAIN_S, MOST_AGAIN_S, MOST_VOUCHED, Row
from axonp2p.table.slots import Slots
from axonp2p.table.tracker_client import ANNOUNCE_PATH
from axonp2p.transport.address import PinnedAddress, parse_listen, split_host_port
from axonp2p.transport.dial_policy import DialPolicy
from axonp2p.transport.flow.rate_limit import RateLimit
from axonp2p.transport.relay.door import RelayDoor
from axonp2p.transport.relay.server import RelayServer
from axonp2p.transport.sessions.listener import Listener
from axonp2p.transport.sessions.proxy_header import parse_networks
from axonp2p.transport.tunnel.messages import limits_of
from axonp2p.wire.envelope import Signed
from tracker.api.announces import Announces
from tracker.api.datagram_desk import DatagramDesk
from tracker.api.datagram_door import DatagramDoor
from tracker.api.log_routes import LogRoutes
from tracker.api.metrics import Metrics
from tracker.api.routes import Routes
from tracker.api.sync_routes import SyncRoutes
from tracker.ledger.intake import ListedMachine, TrackerTrust
from tracker.ledger.issuer import Issuer
from tracker.ledger.ledger_keeper import LedgerKeeper
from tracker.ledger.owing import NOBODY_VOUCHED_FIX, Owing, vouched_clients
from tracker.ledger.receipt_relay import OtherTracker, ReceiptRelay
from tracker.log.log_fetch import heal
from tracker.log.log_keeper import LogKeeper
from tracker.log.log_scrub import LogScrub
from tracker.log.log_watcher import LogWatcher
from tracker.own_address import reachable_host
from tracker.own_doors import OwnDoors
from tracker.page.landing import Landing, LandingFacts
from tracker.page.recorder import OverviewSources, Recorder
from tracker.probing.prober import Prober
from tracker.replication.own_tracker_row import OwnTrackerRow, database_name
from tracker.replication.remembered_trackers import RememberedTrackers
from tracker.replication.replica import Replica
from tracker.replication.row_intake import RowIntake
from tracker.replication.sync import Synchronisation
from tracker.replication.tracker_book import TrackerBook
from tracker.storage.database import Database
from tracker.table.announce_interval import AnnounceInterval
from tracker.table.table_index import TableIndex
from tracker.table.table_store import TableStore

log = get_logger(__name__)

SWEEP_EVERY_S = 10.0
RENEW_EVERY_S = 60.0
"""How often it is looked whether the operator's certificate is another one."""
YOUNG_OBJECTS = 10_000
"""New objects before the collector looks at them. At its usual 700 it looks at every few announces, whose objects live
until their commit, and finds nothing: next to nothing here stands in a circle."""


class Tracker:
    """One tracker on one home folder. `start` and `stop` may be called once each, in that order."""

    def __init__(self, home: Path, settings: TrackerSettings, clock: Clock, chance: random.Random) -> None:
        """Make the parts; blocks on the disk. Raises `SettingsError` and its kind."""
        if not LEAST_AGAIN_S <= settings.announce_every <= MOST_AGAIN_S:
            raise SettingsError(
                f"announce-every is {settings.announce_every} s",
                fix=f"[tracker] announce-every: {LEAST_AGAIN_S:.0f} to {MOST_AGAIN_S:.0f}",
            )
        relay_limits = limits_of(settings.relay_mbit, settings.relay_hourly_mb)
        host_limits = host_limits_of(
            settings.hosted_jobs, settings.hosted_jobs_of_one, settings.hosted_disk_mb, settings.hosted_days
        )
        self._listen = parse_listen(settings.listen)
        self._public = split_host_port(settings.public_address) if settings.public_address else None
        self._vouches_for = [_pinned(text) for text in settings.vouches_for[:MOST_VOUCHED]]
        self._others = [str(PinnedAddress.parse(text)) for text in settings.trackers] + self._vouches_for
        self.key = load_or_create_key(home / "tracker.key")
        self._clock = clock
        self._chance = chance
        self.metrics = metrics = Metrics()
        self._database = Database(home / "tracker.db", metrics.committed)
        index, slots = TableIndex(chance), Slots()
        self.table = TableStore(self._database, index, slots)
        self.replica = Replica(index, slots, clock.now())
        self._arrivals = RowIntake(self.table, self.replica, clock)
        self.is_trusted: Callable[[PeerId], bool] = self._is_trusted
        vouched = vouched_clients(settings.vouched_clients)
        trust = TrackerTrust(
            own=self.key.peer_id,
            trusted=lambda tracker: self.is_trusted(tracker),
            known=lambda tracker: self._sync is not None and self._sync.book.is_known(tracker),
            machine=lambda peer: ListedMachine(index.knows(peer), index.offer_of(peer, clock.now())),
        )
        self.ledger = LedgerKeeper(self._database, trust, vouched, clock)
        self._owing = owing = Owing(settings.owing, settings.owing_credits, vouched)
        self.ledger.exempt = lambda source: self._sync is not None and self._sync.book.is_trusted_source(source)
        self.issuer = Issuer(self.key, self._database, index, owing, self.ledger.standing_of)
        self._log = LogKeeper(self.key, self._database, clock)

        def others() -> list[OtherTracker]:
            return self._joined().others()

        self.watcher = LogWatcher(home, self._database, self.ledger, others, trust.trusted)
        self.scrub = LogScrub(self._database, self.ledger, others, clock)
        metrics.watch(
            rows_alive=lambda: index.alive(clock.now()),
            rows=lambda: len(index),
            receipts=lambda: self.ledger.receipts,
        )
        self._limit = RateLimit()
        self._hosts: list[str] = []
        """The addresses by which others know this tracker, once it listens."""
        self._prober = Prober(index, DialPolicy(lambda: self._hosts), clock)
        self._interval = AnnounceInterval(settings.announce_every)
        announces = Announces(self.key.peer_id, self.table, self._limit, self._interval, clock)
        announces.first_look = self._prober.first_look
        routes = Routes(self.key.peer_id, self.table, self.issuer, self.ledger, clock, announces)
        routes.trouble = self._trouble
        shared = SyncRoutes(self._joined, self.replica, self._arrivals, self._limit, clock)
        self._settings, self._home = settings, home
        self._certificate_trouble = ""
        self._certificate = self._read_certificate()
        self.hosting = Keeper(home / "hosted", host_limits, clock)
        host = HostServer(self.key.peer_id, self.hosting)
        shared.says_of_log = self.watcher.says_of
        logs = LogRoutes(self._log, lambda: self.watcher.watched, self._limit, clock)
        landing = Landing(
            LandingFacts(
                self.key.peer_id, lambda: str(self.address or ""), self._trouble, lambda: index.alive(clock.now())
            )
        )
        extra = [shared.add_routes, self._prober.add_routes, host.add_routes, logs.add_routes, landing.add_routes]
        relay = RelayServer(relay_limits, clock, index.__contains__) if settings.relay else None
        self._relay = RelayDoor(relay, "this tracker", host)
        proxies = parse_networks(settings.trusted_proxies)
        self._datagrams: DatagramDoor | None = None
        if settings.datagrams:
            desk = DatagramDesk(self.key, announces, self._limit, clock, os.urandom)
            desk.on_yes = lambda seconds: metrics.answered(ANNOUNCE_PATH, 200, seconds)
            desk.news = lambda: self._sync.news if self._sync else bytes(NEWS_BYTES)
            metrics.watch_datagrams(desk.said)
            self._datagrams = DatagramDoor(desk, proxies)
            extra.append(self._datagrams.add_routes)
        metrics.watch_hosting(lambda: self.hosting.running)
        if self._relay.server:
            metrics.watch_relay(self._relay.server.admission)
        app = routes.application(metrics, self._limit, [*extra, self._relay.add_to])
        self._listener = Listener(self.key, self._certificate, app, proxies)
        self._listener.serve_sessions(app, self._relay.serve)
        self.address: PinnedAddress | None = None
        """As others reach it, once it listens."""
        admission = self._relay.server.admission if self._relay.server else None
        parts = OverviewSources(
            index,
            self.ledger,
            self._database,
            metrics,
            admission,
            shared.status,
            self._trouble,
            lambda: self.hosting.running,
        )
        self._recorder = Recorder(parts, clock)
        self._own_doors = OwnDoors(self._recorder, metrics.page, settings)
        self._sync: Synchronisation | None = None
        self._remembered = RememberedTrackers(home / "trackers.json")
        self._tasks: list[asyncio.Task[None]] = []

    async def start(self) -> PinnedAddress:
        """Read what is stored, then listen. Returns the address that others reach. Raises `SettingsError`."""
        host, port = self._listen
        rows = await asyncio.to_thread(self.table.load, self._clock.now())
        gc.freeze()  # what was loaded stays: to walk through a million rows now and then would stop all callers
        gc.set_threshold(YOUNG_OBJECTS)
        receipts = await asyncio.to_thread(self.ledger.load)
        name = self._database.load(database_name)
        lost = await asyncio.to_thread(self._log.load, name)
        self._database.start()
        if lost is not None:
            known_by = self._public[0] if self._public else reachable_host(host)
            dials = DialPolicy(lambda: [known_by])
            others = dict.fromkeys(self._remembered.read().trackers, dials) | dict.fromkeys(self._others)
            name = await heal(self._database, self.ledger, lost, name, others)
        await asyncio.to_thread(self._log.begin, name)
        self._measure()
        if self._datagrams is not None:
            port = await self._datagrams.open(host, port)
        port = await self._listener.start(host, port)
        host, port = self._public or (reachable_host(host), port)
        # An authority's certificate is replaced now and then: no address may pin it.
        fingerprint = None if self._settings.certificate else self._certificate.fingerprint
        self.address = address = PinnedAddress(host, port, fingerprint)
        self._hosts = [host]
        self._share(address, name)
        # Their processes ask this tracker first, which listens by now.
        self.hosting.trackers = lambda: [str(address), *self._joined().book.trusted()]
        self.hosting.copies.find_host = self._trusted_host
        await self.hosting.start()
        log.info("tracker listens", at=address.host_port, rows=rows, receipts=receipts)
        await self._own_doors.open()
        if self._owing.trouble:
            log.warning(self._owing.trouble, fix=NOBODY_VOUCHED_FIX)
        return address

    def _share(self, address: PinnedAddress, database: str) -> None:
        """Join the other trackers, as the one at `address`."""
        own = OwnTrackerRow(self.key, str(address), database)
        book = TrackerBook(own.peer, own.address, self._others, self._chance)
        remembered = self._remembered.read()
        book.remember(remembered.trackers, remembered.vouchings, self._clock.now())
        self._sync = sync = Synchronisation(own, book, self.replica, self._arrivals, self._clock, self._chance)
        sync.vouches_for = self._vouches_for
        sync.dials = DialPolicy(lambda: self._hosts)
        relay = ReceiptRelay(self._database, sync.others)
        self.table.on_news = self._heard
        self.ledger.on_news = relay.nudge
        tasks = {
            "the sweeper": self._sweep_again_and_again,
            "synchronisation": sync.run,
            "relaying receipts": relay.run,
        }
        tasks |= {"hosting": self.hosting.run, "the watch of logs": self.watcher.run}
        tasks |= {"the scrub of the log": self.scrub.run, "samples for the page": self._recorder.run}
        if self._settings.certificate:
            tasks["the look at the certificate"] = self._renew_again_and_again
        if self._relay.server:
            tasks["relaying"] = self._relay.server.run
        self._tasks = [asyncio.create_task(keep_up(name, run), name=name) for name, run in tasks.items()]

    @property
    def own_doors(self) -> OwnDoors:
        """The operator's page and the metrics."""
        return self._own_doors

    def _read_certificate(self) -> Certificate:
        settings = self._settings
        if bool(settings.certificate) != bool(settings.certificate_key):
            raise SettingsError(
                "a certificate and its key go together, and only one of them is named",
                fix="--certificate fullchain.pem --key privkey.pem",
            )
        if not settings.certificate:
            return make_certificate(self.key, self._home / "certificate.pem")
        paths = (self._home / Path(text).expanduser() for text in (settings.certificate, settings.certificate_key))
        return authority_certificate(*paths)

    async def renew_certificate(self) -> None:
        """Read the certificate's files again (SIGHUP); what cannot be used leaves the old one in use."""
        if not self._settings.certificate:
            return
        try:
            fresh = await asyncio.to_thread(self._read_certificate)
            if fresh.fingerprint == self._certificate.fingerprint:
                return
            self._listener.renew(fresh)
        except SettingsError as error:
            if error.cause != self._certificate_trouble:
                log.error("the new certificate is not used", reason=error.message, cause=error.cause, fix=error.fix)
            self._certificate_trouble = error.cause
            return
        self._certificate, self._certificate_trouble = fresh, ""
        log.info("certificate renewed", file=str(fresh.pem))

    async def _renew_again_and_again(self) -> None:
        while True:
            await asyncio.sleep(RENEW_EVERY_S)
            await self.renew_certificate()

    def _is_trusted(self, tracker: PeerId) -> bool:
        return self._sync is not None and self._sync.book.is_trusted(tracker, self._clock.now())

    def _trusted_host(self, tracker: PeerId) -> Host | None:
        address = self._joined().book.trusted_at(tracker)
        return Host(PinnedAddress.parse(address), tracker) if address else None

    def _trouble(self) -> str:
        cannot = f"it cannot store anything: {self._database.trouble}" if self._database.trouble else ""
        return "; ".join(filter(None, (cannot, self.scrub.trouble, self._owing.trouble)))

    def _joined(self) -> Synchronisation:
        if self._sync is None:
            raise Busy("this tracker starts just now", fix="ask again in a second")
        return self._sync

    def _heard(self, signed: Signed[Row], row: Row, before: Signed[Row] | None) -> None:
        now = self._clock.now()
        self.replica.announced(signed, before, now, row.trackers)
        for address in row.trackers:
            self._joined().book.hear_of(address, now)

    async def stop(self) -> None:
        """Answer nobody any more and close the database. Harmless when it never started."""
        await cancel_and_wait(*self._tasks)
        await self._own_doors.close()
        await self._relay.stop()
        if self._datagrams is not None:
            await self._datagrams.close()
        await self._listener.stop()
        await self.hosting.stop()
        await self._prober.stop()
        await self._database.close()

    def _measure(self) -> None:
        alive = self.table.index.alive(self._clock.now())
        self._interval.worked(self._clock.monotonic(), time.process_time(), alive)

    async def _sweep_again_and_again(self) -> None:
        while True:
            await asyncio.sleep(SWEEP_EVERY_S)
            now = self._clock.now()
            self._limit.forget_idle(self._clock.monotonic())
            self._measure()
            await asyncio.to_thread(self._remembered.write, *self._joined().book.to_remember())
            try:
                await self.table.sweep(now)
                await self.issuer.sweep(now)
            except AxonError as error:
                log.error("cannot sweep", reason=error.message)


def _pinned(text: str) -> str:
    """The address of a tracker that is vouched for. Raises `SettingsError`."""
    address = PinnedAddress.parse(text)
    if address.fingerprint is None:
        raise SettingsError(
            f"{text} is to be vouched for, but has no fingerprint",
            fix="[tracker] vouches-for: the whole address as `axon-tracker run` prints it, https://HOST:PORT#FINGERPRINT",
        )
    return str(address)
