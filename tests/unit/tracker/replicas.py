"""Trackers without sockets and disks: the same pure parts, driven by a test that moves time and messages."""

from __future__ import annotations

import random
from collections.abc import Iterable

from axonp2p.errors import PeerMisbehaved, Refused
from axonp2p.identity.keys import PrivateKey
from axonp2p.peers.capability import Need, read_capability
from axonp2p.table.records import Row, open_row
from axonp2p.table.slots import Slots, supersedes
from axonp2p.wire.envelope import Signed
from tracker.replication.pull import Pull
from tracker.replication.renewals import restore, shorten
from tracker.replication.replica import Replica
from tracker.table.table_index import REMEMBERED_S, TableIndex


class PaperTracker:
    """One tracker. `disk` is what survives a restart; `skew` is how far its clock is off, in seconds."""

    def __init__(self, name: str, skew: float = 0.0) -> None:
        self.name = name
        self.skew = skew
        self.disk: dict[str, tuple[Signed[Row], Row, float]] = {}
        self.accepted: list[Signed[Row]] = []
        """Every row that was news here since the disk was last lost."""
        self.start(0.0)

    def start(self, now: float) -> None:
        """Begin with what is on the disk."""
        self.replica = Replica(TableIndex(random.Random(1)), Slots())
        for signed, row, forget_at in list(self.disk.values()):
            self._put(signed, row, forget_at, now + self.skew)

    def lose_disk(self) -> None:
        self.disk = {}
        self.accepted = []

    def take(self, signed: Signed[Row], now: float, *, announced: bool) -> bool:
        """Check a row as every tracker does, and keep it if it is news."""
        clock = now + self.skew
        try:
            row = open_row(signed, clock)
        except (PeerMisbehaved, Refused):
            return False
        known = self.disk.get(row.peer)
        if known and not supersedes(row.sequence, signed.payload, known[1].sequence, known[0].payload):
            return False
        forget_at = clock + REMEMBERED_S
        self.disk[row.peer] = (signed, row, forget_at)
        self.accepted.append(signed)
        before = self._put(signed, row, forget_at, clock)
        if announced:
            self.replica.announced(signed, before, clock)
        return True

    def _put(self, signed: Signed[Row], row: Row, forget_at: float, clock: float) -> Signed[Row] | None:
        before = self.replica.index.signed_of(row.peer)
        offer = None if row.capability is None else read_capability(row.capability)
        self.replica.index.put(signed, row, offer, forget_at=forget_at, now=clock)
        old = None if before is None else before.payload
        self.replica.slots.add(row.peer, row.sequence, row.expires, signed.payload, old)
        return before

    def sweep(self, now: float) -> None:
        clock = now + self.skew
        self.replica.index.advance(clock)
        self.replica.forget(clock)
        self.disk = {peer: kept for peer, kept in self.disk.items() if kept[2] > clock}

    def push(self, others: Iterable[PaperTracker], now: float) -> None:
        """Tell those that can be reached what is new."""
        news = self.replica.take_news()
        for other in others:
            for each in news:
                short = shorten(each.signed, each.before)
                signed = short and restore(short, other.replica.slots, other.replica.index)
                assert not signed or signed == each.signed
                other.take(signed or each.signed, now, announced=False)
                other.replica.pushed(each.signed)

    def pull(self, other: PaperTracker, now: float, *, everything: bool = False) -> tuple[int, int]:
        """Fetch what we lack; gives how many questions it took and how many rows came."""
        pull = Pull(self.replica, other.name, now + self.skew, everything=everything)
        questions = rows = 0
        while (asked := pull.ask()) is not None:
            questions += 1
            for signed in pull.heard(other.replica.answer(asked, now + other.skew)):
                rows += 1
                if not self.take(signed, now, announced=False):
                    pull.incomplete()
        return questions, rows

    def serves(self, now: float) -> dict[str, Signed[Row]]:
        """Every row that a query would show, by peer."""
        found = self.replica.index.find(Need(), 10_000, now + self.skew).rows
        return {signed.signer: signed for signed in found}


def key_number(number: int) -> PrivateKey:
    return PrivateKey(number.to_bytes(32, "big"))
