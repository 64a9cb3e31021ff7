"""Wheels in a bundle: where each one lies, how much all of them may be. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass

from packaging.utils import InvalidWheelFilename, parse_wheel_filename

from axonp2p.blobs.manifest import BlobFile
from axonp2p.errors import MalformedMessage, MessageTooLarge
from axonp2p.jobs.file_names import WHEELS_FOLDER
from axonp2p.jobs.packages_of_peers import never_travels
from axonp2p.plain_text import bytes_text

MOST_WHEELS = 64
MOST_PACKED_BYTES = 512 * 2**20
"""Of all wheels of a job, as they travel."""
MOST_UNPACKED_BYTES = 2 * 2**30
"""Of all wheels of a job, unpacked, with `ENTRY_BYTES`."""
MOST_UNPACKED_FILES = 40_000
"""Of one wheel, as the next two."""
MOST_UNPACKED_FOLDERS = 10_000
MOST_FOLDERS_DEEP = 16
"""Above a file."""
ENTRY_BYTES = 4096
"""What each file and each folder counts beside its bytes: about what it takes of a disk."""
LONGEST_FILE_NAME = 120

UNPACKED = "site"
"""The folder, beside a wheel in the bundle, in which its modules lie once it is unpacked."""
_PATH = re.compile(rf"{re.escape(WHEELS_FOLDER)}/([0-9a-f]{{64}})/([^/]{{1,{LONGEST_FILE_NAME}}}\.whl)")


@dataclass(frozen=True)
class BundledWheel:
    """One wheel of a job."""

    sha256: str
    """Of the whole file, as hexadecimal digits: its name everywhere."""
    file: str
    """Its file name, as PEP 427 has it."""
    size: int
    """Bytes, packed."""

    @property
    def path(self) -> str:
        """Where it lies in the bundle."""
        return f"{WHEELS_FOLDER}/{self.sha256}/{self.file}"

    @property
    def unpacked(self) -> str:
        """Where it lies in the bundle once it is unpacked."""
        return f"{WHEELS_FOLDER}/{self.sha256}/{UNPACKED}"

    @property
    def title(self) -> str:
        """For people: `scipy 1.17.0`."""
        return " ".join(named(self.file))


def named(file: str) -> tuple[str, str]:
    """Name (lower case with dashes) and version in a wheel's file name. Raises `MalformedMessage` when it is none."""
    try:
        name, version, _, _ = parse_wheel_filename(file)
    except InvalidWheelFilename as error:
        raise MalformedMessage(f"{file[:LONGEST_FILE_NAME]!r} is not the name of a wheel") from error
    return str(name), str(version)


def wheels_among(files: Iterable[BlobFile]) -> list[BundledWheel]:
    """The wheels in a bundle. Raises `MalformedMessage` for what is none, `MessageTooLarge` over a limit."""
    found = []
    for file in files:
        if not file.path.startswith(f"{WHEELS_FOLDER}/"):
            continue
        match = _PATH.fullmatch(file.path)
        if match is None:
            raise MalformedMessage(f"{file.path!r}: in {WHEELS_FOLDER} are wheels, each in a folder of its SHA-256")
        wheel = BundledWheel(match[1], match[2], file.size)
        name, _ = named(wheel.file)
        if never_travels(name):
            raise MalformedMessage(f"a wheel of {name}: peers use their own")
        found.append(wheel)
    check_together(found)
    return found


def check_together(wheels: list[BundledWheel]) -> None:
    """Raise `MalformedMessage` for a wheel that is there twice, `MessageTooLarge` for too many or too large ones."""
    if len({wheel.sha256 for wheel in wheels}) < len(wheels):
        raise MalformedMessage("a wheel is there twice")
    if len(wheels) > MOST_WHEELS:
        raise MessageTooLarge(f"{len(wheels)} wheels; a job may bring {MOST_WHEELS}")
    packed = sum(wheel.size for wheel in wheels)
    if packed > MOST_PACKED_BYTES:
        raise MessageTooLarge(f"wheels of {bytes_text(packed)}; a job may bring {bytes_text(MOST_PACKED_BYTES)}")
