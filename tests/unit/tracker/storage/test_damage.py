"""A tracker's file is damaged: it finds out by itself, mends what it can, and never blames whoever asks."""

from __future__ import annotations

import sqlite3
from pathlib import Path
from typing import Any

import aiohttp
import pytest

from axonp2p.errors import Refused
from axonp2p.ledger import log_client
from axonp2p.ledger.ledger_client import balances, hand_in
from axonp2p.ledger.log_messages import EntriesAsked
from axonp2p.transport.messages import Refusal
from axonp2p.wire.codec import decode_as, encode
from tests.unit.tracker.conftest import Running, Start
from tests.unit.tracker.ledger.test_receipt_relay import as_other, relaying, until
from tests.unit.tracker.logs import ADA, BEN, convicted, paid, reserved, tamper

ENTRY = "UPDATE entries SET entry = CAST(entry || x'00' AS BLOB) WHERE number = 1"


async def no_pause(seconds: float) -> None:
    """The test moves on at once."""


@pytest.mark.parametrize(
    "change",
    [
        "flops = 9 * flops WHERE entry = 1",
        "flops = 0",
        "counts = 0 WHERE entry = 0",
        "peer = client WHERE entry = 2",
        "entry = 999 WHERE entry = 2",
        "place = 1 WHERE entry = 0",
        "whole = 1 WHERE entry = 0",
        "leaf = 1 WHERE entry = 0",
    ],
)
async def test_a_changed_index_changes_no_balance(start: Start, tmp_path: Path, change: str):
    lab = await start()
    await paid(lab, ADA, BEN, rounds=3)
    before = await balances(lab.caller)
    await lab.stop()
    tamper(tmp_path, (f"UPDATE receipts SET {change}", []))
    again = await start(clock=lab.clock)
    assert await balances(again.caller) == before
    # And while it runs.
    tamper(tmp_path, (f"UPDATE receipts SET {change}", []))
    await again.tracker.scrub.scrub(no_pause)
    assert await balances(again.caller) == before
    assert again.tracker.scrub.trouble == ""


async def test_a_void_receipt_that_is_made_to_count_again_does_not(start: Start, tmp_path: Path):
    lab = await start()
    await paid(lab, ADA)
    uuid = await reserved(lab, ADA)
    await convicted(lab, of=ADA, reservation=uuid)
    before = await balances(lab.caller)
    for change in ("counts = 1 WHERE counts = 2", "counts = 0 WHERE counts = -1"):
        tamper(tmp_path, (f"UPDATE receipts SET {change}", []))
        await lab.tracker.scrub.scrub(no_pause)
        assert await balances(lab.caller) == before
    await lab.stop()
    tamper(tmp_path, ("UPDATE receipts SET counts = 1", []))
    assert await balances((await start(clock=lab.clock)).caller) == before


async def test_a_damaged_entry_is_the_trackers_own_error(lab: Running, tmp_path: Path):
    receipts = await paid(lab, ADA, rounds=3)
    for change in (ENTRY, "UPDATE entries SET entry = x'81' WHERE number = 1"):
        tamper(tmp_path, (change, []))
        body = encode(EntriesAsked(numbers=[1]))
        async with (
            aiohttp.ClientSession() as client,
            client.post(f"{lab.address.url}/v1/entries", data=body, ssl=False) as response,
        ):
            said = decode_as(await response.read(), Refusal, 4096)
        assert (response.status, said.code) == (500, "AX-607")
        assert "entry 1 of the log was changed" in said.message
    await lab.tracker.scrub.scrub(no_pause)
    assert "1 of its log's entries damaged" in lab.tracker.scrub.trouble
    async with aiohttp.ClientSession() as client, client.get(f"{lab.address.url}/v1/health", ssl=False) as response:
        assert "damaged" in (await response.json())["trouble"]
    # Whoever hands it in again gives it back.
    assert (await hand_in(lab.caller, receipts)).known == 3
    assert (await log_client.entries(lab.caller, [1])).entries == [encode(receipts[1])]
    await lab.tracker.scrub.scrub(no_pause)
    assert lab.tracker.scrub.trouble == ""


async def test_a_damaged_entry_comes_back_from_another_tracker(start: Start, tmp_path: Path):
    first, second = await _two(start, tmp_path)
    receipts = await paid(first, ADA, rounds=3)
    async with relaying(lambda: [as_other(second)], tmp_path / "first") as relay:
        relay.nudge()
        await until(lambda: second.tracker.ledger.receipts == 3)
    second.clock.time += 2
    tamper(tmp_path / "first", (ENTRY, []))
    first.tracker.scrub._others = lambda: [as_other(second)]
    await first.tracker.scrub.scrub(no_pause)
    assert first.tracker.scrub.trouble == ""
    assert (await log_client.entries(first.caller, [1])).entries == [encode(receipts[1])]


async def test_what_is_whole_is_passed_on_beside_a_damaged_entry(
    start: Start, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    told = _errors_of_the_relay(monkeypatch)
    first, second = await _two(start, tmp_path)
    await paid(first, ADA, rounds=3)
    tamper(tmp_path / "first", (ENTRY, []))
    async with relaying(lambda: [as_other(second)], tmp_path / "first") as relay:
        relay.nudge()
        await until(lambda: second.tracker.ledger.receipts == 2)
    assert "an entry is damaged and not passed on: entry 1 of the log was changed" in told


async def test_damage_that_ends_the_passing_on_is_told_as_one(lab: Running, tmp_path: Path, monkeypatch):
    def corrupt(*_: Any) -> Any:
        error = sqlite3.DatabaseError("database disk image is malformed")
        error.sqlite_errorname = "SQLITE_CORRUPT"
        raise error

    told = _errors_of_the_relay(monkeypatch)
    monkeypatch.setattr("tracker.ledger.receipt_relay._waiting_for", corrupt)
    async with relaying(lambda: [as_other(lab)], tmp_path) as relay:
        relay.nudge()
        await until(lambda: told)
    assert told[0] == "receipts not passed on: this tracker's database is damaged"


def _errors_of_the_relay(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    told: list[str] = []
    monkeypatch.setattr(
        "tracker.ledger.receipt_relay.log.error", lambda text, **facts: told.append(f"{text}: {facts['reason']}")
    )
    return told


async def test_it_looks_for_damage_by_itself_while_it_runs(start: Start, tmp_path: Path):
    lab = await start()
    await paid(lab, ADA, rounds=3)
    await lab.stop()
    tamper(tmp_path, (ENTRY, []))
    again = await start(clock=lab.clock)
    await until(lambda: again.tracker.scrub.trouble)


async def _two(start: Start, folder: Path) -> tuple[Running, Running]:
    for name in ("first", "second"):
        (folder / name).mkdir()
    first, second = await start(folder / "first"), await start(folder / "second")
    second.trusts(first)
    return first, second


async def test_damaged_evidence_is_not_told(lab: Running, tmp_path: Path):
    voiding = await convicted(lab, of=ADA, reservation=await reserved(lab, ADA))
    tamper(tmp_path, ("UPDATE evidence SET evidence = CAST(evidence || x'00' AS BLOB)", []))
    (one,) = (await log_client.history(lab.caller, ADA.peer_id, only_voidings=True)).entries
    assert one.entry
    with pytest.raises(Refused, match="was changed on this tracker's disk"):
        await log_client.evidence(lab.caller, __import__("hashlib").sha256(voiding.evidence).digest())


async def test_a_disk_that_takes_nothing_is_told_once_and_by_the_health_page(lab: Running, monkeypatch):
    await lab.announce(ADA)
    uuid = await reserved(lab, BEN)
    told: list[str] = []
    monkeypatch.setattr("tracker.storage.database.log.error", lambda text, **facts: told.append(facts["reason"]))
    lab.tracker._database._writing.conn.execute("PRAGMA query_only = 1")
    from tests.unit.tracker.ledger.test_foreign_receipts import doubly

    for _ in range(20):
        with pytest.raises(Refused, match="cannot store anything"):
            await hand_in(lab.caller, [doubly(BEN, uuid)])
    assert len(told) == 1
    assert "it cannot store anything: attempt to write a readonly database" in lab.tracker._trouble()
    lab.tracker._database._writing.conn.execute("PRAGMA query_only = 0")
    await hand_in(lab.caller, [doubly(BEN, uuid)])
    assert lab.tracker._trouble() == ""
