"""Members that are later than the others: who is waited for how long, and what comes of it."""

from __future__ import annotations

from axonp2p.training.deadlines import SLOWEST_BYTES_S, Learnt, Patience, late_after
from axonp2p.training.messages import Prepared
from axonp2p.training.round_messages import (
    MemberJoined,
    MemberLost,
    MemberReady,
    RoundAccepted,
    RoundBegunAnew,
    StateAdoptedBy,
)
from tests.unit.training.conversation import (
    FIRST,
    OTHER,
    SECOND,
    THIRD,
    Conversation,
    dropped,
    error_in,
    finished_steps,
    left_behind,
    only,
    ready,
    started,
)


def test_late_is_later_than_the_usual_time_by_its_spread_or_half_of_it_or_a_second() -> None:
    assert late_after([10.0, 10.0, 10.0]) == 15
    assert late_after([8.0, 10.0, 13.0]) == 10 + 4 * 2
    assert late_after([0.1]) == 1.1


def test_who_was_never_measured_has_three_times_as_long_as_half_of_the_others_needed() -> None:
    talk = Conversation(4)
    talk.all_ready()
    talk.hears(finished_steps(0), after=20)
    talk.hears(finished_steps(1), after=10)
    begun = talk.now - 30
    said = talk.waits()
    assert talk.now - begun == 25 + 3 * 25  # 25 is the median of 20 and 30
    assert left_behind(said) == [2, 3]
    assert {rank: order.listeners for rank, order in started(said).items() if rank < 2} == {0: [2, 3], 1: [2, 3]}


def test_in_a_quick_first_round_the_rest_still_have_ten_seconds() -> None:
    talk = Conversation(2)
    talk.all_ready()
    talk.hears(talk.report(0, 0, SECOND), after=0.5)
    since = talk.now
    said = talk.waits()
    assert talk.now - since == 10
    assert left_behind(said) == [1]
    assert only(said, RoundAccepted)


def test_what_a_member_usually_needs_is_learnt_and_who_is_later_is_left_behind_within_a_second() -> None:
    talk = Conversation(3, rounds=9)
    talk.all_ready()
    for round in range(3):
        talk.hears(*(talk.report(rank, round, FIRST) for rank in range(3)))
    talk.hears(talk.report(0, 3, FIRST), talk.report(1, 3, FIRST))
    begun = talk.now - 2
    said = talk.waits()
    assert talk.now - begun == late_after([3.0]) == 4.5  # the third one took 3 s in each round
    assert left_behind(said) == [2]
    assert only(said, RoundAccepted), "the others had finished without it"


def test_who_is_always_slow_is_waited_for_as_long_as_it_always_takes() -> None:
    talk = Conversation(3, rounds=9)
    talk.all_ready()
    for round in range(3):
        talk.hears(talk.report(0, round, FIRST), talk.report(1, round, FIRST))
        assert only(talk.hears(talk.report(2, round, FIRST), after=7), RoundAccepted)


def test_who_was_left_behind_catches_up_and_takes_part_again() -> None:
    talk = Conversation(2, rounds=4)
    talk.all_ready()
    talk.hears(talk.report(0, 0, SECOND))
    said = talk.waits()
    assert left_behind(said) == [1]
    assert started(said)[1].listeners == [1]
    assert talk.hears(talk.report(1, 0, SECOND, members=2)) == [], "its report crossed our order"
    said = talk.hears(StateAdoptedBy(1, SECOND), StateAdoptedBy(1, THIRD), talk.report(0, 1, THIRD))
    assert MemberJoined(1, 2) in said


def test_a_model_that_nobody_builds_ends_the_job_and_one_that_most_build_does_not() -> None:
    talk = Conversation(2)
    talk.begin()
    error = error_in(talk.waits())
    assert (talk.now, error.message) == (300, "no peer had built the model after 300 s: otter, lynx")
    assert "axon logs JOB" in error.fix
    talk = Conversation(3)
    talk.begin()
    talk.hears(ready(0), ready(1))
    assert dropped(talk.waits()) == [2]


def test_a_first_step_that_nobody_comes_through_ends_the_job_after_the_time_that_it_gives_for_that() -> None:
    talk = Conversation(2, patience=Patience(first_round_s=90))
    talk.all_ready()
    since = talk.now
    error = error_in(talk.waits())
    assert talk.now - since == 90
    assert error.message == "no peer came through its first local step in 90 s: otter, lynx"
    assert "step-timeout under [train]" in error.cause
    assert "axon logs JOB" in error.fix


def test_who_ends_no_first_step_is_left_behind_when_half_of_the_others_have_ended_theirs() -> None:
    talk = Conversation(4, patience=Patience(first_round_s=90))
    talk.all_ready()
    talk.hears(*(finished_steps(rank) for rank in (0, 1, 2)))
    assert left_behind(talk.waits()) == [3]


def test_a_first_round_that_most_do_not_step_in_is_redone_and_then_given_up_with_their_names() -> None:
    talk = Conversation(3)
    talk.all_ready()
    error = None
    for attempt in range(12):
        talk.hears(finished_steps(0, attempt=attempt))
        if not started(said := talk.waits()):
            error = error_in(said)
            break
        assert said[0] == RoundBegunAnew(0, attempt + 1, "no peer finished it in time")
    assert error is not None
    assert "round 1 does not end, though it was begun" in error.message
    assert error.cause.endswith("no local step ended at lynx, hare")


def test_a_first_exchange_that_does_not_end_is_begun_again_with_all() -> None:
    talk = Conversation(2)
    talk.all_ready()
    talk.hears(finished_steps(0), finished_steps(1))
    since = talk.now
    said = talk.waits()
    assert talk.now - since == 60
    assert isinstance(said[0], RoundBegunAnew)
    assert set(started(said)) == {0, 1}


def test_when_nobody_gets_any_further_it_is_the_one_that_is_behind_who_holds_the_others_up() -> None:
    talk = Conversation(4, rounds=3)
    talk.all_ready()
    talk.hears(*(finished_steps(rank, step=3) for rank in range(4)))
    talk.all_report(0, SECOND)
    talk.hears(*(finished_steps(rank, round=1, step=3) for rank in range(4)))
    talk.hears(*(finished_steps(rank, round=1, step=5) for rank in range(3)))
    since = talk.now
    said = talk.waits()
    assert talk.now - since == late_after([1.0]) == 2
    assert left_behind(said) == [3]
    assert isinstance(said[1], RoundBegunAnew)
    assert started(said)[0].attempt == 1


def test_when_it_cannot_be_told_who_holds_the_others_up_all_begin_again() -> None:
    talk = Conversation(2, rounds=3)
    talk.all_ready()
    talk.hears(*(finished_steps(rank) for rank in range(2)))
    talk.all_report(0, SECOND)
    talk.hears(*(finished_steps(rank, round=1) for rank in range(2)))
    since = talk.now
    said = talk.waits()
    assert talk.now - since == 10
    assert isinstance(said[0], RoundBegunAnew)
    assert set(started(said)) == {0, 1}


def test_a_round_that_all_are_too_slow_for_is_given_twice_the_time_again_and_again_before_the_job_ends() -> None:
    talk = Conversation(2, rounds=3)
    talk.all_ready()
    talk.hears(*(finished_steps(rank) for rank in range(2)))
    talk.all_report(0, SECOND)
    began, waited = talk.now, []
    for attempt in range(7):
        talk.hears(*(finished_steps(rank, round=1, attempt=attempt) for rank in range(2)))
        since = talk.now
        said = talk.waits()
        waited.append(talk.now - since)
        if not started(said):
            break
    assert waited == [10, 20, 40, 80, 160, 320]
    assert talk.now - began > 600
    assert "round 2 does not end, though it was begun 6 times" in error_in(said).message


def test_who_cannot_be_done_without_is_given_more_time_for_a_minute_then_dropped_and_the_job_ends() -> None:
    talk = Conversation(2, min_peers=2)
    talk.all_ready()
    begun = talk.now
    talk.hears(talk.report(0, 0, SECOND))
    waited = [0.0]
    while not (said := talk.waits()):
        waited.append(talk.now - begun)
    assert waited[-2] < 60 <= talk.now - begun == waited[-1] * 1.5
    assert dropped(said) == [1]
    assert "at least 2" in error_in(said).message


def test_who_cannot_be_done_without_in_a_long_round_is_given_more_time_twice() -> None:
    talk = Conversation(2, min_peers=2)
    talk.all_ready()
    begun = talk.now
    talk.now += 1000
    talk.hears(talk.report(0, 0, SECOND))
    waited = []
    while not (said := talk.waits()):
        waited.append(talk.now - begun)
    assert len(waited) == 2
    assert talk.now - begun == waited[-1] * 1.5
    assert dropped(said) == [1]


def test_who_is_only_slower_than_usual_does_not_end_the_job() -> None:
    talk = Conversation(2, min_peers=2)
    talk.all_ready()
    talk.hears(talk.report(0, 0, SECOND))
    talk.waits()
    assert only(talk.hears(talk.report(1, 0, SECOND)), RoundAccepted)


def test_who_was_left_behind_is_waited_for_as_long_and_half_as_long_again_from_then_on() -> None:
    learnt = Learnt()
    for _ in range(8):
        learnt.note({1: 2.0, 2: 2.0}, silence=1.0)
    assert learnt.may_take(2, [2.0]) == 3
    learnt.missed(2, 3.0)
    assert learnt.may_take(2, [2.0]) == 4.5
    learnt.note({1: 2.0, 2: 4.0}, silence=1.0)
    assert learnt.may_take(2, [2.0]) == late_after([3.0, 4.0])


def test_after_somebody_has_gone_the_others_are_given_more_time_for_what_is_theirs_now() -> None:
    talk = Conversation(3, rounds=9)
    talk.all_ready()
    for round in range(3):
        talk.all_report(round, FIRST)
    talk.hears(MemberLost(2, "killed"))
    begun = talk.now
    talk.hears(talk.report(0, 3, SECOND, 1), after=3)
    talk.waits()
    assert talk.now - begun == 3 + 10


def test_whose_values_come_too_late_for_three_rounds_goes() -> None:
    talk = Conversation(3, rounds=9)
    talk.all_ready()
    for round in range(3):
        talk.hears(*(talk.report(rank, round, FIRST, left_out=[2]) for rank in range(2)))
        said = talk.hears(talk.report(2, round, FIRST, kept_back=90))
    assert dropped(said) == [2]
    assert talk.rounds.members == [0, 1]


def test_whose_values_come_too_late_now_and_then_stays() -> None:
    talk = Conversation(3, rounds=9)
    talk.all_ready()
    for round in range(6):
        late = [2] if round % 3 else []
        talk.hears(*(talk.report(rank, round, OTHER, left_out=late, kept_back=90) for rank in range(3)))
    assert talk.rounds.members == [0, 1, 2]


def test_frozen_parameters_that_may_have_to_come_are_waited_for_too() -> None:
    waits = {}
    for frozen in (0, 100 * SLOWEST_BYTES_S):
        talk = Conversation(2)
        talk.begin()
        told = [Prepared(state=state, parameters=100, values=100, frozen=frozen) for state in (FIRST, SECOND)]
        talk.hears(*(MemberReady(rank, said, bytes(32)) for rank, said in enumerate(told)))
        deadline = talk.rounds.next_deadline()
        assert deadline
        waits[frozen] = deadline - talk.now
    assert waits[100 * SLOWEST_BYTES_S] == waits[0] + 100
