"""The bundles of clients that were cut off: kept for a while, so that one that comes back goes on where it was.

Only a client that has the same key and knows the bundle's hash gets it back, and all of it is hashed again before use.
Nobody's slot is held by it, and no more lies here than free slots might have taken. One client has one bundle here, one
household two, all together `MOST_KEPT` and no more bytes than a job's disk: the oldest goes first, and one of whom most
lies here. A client that is cut off again and again only loses its own.
"""

from __future__ import annotations

import asyncio
import shutil
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from axonp2p.errors import Busy
from axonp2p.holdings import Bounds, Holdings
from axonp2p.identity.peer_id import PeerId

KEPT_S = 300.0
"""As long as a client may take to come back."""
MOST_KEPT = 8
LEAST_AGE_S = 60.0
"""For so long none gives way to another: what comes meanwhile is not kept."""
_BOUNDS = Bounds(in_all=MOST_KEPT, of_source=2, of_key=1, least_age_s=LEAST_AGE_S)

_Name = tuple[PeerId, bytes]


@dataclass(frozen=True)
class _Kept:
    path: Path
    size: int
    since: float
    later: asyncio.TimerHandle


class KeptBundles:
    """The folders of bundles whose leases ended with a cut."""

    def __init__(self, folder: Path, most_bytes: int = 2**31, monotonic: Callable[[], float] = time.monotonic) -> None:
        """`most_bytes` is what all of them may take of the disk."""
        self._folder = folder
        self._most_bytes = most_bytes
        self._monotonic = monotonic
        self._kept: dict[_Name, _Kept] = {}
        self._places: Holdings[_Name] = Holdings("bundles", _BOUNDS)
        self._number = 0

    def keep(self, client: PeerId, source: str, blob: bytes, size: int) -> Path | None:
        """Where the bundle of that name, of `size` bytes, is to be left; None when it is not to be kept.

        Others are removed for it: an older one of the same client, and those that are too many.
        """
        name, now = (client, blob), self._monotonic()
        self._remove(name)
        try:
            going = self._places.take(name, source, client, now)
        except Busy:
            return None
        for other in going:
            self._remove(other)
        if not self._make_bytes(size, now):
            self._places.release(name)
            return None
        self._number += 1
        path = self._folder / f"kept-{self._number}"
        later = asyncio.get_running_loop().call_later(KEPT_S, self._remove, name)
        self._kept[name] = _Kept(path, size, now, later)
        return path

    def take(self, client: PeerId, blob: bytes) -> Path | None:
        """Where it lies, if it was kept; it is kept no more then."""
        found = self._forget((client, blob))
        return found.path if found and found.path.is_dir() else None

    def make_room(self, client: PeerId, free: int) -> None:
        """A lease of that client has begun, and `free` slots are left: at most as many bundles of others stay."""
        others = [name for name in self._kept if name[0] != client]
        for name in others[: max(0, len(others) - free)]:
            self._remove(name)

    def close(self) -> None:
        """Remove all."""
        for name in list(self._kept):
            self._remove(name)

    def _make_bytes(self, size: int, now: float) -> bool:
        """Whether so many bytes more may lie here, once the oldest are gone."""
        while size + sum(one.size for one in self._kept.values()) > self._most_bytes:
            oldest = next(iter(self._kept.items()), None)
            if oldest is None or now - oldest[1].since < LEAST_AGE_S:
                return False
            self._remove(oldest[0])
        return True

    def _forget(self, name: _Name) -> _Kept | None:
        self._places.release(name)
        found = self._kept.pop(name, None)
        if found is not None:
            found.later.cancel()
        return found

    def _remove(self, name: _Name) -> None:
        if found := self._forget(name):
            asyncio.get_running_loop().run_in_executor(None, shutil.rmtree, found.path, True)
