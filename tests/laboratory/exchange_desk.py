"""The simulated client: the real `Rounds`, fed and obeyed as `Coordinator` does, over simulated lines.

What members say waits in order; orders are carried out one by one, and a new roster is waited for before the next.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import Any

from axonp2p.jobs.output_messages import OutputFile, OutputPart, OutputsSent
from axonp2p.training.coordinator.member_events import member_event
from axonp2p.training.messages import AskPieces, FromWorkerTraining, Piece, PieceList
from axonp2p.training.round_messages import Action, Event, MemberDropped, SendStartState, SetMembers, Tell, Tick
from axonp2p.training.rounds.machine import Rounds
from axonp2p.training.rounds.phases import AT_REST
from axonp2p.training.state_transfer.file_parts import cut
from axonp2p.training.trainer.outer_optimizer import State
from axonp2p.wire.codec import decode
from axonp2p.wire.frame import HEADER_LIMIT, pack_frame, split_frame
from tests.fakes import SIGNED
from tests.laboratory.exchange_lines import Agenda


class Desk:
    """One client. The world gives it ways to its members: `send`, `set_roster` and `dismiss`."""

    def __init__(self, agenda: Agenda, rounds: Rounds, start_state: State | None = None) -> None:
        self.rounds = rounds
        self.seen: list[tuple[float, Action]] = []
        """Everything that it decided, and when."""
        self.sees: Callable[[Action], None] = lambda action: None
        self.send: Callable[[int, bytes], None] = lambda rank, frame: None
        self.set_roster: Callable[[int, set[int]], None] = lambda rank, members: None
        self.dismiss: Callable[[int], None] = lambda rank: None
        self.gone: set[int] = set()
        self.stopped = False
        self._agenda = agenda
        self._start_state = start_state
        self._inbox: deque[Event] = deque()
        self._actions: deque[Action] = deque()
        self._awaited: set[int] = set()
        self._ticks_at: float | None = None

    @property
    def over(self) -> bool:
        """Whether the job has ended, and all of it is carried out."""
        return self.rounds.phase in AT_REST and not self._actions

    def begin(self) -> None:
        self._actions.extend(self.rounds.begin(self._agenda.now))
        self._work()

    def stop(self) -> None:
        """The client's machine sleeps."""
        self.stopped = True

    def go_on(self) -> None:
        self.stopped = False
        self._work()

    # --- what it hears ---

    def hear(self, rank: int, frame: bytes) -> None:
        """A member's worker said something."""
        parts = split_frame(frame)
        message: FromWorkerTraining = decode(parts.header, FromWorkerTraining, HEADER_LIMIT)
        if (
            not isinstance(message, Piece | PieceList | AskPieces | OutputFile | OutputPart | OutputsSent)
            and rank not in self.gone
        ):
            self.happened(member_event(rank, message, bytes(parts.payload), signed=SIGNED))

    def happened(self, event: Event) -> None:
        self._inbox.append(event)
        self._work()

    def lost(self, rank: int, event: Event) -> None:
        """The session with a member has ended."""
        if rank not in self.gone:
            self.gone.add(rank)
            self.roster_set(rank)
            self.happened(event)

    def roster_set(self, rank: int) -> None:
        """A member's daemon has answered, or will not."""
        if rank in self._awaited:
            self._awaited.discard(rank)
            if not self._awaited:
                self.rounds.members_know(self._agenda.now)
            self._work()

    # --- what it does ---

    def _work(self) -> None:
        while not self.stopped and not self._awaited:
            if self._actions:
                self._carry_out(self._actions.popleft())
            elif self._inbox:
                self._actions.extend(self.rounds.heard(self._inbox.popleft(), self._agenda.now))
            else:
                self._plan_tick()
                return

    def _plan_tick(self) -> None:
        deadline = self.rounds.next_deadline()
        if deadline is None or deadline == self._ticks_at:
            return
        self._ticks_at = deadline

        def tick() -> None:
            if self._ticks_at != deadline:
                return
            self._ticks_at = None
            if self._awaited or self.stopped or self._inbox or self.rounds.next_deadline() != deadline:
                self._work()
                return
            before = self._agenda.count
            self._actions.extend(self.rounds.heard(Tick(), self._agenda.now))
            again = self.rounds.next_deadline()
            late = again is not None and again <= self._agenda.now
            assert not late, f"a deadline of {again} is left undecided at {self._agenda.now} ({before})"
            self._work()

        self._agenda.at(deadline, tick)

    def _carry_out(self, action: Any) -> None:
        self.seen.append((self._agenda.now, action))
        self.sees(action)
        match action:
            case SetMembers(members, joining):
                everyone = {*members, *joining}
                self._awaited = everyone - self.gone
                for rank in sorted(everyone):
                    self.set_roster(rank, everyone)
            case Tell(rank, message):
                self.send(rank, pack_frame(message))
            case SendStartState(rank):
                assert self._start_state
                file = self._start_state.file
                for part, payload in cut(file, __import__("hashlib").sha256(file).digest()):
                    self.send(rank, pack_frame(part, payload))
            case MemberDropped(rank):
                self.dismiss(rank)
