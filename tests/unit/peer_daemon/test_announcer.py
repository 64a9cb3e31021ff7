from __future__ import annotations

import asyncio

import pytest
from structlog.testing import capture_logs

from axonp2p.errors import StaleRow, TrackerUnreachable
from axonp2p.identity.keys import PrivateKey
from axonp2p.peers.capability import Capability, read_capability
from axonp2p.table.records import Announced, Row, open_row
from peer_daemon.announcer import Announcer, Sequence
from peer_daemon.own_row import OwnRow

KEY = PrivateKey(b"p" * 32)
TRACKER = PrivateKey(b"t" * 32).peer_id
OFFER = Capability(
    cores=1, memory_mb=512, disk_mb=512, gflops=1.5, slots=2, free=2, python="3.11", packages={}, kinds=["train"]
)


class FakeClock:
    """Time that a test moves."""

    def __init__(self):
        self.time = 1_000_000.0

    def now(self):
        return self.time

    def monotonic(self):
        return self.time


class FakeTracker:
    """Keeps the rows that it is given, and says each one aloud."""

    def __init__(self, clock, *, ahead: float = 0):
        self.called = "tracker"
        self.clock = clock
        self.ahead = ahead
        self.away = False
        self.rows: list[Row] = []
        self.asked = asyncio.Event()

    async def call(self, path, message, answer, limit):
        try:
            if self.away:
                raise TrackerUnreachable("away")
            row = open_row(message, self.clock.now())
            if self.rows and row.sequence <= self.rows[-1].sequence:
                raise StaleRow("old")
            self.rows.append(row)
            return Announced(tracker=TRACKER, again_in=120, seen_from="192.0.2.7", time=self.clock.now() + self.ahead)
        finally:
            self.asked.set()

    async def wait(self):
        await self.asked.wait()
        self.asked.clear()


@pytest.fixture
def clock():
    return FakeClock()


def make_announcer(tmp_path, clock, trackers, host="0.0.0.0"):
    heard = []

    async def hear(caller, answer):
        heard.append(answer)

    row = OwnRow(KEY.peer_id, "otter", b"c" * 32, OFFER, (host, 7071))
    return Announcer(KEY, trackers, row, Sequence(tmp_path / "sequence", clock), clock, hear), heard


async def settled(announcer, trackers):
    """The row that the last tracker had when nothing more was to be told."""
    task = asyncio.create_task(announcer.run())
    for tracker in trackers:
        await tracker.wait()
    return task


async def test_it_announces_again_with_the_address_that_the_tracker_saw(tmp_path, clock):
    tracker = FakeTracker(clock)
    announcer, heard = make_announcer(tmp_path, clock, [tracker])
    task = await settled(announcer, [tracker])
    await tracker.wait()
    task.cancel()
    first, second = tracker.rows
    assert (first.addresses, second.addresses) == ([], ["192.0.2.7:7071"])
    assert (first.expires, second.expires) == (1_000_600, 1_000_240)
    assert {answer.tracker for answer in heard} == {TRACKER}


async def test_a_change_of_free_slots_is_told_at_once(tmp_path, clock):
    tracker = FakeTracker(clock)
    announcer, _ = make_announcer(tmp_path, clock, [tracker], host="192.0.2.1")
    task = await settled(announcer, [tracker])
    announcer.free_slots(1)
    await tracker.wait()
    task.cancel()
    assert [read_capability(row.capability).free for row in tracker.rows] == [2, 1]
    assert tracker.rows[0].sequence < tracker.rows[1].sequence


async def test_it_withdraws_everywhere(tmp_path, clock):
    trackers = [FakeTracker(clock), FakeTracker(clock)]
    announcer, _ = make_announcer(tmp_path, clock, trackers, host="192.0.2.1")
    task = await settled(announcer, trackers)
    task.cancel()
    trackers[1].away = True
    await announcer.withdraw()
    last = trackers[0].rows[-1]
    assert last.capability is None
    assert last.expires >= max(row.expires for row in trackers[0].rows[:-1])


async def test_a_tracker_that_is_away_is_told_of_once(tmp_path, clock):
    tracker = FakeTracker(clock)
    tracker.away = True
    announcer, heard = make_announcer(tmp_path, clock, [tracker], host="192.0.2.1")
    with capture_logs() as logs:
        for _ in range(3):
            await announcer._announce(0)
    assert [line["event"] for line in logs] == ["not announced"]
    assert heard == []


@pytest.mark.parametrize(("ahead", "words"), [(45.0, "45 s behind"), (-60.0, "60 s ahead of"), (20.0, "")])
async def test_a_wrong_clock_is_noticed(tmp_path, clock, ahead, words):
    tracker = FakeTracker(clock, ahead=ahead)
    announcer, _ = make_announcer(tmp_path, clock, [tracker], host="192.0.2.1")
    with capture_logs() as logs:
        await announcer._announce(0)
        await announcer._announce(0)
    told = [line["event"] for line in logs if line["event"].startswith("AX-411")]
    assert len(told) == bool(words)
    assert words in "".join(told)


def test_numbers_grow_over_restarts_and_when_the_clock_goes_back(tmp_path, clock):
    first = Sequence(tmp_path / "sequence", clock).next()
    assert first == 1_000_000_000
    clock.time -= 3600
    again = Sequence(tmp_path / "sequence", clock)
    assert [again.next(), again.next()] == [first + 1, first + 2]
    (tmp_path / "sequence").write_text("rubbish")
    assert Sequence(tmp_path / "sequence", clock).next() == 996_400_000


def test_a_full_disk_does_not_silence_a_peer(tmp_path, clock):
    sequence = Sequence(tmp_path / "no-such-folder" / "sequence", clock)
    assert [sequence.next(), sequence.next()] == [1_000_000_000, 1_000_000_001]
