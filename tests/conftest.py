"""What every test starts from."""

from __future__ import annotations

import logging
from collections.abc import Iterator

import pytest
import structlog


@pytest.fixture(autouse=True)
def logs_as_they_were() -> Iterator[None]:
    """A program that a test runs in this process sets logging up for all of it; the next test shall not notice."""
    root = logging.getLogger()
    handlers, level = root.handlers[:], root.level
    yield
    structlog.reset_defaults()
    root.handlers[:] = handlers
    root.setLevel(level)


@pytest.fixture(autouse=True, scope="session")
def alone_on_the_network() -> Iterator[None]:
    """Programs of tests look for nobody on the local network: another test's would answer, or a real peer."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("AXON_CLIENT_LAN", "false")
        patch.setenv("AXON_PEER_LAN", "false")
        yield
