"""The books after a crash at any moment: no round in them is trained again, none that is not was told as done."""

from __future__ import annotations

import contextlib
import random
from pathlib import Path
from typing import Any

import msgspec
import pytest

from axonp2p.blobs.pieces import book_of
from axonp2p.client.events.events import Event
from axonp2p.client.storage.checkpoints import Checkpoint
from axonp2p.client.storage.disk_work import DiskWork
from axonp2p.client.storage.job_journal import JobJournal
from axonp2p.client.storage.job_record import JobRecord, NumberedReceipts
from axonp2p.client.storage.job_store import JobFolder, JobStore
from axonp2p.jobs.lifecycle import JobState
from axonp2p.kinds.train.events import RoundFinished, RoundsLost, StateDamaged, StateFound
from axonp2p.kinds.train.metrics_file import MetricsFile
from axonp2p.kinds.train.record import AheadRound, TrainRecord
from axonp2p.kinds.train.round_commits import RoundCommits
from axonp2p.tensors.checkpoint_file import Model
from tests.fakes import AsLateAsMayBe, AtOnce, ManualClock
from tests.unit.training.conversation import round_done

MODEL = Model(10, 10)


class Crash(BaseException):
    """The program dies here."""


def bytes_after(rounds: int) -> bytes:
    return random.Random(rounds).randbytes(MODEL.state_bytes)


def state_after(rounds: int) -> bytes:
    return book_of(bytes_after(rounds)).name


class Life:
    """One life of a program at a job; what is on the disk outlives it."""

    def __init__(self, home: Path, disk: DiskWork | None = None) -> None:
        store = JobStore(home)
        if not store.has("line-1"):
            new = TrainRecord(
                id="line-1", name="line", folder="/", spec={}, state=JobState.RUNNING, created=0.0, updated=0.0,
                peers_wanted=2, rounds=40,
            )  # fmt: skip
            store.create(new)
        self.folder: JobFolder = store.find("line-1")
        self.told: list[Event] = []
        journal = JobJournal(self.folder, self.folder.read(), ManualClock(), self._hear, disk or AtOnce())
        self.books = RoundCommits(journal, self.folder.checkpoints(2))
        self.paid: list[int] = []
        """Rounds whose receipts were written when the books were opened."""

    def _hear(self, event: Event) -> None:
        """What happened, whenever it did."""
        self.told.append(msgspec.structs.replace(event, at=0.0))

    def open(self) -> Checkpoint | None:
        return self.books.open(self._pay)

    def _pay(self, ahead: AheadRound) -> list[NumberedReceipts]:
        self.paid.append(ahead.finished.round)
        return [NumberedReceipts(reservation="uuid", peer="otter", last=ahead.finished.round + 1, open=[b"receipt"])]

    @property
    def record(self) -> JobRecord:
        return self.folder.read()

    def put(self, rounds: int) -> None:
        """The state after so many rounds comes to the disk."""
        room = self.books.checkpoints.room(rounds, state_after(rounds), MODEL)
        room.data[:] = bytes_after(rounds)
        room.put()

    def accept(self, number: int) -> None:
        finished = RoundFinished(
            round=number, rounds=40, loss=1.0 / (number + 1), metrics={}, samples=80, samples_per_second={},
            seconds=1.0, wire_bytes=100 * number, credits=0.5, eta_s=1.0,
        )  # fmt: skip
        reports = {0: round_done(number, 0, state_after(number + 1))}
        ahead = AheadRound(finished=finished, state=state_after(number + 1).hex(), round_bytes=100, reports=reports)
        self.books.accepted(ahead)

    def train(self, number: int) -> None:
        self.accept(number)
        self.put(number + 1)
        self.books.book(number, state_after(number + 1), {"otter": 0.5})

    def in_the_books(self) -> list[int]:
        """Rounds, as metrics.csv and as events.jsonl have them, which are the same."""
        lines = [int(row["round"]) - 1 for row in MetricsFile(self.folder.metrics).rows()]
        told = [event.round for event in self.folder.read_events() if isinstance(event, RoundFinished)]
        assert lines == told == list(range(self.record.round))
        return lines


def next_life(home: Path, disk: DiskWork | None = None) -> tuple[Life, Checkpoint]:
    """The books opened again, and the state that the job goes on from."""
    life = Life(home, disk)
    good = life.open()
    assert good
    return life, good


def test_a_round_is_told_once_its_state_is_there(tmp_path: Path) -> None:
    life = Life(tmp_path)
    life.accept(0)
    assert life.record.round == 0
    assert life.told == []
    life.put(1)
    life.books.book(0, state_after(1), {"otter": 0.5})
    assert (life.record.round, life.record.kept_round, life.record.kept_state) == (1, 1, state_after(1).hex())
    assert life.record.ahead is None
    assert life.in_the_books() == [0]


MOMENTS = ["accepted", "state", "metrics", "record", "event"]


@pytest.mark.parametrize("disk", [AtOnce, AsLateAsMayBe])
@pytest.mark.parametrize("moment", MOMENTS)
def test_after_a_crash_at_any_moment_the_books_are_whole(
    tmp_path: Path, moment: str, disk: type[DiskWork], monkeypatch: pytest.MonkeyPatch
) -> None:
    life = Life(tmp_path)
    for number in range(3):
        life.train(number)

    def crash(*_: Any, **__: Any) -> None:
        raise Crash

    life.accept(3)
    if moment != "accepted":
        life.put(4)
    if moment not in ("accepted", "state"):
        if moment == "metrics":
            monkeypatch.setattr(life.folder, "write", crash)
        else:
            monkeypatch.setattr(life.folder, "add_event" if moment == "record" else "read_events", crash)
        life.books.journal.folder = life.folder
        with contextlib.suppress(Crash):
            life.books.book(3, state_after(4), {})
    after, good = next_life(tmp_path, disk())
    # Whatever was in the books still is; a round whose state is here enters them now, if it was accepted.
    expected = 3 if moment == "accepted" else 4
    assert (good.rounds, after.record.kept_round, after.record.round) == (expected, expected, expected)
    after.books.go_on(good.rounds, [])
    after.books.journal.disk.finish()
    assert after.in_the_books() == list(range(expected))
    assert StateFound(round=expected, rounds=40) in after.told
    after.train(expected)
    after.books.journal.disk.finish()
    assert after.in_the_books() == list(range(expected + 1))


def test_a_round_that_enters_the_books_after_a_crash_is_paid_in_the_same_moment(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    life = Life(tmp_path)
    life.train(0)
    life.accept(1)
    life.put(2)
    written: list[JobRecord] = []
    crashed = Life(tmp_path)
    monkeypatch.setattr(crashed.folder, "write", lambda record, **_: written.append(record))
    crashed.open()
    assert crashed.paid == [1]
    # Nobody ever sees it booked and unpaid, nor paid and not booked: it would be paid twice, or never.
    assert {(record.round, len(record.receipts)) for record in written} == {(2, 1)}
    after, _ = next_life(tmp_path)  # nothing of that had come to the disk
    assert after.paid == [1]
    assert after.record.receipts[0].last == 2
    again, _ = next_life(tmp_path)
    assert again.paid == []
    assert again.record.receipts == after.record.receipts


def test_a_damaged_state_is_found_told_and_the_one_before_is_used(tmp_path: Path) -> None:
    life = Life(tmp_path)
    for number in range(3):
        life.train(number)
    (newest, before) = life.books.checkpoints.all()
    data = bytearray(newest.path.read_bytes())
    data[-1] ^= 1
    newest.path.write_bytes(data)
    after, good = next_life(tmp_path)
    assert good == before
    after.books.go_on(good.rounds, [])
    (damaged, lost, found) = after.told
    assert isinstance(damaged, StateDamaged)
    assert damaged.round == 3
    assert Path(damaged.file).exists()
    assert lost == RoundsLost(first=2, last=2)
    assert found == StateFound(round=2, rounds=40)
    assert [int(row["round"]) for row in MetricsFile(after.folder.metrics).rows()] == [1, 2]
    assert (after.record.round, after.record.kept_round) == (2, 2)


def test_a_state_of_a_round_that_was_never_accepted_is_not_kept(tmp_path: Path) -> None:
    life = Life(tmp_path)
    life.train(0)
    life.put(3)
    after, good = next_life(tmp_path)
    assert [one.rounds for one in after.books.checkpoints.all()] == [good.rounds] == [1]


def test_with_no_good_state_a_job_begins_anew_and_says_so(tmp_path: Path) -> None:
    life = Life(tmp_path)
    life.train(0)
    for one in life.books.checkpoints.all():
        one.path.write_bytes(b"")
    after = Life(tmp_path)
    assert after.open() is None
    after.books.go_on(0, [])
    assert RoundsLost(first=0, last=0) in after.told
    assert after.record.kept_state == ""


def test_rounds_between_checkpoints_are_at_risk(tmp_path: Path) -> None:
    life = Life(tmp_path)
    life.train(0)
    for number in (1, 2):
        life.accept(number)
        life.books.book(number, None, {})
    assert (life.record.round, life.record.kept_round) == (3, 1)
    after, good = next_life(tmp_path)
    after.books.go_on(good.rounds, [])
    assert RoundsLost(first=1, last=2) in after.told
    assert after.record.round == 1


def test_an_accepted_round_whose_state_never_came_is_forgotten_with_it(tmp_path: Path) -> None:
    life = Life(tmp_path)
    life.train(0)
    life.accept(1)
    after, good = next_life(tmp_path)
    after.books.go_on(good.rounds, [])
    assert after.record.ahead is None
    assert not any(isinstance(event, RoundsLost) for event in after.told)


def test_an_accepted_round_that_peers_still_hold_stays_ahead(tmp_path: Path) -> None:
    life = Life(tmp_path)
    life.train(0)
    life.accept(1)
    after = Life(tmp_path)
    after.open()
    after.books.go_on(2, ["otter", "lynx"])
    assert after.record.ahead
    assert StateFound(round=2, rounds=40, waiting=["otter", "lynx"]) in after.told
    after.put(2)
    after.books.book(1, state_after(2), {})
    assert after.in_the_books() == [0, 1]


def test_a_record_with_a_round_ahead_comes_back_as_it_was_written(tmp_path: Path) -> None:
    life = Life(tmp_path)
    life.accept(0)
    record = life.record
    assert msgspec.json.decode(msgspec.json.encode(record), type=TrainRecord) == record
    assert record.ahead
    assert record.ahead.reports[0].state == state_after(1)
