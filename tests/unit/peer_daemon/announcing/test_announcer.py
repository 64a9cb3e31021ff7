from __future__ import annotations

import asyncio
import itertools
import os
import random

import pytest

from axonp2p.errors import Refused, StaleRow, TrackerUnreachable
from axonp2p.peers.capability import read_capability
from axonp2p.table.announce_datagrams import DATAGRAMS_PATH
from axonp2p.table.records import NUMBER_AHEAD_S, Announced, Row, open_row
from axonp2p.table.tracker_health import TrackerHealth
from peer_daemon.announcing.announce_rota import CHANGES_AT_ONCE, EVERY_S, Rota
from peer_daemon.announcing.announce_ways import AnnounceWays
from peer_daemon.announcing.announcer import Announcer, Hearers
from peer_daemon.announcing.own_row import OwnRow, lasting_row
from peer_daemon.announcing.row_sender import RowSender
from peer_daemon.announcing.row_writer import Numbers, RowWriter
from peer_daemon.lending.lending import Lending
from tests.fakes import ManualClock, key_of, make_offer

KEY = key_of("peer")
START = 1_000_000.0


class FakeTracker:
    """Keeps the rows that it is given, and says each one aloud."""

    def __init__(self, clock, number: int = 0, *, ahead: float = 0):
        self.address = f"https://192.0.2.{number}:7070"
        self.called = f"tracker {number}"
        self.tracker = key_of(self.called).peer_id
        self.clock = clock
        self.ahead = ahead
        self.away = False
        self.refuses = False
        self.again_in = 120.0
        self.ping_in: float | None = None
        self.sees = lambda: "192.0.2.77"
        self.reached: bool | None = True
        self.pings = 0
        self.rows: list[Row] = []
        self.asked = asyncio.Event()

    async def call(self, path, message, answer, limit):
        if path == DATAGRAMS_PATH:
            raise Refused("not there")
        try:
            if self.away:
                raise TrackerUnreachable("away")
            if self.refuses:
                raise Refused("not here")
            row = open_row(message, self.clock.now())
            if self.rows and row.sequence < self.rows[-1].sequence:
                raise StaleRow("old")
            self.rows.append(row)
            return Announced(
                tracker=self.tracker,
                again_in=self.again_in,
                seen_from=self.sees(),
                time=self.clock.now() + self.ahead,
                ping_in=self.ping_in,
                reached=self.reached,
            )
        finally:
            self.asked.set()

    async def round_trip(self):
        self.pings += 1
        if self.away:
            raise TrackerUnreachable("away")
        return 0.01

    async def wait(self):
        async with asyncio.timeout(10):
            await self.asked.wait()
        self.asked.clear()


class FakeLines:
    """Lines to those trackers, with their health."""

    def __init__(self, trackers, clock):
        self._trackers = trackers
        self._clock = clock
        self.health = TrackerHealth([tracker.address for tracker in trackers])

    def in_order(self):
        return self._trackers

    async def ask(self, line, ask):
        try:
            answer = await ask(line)
        except TrackerUnreachable:
            self.health.failed(line.address, self._clock.now(), 0.5)
            raise
        except Refused:
            self.health.answered(line.address, self._clock.now())
            raise
        self.health.answered(line.address, self._clock.now(), 0.01)
        return answer


@pytest.fixture
def clock():
    return ManualClock(START)


class Setting:
    """An announcer among these trackers, and what it told others."""

    def __init__(self, folder, clock, trackers, host="192.0.2.1"):
        self.heard = []
        self.written = []
        self.lost = []
        self.lines = FakeLines(trackers, clock)
        self.own = OwnRow(
            lasting_row(KEY.peer_id, "otter", b"c" * 32, issues_tokens=True), Lending(make_offer(slots=2, free=2)), host
        )
        self.own.port = 7071
        self.rows = RowWriter(KEY, self.own, Numbers(folder / "sequence", clock), clock, lambda: b"")
        rota = Rota(self.lines.health, random.Random(1))
        sender = RowSender(AnnounceWays(), lambda address: None, clock, os.urandom)
        hearers = Hearers(self._hear, self.written.append, self.lost.append)
        self.announcer = Announcer(self.lines, rota, self.rows, sender, clock, hearers)

    async def _hear(self, line, given):
        self.heard.append((line.called, given.answer.tracker))

    async def settled(self, *trackers):
        """The announcer's task, once each of these was announced to."""
        task = asyncio.create_task(self.announcer.run())
        for tracker in trackers:
            await tracker.wait()
        return task

    async def round(self, *, news=False):
        """One round by hand."""
        if news:
            self.announcer._rota.changed()
        await self.announcer._round(news)
        await self.announcer._look_whether_they_live()


@pytest.fixture
def make(tmp_path, clock):
    return lambda *trackers, **options: Setting(tmp_path, clock, list(trackers), **options)


async def test_it_announces_again_with_the_address_that_the_tracker_saw(make, clock):
    tracker = FakeTracker(clock)
    setting = make(tracker, host="0.0.0.0")
    task = await setting.settled(tracker)
    await tracker.wait()
    task.cancel()
    first, second = tracker.rows
    assert (first.addresses, second.addresses) == ([], ["192.0.2.77:7071"])
    assert (first.expires, second.expires) == (START + 600, START + 600)  # never before an older row
    assert {answered for _, answered in setting.heard} == {tracker.tracker}
    assert setting.lines.health.trusted(START) == {tracker.tracker}


class Woken(asyncio.Event):
    """Tells when somebody waits for it and it is not set: nothing is left to do."""

    def __init__(self):
        super().__init__()
        self.at_rest = asyncio.Event()

    async def wait(self):
        if not self.is_set():
            self.at_rest.set()
        return await super().wait()


async def test_a_tracker_that_says_another_address_each_time_makes_no_storm(make, clock):
    tracker, victims = FakeTracker(clock), itertools.count(1)
    tracker.sees = lambda: f"203.0.113.{min(next(victims), 4 * CHANGES_AT_ONCE)}"
    setting = make(tracker, host="0.0.0.0")
    woken = setting.announcer._woken = Woken()
    task = await setting.settled(tracker)
    await asyncio.wait_for(woken.at_rest.wait(), 10)
    assert len(tracker.rows) == 1 + CHANGES_AT_ONCE
    setting.announcer.changed()  # what it says of itself is told at once all the same
    tracker.asked.clear()
    await tracker.wait()
    task.cancel()


async def test_what_a_learnt_tracker_says_of_the_address_and_the_pace_counts_nothing(make, clock):
    tracker, stranger = FakeTracker(clock, 1), FakeTracker(clock, 9)
    stranger.sees = lambda: "203.0.113.9"
    stranger.ping_in, stranger.again_in = 4.0, 60.0
    setting = make(tracker, host="0.0.0.0")
    setting.lines.health.learn(stranger.address, START)
    setting.lines._trackers.append(stranger)
    await setting.round()
    await setting.round(news=True)
    assert len(stranger.rows) == 2
    assert stranger.rows[-1].addresses == ["192.0.2.77:7071"]
    turn = setting.announcer._rota._turns[stranger.address]
    assert (turn.again_in, turn.ping_in) == (EVERY_S, 0)


async def test_a_change_of_free_slots_is_told_at_once(make, clock):
    tracker = FakeTracker(clock)
    setting = make(tracker)
    task = await setting.settled(tracker)
    setting.own.free = 1
    async with asyncio.timeout(10):
        await setting.announcer.changed().wait()
    task.cancel()
    assert [read_capability(row.capability).free for row in tracker.rows] == [2, 1]
    assert tracker.rows[0].sequence < tracker.rows[1].sequence
    assert [one.row for one in setting.written] == tracker.rows


async def test_a_change_counts_as_told_also_where_no_tracker_answers(make, clock):
    tracker = FakeTracker(clock)
    setting = make(tracker)
    task = await setting.settled(tracker)
    tracker.away = True
    async with asyncio.timeout(10):
        await setting.announcer.changed().wait()
    task.cancel()
    assert setting.lost == [tracker.address]


async def test_two_trackers_get_the_very_same_row_which_names_both_the_next_time(make, clock):
    trackers = [FakeTracker(clock, number) for number in (1, 2)]
    setting = make(*trackers)
    await setting.round()
    clock.time += 120
    await setting.round()
    assert trackers[0].rows == trackers[1].rows
    first, second = trackers[0].rows
    assert first.trackers == []
    assert sorted(second.trackers) == [tracker.address for tracker in trackers]
    assert second.expires == START + 600  # the first one's end, though the tracker wants rows every two minutes


async def test_another_tracker_gets_the_row_at_once_when_one_dies_and_dead_ones_cost_no_new_rows(make, clock):
    trackers = [FakeTracker(clock, number) for number in (1, 2, 3)]
    setting = make(*trackers)
    await setting.round()
    dead, alive = (next(one for one in trackers if bool(one.rows) is had) for had in (True, False))
    dead.away = True
    setting.own.free = 1
    await setting.round(news=True)
    await setting.round()
    assert [row.sequence for row in alive.rows] == [setting.written[1].row.sequence]
    assert setting.lost == [dead.address]
    assert len(setting.written) == 2
    for tracker in trackers:
        tracker.away = True
    for _ in range(20):
        clock.time += 5
        await setting.round()
    assert len(setting.written) <= 4


async def test_a_tracker_that_dies_between_two_announces_is_noticed_where_it_allows_to_look(make, clock):
    trackers = [FakeTracker(clock, number) for number in (1, 2, 3)]
    for tracker in trackers:
        tracker.ping_in = 10.0
    setting = make(*trackers)
    await setting.round()
    dead, other = (next(one for one in trackers if bool(one.rows) is had) for had in (True, False))
    dead.away = True
    clock.time += 13
    await setting.round()
    assert (dead.pings, other.rows) == (1, [])
    await setting.round()
    assert len(other.rows) == 1
    assert setting.lost == [dead.address]
    assert len(setting.written) == 1


async def test_a_tracker_that_has_not_called_back_is_asked_soon_again_but_not_for_ever(make, clock):
    tracker = FakeTracker(clock)
    tracker.reached = None
    setting = make(tracker)
    waits = []
    for _ in range(6):
        await setting.round()
        waits.append(setting.announcer._rota.wait(clock.time))
        clock.time += waits[-1]
    assert [round(wait) <= limit for wait, limit in zip(waits, (1, 4, 10, 30, 120, 120), strict=True)] == [True] * 6
    assert waits[4] > 100


async def test_with_no_tracker_at_all_there_is_a_row_every_five_minutes(make, clock):
    setting = make()
    await setting.round()
    assert setting.written[0].row.expires == START + 2 * EVERY_S
    clock.time += EVERY_S
    await setting.round()
    assert len(setting.written) == 2


async def test_it_withdraws_everywhere(make, clock):
    trackers = [FakeTracker(clock, 1), FakeTracker(clock, 2)]
    setting = make(*trackers)
    task = await setting.settled(*trackers)
    task.cancel()
    trackers[1].away = True
    last = await setting.rows.withdrawal()
    await setting.announcer.withdraw(last)
    row = trackers[0].rows[-1]
    assert row.capability is None
    assert row.expires >= max(row.expires for row in trackers[0].rows[:-1])
    assert last.compact.withdrawn
    assert last.compact.sequence == row.sequence


def lines_of(caplog):
    return [record.msg["event"] for record in caplog.records if isinstance(record.msg, dict)]


async def test_a_tracker_that_is_away_is_told_of_once(make, clock, caplog):
    tracker = FakeTracker(clock)
    tracker.away = True
    setting = make(tracker)
    for _ in range(3):
        await setting.round()
        clock.time += 60
    assert lines_of(caplog) == ["not announced"]
    assert setting.heard == []


async def test_one_that_does_not_want_the_row_is_not_asked_all_the_time(make, clock):
    tracker = FakeTracker(clock)
    tracker.refuses = True
    setting = make(tracker)
    await setting.round()
    assert setting.announcer._rota.wait(clock.time) >= 60
    tracker.refuses = False
    clock.time += 61
    await setting.round()
    assert len(tracker.rows) == 1


@pytest.mark.parametrize(("ahead", "words"), [(45.0, "45 s behind"), (-60.0, "60 s ahead of"), (20.0, "")])
async def test_a_wrong_clock_is_noticed(make, clock, caplog, ahead, words):
    setting = make(FakeTracker(clock, ahead=ahead))
    await setting.round()
    await setting.round(news=True)
    told = [line for line in lines_of(caplog) if line.startswith("AX-411")]
    assert len(told) == bool(words)
    assert words in "".join(told)


def test_numbers_grow_over_restarts_and_when_the_clock_goes_back(tmp_path, clock):
    first = Numbers(tmp_path / "sequence", clock).next()
    assert first == 1_000_000_000
    clock.time -= NUMBER_AHEAD_S - 1
    again = Numbers(tmp_path / "sequence", clock)
    assert [again.next(), again.next()] == [first + 1, first + 2]
    (tmp_path / "sequence").write_text("rubbish")
    assert Numbers(tmp_path / "sequence", clock).next() == 1000 * int(1_000_000 - NUMBER_AHEAD_S + 1)


@pytest.mark.parametrize("ahead", [NUMBER_AHEAD_S + 1, 300, 5400, 86400])
def test_numbers_of_a_clock_that_was_ahead_are_given_up(tmp_path, clock, ahead):
    """Trackers took none of them, so none of theirs stands in the way; waiting would lock this peer out."""
    clock.time += ahead
    numbers = Numbers(tmp_path / "sequence", clock)
    numbers.next()
    clock.time = 1_000_000
    assert [numbers.next(), numbers.next()] == [1_000_000_000, 1_000_000_001]


def test_a_full_disk_does_not_silence_a_peer(tmp_path, clock):
    sequence = Numbers(tmp_path / "no-such-folder" / "sequence", clock)
    assert [sequence.next(), sequence.next()] == [1_000_000_000, 1_000_000_001]


@pytest.mark.parametrize(
    "error", [ValueError("no such time"), UnicodeError("label empty"), KeyError(0), RecursionError()]
)
async def test_what_nobody_thought_of_in_one_trackers_answer_costs_that_tracker_alone(make, clock, error):
    bad, good = FakeTracker(clock, 1), FakeTracker(clock, 2)
    setting = make(bad, good)
    hear = setting._hear

    async def stumble(line, given):
        if line is bad:
            raise error
        await hear(line, given)

    setting.announcer._hearers = Hearers(stumble, setting.written.append, setting.lost.append)
    await setting.round()
    await setting.round(news=True)
    assert (good.called, good.tracker) in setting.heard
    assert all(called != bad.called for called, _ in setting.heard)
