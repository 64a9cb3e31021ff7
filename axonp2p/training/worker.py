"""The sandboxed worker: hears messages, puts each where it belongs, and carries out orders one at a time.

While an order is carried out messages are still heard, between steps or instead of waiting: parts from members are
taken, a member's wish for our state is granted at once, and any other order ends what is being done.
"""

from __future__ import annotations

import sys
from collections import deque
from pathlib import Path

from axonp2p.errors import MalformedMessage, PeerMisbehaved, TaskMistake
from axonp2p.sandbox.messages import BundleReady, Control, FromMember, ToWorkerMessage
from axonp2p.training.local_trainer import LocalTrainer
from axonp2p.training.mailbox import Mailbox
from axonp2p.training.membership import Membership
from axonp2p.training.messages import (
    AdoptState,
    BetweenMembers,
    FilePart,
    GiveState,
    Prepare,
    SendFile,
    SlicePart,
    StartRound,
    TaskFailed,
    ToWorkerTraining,
)
from axonp2p.training.task import Task
from axonp2p.wire.codec import decode
from axonp2p.wire.frame import HEADER_LIMIT, split_frame

Order = Prepare | AdoptState | StartRound | SendFile


class Worker:
    """One worker, for one job, whose bundle is in `bundle` once the daemon said so."""

    def __init__(self, mailbox: Mailbox, bundle: Path) -> None:
        self._mailbox = mailbox
        self._bundle = bundle
        self._bundle_ready = False
        self._orders: deque[Order] = deque()
        self._membership: Membership | None = None

    def run(self) -> None:
        """Serve for ever. Raises `Unreachable` when the daemon closed the channel, `MalformedMessage` for nonsense."""
        while True:
            self.wait()
            while self._orders:
                self._carry_out(self._orders.popleft())

    def wait(self) -> None:
        """Hear one message."""
        self._hear(*self._mailbox.take())

    def interrupted(self) -> bool:
        """Hear what has arrived; True when another order is among it."""
        while (heard := self._mailbox.glance()) is not None:
            self._hear(*heard)
        return self.ordered

    @property
    def ordered(self) -> bool:
        """True when another order waits."""
        return bool(self._orders)

    def _carry_out(self, order: Order) -> None:
        try:
            if isinstance(order, Prepare):
                self._prepare(order)
            elif isinstance(order, AdoptState):
                self._member(order).adopt(order)
            elif isinstance(order, StartRound):
                self._member(order).train(order)
            else:
                self._member(order).send_file(order)
        except TaskMistake as mistake:
            print(f"{mistake.message} failed:\n{mistake.cause}", file=sys.stderr)
            self._mailbox.report(TaskFailed(doing=mistake.message[:100], traceback=mistake.cause[:16000]))

    def _prepare(self, order: Prepare) -> None:
        if self._membership is not None:
            raise MalformedMessage("a second Prepare")
        while not self._bundle_ready:
            self.wait()
        self._membership = Membership(self, self._mailbox, order, LocalTrainer(Task(self._bundle, order.task), order))
        self._mailbox.report(self._membership.prepared())

    def _member(self, order: Order | GiveState | FilePart) -> Membership:
        if self._membership is None:
            raise MalformedMessage(f"{type(order).__name__} before the model was built")
        return self._membership

    def _hear(self, message: ToWorkerMessage, payload: bytes) -> None:
        if isinstance(message, BundleReady):
            self._bundle_ready = True
        elif isinstance(message, FromMember):
            self._hear_member(message.rank, payload)
        elif isinstance(message, Control):
            self._hear_coordinator(payload)
        else:
            raise MalformedMessage(f"{type(message).__name__} after the start")

    def _hear_coordinator(self, payload: bytes) -> None:
        frame = split_frame(payload)
        order: ToWorkerTraining = decode(frame.header, ToWorkerTraining, HEADER_LIMIT)
        if isinstance(order, GiveState):
            self._member(order).give_state(order.to)
        elif isinstance(order, FilePart):
            self._member(order).hear_file(None, order, frame.payload)
        else:
            self._orders.append(order)

    def _hear_member(self, rank: int, payload: bytes) -> None:
        if self._membership is None:
            return
        try:
            frame = split_frame(payload)
            part: BetweenMembers = decode(frame.header, BetweenMembers, HEADER_LIMIT)
            if isinstance(part, SlicePart):
                self._membership.hear_slice(rank, part, frame.payload)
            else:
                self._membership.hear_file(rank, part, frame.payload)
        except PeerMisbehaved as error:
            # It has changed nothing. When a round cannot end without it, the coordinator's deadline ends the round.
            print(f"from member {rank}, not taken: {error.message}", file=sys.stderr)
