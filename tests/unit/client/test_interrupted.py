"""What becomes of Ctrl-C in a person's own program."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest

import axonp2p
from axonp2p.client.interrupted import ProgramInterrupted, interrupted
from axonp2p.client.storage.event_feed import EventFeed


def test_a_program_ends_without_a_traceback_and_says_what_it_left(capsys: pytest.CaptureFixture[str]) -> None:
    instead = interrupted(["line-1111", "line-2222"])
    assert isinstance(instead, KeyboardInterrupt)  # for whoever waits for one
    assert isinstance(instead, SystemExit)
    assert instead.code == 130
    assert capsys.readouterr().err == (
        'interrupted: line-1111 is paused; swarm.resume("line-1111") continues it\n'
        'interrupted: line-2222 is paused; swarm.resume("line-2222") continues it\n'
    )


def test_without_a_job_it_stays_what_it_is() -> None:
    assert interrupted([]) is None


def test_at_a_prompt_nothing_is_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "ps1", ">>> ", raising=False)
    assert interrupted(["line-1111"]) is None
    with pytest.raises(KeyboardInterrupt):
        raise ProgramInterrupted(130)


class Impatient(EventFeed):
    """Whoever waits for it to be left is interrupted a second time."""

    def __init__(self) -> None:
        super().__init__()
        self.waited: list[float] = []

    def wait_quietly(self, timeout: float) -> bool:
        self.waited.append(timeout)
        if len(self.waited) == 1:
            raise KeyboardInterrupt
        return super().wait_quietly(timeout)


@pytest.mark.parametrize(("first", "last"), [(KeyboardInterrupt, ProgramInterrupted), (ValueError, ValueError)])
def test_the_second_one_gives_the_slots_back_and_waits_for_nothing_else(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, first: type[BaseException], last: type[BaseException]
) -> None:
    feed, told = Impatient(), list[str]()

    class Run:
        def leave(self) -> None:
            told.append("leave")

        def let_go(self) -> None:
            told.append("let go")
            feed.end(None)

    run: Any = Run()
    monkeypatch.setattr("axonp2p.client.swarm.JobRun", Run)
    swarm = axonp2p.Swarm(home=tmp_path)
    swarm._running["line-1111"] = (run, feed)
    with pytest.raises(last), swarm:
        raise first
    assert told == ["leave", "let go"]
    assert feed.waited[0] > feed.waited[1] > 0
