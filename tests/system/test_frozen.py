"""Adapters on frozen weights, at peers whose `model()` does not make the same: one file of them goes round, once.

What the peers make follows from a file that each owner lends, as elsewhere from processors and libraries.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import tomlkit
import torch
from safetensors.torch import load_file
from torch import nn

import axonp2p
from axonp2p.client.events.events import JobFinished, PeerHired
from axonp2p.kinds.train.events import PeerJoined, RoundFinished
from axonp2p.sandbox.child import why_no_sandbox
from tests.system.processes import Processes
from tests.system.small_job import write_job

pytestmark = [
    pytest.mark.sandbox,
    pytest.mark.timeout(900),
    pytest.mark.skipif(bool(why_no_sandbox()), reason="no bubblewrap here"),
]

TASK = """
import time
from pathlib import Path

import torch
from torch import nn
from torch.utils.data import TensorDataset


class Task:
    def model(self):
        chance = torch.Generator().manual_seed(int(Path("/data/base/seed").read_text()))
        model = nn.ModuleDict({"base": nn.Linear(256, 512, bias=False), "adapter": nn.Linear(256, 1)})
        model["base"].requires_grad_(False)
        model["base"].weight.copy_(torch.randn(512, 256, generator=chance))
        nn.init.zeros_(model["adapter"].weight)
        nn.init.zeros_(model["adapter"].bias)
        return model

    def data(self, split, shard, shards):
        inputs = torch.linspace(-1, 1, 24 * 256).reshape(24, 256)[shard::shards]
        return TensorDataset(inputs, inputs.sum(1, keepdim=True))

    def loss(self, model, batch):
        time.sleep(PAUSE)
        inputs, wanted = batch
        return (model["base"](inputs).mean() * 1e-6 + model["adapter"](inputs) - wanted).square().mean()

    def optimizer(self, model):
        return torch.optim.SGD((one for one in model.parameters() if one.requires_grad), lr=1e-4)
"""
BASE_BYTES = 512 * 256 * 4
ROUNDS = 400
"""More than the first life of the job takes."""


def lend(base: Path, name: str, seed: int) -> None:
    """A peer's settings, and the file from which its weights follow."""
    (base / name / "lent").mkdir(parents=True)
    (base / name / "lent" / "seed").write_text(str(seed))
    settings = {"peer": {"datasets": {"base": str(base / name / "lent")}}}
    (base / name / "config.toml").write_text(tomlkit.dumps(settings))


def adapters(folder: Path, **numbers: Any) -> Path:
    """The job's folder."""
    write_job(folder, peers=3, task=TASK, **numbers)
    toml = (folder / "job.toml").read_text()
    (folder / "job.toml").write_text(toml.replace("[need]", '[need]\ndatasets = ["base"]'))
    return folder


def base_of(seed: int) -> torch.Tensor:
    return torch.randn(512, 256, generator=torch.Generator().manual_seed(seed))


def test_who_makes_other_weights_takes_those_of_the_job_in_every_life_of_it(tmp_path: Path) -> None:
    for name, seed in {"otter": 1, "heron": 1, "lynx": 2, "wren": 3}.items():
        lend(tmp_path, name, seed)
    with Processes(tmp_path) as processes:
        processes.start_peers("otter", "heron", "lynx")
        with axonp2p.Swarm(trackers=[processes.tracker], home=tmp_path / "client") as swarm:
            job = swarm.submit(adapters(tmp_path / "line", least=2, wait="5 min", rounds=ROUNDS, pause=0.02))
            joined, after = False, 0
            for event in job.events():
                if isinstance(event, RoundFinished) and event.round == 0:
                    assert len(event.peers) == 3, "the one with other weights trains as all others"
                    processes.start_peers("wren")
                    processes.kill("heron")
                elif isinstance(event, PeerJoined):
                    assert event.peer == "wren"
                    joined = True
                elif isinstance(event, RoundFinished) and joined and (after := after + 1) == 2:
                    assert "wren" in event.peers
                    job.leave()
            left = job.record
            states = sorted((job.folder / "states").iterdir())
            assert [file.name[:7] for file in states[-1:]] == ["frozen-"]
            assert states[-1].stat().st_size - BASE_BYTES < 4096
            assert max(file.stat().st_size for file in states[:-1]) < 2 * 4 * 257 + 4096
            assert (frozen_in(states[-1]) == base_of(1)).all()

            processes.kill("otter")  # nobody is left that makes the weights of the job
            again = swarm.resume(job.id)
            events = []
            for event in again.events():
                events.append(event)
                if isinstance(event, RoundFinished) and event.round >= left.round + 1:
                    again.leave()
            assert {event.peer for event in events if isinstance(event, PeerHired)} == {"lynx", "wren"}
            assert next(event.round for event in events if isinstance(event, RoundFinished)) == left.round
            assert not isinstance(events[-1], JobFinished)
            assert (frozen_in(sorted((job.folder / "states").iterdir())[-1]) == base_of(1)).all()


def frozen_in(file: Path) -> torch.Tensor:
    return load_file(file)["frozen"].view(torch.float32).view(512, 256)


def test_the_weights_load_into_a_plain_model(tmp_path: Path) -> None:
    for name, seed in {"otter": 2, "heron": 1, "lynx": 1}.items():
        lend(tmp_path, name, seed)
    with Processes(tmp_path) as processes:
        processes.start_peers("otter", "heron", "lynx")
        with axonp2p.Swarm(trackers=[processes.tracker], home=tmp_path / "client") as swarm:
            job = swarm.submit(adapters(tmp_path / "line", rounds=2))
            assert isinstance(job.wait(), JobFinished)
            weights = job.fetch()
            assert not (job.folder / "states").exists()
    model = nn.ModuleDict({"base": nn.Linear(256, 512, bias=False), "adapter": nn.Linear(256, 1)})
    model.load_state_dict(weights)
    assert (model["base"].weight == base_of(1)).all()
    assert model["adapter"].weight.count_nonzero() > 0
