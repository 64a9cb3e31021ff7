"""Which calls are made at which peer, which ones again, and which ones twice: the mind of a job of this kind. Pure.

Each call tells what has happened and gives back what is to be done. There is one queue, and peers are given chunks of
it as they have room: for each core one chunk that runs and one that waits. Waiting chunks may be taken back; one that
runs is never moved, only copied. Dask's work stealing moved a task 45 times and lost others; a copy cannot be lost.

An item is in one of these places:

    waiting ---> live: in a chunk at a peer, or in two ---> done: it has exactly one result
       ^             | its chunk is over without its result      ^
       +-------------+                                           |
                     +---- its function raised and no retry is left, or its process crashed too often

An item that needs the same result of several peers waits again after each, for one that has not made its call yet.
Where results are merged, the calls that merge are items too, which wait once all their parts are done.

Lost peers, pauses and chunks that are taken back cost a call nothing.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Sequence

from axonp2p.client.run.standing_still import Durations, stands_still_from
from axonp2p.errors import PeerMisbehaved
from axonp2p.kinds.map.chunk_sizes import ChunkSizes
from axonp2p.kinds.map.messages import MOST_CALLS, HeldChunk
from axonp2p.kinds.map.opinions.quorum import Accepted, Undecided, Vote, verdict
from axonp2p.kinds.map.queue_actions import (
    CRASHES,
    Distrust,
    KeepCrash,
    KeepOpinions,
    KeepResults,
    KeepUndecided,
    LiveChunk,
    QueueAction,
    QueuePlan,
    SetAside,
    StartChunk,
    StopChunk,
)
from axonp2p.kinds.map.waiting_items import WaitingItems

MOST_CORES = 128
"""Of one peer, for which it is given chunks."""
MOST_CHUNK_BYTES = 512 * 1024
"""What the calls of a chunk may take of its message; one call may take more."""
FAULTS = 2
"""In so many chunks a peer may fail that others could do."""
MOST_AWAITED = 4096
"""Items that wait for another opinion; while there are more, no new ones are begun."""
CLEAR = 2
"""So many who agree show that one who found another thing is wrong."""


class ChunkQueue:
    """One life of a job. `now` is monotonic seconds. Say who is there with `joined`, then `begin`."""

    def __init__(self, plan: QueuePlan) -> None:
        self._plan = plan
        self._tree = plan.tree
        items, turns = (plan.tree.calls, plan.tree.leaves) if plan.tree else (plan.items, None)
        self._items = WaitingItems(items, plan.finished, turns)
        self._closed = plan.closed
        self._next_chunk = plan.first_chunk
        self._chunks: dict[int, LiveChunk] = {}
        """By number."""
        self._at: dict[int, dict[int, LiveChunk]] = {}
        """By rank, in their order."""
        self._cores: dict[int, int] = {}
        self._leaving: set[int] = set()
        self._paused: dict[int, float] = {}
        """Since when."""
        self._silent: set[int] = set()
        self._aside: set[int] = set()
        self._raised: Counter[int] = Counter()
        self._crashed: Counter[int] = Counter()
        self._failed_at: dict[int, dict[int, int]] = {}
        """Of items that were not done in spite of it: the ranks where they failed, and in which chunk."""
        self._faults: dict[int, dict[int, int]] = {}
        """By rank: chunks in which it failed, each with an item that another peer did."""
        self._opinions: dict[int, tuple[int, list[Vote]]] = {}
        """Of items without a result for which one opinion was not enough: how many must be equal, and those so far."""
        self._peers: dict[int, str] = {}
        """Who is at each rank: the same peer may come back at another one."""
        self._outvoted = set(plan.outvoted)
        for item, opinions in plan.opinions.items():
            if self._items.is_known(item) and not self._items.is_done(item):
                self._opinions[item] = opinions
                self._items.put_back(item)
        for call in range(plan.tree.leaves, plan.tree.calls) if plan.tree else ():
            self._put_back_if_ready(call)
        self._sizes = ChunkSizes(plan.chunk)
        self._durations = Durations()
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
        self._peers[rank] = peer or str(rank)
        self._cores[rank] = min(max(1, cores), MOST_CORES)
        self._at[rank] = {}
        if self._peers[rank] in self._outvoted:
            self._aside.add(rank)
            self._actions.append(SetAside(rank, ()))
            return self._go_on(now)
        for held in has:
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
        if rank in self._cores:
            self._paused.setdefault(rank, now)
        return self._go_on(now)

    def silent(self, rank: int, now: float) -> list[QueueAction]:
        """It does not answer."""
        if rank in self._cores:
            self._silent.add(rank)
        return self._go_on(now)

    def resumed(self, rank: int, now: float) -> list[QueueAction]:
        """It goes on."""
        self._paused.pop(rank, None)
        return self._go_on(now)

    def answers(self, rank: int, now: float) -> list[QueueAction]:
        """It says something again."""
        if rank not in self._silent:
            return []
        self._silent.discard(rank)
        return self._go_on(now)

    def leaves(self, rank: int, now: float) -> list[QueueAction]:
        """The peer's owner wants it back soon."""
        if rank in self._cores:
            self._leaving.add(rank)
            for chunk in self._at[rank].values():
                self._ask_back(chunk)
        return self._go_on(now)

    def begun(self, rank: int, number: int, now: float) -> list[QueueAction]:
        """The first call of a chunk begins."""
        chunk = self._at.get(rank, {}).get(number)
        if chunk is not None and chunk.begun is None:
            chunk.begun = max(now, self._now)
        return self._go_on(now)

    def awaited(self, rank: int, number: int) -> tuple[int, ...]:
        """Calls whose results may come from a chunk, in the order in which they will."""
        chunk = self._at.get(rank, {}).get(number)
        return chunk.left if chunk is not None else ()

    def results(
        self, rank: int, number: int, raised: Sequence[bool], now: float, groups: Sequence[int] = ()
    ) -> list[QueueAction]:
        """The next results of a chunk: for each whether its function raised an exception.

        `groups`: for each which of the earlier opinions of its item it is equal to, as these are numbered there.
        Raises `PeerMisbehaved` for more than `awaited`.
        """
        chunk = self._at.get(rank, {}).get(number)
        if chunk is None or len(raised) > len(chunk.left):
            raise PeerMisbehaved("it has results that nobody waits for")
        items = chunk.left[: len(raised)]
        chunk.came += len(items)
        if self._peers[rank] in self._outvoted:
            self._items.release(items)
            return self._go_on(now)
        chunk.quorum = chunk.quorum or self._plan.quorum(rank)
        kept: list[tuple[int, int]] = []
        waits: dict[int, list[tuple[int, int]]] = {}
        verdicts: dict[int, Accepted] = {}
        for place, (item, error) in enumerate(zip(items, raised, strict=True)):
            if self._items.is_done(item) or self.has_opinion(rank, item) or item in chunk.void:
                continue
            if error:
                self._raised[item] += 1
                if self._raised[item] <= self._plan.retries:
                    self._failed_at.setdefault(item, {})[rank] = number
                    continue
            needed, opinions = self._opinions.get(item, (chunk.quorum, []))
            opinions.append(Vote(self._peers[rank], groups[place] if groups else 0))
            match verdict(opinions, needed):
                case Accepted() as accepted:
                    if len(opinions) > 1:
                        verdicts[item] = accepted
                    self._finish(item, rank, good=not error)
                    kept.append((place, item))
                case Undecided(peers):
                    self._finish(item, rank, good=False)
                    self._actions.append(KeepUndecided(rank, item, peers))
                case _:
                    self._opinions[item] = (needed, opinions)
                    waits.setdefault(needed, []).append((place, item))
        self._items.release(items)
        for needed, waiting in waits.items():
            places, undone = zip(*waiting, strict=True)
            self._actions.append(KeepOpinions(rank, number, places, undone, needed))
        if kept:
            places, done = zip(*kept, strict=True)
            self._actions.append(KeepResults(rank, number, places, done, verdicts))
        for item, accepted in verdicts.items():
            self._judge(item, accepted)
        return self._go_on(now)

    def reopen(self, items: Iterable[int], now: float) -> list[QueueAction]:
        """The results of these do not count any more, nor do those that they are part of."""
        items = set(items)
        ancestors = self._tree.ancestors_of(items) if self._tree else set[int]()
        for item in ancestors:
            self._opinions.pop(item, None)
        for chunk in self._chunks.values():
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
        chunk = self._at.get(rank, {}).pop(number, None)
        if chunk is None:
            return []
        del self._chunks[number]
        seconds = min(seconds, now - chunk.begun) if chunk.begun is not None else seconds
        if not chunk.left and chunk.items:
            self._sizes.took(rank, self._plan.group(chunk.items[0]), len(chunk.items), seconds)
            self._durations.add(seconds / len(chunk.items))
        if crashed and chunk.left and not chunk.stopped:
            self._crash(chunk, crashed)
        self._items.release(chunk.left)
        return self._go_on(now)

    def hold(self, now: float) -> list[QueueAction]:
        """Begin nothing more; what runs goes on to its end."""
        self._held = True
        for chunk in self._chunks.values():
            self._ask_back(chunk)
        return self._go_on(now)

    def due(self, now: float) -> list[QueueAction]:
        """The deadline has come."""
        return self._go_on(now)

    # --- what may be asked ---

    def has_opinion(self, rank: int, item: int) -> bool:
        """Whether the peer there has given its opinion of an item that waits for others."""
        return any(one.peer == self._peers.get(rank) for one in self._opinions.get(item, (0, []))[1])

    @property
    def opinions_awaited(self) -> int:
        """Items that wait for another opinion."""
        return len(self._opinions)

    @property
    def lacks_voices(self) -> bool:
        """Whether nothing can go on until another peer comes: all that are there have given their opinion."""
        stuck = not self._held and not self._chunks and self._items.waiting > 0 and bool(self._opinions)
        return stuck and not self._paused and not self._silent

    def other_peers(self, rank: int) -> int:
        """Peers that may be asked for another opinion."""
        return len({self._peers[one] for one in self._cores if one not in self._aside} - {self._peers.get(rank)})

    @property
    def over_all(self) -> bool:
        """Whether each item has its result, and no more will come."""
        return self._closed and not self._items.undone

    @property
    def resting(self) -> bool:
        """Whether nothing runs."""
        return all(chunk.stopped for chunk in self._chunks.values())

    @property
    def items(self) -> int:
        """How many there are."""
        return self._items.items

    @property
    def done(self) -> int:
        """How many have their result."""
        return self._items.items - self._items.undone

    def chunks_at(self, rank: int) -> tuple[LiveChunk, ...]:
        """Those that a peer has."""
        return tuple(self._at.get(rank, {}).values())

    def next_deadline(self) -> float | None:
        """When to call `due` if nothing else happens."""
        if not self._may_copy:
            return None
        moments = [moment for chunk in self._alone() if (moment := self._still_from(chunk)) > self._now]
        deadline = min(moments, default=math.inf)
        return None if deadline == math.inf else deadline

    # --- how calls end ---

    def _finish(self, item: int, rank: int, *, good: bool) -> None:
        self._items.finish(item)
        self._raised.pop(item, None)
        self._crashed.pop(item, None)
        self._opinions.pop(item, None)
        for failed, number in self._failed_at.pop(item, {}).items():
            if good and failed != rank:
                self._fault(failed, number, item)
        if self._tree and (parent := self._tree.parent_of(item)) is not None:
            self._put_back_if_ready(parent)

    def _fault(self, rank: int, number: int, item: int) -> None:
        if rank not in self._cores or rank in self._aside:
            return
        faults = self._faults.setdefault(rank, {})
        faults[number] = item
        if len(faults) >= FAULTS:
            self._aside.add(rank)
            self._actions.append(SetAside(rank, tuple(sorted(faults.values()))))

    def _judge(self, item: int, accepted: Accepted) -> None:
        """Peers that were outvoted by several get no more, and what they alone said is forgotten."""
        if len(accepted.agreed) < CLEAR:
            return
        for peer in accepted.outvoted:
            if peer in self._outvoted:
                continue
            self._outvoted.add(peer)
            for waiting, (needed, opinions) in list(self._opinions.items()):
                if any(one.peer == peer for one in opinions):
                    self._opinions[waiting] = (needed, [one for one in opinions if one.peer != peer])
            rank = next((rank for rank, one in self._peers.items() if one == peer), None)
            if rank is not None:
                self._aside.add(rank)
            self._actions.append(Distrust(peer, rank, len(accepted.agreed), item))

    def _crash(self, chunk: LiveChunk, reason: str) -> None:
        item = chunk.left[0]
        if self._items.is_done(item):
            return
        self._crashed[item] += 1
        self._failed_at.setdefault(item, {})[chunk.rank] = chunk.number
        if self._crashed[item] >= CRASHES:
            self._finish(item, chunk.rank, good=False)
            self._actions.append(KeepCrash(chunk.rank, item, reason))

    # --- how chunks begin and end ---

    def _go_on(self, now: float) -> list[QueueAction]:
        self._now = max(self._now, now)
        for chunk in list(self._chunks.values()):
            if not chunk.stopped and all(self._items.is_done(item) for item in chunk.left) and chunk.left:
                self._stop(chunk)
        if not self._held:
            self._fill()
            self._take_back()
            self._copy()
        actions, self._actions = self._actions, []
        return actions

    def _fill(self) -> None:
        """Give chunks to those that have room, first to those that have least."""
        while waiting := self._items.waiting:
            places = 2 * sum(self._cores[rank] for rank in self._able())
            started = False
            for rank in sorted(self._able(), key=lambda one: (self._load(one), one)):
                if self._load(rank) >= 2:
                    break
                if items := self._take(rank, waiting, places):
                    self._start(rank, tuple(items))
                    started = True
                    break
            if not started:
                return

    def _take(self, rank: int, waiting: int, places: int) -> list[int]:
        """Calls of one group for that peer's next chunk, as many as suit it."""
        group: int | None = None
        most, left = 1, MOST_CHUNK_BYTES

        def fits(item: int) -> bool:
            nonlocal group, most, left
            if not self._may_take(rank, item):
                return False
            left -= self._plan.weigh(item)
            if group is None:
                group = self._plan.group(item)
                most = self._sizes.next(rank, group, waiting, places)
            elif left < 0 or most <= 1 or self._plan.group(item) != group:
                return False
            else:
                most -= 1
            return True

        return self._items.take(MOST_CALLS, fits, new=len(self._opinions) < MOST_AWAITED)

    def _take_back(self) -> None:
        """Chunks that wait behind others, for cores that have nothing."""
        wanted = sum(self._idle(rank) for rank in self._able()) - self._coming_back
        if wanted <= 0:
            return
        crowded = sorted((rank for rank in self._at if self._load(rank) > 1), key=self._load, reverse=True)
        behind = [
            chunk for rank in crowded for chunk in reversed(self._at[rank].values()) if self._may_come_back(chunk)
        ]
        idle = [rank for rank in self._able() if self._idle(rank)]
        # One that nobody else may take would be given out again to its own peer, and so on.
        useful = [chunk for chunk in behind if any(self._may_take(rank, i) for rank in idle for i in chunk.left)]
        for chunk in useful[:wanted]:
            self._ask_back(chunk)

    def _copy(self) -> None:
        if not self._may_copy:
            return
        since = ((self._still_from(chunk), chunk.number) for chunk in self._alone())
        still = sorted(one for one in since if one[0] <= self._now)
        for _, number in still:
            slow = self._chunks[number]
            left = tuple(item for item in slow.left if not self._items.is_done(item))
            able = [
                rank
                for rank in self._able()
                if rank != slow.rank
                and self._idle(rank)
                and not any(rank in self._failed_at.get(i, {}) or self.has_opinion(rank, i) for i in left)
            ]
            if left and able:
                self._start(min(able, key=lambda one: (self._load(one), one)), left, copy_of=slow.rank)

    def _start(self, rank: int, items: tuple[int, ...], copy_of: int | None = None) -> None:
        chunk = LiveChunk(self._next_chunk, rank, items)
        self._next_chunk += 1
        self._put(chunk)
        self._actions.append(StartChunk(rank, chunk.number, items, copy_of))

    def _put(self, chunk: LiveChunk) -> None:
        self._chunks[chunk.number] = self._at[chunk.rank][chunk.number] = chunk
        self._items.hold(chunk.items)

    def _stop(self, chunk: LiveChunk) -> None:
        chunk.stopped = True
        self._actions.append(StopChunk(chunk.rank, chunk.number))

    def _ask_back(self, chunk: LiveChunk) -> None:
        if chunk.begun is None and not chunk.asked_back and not chunk.stopped:
            chunk.asked_back = True
            self._actions.append(StopChunk(chunk.rank, chunk.number, only_waiting=True))

    # --- small questions ---

    def _able(self) -> list[int]:
        return [
            rank
            for rank in self._cores
            if rank not in self._leaving
            and rank not in self._paused
            and rank not in self._silent
            and rank not in self._aside
        ]

    def _may_take(self, rank: int, item: int) -> bool:
        """Whether that peer has not given its opinion, and has not failed where others have not."""
        if self.has_opinion(rank, item) or not self._is_ready(item):
            return False
        failed = self._failed_at.get(item, {})
        return rank not in failed or all(other in failed for other in self._able())

    def _is_ready(self, item: int) -> bool:
        """Whether there is all that it merges, if it merges anything."""
        return not self._tree or all(self._items.is_done(part) for part in self._tree.children_of(item))

    def _put_back_if_ready(self, merge: int) -> None:
        if not self._items.is_done(merge) and not self._items.is_live(merge) and self._is_ready(merge):
            self._items.put_back(merge)

    def _load(self, rank: int) -> float:
        return len(self._at[rank]) / self._cores[rank]

    def _idle(self, rank: int) -> int:
        """Cores that have nothing to do."""
        return max(0, self._cores[rank] - len(self._at[rank]))

    @property
    def _coming_back(self) -> int:
        return sum(chunk.asked_back and chunk.begun is None for chunk in self._chunks.values())

    def _may_come_back(self, chunk: LiveChunk) -> bool:
        return chunk.begun is None and not chunk.asked_back and self._is_alone(chunk)

    @property
    def _may_copy(self) -> bool:
        # Whoever is idle now found nothing to take.
        return not self._held and any(self._idle(rank) for rank in self._able())

    def _is_alone(self, chunk: LiveChunk) -> bool:
        """Whether no other chunk has its calls. One that was copied shares the first that is left."""
        first = next((item for item in chunk.left if not self._items.is_done(item)), None)
        return first is not None and not chunk.stopped and self._items.chunks_of(first) == 1

    def _alone(self) -> Iterable[LiveChunk]:
        return [chunk for chunk in self._chunks.values() if self._is_alone(chunk)]

    def _still_from(self, chunk: LiveChunk) -> float:
        rank = chunk.rank
        if rank in self._silent or rank in self._aside:
            return -math.inf
        paused, leaving = self._paused.get(rank), rank in self._leaving
        if leaving or chunk.begun is not None:
            too_long = self._durations.too_long(len(chunk.items))
            return stands_still_from(chunk.begun or 0.0, too_long, paused, leaving=leaving)
        # One that waits stands still with those before it.
        running = [other for other in self._at[rank].values() if other.begun is not None and not other.stopped]
        before = min((self._still_from(other) for other in running), default=math.inf)
        return min(before, stands_still_from(math.inf, 0.0, paused, leaving=False))

    # --- who is there ---

    def _forget(self, rank: int) -> list[LiveChunk]:
        chunks = list(self._at.pop(rank, {}).values())
        for chunk in chunks:
            del self._chunks[chunk.number]
            self._items.release(chunk.left)
        self._cores.pop(rank, None)
        self._peers.pop(rank, None)
        self._paused.pop(rank, None)
        self._faults.pop(rank, None)
        for places in (self._leaving, self._silent, self._aside):
            places.discard(rank)
        self._sizes.forget(rank)
        return chunks

    def _take_over(self, rank: int, held: HeldChunk, now: float) -> None:
        """A chunk of an earlier life goes on, where all its calls wait; else it is ended."""
        if held.chunk in self._chunks:
            return
        good = all(
            self._items.is_known(item)
            and not self._items.is_done(item)
            and not self._items.is_live(item)
            and not self.has_opinion(rank, item)
            and not (self._tree and self._tree.merges(item))  # it may merge what has not counted since
            for item in held.items
        ) and len(set(held.items)) == len(held.items)
        chunk = LiveChunk(held.chunk, rank, tuple(held.items) if good else (), begun=now if held.begun else None)
        self._put(chunk)
        if not good:
            self._stop(chunk)
