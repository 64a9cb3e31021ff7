"""Which wheels the owner takes, and which unpacked ones stay on the disk: those used last, within a limit. Pure."""

from __future__ import annotations

import re
from collections import OrderedDict
from collections.abc import Collection

from packaging.utils import canonicalize_name

from axonp2p.errors import SettingsError
from axonp2p.wheels.bundled import BundledWheel, named

LIST_FILE = "wheels.txt"
"""In the daemon's home: what "listed" means."""
LIST_LIMIT = 256 * 1024
_HASH = re.compile(r"sha256:([0-9a-f]{64})")
_NAMED = re.compile(r"([A-Za-z0-9][A-Za-z0-9._-]{0,99})==([A-Za-z0-9][A-Za-z0-9.+!_-]{0,63})")


class WheelPolicy:
    """The owner's word, of the settings, and their list."""

    def __init__(self, takes: str, listed: frozenset[str] = frozenset()) -> None:
        """`takes` is "any", "listed" or "none"; `listed` as `read_list` gives it."""
        self._takes = takes
        self._listed = listed

    def why_not(self, wheel: BundledWheel) -> str:
        """Why this wheel is not taken, or an empty text when it is."""
        if self._takes == "any":
            return ""
        if self._takes != "listed":
            return "this peer takes no packages"
        name, version = named(wheel.file)
        if wheel.sha256 in self._listed or f"{name}=={version}" in self._listed:
            return ""
        return f"the owner of this peer has not listed {wheel.title}"


def read_list(text: str) -> frozenset[str]:
    """The hashes, and `name==version`, in the owner's list: one a line, `#` begins a remark. Raises `SettingsError`."""
    found = set()
    for number, line in enumerate(text.splitlines(), 1):
        entry = line.partition("#")[0].strip()
        if not entry:
            continue
        if match := _HASH.fullmatch(entry):
            found.add(match[1])
        elif match := _NAMED.fullmatch(entry):
            found.add(f"{canonicalize_name(match[1])}=={match[2]}")
        else:
            raise SettingsError(
                f"{LIST_FILE}, line {number}: {entry[:80]!r} names no wheel",
                fix="write NAME==VERSION, such as scipy==1.17.0, or sha256:HASH",
            )
    return frozenset(found)


class KeptWheels:
    """Wheels by their SHA-256 with what each takes of the disk in bytes, the one used least recently first."""

    def __init__(self, most_bytes: int) -> None:
        self._most_bytes = most_bytes
        self._sizes: OrderedDict[str, int] = OrderedDict()

    def size(self, sha256: str) -> int | None:
        """The bytes that a wheel takes of the disk; None when it is not here."""
        return self._sizes.get(sha256)

    def put(self, sha256: str, size: int) -> None:
        """It is here and used now, last of all."""
        self._sizes[sha256] = size
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
