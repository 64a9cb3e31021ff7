"""Two real peers for the tests of one file, and a client of theirs; a browser for those of pages."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
import pytest_asyncio

import axonp2p
from tests.system.processes import Processes

if TYPE_CHECKING:
    from playwright.async_api import Browser


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


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def browser() -> AsyncIterator[Browser]:
    """One for all tests of a file; each has a tab of its own, with nothing in its memory."""
    from tests.laboratory.browsers import a_browser  # playwright is loaded where a page is looked at

    async with a_browser() as one:
        yield one
