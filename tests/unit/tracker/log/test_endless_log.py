"""Trackers whose logs never end, or are ever new ones: they keep this one's watch busy for a while, and nobody out."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Callable
from pathlib import Path
from typing import Any, cast

import pytest

from axonp2p.identity.keys import PrivateKey
from axonp2p.ledger.log_messages import MOST_LEAVES, HeadsTold, LeavesAsked, LeavesTold
from axonp2p.ledger.merkle import leaf_hash
from axonp2p.ledger.receipt import DoublySigned, open_doubly_signed, place_key
from axonp2p.ledger.tree_head import TreeHead
from axonp2p.wire.codec import encode
from axonp2p.wire.envelope import sign
from tests.fakes import key_of
from tests.unit.tracker.conftest import Start
from tests.unit.tracker.logs import ADA, paid
from tracker.ledger.receipt_relay import OtherTracker
from tracker.log import log_watcher
from tracker.log.log_watcher import PAGES_A_LOOK, LogWatcher
from tracker.storage import ledger_tables

pytestmark = pytest.mark.slow

ENDLESS = 2**40


class Liar:
    """Stands for the line to a tracker that claims a log without end, of one entry again and again."""

    def __init__(self, name: str, entry: DoublySigned, logs: Callable[[], str] = lambda: "e" * 32) -> None:
        self.called, self.key, self._logs = name, key_of(name), logs
        self.pages = 0
        self._leaf = leaf_hash(encode(entry))
        self._place = place_key(open_doubly_signed(entry))
        self.slow = False
        self.asked = asyncio.Event()
        """Whether anybody wanted to see what is in the log."""
        self.waits_for: asyncio.Event | None = None
        """Before that it shows nothing."""
        self.shown = 0

    async def call(self, path: str, asked: object, *_: object, **__: object) -> object:
        if isinstance(asked, LeavesAsked):
            self.pages += 1
            self.asked.set()
            if self.slow:
                await asyncio.Event().wait()
            if self.waits_for:
                await self.waits_for.wait()
            self.shown += 1
            return LeavesTold(leaves=self._leaf * MOST_LEAVES, places=[self._place] * MOST_LEAVES)
        head = TreeHead(tracker=self.key.peer_id, log=self._logs(), size=ENDLESS, root=bytes(32), time=1000)
        return HeadsTold(own=sign(self.key, head))


def other(key: PrivateKey, caller: object) -> OtherTracker:
    return OtherTracker(key.peer_id, "d" * 32, cast(Any, caller))


async def test_a_log_without_end_costs_some_pages_a_look_and_others_are_followed(
    start: Start, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(log_watcher, "FOLLOWED_WITHIN_S", 3.0)
    for name in ("first", "second"):
        (tmp_path / name).mkdir()
    first, second = await start(tmp_path / "first"), await start(tmp_path / "second")
    second.trusts(first)
    receipts = await paid(first, ADA, rounds=20)
    liar, slow = Liar("liar", receipts[0]), Liar("slow liar", receipts[0])
    slow.slow = True
    honest = other(first.tracker.key, first.caller)
    watcher = second.tracker.watcher
    watcher._others = lambda: [other(liar.key, liar), other(slow.key, slow), honest]
    looks = 3
    for _ in range(looks):
        first.clock.time += 2
        async with asyncio.timeout(20):
            await watcher.look()
    assert 0 < liar.pages <= PAGES_A_LOOK * looks
    assert 0 < slow.pages <= looks
    assert second.tracker.ledger.receipts == 20


async def test_logs_are_followed_side_by_side(start: Start, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(log_watcher, "FOLLOWED_WITHIN_S", 3.0)
    monkeypatch.setattr(log_watcher, "PAGES_A_LOOK", 1)
    lab = await start()
    (receipt,) = await paid(lab, ADA)
    first, second = Liar("first", receipt), Liar("second", receipt)
    first.waits_for = second.asked
    watcher = lab.tracker.watcher
    watcher._others = lambda: [other(first.key, first), other(second.key, second)]
    await watcher.look()
    async with asyncio.timeout(20):
        await watcher.look()
    assert (first.shown, second.shown) == (1, 1)


async def test_what_is_kept_of_logs_that_are_ever_new_is_bounded(
    start: Start, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(ledger_tables, "MOST_CURSORS", 5)
    lab = await start()
    (receipt,) = await paid(lab, ADA)
    watcher: LogWatcher = lab.tracker.watcher
    numbers = itertools.count()
    for name in map(str, range(8)):
        liar = Liar(name, receipt, lambda: f"{next(numbers) // 2:032x}")
        watcher._others = lambda liar=liar: [other(liar.key, liar)]  # type: ignore[misc]
        for _ in range(6):
            await watcher.look()
        assert liar.pages
    kept = await lab.tracker._database.read(lambda tables: tables.execute("SELECT tracker FROM follows").fetchall())
    assert len(kept) == len({tracker for (tracker,) in kept}) == 5
