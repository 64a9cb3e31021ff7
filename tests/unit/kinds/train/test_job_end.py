"""A finished job's weights: those of the accepted state, which is on this disk."""

from __future__ import annotations

import hashlib
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import safetensors.torch
from torch import nn

from axonp2p.client.storage.checkpoints import Checkpoints
from axonp2p.errors import JobFailed
from axonp2p.kinds.train.job_end import JobEnd
from axonp2p.tensors import flat
from axonp2p.tensors.frozen import FrozenTensors
from axonp2p.training.coordinator.crew import TrainingResult
from axonp2p.training.state_transfer.checkpoint_file import Model
from axonp2p.training.state_transfer.model_layout import read_layout
from axonp2p.training.trainer.file_layout import file_layout
from axonp2p.training.trainer.outer_optimizer import State, first_state

NET = nn.Sequential(nn.Linear(3, 2), nn.Linear(2, 2).requires_grad_(False))
LAYOUT = flat.layout_of(NET)
MODEL = Model(LAYOUT.parameters, LAYOUT.values, LAYOUT.frozen_bytes, LAYOUT.bounds["frozen"].start)
FROZEN = FrozenTensors(flat.frozen_tensors(NET, LAYOUT))


@pytest.fixture
def state() -> State:
    return first_state(flat.read(NET, LAYOUT), LAYOUT)


@pytest.fixture
def kept(state: State, tmp_path: Path) -> Checkpoints:
    checkpoints = Checkpoints(tmp_path / "states", "job-1", 2)
    for arriving, data in (
        (checkpoints.room(4, state.name, MODEL), state.file),
        (checkpoints.frozen_room(FROZEN.name, len(FROZEN)), bytes(FROZEN[:])),
    ):
        assert arriving
        arriving.data[:] = data
        arriving.put()
    return checkpoints


def end_of(kept: Checkpoints, result: TrainingResult, folder: Path) -> JobEnd:
    nothing: Any = None
    journal = SimpleNamespace(
        folder=SimpleNamespace(model=folder / "model.safetensors"), record=SimpleNamespace(id="job-1")
    )
    books: Any = SimpleNamespace(checkpoints=kept, journal=journal, record=journal.record)
    told = read_layout(file_layout(NET, LAYOUT), MODEL)
    coordinator: Any = SimpleNamespace(model=MODEL, file_layout=told, result=result)
    return JobEnd(books, coordinator, nothing, nothing)


def test_the_weights_are_those_of_the_accepted_state(kept: Checkpoints, state: State, tmp_path: Path) -> None:
    sha256 = end_of(kept, TrainingResult(4, state.name, [0], trained=True), tmp_path)._write_model()
    file = (tmp_path / "model.safetensors").read_bytes()
    assert file == safetensors.torch.save(NET.state_dict())
    assert sha256 == hashlib.sha256(file).digest()


def test_without_its_frozen_parameters_there_are_no_weights(kept: Checkpoints, state: State, tmp_path: Path) -> None:
    found = kept.frozen(FROZEN.name)
    assert found
    result = TrainingResult(4, state.name, [0], trained=True)
    found.path.write_bytes(found.path.read_bytes()[:-1] + b"x")
    with pytest.raises(JobFailed, match="frozen parameters of the model are not on this disk") as caught:
        end_of(kept, result, tmp_path)._write_model()
    assert (caught.value.cause, caught.value.fix) == (f"{found.path.name} is damaged", "axon resume job-1")
    found.path.unlink()
    with pytest.raises(JobFailed) as caught:
        end_of(kept, result, tmp_path)._write_model()
    assert caught.value.cause == "their file is not there any more"


def test_without_that_state_the_job_is_to_be_resumed(kept: Checkpoints, state: State, tmp_path: Path) -> None:
    for rounds, name in ((5, state.name), (4, b"x" * 32)):
        with pytest.raises(JobFailed, match="is not on this disk") as caught:
            end_of(kept, TrainingResult(rounds, name, [0], trained=True), tmp_path)._write_model()
        assert (caught.value.cause, caught.value.fix) == ("every peer that held it has gone", "axon resume job-1")
    found = kept.find(4, state.name)
    assert found
    found.path.write_bytes(found.path.read_bytes()[:-1] + b"x")
    with pytest.raises(JobFailed) as caught:
        end_of(kept, TrainingResult(4, state.name, [0], trained=True), tmp_path)._write_model()
    assert caught.value.cause == f"{found.path.name} is damaged"
    assert [one.name for one in tmp_path.iterdir()] == ["states"], "nothing is left behind"
