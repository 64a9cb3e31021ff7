"""Which rounds may enter the books, and how far training may go ahead of them."""

from __future__ import annotations

import hashlib
import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from axonp2p.training.messages import StartRound
from axonp2p.training.round_messages import (
    Action,
    KeepState,
    MemberLost,
    RoundAccepted,
    RoundBooked,
    StateKept,
    Tell,
    Trained,
)
from axonp2p.training.rounds.commit_rule import CommitRule
from tests.unit.training.conversation import OTHER, SECOND, THIRD, Conversation


def started(said: list[Action]) -> set[int]:
    """Which rounds were ordered."""
    return {
        action.message.round for action in said if isinstance(action, Tell) and isinstance(action.message, StartRound)
    }


def about_books(said: list[Action]) -> list[Action]:
    return [action for action in said if isinstance(action, KeepState | RoundBooked)]


def test_the_next_round_begins_while_the_state_is_on_its_way():
    talk = Conversation(2, rounds=4, keep_every=1)
    talk.all_ready()
    said = talk.all_report(0, SECOND)
    assert about_books(said) == [KeepState(0, SECOND)]
    assert started(said) == {1}
    assert about_books(talk.hears(StateKept(SECOND))) == [RoundBooked(0, SECOND)]


def test_training_waits_rather_than_be_two_rounds_ahead_of_the_books():
    talk = Conversation(2, rounds=4, keep_every=1)
    talk.all_ready()
    talk.all_report(0, SECOND)
    assert talk.all_report(1, THIRD) == []
    assert talk.rounds.next_deadline() is None  # nobody is late: the line is slow
    said = talk.hears(StateKept(SECOND))
    assert about_books(said) == [RoundBooked(0, SECOND), KeepState(1, THIRD)]
    assert started(said) == {2}


def test_who_leaves_a_job_that_waits_for_the_line_costs_it_nothing():
    talk = Conversation(3, rounds=4, keep_every=1)
    talk.all_ready()
    talk.all_report(0, SECOND)
    talk.all_report(1, THIRD)
    talk.hears(MemberLost(2, "it was killed"))
    said = talk.hears(StateKept(SECOND))
    (accepted,) = (action for action in said if isinstance(action, RoundAccepted))
    assert (accepted.round, accepted.state, set(accepted.reports)) == (1, THIRD, {0, 1})


def test_a_state_that_nobody_waits_for_books_nothing():
    talk = Conversation(2, rounds=4, keep_every=1)
    talk.all_ready()
    talk.all_report(0, SECOND)
    assert talk.hears(StateKept(OTHER)) == []


def test_rounds_between_checkpoints_enter_the_books_at_once():
    talk = Conversation(2, rounds=5, keep_every=2)
    talk.all_ready()
    assert about_books(talk.all_report(0, SECOND)) == [RoundBooked(0, None)]
    assert about_books(talk.all_report(1, THIRD)) == [KeepState(1, THIRD)]
    assert talk.all_report(2, OTHER) == []
    assert about_books(talk.hears(StateKept(THIRD))) == [RoundBooked(1, THIRD), RoundBooked(2, None)]
    talk.all_report(3, SECOND)
    talk.hears(StateKept(SECOND))
    said = talk.all_report(4, THIRD)
    assert about_books(said) == [KeepState(4, THIRD)]  # the last one is always kept
    assert isinstance(said[-1], Trained)


def test_nothing_is_kept_where_nobody_wishes_it():
    talk = Conversation(2, rounds=2)
    talk.all_ready()
    assert about_books(talk.all_report(0, SECOND)) == []
    assert about_books(talk.all_report(1, THIRD)) == []


@given(every=st.integers(1, 5), rounds=st.integers(1, 20), seed=st.integers(0, 1000))
def test_every_round_is_booked_once_in_order_and_never_two_are_ahead(every: int, rounds: int, seed: int):
    chance, keeping = random.Random(seed), CommitRule(every)
    booked: list[RoundBooked] = []
    on_the_way: list[KeepState] = []

    def note(said: list[KeepState | RoundBooked]) -> None:
        booked.extend(action for action in said if isinstance(action, RoundBooked))
        on_the_way.extend(action for action in said if isinstance(action, KeepState))

    accepted = 0
    while len(booked) < rounds:
        if on_the_way and (keeping.full and (accepted == rounds or chance.random() < 0.5)):
            note(keeping.kept(on_the_way.pop().state))
        elif accepted < rounds and not keeping.full:
            state = hashlib.sha256(bytes([accepted])).digest()
            note(keeping.accepted(accepted, state, last=accepted + 1 == rounds))
            accepted += 1
        assert accepted - len(booked) <= 1
    assert [action.round for action in booked] == list(range(rounds))
    assert booked[-1].state is not None
    unkept = [action.round for action in booked if action.state is None]
    assert all((round + 1) % every for round in unkept)


def test_a_round_is_not_accepted_while_another_one_waits():
    keeping = CommitRule(1)
    keeping.accepted(0, SECOND, last=False)
    with pytest.raises(AssertionError):
        keeping.accepted(1, THIRD, last=False)
