"""Jobs among real peers of which one lies about what its steps led to."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

import axonp2p
from axonp2p.client.events.events import JobFinished
from axonp2p.kinds.train.events import ExchangeChosen
from axonp2p.sandbox.child import why_no_sandbox
from tests.system.processes import Processes
from tests.system.small_job import write_job

pytestmark = [
    pytest.mark.sandbox,
    pytest.mark.timeout(300),
    pytest.mark.skipif(bool(why_no_sandbox()), reason="no bubblewrap here"),
]
HONEST = ("otter", "heron", "lynx")
LEARNT, WRONG = 0.1, 1.0
"""Held-out error: a model that has learnt is below the one, its first weights are at about 2."""


@pytest.fixture(scope="module")
def swarm(tmp_path_factory: pytest.TempPathFactory) -> Iterator[axonp2p.Swarm]:
    base = tmp_path_factory.mktemp("liars")
    with Processes(base) as running:
        running.begin_peer("mink", program=("tests.laboratory.lying_daemon", "scaled"))
        running.start_peers(*HONEST)
        running.wait_for_peer("mink")
        with axonp2p.Swarm(trackers=[running.tracker], home=base / "client") as swarm:
            yield swarm


def trained(swarm: axonp2p.Swarm, folder: Path, rule: str) -> tuple[ExchangeChosen, float]:
    """How the job of four peers exchanged, and its last held-out error."""
    # As many exchanges on every machine, and too few for the weights to become infinite.
    train = f'aggregation = "{rule}"\nexchange-every = 5\n'
    write_job(folder, peers=4, least=4, rounds=4, train=train)
    events = list(swarm.submit(folder).events())
    last = events[-1]
    assert isinstance(last, JobFinished)
    assert sorted(last.peers) == sorted([*HONEST, "mink"])
    return next(event for event in events if isinstance(event, ExchangeChosen)), last.metrics["error"]


def test_a_liar_ruins_the_mean_and_no_rule_that_bears_one(swarm: axonp2p.Swarm, tmp_path: Path) -> None:
    chosen, error = trained(swarm, tmp_path / "clipped", "centred-clipping")
    assert (chosen.aggregation, chosen.hostile) == ("centred-clipping", 1)
    assert error < LEARNT

    chosen, error = trained(swarm, tmp_path / "plain", "mean")
    assert (chosen.aggregation, chosen.hostile) == ("mean", 0)
    assert error > WRONG
