"""The client's side of training: carries out what `round.Rounds` decides, and sees hashes and counts, never tensors.

Members' words come in through `heard`, `lost` and `link_lost` and wait in one inbox, so that one task alone moves the
machine on. A member's words are decoded here, where a wrong word, or far too many, cost it its place. Reading never
waits for the inbox: a daemon's answer to an order must not stand behind its worker's words.
"""

from __future__ import annotations

import asyncio
import dataclasses
import hashlib
from collections.abc import Awaitable, Callable
from typing import Protocol

from axonp2p.clock import Clock
from axonp2p.errors import AxonError, PeerMisbehaved
from axonp2p.jobs.messages import OwnersMessage
from axonp2p.jobs.output_messages import OutputFile, OutputMessage, OutputPart, OutputsSent
from axonp2p.supervision import cancel_and_wait
from axonp2p.tensors.checkpoint_file import Model
from axonp2p.training.coordinator.crew import Crew, RoundBegun, Sight, TrainingResult
from axonp2p.training.coordinator.frozen_lending import FrozenLending
from axonp2p.training.coordinator.inbox import MOST_PROGRESS, Inbox
from axonp2p.training.coordinator.member_events import MemberWord, member_event, owner_event
from axonp2p.training.coordinator.state_keeper import Shelf, StateKeeper
from axonp2p.training.messages import AskPieces, FileLayout, FromWorkerTraining, Piece, PieceList, StartRound
from axonp2p.training.round_messages import (
    Action,
    EndRounds,
    Event,
    GiveUp,
    GoesOn,
    KeepState,
    Leave,
    LineHeard,
    LinkBroken,
    MemberJoins,
    MemberLost,
    MemberReady,
    OwnersWord,
    ProgressHeard,
    RoundAccepted,
    RoundBooked,
    SendStartState,
    SetMembers,
    StateKept,
    StopChecking,
    Tell,
    Tick,
    Told,
    Trained,
)
from axonp2p.training.rounds.machine import Rounds
from axonp2p.training.rounds.phases import Phase
from axonp2p.training.state_transfer.file_parts import cut
from axonp2p.training.state_transfer.model_layout import frozen_bytes, read_layout
from axonp2p.verification.signed_frames import SignedFrame
from axonp2p.wire.codec import Message, decode
from axonp2p.wire.frame import HEADER_LIMIT, pack_frame, split_frame


class FilesListener(Protocol):
    """Hears what members send of the files that the task has written."""

    async def heard(self, rank: int, message: OutputMessage, payload: memoryview) -> None:
        """The next word of a member. Raises `PeerMisbehaved` for what does not fit."""


class Coordinator:
    """One job's training: `train()` once, then `keep_last()`."""

    def __init__(
        self,
        rounds: Rounds,
        crew: Crew,
        clock: Clock,
        show: Callable[[Sight], None],
        *,
        written: Callable[[], Awaitable[None]] | None = None,
        shelf: Shelf | None = None,
        start_state: Callable[[], bytes] | None = None,
        on_disk: bytes | None = None,
    ) -> None:
        """`start_state` reads the state that a resumed job may go on from, `on_disk` is its name.

        On `shelf` are put those that it comes to. `written` returns when all that was shown is written down.

        Without a shelf the plan must not say that states are kept.
        """
        self._rounds = rounds
        self._crew = crew
        self._clock = clock
        self._show = show
        self._written = written
        self._start_state = start_state
        self._inbox = Inbox()
        self._training = True
        self._leaving = False
        self._pausing = False
        self._gone: set[int] = set()
        self._ready: set[int] = set()
        """The members that have said that their model is built: a word that is said twice is no news."""
        self._begun: tuple[int, int] | None = None
        self._result = TrainingResult(0, None, [])
        self._keeper = StateKeeper(shelf, self._tell, clock, self._state_over, on_disk) if shelf else None
        self.files: FilesListener | None = None
        self.too_few = False
        """Whether it was given up because too few members were left."""
        self._lending = FrozenLending(shelf.frozen, crew.send, self.lost) if shelf else None
        self._feeding: dict[int, asyncio.Task[None]] = {}
        self._layouts: dict[bytes, FileLayout] = {}
        """The members' words on the model's file, by its hash."""
        self._layout_told: set[int] = set()
        """The members that have said that: one for each is kept."""

    # --- what members say ---

    async def heard(self, rank: int, payload: memoryview, *, signed: SignedFrame | None) -> None:
        """A member's worker said something; waits while there is too much to deal with.

        `signed`: the same as its daemon has signed it, when it has.
        """
        try:
            frame = split_frame(payload)
            message = decode(frame.header, FromWorkerTraining, HEADER_LIMIT)
            if isinstance(message, Piece | PieceList):
                if self._keeper and rank not in self._gone:
                    self._keeper.heard(rank, message, frame.payload)
                return
            if isinstance(message, OutputPart | OutputFile | OutputsSent):
                if self.files and rank not in self._gone:
                    await self.files.heard(rank, message, frame.payload)
                return
            if isinstance(message, AskPieces):
                if self._lending and self._training and rank not in self._gone:
                    self._lending.ask(rank, message)
                return
            word = member_event(rank, message, bytes(frame.payload), signed=signed)
            if isinstance(word, MemberReady):
                self._keep_layout(word, frame.payload)
        except PeerMisbehaved as error:
            await self.lost(rank, f"its worker broke the protocol: {error.message}")
        else:
            await self._put(word)

    def _keep_layout(self, ready: MemberReady, payload: memoryview) -> None:
        if ready.rank not in self._layout_told and ready.rank not in self._gone:
            said = ready.prepared
            layout = read_layout(payload, Model(said.parameters, said.values, said.frozen))
            self._layout_told.add(ready.rank)
            self._layouts.setdefault(ready.file_layout, layout)

    async def link_lost(self, rank: int, to: int, reason: str) -> None:
        """A member cannot reach another."""
        await self._put(LinkBroken(rank, to, reason))

    def line_measured(self, rank: int, upload: float, download: float) -> None:
        """Take in the speeds of a member's line, in bytes a second, by its daemon; 0 where it does not know."""
        if self._training:
            self._inbox.put_told(rank, LineHeard(rank, upload, download), MOST_PROGRESS)

    async def joined(self, rank: int, name: str) -> None:
        """One more member, whose worker has the bundle; the rank is a new one. After training it is of no use."""
        if self._training:
            self._inbox.put(MemberJoins(rank, name))

    def owner_says(self, rank: int, message: OwnersMessage) -> None:
        """A member's owner needs the machine, or needs it no longer."""
        word = owner_event(rank, message, self._clock.monotonic())
        if self._training:
            self._inbox.put_told(rank, word)
        else:
            self._show(word)

    async def lost(self, rank: int, reason: str) -> None:
        """A member has gone."""
        if rank in self._gone:
            return
        self._gone.add(rank)
        if self._training:
            self._inbox.put(MemberLost(rank, reason, self._crew.limit_of(rank)))
        if self._keeper:
            self._keeper.members_are(self._holders)

    async def _put(self, word: MemberWord) -> None:
        if self._training and word.rank not in self._gone and not self._inbox.put_word(word):
            await self.lost(word.rank, "it broke the protocol: it says more than can be dealt with")

    @property
    def result(self) -> TrainingResult:
        """Where the job stands now."""
        return self._result

    @property
    def model(self) -> Model:
        """How large it is, as most members say: one alone could have any room made for it."""
        model, layout = self._rounds.model, self._layouts.get(self._rounds.file_layout)
        return Model(model.parameters, model.values, frozen_bytes(layout), layout.frozen_name) if layout else model

    @property
    def file_layout(self) -> FileLayout:
        """Which tensors the model's file has, as most members say; once all have built the model."""
        return self._layouts[self._rounds.file_layout]

    def leave(self) -> None:
        """Let `train` end soon, with what is accepted by then."""
        self._leaving = True
        self._inbox.put(Tick())

    def pause(self) -> None:
        """Let `train` end once the round that runs is accepted."""
        self._pausing = True

    def end_rounds(self) -> None:
        """The same, as if that round were the last: the job is trained then. Harmless after the last one."""
        self._inbox.put(EndRounds())

    # --- what is done about it ---

    async def train(self) -> TrainingResult:
        """Train until all rounds are accepted, or until `leave`. Raises what the machine gives up with."""
        try:
            actions = self._rounds.begin(self._clock.monotonic())
            while True:
                for action in actions:
                    await self._carry_out(action)
                if self._keeper and self._keeper.broken:
                    raise self._keeper.broken
                # Once all rounds are accepted there is nothing to leave, only checks that need not be waited for.
                checking = self._rounds.phase is Phase.CHECKING
                if self._result.trained or (self._leaving and not checking):
                    return self._result
                event = StopChecking() if self._leaving else await self._next()
                actions = self._rounds.heard(event, self._clock.monotonic())
        finally:
            self._training = False
            await cancel_and_wait(*self._feeding.values())
            if self._lending:
                await self._lending.close()

    async def close(self) -> None:
        """Fetch nothing any more."""
        if self._keeper:
            await self._keeper.close()

    async def keep_last(self, seconds: float | None = None) -> bool:
        """After training: put the last accepted state on the disk, unless it is there; whether it is, after so long.

        Raises what the disk refused with.
        """
        result = self._result
        if self._keeper is None or result.state is None:
            return False
        self._keeper.members_are(self._holders)
        if booked := await self._keeper.last(result.round - 1, result.state, self.model, seconds):
            self._show(booked)
        return self._keeper.kept == result.state

    async def _next(self) -> Event:
        deadline = self._rounds.next_deadline()
        seconds = None if deadline is None else max(0.0, deadline - self._clock.monotonic())
        event = await self._inbox.take(seconds) or Tick()
        if isinstance(event, MemberReady):
            if event.rank not in self._ready:
                self._ready.add(event.rank)
                self._show(event)
        elif isinstance(event, ProgressHeard) or (isinstance(event, OwnersWord) and event.rank in self._rounds.present):
            self._show(event)
        return event

    async def _carry_out(self, action: Action) -> None:
        match action:
            case SetMembers(members=members, joining=joining):
                self._result = dataclasses.replace(self._result, members=list(members))
                await self._crew.set_members(sorted([*members, *joining]))
                if self._keeper:
                    self._keeper.members_are(self._holders)
                self._rounds.members_know(self._clock.monotonic())
            case Tell(rank=rank, message=message):
                if isinstance(message, StartRound):
                    self._begin(message)
                self._tell(rank, message)
            case SendStartState(rank=rank):
                self._feeding[rank] = asyncio.create_task(self._feed(rank), name=f"state for {rank}")
            case RoundAccepted(round=number, state=state, reports=reports):
                self._result = dataclasses.replace(self._result, round=number + 1, state=state, members=sorted(reports))
                self._leaving = self._leaving or self._pausing
                self._show(action)
                # Told to go on, members forget what came before: the next life of this client must know what they have.
                await self._all_written()
            case GoesOn(rounds=rounds, state=state):
                self._result = dataclasses.replace(self._result, round=rounds, state=state if rounds else None)
                self._show(action)
            case KeepState(round=number, state=state):
                assert self._keeper
                self._keeper.begin(number, state, self.model, self._holders)
            case RoundBooked():
                if self._keeper:
                    self._keeper.booked()
                self._show(action)
                await self._all_written()
            case _ if isinstance(action, Told):
                self._show(action)
            case Trained(state=state, members=members):
                self._result = dataclasses.replace(self._result, state=state, members=list(members), trained=True)
            case Leave(reason=reason):
                self._result = dataclasses.replace(self._result, left_because=reason)
                self._leaving = True
            case GiveUp(error=error, too_few=too_few):
                self.too_few = too_few
                raise error

    async def _all_written(self) -> None:
        if self._written:
            await self._written()

    def _begin(self, order: StartRound) -> None:
        if (order.round, order.attempt) != self._begun:
            self._begun = (order.round, order.attempt)
            self._show(RoundBegun(order.round, order.attempt))

    @property
    def _holders(self) -> list[int]:
        """The members that can be asked for the accepted state."""
        return [rank for rank in self._result.members if rank not in self._gone]

    def _state_over(self, state: bytes) -> None:
        """It is on the disk, or the disk takes no more."""
        assert self._keeper
        self._inbox.put(Tick() if self._keeper.broken else StateKept(state))

    def _tell(self, rank: int, message: Message) -> None:
        self._crew.tell(rank, pack_frame(message))

    async def _feed(self, rank: int) -> None:
        """Send the state of a resumed job to one member."""
        assert self._start_state is not None
        try:
            data = await asyncio.to_thread(self._start_state)
            sha256 = hashlib.sha256(data).digest()
            for part, payload in cut(data, sha256):
                await self._crew.send(rank, pack_frame(part, payload))
        except AxonError as error:
            await self.lost(rank, error.message)
