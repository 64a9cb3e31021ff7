"""A finished job's weights: those of the accepted state, which is on this disk."""

from __future__ import annotations

import hashlib
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import safetensors.torch

from axonp2p.errors import JobFailed
from axonp2p.kinds.train.job_end import JobEnd
from axonp2p.training.coordinator.crew import TrainingResult
from tests.unit.kinds.train.kept_job import KeptJob


def end_of(kept: KeptJob, result: TrainingResult) -> JobEnd:
    nothing: Any = None
    coordinator: Any = SimpleNamespace(result=result)
    return JobEnd(kept.books, coordinator, nothing, nothing)


def test_the_weights_are_those_of_the_accepted_state(tmp_path: Path) -> None:
    kept = KeptJob(tmp_path)
    kept.train(4)
    state = kept.state_after(4)
    files = end_of(kept, TrainingResult(4, state.name, [0], trained=True))._write_files()
    file = kept.folder.model.read_bytes()
    assert file == safetensors.torch.save(kept.weights_after(4))
    assert files["model_sha256"] == hashlib.sha256(file).hexdigest()


def test_without_that_state_the_job_is_to_be_resumed(tmp_path: Path) -> None:
    kept = KeptJob(tmp_path)
    kept.train(4)
    state = kept.state_after(4)
    for rounds, name in ((5, state.name), (4, b"x" * 32)):
        with pytest.raises(JobFailed, match="is not on this disk") as caught:
            end_of(kept, TrainingResult(rounds, name, [0], trained=True))._write_files()
        assert (caught.value.cause, caught.value.fix) == ("every peer that held it has gone", "axon resume line-1")
    found = kept.books.checkpoints.find(4, state.name)
    assert found
    found.path.write_bytes(found.path.read_bytes()[:-1] + b"x")
    with pytest.raises(JobFailed) as caught:
        end_of(kept, TrainingResult(4, state.name, [0], trained=True))._write_files()
    assert caught.value.cause == f"{found.path.name} is damaged"
    assert not kept.folder.model.exists(), "nothing is left behind"
