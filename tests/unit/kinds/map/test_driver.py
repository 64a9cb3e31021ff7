"""The driver of calls: each item has one result, and what was accepted is paid, whatever peers and clients do."""

from __future__ import annotations

import asyncio
import hashlib
import random
from pathlib import Path
from typing import Any

import msgspec
import pytest

from axonp2p.client.events.events import JobFinished, JobPaused, PeerLost
from axonp2p.errors import JobFailed, TaskError
from axonp2p.jobs.lifecycle import JobState
from axonp2p.jobs.messages import HandBack, WorkerPaused, WorkerResumed
from axonp2p.kinds.map.call_forms import CallOutcome, pack_outcomes
from axonp2p.kinds.map.events import CallFailed, CallsDone, ChunkCopied, ChunkCrashed, ChunkDone, PeerSetAside
from axonp2p.kinds.map.fetched import fetched
from axonp2p.kinds.map.kept_end import finish
from axonp2p.kinds.map.messages import (
    AtWork,
    BeginChunk,
    CallResults,
    ChunkBegun,
    EndChunk,
    HeldChunk,
    PrepareCalls,
    ResultPart,
)
from tests.fakes import key_of
from tests.laboratory.virtual_loop import VirtualLoop
from tests.unit.kinds.map.played_calls import (
    CALL_FLOPS,
    Killed,
    Life,
    PlayedPeer,
    World,
    raised,
    watch_disk,
)

PEERS = ("heron", "otter", "lynx", "wren")


def all_done(world: World, life: Life, items: int = 12) -> None:
    """Each item has its result, equal to a plain loop's."""
    assert fetched(world.folder.path / "results.sqlite") == [item * item for item in range(items)]
    assert life.record.state is JobState.FINISHED
    assert (life.record.results, life.record.failed) == (items, 0)


# --- a job that goes well ---


def test_each_item_has_its_result_and_its_pay(loop: VirtualLoop, tmp_path: Path) -> None:
    world = World.of(loop, tmp_path, *PEERS)
    life = world.life()
    last = loop.run(life.live())
    assert isinstance(last, JobFinished)
    all_done(world, life)
    assert sorted(item for peer in world.peers.values() for item in peer.calls) == list(range(12)), "a call twice"
    assert world.paid == 12 * CALL_FLOPS
    assert [event.done for event in life.events(ChunkDone)][-1] == 12
    (table,) = life.events(CallsDone)
    assert (table.items, table.done, table.failed, table.copied) == (12, 12, 0, 0)
    assert all(one.key == key_of(one.peer).peer_id for one in world.results().values())


def test_results_are_on_the_disk_before_they_are_told_and_paid(
    loop: VirtualLoop, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    world = World.of(loop, tmp_path, "heron", items=1, fn="task.py:square")
    life = world.life()
    watch_disk(life, monkeypatch)
    loop.run(life.live())
    log = life.log[life.log.index("results [0]") :]
    assert log[:2] == ["results [0]", "written"]
    assert log.index("numbered [0]") < log.index("job.json: 1 results, 1 numbered") < log.index("asked [0]")


@pytest.mark.slow
def test_chunks_grow_where_calls_are_short(loop: VirtualLoop, tmp_path: Path) -> None:
    world = World.of(loop, tmp_path, *PEERS, items=2000, fn="task.py:square")
    for peer in world.peers.values():
        peer.seconds = lambda item: 0.0005
    life = world.life()
    loop.run(life.live())
    all_done(world, life, 2000)
    chunks = [order for peer in world.peers.values() for order in peer.orders if isinstance(order, BeginChunk)]
    assert len(chunks) < 120, "a chunk for each few calls"


def test_one_peer_does_not_hold_more_than_one_long_call_and_the_next(loop: VirtualLoop, tmp_path: Path) -> None:
    world = World.of(loop, tmp_path, *PEERS, items=16, fn="task.py:square")
    for peer in world.peers.values():
        peer.seconds = lambda item: 60.0
    began = loop.time()
    loop.run(world.life().live())
    assert loop.time() - began < 4 * 60 + 5


# --- calls that fail ---


def test_an_exception_is_the_result_unless_there_are_retries(loop: VirtualLoop, tmp_path: Path) -> None:
    world = World.of(loop, tmp_path, *PEERS)
    for peer in world.peers.values():
        plain = peer.outcome
        peer.outcome = lambda item, plain=plain: raised("ValueError") if item == 5 else plain(item)
    life = world.life()
    loop.run(life.live())
    values = fetched(world.folder.path / "results.sqlite")
    assert isinstance(values[5], TaskError)
    assert (values[5].kind, values[5].reason) == ("ValueError", "no")
    assert life.record.failed == 1
    (failed,) = life.events(CallFailed)
    assert (failed.item, failed.kind) == (5, "ValueError")
    assert sum(peer.calls.count(5) for peer in world.peers.values()) == 1


def test_with_retries_a_call_is_made_again_elsewhere(loop: VirtualLoop, tmp_path: Path) -> None:
    world = World.of(loop, tmp_path, *PEERS, items=12, fn="task.py:square", retries=1)
    bad = world.peers[0]
    bad.outcome = lambda item: raised("OSError")
    life = world.life()
    loop.run(life.live())
    all_done(world, life)
    (aside,) = life.events(PeerSetAside)
    assert aside.peer == "heron"
    assert life.crew.dismissed[0].startswith("it failed in calls that others could do")


def test_a_call_whose_process_crashes_each_time_is_an_error_after_four(loop: VirtualLoop, tmp_path: Path) -> None:
    world = World.of(loop, tmp_path, *PEERS)
    for peer in world.peers.values():
        plain = peer.outcome
        peer.outcome = lambda item, plain=plain: "signal 11" if item == 3 else plain(item)
    life = world.life()
    loop.run(life.live())
    values = fetched(world.folder.path / "results.sqlite")
    assert isinstance(values[3], TaskError)
    assert values[3].kind == "Crashed"
    assert "signal 11" in values[3].message
    assert len(life.events(ChunkCrashed)) == 4
    assert [value for item, value in enumerate(values) if item != 3] == [i * i for i in range(12) if i != 3]
    assert not life.events(PeerSetAside), "nobody could do it"


def test_a_call_over_the_memory_costs_its_peer_and_counts(loop: VirtualLoop, tmp_path: Path) -> None:
    world = World.of(loop, tmp_path, *PEERS)
    life = world.life()
    loop.call_later(0.5, lambda: life.crew.lose(0, "it used too much memory", limit="memory"))
    loop.run(life.live())
    all_done(world, life)


# --- peers that go, stand still or lie ---


def test_calls_of_a_lost_peer_are_made_elsewhere(loop: VirtualLoop, tmp_path: Path) -> None:
    world = World.of(loop, tmp_path, *PEERS)
    life = world.life()
    for rank, at in ((0, 0.4), (1, 1.6), (2, 2.2)):
        loop.call_later(at, life.crew.lose, rank)
    loop.run(life.live())
    all_done(world, life)
    assert len(life.events(PeerLost)) == 3


def test_a_peer_that_stands_still_is_not_waited_for(loop: VirtualLoop, tmp_path: Path) -> None:
    world = World.of(loop, tmp_path, *PEERS, items=40, fn="task.py:square")
    life = world.life()
    loop.call_later(2.5, world.peers[1].freeze)
    began = loop.time()
    loop.run(life.live())
    all_done(world, life, 40)
    assert loop.time() - began < 20, "even time is 10 s"
    assert {event.slow_peer for event in life.events(ChunkCopied)} == {"otter"}


def keep_all(world: World, rank: int) -> None:
    """That peer takes chunks, says that it is there whenever it is asked, and never begins one or gives it back."""
    world.peers[rank].deaf = (BeginChunk, EndChunk)


@pytest.mark.parametrize("items", [1, 12])
def test_calls_that_a_peer_does_not_begin_are_made_elsewhere(loop: VirtualLoop, tmp_path: Path, items: int) -> None:
    world = World.of(loop, tmp_path, *PEERS[:2], items=items, fn="task.py:square")
    keep_all(world, 0)
    life = world.life()
    loop.run(life.live(), 300)
    all_done(world, life, items)
    assert {event.slow_peer for event in life.events(ChunkCopied)} == {"heron"}


def test_a_peer_that_gives_nothing_back_does_not_keep_a_job_from_being_paused(
    loop: VirtualLoop, tmp_path: Path
) -> None:
    world = World.of(loop, tmp_path, *PEERS[:2])
    keep_all(world, 0)
    life = world.life()
    loop.call_later(1.5, life.driver.pause)
    assert isinstance(loop.run(life.live(), 300), JobPaused)
    assert life.record.results < 12


def test_a_silent_peer_is_lost_and_a_job_without_peers_says_so(loop: VirtualLoop, tmp_path: Path) -> None:
    world = World.of(loop, tmp_path, "heron")
    life = world.life()
    loop.call_later(2.5, world.peers[0].freeze)
    with pytest.raises(JobFailed, match="no peers are left"):
        loop.run(life.live())
    assert len(world.results()) == 2
    assert world.paid == 2 * CALL_FLOPS
    assert life.record.results == 2


def test_a_peer_that_works_for_long_and_answers_is_not_lost(loop: VirtualLoop, tmp_path: Path) -> None:
    world = World.of(loop, tmp_path, "heron", items=2, fn="task.py:square")
    world.peers[0].seconds = lambda item: 600.0
    life = world.life()
    loop.run(life.live())
    all_done(world, life, 2)


def test_a_paused_peer_keeps_its_calls_while_nobody_else_has_time(loop: VirtualLoop, tmp_path: Path) -> None:
    world = World.of(loop, tmp_path, *PEERS)
    life = world.life()

    def pause() -> None:
        world.peers[0].freeze()
        life.crew.listener.owner_says(0, WorkerPaused(reason="its owner is back"))

    loop.call_later(0.5, pause)
    loop.run(life.live())
    all_done(world, life)


def test_a_peer_that_is_wanted_back_gets_nothing_more(loop: VirtualLoop, tmp_path: Path) -> None:
    world = World.of(loop, tmp_path, *PEERS)
    life = world.life()
    loop.call_later(1.5, lambda: life.crew.listener.owner_says(0, HandBack(reason="wanted", seconds=30)))
    loop.run(life.live())
    all_done(world, life)
    assert len(world.peers[0].calls) <= 2


def wrong_hash(said: CallResults, data: bytes) -> tuple[CallResults, bytes]:
    return msgspec.structs.replace(said, sha256=bytes(32)), data


def no_value(said: CallResults, data: bytes) -> tuple[CallResults, bytes]:
    data = pack_outcomes([CallOutcome(False, b"\xc1")])
    return msgspec.structs.replace(said, size=len(data), sha256=hashlib.sha256(data).digest()), data


def too_large(said: CallResults, data: bytes) -> tuple[CallResults, bytes]:
    return msgspec.structs.replace(said, size=2**31), data


def too_many(said: CallResults, data: bytes) -> tuple[CallResults, bytes]:
    data = pack_outcomes([CallOutcome(False, b"\x01")] * 999)
    said = msgspec.structs.replace(said, calls=999, size=len(data), sha256=hashlib.sha256(data).digest())
    return said, data


@pytest.mark.parametrize("lie", [wrong_hash, no_value, too_large, too_many])
def test_a_worker_whose_results_are_none_is_out(loop: VirtualLoop, tmp_path: Path, lie: Any) -> None:
    world = World.of(loop, tmp_path, *PEERS)
    world.peers[0].mangle = lie
    life = world.life()
    loop.run(life.live())
    all_done(world, life)
    assert 0 in life.crew.dismissed
    assert world.paid == 12 * CALL_FLOPS


def test_parts_of_results_are_bounded(loop: VirtualLoop, tmp_path: Path) -> None:
    world = World.of(loop, tmp_path, *PEERS, items=4, fn="task.py:square", most_result=1000)
    life = world.life()

    def flood() -> None:
        for number in range(4):
            life.crew.heard(0, ResultPart(chunk=1, offset=number * 900_000), bytes(900_000))

    loop.call_later(0.5, flood)
    loop.run(life.live())
    all_done(world, life, 4)
    assert "more than" in life.crew.dismissed[0]


class InventingPeer(PlayedPeer):
    """It says that an earlier life gave it calls, and has results of them at once."""

    def obey(self, order: Any, payload: bytes) -> None:
        if isinstance(order, PrepareCalls):
            held = [HeldChunk(number + 5, [number % 12], True) for number in range(512)]
            self.said(AtWork(cores=1, chunks=held), b"")
            for chunk in held:
                data = pack_outcomes([self.outcome(chunk.items[0])])  # type: ignore[list-item]
                said = CallResults(
                    chunk=chunk.chunk, first=chunk.items[0], calls=1, size=len(data),
                    sha256=hashlib.sha256(data).digest(), cpu_seconds=1e6,
                )  # fmt: skip
                self.said(said, data)
        else:
            super().obey(order, payload)


def test_calls_that_a_new_peer_says_it_has_are_neither_taken_nor_paid(loop: VirtualLoop, tmp_path: Path) -> None:
    world = World.of(loop, tmp_path, *PEERS[:2])
    world.peers[1] = InventingPeer("otter")
    life = world.life()
    loop.run(life.live())
    all_done(world, life)
    assert sorted(item for peer in world.peers.values() for item in peer.calls) == list(range(12))
    assert world.paid == 12 * CALL_FLOPS


def test_a_peer_of_an_earlier_life_holds_no_more_than_it_can_have_and_is_paid_from_then_on(
    loop: VirtualLoop, tmp_path: Path
) -> None:
    world = World.of(loop, tmp_path, *PEERS[:2])
    first = world.life()
    loop.call_later(1.5, first.driver.leave)
    loop.run(first.live())
    paid, done = world.paid, len(world.results())
    assert done < 6
    world.peers = {0: PlayedPeer("heron"), 1: InventingPeer("otter")}
    second = world.life()
    loop.run(second.live())
    all_done(world, second)
    assert world.paid <= paid + (12 - done) * CALL_FLOPS, "its inventions took no time"


def test_a_chunk_that_was_never_given_out_has_not_begun(loop: VirtualLoop, tmp_path: Path) -> None:
    world = World.of(loop, tmp_path, *PEERS)
    life = world.life()
    for number in range(100):
        loop.call_later(1.5, life.crew.heard, 0, ChunkBegun(chunk=10**9 + number))
    loop.run(life.live())
    all_done(world, life)
    assert not any(life.driver._acceptance._since.values())


def test_a_peer_with_a_chunk_that_waits_is_not_paid_twice_for_its_time(loop: VirtualLoop, tmp_path: Path) -> None:
    world = World.of(loop, tmp_path, "heron")
    peer = world.peers[0]
    peer.mangle = lambda said, data: (msgspec.structs.replace(said, cpu_seconds=1e6), data)
    life = world.life()
    said = peer.said
    peer.said = lambda message, payload: None if isinstance(message, ChunkBegun) else said(message, payload)
    loop.run(life.live())
    all_done(world, life)
    assert world.paid == 12 * CALL_FLOPS, "twelve seconds of one core"


# --- the client dies, and comes back ---


def test_a_client_that_is_killed_at_any_line_loses_nothing_and_pays_once(loop: VirtualLoop, tmp_path: Path) -> None:
    def one(home: Path, dies_at: int) -> tuple[World, Life]:
        home.mkdir()
        world = World.of(loop, home, *PEERS, items=6, fn="task.py:square")
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
        all_done(world, second, 6)
        assert before.items() <= world.results().items(), "a result was had twice"
        assert world.paid == 6 * CALL_FLOPS, first.log


@pytest.mark.parametrize("seed", range(10))
def test_a_client_that_is_killed_again_and_again_pays_no_call_twice(
    loop: VirtualLoop, tmp_path: Path, seed: int
) -> None:
    chance = random.Random(seed)
    world = World.of(loop, tmp_path, *PEERS, items=30, fn="task.py:square")
    for peer in world.peers.values():
        seconds = chance.choice([1.0, 2.0, 4.0])
        peer.seconds = lambda item, seconds=seconds: seconds
    for number in range(8):
        life = world.life(dies_at=-1 if number == 7 else chance.randrange(5, 70))
        with pytest.MonkeyPatch.context() as patch:
            watch_disk(life, patch)
            try:
                loop.run(life.live())
                break
            except Killed:
                loop.run(asyncio.sleep(chance.choice([0, 0.7, 30])))
    all_done(world, life, 30)
    # A call that a new life takes over is paid from then on: each life may take over one of each peer.
    assert (30 - len(PEERS) * number) * CALL_FLOPS <= world.paid <= 30 * CALL_FLOPS


def test_calls_that_run_while_the_client_is_away_are_not_begun_again(loop: VirtualLoop, tmp_path: Path) -> None:
    world = World.of(loop, tmp_path, *PEERS, items=4, fn="task.py:square")
    for peer in world.peers.values():
        peer.seconds = lambda item: 100.0
    first = world.life(dies_at=12)
    with pytest.MonkeyPatch.context() as patch:
        watch_disk(first, patch)
        loop.call_later(10, setattr, first, "dies_at", first.steps)
        with pytest.raises((Killed, TimeoutError)):
            loop.run(first.live(), 20)
    first.dead = True
    second = world.life()
    loop.run(second.live())
    all_done(world, second, 4)
    assert sorted(item for peer in world.peers.values() for item in peer.calls) == [0, 1, 2, 3]


def test_paused_it_ends_with_what_runs_and_resumed_it_makes_the_rest(loop: VirtualLoop, tmp_path: Path) -> None:
    world = World.of(loop, tmp_path, *PEERS)
    life = world.life()
    loop.call_later(1.5, life.driver.pause)
    assert isinstance(loop.run(life.live()), JobPaused)
    assert 4 <= life.record.results < 12
    second = world.life()
    assert isinstance(loop.run(second.live()), JobFinished)
    all_done(world, second)
    assert world.paid == 12 * CALL_FLOPS


def test_stopped_it_has_finished_with_what_is_there(loop: VirtualLoop, tmp_path: Path) -> None:
    world = World.of(loop, tmp_path, *PEERS)
    life = world.life()
    loop.call_later(1.5, life.driver.stop)
    assert isinstance(loop.run(life.live()), JobFinished)
    assert life.record.state is JobState.FINISHED
    assert 4 <= life.record.results < 12


def test_left_it_ends_at_once(loop: VirtualLoop, tmp_path: Path) -> None:
    world = World.of(loop, tmp_path, *PEERS)
    life = world.life()
    loop.call_later(1.5, life.driver.leave)
    assert isinstance(loop.run(life.live()), JobPaused)
    kept = world.life()
    kept.journal.enter(JobState.PAUSED)
    done = finish(kept.journal, kept.book, 1.0)
    assert done.rounds == len(world.results()) == 4


# --- anything ---


@pytest.mark.parametrize("seed", range(20))
def test_whatever_happens_each_item_has_one_result(loop: VirtualLoop, tmp_path: Path, seed: int) -> None:
    chance = random.Random(seed)
    world = World.of(loop, tmp_path, *PEERS, items=40, fn="task.py:square", retries=2)
    for peer in world.peers.values():
        seconds = chance.choice([0.1, 1.0, 3.0])
        peer.seconds = lambda item, seconds=seconds: seconds
    for number in range(6):
        last = number == 5
        life = world.life(dies_at=-1 if last else chance.randrange(20, 150))

        def trouble(life: Life = life) -> None:
            rank = chance.choice(sorted(life.crew.present) or [0])
            match chance.randrange(5):
                case 0 if len(life.crew.present) > 1:
                    life.crew.lose(rank, limit=chance.choice(["", "memory"]))
                case 1:
                    life.crew.listener.owner_says(rank, WorkerPaused(reason="its owner is back"))
                    loop.call_later(7, life.crew.listener.owner_says, rank, WorkerResumed())
                case 2:
                    life.crew.heard(rank, AtWork(cores=3))
                case 3 if len(life.crew.present) > 1:
                    life.crew.peers[rank].freeze()
                case 4 if len(life.crew.present) < 6:
                    new = max(life.crew.peers) + 1
                    life.crew.join(new, PlayedPeer(f"peer{new}"))

        for moment in sorted(chance.uniform(0, 30) for _ in range(8)):
            loop.call_later(moment, trouble)
        with pytest.MonkeyPatch.context() as patch:
            watch_disk(life, patch)
            try:
                loop.run(life.live())
                break
            except (Killed, JobFailed):
                life.dead = True
        world.peers = {
            rank: PlayedPeer(f"again{number}-{rank}") for rank in range(100 * number + 100, 100 * number + 103)
        }
    assert isinstance(life.told, list)
    if life.record.state is JobState.FINISHED:
        all_done(world, life, 40)
