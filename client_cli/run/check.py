"""`axon check` of a job that runs copies of a command: its files, its peers, and its first copy tried here."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass

from axonp2p.errors import JobFailed
from axonp2p.kinds.run.copy_ends import code_text
from axonp2p.kinds.run.messages import CopyExited, CopyStarted, FromWorkerRun
from axonp2p.kinds.run.section import RunJob, order_for
from axonp2p.plain_text import bytes_text, plural
from axonp2p.sandbox.child import SandboxedWorker
from axonp2p.sandbox.messages import Control
from axonp2p.wire.codec import decode
from axonp2p.wire.frame import HEADER_LIMIT, pack_frame, split_frame
from client_cli.check_peers import CheckAnswer, JobHere, PeersAsked, common_data, common_facts, in_order
from client_cli.meanwhile import Meanwhile
from client_cli.text.render import duration_text
from client_cli.worker_here import LOG_SHOWN, TRY_S, try_in_sandbox


def check(job: JobHere) -> CheckAnswer:
    """As `check_peers.TryHere` has it."""
    job.context.say("runs the first copy here, in the sandbox ...")
    tried = try_in_sandbox(job.spec, job.bundle, job.meanwhile, lambda worker: _try(worker, job.spec, job.meanwhile))
    trial = Trial(not_tried=tried) if isinstance(tried, str) else tried
    if trial.code or trial.reason:
        why = trial.reason or code_text(trial.code or 0)
        raise JobFailed(
            f"copy 0 of the command failed here: {why}",
            cause=trial.log[-LOG_SHOWN:].strip(),
            fix=f"correct {' and '.join(file.path for file in job.bundle.files[1:2]) or 'the command'} in {job.given}",
        )
    asked = job.ask()
    return CheckAnswer(_text(job, trial, asked), _data(job, trial, asked), asked)


def trial_text(trial: Trial) -> str:
    """How the first copy went here."""
    if trial.not_tried:
        return f"the command was not tried: {trial.not_tried}"
    if trial.code is None:
        return f"copy 0 still ran here after {duration_text(trial.seconds)}, and was ended"
    printed = f", and printed {plural(len(trial.log.splitlines()), 'line')}"
    return f"copy 0 ended here with {code_text(trial.code)} after {duration_text(trial.seconds)}{printed}"


def _text(job: JobHere, trial: Trial, asked: PeersAsked) -> str:
    run, bundle = job.spec.run, job.bundle
    facts = {
        "command": run.command,
        "copies": f"{run.copies:,}{', all at once' if run.together else ''}",
        "bundle": f"{plural(len(bundle.files), 'file')}, {bytes_text(bundle.size)}",
        "tried": trial_text(trial),
        **common_facts(job.spec.need, asked),
    }
    return in_order(job.given, facts, asked, job.context.command, tried=not trial.not_tried)


def _data(job: JobHere, trial: Trial, asked: PeersAsked) -> dict[str, object]:
    return {
        **common_data(job.spec, len(job.bundle.files), job.bundle.size, asked, trial.not_tried),
        "command": job.spec.run.command,
        "copies": job.spec.run.copies,
        "code": trial.code,
        "seconds": trial.seconds,
        "log": trial.log,
    }


@dataclass(frozen=True)
class Trial:
    """The outcome of trying the first copy here."""

    not_tried: str = ""
    """Why it was not tried; empty when it was."""
    code: int | None = None
    """How it ended; None when it still ran."""
    seconds: float = 0.0
    log: str = ""
    """The output of the copy."""
    reason: str = ""
    """Why it ended, where that was not by itself."""


async def _try(worker: SandboxedWorker, spec: RunJob, meanwhile: Meanwhile) -> Trial:
    await worker.channel.send(Control(), pack_frame(order_for("check", spec.run, 0, 0)))
    meanwhile.begin(f"copy 0, which is ended after {TRY_S:.0f} s,")
    try:
        async with asyncio.timeout(TRY_S):
            exited = await _exit(worker)
    except TimeoutError:
        return Trial(seconds=TRY_S, log=worker.log().decode())
    await asyncio.sleep(0.1)  # the last of its log is still in the pipe
    return Trial(code=exited.code, seconds=exited.seconds, log=worker.log().decode(), reason=exited.reason)


async def _exit(worker: SandboxedWorker) -> CopyExited:
    while True:
        message, payload = await worker.channel.receive()
        if isinstance(message, Control):
            said: FromWorkerRun = decode(split_frame(payload).header, FromWorkerRun, HEADER_LIMIT)
            if isinstance(said, CopyExited):
                return said
            assert isinstance(said, CopyStarted)
