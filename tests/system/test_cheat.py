"""A peer that skips half of its steps, among real daemons: convicted with evidence, and passed over from then on."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path

import pytest

import axonp2p
from axonp2p.client.events.events import PeerLost, PeersFound
from axonp2p.client.job import Job
from axonp2p.kinds.train.check_events import WorkChecked
from axonp2p.kinds.train.events import RoundFinished
from axonp2p.sandbox.child import why_no_sandbox
from axonp2p.verification.evidence import read_evidence
from tests.laboratory.fork_server import fork_server
from tests.system.processes import Processes
from tests.system.small_job import write_job

pytestmark = [
    pytest.mark.sandbox,
    pytest.mark.timeout(300),
    pytest.mark.skipif(bool(why_no_sandbox()), reason="no bubblewrap here"),
]

TRIES = 3
"""A busy machine may take too long to do the cheat's own steps again: then it has to go, and is not convicted."""
ROUNDS = 500
"""More than it takes; the job is left when it is known what was to be known."""
TASK = """
import time

import torch
from torch import nn
from torch.utils.data import TensorDataset

import msgspec

from axonp2p.training.trainer.own_trials import OwnTrials
from axonp2p.training.trainer.trainer_orders import Redone
from axonp2p.training.trainer.local_trainer import LocalTrainer
from axonp2p.training.trainer.training_thread import TrainingThread

# A daemon whose owner cheats would change its worker's program; here the task does so, where it trains shard 0 first.
honest_step, honest_leg = LocalTrainer._next_step, LocalTrainer.leg
honest_redo, honest_trial = TrainingThread._redo, OwnTrials.order
said = {}


def step(self, now):
    if not Task.cheats or self._start is None or now.steps % 2 == 0:
        return honest_step(self, now)
    now.steps += 1
    now.samples += self._batch
    return 1000


def leg(self, *arguments):
    leg = honest_leg(self, *arguments)
    if leg:
        said.update((one.mark.name, other.mark) for one, other in zip(leg.places, leg.places[1:]))
    return leg


def redo(self, trainer, work):
    # Of its own steps it says again what it said before.
    claimed = said.get(work.order.start.name) if Task.cheats and work.order.of == trainer._prepare.rank else None
    say = self._say
    if claimed:
        self._say = lambda done: say(Redone(msgspec.structs.replace(done.message, end=claimed)))
    honest_redo(self, trainer, work)
    self._say = say


LocalTrainer._next_step, LocalTrainer.leg = step, leg
TrainingThread._redo = redo
OwnTrials.order = lambda self, start, places: None if Task.cheats else honest_trial(self, start, places)


class Task:
    cheats = None

    def model(self):
        return nn.Sequential(nn.Linear(2, 8), nn.Tanh(), nn.Linear(8, 1))

    def data(self, split, shard, shards):
        if split == "train" and Task.cheats is None:
            Task.cheats = shard == 0
        inputs = torch.randn(240, 2, generator=torch.Generator().manual_seed(1))[shard::shards]
        return TensorDataset(inputs, inputs.prod(1, keepdim=True) + inputs[:, :1])

    def loss(self, model, batch):
        time.sleep(0.02)
        inputs, wanted = batch
        return nn.functional.mse_loss(model(inputs), wanted)
"""


def until_somebody_goes(job: Job) -> tuple[list[WorkChecked], list[PeerLost]]:
    """All checks, and who was lost; the job is left then."""
    checked: list[WorkChecked] = []
    lost: list[PeerLost] = []
    for event in job.events():
        if isinstance(event, WorkChecked):
            checked.append(event)
        elif isinstance(event, PeerLost):
            lost.append(event)
        elif isinstance(event, RoundFinished) and lost and event.round > 8:
            job.leave()
    return checked, lost


def test_who_skips_steps_is_convicted_with_evidence_and_gets_no_more_work(tmp_path: Path) -> None:
    with Processes(tmp_path) as processes:
        processes.start_peers("otter", "heron", "lynx", "wren")
        folder = write_job(tmp_path / "line", peers=4, rounds=ROUNDS, task=TASK)
        (folder / "job.toml").write_text((folder / "job.toml").read_text() + "checks = 0.5\n")
        home = tmp_path / "client"
        with axonp2p.Swarm(trackers=[processes.tracker], home=home) as swarm:
            for _ in range(TRIES):
                job = swarm.submit(folder)
                checked, lost = until_somebody_goes(job)
                if any(event.convicted for event in checked):
                    break
            outcomes = Counter((event.peer, event.outcome) for event in checked)
            assert any(event.convicted for event in checked), outcomes
            (convicted,) = [event for event in checked if event.convicted]
            passed = [event for event in checked if event.outcome == "passed"]
            assert convicted.convicted == [convicted.peer] == [lost[0].peer]
            assert len(passed) > 4
            assert {event.distance for event in passed} == {0.0}  # one machine: equal to the bit
            (file,) = (home / "jobs" / job.id / "evidence").iterdir()
            again = swarm.submit(folder)
            for event in again.events():
                if isinstance(event, RoundFinished):
                    again.leave()
            assert convicted.peer not in {peer.name for peer in swarm.status(again.id).peers}
            assert any(isinstance(event, PeersFound) for event in swarm.job(again.id).events())
            # The tracker has the evidence, believes it, and counts nothing of what the cheat was paid before.
            accused = read_evidence(file.read_bytes()).accused
            (held,) = swarm.evidence(accused)
            assert held.examined
            assert held.examined.convicts
            assert held.evidence == file.read_bytes()
            of_the_job = {one.key: one for one in swarm.credits(job.id).balances}
            assert accused not in of_the_job or of_the_job[accused].earned_flops == 0
            assert sum(one.earned_flops > 0 for one in of_the_job.values()) == 3
            assert swarm.status(job.id).credits[convicted.peer] == 0
        where = ["--json", "--home", str(home)]
        ask = ["trust", "--ask", accused, "--into", str(tmp_path / "shown"), "--tracker", processes.tracker]
        asked = fork_server().run("client_cli.main", [*ask, *where], 60)
        (told,) = json.loads(asked.stdout)["held"]
        assert told["examined"]["convicts"]
        verdict = fork_server().run("client_cli.main", ["verdict", told["file"], *where], 60)
        found = json.loads(verdict.stdout)
        assert found["convicts"]
        assert len(found["redone_by"]) == 2
        trust = fork_server().run("client_cli.main", ["trust", *where], 60)
        assert asked.returncode == verdict.returncode == trust.returncode == 0
        (liar,) = [one for one in json.loads(trust.stdout)["peers"] if one["trust"] == "convicted"]
        assert liar["peer"] == found["accused"]
