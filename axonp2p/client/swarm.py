"""The Python face: `Swarm`, in the same words as the `axon` program, which stands on it.

    with axonp2p.Swarm(trackers=["https://..."]) as swarm:
        job = swarm.submit("my-job/")
        for event in job.events():
            print(event)
        job.fetch("out/")

It is not asynchronous: the network's work is done by a loop in a thread of its own. This is the one file that makes and
joins the client's parts. Modules that only some questions need are loaded when they are asked: people wait for `axon
submit`.
"""

from __future__ import annotations

import asyncio
import concurrent.futures
import secrets
import shutil
from collections.abc import Callable, Coroutine, Iterable, Iterator, Sequence
from functools import partial
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

import msgspec

from axonp2p.client.discovery.table_home import TableHome
from axonp2p.client.discovery.trackers import nobody_known, which_trackers
from axonp2p.client.events.events import Event, JobSubmitted
from axonp2p.client.hosted.hosted_mark import HostedMark, read_mark, write_mark
from axonp2p.client.interrupted import interrupted
from axonp2p.client.job import Job
from axonp2p.client.job_draft import TextJob, drafted
from axonp2p.client.leasing.hiring import Means
from axonp2p.client.loop_thread import LoopThread
from axonp2p.client.no_result import is_over_for
from axonp2p.client.run.job_packages import was_brought
from axonp2p.client.run.job_run import JobRun
from axonp2p.client.storage.event_feed import EventFeed
from axonp2p.client.storage.job_commands import JobCommand, say
from axonp2p.client.storage.job_journal import JobJournal
from axonp2p.client.storage.job_record import JobRecord, new_record
from axonp2p.client.storage.job_store import JobFolder, JobStore
from axonp2p.client.storage.kept_bundle import kept_bundle, spec_of
from axonp2p.client.storage.trust_book import TRUST_FILE, TrustBook
from axonp2p.clock import SystemClock
from axonp2p.errors import AlreadyRunning, JobFileWrong, PackagesWrong, Unreachable
from axonp2p.hosting.messages import HostedWish
from axonp2p.identity.key_file import load_or_create_key
from axonp2p.identity.peer_id import PeerId
from axonp2p.jobs.kinds import load
from axonp2p.jobs.lifecycle import JobState, is_over
from axonp2p.jobs.overrides import Override, keywords
from axonp2p.jobs.spec import JobSpec, need_of, read_spec
from axonp2p.peers.capability import Need, read_need
from axonp2p.settings import home_folder, read_settings
from axonp2p.table.records import MOST_ROWS

if TYPE_CHECKING:
    from axonp2p.client.hosted.hosted_jobs import ClientHostedJobs
    from axonp2p.client.ledger.credit_history import CreditHistory, PendingCredit
    from axonp2p.client.ledger.held_evidence import HeldEvidence
    from axonp2p.client.packages.plan import PackagePlan
    from axonp2p.client.queries import Credits, SeenPeer, Survey

LEAVE_S = 60.0
"""How long jobs that run may take to be left when the swarm is closed."""
LET_GO_S = 20.0
"""How long it may take to give their slots back when even that is interrupted."""


class Swarm:
    """The swarm, as one client sees it. Use it in a `with`; at its end, jobs that still run are left, to be resumed.

    `trackers` are addresses as `axon-tracker run` prints them; without any, those in the settings are asked, or those
    of a local swarm in `home`. All methods raise the errors of `axonp2p.errors`.
    """

    def __init__(self, trackers: Sequence[str] = (), home: str | Path | None = None, *, hosted: bool = False) -> None:
        """`hosted`: the first tracker runs this on its own machine, for somebody else (`client.hosted_run`)."""
        self._hosted_here = hosted
        self.home = home_folder("client", Path(home) if home else None)
        self._given = tuple(trackers)
        self._named: list[str] = []
        """The trackers that are asked because this machine's owner named them."""
        self._clock = SystemClock()
        self._store = JobStore(self.home)
        self._loop = LoopThread()
        self._running: dict[str, tuple[JobRun, EventFeed]] = {}
        self._following: list[concurrent.futures.Future[None]] = []
        self._means: Means | None = None
        self._table_home: TableHome | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        left = [job for job, (_, feed) in self._running.items() if not feed.over]
        by_hand = isinstance(error, KeyboardInterrupt)
        try:
            self.close()
        except KeyboardInterrupt:
            by_hand = by_hand or error is None  # a mistake that ended the block is what is told
            self.close()  # harmless, unless the other one had not begun yet
        if by_hand and (instead := interrupted(left)):
            raise instead from None

    def close(self) -> None:
        """Leave the jobs that run, and end the loop. Harmless when it is called twice.

        Interrupted (a second Ctrl-C), it gives the slots of these jobs back at once, and waits for nothing else.
        """
        for following in self._following:
            following.cancel()
        at_work = [(run, feed) for run, feed in self._running.values() if not feed.over]
        try:
            self._end(at_work, JobRun.leave, LEAVE_S)
        except KeyboardInterrupt:
            self._end(at_work, JobRun.let_go, LET_GO_S)
            raise
        finally:
            home, self._means, self._table_home = self._table_home, None, None
            try:
                if home:
                    self._loop.call(home.close())
            finally:
                self._loop.stop()
                self._running.clear()

    def _end(self, runs: Sequence[tuple[JobRun, EventFeed]], how: Callable[[JobRun], None], within_s: float) -> None:
        until = self._clock.monotonic() + within_s
        for run, _ in runs:
            self._loop.soon(partial(how, run))
        for _, feed in runs:
            feed.wait_quietly(max(0.0, until - self._clock.monotonic()))

    # --- jobs ---

    def submit(
        self,
        job: object,
        peers: int | None = None,
        *,
        overrides: Sequence[Override] = (),
        wait: float = 0.0,
        **settings: Any,
    ) -> Job:
        """Start a job: that of a folder (text or path), or of a task's class or object, whose source is sent.

        `settings` are keys of job.toml, and win over what the folder's says: `rounds=5`, `name="sweep"`,
        `data=["digits.csv.gz"]`, `need={"memory": "2 GiB"}`, `train={"steps": 20}`. `peers` is short for
        `need={"peers": ...}`; `overrides` are those of a command line.

        Where too few peers are free it waits for them, for `wait` seconds at most, and holds none meanwhile.
        Returns once the files are read and copied. The news after that comes from `job.events()`.
        """
        kept, record, spec = self._write_down(job, [*overrides, *keywords({"peers": peers, **settings})])
        means = self._get_means()
        return self._start(means, kept, record, spec, wait_s=wait)

    def begin(self, job: TextJob, program: object, *, overrides: Sequence[Override] = (), **settings: Any) -> Job:
        """Start a job that a program has described, as `submit` does.

        `program` is given to the driver of the job's kind (`JobContext.program`), in this life of the job alone: so a
        program and a driver can have a queue between them.
        """
        kept, record, spec = self._write_down(job, [*overrides, *keywords(settings)])
        return self._start(self._get_means(), kept, record, spec, program=program)

    def map(
        self, function: Callable[..., Any], *items: Iterable[Any], peers: int = 4, **settings: Any
    ) -> Iterator[Any]:
        """The results of a function for each of the items, made by a job of kind `map` on so many peers.

        They come in the order of their items, each once it and those before it are there. Raises the `TaskError` of
        the first call that failed. `settings` are those of `axonp2p.Executor`.
        """
        executor_of = load("axonp2p.kinds.map.calls.executor:Executor")
        with executor_of(peers, swarm=self, **settings) as executor:
            yield from executor.map(function, *items)

    def hand_over(
        self, job: object, peers: int | None = None, *, overrides: Sequence[Override] = (), **settings: Any
    ) -> Job:
        """The same, but a tracker carries the job on, and this computer may be switched off once this returns.

        A second tracker keeps a copy, where there is one that may.
        `attach` follows it, here or on another computer with the same key. Raises `Refused` or `TrackerUnreachable`
        when no tracker takes it; what was written down is gone then.
        """
        from axonp2p.client.hosted.hosts import hand_over, hand_to_second
        from axonp2p.client.run.job_packages import with_plan

        kept, record, spec = self._write_down(job, [*overrides, *keywords({"peers": peers, **settings})])
        means = self._get_means()
        try:
            if spec.why_not_hosted:
                raise JobFileWrong(f"the job cannot be hosted: {spec.why_not_hosted}", fix="submit it without --detach")
            bundle = kept_bundle(kept, record, spec)
            if spec.packages.wanted:
                bundle = self._loop.call(with_plan(means, spec, kept, bundle))
            mark = self._loop.call(hand_over(means, record.id, bundle))
        except BaseException:
            shutil.rmtree(kept.path)
            raise
        write_mark(kept, mark)
        write_mark(kept, self._loop.call(hand_to_second(means, record.id, bundle, mark)))
        return Job(kept, EventFeed.of([]))

    def attach(self, job: str, *, silent: Callable[[Unreachable], None] = lambda error: None) -> Job:
        """A job that a tracker carries on, by its id or the beginning of it: its folder here becomes a copy.

        `job.events()` tells all from its beginning on; `job.fetch` waits for its end. `silent` is called, in another
        thread, when the host does not answer, long before the job is given up for that. Raises `NotFound`.
        """
        from axonp2p.client.hosted.hosted_jobs import ClientHostedJobs

        means, hosted = self._get_means(), self._hosted()
        folder = self._loop.call(hosted.find(job))
        feed = EventFeed()
        following = self._loop.start(ended_in(feed, hosted.follow(folder, feed.put, silent)))
        self._following.append(following)

        def tell(wish: HostedWish) -> Callable[[], None]:
            return lambda: self._loop.call(ClientHostedJobs(means, self._store).tell(folder, wish))

        return Job(folder, feed, pause=tell("pause"), leave=tell("leave"), cancel=tell("cancel"), stop=tell("stop"))

    def look_at_host(self, job: str, *, result: bool = False) -> HostedMark:
        """Copy what is new of such a job, once; with `result`, what it came to, when it is over."""
        hosted = self._hosted()
        folder = self._loop.call(hosted.find(job))
        return self._loop.call(hosted.look(folder, result=result))

    def tell_host(self, job: str, wish: HostedWish) -> None:
        """Have such a job paused, left, cancelled or resumed at its host."""
        hosted = self._hosted()
        self._loop.call(hosted.tell(self._loop.call(hosted.find(job)), wish))

    def resume_at_host(self, job: str) -> str:
        """Have such a job go on at its host, or where its copy is when the host is gone; gives why, if it is."""
        hosted = self._hosted()
        return self._loop.call(hosted.resume(self._loop.call(hosted.find(job))))

    def take_back(self, job: str) -> Job:
        """Go on here with a job that a tracker carried on, from where it is; only where its bundle is."""
        hosted = self._hosted()
        folder = self._loop.call(hosted.find(job))
        self._loop.call(hosted.take_back(folder))
        return self.resume(folder.path.name)

    def find_hosted(self) -> list[str]:
        """Copy what is new of all jobs that the known trackers carry on; which trackers could not be asked, and why."""
        return self._loop.call(self._hosted().find_all())

    def packages(self, folder: str | Path, spec: JobSpec | None = None) -> PackagePlan:
        """Packages of the job in `folder`, or of `spec` with its files there, for the peers of the table now.

        Raises `PackagesWrong` for what cannot be had as wheels, or not be sent, and `IndexUnreachable`.
        """
        from axonp2p.client.packages.wheel_store import WheelStore
        from axonp2p.client.run.job_packages import resolve_for_peers

        source, store = Path(folder).expanduser().absolute(), WheelStore(self.home / "wheels")
        return self._loop.call(resolve_for_peers(self._get_means(), spec or read_spec(source), source, store))

    def resume(self, job: str, *, wait: float = 0.0) -> Job:
        """Go on with a job that was paused, failed or interrupted, from its kept rounds, with other peers.

        `wait`: as in `submit`.
        """
        folder = self._store.find(job)
        record = folder.read()
        means = self._get_means(record.named_trackers)
        if folder.is_held():
            raise AlreadyRunning(f"another program is at work on the job {record.id}")
        mended = folder.mend()
        if record.state in (JobState.FINISHED, JobState.CANCELLED):
            raise is_over_for(record, "resumed")
        if not is_over(record.state):  # the program that worked on it was killed
            record = msgspec.structs.replace(record, state=JobState.PAUSED)
        return self._start(means, folder, record, spec_of(record), mended, wait_s=wait)

    def jobs(self) -> list[JobRecord]:
        """All jobs of this home, the oldest first."""
        return self._store.records()

    def job(self, job: str) -> Job:
        """A job by its id or the beginning of it: running here, or as it lies on the disk."""
        folder = self._store.find(job)
        if folder.path.name in self._running:
            run, feed = self._running[folder.path.name]
            return self._handle(folder, run, feed)
        return Job(folder, EventFeed.of(folder.read_events()), stop=lambda: self._stop_kept(folder))

    def status(self, job: str) -> JobRecord:
        """The record of a job."""
        return self._store.find(job).read()

    # --- the swarm ---

    def peers(self, need: Need | str | Path | None = None, *, measure: bool = False) -> list[SeenPeer]:
        """Peers that the shared table shows: those that meet a need (or that of the job in a folder), or any.

        With `measure`, their round-trip times too. Raises `TrackerUnreachable` when no source answers.
        """
        return self.survey(need, measure=measure).peers

    def survey(
        self, need: Need | str | Path | None = None, *, measure: bool = False, most_measured: int = MOST_ROWS
    ) -> Survey:
        """The same with what each source said: all known trackers, and the DHT. Raises as `peers`.

        With `measure`, at most `most_measured` peers are measured, those that seem nearest.
        """
        from axonp2p.client.queries import survey_peers

        if isinstance(need, str | Path):
            need = read_need(need_of(read_spec(Path(need))))
        wanted = need or Need()
        means = self._get_means()
        looking = survey_peers(
            means.table,
            wanted,
            means.position,
            self._clock,
            measured=most_measured if measure else 0,
            known=means.trust.all(),
        )
        return self._loop.call(looking)

    def credits(self, job: str = "", *, keys: Sequence[PeerId] = ()) -> Credits:
        """The sums in the ledger of a tracker: of this client and the peers of its jobs, of one job, or of these keys.

        Raises `LogForked` when that tracker's log is known to be false.
        """
        from axonp2p.client.queries import ask_credits

        means = self._get_means()
        job_id = self._store.find(job).path.name if job else ""
        asking = ask_credits(means.table.trackers, self.home, self._own_keys(), self._peer_names(), job_id, keys)
        return self._loop.call(asking)

    def history(self, key: PeerId = "", *, most: int = 0, prove: bool = False) -> CreditHistory:
        """The receipts of a key (when none is named: all of this client's) that a tracker's log has, each checked.

        The newest `most`; 0 for all. With `prove` the history comes with its credit proof. Raises as `credits`.
        """
        means = self._get_means()
        from axonp2p.client.ledger.credit_history import ask_history, read_key

        wanted = [read_key(key)] if key else [*self._own_keys()]
        return self._loop.call(ask_history(means.table.trackers, self.home, wanted, most=most, prove=prove))

    def evidence(self, key: PeerId) -> list[HeldEvidence]:
        """The convictions that trackers hold about a key, its own and those by it, each examined here.

        It is shown, and believed by nobody: the book of trust is not changed. Raises as `peers`.
        """
        from axonp2p.client.ledger.credit_history import read_key
        from axonp2p.client.ledger.held_evidence import ask_evidence

        return self._loop.call(ask_evidence(self._get_means().table.trackers, read_key(key)))

    def pending(self) -> PendingCredit:
        """Work that this client, or a host for it, accepted and that peers have not signed for yet."""
        from axonp2p.client.ledger.credit_history import pending_of

        return pending_of(self._store.records(), self._own_keys())

    def names(self) -> dict[PeerId, str]:
        """The peers of this client's jobs, by the names that they had there, and the keys that are its own."""
        return self._peer_names() | self._own_keys()

    # --- how it works ---

    def _own_keys(self) -> dict[PeerId, str]:
        from axonp2p.client.ledger.own_keys import own_keys

        # A host signs for each job with the job's own key, and what it owes is owed by this client.
        return own_keys(self._get_means().key, [record.id for record in self._store.records()])

    def _peer_names(self) -> dict[PeerId, str]:
        return {peer.peer: peer.name for record in self._store.records() for peer in record.peers}

    def _write_down(self, job: object, overrides: Sequence[Override]) -> tuple[JobFolder, JobRecord, JobSpec]:
        with drafted(job, overrides) as draft:  # a mistake in the job is told before one about trackers
            self._get_means()
            spec, files = draft.spec, draft.bundle.files
            name = self._fresh_id(spec.name)
            # Of a class no other folder has the files: whoever wants to submit it again names the copy.
            folder = draft.folder or str(self._store.place_of(name).bundle)
            record = new_record(name, spec, folder, self._clock.now(), draft.bundle.blob.name)
            kept = self._store.create(record)
            kept.keep_bundle([(file.path, file.source) for file in files], draft.bundle.blob.encoded)
        return kept, record, spec

    def _stop_kept(self, folder: JobFolder) -> None:
        """Of a job that does not run here."""
        from axonp2p.client.leasing.release_leases import release_leases
        from axonp2p.client.run.finish_kept import finish_kept

        if read_mark(folder):
            self.tell_host(folder.path.name, "stop")
        elif folder.is_held():
            say(folder.path, JobCommand.STOP)
        else:
            record = folder.read()
            if folder.leases.exists():  # the program that worked on it was killed
                means = self._get_means(record.named_trackers)
                dials = means.table.dials
                self._loop.call(release_leases(folder, record, spec_of(record), means.key, dials))
            key = load_or_create_key(self.home / "client.key")
            self._loop.call(finish_kept(folder, key, self._clock))

    def _hosted(self) -> ClientHostedJobs:
        from axonp2p.client.hosted.hosted_jobs import ClientHostedJobs

        return ClientHostedJobs(self._get_means(), self._store)

    def _fresh_id(self, name: str) -> str:
        while self._store.has(job := f"{name}-{secrets.token_hex(2)}"):
            pass
        return job

    def _get_means(self, else_these: Sequence[str] = ()) -> Means:
        """`else_these` are asked where no trackers are given, set or local."""
        if self._means is None:
            settings = read_settings(self.home)
            addresses = which_trackers(self._given, settings, self.home) or which_trackers(
                else_these, settings, self.home
            )
            key = load_or_create_key(self.home / "client.key")
            self._named = [str(address) for address in addresses]
            opened = TableHome(self.home, settings.client, addresses, self._clock, hosted=self._hosted_here)
            if not self._loop.call(opened.knows_anybody()):
                self._loop.call(opened.close())
                raise nobody_known(self.home)
            self._table_home = opened
            trust = TrustBook(self.home / TRUST_FILE)
            self._means = Means(key, opened.table, opened.position, self._clock, trust)
        return self._means

    def _start(
        self,
        means: Means,
        folder: JobFolder,
        record: JobRecord,
        spec: JobSpec,
        mended: Sequence[Event] = (),
        *,
        wait_s: float = 0.0,
        program: object = None,
    ) -> Job:
        if self._hosted_here and spec.packages.wanted and not was_brought(folder):
            raise PackagesWrong(
                "the job was handed over without its packages, and a host runs no pip for a stranger",
                fix="hand it over again with this version of Axon",
            )
        if self._hosted_here and spec.why_not_hosted:
            raise JobFileWrong(f"the job cannot be hosted: {spec.why_not_hosted}", fix="submit it without --detach")
        bundle = kept_bundle(folder, record, spec)
        feed = EventFeed()
        record = msgspec.structs.replace(record, named_trackers=self._named)
        journal = JobJournal(folder, record, self._clock, feed.put)
        for event in mended:
            journal.tell(event)
        # Nobody is there to submit a hosted job again.
        wait_s = max(wait_s, spec.need.wait if self._hosted_here else 0.0)
        run = JobRun(means, journal, spec, bundle, wait_s=wait_s, program=program)
        journal.tell(
            JobSubmitted(
                job=record.id,
                folder=str(folder.path),
                peers=spec.need.peers,
                rounds=record.units,
                bundle_bytes=bundle.size,
                resumed_from_round=record.kept,
            )
        )
        self._running[record.id] = (run, feed)

        self._loop.start(ended_in(feed, run.run()))
        return self._handle(folder, run, feed)

    def _handle(self, folder: JobFolder, run: JobRun, feed: EventFeed) -> Job:
        return Job(
            folder,
            feed,
            pause=lambda: None if feed.over else self._loop.soon(run.pause),
            leave=lambda: None if feed.over else self._loop.soon(run.leave),
            cancel=lambda: None if feed.over else self._loop.soon(run.cancel),
            stop=lambda: None if feed.over else self._loop.soon(run.stop),
        )


async def ended_in(feed: EventFeed, work: Coroutine[Any, Any, None]) -> None:
    """Do the work; `feed` ends as it does."""
    error: BaseException | None = None
    try:
        await work
    except BaseException as caught:  # handed to whoever reads the events
        error = caught
        if isinstance(caught, asyncio.CancelledError):
            raise
    finally:
        feed.end(error)
