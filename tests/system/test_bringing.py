"""A driver brings a file to real peers while they work: it leaves the client about once, and workers read it."""

from __future__ import annotations

from pathlib import Path

import pytest

from axonp2p.sandbox.child import why_no_sandbox
from tests.system.test_toy_kind import HOUSE, events_of

ROOM = HOUSE / "tests" / "laboratory" / "bringing"
PARTS = ("SECTION", "BringingRecord", "AllHashed", "BringingDriver")
SIZE = 20_000_000
JOB = f"""
name = "bringing"
kind = "bringing"
[need]
peers = 4
[bringing]
bytes = {SIZE}
"""

pytestmark = [
    pytest.mark.sandbox,
    pytest.mark.timeout(240),
    pytest.mark.skipif(bool(why_no_sandbox()), reason="no bubblewrap here"),
]


def test_what_four_peers_are_brought_leaves_the_client_about_once(tmp_path: Path) -> None:
    told, _ = events_of(tmp_path, ROOM, PARTS, JOB, "otter", "fox", "hare", "wren")
    (hashed,) = [event for event in told if event["event"] == "all_hashed"]
    assert hashed["hashes"] == [hashed["sha256"]] * 4
    assert hashed["sent"] <= 1.2 * SIZE
    assert hashed["member_bytes"] >= 4 * SIZE - hashed["sent"]
    assert told[-1]["event"] == "job_finished"
    assert told[-1]["receipts"] == 4
