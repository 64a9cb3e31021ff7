"""A swarm on this computer: trackers and peers, each a real process with its own key, folder and sandbox.

    HOME/swarm.json               what runs (client_cli/swarm_file.py)
    HOME/tracker/ tracker-2/ ...  each tracker's home, its output in output.log
    HOME/peer-otter/ ...          each peer's home, the same

Processes are stopped by id, and only those that the record names and the machine confirms. The record is written
before a process can be forgotten: after every single start. So a start that fails, or is killed, can be taken back.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

import psutil

from axonp2p.errors import AlreadyRunning, AxonError, SandboxMissing, SettingsError, Unreachable
from axonp2p.files import locked
from axonp2p.missing_modules import not_installed
from axonp2p.sandbox.child import why_no_sandbox
from axonp2p.sandbox.walls.diagnosis import FIXED_BY
from client_cli.child_errors import last_lines, why_it_ended
from client_cli.interrupts import die_with_parent, no_interruption
from client_cli.swarm_file import (
    SwarmProcess,
    SwarmRecord,
    is_tracker,
    read_record,
    remove_record,
    running,
    tracker_name,
    write_record,
)

NAMES = (
    "otter", "heron", "lynx", "wren", "ibex", "newt", "tern", "vole", "hare", "kite", "mink", "toad",
    "crane", "finch", "gecko", "moose", "quail", "raven", "shrew", "stoat",
)  # fmt: skip
LOG_NAME = "output.log"
START_TIMEOUT_S = 90
STOP_TIMEOUT_S = 10
_OF_PEERS_AND_TRACKERS = ("torch", "safetensors", "sqlite_utils", "prometheus_client")
"""Modules that a client alone does not need."""


@dataclass(frozen=True)
class SwarmPlan:
    """The swarm to start. `bound_to_us`: the processes die with this one, whatever kills it."""

    peers: int
    trackers: int = 1
    port: int = 0
    """The first tracker's; 0 takes a free one, as the others do."""
    bound_to_us: bool = False


def start_swarm(home: Path, plan: SwarmPlan, told: Callable[[str, SwarmRecord], None] | None = None) -> SwarmRecord:
    """Start all processes in `home` and wait until each is ready; `told` hears "trackers" and then "peers".

    Raises `NotInstalled` when libraries of peers or trackers are missing, `SandboxMissing` when peers could run no job
    here, `AlreadyRunning` when a swarm runs in `home`, the error that a process ended with, or `Unreachable` when they
    take too long; then nothing of it is left running.
    """
    if missing := [module for module in _OF_PEERS_AND_TRACKERS if find_spec(module) is None]:
        raise not_installed(missing, "a swarm on this computer")
    with no_interruption():  # it makes files of its own
        reason = why_no_sandbox()
    if reason:
        cause, _, fix = reason.partition(FIXED_BY)
        raise SandboxMissing("peers could run no job on this computer", cause=cause, fix=fix)
    with _alone_in(home):
        before = read_record(home)
        if before and any(running(process) for process in before.processes):
            raise AlreadyRunning(f"a swarm runs in {home} already", fix=f"axon swarm down --home {home}")
        write_record(home, SwarmRecord(trackers=[], processes=[]))
        try:
            record = _start_trackers(home, plan)
            if told:
                told("trackers", record)
            record = _start_peers(home, plan, record)
            if told:
                told("peers", record)
            return record
        except BaseException:
            with no_interruption():
                _stop_all(home)
            raise


def stop_swarm(home: Path) -> list[str]:
    """Stop the swarm in `home`, peers first so that they take their leave; the names of those that still ran."""
    with _alone_in(home):
        return _stop_all(home)


def friendly_names(count: int) -> list[str]:
    """`count` different names that people can tell apart."""
    return [
        NAMES[index % len(NAMES)] + (f"-{index // len(NAMES) + 1}" if index >= len(NAMES) else "")
        for index in range(count)
    ]


def memory_share_mb(peers: int, total_bytes: int) -> int:
    """Memory for each peer's job in MiB: a fair part of four fifths of the machine, but enough for a small job."""
    return max(1024, int(total_bytes * 0.8 / 2**20) // max(1, peers))


def stop_process(process: SwarmProcess, number: int) -> bool:
    """Send `process` a signal when it is still the one that was started."""
    found = running(process)
    if found is None:
        return False
    try:
        found.send_signal(number)
    except psutil.NoSuchProcess:
        return False
    return True


def log_of(process: SwarmProcess) -> Path:
    """Where the process writes."""
    return Path(process.home) / LOG_NAME


def _start_trackers(home: Path, plan: SwarmPlan) -> SwarmRecord:
    record = SwarmRecord(trackers=[], processes=[])
    for number in range(plan.trackers):
        folder = home / tracker_name(number)
        sign = folder / "address"
        arguments = ["tracker.main", "run", "--listen", f"127.0.0.1:{0 if number else plan.port}"]
        # Each is told of those before it; the first ones hear of the others from them.
        arguments += _options("--tracker", record.trackers)
        with no_interruption():
            process = _start(folder.name, folder, sign, arguments, bound_to_us=plan.bound_to_us)
            record = SwarmRecord(trackers=record.trackers, processes=[*record.processes, process])
            write_record(home, record)
        _wait_for({process: sign})
        record = SwarmRecord(trackers=[*record.trackers, sign.read_text().strip()], processes=record.processes)
        write_record(home, record)
    return record


def _start_peers(home: Path, plan: SwarmPlan, record: SwarmRecord) -> SwarmRecord:
    memory = memory_share_mb(plan.peers, psutil.virtual_memory().total)
    signs = {process: Path(process.home) / "address" for process in record.processes}
    for name in friendly_names(plan.peers):
        folder = home / f"peer-{name}"
        sign = folder / "ready"
        arguments = ["peer_daemon.main", "run", "--name", name, "--listen", "127.0.0.1:0"]
        arguments += ["--cores", "1", "--memory", str(memory), *_options("--tracker", record.trackers)]
        with no_interruption():
            process = _start(name, folder, sign, arguments, bound_to_us=plan.bound_to_us)
            record = SwarmRecord(trackers=record.trackers, processes=[*record.processes, process])
            write_record(home, record)
        signs[process] = sign
    # A peer writes its sign after a tracker has stored its row, so that tracker knows all of them by then.
    _wait_for(signs)
    return record


def _options(name: str, values: Sequence[str]) -> list[str]:
    return [word for value in values for word in (name, value)]


_AMONG_THEMSELVES = {
    # Nothing of it leaves this computer: its peers do not speak to the local network.
    "AXON_PEER_LAN": "false",
    # They are each other's other programs, and whoever started them waits for them to work.
    "AXON_PEER_IN_USE_OTHERS_CPU": "100",
    "AXON_PEER_NOT_IN_USE_OTHERS_CPU": "100",
    "AXON_PEER_ON_BATTERY": "true",
    "AXON_PEER_PRIORITY": "normal",
    "AXON_PEER_PAGE": "127.0.0.1:0",
}


def _start(name: str, folder: Path, sign: Path, arguments: Sequence[str], *, bound_to_us: bool) -> SwarmProcess:
    try:
        folder.mkdir(mode=0o700, exist_ok=True)
        sign.unlink(missing_ok=True)
        log = (folder / LOG_NAME).open("wb")
    except OSError as error:
        raise SettingsError(f"cannot use the folder {folder}: {error.strerror}", fix="choose another --home") from error
    with log:
        started = subprocess.Popen(
            [sys.executable, "-P", "-m", *arguments, "--home", str(folder)],
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=subprocess.STDOUT,
            # In a session of its own: a Ctrl-C on the terminal is for us, and we stop the swarm in order.
            start_new_session=True,
            env={key: value for key, value in os.environ.items() if not key.startswith("AXON_")} | _AMONG_THEMSELVES,
            preexec_fn=die_with_parent if bound_to_us else None,
        )
    try:
        created = psutil.Process(started.pid).create_time()
    except psutil.NoSuchProcess:
        created = time.time()
    return SwarmProcess(name=name, pid=started.pid, started=created, home=str(folder))


def _wait_for(signs: dict[SwarmProcess, Path]) -> None:
    deadline = time.monotonic() + START_TIMEOUT_S
    while True:
        for process in signs:
            if running(process) is None:
                raise why_it_ended(_called(process), _log_text(process), str(log_of(process)))
        waiting = [process for process, sign in signs.items() if not sign.exists()]
        if not waiting:
            return
        if time.monotonic() > deadline:
            raise _too_slow(waiting[0])
        time.sleep(0.05)


def _too_slow(process: SwarmProcess) -> AxonError:
    return Unreachable(
        f"{_called(process)} was not ready after {START_TIMEOUT_S} s",
        cause=f"the last lines of its log:\n{last_lines(_log_text(process))}",
        fix=f"its log: {log_of(process)}",
    )


def _called(process: SwarmProcess) -> str:
    return f"the {process.name}" if is_tracker(process) else f"peer {process.name}"


def _log_text(process: SwarmProcess) -> str:
    try:
        return log_of(process).read_bytes()[-20_000:].decode(errors="replace")
    except OSError:
        return ""


def _stop_all(home: Path) -> list[str]:
    record = read_record(home)
    if record is None:
        return []
    stopped = [*_stop_some(record.peers), *_stop_some(record.tracker_processes)]
    remove_record(home)
    return stopped


def _stop_some(processes: Sequence[SwarmProcess]) -> list[str]:
    asked = [process for process in processes if stop_process(process, signal.SIGTERM)]
    if not _ended(asked, STOP_TIMEOUT_S):
        for process in asked:
            stop_process(process, signal.SIGKILL)
        _ended(asked, STOP_TIMEOUT_S)
    return [process.name for process in asked]


def _ended(processes: Sequence[SwarmProcess], seconds: float) -> bool:
    deadline = time.monotonic() + seconds
    while any(running(process) for process in processes):
        if time.monotonic() > deadline:
            return False
        time.sleep(0.05)
    return True


def _alone_in(home: Path) -> AbstractContextManager[None]:
    taken = f"another axon swarm is at work in {home}"
    return locked(home / ".swarm-lock", taken, fix="try again in a moment")
