"""A peer is killed in the middle of a job: another one is hired, fetches the weights from the rest, and trains on."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import axonp2p
from axonp2p.client.events.events import JobFinished, PeerHired, PeerLost
from axonp2p.kinds.train.events import PeerJoined, RoundFinished
from axonp2p.sandbox.child import why_no_sandbox
from tests.system.processes import Processes
from tests.system.small_job import TASK, write_job

pytestmark = [
    pytest.mark.sandbox,
    pytest.mark.timeout(600),
    pytest.mark.skipif(bool(why_no_sandbox()), reason="no bubblewrap here"),
]

ROUNDS = 400
"""More than the job may take until the new one has come; it is left then."""
WARM_UP_STEPS = 1000
WARMS_UP = (
    TASK.replace("time.sleep(PAUSE)", 'time.sleep(PAUSE); print("rate", self.now, self.inner.param_groups[0]["lr"])')
    .replace("        return torch.optim", "        self.inner = torch.optim")
    .replace("lr=0.2)", "lr=0.2)\n        return self.inner")
    + f"""
    def schedule(self, step, steps):
        self.now = step
        return min(1.0, (step + 1) / {WARM_UP_STEPS})
"""
)
"""It prints the number and the learning rate of each of its steps."""


def test_somebody_comes_in_place_of_who_was_killed(tmp_path: Path) -> None:
    with Processes(tmp_path) as processes:
        processes.start_peers("otter", "heron", "lynx", "wren")
        with axonp2p.Swarm(trackers=[processes.tracker], home=tmp_path / "client") as swarm:
            job = swarm.submit(write_job(tmp_path / "line", peers=3, rounds=ROUNDS, pause=0.02, least=2, task=WARMS_UP))
            hired: list[PeerHired] = []
            lost: PeerLost | None = None
            joined: PeerJoined | None = None
            rounds_after = 0
            for event in job.events():
                if isinstance(event, PeerHired):
                    hired.append(event)
                elif isinstance(event, PeerLost):
                    lost = event
                elif isinstance(event, PeerJoined):
                    joined = event
                elif isinstance(event, RoundFinished):
                    if event.round == 1:
                        processes.kill(hired[0].peer)
                    if joined and (rounds_after := rounds_after + 1) == 3:
                        assert joined.peer in event.samples_per_second  # it works as one of them
                        job.leave()
            assert lost is not None
            assert lost.peer == hired[0].peer
            assert len(hired) == 4
            assert hired[3].rank == 3
            assert joined is not None
            assert joined.peer == hired[3].peer
            assert not isinstance(job.wait(), JobFinished)
            rates = [rates_in(job.folder / "logs" / f"{peer.peer}.log") for peer in hired[1:]]
            assert all(rates)
            assert min(rates[-1]) > 0  # the newcomer's first step is not the job's first
            for step, rate in (pair for one in rates for pair in one.items()):
                assert rate == {0.2 * min(1.0, (step + 1) / WARM_UP_STEPS)}  # to the bit


def rates_in(log: Path) -> dict[int, set[float]]:
    """The learning rates at which a member took each of its steps."""
    rates: dict[int, set[float]] = {}
    for step, rate in re.findall(r"^rate (\d+) (\S+)$", log.read_text(), re.MULTILINE):
        rates.setdefault(int(step), set()).add(float(rate))
    return rates
