"""The coordinator between the round machine and a crew that the test plays."""

from __future__ import annotations

import asyncio
import hashlib
import struct
import threading
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path
from typing import Any

import msgspec
import pytest

from axonp2p.blobs.pieces import book_of
from axonp2p.errors import JobFailed, PeerMisbehaved, SettingsError, TaskMistake
from axonp2p.jobs.messages import HandBack, WorkerPaused, WorkerResumed
from axonp2p.jobs.output_messages import OutputMessage, OutputPart
from axonp2p.tensors.checkpoint_file import Model
from axonp2p.training.coordinator.coordinator import Coordinator
from axonp2p.training.coordinator.crew import RoundBegun, TrainingResult
from axonp2p.training.coordinator.inbox import MOST_WAITING
from axonp2p.training.coordinator.state_keeper import Arriving, Shelf
from axonp2p.training.messages import (
    AdoptState,
    AskPieces,
    FileLayout,
    FilePart,
    Prepare,
    Prepared,
    Progress,
    RedoSegment,
    StartRound,
    StateAdopted,
    TaskFailed,
    TensorInfo,
    ToWorkerTraining,
)
from axonp2p.training.options import ExchangeOptions
from axonp2p.training.plan import TrainPlan
from axonp2p.training.round_messages import (
    AwaitingChecks,
    ChecksCutShort,
    Chosen,
    EnoughAwake,
    JobWaits,
    MemberDropped,
    MemberJoined,
    MemberPaused,
    MemberReady,
    MemberResumed,
    OwnersWord,
    ProgressHeard,
    RoundAccepted,
    RoundBooked,
)
from axonp2p.training.rounds.machine import Rounds
from axonp2p.training.spot_checks.scheduler import CheckSettings
from axonp2p.training.state_transfer.model_layout import read_layout
from axonp2p.training.state_transfer.pieces import serve_pieces
from axonp2p.verification.claims import Mark
from axonp2p.verification.rates import Trust
from axonp2p.wire.codec import Message, decode, encode
from axonp2p.wire.frame import HEADER_LIMIT, pack_frame, split_frame
from tests.fakes import SIGNED, ManualClock
from tests.unit.training.conversation import round_done
from tests.unit.training.written_model import plain_layout

FIRST = b"f" * 32
BUILT = Prepared(state=FIRST, parameters=3, values=3)


def after(state: bytes) -> bytes:
    """Where a round leads to from `state`."""
    return hashlib.sha256(state).digest()


class Crew:
    """Members that do what they are told; a test may change what one of them answers."""

    def __init__(
        self,
        members: int = 2,
        *,
        rounds: int = 3,
        start: Path | None = None,
        shelf: Shelf | None = None,
        checks: CheckSettings | None = None,
        written: Callable[[], Awaitable[None]] | None = None,
        **plan: Any,
    ) -> None:
        self.told: list[tuple[int, Any]] = []
        self.members: list[list[int]] = []
        self.seen: list[Any] = []
        self.fed: dict[int, bytes] = {}
        self.instead: Callable[[int, Any], Message | None] | None = None
        self.layouts: dict[int, bytes] = {}
        names = {rank: f"peer-{rank}" for rank in range(members)}
        job = TrainPlan("line-1", "task.py", plan.pop("shards", members), rounds, 5, batch=8, seed=1, **plan)
        read = start.read_bytes if start else None
        rounds = Rounds(job, names, checks=checks)
        self.clock = ManualClock()
        self.coordinator = Coordinator(
            rounds, self, self.clock, self.seen.append, shelf=shelf, start_state=read, written=written
        )
        self._tasks: list[asyncio.Task[None]] = []

    def limit_of(self, rank: int) -> str:
        return ""

    async def set_members(self, ranks: Sequence[int]) -> None:
        self.members.append(list(ranks))

    def tell(self, rank: int, frame: bytes) -> None:
        message = decode(split_frame(frame).header, ToWorkerTraining, HEADER_LIMIT)
        self.told.append((rank, message))
        self._tasks.append(asyncio.create_task(self._answer(rank, message)))

    async def send(self, rank: int, frame: bytes) -> None:
        parts = split_frame(frame)
        part = decode(parts.header, FilePart, HEADER_LIMIT)
        self.fed[rank] = self.fed.get(rank, b"") + bytes(parts.payload)
        if len(self.fed[rank]) == part.total:
            await self.say(rank, StateAdopted(state=part.sha256))

    async def say(self, rank: int, message: Message, payload: bytes | memoryview = b"") -> None:
        await self.coordinator.heard(rank, memoryview(pack_frame(message, payload)), signed=SIGNED)

    async def _answer(self, rank: int, told: Any) -> None:
        if self.instead and (answer := self.instead(rank, told)):
            await self.say(rank, answer)
            return
        match told:
            case Prepare():
                await self.say(rank, BUILT, self.layouts.get(rank, plain_layout(3)))
            case AdoptState(state=state, senders=[_, *_]):
                await self.say(rank, StateAdopted(state=state))
            case StartRound(listeners=listeners, state=state) if rank in listeners:
                await self.say(rank, StateAdopted(state=after(state)))
            case StartRound(round=number, attempt=attempt, state=state, members=members):
                await self.say(rank, Progress(round=number, attempt=attempt, step=5, loss=1.0, samples=40))
                await self.say(rank, round_done(number, attempt, after(state), members=len(members)))

    async def train(self) -> TrainingResult:
        async with asyncio.timeout(10):
            return await self.coordinator.train()


async def test_training_goes_from_prepare_to_the_last_round() -> None:
    crew = Crew(rounds=3)
    result = await crew.train()
    assert result == TrainingResult(3, after(after(after(FIRST))), [0, 1], trained=True)
    assert crew.members == [[0, 1]]
    kinds = [type(sight) for sight in crew.seen]
    assert kinds.count(MemberReady) == 2
    assert kinds.count(ProgressHeard) == 6
    assert [sight.round for sight in crew.seen if isinstance(sight, RoundBegun)] == [0, 1, 2]
    assert [sight.round for sight in crew.seen if isinstance(sight, RoundAccepted)] == [0, 1, 2]
    assert crew.coordinator.result == result


async def test_a_lost_member_is_dropped_and_the_others_go_on() -> None:
    crew = Crew(members=3, rounds=2)

    def instead(rank: int, told: Any) -> Message | None:
        if rank == 2 and isinstance(told, StartRound):
            crew._tasks.append(asyncio.create_task(crew.coordinator.lost(2, "it was killed")))
            return Progress(round=0, attempt=0, step=1, loss=1.0, samples=8)
        return None

    crew.instead = instead
    result = await crew.train()
    assert result.members == [0, 1]
    assert crew.members == [[0, 1, 2], [0, 1]]
    assert [(sight.rank, sight.reason) for sight in crew.seen if isinstance(sight, MemberDropped)] == [
        (2, "it was killed")
    ]


async def test_rubbish_costs_a_member_its_place() -> None:
    crew = Crew(members=2, rounds=1)

    def instead(rank: int, told: Any) -> Message | None:
        if rank == 1 and isinstance(told, Prepare):
            crew._tasks.append(asyncio.create_task(crew.coordinator.heard(1, memoryview(b"\0\0\0\1\xc1"), signed=None)))
            return Progress(round=0, attempt=0, step=1, loss=1.0, samples=8)
        return None

    crew.instead = instead
    assert (await crew.train()).members == [0]
    (dropped,) = (sight for sight in crew.seen if isinstance(sight, MemberDropped))
    assert "broke the protocol" in dropped.reason


async def test_files_go_to_who_keeps_them_and_one_that_does_not_fit_costs_a_member_its_place() -> None:
    crew = Crew(members=2, rounds=1)
    kept: list[tuple[int, OutputMessage, bytes]] = []

    class Keeper:
        async def heard(self, rank: int, message: OutputMessage, payload: memoryview) -> None:
            if rank == 1:
                raise PeerMisbehaved("the peer sent a part of a file that does not fit")
            kept.append((rank, message, bytes(payload)))

    part = OutputPart(request=1, number=0, offset=0)

    def instead(rank: int, told: Any) -> Message | None:
        if isinstance(told, Prepare):
            crew._tasks.append(asyncio.create_task(crew.say(rank, part, b"bytes")))
        return None

    crew.instead = instead
    crew.coordinator.files = Keeper()
    assert (await crew.train()).members == [0]
    assert kept == [(0, part, b"bytes")]
    (dropped,) = (sight for sight in crew.seen if isinstance(sight, MemberDropped))
    assert "does not fit" in dropped.reason


async def test_a_flood_of_words_costs_a_member_its_place_and_progress_is_only_dropped() -> None:
    crew = Crew()
    for _ in range(10 * MOST_WAITING):
        await crew.say(0, Progress(round=0, attempt=0, step=1, loss=1.0, samples=8))
    assert 0 not in crew.coordinator._gone
    for _ in range(MOST_WAITING + 1):
        await crew.say(1, StateAdopted(state=FIRST))
    assert crew.coordinator._gone == {1}
    assert len(crew.coordinator._inbox) < 2 * MOST_WAITING


async def test_what_the_machine_gives_up_with_is_raised() -> None:
    crew = Crew(members=1)
    crew.instead = lambda rank, told: TaskFailed(doing="model()", traceback="Traceback: boom")
    with pytest.raises(TaskMistake) as caught:
        await crew.train()
    assert "peer-0" in caught.value.message
    assert "boom" in caught.value.cause

    crew = Crew(members=1)
    crew.instead = lambda rank, told: Progress(round=0, attempt=0, step=1, loss=1.0, samples=8)
    training = asyncio.create_task(crew.train())
    await asyncio.sleep(0)
    await crew.coordinator.lost(0, "it was killed")
    with pytest.raises(JobFailed):
        await training


async def test_leaving_ends_with_what_is_accepted(tmp_path: Path) -> None:
    crew = Crew(rounds=1000)

    def instead(rank: int, told: Any) -> Message | None:
        if isinstance(told, StartRound) and told.round == 2:
            crew.coordinator.leave()
        return None

    crew.instead = instead
    result = await crew.train()
    assert not result.trained
    assert 2 <= result.round < 1000
    assert result.state is not None


def marked(rank: int, told: Any) -> Message | None:
    """What one says whose last round is to be checked; it does no steps of others."""
    if not isinstance(told, StartRound):
        return None
    sketch = struct.pack("<32d", *range(32))
    marks = [Mark(leg=0, step=step, name=bytes(32), size=1, sketch=sketch, memory=[]) for step in (0, 5)]
    done = round_done(told.round, told.attempt, after(told.state), members=len(told.members))
    return msgspec.structs.replace(done, samples=40, marks=marks)


@pytest.mark.parametrize("leave", [Coordinator.leave, Coordinator.pause])
async def test_who_leaves_while_the_last_round_is_checked_has_a_job_that_is_trained(
    leave: Callable[[Coordinator], None],
) -> None:
    checks = CheckSettings(1.0, 2**30, lambda _: Trust(), lambda: 0.0)
    crew = Crew(rounds=1, checks=checks, options=ExchangeOptions(exchange_every=5, overlap=False))

    def instead(rank: int, told: Any) -> Message | None:
        crew.clock.time += 1.0  # rounds that take no time leave none to a member's line for checks
        if isinstance(told, RedoSegment) or leave is Coordinator.pause:
            leave(crew.coordinator)
        return marked(rank, told)

    crew.instead = instead
    result = await crew.train()
    assert result == TrainingResult(1, after(FIRST), [0, 1], trained=True)
    told = [sight for sight in crew.seen if isinstance(sight, AwaitingChecks | ChecksCutShort)]
    assert told == [AwaitingChecks(2), ChecksCutShort(2, "the client went")]


async def test_leaving_before_the_first_round_keeps_nothing() -> None:
    crew = Crew()
    crew.coordinator.leave()
    assert await crew.train() == TrainingResult(0, None, [0, 1])


async def test_a_resumed_job_feeds_its_state_to_one_member(tmp_path: Path) -> None:
    state = b"momentum" * 100_000
    name = hashlib.sha256(state).digest()
    path = tmp_path / "state.bin"
    path.write_bytes(state)
    crew = Crew(rounds=5, start=path, first_round=3, start_state=name)
    result = await crew.train()
    assert result == TrainingResult(5, after(after(name)), [0, 1], trained=True)
    assert crew.fed == {0: state}
    assert [message.senders for _, message in crew.told if isinstance(message, AdoptState)] == [[], [0]]


async def test_one_more_member_comes_and_takes_part() -> None:
    crew = Crew(members=2, rounds=6, shards=4)
    joined = False

    def instead(rank: int, told: Any) -> Message | None:
        nonlocal joined
        if isinstance(told, StartRound) and told.round == 1 and not joined:
            joined = True
            crew._tasks.append(asyncio.create_task(crew.coordinator.joined(5, "wren")))
        return None

    crew.instead = instead
    result = await crew.train()
    assert (result.round, result.members) == (6, [0, 1, 5])
    assert crew.members == [[0, 1], [0, 1, 5], [0, 1, 5]]
    assert [sight.rank for sight in crew.seen if isinstance(sight, MemberJoined)] == [5]
    await crew.coordinator.joined(6, "late")


async def test_how_the_members_exchange_is_shown_when_it_changes() -> None:
    crew = Crew(rounds=3)
    crew.coordinator.line_measured(0, 1e9, 1e9)
    crew.coordinator.line_measured(1, 1e9, 1e9)
    await crew.train()
    first, *_ = told = [sight for sight in crew.seen if isinstance(sight, Chosen)]
    assert first.round == 0
    assert [sight.round for sight in told] == sorted({sight.round for sight in told})


async def test_an_owner_who_comes_back_is_shown_and_waited_for() -> None:
    crew = Crew(members=1, rounds=1)

    def instead(rank: int, told: Any) -> Message | None:
        if isinstance(told, StartRound):
            crew.coordinator.owner_says(0, WorkerPaused(reason="a game"))
            crew.coordinator.owner_says(0, WorkerResumed())
            crew.coordinator.owner_says(1, WorkerPaused(reason="who is that?"))
        return None

    crew.instead = instead
    assert (await crew.train()).trained
    about = [sight for sight in crew.seen if isinstance(sight, OwnersWord | JobWaits | EnoughAwake)]
    assert about == [MemberPaused(0, "a game"), JobWaits([0]), MemberResumed(0), EnoughAwake()]


async def test_when_the_last_machine_is_wanted_back_the_job_is_left() -> None:
    crew = Crew(members=1, rounds=1000)

    def instead(rank: int, told: Any) -> Message | None:
        if isinstance(told, StartRound) and told.round == 2:
            crew.coordinator.owner_says(0, HandBack(reason="a game", seconds=600))
        return None

    crew.instead = instead
    result = await crew.train()
    assert (result.round, result.members, result.trained) == (3, [0], False)
    assert result.left_because == "peer-0: handed back: a game"


async def test_the_layout_of_the_model_s_file_is_what_most_members_say() -> None:
    crew = Crew(members=4, rounds=1)
    odd = FileLayout(tensors=[TensorInfo(name="w", dtype="F32", shape=[3], coding="values", begin=0)])

    crew.layouts = {0: encode(odd), 2: b"junk"}
    assert (await crew.train()).members == [1, 3]
    assert crew.coordinator.file_layout == read_layout(plain_layout(3), Model(3, 3))
    dropped = {sight.rank: sight.reason for sight in crew.seen if isinstance(sight, MemberDropped)}
    assert dropped[0] == "its model's tensors have other names, shapes or types than the others'"
    assert "its worker broke the protocol: not a FileLayout" in dropped[2]


async def test_of_each_member_one_layout_is_kept() -> None:
    crew = Crew(members=2)
    await crew.say(0, BUILT, plain_layout(3))
    for name in "xyz":
        other = FileLayout(tensors=[TensorInfo(name=name, dtype="F32", shape=[3], coding="values", begin=0)])
        await crew.say(0, BUILT, encode(other))
    assert list(crew.coordinator._layouts.values()) == [read_layout(plain_layout(3), Model(3, 3))]


# --- what is put on the disk ---


class Disk:
    """A shelf in memory; `slow` states are put there only when the test lets them."""

    def __init__(self) -> None:
        self.kept: dict[int, bytes] = {}
        self.free = threading.Event()
        self.free.set()

    def room(self, rounds: int, state: bytes, model: Model) -> Arriving:
        return Space(self, rounds, bytearray(model.state_bytes))

    def frozen(self, name: bytes) -> None:
        raise AssertionError("the model has none")

    def frozen_room(self, name: bytes, size: int) -> None:
        raise AssertionError("the model has none")


class Space:
    def __init__(self, disk: Disk, rounds: int, room: bytearray) -> None:
        self.data = memoryview(room)
        self._disk, self._rounds = disk, rounds

    def put(self) -> None:
        assert self._disk.free.wait(10)
        self._disk.kept[self._rounds] = bytes(self.data)

    def drop(self) -> None:
        return


class Held:
    """The state that a round of these tests leads to, as its bytes."""

    def __init__(self, number: int) -> None:
        self.file = memoryview(bytes([number]) * 24)
        self.pieces = book_of(self.file)


def keeping_crew(disk: Disk, *, rounds: int, every: int = 1) -> Crew:
    """Members whose states have bytes."""
    crew = Crew(rounds=rounds, shelf=disk, keep_every=every)
    held = [Held(number) for number in range(rounds + 1)]

    def instead(rank: int, told: Any) -> Message | None:
        if isinstance(told, StartRound):
            return round_done(told.round, told.attempt, held[told.round + 1].pieces.name, members=len(told.members))
        if isinstance(told, AskPieces):
            for message, payload in serve_pieces(held, told):
                crew._tasks.append(asyncio.create_task(crew.say(rank, message, payload)))
        return None

    crew.instead = instead
    return crew


async def test_every_round_is_on_the_disk_before_it_is_booked() -> None:
    disk = Disk()
    crew = keeping_crew(disk, rounds=3)
    assert (await crew.train()).trained
    assert await crew.coordinator.keep_last()
    booked = [sight for sight in crew.seen if isinstance(sight, RoundBooked)]
    assert [(sight.round, sight.state) for sight in booked] == [(n, Held(n + 1).pieces.name) for n in range(3)]
    assert disk.kept == {n: bytes(Held(n).file) for n in (1, 2, 3)}


async def test_who_leaves_between_checkpoints_keeps_the_last_round_all_the_same() -> None:
    disk = Disk()
    crew = keeping_crew(disk, rounds=100, every=10)
    seen = crew.seen.append

    def leaving(sight: Any) -> None:
        seen(sight)
        if isinstance(sight, RoundAccepted) and sight.round == 3:
            crew.coordinator.leave()

    crew.coordinator._show = leaving
    result = await crew.train()
    assert await crew.coordinator.keep_last()
    assert result.round in disk.kept
    assert crew.seen[-1] == RoundBooked(result.round - 1, result.state)


async def test_the_last_state_is_waited_for_while_owners_need_the_machines() -> None:
    disk = Disk()
    crew = keeping_crew(disk, rounds=1, every=0)
    await crew.train()
    asked = asyncio.Event()

    def asleep(rank: int, told: Any) -> Message | None:
        if isinstance(told, AskPieces):
            asked.set()
        return None

    answers, crew.instead = crew.instead, asleep
    crew.coordinator.owner_says(0, WorkerPaused(reason="a game"))
    keeping = asyncio.create_task(crew.coordinator.keep_last())
    async with asyncio.timeout(10):
        await asked.wait()
    crew.coordinator.owner_says(0, WorkerResumed())
    crew.instead = answers
    assert answers
    for rank, told in list(crew.told):
        if isinstance(told, AskPieces):
            answers(rank, told)
    assert await keeping
    assert disk.kept == {1: bytes(Held(1).file)}
    assert [sight for sight in crew.seen if isinstance(sight, OwnersWord)] == [
        MemberPaused(0, "a game"),
        MemberResumed(0),
    ]


async def test_training_is_one_round_ahead_of_a_slow_disk_and_no_more() -> None:
    disk = Disk()
    disk.free.clear()
    crew = keeping_crew(disk, rounds=5)
    training = asyncio.create_task(crew.train())
    for _ in range(1000):
        await asyncio.sleep(0)
    assert max(told.round for _, told in crew.told if isinstance(told, StartRound)) == 1
    assert not any(isinstance(sight, RoundBooked) for sight in crew.seen)
    disk.free.set()
    assert (await training).trained


async def test_no_member_goes_on_from_a_state_that_the_books_do_not_know_yet() -> None:
    """A client that dies then would come back for a state that nobody has, and lose what optimisers remember."""
    asked, written = asyncio.Event(), asyncio.Event()

    async def until_written() -> None:
        asked.set()
        await written.wait()

    crew = Crew(rounds=3, written=until_written)
    training = asyncio.create_task(crew.train())
    async with asyncio.timeout(10):
        await asked.wait()
    for _ in range(1000):
        await asyncio.sleep(0)
    assert isinstance(crew.seen[-1], RoundAccepted)
    assert max(told.round for _, told in crew.told if isinstance(told, StartRound)) == 0
    written.set()
    assert (await training).trained


async def test_a_pause_ends_the_round_that_runs_and_keeps_it() -> None:
    disk = Disk()
    crew = keeping_crew(disk, rounds=100)
    instead = crew.instead
    assert instead

    def pausing(rank: int, told: Any) -> Message | None:
        if isinstance(told, StartRound) and told.round == 2:
            crew.coordinator.pause()
        return instead(rank, told)

    crew.instead = pausing
    result = await crew.train()
    assert (result.round, result.trained) == (3, False)
    assert await crew.coordinator.keep_last()
    assert 3 in disk.kept
    assert crew.seen[-1] == RoundBooked(2, result.state)


async def test_a_disk_that_takes_no_more_ends_training_and_books_nothing() -> None:
    class Full(Disk):
        def room(self, rounds: int, state: bytes, model: Model) -> Arriving:
            raise SettingsError("no space left")

    crew = keeping_crew(Full(), rounds=3)
    with pytest.raises(SettingsError, match="no space left"):
        await crew.train()
    assert not any(isinstance(sight, RoundBooked) for sight in crew.seen)


async def test_a_model_that_is_built_is_news_once() -> None:
    """What is shown is kept in the job's events: a member that says the same for ever fills nobody's disk."""
    crew = Crew(rounds=1)

    def repeats(rank: int, told: Any) -> Message | None:
        if rank == 0 and isinstance(told, Prepare):
            for _ in range(20):
                crew._tasks.append(asyncio.create_task(crew.say(0, BUILT, plain_layout(3))))
        return None

    crew.instead = repeats
    await crew.train()
    assert [event.rank for event in crew.seen if isinstance(event, MemberReady)].count(0) == 1
