"""The end of a job whose last round is still being checked, in conversation."""

from __future__ import annotations

import hashlib
import random
import struct
from collections.abc import Collection
from typing import Any

import msgspec
import pytest

from axonp2p.training.messages import RedoSegment, StartRound
from axonp2p.training.options import ExchangeOptions
from axonp2p.training.round_messages import (
    Action,
    AwaitingChecks,
    CheckEnded,
    ChecksCutShort,
    HelpedSince,
    KeepState,
    MemberJoins,
    MemberLeaves,
    MemberLost,
    MemberPaused,
    RoundBooked,
    RoundReported,
    SegmentHeard,
    StateKept,
    StopChecking,
    Tell,
    Trained,
)
from axonp2p.training.rounds.phases import Phase
from axonp2p.training.spot_checks.questions import UNKNOWN_S, AnswerTimes, hand_over_s
from axonp2p.training.spot_checks.scheduler import CheckSettings
from axonp2p.verification.claims import Mark, RoundDone, SegmentRedone
from axonp2p.verification.judgement import Outcome
from axonp2p.verification.rates import Trust
from tests.fakes import SIGNED
from tests.unit.training.conversation import SECOND, STEPS, Conversation, dropped, only, round_done, started

LAST = 0
"""The first round is the last one, if nothing else is said."""


def mark(leg: int, step: int, weight: float) -> Mark:
    named = hashlib.sha256(struct.pack("<d", weight)).digest()
    return Mark(leg=leg, step=step, name=named, size=100, sketch=struct.pack("<32d", *[weight] * 32), memory=[])


def marks_of(order: StartRound, *, false: bool = False) -> list[Mark]:
    """Weights are as many as the steps that led to them; of one who cheats fewer, from its first segment on."""
    marks = []
    for leg, begin in enumerate(range(0, STEPS, order.settings.exchange_every)):
        ends = range(begin + order.mark_every, begin + order.settings.exchange_every, order.mark_every)
        places = [begin, *ends, min(begin + order.settings.exchange_every, STEPS)]
        marks += [mark(leg, step, step - 2.0 * false if step > begin else begin) for step in places]
    return marks


class Talk(Conversation):
    """Five members of which every one is checked in every round, with `chance` 0 always by the first who is free."""

    def __init__(self, members: int = 4, rounds: int = 1, seed: int | None = None, **more: Any) -> None:
        chance = random.Random(seed).random if seed is not None else lambda: 0.0
        settings = CheckSettings(1.0, 2**30, lambda _: Trust(), chance)
        options = ExchangeOptions(exchange_every=STEPS, overlap=False)
        super().__init__(members, rounds=rounds, checks=settings, options=options, **more)
        self.orders: dict[int, StartRound] = {}
        self.asked: dict[int, RedoSegment] = {}
        self.told: list[Action] = []
        self.cheats: Collection[int] = ()

    def hears(self, *events: Any, after: float = 1.0) -> list[Action]:
        return self._note(super().hears(*events, after=after))

    def waits(self) -> list[Action]:
        return self._note(super().waits())

    def _note(self, said: list[Action]) -> list[Action]:
        self.orders |= started(said)
        self.told += said
        for action in said:
            if isinstance(action, Tell) and isinstance(action.message, RedoSegment):
                self.asked[action.rank] = action.message
        return said

    def trains(self, round: int = LAST, cheats: Collection[int] = ()) -> list[Action]:
        """All report the round."""
        self.cheats = cheats
        if not round:
            self.all_ready()
        members = list(self.rounds.members)
        said = []
        for rank in members:
            marks = marks_of(self.orders[rank], false=rank in cheats)
            done = round_done(round, 0, SECOND, members=len(members))
            said = self.hears(RoundReported(rank, msgspec.structs.replace(done, marks=marks), signed=SIGNED))
        return said

    def answers(self, rank: int, *, alone: bool = False, failed: str = "", after: float = 1.0) -> list[Action]:
        """It takes the steps; `alone`: it is led where nobody else is."""
        order = self.asked.pop(rank)
        end = order.start.step + order.steps
        lied = rank == order.of and rank in self.cheats  # of its own steps a cheat says what it said before
        weight = end + (rank + 1.3) * 7 * alone - 2.0 * lied
        redone = SegmentRedone(
            of=order.of, round=order.round, attempt=order.attempt, step=order.start.step, start=order.start.name,
            end=None if failed else mark(order.start.leg, end, weight),
            before_last=b"" if failed else struct.pack("<32d", *[end - 1.0] * 32), flops=7, failed=failed,
        )  # fmt: skip
        return self.hears(SegmentHeard(rank, redone, signed=SIGNED), after=after)

    def all_answer(self, *, but: Collection[int] = ()) -> list[Action]:
        said: list[Action] = []
        while ranks := [rank for rank in self.asked if rank not in but]:
            said = self.answers(ranks[0])
        return said

    @property
    def over(self) -> bool:
        return self.rounds.phase is Phase.TRAINED

    def heard(self, *kinds: type[Any]) -> list[Any]:
        return only(self.told, *kinds)


def test_the_job_ends_when_the_checks_of_its_last_round_have() -> None:
    talk = Talk()
    assert only(talk.trains(), AwaitingChecks) == [AwaitingChecks(4)]
    assert talk.rounds.phase is Phase.CHECKING
    said = talk.all_answer()
    assert only(said, Trained) == [Trained(SECOND, [0, 1, 2, 3])]
    assert talk.over
    assert {checked.judgement.outcome for checked in talk.heard(CheckEnded)} == {Outcome.PASSED}
    assert not talk.heard(ChecksCutShort)
    assert talk.rounds.next_deadline() is None


@pytest.mark.parametrize("seed", range(10))
def test_who_cheats_in_the_last_round_is_convicted_before_the_round_enters_the_books(seed: int) -> None:
    talk = Talk(keep_every=1, seed=seed)
    said = talk.trains(cheats=[2])
    assert only(said, KeepState)
    assert talk.hears(StateKept(SECOND)) == []  # the state is on the disk, and nobody is paid yet
    talk.all_answer()
    kinds = [type(action) for action in talk.heard(CheckEnded, RoundBooked, Trained)]
    assert kinds[-2:] == [RoundBooked, Trained]
    convicted = [checked.convicted for checked in talk.heard(CheckEnded) if checked.convicted]
    assert (convicted, dropped(talk.told)) == ([[2]], [2])
    assert talk.heard(Trained)[0].members == [0, 1, 3]


def test_the_accused_is_asked_about_the_steps_of_another_even_when_all_of_these_are_done() -> None:
    talk = Talk()
    talk.trains(cheats=[0])
    while 0 not in talk.asked or len(talk.asked) > 1:
        talk.answers(next(rank for rank in talk.asked if rank))
        if talk.over:
            break
    assert not talk.over
    talk.all_answer()
    assert talk.over
    assert [checked.convicted for checked in talk.heard(CheckEnded) if checked.convicted] == [[0]]


def test_who_is_accused_and_answers_nothing_goes_without_being_called_a_cheat() -> None:
    talk = Talk()
    talk.trains(cheats=[2])
    began = talk.now
    for _ in range(100):
        talk.all_answer(but=[2])
        if talk.over:
            break
        talk.waits()
    assert talk.over
    assert talk.now - began < 1000
    (accused,) = [checked for checked in talk.heard(CheckEnded) if checked.of == 2]
    assert (accused.judgement.outcome, accused.convicted) == (Outcome.UNLIKE, [])
    assert dropped(talk.told) == [2]


def test_who_hands_nothing_over_is_known_after_two() -> None:
    talk = Talk()
    talk.trains()
    asked = 0
    while not talk.over:
        rank = next(iter(talk.asked))
        held = talk.asked[rank].of == 3
        asked += held
        talk.answers(rank, failed="not handed over" if held else "")
    outcomes = {checked.of: checked.judgement.outcome for checked in talk.heard(CheckEnded)}
    assert outcomes.pop(3) is Outcome.WITHHELD
    assert set(outcomes.values()) == {Outcome.PASSED}
    assert asked == 2


def test_when_nobody_answers_the_job_ends_after_what_all_may_take_and_says_how_many() -> None:
    talk = Talk()
    talk.trains()
    began = talk.now
    while not talk.over:
        talk.waits()
    assert talk.now - began == pytest.approx(3 * (UNKNOWN_S + hand_over_s(100)), abs=0.01)
    assert talk.heard(ChecksCutShort) == [ChecksCutShort(4, "nobody is left to be asked")]
    assert talk.heard(Trained) == [Trained(SECOND, [0, 1, 2, 3])]


def test_how_long_is_learnt_from_the_rounds_before() -> None:
    times = AnswerTimes()
    assert times.at_the_end(0) == UNKNOWN_S + hand_over_s(0)
    for seconds in (1.0, 2.0, 4.0):
        times.note(seconds)
    assert times.at_the_end(0) == 8.0 + hand_over_s(0)
    assert times.at_the_end(1_250_000) == 8.0 + hand_over_s(0) + 10
    times.note(1e6)
    assert times.at_the_end(0) == 300.0 + hand_over_s(0)


def test_what_was_open_before_the_last_round_is_waited_for_too() -> None:
    talk = Talk(members=3, rounds=2)
    talk.trains(0)
    open_before = len(talk.asked)
    assert open_before
    (awaited,) = only(talk.trains(1), AwaitingChecks)
    assert awaited.number == 3 + 3
    talk.all_answer()
    assert talk.over


def test_a_job_of_which_nothing_was_drawn_ends_at_once() -> None:
    talk = Talk()
    talk.rounds._checks._settings = CheckSettings(0.01, 2**30, lambda _: Trust(), lambda: 0.9)  # type: ignore[union-attr]
    assert only(talk.trains(), Trained)
    assert not talk.heard(AwaitingChecks)


def test_a_client_that_goes_waits_for_nothing() -> None:
    talk = Talk(keep_every=1)
    talk.trains()
    said = talk.hears(StopChecking())
    assert only(said, ChecksCutShort, Trained) == [ChecksCutShort(4, "the client went"), Trained(SECOND, [0, 1, 2, 3])]


def test_too_few_members_end_it_and_the_job_does_not_fail() -> None:
    talk = Talk(members=3, min_peers=2)
    talk.trains()
    assert not only(talk.hears(MemberLost(0, "it was killed")), Trained)
    assert only(talk.hears(MemberLost(1, "it was killed")), Trained) == [Trained(SECOND, [2])]


def test_owners_that_come_back_end_it_while_somebody_can_give_the_weights() -> None:
    talk = Talk(members=2, min_peers=2)
    talk.trains()
    assert only(talk.hears(MemberPaused(0, "a game")), Trained) == [Trained(SECOND, [0, 1])]
    talk = Talk(members=2, min_peers=2)
    talk.trains()
    leaves = MemberLeaves(0, "wanted back", talk.now + 60)
    assert only(talk.hears(leaves), Trained) == [Trained(SECOND, [0, 1])]


def test_who_comes_now_is_told_nothing() -> None:
    talk = Talk()
    talk.trains()
    assert talk.hears(MemberJoins(9, "late")) == []


def test_steps_done_again_after_the_last_report_are_told_so_that_they_are_paid_for() -> None:
    talk = Talk()
    talk.trains()
    talk.all_answer()
    (helped,) = talk.heard(HelpedSince)
    answers = sum(len(checked.by) for checked in talk.heard(CheckEnded))
    assert sum(helped.flops.values()) == 7 * answers


def test_reports_have_marks() -> None:
    """What this file plays is what a coordinator takes."""
    talk = Talk()
    talk.all_ready()
    order = talk.orders[0]
    assert order.mark_every == 8
    assert [one.step for one in marks_of(order)] == [0, 8, 10]
    assert isinstance(round_done(0, 0, SECOND), RoundDone)
