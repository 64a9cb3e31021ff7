"""What becomes of Ctrl-C in a person's own program."""

from __future__ import annotations

import sys

import pytest

from axonp2p.client.interrupted import ProgramInterrupted, interrupted


def test_a_program_ends_without_a_traceback_and_says_what_it_left(capsys: pytest.CaptureFixture[str]) -> None:
    instead = interrupted(["line-1111", "line-2222"])
    assert isinstance(instead, KeyboardInterrupt)  # for whoever waits for one
    assert isinstance(instead, SystemExit)
    assert instead.code == 130
    assert capsys.readouterr().err == (
        'interrupted: line-1111 was left; swarm.resume("line-1111") goes on with it\n'
        'interrupted: line-2222 was left; swarm.resume("line-2222") goes on with it\n'
    )


def test_without_a_job_it_stays_what_it_is() -> None:
    assert interrupted([]) is None


def test_at_a_prompt_nothing_is_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "ps1", ">>> ", raising=False)
    assert interrupted(["line-1111"]) is None
    with pytest.raises(KeyboardInterrupt):
        raise ProgramInterrupted(130)
