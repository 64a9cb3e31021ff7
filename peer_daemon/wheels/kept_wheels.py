"""Which unpacked wheels stay on the disk: those used last, within the owner's limit. Pure."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Collection


class KeptWheels:
    """Wheels by their SHA-256 with what each takes of the disk in bytes, the one used least recently first."""

    def __init__(self, most_bytes: int) -> None:
        self._most_bytes = most_bytes
        self._sizes: OrderedDict[str, int] = OrderedDict()

    def size(self, sha256: str) -> int | None:
        """What it takes; None when it is not here."""
        return self._sizes.get(sha256)

    def put(self, sha256: str, size: int) -> None:
        """It is here now, used last of all."""
        self._sizes[sha256] = size
        self._sizes.move_to_end(sha256)

    def used(self, sha256: str) -> None:
        """A job uses it."""
        self._sizes.move_to_end(sha256)

    def going(self, stay: Collection[str] = ()) -> list[str]:
        """Those that go, to be within the limit, and are forgotten: never those of `stay`."""
        over = sum(self._sizes.values()) - self._most_bytes
        gone = []
        for sha256 in [one for one in self._sizes if one not in stay]:
            if over <= 0:
                break
            over -= self._sizes.pop(sha256)
            gone.append(sha256)
        return gone
