"""Members that come in the middle of a job: they fetch the state, follow the rounds, and take part."""

from __future__ import annotations

import pytest

from axonp2p.training.messages import AdoptState, Prepare
from axonp2p.training.round_messages import (
    Event,
    MemberDropped,
    MemberJoined,
    MemberJoins,
    MemberLeaves,
    MemberLost,
    MemberPaused,
    MemberResumed,
    RoundAccepted,
    RoundBegunAnew,
    SetMembers,
    StateAdoptedBy,
    Tell,
    Trained,
)
from axonp2p.wire.schema import SCHEMAS
from tests.unit.training.conversation import (
    FIRST,
    OTHER,
    SECOND,
    THIRD,
    Conversation,
    dropped,
    finished_steps,
    mistake,
    only,
    ready,
    started,
)

FOURTH = b"4" * 32


def joined(members: int = 2, rounds: int = 9) -> Conversation:
    """A job in its second round, and one that follows it since its beginning."""
    talk = Conversation(members, rounds=rounds)
    talk.all_ready()
    talk.hears(MemberJoins(9, "wren"), ready(9))
    said = talk.all_report(0, SECOND)
    assert Tell(9, AdoptState(state=SECOND, senders=list(range(members)))) in said
    assert started(said)[9].listeners == [9]
    return talk


def test_a_new_one_is_told_to_prepare_once_the_others_know_of_it() -> None:
    talk = Conversation(2)
    talk.all_ready()
    said = talk.hears(MemberJoins(9, "wren"))
    assert said[0] == SetMembers([0, 1], [9])
    assert isinstance(said[1], Tell)
    assert isinstance(said[1].message, Prepare)
    assert (said[1].rank, said[1].message.rank) == (9, 9)
    assert said[1].message.schema == SCHEMAS["train"]
    assert talk.hears(ready(9)) == [], "it waits for the next round"


def test_it_follows_from_the_next_round_on_and_takes_part_when_it_holds_the_accepted_state() -> None:
    talk = joined()
    assert talk.rounds.members == [0, 1]
    assert talk.rounds.present == {0, 1, 9}
    talk.hears(StateAdoptedBy(9, SECOND), StateAdoptedBy(9, THIRD))
    said = talk.all_report(1, THIRD)
    assert MemberJoined(9, 2) in said
    assert SetMembers([0, 1, 9]) in said
    orders = started(said)
    assert {rank: (order.listeners, len(order.shards)) for rank, order in orders.items()} == {
        0: ([], 2), 1: ([], 1), 9: ([], 1),
    }  # fmt: skip
    assert only(talk.all_report(2, FOURTH), RoundAccepted)[0].reports.keys() == {0, 1, 9}


def test_a_state_that_takes_many_rounds_to_fetch_is_named_once() -> None:
    talk = joined()
    for round, state in ((1, THIRD), (2, FOURTH)):
        said = talk.all_report(round, state)
        assert not [action for action in said if isinstance(action, Tell) and isinstance(action.message, AdoptState)]
        assert started(said)[9].listeners == [9]


def test_one_that_lacks_only_this_round_is_waited_for_at_its_end() -> None:
    talk = joined()
    talk.hears(StateAdoptedBy(9, SECOND))
    assert talk.all_report(1, THIRD) == []
    assert MemberJoined(9, 2) in talk.hears(StateAdoptedBy(9, THIRD), after=0.3)


def test_it_is_not_waited_for_long() -> None:
    talk = joined()
    talk.hears(StateAdoptedBy(9, SECOND))
    talk.all_report(1, THIRD)
    since = talk.now
    said = talk.waits()
    assert talk.now - since == pytest.approx(1)
    assert only(said, RoundAccepted)
    assert started(said)[9].listeners == [9]


def test_nobody_waits_for_it_after_the_last_round() -> None:
    talk = joined(rounds=2)
    talk.hears(StateAdoptedBy(9, SECOND))
    assert talk.all_report(1, THIRD)[-1] == Trained(THIRD, [0, 1])


def test_it_follows_a_round_that_is_redone_as_well() -> None:
    talk = joined(3)
    said = talk.hears(MemberLost(2, "killed"))
    assert only(said, RoundBegunAnew)
    assert started(said)[9].listeners == [9]
    assert (started(said)[9].attempt, started(said)[9].state) == (1, SECOND)


def test_it_costs_nobody_anything_when_it_is_lost() -> None:
    talk = joined()
    assert talk.hears(MemberLost(9, "killed")) == [MemberDropped(9, "killed")]
    assert only(talk.all_report(1, THIRD), SetMembers) == [SetMembers([0, 1])]


@pytest.mark.parametrize(
    "word", [mistake(9), ready(9, values=7), finished_steps(9, round=5), MemberLeaves(9, "a game", 1e9)]
)
def test_what_it_does_wrong_costs_nobody_else(word: Event) -> None:
    talk = Conversation(2)
    talk.all_ready()
    talk.hears(MemberJoins(9, "wren"))
    assert dropped(talk.hears(word)) == [9]
    assert talk.rounds.members == [0, 1]


def test_what_a_listener_says_of_the_round_is_passed_over() -> None:
    talk = joined()
    assert talk.hears(finished_steps(9, round=1), talk.report(9, 1, OTHER)) == []


def test_one_that_pauses_meanwhile_fetches_anew() -> None:
    talk = joined()
    talk.hears(StateAdoptedBy(9, SECOND), MemberPaused(9, "a game"), StateAdoptedBy(9, THIRD))
    said = talk.all_report(1, THIRD)
    assert set(started(said)) == {0, 1}
    talk.hears(MemberResumed(9))
    assert Tell(9, AdoptState(state=FOURTH, senders=[0, 1])) in talk.all_report(2, FOURTH)


def test_one_that_does_not_catch_up_goes_three_rounds_after_its_time() -> None:
    talk = joined()
    states = [FIRST, SECOND]
    for round in range(1, 4):
        assert 9 in started(talk.all_report(round, states[round % 2]))
    talk.now += 301
    talk.hears(*(finished_steps(rank, round=4) for rank in (0, 1)))
    for round in range(4, 6):
        assert 9 in started(talk.all_report(round, states[round % 2]))
    said = talk.all_report(6, FIRST)
    assert MemberDropped(9, "it did not catch up with the others: taking over the state") in said
    assert set(started(said)) == {0, 1}


def test_with_as_many_members_as_shards_it_goes_on_following() -> None:
    talk = joined(4)
    talk.hears(StateAdoptedBy(9, SECOND), StateAdoptedBy(9, THIRD))
    said = talk.all_report(1, THIRD)
    assert not only(said, MemberJoined)
    said = talk.hears(MemberLost(0, "killed"))
    assert MemberJoined(9, 2) in said
    assert sorted(shard for order in started(said).values() for shard in order.shards) == [0, 1, 2, 3]


def test_one_may_come_before_the_first_round() -> None:
    talk = Conversation(2)
    talk.begin()
    talk.hears(MemberJoins(9, "wren"), ready(9), ready(0))
    said = talk.hears(ready(1))
    assert Tell(9, AdoptState(state=FIRST, senders=[0, 1])) in said
    assert started(said)[0].listeners == [9]


def test_a_rank_is_never_given_twice() -> None:
    talk = Conversation(2)
    talk.all_ready()
    with pytest.raises(ValueError, match="given before"):
        talk.hears(MemberJoins(1, "wren"))
