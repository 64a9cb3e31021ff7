"""Four real daemons pass a bundle on to each other: bytes are counted, one stands still, one sends wrong bytes."""

from __future__ import annotations

import random
import signal
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

import axonp2p
from axonp2p.client.events.event import Event
from axonp2p.client.events.events import BundleProgress, BundleSent, PeerHired, PeerLost, PieceWrong
from axonp2p.kinds.train.events import PeerJoined, RoundFinished
from axonp2p.sandbox.child import why_no_sandbox
from tests.system.processes import Processes
from tests.system.small_job import write_job

pytestmark = [
    pytest.mark.sandbox,
    pytest.mark.timeout(600),
    pytest.mark.skipif(bool(why_no_sandbox()), reason="no bubblewrap here"),
]

NAMES = ("otter", "heron", "lynx", "wren")
SIZE = 8_000_000


@pytest.fixture
def slow_lines(monkeypatch: pytest.MonkeyPatch) -> None:
    """As the owners' limits have it, so that the bundle is on its way for some seconds."""
    monkeypatch.setenv("AXON_PEER_UPLOAD_LIMIT_MBIT", "4")


@pytest.fixture
def peers(tmp_path: Path) -> Iterator[Processes]:
    with Processes(tmp_path) as processes:
        processes.start_peers(*NAMES)
        yield processes


def job_with_data(tmp_path: Path, *, rounds: int = 2, pause: float = 0.0, least: int = 4) -> Path:
    job = write_job(tmp_path / "line", peers=4, rounds=rounds, pause=pause, least=least)
    (job / "data.bin").write_bytes(random.Random(1).randbytes(SIZE))
    text = (job / "job.toml").read_text()
    (job / "job.toml").write_text(text.replace('task = "task.py"', 'task = "task.py"\ndata = ["data.bin"]'))
    return job


def run(peers: Processes, tmp_path: Path, job: Path, watch: Callable[[Event], bool]) -> None:
    """Submit, and leave the job when `watch` says so."""
    with axonp2p.Swarm(trackers=[peers.tracker], home=tmp_path / "client") as swarm:
        running = swarm.submit(job)
        for event in running.events():
            if watch(event):
                running.leave()


def test_the_client_sends_it_about_once(peers: Processes, tmp_path: Path) -> None:
    told: list[Event] = []
    run(peers, tmp_path, job_with_data(tmp_path), lambda event: bool(told.append(event)))
    (sent,) = [event for event in told if isinstance(event, BundleSent)]
    assert len(sent.peers) == 4
    assert SIZE <= sent.bytes <= 1.3 * SIZE
    assert sent.bytes + sent.member_bytes >= 4 * SIZE
    assert [event for event in told if isinstance(event, RoundFinished)]


def test_one_that_stands_still_for_a_moment_goes_on(slow_lines: None, peers: Processes, tmp_path: Path) -> None:
    stopped: list[str] = []
    told: list[Event] = []

    def watch(event: Event) -> bool:
        told.append(event)
        if isinstance(event, BundleProgress) and event.fraction > 0.2 and not stopped:
            stopped.append("wren")
            peers.process("wren").send_signal(signal.SIGSTOP)
            time.sleep(4)
            peers.process("wren").send_signal(signal.SIGCONT)
        return False

    run(peers, tmp_path, job_with_data(tmp_path), watch)
    (sent,) = [event for event in told if isinstance(event, BundleSent)]
    assert stopped
    assert sorted(sent.peers) == sorted(NAMES)
    assert sent.bytes <= 1.6 * SIZE  # its pieces were given to others too


@pytest.mark.parametrize("least", [3, 4])
def test_one_that_was_cut_off_comes_back_and_continues(
    slow_lines: None, peers: Processes, tmp_path: Path, least: int
) -> None:
    """Its sessions die, its lease ends; hired again, it says what it has and gets only the rest, from the others.

    Where the job can begin without it, it comes back in the middle of the training; else it is waited for.
    """
    stopped: list[str] = []
    told: list[Event] = []

    def watch(event: Event) -> bool:
        told.append(event)
        if isinstance(event, BundleProgress) and event.fraction > 0.4 and not stopped:
            stopped.append("wren")
            peers.process("wren").send_signal(signal.SIGSTOP)
        if isinstance(event, PeerLost):
            peers.process("wren").send_signal(signal.SIGCONT)
        back = PeerJoined if least == 3 else RoundFinished
        never_stopped = isinstance(event, BundleSent) and not stopped
        return never_stopped or any(isinstance(one, back) for one in told)

    try:
        run(peers, tmp_path, job_with_data(tmp_path, rounds=2000, pause=0.05, least=least), watch)
    finally:
        peers.process("wren").send_signal(signal.SIGCONT)
    assert next(event.peer for event in told if isinstance(event, PeerLost)) == "wren"
    assert [event.peer for event in told if isinstance(event, PeerHired)].count("wren") == 2
    assert "bundle continued" in peers.output("wren")
    (sent,) = [event for event in told if isinstance(event, BundleSent)]
    assert len(sent.peers) == least
    assert sent.bytes <= 1.6 * SIZE


def test_wrong_bytes_are_found_and_named(slow_lines: None, peers: Processes, tmp_path: Path) -> None:
    told: list[Event] = []

    def watch(event: Event) -> bool:
        told.append(event)
        if isinstance(event, BundleProgress) and event.fraction < 0.9:
            for file in (tmp_path / "lynx" / "jobs").glob("*/bundle/data.bin"):
                file.write_bytes(bytes(file.stat().st_size))  # what it has is spoilt, again and again
        return False

    run(peers, tmp_path, job_with_data(tmp_path), watch)
    named = {event.peer for event in told if isinstance(event, PieceWrong)}
    assert named == {"lynx"}
    (sent,) = [event for event in told if isinstance(event, BundleSent)]
    assert sorted(sent.peers) == sorted(NAMES)
    assert [event for event in told if isinstance(event, RoundFinished)]
