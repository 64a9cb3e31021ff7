"""In which order a round is paid for, and that nothing of it needs anybody who watches."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from axonp2p.client.events.events import Event, PeerLost
from axonp2p.client.ledger.receipts import ReceiptBook
from axonp2p.client.run.settlement import JobSettlement
from axonp2p.client.storage.disk_work import DiskWork
from axonp2p.client.storage.job_journal import JobJournal
from axonp2p.client.storage.job_record import JobRecord
from axonp2p.kinds.train.events import RoundFinished
from axonp2p.kinds.train.kept.best_round import BestBy, EarlyStopping
from axonp2p.kinds.train.round_commits import RoundCommits
from axonp2p.kinds.train.settlement import RoundSettlement
from axonp2p.kinds.train.training_events import TrainingEvents
from axonp2p.ledger.receipt import Work
from axonp2p.training.coordinator.crew import RoundBegun, Sight
from axonp2p.training.plan import TrainPlan
from axonp2p.training.round_messages import MemberDropped, RoundAccepted, RoundBooked
from tests.fakes import AsLateAsMayBe, AtOnce, ManualClock, key_of
from tests.unit.client.storage.test_damaged_folder import write_job
from tests.unit.training.conversation import round_done

NAMES = ["heron", "otter"]
STATE = bytes(32)


class Crew:
    """Two leases: what is asked of them is written down."""

    def __init__(self, book: ReceiptBook, log: list[str]) -> None:
        self.book, self._log = book, log
        self.dismissed: list[int] = []
        self.wire_bytes = 0
        self.leases: dict[int, Any] = {
            rank: SimpleNamespace(rank=rank, name=name, row=SimpleNamespace(peer=key_of(name).peer_id))
            for rank, name in enumerate(NAMES)
        }

    @property
    def present(self) -> dict[int, str]:
        return {rank: name for rank, name in enumerate(NAMES) if rank not in self.dismissed}

    def dismiss(self, rank: int, reason: str) -> None:
        self.dismissed.append(rank)

    # --- as the office of receipts ---

    def write(self, works: Iterable[tuple[Any, Work]]) -> list[tuple[Any, bytes]]:
        given = list(works)
        self._log.append(f"numbered {[lease.rank for lease, _ in given]}")
        return [(lease, self.book.write(f"uuid-{lease.rank}", lease.row.peer, work, 1.0)) for lease, work in given]

    def ask(self, receipts: list[tuple[Any, bytes]]) -> None:
        self._log.append(f"asked {[lease.rank for lease, _ in receipts]}")


class World:
    """A settlement with real books on a real disk, and with or without a narrator."""

    def __init__(self, home: Path, disk: DiskWork, *, mute: bool) -> None:
        self.log: list[str] = []
        self.told: list[Event] = []
        folder, clock = write_job(home), ManualClock()
        write = folder.write

        def logged(record: JobRecord, *, lasting: bool = False) -> None:
            write(record, lasting=lasting)
            self.log.append(
                f"on the disk: round {record.round}, {sum(len(one.open) for one in record.receipts)} receipts"
            )

        folder.write = logged  # type: ignore[method-assign]
        record = folder.read()
        self.journal = JobJournal(folder, record, clock, self.told.append, disk)
        book = ReceiptBook(key_of("client"), record.id)
        self.crew = Crew(book, self.log)
        crew: Any = self.crew
        self.book = book
        plan = TrainPlan(record.id, "task.py", 2, record.rounds, 8, batch=8, seed=1, first_round=record.round)
        checked: Any = SimpleNamespace(to_be_paid=lambda reports, last: reports)
        books = RoundCommits(self.journal, folder.checkpoints(2))
        settled = JobSettlement(self.journal, crew, crew, SimpleNamespace())  # type: ignore[arg-type]
        self.settlement = RoundSettlement(books, settled, plan, clock, checked)
        stopping = EarlyStopping(BestBy.read("min loss"), 0, 1)
        told = TrainingEvents(self.journal, crew, self.settlement.pace, clock, stopping)
        self.training_events = None if mute else told

    def hear(self, *sights: Sight) -> None:
        for sight in sights:
            self.settlement.heard(sight)
            if self.training_events is not None:
                self.training_events.show(sight)

    def train(self, number: int) -> None:
        reports = {rank: round_done(number, 0, STATE) for rank in self.crew.present}
        self.hear(RoundBegun(number, 0), RoundAccepted(number, reports, STATE), RoundBooked(number, None))


def next_round(world: World) -> int:
    return world.journal.record.round


async def test_numbers_are_on_the_disk_before_anybody_is_asked_to_sign(tmp_path: Path) -> None:
    world = World(tmp_path, AtOnce(), mute=False)
    number = next_round(world)
    world.train(number)
    await asyncio.sleep(0)
    numbered = world.log.index("numbered [0, 1]")
    booked = world.log.index(f"on the disk: round {number + 1}, 2 receipts")
    assert numbered < booked < world.log.index("asked [0, 1]")
    finished = [event for event in world.told if isinstance(event, RoundFinished)]
    assert [event.round for event in finished] == [number]


async def test_while_the_disk_has_nothing_nobody_is_asked_and_nothing_is_told(tmp_path: Path) -> None:
    disk = AsLateAsMayBe()
    world = World(tmp_path, disk, mute=False)
    world.train(next_round(world))
    await asyncio.sleep(0)
    assert world.log == ["numbered [0, 1]"]
    assert world.told == []
    disk.finish()
    await asyncio.sleep(0)
    assert world.log[-1] == "asked [0, 1]"


@pytest.mark.parametrize("mute", [False, True])
async def test_a_job_of_which_nothing_is_told_ends_with_the_same_receipts_and_leases(
    tmp_path: Path, mute: bool
) -> None:
    world = World(tmp_path, AtOnce(), mute=mute)
    number = next_round(world)
    world.train(number)
    world.hear(MemberDropped(1, "it hung up"))
    world.train(number + 1)
    await asyncio.sleep(0)
    receipts = {(one.reservation, one.last, len(one.open)) for one in world.book.keep()}
    assert receipts == {("uuid-0", 2, 2), ("uuid-1", 1, 1)}
    assert world.crew.dismissed == [1]
    assert [line for line in world.log if line.startswith("asked")] == ["asked [0, 1]", "asked [0]"]
    assert (world.journal.record.round, world.journal.names_lost) == (number + 2, ["otter"])
    assert [event.peer for event in world.told if isinstance(event, PeerLost)] == ["otter"]
