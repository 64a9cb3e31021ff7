"""Tasks that keep state of their own, on three real peers with many checks: they train on, and nobody is noted."""

from __future__ import annotations

from pathlib import Path

import pytest

import axonp2p
from axonp2p.client.check_events import NothingLearnt
from axonp2p.client.events import ChecksOff, JobFinished, PeerLost, RoundFinished, WorkChecked
from axonp2p.client.trust_book import TRUST_FILE, TrustBook
from axonp2p.sandbox.child import why_no_sandbox
from tests.laboratory.hidden_states import CHECKABLE, HIDDEN
from tests.system.processes import Processes
from tests.system.small_job import write_job

pytestmark = [
    pytest.mark.sandbox,
    pytest.mark.timeout(300),
    pytest.mark.skipif(bool(why_no_sandbox()), reason="no bubblewrap here"),
]

ROUNDS = 6
OFTEN = "checks = 0.5\n"


def test_tasks_that_keep_state_train_on_and_nobody_is_noted(tmp_path: Path) -> None:
    with Processes(tmp_path) as processes:
        processes.start_peers("otter", "heron", "lynx")
        book = TrustBook(tmp_path / "client" / TRUST_FILE)
        with axonp2p.Swarm(trackers=[processes.tracker], home=tmp_path / "client") as swarm:
            for kind in ("self.net",):
                seen = _events(swarm, tmp_path, CHECKABLE[kind])
                checked = [event for event in seen if isinstance(event, WorkChecked)]
                assert len(checked) >= 3
                assert {(event.outcome, event.distance) for event in checked} == {("passed", 0.0)}
                assert not [event for event in seen if isinstance(event, ChecksOff)]
            known = book.all()
            assert len(known) == 3
            assert all(one.passed == one.checks for one in known.values())
            for kind in ("a random generator of Python", "a file"):
                seen = _events(swarm, tmp_path, HIDDEN[kind].replace("FILES", "/tmp/state"))
                (off,) = [event for event in seen if isinstance(event, ChecksOff)]
                assert "done again" in off.reason
                assert not [event for event in seen if isinstance(event, WorkChecked)]
        assert book.all() == known


def _events(swarm: axonp2p.Swarm, folder: Path, task: str) -> list[object]:
    """Of a job of this task, in which everything goes well."""
    job_folder = write_job(folder / f"job{len(list(folder.glob('job*')))}", peers=3, rounds=ROUNDS, task=task)
    (job_folder / "job.toml").write_text((job_folder / "job.toml").read_text() + OFTEN)
    seen: list[object] = list(swarm.submit(job_folder).events())
    assert isinstance(seen[-1], JobFinished)
    assert not [event for event in seen if isinstance(event, PeerLost | NothingLearnt)]
    losses = [event.loss for event in seen if isinstance(event, RoundFinished)]
    assert len(set(losses)) == ROUNDS
    return seen
