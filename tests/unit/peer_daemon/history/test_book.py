"""What the daemon writes, what its owner reads, and what a bad disk or clock does to it."""

from __future__ import annotations

import errno
import itertools
import os
import tempfile
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from axonp2p.errors import SettingsError
from peer_daemon.history.book import MOST_LETTERS, MOST_ROWS, HistoryBook
from peer_daemon.history.spans import GAP_S

NOON = 1_800_000_000.0


@pytest.fixture
def history(tmp_path):
    history = HistoryBook(tmp_path / "history.db")
    yield history
    history.close()


def told(history, since=0.0):
    return [(one.state, one.began - NOON, one.ended - NOON) for one in history.since(since).spans]


def lives(history, state, began, minutes):
    """A state that begins and is said to last, minute by minute."""
    history.began(state, "free", f"it is {state}", began)
    for minute in range(1, minutes + 1):
        history.still(began + 60 * minute)


def test_a_day_is_told_as_it_was(history):
    lives(history, "ready", NOON, 2)
    lives(history, "training", NOON + 150, 3)
    history.happened("job began", "digits-7f3a began", NOON + 150, job="digits-7f3a")
    assert told(history) == [("ready", 0, 150), ("training", 150, 330)]
    [happening] = history.since(NOON).happenings
    assert (happening.kind, happening.job) == ("job began", "digits-7f3a")


def test_the_same_state_for_the_same_reason_goes_on(history):
    history.began("waiting", "busy", "firefox uses 87 % CPU", NOON)
    history.began("waiting", "busy", "firefox uses 80 % CPU", NOON + 60)
    history.began("waiting", "battery", "on battery", NOON + 90)
    assert told(history) == [("waiting", 0, 90), ("waiting", 90, 90)]


def test_after_a_crash_the_last_span_ends_where_it_was_last_said_to_last(history, tmp_path):
    lives(history, "training", NOON, 5)
    after = HistoryBook(tmp_path / "history.db")  # the other one is never closed
    after.began("ready", "free", "no job", NOON + 3600)
    assert told(after) == [("training", 0, 300), ("ready", 3600, 3600)]
    after.close()


def test_a_machine_that_sleeps_leaves_a_gap(history):
    lives(history, "ready", NOON, 1)
    history.still(NOON + 8 * 3600)
    history.still(NOON + 8 * 3600 + 60)
    assert told(history) == [("ready", 0, 60), ("ready", 28800, 28860)]


def test_a_gap_belongs_to_nobody_when_the_state_changes_after_it(history):
    lives(history, "ready", NOON, 1)
    history.began("waiting", "busy", "busy", NOON + 3600)
    assert told(history) == [("ready", 0, 60), ("waiting", 3600, 3600)]


def test_a_clock_that_was_set_back_an_hour(history):
    lives(history, "training", NOON, 90)
    lives(history, "ready", NOON + 1800, 10)
    assert told(history) == [("training", 0, 1800), ("ready", 1800, 2400), ("training", 2400, 5400)]


def test_nothing_lasts_before_it_began(history):
    history.still(NOON)
    assert told(history) == []


def test_only_what_was_since_then_is_told(history):
    lives(history, "ready", NOON, 1)
    history.happened("started", "the daemon was started", NOON)
    lives(history, "training", NOON + 60, 10)
    assert told(history, NOON + 300) == [("training", 60, 660)]
    assert history.since(NOON + 1).happenings == []


def test_what_is_older_than_its_time_is_forgotten_but_never_the_present(history):
    lives(history, "ready", NOON, 1)
    history.happened("started", "the daemon was started", NOON)
    history.began("paused", "paused", "paused by you", NOON + 60)
    history.forget(NOON + 10**7)
    assert told(history) == [("paused", 60, 60)]
    history.still(NOON + 120)
    assert told(history) == [("paused", 60, 120)]
    assert history.since(0).happenings == []


def test_strangers_cannot_fill_the_disk_with_refusals(history):
    history.happened("job refused", "x" * 10_000, NOON)
    assert len(history.since(0).happenings[0].sentence) == MOST_LETTERS
    with history._open() as database, database:
        database.executemany(
            "INSERT INTO happenings (at, kind, sentence, job) VALUES (?, 'job refused', '', '')",
            [[NOON + number] for number in range(MOST_ROWS)],
        )
    history.happened("job refused", "one more", NOON + MOST_ROWS)
    kept = history.since(0).happenings
    assert (len(kept), kept[-1].sentence) == (MOST_ROWS, "one more")


@pytest.mark.parametrize("where", ["head", "middle", "all"])
def test_a_damaged_file_is_moved_aside(tmp_path, where):
    path = tmp_path / "history.db"
    before = HistoryBook(path)
    for number in range(200):
        before.happened("started", f"{number} " * 50, NOON + number)
    before.close()
    content = bytearray(path.read_bytes())
    middle = len(content) // 2
    place = {"head": slice(0, 100), "middle": slice(middle, middle + 8192), "all": slice(0, None)}[where]
    content[place] = os.urandom(len(content[place]))
    path.write_bytes(content)
    after = HistoryBook(path)
    after.began("ready", "free", "no job", NOON)
    assert told(after) == [("ready", 0, 0)]
    assert path.with_name("history.db.damaged").exists()
    after.close()


def test_a_disk_that_comes_back_is_written_again(tmp_path):
    home = tmp_path / "home"
    history = HistoryBook(home / "history.db")  # the folder is not there
    for say in (
        lambda: history.began("ready", "free", "no job", NOON),
        lambda: history.still(NOON + 60),
        lambda: history.happened("started", "the daemon was started", NOON),
        lambda: history.since(0),
        lambda: history.forget(0),
    ):
        with pytest.raises(SettingsError, match="history cannot be kept") as raised:
            say()
        assert raised.value.cause
        assert str(home) in raised.value.fix
    home.mkdir()
    history.still(NOON + 120)
    assert told(history) == [("ready", 0, 120)]
    history.close()


def test_what_was_said_while_the_disk_was_full_does_not_make_the_old_state_longer(history, monkeypatch):
    lives(history, "training", NOON, 1)
    with monkeypatch.context() as broken:
        broken.setattr(history, "_opened", lambda: (_ for _ in ()).throw(OSError(errno.ENOSPC, "disk full")))
        history.close()
        with pytest.raises(SettingsError, match="history") as raised:
            history.began("paused", "paused", "paused by you", NOON + 90)
        assert "disk full" in raised.value.cause
    history.still(NOON + 120)
    assert told(history) == [("training", 0, 60), ("paused", 90, 120)]


def test_a_file_that_may_not_be_written(tmp_path):
    path = tmp_path / "history.db"
    path.mkdir()  # root may write any file, so a mode would say nothing here
    with pytest.raises(SettingsError):
        HistoryBook(path).began("ready", "free", "no job", NOON)


words = st.one_of(
    st.tuples(st.just("began"), st.sampled_from(["ready", "waiting"]), st.integers(-5000, 5000)),
    st.tuples(st.just("still"), st.just(""), st.integers(-5000, 5000)),
    st.tuples(st.just("crash"), st.just(""), st.just(0)),
)


@settings(max_examples=40, deadline=None)
@given(st.lists(words, min_size=1, max_size=20))
def test_whatever_the_clock_does_no_span_is_absurd(said):
    with tempfile.TemporaryDirectory() as folder:
        history = HistoryBook(Path(folder) / "history.db")
        now, watched = NOON, 0.0
        for word, state, jump in said:
            now += jump
            if word == "began":
                history.began(state, "free", state, now)
            elif word == "still":
                history.still(now)
            else:
                history.close()
                history = HistoryBook(Path(folder) / "history.db")
            watched += min(abs(jump), GAP_S)
        spans = history.since(0).spans
        history.close()
    assert all(span.ended >= span.began for span in spans)
    assert all(before.ended <= after.began for before, after in itertools.pairwise(spans))
    assert sum(span.ended - span.began for span in spans) <= watched
