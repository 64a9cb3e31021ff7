"""Links that break between two members who both live: others own the slices, and nobody has to go."""

from __future__ import annotations

from axonp2p.training.messages import StartRound
from axonp2p.training.round_messages import (
    Action,
    LinkBroken,
    MemberDropped,
    MemberJoins,
    MemberLost,
    MemberPaused,
    RoundBegunAnew,
    StateAdoptedBy,
    Tick,
)
from tests.unit.training.conversation import (
    SECOND,
    THIRD,
    Conversation,
    dropped,
    finished_steps,
    left_behind,
    ready,
    started,
)


def owners(said: list[Action]) -> set[int]:
    order: StartRound = next(iter(started(said).values()))
    return {rank for rank, share in zip(order.members, order.shares, strict=True) if share}


def test_a_round_is_redone_with_slices_that_neither_of_the_two_owns() -> None:
    talk = Conversation(4, rounds=3)
    assert owners(talk.all_ready()) == {0, 1, 2, 3}
    assert talk.hears(LinkBroken(0, 1, "timed out")) == []
    since = talk.now
    said = talk.waits()
    assert talk.now - since == 1
    assert said[0] == RoundBegunAnew(0, 1, "otter and lynx cannot reach each other: timed out")
    assert not dropped(said)
    assert owners(said) == {2, 3}
    said = talk.all_report(0, SECOND, 1)
    assert owners(said) == {2, 3}, "they cannot reach each other in the next round either"


def test_two_that_alone_do_not_get_on_after_the_same_step_are_taken_for_cut_off_from_each_other() -> None:
    talk = Conversation(4, rounds=3)
    talk.all_ready()
    talk.all_report(0, SECOND)
    talk.hears(*(finished_steps(rank, 1) for rank in range(4)))
    talk.hears(*(talk.report(rank, 1, THIRD) for rank in (0, 1)))
    said = talk.waits()
    assert said[0] == RoundBegunAnew(
        1, 1, "hare and crow alone did not finish round 2, as if they did not reach each other"
    )
    assert owners(said) == {0, 1}
    assert not left_behind(said)
    talk.hears(*(finished_steps(rank, 1, 1) for rank in range(4)))
    talk.hears(*(talk.report(rank, 1, THIRD, 1) for rank in (0, 1)))
    assert left_behind(talk.waits()) == [2, 3], "it is not that"


def test_a_link_that_is_of_no_use_in_this_round_costs_nothing() -> None:
    talk = Conversation(4)
    talk.all_ready()
    talk.hears(LinkBroken(0, 1, "timed out"))
    talk.waits()
    talk.hears(LinkBroken(1, 0, "timed out"))
    talk.now += 5
    assert talk.hears(Tick()) == []


def test_when_one_of_the_two_leaves_the_other_owns_a_slice_again() -> None:
    talk = Conversation(4)
    talk.all_ready()
    talk.hears(LinkBroken(0, 1, "timed out"))
    talk.waits()
    assert owners(talk.hears(MemberLost(1, "killed"))) == {0, 2, 3}


def test_when_nobody_is_left_who_reaches_all_whoever_is_most_in_the_way_goes() -> None:
    talk = Conversation(4)
    talk.all_ready()
    talk.hears(*(LinkBroken(rank, 0, "no route") for rank in (1, 2)), after=0)
    assert owners(talk.waits()) == {3}
    talk.hears(LinkBroken(3, 0, "no route"))
    said = talk.waits()
    assert MemberDropped(0, "lynx and otter cannot reach each other: no route") in said
    assert owners(said) == {1, 2, 3}


def test_of_two_the_later_one_goes() -> None:
    talk = Conversation(2)
    talk.all_ready()
    talk.hears(LinkBroken(0, 1, "timed out"))
    said = talk.waits()
    assert dropped(said) == [1]
    assert set(started(said)) == {0}


def test_a_link_to_a_peer_that_turns_out_dead_costs_nobody_else() -> None:
    talk = Conversation(3)
    talk.all_ready()
    talk.hears(LinkBroken(0, 2, "reset"), after=0.5)
    said = talk.hears(MemberLost(2, "killed"), after=0.5)
    assert dropped(said) == [2]
    assert owners(said) == {0, 1}
    talk.now += 5
    assert talk.hears(Tick()) == []


def test_a_broken_link_to_a_paused_member_is_nobodys_fault() -> None:
    talk = Conversation(3)
    talk.all_ready()
    talk.hears(MemberPaused(2, "a game"), LinkBroken(0, 2, "timed out"))
    talk.now += 5
    assert talk.hears(Tick()) == []


def test_whom_one_that_joins_cannot_reach_owns_nothing_from_the_next_round_on() -> None:
    talk = Conversation(2, rounds=4)
    talk.all_ready()
    talk.hears(MemberJoins(7, "wren"), ready(7))
    talk.all_report(0, SECOND)
    talk.hears(LinkBroken(7, 1, "no route"))
    talk.now += 1
    assert talk.hears(Tick()) == [], "the round of the others goes on"
    said = talk.all_report(1, THIRD)
    assert owners(said) == {0}
    said = talk.hears(StateAdoptedBy(7, SECOND), *(talk.report(rank, 2, SECOND) for rank in (0, 1)))
    assert owners(said) == {0}


def test_one_that_joins_and_reaches_nobody_goes_itself() -> None:
    talk = Conversation(2, rounds=4)
    talk.all_ready()
    talk.hears(MemberJoins(7, "wren"), ready(7), LinkBroken(7, 0, "no route"), LinkBroken(7, 1, "no route"), after=0)
    assert talk.waits() == []
    said = talk.all_report(0, SECOND)
    assert dropped(said) == [7]
    assert owners(said) == {0, 1}
