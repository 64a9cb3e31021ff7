"""Jobs of calls on paper: folders with real events and results, as a client would have written them in each state."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from axonp2p.client.events import events
from axonp2p.client.storage.job_journal import JobJournal
from axonp2p.client.storage.job_record import ErrorRecord, PeerRecord, new_record
from axonp2p.client.storage.job_store import JobFolder, JobStore
from axonp2p.jobs.lifecycle import JobState
from axonp2p.kinds.map import events as map_events
from axonp2p.kinds.map.call_forms import pack_error
from axonp2p.kinds.map.kept_end import RESULTS
from axonp2p.kinds.map.results.results_store import Came, ItemOpinion, ItemResult, ResultsStore
from axonp2p.kinds.map.section import MapJob, MapSection
from axonp2p.values.packing import pack_value
from tests.fakes import AtOnce, ManualClock
from tests.laboratory.paper_job import BUSY, CREW, KILLED, NOON, RTTS

ITEMS = 400
SPEED = {"otter": 11, "heron": 8, "lynx": 9, "wren": 3, "ibex": 8}
"""Calls a second and core."""
KIND, MESSAGE = "ZeroDivisionError", "division by zero"
CORES = {"otter": 2}


class PaperCalls:
    """A job whose life a test writes: time passes as it is told to, and everything lands in the folder."""

    def __init__(self, home: Path, *, job: str = "pi-3c1d", items: int = ITEMS, began: float = NOON) -> None:
        self.clock = ManualClock(began)
        spec = MapJob(name="pi", kind="map", map=MapSection(fn="work.py:estimate", items=items))
        self.folder: JobFolder = JobStore(home).create(new_record(job, spec, "/home/ada/pi", began))
        self.journal = JobJournal(self.folder, self.folder.read(), self.clock, lambda event: None, AtOnce())
        self.items = items
        self.done = self.failed = self._chunk = 0
        self._next = 0
        """The item that nobody has begun."""
        self._again: list[int] = []
        """Items whose results count no more."""
        self.here: list[str] = []
        self.credits: dict[str, float] = {}

    def say(self, event: events.Event, *, after: float = 0.0) -> None:
        """So many seconds later this happened."""
        self.clock.time += after
        self.journal.tell(event)

    def begin(self, peers: list[str]) -> None:
        """Up to the first call."""
        folder, job = str(self.folder.path), self.journal.record.id
        self.say(events.JobSubmitted(job=job, folder=folder, peers=4, rounds=self.items, bundle_bytes=900,
                                     resumed_from_round=self.done))  # fmt: skip
        self.say(events.RttMeasured(seconds={name: RTTS[name] for name in peers}, too_far=[], unreachable={}), after=1)
        told = [
            PeerRecord(name=name, peer=name, rank=rank, reservation="1b0c", rtt_s=RTTS[name])
            for rank, name in enumerate(peers)
        ]
        self.journal.change(peers=told, items=self.items)
        for one in told:
            self.say(events.PeerHired(peer=one.name, rank=one.rank, cores=1, memory_mb=512))
        self.say(events.BundleSent(peers=peers, bytes=3600, seconds=0.4), after=0.4)
        for state in (JobState.FINDING, JobState.RESERVING, JobState.SENDING, JobState.RUNNING):
            self.journal.enter(state)
        self.here = list(peers)

    def work(self, seconds: int, *, without: tuple[str, ...] = ()) -> None:
        """Each second a chunk of each core."""
        for _ in range(seconds):
            self.clock.time += 1.0
            for name in self.here:
                for _core in range(CORES.get(name, 1) if name not in without else 0):
                    self.chunk(name, min(SPEED[name], self.items - self.done))

    def chunk(
        self,
        peer: str,
        calls: int,
        seconds: float = 0.97,
        *,
        errors: int = 0,
        number: int | None = None,
        agreed: int = 1,
    ) -> None:
        """These calls have their results; the first `errors` of them raised an exception."""
        if not calls:
            return
        items, self.done, self.failed = self._upcoming(calls), self.done + calls, self.failed + errors
        self._again, first = self._again[calls:], items[0]
        self._next = max(self._next, items[-1] + 1)
        self._chunk += 1
        kept = [_result(item, peer, agreed, failed=place < errors) for place, item in enumerate(items)]
        with self._store() as store:
            store.keep(kept, [])
        for item in items[:errors]:
            self.say(map_events.CallFailed(item=item, peer=peer, kind=KIND, message=MESSAGE))
        self.credits[peer] = self.credits.get(peer, 0.0) + 0.021 * calls
        self.journal.change(
            results=self.done, failed=self.failed, credits=dict(self.credits), wire_bytes=self.done * 900
        )
        self.say(map_events.ChunkDone(
            chunk=self._chunk if number is None else number, peer=peer, calls=calls, first=first, seconds=seconds,
            done=self.done, items=self.items, failed=self.failed, errors=errors,
        ))  # fmt: skip

    def waits(self, peer: str, calls: int) -> None:
        """The upcoming calls were made there, and wait until another peer has made them."""
        items = self._upcoming(calls)
        with self._store() as store:
            store.keep([], [], [ItemOpinion(i, peer, peer, "place", 1, 0, 2, "value", b"", b"", 1, 1) for i in items])
            awaited = len({one.item for one in store.opinions()})
        told = map_events.OpinionAwaited(peer=peer, calls=calls, first=items[0], needed=2, awaited=awaited, seconds=0.5)
        self.say(told)

    def outvote(self, liar: str, others: list[str], calls: int) -> None:
        """Several peers found the same of the upcoming calls, and that one something else: it gets no more."""
        self.waits(liar, calls)
        self.waits(others[0], calls)
        first = self._upcoming(1)[0]
        self.say(map_events.PeerOutvoted(peer=liar, others=others, calls=calls, first=first))
        self.chunk(others[1], calls, agreed=2)
        with self._store() as store:
            self._again = [item for item, _ in store.distrust(liar, liar, again=True)]
        self.done -= len(self._again)
        reason = "its results differ from those of 2 others"
        self.say(map_events.PeerSetAside(peer=liar, items=[first], reason=reason))
        self.say(map_events.ResultsDoubted(peer=liar, again=len(self._again), items=self._again[:16]))
        self.lose(liar, reason)

    def _upcoming(self, calls: int) -> list[int]:
        return [*self._again, *range(self._next, self._next + calls)][:calls]

    @contextmanager
    def _store(self) -> Iterator[ResultsStore]:
        store = ResultsStore(self.folder.path / RESULTS)
        yield store
        store.close()

    def copy(self, slow: str, peer: str, calls: int) -> None:
        """They take too long at a peer that stands still, and are made at a second one."""
        self.say(
            map_events.ChunkCopied(chunk=9000, peer=peer, slow_peer=slow, calls=calls, first=self._next, seconds=3)
        )
        self.clock.time += 1.2
        self.chunk(peer, calls, 1.1, number=9000)

    def pause(self, name: str) -> None:
        """Its owner needs the machine."""
        rank = next(peer.rank for peer in self.journal.record.peers if peer.name == name)
        self.journal.paused(rank, name, BUSY)

    def lose(self, name: str, reason: str = KILLED) -> None:
        """A peer is gone."""
        self.here.remove(name)
        rank = next(peer.rank for peer in self.journal.record.peers if peer.name == name)
        self.journal.lost(rank, name, reason, len(self.here))

    def set_aside(self, name: str) -> None:
        """It fails in what others can do."""
        reason = "it failed in calls that others could do: items 3, 17"
        self.say(map_events.PeerSetAside(peer=name, items=[3, 17], reason=reason))
        self.lose(name, reason)

    def leave(self) -> None:
        """Left, to be resumed."""
        self.journal.enter(JobState.PAUSED)
        self.say(events.JobPaused(job=self.journal.record.id, folder=str(self.folder.path), round=self.done))

    def fail(self) -> None:
        """It ends badly."""
        code, message, fix = "AX-100", "no peers are left", f"axon resume {self.journal.record.id}"
        self.journal.enter(JobState.FAILED, error=ErrorRecord(code=code, message=message, cause=KILLED, fix=fix))
        self.say(events.JobEndedBadly(job=self.journal.record.id, code=code, message=message, cause=KILLED, fix=fix))

    def finish(self) -> None:
        """All calls have their results."""
        record, folder = self.journal.record, str(self.folder.path)
        self.journal.enter(JobState.FINISHED)
        seconds = self.clock.time - record.created
        self.say(map_events.CallsDone(
            job=record.id, folder=folder, items=self.items, done=self.done, failed=self.failed, seconds=seconds,
        ))  # fmt: skip
        self.say(events.JobFinished(
            job=record.id, folder=folder, rounds=self.done, seconds=seconds, wire_bytes=record.wire_bytes,
            credits=record.credits, receipts=8, peers=list(self.here), lost=self.journal.names_lost,
        ))  # fmt: skip


def _result(item: int, peer: str, agreed: int, *, failed: bool) -> ItemResult:
    came: Came = "error" if failed else "value"
    value = pack_error(KIND, MESSAGE) if failed else pack_value({"inside": 785_000 + item})
    return ItemResult(item, came, value, peer, agreed)


def starting(home: Path) -> PaperCalls:
    job = PaperCalls(home)
    job.begin(CREW)
    job.clock.time += 3
    return job


def running(home: Path) -> PaperCalls:
    job = PaperCalls(home)
    job.begin(CREW)
    job.work(3)
    job.chunk("heron", 8, errors=2)
    job.set_aside("heron")
    job.pause("wren")
    job.work(3, without=("wren",))
    job.copy("wren", "lynx", 3)
    job.work(1, without=("wren",))
    job.clock.time += 0.5
    return job


def resumed(home: Path) -> PaperCalls:
    job = PaperCalls(home)
    job.begin(CREW)
    job.work(4)
    job.leave()
    job.clock.time += 5200
    job.begin(["otter", "lynx"])
    job.work(3)
    job.clock.time += 0.5
    return job


def failed(home: Path) -> PaperCalls:
    job = PaperCalls(home)
    job.begin(["otter", "heron"])
    job.work(4)
    job.lose("otter")
    job.lose("heron")
    job.fail()
    return job


def finished(home: Path) -> PaperCalls:
    job = PaperCalls(home)
    job.begin(CREW)
    job.work(5)
    job.chunk("heron", 8, errors=3)
    job.lose("wren")
    job.copy("wren", "lynx", 3)
    job.work(9)
    job.finish()
    return job


def compared(home: Path) -> PaperCalls:
    job = PaperCalls(home)
    job.begin(CREW)
    job.work(3)
    job.waits("lynx", 9)
    job.clock.time += 1
    job.chunk("wren", 9, agreed=2)
    job.work(1)
    job.outvote("heron", ["otter", "lynx"], 6)
    job.work(2)
    job.waits("wren", 3)
    job.clock.time += 0.5
    return job


CALL_STATES: dict[str, Callable[[Path], PaperCalls]] = {
    "starting": starting, "running": running, "resumed": resumed, "failed": failed, "finished": finished,
    "compared": compared,
}  # fmt: skip
"""What the page can show of calls. The clock of each stands at the moment in which it is looked at."""
