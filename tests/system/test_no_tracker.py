"""Jobs without a tracker: peers are found through the DHT, sign their own tokens, and hand receipts in later."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

import axonp2p
from axonp2p.client.events.events import JobFinished, PeerHired, PeerLost, PeersFound, ReceiptsMissing, Reserved
from axonp2p.client.job import Job
from axonp2p.errors import AxonError
from axonp2p.kinds.train.events import RoundFinished
from axonp2p.sandbox.child import why_no_sandbox
from axonp2p.table.sightings import DHT
from tests.system.processes import Processes
from tests.system.small_job import write_job

pytestmark = [
    pytest.mark.sandbox,
    pytest.mark.timeout(600),
    pytest.mark.skipif(bool(why_no_sandbox()), reason="no bubblewrap here"),
]

PEERS = ["otter", "heron", "lynx"]
PATIENCE_S = 120.0


@pytest.fixture(scope="module")
def processes(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Processes]:
    with Processes(tmp_path_factory.mktemp("processes"), first_tracker="one") as running:
        running.start_tracker("two", knows=[running.tracker])
        running.start_peers(*PEERS)
        yield running


def until(what: Callable[[], bool], why: Callable[[], str]) -> None:
    began = time.monotonic()
    while not what():
        assert time.monotonic() - began < PATIENCE_S, why()
        time.sleep(0.3)


def all_in_the_dht(swarm: axonp2p.Swarm) -> bool:
    return sorted(peer.name for peer in swarm.peers() if DHT in peer.sources) == sorted(PEERS)


def trained(job: Job, rounds: int) -> None:
    for event in job.events():
        if isinstance(event, RoundFinished) and event.round + 1 >= rounds:
            return
    raise AssertionError(f"{job.id} ended before round {rounds}")


def handed_in(swarm: axonp2p.Swarm, job: Job) -> int:
    try:
        return swarm.credits(job.id).receipts
    except AxonError:
        return 0


def test_the_second_tracker_takes_over_in_the_middle_of_a_job(processes: Processes, tmp_path: Path) -> None:
    trackers = list(processes.trackers.values())
    with axonp2p.Swarm(trackers=trackers, home=tmp_path / "client") as swarm:
        job = swarm.submit(write_job(tmp_path / "line", peers=3, least=3, rounds=10, pause=0.05))
        trained(job, 2)
        issuer = next(event.issuer for event in job.events() if isinstance(event, Reserved))
        killed, other = ("one", "two") if issuer.removeprefix("tracker ") in trackers[0] else ("two", "one")
        processes.kill(killed)
        events = list(job.events())
        last = events[-1]
        assert isinstance(last, JobFinished)
        assert not [event for event in events if isinstance(event, PeerLost)]
        assert last.receipts == 3 * 10  # at the other tracker, with the token of the dead one

        second = swarm.submit(write_job(tmp_path / "second", peers=3, least=3, rounds=2))
        events = list(second.events())
        assert isinstance(events[-1], JobFinished)
        living = processes.trackers[other].partition("#")[0].removeprefix("https://")
        assert {event.issuer for event in events if isinstance(event, Reserved)} == {f"tracker {living}"}
    processes.start_tracker(killed)


def test_a_job_that_begins_when_every_tracker_is_dead_trains_to_its_end(processes: Processes, tmp_path: Path) -> None:
    trackers = list(processes.trackers.values())
    with axonp2p.Swarm(trackers=trackers, home=tmp_path / "client") as swarm:
        until(lambda: all_in_the_dht(swarm), lambda: str(swarm.survey()))
    for name in ("one", "two"):
        processes.kill(name)

    with axonp2p.Swarm(trackers=trackers, home=tmp_path / "client") as swarm:
        job = swarm.submit(write_job(tmp_path / "line", peers=3, least=3, rounds=6))
        events = list(job.events())
        last = events[-1]
        assert isinstance(last, JobFinished)
        assert sorted(last.peers) == sorted(PEERS)
        assert {source for event in events if isinstance(event, PeersFound) for source in event.sources} == {DHT}
        assert {event.issuer for event in events if isinstance(event, Reserved)} == {f"peer {name}" for name in PEERS}
        (missing,) = [event for event in events if isinstance(event, ReceiptsMissing)]
        assert (missing.unsigned, missing.not_taken, last.receipts) == (0, 3 * 6, 0)
        assert min(last.credits.values()) > 0

        processes.start_tracker("two")
        until(lambda: handed_in(swarm, job) == 3 * 6, lambda: f"{handed_in(swarm, job)} receipts are handed in")
    processes.start_tracker("one")


def test_a_client_that_never_saw_a_tracker_needs_only_one_node(processes: Processes, tmp_path: Path) -> None:
    trackers = list(processes.trackers.values())
    with axonp2p.Swarm(trackers=trackers, home=tmp_path / "other") as swarm:
        until(lambda: all_in_the_dht(swarm), lambda: str(swarm.survey()))
        node = next(peer.addresses[0] for peer in swarm.peers())
    home = tmp_path / "client"
    home.mkdir()
    (home / "config.toml").write_text(f'[client]\ndht-contacts = ["{node}"]\n')
    for name in ("one", "two"):
        processes.kill(name)
    with axonp2p.Swarm(home=home) as swarm:
        job = swarm.submit(write_job(tmp_path / "line", peers=2, least=2, rounds=2))
        events = list(job.events())
        assert isinstance(events[-1], JobFinished)
        assert len([event for event in events if isinstance(event, PeerHired)]) == 2
    for name in ("one", "two"):
        processes.start_tracker(name)
