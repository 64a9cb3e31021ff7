"""A hosted job's folder here, kept equal to the one at its host, so that all that reads folders works as ever.

The record is written last, and one that says that the job is over only when the host says that nothing works on it any
more: who sees the end in job.json then finds everything else as well.
"""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

import msgspec

from axonp2p.client.hosted.hosted_mark import HostedMark, looked_at, read_mark
from axonp2p.client.hosted.outputs_copy import OutputsCopy
from axonp2p.client.storage.checkpoints import Checkpoint, FrozenFile
from axonp2p.client.storage.job_record import JobRecord, decode_record
from axonp2p.client.storage.job_store import JobFolder
from axonp2p.client.storage.kept_bundle import spec_of
from axonp2p.clock import Clock
from axonp2p.disk_errors import not_writable
from axonp2p.errors import (
    AlreadyRunning,
    LimitReached,
    MalformedMessage,
    NotFound,
    PeerMisbehaved,
    Refused,
    SettingsError,
)
from axonp2p.files import check_room, locked, put_in_place, write_whole
from axonp2p.hosting.caller import HostLine
from axonp2p.hosting.folder_files import (
    BEST,
    GROWING_LIMIT,
    MODEL,
    SMALL_STATE,
    STATES,
    Kind,
    is_frozen,
    is_packed,
    kind_of,
    packed_name,
    rounds_of,
    to_copy,
)
from axonp2p.hosting.hosted_folder import bytes_under, packed_in, seen_on_disk
from axonp2p.hosting.messages import FolderFile
from axonp2p.jobs.kinds import KINDS, load
from axonp2p.jobs.lifecycle import JobState, is_over
from axonp2p.logs import get_logger
from axonp2p.plain_text import bytes_text

TURN_S = 0.2
STATE_EVERY_S = 60.0
KEPT_STATES = 2
"""Of a job that its host still works on."""

log = get_logger(__name__)


class HostedCopy:
    """One job's. `result`: once it is over, its weights are copied too, or the states to go on from; or all files of
    its results; and what its programs left at peers.

    While it runs its newest state is copied as well, unless it is large, and not more often than every `STATE_EVERY_S`.
    With `most_bytes` the folder takes no more than that; a state of any size is copied that has room, and so are files
    of results, before it is over.
    """

    def __init__(
        self, folder: JobFolder, line: HostLine, clock: Clock, *, result: bool, most_bytes: int | None = None
    ) -> None:
        self._folder = folder
        self._line = line
        self._clock = clock
        self._result = result
        self._most_bytes = most_bytes
        self._record = b""
        self._state_at = float("-inf")

    async def look(self) -> HostedMark:
        """Copy what is new; how the job stands there now.

        Raises what asking raises, `PeerMisbehaved` for what is not what it should be, or `SettingsError` of the disk.
        """
        async with self._turn():
            try:
                return await self._look()
            except OSError as error:
                raise not_writable(self._folder.path, error) from error

    async def _look(self) -> HostedMark:
        folder, job = self._folder, self._folder.path.name
        state, record = await self._line.folder(job, self._record)
        self._record = record or self._record
        there = opened_record(self._record, job)
        here = {file.name: known for file in state.files if (known := _here(folder.path, file.name))}
        now = self._clock.monotonic()
        with_state = now >= self._state_at + STATE_EVERY_S
        largest = SMALL_STATE if self._most_bytes is None else self._most_bytes
        wanted = to_copy(
            state.files, here, result=self._result and not state.at_work, state=with_state, largest=largest
        )
        for file in await asyncio.to_thread(self._with_room, wanted):
            if kind_of(file.name) is Kind.GROWING:
                await self._grow(file)
            elif state.at_work:
                self._state_at = now
                await self._fetch_state(file, there)
            else:
                await self._fetch(file, there)
        if there is not None and (self._most_bytes is not None or (self._result and not state.at_work)):
            await OutputsCopy(folder, self._line, self._most_bytes).copy(there)
        left_files_of = None
        if there is not None and not state.at_work:
            left_files_of = await self._copy_last(state.files, there)
        if there is not None and not (state.at_work and is_over(there.state)):
            folder.write(self._with_what_is_known_here(there), lasting=not state.at_work)
        return looked_at(folder, self._line.host, state, there, self._clock.now(), left_files_of)

    async def _copy_last(self, files: Sequence[FolderFile], there: JobRecord) -> float | None:
        """Copy files that may change until nothing works on the job, once: packed results, and what programs left at
        peers. Gives which record's that is.
        """
        mark = read_mark(self._folder)
        if not self._result or (mark is not None and mark.left_files_of == there.updated):
            return None
        if unpack := KINDS[there.kind].unpack:
            await self._copy_packed(load(unpack), files, there)
        await OutputsCopy(self._folder, self._line, self._most_bytes).copy_left(there)
        return there.updated

    async def _copy_packed(
        self, unpack: Callable[[JobRecord, Path], None], files: Sequence[FolderFile], there: JobRecord
    ) -> None:
        packed = next((file for file in files if is_packed(file.name)), None)
        if packed is None:
            if there.state is JobState.FINISHED:
                raise MalformedMessage(f"{self._line.host.called} has finished {there.id}, and gives no results")
            return
        path, most = self._folder.path / packed.name, self._most_bytes
        if most is not None and 2 * packed.size > most - bytes_under(self._folder.path):
            raise LimitReached(f"{there.id} takes more than the {bytes_text(most)} that it may")
        await self._fetch(packed, there)
        try:
            await asyncio.to_thread(unpack, there, path)
        except MalformedMessage:
            path.unlink()
            raise
        for other in packed_in(self._folder.path):
            # A host that keeps a copy gives it on as it came.
            if other != path or most is None:
                other.unlink()

    def _with_room(self, wanted: list[FolderFile]) -> list[FolderFile]:
        """Those for which there is room: without the large ones, where these have none."""
        if self._most_bytes is None:
            return wanted
        spare = self._most_bytes - bytes_under(self._folder.path)
        for some in (wanted, [file for file in wanted if kind_of(file.name) is Kind.GROWING]):
            if sum(file.size for file in some) <= spare:
                return some
        raise LimitReached(f"{self._folder.path.name} takes more than the {bytes_text(self._most_bytes)} that it may")

    async def _grow(self, file: FolderFile) -> None:
        path, job = self._folder.path / file.name, self._folder.path.name
        here = path.read_bytes() if path.exists() else b""
        hasher, length = hashlib.sha256(here), len(here)
        while length <= GROWING_LIMIT:
            before = hasher.digest() if length else b""
            begins, part = await self._line.part(job, file.name, length, before)
            if begins != length:  # it was written anew there
                write_whole(path, b"")
                hasher, length = hashlib.sha256(), 0
            part = part[: max(0, file.size - length)]  # as it was with the record that came: no round is told before
            path.parent.mkdir(exist_ok=True)
            with path.open("ab") as growing:
                growing.write(part)
            hasher.update(part)
            length += len(part)
            if not part or length >= file.size:
                return

    async def _fetch_state(self, file: FolderFile, record: JobRecord | None) -> None:
        """One of a job that goes on, or what belongs to it; there may be a newer one by now in its place."""
        try:
            await self._fetch(file, record)
        except Refused as error:
            log.debug("state not copied", file=file.name, reason=error.message)
            return
        if is_frozen(file.name):
            return
        kept = Checkpoint(self._folder.path / file.name, rounds_of(file.name), bytes.fromhex(file.name[-76:-12]))
        await asyncio.to_thread(self._folder.checkpoints(KEPT_STATES).forget_before, kept.rounds, kept.state)

    async def _fetch(self, file: FolderFile, record: JobRecord | None) -> None:
        path, job = self._folder.path / file.name, self._folder.path.name
        path.parent.mkdir(exist_ok=True, mode=0o700)
        arriving = path.with_name(f".{path.name}.part")
        length = _size(arriving) or 0
        if length > file.size:
            arriving.unlink()
            length = 0
        check_room(self._folder.path, file.name, file.size - length)
        while length < file.size:
            _, part = await self._line.part(job, file.name, length)
            if not part or length + len(part) > file.size:
                arriving.unlink(missing_ok=True)
                raise MalformedMessage(f"{self._line.host.called} gives other bytes of {file.name} than it has named")
            with arriving.open("ab") as growing:
                growing.write(part)
            length += len(part)
        if not await asyncio.to_thread(_is_right, arriving, file.name, record):
            arriving.unlink()
            raise PeerMisbehaved(f"{self._line.host.called} gives a {file.name} that does not have its hash")
        await asyncio.to_thread(put_in_place, arriving, path)

    def _with_what_is_known_here(self, there: JobRecord) -> JobRecord:
        """The host does not know where the job was submitted from, and its word on the rest is worth nothing here."""
        try:
            here = self._folder.read()
        except (NotFound, SettingsError):
            return msgspec.structs.replace(there, bundle="", named_trackers=[])
        known = {name: getattr(here, name) for name in ("folder", "bundle", "named_trackers")}
        return msgspec.structs.replace(there, **known)

    @asynccontextmanager
    async def _turn(self) -> AsyncIterator[None]:
        """While no other program of this computer copies into the same folder."""
        while True:
            try:
                with locked(self._folder.path / ".copying", "another program copies this job", fix=""):
                    yield
                    return
            except AlreadyRunning:
                await asyncio.sleep(TURN_S)


def opened_record(record: bytes, job: str) -> JobRecord | None:
    """The record of a job as a host told it; None while there is no record. Raises `MalformedMessage`."""
    if not record:
        return None
    try:
        opened = decode_record(record)
        spec_of(opened)
    except (msgspec.DecodeError, ValueError, SettingsError) as error:
        raise MalformedMessage(f"what the host gives as the record of {job} is none: {error}") from error
    if opened.id != job:
        raise MalformedMessage(f"the host gives the record of another job for {job}")
    return opened


def _is_right(arriving: Path, name: str, record: JobRecord | None) -> bool:
    if name in (MODEL, BEST):
        with arriving.open("rb") as file:
            found = hashlib.file_digest(file, "sha256").hexdigest()
        return record is not None and found == (record.model_sha256 if name == MODEL else record.best_sha256)
    rounds, _, state = name.removeprefix(f"{STATES}/").removesuffix(".safetensors").partition("-")
    if is_packed(name):
        with arriving.open("rb") as file:
            return packed_name(hashlib.file_digest(file, "sha256").hexdigest()) == name
    if is_frozen(name):
        return FrozenFile(arriving, bytes.fromhex(state)).fits()
    return Checkpoint(arriving, int(rounds), bytes.fromhex(state)).fits()


def _here(folder: Path, name: str) -> FolderFile | None:
    try:
        return seen_on_disk(folder, name)
    except FileNotFoundError:
        return None


def _size(path: Path) -> int | None:
    try:
        return path.stat().st_size
    except FileNotFoundError:
        return None
