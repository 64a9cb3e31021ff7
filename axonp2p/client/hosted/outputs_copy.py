"""The files of a hosted job's results, copied here: those of one result at a time, all of them or none."""

from __future__ import annotations

import asyncio
import shutil
from contextlib import suppress
from pathlib import Path

from axonp2p.client.hosted.hosted_mark import ARRIVING
from axonp2p.client.hosted.how_far import lacking_outputs
from axonp2p.client.storage.job_record import JobRecord
from axonp2p.client.storage.job_store import JobFolder
from axonp2p.errors import MalformedMessage
from axonp2p.files import check_room, sync_folder
from axonp2p.hosting.caller import HostLine
from axonp2p.hosting.hosted_folder import bytes_under
from axonp2p.hosting.packed_folder import HEAD_LIMIT, read_head, unpack


class OutputsCopy:
    """One job's, at one host. With `most_bytes` the folder takes no more than that.

    What came of a folder before a cut is gone on with, at the host that it came from.
    """

    def __init__(self, folder: JobFolder, line: HostLine, most_bytes: int | None) -> None:
        self._folder = folder
        self._line = line
        self._most_bytes = most_bytes
        self._arriving = folder.path / ARRIVING

    async def copy(self, record: JobRecord) -> None:
        """All that is lacking here, in the order in which the results came, as far as there is room.

        Raises what asking raises, `PeerMisbehaved` for what cannot be, `SettingsError` or `OSError` of the disk.
        """
        lacking = await asyncio.to_thread(lacking_outputs, self._folder, record)
        if not lacking:
            return
        self._arriving.mkdir(exist_ok=True, mode=0o700)
        spare = None if self._most_bytes is None else self._most_bytes - await asyncio.to_thread(self._used)
        for name, size in lacking.items():
            needed = 2 * size + HEAD_LIMIT  # while it is unpacked it is here twice
            if spare is not None and needed > spare:
                break
            check_room(self._folder.path, name, needed)
            await self._fetch(name, size)
            spare = None if spare is None else spare - size
        await asyncio.to_thread(shutil.rmtree, self._arriving)

    def _used(self) -> int:
        return bytes_under(self._folder.path) - bytes_under(self._arriving)

    async def _fetch(self, name: str, size: int) -> None:
        packed = self._arriving / f"{name.replace('/', '-')}-{self._line.host.peer}"  # another may have other files
        for other in self._arriving.iterdir():
            if other.is_dir():
                await asyncio.to_thread(shutil.rmtree, other)
            elif other != packed:
                other.unlink()
        try:
            await self._receive(name, size, packed)
            unpacked = self._arriving / "files"
            await asyncio.to_thread(unpack, packed, unpacked, size)
        except MalformedMessage as error:
            with suppress(OSError):
                packed.unlink()
            raise MalformedMessage(f"{self._line.host.called} gives other files of {name}: {error.message}") from error
        place = self._folder.path / name
        place.parent.mkdir(exist_ok=True)
        unpacked.replace(place)
        await asyncio.to_thread(sync_folder, place.parent)

    async def _receive(self, name: str, size: int, packed: Path) -> None:
        with packed.open("ab") as growing:
            length, head = growing.tell(), read_head(packed, size)
            while head is None or length < head[1] + size:
                _, part = await self._line.part(self._folder.path.name, name, length)
                length += len(part)
                if not part or length > size + HEAD_LIMIT:
                    raise MalformedMessage(f"{length} bytes came for {size}")
                growing.write(part)
                growing.flush()
                head = head or read_head(packed, size)
