"""The pieces that the client gives, and to whom: a bundle leaves it about once. Pure: times in seconds are passed in.

Each piece goes to one peer, different ones to different peers, and the peers pass them on to each other. A peer that
passes on what it was given is given more, so that a slow one is no bottleneck (super-seeding: Hoffman, BEP 16, 2008).
The client gives a piece a second time only when

    nobody has it any more: its holder has gone, or it was lost on the way
    a peer lacks what others have, and for long no member has sent it anything: it is out of their reach, or they stand
    still. Then the client helps it, until a member does.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterable
from dataclasses import dataclass, field

MOST_UNDER_WAY = 8
"""Pieces given to one peer that it has not confirmed."""
FIRST_UNSPREAD, LEAST_UNSPREAD, MOST_UNSPREAD = 4, 2, 32
"""Pieces given to one peer that no other has got yet: one more for each that gets on fast, one less for a slow one."""
FAST_S = 2.0
"""From when a peer has a piece until another has it too."""
FIRST_HELPED = 2
"""Pieces under way to a peer when its help begins; one more for each that it takes."""
HELP_AFTER_S = 10.0
"""For so long a peer waits for members before the client helps, at first; later 8 times as long as members took."""
LEAST_HELP_AFTER_S = 4.0
SMALL, SMALL_HELP_AFTER_S = 16, 1.0
"""So few pieces are sooner given again, so many times, than waited for."""
LATE_S = 20.0
"""A piece that a peer did not confirm for so long was lost on the way, while nothing is learnt of how long it takes."""
LEAST_LATE_S = 5.0
_LATE = float("-inf")
"""In place of the time at which a piece was given, once it is late."""


@dataclass
class _Peer:
    have: set[int]
    under_way: dict[int, float] = field(default_factory=dict)
    given: set[int] = field(default_factory=set)
    unspread: dict[int, float | None] = field(default_factory=dict)
    """Since when it has each; None: not yet."""
    room: int = FIRST_UNSPREAD
    help_room: int = FIRST_HELPED
    waits_since: float | None = None
    """Since when it lacks what others have, without having had anything from them."""
    gap: float | None = None
    """Seconds between two pieces from members: the mean, the last ones weighing more."""


class Seeding:
    """One bundle of `count` pieces, and the peers that shall have it."""

    def __init__(self, count: int) -> None:
        self.helped: set[int] = set()
        """Peers to which pieces are given now that members do not pass on to them."""
        self._count = count
        self._peers: dict[int, _Peer] = {}
        self._holders = [0] * count
        self._given = 0
        """Pieces, all givings counted."""
        self._held = 0
        """How many pieces somebody has."""
        self._givings = [0] * count
        """To how many peers each piece is on its way from us."""
        self._fresh = list(range(count))
        """A heap of what nobody has and nobody is being given; may name others too."""
        self._late_s = LATE_S
        self._takes: float | None = None

    def joined(self, rank: int, have: Iterable[int], now: float) -> None:
        """A peer that has these pieces from before shall have all."""
        self._peers[rank] = _Peer(set())
        self.got(rank, have, now, by_members=False)

    def has_joined(self, rank: int) -> bool:
        """Whether that peer is one of them."""
        return rank in self._peers

    def held_by(self, rank: int) -> int:
        """How many pieces that peer has."""
        return len(self._peers[rank].have) if rank in self._peers else 0

    def got(self, rank: int, numbers: Iterable[int], now: float, *, by_members: bool = True) -> None:
        """A peer has these as well. `by_members`: those that we did not give it came from members."""
        peer = self._peers[rank]
        new = set(numbers) - peer.have
        peer.have |= new
        for number in new:
            self._confirm(peer, number, now)
            self._holders[number] += 1
            self._held += self._holders[number] == 1
            if self._holders[number] > 1:
                self._spread(number, now)
            elif number in peer.unspread:
                peer.unspread[number] = now
        if by_members and new - peer.given:
            self._had_from_members(rank, len(new - peer.given), now)
        self._look_who_waits(now)

    def gone(self, rank: int, now: float) -> None:
        """A peer has left, with all that it has."""
        peer = self._peers.pop(rank, None)
        if peer is None:
            return
        self.helped.discard(rank)
        for number in peer.under_way:
            self._givings[number] -= 1
        for number in peer.have:
            self._holders[number] -= 1
            self._held -= self._holders[number] == 0
        for number in peer.have | peer.under_way.keys():
            self._renew(number)
        self._look_who_waits(now)

    def next(self, rank: int, now: float) -> int | None:
        """The piece to give that peer now, which then counts as on its way; None: nothing before there is news."""
        peer = self._peers[rank]
        self._find_late(now)
        if len(peer.under_way) >= MOST_UNDER_WAY:
            return None
        alone = all(other is peer or len(other.have) == self._count for other in self._peers.values())
        number = None
        if alone or len(peer.unspread) < peer.room:
            number = self._freshest(peer)
        if number is None and self._is_stuck(peer, now) and len(peer.under_way) < peer.help_room:
            number = self._freshest(peer)
            if number is None:
                number = self._rarest(peer)
            if number is not None and now >= (peer.waits_since or now) + _patience(peer):
                self.helped.add(rank)
        if number is not None:
            self._give(peer, number, now)
        return number

    def deadline(self, rank: int) -> float | None:
        """When to ask for `next` again, if there is no news before."""
        peer = self._peers[rank]
        given = [given for other in self._peers.values() for given in other.under_way.values() if given > _LATE]
        times = [min(given) + self._late_s] if given else []
        room = len(peer.under_way) < peer.help_room and len(peer.have) + len(peer.under_way) < self._count
        if peer.waits_since is not None and room:
            times.append(peer.waits_since + self._waits_at_most(peer))
        return min(times, default=None)

    # --- which piece ---

    def _freshest(self, peer: _Peer) -> int | None:
        """The first one that nobody has and nobody is being given."""
        passed_over = []
        found = None
        while self._fresh and found is None:
            number = heapq.heappop(self._fresh)
            if self._holders[number] or self._givings[number]:
                continue
            if number in peer.under_way:  # late with this very peer: somebody else shall have it
                passed_over.append(number)
            else:
                found = number
        for number in passed_over:
            heapq.heappush(self._fresh, number)
        return found

    def _rarest(self, peer: _Peer) -> int | None:
        """The one that it lacks, that fewest are being given, and fewest have."""
        lacks = [number for number in range(self._count) if number not in peer.have and number not in peer.under_way]
        return min(lacks, key=lambda number: (self._givings[number], self._holders[number]), default=None)

    def _is_stuck(self, peer: _Peer, now: float) -> bool:
        return peer.waits_since is not None and now >= peer.waits_since + self._waits_at_most(peer)

    def _waits_at_most(self, peer: _Peer) -> float:
        soon = self._count <= SMALL and self._given < self._count + SMALL
        return min(SMALL_HELP_AFTER_S, _patience(peer)) if soon else _patience(peer)

    # --- what follows from what happened ---

    def _give(self, peer: _Peer, number: int, now: float) -> None:
        peer.under_way[number] = now
        peer.given.add(number)
        self._givings[number] += 1
        self._given += 1
        if not self._holders[number]:
            peer.unspread[number] = None

    def _confirm(self, peer: _Peer, number: int, now: float) -> None:
        given = peer.under_way.pop(number, None)
        if given is None:
            return
        if given > _LATE:
            self._givings[number] -= 1
            peer.help_room = min(peer.help_room + 1, MOST_UNDER_WAY)
            took = now - given
            self._takes = took if self._takes is None else self._takes + (took - self._takes) / 8
            self._late_s = max(LEAST_LATE_S, 4 * self._takes)

    def _spread(self, number: int, now: float) -> None:
        """A second peer has it."""
        for peer in self._peers.values():
            if number in peer.unspread and (since := peer.unspread.pop(number)) is not None:
                fast = now - since < FAST_S
                peer.room = min(peer.room + 1, MOST_UNSPREAD) if fast else max(peer.room - 1, LEAST_UNSPREAD)

    def _find_late(self, now: float) -> None:
        """A piece not confirmed for long may be given to others; to this one it stays on its way."""
        for peer in self._peers.values():
            for number, given in peer.under_way.items():
                if now < given + self._late_s:
                    break  # they stand in the order in which they were given
                if given > _LATE:
                    peer.under_way[number] = _LATE
                    self._givings[number] -= 1
                    self._renew(number)

    def _renew(self, number: int) -> None:
        if not self._holders[number] and not self._givings[number]:
            heapq.heappush(self._fresh, number)

    def _had_from_members(self, rank: int, count: int, now: float) -> None:
        peer = self._peers[rank]
        if peer.waits_since is not None:
            gap = (now - peer.waits_since) / count
            peer.gap = gap if peer.gap is None else peer.gap + (gap - peer.gap) / 8
        peer.waits_since = None
        peer.help_room = FIRST_HELPED
        self.helped.discard(rank)

    def _look_who_waits(self, now: float) -> None:
        for rank, peer in self._peers.items():
            coming = sum(self._holders[number] > 0 for number in peer.under_way)
            if self._held > len(peer.have) + coming:
                peer.waits_since = now if peer.waits_since is None else peer.waits_since
            elif rank not in self.helped:
                peer.waits_since = None


def _patience(peer: _Peer) -> float:
    return HELP_AFTER_S if peer.gap is None else max(LEAST_HELP_AFTER_S, 8 * peer.gap)
