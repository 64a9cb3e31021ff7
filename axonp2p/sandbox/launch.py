"""Starts bubblewrap and gives back what holds a sandbox: its first process, its log, its channel."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import shutil
import socket
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import IO

from axonp2p.errors import AxonError, SandboxMissing, SettingsError
from axonp2p.sandbox.environment import find_environment, is_open_to_all
from axonp2p.sandbox.limits import Limits
from axonp2p.sandbox.walls.command_line import Descriptors, bubblewrap_command, made_up
from axonp2p.sandbox.walls.diagnosis import INSTALL
from axonp2p.sandbox.walls.drop_privileges import choose_user
from axonp2p.sandbox.walls.seccomp import open_filter
from axonp2p.sandbox.watch.init_process import InitProcess

START_TIMEOUT_S = 20.0
ASK = "start axon-peer again: it tries the sandbox first and says what is missing"


@dataclass(frozen=True)
class Launched:
    """A sandbox that was just started."""

    bubblewrap: asyncio.subprocess.Process
    first: InitProcess
    channel: socket.socket
    log: IO[bytes]
    """Its output, to be read."""


@dataclass(frozen=True)
class _Ends:
    """Both ends of all that joins us with a sandbox; those that it keeps are closed here after the start."""

    channel: socket.socket
    channel_inside: socket.socket
    log: IO[bytes]
    log_inside: IO[bytes]
    info: IO[bytes]
    info_inside: IO[bytes]
    go: IO[bytes]
    go_inside: IO[bytes]
    files: tuple[tuple[IO[bytes], str], ...]
    """Each that is made up, and its path inside."""
    filter: IO[bytes]

    @classmethod
    def make(cls, limits: Limits) -> _Ends:
        """Raises `SandboxMissing`."""
        filter_ = open_filter(gpu=limits.gpu is not None)
        channel, channel_inside = socket.socketpair()
        log, log_inside = _pipe()
        info, info_inside = _pipe()
        go_inside, go = _pipe()
        files = made_up_files(limits)
        return cls(channel, channel_inside, log, log_inside, info, info_inside, go, go_inside, files, filter_)

    @property
    def passed(self) -> tuple[int, ...]:
        kept = (self.info_inside, self.go_inside, self.filter, *(file for file, _ in self.files))
        return (self.channel_inside.fileno(), *(end.fileno() for end in kept))

    @property
    def descriptors(self) -> Descriptors:
        files = tuple((file.fileno(), path) for file, path in self.files)
        return Descriptors(
            files=files,
            info=self.info_inside.fileno(),
            go=self.go_inside.fileno(),
            filter=self.filter.fileno(),
        )

    def close_inside(self) -> None:
        self.channel_inside.close()
        for end in (self.log_inside, self.info_inside, self.go_inside, self.filter, *(file for file, _ in self.files)):
            end.close()

    def close(self) -> None:
        self.close_inside()
        self.channel.close()
        for end in (self.log, self.info, self.go):
            end.close()


def find_bubblewrap() -> str:
    """Where bubblewrap is. Raises `SandboxMissing`."""
    found = shutil.which("bwrap")
    if found is None:
        raise SandboxMissing(
            "bubblewrap is not installed, and no stranger's code is run without a sandbox",
            fix=INSTALL,
        )
    return found


def made_up_files(limits: Limits) -> tuple[tuple[IO[bytes], str], ...]:
    """Each file that is made up, in memory, to be read from its start; and its path inside."""
    files = []
    for path, content in made_up(limits).items():
        file = open(os.memfd_create(path), "w+b", buffering=0)  # noqa: SIM115  bubblewrap reads it
        file.write(content)
        file.seek(0)
        files.append((file, path))
    return tuple(files)


async def launch(
    job_folder: Path,
    limits: Limits,
    program: str,
    python_path: tuple[str, ...] = (),
    data: Mapping[str, Path] | None = None,
    *,
    blobs: Path | None = None,
    prepare: Callable[[InitProcess], None],
) -> Launched:
    """Start `python -m PROGRAM FD` in a sandbox that sees `job_folder` as /job, each of `data` as /data/NAME, and
    `blobs` as /blobs.


    Its first process is given to `prepare`, which may raise `OSError`, before anything runs in it.
    Raises `SandboxMissing`, and `SettingsError` when data is not where it was said to be.

    To be called on a thread that lives as long as the sandbox shall: when that thread ends, the kernel ends the
    sandbox. In its first milliseconds bubblewrap has not asked the kernel for that yet; a daemon that dies then
    leaves a worker whose channel is closed, and that ends before it saw any of the job. For the same reason somebody
    who is cancelled here waits until the first process is known, and ends that.
    """
    starting = asyncio.create_task(_launch(job_folder, limits, program, python_path, data or {}, blobs, prepare))
    try:
        return await asyncio.shield(starting)
    except asyncio.CancelledError:
        with contextlib.suppress(AxonError):
            launched = await starting
            launched.first.kill()
            launched.first.close()
            await launched.bubblewrap.wait()
            launched.channel.close()
            launched.log.close()
        raise


async def _launch(
    job_folder: Path,
    limits: Limits,
    program: str,
    python_path: tuple[str, ...],
    data: Mapping[str, Path],
    blobs: Path | None,
    prepare: Callable[[InitProcess], None],
) -> Launched:
    bubblewrap = find_bubblewrap()
    ends = _Ends.make(limits)
    process: asyncio.subprocess.Process | None = None
    first: InitProcess | None = None
    try:
        found = find_environment()
        user = choose_user()
        _check_data(data, another_user=user is not None)
        command = bubblewrap_command(
            bubblewrap,
            replace(found, python_path=found.python_path + python_path),
            limits,
            job_folder=str(job_folder),
            descriptors=ends.descriptors,
            run=[program, str(ends.channel_inside.fileno())],
            user=user,
            data={name: str(folder) for name, folder in data.items()},
            blobs=str(blobs or ""),
        )
        process = await _start(command, ends)
        ends.close_inside()
        first = InitProcess(await _init_process(ends.info))
        prepare(first)
        ends.go.write(b"g")
        ends.go.close()
    except (OSError, TimeoutError, ValueError) as error:
        said = await _abandon(process, first, ends)
        raise SandboxMissing("the sandbox did not start", cause=said or str(error), fix=ASK) from error
    except (asyncio.CancelledError, AxonError):
        await _abandon(process, first, ends)
        raise
    return Launched(process, first, ends.channel, ends.log)


def _check_data(data: Mapping[str, Path], *, another_user: bool) -> None:
    for name, folder in data.items():
        if not folder.exists():
            raise SettingsError(
                f"the data {name} is not at {folder}", fix="correct its path in the settings, or take it out there"
            )
        if another_user and not is_open_to_all(folder):
            raise SettingsError(
                f"the worker, which does not run as root, may not read the data {name} at {folder}",
                fix=f"chmod -R a+rX {folder}",
            )


async def _start(command: list[str], ends: _Ends) -> asyncio.subprocess.Process:
    return await asyncio.create_subprocess_exec(
        *command,
        # bubblewrap's own variables could be read from inside.
        env={},
        cwd="/",
        stdin=asyncio.subprocess.DEVNULL,
        # A pipe of ours: asyncio's own would make it wait for whoever holds the other end.
        stdout=ends.log_inside,
        stderr=ends.log_inside,
        pass_fds=ends.passed,
        start_new_session=True,
    )


async def _init_process(info: IO[bytes]) -> int:
    """The number of the sandbox's first process. Raises `ValueError` when bubblewrap failed before it had one."""
    reader = asyncio.StreamReader()
    transport, _ = await asyncio.get_running_loop().connect_read_pipe(
        lambda: asyncio.StreamReaderProtocol(reader), info
    )
    try:
        async with asyncio.timeout(START_TIMEOUT_S):
            told = json.loads(await reader.read())
    finally:
        transport.close()
    return int(told["child-pid"])


async def _abandon(process: asyncio.subprocess.Process | None, first: InitProcess | None, ends: _Ends) -> str:
    """End what was begun; gives back what bubblewrap said."""
    said = b""
    if first is not None:
        first.kill()
        first.close()
    if process is not None:
        with contextlib.suppress(ProcessLookupError):
            process.kill()
        await process.wait()
        os.set_blocking(ends.log.fileno(), False)
        said = ends.log.read(4096) or b""
    ends.close()
    return said.decode(errors="replace").strip()


def _pipe() -> tuple[IO[bytes], IO[bytes]]:
    """Reading end, writing end."""
    reader, writer = os.pipe()
    return open(reader, "rb", buffering=0), open(writer, "wb", buffering=0)
