"""The command line, and beside it a daemon on paper behind a real control socket."""

from __future__ import annotations

import asyncio
import os
import threading
import time
from pathlib import Path

import pytest
from aiohttp import web
from click.testing import CliRunner

from axonp2p.errors import AxonError
from axonp2p.identity.certificate import make_certificate
from axonp2p.identity.keys import PrivateKey
from axonp2p.transport.address import PinnedAddress
from axonp2p.transport.http.http_replies import add_ping
from axonp2p.transport.sessions.listener import Listener
from axonp2p.wire.codec import PROTOCOL_VERSION
from peer_daemon.control.server import ControlDoor
from peer_daemon.control.socket_file import SOCKET_NAME
from peer_daemon.main import cli
from tests.laboratory.paper_steering import TRAINING, PaperSteering


@pytest.fixture(autouse=True)
def usual_umask():
    """`axon-peer run` narrows it for its process, which here is everybody's."""
    usual = os.umask(0o022)
    os.umask(usual)
    yield
    os.umask(usual)


class OnPaper:
    """A daemon in a thread of its own: a command runs its own loop in the test's."""

    def __init__(self, home: Path):
        self.steering = PaperSteering(TRAINING)
        self._home = home
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever)

    def __enter__(self):
        self._thread.start()
        self._call(self._open())
        return self.steering

    def __exit__(self, *_):
        self._call(self._door.stop())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    async def _open(self):
        self._door = ControlDoor(self.steering, self._home / SOCKET_NAME)
        await self._door.start()

    def _call(self, work):
        asyncio.run_coroutine_threadsafe(work, self._loop).result(10)


@pytest.fixture
def home(tmp_path):
    return tmp_path / "home"


@pytest.fixture
def daemon(home):
    home.mkdir()
    with OnPaper(home) as steering:
        yield steering


class LabTracker:
    """What setup asks of a tracker, in a thread of its own: a ping and a page of its health."""

    def __init__(self, protocol: int):
        self.loop = asyncio.new_event_loop()
        self.thread = threading.Thread(target=self.loop.run_forever)
        self._protocol = protocol
        self.trouble = ""

    async def open(self, folder: Path) -> None:
        key = PrivateKey.generate()
        certificate = make_certificate(key, folder / "certificate.pem")
        app = web.Application()
        add_ping(app)
        app.router.add_get("/v1/health", self._health)
        self.listener = Listener(key, certificate, app)
        port = await self.listener.start("127.0.0.1", 0)
        self.address = PinnedAddress("127.0.0.1", port, certificate.fingerprint)

    async def _health(self, request: web.Request) -> web.Response:
        told = {"time": time.time(), "version": "0.1.0", "alive": 3, "protocol": self._protocol}
        return web.json_response(told | {"trouble": self.trouble})

    def call(self, work):
        asyncio.run_coroutine_threadsafe(work, self.loop).result(10)


@pytest.fixture
def lab(tmp_path, request):
    """A tracker that answers; its protocol may be another one."""
    tracker = LabTracker(getattr(request, "param", PROTOCOL_VERSION))
    tracker.thread.start()
    tracker.call(tracker.open(tmp_path))
    yield tracker
    tracker.call(tracker.listener.stop())
    tracker.loop.call_soon_threadsafe(tracker.loop.stop)
    tracker.thread.join()
    tracker.loop.close()


@pytest.fixture
def type_in(home, monkeypatch):
    """Types `axon-peer WORDS` with that home; gives what was printed. An error of ours is raised."""
    monkeypatch.setenv("TZ", "UTC")

    def typed(*words: str, answers: str = "") -> str:
        done = CliRunner().invoke(cli, [*words, "--home", str(home)], input=answers)
        if isinstance(done.exception, AxonError):
            raise done.exception
        assert done.exit_code == 0, done.output
        return done.stdout

    return typed
