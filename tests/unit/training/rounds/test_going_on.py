"""A job whose coordinator died: what the next one finds, and where it goes on."""

from __future__ import annotations

from axonp2p.training.messages import AdoptState, Prepare, Prepared, StartRound
from axonp2p.training.plan import ATTEMPTS_A_LIFE, Done
from axonp2p.training.round_messages import (
    Action,
    GiveUp,
    GoesOn,
    KeepState,
    MemberDropped,
    MemberLost,
    MemberReady,
    RoundBegunAnew,
    RoundBooked,
    SendStartState,
    StateAdoptedBy,
    StateKept,
    Tell,
    Trained,
)
from tests.unit.training.conversation import FIRST, OTHER, SECOND, THIRD, Conversation, ready

KEPT, AHEAD = SECOND, THIRD


def resumed(members: int = 3, *, min_peers: int = 1, rounds: int = 40, ahead: bool = True) -> Conversation:
    """Twelve rounds are in the books; a thirteenth was accepted, and its state was on its way."""
    later = (Done(13, AHEAD),) if ahead else ()
    return Conversation(
        members, rounds=rounds, min_peers=min_peers, first_round=12, start_state=KEPT, later=later, life=1, keep_every=1
    )


def holds(rank: int, state: bytes, candidate: bytes | None = None) -> MemberReady:
    return MemberReady(rank, Prepared(state=state, parameters=100, values=100, candidate=candidate), bytes(32))


def orders(said: list[Action]) -> dict[int, StartRound]:
    return {
        action.rank: action.message
        for action in said
        if isinstance(action, Tell) and isinstance(action.message, StartRound)
    }


def test_members_that_waited_go_on_from_what_they_hold_and_nothing_is_trained_again():
    talk = resumed()
    assert sum(isinstance(action, Tell) and isinstance(action.message, Prepare) for action in talk.begin()) == 3
    # Two have begun the round after, one had not heard of it.
    said = talk.hears(holds(0, AHEAD), holds(1, AHEAD, OTHER), holds(2, KEPT, AHEAD))
    assert said[0] == GoesOn(13, AHEAD, [0, 1, 2])
    assert KeepState(12, AHEAD) in said
    assert {(order.round, order.state) for order in orders(said).values()} == {(13, AHEAD)}
    assert talk.hears(StateKept(AHEAD)) == [RoundBooked(12, AHEAD)]


def test_attempts_are_numbered_so_that_words_of_the_life_before_are_known():
    talk = resumed()
    talk.begin()
    said = talk.hears(*(holds(rank, AHEAD) for rank in range(3)))
    assert {order.attempt for order in orders(said).values()} == {ATTEMPTS_A_LIFE}
    talk.hears(talk.report(0, 13, OTHER, attempt=0))  # crossed the order on its way
    assert talk.rounds.members == [0, 1, 2]
    said = talk.hears(MemberLost(2, "it was killed"))
    (redone,) = (action for action in said if isinstance(action, RoundBegunAnew))
    assert redone.attempt == 1
    assert {order.attempt for order in orders(said).values()} == {ATTEMPTS_A_LIFE + 1}


def test_what_was_said_to_the_dead_coordinator_costs_nobody_its_place():
    talk = resumed()
    talk.begin()
    said = talk.hears(
        talk.report(0, 13, OTHER, attempt=0),
        StateAdoptedBy(1, KEPT),
        holds(0, AHEAD, OTHER),
        holds(1, AHEAD),
        holds(2, AHEAD),
    )
    assert not any(isinstance(action, MemberDropped) for action in said)
    assert set(orders(said)) == {0, 1, 2}


def test_when_nobody_waited_it_goes_on_from_the_disk():
    talk = resumed(2)
    talk.begin()
    said = talk.hears(ready(0), ready(1))
    assert said[0] == GoesOn(12, KEPT, [])
    assert SendStartState(0) in said
    said = talk.hears(StateAdoptedBy(0, KEPT), StateAdoptedBy(1, KEPT))
    assert {(order.round, order.state) for order in orders(said).values()} == {(12, KEPT)}
    assert not any(isinstance(action, KeepState) for action in said)


def test_new_members_get_the_state_from_those_that_waited():
    talk = resumed()
    talk.begin()
    said = talk.hears(ready(0), holds(1, AHEAD), ready(2))
    assert said[0] == GoesOn(13, AHEAD, [1])
    adopt = AdoptState(state=AHEAD, senders=[1])
    assert [action for action in said if isinstance(action, Tell)] == [Tell(0, adopt), Tell(2, adopt)]
    assert SendStartState(0) not in said


def test_when_the_only_one_that_waited_goes_the_job_falls_back_to_the_disk():
    talk = resumed()
    talk.begin()
    talk.hears(ready(0), holds(1, AHEAD), ready(2))
    said = talk.hears(MemberLost(1, "it was killed"))
    assert GoesOn(12, KEPT, []) in said
    assert SendStartState(0) in said
    said = talk.hears(StateAdoptedBy(0, KEPT), StateAdoptedBy(2, KEPT))
    assert {order.round for order in orders(said).values()} == {12}


def test_members_that_hold_what_is_in_the_books_need_nothing_sent():
    talk = resumed(2, ahead=False)
    talk.begin()
    said = talk.hears(holds(0, KEPT, OTHER), holds(1, KEPT))
    assert said[0] == GoesOn(12, KEPT, [0, 1])
    assert {(order.round, order.state) for order in orders(said).values()} == {(12, KEPT)}


def test_a_job_that_lacks_only_its_last_booking_is_trained_at_once():
    talk = resumed(2, rounds=13)
    talk.begin()
    said = talk.hears(holds(0, KEPT, AHEAD), holds(1, KEPT, AHEAD))
    assert KeepState(12, AHEAD) in said
    assert said[-1] == Trained(AHEAD, [0, 1])


def test_a_first_life_says_nothing_of_going_on():
    talk = Conversation(2)
    assert not any(isinstance(action, GoesOn) for action in talk.all_ready())


def test_it_is_said_when_more_members_would_help():
    talk = resumed(2, min_peers=2)
    talk.begin()
    talk.hears(holds(0, AHEAD), holds(1, AHEAD))
    (given_up,) = (action for action in talk.hears(MemberLost(1, "it was killed")) if isinstance(action, GiveUp))
    assert given_up.too_few
    assert FIRST not in (KEPT, AHEAD)
