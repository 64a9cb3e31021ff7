"""A tracker whose database lost its end: what was acknowledged is there, here or at others, or it is told."""

from __future__ import annotations

import asyncio
import errno
import os
import shutil
from pathlib import Path

import msgspec
import pytest
from click.testing import CliRunner

from axonp2p.errors import Busy, LogDamaged
from axonp2p.files import write_whole
from axonp2p.ledger.ledger_client import balances
from axonp2p.ledger.log_client import heads
from axonp2p.ledger.tree_head import TreeHead, open_head
from axonp2p.settings import TrackerSettings
from axonp2p.transport.dial_policy import DialPolicy
from axonp2p.transport.http.http_caller import HttpCaller
from axonp2p.wire.envelope import sign
from tests.fakes import key_of
from tests.unit.tracker.conftest import Running, Start
from tests.unit.tracker.ledger.test_receipt_relay import as_other
from tests.unit.tracker.logs import ADA, BEN, paid
from tracker.log import log_fetch
from tracker.log.maintenance import check_home
from tracker.main import main
from tracker.storage.last_head import FILE, LastHead

TRACKER = key_of("tracker")


def as_it_is(home: Path, to: Path) -> None:
    """The database as a disk that lies about what it has synced would show it later."""
    to.mkdir()
    for file in home.glob("tracker.db*"):
        shutil.copy(file, to)


def loses_its_end(home: Path, earlier: Path) -> None:
    for file in home.glob("tracker.db*"):
        file.unlink()
    for file in earlier.iterdir():
        shutil.copy(file, home)


async def test_alone_it_does_not_start_and_says_what_can_be_done(start: Start, tmp_path: Path):
    lab = await start(home := _made(tmp_path, "home"))
    await paid(lab, ADA, rounds=4)
    await asyncio.to_thread(as_it_is, home, tmp_path / "earlier")
    await paid(lab, ADA, BEN, rounds=3)
    await lab.stop()
    # Nobody ever asked for a head: every acknowledgement counts, not only what was shown.
    loses_its_end(home, tmp_path / "earlier")
    with pytest.raises(LogDamaged, match="acknowledged 10 entries of its log, and 4 are left") as refused:
        await start(home, clock=lab.clock)
    for way in ("--tracker", "restore FILE", "new-log"):
        assert way in refused.value.fix
    checked = await asyncio.to_thread(check_home, home, TrackerSettings(), offline=True)
    assert ["10 entries were acknowledged" in problem.text for problem in checked.problems] == [True]
    done = CliRunner().invoke(main, ["new-log", "--home", str(home)])
    assert (done.exit_code, "begun with the entries that are left" in done.output) == (0, True)
    again = await start(home, clock=lab.clock)
    assert open_head((await heads(again.caller)).own).size == 4


async def test_a_new_database_in_the_place_of_one_that_had_receipts_is_told_too(start: Start, tmp_path: Path):
    lab = await start(home := _made(tmp_path, "home"))
    await paid(lab, ADA)
    await lab.stop()
    for file in home.glob("tracker.db*"):
        file.unlink()
    with pytest.raises(LogDamaged, match="1 entries of its log, and 0 are left"):
        await start(home, clock=lab.clock)


@pytest.mark.parametrize("where", [0.1, 0.5, 0.9])
async def test_one_bit_of_the_wal_of_a_killed_tracker_takes_no_receipt_away_unsaid(
    start: Start, tmp_path: Path, where: float
):
    lab = await start(home := _made(tmp_path, "home"))
    await paid(lab, ADA, rounds=2)
    await paid(lab, ADA, BEN, rounds=2)
    killed = tmp_path / "killed"
    await asyncio.to_thread(shutil.copytree, home, killed)
    wal = bytearray((killed / "tracker.db-wal").read_bytes())
    wal[int(len(wal) * where)] ^= 1
    (killed / "tracker.db-wal").write_bytes(wal)
    with pytest.raises(LogDamaged, match=r"acknowledged 6 entries of its log, and [0-5] are left"):
        await start(killed, clock=lab.clock)


@pytest.mark.parametrize("rounds_before", [0, 4])
async def test_what_another_tracker_has_comes_back_before_anything_is_signed(
    start: Start, tmp_path: Path, rounds_before: int
):
    first, second, home, was = await _two_of_which_one_loses_its_end(start, tmp_path, rounds_before)
    again = await start(home, clock=first.clock)
    head = open_head((await heads(again.caller)).own)
    assert (head.size, head.log, head.root) == (was.size, was.log, was.root)
    assert await balances(again.caller, [ADA.peer_id]) == await balances(second.caller, [ADA.peer_id])
    await _nobody_is_convicted(again, second)


async def test_in_another_order_they_come_back_under_a_new_name(start: Start, tmp_path: Path):
    first, second, home, was = await _two_of_which_one_loses_its_end(start, tmp_path, 4, own_of_the_second=3)
    again = await start(home, clock=first.clock)
    head = open_head((await heads(again.caller)).own)
    assert head.size > was.size
    assert head.log != was.log
    await _nobody_is_convicted(again, second)


async def _two_of_which_one_loses_its_end(
    start: Start, tmp_path: Path, rounds_before: int, own_of_the_second: int = 0
) -> tuple[Running, Running, Path, TreeHead]:
    home, other = _made(tmp_path, "home"), _made(tmp_path, "other")
    first, second = await start(home), await start(other)
    second.trusts(first)
    if own_of_the_second:
        await paid(second, BEN, rounds=own_of_the_second)
    if rounds_before:
        await paid(first, ADA, rounds=rounds_before)
    await asyncio.to_thread(as_it_is, home, tmp_path / "earlier")
    await paid(first, ADA, rounds=70)
    second.tracker.watcher._others = lambda: [as_other(first)]
    for _ in range(3):
        first.clock.time += 2
        await second.tracker.watcher.look()
    was = open_head((await heads(first.caller)).own)
    await first.stop()
    loses_its_end(home, tmp_path / "earlier")
    if not rounds_before:
        # A database of the same name, as empty as it was: its first page was synced, nothing else.
        assert was.size == 70
    remembered = {"trackers": {str(second.address): second.tracker.key.peer_id}}
    write_whole(home / "trackers.json", msgspec.json.encode(remembered))
    return first, second, home, was


async def _nobody_is_convicted(again: Running, second: Running) -> None:
    second.tracker.watcher._others = lambda: [as_other(again)]
    again.clock.time += 2
    await second.tracker.watcher.look()
    assert not second.tracker.watcher.watched.convicted
    assert "entries" in second.tracker.watcher.says_of(again.tracker.key.peer_id)


async def test_no_head_is_shown_that_is_not_written_down_outside_the_database(
    start: Start, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    def full(self: LastHead, signed: object) -> None:
        raise OSError(errno.ENOSPC, "no space left on the device")

    lab = await start(_made(tmp_path, "home"))
    await paid(lab, ADA)
    with monkeypatch.context() as disk:
        disk.setattr(LastHead, "write", full)
        await paid(lab, ADA)  # it is stored: that is told
        lab.clock.time += 2
        with pytest.raises(Busy, match="cannot write down the head"):
            await heads(lab.caller)
    assert open_head((await heads(lab.caller)).own).size == 2


async def test_a_check_asks_those_that_are_named_and_says_when_nobody_was(start: Start, tmp_path: Path):
    first, second = await start(_made(tmp_path, "home")), await start(_made(tmp_path, "other"))
    await paid(first, ADA, rounds=2)
    second.tracker.watcher._others = lambda: [as_other(first)]
    first.clock.time += 2
    await second.tracker.watcher.look()

    def check(*words: str) -> str:
        return CliRunner().invoke(main, ["check", "--home", str(tmp_path / "home"), *words]).output

    assert "compared with nobody" in await asyncio.to_thread(check)
    named = await asyncio.to_thread(check, "--tracker", str(second.address))
    assert f"the same log is known to {second.address.host_port}" in named
    await second.stop()
    silent = await asyncio.to_thread(check, "--tracker", str(second.address))
    assert f"no answer from {second.address.host_port}" in silent


def _made(folder: Path, name: str) -> Path:
    (folder / name).mkdir()
    return folder / name


# --- the file -------------------------------------------------------------------------------------


def head(size: int, key=TRACKER):
    return sign(key, TreeHead(tracker=key.peer_id, log="a" * 32, size=size, root=bytes(32), time=1000 + size))


def test_the_last_head_is_kept_and_a_write_that_was_cut_off_leaves_the_one_before(tmp_path: Path):
    kept = LastHead(tmp_path, TRACKER.peer_id)
    assert kept.read() is None
    for size in range(5):
        kept.write(head(size))
    read = LastHead(tmp_path, TRACKER.peer_id).read()
    assert read is not None
    assert read.size == 4
    content = bytearray((tmp_path / FILE).read_bytes())
    assert len(content) == 2048
    content[40] ^= 1  # the slot of the newest, and of the third
    (tmp_path / FILE).write_bytes(content)
    again = LastHead(tmp_path, TRACKER.peer_id)
    read = again.read()
    assert read is not None
    assert read.size == 3
    again.write(head(7))  # over the damaged one
    assert [one.size for one in (again.read(),) if one] == [7]


def test_the_disk_has_a_head_before_anything_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    kept = LastHead(tmp_path, TRACKER.peer_id)
    kept.write(head(1))
    synced: list[bytes] = []
    monkeypatch.setattr(os, "fsync", lambda descriptor: synced.append((tmp_path / FILE).read_bytes()))
    kept.write(head(2))
    assert synced == [(tmp_path / FILE).read_bytes()]
    read = kept.read()
    assert read is not None
    assert read.size == 2


def test_a_head_of_somebody_else_or_rubbish_is_none(tmp_path: Path):
    LastHead(tmp_path, TRACKER.peer_id).write(head(3, key_of("other")))
    assert LastHead(tmp_path, TRACKER.peer_id).read() is None
    (tmp_path / FILE).write_bytes(b"\xff" * 3000)
    assert LastHead(tmp_path, TRACKER.peer_id).read() is None


@pytest.mark.parametrize(("dials", "reached"), [(None, True), (DialPolicy(lambda: ["8.8.8.8"]), False)])
async def test_who_was_only_heard_of_is_asked_for_entries_where_it_may_be_dialled(
    start: Start, tmp_path: Path, dials: DialPolicy | None, reached: bool
):
    other = await start(_made(tmp_path, "other"))
    await paid(other, ADA)
    other.clock.time += 2
    pages: list[int] = []

    class Fetched:
        async def page(self, line: HttpCaller, upto: int, size: int, source: str) -> int:
            pages.append(upto)
            return size

    await log_fetch._fetch_all(Fetched(), str(other.address), dials)  # type: ignore[arg-type]
    assert bool(pages) is reached
