"""What the owner types to a daemon that runs, and what they read."""

from __future__ import annotations

import json

import pytest
from click.testing import CliRunner

from axonp2p.errors import NoDaemon, NotFound, SettingsError
from peer_daemon.main import cli
from peer_daemon.page.headline import headline
from tests.laboratory.paper_steering import STATES

TO_A_DAEMON = ["status", "pause", "finish", "resume", "limits", "history", "page"]


@pytest.mark.parametrize("word", TO_A_DAEMON)
def test_without_a_daemon_each_says_so_and_how_to_get_one(type_in, word):
    with pytest.raises(NoDaemon) as raised:
        type_in(word)
    assert (raised.value.code, raised.value.exit_code) == ("AX-301", 3)
    assert "axon-peer run" in raised.value.fix


def test_status_tells_what_runs_why_and_what_it_earned(daemon, type_in):
    text = type_in("status")
    assert text.startswith("otter")
    assert "TRAINING" in text
    assert daemon.sheet.sentence in text
    assert "digits-7f3a for " in text
    assert "31.2 today, 412.0 confirmed in all, 6.4 wait for a tracker" in text
    assert "2 of 2 trackers answer" in text


@pytest.mark.parametrize("state", STATES)
def test_every_state_is_told_with_its_reason(daemon, type_in, state):
    daemon.sheet = STATES[state]
    first, text = headline(STATES[state]), type_in("status")
    assert text.startswith(f"otter    {first.word} ")
    assert first.sentence in text
    assert first.fix in text
    assert json.loads(type_in("status", "--json"))["state"] == STATES[state].state


def test_a_pause_says_until_when_and_what_was_handed_back(daemon, type_in):
    text = type_in("pause", "--for", "2h")
    assert daemon.ordered == ["pause 7200.0"]
    assert text.startswith("Paused until ")
    assert "digits-7f3a was handed back." in text
    assert "axon-peer resume --home" in text


def test_a_pause_without_an_end(daemon, type_in):
    text = type_in("pause")
    assert daemon.ordered == ["pause None"]
    assert text.startswith("Paused. ")


def test_finish_and_resume(daemon, type_in):
    finishing = type_in("finish")
    assert finishing.startswith("FINISHING: ")
    assert "Work on: axon-peer resume" in finishing
    assert type_in("resume").startswith("READY: ")
    assert daemon.ordered == ["finish", "resume"]


def test_limits_are_shown_and_nothing_is_ordered(daemon, type_in):
    text = type_in("limits")
    assert "--cores       2      of 4, for each job" in text
    assert daemon.ordered == []


def test_limits_are_changed_as_people_write_them(daemon, type_in):
    words = ["--memory", "3GiB", "--disk", "512", "--hours", "Mon-Fri 18:00-08:00", "--hours", "Sat", "--on-battery"]
    text = type_in("limits", *words, "--others-cpu", "40")
    assert daemon.sheet.limits.memory_mb == 3072
    assert daemon.sheet.limits.disk_mb == 512
    assert daemon.sheet.limits.hours == ["Mon-Fri 18:00-08:00", "Sat"]
    assert "also on battery" in text
    assert json.loads(type_in("limits", "--hours", "any", "--json"))["hours"] == []


def test_a_limit_that_the_daemon_refuses_comes_back_with_its_fix(daemon, type_in):
    with pytest.raises(SettingsError) as raised:
        type_in("limits", "--cores", "9")
    assert raised.value.fix == "cores = 4"


def test_history_is_one_table_oldest_first(daemon, type_in):
    # Some hours of 2025 lie further back than that.
    lines = type_in("history", "--since", "99999d").splitlines()
    assert lines[0].split() == ["when", "for", "what", "because"]
    assert len(lines) == 1 + len(daemon.told.spans) + len(daemon.told.happenings)
    assert "digits-7f3a: a job began" in lines[-2]
    assert "training" in lines[-1]


def test_an_empty_history(daemon, type_in):
    assert type_in("history", "--since", "1h") == "Nothing was kept of that time.\n"


def test_a_peer_without_a_page(daemon, type_in):
    with pytest.raises(NotFound) as raised:
        type_in("page")
    assert "--page 127.0.0.1:7072" in raised.value.fix


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["pause", "--for", "2"], "such as 2h, 30m or 90s"),
        (["pause", "--for", "0s"], "such as 2h, 30m or 90s"),
        (["pause", "--for", "h2"], "such as 2h"),
        (["limits", "--memory", "much"], "is no size"),
        (["limits", "--others-cpu", "0"], "Invalid value"),
        (["history", "--since", "yesterday"], "is no time"),
        (["finihs"], "Did you mean 'finish'?"),
        (["setup", "--json"], "--yes"),
    ],
)
def test_what_cannot_be_meant_is_refused_before_anybody_is_asked(words, said):
    done = CliRunner().invoke(cli, words)
    assert done.exit_code == 2
    assert said in done.output
