"""The client's side of training: carries out what `round.Rounds` decides, and sees hashes and counts, never tensors.

Members' words come in through `heard`, `lost` and `link_lost` and wait in one inbox, so that one task alone moves the
machine on. What a member says is decoded here, where a wrong word costs it its place.
"""

from __future__ import annotations

import asyncio
import dataclasses
import hashlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, Protocol

from axonp2p.clock import Clock
from axonp2p.errors import AxonError, PeerMisbehaved
from axonp2p.training.file_fetch import FileFetch
from axonp2p.training.file_parts import cut
from axonp2p.training.messages import (
    FilePart,
    FromWorkerTraining,
    Prepared,
    Progress,
    RoundDone,
    SendFile,
    StartRound,
    StateAdopted,
    TaskFailed,
)
from axonp2p.training.round import Rounds
from axonp2p.training.round_messages import (
    Action,
    Event,
    GiveUp,
    LinkBroken,
    MemberDropped,
    MemberLost,
    MemberReady,
    MistakeReported,
    ProgressHeard,
    RoundAccepted,
    RoundRedone,
    RoundReported,
    SendStartState,
    SetMembers,
    StateAdoptedBy,
    Tell,
    Tick,
    Trained,
)
from axonp2p.wire.codec import Message, decode
from axonp2p.wire.frame import HEADER_LIMIT, pack_frame, split_frame

INBOX_ROOM = 512
"""Words of members that may wait; with more, their sessions are read no further until these are dealt with."""
FILE_SLACK = 64 * 1024 * 1024
BYTES_A_VALUE = 16
"""Weights and momentum are 8 bytes a value; a file that is larger by far is no state of this model."""


class Crew(Protocol):
    """How the members are reached; the client's leases behind it."""

    def tell(self, rank: int, frame: bytes) -> None:
        """Post a frame for a member's worker, in order, without waiting. A member that has gone hears nothing."""
        ...

    async def send(self, rank: int, frame: bytes) -> None:
        """The same for many large ones: returns when it is sent. Raises `Unreachable`."""
        ...

    async def set_members(self, ranks: Sequence[int]) -> None:
        """Tell every member's daemon that these are the members, and wait until those that live know."""
        ...


@dataclass(frozen=True)
class RoundBegun:
    """The members were told to train."""

    round: int
    attempt: int


Sight = MemberReady | RoundBegun | ProgressHeard | RoundAccepted | RoundRedone | MemberDropped
"""What a coordinator shows while it works."""


@dataclass(frozen=True)
class Standing:
    """Where a job stands: how many rounds are accepted, the state after the last of them, and who holds it."""

    round: int
    state: bytes | None
    """None when no round was accepted here."""
    members: list[int]
    trained: bool = False
    """Whether these are all rounds."""


class Coordinator:
    """One job's training: `train()` once, then files can be fetched from the members."""

    def __init__(
        self,
        rounds: Rounds,
        crew: Crew,
        clock: Clock,
        show: Callable[[Sight], None],
        *,
        start_state: Path | None = None,
    ) -> None:
        """`start_state` is the file that a resumed job goes on from."""
        self._rounds = rounds
        self._crew = crew
        self._clock = clock
        self._show = show
        self._start_state = start_state
        self._inbox: asyncio.Queue[Event] = asyncio.Queue(INBOX_ROOM)
        self._training = True
        self._leaving = False
        self._gone: set[int] = set()
        self._begun: tuple[int, int] | None = None
        self._standing = Standing(0, None, [])
        self._values = 0
        self._feeding: dict[int, asyncio.Task[None]] = {}
        self._fetch: FileFetch | None = None

    # --- what members say ---

    async def heard(self, rank: int, payload: memoryview) -> None:
        """A member's worker said something; waits while there is too much to deal with."""
        try:
            frame = split_frame(payload)
            message = decode(frame.header, FromWorkerTraining, HEADER_LIMIT)
        except PeerMisbehaved as error:
            await self.lost(rank, f"its worker broke the protocol: {error.message}")
            return
        if isinstance(message, FilePart):
            if self._fetch:
                await self._fetch.heard(rank, message, frame.payload)
        elif self._training:
            await self._inbox.put(_event(rank, message))

    async def lost(self, rank: int, reason: str) -> None:
        """A member has gone."""
        self._gone.add(rank)
        if self._training:
            await self._inbox.put(MemberLost(rank, reason))
        if self._fetch:
            await self._fetch.lost(rank, reason)

    async def link_lost(self, rank: int, to: int, reason: str) -> None:
        """A member cannot reach another."""
        if self._training:
            await self._inbox.put(LinkBroken(rank, to, reason))

    @property
    def standing(self) -> Standing:
        """Where the job stands now."""
        return self._standing

    def leave(self) -> None:
        """Let `train` end soon, with what is accepted by then."""
        self._leaving = True
        if not self._inbox.full():
            self._inbox.put_nowait(Tick())

    # --- what is done about it ---

    async def train(self) -> Standing:
        """Train until all rounds are accepted, or until `leave`. Raises what the machine gives up with."""
        try:
            actions = self._rounds.begin(self._clock.monotonic())
            while True:
                for action in actions:
                    await self._carry_out(action)
                if self._leaving or self._standing.trained:
                    return self._standing
                actions = self._rounds.heard(await self._next(), self._clock.monotonic())
        finally:
            self._training = False
            while not self._inbox.empty():  # lets go of those who wait for room
                self._inbox.get_nowait()
            for task in self._feeding.values():
                task.cancel()
            await asyncio.gather(*self._feeding.values(), return_exceptions=True)

    async def fetch(self, what: Literal["model", "state"], standing: Standing, target: Path) -> bytes:
        """Have a member send the file into `target`; its SHA-256. Raises `JobFailed` when none can."""
        assert standing.state is not None
        wanted = SendFile(what=what, state=standing.state)
        limit = FILE_SLACK + BYTES_A_VALUE * self._values
        self._fetch = FileFetch(wanted, self._tell, limit)
        for rank in self._gone:
            await self._fetch.lost(rank, "it has gone")
        try:
            return await self._fetch.into(standing.members, target)
        finally:
            self._fetch = None

    async def _next(self) -> Event:
        deadline = self._rounds.next_deadline()
        try:
            async with asyncio.timeout(None if deadline is None else max(0.0, deadline - self._clock.monotonic())):
                event = await self._inbox.get()
        except TimeoutError:
            return Tick()
        if isinstance(event, MemberReady):
            self._values = max(self._values, event.prepared.values)
        if isinstance(event, MemberReady | ProgressHeard):
            self._show(event)
        return event

    async def _carry_out(self, action: Action) -> None:
        match action:
            case SetMembers(members=members):
                self._standing = dataclasses.replace(self._standing, members=list(members))
                await self._crew.set_members(members)
            case Tell(rank=rank, message=message):
                if isinstance(message, StartRound):
                    self._begin(message)
                self._tell(rank, message)
            case SendStartState(rank=rank):
                self._feeding[rank] = asyncio.create_task(self._feed(rank), name=f"state for {rank}")
            case RoundAccepted(round=number, state=state):
                self._standing = dataclasses.replace(self._standing, round=number + 1, state=state)
                self._show(action)
            case MemberDropped() | RoundRedone():
                self._show(action)
            case Trained(state=state, members=members):
                self._standing = dataclasses.replace(self._standing, state=state, members=list(members), trained=True)
            case GiveUp(error=error):
                raise error

    def _begin(self, order: StartRound) -> None:
        if (order.round, order.attempt) != self._begun:
            self._begun = (order.round, order.attempt)
            self._show(RoundBegun(order.round, order.attempt))

    def _tell(self, rank: int, message: Message) -> None:
        self._crew.tell(rank, pack_frame(message))

    async def _feed(self, rank: int) -> None:
        """Send the state of a resumed job to one member."""
        assert self._start_state is not None
        try:
            data = await asyncio.to_thread(self._start_state.read_bytes)
            sha256 = hashlib.sha256(data).digest()
            for part, payload in cut("state", data, sha256):
                await self._crew.send(rank, pack_frame(part, payload))
        except AxonError as error:
            await self.lost(rank, error.message)


def _event(rank: int, message: Prepared | StateAdopted | Progress | RoundDone | TaskFailed) -> Event:
    match message:
        case Prepared():
            return MemberReady(rank, message)
        case StateAdopted(state=state):
            return StateAdoptedBy(rank, state)
        case Progress():
            return ProgressHeard(rank, message)
        case RoundDone():
            return RoundReported(rank, message)
        case TaskFailed():
            return MistakeReported(rank, message)
