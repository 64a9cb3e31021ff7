"""Members whose owners come back: the machine waits for them, leaves them out, or lets the job go."""

from __future__ import annotations

from axonp2p.training.messages import AdoptState
from axonp2p.training.round_messages import (
    EnoughAwake,
    JobWaits,
    Leave,
    LinkBroken,
    MemberDropped,
    MemberJoined,
    MemberLeaves,
    MemberLeftBehind,
    MemberLost,
    MemberPaused,
    MemberResumed,
    RoundAccepted,
    RoundBegunAnew,
    SetMembers,
    StateAdoptedBy,
    Tell,
    Tick,
    Trained,
)
from axonp2p.training.rounds.phases import Phase
from tests.unit.training.conversation import (
    FIRST,
    OTHER,
    SECOND,
    THIRD,
    Conversation,
    dropped,
    finished_steps,
    left_behind,
    ready,
    started,
)

BUSY = "another program uses 87 % CPU"

# --- a pause ---


def test_a_pause_that_is_soon_over_costs_nothing() -> None:
    talk = Conversation(2, rounds=1)
    talk.all_ready()
    assert talk.hears(MemberPaused(1, BUSY), MemberResumed(1)) == []
    said = talk.hears(talk.report(0, 0, SECOND), talk.report(1, 0, SECOND))
    assert said[-1] == Trained(SECOND, [0, 1])


def test_the_others_wait_for_a_paused_member_as_long_as_for_a_slow_one() -> None:
    talk = Conversation(3)
    talk.all_ready()
    talk.hears(MemberPaused(2, BUSY), finished_steps(0), finished_steps(1), after=10)
    half_at = talk.now - 10
    said = talk.waits()
    assert talk.now - half_at == 3 * 20
    assert said[0] == MemberLeftBehind(2, f"paused: {BUSY}")
    assert isinstance(said[1], RoundBegunAnew)
    assert set(started(said)) == {0, 1}


def test_of_two_the_one_that_works_does_not_wait_for_ever() -> None:
    talk = Conversation(2)
    talk.all_ready()
    talk.hears(MemberPaused(1, BUSY), finished_steps(0), after=10)
    said = talk.waits()
    assert left_behind(said) == [1]
    assert set(started(said)) == {0}


def test_who_stands_still_in_the_exchange_is_left_out_and_not_those_that_wait_for_its_part() -> None:
    talk = Conversation(3)
    talk.all_ready()
    talk.hears(*(finished_steps(rank) for rank in range(3)))
    talk.hears(MemberPaused(0, BUSY))
    assert left_behind(talk.waits()) == [0]


def test_a_broken_link_to_a_paused_member_is_nobodys_fault() -> None:
    talk = Conversation(3)
    talk.all_ready()
    talk.hears(MemberPaused(2, BUSY), LinkBroken(0, 2, "timed out"))
    talk.now += 15
    assert talk.hears(Tick()) == []


def test_who_was_left_behind_keeps_its_lease_and_comes_back_when_its_owner_goes() -> None:
    talk = Conversation(2, rounds=4)
    talk.all_ready()
    talk.hears(MemberPaused(1, BUSY), finished_steps(0))
    said = talk.waits()
    assert SetMembers([0]) in said
    said = talk.hears(talk.report(0, 0, SECOND, 1))
    assert set(started(said)) == {0}, "it stands still yet"
    assert talk.hears(MemberResumed(1)) == []
    said = talk.hears(talk.report(0, 1, THIRD))
    assert SetMembers([0], [1]) in said
    assert Tell(1, AdoptState(state=THIRD, senders=[0])) in said
    assert [(order.listeners, order.shards) for order in started(said).values()] == [([1], [0, 1, 2, 3]), ([1], [])]
    talk.hears(StateAdoptedBy(1, THIRD), StateAdoptedBy(1, OTHER))
    said = talk.hears(talk.report(0, 2, OTHER))
    assert MemberJoined(1, 3) in said
    assert {rank: order.shards for rank, order in started(said).items()} == {0: [0, 1], 1: [2, 3]}


def test_who_was_left_behind_may_still_be_wanted_back() -> None:
    talk = Conversation(2)
    talk.all_ready()
    talk.hears(MemberPaused(1, BUSY), finished_steps(0))
    talk.waits()
    assert talk.hears(MemberLeaves(1, BUSY, talk.now + 60)) == [MemberDropped(1, f"handed back: {BUSY}")]
    assert talk.hears(MemberLost(1, "the lease ended")) == []


# --- a job that cannot do without ---


def test_a_job_waits_for_the_only_member_as_long_as_it_takes() -> None:
    talk = Conversation(1, rounds=1)
    talk.all_ready()
    assert talk.hears(MemberPaused(0, BUSY)) == [JobWaits([0])]
    assert talk.rounds.next_deadline() is None
    talk.now += 86_400
    assert talk.hears(Tick()) == []
    assert talk.hears(MemberResumed(0)) == [EnoughAwake()]
    assert talk.hears(talk.report(0, 0, SECOND))[-1] == Trained(SECOND, [0])


def test_while_a_job_waits_every_deadline_moves() -> None:
    talk = Conversation(2, min_peers=2)
    talk.all_ready()
    deadline = talk.rounds.next_deadline()
    assert deadline is not None
    assert talk.hears(MemberPaused(1, BUSY)) == [JobWaits([1])]
    talk.hears(MemberResumed(1), after=1000)
    assert talk.rounds.next_deadline() == deadline + 1000


def test_a_job_waits_before_its_first_round_too() -> None:
    talk = Conversation(2, min_peers=2)
    talk.begin()
    assert talk.hears(MemberPaused(0, BUSY)) == [JobWaits([0])]
    assert talk.hears(ready(1), after=5000) == []
    assert talk.hears(MemberResumed(0)) == [EnoughAwake()]
    assert set(started(talk.hears(ready(0)))) == {0, 1}


def test_who_else_stands_still_is_told() -> None:
    talk = Conversation(2)
    talk.all_ready()
    assert talk.hears(MemberPaused(0, BUSY)) == []
    assert talk.hears(MemberPaused(1, BUSY)) == [JobWaits([0, 1])]
    assert talk.hears(MemberResumed(0)) == [EnoughAwake()]


def test_an_owners_deadline_does_not_wait_with_the_job() -> None:
    talk = Conversation(1)
    talk.all_ready()
    talk.hears(MemberPaused(0, BUSY), MemberLeaves(0, BUSY, talk.now + 60))
    said = talk.waits()
    assert talk.now < 60 + 10
    assert said == [Leave(f"otter: handed back: {BUSY}")]


# --- a machine that is wanted back ---


def test_who_has_to_go_ends_its_round_and_is_left_out_of_the_next() -> None:
    talk = Conversation(3)
    talk.all_ready()
    assert talk.hears(MemberLeaves(1, BUSY, talk.now + 600)) == []
    said = talk.hears(*(talk.report(rank, 0, SECOND) for rank in range(3)))
    assert isinstance(said[0], RoundAccepted)
    assert set(said[0].reports) == {0, 1, 2}
    assert said[1] == MemberDropped(1, f"handed back: {BUSY}")
    assert {order.round for order in started(said).values()} == {1}
    assert set(started(said)) == {0, 2}


def test_who_does_not_end_its_round_in_time_goes_without() -> None:
    talk = Conversation(3)
    talk.all_ready()
    talk.hears(MemberLeaves(1, BUSY, talk.now + 5))
    said = talk.waits()
    assert dropped(said) == [1]
    assert set(started(said)) == {0, 2}


def test_who_has_gone_already_is_not_waited_for() -> None:
    talk = Conversation(3)
    talk.all_ready()
    said = talk.hears(MemberLeaves(1, BUSY, talk.now))
    assert said[0] == MemberDropped(1, f"handed back: {BUSY}")
    assert set(started(said)) == {0, 2}
    assert talk.hears(MemberLost(1, "the peer ended the lease")) == []


def test_who_goes_before_its_time_was_handed_back_all_the_same() -> None:
    talk = Conversation(3)
    talk.all_ready()
    said = talk.hears(MemberLeaves(1, BUSY, talk.now + 600), MemberLost(1, "cut"))
    assert said[0] == MemberDropped(1, f"handed back: {BUSY}")


def test_before_the_first_round_there_is_nothing_to_end() -> None:
    talk = Conversation(2)
    talk.begin()
    assert dropped(talk.hears(MemberLeaves(1, BUSY, talk.now + 600))) == [1]


def test_the_last_member_ends_its_round_and_the_job_is_left_while_it_can_give_the_state() -> None:
    talk = Conversation(1, rounds=5)
    talk.all_ready()
    talk.hears(MemberLeaves(0, BUSY, talk.now + 600))
    said = talk.hears(talk.report(0, 0, SECOND))
    assert [type(action) for action in said] == [RoundAccepted, Leave]
    assert not dropped(said)
    assert talk.rounds.phase is Phase.LEFT


def test_a_last_member_that_does_not_end_its_round_leaves_time_for_the_state() -> None:
    talk = Conversation(1, rounds=5)
    talk.all_ready()
    until = talk.now + 600
    talk.hears(MemberLeaves(0, BUSY, until))
    said = talk.waits()
    assert said == [Leave(f"otter: handed back: {BUSY}")]
    assert until - talk.now >= 5


def test_too_few_that_stay_leave_the_job_too() -> None:
    talk = Conversation(2, rounds=3, min_peers=2)
    talk.all_ready()
    talk.hears(MemberLeaves(1, BUSY, talk.now + 600))
    said = talk.hears(talk.report(0, 0, SECOND), talk.report(1, 0, SECOND))
    assert said[-1] == Leave(f"lynx: handed back: {BUSY}")


def test_who_would_be_left_alone_with_the_job_is_waited_for() -> None:
    talk = Conversation(2, rounds=3)
    talk.all_ready()
    talk.hears(MemberLeaves(0, BUSY, talk.now + 600), talk.report(0, 0, SECOND), after=1)
    assert left_behind(talk.waits()) == []
    said = talk.hears(talk.report(1, 0, SECOND))
    assert dropped(said) == [0]
    assert set(started(said)) == {1}


def test_who_has_to_go_stays_until_another_has_caught_up() -> None:
    talk = Conversation(2, rounds=5)
    talk.all_ready()
    talk.hears(MemberPaused(1, BUSY), finished_steps(0))
    talk.waits()
    talk.hears(MemberResumed(1))
    said = talk.hears(MemberLeaves(0, BUSY, talk.now + 600), talk.report(0, 0, SECOND, 1))
    assert set(started(said)) == {0, 1}
    assert not dropped(said)
    talk.hears(StateAdoptedBy(1, SECOND), StateAdoptedBy(1, THIRD))
    said = talk.hears(talk.report(0, 1, THIRD))
    assert MemberJoined(1, 2) in said
    said = talk.hears(talk.report(0, 2, OTHER), talk.report(1, 2, OTHER))
    assert dropped(said) == [0]
    assert set(started(said)) == {1}


def test_the_last_round_is_the_last_round() -> None:
    talk = Conversation(1, rounds=2)
    talk.all_ready()
    talk.hears(talk.report(0, 0, SECOND))
    said = talk.hears(MemberLeaves(0, BUSY, talk.now + 600), talk.report(0, 1, THIRD))
    assert said[-1] == Trained(THIRD, [0])


def test_a_job_that_is_left_begins_nothing_more() -> None:
    talk = Conversation(1)
    talk.all_ready()
    talk.hears(MemberLeaves(0, BUSY, talk.now))
    assert talk.rounds.phase is Phase.LEFT
    assert talk.rounds.next_deadline() is None
    assert talk.hears(MemberResumed(0), talk.report(0, 0, FIRST)) == []
