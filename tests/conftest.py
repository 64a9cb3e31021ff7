"""What every test starts from."""

from __future__ import annotations

import gc
import logging
import os
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from hypothesis import settings

if TYPE_CHECKING:
    from tests.laboratory.authority import Authority

# How long an example takes says how busy the machine is.
settings.register_profile("axon", deadline=None)
settings.load_profile("axon")


def pytest_configure(config: pytest.Config) -> None:
    """Where several files are tested at once, or another program is busy, no test starves what it waits for.

    A worker comes after all else on a machine, as long as its owner does not say otherwise: next to tests that compute,
    or any other busy program, it would hardly get to start. So each has its turn as often as any program, and the tests
    of each of pytest's processes are weighed as a session of their own. Nor do two that compute keep each other's
    threads spinning (measured: 125 seconds for what takes 20 alone). No daemon loads torch for a job that may never
    come. And a shell that starts tests in the background has them ignore Ctrl-C, which all programs that they start
    would inherit.
    """
    gc.disable()  # until all tests are collected: a third of that time would go to looking for garbage
    signal.signal(signal.SIGINT, signal.default_int_handler)
    os.environ.setdefault("AXON_PEER_PRIORITY", "normal")
    os.environ.setdefault("AXON_PEER_STANDBY", "false")
    if hasattr(config, "workerinput"):
        os.environ["OMP_NUM_THREADS"] = "1"  # torch is imported later
        os.setsid()


def pytest_collection_finish() -> None:
    """What was loaded until here stays, and is looked at no more."""
    gc.freeze()
    gc.enable()


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
