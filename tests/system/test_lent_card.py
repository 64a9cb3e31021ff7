"""A peer that lends a real GPU: jobs compute on it, and its owner has it back. Not run where there is no card."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

import axonp2p
from axonp2p.client.job import Job
from axonp2p.errors import AxonError
from axonp2p.kinds.train.events import RoundFinished
from peer_daemon.gpus.nvml import see_gpus
from peer_daemon.lending.lent_gpus import gpus_to_lend
from tests.system.processes import Processes
from tests.system.small_job import TASK, write_command, write_job
from tests.system.test_owner_is_back import ask, until

pytestmark = [pytest.mark.gpu, pytest.mark.sandbox, pytest.mark.timeout(180)]

LENT_MB = 4096
"""Of the card's memory: less than any card has that this is run on."""
PATIENCE_S = 60.0
COMPUTE = """
    import json, os, pathlib, torch
    found = torch.randn(1024, 1024, device="cuda")
    names = [torch.cuda.get_device_name(number) for number in range(torch.cuda.device_count())]
    said = {"names": names, "finite": bool(torch.isfinite(found @ found).all())}
    pathlib.Path(os.environ["AXON_OUT"], "seen.txt").write_text(json.dumps(said))
"""
TAKE_TOO_MUCH = """
    import time, torch
    found = torch.ones(6 * 2**30, dtype=torch.uint8, device="cuda")
    torch.cuda.synchronize()
    time.sleep(120)
"""
OWNERS_PROGRAM = """
import time, torch
held = torch.ones(2**20, device="cuda")
torch.cuda.synchronize()
print("computes", flush=True)
time.sleep(120)
"""
TELLS_WHERE = TASK.replace(
    'return {"error":', 'return {"on_card": float(next(model.parameters()).is_cuda), "error":'
).replace("nn.Linear(2, 1)", "nn.Sequential(nn.Linear(2, 16), nn.Tanh(), nn.Linear(16, 1))")


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    seen = see_gpus()
    if not gpus_to_lend(seen, allowed=True, memory_mb=0):
        pytest.skip(f"no card can be lent here: {seen.unseen or seen}")
    return tmp_path_factory.mktemp("card")


@pytest.fixture(scope="module")
def swarm(home: Path) -> Iterator[axonp2p.Swarm]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("AXON_PEER_GPU", "true")
        patch.setenv("AXON_PEER_GPU_MEMORY_MB", str(LENT_MB))
        with Processes(home, warm=False) as running:
            running.begin_peer("otter", lent=("--cores", "2", "--memory", "6000"))
            running.wait_for_peer("otter")
            with axonp2p.Swarm(trackers=[running.tracker], home=home / "client") as swarm:
                yield swarm


def run(swarm: axonp2p.Swarm, folder: Path, program: str) -> Job:
    return swarm.submit(write_command(folder, program, 'memory = "4 GiB"\ngpu-memory = "2 GiB"', "attempts = 1"))


def train(swarm: axonp2p.Swarm, folder: Path, rounds: int, pause: float) -> Job:
    write_job(folder, peers=1, rounds=rounds, pause=pause, task=TELLS_WHERE)
    job = (folder / "job.toml").read_text()
    (folder / "job.toml").write_text(job.replace('memory = "800 MiB"', 'memory = "4 GiB"\ngpu-memory = "2 GiB"'))
    return swarm.submit(folder)


def test_a_command_computes_on_the_card(swarm: axonp2p.Swarm, tmp_path: Path) -> None:
    job = run(swarm, tmp_path / "job", COMPUTE)
    job.wait(120)
    said = json.loads((job.folder / "out/0/seen.txt").read_text())
    assert said["finite"]
    assert said["names"] == [see_gpus().cards[0].name]


def test_a_model_learns_on_the_card_and_comes_home(swarm: axonp2p.Swarm, tmp_path: Path) -> None:
    job = train(swarm, tmp_path / "job", rounds=6, pause=0.0)
    rounds = [event for event in job.events() if isinstance(event, RoundFinished)]
    job.wait(120)
    assert len(rounds) == 6
    assert [event.metrics["on_card"] for event in rounds] == [1.0] * 6
    assert rounds[-1].metrics["error"] < rounds[0].metrics["error"]
    assert (job.folder / "model.safetensors").exists()


def test_a_worker_that_takes_too_much_of_the_card_is_ended(swarm: axonp2p.Swarm, tmp_path: Path) -> None:
    job = run(swarm, tmp_path / "job", TAKE_TOO_MUCH)
    said = []
    try:
        said += [str(event) for event in job.events()]
    except AxonError as error:
        said.append(f"{error}: {error.cause}")
    assert any(f"of the GPU's memory where {LENT_MB} MiB are allowed" in one for one in said), said


def test_an_owner_whose_program_computes_on_the_card_has_it_back(
    swarm: axonp2p.Swarm, home: Path, tmp_path: Path
) -> None:
    job = train(swarm, tmp_path / "job", rounds=100, pause=0.2)
    for event in job.events():
        if isinstance(event, RoundFinished):
            break
    assert [held.gpu for held in ask(home / "otter").jobs] == [see_gpus().cards[0].name]
    command = [sys.executable, "-c", OWNERS_PROGRAM]
    with subprocess.Popen(command, stdout=subprocess.PIPE, env=dict(os.environ), text=True) as owners:
        try:
            assert owners.stdout
            assert owners.stdout.readline() == "computes\n"
            began = time.monotonic()
            until(home / "otter", lambda status: not status.jobs, "the job still has the card")
            assert time.monotonic() - began < PATIENCE_S
        finally:
            owners.kill()
    job.cancel()
