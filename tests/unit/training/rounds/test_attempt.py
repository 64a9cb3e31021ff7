"""What an attempt at a round holds of what its members report."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import msgspec

from axonp2p.training.round_messages import RoundReported
from axonp2p.training.rounds.attempt import Attempt
from tests.fakes import SIGNED
from tests.unit.training.conversation import FIRST, OTHER, SECOND, finished_steps, round_done

FIRST_WORD, LATER = (msgspec.structs.replace(SIGNED, frame=frame) for frame in (b"first", b"later"))


def test_the_first_report_that_a_daemon_signed_is_the_one_that_can_be_shown() -> None:
    choice: Any = SimpleNamespace(shares={0: 1, 1: 1})
    attempt = Attempt(1, 2, FIRST, 0.0, choice, listeners=[], stalls=0)
    done = round_done(1, 2, SECOND, members=2)
    for before in (round_done(1, 1, OTHER, members=2), round_done(0, 9, OTHER, members=2)):
        assert attempt.heard(RoundReported(0, before, LATER), 8, 1.0) == ""
    assert attempt.signed == {}
    assert attempt.heard(RoundReported(0, done, FIRST_WORD), 8, 1.0) == ""
    assert attempt.heard(RoundReported(0, done, LATER), 8, 2.0) == ""
    assert attempt.heard(RoundReported(0, msgspec.structs.replace(done, state=OTHER), LATER), 8, 2.0)
    assert attempt.signed == {0: FIRST_WORD}


def test_what_a_daemon_did_not_sign_cannot_be_shown() -> None:
    choice: Any = SimpleNamespace(shares={0: 1, 1: 1})
    attempt = Attempt(0, 0, FIRST, 0.0, choice, listeners=[], stalls=0)
    attempt.heard(RoundReported(1, round_done(0, 0, SECOND, members=2), None), 8, 1.0)
    assert (attempt.reports.keys(), attempt.signed) == ({1}, {})


def test_who_tells_of_more_steps_than_there_are_holds_nobody_up() -> None:
    choice: Any = SimpleNamespace(shares={0: 1, 1: 1})
    attempt = Attempt(0, 0, FIRST, 0.0, choice, listeners=[], stalls=0)
    assert attempt.heard(finished_steps(1, 0, 0, 8), 8, 1.0) == ""
    assert attempt.heard(finished_steps(1, 0, 0, 9), 8, 2.0) == "it told of more steps than the round has"
