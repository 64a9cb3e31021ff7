"""A training as it lies on a disk after some rounds: real states of a small model, real books, no peers."""

from __future__ import annotations

from functools import cache
from pathlib import Path

import msgspec
import torch
from torch import Tensor, nn

from axonp2p.client.events.events import Event
from axonp2p.client.storage.job_journal import JobJournal
from axonp2p.client.storage.job_store import JobFolder, JobStore
from axonp2p.jobs.lifecycle import JobState
from axonp2p.kinds.train.events import RoundFinished
from axonp2p.kinds.train.kept.model_files import keep_layout
from axonp2p.kinds.train.record import AheadRound, TrainRecord
from axonp2p.kinds.train.round_commits import RoundCommits
from axonp2p.kinds.train.section import TrainJob, TrainSpec
from axonp2p.tensors import flat
from axonp2p.tensors.checkpoint_file import Model
from axonp2p.training.state_transfer.model_layout import read_layout
from axonp2p.training.trainer.file_layout import file_layout
from axonp2p.training.trainer.outer_optimizer import State, first_state
from tests.fakes import AtOnce, ManualClock
from tests.unit.training.conversation import round_done

JOB = "line-1"


@cache
def _net(rounds: int) -> nn.Linear:
    torch.manual_seed(rounds)
    return nn.Linear(3, 2)


class KeptJob:
    """One job, whose program may die at any moment: `KeptJob(home)` again is its next one."""

    def __init__(self, home: Path, **train: object) -> None:
        store = JobStore(home)
        if not store.has(JOB):
            spec = msgspec.convert({"rounds": 40, **train}, TrainSpec)
            job = TrainJob(name="line", train=spec)
            record = TrainRecord(
                id=JOB, name="line", folder="/line", spec=msgspec.to_builtins(job), state=JobState.RUNNING, created=0.0,
                updated=0.0, peers_wanted=2, rounds=40,
            )  # fmt: skip
            store.create(record)
        self.folder: JobFolder = store.find(JOB)
        self.told: list[Event] = []
        self.journal = JobJournal(self.folder, self.folder.read(), ManualClock(), self.told.append, AtOnce())
        keep = int(train.get("keep_states", 2))  # type: ignore[call-overload]
        self.books = RoundCommits(self.journal, self.folder.checkpoints(keep))

    @property
    def record(self) -> TrainRecord:
        """As it lies there."""
        record = self.folder.read()
        assert isinstance(record, TrainRecord)
        return record

    def train(self, rounds: int, loss: float = 0.5, **metrics: float) -> None:
        """One more round, after which there are so many, is accepted; its state comes, and it enters the books."""
        layout = flat.layout_of(_net(0))
        model = Model(layout.parameters, layout.values)
        keep_layout(self.journal, read_layout(file_layout(_net(0), layout), model), model)
        state = self.state_after(rounds)
        arriving = self.books.checkpoints.room(rounds, state.name, model)
        arriving.data[:] = state.file
        arriving.put()
        finished = RoundFinished(
            round=rounds - 1, rounds=40, loss=loss, metrics=metrics, samples=80, samples_per_second={}, seconds=1.0,
            wire_bytes=100 * rounds, credits=0.5, eta_s=1.0,
        )  # fmt: skip
        reports = {0: round_done(rounds - 1, 0, state.name)}
        self.books.accepted(AheadRound(finished=finished, state=state.name.hex(), round_bytes=100, reports=reports))
        self.books.book(rounds - 1, state.name, {"otter": 0.5})

    def leave(self, state: JobState = JobState.PAUSED) -> None:
        """No program works on it from now on."""
        self.journal.enter(state)

    def state_after(self, rounds: int) -> State:
        """What so many rounds come to."""
        layout = flat.layout_of(_net(0))
        return first_state(flat.read(_net(rounds), layout), layout)

    def weights_after(self, rounds: int) -> dict[str, Tensor]:
        """The same as people want it."""
        return dict(_net(rounds).state_dict())

    @property
    def kept(self) -> list[int]:
        """Of how many rounds each state is that is kept, the newest first."""
        return [one.rounds for one in self.books.checkpoints.all()]
