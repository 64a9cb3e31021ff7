"""Several trackers and many peers: trackers die one by one in the middle of jobs, come back empty, are cut apart."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

import axonp2p
from axonp2p.client.events.events import Event, JobFinished
from axonp2p.client.job import Job
from axonp2p.kinds.train.events import RoundFinished
from axonp2p.sandbox.child import why_no_sandbox
from tests.laboratory.fork_server import fork_server
from tests.system.network import Network, why_not
from tests.system.processes import Processes
from tests.system.small_job import write_job

pytestmark = pytest.mark.timeout(600)

PEERS = ["otter", "heron", "lynx", "wren", "vole", "swift", "newt", "tern", "hare", "robin", "mole", "crane"]
NO_NETWORK = why_not()
PATIENCE_S = 60.0
"""How long a loaded machine may take for what takes a few seconds on a quiet one."""


def tables(*trackers: str, inside: Sequence[str] = ()) -> list[dict[str, int]]:
    """The number of every peer's row, by the peer's name, at each of them."""
    done = fork_server().run("tests.laboratory.tracker_tables", trackers, 60, inside=inside)
    assert done.returncode == 0, done.stderr
    found: list[dict[str, int]] = json.loads(done.stdout)
    return found


def until(what: Callable[[], bool], why: str, patience_s: float = PATIENCE_S) -> None:
    """Wait until it is so."""
    began = time.monotonic()
    while not what():
        assert time.monotonic() - began < patience_s, why
        time.sleep(1)


def arrived(swarm: axonp2p.Swarm, jobs: Sequence[Job]) -> list[int]:
    """How many receipts of each job the tracker of `swarm` has."""
    return [swarm.credits(job.id).receipts for job in jobs]


def owed(events: Sequence[Event]) -> int:
    """Receipts of a job: of each peer one for each round that it was in."""
    return sum(len(event.peers) for event in events if isinstance(event, RoundFinished))


def begun(job: Job) -> None:
    """Follow the job until it trains."""
    for event in job.events():
        if isinstance(event, RoundFinished):
            return
    pytest.fail(f"{job.id} ended before a round was finished")


@pytest.mark.sandbox
@pytest.mark.skipif(bool(why_no_sandbox()), reason=why_no_sandbox() or "a sandbox can be had")
def test_no_job_fails_while_the_trackers_die_one_by_one_and_one_comes_back_empty(tmp_path: Path) -> None:
    with Processes(tmp_path, first_tracker="one") as processes:
        processes.start_tracker("two", knows=[processes.tracker])
        processes.start_tracker("three", knows=[processes.tracker])
        processes.start_peers(*PEERS)
        trackers = list(processes.trackers.values())
        until(lambda: all(sorted(rows) == sorted(PEERS) for rows in tables(*trackers)), "not every tracker knows all")
        with axonp2p.Swarm(trackers=trackers, home=tmp_path / "client") as swarm:
            jobs = []
            for number, victim in enumerate([*processes.trackers, ""], 1):
                jobs.append(swarm.submit(write_job(tmp_path / f"job-{number}", peers=3, rounds=12, pause=0.1, least=2)))
                begun(jobs[-1])
                if victim:
                    processes.kill(victim)
            receipts = []
            for job in jobs:
                events = list(job.events())
                assert isinstance(events[-1], JobFinished), events[-1]
                assert not events[-1].lost
                receipts.append(owed(events))
                assert receipts[-1] >= 2 * 12

            processes.empty("two")
            processes.start_tracker("two")
            until(lambda: sorted(tables(processes.trackers["two"])[0]) == sorted(PEERS), "the table stays empty")

        # What the others had been told before they died, they have still, and pass on.
        processes.start_tracker("one")
        processes.start_tracker("three")
        with axonp2p.Swarm(trackers=[processes.trackers["two"]], home=tmp_path / "client") as swarm:
            # A peer waits a minute for the tracker that gave a reservation before it tells another one.
            until(lambda: arrived(swarm, jobs[2:]) == receipts[2:], "receipts are missing", 240)
            # What the second one alone had taken in the second before it died went with its database; it has the rest
            # from the others' logs, once it has looked at each twice.
            until(
                lambda: all(
                    due - 12 <= count <= due for due, count in zip(receipts, arrived(swarm, jobs[:2]), strict=False)
                ),
                "receipts of the others' logs are missing",
                120,
            )


@pytest.mark.skipif(bool(NO_NETWORK), reason=NO_NETWORK or "network namespaces can be had")
def test_trackers_that_were_cut_apart_are_equal_again_soon_after(tmp_path: Path) -> None:
    with Network() as network, Processes(tmp_path, first_tracker="") as processes:
        left, right = network.inside("left"), network.inside("right")
        processes.start_tracker("one", listen=f"{network.host('left', 0)}:7070", inside=left)
        processes.start_tracker(
            "two", listen=f"{network.host('right', 0)}:7070", inside=right, knows=[processes.tracker]
        )
        processes.start_tracker(
            "three", listen=f"{network.host('right', 1)}:7070", inside=right, knows=[processes.tracker]
        )
        one, two, three = processes.trackers.values()
        for number, name in enumerate(PEERS[:8]):
            half = ("left", "right")[number % 2]
            host = network.host(half, 10 + number)
            processes.start_peers(name, listen=f"{host}:7071", inside=network.inside(half))
        until(
            lambda: all(sorted(rows) == sorted(PEERS[:8]) for rows in tables(one, two, three, inside=left)),
            "never equal",
        )

        network.cut()
        processes.stop("otter")  # in the left half
        processes.stop("heron")  # in the right half
        processes.start_peers("hare", listen=f"{network.host('left', 50)}:7071", inside=left)
        processes.start_peers("robin", listen=f"{network.host('right', 50)}:7071", inside=right)
        until(lambda: {"hare"} == {"hare", "otter"} & set(tables(one, inside=left)[0]), "left does not change")
        until(
            lambda: all({"robin"} == {"robin", "heron"} & set(rows) for rows in tables(two, three, inside=right)),
            "right does not change",
        )
        assert "robin" not in tables(one, inside=left)[0]

        network.heal()
        wanted = sorted({*PEERS[:8], "hare", "robin"} - {"otter", "heron"})

        def equal() -> bool:
            first, *others = tables(one, two, three, inside=left)
            return sorted(first) == wanted and all(rows == first for rows in others)

        until(equal, "the tables stay different")
