"""What is told of a job: with the time it happened, in the ear of who watches and on the disk."""

from __future__ import annotations

from pathlib import Path

from axonp2p.client.events.events import Event, PeerResumed
from axonp2p.client.storage.job_journal import JobJournal
from axonp2p.client.storage.job_store import JobStore
from axonp2p.jobs.lifecycle import JobState
from axonp2p.kinds.train.events import RoundProgress
from axonp2p.kinds.train.record import TrainRecord
from tests.fakes import NOW, AtOnce, ManualClock


def test_every_event_says_when_it_happened(tmp_path: Path) -> None:
    record = TrainRecord(
        id="digits-11c0", name="digits", folder="/tmp/digits", spec={}, state=JobState.RUNNING, created=NOW,
        updated=NOW, peers_wanted=4, rounds=20,
    )  # fmt: skip
    folder = JobStore(tmp_path).create(record)
    clock, seen = ManualClock(), list[Event]()
    journal = JobJournal(folder, record, clock, seen.append, AtOnce())
    journal.tell(PeerResumed(peer="otter"))
    clock.time += 7
    journal.tell(RoundProgress(round=0, rounds=20, fraction=0.5, loss=1.0, samples_per_second={}, eta_s=None))
    journal.tell(PeerResumed(peer="heron"))
    journal.tell(PeerResumed(peer="lynx", at=NOW + 3))  # it has happened a while ago
    assert [event.at - NOW for event in seen] == [0, 7, 7, 3]
    assert folder.read_events() == [seen[0], seen[2], seen[3]]
    assert folder.read_events()[1] == PeerResumed(peer="heron", at=NOW + 7)
