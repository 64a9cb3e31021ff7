"""A job's task, tried here in the sandbox in which a peer would run it: its first steps, as a peer takes them (a door).

What is tried is `kinds.train.local.trial`, in a process of its own, so that this one never loads torch.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from importlib.util import find_spec
from pathlib import Path

from axonp2p.errors import JobFailed, LimitReached, PeerMisbehaved, Unreachable
from axonp2p.jobs.bundle import Bundle
from axonp2p.kinds.train.local.trial_messages import FromTrial, TrialDoing, TrialFound, mistake_of
from axonp2p.kinds.train.section import TrainJob
from axonp2p.missing_modules import not_installed
from axonp2p.sandbox.child import SandboxedWorker, WorkerEnd, why_no_sandbox
from axonp2p.sandbox.messages import Control
from axonp2p.wire.codec import decode
from axonp2p.wire.frame import HEADER_LIMIT, split_frame
from client_cli.child_errors import last_lines
from client_cli.meanwhile import Meanwhile
from client_cli.train.check_text import TaskTrial
from client_cli.train.plain_worker import PlainWorker, plain
from client_cli.worker_here import fresh_copy, limits_of, sandboxed, why_not_here

PROGRAM = "axonp2p.kinds.train.local.trial_worker"
ENDING_S = 10.0
"""So long a process may take to end that has closed its channel."""


def try_task(spec: TrainJob, bundle: Bundle, meanwhile: Meanwhile, say: Callable[[str], None]) -> TaskTrial:
    """Try it. Raises `TaskMistake` with the user's own traceback, or `JobFailed` where the task ends its process."""
    if find_spec("torch") is None:
        lacking = not_installed(["torch"], "a trial")
        return TaskTrial(not_tried=f"{lacking.message}   {lacking.fix}")
    if reason := why_not_here(spec):
        return TaskTrial(not_tried=reason)
    meanwhile.begin("building the sandbox")
    no_sandbox = why_no_sandbox()
    if no_sandbox:
        say(f"the task is tried without the sandbox: {no_sandbox}")
    meanwhile.begin("copying the bundle into a fresh folder")
    with fresh_copy(bundle) as folder:
        found = asyncio.run(_try(_worker(folder, spec, in_sandbox=not no_sandbox), meanwhile))
    return TaskTrial(found, no_sandbox=no_sandbox)


def _worker(
    folder: Path, spec: TrainJob, *, in_sandbox: bool
) -> AbstractAsyncContextManager[SandboxedWorker | PlainWorker]:
    return sandboxed(folder, spec, PROGRAM) if in_sandbox else plain(folder, limits_of(spec), PROGRAM)


async def _try(
    starting: AbstractAsyncContextManager[SandboxedWorker | PlainWorker], meanwhile: Meanwhile
) -> TrialFound:
    meanwhile.begin("loading torch")
    async with starting as worker:
        try:
            while True:
                message, payload = await worker.channel.receive()
                if isinstance(message, Control):
                    said: FromTrial = decode(split_frame(payload).header, FromTrial, HEADER_LIMIT)
                    if isinstance(said, TrialDoing):
                        meanwhile.begin(said.what)
                    elif isinstance(said, TrialFound):
                        return said
                    else:
                        raise mistake_of(said)
        except PeerMisbehaved as error:
            raise JobFailed("the task wrote into its worker's channel", cause=error.message) from error
        except Unreachable as error:
            try:
                async with asyncio.timeout(ENDING_S):
                    raise why_ended(await worker.wait()) from error
            except TimeoutError:
                raise JobFailed("the task closed its worker's channel", fix="look for os.close()") from error


def why_ended(end: WorkerEnd) -> JobFailed:
    """The error for a trial that ended without an answer."""
    if end.limit:
        fix = {
            "memory": "ask for more under [need] (memory), or take a smaller batch or model",
            "disk": "write less below /tmp: it is in memory, and may hold a quarter of it",
        }.get(end.limit, "peers hold the task to the same limit: do with less")
        return LimitReached(f"the task {end.reason}", cause=last_lines(end.log_tail), fix=fix)
    fix = "look for exit() in the task, and for libraries that end the process"
    return JobFailed(f"the task's process {end.reason}, without an answer", cause=last_lines(end.log_tail), fix=fix)
