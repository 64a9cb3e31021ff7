"""A real tracker and real peers as processes of a test: started, killed and cleared away by id."""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path

START_S = 120


class Processes:
    """One tracker, and peers by name. Use it in a `with`: nothing that it started outlives it."""

    def __init__(self, base: Path) -> None:
        self._base = base
        self._running: dict[str, subprocess.Popen[bytes]] = {}
        self.tracker = ""

    def __enter__(self) -> Processes:
        home = self._base / "tracker"
        self._start("tracker", "tracker.main", ["run", "--listen", "127.0.0.1:0", "--home", str(home)])
        self._wait("tracker", home / "address")
        self.tracker = (home / "address").read_text().strip()
        return self

    def __exit__(self, *_: object) -> None:
        for process in self._running.values():
            process.terminate()
        for process in self._running.values():
            try:
                process.wait(20)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()

    def start_peers(self, *names: str) -> None:
        """Start peers with one slot of one core each, and wait until the tracker knows them."""
        for name in names:
            home = self._base / name
            options = ["--tracker", self.tracker, "--home", str(home), "--listen", "127.0.0.1:0", "--name", name]
            self._start(name, "peer_daemon.main", ["run", *options, "--cores", "1", "--memory", "1200"])
        for name in names:
            self._wait(name, self._base / name / "ready")

    def kill(self, name: str) -> None:
        """SIGKILL, as a machine that loses its power."""
        self._running[name].kill()
        self._running[name].wait()

    def process(self, name: str) -> subprocess.Popen[bytes]:
        """One of them, to look at or to signal."""
        return self._running[name]

    def output(self, name: str) -> str:
        """What a process wrote."""
        return (self._base / f"{name}.out").read_text(errors="replace")

    def _start(self, name: str, module: str, arguments: list[str]) -> None:
        with (self._base / f"{name}.out").open("wb") as out:
            command = [sys.executable, "-m", module, *arguments]
            self._running[name] = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=out, stderr=out)

    def _wait(self, name: str, sign: Path) -> None:
        until = time.monotonic() + START_S
        while not sign.exists():
            assert self._running[name].poll() is None, f"{name} ended:\n{self.output(name)}"
            assert time.monotonic() < until, f"{name} is not ready:\n{self.output(name)}"
            time.sleep(0.05)
