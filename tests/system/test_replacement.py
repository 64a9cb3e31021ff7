"""A peer is killed in the middle of a job: another one is hired, fetches the weights from the rest, and trains on."""

from __future__ import annotations

from pathlib import Path

import pytest

import axonp2p
from axonp2p.client.events.events import JobFinished, PeerHired, PeerLost
from axonp2p.kinds.train.events import PeerJoined, RoundFinished
from axonp2p.sandbox.child import why_no_sandbox
from tests.system.processes import Processes
from tests.system.small_job import write_job

pytestmark = [
    pytest.mark.sandbox,
    pytest.mark.timeout(600),
    pytest.mark.skipif(bool(why_no_sandbox()), reason="no bubblewrap here"),
]

ROUNDS = 400
"""More than the job may take until the new one has come; it is left then."""


def test_somebody_comes_in_place_of_who_was_killed(tmp_path: Path) -> None:
    with Processes(tmp_path) as processes:
        processes.start_peers("otter", "heron", "lynx", "wren")
        with axonp2p.Swarm(trackers=[processes.tracker], home=tmp_path / "client") as swarm:
            job = swarm.submit(write_job(tmp_path / "line", peers=3, rounds=ROUNDS, pause=0.02, least=2))
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
