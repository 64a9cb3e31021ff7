"""Whatever the order of joins, losses, pauses, failures and duplicates: each item has one result, and the job ends."""

from __future__ import annotations

from collections import Counter

from hypothesis import given, settings
from hypothesis import strategies as st

from axonp2p.kinds.map.messages import HeldChunk
from axonp2p.kinds.map.queue import ChunkQueue
from axonp2p.kinds.map.queue_actions import (
    KeepCrash,
    KeepResults,
    QueueAction,
    QueuePlan,
    SetAside,
    StartChunk,
    StopChunk,
)
from axonp2p.kinds.map.reduce_tree import ReduceTree

CORES = 2


class World:
    """Peers that make the calls they are given, in whatever order; what they are told is checked."""

    def __init__(self, items: int, retries: int, tree: ReduceTree | None = None) -> None:
        self.queue = ChunkQueue(
            QueuePlan(items, retries=retries, closed=tree is not None, tree=tree, first_chunk=2 * 10**6)
        )
        self.items = items
        self.tree = tree
        self.counted: Counter[int] = Counter()
        """How often each item got a result, those that were taken back too."""
        self.merged: dict[tuple[int, int], list[int]] = {}
        """By chunk and item: of each of its parts, which of its results is merged."""
        self.now = 0.0
        self.next_rank = 0
        self.chunks: dict[int, dict[int, list[int]]] = {}
        """Calls without a result, by rank and chunk."""
        self.running: dict[int, list[int]] = {}
        self.aside: set[int] = set()
        self.paused: set[int] = set()
        self.results: Counter[int] = Counter()
        self.given: set[int] = set()

    def obey(self, actions: list[QueueAction]) -> None:
        for action in actions:
            match action:
                case StartChunk(rank, chunk, items):
                    assert rank in self.chunks.keys() - self.aside - self.paused
                    assert chunk not in self.given, "two chunks of one number"
                    assert items
                    assert len(set(items)) == len(items)
                    assert not any(self.results[item] for item in items), "done again"
                    self.given.add(chunk)
                    self.chunks[rank][chunk] = list(items)
                    self.merge(chunk, items)
                    assert len(self.chunks[rank]) <= 2 * CORES
                case StopChunk(rank, chunk, only_waiting):
                    waits = chunk not in self.running[rank]
                    if self.tree and not waits and not only_waiting and self.chunks[rank].get(chunk):
                        # A result was on its way.
                        self.chunks[rank][chunk].pop(0)
                        self.obey(self.queue.results(rank, chunk, [False], self.now))
                    if chunk in self.chunks[rank] and (waits or not only_waiting):
                        self.end(rank, chunk)
                        self.obey(self.queue.over(rank, chunk, self.now))
                case KeepResults(chunk=chunk, items=items):
                    for item in items:
                        assert all(self.results[part] for part in self.parts_of(item)), "merged of what counts no more"
                        assert self.merged.get((chunk, item), []) == self.parts(item), "merged of what counted once"
                    self.results.update(items)
                    self.counted.update(items)
                case KeepCrash(item=item):
                    self.results[item] += 1
                case SetAside(rank):
                    self.aside.add(rank)
        assert all(count == 1 for count in self.results.values()), "two results of one item"
        held = Counter(item for chunks in self.chunks.values() for items in chunks.values() for item in items)
        assert all(count <= 2 for item, count in held.items() if not self.results[item])

    def merge(self, chunk: int, items: tuple[int, ...]) -> None:
        for item in items:
            if parts := self.parts_of(item):
                assert all(self.results[part] for part in parts), "merged before its parts are there"
                self.merged[chunk, item] = self.parts(item)

    def parts_of(self, item: int) -> range:
        return self.tree.children_of(item) if self.tree else range(0)

    def parts(self, item: int) -> list[int]:
        """Which of its results each part has now."""
        return [self.counted[part] for part in self.parts_of(item)]

    def reopen(self, item: int) -> None:
        assert self.tree
        for one in {item} | self.tree.ancestors_of([item]):
            self.results.pop(one, None)
        self.obey(self.queue.reopen([item], self.now))

    def end(self, rank: int, chunk: int) -> None:
        del self.chunks[rank][chunk]
        if chunk in self.running[rank]:
            self.running[rank].remove(chunk)

    def join(self, has: list[HeldChunk] | None = None) -> None:
        rank, self.next_rank = self.next_rank, self.next_rank + 1
        self.chunks[rank] = {held.chunk: list(held.items) for held in has or []}
        self.running[rank] = [held.chunk for held in has or [] if held.begun]
        self.given.update(self.chunks[rank])
        self.obey(self.queue.joined(rank, CORES, self.now, has or []))

    def work(self, rank: int, how: str, calls: int) -> None:
        """Begin what waits, and go on with the first that runs."""
        for chunk in [chunk for chunk in self.chunks[rank] if chunk not in self.running[rank]]:
            if len(self.running[rank]) < CORES:
                self.running[rank].append(chunk)
                self.obey(self.queue.begun(rank, chunk, self.now))
        if not self.running.get(rank):
            return
        chunk = self.running[rank][0]
        left = self.chunks[rank][chunk]
        came = left[: calls if how != "done" else len(left)]
        if came and how != "crash":
            self.chunks[rank][chunk] = left[len(came) :]
            self.obey(self.queue.results(rank, chunk, [how == "raise"] * len(came), self.now))
        if chunk in self.chunks.get(rank, {}) and (how == "crash" or not self.chunks[rank][chunk]):
            self.end(rank, chunk)
            crashed = "signal 11" if how == "crash" else ""
            self.obey(self.queue.over(rank, chunk, self.now, seconds=0.1 * calls, crashed=crashed))

    def happen(self, rank: int, what: str, calls: int) -> None:
        """To a peer that is there."""
        match what:
            case "lose" | "limit":
                self.lose(rank, own_fault=what == "limit")
            case "pause":
                self.paused.add(rank)
                self.obey(self.queue.paused(rank, self.now))
            case "resume":
                self.paused.discard(rank)
                self.obey(self.queue.resumed(rank, self.now))
                self.obey(self.queue.answers(rank, self.now))
            case "silent":
                self.obey(self.queue.silent(rank, self.now))
            case "leave":
                self.obey(self.queue.leaves(rank, self.now))
            case "done" | "some" | "raise" | "crash":
                self.work(rank, what, calls)

    def lose(self, rank: int, *, own_fault: bool) -> None:
        del self.chunks[rank], self.running[rank]
        self.aside.discard(rank)
        self.paused.discard(rank)
        self.obey(self.queue.lost(rank, self.now, own_fault=own_fault, reason="memory"))


STEPS = st.lists(
    st.tuples(
        st.sampled_from(
            [
                "join",
                "lose",
                "limit",
                "pause",
                "resume",
                "silent",
                "leave",
                "add",
                "drop",
                "done",
                "some",
                "raise",
                "crash",
            ]
        ),
        st.integers(0, 7),
        st.integers(1, 4),
        st.floats(0, 4),
    ),
    max_size=60,
)


@settings(max_examples=300, deadline=None)
@given(steps=STEPS, items=st.integers(0, 30), retries=st.integers(0, 2), held=st.booleans())
def test_each_item_has_exactly_one_result(
    steps: list[tuple[str, int, int, float]], items: int, retries: int, held: bool
) -> None:
    world = World(items, retries)
    if held and items > 3:
        world.join([HeldChunk(-1 + 10**6, [0, 1], True), HeldChunk(10**6, [2], False)])
    world.obey(world.queue.begin(0.0))
    for what, which, calls, seconds in steps:
        world.now += seconds
        ranks = sorted(world.chunks)
        rank = ranks[which % len(ranks)] if ranks else None
        match what:
            case "join":
                world.join()
            case "add":
                world.items += calls
                world.obey(world.queue.add(calls, world.now))
            case "drop" if world.items:
                item = which % world.items
                if world.queue.drop(item):
                    world.results[item] += 1
            case _ if rank is None:
                pass
            case _:
                world.happen(rank, what, calls)
        world.obey(world.queue.due(world.now))
    world.obey(world.queue.close(world.now))
    finish(world)
    assert world.results == Counter(range(world.items))


@settings(max_examples=200, deadline=None)
@given(
    steps=st.lists(
        st.tuples(
            st.sampled_from(["join", "lose", "pause", "resume", "silent", "done", "done", "some", "crash", "reopen"]),
            st.integers(0, 30),
            st.integers(1, 4),
            st.floats(0, 4),
        ),
        max_size=80,
    ),
    leaves=st.integers(1, 80),
    made=st.integers(0, 40),
)
def test_what_is_merged_counts_at_that_moment(steps: list[tuple[str, int, int, float]], leaves: int, made: int) -> None:
    tree = ReduceTree(leaves, fold=1)
    world = World(tree.calls, retries=0, tree=tree)
    world.join()
    world.join()
    world.obey(world.queue.begin(0.0))
    for work in range(made):
        world.work(work % 2, "done", 1)
    for what, which, calls, seconds in steps:
        world.now += seconds
        ranks = sorted(world.chunks)
        rank = ranks[which % len(ranks)] if ranks else None
        match what:
            case "join":
                world.join()
            case "reopen":
                world.reopen(which * calls % tree.calls)
            case _ if rank is None:
                pass
            case _:
                world.happen(rank, what, calls)
        world.obey(world.queue.due(world.now))
    finish(world)
    assert world.results == Counter(range(tree.calls))


def finish(world: World) -> None:
    """One peer that works makes all that is left; those that stand still are lost in the end."""
    world.join()
    last = world.next_rank - 1
    for _ in range(4 * world.items + 20):
        if world.queue.over_all:
            break
        world.now += 1.0
        for rank in sorted(world.chunks):
            if rank not in (last, *world.aside):
                world.lose(rank, own_fault=False)
        if last in world.aside:
            world.join()
            last = world.next_rank - 1
        world.work(last, "done", 1)
    assert world.queue.over_all
