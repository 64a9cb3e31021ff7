"""The Python face: `Swarm`, in the same words as the `axon` program, which stands on it.

    with axonp2p.Swarm(trackers=["https://..."]) as swarm:
        job = swarm.submit("my-job/")
        for event in job.events():
            print(event)
        job.fetch("out/")

It is not asynchronous: the network's work is done by a loop in a thread of its own. This is the one file that makes and
joins the client's parts.
"""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType
from typing import Self

import msgspec

from axonp2p.client.account import JobAccount
from axonp2p.client.event_feed import EventFeed
from axonp2p.client.events import JobSubmitted
from axonp2p.client.hiring import Means
from axonp2p.client.job import Job
from axonp2p.client.job_run import JobRun
from axonp2p.client.job_store import JobFolder, JobRecord, JobStore
from axonp2p.client.looking import Credits, SeenPeer, Survey, ask_credits, survey_peers
from axonp2p.client.loop_thread import LoopThread
from axonp2p.client.table_home import TableHome
from axonp2p.client.trackers import nobody_known, which_trackers
from axonp2p.client.trust_book import TRUST_FILE, TrustBook
from axonp2p.clock import SystemClock
from axonp2p.errors import AlreadyRunning, JobFailed, JobFileWrong
from axonp2p.identity.key_file import load_or_create_key
from axonp2p.jobs.bundle import Bundle, collect
from axonp2p.jobs.lifecycle import JobState, is_over
from axonp2p.jobs.spec import JobSpec, need_of, read_spec, with_peers
from axonp2p.peers.capability import Need, read_need
from axonp2p.settings import home_folder, read_settings

LEAVE_S = 60.0
"""How long jobs that run may take to be left when the swarm is closed."""


class Swarm:
    """The swarm, as one client sees it. Use it in a `with`; at its end, jobs that still run are left, to be resumed.

    `trackers` are addresses as `axon-tracker run` prints them; without any, those in the settings are asked, or those
    of a local swarm in `home`. All methods raise the errors of `axonp2p.errors`.
    """

    def __init__(self, trackers: Sequence[str] = (), home: str | Path | None = None) -> None:
        self.home = home_folder("client", Path(home) if home else None)
        self._given = tuple(trackers)
        self._clock = SystemClock()
        self._store = JobStore(self.home)
        self._loop = LoopThread()
        self._running: dict[str, tuple[JobRun, EventFeed]] = {}
        self._means: Means | None = None
        self._table_home: TableHome | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Leave the jobs that run, and end the loop. Harmless when it is called twice."""
        waiting = [(run, feed) for run, feed in self._running.values() if not feed.over]
        for run, _ in waiting:
            self._loop.soon(run.leave)
        try:
            for _, feed in waiting:
                feed.wait_quietly(LEAVE_S)
            if self._table_home:
                self._loop.call(self._table_home.close())
        finally:
            self._means = self._table_home = None
            self._loop.stop()
            self._running.clear()

    # --- jobs ---

    def submit(self, folder: str | Path, peers: int | None = None) -> Job:
        """Start the job that `folder` describes; `peers` overrides how many it wants.

        Returns once the folder is read and copied. What happens then comes from `job.events()`.
        """
        means, source = self._get_means(), Path(folder).expanduser().absolute()
        spec = read_spec(source)
        if peers is not None:
            spec = with_peers(spec, peers)
        bundle = collect(source, spec)
        now = self._clock.now()
        record = JobRecord(
            id=self._fresh_id(spec.name),
            name=spec.name,
            folder=str(source),
            spec=msgspec.to_builtins(spec),
            state=JobState.WAITING,
            created=now,
            updated=now,
            peers_wanted=spec.need.peers,
            rounds=spec.train.rounds,
        )
        kept = self._store.create(record)
        kept.keep_bundle([(file.path, file.source) for file in bundle.files])
        return self._start(means, kept, record, spec)

    def resume(self, job: str) -> Job:
        """Go on with a job that was left, failed or interrupted, from its kept rounds, with other peers."""
        means, folder = self._get_means(), self._store.find(job)
        record = folder.read()
        if folder.is_held():
            raise AlreadyRunning(f"another program is at work on the job {record.id}")
        if record.state in (JobState.FINISHED, JobState.CANCELLED):
            raise JobFailed(f"{record.id} cannot go on: it is {record.state}", fix="submit its folder again")
        if not is_over(record.state):  # the program that worked on it was killed
            record = msgspec.structs.replace(record, state=JobState.LEFT)
        return self._start(means, folder, record, msgspec.convert(record.spec, JobSpec))

    def jobs(self) -> list[JobRecord]:
        """All jobs of this home, the oldest first."""
        return self._store.records()

    def job(self, job: str) -> Job:
        """A job by its id or the beginning of it: running here, or as it lies on the disk."""
        folder = self._store.find(job)
        if folder.path.name in self._running:
            run, feed = self._running[folder.path.name]
            return self._handle(folder, run, feed)
        return Job(folder, EventFeed.of(folder.read_events()))

    def status(self, job: str) -> JobRecord:
        """What is written down of a job."""
        return self._store.find(job).read()

    # --- the swarm ---

    def peers(self, need: Need | str | Path | None = None, *, measure: bool = False) -> list[SeenPeer]:
        """Peers that the shared table shows: those that meet a need (or that of the job in a folder), or any.

        With `measure`, their round-trip times too. Raises `TrackerUnreachable` when no source answers.
        """
        return self.survey(need, measure=measure).peers

    def survey(self, need: Need | str | Path | None = None, *, measure: bool = False) -> Survey:
        """The same with what each source said: all known trackers, and the DHT. Raises as `peers`."""
        if isinstance(need, str | Path):
            need = read_need(need_of(read_spec(Path(need))))
        wanted = need or Need()
        means = self._get_means()
        looking = survey_peers(
            means.table, wanted, means.position, self._clock, measure_rtt=measure, known=means.trust.all()
        )
        return self._loop.call(looking)

    def credits(self, job: str = "") -> Credits:
        """What the ledger of a tracker says: of this client and the peers of its jobs, or of one job alone."""
        names = {peer.peer: peer.name for record in self._store.records() for peer in record.peers}
        means = self._get_means()
        job_id = self._store.find(job).path.name if job else ""
        return self._loop.call(ask_credits(means.table.trackers, means.key.peer_id, names, job_id))

    # --- how it works ---

    def _fresh_id(self, name: str) -> str:
        while self._store.has(job := f"{name}-{secrets.token_hex(2)}"):
            pass
        return job

    def _get_means(self) -> Means:
        if self._means is None:
            settings = read_settings(self.home)
            addresses = which_trackers(self._given, settings, self.home)
            key = load_or_create_key(self.home / "client.key")
            opened = TableHome(self.home, settings.client, addresses, self._clock)
            if not self._loop.call(opened.knows_anybody()):
                self._loop.call(opened.close())
                raise nobody_known(self.home)
            self._table_home = opened
            trust = TrustBook(self.home / TRUST_FILE)
            self._means = Means(key, opened.table, opened.position, self._clock, trust)
        return self._means

    def _start(self, means: Means, folder: JobFolder, record: JobRecord, spec: JobSpec) -> Job:
        bundle = _kept_bundle(folder, spec)
        feed = EventFeed()
        account = JobAccount(folder, record, self._clock, feed.put)
        run = JobRun(means, account, spec, bundle)
        account.tell(
            JobSubmitted(
                job=record.id,
                folder=str(folder.path),
                peers=spec.need.peers,
                rounds=spec.train.rounds,
                bundle_bytes=bundle.size,
                resumed_from_round=record.kept_round,
            )
        )
        self._running[record.id] = (run, feed)

        async def supervised() -> None:
            error: BaseException | None = None
            try:
                await run.run()
            except BaseException as caught:  # handed to whoever reads the events
                error = caught
                if isinstance(caught, asyncio.CancelledError):
                    raise
            finally:
                feed.end(error)

        self._loop.start(supervised())
        return self._handle(folder, run, feed)

    def _handle(self, folder: JobFolder, run: JobRun, feed: EventFeed) -> Job:
        return Job(
            folder,
            feed,
            pause=lambda: None if feed.over else self._loop.soon(run.pause),
            leave=lambda: None if feed.over else self._loop.soon(run.leave),
            cancel=lambda: None if feed.over else self._loop.soon(run.cancel),
        )


def _kept_bundle(folder: JobFolder, spec: JobSpec) -> Bundle:
    try:
        return collect(folder.bundle, spec)
    except JobFileWrong as error:
        raise JobFileWrong(f"the copy that was kept of the job cannot be used: {error.message}") from error
