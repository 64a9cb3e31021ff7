"""The platform of a peer: which Python, which processor, which C library; and the wheels that run on it.

A row names it as the first of the tags that PEP 425 and PEP 600 give it: `cp311-manylinux_2_36_x86_64`.
"""

from __future__ import annotations

import re
import sys
from dataclasses import dataclass

from packaging.tags import Tag, compatible_tags, cpython_tags, sys_tags

_TEXT = re.compile(r"cp3(\d{1,2})-(many|musl)linux_(\d)_(\d{1,2})_([a-z0-9_]{2,16})")
_OLD_NAMES = {17: "manylinux2014", 12: "manylinux2010", 5: "manylinux1"}
"""By the second number of the glibc that they mean."""
OLDEST_GLIBC = 28
"""Of glibc 2: wheels are looked for that run with this one, or a newer one where all peers have that."""


@dataclass(frozen=True, order=True)
class Platform:
    """A platform that wheels are made for."""

    python: int
    """The minor version: 11 for Python 3.11."""
    libc: str
    """`many` for glibc, `musl` for musl."""
    libc_major: int
    libc_minor: int
    machine: str

    def __str__(self) -> str:
        """As it stands in a row."""
        return f"cp3{self.python}-{self.libc}linux_{self.libc_major}_{self.libc_minor}_{self.machine}"

    @property
    def title(self) -> str:
        """For people."""
        library = "glibc" if self.libc == "many" else "musl"
        return f"Python 3.{self.python} on {self.machine} with {library} {self.libc_major}.{self.libc_minor}"

    def runs_wheels_of(self, older: Platform) -> bool:
        """Whether all wheels run here that run on `older`: the same but for an older C library."""
        same = (self.python, self.libc, self.libc_major, self.machine)
        return (
            same == (older.python, older.libc, older.libc_major, older.machine) and self.libc_minor >= older.libc_minor
        )

    @property
    def system_tags(self) -> list[str]:
        """The third part of the tags of its wheels, the best first."""
        found = []
        for minor in range(self.libc_minor, 0 if self.libc == "musl" else 4, -1):
            found.append(f"{self.libc}linux_{self.libc_major}_{minor}_{self.machine}")
            if self.libc == "many" and minor in _OLD_NAMES:
                found.append(f"{_OLD_NAMES[minor]}_{self.machine}")
        return [*found, f"linux_{self.machine}"]

    @property
    def tags(self) -> list[Tag]:
        """The tags of wheels that run on it, the best first."""
        version, systems = (3, self.python), self.system_tags
        return [
            *cpython_tags(version, abis=[f"cp3{self.python}"], platforms=systems),
            *compatible_tags(version, f"cp3{self.python}", systems),
        ]

    @property
    def markers(self) -> dict[str, str]:
        """The values of environment markers (PEP 508) there."""
        return {
            "implementation_name": "cpython",
            "implementation_version": f"3.{self.python}.0",
            "os_name": "posix",
            "platform_machine": self.machine,
            "platform_python_implementation": "CPython",
            "platform_release": "",
            "platform_system": "Linux",
            "platform_version": "",
            "python_full_version": f"3.{self.python}.0",
            "python_version": f"3.{self.python}",
            "sys_platform": "linux",
        }


def read_platform(text: str) -> Platform | None:
    """The platform in a row; None for what is none that we know."""
    match = _TEXT.fullmatch(text)
    return Platform(int(match[1]), match[2], int(match[3]), int(match[4]), match[5]) if match else None


def own_platform() -> Platform | None:
    """That of the interpreter that runs this; None where no wheels of Linux run."""
    plain = f"cp3{sys.version_info.minor}"
    for tag in sys_tags():
        found = read_platform(f"{tag.interpreter}-{tag.platform}")
        if found is not None:
            # An interpreter without the lock, or one for debugging, has other wheels.
            return found if tag.abi == plain else None
    return None
