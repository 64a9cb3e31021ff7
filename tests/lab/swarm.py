"""A swarm of ours on a ground: the tracker at the server, peers on the members' lines, and a client's program."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psutil

from tests.lab.bench.ground import Ground
from tests.lab.laboratory import ROOT
from tests.system.processes import Processes

NOT_ON_THE_LAN = {"AXON_CLIENT_LAN": "false", "AXON_PEER_LAN": "false"}
"""Who runs beside us on the same machine is none of ours."""

Told = dict[str, Any]
"""An event of a job, as its line of JSON has it, and `at`: the machine's monotonic seconds."""


class LabSwarm:
    """Use it in a `with`. Peers go by the number of their line, and are called `peer-NUMBER`."""

    def __init__(self, ground: Ground, folder: Path, *, memory_mb: int = 1200) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self._ground = ground
        self._folder = folder
        self._lent = ["--cores", "1", "--memory", str(memory_mb)]
        self._processes = Processes(folder, first_tracker="", warm=False)
        self._clients: list[subprocess.Popen[str]] = []

    def __enter__(self) -> LabSwarm:
        os.environ.update(NOT_ON_THE_LAN)
        self._processes.__enter__()
        try:
            ground = self._ground
            listen = f"{ground.address(ground.server)}:{0 if ground.bare else 7070}"
            self._processes.start_tracker("tracker", listen=listen, inside=ground.inside(ground.server))
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        for client in self._clients:
            client.kill()
            client.wait()
        self._processes.__exit__()

    def start(self, *numbers: int) -> None:
        """Peers on these lines, known to the tracker when this returns."""
        for number in numbers:
            self.begin(number)
        for number in numbers:
            self._processes.wait_for_peer(f"peer-{number}")

    def begin(self, number: int) -> None:
        """A peer on this line, which will be known when it is."""
        listen = f"{self._ground.address(number)}:{0 if self._ground.bare else 7071}"
        inside = self._ground.inside(number)
        self._processes.begin_peer(f"peer-{number}", listen=listen, inside=inside, lent=self._lent)

    def kill(self, number: int) -> None:
        """As a machine that loses its power: daemon and worker in one moment."""
        for process in self.programs(number):
            process.kill()
        self._processes.kill(f"peer-{number}")

    def freeze(self, number: int) -> None:
        """All its programs stand still, without a word."""
        for process in self.programs(number):
            process.send_signal(signal.SIGSTOP)

    def thaw(self, number: int) -> None:
        """They go on."""
        for process in self.programs(number):
            process.send_signal(signal.SIGCONT)

    def programs(self, number: int) -> list[psutil.Process]:
        """The daemon and what it has started."""
        daemon = psutil.Process(self._processes.process(f"peer-{number}").pid)
        return [daemon, *daemon.children(recursive=True)]

    def submit(self, job: Path) -> Iterator[Told]:
        """The job's events as they come, until it is over. Raises `RuntimeError` when it did not end well."""
        return self._follow("submit", str(job))

    def resume(self, job: str) -> Iterator[Told]:
        """The same of a job that was left, by its id."""
        return self._follow("resume", job)

    def run_client(self, *words: str) -> Told:
        """The JSON object that a client's program prints last: a module, to which tracker and home are told first."""
        ground, (module, *more) = self._ground, words
        command = [sys.executable, "-m", module, self._processes.tracker, str(self._folder / "client"), *more]
        done = subprocess.run(
            [*ground.inside(ground.client), *command], capture_output=True, text=True, cwd=ROOT, check=False
        )
        if done.returncode:
            raise RuntimeError(f"{module} ended with {done.returncode}:\n{done.stderr[-4000:]}")
        found: Told = json.loads(done.stdout.splitlines()[-1])
        return found

    def kill_client(self) -> None:
        """Its events end, and nobody is told."""
        self._clients[-1].kill()

    def _follow(self, what: str, job: str) -> Iterator[Told]:
        home = str(self._folder / "client")
        words = [sys.executable, "-m", "tests.lab.client", what, job, self._processes.tracker, home]
        ground = self._ground
        with (self._folder / f"client-{len(self._clients)}.out").open("w") as complaints:
            client = subprocess.Popen(
                [*ground.inside(ground.client), *words], stdout=subprocess.PIPE, stderr=complaints, text=True, cwd=ROOT
            )
        self._clients.append(client)
        assert client.stdout is not None
        for line in client.stdout:
            yield json.loads(line)
        if client.wait() > 0:
            raise RuntimeError(f"the job did not end well:\n{Path(complaints.name).read_text()[-4000:]}")


def now() -> float:
    """The clock of `Told`."""
    return time.monotonic()
