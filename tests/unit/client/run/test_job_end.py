"""What a finished job's weights are compared with."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import torch
from torch import nn

from axonp2p.client.run.job_end import JobEnd
from axonp2p.client.storage.checkpoints import Checkpoints
from axonp2p.tensors import flat
from axonp2p.training.coordinator.crew import TrainingResult
from axonp2p.training.state_transfer.checkpoint_file import Model
from axonp2p.training.trainer.local_trainer import model_file
from axonp2p.training.trainer.outer_optimizer import first_state


async def test_the_weights_are_compared_with_the_accepted_state_on_the_disk(tmp_path: Path) -> None:
    net = nn.Linear(3, 2)
    layout = flat.layout_of(net)
    state = first_state(flat.read(net, layout), layout)
    model = Model(layout.parameters, layout.values)
    checkpoints = Checkpoints(tmp_path / "states", "job-1", 2)
    arriving = checkpoints.room(4, state.name, model)
    arriving.data[:] = state.file
    arriving.put()
    nothing: Any = None
    parts: Any = SimpleNamespace(checkpoints=checkpoints, account=None)
    tally: Any = SimpleNamespace(crew=None)
    coordinator: Any = SimpleNamespace(model=model)
    end = JobEnd(parts, coordinator, tally, nothing, nothing, nothing)
    file = tmp_path / "model"
    file.write_bytes(model_file(net, layout))
    fits = await end._accepted(TrainingResult(4, state.name, [0], trained=True))
    assert fits
    assert fits(file)
    with torch.no_grad():
        net.bias[0] += 1
    file.write_bytes(model_file(net, layout))
    assert not fits(file)
    assert await end._accepted(TrainingResult(5, b"x" * 32, [0], trained=True)) is None, "it is not here"
