"""A client hands a job over, goes, comes back, and steers it: word by word, over real sessions."""

from __future__ import annotations

import asyncio
import dataclasses
import hashlib
import threading
from contextlib import nullcontext
from pathlib import Path
from typing import Any, Literal

import pytest

from axonp2p.blobs.messages import BlobHave, BlobPiece
from axonp2p.blobs.pieces import book_of
from axonp2p.errors import (
    AxonError,
    Busy,
    LimitReached,
    MalformedMessage,
    PeerMisbehaved,
    Refused,
    TooOften,
    Unreachable,
)
from axonp2p.hosting import server
from axonp2p.hosting.admission import ARRIVAL_IDLE_S, ARRIVAL_STALLED_S, HostLimits, arrives_within
from axonp2p.hosting.caller import HostLine, ask_offer
from axonp2p.hosting.folder_files import EVENTS, GROWING_LIMIT
from axonp2p.hosting.host import job_key
from axonp2p.hosting.hosted_folder import HostedFolder
from axonp2p.hosting.messages import HostJob, JobHosted
from axonp2p.hosting.tending import STARTS_AT_ONCE
from axonp2p.identity.key_file import load_or_create_key
from axonp2p.identity.keys import PrivateKey
from axonp2p.jobs.bundle import Bundle
from axonp2p.jobs.lifecycle import JobState
from axonp2p.transport.flow.rate_limit import RateLimit
from axonp2p.transport.http.http_caller import HttpCaller
from tests.fakes import NOW, key_of
from tests.unit.hosting.conftest import ADA, BOB, HOST, JOB, Hosting, write_bundle


async def test_a_job_is_handed_over_whole_with_a_key_of_its_own(hosting: Hosting, bundle: Bundle) -> None:
    assert sum(await hosting.give(bundle)) == bundle.size
    process = await hosting.process()
    assert process.orders.job == JOB
    assert process.orders.trackers == ["https://tracker"]
    folder = process.folder.path
    for file in bundle.files:
        assert (folder / "bundle" / file.path).read_bytes() == file.source.read_bytes()
    key = load_or_create_key(folder.parent.parent / "client.key")
    assert key.seed == job_key(ADA, JOB).seed != ADA.seed


async def test_what_it_offers_is_told(hosting: Hosting, bundle: Bundle) -> None:
    async with HttpCaller(hosting.place.address, called="host") as caller:
        offer = await ask_offer(caller)
        assert (offer.host, offer.jobs, offer.free, offer.disk_mb, offer.days) == (HOST.peer_id, 3, 3, 1, 14)
        await hosting.give(bundle)
        hosting.clock.time += 1
        assert (await ask_offer(caller)).free == 2


async def test_however_many_ask_what_it_offers_its_folders_are_looked_at_once_a_second(
    hosting: Hosting, monkeypatch: pytest.MonkeyPatch
) -> None:
    looks, free = [], hosting.keeper.free

    async def counted() -> int:
        looks.append(hosting.clock.time)
        return await free()

    monkeypatch.setattr(hosting.keeper, "free", counted)
    async with HttpCaller(hosting.place.address, called="host") as caller:
        await asyncio.gather(*(ask_offer(caller) for _ in range(5)))
        assert len(looks) == 1
        hosting.clock.time += 1
        await ask_offer(caller)
    assert len(looks) == 2


async def test_after_a_cut_only_what_is_missing_is_sent(hosting: Hosting, bundle: Bundle) -> None:
    def read_two(number: int) -> bytes:
        if number == 2:
            raise Unreachable("the laptop was closed")
        return bundle.piece(number)

    asked = HostJob(job=JOB, blob=bundle.blob.name, key=job_key(ADA, JOB).seed)
    with pytest.raises(Unreachable):
        async with await hosting.line() as line:
            await line.hand_over(asked, bundle.blob, read_two, lambda size: None)
    assert not hosting.keeper.of(ADA.peer_id)
    while True:  # until the host has heard of the cut
        try:
            sent = await hosting.give(bundle)
            break
        except Busy:
            await asyncio.sleep(0.01)
    assert 0 < sum(sent) < bundle.size
    assert len(hosting.keeper.of(ADA.peer_id)) == 1
    assert await hosting.give(bundle) == []  # the same again is no second job


async def test_a_wrong_piece_is_refused(hosting: Hosting, bundle: Bundle) -> None:
    asked = HostJob(job=JOB, blob=bundle.blob.name, key=job_key(ADA, JOB).seed)
    with pytest.raises(PeerMisbehaved):
        async with await hosting.line() as line:
            await line.hand_over(asked, bundle.blob, lambda number: bytes(len(bundle.piece(number))), lambda size: None)
    assert not hosting.stage.processes


async def test_what_is_no_job_is_not_kept(hosting: Hosting, tmp_path: Path) -> None:
    bundle = write_bundle(tmp_path / "odd")
    (tmp_path / "odd" / "job.toml").write_text("nonsense = 1\n")
    hashed = dataclasses.replace(bundle.files[0], size=13, hashes=book_of(b"nonsense = 1\n").hashes)
    with pytest.raises(Refused, match="that is no job"):
        await hosting.give(Bundle([hashed, *bundle.files[1:]]))
    assert await hosting.keeper.free() == 3
    assert not list((hosting.home / "hosted").glob("*/*"))


def hash_of(content: bytes) -> bytes:
    return hashlib.sha256(content).digest()


async def test_names_that_lead_out_of_the_folder_are_refused(hosting: Hosting, bundle: Bundle) -> None:
    evil = [*bundle.files[:-1], dataclasses.replace(bundle.files[-1], path="../../../../escaped")]
    with pytest.raises(MalformedMessage):
        await hosting.give(Bundle(evil))
    assert not list(hosting.home.rglob("escaped"))


async def test_limits_hold(hosting: Hosting, bundle: Bundle, tmp_path: Path) -> None:
    with pytest.raises(AxonError, match="at most 1"):
        await hosting.give(write_bundle(tmp_path / "large", b"x" * 2**20))
    await hosting.give(bundle, job="line-0001")
    await hosting.give(bundle, job="line-0002")
    with pytest.raises(Busy, match="2 jobs of yours"):
        await hosting.give(bundle, job="line-0003")
    with pytest.raises(Busy, match="2 jobs of yours"):  # the same address
        await hosting.give(bundle, BOB)


async def test_a_host_that_holds_none_says_so(hosting: Hosting, bundle: Bundle) -> None:
    hosting.keeper.limits = HostLimits(jobs=0)
    with pytest.raises(Refused, match="carries no jobs on"):
        await hosting.give(bundle)


async def test_nobody_sees_the_jobs_of_others(hosting: Hosting, bundle: Bundle) -> None:
    await hosting.give(bundle)
    async with await hosting.line(BOB) as line:
        assert await line.jobs() == []
        with pytest.raises(Refused, match="holds no job"):
            await line.folder(JOB, b"")
    for ask in ("part", "tell"):
        async with await hosting.line(BOB) as line:
            with pytest.raises(Refused, match="holds no job"):
                await (line.part(JOB, EVENTS, 0) if ask == "part" else line.tell(JOB, "cancel"))


async def test_the_folder_is_read_in_parts(hosting: Hosting, bundle: Bundle) -> None:
    await hosting.give(bundle)
    process = await hosting.process()
    process.folder.events.write_bytes(b"one\ntwo\n")
    async with await hosting.line() as line:
        assert [(one.job, one.at_work) for one in await line.jobs()] == [(JOB, True)]
        state, record = await line.folder(JOB, b"")
        assert state.at_work
        assert [(file.name, file.size) for file in state.files] == [(EVENTS, 8)]
        assert record == (process.folder.path / "job.json").read_bytes()
        assert (await line.folder(JOB, record))[1] == b""
        assert await line.part(JOB, EVENTS, 4, hash_of(b"one\n")) == (4, b"two\n")
        assert await line.part(JOB, EVENTS, 4, hash_of(b"eno\n")) == (0, b"one\ntwo\n")
        assert await line.part(JOB, EVENTS, 8, hash_of(b"one\ntwo\n")) == (8, b"")
        with pytest.raises(Refused, match="no such file travels"):
            await line.part(JOB, "leases.json", 0)


async def test_what_is_hashed_for_a_client_counts_against_its_own_share(
    hosting: Hosting, bundle: Bundle, monkeypatch: pytest.MonkeyPatch
) -> None:
    charged: list[tuple[str, float]] = []

    async def counted(limit: RateLimit, source: str = "", cost: float = 1.0) -> None:
        charged.append((source, cost))

    monkeypatch.setattr(server, "in_time", counted)
    await hosting.give(bundle)
    process = await hosting.process()
    process.folder.events.write_bytes(b"one\ntwo\n")
    async with await hosting.line() as line:
        await line.part(JOB, EVENTS, 0)
        assert not charged
        await line.part(JOB, EVENTS, 4, hash_of(b"one\n"))
        await line.part(JOB, EVENTS, 2**40, hash_of(b"one\n"))
    assert charged == [(ADA.peer_id, 4), (ADA.peer_id, GROWING_LIMIT)]
    assert GROWING_LIMIT <= server.HASHED_AT_ONCE  # or nobody would ever be allowed so much


async def test_for_two_sessions_at_a_time_a_host_hashes(
    hosting: Hosting, bundle: Bundle, monkeypatch: pytest.MonkeyPatch
) -> None:
    await hosting.give(bundle)
    process = await hosting.process()
    process.folder.events.write_bytes(b"one\ntwo\n")
    asked, hashing, most = asyncio.Semaphore(0), 0, 0
    counting, let_go, part = threading.Lock(), threading.Event(), HostedFolder.part

    async def counted(limit: RateLimit, source: str = "", cost: float = 1.0) -> None:
        asked.release()

    def slow(folder: HostedFolder, name: str, offset: int, before: bytes) -> tuple[int, bytes]:
        nonlocal hashing, most
        with counting:
            hashing += 1
            most = max(most, hashing)
        assert let_go.wait(10)
        with counting:
            hashing -= 1
        return part(folder, name, offset, before)

    monkeypatch.setattr(server, "in_time", counted)
    monkeypatch.setattr(HostedFolder, "part", slow)
    lines = [await hosting.line() for _ in range(4)]
    tasks = [asyncio.create_task(line.part(JOB, EVENTS, 4, hash_of(b"one\n"))) for line in lines]
    for _ in lines:
        await asked.acquire()
    let_go.set()
    assert await asyncio.gather(*tasks) == [(4, b"two\n")] * 4
    assert most <= server.MOST_HASHING
    for line in lines:
        await line.close()


async def test_wishes_reach_the_process(hosting: Hosting, bundle: Bundle) -> None:
    await hosting.give(bundle)
    process = await hosting.process()
    async with await hosting.line() as line:
        await line.tell(JOB, "pause")
        assert process.said == ["pause"]
        process.become(JobState.PAUSED)
        process.over.set()
        await hosting.nobody_works()
        await line.tell(JOB, "resume")
        again = await hosting.process(1)
        assert (await line.folder(JOB, b""))[0].at_work
        await line.tell(JOB, "stop")
        await line.tell(JOB, "cancel")
        assert again.said == ["stop", "cancel"]


@pytest.mark.parametrize(("wish", "ends_as"), [("cancel", "cancelled"), ("stop", "finished")])
async def test_a_job_without_a_process_can_be_ended_too(
    hosting: Hosting, bundle: Bundle, wish: Literal["cancel", "stop"], ends_as: str
) -> None:
    await hosting.give(bundle)
    process = await hosting.process()
    process.become(JobState.PAUSED)
    process.over.set()
    async with await hosting.line() as line:
        await hosting.nobody_works()
        await line.tell(JOB, wish)
    assert hosting.stage.ended == [(ends_as, "")]


async def test_a_process_that_dies_is_started_again(hosting: Hosting, bundle: Bundle) -> None:
    await hosting.give(bundle)
    (await hosting.process()).over.set()  # killed: its folder says that it trains
    assert await hosting.process(1)
    async with await hosting.line() as line:
        assert (await line.folder(JOB, b""))[0].at_work


async def test_a_host_that_was_killed_goes_on(hosting: Hosting, bundle: Bundle) -> None:
    await hosting.give(bundle)
    await hosting.process()
    await hosting.stop()
    await hosting.start()
    assert await hosting.process(1)
    async with await hosting.line() as line:
        assert (await line.folder(JOB, b""))[0].at_work


async def test_what_is_over_stays_over_and_gives_way_once_fetched(hosting: Hosting, bundle: Bundle) -> None:
    for number in range(2):
        await hosting.give(bundle, job=f"line-{number:04}")
        process = await hosting.process(number)
        process.become(JobState.FINISHED)
        process.over.set()
    await hosting.nobody_works()
    await hosting.stop()
    await hosting.start()
    assert hosting.keeper.running == 0
    with pytest.raises(Busy):
        await hosting.give(bundle)
    async with await hosting.line() as line:
        await line.tell("line-0001", "fetched")
    await hosting.give(bundle)
    async with await hosting.line() as line:
        assert {one.job for one in await line.jobs()} == {"line-0000", JOB}


async def test_the_host_looks_after_disk_and_days(hosting: Hosting, bundle: Bundle) -> None:
    await hosting.give(bundle)
    process = await hosting.process()
    await hosting.keeper.look()
    assert hosting.keeper.running == 1
    process.folder.events.write_bytes(b"x" * 2**20)
    await hosting.keeper.look()
    ((state, why),) = hosting.stage.ended
    assert state == "failed"
    assert "more than the 1 MiB" in why
    async with await hosting.line() as line:
        found, _ = await line.folder(JOB, b"")
        assert not found.at_work
        assert found.trouble == why
    hosting.clock.time = NOW + 15 * 86400
    await hosting.keeper.look()
    assert hosting.keeper.of(ADA.peer_id) == []
    assert not list((hosting.home / "hosted").glob("*"))


async def test_a_bundle_that_the_disk_has_no_room_for(
    hosting: Hosting, bundle: Bundle, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("axonp2p.hosting.hosted_folder.KEPT_FREE_BYTES", 2**60)
    with pytest.raises(LimitReached, match="no room"):
        await hosting.give(bundle)
    assert await hosting.keeper.free() == 3


async def test_a_cancelled_job_is_cancelled_once_however_often_that_is_said(hosting: Hosting, bundle: Bundle) -> None:
    await hosting.give(bundle)
    process = await hosting.process()
    process.become(JobState.PAUSED)
    process.over.set()
    await hosting.nobody_works()
    lines = [await hosting.line() for _ in range(8)]
    try:
        await asyncio.gather(*(line.tell(JOB, "cancel") for line in lines))
        await lines[0].tell(JOB, "cancel")
        await lines[0].tell(JOB, "resume")
    finally:
        for line in lines:
            await line.close()
    assert hosting.stage.ended == [("cancelled", "")]
    assert len(hosting.stage.processes) == 1


async def test_who_resumes_again_and_again_waits(hosting: Hosting, bundle: Bundle) -> None:
    await hosting.give(bundle)
    async with await hosting.line() as line:
        for number in range(STARTS_AT_ONCE + 1):
            process = await hosting.process(number)
            process.become(JobState.PAUSED)
            process.over.set()
            await hosting.nobody_works()
            with pytest.raises(TooOften) if number == STARTS_AT_ONCE else nullcontext():
                await line.tell(JOB, "resume")
    assert len(hosting.stage.processes) == STARTS_AT_ONCE + 1


class Turns(asyncio.Lock):
    """Tells when somebody has to wait for another."""

    def __init__(self) -> None:
        super().__init__()
        self.both_are_here = asyncio.Event()

    async def acquire(self) -> Literal[True]:
        if self.locked():
            self.both_are_here.set()
        return await super().acquire()


async def test_one_job_s_end_is_written_down_at_a_time_at_the_whole_host(hosting: Hosting, bundle: Bundle) -> None:
    """A process for each of them, from each of many sessions at once, would take the host's whole machine."""
    turns = hosting.keeper._ends = Turns()
    jobs = ["line-0001", "line-0002"]
    for number, job in enumerate(jobs):
        await hosting.give(bundle, job=job)
        process = await hosting.process(number)
        process.become(JobState.PAUSED)
        process.over.set()
    await hosting.nobody_works()
    at_once, end_as = [0], hosting.stage.end_as

    async def slowly(*told: Any) -> bool:
        at_once.append(at_once[-1] + 1)
        if at_once[-1] == 2:
            turns.both_are_here.set()
        await turns.both_are_here.wait()
        at_once.append(at_once[-1] - 1)
        return await end_as(*told)

    hosting.stage.end_as = slowly  # type: ignore[method-assign]
    async with asyncio.timeout(10), await hosting.line() as one, await hosting.line() as other:
        await asyncio.gather(*(line.tell(job, "cancel") for line, job in zip((one, other), jobs, strict=True)))
    assert at_once == [0, 1, 0, 1, 0]
    assert hosting.stage.ended == [("cancelled", "")] * 2


async def test_who_cancels_what_cannot_be_written_down_starts_few_processes(hosting: Hosting, bundle: Bundle) -> None:
    await hosting.give(bundle)
    process = await hosting.process()
    process.become(JobState.PAUSED)
    process.over.set()
    await hosting.nobody_works()
    tried = []

    async def fails(*told: Any) -> bool:
        tried.append(told)
        return False

    hosting.stage.end_as = fails  # type: ignore[method-assign]
    async with await hosting.line() as line:
        for _ in range(STARTS_AT_ONCE):
            await line.tell(JOB, "cancel")
        with pytest.raises(TooOften):
            await line.tell(JOB, "cancel")
    assert len(tried) == STARTS_AT_ONCE


async def test_a_bundle_that_comes_too_slowly_is_taken_no_further(hosting: Hosting, bundle: Bundle) -> None:
    line = await begin_to_give(hosting, bundle, ADA, JOB)
    hosting.clock.time += arrives_within(bundle.size) + 1
    await line._session.send(BlobPiece(blob=bundle.blob.name, number=0), bundle.piece(0), bulk=True)
    with pytest.raises(Refused, match="it came too slowly"):
        await line._next(JobHosted)
    await line.close()


async def begin_to_give(hosting: Hosting, bundle: Bundle, key: PrivateKey, job: str) -> HostLine:
    """Announce a job, and send nothing of it."""
    line = await hosting.line(key)
    await line._session.send(HostJob(job=job, blob=bundle.blob.name, key=bytes(32)), bundle.blob.encoded, bulk=True)
    await line._next(BlobHave)
    return line


async def test_manifests_alone_block_no_host(hosting: Hosting, bundle: Bundle) -> None:
    hosting.limits = hosting.keeper.limits = dataclasses.replace(hosting.limits, jobs_of_one=9)
    lines = [await begin_to_give(hosting, bundle, key_of(f"key {number}"), JOB) for number in range(3)]
    async with await hosting.line() as asking:
        assert await hosting.keeper.free() == 3
        await asking.jobs()
    with pytest.raises(Busy):
        await hosting.give(bundle)
    hosting.clock.time += ARRIVAL_IDLE_S
    await hosting.give(bundle)
    await lines[0]._session.send(BlobPiece(blob=bundle.blob.name, number=0), bundle.piece(0), bulk=True)
    with pytest.raises(Refused, match="another job takes its place"):
        await lines[0]._next(JobHosted)
    hosting.clock.time += ARRIVAL_STALLED_S
    await hosting.keeper.look()
    assert len(list((hosting.home / "hosted").glob("*/*"))) == 1
    for line in lines:
        await line.close()
