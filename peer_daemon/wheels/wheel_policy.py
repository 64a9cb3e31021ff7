"""Which wheels the owner takes. Pure."""

from __future__ import annotations

import re

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
