"""What clients that were cut off had sent: kept for a while, so that who comes back goes on where it was.

Only who knows the bundle's hash and has the same key gets it back, and all of it is hashed again before it is believed.
Nobody's slot is held by it, and no more lies here than free slots might have taken.
"""

from __future__ import annotations

import asyncio
import shutil
from pathlib import Path

from axonp2p.identity.peer_id import PeerId

KEPT_S = 300.0
"""As long as a client may take to come back."""


class KeptBundles:
    """The folders of bundles whose leases ended with a cut."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._kept: dict[tuple[PeerId, bytes], tuple[Path, asyncio.TimerHandle]] = {}
        self._number = 0

    def keep(self, client: PeerId, blob: bytes) -> Path:
        """Where the bundle of that name is to be left; an older one of the same client and name is removed."""
        self._remove((client, blob))
        self._number += 1
        path = self._folder / f"kept-{self._number}"
        later = asyncio.get_running_loop().call_later(KEPT_S, self._remove, (client, blob))
        self._kept[client, blob] = (path, later)
        return path

    def take(self, client: PeerId, blob: bytes) -> Path | None:
        """Where it lies, if it was kept; it is kept no more then."""
        found = self._kept.pop((client, blob), None)
        if found is None:
            return None
        path, later = found
        later.cancel()
        return path if path.is_dir() else None

    def make_room(self, client: PeerId, free: int) -> None:
        """A lease of that client has begun, and `free` slots are left: at most as many bundles of others stay."""
        others = [key for key in self._kept if key[0] != client]
        for key in others[: max(0, len(others) - free)]:
            self._remove(key)

    def close(self) -> None:
        """Remove all."""
        for key in list(self._kept):
            self._remove(key)

    def _remove(self, key: tuple[PeerId, bytes]) -> None:
        found = self._kept.pop(key, None)
        if found is None:
            return
        path, later = found
        later.cancel()
        asyncio.get_running_loop().run_in_executor(None, shutil.rmtree, path, True)
