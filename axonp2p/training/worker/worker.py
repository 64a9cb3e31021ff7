"""The sandboxed worker: one inbox for what daemon and trainer say, one member that decides, hands that carry it out.

This thread hears, decodes, averages, encodes and says, while another one trains. Between two messages it says one
more part of what the member has to say by itself, so hearing and saying go on side by side.
"""

from __future__ import annotations

import sys
from collections import deque
from collections.abc import Callable, Iterable
from pathlib import Path

import msgspec
import torch

from axonp2p.errors import AxonError, MalformedMessage
from axonp2p.jobs.output_files import EVERY_FILE, words_of_files
from axonp2p.jobs.output_messages import TASK_FILES
from axonp2p.sandbox.messages import BundleReady, Control, FromMember, ToWorkerMessage
from axonp2p.training.messages import (
    AskFiles,
    BetweenMembers,
    FilePart,
    Piece,
    PieceList,
    Prepare,
    SlicePart,
    StartRound,
    ToWorkerTraining,
)
from axonp2p.training.trainer.device import CPU
from axonp2p.training.trainer.local_trainer import LocalTrainer
from axonp2p.training.trainer.long_steps import LongSteps
from axonp2p.training.trainer.task import CheckedTask
from axonp2p.training.trainer.trainer_orders import Done, TaskWentWrong
from axonp2p.training.trainer.training_thread import Built, Redoing, TrainingThread
from axonp2p.training.worker.mailbox import Mailbox
from axonp2p.training.worker.member import WorkerMember
from axonp2p.training.worker.member_actions import (
    COORDINATOR,
    Action,
    DropQueued,
    NotTaken,
    SayToCoordinator,
    SayToMember,
)
from axonp2p.wheels.import_path import use_wheels
from axonp2p.wire.codec import decode
from axonp2p.wire.frame import HEADER_LIMIT, split_frame
from axonp2p.wire.schema import check_schema

LISTENING_S, LONGEST_LISTENING_S = 0.05, 0.5
"""After a deadline: who stood still for a while first hears what has come meanwhile, until it is quiet for the one,
or at most for the other."""

FromTrainer = Done | Built
RedoFor = Callable[[Path, Prepare], Redoing]


class Worker:
    """One worker, for one job, whose bundle is in `bundle` once the daemon said so. `clock`: monotonic seconds.

    `redo_for` gives what takes steps of that bundle's job again. Files that the task writes for its author lie in
    `out`. The model is on `device`, which is open.
    """

    def __init__(
        self,
        mailbox: Mailbox[FromTrainer],
        bundle: Path,
        out: Path,
        clock: Callable[[], float],
        redo_for: RedoFor,
        device: torch.device = CPU,
    ) -> None:
        self._mailbox = mailbox
        self._bundle = bundle
        self._out = out
        self._clock = clock
        self._redo_for = redo_for
        self._device = device
        self._bundle_ready = False
        self._prepare: Prepare | None = None
        self._trainer: TrainingThread | None = None
        self._member: WorkerMember | None = None
        self._orders: deque[tuple[ToWorkerTraining, memoryview]] = deque()
        """The messages that came while the model was built."""
        self._late_since: float | None = None
        """When a deadline was first found to be over."""

    def run(self) -> None:
        """Serve for ever. Raises `Unreachable` when the daemon closed the channel, `MalformedMessage` for nonsense."""
        try:
            while True:
                heard = self._mailbox.take(self._seconds_to_listen())
                if isinstance(heard, tuple):
                    self._hear(*heard)
                elif heard is not None:
                    self._hear_trainer(heard)
                if self._member:
                    self._go_on(self._member, quiet=heard is None)
        finally:
            if self._trainer:
                self._trainer.close()

    def _seconds_to_listen(self) -> float | None:
        if self._member is None:
            return None
        if self._member.talkative:
            return 0
        if self._late_since is not None:
            return LISTENING_S
        deadline = self._member.deadline()
        return None if deadline is None else max(0.0, deadline - self._clock())

    def _go_on(self, member: WorkerMember, *, quiet: bool) -> None:
        """Do all that needs no order."""
        now = self._clock()
        if member.talkative:
            self._carry_out(member.more(now))
        deadline = member.deadline()
        if deadline is None or now < deadline:
            self._late_since = None
        elif self._late_since is None:
            self._late_since = now
        elif now - self._late_since >= (LISTENING_S if quiet else LONGEST_LISTENING_S):
            self._late_since = None
            self._carry_out(member.due(now))

    def _carry_out(self, actions: Iterable[Action]) -> None:
        for action in actions:
            if isinstance(action, SayToCoordinator):
                self._mailbox.report(action.message, action.payload)
            elif isinstance(action, SayToMember):
                self._mailbox.tell(action.rank, action.message, action.payload)
            elif isinstance(action, DropQueued):
                self._mailbox.drop(_useless_after(action.start))
            elif isinstance(action, NotTaken):
                # When a round cannot end without it, the coordinator's deadline ends the round.
                self._complain(action.sender, action.error)
            elif self._trainer:
                self._trainer.give(action)

    # --- what is heard ---

    def _hear(self, message: ToWorkerMessage, payload: memoryview) -> None:
        if isinstance(message, BundleReady):
            use_wheels(self._bundle)
            self._bundle_ready = True
            self._build()
        elif isinstance(message, FromMember):
            self._hear_member(message.rank, payload)
        elif isinstance(message, Control):
            frame = split_frame(payload)
            order: ToWorkerTraining = decode(frame.header, ToWorkerTraining, HEADER_LIMIT)
            self._hear_coordinator(order, frame.payload)
        else:
            raise MalformedMessage(f"{type(message).__name__} after the start")

    def _hear_coordinator(self, order: ToWorkerTraining, payload: memoryview) -> None:
        if isinstance(order, Prepare):
            self._hear_prepare(order)
        elif isinstance(order, AskFiles):
            self._mailbox.send_files(words_of_files(self._out, order.request, EVERY_FILE, TASK_FILES, order.have))
        elif self._prepare is None:
            raise MalformedMessage(f"{type(order).__name__} before the model was built")
        elif self._member is None:
            self._orders.append((order, payload))
        elif isinstance(order, FilePart):
            self._carry_out(self._member.hear_file(order, payload, self._clock()))
        elif isinstance(order, Piece | PieceList):
            self._carry_out(self._member.heard(COORDINATOR, order, payload, self._clock()))
        else:
            self._carry_out(self._member.ordered(order, self._clock()))

    def _hear_prepare(self, order: Prepare) -> None:
        if self._prepare is None:
            check_schema(order.schema, "train")
            self._prepare = order
            self._build()
        elif msgspec.structs.replace(order, first_round=self._prepare.first_round) != self._prepare:
            raise MalformedMessage("a second Prepare, for something else")
        else:
            self._orders.clear()
            if self._member:
                self._carry_out(self._member.prepare_again())

    def _hear_member(self, rank: int, payload: memoryview) -> None:
        if self._member is None:
            return
        try:
            frame = split_frame(payload)
            message: BetweenMembers = decode(frame.header, BetweenMembers, HEADER_LIMIT)
        except AxonError as error:
            self._complain(rank, error)
        else:
            self._carry_out(self._member.heard(rank, message, frame.payload, self._clock()))

    def _hear_trainer(self, done: FromTrainer) -> None:
        if isinstance(done, TaskWentWrong):
            print(f"{done.mistake.message} failed:\n{done.mistake.cause}", file=sys.stderr)
        if isinstance(done, Built):
            assert self._prepare
            self._member = WorkerMember(
                self._prepare, done.first, done.file_layout, done.averaged, done.frozen, done.device
            )
            self._carry_out([self._member.prepared()])
            while self._orders:
                self._hear_coordinator(*self._orders.popleft())
        elif self._member:
            self._carry_out(self._member.trained(done, self._clock()))
        elif isinstance(done, TaskWentWrong):
            self._prepare = self._trainer = None
            self._mailbox.report(done.report)

    def _build(self) -> None:
        """Load the task and build its model, as soon as both it and the order are here."""
        order = self._prepare
        if order is None or not self._bundle_ready or self._trainer:
            return

        def make() -> LocalTrainer:
            return LocalTrainer(CheckedTask(self._bundle, order.task), order, self._device)

        redo = self._redo_for(self._bundle, order)
        long_steps = LongSteps(self._bundle, self._clock)
        self._trainer = TrainingThread(make, self._mailbox.post, self._clock, redo, long_steps, order.rank)
        self._trainer.open()

    def _complain(self, rank: int, error: AxonError) -> None:
        who = "the client" if rank == COORDINATOR else f"member {rank}"
        print(f"from {who}, not taken: {error.message}", file=sys.stderr)


def _useless_after(start: StartRound) -> Callable[[int, BetweenMembers], bool]:
    """Messages not to be sent any more: parts of attempts that are redone, and of those that members ended without."""
    members, listeners = set(start.members), set(start.listeners)

    def useless(rank: int, message: BetweenMembers) -> bool:
        if not isinstance(message, SlicePart):
            return False
        redone = message.round == start.round and message.attempt < start.attempt
        return redone or (rank not in listeners and (rank not in members or message.round < start.round))

    return useless
