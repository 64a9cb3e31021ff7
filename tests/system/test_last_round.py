"""A peer that skips half of its steps in a job of one round, among real daemons: not paid for it."""

from __future__ import annotations

from pathlib import Path

import pytest

import axonp2p
from axonp2p.client.events.events import JobFinished
from axonp2p.kinds.train.check_events import ChecksAwaited, ChecksUnended, WorkChecked
from axonp2p.kinds.train.events import RoundFinished
from axonp2p.sandbox.child import why_no_sandbox
from tests.system.processes import Processes
from tests.system.small_job import write_job
from tests.system.test_cheat import TASK

pytestmark = [
    pytest.mark.sandbox,
    pytest.mark.timeout(300),
    pytest.mark.skipif(bool(why_no_sandbox()), reason="no bubblewrap here"),
]


def test_who_cheats_in_the_last_round_has_no_receipt_for_it(tmp_path: Path) -> None:
    with Processes(tmp_path) as processes:
        processes.start_peers("otter", "heron", "lynx", "wren")
        # One segment a round, so that whatever is drawn has skipped steps in it.
        train = "checks = 0.5\nexchange-every = 5\n"
        folder = write_job(tmp_path / "line", peers=4, rounds=1, task=TASK, train=train)
        with axonp2p.Swarm(trackers=[processes.tracker], home=tmp_path / "client") as swarm:
            events = list(swarm.submit(folder).events())
        checked = [event for event in events if isinstance(event, WorkChecked)]
        # It has no other steps of its own to do again, so it is not convicted: it goes, and is not paid (decision 32).
        (caught,) = [event for event in checked if event.outcome == "unlike"]
        told = [type(event) for event in events if isinstance(event, ChecksAwaited | WorkChecked | RoundFinished)]
        assert told == [ChecksAwaited, *([WorkChecked] * len(checked)), RoundFinished]
        assert not any(isinstance(event, ChecksUnended) for event in events)
        (finished,) = [event for event in events if isinstance(event, JobFinished)]
        paid = {peer for peer, credits in finished.credits.items() if credits}
        assert paid == {"otter", "heron", "lynx", "wren"} - {caught.peer}
        assert finished.receipts == 3
        assert finished.lost == [caught.peer]
