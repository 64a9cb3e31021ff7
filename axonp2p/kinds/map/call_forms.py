"""How functions and arguments travel to a sandbox in chunks, and how values and exceptions come back."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Annotated, Any

import msgspec

from axonp2p.calls.form import OpenBlob
from axonp2p.errors import MalformedMessage, TaskError
from axonp2p.kinds.map.messages import LARGEST_RESULT, MOST_CALLS
from axonp2p.values.bounds import ResultBounds
from axonp2p.values.unpacking import unpack_value

if TYPE_CHECKING:
    from axonp2p.calls.packing import CallPacker

LARGEST_IN_CHUNK = 64 * 1024
"""The arguments of a call of more bytes travel as a blob of their own, once to each peer."""
LONGEST_MESSAGE, LONGEST_TRACEBACK = 4000, 16_000
"""Characters of an exception."""
BlobBytes = bytes | memoryview


class PackedPart(msgspec.Struct, frozen=True, array_like=True):
    """A function, or the arguments of a call: its bytes, or the name of the blob that they are in."""

    data: Annotated[bytes, msgspec.Meta(max_length=2**20)] = b""
    blob: Annotated[str, msgspec.Meta(max_length=64)] = ""
    blobs: Annotated[tuple[Annotated[str, msgspec.Meta(max_length=64)], ...], msgspec.Meta(max_length=4096)] = ()
    """Those that its bytes name."""

    @property
    def names(self) -> list[str]:
        """All blobs that it takes to open it."""
        return [*([self.blob] if self.blob else []), *self.blobs]


OWN_MERGE = PackedPart()
"""In the place of a function: the job's own `reduce`, for values that `pack_values` has packed."""


class PackedCall(msgspec.Struct, frozen=True, array_like=True):
    """One call of a chunk."""

    function: Annotated[int, msgspec.Meta(ge=0, lt=MOST_CALLS)]
    """Its place among the functions of the chunk."""
    arguments: PackedPart


class ChunkCalls(msgspec.Struct, frozen=True, array_like=True):
    """The payload of `BeginChunk`."""

    functions: Annotated[list[PackedPart], msgspec.Meta(max_length=MOST_CALLS)]
    calls: Annotated[list[PackedCall], msgspec.Meta(max_length=MOST_CALLS)]


class Raised(msgspec.Struct, frozen=True, array_like=True):
    """An exception of a call."""

    kind: Annotated[str, msgspec.Meta(max_length=200)]
    """Its class."""
    message: Annotated[str, msgspec.Meta(max_length=LONGEST_MESSAGE)]
    traceback: Annotated[str, msgspec.Meta(max_length=LONGEST_TRACEBACK)] = ""


class CallOutcome(msgspec.Struct, frozen=True, array_like=True):
    """The result of one call, packed."""

    raised: bool
    value: Annotated[bytes, msgspec.Meta(max_length=LARGEST_RESULT)]
    """As `pack_value` made it; of an exception: `Raised`."""


_OUTCOMES = msgspec.msgpack.Decoder(Annotated[list[CallOutcome], msgspec.Meta(max_length=MOST_CALLS)])
_RAISED = msgspec.msgpack.Decoder(Raised)


def pack_outcomes(outcomes: list[CallOutcome]) -> bytes:
    """The payload of `CallResults`."""
    return msgspec.msgpack.encode(outcomes)


def open_outcomes(data: BlobBytes, calls: int) -> list[CallOutcome]:
    """The same, of so many calls. Raises `MalformedMessage` for what is none."""
    try:
        found: list[CallOutcome] = _OUTCOMES.decode(data)
    except msgspec.MsgspecError as error:
        raise MalformedMessage(f"not results of calls: {error}") from error
    if len(found) != calls:
        raise MalformedMessage(f"{len(found)} results of {calls} calls")
    return found


def pack_values(values: list[bytes]) -> bytes:
    """The arguments of a merge: results as they came home."""
    return msgspec.msgpack.encode(values)


def open_values(data: BlobBytes) -> list[bytes]:
    """The same, each packed still. Raises `msgspec.MsgspecError`."""
    return msgspec.msgpack.decode(data, type=list[bytes])


def pack_error(kind: str, message: str, traceback: str = "") -> bytes:
    """The value of an outcome that is an exception."""
    return msgspec.msgpack.encode(Raised(kind[:200], message[:LONGEST_MESSAGE], traceback[-LONGEST_TRACEBACK:]))


def open_outcome(outcome: CallOutcome, most: int) -> Any:
    """The value, or the `TaskError` of the exception. Raises `PeerMisbehaved` for what is neither."""
    if not outcome.raised:
        return unpack_value(outcome.value, ResultBounds(most_bytes=most))
    try:
        raised = _RAISED.decode(outcome.value)
    except msgspec.MsgspecError as error:
        raise MalformedMessage(f"not an exception: {error}") from error
    return TaskError(raised.kind, raised.message, raised.traceback)


@dataclass(frozen=True)
class NewCall:
    """A call on its way into a chunk, with the blobs that it names."""

    function: PackedPart
    arguments: PackedPart
    blobs: Mapping[str, BlobBytes] = field(default_factory=dict)
    name: str = ""
    """Of the function in its source: calls of one name take about as long."""

    @property
    def size(self) -> int:
        """Its bytes of a chunk's message, at most."""
        return size_of(self.function) + size_of(self.arguments)


def size_of(part: PackedPart) -> int:
    """Bytes, with those of the names of blobs in the header: 256 of these fit."""
    return len(part.data) + 2048 * len(part.names)


def new_call(
    packer: CallPacker,
    function: PackedPart,
    blobs: Mapping[str, BlobBytes],
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
    name: str = "",
) -> NewCall:
    """The call of a function that is packed already, and the blobs of the function."""
    packed = packer.pack_call(args, kwargs)
    arguments, more = as_part(packed.data, packed.blobs, LARGEST_IN_CHUNK)
    return NewCall(function, arguments, {**blobs, **more}, name)


def as_part(data: bytes, blobs: Mapping[str, BlobBytes], largest: int) -> tuple[PackedPart, dict[str, BlobBytes]]:
    """How bytes travel that name these blobs, and all blobs that it takes. More than `largest` are a blob."""
    names = tuple(blobs)
    if len(data) <= largest:
        return PackedPart(data, "", names), dict(blobs)
    own = hashlib.sha256(data).hexdigest()
    return PackedPart(b"", own, names), {**blobs, own: data}


def open_part(part: PackedPart, open_blob: OpenBlob) -> BlobBytes:
    """Its bytes."""
    return open_blob(part.blob) if part.blob else part.data
