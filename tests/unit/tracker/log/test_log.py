"""A tracker's log: signed, proved, told, the same after a restart; others watch it, and name one that was rewritten."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
import sqlite_utils

from axonp2p.errors import LogDamaged, Refused
from axonp2p.ledger import log_client
from axonp2p.ledger.ledger_client import balances, hand_in
from axonp2p.ledger.log_messages import MOST_ENTRIES
from axonp2p.ledger.merkle import leaf_hash
from axonp2p.ledger.tiles import Read
from axonp2p.ledger.tree_head import TreeHead, open_consistency, open_head, proves
from axonp2p.wire.codec import encode
from tests.fakes import NOW, fails_once, make_receipt, sign_both
from tests.unit.tracker.conftest import Running, Start
from tests.unit.tracker.logs import ADA, BEN, CLIENT, encoded, paid, reserved, rewrite, tamper
from tracker.ledger.intake import Budget
from tracker.ledger.receipt_relay import OtherTracker
from tracker.log import log_watcher
from tracker.log.log_watcher import LogWatcher
from tracker.storage import log_store
from tracker.storage.database import Database


async def head(lab: Running) -> TreeHead:
    """As it is now: what was shown a second ago is shown again."""
    lab.clock.time += 2
    return open_head((await log_client.heads(lab.caller)).own)


async def test_an_empty_log_has_a_head(lab: Running):
    first = await head(lab)
    assert (first.size, first.tracker) == (0, lab.tracker.key.peer_id)
    assert not (await log_client.history(lab.caller, CLIENT.peer_id, prove=True)).entries


async def test_every_receipt_is_proved_under_a_head_that_continues_the_last(lab: Running):
    receipts = encoded(await paid(lab, ADA, BEN, rounds=40))
    first = await head(lab)
    receipts += encoded(await paid(lab, ADA, rounds=90))
    second = await head(lab)
    assert (first.size, second.size) == (80, 170)
    answer = await log_client.consistency(lab.caller, first.size, second.size)
    assert proves(open_consistency(answer, first, second), first, second)
    for number in (0, 63, 64, 79, 80, 169):
        told = await log_client.inclusion(lab.caller, receipts[number])
        assert (told.included.number, told.included.entry) == (number, receipts[number])
    told = await log_client.leaves(lab.caller, 60, 100)
    assert [leaf for _, leaf in told] == [leaf_hash(entry) for entry in receipts[60:160]]
    assert (await log_client.entries(lab.caller, [169, 3])).entries == [receipts[169], receipts[3]]


async def test_what_is_not_there_is_said_so(lab: Running):
    await paid(lab, ADA)
    with pytest.raises(Refused, match="no such entry"):
        await log_client.inclusion(lab.caller, encode(sign_both(CLIENT, BEN, make_receipt(CLIENT, BEN, "0" * 36))))
    with pytest.raises(Refused, match="no entry 1"):
        await log_client.entries(lab.caller, [0, 1])
    with pytest.raises(Refused, match="has 1 entries"):
        await log_client.consistency(lab.caller, 1, 2)
    with pytest.raises(Refused, match="no head of 7"):
        await log_client.history(lab.caller, CLIENT.peer_id, size=7)
    assert await log_client.leaves(lab.caller, 1, 10) == []


async def test_the_history_of_a_key_comes_in_pages_under_one_head(lab: Running):
    await paid(lab, ADA, BEN, rounds=MOST_ENTRIES)
    mine = await log_client.history(lab.caller, BEN.peer_id, prove=True)
    all_of_it = await log_client.history(lab.caller, CLIENT.peer_id)
    size = open_head(all_of_it.head).size
    numbers = [one.number for one in all_of_it.entries]
    await paid(lab, ADA)
    rest = await log_client.history(lab.caller, CLIENT.peer_id, numbers[-1], size, prove=True)
    assert rest.head == all_of_it.head
    assert [one.number for one in mine.entries] == list(range(2 * MOST_ENTRIES - 1, 0, -2))
    assert numbers + [one.number for one in rest.entries] == list(reversed(range(2 * MOST_ENTRIES)))


async def test_a_page_with_proofs_reads_each_tile_once(lab: Running, monkeypatch: pytest.MonkeyPatch):
    await paid(lab, ADA, rounds=2 * MOST_ENTRIES)
    await head(lab)
    read: list[tuple[int, int]] = []
    stored = log_store.tile_reader

    def counting(database: sqlite_utils.Database) -> Read:
        def tile(height: int, index: int) -> bytes:
            read.append((height, index))
            return stored(database)(height, index)

        return tile

    monkeypatch.setattr(log_store, "tile_reader", counting)
    assert len((await log_client.history(lab.caller, ADA.peer_id, prove=True)).entries) == MOST_ENTRIES
    assert len(read) == len(set(read))


async def test_the_log_goes_on_after_a_restart(start: Start):
    lab = await start()
    await paid(lab, ADA, rounds=70)
    before = await head(lab)
    await lab.stop()
    again = await start(clock=lab.clock)
    await paid(again, ADA, rounds=3)
    after = await head(again)
    assert (after.log, after.size) == (before.log, 73)
    answer = await log_client.consistency(again.caller, 70, 73)
    assert proves(open_consistency(answer, before, after), before, after)


async def test_a_head_is_never_earlier_than_that_of_fewer_entries(lab: Running):
    uuid = await reserved(lab, ADA)
    before = await head(lab)
    lab.clock.now = lambda: NOW - 1000  # type: ignore[method-assign]
    await hand_in(lab.caller, [sign_both(CLIENT, ADA, make_receipt(CLIENT, ADA, uuid))])
    after = await head(lab)
    assert (after.size, after.time) == (before.size + 1, before.time)


async def test_of_two_receipts_with_one_number_every_tracker_counts_the_same(start: Start, tmp_path: Path):
    _made(tmp_path, "first", "second")
    labs = [await start(tmp_path / name) for name in ("first", "second")]
    labs[1].trusts(labs[0])
    uuid = await reserved(labs[0], ADA)
    token = encode(await labs[0].reserve(CLIENT, ADA, uuid=uuid))
    forks = [sign_both(CLIENT, ADA, make_receipt(CLIENT, ADA, uuid, flops=flops)) for flops in (10**12, 2 * 10**12, 5)]
    for lab, order in zip(labs, (forks, forks[::-1]), strict=True):
        for receipt in order:
            await hand_in(lab.caller, [receipt], [token])
    sums = [await balances(lab.caller, [ADA.peer_id, CLIENT.peer_id]) for lab in labs]
    assert sums[0] == sums[1]
    assert sums[0].receipts == 1


async def test_a_tracker_does_not_start_with_a_log_that_it_did_not_sign(start: Start, tmp_path: Path):
    lab = await start()
    await paid(lab, ADA, rounds=5)
    await head(lab)
    await lab.stop()
    tamper(tmp_path, ("UPDATE tiles SET hashes = zeroblob(160) WHERE place = 0", []))
    with pytest.raises(LogDamaged, match="first 5 entries"):
        await start(clock=lab.clock)


# --- watched by another ---------------------------------------------------------------------------


@asynccontextmanager
async def watching(others: Callable[[], list[Running]], home: Path, by: Running) -> AsyncIterator[LogWatcher]:
    """A watcher of these trackers that keeps what it lacks in `by`."""
    database = Database(home / "tracker.db")
    database.start()

    def as_others() -> list[OtherTracker]:
        return [OtherTracker(lab.tracker.key.peer_id, "d" * 32, lab.caller) for lab in others()]

    try:
        yield LogWatcher(home, database, by.tracker.ledger, as_others)
    finally:
        await database.close()


async def test_what_only_a_third_tracker_knows_is_fetched_from_its_log(start: Start, tmp_path: Path):
    _made(tmp_path, "first", "second")
    first, second = await start(tmp_path / "first"), await start(tmp_path / "second")
    second.trusts(first)
    await paid(first, ADA, BEN, rounds=120)
    async with watching(lambda: [first], tmp_path / "second", second) as watcher:
        for _ in range(3):
            first.clock.time += 2
            await watcher.look()
    assert second.tracker.ledger.receipts == 240
    keys = [ADA.peer_id, CLIENT.peer_id]
    assert await balances(first.caller, keys) == await balances(second.caller, keys)


async def test_a_log_that_was_rewritten_by_hand_is_named_and_stays_so(start: Start, tmp_path: Path):
    _made(tmp_path, "first", "second")
    first, second = await start(tmp_path / "first"), await start(tmp_path / "second")
    receipts = await paid(first, ADA, rounds=10)
    async with watching(lambda: [first], tmp_path / "second", second) as watcher:
        first.clock.time += 2
        await watcher.look()
        await first.stop()
        forged = encode(sign_both(CLIENT, ADA, make_receipt(CLIENT, ADA, "0" * 8, flops=10**18)))
        rewrite(tmp_path / "first", lambda entries: [*entries[:4], forged, *entries[5:]])
        first = await start(tmp_path / "first", clock=first.clock)
        await paid(first, ADA, rounds=3)
        first.clock.time += 2
        await watcher.look()
        (one,) = watcher.watched.convicted
        assert one.tracker == first.tracker.key.peer_id
        assert "10 entries" in one.why
        assert watcher.says_of(one.tracker).startswith("FALSE: it rewrote its past")
    assert len(receipts) == 10
    async with watching(list, tmp_path / "second", second) as later:
        assert later.watched.convicted == [one]


async def test_two_trackers_tell_each_other_what_they_saw_of_a_third(start: Start, tmp_path: Path):
    _made(tmp_path, "first", "second", "third")
    first, second, third = [await start(tmp_path / name) for name in ("first", "second", "third")]
    await paid(first, ADA, rounds=10)
    second.tracker.watcher._others = lambda: [OtherTracker(first.tracker.key.peer_id, "d" * 32, first.caller)]
    first.clock.time += 2
    await second.tracker.watcher.look()
    await first.stop()
    rewrite(tmp_path / "first", lambda entries: entries[:3] + entries[4:] + entries[3:4])
    first = await start(tmp_path / "first", clock=first.clock)
    # The third never saw the first before it was rewritten, but the second did.
    async with watching(lambda: [first, second], tmp_path / "third", third) as watcher:
        first.clock.time += 2
        await watcher.look()
        assert "two logs of 10 entries" in watcher.watched.convicted[0].why


def _made(folder: Path, *names: str) -> None:
    for name in names:
        (folder / name).mkdir()


async def test_a_damaged_entry_is_not_told(start: Start, tmp_path: Path):
    lab = await start()
    await paid(lab, ADA, rounds=3)
    await head(lab)
    tamper(tmp_path, ("UPDATE entries SET entry = CAST(entry || x'00' AS BLOB) WHERE number = 1", []))
    for asked in (
        log_client.history(lab.caller, ADA.peer_id),
        log_client.entries(lab.caller, [0, 1]),
        log_client.entries(lab.caller, [1]),
    ):
        with pytest.raises(Refused, match="entry 1 of the log was changed"):
            await asked


@pytest.mark.parametrize("trusted", [False, True])
async def test_what_only_a_strangers_log_has_is_taken_within_its_budget(
    start: Start, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, trusted: bool
):
    _made(tmp_path, "first", "second")
    first, second = await start(tmp_path / "first"), await start(tmp_path / "second")
    monkeypatch.setattr("tracker.ledger.intake.STRANGERS_A_DAY_OF_ONE", 5)
    second.tracker.ledger.budget = Budget(second.clock)
    await paid(first, ADA, rounds=20)
    await second.announce(ADA)
    async with watching(lambda: [first], tmp_path / "second", second) as watcher:
        watcher._trusted = lambda tracker: trusted
        for _ in range(2):
            first.clock.time += 2
            await watcher.look()
    assert second.tracker.ledger.receipts == (20 if trusted else 0)


async def test_a_look_that_ends_by_a_mistake_of_ours_is_followed_by_the_next(
    lab: Running, monkeypatch: pytest.MonkeyPatch
):
    looks, again = 0, asyncio.Event()

    async def look() -> None:
        nonlocal looks
        looks += 1
        if looks == 1:
            raise ValueError("year 285427423 is out of range")
        again.set()

    watcher = lab.tracker.watcher
    monkeypatch.setattr(log_watcher, "LOOK_EVERY_S", 0.0)
    monkeypatch.setattr(watcher, "look", look)
    watching_ = asyncio.create_task(watcher.run())
    waiting = asyncio.create_task(again.wait())
    await asyncio.wait([watching_, waiting], return_when=asyncio.FIRST_COMPLETED)
    assert waiting.done()
    watching_.cancel()


async def test_a_task_of_a_tracker_that_ends_by_a_mistake_of_ours_is_begun_again(
    start: Start, monkeypatch: pytest.MonkeyPatch
):
    again = fails_once(monkeypatch, LogWatcher)
    await start()
    async with asyncio.timeout(10):
        await again.wait()
