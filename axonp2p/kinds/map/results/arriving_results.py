"""Results on their way in: bounded before anything is allocated, checked before anything is decoded.

A peer sends results of one chunk in parts at a time, so one buffer a peer is enough.
"""

from __future__ import annotations

import asyncio
import hashlib
from dataclasses import dataclass
from typing import Any

from axonp2p.errors import PeerMisbehaved
from axonp2p.kinds.map.call_forms import CallOutcome, open_outcome, open_outcomes
from axonp2p.kinds.map.messages import (
    AtWork,
    BlobsLacking,
    CallResults,
    ChunkBegun,
    ChunkOver,
    FromWorkerMap,
    ResultPart,
)
from axonp2p.wire.codec import decode
from axonp2p.wire.frame import HEADER_LIMIT, Frame

ROOM = 2 * 2**20
"""Bytes that results of a chunk may have together beside one that is as large as a result may be."""
SMALL = 64 * 1024
"""Bytes of results that are opened without a thread."""


@dataclass(frozen=True)
class ArrivedResults:
    """Results of some calls of a chunk, each checked."""

    chunk: int
    first: int
    outcomes: list[CallOutcome]
    values: list[Any]
    """The same, opened: the value, or a `TaskError`."""
    cpu_seconds: float

    @property
    def size(self) -> int:
        """Bytes, about."""
        return sum(len(one.value) + 64 for one in self.outcomes)


MapWord = AtWork | ChunkBegun | ChunkOver | BlobsLacking | ArrivedResults
"""The messages of a worker, with results in one piece."""


class ArrivingWords:
    """Of all peers, by rank. Raises `PeerMisbehaved` for what does not fit."""

    def __init__(self, most_result: int) -> None:
        self._most_result = most_result
        self._results: dict[int, ArrivingResults] = {}

    async def opened(self, rank: int, frame: Frame) -> MapWord | None:
        """The word in a frame; None: it is a part of one."""
        message: FromWorkerMap = decode(frame.header, FromWorkerMap, HEADER_LIMIT)
        arriving = self._results.setdefault(rank, ArrivingResults(self._most_result))
        match message:
            case ResultPart():
                arriving.part(message, frame.payload)
                return None
            case CallResults() if message.size <= SMALL:
                return arriving.last(message, frame.payload)
            case CallResults():
                return await asyncio.to_thread(arriving.last, message, frame.payload)
            case _:
                return message

    def forget(self, rank: int) -> None:
        """That peer is gone."""
        self._results.pop(rank, None)


class ArrivingResults:
    """Of one peer. Raises `PeerMisbehaved` for what does not fit."""

    def __init__(self, most_result: int) -> None:
        self._most_result = most_result
        self._chunk = -1
        self._parts = bytearray()

    def part(self, message: ResultPart, payload: memoryview) -> None:
        """A part that others follow. One whose beginning was said to an earlier life of the client is passed over."""
        if message.offset == 0:
            self._chunk, self._parts = message.chunk, bytearray()
        if message.chunk != self._chunk:
            return
        if message.offset != len(self._parts):
            raise PeerMisbehaved("it sends parts of results out of their order")
        if len(self._parts) + len(payload) > self._most_result + ROOM:
            raise PeerMisbehaved(f"it sends results of more than {self._most_result + ROOM:,} bytes")
        self._parts += payload

    def last(self, message: CallResults, payload: memoryview) -> ArrivedResults | None:
        """The last part; None where the parts before it were said to an earlier life of the client."""
        parts = self._parts if message.chunk == self._chunk else bytearray()
        self._chunk, self._parts = -1, bytearray()
        if message.size > self._most_result + ROOM or len(parts) + len(payload) > message.size:
            raise PeerMisbehaved("it sends more results than it says, or than fit")
        if len(parts) + len(payload) < message.size:
            return None
        data = memoryview(bytes(parts) + payload if parts else payload)
        if hashlib.sha256(data).digest() != message.sha256:
            raise PeerMisbehaved("its results are not what their hash says")
        try:
            outcomes = open_outcomes(data, message.calls)
            values = [open_outcome(one, self._most_result) for one in outcomes]
        except PeerMisbehaved as error:
            raise PeerMisbehaved(f"a result of it cannot be read: {error.message[:120]}") from None
        return ArrivedResults(message.chunk, message.first, outcomes, values, message.cpu_seconds)
