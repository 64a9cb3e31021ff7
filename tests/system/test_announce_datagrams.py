"""A real daemon announces itself to a real tracker by datagram, and by HTTPS where datagrams do not get through."""

from __future__ import annotations

import re
import socket
import threading
import time
import urllib.request
from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest
import tomlkit

from tests.system.processes import Processes

pytestmark = pytest.mark.timeout(300)

PATIENCE_S = 90.0
"""How long a loaded machine may take for what takes a second or two on a quiet one."""
YES = 'axon_datagrams_total{answer="yes"}'
ANNOUNCES = 'axon_requests_total{path="/v1/announce",status="200"}'


@contextmanager
def swarm(base: Path, *, listen: str = "", **settings: object) -> Iterator[Processes]:
    """A tracker with these settings, and the peer "otter"."""
    (base / "tracker").mkdir()
    usual = {"metrics-listen": "127.0.0.1:0", "page-listen": ""}
    (base / "tracker" / "config.toml").write_text(tomlkit.dumps({"tracker": usual | settings}))
    with Processes(base, first_tracker="") as processes:
        processes.start_tracker("tracker", listen=listen)
        processes.start_peers("otter")
        yield processes


def metrics(processes: Processes) -> defaultdict[str, float]:
    """The tracker's metrics as they were a moment ago."""
    found = re.search(r"metrics (http\S+)", processes.output("tracker"))
    assert found, processes.output("tracker")
    with urllib.request.urlopen(found[1], timeout=20) as page:
        lines = page.read().decode().splitlines()
    told = (line.rpartition(" ") for line in lines if not line.startswith("#"))
    return defaultdict(float, {name: float(value) for name, _, value in told})


def until(what: Callable[[], bool], processes: Processes) -> None:
    began = time.monotonic()
    while not what():
        assert time.monotonic() - began < PATIENCE_S, processes.output("otter") + processes.output("tracker")
        time.sleep(0.1)


def test_a_daemon_announces_by_datagram_and_withdraws_so(tmp_path: Path) -> None:
    with swarm(tmp_path) as processes:
        until(lambda: metrics(processes)[YES] >= 1, processes)
        processes.stop("otter")
        until(lambda: metrics(processes)["axon_rows_alive"] == 0, processes)
        told = metrics(processes)
        assert told[ANNOUNCES] == 1 + told[YES]  # the first alone went by HTTPS
        assert told[YES] >= 2
        assert "Traceback" not in processes.output("tracker") + processes.output("otter")


def test_where_the_tracker_takes_none_it_announces_by_https(tmp_path: Path) -> None:
    with swarm(tmp_path, datagrams=False) as processes:
        until(lambda: metrics(processes)[ANNOUNCES] >= 2, processes)
        assert metrics(processes)[YES] == 0
        assert "Traceback" not in processes.output("tracker") + processes.output("otter")


class TcpProxy:
    """Passes TCP on to the tracker; at the UDP port of the same number datagrams vanish, as behind most proxies."""

    def __init__(self) -> None:
        self.blackhole = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.port = self.listener.getsockname()[1]
        self.blackhole.bind(("127.0.0.1", self.port))
        self.to = 0
        self._lines: list[socket.socket] = []
        self._accepts = threading.Thread(target=self._accept, daemon=True)

    def start(self, to: int) -> None:
        self.to = to
        self._accepts.start()

    def close(self) -> None:
        for line in (self.listener, self.blackhole, *self._lines):
            with suppress(OSError):
                line.shutdown(socket.SHUT_RDWR)
            line.close()

    def swallowed(self) -> int:
        """How many datagrams vanished since the last look."""
        self.blackhole.setblocking(False)
        found = 0
        with suppress(BlockingIOError):
            while self.blackhole.recv(4096).startswith(b"axA"):
                found += 1
        return found

    def _accept(self) -> None:
        with suppress(OSError):
            while True:
                caller, _ = self.listener.accept()
                tracker = socket.create_connection(("127.0.0.1", self.to))
                self._lines += [caller, tracker]
                for source, target in ((caller, tracker), (tracker, caller)):
                    threading.Thread(target=_pass_on, args=(source, target), daemon=True).start()


def _pass_on(source: socket.socket, target: socket.socket) -> None:
    with suppress(OSError):
        while data := source.recv(65536):
            target.sendall(data)
        target.shutdown(socket.SHUT_WR)


def test_where_datagrams_vanish_it_announces_by_https(tmp_path: Path) -> None:
    proxy = TcpProxy()
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    proxy.start(port)
    try:
        public = {"public-address": f"127.0.0.1:{proxy.port}"}
        with swarm(tmp_path, listen=f"127.0.0.1:{port}", **public) as processes:
            vanished = 0

            def saw_one() -> bool:
                nonlocal vanished
                vanished += proxy.swallowed()
                return vanished > 0

            until(saw_one, processes)
            announced = metrics(processes)[ANNOUNCES]
            until(lambda: metrics(processes)[ANNOUNCES] > announced, processes)
            until(lambda: "no datagrams get through" in processes.output("otter"), processes)
            assert metrics(processes)[YES] == 0
    finally:
        proxy.close()
