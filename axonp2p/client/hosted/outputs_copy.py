"""Files of a hosted job, copied here a folder at a time, whole or not at all: those of a result, or of a peer."""

from __future__ import annotations

import asyncio
import shutil
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

from axonp2p.client.hosted.hosted_mark import ARRIVING
from axonp2p.client.hosted.how_far import lacking_outputs, left_folders
from axonp2p.client.storage.job_record import JobRecord
from axonp2p.client.storage.job_store import JobFolder
from axonp2p.errors import MalformedMessage, Refused
from axonp2p.files import check_room, sync_folder
from axonp2p.hosting.caller import HostLine
from axonp2p.hosting.folder_files import Kind, kind_of
from axonp2p.hosting.hosted_folder import bytes_under
from axonp2p.hosting.packed_folder import HEAD_LIMIT, read_head, unpack
from axonp2p.logs import get_logger

log = get_logger(__name__)


class OutputsCopy:
    """One job's, at one host. With `most_bytes` the folder takes no more than that.

    A copy of a folder that was cut goes on, at the host that it came from.
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
        await self._copy(await asyncio.to_thread(lacking_outputs, self._folder, record), anew=False)

    async def copy_left(self, record: JobRecord) -> None:
        """Copy the files that programs left at peers, in place of what is here of it: it may have changed since.

        For when nothing works on the job any more. Raises as `copy`.
        """
        left = await asyncio.to_thread(left_folders, self._folder, record)
        for name in left:
            if kind_of(name) is not Kind.FOLDER:  # a host wrote the events
                raise MalformedMessage(f"{self._line.host.called} tells of files in {name!r}")
        await self._copy(left, anew=True)

    async def _copy(self, folders: Mapping[str, int], *, anew: bool) -> None:
        if not folders:
            return
        self._arriving.mkdir(exist_ok=True, mode=0o700)
        spare = None if self._most_bytes is None else self._most_bytes - await asyncio.to_thread(self._used)
        for name, size in folders.items():
            needed = 2 * size + HEAD_LIMIT  # while it is unpacked it is here twice
            if spare is not None and needed > spare:
                break
            check_room(self._folder.path, name, needed)
            try:
                size = await self._fetch(name, size, anew=anew)
            except Refused as error:
                if not anew:
                    raise
                log.info("files are not at the host", name=name, reason=error.message)  # its disk took none, say
                continue
            spare = None if spare is None else spare - size
        await asyncio.to_thread(shutil.rmtree, self._arriving)

    def _used(self) -> int:
        return bytes_under(self._folder.path) - bytes_under(self._arriving)

    async def _fetch(self, name: str, size: int, *, anew: bool) -> int:
        """Gives the bytes of its files. `anew`: at most `size`, and another one that is here goes."""
        packed = self._arriving / f"{name.replace('/', '-')}-{self._line.host.peer}"  # another may have other files
        for other in self._arriving.iterdir():
            if other.is_dir():
                await asyncio.to_thread(shutil.rmtree, other)
            elif other != packed or anew:
                other.unlink()
        try:
            size = await self._receive(name, size, packed, or_less=anew)
            unpacked = self._arriving / "files"
            await asyncio.to_thread(unpack, packed, unpacked, size)
        except MalformedMessage as error:
            with suppress(OSError):
                packed.unlink()
            raise MalformedMessage(f"{self._line.host.called} gives other files of {name}: {error.message}") from error
        place = self._folder.path / name
        place.parent.mkdir(exist_ok=True)
        if anew and place.exists():
            await asyncio.to_thread(shutil.rmtree, place)
        unpacked.replace(place)
        await asyncio.to_thread(sync_folder, place.parent)
        return size

    async def _receive(self, name: str, size: int, packed: Path, *, or_less: bool) -> int:
        with packed.open("ab") as growing:
            length, head = growing.tell(), read_head(packed, size, or_less=or_less)
            while head is None or length < head.ends:
                _, part = await self._line.part(self._folder.path.name, name, length)
                length += len(part)
                if not length:
                    raise Refused(f"there is no {name} now")
                if not part or length > size + HEAD_LIMIT:
                    raise MalformedMessage(f"{length} bytes came for {size}")
                growing.write(part)
                growing.flush()
                head = head or read_head(packed, size, or_less=or_less)
        return head.ends - head.begins
