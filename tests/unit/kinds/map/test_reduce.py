"""A job whose results are merged, at peers: one value comes of it, whatever peers and clients do."""

from __future__ import annotations

import asyncio
import random
from pathlib import Path
from typing import Any

import msgspec
import pytest

from axonp2p.client.events.events import JobFinished, JobPaused
from axonp2p.errors import JobFailed
from axonp2p.jobs.lifecycle import JobState
from axonp2p.kinds.map.call_forms import OWN_MERGE, CallOutcome, ChunkCalls, open_part, open_values
from axonp2p.kinds.map.events import CallsDone, PeerOutvoted, ResultsDoubted
from axonp2p.kinds.map.fetched import fetched
from axonp2p.kinds.map.kept_end import finish
from axonp2p.kinds.map.messages import BeginChunk, KeepBlob, PrepareCalls, ToWorkerMap
from axonp2p.kinds.map.reduce_tree import ReduceTree
from axonp2p.values.packing import pack_value
from axonp2p.values.unpacking import unpack_value
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

NAMES = ("heron", "otter", "lynx", "wren")
ITEMS, FOLD = 40, 2
TREE = ReduceTree(ITEMS, FOLD)


class MergingPeer(PlayedPeer):
    """A worker that makes a list of an item, and one list of two."""

    def __init__(self, name: str, size: int = 0) -> None:
        super().__init__(name)
        self.outcome = lambda call: CallOutcome(False, pack_value(self.value(call)))
        self.size = size
        """Bytes of the text that each list has beside its items."""
        self.arguments: dict[int, list[Any]] = {}
        self.blobs: dict[str, bytes] = {}

    def value(self, call: int) -> list[Any]:
        if not TREE.merges(call):
            return [*TREE.items_of(call), "x" * self.size] if self.size else list(TREE.items_of(call))
        merged: list[Any] = []
        for one in self.arguments[call]:
            merged += one
        return merged

    def obey(self, order: ToWorkerMap, payload: bytes) -> None:
        if isinstance(order, KeepBlob):
            self.blobs[order.name] = self.blobs.get(order.name, b"") + payload
        if isinstance(order, PrepareCalls):
            assert (order.reduce, order.count, order.fold) == ("task.py:merge", ITEMS, FOLD)
        if isinstance(order, BeginChunk) and payload:
            self.take(order, payload)
        super().obey(order, payload)

    def take(self, order: BeginChunk, payload: bytes) -> None:
        chunk = msgspec.msgpack.decode(payload, type=ChunkCalls)
        assert chunk.functions == [OWN_MERGE]
        for item, call in zip(order.items, chunk.calls, strict=True):
            assert set(call.arguments.names) <= set(order.blobs)
            # Blobs come after the chunk that names them, and before its calls begin.
            self.arguments[item] = Late(self, call.arguments)  # type: ignore[assignment]


class Late:
    """Arguments that are opened when the call is made."""

    def __init__(self, peer: MergingPeer, part: Any) -> None:
        self._peer, self._part = peer, part

    def __iter__(self) -> Any:
        values = open_values(open_part(self._part, self._peer.blobs.__getitem__))
        return iter([unpack_value(value) for value in values])


def merging(loop: VirtualLoop, home: Path, *names: str, size: int = 0, **section: Any) -> World:
    more = {"items": ITEMS, "fold": FOLD, "fn": "task.py:one", "reduce": "task.py:merge", **section}
    world = World.of(loop, home, *names, **more)
    world.peers = {rank: MergingPeer(name, size) for rank, name in enumerate(names)}
    return world


def value(world: World) -> Any:
    return fetched(world.folder.path / "results.sqlite")


def test_one_value_comes_of_all_items_in_their_order(loop: VirtualLoop, tmp_path: Path) -> None:
    world = merging(loop, tmp_path, *NAMES)
    life = world.life()
    assert isinstance(loop.run(life.live()), JobFinished)
    assert value(world) == list(range(ITEMS))
    made = sorted(call for peer in world.peers.values() for call in peer.calls)
    assert made == list(range(TREE.calls)), "a call twice"
    assert world.paid == TREE.calls * CALL_FLOPS
    (done,) = life.events(CallsDone)
    assert (done.items, done.done) == (TREE.calls, TREE.calls)


def test_results_merge_while_others_are_on_their_way(loop: VirtualLoop, tmp_path: Path) -> None:
    world = merging(loop, tmp_path, "heron")
    loop.run(world.life().live())
    calls = world.peers[0].calls
    assert calls.index(TREE.leaves) < calls.index(TREE.leaves - 1)


def test_large_results_go_out_as_blobs_and_leave_no_file(loop: VirtualLoop, tmp_path: Path) -> None:
    world = merging(loop, tmp_path, *NAMES, size=20_000)
    loop.run(world.life().live())
    found = value(world)
    assert [one for one in found if one != "x" * 20_000] == list(range(ITEMS))
    assert any(isinstance(order, KeepBlob) for peer in world.peers.values() for order in peer.orders)
    assert not (world.folder.path / "call-blobs").exists()


def test_a_client_that_is_killed_at_any_line_merges_each_item_once(loop: VirtualLoop, tmp_path: Path) -> None:
    def one(home: Path, dies_at: int) -> tuple[World, Life]:
        home.mkdir()
        world = merging(loop, home, *NAMES)
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
    assert steps > 30
    for dies_at in range(0, steps, 3):
        world, _ = one(tmp_path / str(dies_at), dies_at)
        loop.run(world.life().live())
        assert value(world) == list(range(ITEMS))
        assert world.paid == TREE.calls * CALL_FLOPS


@pytest.mark.parametrize("seed", range(6))
def test_peers_that_go_and_are_slow_change_nothing(loop: VirtualLoop, tmp_path: Path, seed: int) -> None:
    chance = random.Random(seed)
    world = merging(loop, tmp_path, *NAMES)
    life = world.life()
    for rank, peer in world.peers.items():
        seconds = chance.choice([0.2, 1.0, 30.0])
        peer.seconds = lambda item, seconds=seconds: seconds
        if rank:
            loop.call_later(chance.uniform(1, 20), life.crew.lose, rank)
    loop.run(life.live())
    assert value(world) == list(range(ITEMS))


def test_what_a_liar_alone_has_said_is_merged_again_without_it(loop: VirtualLoop, tmp_path: Path) -> None:
    world = merging(loop, tmp_path, *NAMES[:3], chunk=1)
    draws = iter([1.0] * 19)  # merges have been made when the first call is compared
    world.chance = lambda: next(draws, 0.0)
    world.peers[0].outcome = lambda call: CallOutcome(False, pack_value(["lie"]))
    life = world.life()
    loop.run(life.live())
    assert value(world) == list(range(ITEMS))
    assert life.events(PeerOutvoted)
    (doubted,) = life.events(ResultsDoubted)
    assert doubted.again
    assert life.record.results == TREE.calls


def test_a_crash_between_a_doubted_result_and_its_merges_is_mended(loop: VirtualLoop, tmp_path: Path) -> None:
    world = merging(loop, tmp_path, *NAMES)
    life = world.life()
    loop.call_later(4.5, life.driver.pause)
    assert isinstance(loop.run(life.live()), JobPaused)
    merged = [call for call in world.results() if TREE.merges(call)]
    assert merged
    store = life.driver._store
    store.forget([TREE.children_of(merged[0])[0]])
    store.close()
    loop.run(world.life().live())
    assert value(world) == list(range(ITEMS))
    made = [call for peer in world.peers.values() for call in peer.calls]
    assert made.count(merged[0]) == 2


def test_a_call_that_fails_ends_the_job_since_nothing_may_be_missing(loop: VirtualLoop, tmp_path: Path) -> None:
    world = merging(loop, tmp_path, *NAMES)
    for peer in world.peers.values():
        plain = peer.outcome
        peer.outcome = lambda call, plain=plain: raised("ValueError") if call == 3 else plain(call)
    life = world.life()
    with pytest.raises(JobFailed, match="cannot be merged") as failed:
        loop.run(life.live())
    assert failed.value.cause == "call 3: ValueError: no"
    assert world.results()[3].agreed == 2
    assert world.paid == (life.record.results + 1) * CALL_FLOPS, "two peers made the call that failed"


def test_an_exception_of_one_peer_alone_ends_no_job(loop: VirtualLoop, tmp_path: Path) -> None:
    world = merging(loop, tmp_path, *NAMES)
    world.peers[0].outcome = lambda call: raised("ValueError")
    life = world.life()
    assert isinstance(loop.run(life.live()), JobFinished)
    assert value(world) == list(range(ITEMS))
    assert {event.peer for event in life.events(PeerOutvoted)} == {"heron"}


class LatePeer(MergingPeer):
    """It takes two seconds to say that it is there."""

    def obey(self, order: ToWorkerMap, payload: bytes) -> None:
        if isinstance(order, PrepareCalls):
            asyncio.get_running_loop().call_later(2.0, super().obey, order, payload)
        else:
            super().obey(order, payload)


def test_the_first_peer_that_is_there_ends_no_job_before_others_have_said_that_they_are(
    loop: VirtualLoop, tmp_path: Path
) -> None:
    world = merging(loop, tmp_path, *NAMES[:3])
    world.peers |= {rank: LatePeer(NAMES[rank]) for rank in (1, 2)}
    world.peers[0].outcome = lambda call: raised("ValueError")
    world.peers[0].seconds = lambda call: 0.0
    assert isinstance(loop.run(world.life().live()), JobFinished)
    assert value(world) == list(range(ITEMS))


def test_an_author_who_trusts_every_peer_believes_exceptions_too(loop: VirtualLoop, tmp_path: Path) -> None:
    world = merging(loop, tmp_path, *NAMES, quorum=1)
    world.peers[0].outcome = lambda call: raised("ValueError")
    with pytest.raises(JobFailed, match="cannot be merged"):
        loop.run(world.life().live())


@pytest.mark.parametrize("quorum", [None, 1])
def test_a_call_that_failed_at_one_peer_alone_is_made_again_by_the_next_life(
    loop: VirtualLoop, tmp_path: Path, quorum: int | None
) -> None:
    world = merging(loop, tmp_path, "heron", quorum=quorum)
    world.peers[0].outcome = lambda call: raised("ValueError")
    with pytest.raises(JobFailed, match="cannot be merged"):
        loop.run(world.life().live())
    world.peers = {1: MergingPeer("otter")}
    second = world.life()
    assert isinstance(loop.run(second.live()), JobFinished)
    assert value(world) == list(range(ITEMS))
    assert (second.record.results, second.record.failed) == (TREE.calls, 0)


def test_stopped_before_its_end_it_has_no_result_and_can_go_on(loop: VirtualLoop, tmp_path: Path) -> None:
    world = merging(loop, tmp_path, *NAMES)
    life = world.life()
    loop.call_later(2.5, life.driver.stop)
    assert isinstance(loop.run(life.live()), JobPaused)
    second = world.life()
    with pytest.raises(JobFailed, match="not merged yet"):
        finish(second.journal, second.book, 1.0)
    assert isinstance(loop.run(world.life().live()), JobFinished)
    assert life.record.state is JobState.PAUSED
    assert value(world) == list(range(ITEMS))
