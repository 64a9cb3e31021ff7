"""The coordinator between the round machine and a crew that the test plays."""

from __future__ import annotations

import asyncio
import dataclasses
import hashlib
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from axonp2p.blobs.pieces import book_of
from axonp2p.errors import JobFailed, TaskMistake
from axonp2p.jobs.messages import HandBack, WorkerPaused, WorkerResumed
from axonp2p.training.coordinator import Coordinator
from axonp2p.training.crew import RoundBegun, Standing
from axonp2p.training.file_parts import cut
from axonp2p.training.inbox import MOST_WAITING
from axonp2p.training.messages import (
    AdoptState,
    FilePart,
    Prepare,
    Prepared,
    Progress,
    SendFile,
    StartRound,
    StateAdopted,
    TaskFailed,
    ToWorkerTraining,
)
from axonp2p.training.plan import TrainPlan
from axonp2p.training.round import Rounds
from axonp2p.training.round_messages import (
    Chosen,
    JobGoesOn,
    JobWaits,
    MemberDropped,
    MemberJoined,
    MemberPaused,
    MemberReady,
    MemberResumed,
    OwnersWord,
    ProgressHeard,
    RoundAccepted,
)
from axonp2p.wire.codec import Message, decode
from axonp2p.wire.frame import HEADER_LIMIT, pack_frame, split_frame
from tests.fakes import ManualClock
from tests.unit.training.conversation import round_done

FIRST = b"f" * 32
MODEL = b"weights" * 1000


def after(state: bytes) -> bytes:
    """Where a round leads to from `state`."""
    return hashlib.sha256(state).digest()


class Crew:
    """Members that do what they are told; a test may change what one of them answers."""

    def __init__(self, members: int = 2, *, rounds: int = 3, start: Path | None = None, **plan: Any) -> None:
        self.told: list[tuple[int, Any]] = []
        self.members: list[list[int]] = []
        self.seen: list[Any] = []
        self.fed: dict[int, bytes] = {}
        self.instead: Callable[[int, Any], Message | None] | None = None
        names = {rank: f"peer-{rank}" for rank in range(members)}
        job = TrainPlan("line-1", "task.py", plan.pop("shards", members), rounds, 5, batch=8, seed=1, **plan)
        self.coordinator = Coordinator(Rounds(job, names), self, ManualClock(), self.seen.append, start_state=start)
        self._tasks: list[asyncio.Task[None]] = []

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
        await self.coordinator.heard(rank, memoryview(pack_frame(message, payload)))

    async def _answer(self, rank: int, told: Any) -> None:
        if self.instead and (answer := self.instead(rank, told)):
            await self.say(rank, answer)
            return
        match told:
            case Prepare():
                await self.say(rank, Prepared(state=FIRST, parameters=3, values=3))
            case AdoptState(state=state, senders=[_, *_]):
                await self.say(rank, StateAdopted(state=state))
            case StartRound(listeners=listeners, state=state) if rank in listeners:
                await self.say(rank, StateAdopted(state=after(state)))
            case StartRound(round=number, attempt=attempt, state=state, members=members):
                await self.say(rank, Progress(round=number, attempt=attempt, step=5, loss=1.0, samples=40))
                await self.say(rank, round_done(number, attempt, after(state), members=len(members)))
            case SendFile(what=what):
                for part, payload in cut(what, MODEL, hashlib.sha256(MODEL).digest()):
                    await self.say(rank, part, payload)

    async def train(self) -> Standing:
        async with asyncio.timeout(10):
            return await self.coordinator.train()


async def test_training_goes_from_prepare_to_the_last_round() -> None:
    crew = Crew(rounds=3)
    standing = await crew.train()
    assert standing == Standing(3, after(after(after(FIRST))), [0, 1], trained=True)
    assert crew.members == [[0, 1]]
    kinds = [type(sight) for sight in crew.seen]
    assert kinds.count(MemberReady) == 2
    assert kinds.count(ProgressHeard) == 6
    assert [sight.round for sight in crew.seen if isinstance(sight, RoundBegun)] == [0, 1, 2]
    assert [sight.round for sight in crew.seen if isinstance(sight, RoundAccepted)] == [0, 1, 2]
    assert crew.coordinator.standing == standing


async def test_a_lost_member_is_dropped_and_the_others_go_on() -> None:
    crew = Crew(members=3, rounds=2)

    def instead(rank: int, told: Any) -> Message | None:
        if rank == 2 and isinstance(told, StartRound):
            crew._tasks.append(asyncio.create_task(crew.coordinator.lost(2, "it was killed")))
            return Progress(round=0, attempt=0, step=1, loss=1.0, samples=8)
        return None

    crew.instead = instead
    standing = await crew.train()
    assert standing.members == [0, 1]
    assert crew.members == [[0, 1, 2], [0, 1]]
    assert [(sight.rank, sight.reason) for sight in crew.seen if isinstance(sight, MemberDropped)] == [
        (2, "it was killed")
    ]


async def test_rubbish_costs_a_member_its_place() -> None:
    crew = Crew(members=2, rounds=1)

    def instead(rank: int, told: Any) -> Message | None:
        if rank == 1 and isinstance(told, Prepare):
            crew._tasks.append(asyncio.create_task(crew.coordinator.heard(1, memoryview(b"\0\0\0\1\xc1"))))
            return Progress(round=0, attempt=0, step=1, loss=1.0, samples=8)
        return None

    crew.instead = instead
    assert (await crew.train()).members == [0]
    (dropped,) = (sight for sight in crew.seen if isinstance(sight, MemberDropped))
    assert "broke the protocol" in dropped.reason


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
    standing = await crew.train()
    assert not standing.trained
    assert 2 <= standing.round < 1000
    assert standing.state is not None


async def test_leaving_before_the_first_round_keeps_nothing() -> None:
    crew = Crew()
    crew.coordinator.leave()
    assert await crew.train() == Standing(0, None, [0, 1])


async def test_a_resumed_job_feeds_its_state_to_one_member(tmp_path: Path) -> None:
    state = b"momentum" * 100_000
    name = hashlib.sha256(state).digest()
    path = tmp_path / "state.bin"
    path.write_bytes(state)
    crew = Crew(rounds=5, start=path, first_round=3, start_state=name)
    standing = await crew.train()
    assert standing == Standing(5, after(after(name)), [0, 1], trained=True)
    assert crew.fed == {0: state}
    assert [message.senders for _, message in crew.told if isinstance(message, AdoptState)] == [[], [0]]


async def test_one_more_member_comes_and_takes_part() -> None:
    crew = Crew(members=2, rounds=6, shards=4)
    joined = False

    def instead(rank: int, told: Any) -> Message | None:
        nonlocal joined
        if isinstance(told, StartRound) and told.round == 1 and not joined:
            joined = True
            crew._tasks.append(asyncio.create_task(crew.coordinator.join(5, "wren")))
        return None

    crew.instead = instead
    standing = await crew.train()
    assert (standing.round, standing.members) == (6, [0, 1, 5])
    assert crew.members == [[0, 1], [0, 1, 5], [0, 1, 5]]
    assert [sight.rank for sight in crew.seen if isinstance(sight, MemberJoined)] == [5]
    await crew.coordinator.join(6, "late")


async def test_how_the_members_exchange_is_shown_when_it_changes() -> None:
    crew = Crew(rounds=3)
    crew.coordinator.line_measured(0, 1e9, 1e9)
    crew.coordinator.line_measured(1, 1e9, 1e9)
    await crew.train()
    first, *_ = told = [sight for sight in crew.seen if isinstance(sight, Chosen)]
    assert first.round == 0
    assert [sight.round for sight in told] == sorted({sight.round for sight in told})


async def test_files_are_fetched_after_training(tmp_path: Path) -> None:
    crew = Crew(rounds=1)
    standing = await crew.train()
    sha256 = await crew.coordinator.fetch("model", standing, tmp_path / "model")
    assert sha256 == hashlib.sha256(MODEL).digest()
    assert (tmp_path / "model").read_bytes() == MODEL
    # What comes when nothing is fetched is let go.
    await crew.say(0, FilePart(what="model", offset=0, total=1, sha256=FIRST), b"x")
    await crew.say(0, StateAdopted(state=FIRST))


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
    about = [sight for sight in crew.seen if isinstance(sight, OwnersWord | JobWaits | JobGoesOn)]
    assert about == [MemberPaused(0, "a game"), JobWaits([0]), MemberResumed(0), JobGoesOn()]


async def test_when_the_last_machine_is_wanted_back_the_state_is_fetched_first(tmp_path: Path) -> None:
    crew = Crew(members=1, rounds=1000)

    def instead(rank: int, told: Any) -> Message | None:
        if isinstance(told, StartRound) and told.round == 2:
            crew.coordinator.owner_says(0, HandBack(reason="a game", seconds=600))
        return None

    crew.instead = instead
    standing = await crew.train()
    assert (standing.round, standing.members, standing.trained) == (3, [0], False)
    assert standing.left_because == "peer-0: handed back: a game"
    standing = dataclasses.replace(standing, state=book_of(MODEL).name)
    assert await crew.coordinator.fetch("state", standing, tmp_path / "state") == standing.state


async def test_the_weights_are_waited_for_while_an_owner_needs_the_machine(tmp_path: Path) -> None:
    crew = Crew(members=1, rounds=1)
    standing = await crew.train()
    crew.coordinator.owner_says(0, WorkerPaused(reason="a game"))
    crew.instead = lambda rank, told: Progress(round=0, attempt=0, step=1, loss=1.0, samples=8)
    fetching = asyncio.create_task(crew.coordinator.fetch("model", standing, tmp_path / "model"))
    await asyncio.sleep(0)
    crew.coordinator.owner_says(0, WorkerResumed())
    for part, payload in cut("model", MODEL, hashlib.sha256(MODEL).digest()):
        await crew.say(0, part, payload)
    assert await fetching == hashlib.sha256(MODEL).digest()
    assert crew.seen[-1] == MemberResumed(0)
