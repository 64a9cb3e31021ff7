"""The state of a job so far: kept in its folder, told as events.

Everything that a person may learn of a running job goes through `tell`, and all that must outlive the program through
`change`; so events, job.json and metrics.csv never disagree. Both go to the disk in their order, behind the caller's
back (`DiskWork`), and an event is shown once it is there, with all that was to be there before it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from functools import partial
from typing import Any

import msgspec

from axonp2p.client.events.events import Event, JobFinished, JobGoesOn, JobWaiting, PeerLost, PeerPaused, PeerResumed
from axonp2p.client.storage.disk_work import DiskWork
from axonp2p.client.storage.job_record import JobRecord, PeerRecord
from axonp2p.client.storage.job_store import JobFolder
from axonp2p.clock import Clock
from axonp2p.jobs.lifecycle import JobState, step


class JobJournal:
    """One job's record, and the ear of whoever watches it."""

    def __init__(
        self,
        folder: JobFolder,
        record: JobRecord,
        clock: Clock,
        watch: Callable[[Event], None],
        disk: DiskWork | None = None,
    ) -> None:
        """`watch` is called by the thread that writes."""
        self.folder = folder
        self.disk = disk or DiskWork()
        self.record = record
        self._clock = clock
        self._watch = watch
        self.round = record.done
        """The unit of work that is under way, from 0."""
        self.names_lost: list[str] = []
        """Peers that left in this life of the job."""

    def tell(self, event: Event) -> None:
        """Show an event, and keep it unless the next moment makes it worthless."""
        if not event.at:
            event = msgspec.structs.replace(event, at=self._clock.now())
        if not event.passing:
            self.disk.do(partial(self.folder.add_event, event))
        self.disk.do(partial(self._watch, event))

    def change(self, *, lasting: bool = False, **fields: Any) -> None:
        """Replace fields of the record, and have it written down; `lasting`: a power cut does not undo it.

        Raises what the disk refused earlier.
        """
        self.record = msgspec.structs.replace(self.record, updated=self._clock.now(), **fields)
        self.disk.do(partial(self.folder.write, self.record, lasting=lasting))

    def afterwards(self, act: Callable[[], None]) -> None:
        """Call this in the running loop once all is on the disk that was to be there by now."""
        loop = asyncio.get_running_loop()

        def wake() -> None:
            loop.call_soon_threadsafe(act)

        self.disk.do(wake)

    def enter(self, state: JobState, **fields: Any) -> None:
        """Take a step in the job's life, if it is not there yet."""
        if state is not self.record.state:
            # However a state ended, nobody waits in the next one.
            self.change(state=step(self.record.state, state), waits_for=[], **fields)

    def joined(self, peers: list[PeerRecord], reservations: list[str], tracker: str) -> None:
        """These peers are hired. Those of an earlier life of the job stay on the record, for their credits."""
        again = {peer.peer for peer in peers}
        before = [
            msgspec.structs.replace(peer, lost=peer.lost or "the job was resumed without it", paused="")
            for peer in self.record.peers
            if peer.peer not in again
        ]
        known = [*self.record.reservations, *reservations]
        self.change(peers=before + peers, reservations=known, tracker=tracker)

    def joined_late(self, peer: PeerRecord) -> None:
        """One more peer was hired while the job goes on."""
        known = list(dict.fromkeys([*self.record.reservations, peer.reservation]))
        self.change(peers=[*self.record.peers, peer], reservations=known)

    def lost(self, rank: int, name: str, reason: str, left: int) -> None:
        """A peer is out of the job."""
        self._change_peer(rank, lost=reason, paused="")
        self.names_lost.append(name)
        self.tell(PeerLost(peer=name, round=self.round, reason=reason, left=left))

    def paused(self, rank: int, name: str, reason: str) -> None:
        """A peer's owner needs the machine."""
        self._change_peer(rank, paused=reason)
        self.tell(PeerPaused(peer=name, reason=reason))

    def resumed(self, rank: int, name: str) -> None:
        """It goes on."""
        self._change_peer(rank, paused="")
        self.tell(PeerResumed(peer=name))

    def waits_for(self, names: list[str]) -> None:
        """The job cannot go on without these paused peers; with nobody named it goes on."""
        self.change(waits_for=names)
        self.tell(JobWaiting(peers=names) if names else JobGoesOn())

    def finished_event(self, facts: dict[str, Any]) -> JobFinished:
        """How a job ended whose units are all in its record; `facts`: what its last life knows."""
        record = self.record
        return JobFinished(
            job=record.id,
            folder=str(self.folder.path),
            rounds=record.done,
            wire_bytes=record.wire_bytes,
            credits=record.credits,
            **facts,
        )

    def _change_peer(self, rank: int, **fields: str) -> None:
        """Of those of this life of the job."""
        peers = [
            msgspec.structs.replace(peer, **fields) if peer.rank == rank and not peer.lost else peer
            for peer in self.record.peers
        ]
        self.change(peers=peers)
