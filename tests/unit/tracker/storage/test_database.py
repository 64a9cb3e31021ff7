from __future__ import annotations

import asyncio
import sqlite3
import threading
from pathlib import Path
from typing import Any

import pytest

from axonp2p.errors import Busy, Refused, SettingsError
from tracker.storage.database import SCHEMA_VERSION, Database


def insert(peer: str):
    def work(database):
        database.execute("INSERT INTO rows (peer, facts, profile, body) VALUES (?, x'', x'', x'')", [peer])
        return peer

    return work


def peers(database) -> list[str]:
    return [peer for (peer,) in database.execute("SELECT peer FROM rows ORDER BY peer").fetchall()]


async def test_what_was_written_is_in_the_file(tmp_path: Path):
    database = Database(tmp_path / "tracker.db")
    database.start()
    assert await database.write(insert("ada")) == "ada"
    # A second look at the file, past all that this process holds in memory.
    with sqlite3.connect(tmp_path / "tracker.db") as other:
        assert other.execute("SELECT peer FROM rows").fetchall() == [("ada",)]
    assert await database.read(peers) == ["ada"]
    await database.close()


async def test_it_writes_ahead_and_waits_for_the_disk(tmp_path: Path):
    database = Database(tmp_path / "tracker.db")
    database.start()
    pragmas = await database.write(
        lambda db: (db.execute("PRAGMA journal_mode").fetchone()[0], db.execute("PRAGMA synchronous").fetchone()[0])
    )
    assert pragmas == ("wal", 2)
    await database.close()


async def test_changes_that_wait_together_are_committed_together(tmp_path: Path):
    commits: list[int] = []
    database = Database(tmp_path / "tracker.db", lambda changes, seconds: commits.append(changes))
    waiting = [asyncio.ensure_future(database.write(insert(f"peer {number:03}"))) for number in range(100)]
    await asyncio.sleep(0)
    database.start()
    assert len(await asyncio.gather(*waiting)) == 100
    assert commits == [100]
    await database.close()


async def test_a_refused_change_leaves_no_trace_and_does_not_touch_the_others(tmp_path: Path):
    database = Database(tmp_path / "tracker.db")

    def write_then_refuse(db):
        insert("refused")(db)
        raise Refused("no")

    def write_then_stumble(db):
        insert("stumbled")(db)
        raise ZeroDivisionError

    work = [insert("ada"), write_then_refuse, insert("ben"), write_then_stumble, insert("cleo")]
    waiting = [asyncio.ensure_future(database.write(each)) for each in work]
    await asyncio.sleep(0)
    database.start()
    outcomes = await asyncio.gather(*waiting, return_exceptions=True)
    assert [type(outcome) for outcome in outcomes] == [str, Refused, str, ZeroDivisionError, str]
    assert await database.read(peers) == ["ada", "ben", "cleo"]
    await database.close()


async def test_the_disks_trouble_is_told_to_all_who_waited_and_passes(tmp_path: Path):
    database = Database(tmp_path / "tracker.db")

    def full(db):
        raise sqlite3.OperationalError("database or disk is full")

    waiting = [asyncio.ensure_future(database.write(each)) for each in (insert("ada"), full, insert("ben"))]
    await asyncio.sleep(0)
    database.start()
    outcomes = await asyncio.gather(*waiting, return_exceptions=True)
    assert all(isinstance(outcome, Busy) for outcome in outcomes)
    assert "disk is full" not in str(outcomes)
    assert await database.read(peers) == []
    await database.write(insert("ada"))
    assert await database.read(peers) == ["ada"]
    await database.close()


async def test_closing_writes_what_waits(tmp_path: Path):
    database = Database(tmp_path / "tracker.db")
    waiting = [asyncio.ensure_future(database.write(insert(f"peer {number}"))) for number in range(3)]
    await asyncio.sleep(0)
    database.start()
    await database.close()
    assert len(await asyncio.gather(*waiting)) == 3


def test_a_file_that_is_no_database_is_said_with_what_to_do(tmp_path: Path):
    (tmp_path / "tracker.db").write_bytes(b"not a database, but long enough to be looked at" * 50)
    with pytest.raises(SettingsError, match="cannot be used") as refused:
        Database(tmp_path / "tracker.db")
    assert refused.value.fix


@pytest.mark.parametrize(("form", "age"), [(SCHEMA_VERSION + 1, "a newer"), (SCHEMA_VERSION - 1, "an older")])
def test_a_database_of_another_form_is_left_alone(tmp_path: Path, form: int, age: str):
    with sqlite3.connect(tmp_path / "tracker.db") as other:
        other.execute(f"PRAGMA user_version={form}")
    with pytest.raises(SettingsError, match=f"{age} axon-tracker"):
        Database(tmp_path / "tracker.db")


async def test_what_waits_to_be_read_is_bounded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("tracker.storage.database.MOST_READS_WAITING", 3)
    database = Database(tmp_path / "tracker.db")
    held = threading.Event()
    reads = [asyncio.ensure_future(database.read(lambda tables: held.wait(10))) for _ in range(3)]
    await asyncio.sleep(0)
    with pytest.raises(Busy, match="to be read"):
        await database.read(peers)
    held.set()
    assert await asyncio.gather(*reads) == [True] * 3
    assert await database.read(peers) == []
    await database.close()


def test_a_damaged_schema_whose_words_are_no_text_is_said_too(tmp_path: Path):
    with sqlite3.connect(tmp_path / "tracker.db") as made:
        made.execute("CREATE TABLE rows (place INTEGER)")
        made.execute("PRAGMA writable_schema = 1")
        made.execute("UPDATE sqlite_master SET sql = CAST(x'43d4d4d4' AS TEXT), name = CAST(x'd4d4' AS TEXT)")
    with pytest.raises(SettingsError, match="cannot be used") as caught:
        Database(tmp_path / "tracker.db")
    assert "restore FILE" in caught.value.fix


async def test_rows_that_are_none_are_said_before_anything_is_served(tmp_path: Path):
    database = Database(tmp_path / "tracker.db")
    with pytest.raises(SettingsError, match="cannot be used") as caught:
        database.load(lambda tables: max([None, None]))  # type: ignore[type-var]
    assert "restore FILE" in caught.value.fix
    await database.close()


def test_a_full_disk_at_the_start_is_no_reason_to_put_a_backup_back(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """SQLite itself says so here, at its own limit of pages."""
    connect = sqlite3.connect

    def small(*args: Any, **named: Any) -> sqlite3.Connection:
        database = connect(*args, **named)
        database.execute("PRAGMA max_page_count=2")
        return database

    monkeypatch.setattr(sqlite3, "connect", small)
    with pytest.raises(SettingsError) as caught:
        Database(tmp_path / "tracker.db")
    assert "full" in caught.value.cause
    assert caught.value.fix.startswith("make room on this disk")
    assert "restore" not in caught.value.fix
