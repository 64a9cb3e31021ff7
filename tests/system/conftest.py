"""Two real peers for the tests of one file, and a client of theirs."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

import axonp2p
from tests.system.processes import Processes


@pytest.fixture(scope="module")
def processes(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Processes]:
    """A tracker and two peers. A file that wants others has a fixture of this name itself."""
    with Processes(tmp_path_factory.mktemp("processes")) as running:
        running.start_peers("otter", "heron")
        yield running


@pytest.fixture
def swarm(processes: Processes, tmp_path: Path) -> Iterator[axonp2p.Swarm]:
    """With a home of its own."""
    with axonp2p.Swarm(trackers=[processes.tracker], home=tmp_path / "client") as swarm:
        yield swarm
