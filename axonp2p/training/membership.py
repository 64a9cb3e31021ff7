"""One worker's membership in one job: the states it holds, and how it carries out the coordinator's orders.

Two states are held at most: the accepted one, and the candidate that the last finished round led to. The next order
names one of them. The candidate: the round counts. The accepted one: the round is redone.
"""

from __future__ import annotations

import hashlib
import sys
import time
from collections.abc import Iterable
from typing import Protocol

from torch import Tensor

from axonp2p.errors import MalformedMessage, PeerMisbehaved
from axonp2p.tensors.frames import BYTES_A_VALUE
from axonp2p.training.early_parts import EarlyParts
from axonp2p.training.exchange import Outgoing, SliceExchange
from axonp2p.training.file_parts import Assembly, cut
from axonp2p.training.local_trainer import LocalSteps, LocalTrainer
from axonp2p.training.mailbox import Mailbox
from axonp2p.training.messages import (
    AdoptState,
    FilePart,
    Prepare,
    Prepared,
    Progress,
    RoundDone,
    SendFile,
    SlicePart,
    StartRound,
    StateAdopted,
)
from axonp2p.training.outer_optimizer import State, outer_step, state_from_file, state_values
from axonp2p.wire.codec import encode

PROGRESS_SECONDS = 0.5


class Attention(Protocol):
    """How a membership listens while it works; what arrives comes back to it through `hear_slice`, `hear_file`."""

    def wait(self) -> None:
        """Hear one message."""

    def interrupted(self) -> bool:
        """Hear what has arrived; True when another order is among it."""

    @property
    def ordered(self) -> bool:
        """True when another order waits."""


class Membership:
    """What a worker is in a job, from `Prepare` on. Orders raise `TaskMistake`, or `MalformedMessage` for nonsense."""

    def __init__(self, attention: Attention, mailbox: Mailbox, prepare: Prepare, trainer: LocalTrainer) -> None:
        self._attention = attention
        self._mailbox = mailbox
        self._rank = prepare.rank
        self._batch = prepare.batch
        self._trainer = trainer
        self._accepted = trainer.first_state()
        self._candidate: State | None = None
        # The most is sent by the other one of two: its values of our half, and the result of its own half.
        self._early = EarlyParts((trainer.layout.values + 1) * BYTES_A_VALUE)
        self._exchange: SliceExchange | None = None
        self._wanted = (0, 0)
        """Parts of earlier rounds and attempts than this are of no use any more."""
        self._sent = self._received = 0
        self._files: dict[int | None, Assembly] = {}

    def prepared(self) -> Prepared:
        """What the coordinator wants to know of the model."""
        layout = self._trainer.layout
        return Prepared(state=self._accepted.name, parameters=layout.parameters, values=layout.values)

    def give_state(self, to: int) -> None:
        """Send the accepted state to a member."""
        for part, payload in cut("state", self._accepted.file, self._accepted.name):
            self._mailbox.tell(to, part, payload)

    def send_file(self, order: SendFile) -> None:
        """Send the model or the state to the coordinator."""
        self._go_on_from(order.state)
        if order.what == "model":
            file = self._trainer.model_file(self._accepted)
            parts = cut("model", file, hashlib.sha256(file).digest())
        else:
            parts = cut("state", self._accepted.file, self._accepted.name)
        for part, payload in parts:
            self._mailbox.report(part, payload)

    def adopt(self, order: AdoptState) -> None:
        """Wait for a state and take it over, unless another order comes first."""
        while self._accepted.name != order.state:
            assembly = self._files.get(order.sender)
            if assembly is None or not assembly.complete:
                if self._attention.ordered:
                    return
                self._attention.wait()
                continue
            del self._files[order.sender]
            if assembly.sha256 == order.state:
                self._accepted = state_from_file(assembly.file(), self._trainer.layout)
        self._candidate = None
        self._files.clear()
        self._mailbox.report(StateAdopted(state=order.state))

    def hear_file(self, sender: int | None, part: FilePart, payload: memoryview) -> None:
        """The next part of a state, which may come before the order to adopt it. Raises `PeerMisbehaved`."""
        if part.what != "state":
            raise PeerMisbehaved(f"a {part.what} file that nobody asked for")
        if part.offset == 0:
            size = state_values(self._trainer.layout) * BYTES_A_VALUE
            self._files[sender] = Assembly("the coordinator" if sender is None else f"rank {sender}", size, part.sha256)
        if sender not in self._files:
            raise PeerMisbehaved("a part of a state whose beginning is missing")
        self._files[sender].add(part, payload)

    def hear_slice(self, sender: int, part: SlicePart, payload: memoryview) -> None:
        """A part of an exchange: of the one that goes on, or of one that is yet to come. Raises `PeerMisbehaved`."""
        key = (part.round, part.attempt)
        if key < self._wanted:
            return
        if self._exchange is None or key > self._wanted:
            self._early.keep(sender, part, payload)
        else:
            self._take(self._exchange, sender, part, payload)

    def train(self, start: StartRound) -> None:
        """One round: local steps, exchange, outer step; abandoned as soon as another order comes."""
        if self._rank not in start.members or len(set(start.members)) != len(start.members):
            raise MalformedMessage("a round whose members are twice in it, or without this one")
        self._go_on_from(start.state)
        self._wanted = (start.round, start.attempt)
        local = self._trainer.train(self._accepted, start, _ProgressReports(self._mailbox, self._attention, start))
        if local is None:
            return
        begun = time.monotonic()
        mean = self._meet(start, local)
        if mean is None:
            return
        candidate = outer_step(self._accepted, mean)
        exchanged = time.monotonic() - begun
        metrics, test_samples = self._trainer.evaluate(candidate, start.shards)
        self._candidate = candidate
        self._mailbox.report(
            RoundDone(
                round=start.round,
                attempt=start.attempt,
                state=candidate.name,
                loss=local.loss,
                samples=local.samples,
                flops=local.flops,
                train_seconds=local.seconds,
                exchange_seconds=exchanged,
                sent_bytes=self._sent,
                received_bytes=self._received,
                metrics=metrics,
                test_samples=test_samples,
            )
        )

    def _meet(self, start: StartRound, local: LocalSteps) -> Tensor | None:
        """The mean difference of all members; None when another order came first."""
        self._sent = self._received = 0
        exchange = SliceExchange(self._rank, start, local.delta, local.samples, start.steps * self._batch)
        self._exchange = exchange
        self._say(exchange.outgoing())
        for early in self._early.take(start):
            try:
                self._take(exchange, *early)
            except PeerMisbehaved as error:
                print(f"from member {early.sender}, not taken: {error.message}", file=sys.stderr)
        try:
            while not exchange.complete:
                if self._attention.ordered:
                    return None
                self._attention.wait()
        finally:
            self._exchange = None
            self._wanted = (start.round, start.attempt + 1)
        return exchange.mean()

    def _take(self, exchange: SliceExchange, sender: int, part: SlicePart, payload: bytes | memoryview) -> None:
        answers = exchange.receive(sender, part, payload)
        self._received += _frame_bytes(part, payload)
        self._say(answers)

    def _say(self, parts: Iterable[Outgoing]) -> None:
        for to, part, payload in parts:
            self._sent += _frame_bytes(part, payload)
            self._mailbox.tell(to, part, payload)

    def _go_on_from(self, state: bytes) -> None:
        if self._candidate is not None and state == self._candidate.name:
            self._accepted = self._candidate
            self._trainer.accept()
        elif state == self._accepted.name:
            self._trainer.put_back()
        else:
            ours = self._accepted.name.hex()
            raise MalformedMessage(f"asked to go on from state {state.hex()[:12]}, but the accepted one is {ours[:12]}")
        self._candidate = None


class _ProgressReports:
    """Between steps: tell how far we are, at most twice a second and at the end, and listen for other orders."""

    def __init__(self, mailbox: Mailbox, attention: Attention, start: StartRound) -> None:
        self._mailbox = mailbox
        self._attention = attention
        self._start = start
        self._next = 0.0

    def __call__(self, step: int, loss: float, samples: int) -> bool:
        now = time.monotonic()
        # The last one is always said: from it the coordinator knows who keeps the exchange waiting.
        if now >= self._next or step == self._start.steps:
            self._next = now + PROGRESS_SECONDS
            start = self._start
            self._mailbox.report(
                Progress(round=start.round, attempt=start.attempt, step=step, loss=loss, samples=samples)
            )
        return self._attention.interrupted()


def _frame_bytes(part: SlicePart, payload: bytes | memoryview) -> int:
    return 4 + len(encode(part)) + len(payload)
