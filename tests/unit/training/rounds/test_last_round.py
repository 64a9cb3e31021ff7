"""A job that ends before the last round of its plan: by the client's wish, or since its rounds are enough."""

from __future__ import annotations

import pytest

from axonp2p.training.round_messages import (
    Action,
    EndRounds,
    EndsEarly,
    KeepState,
    RoundAccepted,
    StateKept,
    Trained,
)
from tests.unit.training.conversation import FIRST, OTHER, SECOND, THIRD, Conversation, only, ready, started


def rounds_in(said: list[Action]) -> set[int]:
    return {order.round for order in started(said).values()}


def test_the_round_that_runs_is_the_last_when_the_client_says_so():
    talk = Conversation(2, rounds=9, keep_every=1)
    talk.all_ready()
    talk.all_report(0, SECOND)
    talk.hears(StateKept(SECOND))
    assert talk.hears(EndRounds()) == [EndsEarly(2, wished=True)]
    said = talk.all_report(1, THIRD)
    assert only(said, RoundAccepted)[0].round == 1
    assert only(said, KeepState) == [KeepState(1, THIRD)]
    assert said[-1] == Trained(THIRD, [0, 1])
    assert not started(said)


def test_said_twice_or_after_the_last_round_it_changes_nothing():
    talk = Conversation(2, rounds=2, keep_every=1)
    talk.all_ready()
    talk.all_report(0, SECOND)
    talk.hears(StateKept(SECOND))
    assert talk.hears(EndRounds()) == []  # it is the last one anyway
    talk.all_report(1, THIRD)
    assert talk.hears(EndRounds()) == []


def test_the_last_state_is_kept_where_few_are():
    talk = Conversation(2, rounds=9, keep_every=5)
    talk.all_ready()
    talk.hears(EndRounds())
    assert only(talk.all_report(0, SECOND), KeepState) == [KeepState(0, SECOND)]


def test_a_wish_before_the_first_round_leaves_it_that_one():
    talk = Conversation(2, rounds=9)
    talk.begin()
    assert talk.hears(EndRounds()) == []
    said = talk.hears(ready(0), ready(1))
    assert only(said, EndsEarly) == [EndsEarly(1, wished=True)]
    assert rounds_in(said) == {0}
    assert talk.all_report(0, SECOND)[-1] == Trained(SECOND, [0, 1])


def test_a_resumed_job_that_is_to_end_trains_no_other_round():
    talk = Conversation(2, rounds=9, first_round=4, start_state=SECOND, life=1, keep_every=1)
    talk.begin()
    talk.hears(EndRounds())
    said = talk.hears(ready(0, SECOND), ready(1, SECOND))
    assert only(said, EndsEarly) == [EndsEarly(4, wished=True)]
    assert said[-1] == Trained(SECOND, [0, 1])
    assert not started(said)


def test_what_ended_a_job_in_an_earlier_life_still_does():
    talk = Conversation(2, rounds=9, first_round=4, start_state=SECOND, life=1, keep_every=1, ends_after=5)
    talk.begin()
    said = talk.hears(ready(0, SECOND), ready(1, SECOND))
    assert rounds_in(said) == {4}
    attempt = talk.rounds._plan.first_attempt
    said = talk.all_report(4, THIRD, attempt)
    assert not only(said, EndsEarly)
    assert said[-1] == Trained(THIRD, [0, 1])


@pytest.mark.parametrize("enough", [1, 2, 3])
def test_rounds_may_be_enough_by_themselves(enough: int):
    asked: list[int] = []

    def are_enough(round: int, reports: object) -> bool:
        asked.append(round)
        return round + 1 >= enough

    talk = Conversation(2, rounds=3, are_enough=are_enough)
    talk.all_ready()
    for number, state in enumerate((SECOND, THIRD, OTHER)[:enough]):
        said = talk.all_report(number, state)
    ends, accepted = only(said, EndsEarly), only(said, RoundAccepted)
    assert ends == ([EndsEarly(enough, wished=False)] if enough < 3 else [])
    assert not ends or said.index(ends[0]) < said.index(accepted[0]), "the next life knows of both or of none"
    assert isinstance(said[-1], Trained)
    assert asked == list(range(enough)), "each round is looked at once"


def test_a_round_that_is_redone_is_looked_at_once():
    asked: list[int] = []

    def never(round: int, reports: object) -> bool:
        asked.append(round)
        return False

    talk = Conversation(3, rounds=2, are_enough=never)
    talk.all_ready()
    talk.hears(talk.report(0, 0, SECOND), talk.report(1, 0, SECOND), talk.report(2, 0, FIRST))
    for attempt in (1, 2):
        if asked:
            break
        talk.all_report(0, SECOND, attempt)
    assert asked == [0]
