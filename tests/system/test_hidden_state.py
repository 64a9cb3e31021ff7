"""Tasks that keep state of their own, on three real peers with many checks: they train on, and nobody is noted.

One for each place that state hides in. `scripts/bench/checks --hidden --swarm` runs every kind that we know.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from axonp2p.sandbox.child import why_no_sandbox
from tests.laboratory.hidden_states import CHECKABLE, HIDDEN, SANDBOXED_CHECKABLE
from tests.laboratory.hidden_swarm import hidden_swarm

pytestmark = [
    pytest.mark.sandbox,
    pytest.mark.timeout(300),
    pytest.mark.skipif(bool(why_no_sandbox()), reason="no bubblewrap here"),
]

CAN_BE_DONE_AGAIN = ("self.net", "two optimisers", "a compiled model")
CANNOT = (
    "an attribute",
    "a global",
    "a cache",
    "a closure",
    "a hook",
    "a random generator of Python",
    "a file",
)


def test_tasks_that_keep_state_train_on_and_nobody_is_noted(tmp_path: Path) -> None:
    with hidden_swarm(tmp_path) as swarm:
        for kind in CAN_BE_DONE_AGAIN:
            seen = swarm.run((CHECKABLE | SANDBOXED_CHECKABLE)[kind])
            assert seen.as_it_should_be(checkable=True), (kind, seen)
            assert {check.distance for check in seen.checks} == {0.0}, kind
        known = swarm.known
        assert len(known) == 3
        assert all(one.passed == one.checks for one in known.values())
        for kind in CANNOT:
            seen = swarm.run(HIDDEN[kind], peers=2)  # each tries its own steps
            assert seen.as_it_should_be(checkable=False), (kind, seen)
        assert all(one.passed == one.checks for one in swarm.known.values())
