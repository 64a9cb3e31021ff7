"""A world of peers and trackers in virtual time: the pure code of both, with a model of the internet between them.

Real: rows and their bytes, the index, digests, news, renewals, pulls, the rota of a peer and its memory of trackers.
Modelled: when machines are on, which exchanges are lost, who is cut off from whom. Left out: signatures (their bytes
travel, nobody computes them), disks, and the time that an exchange takes, which is far below the second of a push.
"""

from __future__ import annotations

import heapq
import math
import random
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache, partial

from axonp2p.identity.peer_id import PeerId, peer_id_of
from axonp2p.peers.capability import Capability, as_map, read_capability
from axonp2p.table.records import Row
from axonp2p.table.slots import Slots
from axonp2p.table.sync_messages import MOST_NEWS
from axonp2p.table.tracker_health import TrackerHealth
from axonp2p.wire.codec import decode_as, encode
from axonp2p.wire.envelope import Signed
from peer_daemon.announcing.announce_rota import Rota
from tracker.replication.pull import Pull
from tracker.replication.renewals import mention, restore, shorten
from tracker.replication.replica import News, Replica
from tracker.replication.tracker_book import TrackerBook
from tracker.table.table_index import REMEMBERED_S, TableIndex

BEGINNING = 1_800_000_000.0
"""Unix time at which a world begins."""
SIGNATURE = bytes(64)
ANSWER_BYTES = 200
"""Of an answer to an announce, about."""
PULL_EVERY_S = 10.0
OFFERS = [
    Capability(
        cores=cores, memory_mb=cores * 2048, disk_mb=2048, gflops=cores * 20.0, slots=1, free=1, python="3.11.7",
        packages={"torch": torch, "numpy": "2.4.6"}, kinds=["train"],
    )
    for cores in (1, 2, 4, 8) for torch in ("2.12.1", "2.13.0")
]  # fmt: skip


@lru_cache(maxsize=50_000)
def opened(payload: bytes) -> tuple[Row, Capability | None]:
    """The row in these bytes and what it offers; most rows are met once at every tracker."""
    row = decode_as(payload, Row, Row.LIMIT)
    return row, None if row.capability is None else read_capability(row.capability)


@dataclass(frozen=True)
class Churn:
    """How long machines are on and off (log-normal), and how they leave. Times in seconds."""

    on_median: float = 2.5 * 3600
    off_median: float = 2.5 * 3600
    sigma: float = 1.5
    crashes: float = 0.3
    """Share of the ends that no row tells of."""

    def spell(self, on: bool, chance: random.Random) -> float:
        """The length of a new spell."""
        return (self.on_median if on else self.off_median) * chance.lognormvariate(0, self.sigma)

    def rest(self, on: bool, chance: random.Random) -> float:
        """What is left of a spell that somebody looks into at a random moment: long ones are met more often."""
        return self.spell(on, chance) * math.exp(self.sigma**2) * chance.random()


@dataclass
class Machine:
    """A volunteer's computer."""

    peer: PeerId
    offer: Capability
    side: int
    """Where it stands when the network is cut in two."""
    health: TrackerHealth
    rota: Rota
    on: bool = False
    sequence: int = 0
    expires: int = 0
    spell: int = 0
    """Counts its spells: what was planned in an earlier one is void."""


@dataclass
class Mailbag:
    """What one tracker has for another."""

    missed: bool = False
    """Whether news did not arrive: the other has to ask for what it lacks."""


class SimulatedTracker:
    """One tracker's pure parts."""

    def __init__(self, address: str, side: int, addresses: list[str], chance: random.Random) -> None:
        self.address, self.side, self._chance = address, side, chance
        self._others = [other for other in addresses if other != address]
        self.identity = peer_id_of(chance.randbytes(32))
        self.up = True
        self.sent: Counter[str] = Counter()
        """Bytes of messages, by what they were for."""
        self.forget_all()

    def forget_all(self) -> None:
        """A new database."""
        self.replica = Replica(TableIndex(self._chance), Slots())
        self.book = TrackerBook(self.identity, self.address, self._others, self._chance)
        self.bags = {address: Mailbag() for address in self._others}

    def take(self, signed: Signed[Row], row: Row, offer: Capability | None, now: float, *, announced: bool) -> None:
        """Keep a row as `TableStore` does, without the disk."""
        index, slots = self.replica.index, self.replica.slots
        before = index.signed_of(row.peer)
        known = index.sequence_of(row.peer)
        if known is not None and known >= row.sequence:
            return
        index.put(signed, row, offer, forget_at=now + REMEMBERED_S, now=now)
        slots.add(row.peer, row.sequence, row.expires, signed.payload, None if before is None else before.payload)
        if announced:
            self.replica.announced(signed, before, now, row.trackers)
        else:
            self.replica.pushed(signed)


class TableWorld:
    """Machines, trackers, and a heap of what happens next."""

    def __init__(self, online: int, trackers: int, seed: int, *, again_in: float = 300.0, loss: float = 0.01) -> None:
        self.chance = random.Random(seed)
        self.now = BEGINNING
        self.again_in, self.loss, self.cut = again_in, loss, False
        self.churn = Churn()
        addresses = [f"https://tracker-{number}.example:7070" for number in range(trackers)]
        self.trackers = [
            SimulatedTracker(address, int(number >= (trackers + 1) // 2), addresses, self.chance)
            for number, address in enumerate(addresses)
        ]
        self._by_address = {tracker.address: tracker for tracker in self.trackers}
        self._events: list[tuple[float, int, Callable[[], None]]] = []
        self._planned = 0
        self.newest: dict[PeerId, int] = {}
        """The number of the newest row of each machine that any tracker has taken."""
        self.announces = 0
        self.announce_bytes = 0
        self.watched: list[tuple[PeerId, int, float]] = []
        """Some announces that not every tracker has yet: whose, which, since when."""
        self.lags: list[float] = []
        self.machines = [self._machine() for _ in range(2 * online)]
        for tracker in self.trackers:
            self.at(self.now + self.chance.random(), partial(self._tick, tracker))
            self.at(self.now + PULL_EVERY_S * self.chance.random(), partial(self._pull, tracker))

    def at(self, when: float, what: Callable[[], None]) -> None:
        """Do that then."""
        self._planned += 1
        heapq.heappush(self._events, (when, self._planned, what))

    def run(self, until: float) -> None:
        """Let time pass, to that many seconds after the beginning."""
        while self._events[0][0] <= BEGINNING + until:
            self.now, _, what = heapq.heappop(self._events)
            what()
        self.now = BEGINNING + until

    def reaches(self, one: int, other: int) -> bool:
        """Whether an exchange between two sides succeeds now."""
        return not (self.cut and one != other) and self.chance.random() >= self.loss

    # --- machines ---

    def _machine(self) -> Machine:
        health = TrackerHealth(tracker.address for tracker in self.trackers)
        peer = peer_id_of(self.chance.randbytes(32))
        machine = Machine(
            peer, self.chance.choice(OFFERS), int(self.chance.random() < 0.4), health, Rota(health, self.chance)
        )
        machine.on = self.chance.random() < 0.5
        if machine.on:
            self.at(self.now + self.again_in * self.chance.random(), partial(self._turn, machine, machine.spell))
        self.at(self.now + self.churn.rest(machine.on, self.chance), partial(self._switch, machine))
        return machine

    def _switch(self, machine: Machine) -> None:
        machine.on, machine.spell = not machine.on, machine.spell + 1
        if machine.on:
            machine.rota = Rota(machine.health, self.chance)
            self._turn(machine, machine.spell)
        elif self.chance.random() >= self.churn.crashes:
            self._announce(machine, machine.rota.told, leaving=True)
        self.at(self.now + self.churn.spell(machine.on, self.chance), partial(self._switch, machine))

    def _turn(self, machine: Machine, spell: int) -> None:
        if machine.spell != spell:
            return
        self._announce(machine, machine.rota.due(self.now))
        wait = max(machine.rota.wait(self.now), 0.001)
        self.at(self.now + wait, partial(self._turn, machine, spell))

    def _announce(self, machine: Machine, addresses: list[str], *, leaving: bool = False) -> None:
        if not addresses:
            return
        machine.sequence = max(machine.sequence + 1, int(self.now * 1000))
        machine.expires = machine.expires if leaving else int(self.now + 2 * self.again_in)
        offer = None if leaving else machine.offer
        row = Row(
            peer=machine.peer,
            name=machine.peer[:8],
            sequence=machine.sequence,
            addresses=["203.0.113.77:7071"],
            certificate=bytes(32),
            expires=machine.expires,
            trackers=machine.rota.chosen[:2],
            capability=None if offer is None else as_map(offer),
        )
        signed: Signed[Row] = Signed(signer=machine.peer, payload=encode(row), signature=SIGNATURE)
        size = len(encode(signed)) + ANSWER_BYTES
        taken = False
        for address in addresses:
            tracker = self._by_address[address]
            if tracker.up and self.reaches(machine.side, tracker.side):
                tracker.take(signed, row, offer, self.now, announced=True)
                machine.health.answered(address, self.now)
                machine.rota.answered(address, self.again_in, self.now)
                taken = True
                self.announces += 1
                self.announce_bytes += size
            else:
                machine.health.failed(address, self.now, self.chance.random())
                machine.rota.failed(address)
        if taken:
            self.newest[machine.peer] = machine.sequence
            if self.chance.random() < 0.02:
                self.watched.append((machine.peer, machine.sequence, self.now))

    # --- trackers ---

    def _tick(self, tracker: SimulatedTracker) -> None:
        """Once a second: push what is new to each other tracker."""
        self.at(self.now + self.chance.uniform(0.8, 1.0), partial(self._tick, tracker))
        if not tracker.up:
            return
        news = tracker.replica.take_news()
        for known in tracker.book:
            bag = tracker.bags[known.address]
            if not known.lives and known.next_try > self.now:
                bag.missed = bag.missed or bool(news)
                continue
            other = self._by_address[known.address]
            if not (other.up and self.reaches(tracker.side, other.side)):
                tracker.book.failed(known.address, self.now)
                bag.missed = True
                continue
            if tracker.book.answered(known.address, self.now):
                self._compare(tracker, other, everything=True)
            self._push(tracker, other, news)
            if bag.missed:
                bag.missed = False
                self._compare(other, tracker, everything=True)

    def _push(self, tracker: SimulatedTracker, other: SimulatedTracker, news: list[News]) -> None:
        for each in news:
            short = mention(each.signed) if other.address in each.holders else shorten(each.signed, each.before)
            restored = None if short is None else restore(short, other.replica.slots, other.replica.index)
            tracker.sent["push"] += 0 if short is None else len(short)
            if restored is None:
                tracker.sent["push"] += len(encode(each.signed))
            self._arrive(other, each.signed)
        # An answer for each batch, and HTTP's and TLS's own bytes around it, are not counted.
        tracker.sent["push"] += 64 * math.ceil(len(news) / MOST_NEWS)

    def _pull(self, tracker: SimulatedTracker) -> None:
        """Every ten seconds: compare with one other tracker."""
        self.at(self.now + PULL_EVERY_S * self.chance.uniform(0.75, 1.25), partial(self._pull, tracker))
        if not tracker.up:
            return
        tracker.replica.forget(self.now)
        living = tracker.book.living()
        if not living:
            return
        other = self._by_address[self.chance.choice(living).address]
        if other.up and self.reaches(tracker.side, other.side):
            self._compare(tracker, other, everything=False)

    def _compare(self, tracker: SimulatedTracker, other: SimulatedTracker, *, everything: bool) -> None:
        pull = Pull(tracker.replica, other.identity, self.now, everything=everything)
        while (asked := pull.ask()) is not None:
            told = other.replica.answer(asked, self.now)
            tracker.sent["pull"] += len(encode(asked))
            other.sent["pull"] += len(encode(told))
            for signed in pull.heard(told):
                self._arrive(tracker, signed)

    def _arrive(self, tracker: SimulatedTracker, signed: Signed[Row]) -> None:
        row, offer = opened(signed.payload)
        if row.sequence == tracker.replica.index.sequence_of(signed.signer):
            tracker.replica.pushed(signed)
        elif row.expires > self.now:
            tracker.take(signed, row, offer, self.now, announced=False)

    def restart_empty(self, tracker: SimulatedTracker) -> None:
        """It comes back with nothing but its key and its settings."""
        tracker.forget_all()
        tracker.up = True
        for other in self.trackers:
            other.replica.keep_only({one.identity for one in self.trackers if one is not tracker})
