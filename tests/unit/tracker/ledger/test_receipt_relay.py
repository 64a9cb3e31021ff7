"""Receipts reach the other trackers once, also after outages and lost databases, and go no further."""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from axonp2p.identity.keys import PrivateKey
from axonp2p.ledger.ledger_client import hand_in
from axonp2p.ledger.receipt import MOST_RECEIPTS
from axonp2p.reservation.token import Token
from axonp2p.transport.http.http_caller import HttpCaller
from axonp2p.wire.envelope import open_signed
from tests.fakes import key_of, make_receipt, sign_both
from tests.unit.tracker.conftest import Running, Start
from tracker.ledger.receipt_relay import OtherTracker, ReceiptRelay
from tracker.storage.database import Database

CLIENT, ADA, BEN = key_of("client"), key_of("ada"), key_of("ben")
PATIENCE_S = 30.0


def as_other(running: Running, database: str = "a" * 32) -> OtherTracker:
    return OtherTracker(running.tracker.key.peer_id, database, running.caller)


@asynccontextmanager
async def relaying(others: Callable[[], list[OtherTracker]], home: Path) -> AsyncIterator[ReceiptRelay]:
    """A relay of the receipts in `home`, on a second connection to the file of the tracker that runs there."""
    database = Database(home / "tracker.db")
    database.start()
    relay = ReceiptRelay(database, others)
    task = asyncio.create_task(relay.run())
    try:
        yield relay
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        await database.close()


async def until(true: Callable[[], bool]) -> None:
    async with asyncio.timeout(PATIENCE_S):
        while not true():  # noqa: ASYNC110
            await asyncio.sleep(0.02)


async def paid(lab: Running, *peers: PrivateKey, rounds: int = 1) -> None:
    """A job of so many rounds on these peers."""
    await lab.announce(*peers, sequence=int(lab.clock.now()))
    token = await lab.reserve(CLIENT, *peers)
    uuid = open_signed(token, Token).uuid
    receipts = [
        sign_both(CLIENT, peer, make_receipt(CLIENT, peer, uuid, number))
        for number in range(1, rounds + 1)
        for peer in peers
    ]
    for start in range(0, len(receipts), MOST_RECEIPTS):
        kept = await hand_in(lab.caller, receipts[start : start + MOST_RECEIPTS])
        assert not kept.refused
    lab.clock.time += 1


@pytest.fixture
def homes(tmp_path: Path) -> list[Path]:
    made = [tmp_path / name for name in ("first", "second", "third")]
    for home in made:
        home.mkdir()
    return made


async def test_another_tracker_hears_of_every_receipt(start: Start, homes: list[Path]):
    first, second = await start(homes[0]), await start(homes[1])
    second.trusts(first)
    await paid(first, ADA, BEN, rounds=MOST_RECEIPTS)
    async with relaying(lambda: [as_other(second)], homes[0]) as relay:
        relay.nudge()
        await until(lambda: second.tracker.ledger.receipts == 2 * MOST_RECEIPTS)
        await paid(first, ADA)
        relay.nudge()
        await until(lambda: second.tracker.ledger.receipts == 2 * MOST_RECEIPTS + 1)


async def test_the_cursor_survives_a_restart(start: Start, homes: list[Path]):
    first, second = await start(homes[0]), await start(homes[1])
    second.trusts(first)
    await paid(first, ADA, rounds=3)
    for _ in range(2):
        async with relaying(lambda: [as_other(second)], homes[0]) as relay:
            relay.nudge()
            await until(lambda: second.tracker.ledger.receipts == 3 and _cursors(homes[0]) == [("a" * 32, 3)])


@pytest.mark.slow
async def test_what_was_passed_on_travels_no_further(start: Start, homes: list[Path]):
    first, second, third = [await start(home) for home in homes]
    second.trusts(first)
    third.trusts(first, second)
    await paid(second, BEN)
    async with relaying(lambda: [as_other(third)], homes[1]) as onward:
        onward.nudge()
        await until(lambda: third.tracker.ledger.receipts == 1)
        await paid(first, ADA)
        async with relaying(lambda: [as_other(second)], homes[0]) as relay:
            relay.nudge()
            await until(lambda: second.tracker.ledger.receipts == 2)
        onward.nudge()
        await until(lambda: _cursors(homes[1]) == [("a" * 32, 2)])
        assert third.tracker.ledger.receipts == 1


@pytest.mark.slow
async def test_one_that_begins_empty_does_not_tell_what_it_was_told(start: Start, homes: list[Path]):
    first, second, third = [await start(home) for home in homes]
    second.trusts(first)
    third.trusts(first, second)
    async with relaying(lambda: [as_other(third)], homes[1]) as onward:
        onward.nudge()
        await until(lambda: _cursors(homes[1]) == [("a" * 32, 0)])
        await paid(first, ADA)
        async with relaying(lambda: [as_other(second)], homes[0]) as relay:
            relay.nudge()
            await until(lambda: second.tracker.ledger.receipts == 1)
        onward.nudge()
        await until(lambda: _cursors(homes[1]) == [("a" * 32, 1)])
    assert third.tracker.ledger.receipts == 0


async def test_a_tracker_that_lost_its_database_is_told_everything(start: Start, homes: list[Path]):
    first, second, third = [await start(home) for home in homes]
    second.trusts(first)
    third.trusts(first, second)
    await paid(first, ADA)
    async with relaying(lambda: [as_other(second)], homes[0]) as relay:
        relay.nudge()
        await until(lambda: second.tracker.ledger.receipts == 1)
    # The third has never heard of it, and the first is not there to say it.
    await first.stop()
    async with relaying(lambda: [as_other(third, "b" * 32)], homes[1]) as relay:
        relay.nudge()
        await until(lambda: third.tracker.ledger.receipts == 1)


async def test_one_that_is_away_keeps_nobody_waiting_and_is_told_later(start: Start, homes: list[Path]):
    first, second, third = [await start(home) for home in homes]
    second.trusts(first)
    third.trusts(first, second)
    away = HttpCaller(third.address, called="tracker away", timeout_s=PATIENCE_S)
    others = [OtherTracker(third.tracker.key.peer_id, "c" * 32, away), as_other(second)]
    await third.tracker.stop()
    await paid(first, ADA)
    async with relaying(lambda: others, homes[0]) as relay:
        relay.nudge()
        await until(lambda: second.tracker.ledger.receipts == 1)
        back = await start(homes[2])
        back.trusts(first)
        others[0] = as_other(back, "c" * 32)
        relay.nudge()
        await until(lambda: back.tracker.ledger.receipts == 1)
    await away.close()


def _cursors(home: Path) -> list[tuple[str, int]]:
    connection = sqlite3.connect(home / "tracker.db")
    try:
        return connection.execute("SELECT database, upto FROM relays").fetchall()
    finally:
        connection.close()
