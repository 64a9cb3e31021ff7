"""`axon check` of a job of calls: its files, its peers, and its first call tried here."""

from __future__ import annotations

import asyncio
import time
from dataclasses import dataclass

from axonp2p.errors import JobFailed, PeerMisbehaved, TaskError
from axonp2p.kinds.map.call_forms import open_outcome, open_outcomes
from axonp2p.kinds.map.items_file import ItemsFile
from axonp2p.kinds.map.messages import BeginChunk, CallResults, ChunkOver, FromWorkerMap, ResultPart
from axonp2p.kinds.map.section import MapJob, preparation_of
from axonp2p.plain_text import bytes_text, plural
from axonp2p.sandbox.child import SandboxedWorker
from axonp2p.sandbox.messages import Control, MayTell
from axonp2p.wire.codec import decode
from axonp2p.wire.frame import HEADER_LIMIT, pack_frame, split_frame
from client_cli.check_peers import CheckAnswer, JobHere, PeersAsked, common_data, common_facts, in_order
from client_cli.meanwhile import Meanwhile
from client_cli.text.render import duration_text
from client_cli.worker_here import LOG_SHOWN, TRY_S, try_in_sandbox


@dataclass(frozen=True)
class CallTrial:
    """What came of the first call."""

    not_tried: str = ""
    """Why it was not tried; empty when it was."""
    seconds: float | None = None
    """How long it took; None when it still ran."""
    result_bytes: int = 0
    failure: str = ""
    """What it raised, or how its process ended."""
    log: str = ""


def check(job: JobHere) -> CheckAnswer:
    """As `check_peers.TryHere` has it."""
    section = job.spec.map
    if section.calls:
        raise JobFailed("its calls come from a program", fix="run that program: it makes a job of its own")
    sources = {file.path: file.source for file in job.bundle.files}
    items = len(ItemsFile(sources[section.items])) if isinstance(section.items, str) else section.items
    job.context.say("makes the first call here, in the sandbox ...")
    tried = try_in_sandbox(job.spec, job.bundle, job.meanwhile, lambda worker: _try(worker, job.spec, job.meanwhile))
    trial = CallTrial(not_tried=tried) if isinstance(tried, str) else tried
    if trial.failure:
        cause = trial.log[-LOG_SHOWN:].strip()
        file = section.fn.partition(":")[0]
        raise JobFailed(f"call 0 failed here: {trial.failure}", cause=cause, fix=f"correct {file} in {job.given}")
    asked = job.ask()
    return CheckAnswer(_text(job, items, trial, asked), _data(job, items, trial, asked), asked)


def trial_text(trial: CallTrial) -> str:
    """How the first call went here."""
    if trial.not_tried:
        return f"the function was not tried: {trial.not_tried}"
    if trial.seconds is None:
        return f"call 0 still ran here after {duration_text(TRY_S)}, and was ended"
    return f"call 0 took {duration_text(trial.seconds)} here, and its result has {bytes_text(trial.result_bytes)}"


async def _try(worker: SandboxedWorker, spec: MapJob, meanwhile: Meanwhile) -> CallTrial:
    await worker.channel.send(MayTell(rank=None, bytes=2**31))
    await worker.channel.send(Control(), pack_frame(preparation_of(spec.map)))
    await worker.channel.send(Control(), pack_frame(BeginChunk(chunk=0, items=[0])))
    meanwhile.begin(f"call 0, which is ended after {TRY_S:.0f} s,")
    began = time.monotonic()
    try:
        async with asyncio.timeout(TRY_S):
            outcome, failure = await _first(worker, spec)
    except TimeoutError:
        return CallTrial(log=worker.log().decode())
    await asyncio.sleep(0.1)  # the last of its log is still in the pipe
    seconds, log = time.monotonic() - began, worker.log().decode()
    return CallTrial(seconds=seconds, result_bytes=outcome, failure=failure, log=log)


async def _first(worker: SandboxedWorker, spec: MapJob) -> tuple[int, str]:
    """Bytes of its result, and what it raised."""
    data = bytearray()
    while True:
        message, payload = await worker.channel.receive()
        if not isinstance(message, Control):
            continue
        frame = split_frame(payload)
        said: FromWorkerMap = decode(frame.header, FromWorkerMap, HEADER_LIMIT)
        if isinstance(said, ResultPart | CallResults):
            data += frame.payload
        if isinstance(said, CallResults):
            try:
                [outcome] = open_outcomes(bytes(data), 1)
                value = open_outcome(outcome, spec.map.most_result)
            except PeerMisbehaved as error:
                return 0, f"its result cannot be read: {error.message}"
            return len(outcome.value), f"{value.message}\n{value.traceback}" if isinstance(value, TaskError) else ""
        if isinstance(said, ChunkOver):
            return 0, said.reason or "its process ended"


def _text(job: JobHere, items: int, trial: CallTrial, asked: PeersAsked) -> str:
    section, bundle = job.spec.map, job.bundle
    facts = {
        "function": section.fn,
        "calls": f"{items:,}",
        "bundle": f"{plural(len(bundle.files), 'file')}, {bytes_text(bundle.size)}",
        "tried": trial_text(trial),
        **common_facts(job.spec.need, asked),
    }
    return in_order(job.given, facts, asked, job.context.command, tried=not trial.not_tried)


def _data(job: JobHere, items: int, trial: CallTrial, asked: PeersAsked) -> dict[str, object]:
    return {
        **common_data(job.spec, len(job.bundle.files), job.bundle.size, asked, trial.not_tried),
        "function": job.spec.map.fn,
        "calls": items,
        "seconds": trial.seconds,
        "result_bytes": trial.result_bytes,
        "log": trial.log,
    }
