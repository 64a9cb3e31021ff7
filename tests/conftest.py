"""What every test starts from."""

from __future__ import annotations

import contextlib
import logging
import os
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from tests.laboratory.authority import Authority


def pytest_configure(config: pytest.Config) -> None:
    """Where several files are tested at once, no test starves what another one lets train in a sandbox.

    Workers come after all else on a machine, as long as their owner does not say otherwise: beside tests that compute,
    or any other busy program, they would hardly get to start. Nor do two that compute keep each other's threads
    spinning (measured: 125 seconds for what takes 20 alone). No daemon loads torch for a job that may
    never come. And a shell that starts tests in the background has them
    ignore Ctrl-C, which all programs that they start would inherit.
    """
    signal.signal(signal.SIGINT, signal.default_int_handler)
    os.environ.setdefault("AXON_PEER_PRIORITY", "low")
    os.environ.setdefault("AXON_PEER_STANDBY", "false")
    if hasattr(config, "workerinput"):
        os.environ["OMP_NUM_THREADS"] = "1"  # torch is imported later
        os.setsid()
        with contextlib.suppress(OSError):  # this kernel does not group by session
            Path("/proc/self/autogroup").write_text("10", encoding="ascii")


@pytest.fixture(autouse=True)
def logs_as_they_were() -> Iterator[None]:
    """A program that a test runs in this process sets logging up for all of it; the next test shall not notice."""
    root = logging.getLogger()
    handlers, level = root.handlers[:], root.level
    yield
    root.handlers[:] = handlers
    root.setLevel(level)


@pytest.fixture(autouse=True, scope="session")
def alone_on_the_network() -> Iterator[None]:
    """Programs of tests look for nobody on the local network: another test's would answer, or a real peer."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("AXON_CLIENT_LAN", "false")
        patch.setenv("AXON_PEER_LAN", "false")
        yield


@pytest.fixture
def authority(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Authority]:
    """An authority that callers in this process trust."""
    # What signs certificates is loaded for the few tests that need it.
    from axonp2p.transport.tls import client_context
    from tests.laboratory.authority import Authority

    one = Authority(tmp_path)
    monkeypatch.setenv("SSL_CERT_FILE", str(one.root))
    client_context.cache_clear()
    yield one
    client_context.cache_clear()
