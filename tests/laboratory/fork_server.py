"""Programs of Axon without their start: one process has loaded them, and is forked for each that is started.

A daemon begins within tenths of a second so, instead of a second and a half of processor time, and a command of `axon`
within hundredths. What runs is the same: its own process, arguments, environment and files, from `main()` to its end;
also in a network namespace of its own.
"""

from __future__ import annotations

import ctypes
import gc
import importlib
import json
import os
import pkgutil
import select
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import IO, Any

WARM = ("peer_daemon.main", "tracker.main", "client_cli.main")
"""The programs that are loaded. One that changes ours before it runs them has to load them itself."""
_LIBRARIES = ("peer_daemon.app", "axonp2p.client.swarm")
_ROOMS = (
    "client_cli",
    "client_cli.commands",
    "client_cli.doctor",
    "client_cli.report",
    "peer_daemon.commands",
    "tracker",
)
_IN_NETWORK = ("ip", "netns", "exec")
_CLONE_NEWNET = 0x40000000
_LINE = 2**20
_ENDS_S = 10.0
"""How long a program may take from SIGTERM to its end."""


class ForkedProgram:
    """As much of `subprocess.Popen` as tests use, for a program that the fork server started."""

    def __init__(self, server: ForkServer, pid: int) -> None:
        self._server = server
        self.pid = pid

    @property
    def returncode(self) -> int | None:
        """As `Popen` has it; None while it runs."""
        return self._server.codes.get(self.pid)

    def poll(self) -> int | None:
        """Its exit code, when it has ended."""
        self._server.hear(0)
        return self.returncode

    def wait(self, timeout: float | None = None) -> int:
        """Wait for its end. Raises `TimeoutExpired`."""
        until = None if timeout is None else time.monotonic() + timeout
        while (code := self.poll()) is None:
            if until is not None and time.monotonic() > until:
                raise subprocess.TimeoutExpired(str(self.pid), timeout or 0)
            self._server.hear(0.05)
        return code

    def send_signal(self, number: int) -> None:
        """Does nothing to one that has ended."""
        if self.poll() is None:
            with suppress(ProcessLookupError):
                os.kill(self.pid, number)

    def terminate(self) -> None:
        """SIGTERM."""
        self.send_signal(signal.SIGTERM)

    def kill(self) -> None:
        """SIGKILL."""
        self.send_signal(signal.SIGKILL)


class ReadProgram(ForkedProgram):
    """One whose lines are read as they come."""

    def __init__(self, program: ForkedProgram, stdout: IO[str]) -> None:
        super().__init__(program._server, program.pid)
        self.stdout = stdout

    def __enter__(self) -> ReadProgram:
        return self

    def __exit__(self, *_: object) -> None:
        self.stdout.close()
        self.wait()

    def communicate(self, timeout: float | None = None) -> tuple[str, None]:
        """All that it wrote and nobody has read, when it has ended. Raises `TimeoutExpired`."""
        lines: list[str] = []
        reading = threading.Thread(target=lambda: lines.extend(self.stdout), daemon=True)
        reading.start()
        self.wait(timeout)
        reading.join(timeout)
        return "".join(lines), None


class ForkServer:
    """The asking side. It ends with the process that made it."""

    def __init__(self) -> None:
        self._nothing = open(os.devnull, "rb")  # noqa: SIM115
        self._line, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self._lock = threading.RLock()
        self.codes: dict[int, int] = {}
        """Of those that have ended, by number of process."""
        self._process = subprocess.Popen(
            [sys.executable, "-m", "tests.laboratory.fork_server", str(theirs.fileno())],
            pass_fds=[theirs.fileno()],
            cwd=Path(__file__).parents[2],
            # The number of threads of a library is read when it is loaded, and threads are not forked.
            env={**os.environ, "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"},
        )
        theirs.close()

    def start(
        self, module: str, words: Sequence[str], out: IO[Any], errors: IO[Any] | None = None, *,
        env: Mapping[str, str] = os.environ, folder: Path | None = None, inside: Sequence[str] = (),
    ) -> ForkedProgram:  # fmt: skip
        """Start `python -m MODULE WORDS` in `folder`, with nothing to read.

        It writes to `out`, and complains there if nowhere else. `inside`: of a network, as `Network.inside` has it.
        """
        order = {"module": module, "words": list(words), "env": dict(env), "folder": str(folder or Path.cwd())}
        if inside:
            assert is_network(inside), inside
            order["network"] = inside[-1]
        files = (self._nothing.fileno(), out.fileno(), (errors or out).fileno())
        with self._lock:
            socket.send_fds(self._line, [json.dumps(order).encode()], files)
            while True:
                said = self._receive()
                if "started" in said:
                    break
        # The kernel has given the number again.
        self.codes.pop(said["started"], None)
        return ForkedProgram(self, said["started"])

    def begin(
        self, module: str, words: Sequence[str], env: Mapping[str, str] = os.environ, folder: Path | None = None,
        inside: Sequence[str] = (),
    ) -> ReadProgram:  # fmt: skip
        """Start one whose output and complaints are read."""
        ours, theirs = os.pipe()
        with os.fdopen(theirs, "wb") as out:
            program = self.start(module, words, out, env=env, folder=folder, inside=inside)
        return ReadProgram(program, os.fdopen(ours, errors="replace"))

    def run(
        self, module: str, words: Sequence[str], timeout: float, env: Mapping[str, str] = os.environ,
        folder: Path | None = None, inside: Sequence[str] = (),
    ) -> subprocess.CompletedProcess[str]:  # fmt: skip
        """As `subprocess.run`, with what it writes as text. One that takes longer is ended first, by SIGTERM and then
        SIGKILL, and `TimeoutExpired` raised, which has what it wrote too."""
        with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as errors:
            program = self.start(module, words, out, errors, env=env, folder=folder, inside=inside)
            try:
                program.wait(timeout)
            except subprocess.TimeoutExpired as late:
                _end(program)
                raise subprocess.TimeoutExpired(late.cmd, timeout, *(_text(file) for file in (out, errors))) from None
            except BaseException:
                _end(program)
                raise
            return subprocess.CompletedProcess(
                [module, *words], program.wait(), *(_text(file) for file in (out, errors))
            )

    def hear(self, seconds: float) -> None:
        """Wait so long for news of who has ended."""
        with self._lock:
            while select.select([self._line], [], [], seconds)[0]:
                self._receive()
                seconds = 0

    def _receive(self) -> dict[str, Any]:
        said: dict[str, Any] = json.loads(self._line.recv(_LINE) or b'{"started": -1}')
        assert said.get("started") != -1, f"the fork server has ended: {self._process.wait(5)}"
        if "ended" in said:
            self.codes[said["ended"]] = said["code"]
        return said


@cache
def fork_server() -> ForkServer:
    """The one of this process, made when it is first needed."""
    return ForkServer()


def is_network(inside: Sequence[str]) -> bool:
    """Whether these words before a command line put it into a network namespace, and do nothing else."""
    return tuple(inside[:-1]) == _IN_NETWORK


def _text(file: IO[bytes]) -> str:
    file.seek(0)
    return file.read().decode(errors="replace")


def _end(program: ForkedProgram) -> None:
    program.terminate()
    try:
        program.wait(_ENDS_S)
    except subprocess.TimeoutExpired:
        program.kill()
        program.wait()


# --- the serving side ---


def _load() -> None:
    for name in (*WARM, *_LIBRARIES):
        importlib.import_module(name)
    for package in _ROOMS:
        for module in pkgutil.iter_modules(importlib.import_module(package).__path__, f"{package}."):
            if not module.ispkg:
                importlib.import_module(module.name)
    assert "torch" not in sys.modules
    assert threading.active_count() == 1
    gc.collect()
    gc.freeze()


def _serve(line: socket.socket) -> Callable[[], None] | None:
    """Until the asking side has gone: None. In a fork it comes back with the program."""
    waking, woken = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    signal.set_wakeup_fd(woken, warn_on_full_buffer=False)
    while True:
        ready, _, _ = select.select([line.fileno(), waking], [], [])
        if waking in ready:
            os.read(waking, 4096)
            _tell_ends(line)
        if line.fileno() in ready:
            said, files, _, _ = socket.recv_fds(line, _LINE, 3)
            if not said:
                return None
            order = json.loads(said)
            child = os.fork()
            if child == 0:
                signal.set_wakeup_fd(-1)
                for number in (signal.SIGCHLD, signal.SIGTERM):
                    signal.signal(number, signal.SIG_DFL)
                line.close()
                os.close(waking)
                os.close(woken)
                return _program(order, files)
            for file in files:
                os.close(file)
            line.send(json.dumps({"started": child}).encode())


def _tell_ends(line: socket.socket) -> None:
    with suppress(ChildProcessError):
        while (ended := os.waitpid(-1, os.WNOHANG))[0]:
            line.send(json.dumps({"ended": ended[0], "code": os.waitstatus_to_exitcode(ended[1])}).encode())


def _program(order: dict[str, Any], files: Sequence[int]) -> Callable[[], None]:
    for target, file in enumerate(files):
        os.dup2(file, target)
        os.close(file)
    if "network" in order:
        _enter(order["network"])
    os.chdir(order["folder"])
    os.environ.clear()
    os.environ.update(order["env"])
    module = importlib.import_module(order["module"])
    sys.argv = [str(module.__file__), *order["words"]]
    started: Callable[[], None] = module.main
    return started


def _enter(network: str) -> None:
    with open(f"/run/netns/{network}", "rb") as namespace:
        if ctypes.CDLL(None, use_errno=True).setns(namespace.fileno(), _CLONE_NEWNET):
            raise OSError(ctypes.get_errno(), f"cannot enter the network {network}")


def _main() -> None:
    with socket.socket(fileno=int(sys.argv[1])) as line:
        _load()
        program = _serve(line)
    if program is not None:
        program()


if __name__ == "__main__":
    _main()
