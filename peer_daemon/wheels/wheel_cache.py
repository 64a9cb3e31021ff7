"""Wheels on this peer's disk: kept for later jobs, packed and unpacked, and lent to the folders of jobs.

    HOME/wheels/<sha256>/
      packed/<file>.whl    as it came; whoever brings it again need not send it
      site/                what it unpacks to
      spare/               the same, as hard links that no job has now
      bytes                what both take of the disk

A job's folder gets hard links, so nothing is written twice, and what is removed here stays with the jobs that run. A
package may have a thousand files: the links are not removed with the job, but moved back for the next one. In a job's
sandbox its folder is read-only.
"""

from __future__ import annotations

import asyncio
import hashlib
import os
import shutil
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from pathlib import Path
from weakref import WeakValueDictionary

from axonp2p.errors import AxonError, LimitReached, PeerMisbehaved, Refused, SettingsError
from axonp2p.files import write_whole
from axonp2p.logs import get_logger
from axonp2p.plain_text import bytes_text
from axonp2p.settings import PeerSettings
from axonp2p.wheels.bundled import MOST_UNPACKED_BYTES, UNPACKED, BundledWheel
from peer_daemon.wheels.unpacking import UnpackingFor, unpack_wheel
from peer_daemon.wheels.wheel_policy import LIST_FILE, LIST_LIMIT, KeptWheels, WheelPolicy, read_list

log = get_logger(__name__)

_PACKED, _SPARE, _SIZE = "packed", "spare", "bytes"
_FOLDER = 0o755

Unpack = Callable[[Path, str, Path, int, UnpackingFor], Awaitable[int]]
"""`unpacking.unpack_wheel`, or what plays it."""


class WheelCache:
    """The wheels of one daemon. Made before any lease; what a daemon that crashed left half done is removed then."""

    def __init__(self, folder: Path, policy: WheelPolicy, most_bytes: int, unpack: Unpack = unpack_wheel) -> None:
        """`most_bytes`: of the disk, for all of them, and for those of one job."""
        self._folder = folder
        self._policy = policy
        self._most_bytes = most_bytes
        self._unpack = unpack
        self._kept = KeptWheels(most_bytes)
        self._turns: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()
        """One job at a time unpacks a wheel; who comes meanwhile waits."""
        self._number = 0
        for sha256, size in _found(folder):
            self._kept.put(sha256, size)

    def admit(self, wheels: Sequence[BundledWheel]) -> None:
        """Raise `Refused` for a wheel that the owner does not take."""
        for wheel in wheels:
            if reason := self._policy.why_not(wheel):
                raise Refused(reason)

    def lend_packed(self, wheel: BundledWheel, bundle: Path) -> bool:
        """Put a wheel that is here into the bundle's folder, as it came; False when it is not here. Blocks."""
        place = bundle / wheel.path
        try:
            _make_folders(bundle, place.parent)
            os.link(self._folder / wheel.sha256 / _PACKED / wheel.file, place)
        except OSError:
            return False  # then the client sends it
        return True

    async def place(self, wheels: Sequence[BundledWheel], bundle: Path, lease: UnpackingFor) -> None:
        """Unpack those wheels of the bundle that are not here, and put all unpacked into its folder.

        Raises `PeerMisbehaved` for a wheel that is none, `LimitReached`.
        """
        most = left = min(MOST_UNPACKED_BYTES, self._most_bytes)
        for wheel in wheels:
            async with self._turns.setdefault(wheel.sha256, asyncio.Lock()):
                size = self._kept.size(wheel.sha256)
                if size is None:
                    size = await self._take_in(wheel, bundle / wheel.path, left, lease)
                self._kept.put(wheel.sha256, size)
                left -= size
                if left < 0:
                    raise LimitReached(f"the job's packages have more than {bytes_text(most)} on this peer's disk")
                try:
                    await asyncio.to_thread(_lend, self._folder / wheel.sha256, bundle / wheel.unpacked)
                except OSError as error:
                    raise LimitReached(f"this peer cannot write {wheel.title}: {error.strerror}") from error
        going = self._kept.going(stay={wheel.sha256 for wheel in wheels})
        await asyncio.to_thread(self._remove, going)

    def take_back(self, wheels: Sequence[BundledWheel], bundle: Path) -> None:
        """Nobody uses that bundle any more, in which `place` has put all of these wheels. Blocks."""
        for wheel in wheels:
            with suppress(OSError):  # there is a spare, or the wheel is here no more
                (bundle / wheel.unpacked).rename(self._folder / wheel.sha256 / _SPARE)

    async def _take_in(self, wheel: BundledWheel, packed: Path, most_bytes: int, lease: UnpackingFor) -> int:
        """Check and unpack it; what it takes of the disk."""
        self._number += 1
        fresh = self._folder / f"new-{self._number}"
        try:
            await asyncio.to_thread(_check_and_link, wheel, packed, fresh)
            unpacked = await self._unpack(fresh / _PACKED, wheel.title, fresh / UNPACKED, most_bytes, lease)
            size = wheel.size + unpacked
            await asyncio.to_thread(write_whole, fresh / _SIZE, b"%d\n" % size)
            await asyncio.to_thread(fresh.rename, self._folder / wheel.sha256)
        except OSError as error:
            raise LimitReached(f"this peer cannot write {wheel.title}: {error.strerror}") from error
        except AxonError as error:
            log.warning("wheel not unpacked", wheel=wheel.title, sha256=wheel.sha256[:16], reason=error.message)
            raise
        finally:
            await asyncio.to_thread(shutil.rmtree, fresh, ignore_errors=True)
        log.info("wheel unpacked", wheel=wheel.title, bytes=size)
        return size

    def _remove(self, going: Sequence[str]) -> None:
        for sha256 in going:
            # Renamed first: what a crash leaves of it is not taken for whole.
            gone = self._folder / f"new-gone-{sha256}"
            with suppress(OSError):
                (self._folder / sha256).rename(gone)
            shutil.rmtree(gone, ignore_errors=True)


def open_wheels(home: Path, settings: PeerSettings) -> WheelCache:
    """The wheels of the daemon of that home, and its owner's word on them. Raises `SettingsError`."""
    takes, listed = settings.wheels, frozenset[str]()
    if takes == "listed":
        path = home / LIST_FILE
        try:
            with path.open("rb") as file:
                listed = read_list(file.read(LIST_LIMIT).decode())
        except (OSError, UnicodeDecodeError) as error:
            raise SettingsError(
                f'wheels = "listed", and {path} cannot be read: {error}',
                fix=f"write NAME==VERSION or sha256:HASH into {path}, one a line",
            ) from error
    return WheelCache(home / "wheels", WheelPolicy(takes, listed), settings.wheels_mb * 2**20)


def _found(folder: Path) -> list[tuple[str, int]]:
    """The wheels that are there whole, the one used least recently first; the rest is removed."""
    found = []
    for entry in folder.iterdir() if folder.is_dir() else ():
        try:
            size = int((entry / _SIZE).read_text())
            if entry.name.startswith("new-"):
                raise ValueError
            found.append((entry.stat().st_mtime, entry.name, size))
        except (OSError, ValueError):
            shutil.rmtree(entry, ignore_errors=True)
    return [(name, size) for _, name, size in sorted(found)]


def _check_and_link(wheel: BundledWheel, packed: Path, fresh: Path) -> None:
    """Raises `PeerMisbehaved` when the file is not what its name says."""
    with packed.open("rb") as file:
        sha256 = hashlib.file_digest(file, "sha256").hexdigest()
    if sha256 != wheel.sha256:
        raise PeerMisbehaved(f"{wheel.title} has the SHA-256 {sha256[:16]}..., its name says {wheel.sha256[:16]}...")
    fresh.parent.mkdir(mode=0o700, exist_ok=True)
    _make_folders(fresh.parent, fresh / _PACKED)
    (fresh / UNPACKED).mkdir()
    (fresh / UNPACKED).chmod(_FOLDER)
    os.link(packed, fresh / _PACKED / wheel.file)


def _make_folders(above: Path, folder: Path) -> None:
    """`folder` and those between it and `above`, whoever's umask it is."""
    for one in reversed([folder, *folder.parents]):
        if above in one.parents and not one.exists():
            one.mkdir()
            one.chmod(_FOLDER)


def _lend(kept: Path, target: Path) -> None:
    """Raises `OSError`."""
    shutil.rmtree(target, ignore_errors=True)
    try:
        (kept / _SPARE).rename(target)
    except OSError:
        _link_all(kept / UNPACKED, target)
    os.utime(kept)


def _link_all(source: Path, target: Path) -> None:
    """Make the folder `target` with a hard link to every file of `source`."""
    target.mkdir()
    target.chmod(_FOLDER)
    for entry in os.scandir(source):
        if entry.is_dir(follow_symlinks=False):
            _link_all(Path(entry.path), target / entry.name)
        else:
            os.link(entry.path, target / entry.name, follow_symlinks=False)
