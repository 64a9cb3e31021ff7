"""Two real peers of eight lie in every call that they make: what counts, and how soon they are found."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

import axonp2p
from axonp2p.kinds.map.events import ChunkDone, OpinionAwaited, PeerSetAside
from axonp2p.sandbox.child import why_no_sandbox
from tests.system.processes import Processes

HONEST = ("heron", "otter", "lynx", "wren", "ibis", "mole")
LIARS = {"adds 7": "toad", "adds 9": "pike"}

pytestmark = [
    pytest.mark.sandbox,
    pytest.mark.timeout(280),
    pytest.mark.skipif(bool(why_no_sandbox()), reason="no bubblewrap here"),
]


@pytest.fixture(scope="module")
def tracker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with Processes(tmp_path_factory.mktemp("processes")) as running:
        for lie, name in LIARS.items():
            running.begin_peer(name, program=("tests.laboratory.lying_daemon", lie))
        running.start_peers(*HONEST)
        for name in LIARS.values():
            running.wait_for_peer(name)
        yield running.tracker


def squares(folder: Path, items: int, *section: str) -> Path:
    folder.mkdir()
    (folder / "task.py").write_text("import time\ndef work(item):\n    time.sleep(0.05)\n    return item * item\n")
    need = ["[need]", "peers = 8", "min-peers = 8", 'memory = "256 MB"', 'max-rtt = "5 s"', 'wait = "60 s"']
    words = ["[map]", 'fn = "task.py:work"', f"items = {items}", *section]
    (folder / "job.toml").write_text("\n".join(['name = "squares"', 'kind = "map"', *need, *words]))
    return folder


def done(tracker: str, home: Path, folder: Path) -> tuple[list[int], set[str], Counter[str]]:
    """The results, the peers that were set aside, and the chunks of each peer whose results were looked at."""
    with axonp2p.Swarm([tracker], home) as swarm:
        job = swarm.submit(folder)
        events = list(job.events())
        aside = {event.peer for event in events if isinstance(event, PeerSetAside)}
        looked_at = Counter(event.peer for event in events if isinstance(event, ChunkDone | OpinionAwaited))
        return job.fetch(), aside, looked_at


def test_with_a_quorum_of_three_no_result_is_wrong(tracker: str, tmp_path: Path) -> None:
    folder = squares(tmp_path / "job", 200, "quorum = 3")
    results, aside, looked_at = done(tracker, tmp_path / "client", folder)
    assert results == [item * item for item in range(200)]
    assert aside == {name for name in LIARS.values() if looked_at[name]}, looked_at


def test_auto_finds_each_within_25_chunks_and_makes_again_what_it_alone_gave(tracker: str, tmp_path: Path) -> None:
    folder = squares(tmp_path / "job", 2000, 'quorum = "auto"', "chunk = 4")
    results, aside, looked_at = done(tracker, tmp_path / "client", folder)
    assert aside == set(LIARS.values())
    assert all(looked_at[name] <= 25 for name in LIARS.values()), looked_at
    assert results == [item * item for item in range(2000)]
