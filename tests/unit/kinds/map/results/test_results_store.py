"""results.sqlite: exactly one result for each item, with what is owed in the same commit."""

from __future__ import annotations

import sqlite3
from pathlib import Path

import pytest

from axonp2p.errors import SettingsError
from axonp2p.kinds.map.results.results_store import ItemResult, ResultsStore, WorkDone


def test_an_item_keeps_its_first_result_and_work_adds_up(tmp_path: Path) -> None:
    store = ResultsStore(tmp_path / "results.sqlite")
    assert store.open() is None
    store.keep([ItemResult(3, "value", b"a", "heron")], [WorkDone("r/p", 3, 10, 5)])
    store.keep(
        [ItemResult(3, "error", b"b", "otter"), ItemResult(1, "error", b"c", "otter")], [WorkDone("r/p", 1, 1, 1)]
    )
    store.close()
    again = ResultsStore(tmp_path / "results.sqlite")
    again.open()
    assert list(again.read()) == [ItemResult(1, "error", b"c", "otter"), ItemResult(3, "value", b"a", "heron")]
    assert (sorted(again.finished()), again.failed()) == ([1, 3], [1])
    assert again.work() == [WorkDone("r/p", 1, 11, 6)]
    again.close()
    assert [path.name for path in tmp_path.iterdir()] == ["results.sqlite"], "all is in the one file"


def test_results_and_work_are_kept_together_or_not_at_all(tmp_path: Path) -> None:
    store = ResultsStore(tmp_path / "results.sqlite")
    store.open()
    with pytest.raises(SettingsError):
        store.keep([ItemResult(0, "value", b"", "heron")], [WorkDone("r/p", 0, None, 0)])  # type: ignore[arg-type]
    assert store.finished() == []
    assert store.work() == []


def test_of_two_peers_of_one_name_the_outvoted_one_alone_loses_its_results(tmp_path: Path) -> None:
    store = ResultsStore(tmp_path / "results.sqlite")
    results = [
        ItemResult(0, "value", b"true", "heron", key="honest"),
        ItemResult(1, "value", b"false", "heron", key="liar"),
        ItemResult(2, "value", b"false", "otter", key="liar"),  # as it called itself in an earlier life
        ItemResult(3, "value", b"true", "heron", 2, key="liar"),  # another found the same
        ItemResult(4, "value", b"unknown", "heron"),  # a host has told the name only
    ]
    store.keep(results, [])
    assert store.distrust("liar", "heron", again=True) == [(1, "value"), (2, "value"), (4, "value")]
    assert list(store.read()) == [results[0], results[3]]
    store.close()


def test_a_damaged_file_is_put_aside(tmp_path: Path) -> None:
    path = tmp_path / "results.sqlite"
    path.write_bytes(b"no database at all " * 1000)
    store = ResultsStore(path)
    aside = store.open()
    assert aside is not None
    assert aside.read_bytes().startswith(b"no database")
    assert store.finished() == []


def test_a_disk_that_takes_nothing_is_told(tmp_path: Path) -> None:
    store = ResultsStore(tmp_path / "not there" / "results.sqlite")
    with pytest.raises(SettingsError) as told:
        store.open()
    assert told.value.fix


def test_a_killed_program_leaves_what_was_committed(tmp_path: Path) -> None:
    store = ResultsStore(tmp_path / "results.sqlite")
    store.open()
    store.keep([ItemResult(0, "value", b"x", "heron")], [])
    other = sqlite3.connect(tmp_path / "results.sqlite")  # as the next life does, while the log of the last is there
    assert other.execute("SELECT item FROM results").fetchall() == [(0,)]
    other.close()
