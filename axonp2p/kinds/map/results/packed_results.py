"""The results of a job as one file, as they travel from a host: typed rows, since a stranger's results.sqlite is a
database that nobody should open.

    length of 8 bytes, ResultsHead, then for each result in the order of the items: length of 8 bytes, ResultsRow

The client checks each row before it enters a results.sqlite of its own. The debt for the work stays with the host,
which has paid it, and opinions that wait are made again. Everything here blocks.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Annotated, Any

import msgspec

from axonp2p.client.storage.job_record import JobRecord
from axonp2p.client.storage.job_store import JobFolder
from axonp2p.client.storage.kept_bundle import spec_of
from axonp2p.disk_errors import not_writable
from axonp2p.errors import MalformedMessage
from axonp2p.files import put_in_place
from axonp2p.hosting.folder_files import packed_name
from axonp2p.hosting.hosted_folder import packed_in
from axonp2p.identity.peer_id import PeerId
from axonp2p.kinds.map.kept_end import RESULTS, items_of
from axonp2p.kinds.map.messages import LARGEST_RESULT, MOST_ITEMS
from axonp2p.kinds.map.results.results_store import Came, ItemResult, ResultsStore
from axonp2p.kinds.map.section import MapJob, tree_of
from axonp2p.wire.quantities import PlainText

MOST_OUTVOTED = 1000
"""Peers that are not believed."""
AT_ONCE = 8 * 2**20
"""Bytes of results that are written in one transaction."""
_LENGTH = 8
_BESIDE_VALUE = 2048
"""Bytes that a row takes beside its value."""
_LARGEST_ERROR = 2**17
_LARGEST_HEAD = 64 * MOST_OUTVOTED


class ResultsHead(msgspec.Struct, frozen=True, array_like=True):
    """The first thing in the file."""

    outvoted: Annotated[list[PeerId], msgspec.Meta(max_length=MOST_OUTVOTED)]
    """Keys of peers that get no calls of the job any more."""


class ResultsRow(msgspec.Struct, frozen=True, array_like=True):
    """The result of one item, as `ItemResult` has it."""

    item: Annotated[int, msgspec.Meta(ge=0, lt=MOST_ITEMS)]
    outcome: Came
    value: Annotated[bytes, msgspec.Meta(max_length=LARGEST_RESULT)]
    peer: PlainText
    agreed: Annotated[int, msgspec.Meta(ge=0, le=100)]


_HEAD = msgspec.msgpack.Decoder(ResultsHead)
_ROW = msgspec.msgpack.Decoder(ResultsRow)


def pack(folder: Path) -> None:
    """Write the results in a job's folder into one file, named by its hash; earlier ones go. Raises `SettingsError`."""
    fresh, hasher = folder / ".results.packed", hashlib.sha256()
    try:
        with fresh.open("wb") as file:
            for piece in _pieces(folder / RESULTS):
                framed = len(piece).to_bytes(_LENGTH) + piece
                hasher.update(framed)
                file.write(framed)
        for earlier in packed_in(folder):
            earlier.unlink()
        put_in_place(fresh, folder / packed_name(hasher.hexdigest()))
    except OSError as error:
        raise not_writable(folder, error) from error


def _pieces(results: Path) -> Iterator[bytes]:
    if not results.exists():
        yield msgspec.msgpack.encode(ResultsHead([]))
        return
    store = ResultsStore(results)
    try:
        yield msgspec.msgpack.encode(ResultsHead(store.outvoted()[:MOST_OUTVOTED]))
        for one in store.read():
            yield msgspec.msgpack.encode(ResultsRow(one.item, one.outcome, one.value, one.peer, one.agreed))
    finally:
        store.close()


def unpack(record: JobRecord, packed: Path) -> None:
    """Put a results.sqlite beside such a file that has its results, in place of any other.

    Raises `MalformedMessage` for what is none of this job, and `SettingsError` of the disk.
    """
    spec = spec_of(record)
    assert isinstance(spec, MapJob)
    most = max(spec.map.most_result, _LARGEST_ERROR) + _BESIDE_VALUE
    place = packed.with_name(RESULTS)
    fresh = place.with_name(f".{RESULTS}")
    _remove(fresh)
    store = ResultsStore(fresh)
    try:
        with packed.open("rb") as file:
            head = _opened(_HEAD, _read(file, _LARGEST_HEAD) or b"")
            store.keep([], [])
            tree = tree_of(spec, items_of(spec, JobFolder(packed.parent))) if spec.map.reduce else None
            if tree:
                store.keep_tree(tree)
            for peer in head.outvoted:
                store.distrust(peer, "", again=False)
            _keep_rows(store, file, most, tree.calls if tree else record.units)
        store.close()
        _remove(place)
        put_in_place(fresh, place)
    except OSError as error:
        raise not_writable(place, error) from error
    finally:
        store.close()
        _remove(fresh)


def _keep_rows(store: ResultsStore, file: IO[bytes], most: int, items: int) -> None:
    batch, size, last = list[ItemResult](), 0, -1
    while data := _read(file, most):
        row = _opened(_ROW, data)
        if not last < row.item < items:
            raise MalformedMessage(f"packed results have item {row.item} of {items} after item {last}")
        last = row.item
        batch.append(ItemResult(row.item, row.outcome, row.value, row.peer, row.agreed))
        size += len(data)
        if size >= AT_ONCE:
            store.keep(batch, [])
            batch, size = [], 0
    store.keep(batch, [])


def _read(file: IO[bytes], most: int) -> bytes:
    """The next piece; empty at the end of the file."""
    length = int.from_bytes(file.read(_LENGTH))
    if length > most:
        raise MalformedMessage(f"packed results have a piece of {length} bytes; at most {most} are allowed")
    data = file.read(length)
    if len(data) < length:
        raise MalformedMessage("packed results end too soon")
    return data


def _opened(decoder: msgspec.msgpack.Decoder[Any], data: bytes) -> Any:
    try:
        return decoder.decode(data)
    except msgspec.MsgspecError as error:
        raise MalformedMessage(f"packed results cannot be read: {error}") from error


def _remove(database: Path) -> None:
    for name in (database.name, f"{database.name}-wal", f"{database.name}-shm"):
        database.with_name(name).unlink(missing_ok=True)
