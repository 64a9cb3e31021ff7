"""The metadata of a wheel on this disk: what it needs, and how large it is unpacked (a door).

These are wheels of the index that this computer's owner uses, as pip brought them.
"""

from __future__ import annotations

import zipfile
from collections.abc import Sequence
from dataclasses import dataclass
from email.parser import HeaderParser
from pathlib import Path

from packaging.requirements import InvalidRequirement, Requirement
from packaging.version import Version

from axonp2p.errors import AxonError, PackagesWrong
from axonp2p.wheels.arrival import Arrival
from axonp2p.wheels.bundled import MOST_UNPACKED_BYTES
from axonp2p.wheels.messages import UnpackedFile

_LARGEST_METADATA = 4 * 2**20


@dataclass(frozen=True)
class WheelMetadata:
    """One wheel's."""

    requires: tuple[str, ...]
    """Requirements with their markers."""
    unpacked_bytes: int
    """As a peer counts them that unpacks it."""

    def needs(self, markers: dict[str, str]) -> list[Requirement]:
        """The packages that it needs on a platform with these markers, whatever extras are chosen."""
        found = []
        for text in self.requires:
            try:
                requirement = Requirement(text)
            except InvalidRequirement:
                continue  # pip would not have taken the wheel if it were one that counts
            if requirement.marker is None or requirement.marker.evaluate({**markers, "extra": ""}):
                found.append(requirement)
        return found


def read_metadata(wheel: Path) -> WheelMetadata:
    """Raises `PackagesWrong` for a file that is no wheel."""
    try:
        with zipfile.ZipFile(wheel) as archive:
            entries = archive.infolist()
            (info,) = [one for one in entries if one.filename.count("/") == 1 and _is_metadata(one.filename)]
            if info.file_size > _LARGEST_METADATA:
                raise ValueError("its METADATA is too large")
            text = archive.read(info).decode(errors="replace")
    except (OSError, ValueError, zipfile.BadZipFile) as error:
        raise PackagesWrong(f"{wheel.name} is no wheel: {error}", fix="pip cache purge, then submit again") from error
    requires = HeaderParser().parsestr(text).get_all("Requires-Dist") or []
    return WheelMetadata(tuple(str(one) for one in requires), _unpacked_bytes(wheel, entries))


_WHEEL = "Wheel-Version: 1.0\nGenerator: axon\nRoot-Is-Purelib: true\nTag: py3-none-any\n"


def _unpacked_bytes(wheel: Path, entries: Sequence[zipfile.ZipInfo]) -> int:
    """Raises `PackagesWrong` for files that no peer would write."""
    arrival = Arrival(wheel.name, MOST_UNPACKED_BYTES)
    try:
        for entry in entries:
            if not entry.is_dir():
                arrival.begin(UnpackedFile(path=entry.filename, executable=False))
    except AxonError as error:
        raise PackagesWrong(error.message, fix="bring another version of it") from error
    return arrival.bytes + sum(entry.file_size for entry in entries)


def _is_metadata(name: str) -> bool:
    return name.endswith(".dist-info/METADATA")


def write_stand_in(folder: Path, name: str, version: str) -> str:
    """Write a wheel without modules for a package that the peers have, so that pip neither brings it nor what it needs.

    Returns its version: no index has one of that name, so pip takes this file. Raises `InvalidVersion`.
    """
    whole = str(Version(version))
    local = f"{whole}.peer" if "+" in whole else f"{whole}+peer"
    plain = name.replace("-", "_")
    info = f"{plain}-{local}.dist-info"
    with zipfile.ZipFile(folder / f"{plain}-{local}-py3-none-any.whl", "w") as archive:
        archive.writestr(f"{info}/METADATA", f"Metadata-Version: 2.1\nName: {name}\nVersion: {local}\n")
        archive.writestr(f"{info}/WHEEL", _WHEEL)
        archive.writestr(f"{info}/RECORD", f"{info}/METADATA,,\n{info}/WHEEL,,\n{info}/RECORD,,\n")
    return local
