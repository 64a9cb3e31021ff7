"""Real trackers and real peers as processes of a test: started, killed and cleared away by id."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import ClassVar

from peer_daemon.lending.hardware import SPEED_FILE
from tests.laboratory.fork_server import WARM, ForkedProgram, fork_server, is_network

START_S = 120
_LENT = ("--cores", "1", "--memory", "1200")

QUIET = {
    # Other tests on this machine are no owner to wait for.
    "AXON_PEER_IN_USE_OTHERS_CPU": "100",
    "AXON_PEER_NOT_IN_USE_OTHERS_CPU": "100",
    "AXON_PEER_ON_BATTERY": "true",
    "AXON_PEER_PAGE": "127.0.0.1:0",
    # No test changes anybody's router.
    "AXON_PEER_MAP_PORT": "false",
}


class Processes:
    """Trackers and peers by name. Use it in a `with`: nothing that it started outlives it."""

    _speeds: ClassVar[dict[tuple[str, ...], bytes]] = {}
    """What the first peer that lent so much measured of this machine, which those after it find in their homes."""

    def __init__(self, base: Path, first_tracker: str = "tracker", *, warm: bool = True) -> None:
        """`first_tracker` is started at once; an empty name starts none.

        `warm`: our own programs are forked from one that has loaded them. Not where their memory or start is measured.
        """
        self._warm = warm
        self._base = base
        self._first = first_tracker
        self._running: dict[str, subprocess.Popen[bytes] | ForkedProgram] = {}
        self._lent: dict[str, tuple[str, ...]] = {}
        self.trackers: dict[str, str] = {}
        """Their addresses, by name; that of one which was killed stays."""

    def __enter__(self) -> Processes:
        if self._first:
            self.start_tracker(self._first)
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

    @property
    def tracker(self) -> str:
        """The address of the first tracker."""
        return next(iter(self.trackers.values()))

    def start_tracker(
        self,
        name: str,
        *,
        knows: Sequence[str] = (),
        vouches: Sequence[str] = (),
        listen: str = "",
        inside: Sequence[str] = (),
    ) -> None:
        """Start a tracker that knows those at the addresses `knows`; one that ran before listens where it did.

        It vouches for those at the addresses `vouches`.

        `inside` stands before its command line (`Network.inside`).
        """
        home = self._base / name
        if not listen:
            known = self.trackers.get(name)
            listen = known.partition("#")[0].removeprefix("https://") if known else "127.0.0.1:0"
        (home / "address").unlink(missing_ok=True)
        others = [word for address in knows for word in ("--tracker", address)]
        others += [word for address in vouches for word in ("--vouch-for", address)]
        self._start(name, "tracker.main", ["run", "--listen", listen, "--home", str(home), *others], inside)
        self._wait(name, home / "address")
        self.trackers[name] = (home / "address").read_text().strip()

    def empty(self, name: str) -> None:
        """Take a dead tracker's database away; its key and certificate stay, so it is the same tracker."""
        for file in [*(self._base / name).glob("tracker.db*"), self._base / name / "last-head"]:
            file.unlink()

    def start_peers(self, *names: str, listen: str = "127.0.0.1:0", inside: Sequence[str] = ()) -> None:
        """Start peers with one slot of one core each, told of every tracker, and wait until one of those knows them."""
        for name in names:
            self.begin_peer(name, listen=listen, inside=inside)
        for name in names:
            self.wait_for_peer(name)

    def begin_peer(
        self,
        name: str,
        *,
        listen: str = "127.0.0.1:0",
        inside: Sequence[str] = (),
        lent: Sequence[str] = _LENT,
        program: Sequence[str] = ("peer_daemon.main",),
    ) -> None:
        """Start one, and wait for nothing. `lent` are options on what it lends, `program` is a daemon and its words."""
        told = [word for address in self.trackers.values() for word in ("--tracker", address)]
        (self._base / name / "ready").unlink(missing_ok=True)  # of one that was killed
        self._lent[name] = tuple(lent)
        speed, kept = self._speeds.get(self._lent[name]), self._base / name / SPEED_FILE
        if speed and not kept.exists():
            kept.parent.mkdir(mode=0o700, exist_ok=True)
            kept.write_bytes(speed)
        options = [*told, "--home", str(self._base / name), "--listen", listen, "--name", name, *lent]
        self._start(name, program[0], [*program[1:], "run", *options], inside)

    def wait_for_peer(self, name: str) -> None:
        """Until a tracker knows it."""
        self._wait(name, self._base / name / "ready")
        kept = self._base / name / SPEED_FILE
        if kept.exists():  # it could be measured
            self._speeds.setdefault(self._lent[name], kept.read_bytes())

    def kill(self, name: str) -> None:
        """SIGKILL, as a machine that loses its power."""
        self._running[name].kill()
        self._running[name].wait()

    def stop(self, name: str) -> None:
        """SIGTERM, and wait until it has said goodbye."""
        self._running[name].terminate()
        self._running[name].wait(30)

    def process(self, name: str) -> subprocess.Popen[bytes] | ForkedProgram:
        """One of them, to look at or to signal."""
        return self._running[name]

    def output(self, name: str) -> str:
        """What a process wrote."""
        return (self._base / f"{name}.out").read_text(errors="replace")

    def _start(self, name: str, module: str, arguments: list[str], inside: Sequence[str]) -> None:
        environment = {**QUIET, **os.environ}
        with (self._base / f"{name}.out").open("ab") as out:
            if self._warm and module in WARM and (not inside or is_network(inside)):
                self._running[name] = fork_server().start(module, arguments, out, env=environment, inside=inside)
                return
            command = [*inside, sys.executable, "-m", module, *arguments]
            self._running[name] = subprocess.Popen(
                command, stdin=subprocess.DEVNULL, stdout=out, stderr=out, env=environment
            )

    def _wait(self, name: str, sign: Path) -> None:
        until = time.monotonic() + START_S
        while not sign.exists():
            assert self._running[name].poll() is None, f"{name} ended:\n{self.output(name)}"
            assert time.monotonic() < until, f"{name} is not ready:\n{self.output(name)}"
            time.sleep(0.05)
