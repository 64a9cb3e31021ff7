"""A command to a job that another program runs: a word in the job's folder, which the program at work looks for.

A file and no socket: it works wherever the folder does, however long its path is, and a program that is dead cannot
leave one that seems to listen.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import suppress
from enum import StrEnum
from pathlib import Path

from axonp2p.disk_errors import not_writable
from axonp2p.files import write_whole

LOOK_S = 0.3


class JobCommand(StrEnum):
    """The order on what is to become of a job."""

    PAUSE = "pause"
    """End the round that runs, then leave."""
    LEAVE = "leave"
    """Leave now, with what is accepted."""
    STOP = "stop"
    """End the round that runs, then finish with what is done."""
    CANCEL = "cancel"


def say(folder: Path, command: JobCommand) -> None:
    """Tell the program at work on the job in `folder`. Raises `SettingsError`."""
    try:
        write_whole(_file(folder), command.encode())
    except OSError as error:
        raise not_writable(folder, error) from error


def take(folder: Path) -> JobCommand | None:
    """The command since this was asked last."""
    path = _file(folder)
    try:
        word = path.read_text()
    except OSError:
        return None
    with suppress(OSError):
        path.unlink()
    with suppress(ValueError):
        return JobCommand(word)
    return None


async def listen(folder: Path, heard: Callable[[JobCommand], None]) -> None:
    """Hand on each command, until cancelled. A command to a program before this one is forgotten."""
    take(folder)
    while True:
        await asyncio.sleep(LOOK_S)
        if command := take(folder):
            heard(command)


def _file(folder: Path) -> Path:
    return folder / ".wish"
