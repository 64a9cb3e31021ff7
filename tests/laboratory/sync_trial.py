"""Several real trackers on loopback, and rows of peers that announce to two of them: lag, bytes, and a lost database.

Nobody is behind the rows: the trial signs them, as daemons would, and announces them over HTTPS. All trackers begin
with the rows of all peers, so that every announce is a renewal.
"""

from __future__ import annotations

import asyncio
import os
import random
import shutil
import socket
import time
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

import msgspec

from axonp2p.identity.certificate import make_certificate
from axonp2p.identity.key_file import load_or_create_key
from axonp2p.identity.keys import PrivateKey
from axonp2p.peers.coordinates import DIMENSIONS
from axonp2p.table.records import Row
from axonp2p.table.tracker_client import announce, line_to
from axonp2p.transport.address import PinnedAddress
from axonp2p.wire.envelope import Signed, sign
from tests.laboratory.announcing_peer import Peer, RowOf
from tests.laboratory.tracker_worker import Noted, TrackerWorker
from tracker.api.status import TrackerStatus, ask_status
from tracker.storage.database import Database
from tracker.table.table_index import TableIndex
from tracker.table.table_store import TableStore

ANNOUNCE_EVERY_S = 300.0
SETTLE_S = 8.0
LAST_ROWS_WITHIN_S = 20.0
WITHIN_S = 60.0


class SyncTrial:
    """So many trackers and peers, with all files in one folder."""

    def __init__(self, folder: Path, trackers: int, peers: int, row_of: RowOf) -> None:
        self._chance = random.Random(trackers)
        self._homes = [folder / f"tracker-{number}" for number in range(trackers)]
        self._listens = [f"127.0.0.1:{port}" for port in free_ports(trackers)]
        self._addresses = [_address(home, at) for home, at in zip(self._homes, self._listens, strict=True)]
        self._workers: list[TrackerWorker] = []
        self.peers = [self._make_peer(number, row_of) for number in range(peers)]

    async def measure(self, seconds: float) -> dict[str, Any]:
        """All figures; announces come for so long, as many as `ANNOUNCE_EVERY_S` asks for."""
        signed = [sign(peer.key, peer.row) for peer in self.peers]
        for home in self._homes:
            await _fill(home, [(each, peer.row) for each, peer in zip(signed, self.peers, strict=True)])
        try:
            for number in range(len(self._homes)):
                self._workers.append(await asyncio.to_thread(self._start, number))
            await self._acquainted()
            await asyncio.sleep(SETTLE_S)
            idle = await self._bytes_a_second(SETTLE_S, asyncio.sleep(SETTLE_S))
            self._noted()
            announced: list[int] = []
            busy = await self._bytes_a_second(seconds, self._announce(seconds, announced))
            lags = await self._lags(announced)
            return {
                "trackers": len(self._homes), "peers": len(self.peers), "announces": 2 * len(announced), **lags,
                "sent_a_second": busy, "sent_a_second_idle": idle, "refill": await self._refill(),
            }  # fmt: skip
        finally:
            for worker in self._workers:
                worker.kill()

    def _make_peer(self, number: int, row_of: RowOf) -> Peer:
        key = PrivateKey(os.urandom(32))
        now = time.time() - self._chance.uniform(0, ANNOUNCE_EVERY_S)
        row = row_of(key.peer_id, number, int(now * 1000), now, self._chance)
        first, second = self._chance.sample(range(len(self._homes)), 2)
        known = [str(self._addresses[first]), str(self._addresses[second])]
        place = tuple(self._chance.gauss(0, 40) for _ in range(DIMENSIONS))
        return Peer(key, msgspec.structs.replace(row, trackers=known), (first, second), place)

    def _start(self, number: int) -> TrackerWorker:
        others = [str(address) for place, address in enumerate(self._addresses) if place != number]
        return TrackerWorker(self._homes[number], self._listens[number], others)

    async def _statuses(self) -> list[TrackerStatus]:
        return list(await asyncio.gather(*(ask_status(address) for address in self._addresses)))

    async def _acquainted(self) -> None:
        async with asyncio.timeout(WITHIN_S):
            while True:
                living = [sum(other.lives for other in status.trackers) for status in await self._statuses()]
                if min(living) == len(self._homes) - 1:
                    return
                await asyncio.sleep(0.2)

    def _noted(self) -> list[Noted]:
        return [worker.noted() for worker in self._workers]

    async def _bytes_a_second(self, seconds: float, meanwhile: Any) -> list[float]:
        """What each tracker sent to all others, questions and answers, while that was done."""
        before, began = _sent(await self._statuses()), time.monotonic()
        await meanwhile
        after = _sent(await self._statuses())
        took = max(seconds, time.monotonic() - began)
        return [round((after[address] - before[address]) / took) for address in map(str, self._addresses)]

    async def _announce(self, seconds: float, announced: list[int]) -> None:
        """Peers in turn, evenly in time, each to its two trackers at once."""
        a_second = len(self.peers) / ANNOUNCE_EVERY_S
        chosen = self._chance.sample(range(len(self.peers)), min(len(self.peers), int(a_second * seconds)))
        async with AsyncExitStack() as stack, asyncio.TaskGroup() as group:
            lines = [await stack.enter_async_context(line_to(address)) for address in self._addresses]
            began = time.monotonic()
            for place, number in enumerate(chosen):
                await asyncio.sleep(began + place / a_second - time.monotonic())
                peer = self.peers[number]
                row = peer.renewed(time.time(), self._chance)
                for holder in peer.holders:
                    group.create_task(announce(lines[holder], row))
                announced.append(number)

    async def _lags(self, announced: list[int]) -> dict[str, float]:
        """From the first tracker that stored a row to the last one, in seconds."""
        times: dict[str, list[float]] = {self.peers[number].key.peer_id: [] for number in announced}
        ends = time.monotonic() + LAST_ROWS_WITHIN_S
        while True:
            for noted in self._noted():
                for peer, at in noted.stored.items():
                    times[peer].append(at)
            lags = sorted(max(each) - min(each) for each in times.values() if len(each) >= len(self._homes))
            if len(lags) == len(times) or time.monotonic() > ends:
                break
            await asyncio.sleep(0.5)
        return {
            "lag_p50_s": round(lags[len(lags) // 2], 3), "lag_p99_s": round(lags[len(lags) * 99 // 100], 3),
            "lag_max_s": round(lags[-1], 3),
            "not_everywhere": len(times) - len(lags),
        }  # fmt: skip

    async def _refill(self) -> dict[str, float]:
        """Kill the last tracker, delete its database, and start it again; nobody announces meanwhile."""
        worker = self._workers.pop()
        worker.kill()
        for file in self._homes[-1].glob("tracker.db*"):
            file.unlink()
        address = self._addresses[-1]
        before, killed_at = await self._sent_to(address), time.monotonic()
        self._workers.append(worker := await asyncio.to_thread(self._start, len(self._homes) - 1))
        stored: dict[str, float] = {}
        async with asyncio.timeout(WITHIN_S):
            while len(stored) < len(self.peers):
                await asyncio.sleep(0.1)
                stored |= worker.noted().stored
        last = max(stored.values())
        own = await ask_status(address)
        received = sum(other.bytes_received for other in own.trackers) + await self._sent_to(address) - before
        return {
            "rows": len(stored), "listens_s": round(worker.listens_at - killed_at, 3),
            "seconds": round(last - worker.listens_at, 3), "received_bytes": received,
            "sent_bytes": sum(other.bytes_sent for other in own.trackers),
        }  # fmt: skip

    async def _sent_to(self, address: PinnedAddress) -> int:
        """Bytes that the others sent to that tracker as they asked it."""
        statuses = await asyncio.gather(*(ask_status(other) for other in self._addresses if other != address))
        others = (other for status in statuses for other in status.trackers)
        return sum(other.bytes_sent for other in others if other.address == str(address))


def _sent(statuses: list[TrackerStatus]) -> dict[str, int]:
    """By address of a tracker: bytes that it sent to the others as it asked them, and as it answered them."""
    sent = {status.address: 0 for status in statuses}
    for status in statuses:
        for other in status.trackers:
            sent[status.address] += other.bytes_sent
            sent[other.address] = sent.get(other.address, 0) + other.bytes_received
    return sent


def _address(home: Path, at: str) -> PinnedAddress:
    home.mkdir(parents=True)
    certificate = make_certificate(load_or_create_key(home / "tracker.key"), home / "certificate.pem")
    host, _, port = at.rpartition(":")
    return PinnedAddress(host, int(port), certificate.fingerprint)


async def _fill(home: Path, rows: list[tuple[Signed[Row], Row]]) -> None:
    database = Database(home / "tracker.db")
    table = TableStore(database, TableIndex(random.Random(1)))
    database.start()
    await table.keep_many(rows, time.time())
    await database.close()


def free_ports(count: int) -> list[int]:
    """Ports that nobody has now."""
    sockets = [socket.socket() for _ in range(count)]
    try:
        for each in sockets:
            each.bind(("127.0.0.1", 0))
        return [each.getsockname()[1] for each in sockets]
    finally:
        for each in sockets:
            each.close()


def measure_sync(folder: Path, trackers: int, peers: int, seconds: float, row_of: RowOf) -> dict[str, Any]:
    """All figures of one number of trackers; what is written to `folder` is deleted."""
    try:
        return asyncio.run(SyncTrial(folder, trackers, peers, row_of).measure(seconds))
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def show_sync(found: dict[str, Any]) -> None:
    """For people."""
    swarm = f"{found['trackers']} trackers, {found['peers']:,} peers"
    print(f"\n{swarm}, each announces to two every {ANNOUNCE_EVERY_S:.0f} s")
    lag = " / ".join(f"{found[name]:.2f}" for name in ("lag_p50_s", "lag_p99_s", "lag_max_s"))
    print(f"a row at all trackers  {lag} s, p50 / p99 / max of {found['announces'] // 2} rows")
    if found["not_everywhere"]:
        print(f"                       {found['not_everywhere']} rows were not at all trackers in time")
    sent = " ".join(f"{each / 1000:.2f}" for each in found["sent_a_second"])
    idle = " ".join(f"{each / 1000:.2f}" for each in found["sent_a_second_idle"])
    print(f"each tracker sends     {sent} kB/s to all others (aim <= 3); when nobody announces {idle}")
    refill = found["refill"]
    megabytes = refill["received_bytes"] / 1e6
    print(
        f"an emptied tracker     {refill['rows']:,} rows in {refill['seconds']:.1f} s with {megabytes:.1f} MB received"
    )
