"""The first calls of a job, made here in the sandbox for `axon check`; where results are merged, in two ways."""

from __future__ import annotations

import asyncio
import time
from dataclasses import dataclass, replace
from typing import Any

import msgspec

from axonp2p.errors import PeerMisbehaved, TaskError
from axonp2p.jobs.bundle import Bundle
from axonp2p.kinds.map.call_forms import (
    OWN_MERGE,
    CallOutcome,
    ChunkCalls,
    PackedCall,
    PackedPart,
    open_outcome,
    open_outcomes,
    pack_values,
)
from axonp2p.kinds.map.messages import BeginChunk, CallResults, ChunkOver, FromWorkerMap, ResultPart
from axonp2p.kinds.map.opinions.agreement import close
from axonp2p.kinds.map.reduce_tree import ReduceTree
from axonp2p.kinds.map.section import MapJob, preparation_of
from axonp2p.plain_text import bytes_text
from axonp2p.sandbox.messages import Control, MayTell
from axonp2p.wire.codec import decode
from axonp2p.wire.frame import HEADER_LIMIT, pack_frame, split_frame
from client_cli.meanwhile import Meanwhile
from client_cli.text.render import duration_text
from client_cli.worker_here import TRY_S, WorkerHere, try_in_sandbox

MERGED = 3
"""Results that are merged in two ways."""
MOST_MERGED_BYTES = 2**19
"""That fit a chunk's message without blobs."""


@dataclass(frozen=True)
class CallTrial:
    """The outcome of the first calls."""

    not_tried: str = ""
    """Why none was tried; empty when one was."""
    seconds: float | None = None
    """How long the first one took; None when it still ran."""
    result_bytes: int = 0
    failure: str = ""
    """The error that it raised, or how its process ended."""
    merged: str = ""
    """The outcome of merging results, in words; empty where the job merges none."""
    wrong_merge: str = ""
    """Why results cannot be merged so."""
    log: str = ""


class _Failed(Exception):
    """A call came to nothing; says why."""


class _TooLarge(Exception):
    """These results are not merged here."""


def trial_text(trial: CallTrial) -> str:
    """How the calls went here."""
    if trial.not_tried:
        return f"the function was not tried: {trial.not_tried}"
    if trial.seconds is None:
        return f"call 0 still ran here after {duration_text(TRY_S)}, and was ended"
    first = f"call 0 took {duration_text(trial.seconds)} here, and its result has {bytes_text(trial.result_bytes)}"
    return f"{first}; {trial.merged}" if trial.merged else first


def try_first_calls(spec: MapJob, items: int, bundle: Bundle, meanwhile: Meanwhile) -> CallTrial:
    """Make them. Raises `JobFailed` where the sandbox itself ends."""
    tried = try_in_sandbox(spec, bundle, meanwhile, lambda worker: try_at(worker, spec, items, meanwhile))
    return CallTrial(not_tried=tried) if isinstance(tried, str) else tried


async def try_at(worker: WorkerHere, spec: MapJob, items: int, meanwhile: Meanwhile) -> CallTrial:
    """Make the first calls at a worker that has the bundle, and return their outcome."""
    tree = ReduceTree(items, fold=1) if spec.map.reduce else None
    await worker.channel.send(MayTell(rank=None, bytes=2**31))
    await worker.channel.send(Control(), pack_frame(preparation_of(spec.map, tree)))
    calls = _CallsHere(worker, spec.map.most_result)
    meanwhile.begin(f"call 0, which is ended after {TRY_S:.0f} s,")
    trial = CallTrial()
    try:
        async with asyncio.timeout(TRY_S):
            began = time.monotonic()
            first = await calls.make([0])
            trial = CallTrial(seconds=time.monotonic() - began, result_bytes=len(first[0].value))
            if tree and items >= MERGED:
                trial = replace(trial, merged=f"the first {MERGED} results take too long to be merged here")
                meanwhile.begin("merging the first results")
                trial = replace(trial, merged=await _merge(calls, first))
    except _Failed as error:
        if trial.seconds is None:
            trial = replace(trial, seconds=0.0, failure=str(error))
        else:
            trial = replace(trial, wrong_merge=str(error))
    except _TooLarge:
        trial = replace(trial, merged=f"the first {MERGED} results are too large to be merged here")
    except TimeoutError:
        pass
    await asyncio.sleep(0.1)  # the last of its log is still in the pipe
    return replace(trial, log=worker.log().decode())


async def _merge(calls: _CallsHere, results: list[CallOutcome]) -> str:
    """Three results, of which the first is here: the first two first, and the last two first. In words."""
    try:
        results = results + await calls.make([1, 2])
    except _Failed as error:
        raise _Failed(f"call 1 or 2 failed: {error}") from error
    first, second, third = (one.value for one in results)
    left, right = await calls.merge([[first, second], [second, third]])
    one, other = await calls.merge([[left.value, third], [first, right.value]])
    if one.value != other.value and not close(calls.value(one), calls.value(other)):
        raise _Failed("merge(merge(a, b), c) is not equal to merge(a, merge(b, c)) for the first three results")
    return f"the first {MERGED} results merge to the same, whichever two are merged first"


class _CallsHere:
    """Chunks for the worker here, one after the other. Raises `_Failed`."""

    def __init__(self, worker: WorkerHere, most_result: int) -> None:
        self._worker = worker
        self._most_result = most_result
        self._chunks = 0

    async def make(self, items: list[int], payload: bytes = b"") -> list[CallOutcome]:
        """Make calls, of the job's own function unless the payload has others, and return their outcomes."""
        self._chunks += 1
        order = BeginChunk(chunk=self._chunks, items=items)
        await self._worker.channel.send(Control(), pack_frame(order, payload))
        outcomes: list[CallOutcome] = []
        data = bytearray()
        while True:
            message, frame = await self._worker.channel.receive()
            if not isinstance(message, Control):
                continue
            said, part = _said(frame)
            if isinstance(said, ResultPart | CallResults):
                data += part
            if isinstance(said, CallResults):
                outcomes += self._opened(bytes(data), said.calls)
                data.clear()
            if isinstance(said, ChunkOver):
                if len(outcomes) == len(items):
                    return outcomes
                raise _Failed(said.reason or "its process ended")

    async def merge(self, groups: list[list[bytes]]) -> list[CallOutcome]:
        """Merge each group of results with `reduce`."""
        calls = [PackedCall(0, PackedPart(pack_values(values))) for values in groups]
        payload = msgspec.msgpack.encode(ChunkCalls([OWN_MERGE], calls))
        if len(payload) > MOST_MERGED_BYTES:
            raise _TooLarge
        return await self.make(list(range(len(calls))), payload)

    def value(self, outcome: CallOutcome) -> Any:
        return open_outcome(outcome, self._most_result)

    def _opened(self, data: bytes, calls: int) -> list[CallOutcome]:
        try:
            outcomes = open_outcomes(data, calls)
            values = [self.value(one) for one in outcomes]
        except PeerMisbehaved as error:
            raise _Failed(f"its result cannot be read: {error.message}") from error
        for value in values:
            if isinstance(value, TaskError):
                raise _Failed(f"{value.message}\n{value.traceback}")
        return outcomes


def _said(frame: memoryview) -> tuple[FromWorkerMap, memoryview]:
    inner = split_frame(frame)
    said: FromWorkerMap = decode(inner.header, FromWorkerMap, HEADER_LIMIT)
    return said, inner.payload
