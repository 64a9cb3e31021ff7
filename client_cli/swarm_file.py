"""The record of a local swarm: kept in the home, and checked against the machine before anything is touched.

A process id alone proves nothing: after a restart, or after weeks, the same number belongs to somebody else. So the
time at which each process was created is kept beside its id, and a process counts as ours only when both fit.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import msgspec
import psutil

from axonp2p.errors import SettingsError
from axonp2p.files import write_whole
from axonp2p.wire.json_form import decode_json
from axonp2p.wire.quantities import Count, Line, UnixMoment

FILE_NAME = "swarm.json"
# The kernel counts in hundredths of a second; what is added to it, the time of boot, may be corrected by a few more.
CREATED_TOLERANCE_S = 1.0


class SwarmProcess(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One process of a local swarm."""

    name: Line
    """"tracker", "tracker-2" and so on, or the name of a peer."""
    pid: Count
    started: UnixMoment
    """Unix time in seconds at which the process was created."""
    home: Line


class SwarmRecord(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A local swarm: where its trackers are, and its processes, the trackers first."""

    trackers: Annotated[list[Line], msgspec.Meta(max_length=1000)]
    processes: Annotated[list[SwarmProcess], msgspec.Meta(max_length=10_000)]

    @property
    def tracker_processes(self) -> list[SwarmProcess]:
        """The trackers among its processes."""
        return [process for process in self.processes if is_tracker(process)]

    @property
    def peers(self) -> list[SwarmProcess]:
        """The peers among its processes."""
        return [process for process in self.processes if not is_tracker(process)]


def tracker_name(number: int) -> str:
    """The name of the tracker with this number, from 0 on."""
    return "tracker" if number == 0 else f"tracker-{number + 1}"


def is_tracker(process: SwarmProcess) -> bool:
    """Whether it is one; no peer is called so."""
    return process.name.partition("-")[0] == "tracker"


def read_record(home: Path) -> SwarmRecord | None:
    """The record in `home`, or None when there is none. Raises `SettingsError` when it cannot be read."""
    path = home / FILE_NAME
    try:
        return decode_json(path.read_bytes(), SwarmRecord)
    except FileNotFoundError:
        return None
    except (msgspec.DecodeError, OSError) as error:
        raise SettingsError(
            f"{path} cannot be read: {error}", fix="stop the processes that it names by hand, then remove it"
        ) from error


def write_record(home: Path, record: SwarmRecord) -> None:
    """Replace the record in `home`, so that a reader sees the old one or the new one and nothing between."""
    write_whole(home / FILE_NAME, msgspec.json.format(msgspec.json.encode(record), indent=2) + b"\n")


def remove_record(home: Path) -> None:
    """There is no swarm in `home` any more."""
    (home / FILE_NAME).unlink(missing_ok=True)


def running(process: SwarmProcess) -> psutil.Process | None:
    """The living process that `process` describes; None when it has ended, also when its id has a new owner."""
    try:
        found = psutil.Process(process.pid)
        same = abs(found.create_time() - process.started) <= CREATED_TOLERANCE_S
        # A zombie has ended: only its parent has not heard of it yet.
        return found if same and found.status() != psutil.STATUS_ZOMBIE else None
    except psutil.NoSuchProcess:
        return None
