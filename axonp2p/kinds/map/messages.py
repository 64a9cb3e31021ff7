"""The messages of the client and a worker about calls: headers of frames that daemons carry unread.

A chunk is a few calls that one process makes one after the other. It is named by a number that no other chunk of the
job has, whatever the client's life; a call is named by the number of its item, and may be in more than one chunk.
"""

from __future__ import annotations

from typing import Annotated, Literal

import msgspec

from axonp2p.wire.codec import Message
from axonp2p.wire.quantities import Cores, Count, PlainText, Seconds

MOST_ITEMS = 10_000_000
MOST_CALLS = 1000
"""Of one chunk: their numbers fit the header of a frame."""
MOST_HELD = 512
"""Chunks that one worker may have at a time."""
MOST_BLOBS = 256
"""Named by one chunk."""
LARGEST_RESULT = 2**31
"""Bytes that a job may allow one result to have, as it travels."""
MOST_BLOB_BYTES = 2**31

_FUNCTION = r"[A-Za-z0-9_./-]{1,200}\.py:[A-Za-z_][A-Za-z0-9_.]{0,99}"
FUNCTION = rf"^{_FUNCTION}\Z"
"""`task.py:work`: a file of the bundle, and a name in it."""
LONGEST_PATH = 255

ItemNumber = Annotated[int, msgspec.Meta(ge=0, lt=MOST_ITEMS)]
Items = Annotated[list[ItemNumber], msgspec.Meta(min_length=1, max_length=MOST_CALLS)]
BlobName = Annotated[str, msgspec.Meta(pattern=r"^[0-9a-f]{64}\Z")]
"""The SHA-256 of its bytes."""
BlobNames = Annotated[list[BlobName], msgspec.Meta(max_length=MOST_BLOBS)]

WhyOver = Literal["done", "crashed", "ended", "given back"]
"""Why a chunk is over: all its calls have their result; its process ended by itself; it was told to end; it was told so
before its first call began."""


class PrepareCalls(Message, tag=True, frozen=True):
    """First, and again from a client that takes the place of one that died: answered by `AtWork`."""

    most_result: Annotated[int, msgspec.Meta(ge=1, le=LARGEST_RESULT)]
    """Bytes of one result as it travels."""
    fn: Annotated[str, msgspec.Meta(max_length=320, pattern=rf"^({_FUNCTION})?\Z")] = ""
    """The function of all calls, `task.py:work`; empty: each call comes with its own."""
    items: Annotated[str, msgspec.Meta(max_length=LONGEST_PATH)] = ""
    """The file of the bundle with a line of JSON for each item; empty: an item is its number."""
    reduce: Annotated[str, msgspec.Meta(max_length=320, pattern=rf"^({_FUNCTION})?\Z")] = ""
    """The function that makes one result of two, `task.py:merge`; empty: none is merged. With it, a call is one of
    `reduce_tree.ReduceTree`."""
    count: Annotated[int, msgspec.Meta(ge=0, le=MOST_ITEMS)] = 0
    """How many items are folded or merged."""
    fold: Annotated[int, msgspec.Meta(ge=1, le=MOST_ITEMS)] = 1
    """How many of them are folded by one call."""


class BeginChunk(Message, tag=True, frozen=True):
    """Make these calls, once a core is free. The payload has the calls, unless they are of the job's own function."""

    chunk: Count
    items: Items
    """One for each call, in their order."""
    blobs: BlobNames = []
    """Blobs that the calls need beside the payload: the chunk waits until all of them are there."""


class EndChunk(Message, tag=True, frozen=True):
    """This chunk is not needed. Answered by `ChunkOver`, unless it was over."""

    chunk: Count
    only_waiting: bool = False
    """Not when one of its calls has begun."""


class KeepBlob(Message, tag=True, frozen=True):
    """A part of a blob: the payload. Parts of one blob come in their order."""

    name: BlobName
    """The SHA-256 of its bytes."""
    size: Annotated[int, msgspec.Meta(ge=0, le=MOST_BLOB_BYTES)]
    """Of all of it, in bytes."""
    offset: Annotated[int, msgspec.Meta(ge=0, le=MOST_BLOB_BYTES)]
    """Where the part begins."""


class UseBlob(Message, tag=True, frozen=True):
    """The daemon has brought this blob: it is in /blobs."""

    name: BlobName
    """As chunks name it."""
    file: BlobName
    """Its name there."""


class ReportCalls(Message, tag=True, frozen=True):
    """Say `AtWork`: nothing was heard of you for a while."""


class HeldChunk(Message, frozen=True):
    """A chunk that is not over."""

    chunk: Count
    """Its number."""
    items: Items
    """Those of its calls that have no result yet."""
    begun: bool
    """Whether its first call has."""


class AtWork(Message, tag=True, frozen=True):
    """The work that the worker has: the answer to `PrepareCalls` and `ReportCalls`."""

    cores: Cores
    """So many chunks run at a time."""
    chunks: Annotated[list[HeldChunk], msgspec.Meta(max_length=MOST_HELD)] = []
    """Those that are not over."""


class ChunkBegun(Message, tag=True, frozen=True):
    """The first of its calls begins."""

    chunk: Count


class ResultPart(Message, tag=True, frozen=True):
    """A part of the results that the next `CallResults` of this chunk names: the payload. In their order."""

    chunk: Count
    offset: Annotated[int, msgspec.Meta(ge=0, le=LARGEST_RESULT)]
    """Where the part begins."""


class CallResults(Message, tag=True, frozen=True):
    """Results of the next calls of a chunk, in their order; the payload is the last part of them."""

    chunk: Count
    first: ItemNumber
    """The item of the first of them: what was said to an earlier life of the client may arrive late."""
    calls: Annotated[int, msgspec.Meta(ge=1, le=MOST_CALLS)]
    """How many."""
    size: Annotated[int, msgspec.Meta(ge=1, le=2 * LARGEST_RESULT)]
    """Bytes of all parts."""
    sha256: Annotated[bytes, msgspec.Meta(min_length=32, max_length=32)]
    """Of all parts."""
    cpu_seconds: Seconds
    """Processor time of these calls, by the worker's word."""


class ChunkOver(Message, tag=True, frozen=True):
    """Nothing more comes of this chunk: calls of it without a result have none."""

    chunk: Count
    why: WhyOver
    """As `WhyOver` has it."""
    seconds: Seconds = 0.0
    """From the begin of its first call."""
    reason: PlainText = ""
    """How its process ended, where it crashed; the first call without a result was running."""


class BlobsLacking(Message, tag=True, frozen=True):
    """These are named by a chunk, and were dropped here: send them again."""

    names: Annotated[list[BlobName], msgspec.Meta(min_length=1, max_length=MOST_BLOBS)]
    """Of blobs."""


ToWorkerMap = PrepareCalls | BeginChunk | EndChunk | KeepBlob | UseBlob | ReportCalls
FromWorkerMap = AtWork | ChunkBegun | ResultPart | CallResults | ChunkOver | BlobsLacking
