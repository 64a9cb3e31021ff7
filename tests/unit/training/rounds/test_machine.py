"""Conversations with the round machine: heard this, said that."""

from __future__ import annotations

import pytest

from axonp2p.errors import JobFailed, TaskMistake
from axonp2p.training.messages import AdoptState, Prepare
from axonp2p.training.plan import TrainPlan
from axonp2p.training.round_messages import (
    Event,
    LinkBroken,
    MemberDropped,
    MemberLost,
    MemberPaused,
    RoundAccepted,
    RoundBegunAnew,
    RoundReported,
    SendStartState,
    SetMembers,
    StateAdoptedBy,
    Tell,
    Trained,
)
from axonp2p.training.rounds.machine import Rounds
from axonp2p.training.rounds.phases import LEGAL, Phase, advance
from tests.fakes import SIGNED
from tests.unit.training.conversation import (
    FIRST,
    OTHER,
    SECOND,
    THIRD,
    Conversation,
    dropped,
    error_in,
    finished_steps,
    mistake,
    ready,
    round_done,
    started,
)

# --- a job without trouble ---


def test_a_job_without_trouble() -> None:
    talk = Conversation(2, rounds=2)
    said = talk.begin()
    assert said[0] == SetMembers([0, 1])
    assert [type(action.message) for action in said[1:] if isinstance(action, Tell)] == [Prepare, Prepare]

    assert talk.hears(ready(0)) == []
    said = talk.hears(ready(1))
    assert {rank: order.shards for rank, order in started(said).items()} == {0: [0, 2], 1: [1, 3]}
    assert {(order.round, order.attempt, order.state) for order in started(said).values()} == {(0, 0, FIRST)}

    assert talk.hears(talk.report(0, 0, SECOND)) == []
    said = talk.hears(talk.report(1, 0, SECOND))
    assert isinstance(said[0], RoundAccepted)
    assert (said[0].round, said[0].state, set(said[0].reports)) == (0, SECOND, {0, 1})
    assert {(order.round, order.state) for order in started(said).values()} == {(1, SECOND)}

    said = talk.hears(talk.report(1, 1, THIRD), talk.report(0, 1, THIRD))
    assert said[-1] == Trained(THIRD, [0, 1])
    assert talk.rounds.next_deadline() is None
    assert talk.hears(MemberLost(0, "gone")) == []


def test_prepare_carries_the_plan_and_each_rank() -> None:
    talk = Conversation(2, first_round=1, start_state=SECOND)
    told = [action for action in talk.begin() if isinstance(action, Tell)]
    assert [action.message.rank for action in told if isinstance(action.message, Prepare)] == [0, 1]
    assert all(isinstance(action.message, Prepare) and action.message.first_round == 1 for action in told)


def test_more_members_than_shards_is_our_own_mistake() -> None:
    plan = TrainPlan("digits-1", "task.py", shards=1, rounds=1, steps=1, batch=1, seed=0)
    with pytest.raises(ValueError, match="1 shards"):
        Rounds(plan, {0: "otter", 1: "lynx"})


# --- the first state ---


def test_who_starts_differently_gets_the_majoritys_state() -> None:
    talk = Conversation(3)
    talk.begin()
    said = talk.hears(ready(0, OTHER), ready(1), ready(2))
    assert said == [Tell(0, AdoptState(state=FIRST, senders=[1, 2]))]
    assert started(talk.hears(StateAdoptedBy(0, FIRST)))[0].state == FIRST


def test_of_two_different_states_the_lowest_ranks_is_taken() -> None:
    talk = Conversation(2)
    talk.begin()
    said = talk.hears(ready(1, OTHER), ready(0, FIRST))
    assert said == [Tell(1, AdoptState(state=FIRST, senders=[0]))]


def test_when_all_senders_are_lost_others_are_named() -> None:
    talk = Conversation(4, start_state=THIRD)
    talk.all_ready()
    assert talk.hears(StateAdoptedBy(0, THIRD))[-1] == Tell(3, AdoptState(state=THIRD, senders=[0]))
    assert talk.hears(StateAdoptedBy(1, THIRD)) == []
    said = talk.hears(MemberLost(0, "killed"))
    assert said == [
        MemberDropped(0, "killed"),
        SetMembers([1, 2, 3]),
        Tell(2, AdoptState(state=THIRD, senders=[1])),
        Tell(3, AdoptState(state=THIRD, senders=[1])),
    ]


def test_who_is_paused_is_not_named_as_a_sender() -> None:
    talk = Conversation(3)
    talk.begin()
    said = talk.hears(ready(0, OTHER), ready(1), MemberPaused(1, "a game"), ready(2))
    assert said == [Tell(0, AdoptState(state=FIRST, senders=[2]))]


def test_when_all_holders_are_lost_the_others_start_from_what_they_have() -> None:
    talk = Conversation(2)
    talk.begin()
    talk.hears(ready(0), ready(1, OTHER))
    assert started(talk.hears(MemberLost(0, "killed")))[1].state == OTHER


def test_who_takes_over_another_state_than_it_was_given_is_dropped() -> None:
    talk = Conversation(3)
    talk.begin()
    talk.hears(ready(0, OTHER), ready(1), ready(2))
    said = talk.hears(StateAdoptedBy(0, THIRD))
    assert dropped(said) == [0]
    assert set(started(said)) == {1, 2}


def test_who_does_not_take_the_state_over_in_time_is_dropped() -> None:
    talk = Conversation(3)
    talk.begin()
    talk.hears(ready(0, OTHER), ready(1), ready(2))
    said = talk.waits()
    assert dropped(said) == [0]
    assert set(started(said)) == {1, 2}


def test_a_large_model_is_waited_for_longer() -> None:
    waits = []
    for values in (100, 100_000_000):
        talk = Conversation(3)
        talk.begin()
        talk.hears(ready(0, OTHER, values=values), ready(1, values=values), ready(2, values=values))
        deadline = talk.rounds.next_deadline()
        assert deadline is not None
        waits.append(deadline - talk.now)
    assert waits[1] - waits[0] > 6000  # 800 MB at 1 Mbit/s


def test_whose_model_has_another_size_is_dropped() -> None:
    talk = Conversation(3)
    talk.begin()
    said = talk.hears(ready(0), ready(1, OTHER, values=7), ready(2))
    assert dropped(said) == [1]
    assert set(started(said)) == {0, 2}


def test_who_is_not_ready_in_time_is_dropped_and_the_others_begin() -> None:
    talk = Conversation(3)
    talk.begin()
    talk.hears(ready(0), ready(2))
    said = talk.waits()
    assert talk.now == 300
    assert dropped(said) == [1]
    assert started(said)[0].members == [0, 2]


def test_who_prepares_twice_and_differently_is_dropped() -> None:
    talk = Conversation(3)
    talk.begin()
    assert talk.hears(ready(0), ready(0)) == []
    assert dropped(talk.hears(ready(0, OTHER))) == [0]


# --- resumed ---


def test_a_resumed_job_sends_its_state_to_one_member_from_which_the_others_fetch_it() -> None:
    talk = Conversation(3, rounds=4, first_round=2, start_state=THIRD)
    said = talk.all_ready()
    assert said == [Tell(0, AdoptState(state=THIRD, senders=[])), SendStartState(0)]
    said = talk.hears(StateAdoptedBy(0, THIRD))
    assert said == [Tell(rank, AdoptState(state=THIRD, senders=[0])) for rank in (1, 2)]
    said = talk.hears(StateAdoptedBy(1, THIRD), StateAdoptedBy(2, THIRD))
    assert {(order.round, order.state) for order in started(said).values()} == {(2, THIRD)}


def test_when_the_one_with_the_state_is_lost_it_is_sent_to_another() -> None:
    talk = Conversation(2, first_round=1, start_state=THIRD)
    talk.all_ready()
    said = talk.hears(MemberLost(0, "killed"))
    assert said[1:] == [SetMembers([1]), Tell(1, AdoptState(state=THIRD, senders=[])), SendStartState(1)]
    assert started(talk.hears(StateAdoptedBy(1, THIRD)))[1].round == 1


def test_a_job_resumed_after_its_last_round_only_hands_out_its_state() -> None:
    talk = Conversation(1, rounds=2, first_round=2, start_state=THIRD)
    talk.all_ready()
    assert talk.hears(StateAdoptedBy(0, THIRD)) == [Trained(THIRD, [0])]


# --- members are lost ---


def test_a_lost_member_is_dropped_its_shards_move_and_the_round_is_redone() -> None:
    talk = Conversation(3)
    before = started(talk.all_ready())
    talk.hears(talk.report(0, 0, SECOND))
    said = talk.hears(MemberLost(2, "the session ended"))
    assert said[:3] == [
        MemberDropped(2, "the session ended"),
        RoundBegunAnew(0, 1, "hare: the session ended"),
        SetMembers([0, 1]),
    ]
    orders = started(said)
    assert sorted(shard for order in orders.values() for shard in order.shards) == [0, 1, 2, 3]
    assert all(set(before[rank].shards) <= set(orders[rank].shards) for rank in orders)
    assert {(order.round, order.attempt, order.state) for order in orders.values()} == {(0, 1, FIRST)}


def test_a_round_counts_when_all_who_remain_have_already_reported_the_same() -> None:
    talk = Conversation(3)
    talk.all_ready()
    talk.hears(talk.report(0, 0, SECOND), talk.report(1, 0, SECOND))
    said = talk.hears(MemberLost(2, "killed"))
    accepted = said[1]
    assert isinstance(accepted, RoundAccepted)
    assert set(accepted.reports) == {0, 1}
    assert said[2] == SetMembers([0, 1])


def test_with_fewer_than_min_peers_the_job_fails_and_says_who_left_why() -> None:
    talk = Conversation(3, min_peers=2)
    talk.all_ready()
    talk.hears(MemberLost(2, "killed"))
    error = error_in(talk.hears(MemberLost(0, "the lid was closed")))
    assert type(error) is JobFailed
    assert "at least 2" in error.message
    assert "hare: killed; otter: the lid was closed" in error.cause
    assert talk.rounds.next_deadline() is None


def test_a_job_with_too_few_members_does_not_begin() -> None:
    assert isinstance(error_in(Conversation(1, min_peers=2).begin()), JobFailed)


# --- what members report does not fit ---


def test_whose_weights_differ_from_the_majority_is_dropped_and_the_round_counts() -> None:
    talk = Conversation(3)
    talk.all_ready()
    said = talk.hears(talk.report(0, 0, OTHER), talk.report(1, 0, SECOND), talk.report(2, 0, SECOND))
    assert dropped(said) == [0]
    accepted = said[1]
    assert isinstance(accepted, RoundAccepted)
    assert (accepted.state, set(accepted.reports)) == (SECOND, {1, 2})


def test_two_that_disagree_have_three_attempts() -> None:
    talk = Conversation(2, min_peers=2)
    talk.all_ready()
    for attempt in range(3):
        said = talk.hears(talk.report(0, 0, SECOND, attempt), talk.report(1, 0, OTHER, attempt))
    assert "different weights of the same results" in error_in(said).cause


def test_reports_of_earlier_attempts_are_passed_over() -> None:
    talk = Conversation(3)
    talk.all_ready()
    talk.hears(MemberLost(2, "killed"))
    assert talk.hears(talk.report(0, 0, SECOND), finished_steps(0), talk.report(1, 0, SECOND)) == []
    said = talk.hears(talk.report(0, 0, THIRD, attempt=1), talk.report(1, 0, THIRD, attempt=1))
    assert isinstance(said[0], RoundAccepted)
    assert said[0].state == THIRD


@pytest.mark.parametrize(
    "wrong",
    [
        RoundReported(1, round_done(1, 0, SECOND), signed=SIGNED),
        RoundReported(1, round_done(0, 1, SECOND), signed=SIGNED),
        RoundReported(1, round_done(0, 0, SECOND, members=2), signed=SIGNED),
        finished_steps(1, round=5),
        StateAdoptedBy(1, OTHER),
        LinkBroken(1, 63, "never heard of"),
    ],
)
def test_who_speaks_of_what_cannot_be_is_dropped(wrong: Event) -> None:
    talk = Conversation(3)
    talk.all_ready()
    said = talk.hears(wrong)
    assert dropped(said) == [1]
    assert set(started(said)) == {0, 2}


def test_who_reports_before_the_first_round_is_dropped() -> None:
    talk = Conversation(3)
    talk.begin()
    assert dropped(talk.hears(talk.report(1, 0, SECOND))) == [1]


def test_who_changes_its_report_is_dropped_and_who_repeats_it_is_not() -> None:
    talk = Conversation(3)
    talk.all_ready()
    assert talk.hears(talk.report(1, 0, SECOND), talk.report(1, 0, SECOND)) == []
    assert dropped(talk.hears(talk.report(1, 0, OTHER))) == [1]


def test_who_was_dropped_is_listened_to_no_more() -> None:
    talk = Conversation(3)
    talk.all_ready()
    talk.hears(MemberLost(2, "killed"))
    late = (MemberLost(2, "again"), talk.report(2, 9, OTHER), mistake(2), ready(2), LinkBroken(2, 0, "x"))
    assert talk.hears(*late) == []


# --- mistakes of the task ---


def test_a_mistake_of_the_only_member_fails_the_job_with_its_traceback() -> None:
    talk = Conversation(1)
    talk.begin()
    error = error_in(talk.hears(mistake(0)))
    assert isinstance(error, TaskMistake)
    assert "otter" in error.message
    assert "loss()" in error.message
    assert error.cause.endswith("KeyError: 'label'")


def test_a_mistake_of_two_members_fails_the_job() -> None:
    talk = Conversation(4)
    talk.all_ready()
    assert talk.hears(mistake(3)) == []
    error = error_in(talk.hears(mistake(1)))
    assert isinstance(error, TaskMistake)
    assert "; at 1 more peer too" in error.message


def test_a_mistake_of_one_member_drops_it_once_the_others_have_done_their_steps() -> None:
    talk = Conversation(3)
    talk.all_ready()
    assert talk.hears(mistake(2), finished_steps(0), finished_steps(1, step=3)) == []
    said = talk.hears(finished_steps(1))
    assert dropped(said) == [2]
    assert {order.attempt for order in started(said).values()} == {1}


def test_a_mistake_in_preparing_drops_the_member_once_the_others_are_ready() -> None:
    talk = Conversation(3)
    talk.begin()
    assert talk.hears(mistake(1), ready(0)) == []
    said = talk.hears(ready(2))
    assert dropped(said) == [1]
    assert set(started(said)) == {0, 2}


def test_after_a_mistake_the_others_are_not_waited_for_long() -> None:
    talk = Conversation(3)
    talk.all_ready()
    talk.hears(mistake(2))
    since = talk.now
    assert dropped(talk.waits()) == [2]
    assert talk.now - since == 10


def test_a_mistake_that_moves_on_with_a_shard_is_the_tasks() -> None:
    talk = Conversation(3)
    talk.all_ready()
    talk.hears(mistake(2))
    talk.waits()
    assert isinstance(error_in(talk.hears(mistake(0))), TaskMistake)


def test_a_mistake_in_evaluating_waits_for_the_others_reports() -> None:
    talk = Conversation(3)
    talk.all_ready()
    talk.hears(*(finished_steps(rank) for rank in range(3)))
    assert talk.hears(mistake(2), talk.report(0, 0, SECOND)) == []
    said = talk.hears(talk.report(1, 0, SECOND))
    assert dropped(said) == [2]
    assert isinstance(said[1], RoundAccepted)


def test_single_mistakes_in_different_rounds_do_not_add_up() -> None:
    talk = Conversation(3, rounds=5)
    talk.all_ready()
    talk.hears(mistake(2))
    talk.waits()
    talk.hears(talk.report(0, 0, SECOND, 1), talk.report(1, 0, SECOND, 1))
    talk.hears(mistake(1))
    assert dropped(talk.hears(finished_steps(0, round=1))) == [1]


def test_a_mistake_that_leaves_too_few_is_what_the_job_fails_with() -> None:
    talk = Conversation(2, min_peers=2)
    talk.all_ready()
    assert isinstance(error_in(talk.hears(mistake(1))), TaskMistake)


# --- the table ---


@pytest.mark.parametrize("phase", Phase)
@pytest.mark.parametrize("to", Phase)
def test_every_step_between_phases_that_is_not_in_the_table_is_an_error(phase: Phase, to: Phase) -> None:
    if to in LEGAL[phase]:
        assert advance(phase, to) is to
    else:
        with pytest.raises(ValueError, match="cannot become"):
            advance(phase, to)
