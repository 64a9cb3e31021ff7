"""Peers that lie about results: what is compared, what counts, who is paid, and what the book of trust knows then."""

from __future__ import annotations

import random
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from axonp2p.client.events.events import JobFinished
from axonp2p.errors import JobFailed, TaskError
from axonp2p.kinds.map.call_forms import CallOutcome, pack_error
from axonp2p.kinds.map.events import ChunkDone, OpinionAwaited, PeerOutvoted, PeerSetAside, ResultsDoubted
from axonp2p.kinds.map.fetched import fetched
from axonp2p.kinds.map.messages import BeginChunk
from axonp2p.kinds.map.opinions.quorum import Vote
from axonp2p.kinds.map.queue import ChunkQueue
from axonp2p.kinds.map.queue_actions import KeepResults, KeepUndecided, QueueAction, QueuePlan, StartChunk, StopChunk
from axonp2p.values.packing import pack_value
from client_cli.map.lines import bar, stays, stays_without_bar
from client_cli.text.kind_text import Shown
from tests.fakes import key_of
from tests.laboratory.virtual_loop import VirtualLoop
from tests.unit.kinds.map.played_calls import CALL_FLOPS, Killed, Life, PlayedPeer, World, raised, watch_disk

pytestmark = pytest.mark.slow

EIGHT = ("heron", "otter", "lynx", "wren", "ibis", "mole", "toad", "pike")
OUTVOTED = "its results differ from those of"


def values(world: World) -> list[Any]:
    return fetched(world.folder.path / "results.sqlite")


def lie(peer: PlayedPeer, number: int) -> None:
    """In every call."""
    peer.outcome = lambda item: CallOutcome(False, pack_value(item * item + number))


def chunks_of(peer: PlayedPeer) -> int:
    return sum(isinstance(order, BeginChunk) for order in peer.orders)


@pytest.mark.parametrize("lies", [(1, 2), (1, 1)])
def test_with_a_quorum_of_three_two_liars_of_eight_spoil_nothing(
    loop: VirtualLoop, tmp_path: Path, lies: tuple[int, int]
) -> None:
    world = World.of(loop, tmp_path, *EIGHT, items=60, fn="task.py:square", quorum=3)
    for rank, number in enumerate(lies):
        lie(world.peers[rank], number)
    life = world.life()
    assert isinstance(loop.run(life.live()), JobFinished)
    assert values(world) == [item * item for item in range(60)]
    assert all(one.agreed == 3 for one in world.results().values())
    assert world.paid == 3 * 60 * CALL_FLOPS, "all that agree are paid, and nobody else"
    aside = {event.peer: event.reason for event in life.events(PeerSetAside)}
    assert aside.keys() == {"heron", "otter"}
    assert all(reason.startswith(OUTVOTED) for reason in aside.values())
    assert life.events(OpinionAwaited)
    assert {event.peer for event in life.events(PeerOutvoted)} == {"heron", "otter"}
    known = world.trust.all()
    assert all(known[key_of(name).peer_id].passed == 0 for name in EIGHT[:2])
    assert all(known[key_of(name).peer_id].passed > 0 for name in EIGHT[2:])


@pytest.mark.parametrize("seed", [1, 2, 3])
@pytest.mark.parametrize("lies", [(1, 2), (1, 1)])
def test_auto_finds_each_liar_within_25_chunks_of_its_own(
    loop: VirtualLoop, tmp_path: Path, seed: int, lies: tuple[int, int]
) -> None:
    world = World.of(loop, tmp_path, *EIGHT, items=600, fn="task.py:square", chunk=2)
    world.chance = random.Random(seed).random
    for rank, number in enumerate(lies):
        lie(world.peers[rank], number)
    life = world.life()
    assert isinstance(loop.run(life.live()), JobFinished)
    aside = {event.peer for event in life.events(PeerSetAside)}
    assert aside == {"heron", "otter"}
    assert all(chunks_of(world.peers[rank]) <= 25 for rank in (0, 1)), [chunks_of(world.peers[r]) for r in (0, 1)]
    wrong = [item for item, value in enumerate(values(world)) if value != item * item]
    assert all(world.results()[item].agreed > 1 for item in wrong), "what a liar alone has said was believed"
    if lies == (1, 2):
        assert not wrong
    made = sum(len(peer.calls) for peer in world.peers.values())
    assert made < 1.5 * 600, "auto costs about a fifth more"


def test_what_only_a_liar_has_said_is_made_again(loop: VirtualLoop, tmp_path: Path) -> None:
    world = World.of(loop, tmp_path, *EIGHT[:3], items=30, fn="task.py:square", chunk=1)
    draws = iter([1.0] * 12)
    world.chance = lambda: next(draws, 0.0)
    lie(world.peers[0], 7)
    life = world.life()
    loop.run(life.live())
    assert values(world) == [item * item for item in range(30)]
    (doubted,) = life.events(ResultsDoubted)
    assert (doubted.peer, doubted.taken) == ("heron", 0)
    assert doubted.again == len(doubted.items) > 1
    assert life.record.results == 30


def test_a_liar_gets_no_calls_of_the_job_in_its_next_life(loop: VirtualLoop, tmp_path: Path) -> None:
    world = World.of(loop, tmp_path, *EIGHT[:4], items=40, fn="task.py:square", quorum=2)
    lie(world.peers[0], 7)
    first = world.life()
    loop.call_later(12, first.driver.leave)
    loop.run(first.live())
    assert first.events(PeerSetAside)
    assert len(world.results()) < 40
    back = world.peers[9] = PlayedPeer("heron")
    lie(back, 7)
    del world.peers[0]
    second = world.life()
    loop.run(second.live())
    assert values(world) == [item * item for item in range(40)]
    assert not back.calls
    assert second.events(PeerSetAside)[0].reason


def test_exceptions_are_compared_by_what_they_say(loop: VirtualLoop, tmp_path: Path) -> None:
    world = World.of(loop, tmp_path, *EIGHT[:3], items=4, fn="task.py:square", quorum=2)
    for peer in world.peers.values():
        plain, trace = peer.outcome, f"in {peer.name}"
        failed = CallOutcome(True, pack_error("ValueError", "no", trace))
        peer.outcome = lambda item, plain=plain, failed=failed: failed if item == 2 else plain(item)
    loop.run(world.life().live())
    found = values(world)
    assert isinstance(found[2], TaskError)
    assert (found[2].kind, found[2].reason) == ("ValueError", "no")
    assert world.results()[2].agreed == 2


def test_where_nobody_can_tell_the_result_is_an_error_that_names_all(loop: VirtualLoop, tmp_path: Path) -> None:
    world = World.of(loop, tmp_path, *EIGHT[:5], items=2, fn="task.py:square", quorum=2)
    for rank, peer in world.peers.items():
        lie(peer, rank)
    life = world.life()
    loop.run(life.live())
    for error in values(world):
        assert isinstance(error, TaskError)
        assert error.kind == "NoQuorum"
        assert all(name in error.reason for name in EIGHT[:5])
    assert world.paid == 0
    assert not life.events(PeerSetAside)


@pytest.mark.parametrize(("agree", "good"), [("close", True), ("exact", False), ("compare.py:same", True)])
def test_numbers_that_honest_machines_round_differently(
    loop: VirtualLoop, tmp_path: Path, agree: str, good: bool
) -> None:
    world = World.of(loop, tmp_path, *EIGHT[:5], items=6, fn="task.py:square", quorum=2, agree=agree)
    world.folder.bundle.mkdir(exist_ok=True)
    (world.folder.bundle / "compare.py").write_text("def same(one, other):\n    return abs(one - other) < 1e-3\n")
    for rank, peer in world.peers.items():
        peer.outcome = lambda item, rank=rank: CallOutcome(False, pack_value(item + 0.1 + rank * 1e-12))
    lie(world.peers[0], 1000)
    life = world.life()
    loop.run(life.live())
    found = values(world)
    if good:
        assert found == [pytest.approx(item + 0.1) for item in range(6)]
        assert {event.peer for event in life.events(PeerOutvoted)} <= {"heron"}
    else:
        assert all(isinstance(value, TaskError) for value in found)


def test_a_comparison_that_fails_ends_the_job(loop: VirtualLoop, tmp_path: Path) -> None:
    world = World.of(loop, tmp_path, *EIGHT[:3], items=6, fn="task.py:square", quorum=2, agree="compare.py:same")
    world.folder.bundle.mkdir(exist_ok=True)
    (world.folder.bundle / "compare.py").write_text("def same(one, other):\n    return one.nothing\n")
    lie(world.peers[0], 1000)
    with pytest.raises(JobFailed, match=r"compare\.py:same failed"):
        loop.run(world.life().live())


@pytest.mark.parametrize("agree", ["close", "compare.py:same"])
def test_a_value_at_which_the_comparison_fails_is_another_one(loop: VirtualLoop, tmp_path: Path, agree: str) -> None:
    world = World.of(loop, tmp_path, *EIGHT[:4], items=6, fn="task.py:square", quorum=2, agree=agree)
    world.folder.bundle.mkdir(exist_ok=True)
    (world.folder.bundle / "compare.py").write_text("def same(one, other):\n    return abs(one - other) < 1e-3\n")
    for peer in world.peers.values():
        peer.outcome = lambda item: CallOutcome(False, pack_value(complex(item, 1)))
    world.peers[0].outcome = lambda item: CallOutcome(False, pack_value(complex(1.7e308, 1.7e308)))
    life = world.life()
    assert isinstance(loop.run(life.live()), JobFinished)
    assert values(world) == [complex(item, 1) for item in range(6)]
    assert {event.peer for event in life.events(PeerOutvoted)} == {"heron"}


def test_too_few_peers_for_the_quorum_are_waited_for_and_then_it_says_so(loop: VirtualLoop, tmp_path: Path) -> None:
    world = World.of(loop, tmp_path, *EIGHT[:3], items=6, fn="task.py:square", quorum=3)
    first = world.life()
    loop.call_later(0.5, first.crew.lose, 0)
    with pytest.raises(JobFailed, match="wait for the opinion of another peer") as told:
        loop.run(first.live())
    assert told.value.fix.startswith("axon resume")
    assert world.results() == {}
    world.peers = {5: world.peers[1], 6: world.peers[2], 7: PlayedPeer("ibis")}
    second = world.life()
    loop.run(second.live())
    assert values(world) == [item * item for item in range(6)]
    assert world.peers[5].calls.count(0) == 1, "its opinion was kept"


def test_a_peer_that_is_alone_is_believed(loop: VirtualLoop, tmp_path: Path) -> None:
    world = World.of(loop, tmp_path, "heron", items=6, fn="task.py:square")
    world.chance = lambda: 0.0
    life = world.life()
    loop.run(life.live())
    assert values(world) == [item * item for item in range(6)]
    assert not life.events(OpinionAwaited)


def test_a_client_that_is_killed_with_opinions_under_way_loses_nothing(loop: VirtualLoop, tmp_path: Path) -> None:
    def one(home: Path, dies_at: int) -> tuple[World, Life]:
        home.mkdir()
        world = World.of(loop, home, *EIGHT[:4], items=4, fn="task.py:square", quorum=2)
        lie(world.peers[0], 7)
        life = world.life(dies_at=dies_at)
        with pytest.MonkeyPatch.context() as patch:
            watch_disk(life, patch)
            if dies_at < 0:
                loop.run(life.live())
            else:
                with pytest.raises(Killed):
                    loop.run(life.live())
        return world, life

    steps = one(tmp_path / "whole", -1)[1].steps
    assert steps > 15
    for dies_at in range(steps):
        world, first = one(tmp_path / str(dies_at), dies_at)
        before = world.results()
        second = world.life()
        loop.run(second.live())
        assert values(world) == [0, 1, 4, 9], first.log
        assert before.items() <= world.results().items(), "a result was had twice"
        assert world.paid == 2 * 4 * CALL_FLOPS, first.log


@pytest.mark.parametrize("seed", range(12))
def test_whatever_liars_and_losses_do_each_item_has_one_right_result(
    loop: VirtualLoop, tmp_path: Path, seed: int
) -> None:
    chance = random.Random(seed)
    world = World.of(loop, tmp_path, *EIGHT[:6], items=30, fn="task.py:square", quorum=3)
    lie(world.peers[0], 1)
    lie(world.peers[1], chance.choice([1, 2]))
    for number in range(5):
        life = world.life(dies_at=-1 if number == 4 else chance.randrange(20, 120))

        def trouble(life: Life = life, number: int = number) -> None:
            rank = chance.choice(sorted(life.crew.present) or [0])
            if chance.random() < 0.5 and len(life.crew.present) > 5:
                life.crew.lose(rank)
            elif len(life.crew.peers) < 12:
                new = max(life.crew.peers) + 1
                life.crew.join(new, PlayedPeer(f"peer{number}-{new}"))

        for moment in sorted(chance.uniform(0, 20) for _ in range(5)):
            loop.call_later(moment, trouble)
        with pytest.MonkeyPatch.context() as patch:
            watch_disk(life, patch)
            try:
                loop.run(life.live())
                break
            except (Killed, JobFailed):
                life.dead = True
        again = 100 * number + 100
        honest = {again + place: PlayedPeer(f"again{number}-{place}") for place in range(5)}
        world.peers = {again + 20: PlayedPeer("heron"), again + 21: PlayedPeer("otter"), **honest}
        lie(world.peers[again + 20], 1)
        lie(world.peers[again + 21], 1)
    assert values(world) == [item * item for item in range(30)]


# --- what a person sees ---


def test_the_bar_says_how_many_wait_for_a_second_opinion() -> None:
    waits = OpinionAwaited(peer="heron", calls=3, first=10, needed=2, awaited=3)
    shown = bar(Shown(failed=2), waits)
    assert shown.headline == "2 failed, 3 wait for a second opinion"
    assert "3 calls from 10 on of heron wait for a second opinion" in stays_without_bar(waits)
    done = ChunkDone(chunk=1, peer="otter", calls=3, first=10, seconds=1.0, done=9, items=20)
    assert bar(shown, done).headline == ""
    taken = stays(ResultsDoubted(peer="heron", again=0, taken=2, items=[4, 5]))
    assert "may be wrong" in taken
    assert "(4, 5)" in taken


# --- the queue alone ---


@settings(max_examples=200, deadline=None)
@given(data=st.data(), quorum=st.integers(2, 4), items=st.integers(1, 12), chunk=st.integers(1, 4))
def test_the_queue_gives_each_item_one_result_whatever_liars_and_losses_do(
    data: st.DataObject, quorum: int, items: int, chunk: int
) -> None:
    queue = ChunkQueue(QueuePlan(items, chunk=chunk, quorum=lambda rank: quorum))
    liars = {f"liar{number}" for number in range(data.draw(st.integers(0, quorum - 1)))}
    names = sorted(liars) + [f"honest{number}" for number in range(2 * quorum)]
    at: dict[int, str] = {}
    chunks: dict[int, dict[int, list[int]]] = {}
    lies: dict[int, list[Any]] = {}
    """Of each item, results without a verdict, one of each group."""
    given_by: dict[int, set[str]] = {}
    results: Counter[int] = Counter()
    found: dict[int, Any] = {}
    said: dict[tuple[int, int, int], Any] = {}

    def obey(actions: list[QueueAction]) -> None:
        for action in actions:
            match action:
                case StartChunk(rank, number, wanted):
                    assert not any(at[rank] in given_by.get(item, ()) for item in wanted), "asked twice"
                    chunks[rank][number] = list(wanted)
                case StopChunk(rank, number):
                    if chunks[rank].pop(number, None) is not None:
                        obey(queue.over(rank, number, 0.0))
                case KeepResults(rank, number, items=done):
                    results.update(done)
                    found.update({item: said[rank, number, item] for item in done})
                case KeepUndecided(item=item):
                    results[item] += 1

    def join(name: str) -> None:
        rank = max(at, default=-1) + 1
        at[rank] = name
        chunks[rank] = {}
        obey(queue.joined(rank, 1, 0.0, peer=name))

    def work(rank: int) -> None:
        for number, left in list(chunks[rank].items())[:1]:
            groups = []
            for item in left:
                value = f"lie {data.draw(st.integers(0, 1))}" if at[rank] in liars else item
                known = lies.setdefault(item, [])
                if value not in known:
                    known.append(value)
                groups.append(known.index(value))
                said[rank, number, item] = value
                given_by.setdefault(item, set()).add(at[rank])
            chunks[rank][number] = []
            obey(queue.results(rank, number, [False] * len(left), 0.0, groups))
            if chunks[rank].pop(number, None) is not None:
                obey(queue.over(rank, number, 0.0, seconds=1.0))

    for name in names:
        join(name)
    obey(queue.begin(0.0))
    for step in range(400):
        if queue.over_all:
            break
        there = [rank for rank in chunks if chunks[rank]]
        assert there, "it stands still"
        rank = data.draw(st.sampled_from(there)) if step < 60 else there[step % len(there)]
        if step < 20 and data.draw(st.integers(0, 9)) == 0:
            del chunks[rank]
            obey(queue.lost(rank, 0.0))
            join(at[rank])
        else:
            work(rank)
    assert queue.over_all
    assert results == Counter(range(items))
    assert all(found.get(item, item) == item for item in range(items))


def test_opinions_of_an_earlier_life_are_asked_of_nobody_again() -> None:
    plan = QueuePlan(3, chunk=1, quorum=lambda rank: 2, opinions={1: (2, [Vote("heron", 0)])})
    queue = ChunkQueue(plan)
    queue.joined(0, 1, 0.0, peer="heron")
    queue.joined(1, 1, 0.0, peer="otter")
    started = [action for action in queue.begin(0.0) if isinstance(action, StartChunk)]
    assert next(action.items for action in started if action.rank == 1) == (1,)
    assert all(action.items != (1,) for action in started if action.rank == 0)


def test_an_error_is_no_verdict_while_it_is_tried_again(loop: VirtualLoop, tmp_path: Path) -> None:
    world = World.of(loop, tmp_path, *EIGHT[:4], items=4, fn="task.py:square", quorum=2, retries=1)
    world.peers[0].outcome = lambda item: raised("OSError")
    loop.run(world.life().live())
    assert values(world) == [0, 1, 4, 9]
