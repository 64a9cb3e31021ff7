"""Jobs on paper: folders with real events, as a client would have written them in each state; no machine is touched."""

from __future__ import annotations

import math
import random
from collections.abc import Callable
from pathlib import Path

from axonp2p.client.events import events
from axonp2p.client.storage.job_journal import JobJournal
from axonp2p.client.storage.job_record import ErrorRecord, PeerRecord
from axonp2p.client.storage.job_store import JobFolder, JobStore
from axonp2p.jobs.lifecycle import JobState
from axonp2p.kinds.train import events as train_events
from axonp2p.kinds.train.metrics_file import MetricsFile, held_out
from axonp2p.kinds.train.record import TrainRecord
from tests.fakes import AtOnce, ManualClock

NOON = 1_760_011_200.0
"""Of 9 October 2025, UTC."""
ROUNDS, STEPS, VALUES = 20, 40, 96_000
DENSE = 2 * 3 * 4 * VALUES * STEPS
RTTS = {"otter": 0.0043, "heron": 0.0187, "lynx": 0.0231, "wren": 0.0874, "ibex": 0.031}
AMONG = {
    "otter": {"heron": 0.016, "lynx": 0.019, "wren": 0.081},
    "heron": {"lynx": 0.0062, "wren": 0.07},
    "lynx": {"wren": 0.068},
}
STEP_S = {"otter": 0.021, "heron": 0.024, "lynx": 0.023, "wren": 0.041, "ibex": 0.026}
BUSY = "another program uses 87 % CPU (limit 25 %): firefox, cc1plus"
WHY = "an exchange takes about 0.2 s over a slowest upload of 2 Mbit/s, 8 local steps about 0.3 s"
KILLED = "its session ended: connection reset"


class PaperJob:
    """A job whose life a test writes: time passes as it is told to, and everything lands in the folder."""

    def __init__(self, home: Path, *, job: str = "digits-7f3a", began: float = NOON, rounds: int = ROUNDS) -> None:
        self.clock = ManualClock(began)
        self._chance = random.Random(7)
        record = TrainRecord(
            id=job, name="digits", folder="/home/ada/digits", spec={"name": "digits"}, state=JobState.SUBMITTED,
            created=began, updated=began, peers_wanted=4, rounds=rounds, tracker="lab.example:7070",
        )  # fmt: skip
        self.folder: JobFolder = JobStore(home).create(record)
        self.journal = JobJournal(self.folder, record, self.clock, lambda event: None, AtOnce())
        self.here: list[str] = []
        self.credits: dict[str, float] = {}
        self.wire_bytes = 0
        self._begun = began

    def say(self, event: events.Event, *, after: float = 0.0) -> None:
        """So many seconds later this happened."""
        self.clock.time += after
        self.journal.tell(event)

    def begin(self, peers: list[str], *, resumed_from: int = 0, bundle: int = 59_500, ready: int | None = None) -> None:
        """Up to the first step; with `ready` only so many workers have started."""
        rounds = self.journal.record.rounds
        folder, job = str(self.folder.path), self.journal.record.id
        self.say(events.JobSubmitted(job=job, folder=folder, peers=4, rounds=rounds, bundle_bytes=bundle,
                                     resumed_from_round=resumed_from))  # fmt: skip
        self.journal.enter(JobState.FINDING, round=resumed_from, error=None)
        self.say(events.PeersFound(sources=["tracker lab.example:7070"], alive=11, fitting=6, looked_at=6), after=0.2)
        found = {name: RTTS.get(name, 0.05) for name in peers}
        self.say(events.RttMeasured(seconds=found, too_far=[], unreachable={}), after=0.3)
        self.journal.enter(JobState.RESERVING)
        self.say(events.Reserved(reservation="1b0c", issuer="tracker lab.example:7070", peers=peers), after=0.1)
        self._hire(peers)
        self.say(events.RttsGuessed(seconds=AMONG))
        self.journal.enter(JobState.SENDING)
        self.say(events.BundleSent(peers=peers, bytes=bundle * len(peers), seconds=0.9), after=0.9)
        self.journal.enter(JobState.RUNNING)
        for rank, name in enumerate(peers[:ready]):
            self.say(train_events.PeerReady(peer=name, rank=rank, parameters=VALUES), after=0.4)
        if ready == 0:
            return
        self.say(train_events.ExchangeChosen(
            round=resumed_from, exchange_every=8, bits=2, overlap=False, outer_learning_rate=1.0, outer_momentum=0.0,
            density={name: 1.0 if name != "wren" else 0.0625 for name in peers}, round_bytes=DENSE // 93,
            dense_bytes=DENSE, why=WHY,
        ))  # fmt: skip
        self._begun = self.clock.time

    def _hire(self, peers: list[str]) -> None:
        first = len(self.journal.record.peers)
        told = [
            PeerRecord(name=name, peer=name, rank=first + rank, reservation="1b0c", rtt_s=RTTS.get(name, 0.05))
            for rank, name in enumerate(peers)
        ]
        self.journal.change(peers=[*self.journal.record.peers, *told])
        for one in told:
            self.say(events.PeerHired(peer=one.name, rank=one.rank, cores=1, memory_mb=1024), after=0.05)
        self.here = [*self.here, *peers]

    def train(self, rounds: int, *, without: tuple[str, ...] = ()) -> None:
        """So many accepted rounds."""
        for _ in range(rounds):
            self._round([name for name in self.here if name not in without])

    def _round(self, members: list[str]) -> None:
        number = self.journal.record.round
        chance = self._chance
        train = {name: STEPS * STEP_S.get(name, 0.03) * chance.uniform(0.92, 1.1) for name in members}
        slowest = max(train.values())
        exchange = {name: slowest - took + chance.uniform(0.2, 0.26) for name, took in train.items()}
        self.clock.time += slowest + 0.42
        seconds, self._begun = self.clock.time - self._begun, self.clock.time
        sent = {name: int(DENSE / 93 / len(members) * chance.uniform(0.95, 1.05)) for name in members}
        self.wire_bytes += sum(sent.values()) + 9000
        for name in members:
            self.credits[name] = self.credits.get(name, 0.0) + 0.55 * chance.uniform(0.95, 1.05)
        progress = (number + 1) / ROUNDS
        loss = 2.3 * math.exp(-3.4 * progress) + 0.06 + chance.uniform(-0.02, 0.02)
        samples = dict.fromkeys(members, STEPS * 32)
        event = train_events.RoundFinished(
            round=number, rounds=self.journal.record.rounds, loss=loss, samples=sum(samples.values()), seconds=seconds,
            metrics={"accuracy": 0.975 - 0.75 * math.exp(-4.2 * progress) + chance.uniform(-0.006, 0.006),
                     "loss": 1.9 * math.exp(-2.9 * progress) + 0.16 + chance.uniform(-0.02, 0.02)},
            samples_per_second={name: samples[name] / train[name] for name in members}, wire_bytes=self.wire_bytes,
            credits=sum(self.credits.values()), eta_s=(self.journal.record.rounds - number - 1) * seconds,
            round_bytes=sum(sent.values()), dense_bytes=DENSE, exchange_seconds=max(exchange.values()),
            peers={name: train_events.PeerRound(
                train_seconds=train[name], exchange_seconds=exchange[name], exchanges=5, samples=samples[name],
                sent_bytes=sent[name], received_bytes=sum(sent.values()) - sent[name], credits=self.credits[name],
            ) for name in members},
        )  # fmt: skip
        MetricsFile(self.folder.metrics).add({
            "round": number + 1, "loss": loss, **held_out(event.metrics), "samples": event.samples,
            "seconds": round(seconds, 4), "bytes": event.round_bytes + 9000,
        })  # fmt: skip
        self.journal.change(
            round=number + 1, loss=loss, metrics=event.metrics, wire_bytes=self.wire_bytes, credits=dict(self.credits)
        )
        self.say(event)

    def lose(self, name: str, reason: str = KILLED, *, after: float = 1.1) -> None:
        """A peer is killed in the middle of a round, which begins anew."""
        self.clock.time += after
        self.here.remove(name)
        number = self.journal.record.round
        self.journal.names_lost.append(name)
        self.say(events.PeerLost(peer=name, round=number, reason=reason, left=len(self.here)))
        self.say(train_events.RoundRedone(round=number, attempt=1, reason=f"{name} is gone"))

    def join(self, name: str) -> None:
        """One more peer comes in its place."""
        self.say(events.RttMeasured(seconds={name: RTTS.get(name, 0.05)}, too_far=[], unreachable={}), after=0.5)
        self._hire([name])

    def joined(self, name: str) -> None:
        """It takes part."""
        self.say(train_events.PeerJoined(peer=name, round=self.journal.record.round))

    def pause(self, name: str, reason: str = BUSY, *, after: float = 0.6) -> None:
        """Its owner needs the machine."""
        self.clock.time += after
        rank = next(peer.rank for peer in self.journal.record.peers if peer.name == name and not peer.lost)
        self.journal.paused(rank, name, reason)

    def resume_peer(self, name: str, *, after: float = 5.0) -> None:
        """The owner is gone again."""
        self.clock.time += after
        rank = next(peer.rank for peer in self.journal.record.peers if peer.name == name and not peer.lost)
        self.journal.resumed(rank, name)

    def finish(self) -> None:
        """The weights are fetched."""
        self.clock.time += 0.8
        self.journal.enter(JobState.FINISHED, model_sha256="9c41" * 16)
        record = self.journal.record
        self.say(events.JobFinished(
            job=record.id, folder=str(self.folder.path), rounds=record.round, loss=record.loss or 0.0,
            metrics=record.metrics, samples=92_160, seconds=self.clock.time - record.created, first_step_s=3.2,
            wire_bytes=record.wire_bytes, credits=record.credits, receipts=76, peers=list(self.here),
            lost=self.journal.names_lost,
        ))  # fmt: skip

    def leave(self, reason: str = "") -> None:
        """Left, to be resumed."""
        kept = self.journal.record.round
        self.journal.change(kept_round=kept, kept_state="ab" * 32)
        self.journal.enter(JobState.PAUSED)
        self.say(events.JobPaused(job=self.journal.record.id, folder=str(self.folder.path), round=kept, reason=reason))

    def fail(self, code: str, message: str, cause: str, fix: str) -> None:
        """It ends badly."""
        self.journal.change(kept_round=self.journal.record.round)
        self.journal.enter(JobState.FAILED, error=ErrorRecord(code=code, message=message, cause=cause, fix=fix))
        self.say(events.JobEndedBadly(job=self.journal.record.id, code=code, message=message, cause=cause, fix=fix))


CREW = ["otter", "heron", "lynx", "wren"]


def running(home: Path) -> PaperJob:
    job = PaperJob(home)
    job.begin(CREW)
    job.train(13)
    job.clock.time += 1.2
    return job


def lost(home: Path) -> PaperJob:
    job = PaperJob(home)
    job.begin(CREW)
    job.train(10)
    job.lose("wren")
    job.train(1)
    job.clock.time += 0.7
    return job


def starting(home: Path) -> PaperJob:
    job = PaperJob(home)
    job.begin(CREW[:2], ready=0)
    job.clock.time += 12.0
    return job


def waiting(home: Path) -> PaperJob:
    job = PaperJob(home)
    job.begin(["otter", "heron"])
    job.train(8)
    job.pause("heron")
    job.journal.waits_for(["heron"])
    job.clock.time += 21
    return job


def resumed(home: Path) -> PaperJob:
    job = PaperJob(home)
    job.begin(CREW)
    job.train(7)
    job.leave()
    job.clock.time += 5200
    job.here = []
    job.begin(["otter", "heron", "lynx"], resumed_from=7)
    job.train(4)
    job.pause("lynx")
    job.train(1)
    job.resume_peer("lynx", after=0.4)
    job.train(1)
    job.clock.time += 0.6
    return job


def finished(home: Path) -> PaperJob:
    job = PaperJob(home)
    job.begin(CREW)
    job.train(8)
    job.lose("wren")
    job.train(1)
    job.join("ibex")
    job.train(2, without=("ibex",))
    job.joined("ibex")
    job.train(3)
    job.pause("lynx")
    job.say(train_events.PeerLeftBehind(peer="lynx", round=14, reason=f"paused: {BUSY}", left=3), after=2)
    job.train(2, without=("lynx",))
    job.resume_peer("lynx", after=0.2)
    job.train(1, without=("lynx",))
    job.joined("lynx")
    job.train(3)
    job.finish()
    return job


def failed(home: Path) -> PaperJob:
    job = PaperJob(home)
    job.begin(CREW)
    job.train(9)
    job.lose("wren")
    job.lose("lynx", "its lease ended: the owner took the machine back")
    job.fail(
        "AX-102", "only 2 of at least 3 peers are left",
        "wren: its session ended: connection reset; lynx: its lease ended: the owner took the machine back",
        "axon resume digits-7f3a      (continues after round 9)",
    )  # fmt: skip
    return job


def paused(home: Path) -> PaperJob:
    job = PaperJob(home)
    job.begin(CREW)
    job.train(12)
    job.leave()
    return job


STATES: dict[str, Callable[[Path], PaperJob]] = {
    "starting": starting,
    "running": running, "lost": lost, "waiting": waiting, "resumed": resumed, "finished": finished, "failed": failed,
    "paused": paused,
}  # fmt: skip
"""What the page can show. The clock of each stands at the moment in which it is looked at."""

HOSTILE = '</script><img src=x onerror="alert(1)">&amp;\'"=HYPERLINK("x")'
"""What a stranger may call a peer, or give as a reason."""
