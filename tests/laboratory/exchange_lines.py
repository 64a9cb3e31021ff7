"""Simulated lines between the members of one job, and to their coordinator: virtual time, rates, delays, order, cuts.

Only bytes travel. Each member has one upload, which takes frame after frame from its real `WorkerOutbox`; between each
two there is a link whose frames keep their order, and which lends the outbox a small window, as a daemon does. A link
ends when one side's roster no longer has the other, or when it was cut for too long; what is under way on it is lost.
"""

from __future__ import annotations

import heapq
import random
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from itertools import count

from axonp2p.sandbox.messages import Control, ToMember
from axonp2p.training.worker.outbox import WorkerOutbox
from axonp2p.wire.frame import FRAME_COST

WINDOW_BYTES = 16 * 1024
LINK_LOST_AGAIN_S = 10.0
"""So long a daemon does not say the same of a link again."""

Happening = Callable[[], None]
Pair = frozenset[int]


class Agenda:
    """What will happen when, and what time it is."""

    def __init__(self) -> None:
        self.now = 0.0
        self.count = 0
        self._events: list[tuple[float, int, Happening]] = []
        self._number = count()

    def at(self, when: float, happens: Happening) -> None:
        heapq.heappush(self._events, (max(when, self.now), next(self._number), happens))

    def after(self, seconds: float, happens: Happening) -> None:
        self.at(self.now + seconds, happens)

    def next(self) -> bool:
        """Let the next thing happen; False when there is none."""
        if not self._events:
            return False
        self.now, _, happens = heapq.heappop(self._events)
        self.count += 1
        happens()
        return True


@dataclass(frozen=True)
class Home:
    """A member's line: bytes a second upwards, seconds to the others' lines and what they vary by."""

    upload: float
    delay: float
    jitter: float


class Lines:
    """All of one job. The world around hears what arrives through `arrives`, `reported` and `link_lost`."""

    def __init__(self, agenda: Agenda, chance: random.Random) -> None:
        self._agenda = agenda
        self._chance = chance
        self.homes: dict[int, Home] = {}
        self.outboxes: dict[int, WorkerOutbox] = {}
        self.rosters: dict[int, set[int]] = {}
        self.slowed: dict[int, float] = {}
        """By how much a member's upload is slower now."""
        self.silent: set[int] = set()
        """Who sends nothing any more."""
        self.reported: Callable[[int, bytes], None] = lambda rank, frame: None
        self.arrives: Callable[[int, int, bytes, Happening], None] = lambda sender, to, frame, taken: None
        self.link_lost: Callable[[int, int], None] = lambda rank, to: None
        self.on_the_wire: Callable[[int, int, bytes], bytes] = lambda sender, to, frame: frame
        """May look at a frame that leaves its sender, and change it."""
        self._busy: set[int] = set()
        self._last: dict[tuple[int, int | None], float] = {}
        self._generation: Counter[Pair] = Counter()
        self._left: Counter[tuple[int, int]] = Counter()
        self._cut: dict[Pair, list[Happening]] = {}
        self._lost: set[Pair] = set()
        self._lost_told: dict[tuple[int, int], float] = {}

    def add(self, rank: int, home: Home, outbox: WorkerOutbox) -> None:
        self.homes[rank], self.outboxes[rank] = home, outbox
        self.rosters[rank] = set()

    def delay(self, sender: int | None, to: int | None) -> float:
        """Seconds on the way; None is the coordinator, which is near to everybody."""
        ends = [self.homes[rank] for rank in (sender, to) if rank is not None]
        return sum(home.delay + home.jitter * self._chance.random() for home in ends)

    def in_order(self, sender: int, to: int | None, happens: Happening) -> None:
        """Let it happen after the delay of that way, and after all that went before."""
        when = max(self._last.get((sender, to), 0.0), self._agenda.now + self.delay(sender, to))
        self._last[sender, to] = when
        self._agenda.at(when, happens)

    # --- who is linked to whom ---

    def set_roster(self, rank: int, members: set[int]) -> None:
        """The member's daemon hears who is in the job."""
        before, now = self.rosters[rank], members - {rank}
        self.rosters[rank] = now
        for other in before - now:
            self._generation[Pair((rank, other))] += 1
            self._lost.discard(Pair((rank, other)))
        for other in now - before:
            self._grant(rank, other, WINDOW_BYTES - self._left[rank, other])
        self.pump(rank)

    def cut(self, pair: Pair) -> None:
        """From now on nothing gets through between the two."""
        self._cut.setdefault(pair, [])

    def mend(self, pair: Pair) -> None:
        """What waited gets through, if the link was not given up."""
        for happens in self._cut.pop(pair, []):
            happens()

    def give_up(self, pair: Pair) -> None:
        """Both daemons find the link lost, and say so."""
        if pair in self._lost:
            return
        self._lost.add(pair)
        self._cut.pop(pair, None)
        self._generation[pair] += 1
        rank, other = sorted(pair)
        self._tell_lost(rank, other)
        self._tell_lost(other, rank)

    def _tell_lost(self, rank: int, to: int) -> None:
        now = self._agenda.now
        told = self._lost_told.get((rank, to))
        if rank in self.silent or (told is not None and now < told + LINK_LOST_AGAIN_S):
            return
        self._lost_told[rank, to] = now
        self.in_order(rank, None, lambda: self.link_lost(rank, to))

    # --- what is sent ---

    def pump(self, rank: int) -> None:
        """Send the next frame of a member, if its line is free."""
        if rank in self._busy or rank in self.silent:
            return
        said = self.outboxes[rank].next()
        if said is None:
            return
        message, frame = said
        to = message.rank if isinstance(message, ToMember) else None
        assert to is not None or isinstance(message, Control)
        self._busy.add(rank)
        if to is not None:
            self._left[rank, to] -= len(frame) + FRAME_COST
        seconds = len(frame) / self.homes[rank].upload * self.slowed.get(rank, 1.0)
        self._agenda.after(seconds, lambda: self._went(rank, to, frame))

    def _went(self, rank: int, to: int | None, frame: bytes) -> None:
        self._busy.discard(rank)
        if rank not in self.silent:
            if to is None:
                self.in_order(rank, None, lambda: self.reported(rank, frame))
            else:
                self._post(rank, to, frame)
        self.pump(rank)

    def _post(self, rank: int, to: int, frame: bytes) -> None:
        size = len(frame) + FRAME_COST
        frame = self.on_the_wire(rank, to, frame)
        pair = Pair((rank, to))
        if rank in self.silent:
            return
        if to not in self.rosters[rank] or pair in self._lost:
            self._tell_lost(rank, to)
            return
        generation = self._generation[pair]

        def arrive() -> None:
            if self._generation[pair] != generation or rank not in self.rosters[to]:
                return
            if pair in self._cut:
                self._cut[pair].append(arrive)
            else:
                self.arrives(rank, to, frame, taken)

        def taken() -> None:
            if self._generation[pair] == generation:
                self._grant(rank, to, size)
                self.pump(rank)

        self.in_order(rank, to, arrive)

    def _grant(self, rank: int, to: int, more: int) -> None:
        self._left[rank, to] += more
        if more > 0:
            self.outboxes[rank].credit(to, more)
