"""Whatever the order of ends, losses and joins: each index has one result, no peer two copies, and the job ends."""

from __future__ import annotations

from collections import Counter

from hypothesis import given, settings
from hypothesis import strategies as st

from axonp2p.kinds.run.copies import CopyScheduler
from axonp2p.kinds.run.copy_actions import CopiesPlan, CopyAction, KeepResult, StartCopy, StopCopy

PEERS = 4


class World:
    """Peers that do what they are told, in whatever order; what is told them is checked."""

    def __init__(self, plan: CopiesPlan) -> None:
        self.plan = plan
        self.copies = CopyScheduler(plan)
        self.now = 0.0
        self.present: set[int] = set()
        self.leaving: set[int] = set()
        self.paused: set[int] = set()
        self.was_paused: set[int] = set()
        """All that ever stood still."""
        self.running: dict[int, tuple[int, int]] = {}
        """By rank, with those that were told to end."""
        self.told: set[int] = set()
        self.holding: dict[int, int] = {}
        """The index whose files lie at the peer, by rank."""
        self.fetching: dict[tuple[int, int], KeepResult] = {}
        """By index and rank: results on their way to the disk."""
        self.results = Counter(plan.finished)
        self.begun: set[tuple[int, int]] = set()
        self.own_ends: Counter[int] = Counter()
        self.failed_at: set[tuple[int, int]] = set()
        self.next_rank = 0

    def obey(self, actions: list[CopyAction]) -> None:
        for action in actions:
            match action:
                case StartCopy(rank, index, attempt):
                    assert rank in self.present - self.paused - self.leaving
                    assert rank not in self.running, "two copies on one peer"
                    assert not self.results[index], "done again"
                    assert (index, attempt) not in self.begun, "two attempts of one number"
                    self.begun.add((index, attempt))
                    self.holding.pop(rank, None)
                    self.running[rank] = (index, attempt)
                case StopCopy(rank, index, attempt):
                    if self.running.get(rank) == (index, attempt):
                        self.told.add(rank)
                case KeepResult():
                    assert not self.results[action.index]
                    before = [rank for index, rank in self.fetching if index == action.index and rank in self.present]
                    assert not (self.plan.together and before), "two results of one index"
                    assert self.was_paused.issuperset(before), "two results of one index, and none stood still"
                    self.fetching[action.index, action.rank] = action
        self.check_second_tries(actions)
        at_once = Counter(index for rank, (index, _) in self.running.items() if rank not in self.told)
        assert all(count <= 2 for count in at_once.values())

    def check_second_tries(self, actions: list[CopyAction]) -> None:
        free = self.present - self.paused - self.leaving - self.running.keys() - self.holding.keys()
        for action in actions:
            if isinstance(action, StartCopy) and (action.index, action.rank) in self.failed_at:
                assert all((action.index, rank) in self.failed_at for rank in free), "where it failed, and others free"

    def join(self) -> None:
        rank, self.next_rank = self.next_rank, self.next_rank + 1
        self.present.add(rank)
        self.obey(self.copies.joined(rank, self.now))

    def lose(self, rank: int, *, own_fault: bool = False) -> None:
        self.present.discard(rank)
        self.leaving.discard(rank)
        self.paused.discard(rank)
        self.holding.pop(rank, None)
        copy = self.running.pop(rank, None)
        if copy and own_fault and rank not in self.told:
            self.own_ends[copy[0]] += 1
            self.failed_at.add((copy[0], rank))
        self.told.discard(rank)
        for name, result in list(self.fetching.items()):
            if result.rank == rank and result.good:
                del self.fetching[name]
        self.obey(self.copies.lost(rank, self.now, own_fault=own_fault and copy is not None))

    def end(self, rank: int, *, good: bool) -> None:
        index, attempt = self.running.pop(rank)
        told = rank in self.told
        self.told.discard(rank)
        if told:
            good = False
        elif good:
            self.holding[rank] = index
        else:
            self.own_ends[index] += 1
            self.failed_at.add((index, rank))
        self.obey(self.copies.exited(rank, index, attempt, self.now, good=good, told=told))

    def keep(self, name: tuple[int, int]) -> None:
        result, index = self.fetching[name], name[0]
        self.fetching = {one: other for one, other in self.fetching.items() if one[0] != index}
        self.results[index] += 1
        assert self.results[index] == 1
        if not result.good and not self.plan.together and self.plan.restart != "always":
            assert self.own_ends[index] >= self.plan.most_ends
        self.holding = {rank: held for rank, held in self.holding.items() if held != index}
        self.obey(self.copies.kept(index, self.now))


def settle(world: World) -> None:
    """From here on nothing goes wrong: the job has to come to its end."""
    for rank in list(world.present):
        if rank in world.paused:
            world.paused.discard(rank)
            world.obey(world.copies.resumed(rank, world.now))
        if rank in world.leaving:
            world.lose(rank)
    while len(world.present) < PEERS:
        world.join()
    for _ in range(200):
        if world.copies.over:
            return
        world.now += 1.0
        world.obey(world.copies.due(world.now))
        for rank in list(world.running):
            world.end(rank, good=True)
        for name in list(world.fetching):
            if name in world.fetching:
                world.keep(name)
    raise AssertionError("the job does not end")


PLANS = st.builds(
    CopiesPlan,
    copies=st.integers(1, PEERS),
    restart=st.sampled_from(["never", "on-failure", "always"]),
    attempts=st.integers(1, 3),
    together=st.booleans(),
    finished=st.just(frozenset[int]()) | st.just(frozenset({0})),
) | st.builds(CopiesPlan, copies=st.integers(5, 9), attempts=st.integers(1, 3))

STEPS = st.lists(st.tuples(st.sampled_from("jlffgggbbkkkprht"), st.integers(0, 20)), max_size=60)


@settings(max_examples=300, deadline=None)
@given(PLANS, STEPS)
def test_each_index_has_one_result_whatever_happens(plan: CopiesPlan, steps: list[tuple[str, int]]) -> None:
    world = World(plan)
    world.join()
    world.join()
    world.obey(world.copies.begin(world.now))
    for what, which in steps:
        world.now += 0.7
        present, running, fetching = sorted(world.present), sorted(world.running), sorted(world.fetching)
        one = present[which % len(present)] if present else None
        match what:
            case "j" if len(present) < 2 * PEERS:
                world.join()
            case "l" | "f" if one is not None:
                world.lose(one, own_fault=what == "f" and one in world.running)
            case "g" | "b" if running:
                world.end(running[which % len(running)], good=what == "g")
            case "k" if fetching:
                world.keep(fetching[which % len(fetching)])
            case "p" if one is not None:
                world.paused.add(one)
                world.was_paused.add(one)
                world.obey(world.copies.paused(one, world.now))
            case "r" if one is not None:
                world.paused.discard(one)
                world.obey(world.copies.resumed(one, world.now))
            case "h" if one is not None:
                world.leaving.add(one)
                world.obey(world.copies.leaves(one, world.now))
            case "t":
                world.now += 10.0
                world.obey(world.copies.due(world.now))
    settle(world)
    assert world.results == Counter(range(plan.copies))
    assert world.copies.resting
    assert world.copies.needed == 0
