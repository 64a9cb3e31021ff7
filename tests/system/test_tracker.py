"""A real axon-tracker: killed at random moments it loses nothing that it acknowledged; asked to stop, it stops."""

from __future__ import annotations

import asyncio
import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import TypeVar

import aiohttp
import psutil
import pytest

from axonp2p.errors import AxonError, Busy, StaleRow
from axonp2p.identity.keys import PrivateKey
from axonp2p.ledger.ledger_client import balances, hand_in
from axonp2p.ledger.log_watch import look_at_logs
from axonp2p.ledger.receipt import MOST_RECEIPTS, DoublySigned, open_doubly_signed
from axonp2p.ledger.watched_logs import WatchedLogs
from axonp2p.peers.capability import Need, as_map
from axonp2p.reservation.reserving import new_uuid, reserve
from axonp2p.reservation.token import Token
from axonp2p.settings import TrackerSettings
from axonp2p.table.records import Row
from axonp2p.table.tracker_client import announce, query
from axonp2p.transport.address import PinnedAddress
from axonp2p.transport.http.http_caller import HttpCaller
from axonp2p.wire.envelope import Signed, open_signed, sign
from tests.fakes import make_receipt, make_row, sign_both
from tests.laboratory.ledger_world import fold
from tracker.log.maintenance import check_home

T = TypeVar("T")

START_S = 60
PEERS = [PrivateKey.generate() for _ in range(12)]
CLIENT = PrivateKey.generate()


@dataclass
class Process:
    """A tracker's process and its home."""

    process: subprocess.Popen[str]
    home: Path

    @property
    def metrics(self) -> str:
        """Where they are, as its first line says."""
        assert self.process.stdout is not None
        return self.process.stdout.readline().split()[-1]

    @property
    def address(self) -> PinnedAddress:
        return PinnedAddress.parse((self.home / "address").read_text())

    @asynccontextmanager
    async def line(self) -> AsyncIterator[HttpCaller]:
        async with HttpCaller(self.address, called="tracker lab", timeout_s=5) as caller:
            yield caller

    def kill(self) -> None:
        self.process.kill()
        self.process.wait()

    def stop(self, number: signal.Signals = signal.SIGTERM) -> tuple[int, str, str]:
        """Exit code, stdout and stderr."""
        self.process.send_signal(number)
        out, err = self.process.communicate(timeout=START_S)
        return self.process.returncode, out, err


def begin(home: Path, *more: str) -> subprocess.Popen[str]:
    environment = {name: value for name, value in os.environ.items() if not name.startswith("AXON_")}
    return subprocess.Popen(
        [sys.executable, "-P", "-m", "tracker.main", "run", "--home", home, *more],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=environment,
    )


class Trackers:
    """Starts trackers and leaves none behind."""

    def __init__(self) -> None:
        self._started: list[subprocess.Popen[str]] = []

    def start(self, home: Path, *more: str) -> Process:
        """A tracker that answers."""
        (home / "address").unlink(missing_ok=True)  # a killed one leaves its own
        process = begin(home, *(more or ("--listen", "127.0.0.1:0")))
        self._started.append(process)
        deadline = time.monotonic() + START_S
        while not (home / "address").exists():
            if process.poll() is not None or time.monotonic() > deadline:
                process.kill()
                raise AssertionError(f"the tracker did not start: {process.communicate()}")
            time.sleep(0.02)
        return Process(process, home)

    def fail(self, home: Path, *more: str) -> tuple[int, str]:
        """Exit code and stderr of a tracker that cannot start."""
        process = begin(home, *more)
        self._started.append(process)
        _, err = process.communicate(timeout=START_S)
        return process.returncode, err

    def end(self) -> None:
        for process in self._started:
            if process.poll() is None:
                process.kill()
            process.communicate()


@pytest.fixture
def trackers() -> Iterator[Trackers]:
    trackers = Trackers()
    yield trackers
    trackers.end()


@dataclass
class Acknowledged:
    """What a tracker said it has, and what it may have: said, but killed before it answered."""

    rows: dict[str, Signed[Row]] = field(default_factory=dict)
    sequences: dict[str, int] = field(default_factory=dict)
    tokens: dict[str, tuple[Signed[Token], list[str]]] = field(default_factory=dict)
    receipts: list[DoublySigned] = field(default_factory=list)
    unsure: list[DoublySigned] = field(default_factory=list)
    number: int = 0


async def keep_announcing(caller: HttpCaller, key: PrivateKey, said: Acknowledged) -> None:
    while True:
        sequence = said.sequences.get(key.peer_id, 0) + 1
        said.sequences[key.peer_id] = sequence
        row = sign(key, make_row(key, now=time.time(), sequence=sequence))
        await announce(caller, row)
        said.rows[key.peer_id] = row


async def keep_reserving(caller: HttpCaller, said: Acknowledged) -> None:
    while True:
        uuid, peers = new_uuid(), [key.peer_id for key in random.sample(PEERS, 3)]
        token = await reserve(caller, CLIENT, peers, uuid=uuid, kinds=["train"], seconds=3600, now=time.time())
        said.tokens[uuid] = (token, peers)
        await asyncio.sleep(0.01)  # a tracker has so many valid tokens for one address and no more


async def keep_handing_in(caller: HttpCaller, reservation: str, said: Acknowledged) -> None:
    while True:
        said.number += 1
        batch = [
            sign_both(CLIENT, key, make_receipt(CLIENT, key, reservation, said.number))
            for key in random.sample(PEERS, random.randint(1, 4))
        ]
        said.unsure += batch
        kept = await hand_in(caller, batch)
        assert kept.new == len(batch)
        said.receipts += batch


async def load_until_killed(tracker: Process, said: Acknowledged, seconds: float) -> None:
    async with tracker.line() as caller:
        for key in PEERS:
            said.sequences[key.peer_id] = said.sequences.get(key.peer_id, 0) + 1
            row = sign(key, make_row(key, now=time.time(), sequence=said.sequences[key.peer_id]))
            await announce(caller, row)
            said.rows[key.peer_id] = row
        uuid, peers = new_uuid(), [key.peer_id for key in PEERS]
        token = await reserve(caller, CLIENT, peers, uuid=uuid, kinds=["train"], seconds=3600, now=time.time())
        said.tokens[uuid] = (token, peers)
        busy = [
            *(keep_announcing(caller, key, said) for key in PEERS[:4]),
            *(keep_reserving(caller, said) for _ in range(2)),
            *(keep_handing_in(caller, uuid, said) for _ in range(2)),
        ]
        tasks = [asyncio.create_task(one) for one in busy]
        await asyncio.sleep(seconds)
        tracker.kill()
        outcomes = await asyncio.gather(*tasks, return_exceptions=True)
        assert all(isinstance(outcome, AxonError) for outcome in outcomes), outcomes


async def patiently(ask: Callable[[], Awaitable[T]]) -> T:
    """The answer, however often the tracker says first that this computer asks too much."""
    while True:
        try:
            return await ask()
        except Busy:
            await asyncio.sleep(0.5)


async def check_all_is_there(tracker: Process, said: Acknowledged) -> None:
    async with tracker.line() as caller:
        found = await patiently(lambda: query(caller, as_map(Need()), 200, now=time.time()))
        known = {row.peer: row.sequence for row in found.rows}
        for peer, row in said.rows.items():
            assert known[peer] in range(said.sequences[peer] + 1)
            if known[peer] == said.sequences[peer] and known[peer] > _sequence(row):
                with pytest.raises(StaleRow):  # the last one was stored, but its answer was cut off
                    await patiently(partial(announce, caller, row))
            else:
                assert known[peer] == _sequence(row), "an acknowledged row is lost"
                await patiently(partial(announce, caller, row))
        for uuid, (token, peers) in said.tokens.items():
            asked = {"uuid": uuid, "kinds": ["train"], "seconds": 3600, "now": time.time()}
            again = await patiently(partial(reserve, caller, CLIENT, peers, **asked))
            assert again == token, "an acknowledged token is lost"
        for batch in _batches(said.receipts):
            kept = await patiently(partial(hand_in, caller, batch))
            assert kept.known == len(batch), "an acknowledged receipt is lost"
        for batch in _batches(said.unsure):
            assert not (await patiently(partial(hand_in, caller, batch))).refused
        said.receipts = list(said.unsure)
        everyone = await patiently(partial(balances, caller))
        expected = fold(open_doubly_signed(receipt) for receipt in said.receipts)
        assert {one.key: one for one in everyone.balances} == expected
        assert everyone.receipts == len(said.receipts)


def _sequence(row: Signed[Row]) -> int:
    return open_signed(row, Row).sequence


def _batches(receipts: list[DoublySigned]) -> Iterator[list[DoublySigned]]:
    for start in range(0, len(receipts), MOST_RECEIPTS):
        yield receipts[start : start + MOST_RECEIPTS]


async def test_killed_at_any_moment_it_loses_nothing_that_it_acknowledged(trackers: Trackers, tmp_path: Path):
    said, watched = Acknowledged(), WatchedLogs()
    for _ in range(5):
        await load_until_killed(trackers.start(tmp_path), said, random.uniform(0.05, 1.2))
        tracker = trackers.start(tmp_path)
        await check_all_is_there(tracker, said)
        async with tracker.line() as caller:
            (looked,) = await look_at_logs([caller], watched)
        assert not looked.trouble
        assert not looked.unproved
        tracker.kill()
        assert not check_home(tmp_path, TrackerSettings(), offline=True).problems
    assert not watched.convicted
    assert len(said.tokens) > 5
    assert len(said.receipts) > 5


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_asked_to_stop_it_ends_well_and_takes_its_sign_away(trackers: Trackers, tmp_path: Path, number: signal.Signals):
    tracker = trackers.start(tmp_path)
    address = str(tracker.address)
    code, out, err = tracker.stop(number)
    assert code == 0, err
    assert address in out.splitlines()[0]
    assert out.count("\n") == 1
    assert not (tmp_path / "address").exists()
    assert str(trackers.start(tmp_path).address).partition("#")[2] == address.partition("#")[2]


async def test_it_ends_well_with_callers_on_the_line(trackers: Trackers, tmp_path: Path):
    tracker = trackers.start(tmp_path)
    async with tracker.line() as caller:
        tasks = [asyncio.create_task(keep_announcing(caller, key, Acknowledged())) for key in PEERS]
        await asyncio.sleep(0.3)
        started = time.monotonic()
        code, _, err = await asyncio.to_thread(tracker.stop)
        await asyncio.gather(*tasks, return_exceptions=True)
    assert code == 0, err
    assert "Traceback" not in err
    assert time.monotonic() - started < 20  # the callers would never go


async def test_it_tells_how_it_is(trackers: Trackers, tmp_path: Path):
    tracker = trackers.start(tmp_path)
    async with aiohttp.ClientSession() as client:
        async with client.get(f"{tracker.address.url}/v1/health", ssl=False) as response:
            health = await response.json()
        async with client.get(tracker.metrics) as response:
            metrics = await response.text()
    assert health.keys() == {"tracker", "version", "protocol", "alive", "receipts", "trouble", "time", "you"}
    assert abs(health["time"] - time.time()) < 5
    assert "axon_rows_alive 0.0" in metrics
    assert "process_resident_memory_bytes" in metrics


def test_one_home_has_one_tracker(trackers: Trackers, tmp_path: Path):
    first = trackers.start(tmp_path)
    code, err = trackers.fail(tmp_path, "--listen", "127.0.0.1:0")
    assert code == 6
    assert err.startswith(f"error AX-606: a tracker already runs with {tmp_path} (pid {first.process.pid})\n")
    assert first.address  # its sign is still there
    first.kill()
    trackers.start(tmp_path)  # a killed tracker's lock is nobody's


def test_a_taken_port_is_said_without_a_traceback(trackers: Trackers, tmp_path: Path):
    taken = trackers.start(tmp_path / "one").address.host_port
    code, err = trackers.fail(tmp_path / "two", "--listen", taken)
    assert code == 6
    assert f"error AX-602: something else already listens at {taken}" in err
    assert err.splitlines()[-1].startswith("fix: ")
    assert "Traceback" not in err
    _, err = trackers.fail(tmp_path / "two", "--listen", taken, "--debug")
    assert "Traceback" in err


@pytest.mark.parametrize("listen", ["nonsense", "127.0.0.1:99999", "no.such.host.invalid:0"])
def test_a_wrong_address_is_said(trackers: Trackers, tmp_path: Path, listen: str):
    code, err = trackers.fail(tmp_path, "--listen", listen)
    assert code == 9
    assert "error AX-601: " in err
    assert "fix: " in err


def test_a_damaged_database_is_said_and_left_alone(trackers: Trackers, tmp_path: Path):
    damaged = b"this was a database once" * 500
    (tmp_path / "tracker.db").write_bytes(damaged)
    code, err = trackers.fail(tmp_path, "--listen", "127.0.0.1:0")
    assert code == 9
    assert f"error AX-601: the database {tmp_path / 'tracker.db'} cannot be used" in err
    assert (tmp_path / "tracker.db").read_bytes() == damaged


def test_it_is_small_and_has_no_torch(trackers: Trackers, tmp_path: Path):
    process = psutil.Process(trackers.start(tmp_path).process.pid)
    with suppress(psutil.AccessDenied):
        assert not [each.path for each in process.memory_maps() if "torch" in each.path]
    assert process.memory_info().rss < 100 * 2**20
