"""Every command of README.md and of the tutorials, typed as their reader types them, on one small swarm.

Four things are not as the page has them, since a test is no new computer:

- Lines that fetch and install Axon are left out: the environment of the tests is what they would make. What they do on
  a bare machine is tried where installing is tested.
- A tracker, a peer or a swarm that runs already is not started again, and `axon swarm up` starts two peers, not four:
  a computer of two cores is in the tests' hands.
- Programs that run until Ctrl-C are started in the background, where the reader has a second terminal.
- `https://HOST:PORT#FINGERPRINT` stands for the address of the tracker that the reader started.
"""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from axonp2p.sandbox.child import why_no_sandbox
from tests.laboratory.fork_server import ForkedProgram, fork_server
from tests.laboratory.page_commands import Saved, steps
from tests.system.processes import QUIET

ROOT = Path(__file__).parent.parent.parent
PAGES = (
    "docs/tutorials/first-tracker.md",
    "docs/tutorials/first-lent-machine.md",
    "README.md",
    "docs/tutorials/first-model.md",
)
"""In an order in which each has what it needs: a lent machine needs a tracker."""

INSTALLING = ("git clone ", "scripts/install", ". .venv/bin/activate")
PROGRAMS = {"axon": "client_cli.main", "axon-peer": "peer_daemon.main", "axon-tracker": "tracker.main"}
SIGN_OF_LIFE = {"axon-tracker run": "tracker/address", "axon-peer run": "peer/ready"}
"""Which file of a program that runs until Ctrl-C says that it is ready."""
PLACEHOLDER = "https://HOST:PORT#FINGERPRINT"

no_sandbox = why_no_sandbox()
pytestmark = [pytest.mark.sandbox, pytest.mark.skipif(bool(no_sandbox), reason=no_sandbox or "a sandbox can be had")]


class Reader:
    """Somebody with a new account who types what a page says."""

    def __init__(self, home: Path) -> None:
        self._data = home / ".local" / "share" / "axon"
        self._home = home
        self._running: dict[str, ForkedProgram] = {}
        self._swarm = False
        own = {name: value for name, value in os.environ.items() if name != "AXON_HOME" and not name.startswith("XDG_")}
        self._environment = {
            **own,
            **QUIET,
            "HOME": str(home),
            "AXON_TRACKER_LISTEN": "127.0.0.1:0",
            "AXON_PEER_LISTEN": "127.0.0.1:0",
            "COLUMNS": "100",
        }

    def read(self, page: str) -> None:
        """Do all that a page says, in a folder of its own."""
        folder = self._home / re.sub(r"\W", "-", page)
        folder.mkdir()
        for step in steps((ROOT / page).read_text()):
            if isinstance(step, Saved):
                (folder / step.name).write_text(step.text)
            elif not step.line.startswith(INSTALLING):
                self._type(step.line, folder)

    def _type(self, line: str, folder: Path) -> None:
        if line in SIGN_OF_LIFE:
            self._run_in_background(line, folder)
        elif line == "axon swarm up":
            if not self._swarm:
                self._swarm = True
                self._run(f"{line} -n 2", folder)
        elif line == "axon swarm down":
            pass  # the next page would start it again; `leave` stops it
        else:
            self._run(line.replace(PLACEHOLDER, self._tracker) if PLACEHOLDER in line else line, folder)

    @property
    def _tracker(self) -> str:
        return (self._data / SIGN_OF_LIFE["axon-tracker run"]).read_text().strip()

    def _run(self, line: str, folder: Path) -> None:
        program, *words = shlex.split(line)
        if program == "python":
            command, answers = [sys.executable, *words], ""
        elif line == "axon-peer setup":
            command = [sys.executable, "-m", PROGRAMS[program], *words]
            again = (self._data / "peer" / "config.toml").exists()
            # Enter, Enter, and the tracker's address; the second time it asks first whether to change what is there.
            answers = ("y\n" if again else "") + f"\n\n{self._tracker}\n"
        else:
            done = fork_server().run(PROGRAMS[program], words, 200, self._environment, folder)
            assert done.returncode == 0, f"{line}: {done.returncode}\n{done.stdout}\n{done.stderr}"
            return
        plain = subprocess.run(
            command, input=answers, capture_output=True, text=True, timeout=60, env=self._environment, cwd=folder
        )
        assert plain.returncode == 0, f"{line}: {plain.returncode}\n{plain.stdout}\n{plain.stderr}"

    def _run_in_background(self, line: str, folder: Path) -> None:
        if line in self._running:
            return
        program, *words = shlex.split(line)
        with (folder / f"{program}.out").open("wb") as out:
            started = fork_server().start(PROGRAMS[program], words, out, env=self._environment, folder=folder)
        self._running[line] = started
        until = time.monotonic() + 60
        while not (self._data / SIGN_OF_LIFE[line]).exists():
            said = (folder / f"{program}.out").read_text()
            assert started.poll() is None, f"{line} ended: {said}"
            assert time.monotonic() < until, f"{line} is not ready: {said}"
            time.sleep(0.05)

    def leave(self) -> None:
        """Stop what the pages had the reader start."""
        if self._swarm:
            fork_server().run("client_cli.main", ["swarm", "down"], 60, self._environment, self._home)
        for program in reversed(self._running.values()):
            program.terminate()
            program.wait(30)


@pytest.fixture
def reader(tmp_path: Path) -> Iterator[Reader]:
    found = Reader(tmp_path)
    try:
        yield found
    finally:
        found.leave()


@pytest.mark.timeout(600)
def test_what_the_pages_say_works_word_for_word(reader: Reader, tmp_path: Path) -> None:
    for page in PAGES:
        reader.read(page)
    assert (tmp_path / "README-md" / "my-model" / "model.safetensors").exists()
    assert (tmp_path / "docs-tutorials-first-tracker-md" / "tracker-backup.db").exists()
