"""The output of a job at its peers: the files of `logs/` in its folder, printed, and followed while they grow.

Beside them stand the files that a training wrote into /out, in `out/PEER/` of that folder.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from axonp2p.client.events.events import Event
from axonp2p.client.storage.arriving_files import files_below
from axonp2p.client.storage.event_feed import EventTail
from axonp2p.client.storage.job_store import JobFolder
from axonp2p.console import printable
from axonp2p.kinds.run.events import CopyBegun, CopyRetried, SpeculativeCopy
from axonp2p.plain_text import bytes_text

LOOK_S = 0.3
READ_AT_ONCE = 2**16


def peers_of(events: Sequence[Event], index: int) -> list[str]:
    """Where that index of a job's copies ran, in the order of its attempts."""
    begun = (CopyBegun, CopyRetried, SpeculativeCopy)
    return list(dict.fromkeys(event.peer for event in events if isinstance(event, begun) and event.index == index))


class LogTails:
    """Prints what is new of all logs of a job, or of those of some peers, each file under its name."""

    def __init__(self, folder: Path, write: Callable[[str], None]) -> None:
        self._folder = folder
        self._write = write
        self._read: dict[str, int] = {}
        """Bytes, by file."""
        self._rest: dict[str, bytes] = {}
        """A line that is not whole yet."""
        self._named = ""
        """The file whose lines were printed last."""

    def look(self, peers: Sequence[str] | None, *, all_of_it: bool, begins: str = "") -> None:
        """Print what came of peers whose names begin so; `all_of_it`: also a last line without an end."""
        for path in sorted(self._folder.glob("*.log")):
            if path.stem.startswith(begins) and (peers is None or path.stem in peers):
                self._print(path, all_of_it=all_of_it)

    @property
    def found(self) -> bool:
        """Whether there was anything."""
        return any(self._read.values())

    def _print(self, path: Path, *, all_of_it: bool) -> None:
        with path.open("rb") as file:
            file.seek(self._read.get(path.name, 0))
            while piece := file.read(READ_AT_ONCE):
                self._read[path.name] = file.tell()
                whole, end, rest = (self._rest.get(path.name, b"") + piece).rpartition(b"\n")
                self._rest[path.name] = rest
                self._tell(path, whole + end)
        if all_of_it:
            self._tell(path, self._rest.pop(path.name, b""))

    def _tell(self, path: Path, text: bytes) -> None:
        if not text:
            return
        if self._named != path.name:
            self._write(f"==> {path.stem} <==")
            self._named = path.name
        self._write(printable(text.decode(errors="replace")).removesuffix("\n"))


def show_logs(folder: JobFolder, index: int | None, over: Callable[[], bool] | None, *, peer: str = "") -> bool:
    """Print them; with `over`, go on until that says that the job is over. Whether there was anything to print."""
    tails, tail, told = LogTails(folder.logs, _print), EventTail(folder), list[Event]()
    while True:
        ended = over is None or over()
        told += tail.fresh() if index is not None else ()
        tails.look(None if index is None else peers_of(told, index), all_of_it=ended, begins=peer)
        if ended:
            return tails.found
        time.sleep(LOOK_S)


def log_texts(folder: JobFolder, index: int | None, begins: str = "") -> dict[str, str]:
    """The logs by peer, as text, of those whose names begin so."""
    peers = None if index is None else peers_of(folder.read_events(), index)
    found = {path.stem: path for path in sorted(folder.logs.glob("*.log"))}
    return {
        name: path.read_bytes().decode(errors="replace")
        for name, path in found.items()
        if name.startswith(begins) and (peers is None or name in peers)
    }


def task_files(folder: JobFolder) -> dict[str, dict[str, int]]:
    """The files that the task wrote into /out and that came home, with their bytes, by peer."""
    out = folder.path / "out"
    peers = sorted(path.name for path in out.iterdir()) if out.is_dir() else []
    return {peer: found for peer in peers if (found := files_below(out / peer))}


def show_task_files(folder: JobFolder) -> bool:
    """Print where they lie; whether there are any."""
    found = task_files(folder)
    for peer, files in found.items():
        _print(f"==> files of {peer}, in {folder.path / 'out' / peer} <==")
        for name, size in files.items():
            _print(printable(f"{name}   {bytes_text(size)}"))
    return bool(found)


def _print(text: str) -> None:
    print(text, file=sys.stdout, flush=True)
