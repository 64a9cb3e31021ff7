"""The tracker put together: the one file that makes its parts and joins them."""

from __future__ import annotations

import asyncio
import random
from contextlib import suppress
from pathlib import Path

from axonp2p.clock import Clock
from axonp2p.errors import AxonError, SettingsError
from axonp2p.identity.certificate import make_certificate
from axonp2p.identity.key_file import load_or_create_key
from axonp2p.logs import get_logger
from axonp2p.settings import TrackerSettings
from axonp2p.transport.address import PinnedAddress, parse_listen
from axonp2p.transport.listener import Listener
from tracker.database import Database
from tracker.issuer import Issuer
from tracker.ledger_keeper import LedgerKeeper
from tracker.metrics import Metrics
from tracker.own_address import reachable_host
from tracker.rate_limit import RateLimit
from tracker.routes import Routes
from tracker.table_index import TableIndex
from tracker.table_store import TableStore

log = get_logger(__name__)

SWEEP_EVERY_S = 10.0
_LEAST_AGAIN_S, _MOST_AGAIN_S = 60, 1200


class Tracker:
    """One tracker on one home folder. `start` and `stop` may be called once each, in that order."""

    def __init__(self, home: Path, settings: TrackerSettings, clock: Clock, chance: random.Random) -> None:
        """Make the parts; blocks on the disk. Raises `SettingsError` and its kind."""
        if not _LEAST_AGAIN_S <= settings.announce_every <= _MOST_AGAIN_S:
            raise SettingsError(
                f"announce-every is {settings.announce_every} s",
                fix=f"[tracker] announce-every: {_LEAST_AGAIN_S} to {_MOST_AGAIN_S}",
            )
        self._listen = parse_listen(settings.listen)
        self.key = load_or_create_key(home / "tracker.key")
        self._clock = clock
        metrics = Metrics()
        self._database = Database(home / "tracker.db", metrics.committed)
        self.table = TableStore(self._database, TableIndex(chance))
        self.issuer = Issuer(self.key, self._database, self.table.index)
        self.ledger = LedgerKeeper(self._database)
        metrics.watch(
            rows_alive=lambda: self.table.index.alive(clock.now()),
            rows=lambda: len(self.table.index),
            receipts=lambda: self.ledger.receipts,
        )
        self._limit = RateLimit()
        routes = Routes(self.key.peer_id, self.table, self.issuer, self.ledger, clock, settings.announce_every)
        self._certificate = make_certificate(self.key, home / "certificate.pem")
        self._listener = Listener(self.key, self._certificate, routes.application(metrics, self._limit))
        self._sweeper: asyncio.Task[None] | None = None

    async def start(self) -> PinnedAddress:
        """Read what is stored, then listen. Returns the address that others reach. Raises `SettingsError`."""
        host, port = self._listen
        rows = await asyncio.to_thread(self.table.load, self._clock.now())
        receipts = await asyncio.to_thread(self.ledger.load)
        self._database.start()
        port = await self._listener.start(host, port)
        self._sweeper = asyncio.create_task(self._sweep_again_and_again(), name="sweeper")
        address = PinnedAddress(reachable_host(host), port, self._certificate.fingerprint)
        log.info("tracker listens", at=address.host_port, rows=rows, receipts=receipts)
        return address

    async def stop(self) -> None:
        """Answer nobody any more and close the database. Harmless when it never started."""
        if self._sweeper is not None:
            self._sweeper.cancel()
            with suppress(asyncio.CancelledError):
                await self._sweeper
        await self._listener.stop()
        await self._database.close()

    async def _sweep_again_and_again(self) -> None:
        while True:
            await asyncio.sleep(SWEEP_EVERY_S)
            now = self._clock.now()
            self._limit.forget_idle(self._clock.monotonic())
            try:
                await self.table.sweep(now)
                await self.issuer.sweep(now)
            except AxonError as error:
                log.error("cannot sweep", reason=error.message)
