"""Which calls are made at which peer, which ones again, and which ones twice: the mind of a job of this kind. Pure.

Each call tells what has happened and gives back what is to be done. There is one queue, and peers are given chunks of
it as they have room: for each core one chunk that runs and one that waits. Waiting chunks may be taken back; one that
runs is never moved, only copied.

An item is in one of these places:

    waiting ---> live: in a chunk at a peer, or in two ---> done: it has exactly one result
       ^             | its chunk is over without its result      ^
       +-------------+                                           |
                     +---- its function raised and no retry is left, or its process crashed too often

An item that needs the same result of several peers waits again after each, for one that has not made its call yet.
Where results are merged, the calls that merge are items too, which wait once all that they merge is done.

Lost peers, pauses and chunks that are taken back cost a call nothing.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

from axonp2p.errors import PeerMisbehaved
from axonp2p.kinds.map.chunks.call_failures import CallFailures
from axonp2p.kinds.map.chunks.live_chunks import LiveChunk, LiveChunks
from axonp2p.kinds.map.chunks.next_chunks import NextChunks
from axonp2p.kinds.map.chunks.waiting_items import WaitingItems
from axonp2p.kinds.map.messages import HeldChunk
from axonp2p.kinds.map.opinions.open_items import OpenItems
from axonp2p.kinds.map.opinions.quorum import Accepted, Undecided
from axonp2p.kinds.map.queue_actions import (
    CountedResults,
    KeepCrash,
    KeepUndecided,
    QueueAction,
    QueuePlan,
    SetAside,
    StartChunk,
    StopChunk,
)


class ChunkQueue:
    """One life of a job. `now` is monotonic seconds. Say who is there with `joined`, then `begin`."""

    def __init__(self, plan: QueuePlan) -> None:
        self._plan = plan
        self._tree = plan.tree
        self._items = WaitingItems(plan.items, plan.finished, plan.tree)
        self._closed = plan.closed
        self._next_chunk = plan.first_chunk
        self._chunks = LiveChunks()
        self._failures = CallFailures(self._chunks, plan.retries)
        self._open = OpenItems(plan.outvoted)
        for item, (needed, votes) in plan.opinions.items():
            if self._items.is_known(item) and not self._items.is_done(item):
                self._open.open(item, needed, votes)
                self._items.put_back(item)
        self._next = NextChunks(plan, self._items, self._chunks, self._failures, self._open)
        self._held = True
        self._now = -math.inf
        self._actions: list[QueueAction] = []

    # --- what happens ---

    def begin(self, now: float) -> list[QueueAction]:
        """All that are there have joined."""
        self._held = False
        return self._go_on(now)

    def add(self, count: int, now: float) -> list[QueueAction]:
        """So many more items, whose numbers follow."""
        self._items.add(count)
        return self._go_on(now)

    def close(self, now: float) -> list[QueueAction]:
        """No more items will come."""
        self._closed = True
        return self._go_on(now)

    def drop(self, item: int) -> bool:
        """Nobody wants its result any more; false where a peer has it, it is done, or there is none."""
        return self._items.is_known(item) and not self._items.is_live(item) and self._items.finish(item)

    def joined(
        self, rank: int, cores: int, now: float, has: Iterable[HeldChunk] = (), *, peer: str = ""
    ) -> list[QueueAction]:
        """A peer is there; `has`: the chunks that an earlier life of the client gave it."""
        self._forget(rank)
        self._open.came(rank, peer or str(rank))
        self._chunks.join(rank, cores)
        if self._open.is_outvoted(rank):
            self._chunks.aside.add(rank)
            self._actions.append(SetAside(rank, ()))
            return self._go_on(now)
        for held in has:
            if self._chunks.load(rank) >= 2 or (self._plan.chunk and len(held.items) > self._plan.chunk):
                continue  # no life gave it so much
            self._take_over(rank, held, now)
        return self._go_on(now)

    def lost(self, rank: int, now: float, *, own_fault: bool = False, reason: str = "") -> list[QueueAction]:
        """A peer is gone. `own_fault`: because a call went over a limit of the sandbox."""
        for chunk in self._forget(rank):
            if own_fault and chunk.begun is not None and chunk.left and not chunk.stopped:
                self._crash(chunk, reason)
        return self._go_on(now)

    def paused(self, rank: int, now: float) -> list[QueueAction]:
        """The peer's owner lets it stand still."""
        if rank in self._chunks:
            self._chunks.paused.setdefault(rank, now)
        return self._go_on(now)

    def silent(self, rank: int, now: float) -> list[QueueAction]:
        """It does not answer."""
        if rank in self._chunks:
            self._chunks.silent.add(rank)
        return self._go_on(now)

    def resumed(self, rank: int, now: float) -> list[QueueAction]:
        """It goes on."""
        self._chunks.paused.pop(rank, None)
        return self._go_on(now)

    def answers(self, rank: int, now: float) -> list[QueueAction]:
        """It says something again."""
        if rank not in self._chunks.silent:
            return []
        self._chunks.silent.discard(rank)
        return self._go_on(now)

    def leaves(self, rank: int, now: float) -> list[QueueAction]:
        """The peer's owner wants it back soon."""
        if rank in self._chunks:
            self._now = max(self._now, now)
            self._chunks.leaving.add(rank)
            for chunk in self._chunks.at(rank):
                self._ask_back(chunk)
        return self._go_on(now)

    def begun(self, rank: int, number: int, now: float) -> list[QueueAction]:
        """The first call of a chunk begins."""
        chunk = self._chunks.find(rank, number)
        if chunk is not None and chunk.begun is None:
            chunk.begun = max(now, self._now)
        return self._go_on(now)

    def awaited(self, rank: int, number: int) -> tuple[int, ...]:
        """Calls whose results may come from a chunk, in the order in which they will."""
        chunk = self._chunks.find(rank, number)
        return chunk.left if chunk is not None else ()

    def results(
        self, rank: int, number: int, raised: Sequence[bool], now: float, groups: Sequence[int] = ()
    ) -> list[QueueAction]:
        """The next results of a chunk: for each whether its function raised an exception.

        `groups`: for each which of the earlier opinions of its item it is equal to, as these are numbered there.
        Raises `PeerMisbehaved` for more than `awaited`.
        """
        chunk = self._chunks.find(rank, number)
        if chunk is None or len(raised) > len(chunk.left):
            raise PeerMisbehaved("it has results that nobody waits for")
        items = chunk.left[: len(raised)]
        chunk.came += len(items)
        if self._open.is_outvoted(rank):
            self._items.release(items)
            return self._go_on(now)
        chunk.quorum = chunk.quorum or self._plan.quorum(rank)
        counted = CountedResults(rank, number)
        for place, (item, error) in enumerate(zip(items, raised, strict=True)):
            if self._items.is_done(item) or self._open.has_opinion(rank, (item,)) or item in chunk.void:
                continue
            if error and self._failures.raised(item, rank, number):
                continue
            needed = max(chunk.quorum, self._plan.error_quorum(rank)) if error else chunk.quorum
            verdict, needed = self._open.vote(item, rank, groups[place] if groups else 0, needed)
            match verdict:
                case Accepted():
                    self._finish(item, rank, good=not error)
                    counted.keep(place, item, verdict)
                case Undecided(peers):
                    self._finish(item, rank, good=False)
                    self._actions.append(KeepUndecided(rank, item, peers))
                case _:
                    counted.wait(place, item, needed)
        self._items.release(items)
        self._actions += counted.actions()
        for item, accepted in counted.verdicts.items():
            lost = self._open.judge(item, accepted)
            self._chunks.aside.update(one.rank for one in lost if one.rank is not None)
            self._actions += lost
        return self._go_on(now)

    def reopen(self, items: Iterable[int], now: float) -> list[QueueAction]:
        """The results of these do not count any more, nor do those that they were merged into."""
        items = set(items)
        ancestors = self._tree.ancestors_of(items) if self._tree else set[int]()
        for item in ancestors:
            self._open.close(item)
        for chunk in self._chunks.all:
            if void := ancestors.intersection(chunk.left):
                chunk.void |= void
                if not chunk.stopped:
                    self._stop(chunk)
        for item in sorted(items | ancestors):
            if self._items.is_known(item) and self._items.is_done(item):
                self._items.reopen(item)
        return self._go_on(now)

    def over(self, rank: int, number: int, now: float, *, seconds: float = 0.0, crashed: str = "") -> list[QueueAction]:
        """Nothing more comes of a chunk. `crashed`: why its process ended by itself in the first call that is left."""
        chunk = self._chunks.take(rank, number)
        if chunk is None:
            return []
        self._chunks.freed[rank] = max(now, self._now)
        seconds = min(seconds, now - (chunk.sent if chunk.begun is None else chunk.begun))
        if not chunk.left and chunk.items:
            self._next.took(chunk, seconds)
        if crashed and chunk.left and not chunk.stopped:
            self._crash(chunk, crashed)
        self._items.release(chunk.left)
        return self._go_on(now)

    def hold(self, now: float) -> list[QueueAction]:
        """Begin nothing more; what runs goes on to its end."""
        self._held, self._now = True, max(self._now, now)
        for chunk in self._chunks.all:
            self._ask_back(chunk)
        return self._go_on(now)

    def due(self, now: float) -> list[QueueAction]:
        """The deadline has come."""
        return self._go_on(now)

    # --- what may be asked ---

    @property
    def opinions_awaited(self) -> int:
        """Items that wait for another opinion."""
        return len(self._open)

    @property
    def lacks_voices(self) -> bool:
        """Whether nothing can go on until another peer comes: all that are there have given their opinion."""
        stuck = not self._held and not self._chunks.all and self._items.waiting > 0 and bool(self._open)
        return stuck and not self._chunks.paused and not self._chunks.silent

    def other_peers(self, rank: int) -> int:
        """Peers that may be asked for another opinion."""
        return self._open.others(rank, self._chunks.trusted())

    @property
    def over_all(self) -> bool:
        """Whether each item has its result, and no more will come."""
        return self._closed and not self._items.undone

    @property
    def resting(self) -> bool:
        """Whether nothing runs, as far as peers say what they should."""
        return all(chunk.stopped or chunk.not_back_from <= self._now for chunk in self._chunks.all)

    @property
    def items(self) -> int:
        """How many there are."""
        return self._items.items

    def chunks_at(self, rank: int) -> tuple[LiveChunk, ...]:
        """Those that a peer has."""
        return self._chunks.at(rank)

    def next_deadline(self) -> float | None:
        """When to call `due` if nothing else happens."""
        if not self._held:
            return self._next.next_deadline(self._now)
        moments = (chunk.not_back_from for chunk in self._chunks.all if not chunk.stopped)
        return min((moment for moment in moments if self._now < moment < math.inf), default=None)

    # --- how calls end ---

    def _finish(self, item: int, rank: int, *, good: bool) -> None:
        self._items.finish(item)
        self._open.close(item)
        self._actions += self._failures.finished(item, rank, good=good)

    def _crash(self, chunk: LiveChunk, reason: str) -> None:
        item = chunk.left[0]
        if self._items.is_done(item):
            return
        if not self._failures.crashed(item, chunk.rank, chunk.number):
            self._finish(item, chunk.rank, good=False)
            self._actions.append(KeepCrash(chunk.rank, item, reason))

    # --- how chunks begin and end ---

    def _go_on(self, now: float) -> list[QueueAction]:
        self._now = max(self._now, now)
        for chunk in list(self._chunks.all):
            if not chunk.stopped and all(self._items.is_done(item) for item in chunk.left) and chunk.left:
                self._stop(chunk)
        if not self._held:
            while found := self._next.first():
                self._start(*found)
            for chunk in self._next.wanted_back(self._now):
                self._ask_back(chunk)
            for rank, items, slow in self._next.copies(self._now):
                self._start(rank, items, copy_of=slow)
        actions, self._actions = self._actions, []
        return actions

    def _start(self, rank: int, items: tuple[int, ...], copy_of: int | None = None) -> None:
        chunk = LiveChunk(self._next_chunk, rank, items, sent=self._now)
        self._next_chunk += 1
        self._put(chunk)
        self._actions.append(StartChunk(rank, chunk.number, items, copy_of))

    def _put(self, chunk: LiveChunk) -> None:
        self._chunks.put(chunk)
        self._items.hold(chunk.items)

    def _stop(self, chunk: LiveChunk) -> None:
        chunk.stopped = True
        self._actions.append(StopChunk(chunk.rank, chunk.number))

    def _ask_back(self, chunk: LiveChunk) -> None:
        if chunk.begun is None and chunk.asked == math.inf and not chunk.stopped:
            chunk.asked = self._now
            self._actions.append(StopChunk(chunk.rank, chunk.number, only_waiting=True))

    # --- who is there ---

    def _forget(self, rank: int) -> list[LiveChunk]:
        chunks = self._chunks.forget(rank)
        for chunk in chunks:
            self._items.release(chunk.left)
        self._open.forget(rank)
        self._failures.forget(rank)
        self._next.forget(rank)
        return chunks

    def _take_over(self, rank: int, held: HeldChunk, now: float) -> None:
        """A chunk of an earlier life goes on, where all its calls wait; else it is ended."""
        if self._chunks.is_known(held.chunk) or held.chunk >= self._next_chunk:  # which no life has given out
            return
        known = all(self._items.is_known(item) for item in held.items) and len(set(held.items)) == len(held.items)
        good = known and not any(self._items.is_done(item) or self._items.is_live(item) for item in held.items)
        good = good and not self._open.has_opinion(rank, held.items)
        # Items that a merge was given may not count any more.
        good = good and not (self._tree and any(map(self._tree.merges, held.items)))
        items, begun = tuple(held.items) if good else (), now if held.begun else None
        chunk = LiveChunk(held.chunk, rank, items, begun=begun, sent=now)
        self._put(chunk)
        if not good:
            self._stop(chunk)
