"""The driver of one command on N peers: each index one result, each accepted copy paid, whatever peers and disks do."""

from __future__ import annotations

import asyncio
import contextlib
import errno
import hashlib
import random
from functools import partial
from pathlib import Path
from typing import Any

import msgspec
import pytest

from axonp2p.client.events.events import JobFinished, JobPaused, PeerLost
from axonp2p.client.run.processor_time import MOST_CORE_GFLOPS
from axonp2p.errors import JobFailed, SettingsError
from axonp2p.jobs.lifecycle import JobState
from axonp2p.jobs.messages import HandBack, WorkerPaused, WorkerResumed
from axonp2p.jobs.output_messages import OutputFile, OutputPart, OutputsSent
from axonp2p.kinds.run import results
from axonp2p.kinds.run.events import (
    CopyEnded,
    CopyRetried,
    IndexFailed,
    JobResults,
    OutputsKept,
    OutputsLost,
    SpeculativeCopy,
)
from axonp2p.kinds.run.kept_end import finish
from axonp2p.kinds.run.messages import BeginCopy, CopyExited, CopyStarted, EndCopy, NoCopy, ReportCopy, SendOutputs
from axonp2p.kinds.run.results import CopyResult
from axonp2p.wire.codec import Message
from tests.fakes import key_of, make_offer, make_row
from tests.laboratory.virtual_loop import VirtualLoop
from tests.unit.kinds.run.played_crew import COPY_FLOPS, Killed, Life, PlayedPeer, World, watch_disk

PEERS = ("heron", "otter", "lynx", "wren")


def all_done(world: World, life: Life) -> None:
    """Each index has its result, and what was accepted is paid."""
    assert sorted(world.lines()) == list(range(world.spec.run.copies))
    assert life.record.state is JobState.FINISHED
    assert not life.record.unpaid
    good = sum(line.code == 0 for line in world.lines().values())
    assert world.paid == world.owed == good * COPY_FLOPS


# --- a job that goes well ---


def test_each_copy_ends_with_its_files_its_line_and_its_pay(loop: VirtualLoop, tmp_path: Path) -> None:
    world = World(loop, tmp_path, *PEERS)
    life = world.life()
    last = loop.run(life.live())
    assert isinstance(last, JobFinished)
    all_done(world, life)
    assert (last.rounds, last.receipts) == (6, 4)
    for index in range(6):
        assert (world.folder.path / "out" / str(index) / "score.json").read_bytes() == b"{}"
    assert [event.done for event in life.events(OutputsKept)] == [1, 2, 3, 4, 5, 6]
    (table,) = life.events(JobResults)
    assert (table.copies, table.failed) == (6, [])


def test_a_result_counts_once_it_is_on_the_disk_and_what_is_owed_for_it_stands_there_first(
    loop: VirtualLoop, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    world = World(loop, tmp_path, "heron", copies=1)
    life = world.life()
    watch_disk(life, monkeypatch)
    loop.run(life.live())
    log = life.log[life.log.index("files of 0") :]
    assert log[:6] == [
        "files of 0",
        "job.json: 0 results, 1 unpaid, 0 numbered",
        "line of 0",
        "job.json: 1 results, 1 unpaid, 0 numbered",
        "numbered [0]",
        "job.json: 1 results, 0 unpaid, 1 numbered",
    ]
    assert log.index("asked [0]") > 5


@pytest.mark.parametrize("mute", [False, True])
def test_a_job_of_which_nothing_is_told_ends_with_the_same_receipts_and_leases(
    loop: VirtualLoop, tmp_path: Path, mute: bool
) -> None:
    world = World(loop, tmp_path, *PEERS)
    world.peers[1].code = lambda order: 3
    world.peers[2].instead[SendOutputs] = lambda order: world.peers[2].say(OutputsSent(request=order.request, files=9))
    life = world.life(mute=mute)
    loop.run(life.live())
    all_done(world, life)
    found = sorted((receipt.peer, receipt.number, receipt.flops) for receipt in world.asked.values())
    assert len(found) == 2
    assert sum(flops for _, _, flops in found) == 6 * COPY_FLOPS
    assert list(life.crew.dismissed) == [2]
    assert bool(life.told) is not mute


def test_results_whose_files_stayed_elsewhere_are_made_again(loop: VirtualLoop, tmp_path: Path) -> None:
    world = World(loop, tmp_path, *PEERS, copies=3, attempts=1)
    record = world.folder.read()
    file = results.ResultsFile(world.folder.path / "results.csv", 3)
    found = [CopyResult(0, "otter", 0, 1.0, 2), CopyResult(1, "otter", 7, 1.0, 0), CopyResult(2, "otter", 0, 1.0, 2)]
    for line in found:
        file.add(line)
    (world.folder.path / "out" / "2").mkdir(parents=True)
    world.folder.write(msgspec.structs.replace(record, results=3, failed=1, accepted=found[0]))
    life = world.life()
    loop.run(life.live())
    (lost,) = life.events(OutputsLost)
    assert (lost.indices, lost.done) == ([0], 2)
    assert [event.index for event in life.events(OutputsKept)] == [0]
    assert {index: line.code for index, line in world.lines().items()} == {1: 7, 2: 0, 0: 0}
    assert (life.record.results, life.record.failed) == (3, 1)


# --- a client that is killed ---


def steps_of_a_life(loop: VirtualLoop, home: Path, patch: pytest.MonkeyPatch) -> int:
    world = World(loop, home, *PEERS, copies=5, attempts=2)
    world.peers[3].code = lambda order: 7
    life = world.life()
    watch_disk(life, patch)
    loop.run(life.live())
    return life.steps


@pytest.mark.slow
def test_a_client_that_is_killed_at_any_step_goes_on_with_one_result_for_each_index_and_pays_each_once(
    loop: VirtualLoop, tmp_path: Path
) -> None:
    (tmp_path / "whole").mkdir()
    with pytest.MonkeyPatch.context() as patch:
        steps = steps_of_a_life(loop, tmp_path / "whole", patch)
    assert steps > 25
    for dies_at in range(steps):
        home = tmp_path / str(dies_at)
        home.mkdir()
        world = World(loop, home, *PEERS, copies=5, attempts=2)
        world.peers[3].code = lambda order: 7
        with pytest.MonkeyPatch.context() as patch:
            first = world.life(dies_at=dies_at)
            watch_disk(first, patch)
            with pytest.raises(Killed):
                loop.run(first.live())
        lines = world.lines()
        good = sum(line.code == 0 for line in lines.values())
        assert good * COPY_FLOPS <= world.owed <= (good + 1) * COPY_FLOPS, first.log
        with pytest.MonkeyPatch.context() as patch:
            second = world.life()
            watch_disk(second, patch)
            loop.run(second.live())
        all_done(world, second)
        assert lines.items() <= world.lines().items(), "a result was had twice"


@pytest.mark.parametrize("seed", range(12))
def test_a_client_that_is_killed_again_and_again_pays_each_copy_once(
    loop: VirtualLoop, tmp_path: Path, seed: int
) -> None:
    chance = random.Random(seed)
    world = World(loop, tmp_path, *PEERS, copies=8)
    for peer in world.peers.values():
        peer.seconds = chance.choice([0.5, 1.0, 4.0])
        peer.claims = {"seconds": peer.seconds, "cpu_seconds": 0.25}
    requests: list[int] = []
    for _ in range(chance.randint(3, 9)):
        life = world.life(dies_at=chance.randrange(60))
        with pytest.MonkeyPatch.context() as patch:
            watch_disk(life, patch)
            try:
                loop.run(life.live())
                break
            except Killed:
                loop.run(asyncio.sleep(chance.choice([0, 0.7, 30])))
    else:
        life = world.life()
        loop.run(life.live())
    assert sorted(world.lines()) == list(range(8))
    assert world.paid == world.owed == 8 * COPY_FLOPS // 4
    for peer in world.peers.values():
        requests += [order.request for order in peer.asked_for()]
    assert len(set(requests)) == len(requests), "a request's number twice"


# --- lies ---


def lied(loop: VirtualLoop, tmp_path: Path, act: Any, **section: Any) -> tuple[World, Life]:
    """A job with one peer that does so about `SendOutputs`."""
    world = World(loop, tmp_path, *PEERS, **section)
    liar = world.peers[0]
    liar.instead[SendOutputs] = lambda order: act(liar, order)
    life = world.life()
    loop.run(life.live())
    all_done(world, life)
    return world, life


def _wrong_hash(liar: PlayedPeer, order: SendOutputs) -> None:
    liar.say(OutputPart(request=order.request, number=0, offset=0), b"{}")
    liar.say(OutputFile(request=order.request, number=0, path="score.json", size=2, sha256=bytes(32)))
    liar.say(OutputsSent(request=order.request, files=1))


def _wrong_order(liar: PlayedPeer, order: SendOutputs) -> None:
    liar.say(OutputPart(request=order.request, number=1, offset=0), b"{}")
    liar.say(OutputPart(request=order.request, number=0, offset=0), b"{}")


def _gap(liar: PlayedPeer, order: SendOutputs) -> None:
    liar.say(OutputPart(request=order.request, number=0, offset=7), b"{}")


def _not_asked_for(liar: PlayedPeer, order: SendOutputs) -> None:
    liar.files = {"../../job.json": b"{}"}
    liar.send(order)


def _other_name(liar: PlayedPeer, order: SendOutputs) -> None:
    liar.files = {"virus.exe": b"MZ"}
    liar.send(order)


def _fewer(liar: PlayedPeer, order: SendOutputs) -> None:
    liar.say(OutputsSent(request=order.request, files=3))


@pytest.mark.parametrize("act", [_wrong_hash, _wrong_order, _gap, _not_asked_for, _other_name, _fewer])
def test_a_peer_that_sends_wrong_files_is_out_and_its_copy_is_done_elsewhere(
    loop: VirtualLoop, tmp_path: Path, act: Any
) -> None:
    world, life = lied(loop, tmp_path, act)
    assert "protocol" in life.crew.dismissed[0]
    assert all(line.peer != "heron" for line in world.lines().values())
    assert life.journal.names_lost == ["heron"]
    assert len(life.events(PeerLost)) == 1
    assert {path.name for path in (world.folder.path / "out").iterdir()} == set(map(str, range(6)))


def test_a_flood_of_words_costs_the_peer_its_place_and_nothing_else(loop: VirtualLoop, tmp_path: Path) -> None:
    world = World(loop, tmp_path, *PEERS)
    flooder = world.peers[0]

    def flood(order: Any) -> None:
        for _ in range(5000):
            flooder.say(NoCopy())

    flooder.instead[BeginCopy] = flood
    life = world.life()
    inbox = life.driver._peers._inbox
    most, put = 0, inbox._facts.put_nowait

    def counted(fact: Any) -> None:
        nonlocal most
        put(fact)
        most = max(most, inbox._facts.qsize())

    inbox._facts.put_nowait = counted  # type: ignore[method-assign]
    loop.run(life.live())
    assert most < 200
    assert list(life.crew.dismissed) == [0]
    all_done(world, life)


def test_claims_are_paid_as_far_as_its_cores_could_have_worked_by_this_clock(loop: VirtualLoop, tmp_path: Path) -> None:
    world = World(loop, tmp_path, "heron", copies=1)
    liar = world.peers[0]
    liar.claims = {"cpu_seconds": 1e9, "seconds": 1e9}
    send = liar.send

    def late(order: SendOutputs) -> None:
        asyncio.get_running_loop().call_later(20, send, order)

    liar.instead[SendOutputs] = late
    loop.run(world.life().live())
    assert world.paid == COPY_FLOPS  # one core, for the second between its order and its word
    (receipt,) = world.asked.values()
    assert receipt.milliseconds == 1000


def test_claims_of_a_copy_that_was_taken_over_are_bounded_by_the_age_of_the_job(
    loop: VirtualLoop, tmp_path: Path
) -> None:
    world = World(loop, tmp_path, "heron", copies=1)
    liar = world.peers[0]
    liar.copy, liar.claims = (0, 0), {"cpu_seconds": 1e9, "seconds": 1e9}
    life = world.life()
    age = life.clock  # the record's `created` is second 1 of Unix time: let it be young

    async def live() -> None:
        life.journal.change(created=age.now() - 3.0)
        loop.call_later(2.0, liar.end, 0, 0, 0)
        await life.live()

    loop.run(live())
    assert world.paid == pytest.approx(5 * COPY_FLOPS)


def test_a_copy_that_was_taken_over_is_paid_for_what_it_did_before(loop: VirtualLoop, tmp_path: Path) -> None:
    world = World(loop, tmp_path, "heron", copies=1)
    peer = world.peers[0]
    peer.copy, peer.claims = (0, 0), {"cpu_seconds": 50.0, "seconds": 60.0}

    async def live() -> None:
        loop.call_later(2.0, peer.end, 0, 0, 0)
        await world.life().live()

    loop.run(live())
    assert world.paid == 50 * COPY_FLOPS


@pytest.mark.parametrize("says", ["nothing", "started", "another", "none", "another ended"])
def test_who_lets_a_copy_run_on_after_its_timeout_goes_and_another_does_it(
    loop: VirtualLoop, tmp_path: Path, says: str
) -> None:
    world = World(loop, tmp_path, "heron", "otter", copies=1, timeout=100)
    endless = world.peers[0]
    endless.seconds = 1e6

    def begins(order: BeginCopy) -> None:
        started = CopyStarted(index=order.index, attempt=order.attempt)
        endless.say(started)
        other = order.attempt + 1
        words: dict[str, list[Message]] = {
            "nothing": [],
            "started": [started],
            "another": [CopyStarted(index=order.index, attempt=other), started],
            "none": [NoCopy()],
            "another ended": [
                CopyExited(
                    index=order.index,
                    attempt=other,
                    ended="itself",
                    code=0,
                    seconds=1.0,
                    cpu_seconds=1.0,
                    most_memory=0,
                )
            ],
        }[says]
        for after in (1, 50, 140):  # no word buys it time
            for word in words:
                loop.call_later(after, endless.say, word)

    endless.instead[BeginCopy] = begins
    life = world.life()
    loop.run(life.live())
    all_done(world, life)
    assert life.crew.dismissed == {0: "it was silent for 160 s"}
    assert world.peers[1].begun() == [0]


def test_a_speed_that_no_core_has_is_not_paid(loop: VirtualLoop, tmp_path: Path) -> None:
    world = World(loop, tmp_path, "heron", copies=3)
    boaster = world.peers[0]
    boaster.row = make_row(key_of("heron"), name="heron", offer=make_offer(gflops=1e9, cores=1))
    boaster.seconds, boaster.claims = 20.0, {"cpu_seconds": 20.0}
    life = world.life()
    loop.call_later(30, life.driver.pause)
    for _ in range(2):
        loop.run(life.live())
        life = world.life()
    assert world.paid == 3 * 20 * MOST_CORE_GFLOPS * 1e9
    assert len(world.lines()) == 3


def test_the_end_of_a_copy_that_does_not_run_there_says_nothing(loop: VirtualLoop, tmp_path: Path) -> None:
    world = World(loop, tmp_path, *PEERS, copies=2)
    liar = world.peers[0]

    def lie(order: SendOutputs) -> None:
        for index, attempt in ((1, 0), (0, 7), (9999, 0)):
            liar.say(
                CopyExited(
                    index=index, attempt=attempt, ended="itself", code=0, seconds=1e9, cpu_seconds=1e9, most_memory=1
                )
            )
        liar.send(order)

    liar.instead[SendOutputs] = lie
    life = world.life()
    loop.run(life.live())
    all_done(world, life)
    assert sorted((event.index, event.attempt) for event in life.events(CopyEnded)) == [(0, 0), (1, 0)]
    assert all(receipt.round in (0, 1) for receipt in world.asked.values())


def test_files_that_nobody_asked_for_now_are_passed_over(loop: VirtualLoop, tmp_path: Path) -> None:
    world = World(loop, tmp_path, *PEERS)
    for peer in world.peers.values():

        def begin(order: BeginCopy, peer: PlayedPeer = peer) -> None:
            peer.say(OutputsSent(request=1, files=0))
            peer.say(OutputPart(request=1, number=0, offset=0), b"old")
            del peer.instead[BeginCopy]
            peer.orders.pop()
            peer.obey(order)

        def send(order: SendOutputs, peer: PlayedPeer = peer) -> None:
            peer.say(OutputPart(request=order.request - 1, number=3, offset=5), b"old")
            peer.say(OutputsSent(request=order.request - 1, files=7))
            peer.send(order)

        peer.instead = {BeginCopy: begin, SendOutputs: send}
    life = world.life()
    loop.run(life.live(), seconds=20)
    all_done(world, life)
    assert not life.crew.dismissed


def test_a_peer_that_answers_no_order_is_out(loop: VirtualLoop, tmp_path: Path) -> None:
    for deaf in (ReportCopy, BeginCopy, SendOutputs, EndCopy):
        (tmp_path / deaf.__name__).mkdir()
        world = World(loop, tmp_path / deaf.__name__, *PEERS[:2], copies=2, together=deaf is EndCopy)
        world.peers[0].deaf = (deaf,)
        world.peers[1].seconds = 200.0
        if deaf is EndCopy:
            world.peers[0].seconds = 1e6
            world.peers[1].code = lambda order: 3
            world.peers[1].seconds = 1.0
        life = world.life()
        try:
            loop.run(life.live())
        except JobFailed:
            assert deaf is EndCopy
        assert list(life.crew.dismissed) == [0], deaf
        if deaf is not EndCopy:
            all_done(world, life)


def test_a_paused_peer_is_silent_with_good_reason(loop: VirtualLoop, tmp_path: Path) -> None:
    world = World(loop, tmp_path, "heron", copies=2)
    peer = world.peers[0]

    def pause(order: SendOutputs) -> None:
        life.crew.listener.owner_says(0, WorkerPaused(reason="its owner is back"))
        asyncio.get_running_loop().call_later(500, life.crew.listener.owner_says, 0, WorkerResumed())
        asyncio.get_running_loop().call_later(501, peer.send, order)

    peer.instead[SendOutputs] = pause
    life = world.life()
    loop.run(life.live())
    all_done(world, life)
    assert not life.crew.dismissed


def trickle(peer: PlayedPeer, order: SendOutputs, size: int, every: float, parts: int) -> None:
    """The one file comes in parts of that size, at that pace, and never to its end if there are no more `parts`."""

    def go_on(number: int) -> None:
        if order is not peer.asked_for()[-1]:
            return
        if number == parts:
            sha256 = hashlib.sha256(bytes(size) * parts).digest()
            named = OutputFile(request=order.request, number=0, path="a.json", size=size * parts, sha256=sha256)
            peer.say(named)
            peer.say(OutputsSent(request=order.request, files=1))
            return
        peer.say(OutputPart(request=order.request, number=0, offset=number * size), bytes(size))
        asyncio.get_running_loop().call_later(every, go_on, number + 1)

    go_on(0)


def test_a_peer_whose_files_drip_is_out_and_its_copy_is_done_elsewhere(loop: VirtualLoop, tmp_path: Path) -> None:
    world = World(loop, tmp_path, *PEERS[:2], copies=2)
    drips = world.peers[0]
    drips.instead[SendOutputs] = lambda order: trickle(drips, order, size=1, every=59.0, parts=10**6)
    life = world.life()
    loop.run(life.live(), seconds=300)
    all_done(world, life)
    assert life.crew.dismissed == {0: "its files came too slowly"}
    assert {line.peer for line in world.lines().values()} == {"otter"}


def test_words_beside_its_files_and_pauses_buy_a_peer_no_time(loop: VirtualLoop, tmp_path: Path) -> None:
    world = World(loop, tmp_path, "heron", "otter", copies=1, timeout=1000)
    drips = world.peers[0]

    def act(order: SendOutputs) -> None:
        trickle(drips, order, size=1, every=20.0, parts=10**6)
        for number in range(1, 100):
            said = CopyStarted(index=order.index, attempt=order.attempt + number)
            loop.call_later(20.0 * number, drips.say, said)
            loop.call_later(20.0 * number + 1, life.crew.listener.owner_says, 0, WorkerPaused(reason="again"))
            loop.call_later(20.0 * number + 2, life.crew.listener.owner_says, 0, WorkerResumed())

    drips.instead[SendOutputs] = act
    life = world.life()
    loop.run(life.live(), seconds=300)
    all_done(world, life)
    assert life.crew.dismissed == {0: "its files came too slowly"}


@pytest.mark.parametrize("peers", [1, 4])
def test_files_may_come_slowly_for_long_and_slower_when_many_send_some(
    loop: VirtualLoop, tmp_path: Path, peers: int
) -> None:
    world = World(loop, tmp_path, *PEERS[:peers], copies=peers)
    for peer in world.peers.values():
        peer.instead[SendOutputs] = partial(trickle, peer, size=16 * 1024 // peers, every=1.9, parts=500)
    life = world.life()
    loop.run(life.live())
    all_done(world, life)
    assert not life.crew.dismissed


def test_a_peer_that_is_paused_while_its_files_come_costs_a_second_copy_and_one_result_counts(
    loop: VirtualLoop, tmp_path: Path
) -> None:
    world = World(loop, tmp_path, *PEERS[:2], copies=2)
    peer = world.peers[0]
    first: list[SendOutputs] = []

    def pause(order: SendOutputs) -> None:
        first.append(order)
        life.crew.listener.owner_says(0, WorkerPaused(reason="its owner is back"))
        loop.call_later(500, peer.send, order)

    peer.instead[SendOutputs] = pause
    life = world.life()
    loop.run(life.live(), seconds=60)
    all_done(world, life)
    assert [(one.peer, one.slow_peer) for one in life.events(SpeculativeCopy)] == [("otter", "heron")]
    assert {line.peer for line in world.lines().values()} == {"otter"}
    assert not life.crew.dismissed
    assert {path.name for path in (world.folder.path / "out").iterdir()} == {"0", "1"}


def test_files_of_a_second_copy_and_late_ones_of_the_first_make_one_result(loop: VirtualLoop, tmp_path: Path) -> None:
    world = World(loop, tmp_path, *PEERS[:2], copies=2)
    peer, other = world.peers[0], world.peers[1]

    def pause(order: SendOutputs) -> None:
        life.crew.listener.owner_says(0, WorkerPaused(reason="its owner is back"))
        # After the second copy has ended, and before all of its files are here.
        loop.call_later(8, life.crew.listener.owner_says, 0, WorkerResumed())
        loop.call_later(8, peer.send, order)

    peer.instead[SendOutputs] = pause
    other.instead[SendOutputs] = lambda order: (
        other.send(order) if order.attempt == 0 else trickle(other, order, size=1, every=1.0, parts=20)
    )
    life = world.life()
    loop.run(life.live(), seconds=60)
    all_done(world, life)
    assert len(other.asked_for()) == 2
    assert sorted(line.peer for line in world.lines().values()) == ["heron", "otter"]
    assert {path.name for path in (world.folder.path / "out").iterdir()} == {"0", "1"}


def test_a_job_that_pauses_does_not_wait_for_files_of_a_peer_that_stands_still(
    loop: VirtualLoop, tmp_path: Path
) -> None:
    world = World(loop, tmp_path, *PEERS[:2], copies=2)
    world.peers[0].instead[SendOutputs] = lambda order: life.crew.listener.owner_says(0, WorkerPaused(reason="busy"))
    life = world.life()
    loop.call_later(0.5, life.driver.pause)
    assert isinstance(loop.run(life.live(), seconds=30), JobPaused)
    assert len(world.lines()) == 1
    world.peers[0].instead.clear()
    again = world.life()
    loop.run(again.live())
    all_done(world, again)


# --- disks, limits, peers ---


@pytest.mark.parametrize("where", ["take", "put", "add"])
def test_a_full_disk_of_the_client_ends_the_job_and_no_lease(
    loop: VirtualLoop, tmp_path: Path, where: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    world = World(loop, tmp_path, *PEERS)
    kind = results.ResultsFile if where == "add" else results.ArrivingOutputs

    def full(*_: Any) -> None:
        raise results.not_writable(tmp_path, OSError(errno.ENOSPC, "No space left on device"))

    life = world.life()
    with monkeypatch.context() as patch:
        patch.setattr(kind, where, full)
        with pytest.raises(SettingsError, match="No space left") as caught:
            loop.run(life.live())
    assert "disk is full" in caught.value.fix
    assert not life.crew.dismissed
    good = len(world.lines())
    assert world.paid == world.owed == (good + (where == "add")) * COPY_FLOPS
    again = world.life()
    loop.run(again.live())
    all_done(world, again)


def test_a_limit_of_the_sandbox_counts_as_an_attempt(loop: VirtualLoop, tmp_path: Path) -> None:
    world = World(loop, tmp_path, *PEERS, copies=1, attempts=2)
    life = world.life()
    for rank in (0, 1):
        world.peers[rank].instead[BeginCopy] = lambda order, rank=rank: life.crew.lose(
            rank, "its worker ended: it went over its limit of memory", "memory"
        )
    loop.run(life.live())
    (failed,) = life.events(IndexFailed)
    assert (failed.index, failed.peer, failed.code) == (0, "otter", -9)
    assert "memory" in failed.reason
    assert world.lines()[0].code == -9
    assert life.journal.names_lost == ["heron", "otter"]
    (retried,) = life.events(CopyRetried)
    assert "memory" in retried.reason


def test_what_failed_is_tried_elsewhere_and_ends_with_its_own_code(loop: VirtualLoop, tmp_path: Path) -> None:
    world = World(loop, tmp_path, *PEERS, copies=4, attempts=3)
    for peer in world.peers.values():
        peer.code = lambda order: 3 if order.index == 2 else 0
    world.peers[2].seconds = 1.5  # the others are free by then
    world.peers[2].claims = {"seconds": 1.0}
    life = world.life()
    loop.run(life.live())
    all_done(world, life)
    assert {index: line.code for index, line in world.lines().items()} == {0: 0, 1: 0, 2: 3, 3: 0}
    assert len({rank for rank, peer in world.peers.items() if 2 in peer.begun()}) == 3
    (failed,) = life.events(IndexFailed)
    assert (failed.code, failed.reason, life.record.failed) == (3, "exit code 3", 1)
    assert [event.reason for event in life.events(CopyRetried)] == ["exit code 3"] * 2


def test_a_failure_keeps_its_own_words_though_its_peer_has_done_others_since(loop: VirtualLoop, tmp_path: Path) -> None:
    """An index fails at one peer while it runs at another, which is lost much later."""
    world = World(loop, tmp_path, "heron", "otter", "lynx", copies=4, attempts=1)
    slow = world.peers[0]
    slow.seconds = 1e6
    life = world.life()
    codes = {0: 9}
    for rank in (1, 2):
        world.peers[rank].code = lambda order: codes.get(order.index, 0)

    async def live() -> None:
        living = asyncio.ensure_future(life.live())
        await asyncio.sleep(60)
        life.crew.lose(0)
        await living

    loop.run(live())
    assert life.events(SpeculativeCopy)
    assert {index: line.code for index, line in world.lines().items()} == {0: 9, 1: 0, 2: 0, 3: 0}


def test_what_a_peer_is_owed_is_paid_before_it_is_let_go(loop: VirtualLoop, tmp_path: Path) -> None:
    world = World(loop, tmp_path, "heron", "otter", copies=4)
    leaver = world.peers[0]
    life = world.life()
    begin = leaver.obey
    count = iter(range(9))

    def second(order: BeginCopy) -> None:
        if next(count) == 0:
            act = leaver.instead.pop(BeginCopy)
            leaver.orders.pop()
            begin(order)
            leaver.instead[BeginCopy] = act
        else:
            life.crew.lose(0, "its worker ended: the daemon says so")

    leaver.instead[BeginCopy] = second
    dismiss = life.crew.dismiss

    def logged(rank: int, reason: str) -> None:
        life.log.append(f"dismissed {rank}")
        dismiss(rank, reason)

    life.crew.dismiss = logged  # type: ignore[method-assign]
    loop.run(life.live())
    all_done(world, life)
    (numbered,) = (at for at, line in enumerate(life.log) if line.startswith("asked") and "0" in line)
    assert numbered < life.log.index("dismissed 0")


def test_a_frozen_peer_costs_a_second_copy_elsewhere(loop: VirtualLoop, tmp_path: Path) -> None:
    world = World(loop, tmp_path, *PEERS, copies=4)
    world.peers[2].deaf = (EndCopy,)
    world.peers[2].seconds = 1e6
    life = world.life()
    loop.run(life.live(), seconds=30)
    all_done(world, life)
    (twice,) = life.events(SpeculativeCopy)
    assert twice.slow_peer == "lynx"


def test_peers_that_come_late_work_too(loop: VirtualLoop, tmp_path: Path) -> None:
    world = World(loop, tmp_path, "heron", copies=6)
    life = world.life()
    late = PlayedPeer("late")

    async def live() -> None:
        living = asyncio.ensure_future(life.live())
        await asyncio.sleep(1.5)
        life.crew.join(5, late)
        await life.crew.listener.joined(5, "late")
        await living

    loop.run(live())
    all_done(world, life)
    assert late.begun()
    assert {line.peer for line in world.lines().values()} == {"heron", "late"}


# --- pause, leave, resume, too few ---


def test_a_job_that_is_paused_ends_what_runs_and_begins_nothing(loop: VirtualLoop, tmp_path: Path) -> None:
    world = World(loop, tmp_path, *PEERS)
    life = world.life()
    loop.call_later(0.5, life.driver.pause)
    assert isinstance(loop.run(life.live()), JobPaused)
    assert (len(world.lines()), life.record.state) == (4, JobState.PAUSED)
    assert world.paid == world.owed == 4 * COPY_FLOPS
    again = world.life()
    loop.run(again.live())
    all_done(world, again)


def test_a_job_that_is_stopped_has_finished_with_the_copies_that_are_done(loop: VirtualLoop, tmp_path: Path) -> None:
    world = World(loop, tmp_path, *PEERS)
    life = world.life()
    loop.call_later(0.5, life.driver.stop)
    last = loop.run(life.live())
    assert isinstance(last, JobFinished)
    assert (last.rounds, life.record.state) == (4, JobState.FINISHED)
    assert [(one.copies, one.failed) for one in life.events(JobResults)] == [(4, [])]
    assert world.paid == world.owed == 4 * COPY_FLOPS


def test_a_job_that_is_stopped_before_a_copy_is_done_is_left(loop: VirtualLoop, tmp_path: Path) -> None:
    world = World(loop, tmp_path, *PEERS)
    life = world.life()
    life.driver.stop()
    assert isinstance(loop.run(life.live()), JobPaused)


def test_a_job_that_was_left_is_finished_without_peers(loop: VirtualLoop, tmp_path: Path) -> None:
    world = World(loop, tmp_path, *PEERS)
    life = world.life()
    loop.call_later(0.5, life.driver.pause)
    loop.run(life.live())
    alone = world.life()
    last = finish(alone.journal, alone.book, 1.0)
    assert (last.rounds, last.peers, alone.record.state) == (4, [], JobState.FINISHED)
    assert [(one.copies, one.failed) for one in alone.events(JobResults)] == [(4, [])]


def test_without_a_result_there_is_nothing_to_finish_with(loop: VirtualLoop, tmp_path: Path) -> None:
    world = World(loop, tmp_path, *PEERS)
    life = world.life()
    life.driver.leave()
    loop.run(life.live())
    alone = world.life()
    with pytest.raises(JobFailed, match="has no result: it is paused") as caught:
        finish(alone.journal, alone.book, 1.0)
    assert "axon resume" in caught.value.fix


def test_a_job_that_is_paused_while_peers_are_asked_what_they_run_begins_nothing(
    loop: VirtualLoop, tmp_path: Path
) -> None:
    world = World(loop, tmp_path, "heron", "otter")
    world.peers[0].copy = (4, 0)
    life = world.life()

    async def live() -> Any:
        loop.call_later(9.0, world.peers[0].end, 4, 0, 0)
        living = asyncio.ensure_future(life.live())
        await asyncio.sleep(1)
        life.driver.pause()
        return await living

    world.peers[1].deaf = (ReportCopy,)
    assert isinstance(loop.run(live()), JobPaused)
    assert list(world.lines()) == [4]
    assert not world.peers[0].begun() + world.peers[1].begun()


def test_a_job_that_is_left_ends_at_once(loop: VirtualLoop, tmp_path: Path) -> None:
    world = World(loop, tmp_path, *PEERS)
    life = world.life()
    loop.call_later(1.5, life.driver.leave)
    assert isinstance(loop.run(life.live(), seconds=2), JobPaused)
    assert world.paid == world.owed == 4 * COPY_FLOPS
    again = world.life()
    again.driver.leave()
    assert isinstance(loop.run(again.live(), seconds=1), JobPaused)


def test_copies_that_run_on_without_the_client_are_taken_over(loop: VirtualLoop, tmp_path: Path) -> None:
    world = World(loop, tmp_path, *PEERS, copies=4)
    for peer in world.peers.values():
        peer.seconds = 10.0

    async def killed() -> None:
        life = world.life()
        living = asyncio.ensure_future(life.live())
        await asyncio.sleep(3)
        life.dead = True
        living.cancel()
        await asyncio.wait([living])

    loop.run(killed())
    again = world.life()
    loop.run(again.live(), seconds=8)
    all_done(world, again)
    assert [peer.begun() for peer in world.peers.values()] == [[0], [1], [2], [3]]


def test_copies_together_begin_anew_when_one_is_lost(loop: VirtualLoop, tmp_path: Path) -> None:
    world = World(loop, tmp_path, *PEERS, copies=3, together=True)
    life = world.life()
    loop.call_later(0.5, lambda: life.crew.lose(1))
    loop.run(life.live())
    all_done(world, life)
    assert sorted(rank for rank, peer in world.peers.items() if len(peer.begun()) == 2) == [0, 2]
    assert len(world.peers[3].begun()) == 1


@pytest.mark.parametrize("waits", [False, True])
def test_with_too_few_peers_the_job_waits_where_it_may(loop: VirtualLoop, tmp_path: Path, waits: bool) -> None:
    world = World(loop, tmp_path, "heron", "otter", copies=4)
    life = world.life()
    life.waits = waits

    async def live() -> Any:
        loop.call_later(1.5, life.crew.lose, 0)
        loop.call_later(1.6, life.crew.lose, 1)
        if not waits:
            with pytest.raises(JobFailed, match="no peers are left") as caught:
                await life.live()
            assert "axon resume" in caught.value.fix
            assert "heron" in caught.value.cause
            return None
        assert await life.live() is None
        life.journal.enter(JobState.FINDING)
        life.crew.join(7, PlayedPeer("wren"))
        return await life.drive()

    last = loop.run(live())
    assert len(life.events(PeerLost)) == 2
    if waits:
        assert isinstance(last, JobFinished)
        all_done(world, life)
    else:
        assert world.paid == world.owed == 2 * COPY_FLOPS
        assert not life.record.unpaid


def test_while_too_few_are_there_the_files_of_those_that_are_still_come(loop: VirtualLoop, tmp_path: Path) -> None:
    world = World(loop, tmp_path, "heron", "otter", copies=2, together=True)
    world.peers[0].instead[SendOutputs] = lambda order: loop.call_later(4, world.peers[0].send, order)
    world.peers[1].instead[SendOutputs] = lambda order: life.crew.lose(1)
    life = world.life()
    life.waits = True

    async def live() -> Any:
        if await life.live() is None:
            life.journal.enter(JobState.FINDING)
            await asyncio.sleep(10)
            life.crew.join(7, PlayedPeer("wren"))
            assert await life.drive() is not None

    loop.run(live(), seconds=60)
    all_done(world, life)


def test_a_peer_that_is_regained_is_not_lost_by_the_word_of_before(loop: VirtualLoop, tmp_path: Path) -> None:
    world = World(loop, tmp_path, "heron", copies=3)
    peer = world.peers[0]
    life = world.life()
    life.waits = True

    async def live() -> Any:
        loop.call_later(0.5, life.crew.lose, 0)
        assert await life.live() is None
        life.journal.enter(JobState.FINDING)
        await asyncio.sleep(5)
        life.crew.join(0, peer)
        return await life.drive()

    assert isinstance(loop.run(live()), JobFinished)
    all_done(world, life)
    assert life.journal.names_lost == ["heron"]
    assert peer.begun() == [0, 1, 2]


def test_a_peer_that_its_owner_wants_back_begins_nothing_more(loop: VirtualLoop, tmp_path: Path) -> None:
    world = World(loop, tmp_path, "heron", "otter")
    life = world.life()
    loop.call_later(0.5, lambda: life.crew.listener.owner_says(0, HandBack(reason="back", seconds=30)))
    loop.run(life.live())
    all_done(world, life)
    assert len(world.peers[0].begun()) == 1


def test_the_first_word_of_a_peer_counts_once(loop: VirtualLoop, tmp_path: Path) -> None:
    world = World(loop, tmp_path, *PEERS)
    for peer in world.peers.values():
        peer.instead[ReportCopy] = lambda order, peer=peer: [peer.say(NoCopy()), peer.say(NoCopy())]
        peer.instead[BeginCopy] = lambda order, peer=peer: _started_twice(peer, order)
    life = world.life()
    loop.run(life.live())
    all_done(world, life)


def _started_twice(peer: PlayedPeer, order: BeginCopy) -> None:
    peer.say(CopyStarted(index=order.index, attempt=order.attempt))
    act = peer.instead.pop(BeginCopy)
    peer.orders.pop()
    peer.obey(order)
    peer.instead[BeginCopy] = act


def test_a_slow_disk_of_the_client_makes_no_peer_look_silent(loop: VirtualLoop, tmp_path: Path) -> None:
    world = World(loop, tmp_path, *PEERS, copies=8)
    life = world.life()

    async def slow() -> None:
        await asyncio.sleep(100)

    life.journal.disk.finished = slow  # type: ignore[method-assign]
    loop.run(life.live())
    all_done(world, life)
    assert not life.crew.dismissed


def test_a_job_that_is_cancelled_pays_for_what_was_accepted(loop: VirtualLoop, tmp_path: Path) -> None:
    world = World(loop, tmp_path, *PEERS)
    life = world.life()

    async def cancelled() -> None:
        living = asyncio.ensure_future(life.live())
        await asyncio.sleep(1.5)
        living.cancel()
        await asyncio.wait([living])
        assert living.cancelled()

    loop.run(cancelled())
    assert len(world.lines()) == 4
    assert world.paid == world.owed == 4 * COPY_FLOPS
    assert not life.record.unpaid


@pytest.mark.parametrize("seed", range(25))
def test_whatever_happens_what_was_accepted_is_owed_or_in_a_receipt(
    loop: VirtualLoop, tmp_path: Path, seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Clients die, peers are lost, lie, stand still, fail and come late; owners pause them."""
    chance = random.Random(seed)
    world = World(loop, tmp_path, *PEERS, copies=10, attempts=2)
    accepted: list[int] = []
    put = results.ArrivingOutputs.put
    monkeypatch.setattr(
        results.ArrivingOutputs, "put", lambda self: [put(self), accepted.append(int(self._place.name))]
    )
    for peer in world.peers.values():
        peer.seconds = chance.choice([1.0, 2.0, 8.0])
        peer.code = lambda order: chance.choice([0, 0, 0, 5])
    for number in range(6):
        last = number == 5
        life = world.life(dies_at=-1 if last else chance.randrange(20, 90))

        def trouble(life: Life = life) -> None:
            rank = chance.choice(sorted(life.crew.present) or [0])
            match chance.randrange(5):
                case 0 if len(life.crew.present) > 1:
                    life.crew.lose(rank, limit=chance.choice(["", "memory"]))
                case 1:
                    life.crew.listener.owner_says(rank, WorkerPaused(reason="its owner is back"))
                    loop.call_later(7, life.crew.listener.owner_says, rank, WorkerResumed())
                case 2:
                    life.crew.heard(rank, OutputsSent(request=chance.randrange(9), files=0))
                case 3:
                    life.crew.heard(rank, CopyStarted(index=chance.randrange(10), attempt=0))
                case 4 if len(life.crew.present) < 6:
                    new = max(life.crew.peers) + 1
                    world.peers[new] = PlayedPeer(f"late{new}")  # there in later lives too
                    life.crew.join(new, world.peers[new])
                    life.soon(life.crew.listener.joined(new, f"late{new}"))

        async def live(life: Life = life, last: bool = last, trouble: Any = trouble) -> None:
            living = asyncio.ensure_future(life.live())
            try:
                for _ in range(0 if last else 12):
                    await asyncio.wait([living], timeout=chance.uniform(0, 1.5))
                    if living.done() or life.dead:
                        break
                    trouble()
                await living
            finally:
                living.cancel()
                await asyncio.wait([living])

        with pytest.MonkeyPatch.context() as patch:
            watch_disk(life, patch)
            with contextlib.suppress(Killed, JobFailed):
                loop.run(live())
        good = sum(line.code == 0 for line in world.lines().values())
        assert good * COPY_FLOPS <= world.owed <= len(accepted) * COPY_FLOPS
        assert world.owed <= (good + 1) * COPY_FLOPS
        if life.record.state is JobState.FINISHED:
            break
    all_done(world, life)
