"""The demo: a swarm on this computer trains on real data, and what it claims is checked against something else.

Every process it starts dies with this one, and its state lies in a folder that is removed at the end, however it ends.
"""

from __future__ import annotations

import shutil
import signal
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import psutil

from axonp2p.client.events.events import Event, JobFinished
from axonp2p.client.storage.job_store import JobFolder
from axonp2p.errors import AlreadyRunning, JobFailed
from axonp2p.kinds.train.events import PeerReady, RoundFinished
from axonp2p.kinds.train.section import train_job
from axonp2p.plain_text import mebibytes_text, plural
from client_cli.context import Context
from client_cli.demo.demo_report import Accuracies, DemoResult, LedgerCheck
from client_cli.demo.local_swarm import SwarmPlan, start_swarm, stop_process, stop_swarm
from client_cli.interrupts import no_interruption
from client_cli.report.files import REPORT, write_report
from client_cli.swarm_file import SwarmProcess, SwarmRecord
from client_cli.text.render import duration_text
from client_cli.train.alone import alone
from client_cli.watching.progress import EventDisplay

if TYPE_CHECKING:
    from axonp2p.client.job import Job
    from axonp2p.client.swarm import Swarm

DEMO_KIND = "train"
"""Of the job that the demo shows."""


@dataclass(frozen=True)
class DemoPlan:
    """The options of one demo."""

    folder: Path
    """The job's."""
    peers: int
    kill_one: bool
    keep: bool
    out: Path


@contextmanager
def state_folder(given: Path | None, *, keep: bool) -> Iterator[Path]:
    """Where all state is kept: `given`, or a folder of its own, removed at the end unless it is to stay."""
    if given is not None:
        yield given
        return
    folder, done = None, False
    try:
        with no_interruption():
            folder = Path(tempfile.mkdtemp(prefix="axon-demo-"))
        yield folder
        done = True
    finally:
        if folder is not None and not (keep and done):
            with no_interruption():
                shutil.rmtree(folder)


def run_demo(plan: DemoPlan, context: Context, progress: EventDisplay) -> DemoResult:
    """Start, train, fetch, check, stop. Raises whatever goes wrong; then nothing is left running."""
    began = time.monotonic()
    people = f"1 tracker, {plural(plan.peers, 'peer')}, 1 client"
    computer = f"{plural(psutil.cpu_count() or 1, 'core')}, {mebibytes_text(psutil.virtual_memory().total // 2**20)}"
    progress.say(f"Starting a swarm on this computer: {people} ({computer}). Nothing leaves 127.0.0.1.")
    with _local_swarm(plan, context.home, progress.say) as record:
        with context.swarm(record.trackers) as swarm:
            job = swarm.submit(plan.folder, peers=plan.peers)
            watched = _Watched(plan, record, progress)
            watched.follow(job)
            job.fetch(plan.out)
            # The job's own folder is removed with the swarm: what the report names must be what stays.
            write_report(JobFolder(job.folder), context.command, plan.out / REPORT, copied_to=plan.out)
            ledger = _check_ledger(swarm, job)
        finished = watched.finished
        if finished is None:
            raise JobFailed(f"{job.id} ended without weights: it is {job.record.state}")
        progress.say("evaluating the fetched weights; training one process alone on as many samples")
        judgement = _judge(plan, finished.samples)
    return DemoResult(
        job=finished,
        peers=plan.peers,
        parameters=watched.parameters,
        steps=train_job(plan.folder).train.steps,
        judgement=judgement,
        ledger=ledger,
        killed=watched.killed,
        out=str(plan.out),
        seconds=time.monotonic() - began,
    )


@contextmanager
def _local_swarm(plan: DemoPlan, home: Path, say: Callable[[str], None]) -> Iterator[SwarmRecord]:
    began = time.monotonic()

    def told(what: str, record: SwarmRecord) -> None:
        seconds = duration_text(time.monotonic() - began)
        if what == "trackers":
            address = record.trackers[0].partition("#")[0]
            say(f"  tracker   ready after {seconds}   {address}")
        else:
            names = " ".join(process.name for process in record.peers)
            say(f"  peers     ready after {seconds}   {names}   (own process, key, folder, sandbox)")

    done, ours = False, True
    try:
        record = start_swarm(home, SwarmPlan(peers=plan.peers, bound_to_us=not plan.keep), told)
        yield record
        done = True
    except AlreadyRunning:
        ours = False  # what runs in this home is somebody else's
        raise
    finally:
        if ours and not (plan.keep and done):
            with no_interruption():
                stop_swarm(home)


class _Watched:
    """The job under the demo's eyes, and under its hand: `kill_one` stops a peer midway."""

    def __init__(self, plan: DemoPlan, record: SwarmRecord, progress: EventDisplay) -> None:
        self._plan = plan
        self._peers = record.peers
        self._progress = progress
        self.parameters = 0
        self.killed = ""
        self.finished: JobFinished | None = None

    def follow(self, job: Job) -> None:
        """Until the job is over. Raises what it failed with."""
        try:
            for event in job.events():
                self._progress.show(event)
                self._heard(event)
        except BaseException:
            job.cancel()  # else the swarm would take its time to keep what is done
            raise

    def _heard(self, event: Event) -> None:
        match event:
            case PeerReady():
                self.parameters = event.parameters
            case RoundFinished() if self._plan.kill_one and not self.killed and event.round >= event.rounds // 2:
                self._kill(self._peers[-1])
            case JobFinished():
                self.finished = event

    def _kill(self, victim: SwarmProcess) -> None:
        if stop_process(victim, signal.SIGKILL):
            self.killed = victim.name
            self._progress.say(f"{victim.name} is stopped on purpose (kill -9 {victim.pid})")


def _check_ledger(swarm: Swarm, job: Job) -> LedgerCheck:
    record, told = job.record, swarm.credits(job.id)
    names = {peer.peer: peer.name for peer in record.peers}
    return LedgerCheck(
        tracker_credits={names.get(credit.key, credit.key): credit.earned for credit in told.balances},
        client_credits=record.credits,
        receipts=told.receipts,
        flops=sum(credit.earned_flops for credit in told.balances),
    )


def _judge(plan: DemoPlan, samples: int) -> Accuracies:
    with (
        alone(plan.folder, ["--weights", str(plan.out / "model.safetensors")]) as judge,
        alone(plan.folder, ["--samples", str(samples)]) as trainer,
    ):
        judged, trained = judge.answer(), trainer.answer()
    return Accuracies(
        accuracy=judged["metrics"]["accuracy"],
        baseline=trained["metrics"]["accuracy"],
        test_samples=judged["test_samples"],
    )
