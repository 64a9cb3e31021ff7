"""`axon-tracker check`, `backup` and `restore`."""

from __future__ import annotations

import asyncio
import io
import json
import sys
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path
from unittest.mock import patch

import pytest

from axonp2p.command_group import run_group
from axonp2p.errors import AlreadyRunning, LogDamaged, NotFound, WouldOverwrite
from axonp2p.files import locked
from axonp2p.identity.key_file import load_or_create_key
from axonp2p.ledger import log_client
from axonp2p.ledger.tree_head import open_head
from axonp2p.settings import TrackerSettings
from tests.unit.tracker.conftest import Running, Start
from tests.unit.tracker.logs import ADA, make_log, paid, rewrite, tamper
from tracker.log.maintenance import back_up, check_home, restore
from tracker.main import main

ALONE = TrackerSettings(listen="127.0.0.1:0")


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """A tracker's home, with a log of 70 receipts."""
    folder = tmp_path / "home"
    folder.mkdir()
    make_log(folder / "tracker.db", load_or_create_key(folder / "tracker.key"), 70)
    return folder


def axon_tracker(*words: object) -> tuple[int, str]:
    """Exit code and what was printed."""
    said = io.StringIO()
    typed = ["axon-tracker", *map(str, words)]
    with patch.object(sys, "argv", typed), redirect_stdout(said), redirect_stderr(said):
        return run_group(main, "axon-tracker"), said.getvalue()


def test_a_good_log(home: Path):
    code, said = axon_tracker("check", "--offline", "--home", home)
    assert code == 0
    assert "log aaaaaaaa has 70 entries, all as they were signed; root " in said
    code, said = axon_tracker("check", "--offline", "--home", home, "--json")
    assert json.loads(said)["entries"] == 70


def test_a_damaged_log_is_told_with_the_entrys_number(home: Path):
    tamper(home, ("UPDATE entries SET entry = x'00' WHERE number = 12", []))
    code, said = axon_tracker("check", "--offline", "--home", home)
    assert code == LogDamaged.exit_code
    assert "entry 12 is not the one that was hashed when it came" in said
    assert "NOT as it was signed" in said
    code, said = axon_tracker("check", "--offline", "--home", home, "--json")
    assert {problem["entry"] for problem in json.loads(said)["problems"]} == {12}


def test_many_problems_are_counted(home: Path):
    tamper(home, ("UPDATE entries SET entry = x'00'", []))
    code, said = axon_tracker("check", "--offline", "--home", home)
    assert code == LogDamaged.exit_code
    assert "more problems" in said


def test_a_file_that_is_no_database(home: Path):
    (home / "tracker.db").write_bytes(b"no database" * 100)
    code, said = axon_tracker("check", "--offline", "--home", home)
    assert code == LogDamaged.exit_code
    assert "SQLite cannot read" in said


def test_a_home_without_a_tracker(tmp_path: Path):
    with pytest.raises(NotFound):
        check_home(tmp_path, ALONE, offline=True)


def test_a_backup_does_not_replace_a_file_unless_that_is_asked_for(home: Path, tmp_path: Path):
    file = tmp_path / "backup"
    file.write_text("mine")
    code, said = axon_tracker("backup", file, "--home", home)
    assert code == WouldOverwrite.exit_code
    assert f"fix: axon-tracker backup {file} --overwrite" in said
    assert file.read_text() == "mine"
    assert axon_tracker("backup", file, "--overwrite", "--home", home)[0] == 0
    assert file.read_bytes().startswith(b"SQLite format 3")


def test_a_backup_is_proved_and_can_be_put_back(home: Path, tmp_path: Path):
    file = tmp_path / "backup"
    assert back_up(home, file).entries == 70
    tamper(home, ("DELETE FROM entries WHERE number > 9", []))
    checked, aside = restore(home, file)
    assert checked.entries == 70
    assert aside is not None
    assert aside.exists()
    again = check_home(home, ALONE, offline=True)
    assert (again.problems, again.entries, again.root) == ([], 70, checked.root)
    assert again.log != checked.log


def test_a_damaged_log_is_not_backed_up_and_not_put_back(home: Path, tmp_path: Path):
    file = tmp_path / "backup"
    back_up(home, file)
    content = bytearray(file.read_bytes())
    place = content.index(b"axon/") if b"axon/" in content else content.index(b"peer_signature")
    content[place] ^= 1
    file.write_bytes(content)
    before = (home / "tracker.db").read_bytes()
    with pytest.raises(LogDamaged):
        restore(home, file)
    assert (home / "tracker.db").read_bytes() == before
    tamper(home, ("UPDATE entries SET entry = x'00' WHERE number = 12", []))
    with pytest.raises(LogDamaged, match="entry 12"):
        back_up(home, tmp_path / "other")
    assert not (tmp_path / "other").exists()


def test_nothing_is_put_back_under_a_running_tracker(home: Path, tmp_path: Path):
    back_up(home, tmp_path / "backup")
    with locked(home / "lock", "taken", fix=""), pytest.raises(AlreadyRunning):
        restore(home, tmp_path / "backup")


async def test_a_running_tracker_is_checked_and_backed_up(start: Start, tmp_path: Path):
    lab = await start()
    await paid(lab, ADA, rounds=5)
    lab.clock.time += 2
    await log_client.heads(lab.caller)
    assert (await asyncio.to_thread(check_home, tmp_path, ALONE, offline=True)).entries == 5
    assert (await asyncio.to_thread(back_up, tmp_path, tmp_path / "backup")).entries == 5


async def test_others_hold_heads_of_a_log_that_was_rewritten(start: Start, tmp_path: Path):
    first, second = await _two_that_know_each_other(start, tmp_path)
    knows = TrackerSettings(trackers=[str(second.address)])
    checked = await asyncio.to_thread(check_home, tmp_path / "first", knows, offline=False)
    assert (checked.problems, checked.compared) == ([], [second.address.host_port])
    await first.stop()
    rewrite(tmp_path / "first", lambda entries: entries[::-1])
    tamper(tmp_path / "first", ("DELETE FROM receipts", []))
    checked = await asyncio.to_thread(check_home, tmp_path / "first", knows, offline=False)
    assert any("holds a head of 5 entries" in problem.text for problem in checked.problems)


async def test_a_restored_tracker_begins_a_new_log_and_is_convicted_of_nothing(start: Start, tmp_path: Path):
    first, second = await _two_that_know_each_other(start, tmp_path)
    await asyncio.to_thread(back_up, tmp_path / "first", tmp_path / "backup")
    await paid(first, ADA, rounds=3)
    first.clock.time += 2
    await second.tracker.watcher.look()
    await first.stop()
    await asyncio.to_thread(restore, tmp_path / "first", tmp_path / "backup")
    first = await start(tmp_path / "first", clock=first.clock)
    second.tracker.watcher._others = lambda: [_as_other(first)]
    first.clock.time += 2
    await second.tracker.watcher.look()
    watched = second.tracker.watcher.watched
    assert not watched.convicted
    kept = watched.last(first.tracker.key.peer_id)
    assert kept is not None
    assert kept.before is not None
    assert (open_head(kept.before).size, open_head(kept.head).size) == (8, 5)


def _as_other(lab: Running):
    from tracker.ledger.receipt_relay import OtherTracker

    return OtherTracker(lab.tracker.key.peer_id, "d" * 32, lab.caller)


async def _two_that_know_each_other(start: Start, folder: Path) -> tuple[Running, Running]:
    for name in ("first", "second"):
        (folder / name).mkdir()
    first, second = await start(folder / "first"), await start(folder / "second")
    await paid(first, ADA, rounds=5)
    second.tracker.watcher._others = lambda: [_as_other(first)]
    first.clock.time += 2
    await second.tracker.watcher.look()
    return first, second
